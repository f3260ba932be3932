"""The queue: turns and texts that wait for a model, one durable file each in `pending/`."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from ua_memory.errors import (
    Busy,
    CannotWrite,
    Malformed,
    ModelMisbehaved,
    ModelRefused,
    NotFound,
    TooLarge,
    UaMemoryError,
    Usage,
)
from ua_memory.paths import make_private
from ua_memory.records import Fact, Origin, Quote, Was
from ua_memory.retain.extractor import ExtractedChunk, Mode
from ua_memory.store import swap
from ua_memory.store.store import Store
from ua_memory.transcripts.turns import Session, Turn

# -- rows --------------------------------------------------------------------------------------------------
# Rows of JSON in a file that is only appended to, by one process at a time, and that outlives a kill.


Row = dict[str, Any]
TIMES = {"at", "started", "again"}
"""The keys of rows that have a time."""
T = TypeVar("T")


def lock(fd: int, *, wait: bool) -> bool:
    """Take a file's lock; whether that succeeded, which without `wait` it may not. It ends when the file is
    closed."""
    try:
        import fcntl
    except ImportError:  # Windows, where one process works alone
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def append(file: IO[bytes], rows: Iterable[Row]) -> None:
    """Append rows; they are on the disk on return. OSError."""
    file.seek(0, os.SEEK_END)
    if file.tell():
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":  # a killed writer's half line ends here, and is passed over when read
            file.write(b"\n")
    file.write(written(rows))
    file.flush()
    os.fsync(file.fileno())


def written(rows: Iterable[Row]) -> bytes:
    """Rows as a file has them."""
    return b"".join(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace") + b"\n" for row in rows)


def read_rows(file: IO[bytes]) -> Iterator[Row]:
    """The rows of a file from its beginning; lines that cannot be read are skipped."""
    file.seek(0)
    for line in file:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row


def from_row(kind: type[T], row: Row) -> T:
    """The object from a row; unknown keys are ignored."""
    known: Row = {each.name: row[each.name] for each in fields(cast(Any, kind)) if each.name in row}
    known = {key: tuple(each) if isinstance(each, list) else each for key, each in known.items()}
    return kind(**known | {key: time_of(known[key]) for key in TIMES & known.keys()})


def time_of(text: str | None) -> datetime | None:
    """A time of a row. ValueError."""
    return datetime.fromisoformat(text) if text else None


def plain(value: Any) -> Row:
    """A dataclass as a row; times as text."""
    return {k: each.isoformat() if isinstance(each, datetime) else each for k, each in asdict(value).items()}


# -- tries -------------------------------------------------------------------------------------------------
# How often a flush of waiting turns has been tried, when to try again, and when to give up.
#
# What keeps a model from answering (no network, a limit, a rejected key) passes: it is tried for ever, ever
# more seldom. What a session's own turns cause (a refusal, nonsense, a crash) does not: after some times
# the session is set aside, until a person says to try again.


FIRST, MOST = 60.0, 3600.0
"""Seconds from a failure to the next try: doubled with each, up to the second."""
ENOUGH = 5
"""Failures of its own after which a session is set aside."""
_ITS_OWN = (ModelRefused, ModelMisbehaved, Malformed, TooLarge, Usage)
STOPPED = "it was stopped before it was done"
DIED = "the process that flushed it ended before it was done"


@dataclass(frozen=True, slots=True)
class Attempts:
    """`count` attempts have failed, the last for `reason`; `own` of them because of the session's own
    turns. Before `again` it is not retried unasked. `begun` is an attempt whose end was never recorded."""

    count: int = 0
    own: int = 0
    reason: str = ""
    again: datetime | None = None
    begun: bool = False

    @property
    def aside(self) -> bool:
        """Whether it is only retried on request."""
        return self.own >= ENOUGH


RETRY = "ua-memory queue retry"


def read_attempts(rows: Iterable[Mapping[str, Any]]) -> Attempts:
    """The attempts in a session's record."""
    found = Attempts()
    for row in rows:
        if "failed" in row:
            own = found.own + bool(row.get("own"))
            again = datetime.fromisoformat(row["again"]) if row.get("again") else None
            found = Attempts(found.count + 1, own, row["failed"], again)
        elif "begun" in row:
            found = Attempts(found.count, found.own, found.reason, found.again, begun=True)
        elif "revived" in row:
            found = Attempts(found.count, 0, found.reason)
    return found


