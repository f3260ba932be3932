"""`ua-memory doctor`: what is wrong around the bank, and mending it."""

from __future__ import annotations

from typing import Annotated

import typer

from ua_memory.cli import context, verbs

doctor_app = verbs.new()


@doctor_app.command(cls=verbs.Verb)
def doctor(
    ctx: typer.Context,
    mend: Annotated[bool, typer.Option("--mend", help="Mend what can be mended.")] = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Find and mend what is wrong around the bank.

    Looks at git, the disk, unfinished writes, the history, the index and the embedding model. The exit
    code is 12 if anything is left to mend.
    """
    from ua_memory.cli.format import Piece, Screen, emit
    from ua_memory.errors import ProblemsFound

    with context.opened(ctx) as (call, memory):
        checks = memory.doctor(mend=mend)
    if call.as_json:
        emit(
            call,
            {
                "checks": [
                    {
                        "name": c.name,
                        "ok": c.ok,
                        "seen": c.seen,
                        **({"mend": c.mend} if c.mend and not c.ok else {}),
                        "mended": c.mended,
                    }
                    for c in checks
                ]
            },
        )
    else:
        rows: list[list[Piece]] = []
        for check in checks:
            word: Piece = (
                ("mended", "good") if check.mended else ("ok", "good") if check.ok else ("wrong", "bad")
            )
            rows.append(
                [
                    word,
                    (check.name, "strong"),
                    check.seen + (f"\nmend: {check.mend}" if check.mend and not check.ok else ""),
                ]
            )
        Screen(call).rows(rows)
    if not all(check.ok for check in checks):
        raise typer.Exit(ProblemsFound.exit_code)
