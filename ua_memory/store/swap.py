"""Replacing a file that a person may be saving at the same moment, without losing either side.

The new and the old file are exchanged in one system call, and the old bytes are read afterwards: if they are
not what was expected, they are a person's save, which the caller merges. To compare first and then rename
loses one save in two hundred (docs/decisions/0002).
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
from ua_memory.paths import sync_path
from ua_memory.store.files import read

TEMP_PREFIX, SWAP_PREFIX = ".ua-fresh-", ".ua-out-"
"""Prefixes of files beside the target. TEMP is incomplete and may be deleted. SWAP is complete; after the
exchange it has the old content, perhaps the only copy of a person's save."""
MOVED_SUFFIX = ".moved-"
"""Suffix of an old file that was moved aside, on file systems without an exchange."""

_AT_FDCWD, _EXCHANGE = -100, 2


def write_new(
    file: Path, data: bytes, like: os.stat_result | None = None, *, mode: int = 0o666, durably: bool = True
) -> None:
    """Create a file and fsync it, with the mode and owner of `like`, the `stat` of the file it replaces.

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


def replace_file(file: Path, data: bytes, fresh: Path, *, mode: int = 0o600, durably: bool = True) -> None:
    """Replace a file of ours atomically, through the temporary file `fresh`; fsynced if `durably`.
    OSError."""
    fresh.unlink(missing_ok=True)
    write_new(fresh, data, mode=mode, durably=durably)
    fresh.replace(file)
    if durably:
        sync_path(file.parent)


def stage(file: Path, data: bytes, out: Path) -> None:
    """Write the new content of `file` next to it as `out`, fsynced (step W4)."""
    with writing(file):
        _make_folder(file.parent)
        like = None  # no file, or an editor is renaming it
        with contextlib.suppress(FileNotFoundError):
            like = file.stat()
        fresh = out.with_name(f"{TEMP_PREFIX}{out.name.removeprefix(SWAP_PREFIX)}-{secrets.token_hex(3)}")
        try:
            write_new(fresh, data, like)
            fresh.rename(out)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink()
            raise


def swap_in(file: Path, out: Path) -> None:
    """Exchange `out` and `file` (step W5). Without an old `file`, both names are the new one afterwards;
    without `out`, the file is renamed to it."""
    with writing(file):
        if file.is_dir():
            raise IsADirectoryError(errno.EISDIR, "is a folder", str(file))
        if not out.exists():
            with contextlib.suppress(FileNotFoundError):
                file.rename(out)
        else:
            _swap(out, file)


def sync_swapped(folder: Path) -> None:
    """Make the renames of `swap_in` in a folder durable."""
    with writing(folder):
        if folder.exists():
            sync_path(folder)


def swapped_out(file: Path, out: Path) -> bytes | None:
    """The bytes that `swap_in` replaced: None if there was no file."""
    return None if same_file(out, file) else read(out)


def same_file(one: Path, other: Path) -> bool:
    """Whether two names are one file; False if either is missing."""
    try:
        return one.samefile(other)
    except FileNotFoundError:
        return False


def list_names(folder: Path, *prefixes: str) -> list[str]:
    """The names in a folder that begin with one of these, sorted; none without a folder."""
    with writing(folder):
        try:
            return sorted(name for name in os.listdir(folder) if name.startswith(prefixes))  # noqa: PTH208
        except (FileNotFoundError, NotADirectoryError):
            return []


def list_files(folder: Path, *prefixes: str) -> list[Path]:
    """The files of a folder whose names begin with one of these, sorted; none without a folder."""
    return [folder / name for name in list_names(folder, *prefixes)]


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_path(folder.parent)


def _swap(out: Path, file: Path) -> None:
    while True:
        with contextlib.suppress(FileExistsError):
            os.link(out, file)
            return
        with contextlib.suppress(FileNotFoundError):  # a person deleted it between the two calls
            exchange(out, file)
            return


def exchange(one: Path, other: Path) -> None:
    """Exchange two names atomically, or nearly so if the file system has no such call.

    Then the old file is first moved aside, so that no save is overwritten. A save within that gap is moved
    aside too, and is what ends up under the name `one`.
    """
    call = exchange_call()
    if call is not None:
        if call(os.fsencode(one), os.fsencode(other)) == 0:
            return
        code = ctypes.get_errno()
        if code not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
            raise OSError(code, os.strerror(code), str(other))
    for turn in count():
        moved = one.with_name(f"{one.name}{MOVED_SUFFIX}{turn}")
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
