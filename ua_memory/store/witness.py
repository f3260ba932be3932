"""What a live watch spares a look at the files: the last one stands while nothing is heard to have happened,
and is carried on by what was touched.

Only the daemon has one. A mark is asked for before the look it belongs to, so that what happens during the
look counts as after it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Look = TypeVar("Look")

Marks = Callable[[], int | None]
"""How many changes have been heard of, all that ended before the call among them; None if nobody knows."""
Heard = Callable[[int], frozenset[bytes] | None]
"""The names of the files, below the bank's root, that were touched since a mark, and of nothing else; None
if something else was, or nobody knows."""


class Witness(Generic[Look]):
    """The newest look at the files of one bank, and the mark that it began with."""

    def __init__(self, marks: Marks, heard: Heard = lambda _: None) -> None:
        self.marks, self._heard = marks, heard
        self.spared = 0
        """So many looks were not needed."""
        self._at: int | None = None
        self._look: Look | None = None

    def last(self, at: int | None) -> tuple[Look | None, frozenset[bytes] | None]:
        """The last look, and what was touched from before it until the mark `at` or later; None where that is
        not known."""
        if at is None or self._at is None:
            return self._look, None
        return self._look, frozenset() if at == self._at else self._heard(self._at)

    def keep(self, look: Look, at: int | None) -> None:
        """Remember a look that began after the mark `at`."""
        self._look, self._at = look, at

    def forget(self) -> None:
        """Have the next one look at every file, whatever is heard."""
        self._at = None
