"""`ua-memory get`: read from the bank."""

from __future__ import annotations

from typing import Annotated

import typer

from ua_memory.cli import context, verbs

get_app = verbs.new()


@get_app.command(cls=verbs.Verb)
def get(
    ctx: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            metavar="PATH[:FROM-TO] | ^ID",
            help="A file such as memory/2026-11-21.md, with lines if not all of it, or a fact's id; "
            "any form in which a command prints them.",
            show_default=False,
        ),
    ],
    raw: verbs.Raw = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Read a file, some of its lines, or a fact."""
    from ua_memory.cli import shapes
    from ua_memory.cli.format import Screen, emit
    from ua_memory.records import Place

    with context.opened(ctx) as (call, memory):
        read = memory.get(target)
        if call.as_json:
            at = shapes.place(Place(read.path, read.line, read.end), read.id)
            emit(call, {**at, "lines": read.lines, "text": read.text})
        elif read.text:
            Screen(call).raw(read.text, exact=raw)
