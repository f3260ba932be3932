"""The process that commands of the tests are forked off: it has imported all that any of them needs.

It listens on the socket whose number is its argument, and is forked off for each worker of pytest that comes.
Then it takes four files at a time: the three streams of a process, and a socket on which it reads what to
run (a line of JSON: `argv`, `cwd`, `env`, `module` or `code`, `session`), and writes the process id and, once
that has ended, the exit code. It ends when the worker closes its socket or is killed, and whatever was forked
off it with it: a daemon that a test had stopped would stay for ever.

What a forked command starts in the background, a daemon or a flush, is forked off the same process.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import ua_memory
from ua_memory.cli import fast
from ua_memory.daemon import spawn, worker
from ua_memory.index import embedding
from ua_memory.mcp import relay
from ua_memory.text import tokens


def begin(asks: socket.socket, streams: Sequence[int], told: Mapping[str, object]) -> Begun:
    """Have a process forked off whose three streams are these files."""
    answers, theirs = socket.socketpair()
    with theirs:
        answers.sendall(json.dumps(told).encode() + b"\n")
        socket.send_fds(asks, [b"!"], [*streams, theirs.fileno()])
    return Begun(answers)


class Begun:
    """A process that was forked off, as `subprocess.Popen` has one."""

    def __init__(self, answers: socket.socket) -> None:
        self.answers, self.lines = answers, answers.makefile("rb")
        self.pid = int(self.lines.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self.returncode if self._ends(0) else None

    def wait(self, timeout: float = 60) -> int:
        """Its exit code; subprocess.TimeoutExpired."""
        if not self._ends(timeout):
            raise subprocess.TimeoutExpired("forked", timeout)
        assert self.returncode is not None
        return self.returncode

    def _ends(self, seconds: float) -> bool:
        if self.returncode is None and select.select([self.answers], [], [], seconds)[0]:
            with self.answers, self.lines:
                self.returncode = int(self.lines.readline() or -signal.SIGKILL)
        return self.returncode is not None

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.kill(signal.SIGTERM)


# -- the process ---------------------------------------------------------------------------------------


def imported() -> embedding.LoadedModel:
    """Import what commands import, as they do, and load the embedding model, which lasts as long as it is
    held."""
    os.environ.update(fast.LIBRARY_ENVIRONMENT)
    for part in pkgutil.walk_packages(ua_memory.__path__, "ua_memory."):
        if not part.name.endswith("__main__"):
            importlib.import_module(part.name)
    importlib.import_module("ua_memory.index.vectors").import_chromadb()
    for name in ("git", "tokenizers", "onnxruntime", "chromadb.api.rust"):
        importlib.import_module(name)
    tokens.count("a")  # a third of a second to read the table
    model = embedding.Embedder()._load()  # the same
    worker.release_memory()
    return model


def run(told: dict[str, Any], streams: list[int], asks: socket.socket) -> None:
    """Be the process: `python -m ua_memory` after its imports, or another module or code."""
    for number, file in enumerate(streams):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = open(0, errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = ["ua-memory", *told["argv"]]
    os.environ.clear()
    os.environ.update(told["env"])
    os.chdir(told["cwd"])
    time.tzset()
    if told.get("session"):
        os.setsid()
    spawn.start_process = worker.start_process = partial(background, asks)
    relay._ask_child = partial(ask_child, asks)
    if "code" in told:
        sys.path.insert(0, str(Path(__file__).parent))
        exec(compile(told["code"], "<code>", "exec"), {"__name__": "__main__"})
    elif told.get("module", "ua_memory") == "ua_memory":
        fast.main()
    else:
        runpy.run_module(told["module"], run_name="__main__")
    sys.exit()


def background(
    asks: socket.socket, words: Sequence[str], env: Mapping[str, str], *, log: str | Path = os.devnull,
    cwd: str | None = "/", module: str = "ua_memory",
) -> Begun:  # fmt: skip
    """As `spawn.start_process`, which starts an interpreter."""
    told = {
        "argv": [*words],
        "env": {**env},
        "cwd": cwd or str(Path.cwd()),
        "module": module,
        "session": True,
    }
    nothing, out = (
        os.open(os.devnull, os.O_RDONLY),
        os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
    )
    try:
        return begin(asks, [nothing, out, out], told)
    finally:
        os.close(nothing)
        os.close(out)


def ask_child(
    asks: socket.socket, words: list[str], data: bytes, mode: str, running: list[Any]
) -> dict[str, Any]:
    """As `relay._ask_child`, which starts an interpreter for each call."""
    told = {"argv": words, "env": {**os.environ, spawn.MODE_VARIABLE: mode}, "cwd": str(Path.cwd())}
    with contextlib.ExitStack() as opened:
        files = [opened.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
        files[0].write(data)
        files[0].seek(0)
        child = begin(asks, [file.fileno() for file in files], told)
        running.append(child.kill)
        code = child.wait()
        for file in files:
            file.seek(0)
        return relay._result(code, files[1].read().decode(), files[2].read().decode())


def serve(asks: socket.socket) -> None:
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    running: dict[int, socket.socket] = {}
    theirs, inner = socket.socketpair(type=socket.SOCK_DGRAM)  # what was forked off asks by `theirs`
    while True:
        ready = select.select([asks, inner, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 1 << 12)
            for child, asker in [*running.items()]:
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended:
                    with running.pop(child), contextlib.suppress(BrokenPipeError):  # who asked may be gone
                        asker.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
        for asked in {asks, inner}.intersection(ready):
            begun, files, *_ = socket.recv_fds(asked, 1, 4)
            if not begun:
                for child in running:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                return
            asker = socket.socket(fileno=files.pop())
            with asker.makefile("rb") as line:
                told = json.loads(line.readline())
            child = os.fork()
            if not child:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for each in (asks, inner, asker, *running.values()):
                    each.close()
                os.close(woken)
                os.close(wake)
                run(told, files, theirs)
            for file in files:
                os.close(file)
            running[child] = asker
            asker.sendall(b"%d\n" % child)


def serve_all(listens: socket.socket) -> None:
    """A server forked off for each worker of the run, until the one that began this process has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # none of them is waited for
    listens.setblocking(False)
    ended = False
    while not ended:
        ended = sys.stdin in select.select([listens, sys.stdin], [], [])[0]
        with contextlib.suppress(BlockingIOError):
            while True:
                asks, _ = listens.accept()
                asks.setblocking(True)
                if not os.fork():
                    listens.close()
                    return serve(asks)
                asks.close()


if __name__ == "__main__":
    model = imported()
    serve_all(socket.socket(fileno=int(sys.argv[1])))
