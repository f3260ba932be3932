"""What persons write on a page becomes a memory of theirs, once: a fact in the log of the day.

What stood on the page at the last refresh is ours, or was learnt then; what a person's paragraphs have beside
it is new. So nothing has to be remembered about it, and a fact that its person deletes does not come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ua_memory import facts, markdown, pages
from ua_memory.errors import Malformed, TooLarge, Usage
from ua_memory.facts import Equal, Said
from ua_memory.markdown.blocks import Shape
from ua_memory.records import Fact, Page
from ua_memory.reflect.sections import Sheet
from ua_memory.reflect.staleness import Last
from ua_memory.reflect.units import Unit, own_sentences
from ua_memory.store import Draft, Store

CLIENT = "pages"
"""Under whose heading they stand in the log."""
FEWEST = 2
"""Words that make a statement; a single one is none."""


class Learning:
    """The words of persons on one page that memory does not have yet: {unit: text}."""

    def __init__(self, store: Store, page: Page, sheet: Sheet, last: Last | None) -> None:
        self.store, self.trail = store, f"[[{pages.stem(page)}]]"
        path = page.place.path
        known = set(_sentences(store.history.read(last.revision, path) or b"", path)) if last else set()
        self.words: dict[Unit, str] = {}
        for unit in sheet.units:
            if unit.owner == "person" and unit.shape in (Shape.PARAGRAPH, Shape.ITEM):
                text = " ".join(said for said in own_sentences(unit) if said not in known)
                known.update(own_sentences(unit))
                if len(text.split()) >= FEWEST:
                    self.words[unit] = text
        self._kept: dict[Unit, Fact] = {}

    def keep(self, draft: Draft) -> tuple[Fact, ...]:
        """Write them into the log of the day, as the person's."""
        said = Said(self.store.now(), CLIENT, "person")
        for unit, text in self.words.items():
            fact = Fact(text, origin="person", trail=self.trail)
            try:
                self._kept[unit] = facts.add(draft, fact, said)[0]
            except (Usage, TooLarge) as error:
                draft.notes.append(f"not learnt from the page: {text[:80]} ({error.what})")
        return tuple(self._kept.values())

    def flag(self, draft: Draft, against: Sequence[tuple[Unit, str]], equal: Equal) -> tuple[Fact, ...]:
        """Flag what persons' paragraphs became with the id of what contradicts each."""
        flagged = []
        for unit, block in against:
            for fact in self._facts(draft, unit, equal):
                if f"^{block}" not in (fact.flag or ""):
                    done = _flagged(draft, fact, f"contradicted by ^{block}")
                    flagged += [done] if done else []
                    break
        return tuple(flagged)

    def _facts(self, draft: Draft, unit: Unit, equal: Equal) -> Iterator[Fact]:
        """The facts that a paragraph became, as they stand in the draft now."""
        if unit in self._kept:
            yield self._kept[unit]
            return
        said = own_sentences(unit)
        for text in dict.fromkeys((" ".join(said), *said)):
            for path in dict.fromkeys(known.place.path for known in equal(text)):
                for fact in markdown.parse(draft.read(path), path).of(Fact):
                    if fact.text == text and fact.trail == self.trail and not fact.retired:
                        yield fact


def _sentences(data: bytes, path: str) -> Iterator[str]:
    owners = ["other"] * (data.count(b"\n") + 1)
    try:
        sheet = Sheet(data, path, owners, 1)  # type: ignore[arg-type]
    except Malformed:
        return
    for unit in sheet.units:
        yield from own_sentences(unit)


def _flagged(draft: Draft, fact: Fact, why: str) -> Fact | None:
    """The fact with its flag; None where the line cannot take one."""
    path = fact.place.path
    now = next((f for f in markdown.parse(draft.read(path), path).of(Fact) if f.id == fact.id), None)
    if now is None or now.flag:
        return None
    data = markdown.insert_after(draft.read(path), now.place.end, [f"  - flag: {why}"])
    there = next((f for f in markdown.parse(data, path).of(Fact) if f.id == fact.id), None)
    if there != replace(now, flag=why):
        return None
    draft.write(path, data, removes=[now])
    return there
