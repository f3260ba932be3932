"""Chroma, embedded, with one owner: this process while it holds the lock, or nobody.

A row is a text, not an item: its id is the text's hash, so equal lines share a vector, moved lines
touch nothing, and any difference between words and vectors is a difference of two sets of names.
Beside the folder a mark says which generation of the word index it stands for."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory import heap
from ua_memory.index import sums
from ua_memory.index.chroma import VectorsBroken, VectorsElsewhere, VectorsUnavailable, imported
from ua_memory.index.mark import Mark, write_mark
from ua_memory.index.mirror import MOST, Mirror
from ua_memory.paths import make_private

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Row = NDArray[np.float32]

COLLECTION = "texts"
HNSW: Mapping[str, Any] = {"space": "cosine", "ef_construction": 64, "max_neighbors": 16, "ef_search": 1000}
"""Of the 150 nearest of 60 queries among 3,000 random vectors and among 10,000 clustered ones none is lost;
Chroma's defaults (100, 16, 100) lose 11 % and 3 %. The search's width decides, at
1 to 3 ms a query; a denser graph finds no more, and with 200 and 32 an insert costs 2.7 times as much."""

BATCH = 2000
LOCK_SECONDS = 0.3
TO_OPEN, TO_WORK = 1 << 30, 128 << 20
"""Bytes of address space that Chroma wants: 800 MB for itself, most of it for its threads, and some for a
call. It is not asked with less: its Rust core ends the process where it gets none."""
STARVED = ("out of memory", "allocate memory", "bad_alloc", "temporarily unavailable", "too many open files")
"""What is said where the system gives no memory, thread or file: that is no damage."""


class Owner:
    """The exclusive lock on the vectors, held as long as they are open. Freed by the system at a kill."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._fd: int | None = None

    def take(self, seconds: float = LOCK_SECONDS) -> None:
        """VectorsUnavailable if another holds it for longer than a moment."""
        if self._fd is not None:
            return
        fd = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    os.close(fd)
                    raise VectorsElsewhere("another process has the vectors open") from error
                time.sleep(0.02)
            else:
                self._fd = fd
                return

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


class Rows(ABC):
    """Vectors in a collection of Chroma's, by the names of their texts: in a folder, or on a server."""

    _rows: int | None = None
    """So many there are at least, once they were counted."""
    batch = BATCH
    """How many go at once."""

    @property
    @abstractmethod
    def mark(self) -> Mark:
        """What the vectors stand for; an empty mark where that is unknown."""

    @abstractmethod
    def set_mark(self, mark: Mark) -> None:
        """Say what the vectors stand for, after they do."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what others might need."""

    @abstractmethod
    def wipe(self) -> None:
        """Begin anew with nothing: vectors of another model may not even be of the same length."""

    @abstractmethod
    def _call(self, name: str, **values: Any) -> Any:
        """A method of the collection. VectorsUnavailable, or VectorsBroken, whatever Chroma raises."""

    def mirror(self, read: Callable[[], Mapping[str, Row]]) -> None:  # noqa: B027 (those on a server have none)
        """Keep a copy in memory, where that pays; see `Vectors`."""

    def count(self) -> int:
        return int(self._call("count"))

    def names(self) -> set[str]:
        """The names of all texts that have a vector."""
        return set(self._call("get", include=[])["ids"])

    def upsert(self, vectors: Mapping[str, Row]) -> None:
        """Add or replace {name: vector}. A row of zeros means nothing, and is left out."""
        import numpy as np

        names = [name for name, row in vectors.items() if row.any()]
        for start in range(0, len(names), self.batch):
            part = names[start : start + self.batch]
            self._call("upsert", ids=part, embeddings=np.stack([vectors[name] for name in part]))

    def delete(self, names: Sequence[str]) -> None:
        """Drop texts; unknown names are none of our business."""
        if self._rows is not None:
            self._rows = max(0, self._rows - len(names))
        for start in range(0, len(names), self.batch):
            self._call("delete", ids=list(names[start : start + self.batch]))

    def query(self, vectors: Sequence[Row], limit: int) -> list[list[tuple[str, float]]]:
        """For each vector the nearest texts as (name, cosine), best first, equal ones by name."""
        if self._rows is None or self._rows < limit:  # counting costs as much as a query
            self._rows = self.count()
        limit = min(limit, self._rows)
        if limit < 1 or not len(vectors):
            return [[] for _ in vectors]
        found = self._call("query", query_embeddings=list(vectors), n_results=limit, include=["distances"])
        return [
            nearest_first(names, distances)
            for names, distances in zip(found["ids"], found["distances"], strict=True)
        ]


