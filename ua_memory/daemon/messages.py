"""What goes over the socket: JSON-RPC 2.0, one message a line. `docs/daemon.md` is the description."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ELSEWHERE = -32001
"""The command is about another bank than this daemon's. Nothing was done."""
OTHER_CODE = -32002
"""Daemon and caller are not of the same installation, or it has changed. Nothing was done."""
BUSY = -32003
"""Others' commands take too long for this one to wait. Nothing was done."""
INPUT = -32004
"""The command reads standard input, which was not sent along. Nothing was done."""
LATE = -32005
"""The command did not end within its deadline; it may still be carried out."""
BAD_JSON, BAD_REQUEST, NO_METHOD, BAD_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603


class Refused(BaseException):
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
        raise Refused(BAD_JSON, "not JSON") from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or "id" not in message:
        raise Refused(BAD_REQUEST, "not a request of JSON-RPC 2.0")
    method, params = message.get("method"), message.get("params", {})
    if not isinstance(method, str) or not isinstance(params, dict):
        raise Refused(BAD_REQUEST, "a method's name and an object of parameters are needed")
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
        raise Refused(BAD_PARAMS, f"run: {error}") from error
    texts = [found.cwd, found.home, *found.argv, *found.env, *found.env.values(), *found.encodings]
    if not all(isinstance(text, str) for text in [*texts, *found.terminals]) or type(found.width) is not int:
        raise Refused(BAD_PARAMS, "run: a parameter is of another type")
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
