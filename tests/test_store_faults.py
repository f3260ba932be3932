"""A disk that refuses: a clear message, the truth as before, the next command as if nothing were (I9)."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from kill_points import MACHINE, PERSON, STEPS, counted, whole
from store_banks import DAY, finish, first_author, insert, inserted, make, on_disk, open_again, python, write

from ua_memory import discovery as regular
from ua_memory.config import Config
from ua_memory.errors import Busy, CannotWrite, GitFailed, UaMemoryError
from ua_memory.git.history import History
from ua_memory.git.process import Process
from ua_memory.memory import Memory
from ua_memory.store import pending
from ua_memory.store.store import Store

CODES = [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.EMFILE, errno.EDQUOT]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = make(tmp_path / "b")
    insert(store, "first")
    return store


def failing(monkeypatch: pytest.MonkeyPatch, stop: int, code: int) -> list[str]:
    """Let the step numbered `stop` fail once."""
    for owner, name in STEPS:
        monkeypatch.setattr(owner, name, getattr(owner, name))  # so that it is put back
    return counted(
        stop, lambda name: GitFailed("git no") if name == "run" else OSError(code, os.strerror(code))
    )


def steps_of_an_insert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    store = make(tmp_path / "counted")
    insert(store, "first")
    with monkeypatch.context() as patch:
        taken = failing(patch, 10**9, 0)
        insert(store, "second")
    return taken


@pytest.mark.few(3)
@pytest.mark.parametrize("code", CODES, ids=[errno.errorcode[c] for c in CODES])
def test_every_step_of_an_insert_may_fail(code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = steps_of_an_insert(tmp_path, monkeypatch)
    store = make(tmp_path / "b")
    insert(store, "first")
    expected = ["first"]
    for stop, name in list(enumerate(steps))[CODES.index(code) :: len(CODES)]:
        before = on_disk(store)
        text, told = f"fact {stop}", ""
        with monkeypatch.context() as patch:
            failing(patch, stop, code)
            try:
                insert(store, text)
            except UaMemoryError as error:
                assert isinstance(error, CannotWrite | GitFailed), (name, error)
                told = str(error)
                assert os.strerror(code) in told or "git" in told, (name, told)
        if told:
            assert on_disk(store) in (before, [*before, text]), name
            if on_disk(store) == before:
                store.adopt()
                assert on_disk(store) == before, f"{name}: what was refused is not done later"
            else:
                expected.append(text)
        else:
            expected.append(text)
        store = open_again(store.bank.root)
        insert(store, f"after {stop}")
        expected.append(f"after {stop}")
        assert on_disk(store) == expected, (stop, name)
        store.adopt()
    whole(store)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_write_that_fails_half_way(code: int, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from ua_memory.store import swap

    before, real = store.read(DAY), swap.open if hasattr(swap, "open") else open

    class Full:
        def __init__(self, handle: Any) -> None:
            self.handle = handle

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self.handle.close()

        def write(self, data: bytes) -> None:
            self.handle.write(data[: len(data) // 2])
            raise OSError(code, os.strerror(code))

    for number in range(2):  # the record, and the file
        count = iter(range(99))

        def half(*args: Any, number: int = number, count: Any = count, **named: Any) -> Any:
            handle = real(*args, **named)
            return Full(handle) if next(count) == number else handle

        monkeypatch.setattr(swap, "open", half, raising=False)
        with pytest.raises(CannotWrite, match=os.strerror(code)):
            insert(store, "refused")
        monkeypatch.undo()
        assert store.read(DAY) == before
        store.adopt()
        assert store.read(DAY) == before
        whole(store)


def test_a_disk_that_is_full_once_the_file_is_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise CannotWrite(os.strerror(errno.ENOSPC))

    def refusing(*_: object, **__: object) -> None:
        monkeypatch.setattr(pending, "save", full)
        raise GitFailed("Out of diskspace")

    monkeypatch.setattr(History, "commit", refusing)
    done = inserted(store, "second")  # a refusal would have it said again, and kept twice
    assert done.revision is None and "not committed yet" in done.notes[0]
    with Memory.open(store.bank.root, config=replace(store.config, quiet_seconds=0)) as memory:
        assert memory.search("second").hits[0].item.text == "second"
        write(store, "memory/late.md", "- third\n")
        found = memory.search("third")
        assert found.hits[0].item.text == "third" and os.strerror(errno.ENOSPC) in found.notes[0]
    monkeypatch.undo()
    store.adopt()
    assert on_disk(store) == ["first", "second"]
    whole(store)


def test_a_file_that_cannot_be_read_says_so_and_hides_no_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(store, "memory/bad.md", "- one\n")
    store.adopt()
    write(store, "memory/bad.md", "- two\n")
    write(store, "memory/good.md", "- three\n")
    real = regular.opener

    def refusing(name: str, flags: int) -> int:
        if Path(name).name == "bad.md":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(name, flags)

    monkeypatch.setattr(regular, "opener", refusing)
    with pytest.raises(CannotWrite, match="cannot be read"):
        store.read("memory/bad.md")
    store.adopt()
    assert "memory/good.md" in store.history.blobs()
    assert not store.survey().held


def test_a_process_that_cannot_start_git(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: object, **__: object) -> bytes:
        raise GitFailed("git did not start: Cannot allocate memory")

    monkeypatch.setattr(Process, "run", refusing)
    insert(store, "second")
    monkeypatch.undo()
    assert on_disk(store) == ["first", "second"]
    insert(store, "third")
    assert on_disk(store) == ["first", "second", "third"]
    whole(store)


@pytest.mark.parametrize("stop", range(5))
def test_a_git_that_fails_once_makes_no_line_of_a_person_ours(
    stop: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I22: what the trail had is asked again when the commit is made; and so is the person's name."""
    write(store, DAY, (store.bank.root / DAY).read_text() + "- by hand\n")
    with monkeypatch.context() as patch:
        run, read_objects, calls = Process.run, History.read_objects, count()

        def once(real: Callable[..., Any]) -> Callable[..., Any]:
            def ask(*words: Any, **more: Any) -> Any:
                if next(calls) == stop:
                    raise GitFailed("git no")
                return real(*words, **more)

            return ask

        patch.setattr(Process, "run", once(run))
        patch.setattr(History, "read_objects", once(read_objects))
        insert(store, "after")
    store.adopt()
    assert next(calls) > stop, "it was asked as often as that"
    assert first_author(store, "by hand") == PERSON
    assert first_author(store, "after") == MACHINE


