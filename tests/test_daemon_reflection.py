"""What a daemon does unasked after a rest: consolidation and stale pages, within its limits."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from banks import Clock
from daemons import Begun, Place, until
from deciding_model import Decider, each_one
from fake_model import Script
from scripted_model import Scripted

from ua_memory import Memory
from ua_memory.daemon.worker import IndexReleasingModel
from ua_memory.errors import BudgetSpent, Busy
from ua_memory.index.vectors import VectorLock, VectorsLocked
from ua_memory.retain.queue import FIRST_RETRY_SECONDS, UPKEEP_INTERVAL, Jobs

PRICE = "Alice moved the API to Fly.io because Heroku's price doubled."
BUSY = 60
"""Seconds that a step may take on a busy machine."""


# -- what is noted of a run --------------------------------------------------------------------------------


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    with Memory.init(tmp_path / "bank", now=clock, door="test") as opened:
        yield opened


def test_a_run_is_due_when_something_has_changed_and_some_time_passed(memory: Memory, clock: Clock) -> None:
    jobs = Jobs(memory.store)
    assert jobs.last("consolidate") is None and jobs.upkeep_due()
    memory.insert(PRICE)
    memory.consolidate()
    memory.pages.refresh_stale()
    assert (last := jobs.last("consolidate")) and last.result == "nothing new, of 1 fact"
    assert not jobs.upkeep_due(), "it has seen everything"
    memory.insert("Bob drinks tea.")
    assert not jobs.upkeep_due(), "not again at once"
    clock.at += UPKEEP_INTERVAL
    assert jobs.upkeep_due()


def test_pauses_grow_with_failures_and_pages_wait_with_it(memory: Memory, clock: Clock) -> None:
    jobs, waits = Jobs(memory.store), []
    for _ in range(3):
        with pytest.raises(BudgetSpent), jobs.record_run("consolidate"):
            raise BudgetSpent("$3.00 of $3.00 are used in this run")
        last = jobs.last("consolidate")
        assert last and last.again and "$3.00" in last.result
        waits.append((last.again - clock.at).total_seconds())
        assert not jobs.upkeep_due(), "nor for pages, which have never been refreshed"
    assert (
        waits == [FIRST_RETRY_SECONDS, 2 * FIRST_RETRY_SECONDS, 4 * FIRST_RETRY_SECONDS] and last.failed == 3
    )
    clock.later(seconds=4 * FIRST_RETRY_SECONDS)
    assert jobs.upkeep_due(), "also where nothing has changed"
    memory.consolidate()
    last = jobs.last("consolidate")
    assert last and not last.failed


def test_of_a_bug_no_words_are_noted_and_of_one_that_did_not_run_nothing(memory: Memory) -> None:
    jobs = Jobs(memory.store)
    with pytest.raises(Busy), jobs.record_run("sync"):
        raise Busy("another sync is running")
    assert jobs.last("sync") is None
    with pytest.raises(ValueError), jobs.record_run("sync"):
        raise ValueError(PRICE)
    assert (last := jobs.last("sync")) and last.result == "ValueError"
    (memory.store.bank.local / "job-sync.json").write_text("[")
    assert jobs.last("sync") is None


def test_a_portion_that_leaves_facts_is_due_again(memory: Memory, clock: Clock) -> None:
    memory.insert(PRICE)
    memory.insert("Bob drinks tea.")
    memory.consolidate(limit=1)
    memory.pages.refresh_stale()
    clock.at += UPKEEP_INTERVAL + timedelta(seconds=1)
    assert Jobs(memory.store).due("consolidate") and not Jobs(memory.store).due("refresh")


def test_the_index_is_closed_while_a_model_thinks(memory: Memory) -> None:
    memory.insert(PRICE)
    owner = VectorLock(memory.index.generations.folder / "owner.lock")

    def another_opens_it() -> None:
        owner.acquire(0)
        owner.release()

    assert memory.search("Heroku").hits
    with pytest.raises(VectorsLocked):
        another_opens_it()
    model = Scripted("done", on_ask=another_opens_it)
    assert IndexReleasingModel(model, memory).ask("", [], purpose="refresh").text == "done"
    assert memory.search("Heroku").hits, "it opens again"


# -- by a daemon -------------------------------------------------------------------------------------------


class Keeper(Decider):
    """Believes every fact as it is worded, and writes one sentence on a page that cites the first."""

    def reply_to(self, body: dict[str, Any], headers: dict[str, str]) -> Script:
        if any(tool["name"] == "decide" for tool in body["tools"]):
            return super().reply_to(body, headers)
        with self._lock:
            self.bodies.append(body)
        if len(body["messages"]) > 1:
            return {"text": "done"}
        said = [{"text": "The API left Heroku for Fly.io.", "evidence": [1]}]
        return {"calls": [("append_paragraph", {"section": "S0", "sentences": said})]}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Memory.init(tmp_path / "bank", door="test") as memory:
        memory.insert(PRICE)
        memory.pages.create("infra", "Infra", "where does the API run, Heroku or Fly.io?")
    found = Place(memory.store.bank.root)
    yield found
    found.kill()


QUICK = "upkeep_minutes = 0.01"


def keys(model: Keeper) -> dict[str, str]:
    return {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "sk-ant-test"}


def run_daemon(place: Place, settings: str = QUICK, **env: str) -> Begun:
    file = place.root / "ua-memory.toml"
    file.write_text(f"{file.read_text()}\n[daemon]\n{settings}\n")
    code = "import ua_memory.daemon.worker as f; f.QUEUE_INTERVAL = f.REST = 0.1\n"
    code += "f.UPKEEP_CHECK_INTERVAL = 0.5\n"
    code += "from ua_memory.cli.fast import main; main()"
    # by words: to load the embedding model takes longer than all of it
    return place.begun(code, "daemon", "run", UA_MEMORY_EMBEDDING="none", **env)


def job(place: Place, name: str) -> dict[str, Any]:
    """What `status` says of it. Its daemon answers, so that the rest begins anew."""
    found: dict[str, Any] = json.loads(place.run("status", "--json").out)["jobs"][name]
    return found


def operations(place: Place) -> list[str]:
    with Memory.open(place.root) as memory:
        return [one.trailer("Memory-Op") for one in memory.store.history.log()]


def test_after_a_rest_facts_become_observations_and_a_stale_page_is_refreshed(place: Place) -> None:
    assert job(place, "consolidate") == {"why": "no daemon runs"}
    with Keeper(each_one) as model:
        daemon = run_daemon(place, **keys(model))
        until(lambda: "refresh: 1 page refreshed" in place.logged(), BUSY)
        asked = len(model.bodies)
        assert "consolidate: 1 created, of 1 fact" in place.logged()
        assert "The API left Heroku for Fly.io." in (place.root / "memory/pages/infra.md").read_text()
        assert PRICE in next((place.root / "memory/observations").iterdir()).read_text()
        found = job(place, "refresh")
        assert found["last"]["result"] == "1 page refreshed" and found["why"] == "nothing has changed since"
        assert "refresh: " in place.run("status").out
        assert len(model.bodies) == asked, "nothing new, nobody asked"
    daemon.terminate()
    assert daemon.wait(30) == 0


def test_with_the_setting_off_nothing_happens(place: Place) -> None:
    with Keeper(each_one) as model:
        nothing(place, "off: daemon.upkeep_minutes is 0", "upkeep_minutes = 0", **keys(model))
        assert not model.bodies


def test_without_a_model_nothing_is_done_in_its_place(place: Place) -> None:
    nothing(place, "the daemon has no model", QUICK)


def test_status_says_what_gives_the_daemon_a_model(place: Place) -> None:
    def said(word: str) -> str:
        return until(lambda: word in place.run("status").out and place.run("status").out, 30)

    with Keeper(each_one) as model:
        assert place.run("daemon", "start", **keys(model)).code == 0
        assert "ua-memory daemon restart --with-key" in said("the daemon has no model")
        assert place.run("daemon", "restart", "--with-key", **keys(model)).code == 0
        assert "--with-key" not in said("consolidate: not run yet; next not before")
        assert place.run("daemon", "restart", **keys(model)).code == 0
        assert "--with-key" in said("the daemon has no model")
        assert place.run("daemon", "stop").code == 0


def nothing(place: Place, why: str, settings: str, **env: str) -> None:
    before = operations(place)
    daemon = run_daemon(place, settings, **env)
    place.up()
    time.sleep(3)  # the others need one
    assert operations(place) == before and job(place, "consolidate") == {"why": why}
    daemon.terminate()
    assert daemon.wait(30) == 0


def test_whose_owner_wants_no_model_has_facts_compared(place: Place) -> None:
    daemon = run_daemon(place, UA_MEMORY_PROVIDER="none")
    until(lambda: "refresh: 1 page refreshed" in place.logged(), BUSY)
    assert "Heroku" in (place.root / "memory/pages/infra.md").read_text().partition("---\n\n")[2]
    daemon.terminate()
    assert daemon.wait(30) == 0


def test_a_spent_limit_asks_nobody_and_is_said_once(place: Place) -> None:
    with Keeper(each_one) as model:
        daemon = run_daemon(place, f"{QUICK}\n[limits]\nrun_usd = 0.0001", **keys(model))
        until(lambda: "consolidate failed, not before" in place.logged(), BUSY)
        time.sleep(2)
        found = job(place, "consolidate")
        assert not model.bodies and found["last"]["failed"] == 1 and "in this run" in found["last"]["result"]
        assert place.logged().count("consolidate failed") == 1 and job(place, "refresh").get("last") is None
        assert "failed: the next request could use" in place.run("status").out
        daemon.terminate()
        assert daemon.wait(30) == 0
