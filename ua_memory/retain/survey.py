"""Clients' transcripts and watched files: which exist, and what is new in them."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.errors import Malformed, NotFound, TooLarge, UaMemoryError, Usage, writing
from ua_memory.llm.ledger import Estimate, together
from ua_memory.paths import is_bank, make_private, project_of
from ua_memory.retain import ledger
from ua_memory.retain.documents import MOST_BYTES, is_read
from ua_memory.retain.flush import FlushedSession, estimate, filter_turns
from ua_memory.retain.ledger import ReadMarks
from ua_memory.retain.queue import TextItem, TurnQueue, key_of
from ua_memory.store import swap
from ua_memory.store.store import Store
from ua_memory.transcripts.reader import Transcript, TranscriptReading, read
from ua_memory.transcripts.turns import Session, Turn

if TYPE_CHECKING:
    from ua_memory.llm.model import ModelOrEndpoint
    from ua_memory.llm.providers import ModelAccess
    from ua_memory.retain.conversations import Conversations, WaitQueue
    from ua_memory.retain.retain import Documents, RetainPreview, RetainResult
    from ua_memory.retain.retain import Tell as RetainTell

# -- survey ------------------------------------------------------------------------------------------------
# Transcripts found on disk: whose they are, and which of their turns no flush has read yet.
#
# Clients copy: a fork begins with the words of the session it came out of, a resumed one may, and a
# compaction makes a second session of one. A turn counts as known if any session's flush has read it, and
# goes to the session that had it first.


TOLD = "told-"
"""How the id of a turn begins that only its client told of (`retain.conversations`); the time follows."""
LATE = timedelta(minutes=1)
"""So much later than its transcript's time a client may tell of a turn."""

Tell = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session in a transcript: the number of turns, how many of them are queued (`waits`), and the ids
    of the `new` ones. `first` and `last` are the times of its turns."""

    transcript: Transcript
    session: Session
    turns: int
    waits: int
    new: tuple[str, ...]
    first: datetime | None
    last: datetime | None
    size: int | None

    @property
    def flushed(self) -> int:
        """How many turns were read by a flush before, be it under another session's name."""
        return self.turns - self.waits - len(self.new)

    @property
    def family(self) -> str:
        """The client whose folder it is kept in: Clawdbot is OpenClaw's older name."""
        return {"clawdbot": "openclaw"}.get(self.session.client, self.session.client)

    @property
    def project(self) -> str:
        """The project it was held in, '' if it does not say."""
        return project_of(Path(self.session.cwd)) if self.session.cwd else ""


@dataclass(slots=True)
class Survey:
    """What was found: sessions by when they began, and what is not taken: sub-agents' and other machines'
    transcripts (`machines` by kind), sessions still running (`going`), how many ended too long ago (`older`)
    or have no words (`silent`), and what could not be read."""

    sessions: Sequence[FoundSession] = ()
    machines: Counter[str] = field(default_factory=Counter)
    going: list[Session] = field(default_factory=list)
    older: int = 0
    silent: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _SessionTurns:
    """A session's turns before it is known which of them another session had first."""

    found: FoundSession
    all: list[tuple[str, str]]
    fresh: set[str]


