"""Hooks and recall without a daemon: the read-only keyword search answers, and nothing heavy is loaded.

What it cannot answer is left to the command itself, which opens the bank.
"""

from __future__ import annotations

import os
import sys
import time

from ua_memory.daemon.connect import named_bank, option_value
from ua_memory.errors import NoBank, UaMemoryError
from ua_memory.hooks import context
from ua_memory.text import noise

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from typing import Any

    from ua_memory.caller import Call
    from ua_memory.discovery import Folders
    from ua_memory.hooks.events import Event
    from ua_memory.paths import Bank
    from ua_memory.recall.readonly import ReadOnlySearch


FLUSH_NICENESS = 10
"""The niceness of a detached flush: the next session may be starting."""


def answer_hook(words: list[str], data: bytes, *, start_next: bool) -> bool:
    """Answer a client's event, by opening the bank if need be. True if a flush is due. `start_next` starts a
    daemon for the next event."""
    from ua_memory.hooks import events

    try:
        event = events.parse_event(data, option_value(words, "--client"), os.getcwd())  # noqa: PTH109
        if event is None or event.kind == "subagent":
            return False
        bank, settings = _find_bank(words)
        if not settings.enabled:
            return False
        if _has_warnings(settings):
            return _answer_with_bank(words, data, start_next=start_next)
        if event.is_session and event.kind != "stop":
            context.record_event(bank.pending, event, int(option_value(words, "--pid") or 0))
        flushed = event.kind in context.FLUSHED
        reply = "" if flushed else _reply_text(event, settings, bank)
    except NoBank:  # a folder that is no bank is left alone
        return False
    except (OSError, ValueError, UaMemoryError):  # the command writes it to the bank's log
        reply = None
    if reply is None or event is None:
        return _answer_with_bank(words, data, start_next=start_next)
    if reply:
        _print(sys.stdout, events.reply_json(event, reply))
    if start_next and not flushed:
        start_daemon(bank)
    started = event.kind == "start" and event.session
    return flushed or bool(started and context.is_other_due(bank.pending, event.session))


def _answer_with_bank(words: list[str], data: bytes, *, start_next: bool) -> bool:
    """Answer an event by opening the bank in this process. True if a flush is due."""
    from ua_memory.hooks import capture

    call = _call(words, data)
    if call.debug:  # the command says what went wrong
        from ua_memory.cli.app import main

        main(words, data, start_next=start_next)
    pid = int(option_value(words, "--pid") or 0)
    due = capture.answer_event(call, option_value(words, "--client"), pid, "--modelled" in words)
    call.stdout.flush()
    if start_next and call.opened:
        start_daemon(call.opened)
    return due


def recall(words: list[str]) -> bool:
    """Answer a recall without options; False if it needs the bank. A daemon is started for the next one."""
    start = words.index("recall") + 1
    if any(word.startswith("-") for word in words[start:]) or not " ".join(words[start:]).strip():
        return False
    try:
        bank, settings = _find_bank(words)
        has_limits = settings.min_score or settings.recall_budget or settings.recall_max_tokens
        index = None if has_limits or _has_warnings(settings) else _open_index(bank, settings)
    except UaMemoryError:
        return False
    if index is None:
        return False
    wanted = noise.read_query(" ".join(words[start:]), settings.long_query, settings.longest_query)
    text = index.recall(wanted.text, settings.search_limit)
    _print(sys.stdout, f"{text}\n" if text else "")
    note = "keyword search only: no daemon runs yet" if text else "nothing found by keywords"
    for each in filter(None, (wanted.why, "" if wanted.skipped else note)):
        _print(sys.stderr, f"ua-memory: {each}\n")
    start_daemon(bank)
    return True


def _has_warnings(settings: Any) -> bool:
    """Whether settings are invalid or untrusted. Cached ones are neither, and have no such attributes."""
    return bool(getattr(settings, "problems", ()) or getattr(settings, "untrusted", {}))


