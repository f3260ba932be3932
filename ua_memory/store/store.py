"""The truth on disk and its trail: reading, and `revision`, the only code that locks, writes and commits.

The order of writes is `docs/invariants.md`, W1–W8: lock; record in `pending/`; each file exchanged with
what is there and looked at; one commit per author; drop the record; acknowledge. Killed anywhere in
between, the next command rolls the record forward.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from ua_memory.config import Config
from ua_memory.errors import Busy, CannotWrite, GitFailed, NotFound
from ua_memory.history import History
from ua_memory.paths import BESIDE, SETTINGS, Bank, confined
from ua_memory.store import flight, pending, saves, swap
from ua_memory.store.draft import Draft, Result, Touched
from ua_memory.store.saves import Edit
from ua_memory.store.survey import FileStat, Survey, survey
from ua_memory.store.threeway import merge

MAX_FILE = 64 * 1024 * 1024
PACK_BEYOND = 4 * 1024 * 1024
"""Loose objects may take this much, or half the text, before they are packed."""


class Store:
    """One bank's files and trail. `now` gives aware times in the bank's timezone."""

    def __init__(self, bank: Bank, config: Config, now: Callable[[], datetime]) -> None:
        self.bank, self.config, self.now = bank, config, now
        self.history = History(bank.git_dir, bank.root, own=bank.own)

    # -- reading -----------------------------------------------------------------------------------

    def read(self, path: str) -> bytes:
        """A truth file's present bytes. NotFound where there is none."""
        data = swap.read(confined(self.bank.root, path))
        if data is None:
            raise NotFound("no such file in the bank", where=path, mend="ua-memory status")
        return data

    def survey(self) -> Survey:
        """All truth files, which of them differ from the trail, and which are held. Cheap while nothing changed."""
        return survey(self.bank, self.history, self.config.few)

    def files(self) -> Iterator[FileStat]:
        """The files that may be searched: those on disk, with the trail's where a disappearance is held."""
        yield from self.survey().files

    def truth(self, path: str) -> bytes:
        """What may be searched of a file: its bytes, or the trail's while a mass disappearance is held."""
        blob = self.survey().held.get(path)
        return self.history.blob(blob) if blob else self.read(path)

    # -- writing -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def revision(
        self, op: str, *, door: str, request: str | None = None, session: str | None = None
    ) -> Iterator[Draft]:
        """Open a revision; leaving the block publishes it, an exception in the block drops it whole.

        Hand edits of every file the draft reads are committed as the person's own first. `draft.result`
        has the outcome. Busy, CannotWrite and GitFailed say when nothing was begun; once files are
        written, a commit that cannot be made is owed and noted, not raised.
        """
        with self.locked():
            self._finish_pending()
            draft = Draft(op, door, self._touch, self.config.redact)
            if session:
                draft.trailers["Session"] = [session]
            yield draft
            draft.result = self._publish(draft, request)
        self._tidy()

    def adopt(self, paths: Iterable[str] | None = None, *, quiet: float = 0, accept: bool = False) -> Result:
        """Commit hand edits as the person's: of some paths or all, left alone for `quiet` seconds.

        `accept` lets a held disappearance stand. A stale buffer is committed and then merged.
        """
        seen = self.survey()
        chosen = set(seen.changed) if paths is None else set(paths) & set(seen.changed)
        chosen -= set() if accept else set(seen.held)
        horizon = time.time_ns() - int(quiet * 1e9)
        chosen -= {path for path in chosen if seen.changed_at(path) > horizon} if quiet else set()
        if not chosen:
            return Result(self.history.head())
        with self.locked():
            self._finish_pending()
            draft = Draft(
                "adopt", "editor", lambda path: self._touch(path, accept=accept), self.config.redact
            )
            for path in sorted(chosen):
                draft.read(path)
            return self._publish(draft, None)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """The bank's one writer lock, waited for up to `lock_seconds`. Busy names who holds it."""
        self.make_state()
        file = self.bank.state / "lock"
        try:
            fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            _refused(error, file)
        try:
            deadline = time.monotonic() + self.config.lock_seconds
            while not _try_lock(fd):
                if time.monotonic() > deadline:
                    holder = os.pread(fd, 20, 0).decode(errors="replace").strip() or "unknown"
                    raise Busy(
                        "another process is writing", where=f"process {holder}", mend="try again, or end it"
                    )
                time.sleep(random.uniform(0.001, 0.02))
            os.ftruncate(fd, 0)
            os.pwrite(fd, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(fd)

    def make_state(self) -> None:
        """The state folder, private to its owner; beside no git it hides itself from one that may come."""
        try:
            self.bank.state.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self.bank.state.name == BESIDE and not (self.bank.state / ".gitignore").exists():
                (self.bank.state / ".gitignore").write_text("*\n")
        except OSError as error:
            _refused(error, self.bank.state)

    def known_request(self, request: str) -> str | None:
        """The revision that already answered a request id, or None."""
        found = [r for r in self.history.log(grep=[f"Request: {request}"]) if r.trailer("Request") == request]
        return found[0].id if found else None

    # -- how a revision goes on its way ----------------------------------------------------------------

    def _touch(self, path: str, *, accept: bool = False) -> Touched:
        file = confined(self.bank.root, path)
        disk = swap.read(file)
        if disk is not None and len(disk) > MAX_FILE:
            raise CannotWrite(f"larger than {MAX_FILE >> 20} MB", where=path, mend="split the file")
        try:
            trail = self.history.read("HEAD", path) if self.history.exists else None
        except GitFailed:
            trail = disk  # without git nothing can be told apart; the commit that is owed will tell later
        if trail == disk or path == SETTINGS:
            return Touched(path, disk, trail, disk)
        edit = Edit(path, trail, disk)
        old = saves.stale(edit, self.history)
        if old and disk is not None and trail is not None:
            merged = merge(old.base, trail, disk).data
            return Touched(path, disk, trail, merged, dropped=old.dropped)
        held = not accept and bool(saves.held({path: edit}, self.config.few))
        return Touched(path, disk, trail, disk, held=held)

    def _publish(self, draft: Draft, request: str | None) -> Result:
        key = f"{time.time_ns():020d}-{secrets.token_hex(4)}"
        commits, changes = flight.commits(draft, self.now(), request or key, self.history), []
        for path, touched in draft.touched.items():
            wanted = draft.files.get(path, touched.start)
            if wanted != touched.disk:
                changes.append(pending.FileChange(path, touched.disk, wanted, touched.trail))
        if not commits:
            return Result(self.history.head(), notes=tuple(draft.notes), redacted=dict(draft.redacted))
        record = pending.InFlight(key, tuple(changes), tuple(commits))
        pending.save(self.bank.pending, record)
        done, notes = self._carry_out(record)
        return Result(done, tuple(draft.changed()), (*draft.notes, *notes), dict(draft.redacted))

    def _carry_out(self, record: pending.InFlight) -> tuple[str | None, list[str]]:
        """Files, then commits. What a person saved meanwhile is merged and committed before ours."""
        record, notes = flight.swap_files(record, self.bank, self.history, self.history.person())
        pending.save(self.bank.pending, record)
        try:
            self.history.create()
            done = self.history.commit(record.commits)[-1]
        except GitFailed as error:
            return None, [
                *notes,
                f"written, but not committed yet: {error.what} ({error.mend or 'ua-memory doctor'})",
            ]
        self._settle(record)
        return done, notes

    def _finish_pending(self) -> None:
        """Roll forward what an earlier process left: its files, its commits, its own author and trailers."""
        for record in pending.found(self.bank.pending):
            if not record.written:
                record = flight.resume(record, self.bank, self.history, self.history.person())
                pending.save(self.bank.pending, record)
            try:
                if record.commits and not flight.stands(record, self.history):
                    self.history.create()
                    self.history.commit(flight.rebased(record, self.history))
            except GitFailed:
                return  # the files are done; what is owed stays owed, in order
            self._settle(record)

    def _settle(self, record: pending.InFlight) -> None:
        """Drop the record once nobody can still write into a file that was exchanged away."""
        if flight.clear(record, self.bank, self.history):
            pending.drop(self.bank.pending, record.key)
        else:
            pending.save(self.bank.pending, replace(record, commits=(), written=True))

    def _tidy(self) -> None:
        """Pack the trail when its loose objects have outgrown the text."""
        with contextlib.suppress(GitFailed):
            if self.history.loose_bytes() > PACK_BEYOND:
                self.history.repack()


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _refused(error: OSError, where: Path) -> NoReturn:
    raise CannotWrite(
        error.strerror or str(error), where=str(where), mend="check its owner, mode and free space"
    ) from error
