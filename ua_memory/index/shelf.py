"""The index folder: numbered generations, one of them current. A rebuild fills the next.

index/current      the name of the folder in use
index/7/           words.db, chroma/, chroma.json (see `mark`), chroma.sums (see `sums`)
index/clock        touched to learn the file system's time
index/owner.lock   who has Chroma open       index/build.lock   who makes or removes generations
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

from ua_memory.errors import CannotWrite
from ua_memory.paths import make_private

P = ParamSpec("P")
R = TypeVar("R")


def private(file: Path | str) -> None:
    """Make a file that only its owner may read, where there is none: SQLite gives what it keeps beside a
    database the mode of the database, and makes that by the umask. What fails, the caller meets."""
    with contextlib.suppress(OSError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def told(work: Callable[P, R]) -> Callable[P, R]:
    """The same work, for a door that asks for it alone: what the file system refuses is CannotWrite."""

    @wraps(work)
    def said(*args: P.args, **named: P.kwargs) -> R:
        try:
            return work(*args, **named)
        except OSError as error:
            what, where = error.strerror or str(error), str(error.filename or "the index")
            mend = "check owner, mode and free space; the index before is in use as it was"
            raise CannotWrite(what, where=where, mend=mend) from error

    return said


class Shelf:
    """The generations of one bank's index. OSError where the folder cannot be written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self) -> None:
        make_private(self.folder)
        private(self.folder / "clock")

    def current(self) -> Path | None:
        """The generation in use, None if there is none yet or it was deleted."""
        try:
            name = (self.folder / "current").read_text().strip()
        except (OSError, UnicodeDecodeError):
            return None
        found = self.folder / name
        return found if name.isdigit() and found.is_dir() else None

    def problems(self) -> list[str]:
        """What is wrong with the name of the generation in use."""
        there = [entry.name for entry in self.folder.glob("[0-9]*") if entry.name.isdigit()]
        known = (self.folder / "current").is_file() and self.current() is None
        return [f"names none of the generations there are: {', '.join(there)}"] if known and there else []

    def next(self) -> Path:
        """A new, empty generation that nobody uses yet (inside `building`)."""
        numbers = [int(entry.name) for entry in self.folder.iterdir() if entry.name.isdigit()]
        fresh = self.folder / str(max(numbers, default=0) + 1)
        fresh.mkdir(mode=0o700)
        return fresh

    def publish(self, generation: Path) -> None:
        """Make a generation the current one (inside `building`)."""
        pointer = self.folder / "current.new"
        pointer.write_text(generation.name)
        pointer.chmod(0o600)
        pointer.replace(self.folder / "current")

    def discard(self) -> None:
        """Let whoever looks next begin a new generation: the current one is damaged."""
        with self.building():
            (self.folder / "current").unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove the generations not in use, half-made ones of killed processes too (inside `building`)."""
        used = self.current()
        for entry in self.folder.iterdir():
            if entry.name.isdigit() and entry != used:
                shutil.rmtree(entry, ignore_errors=True)

    def tidy(self) -> None:
        """Sweep if there is anything to sweep, and nobody builds."""
        if sum(entry.isdigit() for entry in os.listdir(self.folder)) > 1:  # noqa: PTH208 (only names are wanted)
            with contextlib.suppress(BlockingIOError), self.building(0):
                self.sweep()

    @contextmanager
    def building(self, seconds: float = float("inf")) -> Iterator[None]:
        """One process at a time makes generations; the others wait for it. A rebuild takes minutes:
        BlockingIOError if somebody builds for longer than these `seconds`."""
        self.make()
        fd = os.open(self.folder / "build.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        until = time.monotonic() + seconds
        try:
            while True:
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError as error:
                    if time.monotonic() >= until:
                        raise BlockingIOError(error.errno, "another process rebuilds it") from error
                    time.sleep(0.02)
            yield
        finally:
            os.close(fd)
