"""`Store`: reading the truth, and `revision`, the only code that locks, writes and commits."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import replace
from datetime import datetime
from functools import partial

from ua_memory import discovery
from ua_memory.config import Config
from ua_memory.discovery import BESIDE
from ua_memory.errors import Busy, CannotWrite, GitFailed, NoBank, NotFound, UaMemoryError, writing
from ua_memory.git import history as git_history
from ua_memory.git.history import History, RepositoryState
from ua_memory.git.repository import MACHINE, Revision
from ua_memory.paths import Bank, LinkNames, confined, make_private
from ua_memory.store import commit as store_commit
from ua_memory.store import pending, saves, swap
from ua_memory.store.draft import Draft, EditInspector, Result
from ua_memory.store.files import FileStat, read
from ua_memory.store.lock import locked
from ua_memory.store.pending import FileChange, Pending
from ua_memory.store.scan import FileSurvey, SnapshotCache, survey
from ua_memory.text import redaction
from ua_memory.text.wording import counted

# -- store -------------------------------------------------------------------------------------------------
# The order of writes is W1–W8 of `docs/invariants.md`: lock; write a record into `pending/`; exchange each
# file and read what was swapped out; make one commit per author; delete the record; acknowledge. If the
# process is killed, the next command rolls the record forward.


PACK_EVERY = 16
"""About once in so many revisions it is checked whether the history needs packing."""
GIT_SECONDS = 10
"""So long a revision waits for a git that is writing files."""
COMMIT_ATTEMPTS = 3
"""A commit is retried so often if somebody else commits at the same moment."""
SURVEY_VALID_SECONDS = 0.2
"""`accepted_bytes` uses a survey for so long, so that reading all files does not survey for each."""


class Store:
    """One bank's files and history. `now` gives aware times in the bank's timezone."""

    def __init__(self, bank: Bank, config: Config, now: Callable[[], datetime]) -> None:
        self.bank, self.config, self.now = bank, config, now
        self._process = os.getpid()
        self.history = History(bank.git_dir, bank.root, own=bank.own)
        self._inspector = EditInspector(bank, config, self.history, self.survey)
        self._context = store_commit.WriteContext(
            bank.root, bank.pending, self._inspector.inspect_save, self.history.person, self._is_by_git
        )
        self.link_names = LinkNames(bank.root)
        self._began: tuple[RepositoryState, str | None] = RepositoryState(), None
        self._recent: tuple[float, FileSurvey] | None = None
        self._failed: GitFailed | None = None
        """Why a pending revision could not be committed at the last attempt."""
        self.snapshots: SnapshotCache | None = None
        """The cache of the last scan; only a daemon has one."""
        self.defer_pack: Callable[[], bool] | None = None
        """Returns whether the caller will run `pack` later; a daemon does so when it is idle."""

    def close(self) -> None:
        """End the process that reads git objects; a later call starts another."""
        self.history.close()

    # -- reading -----------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        """The bytes of a file on disk. NotFound."""
        data = read(confined(self.bank.root, path))
        if data is None:
            raise NotFound("no such file in the bank", where=path, hint="ua-memory status")
        return data

    def survey(self) -> FileSurvey:
        """All files, those that differ from HEAD and those that are held. Cheap if nothing changed.

        NoBank if the folder is gone."""
        self._require_folder()
        last = self._recent and self._recent[1].snapshot
        seen = survey(self.bank, self.history, self.config.few, self.snapshots, last)
        self._recent = (time.monotonic(), seen)
        return seen

    def files(self) -> Iterator[FileStat]:
        """The files to search: those on disk, and of held ones the version in HEAD."""
        yield from self.survey().files

    def accepted_bytes(self, path: str) -> bytes:
        """The bytes of a file to search: those on disk, or in HEAD while it is held."""
        recent = self._recent
        fresh = recent is not None and time.monotonic() - recent[0] < SURVEY_VALID_SECONDS
        seen = recent[1] if recent and fresh else self.survey()
        blob = seen.held.get(path)
        return self.history.blob(blob) if blob else self.read(path)

    # -- writing -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def revision(
        self, op: str, *, door: str, request: str | None = None, session: str | None = None,
        by_person: bool = False,
    ) -> Iterator[Draft]:  # fmt: skip
        """Open a revision. Leaving the block publishes it; an exception in the block discards it.

        Hand edits of the files that the draft reads are first committed as the person's. `draft.result` has
        the outcome. If a revision with the same `request` id exists, it is `draft.already_done`, and nothing
        is written. Busy, CannotWrite and GitFailed are raised before any file is changed; if only the commit
        fails, that is a note, and the next command makes it.
        """
        request = store_commit.request_id(self.redacted(request)) if request is not None else None
        session = self.redacted(session) if session else None
        with self.locked():
            if not self._wait_for_git():
                hint = "try again when it is done"
                raise Busy("git is changing the files", where=str(self.history.git_dir), hint=hint)
            found = self.history.restore_branch()
            draft = self._open_draft(op, door)
            draft.notes += found
            draft.by_person = by_person
            draft.already_done = self.find_request(request) if request else None
            if session:
                draft.trailers["Session"] = [session]
            yield draft
            if draft.trial:
                return
            self._read_moved(draft)
            draft.result = self._publish(draft, request)
        self.tidy()

    def _read_moved(self, draft: Draft) -> None:
        """If the person has moved facts between a file of this revision and others, read these, too: in
        commits of their own the facts would be in both files after an undo, or in neither."""

        def changed(path: str, old: bytes | None, new: bytes | None) -> Set[saves.Key]:
            return saves.by_key(old, path).keys() ^ saves.by_key(new, path).keys()

        edited = [one for one in draft.touched.values() if one.in_head != one.disk]
        moved = {key for one in edited for key in changed(one.path, one.in_head, one.disk)}
        if not moved:
            return
        seen = self.survey()
        for path in sorted(seen.changed.keys() - seen.held.keys() - draft.touched.keys()):
            with contextlib.suppress(UaMemoryError):  # an edit that cannot be read is not this revision's
                old, new = self.history.read("HEAD", path), read(confined(self.bank.root, path))
                if changed(path, old, new) & moved and not self._inspector.is_of_other_branch(path):
                    draft.read(path)

    def adopt(
        self, paths: Iterable[str] | None = None, *, quiet: float = 0, accept: bool = False,
        seen: FileSurvey | None = None, wait: bool = True,
    ) -> Result:  # fmt: skip
        """Commit hand edits as the person's: of some paths or all, if unchanged for `quiet` seconds.

        `accept` confirms held disappearances. A stale save is merged at once, however recent, since searches
        would miss what it lacks. `seen` is a survey that was just made. Without `wait` nothing is done while
        somebody holds the lock.
        """
        seen = seen or self.survey()
        chosen = self.to_adopt(seen, paths, quiet, accept)
        if not chosen and pending.is_empty(self.bank.pending):
            return Result(self.history.head())
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(self.locked(None if wait else 0))
            except Busy:
                if wait:
                    raise
                return Result(self.history.head())
            if not self._wait_for_git():  # what git is writing is not an edit
                return Result(self.history.head())
            draft = self._open_draft("adopt", "editor", adopting=True, accept=accept)
            for path in sorted(chosen):
                draft.read(path)
            return self._publish(draft, None)

    def to_adopt(self, seen: FileSurvey, paths: Iterable[str] | None, quiet: float, accept: bool) -> set[str]:
        """The files whose hand edits `adopt` commits."""
        chosen = set(seen.changed) if paths is None else set(paths) & set(seen.changed)
        chosen -= {path for path in seen.held if not accept and not self._inspector.is_of_other_branch(path)}
        horizon = time.time_ns() - int(quiet * 1e9)
        recent = {path for path in chosen if seen.changed[path] > horizon} if quiet else set()
        head = self.history.head() if recent else None  # once: of a bank copied just now all files are recent
        chosen -= {path for path in recent if not self._inspector.is_stale(path, head)}
        return {path for path in chosen if not self._inspector.is_conflicted(path)}

    def _open_draft(self, op: str, door: str, *, adopting: bool = False, accept: bool = False) -> Draft:
        """Finish pending revisions, and open an empty draft."""
        owed = self._finish_pending()
        touch = partial(self._inspector.inspect, owed=owed, adopting=adopting, accept=accept)
        self._began = self._read_position()
        return Draft(op, door, touch, self.config.redact, self.typed, self.link_names.renew())

    @contextlib.contextmanager
    def locked(self, seconds: float | None = None) -> Iterator[None]:
        """Hold the bank's writer lock, waiting up to `lock_seconds`. Busy names the process that has it."""
        self.make_state()
        wait = self.config.lock_seconds if seconds is None else seconds
        with locked(self.bank.state / "lock", wait):
            yield

    def is_forked(self) -> bool:
        """Whether it was opened before a fork, by the process that this one is forked off."""
        return self._process != os.getpid()

    def _require_folder(self) -> None:
        """NoBank if the bank was deleted or moved since it was opened; writing would make another there."""
        try:
            there = self.bank.root.is_dir()
        except OSError:  # a network drive that is not there any more
            there = False
        if not there:
            root = str(self.bank.root)
            raise NoBank("the memory bank is gone", where=root, hint="restore it, or open another")

    def make_state(self) -> None:
        """Create the private state folder, with a `.gitignore` if it is in the bank's own folder. NoBank."""
        self._require_folder()
        with writing(self.bank.state):
            make_private(self.bank.state)
            if self.bank.state.name == BESIDE and not (self.bank.state / ".gitignore").exists():
                with contextlib.suppress(FileExistsError):
                    swap.write_new(self.bank.state / ".gitignore", b"*\n", mode=0o600)

    def require_settled(self) -> None:
        """Finish pending revisions. GitFailed if they cannot be committed: HEAD would not be the newest
        revision."""
        if pending.keys(self.bank.pending):
            with self.revision("settle", door="store"):
                pass
        owed = sum(bool(record.commits) for record in pending.read_records(self.bank.pending))
        if owed:
            raise GitFailed(
                f"not committed yet: {counted(owed, 'revision')}"
                + (f" ({self._failed.what})" if self._failed else ""),
                hint=(self._failed and self._failed.hint) or "ua-memory doctor --mend",
            )

    def machine(self) -> str:
        """The random id of this state folder, which commits name: `undo` takes back only its own."""
        file = self.bank.local / "machine"
        with contextlib.suppress(OSError):
            return file.read_text("ascii", "replace").strip()
        with writing(file):
            make_private(file.parent)
            discovery.replace_private(str(file), secrets.token_hex(4).encode())
        return self.machine()

    def redacted(self, text: str, counts: Counter[str] | None = None) -> str:
        """The text with secrets masked; they are counted by kind in `counts`."""
        found = redaction.redact(text, self.config.redact)
        if counts is not None:
            counts.update(found.counts)
        return found.text

    def find_request(self, request: str) -> Revision | None:
        """The revision with this request id; its `id` is '' if it is not committed yet."""
        request = self.redacted(request)
        for record in pending.read_records(self.bank.pending):
            if record.request == request and record.commits:
                own = record.commits[-1]
                subject, trailers = own.message.partition("\n")[0], store_commit.commit_trailers(own)
                return Revision("", own.when, own.author[0], subject, trailers, tuple(own.files))
        found = self.history.with_trailer("Request", request)
        exact = [one for one in found if one.trailer("Request") == request][:1]
        return next(iter(self.history.with_paths(exact)), None)

    def typed(self, path: str, data: bytes, line: int) -> bool:
        """Whether a person wrote a committed line of a file by hand, not by `insert`."""
        with contextlib.suppress(GitFailed):
            (row,) = self.history.blame(path, data, lines=(line, line))
            return row.author != MACHINE[0] and bool(row.revision.strip("0")) and row.op != "insert"
        return False

    # -- concurrent git commands ---------------------------------------------------------------------

    def _wait_for_git(self) -> bool:
        """Wait until no git is writing files of the bank; False after a timeout."""
        return git_history.wait_until_idle(self.history, min(GIT_SECONDS, self.config.lock_seconds))

    def _read_position(self) -> tuple[RepositoryState, str | None]:
        """The repository's position, and the newest commit of its branch, as a revision begins."""
        began = self._inspector.read_position()
        return began, self.history.tip(self.history.target(began.branch))

    def _has_switched(self) -> bool:
        """Whether HEAD was written since the revision began: it may have read files of another branch, even
        if HEAD has switched back."""
        now, began = git_history.read_state(self.history), self._began[0]
        return self.bank.own and (now.branch, now.head) != (began.branch, began.head)

    def _git_moved(self, record: Pending) -> bool:
        """Whether a git may have written files since the revision began."""
        if not self.bank.own:
            return False
        now = git_history.read_state(self.history)
        return git_history.is_locked(self.history) or now != replace(self._began[0], branch=record.branch)

    def _is_by_git(self, record: Pending, path: str, data: bytes | None) -> bool:
        """Whether a git checkout may have written this content since the revision began.

        `git add` and `git status` write the index too, but no files: content that no commit has is a person's
        save.
        """
        if not self._git_moved(record):
            return False
        with contextlib.suppress(GitFailed):
            return data is None or self.history.has_committed(path, data)
        return False

    def _wait_for_switch(self, record: Pending) -> None:
        """Wait until a concurrent checkout has updated HEAD: git writes the files first."""
        self._wait_for_git()
        for _ in range(git_history.HEAD_CHECKS):
            if git_history.current_branch(self.history) != record.branch:
                return
            time.sleep(git_history.PAUSE_SECONDS)

    def _yield_to_git(self, record: Pending, *, moved: bool = False) -> None:
        """After a concurrent checkout, restore the new branch's files where we have overwritten them, and our
        files where git has reverted them on the same branch. Repeated if git switches again."""
        if not record.branch or not self.bank.own:
            return
        placed: dict[str, bytes | None] = {}
        for _ in range(COMMIT_ATTEMPTS):
            if git_history.is_locked(self.history):
                self._wait_for_git()
            before = git_history.read_state(self.history)
            with contextlib.suppress(GitFailed, CannotWrite, Busy):
                away, changes = self.history.is_not_checked_out(record.branch), []
                for change in record.changes if away or moved or placed else ():
                    there = self.history.read("HEAD", change.path)
                    now = read(self.bank.root / change.path)
                    ours = change.wanted if away else change.in_head
                    if now != there and now in (ours, placed.get(change.path, ours)):
                        placed[change.path] = there
                        changes.append(FileChange(change.path, now, there, there, now, there))
                if changes:
                    key = pending.next_key(self.bank.pending, secrets.token_hex(4))
                    back = Pending(key, key, tuple(changes), (), branch=before.branch)
                    pending.save(self.bank.pending, back)
                    self._drop_record(store_commit.write_files(back, self._context))
            if git_history.read_state(self.history).head == before.head:
                return

    # -- publishing ----------------------------------------------------------------------------------

    def _publish(self, draft: Draft, request: str | None) -> Result:
        notes, redacted = [*draft.notes, *store_commit.put_back_notes(draft)], dict(draft.redacted)
        if draft.already_done:
            return Result(draft.already_done.id or None, draft.already_done.paths, tuple(notes), redacted)
        key = pending.next_key(self.bank.pending, secrets.token_hex(4))
        commits = store_commit.compose_commits(
            draft, self.now(), request or key, self.machine(), self.history.person
        )
        changes = []
        for path, t in draft.touched.items():
            aim = draft.files.get(path, t.start)
            if aim != t.disk or t.disk != t.in_head:
                changes.append(FileChange(path, t.start, aim, t.in_head, t.disk, aim))
        if not commits and all(c.wanted == c.placed for c in changes):
            return Result(self.history.head(), notes=tuple(notes), redacted=redacted)
        began, head = self._began
        if self._has_switched():
            raise Busy("git has switched branches", where=str(self.history.git_dir), hint="try again")
        record = Pending(key, request or key, tuple(changes), tuple(commits), branch=began.branch)
        pending.save(self.bank.pending, record)
        landed = store_commit.write_files(record, self._context)
        if moved := self._git_moved(landed):
            self._wait_for_switch(landed)
        both = [c.path for c, was in zip(landed.changes, record.changes, strict=True) if c.turn > was.turn]
        notes += [f"{path} was changed in the meantime; both changes were merged" for path in both]
        done, error = self._commit(landed, None if self._inspector.is_unsure(draft.touched) else head)
        self._yield_to_git(landed, moved=moved or self._has_switched())
        if error:
            notes.append(f"written, but not committed yet: {error.what} ({error.hint or 'ua-memory doctor'})")
        return Result(done, tuple(draft.changed()), tuple(notes), redacted)

    def _commit(self, record: Pending, head: str | None = None) -> tuple[str | None, GitFailed | None]:
        """Make a record's commits (W7) and delete it (W8). If git fails, the record stays.

        `head` is the commit that the record is based on, if known; on another one its commits are rebased.
        Returns (the revision's commit, the error).
        """
        trouble: GitFailed | None = None
        if not record.commits:  # only files were to be changed
            self._drop_record(record)
            return self.history.head(), None
        for _ in range(COMMIT_ATTEMPTS):
            target = self.history.target(record.branch) if self.history.exists else "HEAD"
            parent = self.history.tip(target) if self.history.exists else None
            try:
                self.history.create()
                moved = head is None or parent != head
                commits = store_commit.commits_to_make(record, self.history, parent, moved=moved)
                kept = self.history.not_loose_objects(change.in_head for change in record.changes)
                commits[0] = replace(commits[0], blobs=(*commits[0].blobs, *kept))
                asked = [store_commit.commit_trailers(commit).get("Request", ()) for commit in commits]
                own = next(n for n, requests in enumerate(asked) if record.request in requests)
                done = self.history.commit(commits, target, parent)[own]
            except GitFailed as error:
                trouble = error
                if not self.history.exists or self.history.tip(target) == parent:
                    break
                continue
            self._drop_record(record)
            return done, None
        record = replace(record, written=True)
        with contextlib.suppress(CannotWrite):  # on a full disk the record stays as it is
            pending.save(self.bank.pending, record)
            store_commit.remove_leftovers(record, self._context)
        return None, trouble

    def _finish_pending(self) -> dict[str, bytes | None]:
        """Roll forward the records of earlier processes: files first, then commits.

        Returns {path: bytes} of commits that still cannot be made.
        """
        pending.set_aside_unreadable(self.bank.pending)
        with contextlib.suppress(GitFailed):
            self.history.mend_index()
        stuck = False
        for record in pending.read_records(self.bank.pending):
            stands = False
            with contextlib.suppress(GitFailed):
                stands = not stuck and store_commit.is_committed(record, self.history)
            away = self.history.exists and self.history.is_not_checked_out(record.branch)
            if not record.commits:  # its merged text is in no commit
                self._began = self._read_position()
            if not record.written and not stands:
                there = lambda path: self.history.read("HEAD", path)  # noqa: E731
                if away:
                    record = store_commit.resume_after_switch(record, self._context, there)
                else:
                    record = store_commit.resume_write(record, self._context)
            self._began = self._read_position()
            if stands or not record.commits:
                with contextlib.suppress(GitFailed):  # the process may have died before it updated the index
                    self.history.mend_index([path for commit in record.commits for path in commit.files])
                self._drop_record(record)
            elif stuck:
                with contextlib.suppress(CannotWrite):
                    pending.save(self.bank.pending, replace(record, written=True))
            else:
                self._failed = self._commit(record)[1]
                stuck = self._failed is not None  # the later ones wait, to keep the order
            self._yield_to_git(record)
        return pending.uncommitted_contents(pending.read_records(self.bank.pending)) if stuck else {}

    def _drop_record(self, record: Pending) -> None:
        """Delete a record once no process can still write into a swapped-out file.

        The commit is made: if this fails, the next command repeats it.
        """
        with contextlib.suppress(CannotWrite):
            record, done = store_commit.remove_leftovers(record, self._context)
            if not done:
                record = replace(record, commits=(), after=(), written=True)
                pending.save(self.bank.pending, record)
                began, head = self._began  # its commits have changed the index
                self._began = replace(began, index=git_history.read_state(self.history).index), head
                record, done = store_commit.remove_leftovers(record, self._context)
            if done:
                pending.delete(self.bank.pending, record.key)

    def tidy(self) -> None:
        """Pack the history now and then, or leave it to the daemon."""
        head = self.history.head() or ""
        # A damaged ref may contain anything.
        suffix = head[-2:] if re.fullmatch("[0-9a-f]{40,64}", head) else "1"
        if int(suffix, 16) % PACK_EVERY:  # commit ids are random enough, and no counter has to be stored
            return
        if not (self.defer_pack and self.defer_pack()):
            self.pack()

    def pack(self) -> None:
        """Pack the history if there are too many loose objects."""
        with contextlib.suppress(GitFailed):
            if self.history.needs_repack():
                self.history.repack()
