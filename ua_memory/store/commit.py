"""Publishing a revision: composing its commits, exchanging its files, merging concurrent saves.

What a three-way merge calls base, ours and theirs has these names in `draft.TouchedFile` and in
`pending.FileChange`, whose names are also those of the file in `pending/`:

    in_head   HEAD's content: the base of a person's hand edit
    saved     what is committed of that edit: theirs (`disk` is the file as it is)
    theirs    a stale save, of an old copy of the file, with the person's own lost lines put back
    start     the same with our lost lines put back, too: the base of our change
    aim       our result: ours
    placed    what the file should have now: whatever else is swapped out is a person's save
    wanted    what is put in place next: `aim`, or its merge with such saves
    merged    the saves that were swapped out so far

A file is `held` if many facts are gone from it at once: a hand edit that is committed only after a person
confirms it. See docs/decisions/0014 and 0017.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from ua_memory.discovery import CORE_NAMES, SETTINGS
from ua_memory.errors import Busy, CannotWrite, Usage
from ua_memory.git.history import History
from ua_memory.git.repository import MACHINE, SOMEBODY, Commit, blob_id, parse_trailers
from ua_memory.store import pending as store_pending
from ua_memory.store import saves, swap
from ua_memory.store.draft import Draft, TouchedFile
from ua_memory.store.files import is_half_written, is_unused, read
from ua_memory.store.pending import FileChange, Pending
from ua_memory.text.wording import counted, shorten

# -- commits -----------------------------------------------------------------------------------------------


NAMED_FACTS = 50
"""`Facts` trailers name at most so many facts; beyond that there is one with their number."""
MAX_REQUEST = 200
QUOTED_CHARS = 80
"""A note quotes so many characters of a line."""

AskPerson = Callable[[], tuple[str, str]]
"""Asks git for the person's (name, email). That starts a process, so only when it is needed."""


def format_message(subject: str, body: str, trailers: Mapping[str, Sequence[str]]) -> str:
    """A commit message: subject, body and trailers. Trailers have ids and counts, never a fact's text."""
    named = ((key, " ".join(value.split())) for key, values in trailers.items() for value in values if value)
    parts = (" ".join(subject.split()), body.strip(), "\n".join(f"{key}: {value}" for key, value in named))
    return "\n\n".join(filter(None, parts)) + "\n"


def request_id(raw: str) -> str:
    """Check a request id. Usage if it could not be read back from a trailer."""
    if not raw.strip() or len(raw) > MAX_REQUEST or raw != " ".join(raw.split()) or not raw.isprintable():
        raise Usage(
            f"a request id must be one line of at most {MAX_REQUEST} characters", where=repr(raw)[:80]
        )
    return raw


def commit_trailers(commit: Commit) -> Mapping[str, tuple[str, ...]]:
    """The trailers in the message of a commit."""
    return parse_trailers(commit.message.rstrip("\n").rpartition("\n\n")[2])


def compose_commits(
    draft: Draft, when: datetime, request: str, machine: str, person: AskPerson
) -> list[Commit]:
    """The commits of a draft: the person's edits, lines put back after stale saves, then our own."""
    made = []
    by_hand = [file for file in draft.touched.values() if file.saved != file.in_head and not file.held]
    if by_hand:
        saved, in_head = ({f.path: f.saved for f in by_hand}, {f.path: f.in_head for f in by_hand})
        made.append(edit_commit(saved, in_head, when, person()))
    put_back = [t for t in draft.touched.values() if t.is_stale]
    if put_back:
        made += put_back_commits(put_back, when, person)
    ours = draft.changed()
    if ours or draft.even_if_empty:
        facts = fact_trailers(draft.facts)
        named = {"Memory-Op": [draft.op], "Door": [draft.door], **draft.trailers, "Facts": facts}
        text = format_message(draft.subject or draft.op, draft.body, named)
        files = {path: bytes_to_commit(data, draft.touched[path]) for path, data in ours.items()}
        files |= draft.foreign_files
        author = person() if draft.by_person else MACHINE
        made.append(Commit(author, when, text, files, joins=draft.joins))
    made = [replace(one, message=f"{one.message}Machine: {machine}\n") for one in made]
    if made:
        # The last one has the request id, by which a retry and a recovery see that it was made.
        made[-1] = replace(made[-1], message=f"{made[-1].message}Request: {request}\n")
    return made


