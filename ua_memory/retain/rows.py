"""Rows of JSON in a file that is only appended to, by one process at a time, and that outlives a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import IO, Any

Row = dict[str, Any]


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
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row
