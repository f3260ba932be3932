"""Where a bank's daemon listens, and sending it commands. Loaded by every command, so it imports little."""

from __future__ import annotations

import os
import sys
import time

from ua_memory import clients, discovery

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    Chunks = list[tuple[int, str]]
    """(1 or 2 for standard output or error, text), in the order in which they were written."""


# -- address -----------------------------------------------------------------------------------------------
# The socket's name is a hash of the bank's folder, so that no path grows too long for a socket (108 bytes
# on Linux, 104 on macOS), and its folder is the user's alone.


PROTOCOL = 1
"""The version of the protocol; both sides must speak the same."""
LONGEST_PATH = 100
"""Bytes of a socket's path."""
LARGEST_MESSAGE = 16 << 20
"""Bytes of one message."""
PROBE_TIMEOUT = 0.5
"""Seconds to wait for a daemon that did not answer the last time."""
SILENT_SUFFIX, OWNER_SUFFIX = ".silent", ".bank"
"""Suffixes of the files next to a socket: a mark that the daemon does not answer; its process id and bank."""
PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120 (pathlib takes 4 ms)
"""The folder of this package, which caller and daemon must share."""


def socket_name(root: str) -> str:
    """The file name of the socket of the bank at `root`, a path without symbolic links."""
    return discovery.blake2b(os.fsencode(root), digest_size=8).hexdigest() + ".sock"


def socket_folders(env: Mapping[str, str]) -> Iterator[str]:
    """The folders that sockets may be in, the best first. They may not exist.

    The second is systemd's: cron has no XDG_RUNTIME_DIR and must find the daemon of a login session.
    """
    uid = os.getuid()
    runtime = (env.get("XDG_RUNTIME_DIR") or "", f"/run/user/{uid}")
    places = [f"{top}/ua-memory" for top in runtime if top.startswith("/")]
    temporary = (env.get("TMPDIR") or "/tmp").rstrip("/")
    places += [f"{top}/ua-memory-{uid}" for top in (temporary, "/tmp") if top.startswith("/")]
    for place in dict.fromkeys(places):
        if len(os.fsencode(place)) + 1 + len(socket_name("")) < LONGEST_PATH:
            yield place


