"""The word index: all items in SQLite with an FTS5 table (BM25), name statistics, the current generation."""

from __future__ import annotations

import contextlib
import heapq
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
from weakref import finalize

from ua_memory.discovery import INDEX_VERSION
from ua_memory.index import items as index_items
from ua_memory.index import terms as index_terms
from ua_memory.index.filters import Filters
from ua_memory.index.generations import Generations, create_private_file
from ua_memory.index.items import COLUMNS, IndexItem, chunks, from_row, placeholders
from ua_memory.index.terms import Query, clean, distinct_words, fts_text
from ua_memory.records import Place

# -- vocabulary --------------------------------------------------------------------------------------------
# Stems and document frequencies, as FTS5 has them.


MOST_STEMS = 100_000
"""Words whose stems are cached."""


class Vocabulary:
    """The vocabulary of the word index on an open connection. Words are stemmed by FTS5 itself."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self._stems: dict[str, str] = {}
        self._item_stems: dict[str, frozenset[str]] = {}
        self._frequencies: dict[str, int] = {}
        self._count: int | None = None
        self._version = -1
        self.is_fixed = False
        """Whether all is read from one snapshot, see `WordIndex.reading`."""
        for statement in index_terms.STEMMER_TABLES:
            db.execute(statement)

    def item_stems(self, keys: Sequence[str]) -> dict[str, frozenset[str]]:
        """{item key: the stems of its text and context}."""
        self._refresh()
        if len(self._item_stems) + len(keys) > MOST_ITEMS:
            self._item_stems.clear()
        for part in chunks([key for key in keys if key not in self._item_stems]):
            query = (
                "SELECT items.key, words.text || ' ' || words.context FROM items JOIN words"
                f" ON words.rowid = items.rowid WHERE items.key IN ({placeholders(part)})"
            )
            texts = {key: distinct_words(text) for key, text in self.db.execute(query, part)}
            stem = self.stems(frozenset().union(*texts.values())).__getitem__
            self._item_stems.update((key, frozenset(map(stem, own))) for key, own in texts.items())
        return {key: self._item_stems[key] for key in keys if key in self._item_stems}

    def stems(self, words: Iterable[str]) -> dict[str, str]:
        """{word: its stem}, '' if FTS5 finds no token in it."""
        unique = list(dict.fromkeys(words))
        unknown = [word for word in unique if word not in self._stems]
        if len(self._stems) > MOST_STEMS:
            self._stems, unknown = {}, unique
        if unknown:
            self._stems.update(self._stem(unknown))
        return {word: self._stems[word] for word in unique}

    def frequencies(self, terms: Sequence[str]) -> dict[str, int]:
        """{term: document frequency}, the number of items that have it."""
        # Cached: FTS5 counts a term's rows each time, 2 ms for five common ones of 100,000 items.
        self._refresh()
        stems = self.stems(terms)
        unknown = sorted(set(stems.values()) - self._frequencies.keys())
        for part in chunks(unknown):
            self._frequencies.update(dict.fromkeys(part, 0))
            query = f"SELECT term, doc FROM terms WHERE term IN ({placeholders(part)})"
            self._frequencies.update(self.db.execute(query, part))
        return {term: self._frequencies[stems[term]] for term in terms}

    def forms(self, terms: Sequence[str], spoken: Sequence[str] = ()) -> dict[str, tuple[str, ...]]:
        """{term: its other forms in the bank, in languages besides English, or translations}; see
        `terms.forms`."""
        return index_terms.forms(
            self.db, self.frequencies, lambda word: [self.stems([word])[word]], terms, spoken
        )

    def count(self) -> int:
        """The number of items."""
        self._refresh()
        if self._count is None:
            self._count = int(self.db.execute("SELECT count(*) FROM items").fetchone()[0])
        return self._count

    def invalidate(self) -> None:
        """Drop what is cached of the items, after this connection wrote."""
        self._frequencies, self._count, self._item_stems = {}, None, {}

    def follow(self, version: int) -> None:
        """Drop what is cached of the items if another connection wrote, by SQLite's data_version."""
        if version != self._version:
            self._version = version
            self.invalidate()

    def _refresh(self) -> None:
        if self.is_fixed:
            return
        self.follow(_data_version(self.db))
        if self.db.in_transaction:
            self.invalidate()

    def _stem(self, words: list[str]) -> dict[str, str]:
        found = index_terms.stem_text(self.db, " ".join(words))
        if len(found) == len(words):
            return dict(zip(words, found, strict=True))
        # FTS5 sees no token or several in some word (its Unicode version is older): one at a time.
        return {word: next(iter(index_terms.stem_text(self.db, word)), "") for word in words}


def _data_version(db: sqlite3.Connection) -> int:
    """A number that changes when another connection has written."""
    return int(db.execute("PRAGMA data_version").fetchone()[0])


