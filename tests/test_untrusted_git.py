"""A git directory may be a stranger's: no program that its settings, attributes or hooks name is run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from banks import DAY, git
from terminal import Shell, new_shell

PROGRAMS = (
    "core.fsmonitor", "core.sshCommand", "core.gitProxy", "core.askPass", "core.pager", "core.editor",
    "core.alternateRefsCommand", "credential.helper", "sequence.editor", "gpg.program", "gpg.ssh.program",
    "diff.external", "diff.evil.command", "diff.evil.textconv", "filter.evil.clean", "filter.evil.smudge",
    "filter.evil.process", "merge.evil.driver", "alias.log", "gc.recentObjectsHook",
    "uploadpack.packObjectsHook", "remote.origin.uploadpack", "remote.origin.receivepack",
    "remote.origin.vcs", "trailer.evil.cmd", "interactive.diffFilter", "init.templateDir",
)  # fmt: skip
OTHERS = {
    "protocol.ext.allow": "always", "push.gpgSign": "true", "log.showSignature": "true",
    "fetch.recurseSubmodules": "true",
    "extensions.partialClone": "origin", "remote.origin.promisor": "true",
}  # fmt: skip
HOOKS = (
    "reference-transaction", "pre-push", "post-index-change", "pre-auto-gc", "post-checkout", "pre-receive",
    "update", "post-receive", "post-update", "push-to-checkout", "proc-receive",
)  # fmt: skip


@dataclass
class Stranger:
    """A program that notes that it was run, and a bank whose git directory names it wherever one can."""

    shell: Shell
    folder: Path

    @property
    def root(self) -> Path:
        return self.shell.home / "bank"

    @property
    def trail(self) -> Path:
        return Path(self.shell.ok("status", "--json").json["trail"])

    @property
    def program(self) -> Path:
        return self.folder / "evil"

    def ran(self) -> str:
        log = self.folder / "ran"
        said = log.read_text() if log.exists() else ""
        log.unlink(missing_ok=True)
        return said

    def plant(self, remote: str, place: Path | None = None) -> None:
        """Name the program in a git directory's settings, hooks, and attributes."""
        place = place or self.trail
        (self.folder / "evil").write_text(f'#!/bin/sh\necho "$0 $*" >> "{self.folder}/ran"\nexec cat\n')
        (self.folder / "evil").chmod(0o755)
        rows = {**{key: f"{self.program} {key}" for key in PROGRAMS}, **OTHERS}
        rows |= {"core.hooksPath": str(place / "hooks"), "remote.origin.url": remote}
        rows |= {f"url.ext::{self.program}.insteadOf": "evil:", "receive.denyCurrentBranch": "updateInstead"}
        included = place / "more"
        for key, value in rows.items():
            git(self.folder, "config", "--file", str(included), key, value)
        git(self.folder, "config", "--file", str(place / "config"), "include.path", "more")
        for name in HOOKS:
            (place / "hooks").mkdir(exist_ok=True)
            (place / "hooks" / name).write_text(f"#!/bin/sh\n{self.program} {name} </dev/null\n")
            (place / "hooks" / name).chmod(0o755)
        (place / "info").mkdir(exist_ok=True)
        (place / "info" / "attributes").write_text("* filter=evil diff=evil merge=evil\n")


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stranger]:
    shell = new_shell(tmp_path)
    shell.ok("insert", "Alice drinks tea")
    monkeypatch.setenv("GIT_SSH_VARIANT", "simple")
    for name in ("GIT_SSH_COMMAND", "GIT_SSH", "GIT_ASKPASS", "SSH_ASKPASS"):
        monkeypatch.delenv(name, raising=False)
    yield Stranger(shell, tmp_path)


def test_what_is_planted_is_run_by_plain_git(stranger: Stranger) -> None:
    """Without this the other tests prove nothing."""
    stranger.plant("ssh://nowhere.invalid/x.git")
    for words in (
        ["fetch", "origin"],
        ["log", "-GAlice"],
        ["fetch", "evil:x"],
        ["update-ref", "refs/x", "HEAD"],
    ):
        env = {**os.environ, "GIT_DIR": str(stranger.trail), "GIT_WORK_TREE": str(stranger.root)}
        subprocess.run(["git", *words], cwd=stranger.root, env=env, capture_output=True, check=False)
        assert stranger.ran(), words


