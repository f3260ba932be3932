"""A log read again, from about the line on which it differs from one that was just read.

An insert adds a line to its day. Its revision reads the day as it was and as it will be, and whatever an
editor saves meanwhile; of a day of thousands of facts all but the end is the same each time.

No block depends on a line behind the first one of the next block (`blocks`, `items`). So what was read before
a line stays as it was while that line and all before it are the same: records, problems, and the headings
that it stands under.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ua_memory.markdown.blocks import Block
from ua_memory.markdown.header import Header
from ua_memory.markdown.reader import Reader, Standing
from ua_memory.records import Problem

EVERY = 32
"""Blocks between two marks."""
KEPT = 4
"""Readings that are kept: as it was, as it will be, and two of an editor's."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A line, from 0, that reading can go on from, and what was found before it."""

    line: int
    records: int
    problems: int
    through: int
    headings: tuple[Standing, ...]


class Again(Reader):
    """A Reader that leaves marks, and goes on from those of another."""

    def __init__(self, path: str, lines: Sequence[str], header: Header) -> None:
        super().__init__(path, lines, header)
        self._marks: list[Mark] = []
        self._since = 0
        self._noted: tuple[Problem, ...] = ()

    def read(self) -> None:
        """Reads the file, from the last mark that a kept reading has before the first difference."""
        global _kept
        kept = _kept
        best = max(((self._shared(like), like) for like in kept), key=lambda one: one[0], default=(-1, self))
        if best[0] >= 0:
            self._go_on(best[1], best[1]._marks[best[0]])
        super().read()
        if self._marks:
            _kept = (self, *kept[: KEPT - 1])

    def _shared(self, like: Again) -> int:
        """The number of the last mark of another reading up to which, its line included, the two are the
        same; -1 for none."""
        if like.path != self.path or like.header != Header() or self.header != Header():
            return -1
        same = _alike(like.lines, self.lines)
        return bisect_right(like._marks, same - 1, key=lambda mark: mark.line) - 1

    def _go_on(self, like: Again, mark: Mark) -> None:
        self.start = mark.line
        self.records = like.records[: mark.records]
        self.problems = [*like._noted[: mark.problems]]
        self.through = like.through[: mark.through]
        self._headings = [*mark.headings]
        self._marks = [each for each in like._marks if each.line < mark.line]
        self._since = EVERY

    def _block(self, block: Block) -> None:
        if self._since >= EVERY and self.at_rest:
            found = len(self.records), len(self.problems), len(self.through)
            self._marks.append(Mark(block.start, *found, tuple(self._headings)))
            self._since = 0
        self._since += 1
        super()._block(block)

    def _same_ids(self) -> None:
        # Those of equal ids are found anew each time, and come last.
        self._noted = tuple(self.problems)
        super()._same_ids()


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines at the beginning are the same."""
    for number, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return number
    return min(len(one), len(other))


_kept: tuple[Again, ...] = ()
"""Newest first. Replaced as a whole: a daemon reads in several threads."""
