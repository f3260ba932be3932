"""What the tests are kept from: the guards that `conftest` puts around every one of them."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDERS: list[Path] = []
"""Where the homes of this run's tests lie, and what they share, once there is one."""

NAMELESS = Path(__file__).with_name("gitconfig")
"""By it git guesses no name: with a mail transport's /etc/mailname, or a host name with dots, it would take
the account's, and hand edits would be `root`'s instead of `person`'s."""

REMOVED = (
    "UA_",
    "ANTHROPIC_",
    "OPENAI_",
    "CLAUDE",
    "CHROMA_",
    "GIT_",
    "XDG_",
    "EDITOR",
    "EMAIL",
    "VISUAL",
    "NO_COLOR",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
)
"""Variables that begin so are taken out; GIT_ includes those that a git hook leaves behind. Users' streams
are buffered: where those of the tests were not, nobody saw how a full disk behind one of them was told. And
their Python keeps what it compiled: each process took twice as long where it had to read all sources anew."""


def isolated_environment(home: Path) -> dict[str, str]:
    """The variables that replace what was removed. `home` is an empty folder."""
    config = home / "gitconfig"
    config.touch()
    return {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_STATE_HOME": str(home / ".local/state"),
        "XDG_RUNTIME_DIR": str(home / "run"),
        "GIT_CONFIG_GLOBAL": str(config),
        "GIT_CONFIG_SYSTEM": str(NAMELESS),
        "GIT_CONFIG_NOSYSTEM": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "TZ": "UTC",
        "ANONYMIZED_TELEMETRY": "False",
        "HF_HUB_OFFLINE": "1",
        "PYTHONUTF8": "1",
        "UA_MEMORY_DAEMON": "off",
    }


@contextlib.contextmanager
def isolated(home: Path) -> Iterator[None]:
    """The environment of a test whose home folder this is; it is made."""
    home.mkdir()
    (home / "run").mkdir(mode=0o700)
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(REMOVED):
                patch.delenv(name)
        for name, value in isolated_environment(home).items():
            patch.setenv(name, value)
        time.tzset()
        yield
    time.tzset()


REACHED: list[str] = []
"""What tried to leave the machine in the running test: a library may swallow the exception, not this."""


class NetworkReached(RuntimeError):
    """A test tried to leave the machine."""


def is_local(host: object) -> bool:
    """Whether an address of a socket call stays on this machine. Names other than localhost do not."""
    if host is None or host in ("", b"", "localhost", b"localhost"):
        return True
    try:
        return ipaddress.ip_address(host.decode() if isinstance(host, bytes) else str(host)).is_loopback
    except ValueError:
        return False


OUTWARD = frozenset(("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo"))


def refuse_network(event: str, args: tuple[object, ...]) -> None:
    """An audit hook that lets no socket leave the machine. It is called for each file that is opened, too."""
    if event in OUTWARD:
        _refuse_outside(event, args)


def _refuse_outside(event: str, args: tuple[object, ...]) -> None:
    # An audit hook instead of a patched socket class: it also sees connections made by C code that
    # calls through Python, by asyncio, and by whoever imported socket before us. It cannot be removed.
    if event == "socket.getaddrinfo":
        if not is_local(args[0]):
            REACHED.append(f"looking up {args[0]!r}")
            raise NetworkReached(f"looking up {args[0]!r}: tests stay on loopback and unix sockets")
    elif isinstance(address := args[1], tuple) and not is_local(address[0]):
        REACHED.append(f"{event} to {address}")
        raise NetworkReached(f"{event} to {address}: tests stay on loopback and unix sockets")


ROOM = 2 << 30
"""Bytes that must be free for tests in memory: the folders of three runs, which pytest keeps."""


def memory_folder(folder: str = "/dev/shm", room: int = ROOM) -> str | None:
    """A folder of the machine's memory that holds the tests' banks, or None where it has no such room.

    A git commit of ours flushes some ten files, and half of a test was waiting for the disk to say so. That
    each flush is called for, and in which order, the tests hold by what is called: no test can see whether a
    disk obeys. All of them on a disk: `make test-all`.
    """
    try:
        there = os.statvfs(folder)
    except (OSError, AttributeError):  # macOS has none
        return None
    unusable = there.f_flag & (os.ST_RDONLY | os.ST_NOEXEC)  # a container's may run no program
    return None if unusable or there.f_bavail * there.f_frsize < room else folder
