"""The first stop of every command: a running daemon answers it, else this process does.

On the way to the daemon nothing is imported that costs: no typer, no rich, no dataclasses, `_socket` and
`_json` instead of the modules around them. Together those take longer than the answer.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

FORWARDED = frozenset(
    ("search", "insert", "get", "core", "log", "diff", "undo", "redo", "blame", "status", "config", "index")
)
"""What a daemon does on a caller's behalf. All else stays here: init, git and daemon by their nature; flush
and queue, which may wait for a model; verify, scan, stats and doctor, which read every file."""
WRITES = frozenset(("insert", "core", "undo", "redo"))
"""What must not be done a second time when the daemon died without an answer."""
STARTS = frozenset(("search", "insert", "get"))
"""What, done without a daemon, starts one for the next time."""
PASSED = (
    *("UA_", "GIT_", "LANG", "LC_", "TZ", "HOME", "EMAIL", "XDG_CONFIG_HOME"),
    *("TERM", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_"),
    *("CLAUDECODE", "CODEX_", "PI_", "OPENCLAW_", "HERMES_", "GEMINI_CLI", "OPENCODE", "CURSOR_AGENT"),
)
"""How the variables begin that go along: settings, git's, the clock's, the terminal's, those of agents."""
WITHIN = 15.0
"""Seconds of silence after which a daemon counts as stuck: it says each second that it is at work."""
MOST_INPUT = 2 << 20
"""Bytes of standard input that are sent along: as JSON each may take six, and a message holds 16 MB."""
ELSEWHERE, OTHER_CODE, BUSY, INPUT = -32001, -32002, -32003, -32004


class _NoAnswer(Exception):
    """The daemon ended, failed or is stuck. Unless it has taken the command, it will not do it."""

    def __init__(self, why: str, taken: bool) -> None:
        self.taken = taken
        super().__init__(why)


def main(argv: list[str] | None = None) -> NoReturn:
    """Run as a process: by the daemon if there is one that takes the command, else here."""
    words = sys.argv[1:] if argv is None else list(argv)
    mode = os.environ.get("UA_MEMORY_DAEMON") or "auto"
    verb = _verb(words)
    data: bytes | None = None
    if mode != "off" and verb in FORWARDED and hasattr(os, "getuid"):
        why = "it does not answer"
        for again in (False, True):
            try:
                code, data, why = _forwarded(words, verb, data)
            except KeyboardInterrupt:
                _leave(130)
            if code is not None:
                _leave(code)
            if mode != "require" or again:
                break
            from ua_memory.cli.app import bring_up

            bring_up(words, data)
        if mode == "require":
            _failed(words, f"the daemon does not take the command: {why}", "ua-memory daemon logs")
    from ua_memory.cli import app

    if mode == "off" or verb not in FORWARDED:
        app.main(words)
    app.in_process(words, data, then=mode == "auto" and verb in STARTS)


def _verb(words: list[str]) -> str:
    """The command's verb, as far as it can be told without reading the options."""
    rest = iter(words)
    for word in rest:
        if word == "--bank":
            next(rest, "")
        elif not word.startswith("-"):
            return word
        elif not word.startswith("--bank="):
            break
    return ""


# -- asking ------------------------------------------------------------------------------------------


def _forwarded(words: list[str], verb: str, data: bytes | None) -> tuple[int | None, bytes | None, str]:
    """(exit code, or None if it is to be done here; standard input if it was read; why it was not done)."""
    try:
        cwd = os.getcwd()  # noqa: PTH109 (pathlib takes 4 ms)
    except OSError:
        return None, data, "the current folder is gone"
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111
    daemon = _connected(words, cwd, home)
    if daemon is None:
        return None, data, "it does not answer"
    try:
        while True:
            daemon.sendall(_request(words, cwd, home, data))
            code, refused, why = _answer(daemon)
            if refused != INPUT or data is not None:
                return code, data, why
            data = sys.stdin.buffer.read() if sys.stdin else b""
            if len(data) > MOST_INPUT:
                return None, data, "there is too much on standard input"
    except _NoAnswer as error:
        if error.taken and verb in WRITES:
            _failed(words, "the daemon ended without an answer; the command may be done", "ua-memory log")
        return None, data, str(error)
    except OSError as error:  # it left before it had the whole line
        return None, data, str(error)
    finally:
        daemon.close()


def _connected(words: list[str], cwd: str, home: str) -> Any:
    """A connection to the daemon that the command may be for, or None. The daemon knows whether it is."""
    from _socket import AF_UNIX, SOCK_STREAM, socket

    from ua_memory.daemon import address

    for folder in address.folders(os.environ):
        try:
            there = os.listdir(folder)  # noqa: PTH208
        except OSError:
            continue
        if not there or not address.private(folder):
            continue
        for root in _banks(words, cwd, home):
            name = address.name(root)
            if name in there:
                daemon = socket(AF_UNIX, SOCK_STREAM)
                daemon.settimeout(WITHIN)
                try:
                    daemon.connect(f"{folder}/{name}")
                except OSError:  # of one that was killed
                    daemon.close()
                else:
                    return daemon
    return None


