"""A revision into files and git: its commits, the swap of each file, saves that came meanwhile."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from ua_memory.discovery import CORE_NAMES, SETTINGS
from ua_memory.errors import Busy, CannotWrite, Usage
from ua_memory.git.history import History
from ua_memory.git.repository import MACHINE, SOMEBODY, Commit, blob_id, parse_trailers
from ua_memory.store import pending as store_pending
from ua_memory.store import saves, swap
from ua_memory.store.draft import Draft, TouchedFile
from ua_memory.store.files import abandoned, is_half_written, read
from ua_memory.store.merge3 import merge
from ua_memory.store.pending import FileChange, InFlight
from ua_memory.text.wording import counted

# -- commits -----------------------------------------------------------------------------------------------
# The commits of a revision, composed, and rebased on a branch that moved on.


NAMED = 50
"""A trailer names so many facts; beyond that it gives their number."""
MAX_REQUEST = 200
SHOWN = 80
"""Characters that a note quotes of a line."""

Person = Callable[[], tuple[str, str]]
"""Asks git who the person is: a process, so only where a commit of theirs is made."""


def message(subject: str, body: str, trailers: Mapping[str, Sequence[str]]) -> str:
    """A commit message: subject, body, and trailers with ids and counts, never the text of a fact."""
    named = ((key, " ".join(value.split())) for key, values in trailers.items() for value in values if value)
    parts = (" ".join(subject.split()), body.strip(), "\n".join(f"{key}: {value}" for key, value in named))
    return "\n\n".join(filter(None, parts)) + "\n"


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
    new, lost = list[str](), 0
    for path, data in disk.items():
        if naming and path != SETTINGS:
            new += saves.new_names(trail[path], data, path)
            lost += saves.lost_records({path: saves.Edit(path, trail[path], data)})[path]
    what = next(iter(disk)) if len(disk) == 1 else counted(len(disk), "file")
    if all(data is None for data in disk.values()):
        what = f"delete {what}"
    elif lost:
        what = f"remove {counted(lost, 'block' if what in CORE_NAMES else 'fact')} from {what}"
    said = {"Memory-Op": [saves.EDIT], "Door": ["editor"], "Facts": brief(new)}
    return Commit(author, when, message(f"edit: {what}", "", said), disk)


def put_back_commits(touched: Sequence[TouchedFile], when: datetime, person: Person) -> list[Commit]:
    """What undoes that a stale buffer had dropped lines: the person's in a commit of theirs, so that they
    stay theirs, and then ours. It names every fact."""
    made = []
    for theirs, author in ((True, person), (False, lambda: MACHINE)):
        stages = {t.path: (t.saved, t.theirs) if theirs else (t.theirs, t.start) for t in touched}
        files = {path: after for path, (before, after) in stages.items() if before != after}
        if files:
            new = [saves.new_names(before, after, path) for path, (before, after) in stages.items()]
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
        if t.other_branch:
            name = t.other_branch.removeprefix("refs/heads/").removeprefix("refs/remotes/")
            notes.append(f"{t.path} had the content of branch {name}; restored from this one")
        if t.forgotten:
            named = ", ".join(f"^{block}" for block in t.forgotten)
            notes.append(f"{t.path} was saved with forgotten text, which was removed: {named}")
    return notes


def _put_back_note(t: TouchedFile) -> str:
    facts = [line for line in t.restored if not line.theirs and line.name]
    lines = [line for line in t.restored if not line.theirs and not line.name]
    yours = [line for line in t.restored if line.theirs]
    number = [counted(len(facts), "fact")] if facts else []
    number += [counted(len(lines), "line")] if lines else []
    number += [f"{counted(len(yours), 'line')} of yours"] if yours else []
    what = ", ".join(number[:-1]) + " and " * (len(number) > 1) + number[-1] if number else "nothing"
    named = [_quoted(line) for line in t.restored[:NAMED]]
    named += [f"and {len(t.restored) - NAMED} more"] if len(t.restored) > NAMED else []
    return (
        f"{t.path} may have been saved from an old copy; {what} restored{': ' * bool(named)}"
        f"{', '.join(named)}; delete {'it' if len(t.restored) == 1 else 'them'} again if you meant to"
    )


def _quoted(line: saves.DroppedLine) -> str:
    words = " ".join(line.text.split())
    words = words if len(words) <= SHOWN else words[: SHOWN - 1] + "…"
    return f"{line.name} “{words}”" if line.name else f"“{words}”"


def brief(names: Sequence[str]) -> list[str]:
    """Fact names as one trailer each, or their number where there are too many to read."""
    return list(names) if len(names) <= NAMED else [str(len(names))]


def for_trail(data: bytes | None, touched: TouchedFile) -> bytes | None:
    """What the trail gets of a file: our bytes; where a disappearance is held, our change of what it had."""
    if not touched.held or data is None:
        return data
    return merge(touched.disk or b"", data, touched.trail or b"").data


def is_own(commit: Commit, record: InFlight) -> bool:
    """Whether a commit is the revision's own, among those made along with it."""
    return record.request in trailers(commit).get("Request", ())


