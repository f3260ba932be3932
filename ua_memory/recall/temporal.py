"""The temporal arm: items of the days that the query means, the newest first."""

from __future__ import annotations

from ua_memory.index.filters import Filters
from ua_memory.index.words import Words
from ua_memory.recall.arms import Found
from ua_memory.recall.asked import Window


def find(words: Words, window: Window | None, limit: int, where: Filters) -> list[Found]:
    """The items in the window; empty without one. The score is 1: a day is meant or is not."""
    if window is None:
        return []
    condition, values = where.sql()
    rows = words.db.execute(
        f"SELECT key FROM items WHERE date >= ? AND date != '' AND (? = '' OR date < ?) AND {condition}"
        " ORDER BY date DESC, path, line LIMIT ?",
        (window.start, window.end, window.end, *values, limit),
    )
    return [Found(item, rank, 1.0) for rank, item in enumerate(words.get([key for (key,) in rows]), 1)]
