"""The index of one bank: brought up to date before each search, rebuilt when anything is off.

Words come first and alone suffice. Vectors follow where Chroma, the model and the lock are to be had;
where not, the report says why, and answers come from words.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.errors import Busy
from ua_memory.index.manifest import Manifest
from ua_memory.index.reading import Reading, read_changes
from ua_memory.index.shelf import Shelf
from ua_memory.index.tables import SCHEMA_VERSION
from ua_memory.index.words import Words
from ua_memory.records import Problem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ua_memory.index.cache import Cache
    from ua_memory.index.embed import Embeds
    from ua_memory.index.vectors import Owner, Vectors
    from ua_memory.store import Store

Progress = Callable[[int, int], None]
READY = "ready"


@dataclass(frozen=True, slots=True)
class Refresh:
    """What a refresh did, in items. `semantic` is 'ready', or why there are no vectors."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    files: int = 0
    failed: tuple[Problem, ...] = ()
    seconds: float = 0.0
    semantic: str = READY
    embedded: int = 0
    notes: tuple[str, ...] = ()


class Index:
    """Words and vectors of a bank. One instance for one thread at a time; `close` when done.

    `embeds` replaces the embedder that `embedding` names.
    """

    def __init__(self, store: Store, *, embedding: str = "minilm-int8", embeds: Embeds | None = None) -> None:
        self.store, self.embedding = store, embedding
        self.shelf = Shelf(store.bank.index)
        self._given = embeds
        self._embeds: Embeds | None = embeds
        self._words: Words | None = None
        self._vectors: Vectors | None = None
        self._owner: Owner | None = None
        self._cache: Cache | None = None
        self._folder: Path | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._notes: list[str] = []

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what it is made of -----------------------------------------------------------------------------

    @property
    def words(self) -> Words:
        """The word index, opened or made; as the last refresh left it."""
        self._open_words()
        assert self._words
        return self._words

    @property
    def vectors(self) -> Vectors:
        """The vectors, opened by taking the lock. VectorsUnavailable says why not."""
        from ua_memory.index.vectors import Owner, Vectors, VectorsBroken, VectorsUnavailable, drop

        self._open_words()
        if self._folder is None:
            raise VectorsUnavailable("the index folder cannot be written")
        if self._vectors is None:
            self._owner = self._owner or Owner(self.shelf.folder / "owner.lock")
            self._owner.take()
            folder = self._folder / "chroma"
            try:
                try:
                    self._vectors = Vectors(folder)
                except VectorsBroken as error:
                    self._notes.append(f"{error}; rebuilt")
                    drop(folder)
                    self._vectors = Vectors(folder)
            except BaseException:
                self._owner.release()
                raise
        return self._vectors

    @property
    def embeds(self) -> Embeds:
        """The embedder. EmbeddingUnavailable says why not."""
        from ua_memory.index.embed import embedder

        self._embeds = self._embeds or embedder(self.embedding)
        return self._embeds

    @property
    def cache(self) -> Cache:
        """The embeddings kept by text."""
        from ua_memory.index.cache import Cache

        self._cache = self._cache or Cache(self.store.bank.cache)
        return self._cache

    def close(self) -> None:
        """Let go of all files and of the lock. What is used after it opens again."""
        self._close_vectors()
        if self._words:
            self._words.close()
        if self._cache:
            self._cache.close()
        if self._temporary:
            self._temporary.cleanup()
        self._words = self._cache = self._temporary = self._folder = None

    def _close_vectors(self) -> None:
        if self._vectors:
            self._vectors.close()
        if self._owner:
            self._owner.release()
        self._vectors = self._owner = None

    # -- bringing up to date -------------------------------------------------------------------------------

    def refresh(self, vectors: bool = True, progress: Progress | None = None) -> Refresh:
        """Make the index that of the files as they are. Never raises for what can be answered from words.

        `progress(done, all)` is called while texts are embedded.
        """
        began = time.perf_counter()
        self._notes = []
        reading = self._refresh_words()
        semantic, embedded = self._refresh_vectors(progress) if vectors else ("not asked for", 0)
        return Refresh(
            reading.added, reading.changed, reading.removed, reading.files, tuple(reading.failed),
            time.perf_counter() - began, semantic, embedded, tuple(self._notes),
        )  # fmt: skip

    def unchanged(self) -> bool:
        """Whether the words are those of the files as they are, by one stat of each."""
        self._open_words()
        return Manifest(self.words.db, self.store.bank.root).unchanged()

    def rebuild(self, vectors: bool = True, progress: Progress | None = None) -> Refresh:
        """Make the whole index again beside the old one, from files and cache, then put it in its place.

        Busy while another process has the vectors open.
        """
        from ua_memory.index.vectors import Owner, VectorsUnavailable

        self.shelf.make()
        self._close_vectors()
        owner = Owner(self.shelf.folder / "owner.lock")
        try:
            owner.take()
        except VectorsUnavailable as error:
            raise Busy(str(error), where=str(self.shelf.folder), mend="stop the daemon, or try again") from error
        with self.shelf.building():
            fresh = self.shelf.next()
            self._use(Words(fresh / "words.db"), fresh)
            self._owner = owner
            report = self._filled(vectors, progress)
            self.shelf.publish(fresh)
            self.shelf.sweep()
        return report

    def _filled(self, vectors: bool, progress: Progress | None) -> Refresh:
        """Refresh the generation in hand, which is not the current one yet."""
        began = time.perf_counter()
        self._notes = []
        try:
            reading = read_changes(self.store, self.words, self.shelf.folder, self._masked)
            semantic, embedded = self._refresh_vectors(progress) if vectors else ("not asked for", 0)
        except BaseException:
            self.close()
            raise
        return Refresh(
            reading.added, reading.changed, reading.removed, reading.files, tuple(reading.failed),
            time.perf_counter() - began, semantic, embedded, tuple(self._notes),
        )  # fmt: skip

    def _refresh_words(self) -> Reading:
        self._follow()
        for again in (True, False):
            try:
                if self.unchanged():
                    return Reading(files=self.words.files_known())
                return read_changes(self.store, self.words, self._folder or self._scratch(), self._masked)
            except sqlite3.DatabaseError as error:
                if not again or not broken(error):
                    self._notes.append(f"the word index could not be brought up to date: {error}")
                    return Reading()
                self._begin_anew(f"the word index was damaged ({error})")
        raise AssertionError("unreachable")

    def _refresh_vectors(self, progress: Progress | None) -> tuple[str, int]:
        from ua_memory.index import vectors as chroma
        from ua_memory.index.embed import EmbeddingUnavailable
        from ua_memory.index.meaning import catch_up

        for again in (True, False):
            try:
                return READY, catch_up(self.words, self.vectors, self.cache, self.embeds, progress)
            except chroma.VectorsBroken as error:
                if not again or self._folder is None:
                    return str(error), 0
                self._notes.append(f"{error}; rebuilt")
                self._drop_vectors()
            except (chroma.VectorsUnavailable, EmbeddingUnavailable) as error:
                return str(error), 0
            except (sqlite3.DatabaseError, OSError) as error:
                return f"the embedding cache cannot be used: {error}", 0
        raise AssertionError("unreachable")

    def _drop_vectors(self) -> None:
        from ua_memory.index.vectors import drop

        if self._vectors and self._folder:
            self._vectors.close()
            self._vectors = None
            drop(self._folder / "chroma")  # the lock is still ours

    def nearest(self, vectors: Sequence[NDArray[np.float32]], limit: int) -> list[list[tuple[str, float]]]:
        """For each vector the nearest texts as (name, cosine). VectorsUnavailable says why not."""
        return self.vectors.query(vectors, limit)

    # -- which generation ---------------------------------------------------------------------------------------

    def _open_words(self) -> None:
        if self._words is not None:
            return
        try:
            with self.shelf.building():
                folder = self.shelf.current()
                if folder is None:
                    folder = self.shelf.next()
                    self.shelf.publish(folder)
                self._use(self._opened(folder), folder)
        except (OSError, sqlite3.OperationalError) as error:
            self._notes.append(f"the index cannot be kept ({error}); all files are read each time")
            self._use(Words(":memory:"), None)

    def _opened(self, folder: Path) -> Words:
        """The words of a generation; of a fresh one if they are damaged or of another version (inside `building`)."""
        try:
            words = Words(folder / "words.db")
            if words.get_meta("schema") == SCHEMA_VERSION:
                return words
            words.close()
            self._notes.append("the index is of another version; rebuilt")
        except sqlite3.DatabaseError as error:
            if not broken(error):
                raise
            self._notes.append(f"the word index was damaged ({error}); rebuilt")
        for file in folder.glob("words.db*"):
            file.unlink()
        return Words(folder / "words.db")

    def _use(self, words: Words, folder: Path | None) -> None:
        if self._words:
            self._words.close()
        self._words, self._folder = words, folder

    def _follow(self) -> None:
        """Let go of a generation that was deleted, damaged beyond opening, or replaced by another process's."""
        if self._words is None or self._folder is None:
            return
        if self.shelf.current() != self._folder or not self._words.in_place():
            self._close_vectors()
            self._words.close()
            self._words = self._folder = None

    def _begin_anew(self, why: str) -> None:
        self._notes.append(f"{why}; rebuilt")
        self._close_vectors()
        if self._words:
            self._words.close()
        with self.shelf.building():
            fresh = self.shelf.next()
            self._words, self._folder = Words(fresh / "words.db"), fresh
            self.shelf.publish(fresh)

    def _scratch(self) -> Path:
        self._temporary = self._temporary or tempfile.TemporaryDirectory(prefix="ua-memory-")
        return Path(self._temporary.name)

    def _masked(self, text: str) -> str:
        from ua_memory.redaction import redact

        return redact(text, self.store.config.redact).text


def broken(error: sqlite3.Error) -> bool:
    """Whether an error means that the database is damaged, not that it is busy, full or read-only."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_IOERR) or (
        not code and not isinstance(error, sqlite3.OperationalError)
    )
