"""The entity arm: items in which somebody or something stands that the query names, and what these lead to.

Seeds hold a rare name of the query. Names that stand beside it more often than chance would have it lead on,
one step: "Alice's brother is Tom" to "Tom works at Initech". What is found so comes after every seed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ua_memory.index import links
from ua_memory.index.filters import Filters
from ua_memory.index.tables import chunks, marks
from ua_memory.index.words import Words
from ua_memory.recall.arms import Found, Ranked
from ua_memory.recall.asked import Asked
from ua_memory.recall.keyword import inverse

COMMON = 200
"""Who stands in more items than this says too little about which is meant, and would flood the rest."""

LEAST = 2.0
"""So many times oftener than chance must a name stand beside the query's to lead on."""

BESIDE, BRIDGES, HOPS = 128, 8, 20
"""Names beside the query's that are weighed, the most frequent; those that lead on; items they lead to."""

LINKED = 0.8
"""How much of the way to its seed an item goes whose bond is 1: what stands beside in a talk lends as much
(`rerank.BEFORE`). On 40 made-up questions over two facts each, among 1,200, the second is among the first ten
hits of 27, of none without."""

NEARER = 3
"""Items that are moved so: the rest stands where its own words put it."""

TIE = 1e-6
"""The last digit of a score: so far it stays below a seed."""

BELOW = 0.9
"""What the closest bound counts beside the least of the seeds: less than any of them."""


@dataclass(frozen=True, slots=True)
class Bridge:
    """A name that leads on: how closely it is bound to the query's, 0 to 1, and the seeds it stands in."""

    name: str
    bond: float
    seeds: tuple[str, ...]


def find(words: Words, asked: Asked, limit: int, where: Filters) -> list[Found]:
    """The items with most of the query's rare names, then those one step on. Empty where it names nobody, or
    only the common."""
    rare = {name: count for name, count in asked.named.every.items() if count <= COMMON}
    if not rare:
        return []
    total, worth = words.count(), defaultdict[str, float](float)
    numbers: dict[str, int] = {}
    for name, key, number in _items(words, rare, where):
        worth[key] += inverse(rare[name], total)
        numbers[key] = number
    seeds = sorted(worth, key=lambda key: (-worth[key], key))[:limit]
    room = min(HOPS, limit - len(seeds))
    bridges = _bridges(words, asked, {numbers[key]: key for key in seeds}, total) if room > 0 else []
    hops = _hops(words, bridges, worth.keys(), where)
    far = sorted(hops, key=lambda key: (-hops[key].bond, key))[:room]
    least = min((worth[key] for key in seeds), default=0.0)
    found = []
    for rank, item in enumerate(words.get([*seeds, *far]), 1):
        hop = hops.get(item.key)
        if hop:
            score = BELOW * least * hop.bond
            found.append(Found(item, rank, round(score, 6), hop.seeds, hop.bond))
        else:
            found.append(Found(item, rank, round(worth[item.key], 6)))
    return found


def linked(ranked: Sequence[Ranked], found: Sequence[Found]) -> list[Ranked]:
    """Hits, best first, the best of what the entity arm found at one remove nearer to the seed it hangs on.

    It answers what its seed leaves open of the query. No seed that scores above it by itself is passed.
    """
    far = {one.item.key: one for one in found if one.seeds}
    if not far:
        return list(ranked)
    seeds = {one.item.key for one in found} - far.keys()
    scores = {one.item.key: one.score for one in ranked if one.item.key in seeds}
    lifted, left = [], NEARER
    for one in ranked:
        hop = far.get(one.item.key)
        best = max((scores.get(key, 0.0) for key in hop.seeds), default=0.0) if hop else 0.0
        if hop and left and best > one.score:
            above = min(score for score in scores.values() if score > one.score)
            score = min(one.score + LINKED * hop.bond * (best - one.score), above - TIE)
            one = _raised(one, score)
            left -= 1
        lifted.append(one)
    return sorted(lifted, key=lambda one: -one.score)


def _raised(one: Ranked, score: float) -> Ranked:
    score = max(one.score, round(score, 6))
    return one._replace(score=score, parts={**one.parts, "linked": round(score - one.score, 4)})


def _items(words: Words, names: Iterable[str], where: Filters) -> Iterable[tuple[str, str, int]]:
    """(name, key, number) of each item that has one of the names and passes."""
    condition, values = where.sql()
    for part in chunks(sorted(names)):
        yield from words.db.execute(
            "SELECT names.name, items.key, items.rowid FROM names JOIN items ON items.rowid = names.item"
            f" WHERE names.name IN ({marks(part)}) AND {condition}", (*part, *values)
        )  # fmt: skip


def _bridges(words: Words, asked: Asked, seeds: Mapping[int, str], total: int) -> list[Bridge]:
    """The names beside the query's that lead on, the closest bound first: by their normalised pointwise
    mutual information with it (Bouma 2009). `seeds` has the keys of items by their numbers."""
    beside = defaultdict[str, list[str]](list)
    for part in chunks(sorted(seeds)):
        sql = f"SELECT name, item FROM names WHERE item IN ({marks(part)}) AND how > {links.OPENING}"
        for name, item in words.db.execute(sql, part):
            if name not in asked.named.every:
                beside[name].append(seeds[item])
    names = sorted(beside, key=lambda name: (-len(beside[name]), name))[:BESIDE]
    counts = _counts(words, names)
    bridges = []
    for name in names:
        both, there = len(beside[name]), counts[name]
        if both < there <= COMMON and both * total >= LEAST * there * len(seeds):
            bond = math.log(both * total / (there * len(seeds))) / math.log(total / both)
            bridges.append(Bridge(name, round(min(bond, 1.0), 6), tuple(sorted(beside[name]))))
    return sorted(bridges, key=lambda one: (-one.bond, one.name))[:BRIDGES]


def _counts(words: Words, names: Sequence[str]) -> Mapping[str, int]:
    """{name: in how many items it stands}, counted no further than it is of use."""
    found: dict[str, int] = {}
    for part in chunks(list(names), 250):
        rows = f"(VALUES {','.join(['(?)'] * len(part))})"
        counted = f"(SELECT count(*) FROM (SELECT 1 FROM names WHERE name = column1 LIMIT {COMMON + 1}))"
        found.update(words.db.execute(f"SELECT column1, {counted} FROM {rows}", part))
    return found


def _hops(
    words: Words, bridges: Sequence[Bridge], seeds: Collection[str], where: Filters
) -> dict[str, Bridge]:
    """{key of an item: the closest bound name that leads to it}."""
    found: dict[str, Bridge] = {}
    by_name = {one.name: one for one in bridges}
    for name, key, _ in _items(words, by_name, where):
        if key not in seeds and (key not in found or found[key].bond < by_name[name].bond):
            found[key] = by_name[name]
    return found
