"""A page brought up to date: recall, a model's or our own small operations, one commit or nothing.

What persons wrote stays, and becomes a memory of theirs. The model works on a copy while nobody is kept
waiting; the copy is written only if the page is still what was read, else nothing is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ua_memory import markdown, pages
from ua_memory.errors import ChangedOnDisk, Malformed, ModelMisbehaved
from ua_memory.facts import Equal
from ua_memory.llm import Model
from ua_memory.llm import Usage as Tokens
from ua_memory.records import Fact, Observation, Page
from ua_memory.reflect import briefing, extractive, staleness, writing
from ua_memory.reflect import grounds as proofs
from ua_memory.reflect.briefing import Price
from ua_memory.reflect.grounds import Evidence
from ua_memory.reflect.learning import Learning
from ua_memory.reflect.sections import Sheet
from ua_memory.reflect.staleness import Last, Stale
from ua_memory.reflect.writing import Written
from ua_memory.statements import Statement
from ua_memory.store import Draft, Store

if TYPE_CHECKING:
    from ua_memory.modelled import Asked

REMEMBERED = 200
"""Names that a refresh says it saw, at most."""
NEW_ID = "(new)"
"""What stands in a dry run for the id that a line would be given."""

Tell = Callable[[Price], None]


@dataclass(frozen=True, slots=True)
class View:
    """What a refresh may use of memory: recall for a question (facts and observations only), what has an id,
    facts by their exact text, and the removal of secrets from what a model is shown."""

    recall: Callable[[str], proofs.Recalled]
    find: Callable[[str], Statement]
    equal: Equal
    clean: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh did to a page. `by` names the model, '' without one; `why` it was done; `diff` what has
    changed, in all files; `learnt` are persons' words that became facts, `flagged` those that it contradicts;
    `refused` what a model proposed and the evidence does not say; `left_out` counts what had no room."""

    page: Page
    by: str
    why: Stale
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
    usage: Tokens = field(default_factory=Tokens)


@dataclass(slots=True)
class State:
    """A page as a refresh finds it."""

    page: Page
    data: bytes
    sheet: Sheet
    last: Last | None
    evidence: list[Evidence]
    passed: Sequence[Fact | Observation]
    learning: Learning
    stale: Stale


