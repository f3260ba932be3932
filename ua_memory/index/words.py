"""The word index: every item in SQLite with an FTS5 table, BM25, counts of names, the generation in use."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import sqlite3
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from ua_memory.index import items as index_items
from ua_memory.index import terms as index_terms
from ua_memory.index.filters import Filters
from ua_memory.index.generations import Generations, private
from ua_memory.index.items import (
    COLUMNS,
    LABEL,
    LINKED,
    OPENING,
    SCHEMA,
    SCHEMA_VERSION,
    WITHIN,
    IndexItem,
    LongLogs,
    chunks,
    from_row,
    marks,
    row,
)
from ua_memory.index.terms import EXACT, SCRATCH, Query, clean, indexed, languages, pieces
from ua_memory.records import Place

# -- vocabulary --------------------------------------------------------------------------------------------
# The words of the index as FTS5 knows them: stems, and how many items have each.


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
        for statement in SCRATCH:
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

    def forms(self, terms: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """{term: its other forms in the bank} of those in languages besides English."""
        return index_terms.forms(self.db, self.frequencies, lambda word: [self.stems([word])[word]], terms)

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
        found = index_terms.cut(self.db, " ".join(words))
        if len(found) == len(words):
            return dict(zip(words, found, strict=True))
        # Some word is none or several to FTS5 (its Unicode is older than Python's): one at a time.
        return {word: next(iter(index_terms.cut(self.db, word)), "") for word in words}


# -- matching ----------------------------------------------------------------------------------------------
# From a query to the rows that match it best: FTS5's BM25, terms OR-ed, phrases required.
#
# FTS5 scores every row that has any of the terms: 1.5 µs a row, 75 ms where "time" stands in a third of
# 100,000 items. So where the query has rarer words, rows are looked up by those, and the common ones only
# add to the score of rows that have a rarer one. All scores are the full BM25. What cannot be found that
# way has none but common words of the query, each of which says little. In a bank of no more than ENOUGH
# items, and wherever the rarer words find too few, all terms look up rows.


CONTEXT_WEIGHT = 0.4
"""What a word in an item's heading, tags or entities counts beside one in its text."""

ASKED = 48
"""So many terms of a query are looked up, the rarest; a longer one is a pasted document."""

ENOUGH, LEAST, SHARE = 2000, 500, 20
"""Rows after which further terms, the rarest first, no longer look up rows of their own: a twentieth of all,
from 500 to 2,000."""


@dataclass(frozen=True, slots=True)
class WordHit:
    """An item found by keywords, with its BM25 score; higher is better."""

    key: str
    score: float


def expression(query: Query) -> str:
    """A query in FTS5's syntax, '' if it has no terms."""
    phrases = ['"' + " ".join(phrase) + '"' for phrase in query.phrases]
    every = _any([*_quoted(query.every_term, query), *phrases])
    required = " AND ".join(phrases)
    return f"({required}) AND ({every})" if required and every else required or every


