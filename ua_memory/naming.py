"""The part of `Memory` that knows who is who: the bank's names counted, shown, and decided about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING

from ua_memory import entities
from ua_memory.entities import Beside, Decision, Resolved, Settled, Suggestion
from ua_memory.errors import NotFound
from ua_memory.modelled import Modelled

if TYPE_CHECKING:
    from ua_memory.index.items import Item
    from ua_memory.index.sync import Index
    from ua_memory.index.words import Words

COMPARED = 1000
"""Names, the most frequent, among which it is looked for two that may be one."""
ROUND = 20
"""Names beside somebody's that count as their company."""
DAYS = 45
"""Up to so many days from first to last a timeline goes by days, then by months."""

_PROPER = re.compile(r"(?!\d)[^\W_a-z][^\n/\\@_()#:`]*")


@dataclass(frozen=True, slots=True)
class Known:
    """A name of the bank: in how many places it stands, first and last ISO day ('' where none is known).

    `settled` is whether memory/entities.md has a record of it, with these `aliases` and `nots`.
    """

    name: str
    count: int
    first: str = ""
    last: str = ""
    aliases: tuple[str, ...] = ()
    nots: tuple[str, ...] = ()
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Portrait:
    """All that the bank has of a name: its places in the order of their days, the names beside it with how
    often, and a timeline of ISO days or months."""

    known: Known
    items: tuple[Item, ...] = ()
    beside: Mapping[str, int] = field(default_factory=dict)
    timeline: Mapping[str, int] = field(default_factory=dict)


class Naming(Modelled):
    """The names of a bank."""

    @cached_property
    def index(self) -> Index:
        """The bank's index."""
        raise NotImplementedError

    def entities(self, limit: int | None = None, *, every: bool = False) -> list[Known]:
        """The names of the bank, the most frequent first; with `every` also paths, handles and identifiers,
        and words that are mostly no names."""
        with self._named() as (words, known):
            return _listed(words, known, limit, every)

    def entity(self, name: str) -> Portrait:
        """Everything about whoever is called so. NotFound, which names who is called nearly so."""
        with self._named() as (words, known):
            return self._portrait(words, known, name)

    def _portrait(self, words: Words, known: Settled, name: str) -> Portrait:
        from ua_memory.index import census
        from ua_memory.index.links import folded

        called = known.called(name)
        record = called[0] if len(called) == 1 else None
        names = [record.name, *record.aliases] if record else [name]
        own = {folded(each) for each in names}
        items = census.items(words, own)
        if not items and record is None:
            raise NotFound(
                "nobody is called so", where=name, mend=_near(name, _listed(words, known, COMPARED))
            )
        shown = record.name if record else census.written(words, folded(name)).spelling
        days = [day for item in items if (day := item.day or item.date)]
        about = Known(
            shown, len(items), min(days, default=""), max(days, default=""),
            record.aliases if record else (), record.nots if record else (), record is not None,
        )  # fmt: skip
        return Portrait(about, tuple(items), self._beside(words, known, own), _timeline(days))

    def suggested(self, limit: int = 20) -> list[Suggestion]:
        """Names that may be one, with the reason, for a person to decide. Nothing is merged."""
        with self._named() as (words, known):
            found = _listed(words, known, COMPARED)
            return entities.suggestions(
                {one.name: one.count for one in found}, known, self._company(words), limit
            )

    def resolve_name(self, name: str, context: Iterable[str] = ()) -> Resolved:
        """Whom a name in a text stands for, by what is settled and by the other names of the text."""
        with self._named() as (words, known):
            return known.resolve(name, context, self._company(words))

    # -- decisions ---------------------------------------------------------------------------------------

    def entity_alias(self, name: str, other: str, *, by_person: bool = False) -> Decision:
        """`other` is another name of `name`. NotFound where the bank has never heard of `name`."""
        self._heard_of(name)
        return entities.alias(self.store, name, other, door=self.door, by_person=by_person)

    def entity_merge(self, name: str, other: str, *, by_person: bool = False) -> Decision:
        """`other` is `name`, with all it is called. NotFound where the bank has never heard of one."""
        self._heard_of(name, other)
        return entities.merge(self.store, name, other, door=self.door, by_person=by_person)

    def entity_split(self, name: str, other: str, *, by_person: bool = False) -> Decision:
        """`other` is not `name`, for good."""
        self._heard_of(name)
        return entities.split(self.store, name, other, door=self.door, by_person=by_person)

    def entity_rename(self, old: str, new: str, *, by_person: bool = False) -> Decision:
        """What was called `old` is called `new`, and found by both."""
        self._heard_of(old)
        return entities.rename(self.store, old, new, door=self.door, by_person=by_person)

    def _heard_of(self, *names: str) -> None:
        from ua_memory.index import census
        from ua_memory.index.links import folded

        with self._named() as (words, known):
            for name in names:
                if not known.called(name) and not census.items(words, [folded(name)]):
                    near = _near(name, _listed(words, known, COMPARED))
                    raise NotFound("nobody is called so", where=name, mend=near)

    # -- what the index knows ------------------------------------------------------------------------------

    @contextmanager
    def _named(self) -> Iterator[tuple[Words, Settled]]:
        with self.index.turn:
            self.index.refresh(vectors=False)
            yield self.index.words, entities.settled(self.store)

    def _company(self, words: Words) -> Beside:
        from ua_memory.index import census
        from ua_memory.index.links import folded

        @cache
        def beside(name: str) -> frozenset[str]:
            counts = census.beside(words, [folded(name)])
            return frozenset(sorted(counts, key=lambda one: (-counts[one], one))[:ROUND])

        return beside

    def _beside(self, words: Words, known: Settled, own: set[str]) -> Mapping[str, int]:
        from ua_memory.index import census

        counts = census.beside(words, own)
        best = sorted(counts, key=lambda one: (-counts[one], one))[:ROUND]
        found = Counter[str]()
        for one in best:
            written = census.written(words, one)
            shown = known.resolve(written.spelling)
            if shown.how != "open" or (_PROPER.fullmatch(written.spelling) and not written.doubtful):
                found[shown.name] += counts[one]
        return dict(found.most_common())