def _banks(words: list[str], cwd: str, home: str) -> Iterator[str]:
    """Folders that may be the bank that is meant, the likeliest first."""
    named = os.environ.get("UA_MEMORY_BANK") or ""
    options = words[: words.index("--")] if "--" in words else words
    for n, word in enumerate(options):
        if word.startswith("--bank="):
            named = word[7:]
        elif word == "--bank":
            named = "".join(options[n + 1 : n + 2])
    if named:
        if named == "~" or named.startswith("~/"):
            named = home + named[1:]
        yield os.path.realpath(os.path.join(cwd, named))  # noqa: PTH118
        return
    while len(cwd) > 1:
        yield cwd
        cwd = cwd.rpartition("/")[0]
    yield f"{home}/ua-memory"


def _request(words: list[str], cwd: str, home: str, data: bytes | None) -> bytes:
    from _json import encode_basestring_ascii as quoted

    from ua_memory.daemon.address import PACKAGE, PROTOCOL

    terminals = [name for fd, name in enumerate(("stdin", "stdout", "stderr")) if os.isatty(fd)]
    env = [f"{quoted(k)}:{quoted(v)}" for k, v in os.environ.items() if k.startswith(PASSED)]
    outer = [getattr(stream, "encoding", None) or "utf-8" for stream in (sys.stdout, sys.stderr)]
    params = [
        f'"protocol":{PROTOCOL}',
        f'"code":{quoted(PACKAGE)}',
        f'"argv":[{",".join(map(quoted, words))}]',
        f'"cwd":{quoted(cwd)}',
        f'"home":{quoted(home)}',
        f'"env":{{{",".join(env)}}}',
        f'"encodings":[{",".join(map(quoted, outer))}]',
        f'"terminals":[{",".join(map(quoted, terminals))}]',
        f'"width":{_width() if terminals else 80}',
        f'"stdin":{"null" if data is None else quoted(data.decode("latin-1"))}',
    ]
    return f'{{"jsonrpc":"2.0","id":1,"method":"run","params":{{{",".join(params)}}}}}\n'.encode()


def _width() -> int:
    for fd in (1, 2, 0):
        try:
            columns = os.get_terminal_size(fd).columns
        except OSError:
            continue
        if columns > 0:
            return columns
    return 80


# -- what comes back ---------------------------------------------------------------------------------


def _answer(daemon: Any) -> tuple[int | None, int, str]:
    """(exit code or None, the code of a refusal, its words). Prints what comes."""
    rest, taken = b"", False
    while True:
        while b"\n" not in rest:
            got = _received(daemon)
            if not got:
                raise _NoAnswer("it does not answer", taken)
            rest, taken = rest + got, True
        line, _, rest = rest.partition(b"\n")
        message = _parsed(line.decode())
        if "method" in message:
            if message["method"] == "write":
                _print(message["params"])
        elif "result" in message:
            found = message["result"]
            return _print(found["output"]) or found["code"], 0, ""
        else:
            refused = message["error"]
            if refused["code"] not in (ELSEWHERE, OTHER_CODE, BUSY, INPUT):
                raise _NoAnswer(refused["message"], taken)
            return None, refused["code"], refused["message"]


def _received(daemon: Any) -> Any:
    """What the daemon sends next; empty where it has ended or is stuck."""
    try:
        return daemon.recv(1 << 18)
    except OSError:
        # From here on it cannot take the command any more: it says so first, and that would fail.
        try:
            daemon.shutdown(2)
            return daemon.recv(1 << 18)
        except OSError:
            return b""


def _parsed(line: str) -> Any:
    try:
        from _json import make_scanner
    except ImportError:  # another Python's JSON is made of other parts
        import json

        return json.loads(line)
    return make_scanner(_Plain)(line, 0)[0]  # type: ignore[arg-type]


class _Plain:
    """How the standard library's scanner is to read JSON, as `json.loads` has it."""

    strict, memo = True, dict[str, str]()
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def _print(chunks: list[tuple[int, str]]) -> int:
    """Write what the command wrote, in its order; 141 if nobody reads it any more, else 0."""
    for number, text in chunks:
        stream = sys.stdout if number == 1 else sys.stderr
        if stream is None:  # closed by the caller (`>&-`)
            continue
        try:
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
            stream.write(text)
            stream.flush()
        except BrokenPipeError:
            return 141
        except OSError as error:
            from ua_memory.cli.app import fail

            fail(sys.argv[1:], error)
    return 0


def _leave(code: int) -> NoReturn:
    """End the process at once: all is written, and taking the interpreter apart takes its time, too."""
    os._exit(code)


def _failed(words: list[str], what: str, mend: str) -> NoReturn:
    from ua_memory.cli.app import fail
    from ua_memory.errors import Busy

    fail(words, Busy(what, mend=mend))
