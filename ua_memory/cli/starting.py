"""Starting a daemon: in the background for the next command, or at once for one that insists."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.cli.call import in_process
from ua_memory.errors import Busy
from ua_memory.paths import make_private

if TYPE_CHECKING:
    from ua_memory.cli.call import Clock
    from ua_memory.config import Config
    from ua_memory.memory import Memory
    from ua_memory.paths import Bank

AGAIN = 30.0
"""Seconds after which a daemon that did not come up is tried again."""
COMES_UP = 20.0
"""Seconds in which it must answer."""


def in_background(bank: Bank, env: Mapping[str, str]) -> bool:
    """Start a daemon unless there is one or one has just been tried, and tell whether; does not wait."""
    from ua_memory.daemon.service import runs

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
    from ua_memory.daemon.log import NAME

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
    from ua_memory.daemon.client import silent, status
    from ua_memory.daemon.service import runs

    process: subprocess.Popen[bytes] | None = None
    deadline = time.monotonic() + COMES_UP
    while time.monotonic() < deadline:
        found = status(bank.root, env)
        if found is not None:
            return found
        if process is None and not runs(bank.local):
            process = start(bank, env)
        elif process is None and silent(bank.root, env):
            mend = "ua-memory daemon restart"
            raise Busy("the daemon does not answer", where=str(bank.root), mend=mend)
        elif process is not None and process.poll():
            break
        time.sleep(0.05)
    raise Busy("the daemon does not answer", where=str(bank.root), mend="ua-memory daemon logs")


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