def containing(query: Query, texts: Sequence[str]) -> list[bool]:
    """Whether each text answers a query by its own words, as they stand there: of one stem for the word index
    are "news" and "new", too."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(f'CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = "{EXACT}")')
        rows = enumerate(indexed(clean(text)) for text in texts)
        db.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)
        found = db.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression(query),))
        there = {number for (number,) in found}
    return [number in there for number in range(len(texts))]


def best(
    db: sqlite3.Connection, vocabulary: Vocabulary, query: Query, limit: int, where: Filters
) -> list[WordHit]:
    """The best items by BM25; ties by path and line."""
    found: list[WordHit] = []
    for matches in _ways(vocabulary, query):
        found = _fetched(db, matches, limit, where)
        if len(found) == limit:
            break
    return found


def _ways(vocabulary: Vocabulary, query: Query) -> Iterator[list[str]]:
    """Lists of expressions that no row matches two of, the cheapest first, the last with all that matches."""
    every_term = query.every_term
    known = vocabulary.frequencies(every_term) if every_term else {}
    terms = sorted((term for term in every_term if known[term]), key=lambda term: (known[term], term))
    terms = terms[:ASKED]
    total = vocabulary.count()
    if not query.phrases and total > ENOUGH:
        rows, rare, enough = 0, 0, min(ENOUGH, max(LEAST, total // SHARE))
        while rare < len(terms) and rows < enough:
            rows += known[terms[rare]]
            rare += 1
        if rare < len(terms):
            few, common = (_any(_quoted(part, query)) for part in (terms[:rare], terms[rare:]))
            yield [f"({few}) NOT ({common})", f"({few}) AND ({common})"]
    kept = set(terms)
    every = expression(Query(tuple(term for term in every_term if term in kept), query.phrases, query.again))
    if every:
        yield [every]


def _fetched(db: sqlite3.Connection, matches: Sequence[str], limit: int, where: Filters) -> list[WordHit]:
    condition, values = where.sql()
    ranked = (
        f"SELECT rowid AS number, bm25(words, 1.0, {CONTEXT_WEIGHT}) AS score FROM words WHERE words MATCH ?"
    )
    if where:
        sql = (f"SELECT key, score, path, line FROM ({ranked}) JOIN items ON items.rowid = number "
               f"WHERE {condition} ORDER BY score LIMIT ?")  # fmt: skip
    else:
        sql = (f"SELECT key, score, path, line FROM ({ranked} ORDER BY score LIMIT ?) "
               "JOIN items ON items.rowid = number")  # fmt: skip
    fetch = limit + 64
    while True:
        found: list[tuple[float, str, int, str]] = []
        unseen = float("-inf")
        for match in matches:
            part = [(round(-score, 9), path, line, key)
                    for key, score, path, line in db.execute(sql, (match, *values, fetch))]  # fmt: skip
            found += part
            if len(part) == fetch:
                unseen = max(unseen, min(part)[0])
        found.sort(key=lambda hit: (-hit[0], hit[1], hit[2], hit[3]))
        # A tie that goes on past what was fetched would be cut in the order of insertion.
        if len(found) < limit or found[limit - 1][0] > unseen:
            return [WordHit(key, score) for score, _, _, key in found[:limit]]
        fetch *= 16


def _quoted(terms: Sequence[str], query: Query) -> list[str]:
    """Terms for FTS5, which counts one that is named twice twice."""
    return [f'"{term}"' for term in (*terms, *(each for each in query.again if each in terms))]


def _any(terms: Sequence[str]) -> str:
    return " OR ".join(terms)


# -- meta --------------------------------------------------------------------------------------------------
# What a word index says of itself: its epoch, its generation, how much it holds.


class IndexMeta:
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


# -- recent ------------------------------------------------------------------------------------------------
# The items that were read last, in memory: what a daemon is asked for again and again.
#
# A row becomes an item in some 15 µs, and a search looks at two hundred of them.


MOST = 16_384
"""Items that are kept, 25 MB: all of a bank of 10,000 facts. Beyond that all are let go of."""


class ItemReader:
    """Reads items over an open connection, and caches them until anybody writes."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self._items: dict[int, IndexItem] = {}
        self._version = 0

    def forget(self) -> None:
        """Keep none: this connection has written."""
        self._items.clear()

    def _look(self) -> None:
        version = self.db.execute("PRAGMA data_version").fetchone()[0]
        if version != self._version:
            self.forget()
            self._version = version

    def items(self, condition: str, values: Sequence[object]) -> list[IndexItem]:
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

    def _read(self, condition: str, values: Sequence[object]) -> list[IndexItem]:
        """In a transaction: whoever writes in it calls `forget` when they are done."""
        rows = self.db.execute(f"SELECT rowid FROM items WHERE {condition}", tuple(values))
        numbers = [number for (number,) in rows]
        self._look()
        if len(self._items) + len(numbers) > MOST:
            self._items.clear()
        for part in chunks([number for number in numbers if number not in self._items]):
            for found in self.db.execute(f"SELECT {COLUMNS} FROM items WHERE rowid IN ({marks(part)})", part):
                self._items[found[0]] = from_row(found)
        return [self._items[number] for number in numbers]


# -- words -------------------------------------------------------------------------------------------------
# The word index: every item in SQLite, and an FTS5 table over its words. BM25, terms OR-ed.
#
# Also the index's memory of what it has read: the generation, and the journal of texts whose vectors are to
# be updated. Everything here can be made again from the files.


MOST_SPELT = 50_000
"""Words that are remembered as noted; more are looked up in the table again."""


