"""After a kill the next command goes on; what is unreadable is set aside, what is owed is done (I1-I6)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from kill_points import WRITES, in_child, kill_at, prepared, whole
from store_banks import (
    DAY,
    NOW,
    finish,
    first_author,
    git,
    in_trail,
    insert,
    inserted,
    make,
    on_disk,
    open_again,
    python,
    write,
)

from ua_memory.errors import Busy
from ua_memory.git.repository import SOMEBODY
from ua_memory.knowledge import facts
from ua_memory.knowledge.facts import Provenance
from ua_memory.records import Fact
from ua_memory.store import commit as store_commit
from ua_memory.store import pending, swap
from ua_memory.store.store import Store


@pytest.mark.few(2)
@pytest.mark.parametrize("name", WRITES)
def test_a_sample_of_kills(name: str, tmp_path: Path) -> None:
    bank = prepared(name, tmp_path / "bank")
    for stop, following in ((8, "insert"), (11, "adopt"), (14, "insert"), (17, "insert"), (20, "adopt")):
        kill_at(name, bank, tmp_path / str(stop), stop, following, again=stop - 3 if stop % 2 else None)


# -- records that cannot be read -------------------------------------------------------------------------


def killed_before_its_commit(root: Path) -> Store:
    """A bank with one revision whose files are done and whose commit is not."""
    store = make(root)
    insert(store, "first")

    def act() -> None:
        store_commit.remove_leftovers = lambda *_: os._exit(0)  # type: ignore[assignment]
        open_again(root)._commit = lambda *_, **__: os._exit(17)  # type: ignore[method-assign]
        other = open_again(root)
        other._commit = lambda *_, **__: os._exit(17)  # type: ignore[method-assign]
        insert(other, "second")

    child = os.fork()
    if child == 0:
        act()
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
    assert len(pending.keys(store.bank.pending)) == 1
    return store


def flipped(data: bytes) -> bytes:
    at = data.index(b"second")
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "damage",
    [flipped, lambda d: d[: len(d) // 2], lambda d: b"", lambda d: b"{}", lambda d: b"\xff" * 99],
    ids=["flipped", "cut", "empty", "no record", "noise"],
)
def test_a_damaged_record_is_set_aside_and_blocks_nothing(
    damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    store = killed_before_its_commit(tmp_path / "b")
    file = next(store.bank.pending.iterdir())
    file.write_bytes(damage(file.read_bytes()))
    kept = file.read_bytes()
    insert(store, "third")
    assert sorted(on_disk(store)) == ["first", "second", "third"]
    assert [p.read_bytes() for p in pending.unreadable_records(store.bank.pending)] == [kept]
    insert(store, "fourth")
    assert len(pending.unreadable_records(store.bank.pending)) == 1


def test_a_record_can_be_read_by_a_person_and_holds_any_bytes(tmp_path: Path) -> None:
    change = pending.FileChange("memory/a.md", None, b"caf\xc3\xa9\n", b"\xff\r\n", None, b"x", (b"1", None))
    record = pending.Pending("00000000000000000001-ab", "r", (change,), (), written=True)
    pending.save(tmp_path, record)
    assert pending.read_records(tmp_path) == [record]
    file = next(tmp_path.iterdir())
    assert file.stat().st_mode & 0o777 == 0o600


def test_keys_follow_each_other_also_when_the_clock_is_set_back(tmp_path: Path) -> None:
    ahead = "99999999999999999990-ab"
    pending.save(tmp_path, pending.Pending(ahead, "r", (), ()))
    assert pending.next_key(tmp_path, "00") > ahead


# -- commits that are owed -------------------------------------------------------------------------------


def refusing_git(folder: Path, words: str = "fast-import") -> dict[str, str]:
    """An environment in which git fails at one of its commands and does all others."""
    folder.mkdir()
    real = shutil.which("git")
    test = f'for w in "$@"; do [ "$w" = {words} ] && {{ echo "fatal: no" >&2; exit 128; }}; done'
    (folder / "git").write_text(f'#!/bin/sh\n{test}\nexec {real} "$@"\n')
    (folder / "git").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def nothing_but_python(folder: Path) -> dict[str, str]:
    folder.mkdir()
    return {"PATH": str(folder)}


INSERT = """
import sys
from pathlib import Path
from store_banks import inserted, open_again
store = open_again(Path(sys.argv[1]))
for text in sys.argv[2:]:
    print(inserted(store, text))
