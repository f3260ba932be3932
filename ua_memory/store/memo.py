"""What a look at all files leaves for the next process: `cache/survey-2` and `cache/blobs-2`.

Both may be deleted at any moment, and where they cannot be written the next look does the work again. What is
not the bytes that were written is not read: a flipped bit in it could pass for a change of somebody's.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ua_memory.paths import make_private
from ua_memory.stamps import sealed, unsealed
from ua_memory.store import proof

SURVEY, BLOBS = "survey-2", "blobs-2"
"""An earlier version that still runs beside this one reads what it finds, and knows of no sum before it."""


@dataclass(slots=True)
class Seen:
    """The remembered verdicts and what they hold for: the names and stamp of all files, the trail's head."""

    names: list[bytes] = field(default_factory=list)
    stamp: str = ""
    head: str = ""
    few: int = -1
    changed: dict[str, int] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)

    def holds(self, head: str, few: int) -> bool:
        """Whether these are the verdicts with that head of the trail and that setting."""
        return (self.head, self.few) == (head, few)


Blob = tuple[int, int, int, int, str]
"""Size, times, inode and blob id of a file as it was last read."""
Blobs = dict[str, Blob]
"""{path: that}."""


def seen(cache: Path) -> Seen:
    """The verdicts of the last look; empty ones where there are none."""
    raw = _recalled(cache / SURVEY)
    return Seen(*raw) if isinstance(raw, list) and len(raw) == len(Seen.__slots__) else Seen()


def keep_seen(cache: Path, found: Seen) -> None:
    _keep(cache, SURVEY, [getattr(found, name) for name in Seen.__slots__])


def blobs(cache: Path) -> Blobs:
    """What each file was when it was read last, of those that cannot have changed unseen since."""
    return _recalled(cache / BLOBS) or {}


def keep_blobs(cache: Path, found: Blobs) -> None:
    _keep(cache, BLOBS, found)


def now(cache: Path) -> int:
    """The clock of the file system that the state lies on, in ns since the epoch."""
    try:
        _make(cache)
        return proof.filesystem_now(cache)
    except OSError:
        return time.time_ns()  # a folder we cannot write to: its files' clock cannot be asked


def _recalled(file: Path) -> Any:
    try:
        return marshal.loads(unsealed(file.read_bytes()))
    except (OSError, ValueError, EOFError, TypeError):
        return None


def _keep(cache: Path, name: str, what: Any) -> None:
    with contextlib.suppress(OSError):
        _make(cache)
        fresh = cache / f"{name}.{os.getpid()}-{threading.get_ident()}.fresh"
        fresh.touch(mode=0o600)
        fresh.write_bytes(sealed(marshal.dumps(what)))
        fresh.replace(cache / name)


def _make(cache: Path) -> None:
    # `parents` would make the state folder with the mode of any other.
    make_private(cache.parent)
    cache.mkdir(exist_ok=True, mode=0o700)
