"""`ua-memory log`: what was done, read like a diary."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Revision

log_app = verbs.new()
OURS = "ua-memory"


@log_app.command(cls=verbs.Verb)
def log(
    ctx: typer.Context,
    about: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH | ^ID]", help="Only what touched this file or fact.", show_default=False
        ),
    ] = None,
    number: Annotated[
        int, typer.Option("-n", "--limit", metavar="N", min=1, help="At most so many revisions.")
    ] = 20,
    op: Annotated[
        str | None, typer.Option(metavar="WORD", help="Only this operation: insert, adopt, undo, …")
    ] = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Tell what was done, newest first.

    Hand edits stand here under the name of the person who made them.
    """
    from ua_memory.cli import shapes
    from ua_memory.cli.format import emit

    with context.opened(ctx) as (call, memory):
        done = memory.log(about, op=op, limit=number)
        if call.as_json:
            emit(call, {"revisions": [shapes.revision(one) for one in done]})
        else:
            _tell(call, done, memory.store.now())


def _tell(call: Call, done: list[Revision], now: datetime) -> None:
    from ua_memory.cli.format import Piece, Screen
    from ua_memory.cli.times import day_title

    screen, day = Screen(call), None
    if not done:
        screen.line("No revisions.")
    for one in done:
        when = one.when.astimezone(now.tzinfo)
        if when.date() != day:
            if day is not None:
                screen.line()
            day = when.date()
            screen.line((day_title(day, now.date() if screen.fancy else date.min), "strong"))
        label: list[Piece] = [(f"  {when:%H:%M}  ", "faint"), (one.id[:7], "rev"), "  "]
        screen.item(label, one.subject, ("" if one.author == OURS else f"  — {one.author}", "good"))
