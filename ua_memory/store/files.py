"""Reading a file that an editor may be writing, and listing the memory files with their `stat`."""

from __future__ import annotations

import codecs
import contextlib
import errno
import fcntl
import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import BinaryIO

from ua_memory import discovery
from ua_memory.discovery import CORE_NAMES, LOGS, SETTINGS
from ua_memory.errors import CannotWrite, Malformed, TooLarge
from ua_memory.text.patterns import late

# -- reading -----------------------------------------------------------------------------------------------
# On Linux a lease shows whether a process has a file open for writing. Elsewhere (macOS, network file
# systems, other people's files) there is only the time of the last change.


MAX_FILE = 64 * 1024 * 1024
"""Bytes. A larger file is not read, and is reported."""
MAX_INDEXED = 16 * 1024 * 1024
"""So many bytes of a file are indexed; with short lines, that takes 1.4 GB of memory."""
QUIET_NS = 2_000_000_000
"""Without leases, a file counts as unused if nobody has written to it for so long."""
UNSEARCHED_MESSAGE = f"the file is larger than {MAX_INDEXED >> 20} MB: the rest is not searched; split it"

_NOT_UTF8 = late(r"[\udc80-\udcff]+")
_F_SETSIG = 10
_WAITS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.5, 0.5, 0.5)
_READ_OPEN_AFTER = 9
"""After so many waits a file that is open for writing is read anyway, unless it is empty: on a busy machine,
an editor may be stopped for long between truncating and writing."""
_MISSING_WAITS = 6
"""So often a missing file is waited for: some editors rename the old file away before they write the new."""


def read(file: Path, *, expected: bool = False) -> bytes | None:
    """A file's bytes, once nobody is writing to it; None if there is none.

    `expected`: the file existed before, so wait for it. CannotWrite if it cannot be read, TooLarge above
    `MAX_FILE`.
    """
    for turn, wait in enumerate((*_WAITS, 0)):
        try:
            # While the lease is held, an editor that opens the file for writing is blocked.
            with discovery.open_regular(file) as handle, _lease(handle.fileno(), "F_RDLCK") as free:
                alone = turn >= _READ_OPEN_AFTER and os.fstat(handle.fileno()).st_size
                if free is not False or alone or turn == len(_WAITS):
                    data = _read_all(handle)
                    break
        except (FileNotFoundError, NotADirectoryError):
            if not expected or turn >= _MISSING_WAITS:
                return None
        except OSError as error:
            chmod, move = f"chmod u+rw {quote(str(file))}", f"mv {quote(str(file))} {quote(f'{file}.old')}"
            hint = {errno.EACCES: chmod, errno.EISDIR: move}.get(error.errno or 0)
            said = f"cannot be read: {error.strerror or error}"
            raise CannotWrite(said, where=str(file), hint=hint) from error
        # An editor that truncates and then writes leaves an empty file for a moment.
        time.sleep(wait)
    if len(data) > MAX_FILE:
        raise TooLarge(f"larger than {MAX_FILE >> 20} MB", where=str(file), hint="split the file")
    return data


def _read_all(handle: BinaryIO) -> bytes:
    """All bytes, at most one more than `MAX_FILE`."""
    size = os.fstat(handle.fileno()).st_size
    data = handle.read(min(size, MAX_FILE) + 1)
    # It may have grown since `fstat`.
    return data + handle.read(MAX_FILE + 1 - len(data)) if size < len(data) <= MAX_FILE else data


