"""The process that commands of the tests are forked off: it has imported all that any of them needs.

It takes four files at a time on the socket whose number is its argument: the three streams of a command, and
a socket on which it reads what to run (a line of JSON: `argv`, `cwd`, `env`), and writes the process id and,
once that has ended, the exit code. It ends when the other side closes the first socket.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import time
from typing import Any

import ua_memory
from ua_memory.cli import fast
from ua_memory.text import tokens


def imported() -> None:
    """Import what commands import, as they do."""
    os.environ.update(fast.QUIET)
    for part in pkgutil.walk_packages(ua_memory.__path__, "ua_memory."):
        if not part.name.endswith("__main__"):
            importlib.import_module(part.name)
    importlib.import_module("ua_memory.index.vectors").imported()
    for name in ("git", "tokenizers", "onnxruntime", "chromadb.api.rust"):
        importlib.import_module(name)
    tokens.count("")  # a third of a second to read the table
    gc.collect()
    gc.freeze()


def run(told: dict[str, Any], streams: list[int]) -> None:
    """Be the command: `python -m ua_memory` after its imports."""
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
    fast.main()


def serve(asks: socket.socket) -> None:
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    running: dict[int, socket.socket] = {}
    while True:
        ready = select.select([asks, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 1 << 12)
            for child, asker in [*running.items()]:
                ended, status = os.waitpid(child, os.WNOHANG)
                if ended:
                    asker.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
                    running.pop(child).close()
        if asks in ready:
            begun, files, *_ = socket.recv_fds(asks, 1, 4)
            if not begun:
                return
            asker = socket.socket(fileno=files.pop())
            with asker.makefile("rb") as line:
                told = json.loads(line.readline())
            child = os.fork()
            if not child:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for each in (asks, asker, *running.values()):
                    each.close()
                os.close(woken)
                os.close(wake)
                run(told, files)
            for file in files:
                os.close(file)
            running[child] = asker
            asker.sendall(b"%d\n" % child)


if __name__ == "__main__":
    imported()
    with socket.socket(fileno=int(sys.argv[1])) as asks:
        serve(asks)
