"""The MCP server that clients start: it is there in the time Python takes, and has the daemon do the work.

What it says of itself and its tools is what the official SDK says, kept in `data/mcp.json` (`mcp_server`).
It speaks both eras: with a handshake, and without one (2026-07-28), where each request names its version.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from typing import Any

MODERN = "io.modelcontextprotocol/protocolVersion"
"""What a request of the era without a handshake has in its `_meta`."""
LARGEST = 2 << 20
"""Characters of a line: what is forwarded must fit into one message to the daemon."""
BAD_JSON, BAD_REQUEST, NO_METHOD, BAD_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603


class Fault(Exception):
    """A JSON-RPC error: its code, and what is wrong."""

    def __init__(self, code: int, what: str) -> None:
        self.code, self.what = code, what
        super().__init__(what)


def serve(words: list[str], mode: str) -> None:
    """Answer a client's lines until there are no more."""
    folder = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 (pathlib takes 4 ms)
    with open(f"{folder}/data/mcp.json", "rb") as file:  # noqa: PTH123
        known = json.load(file)
    woken = mode != "auto"
    for line in sys.stdin.buffer:
        answer = answered(line, known, words, mode)
        if answer is not None:
            sys.stdout.write(json.dumps(answer, separators=(",", ":")) + "\n")
            sys.stdout.flush()
        if not woken:
            woken = True
            _wake(words)


def answered(line: bytes, known: dict[str, Any], words: list[str], mode: str) -> dict[str, Any] | None:
    """The answer to one line; None to what wants none."""
    number: Any = None
    try:
        if not line.strip():
            return None
        message = _read(line)
        if "id" not in message:
            return None
        if isinstance(message["id"], str | int) and not isinstance(message["id"], bool):
            number = message["id"]
        result = _result(message, known, words, mode)
    except Fault as fault:
        return {"jsonrpc": "2.0", "id": number, "error": {"code": fault.code, "message": fault.what}}
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _read(line: bytes) -> dict[str, Any]:
    if len(line) > LARGEST:
        raise Fault(BAD_REQUEST, f"a line has at most {LARGEST} bytes")
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise Fault(BAD_JSON, "not JSON") from None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise Fault(BAD_REQUEST, "not a request of JSON-RPC 2.0")
    if "method" not in message and ("result" in message or "error" in message):
        return {}  # an answer to something we have not asked
    return message


def _result(message: dict[str, Any], known: dict[str, Any], words: list[str], mode: str) -> Any:
    method, params = message.get("method"), message.get("params")
    params = {} if params is None else params
    if not isinstance(method, str) or not isinstance(params, dict):
        raise Fault(BAD_REQUEST, "a method's name and an object of parameters are needed")
    meta = params.get("_meta")
    modern = method == "server/discover" or (isinstance(meta, dict) and MODERN in meta)
    era = "modern" if modern else "legacy"
    answers = known[era]
    if method == "tools/call":
        return _called(params, answers, words, mode)
    if method not in answers:
        raise Fault(NO_METHOD, f"no method {method[:50]}")
    if method == "initialize":
        asked = params.get("protocolVersion")
        return {**answers[method], **({"protocolVersion": asked} if asked in known["versions"] else {})}
    return answers[method]


def _called(params: dict[str, Any], answers: dict[str, Any], words: list[str], mode: str) -> dict[str, Any]:
    """What a tool answers. Fault for a tool that there is not."""
    name = params.get("name")
    listing = answers["tools/list"]
    names = [tool["name"] for tool in listing["tools"]]
    if name not in names:
        raise Fault(BAD_PARAMS, f"no tool {str(name)[:50]}; there are {', '.join(names)}")
    given = json.dumps({"name": name, "arguments": params.get("arguments")}).encode()
    text, failed = _asked(words, given, mode)
    result = {"content": [{"type": "text", "text": text}], "isError": failed}
    more = {key: listing[key] for key in ("resultType", "_meta") if key in listing}
    return {**result, **more}


def _asked(words: list[str], given: bytes, mode: str) -> tuple[str, bool]:
    """The text of an answer, and whether it is an error: by the daemon, else by a process of its own."""
    import subprocess

    # By the command itself, which goes to the daemon, starts one, or does the work: one way for all of it.
    done = subprocess.run(
        [sys.executable, "-P", "-m", "ua_memory", *words, "--call"],
        input=given, capture_output=True, check=False, env={**os.environ, "UA_MEMORY_DAEMON": mode},
    )  # fmt: skip
    if done.returncode == 0:
        found = json.loads(done.stdout)
        return str(found["text"]), bool(found["failed"])
    said = done.stderr.decode("utf-8", "replace").strip().removeprefix("ua-memory: error: ")
    return f"Memory cannot be used: {said or f'exit code {done.returncode}'}", True


def _wake(words: list[str]) -> None:
    """Have a daemon with its model loaded by the time a tool is called; nobody waits for it."""
    import subprocess

    at = next(n for n, word in enumerate(words) if word == "mcp" and words[n - 1 : n] != ["--bank"])
    nothing = subprocess.DEVNULL
    subprocess.Popen(
        [sys.executable, "-P", "-m", "ua_memory", *words[:at], "search", "memory", *words[at + 1 :]],
        stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True,
        env={**os.environ, "UA_MEMORY_DAEMON": "require"},
    )  # fmt: skip
