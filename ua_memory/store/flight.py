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
from ua_memory.store.saves import Line
from ua_memory.store.threeway import merge
from ua_memory.wording import counted

NAMED = 50
"""A trailer names so many facts; beyond that it gives their number."""
MAX_REQUEST = 200
SHOWN = 80
"""Characters that a note quotes of a line."""

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
    by_hand = [t for t in draft.touched.values() if t.saved != t.trail and not t.held]
    if by_hand:
        disk, trail = {t.path: t.saved for t in by_hand}, {t.path: t.trail for t in by_hand}
        made.append(edit_commit(disk, trail, when, person()))
    put_back = [t for t in draft.touched.values() if t.put_back]
    if put_back:
        made += put_back_commits(put_back, when, person)
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
            new += saves.fresh(trail[path], data, path)
    what = next(iter(disk)) if len(disk) == 1 else counted(len(disk), "file")
    said = {"Memory-Op": [saves.EDIT], "Door": ["editor"], "Facts": brief(new)}
    return Commit(author, when, message(f"edit: {what}", "", said), disk)


def put_back_commits(touched: Sequence[Touched], when: datetime, person: Person) -> list[Commit]:
    """What undoes that a stale buffer had dropped lines: the person's in a commit of theirs, so that they
    stay theirs, and then ours. It names every fact."""
    made = []
    for theirs, author in ((True, person), (False, lambda: MACHINE)):
        stages = {t.path: (t.saved, t.theirs) if theirs else (t.theirs, t.start) for t in touched}
        files = {path: after for path, (before, after) in stages.items() if before != after}
        if files:
            new = [saves.fresh(before, after, path) for path, (before, after) in stages.items()]
            named = [name for names in new for name in names]
            said = {"Memory-Op": [saves.MERGED], "Door": ["store"], "Facts": named}
            facts = sum(name.startswith("^") for name in named)  # the others are blocks, or have no id
            number = len(named) if theirs else facts
            what = counted(number, "line" if theirs else "fact") if number else "lines"
            text = message(f"merge: put back {what} a stale buffer had dropped", "", said)
            made.append(Commit(author(), when, text, files))
    return made


def put_back_notes(draft: Draft) -> list[str]:
    """What to tell of stale buffers: a merge that nobody hears of looks like a line that will not go away."""
    notes = [_put_back_note(t) for t in draft.touched.values() if t.put_back]
    for t in draft.touched.values():
        if t.branch:
            name = t.branch.removeprefix("refs/heads/").removeprefix("refs/remotes/")
            notes.append(f"{t.path} was as on the branch {name}; it is as on this one again")
        if t.left:
            named = ", ".join(f"^{block}" for block in t.left)
            notes.append(f"{t.path} was saved with what was forgotten, which is left out: {named}")
    return notes


def _put_back_note(t: Touched) -> str:
    facts = [line for line in t.back if not line.theirs and line.name]
    lines = [line for line in t.back if not line.theirs and not line.name]
    yours = [line for line in t.back if line.theirs]
    number = [counted(len(facts), "fact")] if facts else []
    number += [counted(len(lines), "line")] if lines else []
    number += [f"{counted(len(yours), 'line')} of yours"] if yours else []
    what = ", ".join(number[:-1]) + " and " * (len(number) > 1) + number[-1] if number else "nothing"
    named = [_quoted(line) for line in t.back[:NAMED]]
    named += [f"and {len(t.back) - NAMED} more"] if len(t.back) > NAMED else []
    return (
        f"{t.path} was saved from an old copy; {what} put back{': ' * bool(named)}{', '.join(named)};"
        " delete again what should not be there"
    )


def _quoted(line: Line) -> str:
    words = " ".join(line.text.split())
    words = words if len(words) <= SHOWN else words[: SHOWN - 1] + "…"
    return f"{line.name} “{words}”" if line.name else f"“{words}”"


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
    rev = history.standing(record.branch)
    if (joins := record.commits[-1].joins) and history.head() and history.holds(joins):
        return True
    newest = history.log(grep=[f"Request: {record.request}"], rev=rev)
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
    rev = history.standing(record.branch)
    there = history.blobs(paths, rev) if history.exists and paths else {}
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
