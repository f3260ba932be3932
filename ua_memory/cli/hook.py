"""`ua-memory hook`: what an agent's client is told when something happens there.

A hook never stands in the way: whatever goes wrong, nothing is printed, the exit code is 0, and why stands in
the bank's `local/hook.log`. The fast path reads standard input before it comes here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ua_memory.cli import beginning, context, fast, sessions, verbs

if TYPE_CHECKING:
    from pathlib import Path

    from ua_memory.cli.call import Call
    from ua_memory.clients import Event
    from ua_memory.memory import Memory

hook_app = verbs.new()

LOG = "hook.log"
ENOUGH = 0.35
"""The score from which on a hit is put into a prompt nobody searched for it with."""


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
    SessionEnd; Gemini CLI by SessionStart and BeforeAgent. A start is answered with
    core memory, the pages and what is open, a prompt with what memory holds on it.
    What was said waits for the flush after each answer; a compaction and the end of
    a session hand it over. Whatever goes wrong, nothing is printed, the exit code
    is 0, and local/hook.log says why. `ua-memory hook shell zsh` (or bash)
    prints functions for that shell.
    """
    from ua_memory.errors import NoBank

    call, local, due = context.call_of(ctx), None, False
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
            event = clients.event(call.stdin.read(), client)
            if event and event.kind != "subagent" and memory.config.enabled:
                due = _happened(call, memory, event, pid, modelled)
    except NoBank:  # a folder that is no bank is left alone
        pass
    except Exception as error:
        if call.debug:
            raise
        log(local, error)
    if due:
        raise typer.Exit(fast.HAND_OVER)


def _happened(call: Call, memory: Memory, event: Event, pid: int, modelled: bool) -> bool:
    """Answer an event and note what it means for its session; True if something is to be handed over."""
    from ua_memory import clients

    bank = memory.store.bank
    known = bool(event.session) and not event.agent
    if event.kind in clients.ANSWERED:
        text = _started(memory, event) if event.kind == "start" else _recalled(call, memory, event)
        call.stdout.write(clients.reply(event, text) if text else "")
        if known:
            sessions.begun(bank.pending, event, pid)
        if event.kind == "prompt" and text:
            beginning.recalled(bank, event, text)
        return event.kind == "start" and sessions.left_over(bank.pending, event.session)
    if not known:
        return False
    memory.store.make_state()
    want = {"end": sessions.END, "compact": sessions.COMPACT}.get(event.kind, "")
    found = sessions.begun(bank.pending, event, pid, want=want)
    if want:
        return True
    from ua_memory.cli.hearing import heard

    path = sessions.path_of(bank.pending, event)
    return heard(memory, path, found, said=event.said, asked=event.prompt, model=modelled)


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

    if event.agent:
        return ""
    # A process of its own has no time to load Chroma and a model.
    alone = call.opener is in_process or isinstance(call.opener, InProcess)
    wanted = read_query(event.prompt, memory.config.long_query, memory.config.longest_query)
    if wanted.long and wanted.skipped:
        Log(memory.store.bank.local, LOG).say(wanted.why)
    least = max(ENOUGH, memory.config.min_score)
    filters = memory.filters(**auto_scope(call, memory.config, event))
    found = memory.search_many([event.prompt], min_score=least, filters=filters, by_words=alone)
    return hits_block(found[0])[0]


def _started(memory: Memory, event: Event) -> str:
    from ua_memory import glance
    from ua_memory.redaction import redact

    def masked(text: str) -> str:
        return redact(text, memory.config.redact).text

    def core(most: int) -> str:
        blocks = [(masked(block.name), masked(block.value)) for block in memory.core_blocks()]
        return glance.core_block(blocks, most)

    bank = memory.store.bank
    look = None
    if event.why == "compact":
        memory.search_many(["what was kept"], by_words=True)  # what a flush has just written is indexed
        look = glance.look(bank, memory.config)
    return beginning.text(event, bank, core, look) or ""
