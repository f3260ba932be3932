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
from ua_memory.index.reading import Caught, Stop
from ua_memory.index.tables import chunks
from ua_memory.index.vectors import Mark, Rows
from ua_memory.index.words import Words

Progress = Callable[[int, int], None]
AT_A_TIME = 500
"""Vectors put from the cache into Chroma between two looks at the time: some 0.4 s."""


def wanted(words: Words, model: str) -> Mark:
    """The mark of vectors that stand for the words as they are."""
    return Mark(words.epoch, words.generation, model)


def catch_up(
    words: Words, vectors: Rows, cache: Cache, embeds: Embeds, progress: Progress | None = None,
    stop: Stop | None = None,
) -> Caught:  # fmt: skip
    """Make the vectors those of the words' texts; at `stop` it ends with those done so far."""
    goal, mark = wanted(words, embeds.model), vectors.mark
    if mark == goal:
        return Caught()
    work = _Work(words, vectors, cache, embeds, goal, progress, stop)
    if (mark.model, mark.layout) != (goal.model, goal.layout):
        if vectors.count():
            vectors.wipe()
        vectors.set_mark(work.partly)
    elif mark.epoch == goal.epoch and 0 <= mark.generation < goal.generation:
        return work.do(words.touched(mark.generation))
    there, here = words.text_ids(), vectors.names()
    return work.do(sorted(there ^ here))


class _Work:
    """Bringing some texts' vectors up to date with the words."""

    def __init__(
        self, words: Words, vectors: Rows, cache: Cache, embeds: Embeds, goal: Mark,
        progress: Progress | None, stop: Stop | None,
    ) -> None:  # fmt: skip
        self.words, self.vectors, self.cache, self.embeds = words, vectors, cache, embeds
        self.goal, self.progress, self.stop = goal, progress, stop
        self.partly = Mark(goal.epoch, -1, goal.model)
        """What vectors stand for of which only the names can tell."""

    def do(self, names: list[str]) -> Caught:
        """Texts that are gone first, then those that need no model, then the rest; at last, say so."""
        texts = self.words.texts(names)
        self.vectors.delete([name for name in names if name not in texts])
        missing = self.cache.missing(self.embeds.model, sorted(texts))
        left, embedded = self._put(sorted(texts.keys() - set(missing))), 0
        if not left:
            embedded = self._embed(missing, texts)
        left += len(missing) - embedded
        # Where some are left, the journal would begin again where it began this time.
        self.vectors.set_mark(self.partly if left else self.goal)
        if not left:
            with contextlib.suppress(
                sqlite3.OperationalError
            ):  # another process writes: the journal is cut next time
                self.words.cut_journal(self.goal.generation)
        return Caught(embedded, left)

    def _put(self, names: list[str]) -> int:
        """Take vectors from the cache; how many were left at `stop`."""
        left = len(names)
        for part in chunks(names, AT_A_TIME):
            self.vectors.upsert(self.cache.get(self.embeds.model, part))
            left -= len(part)
            if left and self.stop and self.stop():
                break
        return left

    def _embed(self, names: list[str], texts: dict[str, str]) -> int:
        """Embed texts portion by portion, each into the cache before anything else: a kill costs one
        portion. How many were done."""
        done = 0
        # Closed at once when it is left: there may be a process behind it.
        with contextlib.closing(
            in_portions(self.embeds, [texts[name] for name in names], self.progress, whole=self.stop is None)
        ) as portions:
            for start, rows in portions:
                portion = dict(zip(names[start : start + len(rows)], rows, strict=True))
                self.cache.put(self.embeds.model, portion)
                self.vectors.upsert(portion)
                done = start + len(rows)
                if self.stop and done < len(names) and self.stop():
                    break
        return done
