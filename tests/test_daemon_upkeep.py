"""What a daemon does by itself: it catches up with the files, and commits hand edits that have rested."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from banks import Bank, git, new_bank
from daemons import Place, until
from index_bank import Counting

from ua_memory.daemon.worker import NEVER, REST, WORK, Schedule, Upkeep, WarmBank
from ua_memory.errors import Busy
from ua_memory.index import sync as condition
from ua_memory.store.scan import SnapshotCache
from ua_memory.text import tokens

DAY = "memory/2026-11-20.md"
QUIET = 0.3


class Served:
    """A bank with a daemon that no command asks anything: what is seen is its own doing."""

    def __init__(self, root: Path) -> None:
        self.bank = new_bank(root)
        settings = root / "ua-memory.toml"
        settings.write_text(settings.read_text() + f"\n[hand_edits]\nquiet_seconds = {QUIET}\n")
        self.bank.again().adopt()
        self.place = Place(self.bank.root)
        assert self.place.run("daemon", "start").code == 0
        self.bank.again()
        until(self.caught_up, 10)

    def caught_up(self) -> bool:
        return condition.state(self.bank.store).get("state") == "ready"

    def item(self, text: str) -> bool:
        """Whether the index has a text, asked without bringing it up to date."""
        import sqlite3

        found = list(self.bank.store.bank.index.glob("*/words.db"))
        if not found:
            return False
        db = sqlite3.connect(f"{found[0].as_uri()}?mode=ro", uri=True)
        try:
            return bool(
                db.execute("SELECT count(*) FROM items WHERE text LIKE ?", (f"%{text}%",)).fetchone()[0]
            )
        finally:
            db.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    found = Served(tmp_path / "bank")
    yield found
    found.place.kill()


def test_a_save_is_indexed_within_two_seconds_and_committed_after_its_quiet(served: Served) -> None:
    edits = lambda: [row for row in served.bank.log() if row[1] == "edit"]  # noqa: E731
    before, began = len(edits()), time.monotonic()
    served.bank.write("- Otters hold hands\n", DAY)
    until(lambda: served.item("Otters"), 2)
    until(lambda: len(edits()) > before, 5)
    assert time.monotonic() - began >= QUIET and edits()[0][0] != "ua-memory"
    until(served.bank.clean, 5)  # its record goes after its commit


def test_an_edit_that_goes_on_is_not_committed(served: Served) -> None:
    began, before = time.monotonic(), len(served.bank.log())
    while time.monotonic() - began < 3 * QUIET:
        served.bank.write(f"- Otters hold hands {time.monotonic()}\n", DAY)
        assert len(served.bank.log()) == before
        time.sleep(QUIET / 8)
    until(lambda: len(served.bank.log()) == before + 1, 5)


def test_its_own_writes_do_not_echo(served: Served) -> None:
    done = served.place.run("insert", "Herons stand still", daemon="require")
    assert done.code == 0
    until(lambda: served.item("Herons") and served.place.up()["caught_up"], 5)
    before, status = served.bank.log(), served.place.up()
    time.sleep(0.5)
    after = served.place.up()
    assert served.bank.log() == before and served.bank.clean()
    assert after["caught_up"] == status["caught_up"], "no loop"


def test_a_checkout_and_what_goes_with_it(served: Served) -> None:
    root = served.bank.root
    git(root, "switch", "-qc", "more")
    for n in range(200):
        served.bank.write(f"- fact number{n}\n", f"memory/deep/n{n}.md")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "many")
    until(lambda: served.item("number199"), 5)
    git(root, "switch", "-q", "-")
    until(lambda: not served.item("number199"), 5)
    git(root, "switch", "-q", "-")
    until(lambda: served.item("number0"), 5)
    assert served.bank.clean()


def test_a_search_finds_what_was_written_the_moment_before(served: Served) -> None:
    for n in range(12):
        served.bank.write(f"- the bird called name{n}x is here\n", f"memory/birds{n % 3}.md")
        by = "off" if n % 5 == 4 else "require"
        found = served.place.run("search", f"name{n}x", "--json", "--limit", "1", daemon=by)
        assert f"name{n}x is here" in found.json["results"][0]["snippet"], (n, by)


def test_folders_that_vanish_and_return(served: Served) -> None:
    logs = served.bank.root / "memory"
    served.bank.write("- Otters hold hands\n", DAY)
    until(lambda: served.item("Otters"), 5)
    logs.rename(logs.with_name("away"))
    until(lambda: not served.item("Otters"), 5)
    logs.with_name("away").rename(logs)
    until(lambda: served.item("Otters"), 5)
    served.bank.write("- Herons stand still\n", DAY)
    until(lambda: served.item("Herons"), 5)


def test_the_watch_is_told_and_checked(served: Served) -> None:
    watch = served.place.up()["watch"]
    assert watch["mode"] == "events" and watch["folders"] == 2 and watch["heartbeat"]
    checks = {one["name"]: one for one in served.place.run("doctor", "--json").json["checks"]}
    assert checks["watch"]["ok"] and "heartbeat" in checks["watch"]["seen"]
    assert served.place.run("status", "--json", daemon="off").json["watch"] == {"mode": "events"}


# -- the parts -------------------------------------------------------------------------------------------


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return new_bank(tmp_path / "bank")


def upkeep(bank: Bank) -> tuple[Upkeep, list[str], list[str]]:
    said: list[str] = []
    nudged: list[str] = []
    warm = WarmBank(bank.root, bank.store.config, bank.store.bank.pending, {})
    warm.snapshots = SnapshotCache(lambda: None)
    idle: Any = SimpleNamespace(schedule=Schedule(WORK), key="", watches=False)
    idle.schedule["queue"] = NEVER
    return Upkeep(warm, said.append, lambda: nudged.append("x"), lambda: False, idle), said, nudged


def test_a_burst_wakes_it_once_and_is_read_once(bank: Bank) -> None:
    found, _, nudged = upkeep(bank)
    for _ in range(100):
        found.note_change()
    assert nudged == ["x"] and found.has_pending_work
    found.run_due()
    assert found.has_pending_work, "not before it is still"
    until(lambda: found.run_due() or not found.has_pending_work, 5)
    assert found.next_due() == float("inf")


@pytest.mark.parametrize("error", [Busy("another process writes"), ValueError("another process writes")])
def test_what_fails_is_tried_again_and_said_once(
    error: Exception, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, said, _ = upkeep(bank)
    monkeypatch.setattr("ua_memory.daemon.worker.RETRY_SECONDS", 0.05)
    monkeypatch.setattr("ua_memory.daemon.worker.SETTLE_SECONDS", 0.0)

    def busy(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("ua_memory.memory.Memory.refresh", busy)
    found.note_change()
    until(lambda: found.run_due() or found._failures > 2, 5)
    assert len(said) == 1 and "another process writes" in said[0]
    monkeypatch.undo()
    until(lambda: found.run_due() or not found.has_pending_work, 5)


def test_an_edit_that_rests_while_the_index_is_updated_is_committed_at_once(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = bank.root / "ua-memory.toml"
    settings.write_text(settings.read_text() + f"\n[hand_edits]\nquiet_seconds = {QUIET}\n")
    bank.again().adopt()
    found, _, _ = upkeep(bank)
    found._update_index(False)  # so that all is imported
    refresh = condition.Index.refresh

    def slow(*given: Any, **more: Any) -> Any:
        time.sleep(2 * QUIET)
        return refresh(*given, **more)

    monkeypatch.setattr("ua_memory.index.sync.Index.refresh", slow)
    bank.write("- Otters hold hands\n", DAY)
    found._update_index(False)
    assert not bank.clean() and found.next_due() < time.monotonic()
    found.run_due()
    assert bank.clean()


def test_a_time_in_the_future_is_not_waited_for(bank: Bank) -> None:
    import os

    found, _, _ = upkeep(bank)
    bank.write("- Otters\n", DAY)
    os.utime(bank.path(DAY), (time.time() + 1e6,) * 2)
    found.note_change()
    until(lambda: found.run_due() or not found.has_pending_work, 5)


def test_what_a_search_had_no_time_for_is_done_after_it(bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ua_memory.index.embedding.RUNS_PER_BATCH", 1)
    bank.write("".join(f"- bird number{n}\n" for n in range(5)), DAY)
    found, _, _ = upkeep(bank)
    with found._warm.open_for_caller(bank.root, bank.store.config, None, env={}) as memory:
        memory.index._embeds = Counting()
        assert memory.refresh(stop=lambda: True).left_texts == 4
    assert found._warm.is_behind and found.next_due() == 0.0
    found.run_due()
    assert not found._warm.is_behind and found.has_pending_work, "the edit has not rested yet"
    with found._warm.open_for_caller(bank.root, bank.store.config, None, env={}) as memory:
        assert memory.index.vectors.count() == 5
    found._warm.unload()


def test_an_edit_is_not_committed_just_after_a_command(bank: Bank) -> None:
    settings = bank.root / "ua-memory.toml"
    settings.write_text(settings.read_text() + f"\n[hand_edits]\nquiet_seconds = {QUIET}\n")
    bank.again().adopt()
    found, _, _ = upkeep(bank)
    bank.write("- Otters hold hands\n", DAY)
    found.note_change()
    until(lambda: found.run_due(0.1) or found._schedule["read"] == NEVER, 5)  # it is read at once
    time.sleep(QUIET + 0.1)
    found.run_due(0.1)
    assert found.has_pending_work and not bank.clean()
    until(lambda: found.run_due(REST) or not found.has_pending_work, 5)
    assert bank.clean()


def test_packing_waits_for_a_moment_of_rest_but_not_for_ever(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed: list[str] = []
    monkeypatch.setattr("ua_memory.store.store.PACK_EVERY", 1)
    monkeypatch.setattr("ua_memory.git.history.History.needs_repack", lambda _: True)
    monkeypatch.setattr("ua_memory.git.history.History.repack", lambda *_: packed.append("x"))
    found, _, _ = upkeep(bank)

    def insert(many: int) -> None:
        for number in range(many):
            with found._warm.open_for_caller(bank.root, bank.store.config, None, env={}) as memory:
                memory.insert(f"Otters, the {number}th of {len(packed)}")

    insert(3)
    found.run_due(resting=1.0)
    assert not packed and found.has_pending_work and 0 < found.next_due() - time.monotonic() <= 1.0
    found.run_due(resting=2.0)
    found.run_due(resting=2.0)
    assert packed == ["x"]
    insert(4)
    assert packed == ["x", "x"], "nobody rests: the fourth does it"
    bank.insert("and without a daemon at once")
    assert packed == ["x"] * 3
    found._warm.unload()


def test_what_a_command_without_an_index_leaves_is_let_go_of(bank: Bank) -> None:
    """`status` counts tokens: after it a daemon at rest kept 180 MB, of which their table was 35."""
    warm = upkeep(bank)[0]._warm
    assert warm.has_nothing_to_unload
    with warm.open_for_caller(bank.root, bank.store.config, None, env={}):
        tokens.count("told")
    assert not warm.is_loaded and not warm.has_nothing_to_unload and tokens._encoder.cache_info().currsize
    assert not warm.unload() and warm.has_nothing_to_unload and not tokens._encoder.cache_info().currsize
