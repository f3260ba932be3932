"""A file or folder that may not be read is a problem to tell of; the rest of the bank goes on."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from banks import git
from terminal import Shell, new_shell
from unreadable import unreadable

from ua_memory.errors import CannotWrite, writing
from ua_memory.memory import Memory

GOES_ON = (
    "insert written", "consolidate", "stats", "scan", "log", "observations list", "pages list",
    "entities list", "export ../all.tar", "index rebuild",
)  # fmt: skip
NOTES = ("memory/one.md", "memory/two.md", "memory/sub/three.md")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = new_shell(tmp_path)
    for path in NOTES:
        shell.write(path, f"# Note\n\n- {path} has walnuts.\n")
    shell.ok("insert", "Alice likes tea.")
    shell.ok("search", "walnuts")
    with Memory.open(shell.cwd) as memory:
        memory.store.adopt()
    return shell


@pytest.mark.few(2)
@pytest.mark.parametrize("path", ["memory/one.md", "memory/sub", "memory/sub/three.md", "MEMORY.md"])
def test_what_cannot_be_read_is_named_and_stops_nothing_else(shell: Shell, path: str) -> None:
    """I30, I56"""
    there = next(note for note in NOTES if not note.startswith(path))
    with unreadable(shell.cwd / path):
        assert f"{path}:1: cannot be read: Permission denied" in shell("verify").out
        assert "Problems" in shell.ok("status").out
        found = shell("doctor")
        assert found.code == 12 and f"{path}: Permission denied" in found.out
        assert f"chmod u+rw{'x' * (not path.endswith('.md'))} " in found.out and path in found.out
        assert there in shell.ok("search", "walnuts").out
        for verb in (*GOES_ON, f"get {there}"):
            done = shell(*verb.split())
            assert done.code == 0, (verb, done.err)
        assert "written" in shell.ok("search", "written").out
    assert shell("verify").code == 0 and all(note in shell.ok("search", "walnuts").out for note in NOTES)
    assert "walnuts" not in shell.ok("diff").out


@pytest.mark.parametrize("path", ["memory/one.md", "memory/sub"])
def test_what_cannot_be_read_is_not_taken_for_deleted(shell: Shell, path: str) -> None:
    """I7"""
    with unreadable(shell.cwd / path):
        shell.ok("insert", "Something else.")
        shell.ok("search", "else")
        with Memory.open(shell.cwd) as memory:
            memory.store.adopt()
        out = shell.ok("status").out
        assert "Edited" not in out and "Held" not in out
    for note in NOTES:
        assert "walnuts" in git(shell.cwd, "show", f"HEAD:{note}")


def test_who_needs_what_cannot_be_read_is_told_the_command_that_opens_it(shell: Shell) -> None:
    today = shell.ok("search", "Alice", "--json").json["results"][0]["path"]
    with unreadable(shell.cwd / today):
        done = shell("insert", "Something else.")
    assert done.code == 10 and f"hint: chmod u+rw {shell.cwd / today}" in done.err


def test_a_bank_whose_memory_is_shut_says_so(shell: Shell) -> None:
    with unreadable(shell.cwd / "memory"):
        assert "Problems  1" in shell.ok("status").out
        assert "memory:1: cannot be read" in shell("verify").out and "chmod u+rwx" in shell("doctor").out
        assert shell("insert", "lost").code == 10
    assert shell("verify").code == 0


def test_a_forgetting_does_not_vouch_for_what_it_could_not_read(shell: Shell) -> None:
    """I68"""
    with unreadable(shell.cwd / "memory/sub"):
        done = shell("forget", "--query", "tea", "--yes")
        assert done.code == 20 and "memory/sub" in done.err


def test_a_link_that_leads_nowhere_is_named(shell: Shell) -> None:
    (shell.cwd / "memory/gone.md").symlink_to("/nowhere/at/all.md")
    assert "memory/gone.md:1: a symbolic link is not followed" in shell("verify").out
    assert shell.ok("status").out and shell.ok("search", "walnuts").out


def test_a_folder_in_the_place_of_a_file_is_named_and_stops_nothing(shell: Shell) -> None:
    """I7, I56"""
    (shell.cwd / NOTES[0]).unlink()
    (shell.cwd / NOTES[0]).mkdir()
    assert f"{NOTES[0]}:1: cannot be read: Is a directory" in shell("verify").out
    assert "mv " in shell("doctor").out
    for verb in ("log", "status", "search walnuts", "insert more"):
        assert "Edited" not in shell.ok(*verb.split()).out
    assert "walnuts" in git(shell.cwd, "show", f"HEAD:{NOTES[0]}")


@pytest.mark.parametrize(
    ("owner", "hint"), [(1234567, "another user owns it"), (os.geteuid(), "check owner")]
)
def test_a_bank_of_another_user_is_named_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: int, hint: str
) -> None:
    monkeypatch.setattr(os, "lstat", lambda _: SimpleNamespace(st_uid=owner, st_mode=0o40700))
    with pytest.raises(CannotWrite) as refused, writing(tmp_path / "state" / "lock"):
        raise PermissionError(13, "Permission denied")
    assert hint in str(refused.value.hint)


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.EMFILE, "ulimit -n 1024"),
        (errno.ENOSPC, "df -h"),
        (errno.EROFS, "mount it writable"),
        (errno.ENOTDIR, "check owner, mode and free space"),
    ],
)
def test_an_error_of_the_system_names_what_mends_it(tmp_path: Path, number: int, hint: str) -> None:
    """Of a limit of open files it said to check owner, mode and free space."""
    with pytest.raises(CannotWrite) as refused, writing(tmp_path):
        raise OSError(number, os.strerror(number))
    assert hint in str(refused.value.hint)
