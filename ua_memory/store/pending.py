"""Revisions in progress: the durable record that is written before any file is touched."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ua_memory.errors import writing
from ua_memory.git.repository import Commit
from ua_memory.paths import make_private
from ua_memory.store import swap

FIRST_LINE = b"ua-memory revision 1 sha256 "
"""The checksum stands in the first line: a flipped bit in the text of a fact would still be valid JSON."""
UNREADABLE = ".unreadable"
FRESH = ".fresh"
SIDES = ("start", "aim", "trail", "placed", "wanted")


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of a revision on its way; None always means no file.

    The revision is the way from `start` to `aim`, and the trail had `trail`. In place stands `placed`, and
    `wanted` shall take its place; after a person's save both are others than at the beginning. `taken` is
    what came out in earlier turns and is merged already.
    """

    path: str
    start: bytes | None
    aim: bytes | None
    trail: bytes | None
    placed: bytes | None
    wanted: bytes | None
    taken: tuple[bytes | None, ...] = ()

    @property
    def turn(self) -> int:
        return len(self.taken)

    def next(self, came: bytes | None, wanted: bytes | None) -> FileChange:
        """The change after `came` came out where `placed` was expected: `wanted` has to go in place now."""
        return replace(self, taken=(*self.taken, came), placed=self.wanted, wanted=wanted)


@dataclass(frozen=True, slots=True)
class InFlight:
    """A revision on its way. `written` tells that the files are done; without commits none is owed.

    The last of `commits` is the revision's own, those before it are a person's edits and what was put back.
    """

    key: str
    request: str
    changes: tuple[FileChange, ...]
    commits: tuple[Commit, ...]
    written: bool = False
    after: tuple[Commit, ...] = ()
    """What a person saved on top of ours while it was being written."""
    branch: str = ""
    """The branch that it was made for, in a bank of its own: HEAD may name another one by now."""

    def with_change(self, number: int, change: FileChange) -> InFlight:
        """The same revision with one of its changes replaced."""
        return replace(self, changes=(*self.changes[:number], change, *self.changes[number + 1 :]))

    def with_file(self, path: str, data: bytes | None) -> InFlight:
        """The same revision with other bytes for a file in its own commit, if that has the file."""
        own = self.commits[-1]
        files = {**own.files, path: data} if path in own.files else own.files
        return replace(self, commits=(*self.commits[:-1], replace(own, files=files)))


def new_key(folder: Path, token: str) -> str:
    """A key that sorts after the existing ones, even if the clock was set back."""
    newest = max((int(k.partition("-")[0]) for k in keys(folder) if k.partition("-")[0].isdigit()), default=0)
    return f"{max(time.time_ns(), newest + 1):020d}-{token}"


def save(folder: Path, record: InFlight, *, durably: bool = True) -> None:
    """Write or rewrite a record; it is on the disk on return. CannotWrite.

    Without `durably` it survives this process, but not a power cut.
    """
    fresh, file = folder / f"{record.key}{FRESH}", folder / f"revision-{record.key}.json"
    with writing(file):
        make_private(folder)
        there = file.exists()
        try:
            swap.put(file, _packed(record), fresh, durably=durably)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
                if not there:  # what was not promised must not be carried out
                    file.unlink(missing_ok=True)
            raise


def drop(folder: Path, key: str) -> None:
    """Remove a record. CannotWrite."""
    file = folder / f"revision-{key}.json"
    with writing(file):
        file.unlink(missing_ok=True)


def keys(folder: Path) -> list[str]:
    """The keys of the revisions in progress, oldest first (keys begin with the time)."""
    found = swap.beside(folder, "revision-")
    return [file.stem.removeprefix("revision-") for file in found if file.suffix == ".json"]


def found(folder: Path) -> list[InFlight]:
    """The readable records, oldest first. Nothing is changed."""
    return [record for key in keys(folder) if (record := _read(folder / f"revision-{key}.json"))]


