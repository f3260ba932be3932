"""From what the arms found to one order and one score between 0 and 1. Pure arithmetic.

    meaning  m = (cosine - 0.1) / 0.9, not below 0
    words    w = 0.75 * share of the query's weight that the item has + 0.25 * min(1, BM25 / that weight)
    own      o = 1 - (1 - m) * (1 - 0.95 * w)
    all      a = 1 - (1 - o) * (1 - 0.2 * o of the item before) * (1 - 0.2 * o of the item after)
    score    s = a ** 0.85

Either arm alone can carry a hit: a cosine of 0.37 or three tenths of the query's words make 0.35. The
neighbours are those under the same heading: a reply answers what the line above it asked. The score is
absolute, so it can be compared across queries, and the order is that of the score; the last step only
places it, so that 0.35 parts good hits from others. The constants were picked among some ninety settings on
two development conversations, where most lie within a point of each other, which is noise. Scored offline,
over all items, R@10 is 71.9 with these, 71.7 with standardised scores added up, 60.9 with reciprocal ranks
and no neighbours; the search itself, which sees only its candidates, reaches 71.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ua_memory.index.items import Item
from ua_memory.recall.arms import Arms, Ranked

FLOOR = 0.1
"""Cosines of unrelated texts lie below this."""
WORDS_WEIGHT = 0.95
BM25_PART = 0.25
NEIGHBOUR = 0.2
PLACED = 0.85
RANKS = 60
"""What is added to a rank: the first places do not drown the rest."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a candidate: cosine (None without vectors), share of the query's weight, BM25."""

    item: Item
    cosine: float | None
    share: float
    bm25: float


def fuse(candidates: Sequence[Evidence], weight: float) -> list[Ranked]:
    """All candidates by score, ties by path and line. `weight` is the sum of the query's term weights."""
    own = {one.item.key: _own(one, weight) for one in candidates}
    at = {(one.item.path, one.item.seq): one.item for one in candidates}
    fused = []
    for one in candidates:
        meaning, words, alone = own[one.item.key]
        before = _beside(one.item, at.get((one.item.path, one.item.seq - 1)), own)
        after = _beside(one.item, at.get((one.item.path, one.item.seq + 1)), own)
        score = 1 - (1 - alone) * (1 - NEIGHBOUR * before) * (1 - NEIGHBOUR * after)
        parts = {"meaning": meaning, "words": words, "before": before, "after": after}
        fused.append(
            Ranked(one.item, round(score**PLACED, 6), {name: round(part, 4) for name, part in parts.items()})
        )
    return sorted(fused, key=lambda f: (-f.score, f.item.path, f.item.line, f.item.key))


def reciprocal(arms: Arms) -> list[Ranked]:
    """All that the arms found by the sum of 1 / (60 + rank), a first place in every arm being 1 (Cormack et
    al. 2009). It needs no scores, and loses what one arm alone is sure of."""
    items = {one.item.key: one.item for found in arms.values() for one in found}
    sums = dict.fromkeys(items, 0.0)
    for found in arms.values():
        for one in found:
            sums[one.item.key] += 1 / (RANKS + one.rank)
    most = sum(1 / (RANKS + 1) for found in arms.values() if found) or 1.0
    fused = [Ranked(item, round(sums[key] / most, 6), {}) for key, item in items.items()]
    return sorted(fused, key=lambda f: (-f.score, f.item.path, f.item.line, f.item.key))


def own_score(one: Evidence, weight: float) -> float:
    """A candidate's score by itself, without its neighbours."""
    return _own(one, weight)[2]


def _own(one: Evidence, weight: float) -> tuple[float, float, float]:
    meaning = max(0.0, ((one.cosine or 0.0) - FLOOR) / (1 - FLOOR))
    words = (1 - BM25_PART) * one.share + BM25_PART * min(1.0, one.bm25 / weight if weight else 0.0)
    return min(meaning, 1.0), words, 1 - (1 - min(meaning, 1.0)) * (1 - WORDS_WEIGHT * words)


def _beside(item: Item, other: Item | None, own: Mapping[str, tuple[float, float, float]]) -> float:
    if other is None or (other.heading, other.session) != (item.heading, item.session):
        return 0.0
    return own[other.key][2]
