"""git moves the files of a bank of its own to another branch while we write: each branch keeps what was
acknowledged on it, and gets nothing of the other's (I12)."""

from __future__ import annotations

import random
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from kill_points import whole
from store_banks import DAY, finish, git, insert, leftovers, make, on_disk, open_again, python, texts, write

from ua_memory.errors import Busy, Conflict
from ua_memory.git.process import Process
from ua_memory.knowledge import tombstones
from ua_memory.knowledge.tombstones import Removal
from ua_memory.store.store import Store

OTHER = "memory/2026-11-20.md"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """On main two facts, one that was forgotten, and a file of its own; on side, from before, one more."""
    store = make(tmp_path / "b")
    insert(store, "both")
    gone = insert(store, "forgotten on main")
    git(store.bank.root, "branch", "side")
    forget(store, str(gone.id), gone.text)
    insert(store, "main 1")
    insert(store, "main 2")
    write(store, OTHER, "".join(f"- only on main {n}\n" for n in range(9)))
    store.adopt()
    git(store.bank.root, "checkout", "--quiet", "side")
    side = open_again(store.bank.root)
    insert(side, "side 1")
    git(store.bank.root, "checkout", "--quiet", "main")
    return open_again(store.bank.root)


MAIN, SIDE = ["both", "main 1", "main 2"], ["both", "forgotten on main", "side 1"]


def forget(store: Store, block: str, text: str) -> None:
    with store.revision("forget", door="test") as draft:
        lines = [row for row in draft.read(DAY).splitlines(keepends=True) if f"^{block}".encode() not in row]
        draft.write(DAY, b"".join(lines), restored=True)
        tombstones.add(store, draft, [Removal(block, text)], "2026-11-21")


def on_branch(store: Store, branch: str, path: str = DAY) -> list[str]:
    return texts(store.history.read(branch, path) or b"", path)


def edits(store: Store) -> list[str]:
    """Subjects of what is called a person's edit, on any branch."""
    out = git(store.bank.root, "log", "--all", "--author=Ann", "--format=%s", "--grep=Memory-Op: edit")
    return [subject for subject in out.splitlines() if OTHER not in subject]


def midway(store: Store, to: str, *, locked: bool, files: str = "all") -> None:
    """As git has it in the midst of a checkout: the files are there, HEAD is not."""
    root = store.bank.root
    index = (root / ".git/index").read_bytes()
    here = git(root, "symbolic-ref", "HEAD").strip()
    kept = {
        path: (root / path).read_bytes() for path in (DAY, OTHER, tombstones.PATH) if (root / path).exists()
    }
    git(root, "checkout", "--quiet", to)
    git(root, "symbolic-ref", "HEAD", here)
    if files == "half":
        (root / OTHER).write_bytes(kept[OTHER])
    if locked:
        (root / ".git/index.lock").touch()
        (root / ".git/index").write_bytes(index)


def arrive(store: Store, at: str) -> Store:
    (store.bank.root / ".git/index.lock").unlink(missing_ok=True)
    git(store.bank.root, "symbolic-ref", "HEAD", f"refs/heads/{at}")
    git(store.bank.root, "read-tree", "HEAD")
    return open_again(store.bank.root)


@pytest.mark.few(3)
@pytest.mark.parametrize("locked", [True, False], ids=["locked", "not locked"])
@pytest.mark.parametrize(("to", "files"), [("side", "all"), ("side", "half"), ("main", "all")])
def test_a_write_in_the_midst_of_a_checkout(store: Store, to: str, locked: bool, files: str) -> None:
    here = "main"
    if to == "main":
        git(store.bank.root, "checkout", "--quiet", "side")
        store, here = open_again(store.bank.root), "side"
    midway(store, to, locked=locked, files=files)
    insert(store, "amid")
    there = {"main": MAIN, "side": SIDE}
    assert on_branch(store, here) == on_disk(store) == [*there[here], "amid"]
    assert on_branch(store, to) == there[to]
    arrived = arrive(store, to)
    insert(arrived, "after")
    arrived.adopt()
    assert on_branch(arrived, to) == on_disk(arrived) == [*there[to], "after"]
    assert on_branch(arrived, here) == [*there[here], "amid"]
    assert edits(arrived) == []
    assert "forgotten on main" not in on_branch(arrived, "main")
    git(store.bank.root, "checkout", "--quiet", "-f", here)
    again = open_again(store.bank.root)
    insert(again, "back")
    assert on_disk(again) == [*there[here], "amid", "back"]
    whole(again)