# -- BM25 search -------------------------------------------------------------------------------------------
# FTS5's BM25 over a query's terms (OR-ed) and phrases (required).
#
# FTS5 scores every row that has any of the terms: 1.5 µs a row, 75 ms where "time" occurs in a third of
# 100,000 items. So a large index is searched for the rare terms first; common terms only add to the score
# (the full BM25) of rows that have a rare one. Rows with only common terms are missed, which is acceptable
# since these say little. If the rare terms find too few rows, all terms are searched.


CONTEXT_WEIGHT = 0.4
"""The BM25 weight of an item's headings, tags and entities; its text has 1."""

TERM_LIMIT = 48
"""Terms of a query that are searched, the rarest; a longer query is a pasted document."""

RARE_ROWS_CEILING, RARE_ROWS_FLOOR, RARE_ROWS_DIVISOR = 2000, 500, 20
"""Terms count as rare, the rarest first, until together they match a twentieth of all rows, at least 500 and
at most 2,000. An index of no more than 2,000 items is always searched for all terms."""


@dataclass(frozen=True, slots=True)
class WordHit:
    """An item found by words, with its BM25 score; higher is better."""

    key: str
    score: float


def fts_expression(query: Query) -> str:
    """A query in FTS5's syntax, '' if it is empty."""
    phrases = ['"' + " ".join(phrase) + '"' for phrase in query.phrases]
    every = _any([*_quoted(query.every_term, query), *phrases])
    required = " AND ".join(phrases)
    return f"({required}) AND ({every})" if required and every else required or every


def matching(query: Query, texts: Sequence[str]) -> list[bool]:
    """Whether each text matches a query without stemming, by which "news" would match "new"."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(
            f'CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = "{index_terms.EXACT_TOKENIZER}")'
        )
        rows = enumerate(fts_text(clean(text)) for text in texts)
        db.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)
        matches = db.execute("SELECT rowid FROM words WHERE words MATCH ?", (fts_expression(query),))
        found = {number for (number,) in matches}
    return [number in found for number in range(len(texts))]


def bm25_search(
    db: sqlite3.Connection, vocabulary: Vocabulary, query: Query, limit: int, where: Filters
) -> list[WordHit]:
    """The best items by BM25, at most `limit`; ties by path and line."""
    found: list[WordHit] = []
    for matches in _query_plans(vocabulary, query):
        found = _fetch(db, matches, limit, where)
        if len(found) == limit:
            break
    return found


def _query_plans(vocabulary: Vocabulary, query: Query) -> Iterator[list[str]]:
    """Yield lists of disjoint FTS5 expressions, the cheapest first; the last list matches everything."""
    every_term = query.every_term
    counts = vocabulary.frequencies(every_term) if every_term else {}
    terms = sorted((term for term in every_term if counts[term]), key=lambda term: (counts[term], term))
    terms = terms[:TERM_LIMIT]
    total = vocabulary.count()
    if not query.phrases and total > RARE_ROWS_CEILING:
        rows, rare, enough = 0, 0, min(RARE_ROWS_CEILING, max(RARE_ROWS_FLOOR, total // RARE_ROWS_DIVISOR))
        while rare < len(terms) and rows < enough:
            rows += counts[terms[rare]]
            rare += 1
        if rare < len(terms):
            few, common = (_any(_quoted(part, query)) for part in (terms[:rare], terms[rare:]))
            yield [f"({few}) NOT ({common})", f"({few}) AND ({common})"]
    kept = set(terms)
    every = fts_expression(
        Query(tuple(term for term in every_term if term in kept), query.phrases, query.repeats)
    )
    if every:
        yield [every]


def _fetch(db: sqlite3.Connection, matches: Sequence[str], limit: int, where: Filters) -> list[WordHit]:
    condition, values = where.sql()
    sql = (
        f"SELECT rowid AS number, bm25(words, 1.0, {CONTEXT_WEIGHT}) AS score FROM words WHERE words MATCH ?"
    )
    if where:
        sql = f"SELECT number, score FROM ({sql}) JOIN items ON items.rowid = number WHERE {condition}"
    fetch = limit + 64
    while True:
        found: list[tuple[float, int]] = []
        unseen = float("inf")
        for match in matches:
            rows = db.execute(f"{sql} ORDER BY score LIMIT ?", (match, *values, fetch))
            part = [(round(score, 9), number) for number, score in rows]
            found += part
            if len(part) == fetch:
                unseen = min(unseen, max(part)[0])
        found.sort()
        # If ties may continue beyond the fetched rows, their order would be that of insertion: fetch more.
        if len(found) < limit or found[limit - 1][0] < unseen:
            return _in_order(db, found, limit)
        fetch *= 16


def _in_order(db: sqlite3.Connection, found: Sequence[tuple[float, int]], limit: int) -> list[WordHit]:
    """The first hits of sorted (score, rowid), ties by path and line."""
    least = found[limit - 1][0] if len(found) >= limit > 0 else float("inf")
    scores = {number: score for score, number in found if score <= least}
    placed: list[tuple[float, str, int, str]] = []
    for part in chunks([*scores]):
        rows = db.execute(
            f"SELECT rowid, path, line, key FROM items WHERE rowid IN ({placeholders(part)})", part
        )
        placed += [(scores[number], *place) for number, *place in rows]
    placed.sort()
    return [WordHit(key, -score) for score, _, _, key in placed[:limit]]


def _quoted(terms: Sequence[str], query: Query) -> list[str]:
    """Terms quoted for FTS5; a repeated term counts twice in BM25."""
    return [f'"{term}"' for term in (*terms, *(each for each in query.repeats if each in terms))]


def _any(terms: Sequence[str]) -> str:
    return " OR ".join(terms)


# -- item cache --------------------------------------------------------------------------------------------
# Parsing a row takes 15 µs and a search reads 200 of them, so a daemon caches items.


MOST_ITEMS = 16_384
"""Items cached, 25 MB: all of a bank of 10,000 facts. Beyond that the cache is cleared."""


class ItemReader:
    """Reads items over an open connection and caches them until any connection writes."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self._items: dict[int, IndexItem] = {}
        self._version = 0
        self.is_fixed = False
        """Whether all is read from one snapshot, see `WordIndex.reading`."""

    def invalidate(self) -> None:
        """Clear the cache, after this connection wrote."""
        self._items.clear()

    def follow(self, version: int) -> None:
        """Clear the cache if another connection wrote, by SQLite's data_version."""
        if version != self._version:
            self.invalidate()
            self._version = version

    def items(self, condition: str, values: Sequence[object]) -> list[IndexItem]:
        """The items that satisfy an SQL condition, in its order."""
        own_transaction = not self.db.in_transaction
        if own_transaction:
            self.db.execute("BEGIN")  # rowids, version and rows must be of the same snapshot
        try:
            return self._read(condition, values)
        finally:
            if own_transaction:
                with contextlib.suppress(sqlite3.OperationalError):  # a damaged file may have ended it
                    self.db.execute("COMMIT")

    def _read(self, condition: str, values: Sequence[object]) -> list[IndexItem]:
        rows = self.db.execute(f"SELECT rowid FROM items WHERE {condition}", tuple(values))
        numbers = [number for (number,) in rows]
        if not self.is_fixed:
            self.follow(_data_version(self.db))
        if len(self._items) + len(numbers) > MOST_ITEMS:
            self._items.clear()
        for part in chunks([number for number in numbers if number not in self._items]):
            for found in self.db.execute(
                f"SELECT {COLUMNS} FROM items WHERE rowid IN ({placeholders(part)})", part
            ):
                self._items[found[0]] = from_row(found)
        return [self._items[number] for number in numbers]


