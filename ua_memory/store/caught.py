"""A person's save that came while we wrote the file: what it was made from, and which commit has it.

It was made from what the editor had read, and that stood in the file since the person's save before: their
own last save, or what took its place, which lacks that save until it is merged in (docs/decisions/0014).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ua_memory.history import Commit, blob_id
from ua_memory.store import flight, saves
from ua_memory.store.draft import Touched
from ua_memory.store.pending import FileChange, InFlight
from ua_memory.store.threeway import merge

SHOWN_MOST = 4
"""So many contents that stood for a moment are named, the newest: the next save was made from one of the last
two. All of them made the record of one write, which an editor kept meeting, grow with each round of it."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Where revisions land. `judge(path, bytes, trail, amid)` tells what a person's save is that came when
    these contents had stood in the file."""

    root: Path
    pending: Path
    judge: Callable[[str, bytes | None, bytes | None, Sequence[bytes]], Touched]
    person: flight.Person
    stirred: Callable[[InFlight], bool] = lambda _: False
    """Whether a git may have moved files since the revision began: what comes out then may be its doing."""


def merged(record: InFlight, number: int, came: bytes, ground: Ground) -> InFlight:
    """The record after a person's save was found: it goes into the file, and into a commit of theirs."""
    change = record.changes[number]
    if not record.commits or _on_top(record, change, came):
        # Made from what we had put in place: an edit that came after ours, and is committed after it.
        newer = merge(_read_before(record, change, came), change.wanted or b"", came).data
        if record.commits and not (_lacking(change.wanted, newer) and _held(change, newer, ground)):
            record = _with_after(record, change, newer, ground)
        record = _showing(record, change, came)
        return record.with_change(number, change.next(came, newer))
    own = record.commits[-1]
    earlier = record.commits[:-1]
    before = [change.trail, *(c.files[change.path] for c in earlier if change.path in c.files)]
    if change.start == change.aim and change.path in own.files:
        before.append(
            own.files[change.path]
        )  # the last one is a person's, too, or puts back what they dropped
    # Another editor may have read the file before a save that we have taken in already.
    touched = ground.judge(change.path, came, before[-1], _stood(change, before))
    wanted: bytes | None = merge(change.start or b"", change.aim or b"", touched.start or b"").data
    if change.aim is None and not (wanted or b"").strip():
        wanted = None
    earlier = earlier[: len(earlier) - _superseded(earlier, change.path, came)]
    theirs = []
    if not touched.held:
        edited = [change.trail, *(c.files[change.path] for c in earlier if change.path in c.files)]
        trail = {change.path: edited[-1]}
        theirs.append(
            flight.edit_commit({change.path: touched.saved}, trail, own.when, _person(record, ground))
        )
    if touched.put_back:
        theirs += flight.put_back_commits([touched], own.when, lambda: _person(record, ground))
    record = replace(record, commits=(*earlier, *theirs, own))
    record = record.with_file(change.path, flight.for_trail(wanted, touched))
    return _showing(record, change, came).with_change(number, change.next(came, wanted))


def given_back(record: InFlight, number: int, came: bytes | None) -> InFlight:
    """The record once what came out is to stand in the file again: git may have put it there, on its way to
    another branch. Whoever did, nothing is lost: the trail has ours, and the next look at the file tells."""
    return record.with_change(number, record.changes[number].next(came, came))


def _held(change: FileChange, newer: bytes, ground: Ground) -> bool:
    return ground.judge(change.path, newer, change.wanted, ()).held


def _stood(change: FileChange, before: Sequence[bytes | None]) -> list[bytes]:
    """What stood in the file since the write began, the newest first. The saves that are `taken` care of may
    be told from their commits alone."""
    every = (*reversed(change.taken), change.placed, change.start, *reversed(before))
    return [*dict.fromkeys(data for data in every if data)]


def _read_before(record: InFlight, change: FileChange, came: bytes) -> bytes:
    """What a save was made from: of what stood in the file, that which it is most like."""
    theirs = [c.files[change.path] for c in (*record.commits[:-1], *record.after) if change.path in c.files]
    stood = _stood(change, [change.trail, *theirs])
    stood += [saves.so_far(change.trail or b"", data, came) for data in stood]
    return min(stood, key=lambda data: saves.unlike(data, came), default=b"")


