"""Taking up what waits for its flush: when, with what, how often, and what happens to what always fails."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from banks import NOON, Clock
from daemons import Begun, Place, until
from fake_model import FakeModel
from scripted_model import Scripted, keep, offline, session, turns
from terminal import Shell

from ua_memory import Memory
from ua_memory.daemon.worker import GRACE_SECONDS, next_due
from ua_memory.errors import Malformed, ModelRefused, ModelUnavailable
from ua_memory.retain import queue as tries
from ua_memory.retain.queue import FIRST_RETRY_SECONDS, MOST_RETRY_SECONDS, SET_ASIDE_AFTER, QueueEntry
from ua_memory.retain.queue import TurnQueue as Queue

SAID = ("p: We decided to move the API to Fly.io because Heroku doubled its price.", "a: Noted.")
OLD = NOON - timedelta(days=1)


# -- when to try again -------------------------------------------------------------------------------------


def test_the_wait_doubles_up_to_an_hour_and_never_the_same_for_all() -> None:
    waits = [(tries.retry_time(NOON, n, 1.0) - NOON).total_seconds() for n in range(1, 9)]
    assert waits == [FIRST_RETRY_SECONDS * 2**n for n in range(6)] + [MOST_RETRY_SECONDS, MOST_RETRY_SECONDS]
    assert tries.retry_time(NOON, 3, 0.0) - NOON == (tries.retry_time(NOON, 3, 1.0) - NOON) / 2
    assert tries.retry_time(NOON, 10**6, 0.5) > NOON


def test_what_is_due(tmp_path: Path) -> None:
    queue = Queue(tmp_path, str, lambda: 1.0)

    def one(name: str, modelled: bool | None, at: Any = OLD) -> QueueEntry:
        return queue.put(session(name), turns(*SAID), at=at, for_model=modelled)

    def chosen(*waiting: QueueEntry, modelled: bool, at: Any = NOON) -> str | None:
        found = next_due(waiting, at, modelled=modelled)
        return found and found.session.session

    plain, meant, old = one("plain", False), one("meant", True), one("old", None)
    assert chosen(meant, plain, modelled=True) == "meant"
    assert chosen(meant, old, plain, modelled=False) == "plain", "nobody's sentences instead of a model"
    assert chosen(meant, old, modelled=False) is None
    young = one("young", False, NOON)
    assert chosen(young, modelled=True) is None
    assert chosen(young, modelled=True, at=NOON + timedelta(seconds=GRACE_SECONDS)) == "young"
    queue.record_failure(plain.key, "no network", NOON)
    plain = queue.get(plain.key)
    assert chosen(plain, modelled=True) is None
    assert chosen(plain, modelled=True, at=NOON + timedelta(seconds=FIRST_RETRY_SECONDS)) == "plain"
    queue.record_failure(plain.key, "no network", NOON, for_model=True)
    later = NOON + timedelta(days=1)
    assert chosen(queue.get(plain.key), modelled=False, at=later) is None, "a model was asked once"


# -- what always fails ---------------------------------------------------------------------------------------


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.init(tmp_path / "bank", now=Clock(), door="test") as opened:
        yield opened


def put(memory: Memory, name: str = "s1", modelled: bool | None = True) -> str:
    queue = Queue(memory.store.bank.pending, str)
    return queue.put(session(name), turns(*SAID), at=OLD, for_model=modelled).key


def refused() -> ModelRefused:
    return ModelRefused("the model declined")


def test_a_poisoned_session_is_set_aside_and_hinders_no_other(memory: Memory) -> None:
    bad = put(memory, "bad")
    for n in range(SET_ASIDE_AFTER):
        assert not memory.queue.conversations()[0].set_aside
        with pytest.raises(ModelRefused):
            memory.queue.attempt(bad, model=Scripted(refused()))
        assert memory.queue.conversations()[0].attempts.count == n + 1
    assert (
        memory.queue.conversations()[0].set_aside
        and memory.queue.conversations()[0].reason == "the model declined"
    )
    assert (
        memory.queue.attempt(bad) is None
        and next_due(memory.queue.conversations(), NOON + timedelta(9), modelled=True) is None
    )
    put(memory, "good")
    assert len(memory.flush().done) == 1 and [one.key for one in memory.queue.conversations()] == [bad]
    done = memory.queue.retry_conversations([bad])
    assert len(done) == 1 and not memory.queue.conversations()


def test_a_retry_that_fails_puts_it_back_all_the_same(memory: Memory) -> None:
    bad = put(memory)
    for _ in range(SET_ASIDE_AFTER):
        with pytest.raises(ModelRefused):
            memory.queue.attempt(bad, model=Scripted(refused()))
    with pytest.raises(ModelRefused):
        memory.queue.retry_conversations(model=Scripted(refused()))
    assert (
        not memory.queue.conversations()[0].set_aside
        and memory.queue.conversations()[0].attempts.count == SET_ASIDE_AFTER + 1
    )


def test_an_outage_never_sets_anything_aside(memory: Memory) -> None:
    key = put(memory)
    for _ in range(3 * SET_ASIDE_AFTER):
        with pytest.raises(ModelUnavailable):
            memory.queue.attempt(key, model=Scripted(offline()))
    one = memory.queue.conversations()[0]
    assert (
        not one.set_aside
        and one.attempts.retry_at
        and one.attempts.retry_at <= NOON + timedelta(seconds=MOST_RETRY_SECONDS)
    )
    done = memory.queue.attempt(key, model=Scripted([keep(SAID[0][3:])], "done"))
    assert done and len(done.facts) == 1 and not memory.queue.conversations()


def test_a_bug_is_counted_like_a_poison(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    key = put(memory, modelled=False)
    monkeypatch.setattr("ua_memory.retain.flush.Extraction", lambda *_, **__: 1 / 0)
    for _ in range(SET_ASIDE_AFTER):
        with pytest.raises(ZeroDivisionError):
            memory.queue.attempt(key)
    assert (
        memory.queue.conversations()[0].set_aside
        and "ZeroDivisionError" in memory.queue.conversations()[0].reason
    )


def test_a_record_that_cannot_be_read(memory: Memory) -> None:
    bad, good = put(memory, "bad"), put(memory, "good")
    file = memory.store.bank.pending / f"turns-{bad}.jsonl"
    for wrong in (
        b"\0\0\0\n",
        b'{"id": "e1"}\n',
        b'{"session": 5}\n',
        b'{"session": {"client": "x"}, "id": 1}\n',
    ):
        file.write_bytes(wrong)
        broken = {one.key: one for one in memory.queue.conversations()}[bad]
        assert broken.set_aside and "cannot be read" in broken.reason, wrong
    assert memory.queue.attempt(bad) is None
    with pytest.raises(Malformed, match="cannot be read"):
        memory.queue.retry_conversations([bad])
    assert [one.key for one in memory.flush().done] == [good]
    again = put(memory, "bad")
    assert again == bad and {one.key: one.set_aside for one in memory.queue.conversations()} == {
        bad: False,
        f"{bad}-1": True,
    }
    assert memory.queue.drop(f"{bad}-1").broken


def _dies(place: Place, key: str) -> None:
    code = (
        "import os, sys; from ua_memory.retain import flush"
        "\nflush.Extraction = lambda *_, **__: os.kill(os.getpid(), 9)"
        "\nfrom ua_memory.daemon.worker import main; main(sys.argv[1:])"
    )
    assert place.begun(code, str(place.root), key).wait() == -signal.SIGKILL


def test_what_kills_its_process_is_counted(memory: Memory) -> None:
    key = put(memory, modelled=False)
    for n in range(2):
        _dies(Place(memory.store.bank.root), key)
        assert memory.queue.conversations()[0].attempts.count == n, "known by the next try"
    assert memory.queue.attempt(key), "and the next may do it"


def test_what_is_shown(tmp_path: Path, memory: Memory) -> None:
    key = put(memory)
    shell = Shell(tmp_path, memory.store.bank.root)
    for _ in range(SET_ASIDE_AFTER):
        with pytest.raises(ModelRefused):
            memory.queue.attempt(key, model=Scripted(refused()))
    shown = shell("queue", "list", "--json").json["waiting"][0]
    assert shown["aside"] is True and shown["tries"] == SET_ASIDE_AFTER and shown["again"] > shown["since"]
    assert "set aside" in shell("queue", "list").out and f"queue retry {key}" in shell("status").out
    assert shell("queue", "retry", key).code == 0
    assert shell("queue", "list", "--json").json == {"waiting": []}


# -- the daemon ----------------------------------------------------------------------------------------------

HURRY = "import ua_memory.daemon.worker as f; f.QUEUE_INTERVAL = f.REST = 0.1; f.GRACE_SECONDS = 0.5\n"


BUSY = 60
"""Seconds that a step may take on a busy machine: a model's client alone is two of work."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    memory = Memory.init(tmp_path / "bank", door="test")
    memory.close()
    found = Place(memory.store.bank.root)
    yield found
    found.kill()


