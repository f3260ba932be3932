"""How a recorded revision reaches the files and the trail, the first time or after a crash.

Pure steps over one `pending.InFlight`: `store` decides when they run and holds the lock meanwhile.
Between any two lines here the process may be killed; what `resume` can then find is listed there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from ua_memory.history import MACHINE, Commit, History, blob_id
from ua_memory.paths import SETTINGS, Bank
from ua_memory.store import saves, swap
from ua_memory.store.draft import Draft, Touched
from ua_memory.store.pending import FileChange, InFlight
from ua_memory.store.threeway import merge

NAMED = 50
"""A trailer names so many facts; beyond that it gives their number."""
ROUNDS = 50
"""So often a person may save the same file while one revision is being written."""


def message(subject: str, body: str, trailers: Mapping[str, Sequence[str]]) -> str:
    """A commit message: subject, body, and trailers with ids and counts, never the text of a fact."""
    lines = [
        f"{key}: {' '.join(value.split())}" for key, values in trailers.items() for value in values if value
    ]
    return (
        "\n\n".join(part for part in (" ".join(subject.split()), body.strip(), "\n".join(lines)) if part)
        + "\n"
    )


def commits(draft: Draft, when: datetime, request: str, history: History) -> list[Commit]:
    """The commits a draft comes to: the person's edits, what stale buffers had dropped, then our own."""
    made = []
    by_hand = [t for t in draft.touched.values() if t.disk != t.trail and not t.held]
    if by_hand:
        made.append(
            edit_commit(
                {t.path: t.disk for t in by_hand}, {t.path: t.trail for t in by_hand}, when, history.person()
            )
        )
    put_back = [t for t in draft.touched.values() if t.dropped]
    if put_back:
        named = [name for t in put_back for name in t.dropped]
        trailers = {"Memory-Op": [saves.MERGED], "Door": ["store"], "Facts": brief(named)}
        text = message(
            f"merge: put back {count(len(named), 'fact')} a stale buffer had dropped", "", trailers
        )
        made.append(Commit(MACHINE, when, text, {t.path: t.start for t in put_back}))
    ours = draft.changed()
    if ours or draft.even_if_empty:
        trailers = {
            "Memory-Op": [draft.op],
            "Door": [draft.door],
            **draft.trailers,
            "Facts": brief(draft.facts),
        }
        text = message(draft.subject or draft.op, draft.body, trailers)
        author = history.person() if draft.by_person else MACHINE
        files = {path: _for_trail(data, draft.touched[path], history) for path, data in ours.items()}
        made.append(Commit(author, when, text, files))
    if made:
        # The last one carries the request, by which a retry and a resumed revision know that it stands.
        made[-1] = replace(made[-1], message=made[-1].message.rstrip("\n") + f"\nRequest: {request}\n")
    return made


def edit_commit(
    disk: Mapping[str, bytes | None],
    trail: Mapping[str, bytes | None],
    when: datetime,
    author: tuple[str, str],
) -> Commit:
    """A person's own change of some files as a commit of theirs."""
    new = [
        name
        for path, data in disk.items()
        if path != SETTINGS
        for name in saves.names(
            {k: r for k, r in saves.keys(data, path).items() if k not in saves.keys(trail[path], path)}, path
        )
    ]
    what = next(iter(disk)) if len(disk) == 1 else count(len(disk), "file")
    trailers = {"Memory-Op": [saves.EDIT], "Door": ["editor"], "Facts": brief(new)}
    return Commit(author, when, message(f"edit: {what}", "", trailers), disk)


def brief(names: Sequence[str]) -> list[str]:
    """Fact names as one trailer each, or their number where there are too many to read."""
    return list(names) if len(names) <= NAMED else [str(len(names))]


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _for_trail(data: bytes | None, touched: Touched, history: History) -> bytes | None:
    """What the trail gets of a file: our bytes, or, where a disappearance is held, our change of what it had."""
    if not touched.held or data is None:
        return data
    return merge(touched.disk or b"", data, touched.trail or b"").data


def swap_files(
    record: InFlight, bank: Bank, history: History, person: tuple[str, str]
) -> tuple[InFlight, list[str]]:
    """Exchange every file; a person's save that comes out is merged, and committed as theirs before ours."""
    saves: dict[str, bytes | None] = {}
    final: dict[str, bytes | None] = {}
    for change in record.changes:
        saved, wanted = _swap(change, change.disk, 0, record.key, bank, history)
        if saved is not change:
            saves[change.path], final[change.path] = saved.disk, wanted
    return _with_saves(record, saves, final, person), [
        f"{path} was saved meanwhile; both changes are in it" for path in saves
    ]


