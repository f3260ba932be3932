"""The cheap proof that no file has changed: one digest over a `stat` of each, and of each folder with them.

A folder's time changes when a name in it comes or goes, so the names need not be listed again. A file or
folder that changed within 50 ms of being looked at may change again under the same time stamp; while there
is such a one, nothing is proven.
"""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import os
from collections.abc import Sequence
from pathlib import Path

from ua_memory.history import filesystem_now
from ua_memory.paths import CORE_NAMES, LOGS, SETTINGS

__all__ = ["RACY_NS", "filesystem_now", "listing", "settled", "stamp"]

RACY_NS = 50_000_000


def listing(root: Path) -> list[bytes]:
    """Every folder and file of a bank's truth, as bytes below its root; those that may come, too."""
    # With "./" a name at the top cannot be mistaken for one below.
    names = [b"./" + os.fsencode(name) for name in (*CORE_NAMES, SETTINGS)]
    top = root / LOGS
    names.append(os.fsencode(LOGS))
    if top.is_dir() and not top.is_symlink():
        names += _below(os.fsencode(top), os.fsencode(LOGS))
    return names


def stamp(root: Path, names: Sequence[bytes]) -> str:
    """The digest of the named files as `lstat` sees them now."""
    base, lstat = os.fsencode(root) + b"/", os.lstat
    rows: list[tuple[int, int, int, int, int] | None] = []
    for name in names:
        try:
            s = lstat(base + name)
        except OSError:
            rows.append(None)
        else:
            rows.append((s.st_mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino))
    return hashlib.blake2b(marshal.dumps(rows, 1), digest_size=16).hexdigest()


def settled(root: Path, names: Sequence[bytes], now_ns: int) -> bool:
    """Whether nothing named changed within 50 ms before `now_ns`, by the file system's own clock."""
    base = os.fsencode(root) + b"/"
    for name in names:
        try:
            found = os.lstat(base + name)
        except OSError:
            continue
        if max(found.st_mtime_ns, found.st_ctime_ns) >= now_ns - RACY_NS:
            return False
    return True


def _below(folder: bytes, prefix: bytes) -> list[bytes]:
    found: list[bytes] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(b"."):
                continue
            if entry.is_dir(follow_symlinks=False):
                found.append(prefix + b"/" + entry.name)
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # removed since
                    found += _below(entry.path, prefix + b"/" + entry.name)
            elif entry.name.endswith(b".md"):
                found.append(prefix + b"/" + entry.name)
    return found
