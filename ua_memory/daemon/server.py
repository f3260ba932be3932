"""The daemon of one bank: it listens on a socket, queues commands for its worker, and exits when idle."""

from __future__ import annotations

import contextlib
import io
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ua_memory.daemon import connect
from ua_memory.daemon.connect import PACKAGE, RequestRefused
from ua_memory.daemon.spawn import Log
from ua_memory.daemon.watch import Watch
from ua_memory.daemon.worker import BackgroundJobs, Job, Upkeep, WarmBank, Worker
from ua_memory.paths import is_bank
from ua_memory.store.scan import SnapshotCache

# -- messages ----------------------------------------------------------------------------------------------
# What goes over the socket: JSON-RPC 2.0, one message a line, ASCII. A connection may carry several requests,
# one after the other.
#
#     {"jsonrpc": "2.0", "id": 1, "method": "run", "params": {
#       "protocol": 1, "code": "/…/site-packages/ua_memory",
#       "argv": ["search", "heroku", "--json"], "cwd": "/home/noor", "home": "/home/noor",
#       "env": {"TERM": "xterm-256color", "LANG": "en_GB.UTF-8"},
#       "encodings": ["utf-8", "utf-8"], "terminals": ["stdout"], "width": 80, "stdin": null}}
#     {"jsonrpc": "2.0", "id": 1, "result": {"code": 0, "output": [[1, "…\n"], [2, "ua-memory: …\n"]]}}
#
# - `code` is the folder of the caller's package. `encodings` are those of standard output and error. `stdin`
#   is null until the command asks for it (INPUT), then its bytes as the characters U+0000 to U+00FF.
# - `output` is descriptor and text, in order. After a second it also arrives in notifications
#   {"method": "write", "params": [[2, "…"]]}, and each second without it {"method": "alive", "params": []}.
# - {"method": "taken", "params": []}: the daemon has accepted the command. Before that the caller may do it.
# - `status` and `stop` take no parameters; `status` returns what `daemon status --json` shows.
#
# Nothing was done where another bank is meant (ELSEWHERE), the caller is of another installation or the code
# was replaced (OTHER_CODE: the daemon exits), the command has not started within 2 s or too many wait (BUSY),
# or it reads standard input (INPUT: the caller reads it and asks again). Then the caller does the command
# itself. After any other error, and where the daemon dies, it repeats a command that reads, never one that
# writes.


@dataclass(frozen=True, slots=True)
class Request:
    """A caller's command. `stdin` is None until the command asks for it."""

    argv: tuple[str, ...]
    cwd: str
    home: str
    env: Mapping[str, str]
    encodings: tuple[str, str]
    terminals: frozenset[str]
    width: int
    stdin: bytes | None = None


def parse_request(line: bytes) -> tuple[object, str, dict[str, Any]]:
    """Parse a request line into (id, method, params). RequestRefused if it is invalid."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RequestRefused(connect.BAD_JSON, "not JSON") from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or "id" not in message:
        raise RequestRefused(connect.BAD_REQUEST, "not a request of JSON-RPC 2.0")
    method, params = message.get("method"), message.get("params", {})
    if not isinstance(method, str) or not isinstance(params, dict):
        raise RequestRefused(connect.BAD_REQUEST, "a method's name and an object of parameters are needed")
    return message["id"], method, params


def command_request(params: Mapping[str, Any]) -> Request:
    """The command in the parameters of a `run`. RequestRefused if one is missing or has a wrong type."""
    try:
        given = params.get("stdin")
        argv, env = params["argv"], params["env"]
        out, err = params["encodings"]
        found = Request(
            tuple(argv), params["cwd"], params["home"], dict(env), (out, err), frozenset(params["terminals"]),
            params["width"], None if given is None else given.encode("latin-1"),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RequestRefused(connect.BAD_PARAMS, f"run: {error}") from error
    texts = [found.cwd, found.home, *found.argv, *found.env, *found.env.values(), *found.encodings]
    if not all(isinstance(text, str) for text in [*texts, *found.terminals]) or type(found.width) is not int:
        raise RequestRefused(connect.BAD_PARAMS, "run: a parameter is of another type")
    return found


def message_line(**message: object) -> bytes:
    """A message as one line of ASCII."""
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"


# -- peer credentials --------------------------------------------------------------------------------------


_LOCAL_PEERCRED = 0x001  # macOS, level 0: struct xucred


def peer_uid(connection: socket.socket) -> int:
    """The user id of a socket's peer, from the kernel. OSError if it is unknown."""
    if sys.platform == "darwin":
        version, user = struct.unpack_from("=II", connection.getsockopt(0, _LOCAL_PEERCRED, 76))
        if version:
            raise OSError(f"xucred has version {version}")
        return int(user)
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("=iII"))
    return int(struct.unpack("=iII", found)[1])


