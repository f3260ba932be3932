"""Embeddings by model and text: what makes a rebuilt index cost no model call.

Half precision: the vectors that are used are rounded to it before their first use too, so an index made
from the cache is the index that was made from the model.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from ua_memory.index.generations import private
from ua_memory.index.items import chunks, marks, read_only
from ua_memory.paths import make_private

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ua_memory.index.embedding import Embedded


FILE = "embeddings-2.db"
"""A new layout takes a new number and drops the older file."""

SUMMED = "SELECT sum, vector, codes FROM vectors JOIN sums USING (model, name)"
"""The sums that were noted, each with what it is of."""

ALONE = "SELECT count(*) FROM sums LEFT JOIN vectors USING (model, name) WHERE vector IS NULL"
"""The sums of nothing: who takes an embedding away takes its sum with it."""

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS vectors"
    " (model TEXT, name TEXT, vector BLOB, codes BLOB, PRIMARY KEY (model, name))",
    "CREATE TABLE IF NOT EXISTS sums (model TEXT, name TEXT, sum INTEGER, PRIMARY KEY (model, name))",
    "CREATE TABLE IF NOT EXISTS meta (epoch TEXT)",
)

MOST = 16_384
"""Texts whose vector and packed tokens stay in memory, 2.2 KB each: all of a bank of 10,000 facts. Beyond
that all are let go of."""


def sum_of(vector: bytes, codes: bytes) -> int:
    """By which it is told later whether an embedding is still what was kept."""
    return crc32(codes, crc32(vector))


def without(folder: Path, model: str) -> set[str]:
    """The texts that have no vector, being of nothing the model knows. sqlite3.Error."""
    file = folder / FILE
    if not file.exists():
        return set()
    with closing(read_only(file)) as db:
        rows = db.execute("SELECT name, vector FROM vectors WHERE model = ?", (model,))
        return {name for name, vector in rows if not any(vector)}


class Cache:
    """`cache/embeddings-1.db`. A damaged file is dropped and begun anew."""

    def __init__(self, folder: Path) -> None:
        make_private(folder)
        for file in folder.glob("embeddings-1.db*"):
            file.unlink(missing_ok=True)
        self.file = folder / FILE
        self._recent: tuple[str, dict[str, tuple[bytes, bytes]]] = ("", {})
        """A model, and vectors and packed tokens that were read: those of a name never change."""
        try:
            self.db = self._open()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            self.drop()
            self.db = self._open()

    def _open(self) -> sqlite3.Connection:
        private(self.file)
        db = sqlite3.connect(self.file, isolation_level=None, check_same_thread=False, timeout=10)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            for statement in SCHEMA:
                db.execute(statement)
            if not db.execute("SELECT 1 FROM meta").fetchone():
                db.execute("INSERT INTO meta VALUES (?)", (secrets.token_hex(8),))
        except BaseException:
            db.close()
            raise
        return db

    @property
    def epoch(self) -> str:
        """Drawn when this file was made: an index that was made with another may lack texts here."""
        return str(self.db.execute("SELECT epoch FROM meta").fetchone()[0])

    def drop(self) -> None:
        """Delete the file and what SQLite keeps beside it."""
        for file in self.file.parent.glob(f"{FILE}*"):
            file.unlink(missing_ok=True)

    def get(self, model: str, names: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """{name: vector} of those that are there."""
        import numpy as np

        found: dict[str, NDArray[np.float32]] = {}
        for part in chunks(list(names)):
            query = f"SELECT name, vector FROM vectors WHERE model = ? AND name IN ({marks(part)})"
            for name, blob in self.db.execute(query, (model, *part)):
                found[name] = np.frombuffer(blob, dtype="<f2").astype(np.float32)
        return found

    def missing(self, model: str, names: Iterable[str]) -> list[str]:
        """Those that are not there, in the order given."""
        asked = list(names)
        have: set[str] = set()
        for part in chunks(asked):
            query = f"SELECT name FROM vectors WHERE model = ? AND name IN ({marks(part)})"
            have.update(name for (name,) in self.db.execute(query, (model, *part)))
        return [name for name in asked if name not in have]

    def read(self, model: str, names: Sequence[str]) -> dict[str, tuple[bytes, bytes]]:
        """{name: (vector in half precision, packed tokens)} of those that are there; see `late`."""
        if self._recent[0] != model or len(self._recent[1]) > MOST:
            self._recent = model, {}
        recent = self._recent[1]
        for part in chunks([name for name in names if name not in recent]):
            query = f"SELECT name, vector, codes FROM vectors WHERE model = ? AND name IN ({marks(part)})"
            for name, row, codes in self.db.execute(query, (model, *part)):
                recent[name] = row, codes
        return {name: recent[name] for name in names if name in recent}

    def put(self, model: str, texts: Mapping[str, Embedded]) -> None:
        """Add texts, in one transaction."""
        rows = [(model, name, one.vector.astype("<f2").tobytes(), one.codes) for name, one in texts.items()]
        sums = [(model, name, sum_of(vector, codes)) for _, name, vector, codes in rows]
        self.db.execute("BEGIN IMMEDIATE")
        try:
            self.db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)
            self.db.executemany("INSERT OR REPLACE INTO sums VALUES (?, ?, ?)", sums)
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def keep_only(self, names: Iterable[str]) -> int:
        """Let go of all texts but these, also of what the file still has of them; how many went."""
        self._recent = ("", {})
        self.db.execute("CREATE TEMP TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY)")
        self.db.execute("DELETE FROM temp.kept")
        self.db.executemany("INSERT OR IGNORE INTO temp.kept VALUES (?)", ((name,) for name in names))
        gone = self.db.execute("DELETE FROM vectors WHERE name NOT IN (SELECT name FROM temp.kept)").rowcount
        self.db.execute("DELETE FROM sums WHERE name NOT IN (SELECT name FROM temp.kept)")
        self.db.execute("DROP TABLE temp.kept")
        self.db.execute("VACUUM")
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return int(gone)

    def count(self, model: str) -> int:
        return int(self.db.execute("SELECT count(*) FROM vectors WHERE model = ?", (model,)).fetchone()[0])

    def close(self) -> None:
        self.db.close()
