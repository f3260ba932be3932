"""What a word index says of itself: its epoch, its generation, how much it holds."""

from __future__ import annotations

import sqlite3


class Meta:
    """Reads and writes the table `meta` of an open connection."""

    db: sqlite3.Connection

    def get_meta(self, name: str) -> str:
        found = self.db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return found[0] if found else ""

    def set_meta(self, name: str, value: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    @property
    def generation(self) -> int:
        """Counts the refreshes that changed a text."""
        return int(self.get_meta("generation") or 0)

    @property
    def epoch(self) -> str:
        """Drawn when this file was made: another epoch is another index."""
        return self.get_meta("epoch")

    def files_known(self) -> int:
        return int(self.db.execute("SELECT count(*) FROM files").fetchone()[0])
