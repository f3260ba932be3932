"""A trail that lacks an object: told at once, and made whole again from what the files hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from banks import DAY, git, repository
from terminal import Shell, new_shell

from ua_memory.git.history import History
from ua_memory.git.repository import missing_from_head, tree_objects


@pytest.fixture(params=["own", "beside"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    shell = new_shell(tmp_path)
    if request.param == "beside":
        shell.cwd = repository(tmp_path / "home" / "code", {"a.py": "1\n"})
        shell.ok("init", str(shell.cwd))
    shell.write("memory/notes/a.md", "- a note\n")
    shell.ok("init", str(shell.cwd))
    shell.ok("insert", "Alice drinks tea")
    shell.write("memory/notes/b.md", "- not committed yet\n")
    shell.ok("insert", "Bob drinks water")
    return shell


def lose(shell: Shell, what: str, *, noise: bool = False) -> str:
    """Take an object out of the trail, or make it noise; its id."""
    trail = Path(shell.ok("status", "--json").json["trail"])
    name = git(shell.cwd, "--git-dir", str(trail), "rev-parse", what).strip()
    file = trail / "objects" / name[:2] / name[2:]
    file.chmod(0o644)
    file.unlink()
    if noise:
        file.write_bytes(b"noise")
    return name


HELD = (
    "HEAD^{tree}",
    "HEAD:memory",
    "HEAD:memory/notes",
    f"HEAD:{DAY}",
    "HEAD:MEMORY.md",
    "HEAD:memory/notes/a.md",
)


@pytest.mark.few(5)
@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("what", HELD)
def test_what_the_files_hold_is_written_again(shell: Shell, what: str, noise: bool) -> None:
    name = lose(shell, what, noise=noise)
    if not noise or not what.endswith(".md"):  # the content of a file is not read by a quick look
        assert name[:10] in shell.ok("status").out and shell.ok("status", "--json").json["problems"] == 1
    done = shell("doctor")
    assert done.code == 12 and name[:10] in done.out and "ua-memory doctor --mend" in done.out
    assert "mended  history" in shell.ok("doctor", "--mend").out
    assert shell.ok("verify") and "damage" not in shell.ok("status", "--json").json


@pytest.mark.few(2)
@pytest.mark.parametrize("what", HELD[:2])
def test_what_could_not_be_committed_meanwhile_is_committed(shell: Shell, what: str) -> None:
    lose(shell, what)
    assert "not committed yet" in shell.ok("insert", "Carol keeps bees").out
    shell.ok("doctor", "--mend")
    found = shell.ok("status", "--json").json
    assert not found["pending"] and found["head"]["op"] == "insert" and found["problems"] == 0


def test_what_is_written_next_writes_again_what_the_file_held(shell: Shell) -> None:
    lose(shell, f"HEAD:{DAY}")
    shell.ok("insert", "Carol keeps bees")
    assert shell.ok("verify") and "Carol keeps bees" in shell.ok("log").out
    shell.ok("undo")


def test_what_a_file_held_before_lines_were_put_at_its_end_is_written_again(shell: Shell) -> None:
    lose(shell, f"HEAD:{DAY}")
    shell.write(DAY, (shell.cwd / DAY).read_text(encoding="utf-8") + "- by hand\n")
    assert "not committed yet" in shell.ok("insert", "Carol keeps bees").out
    assert "mended  history" in shell.ok("doctor", "--mend").out
    found = shell.ok("status", "--json").json
    assert not found["pending"] and found["problems"] == 0 and "by hand" in shell.ok("log").out


def test_verify_tells_of_a_page_whose_earlier_content_is_lost(shell: Shell) -> None:
    """It ended with GitFailed, and told of nothing else that it had found."""
    page = "memory/pages/tea.md"
    text = "---\nid: tea\nname: Tea\nsource_query: Who drinks tea?\n---\n\nWords of mine.\n"
    for words in (text, f"{text}\nMore.\n"):
        shell.write(page, words)
        shell.ok("init", str(shell.cwd))  # commits it
    name = lose(shell, f"HEAD~1:{page}")
    done = shell("verify")
    assert done.code == 12 and name in done.out
    blame = shell("blame", page)
    assert blame.code == 11 and f"object {name} is missing" in blame.err and "ua-memory doctor" in blame.err


def test_a_state_before_the_newest_that_lacks_an_object_is_told_by_status(shell: Shell) -> None:
    name = lose(shell, f"HEAD~1:{DAY}")
    assert name[:10] in shell.ok("status").out and shell.ok("status", "--json").json["problems"] == 1


@pytest.mark.parametrize("recent", [1, 1000])
def test_a_revision_that_is_missing_is_told_however_far_back(
    shell: Shell, recent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ua_memory.git.repository.CHECKED_REVISIONS", recent)
    trail = History(Path(shell.ok("status", "--json").json["trail"]), shell.cwd, own=True)
    assert missing_from_head(trail) == ""
    lose(shell, "HEAD~2")
    assert missing_from_head(trail)
    assert shell.ok("status", "--json").json["damage"]


def test_several_at_once(shell: Shell) -> None:
    for what in (f"HEAD:{DAY}", "HEAD:memory", "HEAD^{tree}"):
        lose(shell, what)
    shell.ok("doctor", "--mend")
    assert shell.ok("verify")


@pytest.mark.few(3)
@pytest.mark.parametrize("what", ["HEAD", "HEAD~1", "HEAD~2:memory", f"HEAD~2:{DAY}"])
def test_what_no_file_holds_comes_back_from_another_copy(shell: Shell, tmp_path: Path, what: str) -> None:
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git")
    shell.ok("sync", "--remote", str(tmp_path / "remote.git"))
    name = lose(shell, what)
    assert ":" in what or "ua-memory doctor" in shell.ok("status").out
    done = shell("doctor", "--mend")
    assert done.code == 12 and name[:10] in done.out
    hint = "ua-memory git fetch --refetch origin; then ua-memory doctor --mend"
    assert f"hint: {hint}" in done.out.replace("\n", " ").replace("  ", " ")
    for each in hint.split("; then "):
        assert shell(*each.split()[1:]).code == 0
    assert shell.ok("verify") and shell.ok("insert", "Carol keeps bees")


def test_trees_are_as_git_makes_them(tmp_path: Path) -> None:
    names = ("a", "a-b/x", "a.b", "a0/y", "b/c/d e", "b/ünï")
    folder = repository(tmp_path / "r", dict.fromkeys(names, "text\n"))
    (folder / "a0/y").chmod(0o755)
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "x")
    rows = git(folder, "ls-tree", "-r", "-z", "HEAD").split("\0")[:-1]
    listing = {row.split("\t")[1]: (row.split()[0], row.split("\t")[0].split()[2]) for row in rows}
    assert len(listing) == len(names) and git(folder, "rev-parse", "HEAD^{tree}").strip() in tree_objects(
        listing
    )