def edit_commit(
    disk: Mapping[str, bytes | None], in_head: Mapping[str, bytes | None], when: datetime,
    author: tuple[str, str], *, naming: bool = True,
) -> Commit:  # fmt: skip
    """A commit of a person's hand edits: `disk` and `in_head` are {path: bytes} after and before.

    With `naming` its trailers name the new facts.
    """
    edits = {path: saves.Edit(path, in_head[path], data) for path, data in disk.items() if path != SETTINGS}
    new, lost = list[str](), 0
    if naming:  # what is in another file now was moved, not removed
        new = [name for one in edits.values() for name in saves.names_of_new(one.in_head, one.disk, one.path)]
        lost = sum(saves.lost_records(edits).values())
    what = next(iter(disk)) if len(disk) == 1 else counted(len(disk), "file")
    if all(data is None for data in disk.values()):
        what = f"delete {what}"
    elif lost:
        what = f"remove {counted(lost, 'block' if what in CORE_NAMES else 'fact')} from {what}"
    said = {"Memory-Op": [saves.EDIT], "Door": ["editor"], "Facts": fact_trailers(new)}
    return Commit(author, when, format_message(f"edit: {what}", "", said), disk)


def put_back_commits(touched: Sequence[TouchedFile], when: datetime, person: AskPerson) -> list[Commit]:
    """Commits that put back lines which a stale save had dropped: first the person's own, with them as the
    author, then ours. The trailers name every fact."""
    made = []
    for theirs, author in ((True, person), (False, lambda: MACHINE)):
        stages = {t.path: (t.saved, t.theirs) if theirs else (t.theirs, t.start) for t in touched}
        files = {path: after for path, (before, after) in stages.items() if before != after}
        if files:
            new = [saves.names_of_new(before, after, path) for path, (before, after) in stages.items()]
            named = [name for names in new for name in names]
            said = {"Memory-Op": [saves.MERGED], "Door": ["store"], "Facts": named}
            facts = sum(name.startswith("^") for name in named)  # the others are blocks, or have no id
            number = len(named) if theirs else facts
            what = counted(number, "line" if theirs else "fact") if number else "lines"
            text = format_message(f"merge: put back {what} a stale buffer had dropped", "", said)
            made.append(Commit(author(), when, text, files))
    return made


def put_back_notes(draft: Draft) -> list[str]:
    """Messages about merged stale saves, restored branches and removed forgotten text."""
    notes = [_put_back_note(t) for t in draft.touched.values() if t.is_stale]
    for t in draft.touched.values():
        if t.other_branch:
            name = t.other_branch.replace("refs/heads/", "branch ").replace("refs/remotes/", "branch ")
            notes.append(f"{t.path} had the content of {name}; restored")
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
    first, last = ", ".join(number[:-1]), number[-1] if number else "nothing"
    what = f"{first} and {last}" if first else last
    named = [_quote_line(line) for line in t.restored[:NAMED_FACTS]]
    named += [f"and {len(t.restored) - NAMED_FACTS} more"] if len(t.restored) > NAMED_FACTS else []
    return (
        f"{t.path} may have been saved from an old copy; {what} restored{': ' if named else ''}"
        f"{', '.join(named)}; delete {'it' if len(t.restored) == 1 else 'them'} again if you meant to"
    )


def _quote_line(line: saves.DroppedLine) -> str:
    words = shorten(" ".join(line.text.split()), QUOTED_CHARS)
    return f"{line.name} “{words}”" if line.name else f"“{words}”"


def fact_trailers(names: Sequence[str]) -> list[str]:
    """Values for `Facts` trailers: the names, or their number if there are too many."""
    return list(names) if len(names) <= NAMED_FACTS else [str(len(names))]


def bytes_to_commit(data: bytes | None, touched: TouchedFile) -> bytes | None:
    """What our commit has of a file: our bytes; of a held file, our change applied to HEAD's content."""
    if not touched.held or data is None:
        return data
    return saves.merge(touched.disk or b"", data, touched.in_head or b"").data


def is_committed(record: Pending, history: History) -> bool:
    """Whether the record's own commit was made already."""
    if not record.commits:
        return False
    rev = history.target(record.branch)
    if (joins := record.commits[-1].joins) and history.head() and history.holds(joins):
        return True
    newest = history.with_trailer("Request", record.request, rev=rev)
    return any(r.trailer("Request") == record.request for r in newest)