def _print(stream: Any, text: str) -> None:
    if stream is not None:  # closed by the caller (`>&-`)
        stream.reconfigure(errors="backslashreplace")
        stream.write(text)
        stream.flush()


def _call(words: list[str], data: bytes | None = None) -> Call:
    from ua_memory.caller import of_process

    call = of_process(words, data)
    call.bank = option_value(words, "--bank") or None
    return call


def _find_bank(words: list[str]) -> tuple[Bank | Folders, Any]:
    """The bank's folders and settings: cached, else read and cached."""
    try:
        cwd = os.getcwd()  # noqa: PTH109 (pathlib takes 4 ms)
        home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111
        found = context.cached_settings(named_bank(words, cwd, home), cwd, home, os.environ)
    except OSError:
        found = None
    if found is not None:
        return found
    from ua_memory import caller, paths

    call = _call(words)
    root = paths.bank_root(call)
    settings = caller.settings_of(call, root, lenient=True)
    bank = paths.locate(root, own=settings.own, bank_id=settings.id)
    context.cache_settings(bank, settings, caller.environment(call))
    return bank, settings


def _open_index(bank: Bank | Folders, settings: Any) -> ReadOnlySearch | None:
    from ua_memory.recall import readonly

    return readonly.open_index(bank, settings.few, settings.redact)


def _reply_text(event: Event, settings: Any, bank: Bank | Folders) -> str | None:
    """The text that answers an event; None if that needs the bank."""
    if event.kind == "stop":
        return None
    index = _open_index(bank, settings)
    if index is None:
        return None
    if event.kind == "start":
        known = index.of_project(context.project_name(event), context.shows_whole_bank(event, bank, settings))
        return context.start_text(event, bank, index.core, index, known)
    text = _recalled_text(index, event, settings, bank)
    if text:
        context.save_recalled(bank, event, text)
    return text


def _recalled_text(index: ReadOnlySearch, event: Event, settings: Any, bank: Bank | Folders) -> str | None:
    if event.agent:
        return ""
    if settings.auto_recall_tags or settings.auto_recall_tag_groups or event.group:
        return None  # filters need the bank's index
    wanted = noise.read_query(event.prompt, settings.long_query, settings.longest_query)
    if wanted.long and wanted.skipped:
        from pathlib import Path

        from ua_memory.daemon.spawn import Log

        Log(Path(bank.local), "hook.log").say(wanted.why)
    current_session = context.visible_session(bank.pending, event)
    max_passages = noise.PROMPT_PASSAGES if settings.sessions_recall else 0
    project = context.project_name(event)
    query = context.without_project_name(wanted.text, project)
    return index.for_prompt(query, settings.search_limit, project, current_session, max_passages)


# -- detached processes ----------------------------------------------------------------------------------


def flush_detached(words: list[str]) -> None:
    """Start a flush that outlives the client, with the model that the client's environment names."""
    if not _fork_detached():
        return
    try:
        from ua_memory.daemon.spawn import start_detached

        bank, _ = _find_bank(words)
        os.nice(FLUSH_NICENESS)
        start_detached(bank, os.environ, "flush", "--behind")
    finally:
        os._exit(0)


def _fork_detached() -> bool:
    """Fork. True in the child, which has its own session and none of the caller's streams."""
    if os.fork():
        return False
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
    except OSError:
        os._exit(0)
    return True


def start_daemon(found: Bank | Folders) -> None:
    """Start a daemon for the next command, with its model loaded, from a detached process."""
    try:
        if time.time() - os.stat(f"{found.local}/daemon.started").st_mtime < 30:  # noqa: PTH116
            return
    except OSError:
        pass
    if not _fork_detached():
        return
    try:
        from ua_memory.daemon.spawn import ensure_started

        ensure_started(found, os.environ, warm=True)
    finally:
        os._exit(0)
