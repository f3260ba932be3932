"""One git directory and the processes that are run on it, whatever the caller's shell or settings say.

A git directory may have come from a stranger, in an archive or on a stick, and its settings, hooks and
attributes can name programs. None of them is run: what a setting of ours does not outrank is not called, and
the network is reached from a directory without settings (`remotes`).
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.errors import GitFailed

if TYPE_CHECKING:
    from git import Git

NOT_THERE = "git is not installed or does not run"
CONFIG = {
    "core.fsync": "all",  # the first one, so that it can be replaced by its number: plain git fsyncs nothing
    "core.fsyncMethod": "fsync",
    "core.hooksPath": os.devnull,  # fast-import would run the user's reference-transaction hook
    "core.alternateRefsCommand": "true",  # a program, run where objects are borrowed
    "core.attributesFile": os.devnull,
    "core.autocrlf": "false",
    "core.fsmonitor": "false",
    "core.logAllRefUpdates": "false",  # in ten years a reflog outgrows the text
    "core.quotePath": "false",
    "fsck.badDateOverflow": "warn",  # a clock that stood before 1970 is no damage
    "fetch.fsck.badDateOverflow": "warn",
    "receive.fsck.badDateOverflow": "warn",
    "fetch.fsckObjects": "true",  # what another machine sends may be broken, or made to break out
    "http.lowSpeedLimit": "1",  # bytes a second; less for a minute is no connection any more
    "http.lowSpeedTime": "60",
    "fetch.recurseSubmodules": "false",  # each has settings of its own
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "i18n.commitEncoding": "UTF-8",
    "i18n.logOutputEncoding": "UTF-8",
    "log.showSignature": "false",
    "protocol.ext.allow": "never",  # an address that is a command
    "diff.noprefix": "false",
    "diff.mnemonicPrefix": "false",
}
"""Settings of ours for every git process; a user's own would change what is written or read."""
_LOCKED = re.compile(r"Unable to create '[^'\n]*\.lock': File exists")
NO_REMOTE = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""For every process that has no business with a remote: a partial clone asks its own for a missing object,
by an address and a program out of its settings."""
ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
"""So that git reads none of the user's own settings: a mistake in them ends every command."""
THEIRS = ("var", "fetch", "push", "ls-remote")
"""What needs them all the same: who the person is, and how another machine is reached."""
NO_FSYNC = {"GIT_CONFIG_VALUE_0": "none"}
"""For what can be made again, as an index."""
PLAIN_PACK = {
    "GIT_CONFIG_COUNT": str(len(CONFIG) + 1),
    f"GIT_CONFIG_KEY_{len(CONFIG)}": "pack.compression",
    f"GIT_CONFIG_VALUE_{len(CONFIG)}": "0",
}
"""For a pack of a few objects, which git takes apart at once: the tree of ten years of logs would be
compressed twice, and takes 8 ms each time."""