# -- word index --------------------------------------------------------------------------------------------
# All items in SQLite, an FTS5 table over their words, and a journal of the texts whose vectors are to be
# updated. Everything can be rebuilt from the files.


MOST_SPELT = 50_000
"""Words known to be in the table of spellings; beyond that the set is cleared and they are inserted again."""


class WordIndex:
    """The word index in an SQLite file, or `:memory:`. sqlite3.DatabaseError if it is no database."""

    def __init__(self, file: Path | str) -> None:
        self.file = file
        self._spelled: set[str] = set()
        self._with_forms = defaultdict[str, set[str]](set)
        self.long_logs = index_items.LogCache()
        self._indexed_context = lru_cache(maxsize=256)(fts_text)  # items under one heading share it
        if file != ":memory:":
            create_private_file(file)
        self.db = sqlite3.connect(file, isolation_level=None, check_same_thread=False, timeout=10)
        # Python 3.13 warns of a connection that goes without being closed.
        finalize(self, self.db.close).atexit = False
        self._reader = ItemReader(self.db)
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
        # A power failure may damage the index, which is then rebuilt.
        self.db.execute("PRAGMA synchronous = OFF")
        # At 100,000 facts a search is as fast with 4 MB as with 16, and the page has three connections.
        self.db.execute("PRAGMA cache_size = -4000")
        self.vocabulary = Vocabulary(self.db)
        if not self.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
            with self.writing():
                if not self.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                    for statement in index_items.SCHEMA:
                        self.db.execute(statement)
                    self.set_meta("schema", INDEX_VERSION)
                    self.set_meta("epoch", secrets.token_hex(8))
                    self.set_meta("generation", "0")

    def close(self) -> None:
        self.db.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction, rolled back on exceptions. sqlite3.OperationalError while another process writes."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            self._spelled.clear()
            self._with_forms.clear()
            raise
        else:
            self.db.execute("COMMIT")
        finally:
            self.vocabulary.invalidate()
            self._reader.invalidate()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One snapshot for all reads of a search: each statement by itself locks the file, and would be
        preceded by the question whether another connection wrote."""
        self.db.execute("BEGIN")
        try:
            version = _data_version(self.db)
            for cached in (self.vocabulary, self._reader):
                cached.follow(version)
                cached.is_fixed = True
            yield
        finally:
            self.vocabulary.is_fixed = self._reader.is_fixed = False
            with contextlib.suppress(sqlite3.OperationalError):  # a damaged file may have ended it
                self.db.execute("COMMIT")

    # -- state -------------------------------------------------------------------------------------------

    def get_meta(self, name: str) -> str:
        """A value of the table `meta`, '' if it is missing."""
        found = self.db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return found[0] if found else ""

    def set_meta(self, name: str, value: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    @property
    def generation(self) -> int:
        """A counter of the refreshes that changed an item."""
        return int(self.get_meta("generation") or 0)

    @property
    def epoch(self) -> str:
        """A random id of this database file."""
        return self.get_meta("epoch")

    def in_place(self) -> bool:
        """Whether the open file is still the one at its path."""
        try:
            found = Path(self.file).stat()
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._inode

    def text_ids(self) -> set[str]:
        """The ids of all texts that should have a vector."""
        return {name for (name,) in self.db.execute("SELECT DISTINCT vhash FROM items")}

    def changed_texts(self, since: int) -> list[str]:
        """The ids of the texts that were added or removed after a generation."""
        query = "SELECT DISTINCT vhash FROM journal WHERE generation > ? ORDER BY vhash"
        return [name for (name,) in self.db.execute(query, (since,))]

    def texts(self, names: Iterable[str]) -> dict[str, str]:
        """{text id: text} of the ids that some item still has."""
        found: dict[str, str] = {}
        for part in chunks(list(names)):
            query = f"SELECT vhash, text FROM items WHERE vhash IN ({placeholders(part)})"
            found.update(self.db.execute(query, part))
        return found

    def count(self) -> int:
        """The number of items, cached until the next write."""
        return self.vocabulary.count()

    # -- writing (inside `writing`) -----------------------------------------------------------------------

    def replace_file(self, path: str, items: Sequence[IndexItem]) -> tuple[int, int, int]:
        """Replace a file's items. Returns how many were (added, changed, removed). Items that only moved get
        new line numbers."""
        query = 'SELECT key, rowid, digest, vhash, line, "end", seq, run FROM items WHERE path = ?'
        old = {key: rest for key, *rest in self.db.execute(query, (path,))}
        added = changed = 0
        moved: list[tuple[int, int, int, str, str, int]] = []
        reembed: list[str] = []
        new: list[tuple[IndexItem, str]] = []
        for item in items:
            digest = item.digest()
            known = old.pop(item.key, None)
            if known and known[1] == digest:
                if (item.vhash, item.line, item.end, item.seq, item.run) != (*known[2:],):
                    moved.append((item.line, item.end, item.seq, item.vhash, item.run, known[0]))
                if item.vhash != known[2]:  # another turn of its run changed
                    reembed += [item.vhash, known[2]]
                    changed += 1
                continue
            if known:
                changed += 1
                self._drop([known[0]], [known[2]])
            else:
                added += 1
            new.append((item, digest))
        self._drop([row[0] for row in old.values()], [row[2] for row in old.values()])
        self.db.executemany(
            'UPDATE items SET line = ?, "end" = ?, seq = ?, vhash = ?, run = ? WHERE rowid = ?', moved
        )
        self._journal(reembed)
        self._add(new)
        return added, changed, len(old)

    def remove_file(self, path: str) -> int:
        """Remove a file's items. Returns how many there were."""
        return self.replace_file(path, ())[2]

    def _add(self, new: list[tuple[IndexItem, str]]) -> None:
        first = self.db.execute("SELECT coalesce(max(rowid), 0) + 1 FROM items").fetchone()[0]
        self.db.executemany(
            f"INSERT INTO items ({COLUMNS}) VALUES ({placeholders(COLUMNS.split(','))})",
            (index_items.to_row(first + n, item, digest) for n, (item, digest) in enumerate(new)),
        )
        texts = [(fts_text(item.text), self._indexed_context(item.context)) for item, _ in new]
        self.db.executemany(
            "INSERT INTO words (rowid, text, context) VALUES (?, ?, ?)",
            ((first + n, text, context) for n, (text, context) in enumerate(texts)),
        )
        self._add_spellings(texts)
        index_items.add_links(self.db, first, [item for item, _ in new])
        self._journal([item.vhash for item, _ in new])

    def _add_spellings(self, texts: list[tuple[str, str]]) -> None:
        """Insert the words of these texts into the tables of spellings and, by language, of stems, except
        those this connection has inserted before."""
        every, by_language = set[str](), defaultdict[str, set[str]](set)
        for text in texts:
            own = distinct_words(" ".join(text))
            every |= own
            for language in index_terms.guess_languages(own):
                by_language[language] |= own
        new = every - self._spelled
        index_terms.add_spellings(self.db, new)
        self._spelled |= new
        if len(self._spelled) > MOST_SPELT:
            self._spelled.clear()
        for language, words in by_language.items():
            index_terms.add_forms(self.db, language, words - self._with_forms[language])
            self._with_forms[language] |= words
            if len(self._with_forms[language]) > MOST_SPELT:
                self._with_forms[language].clear()

    def _drop(self, numbers: list[int], vhashes: list[str]) -> None:
        self.db.executemany("DELETE FROM items WHERE rowid = ?", [(number,) for number in numbers])
        self.db.executemany("DELETE FROM words WHERE rowid = ?", [(number,) for number in numbers])
        self._journal(vhashes)

    def _journal(self, vhashes: list[str]) -> None:
        """Record texts whose vectors are to be added or deleted."""
        generation = self.generation + 1 if vhashes else 0
        self.db.executemany("INSERT INTO journal VALUES (?, ?)", [(generation, vhash) for vhash in vhashes])

    def next_generation(self) -> None:
        """Increment the generation, at the end of a refresh that changed something."""
        self.set_meta("generation", str(self.generation + 1))

    def trim_journal(self, generation: int) -> None:
        """Delete the journal up to a generation, which the vectors have applied (in its own transaction)."""
        if self.db.execute("SELECT 1 FROM journal LIMIT 1").fetchone():
            self.db.execute("DELETE FROM journal WHERE generation <= ?", (generation,))

    # -- queries --------------------------------------------------------------------------------------------

    def search(self, query: Query, limit: int, where: Filters | None = None) -> list[WordHit]:
        """The best items by BM25, at most `limit`; ties by path and line. All phrases are required."""
        return bm25_search(self.db, self.vocabulary, query, limit, where or Filters())

    def get(self, keys: Sequence[str]) -> list[IndexItem]:
        """The items with these keys, in order; unknown keys are ignored."""
        found: dict[str, IndexItem] = {}
        for part in chunks(list(keys)):
            found.update((item.key, item) for item in self.items(f"key IN ({placeholders(part)})", part))
        return [found[key] for key in keys if key in found]

    def by_text(
        self, names: Sequence[str], where: Filters | None = None, phrases: Query | None = None
    ) -> list[IndexItem]:
        """The items with these text ids that pass the filters and contain the phrases, by path and line."""
        condition, values = _allowed(where or Filters(), phrases)
        found: list[IndexItem] = []
        for part in chunks(list(names)):
            found += self.items(f"vhash IN ({placeholders(part)}) AND {condition}", [*part, *values])
        return sorted(found, key=lambda item: (item.path, item.line, item.key))

    def allowed_texts(self, where: Filters, query: Query, most: int) -> list[str] | None:
        """The ids of the texts that pass the filters and contain the phrases; None if more than `most` do."""
        condition, values = _allowed(where, query)
        sql = f"SELECT DISTINCT vhash FROM items WHERE {condition} LIMIT ?"
        found = [name for (name,) in self.db.execute(sql, (*values, most + 1))]
        return sorted(found) if len(found) <= most else None

    def listed(self, where: Filters, today: str) -> tuple[int, Iterator[IndexItem]]:
        """(number of items that pass the filters, a lazy iterator over them), newest `listed_day` first,
        within a day the last lines of a file first, those without a day last."""
        condition, values = where.sql()
        ((total,),) = self.db.execute(f"SELECT count(*) FROM items WHERE {condition}", values)
        order = "day DESC, path DESC, line DESC, key DESC"

        def read(more: str) -> Iterator[IndexItem]:
            sql = f"SELECT {COLUMNS} FROM items WHERE {condition} AND {more}"
            return map(from_row, self.db.execute(sql, (*values, today)))

        past = read(f"date <= ? ORDER BY date DESC, {order}")  # uses the index items_order
        coming = read(f"date > ? ORDER BY coalesce(day, date) DESC, {order}")

        def place(item: IndexItem) -> tuple[str, str, str, int]:
            return item.listed_day(today), item.day or "", item.path, item.line

        return total, heapq.merge(past, coming, key=place, reverse=True)

    def neighbours(self, items: Sequence[IndexItem], steps: Sequence[int] = (-1, 1)) -> list[IndexItem]:
        """The items at these offsets from the given ones in their files, without duplicates and the given."""
        given = {item.key for item in items}
        places = {(item.path, item.seq) for item in items}
        wanted = sorted({(item.path, item.seq + step) for item in items for step in steps} - places)
        found: dict[str, IndexItem] = {}
        for part in chunks(wanted):
            values = [value for pair in part for value in pair]
            # With `(path, seq) IN (VALUES …)` SQLite scans all items: 41 ms for 100,000.
            rows = f"(VALUES {','.join(['(?, ?)'] * len(part))}) CROSS JOIN items"
            condition = f"rowid IN (SELECT items.rowid FROM {rows} ON path = column1 AND seq = column2)"
            found.update((item.key, item) for item in self.items(condition, values))
        return [item for key, item in found.items() if key not in given]

    def files_of(self, block_id: str) -> list[str]:
        """The bank's own files that contain a block id."""
        sql = "SELECT DISTINCT path FROM items WHERE id = ? AND path NOT LIKE '/%' ORDER BY path"
        return [path for (path,) in self.db.execute(sql, (block_id,))]

    def by_texthash(self, texthash: str) -> list[IndexItem]:
        """The bank's own items with exactly this text; other folders' files have absolute paths."""
        return self.items("texthash = ? AND path NOT LIKE '/%' ORDER BY path, line", [texthash])

    def items(self, condition: str, values: Sequence[object] = ()) -> list[IndexItem]:
        """The items that satisfy an SQL condition, in its order."""
        return self._reader.items(condition, values)


