"""What an event of an agent's client is answered by its bank, and what it means for its session."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ua_memory.cli import beginning, context, sessions

if TYPE_CHECKING:
    from pathlib import Path

    from ua_memory.cli.call import Call
    from ua_memory.clients import Event
    from ua_memory.memory import Memory

LOG = "hook.log"
ENOUGH = 0.35
"""The score from which on a hit is put into a prompt nobody searched for it with."""


def answered(call: Call, client: str, pid: int, modelled: bool) -> bool:
    """Answer the event on a call's standard input by its bank; True if something is to be handed over.

    Whatever goes wrong, nothing is said but in the bank's log. `client` is who calls, '' where the event
    itself tells, `pid` their process, and `modelled` whether they have a model.
    """
    from ua_memory import clients
    from ua_memory.errors import NoBank

    local = None
    try:
        with context.bank_of(call, lenient=True) as memory:
            local = memory.store.bank.local
            event = clients.event(call.stdin.read(), client)
            if event and event.kind != "subagent" and memory.config.enabled:
                _tell_settings(memory, event)
                return _happened(call, memory, event, pid, modelled)
    except NoBank:  # a folder that is no bank is left alone
        pass
    except Exception as error:
        if call.debug:
            raise
        if local is not None:  # without a bank there is nobody to tell
            _log(local, f"nothing said: {type(error).__name__}: {error}")
    return False


def _happened(call: Call, memory: Memory, event: Event, pid: int, modelled: bool) -> bool:
    """Answer an event and note what it means for its session; True if something is to be handed over."""
    from ua_memory import clients
    from ua_memory.cli.known import note

    bank = memory.store.bank
    known = bool(event.session) and not event.agent
    if event.kind in clients.ANSWERED:
        text = _answer(call, memory, event)
        call.stdout.write(clients.reply(event, text) if text else "")
        if event.kind == "start":
            note(bank, memory.config, context.environment(call))
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


def _answer(call: Call, memory: Memory, event: Event) -> str:
    """What an agent is told. Nothing while settings cannot be read: they may say what is to be masked, and
    what is for whom. What is said waits all the same, and its flush reads them again."""
    if memory.config.problems:
        return ""
    return _started(memory, event) if event.kind == "start" else _recalled(call, memory, event)


def _tell_settings(memory: Memory, event: Event) -> None:
    """Say in the bank's log which settings could not be read, and once a session which are not trusted."""
    for text in memory.config.problems:
        _log(memory.store.bank.local, text)
    if event.kind == "start" and (text := context.untrusted(memory.config)):
        _log(memory.store.bank.local, text)


def _log(local: Path, text: str) -> None:
    """Say something in a bank's log, which nobody may have begun yet."""
    from ua_memory.daemon.log import Log
    from ua_memory.paths import make_private

    with contextlib.suppress(OSError):
        make_private(local)
    Log(local, LOG).say(text)


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
        look = glance.look(bank, memory.config.few, memory.config.redact)
    return beginning.text(event, bank, core, look) or ""
