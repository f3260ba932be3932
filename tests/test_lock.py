"""The writer lock: who comes next, and who cannot keep the others waiting (I70)."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from store_banks import finish, python

from ua_memory.errors import Busy
from ua_memory.store import lock

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc/locks tells who waits")
WAIT = """
import sys
from pathlib import Path
from ua_memory.store.lock import locked
print("here", flush=True)
with locked(Path(sys.argv[1]), 60):
    pass
"""


def until(wanted: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not wanted():
        assert time.monotonic() < end
        time.sleep(0.002)


def waiting(file: Path) -> int:
    """How many stand in the system's queue for a lock."""
    of = f":{file.stat().st_ino} "
    return sum("->" in line and of in line for line in Path("/proc/locks").read_text().splitlines())


def test_who_waits_longest_comes_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "POLL_SECONDS", 60)
    file, came = tmp_path / "lock", list[int]()

    def take(number: int) -> None:
        with lock.locked(file, 60):
            came.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
    with lock.locked(file, 0):
        for number, each in enumerate(threads, 1):
            each.start()
            until(lambda number=number: waiting(file) == number)  # type: ignore[misc]
        used = time.process_time()
        time.sleep(0.2)
        assert time.process_time() - used < 0.05, "who waits sleeps"
    for each in threads:
        each.join(20)
    assert came == list(range(8))


def test_who_gives_up_passes_the_lock_on(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with lock.locked(file, 0):
        with pytest.raises(Busy, match=str(os.getpid())), lock.locked(file, 0.05):
            raise AssertionError("nobody else has it")
        assert waiting(file) == 1, "its place is still there"
    until(lambda: not waiting(file))
    with lock.locked(file, 5), pytest.raises(Busy), lock.locked(file, 0):
        pass


def test_a_stopped_process_that_is_next_holds_nobody_up(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    with lock.locked(file, 0):
        child = python(WAIT, file)
        assert child.stdout and child.stdout.readline() == "here\n"
        until(lambda: waiting(file) == 1)
        os.kill(child.pid, signal.SIGSTOP)
        until(lambda: waiting(file) == 0)  # Linux lets a stopped one lose its place; it stands in line again
        taken = threading.Event()

        def take() -> None:
            with lock.locked(file, 60):
                taken.set()

        behind = threading.Thread(target=take)
        behind.start()
        until(lambda: waiting(file) > 0)
    try:
        assert taken.wait(10)
    finally:
        os.kill(child.pid, signal.SIGCONT)
        finish([child])
    behind.join(20)


def test_who_does_not_wait_stands_in_no_queue(tmp_path: Path) -> None:
    """The queue would give it the lock after all, and whoever comes then would find it held by nobody."""
    file = tmp_path / "lock"
    with lock.locked(file, 0):
        with pytest.raises(Busy, match="is writing"), lock.locked(file, 0):
            pass
        assert not waiting(file)
