"""The vector index: Chroma, embedded or on a server, and an exact in-memory search for small banks."""

from __future__ import annotations

import contextlib
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
from ua_memory.index.generations import lock_exclusively
from ua_memory.paths import make_private, sync_path
from ua_memory.store import swap
from ua_memory.store.files import RACY_NS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ua_memory.index.embedding import Cache
    from ua_memory.index.words import WordIndex


# -- importing Chroma --------------------------------------------------------------------------------------
# Importing chromadb without the parts that are never used here.
#
# chromadb 1.5.9 imports OpenTelemetry's gRPC exporter, which it only uses with a configured endpoint: 150
# modules, 12 MB of an idle daemon's memory, and 0.1 s. It also runs `overrides`, which reads the byte code of
# its modules to compare method signatures, and imports httpx's command line (click, rich): 0.25 s of CPU time
# together.


OTLP_MODULE = "opentelemetry.exporter.otlp.proto.grpc.trace_exporter"
OVERRIDES_MODULE = "overrides"
HTTPX_CLI_MODULE = "httpx._main"
"""httpx works without it, as it does where click is not installed."""


class VectorsUnavailable(Exception):
    """Chroma cannot be used now; the message says why. Search falls back to words."""


class VectorsLocked(VectorsUnavailable):
    """Another process has the vectors open."""


class VectorsForked(VectorsUnavailable):
    """Chroma was opened by a process that this one is forked off, and would wait for its threads."""


class VectorsDamaged(VectorsUnavailable):
    """The files are damaged and must be deleted and rebuilt."""


def import_chromadb() -> tuple[Any, Any]:
    """(the module `chromadb`, settings that turn off its telemetry). ImportError if it is missing."""
    if "chromadb" in sys.modules:
        return _chromadb_and_settings()
    stubs = {name: stub for name, stub in _stub_modules().items() if name not in sys.modules}
    sys.modules.update(stubs)  # type: ignore[arg-type]
    try:
        return _chromadb_and_settings()
    finally:
        for name in stubs:
            del sys.modules[name]  # a later import must get the real module


def _stub_modules() -> dict[str, ModuleType | None]:
    exporter, checker = ModuleType(OTLP_MODULE), ModuleType(OVERRIDES_MODULE)
    exporter.OTLPSpanExporter = None  # type: ignore[attr-defined]
    checker.EnforceOverrides = object  # type: ignore[attr-defined]
    checker.override = checker.overrides = lambda method: method  # type: ignore[attr-defined]
    return {OTLP_MODULE: exporter, OVERRIDES_MODULE: checker, HTTPX_CLI_MODULE: None}


def _chromadb_and_settings() -> tuple[Any, Any]:
    import chromadb

    return chromadb, _settings().model_copy()


@cache
def _settings() -> Any:
    """Cached: Settings reads 130 environment variables, which takes as long as opening a small index."""
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False, chroma_otel_collection_endpoint="")


# -- in-memory vectors -------------------------------------------------------------------------------------
# A copy of a small bank's vectors in memory, searched exactly by a matrix product.
#
# For long-lived processes: a query takes 0.2 ms with 1,000 texts and 1 to 2 ms with 10,000; Chroma takes 2
# and 5 ms.


if TYPE_CHECKING:
    Row = NDArray[np.float32]

MOST_IN_MEMORY = 20_000
"""Texts; 30 MB. Beyond that Chroma's HNSW graph is as fast."""
ROW_BLOCK = 256
"""Rows allocated at a time."""
TOLERANCE = 2e-6
"""Cosines closer than this may be equal when rounded to six digits."""


def cached_vectors(words: WordIndex, cache: Cache, model: str) -> dict[str, Row]:
    """{name: vector} of all texts; empty if there are more than `MOST_IN_MEMORY` or the cache lacks one."""
    names = words.text_ids()
    found = cache.get(model, sorted(names)) if len(names) <= MOST_IN_MEMORY else {}
    return found if len(found) == len(names) else {}