class WordIndex(IndexMeta):
    """One SQLite file, or `:memory:`. Raises sqlite3.DatabaseError if the file is not a database."""

    def __init__(self, file: Path | str) -> None:
        self.file = file
        self._spelt: set[str] = set()
        self._formed = defaultdict[str, set[str]](set)
        self.long_logs = LongLogs()
        self._indexed_context = lru_cache(maxsize=256)(indexed)  # items under one heading share most of it
        if file != ":memory:":
            private(file)
        self.db = sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=10)
        self._recent = ItemReader(self.db)
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
        # Of 100,000 facts a search takes as long with 4 MB as with 16, and the page has three connections.
        self.db.execute("PRAGMA cache_size = -4000")
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
            self._formed.clear()
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

    def replace_file(self, path: str, items: Sequence[IndexItem]) -> tuple[int, int, int]:
        """Replace a file's items; (added, changed, removed). Items that only moved are renumbered."""
        asked = 'SELECT key, rowid, digest, vhash, line, "end", seq, run FROM items WHERE path = ?'
        old = {key: rest for key, *rest in self.db.execute(asked, (path,))}
        added = changed = 0
        moved: list[tuple[int, int, int, str, str, int]] = []
        other: list[str] = []
        fresh: list[tuple[IndexItem, str]] = []
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
        """Remove a file's items; how many there were."""
        return self.replace_file(path, ())[2]

    def _add(self, fresh: list[tuple[IndexItem, str]]) -> None:
        first = self.db.execute("SELECT coalesce(max(rowid), 0) + 1 FROM items").fetchone()[0]
        self.db.executemany(
            f"INSERT INTO items ({COLUMNS}) VALUES ({marks(COLUMNS.split(','))})",
            (row(first + n, item, digest) for n, (item, digest) in enumerate(fresh)),
        )
        texts = [(indexed(item.text), self._indexed_context(item.context)) for item, _ in fresh]
        self.db.executemany(
            "INSERT INTO words (rowid, text, context) VALUES (?, ?, ?)",
            ((first + n, text, context) for n, (text, context) in enumerate(texts)),
        )
        self._spell(texts)
        index_items.add(self.db, first, [item for item, _ in fresh])
        self._note([item.vhash for item, _ in fresh])

    def _spell(self, texts: list[tuple[str, str]]) -> None:
        """Note how the words of these texts are spelt, and those of languages with forms by their stems; each
        that this connection has not noted yet."""
        every, formed = set[str](), defaultdict[str, set[str]](set)
        for text in texts:
            own = pieces(" ".join(text))
            every |= own
            for language in languages(own):
                formed[language] |= own
        fresh = every - self._spelt
        index_terms.add(self.db, fresh)
        self._spelt |= fresh
        if len(self._spelt) > MOST_SPELT:
            self._spelt.clear()
        for language, there in formed.items():
            index_terms.add_forms(self.db, language, there - self._formed[language])
            self._formed[language] |= there
            if len(self._formed[language]) > MOST_SPELT:
                self._formed[language].clear()

    def _drop(self, numbers: list[int], vhashes: list[str]) -> None:
        self.db.executemany("DELETE FROM items WHERE rowid = ?", [(number,) for number in numbers])
        self.db.executemany("DELETE FROM words WHERE rowid = ?", [(number,) for number in numbers])
        self._note(vhashes)

    def _note(self, vhashes: list[str]) -> None:
        """Have the vectors look at these texts."""
        generation = self.generation + 1 if vhashes else 0
        self.db.executemany("INSERT INTO journal VALUES (?, ?)", [(generation, vhash) for vhash in vhashes])

    def next_generation(self) -> None:
        """End a refresh that changed something."""
        self.set_meta("generation", str(self.generation + 1))

    def cut_journal(self, generation: int) -> None:
        """Forget what the vectors have taken over (a transaction of its own)."""
        if self.db.execute("SELECT 1 FROM journal LIMIT 1").fetchone():
            self.db.execute("DELETE FROM journal WHERE generation <= ?", (generation,))

    # -- looking up -----------------------------------------------------------------------------------------

    def search(self, query: Query, limit: int, where: Filters | None = None) -> list[WordHit]:
        """The best items by BM25; ties by path and line. All phrases are required."""
        return best(self.db, self.vocabulary, query, limit, where or Filters())

    def get(self, keys: Sequence[str]) -> list[IndexItem]:
        """The items with these keys, in order; unknown keys are ignored."""
        found: dict[str, IndexItem] = {}
        for part in chunks(list(keys)):
            found.update((item.key, item) for item in self._items(f"key IN ({marks(part)})", part))
        return [found[key] for key in keys if key in found]

    def by_text(
        self, names: Sequence[str], where: Filters | None = None, phrases: Query | None = None
    ) -> list[IndexItem]:
        """The items whose text has one of these names and that pass the filters, by path and line."""
        condition, values = (where or Filters()).sql()
        if phrases and phrases.phrases:
            condition += " AND rowid IN (SELECT rowid FROM words WHERE words MATCH ?)"
            values = [*values, expression(Query((), phrases.phrases))]
        found: list[IndexItem] = []
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

    def listed(self, where: Filters) -> tuple[int, Iterator[IndexItem]]:
        """How many items pass the filters, and these, the newest day first, within a day the last lines of a
        file first; those without a day last. They are read as they are taken."""
        condition, values = where.sql()
        ((total,),) = self.db.execute(f"SELECT count(*) FROM items WHERE {condition}", values)
        order = "date DESC, day DESC, path DESC, line DESC, key DESC"  # the index items_order, read backwards
        rows = self.db.execute(f"SELECT {COLUMNS} FROM items WHERE {condition} ORDER BY {order}", values)
        return total, map(from_row, rows)

    def neighbours(self, items: Sequence[IndexItem], steps: Sequence[int] = (-1, 1)) -> list[IndexItem]:
        """The items so many places from each of these in its file, each once, those given left out."""
        have = {item.key for item in items}
        there = {(item.path, item.seq) for item in items}
        wanted = sorted({(item.path, item.seq + step) for item in items for step in steps} - there)
        found: dict[str, IndexItem] = {}
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

    def by_texthash(self, texthash: str) -> list[IndexItem]:
        """The bank's own items with exactly this text; other folders' files have absolute paths."""
        return self._items("texthash = ? AND path NOT LIKE '/%' ORDER BY path, line", [texthash])

    def all_items(self) -> Iterator[IndexItem]:
        """Every item, by path and line."""
        for values in self.db.execute(f"SELECT {COLUMNS} FROM items ORDER BY path, line, key"):
            yield from_row(values)

    def _items(self, condition: str, values: Sequence[object]) -> list[IndexItem]:
        return self._recent.items(condition, values)


