"""The code that runs here: which installation it is of, and whether its files have changed since."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

from ua_memory.daemon.address import PACKAGE

EVERY = 1.0
"""Seconds between two looks: one is a `stat` of each module."""


def stamp() -> str:
    """Names the state of all modules of this package on disk."""
    rows = []
    for file in sorted(Path(PACKAGE).rglob("*.py")):
        try:
            found = file.stat()
        except OSError:  # an installation under way
            continue
        rows.append(f"{file} {found.st_size} {found.st_mtime_ns}")
    return hashlib.sha256("\n".join(rows).encode("utf-8", "surrogateescape")).hexdigest()


class Code:
    """The code as it was when this process began."""

    def __init__(self) -> None:
        self._stamp, self._looked, self._changed = stamp(), time.monotonic(), False

    def changed(self) -> bool:
        """Whether it has been replaced on disk since."""
        if not self._changed and time.monotonic() - self._looked > EVERY:
            self._looked = time.monotonic()
            self._changed = stamp() != self._stamp
        return self._changed
