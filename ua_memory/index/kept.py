"""The nearest texts by the embeddings kept on this machine: exact, and slower the more there are.

For the time in which a Chroma server is away: what is new is embedded into the cache meanwhile, so that
nothing is embedded twice when it is back. And for a process beside the daemon, which has Chroma's folder open
and embeds what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ua_memory.index.cache import Cache
from ua_memory.index.embed import Embeds
from ua_memory.index.meaning import embed
from ua_memory.index.reading import Caught, Stop
from ua_memory.index.tables import chunks
from ua_memory.index.vectors import nearest_first
from ua_memory.index.words import Words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

AT_ONCE = 20_000
"""Rows compared in one go: some 30 MB."""


def kept(words: Words, cache: Cache, embeds: Embeds) -> Caught:
    """What has an embedding and what has none yet, which somebody else is about to make."""
    return Caught(0, len(cache.missing(embeds.model, sorted(words.text_ids()))))


def keep(
    words: Words, cache: Cache, embeds: Embeds, progress: Callable[[int, int], None] | None,
    stop: Stop | None = None,
) -> Caught:  # fmt: skip
    """Embed what has no embedding yet, portion by portion; at `stop` it ends with those done so far."""
    return embed(words, cache, embeds, cache.missing(embeds.model, sorted(words.text_ids())), progress, stop)


def nearest(
    words: Words, cache: Cache, model: str, vectors: Sequence[NDArray[np.float32]], limit: int
) -> list[list[tuple[str, float]]]:
    """For each vector the nearest texts as (name, cosine), best first, as `Vectors.query` has them."""
    import numpy as np

    best: list[list[tuple[str, float]]] = [[] for _ in vectors]
    asked = [vector / max(float(np.linalg.norm(vector)), 1e-12) for vector in vectors]
    for part in chunks(sorted(words.text_ids()), AT_ONCE):
        kept = {name: row for name, row in cache.get(model, part).items() if row.any()}
        if not kept:
            continue
        rows = np.stack(list(kept.values()))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        for number, vector in enumerate(asked):
            found = nearest_first(list(kept), 1.0 - rows @ vector)
            best[number] = sorted([*best[number], *found[:limit]], key=lambda hit: (-hit[1], hit[0]))[:limit]
    return best
