"""Where a bank's daemon listens, and asking it. Light: every command loads it."""

from __future__ import annotations

import os
import sys
import time

from ua_memory import discovery

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    Chunks = list[tuple[int, str]]
    """(1 or 2 for standard output or error, text), in the order in which they were written."""


# -- address -----------------------------------------------------------------------------------------------
# Where a bank's daemon listens. Read by every call of the command line: nothing is imported that costs.
#
# The socket's name is a hash of the bank's folder, so that no path grows too long for a socket (108 bytes
# on Linux, 104 on macOS), and its folder is the user's alone.


PROTOCOL = 1
"""The version of the protocol; both sides must speak the same."""
LONGEST = 100
"""Bytes of a socket's path."""
LARGEST = 16 << 20
"""Bytes of one message."""
PROBE = 0.5
"""Seconds that a daemon is waited for which did not answer the last time."""
SILENT_SUFFIX, BANK = ".silent", ".bank"
"""Beside a socket: a mark that its daemon does not answer; its daemon's process id and its bank's folder."""
PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120 (pathlib takes 4 ms)
"""The folder of the code that runs here, which both sides must share."""


def socket_name(root: str) -> str:
    """The file name of the socket of the bank at `root`, a path without symbolic links."""
    return discovery.blake2b(os.fsencode(root), digest_size=8).hexdigest() + ".sock"


def socket_folders(env: Mapping[str, str]) -> Iterator[str]:
    """The folders that sockets may lie in, the best first. Which of them exist is not asked here.

    The second is what systemd makes: cron has no XDG_RUNTIME_DIR and must meet the daemon of a login.
    """
    uid = os.getuid()
    runtime = (env.get("XDG_RUNTIME_DIR") or "", f"/run/user/{uid}")
    places = [f"{top}/ua-memory" for top in runtime if top.startswith("/")]
    temporary = (env.get("TMPDIR") or "/tmp").rstrip("/")
    places += [f"{top}/ua-memory-{uid}" for top in (temporary, "/tmp") if top.startswith("/")]
    for place in dict.fromkeys(places):
        if len(os.fsencode(place)) + 1 + len(socket_name("")) < LONGEST:
            yield place


