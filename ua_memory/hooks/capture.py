"""What an event means for its session: turns put to wait, and what memory answers."""

from __future__ import annotations

import contextlib
import os
from dataclasses import astuple
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ua_memory import caller, discovery
from ua_memory.daemon.spawn import InProcess, Log
from ua_memory.errors import Malformed, NoBank
from ua_memory.hooks import context, events
from ua_memory.paths import make_private
from ua_memory.text import noise
from ua_memory.transcripts.turns import Session

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import BinaryIO

    from ua_memory.caller import Call
    from ua_memory.hooks.events import Event
    from ua_memory.memory import Memory


# -- turns -------------------------------------------------------------------------------------------------
# The turns of a session are queued after each answer and at its end, from its transcript and the event.


RECALLED_KEPT = 7 * 86400.0
"""Seconds for which what was recalled for a session is kept: it may be resumed, and compacted then."""


def capture_turns(
    memory: Memory,
    path: str,
    found: dict[str, Any],
    *,
    said: str = "",
    asked: str = "",
    close: bool = False,
    model: bool = False,
) -> bool:
    """Queue the new turns of a session and save how far its transcript was read. True if a flush is due.

    Malformed for a transcript that is none; CannotWrite.
    """
    named = {key: str(found.get(key) or "") for key in ("client", "session", "cwd", "parent", "group")}
    session = Session(**named, started=datetime.fromtimestamp(found.get("started") or 0, UTC))
    with _opened(found.get("transcript")) as stream:
        spot = found.get("spot") or ()
        result = memory.conversations.capture(
            session, stream, said=said, asked=asked, spot=spot, close=close, model=model
        )
    context.update_record(path, spot=list(astuple(result.position)))
    return result.due


def _opened(transcript: object) -> AbstractContextManager[BinaryIO | None]:
    """A session's transcript; None where there is none, or where what a client named is no file."""
    missing = (FileNotFoundError, NotADirectoryError, IsADirectoryError, discovery.Irregular)
    with contextlib.suppress(*missing):
        return discovery.open_regular(str(transcript or "/nowhere"))
    return contextlib.nullcontext()


def queue_ended_sessions(memory: Memory, say: Callable[[str], None], *, model: bool = False) -> None:
    """Queue what is left of sessions that have ended, were killed, or are being compacted, for the flush.
    `say` gets what could not be read."""
    bank = memory.store.bank
    for path, found in list(context.session_records(bank.pending)):
        over = context.has_ended(path, found)
        if not over and found.get("want") != context.COMPACT:
            continue
        try:
            capture_turns(memory, path, found, close=True, model=model)
        except Malformed as error:  # it will not become one: what waits of it is all there is
            say(f"{found.get('client')} session {found.get('session')}: {error.what}")
            context.update_record(path, transcript="")
        if not over:
            context.update_record(path, want="")
        else:
            with contextlib.suppress(OSError):
                os.unlink(path)  # noqa: PTH108
    context.delete_recalled(bank.local, memory.store.now().timestamp() - RECALLED_KEPT)


# -- events ------------------------------------------------------------------------------------------------
# What an event of an agent's client is answered by its bank, and what it means for its session.


LOG = "hook.log"
MORE_PASSAGES = 6
"""Hits that are looked at beyond the limit, for passages of other projects fall away."""


def answer_event(call: Call, client: str, pid: int, modelled: bool) -> bool:
    """Answer the event on a call's standard input by its bank; True if something is to be handed over.

    Whatever goes wrong, nothing is said but in the bank's log. `client` is who calls, '' where the event
    itself tells, `pid` their process, and `modelled` whether their variables choose a model where no provider
    is named.
    """
    local = None
    try:
        with caller.bank_of(call, lenient=True) as memory:
            local = memory.store.bank.local
            event = events.hook_event(call.stdin.read(), client, str(call.cwd))
            if event and event.kind != "subagent" and memory.config.enabled:
                _tell_settings(memory, event)
                return _handle(call, memory, event, pid, modelled)
    except NoBank:  # a folder that is no bank is left alone
        pass
    except Exception as error:
        if call.debug:
            raise
        if local is not None:  # without a bank there is nobody to tell
            _log(local, f"nothing said: {type(error).__name__}: {error}")
    return False


