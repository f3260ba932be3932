"""`ua-memory hook`: what an agent's client is told when something happens there.

A hook never stands in the way: whatever goes wrong, nothing is printed, the exit code is 0, and why stands in
the bank's `local/hook.log`. The fast path reads standard input before it comes here.
"""

from __future__ import annotations

from typing import Annotated

import typer

from ua_memory.cli import context, fast, happening, verbs

hook_app = verbs.new()

Client = Annotated[
    str,
    typer.Option(metavar="NAME", help="Who calls; else the event's shape tells.", show_default=False),
]


@hook_app.command(cls=verbs.Verb, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def hook(
    ctx: typer.Context,
    client: Client = "",
    pid: Annotated[int, typer.Option(hidden=True)] = 0,
    modelled: Annotated[bool, typer.Option("--modelled", hidden=True)] = False,
    bank: verbs.Bank = None,
) -> None:
    """Answer an event of an agent's client.

    The client gives it as JSON on standard input: Claude Code, Codex and others
    that say the same by SessionStart, UserPromptSubmit, Stop, PreCompact and
    SessionEnd; Gemini CLI by names of its own for them. A start is answered with
    core memory, the pages and what is open, a prompt with what memory holds on it.
    What was said waits for the flush after each answer; a compaction and the end of
    a session hand it over. Whatever goes wrong, nothing is printed, the exit code
    is 0, and local/hook.log says why. `ua-memory hook shell zsh` (or bash)
    prints functions for that shell.
    """
    call = context.call_of(ctx)
    if ctx.args[:1] == ["shell"]:
        from ua_memory.cli import shell

        shell.functions(call, " ".join(ctx.args[1:]))
    elif call.reads_terminal:
        call.stderr.write("ua-memory: a client's hook calls this, with JSON on standard input\n")
    elif happening.answered(call, client, pid, modelled):
        raise typer.Exit(fast.HAND_OVER)