# -- current -----------------------------------------------------------------------------------------------
# The words in use: which generation they lie in, opened or made, followed when it is replaced.
#
# Notes of what had to be rebuilt are gathered in `notes` until somebody takes them.


PATIENCE = 2.0
"""Seconds that a broken index waits for another process that rebuilds it; then the files are read instead."""

AGAIN = 60.0
"""Seconds after which words that live in memory are tried to be kept again."""


class CurrentIndex:
    """The current generation of an index folder. If the folder is not writable, words are kept in memory."""

    def __init__(self, generations: Generations) -> None:
        self.generations = generations
        self.notes: list[str] = []
        self._words: WordIndex | None = None
        self._folder: Path | None = None
        self._again = 0.0
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    @property
    def words(self) -> WordIndex:
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
        return self.generations.folder

    def stale(self) -> bool:
        """Whether the generation was deleted, or replaced by another process's; or it is time to try again
        to keep words that live in memory."""
        if self._words is None or self._folder is None:
            return self._words is not None and time.monotonic() > self._again
        return self.generations.current() != self._folder or not self._words.in_place()

    def use(self, words: WordIndex, folder: Path | None) -> None:
        """Take over words of another generation."""
        self.close()
        self._words, self._folder = words, folder

    def anew(self, why: str) -> None:
        """Begin an empty generation and make it the current one."""
        try:
            with self.generations.building(PATIENCE):
                fresh = self.generations.next()
                self.use(WordIndex(fresh / "words.db"), fresh)
                self.generations.publish(fresh)
                self.generations.sweep()
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
            with self.generations.building(PATIENCE):
                folder = self.generations.current()
                if folder is None:
                    folder = self.generations.next()
                    self.generations.publish(folder)
                self._words, self._folder = self._opened(folder), folder
        except BlockingIOError as error:
            self._in_memory(f"the index cannot be used now: {error.strerror}")
        except (OSError, sqlite3.OperationalError) as error:
            self._in_memory(f"the index cannot be kept ({error})")

    def _in_memory(self, why: str) -> None:
        self.notes.append(f"{why}; all files are read each time")
        self._words, self._folder, self._again = WordIndex(":memory:"), None, time.monotonic() + AGAIN

    def _standing(self) -> bool:
        """Open the current generation if it is whole, without waiting for who makes another."""
        folder = self.generations.current()
        if folder is None:
            return False
        try:
            words = WordIndex(folder / "words.db")
        except (sqlite3.DatabaseError, UnicodeDecodeError):  # damaged, or swept away just now
            return False
        if words.get_meta("schema") != SCHEMA_VERSION:
            words.close()
            return False
        self._words, self._folder = words, folder
        self.generations.tidy()
        return True

    def _opened(self, folder: Path) -> WordIndex:
        """A generation's words, made anew if they are damaged or of another version (inside `building`)."""
        try:
            words = WordIndex(folder / "words.db")
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
        return WordIndex(folder / "words.db")


