"""Refresh the index before a search, rebuild it if damaged or of another version, and find facts by it."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ua_memory.discovery import INDEX_VERSION
from ua_memory.errors import Busy, CannotWrite, NotFound, UaMemoryError, Usage, checked
from ua_memory.git.process import filesystem_now
from ua_memory.index import embedding as index_embedding
from ua_memory.index import generations as index_generations
from ua_memory.index import items as index_items
from ua_memory.index import vectors as index_vectors
from ua_memory.index import words as index_words
from ua_memory.index.embedding import Cache, EmbeddingUnavailable, Embeds
from ua_memory.index.filters import LISTED_KINDS, Filters
from ua_memory.index.generations import Generations, IndexedFiles, KnownFile, Manifest
from ua_memory.index.items import chunks, lines_hash, open_read_only, placeholders
from ua_memory.index.outside import OutsideFiles, is_outside
from ua_memory.index.vectors import VectorMark, VectorStore
from ua_memory.index.words import CurrentIndex, DayCount, ItemCounts, WordIndex
from ua_memory.knowledge import facts as knowledge_facts
from ua_memory.knowledge import statements
from ua_memory.knowledge.facts import InsertResult, Provenance
from ua_memory.knowledge.lineage import CitingStep, split_by_citations, strip_citations
from ua_memory.knowledge.statements import Progress
from ua_memory.markdown import document, lines
from ua_memory.records import Fact, Origin, Place, Problem, ref_of
from ua_memory.store.files import RACY_NS, UNSEARCHED_MESSAGE, searchable_part
from ua_memory.store.lock import synchronized
from ua_memory.text.wording import untrusted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ua_memory.index.embedding import Embedded
    from ua_memory.index.items import IndexItem
    from ua_memory.knowledge.facts import FindEqual
    from ua_memory.knowledge.statements import Statement
    from ua_memory.store.draft import Result
    from ua_memory.store.files import FileStat
    from ua_memory.store.scan import FileSurvey
    from ua_memory.store.store import Store


# -- indexing files ----------------------------------------------------------------------------------------
# Files that differ from the manifest are read, parsed and put into the word index.
#
# A refresh is one transaction, so a kill leaves the index as it was before or after it. A file that cannot be
# read or parsed is reported and retried at the next refresh.


READY, NOT_REQUESTED = "ready", "not requested"
Stop = Callable[[], bool]
"""Whether the time is up. Called after each unit of work, so that every refresh makes progress."""
MIN_FILES_READ = 50
"""Files read between two checks of the time: a small bank is always read completely."""


def stop_after(seconds: float) -> Stop | None:
    """A `Stop` that returns true after this many seconds; None (no limit) for 0."""
    until = time.monotonic() + seconds
    return (lambda: time.monotonic() > until) if seconds else None


@dataclass(slots=True)
class Refresh:
    """The result of a refresh; `added`, `changed` and `removed` count items. `semantic` is 'ready' or why
    there are no vectors. If it was stopped, `left_files` changed files were not read and `left_texts` texts
    have no vector yet. `unread` are paths of the bank that could not be read."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    files: int = 0
    failed: list[Problem] = field(default_factory=list)
    seconds: float = 0.0
    semantic: str = READY
    embedded: int = 0
    notes: tuple[str, ...] = ()
    left_files: int = 0
    left_texts: int = 0
    unread: list[str] = field(default_factory=list)
    sessions_gone: bool = False


@dataclass(frozen=True, slots=True)
class CatchUp:
    """The result of updating the vectors: texts embedded by the model, and texts still without a vector."""

    embedded: int = 0
    left: int = 0


def read_changes(
    store: OutsideFiles, survey: FileSurvey, words: WordIndex, folder: Path, stop: Stop | None = None
) -> Refresh:
    """Update the word index from the files. `folder` is a writable one, to read the file system's clock.

    When `stop` returns true it ends with the files read so far; the most recently changed are read first.

    sqlite3.Error if the words cannot be written, and whatever the store raises if files cannot be listed.
    """
    manifest, seen = Manifest(words.db), store.survey(survey, folder)
    with words.writing():
        now = filesystem_now(folder)
        if manifest.masks() != store.masks:
            manifest.set_masks(store.masks)
        due, known, gone, total = _files_to_read(manifest, seen)
        done, read = Refresh(files=total), list[KnownFile]()
        for number, stat in enumerate(due):
            if number and not number % MIN_FILES_READ and stop and stop():
                done.left_files = sum(not _is_unchanged(rest, known.get(rest.path)) for rest in due[number:])
                break
            blob = seen.held.get(stat.path)
            read.append(_read_file(store, words, stat, known.get(stat.path), blob, now, done))
        complete = len(read) == len(due) and all(_is_settled(one, seen) for one in read)
        manifest.record(read)
        done.removed += sum(words.remove_file(path) for path in gone)
        if any(lines.kind_of(path) is lines.FileKind.ENTITIES for path in gone):
            index_items.replace_settled(words.db, (), store.masked)
        manifest.forget(gone)
        done.sessions_gone = any(store.is_session(path) for path in gone)
        if done.added or done.changed or done.removed:
            words.next_generation()
        manifest.set_proof(seen.proof if complete else "")
    return done


