"""Pages and mental models: created by their owner, refreshed from evidence in one commit or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from ua_memory.errors import (
    BudgetSpent,
    ChangedOnDisk,
    KeyRejected,
    Malformed,
    ModelMisbehaved,
    ModelUnavailable,
    NotFound,
    RequestRejected,
    TooLarge,
    UaMemoryError,
    Usage,
    checked,
)
from ua_memory.git.history import unified_file_diff
from ua_memory.git.repository import MACHINE, BlameLine
from ua_memory.index.filters import Filters
from ua_memory.knowledge import facts as knowledge_facts
from ua_memory.knowledge import pages, statements
from ua_memory.knowledge.facts import FindEqual, Provenance
from ua_memory.knowledge.pages import (
    CALLOUT,
    BodyUnit,
    CitedSentence,
    Owner,
    P,
    PageChange,
    PageEditor,
    PageFiles,
    RefusedEdit,
    escape_line,
    placeholder,
    uncited_sentences,
)
from ua_memory.knowledge.statements import Statement
from ua_memory.llm.ledger import MODEL_TOKENS, Estimate, cached_requests, estimate_of
from ua_memory.llm.model import Endpoint, Model, ModelOrEndpoint, TokenUsage, prompt, tool_task, user
from ua_memory.llm.tools import SAY_DONE, Bounds, Tool, ToolError, run_tools, schema
from ua_memory.markdown import document, fields
from ua_memory.markdown import lines as markdown_lines
from ua_memory.markdown.blocks import BlockShape
from ua_memory.markdown.lines import readable
from ua_memory.records import TEXT_KEYS, Fact, MentalModel, Observation, Page
from ua_memory.reflect.proposals import ComparedStatement, as_sentence, says_the_same
from ua_memory.retain.queue import Jobs
from ua_memory.store.draft import Draft
from ua_memory.store.store import Store
from ua_memory.text import grounding
from ua_memory.text import tokens as text_tokens
from ua_memory.text.grounding import contradiction, is_supported, terms
from ua_memory.text.names import entities
from ua_memory.text.noise import escape_tags
from ua_memory.text.wording import counted

if TYPE_CHECKING:
    from ua_memory.index.sync import Facts
    from ua_memory.llm.providers import ModelAccess
    from ua_memory.recall.search import SearchResult


# -- evidence ----------------------------------------------------------------------------------------------
# The facts and observations that recall finds for a page's question, and those that the page cites.


KINDS = ("fact", "observation")
"""The kinds of evidence. Pages are not made from other pages, mental models or opinions."""
MOST_EVIDENCE = 40
"""Most pieces of evidence that recall gives to one page."""
LEAST_SCORE = 0.2
"""Hits with a lower score are mostly about something else."""
HITS_LOOKED_AT, LEAST_PASSED_SCORE = 120, LEAST_SCORE / 2
"""How many hits are looked at, and down to which score. Those beyond the two limits above are recorded as
passed over, so that they do not count as new if their score rises a little."""

Clean = Callable[[str], str]
Recalled = tuple[Sequence[Any], Sequence[str]]
"""The hits of a search, and its notes."""


@dataclass(frozen=True, slots=True)
class PageSource:
    """A fact or observation that sentences of a page may cite, by its number. `recalled`: recall found it for
    the question; else only the page cites it. `clean` removes secrets from a person's lines."""

    number: int
    record: Fact | Observation
    recalled: bool
    clean: Clean
    news: str = ""
    """`new`, `edited` or `left out before`, seen from the last refresh; else ''."""
    score: float = 0.0
    """Its score for the question."""

    @property
    def name(self) -> str:
        """`^id`, or `path#texthash` of a line without an id."""
        return statements.name_of(self.record)

    @property
    def day(self) -> str:
        """The day it is about, else the day it was said; '' if unknown."""
        if isinstance(self.record, Observation):
            return self.record.last or self.record.since or ""
        return self.record.when or markdown_lines.day_of(self.record.place.path) or ""

    @property
    def text(self) -> str:
        """Its text, on one line."""
        return self.clean(" ".join(self.record.text.split()))

    @property
    def prompt_line(self) -> str:
        """Its line in the prompt."""
        record = self.record
        who = record.said_by if isinstance(record, Fact) else f"observation, {len(record.proofs)} proofs"
        more = [f"{key}: {self.clean(value)}" for key, value in _details(record)]
        news = f", {self.news}" if self.news else ""
        return f"[{self.number}] {self.day or 'no day'} ({who}{news}) " + " | ".join([self.text, *more])

    @property
    def words(self) -> str:
        """All text that a sentence citing it may use."""
        record = self.record
        more = [value for _, value in _details(record)]
        return self.clean("\n".join([record.text, self.day, *more, *record.entities, *record.tags]))


def _details(record: Fact | Observation) -> list[tuple[str, str]]:
    if isinstance(record, Observation):
        pairs = [("since", record.since), ("last", record.last), ("trend", record.trend)]
        pairs += [("quote", proof.quote) for proof in record.proofs[:3]]
    else:
        pairs = [(key, getattr(record, key)) for key in (*TEXT_KEYS, "flag")]
        pairs += [("quote", quote.text) for quote in record.quotes]
    return [(key, " ".join(value.split())) for key, value in pairs if value]


def digest(record: Statement) -> str:
    """A short hash of a statement's text; an id appended to its line changes nothing."""
    parts = [record.text, *(str(getattr(record, key, None) or "") for key in ("when", *TEXT_KEYS))]
    return document.texthash("\0".join(parts))[:8]


Records = list[Fact | Observation]
Scored = list[tuple[Fact | Observation, float]]


def statements_of_hits(store: Store, hits: Iterable[Any], own: str) -> tuple[Scored, Records]:
    """The statements of a search's hits with their scores, best first; and those passed over. Retired and
    untrusted statements are skipped, and so are those outside the bank or from the page itself (`own` is its
    link)."""
    files: dict[str, Mapping[int, Fact | Observation]] = {}
    found: Scored = []
    passed: Records = []
    for hit in hits:
        item = hit.item
        if item.path.startswith("/"):
            continue
        if item.path not in files:
            records = document.parse(store.accepted_bytes(item.path), item.path).records
            files[item.path] = {r.place.line: r for r in records if isinstance(r, (Fact, Observation))}
        record = files[item.path].get(item.line)
        if record is None or record.retired or item.untrusted:
            continue
        if record.source == own if isinstance(record, Fact) else not record.id:
            continue
        if hit.match >= LEAST_SCORE and len(found) < MOST_EVIDENCE:
            found.append((record, hit.match))
        else:
            passed.append(record)
    return found, passed


