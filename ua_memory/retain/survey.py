"""Clients' transcripts and watched files: which exist, and what is new in them."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from ua_memory.clients.transcripts import Transcript, TranscriptReading, read
from ua_memory.clients.turns import Session, Turn
from ua_memory.errors import Malformed, NotFound, TooLarge, UaMemoryError, Usage, checked, writing
from ua_memory.knowledge.statements import Progress
from ua_memory.llm.ledger import Estimate, sum_estimates
from ua_memory.paths import is_bank, make_private, project_of
from ua_memory.retain import ledger
from ua_memory.retain.documents import MOST_BYTES, is_read
from ua_memory.retain.flush import FlushedSession, estimate, filter_turns
from ua_memory.retain.ledger import ReadMarks
from ua_memory.retain.queue import TextItem, TurnQueue, from_row, queue_key
from ua_memory.store import swap
from ua_memory.store.store import Store

if TYPE_CHECKING:
    from ua_memory.llm.model import ModelOrEndpoint
    from ua_memory.llm.providers import ModelAccess
    from ua_memory.retain.conversations import Conversations, WaitQueue
    from ua_memory.retain.retain import Documents, RetainPreview, RetainResult

# -- survey ------------------------------------------------------------------------------------------------
# Transcripts found on disk: their sessions, and which of their turns no flush has read yet.
#
# Clients copy turns: a fork begins with those of its parent, a resumed session may, and a compaction makes a
# second session. A turn counts as read if a flush of any session has read it, and is assigned to the session
# that had it first.


EVENT_ID_PREFIX = "told-"
"""How the id of a turn begins that was captured without a transcript (`retain.conversations`); a time
follows."""
EVENT_DELAY = timedelta(minutes=1)
"""An event may come so much later than the time that the transcript gives its turn."""


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session in a transcript: the number of its turns, how many of them are `queued`, and the ids of the
    `new` ones. `first` and `last` are the times of its turns."""

    transcript: Transcript
    session: Session
    turns: int
    queued: int
    new: tuple[str, ...]
    first: datetime | None
    last: datetime | None
    size: int | None

    @property
    def flushed(self) -> int:
        """How many turns a flush has read, also as part of another session."""
        return self.turns - self.queued - len(self.new)

    @property
    def family(self) -> str:
        """The client in whose folder it was found: Clawdbot is OpenClaw's older name."""
        return {"clawdbot": "openclaw"}.get(self.session.client, self.session.client)

    @property
    def project(self) -> str:
        """The project it was held in, '' if unknown."""
        return project_of(Path(self.session.cwd)) if self.session.cwd else ""


@dataclass(slots=True)
class Survey:
    """What was found: sessions by when they began, and what is skipped: transcripts of sub-agents and
    automatic runs (`machines`, by kind), sessions still running (`going`), how many ended too long ago
    (`older`) or have no turns (`silent`), and what could not be read."""

    sessions: Sequence[FoundSession] = ()
    machines: Counter[str] = field(default_factory=Counter)
    going: list[Session] = field(default_factory=list)
    older: int = 0
    silent: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _SessionTurns:
    """A session's turns before it is known which of them belong to an earlier session: `all` by id and hash,
    and the ids of the `unread` ones."""

    found: FoundSession
    all: list[tuple[str, str]]
    unread: set[str]


