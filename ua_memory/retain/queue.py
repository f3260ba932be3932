"""Turns that wait for their flush: one durable file a session in `pending/`, appended to, then drained.

Whatever brings a turn (a hook, a transcript, a Python program) puts it here, redacted; whatever triggers a
flush takes from here. A record holds the words themselves, since clients delete their transcripts. A turn
is known by its client, its session and its entry id, and is taken in once.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

from ua_memory.errors import Busy, CannotWrite, NotFound
from ua_memory.paths import make_private
from ua_memory.retain import tries
from ua_memory.retain.rows import Row, made, plain, time_of
from ua_memory.retain.rows import append as _append
from ua_memory.retain.rows import lock as _lock
from ua_memory.retain.rows import rows as _rows
from ua_memory.retain.tries import Tries
from ua_memory.store import swap
from ua_memory.transcripts.turns import Session, Turn

PREFIX, SUFFIX, CLAIM = "turns-", ".jsonl", ".claim"
OF_TRIES = {"failed", "begun", "revived", "due"}
ABANDONED = timedelta(hours=12)
"""After so long without a new turn a session that nobody closed is flushed like one that was."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A session whose turns wait: what they are, since when, when the `newest` came, and what was tried.

    `size` is its context's, in tokens, when its last turns came. `modelled` tells whether a model was meant
    to read them, None if nobody said. `open` says that its session goes on and no flush is due: it gathers.
    `broken` is why the record cannot be read, '' if it can."""

    key: str
    session: Session
    turns: tuple[Turn, ...]
    size: int | None = None
    tried: Tries = field(default_factory=Tries)
    since: datetime | None = None
    newest: datetime | None = None
    modelled: bool | None = None
    broken: str = ""
    open: bool = False

    def gathers(self, now: datetime) -> bool:
        """Whether no flush is due: its session goes on, and was not left alone for half a day."""
        return self.open and self.newest is not None and now - self.newest < ABANDONED

    @property
    def tries(self) -> int:
        """How many flushes of it have failed."""
        return self.tried.count

    @property
    def reason(self) -> str:
        """Why it waits still; '' if nothing was tried."""
        return self.broken or self.tried.reason

    @property
    def aside(self) -> bool:
        """Whether it waits for a person."""
        return bool(self.broken) or self.tried.aside


class Queue:
    """The waiting turns of a bank. `clean` takes secrets out of a text before it is written; `chance` gives
    numbers from 0 to 1. `prefix` begins the names of its files."""

    prefix = PREFIX

    def __init__(
        self, folder: Path, clean: Callable[[str], str], chance: Callable[[], float] = random.random
    ) -> None:
        self.folder, self.clean, self.chance = folder, clean, chance

    def put(
        self, session: Session, turns: Iterable[Turn], *, at: datetime, size: int | None = None,
        modelled: bool | None = None, more: bool = False,
    ) -> Waiting:  # fmt: skip
        """Append those turns that do not wait already; on the disk when this returns. With `more` no flush is
        due: the session goes on. CannotWrite."""
        self._make_way(key := key_of(session))
        with self._open(key) as file:
            rows = list(_rows(file))
            known = {row["id"] for row in rows if "id" in row}
            lines: list[Row] = [] if any("session" in row for row in rows) else [{"session": plain(session)}]
            for turn in turns:
                if turn.id not in known:
                    known.add(turn.id)
                    lines.append(plain(replace(turn, text=self.clean(turn.text))))
            put: Row = {"put": at.isoformat(), "size": size, "model": modelled}
            _append(file, [*lines, {**put, "open": True} if more else put])
            swap.sync_folder(self.folder)
        return self.get(key)

    def get(self, key: str) -> Waiting:
        """What waits under a key. NotFound."""
        try:
            with self._path(key).open("rb") as file:
                rows = list(_rows(file))
                file.seek(0)
                # A first line that was never ended is no record: its writer was killed, or is at it.
                return self._told(key, rows, garbled=not rows and b"\n" in file.read())
        except FileNotFoundError as error:
            raise NotFound("nothing waits under this key", where=key, mend="ua-memory queue list") from error

    def keys(self) -> list[str]:
        """The keys of all sessions that wait, in the order of their names."""
        names = (path.name for path in self.folder.glob(f"{self.prefix}*{SUFFIX}"))
        return sorted(name[len(self.prefix) : -len(SUFFIX)] for name in names)

    def all(self) -> list[Waiting]:
        """Everything that waits, those that have waited longest first."""
        found = []
        for key in self.keys():
            with contextlib.suppress(NotFound):  # drained meanwhile
                found.append(self.get(key))
        return sorted(found, key=lambda each: (each.since is None, each.since and each.since.timestamp()))

    def failed(
        self, key: str, reason: str, at: datetime, *, own: bool = False, modelled: bool | None = None
    ) -> None:
        """Note that a flush of these turns failed, through what they are themselves or not; they wait on."""
        again = tries.next_try(at, self.get(key).tries + 1, self.chance())
        row = {"failed": reason, "at": at.isoformat(), "own": own, "again": again.isoformat()}
        self._note(key, {**row, "model": True} if modelled else row)

    def close(self, key: str, at: datetime) -> None:
        """Make a flush due of what gathers under a key. NotFound."""
        if self.get(key).open:
            self._note(key, {"due": at.isoformat()})

    def begin(self, key: str, at: datetime) -> Waiting:
        """What waits under a key, noted as being tried: if the process dies of it, that counts. NotFound."""
        found = self.get(key)
        if found.tried.begun:
            self.failed(key, tries.DIED, at, own=True)
            found = self.get(key)
        if not found.aside:
            self._note(key, {"begun": at.isoformat()})
        return found

    def revive(self, key: str, at: datetime) -> None:
        """Have a session that was set aside tried again. NotFound."""
        if self.get(key).tried.own:
            self._note(key, {"revived": at.isoformat()})

    def _note(self, key: str, row: Row) -> None:
        with self._open(key) as file:
            _append(file, [row])

    def _make_way(self, key: str) -> None:
        """Give a record that cannot be read another name, where it waits for a person."""
        with contextlib.suppress(NotFound, OSError):  # what is in the way is said by who writes there
            if self.get(key).broken:
                with self._open(key):
                    aside = (self._path(f"{key}-{n}") for n in range(1, 1000))
                    self._path(key).rename(next(path for path in aside if not path.exists()))

    def taken(self, key: str, consumed: Collection[str]) -> None:
        """Let go of turns whose facts are committed; what was added meanwhile stays."""
        with self._open(key) as file:
            rows = [row for row in _rows(file) if row.get("id") not in consumed and not row.keys() & OF_TRIES]
            first = next((n for n, row in enumerate(rows) if "id" in row), None)
            rows = [row for n, row in enumerate(rows) if "put" not in row or n > (first or 0)]
            self._instead(key, rows if first is not None else [])

    def rewrite(self, key: str, change: Callable[[Row], Row | None]) -> bool:
        """Have each row be what `change` makes of it, None for none; whether that changed anything."""
        with self._open(key) as file:
            rows = list(_rows(file))
            new = [row for row in map(change, rows) if row is not None]
            if new == rows:
                return False
            self._instead(key, new)
        return True

    def _instead(self, key: str, rows: list[Row]) -> None:
        """A whole new file in the old one's place: who waits for its lock sees that, and opens this."""
        path = self._path(key)
        if not rows:
            path.unlink(missing_ok=True)
            swap.sync_folder(self.folder)  # or a loss of power has them wait again
            return
        rest = path.with_suffix(".rest")
        rest.unlink(missing_ok=True)
        with os.fdopen(os.open(rest, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "r+b") as new:
            _append(new, rows)
        rest.replace(path)
        swap.sync_folder(self.folder)

    def drop(self, key: str) -> Waiting:
        """Throw away what waits under a key, and return it. NotFound; Busy while it is being flushed."""
        gone = self.get(key)
        with self.claimed(key, 0):
            self._path(key).unlink(missing_ok=True)
            swap.sync_folder(self.folder)
        return gone

    @contextmanager
    def claimed(self, key: str, seconds: float) -> Iterator[None]:
        """Be the only process that flushes this session. Busy if another is at it for longer than `seconds`.

        The claim ends with the process that has it, however that ends.
        """
        until = time.monotonic() + seconds
        path = self.folder / f"{self.prefix}{key}{CLAIM}"
        with self._locked(path, waits=lambda: time.monotonic() < until, key=key):
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    path.unlink()

    def sweep(self) -> None:
        """Remove the claims that killed processes left on sessions of which nothing waits any more."""
        for path in self.folder.glob(f"{self.prefix}*{CLAIM}"):
            key = path.name[len(self.prefix) : -len(CLAIM)]
            if not self._path(key).exists():
                with contextlib.suppress(Busy), self.claimed(key, 0):
                    pass

    def _told(self, key: str, rows: list[Row], *, garbled: bool) -> Waiting:
        return _waiting(key, rows, garbled=garbled)

    def _path(self, key: str) -> Path:
        if not key or not all(c.isalnum() or c in "-_" for c in key):
            raise NotFound("nothing waits under this key", where=key, mend="ua-memory queue list")
        return self.folder / f"{self.prefix}{key}{SUFFIX}"

    @contextmanager
    def _open(self, key: str) -> Iterator[IO[bytes]]:
        with self._locked(self._path(key), waits=None, key=key) as file:
            yield file

    @contextmanager
    def _locked(self, path: Path, *, waits: Callable[[], bool] | None, key: str) -> Iterator[IO[bytes]]:
        """The file, made if need be, under its lock; `waits` tells how long to try, None for ever."""
        try:
            make_private(self.folder)
            while True:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                with os.fdopen(fd, "r+b") as file:
                    got = _lock(fd, wait=waits is None)
                    # It may have been drained and removed, or replaced, between our open and our lock.
                    if got and path.exists() and os.path.samestat(path.stat(), os.fstat(fd)):
                        yield file
                        return
                if not got:
                    if waits is not None and not waits():
                        raise Busy("another process is flushing this session", where=key, mend="try again")
                    time.sleep(0.05)
        except OSError as error:
            what = error.strerror or str(error)
            raise CannotWrite(what, where=str(path), mend="check owner, mode and free space") from None


def key_of(session: Session) -> str:
    """The name a session waits under: its client, and a hash of its id, which may be any text."""
    client = "".join(c for c in session.client if c.isascii() and (c.isalnum() or c == "-"))[:40] or "text"
    name = f"{session.client}\0{session.session}".encode("utf-8", "replace")
    return f"{client}-{hashlib.sha256(name).hexdigest()[:10]}"


def _waiting(key: str, rows: list[Row], *, garbled: bool) -> Waiting:
    head = next((row["session"] for row in rows if "session" in row), None if rows else {"client": "text"})
    puts = [row for row in rows if "put" in row]
    asked = [row["model"] for row in rows if row.get("model") is not None]
    try:
        if head is None or garbled:
            raise ValueError("it does not say which session it is of")
        return Waiting(
            key, made(Session, head), tuple(made(Turn, row) for row in rows if "id" in row),
            next((row["size"] for row in reversed(puts) if row.get("size")), None),
            tries.told(rows), time_of(puts[0]["put"]) if puts else None,
            time_of(puts[-1]["put"]) if puts else None, any(asked) if asked else None,
            open=bool(puts) and all(row.get("open") for row in puts) and not any("due" in r for r in rows),
        )  # fmt: skip
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        return Waiting(key, Session("unknown", ""), (), broken=f"the record cannot be read: {error}")
