"""The daemon of one bank: it listens, queues commands for its worker, and knows when to leave."""

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
from typing import Any, TypeAlias

from ua_memory.daemon import connect
from ua_memory.daemon.connect import PACKAGE, RequestRefused
from ua_memory.daemon.spawn import Log
from ua_memory.daemon.watch import Watch
from ua_memory.daemon.worker import Flushing, Job, Upkeep, Warm, Worker
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
    """One command as its caller would have run it. `stdin` is None as long as nobody asked for it."""

    argv: tuple[str, ...]
    cwd: str
    home: str
    env: Mapping[str, str]
    encodings: tuple[str, str]
    terminals: frozenset[str]
    width: int
    stdin: bytes | None = None


def parsed(line: bytes) -> tuple[object, str, dict[str, Any]]:
    """(id, method, params) of a request line. RequestRefused if it is none."""
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


def request(params: Mapping[str, Any]) -> Request:
    """The command that a `run` asks for. RequestRefused if anything is missing or of another type."""
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


def line(**message: object) -> bytes:
    """A message as one line of ASCII."""
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"


# -- peer --------------------------------------------------------------------------------------------------
# Who is at the other end of a socket, as the kernel says.


_LOCAL_PEERCRED = 0x001  # macOS, level 0: struct xucred


def uid(connection: socket.socket) -> int:
    """The user id of the peer. OSError where the kernel does not say."""
    if sys.platform == "darwin":
        version, user = struct.unpack_from("=II", connection.getsockopt(0, _LOCAL_PEERCRED, 76))
        if version:
            raise OSError(f"xucred has version {version}")
        return int(user)
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("=iII"))
    return int(struct.unpack("=iII", found)[1])


# -- streams -----------------------------------------------------------------------------------------------
# A caller's streams as a command meets them: output is recorded in its order, input is asked for.


LIVE = 1.0
"""Seconds after which output is sent as it comes: a bar of progress moves."""

Chunk = tuple[int, str]
"""Descriptor (1 or 2) and text."""


class Output:
    """What a command wrote, in its order. `send` takes what is to be shown before the end."""

    def __init__(self, send: Callable[[list[Chunk]], None]) -> None:
        self._send, self._began = send, time.monotonic()
        self._lock = threading.Lock()  # the bar of progress is drawn by a thread of its own
        self._chunks: list[Chunk] = []

    def add(self, number: int, text: str) -> None:
        with self._lock:
            if self._chunks and self._chunks[-1][0] == number:
                text = self._chunks.pop()[1] + text
            self._chunks.append((number, text))

    def live(self) -> None:
        """Send what there is, if the command takes long."""
        if time.monotonic() - self._began > LIVE and (chunks := self.taken()):
            self._send(chunks)

    def taken(self) -> list[Chunk]:
        """What was not sent yet."""
        with self._lock:
            chunks, self._chunks = self._chunks, []
        return chunks


class CallerStream(io.TextIOBase):
    """Standard output or error of a caller, who encodes what comes."""

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
                self._output.live()
        return len(text)

    def flush(self) -> None:
        self._output.live()


class UnsentInput(io.RawIOBase):
    """Standard input that was not sent along: whoever reads from it has the caller asked for it.

    It is not fetched while the command waits: a caller who types would block all others.
    """

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        raise RequestRefused(connect.INPUT, "the command reads standard input")


def given(data: bytes | None) -> io.BufferedIOBase:
    """Standard input with what the caller sent."""
    return io.BufferedReader(UnsentInput()) if data is None else io.BytesIO(data)


# -- code --------------------------------------------------------------------------------------------------
# The code that runs here: which installation it is of, and whether its files have changed since.


EVERY = 1.0
"""Seconds between two looks."""

State: TypeAlias = tuple[int, int]


class Code:
    """The code as it was when this process began."""

    def __init__(self) -> None:
        self._folders, self._files = _all()
        self._looked, self._changed = time.monotonic(), False

    def changed(self) -> bool:
        """Whether it has been replaced on disk since. One who asks now and then waits for each look: it is of
        the folders and of the modules that are loaded, a tenth of all; what is installed changes a folder."""
        if not self._changed and time.monotonic() - self._looked > EVERY:
            self._looked = time.monotonic()
            same = (_state(file) == self._files[file] for file in _loaded() if file in self._files)
            self._changed = not all(same) or not self._settled()
        return self._changed

    def _settled(self) -> bool:
        """Whether folders are as they were, or hold what they held: what Python compiles is new there."""
        if all(_state(folder) == was for folder, was in self._folders.items()):
            return True
        self._folders, files = _all()
        return files == self._files


