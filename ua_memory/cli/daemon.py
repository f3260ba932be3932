"""`ua-memory daemon`: start, stop and watch the process that keeps a bank warm."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.paths import Bank

daemon_app = verbs.new(
    no_args_is_help=True,
    help="The process that keeps the bank's index and model warm. Commands start it by themselves.",
)

STOPS, ENDS = 30.0, 5.0
"""Seconds in which it must have left; and, killed after that, have ended."""


@daemon_app.command(cls=verbs.Verb)
def start(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Start it, and wait until it answers."""
    from ua_memory.cli.starting import ensure

    with context.opened(ctx, lenient=True) as (call, memory):
        _tell(call, ensure(memory.store.bank, call.env), "Runs")


@daemon_app.command(cls=verbs.Verb)
def stop(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Stop it; a command under way is finished first."""
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
    """What it said of itself before it left; None if there was none. Busy if it does not leave."""
    from ua_memory.daemon import client
    from ua_memory.daemon.service import runs
    from ua_memory.errors import Busy

    found = client.status(bank.root, call.env)
    for how, seconds in ((signal.SIGTERM, STOPS), (signal.SIGKILL, ENDS)):
        deadline = time.monotonic() + seconds
        while runs(bank.local) and time.monotonic() < deadline:
            if how == signal.SIGKILL or client.stop(bank.root, call.env) is None:
                _signalled(bank, how)
            time.sleep(0.05)
    if runs(bank.local):
        raise Busy("the daemon does not leave", where=str(bank.root), mend="ua-memory daemon logs")
    return found


def _signalled(bank: Bank, how: signal.Signals) -> None:
    """Tell one that does not answer here: another XDG_RUNTIME_DIR, no socket any more, or frozen."""
    import contextlib
    import os

    from ua_memory.daemon.service import runs

    with contextlib.suppress(OSError, ValueError):
        number = int((bank.local / "daemon.lock").read_text())
        if runs(bank.local):  # whoever holds the lock has written it
            os.kill(number, how)
            os.kill(number, signal.SIGCONT)  # one that is frozen hears of nothing else


def _tell(call: Call, found: dict[str, Any] | None, did: str) -> None:
    from ua_memory.cli.format import Screen, count, emit

    if call.as_json:
        emit(call, {"running": found is not None and did == "Runs", **(found or {})})
    elif found is None:
        Screen(call).line("No daemon runs for this bank.")
    else:
        holds = "index and model warm" if found["warm"] else "nothing warm"
        served = count(found["commands"], "command")
        Screen(call).line(f"{did}: process {found['pid']} since {found['since']}, {served}, {holds}")