def find_living(find: Callable[[str], Statement], block: str) -> Fact | Observation | None:
    """The statement with this id, None if it is gone, retired or untrusted."""
    try:
        found = find(f"^{block}")
    except NotFound:
        return None
    if statements.is_untrusted(found, find):
        return None
    return found if isinstance(found, (Fact, Observation)) and not found.retired else None


def unsupported_claims(text: str, cited: Sequence[PageSource]) -> tuple[str, ...]:
    """The names, numbers and dates of a sentence that none of the evidence has; relative dates are resolved
    from each piece's day."""
    pieces = [each.words for each in cited]
    missing = grounding.ungrounded_claims(text, pieces)
    for each in cited if missing else ():
        try:
            said = date.fromisoformat(each.day[:10])
        except ValueError:
            continue
        missing = min(missing, grounding.ungrounded_claims(text, pieces, said), key=len)
    return missing


def evidence_link(draft: Draft, one: PageSource) -> str:
    """The link to a piece of evidence; an id is added to its line if it has none. Malformed if it has
    changed."""
    if isinstance(one.record, Fact):
        fact = statements.ensure_id(draft, one.record)
        return fields.link_to(draft.link_name(fact.place.path), str(fact.id))
    return fields.link_to(draft.link_name(one.record.place.path), str(one.record.id))


# -- prompt ------------------------------------------------------------------------------------------------


_TOOL_TOKENS, _USUAL_REQUESTS, _ANSWER_TOKENS = 900, 3, 700
"""Tokens of the tools' descriptions; usual requests of a refresh; usual tokens of an answer."""


def estimate(
    model: Endpoint | Model, editor: PageEditor, question: str, evidence: Sequence[PageSource], clean: Clean
) -> Estimate:
    """The tokens of a request to this model, rounded up."""
    text = opening_message(editor, question, evidence, clean)
    size = int((text_tokens.count(text) + text_tokens.count(prompt("refresh")) + _TOOL_TOKENS) * MODEL_TOKENS)
    return estimate_of(model, size, cached_requests(size, _USUAL_REQUESTS, _ANSWER_TOKENS))


def opening_message(editor: PageEditor, question: str, evidence: Sequence[PageSource], clean: Clean) -> str:
    """The question, the page and the evidence, as the model reads them."""
    numbers = {each.record.ref or "": each.number for each in evidence}
    rows = []
    for heading, under in editor.sections():
        rows.append(f"{heading.ref} {heading.text.strip()}" if heading else "S0 (before the first heading)")
        for unit in under:
            owner = "" if unit.owner == "ours" else " (a person's)"
            rows.append(f"  {unit.ref}{owner}: {_format_unit(unit, numbers)}")
    page = clean("\n".join(rows))
    facts = "\n".join(each.prompt_line for each in evidence)
    parts = (f"<question>\n{_in_block(clean(question))}\n</question>", f"<page>\n{_in_block(page)}\n</page>")
    return "\n\n".join((*parts, f"<evidence>\n{_in_block(facts)}\n</evidence>"))


def _in_block(text: str) -> str:
    """Text that cannot close the block that it is in."""
    return escape_tags(text, "question", "page", "evidence")


def _format_unit(unit: BodyUnit, numbers: Mapping[str, int]) -> str:
    if unit.owner != "ours":
        return "\n    ".join(unit.text.split("\n"))
    said = []
    for one in unit.sentences:
        known = [f"[{numbers[each]}]" for each in one.ids if each in numbers]
        lost = len(known) < len(one.ids)
        said.append(f"{one.text} {''.join(known)}{' (its evidence is gone)' if lost else ''}")
    return " ".join([*said, unit.uncited_text]).strip()


# -- staleness ---------------------------------------------------------------------------------------------
# Whether a page is out of date is computed and never stored: the commit of a refresh has hashes of the
# evidence that it saw (`Seen:`), and these are compared with what recall finds now.


NAMES_IN_A_LINE = 12
"""Names with their hashes in one line of a trailer."""
NO_MODEL = "extract"
"""The value of `By:` for a refresh without a model."""


@dataclass(frozen=True, slots=True)
class LastRefresh:
    """A page's last refresh that was not undone: its commit, a hash of the recipe, its model, the evidence it
    saw."""

    revision: str
    recipe: str
    by: str
    seen: Mapping[str, str]
    passed: Mapping[str, str] = field(default_factory=dict)
    """Hits that were passed over."""


@dataclass(frozen=True, slots=True)
class StaleReasons:
    """Why a page is out of date; false if it is not. Names are `^id`, or `path#texthash` of a line without an
    id. `yours` counts what persons wrote on the page since."""

    never: bool = False
    question: bool = False
    new: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    yours: int = 0
    draft: bool = field(default=False, compare=False)
    """It was made without a model."""
    broken: str = ""
    """Why the page cannot be refreshed, so that its state is unknown."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """The notes of the search."""

    def __bool__(self) -> bool:
        counted = self.new or self.edited or self.gone or self.yours
        return bool(self.broken or self.never or self.question or counted)

    def __str__(self) -> str:
        if self.broken:
            return self.broken
        if self.never:
            return "never refreshed"
        counts = [(self.new, "new"), (self.edited, "edited"), (self.gone, "gone")]
        said = ["another question"] if self.question else []
        said += [f"{len(names)} {word}" for names, word in counts if names]
        said += [f"{self.yours} of yours to add as facts"] if self.yours else []
        return ", ".join(said)


def last_refresh(store: Store, page: Page) -> LastRefresh | None:
    """The refresh that wrote the page's text; None if there was none since it was created."""
    name = pages.stem(page)
    back = store.history.undone_revisions()
    for done in store.history.with_trailer("Page", name):
        if done.id in back or done.trailer("Page") != name:
            continue
        if done.trailer("Memory-Op") == "refresh":
            seen, passed = (_parse_seen(done.trailers.get(key, ())) for key in ("Seen", "Passed"))
            return LastRefresh(done.id, done.trailer("Recipe"), done.trailer("By"), seen, passed)
        if done.trailer("Memory-Op") in ("page create", "page delete"):
            return None
    return None


def _parse_seen(lines: Sequence[str]) -> dict[str, str]:
    seen: dict[str, str] = {}
    for line in lines:
        if ".md#" in line:
            seen[line] = ""
            continue
        seen |= {f"^{name}": said for name, _, said in (each.partition(".") for each in line.split())}
    return seen


def seen_lines(seen: Mapping[str, str]) -> list[str]:
    """The `Seen:` trailers: `id.hash` of a statement with an id, else `path#texthash`."""
    named = [f"{name[1:]}.{said}" for name, said in seen.items() if name.startswith("^")]
    rows = [" ".join(named[at : at + NAMES_IN_A_LINE]) for at in range(0, len(named), NAMES_IN_A_LINE)]
    return rows + [name for name in seen if not name.startswith("^")]


