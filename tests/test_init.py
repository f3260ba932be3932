"""Making banks: in every kind of folder, again, without git, and with git that comes later."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from banks import DAY, Bank, Clock, git, new_bank, repository

from ua_memory import config
from ua_memory.errors import CannotWrite, Malformed, Usage
from ua_memory.paths import discover, locate
from ua_memory.upkeep import init as bank

AGENTS = {"AGENTS.md": "# Agents\n", "SOUL.md": "# Soul\r\nno newline at the end"}


def everything(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes, `.git` left out."""
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and ".git" not in p.relative_to(folder).parts
    }


def outer_state(top: Path) -> tuple[str, ...]:
    """All that somebody's repository is: refs, index, objects, settings, what git says is new."""
    said = [git(top, *words) for words in (["for-each-ref"], ["ls-files", "-s"], ["config", "--local", "-l"])]
    objects = sorted(p.name for p in (top / ".git" / "objects").rglob("*") if p.is_file())
    return (*said, "\n".join(objects))


# -- a folder of its own -----------------------------------------------------------------------------------


def test_a_new_folder_becomes_a_repository_of_its_own(tmp_path: Path) -> None:
    clock = Clock()
    founded = bank.init(tmp_path / "a" / "bank", clock, timezone="Europe/Kyiv")
    root = tmp_path / "a" / "bank"
    assert founded.made == ("MEMORY.md", "ua-memory.toml")
    assert founded.bank == locate(root, own=True)
    assert founded.result.revision == git(root, "rev-parse", "HEAD").strip()
    assert git(root, "status", "--porcelain") == ""
    assert git(root, "log", "--format=%an %s") == "ua-memory init: make this folder a bank\n"
    loaded = config.load(root, {})
    assert (loaded.id, loaded.own, loaded.timezone) == (founded.config.id, True, "Europe/Kyiv")
    assert len(loaded.id) == 10 and not loaded.unknown
    assert stat.S_IMODE(founded.bank.state.stat().st_mode) == 0o700
    assert discover(root / "memory", tmp_path) == root


def test_twice_changes_nothing(tmp_path: Path) -> None:
    made = new_bank(tmp_path / "bank")
    before, log = everything(made.root), made.log()
    again = bank.init(made.root, made.clock, timezone="Asia/Tokyo")
    assert again.made == ()
    assert everything(made.root) == before
    assert made.log() == log
    assert again.config.id == made.store.config.id


def test_the_history_is_found_again_without_the_settings(tmp_path: Path) -> None:
    made = new_bank(tmp_path / "bank")
    (made.root / "ua-memory.toml").unlink()
    before = made.log()
    for _ in range(2):
        loaded = config.load(made.root, {})
        assert loaded.own and locate(made.root, own=loaded.own).git_dir == made.root / ".git"
        bank.init(made.root, made.clock)
    assert made.log()[-len(before) :] == before


