"""Asking a daemon how it stands, or to leave. Commands go the faster way of `cli.fast`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ua_memory.daemon import address, messages

SECONDS = 2.0
ENDS = 5.0
"""Seconds in which one that was killed must have ended."""


class Daemon(NamedTuple):
    """A daemon of this user's: where it listens, its process, its bank's folder ('' where it does not say),
    and what it says of itself, None if it does not answer."""

    socket: str
    pid: int
    bank: str
    said: dict[str, Any] | None


def every(env: Mapping[str, str]) -> list[Daemon]:
    """All daemons of this user's, by their banks."""
    found = list[Daemon]()
    for folder in filter(address.private, address.folders(env)):
        paths = (f"{folder}/{name}" for name in sorted(os.listdir(folder)) if name.endswith(".sock"))  # noqa: PTH208
        found += filter(None, map(_daemon, paths))
    return sorted(found, key=lambda one: (one.bank, one.pid))


def _daemon(path: str) -> Daemon | None:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
            daemon.settimeout(address.PROBE)
            daemon.connect(path)
    except (TimeoutError, BlockingIOError):
        pass  # it is there, and lets nobody in
    except OSError:  # of one that was killed
        return None
    said = ask(path, "status")
    pid, bank = address.about(path)
    return Daemon(path, said["pid"] if said else pid, bank, said)


def end(one: Daemon, seconds: float) -> bool:
    """Have a daemon leave, a command under way finished first, and kill one that has not left in time.
    Whether it has ended."""
    for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, ENDS)):
        if number == signal.SIGKILL or one.said is None or ask(one.socket, "stop") is None:
            wake(one.pid, number)
        deadline = time.monotonic() + patience
        while (there := _listens(one.socket)) and time.monotonic() < deadline:
            time.sleep(0.05)
        if not there:
            return True
    return False


def _listens(path: str) -> bool:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
            daemon.settimeout(address.PROBE)
            daemon.connect(path)
    except (TimeoutError, BlockingIOError):
        return True
    except OSError:
        return False
    return True


def wake(pid: int, number: signal.Signals) -> None:
    """Signal a daemon, also one that is frozen, which hears of nothing else."""
    with contextlib.suppress(OSError):
        if pid > 0:
            os.kill(pid, number)
            os.kill(pid, signal.SIGCONT)


def status(root: Path, env: Mapping[str, str]) -> dict[str, Any] | None:
    """What the bank's daemon says of itself; None if none answers."""
    return _asked(root, env, "status")


def stop(root: Path, env: Mapping[str, str]) -> int | None:
    """Ask it to leave; its process id, or None if none answers."""
    found = _asked(root, env, "stop")
    return int(found["pid"]) if found else None


def _asked(root: Path, env: Mapping[str, str], method: str) -> dict[str, Any] | None:
    name = address.name(os.path.realpath(root))
    for folder in address.folders(env):
        if not address.private(folder):
            continue
        if found := ask(f"{folder}/{name}", method):
            return found
    return None


def silent(root: Path, env: Mapping[str, str]) -> bool:
    """Whether the bank's daemon is there, and did not answer whoever asked it last."""
    name = address.name(os.path.realpath(root))
    return any(address.silent(f"{folder}/{name}") for folder in address.folders(env))


def ask(path: str, method: str) -> dict[str, Any] | None:
    """What the daemon that listens at a socket answers; None if it does not."""
    known = address.silent(path)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
            daemon.settimeout(min(SECONDS, address.PROBE) if known else SECONDS)
            daemon.connect(path)
            daemon.sendall(messages.line({"jsonrpc": "2.0", "id": 1, "method": method}))
            with daemon.makefile("rb") as lines:
                found = dict(json.loads(lines.readline())["result"])
    except TimeoutError:
        address.note_answer(path, False)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    else:
        if known:
            address.note_answer(path, True)
        return found
    return None
