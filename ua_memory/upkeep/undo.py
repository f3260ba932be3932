"""`undo` and `redo`: revert a revision by a three-way merge in a new one; the history is never rewritten."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import SequenceMatcher
from io import BytesIO
from itertools import dropwhile, islice, pairwise

from ua_memory.errors import Conflict, GitFailed, NotFound, UaMemoryError, Usage, at_least, checked
from ua_memory.git.repository import BlameLine, Revision
from ua_memory.knowledge import lineage, statements, tombstones
from ua_memory.knowledge.entities import ENTITIES, draft_entities, restore_all_names
from ua_memory.knowledge.statements import Known, Statement
from ua_memory.markdown import document as markdown_document
from ua_memory.markdown.blocks import BlockShape, scan
from ua_memory.paths import confined, is_memory_file
from ua_memory.records import CoreBlock, Entity, MentalModel, Page, Record
from ua_memory.store import saves
from ua_memory.store.draft import Draft, Result
from ua_memory.store.files import read
from ua_memory.store.scan import bytes_on_disk
from ua_memory.store.store import Store
from ua_memory.text.wording import counted
from ua_memory.upkeep import audit
from ua_memory.upkeep.audit import StatementChange, parent
from ua_memory.upkeep.forget import remove_derived
from ua_memory.upkeep.merge import common_parts

SHOWN_CONFLICTS = 5
"""An error shows so many conflicts in full."""


@dataclass(frozen=True, slots=True)
class UndoResult:
    """The revision that was undone, or the newest one if held facts were restored; and the undo's result."""

    revision: Revision
    result: Result


@dataclass(frozen=True, slots=True)
class ConflictSides:
    """A conflict: lines as they are `now`, changed by a later revision, and as undo would have them."""

    path: str
    line: int
    now: str
    wanted: str


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """What an undo of `revision` would change in the present files, or the `conflicts` that prevent it.
    `op` is undo, redo, restore, or edit: of hand edits that undo commits first."""

    op: str
    revision: Revision
    changes: tuple[StatementChange, ...] = ()
    conflicts: tuple[ConflictSides, ...] = ()
    notes: tuple[str, ...] = ()


def _find_revision(store: Store, op: str, revision: str | None = None) -> tuple[Revision | None, list[str]]:
    """The revision to undo, None if undo restores held files instead; and a note if another machine's newer
    one stays. NotFound."""
    store.require_settled()
    if revision is not None:
        return store.history.show(statements.strip_target(revision)), []
    if op == "undo" and store.survey().held:
        return None, []
    settled, machine, theirs = store.history.undone_revisions(), store.machine(), list[str]()
    for done in store.history.revisions():
        did = done.trailer("Memory-Op")
        if op == "undo" and did == "init":  # an older revision is undone only if it is named
            break
        fits = did == "undo" if op == "redo" else did not in ("undo", "redo", "sync")
        # A person's own commits, such as a vault's hourly backup, may be of other files alone.
        if fits and done.id not in settled and (op == "redo" or any(map(is_memory_file, done.paths))):
            if done.trailer("Machine") in ("", machine) or op == "redo":
                return done, theirs[:1]
            id, what = done.id[:7], f"({done.subject}) is from another machine"
            theirs.append(f"{id} {what}; `ua-memory undo {id}` takes it back")
    what = f"nothing of this machine to {op}; {theirs[0]}" if theirs else f"nothing to {op}"
    raise NotFound(what, hint="ua-memory log")


def _finished_edits(store: Store) -> list[str]:
    """Files with hand edits since the newest revision that nobody is still at: those deleted, what they were
    renamed to, and those left alone for `quiet_seconds`. None if others are held."""
    seen, newest = store.survey(), store.history.show("HEAD").when.timestamp()
    since = [path for path, changed_ns in seen.changed.items() if changed_ns >= newest * 1e9]
    on_disk: dict[str, bytes | None] = {}
    for path in () if seen.held else since:  # what is held comes first
        with contextlib.suppress(UaMemoryError):  # what cannot be read is left out
            on_disk[path] = read(confined(store.bank.root, path))
    gone = {store.history.read("HEAD", path) for path, data in on_disk.items() if data is None}
    quiet = store.to_adopt(seen, on_disk, store.config.quiet_seconds, False)
    return [path for path, data in on_disk.items() if data is None or data in gone or path in quiet]