def _allowed(where: Filters, query: Query | None) -> tuple[str, list[str]]:
    """The SQL condition of the items that pass the filters and contain the phrases, and its parameters."""
    condition, values = where.sql()
    if not query or not query.phrases:
        return condition, values
    phrases = fts_expression(Query((), query.phrases))
    return f"{condition} AND rowid IN (SELECT rowid FROM words WHERE words MATCH ?)", [*values, phrases]


# -- current generation ------------------------------------------------------------------------------------
# Opens or creates the current generation of the word index, and follows when another process replaces it.


REBUILD_WAIT = 2.0
"""Seconds to wait for another process that rebuilds the index; then all files are indexed in memory."""

RETRY_SECONDS = 60.0
"""Seconds after which an in-memory index is replaced by one on disk, if that is possible again."""


class CurrentIndex:
    """The word index in the current generation of a folder, in memory if the folder is not writable. `notes`
    collects what had to be rebuilt, for the next report."""

    def __init__(self, generations: Generations) -> None:
        self.generations = generations
        self.notes: list[str] = []
        self.why = ""
        """Why the index is in memory."""
        self._words: WordIndex | None = None
        self._folder: Path | None = None
        self._retry_at = 0.0
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    @property
    def words(self) -> WordIndex:
        """The word index, opened or created."""
        if self._words is None:
            self._open()
        assert self._words
        return self._words

    @property
    def folder(self) -> Path | None:
        """The generation's folder, which also has the vectors; None if the index is in memory."""
        assert self.words
        return self._folder

    @property
    def scratch(self) -> Path:
        """A writable folder."""
        if self.folder is None:
            self._temporary = self._temporary or tempfile.TemporaryDirectory(prefix="ua-memory-")
            return Path(self._temporary.name)
        return self.generations.folder

    def stale(self) -> bool:
        """Whether the generation was deleted or replaced, or an in-memory index should try the disk again."""
        if self._words is None or self._folder is None:
            return self._words is not None and time.monotonic() > self._retry_at
        return self.generations.current() != self._folder or not self._words.in_place()

    def use(self, words: WordIndex, folder: Path | None) -> None:
        """Switch to the index of another generation."""
        self.close()
        self._words, self._folder = words, folder

    def reset(self, why: str) -> None:
        """Start an empty generation and make it the current one."""
        try:
            with self.generations.building(REBUILD_WAIT):
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
            if self._open_existing():
                return
            with self.generations.building(REBUILD_WAIT):
                folder = self.generations.current()
                if folder is None:
                    folder = self.generations.next()
                    self.generations.publish(folder)
                self._words, self._folder = self._open_or_recreate(folder), folder
        except BlockingIOError as error:
            self._in_memory(f"the index cannot be used now: {error.strerror}")
        except (OSError, sqlite3.OperationalError) as error:
            self._in_memory(f"the index cannot be saved ({getattr(error, 'strerror', error)})")

    def _in_memory(self, why: str) -> None:
        self.why = why
        self.notes.append(f"{why}; all files are read each time")
        self._words, self._folder = WordIndex(":memory:"), None
        self._retry_at = time.monotonic() + RETRY_SECONDS

    def _open_existing(self) -> bool:
        """Open the current generation if it is valid, without waiting for a rebuild."""
        folder = self.generations.current()
        if folder is None:
            return False
        try:
            words = WordIndex(folder / "words.db")
        except (sqlite3.DatabaseError, UnicodeDecodeError):  # damaged, or just removed by a sweep
            return False
        if words.get_meta("schema") != INDEX_VERSION:
            words.close()
            return False
        self._words, self._folder = words, folder
        self.generations.tidy()
        return True

    def _open_or_recreate(self, folder: Path) -> WordIndex:
        """Open a generation's word index, recreated if damaged or of another version (inside `building`)."""
        try:
            words = WordIndex(folder / "words.db")
            if words.get_meta("schema") == INDEX_VERSION:
                return words
            words.close()
            self.notes.append("the index is of another version; rebuilt")
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if not is_damaged(error):
                raise
            self.notes.append(f"the word index was damaged ({error}); rebuilt")
        for file in folder.glob("words.db*"):
            file.unlink()
        return WordIndex(folder / "words.db")


