"""Bring the index up to date before a search, and rebuild it if it is damaged or of another version."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ua_memory.errors import Busy, CannotWrite, NotFound, UaMemoryError, Usage
from ua_memory.git.process import filesystem_now
from ua_memory.index import items as index_items
from ua_memory.index import vectors as index_vectors
from ua_memory.index.embedding import Cache, CrossEncoder, EmbeddingUnavailable, Embeds, embedder, in_portions
from ua_memory.index.filters import Filters
from ua_memory.index.generations import (
    Generations,
    IndexedFiles,
    KnownFile,
    Manifest,
    content_hash,
    io_as_cannot_write,
    problems_told,
)
from ua_memory.index.items import SCHEMA_VERSION, chunks, led, lines_hash, marks, read_only
from ua_memory.index.outside import AnySurvey, OutsideFiles, outside
from ua_memory.index.vectors import (
    Rows,
    ServerAway,
    ServerConnection,
    ServerVectors,
    VectorLock,
    VectorMark,
    VectorsElsewhere,
    VectorsUnavailable,
    all_of,
    drop,
    machine,
    nearest_first,
    owned,
    stands_for,
)
from ua_memory.index.words import CurrentIndex, DayCount, WordIndex, broken, citing, days
from ua_memory.knowledge import facts as knowledge_facts
from ua_memory.knowledge import statements
from ua_memory.knowledge.lineage import CitingStep, cut, plain
from ua_memory.knowledge.statements import Progress
from ua_memory.markdown import document, lines
from ua_memory.records import Fact, Place, Problem, ref_of
from ua_memory.store.files import RACY_NS, UNSEARCHED, searched
from ua_memory.store.lock import synchronized
from ua_memory.text.wording import untrusted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ua_memory.index.embedding import Embedded
    from ua_memory.index.items import IndexItem
    from ua_memory.knowledge.facts import Equal
    from ua_memory.knowledge.statements import Statement
    from ua_memory.store.draft import Result
    from ua_memory.store.files import FileStat
    from ua_memory.store.scan import FileSurvey
    from ua_memory.store.store import Store


# -- reading -----------------------------------------------------------------------------------------------
# From files to rows: what differs from the manifest is read, parsed and put into the word index.
#
# All of one refresh is one transaction: killed at any moment, the index is what it was before or what it is
# after. A file that cannot be read or parsed is reported and tried again next time; the others go on.


READY = "ready"
Stop = Callable[[], bool]
"""Whether there is no more time: asked after each piece of work, so that something is always done."""
AT_LEAST = 50
"""Files read between two looks at the time: a small bank is always read whole."""


def within(seconds: float) -> Stop | None:
    """A `stop` that is true after this many seconds; never for 0."""
    until = time.monotonic() + seconds
    return (lambda: time.monotonic() > until) if seconds else None


@dataclass(frozen=True, slots=True)
class Refresh:
    """What a refresh did, in items. `semantic` is 'ready', or why there are no vectors. Where it was stopped,
    `left_files` have changed and were not read, `left_texts` have no vector yet. `unread` are files of the
    bank that the system did not let be read."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    files: int = 0
    failed: tuple[Problem, ...] = ()
    seconds: float = 0.0
    semantic: str = READY
    embedded: int = 0
    notes: tuple[str, ...] = ()
    left_files: int = 0
    left_texts: int = 0
    unread: tuple[str, ...] = ()


@dataclass(slots=True)
class IndexReading:
    """Result of comparing files and words, in items; `files` is their number, `left` those that changed
    and were not read."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    files: int = 0
    read: int = 0
    left: int = 0
    sessions_gone: bool = False
    failed: list[Problem] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    @property
    def any(self) -> bool:
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Result of updating the vectors: texts embedded by the model, and texts left without a vector."""

    embedded: int = 0
    left: int = 0


