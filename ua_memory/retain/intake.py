"""A transcript on its way in: whose it is, how full its context is, and which of its turns are new."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, cast

from ua_memory import tokens
from ua_memory.config import Config
from ua_memory.facts import Said
from ua_memory.retain import through
from ua_memory.store import Store
from ua_memory.transcripts import Reading, read
from ua_memory.transcripts.turns import Session, Turn
from ua_memory.wording import counted

AGAIN_AFTER = 20_000
"""After a flush, so many new tokens of context make the next one due."""
UNDONE = "a flush of this session was undone; --force reads again what it had read"
_COUNTED = 4
"""So many context windows are counted by ourselves at most: more is known to be too much."""


@dataclass(frozen=True, slots=True)
class Due:
    """Whether a context's size calls for a flush: `size` tokens now, `fires` at `threshold`. `reported` tells
    whether the client wrote the size down, or we counted it."""

    fires: bool
    size: int
    threshold: int
    reported: bool = True

    def __str__(self) -> str:
        about = "" if self.reported else "about "
        return f"{about}{self.size:,} tokens, flushes at {self.threshold:,}"


@dataclass(frozen=True, slots=True)
class Intake:
    """A transcript that was looked at. `turns` are those that no flush has read; none where it is not due.
    `silent` says that nobody ever said anything in it."""

    session: Session
    due: Due
    turns: tuple[Turn, ...] = ()
    notes: tuple[str, ...] = ()
    silent: bool = False


def due(size: int, last: int | None, threshold: int, *, reported: bool = True) -> Due:
    """At the threshold, then every 20,000 new tokens; one that shrank was compacted, and counts anew."""
    at = threshold if last is None or last > size else max(threshold, last + AGAIN_AFTER)
    return Due(size >= at, size, at, reported)


def take_in(
    store: Store,
    stream: IO[bytes],
    *,
    client: str | None = None,
    session: str | None = None,
    force: bool = False,
) -> Intake:
    """Read a transcript from where the stream stands. Its turns are read only if a flush is due, or forced.

    `client` and `session` go before what the transcript says of itself. Malformed for what is none, Usage
    for a client that cannot stand in a heading.
    """
    with _rereadable(stream) as again:
        return _taken_in(store, again, client, session, force)


def _taken_in(
    store: Store, stream: IO[bytes], client: str | None, session: str | None, force: bool
) -> Intake:
    start = stream.tell()
    reading = read(stream)
    own = reading.session
    whose = replace(own, client=client or own.client, session=session or own.session)
    # Without a session id its first turn names it, since "the session without an id" may be any.
    nameless = not whose.session
    if nameless:
        whose = replace(whose, session=next((turn.id for turn in through.chained(reading)), ""))
    _ = Said(store.now(), whose.client, "agent", through.short(whose.session) or None).heading
    now = _due(store, whose, reading)
    if not now.fires and not force:
        return Intake(whose, now, notes=tuple(_bounded(store)))
    read_to, undone = through.ledger(store, whose)
    # What its owner took back comes only at their word: else each flush would bring it again.
    left = [UNDONE] if undone and not force else []
    read_to |= set() if force else undone
    if nameless:
        turns = through.unread(through.chained(reading), read_to)
    else:
        known = read_to if read_to or force else through.elsewhere(store, whose)
        if known:
            stream.seek(start)
            reading = read(stream, since=through.bases(known))
        turns = list(through.unsaid(reading, known, reading.reached))
    notes = (*_bounded(store), *left, *_notes(reading))
    return Intake(whose, now, tuple(turns), notes, silent=not turns and not read_to)


def _bounded(store: Store) -> Iterator[str]:
    wanted, window = store.config.truncation_threshold, store.config.context_window
    if wanted > window and wanted != Config().truncation_threshold:
        yield f"the threshold of {wanted:,} tokens is beyond the context window, which bounds it: {window:,}"


def _due(store: Store, session: Session, reading: Reading) -> Due:
    config = store.config
    size = reading.usage.context
    reported = size is not None
    if size is None:
        size = _counted(reading.context(), _COUNTED * config.context_window)
    threshold = min(config.truncation_threshold, config.context_window)
    return due(size, through.size_at_last_flush(store, session), threshold, reported=reported)


def _counted(pieces: Iterator[str], enough: int) -> int:
    total = 0
    for piece in pieces:
        total += tokens.count(piece)
        if total >= enough:
            break
    return total


def _notes(reading: Reading) -> Iterator[str]:
    broken = reading.broken - reading.cut
    if broken:
        first = reading.problems[: min(broken, 3)]  # the half-written one is the last
        lines = ", ".join(str(problem.line) for problem in first) + (" …" if broken > len(first) else "")
        yield f"{counted(broken, 'line')} of the transcript cannot be read ({lines})"
    if reading.undecoded:
        what = f"{reading.undecoded} byte{' is' if reading.undecoded == 1 else 's are'} not UTF-8"
        yield f"{what}, and stand as \ufffd (Latin-1? iconv -f latin1 -t utf-8 FILE | ua-memory flush -)"
    if reading.cut:
        yield "the last line of the transcript is half written; the next flush reads it"


@contextmanager
def _rereadable(stream: IO[bytes]) -> Iterator[IO[bytes]]:
    """The stream, or a copy of one that cannot be read twice."""
    try:
        seekable = stream.seekable()
    except (AttributeError, ValueError):
        seekable = False
    if seekable:
        yield stream
        return
    with tempfile.SpooledTemporaryFile(max_size=4 << 20) as copy:
        while data := stream.read(1 << 20):
            copy.write(data)
        copy.seek(0)
        yield cast(IO[bytes], copy)
