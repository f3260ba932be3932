"""One look at all truth files: which there are, which differ from the history, which are held back."""

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
from ua_memory.paths import Bank, is_truth, make_private
from ua_memory.store import files as store_files
from ua_memory.store import pending, saves, swap
from ua_memory.store.files import MAX_FILE, FileStat, read
from ua_memory.store.saves import Edit

# -- on disk -----------------------------------------------------------------------------------------------
# What a scan leaves for the next process: `cache/survey-2` and `cache/blobs-2`.
#
# Both may be deleted at any moment, and where they cannot be written the next scan does the work again.
# What is not the bytes that were written is not read: a flipped bit in it could pass for a change of
# somebody's.


SURVEY, BLOBS = "survey-2", "blobs-2"
"""An earlier version that still runs beside this one reads what it finds, and knows of no sum before it."""


@dataclass(slots=True)
class CachedDiff:
    """What differs from the trail and is held, and the state it is true of: the names and stamp of all files,
    the trail's head and the setting `few`."""

    names: list[bytes] = field(default_factory=list)
    stamp: str = ""
    head: str = ""
    few: int = -1
    changed: dict[str, int] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)

    def is_current(self, head: str, few: int) -> bool:
        """Whether it was made with that head of the trail and that setting."""
        return (self.head, self.few) == (head, few)


Blob = tuple[int, int, int, int, str]
"""Size, times, inode and blob id of a file as it was last read."""
Blobs = dict[str, Blob]
"""{path: that}."""


def load_diff(cache: Path) -> CachedDiff:
    """The diff of the last scan; an empty one where there is none."""
    raw = _load(cache / SURVEY)
    return CachedDiff(*(raw if isinstance(raw, list) and len(raw) == len(CachedDiff.__slots__) else ()))


def save_diff(cache: Path, found: CachedDiff) -> None:
    _save(cache, SURVEY, [getattr(found, name) for name in CachedDiff.__slots__])


def filesystem_now(cache: Path) -> int:
    """The clock of the file system that the state lies on, in ns since the epoch."""
    try:
        _make_cache(cache)
        return process.filesystem_now(cache)
    except OSError:
        return time.time_ns()  # a folder we cannot write to: its files' clock cannot be asked


def _load(file: Path) -> Any:
    try:
        return marshal.loads(unsealed(file.read_bytes()))
    except (OSError, ValueError, EOFError, TypeError):
        return None


def _save(cache: Path, name: str, what: Any) -> None:
    with contextlib.suppress(OSError):
        _make_cache(cache)
        fresh = cache / f"{name}.{os.getpid()}-{threading.get_ident()}.fresh"
        swap.replace_file(cache / name, sealed(marshal.dumps(what)), fresh, durably=False)


def _make_cache(cache: Path) -> None:
    # `parents` would make the state folder with the mode of any other.
    make_private(cache.parent)
    cache.mkdir(exist_ok=True, mode=0o700)


# -- snapshot cache ----------------------------------------------------------------------------------------
# The last snapshot, which stands until a file watch reports a change and is updated by what it reports.
#
# Only the daemon has one. The watch's position is read before the scan it belongs to, so that what happens
# during the scan counts as after it.


Position = Callable[[], int | None]
"""The number of changes that the watch has reported, all that ended before the call among them; None where
that is not known."""
ChangedSince = Callable[[int], frozenset[bytes] | None]
"""The names of the files, below the bank's root, that changed since a position; None where something else
changed, or that is not known."""


class SnapshotCache:
    """The newest snapshot of one bank's files, and the watch's position before it was taken."""

    def __init__(self, position: Position, changed_since: ChangedSince = lambda _: None) -> None:
        self.position, self._changed_since = position, changed_since
        self.hits = 0
        """The number of scans that were not needed."""
        self._last: tuple[Snapshot | None, int | None] = (None, None)  # both at once: threads may share one

    def last(self, at: int | None) -> tuple[Snapshot | None, frozenset[bytes] | None]:
        """The last snapshot, and the files that changed from before it until the position `at` or later; None
        where that is not known."""
        snapshot, before = self._last
        if at is None or before is None:
            return snapshot, None
        return snapshot, frozenset() if at == before else self._changed_since(before)

    def store(self, snapshot: Snapshot, at: int | None) -> None:
        """Remember a snapshot that was begun after the position `at`."""
        self._last = snapshot, at

    def invalidate(self) -> None:
        """Have the next scan look at every file, whatever the watch reports."""
        self._last = self._last[0], None