def read_changes(
    store: OutsideFiles, survey: FileSurvey, words: WordIndex, folder: Path, stop: Stop | None = None
) -> IndexReading:
    """Bring the words up to date with the files. `folder` is one we may touch, for the file system's clock.

    At `stop` it ends with the files read so far, those that changed last first.

    sqlite3.Error if the words cannot be written; whatever the store raises when files cannot be listed.
    """
    manifest, seen = Manifest(words.db), store.look(survey, folder)
    with words.writing():
        now = filesystem_now(folder)
        if manifest.masks() != store.masks:
            manifest.mask(store.masks)
        due, known, gone, there = _due(manifest, seen)
        done, fresh = IndexReading(files=there), list[KnownFile]()
        for number, stat in enumerate(due):
            if number and not number % AT_LEAST and stop and stop():
                done.left = sum(not _known(rest, known.get(rest.path)) for rest in due[number:])
                break
            before, held = known.get(stat.path), seen.held.get(stat.path)
            fresh.append(_read_one(store, words, stat, before, held, now, done))
        whole = len(fresh) == len(due) and all(_sure(one, seen) for one in fresh)
        manifest.record(fresh)
        done.removed += sum(words.remove_file(path) for path in gone)
        if any(lines.kind_of(path) is lines.FileKind.ENTITIES for path in gone):
            index_items.settle(words.db, (), store.masked)
        manifest.forget(gone)
        done.sessions_gone = any(store.is_session(path) for path in gone)
        if done.any:
            words.next_generation()
        manifest.seal(seen.proof if whole else "")
    return done


class _FilesToRead(NamedTuple):
    """The files to read, what the manifest says of these at least, the paths that are gone, and how many
    files there are."""

    read: list[FileStat]
    known: dict[str, KnownFile]
    gone: list[str]
    there: int


def _due(manifest: Manifest, seen: AnySurvey) -> _FilesToRead:
    """What is to be done. Where it is known what was touched since the manifest's state, no other file is
    asked for."""
    touched = seen.touched(manifest.sealed())
    if touched is not None:
        due = [stat for stat in seen.stats_of(touched) if stat.path.endswith(".md")]
        return _FilesToRead(due, manifest.files(touched), [], manifest.count())
    files = {stat.path: stat for stat in seen.files if stat.path.endswith(".md")}
    known = manifest.files()
    racy = {path for path, before in known.items() if before.racy}
    due = [f for f in files.values() if f.path in racy or not _known(f, known.get(f.path))]
    # Who has changed goes before who might have, the newest before all others.
    due.sort(key=lambda stat: (_known(stat, known.get(stat.path)), -stat.changed_ns))
    return _FilesToRead(due, known, [path for path in known if path not in files], len(files))


def _sure(read: KnownFile, seen: AnySurvey) -> bool:
    """Whether a file was read, and cannot change unseen any more, or will be looked at again."""
    return not read.racy or (bool(read.hash) and read.path in seen.racy)


def _known(stat: FileStat, before: KnownFile | None) -> bool:
    """Whether a file has the stamp that it was read under."""
    return before is not None and before.stamp == (stat.size, stat.mtime_ns, stat.ctime_ns, stat.inode)


def _read_one(
    store: OutsideFiles,
    words: WordIndex,
    stat: FileStat,
    before: KnownFile | None,
    held: str | None,
    now: int,
    done: IndexReading,
) -> KnownFile:
    digest, problems, failed = before.hash if before else "", before.problems if before else "", False
    try:
        data = store.blob(held) if held else store.read(stat.path)
        done.read += 1
        digest = content_hash(data)
        if not before or before.hash != digest:
            items, problems = _items(store, words, stat.path, data, done)
            added, changed, removed = words.replace_file(stat.path, items)
            done.added, done.changed, done.removed = (
                done.added + added,
                done.changed + changed,
                done.removed + removed,
            )
    except (sqlite3.Error, MemoryError):
        raise
    except Exception as error:  # a bug or a bad file must not take the other files from the index
        failed = True
        if isinstance(error, CannotWrite) and not outside(stat.path):
            done.unread.append(stat.path)
        done.failed.append(Problem(stat.path, 1, f"not indexed: {error}"))
    racy = failed or max(stat.mtime_ns, stat.ctime_ns) >= now - RACY_NS
    return KnownFile(
        stat.path, stat.size, stat.mtime_ns, stat.ctime_ns, stat.inode, "" if failed else digest, racy,
        problems,
    )  # fmt: skip


def _items(
    store: OutsideFiles, words: WordIndex, path: str, data: bytes, done: IndexReading
) -> tuple[list[IndexItem], str]:
    """What can be found in a file, and its problems. What of it is not searched is told; names that it
    settles are noted."""
    data, rest = (data, 0) if store.is_session(path) else searched(data)
    unsearched = [Problem(path, rest, UNSEARCHED)] if rest else []
    done.failed += unsearched
    if lines.kind_of(path) is lines.FileKind.ENTITIES:
        index_items.settle(words.db, document.parse(data, path).records, store.masked)
    items, problems = store.items(path, data, words.long_logs)
    return items, problems_told([*unsearched, *problems])


