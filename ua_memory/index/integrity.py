"""Whether an index that can be opened holds what the files say."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ua_memory.discovery import is_locked
from ua_memory.errors import UaMemoryError
from ua_memory.index import embedding, vectors
from ua_memory.index import items as index_items
from ua_memory.index.generations import Generations, KnownFile, Manifest, content_hash
from ua_memory.index.items import COLUMNS, SCHEMA, SCHEMA_VERSION, read_only, row
from ua_memory.index.outside import OutsideFiles, outside
from ua_memory.index.terms import grams, indexed
from ua_memory.index.vectors import stands_for
from ua_memory.index.words import broken
from ua_memory.knowledge.entities import ENTITIES
from ua_memory.markdown import document
from ua_memory.records import Problem
from ua_memory.store.files import searched

if TYPE_CHECKING:
    from ua_memory.store.store import Store


# -- sound -------------------------------------------------------------------------------------------------
# Whether an index that can be opened holds what the files say: a flipped byte in it is no error of
# SQLite's.
#
# Asked by `verify` and `doctor`, never by a search. The rows of every file that has not changed since it
# was read are made again and compared; FTS5 holds its words against its rows, Chroma's names are held
# against the texts', and each embedding that is kept against the sum noted with it. Chroma's files are held
# against the sums noted when they were closed. Others may be at work: what cannot be told for that is
# `CheckUnavailable`.


MOST = 5
"""Differences that are named: one is enough to make the index again."""


OPEN = "Chroma has its files open; to check them: `ua-memory daemon stop`, then `ua-memory verify`"
KILLED = "Chroma was not closed; to check its files: `ua-memory search x`, then `ua-memory verify`"


class CheckUnavailable(Exception):
    """Nothing can be said of it now; the message says why."""


def differences(store: Store, db: sqlite3.Connection) -> Iterator[str]:
    """What the word index says that the files do not. `db` is within a transaction, so that all of it is of
    one moment. sqlite3.Error, UnicodeDecodeError."""
    if _tables(db) != _made_tables(SCHEMA):
        yield "its tables differ from those that were created"
    yield from islice(_of_rows(store, db), MOST)
    spelt = "SELECT word, count(*), max(size), min(size), count(*) - sum(instr(' ' || word || ' ', gram) > 0)"
    for word, count, *sizes, strange in db.execute(f"{spelt} FROM grams GROUP BY word"):
        if strange or {*sizes} != {len(word)} or count != len(grams(word)):
            yield "the spelling suggestions do not match the words"
            break
    with closing(sqlite3.connect("")) as copy:  # a file without a name, which is gone with this process
        db.backup(copy)
        try:
            copy.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError as error:
            yield f"the words do not match the items: {error}"


def _tables(db: sqlite3.Connection) -> set[tuple[str, ...]]:
    return set(db.execute("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL"))


def _made_tables(schema: Iterable[str]) -> set[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as db:
        for statement in schema:
            db.execute(statement)
        return _tables(db)


def _of_rows(store: Store, db: sqlite3.Connection) -> Iterator[str]:
    files, seen = OutsideFiles(store), store.survey()
    known, settled = Manifest(db).files(), set[tuple[str, int, str]]()
    for (path,) in db.execute("SELECT DISTINCT path FROM items"):
        if path not in known:
            yield f"items of {path}, which was not read"
    for path, before in known.items():
        made = _made(files, path, before, seen.held.get(path))
        if made is None:  # changed since, or gone: the next search reads it
            if path not in seen.held and _same(store, path, before):
                yield f"its record of {path} does not match the file that it read"
            settled |= _settled(db) if path == ENTITIES else set()
            continue
        there = {
            values[1]: values[1:]
            for values in db.execute(f"SELECT {COLUMNS} FROM items WHERE path = ?", (path,))
        }
        for key, values in made.rows.items():
            if there.pop(key, None) != values:
                yield f"its entry for {path}:{values[3]} differs from the file"
        if there:
            yield f"{len(there)} items of {path} that are not in the file"
        kept = "SELECT key, words.text, words.context FROM items JOIN words ON words.rowid = items.rowid"
        if {*db.execute(f"{kept} WHERE path = ?", (path,))} != made.words:
            yield f"its words of {path} differ from the file"
        named = "SELECT key, name, how, spelled, stands FROM names JOIN items ON items.rowid = item"
        if {*db.execute(f"{named} WHERE path = ?", (path,))} != made.names:
            yield f"its names of {path} differ from the file"
        cited = "SELECT key, cited FROM cites JOIN items ON items.rowid = item WHERE path = ?"
        if {*db.execute(cited, (path,))} != made.cites:
            yield f"its citations of {path} differ from the file"
        settled |= made.settled
    if _settled(db) != settled:
        yield f"its names of {ENTITIES} differ from the file"
    if db.execute("SELECT 1 FROM names WHERE item NOT IN (SELECT rowid FROM items)").fetchone():
        yield "names of items that no longer exist"


def _settled(db: sqlite3.Connection) -> set[tuple[str, int, str]]:
    return {*db.execute("SELECT name, entity, role FROM settled")}


def _same(store: Store, path: str, before: KnownFile) -> bool:
    """Whether a file has the very stamp that it was read under, so that nobody can have written to it."""
    try:
        found = (Path(path) if outside(path) else store.bank.root / path).lstat()
    except OSError:
        return False
    stamp = (found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
    return before.stamp == stamp and bool(before.hash) and not before.racy


class _ExpectedRows(NamedTuple):
    """What a file comes to in the word index: {key: values of its row}, the words that are looked up, names,
    citations and the names that it settles."""

    rows: dict[str, tuple[object, ...]]
    words: set[tuple[str, str, str]]
    names: set[tuple[str, str, int, str, int]]
    cites: set[tuple[str, str]]
    settled: set[tuple[str, int, str]]


def _made(files: OutsideFiles, path: str, before: KnownFile, held: str | None) -> _ExpectedRows | None:
    """What a file comes to; None where it is not the file that was read."""
    try:
        data = files.blob(held) if held else files.read(path)
    except (UaMemoryError, OSError):
        return None
    if content_hash(data) != before.hash:
        return None
    owned = files.items(path, data)
    names = {(item.key, name, *how) for item in owned for name, how in index_items.names_of(item).items()}
    records = document.parse(searched(data)[0], path).records if path == ENTITIES else ()
    settled = index_items.settling(records, files.masked)
    words = {(item.key, indexed(item.text), indexed(item.context)) for item in owned}
    cites = {(item.key, block) for item in owned for block in index_items.cites_of(item)}
    rows = {item.key: row(0, item, item.digest())[1:] for item in owned}
    return _ExpectedRows(rows, words, names, cites, settled)


def of_files(generation: Path) -> list[str]:
    """Chroma's files that are not what they were when it was closed. Unchecked."""
    folder = generation / "chroma"
    if not folder.is_dir():
        return []
    found = vectors.changed(folder)
    if found is None:
        raise CheckUnavailable(OPEN if is_locked(generation.parent / "owner.lock") else KILLED)
    return [f"{name} has changed since Chroma was closed" for name in found]