class _FilesToRead(NamedTuple):
    """The files to read, the manifest's rows of (at least) these, the deleted paths, the number of files."""

    read: list[FileStat]
    known: dict[str, KnownFile]
    gone: list[str]
    total: int


def _files_to_read(manifest: Manifest, seen: FileSurvey) -> _FilesToRead:
    """Which files to read. Where the survey knows what was touched since the manifest was sealed, only these
    are compared."""
    touched = seen.touched(manifest.proof())
    if touched is not None:
        due = [stat for stat in seen.stats_of(touched) if stat.path.endswith(".md")]
        return _FilesToRead(due, manifest.files(touched), [], manifest.count())
    files = {stat.path: stat for stat in seen.files if stat.path.endswith(".md")}
    known = manifest.files()
    racy = {path for path, before in known.items() if before.racy}
    due = [f for f in files.values() if f.path in racy or not _is_unchanged(f, known.get(f.path))]
    # Changed files before racy ones, the newest first.
    due.sort(key=lambda stat: (_is_unchanged(stat, known.get(stat.path)), -stat.changed_ns))
    return _FilesToRead(due, known, [path for path in known if path not in files], len(files))


def _is_settled(read: KnownFile, seen: FileSurvey) -> bool:
    """Whether a file was read and a later change would be noticed: by its stat, or since it is read again."""
    return not read.racy or (bool(read.hash) and read.path in seen.racy)


def _is_unchanged(stat: FileStat, before: KnownFile | None) -> bool:
    """Whether a file's stat is that of when it was read."""
    return before is not None and before.stamp == (stat.size, stat.mtime_ns, stat.ctime_ns, stat.inode)


def _read_file(
    store: OutsideFiles,
    words: WordIndex,
    stat: FileStat,
    before: KnownFile | None,
    blob: str | None,
    now: int,
    done: Refresh,
) -> KnownFile:
    digest, problems, failed = before.hash if before else "", before.problems if before else "", False
    try:
        data = store.blob(blob) if blob else store.read(stat.path)
        digest = index_generations.content_hash(data)
        if not before or before.hash != digest:
            items, problems = _parse_items(store, words, stat.path, data, done)
            added, changed, removed = words.replace_file(stat.path, items)
            done.added += added
            done.changed += changed
            done.removed += removed
    except (sqlite3.Error, MemoryError):
        raise
    except Exception as error:  # a bug or a bad file must not keep other files from being indexed
        failed = True
        if isinstance(error, CannotWrite) and not is_outside(stat.path):
            done.unread.append(stat.path)
        done.failed.append(Problem(stat.path, 1, f"not indexed: {error}"))
    racy = failed or max(stat.mtime_ns, stat.ctime_ns) >= now - RACY_NS
    return KnownFile(
        stat.path, stat.size, stat.mtime_ns, stat.ctime_ns, stat.inode, "" if failed else digest, racy,
        problems,
    )  # fmt: skip


def _parse_items(
    store: OutsideFiles, words: WordIndex, path: str, data: bytes, done: Refresh
) -> tuple[list[IndexItem], str]:
    """(items of a file, its problems as text). Also stores the names that it settles, and reports the part
    that is too long to be searched."""
    data, line = (data, 0) if store.is_session(path) else searchable_part(data)
    unsearched = [Problem(path, line, UNSEARCHED_MESSAGE)] if line else []
    done.failed += unsearched
    if lines.kind_of(path) is lines.FileKind.ENTITIES:
        index_items.replace_settled(words.db, document.parse(data, path).records, store.masked)
    items, problems = store.items(path, data, words.long_logs)
    return items, index_generations.dump_problems([*unsearched, *problems])


# -- index -------------------------------------------------------------------------------------------------
# The index of one bank: refreshed before each search, rebuilt when damaged.
#
# Words are updated first and suffice for a search. Vectors follow if Chroma, the model and the lock are
# available; otherwise the report says why, and search uses words only.


NO_TIME = "out of time before the vectors were updated"