# -- sync --------------------------------------------------------------------------------------------------
# The index of one bank: updated before each search, rebuilt when anything is off.
#
# Words come first and alone suffice. Vectors follow where Chroma, the model and the lock are to be had;
# where not, the report says why, and answers come from words.


NO_TIME = "no time was left for the vectors"


class Index:
    """Words and vectors of a bank; `close` when done. `embeds` is used instead of the embedder that
    `embedding` names.

    Threads may share one. Its connections and Chroma serve one thread at a time, and a refresh puts other
    files in their place: who reads `words`, `vectors` or `cache`, or wants to find what it has just updated,
    holds `turn` for as long as that takes. Within it nobody waits for the bank's lock, since who
    has that lock may be waiting for the turn.
    """

    def __init__(self, store: Store, *, embedding: str = "minilm-int8", embeds: Embeds | None = None) -> None:
        self.store, self.embedding, self.files = store, embedding, OutsideFiles(store)
        self.generations = Generations(store.bank.index)
        self._current = CurrentIndex(self.generations)
        self._embeds: Embeds | None = embeds
        self._vectors: Rows | None = None
        self._line: ServerConnection | None = None
        self._owner: VectorLock | None = None
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
        """Continue with the bank's present settings."""
        self.store = store
        self.files.use(store)

    @property
    def words(self) -> WordIndex:
        """The word index, opened or created; as of the last refresh."""
        return self._current.words

    @property
    def vectors(self) -> Rows:
        """The vectors: on the configured server, else in the folder, opened by taking its lock.
        VectorsUnavailable says why not."""
        if self._current.folder is None:
            raise VectorsUnavailable("the index folder cannot be written")
        if self.store.now().year < 1970:
            raise VectorsUnavailable("the clock is set before 1970, which Chroma does not support")
        if self._vectors is None:
            shared = self.store.config.chroma_url
            self._vectors = self._shared() if shared else self._own(self._current.folder)
        return self._vectors

    def _shared(self) -> Rows:
        self._line = self._line or ServerConnection(self.store.config.chroma_url)
        bank = self.store.bank
        mark = self.generations.folder / "server.json"
        return ServerVectors(self._line, self.store.config.id, machine(bank.state), self.embedding, mark)

    def _own(self, generation: Path) -> Rows:
        self._owner = self._owner or VectorLock(self.generations.folder / "owner.lock")
        return owned(generation / "chroma", self._owner, self._current.notes)

    @property
    def embeds(self) -> Embeds:
        """The embedder. EmbeddingUnavailable says why not."""
        self._embeds = self._embeds or embedder(self.embedding)
        return self._embeds

    @property
    def ready(self) -> bool:
        """Whether the model is loaded."""
        return bool(getattr(self._embeds, "ready", False))

    @property
    def cross(self) -> CrossEncoder | None:
        """The configured cross-encoder, loaded on first use."""
        folder = self.store.config.cross_encoder
        if not folder:
            return None
        if self._cross is None or self._cross.folder != Path(folder):
            self._cross = CrossEncoder(Path(folder))
        return self._cross

    @property
    def cache(self) -> Cache:
        """The cached embeddings, by text hash."""
        self._cache = self._cache or Cache(self.store.bank.cache)
        return self._cache

    @synchronized
    def end(self) -> None:
        """Close, and unload the models."""
        self.close()
        self._embeds, self._cross = self._given, None

    @synchronized
    def close(self) -> None:
        """Close all files and release the lock. A later call opens it again."""
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

    @synchronized
    def refresh(
        self, vectors: bool = True, progress: Progress | None = None, seen: FileSurvey | None = None,
        stop: Stop | None = None,
    ) -> Refresh:  # fmt: skip
        """Make the index that of the files as they are. Never raises for what can be answered from words.

        `progress(done, all)` is called while texts are embedded. `seen` is a look that was just taken. At
        `stop` it ends with what it has, words before vectors.
        """
        began = time.perf_counter()
        reading = self._refresh_words(seen or self.store.survey(), stop)
        return self._report(began, reading, vectors, progress, stop)

    @synchronized
    def embed_first(self, names: list[str], progress: Progress | None = None) -> None:
        """Embed these texts before a refresh without the time for all; it tells why, where that fails."""
        with suppress(EmbeddingUnavailable, sqlite3.DatabaseError, OSError):
            wanted = self.cache.missing(self.embeds.model, names)
            embed(self.words, self.cache, self.embeds, wanted, progress, None)

    def _report(
        self, began: float, reading: IndexReading, vectors: bool, progress: Progress | None, stop: Stop | None
    ) -> Refresh:
        caught, semantic = CatchUp(), "not asked for"
        if vectors and reading.left:  # words first; what vectors there are will do if they are at hand
            semantic = READY if self._vectors else NO_TIME
        elif vectors:
            semantic, caught = self._refresh_vectors(progress, stop)
        if reading.sessions_gone:  # of what was deleted nothing is kept, and its space is freed
            self.cache.keep_only(self.words.text_ids())
        self.behind = bool(reading.left or caught.left)
        notes, self._current.notes = (*self._current.notes, *self.files.notes), []
        return Refresh(
            reading.added, reading.changed, reading.removed, reading.files, tuple(reading.failed),
            time.perf_counter() - began, semantic, caught.embedded, notes, reading.left, caught.left,
            tuple(reading.unread),
        )  # fmt: skip

    @synchronized
    def unchanged(self, seen: FileSurvey | None = None) -> bool:
        """Whether the words match the files, by one stat of each."""
        there, manifest = (
            self.files.look(seen or self.store.survey(), self._current.scratch),
            Manifest(self.words.db),
        )
        return manifest.stands_for(there.proof) and manifest.masks() == self.files.masks

    @io_as_cannot_write
    @synchronized
    def rebuild(self, vectors: bool = True, progress: Progress | None = None) -> Refresh:
        """Build a new index next to the old one, from files and cache, and replace it. Busy while another
        process has the vectors open."""
        self.generations.make()
        self._close_vectors()
        owner = VectorLock(self.generations.folder / "owner.lock")
        try:
            owner.take()
        except VectorsUnavailable as error:
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

    def _refresh_words(self, seen: FileSurvey, stop: Stop | None) -> IndexReading:
        if self._current.stale():
            self._close_vectors()
            self._current.close()
        for again in (True, False):
            try:
                if self.unchanged(seen):
                    return IndexReading(files=self.words.files_known())
                return read_changes(self.files, seen, self.words, self._current.scratch, stop)
            except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
                if not again or not broken(error):
                    self._current.notes.append(f"the word index could not be updated: {error}")
                    return IndexReading(left=self._files_left(seen))
                self._close_vectors()
                self._current.anew(f"the word index was damaged ({error})")
        raise AssertionError("unreachable")

    def _files_left(self, seen: FileSurvey) -> int:
        """How many files an update would read; all where that cannot be asked."""
        try:
            return len(_due(Manifest(self.words.db), self.files.look(seen, self._current.scratch)).read)
        except sqlite3.DatabaseError:
            return len(seen.files)

    def _refresh_vectors(self, progress: Progress | None, stop: Stop | None) -> tuple[str, CatchUp]:
        for again in (True, False):
            try:
                return READY, catch_up(self.words, self.vectors, self.cache, self.embeds, progress, stop)
            except index_vectors.VectorsBroken as error:
                if not again or self._current.folder is None:
                    return str(error), CatchUp()
                self._current.notes.append(f"{error}; rebuilt")
                self._drop_vectors()
            except ServerAway as error:
                return self._keep(str(error), progress, stop)
            except index_vectors.VectorsElsewhere as error:
                return self._beside(str(error))
            except (index_vectors.VectorsUnavailable, EmbeddingUnavailable) as error:
                return str(error), CatchUp()
            except (sqlite3.DatabaseError, OSError) as error:
                return f"the embedding cache cannot be used: {error}", CatchUp()
        raise AssertionError("unreachable")

    def _keep(self, why: str, progress: Progress | None, stop: Stop | None) -> tuple[str, CatchUp]:
        """Do without Chroma: the embeddings kept here find the same, more slowly."""
        try:
            caught = keep(self.words, self.cache, self.embeds, progress, stop)
        except (EmbeddingUnavailable, sqlite3.DatabaseError, OSError) as error:
            return f"{why}, and {error}", CatchUp()
        self._current.notes.append(f"{why}; compared with the embeddings kept here")
        return READY, caught

    def _beside(self, why: str) -> tuple[str, CatchUp]:
        """Do without what another process has open, where texts are few enough to be compared one by one."""
        if self.words.count() > AT_ONCE:
            return why, CatchUp()
        try:
            return READY, kept(self.words, self.cache, self.embeds)
        except (EmbeddingUnavailable, sqlite3.DatabaseError, OSError) as error:
            return f"{why}, and {error}", CatchUp()

    def _drop_vectors(self) -> None:
        if self._vectors and self._current.folder:
            self._vectors.close()
            self._vectors = None
            drop(self._current.folder / "chroma")  # the lock is still ours

    @synchronized
    def nearest(self, vectors: Sequence[NDArray[np.float32]], limit: int) -> list[list[tuple[str, float]]]:
        """For each vector the nearest texts as (name, cosine). VectorsUnavailable says why not."""
        try:
            if not self.behind:
                self.vectors.mirror(lambda: all_of(self.words, self.cache, self.embeds.model))
            return self.vectors.query(vectors, limit)
        except (ServerAway, VectorsElsewhere):
            return nearest(self.words, self.cache, self.embeds.model, vectors, limit)


