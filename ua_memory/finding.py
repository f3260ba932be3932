"""Which folder is a bank, and which git repository is around it, told by the names of files alone.

It stands by itself, on plain texts, since a hook asks this and has no time to load `pathlib`; everyone else
asks `paths`.
"""

from __future__ import annotations

import os
import re

from ua_memory import regular

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SETTINGS = "ua-memory.toml"
USER, TRUSTED = "config.toml", "trusted.json"
"""In the user's own folder: their settings, for all of their banks, and bank id → hashes of the sensitive
settings of it that they have agreed to."""
CORE_NAMES = ("MEMORY.md", "memory.md")
LOGS = "memory"
BESIDE = ".ua-memory"
"""State where there is no git at all."""
DATED = re.compile(r"(\d{4}-\d{2}-\d{2})(?!\d)")


class Folders:
    """The folders of a bank, as `paths.Bank` has them."""

    __slots__ = ("cache", "git_dir", "index", "local", "own", "pending", "root", "state")

    def __init__(self, root: str, own: bool, state: str, git_dir: str) -> None:
        self.root, self.own, self.state, self.git_dir = root, own, state, git_dir
        self.pending, self.index = f"{state}/pending", f"{state}/index"
        self.cache, self.local = f"{state}/cache", f"{state}/local"


exists, join, parent = os.path.isfile, os.path.join, os.path.dirname


def is_bank(folder: str) -> bool:
    """Whether a folder is marked as a bank: settings that say something, core memory, or a dated log under
    `memory/`.

    A folder that may not be looked into is none.
    """
    # A case-folding file system answers yes to both names of core memory; either is a bank.
    if any(exists(join(folder, name)) for name in CORE_NAMES) or not is_blank(join(folder, SETTINGS)):
        return True
    try:
        # A code package called `memory` has no dated markdown in it.
        return any(DATED.match(log) and log.endswith(".md") for log in os.listdir(join(folder, LOGS)))  # noqa: PTH208
    except OSError:
        return False


def user_folder(env: Mapping[str, str]) -> str:
    """The folder of the user's own settings, '' where the environment names no home. A relative one does not
    count: it would lie in whatever bank a command is called in."""
    base = env.get("XDG_CONFIG_HOME", "")
    if not base.startswith("/"):
        base = f"{env['HOME']}/.config" if env.get("HOME", "").startswith("/") else ""
    return f"{base}/ua-memory" if base else ""


def is_blank(file: str) -> bool:
    """Whether a file says nothing, or is not there: empty settings mark no folder as a bank."""
    if not exists(file):
        return True
    try:
        with regular.opened(file) as opened:
            return not opened.read(4096).removeprefix(b"\xef\xbb\xbf").strip()
    except OSError:  # it is there; what is wrong with it is said where it is read
        return False


def discover(start: str, home: str) -> str | None:
    """The nearest bank at or above `start`; the search ends at `home` and at the border of a file system.

    None also where `start` is no folder. What is found has no symbolic links in it.
    """
    start, home = os.path.realpath(start), os.path.realpath(home)
    try:
        device = os.stat(start).st_dev  # noqa: PTH116
        for folder in above(start):
            if os.stat(folder).st_dev != device:  # noqa: PTH116
                return None
            if is_bank(folder):
                return folder
            if folder == home:
                return None
    except OSError:
        return None
    return None


def above(folder: str) -> Iterator[str]:
    """An absolute folder and all that it lies in, the nearest first."""
    while True:
        yield folder
        if (outer := parent(folder)) == folder:
            return
        folder = outer


def git_around(folder: str) -> tuple[str, str, str] | None:
    """The repository that a folder without symbolic links lies in, worktrees and submodules included, as its
    files tell: its top level, its git directory, and what its worktrees share.

    A `.git` file that leads nowhere (its repository was moved or deleted) counts as none.
    """
    for top in above(folder):
        dot = join(top, ".git")
        if exists(join(dot, "HEAD")):
            return top, dot, dot
        if exists(dot):
            git_dir = _led_to(dot, "gitdir:")
            if git_dir and exists(join(git_dir, "HEAD")):
                return top, git_dir, _led_to(join(git_dir, "commondir")) or git_dir
    return None


def worktree(git_dir: str, common: str) -> str:
    """What a worktree is called."""
    return "main" if git_dir == common else git_dir.rpartition("/")[2]


def _led_to(file: str, key: str = "") -> str | None:
    """The folder that a file of git's names, relative to its own folder."""
    try:
        with regular.opened(file) as opened:
            line = os.fsdecode(opened.read()).strip()
    except OSError:
        return None
    return os.path.realpath(join(parent(file), line[len(key) :].strip())) if line.startswith(key) else None