class Index:
    """Words and vectors of a bank; `close` it when done. `embeds` replaces the embedder that `embedding`
    names.

    Threads may share one. Hold `lock` while you read `words`, `vectors` or `cache`, or to search exactly what
    you have refreshed: connections and Chroma serve one thread at a time, and a refresh may replace them. Do
    not wait for the bank's lock while you hold it: its holder may be waiting for this one.
    """

    def __init__(self, store: Store, *, embedding: str = "minilm-int8", embeds: Embeds | None = None) -> None:
        self.store, self.embedding, self.files = store, embedding, OutsideFiles(store)
        self.generations = Generations(store.bank.index)
        self._current = CurrentIndex(self.generations)
        self._embeds: Embeds | None = embeds
        self._vectors: VectorStore | None = None
        self._connection: index_vectors.ServerConnection | None = None
        self._owner: index_vectors.VectorLock | None = None
        self._cache: Cache | None = None
        self._cross: index_embedding.CrossEncoder | None = None
        self._given_embeds = embeds
        self.lock = threading.RLock()
        self.behind = False
        """Whether the last refresh was stopped before it was complete."""
        index = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _leave_to_parent(index()))

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def use(self, store: Store) -> None:
        """Switch to the bank reopened with its current settings."""
        self.store = store
        self.files.use(store)

    @property
    def words(self) -> WordIndex:
        """The word index, opened or created; as of the last refresh."""
        return self._current.words

    @property
    def vectors(self) -> VectorStore:
        """The vectors: on the configured server, else in the generation's folder, under its lock.
        VectorsUnavailable if they cannot be opened."""
        if self._current.folder is None:
            raise index_vectors.VectorsUnavailable(self._current.why)
        if self.store.now().year < 1970:
            raise index_vectors.VectorsUnavailable(
                "the clock is set before 1970, which Chroma does not support"
            )
        if self._vectors is None:
            url = self.store.config.chroma_url
            self._vectors = self._on_server() if url else self._in_folder(self._current.folder)
        return self._vectors

    def _on_server(self) -> VectorStore:
        self._connection = self._connection or index_vectors.ServerConnection(self.store.config.chroma_url)
        bank = self.store.bank
        mark = self.generations.folder / "server.json"
        return index_vectors.ServerVectors(
            self._connection, self.store.config.id, index_vectors.machine_id(bank.state), self.embedding, mark
        )

    def _in_folder(self, generation: Path) -> VectorStore:
        self._owner = self._owner or index_vectors.VectorLock(self.generations.folder / "owner.lock")
        return index_vectors.open_vectors(generation / "chroma", self._owner, self._current.notes)

    @property
    def embeds(self) -> Embeds:
        """The embedder. EmbeddingUnavailable if there is none."""
        self._embeds = self._embeds or index_embedding.embedder(self.embedding)
        return self._embeds

    @property
    def ready(self) -> bool:
        """Whether the model is loaded."""
        return bool(getattr(self._embeds, "ready", False))

    @property
    def cross(self) -> index_embedding.CrossEncoder | None:
        """The configured cross-encoder, loaded on first use."""
        folder = self.store.config.cross_encoder
        if not folder:
            return None
        if self._cross is None or self._cross.folder != Path(folder):
            self._cross = index_embedding.CrossEncoder(Path(folder))
        return self._cross

    @property
    def cache(self) -> Cache:
        """The embedding cache."""
        self._cache = self._cache or Cache(self.store.bank.cache)
        return self._cache

    @synchronized
    def end(self) -> None:
        """Close, and unload the models."""
        self.close()
        self._embeds, self._cross = self._given_embeds, None

    @synchronized
    def close(self) -> None:
        """Close all files and release the lock. A later call opens them again."""
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

    # -- refresh -------------------------------------------------------------------------------------------

    @synchronized
    def refresh(
        self, vectors: bool = True, progress: Progress | None = None, seen: FileSurvey | None = None,
        stop: Stop | None = None,
    ) -> Refresh:  # fmt: skip
        """Update the index from the files. Does not raise if only the vectors fail.

        `progress(done, total)` is called while texts are embedded. `seen` is a survey that was just taken.
        When `stop` returns true it ends with what it has, words before vectors.
        """
        began = time.perf_counter()
        reading = self._refresh_words(seen or self.store.survey(), stop)
        return self._report(began, reading, vectors, progress, stop)

    @contextmanager
    def refreshed(self) -> Iterator[WordIndex]:
        """The words, as they are in the files now, under the lock."""
        with self.lock:
            self.refresh(vectors=False)
            yield self.words

    @synchronized
    def embed_first(self, names: list[str], progress: Progress | None = None) -> None:
        """Embed these texts first, if a refresh has no time for all. It will report errors."""
        with suppress(EmbeddingUnavailable, sqlite3.DatabaseError, OSError):
            missing = self.cache.missing(self.embeds.model, names)
            embed(self.words, self.cache, self.embeds, missing, progress, None)

    def _report(
        self, began: float, done: Refresh, vectors: bool, progress: Progress | None, stop: Stop | None
    ) -> Refresh:
        """Update the vectors, and complete the report on the words."""
        caught, done.semantic = CatchUp(), NOT_REQUESTED
        if vectors and done.left_files:  # words first; vectors that are already open are used as they are
            done.semantic = READY if self._vectors else NO_TIME
        elif vectors:
            done.semantic, caught = self._refresh_vectors(progress, stop)
        if done.sessions_gone:  # nothing of a deleted session may stay, and its space is freed
            self.cache.keep_only(self.words.text_ids())
        self.behind = bool(done.left_files or caught.left)
        done.notes, self._current.notes = (*self._current.notes, *self.files.notes), []
        done.seconds = time.perf_counter() - began
        done.embedded, done.left_texts = caught.embedded, caught.left
        return done

    @synchronized
    def unchanged(self, seen: FileSurvey | None = None) -> bool:
        """Whether the words match the files, by one stat of each."""
        manifest = Manifest(self.words.db)
        survey = self.files.survey(seen or self.store.survey(), self._current.scratch)
        return manifest.matches(survey.proof) and manifest.masks() == self.files.masks

    @index_generations.io_as_cannot_write
    @synchronized
    def rebuild(self, vectors: bool = True, progress: Progress | None = None) -> Refresh:
        """Build a new index next to the old one, from files and embedding cache, then switch to it. Busy
        while another process has the vectors open, CannotWrite for errors of the file system."""
        self.generations.make_folder()
        self._close_vectors()
        owner = index_vectors.VectorLock(self.generations.folder / "owner.lock")
        try:
            owner.acquire()
        except index_vectors.VectorsUnavailable as error:
            raise Busy(
                str(error), where=str(self.generations.folder), hint="stop the daemon, try again"
            ) from error
        began = time.perf_counter()
        with self.generations.building():
            fresh = self.generations.next()
            self._current.use(WordIndex(fresh / "words.db"), fresh)
            self._owner = owner
            try:
                reading = read_changes(self.files, self.store.survey(), self.words, self.generations.folder)
                report = self._report(began, reading, vectors, progress, None)
            except BaseException:
                self.close()
                raise
            self.generations.publish(fresh)
            self.generations.sweep()
        return report

    def _refresh_words(self, seen: FileSurvey, stop: Stop | None) -> Refresh:
        if self._current.stale():
            self._close_vectors()
            self._current.close()
        for again in (True, False):
            try:
                if self.unchanged(seen):
                    return Refresh(files=Manifest(self.words.db).count())
                return read_changes(self.files, seen, self.words, self._current.scratch, stop)
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                if not again or not index_words.is_damaged(error):
                    self._current.notes.append(f"the word index could not be updated: {error}")
                    return Refresh(left_files=self._files_left(seen))
                self._close_vectors()
                self._current.reset(f"the word index was damaged ({error})")
        raise AssertionError("unreachable")

    def _files_left(self, seen: FileSurvey) -> int:
        """How many files a refresh would read; all if the manifest cannot be read."""
        try:
            survey = self.files.survey(seen, self._current.scratch)
            return len(_files_to_read(Manifest(self.words.db), survey).read)
        except sqlite3.DatabaseError:
            return len(seen.files)

    def _refresh_vectors(self, progress: Progress | None, stop: Stop | None) -> tuple[str, CatchUp]:
        for again in (True, False):
            try:
                return READY, catch_up(self.words, self.vectors, self.cache, self.embeds, progress, stop)
            except index_vectors.VectorsDamaged as error:
                if not again or self._current.folder is None:
                    return str(error), CatchUp()
                self._current.notes.append(f"{error}; rebuilt")
                self._drop_vectors()
            except (
                index_vectors.ServerUnavailable,
                index_vectors.VectorsForked,
                index_vectors.VectorsLocked,
            ) as error:
                return self._use_cache(error, progress, stop)
            except (index_vectors.VectorsUnavailable, EmbeddingUnavailable) as error:
                return str(error), CatchUp()
            except (sqlite3.DatabaseError, OSError) as error:
                return f"the embedding cache cannot be used: {error}", CatchUp()
        raise AssertionError("unreachable")

    def _use_cache(
        self, why: index_vectors.VectorsUnavailable, progress: Progress | None, stop: Stop | None
    ) -> tuple[str, CatchUp]:
        """Search the cache instead, more slowly. Without Chroma new texts are embedded into it; another
        process that has it open embeds them itself, and with too many texts only words are searched."""
        locked = isinstance(why, index_vectors.VectorsLocked)
        if locked and self.words.count() > COMPARE_BATCH:
            return str(why), CatchUp()
        try:
            missing = self.cache.missing(self.embeds.model, sorted(self.words.text_ids()))
            if locked:
                return READY, CatchUp(0, len(missing))
            caught = embed(self.words, self.cache, self.embeds, missing, progress, stop)
        except (EmbeddingUnavailable, sqlite3.DatabaseError, OSError) as error:
            return f"{why}, and {error}", CatchUp()
        self._current.notes.append(f"{why}; compared with the embeddings kept here")
        return READY, caught

    def _drop_vectors(self) -> None:
        if self._vectors and self._current.folder:
            self._vectors.close()
            self._vectors = None
            index_vectors.delete_vectors(self._current.folder / "chroma")  # the lock is still ours

    @synchronized
    def nearest(self, vectors: Sequence[NDArray[np.float32]], limit: int) -> list[list[tuple[str, float]]]:
        """For each vector the nearest texts as (text id, cosine), best first. VectorsUnavailable."""
        try:
            if not self.behind:
                self.vectors.mirror(
                    lambda: index_vectors.cached_vectors(self.words, self.cache, self.embeds.model)
                )
            return self.vectors.query(vectors, limit)
        except (index_vectors.ServerUnavailable, index_vectors.VectorsForked, index_vectors.VectorsLocked):
            return nearest(self.words, self.cache, self.embeds.model, vectors, limit)


