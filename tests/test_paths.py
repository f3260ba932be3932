"""Where banks, trails and files lie, and that no path leads out of a bank."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from banks import git, repository

from ua_memory.errors import Usage
from ua_memory.paths import (
    confined,
    default_bank,
    derived_id,
    discover,
    git_around,
    is_bank,
    is_memory_file,
    locate,
)

# -- which folder is a bank ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["ua-memory.toml", "MEMORY.md", "memory.md", "memory/2026-11-21.md", "memory/2026-11-21-slug.md"]
)
def test_a_marked_folder_is_a_bank(tmp_path: Path, name: str) -> None:
    assert not is_bank(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("id = 'k7m2q9x4tb'\n" if name.endswith(".toml") else "")
    assert is_bank(tmp_path)


@pytest.mark.parametrize("data", [b"", b"\n \t\r\n", b"\xef\xbb\xbf\n"])
def test_empty_settings_make_no_bank(tmp_path: Path, data: bytes) -> None:
    home, inner = tmp_path / "home", tmp_path / "home/project"
    (inner / "memory").mkdir(parents=True)
    (inner / "ua-memory.toml").write_bytes(data)
    assert not is_bank(inner) and discover(inner, home) is None
    (home / "ua-memory.toml").write_text("# settings of ours\n")
    assert discover(inner, home) == home
    (inner / "memory/2026-11-21.md").touch()
    assert discover(inner, home) == inner, "a bank whose settings somebody has emptied stays one"


@pytest.mark.parametrize(
    "name",
    [
        "memory/__init__.py",
        "memory/2026-11-21.py",
        "memory/notes.md",
        "memory/20261121.md",
        "memory/2026-11-211.md",
    ],
)
def test_a_code_package_called_memory_is_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / name).touch()
    assert not is_bank(tmp_path)


def test_a_file_called_memory_is_none(tmp_path: Path) -> None:
    (tmp_path / "memory").touch()
    assert not is_bank(tmp_path)


# -- looking upwards -------------------------------------------------------------------------------------


def test_the_nearest_bank_above_is_found(tmp_path: Path) -> None:
    inner = tmp_path / "home" / "bank" / "a" / "b"
    inner.mkdir(parents=True)
    home = tmp_path / "home"
    assert discover(inner, home) is None
    (tmp_path / "MEMORY.md").touch()
    assert discover(inner, home) is None, "the search ends at home"
    (home / "MEMORY.md").touch()
    assert discover(inner, home) == home
    (home / "bank" / "ua-memory.toml").write_text("id = 'k7m2q9x4tb'\n")
    assert discover(inner, home) == home / "bank"
    assert discover(home / "bank", home) == home / "bank"


def test_a_linked_worktree_has_the_bank_of_the_main_one(tmp_path: Path) -> None:
    top, other = tmp_path / "repo", tmp_path / "other"
    repository(top, {"app/a.py": "", "b.py": ""})
    git(top, "worktree", "add", "-q", str(other))
    assert discover(other / "app", tmp_path) is None
    (top / "MEMORY.md").touch()
    assert discover(other / "app", tmp_path) == discover(other, tmp_path) == top
    (top / "app" / "MEMORY.md").touch()
    assert discover(other / "app", tmp_path) == top / "app" and discover(other, tmp_path) == top
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / ".git").write_bytes((other / ".git").read_bytes())
    assert discover(copy, tmp_path) is None, "the repository does not know this folder"
    (tmp_path / "MEMORY.md").touch()
    assert discover(other, tmp_path) == top, "nearer than what both lie in"
    (other / "MEMORY.md").touch()
    assert discover(other / "app", tmp_path) == other, "its own"


def test_home_may_be_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "data" / "home" / "work").mkdir(parents=True)
    (tmp_path / "home").symlink_to("data/home")
    (tmp_path / "MEMORY.md").touch()
    assert discover(tmp_path / "data/home/work", tmp_path / "home") is None
    assert discover(tmp_path / "home" / "work", tmp_path / "data" / "home") is None


def test_outside_home_the_search_goes_to_the_border_of_the_file_system(tmp_path: Path) -> None:
    (tmp_path / "srv" / "x").mkdir(parents=True)
    (tmp_path / "srv" / "MEMORY.md").touch()
    assert discover(tmp_path / "srv" / "x", tmp_path / "home") == tmp_path / "srv"


def test_a_mount_is_not_crossed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mnt" / "x").mkdir(parents=True)
    (tmp_path / "MEMORY.md").touch()
    real = os.stat

    def stat(path: Any, **more: Any) -> os.stat_result:
        found = real(path, **more)
        outside = path in map(str, (tmp_path, *tmp_path.parents))
        return os.stat_result((*found[:2], found.st_dev + (1 if outside else 0), *found[3:10]))

    monkeypatch.setattr(os, "stat", stat)
    assert discover(tmp_path / "mnt" / "x", tmp_path / "home") is None
    (tmp_path / "mnt" / "MEMORY.md").touch()
    assert discover(tmp_path / "mnt" / "x", tmp_path / "home") == tmp_path / "mnt"


def test_a_folder_that_is_gone_has_no_bank(tmp_path: Path) -> None:
    assert discover(tmp_path / "gone", tmp_path) is None


def test_the_default_bank_is_in_plain_sight(tmp_path: Path) -> None:
    assert default_bank(tmp_path).parent == tmp_path
    assert not default_bank(tmp_path).name.startswith(".")


# -- the repository around a folder ------------------------------------------------------------------------


def test_no_repository(tmp_path: Path) -> None:
    assert git_around(tmp_path) is None


def test_a_repository_and_its_subfolder(tmp_path: Path) -> None:
    top = repository(tmp_path / "code", {"src/a.py": ""})
    for folder in (top, top / "src"):
        place = git_around(folder)
        assert place and (place.top, place.git_dir, place.common) == (top, top / ".git", top / ".git")
        assert place.worktree == "main"


def test_a_worktree_shares_its_repository(tmp_path: Path) -> None:
    top = repository(tmp_path / "code", {"a.py": ""})
    git(top, "worktree", "add", "-q", str(tmp_path / "other"))
    place = git_around(tmp_path / "other")
    assert place and place.common == top / ".git"
    assert place.git_dir == top / ".git" / "worktrees" / "other"
    assert place.worktree == "other"


def test_a_submodule_is_a_repository_of_its_own(tmp_path: Path) -> None:
    part = repository(tmp_path / "part", {"a.py": ""})
    top = repository(tmp_path / "code", {"b.py": ""})
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(part), "lib")
    place = git_around(top / "lib")
    assert place and place.top == top / "lib"
    assert place.git_dir == place.common == top / ".git" / "modules" / "lib"
    assert place.worktree == "main"


def test_a_git_file_that_leads_nowhere_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: ../moved/.git/worktrees/x\n")
    assert git_around(tmp_path) is None
    (tmp_path / ".git").write_bytes(b"\xff\x00")
    assert git_around(tmp_path) is None


# -- the state folder --------------------------------------------------------------------------------------


def test_state_of_a_bank_of_its_own(tmp_path: Path) -> None:
    top = repository(tmp_path / "bank")
    bank = locate(top, own=True, bank_id="abc")
    assert (bank.own, bank.git_dir, bank.state) == (True, top / ".git", top / ".git" / "ua-memory")
    assert {bank.pending, bank.index, bank.cache, bank.local} == {
        bank.state / name for name in ("pending", "index", "cache", "local")
    }


def test_state_inside_somebody_s_repository(tmp_path: Path) -> None:
    top = repository(tmp_path / "code", {"sub/a.py": ""})
    bank = locate(top / "sub", bank_id="abc")
    assert (bank.own, bank.state) == (False, top / ".git" / "ua-memory" / "abc-main")
    assert bank.git_dir == bank.state / "trail.git"
    assert locate(top / "sub", own=True, bank_id="abc") == bank, "own is for the top of a repository"


def test_each_worktree_has_its_own_state(tmp_path: Path) -> None:
    top = repository(tmp_path / "code", {"a.py": ""})
    git(top, "worktree", "add", "-q", str(tmp_path / "other"))
    one, two = locate(top, bank_id="abc"), locate(tmp_path / "other", bank_id="abc")
    assert one.state.parent == two.state.parent == top / ".git" / "ua-memory"
    assert (one.state.name, two.state.name) == ("abc-main", "abc-other")


def test_state_without_git(tmp_path: Path) -> None:
    bank = locate(tmp_path, own=True)
    assert (bank.own, bank.state) == (False, tmp_path / ".ua-memory")


def test_a_link_to_a_bank_leads_to_the_same_state(tmp_path: Path) -> None:
    (tmp_path / "bank").mkdir()
    (tmp_path / "link").symlink_to("bank")
    assert locate(tmp_path / "link") == locate(tmp_path / "bank")


def test_a_derived_id_is_the_same_in_every_checkout(tmp_path: Path) -> None:
    one, two = repository(tmp_path / "one", {"sub/a": ""}), repository(tmp_path / "two", {"sub/a": ""})
    assert derived_id(one / "sub", git_around(one)) == derived_id(two / "sub", git_around(two))
    assert derived_id(one / "sub", git_around(one)) != derived_id(one, git_around(one))


# -- paths of the truth ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "MEMORY.md",
        "memory.md",
        "ua-memory.toml",
        "memory/2026-11-21.md",
        "memory/a/b/c.md",
        "memory/é ü — 名.md",
        "memory/a..b.md",
        "memory/a...md",
        "memory/" + "a" * 252 + ".md",
    ],
)
def test_a_file_of_the_truth(tmp_path: Path, path: str) -> None:
    assert is_memory_file(path)
    assert confined(tmp_path, path) == tmp_path / path


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "memory",
        "memory/",
        "memory/x",
        "memory/x.txt",
        "memory/x.MD",
        "README.md",
        "notes/x.md",
        "AGENTS.md",
        "/etc/passwd",
        "/memory/x.md",
        "../memory/x.md",
        "memory/../x.md",
        "memory/../memory/x.md",
        "memory/a/../../x.md",
        "memory/./x.md",
        "./memory/x.md",
        "memory//x.md",
        "memory/.x.md",
        "memory/.obsidian/x.md",
        "memory/..md",
        "memory\\x.md",
        "memory/..\\..\\x.md",
        "memory/x\0.md",
        "memory/x.md\0",
        "memory/x\n.md",
        "memory/x\x85.md",
        "memory/" + "a" * 253 + ".md",
        "memory/" + "a/" * 600 + "x.md",
        "~/memory/x.md",
        ".git/config",
        ".ua-memory/x.md",
        "memory/\ud800" + "\udfff" * 300 + ".md",
    ],
)
def test_what_is_no_file_of_the_truth(tmp_path: Path, path: str) -> None:
    """I63"""
    assert not is_memory_file(path)
    with pytest.raises(Usage):
        confined(tmp_path, path)


def test_no_symbolic_link_is_followed(tmp_path: Path) -> None:
    """I63"""
    root, outside = tmp_path / "bank", tmp_path / "outside"
    (root / "memory").mkdir(parents=True)
    outside.mkdir()
    (outside / "x.md").write_text("- theirs\n")
    (root / "memory" / "link.md").symlink_to(outside / "x.md")
    (root / "memory" / "gone.md").symlink_to(outside / "gone.md")
    (root / "memory" / "folder").symlink_to(outside)
    (root / "MEMORY.md").symlink_to(outside / "x.md")
    for path in ("memory/link.md", "memory/gone.md", "memory/folder/x.md", "MEMORY.md"):
        with pytest.raises(Usage, match="symbolic link"):
            confined(root, path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "memory").symlink_to(outside)
    with pytest.raises(Usage, match="symbolic link"):
        confined(tmp_path / "other", "memory/x.md")
