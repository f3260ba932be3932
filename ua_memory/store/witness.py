"""What a live watch spares a look at the files: the last one stands while nothing is heard to have happened.

Only the daemon has one. A mark is asked for before the look it belongs to, so that what happens during the
look counts as after it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Look = TypeVar("Look")

Marks = Callable[[], int | None]
"""How many changes have been heard of, all that ended before the call among them; None if nobody knows."""


class Witness(Generic[Look]):
    """The newest look at the files of one bank, and the mark that it began with."""

    def __init__(self, marks: Marks) -> None:
        self.marks = marks
        self.spared = 0
        """So many looks were not needed."""
        self._at: int | None = None
        self._look: Look | None = None

    def standing(self, at: int | None) -> Look | None:
        """The last look, if nothing has happened from before it until the mark `at`."""
        if at is None or at != self._at or self._look is None:
            return None
        self.spared += 1
        return self._look

    def keep(self, look: Look, at: int | None) -> None:
        """Remember a look that began after the mark `at`."""
        self._look, self._at = look, at

    def forget(self) -> None:
        """Have the next one look, whatever is heard."""
        self._look = self._at = None
