"""Conversations: flush them, queue them, or capture them while they go on; and the queue of all that
waits."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import IO, TYPE_CHECKING, Any

from ua_memory.clients.transcripts import FORMATS, read
from ua_memory.clients.turns import CHUNK, Role, Session, Turn
from ua_memory.errors import Usage, checked
from ua_memory.knowledge import core
from ua_memory.knowledge.sessions import SessionFile
from ua_memory.knowledge.statements import Progress
from ua_memory.llm.ledger import Estimate, sum_estimates
from ua_memory.retain import ledger
from ua_memory.retain.flush import Flush, FlushedSession, Flusher, OnFlushed, Transcript, estimate, flush_due
from ua_memory.retain.queue import RETRY_COMMAND, QueueEntry, queue_key
from ua_memory.retain.subagent import MemoryView
from ua_memory.store.store import Store
from ua_memory.text import noise
from ua_memory.text.noise import assistant_text, typed_text

if TYPE_CHECKING:
    from ua_memory.knowledge.facts import FindEqual
    from ua_memory.llm.model import Model, ModelOrEndpoint
    from ua_memory.llm.providers import ModelAccess
    from ua_memory.recall.search import SearchResult
    from ua_memory.retain.retain import Retainer, RetainResult

# -- conversations -----------------------------------------------------------------------------------------


DISABLED_NOTE = "flush is switched off (UA_MEMORY_ENABLED, or `enabled` in ua-memory.toml): nothing was read"
NO_MODEL_HINT = "set ANTHROPIC_API_KEY, or: ua-memory install claude-code --model client"
UnreadSession = tuple[SessionFile, QueueEntry]
"""A session that no model has read, and its turns."""


@checked
class Conversations:
    """Flushes conversations into one bank; `door` names the caller. `lookup` finds facts by exact text,
    `search` answers the sub-agent's searches."""

    def __init__(
        self, store: Store, door: str, models: ModelAccess, lookup: Callable[[], FindEqual],
        search: Callable[..., SearchResult],
    ) -> None:  # fmt: skip
        self._store, self._door, self._models = store, door, models
        self._lookup, self._search = lookup, search

    def flush(
        self, transcript: Transcript | None = None, *, model: ModelOrEndpoint = None, force: bool = False,
        client: str | None = None, session: str | None = None, tags: Sequence[str] = (),
        tell: Progress | None = None, done: OnFlushed | None = None,
    ) -> Flush:  # fmt: skip
        """Save the facts of a conversation and of the queue; one commit for each session.

        `transcript` is a `Transcript`; below the threshold nothing happens unless `force`d.
        Without one the queue is flushed. Without a `model` the speakers' own sentences are saved. Its facts
        get the `tags`. `tell(done, total)` reports progress in turns, `done` is called with each session once
        it is committed.

        Raises Malformed for the transcript, Usage for what is no tag, and what the model and the store raise;
        the turns then stay queued.
        """
        if not self._store.config.enabled:
            return Flush(notes=(DISABLED_NOTE,))
        with self._models.open(model) as opened:
            flusher = self.flusher(opened, tell)
            result = Flush()
            if transcript is not None:
                result, _ = flusher.queue_transcript(
                    transcript, client=client, session=session, force=force, tags=tags
                )
                if not result.was_read:
                    count = sum(len(each.turns) for each in flusher.queue.all())
                    wait = f"{count} turn{' waits' if count == 1 else 's wait'} for a flush: {RETRY_COMMAND}"
                    return replace(result, notes=(*result.notes, *([wait] if count else [])))
            every = force and transcript is None
            return replace(result, done=tuple(flusher.drain(result.session, done, every=every)))

    def enqueue(
        self, transcript: Transcript | None, *, force: bool = False, client: str | None = None,
        session: str | None = None, tags: Sequence[str] = (), model: ModelOrEndpoint = None,
    ) -> Flush:  # fmt: skip
        """Queue a transcript's new turns durably if a flush is due; flush nothing. `model` is the one that
        will read them."""
        if transcript is None or not self._store.config.enabled:
            return Flush(notes=() if self._store.config.enabled else (DISABLED_NOTE,))
        flusher = self.flusher(for_model=bool(model))
        given: dict[str, Any] = {"client": client, "session": session, "force": force, "tags": tags}
        return flusher.queue_transcript(transcript, **given)[0]

    def capture(
        self, session: Session, transcript: IO[bytes] | None, *, said: str = "", asked: str = "",
        spot: Sequence[Any] = (), close: bool = False, model: bool = False,
    ) -> CaptureResult:  # fmt: skip
        """Queue the new turns of a session that is still open. `spot` has the values of the last
        `ReadPosition`; `model` says whether a model will read them."""
        flusher, position = self.flusher(for_model=model), ReadPosition(*spot)
        return capture(flusher, session, transcript, said=said, asked=asked, position=position, close=close)

    def preview(
        self, transcript: Transcript | None = None, *, model: ModelOrEndpoint = None, force: bool = False,
        client: str | None = None, session: str | None = None, explain: bool = False,
    ) -> tuple[Flush, Estimate | None]:  # fmt: skip
        """What a flush without a model would save, with `explain` also why not the rest, and, if there is a
        model, its cost. Writes and sends nothing."""
        if not self._store.config.enabled:
            return Flush(notes=(DISABLED_NOTE,)), None
        flusher = self.flusher()
        result, turns = Flush(), tuple(turn for each in flusher.queue.all() for turn in each.turns)
        if transcript is not None:
            result, turns = flusher.queue_transcript(
                transcript, client=client, session=session, force=force, queue=False
            )
        cost = estimate(turns, model, self._store.config.context_window) if model and turns else None
        recalled = (*result.recalled, *(line for each in flusher.queue.all() for line in each.recalled))
        preview, unkept = flusher.preview(turns, recalled, explain=explain)
        return replace(result, preview=preview, unkept=unkept, redacted=dict(flusher.redacted)), cost

    def flush_turns(
        self, session: Session, turns: Sequence[Turn], *, size: int | None = None,
        model: ModelOrEndpoint = None, recalled: Sequence[str] = (),
    ) -> FlushedSession | None:  # fmt: skip
        """Flush the turns of a program's own conversation; they are queued first. None if nothing is new, or
        if flushes are disabled. `recalled` has the lines of recalled memory that the program was given."""
        if not self._store.config.enabled:
            return None
        with self._models.open(model) as opened:
            flusher = self.flusher(opened, None)
            entry = flusher.queue_turns(session, turns, size, recalled=recalled)
            return flusher.flush_entry(entry.key, self._store.config.lock_seconds) if entry else None

    def unread_sessions(
        self, since: str = "", *, force: bool = False, model: ModelOrEndpoint = None
    ) -> tuple[Sequence[UnreadSession], Estimate | None]:
        """The sessions since an ISO day whose facts no model has extracted, newest first, and what reading
        them with the model would cost. Sessions whose flush was undone only with `force`."""
        found = [*self.flusher().unread_sessions(since, force=force)]
        window = self._store.config.context_window
        costs = [estimate(each.turns, model, window) for _, each in found] if model else []
        return found, sum_estimates(costs)

    def read_again(
        self, sessions: Iterable[UnreadSession], *, model: ModelOrEndpoint, tell: Progress | None = None
    ) -> Iterator[FlushedSession]:
        """Read sessions again with a model, each as a commit of its own: extracted facts are reworded, new
        ones are added. Usage without a model; else as `flush`."""
        if not model:
            raise Usage("no model is configured to read them again", hint=NO_MODEL_HINT)
        with self._models.open(model) as opened:
            flusher = self.flusher(opened, tell)
            for session_file, found in sessions:
                yield flusher.reread(session_file, found, self._store.config.lock_seconds)

    def flusher(
        self, model: Model | None = None, tell: Progress | None = None, *, for_model: bool | None = None
    ) -> Flusher:
        """A `Flusher` of this bank. `tell` is called with the progress; `for_model` says whether a model is
        to read what is queued (default: whether there is one)."""
        view = MemoryView(
            self.search_lines, lambda: core.blocks(self._store), self._store.redacted,
            lambda values: core.check_values(self._store, values),
        )  # fmt: skip
        return Flusher(
            self._store, view, self._lookup, door=self._door, model=model, tell=tell, for_model=for_model
        )

    def search_lines(self, query: str) -> Sequence[str]:
        """One line for each hit of a query, as the sub-agent may read it."""
        rows = []
        for hit in self._search(query, limit=8).hits:
            warning = f" (untrusted, {hit.item.origin})" if hit.item.untrusted else ""
            words = " ".join(hit.snippet.split())
            rows.append(noise.sanitize(f"{hit.item.day or hit.item.path}{warning}: {words}"))
        return rows


