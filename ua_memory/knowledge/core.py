"""Core memory: the blocks of MEMORY.md, their token budgets, and checks of what a conversation may add,
and proposals that a person decides on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import ndiff
from functools import lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from ua_memory.clients.transcripts import TranscriptWords
from ua_memory.clients.turns import Turn
from ua_memory.discovery import CORE_NAMES
from ua_memory.errors import (
    Busy,
    ChangedOnDisk,
    Malformed,
    NotFound,
    TooLarge,
    Usage,
    checked,
    writing,
)
from ua_memory.git.repository import Revision
from ua_memory.knowledge import trust
from ua_memory.knowledge.statements import texts
from ua_memory.markdown import document, printer
from ua_memory.markdown import lines as markdown_lines
from ua_memory.markdown.blocks import BlockShape, scan
from ua_memory.markdown.lines import day_of, heading_level, readable
from ua_memory.markdown.printer import strip_blank
from ua_memory.paths import make_private
from ua_memory.records import CoreBlock, Fact
from ua_memory.store import pending, swap
from ua_memory.store.draft import Draft, Result
from ua_memory.store.store import Store
from ua_memory.text import grounding, tokens, wording
from ua_memory.text.wording import CORE_INTRO, RULES_BLOCK, main_clauses, stated_for_good

# -- blocks ------------------------------------------------------------------------------------------------
# The blocks of MEMORY.md, which are shown at the start of every session, and their budgets in tokens.


TITLE = b"# Memory\n"
LONGEST_NAME = 200
WARN_AT = 0.8
"""Share of a budget from which a warning is given."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens used by one block, or by all of MEMORY.md (`name` empty), and the limit."""

    name: str
    used: int
    limit: int

    @property
    def warning(self) -> str:
        """A warning from 80 % of the limit, else ''."""
        what = f"core block {self.name!r}" if self.name else "MEMORY.md"
        if self.used > self.limit:
            return f"{what} has {self.used} tokens, over its budget of {self.limit}"
        if self.used >= WARN_AT * self.limit:
            return f"{what} has {self.used} of {self.limit} tokens: room for {self.limit - self.used} more"
        return ""


@dataclass(frozen=True, slots=True)
class BlockChange:
    """The result of a replace: the block before (None if it is new) and after.

    `repeated`: the request id was used before and nothing was written; `after` is the block as it is now.
    """

    before: CoreBlock | None
    after: CoreBlock
    result: Result
    warnings: tuple[str, ...] = ()
    repeated: bool = False


def core_path(store: Store) -> str:
    """`MEMORY.md`, or `memory.md` where only that exists."""
    names = {f.path for f in store.survey().files}
    return next((name for name in CORE_NAMES if name in names), CORE_NAMES[0])


def blocks(store: Store) -> list[CoreBlock]:
    """All blocks in file order; empty without a MEMORY.md."""
    path = core_path(store)
    return _parse_blocks(_read_core(store, path), path)


def put(store: Store, draft: Draft, name: str, value: str, *, expect: str | None = None) -> BlockChange:
    """Replace a block's value, or add the block, in an open revision. Raises what `CoreMemory.replace`
    raises, and leaves the draft unchanged then."""
    value = _check_value(value)
    new_block = _new_block(name)
    path = core_path(store)
    data, value = draft.read(path), strip_blank(draft.redact(value))
    before = find_block(_parse_blocks(data, path), new_block.name)
    now = before.value if before else ""
    if expect is not None and now != strip_blank(expect.replace("\r\n", "\n")):
        raise ChangedOnDisk("the block has changed", where=path, hint="ua-memory core get")
    new = _replace_value(data, path, before, replace(new_block, value=value))
    warnings = _check_block_budget(store, path, data, new, before, new_block.name)
    if not draft.by_person and draft.op != "import":
        trust.require_trusted(store, value, now)
    draft.write(path, new, removes=[before] if before else [])
    draft.subject = f"core: {'replace' if before else 'add'} {new_block.name}"
    after = find_block(_parse_blocks(draft.read(path), path), new_block.name) or new_block
    return BlockChange(before, after, draft.result, warnings)