class Surveyor:
    """Reads transcripts one by one; their text is not held in memory."""

    def __init__(
        self, store: Store, queue: TurnQueue, since: datetime | None, going: Collection[tuple[str, str]]
    ) -> None:
        self.store, self.queue, self.marks = store, queue, ReadMarks(store)
        self.since, self.going = since, going
        self._talks: list[_SessionTurns] = []
        self._found = Survey()

    def found(self) -> Survey:
        """What the transcripts hold that were looked at."""
        self._found.sessions = list(self._told_apart())
        return self._found

    def look(self, one: Transcript) -> None:
        """Read a transcript, unless it is too old, or a machine's."""
        if self.since and one.changed < self.since:
            self._found.older += 1
            return
        if one.machine:
            self._found.machines[one.machine] += 1
            return
        try:
            with one.opened() as stream:
                reading = read(stream, client=one.client)
                session = reading.session
                if session.agent:
                    self._found.machines["sub-agent"] += 1
                elif (session.client, session.session) in self.going:
                    self._found.going.append(session)
                elif talk := self._talk(one, reading):
                    late = talk.found.last
                    if self.since and late and late < self.since:
                        self._found.older += 1
                    else:
                        self._talks.append(talk)
                else:
                    self._found.silent += 1
        except (OSError, UaMemoryError) as error:
            why = error.what if isinstance(error, UaMemoryError) else error.strerror or str(error)
            self._found.problems.append(f"{one.where}: {why}")

    def _talk(self, one: Transcript, reading: TranscriptReading) -> _SessionTurns | None:
        session, turns = reading.session, list(filter_turns(reading, self.store.config))
        if not turns:
            return None
        if not session.session:
            self._found.problems.append(f"{one.where}: it does not say which session it is of")
            return None
        ids = {turn.id for turn in turns}
        waits = self.queue.ids(session)
        fresh = self._unread(session, reading, ids) & ids
        fresh &= {turn.id for turn in _unheard(turns, waits)}
        times = [turn.at for turn in turns if turn.at]
        found = FoundSession(
            one, session, len(turns), len(waits), (), min(times, default=session.started),
            max(times, default=session.started), reading.usage.context,
        )  # fmt: skip
        return _SessionTurns(found, [(turn.id, _hash(turn)) for turn in turns], fresh)

    def _unread(self, session: Session, reading: TranscriptReading, ids: set[str]) -> set[str]:
        """The ids of the turns behind the last that a flush has read."""
        known = set().union(*self.marks.of(session)) or self.marks.elsewhere(session.client) & ids
        if not known:
            return ids
        again = reading.again(ledger.base_ids(known))
        turns = list(ledger.without_recorded(again, known, again.reached))
        return {turn.id for turn in _after_told(turns, known)}

    def _told_apart(self) -> Iterator[FoundSession]:
        """The sessions in the order in which they began, each turn in the first that has it."""
        talks = sorted(self._talks, key=lambda talk: _begun(talk.found))
        had = {(t.found.session.client, *turn) for t in talks for turn in t.all if turn[0] not in t.fresh}
        said: dict[tuple[str, str], set[str]] = {}
        for talk in talks:
            session, new = talk.found.session, []
            before = said.get((session.client, session.parent), set())
            for id, words in talk.all:
                copied = words in before
                before = before if copied else set()  # what a session copies stands at its beginning
                if id in talk.fresh and not copied and (session.client, id, words) not in had:
                    new.append(id)
                had.add((session.client, id, words))
            said.setdefault((session.client, session.session), set()).update(words for _, words in talk.all)
            yield replace(talk.found, new=tuple(new))


def turns_of(one: FoundSession) -> tuple[list[Turn], tuple[str, ...]]:
    """The new turns of a session, in order, and what memory gave it. A turn that has no time of its own gets
    that of what was said before it, so that it does not count as said today. What the transcript's reader
    raises; OSError."""
    new, at = set(one.new), one.first or one.transcript.changed
    found = []
    with one.transcript.opened() as stream:
        reading = read(stream, client=one.session.client)
        for turn in reading:
            at = turn.at or at
            if turn.id in new:
                found.append(turn if turn.at else replace(turn, at=at))
    return found, reading.recalled


def _unheard(turns: Sequence[Turn], waiting: Sequence[str]) -> Iterable[Turn]:
    """The turns without those that wait, and without what a client told of before its transcript had it."""
    known = set(waiting)
    left = [turn for turn in turns if turn.id not in known]
    return _after_told([*ledger.without_waiting(left, waiting)], waiting)


def _after_told(turns: list[Turn], ids: Iterable[str]) -> list[Turn]:
    """The turns behind the last one that only its client told of: known by its words, else by its time."""
    cut = 0
    for id in ids:
        base, sign, words = id.partition(ledger.FOLLOWS)
        if not sign or not (base == "" or base.startswith(TOLD)):
            continue
        until = _moment(base)
        fits = [
            n for n, turn in enumerate(turns, 1)
            if ledger.words_hash(turn.text) == words and not (until and turn.at and turn.at > until + LATE)
        ]  # fmt: skip
        before = [n for n, turn in enumerate(turns, 1) if until and turn.at and turn.at <= until]
        last = (fits[-1:] if until else fits[:1]) or before[-1:]
        cut = max([cut, *last])
    return turns[cut:]