class Surveyor:
    """Reads transcripts one by one, without holding their text in memory."""

    def __init__(
        self, store: Store, queue: TurnQueue, since: datetime | None, going: Collection[tuple[str, str]]
    ) -> None:
        self.store, self.queue, self.marks = store, queue, ReadMarks(store)
        self.since, self.going = since, going
        self._sessions: list[_SessionTurns] = []
        self._survey = Survey()

    def result(self) -> Survey:
        """The result for the transcripts that were added."""
        self._survey.sessions = list(self._assign_turns())
        return self._survey

    def add(self, one: Transcript) -> None:
        """Read a transcript, unless it is too old, or of an automatic run."""
        if self.since and one.changed < self.since:
            self._survey.older += 1
            return
        if one.machine:
            self._survey.machines[one.machine] += 1
            return
        try:
            with one.opened() as stream:
                reading = read(stream, client=one.client)
                session = reading.session
                if session.agent:
                    self._survey.machines["sub-agent"] += 1
                elif (session.client, session.session) in self.going:
                    self._survey.going.append(session)
                elif found := self._session_turns(one, reading):
                    late = found.found.last
                    if self.since and late and late < self.since:
                        self._survey.older += 1
                    else:
                        self._sessions.append(found)
                else:
                    self._survey.silent += 1
        except (OSError, UaMemoryError) as error:
            why = error.what if isinstance(error, UaMemoryError) else error.strerror or str(error)
            self._survey.problems.append(f"{one.where}: {why}")

    def _session_turns(self, one: Transcript, reading: TranscriptReading) -> _SessionTurns | None:
        session, turns = reading.session, list(filter_turns(reading, self.store.config))
        if not turns:
            return None
        if not session.session:
            self._survey.problems.append(f"{one.where}: it does not say which session it is of")
            return None
        ids = {turn.id for turn in turns}
        queued = self.queue.queued_ids(session)
        unread = self._unread_ids(session, reading, ids) & ids
        unread &= {turn.id for turn in _without_queued(turns, queued)}
        times = [turn.at for turn in turns if turn.at]
        found = FoundSession(
            one, session, len(turns), len(queued), (), min(times, default=session.started),
            max(times, default=session.started), reading.context_size,
        )  # fmt: skip
        return _SessionTurns(found, [(turn.id, _turn_hash(turn)) for turn in turns], unread)

    def _unread_ids(self, session: Session, reading: TranscriptReading, ids: set[str]) -> set[str]:
        """The ids of the turns after the last one that a flush has read."""
        known = set().union(*self.marks.read_ids(session)) or self.marks.ids_of_client(session.client) & ids
        if not known:
            return ids
        again = reading.after(ledger.base_ids(known))
        turns = list(ledger.without_captured(again, known, again.reached))
        return {turn.id for turn in _after_captured(turns, known)}

    def _assign_turns(self) -> Iterator[FoundSession]:
        """The sessions in the order in which they began, each turn assigned to the first session that has
        it."""

        def start(each: _SessionTurns) -> float:
            one = each.found
            return (one.session.started or one.first or one.transcript.changed).timestamp()

        sessions = sorted(self._sessions, key=start)
        had = {(t.found.session.client, *turn) for t in sessions for turn in t.all if turn[0] not in t.unread}
        said: dict[tuple[str, str], set[str]] = {}
        for each in sessions:
            session, new = each.found.session, []
            before = said.get((session.client, session.parent), set())
            for id, words in each.all:
                copied = words in before
                before = before if copied else set()  # only the beginning of a session is copied
                if id in each.unread and not copied and (session.client, id, words) not in had:
                    new.append(id)
                had.add((session.client, id, words))
            said.setdefault((session.client, session.session), set()).update(words for _, words in each.all)
            yield replace(each.found, new=tuple(new))


def new_turns(one: FoundSession) -> tuple[list[Turn], tuple[str, ...]]:
    """The new turns of a session, in order, and the lines of recalled memory in it. A turn without a time
    gets that of the turn before it, not today's. Raises what the transcript's reader raises; OSError."""
    new, at = set(one.new), one.first or one.transcript.changed
    found = []
    with one.transcript.opened() as stream:
        reading = read(stream, client=one.session.client)
        for turn in reading:
            at = turn.at or at
            if turn.id in new:
                found.append(turn if turn.at else replace(turn, at=at))
    return found, reading.recalled


def _without_queued(turns: Sequence[Turn], waiting: Sequence[str]) -> Iterable[Turn]:
    """The turns without those that are queued, or were captured from an event before the transcript had
    them."""
    known = set(waiting)
    left = [turn for turn in turns if turn.id not in known]
    return _after_captured([*ledger.without_queued(left, waiting)], waiting)


def _after_captured(turns: list[Turn], ids: Iterable[str]) -> list[Turn]:
    """The turns after the last one that was captured without a transcript, which is found by its text, else
    by its time."""
    cut = 0
    for id in ids:
        base, sign, words = id.partition(ledger.EVENT_SEPARATOR)
        if not sign or not (base == "" or base.startswith(EVENT_ID_PREFIX)):
            continue
        until = _event_time(base)
        fits = [
            n for n, turn in enumerate(turns, 1)
            if ledger.text_hash(turn.text) == words
            and not (until and turn.at and turn.at > until + EVENT_DELAY)
        ]  # fmt: skip
        before = [n for n, turn in enumerate(turns, 1) if until and turn.at and turn.at <= until]
        last = (fits[-1:] if until else fits[:1]) or before[-1:]
        cut = max([cut, *last])
    return turns[cut:]