def test_a_lock_that_another_process_holds(store: Store) -> None:
    code = """
    import sys
    from pathlib import Path
    from store_banks import open_again
    with open_again(Path(sys.argv[1])).locked():
        print("locked", flush=True)
        sys.stdin.readline()
    """
    child = python(code, store.bank.root)
    assert child.stdout and child.stdout.readline() == "locked\n"
    store.config = Config(id=store.config.id, trail="own", lock_seconds=0.2)
    with pytest.raises(Busy, match=str(child.pid)):
        insert(store, "second")
    assert on_disk(store) == ["first"]
    assert store.survey().files, "reading needs no lock"
    child.communicate("done\n", timeout=20)
    insert(store, "second")


def test_a_file_system_without_locks(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from ua_memory.store import lock

    def refusing(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(lock.fcntl, "flock", refusing)
    with pytest.raises(CannotWrite, match="locks"):
        insert(store, "second")


def test_clocks_that_jump(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setattr(time, "time_ns", lambda: 1)
    insert(store, "second")
    past = 4_000_000_000
    os.utime(store.bank.root / DAY, (past, past))
    monkeypatch.undo()
    write(store, DAY, (store.bank.root / DAY).read_text() + "- by hand\n")
    insert(store, "third")
    assert on_disk(store) == ["first", "second", "by hand", "third"]
    whole(store)


def test_threads_of_one_process_wait_for_each_other(store: Store) -> None:
    code = """
    import sys, threading
    from pathlib import Path
    from store_banks import insert, open_again
    store = open_again(Path(sys.argv[1]))
    threads = [threading.Thread(target=insert, args=(store, f"thread {n}")) for n in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
    """
    finish([python(code, store.bank.root)])
    assert sorted(on_disk(store)) == ["first", *(f"thread {n}" for n in range(8))]
    whole(store)
