"""`flush` and `queue`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from ua_memory import caller, discovery
from ua_memory.cli import app
from ua_memory.daemon import spawn
from ua_memory.daemon.spawn import runs
from ua_memory.errors import Malformed, NotFound, Usage
from ua_memory.hooks.capture import queue_ended_sessions
from ua_memory.views import flushed, output
from ua_memory.views.output import Screen, ago, count, emit, note, progress

if TYPE_CHECKING:
    from ua_memory.caller import Call
    from ua_memory.memory import Memory
    from ua_memory.retain.flush import Flush, FlushedSession
    from ua_memory.retain.queue import QueueEntry, TextItem
    from ua_memory.retain.retain import RetainResult


# -- flush -------------------------------------------------------------------------------------------------
# `ua-memory flush`: save what matters of a conversation before its context is reset.


flush_app = app.new()

Transcript = Annotated[
    str | None,
    typer.Argument(
        metavar="[TRANSCRIPT | -]",
        help="A client's transcript (default: standard input, else what waits).",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Flush below the threshold too.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be kept, and what a model would cost.")
]
Detach = Annotated[
    bool, typer.Option("--detach/--wait", help="Queue it and return; the work continues in the background.")
]
Client = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The client (default: detected).", show_default=False),
]


@flush_app.command(cls=app.Verb)
def flush(
    ctx: typer.Context,
    transcript: Transcript = None,
    force: Force = False,
    dry_run: DryRun = False,
    detach: Detach = False,
    session: app.Session = None,
    client: Client = None,
    behind: Annotated[bool, typer.Option("--behind", hidden=True)] = False,
    as_json: app.Json = False,
    bank: app.Bank = None,
) -> None:
    """Save what matters from a conversation.

    Below the threshold (UA_TRUNCATION_THRESHOLD) it says so and does nothing. Only what no flush has read
    counts. With a model (ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL) a sub-agent reads the conversation and
    writes the facts; without one the speakers' own sentences are kept. Nothing is lost if the model fails:
    the turns wait for the next flush.
    """
    if detach:
        spawn.survive()
    with caller.opened(ctx) as (call, memory), _stream(call, memory, transcript) as stream:
        chosen: dict[str, Any] = {"force": force, "session": session, "client": client}
        if stream is None and memory.config.enabled and not dry_run:
            _take_up(call, memory)
        if dry_run:
            _preview(call, memory, stream, chosen)
        elif detach:
            found = memory.conversations.enqueue(stream, model=call.endpoint, **chosen)
            _told(
                call,
                memory,
                found,
                spawn.start_detached(memory.store.bank, call.env)
                if memory.config.enabled and memory.queue.conversations()
                else None,
            )
        else:
            _flush(call, memory, stream, chosen)
            if behind:
                _index(memory)


def _index(memory: Memory) -> None:
    """Have the next session's start, too, find its words at hand where no daemon has read what is new."""
    if not runs(memory.store.bank.local):
        memory.search_many(["what was kept"], by_words=True)


def _take_up(call: Call, memory: Memory) -> None:
    """Have what hooks left behind wait: sessions that have ended or were killed, or are being compacted."""
    queue_ended_sessions(memory, lambda text: note(call, text), model=bool(call.endpoint))


@contextmanager
def _stream(call: Call, memory: Memory, given: str | None) -> Iterator[IO[bytes] | None]:
    """The transcript, or None where nothing was given: no argument, and nothing on standard input."""
    if not memory.config.enabled:
        yield None
    elif given is None or given == "-":
        empty = given is None and (call.reads_terminal or not _begins(call.stdin))
        yield None if empty else call.stdin
    else:
        path = caller.absolute(call, given)
        try:
            file = discovery.open_regular(path)
        except IsADirectoryError as error:
            raise Usage("a folder is not a transcript", where=given, hint="name the file in it") from error
        except FileNotFoundError as error:
            raise NotFound("no such file", where=given, hint="ua-memory flush --help") from error
        except OSError as error:
            why = f"cannot be read: {error.strerror or error}"
            raise Malformed(why, where=given, hint="name a file, or give it on standard input") from error
        with file:
            yield file


def _begins(stream: Any) -> bool:
    """Whether anything comes from a stream, without taking it."""
    if stream.seekable():
        start = stream.tell()
        found = bool(stream.read(1))
        stream.seek(start)
        return found
    return bool(stream.peek(1))


def _flush(call: Call, memory: Memory, stream: IO[bytes] | None, chosen: dict[str, Any]) -> None:
    done: list[FlushedSession] = []
    found: Flush | None = None
    model = call.endpoint
    try:
        with progress(call, "Reading turns") as tell:
            found = memory.flush(stream, model=model, tell=tell, done=done.append, **chosen)
    except KeyboardInterrupt:
        if waiting := len(memory.queue.conversations()):
            note(call, f"interrupted; {count(waiting, 'conversation')} in the queue (ua-memory queue list)")
        raise
    finally:  # what was flushed before another one failed is told in any case
        if call.as_json:
            if found or done:
                emit(call, flushed.flushed_shape(found, done, len(memory.queue.conversations())))
        else:
            for one in done:
                flushed.show_flushed(call, one)
    if not call.as_json:
        flushed.conclude_flush(call, found, done, bool(model))


