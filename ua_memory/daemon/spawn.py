"""Background processes: start, query and stop a bank's daemon, start other detached work, write logs."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from ua_memory.daemon import connect
from ua_memory.discovery import is_locked, unix_socket
from ua_memory.errors import Busy

TYPE_CHECKING = False  # the MCP relay loads this: typing, `caller` and `paths` would double its memory
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from ua_memory.discovery import Folders
    from ua_memory.paths import Bank
    from ua_memory.upkeep.doctor import Check


# -- processes ---------------------------------------------------------------------------------------------


MODE_VARIABLE = "UA_MEMORY_DAEMON"
"""The variable with auto, off or require: whether commands go to the daemon. `require` starts one and
waits."""


def start_process(
    argv: Sequence[str], env: Mapping[str, str], *, log: str | Path = os.devnull, cwd: str | None = "/",
    module: str = "ua_memory",
) -> subprocess.Popen[bytes]:  # fmt: skip
    """Start a detached process of this package: it has its own session and none of the caller's files. Its
    output is appended to `log`. OSError."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            # -P: modules of the current folder must not shadow ours.
            [sys.executable, "-P", "-m", module, *argv], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            cwd=cwd, env=dict(env), start_new_session=True,
        )  # fmt: skip
    finally:
        os.close(out)


def ignore_hangup() -> None:
    """Ignore SIGHUP here and in child processes: what is handed over must be on disk even if the terminal
    closes."""
    with contextlib.suppress(ValueError, AttributeError):  # not the main thread; no such signal
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def start_detached(bank: Bank | Folders, env: Mapping[str, str], *words: str) -> str:
    """Start a detached command for a bank, by default `flush`, and return the path of its log."""
    words = words or ("flush",)
    log = Log(_make_local(bank.local), FLUSH_LOG)
    log.say(" ".join(words))
    start_process(["--bank", str(bank.root), *words], env, log=log.file)
    return str(log.file)


def start_warm_daemon(options: Sequence[str], env: Mapping[str, str], cwd: str | None = "/") -> None:
    """Start a daemon with its model loaded, without waiting. `options` name the bank."""
    # The first search loads the model.
    start_process([*options, "recall", "memory"], {**env, MODE_VARIABLE: "require"}, cwd=cwd)


def _make_local(local: Path | str) -> Path:
    """Make a bank's folder `local/` if it is missing, and return it."""
    from ua_memory.paths import make_private

    make_private(Path(local))
    return Path(local)


# -- logs ---------------------------------------------------------------------------------------------------
# Logs in `local/`: of the daemon, of hooks, of background work. They are rotated; one old file is kept.


LARGEST_LOG = 1 << 20
"""Bytes of a log."""
DAEMON_LOG, FLUSH_LOG = "daemon.log", "flush.log"


class Log:
    """A log file of background work. Failures to write it are ignored."""

    def __init__(self, folder: Path, name: str = DAEMON_LOG) -> None:
        self.file = folder / name
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        row = f"{time.strftime('%Y-%m-%d %H:%M:%S%z')} [{os.getpid()}] {text.rstrip()}\n"
        with self._lock, contextlib.suppress(OSError):
            with contextlib.suppress(FileNotFoundError):
                if self.file.stat().st_size + len(row) > LARGEST_LOG:
                    self.file.replace(self.file.with_suffix(".log.1"))
            fd = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, row.encode("utf-8", "backslashreplace"))
            finally:
                os.close(fd)

    def tail(self, lines: int) -> list[str]:
        """The newest lines, oldest first."""
        rows: list[str] = []
        for file in (self.file.with_suffix(".log.1"), self.file):
            with contextlib.suppress(FileNotFoundError):
                rows += file.read_text("utf-8", "replace").splitlines()
        return rows[-lines:] if lines else []


class LogStream(io.StringIO):
    """A text stream that writes its lines to a log."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log, self._begun = log, ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._log.say(line)
        return len(text)


# -- starting the daemon -----------------------------------------------------------------------------------
# There is one per bank: the process that holds the lock in `local/`.


RETRY_AFTER = 30.0
"""Seconds after which a daemon that did not start is tried again."""
START_TIMEOUT = 20.0
"""Seconds in which a started daemon must answer."""


class AlreadyRuns(Exception):
    """Another process of this bank holds the lock."""


@contextlib.contextmanager
def process_lock(file: Path) -> Iterator[None]:
    """Hold the lock that makes this the bank's only process of a kind, such as its daemon. A killed process
    loses it. AlreadyRuns."""
    fd = os.open(_make_local(file.parent) / file.name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRuns from None
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(fd)


def is_running(local: Path) -> bool:
    """Whether the bank has a daemon, even one that is still starting."""
    return is_locked(local / "daemon.lock")


def daemon_pid(local: Path) -> int:
    """The process id of the bank's daemon; 0 if it has none."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((local / "daemon.lock").read_text())
        return pid if is_running(local) else 0  # the process that holds the lock has written it
    return 0