def commits_to_make(record: Pending, history: History, parent: str | None, *, moved: bool) -> list[Commit]:
    """The commits to make for a record: rebased if HEAD has `moved` to another `parent`, and with the
    person's name if git had none before."""
    wanted = [*record.commits, *record.after]
    if not moved and all(commit.author != SOMEBODY for commit in wanted):
        return wanted
    paths = sorted({path for commit in wanted for path in commit.files})
    there = history.blobs(paths, parent) if parent and paths else {}
    known = {c.path: c.in_head for c in record.changes}
    tip = {path: history.blob_or_guess(there.get(path), known.get(path)) for path in paths}
    base = {path: known.get(path, tip[path]) for path in paths}
    made = []
    for commit in wanted:
        files = {}
        for path, data in commit.files.items():
            new = data if tip[path] == base[path] else _rebase_content(base[path], tip[path], data)
            if new != tip[path]:
                files[path] = new
            base[path], tip[path] = data, new
        if files or commit is record.commits[-1]:
            author = history.person() if commit.author == SOMEBODY else commit.author
            # The fetched commit may have been collected as garbage: the next sync fetches it again.
            joins = commit.joins if commit.joins and history.has(commit.joins) else ""
            made.append(replace(commit, files=files, author=author, joins=joins))
    return made


def _rebase_content(base: bytes | None, tip: bytes | None, data: bytes | None) -> bytes | None:
    """A commit's content on another `tip`; None if one of the two deleted the file and nothing is left."""
    merged = saves.merge(base or b"", tip or b"", data or b"").data
    return merged if merged or (tip is not None and data is not None) else None


# -- concurrent saves --------------------------------------------------------------------------------------
# Merging a person's save that came while we were writing the file.
#
# Its merge base is what the editor had read: one of the contents that the file has had since the person's
# save before (docs/decisions/0014).


SHOWN_SMALL_FILE, SHOWN_LARGE_FILE = 16, 4
"""So many intermediate contents are recorded in `Shown` trailers, since an editor may have read one of them.
Fewer of a large file: all are written again in each round, and a slow round meets more saves."""
SHOWN_BYTES = 1 << 20
"""Up to so many bytes together there may be more than a few."""


@dataclass(frozen=True, slots=True)
class WriteContext:
    """What writing a revision's files needs.

    `inspect_save(path, bytes, in_head, intermediate)` classifies a person's save
    (`EditInspector.inspect_save`).
    """

    root: Path
    pending: Path
    inspect_save: Callable[[str, bytes | None, bytes | None, Sequence[bytes]], TouchedFile]
    person: AskPerson
    by_git: Callable[[Pending, str, bytes | None], bool] = lambda *_: False
    """Whether a `git checkout` may have written this content since the revision began. It is in a commit, so
    nothing is lost if it is replaced."""


def merge_save(record: Pending, number: int, save: bytes, context: WriteContext) -> Pending:
    """Merge a person's save into the file's wanted content, and add a commit of theirs to the record: before
    ours if it was made from what was there before, else after it."""
    change = record.changes[number]
    if not record.commits or _is_later_save(record, change, save):
        newer = _merge_later_save(record, change, save, context)
        if record.commits and not (
            saves.missing_lines(change.wanted, newer)
            and context.inspect_save(change.path, newer, change.wanted, ()).held
        ):
            record = _set_edit_after(record, change, newer, context)
        record = _record_intermediate(record, change, save)
        return record.with_change(number, change.after_save(save, newer))
    own = record.commits[-1]
    earlier = record.commits[:-1]
    before = [change.in_head, *(c.files[change.path] for c in earlier if change.path in c.files)]
    if change.start == change.aim and change.path in own.files:
        # The last one is a person's, too, or puts back what they dropped.
        before.append(own.files[change.path])
    # Another editor may have read the file before a save that we have merged already.
    touched = context.inspect_save(change.path, save, before[-1], _intermediates(record, change, before))
    wanted: bytes | None = saves.merge(change.start or b"", change.aim or b"", touched.start or b"").data
    if change.aim is None and not (wanted or b"").strip():
        wanted = None
    earlier = earlier[: len(earlier) - _count_superseded(earlier, change.path, save)]
    theirs, person = list[Commit](), partial(_known_person, record, context)
    if not touched.held:
        edited = [change.in_head, *(c.files[change.path] for c in earlier if change.path in c.files)]
        in_head = {change.path: edited[-1]}
        theirs.append(edit_commit({change.path: touched.saved}, in_head, own.when, person()))
    if touched.is_stale:
        theirs += put_back_commits([touched], own.when, person)
    record = replace(record, commits=(*earlier, *theirs, own))
    record = record.with_file(change.path, bytes_to_commit(wanted, touched))
    return _record_intermediate(record, change, save).with_change(number, change.after_save(save, wanted))


