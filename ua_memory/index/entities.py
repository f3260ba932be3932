"""The names of a bank: counted and shown by what the index knows, and decided about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import cache

from ua_memory.errors import NotFound
from ua_memory.index import words as index_words
from ua_memory.index.items import IndexItem, folded
from ua_memory.index.sync import Index
from ua_memory.index.words import WordIndex
from ua_memory.knowledge import entities
from ua_memory.knowledge.entities import Beside, EntityDecision, EntityRecords, ResolvedName, Suggestion
from ua_memory.records import Entity
from ua_memory.store.store import Store

COMPARED = 1000
"""Names, the most frequent, among which it is looked for two that may be one."""
ROUND = 20
"""Names beside somebody's that count as their company."""
DAYS = 45
"""Up to so many days from first to last a timeline goes by days, then by months."""

_PROPER = re.compile(r"(?!\d)[^\W_a-z][^\n/\\@_()#:`]*")


@dataclass(frozen=True, slots=True)
class EntitySummary:
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
class EntityDetails:
    """All that the bank has of a name: its places in the order of their days, the names beside it with how
    often, and a timeline of ISO days or months."""

    known: EntitySummary
    items: tuple[IndexItem, ...] = ()
    beside: Mapping[str, int] = field(default_factory=dict)
    timeline: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EntityGraph:
    """Names, and in how many places each two of them stand together."""

    known: tuple[EntitySummary, ...]
    together: Mapping[tuple[str, str], int]


class Entities:
    """The names of one bank; `door` names who decides about them."""

    def __init__(self, store: Store, door: str, index: Callable[[], Index]) -> None:
        self._store, self._door, self._index = store, door, index

    def list(self, limit: int | None = None, *, every: bool = False) -> Sequence[EntitySummary]:
        """The names of the bank, the most frequent first; with `every` also paths, handles and identifiers,
        and words that are mostly no names."""
        with self._named() as (words, known):
            return _listed(words, known, limit, every)

    def get(self, name: str) -> EntityDetails:
        """Everything about whoever is called so. NotFound, which names who is called nearly so."""
        with self._named() as (words, known):
            return self._portrait(words, known, name)

    def graph(self, names: Sequence[str] = (), limit: int = 60) -> EntityGraph:
        """How often names stand in the same places: these, without their days, or the most frequent."""
        with self._named() as (words, known):
            those = [_counted(words, known, name) for name in names] or _listed(words, known, limit)
            called = {folded(each): one.name for one in those for each in (*one.aliases, one.name)}
            pairs = Counter[tuple[str, str]]()
            for one, other, count in index_words.together(words, called):
                if called[one] != called[other]:
                    pairs[min(called[one], called[other]), max(called[one], called[other])] += count
        return EntityGraph(tuple(those), dict(pairs.most_common()))

    def names(self, name: str) -> frozenset[str]:
        """All that whoever is called so is called, folded: the name and aliases of a record, else all names
        that contain it, as "Marta Kowalczyk" does "Marta". NotFound as for `get`."""
        with self._named() as (words, known):
            longer = index_words.longer(words, folded(name)) if not known.by_name(name) else ()
            return frozenset(longer or self._meant(words, known, name)[1])

    def _meant(
        self, words: WordIndex, known: EntityRecords, name: str
    ) -> tuple[Entity | None, set[str], Sequence[IndexItem]]:
        """The record of a name, if it has one, its folded names and the items that contain one. NotFound."""
        called = known.by_name(name)
        record = called[0] if len(called) == 1 else None
        own = {folded(each) for each in ([record.name, *record.aliases] if record else [name])}
        items = index_words.items(words, own)
        if not items and record is None:
            raise NotFound("no such name", where=name, hint=_near(name, _listed(words, known, COMPARED)))
        return record, own, items

    def _portrait(self, words: WordIndex, known: EntityRecords, name: str) -> EntityDetails:
        record, own, items = self._meant(words, known, name)
        shown = record.name if record else index_words.written(words, folded(name)).spelling
        days = [day for item in items if (day := item.day or item.date)]
        about = EntitySummary(
            shown, len(items), min(days, default=""), max(days, default=""),
            record.aliases if record else (), record.nots if record else (), record is not None,
        )  # fmt: skip
        return EntityDetails(about, tuple(items), self._beside(words, known, own), _timeline(days))

    def suggestions(self, limit: int = 20) -> Sequence[Suggestion]:
        """Names that may be one, with the reason, for a person to decide. Nothing is merged."""
        with self._named() as (words, known):
            found = _listed(words, known, COMPARED)
            return entities.suggestions(
                {one.name: one.count for one in found}, known, self._company(words), limit
            )

    def resolve(self, name: str, context: Iterable[str] = ()) -> ResolvedName:
        """Whom a name in a text stands for, by what is settled and by the other names of the text."""
        with self._named() as (words, known):
            return known.resolve(name, context, self._company(words))

    # -- decisions ---------------------------------------------------------------------------------------

    def alias(self, name: str, other: str, *, by_person: bool = False) -> EntityDecision:
        """`other` is another name of `name`. NotFound where the bank has never heard of `name`."""
        self._heard_of(name)
        return entities.alias(self._store, name, other, door=self._door, by_person=by_person)

    def merge(self, name: str, other: str, *, by_person: bool = False) -> EntityDecision:
        """`other` is `name`, with all it is called. NotFound where the bank has never heard of one."""
        self._heard_of(name, other)
        return entities.merge(self._store, name, other, door=self._door, by_person=by_person)

    def split(self, name: str, other: str, *, by_person: bool = False) -> EntityDecision:
        """`other` is not `name`, for good."""
        self._heard_of(name)
        return entities.split(self._store, name, other, door=self._door, by_person=by_person)

    def rename(self, old: str, new: str, *, by_person: bool = False) -> EntityDecision:
        """What was called `old` is called `new`, and found by both."""
        self._heard_of(old)
        return entities.rename(self._store, old, new, door=self._door, by_person=by_person)

    def _heard_of(self, *names: str) -> None:
        with self._named() as (words, known):
            for name in names:
                if not known.by_name(name) and not index_words.items(words, [folded(name)]):
                    near = _near(name, _listed(words, known, COMPARED))
                    raise NotFound("no such name", where=name, hint=near)

    # -- what the index knows ------------------------------------------------------------------------------

    @contextmanager
    def _named(self) -> Iterator[tuple[WordIndex, EntityRecords]]:
        index = self._index()
        with index.turn:
            index.refresh(vectors=False)
            yield index.words, entities.settled(self._store)

    def _company(self, words: WordIndex) -> Beside:
        @cache
        def beside(name: str) -> frozenset[str]:
            counts = index_words.beside(words, [folded(name)])
            return frozenset(sorted(counts, key=lambda one: (-counts[one], one))[:ROUND])

        return beside

    def _beside(self, words: WordIndex, known: EntityRecords, own: set[str]) -> Mapping[str, int]:
        counts = index_words.beside(words, own)
        best = sorted(counts, key=lambda one: (-counts[one], one))[:ROUND]
        found, spellings = Counter[str](), index_words.Spellings(words)
        for one in best:
            written = spellings.of(one)
            shown = known.resolve(written.spelling)
            if shown.how != "open" or (_PROPER.fullmatch(written.spelling) and not written.doubtful):
                found[shown.name] += counts[one]
        return dict(found.most_common())


