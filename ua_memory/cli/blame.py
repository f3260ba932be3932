"""`ua-memory blame`: who wrote each line."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import BlameLine

blame_app = verbs.new()


@blame_app.command(cls=verbs.Verb)
def blame(
    ctx: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            metavar="PATH[:FROM-TO] | ^ID", help="A file, lines of it, or a fact's id.", show_default=False
        ),
    ],
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Show who wrote each line, and when."""
    from ua_memory.cli import shapes
    from ua_memory.cli.format import emit

    with context.opened(ctx) as (call, memory):
        lines = memory.blame(target)
        if call.as_json:
            emit(call, {"lines": [shapes.blame(line) for line in lines]})
        else:
            _tell(call, lines, memory.store.now())


def _tell(call: Call, lines: list[BlameLine], now: datetime) -> None:
    from ua_memory.cli.format import Piece, Screen

    screen = Screen(call)
    rows: list[list[Piece]] = []
    for one in lines:
        known = bool(one.revision.strip("0"))
        when = one.when.astimezone(now.tzinfo)
        revision: Piece = (one.revision[:7], "rev") if known else ("not yet", "faint")
        author: Piece = (one.author, "good" if one.author != "ua-memory" else "faint") if known else ""
        rows.append(
            [
                revision,
                (f"{when:%Y-%m-%d}" if known else "", "faint"),
                author,
                (f"{one.line:>3}", "faint"),
                one.text,
            ]
        )
    screen.rows(rows, gap=1 if screen.width < 60 else 2)