class InMemoryVectors:
    """An exact vector index. Vectors are scaled to length 1; zero vectors are left out."""

    def __init__(self, vectors: Mapping[str, Row]) -> None:
        import numpy as np

        self._names: list[str] = []
        self._row_of: dict[str, int] = {}
        width = len(next(iter(vectors.values()))) if vectors else 0
        self._rows = np.zeros((len(vectors) + ROW_BLOCK, width), dtype=np.float32)
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
            number = self._row_of.get(name)
            if number is None:
                number = self._row_of[name] = len(self._names)
                self._names.append(name)
                if number >= len(self._rows):
                    block = np.zeros((ROW_BLOCK, len(row)), dtype=np.float32)
                    self._rows = np.concatenate([self._rows, block]) if self._rows.size else block
            self._rows[number] = row / length

    def delete(self, names: Sequence[str]) -> None:
        """Delete texts; unknown names are ignored. The last row fills each gap."""
        for name in names:
            number = self._row_of.pop(name, None)
            if number is None:
                continue
            last = self._names.pop()
            if last != name:
                self._names[number], self._row_of[last] = last, number
                self._rows[number] = self._rows[len(self._names)]

    def query(self, vector: Row, limit: int) -> list[tuple[str, float]]:
        """The nearest texts as (name, cosine), best first, ties by name."""
        import numpy as np

        if not self._names or limit < 1:
            return []
        found = self._rows[: len(self._names)] @ (vector / max(float(np.linalg.norm(vector)), 1e-12))
        rows = np.arange(len(found))
        if limit < len(found):
            least = np.partition(found, len(found) - limit)[len(found) - limit]
            rows = np.flatnonzero(found >= least - TOLERANCE)
        near = [(self._names[row], round(float(found[row]), 6)) for row in rows.tolist()]
        return sorted(near, key=lambda hit: (-hit[1], hit[0]))[:limit]


# -- version mark ------------------------------------------------------------------------------------------
# Which state of the word index the vectors match, stored next to them.


LAYOUT = "1"


@dataclass(frozen=True, slots=True)
class VectorMark:
    """The state of the word index that the vectors match (its epoch and generation), their model, and the
    epoch of the embedding cache that holds the same texts."""

    epoch: str = ""
    generation: int = -1
    model: str = ""
    layout: str = LAYOUT
    cache: str = ""


def mark_matches(mark: Mapping[str, Any], meta: Mapping[str, str]) -> bool:
    """Whether a mark (parsed JSON) matches a word index with this `meta` table."""
    return (mark["epoch"], str(mark["generation"])) == (meta.get("epoch"), meta.get("generation"))


def write_mark(file: Path, value: Mapping[str, Any]) -> None:
    """Replace a mark's file, readable by this user only."""
    swap.replace_file(file, json.dumps(value).encode(), file.with_suffix(".new"), durably=False)


# -- file checksums ----------------------------------------------------------------------------------------
# Checksums of Chroma's files while they are closed, so that bit rot is detected.
#
# Chroma does not notice a changed number in its graph. So closing it writes a checksum of each file, as the
# last thing under the lock, and opening it deletes them before any byte can change. While Chroma is open, and
# after a kill, there are no checksums and nothing is checked. Files that were only read are not hashed again.


READ_SIZE = 1 << 20
"""Bytes read at a time."""

Checksums = Mapping[str, list[int]]
"""{path relative to the generation: [size, mtime_ns, ctime_ns, inode, CRC-32 of the bytes]}."""


def checksum_file(folder: Path) -> Path:
    """Where the checksums of a Chroma folder are stored."""
    return folder.with_name(f"{folder.name}.sums")


def take_checksums(folder: Path) -> Checksums:
    """Delete the checksums durably and return those of files that cannot have changed since without a new
    mtime. OSError if they cannot be deleted."""
    file = checksum_file(folder)
    try:
        known, written = _read_checksums(file), file.stat().st_mtime_ns
        file.unlink()
    except FileNotFoundError:
        return {}
    with contextlib.suppress(OSError):  # some file systems cannot fsync a folder
        sync_path(file.parent)
    return {name: row for name, row in (known or {}).items() if max(row[1:3]) < written - RACY_NS}


