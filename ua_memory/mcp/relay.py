"""The MCP server that clients start: a small process that forwards calls to the daemon."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys

from ua_memory import discovery
from ua_memory.daemon import connect

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ua_memory.daemon.connect import Chunks


MODERN_KEY = "io.modelcontextprotocol/protocolVersion"
"""The key in `_meta` of requests in the protocol versions without a handshake."""
CLIENT_KEY, MODE_VARIABLE = "io.modelcontextprotocol/clientInfo", "UA_MEMORY_DAEMON"
LARGEST_LINE = 2 << 20
"""Bytes of a line: a forwarded request must fit into one message to the daemon."""
_STRINGS = rb'"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"'
_ID = rb'"id"\s*:\s*(-?(?:0|[1-9]\d*)(?=[\s,}])|"[^"\\\x00-\x1f]*")'
_ID_FIRST = re.compile(rb"\s*\{\s*(?:" + _STRINGS + rb"\s*,\s*)*" + _ID)
_ID_LAST = re.compile(_ID + rb"\s*(?:,\s*" + _STRINGS + rb"\s*)*\}\s*\Z")
"""The id of a request before or behind its parameters."""
_LINE_ENDS = 500
MAY_ASK_A_MODEL = frozenset(
    "retain ingest ingest_file create_page update_page refresh_page reflect".split()  # noqa: SIM905
)
"""Tools that may call a model."""
IN_THREADS = frozenset(("reflect", "resources/list", "resources/read"))
"""Tools and methods that run in a thread, so that other requests do not wait for them."""
MOST_THREADS = 8
BEFORE_TOOLS = (b'"initialize"', b'"server/discover"', b'"notifications/')
"""Messages that a client sends before `tools/list`."""
BAD_JSON, BAD_REQUEST, NO_METHOD, BAD_PARAMS = -32700, -32600, -32601, -32602


class JsonRpcError(Exception):
    """An `error` of JSON-RPC: its code, and what is wrong."""

    def __init__(self, code: int, what: str, data: Any = None) -> None:
        super().__init__(what)
        self.error = {"code": code, "message": what, **({"data": data} if data is not None else {})}


def serve_stdio(words: list[str], mode: str) -> bool:
    """Answer a client's lines until the input ends. False, with nothing read, if the command line has other
    options or unknown tools, which `cli.app` handles."""
    known = read_tool_data()
    names = _parse_tools_option(words, known)
    if names is None:
        return False
    relay = Relay(known, words, mode, names)
    started = mode != "auto"
    for line in sys.stdin.buffer if sys.stdin else ():  # None: it is closed
        relay.handle_line(line)
        # Start the daemon only after the answer to `tools/list`, so that the client does not wait for it.
        if not started and not any(name in line for name in BEFORE_TOOLS):
            started = True
            start_daemon(words)
    if not started:
        start_daemon(words)
    relay.finish()
    return True


def _parse_tools_option(words: list[str], known: dict[str, Any]) -> list[str] | None:
    """The names in --tools, [] without it; None if a word or a name is unknown."""
    rest = iter(words)
    found: list[str] = []
    for word in rest:
        option, equals, value = word.partition("=")
        if option in ("--bank", "--tools"):
            value = value if equals else next(rest, "")
            found += split_names(value) if option == "--tools" else ()
        elif word != "mcp":
            return None
    return None if unknown_names(found, known) else found


def unknown_names(names: Sequence[str], known: dict[str, Any]) -> str:
    """An error message if names are of no tool and no set, else ''."""
    there = [*known["sets"], *(tool["name"] for tool in known["tools"])]
    unknown = [name for name in names if name not in there]
    if not all(unknown):
        return "the name of a tool is empty"
    if not unknown:
        return ""
    return _with_nearest(f"no tool or set of tools is called {', '.join(unknown)}", unknown, there)


def _with_nearest(what: str, unknown: Sequence[str], there: Sequence[str]) -> str:
    """An error message, and the names that are most like the unknown ones."""
    from difflib import get_close_matches

    near = ", ".join(dict.fromkeys(each for name in unknown for each in get_close_matches(name, there, 1)))
    return f"{what}; did you mean {near}?" if near else what


def split_names(text: str) -> list[str]:
    """Split a comma-separated list of names."""
    return [name for each in text.split(",") if (name := each.strip())]


def read_tool_data() -> dict[str, Any]:
    """Read `data/mcp.json`: tools, sets, and the answers to requests that need no bank."""
    folder = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 (pathlib takes 4 ms)
    with open(f"{folder}/data/mcp.json", "rb") as file:  # noqa: PTH123
        found: dict[str, Any] = json.load(file)
    return found


def expand_names(names: Sequence[str], known: dict[str, Any]) -> list[dict[str, Any]]:
    """The tools that names of tools and sets stand for, in the order of the tools."""
    wanted = {each for name in names for each in known["sets"].get(name, (name,))}
    return [tool for tool in known["tools"] if tool["name"] in wanted]


def offered_tools(
    known: dict[str, Any], names: Sequence[str], left: Sequence[str], reads: bool
) -> list[dict[str, Any]]:
    """The tools to list for a client that named these tools and sets, or none: those that the settings leave,
    mcp.tools (`left`) and mcp.read_only (`reads`)."""
    enabled = expand_names(left or ["all"], known)
    asked = expand_names(names or left or ["default"], known)
    return [t for t in asked if t in enabled and (not reads or t["annotations"]["readOnlyHint"])]


class Relay:
    """The server for one client. `known` is data/mcp.json, `words` the command's arguments, `names` the tools
    and sets in them."""

    def __init__(self, known: dict[str, Any], words: list[str], mode: str, names: Sequence[str] = ()) -> None:
        self.known, self.words, self.mode, self.names = known, words, mode, names
        self.client = ""
        self._printed: set[str] = set()
        self._running: dict[Any, list[Any]] = {}
        self._threads: list[Any] = []

    def handle_line(self, line: bytes) -> None:
        """Answer one line, or start a thread that does."""
        number: Any = None
        try:
            if not line.strip():
                return
            if len(line) > LARGEST_LINE:
                self._refuse_large(line)
                return
            message = _parse_line(line)
            if message.get("method") == "notifications/cancelled":
                self._cancel(message.get("params"))
            if "id" not in message:
                return
            if not isinstance(message["id"], str | int) or isinstance(message["id"], bool):
                raise JsonRpcError(BAD_REQUEST, "an id is a string or an integer")
            number = message["id"]
            method, params, era = _request_parts(message)
            action = params.get("name") if method == "tools/call" else method
            if str(action) in IN_THREADS and len(self._running) < MOST_THREADS:
                self._start_thread(number, method, params, era)
                return
            answer = {"result": self.result(method, params, era, [])}
        except JsonRpcError as fault:
            answer = {"error": fault.error}
        self._send(number, answer)

    def _refuse_large(self, line: bytes) -> None:
        """Answer a line that is too long, without reading it: by the id at one of its ends, if there is one,
        since a caller would wait for it."""
        first, last = line[:_LINE_ENDS], line[-_LINE_ENDS:]
        found = _ID_FIRST.match(first) or _ID_LAST.search(last)
        try:
            number = json.loads(found[1]) if found else None
        except ValueError:  # not UTF-8
            number = None
        what = f"too long: a line has at most {LARGEST_LINE} bytes"
        if number is None or b'"tools/call"' not in first + last:
            self._send(number, {"error": JsonRpcError(BAD_REQUEST, what).error})
            return
        answers = self.known["modern" if MODERN_KEY.encode() in line else "legacy"]
        text = f"{what}; split it, or use ingest_file"
        self._send(number, {"result": _tool_result({"text": text, "failed": True}, answers)})

    def finish(self) -> None:
        """Wait for the threads."""
        for thread in self._threads:
            thread.join()

    def _start_thread(self, number: Any, method: str, params: dict[str, Any], era: str) -> None:
        from threading import Thread

        running: list[Any] = []

        def work() -> None:
            try:
                answer = {"result": self.result(method, params, era, running)}
            except JsonRpcError as fault:
                answer = {"error": fault.error}
            if self._running.pop(number, None) is not None:  # a cancelled request has no answer
                self._send(number, answer)

        thread = Thread(target=work)
        self._running[number] = running
        self._threads = [each for each in self._threads if each.is_alive()]
        try:
            thread.start()
        except RuntimeError:  # no more threads: run it here
            work()
        else:
            self._threads.append(thread)

    def _cancel(self, params: Any) -> None:
        begun = self._running.pop(params.get("requestId"), None) if isinstance(params, dict) else None
        if begun is not None:
            begun.append(None)  # for work that has not started yet
            for stop in filter(None, begun):
                with contextlib.suppress(OSError):
                    stop()

    def _send(self, number: Any, answer: dict[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", "id": number, **answer}, separators=(",", ":")) + "\n"
        try:
            sys.stdout.write(line)  # one write a line: threads do not mix them
            sys.stdout.flush()
        except BrokenPipeError:  # nobody reads the answers any more; the exit code is that of other commands
            os._exit(141)

    def result(self, method: str, params: dict[str, Any], era: str, running: list[Any]) -> Any:
        """The result of a request; `running` is as for `ask_memory`. JsonRpcError."""
        answers = self.known[era]
        info = params.get("clientInfo") or (params.get("_meta") or {}).get(CLIENT_KEY)
        if isinstance(info, dict) and isinstance(info.get("name"), str):
            self.client = _client_name(info["name"])
        if method == "tools/call":
            return self._call_tool(params, answers, running)
        if method not in answers:
            raise JsonRpcError(NO_METHOD, f"unknown method {method[:50]}")
        found = answers[method]
        if method == "initialize":
            asked = params.get("protocolVersion")
            return {**found, **({"protocolVersion": asked} if asked in self.known["versions"] else {})}
        if method == "tools/list":
            return {**found, "tools": self._tools()}
        if method == "resources/list":
            return {**found, "resources": self._ask({"resources": True}, running).get("resources", [])}
        if method == "resources/read":
            return self._read_resource(found, params, running)
        return found

    def _tools(self) -> list[Any]:
        left, reads = _enabled_tools(self.words)
        if wrong := unknown_names(left, self.known):
            self._note(f"ua-memory: mcp.tools: {wrong}")
        return offered_tools(self.known, self.names, left, reads)

    def _call_tool(
        self, params: dict[str, Any], answers: dict[str, Any], running: list[Any]
    ) -> dict[str, Any]:
        """Call a tool. JsonRpcError for an unknown one."""
        name = params.get("name")
        # Only by --tools: a tool that the settings disable has its own error message.
        names = [tool["name"] for tool in expand_names(self.names or ["all"], self.known)]
        if name not in names:
            called = str(name)[:50]
            raise JsonRpcError(BAD_PARAMS, _with_nearest(f"unknown tool {called}", [called], names))
        return _tool_result(self._ask({"tool": name, "arguments": params.get("arguments")}, running), answers)

    def _read_resource(self, envelope: dict[str, Any], params: dict[str, Any], running: list[Any]) -> Any:
        uri = params.get("uri")
        if not isinstance(uri, str):
            raise JsonRpcError(BAD_PARAMS, "uri is required")
        found = self._ask({"read": uri}, running)
        if "missing" in found or found.get("failed"):
            raise JsonRpcError(BAD_PARAMS, found.get("missing") or found["text"], {"uri": uri})
        return {**envelope, "contents": [{"uri": uri, "mimeType": "text/markdown", "text": found["text"]}]}

    def _ask(self, request: dict[str, Any], running: list[Any]) -> dict[str, Any]:
        session = os.environ.get("CLAUDE_CODE_SESSION_ID")
        who = {"client": self.client, "session": session, "process": os.getppid()}
        found = ask_memory(self.words, {**request, **who}, self.mode, running)
        for line in found.pop("notes", ()):
            self._note(line)
        return found

    def _note(self, line: str) -> None:
        if line not in self._printed:  # each call is a separate command and would repeat it
            self._printed.add(line)
            _log(line)


def _tool_result(found: dict[str, Any], answers: dict[str, Any]) -> dict[str, Any]:
    """The result of a tool's call, in the era of these answers."""
    more = {key: value for key, value in answers["tools/list"].items() if key in ("resultType", "_meta")}
    return {"content": [{"type": "text", "text": found["text"]}], "isError": found["failed"], **more}


