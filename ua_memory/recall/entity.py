"""The entity arm: items in which somebody or something stands that the query names."""

from __future__ import annotations

from collections import defaultdict

from ua_memory.index.filters import Filters
from ua_memory.index.tables import chunks, marks
from ua_memory.index.words import Words
from ua_memory.recall.arms import Found
from ua_memory.recall.asked import Asked
from ua_memory.recall.keyword import inverse

COMMON = 200
"""Who stands in more items than this says too little about which is meant, and would flood the rest."""


def find(words: Words, asked: Asked, limit: int, where: Filters) -> list[Found]:
    """The items with most of the query's rare names. Empty where it names nobody, or only the common."""
    rare = {name: count for name, count in asked.names.items() if count <= COMMON}
    total, worth = words.count(), defaultdict[str, float](float)
    condition, values = where.sql()
    for part in chunks(sorted(rare)):
        rows = words.db.execute(
            "SELECT names.name, items.key FROM names JOIN items ON items.rowid = names.item"
            f" WHERE names.name IN ({marks(part)}) AND {condition}", (*part, *values)
        )  # fmt: skip
        for name, key in rows:
            worth[key] += inverse(rare[name], total)
    best = sorted(worth, key=lambda key: (-worth[key], key))[:limit]
    return [Found(item, rank, round(worth[item.key], 6)) for rank, item in enumerate(words.get(best), 1)]
