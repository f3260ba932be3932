"""What a revision comes to in the trail: its commits, composed, and set on top of a trail that moved on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from ua_memory.errors import Usage
from ua_memory.history import MACHINE, SOMEBODY, Commit, History, blob_id, parse_trailers
from ua_memory.paths import SETTINGS
from ua_memory.store import saves
from ua_memory.store.draft import Draft, Touched
from ua_memory.store.pending import InFlight
from ua_memory.store.threeway import merge
from ua_memory.wording import counted

NAMED = 50
"""A trailer names so many facts; beyond that it gives their number."""
MAX_REQUEST = 200

Person = Callable[[], tuple[str, str]]
"""Asks git who the person is: a process, so only where a commit of theirs is made."""


def message(subject: str, body: str, trailers: Mapping[str, Sequence[str]]) -> str:
    """A commit message: subject, body, and trailers with ids and counts, never the text of a fact."""
    lines = [
        f"{key}: {' '.join(value.split())}" for key, values in trailers.items() for value in values if value
    ]
    return (
        "\n\n".join(part for part in (" ".join(subject.split()), body.strip(), "\n".join(lines)) if part)
        + "\n"
    )


def request_id(raw: str) -> str:
    """A request id as it stands in a trailer. Usage where it would not be found again there."""
    if not raw.strip() or len(raw) > MAX_REQUEST or raw != " ".join(raw.split()) or not raw.isprintable():
        raise Usage(f"a request id is one line of at most {MAX_REQUEST} characters", where=repr(raw)[:80])
    return raw


def trailers(commit: Commit) -> Mapping[str, tuple[str, ...]]:
    """The trailers of a commit that is not made yet."""
    return parse_trailers(commit.message.rstrip("\n").rpartition("\n\n")[2])


def commits(draft: Draft, when: datetime, request: str, person: Person) -> list[Commit]:
    """The commits a draft comes to: the person's edits, what stale buffers had dropped, then our own."""
    made = []
    by_hand = [t for t in draft.touched.values() if t.disk != t.trail and not t.held]
    if by_hand:
        disk, trail = {t.path: t.disk for t in by_hand}, {t.path: t.trail for t in by_hand}
        made.append(edit_commit(disk, trail, when, person()))
    put_back = [t for t in draft.touched.values() if t.put_back]
    if put_back:
        made.append(put_back_commit(put_back, when))
    ours = draft.changed()
    if ours or draft.even_if_empty:
        named = {"Memory-Op": [draft.op], "Door": [draft.door], **draft.trailers, "Facts": brief(draft.facts)}
        text = message(draft.subject or draft.op, draft.body, named)
        files = {path: for_trail(data, draft.touched[path]) for path, data in ours.items()}
        files |= draft.carried
        author = person() if draft.by_person else MACHINE
        made.append(Commit(author, when, text, files, joins=draft.joins))
    if made:
        # The last one carries the request, by which a retry and a resumed revision know that it stands.
        made[-1] = replace(made[-1], message=made[-1].message.rstrip("\n") + f"\nRequest: {request}\n")
    return made


def edit_commit(
    disk: Mapping[str, bytes | None],
    trail: Mapping[str, bytes | None],
    when: datetime,
    author: tuple[str, str],
    *,
    naming: bool = True,
) -> Commit:
    """A person's own change of some files as a commit of theirs, `naming` the facts that are new in it."""
    new: list[str] = []
    for path, data in disk.items():
        if naming and path != SETTINGS:
            before = saves.keys(trail[path], path)
            fresh = {key: record for key, record in saves.keys(data, path).items() if key not in before}
            new += saves.names(fresh, path)
    what = next(iter(disk)) if len(disk) == 1 else counted(len(disk), "file")
    said = {"Memory-Op": [saves.EDIT], "Door": ["editor"], "Facts": brief(new)}
    return Commit(author, when, message(f"edit: {what}", "", said), disk)