class Refresher:
    """Refreshes pages of one bank."""

    def __init__(
        self, store: Store, view: View, *, door: str, model: Model | None = None, at: Asked = None
    ) -> None:
        self.store, self.view, self.door, self.model = store, view, door, model
        self.at = at or model
        """The model, or where it is, which tells whether anybody sends a bill."""

    def stale(self, page: Page) -> Stale:
        """Whether a page is out of date, and why. Nothing is recalled for one that has no text yet."""
        if not page.body and staleness.last_refresh(self.store, page) is None:
            return Stale(never=True)
        try:
            return self.state(page).stale
        except Malformed as error:
            return Stale(broken=str(error))

    def state(self, page: Page) -> State:
        """How a page stands. Reads only."""
        path = page.place.path
        data = self.store.read(path)
        sheet = Sheet(data, path, staleness.owners(self.store, path, data), pages.max_tokens(data, path))
        last = staleness.last_refresh(self.store, page)
        cited = [one for unit in sheet.units if unit.owner == "ours" for s in unit.sentences for one in s.ids]
        hits, notes = self.view.recall(page.source_query)
        evidence, passed = self._evidence(page, hits, cited)
        learning = Learning(self.store, page, sheet, last)
        why = staleness.stale(page, last, evidence, cited, self._alive, len(learning.words))
        stale = replace(why, notes=tuple(notes))
        news = _news(stale, last, cited)
        told = [replace(each, news=news.get(each.name, "")) for each in evidence]
        return State(page, data, sheet, last, told, passed, learning, stale)

    def refresh(
        self, page: Page, *, full: bool = False, dry_run: bool = False, tell: Tell | None = None
    ) -> Refreshed:
        """Bring a page up to date. Nothing is asked, and nothing written, where nothing has changed.

        `full` writes it anew, as another question does. `tell` hears the price before a model is asked.
        ChangedOnDisk where the page was saved meanwhile; Malformed where it, or a fact that it is to cite,
        cannot be written to; else what the model raises. Nothing is changed then.
        """
        path = page.place.path
        if not dry_run:
            self.store.adopt([path])  # an old buffer is merged before the page is read
        state = self.state(pages.page(self.store, pages.stem(page)))
        drafted = state.stale.draft and self.model is not None
        if not (state.stale or full or drafted):
            return Refreshed(state.page, "", state.stale, notes=state.stale.notes)
        anew = full or state.stale.question or state.stale.never or drafted
        if anew:
            state.sheet.clear()
        written, left_out = self._write(state, anew, tell)
        dropped = extractive.settle(state.sheet, state.evidence)
        state.sheet.prune()
        written.refused += [text for text in dropped if self.model]
        done = self._kept(state, written, anew, dry_run)
        return _with(done, anew, tuple(written.refused), left_out, written.usage)

    def _write(self, state: State, anew: bool, tell: Tell | None) -> tuple[Written, int]:
        """Have the model, or without one our own hand, work on the sheet."""
        if self.model is None:
            return Written(), extractive.fill(state.sheet, state.evidence, state.page.source_query, anew)
        if not state.evidence:
            return Written(), 0  # there is nothing to ask about: what is gone goes
        asked = (state.sheet, state.page.source_query, state.evidence, self.view.clean)
        if tell:
            tell(briefing.estimate(self.at or self.model, *asked))
        written = writing.write(self.model, *asked)
        if anew and not any(unit.owner == "ours" and not unit.heading for unit in state.sheet.units):
            raise ModelMisbehaved(
                "the model wrote nothing for the page; it was left as it is", where=state.page.place.path,
                mend="try again, or another UA_MEMORY_MODEL",
            )  # fmt: skip
        return written, 0

    # -- what there is -----------------------------------------------------------------------------------

    def _evidence(
        self, page: Page, hits: Sequence[Any], cited: Sequence[str]
    ) -> tuple[list[Evidence], proofs.Records]:
        records, passed = proofs.recalled(self.store, hits, f"[[{pages.stem(page)}]]")
        known = {record.ref for record, _ in records}
        more = [proofs.living(self.view.find, one) for one in dict.fromkeys(cited) if one not in known]
        whole = [(record, True, score) for record, score in records]
        whole += [(record, False, 0.0) for record in more if record]
        evidence = [
            Evidence(number, record, recalled, self.view.clean, score=score)
            for number, (record, recalled, score) in enumerate(whole, 1)
        ]
        return evidence, passed

    def _alive(self, name: str) -> bool:
        if name.startswith("^"):
            return proofs.living(self.view.find, name[1:]) is not None
        return staleness.nameless_alive(self.store, name)

    # -- writing -----------------------------------------------------------------------------------------

    @property
    def _by(self) -> str:
        return self.model.name if self.model else ""

    def _kept(self, state: State, written: Written, anew: bool, trial: bool) -> Refreshed:
        path = state.page.place.path
        with self.store.revision("refresh", door=self.door) as draft:
            draft.trial = trial
            if draft.read(path) != state.data and not trial:
                raise ChangedOnDisk(
                    "the page was saved meanwhile; nothing was written", where=path,
                    mend=f"ua-memory pages refresh {pages.stem(state.page)}",
                )  # fmt: skip
            used = state.sheet.marks()
            links = {
                each.number: proofs.linked(draft, each) for each in state.evidence if each.number in used
            }
            new = state.sheet.data(links)
            if new != state.data:
                _refuse_another_header(state, new)
                draft.write(path, new, removes=[state.page])
            learnt = state.learning.keep(draft)
            flagged = state.learning.flag(draft, _against(written, links), self.view.equal)
            self._say(draft, state, anew, links, learnt)
        result, diff = draft.result, draft.diff(path)
        done = Refreshed(
            _page(draft.read(path), state.page), self._by, state.stale, diff=diff, learnt=learnt,
            flagged=flagged, revision=result.revision, notes=result.notes, redacted=result.redacted,
        )  # fmt: skip
        return _rehearsed(done, state, links) if trial else done

    def _say(
        self, draft: Draft, state: State, anew: bool, links: Mapping[int, str], learnt: Sequence[Fact]
    ) -> None:
        """What the commit says: whose page, from which recipe, by whom, and what was seen."""
        named = {number: next(markdown.citations(link)).ref for number, link in links.items()}
        seen = {}
        for each in state.evidence:
            block = named.get(each.number) or each.record.ref
            seen[f"^{block}" if block else each.name] = each.digest
        seen |= {f"^{fact.id}": proofs.digest(fact) for fact in learnt}
        if state.last and not anew:  # what an earlier one saw and recall does not find now is no news later
            before = {name: said for name, said in state.last.seen.items() if name not in state.stale.gone}
            seen |= {name: said for name, said in before.items() if name not in seen}
        passed = {proofs.name_of(record): proofs.digest(record) for record in state.passed}
        kept = dict(list(seen.items())[:REMEMBERED])
        before_by = "" if anew or not state.last else state.last.by
        by = self._by or (before_by if before_by not in ("", staleness.EXTRACT) else staleness.EXTRACT)
        name = pages.stem(state.page)
        draft.trailers |= {
            "Page": [name], "Recipe": [pages.recipe(state.page)], "By": [by],
            "Seen": staleness.seen_lines(kept),
            "Passed": staleness.seen_lines({n: said for n, said in passed.items() if n not in kept}),
        }  # fmt: skip
        draft.facts = [f"^{fact.id}" for fact in learnt]
        draft.subject = f"refresh: {name}{' anew' if anew else ''} ({state.stale or 'asked for'})"
        draft.even_if_empty = True  # what was looked at and changed nothing must not be looked at again


