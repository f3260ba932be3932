"""One answer to one event of a client whose hooks were set up twice: in its settings and by a plugin, say.

The client starts them side by side. Each writes down what it was told, in the folder that daemons listen in.
Who finds there that another was told the same by the same client, and only after it was itself started, is
the second hook of one event, and stays silent. A hook that is called again later is nobody's second.
"""

from __future__ import annotations

import os
import time
from _blake2 import blake2b

from ua_memory.cli.asking import banks
from ua_memory.daemon import address

MOST = 1 << 16
"""Bytes after which the file is begun anew."""
ANSWERED = (b'"UserPromptSubmit"', b'"SessionStart"')
"""The events that something is printed at. What the others keep they keep once, told twice or not."""


def first(words: list[str], data: bytes) -> bool:
    """Whether no other hook answers this event. True also where that cannot be known: without /proc."""
    if not any(name in data for name in ANSWERED):
        return True
    try:
        born = _born()
        bank = next(banks(words, os.getcwd(), os.path.realpath(os.path.expanduser("~"))), "")  # noqa: PTH109, PTH111
        caller = os.environ.get("CLAUDE_PID") or str(os.getppid())
        event = blake2b(b"\0".join((data, os.fsencode(bank), caller.encode())), digest_size=8).hexdigest()
        return not _told(f"{address.made(os.environ)}/heard", event, born)
    except (OSError, ValueError, IndexError, AttributeError):
        return True


def _told(path: str, event: str, since: float) -> bool:
    """Whether another process has written the event into the file since; it is written there in any case."""
    mine = str(os.getpid())
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(fd).st_size > MOST:
            os.ftruncate(fd, 0)
        os.write(fd, f"{event} {_now():.2f} {mine}\n".encode())
        rows = os.pread(fd, 2 * MOST, 0).decode("ascii", "replace").split("\n")
    finally:
        os.close(fd)
    for row in rows:  # in the order in which they were told
        what, _, rest = row.partition(" ")
        when, _, who = rest.partition(" ")
        if what == event and float(when) >= since:
            return who != mine
    return False


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _born() -> float:
    """When this process was started, a wrapper that has become it too, in seconds of `_now`."""
    with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
        fields = file.read().rpartition(b")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")