def _leave_to_parent(index: Index | None) -> None:
    """In a forked process: give up the lock, and never close what the parent has open. Chroma and onnxruntime
    would wait, at exit at the latest, for threads that are not here."""
    from ctypes import py_object, pythonapi

    if index is not None:
        pythonapi.Py_IncRef(py_object(index))
        if index._owner:
            index._owner.release()


# -- updating vectors --------------------------------------------------------------------------------------
# Vectors are updated by the journal of the words, or by comparing all ids.
#
# Every step is idempotent: after a kill before the mark is written, the same upserts are repeated from the
# cache.


UPSERT_BATCH = 500
"""Vectors upserted from the cache between two checks of the time: 0.4 s."""


def catch_up(
    words: WordIndex, vectors: VectorStore, cache: Cache, embeds: Embeds, progress: Progress | None = None,
    stop: Stop | None = None,
) -> CatchUp:  # fmt: skip
    """Make the vectors match the words' texts; when `stop` returns true, end with those done so far."""
    goal = VectorMark(words.epoch, words.generation, embeds.model, cache=cache.epoch)
    mark = vectors.mark
    if mark == goal:
        return CatchUp()
    work = _VectorUpdate(words, vectors, cache, embeds, goal, progress, stop)
    if (mark.model, mark.layout) != (goal.model, goal.layout):
        if vectors.count():
            vectors.wipe()
        vectors.set_mark(work.partial)
    elif mark.cache != goal.cache:  # the cache was deleted or recreated: it lacks texts that Chroma has
        return work.run(sorted(words.text_ids() | vectors.names()))
    elif mark.epoch == goal.epoch and 0 <= mark.generation < goal.generation:
        return work.run(words.changed_texts(mark.generation))
    return work.run(sorted(words.text_ids() ^ vectors.names()))