def check_values(store: Store, values: Mapping[str, str]) -> None:
    """Check that values ({block name: value}) can be written together. Raises what `put` would
    raise."""
    path = core_path(store)
    data = _read_core(store, path)
    for name, value in values.items():
        block = replace(_new_block(name), value=strip_blank(_check_value(value)))
        before = find_block(_parse_blocks(data, path), block.name)
        new = _replace_value(data, path, before, block)
        _check_block_budget(store, path, data, new, before, block.name)
        trust.require_trusted(store, block.value, before.value if before else "")
        data = new


def check_budgets(store: Store, path: str, old: bytes, new: bytes) -> tuple[str, ...]:
    """Check the budgets of MEMORY.md after a change from `old` to `new`; returns warnings. TooLarge if a
    budget is exceeded, and by more than before."""
    warnings = dict[str, None]()
    for block in _parse_blocks(new, path):
        before = find_block(_parse_blocks(old, path), block.name)
        warnings.update(dict.fromkeys(_check_block_budget(store, path, old, new, before, block.name)))
    return tuple(warnings)


@checked
class CoreMemory:
    """Core memory of one bank; `door` names the caller."""

    def __init__(self, store: Store, door: str) -> None:
        self._store, self._door = store, door

    def list(self) -> Sequence[CoreBlock]:
        """The blocks of MEMORY.md, in file order."""
        return blocks(self._store)

    def get(self, name: str) -> CoreBlock:
        """One block by name, ignoring case and brackets. NotFound lists the names."""
        there, where = blocks(self._store), core_path(self._store)
        if (found := find_block(there, bare_name(name))) is None:
            known = ", ".join(b.name for b in there) or "none"
            what = f"no core block {name!r} (there are: {known})"
            raise NotFound(what, where=where, hint="ua-memory core list")
        return found

    def replace(
        self, name: str, value: str, *, expect: str | None = None, request: str | None = None,
        session: str | None = None, by_person: bool = False, trailers: Mapping[str, str] | None = None,
    ) -> BlockChange:  # fmt: skip
        """Replace one block's value, or add the block at the end of the file. The rest of the file is
        unchanged.

        Blank lines around the value are dropped. `[NAME]` makes a new block labelled. `trailers` are added to
        the commit. ChangedOnDisk if the value is not `expect`, the one that the caller read. TooLarge if a
        budget is exceeded, and by more than before. Usage for a value that would end the block or start
        another.
        """
        store = self._store
        with store.revision("core replace", door=self._door, request=request, session=session) as draft:
            if draft.already_done is None:
                draft.by_person = by_person
                draft.even_if_empty = request is not None
                done = put(store, draft, name, value, expect=expect)
                draft.trailers |= {key: [said] for key, said in (trailers or {}).items()}
        if draft.already_done is not None:
            return _repeated_replace(store, draft, _new_block(name))
        return replace(done, result=draft.result)

    def budgets(self) -> Sequence[Budget]:
        """Token counts and limits: MEMORY.md first, then its blocks."""
        path, config = core_path(self._store), self._store.config
        whole, each = _token_counts(_read_core(self._store, path), path)
        blocks = [Budget(name, used, config.core_block_tokens) for name, used in each]
        return [Budget("", whole, config.core_tokens), *blocks]


def _repeated_replace(store: Store, draft: Draft, asked: CoreBlock) -> BlockChange:
    done = draft.already_done
    if done and done.trailer("Memory-Op") != "core replace":
        raise Usage("this request id was already used for something else", where=done.subject)
    there = find_block(blocks(store), asked.name)  # None: undone or deleted since
    return BlockChange(there, there or asked, draft.result, repeated=True)


def _read_core(store: Store, path: str) -> bytes:
    try:
        return store.accepted_bytes(path)
    except NotFound:
        return b""


def _parse_blocks(data: bytes, path: str) -> list[CoreBlock]:
    return list(document.parse(data, path).of(CoreBlock))


def bare_name(name: str) -> str:
    name = name.strip().removeprefix("##").strip()
    return name[1:-1].strip() if name.startswith("[") and name.endswith("]") else name