def _with(done: Refreshed, full: bool, refused: tuple[str, ...], left_out: int, usage: Tokens) -> Refreshed:
    notes = (*done.why.notes, *done.notes)
    return replace(done, full=full, refused=refused, left_out=left_out, usage=usage, notes=notes)


def _against(written: Written, links: Mapping[int, str]) -> list[tuple[Any, str]]:
    """(a person's paragraph, the id of what contradicts it), of what is said on the page."""
    said = ((unit, links.get(numbers[0])) for unit, numbers in written.contradicted)
    return [(unit, next(markdown.citations(link)).ref) for unit, link in said if link]


def _rehearsed(done: Refreshed, state: State, links: Mapping[int, str]) -> Refreshed:
    """A dry run's result, with `NEW_ID` for the ids that would be given."""
    fresh = [fact.id for fact in done.learnt]
    given = (links[each.number] for each in state.evidence if each.number in links and not each.record.id)
    fresh += [next(markdown.citations(link)).id for link in given]

    def shown(text: str) -> str:
        for block in fresh:
            text = text.replace(f"^{block}", f"^{NEW_ID}")
        return text

    learnt = tuple(Fact(fact.text, origin="person") for fact in done.learnt)
    flagged = tuple(replace(fact, flag=shown(fact.flag or "")) for fact in done.flagged)
    return replace(done, diff=shown(done.diff), learnt=learnt, flagged=flagged, dry_run=True)


def preview_links(evidence: Sequence[Evidence]) -> dict[int, str]:
    """The links of a dry run, in which no fact is given an id."""
    return {e.number: markdown.link(e.record.place.path, e.record.id or NEW_ID) for e in evidence}


def _page(data: bytes, page: Page) -> Page:
    found = markdown.parse(data, page.place.path).of(Page)
    return found[0] if found else page


def _news(stale: Stale, last: Last | None, cited: Sequence[str]) -> dict[str, str]:
    """What to say of evidence since the last refresh; what was seen and is not cited was left out, by the
    model or by a person."""
    if last is None or stale.question:
        return {}
    left = {name: "left out before" for name in last.seen if name.removeprefix("^") not in cited}
    return left | {name: word for word in ("new", "edited") for name in getattr(stale, word)}


def _refuse_another_header(state: State, new: bytes) -> None:
    path = state.page.place.path
    before, after = (markdown.parse(data, path) for data in (state.data, new))
    if before.front != after.front or before.front_end != after.front_end:
        raise Malformed("the page's header would change", where=path, mend="report this as a bug")
