"""Turns that wait for their flush: one durable file a session in `pending/`, appended to, then drained.

Whatever brings a turn (a hook, a transcript, a Python program) puts it here, redacted; whatever triggers a
flush takes from here. A record holds the words themselves, since clients delete their transcripts. A turn
is known by its client, its session and its entry id, and is taken in once.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ua_memory.errors import CannotWrite, NotFound
from ua_memory.transcripts.turns import Session, Turn

PREFIX, SUFFIX = "turns-", ".jsonl"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A session whose turns wait: what they are, how often a flush of them failed, and why the last time."""

    key: str
    session: Session
    turns: tuple[Turn, ...]
    tries: int = 0
    reason: str = ""
    since: datetime | None = None


class Queue:
    """The waiting turns of a bank. `clean` takes secrets out of a text before it is written."""

    def __init__(self, folder: Path, clean: Callable[[str], str]) -> None:
        self.folder, self.clean = folder, clean

    def put(self, session: Session, turns: Iterable[Turn]) -> Waiting:
        """Append those turns that do not wait already; they are on the disk when this returns."""
        key = key_of(session)
        with self._open(key) as file:
            rows = list(_rows(file))
            known = {row["id"] for row in rows if "id" in row}
            fresh = [t for t in turns if t.id not in known]
            lines = [] if rows else [{"session": _plain(asdict(session))}]
            lines += [_plain(asdict(replace(t, text=self.clean(t.text)))) for t in fresh]
            _append(file, lines)
        return self.get(key)

    def get(self, key: str) -> Waiting:
        """What waits under a key. NotFound."""
        try:
            with (self.folder / f"{PREFIX}{key}{SUFFIX}").open("rb") as file:
                return _waiting(key, list(_rows(file)))
        except FileNotFoundError as error:
            raise NotFound("nothing waits under this key", where=key, mend="ua-memory queue list") from error

    def all(self) -> list[Waiting]:
        """Everything that waits, by key."""
        names = sorted(p.name for p in self.folder.glob(f"{PREFIX}*{SUFFIX}"))
        return [self.get(name[len(PREFIX) : -len(SUFFIX)]) for name in names]

    def failed(self, key: str, reason: str, at: datetime) -> None:
        """Note that a flush of these turns failed; they go on waiting."""
        with self._open(key) as file:
            list(_rows(file))
            _append(file, [{"failed": reason, "at": at.isoformat()}])

    def taken(self, key: str, consumed: Collection[str]) -> None:
        """Let go of turns whose facts are committed; what was added meanwhile stays."""
        with self._open(key) as file:
            rows = [row for row in _rows(file) if row.get("id") not in consumed and "failed" not in row]
            path = self.folder / f"{PREFIX}{key}{SUFFIX}"
            if not any("id" in row for row in rows):
                path.unlink(missing_ok=True)
                return
            # A whole new file in its place: who waits for the old one's lock sees that it is gone, and opens this.
            fresh = path.with_suffix(".fresh")
            with fresh.open("w+b") as rest:
                _append(rest, rows)
            fresh.replace(path)

    def drop(self, key: str) -> Waiting:
        """Throw away what waits under a key, and return it."""
        gone = self.get(key)
        (self.folder / f"{PREFIX}{key}{SUFFIX}").unlink(missing_ok=True)
        return gone

    @contextmanager
    def _open(self, key: str) -> Iterator[Any]:
        path = self.folder / f"{PREFIX}{key}{SUFFIX}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            while True:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                with os.fdopen(fd, "r+b") as file:
                    fcntl.flock(file, fcntl.LOCK_EX)
                    if path.exists() and os.path.samestat(os.stat(path), os.fstat(fd)):
                        yield file
                        return
                # Another process drained and removed it between our open and our lock.
        except OSError as error:
            raise CannotWrite(error.strerror or str(error), where=str(path), mend="ua-memory doctor") from error


def key_of(session: Session) -> str:
    """The name a session waits under: its client, and a hash of its id, which may be any text."""
    client = "".join(c for c in session.client if c.isalnum() or c == "-") or "text"
    return f"{client}-{hashlib.sha256(session.session.encode()).hexdigest()[:10]}"


def _append(file: Any, rows: Iterable[dict[str, Any]]) -> None:
    file.seek(0, os.SEEK_END)
    if file.tell():
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":  # a killed writer's half line ends here, and is passed over when read
            file.write(b"\n")
    for row in rows:
        file.write(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    file.flush()
    os.fsync(file.fileno())


def _rows(file: Any) -> Iterator[dict[str, Any]]:
    file.seek(0)
    for line in file:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row


def _waiting(key: str, rows: list[dict[str, Any]]) -> Waiting:
    head = next((row["session"] for row in rows if "session" in row), {"client": "text"})
    failures = [row for row in rows if "failed" in row]
    started = datetime.fromisoformat(head["started"]) if head.get("started") else None
    turns = tuple(Turn(**{**row, "at": datetime.fromisoformat(row["at"]) if row.get("at") else None}) for row in rows if "id" in row)
    return Waiting(
        key, Session(**{**head, "started": started}), turns, len(failures),
        failures[-1]["failed"] if failures else "", datetime.fromisoformat(failures[0]["at"]) if failures else None,
    )  # fmt: skip


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in values.items()}
