"""Where a bank's daemon listens. Read by every call of the command line: nothing is imported that costs.

The socket's name is a hash of the bank's folder, so that no path grows too long for a socket (108 bytes
on Linux, 104 on macOS), and its folder is the user's alone.
"""

from __future__ import annotations

import os
from _blake2 import blake2b

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROTOCOL = 1
"""The version of the protocol; both sides must speak the same."""
LONGEST = 100
"""Bytes of a socket's path."""
LARGEST = 16 << 20
"""Bytes of one message."""
PROBE = 0.5
"""Seconds that a daemon is waited for which did not answer the last time."""
SILENT, BANK = ".silent", ".bank"
"""Beside a socket: a mark that its daemon does not answer; its daemon's process id and its bank's folder."""
PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120 (pathlib takes 4 ms)
"""The folder of the code that runs here, which both sides must share."""


def name(root: str) -> str:
    """The file name of the socket of the bank at `root`, a path without symbolic links."""
    return blake2b(os.fsencode(root), digest_size=8).hexdigest() + ".sock"


def folders(env: Mapping[str, str]) -> Iterator[str]:
    """The folders that sockets may lie in, the best first. Which of them exist is not asked here.

    The second is what systemd makes: cron has no XDG_RUNTIME_DIR and must meet the daemon of a login.
    """
    uid = os.getuid()
    runtime = (env.get("XDG_RUNTIME_DIR") or "", f"/run/user/{uid}")
    places = [f"{top}/ua-memory" for top in runtime if top.startswith("/")]
    temporary = (env.get("TMPDIR") or "/tmp").rstrip("/")
    places += [f"{top}/ua-memory-{uid}" for top in (temporary, "/tmp") if top.startswith("/")]
    for place in dict.fromkeys(places):
        if len(os.fsencode(place)) + 1 + len(name("")) < LONGEST:
            yield place


def private(folder: str) -> bool:
    """Whether a folder is this user's alone, and no link: another could put a socket of theirs there."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return found.st_mode & 0o170077 == 0o040000 and found.st_uid == os.getuid()


def silent(socket: str) -> bool:
    """Whether the daemon that listens at a socket did not answer whoever asked it last."""
    try:
        return os.stat(socket + SILENT).st_mtime_ns >= os.lstat(socket).st_mtime_ns  # noqa: PTH116
    except OSError:
        return False


def note_answer(socket: str, answered: bool) -> None:
    """Note whether the daemon that listens at a socket has answered. Where that cannot be noted, the next
    who asks finds it out."""
    try:
        if answered:
            os.unlink(socket + SILENT)  # noqa: PTH108
        else:
            os.close(os.open(socket + SILENT, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
            os.utime(socket + SILENT)
    except OSError:
        pass


def introduce(socket: str, pid: int, bank: str) -> None:
    """Say who listens at a socket, before anybody is let in."""
    note_answer(socket, True)
    with open(f"{socket}{BANK}.new", "w", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
        file.write(f"{pid}\n{bank}")
    os.replace(f"{socket}{BANK}.new", socket + BANK)  # noqa: PTH105


def about(socket: str) -> tuple[int, str]:
    """The process id and the bank's folder of the daemon that listens at a socket; (0, "") where unknown."""
    try:
        with open(socket + BANK, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
            pid, _, bank = file.read().partition("\n")
            return int(pid), bank
    except (OSError, ValueError):
        return 0, ""


def made(env: Mapping[str, str]) -> str:
    """The folder to listen in, made if need be. OSError if there is none to be had."""
    for folder in folders(env):
        if os.path.isdir(os.path.dirname(folder)):  # noqa: PTH112, PTH120
            try:
                os.mkdir(folder, 0o700)  # noqa: PTH102
            except FileExistsError:
                pass
            except OSError:
                continue
            if private(folder):
                return folder
    raise OSError("no private folder for a socket: set XDG_RUNTIME_DIR to one with mode 700")