class _VectorUpdate:
    """Updates the vectors of some texts."""

    def __init__(
        self, words: WordIndex, vectors: VectorStore, cache: Cache, embeds: Embeds, goal: VectorMark,
        progress: Progress | None, stop: Stop | None,
    ) -> None:  # fmt: skip
        self.words, self.vectors, self.cache, self.embeds = words, vectors, cache, embeds
        self.goal, self.progress, self.stop = goal, progress, stop
        self.partial = VectorMark(goal.epoch, -1, goal.model, cache=goal.cache)
        """The mark of an incomplete collection: the next update compares all ids."""

    def run(self, names: list[str]) -> CatchUp:
        """Delete removed texts, then upsert cached ones, then embed the rest; finally set the mark."""
        texts = self.words.texts(names)
        self.vectors.delete([name for name in names if name not in texts])
        missing = self.cache.missing(self.embeds.model, sorted(texts))
        left, done = self._upsert_cached(sorted(texts.keys() - set(missing))), CatchUp(0, len(missing))
        if not left:
            done = embed(self.words, self.cache, self.embeds, missing, self.progress, self.stop, self._upsert)
        left += done.left
        # If some are left, the journal would start again where it started this time.
        self.vectors.set_mark(self.partial if left else self.goal)
        if not left:
            # While another process writes, the journal is trimmed next time.
            with suppress(sqlite3.OperationalError):
                self.words.trim_journal(self.goal.generation)
        return CatchUp(done.embedded, left)

    def _upsert_cached(self, names: list[str]) -> int:
        """Upsert vectors from the cache. Returns how many were left when `stop` returned true."""
        left = len(names)
        for part in chunks(names, UPSERT_BATCH):
            self.vectors.upsert(self.cache.get(self.embeds.model, part))
            left -= len(part)
            if left and self.stop and self.stop():
                break
        return left

    def _upsert(self, batch: Mapping[str, Embedded]) -> None:
        self.vectors.upsert({name: text.vector for name, text in batch.items()})


def embed(
    words: WordIndex, cache: Cache, embeds: Embeds, missing: list[str], progress: Progress | None,
    stop: Stop | None, upsert: Callable[[Mapping[str, Embedded]], None] | None = None,
) -> CatchUp:  # fmt: skip
    """Embed texts in batches, each written to the cache before `upsert`, so that a kill loses one batch. When
    `stop` returns true, end with those done so far."""
    runs = _runs_of(words, missing)
    names, left, done = [name for run in runs for name in run], set(missing), 0
    batches = index_embedding.embed_in_batches(
        embeds, [list(run.values()) for run in runs], progress, whole=stop is None
    )
    with closing(batches):  # ends its child process, if it has one
        for found in batches:
            batch = dict(zip(names[done : done + len(found)], found, strict=True))
            cache.put(embeds.model, batch)
            if upsert:
                upsert(batch)
            left.difference_update(batch)  # `-=` would copy the set
            done += len(found)
            if stop and left and stop():
                break
    return CatchUp(len(missing) - len(left), len(left))


