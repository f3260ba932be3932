"""Processes in the background: starting, asking and ending a bank's daemon, other work, and their logs."""

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

    from ua_memory.caller import Clock
    from ua_memory.config import Config
    from ua_memory.discovery import Folders
    from ua_memory.memory import Memory
    from ua_memory.paths import Bank
    from ua_memory.upkeep.doctor import Check


# -- processes ---------------------------------------------------------------------------------------------


MODE = "UA_MEMORY_DAEMON"
"""Whether a command goes to the daemon: auto, off, or require, which starts one and waits for it."""


def background(
    words: Sequence[str], env: Mapping[str, str], *, log: str | Path = os.devnull, cwd: str | None = "/",
    module: str = "ua_memory",
) -> subprocess.Popen[bytes]:  # fmt: skip
    """Start a process of ours that goes on when its caller is gone: in a session of its own, with nothing of
    the caller's open. Its output is appended to `log`. OSError."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            # -P: no module of the folder it runs in may take the place of one of ours.
            [sys.executable, "-P", "-m", module, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            cwd=cwd, env=dict(env), start_new_session=True,
        )  # fmt: skip
    finally:
        os.close(out)


def survive() -> None:
    """Ignore SIGHUP, which a terminal that closes sends to what it started, here and in what is started next:
    what is handed over must be on the disk first."""
    with contextlib.suppress(ValueError, AttributeError):  # not the main thread; no such signal
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def start_detached(bank: Bank | Folders, env: Mapping[str, str], *words: str) -> str:
    """Start a command in a bank, by default `flush`, that goes on when its caller is gone; return the path of
    its log."""
    words = words or ("flush",)
    log = Log(_made(bank.local), FLUSH_LOG)
    log.say(" ".join(words))
    background(["--bank", str(bank.root), *words], env, log=log.file)
    return str(log.file)


def warm_up(options: Sequence[str], env: Mapping[str, str], cwd: str | None = "/") -> None:
    """Have a daemon with its model loaded, by a process that nobody waits for. `options` name the bank."""
    # The first question is what has it load the model.
    background([*options, "recall", "memory"], {**env, MODE: "require"}, cwd=cwd)


def _made(local: Path | str) -> Path:
    """A bank's folder `local/`, which there is then."""
    from ua_memory.paths import make_private

    make_private(Path(local))
    return Path(local)


# -- logs ---------------------------------------------------------------------------------------------------
# A log in `local/`: of the daemon, of hooks, of work in the background. Begun anew when it has grown; one old
# one is kept.


LARGEST = 1 << 20
"""Bytes of a log."""
NAME, FLUSH_LOG = "daemon.log", "flush.log"


class Log:
    """Where is said what happens and nobody sees. A log that cannot be written is no reason to fail."""

    def __init__(self, folder: Path, name: str = NAME) -> None:
        self.file = folder / name
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        row = f"{time.strftime('%Y-%m-%d %H:%M:%S%z')} [{os.getpid()}] {text.rstrip()}\n"
        with self._lock, contextlib.suppress(OSError):
            with contextlib.suppress(FileNotFoundError):
                if self.file.stat().st_size + len(row) > LARGEST:
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


class Lines(io.StringIO):
    """A stream whose lines go into a log, for a command that nobody looks at."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log, self._begun = log, ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._log.say(line)
        return len(text)


# -- the daemon --------------------------------------------------------------------------------------------
# There is one per bank: whoever holds the lock in `local/`.


AGAIN = 30.0
"""Seconds after which a daemon that did not come up is tried again."""
COMES_UP = 20.0
"""Seconds in which it must answer."""


class AlreadyRuns(Exception):
    """Another process of this bank holds the lock."""


@contextlib.contextmanager
def process_lock(file: Path) -> Iterator[None]:
    """Be the bank's one process of a kind, such as its daemon, as long as the block lasts. AlreadyRuns; freed
    by the system at a kill."""
    fd = os.open(_made(file.parent) / file.name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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


def runs(local: Path) -> bool:
    """Whether the bank has a daemon, also one that is only starting."""
    return is_locked(local / "daemon.lock")


def holder(local: Path) -> int:
    """The process id of the bank's daemon; 0 if it has none."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((local / "daemon.lock").read_text())
        return pid if runs(local) else 0  # whoever holds the lock has written it
    return 0