"""


def insert_elsewhere(root: Path, env: dict[str, str], *texts: str) -> str:
    return finish([python(INSERT, root, *texts, env=env)])[0]


@pytest.mark.parametrize("how", ["no git", "refusing"])
def test_without_git_the_file_is_written_and_the_commit_owed(how: str, tmp_path: Path) -> None:
    store = make(tmp_path / "b")
    insert(store, "first")
    write(store, DAY, (store.bank.root / DAY).read_text() + "- by hand\n")
    env = nothing_but_python(tmp_path / "bin") if how == "no git" else refusing_git(tmp_path / "bin")
    said = insert_elsewhere(store.bank.root, env, "second", "third")
    assert said.count("not committed yet") == 2
    assert on_disk(store) == ["first", "by hand", "second", "third"]
    assert in_trail(store) == ["first"]
    assert len(pending.keys(store.bank.pending)) == 2
    insert(store, "fourth")
    assert on_disk(store) == in_trail(store) == ["first", "by hand", "second", "third", "fourth"]
    assert [first_author(store, t) for t in ("second", "third", "by hand", "fourth")] == ["ua-memory"] * 2 + [
        "Ann",
        "ua-memory",
    ]
    whole(store)


def test_a_new_bank_without_git(tmp_path: Path) -> None:
    code = """
    import sys
    from pathlib import Path
    from store_banks import clock, inserted, open_again
    from ua_memory.upkeep import init as bank
    bank.init(Path(sys.argv[1]), clock)
    store = open_again(Path(sys.argv[1]))
    print(inserted(store, "first"))
    print(inserted(store, "second"))
    """
    root = tmp_path / "b"
    assert "not committed yet" in finish([python(code, root, env=nothing_but_python(tmp_path / "bin"))])[0]
    store = make(root)
    store.adopt()
    assert on_disk(store) == in_trail(store) == ["first", "second"]
    assert first_author(store, "second") == "ua-memory"
    whole(store)


def test_a_retry_while_the_commit_is_owed_changes_nothing(tmp_path: Path) -> None:
    store = make(tmp_path / "b")
    git(store.bank.root, "checkout", "--quiet", "--detach")
    insert(store, "once", request="r1")
    before = (store.bank.root / DAY).read_bytes()
    with store.revision("insert", door="test", request="r1") as draft:
        assert draft.already_done and draft.already_done.trailer("Facts").startswith("^")
        draft.write(DAY, b"- something else\n", restored=True)
    assert (store.bank.root / DAY).read_bytes() == before
    git(store.bank.root, "checkout", "--quiet", "main")
    with store.revision("insert", door="test", request="r1") as draft:
        assert draft.already_done and draft.already_done.id == store.history.head()
    whole(store)


def test_a_detached_head_is_owed_until_a_branch_is_there(tmp_path: Path) -> None:
    store = make(tmp_path / "b")
    insert(store, "first")
    git(store.bank.root, "checkout", "--quiet", "--detach")
    done = inserted(store, "second")
    assert done.revision is None and "HEAD is detached" in done.notes[0]
    assert inserted(store, "third").revision is None
    assert not store.survey().changed, "what is owed a commit is no hand edit"
    git(store.bank.root, "checkout", "--quiet", "main")
    store.adopt()
    assert on_disk(store) == in_trail(store) == ["first", "second", "third"]
    assert {r.author for r in store.history.log([DAY])} == {"ua-memory"}
    whole(store)


def test_a_merge_under_way_is_waited_out(tmp_path: Path) -> None:
    store = make(tmp_path / "b")
    root = store.bank.root
    for branch, text in (("side", "theirs"), ("main", "ours")):
        git(root, "checkout", "--quiet", *(["-b"] if branch == "side" else []), branch)
        (root / "notes.txt").write_text(text)
        git(root, "add", "notes.txt")
        git(root, "commit", "--quiet", "-m", text)
    git(root, "merge", "side", ok=False)
    assert "merge or rebase is in progress" in inserted(store, "first").notes[0]
    git(root, "merge", "--abort")
    insert(store, "second")
    assert in_trail(store) == ["first", "second"]
    whole(store)


def test_what_is_owed_goes_on_top_of_a_branch_that_moved(tmp_path: Path) -> None:
    store = make(tmp_path / "b")
    root = store.bank.root
    insert(store, "first")
    git(root, "checkout", "--quiet", "--detach")
    insert(store, "second")
    insert(store, "third")
    git(root, "checkout", "--quiet", "-f", "main")  # throws the files away; the records have them
    write(store, DAY, (root / DAY).read_text().replace("- first", "- by hand\n- first"))
    git(root, "commit", "--quiet", "-a", "-m", "mine")
    store.adopt()
    assert sorted(in_trail(store)) == sorted(["by hand", "first", "second", "third"])
    assert first_author(store, "second") == first_author(store, "third") == "ua-memory"
    store.adopt()
    assert sorted(on_disk(store)) == sorted(in_trail(store)), (
        "what the checkout took from the file is put back"
    )
    whole(store)


def test_a_person_whom_git_did_not_know_is_named_when_it_does(tmp_path: Path) -> None:
    store = make(tmp_path / "b", person=False)
    write(store, DAY, "- by hand\n")
    insert_elsewhere(store.bank.root, nothing_but_python(tmp_path / "bin"), "second")
    make(tmp_path / "b")
    store.adopt()
    assert first_author(store, "by hand") == "Ann" != SOMEBODY[0]
    assert on_disk(store) == in_trail(store) == ["by hand", "second"]


def test_somebody_commits_at_the_same_moment(tmp_path: Path) -> None:
    store = make(tmp_path / "b")
    root, run, once = store.bank.root, store.history.run, []

    def overtaken(*words: str, **more: object) -> bytes:
        if words[0] == "fast-import" and not once:
            once.append(words)
            git(root, "commit", "--quiet", "--allow-empty", "-m", "mine")
        return run(*words, **more)  # type: ignore[arg-type]

    store.history.run = overtaken  # type: ignore[method-assign]
    assert inserted(store, "first").notes == ()
    assert [r.subject for r in store.history.log()][:2] == [f"insert: 1 fact into {DAY}", "mine"]


# -- late writers ----------------------------------------------------------------------------------------


def test_words_written_into_a_file_that_was_exchanged_away(tmp_path: Path) -> None:
    store = make(tmp_path / "b")
    insert(store, "first")
    code = """
    import sys
    f = open(sys.argv[1], "a")
    print("open", flush=True)
    sys.stdin.readline()
    f.write("- by hand\\n")
    """
    child = python(code, store.bank.root / DAY)
    assert child.stdout and child.stdout.readline() == "open\n"
    insert(store, "second")
    assert pending.keys(store.bank.pending), "somebody still has the old file open"
    insert(store, "third")
    finish([child]) if child.stdin is None else child.communicate("go\n", timeout=20)
    store.adopt()
    store.adopt()
    assert sorted(on_disk(store)) == ["by hand", "first", "second", "third"]
    assert first_author(store, "by hand") == "Ann"
    assert first_author(store, "second") == "ua-memory"
    whole(store)


def test_a_save_that_comes_in_two_pieces(tmp_path: Path) -> None:
    """An editor that truncated, was slow, and wrote into the exchanged-away file loses nothing."""
    store = make(tmp_path / "b")
    insert(store, "first")
    code = """
    import sys
    old = open(sys.argv[1]).read()
    f = open(sys.argv[1], "w")
    print("open", flush=True)
    sys.stdin.readline()
    f.write(old + "- by hand\\n")
    """
    child = python(code, store.bank.root / DAY)
    assert child.stdout and child.stdout.readline() == "open\n"
    insert(store, "second")  # waits for a while, then goes on with the empty file
    child.communicate("go\n", timeout=20)
    store.adopt()
    store.adopt()
    assert sorted(set(on_disk(store))) == ["by hand", "first", "second"]
    whole(store)


def test_saved_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = make(tmp_path / "b")
    insert(store, "first")
    file, enter, saves = store.bank.root / DAY, swap.swap_in, []

    def enter_after_save(path: Path, out: Path) -> None:
        saves.append(f"- save {len(saves)}\n")
        fresh = file.with_name("editor.tmp")
        fresh.write_text(f"# day\n{''.join(saves)}")
        fresh.rename(file)
        enter(path, out)

    monkeypatch.setattr(store_commit, "ROUNDS", 5)
    monkeypatch.setattr(swap, "swap_in", enter_after_save)
    with pytest.raises(Busy):
        insert(store, "second")
    monkeypatch.undo()
    store.adopt()
    store.adopt()
    assert {*(s[2:-1] for s in saves), "second"} <= set(on_disk(store))
    assert on_disk(store).count("second") == 1
    assert first_author(store, "second") == "ua-memory"
    whole(store)


def test_nothing_of_a_killed_child_is_needed(tmp_path: Path) -> None:
    """The lock of a killed process is free at once."""
    store = make(tmp_path / "b")
    said = Provenance(NOW, "test")
    in_child(lambda: facts.insert(store, Fact("killed"), said, door="test"), 6)
    with store.locked():
        pass
