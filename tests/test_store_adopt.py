"""Hand edits are committed as the person's, byte for byte, whatever the bytes are (I20, I22)."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from kill_points import whole
from store_banks import DAY, first_author, git, in_trail, insert, make, on_disk, write

from ua_memory.errors import TooLarge, Usage
from ua_memory.git.history import History
from ua_memory.store import files as reading
from ua_memory.store import files as store_files
from ua_memory.store import scan as verdict
from ua_memory.store.store import Store

NOTE = "memory/note.md"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make(tmp_path / "b")


ODD = {
    "crlf": b"# day\r\n\r\n- one\r\n- two\r\n",
    "no final newline": b"- one\n- two",
    "crlf, no final newline": b"- one\r\n- two",
    "not utf-8": b"- caf\xe9 \xff\xfe\n- two\n",
    "bom": b"\xef\xbb\xbf- one\n",
    "nul": b"- a\0b\n",
    "lone cr": b"- a\rb\n- two\n",
    "only newlines": b"\n\n\n",
}


@pytest.mark.parametrize("data", ODD.values(), ids=ODD)
def test_bytes_are_kept_beside_an_insert(data: bytes, store: Store) -> None:
    (store.bank.root / DAY).write_bytes(data)
    insert(store, "ours")
    assert store.history.log([DAY])[-1].author == "Ann"
    assert store.history.read(store.history.log([DAY])[-1].id, DAY) == data
    after = store.read(DAY)
    assert after.startswith(data) and after == store.history.read("HEAD", DAY)
    assert first_author(store, "ours") == "ua-memory"
    whole(store)


@pytest.mark.parametrize("data", [b"", *ODD.values()], ids=["empty", *ODD])
def test_bytes_are_kept_when_adopted(data: bytes, store: Store) -> None:
    (store.bank.root / NOTE).write_bytes(b"- before\n")
    store.adopt()
    (store.bank.root / NOTE).write_bytes(data)
    store.adopt()
    assert store.history.read("HEAD", NOTE) == data == store.read(NOTE)
    assert not store.survey().changed


def test_an_edit_is_left_alone_while_it_is_young(store: Store) -> None:
    write(store, NOTE, "- one\n")
    store.adopt(quiet=30)
    assert store.history.read("HEAD", NOTE) is None
    past = time.time() - 40
    os.utime(store.bank.root / NOTE, (past, past))
    store.adopt(quiet=30)
    assert store.history.read("HEAD", NOTE) is None, "the time of the last change of any kind counts"
    time.sleep(0.15)
    store.adopt(quiet=0.1)
    assert store.history.read("HEAD", NOTE) == b"- one\n"


def test_only_the_files_named(store: Store) -> None:
    write(store, NOTE, "- one\n")
    write(store, DAY, "- two\n")
    store.adopt([NOTE, "memory/none.md", "../x"])
    assert set(store.survey().changed) == {DAY}


def test_settings_are_adopted_and_a_revision_leaves_them(store: Store) -> None:
    write(store, "ua-memory.toml", 'id = "abc"\ntrail = "own"\n')
    insert(store, "ours")
    assert "ua-memory.toml" in store.survey().changed
    store.adopt()
    assert store.history.log(["ua-memory.toml"], limit=1)[0].author == "Ann"
    assert not store.survey().changed


def test_a_file_in_the_place_of_a_link_and_back(store: Store, tmp_path: Path) -> None:
    write(store, NOTE, "- one\n")
    store.adopt()
    outside = tmp_path / "outside.md"
    outside.write_text("- not ours\n")
    (store.bank.root / NOTE).unlink()
    (store.bank.root / NOTE).symlink_to(outside)
    store.adopt()
    assert store.history.read("HEAD", NOTE) is None, "to the bank the file is gone"
    with pytest.raises(Usage), store.revision("x", door="test") as draft:
        draft.read(NOTE)
    assert outside.read_text() == "- not ours\n"
    (store.bank.root / NOTE).unlink()
    write(store, NOTE, "- two\n")
    store.adopt()
    assert on_disk(store, NOTE) == in_trail(store, NOTE) == ["two"]


def test_a_linked_folder_is_not_read(store: Store, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text("- not ours\n")
    (store.bank.root / "memory" / "sub").symlink_to(tmp_path / "outside")
    store.adopt()
    assert not [f for f in store.files() if "sub" in f.path]


def test_names_that_cannot_stand_in_a_line_are_not_read(store: Store) -> None:
    folder = os.fsencode(store.bank.root / "memory")
    for name in (b"a\nb.md", b"a\\b.md", b"\xff.md", b"a\x1bb.md"):
        Path(os.fsdecode(folder + b"/" + name)).write_text("- one\n")
    for name in ("ünï ćode.md", "a b\u00a0c.md", 'quo"te.md', "日本.md", "-dash.md", "*.md", ":(top)x.md"):
        write(store, f"memory/{name}", "- one\n")
    store.adopt()
    assert len([f for f in store.files() if f.path.startswith("memory/")]) == 7
    assert not store.survey().changed
    assert len(store.history.log()[0].paths) == 7


def test_a_file_over_the_limit_keeps_nobody_else_from_being_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store, NOTE, "- one\n")
    store.adopt()
    for module in (reading, verdict):
        monkeypatch.setattr(module, "MAX_FILE", 100)
    write(store, NOTE, "- one\n" * 100)
    write(store, DAY, "- two\n")
    store.adopt()
    assert in_trail(store) == ["two"] and in_trail(store, NOTE) == ["one"]
    assert not store.survey().held
    with pytest.raises(TooLarge), store.revision("x", door="test") as draft:
        draft.read(NOTE)


def test_a_person_commits_by_hand_between_ours(store: Store) -> None:
    root = store.bank.root
    insert(store, "first")
    write(store, DAY, (root / DAY).read_text() + "- by hand\n")
    (root / "code.py").write_text("pass\n")
    git(root, "add", "-A")
    git(root, "commit", "--quiet", "-m", "mine")
    (root / "staged.py").write_text("pass\n")
    git(root, "add", "staged.py")
    insert(store, "second")
    assert git(root, "status", "--porcelain") == "A  staged.py\n"
    assert [r.subject for r in store.history.log(limit=2)] == [f"insert: 1 fact into {DAY}", "mine"]
    assert on_disk(store) == in_trail(store) == ["first", "by hand", "second"]


def test_a_held_index_is_brought_along_later(store: Store) -> None:
    root = store.bank.root
    lock = root / ".git" / "index.lock"
    lock.touch()
    insert(store, "first")
    assert in_trail(store) == ["first"]
    lock.unlink()
    assert DAY in git(root, "status", "--porcelain")
    core = store.history.pending_index_paths()
    assert core == [DAY]
    store.adopt()
    with store.revision("mend", door="test"):
        pass
    assert git(root, "status", "--porcelain") == ""
    assert store.history.pending_index_paths() == []
    git(root, "commit", "--quiet", "--allow-empty", "-a", "-m", "mine")
    assert in_trail(store) == ["first"]


def test_what_a_person_changed_while_git_could_not_say(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    insert(store, "first")
    assert store_files.read is reading.read
    write(store, DAY, (store.bank.root / DAY).read_text() + "- by hand\n")
    store.adopt()
    assert first_author(store, "by hand") == "Ann"
    whole(store)


def test_edits_that_wait_do_not_read_the_head_one_by_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a bank that was copied just now every file waits, at each search."""
    marks = "<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> side\n"
    for number in range(20):
        write(store, f"memory/{number}.md", marks if number == 7 else "- a note\n")
    store.adopt(quiet=30)
    reads: list[str | None] = []
    head = History.head

    def counted(history: History) -> str | None:
        reads.append(head(history))
        return reads[-1]

    monkeypatch.setattr(History, "head", counted)
    store.adopt(quiet=30)
    assert len(reads) < 10 and len(store.survey().changed) == 20
