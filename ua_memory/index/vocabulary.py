"""The words of the index as FTS5 knows them: stems, and how many items have each."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from ua_memory.index.tables import TEMPORARY, chunks, marks
from ua_memory.index.terms import pieces

MOST_STEMS = 100_000
"""Words whose stems are kept in memory."""


class Vocabulary:
    """Reads the word index of an open connection; stems by letting FTS5 do it, so that both always agree."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self._stems: dict[str, str] = {}
        self._known: dict[str, int] = {}
        self._count: int | None = None
        self._version = -1
        for statement in TEMPORARY:
            db.execute(statement)

    def tokens(self, keys: Sequence[str]) -> dict[str, frozenset[str]]:
        """{key: the words of an item's text and context}, as they were indexed, not stemmed."""
        found: dict[str, frozenset[str]] = {}
        for part in chunks(list(keys)):
            query = (
                "SELECT items.key, words.text || ' ' || words.context FROM items JOIN words"
                f" ON words.rowid = items.rowid WHERE items.key IN ({marks(part)})"
            )
            found.update((key, pieces(text)) for key, text in self.db.execute(query, part))
        return found

    def stems(self, words: Iterable[str]) -> dict[str, str]:
        """{word: its stem}, '' for a word FTS5 sees nothing in."""
        asked = list(dict.fromkeys(words))
        unknown = [word for word in asked if word not in self._stems]
        if len(self._stems) > MOST_STEMS:
            self._stems, unknown = {}, asked
        if unknown:
            self._stems.update(self._stemmed(unknown))
        return {word: self._stems[word] for word in asked}

    def frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        """{term: how many items have it}."""
        # FTS5 counts a word's rows anew each time: 2 ms for five common ones of 100,000 items.
        self._current()
        stems = self.stems(terms)
        unknown = sorted(set(stems.values()) - self._known.keys())
        for part in chunks(unknown):
            self._known.update(dict.fromkeys(part, 0))
            query = f"SELECT term, doc FROM terms WHERE term IN ({marks(part)})"
            self._known.update(self.db.execute(query, part))
        return {term: self._known[stems[term]] for term in terms}

    def count(self) -> int:
        """How many items there are."""
        self._current()
        if self._count is None:
            self._count = int(self.db.execute("SELECT count(*) FROM items").fetchone()[0])
        return self._count

    def forget(self) -> None:
        """What was counted may have changed: this connection has written."""
        self._known, self._count = {}, None

    def _current(self) -> None:
        """Forget what was counted before another connection wrote."""
        version = self.db.execute("PRAGMA data_version").fetchone()[0]
        if version != self._version or self.db.in_transaction:
            self._version = version
            self.forget()

    def _stemmed(self, words: list[str]) -> dict[str, str]:
        found = self._cut(" ".join(words))
        if len(found) == len(words):
            return dict(zip(words, found, strict=True))
        # Some word is none or several to FTS5 (its Unicode is older than Python's): one at a time.
        return {word: next(iter(self._cut(word)), "") for word in words}

    def _cut(self, text: str) -> list[str]:
        self.db.execute("INSERT INTO temp.scratch VALUES (?)", (text,))
        try:
            return [
                term for (term,) in self.db.execute("SELECT term FROM temp.scratch_terms ORDER BY offset")
            ]
        finally:
            self.db.execute("DELETE FROM temp.scratch")
