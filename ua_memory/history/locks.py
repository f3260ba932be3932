"""Locks that a killed git has left in a git directory: found, and removed where nobody holds them.

git locks by making a file and unlocks by taking it away; who is killed in between leaves it there, and every
later git gives up before it. Nothing in such a file says whose it is, so git's processes are looked at: one
that works there holds it. Where they cannot be seen (another machine, another system), age alone tells.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ua_memory.paths import foreign

PROCESSES = Path("/proc")
SECONDS, UNSEEN_SECONDS = 10, 3600
"""How old a lock must be: where git's processes can be seen, and where they cannot."""
APART = "ua-memory-remote-"
"""How the folders are called from which remotes are reached."""
_WHERE = (
    "HEAD.lock", "*_HEAD.lock", "index.lock", "config.lock", "config.worktree.lock", "packed-refs.lock",
    "shallow.lock", "gc.pid", "gc.pid.lock", "refs/**/*.lock", "reftable/*.lock", "objects/*.lock",
    "objects/pack/*.lock", "objects/info/**/*.lock", "objects/pack/*.keep", f"{APART}*",
)  # fmt: skip
TAKES_IN = re.compile(r"(?:fetch|receive)-pack (\d+) on (\S+)")
"""What git writes into the mark of a pack that it fetches: who does it."""
IMPORTS = "fast-import"
"""The same of a pack that it imports; it does not say who."""


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock. `held` says who may hold it, and is empty where nobody does."""

    file: Path
    held: str


def found(git_dir: Path, shared: Path, root: Path) -> list[Lock]:
    """The locks in a git directory and the one it shares with other work trees. `root` is its work tree."""
    there = {file for folder in {git_dir, shared} for name in _WHERE for file in folder.glob(name)}
    files = [file for file in sorted(there) if file.suffix != ".keep" or _says(file)]
    if not files:
        return []
    at_work, now = who(git_dir, shared, root), filesystem_now(git_dir)
    return [Lock(file, _held(file, at_work, now)) for file in files]


def remove(locks: list[Lock]) -> list[Path]:
    """Remove those that nobody holds; what was removed. Another may have been quicker."""
    gone = []
    for lock in locks:
        if not lock.held:
            with suppress(OSError):
                _remove(lock.file)
                gone.append(lock.file)
    return gone


def _remove(file: Path) -> None:
    if file.is_dir():
        for inner in sorted(file.rglob("*"), reverse=True):
            inner.rmdir() if inner.is_dir() else inner.unlink()
        file.rmdir()
    else:
        file.unlink()


def _says(mark: Path) -> bool:
    """Whether the mark of a pack that is kept is git's own; else it is somebody's wish."""
    return text(mark).strip() == IMPORTS or bool(TAKES_IN.fullmatch(text(mark).strip()))


def _held(file: Path, at_work: list[str] | None, now: int) -> str:
    if at_work:
        return f"{at_work[0]} is at work there"
    by = TAKES_IN.fullmatch(text(file).strip()) if file.suffix == ".keep" else None
    if by and (by[2] != socket.gethostname() or lives(int(by[1]))):
        return f"process {by[1]} on {by[2]} may be at work there"
    with suppress(OSError):
        age = (now - file.stat().st_mtime_ns) // 10**9
        needed = UNSEEN_SECONDS if at_work is None else SECONDS
        return "" if age >= needed else f"made {age} s ago, and taken to be in use for {needed} s"
    return "gone meanwhile"


def text(file: Path) -> str:
    """What a small file says; nothing where there is none."""
    try:
        return file.read_text("utf-8", "replace")
    except (FileNotFoundError, IsADirectoryError):
        return ""


def lives(process: int) -> bool:
    """Whether there is a process of this number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # somebody else's
        return True
    return True


def who(*places: Path) -> list[str] | None:
    """The gits that work in these folders; None where that cannot be seen."""
    there = [place.resolve() for place in places]
    if not (PROCESSES / "self" / "cmdline").exists() or any(foreign(str(place)) for place in there):
        return None
    gits = ((folder, words) for folder, words in processes() if Path(words[0]).name.startswith("git"))
    seen = [(folder, words, is_there(folder, words, there)) for folder, words in gits]
    if any(here is None for _, _, here in seen):
        return None
    return [
        f"process {folder.name if folder else ''} ({' '.join(words[:2])})"
        for folder, words, here in seen
        if here
    ]


def processes() -> Iterator[tuple[Path | None, list[str]]]:
    """(its folder in /proc, its words) of each process there is."""
    if (PROCESSES / "self" / "cmdline").exists():
        for folder in PROCESSES.glob("[0-9]*"):
            with suppress(OSError):  # it has ended meanwhile
                yield folder, (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        return
    try:
        out = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        out = IMPORTS.encode()  # nobody knows
    yield from ((None, row.split()) for row in out.decode("utf-8", "replace").splitlines())


def is_there(process: Path | None, words: list[str], places: list[Path]) -> bool | None:
    """Whether a git works in one of these folders, by its own folder, its environment and what it was told;
    None where nobody can see that."""
    try:
        if process is None:
            return None
        folder = (process / "cwd").readlink()
        rows = (process / "environ").read_bytes().decode("utf-8", "replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return False
    except OSError:
        return None
    named = [row.partition("=")[2] for row in (*rows, *words) if row.startswith(("GIT_DIR=", "--git-dir="))]
    met = [Path(os.path.normpath(folder / name)) for name in ("", *named)]
    return any(path.is_relative_to(place) for path in met for place in places)


def filesystem_now(folder: Path) -> int:
    """The file system's own clock in ns, which stamps the files that are compared; a file is made to ask."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".clock-") as file:
        return os.fstat(file.fileno()).st_mtime_ns