def _event_time(base: str) -> datetime | None:
    try:
        return datetime.strptime(base, f"{EVENT_ID_PREFIX}%Y%m%dT%H%M%S%f").replace(tzinfo=UTC)
    except ValueError:
        return None


def _turn_hash(turn: Turn) -> str:
    return hashlib.sha256(f"{turn.role}\0{turn.text}".encode("utf-8", "replace")).hexdigest()[:16]


# -- import of transcripts ---------------------------------------------------------------------------------


@checked
class TranscriptImport:
    """Flushes sessions from clients' transcripts on disk into one bank."""

    def __init__(self, store: Store, models: ModelAccess, conversations: Conversations) -> None:
        self._store, self._models, self._conversations = store, models, conversations

    def survey(
        self, transcripts: Sequence[Transcript], *, since: datetime | None = None,
        going: Collection[tuple[str, str]] = (), tell: Progress | None = None,
    ) -> Survey:  # fmt: skip
        """What is in these transcripts, and how much of it was flushed. Writes nothing. `since` skips
        sessions whose last turn is older; `going` names client and session of running ones, which are skipped
        too."""
        surveyor = Surveyor(self._store, self._conversations.flusher().queue, since, going)
        for number, each in enumerate(transcripts, 1):
            surveyor.add(each)
            if tell:
                tell(number, len(transcripts))
        return surveyor.result()

    def flush(
        self, sessions: Iterable[FoundSession], *, model: ModelOrEndpoint = None
    ) -> Iterator[tuple[FoundSession, FlushedSession]]:
        """Flush the new and the queued turns of these sessions, each as a commit of its own.

        Raises as `flush`: the turns of that session then stay queued, and the sessions after it are
        untouched.
        """
        with self._models.open(model) as opened:
            flusher = self._conversations.flusher(opened)
            for one in sessions:
                if one.new:
                    turns, recalled = new_turns(one)
                    flusher.queue_turns(one.session, turns, one.size, recalled=recalled)
                if flushed := flusher.flush_entry(queue_key(one.session), self._store.config.lock_seconds):
                    yield one, flushed

    def preview(
        self, sessions: Iterable[FoundSession], *, model: ModelOrEndpoint = None
    ) -> tuple[int, Estimate | None]:
        """How many facts a flush of the new turns without a model would save and, with a model, its cost.
        Writes and sends nothing."""
        flusher, kept, costs = self._conversations.flusher(), 0, list[Estimate]()
        for one in sessions:
            turns, recalled = new_turns(one)
            kept += len(flusher.preview(turns, recalled)[0])
            if model and turns:
                costs.append(estimate(turns, model, self._store.config.context_window))
        return kept, sum_estimates(costs)


# -- watched paths -----------------------------------------------------------------------------------------
# Files and folders outside the bank that are retained when they change, and the states of their files.
#
# The list is in the bank's `local/` and not in its settings: `ua-memory.toml` comes with a cloned repository,
# and must not make us read its new owner's other files. If it is lost, paths are added again; no fact
# depends on it.


WATCHED_FILE = "watched.json"
MOST_FILES = 5_000
"""Files that one watched path may have."""
_SKIPPED_FOLDERS = frozenset(("node_modules", "__pycache__", "venv", "target", "dist", "build"))

Stamp = tuple[int, int]
"""When a file was saved last, in nanoseconds, and its size."""


@dataclass(frozen=True, slots=True)
class WatchedFile:
    """The state of a file when it was read. `error` is why it could not be; `gone`: it vanished and was
    reported, and its facts stay until they are removed."""

    stamp: Stamp
    error: str = ""
    gone: bool = False


@dataclass(frozen=True, slots=True)
class WatchedPath:
    """A watched path and the states of its files. `modelled`: a model is to read it."""

    path: str
    modelled: bool = False
    files: dict[str, WatchedFile] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WatchedChanges:
    """Changes at a watched path: files to read now (`ready`), saved too recently (`young`), and vanished
    (`gone`). `missing`: the path itself does not exist, so no file counts as vanished."""

    ready: dict[str, Stamp]
    young: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    missing: bool = False