def put_back_commit(touched: Sequence[Touched], when: datetime) -> Commit:
    """Our own commit that undoes what a person's stale buffer had dropped; it names every fact, since
    `saves.stale` looks there for what was put back once already."""
    named = [name for t in touched for name in t.dropped]
    said = {"Memory-Op": [saves.MERGED], "Door": ["store"], "Facts": named}
    subject = f"merge: put back {_what(named)} a stale buffer had dropped"
    return Commit(MACHINE, when, message(subject, "", said), {t.path: t.start for t in touched})


def put_back_notes(draft: Draft) -> list[str]:
    """What to tell of stale buffers: a merge that nobody hears of looks like a line that will not go away."""
    return [
        f"{t.path}: {_what(t.dropped)} put back that an old editor buffer had dropped;"
        " drop them again if that was meant"
        for t in draft.touched.values()
        if t.put_back
    ]


def _what(named: Sequence[str]) -> str:
    return counted(len(named), "fact") if named else "lines"


def brief(names: Sequence[str]) -> list[str]:
    """Fact names as one trailer each, or their number where there are too many to read."""
    return list(names) if len(names) <= NAMED else [str(len(names))]


def for_trail(data: bytes | None, touched: Touched) -> bytes | None:
    """What the trail gets of a file: our bytes; where a disappearance is held, our change of what it had."""
    if not touched.held or data is None:
        return data
    return merge(touched.disk or b"", data, touched.trail or b"").data


def is_own(commit: Commit, record: InFlight) -> bool:
    """Whether a commit is the revision's own, among those made along with it."""
    return record.request in trailers(commit).get("Request", ())


def stands(record: InFlight, history: History) -> bool:
    """Whether the record's own commit is in the trail already."""
    if (joins := record.commits[-1].joins) and history.head() and history.holds(joins):
        return True
    newest = history.log(grep=[f"Request: {record.request}"])
    return any(r.trailer("Request") == record.request for r in newest)


def due(record: InFlight, history: History, *, moved: bool) -> list[Commit]:
    """The commits that a record still owes, as it has them, or as they are on a trail that has `moved`."""
    commits = [*record.commits, *record.after]
    nameless = any(commit.author == SOMEBODY for commit in commits)
    return rebased(record, history) if moved or nameless else commits


def rebased(record: InFlight, history: History) -> list[Commit]:
    """The record's commits on top of a trail that may have moved since (a branch switch, a commit by hand),
    with the person's name where git knew none when the record was written."""
    wanted = (*record.commits, *record.after)
    paths = sorted({path for commit in wanted for path in commit.files})
    there = history.blobs(paths) if history.exists and paths else {}
    known = {c.path: c.trail for c in record.changes}
    tip = {path: _content(there.get(path), known.get(path), history) for path in paths}
    base = {path: known.get(path, tip[path]) for path in paths}
    made = []
    for commit in wanted:
        files = {}
        for path, data in commit.files.items():
            moved = data if tip[path] == base[path] else _on_top(base[path], tip[path], data)
            if moved != tip[path]:
                files[path] = moved
            base[path], tip[path] = data, moved
        if files or commit is record.commits[-1]:
            author = history.person() if commit.author == SOMEBODY else commit.author
            # What was fetched may be gone again while the commit was owed: the next sync brings it anew.
            joins = commit.joins if commit.joins and history.has(commit.joins) else ""
            made.append(replace(commit, files=files, author=author, joins=joins))
    return made


def _content(blob: str | None, guess: bytes | None, history: History) -> bytes | None:
    if blob is None or (guess is not None and blob_id(guess) == blob):
        return guess if blob else None
    return history.blob(blob)


def _on_top(base: bytes | None, tip: bytes | None, data: bytes | None) -> bytes | None:
    merged = merge(base or b"", tip or b"", data or b"").data
    return merged if merged or (tip is not None and data is not None) else None