def _preview(call: Call, memory: Memory, stream: IO[bytes] | None, chosen: dict[str, Any]) -> None:
    found, cost = memory.conversations.preview(stream, model=call.endpoint, **chosen)
    if call.as_json:
        emit(call, flushed.shape_of_preview(found, cost))
    else:
        flushed.show_preview(call, found, cost)


def _told(call: Call, memory: Memory, found: Flush | None, log: str | None) -> None:
    waiting = memory.queue.conversations()
    if call.as_json:
        emit(call, {**flushed.flushed_shape(found, [], len(waiting)), **({"log": log} if log else {})})
    elif log:
        turns = sum(len(each.turns) for each in waiting)
        Screen(call).line(
            f"{count(turns, 'turn')} queued; the flush continues in the background and writes to ",
            (log, "path"),
        )
    else:
        flushed.conclude_flush(call, found, [], True)


# -- queue -------------------------------------------------------------------------------------------------
# `ua-memory queue`: conversations that wait for their flush, and texts that wait to be retained.


queue_app = app.new(no_args_is_help=True, help="Conversations and texts that wait for a model.")

Keys = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY...]", help="Only these (default: all).", show_default=False),
]


@app.verb(queue_app, "list")
def queue_list(call: Call, memory: Memory) -> None:
    """List what waits, how long, and why."""
    waiting = memory.queue.list()
    if call.as_json:
        emit(call, {"waiting": [shape(one) for one in waiting]})
        return
    screen, now = Screen(call), memory.store.now()
    if not waiting:
        screen.line("Nothing waits.")
    for one in waiting:
        since = ago(one.since.astimezone(now.tzinfo), now) if one.since else "at some time"
        how = "captured since" if one.gathers(now) else "queued"
        screen.item([(one.key, "id"), "  "], f"{what(one)}, {how} {since}")
        if one.reason:
            screen.item("  ", (why(one), "bad" if one.aside else "warn"))


@app.verb(queue_app, "retry")
def queue_retry(call: Call, memory: Memory, key: Keys = None) -> None:
    """Flush and retain what waits, now."""
    texts = [each for each in key or () if memory.queue.is_text(each)]
    turns = [each for each in key or () if each not in texts]
    drawn: Sequence[RetainResult] = ()
    if texts or (not key and memory.queue.texts()):
        with progress(call, "Reading chunks") as tell:
            drawn = memory.queue.retry_texts(texts, model=call.endpoint, tell=tell)
    more = {"retained": [flushed.retained_shape(one) for one in drawn]} if drawn or texts else {}
    if drawn and not call.as_json:
        flushed.show_retained(call, drawn, modelled=call.endpoint is not None)
    if turns or (not key and (memory.queue.conversations() or not drawn)):
        _flush_waiting(call, memory, turns, more)
    elif call.as_json:
        emit(call, {**flushed.flushed_shape(None, [], len(memory.queue.conversations())), **more})


def _flush_waiting(call: Call, memory: Memory, key: list[str], more: dict[str, Any]) -> None:
    done: list[FlushedSession] = []
    model = call.endpoint
    off = None if memory.config.enabled else memory.flush()  # it says so, and does nothing
    try:
        with progress(call, "Reading turns") as tell:
            memory.queue.retry_conversations(key or (), model=model, tell=tell, done=done.append)
    finally:
        if call.as_json and done:
            emit(call, {**flushed.flushed_shape(off, done, len(memory.queue.conversations())), **more})
        for one in () if call.as_json else done:
            flushed.show_flushed(call, one)
    if not call.as_json:
        flushed.conclude_flush(call, off, done, bool(model))
    elif not done:
        emit(call, {**flushed.flushed_shape(off, done, len(memory.queue.conversations())), **more})


@app.verb(queue_app, "drop")
def queue_drop(
    call: Call,
    memory: Memory,
    key: Annotated[list[str], typer.Argument(metavar="KEY...", help="What to discard.", show_default=False)],
) -> None:
    """Discard what waits."""
    gone = [memory.queue.drop(one) for one in key]
    if call.as_json:
        emit(call, {"dropped": [shape(one) for one in gone]})
    for one in () if call.as_json else gone:
        Screen(call).line(f"Discarded {what(one)} of ", (one.key, "id"))


def what(one: QueueEntry) -> str:
    """What waits, in words."""
    item: TextItem | None = getattr(one, "item", None)
    if item is None:
        return count(len(one.turns), "turn")
    return f"{item.document_id or 'a text'} ({count(len(item.text), 'character')})"


def why(one: QueueEntry) -> str:
    """Why a session waits still, and what comes next."""
    if one.broken:
        return f"set aside: {one.broken}"
    told = f"failed {count(one.tries, 'time')}, last: {one.reason}"
    if one.aside:
        return f"set aside: {told}; try again: ua-memory queue retry {one.key}"
    return told


def shape(one: QueueEntry) -> dict[str, Any]:
    known = {"since": one.since.isoformat() if one.since else "", "reason": one.reason, "tokens": one.size}
    known |= {"gathers": one.open or None, "aside": one.aside or None}
    known |= {"again": one.tried.again.isoformat() if one.tried.again else ""}
    item: TextItem | None = getattr(one, "item", None)
    text = {"documentId": item.document_id, "characters": len(item.text)} if item else {}
    return {
        "key": one.key,
        "client": one.session.client,
        "session": one.session.session,
        "turns": len(one.turns),
        "tries": one.tries,
        **text,
        **output.without_empty(known),
    }