def _runs_of(words: WordIndex, names: list[str]) -> list[dict[str, str]]:
    """The runs that contain these texts, as {text id: text} in order; others are their own run."""
    single: list[dict[str, str]] = []
    shared_runs: set[str] = set()
    # Of a session's title only what its context has is embedded.
    title = "substr(context, 1, instr(context, char(10)) - 1)"
    heading = f"CASE record WHEN '{index_items.SESSION}' THEN {title} ELSE heading END"
    for part in chunks(names):
        query = f"SELECT run, vhash, {heading}, text FROM items WHERE vhash IN ({placeholders(part)})"
        for run, name, over, text in words.db.execute(f"{query} GROUP BY vhash", part):
            if run:
                shared_runs.add(run)
            else:
                single.append({name: index_items.with_heading(over, text)})
    together: dict[str, dict[str, str]] = {}
    for part in chunks(sorted(shared_runs)):
        for run, name, text in words.db.execute(
            f"SELECT run, vhash, text FROM items WHERE run IN ({placeholders(part)}) ORDER BY run, path, seq",
            part,
        ):
            together.setdefault(run, {}).setdefault(name, text)
    return [*single, *together.values()]


# -- state -------------------------------------------------------------------------------------------------
# The state of an index, read from its files without opening Chroma or acquiring a lock.


def is_missing(store: Store) -> bool:
    """Whether there is no index."""
    folder = Generations(store.bank.index).current()
    return folder is None or not (folder / "words.db").exists()


def state(store: Store) -> dict[str, object]:
    """{"state", "items", "files", "vectors"} of an index that can be read, else {"state"} with a "why" if it
    is damaged. `state` is 'ready', 'behind', 'none yet', 'of another version' or 'damaged'; `vectors` is
    'ready', 'behind' or 'none yet'."""
    folder = Generations(store.bank.index).current()
    if folder is None:
        return {"state": "none yet"}
    try:
        with closing(open_read_only(folder / "words.db")) as db:
            meta = dict(db.execute("SELECT name, value FROM meta WHERE name != 'proof'"))
            if meta.get("schema") != INDEX_VERSION:
                return {"state": "of another version"}
            return {
                "state": "ready" if Manifest(db).matches(_proof(store)) else "behind",
                "items": db.execute("SELECT count(*) FROM items").fetchone()[0],
                "files": db.execute("SELECT count(*) FROM files").fetchone()[0],
                "vectors": _vectors(folder, meta),
            }
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return {"state": "damaged", "why": str(error)}


@contextmanager
def open_indexed_files(store: Store) -> Iterator[IndexedFiles | None]:
    """The indexed files, opened read-only; None without an index of this version. sqlite3.Error."""
    folder = Generations(store.bank.index).current()
    if folder is None or not (folder / "words.db").exists():
        yield None
        return
    with closing(open_read_only(folder / "words.db")) as db:
        found = db.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
        current = found and found[0] == INDEX_VERSION and Manifest(db).masks() == OutsideFiles(store).masks
        yield IndexedFiles(db, store.survey().files) if current else None


def files_with_facts(store: Store, kind: str, origin: str) -> set[str] | None:
    """The files that may have current (not retired) facts of this kind and origin: those with some in the
    index, and those that changed since they were indexed. None without an index."""
    with suppress(sqlite3.Error), open_indexed_files(store) as known:
        if known is not None:
            paths = {one.path for one in store.survey().files}
            return paths - known.same.keys() | known.with_facts(kind, origin)
    return None


def _proof(store: Store) -> str:
    return OutsideFiles(store).survey(store.survey(), store.bank.cache).proof


def _vectors(folder: Path, meta: dict[str, str]) -> str:
    try:
        same = index_vectors.mark_matches(json.loads((folder / "chroma.json").read_text()), meta)
    except (OSError, ValueError, RecursionError):
        return "none yet"
    except (KeyError, TypeError):
        return "behind"
    return "ready" if same else "behind"


# -- searching the embedding cache -------------------------------------------------------------------------
# An exact nearest-neighbour search of the embedding cache, which takes time linear in the number of texts.
#
# Used while a Chroma server is unavailable (new texts are embedded into the cache, so that nothing is
# embedded twice), and while the daemon has Chroma's folder open (which embeds new texts).


COMPARE_BATCH = 20_000
"""Rows compared at a time: 30 MB. With more texts, a locked Chroma folder means a search by words only."""


def nearest(
    words: WordIndex, cache: Cache, model: str, vectors: Sequence[NDArray[np.float32]], limit: int
) -> list[list[tuple[str, float]]]:
    """For each vector the nearest texts as (text id, cosine), in the format of `VectorStore.query`."""
    best: list[list[tuple[str, float]]] = [[] for _ in vectors]
    for part in chunks(sorted(words.text_ids()), COMPARE_BATCH):
        cached = index_vectors.InMemoryVectors(cache.get(model, part))
        for number, vector in enumerate(vectors):
            found = [*best[number], *cached.query(vector, limit)]
            best[number] = sorted(found, key=lambda hit: (-hit[1], hit[0]))[:limit]
    return best


# -- verifying hits ----------------------------------------------------------------------------------------
# A stale index may miss a hit, but must not show a wrong one: each hit is verified against its file.


