"""Consolidation without a model: what is folded, what is told, and that nothing changes the second time."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from banks import Bank
from deciding_model import bank_with, log, names, opened, texts
from hypothesis import given, settings
from hypothesis import strategies as st
from kill_points import in_child

from ua_memory.knowledge import observations
from ua_memory.records import Fact, Place
from ua_memory.reflect import proposals as considered
from ua_memory.reflect.proposals import as_sentence, comparable, group_related, may_contradict, says_the_same

DAYS = {
    "2026-11-10": ["**Create Gumroad account** — Power Prompts ready to ship", "Lunch was late."],
    "2026-11-12": [
        "[ ] Create Gumroad account for Power Prompts",
        "The build took 40 seconds on the new runner.",
    ],
    "2026-11-13": [
        "Create Gumroad account for Power Prompts",
        "The build took 90 seconds on the new runner.",
    ],
}


def test_what_several_days_say_alike_becomes_one(tmp_path: Path) -> None:
    bank, memory = bank_with(tmp_path / "bank", DAYS)
    done = memory.consolidate()
    assert (done.by, done.facts, names(done.changes)) == ("", 6, ["created"])
    (one,) = memory.observations.list()
    assert one.observation.place.path == "memory/observations/Power Prompts.md"
    assert len(one.observation.proofs) == 3
    assert (one.observation.since, one.observation.last, one.trend) == ("2026-11-10", "2026-11-13", "new")
    assert not one.freshness.stale
    (pair,) = done.at_odds
    assert [fact.text[15:17] for fact in pair] == ["90", "40"]
    again = memory.consolidate()
    assert (again.committed, again.changes, again.at_odds) == (False, (), ())
    log(bank, "2026-11-20", "Still to do: create the Gumroad account for Power Prompts.")
    more = opened(bank).consolidate()
    assert names(more.changes) == ["strengthened"]
    assert len(opened(bank).observations.list()[0].observation.proofs) == 4


def test_a_session_that_repeats_itself_is_no_observation(tmp_path: Path) -> None:
    lines = ["Create Gumroad account for Power Prompts", "[ ] Create Gumroad account for Power Prompts"]
    _, memory = bank_with(tmp_path / "bank", {"2026-11-10": lines})
    assert memory.consolidate().changes == ()


def test_entries_of_lists_are_no_observations(tmp_path: Path) -> None:
    rows = [
        "`src/core/heartbeat.py` — TLS fix, double-fetch fix, new wiring",
        "~/notes/2026-02-06.md (new): the file of this very day",
        "layer_late = num_layers - 5 (~84% depth)",
        "Node: Node_04 (Production, Emergence) — Secure deployment",
    ]
    days = {day: [*rows, "Tests for `a.py` fail since the move"] for day in ("2026-11-10", "2026-11-12")}
    _, memory = bank_with(tmp_path / "bank", days)
    memory.consolidate()
    assert texts(memory) == ["Tests for `a.py` fail since the move"]


def test_what_a_person_retired_stays_so(tmp_path: Path) -> None:
    bank, memory = bank_with(tmp_path / "bank", DAYS)
    memory.consolidate()
    memory.observations.retire(str(memory.observations.list()[0].observation.id), "done long ago")
    log(bank, "2026-11-20", "Create a Gumroad account for Power Prompts")
    done = opened(bank).consolidate()
    assert (done.facts, done.changes, texts(opened(bank))) == (1, (), [])


def test_lost_proofs_are_taken_away_and_the_last_one_ends_it(tmp_path: Path) -> None:
    bank, memory = bank_with(tmp_path / "bank", DAYS)
    memory.consolidate()
    path = "memory/2026-11-12.md"
    bank.write(re.sub(r"- \[ \] Create.*\n", "", bank.text(path)), path)
    (one,) = opened(bank).observations.list(stale=True)
    assert "is gone" in one.freshness.why[0]
    done = opened(bank).consolidate()
    assert names(done.changes) == ["proofs lost"]
    assert len(opened(bank).observations.list()[0].observation.proofs) == 2
    for day in ("2026-11-10", "2026-11-13"):
        bank.write("# nothing\n", f"memory/{day}.md")
    done = opened(bank).consolidate(accept=True)
    assert names(done.changes) == ["retired"]
    assert opened(bank).consolidate().committed is False


def test_a_fact_that_still_says_alike_after_an_edit_stays_a_proof(tmp_path: Path) -> None:
    bank, memory = bank_with(tmp_path / "bank", DAYS)
    memory.consolidate()
    bank.edit("[ ] Create", "[x] Create the", "memory/2026-11-12.md")
    bank.edit("Create Gumroad account for Power Prompts", "Ask Bob for milk", "memory/2026-11-13.md")
    done = opened(bank).consolidate()
    assert names(done.changes) == ["strengthened", "proofs lost"]
    (one,) = opened(bank).observations.list()
    assert [proof.quote[:14] for proof in one.observation.proofs] == ["[x] Create the", "**Create Gumro"]
    assert opened(bank).consolidate().committed is False


def test_a_person_s_own_observation_without_proofs_stays(tmp_path: Path) -> None:
    bank, memory = bank_with(tmp_path / "bank", DAYS)
    bank.write("- I believe this.\n", "memory/observations/mine.md")
    memory.consolidate()
    assert "I believe this." in texts(memory)
    assert bank.text("memory/observations/mine.md") == "- I believe this.\n"


def test_the_dry_run_writes_nothing(tmp_path: Path) -> None:
    bank, memory = bank_with(tmp_path / "bank", DAYS)
    before, ops = bank.text("memory/2026-11-12.md"), bank.ops()
    found = memory.observations.preview()
    assert (found.waiting, names(found.changes), found.estimate) == (6, ["created"], None)
    assert "+- Create Gumroad account" in found.diff
    assert (bank.text("memory/2026-11-12.md"), bank.ops(), bank.clean()) == (before, ops, True)


def test_compared_facts_are_still_new_to_a_model(tmp_path: Path) -> None:
    bank, memory = bank_with(tmp_path / "bank", DAYS)
    memory.consolidate()
    done = considered.considered(bank.store)
    waiting = [f for f in observations.all_observations(bank.store).facts if done.waits(f, modelled=True)]
    assert len(waiting) == 6
    assert memory.observations.counts().waiting == 0


def fact(text: str, **more: Any) -> Fact:
    return Fact(text, place=Place("memory/2026-11-21.md", 1, 1), **more)


@pytest.mark.parametrize(
    ("one", "other", "same", "odds"),
    [
        (
            "EBADF confirmed system-wide (main + subagents)",
            "EBADF is system-wide, all (main + subagents)",
            True,
            False,
        ),
        ("Push the R_V toolkit to GitHub today", "Cannot push the R_V toolkit to GitHub today", False, True),
        ("The build took 40 seconds on the runner", "The build took 90 seconds on the runner", False, True),
        ("Alice prefers the green tea from Uji", "Bob prefers the green tea from Uji", False, False),
        ("Status: done", "Status: done", False, False),
    ],
)
def test_alike_and_at_odds(one: str, other: str, same: bool, odds: bool) -> None:
    left, right = comparable(fact(one)), comparable(fact(other))
    assert (says_the_same(left, right), may_contradict(left, right)) == (same, odds)
    assert (says_the_same(right, left), may_contradict(right, left)) == (same, odds)
    apart = comparable(fact(other, tags=("scope:work",)))
    assert not says_the_same(left, apart)
    assert not may_contradict(left, apart)


def test_list_marks_and_emphasis_are_no_words() -> None:
    assert as_sentence("[x] **Done:** the _thing_ with __care__") == "Done: the _thing_ with care"


WORDS = st.lists(
    st.sampled_from(["alice", "bob", "tea", "coffee", "green", "runner", "build", "uji", "40", "90", "not"]),
    min_size=1,
    max_size=8,
)


@given(st.lists(st.tuples(WORDS, st.sampled_from(["", "a", "b"])), max_size=25))
def test_every_fact_stands_in_one_place_of_its_scope(rows: list[tuple[list[str], str]]) -> None:
    facts = [
        Fact(
            " ".join(words),
            tags=(f"scope:{scope}",) if scope else (),
            place=Place("memory/2026-11-21.md", n, n),
        )
        for n, (words, scope) in enumerate(rows)
    ]
    ordered = group_related(facts)
    assert sorted(f.place.line for each in ordered for f in each) == list(range(len(facts)))
    assert all(len({observations.scope_of(f) for f in each}) == 1 for each in ordered)


MARKS = st.integers(0, 10**6).map(
    lambda n: f"^abcdefgh{n % 6 + 2}x:{n:08x}" if n % 2 else f"memory/a%20{n % 3}.md#{n:08x}"
)


@settings(max_examples=max(20, settings().max_examples // 10))
@given(st.sets(MARKS, max_size=99))
def test_names_come_back_out_of_the_trailers(marks: set[str]) -> None:
    assert set(considered._parse_trailers(considered.trailer_values(marks))) == marks


LINES = st.lists(WORDS.map(" ".join), min_size=1, max_size=5)


@settings(max_examples=max(4, settings().max_examples // 50), deadline=None)
@given(st.lists(LINES, min_size=2, max_size=4))
def test_nothing_changes_the_second_time(
    tmp_path_factory: pytest.TempPathFactory, days: list[list[str]]
) -> None:
    folder = tmp_path_factory.mktemp("bank") / "bank"
    bank, memory = bank_with(folder, {f"2026-11-{n:02d}": lines for n, lines in enumerate(days, 1)})
    memory.consolidate()
    before = {stat.path: bank.bytes(stat.path) for stat in bank.store.files()}
    ops = bank.ops()
    beliefs = observations.all_observations(bank.store)
    for each in beliefs.live:
        assert each.proofs
        assert all(observations.is_supported(proof, beliefs.by_id) for proof in each.proofs)
    assert memory.consolidate().committed is False
    assert {stat.path: bank.bytes(stat.path) for stat in bank.store.files()} == before
    assert bank.ops() == ops
    shutil.rmtree(folder)


@pytest.mark.slow
def test_killed_at_any_step_of_its_commit_it_is_whole_afterwards(tmp_path: Path) -> None:
    bank, _ = bank_with(tmp_path / "bank", DAYS)
    _, steps = in_child(lambda: opened(Bank(shutil_copy(bank.root, tmp_path / "count"))).consolidate(), None)
    for stop in range(0, steps, max(1, steps // 7)):
        copy = Bank(shutil_copy(bank.root, tmp_path / f"kill-{stop}"))
        in_child(lambda copy=copy: opened(copy).consolidate(), stop)
        copy.again()
        again = opened(copy).consolidate()
        assert texts(opened(copy)) == ["Create Gumroad account for Power Prompts"], stop
        assert [op for op in copy.ops() if op == "consolidate"] == ["consolidate"], (stop, again)
        assert copy.clean(), stop


def shutil_copy(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to)
    return to
