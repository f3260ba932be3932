"""`ua-memory queue`: conversations that wait for their flush, and texts that wait to be retained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Flushed, Item, Memory, Retained, Waiting

queue_app = verbs.new(no_args_is_help=True, help="Conversations and texts that wait for their model.")

Keys = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY...]", help="Only these; else all.", show_default=False)
]


@queue_app.command("list", cls=verbs.Verb)
def queue_list(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """List what waits, how long, and why."""
    from ua_memory.cli.format import Screen, emit
    from ua_memory.cli.times import ago

    with context.opened(ctx) as (call, memory):
        waiting: list[Waiting] = [*memory.waiting(), *memory.waiting_texts()]
        if call.as_json:
            emit(call, {"waiting": [shape(one) for one in waiting]})
            return
        screen, now = Screen(call), memory.store.now()
        if not waiting:
            screen.line("Nothing waits.")
        for one in waiting:
            since = ago(one.since.astimezone(now.tzinfo), now) if one.since else "at some time"
            how = "gathers since" if one.gathers(now) else "handed over"
            screen.item([(one.key, "id"), "  "], f"{what(one)}, {how} {since}")
            if one.reason:
                screen.item("  ", (why(one), "bad" if one.aside else "warn"))


@queue_app.command("retry", cls=verbs.Verb)
def queue_retry(
    ctx: typer.Context, key: Keys = None, as_json: verbs.Json = False, bank: verbs.Bank = None
) -> None:
    """Flush and retain what waits, now."""
    from ua_memory.cli import kept, retained
    from ua_memory.cli.format import emit
    from ua_memory.cli.progress import progress

    with context.opened(ctx) as (call, memory):
        texts = [each for each in key or () if memory.waits_as_text(each)]
        turns = [each for each in key or () if each not in texts]
        drawn: list[Retained] = []
        if texts or (not key and memory.waiting_texts()):
            with progress(call, "Reading chunks") as tell:
                drawn = memory.retain_waiting(texts, model=call.endpoint, tell=tell)
        more = {"retained": [retained.shape(one) for one in drawn]} if drawn or texts else {}
        if drawn and not call.as_json:
            retained.show(call, drawn, modelled=call.endpoint is not None)
        if turns or (not key and (memory.waiting() or not drawn)):
            _flush(call, memory, turns, more)
        elif call.as_json:
            emit(call, {**kept.shape(None, [], len(memory.waiting())), **more})


def _flush(call: Call, memory: Memory, key: list[str], more: dict[str, Any]) -> None:
    from ua_memory.cli import kept
    from ua_memory.cli.format import emit
    from ua_memory.cli.progress import progress

    done: list[Flushed] = []
    model = call.endpoint
    off = None if memory.config.enabled else memory.flush()  # it says so, and does nothing
    try:
        with progress(call, "Reading turns") as tell:
            memory.retry(key or (), model=model, tell=tell, done=done.append)
    finally:
        if call.as_json and done:
            emit(call, {**kept.shape(off, done, len(memory.waiting())), **more})
        for one in () if call.as_json else done:
            kept.show(call, one)
    if not call.as_json:
        kept.conclude(call, off, done, bool(model))
    elif not done:
        emit(call, {**kept.shape(off, done, len(memory.waiting())), **more})


@queue_app.command("drop", cls=verbs.Verb)
def queue_drop(
    ctx: typer.Context,
    key: Annotated[
        list[str], typer.Argument(metavar="KEY...", help="What to throw away.", show_default=False)
    ],
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Throw away what waits: nobody ever reads it."""
    from ua_memory.cli.format import Screen, emit

    with context.opened(ctx) as (call, memory):
        gone = [memory.drop_text(one) if memory.waits_as_text(one) else memory.drop(one) for one in key]
        if call.as_json:
            emit(call, {"dropped": [shape(one) for one in gone]})
        for one in () if call.as_json else gone:
            Screen(call).line(f"Dropped {what(one)} of ", (one.key, "id"))


def what(one: Waiting) -> str:
    """What waits, in words."""
    from ua_memory.cli.format import count

    item: Item | None = getattr(one, "item", None)
    if item is None:
        return count(len(one.turns), "turn")
    return f"{item.document_id or 'a text'} ({count(len(item.text), 'character')})"


def why(one: Waiting) -> str:
    """Why a session waits still, and what comes next."""
    from ua_memory.cli.format import count

    if one.broken:
        return f"set aside: {one.broken}"
    told = f"failed {count(one.tries, 'time')}, last: {one.reason}"
    if one.aside:
        return f"set aside: {told}; try again: ua-memory queue retry {one.key}"
    return told


def shape(one: Waiting) -> dict[str, Any]:
    from ua_memory.cli import shapes

    known = {"since": one.since.isoformat() if one.since else "", "reason": one.reason, "tokens": one.size}
    known |= {"gathers": one.open or None, "aside": one.aside or None}
    known |= {"again": one.tried.again.isoformat() if one.tried.again else ""}
    item: Item | None = getattr(one, "item", None)
    text = {"documentId": item.document_id, "characters": len(item.text)} if item else {}
    return {
        "key": one.key,
        "client": one.session.client,
        "session": one.session.session,
        "turns": len(one.turns),
        "tries": one.tries,
        **text,
        **shapes.without_empty(known),
    }
