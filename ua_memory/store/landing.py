"""How a recorded revision reaches the files (W4 to W6), the first time or after a crash.

Between any two lines here the process may be killed; what `resume` can then find is listed there.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ua_memory.errors import Busy, CannotWrite
from ua_memory.store import flight, pending, saves, swap
from ua_memory.store.draft import Touched
from ua_memory.store.pending import FileChange, InFlight
from ua_memory.store.reading import abandoned, read
from ua_memory.store.threeway import merge

ROUNDS = 50
"""So often a person may save the same file while one revision is being written."""


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
    for _ in range(ROUNDS):
        change = record.changes[number]
        file, out = ground.root / change.path, _out(change, record.key, ground)
        came = swap.came_out(file, out)
        # A file that was gone for a moment: an editor that renames the old one away, or a deletion within
        # these milliseconds, which its owner will have to repeat.
        if came is None or came in (change.placed, change.wanted):
            return record
        record = _merged(record, number, came, ground)
        pending.save(ground.pending, record)
        change = record.changes[number]
        if change.wanted == change.placed:
            return record
        _lay(change, record.key, ground)
        swap.enter(file, _out(change, record.key, ground))
        swap.settle(file.parent)
    raise Busy("the file is being saved again and again", where=record.changes[number].path, mend="try again")


def _merged(record: InFlight, number: int, came: bytes, ground: Ground) -> InFlight:
    """The record after a person's save was found: it goes into the file, and before our commit as theirs."""
    change = record.changes[number]
    if not record.commits or _holds_ours(change, came):
        # Made from what we had put in place: an edit that came after ours, and is committed after it.
        newer = merge(change.placed or b"", change.wanted or b"", came).data
        return record.with_change(number, change.next(came, newer))
    touched = ground.judge(change.path, came, change.trail)
    wanted: bytes | None = merge(change.start or b"", change.aim or b"", touched.start or b"").data
    if change.aim is None and not (wanted or b"").strip():
        wanted = None
    own = record.commits[-1]
    before = [c.files[change.path] for c in record.commits[:-1] if change.path in c.files]
    theirs = []
    if not touched.held:
        trail = before[-1] if before else change.trail
        theirs.append(
            flight.edit_commit({change.path: came}, {change.path: trail}, own.when, ground.person())
        )
    if touched.dropped:
        theirs.append(flight.put_back_commit([touched], own.when))
    record = record.with_commits_before(theirs).with_file(change.path, flight.for_trail(wanted, touched))
    if change.turn and own.files.get(change.path) != change.wanted and not touched.held:
        wanted = merge(change.placed or b"", change.wanted or b"", wanted or b"").data
    return record.with_change(number, change.next(came, wanted))


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
    for number in range(len(record.changes)):
        seen: set[Path] = set()
        while fresh := [p for p in _beside(record.changes[number], record.key, ground) if p not in seen]:
            seen.update(fresh)
            for out in fresh:
                record, gone = _clear_one(record, number, out, ground)
                done = done and gone
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
    with contextlib.suppress(OSError):
        out.unlink()
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
    for change in record.changes:
        for out in list(_beside(change, record.key, ground)):
            with contextlib.suppress(OSError):
                out.unlink()


def _lay(change: FileChange, key: str, ground: Ground) -> None:
    if change.wanted is not None:
        swap.lay(ground.root / change.path, change.wanted, _out(change, key, ground))


def _out(change: FileChange, key: str, ground: Ground) -> Path:
    file = ground.root / change.path
    return file.with_name(f"{_prefix(swap.OUT, key)}{change.turn}{_mark(file)}")


def _beside(change: FileChange, key: str, ground: Ground) -> Iterator[Path]:
    file = ground.root / change.path
    for kind in (swap.FRESH, swap.OUT):
        yield from (p for p in swap.beside(file.parent, _prefix(kind, key)) if _mark(file) in p.name)


def _prefix(kind: str, key: str) -> str:
    return f"{kind}{key}."


def _mark(file: Path) -> str:
    # Not the name itself: it may be as long as a name can be.
    return "-" + hashlib.sha256(file.name.encode("utf-8", "surrogateescape")).hexdigest()[:10]
