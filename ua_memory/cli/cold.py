"""Without a daemon: what only needs files and words is answered by `glance`, before anything heavy is loaded.

What it cannot answer for certain is left to the command itself, which opens the bank.
"""

from __future__ import annotations

import os
import sys
import time

from ua_memory import config, paths, queries
from ua_memory.cli import beginning, context, sessions
from ua_memory.cli.call import Call, of_process
from ua_memory.errors import NoBank, UaMemoryError

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ua_memory.clients import Event
    from ua_memory.config import Config
    from ua_memory.glance import Glance
    from ua_memory.paths import Bank
    from ua_memory.queries import Wanted


def hook(words: list[str], data: bytes, *, start: bool) -> bool:
    """Answer a client's event, if need be by the command itself, and tell whether there is something to hand
    over. With `start` there is a daemon next time."""
    from ua_memory import clients

    call = _called(words)
    try:
        event = clients.event(data, _option(words, "--client"))
        if event is None or event.kind == "subagent":
            return False
        bank, settings = _bank(call)
        if not settings.enabled:
            return False
        begin = event.session and not event.agent
        want = {"end": sessions.END, "compact": sessions.COMPACT}.get(event.kind, "")
        if begin and event.kind != "stop":
            sessions.begun(bank.pending, event, int(_option(words, "--pid") or 0), want=want)
        text = "" if want else _said(event, settings, bank)
    except NoBank:  # a folder that is no bank is left alone
        return False
    except (OSError, ValueError, UaMemoryError):  # the command says it in the bank's log
        text = None
    if text is None:
        from ua_memory.cli.app import in_process

        in_process(words, data, then=start)
    if text and event:
        call.stdout.write(clients.reply(event, text))
    call.stdout.flush()
    if start and not want:
        wake(bank, call.env)
    start_of = event.session if event and event.kind == "start" else ""
    return bool(want) or bool(start_of and sessions.left_over(bank.pending, start_of))


def recall(words: list[str]) -> bool:
    """Answer a recall without options, and tell whether that could be done. A daemon is there next time."""
    at = words.index("recall") + 1
    if any(word.startswith("-") for word in words[at:]) or not " ".join(words[at:]).strip():
        return False
    call = _called(words)
    try:
        bank, settings = _bank(call)
        counted = settings.min_score or settings.recall_budget or settings.recall_max_tokens
        found = None if counted else _glance(bank, settings)
    except UaMemoryError:
        return False
    if found is None:
        return False
    wanted = _wanted(" ".join(words[at:]), settings)
    text = found.recall(wanted.text, settings.search_limit)
    call.stdout.write(f"{text}\n" if text else "")
    call.stdout.flush()
    said = "searched by words alone: no daemon runs yet" if text else "nothing found by words alone"
    for each in filter(None, (wanted.why, "" if wanted.skipped else said)):
        call.stderr.write(f"ua-memory: {each}\n")
    wake(bank, call.env)
    return True


def _called(words: list[str]) -> Call:
    call = of_process(words)
    call.bank = _option(words, "--bank") or None
    return call


def _option(words: list[str], name: str) -> str:
    """What an option says the last time it is given, '' if it is not."""
    value = ""
    for n, word in enumerate(words):
        if word == name:
            value = "".join(words[n + 1 : n + 2])
        elif word.startswith(f"{name}="):
            value = word[len(name) + 1 :]
    return value


def _bank(call: Call) -> tuple[Bank, Config]:
    root = context.bank_root(call)
    settings = config.load(root, call.env)
    return paths.locate(root, own=settings.own, bank_id=settings.id), settings


def _glance(bank: Bank, settings: Config) -> Glance | None:
    from ua_memory import glance

    return glance.look(bank, settings)


def _said(event: Event, settings: Config, bank: Bank) -> str | None:
    """What an event is answered; None where it takes the bank to tell, or to do."""
    if event.kind == "stop":
        return None
    found = _glance(bank, settings)
    if found is None:
        return None
    if event.kind == "start":
        return beginning.text(event, bank, found.core, found)
    text = _recalled(found, event, settings, bank)
    if text:
        beginning.recalled(bank, event, text)
    return text


def _recalled(found: Glance, event: Event, settings: Config, bank: Bank) -> str | None:
    from ua_memory.glance import ENOUGH

    if event.agent:
        return ""
    if settings.auto_recall_tags or settings.auto_recall_tag_groups:
        return None  # what may be recalled takes filters, which are the bank's
    wanted = _wanted(event.prompt, settings)
    if wanted.long and wanted.skipped:
        from ua_memory.daemon.log import Log

        Log(bank.local, "hook.log").say(wanted.why)
    return found.recall(wanted.text, settings.search_limit, ENOUGH)


def _wanted(query: str, settings: Config) -> Wanted:
    return queries.read_query(query, settings.long_query, settings.longest_query)


# -- the next time ---------------------------------------------------------------------------------------


def hand_over(words: list[str]) -> None:
    """Flush what is due, by a process that nobody waits for and that outlives the client. It has the model
    that the client's environment names."""
    if not _left_behind():
        return
    try:
        call = _called(words)
        bank, _ = _bank(call)
        name = f"{sessions.made(str(bank.local))}/flush.log"
        log = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        for fd in (1, 2):
            os.dup2(log, fd)
        os.write(log, time.strftime("%Y-%m-%d %H:%M:%S handed over by a hook\n").encode())
        os.chdir("/")
        flush = [sys.executable, "-P", "-m", "ua_memory", "--bank", str(bank.root), "flush"]
        os.execv(flush[0], flush)
    finally:
        os._exit(0)


def _left_behind() -> bool:
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


def wake(bank: Bank, env: Mapping[str, str]) -> None:
    """Have a daemon for the next time, its model loaded, by a process that nobody waits for."""
    try:
        if time.time() - os.stat(bank.local / "daemon.started").st_mtime < 30:  # noqa: PTH116
            return
    except OSError:
        pass
    if not _left_behind():
        return
    try:
        from ua_memory.cli.starting import ensure, in_background

        if in_background(bank, env):
            ensure(bank, env)
            # The first question is what has it load the model.
            ask = [sys.executable, "-P", "-m", "ua_memory", "--bank", str(bank.root), "recall", "memory"]
            os.execv(ask[0], ask)
    finally:
        os._exit(0)