def _counted(words: WordIndex, known: EntityRecords, name: str) -> EntitySummary:
    """A name, and in how many places it stands."""
    called = known.by_name(name)
    record = called[0] if len(called) == 1 else Entity(name)
    own = {folded(each) for each in (record.name, *record.aliases)}
    settled = len(called) == 1
    return EntitySummary(
        record.name, index_words.counted(words, own), "", "", record.aliases, record.nots, settled
    )


def _listed(
    words: WordIndex, known: EntityRecords, limit: int | None, every: bool = False
) -> list[EntitySummary]:
    """The settled names and the others, the most frequent first."""
    found: list[EntitySummary] = []
    taken: set[str] = set()
    for record in known.records:
        names = {folded(each) for each in (record.name, *record.aliases)}
        taken |= names
        items = index_words.items(words, names)
        days = [day for item in items if (day := item.day or item.date)]
        first, last = min(days, default=""), max(days, default="")
        found.append(EntitySummary(record.name, len(items), first, last, record.aliases, record.nots, True))
    others, spellings = 0, index_words.Spellings(words)
    for one in index_words.census(words):
        if others == limit:
            break
        if one.name in taken:
            continue
        name = spellings.of(one.name)
        if every or (_PROPER.fullmatch(name.spelling) and not name.doubtful):
            found.append(EntitySummary(name.spelling, one.items, one.first, one.last))
            others += 1
    return sorted(found, key=lambda one: (-one.count, one.name.casefold()))[:limit]


def _timeline(days: Sequence[str]) -> Mapping[str, int]:
    """How often each ISO day or, over a longer time, each month."""
    full = [day for day in days if len(day) == 10]
    span = (date.fromisoformat(max(full)) - date.fromisoformat(min(full))).days if full else 0
    counted = Counter(full if span <= DAYS else [day[:7] for day in days])
    return dict(sorted(counted.items()))


def _near(name: str, among: Sequence[EntitySummary]) -> str:
    near = [one.name for one in among if entities.likeness(one.name, name)][:3]
    return f"did you mean {' or '.join(near)}?" if near else "ua-memory entities list"