def run_daemon(place: Place, **env: str) -> Begun:
    code = HURRY + "from ua_memory.cli.fast import main; main()"
    # by words: a flush is what is tested here, and to load embedding model takes longer than one
    return place.begun(code, "daemon", "run", UA_MEMORY_EMBEDDING="none", **env)


def waiting(place: Place) -> list[QueueEntry]:
    with Memory.open(place.root) as memory:
        return memory.queue.conversations()


def wait_for(place: Place, modelled: bool, name: str = "s1") -> Path:
    with Memory.open(place.root) as memory:
        key = put(memory, name, modelled)
        return memory.store.bank.pending / f"turns-{key}.jsonl"


def test_what_waits_is_replayed_after_an_outage(place: Place) -> None:
    file = wait_for(place, True)
    steps = [{"error": 401}, {"calls": [keep(SAID[0][3:])]}, {"text": "done"}]
    with FakeModel(*steps) as fake:
        daemon = run_daemon(place, ANTHROPIC_BASE_URL=fake.url, ANTHROPIC_API_KEY="sk-ant-test")
        until(lambda: b'"failed"' in file.read_bytes(), BUSY)
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        assert [next(iter(row)) for row in rows][-2:] == ["begun", "failed"] and rows[-1]["model"] is True
        until(lambda: "waits on, not before" in place.logged(), BUSY)
        assert len(fake.bodies) == 1, "not again before its time"
        again = rows[-1]["again"]  # the hour has come
        file.write_text(file.read_text().replace(again, OLD.isoformat()))
        until(lambda: not file.exists(), BUSY)
        until(lambda: "flushed claude-code" in place.logged(), BUSY)
    with Memory.open(place.root) as memory:
        assert sum(one.trailer("Memory-Op") == "flush" for one in memory.store.history.log()) == 1
    daemon.terminate()
    assert daemon.wait(30) == 0


