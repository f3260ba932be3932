"""Looking for what was forgotten in everything there is: files, index, cache, pending records, logs, and on
demand every object of the history. What is found is told with its place, never with its words."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from ua_memory.forgetting.words import Needle
from ua_memory.history import rewriting
from ua_memory.paths import is_truth
from ua_memory.store import Store, swap

AT_ONCE = 8 << 20
"""Bytes of a file that are looked through at a time."""
OVERLAP = 1 << 18
"""Bytes that two looks share: no text of ours is longer, escaped once."""
_SQLITE = b"SQLite format 3\0"
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"


@dataclass(frozen=True, slots=True)
class Found:
    """A place where a forgotten text still stands: `where` is a file with a line, a database's table, or an
    object of the history."""

    where: str
    kind: str


@dataclass(frozen=True, slots=True)
class Searched:
    """What was looked through, by kind, and what was found there."""

    looked: dict[str, int] = field(default_factory=dict)
    found: tuple[Found, ...] = ()

    @property
    def holds(self) -> bool:
        return not self.found


def look(store: Store, needles: Sequence[Needle], *, objects: bool) -> Searched:
    """Search all files of the bank and of its state folder, and with `objects` every git object."""
    looked: dict[str, int] = {}
    found: list[Found] = []
    for kind, file in everything(store):
        looked[kind] = looked.get(kind, 0) + 1
        found += [Found(where, kind) for where in in_file(store, file, needles)]
    if objects and store.history.exists:
        count = 0
        for name, _, data in rewriting.all_objects(store.history):
            count += 1
            if any(needle.within(data) for needle in needles):
                found.append(Found(f"git object {name}", "history"))
        looked["history"] = count
    if any(each.kind == "files" for each in found):
        # What is in a file is in the index, too; the file is what is to be told.
        found = [each for each in found if each.kind not in ("index", "cache")]
    return Searched(looked, tuple(dict.fromkeys(found)))


def within(files: Mapping[str, bytes], needles: Sequence[Needle]) -> Searched:
    """Search files as they are to be."""
    found = []
    for path, data in files.items():
        for match in (match for needle in needles for match in needle.pattern.finditer(data)):
            line = data.count(b"\n", 0, match.start()) + 1
            found.append(Found(f"{path}:{line}", "files"))
    return Searched({"files": len(files)}, tuple(dict.fromkeys(found)))


def everything(store: Store) -> Iterator[tuple[str, Path]]:
    """(kind, file) of everything that a bank keeps, but for git's objects: those are asked of git."""
    bank = store.bank
    for file in _files(bank.root / "memory"):
        yield "files", file
    for file in sorted(bank.root.iterdir()):
        ours = is_truth(file.name) or file.name.startswith((swap.FRESH, swap.OUT))
        if ours and file.is_file() and not file.is_symlink():
            yield "files", file
    folders = {"pending": bank.pending, "index": bank.index, "cache": bank.cache, "local": bank.local}
    for kind, folder in folders.items():
        for file in _files(folder):
            yield kind, file
    known = {*folders.values(), bank.git_dir}
    for file in _files(bank.state, known):
        yield "state", file
    for file in _files(bank.git_dir, {*folders.values(), bank.state, bank.git_dir / "objects"}):
        yield "trail", file


def _files(folder: Path, but: Iterable[Path] = ()) -> Iterator[Path]:
    skipped = {str(each) for each in but}
    shut: list[OSError] = []
    for here, folders, names in os.walk(folder, onerror=shut.append):
        folders[:] = sorted(name for name in folders if str(Path(here, name)) not in skipped)
        for name in sorted(names):
            file = Path(here, name)
            if not file.is_symlink() and file.is_file():
                yield file
    # Not to be opened either, so that nobody takes it for searched.
    yield from (Path(error.filename) for error in shut if isinstance(error, PermissionError))


def in_file(store: Store, file: Path, needles: Sequence[Needle]) -> Iterator[str]:
    """The places in a file where one of the texts stands."""
    name = _name(store, file)
    try:
        with file.open("rb") as opened:
            start, rest = opened.read(AT_ONCE), b""
            if start.startswith(_SQLITE):
                yield from (f"{name} ({table})" for table in _in_tables(file, needles))
            before = 0
            while start:
                data = rest + start
                for needle in needles:
                    for match in needle.pattern.finditer(data):
                        line = before + data.count(b"\n", 0, match.start()) + 1
                        yield f"{name}:{line}" if name.endswith((".md", ".toml", ".log", ".jsonl")) else name
                before += data.count(b"\n", 0, max(0, len(data) - OVERLAP))
                start, rest = opened.read(AT_ONCE), data[-OVERLAP:]
    except OSError as error:
        yield f"{name} (cannot be read: {error.strerror})"


def _in_tables(file: Path, needles: Sequence[Needle]) -> Iterator[str]:
    """The tables of a database with a row that has one of the texts. What no row has, its pages may: they are
    looked through as bytes."""
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=5)) as db:
            db.text_factory = bytes
            tables = db.execute(_TABLES)
            for table in [row[0].decode() for row in tables.fetchall()]:
                quoted = table.replace('"', '""')
                for row in db.execute(f'SELECT * FROM "{quoted}"'):
                    if any(n.within(value) for value in row if isinstance(value, bytes) for n in needles):
                        yield table
                        break
    except sqlite3.Error:
        return  # as bytes it is looked through in any case


def _name(store: Store, file: Path) -> str:
    bank = store.bank
    for base, prefix in ((bank.state, ""), (bank.git_dir, f"{bank.git_dir.name}/"), (bank.root, "")):
        if file.is_relative_to(base):
            return prefix + file.relative_to(base).as_posix()
    return str(file)