def at_rest(folder: Path) -> bool:
    """Whether no revision is in progress, and none was left half written. A client's session may be open."""
    return not keys(folder) and not any(file.suffix == FRESH for file in swap.beside(folder, ""))


def owed(records: list[InFlight]) -> dict[str, bytes | None]:
    """{path: bytes} as the missing commits will leave the history."""
    written = (c for record in records if record.written for c in (*record.commits, *record.after))
    return {path: data for commit in written for path, data in commit.files.items()}


def set_aside(folder: Path) -> None:
    """Rename records that cannot be read, so that they block no others; remove temporary files of killed
    processes.

    Only while holding the lock. No record is ever deleted here.
    """
    for key in keys(folder):
        file = folder / f"revision-{key}.json"
        if _read(file) is None and file.exists():
            with writing(file):
                file.rename(file.with_suffix(UNREADABLE))
    for file in swap.beside(folder, ""):
        if file.suffix == FRESH:
            with contextlib.suppress(OSError):
                file.unlink()


def unreadable(folder: Path) -> list[Path]:
    """The records that were set aside, unchanged, for a person to look at."""
    return sorted(folder.glob(f"*{UNREADABLE}"))


def _read(file: Path) -> InFlight | None:
    with writing(file):
        try:
            first, _, rest = file.read_bytes().partition(b"\n")
        except FileNotFoundError:  # carried out meanwhile by who holds the lock
            return None
    try:
        if first != FIRST_LINE + hashlib.sha256(rest).hexdigest().encode():
            return None
        return _from_json(json.loads(rest))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return None


def _packed(record: InFlight) -> bytes:
    texts: dict[bytes, int] = {}

    def number(data: bytes | None) -> int | None:
        return None if data is None else texts.setdefault(data, len(texts))

    raw = {
        "key": record.key,
        "request": record.request,
        "written": record.written,
        "branch": record.branch,
        "changes": [
            [c.path, [number(t) for t in c.taken], *(number(getattr(c, side)) for side in SIDES)]
            for c in record.changes
        ],
        "commits": [_commit_row(c, number) for c in record.commits],
        "after": [_commit_row(c, number) for c in record.after],
        "texts": [_pack(text) for text in texts],
    }
    rest = json.dumps(raw, indent=1).encode()
    return FIRST_LINE + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def _from_json(raw: Mapping[str, Any]) -> InFlight:
    texts = [_unpack(text) for text in raw["texts"]]

    def text(number: int | None) -> bytes | None:
        return None if number is None else texts[number]

    return InFlight(
        key=raw["key"],
        request=raw["request"],
        written=raw["written"],
        changes=tuple(
            FileChange(
                path, **dict(zip(SIDES, map(text, numbers), strict=True)), taken=tuple(map(text, taken))
            )
            for path, taken, *numbers in raw["changes"]
        ),
        commits=tuple(_commit(row, text) for row in raw["commits"]),
        after=tuple(_commit(row, text) for row in raw["after"]),
        branch=raw.get("branch", ""),  # earlier versions wrote none
    )


def _commit_row(commit: Commit, number: Callable[[bytes | None], int | None]) -> list[Any]:
    files = {path: number(data) for path, data in commit.files.items()}
    when = commit.when.isoformat()
    row = [list(commit.author), when, commit.message, files, [number(blob) for blob in commit.blobs]]
    return [*row, commit.joins] if commit.joins else row


def _commit(row: list[Any], text: Callable[[int | None], bytes | None]) -> Commit:
    (name, address), when, message, files, blobs, *joins = row
    kept = tuple(text(number) or b"" for number in blobs)
    contents = {path: text(number) for path, number in files.items()}
    return Commit((name, address), datetime.fromisoformat(when), message, contents, kept, *joins)


def _pack(data: bytes) -> Any:
    """Text as itself, so that a person can read the record; anything else in base64."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _unpack(raw: Any) -> bytes:
    return base64.b64decode(raw["base64"]) if isinstance(raw, dict) else bytes(raw.encode("utf-8"))
