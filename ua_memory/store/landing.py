"""How a recorded revision reaches the files (W4 to W6), the first time or after a crash.

Between any two lines here the process may be killed; what `resume` can then find is listed there.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ua_memory.errors import Busy, CannotWrite
from ua_memory.history import Commit, blob_id
from ua_memory.store import flight, pending, saves, swap
from ua_memory.store.draft import Touched
from ua_memory.store.pending import FileChange, InFlight
from ua_memory.store.reading import abandoned, read
from ua_memory.store.threeway import merge

ROUNDS = 100
DURABLE_ROUNDS = 3
"""So often a person may save the same file while one revision is being written."""
_MARK = re.compile(r"-[0-9a-f]{10}")
"""In a name beside a file: which file it is of, as `_mark` writes it."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Where revisions land. `judge(path, bytes, trail)` tells what a person's save is."""

    root: Path
    pending: Path
    judge: Callable[[str, bytes | None, bytes | None], Touched]
    person: flight.Person


def land(record: InFlight, ground: Ground) -> InFlight:
    """Write all files, then exchange them, then look at what came out; the record with what was merged.

    CannotWrite before the first exchange withdraws the revision whole; after it the next command goes on.
    """
    begun = False
    waiting = [c for c in record.changes if c.wanted != c.placed]
    try:
        for change in waiting:
            _lay(change, record.key, ground)
        for change in waiting:
            swap.enter(ground.root / change.path, _out(change, record.key, ground))
            begun = True
    except CannotWrite:
        if not begun:
            _withdraw(record, ground)
        raise
    for folder in {(ground.root / change.path).parent: None for change in waiting}:
        swap.settle(folder)
    for number, change in enumerate(record.changes):
        if change.wanted != change.placed:
            record = _look(record, number, ground)
    return record


def resume(record: InFlight, ground: Ground) -> InFlight:
    """Finish the files of a revision whose process died. For each file one of these is found:

    - nothing beside it under this turn's name, or there what is wanted and not yet in place: exchange now;
    - beside it what was in place, or the file itself under a second name: done;
    - beside it anything else: a person's save that was exchanged away and not yet merged.
    """
    for number, change in enumerate(record.changes):
        if change.wanted == change.placed:
            continue
        file, out = ground.root / change.path, _out(change, record.key, ground)
        if not out.exists():
            _lay(change, record.key, ground)
            swap.enter(file, out)
        elif not swap.same_file(out, file) and read(out) == change.wanted != read(file):
            swap.enter(file, out)
        swap.settle(file.parent)
        record = _look(record, number, ground)
    return record


def _look(record: InFlight, number: int, ground: Ground) -> InFlight:
    """Look at what came out, and merge a person's save until none comes any more (step W6)."""
    for turn in range(ROUNDS):
        change = record.changes[number]
        file, out = ground.root / change.path, _out(change, record.key, ground)
        came = swap.came_out(file, out)
        # A file that was gone for a moment: an editor that renames the old one away, or a deletion within
        # these milliseconds, which its owner will have to repeat.
        if came is None or came in (change.placed, change.wanted):
            if turn > DURABLE_ROUNDS:
                swap.settle(file.parent)
            return record
        record = _merged(record, number, came, ground)
        # Who saves faster than a disk can sync would keep us here; a kill finds the record in any case.
        pending.save(ground.pending, record, durably=turn < DURABLE_ROUNDS)
        record = _forget_taken(record, number, out, came)
        change = record.changes[number]
        if change.wanted == change.placed:
            return record
        _lay(change, record.key, ground)
        swap.enter(file, _out(change, record.key, ground))
        if turn < DURABLE_ROUNDS:
            swap.settle(file.parent)
    raise Busy("the file is being saved again and again", where=record.changes[number].path, mend="try again")


def _merged(record: InFlight, number: int, came: bytes, ground: Ground) -> InFlight:
    """The record after a person's save was found: it goes into the file, and into a commit of theirs."""
    change = record.changes[number]
    if not record.commits or _holds_ours(change, came):
        # Made from what we had put in place: an edit that came after ours, and is committed after it.
        newer = merge(change.placed or b"", change.wanted or b"", came).data
        record = _with_after(record, change, newer, ground) if record.commits else record
        return record.with_change(number, change.next(came, newer))
    touched = ground.judge(change.path, came, change.trail)
    wanted: bytes | None = merge(change.start or b"", change.aim or b"", touched.start or b"").data
    if change.aim is None and not (wanted or b"").strip():
        wanted = None
    own = record.commits[-1]
    earlier = record.commits[:-1]
    earlier = earlier[: len(earlier) - _superseded(earlier, change.path, came)]
    before = [c.files[change.path] for c in earlier if change.path in c.files]
    theirs = []
    if not touched.held:
        trail = {change.path: before[-1] if before else change.trail}
        theirs.append(flight.edit_commit({change.path: came}, trail, own.when, ground.person()))
    if touched.dropped:
        theirs.append(flight.put_back_commit([touched], own.when))
    if change.wanted is not None and change.path in own.files:
        own = _with_shown(own, (change.wanted,))
    record = replace(record, commits=(*earlier, *theirs, own))
    record = record.with_file(change.path, flight.for_trail(wanted, touched))
    if any(change.path in commit.files for commit in record.after):
        wanted = merge(change.placed or b"", change.wanted or b"", wanted or b"").data
        record = _with_after(record, change, wanted, ground)
    return record.with_change(number, change.next(came, wanted))