def _draft_undo(
    store: Store, draft: Draft, done: Revision | None
) -> Sequence[tuple[str, saves.LineConflict]]:
    """Write the files without a revision's changes, or with what disappeared from held ones, into the draft;
    or return conflicts with later revisions."""
    if done is None:
        _draft_restore(store, draft)
        return ()
    if done.trailer("Memory-Op") == "init":
        raise Usage("the creation of the bank cannot be undone", where=done.id[:10], hint="delete its folder")
    before = parent(store, done.id)
    names = draft_entities(draft) if ENTITIES in done.paths else ()
    clashes: list[tuple[str, saves.LineConflict]] = []
    mine = [path for path in done.paths if is_memory_file(path)]
    if done.paths and not mine:
        hint = f"ua-memory git revert {done.id[:10]}"
        raise Usage("it changed no file of the bank", where=done.id[:10], hint=hint)
    if others := len(done.paths) - len(mine):
        draft.notes.append(f"{counted(others, 'file')} outside of the bank not undone")
    for path in mine:
        clashes += [(path, c) for c in _take_back_file(store, draft, path, before, done.id)]
    if clashes:
        return clashes
    _refuse_forgotten(store, draft, done)
    if (lost := _removed_statements(draft)) and (rested := remove_derived(store, draft, lost)):
        draft.notes.append(f"what depended on it was removed or revised too: {rested}")
    if not draft.changed():
        raise Conflict(f"nothing is left to {draft.op}", where=done.id[:10], hint="ua-memory log")
    restore_all_names(store, draft, names, draft_entities(draft) if names else ())
    draft.trailers["Undoes"] = [done.id]
    draft.facts = list(done.trailers.get("Facts", ()))
    draft.subject = f"{draft.op}: {done.subject}"
    return ()


def _removed_statements(draft: Draft) -> dict[str, Statement]:
    """{id: statement} that a draft removes from the bank."""
    was: dict[str, Statement] = {}
    stay: set[str | None] = set()
    for path, data in draft.changed().items():
        before = markdown_document.parse(draft.touched[path].start or b"", path)
        was |= {r.ref: r for r in before.statements if r.ref}
        stay |= {r.ref for r in markdown_document.parse(data or b"", path).statements}
    return {block: record for block, record in was.items() if block not in stay}


def _refuse_forgotten(store: Store, draft: Draft, done: Revision) -> None:
    """Raise Conflict if the draft would restore something forgotten.

    Undoing the `forget` itself removes its tombstone, and is refused only if the text was purged.
    """
    forgotten = tombstones.read(store, draft.read(tombstones.PATH))
    lifted = tombstones.read(store).by_id.keys() - forgotten.by_id.keys()
    if lifted & tombstones.purged(store):
        hint = "its backup may have it (ua-memory status); ua-memory undo REVISION undoes an earlier one"
        raise Conflict("it was purged from the history and cannot be restored", where=done.id[:10], hint=hint)
    for path, data in draft.changed().items() if forgotten.by_id else ():
        old = set(markdown_document.parse(draft.touched[path].start or b"", path).records)
        for record in markdown_document.parse(data or b"", path).statements:
            if record not in old and forgotten.matches(record):
                name = f"^{record.id}" if record.id else f"{path}:{record.place.line}"
                hint = "undo the forgetting first (ua-memory log --op forget)"
                raise Conflict("it would restore what was forgotten", where=name, hint=hint)


def _take_back_file(
    store: Store, draft: Draft, path: str, parent: str | None, sha: str
) -> tuple[saves.LineConflict, ...]:
    """Write a file without one revision's changes into the draft; or return the conflicts."""
    then = store.history.read(sha, path)
    before = store.history.read(parent, path) if parent else None
    now = draft.get(path)
    if now == then:
        draft.restore(path, before)
        return ()
    there = saves.by_key(now, path)
    again = saves.by_key(before, path).keys() - saves.by_key(then, path).keys()
    if path == tombstones.PATH and again and again <= there.keys():
        return ()  # forgotten once more since, with another salt
    added = _added_records(then or b"", before or b"", path)
    if added is None or any(kind == "text" and (kind, name) not in there for kind, name in added):
        return _take_back_lines(draft, path, before, then, now or b"")
    # Facts are removed one by one: at the end of a log the lines around them change with every revision.
    if changed := _changed_since(added, there):
        lines, places = _lines(now or b""), [record.place for record in changed]
        return tuple(saves.LineConflict(at.line, tuple(lines[at.line - 1 : at.end]), ()) for at in places)
    own = [there[key] for key in added if key in there]
    left = _remove_records(now or b"", path, own, then or b"", before or b"")
    bare = not any(line.strip() and not line.startswith(b"# ") for line in _lines(left))
    draft.restore(path, None if before is None and bare else left)
    return ()


