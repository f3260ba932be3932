"""Scanning the memory files: which there are, which differ from HEAD, which are held."""

from __future__ import annotations

import contextlib
import marshal
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ua_memory import discovery
from ua_memory.discovery import SETTINGS, sealed, unsealed
from ua_memory.errors import CannotWrite, GitFailed, TooLarge, writing
from ua_memory.git import process
from ua_memory.git.history import History
from ua_memory.git.repository import blob_id
from ua_memory.paths import Bank, is_memory_file, make_private
from ua_memory.store import files as store_files
from ua_memory.store import pending, saves, swap
from ua_memory.store.files import MAX_FILE, FileStat, read
from ua_memory.store.saves import Edit

# -- cache files -------------------------------------------------------------------------------------------
# A scan caches its result for the next process in `cache/survey-2` and `cache/blobs-2`. Both may be deleted
# at any moment. They have a checksum, since a flipped bit could look like somebody's change.


DIFF_FILE, BLOBS_FILE = "survey-2", "blobs-2"
"""The number changes with the format: an earlier version may still be running."""


@dataclass(slots=True)
class CachedDiff:
    """The changed and held files, and the state for which that holds: names and stamp of all files, HEAD and
    the setting `few`."""

    names: list[bytes] = field(default_factory=list)
    stamp: str = ""
    head: str = ""
    few: int = -1
    changed: dict[str, int] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)

    def is_current(self, head: str, few: int) -> bool:
        """Whether it was computed for this HEAD and this setting."""
        return (self.head, self.few) == (head, few)


Blob = tuple[int, int, int, int, str]
"""(size, mtime, ctime, inode, blob id) of a file when it was last read."""
Blobs = dict[str, Blob]
"""{path: its row}."""


def load_diff(cache: Path) -> CachedDiff:
    """The diff of the last scan, or an empty one."""
    raw = _read_cache(cache / DIFF_FILE)
    return CachedDiff(*(raw if isinstance(raw, list) and len(raw) == len(CachedDiff.__slots__) else ()))


def save_diff(cache: Path, found: CachedDiff) -> None:
    _write_cache(cache, DIFF_FILE, [getattr(found, name) for name in CachedDiff.__slots__])


def filesystem_now(cache: Path) -> int:
    """The file system's clock, in ns since the epoch."""
    try:
        _make_cache(cache)
        return process.filesystem_now(cache)
    except OSError:
        return time.time_ns()  # the folder is not writable, so that clock cannot be read


def _read_cache(file: Path) -> Any:
    try:
        return marshal.loads(unsealed(file.read_bytes()))
    except (OSError, ValueError, EOFError, TypeError):
        return None


def _write_cache(cache: Path, name: str, what: Any) -> None:
    with contextlib.suppress(OSError):
        _make_cache(cache)
        fresh = cache / f"{name}.{os.getpid()}-{threading.get_ident()}.fresh"
        swap.replace_file(cache / name, sealed(marshal.dumps(what)), fresh, durably=False)


def _make_cache(cache: Path) -> None:
    # `parents=True` would not create the state folder as private.
    make_private(cache.parent)
    cache.mkdir(exist_ok=True, mode=0o700)


# -- snapshot cache ----------------------------------------------------------------------------------------
# The last snapshot, valid until the file watch reports a change, and updated by what it reports. Only the
# daemon has one. The watch's position is read before a scan, so that changes during the scan count as later.


Position = Callable[[], int | None]
"""The number of changes reported so far, at least all that ended before the call; None if unknown."""
ChangedSince = Callable[[int], frozenset[bytes] | None]
"""The names of the files that changed since a position, relative to the root; None if something else changed,
or it is unknown."""