# -- meaning -----------------------------------------------------------------------------------------------
# Bringing the vectors up to date with the words: by the journal, or by comparing all names.
#
# Every step may be repeated: a kill between Chroma and the mark beside it costs the same upserts again,
# from the cache.


AT_A_TIME = 500
"""Vectors put from the cache into Chroma between two looks at the time: some 0.4 s."""


def wanted(words: WordIndex, model: str, cache: Cache) -> VectorMark:
    """The mark of vectors that match the present words."""
    return VectorMark(words.epoch, words.generation, model, cache=cache.epoch)


def catch_up(
    words: WordIndex, vectors: Rows, cache: Cache, embeds: Embeds, progress: Progress | None = None,
    stop: Stop | None = None,
) -> CatchUp:  # fmt: skip
    """Make the vectors match the words' texts; at `stop` return with those done so far."""
    goal, mark = wanted(words, embeds.model, cache), vectors.mark
    if mark == goal:
        return CatchUp()
    work = _VectorUpdate(words, vectors, cache, embeds, goal, progress, stop)
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


class _VectorUpdate:
    """Bringing some texts' vectors up to date with the words."""

    def __init__(
        self, words: WordIndex, vectors: Rows, cache: Cache, embeds: Embeds, goal: VectorMark,
        progress: Progress | None, stop: Stop | None,
    ) -> None:  # fmt: skip
        self.words, self.vectors, self.cache, self.embeds = words, vectors, cache, embeds
        self.goal, self.progress, self.stop = goal, progress, stop
        self.partly = VectorMark(goal.epoch, -1, goal.model, cache=goal.cache)
        """What vectors stand for of which only the names can tell."""

    def do(self, names: list[str]) -> CatchUp:
        """Texts that are gone first, then those that need no model, then the rest; at last, say so."""
        texts = self.words.texts(names)
        self.vectors.delete([name for name in names if name not in texts])
        missing = self.cache.missing(self.embeds.model, sorted(texts))
        left, caught = self._put(sorted(texts.keys() - set(missing))), CatchUp(0, len(missing))
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
        return CatchUp(caught.embedded, left)

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
    words: WordIndex, cache: Cache, embeds: Embeds, missing: list[str], progress: Progress | None,
    stop: Stop | None, take: Callable[[Mapping[str, Embedded]], None] | None = None,
) -> CatchUp:  # fmt: skip
    """Embed texts in portions, each written to the cache first: a kill loses one portion. At `stop` return
    with those done so far."""
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
            left.difference_update(portion)  # `-=` would copy all that is left, each time
            done += len(found)
            if stop and left and stop():
                break
    return CatchUp(len(missing) - len(left), len(left))


