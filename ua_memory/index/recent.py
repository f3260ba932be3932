"""The items that were read last, in memory: what a daemon is asked for again and again.

A row becomes an item in some 15 µs, and a search looks at two hundred of them.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Sequence

from ua_memory.index.items import Item
from ua_memory.index.tables import COLUMNS, chunks, from_row, marks

MOST = 16_384
"""Items that are kept, 25 MB: all of a bank of 10,000 facts. Beyond that all are let go of."""


class Recent:
    """Reads the items of an open connection. They are let go of as soon as anybody has written: `forget`
    tells of this connection, SQLite of all others."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self._items: dict[int, Item] = {}
        self._version = 0

    def forget(self) -> None:
        """Keep none: this connection has written."""
        self._items.clear()

    def _look(self) -> None:
        version = self.db.execute("PRAGMA data_version").fetchone()[0]
        if version != self._version:
            self.forget()
            self._version = version

    def items(self, condition: str, values: Sequence[object]) -> list[Item]:
        """The items that SQL chooses, in its order."""
        alone = not self.db.in_transaction
        if alone:
            self.db.execute("BEGIN")  # the numbers, the version and the rows are to be of one moment
        try:
            return self._read(condition, values)
        finally:
            if alone:
                with contextlib.suppress(sqlite3.OperationalError):  # a damaged file may have ended it
                    self.db.execute("COMMIT")

    def _read(self, condition: str, values: Sequence[object]) -> list[Item]:
        """In a transaction: whoever writes in it calls `forget` when they are done."""
        rows = self.db.execute(f"SELECT rowid FROM items WHERE {condition}", tuple(values))
        numbers = [number for (number,) in rows]
        self._look()
        if len(self._items) + len(numbers) > MOST:
            self._items.clear()
        for part in chunks([number for number in numbers if number not in self._items]):
            for row in self.db.execute(f"SELECT {COLUMNS} FROM items WHERE rowid IN ({marks(part)})", part):
                self._items[row[0]] = from_row(row)
        return [self._items[number] for number in numbers]
