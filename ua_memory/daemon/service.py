"""The service of one bank: it listens, hands commands to the worker one by one, and knows when to leave.

There is one per bank: whoever holds the lock in `local/`. Each caller has a thread of its own, so that one
who is slow, silent or broken keeps nobody else waiting.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ua_memory.daemon import address, messages, peer
from ua_memory.daemon.code import Code
from ua_memory.daemon.flushing import Flushing
from ua_memory.daemon.log import Log
from ua_memory.daemon.messages import OTHER_CODE, Refused, Request
from ua_memory.daemon.streams import Output
from ua_memory.daemon.upkeep import Upkeep
from ua_memory.daemon.warm import Warm
from ua_memory.daemon.watch import Watch
from ua_memory.daemon.worker import Job, Worker
from ua_memory.memory import Witness
from ua_memory.paths import is_bank, make_private

Perform = Callable[[Request, Output, Warm], int]
"""Runs a command on a caller's behalf and returns its exit code: the command line hands this in."""

CALLERS = 64
"""Connections at a time."""
SILENCE = 10.0
"""Seconds that a caller may take to say what they want, or to take in an answer."""
LEAVING = 20.0
"""Seconds that a command under way may still take when the daemon is to leave."""
TICK = 15.0


class AlreadyRuns(Exception):
    """Another daemon of this bank holds the lock."""


@contextlib.contextmanager
def only_one(local: Path) -> Iterator[None]:
    """Be the bank's one daemon, as long as the block lasts. AlreadyRuns; freed by the system at a kill."""
    make_private(local)
    fd = os.open(local / "daemon.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
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
    try:
        fd = os.open(local / "daemon.lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def holder(local: Path) -> int:
    """The process id of the bank's daemon; 0 if it has none."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((local / "daemon.lock").read_text())
        return pid if runs(local) else 0  # whoever holds the lock has written it
    return 0


class Service:
    """A daemon while it runs. `run` returns when it has left, and why."""

    def __init__(self, warm: Warm, perform: Perform, local: Path, env: Mapping[str, str]) -> None:
        self.warm, self.perform, self.log = warm, perform, Log(local)
        self._folder = address.made(env)
        self.path = f"{self._folder}/{address.name(str(warm.root))}"
        self.began, self._code = time.time(), Code()
        self.flushing = Flushing(warm.root, env, self.log.say)
        self.upkeep = Upkeep(
            warm, self.log.say, lambda: self.worker.nudge(), lambda: self.worker.wanted, self.flushing
        )
        self.watch = Watch(warm.root, local, self.upkeep.heard, self.log.say)
        warm.witness = Witness(self.watch.marks, self.watch.touched)
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
            signal.signal(number, lambda *_: self.leave("asked to by a signal"))
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
        address.introduce(self.path, os.getpid(), str(self.warm.root))
        listener.listen(CALLERS)
        return listener

    def _stop(self, listener: socket.socket) -> None:
        if self._in_place():
            for part in ("", address.BANK, address.SILENT):
                Path(self.path + part).unlink(missing_ok=True)
        listener.close()
        if self.worker.stop(LEAVING):
            self.warm.cool()
            # The answer of the last command may still be on its way.
            for _ in range(CALLERS):
                if not self._callers.acquire(timeout=0.5):
                    break
        self.flushing.stop()
        self.watch.stop()
        self.log.say(f"left: {self._why or 'failed'}")

    def _in_place(self) -> bool:
        return _inode(self.path) == self._inode

    def _reason(self) -> str:
        """Why to leave now, '' to stay."""
        if not is_bank(self.warm.root) or _inode(self._local / "daemon.lock") != self._lock:
            return "its bank is gone"
        if not self._in_place():
            return "its socket was taken away"
        if self.worker.resting > self.warm.config.daemon_idle_minutes * 60 and not self.upkeep.waits:
            return "idle"
        return "its code was replaced" if self._code.changed() else ""

    def _rest(self, seconds: float) -> float:
        if seconds > self.warm.config.daemon_warm_minutes * 60 and self.warm.cool():
            self.log.say("let go of the index and the model")
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
                caller.send(messages.refusal(None, messages.BUSY, "too many callers"))
            self.log.say(f"turned away: {CALLERS} callers are here")
            return
        threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller: socket.socket) -> None:
        try:
            with caller:
                caller.settimeout(SILENCE)
                if peer.uid(caller) != os.getuid():
                    self.log.say("turned away: another user")
                    return
                for line in _lines(caller):
                    caller.sendall(self._answered(line, caller))
        except OSError:  # they left, or were silent for too long: nobody to tell
            pass
        finally:
            self._callers.release()

    def _answered(self, line: bytes, caller: socket.socket) -> bytes:
        number: object = None
        try:
            number, method, params = messages.parsed(line)
            return messages.answer(number, self._do(method, params, caller))
        except Refused as refused:
            if refused.code == messages.INTERNAL:
                self.log.say(f"failed: {refused.message}")
            return messages.refusal(number, refused.code, refused.message)

    def _do(self, method: str, params: dict[str, Any], caller: socket.socket) -> object:
        if method == "run":
            return self._run(params, caller)
        if method == "status":
            return self.status()
        if method == "stop":
            self.leave("asked to")
            return {"pid": os.getpid()}
        raise Refused(messages.NO_METHOD, f"no method {method[:50]}")

    def _run(self, params: dict[str, Any], caller: socket.socket) -> object:
        if params.get("protocol") != address.PROTOCOL or params.get("code") != address.PACKAGE:
            self.leave("a caller of another installation")
        elif self._code.changed():
            self.leave("its code was replaced")
        if self._why:
            raise Refused(OTHER_CODE, f"the daemon leaves: {self._why}")
        request = messages.request(params)
        # Whoever has heard nothing, and cannot be told, does it themselves: then it must not be done here.
        caller.sendall(messages.notice("taken", []))

        def work(job: Job) -> object:
            output = Output(lambda chunks: job.tell(chunks))
            code = self.perform(request, output, self.warm)
            return {"code": code, "output": output.taken()}

        def tell(chunks: Any) -> None:
            caller.sendall(
                messages.notice("alive", []) if chunks is None else messages.notice("write", chunks)
            )

        return self.worker.ask(Job(work), tell)

    def status(self) -> dict[str, Any]:
        """How it stands, as `daemon status --json` has it."""
        return {
            "pid": os.getpid(), "bank": str(self.warm.root), "socket": self.path,
            "protocol": address.PROTOCOL, "code": address.PACKAGE,
            "since": time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(self.began)),
            "commands": self.worker.done, "busy": self.worker.busy, "warm": self.warm.warm,
            "idle_seconds": round(self.worker.resting, 1), "caught_up": self.upkeep.caught_up,
            "watch": self.watch.state(),
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
            if size > address.LARGEST or time.monotonic() > deadline:
                return
            got = caller.recv(1 << 16)
            if not got:
                return
            parts.append(got)
            size += len(got)
        line, _, rest = b"".join(parts).partition(b"\n")
        yield line
