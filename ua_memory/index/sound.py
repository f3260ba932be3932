"""Whether an index that can be opened holds what the files say: a flipped byte in it is no error of SQLite's.

Asked by `verify` and `doctor`, never by a search. The rows of every file that has not changed since it was
read are made again and compared; FTS5 holds its words against its rows, Chroma's names are held against the
texts', and each embedding that is kept against the sum noted with it. Not looked at: the numbers within
Chroma's graph.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory import markdown
from ua_memory.errors import UaMemoryError
from ua_memory.index import cache
from ua_memory.index.items import items_of
from ua_memory.index.manifest import Known, Manifest, content_hash
from ua_memory.index.outside import Files, outside
from ua_memory.index.spelling import grams
from ua_memory.index.tables import COLUMNS, row
from ua_memory.store.reading import searched

if TYPE_CHECKING:
    from ua_memory.store import Store

MOST = 5
"""Differences that are named: one is enough to make the index again."""


def differences(store: Store, folder: Path, db: sqlite3.Connection) -> Iterator[str]:
    """What the word index and Chroma's names say that the files do not. sqlite3.Error, UnicodeDecodeError."""
    yield from islice(_of_rows(store, db), MOST)
    spelt = "SELECT word, count(*), max(size), min(size), count(*) - sum(instr(' ' || word || ' ', gram) > 0)"
    for word, count, *sizes, strange in db.execute(f"{spelt} FROM grams GROUP BY word"):
        if strange or {*sizes} != {len(word)} or count != len(grams(word)):
            yield "words by which others are guessed are not spelt as they are"
            break
    with closing(sqlite3.connect("")) as copy:  # a file without a name, which is gone with this process
        db.backup(copy)
        try:
            copy.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError as error:
            yield f"the words are not those of the items: {error}"
    yield from _of_vectors(store, folder, db)


def _of_rows(store: Store, db: sqlite3.Connection) -> Iterator[str]:
    files, seen = Files(store), store.survey()
    known = Manifest(db).files()
    for (path,) in db.execute("SELECT DISTINCT path FROM items"):
        if path not in known:
            yield f"items of {path}, which was not read"
    for path, before in known.items():
        made = _made(files, path, before, seen.held.get(path))
        if made is None:  # changed since, or gone: the next search reads it
            continue
        there = {
            values[1]: values[1:]
            for values in db.execute(f"SELECT {COLUMNS} FROM items WHERE path = ?", (path,))
        }
        for key, values in made.items():
            if there.pop(key, None) != values:
                yield f"what it has of {path}:{values[3]} is not what stands there"
        if there:
            yield f"{len(there)} items of {path} that do not stand there"


def _made(files: Files, path: str, before: Known, held: str | None) -> dict[str, tuple[object, ...]] | None:
    """{key: the values of its row} of a file's items; None where it is not the file that was read."""
    try:
        data = files.blob(held) if held else files.read(path)
    except (UaMemoryError, OSError):
        return None
    if content_hash(data) != before.hash:
        return None
    items = items_of(markdown.parse(searched(data)[0], path), files.masked)
    owned = (replace(item, id=None) if outside(path) else item for item in items)
    return {item.key: row(0, item, item.digest())[1:] for item in owned}


def _of_vectors(store: Store, folder: Path, db: sqlite3.Connection) -> Iterator[str]:
    """The names of the texts in Chroma's own file, where its mark says that they are those of the items."""
    meta = dict(db.execute("SELECT name, value FROM meta"))
    try:
        mark = json.loads((folder / "chroma.json").read_text())
        file = folder / "chroma" / "chroma.sqlite3"
        if (mark["epoch"], str(mark["generation"])) != (meta.get("epoch"), meta.get("generation")):
            return
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=1)) as rows:
            yield from (
                f"Chroma: {said}" for (said,) in rows.execute("PRAGMA quick_check(5)") if said != "ok"
            )
            there = {name for (name,) in rows.execute("SELECT embedding_id FROM embeddings")}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return  # no vectors, or their mark is broken: the next search makes them again
    except sqlite3.Error as error:
        yield f"Chroma: {error}"
        return
    wanted = {name for (name,) in db.execute("SELECT DISTINCT vhash FROM items")}
    wanted -= cache.without(store.bank.cache, str(mark.get("model", "")))
    if there != wanted:
        yield f"{len(wanted - there)} texts without a vector, {len(there - wanted)} vectors without a text"


def of_cache(folder: Path) -> Iterator[str]:
    """What is damaged in the embeddings that are kept."""
    file = folder / cache.FILE
    if not file.exists():
        return
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=1)) as db:
            yield from (str(said) for (said,) in db.execute("PRAGMA quick_check(5)") if said != "ok")
            if wrong := sum(cache.sum_of(*values[1:]) != values[0] for values in db.execute(cache.SUMMED)):
                yield f"{wrong} embeddings are not what was kept"
    except (sqlite3.Error, UnicodeDecodeError) as error:
        yield f"damaged: {error}"
