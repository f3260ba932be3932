"""Whose lines are whose: a machine's, which may go with what they rest on, or a person's."""

from __future__ import annotations

from collections.abc import Mapping

from ua_memory.history import MACHINE
from ua_memory.store import Store


class Owners:
    """The last author of each line, asked of the trail once for each file."""

    def __init__(self, store: Store, texts: Mapping[str, bytes]) -> None:
        self.store, self.texts = store, texts
        self._ours: dict[str, list[bool]] = {}

    def ours(self, path: str, line: int, end: int) -> bool:
        """Whether a machine wrote all of these lines last. Without a trail nobody knows: then they count as a
        person's."""
        if path not in self._ours:
            rows = self.store.history.blame(path, self.texts[path]) if self.store.history.exists else []
            self._ours[path] = [row.author == MACHINE[0] for row in rows]
        rows_ = self._ours[path][line - 1 : end]
        return bool(rows_) and all(rows_)
