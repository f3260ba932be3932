"""`ua-memory explain`: how a query is read, without searching."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from datetime import datetime

    from ua_memory.cli.call import Call
    from ua_memory.memory import Explained

explain_app = verbs.new()


@explain_app.command(cls=verbs.Verb)
def explain(
    ctx: typer.Context,
    query: Annotated[
        list[str],
        typer.Argument(metavar="QUERY...", help="As it would be given to search.", show_default=False),
    ],
    now: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="As if asked then: 2026-11-21 or 2026-11-21T14:00; else now."),
    ] = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Show how a query is read: its time, whom it names, the terms it is looked up by.

    Nothing is searched and nothing indexed. What is read as a time is in docs/time.md.
    """
    from ua_memory.cli.format import emit
    from ua_memory.cli.times import parse_moment

    with context.opened(ctx) as (call, memory):
        asked = parse_moment(now, "--now", memory.store.now())
        found = memory.explain(" ".join(query), asked)
        if call.as_json:
            emit(call, shape(found))
        else:
            _show(call, found, asked)


def shape(found: Explained) -> dict[str, Any]:
    """What was read as JSON."""
    from ua_memory.cli import shapes

    time = {"start": found.time.start, "end": found.time.end} if found.time else None
    more = {
        "order": found.time.order,
        "phrases": list(found.phrases),
        "meant": dict(found.meant),
        "why": found.why,
    }
    return {
        "time": time,
        "entities": list(found.entities),
        "terms": list(found.terms),
        **shapes.without_empty(more),
    }


def _show(call: Call, found: Explained, asked: datetime) -> None:
    from ua_memory.cli.format import Piece, Screen, note

    rows: list[tuple[Piece, Piece]] = [(("time", "faint"), _days(found, asked))]
    if found.time.order:
        rows.append((("order", "faint"), f"the {found.time.order} first"))
    for title, words in (("names", found.entities), ("terms", found.terms), ("phrases", found.phrases)):
        if words or title != "phrases":
            rows.append(((title, "faint"), ", ".join(words) or "none"))
    taken = [f"{typed} for {word or 'a small word'}" for typed, word in found.meant.items()]
    rows += [(("taken", "faint"), ", ".join(taken))] if taken else []
    Screen(call).rows(rows)
    if found.why:
        note(call, found.why)


def _days(found: Explained, asked: datetime) -> str:
    """`Sunday 1 March 2026 to Sunday 31 May 2026`: for people the last day is the last."""
    from datetime import date, timedelta

    from ua_memory.cli.times import day_title

    first = date.fromisoformat(found.time.start) if found.time.start else None
    last = date.fromisoformat(found.time.end) - timedelta(days=1) if found.time.end else None
    if first and last:
        title = day_title(first, asked.date())
        return title if first == last else f"{title} to {day_title(last, asked.date())}"
    if first:
        return f"from {day_title(first, asked.date())} on"
    return f"up to {day_title(last, asked.date())}" if last else "none"
