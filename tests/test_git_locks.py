"""Locks that a killed git has left: found wherever they lock somebody out, and removed where nobody is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from banks import git, repository
from terminal import Shell, new_shell

from ua_memory.git import process as locks

LEFT = (
    "HEAD.lock", "index.lock", "config.lock", "packed-refs.lock", "shallow.lock", "gc.pid",
    "refs/heads/main.lock", "refs/remotes/origin/ua-memory-agreed.lock", "refs/remotes/origin/main.lock",
    "refs/remotes/origin/ua-memory-incoming.lock", "objects/pack/pack-1.keep", "ua-memory-remote-x",
)  # fmt: skip
HOUR = 3600


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = new_shell(tmp_path)
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
    shell.ok("insert", "Alice drinks tea")
    shell.ok("sync", "--remote", str(tmp_path / "remote.git"))
    return shell


def trail(shell: Shell) -> Path:
    return Path(shell.ok("status", "--json").json["trail"])


def leave(file: Path, *, age: int = HOUR) -> Path:
    """Leave a lock, made so many seconds ago."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.name.startswith(locks.TEMP_PREFIX):
        (file / "refs").mkdir(parents=True)
    else:
        file.write_text(locks.IMPORT_MARK if file.suffix == ".keep" else "")
    then = file.stat().st_mtime - age
    os.utime(file, (then, then))
    return file


def found(shell: Shell, *words: str) -> dict[str, object]:
    checks = shell("doctor", *words, "--json").json["checks"]
    return next(check for check in checks if check["name"] == "locks")


@pytest.mark.few(2)
@pytest.mark.parametrize("name", LEFT)
def test_a_lock_that_nobody_holds_is_named_and_removed(shell: Shell, name: str) -> None:
    file = leave(trail(shell) / name)
    seen = found(shell)
    assert not seen["ok"] and str(file) in str(seen["seen"]) and seen["mend"] == "ua-memory doctor --mend"
    done = shell.ok("doctor", "--mend").out
    assert f"mended  locks      left by an interrupted git: {file}" in done and "hint:" not in done
    assert not file.exists() and found(shell)["ok"]
    shell.ok("insert", "Bob drinks water")
    shell.ok("sync")


@pytest.mark.few(3)
@pytest.mark.parametrize("name", LEFT[3:9] + LEFT[9:10])
def test_a_killed_sync_does_not_lock_the_next_one_out(shell: Shell, name: str) -> None:
    file = leave(trail(shell) / name)
    shell.ok("insert", "Bob drinks water")
    done = shell.ok("sync")
    assert f"removed a lock left by an interrupted git: {file}" in done.err or not file.exists()
    assert "sent 1 revision" in done.out


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["HEAD.lock", "packed-refs.lock", "refs/heads/main.lock"])
def test_a_lock_in_a_folder_that_is_pushed_to(shell: Shell, tmp_path: Path, name: str) -> None:
    file = leave(tmp_path / "remote.git" / name)
    assert not found(shell)["ok"] and found(shell, "--mend")["mended"] and not file.exists()
    leave(file)
    shell.ok("insert", "Bob drinks water")
    assert "sent 1 revision" in shell.ok("sync").out


def test_the_first_push_finds_a_lock(tmp_path: Path) -> None:
    """The address is not known then to any other command."""
    shell = new_shell(tmp_path)
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
    file = leave(tmp_path / "remote.git/refs/heads/main.lock")
    done = shell.ok("sync", "--remote", str(tmp_path / "remote.git"))
    assert f"removed a lock left by an interrupted git: {file}" in done.err


@pytest.mark.parametrize("where", ["trail", "remote"])
def test_what_may_be_held_is_left_alone(shell: Shell, tmp_path: Path, where: str) -> None:
    place = trail(shell) if where == "trail" else tmp_path / "remote.git"
    file = leave(place / "refs/heads/main.lock", age=0)
    seen = found(shell, "--mend")
    assert seen["ok"] and file.exists() and "may be" not in str(seen["mended"])
    assert "0 s ago" in str(seen["seen"])
    os.utime(file, (1, 1))
    process = subprocess.Popen(["git", "cat-file", "--batch"], cwd=place, stdin=subprocess.PIPE)
    try:
        seen = found(shell, "--mend")
        assert file.exists() and f"process {process.pid} (git cat-file) is running there" in str(seen["seen"])
    finally:
        process.communicate()
    assert found(shell, "--mend")["mended"] and not file.exists()


def test_where_processes_cannot_be_seen_age_decides(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "PROCESSES", tmp_path / "nowhere")
    file = leave(trail(shell) / "HEAD.lock", age=locks.STALE_SECONDS_UNSEEN // 2)
    assert found(shell, "--mend")["ok"] and file.exists()
    os.utime(file, (1, 1))
    assert found(shell, "--mend")["mended"] and not file.exists()


def test_a_mark_of_a_person_s_is_no_lock(shell: Shell) -> None:
    file = trail(shell) / "objects/pack/pack-1.keep"
    file.parent.mkdir(exist_ok=True)
    file.write_text("precious\n")
    assert found(shell, "--mend")["ok"] and file.exists()


def test_a_remote_elsewhere_says_which_file_and_why(shell: Shell, tmp_path: Path) -> None:
    """Through `ssh`, which here is a shell: nothing of that machine's can be removed from here."""
    ssh = tmp_path / "ssh"
    ssh.write_text('#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\neval "$1"\n')
    ssh.chmod(0o755)
    git(tmp_path, "config", "--file", os.environ["GIT_CONFIG_GLOBAL"], "core.sshCommand", str(ssh))
    shell.ok("git", "remote", "set-url", "origin", f"there:{tmp_path}/remote.git")
    shell.ok("insert", "Bob drinks water")
    file = leave(tmp_path / "remote.git/refs/heads/main.lock")
    done = shell("sync")
    assert done.code == 5 and file.exists()
    assert "File exists" in done.err and "refs/heads/main.lock" in done.err.split("hint: ")[1]
    assert "others push" not in done.err and "doctor" not in done.err
    file.unlink()
    shell.ok("sync")


def test_a_lock_beside_code(tmp_path: Path) -> None:
    shell = new_shell(tmp_path)
    shell.cwd = repository(tmp_path / "home" / "code", {"a.py": "1\n"})
    shell.ok("init", str(shell.cwd))
    file = leave(trail(shell) / "packed-refs.lock")
    theirs = leave(shell.cwd / ".git" / "index.lock")
    assert found(shell, "--mend")["mended"] and not file.exists() and theirs.exists()