class SnapshotCache:
    """The newest snapshot of one bank's files, and the watch's position before it was taken."""

    def __init__(self, position: Position, changed_since: ChangedSince = lambda _: None) -> None:
        self.position, self._changed_since = position, changed_since
        self.hits = 0
        """The number of scans that were avoided."""
        self._last: tuple[Snapshot | None, int | None] = (None, None)  # both at once: threads may share one

    def last(self, at: int | None) -> tuple[Snapshot | None, frozenset[bytes] | None]:
        """The last snapshot, and the names that changed since (None if unknown). `at` is the present
        position."""
        snapshot, before = self._last
        if at is None or before is None:
            return snapshot, None
        return snapshot, frozenset() if at == before else self._changed_since(before)

    def store(self, snapshot: Snapshot, at: int | None) -> None:
        """Store a snapshot whose scan began after the position `at`."""
        self._last = snapshot, at

    def invalidate(self) -> None:
        """Make the next scan a full one."""
        self._last = self._last[0], None


# -- diff to head ------------------------------------------------------------------------------------------


def hash_files(bank: Bank, files: Sequence[FileStat]) -> tuple[Blobs, set[str]]:
    """({path: row}, the paths that could not be read). A file is read only if its `stat` has changed."""
    # The cache has only files that cannot have changed unnoticed since.
    before: Blobs = _read_cache(bank.cache / BLOBS_FILE) or {}
    blobs: Blobs = {}
    unread: set[str] = set()
    horizon = time.time_ns() - store_files.RACY_NS
    for f in files:
        known = before.get(f.path)
        if known and known[:4] == (f.size, f.mtime_ns, f.ctime_ns, f.inode) and f.changed_ns < horizon:
            blobs[f.path] = known
        elif (row := hash_file(bank.root, f)) is not None:
            # A file that changed just now may change again with the same time: it is read again next time.
            blobs[f.path] = row
        else:
            unread.add(f.path)
    if blobs != before:
        old = {p: row for p, row in blobs.items() if max(row[1], row[2]) < horizon}
        _write_cache(bank.cache, BLOBS_FILE, old)
    return blobs, unread


def hash_file(root: Path, f: FileStat) -> Blob | None:
    """A file's row in `Blobs`; None if it cannot be read, which must not stop the scan."""
    with contextlib.suppress(CannotWrite, TooLarge):
        data = read(root / f.path) if f.size <= MAX_FILE else None
        if data is not None:
            return f.size, f.mtime_ns, f.ctime_ns, f.inode, blob_id(data)
    return None


def diff_to_head(root: Path, paths: Iterable[str], blobs: Blobs, tree: Mapping[str, str]) -> dict[str, int]:
    """{path: mtime} of those that differ from HEAD's `tree`; of a deleted file, its folder's mtime."""
    changed: dict[str, int] = {}
    for path in paths:
        row = blobs.get(path)
        if row is None:
            if path in tree and is_memory_file(path):
                changed[path] = _folder_mtime(root / path)
        elif row[4] != tree.get(path):
            changed[path] = max(row[1], row[2])
    return changed


def held_files(
    bank: Bank, history: History, changed: Mapping[str, int], mine: Mapping[str, str], few: int,
    owed: Mapping[str, bytes | None],
) -> dict[str, str]:  # fmt: skip
    """{path: blob id in HEAD} of the changed files whose records disappeared all at once."""
    words = {path for path in changed if path != SETTINGS}
    if not words & mine.keys():
        return {}
    had = history.contents(mine[path] for path in words & mine.keys() - owed.keys())
    found = {}
    for path in words:
        in_head = owed[path] if path in owed else had[mine[path]] if path in mine else None
        found[path] = Edit(path, in_head, bytes_on_disk(bank.root / path))
    held = {path for path in saves.paths_to_hold(found, few) if path in mine}
    histories = {path: saves.FileHistory(path, history, None) for path in held}
    held = {path for path in held if not saves.detect_stale(found[path], histories[path])}
    if held and SETTINGS in changed and SETTINGS in mine and not (bank.root / SETTINGS).exists():
        held.add(SETTINGS)  # deleted together with them
    return {path: mine[path] for path in held if path not in owed}


def bytes_on_disk(file: Path) -> bytes | None:
    return None if file.is_symlink() else read(file)


def _folder_mtime(file: Path) -> int:
    for folder in file.parents:
        with contextlib.suppress(FileNotFoundError):
            return folder.stat().st_mtime_ns
    return 0


# -- snapshot ----------------------------------------------------------------------------------------------
# The result of one scan.
#
# A full scan takes the `stat` of each file, and HEAD's tree. If the watch reported which files changed since,
# an incremental scan checks only those, and the commits since. Added or removed names, hard links, and files
# that are held, uncommitted or unreadable need a full scan.


