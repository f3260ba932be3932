"""One look at all truth files: which there are, which differ from the trail, which are held back.

While nothing changes, this is one `stat` a file and the comparison of one digest. What it remembers (the
proof in `cache/survey`, the blob ids in `cache/blobs`) may be deleted at any moment.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.errors import CannotWrite, GitFailed, TooLarge
from ua_memory.history import History, blob_id
from ua_memory.paths import SETTINGS, Bank, is_truth
from ua_memory.store import pending, proof, saves
from ua_memory.store.reading import MAX_FILE, read
from ua_memory.store.saves import Edit
from ua_memory.store.swap import refused
from ua_memory.store.witness import Witness

if TYPE_CHECKING:
    from ua_memory.stamps import Row


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


@dataclass(frozen=True)
class Survey:
    """What lies in the bank. `changed` are paths that differ from the trail (gone ones too); `held` is
    {path: the trail's blob id} of those whose facts disappeared all at once. `proof` names the state of all
    files; it is empty while one of them may change again without a trace."""

    root: Path
    changed: Mapping[str, int]
    held: Mapping[str, str]
    proof: str = ""
    looked: Sequence[FileStat] | None = field(default=None, repr=False)
    """The files on disk, if each of them was looked at for this."""

    @cached_property
    def files(self) -> tuple[FileStat, ...]:
        """The files that may be searched, by path: those on disk, with the trail's where they are held."""
        there = scan(self.root) if self.looked is None else self.looked
        shown = [f for f in there if f.path not in self.held]
        shown += [FileStat(path, 0, 0, 0, int(blob, 16)) for path, blob in self.held.items()]
        return tuple(sorted(shown, key=lambda f: f.path))

    def changed_at(self, path: str) -> int:
        """When a changed path was last changed, in ns since the epoch; if it is gone, its folder."""
        return self.changed.get(path, 0)


@dataclass(slots=True)
class Seen:
    """The remembered verdicts and what they hold for: the names and stamp of all files, the trail's head."""

    names: list[bytes] = field(default_factory=list)
    stamp: str = ""
    head: str = ""
    few: int = -1
    changed: dict[str, int] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)


Blobs = dict[str, tuple[int, int, int, int, str]]
"""{path: size, times, inode and blob id} of each file as it was last read."""


def scan(root: Path) -> list[FileStat]:
    """Every truth file on disk, by path. No symbolic links, nothing hidden, no folder that is a link."""
    return _files(root, *_look(root))


def _look(root: Path) -> tuple[list[bytes], list[Row]]:
    """The names of all files and folders, and what each of them is now. CannotWrite if one is unreadable."""
    try:
        names = proof.listing(root)
    except OSError as error:
        refused(error, Path(os.fsdecode(error.filename or root)))
    return names, proof.look(root, names)


def _files(root: Path, names: Sequence[bytes], rows: Sequence[Row]) -> list[FileStat]:
    """The truth files in a look, by path."""
    try:
        # Where case is folded, both names of core memory answer to `lstat`, and one of them is there.
        top = os.listdir(root)  # noqa: PTH208 (only names are wanted)
    except OSError as error:
        refused(error, root)
    found: list[FileStat] = []
    for name, row in zip(names, rows, strict=True):
        path = os.fsdecode(name)
        if row and stat.S_ISREG(row[0]) and _sayable(path):
            if not path.startswith("./"):
                found.append(FileStat(path, *row[1:]))
            elif path[2:] in top:
                found.append(FileStat(path[2:], *row[1:]))
    return sorted(found, key=lambda f: f.path)


