"""A log in `local/`, of the daemon and of hooks: one line an event, begun anew when it has grown, one old one
kept."""

from __future__ import annotations

import contextlib
import io
import os
import threading
from datetime import datetime
from pathlib import Path

LARGEST = 1 << 20
"""Bytes of a log."""
NAME = "daemon.log"


class Log:
    """Where is said what happens and nobody sees. A log that cannot be written is no reason to fail."""

    def __init__(self, folder: Path, name: str = NAME) -> None:
        self.file = folder / name
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        row = f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S%z} [{os.getpid()}] {text.rstrip()}\n"
        with self._lock, contextlib.suppress(OSError):
            with contextlib.suppress(FileNotFoundError):
                if self.file.stat().st_size + len(row) > LARGEST:
                    self.file.replace(self.file.with_suffix(".log.1"))
            fd = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, row.encode("utf-8", "backslashreplace"))
            finally:
                os.close(fd)

    def tail(self, lines: int) -> list[str]:
        """The newest lines, oldest first."""
        rows: list[str] = []
        for file in (self.file.with_suffix(".log.1"), self.file):
            with contextlib.suppress(FileNotFoundError):
                rows += file.read_text("utf-8", "replace").splitlines()
        return rows[-lines:] if lines else []


class Lines(io.StringIO):
    """A stream whose lines go into a log, for a command that nobody looks at."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log, self._begun = log, ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._log.say(line)
        return len(text)