def _all() -> tuple[dict[str, State], dict[str, State]]:
    """The folders and the modules of this package, each with its size and time."""
    folders: dict[str, State] = {}
    files: dict[str, State] = {}
    for folder, below, names in os.walk(PACKAGE):
        below[:] = [name for name in below if name != "__pycache__"]
        folders[folder] = _state(folder)
        files |= {path: _state(path) for name in names if (path := f"{folder}/{name}").endswith(".py")}
    return folders, files


def _loaded() -> list[str]:
    """Where the modules of this package may lie that run here."""
    own = [name.split(".")[1:] for name in [*sys.modules] if f"{name}.".startswith("ua_memory.")]
    return ["/".join([PACKAGE, *parts]) + end for parts in own for end in (".py", "/__init__.py")]


def _state(path: str) -> State:
    try:
        found = os.stat(path)  # noqa: PTH116 (a hundred of them on the way to an answer)
    except OSError:  # an installation under way
        return 0, 0
    return found.st_size, found.st_mtime_ns


# -- service -----------------------------------------------------------------------------------------------
# The service of one bank: it listens, hands commands to the worker one by one, and knows when to leave.
#
# There is one per bank: whoever holds the lock in `local/`. Each caller has a thread of its own, so that
# one who is slow, silent or broken keeps nobody else waiting.


Perform = Callable[[Request, Output, Warm], int]
"""Runs a command on a caller's behalf and returns its exit code: the command line hands this in."""

CALLERS = 64
"""Connections at a time."""
SILENCE = 10.0
"""Seconds that a caller may take to say what they want, or to take in an answer."""
LEAVING = 20.0
"""Seconds that a command under way may still take when the daemon is to leave."""
TICK = 15.0