# -- diff to head ------------------------------------------------------------------------------------------
# The files compared with the trail: which differ from it, since when, and which are held back.


def hash_files(bank: Bank, files: Sequence[FileStat]) -> tuple[Blobs, set[str]]:
    """The blob id of every file, read only where its stat is new, and the paths that could not be read."""
    # What each was when it was read last, of those that cannot have changed unseen since.
    before: Blobs = _load(bank.cache / BLOBS) or {}
    blobs: Blobs = {}
    unread: set[str] = set()
    horizon = time.time_ns() - store_files.RACY_NS
    for f in files:
        known = before.get(f.path)
        if known and known[:4] == (f.size, f.mtime_ns, f.ctime_ns, f.inode) and f.changed_ns < horizon:
            blobs[f.path] = known
        elif (row := hash_file(bank.root, f)) is not None:
            # Read within its own time stamp it may change again unseen: remembered so that it is read again.
            blobs[f.path] = row
        else:
            unread.add(f.path)
    if blobs != before:
        _save(bank.cache, BLOBS, {p: row for p, row in blobs.items() if max(row[1], row[2]) < horizon})
    return blobs, unread


def hash_file(root: Path, f: FileStat) -> Blob | None:
    """A file's row in `Blobs`; None where it cannot be read, which must not keep all others from being
    seen."""
    with contextlib.suppress(CannotWrite, TooLarge):
        data = read(root / f.path) if f.size <= MAX_FILE else None
        if data is not None:
            return f.size, f.mtime_ns, f.ctime_ns, f.inode, blob_id(data)
    return None


def diff_to_head(root: Path, paths: Iterable[str], blobs: Blobs, trail: Mapping[str, str]) -> dict[str, int]:
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