def staleness_of(
    page: Page, last: LastRefresh | None, evidence: Sequence[PageSource], cited: Iterable[str],
    alive: Callable[[str], bool], yours: int,
) -> StaleReasons:  # fmt: skip
    """Why a page is out of date. `cited` are the ids it cites; `alive` says whether a name still exists."""
    if last is None:
        return StaleReasons(never=True, yours=yours)
    now: dict[str, PageSource] = {each.name: each for each in evidence}
    new, edited, renamed = [], [], set()
    for name, each in now.items():
        nameless = f"{each.record.place.path}#{document.texthash(each.record.text)}"
        if name not in last.seen and nameless in last.seen:  # its line got an id, which is no edit
            renamed.add(nameless)
        elif name not in last.seen:
            known = last.passed.get(name, last.passed.get(nameless)) in ("", digest(each.record))
            new += [name] if each.recalled and not known else []
        elif last.seen[name] not in ("", digest(each.record)):
            edited.append(name)
    wanted = {*last.seen, *(f"^{block}" for block in cited)} - set(now) - renamed
    gone = [name for name in sorted(wanted) if not alive(name)]
    return StaleReasons(
        False, last.recipe != pages.recipe(page), tuple(new), tuple(edited), tuple(gone), yours,
        last.by == NO_MODEL,
    )  # fmt: skip


# -- who wrote what ------------------------------------------------------------------------------------


def owners(store: Store, path: str, data: bytes) -> list[Owner]:
    """Who wrote each line of a page. Commits that only restored a line, such as an undo, do not count."""

    def owner(line: BlameLine) -> Owner:
        if line.author != MACHINE[0]:
            return "person"
        return "ours" if line.subject.startswith("refresh: ") else "other"

    return [owner(line) for line in store.history.blame(path, data)]


# -- a person's text ---------------------------------------------------------------------------------------
# What a person writes on a page becomes a fact in the day's log, once.
#
# Sentences that were on the page at the last refresh are known; others in a person's paragraphs are new. So
# no further state is needed, and a fact that the person deletes does not come back.


CLIENT = "pages"
"""The client in the heading of these facts."""
LEAST_WORDS = 2
"""The least words of a statement."""


class PageEdits:
    """A person's text on one page that is not a fact yet, by unit."""

    def __init__(self, store: Store, page: Page, editor: PageEditor, last: LastRefresh | None) -> None:
        self.store, self.source = store, f"[[{pages.stem(page)}]]"
        path = page.place.path
        known = set(_sentences(store.history.read(last.revision, path) or b"", path)) if last else set()
        self.words: dict[BodyUnit, str] = {}
        for unit in editor.units:
            if unit.owner == "person" and unit.shape in (BlockShape.PARAGRAPH, BlockShape.ITEM):
                text = " ".join(said for said in uncited_sentences(unit) if said not in known)
                known.update(uncited_sentences(unit))
                if len(text.split()) >= LEAST_WORDS:
                    self.words[unit] = text
        self._written: dict[BodyUnit, Fact] = {}

    def write_facts(self, draft: Draft) -> tuple[Fact, ...]:
        """Write it into the day's log, as the person's facts."""
        said = Provenance(self.store.now(), CLIENT, "person")
        for unit, text in self.words.items():
            fact = Fact(text, origin="person", source=self.source)
            try:
                self._written[unit] = knowledge_facts.add(draft, fact, said)[0]
            except (Usage, TooLarge) as error:
                draft.notes.append(f"not added as a fact from the page: {text[:80]} ({error.what})")
        return tuple(self._written.values())

    def flag(self, draft: Draft, pairs: Sequence[tuple[BodyUnit, str]], equal: FindEqual) -> tuple[Fact, ...]:
        """Flag the facts from a person's paragraphs with the id of what contradicts them."""
        flagged = []
        for unit, block in pairs:
            for fact in self._facts(draft, unit, equal):
                if f"^{block}" not in (fact.flag or ""):
                    done = _add_flag(draft, fact, f"contradicted by ^{block}")
                    flagged += [done] if done else []
                    break
        return tuple(flagged)

    def _facts(self, draft: Draft, unit: BodyUnit, equal: FindEqual) -> Iterator[Fact]:
        """The facts that a paragraph became, as they are in the draft."""
        if unit in self._written:
            yield self._written[unit]
            return
        said = uncited_sentences(unit)
        for text in dict.fromkeys((" ".join(said), *said)):
            for path in dict.fromkeys(equal(text)):
                for fact in document.parse(draft.read(path), path).of(Fact):
                    if fact.text == text and fact.source == self.source and not fact.retired:
                        yield fact


def _sentences(data: bytes, path: str) -> Iterator[str]:
    owners = ["other"] * (data.count(b"\n") + 1)
    try:
        editor = PageEditor(data, path, owners, 1)  # type: ignore[arg-type]
    except Malformed:
        return
    for unit in editor.units:
        yield from uncited_sentences(unit)


def _add_flag(draft: Draft, fact: Fact, why: str) -> Fact | None:
    """The fact with a flag; None if its line cannot have one."""
    path = fact.place.path
    now = knowledge_facts.find_fact(draft.read(path), path, fact.id)
    if now is None or now.flag:
        return None
    data = markdown_lines.insert_after(draft.read(path), now.place.end, [f"  - flag: {why}"])
    return knowledge_facts.replace_fact(draft, now, replace(now, flag=why), [data])


# -- refresh with a model ----------------------------------------------------------------------------------
# The model reads the page and the evidence, and edits a copy with tools. Each sentence cites its evidence by
# number and is checked against it. An unsupported sentence is refused with the reason, and left out if the
# model does not correct it.


_REMINDER = f"Nothing was changed: you called no tool. Use the tools, or {SAY_DONE}."
BOUNDS = Bounds(turns=16, calls=120)
LONGEST_ANSWER = 8_000
LONGEST_SENTENCE = 600


@dataclass(slots=True)
class PageDraft:
    """The result of a model's work: refused sentences with reasons, a person's paragraphs that are
    contradicted (with the numbers of the evidence), and its usage."""

    refused: list[str] = field(default_factory=list)
    contradicted: list[tuple[BodyUnit, tuple[int, ...]]] = field(default_factory=list)
    usage: TokenUsage = field(default_factory=TokenUsage)


