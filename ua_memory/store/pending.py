"""Revisions in flight: the durable record that is written before any file of the truth is touched.

A record holds everything that is needed to finish its revision without the process that began it:
the bytes compared, the bytes wanted, the commits with their authors and messages. It is dropped when
the commit stands. A record found at the start of a command is rolled forward (`store`).
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ua_memory.errors import CannotWrite
from ua_memory.history import Commit
from ua_memory.store import swap

VERSION = 1
UNREADABLE = ".unreadable"


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of a revision: what was on disk, what shall be, and what the trail had (all None: no file)."""

    path: str
    disk: bytes | None
    wanted: bytes | None
    trail: bytes | None


@dataclass(frozen=True, slots=True)
class InFlight:
    """A revision on its way. `written` tells that the files are done and only the commit is owed."""

    key: str
    changes: tuple[FileChange, ...]
    commits: tuple[Commit, ...]
    written: bool = False

    def final(self, files: Mapping[str, bytes | None]) -> InFlight:
        """The same revision with other final bytes for some files, as a merge with a person's save made them."""
        changes = tuple(replace(c, wanted=files.get(c.path, c.wanted)) for c in self.changes)
        last = self.commits[-1]
        merged = {path: files.get(path, data) for path, data in last.files.items()}
        return replace(self, changes=changes, commits=(*self.commits[:-1], replace(last, files=merged)))


def save(folder: Path, record: InFlight) -> None:
    """Write or rewrite a record; it is on the disk when this returns."""
    fresh, file = folder / f"{record.key}.fresh", folder / f"revision-{record.key}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh.unlink(missing_ok=True)
        swap.write_durably(fresh, json.dumps(_to_json(record)).encode())
        fresh.replace(file)
        swap.sync_folder(folder)
    except OSError as error:
        raise CannotWrite(error.strerror or str(error), where=str(file), mend="ua-memory doctor") from error


def drop(folder: Path, key: str) -> None:
    (folder / f"revision-{key}.json").unlink(missing_ok=True)


def keys(folder: Path) -> list[str]:
    """The keys of the revisions in flight, oldest first (keys begin with the time)."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    return [
        n[len("revision-") : -len(".json")]
        for n in names
        if n.startswith("revision-") and n.endswith(".json")
    ]


def found(folder: Path) -> Iterator[InFlight]:
    """The records that wait, oldest first. One that cannot be read is set aside, so that it blocks no other."""
    for key in keys(folder):
        file = folder / f"revision-{key}.json"
        try:
            yield _from_json(json.loads(file.read_bytes()))
        except FileNotFoundError:
            continue
        except (ValueError, KeyError, TypeError, AttributeError):
            file.rename(file.with_suffix(UNREADABLE))


def unreadable(folder: Path) -> list[Path]:
    """The records that were set aside: whole as they were found, for a person to look at."""
    return sorted(folder.glob(f"*{UNREADABLE}"))


def _to_json(record: InFlight) -> dict[str, Any]:
    return {
        "version": VERSION,
        "key": record.key,
        "written": record.written,
        "changes": [[c.path, _pack(c.disk), _pack(c.wanted), _pack(c.trail)] for c in record.changes],
        "commits": [
            [list(c.author), c.when.isoformat(), c.message, {p: _pack(d) for p, d in c.files.items()}]
            for c in record.commits
        ],
    }


def _from_json(raw: dict[str, Any]) -> InFlight:
    if raw["version"] != VERSION:
        raise ValueError(f"version {raw['version']}")
    return InFlight(
        key=raw["key"],
        written=raw["written"],
        changes=tuple(FileChange(p, _unpack(d), _unpack(w), _unpack(t)) for p, d, w, t in raw["changes"]),
        commits=tuple(
            Commit((a[0], a[1]), datetime.fromisoformat(w), m, {p: _unpack(d) for p, d in f.items()})
            for a, w, m, f in raw["commits"]
        ),
    )


def _pack(data: bytes | None) -> Any:
    """Text as itself, so that a person can read the record; anything else in base64."""
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _unpack(raw: Any) -> bytes | None:
    if isinstance(raw, dict):
        return base64.b64decode(raw["base64"])
    return None if raw is None else raw.encode("utf-8")