MAX_CHECKED = 64
"""With more changed files, a full scan is as quick as an incremental one."""
STATES_REMEMBERED = 8
"""For so many earlier states it is known what changed since."""
_COMMIT = re.compile("[0-9a-f]{40,64}")


@dataclass(frozen=True)
class Snapshot:
    """The files on disk compared with HEAD.

    `racy` are names that may change again with the same time stamp. `blobs` and `in_head` are {path: row} on
    disk and {path: blob id} in HEAD; None if the diff was cached or is incomplete. `places` has the index in
    `diff.names` of each name that can be checked alone; `folders` are the names of folders.
    """

    root: Path
    diff: CachedDiff
    rows: Sequence[discovery.Row]
    racy: frozenset[bytes]
    blobs: Blobs | None = field(default=None, repr=False)
    in_head: Mapping[str, str] | None = field(default=None, repr=False)
    places: Mapping[bytes, int] = field(default_factory=dict, repr=False)
    folders: frozenset[bytes] = frozenset()
    since: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """{name of an earlier state: the paths that may have changed since}."""

    @cached_property
    def name(self) -> str:
        """The name of this state: the stamp, which is the same in every process, else a random one."""
        return self.diff.stamp or f"~{secrets.token_hex(8)}"

    @cached_property
    def files(self) -> tuple[FileStat, ...]:
        """The truth files, by path."""
        with writing(self.root):
            # On a case-insensitive file system `lstat` finds both names of core memory; only one exists.
            top = os.listdir(self.root)  # noqa: PTH208 (only names are wanted)
        found: list[FileStat] = []
        for name, row in zip(self.diff.names, self.rows, strict=True):
            path = os.fsdecode(name)
            if row and stat.S_ISREG(row[0]) and valid_name(path):
                if not path.startswith("./"):
                    found.append(FileStat(path, *row[1:]))
                elif path[2:] in top:
                    found.append(FileStat(path[2:], *row[1:]))
        return tuple(sorted(found, key=lambda f: f.path))


