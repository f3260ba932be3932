"""Which lines of a transcript are the conversation: the path from its last leaf to its root.

Clients append to one file and let each entry name its parent, so that going back and saying something else
makes a fork. Kept per entry: three numbers of eight bytes, so that a million entries take 25 MB (ids in a
dict took five times that).
"""

from __future__ import annotations

from array import array

_NONE = 0
_LOOKS = 32
"""How many parents that are nowhere in the file are searched for before the rest is taken to be linear."""


def mark(text: str) -> int:
    """A number that stands for an id within this process."""
    return (hash(text) & 0xFFFF_FFFF_FFFF_FFFF) or 1


class Tree:
    """Entries in file order: what they are called, what they follow, and where they stand."""

    def __init__(self) -> None:
        self._ids, self._parents, self._lines = array("Q"), array("Q"), array("Q")
        self._group_of = array("Q")
        self._misses = 0
        self.on = bytearray()

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, id: str, parent: str, line: int, group: str = "", follows: bool = False) -> int:
        """One entry; its number. `group` is the API message it is part of.

        `follows` makes an entry without a parent continue the entry above it instead of beginning anew.
        """
        self._ids.append(mark(id))
        before = self._ids[-2] if follows and not parent and len(self._ids) > 1 else _NONE
        self._parents.append(mark(parent) if parent else before)
        self._lines.append(line)
        self._group_of.append(mark(group) if group else _NONE)
        return len(self._ids) - 1

    def walk(self, leaf: int) -> None:
        """Mark the path from this entry to the root: 1 in `on`, and 2 for what belongs to a message on it.

        Several tools called at once are written as a chain of records of one message, each result below its
        own call: the path runs through one of them, the others hang beside it. (Measured on the shared
        Claude Code transcripts: 4 calls and 26 results.)
        """
        self.on = bytearray(len(self._ids))
        at = leaf
        while at >= 0:
            self.on[at] = 1
            at = self._parent(at)
        current = _NONE
        for number, group in enumerate(self._group_of):
            if self.on[number]:
                current = group or current
            elif group and group == current:
                self.on[number] = 2

    def _parent(self, child: int) -> int:
        """The entry it follows, which always stands above it; -1 at the root.

        A parent that is nowhere above (its line is broken, or in another file) is replaced by the entry
        directly above: better a turn of a dropped branch than the loss of everything before.
        """
        want = self._parents[child]
        if want == _NONE or child == 0:
            return -1
        if self._ids[child - 1] == want:
            return child - 1
        lowest = -1 if self._misses < _LOOKS else max(-1, child - 1000)
        at = child - 2
        while at > lowest and self._ids[at] != want:
            at -= 1
        if at > lowest:
            return at
        self._misses += 1
        return child - 1

    def find(self, id: str) -> int:
        """The number of the entry called so, the last one if there are several; -1 if there is none."""
        want = mark(id)
        try:
            at = self._ids.index(want)
        except ValueError:
            return -1
        return next(n for n in range(len(self._ids) - 1, at - 1, -1) if self._ids[n] == want)

    def line(self, number: int) -> int:
        return self._lines[number] if number >= 0 else 0

    def last_read(self, id: str) -> int:
        """The line up to which the conversation has been read, if `id` was the last entry that was.

        For an entry on a dropped branch it is where that branch leaves the path. 0 if `id` is unknown.
        """
        at = self.find(id)
        while at >= 0 and not self.on[at]:
            at = self._parent(at)
        return self.line(at)

    def keep(self, flags: bytearray) -> None:
        """Flag the lines of the path."""
        for number, on in enumerate(self.on):
            if on:
                flags[self._lines[number]] = 1
