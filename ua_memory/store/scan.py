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
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ua_memory import discovery
from ua_memory.discovery import SETTINGS, sealed, unsealed
from ua_memory.errors import CannotWrite, GitFailed, TooLarge
from ua_memory.git import process
from ua_memory.git.repository import blob_id
from ua_memory.git.trail import History
from ua_memory.paths import Bank, is_truth, make_private
from ua_memory.store import files as store_files
from ua_memory.store import pending, saves
from ua_memory.store.files import MAX_FILE, FileStat, read
from ua_memory.store.saves import Edit
from ua_memory.store.swap import refused

if TYPE_CHECKING:
    from ua_memory.discovery import Row


# -- memo --------------------------------------------------------------------------------------------------
# What a look at all files leaves for the next process: `cache/survey-2` and `cache/blobs-2`.
#
# Both may be deleted at any moment, and where they cannot be written the next look does the work again.
# What is not the bytes that were written is not read: a flipped bit in it could pass for a change of
# somebody's.


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


def read_seen(cache: Path) -> Seen:
    """The verdicts of the last look; empty ones where there are none."""
    raw = _recalled(cache / SURVEY)
    return Seen(*raw) if isinstance(raw, list) and len(raw) == len(Seen.__slots__) else Seen()


def keep_seen(cache: Path, found: Seen) -> None:
    _keep(cache, SURVEY, [getattr(found, name) for name in Seen.__slots__])


def read_blobs(cache: Path) -> Blobs:
    """What each file was when it was read last, of those that cannot have changed unseen since."""
    return _recalled(cache / BLOBS) or {}


def keep_blobs(cache: Path, found: Blobs) -> None:
    _keep(cache, BLOBS, found)


def now(cache: Path) -> int:
    """The clock of the file system that the state lies on, in ns since the epoch."""
    try:
        _make(cache)
        return process.filesystem_now(cache)
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


# -- witness -----------------------------------------------------------------------------------------------
# What a live watch spares a look at the files: the last one stands while nothing is heard to have happened,
# and is carried on by what was touched.
#
# Only the daemon has one. A mark is asked for before the look it belongs to, so that what happens during
# the look counts as after it.


Look = TypeVar("Look")

Marks = Callable[[], int | None]
"""How many changes have been heard of, all that ended before the call among them; None if nobody knows."""
Heard = Callable[[int], frozenset[bytes] | None]
"""The names of the files, below the bank's root, that were touched since a mark, and of nothing else; None
if something else was, or nobody knows."""


class Witness(Generic[Look]):
    """The newest look at the files of one bank, and the mark that it began with."""

    def __init__(self, marks: Marks, heard: Heard = lambda _: None) -> None:
        self.marks, self._heard = marks, heard
        self.spared = 0
        """So many looks were not needed."""
        self._at: int | None = None
        self._look: Look | None = None

    def last(self, at: int | None) -> tuple[Look | None, frozenset[bytes] | None]:
        """The last look, and what was touched from before it until the mark `at` or later; None where that is
        not known."""
        if at is None or self._at is None:
            return self._look, None
        return self._look, frozenset() if at == self._at else self._heard(self._at)

    def keep(self, look: Look, at: int | None) -> None:
        """Remember a look that began after the mark `at`."""
        self._look, self._at = look, at

    def forget(self) -> None:
        """Have the next one look at every file, whatever is heard."""
        self._at = None


# -- verdict -----------------------------------------------------------------------------------------------
# The files held against the trail: which differ from it, since when, and which are held back.


def blobs_of(bank: Bank, files: Sequence[FileStat]) -> tuple[Blobs, set[str]]:
    """The blob id of every file, read only where its stat is new, and the paths that could not be read."""
    before = read_blobs(bank.cache)
    blobs: Blobs = {}
    unread: set[str] = set()
    horizon = time.time_ns() - store_files.RACY_NS
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
        keep_blobs(bank.cache, {p: row for p, row in blobs.items() if max(row[1], row[2]) < horizon})
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


