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
"""The first line has a checksum: with a flipped bit in a text, the record would still be valid JSON."""
UNREADABLE_SUFFIX = ".unreadable"
TEMP_SUFFIX = ".fresh"
CONTENTS = ("start", "aim", "in_head", "placed", "wanted")


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of a pending revision; None always means no file.

    The revision changes `start` to `aim`; HEAD had `in_head`. The file on disk should have `placed`, and is
    replaced with `wanted`: at first also `aim`, after a person's save the merge with it. `merged` are the
    contents that were swapped out in earlier turns, and are merged already.
    """

    path: str
    start: bytes | None
    aim: bytes | None
    in_head: bytes | None
    placed: bytes | None
    wanted: bytes | None
    merged: tuple[bytes | None, ...] = ()

    @property
    def turn(self) -> int:
        return len(self.merged)

    def after_save(self, save: bytes | None, wanted: bytes | None) -> FileChange:
        """The next turn, after `save` was swapped out instead of `placed`; it puts `wanted` in place."""
        return replace(self, merged=(*self.merged, save), placed=self.wanted, wanted=wanted)


@dataclass(frozen=True, slots=True)
class Pending:
    """The record of a revision that is being published. `written`: its files are done.

    The last of `commits` is its own; those before are a person's edits, and lines that were put back.
    """

    key: str
    request: str
    changes: tuple[FileChange, ...]
    commits: tuple[Commit, ...]
    written: bool = False
    after: tuple[Commit, ...] = ()
    """Commits of a person's saves that were made on top of ours while it was being written."""
    branch: str = ""
    """The branch it was made on, in a bank of its own: HEAD may have switched since."""

    def with_change(self, number: int, change: FileChange) -> Pending:
        """A copy with one change replaced."""
        return replace(self, changes=(*self.changes[:number], change, *self.changes[number + 1 :]))

    def with_file(self, path: str, data: bytes | None) -> Pending:
        """A copy with other bytes for a file of its own commit, if that has the file."""
        own = self.commits[-1]
        files = {**own.files, path: data} if path in own.files else own.files
        return replace(self, commits=(*self.commits[:-1], replace(own, files=files)))


def next_key(folder: Path, token: str) -> str:
    """A key that sorts after all existing ones, even if the clock was set back."""
    newest = max((int(k.partition("-")[0]) for k in keys(folder) if k.partition("-")[0].isdigit()), default=0)
    return f"{max(time.time_ns(), newest + 1):020d}-{token}"


def save(folder: Path, record: Pending, *, durably: bool = True) -> None:
    """Write or rewrite a record, fsynced. CannotWrite.

    Without `durably` it survives a kill of this process, but not a power cut.
    """
    fresh, file = folder / f"{record.key}{TEMP_SUFFIX}", folder / f"revision-{record.key}.json"
    with writing(file):
        make_private(folder)
        there = file.exists()
        try:
            swap.replace_file(file, _serialize(record), fresh, durably=durably)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
                if not there:  # the caller reports a failure, so the revision must not be carried out
                    file.unlink(missing_ok=True)
            raise


def delete(folder: Path, key: str) -> None:
    """Remove a record. CannotWrite."""
    file = folder / f"revision-{key}.json"
    with writing(file):
        file.unlink(missing_ok=True)


def keys(folder: Path) -> list[str]:
    """The keys of all records, oldest first (keys begin with the time)."""
    found = swap.list_files(folder, "revision-")
    return [file.stem.removeprefix("revision-") for file in found if file.suffix == ".json"]


def read_records(folder: Path) -> list[Pending]:
    """The readable records, oldest first."""
    return [record for key in keys(folder) if (record := _read_record(folder / f"revision-{key}.json"))]


def is_empty(folder: Path) -> bool:
    """Whether there are no records and no temporary files of records."""
    return not keys(folder) and not any(file.suffix == TEMP_SUFFIX for file in swap.list_files(folder, ""))


