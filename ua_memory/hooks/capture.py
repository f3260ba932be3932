"""Answer a client's event with the bank open: queue the session's new turns, and recall for a prompt."""

from __future__ import annotations

import contextlib
import os
from dataclasses import astuple
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ua_memory import caller, discovery
from ua_memory.clients.turns import Session
from ua_memory.daemon.spawn import Log
from ua_memory.errors import Malformed, NoBank
from ua_memory.hooks import context, events
from ua_memory.paths import make_private
from ua_memory.text import noise

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


RECALLED_MAX_AGE = 7 * 86400.0
"""Seconds for which text recalled for a session is kept: it may be resumed, and compacted then."""


def capture_turns(
    memory: Memory, path: str, record: dict[str, Any], *, answer: str = "", prompt: str = "",
    close: bool = False, model: bool = False,
) -> bool:  # fmt: skip
    """Queue the new turns of a session and save how far its transcript was read. True if a flush is due.

    Malformed if the transcript cannot be read as one; CannotWrite.
    """
    named: dict[str, Any] = {
        key: str(record.get(key) or "") for key in ("client", "session", "cwd", "parent", "group")
    }
    session = Session(**named, started=datetime.fromtimestamp(record.get("started") or 0, UTC))
    with _open_transcript(record.get("transcript")) as stream:
        spot = record.get("spot") or ()
        result = memory.conversations.capture(
            session, stream, said=answer, asked=prompt, spot=spot, close=close, model=model
        )
    context.update_record(path, spot=list(astuple(result.position)))
    return result.due


def _open_transcript(transcript: object) -> AbstractContextManager[BinaryIO | None]:
    """Open a session's transcript; None if there is none, or the path is no regular file."""
    missing = (FileNotFoundError, NotADirectoryError, IsADirectoryError, discovery.Irregular)
    with contextlib.suppress(*missing):
        return discovery.open_regular(str(transcript or "/nowhere"))
    return contextlib.nullcontext()


def queue_ended_sessions(memory: Memory, log: Callable[[str], None], *, model: bool = False) -> None:
    """Queue what is left of sessions that have ended, were killed, or are being compacted, for the flush.
    `log` gets what could not be read."""
    bank = memory.store.bank
    for path, record in list(context.session_records(bank.pending)):
        ended = context.has_ended(path, record)
        if not ended and record.get("want") != context.COMPACT:
            continue
        try:
            capture_turns(memory, path, record, close=True, model=model)
        except Malformed as error:  # it never will be readable: only what is queued is left
            log(f"{record.get('client')} session {record.get('session')}: {error.what}")
            context.update_record(path, transcript="")
        if not ended:
            context.update_record(path, want="")
        else:
            with contextlib.suppress(OSError):
                os.unlink(path)  # noqa: PTH108
    context.delete_recalled(bank.local, memory.store.now().timestamp() - RECALLED_MAX_AGE)


# -- events ------------------------------------------------------------------------------------------------


LOG_NAME = "hook.log"
EXTRA_HITS = 6
"""Extra hits to search for, since passages of other projects are dropped afterwards."""


def answer_event(call: Call, client: str, pid: int, has_model: bool) -> bool:
    """Answer the event on a call's standard input by its bank; True if something is to be handed over.

    Whatever goes wrong, nothing is said but in the bank's log. `client` is who calls, '' where the event
    itself tells, `pid` their process, and `has_model` whether their variables choose a model where no
    provider is named.
    """
    local = None
    try:
        with caller.bank_of(call, lenient=True) as memory:
            local = memory.store.bank.local
            event = events.parse_event(call.stdin.read(), client, str(call.cwd))
            if event and event.kind != "subagent" and memory.config.enabled:
                _log_settings(memory, event)
                return _handle_event(call, memory, event, pid, has_model)
    except NoBank:  # a folder that is no bank is left alone
        pass
    except Exception as error:
        if call.debug:
            raise
        if local is not None:  # without a bank there is no log
            _log(local, f"nothing said: {type(error).__name__}: {error}")
    return False


def _handle_event(call: Call, memory: Memory, event: Event, pid: int, has_model: bool) -> bool:
    """Answer an event and update its session's record. True if a flush is due."""
    bank = memory.store.bank
    if event.kind in events.ANSWERED_KINDS:
        # Invalid settings may have said what to mask and what to recall where, so nothing is answered. Turns
        # are queued all the same, and their flush reads the settings again.
        answer = _start_text if event.kind == "start" else _recall_text
        text = "" if memory.config.problems else answer(call, memory, event)
        call.stdout.write(events.reply_json(event, text) if text else "")
        if event.kind == "start":
            context.cache_settings(bank, memory.config, caller.environment(call))
        if event.is_session:
            context.record_event(bank.pending, event, pid)
        if event.kind == "prompt" and text:
            context.save_recalled(bank, event, text)
        return event.kind == "start" and context.is_other_due(bank.pending, event.session)
    if not event.is_session:
        return False
    memory.store.make_state()
    found = context.record_event(bank.pending, event, pid)
    if event.kind in context.FLUSHED:
        return True
    path, provider = context.record_path(bank.pending, event), memory.config.provider
    model = provider != "none" if provider else has_model
    return capture_turns(memory, path, found, answer=event.said, prompt=event.prompt, model=model)


def _log_settings(memory: Memory, event: Event) -> None:
    """Log which settings are invalid and, once a session, which are not trusted."""
    for text in memory.config.problems:
        _log(memory.store.bank.local, text)
    if event.kind == "start" and (text := caller.untrusted(memory.config)):
        _log(memory.store.bank.local, text)


def _log(local: Path, text: str) -> None:
    """Write a line to a bank's hook log."""
    with contextlib.suppress(OSError):
        make_private(local)
    Log(local, LOG_NAME).say(text)


def _recall_text(call: Call, memory: Memory, event: Event) -> str:
    from ua_memory.recall.readonly import hits_block
    from ua_memory.recall.search import for_prompt

    if event.agent:
        return ""
    # Outside of the daemon there is no time to load Chroma and a model.
    by_words = call.opener is caller.in_process
    wanted = noise.read_query(event.prompt, memory.config.long_query, memory.config.longest_query)
    if wanted.long and wanted.skipped:
        Log(memory.store.bank.local, LOG_NAME).say(wanted.why)
    project = context.project_name(event)
    query = context.without_project_name(event.prompt, project)
    filters = memory.filters(**context.recall_filters(call, memory.config, event))
    limit = memory.config.search_limit + EXTRA_HITS
    found = memory.search_many([query], limit=limit, filters=filters, by_words=by_words)
    visible = context.visible_session(memory.store.bank.pending, event)
    chosen = for_prompt(found[0], query, project, memory.config, visible)
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
    memory.refresh(vectors=False)  # to include what a flush has just written
    with memory.index.lock:
        db, project = memory.index.words.db, context.project_name(event)
        whole_bank = context.shows_whole_bank(event, bank, memory.config)
        project_lines = readonly.rules(db, project), readonly.latest(db, project, whole_bank)
    index = None
    if event.why == "compact":
        index = readonly.open_index(bank, memory.config.few, memory.config.redact)
    with contextlib.closing(index) if index else contextlib.nullcontext():
        return context.start_text(event, bank, core, index, project_lines) or ""
