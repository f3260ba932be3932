"""The index folder: numbered generations, one of them current, and the manifest of indexed files."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

from ua_memory.errors import CannotWrite, mending
from ua_memory.paths import make_private
from ua_memory.records import Problem
from ua_memory.store.files import FileStat

# -- generations -------------------------------------------------------------------------------------------
# A rebuild fills a new generation and then makes it the current one.
#
#     index/current      the name of the current generation's folder
#     index/7/           words.db, chroma/, chroma.json (`VectorMark`), chroma.sums (file checksums)
#     index/clock        touched to read the file system's clock
#     index/owner.lock   held while Chroma is open
#     index/build.lock   held while generations are created or removed


P = ParamSpec("P")
R = TypeVar("R")


def create_private_file(file: Path | str) -> None:
    """Create an empty file with mode 0600 if there is none. SQLite creates databases with the umask's mode,
    and gives the journal the mode of the database. Errors are left to whoever opens the file."""
    with contextlib.suppress(OSError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def lock_exclusively(file: Path, seconds: float) -> int:
    """The open descriptor of a file that is locked by it. BlockingIOError if another process holds the lock
    for longer than `seconds`."""
    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            if time.monotonic() >= until:
                os.close(fd)
                raise
            time.sleep(0.02)


def io_as_cannot_write(work: Callable[P, R]) -> Callable[P, R]:
    """Decorator that raises CannotWrite for OSError."""

    @wraps(work)
    def wrapped(*args: P.args, **named: P.kwargs) -> R:
        try:
            return work(*args, **named)
        except OSError as error:
            what, where = error.strerror or str(error), str(error.filename or "the index")
            hint = mending(error, where) or "check owner, mode and free space"
            hint += "; the index before is in use as it was"
            raise CannotWrite(what, where=where, hint=hint) from error

    return wrapped


class Generations:
    """The generations of one bank's index. OSError where the folder cannot be written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make_folder(self) -> None:
        make_private(self.folder)
        create_private_file(self.folder / "clock")

    def current(self) -> Path | None:
        """The current generation's folder, None if there is none yet or it was deleted."""
        try:
            name = (self.folder / "current").read_text().strip()
        except (OSError, UnicodeDecodeError):
            return None
        found = self.folder / name
        return found if name.isdigit() and found.is_dir() else None

    def problems(self) -> list[str]:
        """What is wrong with the file `current`."""
        names = [entry.name for entry in self.folder.glob("[0-9]*") if entry.name.isdigit()]
        dangling = (self.folder / "current").is_file() and self.current() is None
        return [f"names none of the generations there are: {', '.join(names)}"] if dangling and names else []

    def next(self) -> Path:
        """Create a new, empty generation (inside `building`)."""
        numbers = [int(entry.name) for entry in self.folder.iterdir() if entry.name.isdigit()]
        fresh = self.folder / str(max(numbers, default=0) + 1)
        fresh.mkdir(mode=0o700)
        return fresh

    def publish(self, generation: Path) -> None:
        """Make a generation the current one (inside `building`)."""
        pointer = self.folder / "current.new"
        pointer.write_text(generation.name)
        pointer.chmod(0o600)
        pointer.replace(self.folder / "current")

    def discard(self) -> None:
        """Give up a damaged generation, so that the next open starts a new one."""
        with self.building():
            (self.folder / "current").unlink(missing_ok=True)

    def sweep(self) -> None:
        """Delete all other generations, including partial ones of killed processes (inside `building`)."""
        current = self.current()
        for entry in self.folder.iterdir():
            if entry.name.isdigit() and entry != current:
                shutil.rmtree(entry, ignore_errors=True)

    def tidy(self) -> None:
        """Sweep if there is anything to delete and no process is building."""
        if sum(entry.isdigit() for entry in os.listdir(self.folder)) > 1:  # noqa: PTH208 (only names are wanted)
            with contextlib.suppress(BlockingIOError), self.building(0):
                self.sweep()

    @contextmanager
    def building(self, seconds: float = float("inf")) -> Iterator[None]:
        """Hold the build lock. BlockingIOError if another process holds it for longer than `seconds`; a
        rebuild takes minutes."""
        self.make_folder()
        try:
            fd = lock_exclusively(self.folder / "build.lock", seconds)
        except BlockingIOError as error:
            raise BlockingIOError(error.errno, "another process rebuilds it") from error
        try:
            yield
        finally:
            os.close(fd)


# -- manifest ----------------------------------------------------------------------------------------------
# What was read of each file, and the proof: an id of the state of all files, which a survey (`store.files`)
# computes anew to check whether any file has changed.