def uncommitted_contents(records: list[Pending]) -> dict[str, bytes | None]:
    """{path: bytes} that the missing commits will give to HEAD."""
    written = (c for record in records if record.written for c in (*record.commits, *record.after))
    return {path: data for commit in written for path, data in commit.files.items()}


def set_aside_unreadable(folder: Path) -> None:
    """Rename unreadable records, so that they do not block others, and delete temporary files.

    Requires the lock. No record is deleted.
    """
    for key in keys(folder):
        file = folder / f"revision-{key}.json"
        if _read_record(file) is None and file.exists():
            with writing(file):
                file.rename(file.with_suffix(UNREADABLE_SUFFIX))
    for file in swap.list_files(folder, ""):
        if file.suffix == TEMP_SUFFIX:
            with contextlib.suppress(OSError):
                file.unlink()


def unreadable_records(folder: Path) -> list[Path]:
    """The records that were set aside, for a person to look at."""
    return sorted(folder.glob(f"*{UNREADABLE_SUFFIX}"))


def _read_record(file: Path) -> Pending | None:
    with writing(file):
        try:
            first, _, rest = file.read_bytes().partition(b"\n")
        except FileNotFoundError:  # finished meanwhile by the holder of the lock
            return None
    try:
        if first != FIRST_LINE + hashlib.sha256(rest).hexdigest().encode():
            return None
        return _deserialize(json.loads(rest))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return None


def _serialize(record: Pending) -> bytes:
    texts: dict[bytes, int] = {}

    def number(data: bytes | None) -> int | None:
        return None if data is None else texts.setdefault(data, len(texts))

    raw = {
        "key": record.key,
        "request": record.request,
        "written": record.written,
        "branch": record.branch,
        "changes": [
            [c.path, [number(t) for t in c.merged], *(number(getattr(c, side)) for side in CONTENTS)]
            for c in record.changes
        ],
        "commits": [_commit_row(c, number) for c in record.commits],
        "after": [_commit_row(c, number) for c in record.after],
        "texts": [_encode_text(text) for text in texts],
    }
    rest = json.dumps(raw, indent=1).encode()
    return FIRST_LINE + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def _deserialize(raw: Mapping[str, Any]) -> Pending:
    texts = [_decode_text(text) for text in raw["texts"]]

    def text(number: int | None) -> bytes | None:
        return None if number is None else texts[number]

    return Pending(
        key=raw["key"],
        request=raw["request"],
        written=raw["written"],
        changes=tuple(
            FileChange(
                path, **dict(zip(CONTENTS, map(text, numbers), strict=True)), merged=tuple(map(text, merged))
            )
            for path, merged, *numbers in raw["changes"]
        ),
        commits=tuple(_commit_from_row(row, text) for row in raw["commits"]),
        after=tuple(_commit_from_row(row, text) for row in raw["after"]),
        branch=raw.get("branch", ""),  # earlier versions wrote none
    )


def _commit_row(commit: Commit, number: Callable[[bytes | None], int | None]) -> list[Any]:
    files = {path: number(data) for path, data in commit.files.items()}
    when = commit.when.isoformat()
    row = [list(commit.author), when, commit.message, files, [number(blob) for blob in commit.blobs]]
    return [*row, commit.joins] if commit.joins else row


def _commit_from_row(row: list[Any], text: Callable[[int | None], bytes | None]) -> Commit:
    (name, address), when, message, files, blobs, *joins = row
    kept = tuple(text(number) or b"" for number in blobs)
    contents = {path: text(number) for path, number in files.items()}
    return Commit((name, address), datetime.fromisoformat(when), message, contents, kept, *joins)


def _encode_text(data: bytes) -> Any:
    """Text as a string, so that a person can read the record; other bytes in base64."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _decode_text(raw: Any) -> bytes:
    return base64.b64decode(raw["base64"]) if isinstance(raw, dict) else bytes(raw.encode("utf-8"))
