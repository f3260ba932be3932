"""Turns that wait for their flush: one durable file a session in `pending/`, appended to, then drained.

Whatever brings a turn (a hook, a transcript, a Python program) puts it here, redacted; whatever triggers a
flush takes from here. A record holds the words themselves, since clients delete their transcripts. A turn
is known by its client, its session and its entry id, and is taken in once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from ua_memory.errors import Busy, CannotWrite, NotFound
from ua_memory.store import swap
from ua_memory.transcripts.turns import Session, Turn

PREFIX, SUFFIX, CLAIM = "turns-", ".jsonl", ".claim"
Row = dict[str, Any]
T = TypeVar("T", Session, Turn)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A session whose turns wait: what they are, how often a flush of them failed, why the last time, and
    since when. `size` is how large the session's context was, in tokens, when its last turns came."""

    key: str
    session: Session
    turns: tuple[Turn, ...]
    size: int | None = None
    tries: int = 0
    reason: str = ""
    since: datetime | None = None


class Queue:
    """The waiting turns of a bank. `clean` takes secrets out of a text before it is written."""

    def __init__(self, folder: Path, clean: Callable[[str], str]) -> None:
        self.folder, self.clean = folder, clean

    def put(
        self, session: Session, turns: Iterable[Turn], *, at: datetime, size: int | None = None
    ) -> Waiting:
        """Append those turns that do not wait already; on the disk when this returns. CannotWrite."""
        key = key_of(session)
        with self._open(key) as file:
            rows = list(_rows(file))
            known = {row["id"] for row in rows if "id" in row}
            lines: list[Row] = [] if any("session" in row for row in rows) else [{"session": _plain(session)}]
            for turn in turns:
                if turn.id not in known:
                    known.add(turn.id)
                    lines.append(_plain(replace(turn, text=self.clean(turn.text))))
            _append(file, [*lines, {"put": at.isoformat(), "size": size}])
            swap.sync_folder(self.folder)
        return self.get(key)

    def get(self, key: str) -> Waiting:
        """What waits under a key. NotFound."""
        try:
            with self._path(key).open("rb") as file:
                return _waiting(key, list(_rows(file)))
        except FileNotFoundError as error:
            raise NotFound("nothing waits under this key", where=key, mend="ua-memory queue list") from error

    def keys(self) -> list[str]:
        """The keys of all sessions that wait, in the order of their names."""
        names = sorted(path.name for path in self.folder.glob(f"{PREFIX}*{SUFFIX}"))
        return [name[len(PREFIX) : -len(SUFFIX)] for name in names]

    def all(self) -> list[Waiting]:
        """Everything that waits, those that have waited longest first."""
        found = []
        for key in self.keys():
            with contextlib.suppress(NotFound):  # drained meanwhile
                found.append(self.get(key))
        return sorted(found, key=lambda each: (each.since is None, each.since and each.since.timestamp()))

    def failed(self, key: str, reason: str, at: datetime) -> None:
        """Note that a flush of these turns failed; they go on waiting."""
        with self._open(key) as file:
            _append(file, [{"failed": reason, "at": at.isoformat()}])

    def taken(self, key: str, consumed: Collection[str]) -> None:
        """Let go of turns whose facts are committed; what was added meanwhile stays."""
        with self._open(key) as file:
            rows = [row for row in _rows(file) if row.get("id") not in consumed and "failed" not in row]
            path = self._path(key)
            if not any("id" in row for row in rows):
                path.unlink(missing_ok=True)
                return
            # A whole new file in its place: who waits for the old one's lock sees that, and opens this.
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
        return gone

    @contextmanager
    def claimed(self, key: str, seconds: float) -> Iterator[None]:
        """Be the only process that flushes this session. Busy if another is at it for longer than `seconds`.

        The claim ends with the process that has it, however that ends.
        """
        until = time.monotonic() + seconds
        path = self.folder / f"{PREFIX}{key}{CLAIM}"
        with self._locked(path, waits=lambda: time.monotonic() < until, key=key):
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    path.unlink()

    def _path(self, key: str) -> Path:
        if not key or not all(c.isalnum() or c in "-_" for c in key):
            raise NotFound("nothing waits under this key", where=key, mend="ua-memory queue list")
        return self.folder / f"{PREFIX}{key}{SUFFIX}"

    @contextmanager
    def _open(self, key: str) -> Iterator[IO[bytes]]:
        with self._locked(self._path(key), waits=None, key=key) as file:
            yield file

    @contextmanager
    def _locked(self, path: Path, *, waits: Callable[[], bool] | None, key: str) -> Iterator[IO[bytes]]:
        """The file, made if need be, under its lock; `waits` tells how long to try, None for ever."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
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
            raise CannotWrite(
                error.strerror or str(error), where=str(path), mend="ua-memory doctor"
            ) from None


def key_of(session: Session) -> str:
    """The name a session waits under: its client, and a hash of its id, which may be any text."""
    client = "".join(c for c in session.client if c.isascii() and (c.isalnum() or c == "-"))[:40] or "text"
    name = f"{session.client}\0{session.session}".encode("utf-8", "replace")
    return f"{client}-{hashlib.sha256(name).hexdigest()[:10]}"


def _lock(fd: int, *, wait: bool) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows, where one process works alone
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def _append(file: IO[bytes], rows: Iterable[Row]) -> None:
    file.seek(0, os.SEEK_END)
    if file.tell():
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":  # a killed writer's half line ends here, and is passed over when read
            file.write(b"\n")
    data = b"".join(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n" for row in rows)
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def _rows(file: IO[bytes]) -> Iterator[Row]:
    file.seek(0)
    for line in file:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row


def _waiting(key: str, rows: list[Row]) -> Waiting:
    head = next((row["session"] for row in rows if "session" in row), {"client": "text"})
    failures = [row for row in rows if "failed" in row]
    puts = [row for row in rows if "put" in row]
    return Waiting(
        key, _made(Session, head), tuple(_made(Turn, row) for row in rows if "id" in row),
        next((row["size"] for row in reversed(puts) if row.get("size")), None),
        len(failures), failures[-1]["failed"] if failures else "", _time(puts[0]["put"]) if puts else None,
    )  # fmt: skip


def _made(kind: type[T], row: Row) -> T:
    """The row as what it was; a later version's keys are passed over."""
    known: Row = {each.name: row[each.name] for each in fields(cast(Any, kind)) if each.name in row}
    known |= {key: _time(known[key]) for key in ("at", "started") if key in known}
    return kind(**known)


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _plain(value: Session | Turn) -> Row:
    return {
        key: each.isoformat() if isinstance(each, datetime) else each for key, each in asdict(value).items()
    }
