"""A folder in the state for what is packed or unpacked whole: one process at a time has it, and what a killed
one left there goes before the next one works."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from ua_memory.errors import Busy
from ua_memory.store.lock import locked
from ua_memory.store.swap import refused

FOLDER = "archive"


@contextlib.contextmanager
def aside(state: Path, seconds: float) -> Iterator[Path]:
    """An empty folder, for its owner alone, for as long as the block lasts. Busy after so many seconds."""
    with locked(state / f"{FOLDER}.lock", seconds):
        folder = state / FOLDER
        shutil.rmtree(folder, ignore_errors=True)
        try:
            folder.mkdir(mode=0o700)
        except OSError as error:
            refused(error, folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def sweep(state: Path) -> None:
    """Remove what a killed process left: it may hold all of the history. A living one does it itself."""
    if (state / FOLDER).exists():
        with contextlib.suppress(Busy), aside(state, 0):
            pass