def write_with_model(
    model: Model, editor: PageEditor, question: str, evidence: Sequence[PageSource], clean: Clean
) -> PageDraft:
    """Have a model edit the page. Raises what the model raises; the page editor must then be discarded."""
    edits = _EditTools(editor, evidence)
    opening = user(opening_message(editor, question, evidence, clean), "Bring the page up to date.")
    outcome = run_tools(
        model, prompt("refresh"), [opening], edits.tools(), purpose="refresh", bounds=BOUNDS,
        max_tokens=LONGEST_ANSWER, reminder=_REMINDER,
    )  # fmt: skip
    edits.result.usage += outcome.usage
    if outcome.talked and not outcome.says_done:
        what = "the model only talked about the page; none of it was saved"
        raise ModelMisbehaved(what, hint="try again, or another UA_MEMORY_MODEL")
    outcome.require_done()
    return edits.finish()


class _EditTools:
    """The model's tools for one page."""

    def __init__(self, editor: PageEditor, evidence: Sequence[PageSource]) -> None:
        self.editor, self.result = editor, PageDraft()
        self.evidence = {each.number: each for each in evidence}
        self._refused: dict[tuple[str, ...], list[str]] = {}
        """The sentences refused in a call, until the model corrects them."""

    def tools(self) -> dict[str, Tool]:
        edit = self.editor
        calls: dict[str, Callable[[Mapping[str, Any]], str | None]] = {
            "append_paragraph": self._append,
            "replace_paragraph": self._replace,
            "remove_paragraph": lambda given: edit.remove(given["paragraph"]),
            "add_section": self._add,
            "rename_section": self._rename,
            "remove_section": lambda given: edit.remove_section(given["section"]),
            "contradict": self._contradict,
        }
        return {name: Tool(tool_task(name), schema(name), call) for name, call in calls.items()}

    def _append(self, given: Mapping[str, Any]) -> str:
        text, report, _ = self._check_sentences(given, "append", given["section"], given.get("after", ""))
        made = self.editor.append(given["section"], text, given.get("after", ""))
        return f"{made.ref}{report}"

    def _replace(self, given: Mapping[str, Any]) -> str:
        text, report, _ = self._check_sentences(given, "replace", given["paragraph"])
        self.editor.replace(given["paragraph"], text)
        return f"done{report}"

    def _add(self, given: Mapping[str, Any]) -> str:
        self._check_title(given["title"])
        return self.editor.add_section(given["title"]).ref

    def _rename(self, given: Mapping[str, Any]) -> None:
        self._check_title(given["title"])
        self.editor.rename(given["section"], given["title"])

    def _contradict(self, given: Mapping[str, Any]) -> str:
        text, report, cited = self._check_sentences(given, "contradict", given["paragraph"])
        self.editor.contradict(given["paragraph"], text)
        unit = next(unit for unit in self.editor.units if unit.ref == given["paragraph"].strip())
        self.result.contradicted.append((unit, cited))
        return f"done{report}"

    # -- checks ------------------------------------------------------------------------------------------

    def _check_sentences(self, given: Mapping[str, Any], *what: str) -> tuple[str, str, tuple[int, ...]]:
        """The paragraph, a report for the model, and the numbers it cites. ToolError for unsupported
        sentences; the second time they are left out if others are supported."""
        good: list[str] = []
        bad: list[str] = []
        cited: list[int] = []
        for each in given["sentences"]:
            wrong = self._why_unsupported(each["text"], each["evidence"])
            if wrong:
                bad.append(f"{each['text'][:200]} ({wrong})")
                continue
            numbers = list(dict.fromkeys(each["evidence"]))
            good.append(" ".join([escape_line(each["text"]), "".join(map(placeholder, numbers))]))
            cited += numbers
        again = what in self._refused
        if bad and not (good and again):
            self._refused[what] = bad
            raise ToolError(f"nothing was changed; say only what the evidence says: {'; '.join(bad)}")
        if not good:
            raise ToolError("there is no sentence; nothing was changed")
        self._refused.pop(what, None)
        self.result.refused += bad
        report = f"; left out: {'; '.join(bad)}" if bad else ""
        return " ".join(good), report, tuple(dict.fromkeys(cited))

    def _why_unsupported(self, text: str, numbers: Sequence[int]) -> str:
        if not any(map(str.isalnum, text)) or len(text) > LONGEST_SENTENCE:
            return f"a sentence has at most {LONGEST_SENTENCE} characters, and at least a word"
        if "[[" in text or "]]" in text:
            return "no links inside a sentence: give the numbers of its evidence"
        if not numbers:
            return "it names no evidence"
        unknown = [str(number) for number in numbers if number not in self.evidence]
        if unknown:
            return f"there is no evidence {', '.join(unknown)}"
        cited = [self.evidence[number] for number in numbers]
        if missing := unsupported_claims(text, cited):
            return f"its evidence has no {', '.join(missing)}"
        words = [each.words for each in cited]
        if not is_supported(text, words):
            return "its evidence has hardly a word of it"
        why = contradiction(text, words)
        return f"its evidence does not say so: {why}" if why else ""

    def _check_title(self, title: str) -> None:
        # The first letter of a title is a capital, which does not make a name of its first word.
        plainly = re.sub(r"^\s*[A-Z](?=[a-z])", lambda match: match[0].lower(), title)
        missing = unsupported_claims(plainly, list(self.evidence.values()))
        if missing:
            raise ToolError(f"the evidence has no {', '.join(missing)}; nothing was changed")

    def finish(self) -> PageDraft:
        """The result, with the sentences that were refused and never corrected."""
        for bad in self._refused.values():
            self.result.refused += [text for text in bad if text not in self.result.refused]
        return self.result


# -- refresh without a model -------------------------------------------------------------------------------
# Such a page lists the best observations and facts, each as a cited sentence. On all pages sentences are
# removed whose evidence is gone or no longer supports them.


OBSERVATIONS_TITLE, FACTS_TITLE = "What has shown", "What was said"
"""The sections of a page that was made without a model."""
_OPEN_TASK = re.compile(r"\s*\[ \]\s")
ENOUGH_MATCHES, FEW_MATCHES = 8, 3
"""If so many pieces have two words of the question, or a name in it, those with less are left out. If fewer
than the second number have any word of it, the answers are worded differently."""
CLOSE_SCORE, REWORDED_SCORE = 0.85, 0.6
"""A piece without a word of the question is listed if its score is at least this part of the best; the second
where the answers are worded differently."""