def _handle(call: Call, memory: Memory, event: Event, pid: int, modelled: bool) -> bool:
    """Answer an event and note what it means for its session; True if something is to be handed over."""
    bank = memory.store.bank
    known = bool(event.session) and not event.agent
    if event.kind in events.ANSWERED:
        # Settings that cannot be read may say what is to be masked, and what is for whom: nothing is told.
        # What is said waits all the same, and its flush reads them again.
        tell = _start_text if event.kind == "start" else _recall_text
        text = "" if memory.config.problems else tell(call, memory, event)
        call.stdout.write(events.reply(event, text) if text else "")
        if event.kind == "start":
            context.cache_settings(bank, memory.config, caller.environment(call))
        if known:
            context.record_event(bank.pending, event, pid)
        if event.kind == "prompt" and text:
            context.save_recalled(bank, event, text)
        return event.kind == "start" and context.others_wait(bank.pending, event.session)
    if not known:
        return False
    memory.store.make_state()
    want = {"end": context.END, "compact": context.COMPACT}.get(event.kind, "")
    found = context.record_event(bank.pending, event, pid, want=want)
    if want:
        return True
    path, provider = context.record_path(bank.pending, event), memory.config.provider
    model = provider != "none" if provider else modelled
    return capture_turns(memory, path, found, said=event.said, asked=event.prompt, model=model)


def _tell_settings(memory: Memory, event: Event) -> None:
    """Say in the bank's log which settings could not be read, and once a session which are not trusted."""
    for text in memory.config.problems:
        _log(memory.store.bank.local, text)
    if event.kind == "start" and (text := caller.untrusted(memory.config)):
        _log(memory.store.bank.local, text)


def _log(local: Path, text: str) -> None:
    """Write a line to the hooks' log of a bank."""
    with contextlib.suppress(OSError):
        make_private(local)
    Log(local, LOG).say(text)


def _recall_text(call: Call, memory: Memory, event: Event) -> str:
    from ua_memory.recall.readonly import hits_block
    from ua_memory.recall.search import for_prompt

    if event.agent:
        return ""
    # A process of its own has no time to load Chroma and a model.
    alone = call.opener is caller.in_process or isinstance(call.opener, InProcess)
    wanted = noise.read_query(event.prompt, memory.config.long_query, memory.config.longest_query)
    if wanted.long and wanted.skipped:
        Log(memory.store.bank.local, LOG).say(wanted.why)
    project = context.project(event)
    asked = context.without_name(event.prompt, project)
    filters = memory.filters(**context.auto_scope(call, memory.config, event))
    limit = memory.config.search_limit + MORE_PASSAGES
    found = memory.search_many([asked], limit=limit, filters=filters, by_words=alone)
    but = context.session_in_view(memory.store.bank.pending, event)
    chosen = for_prompt(found[0], asked, project, memory.config, but)
    return hits_block(chosen)[0]


def _start_text(_: Call, memory: Memory, event: Event) -> str:
    from ua_memory.recall import readonly
    from ua_memory.text.redaction import redact

    def masked(text: str) -> str:
        return redact(text, memory.config.redact).text

    def core(most: int) -> str:
        blocks = [(masked(block.name), masked(block.value)) for block in memory.core.list()]
        return readonly.core_block(blocks, most)

    bank = memory.store.bank
    memory.refresh(vectors=False)  # what a flush has just written is told too
    with memory.index.lock:
        db, project = memory.index.words.db, context.project(event)
        whole = context.whole_bank(event, bank, memory.config)
        known = readonly.rules(db, project), readonly.latest(db, project, whole)
    look = None
    if event.why == "compact":
        look = readonly.open_index(bank, memory.config.few, memory.config.redact)
    return context.start_text(event, bank, core, look, known) or ""
