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
# The writer lock of a bank: an advisory lock (`flock`) on a file, which the kernel releases if we die.
#
# Waiting processes are in the kernel's queue, first come, first served. Polling took a third of two cores
# with 64 waiting processes, and the next one was chosen by chance.


POLL_SECONDS = 0.5
"""A waiting process also polls at this interval: not every file system has a reliable queue, and no thread
may be available to wait in it."""


@contextlib.contextmanager
def locked(
    file: Path, seconds: float, what: str = "another process is writing", hint: str = "try again"
) -> Iterator[None]:
    """Hold the lock, waiting up to `seconds`. Busy says `what` its holder does; CannotWrite."""
    with contextlib.ExitStack() as opened:
        fd = _open(file)
        opened.callback(os.close, fd)
        held = _try_lock(fd, file)
        if not held and seconds:  # else the queue would give us the lock later, and keep others out meanwhile
            queued = _QueuedLock(_open(file))
            opened.callback(queued.release)
            held = _wait_for_lock(queued, fd, file, time.monotonic() + seconds)
        if not held:
            holder = os.pread(fd, 20, 0).decode(errors="replace").strip() or "unknown"
            raise Busy(what, where=f"process {holder}", hint=hint)
        _write_pid(fd)
        yield


class _QueuedLock:
    """A place in the kernel's queue. `flock` has no timeout, so a thread waits."""

    def __init__(self, fd: int) -> None:
        self._fd, self._left, self._over = fd, False, False
        self._came, self._one_at_a_time = threading.Event(), threading.Lock()
        self._held = False
        try:
            threading.Thread(target=self._acquire, name="waits for the lock", daemon=True).start()
        except RuntimeError:  # no thread available: polling has to do
            self._over = True

    def _acquire(self) -> None:
        with contextlib.suppress(OSError):
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            self._held = True
        with self._one_at_a_time:
            self._over = True
            if self._left:  # nobody wants it any more
                os.close(self._fd)
        if self._held:
            self._came.set()

    def wait(self, seconds: float) -> bool:
        """Whether the lock was acquired within so many seconds."""
        return self._came.wait(seconds)

    def release(self) -> None:
        """Release the lock; if it is not acquired yet, as soon as it is."""
        with self._one_at_a_time:
            self._left = True
            if self._over:
                os.close(self._fd)


def _wait_for_lock(queued: _QueuedLock, fd: int, file: Path, deadline: float) -> bool:
    while True:
        left = deadline - time.monotonic()
        if queued.wait(max(0.0, min(left, random.uniform(0.5, 1) * POLL_SECONDS))) or _try_lock(fd, file):
            return True
        if time.monotonic() > deadline:
            return False


def _open(file: Path) -> int:
    with writing(file):
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try_lock(fd: int, file: Path) -> bool:
    with writing(file, "move the bank to a file system that supports locks"):  # there may be none
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _write_pid(fd: int) -> None:
    # For the error message of others. It is optional, so a full disk must not fail here.
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)


# -- work folder -------------------------------------------------------------------------------------------
# A folder for packing and unpacking archives: one process at a time uses it, and leftovers are removed first.


WORK_FOLDER = "archive"


@contextlib.contextmanager
def work_folder(state: Path, seconds: float) -> Iterator[Path]:
    """An empty private folder that exists within the block. Busy after so many seconds."""
    with locked(state / f"{WORK_FOLDER}.lock", seconds):
        folder = state / WORK_FOLDER
        shutil.rmtree(folder, ignore_errors=True)
        with writing(folder):
            folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_work_folder(state: Path) -> None:
    """Remove the folder of a killed process, which may contain the whole history."""
    if (state / WORK_FOLDER).exists():
        with contextlib.suppress(Busy), work_folder(state, 0):
            pass


# -- thread locks ------------------------------------------------------------------------------------------


class HasLock(Protocol):
    """An object whose `synchronized` methods hold its lock; hold it yourself to make several calls atomic."""

    lock: RLock


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=HasLock)


def synchronized(work: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Decorate a method to be run by one thread at a time."""

    @wraps(work)
    def locked_call(shared: S, /, *args: P.args, **named: P.kwargs) -> R:
        with shared.lock:
            return work(shared, *args, **named)

    return locked_call
