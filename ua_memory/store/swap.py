"""Replacing a file that a person may be saving at the same moment, without losing either side.

The new bytes and the old file change places in one step, and what comes out is looked at: if it is
not what was compared before, it is a person's save, and the caller merges it. Comparing first and
renaming then loses one save in two hundred; comparing earlier loses one in six (docs/decisions/0002).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ua_memory.errors import CannotWrite

FRESH, OUT = ".ua-fresh-", ".ua-out-"
"""Names beside the target. FRESH is being written and may be thrown away; OUT is complete, and after the
exchange holds what was there before, perhaps the only copy of a person's save."""

_AT_FDCWD, _EXCHANGE, _F_SETSIG = -100, 2, 10


def read(file: Path) -> bytes | None:
    """A file's bytes once nobody is in the midst of writing it; None where there is none."""
    for wait in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3):
        try:
            with file.open("rb") as handle:
                if not being_written(handle.fileno()):
                    return handle.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        # An editor that truncates and writes leaves an empty file for a moment: that is no deletion.
        time.sleep(wait)
    with contextlib.suppress(FileNotFoundError):
        return file.read_bytes()
    return None


def being_written(fd: int) -> bool:
    """Whether another process has the file open for writing, asked by a read lease held for an instant.

    Where there are no leases (macOS, network file systems) the answer is no, and the exchange alone guards.
    """
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    try:
        # A broken lease is announced by a signal; SIGURG is the one that is ignored by default.
        fcntl.fcntl(fd, _F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    return False


def abandoned(file: Path) -> bool:
    """Whether nobody has the file open any more, so that nothing can still be written to it."""
    if not hasattr(fcntl, "F_SETLEASE"):
        return True
    try:
        with file.open("rb+") as handle:
            fcntl.fcntl(handle.fileno(), _F_SETSIG, signal.SIGURG)
            fcntl.fcntl(handle.fileno(), fcntl.F_SETLEASE, fcntl.F_WRLCK)
            fcntl.fcntl(handle.fileno(), fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno != errno.EAGAIN
    return True


def write_durably(file: Path, data: bytes, mode: int = 0o600) -> None:
    """A whole new file, fsynced. The folder is not: the caller does that once for all of its files."""
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(fd, "wb", closefd=False) as handle:
            handle.write(data)
        os.fchmod(fd, mode)
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def out_name(file: Path, key: str) -> Path:
    return file.with_name(f"{OUT}{key}-{file.name}")


def put(file: Path, data: bytes | None, key: str) -> bytes | None:
    """Put `data` (None: nothing) in the place of `file` and return what was there (None: nothing).

    What was there stays beside it under `out_name(file, key)` until the caller removes it, so that a
    crash right after can still find a person's save in it. CannotWrite where the file system refuses.
    """
    out = out_name(file, key)
    try:
        if data is None:
            with contextlib.suppress(FileNotFoundError):
                file.rename(out)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
            fresh = file.with_name(f"{FRESH}{key}-{secrets.token_hex(3)}")
            write_durably(fresh, data, mode)
            fresh.rename(out)
            _enter(out, file)
        if file.parent.exists():
            sync_folder(file.parent)
    except OSError as error:
        raise CannotWrite(error.strerror or str(error), where=str(file), mend="ua-memory doctor") from error
    came = read(out)
    return None if data is not None and came is not None and _same_file(out, file) else came


def _enter(out: Path, file: Path) -> None:
    """`out` and `file` change places; where there was no `file`, both names stand for the new one."""
    while True:
        try:
            os.link(out, file)
            return
        except FileExistsError:
            pass
        try:
            exchange(out, file)
            return
        except FileNotFoundError:  # a person deleted it between the two calls
            continue


def _same_file(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except FileNotFoundError:
        return False


def _exchange_call() -> Callable[[bytes, bytes], int] | None:
    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin":
        swap = getattr(libc, "renamex_np", None)
        return swap and (lambda a, b: int(swap(a, b, _EXCHANGE)))
    rename = getattr(libc, "renameat2", None)
    return rename and (lambda a, b: int(rename(_AT_FDCWD, a, _AT_FDCWD, b, _EXCHANGE)))


def exchange(one: Path, other: Path) -> None:
    """Let two files change names in one step, or as nearly so as the file system can.

    Without an exchange, the old file is first moved aside whole, so that no save made meanwhile is overwritten.
    """
    call = _exchange_call()
    if call is not None:
        if call(os.fsencode(one), os.fsencode(other)) == 0:
            return
        code = ctypes.get_errno()
        if code not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
            raise OSError(code, os.strerror(code), str(other))
    aside = one.with_name(one.name + ".aside")
    other.rename(aside)
    try:
        os.link(one, other)
    except (
        FileExistsError
    ):  # saved again within the gap: the newer save goes aside too, and is what comes out
        other.rename(aside)
        os.link(one, other)
    one.unlink()
    aside.rename(one)
