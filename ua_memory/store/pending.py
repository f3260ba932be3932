"""Revisions in progress: the durable record that is written before any file is touched."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ua_memory.errors import writing
from ua_memory.git.repository import Commit
from ua_memory.paths import make_private
from ua_memory.store import swap

OF_ANY_VERSION = b"ua-memory revision "
FIRST_LINE = OF_ANY_VERSION + b"2 sha256 "
"""The first line has a checksum: with a flipped bit in a text, the record would still be valid JSON."""
UNREADABLE_SUFFIX = ".unreadable"
TEMP_SUFFIX = ".fresh"
TEXT_KEY = "//"
"""In a record `{"//": 3}` is its text number 3, so that each text is written once. No path is named so."""


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
    found = swap.list_names(folder, "revision-")
    return [name[len("revision-") : -len(".json")] for name in found if name.endswith(".json")]


def read_records(folder: Path) -> list[Pending]:
    """The readable records, oldest first."""
    return [record for key in keys(folder) if (record := _read_record(folder / f"revision-{key}.json"))]


def is_empty(folder: Path) -> bool:
    """Whether there are no records and no temporary files of records."""
    # Each search asks; the folder also has a file for each session.
    return not keys(folder) and not any(name.endswith(TEMP_SUFFIX) for name in swap.list_names(folder, ""))


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


def why_unreadable(file: Path) -> str:
    """What is wrong with a record that cannot be read, or that is gone by now."""
    first = b""
    with contextlib.suppress(OSError), file.open("rb") as there:
        first = there.read(len(FIRST_LINE))
    other = first != FIRST_LINE and first.startswith(OF_ANY_VERSION)
    return "was left by another version of ua-memory" if other else "cannot be read"


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

    def plain(value: Any) -> object:
        """A text's number, as `TEXT_KEY` has it, or a time as text."""
        if isinstance(value, bytes):
            return {TEXT_KEY: texts.setdefault(value, len(texts))}
        return value.isoformat()

    row = json.dumps(asdict(record), indent=1, default=plain)
    rest = f'{{"texts": {json.dumps([*map(_encode_text, texts)], indent=1)},\n"record": {row}}}'.encode()
    return FIRST_LINE + hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest


def _deserialize(raw: Mapping[str, Any]) -> Pending:
    texts = [base64.b64decode(t["base64"]) if isinstance(t, dict) else t.encode() for t in raw["texts"]]

    def whole(value: Any) -> Any:
        """A value with its texts, and tuples for lists."""
        if isinstance(value, list):
            return tuple(map(whole, value))
        if isinstance(value, dict):
            return texts[value[TEXT_KEY]] if TEXT_KEY in value else {k: whole(v) for k, v in value.items()}
        return value

    def commit(row: Mapping[str, Any]) -> Commit:
        return Commit(**{**row, "when": datetime.fromisoformat(row["when"])})

    row = whole(raw["record"])
    commits = {name: tuple(map(commit, row[name])) for name in ("commits", "after")}
    return Pending(**{**row, **commits, "changes": tuple(FileChange(**one) for one in row["changes"])})


def _encode_text(data: bytes) -> object:
    """Text as a string, so that a person can read the record; other bytes in base64."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