def is_private(folder: str) -> bool:
    """Whether a folder is this user's alone, and no link: another could put a socket of theirs there."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return found.st_mode & 0o170077 == 0o040000 and found.st_uid == os.getuid()


def is_silent(socket: str) -> bool:
    """Whether the daemon that listens at a socket did not answer whoever asked it last."""
    try:
        return os.stat(socket + SILENT_SUFFIX).st_mtime_ns >= os.lstat(socket).st_mtime_ns  # noqa: PTH116
    except OSError:
        return False


def note_answer(socket: str, answered: bool) -> None:
    """Note whether the daemon that listens at a socket has answered. Where that cannot be noted, the next
    who asks finds it out."""
    try:
        if answered:
            os.unlink(socket + SILENT_SUFFIX)  # noqa: PTH108
        else:
            os.close(os.open(socket + SILENT_SUFFIX, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            os.utime(socket + SILENT_SUFFIX)
    except OSError:
        pass


def write_owner(socket: str, pid: int, bank: str) -> None:
    """Say who listens at a socket, before anybody is let in."""
    note_answer(socket, True)
    with open(f"{socket}{BANK}.new", "w", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
        file.write(f"{pid}\n{bank}")
    os.replace(f"{socket}{BANK}.new", socket + BANK)  # noqa: PTH105


def read_owner(socket: str) -> tuple[int, str]:
    """The process id and the bank's folder of the daemon that listens at a socket; (0, "") where unknown."""
    try:
        with open(socket + BANK, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
            pid, _, bank = file.read().partition("\n")
            return int(pid), bank
    except (OSError, ValueError):
        return 0, ""


def make_socket_folder(env: Mapping[str, str]) -> str:
    """The folder to listen in, made if need be. OSError if there is none to be had."""
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


# -- asking ------------------------------------------------------------------------------------------------
# Sending a command to a daemon: find its socket, send the request, take what comes back.
#
# Nothing is imported that costs: no typer, no dataclasses, no `json`. They take longer than the answer.


PASSED = (
    *("UA_", "GIT_", "LANG", "LC_", "TZ", "HOME", "EMAIL", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"),
    *("TERM", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_"),
    *(*discovery.AGENTS, "CLAUDE_CONFIG_DIR", "CLAWDBOT_"),
)
"""How the variables begin that go along: settings, git's, the clock's, the terminal's, those of agents."""
FIRST = 5.0
"""Seconds in which a daemon must say that it has taken a command. It does so at once, whatever it is at."""
WITHIN = 15.0
"""Seconds of silence after which a daemon counts as stuck: it says each second that it is at work."""
AGAIN = 30.0
"""Seconds in which who is in a hurry does not ask a daemon that did not answer."""
MOST_INPUT = 2 << 20
"""Bytes of standard input that are sent along: as JSON each may take six, and a message holds 16 MB."""
ELSEWHERE, OTHER_CODE, BUSY, INPUT = -32001, -32002, -32003, -32004
"""Refusals, after which nothing was done: the command is about another bank; the daemon is of another
installation, or its code has changed; others' commands take too long; the command reads standard input, which
was not sent along."""
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


class CannotPrint(Exception):
    """What the daemon answered cannot be printed: the disk is full, or a stream broken."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class NoAnswer(Exception):
    """The daemon ended, failed or is stuck. Unless it has taken the command, it will not do it."""

    def __init__(self, why: str, taken: bool) -> None:
        self.taken = taken
        super().__init__(why)


LOST = "the daemon exited without an answer; the command may have run"
SILENT, ENDED, NONE = "the daemon does not answer", "the daemon ended", "none runs"


def connect_to_daemon(words: list[str], cwd: str, home: str, hurry: float = 0) -> Any:
    """A connection to the daemon that the command may be for, or None. The daemon knows whether it is.

    One that did not answer the last time has a moment; who is in a hurry does not ask it. NoAnswer.
    """
    for folder in socket_folders(os.environ):
        try:
            there = os.listdir(folder)  # noqa: PTH208
        except OSError:
            continue
        if not there or not is_private(folder):
            continue
        for root in banks(words, cwd, home):
            name = socket_name(root)
            if name not in there:
                continue
            path = f"{folder}/{name}"
            known = name + SILENT_SUFFIX in there and is_silent(path)
            if known and hurry and _asked_lately(path + SILENT_SUFFIX):
                raise NoAnswer(SILENT, False)
            daemon = discovery.unix_socket()
            daemon.settimeout(PROBE if known else hurry or FIRST)
            try:
                daemon.connect(path)
            except TimeoutError:
                daemon.close()
                note_answer(path, False)
                raise NoAnswer(SILENT, False) from None
            except OSError:  # of one that was killed, or that so many wait for that no more are let in
                daemon.close()
            else:
                return daemon
    return None


def _asked_lately(mark: str) -> bool:
    try:
        return abs(time.time() - os.stat(mark).st_mtime) < AGAIN  # noqa: PTH116
    except OSError:
        return False


def option(words: list[str], name: str) -> str:
    """The value of an option the last time it is given, '' if it is not."""
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
    """The path that `--bank` or UA_MEMORY_BANK names, without symbolic links; '' where neither is given."""
    named = option(words, "--bank") or os.environ.get("UA_MEMORY_BANK") or ""
    if named == "~" or named.startswith("~/"):
        named = home + named[1:]
    return os.path.realpath(os.path.join(cwd, named)) if named else ""  # noqa: PTH118


def banks(words: list[str], cwd: str, home: str) -> Iterator[str]:
    """Folders that may be the bank that is meant, the likeliest first."""
    if named := named_bank(words, cwd, home):
        yield named
        return
    while len(cwd) > 1:
        yield cwd
        cwd = cwd.rpartition("/")[0]
    yield f"{home}/ua-memory"


def request(words: list[str], cwd: str, home: str, data: bytes | None, terminals: list[str]) -> bytes:
    """The line that asks for a command. `terminals` are the caller's standard streams that are terminals."""
    quoted = discovery.json_string
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
        f'"width":{discovery.terminal_width(80) if terminals else 80}',
        f'"stdin":{"null" if data is None else quoted(data.decode("latin-1"))}',
    ]
    return f'{{"jsonrpc":"2.0","id":1,"method":"run","params":{{{",".join(params)}}}}}\n'.encode()


# -- what comes back ---------------------------------------------------------------------------------


def answer(
    daemon: Any, hurry: float = 0, write: Callable[[Chunks], int] | None = None
) -> tuple[int | None, int, str]:
    """(exit code or None, the code of a refusal, its words). `write` takes the output as it comes and returns
    an exit code that replaces the command's, or 0; by default it is printed.

    NoAnswer where it does not begin to answer within the connection's time, and after WITHIN seconds of
    silence; for one in a hurry after so many, and as soon as it is busy.
    """
    rest, taken, long, write = b"", False, hurry or WITHIN, write or _print
    while True:
        while b"\n" not in rest:
            got = _received(daemon, taken and bool(hurry))
            if not got:
                raise NoAnswer(ENDED if got is not None else SILENT, taken)
            if not taken:  # from its first words on it may be silent for so long
                if daemon.gettimeout() == PROBE:
                    note_answer(daemon.getpeername(), True)
                daemon.settimeout(long)
            rest, taken = rest + got, True
        line, _, rest = rest.partition(b"\n")
        message = discovery.read_json(line.decode())
        if "method" in message:
            if message["method"] == "write":
                write(message["params"])
            elif message["method"] == "alive" and hurry:
                raise NoAnswer("it is busy", taken)
        elif "result" in message:
            found = message["result"]
            return write(found["output"]) or found["code"], 0, ""
        else:
            refused = message["error"]
            if refused["code"] not in (ELSEWHERE, OTHER_CODE, BUSY, INPUT):
                raise NoAnswer(refused["message"], taken)
            return None, refused["code"], refused["message"]


def exchange(
    words: list[str], data: bytes | None, hurry: float = 0,
    write: Callable[[Chunks], int] | None = None, begun: Callable[[Any], None] = lambda _: None,
) -> tuple[int | None, int, str]:  # fmt: skip
    """Send a command to the daemon and return `answer`; (None, 0, why) where none takes it.

    Without `write` the command has this process's streams. `begun` gets the connection. NoAnswer only from a
    daemon that has taken the command; CannotPrint.
    """
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
        daemon = connect_to_daemon(words, cwd, home, hurry)
        if daemon is None:
            return None, 0, NONE
        begun(daemon)
        daemon.sendall(request(words, cwd, home, data, [] if write else terminals))
        return answer(daemon, hurry, write)
    except NoAnswer as error:
        if error.taken:
            raise
        return None, 0, str(error)
    except OSError as error:  # it left, or froze, before it had the whole line
        if not isinstance(error, TimeoutError):
            return None, 0, str(error)
        note_answer(daemon.getpeername(), False)
        return None, 0, SILENT
    finally:
        if daemon is not None:
            daemon.close()


def _received(daemon: Any, busy: bool) -> Any:
    """What the daemon sends next; empty where it has ended. None where it is stuck, which is noted unless it
    may only be busy."""
    stuck = False
    try:
        return daemon.recv(1 << 18)
    except OSError as error:
        stuck = isinstance(error, TimeoutError)
        if stuck and not busy:
            note_answer(daemon.getpeername(), False)
        # From here on it cannot take the command any more: it says so first, and that would fail.
        try:
            daemon.shutdown(2)
            return daemon.recv(1 << 18) or (None if stuck else b"")
        except OSError:
            return None if stuck else b""


def _print(chunks: Chunks) -> int:
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
            raise CannotPrint(error) from error
    return 0