def in_background(bank: Bank | Folders, env: Mapping[str, str], *, warm: bool = False) -> bool:
    """Start a daemon unless there is one or one has just been tried, and tell whether; does not wait. With
    `warm` it is asked something, so that it loads its model."""
    try:
        local = _made(bank.local)
        mark = local / "daemon.started"
        with contextlib.suppress(FileNotFoundError):
            if time.time() - mark.stat().st_mtime < AGAIN:
                return False
        if runs(local):
            return False
        mark.touch(mode=0o600)
        if warm:
            warm_up(["--bank", str(bank.root)], env)
        else:
            start(bank, env)
    except OSError:  # a bank that we may only read has no daemon
        return False
    return True


MODELS = ("ANTHROPIC_", "OPENAI_", "UA_MEMORY_PROVIDER", "UA_MEMORY_MODEL")
"""What the names of variables begin with that choose a model, or have its key."""


def start(bank: Bank | Folders, env: Mapping[str, str], *, key: bool = False) -> subprocess.Popen[bytes]:
    """Start a bank's daemon; with `key` its owner wants it to have the model of these variables."""
    # What is particular to one caller comes with each request; a daemon must not keep their keys.
    kept = MODELS if key else ()
    env = {
        name: value
        for name, value in env.items()
        if name.startswith(kept) or not name.startswith(("ANTHROPIC_", "OPENAI_", "UA_"))
    }
    return background(["--bank", str(bank.root), "daemon", "run"], env, log=_made(bank.local) / NAME)


def ensure(bank: Bank, env: Mapping[str, str], *, key: bool = False) -> dict[str, Any]:
    """Have a daemon that answers, and return its status; see `start` for `key`. Busy if none comes up."""
    process: subprocess.Popen[bytes] | None = None
    deadline = time.monotonic() + COMES_UP
    while time.monotonic() < deadline:
        found = status(bank.root, env)
        if found is not None:
            return found
        if process is None and not runs(bank.local):
            process = start(bank, env, key=key)
        elif process is None and silent(bank.root, env):
            hint = "ua-memory daemon restart"
            raise Busy("the daemon does not answer", where=str(bank.root), hint=hint)
        elif process is not None and process.poll():
            said = [row.partition("error: ")[2] for row in Log(bank.local).tail(8)]
            why = next(filter(None, reversed(said)), "ua-memory daemon logs may say why")
            raise Busy(f"the daemon cannot be started: {why}", where=str(bank.root))
        time.sleep(0.05)
    raise Busy("the daemon does not answer", where=str(bank.root), hint="ua-memory daemon logs")


class InProcess:
    """An opener that notes which bank it opened. With `insist` it opens none, but brings its daemon up."""

    def __init__(self, env: Mapping[str, str], *, insist: bool = False) -> None:
        self.env, self.insist = env, insist
        self.bank: Bank | None = None

    @contextlib.contextmanager
    def __call__(self, root: Path, config: Config, now: Clock | None) -> Iterator[Memory]:
        from ua_memory.caller import in_process

        with in_process(root, config, now) as memory:
            self.bank = memory.store.bank
            if self.insist:
                ensure(self.bank, self.env)
                raise BroughtUp
            yield memory


class BroughtUp(BaseException):
    """The daemon is there now: ask it. Not an Exception: no message is to be made of it."""


# -- asking ------------------------------------------------------------------------------------------------
# Asking a daemon how it stands, or to leave. Commands go the faster way of `cli.fast`.


SECONDS = 2.0
STOPS, ENDS = 30.0, 5.0
"""Seconds in which one that was asked to must have left, and one that was killed must have ended."""


class Daemon:
    """A daemon of this user's: where it listens, its process, its bank's folder ('' where it does not say),
    and what it says of itself, None if it does not answer."""

    def __init__(self, socket: str, pid: int, bank: str, said: dict[str, Any] | None) -> None:
        self.socket, self.pid, self.bank, self.said = socket, pid, bank, said

    def end(self) -> bool:
        """Whether it has left, or was killed."""
        return end(
            lambda: listens(self.socket), lambda: self.said and ask(self.socket, "stop"), lambda: self.pid
        )


