"""git at work on the files of a bank that is a repository of its own: a checkout, a merge, a reset, a stash.

Such a command holds `index.lock` while it writes files, and moves HEAD when they are all there. Until then
HEAD names one branch and the files are another's (docs/decisions/0018).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.errors import GitFailed
from ua_memory.history.locks import filesystem_now, is_there, processes
from ua_memory.history.revisions import plain_files

if TYPE_CHECKING:
    from ua_memory.history.repository import Repository

MOVERS = frozenset(
    {"am", "apply", "bisect", "checkout", "checkout-index", "cherry-pick", "clean", "merge", "mv", "pull"}
    | {"read-tree", "rebase", "reset", "restore", "revert", "rm", "stash", "switch"}
)
"""The commands that write files. Of others a lock says nothing: `git commit -a` holds it while its editor is
open."""
YOUNG_NS = 1_000_000_000
"""For so long a lock is believed whose git is not to be seen: not each is a program of that name."""
PAUSE = 0.02
MOST = 10
"""So many branches are looked at, the newest."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a repository stands: the branch that HEAD names, if it does, and the index as it lies there."""

    branch: str = ""
    index: tuple[int, int] | None = None


def moment(trail: Repository) -> Moment:
    """Where a bank's own repository stands now; of a trail that is kept beside, where it always does."""
    if not trail.own or not trail.exists:
        return Moment()
    index = None
    with contextlib.suppress(OSError):
        stat = (trail.git_dir / "index").stat()
        index = stat.st_ino, stat.st_mtime_ns
    return Moment(branch(trail), index)


def branch(trail: Repository) -> str:
    """The branch that HEAD names, whether it is born or not; '' where it names none."""
    with contextlib.suppress(OSError, ValueError):
        if not (trail.shared / "reftable").is_dir():
            line = (trail.git_dir / "HEAD").read_text().strip()
            return line[5:] if line.startswith("ref: ") else ""
    return ""


def is_locked(trail: Repository) -> bool:
    """Whether some git holds the index, or has left it so."""
    return trail.own and (trail.git_dir / "index.lock").exists()


def is_moving(trail: Repository) -> bool:
    """Whether a git that lives may be writing files."""
    if not is_locked(trail):
        return False
    places = [place.resolve() for place in (trail.git_dir, trail.shared, trail.root)]
    if any(
        not MOVERS.isdisjoint(words) and is_there(process, words, places) is not False
        for process, words in processes()
    ):
        return True
    with contextlib.suppress(OSError):
        return filesystem_now(trail.git_dir) - (trail.git_dir / "index.lock").stat().st_mtime_ns < YOUNG_NS
    return False


def settled(trail: Repository, seconds: float) -> bool:
    """Wait until no git writes files, for so long at most; whether it is so."""
    until = time.monotonic() + seconds
    while is_moving(trail):
        if time.monotonic() > until:
            return False
        time.sleep(PAUSE)
    return True


@dataclass
class Others:
    """The branches besides the one that HEAD names."""

    trail: Repository
    here: str
    _trees: dict[str, Mapping[str, str]] = field(default_factory=dict)

    @cached_property
    def tips(self) -> Sequence[tuple[str, str]]:
        """(name, commit) of each, the newest first. Where there is but one branch, git is not asked."""
        if not self.trail.own or not _several(self.trail.shared):
            return ()
        words = [
            "for-each-ref",
            f"--count={MOST}",
            "--sort=-committerdate",
            "--format=%(refname) %(objectname)",
        ]
        rows = self.trail.run(*words, "refs/heads", "refs/remotes").decode("utf-8", "replace").splitlines()
        named = [(name, commit) for name, _, commit in (row.partition(" ") for row in rows)]
        return [(name, commit) for name, commit in named if name != self.here]

    def has(self, path: str, blob: str | None, *, new: bool) -> str:
        """The branch on which a file is this, or that has no such file where it is None; else nothing. One
        that is `new` on this branch may have been copied by hand."""
        for name, commit in self.tips:
            if self._tree(commit).get(path) == blob:
                # What is an older state of this branch, too, or no file at all, may be a person's doing,
                # unless git has written it.
                apart = blob and not new and self._is_apart(commit)
                if apart or is_locked(self.trail) or self._staged(path) == blob:
                    return name
        return self.here if self.tips and blob and self._came_late(path, blob) else ""

    def _came_late(self, path: str, blob: str) -> bool:
        """Whether git, on its way to this branch, wrote what the file was there before something was
        committed to it: HEAD came after the commit and after the file."""
        try:
            moved = (self.trail.git_dir / "HEAD").stat().st_mtime_ns
            committed = (self.trail.shared / self.here).stat().st_mtime_ns
            written = (self.trail.root / path).stat().st_ctime_ns
        except OSError:
            return False
        if moved < max(committed, written):
            return False
        words = ("log", f"-n{MOST}", "--format=", "--raw", "--no-abbrev", "--no-renames", "--", path)
        return f" {blob} " in self.trail.run(*words).decode("utf-8", "replace")

    def _tree(self, commit: str) -> Mapping[str, str]:
        if commit not in self._trees:
            self._trees[commit] = plain_files(self.trail.run("ls-tree", "-r", "-z", commit))
        return self._trees[commit]

    def _is_apart(self, commit: str) -> bool:
        head = self.trail.head()
        return not head or bool(self.trail.run("rev-list", "-n1", commit, f"^{head}").strip())

    def _staged(self, path: str) -> str | None:
        with contextlib.suppress(GitFailed):
            row = self.trail.run("ls-files", "-s", "-z", "--", path).decode("utf-8", "surrogateescape")
            return row.split()[1] if row.strip("\0") else None
        return ""


def _several(shared: Path) -> bool:
    """Whether there is more than one branch, the remotes' among them."""
    loose = (file for kind in ("heads", "remotes") for file in (shared / "refs" / kind).rglob("*"))
    names = {file.relative_to(shared).as_posix() for file in loose if file.is_file()}
    with contextlib.suppress(OSError):
        rows = (shared / "packed-refs").read_text("utf-8", "replace").splitlines()
        names |= {row.split()[1] for row in rows if " refs/heads/" in row or " refs/remotes/" in row}
    return len(names) > 1 or (shared / "reftable").is_dir()
