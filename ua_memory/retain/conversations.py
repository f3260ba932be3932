"""Conversations: flush now, capture as they grow, or queue; and the queue of all that waits."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import IO, TYPE_CHECKING, Any

from ua_memory.errors import Usage
from ua_memory.knowledge import core
from ua_memory.knowledge.sessions import SessionFile
from ua_memory.llm.ledger import Estimate, together
from ua_memory.retain import ledger
from ua_memory.retain.flush import Done, Flush, FlushedSession, Flusher, Tell, due, estimate
from ua_memory.retain.queue import RETRY, QueueEntry, key_of
from ua_memory.retain.subagent import MemoryView
from ua_memory.store.store import Store
from ua_memory.text import noise
from ua_memory.text.noise import typed, uttered
from ua_memory.transcripts.reader import CLIENTS, read
from ua_memory.transcripts.turns import Role, Session, Turn

if TYPE_CHECKING:
    from ua_memory.index.items import IndexItem
    from ua_memory.knowledge.facts import Equal
    from ua_memory.llm.model import Model, ModelOrEndpoint
    from ua_memory.llm.providers import ModelAccess
    from ua_memory.recall.search import SearchResult
    from ua_memory.retain.retain import Retainer, RetainResult
    from ua_memory.retain.retain import Tell as RetainTell

# -- conversations -----------------------------------------------------------------------------------------
# A conversation, as a transcript or as turns: flushed, previewed, or made to wait.


OFF = "flush is switched off (UA_MEMORY_ENABLED, or `enabled` in ua-memory.toml): nothing was read"
CONFIGURE = "set ANTHROPIC_API_KEY, or: ua-memory install claude-code --model client"
Unstudied = tuple[SessionFile, QueueEntry]
"""A session that no model has read, and its turns."""


class Conversations:
    """Flushes conversations into one bank; `door` names the caller. `lookup` finds facts by exact text,
    `search` answers the sub-agent's searches."""

    def __init__(
        self, store: Store, door: str, models: ModelAccess, lookup: Callable[[], Equal],
        search: Callable[..., SearchResult],
    ) -> None:  # fmt: skip
        self._store, self._door, self._models = store, door, models
        self._lookup, self._search = lookup, search

    def flush(
        self, transcript: IO[bytes] | None = None, *, model: ModelOrEndpoint = None, force: bool = False,
        client: str | None = None, session: str | None = None, tell: Tell | None = None,
        done: Done | None = None,
    ) -> Flush:  # fmt: skip
        """Save the facts of a conversation and of the queue; one commit for each session.

        `transcript` is a stream in any client's format; below the threshold nothing happens unless `force`d.
        Without one the queue is flushed. Without a `model` the speakers' own sentences are saved. `tell(done,
        total)` reports progress in turns, `done` is called with each session once it is committed.

        Raises Malformed for the transcript, and what the model and the store raise; the turns then stay
        queued.
        """
        if not self._store.config.enabled:
            return Flush(notes=(OFF,))
        with self._models.open(model) as asked:
            flusher = self.flusher(asked, tell)
            seen = Flush()
            if transcript is not None:
                seen, _ = flusher.take(transcript, client=client, session=session, force=force)
                if not seen.looked:
                    count = sum(len(each.turns) for each in flusher.queue.all())
                    wait = f"{count} turn{' waits' if count == 1 else 's wait'} for a flush: {RETRY}"
                    return replace(seen, notes=(*seen.notes, *([wait] if count else [])))
            every = force and transcript is None
            return replace(seen, done=tuple(flusher.drain(seen.session, done, every=every)))

    def enqueue(
        self, transcript: IO[bytes] | None, *, force: bool = False, client: str | None = None,
        session: str | None = None, model: ModelOrEndpoint = None,
    ) -> Flush:  # fmt: skip
        """Queue a transcript's new turns durably if a flush is due; flush nothing. `model` is the one that
        will read them."""
        if not self._store.config.enabled:
            return Flush(notes=(OFF,))
        if transcript is None:
            return Flush()
        flusher = self.flusher(wants=bool(model))
        return flusher.take(transcript, client=client, session=session, force=force)[0]

    def capture(
        self, session: Session, transcript: IO[bytes] | None, *, said: str = "", asked: str = "",
        spot: Sequence[Any] = (), close: bool = False, model: bool = False,
    ) -> CaptureResult:  # fmt: skip
        """Queue the new turns of a session that is still open. `spot` has the values of the last
        `ReadPosition`; `model` says whether a model will read them."""
        flusher = self.flusher(wants=model)
        return capture(
            flusher, session, transcript, said=said, asked=asked, spot=ReadPosition(*spot), close=close
        )

    def preview(
        self, transcript: IO[bytes] | None = None, *, model: ModelOrEndpoint = None, force: bool = False,
        client: str | None = None, session: str | None = None,
    ) -> tuple[Flush, Estimate | None]:  # fmt: skip
        """What a flush without a model would save and, if there is a model, its cost. Writes and sends
        nothing."""
        if not self._store.config.enabled:
            return Flush(notes=(OFF,)), None
        flusher = self.flusher()
        seen, turns = Flush(), tuple(turn for each in flusher.queue.all() for turn in each.turns)
        if transcript is not None:
            seen, turns = flusher.take(transcript, client=client, session=session, force=force, keep=False)
        cost = estimate(turns, model, self._store.config.context_window) if model and turns else None
        recalled = (*seen.recalled, *(line for each in flusher.queue.all() for line in each.recalled))
        return replace(seen, preview=flusher.preview(turns, recalled), redacted=dict(flusher.redacted)), cost

    def flush_turns(
        self,
        session: Session,
        turns: Sequence[Turn],
        *,
        size: int | None = None,
        model: ModelOrEndpoint = None,
        recalled: Sequence[str] = (),
    ) -> FlushedSession | None:
        """Flush turns that a program has in its hands. They wait first, as those of a transcript do. None
        where nothing is new, or flushes are switched off. `recalled` is what memory gave the program."""
        if not self._store.config.enabled:
            return None
        with self._models.open(model) as asked:
            flusher = self.flusher(asked, None)
            waiting = flusher.put(session, turns, size, recalled=recalled)
            return flusher.one(waiting.key, self._store.config.lock_seconds) if waiting else None

    def to_read_again(
        self, since: str = "", *, force: bool = False, model: ModelOrEndpoint = None
    ) -> tuple[Sequence[Unstudied], Estimate | None]:
        """The sessions since an ISO day of which no model has chosen the facts, newest first, and what the
        model would take to read them. Sessions whose flush was undone only with `force`."""
        found = [*self.flusher().unstudied(since, force=force)]
        window = self._store.config.context_window
        return found, together([estimate(each.turns, model, window) for _, each in found] if model else [])

    def read_again(
        self, sessions: Iterable[Unstudied], *, model: ModelOrEndpoint, tell: Tell | None = None
    ) -> Iterator[FlushedSession]:
        """Have a model read sessions anew, one after the other, each as a commit of its own: facts that
        extraction kept get its words, new ones are added. Usage without a model; else as `flush`."""
        if not model:
            raise Usage("no model is configured to read them again", hint=CONFIGURE)
        with self._models.open(model) as asked:
            flusher = self.flusher(asked, tell)
            for words, found in sessions:
                yield flusher.study(words, found, self._store.config.lock_seconds)

    def flusher(
        self, model: Model | None = None, tell: Tell | None = None, *, wants: bool | None = None
    ) -> Flusher:
        """A `Flusher` of this bank. `tell` is called with the progress; `wants` says whether a model is to
        read what is queued (default: whether there is one)."""
        view = MemoryView(
            self.search_lines, lambda: core.blocks(self._store), self._store.redacted,
            lambda values: core.check(self._store, values),
        )  # fmt: skip
        return Flusher(self._store, view, self._lookup, door=self._door, model=model, tell=tell, wants=wants)

    def search_lines(self, query: str) -> Sequence[str]:
        """One line for each hit of a query, as the sub-agent may read it."""
        hits = self._search(query, limit=8).hits
        rows = ((f"{hit.item.day or hit.item.path}{_origin(hit.item)}", hit.snippet.split()) for hit in hits)
        return [noise.harmless(f"{head}: {' '.join(words)}") for head, words in rows]


