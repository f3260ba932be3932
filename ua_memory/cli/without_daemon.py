"""Without a daemon: what only needs files and words is answered by `glance`, before anything heavy is loaded.

What it cannot answer for certain is left to the command itself, which opens the bank.
"""

from __future__ import annotations

import os
import sys
import time

from ua_memory.daemon.connect import named_bank, option
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


NICE = 10
"""How far a flush that nobody waits for stands back: the next session may be starting."""


def hook(words: list[str], data: bytes, *, start: bool) -> bool:
    """Answer a client's event, if need be by the command itself, and tell whether there is something to hand
    over. With `start` there is a daemon next time."""
    from ua_memory.hooks import events

    try:
        event = events.hook_event(data, option(words, "--client"), os.getcwd())  # noqa: PTH109
        if event is None or event.kind == "subagent":
            return False
        bank, settings = _bank(words)
        if not settings.enabled:
            return False
        if _has_notes(settings):
            return _by_bank(words, data, start=start)
        begin = event.session and not event.agent
        want = {"end": context.END, "compact": context.COMPACT}.get(event.kind, "")
        if begin and event.kind != "stop":
            context.record_event(bank.pending, event, int(option(words, "--pid") or 0), want=want)
        text = "" if want else _reply(event, settings, bank)
    except NoBank:  # a folder that is no bank is left alone
        return False
    except (OSError, ValueError, UaMemoryError):  # the command says it in the bank's log
        text = None
    if text is None:
        return _by_bank(words, data, start=start)
    if text and event:
        _print(sys.stdout, events.reply(event, text))
    if start and not want:
        start_daemon(bank)
    start_of = event.session if event and event.kind == "start" else ""
    return bool(want) or bool(start_of and context.others_wait(bank.pending, start_of))


def _by_bank(words: list[str], data: bytes, *, start: bool) -> bool:
    """Answer an event by opening the bank in this process; True if something is to be handed over."""
    from ua_memory.daemon.spawn import InProcess
    from ua_memory.hooks import capture

    call = _call(words, data)
    if call.debug:  # the command says what went wrong
        from ua_memory.cli.app import in_process

        in_process(words, data, then=start)
    call.opener = opener = InProcess(call.env)
    pid = int(option(words, "--pid") or 0)
    due = capture.answer_event(call, option(words, "--client"), pid, "--modelled" in words)
    call.stdout.flush()
    if start and opener.bank:
        start_daemon(opener.bank)
    return due


def recall(words: list[str]) -> bool:
    """Answer a recall without options, and tell whether that could be done. A daemon is there next time."""
    at = words.index("recall") + 1
    if any(word.startswith("-") for word in words[at:]) or not " ".join(words[at:]).strip():
        return False
    try:
        bank, settings = _bank(words)
        counted = settings.min_score or settings.recall_budget or settings.recall_max_tokens
        found = None if counted or _has_notes(settings) else _glance(bank, settings)
    except UaMemoryError:
        return False
    if found is None:
        return False
    wanted = noise.read_query(" ".join(words[at:]), settings.long_query, settings.longest_query)
    text = found.recall(wanted.text, settings.search_limit)
    _print(sys.stdout, f"{text}\n" if text else "")
    said = "keyword search only: no daemon runs yet" if text else "nothing found by keywords"
    for each in filter(None, (wanted.why, "" if wanted.skipped else said)):
        _print(sys.stderr, f"ua-memory: {each}\n")
    start_daemon(bank)
    return True


def _has_notes(settings: Any) -> bool:
    """Whether something is to be told of the settings: of those that are known already there is not."""
    return bool(getattr(settings, "problems", ()) or getattr(settings, "untrusted", {}))


def _print(stream: Any, text: str) -> None:
    if stream is not None:  # closed by the caller (`>&-`)
        stream.reconfigure(errors="backslashreplace")
        stream.write(text)
        stream.flush()


def _call(words: list[str], data: bytes | None = None) -> Call:
    from ua_memory.caller import of_process

    call = of_process(words, data)
    call.bank = option(words, "--bank") or None
    return call


def _bank(words: list[str]) -> tuple[Bank | Folders, Any]:
    """The folders of the bank that is meant, and its settings: as they are known, else read and noted."""
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
    root = caller.bank_root(call)
    settings = caller.settings_of(call, root, lenient=True)
    bank = paths.locate(root, own=settings.own, bank_id=settings.id)
    context.cache_settings(bank, settings, caller.environment(call))
    return bank, settings


def _glance(bank: Bank | Folders, settings: Any) -> ReadOnlySearch | None:
    from ua_memory.recall import readonly

    return readonly.open_index(bank, settings.few, settings.redact)


def _reply(event: Event, settings: Any, bank: Bank | Folders) -> str | None:
    """What an event is answered; None where it takes the bank to tell, or to do."""
    if event.kind == "stop":
        return None
    found = _glance(bank, settings)
    if found is None:
        return None
    if event.kind == "start":
        known = found.of_project(context.project(event), context.whole_bank(event, bank, settings))
        return context.start_text(event, bank, found.core, found, known)
    text = _recalled(found, event, settings, bank)
    if text:
        context.save_recalled(bank, event, text)
    return text


def _recalled(found: ReadOnlySearch, event: Event, settings: Any, bank: Bank | Folders) -> str | None:
    if event.agent:
        return ""
    if settings.auto_recall_tags or settings.auto_recall_tag_groups or event.group:
        return None  # what may be recalled takes filters, which are the bank's
    wanted = noise.read_query(event.prompt, settings.long_query, settings.longest_query)
    if wanted.long and wanted.skipped:
        from pathlib import Path

        from ua_memory.daemon.spawn import Log

        Log(Path(bank.local), "hook.log").say(wanted.why)
    but = context.session_in_view(bank.pending, event)
    most = noise.PASSAGES if settings.sessions_recall else 0
    project = context.project(event)
    asked = context.without_name(wanted.text, project)
    return found.for_prompt(asked, settings.search_limit, project, but, most)


# -- the next time ---------------------------------------------------------------------------------------


def flush_detached(words: list[str]) -> None:
    """Flush what is due, by a process that nobody waits for and that outlives the client. It has the model
    that the client's environment names."""
    if not _fork_detached():
        return
    try:
        from ua_memory.daemon.spawn import start_detached

        bank, _ = _bank(words)
        os.nice(NICE)
        start_detached(bank, os.environ, "flush", "--behind")
    finally:
        os._exit(0)


def _fork_detached() -> bool:
    """Whether this is the process that goes on: in a session of its own, nothing of the caller's open."""
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
    """Have a daemon for the next time, its model loaded, by a process that nobody waits for."""
    try:
        if time.time() - os.stat(f"{found.local}/daemon.started").st_mtime < 30:  # noqa: PTH116
            return
    except OSError:
        pass
    if not _fork_detached():
        return
    try:
        from ua_memory.daemon.spawn import in_background

        in_background(found, os.environ, warm=True)
    finally:
        os._exit(0)
