"""The command that a message names helps in the state that it was printed in."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from banks import git, repository
from terminal import Shell, new_shell

from ua_memory.errors import GitFailed
from ua_memory.git.history import History

ADDRESS = "remote.git"


def detached(trail: Path) -> None:
    (trail / "HEAD").write_text((trail / "refs/heads/main").read_text())


def cut(shell: Shell, trail: Path) -> None:
    """Have only the end of the history here."""
    (trail / "shallow").write_text(git(shell.cwd, "--git-dir", str(trail), "rev-parse", "HEAD"))


def merging(shell: Shell, trail: Path) -> None:
    (trail / "MERGE_HEAD").write_text(git(shell.cwd, "--git-dir", str(trail), "rev-parse", "HEAD"))


def file_as_folder(shell: Shell) -> None:
    (shell.cwd / "memory").rename(shell.home / "kept")
    (shell.cwd / "memory").write_text("a note\n")
    assert {shell(*words).code for words in (("doctor",), ("insert", "x"), ("status",))} == {9}


STATES: dict[str, tuple[Callable[[Shell, Path], object], list[str]]] = {
    "a detached HEAD": (lambda s, t: detached(t), ["insert", "x"]),
    "noise in HEAD": (lambda s, t: (t / "HEAD").write_text("noise\n"), ["insert", "x"]),
    "an unreadable HEAD": (lambda s, t: (t / "HEAD").write_bytes(b"\xff\n"), ["insert", "x"]),
    "a branch that is none": (
        lambda s, t: (t / "HEAD").write_text("ref: refs/heads/maim\n"), ["insert", "x"],
    ),
    "another branch": (
        lambda s, t: [
            (t / "refs/heads/main").rename(t / "refs/heads/work"),
            (t / "HEAD").write_text("ref: refs/heads/x\n"),
        ],
        ["insert", "x"],
    ),
    "the end of a history": (cut, ["export", "{home}/x.tar"]),
    "another remote": (
        lambda s, t: git(s.home, "init", "--quiet", "--bare", "other.git"),
        ["sync", "--remote", "{home}/other.git"],
    ),
    "a file as its folder": (lambda s, t: file_as_folder(s), ["search", "one"]),
}  # fmt: skip


def mends(done: str) -> list[str]:
    """The commands of a message, as somebody would copy them: of a note they stand in brackets."""
    text = " ".join(done.split())
    found = re.search(r"hint: (.*)$", text) or re.search(r"\(((?:ua-memory|echo) .*)\)$", text)
    assert found, text
    return re.split(r"; (?:then )?|, then: ", found[1])


@pytest.mark.few(5)
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("name", STATES)
def test_the_command_that_is_named_helps(name: str, beside: bool, tmp_path: Path) -> None:
    shell = new_shell(tmp_path)
    if beside:
        shell.cwd = repository(tmp_path / "home" / "code", {"a.py": "1\n"})
        shell.ok("init", str(shell.cwd))
    git(shell.home, "init", "--quiet", "--bare", "--initial-branch=main", ADDRESS)
    for text in ("one", "two"):
        shell.ok("insert", text)
    shell.ok("sync", "--remote", str(shell.home / ADDRESS))
    plant, words = STATES[name]
    plant(shell, Path(shell.ok("status", "--json").json["trail"]))
    asked = [word.format(home=shell.home) for word in words]
    done = shell(*asked)
    assert done.code or "not committed yet" in done.err
    commands = mends(done.err)
    if commands == ["ua-memory doctor"]:
        commands = mends(re.split(r"\n(?=ok |wrong )", shell("doctor").out.partition("wrong ")[2])[0])
    for command in commands:
        if command.startswith("ua-memory "):
            assert shell(*shlex.split(command)[1:]).code == 0, command
        else:
            subprocess.run(command, shell=True, check=True, cwd=shell.cwd)
    again = shell.ok(*asked)
    assert "not committed" not in again.err and shell.ok("status", "--json").json["pending"] == []


def test_a_merge_under_way_is_somebody_s(tmp_path: Path) -> None:
    shell = new_shell(tmp_path)
    shell.ok("insert", "one")
    merging(shell, shell.cwd / ".git")
    with pytest.raises(GitFailed, match="in progress") as error:
        History(shell.cwd / ".git", shell.cwd, own=True).ref()
    assert error.value.hint == "ua-memory git status says how to finish or abort it"
    assert "git commit" in git(shell.cwd, "status")
