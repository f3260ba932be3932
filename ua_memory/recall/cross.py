"""The last word on the order of the best hits, for those who have a cross-encoder (see `index.cross`)."""

from __future__ import annotations

from collections.abc import Sequence

from ua_memory.index.cross import CrossEncoder
from ua_memory.recall.arms import Ranked

READ = 30
"""So many of the best are read: on two cores a small model takes some tens of milliseconds for them."""


def crossed(model: CrossEncoder, query: str, found: Sequence[Ranked]) -> list[Ranked]:
    """The first READ in the model's order, the rest as they were. Raises CrossUnavailable.

    Its numbers mean something else with each model, so the scores stay those of the places: the best is as
    good as the best was before. What the model said stands in `parts`, under `cross`.
    """
    best, rest = found[:READ], found[READ:]
    if not best:
        return []
    texts = [" ".join(part for part in (one.item.context, one.item.text) if part) for one in best]
    said = model.scores(query, texts)
    order = sorted(range(len(best)), key=lambda n: -said[n])
    return [
        best[n]._replace(score=place.score, parts={**best[n].parts, "cross": round(said[n], 4)})
        for n, place in zip(order, best, strict=True)
    ] + list(rest)
