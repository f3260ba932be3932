"""Whose lines are whose: a machine's, which may go with what they rest on, or a person's."""

from __future__ import annotations

from collections.abc import Mapping

from ua_memory.history import MACHINE
from ua_memory.store import Store


class Owners:
    """Who wrote each line, asked of the trail once for each file; of another history by `rev`."""

    def __init__(self, store: Store, texts: Mapping[str, bytes], rev: str = "HEAD") -> None:
        self.store, self.texts, self.rev = store, texts, rev
        self._ours: dict[str, list[bool]] = {}

    def ours(self, path: str, line: int, end: int) -> bool:
        """Whether a machine wrote all of these lines. Without a trail nobody knows: then they count as a
        person's."""
        if path not in self._ours:
            history = self.store.history
            rows = history.blame(path, self.texts[path], rev=self.rev) if history.exists else []
            self._ours[path] = [row.author == MACHINE[0] for row in rows]
        rows_ = self._ours[path][line - 1 : end]
        return bool(rows_) and all(rows_)
