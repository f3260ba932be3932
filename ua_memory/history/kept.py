"""What a rewriting would not get rid of: packs that are marked to be kept, objects that are borrowed.

git marks a pack (`.keep`) while it takes it in, so that nobody repacks it before a ref leads there, and takes
the mark off again. Who is killed in between leaves it there, and every later repack leaves the pack. A mark
of a git that lives, of another machine, or of a person's is none of ours to take off.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ua_memory.errors import Conflict
from ua_memory.history.trail import History

_TAKES_IN = re.compile(r"(?:fetch|receive)-pack (\d+) on (\S+)")
"""What git writes into the mark of a pack that it fetches: who does it."""
_IMPORTS = "fast-import"
"""The same of a pack that it imports; it does not say who."""
_PROCESSES = Path("/proc")
WAITS, PAUSE = 20, 0.1
"""So often, and so many seconds each, an import that is at work is waited for."""


def unmarked(history: History) -> None:
    """Take the marks off that a killed git has left. Conflict names one that is somebody's, and where
    objects are borrowed from; call it with the bank's lock, so that no git of ours is at work."""
    objects = history.shared / "objects"
    if lent := [row for row in _text(objects / "info" / "alternates").splitlines() if row.strip()]:
        raise Conflict(
            "this history borrows objects, and where they come from keeps them", where=lent[0],
            mend=f"ua-memory git repack -a -d, then rm {shlex.quote(str(objects / 'info' / 'alternates'))}",
        )  # fmt: skip
    for mark in sorted((objects / "pack").glob("*.keep")):
        if not _is_left(_text(mark).strip(), history):
            raise Conflict(
                "a pack is marked to be kept, which would keep it", where=str(mark),
                mend=f"if no git is at work there, and you do not need it: rm {shlex.quote(str(mark))}",
            )  # fmt: skip
        mark.unlink(missing_ok=True)


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")
    except FileNotFoundError:
        return ""


def _is_left(said: str, history: History) -> bool:
    """Whether a mark was left by a git that is no more."""
    if said == _IMPORTS:
        return not _import_at_work(history)
    if found := _TAKES_IN.fullmatch(said):
        return found[2] == socket.gethostname() and not _lives(int(found[1]))
    return False


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # somebody else's
        return True
    return True


def _import_at_work(history: History) -> bool:
    """Whether an import into this history goes on. It is waited for: none takes long."""
    places = [place.resolve() for place in (history.git_dir, history.shared, history.root)]
    for _ in range(WAITS):
        if not any(
            _IMPORTS in words and _is_there(process, words, places) for process, words in _processes()
        ):
            return False
        time.sleep(PAUSE)
    return True


def _processes() -> Iterator[tuple[Path | None, list[str]]]:
    """(its folder in /proc, its words) of each process there is."""
    if (_PROCESSES / "self" / "cmdline").exists():
        for folder in _PROCESSES.glob("[0-9]*"):
            with suppress(OSError):  # it has ended meanwhile
                yield folder, (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        return
    try:
        out = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        out = _IMPORTS.encode()  # nobody knows
    yield from ((None, row.split()) for row in out.decode("utf-8", "replace").splitlines())


def _is_there(process: Path | None, words: list[str], places: list[Path]) -> bool:
    """Whether a git works on a history, by its folder, its environment and what it was told; also where
    nobody can see that."""
    try:
        if process is None:
            return True
        folder = (process / "cwd").readlink()
        rows = (process / "environ").read_bytes().decode("utf-8", "replace").split("\0")
    except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return False
    except OSError:
        return True
    named = [row.partition("=")[2] for row in (*rows, *words) if row.startswith(("GIT_DIR=", "--git-dir="))]
    met = [Path(os.path.normpath(folder / name)) for name in ("", *named)]
    return any(path.is_relative_to(place) for path in met for place in places)
