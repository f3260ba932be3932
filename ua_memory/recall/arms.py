"""What an arm finds: items in the arm's own order, with the arm's own score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ua_memory.index.items import Item


class Found(NamedTuple):
    """An item that an arm found: its place in the arm's order (from 1) and the arm's score, higher better.

    What the entity arm found at one remove has the keys of those that lead to it in `seeds`, and in `bond`
    how closely, between 0 and 1.
    """

    item: Item
    rank: int
    score: float
    seeds: tuple[str, ...] = ()
    bond: float = 0.0


class Ranked(NamedTuple):
    """A candidate in an order: its score, between 0 and 1, and what that is made of, by name."""

    item: Item
    score: float
    parts: Mapping[str, float]


Arms: TypeAlias = Mapping[str, Sequence[Found]]
"""What each arm found, by the arm's name: 'semantic' (cosine), 'keyword' (BM25), 'entity', 'temporal'."""
