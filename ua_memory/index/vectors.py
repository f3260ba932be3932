"""The vectors: Chroma embedded or on a server, and an exact search in memory for small banks."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import platform
import re
import shutil
import sys
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from zlib import crc32

from ua_memory.errors import Usage
from ua_memory.index import embedding as index_embedding
from ua_memory.paths import make_private
from ua_memory.store.files import RACY_NS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ua_memory.index.embedding import Cache
    from ua_memory.index.words import WordIndex


# -- chroma ------------------------------------------------------------------------------------------------
# Chroma's package, imported without what it never needs here, and how it fails.
#
# chromadb 1.5.9 imports the gRPC exporter of OpenTelemetry, which it uses where an endpoint is configured:
# 150 modules, 12 MB that a resting daemon keeps, and a tenth of a second. Ours are never sent anywhere. It
# has `overrides` read the byte code of its modules to compare the signatures of its own classes, and httpx
# its command line (click, rich): a quarter of a second of processor time together.


EXPORTER = "opentelemetry.exporter.otlp.proto.grpc.trace_exporter"
CHECKER = "overrides"
COMMAND = "httpx._main"
"""httpx goes on without it, as where click is not installed."""


class VectorsUnavailable(Exception):
    """Chroma cannot be used now; the message says why. Search goes on by words."""


class VectorsElsewhere(VectorsUnavailable):
    """Another process has the vectors open."""


class VectorsBroken(VectorsUnavailable):
    """The files are damaged: delete and rebuild them."""


def imported() -> tuple[Any, Any]:
    """`chromadb`, and settings that turn off its telemetry. ImportError if it is missing."""
    if "chromadb" in sys.modules:
        return _both()
    absent = {name: part for name, part in _stand_ins().items() if name not in sys.modules}
    sys.modules.update(absent)  # type: ignore[arg-type]
    try:
        return _both()
    finally:
        for name in absent:
            del sys.modules[name]  # whoever wants the module itself gets it


def _stand_ins() -> dict[str, ModuleType | None]:
    exporter, checker = ModuleType(EXPORTER), ModuleType(CHECKER)
    exporter.OTLPSpanExporter = None  # type: ignore[attr-defined]
    checker.EnforceOverrides = object  # type: ignore[attr-defined]
    checker.override = checker.overrides = _as_it_is  # type: ignore[attr-defined]
    return {EXPORTER: exporter, CHECKER: checker, COMMAND: None}


def _as_it_is(method: Callable[..., Any]) -> Callable[..., Any]:
    return method


def _both() -> tuple[Any, Any]:
    import chromadb

    return chromadb, _settings().model_copy()


@cache
def _settings() -> Any:
    """To make them takes as long as to open a small index: 130 variables are looked for."""
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False, chroma_otel_collection_endpoint="")


# -- mirror ------------------------------------------------------------------------------------------------
# The vectors of a small bank in memory: the nearest by one product of a matrix, exactly.
#
# Chroma stays the index of record; this is a copy of what it holds, for a process that is asked again and
# again. Of 1,000 texts the nearest take 0.2 ms, of 10,000 one to two; Chroma 2 and 5.


if TYPE_CHECKING:
    Row = NDArray[np.float32]

MOST = 20_000
"""Texts; 30 MB. Beyond that Chroma's graph is as fast."""
SPARE = 256
"""Rows that are made ready at a time."""
CLOSE = 2e-6
"""Cosines that may be equal in six digits."""


def all_of(words: WordIndex, cache: Cache, model: str) -> dict[str, Row]:
    """The vectors of all texts, if they are few enough and the cache lacks none; else nothing."""
    names = words.text_ids()
    found = cache.get(model, sorted(names)) if len(names) <= MOST else {}
    return found if len(found) == len(names) else {}