def _new_block(name: str) -> CoreBlock:
    """An empty block of this name. Usage if it cannot be written as a heading."""
    bare = bare_name(name)
    made = CoreBlock(bare, "", labelled=name.strip().removeprefix("##").strip() != bare)
    try:
        shown = printer.show(made)
    except Malformed as error:
        raise Usage(f"{name!r} cannot be the name of a core block") from error
    if not bare or len(bare) > LONGEST_NAME or "\n" in shown:
        raise Usage(f"a core block needs a name of one line, at most {LONGEST_NAME} characters")
    return made


def _check_value(value: str) -> str:
    """Normalize a block's value. Usage if it would change how the rest of the file is parsed."""
    lines = strip_blank(readable(value.replace("\r\n", "\n"))).split("\n")
    for found in scan(lines):
        words = lines[found.start].strip()
        if found.shape is BlockShape.HEADING and heading_level(words) <= 2:
            raise Usage(f"the value has a heading ({words[:40]!r})", hint="use ### inside a block")
        if found.unclosed:
            raise Usage("the value has a code fence or comment that is not closed", hint="close it")
    return "\n".join(lines)


def find_block(there: Sequence[CoreBlock], name: str) -> CoreBlock | None:
    """The block of this name; an exact match is preferred to one in another letter case."""
    exact = [b for b in there if b.name == name]
    loose = [b for b in there if b.name.casefold() == name.casefold()]
    return next(iter(exact or loose), None)


def _replace_value(data: bytes, path: str, before: CoreBlock | None, block: CoreBlock) -> bytes:
    """The file's bytes with the block's new value. Malformed if any other block would change."""
    known = _parse_blocks(data, path)
    there = [(b.name, b.value) for b in known]
    at = [b.place for b in known].index(before.place) if before else len(known)
    here = [((before or block).name, block.value)]
    if before is None:
        new = document.append(data or TITLE, printer.show(block).split("\n"))
    elif before.top:
        here = here if any(map(str.isalnum, block.value)) else []  # it is not parsed as a block
        inner = printer.encode_core(block.value)
        new = markdown_lines.replace_lines(data, before.place, inner.split("\n") if inner else [])
    else:
        lines = document.parse(data, path).lines
        head, *body = lines[before.place.line - 1], *printer.show(block).split("\n")[1:]
        last = before.place.end
        gap = [""] if last < len(lines) and lines[last].strip() else []
        new = markdown_lines.replace_lines(data, before.place, [head, *body, *gap])
    wanted = [*there[:at], *here, *there[at + 1 :]]
    if [(b.name, b.value) for b in _parse_blocks(new, path)] != wanted:
        raise Malformed(
            "the block cannot be written so that all others stay as they are", where=path,
            hint="close what is open in it: a code fence, a comment",
        )  # fmt: skip
    return new


def _check_block_budget(
    store: Store, path: str, old: bytes, new: bytes, before: CoreBlock | None, name: str
) -> tuple[str, ...]:
    limits, after = store.config, find_block(_parse_blocks(new, path), name)
    block = Budget(name, tokens.count(after.value if after else ""), limits.core_block_tokens)
    now = [block, Budget("", _count_tokens(new), limits.core_tokens)]
    then = [tokens.count(before.value) if before else 0, _count_tokens(old)]
    for budget, was in zip(now, then, strict=True):
        if budget.used > budget.limit and budget.used > was:
            raise TooLarge(
                budget.warning,
                where=path,
                hint="shorten it, or move details to archival memory: ua-memory insert",
            )
    return tuple(budget.warning for budget in now if budget.warning)


@lru_cache(maxsize=4)  # the table of tokens takes a quarter of a second to load, 35 MB to keep
def _token_counts(data: bytes, path: str) -> tuple[int, Sequence[tuple[str, int]]]:
    """Tokens of the file, and of each of its blocks."""
    return _count_tokens(data), [(b.name, tokens.count(b.value)) for b in _parse_blocks(data, path)]


