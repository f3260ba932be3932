"""What the index has read of each file, and for which state of all files it stands.

Whether that state is still theirs is proven by the store's survey (`store.proof`); here it is a name.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable
from typing import NamedTuple


class Known(NamedTuple):
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

    def files(self, paths: Iterable[str] | None = None) -> dict[str, Known]:
        """{path: what was read} of all files, or of these."""
        asked = "SELECT path, size, mtime_ns, ctime_ns, inode, hash, racy FROM files"
        if paths is None:
            rows = self.db.execute(asked).fetchall()
        else:
            rows = [
                row for p in paths for row in self.db.execute(f"{asked} WHERE path = ?", (os.fsencode(p),))
            ]
        return {
            (path := os.fsdecode(raw)): Known(path, size, mtime, ctime, int(inode, 16), digest, bool(racy))
            for raw, size, mtime, ctime, inode, digest, racy in rows
        }

    def count(self) -> int:
        """How many files were read."""
        return int(self.db.execute("SELECT count(*) FROM files").fetchone()[0])

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

    def seal(self, proof: str) -> None:
        """Name the state that was read; an empty name where something may still change unseen."""
        self.db.execute("DELETE FROM meta WHERE name = 'proof'")
        if proof:
            self.db.execute("INSERT INTO meta VALUES ('proof', ?)", (proof,))