def ensure_started(bank: Bank | Folders, env: Mapping[str, str], *, warm: bool = False) -> bool:
    """Start a daemon, without waiting, unless one runs or was tried in the last RETRY_AFTER seconds. True if
    it was started. `warm` has it load its model."""
    try:
        local = _make_local(bank.local)
        mark = local / "daemon.started"
        with contextlib.suppress(FileNotFoundError):
            if time.time() - mark.stat().st_mtime < RETRY_AFTER:
                return False
        if is_running(local):
            return False
        mark.touch(mode=0o600)
        if warm:
            start_warm_daemon(["--bank", str(bank.root)], env)
        else:
            start_daemon(bank, env)
    except OSError:  # a read-only bank has no daemon
        return False
    return True


def not_answering(local: Path) -> Busy:
    """The error about a daemon that runs, but does not answer."""
    pid, hint = daemon_pid(local), "ua-memory daemon restart"
    if is_another_users(pid):  # root's, after a `sudo ua-memory search`: only root can use its socket
        hint = f"another user started it: sudo kill {pid}"
    return Busy("the daemon does not answer", where=str(local / "daemon.lock"), hint=hint)


def is_another_users(pid: int) -> bool:
    """Whether a process belongs to another user, so that we cannot stop it."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        pass
    return False


MODEL_VARIABLES = ("ANTHROPIC_", "OPENAI_", "UA_MEMORY_PROVIDER", "UA_MEMORY_MODEL")
"""Prefixes of the variables that choose a model, or hold its key."""


def start_daemon(
    bank: Bank | Folders, env: Mapping[str, str], *, key: bool = False
) -> subprocess.Popen[bytes]:
    """Start a bank's daemon. `key` passes on the variables that choose a model and hold its key."""
    # A caller's own settings come with each request; the daemon must not keep a caller's keys.
    kept = MODEL_VARIABLES if key else ()
    env = {
        name: value
        for name, value in env.items()
        if name.startswith(kept) or not name.startswith(("ANTHROPIC_", "OPENAI_", "UA_"))
    }
    log = _make_local(bank.local) / DAEMON_LOG
    return start_process(["--bank", str(bank.root), "daemon", "run"], env, log=log)


def ensure_answers(bank: Bank, env: Mapping[str, str], *, key: bool = False) -> dict[str, Any]:
    """Have a daemon that answers, and return its status; see `start` for `key`. Busy if none comes up."""
    process: subprocess.Popen[bytes] | None = None
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        found = status(bank.root, env)
        if found is not None:
            return found
        if process is None and not is_running(bank.local):
            process = start_daemon(bank, env, key=key)
        elif process is None and (is_bank_silent(bank.root, env) or is_another_users(daemon_pid(bank.local))):
            raise not_answering(bank.local)
        elif process is not None and process.poll():
            said = [row.partition("error: ")[2] for row in Log(bank.local).tail(8)]
            why = next(filter(None, reversed(said)), "ua-memory daemon logs may say why")
            raise Busy(f"the daemon cannot be started: {why}", where=str(bank.root))
        time.sleep(0.05)
    raise Busy("the daemon does not answer", where=str(bank.root), hint="ua-memory daemon logs")


# -- status and stop ---------------------------------------------------------------------------------------
# Commands are sent by `daemon.connect`, which loads faster.


ASK_TIMEOUT = 2.0
STOP_TIMEOUT, KILL_TIMEOUT = 30.0, 5.0
"""Seconds in which a daemon must exit after it was asked to, and after it was killed."""


class Daemon:
    """A running daemon: its socket, its process, its bank's folder ('' if unknown), and its status in `said`,
    None if it does not answer."""

    def __init__(self, socket: str, pid: int, bank: str, said: dict[str, Any] | None) -> None:
        self.socket, self.pid, self.bank, self.said = socket, pid, bank, said

    def end(self) -> bool:
        """Stop or kill it. True if it has ended."""
        return stop_daemon(
            lambda: is_listening(self.socket),
            lambda: self.said and ask(self.socket, "stop"),
            lambda: self.pid,
        )


def list_daemons(env: Mapping[str, str]) -> list[Daemon]:
    """All daemons of this user, sorted by bank."""
    found = list[Daemon]()
    for folder in filter(connect.is_private, connect.socket_folders(env)):
        paths = (f"{folder}/{name}" for name in sorted(os.listdir(folder)) if name.endswith(".sock"))  # noqa: PTH208
        found += filter(None, map(_daemon_at, paths))
    return sorted(found, key=lambda one: (one.bank, one.pid))


