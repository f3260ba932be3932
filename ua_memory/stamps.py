"""What files are now, by one `lstat` of each, and the digest of that: the same digest, the same files.

It stands by itself since a hook that opens no bank compares it as well as the store that keeps it.
"""

from __future__ import annotations

import os
from _blake2 import blake2b  # hashlib would load OpenSSL first
from marshal import dumps

SUM = 8
"""Bytes of a sum."""

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = tuple[int, int, int, int, int] | None
    """Mode, size, times of change and inode of one file or folder; None if it is not there."""


def look(root: str | os.PathLike[str], names: Sequence[bytes]) -> list[Row]:
    """Each of the named, below the root, as `lstat` sees it now."""
    base, lstat = os.fsencode(root) + b"/", os.lstat
    rows: list[Row] = []
    for name in names:
        try:
            s = lstat(base + name)
        except OSError:
            rows.append(None)
        else:
            rows.append((s.st_mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino))
    return rows


def stamp(rows: list[Row]) -> str:
    """The digest of a look."""
    return blake2b(dumps(rows, 1), digest_size=16).hexdigest()


def masks(patterns: Mapping[str, str]) -> str:
    """The name of what a bank's own patterns take out of its index; '' where it has none."""
    return blake2b(repr(sorted(patterns.items())).encode(), digest_size=8).hexdigest() if patterns else ""


def sealed(data: bytes) -> bytes:
    """Data with a sum of it before."""
    return blake2b(data, digest_size=SUM).digest() + data


def unsealed(data: bytes) -> bytes:
    """What was sealed. ValueError where it is not as it was."""
    if sealed(data[SUM:]) != data:
        raise ValueError("not what was written")
    return data[SUM:]
