"""Observations: what follows from several facts, with proofs, in `memory/observations/*.md`.

    beliefs = everyone(store)                      all of them, and the facts they may rest on
    with store.revision("consolidate", door=…) as draft:
        made = add(draft, "Alice buys by price.", [Ground(fact, "because it is cheaper")], today=today)
        strengthen, revise, retire, merge          what may become of one later; none deletes
    trend(days_of(made, beliefs.by_id), today)     new, strengthening, steady, weakening, stale
    freshness(made, beliefs.by_id, waiting)        whether facts have come or gone since it was considered

An observation without a proof, or with words that are not in the fact it cites, cannot be made.
docs/observations.md tells what its fields say. Opinions are of another kind and have a module of their own.
"""

from __future__ import annotations

from ua_memory.observations.evidence import (
    TRENDS,
    Ground,
    day_of,
    days_of,
    holds,
    scope_of,
    sources,
    stands,
    trend,
)
from ua_memory.observations.files import FOLDER
from ua_memory.observations.fresh import Freshness, freshness, speaks_of
from ua_memory.observations.reading import Beliefs, everyone, find
from ua_memory.observations.writing import (
    add,
    by_person,
    merge,
    retire,
    revise,
    strengthen,
    with_trend,
    without_lost,
)

__all__ = [
    "FOLDER",
    "TRENDS",
    "Beliefs",
    "Freshness",
    "Ground",
    "add",
    "by_person",
    "day_of",
    "days_of",
    "everyone",
    "find",
    "freshness",
    "holds",
    "merge",
    "retire",
    "revise",
    "scope_of",
    "sources",
    "speaks_of",
    "stands",
    "strengthen",
    "trend",
    "with_trend",
    "without_lost",
]  # fmt: skip