# -- a caller's streams ------------------------------------------------------------------------------------
# Output is recorded in order; standard input is requested when a command reads it.


LIVE_AFTER = 1.0
"""Seconds after which output is sent while the command runs, so that a progress bar moves."""

Chunk = tuple[int, str]
"""Descriptor (1 or 2) and text."""


class Output:
    """A command's output in order. `send` gets what is shown before the command ends."""

    def __init__(self, send: Callable[[list[Chunk]], None]) -> None:
        self._send, self._began = send, time.monotonic()
        self._lock = threading.Lock()  # a progress bar is drawn by its own thread
        self._chunks: list[Chunk] = []

    def add(self, number: int, text: str) -> None:
        with self._lock:
            if self._chunks and self._chunks[-1][0] == number:
                text = self._chunks.pop()[1] + text
            self._chunks.append((number, text))

    def send_if_slow(self) -> None:
        """Send the output so far if the command has been running for LIVE_AFTER seconds."""
        if time.monotonic() - self._began > LIVE_AFTER and (chunks := self.take_unsent()):
            self._send(chunks)

    def take_unsent(self) -> list[Chunk]:
        """Remove and return the output that was not sent yet."""
        with self._lock:
            chunks, self._chunks = self._chunks, []
        return chunks


class CallerStream(io.TextIOBase):
    """A caller's standard output or error. The caller encodes the text."""

    def __init__(self, output: Output, number: int, encoding: str) -> None:
        self._output, self._number, self._encoding = output, number, encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text:
            self._output.add(self._number, text)
            if self._number == 2:
                self._output.send_if_slow()
        return len(text)

    def flush(self) -> None:
        self._output.send_if_slow()


class UnsentInput(io.RawIOBase):
    """Standard input that the caller has not sent. Reading it refuses the request with NEEDS_INPUT, so that
    the caller sends it again with the input. Waiting for it here would block all other callers."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        raise RequestRefused(connect.NEEDS_INPUT, "the command reads standard input")


def standard_input(data: bytes | None) -> io.BufferedIOBase:
    """The command's standard input, from the bytes that the caller sent, if any."""
    return io.BufferedReader(UnsentInput()) if data is None else io.BytesIO(data)


# -- code version ------------------------------------------------------------------------------------------
# Whether the package's files have changed since this process started.


CODE_CHECK_INTERVAL = 1.0
"""Seconds between two checks."""

FileState = tuple[int, int]
"""Size and modification time; zeros for a file that an installation is replacing."""


class CodeVersion:
    """The package's files as they were when this process started."""

    def __init__(self) -> None:
        self._files = _package_files()
        self._last_check, self._changed = time.monotonic(), False

    def changed(self) -> bool:
        """Whether files were replaced on disk since. All of them are looked at, in some two milliseconds."""
        if not self._changed and time.monotonic() - self._last_check > CODE_CHECK_INTERVAL:
            self._last_check = time.monotonic()
            self._changed = _package_files() != self._files
        return self._changed


def _package_files() -> dict[str, FileState]:
    """The package's modules, loaded or not."""
    found: dict[str, FileState] = {}
    for folder, below, names in os.walk(PACKAGE):
        below[:] = [name for name in below if name != "__pycache__"]
        found |= {path: _file_state(path) for name in names if (path := f"{folder}/{name}").endswith(".py")}
    return found


def _file_state(path: str) -> FileState:
    try:
        found = os.stat(path)  # noqa: PTH116 (a hundred and more of them on the way to an answer)
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


# -- service -----------------------------------------------------------------------------------------------
# The service of one bank listens on its socket and hands commands to the worker one by one.
#
# There is one per bank: the process that holds the lock in `local/`. Each caller has its own thread, so that
# a slow or broken one keeps nobody else waiting.


RunCommand = Callable[[Request, Output, WarmBank], int]
"""Runs a caller's command and returns its exit code. The command line passes it in."""