# -- queue -------------------------------------------------------------------------------------------------


@checked
class WaitQueue:
    """All queued entries of one bank, conversations and texts, each under a key."""

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
        return self._retainer().items.find(key) is not None

    def retry_conversations(
        self, keys: Sequence[str] = (), *, model: ModelOrEndpoint = None, tell: Progress | None = None,
        done: OnFlushed | None = None,
    ) -> Sequence[FlushedSession]:  # fmt: skip
        """Flush these conversations, or all, including those set aside; nothing if flushes are off.
        NotFound; else as `flush`."""
        if not self._store.config.enabled:
            return []
        with self._models.open(model) as opened:
            flusher = self._flusher(opened, tell)
            for key in keys or flusher.queue.keys():
                flusher.queue.reset_failures(key, self._store.now())
            if not keys:
                return flusher.drain(done=done, every=True)
            flushed = []
            for key in keys:
                flusher.queue.get(key)
                one = flusher.flush_entry(key, self._store.config.lock_seconds)
                flushed += [one] if one else []
                if one and done:
                    done(one)
            return flushed

    def retry_texts(
        self, keys: Sequence[str] = (), *, model: ModelOrEndpoint = None, tell: Progress | None = None
    ) -> Sequence[RetainResult]:
        """Retain these texts, or all, including those set aside. NotFound; else as `retain`."""
        with self._models.open(model) as opened:
            retainer = self._retainer(opened, tell)
            for key in keys or retainer.items.keys():
                retainer.items.reset_failures(key, self._store.now())
            if not keys:
                return retainer.drain()
            found = (retainer.retain_entry(key, self._store.config.lock_seconds) for key in keys)
            return [one for one in found if one is not None]

    def attempt(self, key: str, *, model: ModelOrEndpoint = None) -> FlushedSession | RetainResult | None:
        """Flush or retain one entry without being asked; None if it is set aside. Busy; else as `flush`
        and `retain`."""
        with self._models.open(model) as opened:
            if self.is_text(key):
                return self._retainer(opened).retain_entry(key, 0, unasked=True)
            return self._flusher(opened).flush_entry(key, 0, unasked=True)

    def drop(self, key: str) -> QueueEntry:
        """Remove an entry and return it. NotFound, Busy."""
        items = self._retainer().items
        return (items if items.find(key) else self._flusher().queue).drop(key)