def _runs(words: WordIndex, names: list[str]) -> list[dict[str, str]]:
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


# -- condition ---------------------------------------------------------------------------------------------
# How an index stands, told from its files without opening Chroma or taking a lock.


def absent(store: Store) -> bool:
    """Whether there is no index."""
    folder = Generations(store.bank.index).current()
    return folder is None or not (folder / "words.db").exists()


def state(store: Store) -> dict[str, object]:
    """Items and files it knows, whether it has seen the files as they are, and how far the vectors are.

    `state` is 'ready', 'behind', 'of another version' or 'damaged'; `vectors` is 'ready', 'behind' or
    'none yet'.
    """
    folder = Generations(store.bank.index).current()
    if folder is None:
        return {"state": "none yet"}
    try:
        with closing(read_only(folder / "words.db")) as db:
            meta = dict(db.execute("SELECT name, value FROM meta WHERE name != 'proof'"))
            if meta.get("schema") != SCHEMA_VERSION:
                return {"state": "of another version"}
            return {
                "state": "ready" if Manifest(db).stands_for(_proof(store)) else "behind",
                "items": db.execute("SELECT count(*) FROM items").fetchone()[0],
                "files": db.execute("SELECT count(*) FROM files").fetchone()[0],
                "vectors": _vectors(folder, meta),
            }
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return {"state": "damaged", "why": str(error)}