def _with_after(record: InFlight, change: FileChange, data: bytes, ground: Ground) -> InFlight:
    """The record with one commit of the person's after ours, which leaves the file so."""
    own, path = record.commits[-1], change.path
    earlier = [commit for commit in record.after if path in commit.files]
    trail = {path: own.files.get(path, change.trail)}
    edit = flight.edit_commit({path: data}, trail, own.when, ground.person())
    shown = [b for commit in (own, *earlier) for b in commit.blobs]
    edit = _with_shown(edit, [*shown, *([change.wanted] if change.wanted is not None else [])])
    return replace(record, after=(*(c for c in record.after if path not in c.files), edit))


def _with_shown(commit: Commit, contents: Sequence[bytes]) -> Commit:
    """The commit with a note of what stood in the file for a moment: an editor may have read just that, and
    its next save then lacks what is merged in now. `saves.stale` looks for it."""
    new = [data for data in dict.fromkeys(contents) if data not in commit.blobs]
    notes = "".join(f"{saves.SHOWN}: {blob_id(data)}\n" for data in new)
    return replace(commit, message=commit.message.rstrip("\n") + "\n" + notes, blobs=(*commit.blobs, *new))


def _forget_taken(record: InFlight, number: int, out: Path, came: bytes) -> InFlight:
    """Remove a save that is merged and recorded, and to which nobody can write any more; else a person
    who saves faster than we write would make the record longer and the next round slower."""
    change = record.changes[number]
    if not abandoned(out) or read(out) != came:
        return record
    with contextlib.suppress(OSError):
        out.unlink()
    return record.with_change(number, replace(change, taken=(*change.taken[:-1], None)))


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


def _holds_ours(change: FileChange, came: bytes) -> bool:
    """Whether a save has in it what this revision adds: then it was made after ours was in place."""
    if not change.path.endswith(".md"):
        return False
    added = saves.keys(change.aim, change.path).keys() - saves.keys(change.start, change.path).keys()
    return not added.isdisjoint(saves.keys(came, change.path))


# -- what lies beside ------------------------------------------------------------------------------------


def clear(record: InFlight, ground: Ground) -> tuple[InFlight, bool]:
    """Remove what lies beside the files; (the record, whether nothing is left).

    A program that had the old file open and wrote to it after the exchange has written there. Once no
    commit is owed any more its words are merged back into the file, where the next command finds them
    as a hand edit; while it has the file open, it stays.
    """
    done = True
    seen: set[Path] = set()
    looked, lying = record, _lying(record, ground)
    for number, change in enumerate(record.changes):
        while fresh := [p for p in lying.get(ground.root / change.path, ()) if p not in seen]:
            seen.update(fresh)
            for out in fresh:
                record, gone = _clear_one(record, number, out, ground)
                done = done and gone
            if record is not looked:  # late words were put in, by one more turn, which leaves something too
                looked, lying = record, _lying(record, ground)
    return record, done


def _clear_one(record: InFlight, number: int, out: Path, ground: Ground) -> tuple[InFlight, bool]:
    change = record.changes[number]
    if not out.name.startswith(swap.FRESH) and not swap.same_file(out, ground.root / change.path):
        if not abandoned(out):
            return record, False
        late = read(out)
        known = (change.start, change.aim, change.trail, change.placed, change.wanted, *change.taken)
        if late and late.strip() and late not in known:
            if record.commits:
                return record, False
            record = _take_late(record, number, out, late, ground)
    try:
        out.unlink(missing_ok=True)
    except OSError:
        return record, False
    return record, True


def _take_late(record: InFlight, number: int, out: Path, late: bytes, ground: Ground) -> InFlight:
    """Merge words that were written into an exchanged-away file: one more turn of the same change."""
    change = record.changes[number]
    turn = int(out.name.removeprefix(_prefix(swap.OUT, record.key)).partition("-")[0])
    taken = [*change.taken, change.placed]
    base, taken[turn] = taken[turn], late
    now = read(ground.root / change.path)
    wanted = merge(base or b"", now or b"", late).data
    new = FileChange(change.path, now, now, change.trail, now, wanted, tuple(taken))
    record = replace(record.with_change(number, new), written=False)
    pending.save(ground.pending, record)
    record = replace(resume(record, ground), written=True)
    pending.save(ground.pending, record)
    return record


def _withdraw(record: InFlight, ground: Ground) -> None:
    """Forget a revision of which nothing has happened yet."""
    with contextlib.suppress(CannotWrite):
        pending.drop(ground.pending, record.key)
    for outs in _lying(record, ground).values():
        for out in outs:
            with contextlib.suppress(OSError):
                out.unlink()


def _lay(change: FileChange, key: str, ground: Ground) -> None:
    if change.wanted is not None:
        swap.lay(ground.root / change.path, change.wanted, _out(change, key, ground))


def _out(change: FileChange, key: str, ground: Ground) -> Path:
    file = ground.root / change.path
    return file.with_name(f"{_prefix(swap.OUT, key)}{change.turn}{_mark(file)}")


def _lying(record: InFlight, ground: Ground) -> dict[Path, list[Path]]:
    """What lies beside each file of a revision. Each folder is read once for all of its files: once for each
    of them, 2,000 imported notes took five minutes."""
    files = [ground.root / change.path for change in record.changes]
    marks = {(file.parent, _mark(file)): file for file in files}
    found: dict[Path, list[Path]] = {}
    for folder in dict.fromkeys(file.parent for file in files):
        for kind in (swap.FRESH, swap.OUT):
            prefix = _prefix(kind, record.key)
            for out in swap.beside(folder, prefix):
                mark = _MARK.search(out.name, len(prefix))
                if mark and (file := marks.get((folder, mark[0]))):
                    found.setdefault(file, []).append(out)
    return found


def _prefix(kind: str, key: str) -> str:
    return f"{kind}{key}."


def _mark(file: Path) -> str:
    # Not the name itself: it may be as long as a name can be.
    return "-" + hashlib.sha256(file.name.encode("utf-8", "surrogateescape")).hexdigest()[:10]