def list_evidence(editor: PageEditor, evidence: Sequence[PageSource], question: str, rebuild: bool) -> int:
    """Add evidence that answers the question and is not on the page yet; returns how many facts did not fit.

    On a page that is made from scratch facts are ordered by day. Later only new ones are added, at the end of
    their list, and what a person removed stays out.
    """
    _update_listed_facts(editor, evidence)
    there = {block for unit in editor.units for sentence in unit.sentences for block in sentence.ids}
    there |= {each.record.ref or "" for each in evidence if each.number in editor.cited_numbers()}
    listed = [each for each in evidence if each.record.ref and each.record.ref in there]
    near = _answering([each for each in evidence if each.recalled], question)
    wanted = [each for each in near if each.record.ref not in there]
    if not rebuild:
        wanted = [each for each in wanted if each.news in ("new", "edited")]
    wanted = _without_duplicates(wanted, listed)
    chosen = wanted[: _fitting(editor, wanted)]
    left = len(wanted) - len(chosen)
    observed = [each for each in chosen if isinstance(each.record, Observation)]
    said = sorted((e for e in chosen if e not in observed), key=_by_day)
    for title, group in ((OBSERVATIONS_TITLE, observed), (FACTS_TITLE, said)):
        for each in group:
            try:
                section = _section(editor, title)
                text = f"- {_sentence(each)}{placeholder(each.number)}"
                editor.append(section, text, _last_item(editor, section))
            except RefusedEdit:
                left += 1
    return left


def _by_day(each: PageSource) -> tuple[str, str, int]:
    """Sort key of facts: by day, those without one last, then by place."""
    return each.day or "undated", each.record.place.path, each.record.place.line


def _answering(evidence: Sequence[PageSource], question: str) -> list[PageSource]:
    """The evidence that answers a question, best first: pieces with two words of it, else with a name in it,
    else with any word of it; and the pieces with the best scores."""
    asked, named = terms(question), terms(" ".join(entities(question)))
    words = [asked & terms(" ".join((each.text, *each.record.entities))) for each in evidence]
    telling: Sequence[bool] = ()
    for telling in ([len(w) > 1 for w in words], [bool(w & named) for w in words], list(map(bool, words))):
        if sum(telling) >= ENOUGH_MATCHES:
            break
    best = max((each.score for each in evidence), default=0.0)
    floor = best * (CLOSE_SCORE if sum(telling) >= FEW_MATCHES else REWORDED_SCORE)
    ranked = zip(evidence, telling, strict=True)
    return [e for n, (e, tells) in enumerate(ranked) if tells or e.score >= floor or n < FEW_MATCHES]


def _without_duplicates(wanted: Sequence[PageSource], listed: Sequence[PageSource]) -> list[PageSource]:
    """The newest of each group of near-duplicates, without facts that an observation on the page says or
    cites."""
    beliefs = [e.record for e in (*wanted, *listed) if isinstance(e.record, Observation)]
    proved = {proof.ref for belief in beliefs for proof in belief.proofs}
    listed_statements = [ComparedStatement(e.text, "") for e in listed]
    listed_statements += [ComparedStatement(e.text, "") for e in wanted if isinstance(e.record, Observation)]
    chosen: list[PageSource] = []
    for each in wanted:
        if isinstance(each.record, Observation):
            chosen.append(each)
            continue
        own = ComparedStatement(each.text, "")
        if each.record.ref in proved or any(says_the_same(own, one) for one in listed_statements):
            continue
        others = (ComparedStatement(one.text, "") for one in chosen)
        twin = next((n for n, one in enumerate(others) if says_the_same(own, one)), None)
        if twin is None:
            chosen.append(each)
        elif each.day and _by_day(each) > _by_day(chosen[twin]):
            chosen[twin] = each
    return chosen


def _update_listed_facts(editor: PageEditor, evidence: Sequence[PageSource]) -> None:
    """Update items of ours that list one fact each. A model's sentence about an edited fact is removed:
    without a model it cannot be checked, and the fact itself is listed."""
    living = {each.record.ref or "": each for each in evidence}
    edited = {each.record.ref or "" for each in evidence if each.news == "edited"}
    for unit in [unit for unit in editor.units if unit.owner == "ours" and not unit.is_heading]:
        said = unit.sentences
        if unit.shape is BlockShape.ITEM and len(said) == 1:
            each = living.get(said[0].ids[0])
            if each and said[0].text != _sentence(each).strip():
                editor.replace(unit.ref, f"- {_sentence(each)}{placeholder(each.number)}")
            continue
        kept = [one.source for one in said if edited.isdisjoint(one.ids)]
        if not kept and said:
            editor.remove(unit.ref)
        elif len(kept) < len(said):
            editor.replace(unit.ref, _unit_text(unit, kept))


def _fitting(editor: PageEditor, wanted: Sequence[PageSource]) -> int:
    """How many pieces, best first, fit on the page."""
    room = editor.limit - editor.size() - 30
    for number, each in enumerate(wanted):
        room -= text_tokens.count(f"- {_sentence(each)}[[2026-11-21#^k7m2q9x4tb]]\n")
        if room < 0:
            return number
    return len(wanted)


def _section(editor: PageEditor, title: str) -> str:
    found = next((unit for unit in editor.units if unit.is_heading and unit.title == title), None)
    return (found or editor.add_section(title)).ref


def _last_item(editor: PageEditor, section: str) -> str:
    """The last item of ours in a section, '' if there is none."""
    under = next(units for heading, units in editor.sections() if heading and heading.ref == section)
    return next((u.ref for u in reversed(under) if u.owner == "ours" and u.shape is BlockShape.ITEM), "")


def _sentence(each: PageSource) -> str:
    """A fact as a sentence without list marks, with its day if that is not its log's."""
    day = getattr(each.record, "when", None)
    when = f"{day}: " if day and day != markdown_lines.day_of(each.record.place.path) else ""
    todo = "To do: " if _OPEN_TASK.match(each.text) else ""
    return f"{escape_line(when + todo + as_sentence(each.text))} "


def remove_unsupported(editor: PageEditor, evidence: Sequence[PageSource]) -> list[str]:
    """Remove sentences whose evidence is gone or no longer supports them, and empty paragraphs. Returns the
    removed sentences with reasons."""
    living = {each.record.ref or "": each for each in evidence}
    dropped: list[str] = []
    for unit in [unit for unit in editor.units if unit.owner == "ours" and not unit.is_heading]:
        if any(ord(char) in (0xE000, 0xE001) for char in unit.text):
            continue  # written in this refresh, and checked then
        kept = [said for sentence in unit.sentences if (said := _supported_source(sentence, living, dropped))]
        if unit.uncited_text:
            dropped.append(f"{unit.uncited_text} (it cites nothing)")
        if not kept:
            editor.remove(unit.ref)
        elif kept != [sentence.source for sentence in unit.sentences] or unit.uncited_text:
            editor.replace(unit.ref, _unit_text(unit, kept))
    return dropped


