"""One look at all truth files: which there are, which differ from the trail, which are held back.

While nothing changes, this is one `stat` a file and the comparison of one digest. What it remembers
(`cache/survey.json`) may be deleted at any moment.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ua_memory.errors import CannotWrite, GitFailed, TooLarge
from ua_memory.history import History, blob_id
from ua_memory.paths import CORE_NAMES, LOGS, SETTINGS, Bank, is_truth
from ua_memory.store import pending, saves
from ua_memory.store.reading import MAX_FILE, read
from ua_memory.store.saves import Edit
from ua_memory.store.swap import refused

RACY_NS = 50_000_000
"""A file that changed so shortly before it was read may change again within the same time stamp."""


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


@dataclass(frozen=True, slots=True)
class Survey:
    """What lies in the bank. `changed` are paths that differ from the trail (gone ones too); `held` is
    {path: the trail's blob id} of those whose facts disappeared all at once; `digest` names the state."""

    files: tuple[FileStat, ...]
    changed: Mapping[str, int]
    held: Mapping[str, str]
    digest: str = ""

    def changed_at(self, path: str) -> int:
        """When a changed path was last changed, in ns since the epoch; if it is gone, its folder."""
        return self.changed.get(path, 0)


@dataclass(slots=True)
class _Seen:
    """The remembered survey: what it holds for, the blob id of each file by its stat, the verdicts."""

    digest: str = ""
    head: str | None = None
    blobs: dict[str, list[Any]] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)
    few: int = -1


def scan(root: Path) -> list[FileStat]:
    """Every truth file on disk, by path. No symbolic links, nothing hidden, no folder that is a link."""
    found: list[FileStat] = []
    try:
        with os.scandir(root) as top:
            for entry in top:
                if entry.name in (*CORE_NAMES, SETTINGS) and entry.is_file(follow_symlinks=False):
                    found += _stat(entry, entry.name)
                elif entry.name == LOGS and entry.is_dir(follow_symlinks=False):
                    found += _below(entry.path, LOGS)
    except OSError as error:
        refused(error, Path(error.filename or root))
    return sorted(found, key=lambda f: f.path)


def _below(folder: str, prefix: str) -> Iterator[FileStat]:
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(".") or not _sayable(name):
                continue
            if name.endswith(".md") and entry.is_file(follow_symlinks=False):
                yield from _stat(entry, f"{prefix}/{name}")
            elif entry.is_dir(follow_symlinks=False):
                yield from _below(entry.path, f"{prefix}/{name}")