def test_without_a_model_only_what_nobody_meant_for_one_is_flushed(place: Place) -> None:
    meant, plain = wait_for(place, True, "meant"), wait_for(place, False, "plain")
    daemon = run_daemon(place)
    until(lambda: not plain.exists(), BUSY)
    until(lambda: "started without one" in place.logged(), BUSY)
    assert meant.exists() and len(waiting(place)) == 1
    daemon.terminate()
    assert daemon.wait(30) == 0


def test_a_daemon_that_leaves_ends_its_flush_and_loses_nothing(place: Place) -> None:
    file = wait_for(place, True)
    with FakeModel({"text": "x", "hang": 30}) as fake:
        daemon = run_daemon(place, ANTHROPIC_BASE_URL=fake.url, ANTHROPIC_API_KEY="sk-ant-test")
        until(lambda: fake.bodies, BUSY)
        assert place.up()["flushing"] == waiting(place)[0].key
        began = time.monotonic()
        assert place.run("search", "Heroku", daemon="require").code == 0
        assert time.monotonic() - began < 10, "commands do not wait for a model"
        daemon.terminate()
        assert daemon.wait(30) == 0
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert rows[-1]["failed"] == tries.STOPPED and not rows[-1]["own"]
    assert len(waiting(place)[0].turns) == len(SAID)