# -- incremental capture -----------------------------------------------------------------------------------
# Queues what the transcript of an open session has gained since the last capture, each turn once.


CHECKSUM_BYTES = 256
"""A position in a transcript is recognised by a hash of so many bytes before it."""
MOST_TAIL = 32 << 20
"""Most new bytes that are read alone; with more of them the whole transcript is read."""


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """How far a transcript was read: the byte offset, a hash of the bytes before it, the last turn's id, the
    hash of the answer that came with the event, and the number of lines before the offset."""

    offset: int = 0
    checksum: str = ""
    last_id: str = ""
    answer_hash: str = ""
    lines: int = 0


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """Result of a capture: the number of new turns, the new position, and whether a flush is due."""

    turns: int
    position: ReadPosition
    due: bool


@dataclass(frozen=True, slots=True)
class _NewTurns:
    """New turns of a transcript, the ids that they `follow`, the context's size if reported, and where they
    end. `title` and `parent`, the session that it was forked from, are as the client has them, '' where it
    has none."""

    turns: list[Turn]
    follow: set[str]
    size: int | None
    position: ReadPosition
    recalled: tuple[str, ...] = ()
    title: str = ""
    parent: str = ""


def capture(
    flusher: Flusher, session: Session, transcript: IO[bytes] | None, *,
    said: str = "", asked: str = "", position: ReadPosition | None = None, close: bool = False,
) -> CaptureResult:  # fmt: skip
    """Queue the new turns of a session, and its last answer (`said`) if the transcript lacks it. Clients
    without a transcript pass `said` and what was `asked` instead.

    With `close`, and at the threshold, a flush of the session is due. Malformed for a file that is no
    transcript; CannotWrite. The turns are on the disk on return.
    """
    position, key, store = position or ReadPosition(), queue_key(session), flusher.store
    if transcript is None and asked:
        return _capture_without_transcript(flusher, session, asked, said, position)
    entry = flusher.queue.find(key)
    known = {turn.id for turn in entry.turns} if entry else set()
    ids = known.union(*ledger.read_ids(store, session))
    is_new = not ids and not position.offset
    if is_new:
        ids = _ids_of_other_sessions(flusher, session)
    new = _NewTurns([], {position.last_id}, None, position)
    if transcript:
        new = _read_new_turns(transcript, session, ids, position)
    session = replace(session, title=new.title, parent=session.parent or new.parent)
    turns = [turn for turn in ledger.without_captured(new.turns, ids, new.follow) if turn.id not in ids]
    turns = list(flusher.without_copied_turns(session, turns)) if is_new else turns
    answer = assistant_text(said)
    last_hash = ledger.text_hash(answer) if answer else ""
    if transcript and last_hash and not turns and last_hash != position.answer_hash:
        # The position is lost, or a busy daemon and the hook that gave it up both read this event.
        transcript.seek(0)
        heard = (entry.turns if entry else ()), read(transcript)
        last_hash = "" if any(_answer_hash(list(each)) == last_hash for each in heard) else last_hash
    if last_hash and (turns or last_hash != position.answer_hash) and last_hash != _answer_hash(new.turns):
        id = f"{_last_entry_id(new)}{ledger.EVENT_SEPARATOR}{last_hash}"
        turns.append(Turn(id, "assistant", answer, store.now()))
    if turns or new.title:
        entry = flusher.queue_turns(session, turns, new.size, is_open=True, recalled=new.recalled) or entry
    due = entry is not None and (close or (entry.open and _is_flush_due(store, session, new.size)))
    if due:
        flusher.queue.mark_due(key, store.now())
    # Recalled memory before the first turn is read again together with that turn.
    end = position if new.recalled and not turns else new.position
    return CaptureResult(len(turns), replace(end, answer_hash=last_hash or position.answer_hash), due)