def _daemon_at(path: str) -> Daemon | None:
    if not is_listening(path):
        return None
    said = ask(path, "status")
    pid, bank = connect.read_owner(path)
    return Daemon(path, said["pid"] if said else pid, bank, said)


def stop_daemon(is_running: Callable[[], bool], stop: Callable[[], object], pid: Callable[[], int]) -> bool:
    """Stop a daemon after its running command, and kill it if it does not exit in time. True if it has ended.
    `stop` asks it to exit, and returns None if it does not answer."""
    for signal_number, patience in ((signal.SIGTERM, STOP_TIMEOUT), (signal.SIGKILL, KILL_TIMEOUT)):
        deadline = time.monotonic() + patience
        while is_running() and time.monotonic() < deadline:
            # It may use another XDG_RUNTIME_DIR, have lost its socket, or be frozen.
            if signal_number == signal.SIGKILL or stop() is None:
                send_signal(pid(), signal_number)
            time.sleep(0.05)
    return not is_running()


def is_listening(path: str) -> bool:
    """Whether a daemon listens at a socket: a killed one leaves its socket behind."""
    try:
        with contextlib.closing(unix_socket()) as daemon:
            daemon.settimeout(connect.PROBE_TIMEOUT)
            daemon.connect(path)
    except (TimeoutError, BlockingIOError):  # it listens, but accepts no more connections
        return True
    except OSError:
        return False
    return True


def send_signal(pid: int, number: signal.Signals) -> None:
    """Send a signal, then SIGCONT: a stopped process handles no other signal."""
    with contextlib.suppress(OSError):
        if pid > 0:
            os.kill(pid, number)
            os.kill(pid, signal.SIGCONT)


def status(root: Path, env: Mapping[str, str], method: str = "status") -> dict[str, Any] | None:
    """Call `status` or `stop` on the bank's daemon and return its answer; None if none answers."""
    name = connect.socket_name(os.path.realpath(root))
    folders = filter(connect.is_private, connect.socket_folders(env))
    return next(filter(None, (ask(f"{folder}/{name}", method) for folder in folders)), None)


def is_bank_silent(root: Path, env: Mapping[str, str]) -> bool:
    """Whether the bank's daemon runs, but did not answer the last request."""
    name = connect.socket_name(os.path.realpath(root))
    return any(connect.is_silent(f"{folder}/{name}") for folder in connect.socket_folders(env))


def ask(path: str, method: str) -> dict[str, Any] | None:
    """Call a method of the daemon at a socket; None if it does not answer."""
    import socket  # not by the MCP relay, which asks nothing

    known = connect.is_silent(path)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
            daemon.settimeout(min(ASK_TIMEOUT, connect.PROBE_TIMEOUT) if known else ASK_TIMEOUT)
            daemon.connect(path)
            daemon.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode() + b"\n")
            with daemon.makefile("rb") as lines:
                found = dict(json.loads(lines.readline())["result"])
    except TimeoutError:
        connect.record_answer(path, False)
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if known:
        connect.record_answer(path, True)
    return found


# -- checks ----------------------------------------------------------------------------------------------


def daemon_checks(bank: Bank, env: Mapping[str, str]) -> Iterator[Check]:
    """The checks of `doctor`: whether a running daemon answers, and whether its watch gets events."""
    from ua_memory.upkeep.doctor import Check

    if not is_running(bank.local):
        yield _startable(env)
        return
    found = status(bank.root, env)
    if found is None:
        seen = f"process {daemon_pid(bank.local)} runs, but does not answer"
        yield Check("daemon", False, seen, not_answering(bank.local).hint or "")
        return
    yield Check("daemon", True, f"process {found['pid']} answers")
    watch = found["watch"]
    if watch["mode"] == "events":
        seen = f"{watch['folders']} folders by events, heartbeat {watch['heartbeat']}"
        yield Check("watch", True, seen)
        return
    why = watch["why"]  # on a shared file system there are no events, which is no fault
    limits = "raise fs.inotify.max_user_watches and max_user_instances (sysctl)"
    hint = limits if "limit" in why else "ua-memory daemon restart"
    yield Check("watch", "unheard" in why, f"no events ({why}); the files are polled", hint)


def _startable(env: Mapping[str, str]) -> Check:
    """The check of a daemon that does not run: whether one can be started."""
    from ua_memory.upkeep.doctor import Check

    if env.get(MODE_VARIABLE) == "off":
        return Check("daemon", True, f"none runs: {MODE_VARIABLE}=off")
    try:
        connect.make_socket_folder(env)
    except OSError as error:  # such as somebody else's folder of our name in /tmp
        why, _, hint = str(error).partition(": ")
        return Check("daemon", False, f"none can be started: {why}", hint)
    return Check("daemon", True, "none runs; the next search starts it")