def _supported_source(sentence: CitedSentence, living: Mapping[str, PageSource], dropped: list[str]) -> str:
    """A sentence without links to missing evidence; '' if it has no support."""
    cited = [living[block] for block in sentence.ids if block in living]
    if not cited:
        dropped.append(f"{sentence.text} (what it rests on is gone)")
        return ""
    if missing := unsupported_claims(sentence.text, cited):
        dropped.append(f"{sentence.text} (its evidence has no {', '.join(missing)} now)")
        return ""
    source = sentence.source
    for link in reversed(list(fields.citations(source))):
        if link.ref not in living:
            source = source[: link.start].rstrip() + source[link.end :]
    return source


def _unit_text(unit: BodyUnit, kept: Sequence[str]) -> str:
    text = " ".join(kept)
    if unit.is_callout:
        return f"{CALLOUT}\n> {text}"
    return f"- {text}" if unit.shape is BlockShape.ITEM else text


# -- refresh -----------------------------------------------------------------------------------------------
# A page is updated in one commit, or not at all. What persons wrote stays, and becomes a fact. The model
# works on a copy without a lock; it is written only if the page has not changed meanwhile.


SEEN_NAMES = 200
"""Most names in the `Seen:` trailers."""
NEW_ID = "(new)"
"""A dry run's placeholder for a new id."""

OnEstimate = Callable[[Estimate], None]


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """What a refresh did to a page. `by` is the model's name, '' without one; `why` it was done; `diff` the
    changes in all files; `learnt` facts from a person's text, `flagged` those that the page contradicts;
    `refused` what a model proposed without support; `left_out` how many facts did not fit."""

    page: Page
    by: str
    why: StaleReasons
    full: bool = False
    diff: str = ""
    learnt: tuple[Fact, ...] = ()
    flagged: tuple[Fact, ...] = ()
    refused: tuple[str, ...] = ()
    left_out: int = 0
    revision: str | None = None
    dry_run: bool = False
    notes: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)
    usage: TokenUsage = field(default_factory=TokenUsage)


@dataclass(slots=True)
class PageState:
    """A page and its evidence before a refresh."""

    page: Page
    data: bytes
    editor: PageEditor
    last: LastRefresh | None
    evidence: list[PageSource]
    passed: Sequence[Fact | Observation]
    edits: PageEdits
    why_stale: StaleReasons


class Refresher:
    """Refreshes pages of one bank."""

    def __init__(
        self, store: Store, facts: Facts, search: Callable[..., SearchResult], update: Callable[[], object],
        *, door: str, model: Model | None = None, at: ModelOrEndpoint = None,
    ) -> None:  # fmt: skip
        self.store, self.facts, self._search, self._update = store, facts, search, update
        self.door, self.model, self.at = door, model, at or model
        """`at`: the model or its endpoint, by which prices are estimated."""

    def recall(self, question: str) -> Recalled:
        """The facts and observations for a question, and the notes of the search."""
        wanted = Filters(kinds=KINDS, retired=False)
        found = self._search(question, limit=HITS_LOOKED_AT, filters=wanted)
        if found.stale:  # the index was not up to date, so evidence may be missing
            self._update()
            found = self._search(question, limit=HITS_LOOKED_AT, filters=wanted)
        return [hit for hit in found.hits if hit.match >= LEAST_PASSED_SCORE], found.notes

    def why_stale(self, page: Page) -> StaleReasons:
        """Whether a page is out of date, and why. A page without text is not searched for."""
        if not page.body and last_refresh(self.store, page) is None:
            return StaleReasons(never=True)
        try:
            return self.state(page).why_stale
        except Malformed as error:
            return StaleReasons(broken=str(error))

    def state(self, page: Page) -> PageState:
        """The page and its evidence. Reads only."""
        path = page.place.path
        data = self.store.read(path)
        editor = PageEditor(data, path, owners(self.store, path, data), pages.max_tokens(data, path))
        last = last_refresh(self.store, page)
        cited = [id for unit in editor.units if unit.owner == "ours" for s in unit.sentences for id in s.ids]
        hits, notes = self.recall(page.source_query)
        evidence, passed = self._evidence(page, hits, cited)
        edits = PageEdits(self.store, page, editor, last)
        why = staleness_of(page, last, evidence, cited, self._alive, len(edits.words))
        stale = replace(why, notes=tuple(notes))
        news = _news(stale, last, cited)
        evidence = [replace(each, news=news.get(each.name, "")) for each in evidence]
        return PageState(page, data, editor, last, evidence, passed, edits, stale)

    def refresh(
        self, page: Page, *, full: bool = False, dry_run: bool = False, tell: OnEstimate | None = None
    ) -> RefreshResult:
        """Bring a page up to date; if nothing has changed, nothing is sent or written.

        `full` makes it from scratch, and so does a new question. `tell` is called with the price before a
        model is asked. ChangedOnDisk if the page was saved meanwhile; Malformed if it, or a fact that it
        cites, cannot be written; else what the model raises. Nothing is changed then.
        """
        path = page.place.path
        if not dry_run:
            self.store.adopt([path])  # an old buffer is merged before the page is read
        state = self.state(pages.parse_record(Page, self.store.accepted_bytes(path), path))
        has_draft = state.why_stale.draft and self.model is not None
        if not (state.why_stale or full or has_draft):
            return RefreshResult(state.page, "", state.why_stale, notes=state.why_stale.notes)
        rebuild = full or state.why_stale.question or state.why_stale.never or has_draft
        if rebuild:
            state.editor.clear()
        written, left_out = self._write(state, rebuild, tell)
        dropped = remove_unsupported(state.editor, state.evidence)
        state.editor.remove_empty_headings()
        written.refused += [text for text in dropped if self.model]
        done = self._commit(state, written, rebuild, dry_run)
        return replace(
            done, full=rebuild, refused=tuple(written.refused), left_out=left_out, usage=written.usage,
            notes=(*done.why.notes, *done.notes),
        )  # fmt: skip

    def _write(self, state: PageState, rebuild: bool, tell: OnEstimate | None) -> tuple[PageDraft, int]:
        """Edit the page with the model, or without one by listing the evidence."""
        if self.model is None:
            return PageDraft(), list_evidence(state.editor, state.evidence, state.page.source_query, rebuild)
        if not state.evidence:
            return PageDraft(), 0  # only sentences without evidence are removed
        asked = (state.editor, state.page.source_query, state.evidence, self.store.redacted)
        if tell:
            tell(estimate(self.at or self.model, *asked))
        written = write_with_model(self.model, *asked)
        if rebuild and not any(unit.owner == "ours" and not unit.is_heading for unit in state.editor.units):
            raise ModelMisbehaved(
                "the model wrote nothing for the page; it was left as it is", where=state.page.place.path,
                hint="try again, or another UA_MEMORY_MODEL",
            )  # fmt: skip
        return written, 0

    # -- evidence ----------------------------------------------------------------------------------------

    def _evidence(
        self, page: Page, hits: Sequence[Any], cited: Sequence[str]
    ) -> tuple[list[PageSource], Records]:
        records, passed = statements_of_hits(self.store, hits, f"[[{pages.stem(page)}]]")
        known = {record.ref for record, _ in records}
        more = [find_living(self.facts.get, one) for one in dict.fromkeys(cited) if one not in known]
        whole = [(record, True, score) for record, score in records]
        whole += [(record, False, 0.0) for record in more if record]
        evidence = [
            PageSource(number, record, is_recalled, self.store.redacted, score=score)
            for number, (record, is_recalled, score) in enumerate(whole, 1)
        ]
        return evidence, passed

    def _alive(self, name: str) -> bool:
        """Whether the statement `^id`, or the line `path#texthash`, still exists."""
        if name.startswith("^"):
            return find_living(self.facts.get, name[1:]) is not None
        path, _, said = name.rpartition("#")
        files = statements.read_files(self.store, [path])
        facts = (fact for _, data in files for fact in document.parse(data, path).of(Fact))
        return any(document.texthash(fact.text) == said and not fact.retired for fact in facts)

    # -- writing -----------------------------------------------------------------------------------------

    @property
    def _by(self) -> str:
        return self.model.name if self.model else ""

    def _commit(self, state: PageState, written: PageDraft, rebuild: bool, trial: bool) -> RefreshResult:
        path = state.page.place.path
        with self.store.revision("refresh", door=self.door) as draft:
            draft.trial = trial
            if draft.read(path) != state.data and not trial:
                raise ChangedOnDisk(
                    "the page was changed in the meantime; nothing was written", where=path,
                    hint=f"ua-memory pages refresh {pages.stem(state.page)}",
                )  # fmt: skip
            used = state.editor.cited_numbers()
            links = {one.number: evidence_link(draft, one) for one in state.evidence if one.number in used}
            new = state.editor.data(links)
            if new != state.data:
                _check_same_header(state, new)
                draft.write(path, new, removes=[state.page])
            learnt = state.edits.write_facts(draft)
            flagged = state.edits.flag(draft, _contradictions(written, links), self.facts.equal)
            self._describe(draft, state, rebuild, links, learnt)
        result, diff = draft.result, draft.diff(path)
        written_page = next(iter(document.parse(draft.read(path), path).of(Page)), state.page)
        done = RefreshResult(
            written_page, self._by, state.why_stale, diff=diff, learnt=learnt,
            flagged=flagged, revision=result.revision, notes=result.notes, redacted=result.redacted,
        )  # fmt: skip
        return _with_placeholder_ids(done, state, links) if trial else done

    def _describe(
        self, draft: Draft, state: PageState, rebuild: bool, links: Mapping[int, str], learnt: Sequence[Fact]
    ) -> None:
        """Write the commit's subject and trailers: page, recipe, model, and the evidence seen."""
        named = {number: next(fields.citations(link)).ref for number, link in links.items()}
        seen = {}
        for each in state.evidence:
            block = named.get(each.number) or each.record.ref
            seen[f"^{block}" if block else each.name] = digest(each.record)
        seen |= {f"^{fact.id}": digest(fact) for fact in learnt}
        if state.last and not rebuild:  # seen before and not found now: not new if it is found later
            before = {n: said for n, said in state.last.seen.items() if n not in state.why_stale.gone}
            seen |= {name: said for name, said in before.items() if name not in seen}
        passed = {statements.name_of(record): digest(record) for record in state.passed}
        kept = dict(list(seen.items())[:SEEN_NAMES])
        before_by = "" if rebuild or not state.last else state.last.by
        by = self._by or (before_by if before_by not in ("", NO_MODEL) else NO_MODEL)
        name = pages.stem(state.page)
        draft.trailers |= {
            "Page": [name], "Recipe": [pages.recipe(state.page)], "By": [by],
            "Seen": seen_lines(kept),
            "Passed": seen_lines({n: said for n, said in passed.items() if n not in kept}),
        }  # fmt: skip
        draft.facts = [f"^{fact.id}" for fact in learnt]
        scratch = " from scratch" if rebuild else ""
        draft.subject = f"refresh: {name}{scratch} ({state.why_stale or 'asked for'})"
        draft.even_if_empty = True  # so that the same evidence is not considered again