def test_what_cannot_be_read_is_refused_before_a_repository_is_made(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").mkdir()
    with pytest.raises(CannotWrite, match="Is a directory") as error:
        bank.init(tmp_path, Clock())
    assert str(error.value.hint).startswith("mv ") and not (tmp_path / ".git").exists()


def test_a_folder_of_notes_is_kept_to_the_byte_and_is_the_person_s(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    files = {
        "memory.md": b"\xef\xbb\xbf# Me\r\n\r\n## Who\r\nAnn",
        "memory/2026-11-19.md": b"- one\n- two \xff\n\n\n",
        "memory/2026-11-20-slug.md": b"",
        "memory/deep/er/note.md": b"prose\n",
    }
    for name, data in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    (root / "picture.png").write_bytes(b"\x89PNG")
    founded = bank.init(root, Clock())
    assert founded.made == ("ua-memory.toml",), "memory.md is core memory too"
    assert everything(root).items() >= files.items()
    there = Bank(root)
    assert there.ops() == ["init", "edit"]
    assert [author for author, *_ in there.log()] == ["ua-memory", "person"]
    assert set(there.store.history.blobs()) == {*files, "ua-memory.toml"}
    assert there.clean()


def test_the_person_s_name_is_git_s(tmp_path: Path) -> None:
    Path(os.environ["GIT_CONFIG_GLOBAL"]).write_text("[user]\nname = Ann\nemail = ann@example.org\n")
    (tmp_path / "MEMORY.md").write_text("# Me\n")
    bank.init(tmp_path, Clock())
    assert [author for author, *_ in Bank(tmp_path).log()] == ["ua-memory", "Ann"]


# -- inside somebody's repository ------------------------------------------------------------------------


def test_an_openclaw_workspace_without_commits(tmp_path: Path) -> None:
    top = repository(tmp_path / "clawd")
    for name, text in AGENTS.items():
        (top / name).write_bytes(text.encode())
    (top / "memory").mkdir()
    (top / DAY).write_text("# Day\n\n- said\n")
    (top / "MEMORY.md").write_text("# Long-term\n\n## [USER]\n\nAnn\n")
    before = everything(top)
    founded = bank.init(top, Clock())
    assert not founded.bank.own
    assert founded.made == ("ua-memory.toml",)
    after = everything(top)
    assert {name: after[name] for name in before} == before
    assert after.keys() - before.keys() == {"ua-memory.toml"}
    assert founded.bank.state == top / ".git" / "ua-memory" / f"{founded.config.id}-main"
    assert Bank(top).ops() == ["init", "edit"]
    assert git(top, "for-each-ref") == ""
    assert not list((top / ".git" / "objects").rglob("??/*"))


@pytest.mark.parametrize("below", ["", "docs/agent"])
def test_inside_a_code_repository(tmp_path: Path, below: str) -> None:
    """I11"""
    top = repository(tmp_path / "code", {"src/a.py": "a = 1\n", ".gitignore": "*.pyc\n"})
    before = outer_state(top)
    founded = bank.init(top / below, Clock())
    there = Bank((top / below).resolve())
    there.insert("said inside")
    assert outer_state(top) == before
    assert founded.bank.state.parent == top / ".git" / "ua-memory"


@pytest.mark.parametrize("below", ["", "docs/agent"])
def test_git_clean_takes_the_files_and_init_finds_the_trail_again(tmp_path: Path, below: str) -> None:
    """I11"""
    top = repository(tmp_path / "code", {"src/a.py": "a = 1\n"})
    founded = bank.init(top / below, Clock())
    there = Bank((top / below).resolve())
    for n in range(9):
        there.insert(f"said {n}")
    git(top, "clean", "-fdxq")
    assert not (top / below / "ua-memory.toml").exists()
    again = bank.init(top / below, Clock())
    assert again.bank == founded.bank
    there.again()
    assert there.ops().count("insert") == 9
    assert b"said 8" in there.bytes() and not there.store.survey().changed, "what git took is there again"


def test_in_worktrees_and_submodules(tmp_path: Path) -> None:
    part = repository(tmp_path / "part", {"a.py": ""})
    top = repository(tmp_path / "code", {"b.py": ""})
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(part), "lib")
    git(top, "commit", "-qm", "second")
    git(top, "worktree", "add", "-q", str(tmp_path / "tree"))
    before = git(top, "for-each-ref"), git(top, "ls-files", "-s")
    states = set()
    for root in (top, tmp_path / "tree", top / "lib"):
        founded = bank.init(root, Clock())
        Bank(root).insert(f"said in {root.name}")
        assert not founded.bank.own
        states.add(founded.bank.state)
        assert Bank(root).ops() == ["insert", "init"]
    assert len(states) == 3
    assert {state.parent for state in states} == {top / ".git/ua-memory", top / ".git/modules/lib/ua-memory"}
    assert (git(top, "for-each-ref"), git(top, "ls-files", "-s")) == before


def test_a_derived_id_becomes_a_real_one_and_keeps_the_state(tmp_path: Path) -> None:
    top = repository(tmp_path / "clawd", {"MEMORY.md": "# Me\n"})
    early = Bank(top)
    done = early.insert("said before init")
    old = early.store.bank.state
    founded = bank.init(top, Clock())
    assert founded.bank.state != old
    assert not old.exists()
    there = Bank(top)
    assert there.store.bank == founded.bank
    assert there.ops() == ["init", "edit", "insert"]
    assert there.find(done.fact.id).text == "said before init"


def test_settings_by_hand_get_the_id_they_lack(tmp_path: Path) -> None:
    """Without an id in the file, the next command would look for its state in another folder."""
    (tmp_path / "ua-memory.toml").write_bytes(
        b'\xef\xbb\xbf# mine\r\ntimezone = "UTC"\r\n[core]\r\ntokens = 9\r\n'
    )
    founded = bank.init(tmp_path, Clock(), timezone="Asia/Tokyo")
    loaded = config.load(tmp_path, {})
    assert (loaded.id, loaded.own) == (founded.config.id, True)
    assert (loaded.timezone, loaded.core_tokens) == ("UTC", 9)
    written = (tmp_path / "ua-memory.toml").read_bytes()
    assert written.endswith(b'# mine\r\ntimezone = "UTC"\r\n[core]\r\ntokens = 9\r\n')
    assert locate(tmp_path, own=loaded.own, bank_id=loaded.id) == founded.bank
    assert bank.init(tmp_path, Clock()).made == ()


def test_a_person_s_choice_of_trail_stands(tmp_path: Path) -> None:
    (tmp_path / "ua-memory.toml").write_text('trail = "beside"\n')
    founded = bank.init(tmp_path, Clock())
    assert not founded.bank.own
    assert founded.bank.state == tmp_path.resolve() / ".ua-memory"
    assert not (tmp_path / ".git").exists()


# -- what is refused ---------------------------------------------------------------------------------------


def test_broken_settings_stop_it(tmp_path: Path) -> None:
    (tmp_path / "ua-memory.toml").write_text("id = ")
    with pytest.raises(Malformed):
        bank.init(tmp_path, Clock())
    assert (tmp_path / "ua-memory.toml").read_text() == "id = "


def test_an_unknown_timezone_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(Usage, match="Mars"):
        bank.init(tmp_path / "bank", Clock(), timezone="Mars/Phobos")
    assert not (tmp_path / "bank").exists()


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotWrite):
        bank.init(tmp_path / "file" / "bank", Clock())
    (tmp_path / "memory").touch()
    with pytest.raises(CannotWrite):
        bank.init(tmp_path, Clock())