def _count_tokens(data: bytes) -> int:
    """Tokens of the file, without the introduction that every new file has."""
    lines = data.decode("utf-8", "replace").split("\n")
    return tokens.count("\n".join(line for line in lines if line.strip() != CORE_INTRO))


# -- grounding ---------------------------------------------------------------------------------------------
# A conversation may add to core memory only what the person said in it.
#
# Core memory is shown in every session, so an order injected by a page or a tool would be obeyed for ever.
# What only the assistant, a tool or a search said may become a fact with that origin. A sentence counts as
# the person's if the person used most of its words. Stems are compared: a translation is not recognised, and
# a "yes" to the assistant's words does not make them the person's.


_ORDERS = "always never must ignore instead without skip bypass disable force trust obey forbid allow permit"
ORDERS = grounding.tokenize(_ORDERS)
"""Words that turn a statement into an order or its opposite; the person must have said them."""
_SPEAKERS = frozenset({"user", "person", "assistant", "agent"})
_SHORT = re.compile(r"(\w{3,})\.[a-z]{2,3}")
_CAPITAL = re.compile(r"\b[A-Z]\w*")


def is_persons(turn: Turn) -> bool:
    """Whether a turn is in a person's own words, not a sub-agent's or a compaction's summary."""
    return turn.role == "person" and not turn.agent and not turn.summary


def find_ungrounded(value: str, kept: Sequence[str], said: Sequence[str], others: Sequence[str]) -> str:
    """The first sentence of `value` that the person did not say, with the reason, as a message for the model;
    '' if there is none.

    `kept` are the block's present texts, `said` the person's turns, `others` everything else that the model
    was shown.
    """
    ours = "\n".join((*kept, *said))
    was, here = grounding.words_only("\n".join(kept)), grounding.words_only(ours)
    words = grounding.tokenize(ours)
    plain, theirs = grounding.plain_text(ours), grounding.tokenize("\n".join(others)) - words
    for one in main_clauses(value):
        if grounding.occurs_in(grounding.words_only(one), was):
            continue
        if why := _ungrounded_reason(one, here, plain, words, theirs):
            return f"“{one.strip()[:80]}”: {why}"
    return ""


def _ungrounded_reason(one: str, here: str, plain: str, words: frozenset[str], theirs: frozenset[str]) -> str:
    units = grounding.tokenize(one) - _SPEAKERS
    if things := [each for each in grounding.distinctive_tokens(one) if not _is_named(plain, each)]:
        return f"no person said {', '.join(sorted(things))}"
    if orders := (units & ORDERS) - words:
        return f"no person said {', '.join(w for w in one.split() if grounding.tokenize(w) & orders)}"
    capitals = grounding.tokenize(" ".join(_CAPITAL.findall(one)))
    mine, strange = units & words, (units & theirs) - capitals
    if not units and not grounding.occurs_in(grounding.words_only(one), here):
        return "no person said it"
    if 2 * len(strange) > len(mine) or 2 * len(mine) < len(units):
        return "no person said so in such words"
    return ""


def _is_named(plain: str, thing: str) -> bool:
    """Whether a text names a thing; `fly.io` is also named by "Fly"."""
    short = _SHORT.fullmatch(thing)
    return grounding.has_token(plain, thing) or (short is not None and grounding.has_token(plain, short[1]))


# -- repeated tool output ----------------------------------------------------------------------------------
# Whether an agent's edit repeats what a tool printed in its session.
#
# A page that an agent reads may tell it what to write into core memory. What the person said, too, is
# allowed. Words are compared, not meanings: a paraphrase by the agent is not detected.


