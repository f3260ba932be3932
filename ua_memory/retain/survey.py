"""Transcripts that lie about: whose they are, and which of their turns nobody has read yet.

Clients copy: a fork begins with the words of the session it came out of, a resumed one may, and a compaction
makes a second session of one. A turn counts as known if any session's flush has read it, and goes to the
session that had it first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import IO

from ua_memory.errors import NotFound, UaMemoryError
from ua_memory.retain import through
from ua_memory.retain.marks import Marks
from ua_memory.retain.queue import Queue, key_of
from ua_memory.retain.sieve import sieved
from ua_memory.store import Store
from ua_memory.transcripts import Reading, Transcript, read
from ua_memory.transcripts.turns import Session, Turn

TOLD = "told-"
"""How the id of a turn begins that only its client told of (`retain.hearing`); the time follows."""
LATE = timedelta(minutes=1)
"""So much later than its transcript's time a client may tell of a turn."""

Tell = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A session as its transcript has it: so many turns, those that `wait` for a flush already, and the ids
    of the `new` ones, which no flush has read. `first` and `last` are when it was spoken in."""

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


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found: sessions by when they began, and what is not taken: sub-agents' and other machines'
    transcripts (`machines` by kind), sessions that go on, so many that were last spoken in too long ago or
    have nothing said in them, and what could not be read."""

    sessions: tuple[Surveyed, ...] = ()
    machines: dict[str, int] = field(default_factory=dict)
    going: tuple[Session, ...] = ()
    older: int = 0
    silent: int = 0
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class _Talk:
    """A session's turns before it is known which of them another session had first."""

    found: Surveyed
    all: list[tuple[str, str]]
    fresh: set[str]


class Surveyor:
    """Looks at transcripts one by one; texts are not held."""

    def __init__(self, store: Store, queue: Queue) -> None:
        self.store, self.queue, self.marks = store, queue, Marks(store)
        self._talks: list[_Talk] = []
        self._machines: dict[str, int] = {}
        self._going: list[Session] = []
        self._older = self._silent = 0
        self._problems: list[str] = []

    def survey(
        self, transcripts: Sequence[Transcript], *, since: datetime | None = None,
        going: Collection[tuple[str, str]] = (), tell: Tell | None = None,
    ) -> Survey:  # fmt: skip
        """What these transcripts hold. `going` names client and session of those that go on."""
        for number, each in enumerate(transcripts):
            if since and each.changed < since:
                self._older += 1
            elif each.machine:
                self._machines[each.machine] = self._machines.get(each.machine, 0) + 1
            else:
                self._look(each, since, going)
            if tell:
                tell(number + 1, len(transcripts))
        return Survey(
            tuple(self._told_apart()), self._machines, tuple(self._going), self._older, self._silent,
            tuple(self._problems),
        )  # fmt: skip

    def _look(self, one: Transcript, since: datetime | None, going: Collection[tuple[str, str]]) -> None:
        try:
            with one.opened() as stream:
                reading = read(stream, client=one.client)
                session = reading.session
                if session.agent:
                    self._machines["sub-agent"] = self._machines.get("sub-agent", 0) + 1
                elif (session.client, session.session) in going:
                    self._going.append(session)
                elif talk := self._talk(one, stream, reading):
                    late = talk.found.last
                    if since and late and late < since:
                        self._older += 1
                    else:
                        self._talks.append(talk)
                else:
                    self._silent += 1
        except (OSError, UaMemoryError) as error:
            why = error.what if isinstance(error, UaMemoryError) else error.strerror or str(error)
            self._problems.append(f"{one.where}: {why}")

    def _talk(self, one: Transcript, stream: IO[bytes], reading: Reading) -> _Talk | None:
        session, turns = reading.session, list(sieved(reading, self.store.config))
        if not turns:
            return None
        if not session.session:
            self._problems.append(f"{one.where}: it does not say which session it is of")
            return None
        ids = {turn.id for turn in turns}
        waits = self._waiting(session)
        fresh = self._unread(session, stream, reading, ids) & ids
        fresh &= {turn.id for turn in _unheard(turns, waits)}
        times = [turn.at for turn in turns if turn.at]
        found = Surveyed(
            one, session, len(turns), len(waits), (), min(times, default=session.started),
            max(times, default=session.started), reading.usage.context,
        )  # fmt: skip
        return _Talk(found, [(turn.id, _hash(turn)) for turn in turns], fresh)

    def _waiting(self, session: Session) -> list[str]:
        try:
            return [turn.id for turn in self.queue.get(key_of(session)).turns]
        except NotFound:
            return []

    def _unread(self, session: Session, stream: IO[bytes], reading: Reading, ids: set[str]) -> set[str]:
        """The ids of the turns behind the last that a flush has read."""
        known = self.marks.of(session) or self.marks.elsewhere(session.client) & ids
        if not known:
            return ids
        stream.seek(0)
        again = read(stream, client=reading.session.client, since=through.bases(known))
        turns = list(through.unsaid(again, known, again.reached))
        return {turn.id for turn in _after_told(turns, known)}

    def _told_apart(self) -> Iterator[Surveyed]:
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


def turns_of(one: Surveyed) -> list[Turn]:
    """The new turns of a session, in order. One that has no time of its own gets that of what was said before
    it, so that it does not count as said today. What the transcript's reader raises; OSError."""
    new, at = set(one.new), one.first or one.transcript.changed
    found = []
    with one.transcript.opened() as stream:
        for turn in read(stream, client=one.session.client):
            at = turn.at or at
            if turn.id in new:
                found.append(turn if turn.at else replace(turn, at=at))
    return found


def _unheard(turns: Sequence[Turn], waiting: Sequence[str]) -> Iterable[Turn]:
    """The turns without those that wait, and without what a client told of before its transcript had it."""
    known = set(waiting)
    left = [turn for turn in turns if turn.id not in known]
    left = list(through.unsaid(left, waiting, through.bases(waiting) - {turn.id for turn in left}))
    return _after_told(left, waiting)


def _after_told(turns: list[Turn], ids: Iterable[str]) -> list[Turn]:
    """The turns behind the last one that only its client told of: known by its words, else by its time."""
    cut = 0
    for id in ids:
        base, sign, words = id.partition(through.FOLLOWS)
        if not sign or not (base == "" or base.startswith(TOLD)):
            continue
        until = _moment(base)
        fits = [
            n for n, turn in enumerate(turns, 1)
            if through.words_of(turn.text) == words and not (until and turn.at and turn.at > until + LATE)
        ]  # fmt: skip
        before = [n for n, turn in enumerate(turns, 1) if until and turn.at and turn.at <= until]
        cut = max(cut, *(fits[-1:] if until else fits[:1]) or before[-1:], 0)
    return turns[cut:]


def _moment(base: str) -> datetime | None:
    try:
        return datetime.strptime(base, f"{TOLD}%Y%m%dT%H%M%S%f").replace(tzinfo=UTC)
    except ValueError:
        return None


def _begun(one: Surveyed) -> float:
    at = one.session.started or one.first or one.transcript.changed
    return at.timestamp()


def _hash(turn: Turn) -> str:
    return hashlib.sha256(f"{turn.role}\0{turn.text}".encode("utf-8", "replace")).hexdigest()[:16]