def of_vectors(store: Store, generation: Path) -> list[str]:
    """The names of the texts in Chroma's own file, where its mark says that they are those of the items.
    Unchecked where another process is at them."""
    file = generation / "chroma" / "chroma.sqlite3"
    try:
        mark, items = _marked(generation), generation / "words.db"
        with closing(read_only(items)) as db:
            if not _stands(mark, db):
                return []
            wanted = {name for (name,) in db.execute("SELECT DISTINCT vhash FROM items")}
        wanted -= embedding.without(store.bank.cache, str(mark.get("model", "")))
        with closing(read_only(file)) as rows:
            found = [
                f"Chroma: {said}" for (said,) in rows.execute("PRAGMA integrity_check(5)") if said != "ok"
            ]
            there = {name for (name,) in rows.execute("SELECT embedding_id FROM embeddings")}
        # Texts come and go in the words first and the mark last: with both as before, Chroma is as before.
        with closing(read_only(items)) as db:
            if _marked(generation) != mark or not _stands(mark, db):
                raise CheckUnavailable(OPEN)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []  # no vectors, or their mark is broken: the next search makes them again
    except sqlite3.Error as error:
        if not broken(error):
            raise CheckUnavailable(str(error)) from error
        return [f"Chroma: {error}"]
    if there != wanted:
        lacking, spare = len(wanted - there), len(there - wanted)
        found.append(f"{lacking} texts without a vector, {spare} vectors without a text")
    return found