def is_committed(record: InFlight, history: History) -> bool:
    """Whether the record's own commit is in the trail already."""
    if not record.commits:
        return False
    rev = history.target(record.branch)
    if (joins := record.commits[-1].joins) and history.head() and history.holds(joins):
        return True
    newest = history.with_trailer("Request", record.request, rev=rev)
    return any(r.trailer("Request") == record.request for r in newest)


def commits_due(record: InFlight, history: History, parent: str | None, *, moved: bool) -> list[Commit]:
    """The commits that a record still owes, as it has them, or as they are on a trail that has `moved` to
    another `parent`."""
    commits = [*record.commits, *record.after]
    nameless = any(commit.author == SOMEBODY for commit in commits)
    return rebased(record, history, parent) if moved or nameless else commits


def rebased(record: InFlight, history: History, parent: str | None) -> list[Commit]:
    """The record's commits on top of `parent`, which may be newer than what they were made for (a commit by
    hand), with the person's name where git knew none when the record was written."""
    wanted = (*record.commits, *record.after)
    paths = sorted({path for commit in wanted for path in commit.files})
    there = history.blobs(paths, parent) if parent and paths else {}
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


# -- concurrent saves --------------------------------------------------------------------------------------
# A person's save that came while we wrote the file: its merge base, and which commit has it.
#
# It was made from what the editor had read, and that stood in the file since the person's save before:
# their own last save, or what took its place, which lacks that save until it is merged in
# (docs/decisions/0014).


SHOWN_MOST, SHOWN_FEW = 16, 4
"""The newest of the contents that stood for a moment are named: an editor may have read one a second before
its next save, and another editor saved several times since. Of a large file only a few are: all of them are
written again with the record in each round, which an editor meets the more often the longer it takes."""
SHOWN_BYTES = 1 << 20
"""Up to so many bytes together there may be more than a few."""


@dataclass(frozen=True, slots=True)
class WriteContext:
    """What writing a revision's files takes. `inspect_save(path, bytes, trail, intermediate)` tells what a
    person's save is that came when the file had had these contents."""

    root: Path
    pending: Path
    inspect_save: Callable[[str, bytes | None, bytes | None, Sequence[bytes]], TouchedFile]
    person: Person
    by_git: Callable[[InFlight, str, bytes | None], bool] = lambda *_: False
    """Whether a git may have put this content into a file since the revision began: some commit has it, too,
    so that nothing is lost where it makes way for another."""


def with_save(record: InFlight, number: int, came: bytes, context: WriteContext) -> InFlight:
    """The record after a person's save was found: it goes into the file, and into a commit of theirs."""
    change = record.changes[number]
    if not record.commits or _is_on_top(record, change, came):
        # An edit that came after ours, and is committed after it.
        newer = _merged_on_top(record, change, came, context)
        if record.commits and not (
            saves.lines_lacking(change.wanted, newer) and _held(change, newer, context)
        ):
            record = _with_edit_after(record, change, newer, context)
        record = _with_intermediate(record, change, came)
        return record.with_change(number, change.next(came, newer))
    own = record.commits[-1]
    earlier = record.commits[:-1]
    before = [change.trail, *(c.files[change.path] for c in earlier if change.path in c.files)]
    if change.start == change.aim and change.path in own.files:
        before.append(
            own.files[change.path]
        )  # the last one is a person's, too, or puts back what they dropped
    # Another editor may have read the file before a save that we have taken in already.
    touched = context.inspect_save(change.path, came, before[-1], _intermediate(record, change, before))
    wanted: bytes | None = merge(change.start or b"", change.aim or b"", touched.start or b"").data
    if change.aim is None and not (wanted or b"").strip():
        wanted = None
    earlier = earlier[: len(earlier) - _superseded(earlier, change.path, came)]
    theirs = []
    if not touched.held:
        edited = [change.trail, *(c.files[change.path] for c in earlier if change.path in c.files)]
        trail = {change.path: edited[-1]}
        theirs.append(edit_commit({change.path: touched.saved}, trail, own.when, _person(record, context)))
    if touched.put_back:
        theirs += put_back_commits([touched], own.when, lambda: _person(record, context))
    record = replace(record, commits=(*earlier, *theirs, own))
    record = record.with_file(change.path, for_trail(wanted, touched))
    return _with_intermediate(record, change, came).with_change(number, change.next(came, wanted))


