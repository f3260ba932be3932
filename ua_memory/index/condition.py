"""How an index stands, told from its files without opening Chroma or taking a lock."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.index.manifest import Manifest
from ua_memory.index.outside import Files
from ua_memory.index.shelf import Shelf
from ua_memory.index.tables import SCHEMA_VERSION

if TYPE_CHECKING:
    from ua_memory.store import Store


def absent(store: Store) -> bool:
    """Whether there is no index yet, or none any more."""
    folder = Shelf(store.bank.index).current()
    return folder is None or not (folder / "words.db").exists()


def state(store: Store) -> dict[str, object]:
    """Items and files it knows, whether it has seen the files as they are, and how far the vectors are.

    `state` is 'ready', 'behind', 'of another version' or 'damaged'; `vectors` is 'ready', 'behind' or
    'none yet'.
    """
    folder = Shelf(store.bank.index).current()
    if folder is None:
        return {"state": "none yet"}
    try:
        db = _opened(folder)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return {"state": "damaged", "why": str(error)}
    try:
        meta = dict(db.execute("SELECT name, value FROM meta WHERE name != 'proof'"))
        if meta.get("schema") != SCHEMA_VERSION:
            return {"state": "of another version"}
        return {
            "state": "ready" if Manifest(db).stands_for(_proof(store)) else "behind",
            "items": db.execute("SELECT count(*) FROM items").fetchone()[0],
            "files": db.execute("SELECT count(*) FROM files").fetchone()[0],
            "vectors": _vectors(folder, meta),
        }
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return {"state": "damaged", "why": str(error)}
    finally:
        db.close()


def _proof(store: Store) -> str:
    return Files(store).look(store.survey(), store.bank.cache).proof


def _opened(folder: Path) -> sqlite3.Connection:
    db = sqlite3.connect(f"{(folder / 'words.db').as_uri()}?mode=ro", uri=True, timeout=1)
    try:
        db.execute("SELECT count(*) FROM sqlite_master")
    except (sqlite3.Error, UnicodeDecodeError):
        db.close()
        raise
    return db


def _vectors(folder: Path, meta: dict[str, str]) -> str:
    try:
        mark = json.loads((folder / "chroma.json").read_text())
    except (OSError, ValueError, RecursionError):
        return "none yet"
    same = (mark.get("epoch"), str(mark.get("generation"))) == (meta.get("epoch"), meta.get("generation"))
    return "ready" if same else "behind"
