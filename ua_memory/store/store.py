"""`Store`: reading the truth, and `revision`, the only code that locks, writes and commits."""

from __future__ import annotations

import contextlib
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial

from ua_memory.config import Config
from ua_memory.discovery import BESIDE
from ua_memory.errors import Busy, CannotWrite, GitFailed, NotFound, writing
from ua_memory.git import history as git_history
from ua_memory.git.history import History, RepositoryState
from ua_memory.git.repository import MACHINE, Revision
from ua_memory.paths import Bank, LinkNames, confined, make_private
from ua_memory.store import commit as store_commit
from ua_memory.store import pending, swap
from ua_memory.store.commit import WriteContext, leave_files, remove_leftovers, resume_write, write_files
from ua_memory.store.draft import Draft, EditInspector, Result
from ua_memory.store.files import FileStat, read
from ua_memory.store.lock import locked
from ua_memory.store.pending import FileChange, PendingRevision
from ua_memory.store.scan import FileSurvey, SnapshotCache, survey
from ua_memory.text import redaction
from ua_memory.text.wording import counted

# -- store -------------------------------------------------------------------------------------------------
# The truth on disk and its trail: reading, and `revision`, the only code that locks, writes and commits.
#
# The order of writes is `docs/invariants.md`, W1–W8: lock; record in `pending/`; each file exchanged with
# what is there and looked at; one commit per author; drop the record; acknowledge. Killed anywhere in
# between, the next command rolls the record forward.


TIDY_EVERY = 16
"""After about so many revisions it is asked whether the trail wants packing."""
GIT_SECONDS = 10
"""So long a git that is writing files is waited for."""
TRIES = 3
"""So often a commit is made anew because somebody else committed at the same moment."""
SURVEY_SECONDS = 0.2
"""For so long `truth` believes that what was held is what is held: a pass over all files asks once."""


