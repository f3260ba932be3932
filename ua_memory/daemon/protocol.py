"""What goes over the daemon's socket: JSON-RPC 2.0, and asking how the daemon stands."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ua_memory.daemon import connect
from ua_memory.daemon.connect import BUSY as BUSY
from ua_memory.daemon.connect import ELSEWHERE as ELSEWHERE
from ua_memory.daemon.connect import INPUT as INPUT
from ua_memory.daemon.connect import OTHER_CODE as OTHER_CODE

# -- messages ----------------------------------------------------------------------------------------------
# What goes over the socket: JSON-RPC 2.0, one message a line. `docs/daemon.md` is the description.


LATE = -32005
"""The command did not end within its deadline; it may still be carried out."""
BAD_JSON, BAD_REQUEST, NO_METHOD, BAD_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603


class RequestRefused(BaseException):
    """The daemon does not answer this; `code` says why.

    Not an Exception: it goes through the command's own boundary, which turns every one into a message.
    """

    def __init__(self, code: int, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Request:
    """One command as its caller would have run it. `stdin` is None as long as nobody asked for it."""

    argv: tuple[str, ...]
    cwd: str
    home: str
    env: Mapping[str, str]
    encodings: tuple[str, str]
    terminals: frozenset[str]
    width: int
    stdin: bytes | None = None


def parsed(line: bytes) -> tuple[object, str, dict[str, Any]]:
    """(id, method, params) of a request line. Refused if it is none."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RequestRefused(BAD_JSON, "not JSON") from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or "id" not in message:
        raise RequestRefused(BAD_REQUEST, "not a request of JSON-RPC 2.0")
    method, params = message.get("method"), message.get("params", {})
    if not isinstance(method, str) or not isinstance(params, dict):
        raise RequestRefused(BAD_REQUEST, "a method's name and an object of parameters are needed")
    return message["id"], method, params


def request(params: Mapping[str, Any]) -> Request:
    """The command that a `run` asks for. Refused if anything is missing or of another type."""
    try:
        given = params.get("stdin")
        argv, env = params["argv"], params["env"]
        out, err = params["encodings"]
        found = Request(
            tuple(argv), params["cwd"], params["home"], dict(env), (out, err), frozenset(params["terminals"]),
            params["width"], None if given is None else given.encode("latin-1"),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RequestRefused(BAD_PARAMS, f"run: {error}") from error
    texts = [found.cwd, found.home, *found.argv, *found.env, *found.env.values(), *found.encodings]
    if not all(isinstance(text, str) for text in [*texts, *found.terminals]) or type(found.width) is not int:
        raise RequestRefused(BAD_PARAMS, "run: a parameter is of another type")
    return found


def answer(number: object, result: object) -> bytes:
    """The line of a result."""
    return line({"jsonrpc": "2.0", "id": number, "result": result})


def refusal(number: object, code: int, message: str) -> bytes:
    """The line of an error."""
    return line({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}})


def notice(method: str, params: object) -> bytes:
    """The line of a notification."""
    return line({"jsonrpc": "2.0", "method": method, "params": params})


def line(message: object) -> bytes:
    """A message as one line of ASCII."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


# -- client ------------------------------------------------------------------------------------------------
# Asking a daemon how it stands, or to leave. Commands go the faster way of `cli.fast`.


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
    for folder in filter(connect.is_private, connect.socket_folders(env)):
        paths = (f"{folder}/{name}" for name in sorted(os.listdir(folder)) if name.endswith(".sock"))  # noqa: PTH208
        found += filter(None, map(_daemon, paths))
    return sorted(found, key=lambda one: (one.bank, one.pid))


def _daemon(path: str) -> Daemon | None:
    if not _listens(path):
        return None
    said = ask(path, "status")
    pid, bank = connect.read_owner(path)
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
    """Whether there is a daemon at a socket: one that was killed has left it behind."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
            daemon.settimeout(connect.PROBE)
            daemon.connect(path)
    except (TimeoutError, BlockingIOError):  # it is there, and lets nobody in
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
    name = connect.socket_name(os.path.realpath(root))
    for folder in connect.socket_folders(env):
        if not connect.is_private(folder):
            continue
        if found := ask(f"{folder}/{name}", method):
            return found
    return None


def silent(root: Path, env: Mapping[str, str]) -> bool:
    """Whether the bank's daemon is there, and did not answer whoever asked it last."""
    name = connect.socket_name(os.path.realpath(root))
    return any(connect.is_silent(f"{folder}/{name}") for folder in connect.socket_folders(env))


def ask(path: str, method: str) -> dict[str, Any] | None:
    """What the daemon that listens at a socket answers; None if it does not."""
    known = connect.is_silent(path)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
            daemon.settimeout(min(SECONDS, connect.PROBE) if known else SECONDS)
            daemon.connect(path)
            daemon.sendall(line({"jsonrpc": "2.0", "id": 1, "method": method}))
            with daemon.makefile("rb") as lines:
                found = dict(json.loads(lines.readline())["result"])
    except TimeoutError:
        connect.note_answer(path, False)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    else:
        if known:
            connect.note_answer(path, True)
        return found
    return None
