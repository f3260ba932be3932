"""How an index stands, told from its files without opening Chroma or taking a lock."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.index.manifest import Manifest
from ua_memory.index.mark import stands_for
from ua_memory.index.outside import Files
from ua_memory.index.shelf import Shelf
from ua_memory.index.tables import SCHEMA_VERSION, read_only

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
        with closing(read_only(folder / "words.db")) as db:
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


def _proof(store: Store) -> str:
    return Files(store).look(store.survey(), store.bank.cache).proof


def _vectors(folder: Path, meta: dict[str, str]) -> str:
    try:
        same = stands_for(json.loads((folder / "chroma.json").read_text()), meta)
    except (OSError, ValueError, RecursionError):
        return "none yet"
    except (KeyError, TypeError):
        return "behind"
    return "ready" if same else "behind"
