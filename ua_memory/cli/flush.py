"""`ua-memory flush`: save what matters of a conversation before its context is reset."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Flush, Flushed, Memory

flush_app = verbs.new()

Transcript = Annotated[
    str | None,
    typer.Argument(
        metavar="[TRANSCRIPT | -]",
        help="A client's transcript; else standard input; else what waits.",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Flush below the threshold, too.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only show what would be kept, and what a model would cost.")
]
Detach = Annotated[
    bool, typer.Option("--detach/--wait", help="Hand over, and leave; the work goes on behind.")
]
Client = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The program it was held in; else what it says itself.", show_default=False
    ),
]


@flush_app.command(cls=verbs.Verb)
def flush(
    ctx: typer.Context,
    transcript: Transcript = None,
    force: Force = False,
    dry_run: DryRun = False,
    detach: Detach = False,
    session: verbs.Session = None,
    client: Client = None,
    behind: Annotated[bool, typer.Option("--behind", hidden=True)] = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Save what matters of a conversation.

    Below the threshold (UA_TRUNCATION_THRESHOLD) it says so and does nothing. Only what no flush has read
    counts. With a model (ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL) a sub-agent reads the conversation and
    phrases what is worth keeping; without one the speakers' own sentences are kept. Nothing said is lost
    if the model fails: it waits for the next flush.
    """
    from ua_memory.cli import detached

    if detach:
        detached.survive()
    with context.opened(ctx) as (call, memory), _stream(call, memory, transcript) as stream:
        chosen: dict[str, Any] = {"force": force, "session": session, "client": client}
        if stream is None and memory.config.enabled and not dry_run:
            _take_up(call, memory)
        if dry_run:
            _preview(call, memory, stream, chosen)
        elif detach:
            found = memory.hand_over(stream, model=call.endpoint, **chosen)
            _told(
                call,
                memory,
                found,
                detached.start(call, memory) if memory.config.enabled and memory.waiting() else None,
            )
        else:
            _flush(call, memory, stream, chosen)
            if behind:
                _index(memory)


def _index(memory: Memory) -> None:
    """Have the next session's start, too, find its words at hand where no daemon has read what is new."""
    from ua_memory.daemon.service import runs

    if not runs(memory.store.bank.local):
        memory.search_many(["what was kept"], by_words=True)


def _take_up(call: Call, memory: Memory) -> None:
    """Have what hooks left behind wait: sessions that have ended or were killed, or are being compacted."""
    from ua_memory.cli.format import note
    from ua_memory.cli.hearing import take_up

    take_up(memory, lambda text: note(call, text), model=bool(call.endpoint))


@contextmanager
def _stream(call: Call, memory: Memory, given: str | None) -> Iterator[IO[bytes] | None]:
    """The transcript, or None where nothing was given: no argument, and nothing on standard input."""
    from ua_memory import regular
    from ua_memory.errors import Malformed, NotFound, Usage

    if not memory.config.enabled:
        yield None
    elif given is None or given == "-":
        empty = given is None and (call.reads_terminal or not _begins(call.stdin))
        yield None if empty else call.stdin
    else:
        path = context.absolute(call, given)
        try:
            file = regular.opened(path)
        except IsADirectoryError as error:
            raise Usage("a folder is no transcript", where=given, mend="name the file in it") from error
        except FileNotFoundError as error:
            raise NotFound("no such file", where=given, mend="ua-memory flush --help") from error
        except OSError as error:
            why = f"cannot be read: {error.strerror or error}"
            raise Malformed(why, where=given, mend="name a file, or give it on standard input") from error
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
    from ua_memory.cli import kept
    from ua_memory.cli.format import count, emit, note
    from ua_memory.cli.progress import progress

    done: list[Flushed] = []
    found: Flush | None = None
    model = call.endpoint
    try:
        with progress(call, "Reading turns") as tell:
            found = memory.flush(stream, model=model, tell=tell, done=done.append, **chosen)
    except KeyboardInterrupt:
        if waiting := len(memory.waiting()):
            note(call, f"interrupted; {count(waiting, 'conversation')} in the queue (ua-memory queue list)")
        raise
    finally:  # what was flushed before another one failed is told in any case
        if call.as_json:
            if found or done:
                emit(call, kept.shape(found, done, len(memory.waiting())))
        else:
            for one in done:
                kept.show(call, one)
    if not call.as_json:
        kept.conclude(call, found, done, bool(model))


def _preview(call: Call, memory: Memory, stream: IO[bytes] | None, chosen: dict[str, Any]) -> None:
    from ua_memory.cli import kept
    from ua_memory.cli.format import emit

    found, cost = memory.preview(stream, model=call.endpoint, **chosen)
    if call.as_json:
        emit(call, kept.shape_of_preview(found, cost))
    else:
        kept.show_preview(call, found, cost)


def _told(call: Call, memory: Memory, found: Flush | None, log: str | None) -> None:
    from ua_memory.cli import kept
    from ua_memory.cli.format import Screen, count, emit

    waiting = memory.waiting()
    if call.as_json:
        emit(call, {**kept.shape(found, [], len(waiting)), **({"log": log} if log else {})})
    elif log:
        turns = sum(len(each.turns) for each in waiting)
        Screen(call).line(
            f"{count(turns, 'turn')} handed over; the flush goes on behind, and writes to ", (log, "path")
        )
    else:
        kept.conclude(call, found, [], True)