class Store:
    """One bank's files and history. `now` gives aware times in the bank's timezone."""

    def __init__(self, bank: Bank, config: Config, now: Callable[[], datetime]) -> None:
        self.bank, self.config, self.now = bank, config, now
        self.history = History(bank.git_dir, bank.root, own=bank.own)
        self._inspector = EditInspector(bank, config, self.history, self.survey)
        self._context = WriteContext(
            bank.root, bank.pending, self._inspector.inspect_save, self.history.person, self._is_by_git
        )
        self.link_names = LinkNames(bank.root)
        self._began: tuple[RepositoryState, str | None] = RepositoryState(), None
        self._recent: tuple[float, FileSurvey] | None = None
        self._stuck: GitFailed | None = None
        """Why what is owed could not be committed, when that was last tried."""
        self.snapshots: SnapshotCache | None = None
        """The last scan, used again while nothing happens to the files; a daemon has one."""
        self.put_off: Callable[[], bool] | None = None
        """Whether somebody who calls `pack` soon, when nobody waits, takes it over; a daemon does."""

    def close(self) -> None:
        """End the process that reads git's objects; a later call starts another."""
        self.history.close()

    # -- reading -----------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        """The present bytes of a file. NotFound."""
        data = read(confined(self.bank.root, path))
        if data is None:
            raise NotFound("no such file in the bank", where=path, hint="ua-memory status")
        return data

    def survey(self) -> FileSurvey:
        """All files, those that differ from the history, and those that are held. Cheap if nothing
        changed."""
        last = self._recent and self._recent[1].snapshot
        seen = survey(self.bank, self.history, self.config.few, self.snapshots, last)
        self._recent = (time.monotonic(), seen)
        return seen

    def files(self) -> Iterator[FileStat]:
        """The files that may be searched: those on disk, or the history's version of held ones."""
        yield from self.survey().files

    def truth(self, path: str) -> bytes:
        """The bytes of a file that may be searched: those on disk, or the history's while a mass
        disappearance is held."""
        recent = self._recent
        fresh = recent is not None and time.monotonic() - recent[0] < SURVEY_SECONDS
        seen = recent[1] if recent and fresh else self.survey()
        blob = seen.held.get(path)
        return self.history.blob(blob) if blob else self.read(path)

    # -- writing -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def revision(
        self, op: str, *, door: str, request: str | None = None, session: str | None = None,
        by_person: bool = False,
    ) -> Iterator[Draft]:  # fmt: skip
        """Open a revision; leaving the block publishes it, an exception in the block drops it whole.

        Hand edits of every file the draft reads are committed as the person's own first. `draft.result`
        has the outcome. A request that was carried out before is found in `draft.answered`, and nothing
        is written. Busy, CannotWrite and GitFailed say when nothing was begun; once files are written, a
        commit that cannot be made is owed and noted, not raised.
        """
        request = store_commit.request_id(self.redacted(request)) if request is not None else None
        session = self.redacted(session) if session else None
        with self.locked():
            if not self._begin():
                hint = "try again when it is done"
                raise Busy("git is changing the files", where=str(self.history.git_dir), hint=hint)
            found = self.history.put_back()
            draft = self._open(op, door)
            draft.notes += found
            draft.by_person = by_person
            draft.answered = self.answered(request) if request else None
            if session:
                draft.trailers["Session"] = [session]
            yield draft
            if draft.trial:
                return
            draft.result = self._publish(draft, request)
        self.tidy()

    def adopt(
        self, paths: Iterable[str] | None = None, *, quiet: float = 0, accept: bool = False,
        seen: FileSurvey | None = None, wait: bool = True,
    ) -> Result:  # fmt: skip
        """Commit hand edits as the person's: of some paths or all, left alone for `quiet` seconds.

        `accept` lets a held disappearance stand. A stale buffer is committed and then merged, also a recent
        one: what it lacks would not be found. `seen` is a look that was just taken. Without `wait` it is left
        to the next time while somebody writes.
        """
        seen = seen or self.survey()
        chosen = set(seen.changed) if paths is None else set(paths) & set(seen.changed)
        chosen -= {path for path in seen.held if not accept and not self._inspector.is_of_other_branch(path)}
        horizon = time.time_ns() - int(quiet * 1e9)
        recent = {path for path in chosen if seen.changed[path] > horizon} if quiet else set()
        chosen -= {path for path in recent if not self._inspector.is_stale(path)}
        if not chosen and pending.is_empty(self.bank.pending):
            return Result(self.history.head())
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(self.locked(None if wait else 0))
            except Busy:
                if wait:
                    raise
                return Result(self.history.head())
            if not self._begin():  # what git is writing is nobody's edit
                return Result(self.history.head())
            draft = self._open("adopt", "editor", adopting=True, accept=accept)
            for path in sorted(chosen):
                draft.read(path)
            return self._publish(draft, None)

    def _open(self, op: str, door: str, *, adopting: bool = False, accept: bool = False) -> Draft:
        """An empty draft, once what an earlier process left is rolled forward."""
        owed = self._finish_pending()
        touch = partial(self._inspector.inspect, owed=owed, adopting=adopting, accept=accept)
        self._began = self._position()
        return Draft(op, door, touch, self.config.redact, self.typed, self.link_names.renew())

    @contextlib.contextmanager
    def locked(self, seconds: float | None = None) -> Iterator[None]:
        """Hold the bank's writer lock, waiting up to `lock_seconds`. Busy names the process that has it."""
        self.make_state()
        wait = self.config.lock_seconds if seconds is None else seconds
        with locked(self.bank.state / "lock", wait):
            yield

    def make_state(self) -> None:
        """The state folder, private to its owner; beside no git it hides itself from one that may come."""
        with writing(self.bank.state):
            make_private(self.bank.state)
            if self.bank.state.name == BESIDE and not (self.bank.state / ".gitignore").exists():
                with contextlib.suppress(FileExistsError):
                    swap.write_new(self.bank.state / ".gitignore", b"*\n", mode=0o600)

    def require_settled(self) -> None:
        """Make the commits that are still missing. GitFailed if that is not possible now: the newest
        revision would be the wrong one."""
        if pending.keys(self.bank.pending):
            with self.revision("settle", door="store"):
                pass
        owed = sum(bool(record.commits) for record in pending.read_records(self.bank.pending))
        if owed:
            raise GitFailed(
                f"{counted(owed, 'revision')} are not committed yet"
                + (f": {self._stuck.what}" if self._stuck else ""),
                hint=(self._stuck and self._stuck.hint) or "ua-memory doctor --mend",
            )

    def redacted(self, text: str) -> str:
        """The text without secrets."""
        return redaction.redact(text, self.config.redact).text

    def answered(self, request: str) -> Revision | None:
        """The revision that carried out a request id; its `id` is empty while its commit is missing."""
        request = self.redacted(request)
        for record in pending.read_records(self.bank.pending):
            if record.request == request and record.commits:
                own = record.commits[-1]
                return Revision(
                    "",
                    own.when,
                    own.author[0],
                    own.message.partition("\n")[0],
                    store_commit.commit_trailers(own),
                    tuple(own.files),
                )
        found = self.history.with_trailer("Request", request)
        exact = [one for one in found if one.trailer("Request") == request][:1]
        return next(iter(self.history.with_paths(exact)), None)

    def typed(self, path: str, data: bytes, line: int) -> bool:
        """Whether a person typed a line of a file as the trail has it; not, where no commit says so yet."""
        with contextlib.suppress(GitFailed):
            (row,) = self.history.blame(path, data, lines=(line, line))
            if row.author != MACHINE[0] and row.revision.strip("0"):
                return self.history.show(row.revision).trailer("Memory-Op") != "insert"
        return False

    # -- git at work on the same files ---------------------------------------------------------------

    def _begin(self) -> bool:
        """Wait until no git writes files of the bank; whether it is so."""
        return git_history.settled(self.history, min(GIT_SECONDS, self.config.lock_seconds))

    def _position(self) -> tuple[RepositoryState, str | None]:
        """Where the repository stands, and the newest revision of its branch, as a revision begins."""
        began = self._inspector.begin()
        return began, self.history.tip(self.history.target(began.branch))

    def _has_switched(self) -> bool:
        """Whether HEAD was written since a revision began: what it read may be of another branch, also where
        HEAD names the first again."""
        now, began = git_history.moment(self.history), self._began[0]
        return self.bank.own and (now.branch, now.head) != (began.branch, began.head)

    def _git_moved(self, record: PendingRevision) -> bool:
        """Whether a git may have moved files since a revision began."""
        if not self.bank.own:
            return False
        now = git_history.moment(self.history)
        return git_history.is_locked(self.history) or now != replace(self._began[0], branch=record.branch)

    def _is_by_git(self, record: PendingRevision, path: str, came: bytes | None) -> bool:
        """Whether a git may have put this content into a file since a revision began. `git add` and `git
        status` write the index as a checkout does, but put nothing in place: what no commit has is a person's
        save."""
        if not self._git_moved(record):
            return False
        with contextlib.suppress(GitFailed):
            return came is None or self.history.has_committed(path, came)
        return False

    def _await_switch(self, record: PendingRevision) -> None:
        """Wait for a git that came in between, until HEAD names the branch that it goes to."""
        self._begin()
        for _ in range(git_history.HEAD_TRIES):
            if git_history.branch_of(self.history) != record.branch:
                return
            time.sleep(git_history.PAUSE)

    def _follow_git(self, record: PendingRevision, *, moved: bool = False) -> None:
        """Give way to a git that has switched branches meanwhile: what we wrote is on the branch it was meant
        for, and no file of another has it. On that branch the file has it, though git may have put back what
        was there before. Where git switches again within this, it is looked at again."""
        if not record.branch or not self.bank.own:
            return
        placed: dict[str, bytes | None] = {}
        for _ in range(TRIES):
            if git_history.is_locked(self.history):
                self._begin()
            before = git_history.moment(self.history)
            with contextlib.suppress(GitFailed, CannotWrite, Busy):
                away, changes = self.history.is_away(record.branch), []
                for change in record.changes if away or moved or placed else ():
                    there = self.history.read("HEAD", change.path)
                    now = read(self.bank.root / change.path)
                    ours = change.wanted if away else change.trail
                    if now != there and now in (ours, placed.get(change.path, ours)):
                        placed[change.path] = there
                        changes.append(FileChange(change.path, now, there, there, now, there))
                if changes:
                    key = pending.next_key(self.bank.pending, secrets.token_hex(4))
                    back = PendingRevision(key, key, tuple(changes), (), branch=before.branch)
                    pending.save(self.bank.pending, back)
                    self._finish(write_files(back, self._context))
            if git_history.moment(self.history).head == before.head:
                return

    # -- how a revision goes on its way ----------------------------------------------------------------

    def _publish(self, draft: Draft, request: str | None) -> Result:
        notes, redacted = [*draft.notes, *store_commit.put_back_notes(draft)], dict(draft.redacted)
        if draft.answered:
            return Result(draft.answered.id or None, draft.answered.paths, tuple(notes), redacted)
        key = pending.next_key(self.bank.pending, secrets.token_hex(4))
        commits = store_commit.compose_commits(draft, self.now(), request or key, self.history.person)
        changes = []
        for path, t in draft.touched.items():
            aim = draft.files.get(path, t.start)
            if aim != t.disk or t.disk != t.trail:
                changes.append(FileChange(path, t.start, aim, t.trail, t.disk, aim))
        if not commits and all(c.wanted == c.placed for c in changes):
            return Result(self.history.head(), notes=tuple(notes), redacted=redacted)
        began, head = self._began
        if self._has_switched():
            raise Busy("git has switched branches", where=str(self.history.git_dir), hint="try again")
        record = PendingRevision(key, request or key, tuple(changes), tuple(commits), branch=began.branch)
        pending.save(self.bank.pending, record)
        landed = write_files(record, self._context)
        if moved := self._git_moved(landed):
            self._await_switch(landed)
        both = [c.path for c, was in zip(landed.changes, record.changes, strict=True) if c.turn > was.turn]
        notes += [f"{path} was saved meanwhile; both changes are in it" for path in both]
        done, trouble = self._commit(landed, None if self._inspector.is_unsure(draft.touched) else head)
        self._follow_git(landed, moved=moved or self._has_switched())
        if trouble:
            notes.append(
                f"written, but not committed yet: {trouble.what} ({trouble.hint or 'ua-memory doctor'})"
            )
        return Result(done, tuple(draft.changed()), tuple(notes), redacted)

    def _commit(
        self, record: PendingRevision, head: str | None = None
    ) -> tuple[str | None, GitFailed | None]:
        """Make a record's commits (W7) and drop it (W8); or, where git refuses, keep it and say why.

        `head` is the revision that the record starts from, if that is known: on any other one its commits are
        made anew. Which branch they go to and what is on it are asked once for both.
        """
        trouble: GitFailed | None = None
        if not record.commits:  # the files alone were to be changed
            self._finish(record)
            return self.history.head(), None
        for _ in range(TRIES):
            target = self.history.target(record.branch) if self.history.exists else "HEAD"
            parent = self.history.tip(target) if self.history.exists else None
            try:
                self.history.create()
                commits = store_commit.commits_to_make(
                    record, self.history, parent, moved=head is None or parent != head
                )
                kept = self.history.not_loose(change.trail for change in record.changes)
                commits[0] = replace(commits[0], blobs=(*commits[0].blobs, *kept))
                own = next(n for n, c in enumerate(commits) if store_commit.is_own(c, record))
                done = self.history.commit(commits, target, parent)[own]
            except GitFailed as error:
                trouble = error
                if not self.history.exists or self.history.tip(target) == parent:
                    break
                continue
            self._finish(record)
            return done, None
        record = replace(record, written=True)
        pending.save(self.bank.pending, record)
        remove_leftovers(record, self._context)
        return None, trouble

    def _finish_pending(self) -> dict[str, bytes | None]:
        """Roll forward what an earlier process left: its files, its commits, its own author and trailers.

        What is still owed then is returned as {path: bytes that the trail would have}.
        """
        pending.set_aside_unreadable(self.bank.pending)
        with contextlib.suppress(GitFailed):
            self.history.mend_index()
        stuck = False
        for record in pending.read_records(self.bank.pending):
            stands = False
            with contextlib.suppress(GitFailed):
                stands = not stuck and store_commit.is_committed(record, self.history)
            away = self.history.exists and self.history.is_away(record.branch)
            if not record.commits:  # what it merges is in the files alone, and in no commit to fall back on
                self._began = self._position()
            if not record.written and not stands:
                there = lambda path: self.history.read("HEAD", path)  # noqa: E731
                record = (
                    leave_files(record, self._context, there) if away else resume_write(record, self._context)
                )
            self._began = self._position()
            if stands or not record.commits:
                with contextlib.suppress(GitFailed):  # it may have died before it came to the index
                    self.history.mend_index([path for commit in record.commits for path in commit.files])
                self._finish(record)
            elif stuck:
                pending.save(self.bank.pending, replace(record, written=True))
            else:
                self._stuck = self._commit(record)[1]
                stuck = self._stuck is not None  # the rest stays owed, in order
            self._follow_git(record)
        return pending.uncommitted_contents(pending.read_records(self.bank.pending)) if stuck else {}

    def _finish(self, record: PendingRevision) -> None:
        """Drop the record once nobody can still write into a file that was exchanged away.

        The commit stands: where the disk refuses now, the next command does this.
        """
        with contextlib.suppress(CannotWrite):
            record, done = remove_leftovers(record, self._context)
            if not done:
                record = replace(record, commits=(), after=(), written=True)
                pending.save(self.bank.pending, record)
                began, head = self._began  # its commits have changed the index
                self._began = replace(began, index=git_history.moment(self.history).index), head
                record, done = remove_leftovers(record, self._context)
            if done:
                pending.delete(self.bank.pending, record.key)

    def tidy(self) -> None:
        """Pack the history from time to time, or in the background."""
        head = self.history.head() or ""
        dice = head[-2:] if re.fullmatch("[0-9a-f]{40,64}", head) else "1"  # a damaged ref says anything
        if int(dice, 16) % TIDY_EVERY:  # ids are as good as dice, and nothing has to be remembered
            return
        if not (self.put_off and self.put_off()):
            self.pack()

    def pack(self) -> None:
        """Pack the history if its loose objects have outgrown the rest."""
        with contextlib.suppress(GitFailed):
            if self.history.outgrown():
                self.history.repack()