def merge_save_over_checkout(record: Pending, number: int, save: bytes, context: WriteContext) -> Pending:
    """Merge a save that replaced ours before a git checkout did: it was made from ours, and drops nothing of
    the checkout."""
    change = record.changes[number]
    ours = record.with_change(number, replace(change, wanted=change.placed))
    merged = merge_save(ours, number, save, context)
    return merged.with_change(number, replace(merged.changes[number], placed=change.wanted))


def _merge_later_save(record: Pending, change: FileChange, save: bytes, context: WriteContext) -> bytes:
    """The wanted content merged with a save that came after ours was in place.

    The base is a content of the file since the write began, or an older one if the save lacks lines of it.
    """
    base = _merge_base(record, change, save)
    if saves.missing_lines(base, save):
        contents = _intermediates(record, change, _committed_contents(record, change))
        touched = context.inspect_save(change.path, save, change.wanted, contents)
        if touched.is_stale:
            return touched.start or b""
        save = touched.saved or b""
    return saves.merge(base, change.wanted or b"", save).data


def _intermediates(record: Pending, change: FileChange, before: Sequence[bytes | None]) -> list[bytes]:
    """The contents that the file has had since the write began, newest first. Those that no commit has are in
    `Commit.blobs`."""
    commits = (c for c in (*record.commits, *record.after) if change.path in c.files)
    blobs = [data for commit in commits for data in commit.blobs]
    every = (*reversed(change.merged), change.placed, *reversed(blobs), change.start, *reversed(before))
    return [*dict.fromkeys(data for data in every if data)]


def _merge_base(record: Pending, change: FileChange, save: bytes) -> bytes:
    """The content that a save was made from: the one with the least edit distance.

    Not one that lacks a record which both the save and the wanted content have: it would be added twice.
    """
    contents = _intermediates(record, change, _committed_contents(record, change))
    base, whole = change.in_head or b"", (*contents, change.wanted or b"")
    contents += [saves.partial_content(base, data, save) for data in whole]
    ordered = sorted(contents, key=lambda data: saves.edit_distance(data, save))
    fitting = (data for data in ordered if not _duplicates_record(data, change, save))
    return next(fitting, ordered[0])


def _duplicates_record(base: bytes, change: FileChange, save: bytes) -> bool:
    """Whether a merge with this base would add a record twice."""
    ours, theirs = (b"\n".join(saves.missing_lines(data, base)) for data in (change.wanted, save))
    return not saves.by_key(ours, change.path).keys().isdisjoint(saves.by_key(theirs, change.path))


def _committed_contents(record: Pending, change: FileChange) -> list[bytes | None]:
    """The file in HEAD, and in each commit of a person's save."""
    commits = (*record.commits[:-1], *record.after)
    return [change.in_head, *(c.files[change.path] for c in commits if change.path in c.files)]


def _is_later_save(record: Pending, change: FileChange, save: bytes) -> bool:
    """Whether a save was made after ours was in place: it has a record that this revision adds, or follows
    such a save. If nothing was added, its merge base decides."""
    if any(change.path in commit.files for commit in record.after):
        return True
    added = set[saves.Key]()
    if change.path.endswith(".md"):
        added = saves.by_key(change.aim, change.path).keys() - saves.by_key(change.start, change.path).keys()
    if added:
        return not added.isdisjoint(saves.by_key(save, change.path))
    return change.turn > 0 and _merge_base(record, change, save) == change.placed


def _set_edit_after(record: Pending, change: FileChange, data: bytes, context: WriteContext) -> Pending:
    """The record with one commit of the person's edits of a file after ours."""
    blobs = [b for c in (record.commits[-1], *record.after) if change.path in c.files for b in c.blobs]
    edit = _make_edit_after(record, change, data, _known_person(record, context), naming=False)
    others = (commit for commit in record.after if change.path not in commit.files)
    return replace(record, after=(*others, _set_shown_trailers(edit, blobs)))


