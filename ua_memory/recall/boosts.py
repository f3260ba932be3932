"""What may decide between hits that answer about equally well: `search.boosts` names those that are on.

Each lifts a score by at most `EACH`, all together by at most `MOST`: a near tie is broken, an answer is never
buried. None is on by itself: on the conversations at hand recency gains less than one question can, and the
others cannot be measured, since nothing there has proofs, importance or another kind or origin.

What nobody of the house has said (`trust`) is lowered by `LOWERED`, always: beside an equal answer
of a person or an agent it stands behind it, and alone it is still found.

**Recency does not know what time it is.** It ranks the days of the candidates of one query, newest highest: a
memory is for years, and a bank that nobody has written to for five must answer as it did on its last day.
A peer's decay of thirty days left it 15 of 71 answers on a bank of three years.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ua_memory.index.items import Item
    from ua_memory.recall.arms import Ranked

EACH = 0.01
MOST = 0.02
"""On the development conversations neighbours among the first ten differ by 0.011 in the median, and the 30th
scores 0.27 less than the first: a boost is worth one place. At 0.05 recency costs 1.7 points of R@50."""

LOWERED = 0.05
"""About five places among the first ten."""

_KINDS = {"observation": 1.0, "model": 0.8, "core": 0.8, "page": 0.6, "fact": 0.5, "opinion": 0.4}
"""What somebody has thought over before what was noted, prose last."""
_TRUST = {"person": 1.0, "agent": 0.6, "tool": 0.6, "import": 0.3, "web": 0.2}
"""Who said it; what a compaction retold last."""

Worth = Callable[["Item"], float]
"""What an item gains by one boost, from 0 to 1."""


def _recency(items: Sequence[Item]) -> Worth:
    days = sorted({item.date for item in items if item.date})
    ranks = {day: number / len(days) for number, day in enumerate(days, 1)}
    return lambda item: ranks.get(item.date, 0.0)


def _proofs(item: Item) -> float:
    """One proof says a third, two a half: the tenth says little more than the ninth."""
    return len(item.proofs) / (len(item.proofs) + 2) if item.record == "observation" else 0.0


def _importance(item: Item) -> float:
    """What says nothing of it counts as middling."""
    return min(max(item.importance if item.importance is not None else 5, 0), 10) / 10


BOOSTS: Mapping[str, Callable[[Sequence[Item]], Worth]] = {
    "recency": _recency,
    "proofs": lambda _: _proofs,
    "importance": lambda _: _importance,
    "kind": lambda _: lambda item: _KINDS.get(item.record, 0.0),
    "trust": lambda _: lambda item: _TRUST.get(item.origin, 0.0),
}


def boosted(found: list[Ranked], names: Sequence[str]) -> list[Ranked]:
    """The candidates by their lifted scores; equal ones stay in the order they had."""
    if any(one.item.untrusted for one in found):
        found = sorted(map(_lowered, found), key=lambda one: -one.score)
    if not names:
        return found
    worths = {name: BOOSTS[name]([one.item for one in found]) for name in names}
    lifted = []
    for one in found:
        lifts = {name: EACH * worth(one.item) for name, worth in worths.items()}
        scale = min(1.0, MOST / (sum(lifts.values()) or 1.0))
        score = round(min(1.0, one.score + scale * sum(lifts.values())), 6)
        parts = {name: round(scale * lift, 4) for name, lift in lifts.items()}
        lifted.append(one._replace(score=score, parts={**one.parts, **parts}))
    return sorted(lifted, key=lambda one: -one.score)


def _lowered(one: Ranked) -> Ranked:
    if not one.item.untrusted:
        return one
    score = round(max(one.score - LOWERED, one.score / 2), 6)
    return one._replace(score=score, parts={**one.parts, "untrusted": round(score - one.score, 4)})
