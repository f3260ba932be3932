"""Work that goes on when the shell, hook or cron job that asked for it is gone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from ua_memory.paths import make_private

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Memory

LOG = "flush.log"
LARGEST = 1 << 20
"""Bytes of log after which it begins anew; the one before is kept."""


def survive() -> None:
    """A terminal that closes sends SIGHUP to those it started; what is handed over must be on the disk first.

    The process that is started inherits this.
    """
    with contextlib.suppress(ValueError, AttributeError):  # not the main thread; no such signal
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def start(call: Call, memory: Memory, *words: str) -> str:
    """Start a process of its own session that runs a command, else flushes what waits, and return its log's
    path."""
    folder = memory.store.bank.local
    make_private(folder)
    log = folder / LOG
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size > LARGEST:
            log.replace(log.with_suffix(".log.1"))
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        what = " ".join(words) or "flush of what waits"
        os.write(out, f"{memory.store.now():%Y-%m-%d %H:%M:%S} {what}\n".encode())
        subprocess.Popen(
            # -P: no module of the folder it runs in may take the place of one of ours.
            [
                *(sys.executable, "-P", "-m", "ua_memory", "--bank", str(memory.store.bank.root)),
                *(words or ("flush",)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            cwd="/",
            env=dict(call.env),
            start_new_session=True,
        )
    finally:
        os.close(out)
    return str(log)