def with_save_over_git(record: InFlight, number: int, came: bytes, context: WriteContext) -> InFlight:
    """The record after a person's save came out where git's content went back: it was made before that, from
    ours, and takes away nothing of it."""
    change = record.changes[number]
    ours = record.with_change(number, replace(change, wanted=change.placed))
    merged = with_save(ours, number, came, context)
    return merged.with_change(number, replace(merged.changes[number], placed=change.wanted))


def _is_giving_back(record: InFlight, change: FileChange, context: WriteContext) -> bool:
    last = change.taken[-1:]
    return last == (change.wanted,) and context.by_git(record, change.path, change.wanted)


def _merged_on_top(record: InFlight, change: FileChange, came: bytes, context: WriteContext) -> bytes:
    """What is wanted, merged with a save that came after ours was in place. It was made from what stood in
    the file since the write began; where it lacks lines of all that did, perhaps from an older content."""
    base = _merge_base(record, change, came)
    if saves.lines_lacking(base, came):
        stood = _intermediate(record, change, _saves_in(record, change))
        touched = context.inspect_save(change.path, came, change.wanted, stood)
        if touched.put_back:
            return touched.start or b""
        came = touched.saved or b""
    return merge(base, change.wanted or b"", came).data


def _held(change: FileChange, newer: bytes, context: WriteContext) -> bool:
    return context.inspect_save(change.path, newer, change.wanted, ()).held


def _intermediate(record: InFlight, change: FileChange, before: Sequence[bytes | None]) -> list[bytes]:
    """What stood in the file since the write began, the newest first. Of the saves that are taken care of,
    those that no commit has are kept beside the commits."""
    commits = (c for c in (*record.commits, *record.after) if change.path in c.files)
    blobs = [data for commit in commits for data in commit.blobs]
    every = (*reversed(change.taken), change.placed, *reversed(blobs), change.start, *reversed(before))
    return [*dict.fromkeys(data for data in every if data)]


def _merge_base(record: InFlight, change: FileChange, came: bytes) -> bytes:
    """What a save was made from: of what stood in the file, that which it is most like. A content that lacks
    a record which the save and what is wanted have is none: the record would be taken for one of each."""
    stood = _intermediate(record, change, _saves_in(record, change))
    stood += [
        saves.partial_content(change.trail or b"", data, came) for data in (*stood, change.wanted or b"")
    ]
    ordered = sorted(stood, key=lambda data: saves.distance(data, came))
    fitting = (data for data in ordered if not _added_twice(data, change, came))
    return next(fitting, ordered[0])


def _added_twice(base: bytes, change: FileChange, came: bytes) -> bool:
    """Whether a record that the base lacks is in what is wanted and in the save."""
    ours, theirs = (b"\n".join(saves.lines_lacking(data, base)) for data in (change.wanted, came))
    return not saves.keys(ours, change.path).keys().isdisjoint(saves.keys(theirs, change.path))


def _saves_in(record: InFlight, change: FileChange) -> list[bytes | None]:
    """What the trail had of the file, and what the commits of the person's saves leave in it."""
    commits = (*record.commits[:-1], *record.after)
    return [change.trail, *(c.files[change.path] for c in commits if change.path in c.files)]