def _moment(base: str) -> datetime | None:
    try:
        return datetime.strptime(base, f"{TOLD}%Y%m%dT%H%M%S%f").replace(tzinfo=UTC)
    except ValueError:
        return None


def _begun(one: FoundSession) -> float:
    at = one.session.started or one.first or one.transcript.changed
    return at.timestamp()


def _hash(turn: Turn) -> str:
    return hashlib.sha256(f"{turn.role}\0{turn.text}".encode("utf-8", "replace")).hexdigest()[:16]


# -- sessions ----------------------------------------------------------------------------------------------
# Whole sessions that lie about as transcripts: what is in them, and a flush of what is new.


class TranscriptImport:
    """The sessions of clients' transcripts, for one bank."""

    def __init__(self, store: Store, models: ModelAccess, conversations: Conversations) -> None:
        self._store, self._models, self._conversations = store, models, conversations

    def survey(
        self, transcripts: Sequence[Transcript], *, since: datetime | None = None,
        going: Collection[tuple[str, str]] = (), tell: Tell | None = None,
    ) -> Survey:  # fmt: skip
        """What is in these transcripts, and how much of it was flushed. Nothing is written. `since` leaves
        out sessions last spoken in before it; `going` names client and session of those that go on."""
        surveyor = Surveyor(self._store, self._conversations.flusher().queue, since, going)
        for number, each in enumerate(transcripts, 1):
            surveyor.look(each)
            if tell:
                tell(number, len(transcripts))
        return surveyor.found()

    def flush(
        self, sessions: Iterable[FoundSession], *, model: ModelOrEndpoint = None
    ) -> Iterator[tuple[FoundSession, FlushedSession]]:
        """Flush the new turns of these sessions and those that wait, one session after the other, each as a
        commit of its own.

        Raises as `flush`: the turns of that session wait then, and those behind it are as they were.
        """
        with self._models.open(model) as asked:
            flusher = self._conversations.flusher(asked)
            for one in sessions:
                if one.new:
                    turns, recalled = turns_of(one)
                    flusher.put(one.session, turns, one.size, recalled=recalled)
                if flushed := flusher.one(key_of(one.session), self._store.config.lock_seconds):
                    yield one, flushed

    def preview(
        self, sessions: Iterable[FoundSession], *, model: ModelOrEndpoint = None
    ) -> tuple[int, Estimate | None]:
        """How many facts would be kept of the new turns without a model and, where there is one, what it
        would cost. Nothing is written or sent."""
        flusher, kept, costs = self._conversations.flusher(), 0, list[Estimate]()
        for one in sessions:
            turns, recalled = turns_of(one)
            kept += len(flusher.preview(turns, recalled))
            if model and turns:
                costs.append(estimate(turns, model, self._store.config.context_window))
        return kept, together(costs)


# -- watched -----------------------------------------------------------------------------------------------
# Files and folders outside the bank that are retained when they change: which, and how they stood last.
#
# The list lies in the bank's `local/`, and not in its settings: `ua-memory.toml` comes along with a cloned
# repository, and must not make us read its new owner's other files. Lost, it is typed again; no memory
# hangs on it.


NAME = "watched.json"
MOST_FILES = 5_000
"""Files that one watched path may have."""
_LEFT_OUT = frozenset(("node_modules", "__pycache__", "venv", "target", "dist", "build"))

Stamp = tuple[int, int]
"""When a file was saved last, in nanoseconds, and its size."""


@dataclass(frozen=True, slots=True)
class WatchedFile:
    """The state of a file when it was read. `error` is why it could not be; `gone`: it vanished and was
    reported; its facts stay until they are removed."""

    stamp: Stamp
    error: str = ""
    gone: bool = False