class CurrentFiles:
    """Reads the current files, each once per search."""

    def __init__(self, store: OutsideFiles) -> None:
        self._store = store
        self._lines: dict[tuple[str, bool], list[bytes]] = {}

    def confirm(self, item: IndexItem) -> IndexItem | None:
        """The item with its current lines, or None if its text is no longer in its file."""
        # `accepted_bytes` surveys all files, so it comes second.
        return self._find(item, False) or self._find(item, True)

    def preload(self, path: str) -> None:
        """Read a file in advance."""
        self._read(path, False)

    def lines(self, path: str) -> list[bytes]:
        """A file's lines; those in the history if an item was confirmed there."""
        return self._lines.get((path, True)) or self._read(path, False)

    def _find(self, item: IndexItem, history: bool) -> IndexItem | None:
        lines = self._read(item.path, history)
        count = item.end - item.line + 1
        if lines_hash(b"\n".join(lines[item.line - 1 : item.end])) == item.linehash:
            return item
        for start in range(len(lines) - count + 1):
            if lines_hash(b"\n".join(lines[start : start + count])) == item.linehash:
                return replace(item, line=start + 1, end=start + count)
        return None

    def _read(self, path: str, history: bool) -> list[bytes]:
        if (key := (path, history)) not in self._lines:
            try:
                data = self._store.accepted_bytes(path) if history else self._store.read(path)
            except (UaMemoryError, OSError):
                data = b""
            self._lines[key] = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").split(b"\n")
        return self._lines[key]


# -- facts -------------------------------------------------------------------------------------------------
# `memory.facts`: facts and other statements by id or exact text, and what the index counts.


TAG_COUNTS_SQL = """SELECT t.value, count(*) FROM items, json_each(items.tags) AS t WHERE items.retired = ''
GROUP BY t.value ORDER BY count(*) DESC, t.value"""

CURRENT_FACTS_SQL = """SELECT path, id, texthash, origin, client FROM items
WHERE record = 'fact' AND retired = '' AND path NOT LIKE '/%'"""


