"""The writer lock of a bank, locks between threads, and work folders that one process holds."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from threading import RLock
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from ua_memory.errors import Busy, writing

# -- lock --------------------------------------------------------------------------------------------------
# The one writer lock of a bank: an advisory lock on a file, which the system gives back when we die.
#
# Who has to wait stands in the system's own queue, first come, first served. Looking again and again until
# it is free took a third of two cores where 64 processes waited, and left it to chance who came next.


LOOK_SECONDS = 0.5
"""So often who waits looks by itself, too: not every file system has a queue that can be relied on, and where
no thread can be started there is nobody to stand in it."""


@contextlib.contextmanager
def locked(file: Path, seconds: float) -> Iterator[None]:
    """Hold the lock, waited for up to `seconds`. Busy names who holds it; CannotWrite."""
    with contextlib.ExitStack() as opened:
        fd = _open(file)
        opened.callback(os.close, fd)
        if not _try(fd, file):
            place = _Place(_open(file))
            opened.callback(place.leave)
            _wait(place, fd, file, time.monotonic() + seconds)
        _sign(fd)
        yield


class _Place:
    """A place in the system's queue. Nobody can wait there for a limited time, so a thread does."""

    def __init__(self, fd: int) -> None:
        self._fd, self._left, self._over = fd, False, False
        self._came, self._one_at_a_time = threading.Event(), threading.Lock()
        self._held = False
        try:
            threading.Thread(target=self._stand, name="waits for the lock", daemon=True).start()
        except RuntimeError:  # no more threads to be had: who waits looks by itself
            self._over = True

    def _stand(self) -> None:
        with contextlib.suppress(OSError):
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            self._held = True
        with self._one_at_a_time:
            self._over = True
            if self._left:  # too late: on to the next
                os.close(self._fd)
        if self._held:
            self._came.set()

    def comes(self, seconds: float) -> bool:
        """Whether the lock is ours within so many seconds."""
        return self._came.wait(seconds)

    def leave(self) -> None:
        """Give up the lock, or the place in the queue: at the latest when its turn comes."""
        with self._one_at_a_time:
            self._left = True
            if self._over:
                os.close(self._fd)


def _wait(place: _Place, fd: int, file: Path, deadline: float) -> None:
    while True:
        left = deadline - time.monotonic()
        if place.comes(max(0.0, min(left, random.uniform(0.5, 1) * LOOK_SECONDS))) or _try(fd, file):
            return
        if time.monotonic() > deadline:
            holder = os.pread(fd, 20, 0).decode(errors="replace").strip() or "unknown"
            raise Busy("another process is writing", where=f"process {holder}", hint="try again")


def _open(file: Path) -> int:
    with writing(file):
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try(fd: int, file: Path) -> bool:
    with writing(file, "move the bank to a file system that supports locks"):  # there may be none
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _sign(fd: int) -> None:
    # For the message of who waits; a full disk must not be found out here.
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)


# -- work folder -------------------------------------------------------------------------------------------
# A folder in the state for what is packed or unpacked whole: one process at a time has it, and what a
# killed one left there goes before the next one works.


FOLDER = "archive"


@contextlib.contextmanager
def work_folder(state: Path, seconds: float) -> Iterator[Path]:
    """An empty, private folder for the length of the block. Busy after this many seconds."""
    with locked(state / f"{FOLDER}.lock", seconds):
        folder = state / FOLDER
        shutil.rmtree(folder, ignore_errors=True)
        with writing(folder):
            folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_work_folder(state: Path) -> None:
    """Remove the folder of a killed process, which may contain all of the history. A living one removes
    its own."""
    if (state / FOLDER).exists():
        with contextlib.suppress(Busy), work_folder(state, 0):
            pass


# -- thread locks ------------------------------------------------------------------------------------------
# One thread at a time in the methods of an object that several threads share.


class HasLock(Protocol):
    """An object with a lock that its methods hold; hold it to make several calls atomic."""

    lock: RLock


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=HasLock)


def synchronized(work: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """The method, run by one thread at a time."""

    @wraps(work)
    def done(shared: S, /, *args: P.args, **named: P.kwargs) -> R:
        with shared.lock:
            return work(shared, *args, **named)

    return done