def _take_back_lines(
    draft: Draft, path: str, before: bytes | None, then: bytes | None, now: bytes
) -> tuple[saves.LineConflict, ...]:
    """Merge a file as it is with how it was before the revision, line by line."""
    # A file that was deleted and created again since: the lines that both have are the merge base.
    base = b"".join(common_parts(_lines(now), _lines(before or b""))) if then is None else then
    merged = saves.merge(base, now, before or b"")
    draft.write(path, merged.data, restored=True)
    return merged.conflicts if _may_keep_both(merged.data, path) else merged.conflicts + merged.inserted


def _changed_since(added: Mapping[saves.Key, Record], there: Mapping[saves.Key, Record]) -> list[Record]:
    """What a file has now of a revision's records that were changed since."""
    # The key of a core block includes its value: a missing key means that the value was changed.
    lost = {r.name for key, r in added.items() if key not in there and isinstance(r, CoreBlock)}
    changed = [there[key] for key, record in added.items() if key in there and there[key] != record]
    return changed + [r for r in there.values() if isinstance(r, CoreBlock) and r.name in lost]


def _may_keep_both(data: bytes, path: str) -> bool:
    """Whether lines that two revisions inserted at the same spot may both stay: facts may, two values of a
    setting, a core block, a page or an entity may not."""
    records = markdown_document.parse(data, path).records if path.endswith(".md") else ()
    named = [(type(r), r.name) for r in records if isinstance(r, CoreBlock | Entity)]
    whole = any(isinstance(r, Page | MentalModel) for r in records) or not path.endswith(".md")
    return not whole and len(named) == len(set(named))


def _added_records(then: bytes, before: bytes, path: str) -> Mapping[saves.Key, Record] | None:
    """The records that a revision added to a file; None if it changed anything else in it."""
    old, new = saves.by_key(before, path), saves.by_key(then, path)
    added = {key: record for key, record in new.items() if key not in old}
    if not added or any(new.get(key) != record for key, record in old.items()):
        return None
    rest = _remove_records(then, path, list(added.values()), then, before)
    title = 1 if not before and rest.startswith(b"# ") else 0
    return added if _rows(rest)[title:] == _rows(before) else None


def _lines(data: bytes) -> list[bytes]:
    return BytesIO(data).readlines()  # at newlines alone, as `markdown` counts them


def _rows(data: bytes) -> list[bytes]:
    return [line.rstrip() for line in _lines(data) if line.strip()]


def _remove_records(data: bytes, path: str, records: Sequence[Record], then: bytes, before: bytes) -> bytes:
    """A file without some of its records, and without headings of the same revision that become empty."""
    lines = _lines(data)
    gone = {n for record in records for n in range(record.place.line - 1, record.place.end)}
    document = markdown_document.parse(data, path)
    starts = [b.start for b in scan(document.lines, document.front_end) if b.shape is BlockShape.HEADING]
    for start, end in pairwise([*starts, len(lines)]):
        body = [n for n in range(start + 1, end) if lines[n].strip()]
        its_own = _rows(then).count(lines[start].rstrip()) > _rows(before).count(lines[start].rstrip())
        if its_own and gone.intersection(body) and gone.issuperset(body):
            gone.update(range(start, end))
            if end == len(lines) and start and not lines[start - 1].strip():
                gone.add(start - 1)
    return b"".join(line for n, line in enumerate(lines) if n not in gone)


def _draft_restore(store: Store, draft: Draft) -> None:
    held = store.survey().held
    for path, blob in held.items():
        draft.read(path)
        # No longer held: the save is committed as the person's, and what it dropped is restored.
        draft.touched[path] = replace(draft.touched[path], held=False)
        disk = draft.touched[path].disk or b""
        draft.write(path, _merge_held(store.history.blob(blob), disk, path), restored=True)
    draft.subject = f"restore: what disappeared from {counted(len(held), 'file')}"


