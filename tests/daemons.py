"""Daemons for tests: whole processes of the command line on real sockets, all gone at the end."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fork_server import Begun, begin
from guards import FOLDERS, isolated, isolated_environment
from terminal import Done

from ua_memory import config
from ua_memory.daemon import connect as address
from ua_memory.daemon import spawn as client
from ua_memory.daemon.spawn import Log, is_running
from ua_memory.upkeep import init as bank


def on_terminal(begin: Callable[[int], object], width: int = 70) -> str:
    """What a terminal shows of the process that `begin` starts on it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    begin(theirs)
    os.close(theirs)
    shown = b""
    try:
        while select.select([ours], [], [], 60)[0]:
            try:
                got = os.read(ours, 1 << 16)
            except OSError:  # Linux: the other end is closed
                break
            if not got:
                break
            shown += got
    finally:
        os.close(ours)
    return shown.decode()


@dataclass
class Place:
    """A bank, and processes of the command line in it. `env` goes on top of the test's environment."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def local(self) -> Path:
        settings = config.load(self.root, {})
        return bank.open_store(self.root, settings, settings.clock()).bank.local

    def environment(self, daemon: str, **more: str) -> dict[str, str]:
        return {**os.environ, "UA_MEMORY_DAEMON": daemon, "TERM": "xterm-256color", **self.env, **more}

    def run(
        self, *argv: str, daemon: str = "auto", stdin: str = "", cwd: Path | None = None, **env: str
    ) -> Done:
        """A process that has its imports from the one it was forked off."""
        return forking().run(argv, cwd or self.root, self.environment(daemon, **env), stdin)

    def begun(self, code: str, *argv: str, **env: str) -> Begun:
        """A process that runs `code` as a command, without a daemon; it writes to what the tests write to."""
        place = self.root if self.root.is_dir() else self.root.parent
        return forking().begun(argv, place, self.environment("off", **env), [0, 1, 2], code=code)

    def whole(
        self, *argv: str, daemon: str = "auto", stdin: str = "", cwd: Path | None = None, **env: str
    ) -> Done:
        """A process that starts from nothing; its output in pipes."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "ua_memory", *argv],
            cwd=cwd or self.root,
            env=self.environment(daemon, **env),
            input=stdin.encode(),
            capture_output=True,
            timeout=60,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def terminal(self, *argv: str, daemon: str = "auto", width: int = 70) -> Done:
        """The same on a terminal of its own; what it shows is in `out`."""
        begun: list[Begun] = []

        def begin(theirs: int) -> None:
            begun.append(forking().begun(argv, self.root, self.environment(daemon), [theirs] * 3))

        shown = on_terminal(begin, width)
        return Done(begun[0].wait(), shown, "")

    # -- its daemon --------------------------------------------------------------------------------

    def status(self) -> dict[str, Any] | None:
        return client.status(self.root, os.environ)

    def up(self, seconds: float = 30) -> dict[str, Any]:
        """Wait for a daemon that answers."""
        return until(self.status, seconds)

    def gone(self, seconds: float = 30) -> None:
        until(lambda: not is_running(self.local), seconds)

    def logged(self) -> str:
        """What the daemon has said, without a process to read it."""
        return "\n".join(Log(self.local).tail(1000))

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Kill the daemon, whose process id is in its lock."""
        with contextlib.suppress(OSError, ValueError):
            if is_running(self.local):
                os.kill(int((self.local / "daemon.lock").read_text()), number)
                self.gone()

    def socket(self) -> Path:
        return Path(next(address.socket_folders(os.environ)), address.socket_name(str(self.root)))

    def connected(self) -> socket.socket:
        caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        caller.settimeout(30)
        caller.connect(str(self.socket()))
        return caller

    def ask(self, method: str, **params: Any) -> Any:
        """One request of the protocol and its answer, without the client."""
        with self.connected() as caller:
            message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
            caller.sendall(json.dumps(message).encode() + b"\n")
            return answer(caller)

    def command(self, *argv: str, **more: Any) -> Any:
        """`run` of the protocol."""
        told: dict[str, Any] = {
            "protocol": address.PROTOCOL, "code": address.PACKAGE, "argv": list(argv), "cwd": str(self.root),
            "home": os.environ["HOME"], "env": {"HOME": os.environ["HOME"]}, "encodings": ["utf-8", "utf-8"],
            "terminals": [], "width": 80, "stdin": None,
        }  # fmt: skip
        return self.ask("run", **{**told, **more})


class Lasting:
    """A place whose daemon several tests may ask, and that none of them ends: to start one takes a second."""

    def __init__(self, home: Path, make: Callable[[Path], Place]) -> None:
        with isolated(home):
            self.place = make(home / "bank")
            assert self.place.run("daemon", "start").code == 0
            self.pid = self.place.up()["pid"]
            self.env = {name: os.environ[name] for name in isolated_environment(home)}

    @contextlib.contextmanager
    def asked(self) -> Iterator[Place]:
        """For one test: in the environment of the daemon, which is the same one afterwards."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.env.items():
                patch.setenv(name, value)
            yield self.place
            assert self.place.up()["pid"] == self.pid


