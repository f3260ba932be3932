"""`ua-memory daemon`: start, stop and watch the process that keeps a bank warm."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ua_memory.cli.call import Call
    from ua_memory.daemon.client import Daemon
    from ua_memory.paths import Bank

daemon_app = verbs.new(
    no_args_is_help=True,
    help="The process that keeps the bank's index and model warm. Commands start it by themselves.",
)

STOPS = 30.0
"""Seconds in which it must have left."""


@daemon_app.command(cls=verbs.Verb)
def start(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Start it, and wait until it answers."""
    from ua_memory.cli.starting import ensure

    with context.opened(ctx, lenient=True) as (call, memory):
        _tell(call, ensure(memory.store.bank, call.env), "Runs")


@daemon_app.command(cls=verbs.Verb)
def stop(
    ctx: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="The daemons of all banks.")] = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Stop it; a command under way is finished first."""
    if every:
        _stop_all(context.call_of(ctx))
        return
    with context.opened(ctx, lenient=True) as (call, memory):
        _tell(call, _stopped(memory.store.bank, call), "Stopped")


@daemon_app.command(cls=verbs.Verb)
def restart(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Stop it, and start it anew."""
    from ua_memory.cli.starting import ensure

    with context.opened(ctx, lenient=True) as (call, memory):
        _stopped(memory.store.bank, call)
        _tell(call, ensure(memory.store.bank, call.env), "Runs")


@daemon_app.command(cls=verbs.Verb)
def status(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Show whether it runs, since when, and what it holds."""
    from ua_memory.daemon import client
    from ua_memory.daemon.service import runs
    from ua_memory.errors import Busy

    with context.opened(ctx, lenient=True) as (call, memory):
        found, local = client.status(memory.store.bank.root, call.env), memory.store.bank.local
        if found is None and runs(local):
            what = "a daemon is there, and does not answer"
            raise Busy(what, where=str(local / "daemon.lock"), mend="ua-memory daemon restart")
        _tell(call, found, "Runs")


@daemon_app.command("list", cls=verbs.Verb)
def list_(ctx: typer.Context, as_json: verbs.Json = False) -> None:
    """List the daemons of all banks."""
    from ua_memory.daemon import client

    call = context.call_of(ctx)
    _listed(call, client.every(call.env), "No daemon runs.")


@daemon_app.command(cls=verbs.Verb)
def run(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Be the daemon, in the foreground, until Ctrl-C."""
    from ua_memory.cli import serving
    from ua_memory.cli.format import note
    from ua_memory.daemon.service import AlreadyRuns

    with context.opened(ctx, lenient=True) as (call, memory):
        try:
            why = serving.serve(call, memory)
        except AlreadyRuns:
            why = "this bank has a daemon already"
        if call.terminals:
            note(call, f"the daemon left: {why}")


@daemon_app.command(cls=verbs.Verb)
def logs(
    ctx: typer.Context,
    lines: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", min=1, max=10_000, help="So many of the newest.")
    ] = 20,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Print its log."""
    from ua_memory.cli.format import Screen, emit
    from ua_memory.daemon.log import Log

    with context.opened(ctx, lenient=True) as (call, memory):
        log = Log(memory.store.bank.local)
        rows = log.tail(lines)
        if call.as_json:
            emit(call, {"log": str(log.file), "lines": rows})
        elif rows:
            Screen(call).raw("\n".join(rows))


def _stopped(bank: Bank, call: Call) -> dict[str, Any] | None:
    """What it said of itself before it left, or only its process id if it did not answer; None if there was
    none. Busy if it does not leave."""
    from ua_memory.daemon import client
    from ua_memory.daemon.service import holder, runs
    from ua_memory.errors import Busy

    found, pid = client.status(bank.root, call.env), holder(bank.local)
    for how, seconds in ((signal.SIGTERM, STOPS), (signal.SIGKILL, client.ENDS)):
        deadline = time.monotonic() + seconds
        while runs(bank.local) and time.monotonic() < deadline:
            # It may listen where another XDG_RUNTIME_DIR says, have no socket any more, or be frozen.
            if how == signal.SIGKILL or found is None or client.stop(bank.root, call.env) is None:
                client.wake(holder(bank.local), how)
            time.sleep(0.05)
    if runs(bank.local):
        raise Busy("the daemon does not leave", where=str(bank.root), mend="ua-memory daemon logs")
    return found or ({"pid": pid} if pid else None)


def _stop_all(call: Call) -> None:
    """Stop the daemons of all banks. Busy names those that do not leave."""
    from ua_memory.daemon import client
    from ua_memory.errors import Busy

    found = client.every(call.env)
    stay = [one for one in found if not client.end(one, STOPS)]
    _listed(call, [one for one in found if one not in stay], "No daemon runs.", "Stopped: ")
    if stay:
        raise Busy("does not leave", where=", ".join(f"process {one.pid}" for one in stay), mend="kill it")


def _listed(call: Call, found: Sequence[Daemon], none: str, did: str = "") -> None:
    from ua_memory.cli.format import Screen, emit

    if call.as_json:
        rows = [
            {"pid": one.pid, "bank": one.bank, "socket": one.socket, "answers": one.said is not None}
            for one in found
        ]
        emit(call, {"daemons": rows})
        return
    for one in found:
        said = f"since {one.said['since']}" if one.said else "does not answer"
        Screen(call).line(f"{did}process {one.pid}, {one.bank or one.socket}, {said}")
    if not found:
        Screen(call).line(none)


def _tell(call: Call, found: dict[str, Any] | None, did: str) -> None:
    from ua_memory.cli.format import Screen, count, emit

    if call.as_json:
        emit(call, {"running": found is not None and did == "Runs", **(found or {})})
    elif found is None:
        Screen(call).line("No daemon runs for this bank.")
    elif "since" not in found:
        Screen(call).line(f"{did}: process {found['pid']}, which did not answer")
    else:
        holds = "index and model warm" if found["warm"] else "nothing warm"
        served = count(found["commands"], "command")
        Screen(call).line(f"{did}: process {found['pid']} since {found['since']}, {served}, {holds}")