class KnownFile(NamedTuple):
    """A file as it was when it was read. `hash` is that of the indexed bytes, '' if it failed; a `racy` file
    is read again. `problems` are those of this file, as text (`dump_problems`)."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    hash: str
    racy: bool
    problems: str = ""

    @property
    def stamp(self) -> tuple[int, int, int, int]:
        return self.size, self.mtime_ns, self.ctime_ns, self.inode


def dump_problems(problems: Iterable[Problem]) -> str:
    """The problems of one file as lines of text."""
    return "\n".join(f"{one.line}:{' '.join(one.message.split())}" for one in problems)


def load_problems(path: str, text: str) -> Iterator[Problem]:
    """The inverse of `dump_problems`."""
    for row in filter(None, text.split("\n")):
        line, _, message = row.partition(":")
        yield Problem(path, int(line), message)


def content_hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class Manifest:
    """The table `files` and the proof, in the word index's database."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    def matches(self, proof: str) -> bool:
        """Whether all files were indexed in the state of this survey's proof."""
        return bool(proof) and self.proof() == proof

    def proof(self) -> str:
        """The id of the state in which all files were indexed; '' if unknown."""
        return self._meta("proof")

    def masks(self) -> str:
        """The id of the bank's own redaction patterns with which the files were indexed."""
        return self._meta("masks")

    def _meta(self, name: str) -> str:
        found = self.db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return str(found[0]) if found else ""

    def set_masks(self, masks: str) -> None:
        """Record new redaction patterns and have all files read again (inside a transaction)."""
        self.db.execute("UPDATE files SET hash = '', racy = 1")
        self.db.execute("INSERT OR REPLACE INTO meta VALUES ('masks', ?)", (masks,))
        self.set_proof("")

    def files(self, paths: Iterable[str] | None = None) -> dict[str, KnownFile]:
        """{path: row} of all files, or of these."""
        sql = "SELECT path, size, mtime_ns, ctime_ns, inode, hash, racy, problems FROM files"
        if paths is None:
            rows = self.db.execute(sql).fetchall()
        else:
            rows = [row for p in paths for row in self.db.execute(f"{sql} WHERE path = ?", (os.fsencode(p),))]
        return {
            (path := os.fsdecode(raw)): KnownFile(
                path, size, mtime, ctime, int(inode, 16), digest, bool(racy), problems
            )
            for raw, size, mtime, ctime, inode, digest, racy, problems in rows
        }

    def count(self) -> int:
        """The number of indexed files."""
        return int(self.db.execute("SELECT count(*) FROM files").fetchone()[0])

    def record(self, known: Iterable[KnownFile]) -> None:
        """Insert or replace rows (inside a transaction)."""
        self.db.executemany(
            "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            ((os.fsencode(k.path), *k.stamp[:3], f"{k.inode:x}", k.hash, k.racy, k.problems) for k in known),
        )

    def forget(self, paths: Iterable[str]) -> None:
        self.db.executemany("DELETE FROM files WHERE path = ?", [(os.fsencode(path),) for path in paths])

    def set_proof(self, proof: str) -> None:
        """Record the state that was indexed; '' if some file may change without a new stat."""
        self.db.execute("INSERT OR REPLACE INTO meta VALUES ('proof', ?)", (proof,))


# -- indexed files -----------------------------------------------------------------------------------------


FactGroup = tuple[str, str, str, str]
"""Kind, origin, client ('' for a person's own line) and day ('' for none) of facts."""


class IndexedFiles:
    """The bank's files that have not changed since they were indexed (`same`: {path: problems}), to answer
    questions from the index instead of parsing all files. Methods raise sqlite3.Error."""

    def __init__(self, db: sqlite3.Connection, files: Iterable[FileStat]) -> None:
        known = {path: one for path, one in Manifest(db).files().items() if not path.startswith("/")}
        stamps = {one.path: (one.size, one.mtime_ns, one.ctime_ns, one.inode) for one in files}
        self._db = db
        self.same = {
            path: list(load_problems(path, one.problems))
            for path, one in known.items()
            if one.stamp == stamps.get(path) and not one.racy
        }
        self._stale = sorted(known.keys() - self.same.keys())

    def facts(self, outer: bool) -> Counter[FactGroup]:
        """The number of facts in these files. `outer`: whether other folders are indexed, too."""
        query = "SELECT kind, origin, client, day, count(*) FROM items WHERE record = 'fact'"
        # The order of items_day: three times as fast.
        group_by = "GROUP BY day, origin, session, kind, client"
        inner = "AND substr(path, 1, 1) != '/'" if outer else ""
        found = Counter[FactGroup]()
        for kind, origin, client, day, n in self._db.execute(f"{query} {inner} {group_by}"):
            found[kind, origin, client, day] += n
        for path in self._stale:
            for kind, origin, client, day, n in self._db.execute(f"{query} AND path = ? {group_by}", (path,)):
                found[kind, origin, client, day] -= n
        return found

    def with_facts(self, kind: str, origin: str) -> set[str]:
        """Which of these files have current (not retired) facts of this kind and origin."""
        current = "record = 'fact' AND retired = '' AND kind = ? AND origin = ?"
        rows = self._db.execute(f"SELECT DISTINCT path FROM items WHERE {current}", (kind, origin))
        return {path for (path,) in rows} & self.same.keys()

    def texts(self, ids: Iterable[str]) -> Iterator[tuple[str, str, int, str, str]]:
        """Yield (id, path, line, hash of the text, text) of the items with these ids, by path and line."""
        query = "SELECT id, path, line, texthash, text FROM items WHERE id = ? ORDER BY path, seq"
        for block in ids:
            yield from (row for row in self._db.execute(query, (block,)) if row[1] in self.same)

    def marked(self) -> Iterator[tuple[str, int, str | None, str, str | None]]:
        """(path, line, id, text, flag) of facts that are flagged, or that may have an id in their text."""
        condition = "record = 'fact' AND (flag IS NOT NULL OR id IS NULL AND text LIKE '%^%')"
        query = f"SELECT path, line, id, text, flag FROM items WHERE {condition} ORDER BY path, seq"
        yield from (row for row in self._db.execute(query) if row[0] in self.same)

    def duplicate_ids(self) -> list[str]:
        """Ids that occur more than once."""
        query = "SELECT id FROM items WHERE id IS NOT NULL GROUP BY id HAVING count(*) > 1"
        return [block for (block,) in self._db.execute(query)]