# -- sight -------------------------------------------------------------------------------------------------
# What is seen of all truth files and the trail in one look, whole or carried on.
#
# A whole one takes a `stat` of each file and the trail's list of all. Who vouches for which files were
# touched since (`Witness`) has it carried on: only those are looked at and read, and of the trail only what
# came. What can be told in no other way (a name that came or went, a file with two names, anything held,
# owed or unreadable) takes a whole one.


MOST = 64
"""Files that are looked at one by one; where more were touched a whole look is as quick."""
STATES = 8
"""Earlier states of which it is known what was touched since."""
_COMMIT = re.compile("[0-9a-f]{40,64}")


@dataclass(frozen=True)
class Sight:
    """What lay there. `open` are the names of `seen` that may change again without a trace. `blobs` and
    `trail` are what was compared, None where the verdicts were remembered or not all of it could be.
    `places` tells where in `seen.names` each stands that may be looked at alone, and `folders` which of them
    are folders."""

    root: Path
    seen: Seen
    rows: Sequence[Row]
    open: frozenset[bytes]
    blobs: Blobs | None = field(default=None, repr=False)
    trail: Mapping[str, str] | None = field(default=None, repr=False)
    places: Mapping[bytes, int] = field(default_factory=dict, repr=False)
    folders: frozenset[bytes] = frozenset()
    since: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """{name of an earlier state: the paths of which something may be another since}."""

    @cached_property
    def name(self) -> str:
        """The state's own: the stamp, which says it to every process, or one that no other ever has."""
        return self.seen.stamp or f"~{secrets.token_hex(8)}"

    @cached_property
    def files(self) -> list[FileStat]:
        """The truth files, by path."""
        try:
            # Where case is folded, both names of core memory answer to `lstat`, and one of them is there.
            top = os.listdir(self.root)  # noqa: PTH208 (only names are wanted)
        except OSError as error:
            refused(error, self.root)
        found: list[FileStat] = []
        for name, row in zip(self.seen.names, self.rows, strict=True):
            path = os.fsdecode(name)
            if row and stat.S_ISREG(row[0]) and sayable(path):
                if not path.startswith("./"):
                    found.append(FileStat(path, *row[1:]))
                elif path[2:] in top:
                    found.append(FileStat(path[2:], *row[1:]))
        return sorted(found, key=lambda f: f.path)