def _make_edit_after(
    record: Pending, change: FileChange, data: bytes | None, author: tuple[str, str], *, naming: bool
) -> Commit:
    own, path = record.commits[-1], change.path
    in_head = {path: own.files.get(path, change.in_head)}
    return edit_commit({path: data}, in_head, own.when, author, naming=naming)


def name_facts_after(record: Pending, number: int) -> Pending:
    """Name the facts in the person's commits after ours. Done once no more saves come, since it is slow for a
    long file."""
    change = record.changes[number]
    after = []
    for c in record.after:
        if change.path in c.files and record.commits:
            edit = _make_edit_after(record, change, c.files[change.path], c.author, naming=True)
            c = _set_shown_trailers(edit, c.blobs)
        after.append(c)
    return replace(record, after=tuple(after))


def _known_person(record: Pending, context: WriteContext) -> tuple[str, str]:
    """The person's (name, email), taken from an earlier commit if possible, since asking git is slow."""
    commits = (*record.commits, *record.after)
    edits = (c for c in commits if commit_trailers(c).get("Memory-Op") == (saves.EDIT,))
    return next((c.author for c in edits), None) or context.person()


def _record_intermediate(record: Pending, change: FileChange, save: bytes) -> Pending:
    """Record the file's intermediate content in the `Shown` trailer of its newest commit.

    An editor may have read just that, and its next save then lacks what is merged now: `saves.detect_stale`
    needs it as a merge base.
    """
    commits = [*record.commits, *record.after]
    own = len(record.commits)
    at = max((n for n, commit in enumerate(commits) if change.path in commit.files), default=None)
    if at is None:
        return record
    committed = any(commit.files.get(change.path) == save for commit in commits)
    contents = (change.wanted, None if committed else save)
    commits[at] = _set_shown_trailers(commits[at], [data for data in contents if data])
    return replace(record, commits=tuple(commits[:own]), after=tuple(commits[own:]))


def _set_shown_trailers(commit: Commit, contents: Sequence[bytes]) -> Commit:
    newest = list(dict.fromkeys(reversed((*commit.blobs, *contents))))[:SHOWN_SMALL_FILE]
    while len(newest) > SHOWN_LARGE_FILE and sum(map(len, newest)) > SHOWN_BYTES:
        newest.pop()
    old = {_shown_trailer(data) for data in commit.blobs}
    said = [line for line in commit.message.splitlines() if line not in old]
    blobs = tuple(reversed(newest))
    return replace(commit, message="\n".join([*said, *map(_shown_trailer, blobs)]) + "\n", blobs=blobs)


def _shown_trailer(data: bytes) -> str:
    return f"{saves.SHOWN_TRAILER}: {blob_id(data)}"


def _count_superseded(commits: tuple[Commit, ...], path: str, save: bytes) -> int:
    """How many of the last commits, saves of the same file, are contained in a later save and can be
    dropped."""
    lines = Counter(save.splitlines())
    number = 0
    for commit in reversed(commits):
        op = commit_trailers(commit).get("Memory-Op", ("",))[0]
        if set(commit.files) != {path} or op not in (saves.EDIT, saves.MERGED):
            break
        if op == saves.EDIT and Counter((commit.files[path] or b"").splitlines()) - lines:
            return 0
        number += 1
    return number


# -- writing the files -------------------------------------------------------------------------------------
# Steps W4 to W6 of docs/invariants.md, the first time and after a crash. The process may be killed between
# any two lines; `resume_write` lists what it can then find.


ROUNDS = 100
"""So many saves of the same file are merged while one revision is being written."""
DURABLE_ROUNDS = 3
"""So many of them are fsynced: an editor may save faster than the disk syncs."""
_NAME_HASH = re.compile(r"-[0-9a-f]{10}")
"""In the name of a swapped-out file: the hash of the file's own name (`_name_hash`)."""


def write_files(record: Pending, context: WriteContext) -> Pending:
    """Stage all files, exchange them, and merge saves that were swapped out; returns the updated record.

    CannotWrite before the first exchange cancels the revision; after it, the next command finishes it.
    """
    begun = False
    waiting = [c for c in record.changes if c.wanted != c.placed]
    try:
        for change in waiting:
            _stage(change, record.key, context)
        for change in waiting:
            swap.swap_in(context.root / change.path, _swap_path(change, record.key, context))
            begun = True
    except CannotWrite:
        if not begun:
            _cancel(record, context)
        raise
    for folder in {(context.root / change.path).parent: None for change in waiting}:
        swap.sync_swapped(folder)
    for number, change in enumerate(record.changes):
        if change.wanted != change.placed:
            record = _merge_saves(record, number, context)
    return record