def _contradictions(written: PageDraft, links: Mapping[int, str]) -> list[tuple[Any, str]]:
    """Each contradicted paragraph of a person with the id of what contradicts it."""
    said = ((unit, links.get(numbers[0])) for unit, numbers in written.contradicted)
    return [(unit, next(fields.citations(link)).ref) for unit, link in said if link]


def _with_placeholder_ids(done: RefreshResult, state: PageState, links: Mapping[int, str]) -> RefreshResult:
    """A dry run's result, with `NEW_ID` in place of new ids."""
    fresh = [fact.id for fact in done.learnt]
    given = (links[each.number] for each in state.evidence if each.number in links and not each.record.id)
    fresh += [next(fields.citations(link)).id for link in given]

    def shown(text: str) -> str:
        for block in fresh:
            text = text.replace(f"^{block}", f"^{NEW_ID}")
        return text

    learnt = tuple(Fact(fact.text, origin="person") for fact in done.learnt)
    flagged = tuple(replace(fact, flag=shown(fact.flag or "")) for fact in done.flagged)
    return replace(done, diff=shown(done.diff), learnt=learnt, flagged=flagged, dry_run=True)


def _news(stale: StaleReasons, last: LastRefresh | None, cited: Sequence[str]) -> dict[str, str]:
    """What is to be said of each piece of evidence since the last refresh. What was seen and is not cited was
    left out, by the model or a person."""
    if last is None or stale.question:
        return {}
    left = {name: "left out before" for name in last.seen if name.removeprefix("^") not in cited}
    return left | {name: word for word in ("new", "edited") for name in getattr(stale, word)}


def _check_same_header(state: PageState, new: bytes) -> None:
    path = state.page.place.path
    before, after = (document.parse(data, path) for data in (state.data, new))
    if before.front != after.front or before.front_end != after.front_end:
        raise Malformed("the page's header would change", where=path, hint="report this as a bug")


# -- proposals for mental models ---------------------------------------------------------------------------
# A diff for the owner to read: mental models are never changed automatically.


QUERY_LENGTH = 600
"""Characters of a mental model that are the query."""
PROPOSED_FACTS = 10
"""Most facts that are proposed without a model."""
NO_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class Proposal:
    """A diff of a mental model that is not applied; `evidence` is the number of facts it was compared
    with."""

    model: MentalModel
    by: str
    diff: str
    evidence: int
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    usage: TokenUsage = field(default_factory=TokenUsage)


