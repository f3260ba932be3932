"""Bringing the vectors up to date with the words: by the journal, or by comparing all names.

Every step may be repeated: a kill between Chroma and the mark beside it costs the same upserts again,
from the cache.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable

from ua_memory.index.cache import Cache
from ua_memory.index.embed import Embeds, in_portions
from ua_memory.index.tables import chunks
from ua_memory.index.vectors import BATCH, Mark, Rows
from ua_memory.index.words import Words

Progress = Callable[[int, int], None]


def wanted(words: Words, model: str) -> Mark:
    """The mark of vectors that stand for the words as they are."""
    return Mark(words.epoch, words.generation, model)


def catch_up(
    words: Words, vectors: Rows, cache: Cache, embeds: Embeds, progress: Progress | None = None
) -> int:
    """Make the vectors those of the words' texts; how many texts went through the model."""
    goal, mark = wanted(words, embeds.model), vectors.mark
    if mark == goal:
        return 0
    if (mark.model, mark.layout) != (goal.model, goal.layout):
        if vectors.count():
            vectors.wipe()
        vectors.set_mark(Mark(goal.epoch, -1, goal.model))
    elif mark.epoch == goal.epoch and 0 <= mark.generation < goal.generation:
        return _apply(words, vectors, cache, embeds, goal, words.touched(mark.generation), progress)
    there, here = words.text_ids(), vectors.names()
    return _apply(words, vectors, cache, embeds, goal, sorted(there ^ here), progress)


def _apply(
    words: Words,
    vectors: Rows,
    cache: Cache,
    embeds: Embeds,
    goal: Mark,
    names: list[str],
    progress: Progress | None,
) -> int:
    """Bring these texts' vectors up to date, then say so."""
    texts = words.texts(names)
    vectors.delete([name for name in names if name not in texts])
    missing = cache.missing(embeds.model, sorted(texts))
    embedded = _embed(missing, texts, vectors, cache, embeds, progress)
    fresh = set(missing)
    for part in chunks([name for name in sorted(texts) if name not in fresh], BATCH):
        vectors.upsert(cache.get(embeds.model, part))
    vectors.set_mark(goal)
    with contextlib.suppress(
        sqlite3.OperationalError
    ):  # another process writes: the journal is cut next time
        words.cut_journal(goal.generation)
    return embedded


def _embed(
    names: list[str],
    texts: dict[str, str],
    vectors: Rows,
    cache: Cache,
    embeds: Embeds,
    progress: Progress | None,
) -> int:
    """Embed texts portion by portion, each into the cache before anything else: a kill costs one portion."""
    for start, rows in in_portions(embeds, [texts[name] for name in names], progress):
        portion = dict(zip(names[start : start + len(rows)], rows, strict=True))
        cache.put(embeds.model, portion)
        vectors.upsert(portion)
    return len(names)