def held_files(
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
    had = history.contents(mine[path] for path in words & mine.keys() - owed.keys())
    found = {}
    for path in words:
        trail = owed[path] if path in owed else had[mine[path]] if path in mine else None
        found[path] = Edit(path, trail, bytes_on_disk(bank.root / path))
    held = {path for path in saves.held(found, few) if path in mine}
    held = {
        path for path in held if not saves.detect_stale(found[path], saves.FileHistory(path, history, None))
    }
    if held and SETTINGS in changed and SETTINGS in mine and not (bank.root / SETTINGS).exists():
        held.add(SETTINGS)  # went with them
    return {path: mine[path] for path in held if path not in owed}


def bytes_on_disk(file: Path) -> bytes | None:
    return None if file.is_symlink() else read(file)


def _folder_time(file: Path) -> int:
    for folder in file.parents:
        with contextlib.suppress(FileNotFoundError):
            return folder.stat().st_mtime_ns
    return 0


# -- snapshot ----------------------------------------------------------------------------------------------
# All truth files and the trail as one scan sees them, a full or an incremental one.
#
# A full scan takes a `stat` of each file and the trail's list of all. Where the watch says which files
# changed since (`SnapshotCache`), an incremental one looks at those alone, and of the trail at what was
# added. What it cannot tell (a name that came or went, a file with two names, anything held, owed or
# unreadable) takes a full one.


MAX_CHECKED = 64
"""Files that are looked at one by one; where more changed a full scan is as quick."""
KEPT_STATES = 8
"""Earlier states of which it is known what changed since."""
_COMMIT = re.compile("[0-9a-f]{40,64}")


@dataclass(frozen=True)
class Snapshot:
    """What lay there. `racy` are the names in `diff` that may change again without a new time stamp. `blobs`
    and `trail` are what was compared, None where the diff was cached or not all of it could be. `places`
    tells where in `diff.names` each name stands that may be looked at alone, and `folders` which are
    folders."""

    root: Path
    diff: CachedDiff
    rows: Sequence[discovery.Row]
    racy: frozenset[bytes]
    blobs: Blobs | None = field(default=None, repr=False)
    trail: Mapping[str, str] | None = field(default=None, repr=False)
    places: Mapping[bytes, int] = field(default_factory=dict, repr=False)
    folders: frozenset[bytes] = frozenset()
    since: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """{name of an earlier state: the paths of which something may be another since}."""

    @cached_property
    def name(self) -> str:
        """The state's own: the stamp, which says it to every process, or one that no other ever has."""
        return self.diff.stamp or f"~{secrets.token_hex(8)}"

    @cached_property
    def files(self) -> tuple[FileStat, ...]:
        """The truth files, by path."""
        with writing(self.root):
            # Where case is folded, both names of core memory answer to `lstat`, and one of them is there.
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
    """Whether a name can stand in a link, a trailer and a line of output: no control characters, no
    backslash, valid UTF-8."""
    if path.isprintable() and "\\" not in path:
        return True
    return not any(c < " " or c == "\\" or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" for c in path)


def names(root: Path) -> list[bytes]:
    """The names of all files and folders, but for what lies in `files.closed` ones. CannotWrite where the
    file system fails."""
    try:
        return store_files.list_names(root)
    except OSError as error:
        with writing(os.fsdecode(error.filename or root)):
            raise


# -- full scan ---------------------------------------------------------------------------------------------


def full_scan(
    bank: Bank, history: History, few: int, head: str, waiting: Sequence[str], last: Snapshot | None
) -> Snapshot:
    """Look at every file. Where all are as they were in the `last` snapshot, or in the cached diff, nothing
    is compared again."""
    known = last.diff if last and last.diff.is_current(head, few) else load_diff(bank.cache)
    if known.stamp and known.is_current(head, few):
        rows = discovery.look(bank.root, known.names)
        if discovery.stamp(rows) == known.stamp:
            return last if last and known is last.diff else Snapshot(bank.root, known, rows, frozenset())
    began = filesystem_now(bank.cache)
    listed = names(bank.root)
    rows = discovery.look(bank.root, listed)
    unsure = _racy(zip(listed, rows, strict=True), began)
    snapshot = Snapshot(bank.root, CachedDiff(listed, "" if unsure else discovery.stamp(rows)), rows, unsure)
    owed = pending.uncommitted_contents(pending.read_records(bank.pending)) if waiting else {}
    blobs, unread = hash_files(bank, snapshot.files)
    try:
        # By its id: the branch may move meanwhile, and move back.
        commit = head.partition(" ")[0]
        trail = history.blobs(rev=commit if _COMMIT.fullmatch(commit) else "HEAD") if history.exists else {}
        trail |= {path: blob_id(data) for path, data in owed.items() if data is not None}
        unread |= _below(store_files.unreadable_folders(bank.root, _folders(listed, rows)), trail)
        out = {path for path, data in owed.items() if data is None} | unread
        mine = {path: name for path, name in trail.items() if path not in out}
        changed = diff_to_head(bank.root, blobs.keys() | mine.keys(), blobs, mine)
        held = held_files(bank, history, changed, mine, few, owed)
    except GitFailed:  # no git: nothing can be told apart now, and nothing is remembered of that
        return snapshot
    seen = CachedDiff(listed, snapshot.diff.stamp, head, few, changed, held)
    save_diff(bank.cache, seen)
    if waiting or unread or held or _has_hard_links(rows):
        return Snapshot(bank.root, seen, rows, unsure)
    places = {name: number for number, name in enumerate(listed)}
    return Snapshot(bank.root, seen, rows, unsure, blobs, trail, places, _folders(listed, rows))


def _folders(names: Iterable[bytes], rows: Iterable[discovery.Row]) -> frozenset[bytes]:
    return frozenset(name for name, row in zip(names, rows, strict=True) if row and stat.S_ISDIR(row[0]))


def _below(closed: Collection[str], trail: Iterable[str]) -> set[str]:
    """What the trail has in folders that may not be looked into."""
    return (
        {path for path in trail if any(path.startswith(f"{each}/") for each in closed)} if closed else set()
    )


def _has_hard_links(rows: Iterable[discovery.Row]) -> bool:
    """Whether one file has two of the names: it changes under both, and the watch reports one."""
    inodes = [row[4] for row in rows if row]
    return len(set(inodes)) < len(inodes)


def _racy(rows: Iterable[tuple[bytes, discovery.Row]], began: int) -> frozenset[bytes]:
    """What changed later than 50 ms before a scan began (`files.settled`): it may change again unseen."""
    late = began - store_files.RACY_NS
    return frozenset(name for name, row in rows if row and max(row[2], row[3]) >= late)


# -- incremental scan --------------------------------------------------------------------------------------


def incremental_scan(
    bank: Bank, history: History, last: Snapshot, head: str, events: frozenset[bytes]
) -> Snapshot | None:
    """The snapshot as it is now, if nothing but the files in `events` changed; None where that does not tell
    all."""
    seen, again = last.diff, _to_check(last, events)
    if again is None or last.blobs is None or last.trail is None or seen.held:
        return None
    if not (_COMMIT.fullmatch(seen.head) and _COMMIT.fullmatch(head)):
        return None  # before the first revision, or one is in flight
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
        trail = {path: name for path, name in {**last.trail, **moved}.items() if name}
        judged = seen.changed.keys() | fresh.keys() | moved.keys()
        changed = diff_to_head(bank.root, judged, blobs, trail)
        if held_files(bank, history, changed, trail, seen.few, {}):
            return None
    except GitFailed:
        return None
    unsure = _racy(((name, rows[last.places[name]]) for name in again), began)
    found = CachedDiff(seen.names, "" if unsure else discovery.stamp(rows), head, seen.few, changed)
    if found.stamp:
        save_diff(bank.cache, found)
    touched = frozenset(fresh)
    since = {last.name: touched} | {state: paths | touched for state, paths in last.since.items()}
    latest = dict([*since.items()][:KEPT_STATES])
    return Snapshot(bank.root, found, rows, unsure, blobs, trail, last.places, last.folders, latest)


def _to_check(last: Snapshot, events: frozenset[bytes]) -> set[bytes] | None:
    """The names to look at: those in `events`, those that may have changed without one, and every folder;
    None where one of them is new, or there are many."""
    names = {*events, *last.racy}
    if (
        len(names) > MAX_CHECKED
        or not names <= last.places.keys()
        or any(name.startswith(b"./") for name in events)
    ):
        return None  # of those at the top, another may be the same where case is folded
    return {*names, *last.folders}


def _stat_one(root: Path, name: bytes) -> discovery.Row:
    """What a name is now; None if it is gone, or a file that has a second name, under which it may change
    without an event."""
    try:
        s = os.lstat(os.fsencode(root) + b"/" + name)
    except OSError:
        return None
    if stat.S_ISREG(s.st_mode) and s.st_nlink > 1:
        return None
    return s.st_mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino


# -- survey ------------------------------------------------------------------------------------------------
# One look at all truth files: which there are, which differ from the trail, which are held back.
#
# While nothing changes, this is one `stat` a file and the comparison of one digest, and not even that with a
# snapshot cache. What is written (the digest in `cache/survey-2`, the blob ids in `cache/blobs-2`) may be
# deleted at any moment.


@dataclass(frozen=True)
class FileSurvey:
    """What lies in the bank. `proof` names the state of all files; it is empty while one of them may change
    again without a trace and nobody would hear of it."""

    snapshot: Snapshot
    proof: str = ""

    @property
    def changed(self) -> Mapping[str, int]:
        """The paths that differ from the trail (gone ones too), and when each was last changed, in ns since
        the epoch; if it is gone, its folder."""
        return self.snapshot.diff.changed

    @property
    def held(self) -> Mapping[str, str]:
        """{path: the trail's blob id} of those whose facts disappeared all at once."""
        return self.snapshot.diff.held

    @cached_property
    def files(self) -> tuple[FileStat, ...]:
        """The files that may be searched, by path: those on disk, with the trail's where they are held."""
        if not self.held:
            return self.snapshot.files
        shown = [f for f in self.snapshot.files if f.path not in self.held]
        shown += [FileStat(path, 0, 0, 0, int(blob, 16)) for path, blob in self.held.items()]
        return tuple(sorted(shown, key=lambda f: f.path))

    def touched(self, proof: str) -> frozenset[str] | None:
        """The paths of which something may be another since the state that an earlier proof names; None where
        that is not known."""
        return self.snapshot.since.get(proof)

    def stats_of(self, paths: Iterable[str]) -> tuple[FileStat, ...]:
        """Those of the files that have these paths; quick where they are few that were touched."""
        known = self.snapshot.blobs or {}
        return tuple(FileStat(path, *known[path][:4]) for path in sorted(paths))

    @cached_property
    def racy(self) -> frozenset[str]:
        """The paths of files that may change again without a trace, and will be looked at again."""
        return frozenset(os.fsdecode(name).removeprefix("./") for name in self.snapshot.racy)


def survey(
    bank: Bank, history: History, few: int, cache: SnapshotCache | None = None, last: Snapshot | None = None
) -> FileSurvey:
    """Compare disk and trail. Before the first revision nothing differs and nothing is held.

    With a `cache` only the files that changed since are looked at again; without one, the `last` snapshot is
    given again where all files are as they were.
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
    if snapshot.trail is not None:
        history.known = (snapshot.diff.head, snapshot.trail)
    return FileSurvey(snapshot, _state_name(snapshot) if snapshot.diff.stamp or at is not None else "")


def _state_name(snapshot: Snapshot) -> str:
    """The state's name: the files by their stamp, and the trail's content of those that are held."""
    return " ".join([snapshot.name, *snapshot.diff.held.values()])