@contextmanager
def indexed(store: Store) -> Iterator[IndexedFiles | None]:
    """What the words know of the files, read only; None without an index of this version. sqlite3.Error."""
    folder = Generations(store.bank.index).current()
    if folder is None or not (folder / "words.db").exists():
        yield None
        return
    with closing(read_only(folder / "words.db")) as db:
        found = db.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
        current = found and found[0] == SCHEMA_VERSION and Manifest(db).masks() == OutsideFiles(store).masks
        yield IndexedFiles(db, store.survey().files) if current else None


def may_have(store: Store, kind: str, origin: str) -> set[str] | None:
    """The files that may have facts of this kind and origin that hold: those that the index knows to have
    some, and those that it does not know as they are. None without an index."""
    with suppress(sqlite3.Error), indexed(store) as known:
        if known is not None:
            there = {one.path for one in store.survey().files}
            return there - known.same.keys() | known.with_facts(kind, origin)
    return None


def _proof(store: Store) -> str:
    return OutsideFiles(store).look(store.survey(), store.bank.cache).proof


def _vectors(folder: Path, meta: dict[str, str]) -> str:
    try:
        same = stands_for(json.loads((folder / "chroma.json").read_text()), meta)
    except (OSError, ValueError, RecursionError):
        return "none yet"
    except (KeyError, TypeError):
        return "behind"
    return "ready" if same else "behind"


# -- kept --------------------------------------------------------------------------------------------------
# The nearest texts by the embeddings kept on this machine: exact, and slower the more there are.
#
# For the time in which a Chroma server is away: what is new is embedded into the cache meanwhile, so that
# nothing is embedded twice when it is back. And for a process beside the daemon, which has Chroma's folder
# open and embeds what is new.


AT_ONCE = 20_000
"""Rows compared in one go: some 30 MB."""


def kept(words: WordIndex, cache: Cache, embeds: Embeds) -> CatchUp:
    """What has an embedding and what has none yet, which somebody else is about to make."""
    return CatchUp(0, len(cache.missing(embeds.model, sorted(words.text_ids()))))


def keep(
    words: WordIndex, cache: Cache, embeds: Embeds, progress: Progress | None,
    stop: Stop | None = None,
) -> CatchUp:  # fmt: skip
    """Embed what has no embedding yet, portion by portion; at `stop` it ends with those done so far."""
    return embed(words, cache, embeds, cache.missing(embeds.model, sorted(words.text_ids())), progress, stop)


def nearest(
    words: WordIndex, cache: Cache, model: str, vectors: Sequence[NDArray[np.float32]], limit: int
) -> list[list[tuple[str, float]]]:
    """For each vector the nearest texts as (name, cosine), best first, as `Vectors.query` has them."""
    import numpy as np

    best: list[list[tuple[str, float]]] = [[] for _ in vectors]
    asked = [vector / max(float(np.linalg.norm(vector)), 1e-12) for vector in vectors]
    for part in chunks(sorted(words.text_ids()), AT_ONCE):
        kept = {name: row for name, row in cache.get(model, part).items() if row.any()}
        if not kept:
            continue
        rows = np.stack(list(kept.values()))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        for number, vector in enumerate(asked):
            found = nearest_first(list(kept), 1.0 - rows @ vector)
            best[number] = sorted([*best[number], *found[:limit]], key=lambda hit: (-hit[1], hit[0]))[:limit]
    return best


# -- present -----------------------------------------------------------------------------------------------
# A stale index may miss, never mislead: a hit is looked up in its file before it is shown.