@checked
class Facts:
    """The facts and other statements of a bank, found by the index where possible."""

    def __init__(self, store: Store, index: Callable[[], Index], door: str) -> None:
        self._store, self._index, self._door = store, index, door

    def named(self, target: str) -> Fact:
        """The fact that `target` names, in any form that `get` accepts. NotFound; Usage if it is not a fact
        with an id."""
        there = statements.resolve_target(self._store, target, self.files_of)
        if block := statements.id_at(self._store, there):
            there = statements.resolve_target(self._store, f"{there.path}#^{block}")
        found = there.record
        if not isinstance(found, Fact) or not found.id:
            hint = f"a line without an id is changed in its file: ua-memory edit {target}"
            if not there.span:
                hint = "name ^id or PATH:LINE, as `ua-memory search` prints them"
            if found and not isinstance(found, Fact):
                hint = "ua-memory observations retire, ua-memory opinions drop"
            raise Usage("not a fact with an id", where=target, hint=hint)
        return found

    def insert_many(
        self, facts: Iterable[str | Fact], *, origin: Origin = "agent", client: str | None = None,
        session: str | None = None, said_in: Sequence[str] = (),
    ) -> list[InsertResult]:  # fmt: skip
        """Add many facts, texts or `ua_memory.records.Fact`, as `memory.insert` does, in one commit. What is
        known already is not added again (`.sighting`), so that it may be repeated."""
        made = (Fact(one) if isinstance(one, str) else one for one in facts)
        dated = (replace(one, when=knowledge_facts.read_when(self._store, one.when)) for one in made)
        said = Provenance(self._store.now(), client or self._door, origin, session, tuple(said_in))
        return knowledge_facts.insert_many(self._store, dated, said, door=self._door, equal=self.lookup())

    def vouch(self, target: str, *, by_person: bool = False) -> tuple[Fact, Result]:
        """Make a fact from a tool, the web or an agent count as a person's. NotFound; Usage if it is not a
        fact, or if `by_person` is false."""
        old = self.named(target)
        if not by_person and old.said_by != "person":
            raise Usage("only a person can vouch for a fact", where=target, hint="run it at a terminal")
        with self._store.revision("vouch", door=self._door, by_person=True) as draft:
            after = knowledge_facts.vouch(draft, old)
            draft.subject = f"vouch: ^{after.id} in {after.place.path}"
            draft.facts = [f"^{after.id}"]
        return after, draft.result

    def get(self, block: str) -> Statement:
        """The statement with a block id, by the index or else by reading all files. NotFound."""
        try:
            return statements.find(self._store, block, self.files_of(block.removeprefix("^")))
        except NotFound:
            return statements.find(self._store, block)

    def files_of(self, block: str) -> list[str] | None:
        """The files that contain an id, by the index; None if there is none."""
        return None if is_missing(self._store) else self._index().words.files_of(block) or None

    def cited_by(self, target: str) -> Sequence[CitingStep]:
        """What cites a statement (`^id`, or any form that `get` accepts), recursively: observations and
        opinions by their proofs, facts and sentences of pages and core memory by their links. The index is
        refreshed first. NotFound if no statement has the id and none cites it; Usage if `target` has no
        id."""
        block, ref = statements.resolve_id(self._store, target, self.files_of)
        index = self._index()
        with index.refreshed():
            found = _CitationWalk(index).of(block, ref)
        if not found:
            statements.resolve_target(self._store, target, self.files_of)  # raises NotFound
        return found

    def tags(self) -> dict[str, int]:
        """{tag: number of items}, the most frequent first. The index is refreshed first."""
        with self._index().refreshed() as words:
            return dict(words.db.execute(TAG_COUNTS_SQL).fetchall())

    def days(
        self, since: str | None = None, until: str | None = None, filters: Filters | None = None
    ) -> Sequence[DayCount]:
        """The number of facts of each day with facts, from one ISO day to another, newest first. The index is
        refreshed first, which reads only changed files."""
        where = filters or Filters()
        where = replace(where, since=since or where.since, until=until or where.until)
        with self._index().refreshed() as words:
            return index_words.days(words, where)

    def counts(self, filters: Filters | None = None) -> ItemCounts:
        """How many items `list` has with these filters, and of each kind, origin …. The index is refreshed
        first."""
        where = filters or Filters()
        where = replace(where, kinds=where.kinds or LISTED_KINDS, retired=bool(where.retired))
        with self._index().refreshed() as words:
            return index_words.value_counts(words, where)

    def lookup(self) -> FindEqual:
        """A function from a text to the files that may have facts with this text (`spellings`), including
        files that could not be indexed. The index is refreshed first."""
        unread = [path for path in self._index().refresh(vectors=False).unread if self._is_readable(path)]
        return lambda text: [*self._files_with(text), *unread]

    def equal(self, text: str) -> Iterable[str]:
        """The files that may have facts with this text (`spellings`). The index is refreshed first."""
        return self.lookup()(text)

    def files(
        self, blocks: Collection[str], wanted: Callable[[str, str | None, str], bool]
    ) -> list[str] | None:
        """The bank's own files that contain one of these ids, or a current, trusted fact for which
        `wanted(path, ref, hash of its text)` is true. None if the index has no file with one of the ids. The
        index is refreshed first."""
        index = self._index()
        with index.lock:
            unread = index.refresh(vectors=False).unread
            found = {block: index.words.files_of(block) for block in blocks}
            rows = index.words.db.execute(CURRENT_FACTS_SQL).fetchall()
        if not all(found.values()):
            return None
        matching = {
            path for path, block, hashed, origin, client in rows
            if wanted(path, ref_of(path, block) if block else None, hashed)
            and not untrusted(origin, client, path)
        }  # fmt: skip
        return sorted(matching.union(unread, *found.values()))

    def _files_with(self, text: str) -> list[str]:
        index = self._index()
        with index.lock:
            hashes = map(document.texthash, sorted(knowledge_facts.spellings(text)))
            items = [item for each in hashes for item in index.words.by_texthash(each)]
        return [item.path for item in items if item.kind != "passage"]

    def _is_readable(self, path: str) -> bool:
        try:
            self._store.read(path)
        except UaMemoryError:  # an unreadable file must not keep facts from being written
            return False
        return True


class _CitationWalk:
    """A recursive search for what cites a statement; each item is verified against its file."""

    def __init__(self, index: Index) -> None:
        self._index, self._files = index, CurrentFiles(index.files)
        self._path: list[str] = []
        """The refs from the statement to the current item, to break cycles."""

    def of(self, block: str, ref: str) -> tuple[CitingStep, ...]:
        """What cites an id, recursively."""
        if ref in self._path:
            return ()
        words = self._index.words
        # A link to an id that a person chose may name another file, if the id is unique.
        unique = block != ref and len(words.files_of(block)) < 2
        blocks = [ref, block] if unique else [ref]
        self._path.append(ref)
        items = index_words.items_citing(words, blocks)
        found = [step for item in items for step in self._steps(item, frozenset(blocks))]
        self._path.pop()
        return tuple(found)

    def _steps(self, item: IndexItem, blocks: frozenset[str]) -> Iterator[CitingStep]:
        current = self._files.confirm(item)
        if current is None or item.ref in self._path:
            return
        if item.id and item.ref:
            citing = self.of(item.id, item.ref)
            yield CitingStep(item.record, item.text, item.id, current.place, item.retired, citing)
            return
        lines = self._files.lines(current.path)[current.line - 1 : current.end]
        text = b"\n".join(lines).decode("utf-8", "replace")
        cited = [
            (start, end) for start, end, links in split_by_citations(text)
            if any({link.id, link.ref} & blocks for link in links)
        ]  # fmt: skip
        for start, end in cited or [(0, len(text))]:
            sentence = self._index.store.redacted(" ".join(strip_citations(text[start:end]).split()))
            first = current.line + text.count("\n", 0, start)
            place = Place(current.path, first, current.line + text.count("\n", 0, max(start, end - 1)))
            yield CitingStep(item.record, sentence, None, place, item.retired)