def every(env: Mapping[str, str]) -> list[Daemon]:
    """All daemons of this user's, by their banks."""
    found = list[Daemon]()
    for folder in filter(connect.is_private, connect.socket_folders(env)):
        paths = (f"{folder}/{name}" for name in sorted(os.listdir(folder)) if name.endswith(".sock"))  # noqa: PTH208
        found += filter(None, map(_daemon, paths))
    return sorted(found, key=lambda one: (one.bank, one.pid))


def _daemon(path: str) -> Daemon | None:
    if not listens(path):
        return None
    said = ask(path, "status")
    pid, bank = connect.read_owner(path)
    return Daemon(path, said["pid"] if said else pid, bank, said)


def end(there: Callable[[], bool], stop: Callable[[], object], pid: Callable[[], int]) -> bool:
    """Have a daemon leave, a command under way finished first, and kill one that has not left in time.
    Whether it has ended; `stop` asks it, and is None where it does not answer."""
    for number, patience in ((signal.SIGTERM, STOPS), (signal.SIGKILL, ENDS)):
        deadline = time.monotonic() + patience
        while there() and time.monotonic() < deadline:
            # It may listen where another XDG_RUNTIME_DIR says, have no socket any more, or be frozen.
            if number == signal.SIGKILL or stop() is None:
                wake(pid(), number)
            time.sleep(0.05)
    return not there()


def listens(path: str) -> bool:
    """Whether there is a daemon at a socket: one that was killed has left it behind."""
    try:
        with contextlib.closing(unix_socket()) as daemon:
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


def status(root: Path, env: Mapping[str, str], method: str = "status") -> dict[str, Any] | None:
    """What the bank's daemon says of itself, or to be told to `stop`; None if none answers."""
    name = connect.socket_name(os.path.realpath(root))
    folders = filter(connect.is_private, connect.socket_folders(env))
    return next(filter(None, (ask(f"{folder}/{name}", method) for folder in folders)), None)


def silent(root: Path, env: Mapping[str, str]) -> bool:
    """Whether the bank's daemon is there, and did not answer whoever asked it last."""
    name = connect.socket_name(os.path.realpath(root))
    return any(connect.is_silent(f"{folder}/{name}") for folder in connect.socket_folders(env))


def ask(path: str, method: str) -> dict[str, Any] | None:
    """What the daemon that listens at a socket answers; None if it does not."""
    import socket  # not by the MCP relay, which asks nothing

    known = connect.is_silent(path)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as daemon:
            daemon.settimeout(min(SECONDS, connect.PROBE) if known else SECONDS)
            daemon.connect(path)
            daemon.sendall(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method}).encode() + b"\n")
            with daemon.makefile("rb") as lines:
                found = dict(json.loads(lines.readline())["result"])
    except TimeoutError:
        connect.note_answer(path, False)
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if known:
        connect.note_answer(path, True)
    return found


# -- checks ----------------------------------------------------------------------------------------------


def checks(bank: Bank, env: Mapping[str, str]) -> Iterator[Check]:
    """Whether the bank's daemon answers, if it has one, and whether its watch is alive; without one every
    command does its own work."""
    from ua_memory.upkeep.doctor import Check

    if not runs(bank.local):
        yield Check("daemon", True, "none runs; the next search starts it")
        return
    found = status(bank.root, env)
    if found is None:
        seen = f"process {holder(bank.local)} runs, but does not answer"
        yield Check("daemon", False, seen, "ua-memory daemon restart")
        return
    yield Check("daemon", True, f"process {found['pid']} answers")
    watch = found["watch"]
    if watch["mode"] == "events":
        seen = f"{watch['folders']} folders by events, heartbeat {watch['heartbeat']}"
        yield Check("watch", True, seen)
        return
    why = watch["why"]  # on a shared file system it cannot hear of changes, and that is no fault
    limits = "raise fs.inotify.max_user_watches and max_user_instances (sysctl)"
    hint = limits if "limit" in why else "ua-memory daemon restart"
    yield Check("watch", "unheard" in why, f"no events ({why}); the files are polled", hint)