def propose(refresher: Refresher, model: MentalModel) -> Proposal:
    """Edit a copy of a mental model, and return the diff. Raises what the model raises."""
    path = model.place.path
    data = refresher.store.read(path)
    editor = PageEditor(data, path, ["ours"] * (data.count(b"\n") + 1), NO_LIMIT)
    question = readable(f"{model.name}\n{model.body}")[:QUERY_LENGTH]
    hits, notes = refresher.recall(question)
    found, _ = statements_of_hits(refresher.store, hits, "")
    evidence = [
        PageSource(n, record, True, refresher.store.redacted) for n, (record, _) in enumerate(found, 1)
    ]
    written = PageDraft()
    if refresher.model is None:
        list_evidence(editor, evidence[:PROPOSED_FACTS], question, True)
    elif evidence:
        written = write_with_model(refresher.model, editor, model.name, evidence, refresher.store.redacted)
    named = refresher.store.link_names.renew()
    links = {e.number: fields.link_to(named(e.record.place.path), e.record.id or NEW_ID) for e in evidence}
    new = editor.data(links)
    by = refresher.model.name if refresher.model else ""
    return Proposal(
        model, by, unified_file_diff(path, data, new), len(evidence), tuple(written.refused), tuple(notes),
        written.usage,
    )  # fmt: skip


# -- pages and mental models of a bank -------------------------------------------------------------------


_FATAL_ERRORS = (ModelUnavailable, KeyRejected, RequestRejected, BudgetSpent)
"""Errors that every other page would have, too."""


class _RefreshedFiles(PageFiles[P]):
    """The knowledge pages or mental models of one bank; `update` brings its index up to date."""

    def __init__(
        self, store: Store, door: str, models: ModelAccess, facts: Callable[[], Facts],
        search: Callable[..., SearchResult], update: Callable[[], object],
    ) -> None:  # fmt: skip
        super().__init__(store, door)
        self._models, self._facts, self._search, self._update_index = models, facts, search, update

    def _refresher(self, model: Model | None, at: ModelOrEndpoint) -> Refresher:
        memory = (self._store, self._facts(), self._search, self._update_index)
        return Refresher(*memory, door=self._door, model=model, at=at)


@checked
class Pages(_RefreshedFiles[Page]):
    """The knowledge pages of one bank."""

    kind, verb, word = Page, "page", "page"

    def create(
        self, id: str, name: str, source_query: str, tags: Sequence[str] = (), *, by_person: bool = False
    ) -> PageChange:
        """Create a page that tracks a question; `refresh` writes its body. Usage."""
        name, query = pages.check_line(name, "name"), pages.check_line(source_query, "source_query")
        made = Page(id, name, query, pages.check_tags(tags))
        return self._create(made, by_person)

    def update(
        self, id: str, *, name: str | None = None, source_query: str | None = None,
        tags: Sequence[str] | None = None, by_person: bool = False,
    ) -> PageChange:  # fmt: skip
        """Change a page's name, question or tags, and only their lines; its body stays until the next
        refresh. NotFound, Usage; Malformed for a header that cannot be changed safely."""
        keys = {"name": name, "source_query": source_query}
        changes: dict[str, Any] = {k: pages.check_line(new, k) for k, new in keys.items() if new is not None}
        changes |= {"tags": [*pages.check_tags(tags)] or None} if tags is not None else {}
        return self._update(id, changes, None, by_person)

    def staleness(self, id: str) -> StaleReasons:
        """Whether a page is out of date, and why. Reads only. NotFound."""
        return self._refresher(None, None).why_stale(self.get(id))

    def refresh(
        self, id: str, *, full: bool = False, dry_run: bool = False, model: ModelOrEndpoint = None,
        tell: OnEstimate | None = None,
    ) -> RefreshResult:  # fmt: skip
        """Bring a page up to date, in one commit; if nothing has changed, nothing is sent or written.

        Without a `model` it lists the facts in their own words. `full` creates it from scratch; `dry_run`
        writes nothing, but asks the model; `tell` is called with the price first. Raises NotFound,
        ChangedOnDisk, Malformed, and what the model raises; the page is then unchanged.
        """
        page = self.get(id)
        with self._models.open(model) as opened:
            return self._refresher(opened, model).refresh(page, full=full, dry_run=dry_run, tell=tell)

    def refresh_stale(
        self, model: ModelOrEndpoint = None, *, every: bool = False, full: bool = False,
        dry_run: bool = False, tell: OnEstimate | None = None,
        done: Callable[[RefreshResult], None] | None = None,
    ) -> Sequence[RefreshResult]:  # fmt: skip
        """Refresh the pages that are out of date, each in its own commit; with `every` the result includes
        the others. `done` is called with each.

        A page that fails does not stop the others, unless they would fail too; the first error is raised at
        the end.
        """
        all_done: list[RefreshResult] = []
        failed: UaMemoryError | None = None
        jobs = Jobs(self._store)
        with self._models.open(model) as opened, jobs.record_run("refresh", trial=dry_run) as note:
            refresher = self._refresher(opened, model)
            for page in self.list():
                try:
                    one = refresher.refresh(page, full=full, dry_run=dry_run, tell=tell)
                except _FATAL_ERRORS:
                    raise
                except UaMemoryError as error:
                    failed = failed or error
                    continue
                if every or one.why or one.revision or one.diff:
                    all_done.append(one)
                    if done:
                        done(one)
            if failed:
                raise failed
            note.result = f"{counted(sum(bool(one.revision) for one in all_done), 'page')} refreshed"
        return all_done


@checked
class MentalModels(_RefreshedFiles[MentalModel]):
    """The mental models of one bank: written by a person; memory only proposes changes."""

    kind, verb, word = MentalModel, "model", "mental model"

    def create(
        self, id: str, name: str, body: str, tags: Sequence[str] = (), *, by_person: bool = False
    ) -> PageChange:
        """Create a mental model. Usage unless `by_person`."""
        made = MentalModel(id, pages.check_line(name, "name"), pages.check_tags(tags), pages.check_body(body))
        return self._create(made, pages.require_person(by_person))

    def update(
        self, id: str, *, name: str | None = None, body: str | None = None, by_person: bool = False
    ) -> PageChange:
        """Change a mental model. NotFound, Usage."""
        changes = {} if name is None else {"name": pages.check_line(name, "name")}
        text = None if body is None else pages.check_body(body)
        pages.require_person(by_person)
        return self._update(id, changes, text, by_person)

    def propose(self, id: str, *, model: ModelOrEndpoint = None) -> Proposal:
        """The changes that memory would make to a mental model. Nothing is written. NotFound; the model's
        errors."""
        one = self.get(id)
        with self._models.open(model) as opened:
            return propose(self._refresher(opened, model), one)