class Process:
    """A git directory and the work tree it belongs to."""

    def __init__(self, git_dir: Path, root: Path, *, own: bool) -> None:
        self.git_dir, self.root, self.own = git_dir, root, own
        self._git: Git | None = None

    @property
    def shared(self) -> Path:
        """The directory with the objects and refs: the git directory's own, or that of the main worktree."""
        common = self.git_dir / "commondir"
        return (self.git_dir / common.read_text().strip()).resolve() if common.is_file() else self.git_dir

    def git(self) -> Git:
        """GitPython's command object, bound to this trail whatever the caller's shell has set."""
        if self._git is None:
            git = _imported()(str(self.root))
            git.update_environment(**self.environment())
            self._git = git  # only now: another thread would run it on whatever the shell names
        return self._git

    def environment(self) -> dict[str, str]:
        """Variables that pin git to this trail: inside a hook of the user's, theirs name the outer one."""
        pairs: dict[str, str] = {}
        for n, (key, value) in enumerate(CONFIG.items()):
            pairs |= {f"GIT_CONFIG_KEY_{n}": key, f"GIT_CONFIG_VALUE_{n}": value}
        return {
            "GIT_DIR": str(self.git_dir),
            "GIT_WORK_TREE": str(self.root),
            "GIT_COMMON_DIR": str(self.shared),
            "GIT_INDEX_FILE": str(self.git_dir / "index"),
            "GIT_OBJECT_DIRECTORY": str(self.shared / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
            "GIT_NAMESPACE": "",
            "GIT_CONFIG_PARAMETERS": "",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_GLOB_PATHSPECS": "0",
            "GIT_NOGLOB_PATHSPECS": "0",
            "GIT_ICASE_PATHSPECS": "0",
            "GIT_CONFIG_COUNT": str(len(CONFIG)),
            **NO_REMOTE,
            **pairs,
        }

    def version(self) -> str:
        """What git says of itself. GitFailed."""
        git = self.git()
        from git.exc import GitError

        try:
            return str(git.execute(["git", "--version"]))
        except GitError:  # for that it reads the user's settings, too
            return self.run("--version").decode()

    def run(self, *words: str, stdin: bytes | None = None, ok: Sequence[int] = (0,), **extra: Any) -> bytes:
        """Standard output of one git command. GitFailed carries what git said."""
        return self.ask(*words, stdin=stdin, ok=ok, **extra)[0]

    def ask(
        self, *words: str, stdin: bytes | None = None, ok: Sequence[int] = (0,), **extra: Any
    ) -> tuple[bytes, str]:
        """The same, with what it said on standard error."""
        git = self.git()
        from git.exc import GitError

        if words[0] not in THEIRS:
            extra["env"] = {**ALONE, **extra.get("env", {})}

        with contextlib.ExitStack() as stack:
            try:
                if stdin is not None:
                    spool = stack.enter_context(tempfile.TemporaryFile())
                    spool.write(stdin)
                    spool.seek(0)
                    extra["istream"] = spool
                status, out, said = git.execute(
                    ["git", *words],
                    with_extended_output=True,
                    with_exceptions=False,
                    stdout_as_string=False,
                    strip_newline_in_stdout=False,
                    **extra,
                )
            except (OSError, ValueError, GitError) as error:  # gone, no process to be had, a NUL in a name
                why = NOT_THERE if isinstance(error, GitError) else error
                raise GitFailed(
                    f"git did not start: {why}", where=str(self.git_dir), mend="install git"
                ) from error
        told = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        if status not in ok:
            why = _reason(said or out)
            raise GitFailed(
                f"git {words[0]} failed: {why}", where=str(self.git_dir),
                mend="ua-memory doctor --mend" if _LOCKED.search(told) else "ua-memory doctor",
            )  # fmt: skip
        return bytes(out) if isinstance(out, bytes) else str(out).encode(), told


def _imported() -> type[Git]:
    """GitPython's class. It runs `git version` when it is imported, and refuses to be where that fails."""
    with contextlib.suppress(ImportError):
        from git import Git

        return Git
    before = {name: os.environ.get(name) for name in ALONE}
    os.environ.update(ALONE)  # for that first run alone: the user's settings may have ended it
    try:
        from git import Git

        return Git
    except ImportError as error:
        said = getattr(error.__cause__, "stderr", "") or ""
        what = f"git does not run: {_reason(said)}" if said else NOT_THERE
        mend = "install git; what was being written waits in pending/, the next command commits it"
        raise GitFailed(what, mend=mend) from error
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ.update({name: value} if value is not None else {})


def _reason(said: str | bytes) -> str:
    """What git ends with: the line that is fatal, with what stands before it, since advice may follow; else
    the last."""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    end = next((n for n, line in enumerate(lines) if line.startswith("fatal: ")), len(lines) - 1)
    if end < len(lines) - 1:
        return "; ".join(lines[max(0, end - 1) : end + 1])[:500]
    return lines[-1][:500] if lines else "it said nothing"