def _is_on_top(record: InFlight, change: FileChange, came: bytes) -> bool:
    """Whether a save was made after ours was in place: it has what this revision adds, or goes on from one
    that has; where nothing was added, it looks like what stood there."""
    if any(change.path in commit.files for commit in record.after):
        return True
    added = set[saves.Key]()
    if change.path.endswith(".md"):
        added = saves.keys(change.aim, change.path).keys() - saves.keys(change.start, change.path).keys()
    if added:
        return not added.isdisjoint(saves.keys(came, change.path))
    return change.turn > 0 and _merge_base(record, change, came) == change.placed


def _with_edit_after(record: InFlight, change: FileChange, data: bytes, context: WriteContext) -> InFlight:
    """The record with one commit of the person's after ours, which leaves the file so."""
    blobs = [b for c in (record.commits[-1], *record.after) if change.path in c.files for b in c.blobs]
    edit = _edit_after(record, change, data, _person(record, context), naming=False)
    others = (commit for commit in record.after if change.path not in commit.files)
    return replace(record, after=(*others, _with_shown_trailers(edit, blobs)))


def _edit_after(
    record: InFlight, change: FileChange, data: bytes | None, author: tuple[str, str], *, naming: bool
) -> Commit:
    own, path = record.commits[-1], change.path
    trail = {path: own.files.get(path, change.trail)}
    return edit_commit({path: data}, trail, own.when, author, naming=naming)


def with_named_facts(record: InFlight, number: int) -> InFlight:
    """The record once no more saves come: what is committed after ours names its facts. In each round that
    would make it longer, and so meet the next save: of a long file it was most of the round's work."""
    change = record.changes[number]
    after = []
    for c in record.after:
        if change.path in c.files and record.commits:
            edit = _edit_after(record, change, c.files[change.path], c.author, naming=True)
            c = _with_shown_trailers(edit, c.blobs)
        after.append(c)
    return replace(record, after=tuple(after))


def _person(record: InFlight, context: WriteContext) -> tuple[str, str]:
    """Who the person is: asked of git once, since each round that takes longer may meet the next save."""
    edits = (c for c in (*record.commits, *record.after) if trailers(c).get("Memory-Op") == (saves.EDIT,))
    return next((c.author for c in edits), None) or context.person()


def _with_intermediate(record: InFlight, change: FileChange, came: bytes) -> InFlight:
    """The record with a note of what stood in the file for a moment, in the newest commit of that file: an
    editor may have read just that, and its next save then lacks what is merged in now. `saves.detect_stale`
    looks for it."""
    all_ = [*record.commits, *record.after]
    own = len(record.commits)
    at = max((n for n, commit in enumerate(all_) if change.path in commit.files), default=None)
    if at is None:
        return record
    committed = any(commit.files.get(change.path) == came for commit in all_)
    stood = (change.wanted, None if committed else came)
    all_[at] = _with_shown_trailers(all_[at], [data for data in stood if data])
    return replace(record, commits=tuple(all_[:own]), after=tuple(all_[own:]))


def _with_shown_trailers(commit: Commit, contents: Sequence[bytes]) -> Commit:
    newest = list(dict.fromkeys(reversed((*commit.blobs, *contents))))[:SHOWN_MOST]
    while len(newest) > SHOWN_FEW and sum(map(len, newest)) > SHOWN_BYTES:
        newest.pop()
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
        op = trailers(commit).get("Memory-Op", ("",))[0]
        if set(commit.files) != {path} or op not in (saves.EDIT, saves.MERGED):
            break
        if op == saves.EDIT and Counter((commit.files[path] or b"").splitlines()) - lines:
            return 0
        number += 1
    return number


# -- writing the files -------------------------------------------------------------------------------------
# How a recorded revision reaches the files (W4 to W6), the first time or after a crash.
#
# Between any two lines here the process may be killed; what `resume` can then find is listed there.


ROUNDS = 100
DURABLE_ROUNDS = 3
"""So often a person may save the same file while one revision is being written."""
_NAME_HASH = re.compile(r"-[0-9a-f]{10}")
"""In a name beside a file: which file it is of, as `_name_hash` writes it."""


