"""Bringing the vectors up to date with the words: by the journal, or by comparing all names.

Every step may be repeated: a kill between Chroma and the mark beside it costs the same upserts again,
from the cache.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ua_memory.index.bulk import in_portions
from ua_memory.index.cache import Cache
from ua_memory.index.embed import Embeds
from ua_memory.index.mark import Mark
from ua_memory.index.reading import Caught, Stop
from ua_memory.index.tables import chunks, marks
from ua_memory.index.talk import led
from ua_memory.index.vectors import Rows
from ua_memory.index.words import Words

if TYPE_CHECKING:
    from ua_memory.index.embed import Embedded

Progress = Callable[[int, int], None]
AT_A_TIME = 500
"""Vectors put from the cache into Chroma between two looks at the time: some 0.4 s."""


def wanted(words: Words, model: str, cache: Cache) -> Mark:
    """The mark of vectors that stand for the words as they are."""
    return Mark(words.epoch, words.generation, model, cache=cache.epoch)


def catch_up(
    words: Words, vectors: Rows, cache: Cache, embeds: Embeds, progress: Progress | None = None,
    stop: Stop | None = None,
) -> Caught:  # fmt: skip
    """Make the vectors those of the words' texts; at `stop` it ends with those done so far."""
    goal, mark = wanted(words, embeds.model, cache), vectors.mark
    if mark == goal:
        return Caught()
    work = _Work(words, vectors, cache, embeds, goal, progress, stop)
    if (mark.model, mark.layout) != (goal.model, goal.layout):
        if vectors.count():
            vectors.wipe()
        vectors.set_mark(work.partly)
    elif mark.cache != goal.cache:  # the cache was deleted or begun anew: it lacks what Chroma may have
        return work.do(sorted(words.text_ids() | vectors.names()))
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
        self.partly = Mark(goal.epoch, -1, goal.model, cache=goal.cache)
        """What vectors stand for of which only the names can tell."""

    def do(self, names: list[str]) -> Caught:
        """Texts that are gone first, then those that need no model, then the rest; at last, say so."""
        texts = self.words.texts(names)
        self.vectors.delete([name for name in names if name not in texts])
        missing = self.cache.missing(self.embeds.model, sorted(texts))
        left, caught = self._put(sorted(texts.keys() - set(missing))), Caught(0, len(missing))
        if not left:
            caught = embed(self.words, self.cache, self.embeds, missing, self.progress, self.stop, self._take)
        left += caught.left
        # Where some are left, the journal would begin again where it began this time.
        self.vectors.set_mark(self.partly if left else self.goal)
        if not left:
            with contextlib.suppress(
                sqlite3.OperationalError
            ):  # another process writes: the journal is cut next time
                self.words.cut_journal(self.goal.generation)
        return Caught(caught.embedded, left)

    def _put(self, names: list[str]) -> int:
        """Take vectors from the cache; how many were left at `stop`."""
        left = len(names)
        for part in chunks(names, AT_A_TIME):
            self.vectors.upsert(self.cache.get(self.embeds.model, part))
            left -= len(part)
            if left and self.stop and self.stop():
                break
        return left

    def _take(self, portion: Mapping[str, Embedded]) -> None:
        self.vectors.upsert({name: one.vector for name, one in portion.items()})


def embed(
    words: Words, cache: Cache, embeds: Embeds, missing: list[str], progress: Progress | None,
    stop: Stop | None, take: Callable[[Mapping[str, Embedded]], None] | None = None,
) -> Caught:  # fmt: skip
    """Embed texts portion by portion, each into the cache before anything else: a kill costs one portion.
    At `stop` it ends with those done so far."""
    runs = _runs(words, missing)
    names, left, done = [name for run in runs for name in run], set(missing), 0
    # Closed at once when it is left: there may be a process behind it.
    portions = in_portions(embeds, [list(run.values()) for run in runs], progress, whole=stop is None)
    with contextlib.closing(portions):
        for found in portions:
            portion = dict(zip(names[done : done + len(found)], found, strict=True))
            cache.put(embeds.model, portion)
            if take:
                take(portion)
            left -= portion.keys()
            done += len(found)
            if stop and left and stop():
                break
    return Caught(len(missing) - len(left), len(left))


def _runs(words: Words, names: list[str]) -> list[dict[str, str]]:
    """Each run that one of these texts is in, as {name: text} in its order; a text without is its own."""
    alone: list[dict[str, str]] = []
    wanted: set[str] = set()
    for part in chunks(names):
        query = f"SELECT run, vhash, heading, text FROM items WHERE vhash IN ({marks(part)}) GROUP BY vhash"
        for run, name, heading, text in words.db.execute(query, part):
            if run:
                wanted.add(run)
            else:
                alone.append({name: led(heading, text)})
    together: dict[str, dict[str, str]] = {}
    for part in chunks(sorted(wanted)):
        for run, name, text in words.db.execute(
            f"SELECT run, vhash, text FROM items WHERE run IN ({marks(part)}) ORDER BY run, path, seq", part
        ):
            together.setdefault(run, {}).setdefault(name, text)
    return [*alone, *together.values()]