REMOTES = {
    "ssh": "ssh://nowhere.invalid/x.git",
    "scp": "nowhere.invalid:x.git",
    "a command": "ext::{program} %S",
    "another's name": "evil:x",
    "git": "git://127.0.0.1:1/x.git",
}
SSH = ("ssh", "scp", "another's name")  # `evil:x` is a path on a host to whoever knows no better


@pytest.mark.few(2)
@pytest.mark.parametrize("name", REMOTES)
def test_a_sync_runs_no_program_of_the_trail(stranger: Stranger, name: str, tmp_path: Path) -> None:
    """I64"""
    ours = tmp_path / "ours"
    ours.write_text(f'#!/bin/sh\necho ours >> "{tmp_path}/asked"\nexit 1\n')
    ours.chmod(0o755)
    mine = os.environ["GIT_CONFIG_GLOBAL"]
    key = f"includeIf.gitdir:{stranger.root}/.path"
    git(
        tmp_path,
        "config",
        "--file",
        mine,
        *([key, "here"] if name == "scp" else ["core.sshCommand", str(ours)]),
    )
    git(tmp_path, "config", "--file", str(Path(mine).parent / "here"), "core.sshCommand", str(ours))
    stranger.plant(REMOTES[name].format(program=stranger.program))
    done = stranger.shell("sync")
    assert done.code == 11 and not stranger.ran(), done.err
    if name == "a command":
        assert "ua-memory git remote set-url origin ADDRESS" in done.err
    else:
        assert "core.sshcommand" in done.err and "~/.gitconfig" in done.err
    assert (tmp_path / "asked").exists() == (name in SSH), "the user's own goes on working"


def test_a_folder_that_is_pushed_to_runs_no_program_of_its_own(stranger: Stranger, tmp_path: Path) -> None:
    for name, how in (("bare", ["--bare"]), ("tree", [])):
        git(tmp_path, "init", "--quiet", *how, "--initial-branch=main", name)
    place = tmp_path / "bare"
    git(tmp_path, "-C", "bare", "symbolic-ref", "HEAD", "refs/heads/main")
    stranger.plant("unused", place)
    stranger.plant(str(place))
    stranger.shell.ok("sync")
    assert not stranger.ran() and git(place, "rev-parse", "main") == git(stranger.root, "rev-parse", "HEAD")
    stranger.shell.ok("insert", "Bob drinks water")
    stranger.plant("unused", tmp_path / "tree" / ".git")
    stranger.shell("sync", "--remote", str(tmp_path / "tree"))
    assert not stranger.ran()


VERBS = (
    ("insert", "Bob drinks water"), ("search", "tea"), ("status",), ("verify",), ("doctor", "--mend"),
    ("log",), ("log", DAY), ("log", "^ID"), ("diff",), ("diff", "HEAD"), ("blame", DAY), ("why", "^ID"),
    ("get", DAY), ("stats",), ("scan", "--history"), ("undo",), ("redo",), ("export", "x.tar"),
    ("forget", "^ID", "--yes"), ("init",),
)  # fmt: skip


@pytest.mark.parametrize("beside", [False, True])
def test_no_command_runs_a_program_of_the_trail(stranger: Stranger, beside: bool, tmp_path: Path) -> None:
    shell = stranger.shell
    if beside:
        code = tmp_path / "home" / "code"
        code.mkdir(parents=True)
        git(code, "init", "--quiet")
        shell.cwd = code
        shell.ok("init", str(code))
        shell.ok("insert", "Alice drinks tea")
    stranger.plant("ssh://nowhere.invalid/x.git")
    if beside:
        stranger.plant("ssh://nowhere.invalid/x.git", tmp_path / "home" / "code" / ".git")
    block = shell.ok("search", "tea", "--json").json["results"][0]["id"]
    ids = {"^ID": f"^{block.removeprefix('^')}"}
    for words in VERBS:
        shell(*(ids.get(word, word) for word in words))
        assert not stranger.ran(), words


def test_a_missing_object_is_asked_of_nobody(stranger: Stranger) -> None:
    """A partial clone would fetch it, by an address and with a program out of its settings."""
    blob = git(stranger.root, "rev-parse", f"HEAD:{DAY}").strip()
    stranger.plant(f"file://{stranger.folder}/x.git")
    (stranger.trail / "objects" / blob[:2] / blob[2:]).unlink()
    for words in (("status",), ("diff", "HEAD"), ("insert", "Bob drinks water"), ("verify",)):
        stranger.shell(*words)
        assert not stranger.ran(), words
