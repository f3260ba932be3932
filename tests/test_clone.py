"""A second machine in one command: whatever the remote's HEAD says, and repeated as often as it takes."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import pytest
from banks import git, repository
from terminal import Shell, new_shell

from ua_memory.git import history as git_history
from ua_memory.upkeep import sync as cloning


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = new_shell(tmp_path)
    shell.ok("insert", "Alice drinks tea")
    return shell


def remote(shell: Shell, head: str = "master", name: str = "remote.git") -> Path:
    git(shell.home, "init", "--quiet", "--bare", f"--initial-branch={head}", name)
    return shell.home / name


def second(shell: Shell, address: Path | str, folder: str = "two") -> Shell:
    """The shell of the other machine."""
    shell.ok("init", str(shell.home / folder), "--from", str(address))
    return Shell(shell.home, shell.home / folder, shell.env, time=shell.time)


def test_an_ordinary_bare_remote_can_be_cloned_afterwards(shell: Shell) -> None:
    """`git init --bare` has HEAD at master; a plain clone of it was empty."""
    there = remote(shell)
    done = shell.ok("sync", "--remote", str(there))
    assert "HEAD of the remote led to no branch; it leads to main now" in done.err
    git(shell.home, "clone", "--quiet", str(there), "plain")
    plain = Shell(shell.home, shell.home / "plain", shell.env, time=shell.time)
    assert "Alice drinks tea" in plain.ok("search", "tea").out and plain.ok("sync")


def test_a_head_that_leads_somewhere_is_left(shell: Shell) -> None:
    there = remote(shell)
    work = repository(shell.home / "work", {"a.md": "text\n"})
    git(work, "push", "--quiet", str(there), "HEAD:master")
    assert "HEAD" not in shell.ok("sync", "--remote", str(there)).err
    assert (there / "HEAD").read_text() == "ref: refs/heads/master\n"
    assert "Alice" in second(shell, there).ok("search", "tea").out, "the branch that has the bank"


def test_the_second_machine_works_as_the_first(shell: Shell) -> None:
    there = remote(shell)
    shell.ok("sync", "--remote", str(there))
    (there / "HEAD").write_text("ref: refs/heads/master\n")
    settings = (shell.cwd / "ua-memory.toml").read_bytes()
    two = second(shell, there)
    assert (two.cwd / "ua-memory.toml").read_bytes() == settings
    assert git(two.cwd, "status", "--porcelain") == "" and git(two.cwd, "rev-parse", "HEAD") == git(
        shell.cwd, "rev-parse", "HEAD"
    )
    assert "Alice drinks tea" in two.ok("search", "tea").out
    two.ok("insert", "Bob drinks water")
    assert "sent 1 revision" in two.ok("sync").out
    assert "received 1 revision" in shell.ok("sync").out and "Bob" in shell.ok("search", "water").out
    assert two.ok("verify") and git(two.cwd, "pull", "--quiet") == ""


def test_the_recipe_of_the_documentation(shell: Shell) -> None:
    """docs/sync.md, as it stands there, with an ordinary bare remote."""
    page = (Path(__file__).parent.parent / "docs/sync.md").read_text("utf-8")
    rows = [re.split(r"  +", row)[0] for row in re.findall(r"```text\n(.*?)```", page, re.S)[0].splitlines()]
    assert [row.split()[1] for row in rows] == ["sync", "init", "sync", "sync"] and "--from" in rows[1]
    there, two = remote(shell), shell.home / "ua-memory"
    for n, row in enumerate(rows):
        known = row.replace("git@example.org:alice/memory.git", str(there)).replace("~", str(shell.home))
        for each in (shell, Shell(shell.home, two, shell.env, time=shell.time)) if n > 1 else (shell,):
            each.ok(*shlex.split(known)[1:])
    assert "Alice" in Shell(shell.home, two, shell.env, time=shell.time).ok("search", "tea").out


def test_a_head_that_cannot_be_set_is_told(shell: Shell, tmp_path: Path) -> None:
    """Through `ssh`, which here is a shell."""
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\neval "$1"\n')
    ssh.chmod(0o755)
    git(tmp_path, "config", "--file", os.environ["GIT_CONFIG_GLOBAL"], "core.sshCommand", str(ssh))
    address = f"there:{remote(shell)}"
    done = shell.ok("sync", "--remote", address)
    assert f"a plain git clone finds nothing there; ua-memory init --from {address} does" in done.err
    assert "Alice" in second(shell, address).ok("search", "tea").out


def test_a_folder_is_meant_from_where_the_caller_stands(shell: Shell) -> None:
    """As by `init --from`; git itself starts at the bank."""
    there, outside = remote(shell), Shell(shell.home, shell.home, shell.env, time=shell.time)
    named = os.path.relpath(there, shell.home)
    done = outside.ok("--bank", str(shell.cwd), "sync", "--remote", named)
    assert f"Synced with {there.resolve()}" in done.out
    shell.ok("git", "remote", "set-url", "origin", os.path.relpath(there, shell.cwd))
    outside.ok("--bank", str(shell.cwd), "sync", "--remote", named)


def test_an_archive_is_imported(shell: Shell) -> None:
    assert "not written to standard output" in shell("export", "-").err and not (shell.cwd / "-").exists()
    shell.ok("export", str(shell.home / "a.tar"))
    done = shell("init", str(shell.home / "two"), "--from", str(shell.home / "a.tar"))
    assert done.code == 2 and f"ua-memory import archive {shell.home / 'a.tar'}" in done.err
    shell.ok("init", str(shell.home / "two"))
    there = Shell(shell.home, shell.home / "two", shell.env, time=shell.time)
    assert "2 revisions; statements: 1 new\n" in there.ok("import", "archive", str(shell.home / "a.tar")).out
    assert "Imported the archive a.tar" in there.ok("log").out


def test_its_json_and_a_second_run(shell: Shell) -> None:
    there = remote(shell)
    shell.ok("sync", "--remote", str(there))
    address, folder = os.path.relpath(there, shell.cwd), shell.home / "two"
    found = json.loads(shell.ok("init", str(folder), "--from", address, "--json").out)
    assert (found["from"], found["branch"], found["bank"]) == (str(there), "main", str(folder))
    assert found["made"] == [] and found["files"] >= 3 and found["revisions"] >= 2
    assert "is already a memory bank" in shell.ok("init", str(folder), "--from", address).out


@pytest.mark.few(2)
@pytest.mark.parametrize("stop", ["create", "fetch_objects", "set_remote", "read_all"])
def test_killed_on_the_way_it_is_begun_anew(shell: Shell, stop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there = remote(shell)
    shell.ok("sync", "--remote", str(there))

    class Killed(BaseException):
        pass

    def dies(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(git_history.History, stop, dies)
        patch.setattr(cloning.shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(Killed):
            cloning.clone(shell.home / "two", str(there))
    assert not (shell.home / "two").exists() and (shell.home / f".two{cloning.PART_SUFFIX}").exists()
    assert "Alice" in second(shell, there).ok("search", "tea").out
    assert not (shell.home / f".two{cloning.PART_SUFFIX}").exists()


def test_what_is_refused(shell: Shell, tmp_path: Path) -> None:
    there, folder = remote(shell), shell.home / "two"
    asked = ["init", str(folder), "--from", str(there)]
    done = shell(*asked)
    assert done.code == 3 and "the remote is empty" in done.err and "sync --remote" in done.err
    work = repository(shell.home / "work", {"memory/__init__.py": "1\n", "README.md": "code\n"})
    git(work, "push", "--quiet", str(there), "HEAD:master")
    done = shell(*asked)
    assert done.code == 3 and "no branch of the remote has a memory bank (master)" in done.err
    done = shell("init", str(folder), "--from", str(tmp_path / "nowhere.git"))
    assert done.code == 11 and "nowhere.git" in done.err
    folder.mkdir()
    (folder / "mine.txt").write_text("mine\n")
    done = shell(*asked)
    assert done.code == 2 and "not empty" in done.err
    assert [file.name for file in folder.iterdir()] == ["mine.txt"]
    assert not [file for file in shell.home.iterdir() if file.name.endswith(cloning.PART_SUFFIX)]


def test_a_link_of_a_strangers_is_not_made(shell: Shell) -> None:
    there = remote(shell, "main")
    shell.ok("sync", "--remote", str(there))
    (shell.cwd / "notes").symlink_to("/etc")
    git(shell.cwd, "add", "notes")
    git(shell.cwd, "commit", "--quiet", "-m", "a link")
    git(shell.cwd, "push", "--quiet", str(there), "main")
    done = shell.ok("init", str(shell.home / "two"), "--from", str(there))
    assert "notes is not a regular file, and was not checked out" in done.err
    assert not (shell.home / "two/notes").exists() and not (shell.home / "two/notes").is_symlink()
    (shell.cwd / "memory/x.md").symlink_to("/etc/passwd")
    git(shell.cwd, "add", "memory/x.md")
    git(shell.cwd, "commit", "--quiet", "-m", "a link")
    git(shell.cwd, "push", "--quiet", str(there), "main")
    done = shell("init", str(shell.home / "three"), "--from", str(there))
    assert done.code == 7 and "symbolic link" in done.err and not (shell.home / "three").exists()


def test_memory_beside_code_belongs_beside_code(shell: Shell) -> None:
    there = remote(shell)
    code = repository(shell.home / "code", {"a.py": "1\n"})
    beside = Shell(shell.home, code, shell.env, time=shell.time)
    beside.ok("init", str(code))
    beside.ok("sync", "--remote", str(there))
    done = shell("init", str(shell.home / "two"), "--from", str(there))
    assert (
        done.code == 7
        and "separate from a code repository" in done.err
        and "ua-memory init, then" in done.err
    )
