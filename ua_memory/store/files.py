"""Reading a file that an editor may have half written, and the digest that tells that no file changed."""

from __future__ import annotations

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
from ua_memory.errors import CannotWrite, TooLarge

# -- reading -----------------------------------------------------------------------------------------------
# Reading a file that a person's editor may have half written.
#
# On Linux a lease tells whether somebody has a file open for writing. Where there are none (macOS, network
# file systems, other people's files) what is left is the age of the last change.


MAX_FILE = 64 * 1024 * 1024
"""Bytes. A larger file stays as it is, unread, and is named."""
MAX_INDEXED = 16 * 1024 * 1024
"""Bytes of a file that are searched; of small lines they take 1.4 GB while they are read."""
STILL_NS = 2_000_000_000
"""Without leases, an exchanged-away file that was written to so recently may be written to again."""
UNSEARCHED = f"the file is larger than {MAX_INDEXED >> 20} MB: the rest is not searched; split it"

_F_SETSIG = 10
_WAITS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.5, 0.5, 0.5)
_EMPTY_ALONE = 9
"""After so many of the waits a file that somebody has open for writing is read as it stands, unless it is
empty: between truncating and writing, a busy machine may keep an editor waiting for long."""
_BETWEEN_NAMES = 6
"""So many of the waits are given to a file that is missing: an editor that renames the old one away
and then writes the new one leaves none for a moment."""


def read(file: Path, *, expected: bool = False) -> bytes | None:
    """A file's bytes once nobody is in the midst of writing it; None where there is none.

    `expected` tells that it was there before. CannotWrite where the file system refuses to read it,
    TooLarge beyond `MAX_FILE`.
    """
    for turn, wait in enumerate((*_WAITS, 0)):
        try:
            # The lease is held while it is read: who opens the file to shorten and write it waits so long.
            with discovery.open_regular(file) as handle, _lease(handle.fileno(), "F_RDLCK") as free:
                alone = turn >= _EMPTY_ALONE and os.fstat(handle.fileno()).st_size
                if free is not False or alone or turn == len(_WAITS):
                    data = _whole(handle)
                    break
        except (FileNotFoundError, NotADirectoryError):
            if not expected or turn >= _BETWEEN_NAMES:
                return None
        except OSError as error:
            hint = f"chmod u+rw {quote(str(file))}" if error.errno == errno.EACCES else None
            said = f"cannot be read: {error.strerror or error}"
            raise CannotWrite(said, where=str(file), hint=hint) from error
        # An editor that truncates and writes leaves an empty file for a moment: that is no deletion.
        time.sleep(wait)
    if len(data) > MAX_FILE:
        raise TooLarge(f"larger than {MAX_FILE >> 20} MB", where=str(file), hint="split the file")
    return data


def _whole(handle: BinaryIO) -> bytes:
    """What there is to read, up to a byte beyond `MAX_FILE`; room is taken for no more than that."""
    size = os.fstat(handle.fileno()).st_size
    data = handle.read(min(size, MAX_FILE) + 1)
    # It was appended to since it was measured.
    return data + handle.read(MAX_FILE + 1 - len(data)) if size < len(data) <= MAX_FILE else data


def searched(data: bytes) -> tuple[bytes, int]:
    """What is searched of a file, its whole lines up to `MAX_INDEXED`, and the line on which the rest begins,
    0 where there is none."""
    if len(data) <= MAX_INDEXED:
        return data, 0
    begun = data[: data.rfind(b"\n", 0, MAX_INDEXED) + 1]
    return begun, begun.count(b"\n") + 1


def is_half_written(file: Path, data: bytes) -> bool:
    """Whether a file is not as it was read: somebody is writing it, or has since."""
    try:
        with discovery.open_regular(file) as handle, _lease(handle.fileno(), "F_RDLCK") as free:
            return free is False or _whole(handle) != data
    except OSError:
        return False


def abandoned(file: Path) -> bool:
    """Whether nobody has the file open any more, so that nothing can still be written to it."""
    try:
        with file.open("rb+") as handle, _lease(handle.fileno(), "F_WRLCK") as free:
            if free is not None:
                return free
        # Compared with the stamp of the file alone: no time of a memory comes from this clock.
        return time.time_ns() - file.stat().st_mtime_ns > STILL_NS
    except OSError:
        return True


@contextlib.contextmanager
def _lease(fd: int, kind: str) -> Iterator[bool | None]:
    """Hold a lease; whether it could be had, which nobody's open file forbids; None where there are none."""
    if not hasattr(fcntl, "F_SETLEASE"):
        yield None
        return
    try:
        # A broken lease is announced by a signal; SIGURG is the one that is ignored by default.
        fcntl.fcntl(fd, _F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, getattr(fcntl, kind))
    except OSError as error:
        yield False if error.errno == errno.EAGAIN else None
        return
    try:
        yield True
    finally:
        with contextlib.suppress(OSError):  # the kernel took it away from who kept it too long
            fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)


# -- proof -------------------------------------------------------------------------------------------------
# The cheap proof that no file has changed: one digest over a `stat` of each, and of each folder with them.
#
# A folder's time changes when a name in it comes or goes, so the names need not be listed again. A file or
# folder that changed within 50 ms of being looked at may change again under the same time stamp; while
# there is such a one, nothing is proven.


RACY_NS = 50_000_000


@dataclass(frozen=True, slots=True)
class FileStat:
    """A truth file as `stat` sees it. A held file has no times and its blob id in place of the inode."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @property
    def changed_ns(self) -> int:
        return max(self.mtime_ns, self.ctime_ns)


def listing(root: Path) -> list[bytes]:
    """Every folder and file of a bank's truth, as bytes below its root; those that may come, too."""
    # With "./" a name at the top cannot be mistaken for one below.
    names = [b"./" + os.fsencode(name) for name in (*CORE_NAMES, SETTINGS)]
    top = root / LOGS
    names.append(os.fsencode(LOGS))
    if top.is_dir() and not top.is_symlink():
        with contextlib.suppress(PermissionError):
            names += _below(os.fsencode(top), os.fsencode(LOGS))
    return names


def closed(root: Path, folders: Iterable[bytes]) -> set[str]:
    """Those of a bank's folders that may not be looked into: what lies there is not gone."""
    found = set()
    for name in folders:
        folder = os.fsencode(root) + b"/" + name
        try:
            os.scandir(folder).close()
            os.lstat(folder + b"/.")  # to list names is not enough
        except PermissionError:
            found.add(os.fsdecode(name))
        except OSError:  # gone since
            continue
    return found


def settled(rows: Sequence[discovery.Row], began_ns: int) -> bool:
    """Whether nothing changed later than 50 ms before a look began, the listing of its names included. The
    beginning is by the file system's own clock: its time at the end would let a change during a slow look
    pass for an old one."""
    return all(row is None or max(row[2], row[3]) < began_ns - RACY_NS for row in rows)


def _below(folder: bytes, prefix: bytes) -> list[bytes]:
    found: list[bytes] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(b"."):
                continue
            if entry.is_dir(follow_symlinks=False):
                found.append(prefix + b"/" + entry.name)
                # Removed since, or not ours to look into: `closed` tells.
                with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
                    found += _below(entry.path, prefix + b"/" + entry.name)
            elif entry.name.endswith(b".md"):
                found.append(prefix + b"/" + entry.name)
    return found