def find_repeated(value: str, kept: str, said: Iterable[str], outputs: Iterable[str]) -> str:
    """Find what `value` repeats from a tool's output and the person did not say: a sentence that shares a run
    of words with an output, or an address, path, file or flag; '' if nothing. `kept` is the block's old
    value."""
    persons = "\n".join((kept, *said))
    flat, plain = grounding.words_only(persons), grounding.plain_text(persons)
    runs = [(one, run) for one in main_clauses(value) for run in grounding.word_runs(one)]
    runs = [(one, run) for one, run in runs if run not in flat]
    things = [each for each in sorted(grounding.distinctive_tokens(value)) if not _is_named(plain, each)]
    for output in outputs if runs or things else ():
        theirs = grounding.words_only(output)
        if found := next((one for one, run in runs if run in theirs), ""):
            return found.strip()
        seen = grounding.plain_text(output) if things else ""
        if found := next((each for each in things if grounding.has_token(seen, each)), ""):
            return found
    return ""


# -- proposals ---------------------------------------------------------------------------------------------
# Rules that a person stated, and edits by agents that a person has to confirm.
#
# Rules are computed from the files and never stored. A person's decisions are trailers of commits. An agent's
# edit that waits for the person is one durable file in `pending/`.


ACCEPTED, REJECTED, SEEN = "Core-Accepted", "Core-Rejected", "Core-Seen"
"""Trailers: the ids of accepted and rejected proposals, and of agents' revisions that a person approved."""
BY_AGENT = "Core-By-Agent"
"""Trailer: the block that an agent changed without a check against a transcript."""
PREFIX = "core-"
MOST_WAITING = 50
"""Most edits that can wait, so that an agent in a loop does not fill the disk."""
NAMES = 8
"""Hexadecimal digits of the hashes in proposal ids."""

ProposalKind = Literal["statement", "waiting", "unseen"]


@dataclass(frozen=True, slots=True)
class CoreProposal:
    """One proposal. `accept` and `reject` take its `id`.

    A `statement` is a person's rule or preference; `text` would be added to `block`. A `waiting` edit was
    requested by an agent, an `unseen` one was already made by it: `text` is a diff of `block`, with added
    (`+ …`) and removed (`- …`) lines. `days` are the ISO days on which it was said or made.
    """

    id: str
    kind: ProposalKind
    text: str
    why: str
    block: str = RULES_BLOCK
    days: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    client: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True)
class DecidedProposals:
    """The accepted or rejected proposals, and the revision that records it."""

    proposals: tuple[CoreProposal, ...]
    result: Result
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitingEdit:
    """An agent's waiting edit. `before` is the block's value when it was requested, None for a new block."""

    section: str
    value: str
    before: str | None
    repeated: str
    client: str
    session: str
    at: str

    @property
    def id(self) -> str:
        named = f"{self.section}\0{self.value}".encode("utf-8", "surrogatepass")
        return f"c-{hashlib.sha256(named).hexdigest()[:NAMES]}"