def next_try(at: datetime, count: int, chance: float) -> datetime:
    """When to retry after `count` failures, the last one at `at`. `chance`, 0 to 1, spreads sessions that
    failed together."""
    wait = min(FIRST * 2.0 ** min(count - 1, 20), MOST)
    return at + timedelta(seconds=wait * (0.5 + chance / 2))


# -- jobs --------------------------------------------------------------------------------------------------
# What became of the work that is done without being asked for: its last run, whoever started it, and when it
# may be tried again. One small file a job in `local/`, which may be deleted.


UPKEEP, UNASKED = "upkeep", ("consolidate", "refresh")
"""What the daemon does unasked after a rest, and the jobs of which that is made."""
JOBS = (*UNASKED, "flush", "sync")
BETWEEN = timedelta(minutes=30)
"""From one run of a job that nobody asked for to the next: a bank that is written to all day is not
consolidated after each pause."""


@dataclass(frozen=True, slots=True)
class JobRun:
    """A run that ended at `at`. `failed` have failed in a row, this one among them; before `again` none
    is tried unasked. `head` is the newest revision after it, '' if it left something to do."""

    at: datetime
    result: str
    failed: int = 0
    again: datetime | None = None
    head: str = ""


@dataclass(slots=True)
class JobNote:
    """What a run says of itself: `ended` is the error that ended it early."""

    result: str = ""
    left: bool = False
    ended: Exception | None = None