class FilesOf(Protocol):
    """What is needed of a store: a file's bytes, and those of the history if the file is held."""

    def read(self, path: str) -> bytes: ...
    def truth(self, path: str) -> bytes: ...


class CurrentFiles:
    """The files as they are now, each read once a search."""

    def __init__(self, store: FilesOf) -> None:
        self._store = store
        self._lines: dict[tuple[str, bool], list[bytes]] = {}

    def confirm(self, item: IndexItem) -> IndexItem | None:
        """The item where it stands now, or None if its lines are nowhere in its file."""
        # What the trail holds in place of a file costs a look at all files, so it comes second.
        return self._find(item, False) or self._find(item, True)

    def look(self, path: str) -> None:
        """Read a file, if it was not read yet."""
        self._read(path, False)

    def lines(self, path: str) -> list[bytes]:
        """A file's lines, those of the history where that is what was confirmed."""
        return self._lines.get((path, True)) or self._read(path, False)

    def _find(self, item: IndexItem, held: bool) -> IndexItem | None:
        lines = self._read(item.path, held)
        count = item.end - item.line + 1
        if lines_hash(b"\n".join(lines[item.line - 1 : item.end])) == item.linehash:
            return item
        for start in range(len(lines) - count + 1):
            if lines_hash(b"\n".join(lines[start : start + count])) == item.linehash:
                return replace(item, line=start + 1, end=start + count)
        return None

    def _read(self, path: str, held: bool) -> list[bytes]:
        if (path, held) not in self._lines:
            try:
                data = self._store.truth(path) if held else self._store.read(path)
            except (UaMemoryError, OSError):
                data = b""
            lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
            if b"\r" in data:
                lines = [line.removesuffix(b"\r") for line in lines]
            self._lines[path, held] = lines
        return self._lines[path, held]


# -- facts -------------------------------------------------------------------------------------------------
# Finding a fact, or another statement, by its id or its exact text.


TAGS = """SELECT t.value, count(*) FROM items, json_each(items.tags) AS t WHERE items.retired = ''
GROUP BY t.value ORDER BY count(*) DESC, t.value"""

HELD = """SELECT path, id, texthash, origin, client FROM items
WHERE record = 'fact' AND retired = '' AND path NOT LIKE '/%'"""


