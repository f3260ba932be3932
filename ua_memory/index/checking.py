"""All that can be wrong inside an index and the embeddings kept beside it, named by file; see `sound`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.index import sound
from ua_memory.index.cache import FILE
from ua_memory.index.current import broken
from ua_memory.index.shelf import Shelf
from ua_memory.index.tables import SCHEMA_VERSION, read_only
from ua_memory.records import Problem

if TYPE_CHECKING:
    from ua_memory.store import Store


@dataclass(frozen=True, slots=True)
class Checked:
    """What a look found, and what could not be looked at now, with the reason."""

    problems: tuple[Problem, ...] = ()
    unchecked: tuple[Problem, ...] = ()

    def __or__(self, other: Checked) -> Checked:
        return Checked(self.problems + other.problems, self.unchecked + other.unchecked)


def checked(store: Store) -> Checked:
    """What is damaged in the index's files and the cache, or is not what the bank's files say; being behind
    them is not. A missing index is no problem, nor one of another version: it is made again."""
    shelf = Shelf(store.bank.index)
    found = Checked()
    for _ in range(2):
        folder = shelf.current()
        found = _look("index/current", shelf.problems)
        if folder is not None and (folder / "words.db").exists():
            where = f"index/{folder.name}"
            found |= _look(f"{where}/words.db", lambda at=folder: _of_words(store, at))  # type: ignore[misc]
            found |= _look(f"{where}/chroma", lambda at=folder: sound.of_vectors(store, at))  # type: ignore[misc]
            found |= _look(f"{where}/chroma", lambda at=folder: sound.of_files(at))  # type: ignore[misc]
        if shelf.current() == folder:  # else it was made again meanwhile
            break
    return found | cache_checked(store)


def cache_checked(store: Store) -> Checked:
    """What is damaged in the embeddings that are kept."""
    return _look(f"cache/{FILE}", lambda: sound.of_cache(store.bank.cache))


def _look(where: str, look: Callable[[], Iterable[str]]) -> Checked:
    try:
        return Checked(tuple(Problem(where, 1, text) for text in look()))
    except sound.Unchecked as why:
        return Checked((), (Problem(where, 1, f"not checked: {why}"),))


def _of_words(store: Store, folder: Path) -> list[str]:
    try:
        with closing(read_only(folder / "words.db")) as db:
            db.execute("BEGIN")
            found = [str(row) for (row,) in db.execute("PRAGMA integrity_check(5)") if row != "ok"]
            counted = "SELECT (SELECT count(*) FROM items), (SELECT count(*) FROM words_docsize)"
            items, words = db.execute(counted).fetchone()
            if items != words:
                found.append(f"{items} items, but the words of {words}")
            if not found and _is_ours(db):
                found += sound.differences(store, db)
            return found
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if not broken(error):
            raise sound.Unchecked(str(error)) from error
        return [f"damaged: {error}"]


def _is_ours(db: sqlite3.Connection) -> bool:
    """Whether it is of this version: of another, the next search makes it again."""
    return bool(db.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone() == (SCHEMA_VERSION,))