def resume_write(record: Pending, context: WriteContext) -> Pending:
    """Finish the files of a revision whose process died. For each file, the swap file of this turn

    - is missing, or has the wanted content that is not yet in place: exchange now;
    - has the old content, or is a second name of the file: done;
    - has anything else: a person's save that was swapped out and is not yet merged.
    """
    for number, change in enumerate(record.changes):
        if change.wanted == change.placed:
            continue
        file, out = context.root / change.path, _swap_path(change, record.key, context)
        if not out.exists():
            _stage(change, record.key, context)
            swap.swap_in(file, out)
        elif not swap.same_file(out, file) and read(out) == change.wanted != read(file):
            swap.swap_in(file, out)
        swap.sync_swapped(file.parent)
        record = _merge_saves(record, number, context)
    return record


def resume_after_switch(
    record: Pending, context: WriteContext, head: Callable[[str], bytes | None]
) -> Pending:
    """Finish a revision after git has switched branches: the files of the other branch stay as they are.

    A person's save that was swapped out is added to the commits. `head(path)` is the other branch's content.
    """
    for number, change in enumerate(record.changes):
        out = _swap_path(change, record.key, context)
        save = read(out) if out.exists() and not swap.same_file(out, context.root / change.path) else None
        known = (change.start, change.aim, change.in_head, change.placed, change.wanted, head(change.path))
        if save and save not in known:
            record = merge_save(record, number, save, context)
        change = record.changes[number]
        record = record.with_change(number, replace(change, placed=change.wanted))
    return record


def _merge_saves(record: Pending, number: int, context: WriteContext) -> Pending:
    """Read what was swapped out, and merge saves until there are no more (step W6). Busy after `ROUNDS`.

    What was swapped out is

    - what was `placed` or is `wanted`, nothing, or a save that is not finished: done;
    - what git may have written while switching branches: put back, since ours is in the record;
    - a save that replaced ours before a git checkout did (`merge_save_over_checkout`), or any other: merged.
    """
    for turn in range(ROUNDS):
        change = record.changes[number]
        file, out = context.root / change.path, _swap_path(change, record.key, context)
        save = swap.swapped_out(file, out)
        if save not in (None, change.placed) and is_half_written(out, save or b""):
            save = change.placed  # an editor is at it still: a leftover, merged when it is whole
        # The file may have been missing for a moment: an editor renames the old one away, or somebody has
        # deleted it just now, and will have to do it again.
        by_git = save not in (change.placed, change.wanted) and context.by_git(record, change.path, save)
        if not by_git and (save is None or save in (change.placed, change.wanted)):
            if turn > DURABLE_ROUNDS:
                swap.sync_swapped(file.parent)
            return name_facts_after(record, number)
        if save is None or by_git:
            record = record.with_change(number, change.after_save(save, save))
        elif change.merged[-1:] == (change.wanted,) and context.by_git(record, change.path, change.wanted):
            record = merge_save_over_checkout(record, number, save, context)
        else:
            record = merge_save(record, number, save, context)
        store_pending.save(context.pending, record, durably=turn < DURABLE_ROUNDS)
        record = _delete_merged_save(record, number, out, context)
        change = record.changes[number]
        if change.wanted == change.placed:
            return name_facts_after(record, number)
        _stage(change, record.key, context)
        swap.swap_in(file, _swap_path(change, record.key, context))
        if turn < DURABLE_ROUNDS:
            swap.sync_swapped(file.parent)
    raise Busy("the file is being saved continuously", where=record.changes[number].path, hint="try again")


def _delete_merged_save(record: Pending, number: int, out: Path, context: WriteContext) -> Pending:
    """Delete a swapped-out save that is merged, recorded and no longer open, to keep the record short.

    The content of the last one stays in the record, since the next save may be made from it.
    """
    change = record.changes[number]
    if not is_unused(out) or read(out) != change.merged[-1]:
        return record
    with contextlib.suppress(OSError):
        out.unlink()
    *before, last = change.merged
    kept = (
        data if _swap_path(change, record.key, context, turn).exists() else None
        for turn, data in enumerate(before)
    )
    return record.with_change(number, replace(change, merged=(*kept, last)))


# -- leftovers beside the files ----------------------------------------------------------------------------