@pytest.mark.parametrize("locked", [True, False], ids=["locked", "not locked"])
def test_a_checkout_that_was_killed_is_nobodys_edit(store: Store, locked: bool) -> None:
    """Without another write: what lies there is on the other branch, and the files are put right."""
    midway(store, "side", locked=locked)
    before = store.history.head()
    store.adopt()
    assert store.history.head() == before and edits(store) == []
    assert on_disk(store) == MAIN and len(on_disk(store, OTHER)) == 9
    assert leftovers(store) == []


def test_a_file_copied_from_another_branch_is_an_edit(store: Store) -> None:
    """A new one: git has had no part in it."""
    git(store.bank.root, "checkout", "--quiet", "side")
    side = open_again(store.bank.root)
    write(side, OTHER, git(side.bank.root, "show", f"main:{OTHER}"))
    side.adopt()
    assert len(on_branch(side, "side", OTHER)) == 9


def test_an_old_file_that_a_person_takes_back_is_merged_once_and_stands_then(store: Store) -> None:
    root = store.bank.root
    old = next(r.id for r in store.history.log([DAY]) if on_branch(store, r.id) == ["both", "main 1"])
    for expected in (MAIN, ["both", "main 1"]):
        git(root, "checkout", "--quiet", old, "--", DAY)
        store.adopt()
        assert on_disk(store) == on_branch(store, "main") == expected
    whole(store)


def hooked(store: Store, moment: str, action: object) -> None:
    """Insert a fact, with a checkout from start to end within it."""
    from ua_memory.store import swap

    enter, count = swap.swap_in, []

    def entered(file: Path, out: Path) -> None:
        count.append(file)
        if moment == "before" and len(count) == 1:
            action()  # type: ignore[operator]
        enter(file, out)
        if moment == "after" and len(count) == 1:
            action()  # type: ignore[operator]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swap, "swap_in", entered)
        insert(store, "amid")
    assert count


