"""The entry point of every command: a running daemon answers it, else this process does.

Nothing slow is imported before the daemon has been asked.
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


DAEMON_VERBS = frozenset(
    "search list today yesterday recall hook insert get core log diff undo redo blame"  # noqa: SIM905
    " status config index mcp".split()
)
"""Verbs that the daemon runs. The others run in this process: init, git and daemon by their nature; flush and
queue, which may wait for a model; verify, scan, stats and doctor, which read every file; explain, which reads
none; bench, which has its own banks."""
WRITING_VERBS = frozenset(("insert", "core", "undo", "redo", "mcp"))
"""Verbs that are not repeated here when the daemon died without an answer."""
STARTING_VERBS = frozenset(("search", "list", "today", "yesterday", "recall", "hook", "insert", "get", "mcp"))
"""Verbs that start a daemon for the next command if none runs."""
HOOK_TIMEOUT = 1.0
"""Seconds that a hook waits for a busy daemon. After that it searches by keywords itself."""
RESTART_COMMAND = "ua-memory daemon restart"
INTERACTIVE_OPTIONS = frozenset(("-i", "--interactive"))
"""Options of `search` that need this process's terminal."""
FLUSH_EVENTS = (b'"SessionEnd"', b'"PreCompact"')
"""Events after which a session is flushed. The client does not wait for them, so the daemon is not asked."""
FLUSH_DUE = 100
"""The exit code of a hook's command after which a detached flush is started."""


PAGED_VERBS = frozenset(("log", "diff"))
"""Verbs whose output goes through a pager on a terminal, as in git."""
PIPE_CLOSED = 141


LIBRARY_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "ORT_DISABLE_TELEMETRY": "1"}
"""Environment variables for libraries, set before they load. OpenBLAS's threads spun over small matrices for
half of a search's processor time; onnxruntime would keep a device id and a telemetry database at home."""


def main(argv: list[str] | None = None) -> NoReturn:
    """Run a command: by the daemon if it accepts it, else in this process."""
    for name, value in LIBRARY_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if argv is None and sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        _restart_in_utf8()
    words = sys.argv[1:] if argv is None else list(argv)
    mode = os.environ.get("UA_MEMORY_DAEMON") or "auto"
    verb = _parse_verb(words)
    if verb in PAGED_VERBS and not {"--json", "--no-pager", "--help", "-h"} & {*words}:
        _start_pager()
    if verb == "hook" and not {"--help", "-h", "shell"} & {*words} and not os.isatty(0):
        _handle_hook(words, mode)
    if verb == "mcp" and "--call" not in words:
        from ua_memory.mcp import relay

        if relay.serve_stdio(words, mode):
            _exit(0)
        from ua_memory.cli import app

        app.main(words)  # help, a server over HTTP, or what is wrong with these words
    if mode not in ("auto", "off", "require"):
        from ua_memory.cli import app
        from ua_memory.errors import Malformed

        wrong = f"UA_MEMORY_DAEMON: {mode!r} is not one of auto, off, require"
        app.exit_with_error(words, Malformed(wrong, hint="correct UA_MEMORY_DAEMON, or unset it"))
    data: bytes | None = None
    interactive = verb == "search" and not INTERACTIVE_OPTIONS.isdisjoint(words)  # at this process's terminal
    by_daemon = verb in DAEMON_VERBS and not interactive and words[:2] != ["hook", "shell"]
    if mode != "off" and by_daemon and hasattr(os, "getuid"):
        data = _try_daemon(words, verb, mode)
    if verb == "recall" and mode == "auto":
        from ua_memory.cli import without_daemon

        if without_daemon.recall(words):
            _exit(0)
    from ua_memory.cli import app

    app.main(words, data, start_next=mode == "auto" and verb in STARTING_VERBS)


def _restart_in_utf8() -> NoReturn:
    """Run the command with file names in UTF-8, as git has them; the output keeps its encoding.

    In one that lacks their letters a sync could not write a file, and the next took it for deleted by hand.
    """
    os.environ.setdefault("PYTHONIOENCODING", getattr(sys.stdout, "encoding", None) or "utf-8")
    os.environ["PYTHONUTF8"] = "1"
    os.execv(sys.executable, sys.orig_argv)