def remove_leftovers(record: Pending, context: WriteContext) -> tuple[Pending, bool]:
    """Delete the swapped-out files; (the record, whether none is left).

    A program that still had the old file open may have written to it after the exchange. Once all commits are
    made, its text is merged back into the file, and the next command commits it as a hand edit. A file that
    is still open stays.
    """
    done = True
    seen: set[Path] = set()
    listed, leftovers = record, _find_leftovers(record, context)
    for number, change in enumerate(record.changes):
        while fresh := [p for p in leftovers.get(context.root / change.path, ()) if p not in seen]:
            seen.update(fresh)
            for out in fresh:
                record, gone = _remove_leftover(record, number, out, context)
                done = done and gone
            if record is not listed:  # late text was merged by one more turn, which leaves a file too
                listed, leftovers = record, _find_leftovers(record, context)
    return record, done


def _remove_leftover(record: Pending, number: int, out: Path, context: WriteContext) -> tuple[Pending, bool]:
    change = record.changes[number]
    if not out.name.startswith(swap.TEMP_PREFIX) and not swap.same_file(out, context.root / change.path):
        if not is_unused(out):
            return record, False
        late = read(out)
        known = (change.start, change.aim, change.in_head, change.placed, change.wanted, *change.merged)
        if late and late.strip() and late not in known:
            if record.commits:
                return record, False
            record = _merge_late_write(record, number, out, late, context)
    try:
        out.unlink(missing_ok=True)
    except OSError:
        return record, False
    return record, True


def _merge_late_write(record: Pending, number: int, out: Path, late: bytes, context: WriteContext) -> Pending:
    """Merge text that was written into a swapped-out file, as one more turn of the same change."""
    change = record.changes[number]
    turn = int(out.name.removeprefix(_name_prefix(swap.SWAP_PREFIX, record.key)).partition("-")[0])
    taken = [*change.merged, change.placed]
    base, taken[turn] = taken[turn], late
    now = read(context.root / change.path)
    wanted = saves.merge(base or b"", now or b"", late).data
    new = FileChange(change.path, now, now, change.in_head, now, wanted, tuple(taken))
    # The other files are done, so a later save of them is an ordinary hand edit.
    done = tuple(c if c.wanted == c.placed else c.after_save(c.placed, c.wanted) for c in record.changes)
    record = replace(record, changes=done, written=False).with_change(number, new)
    store_pending.save(context.pending, record)
    record = replace(resume_write(record, context), written=True)
    store_pending.save(context.pending, record)
    return record


def _cancel(record: Pending, context: WriteContext) -> None:
    """Delete the record and staged files of a revision that has changed no file yet."""
    with contextlib.suppress(CannotWrite):
        store_pending.delete(context.pending, record.key)
    for outs in _find_leftovers(record, context).values():
        for out in outs:
            with contextlib.suppress(OSError):
                out.unlink()


def _stage(change: FileChange, key: str, context: WriteContext) -> None:
    if change.wanted is not None:
        swap.stage(context.root / change.path, change.wanted, _swap_path(change, key, context))


def _swap_path(change: FileChange, key: str, context: WriteContext, turn: int | None = None) -> Path:
    file = context.root / change.path
    turn = change.turn if turn is None else turn
    return file.with_name(f"{_name_prefix(swap.SWAP_PREFIX, key)}{turn}{_name_hash(file)}")


def _find_leftovers(record: Pending, context: WriteContext) -> dict[Path, list[Path]]:
    """{file: its staged and swapped-out files}. Each folder is read once: with one reading per file, 2,000
    imported notes took five minutes."""
    files = [context.root / change.path for change in record.changes]
    by_hash = {(file.parent, _name_hash(file)): file for file in files}
    found: dict[Path, list[Path]] = {}
    for folder in dict.fromkeys(file.parent for file in files):
        for out in swap.list_files(
            folder, *(_name_prefix(kind, record.key) for kind in (swap.TEMP_PREFIX, swap.SWAP_PREFIX))
        ):
            hashed = _NAME_HASH.search(out.name, out.name.index(record.key) + len(record.key))
            if hashed and (file := by_hash.get((folder, hashed[0]))):
                found.setdefault(file, []).append(out)
    return found


def _name_prefix(kind: str, key: str) -> str:
    return f"{kind}{key}."


def _name_hash(file: Path) -> str:
    # The name itself may already have the maximal length.
    return "-" + hashlib.sha256(file.name.encode("utf-8", "surrogateescape")).hexdigest()[:10]