def _with_saves(
    record: InFlight,
    saves: Mapping[str, bytes | None],
    final: Mapping[str, bytes | None],
    person: tuple[str, str],
) -> InFlight:
    if saves and record.commits:
        before = {c.path: c.disk for c in record.changes if c.path in saves}
        theirs = edit_commit(saves, before, record.commits[-1].when, person)
        record = replace(
            record.final(final), commits=(*record.commits[:-1], theirs, record.final(final).commits[-1])
        )
    return replace(record, written=True)


def _swap(
    change: FileChange, expected: bytes | None, first: int, key: str, bank: Bank, history: History
) -> tuple[FileChange, bytes | None]:
    """Put `change.wanted` where `expected` is; (the change, or one with the person's last save as `disk`; the final bytes)."""
    file, wanted, base, result = bank.root / change.path, change.wanted, change.disk, change
    for turn in range(first, first + ROUNDS):
        came = swap.put(file, wanted, f"{key}.{turn}")
        if came == expected:
            break
        result = replace(change, disk=came)
        if came is None and expected is not None:  # deleted under our hands: what we add stays, on its own
            break
        merged = merge(base or b"", wanted or b"", came or b"").data
        wanted, base, expected = merged, came, wanted
    return result, wanted


def resume(record: InFlight, bank: Bank, history: History, person: tuple[str, str]) -> InFlight:
    """Finish the files of a revision whose process died. For each file one of these is found:

    - as it was compared, nothing beside it: never begun, so it is exchanged now;
    - as we wanted it: done;
    - beside it a file that is neither: a person's save that was exchanged away and not yet merged;
    - anything else: a person saved before or after us; merged if our change had not arrived.
    """
    if record.written:
        return record
    saves: dict[str, bytes | None] = {}
    final: dict[str, bytes | None] = {}
    for change in record.changes:
        file = bank.root / change.path
        now, beside = swap.read(file), list(_outs(change, record.key, bank))
        came = [data for data in (swap.read(out) for out in beside) if data is not None]
        theirs = [data for data in came if data not in (change.disk, change.wanted)]
        arrived = now == change.wanted or (change.disk is not None and change.disk in came)
        if theirs and arrived:
            merged = merge(change.disk or b"", now or b"", theirs[-1]).data
            target = replace(change, disk=now, wanted=merged)
            saves[change.path] = theirs[-1]
            final[change.path] = _swap(target, now, 100, record.key, bank, history)[1]
        elif not arrived:
            wanted = change.wanted
            if now != change.disk:
                wanted = merge(change.disk or b"", change.wanted or b"", now or b"").data
                saves[change.path] = now
            target = replace(change, disk=now, wanted=wanted)
            final[change.path] = _swap(target, now, 100, record.key, bank, history)[1]
    return _with_saves(record, saves, final, person)


def stands(record: InFlight, history: History) -> bool:
    """Whether the record's last commit is in the trail already."""
    request = record.commits[-1].message.rstrip("\n").rpartition("Request: ")[2]
    return any(r.trailer("Request") == request for r in history.log(grep=[f"Request: {request}"], limit=5))


def rebased(record: InFlight, history: History) -> list[Commit]:
    """The record's commits on top of a trail that may have moved since (a branch switch, commits made by hand)."""
    then = {c.path: c.trail for c in record.changes}
    tip: dict[str, bytes | None] = {}
    made = []
    for commit in record.commits:
        files = {}
        for path, data in commit.files.items():
            now = tip[path] if path in tip else history.read("HEAD", path)
            if data is not None and path in then and now not in (then[path], data) and path not in tip:
                data = merge(then[path] or b"", now or b"", data).data
            if data != now:
                files[path] = data
            tip[path] = data
        if files or commit is record.commits[-1]:
            made.append(replace(commit, files=files))
    return made


def clear(record: InFlight, bank: Bank, history: History) -> bool:
    """Remove what lies beside the files; False while somebody still has one of them open.

    A program that had the old file open and wrote to it after the exchange has written there: its words
    are merged back into the file, where the next command finds them as a hand edit.
    """
    done = True
    for change in record.changes:
        known = {
            blob_id(d)
            for c in record.commits
            for p, d in c.files.items()
            if p == change.path and d is not None
        }
        known |= {blob_id(d) for d in (change.disk, change.wanted, change.trail) if d is not None}
        for out in _outs(change, record.key, bank):
            if not swap.abandoned(out):
                done = False
                continue
            late = swap.read(out)
            if late and blob_id(late) not in known:
                file = bank.root / change.path
                merged = merge(change.disk or b"", swap.read(file) or b"", late).data
                swap.put(file, merged, f"{record.key}.late")
                swap.out_name(file, f"{record.key}.late").unlink(missing_ok=True)
            with contextlib.suppress(FileNotFoundError):
                out.unlink()
    return done


def _outs(change: FileChange, key: str, bank: Bank) -> Iterator[Path]:
    file = bank.root / change.path
    if file.parent.is_dir():
        yield from sorted(file.parent.glob(f"{swap.OUT}{key}.*-{file.name}"))