def write_checksums(folder: Path, before: Checksums) -> None:
    """Write the checksums of a closed Chroma folder, under its lock. Files whose stat is that of `before` are
    not read. Where they cannot be written there are none."""
    with contextlib.suppress(OSError):
        found: dict[str, list[int]] = {}
        for name, file in _files(folder):
            stat = file.stat()
            stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
            was = before.get(name, [])
            found[name] = was if was[:-1] == stamp else [*stamp, _file_checksum(file)]
        write_mark(checksum_file(folder), {"sum": _seal(found), "files": found})


def changed_files(folder: Path) -> tuple[str, ...] | None:
    """The files that do not match their checksum, relative to the generation; None if there are no checksums,
    or they were replaced meanwhile."""
    file = checksum_file(folder)
    try:
        with file.open("rb") as opened:  # its inode is not reused while it is open
            known, before = _read_checksums(file), os.fstat(opened.fileno())
            if known is None:
                return (file.name,)
            wrong = [name for name, row in known.items() if _differs(folder.parent / name, row[-1])]
            after = file.stat()
    except OSError:
        return None
    return tuple(wrong) if (after.st_dev, after.st_ino) == (before.st_dev, before.st_ino) else None


def _read_checksums(file: Path) -> dict[str, list[int]] | None:
    """The checksums in a file, None if it is damaged. OSError."""
    try:
        content = json.loads(file.read_bytes())
        found = {str(name): [int(number) for number in row] for name, row in content["files"].items()}
        valid = content["sum"] == _seal(found) and all(len(row) == 5 for row in found.values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return found if valid else None


def _seal(checksums: Checksums) -> int:
    return crc32(json.dumps(checksums, sort_keys=True).encode())


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for file in (folder.with_name(f"{folder.name}.json"), *folder.rglob("*")):
        if file.is_file():
            yield str(file.relative_to(folder.parent)), file


def _differs(file: Path, expected: int) -> bool:
    try:
        return _file_checksum(file) != expected
    except FileNotFoundError:
        return True


def _file_checksum(file: Path) -> int:
    found = 0
    with file.open("rb") as data:
        while portion := data.read(READ_SIZE):
            found = crc32(portion, found)
    return found


# -- embedded Chroma ---------------------------------------------------------------------------------------
# Embedded Chroma is opened by one process at a time, under a lock.
#
# A row is a text, not an item, and its id is the text's hash: equal lines share a vector, moved lines change
# nothing, and words and vectors are compared as two sets of ids.


COLLECTION = "texts"
HNSW: Mapping[str, Any] = {"space": "cosine", "ef_construction": 64, "max_neighbors": 16, "ef_search": 1000}
"""Recall of the 150 nearest of 60 queries is 100 % among 3,000 random and 10,000 clustered vectors; Chroma's
defaults (100, 16, 100) lose 11 % and 3 %. `ef_search` decides, at 1 to 3 ms a query; a denser graph (200, 32)
finds no more, and an insert takes 2.7 times as long."""

BATCH = 2000
LOCK_SECONDS = 0.3
OPEN_BYTES, CALL_BYTES = 1 << 30, 128 << 20
"""Address space required to open Chroma (800 MB, most of it for its threads) and for a call. With less it is
not called at all: its Rust core aborts the process when an allocation fails."""
SCARCITY = (
    *("out of memory", "allocate memory", "bad_alloc", "temporarily unavailable", "too many open files"),
    *("disk is full", "no space left", "surrogates not allowed"),
)
"""Parts of error messages about a lack of memory, threads, file descriptors or space (also that of `TMPDIR`),
and about a folder whose name is not UTF-8. That is no damage: a rebuild fails as well."""


class VectorLock:
    """An exclusive `flock` held while the vectors are open. The system releases it when the process ends."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._fd: int | None = None

    def acquire(self, seconds: float = LOCK_SECONDS) -> None:
        """VectorsLocked if another process holds it for longer than `seconds`."""
        if self._fd is None:
            try:
                self._fd = lock_exclusively(self.file, seconds)
            except BlockingIOError as error:
                raise VectorsLocked("another process has the vector index open") from error

    def release(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


class VectorStore(ABC):
    """A Chroma collection of vectors by text id (`text_id`), in a folder or on a server."""

    _rows: int | None = None
    """A lower bound of the number of rows; None before they are counted."""
    batch = BATCH
    """Rows per call."""

    @property
    @abstractmethod
    def mark(self) -> VectorMark:
        """Which words the vectors match; an empty mark where that is unknown."""

    @abstractmethod
    def set_mark(self, mark: VectorMark) -> None:
        """Record which words the vectors match; called after they do."""

    @abstractmethod
    def close(self) -> None:
        """Release files, locks and connections."""

    @abstractmethod
    def wipe(self) -> None:
        """Delete all vectors and the collection, whose dimensions another model may not share."""

    @abstractmethod
    def _call(self, name: str, **values: Any) -> Any:
        """Call a method of the collection. VectorsUnavailable or VectorsDamaged for any error of Chroma."""

    def mirror(self, read: Callable[[], Mapping[str, Row]]) -> None:  # noqa: B027 (optional, not abstract)
        """Keep an in-memory copy where that is faster; see `LocalVectors`."""

    def count(self) -> int:
        return int(self._call("count"))

    def names(self) -> set[str]:
        """The ids of all texts that have a vector."""
        return set(self._call("get", include=[])["ids"])

    def upsert(self, vectors: Mapping[str, Row]) -> None:
        """Add or replace {name: vector}; zero vectors are left out."""
        import numpy as np

        names = [name for name, row in vectors.items() if row.any()]
        for start in range(0, len(names), self.batch):
            part = names[start : start + self.batch]
            self._call("upsert", ids=part, embeddings=np.stack([vectors[name] for name in part]))

    def delete(self, names: Sequence[str]) -> None:
        """Delete texts; unknown names are ignored."""
        if self._rows is not None:
            self._rows = max(0, self._rows - len(names))
        for start in range(0, len(names), self.batch):
            self._call("delete", ids=list(names[start : start + self.batch]))

    def query(self, vectors: Sequence[Row], limit: int) -> list[list[tuple[str, float]]]:
        """For each vector the nearest texts as (name, cosine), best first, ties by name."""
        if self._rows is None or self._rows < limit:  # counting takes as long as a query
            self._rows = self.count()
        limit = min(limit, self._rows)
        if limit < 1 or not len(vectors):
            return [[] for _ in vectors]
        found = self._call("query", query_embeddings=list(vectors), n_results=limit, include=["distances"])
        return [
            nearest_first(names, distances)
            for names, distances in zip(found["ids"], found["distances"], strict=True)
        ]


class LocalVectors(VectorStore):
    """Chroma in a folder. The caller holds the `VectorLock` from before opening until after `close`."""

    opened_by = 0
    """The process that first opened Chroma: this one, or one that it is forked off."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mark_file = folder.with_name(f"{folder.name}.json")
        self._client: Any = None
        self._mirror: InMemoryVectors | None = None
        self._queries = 0
        self._before: Checksums = {}
        self._open()

    def _open(self) -> None:
        if LocalVectors.opened_by not in (0, os.getpid()):
            raise VectorsForked("Chroma was opened before this process was forked")
        _require_memory(OPEN_BYTES)
        try:
            chromadb, settings = import_chromadb()
        except ImportError as error:
            raise VectorsUnavailable(f"{error.name or error} cannot be imported") from error
        for name in ("chromadb", "chromadb.telemetry.product.posthog"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        LocalVectors.opened_by = os.getpid()
        make_private(self.folder)
        self._before = take_checksums(self.folder)
        try:
            with index_embedding.zeroed_memory():
                self._client = chromadb.PersistentClient(str(self.folder), settings=settings)
                self._collection = self._client.get_or_create_collection(
                    COLLECTION, embedding_function=None, configuration={"hnsw": dict(HNSW)}
                )
                self._collection.count()
        except BaseException as error:  # the Rust core's PanicException is not an Exception
            self._close()
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            raise _failure(f"Chroma cannot open its files: {error}", error) from error

    def mirror(self, read: Callable[[], Mapping[str, Row]]) -> None:
        """Keep a copy in memory from the second query on, if there are few enough. `read` returns all
        vectors, or {}."""
        self._queries += 1
        if (
            self._mirror is None
            and self._queries > 1
            and (self._rows or 0) <= MOST_IN_MEMORY
            and (found := read())
        ):
            self._mirror = InMemoryVectors(found)

    def upsert(self, vectors: Mapping[str, Row]) -> None:
        super().upsert(vectors)
        if self._mirror is not None:
            self._mirror.upsert(vectors)
            if len(self._mirror) > MOST_IN_MEMORY:
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
        """Close the files, so that they may be deleted or moved, and write their checksums."""
        if self._close():
            write_checksums(self.folder, self._before)

    def _close(self) -> bool:
        """Close the client. Returns whether it was open."""
        client, self._client, self._collection, self._mirror = self._client, None, None, None
        if client is not None:
            client.close()
            _make_private(self.folder)
        else:
            _discard_failed_client(self.folder)
        return client is not None

    def wipe(self) -> None:
        self._close()
        self._rows = None
        delete_vectors(self.folder)
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
        _require_memory(CALL_BYTES)
        try:
            with index_embedding.zeroed_memory():
                return getattr(self._collection, name)(**values)
        except BaseException as error:  # see `_open`
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            raise _failure(f"Chroma: {name} failed: {error}", error) from error


def _require_memory(size: int) -> None:
    if index_embedding.free_address_space() < size:
        raise VectorsUnavailable("the limit of memory (ulimit -v) leaves too little for Chroma")


def _failure(message: str, error: BaseException) -> VectorsUnavailable:
    """The exception to raise for an error of Chroma: damage, unless the system lacked resources."""
    text = str(error).lower()
    starved = isinstance(error, MemoryError) or any(part in text for part in SCARCITY)
    return VectorsUnavailable(message) if starved else VectorsDamaged(message)


def open_vectors(folder: Path, owner: VectorLock, notes: list[str]) -> LocalVectors:
    """Acquire the lock and open a folder's vectors. Damaged ones are deleted, which is added to `notes`."""
    owner.acquire()
    try:
        try:
            return LocalVectors(folder)
        except VectorsDamaged as error:
            notes.append(f"{error}; rebuilt")
            delete_vectors(folder)
            return LocalVectors(folder)
    except BaseException:
        owner.release()
        raise


def nearest_first(names: Sequence[str], distances: Iterable[float]) -> list[tuple[str, float]]:
    """[(name, cosine)], best first, rounded to six digits: the last bits depend on the order of insertion."""
    found = [(name, round(1.0 - float(distance), 6)) for name, distance in zip(names, distances, strict=True)]
    return sorted(found, key=lambda hit: (-hit[1], hit[0]))


def _make_private(folder: Path) -> None:
    """Restrict what Chroma created with the umask's mode to this user."""
    with contextlib.suppress(OSError):
        for path in (folder, *folder.rglob("*")):
            mode = 0o700 if path.is_dir() else 0o600
            if path.stat().st_mode & 0o777 != mode:  # keep the ctime of the others
                path.chmod(mode)


def _discard_failed_client(folder: Path) -> None:
    """Drop a client that failed to open. Chroma 1.5.9 caches the half-initialised system by folder, so that
    every later attempt to open the folder would fail, too."""
    from chromadb.api.shared_system_client import SharedSystemClient

    for registry in ("_identifier_to_system", "_identifier_to_refcount"):
        getattr(SharedSystemClient, registry, {}).pop(str(folder), None)


def delete_vectors(folder: Path) -> None:
    """Delete a Chroma folder, its mark and its checksums. The caller holds the lock and has closed it."""
    folder.with_name(f"{folder.name}.json").unlink(missing_ok=True)
    checksum_file(folder).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


# -- Chroma server -----------------------------------------------------------------------------------------
# Chroma on a server, shared by many banks and machines.
#
# Each bank has one collection per machine: two machines may have the same bank at different revisions, and
# each must find what its own files say. (One collection with a filter took 370 ms a query at 30,000 rows.)
# While the server is unavailable the cached embeddings are searched, and the next refresh catches up.


REQUEST_TIMEOUT, ROWS_PER_SECOND = 10.0, 50
"""Seconds for one request, and rows for which a request gets one second more; an idle server takes 1,700 rows
a second. A search makes one request at most; the connection check has its own timeout of 2 s."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
SERVER_BATCH, CLOUD_BATCH = 2000, 300
"""Rows per request; Chroma Cloud accepts at most 300."""
CLOUD_DOMAIN = "trychroma.com"


class ServerUnavailable(VectorsUnavailable):
    """The server cannot be reached, or its answer is invalid."""


@dataclass(frozen=True, slots=True)
class Address:
    """A server's URL, `http[s]://[TOKEN@]HOST[:PORT][/TENANT[/DATABASE]]`. `str` leaves out the token."""

    host: str
    port: int
    ssl: bool
    token: str = ""
    tenant: str = "default_tenant"
    database: str = "default_database"

    @classmethod
    def parse(cls, url: str) -> Address:
        """Usage if the URL is invalid."""
        try:
            parts = urlsplit(url.strip())
            port = parts.port or (443 if parts.scheme == "https" else 8000)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError(parts.scheme)
        except ValueError as error:
            raise Usage(
                "UA_MEMORY_CHROMA_URL is not the URL of a Chroma server",
                hint="http[s]://[TOKEN@]HOST[:PORT][/TENANT[/DATABASE]]",
            ) from error
        names = [unquote(name) for name in parts.path.split("/") if name]
        token = unquote(parts.password or parts.username or "")
        return cls(parts.hostname, port, parts.scheme == "https", token, *names[:2])

    @property
    def cloud(self) -> bool:
        return self.host.endswith(CLOUD_DOMAIN)

    @property
    def headers(self) -> dict[str, str]:
        """The authentication headers: Chroma accepts either, a reverse proxy maybe only one of them."""
        return {"Authorization": f"Bearer {self.token}", "X-Chroma-Token": self.token} if self.token else {}

    def __str__(self) -> str:
        return f"{'https' if self.ssl else 'http'}://{self.host}:{self.port}"


def machine_id(state: Path) -> str:
    """A stable id of this bank's state folder on this machine: 16 hexadecimal digits."""
    try:
        host = Path("/etc/machine-id").read_text().strip()
    except OSError:
        host = ""
    name = f"{host or platform.node()}\n{state.resolve()}".encode("utf-8", "surrogateescape")
    return blake2b(name, digest_size=8).hexdigest()


def _set_timeout(client: Any, seconds: float) -> None:
    """Set the timeout of the requests to come. Chroma has no public way, and none by default."""
    client._server._session.timeout = seconds


def _close_client(client: Any) -> None:
    """Close Chroma's client with its connections, which 1.5.9 leaves open. `tests/test_chroma_server.py`
    fails once Chroma closes them itself."""
    for part in (client, client._admin_client):
        part._server._session.close()
    client.close()


class ServerConnection:
    """The connection to a server. Reconnects with exponential backoff: 1, 2, 4 … 60 seconds."""

    def __init__(self, url: str) -> None:
        self.address = Address.parse(url)
        self._client: Any = None
        self._retry_at, self._backoff = 0.0, FIRST_WAIT

    def client(self) -> Any:
        """Chroma's client, connected. ServerUnavailable if that fails, at once during the backoff."""
        if self._client is None:
            if time.monotonic() < self._retry_at:
                raise ServerUnavailable(f"the Chroma server {self.address} does not answer")
            self._client = self._connect()
            self._backoff = FIRST_WAIT
        return self._client

    def fail(self, error: BaseException) -> ServerUnavailable:
        """Close the connection after an error and begin the backoff. Returns the exception to raise."""
        self.close()
        self._retry_at = time.monotonic() + self._backoff
        self._backoff = min(2 * self._backoff, LONGEST_WAIT)
        why = (str(error).splitlines() or [type(error).__name__])[0]
        why = why.replace(self.address.token or "\0", "…")[:200]
        return ServerUnavailable(f"the Chroma server {self.address} does not answer: {why}")

    def close(self) -> None:
        """Close the connection; the next call of `client` reconnects."""
        client, self._client = self._client, None
        if client is not None:
            _close_client(client)

    def _connect(self) -> Any:
        to = self.address
        try:
            # Chroma's client would wait for ever for a server that accepts but does not answer.
            request = urllib.request.Request(f"{to}/api/v2/heartbeat", headers=to.headers)
            with urllib.request.urlopen(request, timeout=2) as response:
                response.read()
            chromadb, settings = import_chromadb()
            client = chromadb.HttpClient(
                to.host, to.port, to.ssl, to.headers, settings, to.tenant, to.database
            )
            _set_timeout(client, REQUEST_TIMEOUT)
        except ImportError as error:
            raise VectorsUnavailable(f"{error.name or error} cannot be imported") from error
        except urllib.error.HTTPError as error:
            error.close()
            raise self.fail(error) from error
        except Exception as error:  # Chroma raises ValueError, its own errors, httpx's and urllib's
            raise self.fail(error) from error
        return client


class ServerVectors(VectorStore):
    """The collection of one bank on this machine, on a Chroma server."""

    def __init__(
        self, connection: ServerConnection, bank: str, machine: str, embedding: str, mark_file: Path
    ) -> None:
        self.connection = connection
        self.key = {"bank": bank, "machine": machine, "embedding": embedding}
        name = "-".join(("ua-memory", *filter(None, self.key.values())))
        self.name = re.sub(r"[^A-Za-z0-9_-]", "-", name)[:500].rstrip("-_")
        self.batch = CLOUD_BATCH if connection.address.cloud else SERVER_BATCH
        self._mark_file = mark_file
        self._collection: Any = None
        self._connected()

    def _connected(self) -> Any:
        """The collection, reconnecting if the connection failed."""
        client = self.connection.client()
        if self._collection is None:
            try:
                self._collection = client.get_or_create_collection(
                    self.name, embedding_function=None, metadata=self.key, configuration={"hnsw": dict(HNSW)}
                )
            except Exception as error:  # Chroma's own errors, httpx's and ValueError
                raise self.connection.fail(error) from error
        return self._collection

    def close(self) -> None:
        self._collection = None
        self.connection.close()

    def wipe(self) -> None:
        self._rows = None
        client = self.connection.client()
        try:
            client.delete_collection(self.name)
        except Exception as error:  # as above
            raise self.connection.fail(error) from error
        finally:
            self._collection = None

    @property
    def mark(self) -> VectorMark:
        collection = str(self._connected().id)
        try:
            known = json.loads(self._mark_file.read_text())
            return VectorMark(**known["mark"]) if known["collection"] == collection else VectorMark()
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return VectorMark()

    def set_mark(self, mark: VectorMark) -> None:
        write_mark(self._mark_file, {"collection": str(self._connected().id), "mark": asdict(mark)})

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
        collection = self._connected()
        timeout = REQUEST_TIMEOUT + len(values.get("ids", ())) / ROWS_PER_SECOND
        _set_timeout(self.connection.client(), timeout)
        try:
            return getattr(collection, name)(**values)
        except Exception as error:  # as above
            self._collection = None
            raise self.connection.fail(error) from error
