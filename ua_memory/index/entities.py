"""`memory.entities`: the names of a bank, as the index counts them, and decisions about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import cache

from ua_memory.errors import NotFound, checked
from ua_memory.index import words as index_words
from ua_memory.index.items import IndexItem, folded
from ua_memory.index.sync import Index
from ua_memory.index.words import WordIndex
from ua_memory.knowledge import entities
from ua_memory.knowledge.entities import EntityDecision, EntityRecords, RelatedNames, ResolvedName, Suggestion
from ua_memory.records import Entity
from ua_memory.store.store import Store

COMPARED = 1000
"""The most frequent names, among which duplicates are searched for."""
RELATED = 20
"""Co-occurring names of an entity, the most frequent."""
DAYS = 45
"""A timeline over at most this many days counts by day, a longer one by month."""

_PROPER = re.compile(r"(?:[^\w\x00-\x7f]+ ?)?(?!\d)[^\W_a-z][^\n/\\@_()#:`]*")


@dataclass(frozen=True, slots=True)
class EntitySummary:
    """A name, its number of items, first and last ISO day ('' if unknown). `settled` is whether it has a
    record in memory/entities.md, which has the `aliases` and `nots` (names it is not)."""

    name: str
    count: int
    first: str = ""
    last: str = ""
    aliases: tuple[str, ...] = ()
    nots: tuple[str, ...] = ()
    settled: bool = False


@dataclass(frozen=True, slots=True)
class EntityDetails:
    """A name with its items by day, {co-occurring name: number of items}, and {ISO day or month: items}."""

    known: EntitySummary
    items: tuple[IndexItem, ...] = ()
    beside: Mapping[str, int] = field(default_factory=dict)
    timeline: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EntityGraph:
    """Names, and {pair of names: number of items with both}."""

    known: tuple[EntitySummary, ...]
    together: Mapping[tuple[str, str], int]


@checked
class Entities:
    """The names of a bank. `door` is recorded with decisions."""

    def __init__(self, store: Store, door: str, index: Callable[[], Index]) -> None:
        self._store, self._door, self._index = store, door, index

    def list(self, limit: int | None = None, *, every: bool = False) -> Sequence[EntitySummary]:
        """The names of the bank, the most frequent first; with `every` including paths, handles, identifiers
        and doubtful names."""
        with self._open() as (words, known):
            return _listed(words, known, limit, every)

    def get(self, name: str) -> EntityDetails:
        """All about a name. NotFound, with a hint at similar names."""
        with self._open() as (words, known):
            return self._details(words, known, name)

    def graph(self, names: Sequence[str] = (), limit: int = 60) -> EntityGraph:
        """How often names co-occur: these (without their days), or the most frequent `limit`."""
        with self._open() as (words, known):
            nodes = [_counted(words, known, name) for name in names] or _listed(words, known, limit)
            name_of = {folded(each): one.name for one in nodes for each in (*one.aliases, one.name)}
            pairs = Counter[tuple[str, str]]()
            for one, other, count in index_words.co_occurrences(words, name_of):
                if name_of[one] != name_of[other]:
                    pairs[min(name_of[one], name_of[other]), max(name_of[one], name_of[other])] += count
        return EntityGraph(tuple(nodes), dict(pairs.most_common()))

    def names(self, name: str) -> frozenset[str]:
        """The folded names that `name` stands for: the name and aliases of its record, else all names that
        contain it, as "Marta Kowalczyk" contains "Marta". NotFound as for `get`."""
        with self._open() as (words, known):
            longer = index_words.names_containing(words, folded(name)) if not known.by_name(name) else ()
            return frozenset(longer or self._find(words, known, name)[1])

    def _find(
        self, words: WordIndex, known: EntityRecords, name: str
    ) -> tuple[Entity | None, set[str], Sequence[IndexItem]]:
        """(the record of a name, if there is one, its folded names, the items that contain one). NotFound."""
        records = known.by_name(name)
        record = records[0] if len(records) == 1 else None
        own = {folded(each) for each in ([record.name, *record.aliases] if record else [name])}
        items = index_words.items_naming(words, own)
        if not items and record is None:
            raise NotFound(
                "no such name", where=name, hint=_did_you_mean(name, _listed(words, known, COMPARED))
            )
        return record, own, items

    def _details(self, words: WordIndex, known: EntityRecords, name: str) -> EntityDetails:
        record, own, items = self._find(words, known, name)
        named = record or Entity(index_words.Spellings(words).of(folded(name)).spelling)
        days = _days_of(items)
        summary = _summary(named, len(items), days, record is not None)
        return EntityDetails(summary, tuple(items), self._co_occurring(words, known, own), _timeline(days))

    def suggestions(self, limit: int = 20) -> Sequence[Suggestion]:
        """Pairs of names that may be the same entity, with the reason, for a person to decide."""
        with self._open() as (words, known):
            found = _listed(words, known, COMPARED)
            counts = {one.name: one.count for one in found}
            return entities.suggestions(counts, known, self._related(words), limit)

    def resolve(self, name: str, context: Iterable[str] = ()) -> ResolvedName:
        """The entity that a name in a text stands for, by the records and the other names in the text."""
        with self._open() as (words, known):
            return known.resolve(name, context, self._related(words))

    # -- decisions ---------------------------------------------------------------------------------------

    def alias(self, name: str, other: str, *, by_person: bool = False) -> EntityDecision:
        """Record `other` as an alias of `name`. NotFound if `name` is in no record or item."""
        self._require(name)
        return entities.alias(self._store, name, other, door=self._door, by_person=by_person)

    def merge(self, name: str, other: str, *, by_person: bool = False) -> EntityDecision:
        """Merge `other`, with its aliases, into `name`. NotFound if one is in no record or item."""
        self._require(name, other)
        return entities.merge(self._store, name, other, door=self._door, by_person=by_person)

    def split(self, name: str, other: str, *, by_person: bool = False) -> EntityDecision:
        """Record that `other` is not `name`. NotFound if `name` is in no record or item."""
        self._require(name)
        return entities.split(self._store, name, other, door=self._door, by_person=by_person)

    def rename(self, old: str, new: str, *, by_person: bool = False) -> EntityDecision:
        """Rename `old` to `new`; `old` becomes an alias. NotFound if it is in no record or item."""
        self._require(old)
        return entities.rename(self._store, old, new, door=self._door, by_person=by_person)

    def _require(self, *names: str) -> None:
        with self._open() as (words, known):
            for name in names:
                if not known.by_name(name) and not index_words.items_naming(words, [folded(name)]):
                    near = _did_you_mean(name, _listed(words, known, COMPARED))
                    raise NotFound("no such name", where=name, hint=near)

    # -- index lookups -------------------------------------------------------------------------------------

    @contextmanager
    def _open(self) -> Iterator[tuple[WordIndex, EntityRecords]]:
        """The refreshed word index, under its lock, and the settled entities."""
        with self._index().refreshed() as words:
            yield words, entities.entity_records(self._store)

    def _related(self, words: WordIndex) -> RelatedNames:
        @cache
        def related(name: str) -> frozenset[str]:
            counts = index_words.co_occurring(words, [folded(name)])
            return frozenset(sorted(counts, key=lambda one: (-counts[one], one))[:RELATED])

        return related

    def _co_occurring(self, words: WordIndex, known: EntityRecords, own: set[str]) -> Mapping[str, int]:
        counts = index_words.co_occurring(words, own)
        best = sorted(counts, key=lambda one: (-counts[one], one))[:RELATED]
        found, spellings = Counter[str](), index_words.Spellings(words)
        for one in best:
            name = spellings.of(one)
            resolved = known.resolve(name.spelling)
            if resolved.how != "open" or (_PROPER.fullmatch(name.spelling) and not name.doubtful):
                found[resolved.name] += counts[one]
        return dict(found.most_common())


def _counted(words: WordIndex, known: EntityRecords, name: str) -> EntitySummary:
    """A name and its number of items, without days."""
    records = known.by_name(name)
    record = records[0] if len(records) == 1 else Entity(name)
    own = {folded(each) for each in (record.name, *record.aliases)}
    return _summary(record, index_words.count_naming(words, own), (), len(records) == 1)


def _days_of(items: Iterable[IndexItem]) -> list[str]:
    return [day for item in items if (day := item.day or item.date)]


def _summary(record: Entity, count: int, days: Sequence[str], settled: bool) -> EntitySummary:
    first, last = min(days, default=""), max(days, default="")
    return EntitySummary(record.name, count, first, last, record.aliases, record.nots, settled)


def _listed(
    words: WordIndex, known: EntityRecords, limit: int | None, every: bool = False
) -> list[EntitySummary]:
    """The settled names and the others, the most frequent first."""
    found: list[EntitySummary] = []
    taken: set[str] = set()
    for record in known.records:
        names = {folded(each) for each in (record.name, *record.aliases)}
        taken |= names
        items = index_words.items_naming(words, names)
        found.append(_summary(record, len(items), _days_of(items), True))
    others, spellings = 0, index_words.Spellings(words)
    for one in index_words.name_counts(words):
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
    """{ISO day or, over more than `DAYS` days, month: count}."""
    full = [day for day in days if len(day) == 10]
    span = (date.fromisoformat(max(full)) - date.fromisoformat(min(full))).days if full else 0
    counts = Counter(full if span <= DAYS else [day[:7] for day in days])
    return dict(sorted(counts.items()))


def _did_you_mean(name: str, among: Sequence[EntitySummary]) -> str:
    similar = [one.name for one in among if entities.likeness(one.name, name)][:3]
    if similar:
        return f"did you mean {' or '.join(similar)}?"
    return f"ua-memory entities list; if it is not a name: ua-memory search {name!r}"