def _start_pager() -> None:
    """Pipe standard output into a pager if it is a terminal. This returns in a forked child; the parent waits
    for the child and the pager and exits with the child's exit code."""
    pager = _pager_command() if hasattr(os, "fork") and os.isatty(1) else ""
    if not pager:
        return
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write_end, 1)
        os.close(write_end)
        os.close(read_end)
        os.environ[PAGER_IN_USE] = "1"
        return
    from signal import SIG_IGN, SIGINT, signal

    os.close(write_end)
    signal(SIGINT, SIG_IGN)  # the pager and the child handle it
    env = {"LESS": "FRX", "LV": "-c", **os.environ}
    spawn_options: Any = {"file_actions": [(os.POSIX_SPAWN_DUP2, read_end, 0)], "setsigdef": [SIGINT]}
    pager_pid = os.posix_spawn("/bin/sh", ["sh", "-c", pager], env, **spawn_options)
    os.close(read_end)
    pager_code = os.waitstatus_to_exitcode(os.waitpid(pager_pid, 0)[1])
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code in (PIPE_CLOSED, -13):  # the pager was closed early, or does not exist
        code = 127 if pager_code == 127 else 0
    _exit(code if code >= 0 else 128 - code)


def _pager_command() -> str:
    """UA_MEMORY_PAGER, PAGER, or less if it is installed; '' for no pager."""
    for name in ("UA_MEMORY_PAGER", "PAGER"):
        if (given := os.environ.get(name)) is not None:
            return "" if given.strip() in ("", "cat") else given
    if os.environ.get("TERM", "dumb") == "dumb":
        return ""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return "less" if any(os.access(f"{folder}/less", os.X_OK) for folder in folders if folder) else ""


def _try_daemon(words: list[str], verb: str, mode: str) -> bytes | None:
    """Exit with the daemon's answer, or return what was read of standard input if it did not run the
    command."""
    data: bytes | None = None
    reason = ""
    for retried in (False, True):
        try:
            code, data, reason = forward(words, verb, data)
        except KeyboardInterrupt:
            _exit(130)
        if code is not None:
            _exit(code)
        if mode != "require" or retried or reason == connect.NOT_ANSWERING:
            break
        from ua_memory.cli.app import start_daemon

        start_daemon(words, data)
    if mode == "require" and reason == connect.NOT_ANSWERING:
        _fail_busy(words, reason, RESTART_COMMAND)
    if mode == "require":
        _fail_busy(words, f"the daemon rejects the command: {reason}", "ua-memory daemon logs")
    if reason == connect.NOT_ANSWERING and verb != "mcp" and "--json" not in words and sys.stderr is not None:
        sys.stderr.write(f"ua-memory: {reason}; this command runs without it (hint: {RESTART_COMMAND})\n")
    return data


def _handle_hook(words: list[str], mode: str) -> NoReturn:
    """Answer a client's event and exit with 0, whatever fails: a hook must not stop the client."""
    try:
        if (os.environ.get("UA_MEMORY_ENABLED") or "1").strip().lower() not in ("0", "false", "no", "off"):
            data = sys.stdin.buffer.read()
            if is_first_hook(words, data) and _answer_hook(words, data, mode):
                from ua_memory.cli import without_daemon

                without_daemon.flush_detached(words)
    finally:
        _exit(0)


def _answer_hook(words: list[str], data: bytes, mode: str) -> bool:
    """Answer an event, by the daemon if possible. True if a flush is due."""
    # The request does not carry the caller's process and whether it has a model's key, so they are passed.
    argv = [*words, f"--pid={os.environ.get('CLAUDE_PID') or os.getppid()}"]
    if any(os.environ.get(f"ANTHROPIC_{name}") for name in ("API_KEY", "AUTH_TOKEN", "BASE_URL")):
        argv.append("--modelled")
    try:
        code = None
        if mode != "off" and not any(name in data for name in FLUSH_EVENTS):
            code = forward(argv, "hook", data, HOOK_TIMEOUT)[0]
        if code is None:
            from ua_memory.cli import without_daemon

            return without_daemon.answer_hook(argv, data, start_next=mode == "auto")
    except SystemExit as left:
        code = left.code  # type: ignore[assignment]
    return code == FLUSH_DUE


