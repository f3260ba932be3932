"""What is seen of all truth files and the trail in one look, whole or carried on.

A whole one takes a `stat` of each file and the trail's list of all. Who vouches for which files were touched
since (`Witness`) has it carried on: only those are looked at and read, and of the trail only what came. What
can be told in no other way (a name that came or went, a file with two names, anything held, owed or
unreadable) takes a whole one.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.errors import GitFailed
from ua_memory.history import History, blob_id
from ua_memory.paths import Bank
from ua_memory.store import memo, pending, proof, verdict
from ua_memory.store.memo import Blobs, Seen
from ua_memory.store.proof import FileStat
from ua_memory.store.swap import refused

if TYPE_CHECKING:
    from ua_memory.stamps import Row

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
        return proof.listing(root)
    except OSError as error:
        refused(error, Path(os.fsdecode(error.filename or root)))


# -- the whole of it -----------------------------------------------------------------------------------------


def whole(
    bank: Bank, history: History, few: int, head: str, waiting: Sequence[str], last: Sight | None
) -> Sight:
    """Look at every file. Where all are as they were in the `last` look, or in the remembered one, so are the
    verdicts."""
    known = last.seen if last and last.seen.holds(head, few) else memo.seen(bank.cache)
    if known.stamp and known.holds(head, few):
        rows = proof.look(bank.root, known.names)
        if proof.stamp(rows) == known.stamp:
            return last if last and known is last.seen else Sight(bank.root, known, rows, frozenset())
    began = memo.now(bank.cache)
    listed = names(bank.root)
    rows = proof.look(bank.root, listed)
    unsure = _open(zip(listed, rows, strict=True), began)
    look = Sight(bank.root, Seen(listed, "" if unsure else proof.stamp(rows)), rows, unsure)
    owed = pending.owed(pending.found(bank.pending)) if waiting else {}
    blobs, unread = verdict.blobs_of(bank, look.files)
    try:
        # By its id: the branch may move meanwhile, and move back.
        commit = head.partition(" ")[0]
        trail = history.blobs(rev=commit if _COMMIT.fullmatch(commit) else "HEAD") if history.exists else {}
        trail |= {path: blob_id(data) for path, data in owed.items() if data is not None}
        unread |= _within(proof.closed(bank.root, _folders(listed, rows)), trail)
        out = {path for path, data in owed.items() if data is None} | unread
        mine = {path: name for path, name in trail.items() if path not in out}
        changed = verdict.differing(bank.root, blobs.keys() | mine.keys(), blobs, mine)
        held = verdict.held_back(bank, history, changed, mine, few, owed)
    except GitFailed:  # no git: nothing can be told apart now, and nothing is remembered of that
        return look
    seen = Seen(listed, look.seen.stamp, head, few, changed, held)
    memo.keep_seen(bank.cache, seen)
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
    late = began - proof.RACY_NS
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
    began = memo.now(bank.cache)
    rows, fresh = list(last.rows), {}
    for name in again:
        was, row = rows[last.places[name]], _alone(bank.root, name)
        if row is None or was is None or stat.S_IFMT(row[0]) != stat.S_IFMT(was[0]):
            return None
        rows[last.places[name]] = row
        if stat.S_ISREG(row[0]) and sayable(path := os.fsdecode(name).removeprefix("./")):
            blob = verdict.blob_of(bank.root, FileStat(path, *row[1:]))
            if blob is None or path not in last.blobs:
                return None
            fresh[path] = blob
    blobs = {**last.blobs, **fresh}
    try:
        moved = history.moved(seen.head, head) if head != seen.head else {}
        trail = {path: name for path, name in {**last.trail, **moved}.items() if name}
        judged = seen.changed.keys() | fresh.keys() | moved.keys()
        changed = verdict.differing(bank.root, judged, blobs, trail)
        if verdict.held_back(bank, history, changed, trail, seen.few, {}):
            return None
    except GitFailed:
        return None
    unsure = _open(((name, rows[last.places[name]]) for name in again), began)
    found = Seen(seen.names, "" if unsure else proof.stamp(rows), head, seen.few, changed)
    if found.stamp:
        memo.keep_seen(bank.cache, found)
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