class Facts:
    """The facts and other statements of a bank, found through the index where it knows them."""

    def __init__(self, store: Store, index: Callable[[], Index], door: str) -> None:
        self._store, self._index, self._door = store, index, door

    def named(self, target: str) -> Fact:
        """The fact of any form that `get` takes. NotFound; Usage for what is no fact with an id."""
        found = statements.find_excerpts(self._store, target, self.files_of).record
        if not isinstance(found, Fact) or not found.id:
            hint = "ua-memory observations retire, ua-memory opinions drop" if found else "ua-memory search"
            raise Usage("not a fact with an id", where=target, hint=hint)
        return found

    def vouch(self, target: str, *, by_person: bool = False) -> tuple[Fact, Result]:
        """Let a fact that a tool, the web or an agent said count as a person's. NotFound; Usage for what is
        no fact, and unless a person does it."""
        old = self.named(target)
        if not by_person and old.said_by != "person":
            raise Usage("only a person vouches for a fact", where=target, hint="run it at a terminal")
        with self._store.revision("vouch", door=self._door) as draft:
            draft.by_person = True
            after = knowledge_facts.vouch(draft, old)
            draft.subject = f"vouch: ^{after.id} in {after.place.path}"
            draft.facts = [f"^{after.id}"]
        return after, draft.result

    def get(self, block: str) -> Statement:
        """The statement with a block id, through the index if it knows the file, else by reading all
        files. NotFound."""
        try:
            return statements.find(self._store, block, self.files_of(block.removeprefix("^")))
        except NotFound:
            return statements.find(self._store, block)

    def files_of(self, block: str) -> list[str] | None:
        """The files that contain an id, as far as the index knows; None if it has none."""
        return None if absent(self._store) else self._index().words.files_of(block) or None

    def cited_by(self, target: str) -> Sequence[CitingStep]:
        """What rests on a statement (`^id`, or any form that `get` takes): the observations and opinions that
        have it for a proof, the sentences of pages and core memory and the facts that name it, and what rests
        on these. The index is updated first. NotFound, for an id that nothing has and nothing cites; Usage
        for what has no id."""
        block, ref = statements.named_id(self._store, target, self.files_of)
        index = self._index()
        with index.turn:
            index.refresh(vectors=False)
            found = _Citing(index).of(block, ref)
        if not found:
            statements.find_excerpts(self._store, target, self.files_of)  # which says that it is nowhere
        return found

    def tags(self) -> dict[str, int]:
        """The tags that are in use and how many items have each, the most frequent first; the index is
        updated first."""
        index = self._index()
        with index.turn:
            index.refresh(vectors=False)
            rows = index.words.db.execute(TAGS)
            return dict(rows.fetchall())

    def days(
        self, since: str | None = None, until: str | None = None, filters: Filters | None = None
    ) -> Sequence[DayCount]:
        """How many facts were said on each day, the newest first, from one ISO day to another; those of days
        without any are left out. The index is updated first; no file is read but those that changed."""
        where, index = filters or Filters(), self._index()
        with index.turn:
            index.refresh(vectors=False)
            return days(index.words, replace(where, since=since or where.since, until=until or where.until))

    def lookup(self) -> Equal:
        """The files of facts by their exact text, as an index knows them that is updated now, and
        those that it could not read."""
        unread = [path for path in self._index().refresh(vectors=False).unread if self._is_readable(path)]
        return lambda text: [*self._files_with(text), *unread]

    def equal(self, text: str) -> Iterable[str]:
        """The files that may have facts with exactly this text; the index is updated first."""
        return self.lookup()(text)

    def files(
        self, blocks: Collection[str], wanted: Callable[[str, str | None, str], bool]
    ) -> list[str] | None:
        """The bank's own files in which one of these ids stands, or a fact that holds, is the house's own and
        `wanted` by its path, `ref` and the hash of its text. None where an id is in none that the index
        knows. The index is updated first."""
        index = self._index()
        with index.turn:
            unread = index.refresh(vectors=False).unread
            found = {block: index.words.files_of(block) for block in blocks}
            rows = index.words.db.execute(HELD).fetchall()
        if not all(found.values()):
            return None
        live = {
            path for path, block, hashed, origin, client in rows
            if wanted(path, ref_of(path, block) if block else None, hashed)
            and not untrusted(origin, client, path)
        }  # fmt: skip
        return sorted(live.union(unread, *found.values()))

    def _files_with(self, text: str) -> list[str]:
        index = self._index()
        with index.turn:
            items = index.words.by_texthash(document.texthash(text))
        return [item.path for item in items if item.kind != "passage"]

    def _is_readable(self, path: str) -> bool:
        try:
            self._store.read(path)
        except UaMemoryError:  # a file that stays unreadable must not keep facts from being written
            return False
        return True


class _Citing:
    """One walk up from a statement: what cites it, each item looked up in its file."""

    def __init__(self, index: Index) -> None:
        self._index, self._present = index, CurrentFiles(index.files)
        self._above: list[str] = []

    def of(self, block: str, ref: str) -> tuple[CitingStep, ...]:
        """What cites an id, and what cites that; not what is above it already."""
        if ref in self._above:
            return ()
        words = self._index.words
        # The file in a link to a typed id is a hint, where it stands in one file alone.
        alone = block != ref and len(words.files_of(block)) < 2
        blocks = [ref, block] if alone else [ref]
        self._above.append(ref)
        found = [step for item in citing(words, blocks) for step in self._steps(item, frozenset(blocks))]
        self._above.pop()
        return tuple(found)

    def _steps(self, item: IndexItem, blocks: frozenset[str]) -> Iterator[CitingStep]:
        there = self._present.confirm(item)
        if there is None or item.ref in self._above:
            return
        if item.id and item.ref:
            above = self.of(item.id, item.ref)
            yield CitingStep(item.record, item.text, item.id, there.place, item.retired, above)
            return
        lines = self._present.lines(there.path)[there.line - 1 : there.end]
        text = b"\n".join(lines).decode("utf-8", "replace")
        cited = [
            (start, end) for start, end, links in cut(text)
            if any({link.id, link.ref} & blocks for link in links)
        ]  # fmt: skip
        for start, end in cited or [(0, len(text))]:
            said = self._index.store.redacted(" ".join(plain(text[start:end]).split()))
            first = there.line + text.count("\n", 0, start)
            place = Place(there.path, first, there.line + text.count("\n", 0, max(start, end - 1)))
            yield CitingStep(item.record, said, None, place, item.retired)
