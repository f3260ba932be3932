"""The words in use: which generation they lie in, opened or made, followed when it is replaced.

Notes of what had to be rebuilt are gathered in `notes` until somebody takes them.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from pathlib import Path

from ua_memory.index.shelf import Shelf
from ua_memory.index.tables import SCHEMA_VERSION
from ua_memory.index.words import Words

PATIENCE = 2.0
"""Seconds that a broken index waits for another process that rebuilds it; then the files are read instead."""

AGAIN = 60.0
"""Seconds after which words that live in memory are tried to be kept again."""


class Current:
    """The current generation of an index folder. Where that cannot be written, words live in memory."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.notes: list[str] = []
        self._words: Words | None = None
        self._folder: Path | None = None
        self._again = 0.0
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    @property
    def words(self) -> Words:
        """The word index, opened or made."""
        if self._words is None:
            self._open()
        assert self._words
        return self._words

    @property
    def folder(self) -> Path | None:
        """Where vectors belong that go with these words; None if nothing can be kept."""
        assert self.words
        return self._folder

    @property
    def scratch(self) -> Path:
        """A folder that may be written in."""
        if self.folder is None:
            self._temporary = self._temporary or tempfile.TemporaryDirectory(prefix="ua-memory-")
            return Path(self._temporary.name)
        return self.shelf.folder

    def stale(self) -> bool:
        """Whether the generation was deleted, or replaced by another process's; or it is time to try again
        to keep words that live in memory."""
        if self._words is None or self._folder is None:
            return self._words is not None and time.monotonic() > self._again
        return self.shelf.current() != self._folder or not self._words.in_place()

    def use(self, words: Words, folder: Path | None) -> None:
        """Take over words of another generation."""
        self.close()
        self._words, self._folder = words, folder

    def anew(self, why: str) -> None:
        """Begin an empty generation and make it the current one."""
        try:
            with self.shelf.building(PATIENCE):
                fresh = self.shelf.next()
                self.use(Words(fresh / "words.db"), fresh)
                self.shelf.publish(fresh)
                self.shelf.sweep()
        except BlockingIOError as error:
            self.close()
            self._in_memory(f"{why}; {error.strerror}")
        else:
            self.notes.append(f"{why}; rebuilt")

    def close(self) -> None:
        if self._words:
            self._words.close()
        if self._temporary:
            self._temporary.cleanup()
        self._words = self._folder = self._temporary = None

    def _open(self) -> None:
        try:
            if self._standing():
                return
            with self.shelf.building(PATIENCE):
                folder = self.shelf.current()
                if folder is None:
                    folder = self.shelf.next()
                    self.shelf.publish(folder)
                self._words, self._folder = self._opened(folder), folder
        except BlockingIOError as error:
            self._in_memory(f"the index cannot be used now: {error.strerror}")
        except (OSError, sqlite3.OperationalError) as error:
            self._in_memory(f"the index cannot be kept ({error})")

    def _in_memory(self, why: str) -> None:
        self.notes.append(f"{why}; all files are read each time")
        self._words, self._folder, self._again = Words(":memory:"), None, time.monotonic() + AGAIN

    def _standing(self) -> bool:
        """Open the current generation if it is whole, without waiting for who makes another."""
        folder = self.shelf.current()
        if folder is None:
            return False
        try:
            words = Words(folder / "words.db")
        except (sqlite3.DatabaseError, UnicodeDecodeError):  # damaged, or swept away just now
            return False
        if words.get_meta("schema") != SCHEMA_VERSION:
            words.close()
            return False
        self._words, self._folder = words, folder
        self.shelf.tidy()
        return True

    def _opened(self, folder: Path) -> Words:
        """A generation's words, made anew if they are damaged or of another version (inside `building`)."""
        try:
            words = Words(folder / "words.db")
            if words.get_meta("schema") == SCHEMA_VERSION:
                return words
            words.close()
            self.notes.append("the index is of another version; rebuilt")
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not broken(error):
                raise
            self.notes.append(f"the word index was damaged ({error}); rebuilt")
        for file in folder.glob("words.db*"):
            file.unlink()
        return Words(folder / "words.db")


def broken(error: Exception) -> bool:
    """Whether an error means that the database is damaged, not that it is busy, full or read-only."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_IOERR,
    ) or (not code and (not isinstance(error, sqlite3.OperationalError) or "decode" in str(error)))