def sayable(path: str) -> bool:
    """Whether a name can stand in a link, a trailer and a line of output: no control characters, no
    backslash, valid UTF-8."""
    if path.isprintable() and "\\" not in path:
        return True
    return not any(c < " " or c == "\\" or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" for c in path)


def names(root: Path) -> list[bytes]:
    """The names of all files and folders, but for what lies in `proof.closed` ones. CannotWrite where the
    file system fails."""
    try:
        return store_files.listing(root)
    except OSError as error:
        refused(error, Path(os.fsdecode(error.filename or root)))


# -- the whole of it -----------------------------------------------------------------------------------------


def whole(
    bank: Bank, history: History, few: int, head: str, waiting: Sequence[str], last: Sight | None
) -> Sight:
    """Look at every file. Where all are as they were in the `last` look, or in the remembered one, so are the
    verdicts."""
    known = last.seen if last and last.seen.holds(head, few) else read_seen(bank.cache)
    if known.stamp and known.holds(head, few):
        rows = discovery.look(bank.root, known.names)
        if discovery.stamp(rows) == known.stamp:
            return last if last and known is last.seen else Sight(bank.root, known, rows, frozenset())
    began = now(bank.cache)
    listed = names(bank.root)
    rows = discovery.look(bank.root, listed)
    unsure = _open(zip(listed, rows, strict=True), began)
    look = Sight(bank.root, Seen(listed, "" if unsure else discovery.stamp(rows)), rows, unsure)
    owed = pending.owed(pending.found(bank.pending)) if waiting else {}
    blobs, unread = blobs_of(bank, look.files)
    try:
        # By its id: the branch may move meanwhile, and move back.
        commit = head.partition(" ")[0]
        trail = history.blobs(rev=commit if _COMMIT.fullmatch(commit) else "HEAD") if history.exists else {}
        trail |= {path: blob_id(data) for path, data in owed.items() if data is not None}
        unread |= _within(store_files.closed(bank.root, _folders(listed, rows)), trail)
        out = {path for path, data in owed.items() if data is None} | unread
        mine = {path: name for path, name in trail.items() if path not in out}
        changed = differing(bank.root, blobs.keys() | mine.keys(), blobs, mine)
        held = held_back(bank, history, changed, mine, few, owed)
    except GitFailed:  # no git: nothing can be told apart now, and nothing is remembered of that
        return look
    seen = Seen(listed, look.seen.stamp, head, few, changed, held)
    keep_seen(bank.cache, seen)
    if waiting or unread or held or _linked(rows):
        return Sight(bank.root, seen, rows, unsure)
    places = {name: number for number, name in enumerate(listed)}
    return Sight(bank.root, seen, rows, unsure, blobs, trail, places, _folders(listed, rows))


def _folders(names: Iterable[bytes], rows: Iterable[Row]) -> frozenset[bytes]:
    return frozenset(name for name, row in zip(names, rows, strict=True) if row and stat.S_ISDIR(row[0]))


def _within(closed: Collection[str], trail: Iterable[str]) -> set[str]:
    """What the trail has in folders that may not be looked into."""
    return (
        {path for path in trail if any(path.startswith(f"{each}/") for each in closed)} if closed else set()
    )


def _linked(rows: Iterable[Row]) -> bool:
    """Whether one file has two of the names, so that it changes under both when one of them is heard of."""
    inodes = [row[4] for row in rows if row]
    return len(set(inodes)) < len(inodes)


def _open(rows: Iterable[tuple[bytes, Row]], began: int) -> frozenset[bytes]:
    """What changed later than 50 ms before a look began (`proof.settled`): it may change again unseen."""
    late = began - store_files.RACY_NS
    return frozenset(name for name, row in rows if row and max(row[2], row[3]) >= late)


# -- what is left of it ------------------------------------------------------------------------------------


def carried(bank: Bank, history: History, last: Sight, head: str, heard: frozenset[bytes]) -> Sight | None:
    """The look as it is now, if nothing but what was `heard` of may have been touched; None where that does
    not tell all."""
    seen, again = last.seen, _again(last, heard)
    if again is None or last.blobs is None or last.trail is None or seen.held:
        return None
    if not (_COMMIT.fullmatch(seen.head) and _COMMIT.fullmatch(head)):
        return None  # before the first revision, or one is in flight
    began = now(bank.cache)
    rows, fresh = list(last.rows), {}
    for name in again:
        was, row = rows[last.places[name]], _alone(bank.root, name)
        if row is None or was is None or stat.S_IFMT(row[0]) != stat.S_IFMT(was[0]):
            return None
        rows[last.places[name]] = row
        if stat.S_ISREG(row[0]) and sayable(path := os.fsdecode(name).removeprefix("./")):
            blob = blob_of(bank.root, FileStat(path, *row[1:]))
            if blob is None or path not in last.blobs:
                return None
            fresh[path] = blob
    blobs = {**last.blobs, **fresh}
    try:
        moved = history.moved(seen.head, head) if head != seen.head else {}
        trail = {path: name for path, name in {**last.trail, **moved}.items() if name}
        judged = seen.changed.keys() | fresh.keys() | moved.keys()
        changed = differing(bank.root, judged, blobs, trail)
        if held_back(bank, history, changed, trail, seen.few, {}):
            return None
    except GitFailed:
        return None
    unsure = _open(((name, rows[last.places[name]]) for name in again), began)
    found = Seen(seen.names, "" if unsure else discovery.stamp(rows), head, seen.few, changed)
    if found.stamp:
        keep_seen(bank.cache, found)
    touched = frozenset(fresh)
    since = {last.name: touched} | {state: paths | touched for state, paths in last.since.items()}
    latest = dict([*since.items()][:STATES])
    return Sight(bank.root, found, rows, unsure, blobs, trail, last.places, last.folders, latest)


def _again(last: Sight, heard: frozenset[bytes]) -> set[bytes] | None:
    """The names to look at: what was heard of, what may have changed unheard of, and every folder; None
    where one of them is new, or there are many."""
    names = {*heard, *last.open}
    if len(names) > MOST or not names <= last.places.keys() or any(name.startswith(b"./") for name in heard):
        return None  # of those at the top, another may be the same where case is folded
    return {*names, *last.folders}


def _alone(root: Path, name: bytes) -> Row:
    """What a name is now; None if it is gone, or a file that has a second name, by which it may be changed
    without being heard of."""
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
# While nothing changes, this is one `stat` a file and the comparison of one digest, and not even that where
# a witness has heard of no change. What it remembers (the proof in `cache/survey-2`, the blob ids in
# `cache/blobs-2`) may be deleted at any moment.


@dataclass(frozen=True)
class FileSurvey:
    """What lies in the bank. `proof` names the state of all files; it is empty while one of them may change
    again without a trace and nobody would hear of it."""

    sight: Sight
    proof: str = ""

    @property
    def changed(self) -> Mapping[str, int]:
        """The paths that differ from the trail (gone ones too)."""
        return self.sight.seen.changed

    @property
    def held(self) -> Mapping[str, str]:
        """{path: the trail's blob id} of those whose facts disappeared all at once."""
        return self.sight.seen.held

    @cached_property
    def files(self) -> tuple[FileStat, ...]:
        """The files that may be searched, by path: those on disk, with the trail's where they are held."""
        shown = [f for f in self.sight.files if f.path not in self.held]
        shown += [FileStat(path, 0, 0, 0, int(blob, 16)) for path, blob in self.held.items()]
        return tuple(sorted(shown, key=lambda f: f.path))

    def changed_at(self, path: str) -> int:
        """When a changed path was last changed, in ns since the epoch; if it is gone, its folder."""
        return self.changed.get(path, 0)

    def touched(self, proof: str) -> frozenset[str] | None:
        """The paths of which something may be another since the state that an earlier proof names; None where
        that is not known."""
        return self.sight.since.get(proof)

    def some(self, paths: Iterable[str]) -> tuple[FileStat, ...]:
        """Those of the files that have these paths; quick where they are few that were touched."""
        known = self.sight.blobs or {}
        return tuple(FileStat(path, *known[path][:4]) for path in sorted(paths))

    @cached_property
    def passing(self) -> frozenset[str]:
        """The paths of files that may change again without a trace, and will be looked at again."""
        return frozenset(os.fsdecode(name).removeprefix("./") for name in self.sight.open)


def survey(bank: Bank, history: History, few: int, witness: Witness[Sight] | None = None) -> FileSurvey:
    """Compare disk and trail. Before the first revision nothing differs and nothing is held.

    With a `witness` who has heard of no change, the files are not looked at again; of changes to some
    files, only those.
    """
    waiting = pending.keys(bank.pending)
    head = " ".join([history.head() or "", *waiting])
    at = witness.marks() if witness else None
    last, heard = witness.last(at) if witness else (None, None)
    sight: Sight | None = None
    if witness and last and heard is not None and last.seen.few == few:
        stands = last.seen.head == head and not heard and not last.open
        witness.spared += stands
        sight = last if stands else carried(bank, history, last, head, heard)
    sight = sight or whole(bank, history, few, head, waiting, last)
    if witness:
        witness.keep(sight, at)
    if sight.trail is not None:
        history.known = (sight.seen.head, sight.trail)
    return FileSurvey(sight, _named(sight) if sight.seen.stamp or at is not None else "")


def _named(sight: Sight) -> str:
    """The state's name: the files by their stamp, and the trail's content of those that are held."""
    return " ".join([sight.name, *sight.seen.held.values()])