class Service:
    """A daemon while it runs. `run` returns when it has left, and why."""

    def __init__(self, warm: Warm, perform: Perform, local: Path, env: Mapping[str, str]) -> None:
        self.warm, self.perform, self.log = warm, perform, Log(local)
        self._folder = connect.make_socket_folder(env)
        self.path = f"{self._folder}/{connect.socket_name(str(warm.root))}"
        self.began, self._code = time.time(), Code()
        self.flushing = Flushing(warm.root, env, self.log.say)
        self.upkeep = Upkeep(
            warm, self.log.say, lambda: self.worker.nudge(), lambda: self.worker.wanted, self.flushing
        )
        self.watch = Watch(warm.root, local, self.upkeep.note_change, self.log.say)
        warm.snapshots = SnapshotCache(self.watch.marks, self.watch.touched)
        self.worker = Worker(self._rest, TICK, self.log.say)
        self._callers, self._why = threading.Semaphore(CALLERS), ""
        self._awake, self._wake = socket.socketpair()
        self._inode, self._lock = 0, _inode(local / "daemon.lock")
        self._local, self._looked = local, time.monotonic()

    # -- its life ----------------------------------------------------------------------------------

    def run(self) -> str:
        """Serve until there is a reason to leave, and return it. Runs in the process's main thread."""
        listener = self._listen()
        self._wake.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.leave("by a signal"))
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.log.say(f"listens on {self.path} for {self.warm.root}")
        self.upkeep.tend(self.watch)
        try:
            while not self._why:
                ready, _, _ = select.select([listener, self._awake], [], [], TICK)
                if listener in ready:
                    self._accept(listener)
                if time.monotonic() - self._looked >= TICK:
                    self._looked = time.monotonic()
                    self._why = self._why or self._reason()
        finally:
            self._stop(listener)
        return self._why

    def leave(self, why: str) -> None:
        """Have the daemon leave; what has begun is finished first."""
        self._why = self._why or why
        with contextlib.suppress(OSError):
            self._wake.send(b"\0")

    def _listen(self) -> socket.socket:
        with contextlib.suppress(FileNotFoundError):
            Path(self.path).unlink()  # of one that was killed: a living one would hold the lock
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            listener.bind(self.path)
        finally:
            os.umask(before)
        self._inode = _inode(self.path)
        connect.write_owner(self.path, os.getpid(), str(self.warm.root))
        listener.listen(CALLERS)
        return listener

    def _stop(self, listener: socket.socket) -> None:
        if self._in_place():
            for part in ("", connect.BANK, connect.SILENT_SUFFIX):
                Path(self.path + part).unlink(missing_ok=True)
        listener.close()
        if self.worker.stop(LEAVING):
            self.warm.close()  # the memory goes with the process
            # The answer of the last command may still be on its way.
            for _ in range(CALLERS):
                if not self._callers.acquire(timeout=0.5):
                    break
        self.flushing.stop()
        self.watch.stop()
        self.log.say(f"exited: {self._why or 'failed'}")

    def _in_place(self) -> bool:
        return _inode(self.path) == self._inode

    def _reason(self) -> str:
        """Why to leave now, '' to stay."""
        if not is_bank(self.warm.root) or _inode(self._local / "daemon.lock") != self._lock:
            return "its bank was removed"
        if not self._in_place():
            return "its socket was removed"
        if self.worker.resting > self.warm.config.daemon_idle_minutes * 60 and not self.upkeep.waits:
            return "idle"
        return "its code was replaced" if self._code.changed() else ""

    def _rest(self, seconds: float) -> float:
        if seconds > self.warm.config.daemon_warm_minutes * 60 and self.warm.unload():
            self.log.say("unloaded index and model")
        self.upkeep.do(seconds)
        return self.upkeep.next() - time.monotonic()

    # -- one caller --------------------------------------------------------------------------------

    def _accept(self, listener: socket.socket) -> None:
        try:
            caller, _ = listener.accept()
        except OSError as error:  # they left at once, or there are too many open files
            self.log.say(f"accept: {error}")
            time.sleep(0.05)
            return
        if not self._callers.acquire(blocking=False):
            with caller, contextlib.suppress(OSError):
                caller.send(line(id=None, error={"code": connect.BUSY, "message": "too many callers"}))
            self.log.say(f"rejected: {CALLERS} callers already")
            return
        threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller: socket.socket) -> None:
        try:
            with caller:
                caller.settimeout(SILENCE)
                if uid(caller) != os.getuid():
                    self.log.say("rejected: another user")
                    return
                for asked in _lines(caller):
                    caller.sendall(self._answered(asked, caller))
        except OSError:  # they left, or were silent for too long: nobody to tell
            pass
        finally:
            self._callers.release()

    def _answered(self, asked: bytes, caller: socket.socket) -> bytes:
        number: object = None
        try:
            number, method, params = parsed(asked)
            return line(id=number, result=self._do(method, params, caller))
        except RequestRefused as refused:
            if refused.code == connect.INTERNAL:
                self.log.say(f"failed: {refused.message}")
            return line(id=number, error={"code": refused.code, "message": refused.message})

    def _do(self, method: str, params: dict[str, Any], caller: socket.socket) -> object:
        if method == "run":
            return self._run(params, caller)
        if method == "status":
            return self.status()
        if method == "stop":
            self.leave("requested")
            return {"pid": os.getpid()}
        raise RequestRefused(connect.NO_METHOD, f"no method {method[:50]}")

    def _run(self, params: dict[str, Any], caller: socket.socket) -> object:
        if params.get("protocol") != connect.PROTOCOL or params.get("code") != connect.PACKAGE:
            self.leave("a caller of another installation")
        elif self._code.changed():
            self.leave("its code was replaced")
        if self._why:
            raise RequestRefused(connect.OTHER_CODE, f"the daemon exits: {self._why}")
        asked = request(params)
        # A caller who gets no word does it themselves: then it must not be done here.
        caller.sendall(line(method="taken", params=[]))

        def work(job: Job) -> object:
            output = Output(job.tell)
            code = self.perform(asked, output, self.warm)
            return {"code": code, "output": output.taken()}

        def tell(chunks: Any) -> None:
            caller.sendall(line(method="alive" if chunks is None else "write", params=chunks or []))

        return self.worker.ask(Job(work), tell)

    def status(self) -> dict[str, Any]:
        """How it stands, as `daemon status --json` has it."""
        return {
            "pid": os.getpid(), "bank": str(self.warm.root), "socket": self.path,
            "protocol": connect.PROTOCOL, "code": connect.PACKAGE,
            "since": time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(self.began)),
            "commands": self.worker.done, "busy": self.worker.busy, "warm": self.warm.warm,
            "idle_seconds": round(self.worker.resting, 1), "caught_up": self.upkeep.caught_up,
            "watch": self.watch.state(),
            "model": self.flushing.modelled(), "upkeep": self.flushing.can_tend(),
            **({"flushing": self.flushing.key} if self.flushing.key else {}),
        }  # fmt: skip


def _inode(path: Path | str) -> int:
    """By which a file is told from another of its name; 0 where there is none."""
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0


def _lines(caller: socket.socket) -> Iterator[bytes]:
    """The lines that a caller sends. Ends where they do, or where a line is too long to be one of ours."""
    rest = b""
    while True:
        deadline = time.monotonic() + SILENCE
        parts = [rest]
        size = len(rest)
        while b"\n" not in parts[-1]:
            # A byte a second would never be silent: the whole line has its time.
            if size > connect.LARGEST or time.monotonic() > deadline:
                return
            got = caller.recv(1 << 16)
            if not got:
                return
            parts.append(got)
            size += len(got)
        line, _, rest = b"".join(parts).partition(b"\n")
        yield line
