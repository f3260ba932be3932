"""What use of the tool brought to light: each was seen to go wrong once, with these very steps."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pytest
from store_banks import DAY, in_trail, insert, inserted, make, on_disk, write

from ua_memory.errors import GitFailed
from ua_memory.store.store import Store
from ua_memory.upkeep import undo

TOKEN = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0hL2oR4"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make(tmp_path / "b")


def without(store: Store, *gone: str) -> None:
    kept = [
        line
        for line in (store.bank.root / DAY).read_text().splitlines(True)
        if not any(g in line for g in gone)
    ]
    write(store, DAY, "".join(kept))


def test_what_was_restored_may_be_deleted_after_all(store: Store) -> None:
    names = [f"fact {n}" for n in range(1, 9)]
    for name in names:
        insert(store, name)
    without(store, *names[:7])
    undo.BankHistory(store, "test").undo()
    assert on_disk(store) == names
    without(store, *names[:7])
    assert DAY in store.survey().held
    store.adopt(accept=True)
    assert on_disk(store) == in_trail(store) == names[7:]


def test_a_lock_that_a_killed_git_left_is_broken(store: Store) -> None:
    insert(store, "first")
    lock = store.history.git_dir / "refs/heads/main.lock"
    lock.touch()
    young = inserted(store, "second")
    assert young.revision is None and str(lock) in " ".join(young.notes)
    long_ago = time.time() - 60
    os.utime(lock, (long_ago, long_ago))
    assert inserted(store, "third").revision
    assert on_disk(store) == in_trail(store) == ["first", "second", "third"]


def test_undo_does_not_mistake_the_last_commit_for_the_last_revision(store: Store) -> None:
    insert(store, "first")
    lock = store.history.git_dir / "refs/heads/main.lock"
    lock.touch()
    insert(store, "second")
    with pytest.raises(GitFailed, match="not committed yet"):
        undo.BankHistory(store, "test").undo()
    lock.unlink()
    undo.BankHistory(store, "test").undo()
    assert on_disk(store) == in_trail(store) == ["first"]


def test_no_secret_stands_in_a_trailer(store: Store) -> None:
    first = insert(store, "hi", request=TOKEN, session=TOKEN)
    assert insert(store, "hi", request=TOKEN, session=TOKEN).id == first.id
    assert not any(TOKEN in line for line in store.history.run("log", "--format=%B").decode().splitlines())


def test_a_merge_of_a_stale_buffer_is_told(store: Store) -> None:
    insert(store, "one")
    insert(store, "two")
    without(store, "two")
    assert "1 fact restored" in " ".join(inserted(store, "three").notes)
    assert on_disk(store) == ["one", "two", "three"]


def test_a_revision_of_many_files_looks_at_their_folder_a_few_times_and_asks_git_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert(store, "first")
    write(store, "memory/many/3.md", "by hand\n")
    looked, asked = Counter[str](), Counter[str]()
    listdir, run = os.listdir, store.history.run
    monkeypatch.setattr(os, "listdir", lambda path: (looked.update([str(path)]), listdir(path))[1])
    monkeypatch.setattr(
        store.history, "run", lambda *words, **more: (asked.update([words[0]]), run(*words, **more))[1]
    )
    with store.revision("import", door="test") as draft:
        for n in range(60):
            draft.write(f"memory/many/{n}.md", draft.read(f"memory/many/{n}.md") + b"prose\n")
        assert draft.read(DAY)
    folder = store.bank.root / "memory/many"
    assert looked[str(folder)] <= 6 and asked["ls-tree"] <= 12, (looked, asked)
    assert (
        (folder / "3.md").read_bytes()
        == store.history.read("HEAD", "memory/many/3.md")
        == b"by hand\nprose\n"
    )
    assert len(listdir(folder)) == 60 and not store.survey().changed
