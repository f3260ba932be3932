"""Replacing a file that a person may be saving at the same moment, without losing either side.

The new bytes and the old file change places in one step, and what comes out is looked at: if it is
not what was compared before, it is a person's save, and the caller merges it. Comparing first and
renaming then loses one save in two hundred; comparing earlier loses one in six (docs/decisions/0002).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

from ua_memory.errors import writing
from ua_memory.store.files import read

FRESH, OUT = ".ua-fresh-", ".ua-out-"
"""Names beside the target. FRESH is being written and may be thrown away; OUT is complete, and after the
exchange holds what was there before, perhaps the only copy of a person's save."""
MOVED = ".moved-"
"""Behind an OUT name where a file system has no exchange: what was moved aside, until the end of the step."""

_AT_FDCWD, _EXCHANGE = -100, 2


def write(
    file: Path, data: bytes, like: os.stat_result | None = None, *, mode: int = 0o666, durably: bool = True
) -> None:
    """A whole new file, fsynced; with the mode and owner of the file it is to replace, if there is one.

    The folder is not fsynced: the caller does that once for all of its files.
    """
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode if like is None else 0o600)
    try:
        with open(fd, "wb", closefd=False) as handle:
            handle.write(data)
        if like is not None:
            if (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
                with contextlib.suppress(PermissionError):  # only root may give a file to its owner again
                    os.fchown(fd, like.st_uid, like.st_gid)
            os.fchmod(fd, like.st_mode & 0o777)
        if durably:
            os.fsync(fd)
    finally:
        os.close(fd)


def put(file: Path, data: bytes, fresh: Path, *, mode: int = 0o600, durably: bool = True) -> None:
    """A file of ours in place of what was there: whole, and if `durably` on the disk on return. `fresh` is
    its name until then; what a killed process left under that name goes. OSError."""
    fresh.unlink(missing_ok=True)
    write(fresh, data, mode=mode, durably=durably)
    fresh.replace(file)
    if durably:
        sync_folder(file.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable (fsync)."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def stage(file: Path, data: bytes, out: Path) -> None:
    """Write the new content of `file` next to it, whole and fsynced, under the name `out` (step W4)."""
    with writing(file):
        _make_folder(file.parent)
        like = None  # no file, or an editor renames it between two questions
        with contextlib.suppress(FileNotFoundError):
            like = file.stat()
        fresh = out.with_name(f"{FRESH}{out.name.removeprefix(OUT)}-{secrets.token_hex(3)}")
        try:
            write(fresh, data, like)
            fresh.rename(out)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink()
            raise


def swap_in(file: Path, out: Path) -> None:
    """Let `out` and `file` change places (step W5). Where there was no `file`, both names stand for the
    new one afterwards; where there is no `out`, the file goes and becomes it."""
    with writing(file):
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a folder", str(file))
        if not out.exists():
            with contextlib.suppress(FileNotFoundError):
                file.rename(out)
        else:
            _change_places(out, file)


def sync_swapped(folder: Path) -> None:
    """Make what `swap_in` did in a folder durable."""
    with writing(folder):
        if folder.exists():
            sync_folder(folder)


def swapped_out(file: Path, out: Path) -> bytes | None:
    """The bytes that `swap_in` replaced: None if there was no file."""
    return None if same_file(out, file) else read(out)


def same_file(one: Path, other: Path) -> bool:
    """Whether two names are one file; False if either is missing."""
    try:
        return one.samefile(other)
    except FileNotFoundError:
        return False


def beside(folder: Path, *prefixes: str) -> list[Path]:
    """The files in a folder whose names begin with one of these, sorted; none where there is no folder."""
    with writing(folder):
        try:
            return [folder / name for name in sorted(os.listdir(folder)) if name.startswith(prefixes)]  # noqa: PTH208
        except (FileNotFoundError, NotADirectoryError):
            return []


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def _change_places(out: Path, file: Path) -> None:
    while True:
        with contextlib.suppress(FileExistsError):
            os.link(out, file)
            return
        with contextlib.suppress(FileNotFoundError):  # a person deleted it between the two calls
            exchange(out, file)
            return


def exchange(one: Path, other: Path) -> None:
    """Let two files change names in one step, or as nearly so as the file system can.

    Without an exchange, the old file is first moved aside whole, so that no save is overwritten; one that
    comes within that gap is moved aside too and is what comes out, the older stays beside for the caller.
    """
    call = exchange_call()
    if call is not None:
        if call(os.fsencode(one), os.fsencode(other)) == 0:
            return
        code = ctypes.get_errno()
        if code not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
            raise OSError(code, os.strerror(code), str(other))
    for turn in count():
        moved = one.with_name(f"{one.name}{MOVED}{turn}")
        other.rename(moved)
        with contextlib.suppress(FileExistsError):
            os.link(one, other)
            break
    one.unlink()
    moved.rename(one)


def exchange_call() -> Callable[[bytes, bytes], int] | None:
    """The system call that exchanges two names, or None if there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin":
        swap = getattr(libc, "renamex_np", None)
        return swap and (lambda a, b: int(swap(a, b, _EXCHANGE)))
    rename = getattr(libc, "renameat2", None)
    return rename and (lambda a, b: int(rename(_AT_FDCWD, a, _AT_FDCWD, b, _EXCHANGE)))
