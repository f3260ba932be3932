"""The temporal arm: items of the days that the query means, the newest first. And hits in order of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ua_memory.index.filters import Filters
from ua_memory.index.words import Words
from ua_memory.recall.arms import Found
from ua_memory.recall.asked import Window

if TYPE_CHECKING:
    from ua_memory.dates import Order
    from ua_memory.recall.fuse import Fused
    from ua_memory.recall.rerank import Ranked

BAND = 0.1
"""So far below the best a hit may score and still be taken for as good an answer. On the development data the
next turn that answers a question lies 0.09 below the best of them in half the cases, the fifth hit 0.14."""


def find(words: Words, window: Window | None, limit: int, where: Filters) -> list[Found]:
    """The items in the window; empty without one. The score is 1: a day is meant or is not."""
    if window is None:
        return []
    condition, values = where.sql()
    rows = words.db.execute(
        f"SELECT key FROM items WHERE date >= ? AND date != '' AND (? = '' OR date < ?) AND {condition}"
        " ORDER BY date DESC, path, line LIMIT ?",
        (window.start, window.end, window.end, *values, limit),
    )
    return [Found(item, rank, 1.0) for rank, item in enumerate(words.get([key for (key,) in rows]), 1)]


def in_time(ranked: Sequence[Ranked | Fused], order: Order) -> list[Ranked | Fused]:
    """Hits, best first, with those as good as the best (`BAND`) in order of time; of one day, by score.

    What has no date comes after what has one. Who is named in the best hit must be named in the others too:
    the latest of somebody else is not what was asked for. The places' scores stay, so that they still fall;
    what a hit gains or loses by it is its part `order`.
    """
    near = [n for n, one in enumerate(ranked) if _as_good(one, ranked[0])]
    dated = [n for n in near if ranked[n].item.date]
    dated.sort(key=lambda n: ranked[n].item.date, reverse=order == "latest")
    placed = list(ranked)
    for at, n in zip(near, [*dated, *(n for n in near if not ranked[n].item.date)], strict=True):
        one, score = ranked[n], ranked[at].score
        placed[at] = replace(one, score=score, parts={**one.parts, "order": round(score - one.score, 4)})
    return placed


def _as_good(one: Ranked | Fused, best: Ranked | Fused) -> bool:
    return one.score >= best.score - BAND and one.parts.get("named", 0) >= best.parts.get("named", 0)