def load_watched(store: Store) -> list[WatchedPath]:
    """The watched paths, in the order they were added. Malformed if the list cannot be read."""
    file = store.bank.local / WATCHED_FILE
    try:
        rows = json.loads(file.read_bytes())
        for row in rows:
            row["files"] = {name: from_row(WatchedFile, one) for name, one in row["files"].items()}
        return [from_row(WatchedPath, row) for row in rows]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        hint = f"rm {quote(str(file))}, and add the paths again"
        raise Malformed(f"cannot be read: {error}", where=str(file), hint=hint) from error


def save_watched(store: Store, watched: list[WatchedPath]) -> None:
    """Write the list of watched paths. CannotWrite."""
    file = store.bank.local / WATCHED_FILE
    with writing(file):
        make_private(file.parent)
        if not watched:
            file.unlink(missing_ok=True)
            return
        data = json.dumps([asdict(one) for one in watched], ensure_ascii=False, indent=1)
        swap.replace_file(file, data.encode("utf-8", "surrogatepass"), file.with_suffix(".new"))


def watched_files(path: Path) -> Iterator[tuple[str, Stamp]]:
    """The files of a watched path that are read, with their stamps: none hidden, no symbolic links, no bank's
    files. TooLarge if there are too many."""
    if path.is_file():
        yield str(path), _stamp(path.stat())
        return
    count = 0
    for folder, inner, names in os.walk(path):
        inner[:] = [
            name
            for name in sorted(inner)
            if not name.startswith(".") and name not in _SKIPPED_FOLDERS and not is_bank(Path(folder, name))
        ]
        for name in sorted(names):
            if name.startswith(".") or not Path(name).suffix or not is_read(name):
                continue
            file = Path(folder, name)
            try:
                found = file.lstat()
            except OSError:
                continue
            if not stat.S_ISLNK(found.st_mode) and found.st_size <= MOST_BYTES:
                if (count := count + 1) > MOST_FILES:
                    what = f"more than {MOST_FILES:,} files"
                    raise TooLarge(what, where=str(path), hint="watch folders within it")
                yield str(file), _stamp(found)


def find_changes(store: Store, one: WatchedPath, quiet: float) -> WatchedChanges:
    """The changes at a watched path since it was last read. Files saved less than `quiet` seconds ago
    wait: editors save in the middle of a sentence."""
    path = Path(one.path)
    if not path.exists():
        return WatchedChanges({}, missing=True)
    now, there = store.now().timestamp(), dict(watched_files(path))
    known = {name: file.stamp for name, file in one.files.items() if not file.gone}
    new = {name: stamp for name, stamp in there.items() if known.get(name) != stamp}
    young = {name: None for name, (saved, _) in new.items() if 0 <= now - saved / 1e9 < quiet}
    ready = {name: stamp for name, stamp in new.items() if name not in young}
    return WatchedChanges(ready, tuple(young), tuple(name for name in one.files if name not in there))


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_mtime_ns, found.st_size


_CLAIM_KEY = "watched"


@dataclass(slots=True)
class WatchResult:
    """What a run over watched paths did. `young` were saved too recently, `failed` could not be read (file
    and why), `gone` vanished, and their facts stay. The facts of `let_go` were removed. `missing` are watched
    paths that do not exist."""

    done: list[RetainResult] = field(default_factory=list)
    young: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    let_go: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


