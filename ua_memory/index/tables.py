"""The word index's tables, and an item as a row of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ua_memory.index.items import Item

T = TypeVar("T")

SCHEMA_VERSION = "5"
"""Raise it with any change here or in how items and terms are made: another version is dropped."""

EXACT = "unicode61 remove_diacritics 2 tokenchars '_'"
"""Reads a word as it stands there, but for case and accents."""

TOKENIZER = f"porter {EXACT}"

COLUMNS = (
    'rowid, key, digest, path, line, "end", seq, record, kind, id, date, origin, client, session, retired,'
    ' texthash, linehash, vhash, "when", day, heading, tags, entities, text, context, speaker, run,'
    " proofs, importance"
)

SCHEMA = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID",
    "CREATE TABLE files (path BLOB PRIMARY KEY, size INTEGER, mtime_ns INTEGER, ctime_ns INTEGER, inode TEXT,"
    " hash TEXT, racy INTEGER) WITHOUT ROWID",
    "CREATE TABLE items (rowid INTEGER PRIMARY KEY, key TEXT UNIQUE, digest TEXT, path TEXT, line INTEGER,"
    ' "end" INTEGER, seq INTEGER, record TEXT, kind TEXT, id TEXT, date TEXT, origin TEXT, client TEXT,'
    ' session TEXT, retired TEXT, texthash TEXT, linehash TEXT, vhash TEXT, "when" TEXT, day TEXT,'
    " heading TEXT, tags TEXT, entities TEXT, text TEXT, context TEXT, speaker TEXT, run TEXT,"
    " proofs TEXT, importance INTEGER)",
    "CREATE INDEX items_place ON items (path, seq)",
    "CREATE INDEX items_vhash ON items (vhash)",
    "CREATE INDEX items_texthash ON items (texthash)",
    "CREATE INDEX items_id ON items (id) WHERE id IS NOT NULL",
    "CREATE INDEX items_run ON items (run) WHERE run != ''",
    "CREATE TABLE names (name TEXT, how INTEGER, item INTEGER, PRIMARY KEY (name, how, item)) WITHOUT ROWID",
    "CREATE INDEX names_item ON names (item)",
    "CREATE TABLE settled (name TEXT, entity INTEGER, role TEXT, PRIMARY KEY (name, entity, role))"
    " WITHOUT ROWID",
    "CREATE INDEX settled_entity ON settled (entity)",
    "CREATE TRIGGER items_gone AFTER DELETE ON items BEGIN DELETE FROM names WHERE item = old.rowid; END",
    "CREATE TABLE grams (gram TEXT, size INTEGER, word TEXT, PRIMARY KEY (gram, size, word)) WITHOUT ROWID",
    "CREATE TABLE journal (generation INTEGER, vhash TEXT)",
    f'CREATE VIRTUAL TABLE words USING fts5 (text, context, tokenize = "{TOKENIZER}")',
    "CREATE VIRTUAL TABLE terms USING fts5vocab (words, row)",
)

TEMPORARY = (
    f'CREATE VIRTUAL TABLE temp.scratch USING fts5 (word, tokenize = "{TOKENIZER}")',
    "CREATE VIRTUAL TABLE temp.scratch_terms USING fts5vocab (temp, scratch, instance)",
)


def row(number: int, item: Item, digest: str) -> tuple[Any, ...]:
    """An item as the values of COLUMNS."""
    where = (number, item.key, digest, item.path, item.line, item.end, item.seq)
    what = (item.record, item.kind, item.id, item.date, item.origin, item.client or "", item.session)
    hashes = (item.retired or "", item.texthash, item.linehash, item.vhash, item.when, item.day, item.heading)
    names = (json.dumps(item.tags), json.dumps(item.entities))
    about = (item.context, item.speaker, item.run, json.dumps(item.proofs), item.importance)
    return (*where, *what, *hashes, *names, item.text, *about)


def from_row(values: tuple[Any, ...]) -> Item:
    """The item of a row of COLUMNS."""
    _, key, _, path, line, end, seq, record, kind, block_id, _, origin, client, session = values[:14]
    retired, texthash, linehash, vhash, when, day, heading, tags, entities = values[14:23]
    text, context, speaker, run, proofs, importance = values[23:]
    return Item(
        key=key,
        record=record,
        kind=kind,
        path=path,
        line=line,
        end=end,
        seq=seq,
        id=block_id,
        text=text,
        texthash=texthash,
        linehash=linehash,
        vhash=vhash,
        when=when,
        day=day,
        origin=origin,
        client=client or None,
        session=session,
        heading=heading,
        tags=_names(tags),
        entities=_names(entities),
        retired=retired or None,
        context=context,
        speaker=speaker,
        run=run,
        proofs=_names(proofs),
        importance=importance,
    )


def _names(packed: str) -> tuple[str, ...]:
    return tuple(json.loads(packed)) if packed != "[]" else ()


def read_only(file: Path) -> sqlite3.Connection:
    """A database that is only looked at. sqlite3.Error, at the latest with the first question."""
    return sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=1)


def marks(values: Sequence[object]) -> str:
    """As many question marks as values."""
    return ",".join("?" * len(values))


def chunks(values: list[T], size: int = 500) -> Iterator[list[T]]:
    """The values in lists that stay under SQLite's limits."""
    for start in range(0, len(values), size):
        yield values[start : start + size]