@pytest.mark.few(2)
@pytest.mark.parametrize("force", [True, False], ids=["forced", "plain"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_checkout_within_a_write(store: Store, moment: str, force: bool) -> None:
    """Of its start on main, and of its end on side; or git refuses, and nothing has happened."""
    words = ["checkout", "--quiet", *(["-f"] if force else []), "side"]
    hooked(store, moment, lambda: git(store.bank.root, *words, ok=force or moment == "before"))
    at = git(store.bank.root, "symbolic-ref", "--short", "HEAD").strip()
    assert at == ("main" if moment == "after" and not force else "side")
    assert on_branch(store, "main") == [*MAIN, "amid"] and on_branch(store, "side") == SIDE
    assert on_disk(store) == on_branch(store, at)
    again = open_again(store.bank.root)
    insert(again, "after")
    assert on_disk(again) == on_branch(again, at) == [*(SIDE if at == "side" else [*MAIN, "amid"]), "after"]
    assert edits(again) == []
    whole(again)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_new_branch_begins_within_a_write(store: Store, moment: str) -> None:
    """No file differs on it: what was written for the other is none of its own."""
    hooked(store, moment, lambda: git(store.bank.root, "checkout", "--quiet", "-b", "new"))
    assert on_branch(store, "main") == [*MAIN, "amid"] and on_branch(store, "new") == MAIN
    assert on_disk(store) == MAIN
    whole(open_again(store.bank.root))


@pytest.mark.parametrize("words", [["reset", "--hard", "HEAD~1"], ["stash"], ["restore", "."]])
def test_git_takes_files_back_within_a_write(store: Store, words: list[str]) -> None:
    hooked(store, "after", lambda: git(store.bank.root, *words))
    again = open_again(store.bank.root)
    again.adopt()
    insert(again, "after")
    assert {"both", "amid", "after"} <= set(on_disk(again)) == set(on_branch(again, "main"))
    whole(again)


@pytest.mark.few(4)
@pytest.mark.parametrize("stop", range(0, 60, 4))
def test_killed_on_one_branch_and_found_on_another(store: Store, tmp_path: Path, stop: int) -> None:
    from kill_points import in_child

    done, _ = in_child(lambda: insert(open_again(store.bank.root), "amid"), stop)
    git(store.bank.root, "checkout", "--quiet", "-f", "side")
    side = open_again(store.bank.root)
    insert(side, "after")
    side.adopt()
    assert on_disk(side) == on_branch(side, "side") == [*SIDE, "after"]
    assert on_branch(side, "main") in ([MAIN, [*MAIN, "amid"]] if not done else [[*MAIN, "amid"]])
    assert edits(side) == []
    whole(side)


def test_a_git_that_lives_is_waited_for(store: Store) -> None:
    """One that writes files; what it has written until then is no edit."""
    root = store.bank.root
    (root / ".gitattributes").write_text("memory/2026-11-20.md filter=slow\n")
    git(root, "config", "filter.slow.smudge", "sleep 1; cat")
    git(root, "checkout", "--quiet", "side")
    child = subprocess.Popen(["git", "checkout", "--quiet", "main"], cwd=root)
    lock = root / ".git" / "index.lock"
    while not lock.exists() and child.poll() is None:
        pass
    assert child.poll() is None
    insert(open_again(root), "amid")
    assert child.wait(20) == 0
    store = open_again(root)
    assert on_branch(store, "main") == on_disk(store) == [*MAIN, "amid"]
    assert on_branch(store, "side") == SIDE and edits(store) == []


@pytest.mark.slow
@pytest.mark.parametrize("way", ["there", "there and back"])
@pytest.mark.parametrize("first", range(4))
def test_a_checkout_at_each_step_of_a_write(store: Store, tmp_path: Path, way: str, first: int) -> None:
    """Before each look at HEAD and each process of git in a write, HEAD goes to another branch, or there and
    back."""
    for stop in range(first, 200, 4):
        root = tmp_path / f"{stop}"
        shutil.copytree(store.bank.root, root, symlinks=True)
        if not switching(open_again(root), stop, ["side"] if way == "there" else ["side", "main"]):
            break
        shutil.rmtree(root)
    assert 15 < stop < 190


def switching(store: Store, stop: int, to: list[str]) -> bool:
    """Insert a fact, with checkouts before the step of this number; whether it came so far. Each branch has
    what is its own, and the fact is on main or nowhere."""
    ask, read_text, count = Process.ask, Path.read_text, []

    def step() -> None:
        count.append(None)
        for branch in to if len(count) == stop + 1 else ():
            git(store.bank.root, "checkout", "--quiet", "-f", branch)

    def asked(trail: Process, *words: str, **how: Any) -> tuple[bytes, str]:
        step()
        return ask(trail, *words, **how)

    def looked(file: Path, *how: Any, **named: Any) -> str:
        if file.name == "HEAD":
            step()
        return read_text(file, *how, **named)

    done = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Process, "ask", asked)
        patch.setattr(Path, "read_text", looked)
        try:
            insert(store, "amid", request="amid")
        except Busy:
            done = False
    at = git(store.bank.root, "symbolic-ref", "--short", "HEAD").strip()
    again = open_again(store.bank.root)
    insert(again, "after")
    again.adopt()
    mine = ["amid"] if done else []
    begun = "side" if done and "amid" in on_branch(again, "side") and at == "side" else "main"
    for branch, rows in {"main": MAIN, "side": SIDE}.items():
        new = [*(mine if branch == begun else []), *(["after"] if branch == at else [])]
        assert on_branch(again, branch) == [*rows, *new], (stop, branch)
    assert on_disk(again) == on_branch(again, at) and edits(again) == [], stop
    whole(again)
    return len(count) > stop


MOST = 100
"""Checkouts, at most."""
WRITER = """
import os, sys
from pathlib import Path
from store_banks import insert, open_again
from ua_memory.errors import Busy
root, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
os.write(1, b"ready\\n")
for n in range(count):
    while True:
        try:
            insert(open_again(root), f"fact {name} {n}", request=f"{name}-{n}")
            break
        except Busy:
            continue
    print(f"fact {name} {n}", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("writers", [1, 3])
def test_checkouts_between_branches_of_many_files_while_facts_are_written(store: Store, writers: int) -> None:
    root, rounds, facts = store.bank.root, 0, 12
    for branch in ("side", "main"):
        git(root, "checkout", "--quiet", branch)
        for n in range(300):
            write(store, f"memory/many/{n}.md", f"- {branch} {n}\n")
        open_again(root).adopt()
    before = {branch: on_branch(store, branch) for branch in ("main", "side")}
    known = len(edits(store))
    children = [python(WRITER, root, name, facts) for name in "abc"[:writers]]
    for child in children:
        assert child.stdout and child.stdout.readline() == "ready\n"
    pause, refused, at = random.Random(3), 0, "main"
    while rounds < MOST and any(child.poll() is None for child in children):
        at = "side" if at == "main" else "main"
        done = subprocess.run(["git", "checkout", "--quiet", at], cwd=root, capture_output=True, check=False)
        rounds, refused = rounds + 1, refused + (done.returncode != 0)
        threading.Event().wait(pause.choice((0, 0.05, 0.2)))
    said = [line for out in finish(children, 240) for line in out.splitlines() if line.startswith("fact ")]
    at = git(root, "symbolic-ref", "--short", "HEAD").strip()
    again = open_again(root)
    insert(again, "at last")
    again.adopt()
    new = {branch: on_branch(again, branch)[len(before[branch]) :] for branch in before}
    assert all(on_branch(again, branch)[: len(rows)] == rows for branch, rows in before.items())
    assert sorted([*new["main"], *new["side"]]) == sorted([*said, "at last"]), "each once, on one branch"
    assert len(edits(again)) == known, edits(again)
    assert on_disk(again) == on_branch(again, at)
    for branch in before:
        many = [on_branch(again, branch, f"memory/many/{n}.md") for n in range(0, 300, 50)]
        assert many == [[f"{branch} {n}"] for n in range(0, 300, 50)]
    whole(again)
    print(f"{rounds} checkouts, {refused} refused; {len(new['main'])} on main, {len(new['side'])} on side")


def test_conflict_markers_of_a_merge_are_no_memory(tmp_path: Path) -> None:
    store = make(tmp_path / "b")
    insert(store, "base")
    git(store.bank.root, "switch", "-q", "-c", "side")
    insert(store, "on side")
    git(store.bank.root, "switch", "-q", "-")
    insert(store, "on main")
    before = (store.bank.root / DAY).read_bytes()
    git(store.bank.root, "merge", "-q", "side", ok=False)
    assert b"<<<<<<<" in (store.bank.root / DAY).read_bytes()
    with pytest.raises(Conflict, match="conflict markers"):
        insert(store, "meanwhile")
    head = store.history.head()
    store.adopt()
    assert store.history.head() == head
    git(store.bank.root, "merge", "--abort")
    assert (store.bank.root / DAY).read_bytes() == before
    insert(store, "after")
    assert sorted(on_disk(store)) == ["after", "base", "on main"]
    whole(store)
    write(store, "memory/git.md", "- such as:\n```\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> side\n```\n")
    assert store.adopt().revision != head, "an example is an edit like any other"