class Forking:
    """Processes of the command line, forked off one that has imported all they need (`fork_server.py`): a
    search that starts from nothing takes a second of processor time, most of it to import Chroma."""

    def __init__(self) -> None:
        place = _shared_socket()
        self.asks, self.process = socket.socket(socket.AF_UNIX), None
        try:
            self.asks.connect(str(place))
        except OSError:  # nobody was here, or has gone
            self.process = _begun_at(place)
            self.asks.connect(str(place))

    process: subprocess.Popen[bytes] | None
    """What all are forked off, where it was begun here. It ends with its standard input."""

    def close(self) -> None:
        self.asks.close()
        if self.process and self.process.stdin:
            self.process.stdin.close()
            self.process.wait(60)

    def begun(
        self, argv: Sequence[str], cwd: Path, env: dict[str, str], streams: Sequence[int], **more: str
    ) -> Begun:
        """Start a command whose three streams are these files; instead of it a `module` or some `code`."""
        return begin(self.asks, streams, {"argv": [*map(str, argv)], "cwd": str(cwd), "env": env, **more})

    def run(self, argv: Sequence[str], cwd: Path, env: dict[str, str], stdin: str = "", **more: str) -> Done:
        with contextlib.ExitStack() as opened:
            files = [opened.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
            files[0].write(stdin.encode())
            files[0].seek(0)
            begun = self.begun(argv, cwd, env, [file.fileno() for file in files], **more)
            opened.callback(begun.kill)  # where it does not end within a minute
            code = begun.wait()
            for file in files[1:]:
                file.seek(0)
            return Done(code, *(file.read().decode() for file in files[1:]))


def _shared_socket() -> Path:
    """Where the workers of this run reach the one process: to import all takes it four seconds."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    place = FOLDERS[0].parent.parent / f"forked-{run[:8]}" if run else FOLDERS[0] / "forked"
    return place if len(str(place)) < LONGEST_ADDRESS else Path(tempfile.mkdtemp()) / "forked"


LONGEST_ADDRESS = 90
"""Characters; an address of 104 is too long on macOS."""


def _begun_at(place: Path) -> subprocess.Popen[bytes] | None:
    """Begin the process at this socket; None where another worker was faster."""
    own = place.with_name(f"{place.name}-{os.getpid()}")
    with socket.socket(socket.AF_UNIX) as listens:
        listens.bind(str(own))
        listens.listen(64)
        # Only one that listens has the name, so that who finds it need not wait.
        with socket.socket(socket.AF_UNIX) as there:
            if there.connect_ex(str(place)):
                place.unlink(missing_ok=True)  # of a worker that has ended
        try:
            place.hardlink_to(own)
        except FileExistsError:
            return None
        finally:
            own.unlink()
        argv = [sys.executable, "-P", str(Path(__file__).with_name("fork_server.py")), str(listens.fileno())]
        return subprocess.Popen(argv, pass_fds=[listens.fileno()], stdin=subprocess.PIPE)


@functools.cache
def forking() -> Forking:
    """One for all tests of this process."""
    found = Forking()
    atexit.register(found.close)
    return found


def answer(caller: socket.socket) -> Any:
    """The next answer on a connection, notifications left out."""
    with caller.makefile("rb") as lines:
        for line in lines:
            message = json.loads(line)
            if "id" in message:
                return message
    return None


def until(found: Any, seconds: float) -> Any:
    """What `found()` returns once it is true; it must be so within these seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if result := found():
            return result
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s")