def broken(error: Exception) -> bool:
    """Whether an error means that the database is damaged, rather than busy, full or read-only."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_IOERR,
    ) or (not code and (not isinstance(error, sqlite3.OperationalError) or "decode" in str(error)))


# -- places ------------------------------------------------------------------------------------------------


def at(words: WordIndex, place: Place) -> list[IndexItem]:
    """The items that stand on some of these lines, by line."""
    sql = f'SELECT {COLUMNS} FROM items WHERE path = ? AND line <= ? AND "end" >= ? ORDER BY line'
    return [from_row(row) for row in words.db.execute(sql, (place.path, place.end, place.line))]


# -- days --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DayCount:
    """What was said on an ISO day: how many facts, also those that were retired since, by origin and in how
    many sessions."""

    day: str
    facts: int
    origins: Mapping[str, int]
    sessions: int


def days(words: WordIndex, where: Filters) -> list[DayCount]:
    """The days on which facts were said, the newest first. The days of the filters are those on which it was
    said; what else they ask is looked up in each item."""
    condition, values = replace(where, since=None, until=None).sql()
    rows = words.db.execute(
        "SELECT day, origin, session, count(*) FROM items WHERE record = 'fact' AND day BETWEEN ? AND ?"
        f" AND {condition} GROUP BY day, origin, session ORDER BY day, origin, session",
        ((where.since or "0")[:10], (where.until or "9")[:10], *values),
    )
    found: list[DayCount] = []
    for day, group in groupby(rows, key=itemgetter(0)):
        origins, sessions = Counter[str](), set[str]()
        for _, origin, session, number in group:
            origins[origin] += number
            sessions |= {session} if session else set()
        found.append(DayCount(day, origins.total(), dict(origins.most_common()), len(sessions)))
    return found[::-1]


# -- citations ---------------------------------------------------------------------------------------------


def citing(words: WordIndex, blocks: Sequence[str]) -> list[IndexItem]:
    """The items that cite one of these ids (`items.cites_of`), by path and line."""
    there = f"SELECT item FROM cites WHERE cited IN ({marks(blocks)})"
    rows = words.db.execute(
        f"SELECT {COLUMNS} FROM items WHERE rowid IN ({there}) ORDER BY path, line", tuple(blocks)
    )
    return [from_row(row) for row in rows]


# -- census ------------------------------------------------------------------------------------------------
# The bank's names counted: who stands in how many items, from when to when, and beside whom.
#
# Names are folded here as the index keeps them (`items.folded`); `written` finds how they are spelled.


SAMPLE = 24
"""Items in which it is looked up how a name is written, and how a word is."""

SHARE_LABELLED = 0.6
"""What stands before a colon in so large a part of its places is a label (`Status:`) and nobody's name."""

_ALONE = re.compile(r"(?<![\w/.@-])\w+(?![\w/@-])")
_DAY = "COALESCE(NULLIF(day, ''), substr(\"when\", 1, 10), '')"


@dataclass(frozen=True, slots=True)
class NameCount:
    """A folded name: in how many items it stands, how surely it is one (see `index.items`), its first and
    last ISO day."""

    name: str
    items: int
    how: int
    first: str
    last: str


