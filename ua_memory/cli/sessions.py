"""Sessions that clients have begun and not ended: one small file each in `pending/`, which says whose it is,
where its transcript stands, how far that was heard, and which process would have to tell of its end.

It holds no words. A session that was killed is found by it at the next start. Read and written by every
hook: nothing is imported that costs.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from _blake2 import blake2b

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from ua_memory.clients import Event

PREFIX, SUFFIX = "session-", ".json"
SILENT = 6 * 3600.0
"""Seconds without an event after which a session whose process is not known counts as ended."""
END, COMPACT = "end", "compact"
SHELLS = ("sh", "bash", "dash", "zsh", "fish", "env", "timeout")
"""What stands between a client and its hooks, and is gone before the client is."""


def begun(pending: Path | str, event: Event, pid: int, *, want: str = "") -> dict[str, Any]:
    """Note that a session goes on or, with `want`, that what was said in it is to be handed over. What was
    known of it stays known; it is returned. `pid` is the process that called the hook, 0 if not known."""
    path = path_of(pending, event)
    found = _read(path) or {"client": event.client, "session": event.session, "started": time.time()}
    told = ("transcript", "cwd", "parent", "group")
    found |= {key: value for key in told if (value := getattr(event, key))}
    pid = _client(pid)
    found |= {"pid": pid, "born": _process(pid)[2]} if pid else {}
    # A daemon may come to an answer only when its session has ended: that stays so until it is resumed. What
    # was to be handed over then still is: the flush may not have come to it yet.
    before = found.get("want") or ""
    found["want"] = want or (COMPACT if before == END and event.kind == "start" else before)
    with contextlib.suppress(OSError):  # a bank that nobody has opened yet, or that we may only read
        write(path, found, lasting=bool(want))
    return found


def noted(path: str, **changes: Any) -> None:
    """Change what a session's file says, as it is now; where it has gone meanwhile it stays away."""
    if (found := _read(path)) is not None:
        write(path, found | changes)


def write(path: str, found: dict[str, Any], *, lasting: bool = False) -> None:
    """Put a file in place, whole; what is `lasting` outlives a failing machine, too. OSError, also where the
    bank has no state folder yet."""
    made(path.rpartition("/")[0])
    beside = f"{path}.{os.getpid()}"
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, json.dumps(found).encode())
        if lasting:
            os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(beside, path)  # noqa: PTH105


def made(folder: str) -> str:
    """A folder of the bank's state, which there is. OSError where there is none."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)  # noqa: PTH102 (pathlib takes 4 ms)
    return folder


def listed(pending: Path | str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Path and content of the file of each session."""
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(pending)):  # noqa: PTH208
            path = f"{pending}/{name}"
            if name.startswith(PREFIX) and name.endswith(SUFFIX) and (found := _read(path)) is not None:
                yield path, found


def over(path: str, found: dict[str, Any]) -> bool:
    """Whether a session has ended, be it without a word: its client's process is gone."""
    pid = found.get("pid")
    if found.get("want") == END:
        return True
    if isinstance(pid, int) and pid and os.path.exists("/proc/self"):  # noqa: PTH110
        born = _process(pid)[2]
        return not born or born != found.get("born")
    try:
        return time.time() - os.stat(path).st_mtime > SILENT  # noqa: PTH116
    except OSError:
        return False


def left_over(pending: Path | str, but: str) -> bool:
    """Whether another session than this one waits to be handed over, or was killed."""
    others = ((path, found) for path, found in listed(pending) if found.get("session") != but)
    return any(found.get("want") or over(path, found) for path, found in others)


def path_of(pending: Path | str, event: Event) -> str:
    """The file of an event's session."""
    return f"{pending}/{PREFIX}{name_of(event)}{SUFFIX}"


def name_of(event: Event) -> str:
    """What a session's files are called."""
    name = blake2b(f"{event.client}\0{event.session}".encode("utf-8", "replace"), digest_size=8)
    return name.hexdigest()


def _read(path: str) -> dict[str, Any] | None:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            found = json.loads(file.read())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _client(pid: int) -> int:
    """The process that a hook was called by, or that the shell in between was."""
    for _ in range(3):
        name, parent, _ = _process(pid)
        if name not in SHELLS or parent < 2:
            break
        pid = parent
    return pid


def _process(pid: int) -> tuple[str, int, str]:
    """Name, parent and time of birth of a process, by /proc; ('', 0, '') where it is gone, or none tells."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            stat = file.read().decode("utf-8", "replace")
    except OSError:
        return "", 0, ""
    name = stat[stat.find("(") + 1 : stat.rfind(")")]
    fields = stat[stat.rfind(")") + 2 :].split()
    gone = fields[0] in ("Z", "X")
    return name, int(fields[1]), "" if gone else fields[19]