_CHILD = """
import sys
from datetime import datetime, UTC
from pathlib import Path
from ua_memory import errors; from ua_memory.upkeep import init as bank
try:
    done = bank.init(Path(sys.argv[1]), lambda: datetime(2026, 11, 21, tzinfo=UTC))
    print("made", *done.made, "|", *done.result.notes)
except errors.UaMemoryError as error:
    print(type(error).__name__, error)
"""


def child(script: str, *words: str, **more: object) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
        **more,
    )  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def as_nobody(action: Callable[[], object]) -> str:
    """What an action of somebody with no rights ends in, by the name of the error."""
    if os.geteuid() != 0:
        return _ending(action)
    reading, writing = os.pipe()
    if not (process := os.fork()):
        try:  # where nobody else can be become, as in a namespace of one user, no second test run may go on
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            os.write(writing, _ending(action).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(process, 0)
    with os.fdopen(reading) as said:
        return said.read()


def _ending(action: Callable[[], object]) -> str:
    try:
        action()
    except Exception as error:
        return type(error).__name__
    return "done"


def test_a_folder_that_may_not_be_written() -> None:
    # Not in tmp_path: pytest's own folders let nobody else in.
    with tempfile.TemporaryDirectory() as name:
        outside = Path(name)
        outside.chmod(0o755)
        (outside / "bank").mkdir()
        (outside / "bank").chmod(0o555)
        for target in (outside / "bank", outside / "bank" / "new"):
            assert as_nobody(lambda target=target: bank.init(target, Clock())) == "CannotWrite"
        assert list((outside / "bank").iterdir()) == []
        made = new_bank(outside / "theirs")
        assert as_nobody(lambda: bank.init(made.root, Clock())) == "CannotWrite"
        assert as_nobody(lambda: made.insert("said")) == "CannotWrite"


# -- without git -----------------------------------------------------------------------------------------

_INSERT = """
import sys
from datetime import datetime, UTC
from pathlib import Path
sys.path.insert(0, "tests")
from banks import Bank
done = Bank(Path(sys.argv[1])).insert(sys.argv[2], **({"request": sys.argv[3]} if sys.argv[3:] else {}))
print(done.result.revision, done.repeated, *done.result.notes)
"""


@pytest.fixture
def no_git(tmp_path: Path) -> dict[str, str]:
    """An environment in which no git is found."""
    (tmp_path / "bin").mkdir()
    return {**os.environ, "PATH": str(tmp_path / "bin")}


def test_git_that_comes_later(tmp_path: Path, no_git: dict[str, str]) -> None:
    root = tmp_path / "bank"
    (root / "memory").mkdir(parents=True)
    (root / "memory" / "2026-11-20.md").write_text("- by hand\n")
    said = child(_CHILD, str(root), env=no_git)
    assert said.startswith("made MEMORY.md ua-memory.toml")
    assert "git is not installed" in said
    assert child(_INSERT, str(root), "without git", env=no_git).startswith(
        "None False written, but not committed yet"
    )
    there = Bank(root)
    assert there.store.bank.state == root.resolve() / ".ua-memory"
    assert "- without git" in there.text()

    # git is there now, but nobody has run init: the trail begins beside.
    done = there.insert("with git")
    assert done.result.revision
    assert there.ops()[:2] == ["insert", "insert"]
    assert there.clean()
    log = there.log()

    founded = bank.init(root, there.clock)
    assert founded.bank.own and not (root / ".ua-memory").exists()
    moved = f"the history was moved from {there.store.bank.git_dir} to {founded.bank.git_dir}"
    assert moved in founded.result.notes  # it said that nothing was changed
    there.again()
    assert there.log() == log, "the history came along"
    assert git(root, "status", "--porcelain") == ""
    assert git(root, "log", "--format=%s").splitlines() == [subject for _, _, subject in log]
    assert there.clean()
    there.insert("and after")
    assert git(root, "status", "--porcelain") == ""


def test_init_again_takes_what_is_owed_along(tmp_path: Path, no_git: dict[str, str]) -> None:
    root = tmp_path / "bank"
    child(_CHILD, str(root), env=no_git)
    child(_INSERT, str(root), "without git", env=no_git)
    bank.init(root, Clock())
    there = Bank(root.resolve())
    assert there.store.bank.own
    assert there.clean()
    assert "insert" in there.ops() and "init" in there.ops()
    assert not (root / ".ua-memory").exists()


def test_a_repository_that_the_person_made_meanwhile(tmp_path: Path, no_git: dict[str, str]) -> None:
    root = tmp_path / "bank"
    child(_CHILD, str(root), env=no_git)
    beside = Bank(root)
    beside.insert("with git, beside")
    trail = git(beside.store.bank.git_dir, "rev-parse", "HEAD").strip()
    git(root, "init", "--quiet", "--initial-branch=main")
    Bank(root).insert("in the person's new repository")
    founded = bank.init(root, Clock())
    kept = list(founded.bank.state.glob("earlier-*.git"))
    assert len(kept) == 1 and git(kept[0], "rev-parse", "HEAD").strip() == trail
    assert str(kept[0]) in " ".join(founded.result.notes)
    assert not (root / ".ua-memory").exists()
    assert Bank(root).clean()


def test_a_bank_that_was_moved_is_the_same_bank(tmp_path: Path) -> None:
    made = new_bank(tmp_path / "one")
    made.insert("said")
    shutil.move(tmp_path / "one", tmp_path / "two")
    there = Bank(tmp_path / "two")
    there.insert("said again")
    assert there.ops() == ["insert", "insert", "init"]