class InMemoryVectors:
    """{name: vector} of length 1; rows of zeros are left out."""

    def __init__(self, vectors: Mapping[str, Row]) -> None:
        import numpy as np

        self._names: list[str] = []
        self._at: dict[str, int] = {}
        width = len(next(iter(vectors.values()))) if vectors else 0
        self._rows = np.zeros((len(vectors) + SPARE, width), dtype=np.float32)
        self.upsert(vectors)

    def __len__(self) -> int:
        return len(self._names)

    def upsert(self, vectors: Mapping[str, Row]) -> None:
        """Add or replace."""
        import numpy as np

        for name, row in vectors.items():
            length = float(np.linalg.norm(row))
            if not length:
                continue
            at = self._at.get(name)
            if at is None:
                at = self._at[name] = len(self._names)
                self._names.append(name)
                if at >= len(self._rows):
                    more = np.zeros((SPARE, len(row)), dtype=np.float32)
                    self._rows = np.concatenate([self._rows, more]) if self._rows.size else more
            self._rows[at] = row / length

    def delete(self, names: Sequence[str]) -> None:
        """Drop texts; the last row takes the place of each. Unknown names are none of our business."""
        for name in names:
            at = self._at.pop(name, None)
            if at is None:
                continue
            last = self._names.pop()
            if last != name:
                self._names[at], self._at[last] = last, at
                self._rows[at] = self._rows[len(self._names)]

    def query(self, vector: Row, limit: int) -> list[tuple[str, float]]:
        """The nearest texts as (name, cosine), best first, equal ones by name: as Chroma's are given."""
        import numpy as np

        if not self._names or limit < 1:
            return []
        found = self._rows[: len(self._names)] @ (vector / max(float(np.linalg.norm(vector)), 1e-12))
        rows = np.arange(len(found))
        if limit < len(found):
            least = np.partition(found, len(found) - limit)[len(found) - limit]
            rows = np.flatnonzero(found >= least - CLOSE)
        near = [(self._names[row], round(float(found[row]), 6)) for row in rows.tolist()]
        return sorted(near, key=lambda hit: (-hit[1], hit[0]))[:limit]


# -- mark --------------------------------------------------------------------------------------------------
# Which words the vectors stand for, written beside them.


LAYOUT = "1"


@dataclass(frozen=True, slots=True)
class VectorMark:
    """Which words these vectors stand for: the word index's epoch and generation, the model, and the cache
    that holds the same texts."""

    epoch: str = ""
    generation: int = -1
    model: str = ""
    layout: str = LAYOUT
    cache: str = ""


def stands_for(mark: Mapping[str, Any], meta: Mapping[str, str]) -> bool:
    """Whether a mark as it was read is that of a word index, by what the index says of itself."""
    return (mark["epoch"], str(mark["generation"])) == (meta.get("epoch"), meta.get("generation"))


def write_mark(file: Path, value: Mapping[str, Any]) -> None:
    """Replace a mark, readable by this user only."""
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(value))
    fresh.chmod(0o600)
    fresh.replace(file)


# -- sums --------------------------------------------------------------------------------------------------
# What Chroma's files were when they were closed, so that a byte which changed since is found.
#
# Nothing of Chroma's own tells that a number within its graph is another. So whoever closes it notes a sum
# of each file, as the last thing while the lock is still theirs, and whoever opens it takes the note away
# before a byte can change. A note that stands is therefore of files at rest: while somebody has them open,
# and after a kill, there is none, and nothing is said of them. A file that was only read is not read again
# for its sum.


PORTION = 1 << 20
"""Bytes read at a time."""

Sums = Mapping[str, list[int]]
"""{name below the generation: a file's size, times and inode, and last the sum of its bytes}."""


def note_of(folder: Path) -> Path:
    """Where the sums of a Chroma folder are noted."""
    return folder.with_name(f"{folder.name}.sums")