def _merge_held(in_head: bytes, disk: bytes, path: str) -> bytes:
    """The committed lines with those that only the disk has; of a reworded fact, the disk's version."""
    kept, known = saves.by_key(disk, path), saves.by_key(in_head, path)
    changed = [record.place for key, record in known.items() if key in kept and kept[key] != record]
    reworded = {number for place in changed for number in range(place.line - 1, place.end)}
    a, b = _lines(in_head), _lines(disk)
    out: list[bytes] = []
    for tag, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        out += [line for n, line in enumerate(a[i:j], i) if tag == "equal" or n not in reworded]
        out += b[k:m] if tag in ("insert", "replace") else []
    return b"".join(line if line.endswith(b"\n") else line + b"\n" for line in out)


def _decode(lines: Sequence[bytes]) -> str:
    return b"".join(lines).decode("utf-8", "replace").rstrip("\n")


def _conflict_message(clashes: Sequence[tuple[str, saves.LineConflict]]) -> str:
    count = len(clashes)
    parts = [f"{count} place{'s were' if count > 1 else ' was'} changed again since:"]
    for path, clash in clashes[:SHOWN_CONFLICTS]:
        parts.append(f"{path}:{clash.line}")
        parts += [f"  now:    {line.decode('utf-8', 'replace').rstrip()}" for line in clash.ours]
        parts += [f"  wanted: {line.decode('utf-8', 'replace').rstrip()}" for line in clash.theirs]
    return "\n".join(parts)


# -- interface ---------------------------------------------------------------------------------------------


MANY_FILES = 50
"""Revisions with so many files are not read for their statements: an adopted bank may have a million."""


