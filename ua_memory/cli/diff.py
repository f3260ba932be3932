"""`ua-memory diff`: what a revision changed."""

from __future__ import annotations

from typing import Annotated

import typer

from ua_memory.cli import context, verbs

diff_app = verbs.new()


@diff_app.command(cls=verbs.Verb)
def diff(
    ctx: typer.Context,
    revision: Annotated[
        str | None,
        typer.Argument(
            metavar="[REVISION]",
            help="A revision, as log shows it; else what was edited by hand and is not committed yet.",
            show_default=False,
        ),
    ] = None,
    raw: verbs.Raw = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Show what a revision changed."""
    from ua_memory.cli.format import Screen, emit

    with context.opened(ctx) as (call, memory):
        text = memory.diff(revision)
        if call.as_json:
            emit(call, {**({"revision": revision} if revision else {}), "diff": text})
        elif text:
            Screen(call).diff(text, exact=raw)
        elif call.on_terminal:
            Screen(call).line(
                "No hand edits that are not committed." if revision is None else "It changed no file."
            )
