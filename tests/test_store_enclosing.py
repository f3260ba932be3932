"""A bank inside somebody's repository: what they do does not harm us, and does not see us (I10, I11)."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from kill_points import whole
from store_banks import (
    DAY,
    clock,
    copied,
    finish,
    git,
    in_trail,
    insert,
    make,
    name_person,
    on_disk,
    open_again,
    python,
    write,
)

from ua_memory.errors import Conflict
from ua_memory.store.store import Store
from ua_memory.upkeep import init as bank
from ua_memory.upkeep import undo


def repository(root: Path, *, commit: bool = True) -> Path:
    root.mkdir(parents=True)
    git(root, "init", "--quiet", "-b", "main")
    if commit:
        (root / "code.py").write_text("pass\n")
        git(root, "add", ".")
        git(root, "commit", "--quiet", "-m", "code")
    return root


def at_top(folder: Path) -> Path:
    return repository(folder / "code")


def in_subfolder(folder: Path) -> Path:
    return repository(folder / "code") / "docs" / "brain"


def in_worktree(folder: Path) -> Path:
    git(repository(folder / "code"), "worktree", "add", "--quiet", "-b", "wt", str(folder / "linked"))
    return folder / "linked"


def in_submodule(folder: Path) -> Path:
    inner, outer = repository(folder / "inner"), repository(folder / "code")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    git(outer, "commit", "--quiet", "-m", "sub")
    return outer / "sub"


def without_commits(folder: Path) -> Path:
    return repository(folder / "workspace", commit=False)


def ignored(folder: Path) -> Path:
    root = repository(folder / "code")
    (root / ".gitignore").write_text("memory/\nMEMORY.md\nua-memory.toml\n")
    git(root, "add", ".gitignore")
    git(root, "commit", "--quiet", "-m", "ignore")
    return root


def with_attributes(folder: Path) -> Path:
    root = repository(folder / "code")
    (root / ".gitattributes").write_text("* text=auto eol=crlf\n*.md filter=up\n")
    git(root, "config", "filter.up.clean", "tr a-z A-Z")
    git(root, "add", ".gitattributes")
    git(root, "commit", "--quiet", "-m", "attributes")
    return root


PLACES = [at_top, in_subfolder, in_worktree, in_submodule, without_commits, ignored, with_attributes]
FACTS = [f"fact {n}" for n in range(8)]


@pytest.fixture(params=PLACES, ids=lambda place: place.__name__)
def inside(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A bank of eight facts inside a repository."""
    where: dict[Callable[[Path], Path], str] = {
        in_subfolder: "code/docs/brain",
        in_worktree: "linked",
        in_submodule: "code/sub",
        without_commits: "workspace",
    }
    name_person()
    copied(tmp_path, request.param.__name__, lambda folder: filled(request.param, folder))
    store = open_again(tmp_path / where.get(request.param, "code"))
    assert tmp_path.resolve() in store.bank.git_dir.resolve().parents, "and not that of what was copied"
    return store


def filled(place: Callable[[Path], Path], folder: Path) -> Store:
    root = place(folder)
    root.mkdir(exist_ok=True, parents=True)
    bank.init(root, clock)
    store = make(root)
    for text in FACTS:
        insert(store, text)
    return store