@checked
class CoreProposals:
    """The proposals of one bank; `door` names who decides. `undo` undoes a revision by its id; `among` gives
    the paths of files that may have a person's preferences, None for all files."""

    def __init__(
        self, store: Store, door: str, undo: Callable[[str], Result],
        among: Callable[[], Collection[str] | None] = lambda: None,
    ) -> None:  # fmt: skip
        self._store, self._door, self._undo, self._among = store, door, undo, among

    def list(self) -> Sequence[CoreProposal]:
        """All undecided proposals: agents' edits first, then rules, newest first."""
        return [*self._waiting(), *self._unseen(), *self._statements()]

    def accept(
        self, ids: Sequence[str], *, block: str = RULES_BLOCK, by_person: bool = False
    ) -> DecidedProposals:
        """Accept proposals in one commit: add rules as lines of `block`, apply waiting edits, and mark unseen
        edits as seen. Usage unless `by_person`; NotFound, TooLarge; ChangedOnDisk if the block of a waiting
        edit has changed since."""
        chosen = self._chosen(ids, by_person)
        edits = {one.id: one for one in _waiting_edits(self._store)}
        warnings: list[str] = []
        with self._store.revision("core accept", door=self._door) as draft:
            draft.by_person = draft.even_if_empty = True
            for one in chosen:
                if one.kind == "statement":
                    done = self._add_line(draft, one, block)
                elif one.kind == "waiting":
                    edit = edits[one.id]
                    done = put(self._store, draft, edit.section, edit.value, expect=edit.before or "")
                else:
                    continue
                warnings += [each for each in done.warnings if each not in warnings]
            draft.subject = f"core: accept {wording.counted(len(chosen), 'proposal')}"
            draft.trailers |= _decision_trailers(chosen, ACCEPTED)
        self._drop(chosen)
        return DecidedProposals(tuple(chosen), draft.result, tuple(warnings))

    def reject(self, ids: Sequence[str], *, by_person: bool = False) -> DecidedProposals:
        """Reject proposals; they are not proposed again. An unseen edit is undone, in a commit of its own.
        Usage unless `by_person`; NotFound; Conflict if an edit cannot be undone."""
        chosen = self._chosen(ids, by_person)
        undone = [self._undo(one.id) for one in chosen if one.kind == "unseen"]
        rest = [one for one in chosen if one.kind != "unseen"]
        if not rest:
            return DecidedProposals(tuple(chosen), undone[-1])
        with self._store.revision("core reject", door=self._door) as draft:
            draft.by_person = draft.even_if_empty = True
            draft.subject = f"core: reject {wording.counted(len(rest), 'proposal')}"
            draft.trailers |= _decision_trailers(rest, REJECTED)
        self._drop(rest)
        return DecidedProposals(tuple(chosen), draft.result)

    def edit(
        self, section: str, value: str, words: TranscriptWords | None, *, client: str = "",
        session: str | None = None,
    ) -> BlockChange | CoreProposal:  # fmt: skip
        """Replace a block for an agent, after a check against the tool outputs of its session.

        An edit that repeats a tool's output and not the person's words is saved as a proposal. One that could
        not be checked in full, or empties the block, is made, and its commit has the trailer `BY_AGENT`.
        Raises what `CoreMemory.replace` raises, and Usage for an edit that the person rejected.
        """
        store, value = self._store, self._store.redacted(value)
        check_values(store, {section: value})
        there = find_block(blocks(store), section)
        before = there.value if there else None
        found = find_repeated(value, before or "", words.said, words.outputs) if words else ""
        if not found:
            checked = words is not None and words.complete and bool(value.strip())
            trailers = {} if checked else {BY_AGENT: " ".join(section.split())}
            memory = CoreMemory(store, self._door)
            return memory.replace(section, value, session=session, trailers=trailers)
        at = store.now().isoformat(timespec="minutes")
        made = WaitingEdit(section, value, before, store.redacted(found), client, session or "", at)
        if made.id in self._names(REJECTED):
            raise Usage("the person has rejected this edit", hint="leave it out, or ask the person")
        self._save(made)
        return self._shown(made)

    # -- rules -----------------------------------------------------------------------------------------

    def _statements(self) -> Iterator[CoreProposal]:
        """The rules and preferences that qualify as proposals (`_why`), newest first."""
        groups: dict[str, list[Fact]] = {}
        for path, data in texts(self._store, paths=self._among()):
            for fact in document.parse(data, path).of(Fact) if b"preference" in data else ():
                if _is_owners_rule(fact):
                    groups.setdefault(grounding.words_only(fact.text), []).append(fact)
        decided = self._names(ACCEPTED) | self._names(REJECTED) if groups else set()
        stands = grounding.words_only("\n".join(block.value for block in blocks(self._store)))
        found = []
        for words, facts in groups.items():
            if grounding.occurs_in(words, stands) or any(_trailer_name(fact) in decided for fact in facts):
                continue
            if why := self._why(facts):
                found.append(_rule_proposal(facts, why))
        yield from sorted(found, key=lambda one: (max(one.days, default=""), one.id), reverse=True)

    def _why(self, facts: Sequence[Fact]) -> str:
        """The reason to propose a statement, '' for none: it was repeated, or is marked as lasting."""
        days = _seen_days(facts)
        if len(days) > 1:
            return f"stated on {', '.join(days[-4:])}"
        sessions = {fact.heading.session for fact in facts if fact.heading.session}
        if len(sessions) > 1 or self._told_again(facts):
            return f"stated in two sessions on {days[0]}" if days else "stated in two sessions"
        said = (text for fact in facts for text in (fact.text, *(quote.text for quote in fact.quotes)))
        return "said with a word such as always, never or remember" if any(map(stated_for_good, said)) else ""

    def _told_again(self, facts: Sequence[Fact]) -> bool:
        """Whether more than one session stated it, by the `Session` trailers of the commits."""
        seen = {f"^{fact.id}" for fact in facts if fact.seen and fact.id}
        if not seen:
            return False
        log = self._store.history.with_trailer("Facts", "")
        changes = (one for one in log if any(seen & set(v.split()) for v in one.trailers["Facts"]))
        return len({one.trailer("Session") for one in changes} - {""}) > 1

    def _add_line(self, draft: Draft, one: CoreProposal, name: str) -> BlockChange:
        path = core_path(self._store)
        there = document.parse(draft.read(path), path).of(CoreBlock)
        known = find_block(there, name)
        line = f"- {' '.join(one.text.split())}"
        return put(self._store, draft, name, f"{known.value}\n{line}" if known and known.value else line)

    # -- waiting edits ---------------------------------------------------------------------------------

    def _waiting(self) -> Iterator[CoreProposal]:
        there = {block.name.casefold(): block.value for block in blocks(self._store)}
        for one in _waiting_edits(self._store):
            if there.get(one.section.casefold()) != one.value:  # else a killed process left the file behind
                yield self._shown(one)

    def _shown(self, one: WaitingEdit) -> CoreProposal:
        why = f"asked for by an agent; a tool printed it and no person said it: {one.repeated!r}"
        return CoreProposal(
            one.id, "waiting", _line_diff(one.before or "", one.value), why, one.section, (one.at[:10],),
            client=one.client, session=one.session,
        )  # fmt: skip

    def _save(self, made: WaitingEdit) -> None:
        """Save a waiting edit; it is on disk when this returns. CannotWrite; Busy if too many wait."""
        file = _edit_path(self._store, made.id)
        self._store.make_state()
        with self._store.locked(), writing(file):
            if not file.exists() and sum(1 for _ in _waiting_edits(self._store)) >= MOST_WAITING:
                what = f"{MOST_WAITING} edits of core memory wait for the person"
                raise Busy(what, hint="ua-memory core proposals")
            make_private(file.parent)
            data = json.dumps(asdict(made), ensure_ascii=False, indent=1).encode()
            swap.replace_file(file, data, file.with_suffix(pending.TEMP_SUFFIX))

    def _drop(self, decided: Iterable[CoreProposal]) -> None:
        for one in decided:
            if one.kind == "waiting":
                _edit_path(self._store, one.id).unlink(missing_ok=True)

    # -- unseen edits ----------------------------------------------------------------------------------

    def _unseen(self) -> Iterator[CoreProposal]:
        """Agents' edits that no person has seen and that still have an effect, newest first."""
        history = self._store.history
        made = history.with_trailer(BY_AGENT)
        settled = (history.undone_revisions() | self._names(SEEN)) if made else set()
        there = {block.name.casefold(): block.value for block in blocks(self._store)} if made else {}
        for one in made:
            name = one.trailer(BY_AGENT)
            if one.id in settled:
                continue
            before, after = self._value(one, name, "^"), self._value(one, name, "")
            if text := _remaining_diff(before, after, there.get(bare_name(name).casefold(), "")):
                yield CoreProposal(
                    one.id, "unseen", text, "written by an agent, not seen yet", name,
                    (one.when.date().isoformat(),), session=one.trailer("Session"),
                )  # fmt: skip

    def _value(self, revision: Revision, name: str, parent: str) -> str:
        path = core_path(self._store)
        data = self._store.history.read(f"{revision.id}{parent}", path) or b""
        found = find_block(document.parse(data, path).of(CoreBlock), bare_name(name))
        return found.value if found else ""

    # -- decisions -------------------------------------------------------------------------------------

    def _chosen(self, ids: Sequence[str], by_person: bool) -> Sequence[CoreProposal]:
        """The proposals with these ids, each once. Usage, NotFound."""
        if not by_person:
            raise Usage("only a person can change core memory", hint="run it at a terminal")
        if not ids:
            raise Usage("name the proposals", hint="ua-memory core proposals")
        known = self.list()
        chosen: dict[str, CoreProposal] = {}
        for named in ids:
            bare = named.removeprefix("^")
            fits = [one for one in known if one.id.removeprefix("^") == bare]
            if not fits and len(bare) >= 7:
                fits = [one for one in known if one.kind == "unseen" and one.id.startswith(bare)]
            if len(fits) != 1:
                raise NotFound("no such proposal", where=named, hint="ua-memory core proposals")
            chosen[fits[0].id] = fits[0]
        return list(chosen.values())

    def _names(self, key: str) -> set[str]:
        """The values of a trailer in all revisions that were not undone."""
        log = self._store.history.with_trailer(key)
        gone = self._store.history.undone_revisions() if log else set()
        return {name for one in log if one.id not in gone for name in one.trailers.get(key, ())}


