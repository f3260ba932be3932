"""How a recorded revision reaches the files (W4 to W6), the first time or after a crash.

Between any two lines here the process may be killed; what `resume` can then find is listed there.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ua_memory.errors import Busy, CannotWrite
from ua_memory.store import pending, swap
from ua_memory.store.caught import Ground, given_back, merged, named
from ua_memory.store.pending import FileChange, InFlight
from ua_memory.store.reading import abandoned, read
from ua_memory.store.threeway import merge

ROUNDS = 100
DURABLE_ROUNDS = 3
"""So often a person may save the same file while one revision is being written."""
_MARK = re.compile(r"-[0-9a-f]{10}")
"""In a name beside a file: which file it is of, as `_mark` writes it."""


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


def let_be(record: InFlight, ground: Ground, there: Callable[[str], bytes | None]) -> InFlight:
    """The same where git has switched branches since: the files are another branch's, and stay so. A person's
    save that came out goes into the commits; `there` tells what git itself has put in place."""
    for number, change in enumerate(record.changes):
        out = _out(change, record.key, ground)
        came = read(out) if out.exists() and not swap.same_file(out, ground.root / change.path) else None
        known = (change.start, change.aim, change.trail, change.placed, change.wanted, there(change.path))
        if came and came not in known:
            record = merged(record, number, came, ground)
        change = record.changes[number]
        record = record.with_change(number, replace(change, placed=change.wanted))
    return record


def _look(record: InFlight, number: int, ground: Ground) -> InFlight:
    """Look at what came out, and merge a person's save until none comes any more (step W6)."""
    for turn in range(ROUNDS):
        change = record.changes[number]
        file, out = ground.root / change.path, _out(change, record.key, ground)
        came = swap.came_out(file, out)
        # A file that was gone for a moment: an editor that renames the old one away, or a deletion within
        # these milliseconds, which its owner will have to repeat.
        by_git = came not in (change.placed, change.wanted) and ground.stirred(record)
        if not by_git and (came is None or came in (change.placed, change.wanted)):
            if turn > DURABLE_ROUNDS:
                swap.settle(file.parent)
            return named(record, number)
        if came is None or by_git:
            record = given_back(record, number, came)
        else:
            record = merged(record, number, came, ground)
        # Who saves faster than a disk can sync would keep us here; a kill finds the record in any case.
        pending.save(ground.pending, record, durably=turn < DURABLE_ROUNDS)
        record = _forget_taken(record, number, out, ground)
        change = record.changes[number]
        if change.wanted == change.placed:
            return named(record, number)
        _lay(change, record.key, ground)
        swap.enter(file, _out(change, record.key, ground))
        if turn < DURABLE_ROUNDS:
            swap.settle(file.parent)
    raise Busy("the file is being saved again and again", where=record.changes[number].path, mend="try again")


def _forget_taken(record: InFlight, number: int, out: Path, ground: Ground) -> InFlight:
    """Remove a save that is merged and recorded, and to which nobody can write any more; else a person
    who saves faster than we write would make the record longer and the next round slower. The bytes of the
    last one are kept: the next may be made from it."""
    change = record.changes[number]
    if not abandoned(out) or read(out) != change.taken[-1]:
        return record
    with contextlib.suppress(OSError):
        out.unlink()
    *before, last = change.taken
    kept = (
        data if _out(change, record.key, ground, turn).exists() else None for turn, data in enumerate(before)
    )
    return record.with_change(number, replace(change, taken=(*kept, last)))


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


def _out(change: FileChange, key: str, ground: Ground, turn: int | None = None) -> Path:
    file = ground.root / change.path
    return file.with_name(f"{_prefix(swap.OUT, key)}{change.turn if turn is None else turn}{_mark(file)}")


def _lying(record: InFlight, ground: Ground) -> dict[Path, list[Path]]:
    """What lies beside each file of a revision. Each folder is read once for all of its files: once for each
    of them, 2,000 imported notes took five minutes."""
    files = [ground.root / change.path for change in record.changes]
    marks = {(file.parent, _mark(file)): file for file in files}
    found: dict[Path, list[Path]] = {}
    for folder in dict.fromkeys(file.parent for file in files):
        for out in swap.beside(folder, *(_prefix(kind, record.key) for kind in (swap.FRESH, swap.OUT))):
            mark = _MARK.search(out.name, out.name.index(record.key) + len(record.key))
            if mark and (file := marks.get((folder, mark[0]))):
                found.setdefault(file, []).append(out)
    return found


def _prefix(kind: str, key: str) -> str:
    return f"{kind}{key}."


def _mark(file: Path) -> str:
    # Not the name itself: it may be as long as a name can be.
    return "-" + hashlib.sha256(file.name.encode("utf-8", "surrogateescape")).hexdigest()[:10]
