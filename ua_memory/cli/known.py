"""What a hook must know of a bank, as it was when its settings were read last: where its state lies, and what
they say. Reading them anew takes a hook longer than all else together (TOML, dataclasses, `pathlib`).

It stands in the bank's `cache/`, and counts only while all that it follows from is as it was: the settings of
bank and user, what the user trusts, the repository around the bank, the variables that settings heed, and our
own code. Else, and where anything is odd, nothing is known, and the settings are read.
"""

from __future__ import annotations

import json
import os
import time

from ua_memory import finding, stamps
from ua_memory.cli import sessions
from ua_memory.daemon.address import PACKAGE
from ua_memory.finding import Folders

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from ua_memory.config import Config
    from ua_memory.paths import Bank

NAME = "known"
RACY = 2 * 10**9
"""Nanoseconds in which a file may have been changed again after it was read, with nothing to show for it."""


class Settings:
    """The settings by their names, as `config.Config` has them."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update({k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})


def read(named: str, cwd: str, home: str, env: Mapping[str, str]) -> tuple[Folders, Any] | None:
    """The folders and Settings of the bank that is meant: the one named, else the nearest, else the
    default one. None where that takes the settings themselves, or there is none."""
    root = _root(named, cwd, home)
    for state in _states(root) if root else ():
        try:
            with open(f"{state}/cache/{NAME}", "rb") as file:  # noqa: PTH123
                found = json.loads(file.read())
            values, variables = found["settings"], found["env"]
            if found["proof"] == _proof(root, state, env) and all(
                variables[name] == (env.get(name) or None) for name in variables
            ):
                return Folders(root, found["own"], state, found["git_dir"]), Settings(values)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return None


def note(bank: Bank, config: Config, env: Mapping[str, str]) -> None:
    """Keep what a bank's settings say for the next hook. A bank that we may only read is read each time, and
    one whose settings have something to be told of."""
    from ua_memory.config import settings

    root, state = str(bank.root), str(bank.state)
    if config.problems or config.untrusted:
        return
    if any(row and time.time_ns() - row[3] < RACY for row in _files(root, env)):
        return
    names = [name for _, _, name, _, _ in settings() if name]
    found = {
        "proof": _proof(root, state, env), "own": bank.own, "git_dir": str(bank.git_dir),
        "env": {name: env.get(name) or None for name in (*names, "HOME", "XDG_CONFIG_HOME")},
        "settings": {name: getattr(config, name) for name, *_ in settings()},
    }  # fmt: skip
    path = f"{bank.cache}/{NAME}"
    try:
        if os.path.isdir(state) and not _holds(path, json.dumps(found)):  # noqa: PTH112
            sessions.write(path, found)
    except (OSError, TypeError, ValueError):
        pass


def _holds(path: str, text: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            return file.read() == text
    except (OSError, ValueError):
        return False


def _root(named: str, cwd: str, home: str) -> str:
    """The bank that is meant, '' if there is none."""
    if named:
        if named == "~" or named.startswith("~/"):
            named = home + named[1:]
        root = os.path.realpath(os.path.join(cwd, named))  # noqa: PTH118
    elif (nearest := finding.discover(cwd, home)) is not None:
        return nearest
    else:
        root = os.path.realpath(f"{home}/ua-memory")
    return root if finding.is_bank(root) else ""


def _states(root: str) -> Iterator[str]:
    """The folders that the state of the bank at `root` may lie in."""
    around = finding.git_around(root)
    if around is None:
        yield f"{root}/{finding.BESIDE}"
        return
    top, git_dir, common = around
    if top == root:
        yield f"{git_dir}/ua-memory"
    try:
        there = os.listdir(f"{common}/ua-memory")  # noqa: PTH208
    except OSError:
        return
    of_it = "-" + finding.worktree(git_dir, common)
    yield from (f"{common}/ua-memory/{name}" for name in there if name.endswith(of_it))


def _files(root: str, env: Mapping[str, str]) -> list[Any]:
    """The files that settings are read from, as they are now."""
    user = [name.encode() for name in (finding.USER, finding.TRUSTED)]
    rows = stamps.look(finding.user_folder(env) or "/nonexistent", user)
    return [*stamps.look(root, [finding.SETTINGS.encode()]), *rows]


def _proof(root: str, state: str, env: Mapping[str, str]) -> list[Any]:
    """What must be as it was: the code, the folders, and the files of settings."""
    code = stamps.look(PACKAGE, [b"config.py", b"cli/known.py"])
    around = finding.git_around(root)
    rows = [*code, *_files(root, env)]
    return [root, state, list(around or ()), *(row and list(row) for row in rows)]
