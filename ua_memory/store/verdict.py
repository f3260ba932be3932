"""The files held against the trail: which differ from it, since when, and which are held back."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ua_memory.errors import CannotWrite, TooLarge
from ua_memory.history import History, blob_id
from ua_memory.paths import SETTINGS, Bank, is_truth
from ua_memory.store import memo, proof, saves
from ua_memory.store.memo import Blob, Blobs
from ua_memory.store.proof import FileStat
from ua_memory.store.reading import MAX_FILE, read
from ua_memory.store.saves import Edit


def blobs_of(bank: Bank, files: Sequence[FileStat]) -> tuple[Blobs, set[str]]:
    """The blob id of every file, read only where its stat is new, and the paths that could not be read."""
    before = memo.blobs(bank.cache)
    blobs: Blobs = {}
    unread: set[str] = set()
    horizon = time.time_ns() - proof.RACY_NS
    for f in files:
        known = before.get(f.path)
        if known and known[:4] == (f.size, f.mtime_ns, f.ctime_ns, f.inode) and f.changed_ns < horizon:
            blobs[f.path] = known
        elif (row := blob_of(bank.root, f)) is not None:
            # Read within its own time stamp it may change again unseen: remembered so that it is read again.
            blobs[f.path] = row
        else:
            unread.add(f.path)
    if blobs != before:
        memo.keep_blobs(bank.cache, {p: row for p, row in blobs.items() if max(row[1], row[2]) < horizon})
    return blobs, unread


def blob_of(root: Path, f: FileStat) -> Blob | None:
    """A file's row in `Blobs`; None where it cannot be read, which must not keep all others from being
    seen."""
    with contextlib.suppress(CannotWrite, TooLarge):
        data = read(root / f.path) if f.size <= MAX_FILE else None
        if data is not None:
            return f.size, f.mtime_ns, f.ctime_ns, f.inode, blob_id(data)
    return None


def differing(root: Path, paths: Iterable[str], blobs: Blobs, trail: Mapping[str, str]) -> dict[str, int]:
    """Which of these paths differ from the trail, and when they were changed."""
    changed: dict[str, int] = {}
    for path in paths:
        row = blobs.get(path)
        if row is None:
            if path in trail and is_truth(path):
                changed[path] = _folder_time(root / path)
        elif row[4] != trail.get(path):
            changed[path] = max(row[1], row[2])
    return changed


def held_back(
    bank: Bank,
    history: History,
    changed: Mapping[str, int],
    mine: Mapping[str, str],
    few: int,
    owed: Mapping[str, bytes | None],
) -> dict[str, str]:
    """{path: the trail's blob id} of the changed files whose records disappeared all at once."""
    words = {path for path in changed if path != SETTINGS}
    if not words & mine.keys():
        return {}
    had = contents(history, [mine[path] for path in words & mine.keys() - owed.keys()])
    found = {}
    for path in words:
        trail = owed[path] if path in owed else had[mine[path]] if path in mine else None
        found[path] = Edit(path, trail, _at(bank.root / path))
    held = {path for path in saves.held(found, few) if path in mine}
    held = {path for path in held if not saves.stale(found[path], saves.Past(path, history, None))}
    if held and SETTINGS in changed and SETTINGS in mine and not (bank.root / SETTINGS).exists():
        held.add(SETTINGS)  # went with them
    return {path: mine[path] for path in held if path not in owed}


def contents(history: History, names: Sequence[str]) -> dict[str, bytes]:
    """{blob id: what git keeps under it}, by one process for all: one for each takes 2 ms. GitFailed where
    something is missing."""
    found = zip(names, history.read_all([(name, "") for name in names]) if names else (), strict=True)
    return {name: history.blob(name) if data is None else data for name, data in found}


def _at(file: Path) -> bytes | None:
    return None if file.is_symlink() else read(file)


def _folder_time(file: Path) -> int:
    for folder in file.parents:
        with contextlib.suppress(FileNotFoundError):
            return folder.stat().st_mtime_ns
    return 0