def take(folder: Path) -> Sums:
    """Take the note away, so that no power cut brings it back, and give what it said of files that nobody
    can have written since under the same time. OSError where it cannot be taken away."""
    file = note_of(folder)
    try:
        known, written = _read(file), file.stat().st_mtime_ns
        file.unlink()
    except FileNotFoundError:
        return {}
    fd = os.open(file.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # some file systems have nothing to say of folders
            os.fsync(fd)
    finally:
        os.close(fd)
    return {name: row for name, row in (known or {}).items() if max(row[1:3]) < written - RACY_NS}


def note(folder: Path, before: Sums) -> None:
    """Note the files of a Chroma folder, closed by the holder of its lock. Those that are what they were
    `before` are not read. Where it cannot be written there is none."""
    with contextlib.suppress(OSError):
        found: dict[str, list[int]] = {}
        for name, file in _files(folder):
            stat = file.stat()
            stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
            was = before.get(name, [])
            found[name] = was if was[:-1] == stamp else [*stamp, _sum(file)]
        write_mark(note_of(folder), {"sum": _sealed(found), "files": found})


def changed(folder: Path) -> tuple[str, ...] | None:
    """The files that are not what was noted, by their names below the generation; None where there is no
    note, or no longer the same."""
    file = note_of(folder)
    try:
        with file.open("rb") as held:  # its inode is given to no other file while it is open
            known, stamp = _read(file), os.fstat(held.fileno())
            if known is None:
                return (file.name,)
            wrong = [name for name, row in known.items() if _lost(folder.parent / name, row[-1])]
            there = file.stat()
    except OSError:
        return None
    return tuple(wrong) if (there.st_dev, there.st_ino) == (stamp.st_dev, stamp.st_ino) else None


def _read(file: Path) -> dict[str, list[int]] | None:
    """What a note says, None where it is damaged. OSError."""
    try:
        said = json.loads(file.read_bytes())
        found = {str(name): [int(number) for number in row] for name, row in said["files"].items()}
        whole = said["sum"] == _sealed(found) and all(len(row) == 5 for row in found.values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return found if whole else None


def _sealed(found: Sums) -> int:
    return crc32(json.dumps(found, sort_keys=True).encode())


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for file in (folder.with_name(f"{folder.name}.json"), *folder.rglob("*")):
        if file.is_file():
            yield str(file.relative_to(folder.parent)), file


def _lost(file: Path, noted: int) -> bool:
    try:
        return _sum(file) != noted
    except FileNotFoundError:
        return True


def _sum(file: Path) -> int:
    found = 0
    with file.open("rb") as data:
        while portion := data.read(PORTION):
            found = crc32(portion, found)
    return found


# -- vectors -----------------------------------------------------------------------------------------------
# Chroma, embedded, with one owner: this process while it holds the lock, or nobody.
#
# A row is a text, not an item: its id is the text's hash, so equal lines share a vector, moved lines touch
# nothing, and any difference between words and vectors is a difference of two sets of names. Beside the
# folder a mark says which generation of the word index it stands for.


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


class VectorLock:
    """The exclusive lock on the vectors while they are open. The system releases it at a kill."""

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
    def mark(self) -> VectorMark:
        """What the vectors stand for; an empty mark where that is unknown."""

    @abstractmethod
    def set_mark(self, mark: VectorMark) -> None:
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
    """A Chroma folder. The caller holds the `VectorLock` from before opening until after `close`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mark_file = folder.with_name(f"{folder.name}.json")
        self._client: Any = None
        self._mirror: InMemoryVectors | None = None
        self._queries = 0
        self._before: Sums = {}
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
        self._before = take(self.folder)
        try:
            with index_embedding.wiped():
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
            self._mirror = InMemoryVectors(found)

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
            note(self.folder, self._before)

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
    def mark(self) -> VectorMark:
        try:
            return VectorMark(**json.loads(self._mark_file.read_text()))
        except (OSError, ValueError, TypeError, RecursionError):
            return VectorMark()

    def set_mark(self, mark: VectorMark) -> None:
        write_mark(self._mark_file, asdict(mark))

    def _call(self, name: str, **values: Any) -> Any:
        _require(TO_WORK)
        try:
            with index_embedding.wiped():
                return getattr(self._collection, name)(**values)
        except BaseException as error:  # see _open
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            raise _told(f"Chroma: {name} failed: {error}", error) from error


def _require(room: int) -> None:
    if index_embedding.room() < room:
        raise VectorsUnavailable("the limit of memory (ulimit -v) leaves too little for Chroma")


def _told(what: str, error: BaseException) -> VectorsUnavailable:
    """What has failed: as damage, unless it was the system that gave nothing."""
    starved = isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in STARVED)
    return VectorsUnavailable(what) if starved else VectorsBroken(what)


def owned(folder: Path, owner: VectorLock, notes: list[str]) -> Vectors:
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
    note_of(folder).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


# -- server ------------------------------------------------------------------------------------------------
# Chroma on a server: vectors of many banks and machines in one place, where no machine touches another's.
#
# A collection holds one bank's rows of one machine: two machines may have the same bank at different
# revisions, and each finds what its own files say. (Telling them apart by a filter took 370 ms a query at
# 30,000 rows.) While the server is away `kept` answers, and the next look catches up.


PATIENCE, AT_LEAST_A_SECOND = 10.0, 50
"""Seconds for one request, of which a search waits for one at most; a look whether it is there has 2. One
with many rows has more: a second for so many, of which a server that is not under load takes 1,700."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
SERVER_BATCH, CLOUD_BATCH = 2000, 300
"""Rows of one request; Chroma Cloud takes no more than 300."""
CLOUD = "trychroma.com"


class ServerAway(VectorsUnavailable):
    """The server cannot be reached, or gives an invalid answer."""


@dataclass(frozen=True, slots=True)
class Address:
    """A server as `http[s]://[TOKEN@]HOST[:PORT][/TENANT[/DATABASE]]` says it. Shown without its token."""

    host: str
    port: int
    ssl: bool
    token: str = ""
    tenant: str = "default_tenant"
    database: str = "default_database"

    @classmethod
    def read(cls, url: str) -> Address:
        """Usage for what is no such URL."""
        try:
            parts = urlsplit(url.strip())
            port = parts.port or (443 if parts.scheme == "https" else 8000)
        except ValueError as error:
            raise _not_a_server() from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise _not_a_server()
        names = [unquote(name) for name in parts.path.split("/") if name]
        token = unquote(parts.password or parts.username or "")
        whole = (parts.hostname, port, parts.scheme == "https", token)
        return cls(*whole, *names[:2])

    @property
    def cloud(self) -> bool:
        return self.host.endswith(CLOUD)

    @property
    def headers(self) -> dict[str, str]:
        """Both headers that Chroma and the proxies before it know a token by."""
        return {"Authorization": f"Bearer {self.token}", "X-Chroma-Token": self.token} if self.token else {}

    def __str__(self) -> str:
        return f"{'https' if self.ssl else 'http'}://{self.host}:{self.port}"


def _not_a_server() -> Usage:
    return Usage(
        "UA_MEMORY_CHROMA_URL is not the URL of a Chroma server",
        hint="http[s]://[TOKEN@]HOST[:PORT][/TENANT[/DATABASE]]",
    )


def machine(state: Path) -> str:
    """What tells this bank's state folder on this machine from all others; the same as long as it stays."""
    try:
        host = Path("/etc/machine-id").read_text().strip()
    except OSError:
        host = ""
    whole = f"{host or platform.node()}\n{state.resolve()}".encode("utf-8", "surrogateescape")
    return blake2b(whole, digest_size=8).hexdigest()


def _wait(client: Any, seconds: float) -> None:
    """So long for each answer from now on. There is no public way, and else it waits for ever."""
    client._server._session.timeout = seconds


def _hang_up(client: Any) -> None:
    """Close Chroma's client and its connections, which 1.5.9 leaves open. `tests/test_server.py` fails once
    it closes them by itself.
    """
    for part in (client, client._admin_client):
        part._server._session.close()
    client.close()


class ServerConnection:
    """The connection to one server, retried after 1, 2, 4 … 60 seconds while it does not answer."""

    def __init__(self, url: str) -> None:
        self.address = Address.read(url)
        self._client: Any = None
        self._again, self._wait = 0.0, FIRST_WAIT

    def client(self) -> Any:
        """Chroma's client. ServerAway if there is none, at once where it was away a moment ago."""
        if self._client is None:
            if time.monotonic() < self._again:
                raise ServerAway(f"the Chroma server {self.address} does not answer")
            self._client = self._connected()
            self._wait = FIRST_WAIT
        return self._client

    def lost(self, error: BaseException) -> ServerAway:
        """Let go of the connection, and say what happened."""
        self.close()
        self._again, self._wait = time.monotonic() + self._wait, min(2 * self._wait, LONGEST_WAIT)
        why = (str(error).splitlines() or [type(error).__name__])[0]
        return ServerAway(
            f"the Chroma server {self.address} does not answer: {why.replace(self._secret, '…')[:200]}"
        )

    def close(self) -> None:
        """Hang up. The next who asks connects again."""
        client, self._client = self._client, None
        if client is not None:
            _hang_up(client)

    @property
    def _secret(self) -> str:
        return self.address.token or "\0"

    def _connected(self) -> Any:
        there = self.address
        try:
            # Chroma's client waits for ever for a server that takes the call and says nothing.
            ask = urllib.request.Request(f"{there}/api/v2/heartbeat", headers=there.headers)
            with urllib.request.urlopen(ask, timeout=2) as answer:
                answer.read()
            chromadb, silent = imported()
            client = chromadb.HttpClient(
                there.host, there.port, there.ssl, there.headers, silent, there.tenant, there.database
            )
            _wait(client, PATIENCE)
        except ImportError as error:
            raise VectorsUnavailable(f"{error.name or error} cannot be imported") from error
        except urllib.error.HTTPError as error:
            error.close()
            raise self.lost(error) from error
        except Exception as error:  # Chroma raises ValueError, its own errors, httpx's and urllib's
            raise self.lost(error) from error
        return client


class ServerVectors(Rows):
    """One bank's rows of this machine on a server: what `Vectors` is for a folder."""

    def __init__(
        self, line: ServerConnection, bank: str, machine: str, embedding: str, mark_file: Path
    ) -> None:
        self.line = line
        self.key = {"bank": bank, "machine": machine, "embedding": embedding}
        named = "-".join(("ua-memory", *filter(None, self.key.values())))
        self.name = re.sub(r"[^A-Za-z0-9_-]", "-", named)[:500].rstrip("-_")
        self.batch = CLOUD_BATCH if line.address.cloud else SERVER_BATCH
        self._mark_file = mark_file
        self._collection: Any = None
        self._there()

    def _there(self) -> Any:
        """The collection, on a connection that was not lost since."""
        client = self.line.client()
        if self._collection is None:
            try:
                self._collection = client.get_or_create_collection(
                    self.name,
                    embedding_function=None,
                    metadata=self.key,
                    configuration={"hnsw": dict(HNSW)},
                )
            except Exception as error:  # Chroma's own errors, httpx's and ValueError
                raise self.line.lost(error) from error
        return self._collection

    def close(self) -> None:
        self._collection = None
        self.line.close()

    def wipe(self) -> None:
        self._rows = None
        client = self.line.client()
        try:
            client.delete_collection(self.name)
        except Exception as error:  # as above
            raise self.line.lost(error) from error
        finally:
            self._collection = None

    @property
    def mark(self) -> VectorMark:
        there = str(self._there().id)
        try:
            known = json.loads(self._mark_file.read_text())
            return VectorMark(**known["mark"]) if known["collection"] == there else VectorMark()
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return VectorMark()

    def set_mark(self, mark: VectorMark) -> None:
        write_mark(self._mark_file, {"collection": str(self._there().id), "mark": asdict(mark)})

    def names(self) -> set[str]:
        found: set[str] = set()
        while True:
            page = self._call("get", limit=self.batch, offset=len(found), include=[])["ids"]
            found.update(page)
            if len(page) < self.batch:
                return found

    def query(self, vectors: Sequence[Row], limit: int) -> list[list[tuple[str, float]]]:
        return super().query(vectors, min(limit, self.batch))

    def _call(self, name: str, **values: Any) -> Any:
        there = self._there()
        _wait(self.line.client(), PATIENCE + len(values.get("ids", ())) / AT_LEAST_A_SECOND)
        try:
            return getattr(there, name)(**values)
        except Exception as error:  # as above
            self._collection = None
            raise self.line.lost(error) from error