def ask_memory(
    words: list[str], request: dict[str, Any], mode: str, running: list[Any], one_child: Any = None
) -> dict[str, Any]:
    """Answer a request, as `mcp.tools.answer_request` does: by the daemon, else by a child process, so that
    nothing heavy is imported here. `notes` are lines for the user.

    `running` gets a function that stops the work; None in it means that the request was cancelled. With the
    lock `one_child`, requests without a daemon wait for the one that starts it: each child loads the model.
    """
    # The daemon lacks the client's environment, with its model, and must not wait for a model.
    mode = "off" if request.get("tool") in MAY_ASK_A_MODEL else mode
    data = json.dumps(request).encode()
    if mode != "off":
        found, why = _ask_daemon([*words, "--call"], data, running)
        if found is not None:
            return found
        if None in running:
            return {"text": "cancelled", "failed": True}
        if why == connect.NOT_RUNNING and one_child is not None:
            with one_child:
                return ask_memory(words, request, mode, running)
        # The child starts a daemon if none is running; one that refused would refuse again.
        mode = mode if why == connect.NOT_RUNNING or mode == "require" else "off"
    return _ask_child([*words, "--call"], data, mode, running)


def _ask_daemon(words: list[str], data: bytes, running: list[Any]) -> tuple[dict[str, Any] | None, str]:
    """(the answer, why there is none)."""
    texts = {1: "", 2: ""}

    def write(chunks: Chunks) -> int:
        for stream, text in chunks:
            texts[stream] += text
        return 0

    def on_connect(daemon: Any) -> None:
        running.append(lambda: daemon.shutdown(2))
        if None in running:
            daemon.shutdown(2)

    if len(data) > connect.MOST_INPUT:
        return None, "the request is too large"
    try:
        code, _, why = connect.run_in_daemon(words, data, 0, write, on_connect)
    except connect.NoAnswer:  # it may be done: not a second time
        return {
            "text": f"Memory cannot be used: {connect.LOST_ANSWER} (see: ua-memory log)",
            "failed": True,
        }, ""
    return (None, why) if code is None else (_result(code, texts[1], texts[2]), "")