def _sayable(path: str) -> bool:
    """Whether a name can stand in a link, a trailer and a line of output: no control characters, no
    backslash, valid UTF-8."""
    if path.isprintable() and "\\" not in path:
        return True
    return not any(c < " " or c == "\\" or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff" for c in path)


def survey(bank: Bank, history: History, few: int, witness: Witness[Seen] | None = None) -> Survey:
    """Compare disk and trail. Before the first revision nothing differs and nothing is held.

    With a `witness` who has heard of no change, the files are not looked at again.
    """
    waiting = pending.keys(bank.pending)
    head = " ".join([history.head() or "", *waiting])
    at = witness.marks() if witness else None
    seen, files = witness.standing(at) if witness else None, None
    if not seen or (seen.head, seen.few) != (head, few):
        seen, files = _looked(bank, history, few, head, waiting)
        if witness and seen.stamp:
            witness.keep(seen, at)
    return Survey(bank.root, seen.changed, seen.held, _named(seen), files)


def _looked(
    bank: Bank, history: History, few: int, head: str, waiting: list[str]
) -> tuple[Seen, list[FileStat] | None]:
    """The files against the trail, by what is remembered of both; and each file's stat, if all were read."""
    seen = _remembered(bank.cache)
    known = bool(seen.stamp) and (seen.head, seen.few) == (head, few)
    files: list[FileStat] | None = None
    if not known or proof.stamp(proof.look(bank.root, seen.names)) != seen.stamp:
        began = _now(bank)
        names, rows = _look(bank.root)
        files = _files(bank.root, names, rows)
        owed = pending.owed(pending.found(bank.pending)) if waiting else {}
        stamp = proof.stamp(rows)
        sure = stamp if proof.settled(rows, began) else ""
        try:
            changed, held = _compare(bank, history, few, owed, files)
        except GitFailed:  # no git: nothing can be told apart now, and nothing is remembered of that
            return Seen(stamp=sure), files
        seen = Seen(names, sure, head, few, changed, held)
        _remember(bank.cache, "survey", [getattr(seen, name) for name in Seen.__slots__])
    return seen, files


def _named(seen: Seen) -> str:
    """The state's name: the files by their stamp, and the trail's content of those that are held."""
    return " ".join([seen.stamp, *seen.held.values()]) if seen.stamp else ""


def _now(bank: Bank) -> int:
    try:
        _make(bank.cache)
        return proof.filesystem_now(bank.cache)
    except OSError:
        return time.time_ns()  # a folder we cannot write to: its files' clock cannot be asked


def _compare(
    bank: Bank, history: History, few: int, owed: Mapping[str, bytes | None], files: Sequence[FileStat]
) -> tuple[dict[str, int], dict[str, str]]:
    """(what differs from the trail and when it changed, what is held)."""
    blobs, unread = _read_blobs(bank, files)
    trail = history.blobs() if history.exists else {}
    trail |= {path: blob_id(data) for path, data in owed.items() if data is not None}
    gone = {path for path, data in owed.items() if data is None}
    out, times = gone | unread, {f.path: f.changed_ns for f in files}
    mine = {p: name for p, name in trail.items() if (p in times or is_truth(p)) and p not in out}
    changed = {p: times[p] for p, row in blobs.items() if mine.get(p) != row[4]}
    changed |= {path: _folder_time(bank.root / path) for path in mine.keys() - blobs.keys()}
    return changed, _held(bank, history, changed, mine, few, owed)


def _read_blobs(bank: Bank, files: Sequence[FileStat]) -> tuple[Blobs, set[str]]:
    """The blob id of every file, read only where its stat is new, and the paths that could not be read."""
    before: Blobs = _recalled(bank.cache, "blobs") or {}
    blobs: Blobs = {}
    unread: set[str] = set()
    horizon = time.time_ns() - proof.RACY_NS
    for f in files:
        stat = (f.size, f.mtime_ns, f.ctime_ns, f.inode)
        known = before.get(f.path)
        if known and known[:4] == stat and f.changed_ns < horizon:
            blobs[f.path] = known
        elif (data := _data(bank, f)) is not None:
            # Read within its own time stamp it may change again unseen: remembered so that it is read again.
            blobs[f.path] = (*stat, blob_id(data))
        else:
            unread.add(f.path)
    if blobs != before:
        _remember(bank.cache, "blobs", {p: row for p, row in blobs.items() if max(row[1], row[2]) < horizon})
    return blobs, unread


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
    held = {path for path in held if not saves.stale(found[path], saves.Past(path, history, None))}
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


def _remembered(cache: Path) -> Seen:
    raw = _recalled(cache, "survey")
    return Seen(*raw) if isinstance(raw, list) and len(raw) == len(Seen.__slots__) else Seen()


def _recalled(cache: Path, name: str) -> Any:
    try:
        return marshal.loads((cache / name).read_bytes())
    except (OSError, ValueError, EOFError, TypeError):
        return None


def _remember(cache: Path, name: str, what: Any) -> None:
    # A cache: where it cannot be written, the next look does the work again.
    with contextlib.suppress(OSError):
        _make(cache)
        fresh = cache / f"{name}.{os.getpid()}.fresh"
        fresh.touch(mode=0o600)
        fresh.write_bytes(marshal.dumps(what))
        fresh.replace(cache / name)


def _make(cache: Path) -> None:
    # `parents` would make the state folder with the mode of any other.
    cache.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    cache.mkdir(exist_ok=True, mode=0o700)
