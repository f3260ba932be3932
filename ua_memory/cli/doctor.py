"""`ua-memory doctor`: what is wrong around the bank, and mending it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

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

    with context.opened(ctx, lenient=True) as (call, memory):
        checks = [*memory.doctor(mend=mend), *_daemon(call, memory)]
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


def _daemon(call: Call, memory: Memory) -> Iterator[Check]:
    """Whether the bank's daemon answers, if it has one, and whether its watch is alive; without one every
    command does its own work."""
    from ua_memory.daemon import client
    from ua_memory.daemon.service import holder, runs
    from ua_memory.memory import Check

    bank = memory.store.bank
    if not runs(bank.local):
        yield Check("daemon", True, "none runs; the next search starts it")
        return
    found = client.status(bank.root, call.env)
    if found is None:
        seen = f"process {holder(bank.local)} runs, but does not answer"
        yield Check("daemon", False, seen, "ua-memory daemon restart")
        return
    yield Check("daemon", True, f"process {found['pid']} answers")
    yield _watch(found["watch"])


def _watch(found: dict[str, Any]) -> Check:
    """Whether the daemon hears of changes. Where it cannot, on a shared file system, that is no fault."""
    from ua_memory.memory import Check

    if found["mode"] == "events":
        return Check("watch", True, f"{found['folders']} folders by events, heartbeat {found['heartbeat']}")
    why = found["why"]
    limited = "limit" in why
    mend = "raise fs.inotify.max_user_watches and max_user_instances (sysctl)" if limited else ""
    seen = f"no events ({why}); the files are looked at now and then"
    return Check("watch", "unheard" in why, seen, mend or "ua-memory daemon restart")
