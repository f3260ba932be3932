"""What the index has read of each file, and the cheap proof that nothing has changed since.

The proof is one digest over a `stat` of every known file and of every folder that holds them (a folder's
time changes when a name in it comes or goes). A file or folder that changed within 50 ms of being
read may change again under the same time stamp; while there is such a one, nothing is proven.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ua_memory.paths import CORE_NAMES, LOGS

RACY_NS = 50_000_000


@dataclass(frozen=True, slots=True)
class Known:
    """A file as it was when it was read. `hash` is of the bytes used; `racy` asks to read it again."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    hash: str
    racy: bool

    @property
    def stamp(self) -> tuple[int, int, int, int]:
        return self.size, self.mtime_ns, self.ctime_ns, self.inode


def content_hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def filesystem_now(folder: Path) -> int:
    """The file system's own clock in ns, by touching a file: the one that stamps the files we compare."""
    file = folder / "clock"
    file.touch()
    return file.stat().st_mtime_ns


class Manifest:
    """The `files` table and the digest, in the word index's own database and transactions."""

    def __init__(self, db: sqlite3.Connection, root: Path) -> None:
        self.db, self.root = db, root

    def unchanged(self) -> bool:
        """Whether all files are as the index has read them: one stat each, one comparison."""
        found = self.db.execute("SELECT value FROM meta WHERE name = 'listing'").fetchone()
        if not found:
            return False
        digest, names = found[0][:32], found[0][33:]
        return bool(names) and _digest(os.fsencode(self.root), names.split(b"\0")) == digest.decode()

    def files(self) -> dict[str, Known]:
        """{path: what was read}."""
        rows = self.db.execute("SELECT path, size, mtime_ns, ctime_ns, inode, hash, racy FROM files")
        return {
            os.fsdecode(path): Known(
                os.fsdecode(path), size, mtime, ctime, int(inode, 16), digest, bool(racy)
            )
            for path, size, mtime, ctime, inode, digest, racy in rows
        }

    def record(self, known: Iterable[Known]) -> None:
        """Remember files as read (inside a transaction)."""
        self.db.executemany(
            "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (os.fsencode(k.path), k.size, k.mtime_ns, k.ctime_ns, f"{k.inode:x}", k.hash, k.racy)
                for k in known
            ),
        )

    def forget(self, paths: Iterable[str]) -> None:
        self.db.executemany("DELETE FROM files WHERE path = ?", [(os.fsencode(path),) for path in paths])

    def seal(self, names: list[bytes], digest: str, now: int, *, settled: bool) -> None:
        """Store the proof, taken before the files were read; none where something may still change unseen.

        `names` and `digest` are of `listing`, called before the files were listed.
        """
        self.db.execute("DELETE FROM meta WHERE name = 'listing'")
        if settled and digest and not self._fresh(names, now):
            self.db.execute(
                "INSERT INTO meta VALUES ('listing', ?)", (digest.encode() + b"\0" + b"\0".join(names),)
            )

    def listing(self) -> tuple[list[bytes], str]:
        """Every folder and markdown file of the bank's truth, as bytes below the root, and their digest."""
        names = [b"./" + os.fsencode(name) for name in CORE_NAMES]
        top = self.root / LOGS
        names.append(os.fsencode(LOGS))
        if top.is_dir() and not top.is_symlink():
            names += _below(os.fsencode(top), os.fsencode(LOGS))
        return names, _digest(os.fsencode(self.root), names)

    def _fresh(self, names: list[bytes], now: int) -> bool:
        base = os.fsencode(self.root)
        for name in names:
            try:
                found = os.lstat(base + b"/" + name)
            except OSError:
                continue
            if max(found.st_mtime_ns, found.st_ctime_ns) >= now - RACY_NS:
                return True
        return False


def _below(folder: bytes, prefix: bytes) -> list[bytes]:
    found: list[bytes] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(b"."):
                continue
            if entry.is_dir(follow_symlinks=False):
                found.append(prefix + b"/" + entry.name)
                found += _below(entry.path, prefix + b"/" + entry.name)
            elif entry.name.endswith(b".md"):
                found.append(prefix + b"/" + entry.name)
    return found


def _digest(base: bytes, names: list[bytes]) -> str:
    lstat = os.lstat
    rows: list[tuple[int, int, int, int, int] | None] = []
    for name in names:
        try:
            s = lstat(base + b"/" + name)
        except OSError:
            rows.append(None)
        else:
            # A folder's size and link count follow from its time.
            rows.append((s.st_mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino))
    return hashlib.blake2b(marshal.dumps(rows, 1), digest_size=16).hexdigest()