@checked
class BankHistory:
    """`memory.history`: log, diff, undo and blame of one bank.

    `door` names the interface that asks; `known` gives the files of an id.
    """

    def __init__(self, store: Store, door: str, known: Known | None = None) -> None:
        self._store, self._door, self._known = store, door, known

    def log(
        self, about: str | None = None, *, op: str | None = None, limit: int | None = 20,
        since: datetime | None = None, until: datetime | None = None, before: str | None = None,
    ) -> Sequence[Revision]:  # fmt: skip
        """Revisions, newest first: all, or those of a file or a fact (`^id`); made at `since` or later and
        before `until`. For paging, `before` is the last revision of the previous page.

        NotFound for an unknown file, fact or revision, Usage for a path outside the bank.
        """
        at_least(0, limit=limit)

        def wanted(one: Revision) -> bool:
            made = (since is None or one.when >= since) and (until is None or one.when < until)
            return made and op in (None, one.trailer("Memory-Op"))

        history = self._store.history
        every = history.revisions()
        if before is not None:
            sha = history.resolve(statements.strip_target(before))
            every = islice(dropwhile(lambda one: one.id != sha, every), 1, None)
        if not about and op is None:
            return list(islice(filter(wanted, every), limit))
        done = audit.revisions_of(self._store, about) if about else history.with_trailer("Memory-Op", str(op))
        if before is not None:
            older = {one.id for one in every}
            done = [one for one in done if one.id in older]
        found = [one for one in done if wanted(one)][:limit]
        return found if about else history.with_paths(found)

    def statements_by_revision(
        self, revisions: Sequence[Revision], about: str | None = None
    ) -> Mapping[str, tuple[Statement, ...]]:
        """{revision: the statements it added or changed}, with the text of that revision.

        `about` restricts them to a file or a fact (`^id`). Forgotten statements are left out, and secrets
        masked. Revisions with `MANY_FILES` files or more are not read.
        """
        store = self._store
        if about:
            target = audit.target_of(store, about)
            about = f"^{target.id}" if target.id else target.path
        files = [
            (one.id, path) for one in revisions for path in one.paths
            if path.endswith(".md") and is_memory_file(path) and len(one.paths) < MANY_FILES
            and (not about or about.startswith("^") or path == about)
        ]  # fmt: skip
        sides = [store.history.read_all([(f"{rev}{up}", path) for rev, path in files]) for up in ("^", "")]
        forgotten = tombstones.read(store)
        found: dict[str, list[Statement]] = {}
        for (revision, path), *both in zip(files, *sides, strict=True):
            old, new = (Counter(markdown_document.parse(data or b"", path).statements) for data in both)
            for record in new - old:
                if (not about or about in (path, f"^{record.id}")) and not forgotten.matches(record):
                    said = replace(record, text=store.redacted(record.text))
                    found.setdefault(revision, []).append(said)
        return {revision: tuple(records) for revision, records in found.items()}

    def undone_by(self, revisions: Sequence[Revision]) -> list[Revision]:
        """The revisions that these undid or redid, and those that they had undone, as far as known."""
        found = {one.id: one for one in revisions}
        left = [name for one in revisions for name in one.trailers.get("Undoes", ())]
        while left:
            if (name := left.pop()) not in found:
                with contextlib.suppress(NotFound):
                    found[name] = self._store.history.show(name)
                    left += found[name].trailers.get("Undoes", ())
        return list(found.values())[len(revisions) :]

    def diff(self, revision: str | None = None) -> str:
        """A unified diff of a revision, or of the hand edits that are not committed yet."""
        return audit.diff(self._store, revision)

    def changes(self, revision: str | None = None, limit: int | None = None) -> Sequence[StatementChange]:
        """The same by statement, at most `limit`."""
        return list(islice(audit.changes(self._store, revision), limit))

    def plan_undo(self, revision: str | None = None) -> UndoPlan:
        """What `undo` would change; writes nothing."""
        return self._plan("undo", revision)

    def plan_redo(self) -> UndoPlan:
        """What `redo` would change; writes nothing."""
        return self._plan("redo")

    def _plan(self, op: str, revision: str | None = None) -> UndoPlan:
        """Conflicts of lines are part of the plan; other refusals are raised."""
        store = self._store
        if op == "undo" and revision is None and (edits := _finished_edits(store)):
            both = [(p, bytes_on_disk(store.bank.root / p), store.history.read("HEAD", p)) for p in edits]
            taken = [one for sides in both for one in audit.file_changes(*sides, store.redacted)]
            return UndoPlan("edit", store.history.show("HEAD"), tuple(taken))
        done, notes = _find_revision(store, op, revision)
        with store.revision(op if done else "restore", door=self._door) as draft:
            draft.trial = True
            draft.notes += notes
            clashes = _draft_undo(store, draft, done)
        found: list[StatementChange] = []
        for path, data in sorted(draft.changed().items()) if not clashes else ():
            found += audit.file_changes(path, draft.touched[path].start, data, store.redacted)
        sides = tuple(
            ConflictSides(path, clash.line, *map(store.redacted, map(_decode, (clash.ours, clash.theirs))))
            for path, clash in clashes
        )
        newest = done or store.history.show("HEAD")
        return UndoPlan(draft.op, newest, tuple(found), sides, tuple(draft.notes))

    def undo(self, revision: str | None = None, *, by_person: bool = False) -> UndoResult:
        """Undo a revision, also an old one, and keep what came later. On a Conflict nothing is written.

        Without a revision: restore held files, else undo the newest finished hand edit or revision of this
        machine not undone yet. With `by_person` the person is the commit's author.
        """
        return self._undo("undo", revision, by_person=by_person)

    def redo(self, *, by_person: bool = False) -> UndoResult:
        """Undo the newest undo that is not undone yet."""
        return self._undo("redo", by_person=by_person)

    def _undo(self, op: str, revision: str | None = None, *, by_person: bool) -> UndoResult:
        if op == "undo" and revision is None:
            self._store.adopt(_finished_edits(self._store))
        done, notes = _find_revision(self._store, op, revision)
        newest = done or self._store.history.show("HEAD")
        op = op if done else "restore"
        with self._store.revision(op, door=self._door, by_person=by_person) as draft:
            draft.notes += notes
            if clashes := _draft_undo(self._store, draft, done):
                hint = "change the file by hand, or undo the later revision first"
                touched = [draft.touched[path] for path, _ in clashes]
                if edited := next((one.path for one in touched if one.disk != one.in_head), ""):
                    wait = f"{self._store.config.quiet_seconds:g} seconds after it was saved"
                    hint = f"{edited} has an edit that is not committed yet; ua-memory undo undoes it, {wait}"
                raise Conflict(_conflict_message(clashes), where=newest.id[:10], hint=hint)
        return UndoResult(newest, draft.result)

    def blame(self, target: str) -> Sequence[BlameLine]:
        """Who wrote each line of a file, a range or a fact."""
        return audit.blame(self._store, target)

    def why(self, target: str) -> lineage.Chain:
        """What `^id`, `PATH:LINE` or a file rests on, down to quotes, session and commit."""
        return lineage.why(self._store, target, self._known)

    def git(self, words: Sequence[str], env: Mapping[str, str]) -> int:
        """Run git on the history for a person, on this process's streams and with their environment; the
        exit code. Usage for arguments that are not allowed, GitFailed."""
        history = self._store.history
        if not history.exists:
            raise GitFailed("there is no history yet", where=str(history.git_dir), hint="ua-memory init")
        return history.run_for_person(words, env)