def is_private(folder: str) -> bool:
    """Whether a folder is this user's alone, and no symbolic link, so that nobody else can put a socket
    there."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return found.st_mode & 0o170077 == 0o040000 and found.st_uid == os.getuid()


def is_silent(socket: str) -> bool:
    """Whether the daemon at a socket did not answer the last request."""
    try:
        return os.stat(socket + SILENT_SUFFIX).st_mtime_ns >= os.lstat(socket).st_mtime_ns  # noqa: PTH116
    except OSError:
        return False


def record_answer(socket: str, answered: bool) -> None:
    """Record whether the daemon at a socket has answered. A failure to record it is ignored."""
    try:
        if answered:
            os.unlink(socket + SILENT_SUFFIX)  # noqa: PTH108
        else:
            os.close(os.open(socket + SILENT_SUFFIX, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            os.utime(socket + SILENT_SUFFIX)
    except OSError:
        pass


def write_owner(socket: str, pid: int, bank: str) -> None:
    """Write a daemon's process id and bank next to its socket, before it listens."""
    record_answer(socket, True)
    with open(f"{socket}{OWNER_SUFFIX}.new", "w", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
        file.write(f"{pid}\n{bank}")
    os.replace(f"{socket}{OWNER_SUFFIX}.new", socket + OWNER_SUFFIX)  # noqa: PTH105


def read_owner(socket: str) -> tuple[int, str]:
    """The process id and the bank's folder of the daemon at a socket; (0, "") if unknown."""
    try:
        with open(socket + OWNER_SUFFIX, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
            pid, _, bank = file.read().partition("\n")
            return int(pid), bank
    except (OSError, ValueError):
        return 0, ""


def make_socket_folder(env: Mapping[str, str]) -> str:
    """The folder for the socket, made if missing. OSError if no private folder can be made."""
    for folder in socket_folders(env):
        if os.path.isdir(os.path.dirname(folder)):  # noqa: PTH112, PTH120
            try:
                os.mkdir(folder, 0o700)  # noqa: PTH102
            except FileExistsError:
                pass
            except OSError:
                continue
            if is_private(folder):
                return folder
    raise OSError("no private folder for a socket: set XDG_RUNTIME_DIR to one with mode 700")


# -- sending a command -------------------------------------------------------------------------------------
# Find the daemon's socket, send the request, read the answer.
#
# typer, dataclasses and `json` are not imported: that takes longer than the answer.


PASSED_VARIABLES = (
    *("UA_", "GIT_", "LANG", "LC_", "TZ", "HOME", "EMAIL", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"),
    *("TERM", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_"),
    *(*clients.VARIABLES, "CLAUDE_CONFIG_DIR", "CLAWDBOT_"),
)
"""Prefixes of the variables that are sent: settings, git's, the clock's, the terminal's, those of agents."""
ACCEPT_TIMEOUT = 5.0
"""Seconds in which a daemon must accept a command. It does so at once, even while busy."""
SILENCE_TIMEOUT = 15.0
"""Seconds of silence after which a daemon counts as stuck: a working one sends a message each second."""
RETRY_AFTER = 30.0
"""Seconds in which a caller with a timeout does not ask again a daemon that did not answer."""
MOST_INPUT = 2 << 20
"""Bytes of standard input that are sent: each may take six as JSON, and a message holds 16 MB."""
OTHER_BANK, OTHER_CODE, BUSY, NEEDS_INPUT = -32001, -32002, -32003, -32004
"""Refusals, after which nothing was done: the command is for another bank; the daemon is of another
installation, or its code has changed; it is busy; the command reads standard input, which was not sent."""
TIMED_OUT = -32005
"""The command did not end within JOB_TIMEOUT; it may still complete."""
BAD_JSON, BAD_REQUEST, NO_METHOD, BAD_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603


class RequestRefused(BaseException):
    """The daemon refuses a request; `code` says why.

    Not an Exception, because the command line turns each of these into an error message.
    """

    def __init__(self, code: int, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(message)


class CannotPrint(Exception):
    """The daemon's answer cannot be printed: the disk is full, or a stream is broken."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class NoAnswer(Exception):
    """The daemon ended, failed or is stuck. `taken`: it had accepted the command, which may have run."""

    def __init__(self, why: str, taken: bool) -> None:
        self.taken = taken
        super().__init__(why)


LOST_ANSWER = "the daemon exited without an answer; the command may have run"
NOT_ANSWERING, ENDED, NOT_RUNNING = "the daemon does not answer", "the daemon ended", "none runs"


def connect_to_daemon(words: list[str], cwd: str, home: str, timeout: float = 0) -> Any:
    """Connect to the daemon of the bank that the command is probably for; None if there is none.

    A daemon that did not answer the last time gets PROBE_TIMEOUT, or is not asked by a caller with a
    `timeout`. NoAnswer.
    """
    for folder in socket_folders(os.environ):
        try:
            names = os.listdir(folder)  # noqa: PTH208
        except OSError:
            continue
        if not names or not is_private(folder):
            continue
        for root in candidate_banks(words, cwd, home):
            name = socket_name(root)
            if name not in names:
                continue
            path = f"{folder}/{name}"
            was_silent = name + SILENT_SUFFIX in names and is_silent(path)
            if was_silent and timeout and _was_asked_recently(path + SILENT_SUFFIX):
                raise NoAnswer(NOT_ANSWERING, False)
            daemon = discovery.unix_socket()
            daemon.settimeout(PROBE_TIMEOUT if was_silent else timeout or ACCEPT_TIMEOUT)
            try:
                daemon.connect(path)
            except TimeoutError:
                daemon.close()
                record_answer(path, False)
                raise NoAnswer(NOT_ANSWERING, False) from None
            except OSError:  # the socket of a killed daemon, or its queue of connections is full
                daemon.close()
            else:
                return daemon
    return None


def _was_asked_recently(mark: str) -> bool:
    try:
        return abs(time.time() - os.stat(mark).st_mtime) < RETRY_AFTER  # noqa: PTH116
    except OSError:
        return False


def option_value(words: list[str], name: str) -> str:
    """The last value of a command-line option; '' if it is not given."""
    value = ""
    for n, word in enumerate(words):
        if word == "--":
            break
        if word == name:
            value = "".join(words[n + 1 : n + 2])
        elif word.startswith(f"{name}="):
            value = word[len(name) + 1 :]
    return value


def named_bank(words: list[str], cwd: str, home: str) -> str:
    """The path in `--bank` or UA_MEMORY_BANK, without symbolic links; '' if neither is given."""
    named = option_value(words, "--bank") or os.environ.get("UA_MEMORY_BANK") or ""
    if named == "~" or named.startswith("~/"):
        named = home + named[1:]
    return os.path.realpath(os.path.join(cwd, named)) if named else ""  # noqa: PTH118


def candidate_banks(words: list[str], cwd: str, home: str) -> Iterator[str]:
    """Folders that may be the command's bank, the likeliest first."""
    if named := named_bank(words, cwd, home):
        yield named
        return
    while len(cwd) > 1:
        yield cwd
        cwd = cwd.rpartition("/")[0]
    yield f"{home}/ua-memory"


def request_line(words: list[str], cwd: str, home: str, data: bytes | None, terminals: list[str]) -> bytes:
    """The request line for a command. `terminals` are the standard streams that are terminals."""
    quoted = discovery.json_string
    env = [f"{quoted(k)}:{quoted(v)}" for k, v in os.environ.items() if k.startswith(PASSED_VARIABLES)]
    encodings = [getattr(stream, "encoding", None) or "utf-8" for stream in (sys.stdout, sys.stderr)]
    params = [
        f'"protocol":{PROTOCOL}',
        f'"code":{quoted(PACKAGE)}',
        f'"argv":[{",".join(map(quoted, words))}]',
        f'"cwd":{quoted(cwd)}',
        f'"home":{quoted(home)}',
        f'"env":{{{",".join(env)}}}',
        f'"encodings":[{",".join(map(quoted, encodings))}]',
        f'"terminals":[{",".join(map(quoted, terminals))}]',
        f'"width":{discovery.terminal_width(80) if terminals else 80}',
        f'"stdin":{"null" if data is None else quoted(data.decode("latin-1"))}',
    ]
    return f'{{"jsonrpc":"2.0","id":1,"method":"run","params":{{{",".join(params)}}}}}\n'.encode()


# -- the answer --------------------------------------------------------------------------------------------


def read_answer(
    daemon: Any, timeout: float = 0, write: Callable[[Chunks], int] | None = None
) -> tuple[int | None, int, str]:
    """Read the answer: (exit code or None, the code of a refusal, its message). `write` gets the output as it
    comes and returns an exit code that replaces the command's, or 0; by default the output is printed.

    NoAnswer if the answer does not begin within the connection's timeout, after SILENCE_TIMEOUT seconds of
    silence, or with a `timeout` after that many and as soon as the daemon is busy."""
    rest, taken, silence, write = b"", False, timeout or SILENCE_TIMEOUT, write or _print_chunks
    while True:
        while b"\n" not in rest:
            got = _receive(daemon, taken and bool(timeout))
            if not got:
                raise NoAnswer(ENDED if got is not None else NOT_ANSWERING, taken)
            if not taken:  # the first message: from here on the longer timeout counts
                if daemon.gettimeout() == PROBE_TIMEOUT:
                    record_answer(daemon.getpeername(), True)
                daemon.settimeout(silence)
            rest, taken = rest + got, True
        line, _, rest = rest.partition(b"\n")
        message = discovery.read_json(line.decode())
        if "method" in message:
            if message["method"] == "write":
                write(message["params"])
            elif message["method"] == "alive" and timeout:
                raise NoAnswer("it is busy", taken)
        elif "result" in message:
            found = message["result"]
            return write(found["output"]) or found["code"], 0, ""
        else:
            refused = message["error"]
            if refused["code"] not in (OTHER_BANK, OTHER_CODE, BUSY, NEEDS_INPUT):
                raise NoAnswer(refused["message"], taken)
            return None, refused["code"], refused["message"]


def run_in_daemon(
    words: list[str], data: bytes | None, timeout: float = 0,
    write: Callable[[Chunks], int] | None = None, on_connect: Callable[[Any], None] = lambda _: None,
) -> tuple[int | None, int, str]:  # fmt: skip
    """Have the daemon run a command. Returns as `read_answer`, or (None, 0, why) if no daemon accepts it.

    Without `write` the command uses this process's streams. `on_connect` gets the connection. NoAnswer only
    from a daemon that has accepted the command; CannotPrint."""
    try:
        cwd = os.getcwd()  # noqa: PTH109 (pathlib takes 4 ms)
    except OSError:
        return None, 0, "the current folder is gone"
    home = os.path.realpath(os.path.expanduser("~"))  # noqa: PTH111
    streams = ("stdin", "stdout", "stderr")
    paged = bool(os.environ.get(discovery.PAGER_IN_USE))
    terminals = [name for fd, name in enumerate(streams) if os.isatty(fd) or (fd == 1 and paged)]
    daemon: Any = None
    try:
        daemon = connect_to_daemon(words, cwd, home, timeout)
        if daemon is None:
            return None, 0, NOT_RUNNING
        on_connect(daemon)
        daemon.sendall(request_line(words, cwd, home, data, [] if write else terminals))
        return read_answer(daemon, timeout, write)
    except NoAnswer as error:
        if error.taken:
            raise
        return None, 0, str(error)
    except OSError as error:  # it exited or froze before it had the whole line
        if not isinstance(error, TimeoutError):
            return None, 0, str(error)
        record_answer(daemon.getpeername(), False)
        return None, 0, NOT_ANSWERING
    finally:
        if daemon is not None:
            daemon.close()


def _receive(daemon: Any, busy: bool) -> Any:
    """The next bytes from the daemon; empty if it has ended, None if it is stuck. That is recorded unless the
    daemon may only be `busy`."""
    stuck = False
    try:
        return daemon.recv(1 << 18)
    except OSError as error:
        stuck = isinstance(error, TimeoutError)
        if stuck and not busy:
            record_answer(daemon.getpeername(), False)
        # After the shutdown it cannot accept the command any more: sending the acceptance would fail.
        try:
            daemon.shutdown(2)
            return daemon.recv(1 << 18) or (None if stuck else b"")
        except OSError:
            return None if stuck else b""


def _print_chunks(chunks: Chunks) -> int:
    """Print the command's output in order. Returns 141 if the pipe was closed, else 0."""
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
            raise CannotPrint(error) from error
    return 0