def _listed(words: Words, known: Settled, limit: int | None, every: bool = False) -> list[Known]:
    """The settled names and the others, the most frequent first."""
    from ua_memory.index import census
    from ua_memory.index.links import folded

    found: list[Known] = []
    taken: set[str] = set()
    for record in known.records:
        names = {folded(each) for each in (record.name, *record.aliases)}
        taken |= names
        items = census.items(words, names)
        days = [day for item in items if (day := item.day or item.date)]
        first, last = min(days, default=""), max(days, default="")
        found.append(Known(record.name, len(items), first, last, record.aliases, record.nots, True))
    others = 0
    for one in census.census(words):
        if others == limit:
            break
        if one.name in taken:
            continue
        name = census.written(words, one.name)
        if every or (_PROPER.fullmatch(name.spelling) and not name.doubtful):
            found.append(Known(name.spelling, one.items, one.first, one.last))
            others += 1
    return sorted(found, key=lambda one: (-one.count, one.name.casefold()))[:limit]


def _timeline(days: Sequence[str]) -> Mapping[str, int]:
    """How often each ISO day or, over a longer time, each month."""
    from datetime import date

    full = [day for day in days if len(day) == 10]
    span = (date.fromisoformat(max(full)) - date.fromisoformat(min(full))).days if full else 0
    counted = Counter(full if span <= DAYS else [day[:7] for day in days])
    return dict(sorted(counted.items()))


def _near(name: str, among: Sequence[Known]) -> str:
    near = [one.name for one in among if entities.likeness(one.name, name)][:3]
    return f"did you mean {' or '.join(near)}?" if near else "ua-memory entities list"
