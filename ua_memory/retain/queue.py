"""The queue: turns and texts that wait for a model, one durable file each in `pending/`."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import random
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from ua_memory.clients.turns import Session, Turn
from ua_memory.errors import (
    Busy,
    Malformed,
    ModelMisbehaved,
    ModelRefused,
    NotFound,
    TooLarge,
    UaMemoryError,
    Usage,
    writing,
)
from ua_memory.paths import append_lines, make_private, sync_path
from ua_memory.records import Fact, Origin, Quote, Was
from ua_memory.retain.extract_by_model import ExtractedChunk, Mode
from ua_memory.store import swap
from ua_memory.store.store import Store

# -- JSON Lines files --------------------------------------------------------------------------------------
# Append-only files, written by one process at a time. A line that a kill left half written is skipped.


Row = dict[str, Any]
TIME_KEYS = {"at", "started", "again"}
"""Keys whose values are times, as ISO text."""
T = TypeVar("T")


def encode_rows(rows: Iterable[Row]) -> bytes:
    """Rows as JSON Lines."""
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
    return kind(**known | {key: parse_time(known[key]) for key in TIME_KEYS & known.keys()})


def parse_time(text: str | None) -> datetime | None:
    """A time from a row, None for '' or None. ValueError."""
    return datetime.fromisoformat(text) if text else None


def to_row(value: Any) -> Row:
    """A dataclass as a row, times as ISO text; the inverse of `from_row`."""
    return {k: each.isoformat() if isinstance(each, datetime) else each for k, each in asdict(value).items()}


# -- attempts ----------------------------------------------------------------------------------------------
# How often an entry has been tried, when to retry, and when to give up.
#
# Failures to reach the model (no network, a limit, a rejected key) are retried for ever, with exponential
# backoff. Failures that the content causes (a refusal, nonsense, a crash) are not: after a few of them the
# entry is set aside until a person retries it.


FIRST_RETRY_SECONDS, MOST_RETRY_SECONDS = 60.0, 3600.0
"""Seconds from the first failure to the next attempt, doubled with each failure, and their maximum."""
SET_ASIDE_AFTER = 5
"""Content failures after which an entry is set aside."""
_CAUSED_BY_CONTENT = (ModelRefused, ModelMisbehaved, Malformed, TooLarge, Usage)
STOPPED = "it was stopped before it was done"
PROCESS_ENDED = "the process that flushed it ended before it was done"


@dataclass(frozen=True, slots=True)
class Attempts:
    """Failed attempts: their `count`, the last `reason`, and how many the content itself caused. Before
    `retry_at` it is not retried unasked. `started`: an attempt has begun, and its end was not recorded."""

    count: int = 0
    content_failures: int = 0
    reason: str = ""
    retry_at: datetime | None = None
    started: bool = False

    @property
    def set_aside(self) -> bool:
        """Whether it is only retried on request."""
        return self.content_failures >= SET_ASIDE_AFTER


RETRY_COMMAND = "ua-memory queue retry"


def read_attempts(rows: Iterable[Mapping[str, Any]]) -> Attempts:
    """The attempts that the rows of an entry record."""
    found = Attempts()
    for row in rows:
        if "failed" in row:
            own = found.content_failures + bool(row.get("own"))
            found = Attempts(found.count + 1, own, row["failed"], parse_time(row.get("again")))
        elif "begun" in row:
            found = replace(found, started=True)
        elif "revived" in row:
            found = Attempts(found.count, 0, found.reason)
    return found


def retry_time(at: datetime, count: int, jitter: float) -> datetime:
    """When to retry after `count` failures, the last one at `at`. `jitter`, 0 to 1, spreads entries that
    failed together."""
    wait = min(FIRST_RETRY_SECONDS * 2.0 ** min(count - 1, 20), MOST_RETRY_SECONDS)
    return at + timedelta(seconds=wait * (0.5 + jitter / 2))


# -- jobs --------------------------------------------------------------------------------------------------
# The last run of each kind of background work, whoever started it, and when it may run again. One small
# file a job in `local/`, which may be deleted.


UPKEEP_JOB, UPKEEP_STEPS = "upkeep", ("consolidate", "refresh")
"""What the daemon does after a pause in writing, and the jobs that this consists of."""
JOBS = (*UPKEEP_STEPS, "flush", "sync")
UPKEEP_INTERVAL = timedelta(minutes=30)
"""The least time between two automatic runs: a bank that is written to all day is not consolidated after
each pause."""


@dataclass(frozen=True, slots=True)
class JobRun:
    """A run that ended at `at`. `failed` counts the failures in a row, this one included; before `again`
    no automatic run is made. `head` is the newest revision after it, '' if it left something to do."""

    at: datetime
    result: str
    failed: int = 0
    again: datetime | None = None
    head: str = ""


@dataclass(slots=True)
class RunReport:
    """What a run reports: its result, whether it is `unfinished`, and the error that ended it early."""

    result: str = ""
    unfinished: bool = False
    error: Exception | None = None


class Jobs:
    """The last run of each job of a bank."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def last(self, job: str) -> JobRun | None:
        """The last run of a job; None if it never ran, or its file cannot be read."""
        try:
            return from_row(JobRun, json.loads(self._file(job).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def all(self) -> dict[str, JobRun | None]:
        """The last run of each job."""
        return {job: self.last(job) for job in JOBS}

    def due(self, job: str) -> bool:
        """Whether to run a job: there are new revisions since its last run, and its wait is over."""
        last = self.last(job)
        if last is None:
            return True
        return last.head != self.head() and self._store.now() >= (last.again or last.at)

    def upkeep_due(self) -> bool:
        """Whether to consolidate and refresh. Pages wait while consolidation fails: a run of both would
        retry it too early, and they ask the same model."""
        last = self.last("consolidate")
        return self.due("consolidate") or bool(last and not last.failed and self.due("refresh"))

    def head(self) -> str:
        """The newest revision, '' before the first."""
        return self._store.history.head() or ""

    @contextmanager
    def record_run(self, job: str, *, trial: bool = False) -> Iterator[RunReport]:
        """Record how the run in this block ends, unless it is a `trial` or raises Busy."""
        note = RunReport()
        try:
            yield note
        except Busy:
            raise
        except Exception as error:
            note.error = error
            raise
        finally:
            if not trial and (note.result or note.error):
                self._save(job, note)

    def _save(self, job: str, note: RunReport) -> None:
        last, now = self.last(job), self._store.now()
        failed = (last.failed if last else 0) + 1 if note.error else 0
        again = retry_time(now, failed, 1.0) if note.error else now + UPKEEP_INTERVAL
        # Of a bug only its name: what it says may have words of memory in it.
        result = getattr(note.error, "what", type(note.error).__name__) if note.error else note.result
        row = to_row(JobRun(now, result, failed, again, "" if note.unfinished or failed else self.head()))
        file = self._file(job)
        with contextlib.suppress(OSError):  # the work is done all the same
            make_private(file.parent)
            swap.replace_file(file, json.dumps(row).encode(), file.with_suffix(f".{os.getpid()}"))

    def _file(self, job: str) -> Path:
        return self._store.bank.local / f"job-{job}.json"


# -- queue -------------------------------------------------------------------------------------------------
# Turns that wait for their flush: one durable JSON Lines file a session in `pending/`.
#
# Hooks, transcripts and Python programs put turns here, redacted; every flush takes them from here. A file
# holds the text itself, since clients delete their transcripts. A turn is identified by client, session and
# entry id, and queued once.


PREFIX, SUFFIX, CLAIM = "turns-", ".jsonl", ".claim"
ATTEMPT_KEYS = {"failed", "begun", "revived", "due"}
ABANDONED_AFTER = timedelta(hours=12)
"""After so long without a new turn an open session is flushed like a closed one."""


@dataclass(frozen=True, slots=True)
class TextItem:
    """One text to be retained, and its options.

    `at` is when it was said or written (aware). Without a `document_id` its facts go into that day's log.
    `source` says for people where it came from. Of several texts with the same `request` one is retained.
    `redo` has unchanged chunks read again.
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
    """Scope tags (project, group, …): written once, below the heading."""
    metadata: tuple[str, ...] = ()
    """Tags `key:value` of the whole text: written below the heading, or into the document's front matter."""


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A queued session with its turns, or a queued text: `since` when it waits, when the `newest` turn came,
    and the failed attempts.

    `size` is the size of the context in tokens when the last turns came. `for_model`: a model is meant to
    read it, None if unknown. `open`: the session goes on and no flush is due yet. `broken` is why the record
    cannot be read, '' if it can.
    """

    key: str
    session: Session
    turns: tuple[Turn, ...]
    size: int | None = None
    attempts: Attempts = field(default_factory=Attempts)
    since: datetime | None = None
    newest: datetime | None = None
    for_model: bool | None = None
    broken: str = ""
    open: bool = False
    recalled: tuple[str, ...] = ()
    """Lines of recalled memory in the session, which its agent may repeat."""
    item: TextItem | None = None
    chunks_read: Mapping[str, ExtractedChunk] = field(default_factory=dict)
    """For a text: the text, and the facts of the chunks that were already read, by chunk name."""

    def still_open(self, now: datetime) -> bool:
        """Whether no flush is due: the session is open and had new turns within half a day."""
        return self.open and self.newest is not None and now - self.newest < ABANDONED_AFTER

    @property
    def reason(self) -> str:
        """Why the last attempt failed; '' if there was none."""
        return self.broken or self.attempts.reason

    @property
    def set_aside(self) -> bool:
        """Whether it is only retried on request."""
        return bool(self.broken) or self.attempts.set_aside


class TurnQueue:
    """The queued turns of a bank. `clean` removes secrets from a text before it is written; `jitter` gives
    random numbers from 0 to 1; `prefix` begins the file names."""

    prefix = PREFIX

    def __init__(
        self, folder: Path, clean: Callable[[str], str], jitter: Callable[[], float] = random.random
    ) -> None:
        self.folder, self.clean, self.jitter = folder, clean, jitter

    def put(
        self, session: Session, turns: Iterable[Turn], *, at: datetime, size: int | None = None,
        for_model: bool | None = None, is_open: bool = False, recalled: Iterable[str] = (),
    ) -> QueueEntry:  # fmt: skip
        """Append those turns that are not queued yet; on the disk on return. With `is_open` no flush is
        due. `recalled` has lines of recalled memory that the session was given. CannotWrite."""
        self._rename_broken_record(key := queue_key(session))
        with self._locked_record(key) as file:
            rows = list(read_rows(file))
            known = {row["id"] for row in rows if "id" in row}
            lines: list[Row] = [] if any("session" in row for row in rows) else [{"session": to_row(session)}]
            for turn in turns:
                if turn.id not in known:
                    known.add(turn.id)
                    clean = replace(turn, text=self.clean(turn.text), echo=self.clean(turn.echo))
                    row = to_row(clean)
                    lines.append(row if clean.echo else {k: v for k, v in row.items() if k != "echo"})
            there = {line for row in rows for line in row.get("recalled", ())}
            if fresh := [line for line in map(self.clean, recalled) if line not in there]:
                lines.append({"recalled": fresh})
            put: Row = {"put": at.isoformat(), "size": size, "model": for_model}
            append_lines(file, encode_rows([*lines, {**put, "open": True} if is_open else put]))
            sync_path(self.folder)
        return self.get(key)

    def get(self, key: str) -> QueueEntry:
        """The entry under a key. NotFound."""
        try:
            with self._path(key).open("rb") as file:
                rows = list(read_rows(file))
                file.seek(0)
                # A first line without its end is no record yet: its writer was killed, or still writes.
                return self._parse_entry(key, rows, garbled=not rows and b"\n" in file.read())
        except FileNotFoundError as error:
            raise NotFound("no such entry in the queue", where=key, hint="ua-memory queue list") from error

    def find(self, key: str) -> QueueEntry | None:
        """The entry under a key, None if there is none."""
        with contextlib.suppress(NotFound):
            return self.get(key)
        return None

    def queued_ids(self, session: Session) -> list[str]:
        """The ids of a session's queued turns."""
        found = self.find(queue_key(session))
        return [turn.id for turn in found.turns] if found else []

    def keys(self) -> list[str]:
        """The keys of all queued sessions, sorted."""
        names = (path.name for path in self.folder.glob(f"{self.prefix}*{SUFFIX}"))
        return sorted(name[len(self.prefix) : -len(SUFFIX)] for name in names)

    def all(self) -> list[QueueEntry]:
        """All entries, oldest first."""
        found = filter(None, map(self.find, self.keys()))  # one may be drained meanwhile
        return sorted(found, key=lambda each: (each.since is None, each.since and each.since.timestamp()))

    def record_failure(
        self, key: str, reason: str, at: datetime, *, own: bool = False, for_model: bool | None = None
    ) -> None:
        """Record a failed attempt, caused by the content itself (`own`) or not; the entry stays queued."""
        again = retry_time(at, self.get(key).attempts.count + 1, self.jitter())
        row = {"failed": reason, "at": at.isoformat(), "own": own, "again": again.isoformat()}
        self._append(key, {**row, "model": True} if for_model else row)

    @contextmanager
    def recording_failure(
        self, key: str, now: Callable[[], datetime], outcome: str, *, for_model: bool
    ) -> Iterator[None]:
        """Record an error of the block as a failed attempt, and add to its message the `outcome` for the
        entry and how to retry. Bugs are recorded too, so that they are not met again in every run."""
        try:
            yield
        except SystemExit:
            self.record_failure(key, STOPPED, now())
            raise
        except UaMemoryError as error:
            own = isinstance(error, _CAUSED_BY_CONTENT)
            self.record_failure(key, error.what, now(), own=own, for_model=for_model)
            what = f"{error.what.removesuffix('; none of it was saved')}; {outcome}"
            hint = f"{error.hint}; then: {RETRY_COMMAND}" if error.hint else RETRY_COMMAND
            raise type(error)(what, where=error.where, hint=hint) from error
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            self.record_failure(key, why, now(), own=True, for_model=for_model)
            raise

    def mark_due(self, key: str, at: datetime) -> None:
        """Have an open session flushed although it may go on. NotFound."""
        if self.get(key).open:
            self._append(key, {"due": at.isoformat()})

    def record_start(self, key: str, at: datetime) -> QueueEntry:
        """Record that an attempt starts, and return the entry. An earlier attempt that never ended, since its
        process was killed, counts as a failure. NotFound."""
        found = self.get(key)
        if found.attempts.started:
            self.record_failure(key, PROCESS_ENDED, at, own=True)
            found = self.get(key)
        if not found.set_aside:
            self._append(key, {"begun": at.isoformat()})
        return found

    def reset_failures(self, key: str, at: datetime) -> None:
        """Forget the content failures of an entry, so that it is not set aside any more. NotFound."""
        if self.get(key).attempts.content_failures:
            self._append(key, {"revived": at.isoformat()})

    def _append(self, key: str, row: Row) -> None:
        with self._locked_record(key) as file:
            append_lines(file, encode_rows([row]))

    def _rename_broken_record(self, key: str) -> None:
        """Rename a record that cannot be read, for a person to look at."""
        with contextlib.suppress(NotFound, OSError):  # the caller's write reports the cause
            if self.get(key).broken:
                with self._locked_record(key):
                    aside = (self._path(f"{key}-{n}") for n in range(1, 1000))
                    self._path(key).rename(next(path for path in aside if not path.exists()))

    def remove_turns(self, key: str, ids: Collection[str]) -> None:
        """Remove turns whose facts are committed; turns added meanwhile stay."""
        with self._locked_record(key) as file:
            rows = [r for r in read_rows(file) if r.get("id") not in ids and not r.keys() & ATTEMPT_KEYS]
            first = next((n for n, row in enumerate(rows) if "id" in row), None)
            rows = [row for n, row in enumerate(rows) if "put" not in row or n > (first or 0)]
            self._replace_rows(key, rows if first is not None else [])

    def rewrite(self, key: str, change: Callable[[Row], Row | None]) -> bool:
        """Replace each row by `change(row)`, or remove it for None. Whether anything changed."""
        with self._locked_record(key) as file:
            rows = list(read_rows(file))
            new = [row for row in map(change, rows) if row is not None]
            if new == rows:
                return False
            self._replace_rows(key, new)
        return True

    def _replace_rows(self, key: str, rows: list[Row]) -> None:
        """Replace the file by one with these rows, or remove it. Waiters on its lock see that and reopen."""
        path = self._path(key)
        if not rows:
            path.unlink(missing_ok=True)
            sync_path(self.folder)  # else they are queued again after a loss of power
            return
        swap.replace_file(path, encode_rows(rows), path.with_suffix(".rest"))

    def drop(self, key: str) -> QueueEntry:
        """Remove an entry and return it. NotFound; Busy while it is being flushed."""
        gone = self.get(key)
        with self.claim(key, 0):
            self._path(key).unlink(missing_ok=True)
            sync_path(self.folder)
        return gone

    @contextmanager
    def claim(self, key: str, seconds: float) -> Iterator[None]:
        """Claim an entry during the block, so that no other process works on it. The claim ends with the
        process. Busy if another process holds it for longer than `seconds`."""
        until = time.monotonic() + seconds
        path = self.folder / f"{self.prefix}{key}{CLAIM}"
        with self._locked(path, retry=lambda: time.monotonic() < until, key=key):
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    path.unlink()

    @contextmanager
    def attempt(
        self, key: str, seconds: float, now: Callable[[], datetime], *, unasked: bool
    ) -> Iterator[QueueEntry | None]:
        """Claim an entry and give it to the block; None if there is none, or if it is set aside and this run
        is `unasked`. The start of an unasked run is recorded, so that one which kills its process counts.
        Busy; Malformed for a record that cannot be read."""
        with self.claim(key, seconds):
            found = self.find(key)
            if found and unasked:
                found = self.record_start(key, now())
            if found and unasked and found.set_aside:
                found = None
            if found and found.broken:
                hint = f"copy what you need, then: ua-memory queue drop {key}"
                raise Malformed(found.broken, where=str(self.folder), hint=hint)
            yield found

    def remove_stale_claims(self) -> None:
        """Remove the claims that killed processes left on entries which are no longer queued."""
        for path in self.folder.glob(f"{self.prefix}*{CLAIM}"):
            key = path.name[len(self.prefix) : -len(CLAIM)]
            if not self._path(key).exists():
                with contextlib.suppress(Busy), self.claim(key, 0):
                    pass

    def _parse_entry(self, key: str, rows: list[Row], *, garbled: bool) -> QueueEntry:
        none = None if rows or garbled else {"client": "text"}
        head = next((row["session"] for row in rows if "session" in row), none)
        puts = [row for row in rows if "put" in row]
        asked = [row["model"] for row in rows if row.get("model") is not None]
        gathers = bool(puts) and not any("due" in row for row in rows)
        try:
            if head is None:
                raise ValueError("it does not say which session it belongs to")
            return QueueEntry(
                key, from_row(Session, head), tuple(from_row(Turn, row) for row in rows if "id" in row),
                next((row["size"] for row in reversed(puts) if row.get("size")), None),
                read_attempts(rows), parse_time(puts[0]["put"]) if puts else None,
                parse_time(puts[-1]["put"]) if puts else None, any(asked) if asked else None,
                recalled=tuple(line for row in rows for line in row.get("recalled", ())),
                open=gathers and all(row.get("open") for row in puts),
            )  # fmt: skip
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            return QueueEntry(key, Session("unknown", ""), (), broken=f"the record cannot be read: {error}")

    def _path(self, key: str) -> Path:
        if not key or not all(c.isalnum() or c in "-_" for c in key):
            raise NotFound("no such entry in the queue", where=key, hint="ua-memory queue list")
        return self.folder / f"{self.prefix}{key}{SUFFIX}"

    def _locked_record(self, key: str) -> AbstractContextManager[IO[bytes]]:
        return self._locked(self._path(key), retry=None, key=key)

    @contextmanager
    def _locked(self, path: Path, *, retry: Callable[[], bool] | None, key: str) -> Iterator[IO[bytes]]:
        """The locked file, made if it is missing. `retry` says whether to retry; None: for ever."""
        with writing(path):
            make_private(self.folder)
            while True:
                fd, locked = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), False
                with os.fdopen(fd, "r+b") as file:
                    with contextlib.suppress(BlockingIOError):
                        fcntl.flock(fd, fcntl.LOCK_EX | (fcntl.LOCK_NB if retry else 0))
                        locked = True
                    # It may have been drained and removed, or replaced, between our open and our lock.
                    if locked and path.exists() and os.path.samestat(path.stat(), os.fstat(fd)):
                        yield file
                        return
                if not locked:
                    if retry is not None and not retry():
                        raise Busy("another process is flushing this session", where=key, hint="try again")
                    time.sleep(0.05)


def queue_key(session: Session) -> str:
    """The queue key of a session: its client, and a hash of its id, which may be any text."""
    client = "".join(c for c in session.client if c.isascii() and (c.isalnum() or c == "-"))[:40] or "text"
    name = f"{session.client}\0{session.session}".encode("utf-8", "replace")
    return f"{client}-{hashlib.sha256(name).hexdigest()[:10]}"


# -- queued texts ------------------------------------------------------------------------------------------
# Texts that wait to be retained: one durable JSON Lines file a text in `pending/`.
#
# It holds the text, without secrets, and the facts of the chunks that were already read, so that after a
# kill or a spent budget no chunk is read and paid for twice.


TEXT_PREFIX = "retain-"


class TextQueue(TurnQueue):
    """The queued texts of a bank."""

    prefix = TEXT_PREFIX

    def put_text(self, key: str, item: TextItem, *, at: datetime, for_model: bool) -> None:
        """Queue a text under a key; it is on the disk, without secrets, on return. CannotWrite."""
        clean = replace(
            item, text=self.clean(item.text), document_id=self.clean(item.document_id),
            context=self.clean(item.context), source=self.clean(item.source),
            metadata=tuple(map(self.clean, item.metadata)),
        )  # fmt: skip
        with self._locked_record(key) as file:
            if not any("item" in row for row in read_rows(file)):
                put = {"put": at.isoformat(), "size": None, "model": for_model}
                append_lines(file, encode_rows([{"item": to_row(clean)}, put]))
                sync_path(self.folder)

    def add_chunk(self, key: str, name: str, drawn: ExtractedChunk) -> None:
        """Save the facts of one chunk until all chunks are read."""
        facts = [asdict(fact) for fact in drawn.facts]
        causes = [[n, cause] for n, cause in drawn.causes.items()]
        self._append(key, {"drawn": name, "facts": facts, "causes": causes, "refused": list(drawn.refused)})

    def remove(self, key: str) -> None:
        """Remove a text whose facts are committed."""
        self._path(key).unlink(missing_ok=True)

    def _parse_entry(self, key: str, rows: list[Row], *, garbled: bool) -> QueueEntry:
        try:
            if not (found := [row["item"] for row in rows if "item" in row]):
                raise ValueError("it does not say which text it is about")
            item = from_row(TextItem, found[0])
            put = next(row for row in rows if "put" in row)
            since = parse_time(put["put"])
            return QueueEntry(
                key, Session(item.client, item.session), (Turn(key, "person", item.text, item.at),), None,
                read_attempts(rows), since, since, put.get("model"), item=item,
                chunks_read=dict(_extracted_chunks(rows)),
            )  # fmt: skip
        except (ValueError, TypeError, AttributeError, KeyError, StopIteration) as error:
            return QueueEntry(key, Session("", ""), (), broken=f"the record cannot be read: {error}")


def _extracted_chunks(rows: Iterable[Row]) -> Iterable[tuple[str, ExtractedChunk]]:
    for row in rows:
        if "drawn" in row:
            facts = tuple(map(_fact_from_row, row["facts"]))
            yield row["drawn"], ExtractedChunk(facts, dict(row["causes"]), tuple(row["refused"]))


def _fact_from_row(row: dict[str, Any]) -> Fact:
    known = {key: value for key, value in row.items() if key not in ("place", "heading")}
    known["was"] = [Was(**was) for was in known.get("was", ())]
    return from_row(Fact, {**known, "quotes": [Quote(**quote) for quote in known["quotes"]]})
