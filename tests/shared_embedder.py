"""The embedding model as the tests share it: what it has read once it does not read again."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ua_memory.index.vectors import LocalVectors

REMEMBERED = 64 << 20
"""Bytes of states that are held: those of a few files' tests."""


class Models(dict[tuple[object, ...], Any]):
    """`embedding.SHARED`, which holds its models, and has each remember."""

    def __init__(self, held: Mapping[tuple[object, ...], Any]) -> None:
        super().__init__()
        for key, loaded in held.items():
            self[key] = loaded

    def __setitem__(self, key: tuple[object, ...], loaded: Any) -> None:
        super().__setitem__(key, replace(loaded, session=Session(loaded.session)))


class Session:
    """A session of onnxruntime whose run of the same numbers is made once."""

    def __init__(self, session: Any) -> None:
        self._session, self._runs, self._size = session, {}, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def run(self, names: Any, inputs: Mapping[str, Any]) -> list[Any]:
        key = tuple((name, value.shape, value.tobytes()) for name, value in inputs.items())
        found = self._runs.get(key)
        if found is None:
            found = self._session.run(names, inputs)
            self._size += sum(each.nbytes for each in found)
            if self._size > REMEMBERED:
                self._runs, self._size = {}, sum(each.nbytes for each in found)
            self._runs[key] = found
        return [each.copy() for each in found]


Checks = Callable[[Path, str], bytes]
Open = Callable[["LocalVectors"], None]


def once_for(checked: Checks, stamp: Callable[[Path], object]) -> Checks:
    """`embedding.checked` that reads a file again only when it may have changed: the model has 23 MB."""
    known: dict[object, bytes] = {}

    def read(file: Path, sha256: str) -> bytes:
        key = stamp(file), sha256
        if key not in known:
            known[key] = checked(file, sha256)
        return known[key]

    return read


def opened_with_tables(open_store: Open, tables: Path) -> Open:
    """`LocalVectors._open` that copies into a new folder the tables Chroma made in the first one."""

    @functools.wraps(open_store)
    def open_copied(store: LocalVectors) -> None:
        file = store.folder / "chroma.sqlite3"
        is_new = not file.exists()
        if is_new and tables.exists():
            store.folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(tables, file)
        open_store(store)
        if is_new and not tables.exists():
            shutil.copyfile(file, tables)

    return open_copied
