"""Why something is said: from a sentence to what it rests on, down to somebody's own words and their session.

Each step is a value of its own kind. What does not hold is a `Break` in its place, and the rest of the chain
is still told. Ids lead; the file in a link is where is looked first.
"""

from __future__ import annotations

from ua_memory.lineage.steps import BeliefStep, Chain, FactStep, Link, SentenceStep, Session, Step, Written
from ua_memory.lineage.tracing import why

__all__ = [
    "BeliefStep",
    "Chain",
    "FactStep",
    "Link",
    "SentenceStep",
    "Session",
    "Step",
    "Written",
    "why",
]
