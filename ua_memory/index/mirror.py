"""The vectors of a small bank in memory: the nearest by one product of a matrix, exactly.

Chroma stays the index of record; this is a copy of what it holds, for a process that is asked again and
again. Of 1,000 texts the nearest take 0.2 ms, of 10,000 one to two; Chroma 2 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ua_memory.index.cache import Cache
    from ua_memory.index.words import Words

    Row = NDArray[np.float32]

MOST = 20_000
"""Texts; 30 MB. Beyond that Chroma's graph is as fast."""
SPARE = 256
"""Rows that are made ready at a time."""
CLOSE = 2e-6
"""Cosines that may be equal in six digits."""


def all_of(words: Words, cache: Cache, model: str) -> dict[str, Row]:
    """The vectors of all texts, if they are few enough and the cache lacks none; else nothing."""
    names = words.text_ids()
    found = cache.get(model, sorted(names)) if len(names) <= MOST else {}
    return found if len(found) == len(names) else {}


class Mirror:
    """{name: vector}, of length 1; a row of zeros means nothing and is left out."""

    def __init__(self, vectors: Mapping[str, Row]) -> None:
        import numpy as np

        self._names: list[str] = []
        self._at: dict[str, int] = {}
        width = len(next(iter(vectors.values()))) if vectors else 0
        self._rows = np.zeros((len(vectors) + SPARE, width), dtype=np.float32)
        self.upsert(vectors)

    def __len__(self) -> int:
        return len(self._names)

    def upsert(self, vectors: Mapping[str, Row]) -> None:
        """Add or replace."""
        import numpy as np

        for name, row in vectors.items():
            length = float(np.linalg.norm(row))
            if not length:
                continue
            at = self._at.get(name)
            if at is None:
                at = self._at[name] = len(self._names)
                self._names.append(name)
                if at >= len(self._rows):
                    more = np.zeros((SPARE, len(row)), dtype=np.float32)
                    self._rows = np.concatenate([self._rows, more]) if self._rows.size else more
            self._rows[at] = row / length

    def delete(self, names: Sequence[str]) -> None:
        """Drop texts; the last row takes the place of each. Unknown names are none of our business."""
        for name in names:
            at = self._at.pop(name, None)
            if at is None:
                continue
            last = self._names.pop()
            if last != name:
                self._names[at], self._at[last] = last, at
                self._rows[at] = self._rows[len(self._names)]

    def query(self, vector: Row, limit: int) -> list[tuple[str, float]]:
        """The nearest texts as (name, cosine), best first, equal ones by name: as Chroma's are given."""
        import numpy as np

        if not self._names or limit < 1:
            return []
        found = self._rows[: len(self._names)] @ (vector / max(float(np.linalg.norm(vector)), 1e-12))
        rows = np.arange(len(found))
        if limit < len(found):
            least = np.partition(found, len(found) - limit)[len(found) - limit]
            rows = np.flatnonzero(found >= least - CLOSE)
        near = [(self._names[row], round(float(found[row]), 6)) for row in rows.tolist()]
        return sorted(near, key=lambda hit: (-hit[1], hit[0]))[:limit]
