"""How often a flush of waiting turns has been tried, when to try again, and when to give up.

What keeps a model from answering (no network, a limit, a rejected key) passes: it is tried for ever, ever
more seldom. What a session's own turns cause (a refusal, nonsense, a crash) does not: after some times the
session is set aside, until a person says to try again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ua_memory.errors import Malformed, ModelMisbehaved, ModelRefused, TooLarge, UaMemoryError, Usage

FIRST, MOST = 60.0, 3600.0
"""Seconds from a failure to the next try: doubled with each, up to the second."""
ENOUGH = 5
"""Failures of its own after which a session is set aside."""
_ITS_OWN = (ModelRefused, ModelMisbehaved, Malformed, TooLarge, Usage)
STOPPED = "it was stopped before it was done"
DIED = "the process that flushed it ended before it was done"


@dataclass(frozen=True, slots=True)
class Tries:
    """`count` tries have failed, the last for `reason`; `own` of them through the session's own turns.
    Before `again` it is not tried without being told to. `begun` is a try whose end nobody wrote down."""

    count: int = 0
    own: int = 0
    reason: str = ""
    again: datetime | None = None
    begun: bool = False

    @property
    def aside(self) -> bool:
        """Whether it is only tried when a person says so."""
        return self.own >= ENOUGH


def its_own(error: Exception) -> bool:
    """Whether an error comes from what is flushed, and not from what is around it."""
    return isinstance(error, _ITS_OWN) or not isinstance(error, UaMemoryError)


def told(rows: Iterable[Mapping[str, Any]]) -> Tries:
    """The tries that a session's record tells of."""
    found = Tries()
    for row in rows:
        if "failed" in row:
            own = found.own + bool(row.get("own"))
            again = datetime.fromisoformat(row["again"]) if row.get("again") else None
            found = Tries(found.count + 1, own, row["failed"], again)
        elif "begun" in row:
            found = Tries(found.count, found.own, found.reason, found.again, begun=True)
        elif "revived" in row:
            found = Tries(found.count, 0, found.reason)
    return found


def next_try(at: datetime, count: int, chance: float) -> datetime:
    """When to try again after `count` failures, the last one at `at`. `chance` is from 0 to 1: sessions that
    failed together are not to come back together."""
    wait = min(FIRST * 2.0 ** min(count - 1, 20), MOST)
    return at + timedelta(seconds=wait * (0.5 + chance / 2))
