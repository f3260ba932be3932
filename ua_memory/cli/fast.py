"""The first stop of every command: a running daemon answers it, else this process does.

On the way to the daemon nothing is imported that costs.
"""

from __future__ import annotations

import os
import sys
import time

from ua_memory.daemon import connect
from ua_memory.discovery import PAGER_IN_USE, blake2b

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from typing import Any, NoReturn


FORWARDED = frozenset(
    "search list today yesterday recall hook insert get core log diff undo redo blame"  # noqa: SIM905
    " status config index mcp".split()
)
"""What a daemon does on a caller's behalf. All else stays here: init, git and daemon by their nature; flush
and queue, which may wait for a model; verify, scan, stats and doctor, which read every file; explain, which
reads none; bench, which has banks of its own."""
WRITES = frozenset(("insert", "core", "undo", "redo", "mcp"))
"""What must not be done a second time when the daemon died without an answer."""
STARTS = frozenset(("search", "list", "today", "yesterday", "recall", "hook", "insert", "get", "mcp"))
"""What, done without a daemon, starts one for the next time."""
HOOK_WITHIN = 1.0
"""Seconds that a client's hook waits for a daemon that is busy or loads its model; then words must do."""
RESTART = "ua-memory daemon restart"
PICKING = frozenset(("-i", "--interactive"))
"""Options of `search` that are for whoever sits at the terminal."""
LEAVING = (b'"SessionEnd"', b'"PreCompact"')
"""Events at which a client does not wait: no daemon is asked, which may be busy."""
HAND_OVER = 100
"""How a hook's work ends that leaves something to flush: a process is started that nobody waits for."""


PAGED = frozenset(("log", "diff"))
"""What is shown by a pager where it goes to a terminal, as git does it."""
PIPE_CLOSED = 141


QUIET = {"OPENBLAS_NUM_THREADS": "1", "ORT_DISABLE_TELEMETRY": "1"}
"""What libraries are told before they load. Threads that spin over small matrices took half of a search's
processor time; onnxruntime keeps a device id and a database under the home directory to report home with."""


def main(argv: list[str] | None = None) -> NoReturn:
    """Run as a process: by the daemon if there is one that takes the command, else here."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    words = sys.argv[1:] if argv is None else list(argv)
    mode = os.environ.get("UA_MEMORY_DAEMON") or "auto"
    verb = _verb(words)
    if verb in PAGED and not {"--json", "--no-pager", "--help", "-h"} & {*words}:
        _page()
    if verb == "hook" and not {"--help", "-h", "shell"} & {*words} and not os.isatty(0):
        _hook(words, mode)
    if verb == "mcp" and "--call" not in words:
        from ua_memory.mcp import relay

        if relay.serve(words, mode):
            _leave(0)
        from ua_memory.cli import app

        app.main(words)  # help, a server over HTTP, or what is wrong with these words
    data: bytes | None = None
    typed = verb == "search" and not PICKING.isdisjoint(words)  # at this process's terminal
    asks = verb in FORWARDED and not typed and words[:2] != ["hook", "shell"]
    if mode != "off" and asks and hasattr(os, "getuid"):
        data = _asked(words, verb, mode)
    if verb == "recall" and mode == "auto":
        from ua_memory.cli import without_daemon

        if without_daemon.recall(words):
            _leave(0)
    from ua_memory.cli import app

    if mode == "off" or verb not in FORWARDED:
        app.main(words)
    app.in_process(words, data, then=mode == "auto" and verb in STARTS)


def _page() -> None:
    """Have a pager show what this process prints from here on, where that is a terminal. What returns is a
    child; this process waits for both and leaves with the child's exit code."""
    pager = _pager() if hasattr(os, "fork") and os.isatty(1) else ""
    if not pager:
        return
    reads, writes = os.pipe()
    work = os.fork()
    if work == 0:
        os.dup2(writes, 1)
        os.close(writes)
        os.close(reads)
        os.environ[PAGER_IN_USE] = "1"
        return
    from signal import SIG_IGN, SIGINT, signal

    os.close(writes)
    signal(SIGINT, SIG_IGN)  # it is for the pager, which may go on, and for the child
    env = {"LESS": "FRX", "LV": "-c", **os.environ}
    how: Any = {"file_actions": [(os.POSIX_SPAWN_DUP2, reads, 0)], "setsigdef": [SIGINT]}
    shows = os.posix_spawn("/bin/sh", ["sh", "-c", pager], env, **how)
    os.close(reads)
    shown = os.waitstatus_to_exitcode(os.waitpid(shows, 0)[1])
    code = os.waitstatus_to_exitcode(os.waitpid(work, 0)[1])
    if code in (PIPE_CLOSED, -13):  # the reader left before the end, or there is no such pager
        code = 127 if shown == 127 else 0
    _leave(code if code >= 0 else 128 - code)


def _pager() -> str:
    """The command that shows pages: UA_MEMORY_PAGER, PAGER, or less where there is one; '' for none."""
    for name in ("UA_MEMORY_PAGER", "PAGER"):
        if (given := os.environ.get(name)) is not None:
            return "" if given.strip() in ("", "cat") else given
    if os.environ.get("TERM", "dumb") == "dumb":
        return ""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return "less" if any(os.access(f"{folder}/less", os.X_OK) for folder in folders if folder) else ""