@dataclass(frozen=True, slots=True)
class WatchedPath:
    """One watched path, and the states of its files. `modelled`: a model is to read it."""

    path: str
    modelled: bool = False
    files: dict[str, WatchedFile] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WatchedChanges:
    """Changes at a watched path: files to read now, files saved too recently, and vanished files.
    `missing`: the path itself does not exist, so no file counts as vanished."""

    ready: dict[str, Stamp]
    young: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    missing: bool = False


def load(store: Store) -> list[WatchedPath]:
    """The watched paths, in the order they were added. Malformed if the list cannot be read."""
    file = store.bank.local / NAME
    try:
        rows = json.loads(file.read_bytes())
        return [_made(row) for row in rows]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        hint = f"rm {file}, and add the paths again"
        raise Malformed(f"cannot be read: {error}", where=str(file), hint=hint) from error


def save(store: Store, watched: list[WatchedPath]) -> None:
    """Write the list of watched paths. CannotWrite."""
    file = store.bank.local / NAME
    with writing(file):
        make_private(file.parent)
        if not watched:
            file.unlink(missing_ok=True)
            return
        data = json.dumps([asdict(one) for one in watched], ensure_ascii=False, indent=1)
        swap.put(file, data.encode("utf-8", "surrogatepass"), file.with_suffix(".new"))


def files(store: Store, path: Path) -> Iterator[tuple[str, Stamp]]:
    """The files of a watched path that are read, with their stats: none hidden, no symbolic links, no
    bank's files. TooLarge if there are too many."""
    if path.is_file():
        yield str(path), _stamp(path.stat())
        return
    count = 0
    for folder, inner, names in os.walk(path):
        inner[:] = [
            name
            for name in sorted(inner)
            if not name.startswith(".") and name not in _LEFT_OUT and not is_bank(Path(folder, name))
        ]
        for name in sorted(names):
            if name.startswith(".") or not Path(name).suffix or not is_read(name):
                continue
            file = Path(folder, name)
            try:
                found = file.lstat()
            except OSError:
                continue
            if not file.is_symlink() and found.st_size <= MOST_BYTES:
                count += 1
                if count > MOST_FILES:
                    what = f"more than {MOST_FILES:,} files"
                    raise TooLarge(what, where=str(path), hint="watch folders within it")
                yield str(file), _stamp(found)


def find_changes(store: Store, one: WatchedPath, quiet: float) -> WatchedChanges:
    """The changes at a watched path since it was last read. Files saved less than `quiet` seconds ago
    wait: editors save in the middle of a sentence."""
    path = Path(one.path)
    if not path.exists():
        return WatchedChanges({}, missing=True)
    now = store.now().timestamp()
    ready: dict[str, Stamp] = {}
    young = []
    there = set()
    for name, stamp in files(store, path):
        there.add(name)
        known = one.files.get(name)
        if known is not None and known.stamp == stamp and not known.gone:
            continue
        age = now - stamp[0] / 1e9
        if 0 <= age < quiet:
            young.append(name)
        else:
            ready[name] = stamp
    return WatchedChanges(ready, tuple(young), tuple(name for name in one.files if name not in there))


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_mtime_ns, found.st_size


def _made(row: dict[str, Any]) -> WatchedPath:
    stood = {
        str(name): WatchedFile(
            (int(each["stamp"][0]), int(each["stamp"][1])), each["error"], bool(each["gone"])
        )
        for name, each in row["files"].items()
    }
    return WatchedPath(str(row["path"]), bool(row["modelled"]), stood)


_CLAIM = "watched"