def write_files(record: InFlight, context: WriteContext) -> InFlight:
    """Write all files, then exchange them, then look at what came out; the record with what was merged.

    CannotWrite before the first exchange withdraws the revision whole; after it the next command goes on.
    """
    begun = False
    waiting = [c for c in record.changes if c.wanted != c.placed]
    try:
        for change in waiting:
            _stage(change, record.key, context)
        for change in waiting:
            swap.swap_in(context.root / change.path, _out_path(change, record.key, context))
            begun = True
    except CannotWrite:
        if not begun:
            _withdraw(record, context)
        raise
    for folder in {(context.root / change.path).parent: None for change in waiting}:
        swap.sync_swapped(folder)
    for number, change in enumerate(record.changes):
        if change.wanted != change.placed:
            record = _merge_saves(record, number, context)
    return record


def resume(record: InFlight, context: WriteContext) -> InFlight:
    """Finish the files of a revision whose process died. For each file one of these is found:

    - nothing beside it under this turn's name, or there what is wanted and not yet in place: exchange now;
    - beside it what was in place, or the file itself under a second name: done;
    - beside it anything else: a person's save that was exchanged away and not yet merged.
    """
    for number, change in enumerate(record.changes):
        if change.wanted == change.placed:
            continue
        file, out = context.root / change.path, _out_path(change, record.key, context)
        if not out.exists():
            _stage(change, record.key, context)
            swap.swap_in(file, out)
        elif not swap.same_file(out, file) and read(out) == change.wanted != read(file):
            swap.swap_in(file, out)
        swap.sync_swapped(file.parent)
        record = _merge_saves(record, number, context)
    return record


def leave_files(record: InFlight, context: WriteContext, there: Callable[[str], bytes | None]) -> InFlight:
    """The same where git has switched branches since: the files are another branch's, and stay so. A person's
    save that came out goes into the commits; `there` tells what git itself has put in place."""
    for number, change in enumerate(record.changes):
        out = _out_path(change, record.key, context)
        came = read(out) if out.exists() and not swap.same_file(out, context.root / change.path) else None
        known = (change.start, change.aim, change.trail, change.placed, change.wanted, there(change.path))
        if came and came not in known:
            record = with_save(record, number, came, context)
        change = record.changes[number]
        record = record.with_change(number, replace(change, placed=change.wanted))
    return record


def _merge_saves(record: InFlight, number: int, context: WriteContext) -> InFlight:
    """Look at what came out, and merge a person's save until none comes any more (step W6)."""
    for turn in range(ROUNDS):
        change = record.changes[number]
        file, out = context.root / change.path, _out_path(change, record.key, context)
        came = swap.swapped_out(file, out)
        if came not in (None, change.placed) and is_half_written(out, came or b""):
            came = change.placed  # an editor is at it still: a leftover, merged when it is whole
        # A file that was gone for a moment: an editor that renames the old one away, or a deletion within
        # these milliseconds, which its owner will have to repeat.
        by_git = came not in (change.placed, change.wanted) and context.by_git(record, change.path, came)
        if not by_git and (came is None or came in (change.placed, change.wanted)):
            if turn > DURABLE_ROUNDS:
                swap.sync_swapped(file.parent)
            return with_named_facts(record, number)
        if came is None or by_git:
            # It is to stand in the file again: git may have put it there, on its way to another branch.
            # Whoever did, nothing is lost: the trail has ours, and the next look at the file tells.
            record = record.with_change(number, change.next(came, came))
        elif _is_giving_back(record, change, context):
            record = with_save_over_git(record, number, came, context)
        else:
            record = with_save(record, number, came, context)
        # Who saves faster than a disk can sync would keep us here; a kill finds the record in any case.
        store_pending.save(context.pending, record, durably=turn < DURABLE_ROUNDS)
        record = _drop_merged(record, number, out, context)
        change = record.changes[number]
        if change.wanted == change.placed:
            return with_named_facts(record, number)
        _stage(change, record.key, context)
        swap.swap_in(file, _out_path(change, record.key, context))
        if turn < DURABLE_ROUNDS:
            swap.sync_swapped(file.parent)
    raise Busy("the file is being saved continuously", where=record.changes[number].path, hint="try again")


def _drop_merged(record: InFlight, number: int, out: Path, context: WriteContext) -> InFlight:
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
        data if _out_path(change, record.key, context, turn).exists() else None
        for turn, data in enumerate(before)
    )
    return record.with_change(number, replace(change, taken=(*kept, last)))


# -- leftovers beside the files ----------------------------------------------------------------------------