@checked
class Watches:
    """The watched files and folders of one bank."""

    def __init__(self, store: Store, documents: Documents, queue: WaitQueue) -> None:
        self._store, self._documents, self._queue = store, documents, queue

    def add(self, path: Path, *, model: ModelOrEndpoint = None) -> tuple[WatchedPath, WatchedChanges]:
        """Watch a file or folder outside the bank; returns what there is to read. `model` is the one that
        will read it, which alone changes where the path is watched already. Usage if it is inside the bank,
        contains the bank, or does not exist; TooLarge."""
        self._store.make_state()
        path = path.resolve()
        bank = self._store.bank.root.resolve()
        if path == bank or path.is_relative_to(bank):
            raise Usage(
                "this is already part of the memory bank",
                where=str(path),
                hint="watch a path outside the bank",
            )
        if not path.exists():
            raise Usage("no such file or folder", where=str(path))
        if not path.is_dir() and not path.is_file():
            raise Usage("not a regular file or folder", where=str(path))
        if path.is_file() and not is_read(path.name):
            raise Usage(f"{path.suffix} files are not read", where=str(path))
        for _ in watched_files(path):  # TooLarge now, and not in the daemon's log
            pass
        watched = load_watched(self._store)
        known = next((one for one in watched if one.path == str(path)), None)
        one = replace(known or WatchedPath(str(path)), modelled=model is not None)
        watched = [one if each is known else each for each in watched] if known else [*watched, one]
        save_watched(self._store, watched)
        return one, find_changes(self._store, one, 0)

    def list(self) -> Sequence[tuple[WatchedPath, WatchedChanges]]:
        """The watched paths and their changes. TooLarge."""
        quiet = self._store.config.watch_seconds
        return [(one, find_changes(self._store, one, quiet)) for one in load_watched(self._store)]

    def remove(self, path: str) -> WatchedPath:
        """Stop watching a path; its documents stay. NotFound."""
        known = load_watched(self._store)
        gone = next((one for one in known if one.path in (path, str(Path(path).resolve()))), None)
        if gone is None:
            raise NotFound("this path is not watched", where=path, hint="ua-memory watch list")
        save_watched(self._store, [one for one in known if one is not gone])
        return gone

    def due(self, *, modelled: bool) -> bool:
        """Whether anything is to be read now; without a model only what was added without one."""
        ours = [(one, new) for one, new in self.list() if modelled or not one.modelled]
        return any(new.ready or any(not one.files[name].gone for name in new.gone) for one, new in ours)

    def run(
        self, *, model: ModelOrEndpoint = None, accept: bool = False, now: bool = False,
        unasked: bool = False, tell: Progress | None = None,
    ) -> WatchResult:  # fmt: skip
        """Retain what has changed at watched paths and was not saved just now; with `now` also that.

        The facts of a vanished file stay, and it is reported: an unmounted disk and another branch look the
        same. `accept` removes them. `unasked` skips paths that are meant for a model where there is none.
        What the model fails at stays queued. Busy; else as `retain`.
        """
        self._store.make_state()
        retainer = self._documents.retainer()
        with retainer.items.claim(_CLAIM_KEY, 0):
            known = load_watched(self._store)
            mine = [one for one in known if not (unasked and model is None and one.modelled)]
            result = WatchResult()
            keys: list[str] = []
            for one in mine:
                changes = find_changes(self._store, one, 0 if now else self._store.config.watch_seconds)
                after, items = self._read_changed_files(one, changes, result, accept)
                keys += [retainer.enqueue(item, for_model=model is not None) for item in items]
                known[known.index(one)] = after
            save_watched(self._store, known)
            gone = [retainer.drop_document(name) for name in result.let_go]
            done = self._queue.retry_texts(keys, model=model, tell=tell) if keys else []
        result.done += [*done, *gone]
        return result

    def _read_changed_files(
        self, one: WatchedPath, changes: WatchedChanges, result: WatchResult, accept: bool
    ) -> tuple[WatchedPath, Sequence[TextItem]]:
        """The new state of a watched path, and the texts to be retained; adds to the result."""
        files, items = dict(one.files), []
        for name, stamp in changes.ready.items():
            try:
                item = self._documents.read(Path(name), origin="import", client="watch")
                items += [item] if item.text.strip() else []
                files[name] = WatchedFile(stamp)
            except UaMemoryError as error:  # tried again when it is saved again
                files[name] = WatchedFile(stamp, error.what)
                result.failed.append((name, error.what))
        for name in changes.gone:
            if accept:
                del files[name]
            else:
                files[name] = replace(files[name], gone=True)
        result.young += changes.young
        (result.let_go if accept else result.gone).extend(changes.gone)
        result.missing += [one.path] if changes.missing else []
        return replace(one, files=files), items

    def preview(self, *, model: ModelOrEndpoint = None) -> Sequence[RetainPreview]:
        """What `run` would save and cost; see `Documents.preview`."""
        ready = [name for _, changes in self.list() for name in (*changes.ready, *changes.young)]
        items = (self._documents.read(Path(name), origin="import") for name in ready)
        return self._documents.preview(items, model=model)
