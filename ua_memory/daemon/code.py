"""The code that runs here: which installation it is of, and whether its files have changed since."""

from __future__ import annotations

import os
import sys
import time
from typing import TypeAlias

from ua_memory.daemon.address import PACKAGE

EVERY = 1.0
"""Seconds between two looks."""

State: TypeAlias = tuple[int, int]


class Code:
    """The code as it was when this process began."""

    def __init__(self) -> None:
        self._folders, self._files = _all()
        self._looked, self._changed = time.monotonic(), False

    def changed(self) -> bool:
        """Whether it has been replaced on disk since. One who asks now and then waits for each look: it is of
        the folders and of the modules that are loaded, a tenth of all; what is installed changes a folder."""
        if not self._changed and time.monotonic() - self._looked > EVERY:
            self._looked = time.monotonic()
            self._changed = not self._same(_loaded()) or not self._settled()
        return self._changed

    def _same(self, files: list[str]) -> bool:
        return all(_state(file) == self._files[file] for file in files if file in self._files)

    def _settled(self) -> bool:
        """Whether folders are as they were, or hold what they held: what Python compiles is new there."""
        if all(_state(folder) == was for folder, was in self._folders.items()):
            return True
        self._folders, files = _all()
        return files == self._files


def _all() -> tuple[dict[str, State], dict[str, State]]:
    """The folders and the modules of this package, each with its size and time."""
    folders: dict[str, State] = {}
    files: dict[str, State] = {}
    for folder, below, names in os.walk(PACKAGE):
        below[:] = [name for name in below if name != "__pycache__"]
        folders[folder] = _state(folder)
        files |= {path: _state(path) for name in names if (path := f"{folder}/{name}").endswith(".py")}
    return folders, files


def _loaded() -> list[str]:
    """Where the modules of this package may lie that run here."""
    own = [name.split(".")[1:] for name in [*sys.modules] if f"{name}.".startswith("ua_memory.")]
    return ["/".join([PACKAGE, *parts]) + end for parts in own for end in (".py", "/__init__.py")]


def _state(path: str) -> State:
    try:
        found = os.stat(path)  # noqa: PTH116 (a hundred of them on the way to an answer)
    except OSError:  # an installation under way
        return 0, 0
    return found.st_size, found.st_mtime_ns
