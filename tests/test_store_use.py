"""What use of the tool brought to light: each was seen to go wrong once, with these very steps."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from truth import DAY, in_trail, insert, inserted, make, on_disk, write

from ua_memory import undo
from ua_memory.errors import GitFailed
from ua_memory.store import Store

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
    undo.undo(store, door="test")
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
    with pytest.raises(GitFailed, match="wait for their commit"):
        undo.undo(store, door="test")
    lock.unlink()
    undo.undo(store, door="test")
    assert on_disk(store) == in_trail(store) == ["first"]


def test_no_secret_stands_in_a_trailer(store: Store) -> None:
    first = insert(store, "hi", request=TOKEN, session=TOKEN)
    assert insert(store, "hi", request=TOKEN, session=TOKEN).id == first.id
    assert not any(TOKEN in line for line in store.history.run("log", "--format=%B").decode().splitlines())


def test_a_merge_of_a_stale_buffer_is_told(store: Store) -> None:
    insert(store, "one")
    insert(store, "two")
    without(store, "two")
    assert "1 fact put back" in " ".join(inserted(store, "three").notes)
    assert on_disk(store) == ["one", "two", "three"]