def _capture_without_transcript(
    flusher: Flusher, session: Session, asked: str, said: str, position: ReadPosition
) -> CaptureResult:
    """Queue one question and answer of a client without a transcript; skipped if it is the same as the
    last."""
    now, exchange_hash = flusher.store.now(), ledger.text_hash(f"{asked}\0{said}")
    base = f"told-{now.astimezone(UTC):%Y%m%dT%H%M%S%f}{ledger.EVENT_SEPARATOR}"
    texts = (typed_text(asked), assistant_text(said))
    roles: tuple[tuple[Role, str], ...] = (("person", texts[0]), ("assistant", texts[1]))
    turns = [Turn(f"{base}{ledger.text_hash(text)}", role, text, now) for role, text in roles if text]
    if not turns or exchange_hash == position.answer_hash:
        return CaptureResult(0, position, False)
    flusher.queue_turns(session, turns, None, is_open=True)
    return CaptureResult(len(turns), replace(position, answer_hash=exchange_hash), False)


def _ids_of_other_sessions(flusher: Flusher, session: Session) -> set[str]:
    """The ids that were read in other sessions of the client, of which this may be a fork."""
    others = (each.turns for each in flusher.queue.all() if each.session.client == session.client)
    queued = ledger.globally_unique(turn.id for turns in others for turn in turns)
    return queued | ledger.ids_of_other_sessions(flusher.store, session)


