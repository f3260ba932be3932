"""The index of one bank: brought up to date before each search, rebuilt when anything is off.

Words come first and alone suffice. Vectors follow where Chroma, the model and the lock are to be had;
where not, the report says why, and answers come from words.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.errors import Busy
from ua_memory.index.current import Current, broken
from ua_memory.index.manifest import Manifest
from ua_memory.index.outside import Files
from ua_memory.index.reading import READY, Caught, Reading, Refresh, Stop, read_changes
from ua_memory.index.shelf import Shelf, told
from ua_memory.index.words import Words
from ua_memory.turns import in_turn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ua_memory.index.cache import Cache
    from ua_memory.index.cross import CrossEncoder
    from ua_memory.index.embed import Embeds
    from ua_memory.index.server import Line
    from ua_memory.index.vectors import Owner, Rows
    from ua_memory.store import Store, Survey

Progress = Callable[[int, int], None]
NO_TIME = "there was no time left for the vectors"


class Index:
    """Words and vectors of a bank; `close` when done. `embeds` is used instead of the embedder that
    `embedding` names.

    Threads may share one. Its connections and Chroma serve one thread at a time, and a refresh puts other
    files in their place: who reads `words`, `vectors` or `cache`, or wants to find what it has just brought
    up to date, holds `turn` for as long as that takes. Within it nobody waits for the bank's lock, since who
    has that lock may be waiting for the turn.
    """

    def __init__(self, store: Store, *, embedding: str = "minilm-int8", embeds: Embeds | None = None) -> None:
        self.store, self.embedding, self.files = store, embedding, Files(store)
        self.shelf = Shelf(store.bank.index)
        self._current = Current(self.shelf)
        self._embeds: Embeds | None = embeds
        self._vectors: Rows | None = None
        self._line: Line | None = None
        self._owner: Owner | None = None
        self._cache: Cache | None = None
        self._cross: CrossEncoder | None = None
        self._given = embeds
        self.turn = threading.RLock()
        self.behind = False
        """Whether the last refresh was stopped before its end."""

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def use(self, store: Store) -> None:
        """Go on with the bank as it was opened anew: with its settings as they are now."""
        self.store = store
        self.files.use(store)

    @property
    def words(self) -> Words:
        """The word index, opened or made; as the last refresh left it."""
        return self._current.words

    @property
    def vectors(self) -> Rows:
        """The vectors: on the server that the owner named, else the folder's, opened by taking its lock.
        VectorsUnavailable says why not."""
        from ua_memory.index.chroma import VectorsUnavailable

        if self._current.folder is None:
            raise VectorsUnavailable("the index folder cannot be written")
        if self.store.now().year < 1970:
            raise VectorsUnavailable("the clock stands before 1970, which ends Chroma")
        if self._vectors is None:
            shared = self.store.config.chroma_url
            self._vectors = self._shared() if shared else self._own(self._current.folder)
        return self._vectors

    def _shared(self) -> Rows:
        from ua_memory.index.server import Line, Shared, machine

        self._line = self._line or Line(self.store.config.chroma_url)
        bank = self.store.bank
        mark = self.shelf.folder / "server.json"
        return Shared(self._line, self.store.config.id, machine(bank.state), self.embedding, mark)

    def _own(self, generation: Path) -> Rows:
        from ua_memory.index.vectors import Owner, owned

        self._owner = self._owner or Owner(self.shelf.folder / "owner.lock")
        return owned(generation / "chroma", self._owner, self._current.notes)

    @property
    def embeds(self) -> Embeds:
        """The embedder. EmbeddingUnavailable says why not."""
        from ua_memory.index.functions import embedder

        self._embeds = self._embeds or embedder(self.embedding)
        return self._embeds

    @property
    def ready(self) -> bool:
        """Whether the model is loaded, so that a query costs no more than the query."""
        return bool(getattr(self._embeds, "ready", False))

    @property
    def cross(self) -> CrossEncoder | None:
        """The owner's cross-encoder, if one is named; loaded when it is first asked."""
        folder = self.store.config.cross_encoder
        if not folder:
            return None
        from ua_memory.index.cross import CrossEncoder

        if self._cross is None or self._cross.folder != Path(folder):
            self._cross = CrossEncoder(Path(folder))
        return self._cross

    @property
    def cache(self) -> Cache:
        """The embeddings kept by text."""
        from ua_memory.index.cache import Cache

        self._cache = self._cache or Cache(self.store.bank.cache)
        return self._cache

    @in_turn
    def end(self) -> None:
        """Close, and let go of the models too."""
        self.close()
        self._embeds, self._cross = self._given, None

    @in_turn
    def close(self) -> None:
        """Let go of all files and of the lock. What is used after it opens again."""
        self._close_vectors()
        if self._cache:
            self._cache.close()
            self._cache = None
        self._current.close()

    def _close_vectors(self) -> None:
        if self._vectors:
            self._vectors.close()
        if self._owner:
            self._owner.release()
        self._vectors = self._owner = None

    # -- bringing up to date -------------------------------------------------------------------------------

    @in_turn
    def refresh(
        self, vectors: bool = True, progress: Progress | None = None, seen: Survey | None = None,
        stop: Stop | None = None,
    ) -> Refresh:  # fmt: skip
        """Make the index that of the files as they are. Never raises for what can be answered from words.

        `progress(done, all)` is called while texts are embedded. `seen` is a look that was just taken. At
        `stop` it ends with what it has, words before vectors.
        """
        began = time.perf_counter()
        reading = self._refresh_words(seen or self.store.survey(), stop)
        return self._report(began, reading, vectors, progress, stop)

    @in_turn
    def embed_first(self, names: list[str], progress: Progress | None = None) -> None:
        """Embed these texts before a refresh without the time for all; it tells why, where that fails."""
        from ua_memory.index.embed import EmbeddingUnavailable
        from ua_memory.index.meaning import embed

        with suppress(EmbeddingUnavailable, sqlite3.DatabaseError, OSError):
            wanted = self.cache.missing(self.embeds.model, names)
            embed(self.words, self.cache, self.embeds, wanted, progress, None)

    def _report(
        self, began: float, reading: Reading, vectors: bool, progress: Progress | None, stop: Stop | None
    ) -> Refresh:
        caught, semantic = Caught(), "not asked for"
        if vectors and reading.left:  # words first; what vectors there are will do if they are at hand
            semantic = READY if self._vectors else NO_TIME
        elif vectors:
            semantic, caught = self._refresh_vectors(progress, stop)
        self.behind = bool(reading.left or caught.left)
        notes, self._current.notes = (*self._current.notes, *self.files.notes), []
        return Refresh(
            reading.added, reading.changed, reading.removed, reading.files, tuple(reading.failed),
            time.perf_counter() - began, semantic, caught.embedded, notes, reading.left, caught.left,
        )  # fmt: skip

    @in_turn
    def unchanged(self, seen: Survey | None = None) -> bool:
        """Whether the words are those of the files as they are, by one stat of each."""
        there, manifest = (
            self.files.look(seen or self.store.survey(), self._current.scratch),
            Manifest(self.words.db),
        )
        return manifest.stands_for(there.proof) and manifest.masks() == self.files.masks

    @told
    @in_turn
    def rebuild(self, vectors: bool = True, progress: Progress | None = None) -> Refresh:
        """Make the whole index again beside the old one, from files and cache, then put it in its place. Busy
        while another process has the vectors open."""
        from ua_memory.index.chroma import VectorsUnavailable
        from ua_memory.index.vectors import Owner

        self.shelf.make()
        self._close_vectors()
        owner = Owner(self.shelf.folder / "owner.lock")
        try:
            owner.take()
        except VectorsUnavailable as error:
            raise Busy(str(error), where=str(self.shelf.folder), mend="stop the daemon, try again") from error
        began = time.perf_counter()
        with self.shelf.building():
            fresh = self.shelf.next()
            self._current.use(Words(fresh / "words.db"), fresh)
            self._owner = owner
            try:
                reading = read_changes(self.files, self.store.survey(), self.words, self.shelf.folder)
                report = self._report(began, reading, vectors, progress, None)
            except BaseException:
                self.close()
                raise
            self.shelf.publish(fresh)
            self.shelf.sweep()
        return report

    def _refresh_words(self, seen: Survey, stop: Stop | None) -> Reading:
        if self._current.stale():
            self._close_vectors()
            self._current.close()
        for again in (True, False):
            try:
                if self.unchanged(seen):
                    return Reading(files=self.words.files_known())
                return read_changes(self.files, seen, self.words, self._current.scratch, stop)
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                if not again or not broken(error):
                    self._current.notes.append(f"the word index could not be brought up to date: {error}")
                    return Reading()
                self._close_vectors()
                self._current.anew(f"the word index was damaged ({error})")
        raise AssertionError("unreachable")

    def _refresh_vectors(self, progress: Progress | None, stop: Stop | None) -> tuple[str, Caught]:
        from ua_memory.index import chroma
        from ua_memory.index.embed import EmbeddingUnavailable
        from ua_memory.index.meaning import catch_up
        from ua_memory.index.server import ServerAway

        for again in (True, False):
            try:
                return READY, catch_up(self.words, self.vectors, self.cache, self.embeds, progress, stop)
            except chroma.VectorsBroken as error:
                if not again or self._current.folder is None:
                    return str(error), Caught()
                self._current.notes.append(f"{error}; rebuilt")
                self._drop_vectors()
            except ServerAway as error:
                return self._keep(str(error), progress, stop)
            except chroma.VectorsElsewhere as error:
                return self._beside(str(error))
            except (chroma.VectorsUnavailable, EmbeddingUnavailable) as error:
                return str(error), Caught()
            except (sqlite3.DatabaseError, OSError) as error:
                return f"the embedding cache cannot be used: {error}", Caught()
        raise AssertionError("unreachable")

    def _keep(self, why: str, progress: Progress | None, stop: Stop | None) -> tuple[str, Caught]:
        """Do without Chroma: the embeddings kept here find the same, more slowly."""
        from ua_memory.index.embed import EmbeddingUnavailable
        from ua_memory.index.kept import keep

        try:
            caught = keep(self.words, self.cache, self.embeds, progress, stop)
        except (EmbeddingUnavailable, sqlite3.DatabaseError, OSError) as error:
            return f"{why}, and {error}", Caught()
        self._current.notes.append(f"{why}; compared with the embeddings kept here")
        return READY, caught

    def _beside(self, why: str) -> tuple[str, Caught]:
        """Do without what another process has open, where texts are few enough to be compared one by one."""
        from ua_memory.index import kept
        from ua_memory.index.embed import EmbeddingUnavailable

        if self.words.count() > kept.AT_ONCE:
            return why, Caught()
        try:
            return READY, kept.kept(self.words, self.cache, self.embeds)
        except (EmbeddingUnavailable, sqlite3.DatabaseError, OSError) as error:
            return f"{why}, and {error}", Caught()

    def _drop_vectors(self) -> None:
        from ua_memory.index.vectors import drop

        if self._vectors and self._current.folder:
            self._vectors.close()
            self._vectors = None
            drop(self._current.folder / "chroma")  # the lock is still ours

    @in_turn
    def nearest(self, vectors: Sequence[NDArray[np.float32]], limit: int) -> list[list[tuple[str, float]]]:
        """For each vector the nearest texts as (name, cosine). VectorsUnavailable says why not."""
        from ua_memory.index import kept
        from ua_memory.index.chroma import VectorsElsewhere
        from ua_memory.index.mirror import all_of
        from ua_memory.index.server import ServerAway

        try:
            if not self.behind:
                self.vectors.mirror(lambda: all_of(self.words, self.cache, self.embeds.model))
            return self.vectors.query(vectors, limit)
        except (ServerAway, VectorsElsewhere):
            return kept.nearest(self.words, self.cache, self.embeds.model, vectors, limit)