def _origin(item: IndexItem) -> str:
    """A warning where neither a person nor the agent has said it."""
    return f" (untrusted, {item.origin})" if item.untrusted else ""


# -- queue -------------------------------------------------------------------------------------------------
# What waits for its model: conversations for their flush, and texts to be retained.


class WaitQueue:
    """Everything of one bank that waits for a model, each entry under a key."""

    def __init__(
        self, store: Store, models: ModelAccess, flusher: Callable[..., Flusher],
        retainer: Callable[..., Retainer],
    ) -> None:  # fmt: skip
        self._store, self._models = store, models
        self._flusher, self._retainer = flusher, retainer

    def list(self) -> Sequence[QueueEntry]:
        """All entries: conversations, then texts."""
        return [*self.conversations(), *self.texts()]

    def conversations(self) -> Sequence[QueueEntry]:
        """The queued sessions, oldest first."""
        return self._flusher().queue.all()

    def texts(self) -> Sequence[QueueEntry]:
        """The texts to be retained, oldest first."""
        return self._retainer().items.all()

    def is_text(self, key: str) -> bool:
        """Whether a key is that of a text rather than a conversation."""
        return self._retainer().items.has(key)

    def retry_conversations(
        self, keys: Sequence[str] = (), *, model: ModelOrEndpoint = None, tell: Tell | None = None,
        done: Done | None = None,
    ) -> Sequence[FlushedSession]:  # fmt: skip
        """Flush these conversations, or all, including those set aside; nothing if flushes are off.
        NotFound; else as `flush`."""
        if not self._store.config.enabled:
            return []
        with self._models.open(model) as asked:
            flusher = self._flusher(asked, tell)
            for key in keys or flusher.queue.keys():
                flusher.queue.revive(key, self._store.now())
            if not keys:
                return flusher.drain(done=done, every=True)
            flushed = []
            for key in keys:
                flusher.queue.get(key)
                one = flusher.one(key, self._store.config.lock_seconds)
                flushed += [one] if one else []
                if one and done:
                    done(one)
            return flushed

    def retry_texts(
        self, keys: Sequence[str] = (), *, model: ModelOrEndpoint = None, tell: RetainTell | None = None
    ) -> Sequence[RetainResult]:
        """Retain these texts, or all, including those set aside. NotFound; else as `retain`."""
        with self._models.open(model) as asked:
            retainer = self._retainer(asked, tell)
            for key in keys or retainer.items.keys():
                retainer.items.revive(key, self._store.now())
            if not keys:
                return retainer.drain()
            found = (retainer.one(key, self._store.config.lock_seconds) for key in keys)
            return [one for one in found if one is not None]

    def attempt(self, key: str, *, model: ModelOrEndpoint = None) -> FlushedSession | RetainResult | None:
        """Flush or retain one entry without being asked; None if it is set aside. Busy; else as `flush`
        and `retain`."""
        with self._models.open(model) as asked:
            if self.is_text(key):
                return self._retainer(asked).one(key, 0, unasked=True)
            return self._flusher(asked).one(key, 0, unasked=True)

    def drop(self, key: str) -> QueueEntry:
        """Remove an entry and return it. NotFound, Busy."""
        items = self._retainer().items
        return (items if items.has(key) else self._flusher().queue).drop(key)