def _last_entry_id(found: _NewTurns) -> str:
    """The id of the transcript's last known entry, '' if none is."""
    last_id = found.turns[-1].id if found.turns else min(found.follow, default="")
    return last_id.partition(ledger.EVENT_SEPARATOR)[0]


def _is_flush_due(store: Store, session: Session, size: int | None) -> bool:
    """Whether a flush is due at this context size; never if the client reports none."""
    threshold = min(store.config.truncation_threshold, store.config.context_window)
    if size is None or size < threshold:
        return False
    return flush_due(size, ledger.size_at_last_flush(store, session), threshold).is_due


def _read_new_turns(stream: IO[bytes], session: Session, ids: set[str], position: ReadPosition) -> _NewTurns:
    """The new turns of a transcript, read from the position on, or all of it where the position is lost."""
    client = session.client if session.client in FORMATS else None
    end = _last_line_end(stream)
    tail = _read_tail(stream, position, end)
    source = io.BytesIO(tail) if tail is not None else stream
    before = position.lines if tail is not None else 0
    reading = read(source, client=client, since=ledger.base_ids(ids), lines_before=before)
    # In a tail the raw turns were captured before, so a summary of them is left out, and so is a sub-agent.
    from_tail = tail is not None
    turns = [turn for turn in reading if not (from_tail and (turn.summary or turn.agent))]
    last = turns[-1].id if turns else position.last_id if from_tail else ""
    last = last or next(iter(sorted(reading.reached)), "")
    lines = before + (_count_lines(stream, end) if tail is None else tail.count(b"\n"))
    end_at = ReadPosition(end, _checksum(stream, end), last, lines=lines)
    follow = reading.reached or {position.last_id if from_tail else ""}
    return _NewTurns(
        turns, follow, reading.context_size, end_at, reading.recalled,
        reading.session.title, reading.session.parent,
    )  # fmt: skip


def _read_tail(stream: IO[bytes], position: ReadPosition, end: int) -> bytes | None:
    """The bytes after the position; None if the whole transcript has to be read."""
    if (
        not position.offset
        or not position.lines  # saved before lines were counted
        or not position.offset <= end <= position.offset + MOST_TAIL
        or position.checksum != _checksum(stream, position.offset)
    ):
        stream.seek(0)
        return None
    stream.seek(position.offset)
    return stream.read(end - position.offset)


def _count_lines(stream: IO[bytes], end: int) -> int:
    stream.seek(0)
    return sum(stream.read(min(CHUNK, end - start)).count(b"\n") for start in range(0, end, CHUNK))


def _checksum(stream: IO[bytes], offset: int) -> str:
    stream.seek(max(0, offset - CHECKSUM_BYTES))
    return hashlib.sha256(stream.read(min(CHECKSUM_BYTES, offset))).hexdigest()[:16]


def _last_line_end(stream: IO[bytes]) -> int:
    """The byte after the last whole line; a line that is being written is left for the next capture."""
    end = stream.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - (64 << 10))
        stream.seek(start)
        found = stream.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _answer_hash(turns: list[Turn]) -> str:
    """The hash of the assistant's last answer, '' if a person spoke after it."""
    for turn in reversed(turns):
        if turn.role == "assistant":
            return ledger.text_hash(turn.text)
        if turn.role == "person":
            break
    return ""