class Vectors(Rows):
    """A Chroma folder. The caller holds the Owner's lock from before opening until after `close`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mark_file = folder.with_name(f"{folder.name}.json")
        self._client: Any = None
        self._mirror: Mirror | None = None
        self._queries = 0
        self._before: sums.Sums = {}
        self._open()

    def _open(self) -> None:
        _require(TO_OPEN)
        try:
            chromadb, silent = imported()
        except ImportError as error:
            raise VectorsUnavailable(f"{error.name or error} cannot be imported") from error
        for name in ("chromadb", "chromadb.telemetry.product.posthog"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        make_private(self.folder)
        self._before = sums.take(self.folder)
        try:
            with heap.wiped():
                self._client = chromadb.PersistentClient(str(self.folder), settings=silent)
                self._collection = self._client.get_or_create_collection(
                    COLLECTION, embedding_function=None, configuration={"hnsw": dict(HNSW)}
                )
                self._collection.count()
        except BaseException as error:  # the Rust core raises PanicException, which is no Exception
            self._let_go()
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            raise _told(f"Chroma cannot open its files: {error}", error) from error

    def mirror(self, read: Callable[[], Mapping[str, Row]]) -> None:
        """Keep a copy in memory from the second query on, if there are few enough. `read` gives all vectors,
        or none."""
        self._queries += 1
        if self._mirror is None and self._queries > 1 and (self._rows or 0) <= MOST and (found := read()):
            self._mirror = Mirror(found)

    def upsert(self, vectors: Mapping[str, Row]) -> None:
        super().upsert(vectors)
        if self._mirror is not None:
            self._mirror.upsert(vectors)
            if len(self._mirror) > MOST:
                self._mirror = None

    def delete(self, names: Sequence[str]) -> None:
        super().delete(names)
        if self._mirror is not None:
            self._mirror.delete(names)

    def query(self, vectors: Sequence[Row], limit: int) -> list[list[tuple[str, float]]]:
        if self._mirror is not None:
            return [self._mirror.query(vector, limit) for vector in vectors]
        return super().query(vectors, limit)

    def close(self) -> None:
        """Let go of the files, so that they may be deleted, moved or opened by another. What they are then
        is noted."""
        if self._let_go():
            sums.note(self.folder, self._before)

    def _let_go(self) -> bool:
        """Close what is open; whether anything was."""
        client, self._client, self._collection, self._mirror = self._client, None, None, None
        if client is not None:
            client.close()
            _make_private(self.folder)
        else:
            _forget(self.folder)
        return client is not None

    def wipe(self) -> None:
        self._let_go()
        self._rows = None
        drop(self.folder)
        self._open()

    @property
    def mark(self) -> Mark:
        try:
            return Mark(**json.loads(self._mark_file.read_text()))
        except (OSError, ValueError, TypeError, RecursionError):
            return Mark()

    def set_mark(self, mark: Mark) -> None:
        write_mark(self._mark_file, asdict(mark))

    def _call(self, name: str, **values: Any) -> Any:
        _require(TO_WORK)
        try:
            with heap.wiped():
                return getattr(self._collection, name)(**values)
        except BaseException as error:  # see _open
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            raise _told(f"Chroma: {name} failed: {error}", error) from error


def _require(room: int) -> None:
    if heap.room() < room:
        raise VectorsUnavailable("the limit of memory (ulimit -v) leaves too little for Chroma")


def _told(what: str, error: BaseException) -> VectorsUnavailable:
    """What has failed: as damage, unless it was the system that gave nothing."""
    starved = isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in STARVED)
    return VectorsUnavailable(what) if starved else VectorsBroken(what)


def owned(folder: Path, owner: Owner, notes: list[str]) -> Vectors:
    """A folder's vectors, opened by taking the lock; damaged ones are begun anew, and `notes` says so."""
    owner.take()
    try:
        try:
            return Vectors(folder)
        except VectorsBroken as error:
            notes.append(f"{error}; rebuilt")
            drop(folder)
            return Vectors(folder)
    except BaseException:
        owner.release()
        raise


def nearest_first(names: Sequence[str], distances: Iterable[float]) -> list[tuple[str, float]]:
    """(name, cosine) in order. Six digits: the last bits depend on the order in which rows came in."""
    found = [(name, round(1.0 - float(far), 6)) for name, far in zip(names, distances, strict=True)]
    return sorted(found, key=lambda hit: (-hit[1], hit[0]))


def _make_private(folder: Path) -> None:
    """Close to others what Chroma makes by the umask."""
    with contextlib.suppress(OSError):
        for path in (folder, *folder.rglob("*")):
            mode = 0o700 if path.is_dir() else 0o600
            if path.stat().st_mode & 0o777 != mode:  # what is not touched keeps its times
                path.chmod(mode)


def _forget(folder: Path) -> None:
    """Take back a client that failed to open. Chroma 1.5.9 keeps the half-made system under the folder's
    name and hands it to the next who opens it, who fails whatever lies there by then."""
    from chromadb.api.shared_system_client import SharedSystemClient

    for kept in ("_identifier_to_system", "_identifier_to_refcount"):
        getattr(SharedSystemClient, kept, {}).pop(str(folder), None)


def drop(folder: Path) -> None:
    """Delete a Chroma folder and its mark. The caller holds the Owner's lock and has closed it."""
    folder.with_name(f"{folder.name}.json").unlink(missing_ok=True)
    sums.note_of(folder).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
