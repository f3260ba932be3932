"""The index folder: numbered generations, one current, and what each has read of every file."""

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

from ua_memory.errors import CannotWrite
from ua_memory.paths import make_private
from ua_memory.records import Problem
from ua_memory.store.files import FileStat

# -- shelf -------------------------------------------------------------------------------------------------
# The index folder: numbered generations, one of them current. A rebuild fills the next.
#
# index/current      the name of the folder in use index/7/           words.db, chroma/, chroma.json (see
# `mark`), chroma.sums (see `sums`) index/clock        touched to learn the file system's time
# index/owner.lock   who has Chroma open       index/build.lock   who makes or removes generations


P = ParamSpec("P")
R = TypeVar("R")


def private(file: Path | str) -> None:
    """Make a file that only its owner may read, where there is none: SQLite gives what it keeps beside a
    database the mode of the database, and makes that by the umask. What fails, the caller meets."""
    with contextlib.suppress(OSError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def io_as_cannot_write(work: Callable[P, R]) -> Callable[P, R]:
    """The same work, for a door that asks for it alone: what the file system refuses is CannotWrite."""

    @wraps(work)
    def said(*args: P.args, **named: P.kwargs) -> R:
        try:
            return work(*args, **named)
        except OSError as error:
            what, where = error.strerror or str(error), str(error.filename or "the index")
            hint = "check owner, mode and free space; the index before is in use as it was"
            raise CannotWrite(what, where=where, hint=hint) from error

    return said


class Generations:
    """The generations of one bank's index. OSError where the folder cannot be written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self) -> None:
        make_private(self.folder)
        private(self.folder / "clock")

    def current(self) -> Path | None:
        """The generation in use, None if there is none yet or it was deleted."""
        try:
            name = (self.folder / "current").read_text().strip()
        except (OSError, UnicodeDecodeError):
            return None
        found = self.folder / name
        return found if name.isdigit() and found.is_dir() else None

    def problems(self) -> list[str]:
        """What is wrong with the name of the generation in use."""
        there = [entry.name for entry in self.folder.glob("[0-9]*") if entry.name.isdigit()]
        known = (self.folder / "current").is_file() and self.current() is None
        return [f"names none of the generations there are: {', '.join(there)}"] if known and there else []

    def next(self) -> Path:
        """A new, empty generation that nobody uses yet (inside `building`)."""
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
        """Let whoever looks next begin a new generation: the current one is damaged."""
        with self.building():
            (self.folder / "current").unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove the generations not in use, half-made ones of killed processes too (inside `building`)."""
        used = self.current()
        for entry in self.folder.iterdir():
            if entry.name.isdigit() and entry != used:
                shutil.rmtree(entry, ignore_errors=True)

    def tidy(self) -> None:
        """Sweep if there is anything to sweep, and nobody builds."""
        if sum(entry.isdigit() for entry in os.listdir(self.folder)) > 1:  # noqa: PTH208 (only names are wanted)
            with contextlib.suppress(BlockingIOError), self.building(0):
                self.sweep()

    @contextmanager
    def building(self, seconds: float = float("inf")) -> Iterator[None]:
        """One process at a time makes generations; the others wait for it. A rebuild takes minutes:
        BlockingIOError if somebody builds for longer than these `seconds`."""
        self.make()
        fd = os.open(self.folder / "build.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        until = time.monotonic() + seconds
        try:
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError as error:
                    if time.monotonic() >= until:
                        raise BlockingIOError(error.errno, "another process rebuilds it") from error
                    time.sleep(0.02)
            yield
        finally:
            os.close(fd)


# -- manifest ----------------------------------------------------------------------------------------------
# What the index has read of each file, and for which state of all files it stands.
#
# Whether that state is still theirs is proven by the store's survey (`store.files`); here it is a name.


class KnownFile(NamedTuple):
    """A file as it was when it was read. `hash` is of the bytes used; `racy` asks to read it again.
    `problems` are those of the file alone, as `problems_told` has them."""

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


def problems_told(problems: Iterable[Problem]) -> str:
    """The problems of one file as a text; '' for none."""
    return "\n".join(f"{one.line}:{' '.join(one.message.split())}" for one in problems)


def told_problems(path: str, told: str) -> Iterator[Problem]:
    """The same again as problems."""
    for row in filter(None, told.split("\n")):
        line, _, message = row.partition(":")
        yield Problem(path, int(line), message)


def content_hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class Manifest:
    """The `files` table and the proof, in the word index's own database and transactions."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db

    def stands_for(self, proof: str) -> bool:
        """Whether the index has read all files in the state that a survey's proof names."""
        return bool(proof) and self.sealed() == proof

    def sealed(self) -> str:
        """The name of the state in which all files were read; '' if there is none."""
        found = self.db.execute("SELECT value FROM meta WHERE name = 'proof'").fetchone()
        return str(found[0]) if found else ""

    def masks(self) -> str:
        """The name of the patterns by which what was read is masked."""
        found = self.db.execute("SELECT value FROM meta WHERE name = 'masks'").fetchone()
        return str(found[0]) if found else ""

    def mask(self, masks: str) -> None:
        """Have all files be read again, since other patterns hold (inside a transaction)."""
        self.db.execute("UPDATE files SET hash = '', racy = 1")
        self.db.execute("INSERT OR REPLACE INTO meta VALUES ('masks', ?)", (masks,))
        self.seal("")

    def files(self, paths: Iterable[str] | None = None) -> dict[str, KnownFile]:
        """{path: what was read} of all files, or of these."""
        asked = "SELECT path, size, mtime_ns, ctime_ns, inode, hash, racy, problems FROM files"
        if paths is None:
            rows = self.db.execute(asked).fetchall()
        else:
            rows = [
                row for p in paths for row in self.db.execute(f"{asked} WHERE path = ?", (os.fsencode(p),))
            ]
        return {
            (path := os.fsdecode(raw)): KnownFile(
                path, size, mtime, ctime, int(inode, 16), digest, bool(racy), problems
            )
            for raw, size, mtime, ctime, inode, digest, racy, problems in rows
        }

    def count(self) -> int:
        """How many files were read."""
        return int(self.db.execute("SELECT count(*) FROM files").fetchone()[0])

    def record(self, known: Iterable[KnownFile]) -> None:
        """Remember files as read (inside a transaction)."""
        self.db.executemany(
            "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            ((os.fsencode(k.path), *k.stamp[:3], f"{k.inode:x}", k.hash, k.racy, k.problems) for k in known),
        )

    def forget(self, paths: Iterable[str]) -> None:
        self.db.executemany("DELETE FROM files WHERE path = ?", [(os.fsencode(path),) for path in paths])

    def seal(self, proof: str) -> None:
        """Name the state that was read; an empty name where something may still change unseen."""
        self.db.execute("DELETE FROM meta WHERE name = 'proof'")
        if proof:
            self.db.execute("INSERT INTO meta VALUES ('proof', ?)", (proof,))


# -- what is known of files --------------------------------------------------------------------------------


Counted = tuple[str, str, str, str]
"""Kind, origin, client ('' for a person's own line) and day ('' for none) of facts."""


class IndexedFiles:
    """What the words know of the bank's files that are as they were when they were read (`same`: path → its
    problems), for who would have to parse a million facts otherwise. sqlite3.Error while it is asked."""

    def __init__(self, db: sqlite3.Connection, files: Iterable[FileStat]) -> None:
        known = {path: one for path, one in Manifest(db).files().items() if not path.startswith("/")}
        stamps = {one.path: (one.size, one.mtime_ns, one.ctime_ns, one.inode) for one in files}
        self._db = db
        self.same = {
            path: list(told_problems(path, one.problems))
            for path, one in known.items()
            if one.stamp == stamps.get(path) and not one.racy
        }
        self._stale = sorted(known.keys() - self.same.keys())

    def facts(self, outer: bool) -> Counter[Counted]:
        """How many facts there are in these files. `outer` tells whether other folders are indexed, too."""
        asked = "SELECT kind, origin, client, day, count(*) FROM items WHERE record = 'fact'"
        grouped = "GROUP BY day, origin, session, kind, client"  # as the index has them: a third of the time
        inner = "AND substr(path, 1, 1) != '/'" if outer else ""
        found = Counter[Counted]()
        for kind, origin, client, day, number in self._db.execute(f"{asked} {inner} {grouped}"):
            found[kind, origin, client, day] += number
        for path in self._stale:
            for kind, origin, client, day, number in self._db.execute(
                f"{asked} AND path = ? {grouped}", (path,)
            ):
                found[kind, origin, client, day] -= number
        return found

    def with_facts(self, kind: str, origin: str) -> set[str]:
        """Which of these files have facts of this kind and origin that hold."""
        held = "record = 'fact' AND retired = '' AND kind = ? AND origin = ?"
        rows = self._db.execute(f"SELECT DISTINCT path FROM items WHERE {held}", (kind, origin))
        return {path for (path,) in rows} & self.same.keys()

    def texts(self, ids: Iterable[str]) -> Iterator[tuple[str, str, int, str, str]]:
        """(id, path, line, hash of the text, text) of what has one of these ids, by path and line."""
        asked = "SELECT id, path, line, texthash, text FROM items WHERE id = ? ORDER BY path, seq"
        for block in ids:
            yield from (row for row in self._db.execute(asked, (block,)) if row[1] in self.same)

    def twice(self) -> list[str]:
        """Ids that stand in more than one place."""
        asked = "SELECT id FROM items WHERE id IS NOT NULL GROUP BY id HAVING count(*) > 1"
        return [block for (block,) in self._db.execute(asked)]
