"""`ua-memory hook`: what an agent's client is told when something happens there.

A hook never stands in the way: whatever goes wrong, nothing is printed, the exit code is 0, and why stands in
the bank's `local/hook.log`. The fast path reads standard input before it comes here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from pathlib import Path

    from ua_memory.cli.call import Call
    from ua_memory.clients import Event
    from ua_memory.memory import Memory

hook_app = verbs.new()

LOG = "hook.log"
ENOUGH = 0.35
"""The score from which on a hit is put into a prompt nobody searched for it with."""


@hook_app.command(cls=verbs.Verb, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def hook(ctx: typer.Context, bank: verbs.Bank = None) -> None:
    """Answer an event of an agent's client.

    The client gives it as JSON on standard input: Claude Code and Codex by
    UserPromptSubmit and SessionStart, Gemini CLI by BeforeAgent and SessionStart.
    A prompt is answered with what memory holds on it, the start of a session with
    core memory. Whatever goes wrong, nothing is printed and the exit code is 0.
    `ua-memory hook shell zsh` (or bash) prints functions for that shell.
    """
    from ua_memory.errors import NoBank

    call, local = context.call_of(ctx), None
    if ctx.args[:1] == ["shell"]:
        from ua_memory.cli import shell

        shell.functions(call, " ".join(ctx.args[1:]))
        return
    try:
        if call.reads_terminal:
            call.stderr.write("ua-memory: a client's hook calls this, with JSON on standard input\n")
            return
        from ua_memory import clients

        with context.opened(ctx) as (_, memory):
            local = memory.store.bank.local
            event = clients.event(call.stdin.read())
            if event and memory.config.enabled:
                text = _core(memory) if event.kind == "start" else _recalled(call, memory, event)
                call.stdout.write(clients.reply(event, text) if text else "")
    except NoBank:  # a folder that is no bank is left alone
        pass
    except Exception as error:
        if call.debug:
            raise
        log(local, error)


def log(local: Path | None, error: Exception) -> None:
    """Say in a bank's log why a hook had nothing to say; without a bank there is nobody to tell."""
    from ua_memory.daemon.log import Log

    if local is not None:
        Log(local, LOG).say(f"nothing said: {type(error).__name__}: {error}")


def _recalled(call: Call, memory: Memory, event: Event) -> str:
    from ua_memory.cli.call import in_process
    from ua_memory.cli.places import auto_scope
    from ua_memory.cli.starting import InProcess
    from ua_memory.daemon.log import Log
    from ua_memory.glance import hits_block
    from ua_memory.queries import read_query

    # A process of its own has no time to load Chroma and a model.
    alone = call.opener is in_process or isinstance(call.opener, InProcess)
    wanted = read_query(event.prompt, memory.config.long_query, memory.config.longest_query)
    if wanted.long and wanted.skipped:
        Log(memory.store.bank.local, LOG).say(wanted.why)
    least = max(ENOUGH, memory.config.min_score)
    filters = memory.filters(**auto_scope(call, memory.config, event))
    found = memory.search_many([event.prompt], min_score=least, filters=filters, by_words=alone)
    return hits_block(found[0])[0]


def _core(memory: Memory) -> str:
    from ua_memory.glance import core_block
    from ua_memory.redaction import redact

    def masked(text: str) -> str:
        return redact(text, memory.config.redact).text

    return core_block([(masked(block.name), masked(block.value)) for block in memory.core_blocks()])
