"""Rows of JSON in a file that is only appended to, by one process at a time, and that outlives a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from datetime import datetime
from typing import IO, Any, TypeVar, cast

Row = dict[str, Any]
T = TypeVar("T")


def lock(fd: int, *, wait: bool) -> bool:
    """Take a file for oneself, and tell whether that could be done; the lock ends with the file's closing."""
    try:
        import fcntl
    except ImportError:  # Windows, where one process works alone
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def append(file: IO[bytes], rows: Iterable[Row]) -> None:
    """Write rows behind what stands there; on the disk when this returns. OSError."""
    file.seek(0, os.SEEK_END)
    if file.tell():
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":  # a killed writer's half line ends here, and is passed over when read
            file.write(b"\n")
    data = b"".join(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n" for row in rows)
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def rows(file: IO[bytes]) -> Iterator[Row]:
    """The rows of a file from its beginning; a line that cannot be read is passed over."""
    file.seek(0)
    for line in file:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row


def made(kind: type[T], row: Row) -> T:
    """The row as what it was; a later version's keys are passed over."""
    known: Row = {each.name: row[each.name] for each in fields(cast(Any, kind)) if each.name in row}
    known |= {key: time_of(known[key]) for key in ("at", "started") if key in known}
    return kind(**known)


def time_of(text: str | None) -> datetime | None:
    """A time of a row. ValueError."""
    return datetime.fromisoformat(text) if text else None


def plain(value: Any) -> Row:
    """A dataclass as a row; times as text."""
    return {k: each.isoformat() if isinstance(each, datetime) else each for k, each in asdict(value).items()}