def _parse_verb(words: list[str]) -> str:
    """The verb, found without parsing the options; '' if there is none."""
    rest = iter(words)
    for word in rest:
        if word == "--bank":
            next(rest, "")
        elif not word.startswith("-"):
            return word
        elif not word.startswith("--bank="):
            break
    return ""


# -- duplicate hooks ---------------------------------------------------------------------------------------
# Hooks may be set up twice, in a client's settings and by a plugin. Each event is answered once all the same.
#
# The client starts both at once. Each appends the hash of its event to a file in the sockets' folder. A hook
# that finds the hash there, written by another process since its own start, is the second one and prints
# nothing. A later call with the same event started after that, and answers. On a busy machine the client may
# start the second hook when the first has answered already, so an event of a client that names its process
# counts as a duplicate for SECOND_HOOK_DELAY seconds.


MOST_EVENT_BYTES = 1 << 16
"""Bytes after which the file is truncated."""
ANSWERED_EVENTS = (b'"UserPromptSubmit"', b'"SessionStart"')
"""Events that are answered with a text. Handling the others twice changes nothing."""
SECOND_HOOK_DELAY = 3.0
"""Seconds by which the second hook may start after the first."""


def is_first_hook(words: list[str], data: bytes) -> bool:
    """Whether no other hook answers this event. True if that cannot be known, as without /proc."""
    if not any(name in data for name in ANSWERED_EVENTS):
        return True
    try:
        started = _process_start() - (SECOND_HOOK_DELAY if os.environ.get("CLAUDE_PID") else 0)
        home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111
        bank = next(connect.candidate_banks(words, os.getcwd(), home), "")  # noqa: PTH109
        caller = os.environ.get("CLAUDE_PID") or str(os.getppid())
        event = blake2b(b"\0".join((data, os.fsencode(bank), caller.encode())), digest_size=8).hexdigest()
        return not _is_recorded(f"{connect.make_socket_folder(os.environ)}/events", event, started)
    except (OSError, ValueError, IndexError, AttributeError):
        return True


def _is_recorded(path: str, event: str, since: float) -> bool:
    """Append the event to the file. True if another process has appended it since the time `since`."""
    mine = str(os.getpid())
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(fd).st_size > MOST_EVENT_BYTES:
            os.ftruncate(fd, 0)
        os.write(fd, f"{event} {_since_boot():.2f} {mine}\n".encode())
        rows = os.pread(fd, 2 * MOST_EVENT_BYTES, 0).decode("ascii", "replace").split("\n")
    finally:
        os.close(fd)
    for row in rows:  # in the order in which they were written
        what, _, rest = row.partition(" ")
        when, _, who = rest.partition(" ")
        if what == event and float(when) >= since:
            return who != mine
    return False


def _since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _process_start() -> float:
    """When this process, or a wrapper that exec'ed it, was started, in seconds since boot."""
    with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
        fields = file.read().rpartition(b")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")


# -- asking the daemon -------------------------------------------------------------------------------------


def forward(
    words: list[str], verb: str, data: bytes | None, timeout: float = 0
) -> tuple[int | None, bytes | None, str]:
    """Have the daemon run a command: (exit code or None if it did not, standard input if it was read, why it
    did not)."""
    try:
        code, rejection, reason = connect.run_in_daemon(words, data, timeout)
        if rejection == connect.NEEDS_INPUT and data is None:
            data = sys.stdin.buffer.read() if sys.stdin else b""
            if len(data) > connect.MOST_INPUT:
                return None, data, "standard input is too large"
            code, _, reason = connect.run_in_daemon(words, data, timeout)
    except connect.CannotPrint as error:
        from ua_memory.cli.app import exit_with_error
        from ua_memory.views.output import output_lost

        exit_with_error(sys.argv[1:], output_lost(error.cause))
    except connect.NoAnswer as error:
        if verb in WRITING_VERBS:
            _fail_busy(words, connect.LOST_ANSWER, "ua-memory log")
        return None, data, str(error)
    return code, data, reason


def _exit(code: int) -> NoReturn:
    """Exit at once, without the time of an orderly shutdown of the interpreter."""
    os._exit(code)


def _fail_busy(words: list[str], what: str, hint: str) -> NoReturn:
    from ua_memory.cli.app import exit_with_error
    from ua_memory.errors import Busy

    exit_with_error(words, Busy(what, hint=hint))