def _ask_child(words: list[str], data: bytes, mode: str, running: list[Any]) -> dict[str, Any]:
    import subprocess

    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "ua_memory", *words], env={**os.environ, MODE_VARIABLE: mode},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    except OSError as error:
        return {"text": f"Memory cannot be used now: {error.strerror}. Try again.", "failed": True}
    running.append(process.kill)
    if None in running:
        process.kill()
    out, err = process.communicate(data)
    return _result(process.returncode, out.decode(), err.decode("utf-8", "replace"))


def _result(code: int, out: str, err: str) -> dict[str, Any]:
    """A command's output as an answer."""
    if code == 0:
        found: dict[str, Any] = json.loads(out)
        return {**found, "notes": err.splitlines()}
    said = err.strip().removeprefix("ua-memory: error: ")
    return {"text": f"Memory cannot be used: {said or f'exit code {code}'}", "failed": True}


def _log(line: str) -> None:
    """Print a line to standard error, which the client may have closed."""
    try:
        if sys.stderr is not None:
            print(line, file=sys.stderr, flush=True)
    except OSError:
        pass


# -- reading requests --------------------------------------------------------------------------------------


def _parse_line(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise JsonRpcError(BAD_JSON, "not JSON") from None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise JsonRpcError(BAD_REQUEST, "not a request of JSON-RPC 2.0")
    if "method" not in message and ("result" in message or "error" in message):
        return {}  # a response, though we send no requests
    return message


def _request_parts(message: dict[str, Any]) -> tuple[str, dict[str, Any], str]:
    """(method, parameters, era) of a request. JsonRpcError."""
    method, params = message.get("method"), message.get("params")
    params = {} if params is None else params
    if not isinstance(method, str) or not isinstance(params, dict):
        raise JsonRpcError(BAD_REQUEST, "a method's name and an object of parameters are needed")
    meta = params.get("_meta")
    modern = method == "server/discover" or (isinstance(meta, dict) and MODERN_KEY in meta)
    return method, params, "modern" if modern else "legacy"


def _client_name(name: str) -> str:
    """A client's name for a heading: codex-mcp-client becomes codex."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name[:40])
    return name.removesuffix("-mcp-client").strip("-").lower()


def _enabled_tools(words: list[str]) -> tuple[list[str], bool]:
    """The settings mcp.tools and mcp.read_only, by the environment, the user's file and the nearest bank's.

    Only for the list that a client is shown; each call checks them again. They are not read by `config`,
    which takes 60 ms and twice the memory of this process.
    """
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111
    roots = connect.candidate_banks(words, os.getcwd(), home)  # noqa: PTH109
    found = (_mcp_settings(f"{root}/{discovery.SETTINGS}") for root in roots)
    written = next((each for each in found if each is not None), {})
    written |= _mcp_settings(f"{discovery.user_folder({'HOME': home, **os.environ})}/{discovery.USER}") or {}
    tools, reads = (os.environ.get(f"UA_MEMORY_MCP_{name}") for name in ("TOOLS", "READ_ONLY"))
    names = split_names(tools) if tools else written.get("tools")
    few = [name.strip() for name in names if isinstance(name, str)] if isinstance(names, list) else []
    only = reads.strip().lower() in ("1", "true", "yes", "on") if reads else written.get("read_only") is True
    return few, only


def _mcp_settings(path: str) -> dict[str, Any] | None:
    """The table `mcp` of a settings file; None if there is no file."""
    try:
        data = discovery.read(path)
    except OSError:
        return None
    found: Any = None
    if b"mcp" in data:
        import tomllib

        with contextlib.suppress(ValueError):  # every call says so
            found = tomllib.loads(data.decode()).get("mcp")
    return found if isinstance(found, dict) else {}


def start_daemon(words: list[str]) -> None:
    """Start a daemon with its model loaded before a tool is called, without waiting."""
    from ua_memory.daemon.spawn import start_warm_daemon

    bank = connect.option_value(words, "--bank")
    try:
        start_warm_daemon(["--bank", bank] if bank else [], os.environ, cwd=None)
    except OSError as error:
        _log(f"ua-memory: the daemon cannot be started: {error.strerror or error}")
