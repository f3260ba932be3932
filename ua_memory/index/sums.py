"""What Chroma's files were when they were closed, so that a byte which changed since is found.

Nothing of Chroma's own tells that a number within its graph is another. So whoever closes it notes a sum of
each file, as the last thing while the lock is still theirs, and whoever opens it takes the note away before
a byte can change. A note that stands is therefore of files at rest: while somebody has them open, and after
a kill, there is none, and nothing is said of them. A file that was only read is not read again for its sum.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from zlib import crc32

from ua_memory.index.mark import write_mark
from ua_memory.store.proof import RACY_NS

PORTION = 1 << 20
"""Bytes read at a time."""

Sums = Mapping[str, list[int]]
"""{name below the generation: a file's size, times and inode, and last the sum of its bytes}."""


def note_of(folder: Path) -> Path:
    """Where the sums of a Chroma folder are noted."""
    return folder.with_name(f"{folder.name}.sums")


def take(folder: Path) -> Sums:
    """Take the note away, so that no power cut brings it back, and give what it said of files that nobody
    can have written since under the same time. OSError where it cannot be taken away."""
    file = note_of(folder)
    try:
        known, written = _read(file), file.stat().st_mtime_ns
        file.unlink()
    except FileNotFoundError:
        return {}
    fd = os.open(file.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # some file systems have nothing to say of folders
            os.fsync(fd)
    finally:
        os.close(fd)
    return {name: row for name, row in (known or {}).items() if max(row[1:3]) < written - RACY_NS}


def note(folder: Path, before: Sums) -> None:
    """Note the files of a Chroma folder, closed by the holder of its lock. Those that are what they were
    `before` are not read. Where it cannot be written there is none."""
    with contextlib.suppress(OSError):
        found: dict[str, list[int]] = {}
        for name, file in _files(folder):
            stat = file.stat()
            stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]
            was = before.get(name, [])
            found[name] = was if was[:-1] == stamp else [*stamp, _sum(file)]
        write_mark(note_of(folder), {"sum": _sealed(found), "files": found})


def changed(folder: Path) -> tuple[str, ...] | None:
    """The files that are not what was noted, by their names below the generation; None where there is no
    note, or no longer the same."""
    file = note_of(folder)
    try:
        with file.open("rb") as held:  # its inode is given to no other file while it is open
            known, stamp = _read(file), os.fstat(held.fileno())
            if known is None:
                return (file.name,)
            wrong = [name for name, row in known.items() if _lost(folder.parent / name, row[-1])]
            there = file.stat()
    except OSError:
        return None
    return tuple(wrong) if (there.st_dev, there.st_ino) == (stamp.st_dev, stamp.st_ino) else None


def _read(file: Path) -> dict[str, list[int]] | None:
    """What a note says, None where it is damaged. OSError."""
    try:
        said = json.loads(file.read_bytes())
        found = {str(name): [int(number) for number in row] for name, row in said["files"].items()}
        whole = said["sum"] == _sealed(found) and all(len(row) == 5 for row in found.values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return found if whole else None


def _sealed(found: Sums) -> int:
    return crc32(json.dumps(found, sort_keys=True).encode())


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for file in (folder.with_name(f"{folder.name}.json"), *folder.rglob("*")):
        if file.is_file():
            yield str(file.relative_to(folder.parent)), file


def _lost(file: Path, noted: int) -> bool:
    try:
        return _sum(file) != noted
    except FileNotFoundError:
        return True


def _sum(file: Path) -> int:
    found = 0
    with file.open("rb") as data:
        while portion := data.read(PORTION):
            found = crc32(portion, found)
    return found