CALLER_LIMIT = 64
"""Connections at a time."""
CALLER_TIMEOUT = 10.0
"""Seconds that a caller may take to send a request or to read an answer."""
EXIT_TIMEOUT = 20.0
"""Seconds that a running command may still take when the daemon exits."""
TICK_SECONDS = 15.0


class Service:
    """A running daemon. `run` returns when it exits, and why."""

    def __init__(self, warm: WarmBank, perform: RunCommand, local: Path, env: Mapping[str, str]) -> None:
        self.warm, self.perform, self.log = warm, perform, Log(local)
        self._folder = connect.make_socket_folder(env)
        self.path = f"{self._folder}/{connect.socket_name(str(warm.root))}"
        self.started_at, self._code = time.time(), CodeVersion()
        self.flushing = BackgroundJobs(warm.root, env, self.log.say)
        self.upkeep = Upkeep(
            warm, self.log.say, lambda: self.worker.wake(), lambda: self.worker.has_jobs, self.flushing
        )
        self.watch = Watch(warm.root, local, self.upkeep.note_change, self.log.say)
        warm.snapshots = SnapshotCache(self.watch.change_count, self.watch.changed_names)
        self.worker = Worker(self._run_idle_work, TICK_SECONDS, self.log.say)
        self._callers, self._exit_reason = threading.Semaphore(CALLER_LIMIT), ""
        self._awake, self._wake = socket.socketpair()
        self._inode, self._lock = 0, _inode(local / "daemon.lock")
        self._local, self._last_check = local, time.monotonic()

    # -- start, loop and exit ------------------------------------------------------------------------

    def run(self) -> str:
        """Serve until there is a reason to exit, and return it. Runs in the process's main thread."""
        listener = self._listen()
        self._wake.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.request_exit("by a signal"))
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.log.say(f"listens on {self.path} for {self.warm.root}")
        self.upkeep.attach(self.watch)
        try:
            while not self._exit_reason:
                ready, _, _ = select.select([listener, self._awake], [], [], TICK_SECONDS)
                if listener in ready:
                    self._accept(listener)
                if time.monotonic() - self._last_check >= TICK_SECONDS:
                    self._last_check = time.monotonic()
                    self._exit_reason = self._exit_reason or self._find_exit_reason()
        finally:
            self._stop(listener)
        return self._exit_reason

    def request_exit(self, why: str) -> None:
        """Have the daemon exit after the running command."""
        self._exit_reason = self._exit_reason or why
        with contextlib.suppress(OSError):
            self._wake.send(b"\0")

    def _listen(self) -> socket.socket:
        with contextlib.suppress(FileNotFoundError):
            Path(self.path).unlink()  # of a killed daemon: a running one would hold the lock
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            listener.bind(self.path)
        finally:
            os.umask(before)
        self._inode = _inode(self.path)
        connect.write_owner(self.path, os.getpid(), str(self.warm.root))
        listener.listen(CALLER_LIMIT)
        return listener

    def _stop(self, listener: socket.socket) -> None:
        if self._is_unchanged():
            for part in ("", connect.OWNER_SUFFIX, connect.SILENT_SUFFIX):
                Path(self.path + part).unlink(missing_ok=True)
        listener.close()
        if self.worker.stop(EXIT_TIMEOUT):
            self.warm.close()  # the memory goes with the process
            # The answer of the last command may still be on its way.
            for _ in range(CALLER_LIMIT):
                if not self._callers.acquire(timeout=0.5):
                    break
        self.flushing.stop()
        self.watch.stop()
        self.log.say(f"exited: {self._exit_reason or 'failed'}")

    def _is_unchanged(self) -> bool:
        return _inode(self.path) == self._inode

    def _find_exit_reason(self) -> str:
        """Why to exit now; '' to stay."""
        if not is_bank(self.warm.root) or _inode(self._local / "daemon.lock") != self._lock:
            return "its bank was removed"
        if not self._is_unchanged():
            return "its socket was removed"
        limit = self.warm.config.daemon_idle_minutes * 60
        if self.worker.idle_seconds > limit and not self.upkeep.has_pending_work:
            return "idle"
        return "its code was replaced" if self._code.changed() else ""

    def _run_idle_work(self, seconds: float) -> float:
        if seconds > self.warm.config.daemon_warm_minutes * 60 and self.warm.unload():
            self.log.say("unloaded index and model")
        self.upkeep.run_due(seconds)
        return self.upkeep.next_due() - time.monotonic()

    # -- one caller --------------------------------------------------------------------------------

    def _accept(self, listener: socket.socket) -> None:
        try:
            caller, _ = listener.accept()
        except OSError as error:  # the caller has left, or there are too many open files
            self.log.say(f"accept: {error}")
            time.sleep(0.05)
            return
        if not self._callers.acquire(blocking=False):
            with caller, contextlib.suppress(OSError):
                refusal = {"code": connect.BUSY, "message": "too many callers"}
                caller.send(message_line(id=None, error=refusal))
            self.log.say(f"rejected: {CALLER_LIMIT} callers already")
            return
        threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller: socket.socket) -> None:
        try:
            with caller:
                caller.settimeout(CALLER_TIMEOUT)
                if peer_uid(caller) != os.getuid():
                    self.log.say("rejected: another user")
                    return
                for asked in _read_lines(caller):
                    caller.sendall(self._answer_line(asked, caller))
        except OSError:  # the caller has left, or was silent for too long
            pass
        finally:
            self._callers.release()

    def _answer_line(self, asked: bytes, caller: socket.socket) -> bytes:
        number: object = None
        try:
            number, method, params = parse_request(asked)
            return message_line(id=number, result=self._call_method(method, params, caller))
        except RequestRefused as refused:
            if refused.code == connect.INTERNAL:
                self.log.say(f"failed: {refused.message}")
            return message_line(id=number, error={"code": refused.code, "message": refused.message})

    def _call_method(self, method: str, params: dict[str, Any], caller: socket.socket) -> object:
        if method == "run":
            return self._run(params, caller)
        if method == "status":
            return self.status()
        if method == "stop":
            self.request_exit("requested")
            return {"pid": os.getpid()}
        raise RequestRefused(connect.NO_METHOD, f"no method {method[:50]}")

    def _run(self, params: dict[str, Any], caller: socket.socket) -> object:
        if params.get("protocol") != connect.PROTOCOL or params.get("code") != connect.PACKAGE:
            self.request_exit("a caller of another installation")
        elif self._code.changed():
            self.request_exit("its code was replaced")
        if self._exit_reason:
            raise RequestRefused(connect.OTHER_CODE, f"the daemon exits: {self._exit_reason}")
        asked = command_request(params)
        # A caller that does not get this line runs the command itself, so then it must not run here.
        caller.sendall(message_line(method="taken", params=[]))

        def work(job: Job) -> object:
            output = Output(job.notify)
            code = self.perform(asked, output, self.warm)
            return {"code": code, "output": output.take_unsent()}

        def tell(chunks: Any) -> None:
            caller.sendall(message_line(method="alive" if chunks is None else "write", params=chunks or []))

        return self.worker.submit(Job(work), tell)

    def status(self) -> dict[str, Any]:
        """The daemon's status, as printed by `daemon status --json`."""
        return {
            "pid": os.getpid(), "bank": str(self.warm.root), "socket": self.path,
            "protocol": connect.PROTOCOL, "code": connect.PACKAGE,
            "since": time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(self.started_at)),
            "commands": self.worker.done, "busy": self.worker.busy, "warm": self.warm.is_loaded,
            "idle_seconds": round(self.worker.idle_seconds, 1), "caught_up": self.upkeep.index_updates,
            "watch": self.watch.status(),
            "model": self.flushing.has_model(), "upkeep": self.flushing.can_consolidate(),
            **({"flushing": self.flushing.key} if self.flushing.key else {}),
        }  # fmt: skip


def _inode(path: Path | str) -> int:
    """A file's inode, 0 if there is none: a file that was replaced has another one."""
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0


def _read_lines(caller: socket.socket) -> Iterator[bytes]:
    """The lines that a caller sends. Ends with the connection, or at a line that is too long or too slow."""
    rest = b""
    while True:
        deadline = time.monotonic() + CALLER_TIMEOUT
        parts = [rest]
        size = len(rest)
        while b"\n" not in parts[-1]:
            # The time limit is for the whole line: a byte a second would never time out.
            if size > connect.LARGEST_MESSAGE or time.monotonic() > deadline:
                return
            got = caller.recv(1 << 16)
            if not got:
                return
            parts.append(got)
            size += len(got)
        line, _, rest = b"".join(parts).partition(b"\n")
        yield line
