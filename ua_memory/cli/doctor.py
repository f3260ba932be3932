"""`ua-memory doctor`: what is wrong around the bank, and mending it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Check, Memory

doctor_app = verbs.new()


@doctor_app.command(cls=verbs.Verb)
def doctor(
    ctx: typer.Context,
    mend: Annotated[bool, typer.Option("--mend", help="Mend what can be mended.")] = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Find and mend what is wrong around the bank.

    Looks at git, the disk, unfinished writes, the history, the index, the embedding model and the
    daemon. The exit code is 12 if anything is left to mend.
    """
    from ua_memory.cli.format import Piece, Screen, emit
    from ua_memory.errors import ProblemsFound

    with context.opened(ctx) as (call, memory):
        checks = [*memory.doctor(mend=mend), _daemon(call, memory)]
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


def _daemon(call: Call, memory: Memory) -> Check:
    """Whether the bank's daemon answers, if it has one; without one every command does its own work."""
    from ua_memory.daemon import client
    from ua_memory.daemon.service import runs
    from ua_memory.memory import Check

    bank = memory.store.bank
    if not runs(bank.local):
        return Check("daemon", True, "none runs; the next search starts it")
    found = client.status(bank.root, call.env)
    if found is None:
        return Check("daemon", False, "it runs, but does not answer here", "ua-memory daemon restart")
    return Check("daemon", True, f"process {found['pid']} answers")