@dataclass(frozen=True, slots=True)
class WatchResult:
    """What catching up with watched paths did. `young` were saved too recently, `failed` could not be read
    (file and why), `gone` vanished: their facts stay until they are removed, as those of `let_go` were now.
    `missing` are watched paths that are not there at all."""

    done: tuple[RetainResult, ...] = ()
    young: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    gone: tuple[str, ...] = ()
    let_go: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


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
            raise Usage("this is memory already", where=str(path), hint="watch a path outside the bank")
        if not path.exists():
            raise Usage("no such file or folder", where=str(path))
        if not path.is_dir() and not path.is_file():
            raise Usage("not a regular file or folder", where=str(path))
        if path.is_file() and not is_read(path.name):
            raise Usage(f"{path.suffix} files are not read", where=str(path))
        for _ in files(self._store, path):  # TooLarge now, and not in the daemon's log
            pass
        watched = load(self._store)
        known = next((one for one in watched if one.path == str(path)), None)
        one = replace(known or WatchedPath(str(path)), modelled=model is not None)
        save(self._store, [one if each is known else each for each in watched] if known else [*watched, one])
        return one, find_changes(self._store, one, 0)

    def list(self) -> Sequence[tuple[WatchedPath, WatchedChanges]]:
        """The watched paths and their changes. TooLarge."""
        quiet = self._store.config.watch_seconds
        return [(one, find_changes(self._store, one, quiet)) for one in load(self._store)]

    def remove(self, path: str) -> WatchedPath:
        """Stop watching a path; its documents stay. NotFound."""
        known = load(self._store)
        gone = next((one for one in known if one.path in (path, str(Path(path).resolve()))), None)
        if gone is None:
            raise NotFound("this path is not watched", where=path, hint="ua-memory watch list")
        save(self._store, [one for one in known if one is not gone])
        return gone

    def due(self, *, modelled: bool) -> bool:
        """Whether anything is to be read now; without a model only what was added without one."""
        ours = [(one, look) for one, look in self.list() if modelled or not one.modelled]
        return any(look.ready or any(not one.files[name].gone for name in look.gone) for one, look in ours)

    def run(
        self, *, model: ModelOrEndpoint = None, accept: bool = False, now: bool = False,
        unasked: bool = False, tell: RetainTell | None = None,
    ) -> WatchResult:  # fmt: skip
        """Take in what has changed at watched paths and rests, or, with `now`, whether it rests or not.

        Of a file that vanished the facts stay, and it is told: a disk that is not mounted and another branch
        look the same. `accept` lets them go. `unasked` leaves alone what is meant for a model where there is
        none. What the model fails at waits in the queue. Busy; else as `retain`.
        """
        self._store.make_state()
        retainer = self._documents.retainer()
        with retainer.items.claimed(_CLAIM, 0):
            known = load(self._store)
            mine = [one for one in known if not (unasked and model is None and one.modelled)]
            caught = WatchResult()
            keys: list[str] = []
            for one in mine:
                changes = find_changes(self._store, one, 0 if now else self._store.config.watch_seconds)
                after, items, caught = self._taken(one, changes, caught, accept)
                keys += [retainer.offer(item, modelled=model is not None) for item in items]
                known[known.index(one)] = after
            save(self._store, known)
            gone = tuple(map(retainer.drop_document, caught.let_go))
            done = self._queue.retry_texts(keys, model=model, tell=tell) if keys else []
        return replace(caught, done=(*done, *gone))

    def _taken(
        self, one: WatchedPath, look: WatchedChanges, caught: WatchResult, accept: bool
    ) -> tuple[WatchedPath, Sequence[TextItem], WatchResult]:
        """A watched path as it stands after a look, and the texts to be retained."""
        files, items, failed = dict(one.files), [], []
        for name, stamp in look.ready.items():
            try:
                item = self._documents.read(Path(name), origin="import", client="watch")
                items += [item] if item.text.strip() else []
                files[name] = WatchedFile(stamp)
            except UaMemoryError as error:  # tried again when it is saved again
                files[name] = WatchedFile(stamp, error.what)
                failed.append((name, error.what))
        for name in look.gone:
            if accept:
                del files[name]
            else:
                files[name] = replace(files[name], gone=True)
        return replace(one, files=files), items, WatchResult(
            (), (*caught.young, *look.young), (*caught.failed, *failed),
            caught.gone if accept else (*caught.gone, *look.gone),
            (*caught.let_go, *look.gone) if accept else caught.let_go,
            (*caught.missing, one.path) if look.missing else caught.missing,
        )  # fmt: skip

    def preview(self, *, model: ModelOrEndpoint = None) -> Sequence[RetainPreview]:
        """What `run` would save and cost; see `Documents.preview`."""
        ready = [name for _, look in self.list() for name in (*look.ready, *look.young)]
        return self._documents.preview(
            (self._documents.read(Path(name), origin="import") for name in ready), model=model
        )
