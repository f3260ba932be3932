"""The git directory as a place: whether it is there, its making, where it stands, who the person is."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.errors import CannotWrite, GitFailed
from ua_memory.history.missing import ASIDE
from ua_memory.history.process import Process
from ua_memory.history.revisions import NOBODY, SOMEBODY, plain
from ua_memory.paths import make_private

if TYPE_CHECKING:
    from ua_memory.history.lost import Lost

_IDS = re.compile("[0-9a-f]{40}([0-9a-f]{24})?")
UNDER_WAY = ("MERGE_HEAD", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "REVERT_HEAD")


class Repository(Process):
    """Standing and settings of one git directory."""

    @property
    def exists(self) -> bool:
        """Whether `create` has been here and came to its end."""
        return (self.git_dir / "HEAD").is_file() and (self.shared / "objects").is_dir()

    def create(self) -> None:
        """Make the trail's git directory, or the bank's own repository. Nothing happens where it exists."""
        if self.exists:
            return
        try:
            if self.own:
                self.git_dir.mkdir(parents=True, exist_ok=True)
            else:
                make_private(self.git_dir)
        except OSError as error:
            raise CannotWrite(error.strerror or str(error), where=str(self.git_dir)) from error
        where = {"GIT_OBJECT_DIRECTORY": str(self.git_dir / "objects")}
        how = ["--initial-branch=main", "--object-format=sha1", "--template="]
        # A trail in the state folder is as private as all there; git gives each of its files that mode.
        self.run("init", "--quiet", *how, *([] if self.own else ["--shared=0600"]), env=where)
        if not self.own:
            # The work tree belongs to somebody else: plain `git` there must not find a second repository.
            self.run("config", "core.worktree", str(self.root))
        # `git init` fsyncs nothing: without these, the first durable commit may be in no repository.
        for name in ("HEAD", "config", "objects", "refs/heads", "refs", "", ".."):
            _sync(self.git_dir / name)

    def ref(self) -> str:
        """The branch that revisions go to. GitFailed on a detached HEAD or in a merge or rebase."""
        head = self._head_line()
        if not head.startswith("ref: "):
            if _IDS.fullmatch(head):
                mend = f"ua-memory git switch {self._branch()}"
                raise GitFailed("HEAD is detached", where=str(self.git_dir), mend=mend)
            mend = f"echo 'ref: refs/heads/{self._branch()}' > {shlex.quote(str(self.git_dir / 'HEAD'))}"
            raise GitFailed("HEAD names no branch", where=str(self.git_dir), mend=mend)
        for mark in UNDER_WAY:
            if self.own and (self.git_dir / mark).exists():
                mend = "ua-memory git status says how it is finished or given up"
                raise GitFailed("a merge or rebase is under way", where=str(self.git_dir), mend=mend)
        if self._reftable:
            return self.run("symbolic-ref", "HEAD").decode().strip()
        self.require_born()
        return head[5:]

    def require_born(self) -> None:
        """GitFailed where HEAD names a branch that is not there, and another one is, or its revisions are:
        the history is not to begin, it is out of sight."""
        head = self.head()
        if head and self._head_line() == f"ref: {head}":
            if lost := self.lost():
                raise GitFailed(lost.told, where=str(self.git_dir), mend=lost.mend)
            what = f"HEAD names a branch without a revision: {head.removeprefix('refs/heads/')}"
            mend = f"ua-memory git symbolic-ref HEAD refs/heads/{self._branch()}"
            raise GitFailed(what, where=str(self.git_dir), mend=mend)

    def lost(self) -> Lost | None:
        """Where the branch stood that HEAD names, if it is gone and its revisions are there. GitFailed."""
        head = self.head()
        if not head or self._head_line() != f"ref: {head}":
            return None
        from ua_memory.history import lost

        return lost.find(self, head)

    def put_back(self) -> list[str]:
        """Put a branch that is gone back to where it stood, if the files say where that was; what to tell of
        it. What cannot be told is left as it is, and git refuses the next commit."""
        with contextlib.suppress(GitFailed):
            lost = self.lost()
            if lost and lost.sure:
                self.run("update-ref", lost.branch, lost.revision, NOBODY)
                return [f"{lost.told}: put back; `ua-memory verify` looks at the rest of the history"]
        return []

    def head(self) -> str | None:
        """The newest revision's id, or None in a trail without commits. No process is started for it,
        except where refs are not kept in files. What git will refuse where HEAD is noise, or out of sight."""
        if not self.exists:
            return None
        head = self._head_line()
        if not head.startswith("ref: "):
            return head or None
        name = head[5:]
        with contextlib.suppress(OSError):
            found = (self.shared / name).read_text().strip()
            return self._asked() if found.startswith("ref: ") else found or self._asked()
        packed = ""
        with contextlib.suppress(FileNotFoundError):
            packed = (self.shared / "packed-refs").read_text()
            for line in packed.splitlines():
                if line.endswith(f" {name}"):
                    return line.split()[0]
        if self._reftable:
            return self._asked()
        others = any(file.is_file() for file in (self.shared / "refs/heads").rglob("*"))
        if others or " refs/heads/" in packed:
            return name
        from ua_memory.history import lost

        with contextlib.suppress(GitFailed):
            return name if lost.find(self, name) else None
        return name  # git cannot say what its objects are: nothing is to begin there

    def person(self) -> tuple[str, str]:
        """Whose name and address hand edits are committed under: git's own for this user, or a stand-in."""
        try:
            ident = self.run("var", "GIT_AUTHOR_IDENT").decode("utf-8", "replace")
        except GitFailed:
            return SOMEBODY
        name, _, rest = ident.partition(" <")
        return plain(name) or SOMEBODY[0], plain(rest.partition(">")[0]) or SOMEBODY[1]

    @property
    def _reftable(self) -> bool:
        return (self.shared / "reftable").is_dir()

    def _head_line(self) -> str:
        try:
            return (self.git_dir / "HEAD").read_text().strip()
        except OSError as error:
            what = f"HEAD cannot be read: {error.strerror or error}"
            raise GitFailed(what, where=str(self.git_dir), mend="check owner and mode") from error
        except ValueError:
            return "noise"

    def _branch(self) -> str:
        """The branch that HEAD should name: main, or else the first there is."""
        loose = self.shared / "refs/heads"
        names: list[str] = []
        with contextlib.suppress(OSError, ValueError):
            names += sorted(file.relative_to(loose).as_posix() for file in loose.rglob("*") if file.is_file())
            rows = (self.shared / "packed-refs").read_text().splitlines()
            names += [row.rpartition(" refs/heads/")[2] for row in rows if " refs/heads/" in row]
        return shlex.quote(names[0] if names and "main" not in names else "main")

    def set_noise_aside(self) -> None:
        """Move the file of the branch away, if what it says is no revision: the branch is gone then, and can
        be put back."""
        head = self._head_line()
        file = self.shared / head.removeprefix("ref: ")
        with contextlib.suppress(FileNotFoundError):
            if head.startswith("ref: refs/heads/") and not _IDS.fullmatch(
                file.read_bytes().decode("latin-1").strip()
            ):
                (self.git_dir / ASIDE).mkdir(exist_ok=True)
                file.replace(self.git_dir / ASIDE / file.name)

    def _asked(self) -> str | None:
        with contextlib.suppress(GitFailed):
            return self.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip() or None
        return None


def _sync(path: Path) -> None:
    with contextlib.suppress(OSError):  # a file system that cannot: nothing is promised there
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
