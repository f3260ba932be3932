"""The semantic arm: items whose text lies nearest to the query in the model's space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ua_memory.index.filters import Filters
from ua_memory.index.sync import Index
from ua_memory.index.terms import Query
from ua_memory.recall.arms import Found

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Row = NDArray[np.float32]

FEW = 2000
"""So many texts that pass a filter are compared one by one, exactly, without Chroma."""

WIDEST = 4096
"""More than this is not asked of Chroma at once."""


def find(
    index: Index, vector: Row, near: Sequence[tuple[str, float]], limit: int, where: Filters, query: Query
) -> list[Found]:
    """The nearest items that pass. `near` is what Chroma found for this query, best first."""
    if where or query.phrases:
        return _filtered(index, vector, limit, where, query)
    return _ranked(index, near, limit, where, query)


def _ranked(
    index: Index, near: Sequence[tuple[str, float]], limit: int, where: Filters, query: Query
) -> list[Found]:
    cosines = dict(near)
    items = index.words.by_text(list(cosines), where, query)
    items.sort(key=lambda item: (-cosines[item.vhash], item.path, item.line, item.key))
    return [Found(item, rank, cosines[item.vhash]) for rank, item in enumerate(items[:limit], 1)]


def _filtered(index: Index, vector: Row, limit: int, where: Filters, query: Query) -> list[Found]:
    names = index.words.allowed(where, query, FEW)
    if names is not None:
        return _ranked(index, list(cosines(index, vector, names).items()), limit, where, query)
    width = limit * 4
    while True:
        found = _ranked(index, index.nearest([vector], width)[0], limit, where, query)
        if len(found) >= limit or width >= WIDEST:
            return found
        width *= 4


def cosines(index: Index, vector: Row, names: Sequence[str]) -> dict[str, float]:
    """{name: cosine} of texts whose embedding is kept; exact, and rounded as the arm's own are."""
    import numpy as np

    kept = index.cache.get(index.embeds.model, names)
    if not kept:
        return {}
    rows = np.stack(list(kept.values())).astype(np.float64)
    lengths = np.maximum(np.linalg.norm(rows, axis=1) * float(np.linalg.norm(vector)), 1e-12)
    found = rows @ vector.astype(np.float64) / lengths
    return {name: round(float(cosine), 6) for name, cosine in zip(kept, found, strict=True)}