class Jobs:
    """The last run of each job of a bank."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def last(self, job: str) -> JobRun | None:
        """None if it has not run, or its file cannot be read."""
        try:
            return from_row(JobRun, json.loads(self._file(job).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def all(self) -> dict[str, JobRun | None]:
        """The last run of each job."""
        return {job: self.last(job) for job in JOBS}

    def due(self, job: str) -> bool:
        """Whether a run is worth its while: something has changed since the last one, and it may be tried."""
        last = self.last(job)
        if last is None:
            return True
        return last.head != self.head() and self._store.now() >= (last.again or last.at)

    def unasked(self) -> bool:
        """Whether to consolidate and refresh. Pages are not tried while consolidation fails: it would be
        asked again before its time, and they ask the same model."""
        last = self.last("consolidate")
        return self.due("consolidate") or bool(last and not last.failed and self.due("refresh"))

    def head(self) -> str:
        """The newest revision, '' before the first."""
        return self._store.history.head() or ""

    @contextmanager
    def noted(self, job: str, *, trial: bool = False) -> Iterator[JobNote]:
        """Note how a run ends, unless it is a `trial`. One that finds another at work is none."""
        note = JobNote()
        try:
            yield note
        except Busy:
            raise
        except Exception as error:
            note.ended = error
            raise
        finally:
            if not trial and (note.result or note.ended):
                self._note(job, note)

    def _note(self, job: str, note: JobNote) -> None:
        last, now = self.last(job), self._store.now()
        failed = (last.failed if last else 0) + 1 if note.ended else 0
        again = next_try(now, failed, 1.0) if note.ended else now + BETWEEN
        # Of a bug only its name: what it says may have words of memory in it.
        result = getattr(note.ended, "what", type(note.ended).__name__) if note.ended else note.result
        row = plain(JobRun(now, result, failed, again, "" if note.left or failed else self.head()))
        file = self._file(job)
        with contextlib.suppress(OSError):  # the work is done all the same
            make_private(file.parent)
            swap.put(file, json.dumps(row).encode(), file.with_suffix(f".{os.getpid()}"))

    def _file(self, job: str) -> Path:
        return self._store.bank.local / f"job-{job}.json"


# -- queue -------------------------------------------------------------------------------------------------
# Turns that wait for their flush: one durable file a session in `pending/`, appended to, then drained.
#
# Whatever brings a turn (a hook, a transcript, a Python program) puts it here, redacted; whatever triggers
# a flush takes from here. A record holds the words themselves, since clients delete their transcripts. A
# turn is known by its client, its session and its entry id, and is taken in once.


PREFIX, SUFFIX, CLAIM = "turns-", ".jsonl", ".claim"
OF_TRIES = {"failed", "begun", "revived", "due"}
ABANDONED = timedelta(hours=12)
"""After so long without a new turn a session that nobody closed is flushed like one that was."""


@dataclass(frozen=True, slots=True)
class TextItem:
    """One text to be retained, and what was said with it.

    `at` is when it was said or written (aware). Without a `document_id` its facts go into that day's log.
    `source` is the place it came from, for people. `request` makes it one that is carried out once. `redo`
    has chunks read again that have not changed.
    """

    text: str
    at: datetime
    document_id: str = ""
    source: str = ""
    append: bool = False
    mode: Mode = "concise"
    mission: str = ""
    instructions: str = ""
    context: str = ""
    tags: tuple[str, ...] = ()
    client: str = ""
    session: str = ""
    origin: Origin = "agent"
    request: str = ""
    redo: bool = False
    said_in: tuple[str, ...] = ()
    """Tags of all that is said where this was: they stand once, below the heading."""
    metadata: tuple[str, ...] = ()
    """Tags `key:value` of the text as a whole: below the heading, or in its document's front matter."""


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A session whose turns wait, or a text: what they are, since when, when the `newest` came, and what was
    tried.

    `size` is its context's, in tokens, when its last turns came. `modelled` tells whether a model was meant
    to read them, None if nobody said. `open` says that its session goes on and no flush is due: it gathers.
    `broken` is why the record cannot be read, '' if it can."""

    key: str
    session: Session
    turns: tuple[Turn, ...]
    size: int | None = None
    tried: Attempts = field(default_factory=Attempts)
    since: datetime | None = None
    newest: datetime | None = None
    modelled: bool | None = None
    broken: str = ""
    open: bool = False
    recalled: tuple[str, ...] = ()
    """Lines that memory gave the session: its agent may repeat them."""
    item: TextItem | None = None
    drawn: Mapping[str, ExtractedChunk] = field(default_factory=dict)
    """Of a text: itself, and the facts of chunks that were read already, by chunk name."""

    def gathers(self, now: datetime) -> bool:
        """Whether no flush is due: its session is open and had new turns within half a day."""
        return self.open and self.newest is not None and now - self.newest < ABANDONED

    @property
    def tries(self) -> int:
        """The number of failed flushes."""
        return self.tried.count

    @property
    def reason(self) -> str:
        """Why the last attempt failed; '' if there was none."""
        return self.broken or self.tried.reason

    @property
    def aside(self) -> bool:
        """Whether it is only retried on request."""
        return bool(self.broken) or self.tried.aside


class TurnQueue:
    """The queued turns of a bank. `clean` removes secrets from a text before it is written; `chance` gives
    numbers from 0 to 1; `prefix` begins the file names."""

    prefix = PREFIX

    def __init__(
        self, folder: Path, clean: Callable[[str], str], chance: Callable[[], float] = random.random
    ) -> None:
        self.folder, self.clean, self.chance = folder, clean, chance

    def put(
        self, session: Session, turns: Iterable[Turn], *, at: datetime, size: int | None = None,
        modelled: bool | None = None, more: bool = False, recalled: Iterable[str] = (),
    ) -> QueueEntry:  # fmt: skip
        """Append those turns that do not wait already; on the disk when this returns. With `more` no flush is
        due: the session goes on. `recalled` is what memory gave it. CannotWrite."""
        self._make_way(key := key_of(session))
        with self._open(key) as file:
            rows = list(read_rows(file))
            known = {row["id"] for row in rows if "id" in row}
            lines: list[Row] = [] if any("session" in row for row in rows) else [{"session": plain(session)}]
            for turn in turns:
                if turn.id not in known:
                    known.add(turn.id)
                    clean = replace(turn, text=self.clean(turn.text), echo=self.clean(turn.echo))
                    row = plain(clean)
                    lines.append(row if clean.echo else {k: v for k, v in row.items() if k != "echo"})
            there = {line for row in rows for line in row.get("recalled", ())}
            if fresh := [line for line in map(self.clean, recalled) if line not in there]:
                lines.append({"recalled": fresh})
            put: Row = {"put": at.isoformat(), "size": size, "model": modelled}
            append(file, [*lines, {**put, "open": True} if more else put])
            swap.sync_folder(self.folder)
        return self.get(key)

    def get(self, key: str) -> QueueEntry:
        """The entry under a key. NotFound."""
        try:
            with self._path(key).open("rb") as file:
                rows = list(read_rows(file))
                file.seek(0)
                # A first line that was never ended is no record: its writer was killed, or is at it.
                return self._told(key, rows, garbled=not rows and b"\n" in file.read())
        except FileNotFoundError as error:
            raise NotFound("no such entry in the queue", where=key, hint="ua-memory queue list") from error

    def find(self, key: str) -> QueueEntry | None:
        """The entry under a key, None if there is none."""
        with contextlib.suppress(NotFound):
            return self.get(key)
        return None

    def ids(self, session: Session) -> list[str]:
        """The ids of a session's turns that wait."""
        found = self.find(key_of(session))
        return [turn.id for turn in found.turns] if found else []

    def keys(self) -> list[str]:
        """The keys of all queued sessions, sorted."""
        names = (path.name for path in self.folder.glob(f"{self.prefix}*{SUFFIX}"))
        return sorted(name[len(self.prefix) : -len(SUFFIX)] for name in names)

    def all(self) -> list[QueueEntry]:
        """All entries, oldest first."""
        found = filter(None, map(self.find, self.keys()))  # one may be drained meanwhile
        return sorted(found, key=lambda each: (each.since is None, each.since and each.since.timestamp()))

    def failed(
        self, key: str, reason: str, at: datetime, *, own: bool = False, modelled: bool | None = None
    ) -> None:
        """Record a failed flush, because of the turns themselves (`own`) or not; they stay queued."""
        again = next_try(at, self.get(key).tries + 1, self.chance())
        row = {"failed": reason, "at": at.isoformat(), "own": own, "again": again.isoformat()}
        self._note(key, {**row, "model": True} if modelled else row)

    @contextmanager
    def noting_failure(
        self, key: str, now: Callable[[], datetime], stays: str, *, modelled: bool
    ) -> Iterator[None]:
        """Record why the work on an entry failed, and say in the error that it `stays` queued, and how to try
        again. A bug is recorded, too: it must not be met with each run to come."""
        try:
            yield
        except SystemExit:
            self.failed(key, STOPPED, now())
            raise
        except UaMemoryError as error:
            self.failed(key, error.what, now(), own=isinstance(error, _ITS_OWN), modelled=modelled)
            what = f"{error.what.removesuffix('; none of it was saved')}; {stays}"
            hint = f"{error.hint}; then: {RETRY}" if error.hint else RETRY
            raise type(error)(what, where=error.where, hint=hint) from error
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            self.failed(key, why, now(), own=True, modelled=modelled)
            raise

    def close(self, key: str, at: datetime) -> None:
        """Make a flush due of a session that is still open. NotFound."""
        if self.get(key).open:
            self._note(key, {"due": at.isoformat()})

    def begin(self, key: str, at: datetime) -> QueueEntry:
        """The entry under a key, recorded as being attempted, so that an attempt which kills its process
        counts. NotFound."""
        found = self.get(key)
        if found.tried.begun:
            self.failed(key, DIED, at, own=True)
            found = self.get(key)
        if not found.aside:
            self._note(key, {"begun": at.isoformat()})
        return found

    def revive(self, key: str, at: datetime) -> None:
        """Retry a session that was set aside. NotFound."""
        if self.get(key).tried.own:
            self._note(key, {"revived": at.isoformat()})

    def _note(self, key: str, row: Row) -> None:
        with self._open(key) as file:
            append(file, [row])

    def _make_way(self, key: str) -> None:
        """Give a record that cannot be read another name, where it waits for a person."""
        with contextlib.suppress(NotFound, OSError):  # what is in the way is said by who writes there
            if self.get(key).broken:
                with self._open(key):
                    aside = (self._path(f"{key}-{n}") for n in range(1, 1000))
                    self._path(key).rename(next(path for path in aside if not path.exists()))

    def remove_turns(self, key: str, consumed: Collection[str]) -> None:
        """Remove turns whose facts are committed; turns added meanwhile stay."""
        with self._open(key) as file:
            rows = [
                row for row in read_rows(file) if row.get("id") not in consumed and not row.keys() & OF_TRIES
            ]
            first = next((n for n, row in enumerate(rows) if "id" in row), None)
            rows = [row for n, row in enumerate(rows) if "put" not in row or n > (first or 0)]
            self._instead(key, rows if first is not None else [])

    def rewrite(self, key: str, change: Callable[[Row], Row | None]) -> bool:
        """Replace each row by `change(row)`, None to remove it; whether anything changed."""
        with self._open(key) as file:
            rows = list(read_rows(file))
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
        swap.put(path, written(rows), path.with_suffix(".rest"))

    def drop(self, key: str) -> QueueEntry:
        """Remove an entry and return it. NotFound; Busy while it is being flushed."""
        gone = self.get(key)
        with self.claimed(key, 0):
            self._path(key).unlink(missing_ok=True)
            swap.sync_folder(self.folder)
        return gone

    @contextmanager
    def claimed(self, key: str, seconds: float) -> Iterator[None]:
        """Hold the claim on a session during the block. Busy if another process holds it for longer than
        `seconds`.

        The claim ends with its process.
        """
        until = time.monotonic() + seconds
        path = self.folder / f"{self.prefix}{key}{CLAIM}"
        with self._locked(path, waits=lambda: time.monotonic() < until, key=key):
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    path.unlink()

    @contextmanager
    def attempt(
        self, key: str, seconds: float, now: Callable[[], datetime], *, unasked: bool
    ) -> Iterator[QueueEntry | None]:
        """Hold the claim on an entry while it is worked on; None if there is none, or if it is set aside and
        the work `unasked`. Such a try is noted before it begins, so that one that its process does not
        survive is counted as well. Busy; Malformed for a record that cannot be read."""
        with self.claimed(key, seconds):
            found = self.find(key)
            if found and unasked:
                found = self.begin(key, now())
            if found and unasked and found.aside:
                found = None
            if found and found.broken:
                hint = f"copy what you need, then: ua-memory queue drop {key}"
                raise Malformed(found.broken, where=str(self.folder), hint=hint)
            yield found

    def sweep(self) -> None:
        """Remove claims that killed processes left on sessions which are no longer queued."""
        for path in self.folder.glob(f"{self.prefix}*{CLAIM}"):
            key = path.name[len(self.prefix) : -len(CLAIM)]
            if not self._path(key).exists():
                with contextlib.suppress(Busy), self.claimed(key, 0):
                    pass

    def _told(self, key: str, rows: list[Row], *, garbled: bool) -> QueueEntry:
        head = next(
            (row["session"] for row in rows if "session" in row), None if rows else {"client": "text"}
        )
        puts = [row for row in rows if "put" in row]
        asked = [row["model"] for row in rows if row.get("model") is not None]
        gathers = bool(puts) and not any("due" in row for row in rows)
        try:
            if head is None or garbled:
                raise ValueError("it does not say which session it is of")
            return QueueEntry(
                key, from_row(Session, head), tuple(from_row(Turn, row) for row in rows if "id" in row),
                next((row["size"] for row in reversed(puts) if row.get("size")), None),
                read_attempts(rows), time_of(puts[0]["put"]) if puts else None,
                time_of(puts[-1]["put"]) if puts else None, any(asked) if asked else None,
                recalled=tuple(line for row in rows for line in row.get("recalled", ())),
                open=gathers and all(row.get("open") for row in puts),
            )  # fmt: skip
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            return QueueEntry(key, Session("unknown", ""), (), broken=f"the record cannot be read: {error}")

    def _path(self, key: str) -> Path:
        if not key or not all(c.isalnum() or c in "-_" for c in key):
            raise NotFound("no such entry in the queue", where=key, hint="ua-memory queue list")
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
                    got = lock(fd, wait=waits is None)
                    # It may have been drained and removed, or replaced, between our open and our lock.
                    if got and path.exists() and os.path.samestat(path.stat(), os.fstat(fd)):
                        yield file
                        return
                if not got:
                    if waits is not None and not waits():
                        raise Busy("another process is flushing this session", where=key, hint="try again")
                    time.sleep(0.05)
        except OSError as error:
            what = error.strerror or str(error)
            raise CannotWrite(what, where=str(path), hint="check owner, mode and free space") from None


