"""A stale index may miss, never mislead: a hit is looked up in its file before it is shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from ua_memory.errors import UaMemoryError
from ua_memory.index.items import Item, lines_hash


class Files(Protocol):
    """What is asked of a store: a file's bytes, and those the trail holds in their place."""

    def read(self, path: str) -> bytes: ...
    def truth(self, path: str) -> bytes: ...


class Present:
    """The files as they are now, each read once a search."""

    def __init__(self, store: Files) -> None:
        self._store = store
        self._lines: dict[tuple[str, bool], list[bytes]] = {}

    def confirm(self, item: Item) -> Item | None:
        """The item where it stands now, or None if its lines are nowhere in its file."""
        # What the trail holds in place of a file costs a look at all files, so it comes second.
        return self._find(item, False) or self._find(item, True)

    def look(self, path: str) -> None:
        """Read a file, if it was not read yet."""
        self._read(path, False)

    def _find(self, item: Item, held: bool) -> Item | None:
        lines = self._read(item.path, held)
        count = item.end - item.line + 1
        if lines_hash(b"\n".join(lines[item.line - 1 : item.end])) == item.linehash:
            return item
        for start in range(len(lines) - count + 1):
            if lines_hash(b"\n".join(lines[start : start + count])) == item.linehash:
                return replace(item, line=start + 1, end=start + count)
        return None

    def _read(self, path: str, held: bool) -> list[bytes]:
        if (path, held) not in self._lines:
            try:
                data = self._store.truth(path) if held else self._store.read(path)
            except (UaMemoryError, OSError):
                data = b""
            lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
            self._lines[path, held] = [line.removesuffix(b"\r") for line in lines]
        return self._lines[path, held]