def _marked(generation: Path) -> dict[str, object]:
    return {**json.loads((generation / "chroma.json").read_text())}


def _stands(mark: dict[str, object], db: sqlite3.Connection) -> bool:
    """Whether a mark is that of the words."""
    return stands_for(mark, dict(db.execute("SELECT name, value FROM meta")))


def of_cache(folder: Path) -> list[str]:
    """What is damaged in the embeddings that are kept. Unchecked."""
    file = folder / embedding.CACHE_FILE
    if not file.exists():
        return []
    try:
        with closing(read_only(file)) as db:
            db.execute("BEGIN")
            found = [str(said) for (said,) in db.execute("PRAGMA integrity_check(5)") if said != "ok"]
            if _tables(db) != _made_tables(embedding.CACHE_SCHEMA):
                found.append("its tables differ from those that were created")
            sums = [embedding.sum_of(*values[1:]) != values[0] for values in db.execute(embedding.SUMMED)]
            if wrong := sum(sums) + db.execute(embedding.ALONE).fetchone()[0]:
                found.append(f"{wrong} embeddings differ from their checksums")
            bare = db.execute("SELECT count(*) FROM vectors").fetchone()[0] - len(sums)
    except (sqlite3.Error, UnicodeDecodeError, TypeError) as error:
        if isinstance(error, sqlite3.Error) and not broken(error):
            raise CheckUnavailable(str(error)) from error
        return [f"damaged: {error}"]
    if bare and not found:
        raise CheckUnavailable(f"{bare} embeddings have no checksum (written by an earlier version)")
    return found


# -- checking ----------------------------------------------------------------------------------------------
# All that can be wrong inside an index and the embeddings kept beside it, named by file; see `sound`.


@dataclass(frozen=True, slots=True)
class IntegrityReport:
    """What a look found, and what could not be looked at now, with the reason."""

    problems: tuple[Problem, ...] = ()
    unchecked: tuple[Problem, ...] = ()

    def __or__(self, other: IntegrityReport) -> IntegrityReport:
        return IntegrityReport(self.problems + other.problems, self.unchecked + other.unchecked)


def checked(store: Store) -> IntegrityReport:
    """What is damaged in the index's files and the cache, or is not what the bank's files say; being behind
    them is not. A missing index is no problem, nor one of another version: it is made again."""
    generations = Generations(store.bank.index)
    found = IntegrityReport()
    for _ in range(2):
        folder = generations.current()
        found = _look("index/current", generations.problems)
        if folder is not None and (folder / "words.db").exists():
            where = f"index/{folder.name}"
            found |= _look(f"{where}/words.db", lambda at=folder: _of_words(store, at))  # type: ignore[misc]
            found |= _look(f"{where}/chroma", lambda at=folder: of_vectors(store, at))  # type: ignore[misc]
            found |= _look(f"{where}/chroma", lambda at=folder: of_files(at))  # type: ignore[misc]
        if generations.current() == folder:  # else it was made again meanwhile
            break
    return found | cache_checked(store)


def cache_checked(store: Store) -> IntegrityReport:
    """What is damaged in the embeddings that are kept."""
    return _look(f"cache/{embedding.CACHE_FILE}", lambda: of_cache(store.bank.cache))


def _look(where: str, look: Callable[[], Iterable[str]]) -> IntegrityReport:
    try:
        return IntegrityReport(tuple(Problem(where, 1, text) for text in look()))
    except CheckUnavailable as why:
        return IntegrityReport((), (Problem(where, 1, f"not checked: {why}"),))


def _of_words(store: Store, folder: Path) -> list[str]:
    try:
        with closing(read_only(folder / "words.db")) as db:
            db.execute("BEGIN")
            found = [str(row) for (row,) in db.execute("PRAGMA integrity_check(5)") if row != "ok"]
            counted = "SELECT (SELECT count(*) FROM items), (SELECT count(*) FROM words_docsize)"
            items, words = db.execute(counted).fetchone()
            if items != words:
                found.append(f"{items} items, but words of {words}")
            if not found and _is_ours(db):
                found += differences(store, db)
            return found
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if not broken(error):
            raise CheckUnavailable(str(error)) from error
        return [f"damaged: {error}"]


def _is_ours(db: sqlite3.Connection) -> bool:
    """Whether it is of this version: of another, the next search makes it again."""
    return bool(db.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone() == (SCHEMA_VERSION,))