def in_utf8(data: bytes) -> bytes:
    """The bytes of a text that others wrote, in UTF-8: UTF-16 is known by its mark, and what is neither was
    saved by an old program of Windows."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace").encode()
    text = data.decode("utf-8", "surrogateescape")
    return _NOT_UTF8.sub(lambda m: os.fsencode(m[0]).decode("cp1252", "replace"), text).encode()


def searchable_part(data: bytes) -> tuple[bytes, int]:
    """(the whole lines of a file up to `MAX_INDEXED`, the number of the first line after them or 0)."""
    if len(data) <= MAX_INDEXED:
        return data, 0
    begun = data[: data.rfind(b"\n", 0, MAX_INDEXED) + 1]
    return begun, begun.count(b"\n") + 1


def is_half_written(file: Path, data: bytes) -> bool:
    """Whether a file is being written, or no longer has these bytes."""
    try:
        with discovery.open_regular(file) as handle, _lease(handle.fileno(), "F_RDLCK") as free:
            return free is False or _read_all(handle) != data
    except OSError:
        return False


def is_unused(file: Path) -> bool:
    """Whether no process has the file open, so that nothing can be written to it any more."""
    try:
        with file.open("rb+") as handle, _lease(handle.fileno(), "F_WRLCK") as free:
            if free is not None:
                return free
        # This clock is compared with the file's time only; no time in a memory comes from it.
        return time.time_ns() - file.stat().st_mtime_ns > QUIET_NS
    except OSError:
        return True


@contextlib.contextmanager
def _lease(fd: int, kind: str) -> Iterator[bool | None]:
    """Hold a lease. Yields whether it was granted (False: the file is open elsewhere); None if
    unsupported."""
    if not hasattr(fcntl, "F_SETLEASE"):
        yield None
        return
    try:
        # The kernel sends a signal when it breaks a lease; SIGURG is ignored by default.
        fcntl.fcntl(fd, _F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, getattr(fcntl, kind))
    except OSError as error:
        yield False if error.errno == errno.EAGAIN else None
        return
    try:
        yield True
    finally:
        with contextlib.suppress(OSError):  # the kernel has revoked it after a while
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)


# -- stat --------------------------------------------------------------------------------------------------
# One digest over the `stat` of all files and folders shows whether anything has changed.
#
# A folder's time changes when a name in it is added or removed, so names need not be listed again. A file
# that changed less than 50 ms before its `stat` may change again with the same time stamp (as git's "racy"
# files).


RACY_NS = 50_000_000


@dataclass(frozen=True, slots=True)
class FileStat:
    """The `stat` of a memory file. A held file has no times, and its blob id as the inode."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @property
    def changed_ns(self) -> int:
        return max(self.mtime_ns, self.ctime_ns)


def list_names(root: Path) -> list[bytes]:
    """The names of all memory files and folders, relative to the root; the top ones even if they are
    missing. Malformed if a file lies where the folder should."""
    # The "./" distinguishes files at the top from those in folders.
    names = [b"./" + os.fsencode(name) for name in (*CORE_NAMES, SETTINGS)]
    top = root / LOGS
    names.append(os.fsencode(LOGS))
    if top.is_dir() and not top.is_symlink():
        with contextlib.suppress(PermissionError):
            names += _list_below(os.fsencode(top), os.fsencode(LOGS))
    elif top.is_file() and not top.is_symlink():
        mend = f"mv {quote(str(top))} {quote(f'{top}.old')} && mkdir {quote(str(top))}"
        raise Malformed("a file, where the folder of the facts should be", where=str(top), hint=mend)
    return names


def unreadable_folders(root: Path, folders: Iterable[bytes]) -> set[str]:
    """The folders that cannot be read or entered: their files are not deleted, only invisible."""
    found = set()
    for name in folders:
        folder = os.fsencode(root) + b"/" + name
        try:
            os.scandir(folder).close()
            os.lstat(folder + b"/.")  # permission to list names is not enough
        except PermissionError:
            found.add(os.fsdecode(name))
        except OSError:  # gone since
            continue
    return found


def is_settled(rows: Sequence[discovery.Row], began_ns: int) -> bool:
    """Whether nothing changed later than 50 ms before a scan began, by the file system's clock."""
    return all(row is None or max(row[2], row[3]) < began_ns - RACY_NS for row in rows)


def _list_below(folder: bytes, prefix: bytes) -> list[bytes]:
    found: list[bytes] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(b"."):
                continue
            if entry.is_dir(follow_symlinks=False):
                found.append(prefix + b"/" + entry.name)
                # Removed meanwhile, or without permission: see `unreadable_folders`.
                with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                    found += _list_below(entry.path, prefix + b"/" + entry.name)
            elif entry.name.endswith(b".md"):
                found.append(prefix + b"/" + entry.name)
    return found