def _asked(words: list[str], verb: str, mode: str) -> bytes | None:
    """Leave by the daemon's answer; else return what was read of standard input."""
    data: bytes | None = None
    why = ""
    for again in (False, True):
        try:
            code, data, why = forwarded(words, verb, data)
        except KeyboardInterrupt:
            _leave(130)
        if code is not None:
            _leave(code)
        if mode != "require" or again or why == connect.SILENT:
            break
        from ua_memory.cli.app import bring_up

        bring_up(words, data)
    if mode == "require" and why == connect.SILENT:
        _failed(words, why, RESTART)
    if mode == "require":
        _failed(words, f"the daemon rejects the command: {why}", "ua-memory daemon logs")
    if why == connect.SILENT and verb != "mcp" and "--json" not in words and sys.stderr is not None:
        sys.stderr.write(f"ua-memory: {why}; this command runs without it (hint: {RESTART})\n")
    return data


def _hook(words: list[str], mode: str) -> NoReturn:
    """Answer a client's event. Whatever goes wrong, the client hears nothing of it and goes on."""
    try:
        if (os.environ.get("UA_MEMORY_ENABLED") or "1").strip().lower() not in ("0", "false", "no", "off"):
            data = sys.stdin.buffer.read()
            if is_first(words, data) and _handled(words, data, mode):
                from ua_memory.cli import without_daemon

                without_daemon.flush_detached(words)
    finally:
        _leave(0)


def _handled(words: list[str], data: bytes, mode: str) -> bool:
    """Whether something is to be handed over once an event is answered."""
    # A daemon does not know who called, nor with which model: neither is in what travels along.
    known = [*words, f"--pid={os.environ.get('CLAUDE_PID') or os.getppid()}"]
    if any(os.environ.get(f"ANTHROPIC_{name}") for name in ("API_KEY", "AUTH_TOKEN", "BASE_URL")):
        known.append("--modelled")
    try:
        code = None
        if mode != "off" and not any(name in data for name in LEAVING):
            code = forwarded(known, "hook", data, HOOK_WITHIN)[0]
        if code is None:
            from ua_memory.cli import without_daemon

            return without_daemon.hook(known, data, start=mode == "auto")
    except SystemExit as left:
        code = left.code  # type: ignore[assignment]
    return code == HAND_OVER


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


# -- hooks that were set up twice --------------------------------------------------------------------------
# Each event is answered once, also where a client's hooks were set up twice: in its settings and by a plugin.
#
# The client starts both at once. Each appends the hash of its event to a file in the folder of the sockets.
# A hook that finds the same hash there, written by another process since it was started itself, is the second
# one and prints nothing. A hook that is called again later was started after that, and answers. On a busy
# machine a client may start the second one when the first has answered; so where the client says which
# process it is, and no person calls, the same event again counts as the second one for a moment.


MOST_SEEN = 1 << 16
"""Bytes after which the file is begun anew."""
ANSWERED = (b'"UserPromptSubmit"', b'"SessionStart"')
"""The events that are answered with a text. The work of the others is idempotent."""
STARTED_LATE = 3.0
"""Seconds after a client's event in which its second hook may start."""


def is_first(words: list[str], data: bytes) -> bool:
    """Whether no other hook answers this event. True also where that cannot be known: without /proc."""
    if not any(name in data for name in ANSWERED):
        return True
    try:
        born = _process_started() - (STARTED_LATE if os.environ.get("CLAUDE_PID") else 0)
        bank = next(connect.banks(words, os.getcwd(), os.path.realpath(os.path.expanduser("~"))), "")  # noqa: PTH109, PTH111
        caller = os.environ.get("CLAUDE_PID") or str(os.getppid())
        event = blake2b(b"\0".join((data, os.fsencode(bank), caller.encode())), digest_size=8).hexdigest()
        return not _seen_before(f"{connect.make_socket_folder(os.environ)}/heard", event, born)
    except (OSError, ValueError, IndexError, AttributeError):
        return True


def _seen_before(path: str, event: str, since: float) -> bool:
    """Whether another process has written the event into the file since; it is written there in any case."""
    mine = str(os.getpid())
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(fd).st_size > MOST_SEEN:
            os.ftruncate(fd, 0)
        os.write(fd, f"{event} {_now():.2f} {mine}\n".encode())
        rows = os.pread(fd, 2 * MOST_SEEN, 0).decode("ascii", "replace").split("\n")
    finally:
        os.close(fd)
    for row in rows:  # in the order in which they were written
        what, _, rest = row.partition(" ")
        when, _, who = rest.partition(" ")
        if what == event and float(when) >= since:
            return who != mine
    return False


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _process_started() -> float:
    """When this process was started, a wrapper that has become it too, in seconds of `_now`."""
    with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
        fields = file.read().rpartition(b")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


# -- asking ------------------------------------------------------------------------------------------


def forwarded(
    words: list[str], verb: str, data: bytes | None, hurry: float = 0
) -> tuple[int | None, bytes | None, str]:
    """(exit code, or None if it is to be done here; standard input if it was read; why it was not done)."""
    try:
        code, refused, why = connect.exchange(words, data, hurry)
        if refused == connect.INPUT and data is None:
            data = sys.stdin.buffer.read() if sys.stdin else b""
            if len(data) > connect.MOST_INPUT:
                return None, data, "standard input is too large"
            code, _, why = connect.exchange(words, data, hurry)
    except connect.CannotPrint as error:
        from ua_memory.cli.app import fail

        fail(sys.argv[1:], error.cause)
    except connect.NoAnswer as error:
        if verb in WRITES:
            _failed(words, connect.LOST, "ua-memory log")
        return None, data, str(error)
    return code, data, why


def _leave(code: int) -> NoReturn:
    """End the process at once: all is written, and taking the interpreter apart takes its time, too."""
    os._exit(code)


def _failed(words: list[str], what: str, hint: str) -> NoReturn:
    from ua_memory.cli.app import fail
    from ua_memory.errors import Busy

    fail(words, Busy(what, hint=hint))
