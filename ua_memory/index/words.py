"""The word index: every item in SQLite, and an FTS5 table over its words. BM25, terms OR-ed.

Also the index's memory of what it has read: the generation, and the journal of texts whose vectors are
to be brought up to date. Everything here can be made again from the files.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from ua_memory.index import links, matching, spelling
from ua_memory.index.filters import Filters
from ua_memory.index.items import Item
from ua_memory.index.matching import WordHit, expression
from ua_memory.index.meta import Meta
from ua_memory.index.recent import Recent
from ua_memory.index.shelf import private
from ua_memory.index.tables import COLUMNS, SCHEMA, SCHEMA_VERSION, chunks, from_row, marks, row
from ua_memory.index.terms import Query, indexed, pieces
from ua_memory.index.vocabulary import Vocabulary

MOST_SPELT = 50_000
"""Words that are remembered as noted; more are looked up in the table again."""

# The items under one heading share most of it.
_indexed_context = lru_cache(maxsize=256)(indexed)


class Words(Meta):
    """One SQLite file, or `:memory:`. Raises sqlite3.DatabaseError when the file is no such database."""

    def __init__(self, file: Path | str) -> None:
        self.file = file
        self._spelt: set[str] = set()
        if file != ":memory:":
            private(file)
        self.db = sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=10)
        self._recent = Recent(self.db)
        try:
            self._open()
            found = None if file == ":memory:" else Path(file).stat()
            self._inode = (found.st_dev, found.st_ino) if found else (0, 0)
        except BaseException:
            self.db.close()
            raise

    def _open(self) -> None:
        if self.file != ":memory:":
            self.db.execute("PRAGMA journal_mode = WAL")
        # Derived: a power cut may cost the index, which is then made again.
        self.db.execute("PRAGMA synchronous = OFF")
        self.db.execute("PRAGMA cache_size = -16000")
        self.vocabulary = Vocabulary(self.db)
        if not self.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
            with self.writing():
                if not self.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                    for statement in SCHEMA:
                        self.db.execute(statement)
                    self.set_meta("schema", SCHEMA_VERSION)
                    self.set_meta("epoch", secrets.token_hex(8))
                    self.set_meta("generation", "0")

    def close(self) -> None:
        self.db.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction, taken back by what raises inside. sqlite3.OperationalError when another writes."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            self._spelt.clear()
            raise
        else:
            self.db.execute("COMMIT")
        finally:
            self.vocabulary.forget()
            self._recent.forget()

    # -- what is known about the index itself -----------------------------------------------------------

    def in_place(self) -> bool:
        """Whether the file that is open is still the one of that name."""
        try:
            found = Path(self.file).stat()
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._inode

    def text_ids(self) -> set[str]:
        """The names of all texts that should have a vector."""
        return {name for (name,) in self.db.execute("SELECT DISTINCT vhash FROM items")}

    def touched(self, since: int) -> list[str]:
        """The names of the texts that came or went after a generation."""
        query = "SELECT DISTINCT vhash FROM journal WHERE generation > ? ORDER BY vhash"
        return [name for (name,) in self.db.execute(query, (since,))]

    def texts(self, names: Iterable[str]) -> dict[str, str]:
        """{name: text} of those that some item still has."""
        found: dict[str, str] = {}
        for part in chunks(list(names)):
            query = f"SELECT vhash, text FROM items WHERE vhash IN ({marks(part)})"
            found.update(self.db.execute(query, part))
        return found

    def count(self) -> int:
        """How many items there are; counted once for as long as nobody writes."""
        return self.vocabulary.count()

    # -- writing (inside `writing`) -----------------------------------------------------------------------

    def replace_file(self, path: str, items: Sequence[Item]) -> tuple[int, int, int]:
        """Make `items` the items of a file; (added, changed, removed). What only moved is only renumbered."""
        asked = 'SELECT key, rowid, digest, vhash, line, "end", seq, run FROM items WHERE path = ?'
        old = {key: rest for key, *rest in self.db.execute(asked, (path,))}
        added = changed = 0
        moved: list[tuple[int, int, int, str, str, int]] = []
        other: list[str] = []
        fresh: list[tuple[Item, str]] = []
        for item in items:
            digest = item.digest()
            known = old.pop(item.key, None)
            if known and known[1] == digest:
                if (item.vhash, item.line, item.end, item.seq, item.run) != (*known[2:],):
                    moved.append((item.line, item.end, item.seq, item.vhash, item.run, known[0]))
                if item.vhash != known[2]:  # another turn of its run changed
                    other += [item.vhash, known[2]]
                    changed += 1
                continue
            if known:
                changed += 1
                self._drop([known[0]], [known[2]])
            else:
                added += 1
            fresh.append((item, digest))
        self._drop([row[0] for row in old.values()], [row[2] for row in old.values()])
        self.db.executemany(
            'UPDATE items SET line = ?, "end" = ?, seq = ?, vhash = ?, run = ? WHERE rowid = ?', moved
        )
        self._note(other)
        self._add(fresh)
        return added, changed, len(old)

    def remove_file(self, path: str) -> int:
        """Drop a file's items; how many there were."""
        return self.replace_file(path, ())[2]

    def _add(self, fresh: list[tuple[Item, str]]) -> None:
        first = self.db.execute("SELECT coalesce(max(rowid), 0) + 1 FROM items").fetchone()[0]
        self.db.executemany(
            f"INSERT INTO items ({COLUMNS}) VALUES ({marks(COLUMNS.split(','))})",
            (row(first + n, item, digest) for n, (item, digest) in enumerate(fresh)),
        )
        texts = [(indexed(item.text), _indexed_context(item.context)) for item, _ in fresh]
        self.db.executemany(
            "INSERT INTO words (rowid, text, context) VALUES (?, ?, ?)",
            ((first + n, text, context) for n, (text, context) in enumerate(texts)),
        )
        self._spell(texts)
        links.add(self.db, first, [item for item, _ in fresh])
        self._note([item.vhash for item, _ in fresh])

    def _spell(self, texts: list[tuple[str, str]]) -> None:
        """Note how the words of these texts are spelt, those that this connection has not noted yet."""
        fresh = set(pieces(" ".join(part for text in texts for part in text))) - self._spelt
        spelling.add(self.db, fresh)
        self._spelt |= fresh
        if len(self._spelt) > MOST_SPELT:
            self._spelt.clear()

    def _drop(self, numbers: list[int], vhashes: list[str]) -> None:
        self.db.executemany("DELETE FROM items WHERE rowid = ?", [(number,) for number in numbers])
        self.db.executemany("DELETE FROM words WHERE rowid = ?", [(number,) for number in numbers])
        self._note(vhashes)

    def _note(self, vhashes: list[str]) -> None:
        """Have the vectors look at these texts."""
        generation = self.generation + 1 if vhashes else 0
        self.db.executemany("INSERT INTO journal VALUES (?, ?)", [(generation, vhash) for vhash in vhashes])

    def next_generation(self) -> None:
        """Close a refresh that changed something."""
        self.set_meta("generation", str(self.generation + 1))

    def cut_journal(self, generation: int) -> None:
        """Forget what the vectors have taken over (a transaction of its own)."""
        if self.db.execute("SELECT 1 FROM journal LIMIT 1").fetchone():
            self.db.execute("DELETE FROM journal WHERE generation <= ?", (generation,))

    # -- looking up -----------------------------------------------------------------------------------------

    def search(self, query: Query, limit: int, where: Filters | None = None) -> list[WordHit]:
        """The best items by BM25; equal scores in the order of path and line. All phrases must stand."""
        return matching.best(self.db, self.vocabulary, query, limit, where or Filters())

    def get(self, keys: Sequence[str]) -> list[Item]:
        """The items with these keys, in this order; unknown keys are left out."""
        found: dict[str, Item] = {}
        for part in chunks(list(keys)):
            found.update((item.key, item) for item in self._items(f"key IN ({marks(part)})", part))
        return [found[key] for key in keys if key in found]

    def by_text(
        self, names: Sequence[str], where: Filters | None = None, phrases: Query | None = None
    ) -> list[Item]:
        """The items whose text has one of these names and that pass the filters, by path and line."""
        condition, values = (where or Filters()).sql()
        if phrases and phrases.phrases:
            condition += " AND rowid IN (SELECT rowid FROM words WHERE words MATCH ?)"
            values = [*values, expression(Query((), phrases.phrases))]
        found: list[Item] = []
        for part in chunks(list(names)):
            found += self._items(f"vhash IN ({marks(part)}) AND {condition}", [*part, *values])
        return sorted(found, key=lambda item: (item.path, item.line, item.key))

    def allowed(self, where: Filters, query: Query, most: int) -> list[str] | None:
        """The names of the texts that pass filters and phrases; None if they are more than `most`."""
        condition, values = where.sql()
        if query.phrases:
            condition += " AND rowid IN (SELECT rowid FROM words WHERE words MATCH ?)"
            values = [*values, expression(Query((), query.phrases))]
        sql = f"SELECT DISTINCT vhash FROM items WHERE {condition} LIMIT ?"
        found = [name for (name,) in self.db.execute(sql, (*values, most + 1))]
        return sorted(found) if len(found) <= most else None

    def neighbours(self, items: Sequence[Item], steps: Sequence[int] = (-1, 1)) -> list[Item]:
        """The items so many places from each of these in its file, each once, those given left out."""
        have = {item.key for item in items}
        there = {(item.path, item.seq) for item in items}
        wanted = sorted({(item.path, item.seq + step) for item in items for step in steps} - there)
        found: dict[str, Item] = {}
        for part in chunks(wanted):
            values = [value for pair in part for value in pair]
            # As `(path, seq) IN (VALUES …)` SQLite walks through all items: 41 ms where there are 100,000.
            rows = f"(VALUES {','.join(['(?, ?)'] * len(part))}) CROSS JOIN items"
            condition = f"rowid IN (SELECT items.rowid FROM {rows} ON path = column1 AND seq = column2)"
            found.update((item.key, item) for item in self._items(condition, values))
        return [item for key, item in found.items() if key not in have]

    def files_of(self, block_id: str) -> list[str]:
        """The bank's own files in which a block id stands."""
        sql = "SELECT DISTINCT path FROM items WHERE id = ? AND path NOT LIKE '/%' ORDER BY path"
        return [path for (path,) in self.db.execute(sql, (block_id,))]

    def by_texthash(self, texthash: str) -> list[Item]:
        """The bank's own items with exactly this text; other folders' files have absolute paths."""
        return self._items("texthash = ? AND path NOT LIKE '/%' ORDER BY path, line", [texthash])

    def all_items(self) -> Iterator[Item]:
        """Every item, by path and line."""
        for values in self.db.execute(f"SELECT {COLUMNS} FROM items ORDER BY path, line, key"):
            yield from_row(values)

    def _items(self, condition: str, values: Sequence[object]) -> list[Item]:
        return self._recent.items(condition, values)