def is_damaged(error: Exception) -> bool:
    """Whether an error means that the database is damaged, not just busy, full or read-only."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if not code:
        return not isinstance(error, sqlite3.OperationalError) or "decode" in str(error)
    damage = sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_IOERR
    return code in damage


# -- lookups -----------------------------------------------------------------------------------------------


def items_at(words: WordIndex, place: Place) -> list[IndexItem]:
    """The items that overlap these lines, by line."""
    values = (place.path, place.end, place.line)
    return words.items('path = ? AND line <= ? AND "end" >= ? ORDER BY line', values)


# -- days --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DayCount:
    """The facts of an ISO day, including retired ones: how many, by origin, and from how many sessions."""

    day: str
    facts: int
    origins: Mapping[str, int]
    sessions: int


def days(words: WordIndex, where: Filters) -> list[DayCount]:
    """The days with facts, newest first. `since` and `until` of the filters limit the day on which a fact was
    said (not what it is about); the other filters apply to each fact."""
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


@dataclass(frozen=True, slots=True)
class ItemCounts:
    """How many items there are, and of each kind, origin, client, session and tag, but for tags of provenance
    (`project:shop`)."""

    total: int
    each: Mapping[str, Counter[str]]


def value_counts(words: WordIndex, where: Filters) -> ItemCounts:
    """The counts of the items that pass the filters."""
    condition, given = where.sql()
    found = {name: Counter[str]() for name in ("kinds", "origins", "clients", "sessions", "tags")}

    def groups(columns: str) -> sqlite3.Cursor:  # two queries take half as long as one
        sql = f"SELECT count(*), {columns} FROM items WHERE {condition} GROUP BY {columns}"
        return words.db.execute(sql, given)

    for number, *values in groups("kind, origin, client, session"):
        for counter, value in zip(found.values(), values, strict=False):
            counter[value or ""] += number
    for number, tags in groups("tags"):
        found["tags"].update(dict.fromkeys((tag for tag in json.loads(tags) if ":" not in tag), number))
    total = found["kinds"].total()
    for counter in found.values():
        del counter[""]
    return ItemCounts(total, found)


# -- citations ---------------------------------------------------------------------------------------------


def items_citing(words: WordIndex, blocks: Sequence[str]) -> list[IndexItem]:
    """The items that cite one of these ids (`items.citations_of`), by path and line."""
    citing = f"SELECT item FROM cites WHERE cited IN ({placeholders(blocks)})"
    return words.items(f"rowid IN ({citing}) ORDER BY path, line", blocks)


# -- name statistics ---------------------------------------------------------------------------------------
# How often each name occurs, from when to when, and with which others. Names are folded (`items.folded`);
# `spelling_of` has their most frequent spelling.


SPELLING_SAMPLE = 24
"""Items that are read to decide how a name is spelled."""

SHARE_LABELLED = 0.6
"""A name that stands before a colon in this share of its items is a label (`Status:`), not a name."""

_STANDALONE_WORD = re.compile(r"(?<![\w/.@-])\w+(?![\w/@-])")
_DAY = "COALESCE(NULLIF(day, ''), substr(\"when\", 1, 10), '')"


@dataclass(frozen=True, slots=True)
class NameCount:
    """A folded name: number of items, first and last ISO day."""

    name: str
    items: int
    first: str
    last: str


def name_counts(words: WordIndex) -> list[NameCount]:
    """All names that occur not only as the first word of a sentence, the most frequent first."""
    rows = words.db.execute(
        f"SELECT name, count(*), COALESCE(min(NULLIF({_DAY}, '')), ''), max({_DAY})"
        " FROM names JOIN items ON items.rowid = names.item GROUP BY name"
        f" HAVING max(how) > {index_items.SENTENCE_START} ORDER BY count(*) DESC, name"
    )
    return [NameCount(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class NameSpelling:
    """A name's most frequent spelling. `doubtful` if it seems to be an ordinary word, a label, or only a part
    of longer names."""

    spelling: str
    doubtful: bool


class Spellings:
    """The spellings of folded names. Caches the words of the items it reads."""

    def __init__(self, words: WordIndex) -> None:
        self._db = words.db
        self._standalone: dict[int, frozenset[str]] = {}

    def of(self, name: str) -> NameSpelling:
        """The spelling of a folded name, from a sample of its items."""
        rows = self._db.execute(
            "SELECT spelled, stands, path || heading FROM names JOIN items ON items.rowid = names.item"
            f" WHERE name = ? LIMIT {SPELLING_SAMPLE}", (name,)
        ).fetchall()  # fmt: skip
        spellings = Counter(one for spelled, _, _ in rows for one in spelled.split("\n"))
        spelling = max(spellings, key=lambda one: (spellings[one], one)) if spellings else name
        if any(stands & index_items.LINKED for _, stands, _ in rows):
            return NameSpelling(spelling, False)
        within = all(stands & index_items.WITHIN for _, stands, _ in rows)
        return NameSpelling(spelling, within or _is_label(spelling, rows) or self._is_word(spelling))

    def _is_word(self, name: str) -> bool:
        """Whether a single word occurs at least as often in lower case."""
        if not name.isalpha() or name == name.lower():
            return False
        found = self._db.execute(
            f"SELECT rowid FROM words WHERE words.text MATCH ? LIMIT {2 * SPELLING_SAMPLE}", (f'"{name}"',)
        )
        items = [self._words(number) for (number,) in found]
        return sum(name.lower() in own for own in items) >= sum(name in own for own in items)

    def _words(self, number: int) -> frozenset[str]:
        """The words of an item, without parts of paths, addresses and compounds, in their case."""
        if number not in self._standalone:
            ((text,),) = self._db.execute("SELECT text FROM items WHERE rowid = ?", (number,))
            self._standalone[number] = frozenset(_STANDALONE_WORD.findall(text))
        return self._standalone[number]


def _is_label(name: str, rows: Sequence[tuple[str, int, str]]) -> bool:
    """Whether a name mostly stands before a colon or in a table cell, without being a speaker."""
    places = [
        where for spelled, stands, where in rows if stands & index_items.LABEL and name in spelled.split("\n")
    ]
    return len(places) >= SHARE_LABELLED * len(rows) and len(places) < 2 * len(set(places))


def names_containing(words: WordIndex, name: str) -> list[str]:
    """The folded names that contain this one, including itself; [] for ''."""
    sql = "SELECT DISTINCT name FROM names WHERE instr(' ' || name || ' ', ?)"
    return [found for (found,) in words.db.execute(sql, (f" {name} ",))] if name else []


def items_naming(words: WordIndex, names: Iterable[str]) -> list[IndexItem]:
    """The items that contain one of these folded names, by day, without duplicates."""
    found: dict[str, IndexItem] = {}
    for part in chunks(sorted(set(names))):
        naming = f"SELECT item FROM names WHERE name IN ({placeholders(part)})"
        found |= {item.key: item for item in words.items(f"rowid IN ({naming})", part)}
    return sorted(found.values(), key=lambda item: (item.day or item.date, item.path, item.line))


def count_naming(words: WordIndex, names: Iterable[str]) -> int:
    """How many items contain one of these folded names."""
    values = json.dumps(sorted({*names}))
    sql = "SELECT count(DISTINCT item) FROM names WHERE name IN (SELECT value FROM json_each(?))"
    return int(words.db.execute(sql, (values,)).fetchone()[0])


def co_occurrences(words: WordIndex, names: Iterable[str]) -> list[tuple[str, str, int]]:
    """[(name, other name, number of items with both)] of these folded names, wherever they occur."""
    values = json.dumps(sorted({*names}))
    rows = words.db.execute(
        "WITH own AS (SELECT name, item FROM names WHERE name IN (SELECT value FROM json_each(?)))"
        " SELECT a.name, b.name, count(*) FROM own AS a JOIN own AS b ON a.item = b.item AND a.name < b.name"
        " GROUP BY a.name, b.name",
        (values,),
    )
    return rows.fetchall()


def co_occurring(words: WordIndex, names: Iterable[str]) -> Mapping[str, int]:
    """{other folded name: number of items that contain both it and one of these}, without names that only
    begin sentences there."""
    own = set(names)
    found = defaultdict[str, set[int]](set)
    for part in chunks(sorted(own)):
        sql = (
            f"SELECT name, item FROM names WHERE how > {index_items.SENTENCE_START} AND item IN"
            f" (SELECT item FROM names WHERE name IN ({placeholders(part)}))"
        )
        for name, item in words.db.execute(sql, part):
            found[name].add(item)
    return {name: len(items) for name, items in found.items() if name not in own}