def _lacking(data: bytes | None, other: bytes) -> Counter[bytes]:
    return Counter((data or b"").splitlines()) - Counter(other.splitlines())


def _on_top(record: InFlight, change: FileChange, came: bytes) -> bool:
    """Whether a save was made after ours was in place: it has what this revision adds, or goes on from one
    that has; where nothing was added, it looks like what stood there."""
    if any(change.path in commit.files for commit in record.after):
        return True
    added = set[saves.Key]()
    if change.path.endswith(".md"):
        added = saves.keys(change.aim, change.path).keys() - saves.keys(change.start, change.path).keys()
    if added:
        return not added.isdisjoint(saves.keys(came, change.path))
    return change.turn > 0 and _read_before(record, change, came) == change.placed


def _with_after(record: InFlight, change: FileChange, data: bytes, ground: Ground) -> InFlight:
    """The record with one commit of the person's after ours, which leaves the file so."""
    blobs = [b for c in (record.commits[-1], *record.after) if change.path in c.files for b in c.blobs]
    edit = _edit_after(record, change, data, _person(record, ground), naming=False)
    others = (commit for commit in record.after if change.path not in commit.files)
    return replace(record, after=(*others, _with_shown(edit, blobs)))


def _edit_after(
    record: InFlight, change: FileChange, data: bytes | None, author: tuple[str, str], *, naming: bool
) -> Commit:
    own, path = record.commits[-1], change.path
    trail = {path: own.files.get(path, change.trail)}
    return flight.edit_commit({path: data}, trail, own.when, author, naming=naming)


def named(record: InFlight, number: int) -> InFlight:
    """The record once no more saves come: what is committed after ours names its facts. In each round that
    would make it longer, and so meet the next save: of a long file it was most of the round's work."""
    change = record.changes[number]
    after = []
    for c in record.after:
        if change.path in c.files and record.commits:
            edit = _edit_after(record, change, c.files[change.path], c.author, naming=True)
            c = _with_shown(edit, c.blobs)
        after.append(c)
    return replace(record, after=tuple(after))


def _person(record: InFlight, ground: Ground) -> tuple[str, str]:
    """Who the person is: asked of git once, since each round that takes longer may meet the next save."""
    edits = (
        c for c in (*record.commits, *record.after) if flight.trailers(c).get("Memory-Op") == (saves.EDIT,)
    )
    return next((c.author for c in edits), None) or ground.person()


def _showing(record: InFlight, change: FileChange, came: bytes) -> InFlight:
    """The record with a note of what stood in the file for a moment, in the newest commit of that file: an
    editor may have read just that, and its next save then lacks what is merged in now. `saves.stale` looks
    for it."""
    all_ = [*record.commits, *record.after]
    own = len(record.commits)
    at = max((n for n, commit in enumerate(all_) if change.path in commit.files), default=None)
    if at is None:
        return record
    committed = any(commit.files.get(change.path) == came for commit in all_)
    stood = (change.wanted, None if committed else came)
    all_[at] = _with_shown(all_[at], [data for data in stood if data])
    return replace(record, commits=tuple(all_[:own]), after=tuple(all_[own:]))


def _with_shown(commit: Commit, contents: Sequence[bytes]) -> Commit:
    newest = list(dict.fromkeys(reversed((*commit.blobs, *contents))))[:SHOWN_MOST]
    old = {_note(data) for data in commit.blobs}
    said = [line for line in commit.message.splitlines() if line not in old]
    blobs = tuple(reversed(newest))
    return replace(commit, message="\n".join([*said, *map(_note, blobs)]) + "\n", blobs=blobs)


def _note(data: bytes) -> str:
    return f"{saves.SHOWN}: {blob_id(data)}"


def _superseded(commits: tuple[Commit, ...], path: str, came: bytes) -> int:
    """How many of the last commits are saves of the same file, and what was put back into them, that a
    later save holds whole: one commit for all of them loses nothing."""
    lines = Counter(came.splitlines())
    number = 0
    for commit in reversed(commits):
        op = flight.trailers(commit).get("Memory-Op", ("",))[0]
        if set(commit.files) != {path} or op not in (saves.EDIT, saves.MERGED):
            break
        if op == saves.EDIT and Counter((commit.files[path] or b"").splitlines()) - lines:
            return 0
        number += 1
    return number