def valid_name(path: str) -> bool:
    """Whether a path can be used in links, trailers and output: no control characters, no backslash, valid
    UTF-8."""
    if path.isprintable() and "\\" not in path:
        return True
    return not any(c < " " or c == "\\" or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" for c in path)


def list_all_names(root: Path) -> list[bytes]:
    """The names of all files and folders, except in unreadable folders. CannotWrite if the file system
    fails."""
    try:
        return store_files.list_names(root)
    except OSError as error:
        with writing(os.fsdecode(error.filename or root)):
            raise


# -- full scan ---------------------------------------------------------------------------------------------


def full_scan(
    bank: Bank, history: History, few: int, head: str, waiting: Sequence[str], last: Snapshot | None
) -> Snapshot:
    """Scan every file. If nothing changed since the `last` snapshot or the cached diff, that is returned.

    `waiting` are the keys of pending revisions.
    """
    known = last.diff if last and last.diff.is_current(head, few) else load_diff(bank.cache)
    if known.stamp and known.is_current(head, few):
        rows = discovery.look(bank.root, known.names)
        if discovery.stamp(rows) == known.stamp:
            return last if last and known is last.diff else Snapshot(bank.root, known, rows, frozenset())
    began = filesystem_now(bank.cache)
    listed = list_all_names(bank.root)
    rows = discovery.look(bank.root, listed)
    unsure = _racy_names(zip(listed, rows, strict=True), began)
    snapshot = Snapshot(bank.root, CachedDiff(listed, "" if unsure else discovery.stamp(rows)), rows, unsure)
    owed = pending.uncommitted_contents(pending.read_records(bank.pending)) if waiting else {}
    blobs, unread = hash_files(bank, snapshot.files)
    try:
        # By commit id, since the branch may move meanwhile.
        commit = head.partition(" ")[0]
        in_head = history.blobs(rev=commit if _COMMIT.fullmatch(commit) else "HEAD") if history.exists else {}
        in_head |= {path: blob_id(data) for path, data in owed.items() if data is not None}
        folders = _folder_names(listed, rows)
        unread |= _paths_in(store_files.unreadable_folders(bank.root, folders), in_head)
        unread |= in_head.keys() & map(os.fsdecode, folders)
        out = {path for path, data in owed.items() if data is None} | unread
        mine = {path: name for path, name in in_head.items() if path not in out}
        changed = diff_to_head(bank.root, blobs.keys() | mine.keys(), blobs, mine)
        held = held_files(bank, history, changed, mine, few, owed)
    except GitFailed:  # without git nothing can be compared, and nothing is cached
        return snapshot
    seen = CachedDiff(listed, snapshot.diff.stamp, head, few, changed, held)
    save_diff(bank.cache, seen)
    if waiting or unread or held or _has_hard_links(rows):
        return Snapshot(bank.root, seen, rows, unsure)
    places = {name: number for number, name in enumerate(listed)}
    return Snapshot(bank.root, seen, rows, unsure, blobs, in_head, places, _folder_names(listed, rows))


def _folder_names(names: Iterable[bytes], rows: Iterable[discovery.Row]) -> frozenset[bytes]:
    return frozenset(name for name, row in zip(names, rows, strict=True) if row and stat.S_ISDIR(row[0]))


def _paths_in(closed: Collection[str], paths: Iterable[str]) -> set[str]:
    """The paths that are in unreadable folders."""
    return {path for path in paths if any(path.startswith(f"{one}/") for one in closed)} if closed else set()


def _has_hard_links(rows: Iterable[discovery.Row]) -> bool:
    """Whether two names are the same file: a change affects both, and the watch reports one."""
    inodes = [row[4] for row in rows if row]
    return len(set(inodes)) < len(inodes)


def _racy_names(rows: Iterable[tuple[bytes, discovery.Row]], began: int) -> frozenset[bytes]:
    """The names that changed later than 50 ms before a scan began (`files.is_settled`)."""
    late = began - store_files.RACY_NS
    return frozenset(name for name, row in rows if row and max(row[2], row[3]) >= late)


# -- incremental scan --------------------------------------------------------------------------------------


def incremental_scan(
    bank: Bank, history: History, last: Snapshot, head: str, events: frozenset[bytes]
) -> Snapshot | None:
    """The new snapshot, if only the files in `events` changed; None if a full scan is needed."""
    seen, again = last.diff, _names_to_check(last, events)
    if again is None or last.blobs is None or last.in_head is None or seen.held:
        return None
    if not (_COMMIT.fullmatch(seen.head) and _COMMIT.fullmatch(head)):
        return None  # before the first revision, or while one is pending
    began = filesystem_now(bank.cache)
    rows, fresh = list(last.rows), {}
    for name in again:
        was, row = rows[last.places[name]], _stat_one(bank.root, name)
        if row is None or was is None or stat.S_IFMT(row[0]) != stat.S_IFMT(was[0]):
            return None
        rows[last.places[name]] = row
        if stat.S_ISREG(row[0]) and valid_name(path := os.fsdecode(name).removeprefix("./")):
            blob = hash_file(bank.root, FileStat(path, *row[1:]))
            if blob is None or path not in last.blobs:
                return None
            fresh[path] = blob
    blobs = {**last.blobs, **fresh}
    try:
        moved = history.moved(seen.head, head) if head != seen.head else {}
        in_head = {path: name for path, name in {**last.in_head, **moved}.items() if name}
        judged = seen.changed.keys() | fresh.keys() | moved.keys()
        changed = diff_to_head(bank.root, judged, blobs, in_head)
        if held_files(bank, history, changed, in_head, seen.few, {}):
            return None
    except GitFailed:
        return None
    unsure = _racy_names(((name, rows[last.places[name]]) for name in again), began)
    found = CachedDiff(seen.names, "" if unsure else discovery.stamp(rows), head, seen.few, changed)
    if found.stamp:
        save_diff(bank.cache, found)
    touched = frozenset(fresh)
    since = {last.name: touched} | {state: paths | touched for state, paths in last.since.items()}
    latest = dict([*since.items()][:STATES_REMEMBERED])
    return Snapshot(bank.root, found, rows, unsure, blobs, in_head, last.places, last.folders, latest)


def _names_to_check(last: Snapshot, events: frozenset[bytes]) -> set[bytes] | None:
    """The names to check: those in `events`, racy ones and every folder; None if one is new, or there are
    too many."""
    names = {*events, *last.racy}
    if (
        len(names) > MAX_CHECKED
        or not names <= last.places.keys()
        or any(name.startswith(b"./") for name in events)
    ):
        return None  # on a case-insensitive file system, two names at the top may be one file
    return {*names, *last.folders}


def _stat_one(root: Path, name: bytes) -> discovery.Row:
    """The `stat` of a name; None if it is missing, or is a hard link, which may change without an event."""
    try:
        s = os.lstat(os.fsencode(root) + b"/" + name)
    except OSError:
        return None
    if stat.S_ISREG(s.st_mode) and s.st_nlink > 1:
        return None
    return s.st_mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino


# -- survey ------------------------------------------------------------------------------------------------
# The interface to scans. While nothing changes, a survey costs one `stat` per file, or nothing with a
# snapshot cache.


@dataclass(frozen=True)
class FileSurvey:
    """The memory files. `proof` identifies the state of all of them; it is '' while a file may change with
    the same time stamp and there is no watch."""

    snapshot: Snapshot
    proof: str = ""

    @property
    def changed(self) -> Mapping[str, int]:
        """{path: mtime in ns} of the files that differ from HEAD; of a deleted file, its folder's mtime."""
        return self.snapshot.diff.changed

    @property
    def held(self) -> Mapping[str, str]:
        """{path: blob id in HEAD} of the files whose facts disappeared all at once."""
        return self.snapshot.diff.held

    @cached_property
    def files(self) -> tuple[FileStat, ...]:
        """The files to search, by path: those on disk, and of held ones the version in HEAD."""
        if not self.held:
            return self.snapshot.files
        shown = [f for f in self.snapshot.files if f.path not in self.held]
        shown += [FileStat(path, 0, 0, 0, int(blob, 16)) for path, blob in self.held.items()]
        return tuple(sorted(shown, key=lambda f: f.path))

    def touched(self, proof: str) -> frozenset[str] | None:
        """The paths that may have changed since the state of an earlier `proof`; None if unknown."""
        return self.snapshot.since.get(proof)

    def stats_of(self, paths: Iterable[str]) -> tuple[FileStat, ...]:
        """The `stat` of these paths, which must be `touched` ones."""
        known = self.snapshot.blobs or {}
        return tuple(FileStat(path, *known[path][:4]) for path in sorted(paths))

    @cached_property
    def racy(self) -> frozenset[str]:
        """The paths of files that may change again with the same time stamp, and will be checked again."""
        return frozenset(os.fsdecode(name).removeprefix("./") for name in self.snapshot.racy)


def survey(
    bank: Bank, history: History, few: int, cache: SnapshotCache | None = None, last: Snapshot | None = None
) -> FileSurvey:
    """Compare the disk with HEAD. Before the first revision nothing differs and nothing is held.

    With a `cache` only files that the watch reported are checked. Without, the `last` snapshot is reused if
    no `stat` has changed.
    """
    waiting = pending.keys(bank.pending)
    head = " ".join([history.head() or "", *waiting])
    at = cache.position() if cache else None
    last, events = cache.last(at) if cache else (last, None)
    snapshot: Snapshot | None = None
    if cache and last and events is not None and last.diff.few == few:
        stands = last.diff.head == head and not events and not last.racy
        cache.hits += stands
        snapshot = last if stands else incremental_scan(bank, history, last, head, events)
    snapshot = snapshot or full_scan(bank, history, few, head, waiting, last)
    if cache:
        cache.store(snapshot, at)
    if snapshot.in_head is not None:
        history.known = (snapshot.diff.head, snapshot.in_head)
    return FileSurvey(snapshot, _state_id(snapshot) if snapshot.diff.stamp or at is not None else "")


def _state_id(snapshot: Snapshot) -> str:
    """The snapshot's name, with the blob ids of held files."""
    return " ".join([snapshot.name, *snapshot.diff.held.values()])
