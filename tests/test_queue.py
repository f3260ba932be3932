"""Turns that wait: durable, redacted, taken in once, let go only when their facts are committed."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import stat
import time
from pathlib import Path

import pytest
from banks import NOON
from scripted_model import session, turns

from ua_memory.clients.turns import Session
from ua_memory.errors import Busy, CannotWrite, NotFound
from ua_memory.retain.queue import TurnQueue as Queue
from ua_memory.retain.queue import queue_key


@pytest.fixture
def queue(tmp_path: Path) -> Queue:
    return Queue(tmp_path / "pending", lambda text: text.replace("hunter2", "[redacted: password]"))


def test_turns_come_back_as_they_were(queue: Queue) -> None:
    said = turns("p: héllo\nworld", "t: Bash ls: ok", "ok \U0001f600")
    waiting = queue.put(session(), said, at=NOON, size=1234)
    assert waiting.turns == tuple(said) and waiting.session == session()
    assert (waiting.size, waiting.attempts.count, waiting.reason, waiting.since) == (1234, 0, "", NOON)
    assert queue.all() == [waiting] and queue.keys() == [waiting.key]


def test_a_turn_is_taken_in_once(queue: Queue) -> None:
    queue.put(session(), turns("p: one", "two"), at=NOON)
    again = queue.put(session(), [*turns("p: one", "two"), *turns("p: three", first=3)], at=NOON, size=5)
    assert [turn.id for turn in again.turns] == ["e1", "e2", "e3"] and again.size == 5


def test_sessions_wait_apart(queue: Queue) -> None:
    names = [("claude-code", "a"), ("claude-code", "b"), ("pi", "a"), ("we/ird ü", "../../x"), ("", "\0")]
    keys = {queue.put(Session(*name), turns("p: hi"), at=NOON).key for name in names}
    assert len(keys) == len(names) == len(queue.all())
    assert {path.parent for path in queue.folder.iterdir()} == {queue.folder}


def test_secrets_do_not_reach_the_disk(queue: Queue) -> None:
    queue.put(session(), turns("p: the password is hunter2"), at=NOON)
    file = next(queue.folder.iterdir())
    assert b"hunter2" not in file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(queue.folder.stat().st_mode) == 0o700


def test_only_what_was_consumed_is_let_go(queue: Queue) -> None:
    key = queue.put(session(), turns("p: one", "two"), at=NOON).key
    queue.record_failure(key, "no network", NOON)
    queue.put(session(), turns("p: three", first=3), at=NOON, size=9)
    queue.remove_turns(key, {"e1", "e2"})
    left = queue.get(key)
    assert [turn.id for turn in left.turns] == ["e3"]
    assert left.attempts.count == 0 and left.session == session()
    queue.remove_turns(key, {"e3"})
    assert queue.all() == [] and list(queue.folder.iterdir()) == []
    with pytest.raises(NotFound):
        queue.get(key)


def test_failures_are_counted_and_the_last_is_told(queue: Queue) -> None:
    key = queue.put(session(), turns("p: one"), at=NOON).key
    queue.record_failure(key, "no network", NOON)
    queue.record_failure(key, "the key is not accepted", NOON)
    assert (queue.get(key).attempts.count, queue.get(key).reason) == (2, "the key is not accepted")


def test_a_half_line_of_a_killed_writer_is_passed_over(queue: Queue) -> None:
    key = queue.put(session(), turns("p: one"), at=NOON).key
    file = next(queue.folder.iterdir())
    file.write_bytes(file.read_bytes() + b'{"id": "e2", "role": "per')
    assert len(queue.get(key).turns) == 1
    assert [turn.id for turn in queue.put(session(), turns("p: two", first=2), at=NOON).turns] == ["e1", "e2"]


def test_keys_of_a_later_version_are_passed_over(queue: Queue) -> None:
    key = queue.put(session(), turns("p: one"), at=NOON).key
    file = next(queue.folder.iterdir())
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps({**row, "new": 1}) + "\n" for row in rows))
    assert len(queue.get(key).turns) == 1


def test_dropping(queue: Queue) -> None:
    key = queue.put(session(), turns("p: one"), at=NOON).key
    with queue.claim(key, 0), pytest.raises(Busy):
        queue.drop(key)
    assert len(queue.drop(key).turns) == 1 and queue.all() == []
    for wrong in (key, "", "../x", "nonsense"):
        with pytest.raises(NotFound):
            queue.drop(wrong)


def test_one_process_flushes_a_session_at_a_time(queue: Queue) -> None:
    with queue.claim("a", 0), queue.claim("b", 0), pytest.raises(Busy), queue.claim("a", 0.1):
        pass
    with queue.claim("a", 0):
        assert queue.keys() == []


def _hold(queue: Queue, ready: str) -> None:
    with queue.claim("a", 0):
        Path(ready).touch()
        time.sleep(60)


def test_a_claim_ends_with_its_process(queue: Queue, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    child = multiprocessing.get_context("fork").Process(target=_hold, args=(queue, str(ready)))
    child.start()
    while not ready.exists():
        time.sleep(0.01)
    with pytest.raises(Busy), queue.claim("a", 0):
        pass
    os.kill(child.pid or 0, signal.SIGKILL)
    child.join()
    with queue.claim("a", 1):
        pass


def _put(queue: Queue, number: int) -> None:
    for n in range(10):
        queue.put(session(), turns(f"p: {number} {n}", first=100 * number + n), at=NOON)


def test_many_processes_at_once(queue: Queue) -> None:
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=_put, args=(queue, number)) for number in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert len(queue.get(queue_key(session())).turns) == 40


def test_a_disk_that_refuses_is_said(tmp_path: Path) -> None:
    (tmp_path / "pending").write_text("a file where the folder should be")
    with pytest.raises(CannotWrite):
        Queue(tmp_path / "pending", str).put(session(), turns("p: one"), at=NOON)