def key_of(session: Session) -> str:
    """The key of a session: its client, and a hash of its id, which may be any text."""
    client = "".join(c for c in session.client if c.isascii() and (c.isalnum() or c == "-"))[:40] or "text"
    name = f"{session.client}\0{session.session}".encode("utf-8", "replace")
    return f"{client}-{hashlib.sha256(name).hexdigest()[:10]}"


# -- items -------------------------------------------------------------------------------------------------
# Texts that wait to be retained: one durable record a text in `pending/`, beside the turns of
# conversations.
#
# A record holds the text itself, without secrets, and what was drawn from its chunks so far, so that
# neither a killed process nor a spent budget has anything read and paid for twice.


RETAIN_PREFIX = "retain-"


class TextQueue(TurnQueue):
    """The queued texts of a bank."""

    prefix = RETAIN_PREFIX

    def offer(self, key: str, item: TextItem, *, at: datetime, modelled: bool) -> None:
        """Queue a text under a key; it is on the disk, without secrets, on return. CannotWrite."""
        clean = replace(
            item, text=self.clean(item.text), document_id=self.clean(item.document_id),
            context=self.clean(item.context), source=self.clean(item.source),
            metadata=tuple(map(self.clean, item.metadata)),
        )  # fmt: skip
        with self._open(key) as file:
            if not any("item" in row for row in read_rows(file)):
                put = {"put": at.isoformat(), "size": None, "model": modelled}
                append(file, [{"item": {**dataclasses.asdict(clean), "at": clean.at.isoformat()}}, put])
                swap.sync_folder(self.folder)

    def has(self, key: str) -> bool:
        """Whether anything is queued under a key."""
        try:
            return self._path(key).exists()
        except NotFound:
            return False

    def note(self, key: str, name: str, drawn: ExtractedChunk) -> None:
        """Store the facts of one chunk until all chunks are read."""
        facts = [dataclasses.asdict(replace(fact)) for fact in drawn.facts]
        causes = [[n, cause] for n, cause in drawn.causes.items()]
        self._note(key, {"drawn": name, "facts": facts, "causes": causes, "refused": list(drawn.refused)})

    def done(self, key: str) -> None:
        """Remove a text whose facts are committed."""
        self._path(key).unlink(missing_ok=True)

    def _told(self, key: str, rows: list[Row], *, garbled: bool) -> QueueEntry:
        try:
            given = next((row["item"] for row in rows if "item" in row), None)
            if given is None or garbled:
                raise ValueError("it does not say which text it is about")
            item = from_row(TextItem, given)
            put = next(row for row in rows if "put" in row)
            since = time_of(put["put"])
            return QueueEntry(
                key, Session(item.client, item.session), (Turn(key, "person", item.text, item.at),), None,
                read_attempts(rows), since, since, put.get("model"), item=item, drawn=dict(_drawn(rows)),
            )  # fmt: skip
        except (ValueError, TypeError, AttributeError, KeyError, StopIteration) as error:
            return QueueEntry(key, Session("", ""), (), broken=f"the record cannot be read: {error}")


def _drawn(rows: Iterable[Row]) -> Iterable[tuple[str, ExtractedChunk]]:
    for row in rows:
        if "drawn" in row:
            facts = tuple(map(_fact, row["facts"]))
            yield row["drawn"], ExtractedChunk(facts, dict(row["causes"]), tuple(row["refused"]))


def _fact(given: dict[str, Any]) -> Fact:
    own = {key: value for key, value in given.items() if key not in ("place", "heading")}
    own["was"] = [Was(**was) for was in own.get("was", ())]
    return from_row(Fact, {**own, "quotes": [Quote(**quote) for quote in own["quotes"]]})