def remove_leftovers(record: InFlight, context: WriteContext) -> tuple[InFlight, bool]:
    """Remove what lies beside the files; (the record, whether nothing is left).

    A program that had the old file open and wrote to it after the exchange has written there. Once no
    commit is owed any more its words are merged back into the file, where the next command finds them
    as a hand edit; while it has the file open, it stays.
    """
    done = True
    seen: set[Path] = set()
    looked, leftovers = record, _leftovers(record, context)
    for number, change in enumerate(record.changes):
        while fresh := [p for p in leftovers.get(context.root / change.path, ()) if p not in seen]:
            seen.update(fresh)
            for out in fresh:
                record, gone = _remove_leftover(record, number, out, context)
                done = done and gone
            if record is not looked:  # late words were put in, by one more turn, which leaves something too
                looked, leftovers = record, _leftovers(record, context)
    return record, done


def _remove_leftover(
    record: InFlight, number: int, out: Path, context: WriteContext
) -> tuple[InFlight, bool]:
    change = record.changes[number]
    if not out.name.startswith(swap.FRESH) and not swap.same_file(out, context.root / change.path):
        if not abandoned(out):
            return record, False
        late = read(out)
        known = (change.start, change.aim, change.trail, change.placed, change.wanted, *change.taken)
        if late and late.strip() and late not in known:
            if record.commits:
                return record, False
            record = _merge_late_write(record, number, out, late, context)
    try:
        out.unlink(missing_ok=True)
    except OSError:
        return record, False
    return record, True


def _merge_late_write(
    record: InFlight, number: int, out: Path, late: bytes, context: WriteContext
) -> InFlight:
    """Merge words that were written into an exchanged-away file: one more turn of the same change."""
    change = record.changes[number]
    turn = int(out.name.removeprefix(_prefix(swap.OUT, record.key)).partition("-")[0])
    taken = [*change.taken, change.placed]
    base, taken[turn] = taken[turn], late
    now = read(context.root / change.path)
    wanted = merge(base or b"", now or b"", late).data
    new = FileChange(change.path, now, now, change.trail, now, wanted, tuple(taken))
    # The other files are done: what a person saved in them since is not to be looked at again.
    done = tuple(c if c.wanted == c.placed else c.next(c.placed, c.wanted) for c in record.changes)
    record = replace(record, changes=done, written=False).with_change(number, new)
    store_pending.save(context.pending, record)
    record = replace(resume(record, context), written=True)
    store_pending.save(context.pending, record)
    return record


def _withdraw(record: InFlight, context: WriteContext) -> None:
    """Forget a revision of which nothing has happened yet."""
    with contextlib.suppress(CannotWrite):
        store_pending.drop(context.pending, record.key)
    for outs in _leftovers(record, context).values():
        for out in outs:
            with contextlib.suppress(OSError):
                out.unlink()


def _stage(change: FileChange, key: str, context: WriteContext) -> None:
    if change.wanted is not None:
        swap.stage(context.root / change.path, change.wanted, _out_path(change, key, context))


def _out_path(change: FileChange, key: str, context: WriteContext, turn: int | None = None) -> Path:
    file = context.root / change.path
    return file.with_name(
        f"{_prefix(swap.OUT, key)}{change.turn if turn is None else turn}{_name_hash(file)}"
    )


def _leftovers(record: InFlight, context: WriteContext) -> dict[Path, list[Path]]:
    """What lies beside each file of a revision. Each folder is read once for all of its files: once for each
    of them, 2,000 imported notes took five minutes."""
    files = [context.root / change.path for change in record.changes]
    marks = {(file.parent, _name_hash(file)): file for file in files}
    found: dict[Path, list[Path]] = {}
    for folder in dict.fromkeys(file.parent for file in files):
        for out in swap.beside(folder, *(_prefix(kind, record.key) for kind in (swap.FRESH, swap.OUT))):
            mark = _NAME_HASH.search(out.name, out.name.index(record.key) + len(record.key))
            if mark and (file := marks.get((folder, mark[0]))):
                found.setdefault(file, []).append(out)
    return found


def _prefix(kind: str, key: str) -> str:
    return f"{kind}{key}."


def _name_hash(file: Path) -> str:
    # Not the name itself: it may be as long as a name can be.
    return "-" + hashlib.sha256(file.name.encode("utf-8", "surrogateescape")).hexdigest()[:10]
