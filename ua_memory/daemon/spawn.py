"""Starting a daemon, or work that goes on when its caller is gone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.caller import in_process
from ua_memory.errors import Busy
from ua_memory.paths import make_private

if TYPE_CHECKING:
    from ua_memory.caller import Call, Clock
    from ua_memory.config import Config
    from ua_memory.memory import Memory
    from ua_memory.paths import Bank


# -- starting ----------------------------------------------------------------------------------------------
# Starting a daemon: in the background for the next command, or at once for one that insists.


AGAIN = 30.0
"""Seconds after which a daemon that did not come up is tried again."""
COMES_UP = 20.0
"""Seconds in which it must answer."""


def in_background(bank: Bank, env: Mapping[str, str]) -> bool:
    """Start a daemon unless there is one or one has just been tried, and tell whether; does not wait."""
    from ua_memory.daemon.server import runs

    mark = bank.local / "daemon.started"
    try:
        make_private(bank.local)
        with contextlib.suppress(FileNotFoundError):
            if time.time() - mark.stat().st_mtime < AGAIN:
                return False
        if runs(bank.local):
            return False
        mark.touch(mode=0o600)
        start(bank, env)
    except OSError:  # a bank that we may only read has no daemon
        return False
    return True


def start(bank: Bank, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the process, of its own session and with nothing of the caller's open."""
    from ua_memory.daemon.server import NAME

    make_private(bank.local)
    log = os.open(bank.local / NAME, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            # -P: no module of the folder it runs in may take the place of one of ours.
            [sys.executable, "-P", "-m", "ua_memory", "--bank", str(bank.root), "daemon", "run"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=_environment(env),
            start_new_session=True,
        )
    finally:
        os.close(log)


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    # What is particular to one caller comes with each request; a daemon must not keep their keys.
    return {name: value for name, value in env.items() if not name.startswith(("ANTHROPIC_", "UA_"))}


def ensure(bank: Bank, env: Mapping[str, str]) -> dict[str, Any]:
    """Have a daemon that answers, and return its status. Busy if none comes up."""
    from ua_memory.daemon.protocol import silent, status
    from ua_memory.daemon.server import runs

    process: subprocess.Popen[bytes] | None = None
    deadline = time.monotonic() + COMES_UP
    while time.monotonic() < deadline:
        found = status(bank.root, env)
        if found is not None:
            return found
        if process is None and not runs(bank.local):
            process = start(bank, env)
        elif process is None and silent(bank.root, env):
            hint = "ua-memory daemon restart"
            raise Busy("the daemon does not answer", where=str(bank.root), hint=hint)
        elif process is not None and process.poll():
            break
        time.sleep(0.05)
    raise Busy("the daemon does not answer", where=str(bank.root), hint="ua-memory daemon logs")


class InProcess:
    """An opener that notes which bank it opened. With `insist` it opens none, but brings its daemon up."""

    def __init__(self, env: Mapping[str, str], *, insist: bool = False) -> None:
        self.env, self.insist = env, insist
        self.bank: Bank | None = None

    @contextlib.contextmanager
    def __call__(self, root: Path, config: Config, now: Clock | None) -> Iterator[Memory]:
        with in_process(root, config, now) as memory:
            self.bank = memory.store.bank
            if self.insist:
                ensure(self.bank, self.env)
                raise BroughtUp
            yield memory


class BroughtUp(BaseException):
    """The daemon is there now: ask it. Not an Exception: no message is to be made of it."""


# -- detached ----------------------------------------------------------------------------------------------
# Work that goes on when the shell, hook or cron job that asked for it is gone.


LOG = "flush.log"
LARGEST = 1 << 20
"""Bytes of log after which it begins anew; the one before is kept."""


def survive() -> None:
    """A terminal that closes sends SIGHUP to those it started; what is handed over must be on the disk first.

    The process that is started inherits this.
    """
    with contextlib.suppress(ValueError, AttributeError):  # not the main thread; no such signal
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def start_detached(call: Call, memory: Memory, *words: str) -> str:
    """Start a process of its own session that runs a command, else flushes what waits, and return its log's
    path."""
    folder = memory.store.bank.local
    make_private(folder)
    log = folder / LOG
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size > LARGEST:
            log.replace(log.with_suffix(".log.1"))
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        what = " ".join(words) or "flush of the queue"
        os.write(out, f"{memory.store.now():%Y-%m-%d %H:%M:%S} {what}\n".encode())
        subprocess.Popen(
            # -P: no module of the folder it runs in may take the place of one of ours.
            [
                *(sys.executable, "-P", "-m", "ua_memory", "--bank", str(memory.store.bank.root)),
                *(words or ("flush",)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd="/",
            env=dict(call.env),
            start_new_session=True,
        )
    finally:
        os.close(out)
    return str(log)