# -- capture ---------------------------------------------------------------------------------------------
# A session that goes on, heard bit by bit: what its transcript has gained is let wait, each turn once.


CHECKED = 256
"""Bytes before a place in a transcript by which it is known again."""
TAIL = 32 << 20
"""So many new bytes are read at most without the rest of the transcript; of more all of it is read."""


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """How far a transcript was read: the byte, a hash of what precedes it, the last turn's id, and a hash
    of the words that came with the event."""

    offset: int = 0
    check: str = ""
    last: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """Result of a capture: the number of new turns, the new position, and whether a flush is due."""

    turns: int
    spot: ReadPosition
    due: bool


@dataclass(frozen=True, slots=True)
class _NewTurns:
    """Turns nobody has heard, the ids that they follow, the context's size if told, where they end, and what
    memory gave the session meanwhile. `title` and `parent`, the session that it was forked from, are as the
    client has them, '' where it has none."""

    turns: list[Turn]
    reached: set[str]
    size: int | None
    spot: ReadPosition
    recalled: tuple[str, ...] = ()
    title: str = ""
    parent: str = ""


def capture(
    flusher: Flusher, session: Session, transcript: IO[bytes] | None, *,
    said: str = "", asked: str = "", spot: ReadPosition | None = None, close: bool = False,
) -> CaptureResult:  # fmt: skip
    """Let the new turns of a session wait, and its last words (`said`) if its transcript lacks them. Of a
    client that writes none, they and what was `asked`, which only such a one tells, are all there is.

    With `close`, and at the threshold, a flush is due of all that waits of it. Malformed for what is no
    transcript; CannotWrite. What was heard is on the disk when this returns.
    """
    spot, key, store = spot or ReadPosition(), key_of(session), flusher.store
    if transcript is None and asked:
        return _told(flusher, session, asked, said, spot)
    waiting = flusher.queue.find(key)
    known = {turn.id for turn in waiting.turns} if waiting else set()
    ids = known.union(*ledger.ledger(store, session))
    begins = not ids and not spot.offset
    if begins:
        ids = _of_others(flusher, session)
    new = _new(transcript, session, ids, spot) if transcript else _NewTurns([], {spot.last}, None, spot)
    session = replace(session, title=new.title, parent=session.parent or new.parent)
    turns = [turn for turn in ledger.without_recorded(new.turns, ids, new.reached) if turn.id not in ids]
    turns = list(flusher.own_turns(session, turns)) if begins else turns
    text = uttered(said)
    words = ledger.words_hash(text) if text else ""
    if transcript and words and not turns and not spot.said:
        # How far it was heard is not known any more: its last words may be among what was flushed.
        transcript.seek(0)
        words = "" if _last_said(list(read(transcript))) == words else words
    if words and (turns or words != spot.said) and words != _last_said(new.turns):
        turns.append(Turn(f"{_last(new)}{ledger.FOLLOWS}{words}", "assistant", text, store.now()))
    if turns or new.title:
        waiting = flusher.put(session, turns, new.size, more=True, recalled=new.recalled) or waiting
    fires = waiting is not None and (close or (waiting.open and _fires(store, session, new.size)))
    if fires:
        flusher.queue.close(key, store.now())
    # What memory gave before the first turn is read again with it.
    until = spot if new.recalled and not turns else new.spot
    return CaptureResult(len(turns), replace(until, said=words or spot.said), fires)