def outer(store: Store) -> Path:
    """The git directory of the repository around."""
    return Path(git(store.bank.root, "rev-parse", "--path-format=absolute", "--git-common-dir").strip())


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file of a git directory but those of ours, by its content."""
    files = (p for p in folder.rglob("*") if p.is_file() and "ua-memory" not in p.parts)
    return {str(p.relative_to(folder)): hashlib.sha1(p.read_bytes()).hexdigest() for p in files}


def unharmed(store: Store) -> None:
    store = open_again(store.bank.root)
    assert in_trail(store) == FACTS
    assert store.history.run("fsck", "--strict", "--no-dangling") == b""
    insert(store, "afterwards")
    assert in_trail(store)[-1] == "afterwards"


@pytest.mark.few(3)
def test_an_insert_leaves_their_repository_as_it_was(inside: Store) -> None:
    before = fingerprint(outer(inside))
    refs = git(inside.bank.root, "for-each-ref")
    insert(inside, "one more")
    write(inside, DAY, (inside.bank.root / DAY).read_text() + "- by hand\n")
    inside.adopt()
    undo.BankHistory(inside, "test").undo("HEAD")
    assert fingerprint(outer(inside)) == before
    assert git(inside.bank.root, "for-each-ref") == refs
    assert "ua-memory" not in git(inside.bank.root, "log", "--all", "--format=%an", ok=False)
    assert not inside.bank.own and outer(inside) in inside.bank.git_dir.parents
    whole(inside)


@pytest.mark.few(3)
def test_cleaning_takes_the_files_and_undo_brings_them_back(inside: Store) -> None:
    top = Path(git(inside.bank.root, "rev-parse", "--show-toplevel").strip())
    git(top, "clean", "-ffdxq")
    if inside.bank.root.exists():
        assert not (inside.bank.root / DAY).exists()
    inside.bank.root.mkdir(exist_ok=True, parents=True)
    assert {DAY, "MEMORY.md", "ua-memory.toml"} == set(inside.survey().held)
    assert inside.accepted_bytes(DAY).count(b"\n- fact") == 8
    undo.BankHistory(inside, "test").undo(None)
    assert on_disk(inside) == FACTS
    unharmed(inside)


@pytest.mark.few(3)
def test_cleaning_a_small_bank_and_making_it_again(inside: Store) -> None:
    top = Path(git(inside.bank.root, "rev-parse", "--show-toplevel").strip())
    before, head = on_disk(inside), inside.history.head()
    git(top, "clean", "-ffdxq")
    inside.bank.root.mkdir(exist_ok=True, parents=True)
    done = bank.init(inside.bank.root, clock)
    if (inside.bank.state / "lock").exists():  # else their git deleted the history, too
        assert any("from its history" in note for note in done.result.notes) and done.made == ()
        assert on_disk(inside) == before and inside.history.head() == head


def test_stashing_and_coming_back(inside: Store) -> None:
    if not git(inside.bank.root, "rev-parse", "--verify", "--quiet", "HEAD", ok=False):
        pytest.skip("nothing to stash upon")
    before = (inside.bank.root / DAY).read_bytes()
    git(inside.bank.root, "stash", "--quiet", "-u", ok=False)
    insert(inside, "meanwhile")
    (inside.bank.root / DAY).unlink()
    git(inside.bank.root, "stash", "pop", "--quiet", ok=False)
    if (inside.bank.root / DAY).exists():
        # Their filters may do to the file what they like, once it went through their repository.
        there = (inside.bank.root / DAY).read_bytes().lower().replace(b"\r\n", b"\n")
        assert there == before.lower()
    assert in_trail(inside) == [*FACTS, "meanwhile"]


@pytest.mark.few(3)
def test_pushing_everything_pushes_nothing_of_ours(inside: Store, tmp_path: Path) -> None:
    root, remote = inside.bank.root, tmp_path / "remote.git"
    git(tmp_path, "init", "--quiet", "--bare", str(remote))
    for how in ("--all", "--mirror"):
        git(root, "push", "--quiet", how, str(remote), ok=False)
    assert "ua-memory" not in git(remote, "log", "--all", "--format=%an %s", ok=False)
    objects = git(remote, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)", ok=False).split()
    ours = (
        inside.history.run("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").decode().split()
    )
    assert not set(objects) & set(ours)
    assert not any(
        "memory" in name for name in git(remote, "ls-tree", "-r", "--name-only", "main", ok=False).split()
    )
    unharmed(inside)


@pytest.mark.few(3)
def test_collecting_garbage_and_pruning(inside: Store) -> None:
    root = inside.bank.root
    git(root, "gc", "--quiet", "--prune=now", "--aggressive", ok=False)
    git(root, "worktree", "prune")
    git(root, "reflog", "expire", "--expire=now", "--all")
    assert "error" not in git(root, "fsck", "--full")
    git(root, "repack", "-adq", ok=False)
    assert "ua-memory" not in git(root, "status", "--porcelain", "--ignored").replace("ua-memory.toml", "")
    unharmed(inside)


def test_markers_of_a_merge_of_theirs_send_to_their_git(tmp_path: Path) -> None:
    store = filled(at_top, tmp_path)
    write(store, DAY, "<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> side\n")
    with pytest.raises(Conflict) as refused:
        insert(store, "meanwhile")
    assert str(refused.value.hint).endswith(": git status"), "that of the trail knows of no merge"


def test_a_branch_switch_keeps_one_trail(tmp_path: Path) -> None:
    store = filled(at_top, tmp_path)
    root = store.bank.root
    git(root, "add", "-A")
    git(root, "commit", "--quiet", "-m", "with memory")
    git(root, "checkout", "--quiet", "HEAD~1")
    assert DAY in open_again(root).survey().held if (root / "ua-memory.toml").exists() else True
    assert DAY in store.survey().held
    assert store.accepted_bytes(DAY).count(b"\n- fact") == 8
    git(root, "checkout", "--quiet", "main")
    assert not store.survey().changed
    unharmed(store)


def test_worktrees_have_trails_of_their_own(tmp_path: Path) -> None:
    store = filled(at_top, tmp_path)
    root = store.bank.root
    git(root, "add", "-A")
    git(root, "commit", "--quiet", "-m", "with memory")
    git(root, "worktree", "add", "--quiet", str(tmp_path / "linked"))
    other = open_again(tmp_path / "linked")
    assert other.bank.state != store.bank.state and outer(store) in other.bank.state.parents
    insert(other, "there")
    assert in_trail(store) == FACTS
    git(root, "worktree", "remove", "--force", str(tmp_path / "linked"))
    assert in_trail(other)[-1] == "there"
    unharmed(store)


HOOK = """#!/bin/sh
exec {python} -c 'from store_banks import *; insert(open_again(Path("{root}")), "in a hook")'
"""


@pytest.mark.few(1)
@pytest.mark.parametrize("hook", ["pre-commit", "post-commit", "post-checkout"])
def test_inside_a_hook_of_theirs(hook: str, tmp_path: Path) -> None:
    import sys

    store = filled(at_top, tmp_path)
    root = store.bank.root
    script = outer(store) / "hooks" / hook
    script.parent.mkdir(exist_ok=True)
    script.write_text(HOOK.format(python=sys.executable, root=root))
    script.chmod(0o755)
    (root / "code.py").write_text("more\n")
    git(root, "add", "code.py")
    env = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])}
    if hook == "post-checkout":
        git(root, "-c", "core.hooksPath=" + str(script.parent), "checkout", "--quiet", "-b", "new", env=env)
    else:
        git(root, "-c", "core.hooksPath=" + str(script.parent), "commit", "--quiet", "-m", "more", env=env)
    assert in_trail(store) == [*FACTS, "in a hook"]
    assert DAY not in git(root, "ls-files")
    assert git(root, "log", "--format=%s", "-1").strip() in ("more", "code")


def test_settings_of_theirs_that_would_stop_a_commit(tmp_path: Path) -> None:
    root = repository(tmp_path / "code")
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("pre-commit", "reference-transaction", "commit-msg", "post-index-change"):
        (hooks / name).write_text("#!/bin/sh\nexit 1\n")
        (hooks / name).chmod(0o755)
    for key, value in {
        "core.hooksPath": str(hooks),
        "commit.gpgsign": "true",
        "gpg.program": "false",
        "user.useConfigOnly": "true",
        "init.defaultBranch": "trunk",
        "core.sharedRepository": "group",
    }.items():
        git(root, "config", key, value)
    Path(os.environ["GIT_CONFIG_GLOBAL"]).write_text(
        f"[core]\n\thooksPath = {hooks}\n[commit]\n\tgpgsign = true\n"
    )
    bank.init(root, clock)
    store = open_again(root)
    insert(store, "first")
    write(store, DAY, (root / DAY).read_text() + "- by hand\n")
    store.adopt()
    assert in_trail(store) == ["first", "by hand"]
    assert {r.author for r in store.history.log([DAY])} == {"ua-memory", "person"}
    whole(store)


def test_their_repository_with_long_object_names(tmp_path: Path) -> None:
    root = tmp_path / "code"
    root.mkdir()
    git(root, "init", "--quiet", "--object-format=sha256")
    bank.init(root, clock)
    insert(open_again(root), "first")
    assert in_trail(open_again(root)) == ["first"]


def test_a_repository_that_comes_later_and_goes(tmp_path: Path) -> None:
    store = filled(at_top, tmp_path)
    shutil.rmtree(outer(store))
    again = open_again(store.bank.root)
    assert on_disk(again) == FACTS, "with the repository the trail is gone; the files are the truth"
    insert(again, "afterwards")
    assert on_disk(again) == in_trail(again) == [*FACTS, "afterwards"]


def test_two_banks_in_one_repository(tmp_path: Path) -> None:
    root = repository(tmp_path / "code")
    stores = []
    for name in ("a", "b"):
        bank.init(root / name, clock)
        stores.append(open_again(root / name))
        insert(stores[-1], f"in {name}")
    assert stores[0].bank.state != stores[1].bank.state
    assert [in_trail(store) for store in stores] == [["in a"], ["in b"]]


def test_commands_of_theirs_while_we_write(tmp_path: Path) -> None:
    """A bank of its own: somebody commits other files all the time."""
    store = make(tmp_path / "b")
    root = store.bank.root
    code = """
    import sys
    from pathlib import Path
    from store_banks import insert, open_again
    store = open_again(Path(sys.argv[1]))
    for n in range(10):
        insert(store, f"fact {n}")
    """
    child = python(code, root)
    for n in range(10):
        (root / "notes.txt").write_text(str(n))
        git(root, "add", "notes.txt", ok=False)
        git(root, "commit", "--quiet", "-m", f"notes {n}", "--", "notes.txt", ok=False)
    finish([child])
    store.adopt()
    assert in_trail(store) == on_disk(store) == [f"fact {n}" for n in range(10)]
    assert {r.author for r in store.history.log([DAY])} == {"ua-memory"}
    store.history.mend_index()
    assert DAY not in git(root, "status", "--porcelain")


def test_their_checkout_and_stash_drop_no_fact(tmp_path: Path) -> None:
    top = repository(tmp_path / "code")
    bank.init(top / "mem", clock)
    store = open_again(top / "mem")
    old = "2001-01-01T00:00:00Z"  # their commit is older than our revisions
    insert(store, "one")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "bank", env={"GIT_COMMITTER_DATE": old})
    insert(store, "two")
    for _ in range(2):
        git(top, "stash", "-q")
        assert on_disk(store) == ["one"]
        assert store.adopt(quiet=30).notes == (f"{DAY} had the content of HEAD in {top}; restored",)
        assert on_disk(store) == ["one", "two"]
        git(top, "stash", "drop", "-q")
    write(store, DAY, (store.bank.root / DAY).read_text().replace("- two", "- 2"))
    store.adopt()
    text = (store.bank.root / DAY).read_text()
    write(store, DAY, "".join(line for line in text.splitlines(True) if "- one" not in line))
    git(top, "commit", "-qam", "by hand", env={"GIT_COMMITTER_DATE": "2090-01-01T00:00:00Z"})
    store.adopt()
    assert on_disk(store) == ["2"], "what they took away before they committed it stays away"
