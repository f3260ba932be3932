"""From a query to the rows that match it best: FTS5's BM25, terms OR-ed, phrases required.

FTS5 scores every row that has any of the terms: 1.5 µs a row, 75 ms where "time" stands in a third of 100,000
items. So where the query has rarer words, rows are looked up by those, and the common ones only add to the
score of rows that have a rarer one. All scores are the full BM25. What cannot be found that way has none but
common words of the query, each of which says little. In a bank of no more than ENOUGH items, and wherever the
rarer words find too few, all terms look up rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from ua_memory.index.filters import Filters
from ua_memory.index.tables import EXACT
from ua_memory.index.terms import Query, clean, indexed
from ua_memory.index.vocabulary import Vocabulary

CONTEXT_WEIGHT = 0.4
"""What a word in an item's heading, tags or entities counts beside one in its text."""

ASKED = 48
"""So many terms of a query are looked up, the rarest; a longer one is a pasted document."""

ENOUGH, LEAST, SHARE = 2000, 500, 20
"""Rows after which further terms, the rarest first, no longer look up rows of their own: a twentieth of all,
from 500 to 2,000."""


@dataclass(frozen=True, slots=True)
class WordHit:
    """An item found by its words: BM25 score, higher is better."""

    key: str
    score: float


def expression(query: Query) -> str:
    """A query as FTS5 reads it, '' where it asks for nothing."""
    phrases = ['"' + " ".join(phrase) + '"' for phrase in query.phrases]
    every = _any([*_quoted(query.terms, query), *phrases])
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
    """The best items by BM25, equal scores in the order of path and line."""
    found: list[WordHit] = []
    for matches in _ways(vocabulary, query):
        found = _fetched(db, matches, limit, where)
        if len(found) == limit:
            break
    return found


def _ways(vocabulary: Vocabulary, query: Query) -> Iterator[list[str]]:
    """Lists of expressions that no row matches two of, the cheapest first, the last with all that matches."""
    known = vocabulary.frequencies(query.terms) if query.terms else {}
    terms = sorted((term for term in query.terms if known[term]), key=lambda term: (known[term], term))
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
    every = expression(Query(tuple(term for term in query.terms if term in kept), query.phrases, query.again))
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