def delete_edits(store: Store, holds: Callable[[str], bool]) -> int:
    """Delete the waiting edits whose old or new value makes `holds` true; returns their number."""
    gone = [one for one in _waiting_edits(store) if holds(one.value) or holds(one.before or "")]
    for one in gone:
        _edit_path(store, one.id).unlink(missing_ok=True)
    return len(gone)


def _waiting_edits(store: Store) -> Iterator[WaitingEdit]:
    for file in swap.list_files(store.bank.pending, PREFIX):
        if file.suffix == ".json":
            with contextlib.suppress(OSError, ValueError, TypeError):
                yield WaitingEdit(**json.loads(file.read_bytes()))


def _edit_path(store: Store, id: str) -> Path:
    return store.bank.pending / f"{PREFIX}{id.removeprefix('c-')}.json"


def _is_owners_rule(fact: Fact) -> bool:
    """Whether a fact is a preference of the owner's. One from a group chat is not."""
    own = fact.said_by == "person" and not wording.group_of((*fact.tags, *fact.heading.tags))
    return own and fact.kind == "preference" and not fact.retired and not fact.untrusted


def _trailer_name(fact: Fact) -> str:
    """A fact's proposal id: its id, or the path and text hash of a line without one."""
    if fact.ref:
        return f"^{fact.ref}"
    return f"{quote(fact.place.path, safe='/@+=~')}#{document.texthash(fact.text)[:NAMES]}"