def _sayable(name: str) -> bool:
    """Whether a name can stand in a link, a trailer and a line of output: no control characters, no
    backslash, valid UTF-8."""
    return not any(c < " " or c == "\\" or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" for c in name)


def _stat(entry: os.DirEntry[str], path: str) -> Iterator[FileStat]:
    with contextlib.suppress(FileNotFoundError):  # renamed away since the folder was read
        s = entry.stat(follow_symlinks=False)
        yield FileStat(path, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino)


def digest(files: list[FileStat]) -> str:
    """One name for the state of all files."""
    rows = "\0".join(f"{f.path}\0{f.size}\0{f.mtime_ns}\0{f.ctime_ns}\0{f.inode}" for f in files)
    return hashlib.sha1(rows.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()


def survey(bank: Bank, history: History, few: int) -> Survey:
    """Compare disk and trail. Before the first revision nothing differs and nothing is held."""
    files = scan(bank.root)
    waiting = pending.keys(bank.pending)
    state, head = digest(files), " ".join([history.head() or "", *waiting])
    seen = _remembered(bank.cache)
    if (seen.digest, seen.head, seen.few) != (state, head, few):
        began = time.time_ns()
        owed = pending.owed(pending.found(bank.pending)) if waiting else {}
        seen = _compare(bank, history, files, seen, few, owed)
        seen.head, seen.digest = head, state
        if files and began - max(f.changed_ns for f in files) < RACY_NS:
            seen.digest = ""  # too fresh to be trusted next time
        _remember(bank.cache, seen)
    if not seen.held:
        return Survey(tuple(files), seen.changed, {}, state)
    shown = [f for f in files if f.path not in seen.held]
    shown += [FileStat(path, 0, 0, 0, int(blob, 16)) for path, blob in seen.held.items()]
    return Survey(
        tuple(sorted(shown, key=lambda f: f.path)),
        seen.changed,
        seen.held,
        state + "".join(seen.held.values()),
    )


def _compare(
    bank: Bank,
    history: History,
    files: list[FileStat],
    seen: _Seen,
    few: int,
    owed: Mapping[str, bytes | None],
) -> _Seen:
    blobs: dict[str, list[Any]] = {}
    unread: set[str] = set()
    for f in files:
        stamp = [f.size, f.mtime_ns, f.ctime_ns, f.inode]
        known = seen.blobs.get(f.path)
        if known and known[:4] == stamp and time.time_ns() - f.changed_ns > RACY_NS:
            blobs[f.path] = known
        elif (data := _data(bank, f)) is not None:
            blobs[f.path] = [*stamp, blob_id(data)]
        else:
            unread.add(f.path)
    try:
        trail = history.blobs() if history.exists else {}
    except GitFailed:
        return _Seen(blobs=blobs, few=few)
    trail |= {path: blob_id(data) for path, data in owed.items() if data is not None}
    gone = {path for path, data in owed.items() if data is None}
    mine = {path: name for path, name in trail.items() if is_truth(path) and path not in gone | unread}
    times = {f.path: f.changed_ns for f in files}
    changed = {p: times[p] for p, row in blobs.items() if mine.get(p) != row[4]}
    changed |= {path: _folder_time(bank.root / path) for path in mine.keys() - blobs.keys()}
    try:
        held = _held(bank, history, changed, mine, few, owed)
    except GitFailed:
        held = {}
    return _Seen(blobs=blobs, changed=changed, held=held, few=few)


def _held(
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
    found = {}
    for path in words:
        trail = owed[path] if path in owed else history.blob(mine[path]) if path in mine else None
        found[path] = Edit(path, trail, _at(bank.root / path))
    held = {path for path in saves.held(found, few) if path in mine}
    held = {path for path in held if not saves.stale(found[path], history)}
    if held and SETTINGS in changed and SETTINGS in mine and not (bank.root / SETTINGS).exists():
        held.add(SETTINGS)  # went with them
    return {path: mine[path] for path in held if path not in owed}


def _at(file: Path) -> bytes | None:
    return None if file.is_symlink() else read(file)


def _data(bank: Bank, stat: FileStat) -> bytes | None:
    """A file's bytes; None where one file cannot be read, which must not keep all others from being seen."""
    with contextlib.suppress(CannotWrite, TooLarge):
        return read(bank.root / stat.path) if stat.size <= MAX_FILE else None
    return None


def _folder_time(file: Path) -> int:
    for folder in file.parents:
        with contextlib.suppress(FileNotFoundError):
            return folder.stat().st_mtime_ns
    return 0


def _remembered(cache: Path) -> _Seen:
    try:
        raw = json.loads((cache / "survey.json").read_bytes())
        return _Seen(**raw)
    except (OSError, ValueError, TypeError):
        return _Seen()


def _remember(cache: Path, seen: _Seen) -> None:
    # A cache: where it cannot be written, the next look does the work again.
    with contextlib.suppress(OSError):
        # `parents` would make the state folder with the mode of any other.
        cache.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        cache.mkdir(exist_ok=True, mode=0o700)
        fresh = cache / f"survey.{os.getpid()}.fresh"
        fresh.touch(mode=0o600)
        fresh.write_text(json.dumps({name: getattr(seen, name) for name in _Seen.__slots__}))
        fresh.replace(cache / "survey.json")
