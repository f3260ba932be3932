"""The one writer lock of a bank: an advisory lock on a file, which the system gives back when we die."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

from ua_memory.errors import Busy
from ua_memory.store.swap import refused


@contextlib.contextmanager
def locked(file: Path, seconds: float) -> Iterator[None]:
    """Hold the lock, waited for up to `seconds`. Busy names who holds it; CannotWrite."""
    try:
        fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        refused(error, file)
    try:
        deadline = time.monotonic() + seconds
        while not _try(fd, file):
            if time.monotonic() > deadline:
                holder = os.pread(fd, 20, 0).decode(errors="replace").strip() or "unknown"
                raise Busy("another process is writing", where=f"process {holder}", mend="try again")
            time.sleep(random.uniform(0.001, 0.02))
        _sign(fd)
        yield
    finally:
        os.close(fd)


def _try(fd: int, file: Path) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # a file system without locks: two writers at once must not be
        refused(error, file, "move the bank to a file system that has locks")
    return True


def _sign(fd: int) -> None:
    # For the message of who waits; a full disk must not be found out here.
    with contextlib.suppress(OSError):
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)