def census(words: WordIndex) -> list[NameCount]:
    """All names that occur as more than the first word of a sentence, the most frequent first."""
    rows = words.db.execute(
        f"SELECT name, count(*), max(how), COALESCE(min(NULLIF({_DAY}, '')), ''), max({_DAY})"
        f" FROM names JOIN items ON items.rowid = names.item GROUP BY name HAVING max(how) > {OPENING}"
        " ORDER BY count(*) DESC, name"
    )
    return [NameCount(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class NameSpelling:
    """How a name is written most often, and whether it is rather an ordinary word, a label, or only ever a
    part of longer names."""

    spelling: str
    doubtful: bool


def written(words: WordIndex, name: str) -> NameSpelling:
    """A folded name as the bank writes it, by some of the items it stands in."""
    return Spellings(words).of(name)


class Spellings:
    """How names are written; what was read of an item serves for all of its names."""

    def __init__(self, words: WordIndex) -> None:
        self._db = words.db
        self._alone: dict[int, frozenset[str]] = {}

    def of(self, name: str) -> NameSpelling:
        """A folded name as the bank writes it."""
        rows = self._db.execute(
            "SELECT spelled, stands, path || heading FROM names JOIN items ON items.rowid = names.item"
            f" WHERE name = ? LIMIT {SAMPLE}", (name,)
        ).fetchall()  # fmt: skip
        spellings = Counter(one for spelled, _, _ in rows for one in spelled.split("\n"))
        best = max(spellings, key=lambda one: (spellings[one], one)) if spellings else name
        if any(stands & LINKED for _, stands, _ in rows):
            return NameSpelling(best, False)
        within = all(stands & WITHIN for _, stands, _ in rows)
        return NameSpelling(best, within or _is_label(best, rows) or self._is_word(best))

    def _is_word(self, name: str) -> bool:
        """Whether a single word stands at least as often in small letters as it is written like a name."""
        if not name.isalpha() or name == name.lower():
            return False
        found = self._db.execute(
            f"SELECT rowid FROM words WHERE words.text MATCH ? LIMIT {2 * SAMPLE}", (f'"{name}"',)
        )
        there = [self._words(number) for (number,) in found]
        return sum(name.lower() in own for own in there) >= sum(name in own for own in there)

    def _words(self, number: int) -> frozenset[str]:
        """The words of an item that stand alone, as they are written."""
        if number not in self._alone:
            ((text,),) = self._db.execute("SELECT text FROM items WHERE rowid = ?", (number,))
            self._alone[number] = frozenset(_ALONE.findall(text))
        return self._alone[number]


def _is_label(name: str, rows: Sequence[tuple[str, int, str]]) -> bool:
    """Whether a name mostly stands before a colon or in a table's cell, without speaking in turns there."""
    places = [where for spelled, stands, where in rows if stands & LABEL and name in spelled.split("\n")]
    return len(places) >= SHARE_LABELLED * len(rows) and len(places) < 2 * len(set(places))


def longer(words: WordIndex, name: str) -> list[str]:
    """The folded names that contain these words in a row, the name itself among them."""
    sql = "SELECT DISTINCT name FROM names WHERE instr(' ' || name || ' ', ?)"
    return [found for (found,) in words.db.execute(sql, (f" {name} ",))] if name else []


def items(words: WordIndex, names: Iterable[str]) -> list[IndexItem]:
    """The items that contain one of these folded names, by day, each once."""
    found: dict[int, IndexItem] = {}
    for part in chunks(sorted(set(names))):
        there = f"SELECT item FROM names WHERE name IN ({marks(part)})"
        rows = words.db.execute(f"SELECT {COLUMNS} FROM items WHERE rowid IN ({there})", part)
        found |= {row[0]: from_row(row) for row in rows}
    return sorted(found.values(), key=lambda item: (item.day or item.date, item.path, item.line))


def counted(words: WordIndex, names: Iterable[str]) -> int:
    """How many items contain one of these folded names."""
    every = json.dumps(sorted({*names}))
    sql = "SELECT count(DISTINCT item) FROM names WHERE name IN (SELECT value FROM json_each(?))"
    return int(words.db.execute(sql, (every,)).fetchone()[0])


def together(words: WordIndex, names: Iterable[str]) -> list[tuple[str, str, int]]:
    """Pairs of these folded names, and in how many items both stand: they are names also where they begin a
    sentence."""
    every = json.dumps(sorted({*names}))
    rows = words.db.execute(
        "WITH own AS (SELECT name, item FROM names WHERE name IN (SELECT value FROM json_each(?)))"
        " SELECT a.name, b.name, count(*) FROM own AS a JOIN own AS b ON a.item = b.item AND a.name < b.name"
        " GROUP BY a.name, b.name",
        (every,),
    )
    return rows.fetchall()


def beside(words: WordIndex, names: Iterable[str]) -> Mapping[str, int]:
    """{folded name: number of these names' items that also contain it}, without names that only begin
    sentences there."""
    own = set(names)
    found = defaultdict[str, set[int]](set)
    for part in chunks(sorted(own)):
        sql = (
            f"SELECT name, item FROM names WHERE how > {OPENING} AND item IN"
            f" (SELECT item FROM names WHERE name IN ({marks(part)}))"
        )
        for name, item in words.db.execute(sql, part):
            found[name].add(item)
    return {name: len(where) for name, where in found.items() if name not in own}