def _rule_proposal(facts: Sequence[Fact], why: str) -> CoreProposal:
    tags = (tag for fact in facts for tag in (*fact.tags, *fact.heading.tags))
    projects = sorted({tag.partition(":")[2] for tag in tags if tag.startswith("project:")})
    head, days = facts[0], tuple(_seen_days(facts))
    said = head.heading.client or "", head.heading.session or ""
    name = _trailer_name(head)
    return CoreProposal(name, "statement", head.text, why, RULES_BLOCK, days, tuple(projects), *said)


def _seen_days(facts: Sequence[Fact]) -> list[str]:
    """The ISO days on which facts were said or seen again, sorted."""
    said = (day_of(fact.place.path) or "" for fact in facts)
    seen = (stamp[:10] for fact in facts for stamp in fact.seen)
    return sorted({*said, *seen} - {""})


def _decision_trailers(decided: Sequence[CoreProposal], key: str) -> Mapping[str, list[str]]:
    named = [one.id for one in decided if one.kind != "unseen"]
    seen = [one.id for one in decided if one.kind == "unseen"]
    return {**({key: named} if named else {}), **({SEEN: seen} if seen else {})}


def _line_diff(before: str, after: str) -> str:
    rows = ndiff(before.splitlines(), after.splitlines())
    return "\n".join(row for row in rows if row[:2] in ("+ ", "- ") and row[2:].strip())


def _remaining_diff(before: str, after: str, now: str) -> str:
    """The lines of a change that still apply: added ones that are there, removed ones that are not."""
    there = set(now.splitlines())
    rows = _line_diff(before, after).splitlines()
    return "\n".join(row for row in rows if (row[2:] in there) == (row[0] == "+"))
