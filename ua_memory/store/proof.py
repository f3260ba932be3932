"""The cheap proof that no file has changed: one digest over a `stat` of each, and of each folder with them.

A folder's time changes when a name in it comes or goes, so the names need not be listed again. A file or
folder that changed within 50 ms of being looked at may change again under the same time stamp; while there
is such a one, nothing is proven.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.history import filesystem_now
from ua_memory.paths import CORE_NAMES, LOGS, SETTINGS
from ua_memory.stamps import look, stamp

if TYPE_CHECKING:
    from ua_memory.stamps import Row

__all__ = ["RACY_NS", "FileStat", "filesystem_now", "listing", "look", "settled", "stamp"]

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


def settled(rows: Sequence[Row], began_ns: int) -> bool:
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
