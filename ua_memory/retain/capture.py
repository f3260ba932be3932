"""A session that goes on, heard bit by bit: what its transcript has gained is let wait, each turn once.

A transcript lags behind its client: what was said last may stand in no file yet when the client tells of it.
It is taken from the client's own message then, under an id that says what it follows and what it says
(`entry~hash`). The transcript's entry with these words, which comes later, is known by that and left out.
A hearing goes on at the byte where the last one ended, as long as what stands before it is the same.
"""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import dataclass, replace
from datetime import UTC
from typing import IO

from ua_memory.errors import NotFound
from ua_memory.retain import ledger
from ua_memory.retain.flush import Flusher, due
from ua_memory.retain.queue import QueueEntry, key_of
from ua_memory.store.store import Store
from ua_memory.text.noise import typed, uttered
from ua_memory.transcripts.reader import CLIENTS, TranscriptReading, read
from ua_memory.transcripts.turns import Role, Session, Turn

CHECKED = 256
"""Bytes before a place in a transcript by which it is known again."""
TAIL = 32 << 20
"""So many new bytes are read at most without the rest of the transcript; of more all of it is read."""


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """Where a hearing ended: the byte, a hash of what stands before it, the last turn's id, and a hash of the
    words that the client told."""

    offset: int = 0
    check: str = ""
    last: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True)
class CaptureResult:
    """What a hearing brought: how many new turns, where it ended, and whether a flush is due."""

    turns: int
    spot: ReadPosition
    due: bool


@dataclass(frozen=True, slots=True)
class _NewTurns:
    """Turns nobody has heard, the ids that they follow, the context's size if told, and where they end."""

    turns: list[Turn]
    reached: set[str]
    size: int | None
    spot: ReadPosition


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
    waiting = _waiting(flusher, key)
    known = {turn.id for turn in waiting.turns} if waiting else set()
    ids = known.union(*ledger.ledger(store, session))
    if not ids and not spot.offset:
        ids = _of_others(flusher, session)
    new = _new(transcript, session, ids, spot) if transcript else _NewTurns([], {spot.last}, None, spot)
    turns = [turn for turn in ledger.without_recorded(new.turns, ids, new.reached) if turn.id not in ids]
    text = uttered(said)
    words = ledger.words_hash(text) if text else ""
    if transcript and words and not turns and not spot.said:
        # How far it was heard is not known any more: its last words may be among what was flushed.
        transcript.seek(0)
        words = "" if _last_said(list(read(transcript))) == words else words
    if words and (turns or words != spot.said) and words != _last_said(new.turns):
        turns.append(Turn(f"{_last(new)}{ledger.FOLLOWS}{words}", "assistant", text, store.now()))
    if turns:
        waiting = flusher.put(session, turns, new.size, more=True) or waiting
    fires = waiting is not None and (close or (waiting.open and _fires(store, session, new.size)))
    if fires:
        flusher.queue.close(key, store.now())
    return CaptureResult(len(turns), replace(new.spot, said=words or spot.said), fires)


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


def _waiting(flusher: Flusher, key: str) -> QueueEntry | None:
    try:
        return flusher.queue.get(key)
    except NotFound:
        return None


def _of_others(flusher: Flusher, session: Session) -> set[str]:
    """What was heard of other sessions, one of which this may be a fork of."""
    others = (each.turns for each in flusher.queue.all() if each.session.client == session.client)
    return ledger.unique(turn.id for turns in others for turn in turns) | ledger.elsewhere(
        flusher.store, session
    )


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
    return _NewTurns(turns, _reached(reading, spot if behind else None), reading.usage.context, end_at)


def _reached(reading: TranscriptReading, spot: ReadPosition | None) -> set[str]:
    if reading.resumed:
        return reading.reached
    return {spot.last if spot else ""}


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