def _told(flusher: Flusher, session: Session, asked: str, said: str, spot: ReadPosition) -> CaptureResult:
    """Let what a client told of one answer wait. It is known again for as long as nothing else is told."""
    now, both = flusher.store.now(), ledger.words_hash(f"{asked}\0{said}")
    base = f"told-{now.astimezone(UTC):%Y%m%dT%H%M%S%f}{ledger.FOLLOWS}"
    told: tuple[tuple[Role, str], ...] = (("person", typed(asked)), ("assistant", uttered(said)))
    turns = [Turn(f"{base}{ledger.words_hash(text)}", role, text, now) for role, text in told if text]
    if not turns or both == spot.said:
        return CaptureResult(0, spot, False)
    flusher.put(session, turns, None, more=True)
    return CaptureResult(len(turns), replace(spot, said=both), False)


def _of_others(flusher: Flusher, session: Session) -> set[str]:
    """What was heard of other sessions, one of which this may be a fork of."""
    others = (each.turns for each in flusher.queue.all() if each.session.client == session.client)
    queued = ledger.unique(turn.id for turns in others for turn in turns)
    return queued | ledger.elsewhere(flusher.store, session)


def _last(new: _NewTurns) -> str:
    """The transcript's last entry that is known, '' if none is."""
    last = new.turns[-1].id if new.turns else min(new.reached, default="")
    return last.partition(ledger.FOLLOWS)[0]


def _fires(store: Store, session: Session, size: int | None) -> bool:
    """Whether a context of this size calls for a flush; one whose client does not tell it never does."""
    threshold = min(store.config.truncation_threshold, store.config.context_window)
    if size is None or size < threshold:
        return False
    return due(size, ledger.size_at_last_flush(store, session), threshold).fires


def _new(stream: IO[bytes], session: Session, ids: set[str], spot: ReadPosition) -> _NewTurns:
    """What a transcript has that nobody has heard: read from the spot on, or whole where that is gone."""
    client = session.client if session.client in CLIENTS else None
    end = _last_line_end(stream)
    tail = _tail(stream, spot, end)
    reading = read(
        io.BytesIO(tail) if tail is not None else stream, client=client, since=ledger.base_ids(ids)
    )
    # Between two hearings the raw turns are there, so no summary stands for them; and a tail that has but a
    # sub-agent's lines is no conversation.
    behind = tail is not None
    turns = [turn for turn in reading if not (behind and (turn.summary or turn.agent))]
    last = turns[-1].id if turns else spot.last if behind else ""
    end_at = ReadPosition(end, _check(stream, end), last or next(iter(sorted(reading.reached)), ""))
    reached = reading.reached or {spot.last if behind else ""}
    return _NewTurns(
        turns, reached, reading.usage.context, end_at, reading.recalled,
        reading.session.title, reading.session.parent,
    )  # fmt: skip


def _tail(stream: IO[bytes], spot: ReadPosition, end: int) -> bytes | None:
    """What was written since the spot, None where the whole has to be read."""
    if (
        not spot.offset
        or not spot.offset <= end <= spot.offset + TAIL
        or spot.check != _check(stream, spot.offset)
    ):
        stream.seek(0)
        return None
    stream.seek(spot.offset)
    return stream.read(end - spot.offset)


def _check(stream: IO[bytes], offset: int) -> str:
    stream.seek(max(0, offset - CHECKED))
    return hashlib.sha256(stream.read(min(CHECKED, offset))).hexdigest()[:16]


def _last_line_end(stream: IO[bytes]) -> int:
    """The byte behind the last whole line; a line that is being written is for the next time."""
    end = stream.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - (64 << 10))
        stream.seek(start)
        found = stream.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _last_said(turns: list[Turn]) -> str:
    """A hash of the assistant's last words, '' where none stand behind the person's."""
    for turn in reversed(turns):
        if turn.role == "assistant":
            return ledger.words_hash(turn.text)
        if turn.role == "person":
            break
    return ""
