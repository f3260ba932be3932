"""Hits in order of time, where the newest or the oldest is asked for: among good answers, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ua_memory.recall.arms import Ranked

if TYPE_CHECKING:
    from ua_memory.dates import Order

BAND = 0.1
"""So far below the best a hit may score and still be taken for as good an answer. On the development data the
next turn that answers a question lies 0.09 below the best of them in half the cases, the fifth hit 0.14."""


def in_time(ranked: Sequence[Ranked], order: Order) -> list[Ranked]:
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
        placed[at] = one._replace(score=score, parts={**one.parts, "order": round(score - one.score, 4)})
    return placed


def _as_good(one: Ranked, best: Ranked) -> bool:
    return one.score >= best.score - BAND and one.parts.get("named", 0) >= best.parts.get("named", 0)
