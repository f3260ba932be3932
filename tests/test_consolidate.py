"""Consolidation with a model over HTTP: what it may do, what is refused, what fails, what it costs."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from banks import Bank
from daemons import forking
from deciding_model import (
    Decider,
    Rule,
    bank_with,
    create,
    decide,
    each_one,
    facts,
    labelled,
    log,
    names,
    opened,
    quoted,
    texts,
)
from fake_model import FakeModel

from ua_memory.errors import BudgetSpent, Busy, KeyRejected, ModelUnavailable, RequestRejected
from ua_memory.knowledge import observations
from ua_memory.llm.ledger import Ledger
from ua_memory.llm.model import Endpoint, price, user
from ua_memory.memory import Memory
from ua_memory.records import Fact, Place
from ua_memory.reflect.consolidate import ConsolidationRun
from ua_memory.reflect.decide import Answers, fact_groups, plan, question
from ua_memory.reflect.decide import BatchOutcome as Answer
from ua_memory.reflect.decide import FactGroup as Stretch
from ua_memory.reflect.proposals import (
    KnownObservation,
    Operation,
    OperationApplier,
    check_proposal,
    fact_marks,
)
from ua_memory.reflect.proposals import RefusedProposal as Refused
from ua_memory.text import tokens
from ua_memory.upkeep import audit

PRICE = "Alice moved the API to Fly.io because Heroku's price doubled."
TEA = "Alice drinks green tea in the morning."
NOTHING = decide()


@pytest.fixture
def two(tmp_path: Path) -> tuple[Bank, Memory]:
    return bank_with(tmp_path / "bank", {"2026-11-20": [PRICE], "2026-11-21": [TEA]})


def run(memory: Memory, rule: Any, **more: Any) -> tuple[Any, Decider]:
    with Decider(rule) as model:
        return memory.consolidate(model=model.endpoint, **more), model


def test_facts_become_observations_in_one_commit(two: tuple[Bank, Memory]) -> None:
    bank, memory = two
    before = len(bank.log())
    done, model = run(memory, each_one)
    assert (done.facts, done.left, names(done.changes)) == (2, 0, ["created", "created"])
    assert texts(memory) == sorted([PRICE, TEA])
    (revision,) = bank.store.history.log()[: len(bank.log()) - before]
    assert revision.subject == "consolidate: 2 created, of 2 facts"
    assert len(" ".join(revision.trailers["Considered"]).split()) == 2
    assert len(model.bodies) == 1
    assert not (bank.store.bank.pending / "consolidation.jsonl").exists()
    assert bank.clean()


def test_what_cannot_be_done_gives_no_line_an_id_and_the_rest_is_done(two: tuple[Bank, Memory]) -> None:
    bank = two[0]
    bank.write("- The gate code is kept by Bruno.\n- Bruno has a spare key.\n", NOTES := "memory/notes.md")
    beliefs = observations.all_observations(bank.store)
    gate, key = (fact_marks(fact)[0] for fact in beliefs.facts if fact.place.path == NOTES)
    ops = [
        Operation("create", "new:1", "Bruno keeps all.", ((gate, "The gate code"), (key, "a spoon"))),
        Operation("create", "new:2", "Bruno has keys.", ((key, "a spare key"),)),
    ]
    with bank.store.revision("consolidate", door="test") as draft:
        applying = OperationApplier(draft, beliefs, bank.clock().date(), 9)
        applying.apply(ops)
    assert names(applying.changes) == ["created"] and len(applying.notes) == 1
    first, second = bank.text(NOTES).splitlines()
    assert first == "- The gate code is kept by Bruno." and re.fullmatch(r"- Bruno has .* \^\w{10}", second)


def test_the_files_whose_lines_were_given_ids_are_told(two: tuple[Bank, Memory]) -> None:
    bank, memory = two
    bank.write("- Bruno keeps the gate code.\n", "memory/notes.md")
    memory.refresh()
    done, _ = run(memory, each_one)
    assert "memory/notes.md" in done.paths and any(path.startswith("memory/obs") for path in done.paths)
    assert set(done.paths) == set(bank.store.history.show(str(done.revision)).paths)


def test_a_second_run_asks_nobody_and_writes_nothing(two: tuple[Bank, Memory]) -> None:
    bank, memory = two
    run(memory, each_one)
    ops = bank.ops()
    done, model = run(memory, each_one)
    assert (done.committed, done.facts, model.bodies) == (False, 0, [])
    assert bank.ops() == ops
    run(memory, nothing)
    assert bank.ops() == ops


def nothing(seen: dict[str, str]) -> Any:
    return NOTHING


def test_what_says_nothing_counts_as_considered(two: tuple[Bank, Memory]) -> None:
    bank, memory = two
    done, _ = run(memory, nothing)
    assert (done.facts, done.changes, done.committed) == (2, (), True)
    assert bank.store.history.log()[0].paths == ()
    assert run(memory, each_one)[1].bodies == []


def test_an_edited_line_is_new(two: tuple[Bank, Memory]) -> None:
    bank, memory = two
    run(memory, nothing)
    bank.edit("green tea", "black tea")
    done, model = run(opened(bank), nothing)
    assert done.facts == 1
    assert "black tea" in model.shown[0]["f1"]


def test_a_contradiction_becomes_a_journey(tmp_path: Path) -> None:
    bank, memory = bank_with(tmp_path / "bank", {"2026-05-01": ["Alice lives in Porto."]})
    run(memory, each_one)
    log(bank, "2026-05-03", "Alice moved to Lisbon.")

    def journey(seen: dict[str, str]) -> Any:
        text = "Alice was in Porto, since 3 May in Lisbon."
        return decide(
            {"do": "revise", "observation": "o1", "text": text, "proofs": quoted(("f1", "moved to Lisbon"))}
        )

    done, _ = run(memory, journey)
    (one,) = memory.observations.list()
    assert names(done.changes) == ["revised"]
    assert one.observation.text == "Alice was in Porto, since 3 May in Lisbon."
    assert [(w.text, w.until) for w in one.observation.was] == [("Alice lives in Porto.", "2026-05-03")]
    assert (one.observation.since, one.observation.last) == ("2026-05-01", "2026-05-03")


def test_what_an_edited_fact_says_now_takes_the_place_of_its_old_words(tmp_path: Path) -> None:
    bank, memory = bank_with(tmp_path / "bank", {"2026-05-01": ["Alice lives in Porto."]})
    run(memory, each_one)
    bank.edit("in Porto", "in Lisbon", "memory/2026-05-01.md")
    text = "Alice was in Porto, now lives in Lisbon."
    revised = {"do": "revise", "observation": "o1", "text": text, "proofs": quoted(("f1", "lives in Lisbon"))}
    done, _ = run(opened(bank), lambda seen: decide(revised))
    (one,) = memory.observations.list()
    assert (names(done.changes), done.notes, one.observation.text) == (["revised"], (), text)
    assert [proof.quote for proof in one.observation.proofs] == ["lives in Lisbon"]
    assert audit.verify(bank.store) == []


def test_more_lost_beliefs_than_a_run_may_retire_wait_for_a_person(tmp_path: Path) -> None:
    bank, memory = many(tmp_path, 4)
    run(memory, each_one)
    for n in range(3):
        bank.edit(f"a cat named Tom{n}", "no pet", "memory/2026-11-20.md")
    done, _ = run(opened(bank), nothing)
    assert (names(done.changes), done.held) == (["retired"], 2)
    assert all(each.observation.proofs for each in memory.observations.list())
    assert sum(bool(each.freshness.lost) for each in memory.observations.list()) == 2
    again, model = run(opened(bank), nothing)
    assert (again.committed, again.held, model.bodies) == (False, 2, [])
    let, _ = run(opened(bank), nothing, accept=True)
    assert (names(let.changes), let.held, texts(memory)) == (
        ["retired"] * 2, 0, ["Person3 keeps a cat named Tom3."]
    )  # fmt: skip
    assert audit.verify(bank.store) == []


def test_proofs_that_a_person_takes_out_are_missed(tmp_path: Path) -> None:
    bank, memory = many(tmp_path, 4)
    log(bank, "2026-11-21", "Person0 still keeps a cat named Tom0.")

    def rule(seen: dict[str, str]) -> Any:
        twice = [label for label, text in facts(seen).items() if "Tom0" in text]
        (first, *_), rest = twice, [text for text in facts(seen).values() if "Tom0" not in text]
        made = [create("Person0 keeps a cat.", *((label, "keeps a cat") for label in twice))] if first else []
        return decide(*made, *(create(text, (labelled(seen, text), text)) for text in rest))

    run(memory, rule)

    def without(path: str, found: str) -> None:
        lines = bank.text(path).splitlines(keepends=True)
        bank.write("".join(line for line in lines if found not in line), path)

    path = {each.observation.text: each.observation.place.path for each in memory.observations.list()}
    without(path["Person0 keeps a cat."], "proof: [[2026-11-21")
    mine = path["Person1 keeps a cat named Tom1."]
    bank.edit("Person1 keeps a cat named Tom1.", "Tom1 lives with Person1.", mine)
    for text in ("Person1", "Person2", "Person3"):
        without(next(path[each] for each in path if text in each), "proof: ")
    done, model = run(opened(bank), nothing)
    assert (sorted(names(done.changes)), done.held, model.bodies) == (["proofs lost", "retired"], 1, [])
    assert "  - proofs: 1\n" in bank.text(path["Person0 keeps a cat."])
    held = {each.observation.text: each for each in memory.observations.list()}
    one = held["Person0 keeps a cat."].observation
    assert (one.since, one.last, len(one.proofs)) == ("2026-11-20", "2026-11-20", 1)
    assert "Tom1 lives with Person1." in held  # theirs, and needs no proof
    assert held["Person3 keeps a cat named Tom3."].freshness.why == ("its proofs were taken out of the file",)
    assert not run(opened(bank), nothing)[0].committed
    assert names(run(opened(bank), nothing, accept=True)[0].changes) == ["retired"]


def test_what_a_person_reworded_stays_in_their_words(two: tuple[Bank, Memory]) -> None:
    bank, memory = two
    run(memory, each_one)
    mine = "Alice starts her days with green tea."
    bank.edit(TEA, mine, "memory/observations/Alice.md")
    log(bank, "2026-11-22", "Alice drinks coffee now.")

    def rule(seen: dict[str, str]) -> Any:
        proofs = quoted(("f1", "drinks coffee now"))
        return decide(*(
            {"do": "revise", "observation": labelled(seen, words), "text": f"{words}, now coffee.",
             "proofs": proofs} for words in ("her days", "doubled")
        ))  # fmt: skip

    done, _ = run(opened(bank), rule)
    assert texts(memory) == [mine, "doubled, now coffee."]
    assert "a person worded this observation" in done.refused[0]

    path = next(o for each in memory.observations.list() if "now" in (o := each.observation).text).place.path

    def meanwhile(seen: dict[str, str]) -> Any:
        bank.edit("doubled, now coffee.", "It doubled.", path)
        text, proofs = "doubled, then coffee.", quoted(("f1", "likes it"))
        return decide(
            {"do": "revise", "observation": labelled(seen, "doubled"), "text": text, "proofs": proofs}
        )

    log(bank, "2026-11-23", "Alice likes it.")
    done, _ = run(opened(bank), meanwhile)
    assert texts(memory) == [mine, "It doubled."]
    assert "a person worded this observation" in done.notes[0]


def test_a_fact_that_is_edited_while_a_model_thinks_is_asked_about_again(two: tuple[Bank, Memory]) -> None:
    bank, memory = two

    def rule(seen: dict[str, str]) -> Any:
        if any("green" in text for text in seen.values()):
            bank.edit("green tea", "black tea")
        return each_one(seen)

    assert run(memory, rule)[0].left == 2
    done, _ = run(opened(bank), rule)
    assert (done.facts, done.left) == (2, 0)
    assert texts(memory) == ["Alice drinks black tea in the morning.", PRICE]


def test_strengthen_retire_and_merge(tmp_path: Path) -> None:
    first = [
        "Alice likes tea.",
        "Alice enjoys tea.",
        "Bob works at Acme.",
        "Carol has a dog.",
        "Dan has a cat.",
    ]
    bank, memory = bank_with(tmp_path / "bank", {"2026-11-01": first})
    run(memory, each_one)
    log(bank, "2026-11-02", "Alice had tea again.", "Bob left Acme for good.")

    def rule(seen: dict[str, str]) -> Any:
        tea, enjoys, bob = (labelled(seen, words) for words in ("likes tea", "enjoys tea", "works at Acme"))
        return decide(
            {"do": "strengthen", "observation": tea, "proofs": quoted((labelled(seen, "again"), "had tea"))},
            {
                "do": "retire",
                "observation": bob,
                "proofs": quoted((labelled(seen, "left Acme"), "left Acme")),
            },
            {"do": "merge", "observation": tea, "others": [enjoys]},
        )

    done, _ = run(memory, rule)
    assert sorted(names(done.changes)) == ["retired", "strengthened"]
    assert done.held == 1  # a quarter of five is one
    assert texts(memory) == ["Alice enjoys tea.", "Alice likes tea.", "Carol has a dog.", "Dan has a cat."]
    gone = memory.observations.list(retired=True)[0].observation
    assert gone.retired and gone.retired.startswith('"left Acme" [[2026-11-02#^')
    again, model = run(memory, each_one)
    assert (again.held, again.committed, model.bodies) == (1, False, [])
    let, _ = run(memory, each_one, accept=True)
    assert (names(let.changes), let.held) == (["merged"], 0)
    tea = next(each.observation for each in memory.observations.list() if "likes" in each.observation.text)
    assert len(tea.proofs) == 3
    assert bank.clean()


BAD = [
    ({"do": "create", "text": "Alice likes tea."}, "needs proofs"),
    (create("Alice likes tea.", ("f9", "tea")), "no fact 'f9'"),
    (create("Alice likes tea.", ("f1", "likes coffee")), "does not have the words"),
    (create("Alice met Zoltan on 5 May 2019.", ("f1", "Alice")), "Zoltan"),
    (create("It is a unique and creative solution.", ("f1", "Alice")), "too few of its words"),
    (create("", ("f1", "Alice")), "needs a text"),
    ({"do": "strengthen", "observation": "o7", "proofs": quoted(("f1", "Alice"))}, "no observation 'o7'"),
    ({"do": "retire", "observation": "", "proofs": []}, "no observation"),
    ({"do": "merge", "observation": "o1", "others": ["o1"]}, "no observation"),
]


@pytest.mark.parametrize(("bad", "why"), BAD)
def test_what_is_refused_is_told_once_and_reported(two: tuple[Bank, Memory], bad: Any, why: str) -> None:
    _, memory = two
    done, model = run(memory, lambda seen: decide(bad))
    assert len(model.bodies) == 2
    assert why in model.shown[1]["told"]
    assert len(done.refused) == 1
    assert why in done.refused[0]
    assert done.changes == ()
    assert done.facts == 2


def test_beliefs_that_share_no_word_are_not_merged() -> None:
    beliefs = {
        "o1": KnownObservation(
            "^a", "Alice chooses by price.", "", evidence=("Heroku doubled it on 2026-05-03",)
        ),
        "o2": KnownObservation("^b", "Cheaper hosts win.", "", evidence=("she left Heroku", "2026-05-03")),
        "o3": KnownObservation("^c", "Bob has two cats.", "", evidence=("on 2026-05-03",)),
    }

    def merged(*others: str) -> Any:
        return check_proposal(
            {"do": "merge", "observation": "o1", "others": list(others)}, {}, beliefs, "new"
        )

    assert merged("o2").others == ("^b",)  # by the words of their proofs
    with pytest.raises(Refused, match="o3 has no word of o1"):
        merged("o2", "o3")


def test_a_refused_proposal_may_be_put_right(two: tuple[Bank, Memory]) -> None:
    _, memory = two

    def rule(seen: dict[str, str]) -> Any:
        tea = labelled(facts(seen), "tea")
        good, bad = create("Tea is green.", (tea, "green tea")), create("She likes tea.", (tea, "likes"))
        return decide(create("She likes tea.", (tea, "tea"))) if "told" in seen else decide(good, bad)

    done, _ = run(memory, rule)
    assert (texts(memory), done.refused) == (["She likes tea.", "Tea is green."], ())


def test_scopes_never_meet_in_a_request(tmp_path: Path) -> None:
    lines = ["Alice likes tea. #scope:work", "Alice likes milk."]
    bank, memory = bank_with(tmp_path / "bank", {"2026-11-20": []})
    for line, tags in zip(lines, (("scope:work",), ()), strict=True):
        bank.insert(line, tags=tags)
    done, model = run(memory, each_one)
    assert len(model.bodies) == 2
    assert sorted(each.observation.scope or "" for each in memory.observations.list()) == ["", "work"]
    assert done.facts == 2


def test_a_persons_secret_reaches_no_model(tmp_path: Path) -> None:
    secret = "AKIAIOSFODNN7EXAMPLQ"
    _, memory = bank_with(tmp_path / "bank", {"2026-11-20": [f"The key is {secret} for S3."]})
    done, model = run(memory, each_one)
    assert secret not in json.dumps(model.bodies)
    assert done.changes == ()


# -- failures ------------------------------------------------------------------------------------------


def many(tmp_path: Path, count: int = 8) -> tuple[Bank, Memory]:
    lines = [f"Person{n} keeps a cat named Tom{n}." for n in range(count)]
    return bank_with(tmp_path / "bank", {"2026-11-20": lines})


def test_a_failing_batch_is_halved_until_the_one_fact_is_known(tmp_path: Path) -> None:
    _, memory = many(tmp_path)

    def rule(seen: dict[str, str]) -> Any:
        return (
            {"text": "I would rather not."}
            if any("Tom5" in t for t in facts(seen).values())
            else each_one(seen)
        )

    done, model = run(memory, rule)
    assert done.facts == 7
    assert [fact.text for fact, _ in done.aside] == ["Person5 keeps a cat named Tom5."]
    assert len(model.bodies) == 1 + 2 + 2 + 2
    assert memory.observations.counts().aside == 1
    assert run(memory, each_one)[1].bodies == []
    again, _ = run(memory, each_one, retry=True)
    assert (again.facts, memory.observations.counts().aside) == (1, 0)
    assert len(texts(memory)) == 8
    assert run(memory, each_one, retry=True)[1].bodies == []


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "script",
    [
        {"calls": [("decide", {"wrong": 1})]},
        {"calls": [("decide", "{no json")]},
        {"calls": [("other", {})]},
        {"text": "cut", "stop": "max_tokens"},
        {"text": "", "stop": "refusal", "details": {"category": "x"}},
    ],
)
def test_a_model_that_answers_nothing_ends_the_run_and_sets_nothing_aside(
    tmp_path: Path, script: Any
) -> None:
    bank, memory = many(tmp_path)
    ops = bank.ops()
    done, _ = run(memory, lambda seen: script)
    assert done.ended is not None
    assert done.ended.exit_code in (17, 18)
    assert (done.facts, done.left, done.aside, bank.ops()) == (0, 8, (), ops)
    assert run(memory, each_one)[0].facts == 8


def long_bank(tmp_path: Path) -> tuple[Bank, Memory]:
    """Enough for several requests."""
    days = {
        f"2026-10-{day:02d}": [
            f"Person{day}x{n} said that the garden of Person{n} needs more water than rain brings in autumn."
            for n in range(8)
        ]
        for day in range(1, 6)
    }
    return bank_with(tmp_path / "bank", days)


def test_facts_that_are_only_shown_may_prove_and_have_a_turn_of_their_own(tmp_path: Path) -> None:
    _, memory = long_bank(tmp_path)
    text, words = "A garden needs more water than rain brings in autumn.", "more water than rain"
    rules = iter([decide(create(text, ("f1", words), ("f40", words)))])
    done, model = run(memory, lambda seen: next(rules, NOTHING))
    turns = [list(facts(seen)) for seen in model.shown]
    assert len(turns) == 3
    assert [label for turn in turns for label in turn] == [f"f{n}" for n in range(1, 41)]
    assert all(len(set(re.findall(r"Person\dx\d", seen["shown"]))) == 40 for seen in model.shown)
    assert all(text in seen.values() for seen in model.shown[1:])
    assert (done.facts, done.left, names(done.changes)) == (40, 0, ["created"])
    (observation,) = memory.observations.list()
    assert len(observation.observation.proofs) == 2


def test_one_bad_fact_fails_no_other_it_is_shown_with(tmp_path: Path) -> None:
    _, memory = long_bank(tmp_path)
    refused = {"text": "", "stop": "refusal", "details": {"category": "x"}}
    done, model = run(memory, lambda seen: refused if "Person3x3 " in seen["shown"] else each_one(seen))
    assert [fact.text.split()[0] for fact, _ in done.aside] == ["Person3x3"]
    assert (done.facts, len(texts(memory))) == (39, 39)
    assert len(model.bodies) <= 16


def test_an_answer_is_dropped_with_the_fact_that_proves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank, memory = long_bank(tmp_path)
    text, words = "A garden needs more water than rain brings in autumn.", "more water than rain"
    asked: list[str] = []

    def rule(seen: dict[str, str]) -> Any:
        asked.append(seen["shown"])
        return NOTHING if len(asked) > 1 else decide(create(text, ("f1", words), ("f40", words)))

    def killed(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ConsolidationRun, "_write", killed)
        with pytest.raises(KeyboardInterrupt):
            run(memory, rule)
    last = re.findall(r"Person\dx\d", asked[0])[-1]
    day = f"memory/2026-10-0{last[6]}.md"
    line = next(each for each in bank.bytes(day).decode().splitlines() if f"{last} " in each)
    bank.edit(line.split(" ^")[0], f"- {last} grows nothing.", day)
    done, _ = run(opened(bank), lambda seen: NOTHING)
    assert (done.facts, done.left, names(done.changes), texts(opened(bank))) == (40, 0, [], [])


@pytest.mark.parametrize("frame", [2_000, 7_000, 14_000])
@pytest.mark.parametrize("facts_", [1, 12, 200, 600])
@pytest.mark.parametrize("each", [40, 110, 700])
def test_a_plan_keeps_its_bounds(frame: int, facts_: int, each: int) -> None:
    count, turns = plan(frame, each * facts_, facts_)
    portion = each * facts_ / (count * turns)
    assert portion >= 1_000 or count * turns == 1
    assert portion <= 4_000
    assert facts_ / (count * turns) <= 40 or each * facts_ < 40 * 41
    assert turns == 1 or frame + each * facts_ / count <= 26_000


def test_one_answer_makes_no_two_observations_of_the_same_words(tmp_path: Path) -> None:
    tea, again = "Alice drinks green tea.", "In the office Alice drinks green tea."
    _, memory = bank_with(tmp_path / "bank", {"2026-11-20": [tea, again]})

    def rule(seen: dict[str, str]) -> Any:
        if "told" in seen:
            assert "n1 says exactly this" in seen["told"]
            return decide({"do": "strengthen", "observation": "n1", "proofs": quoted(("f2", tea[:-1]))})
        return decide(create(tea, ("f1", tea)), create(tea, ("f2", tea[:-1])))

    run(memory, rule)
    assert texts(memory) == [tea]
    assert [len(each.observation.proofs) for each in memory.observations.list()] == [2]


@pytest.mark.parametrize("facts_", [90, 300, 600])
def test_an_answer_has_room_for_all_facts_of_a_portion_however_short(facts_: int) -> None:
    count, turns = plan(7_000, 16 * facts_, facts_)
    assert facts_ / (count * turns) <= 60


def test_an_observation_that_is_too_long_to_be_shown_hides_no_other() -> None:
    beliefs = [KnownObservation("a", "Noor tea " * 900, ""), KnownObservation("b", "Noor likes tea.", "")]
    (stretch,) = fact_groups([Fact("Noor bought tea.", id="k7m2q9x4tb")], beliefs)
    assert [belief.name for belief in stretch.beliefs.values()] == ["b"]


@pytest.mark.parametrize(
    ("script", "error"),
    [
        ({"error": 401, "type": "authentication_error"}, KeyRejected),
        ({"error": 404, "type": "not_found_error"}, None),
        ({"error": 529, "retry_after": 100}, ModelUnavailable),
    ],
)
def test_a_model_that_is_away_ends_the_run_and_what_is_done_stays(
    tmp_path: Path, script: Any, error: type[Exception] | None
) -> None:
    _, memory = long_bank(tmp_path)
    asked: list[int] = []

    def rule(seen: dict[str, str]) -> Any:
        asked.append(len(facts(seen)))
        return each_one(seen) if len(asked) < 3 else script

    done, _ = run(memory, rule)
    assert done.ended is not None
    assert error is None or isinstance(done.ended, error)
    assert done.facts == sum(asked[:2])
    assert (done.left, done.committed) == (40 - done.facts, True)
    rest, _ = run(memory, each_one)
    assert (rest.facts, rest.left) == (done.left, 0)
    assert len(texts(memory)) == 40


def test_a_budget_ends_the_run_and_what_is_done_stays(tmp_path: Path) -> None:
    bank, memory = long_bank(tmp_path)
    ops = bank.ops()
    done, model = run(memory, each_one, usd=0.0)
    assert (model.bodies, done.facts, done.left, bank.ops()) == ([], 0, 40, ops)
    assert isinstance(done.ended, BudgetSpent)
    memory.store.config = replace(memory.config, run_tokens=12_000)
    done, _ = run(memory, each_one)
    assert isinstance(done.ended, BudgetSpent)
    assert 0 < done.facts < 40
    assert done.committed


def test_a_limit_takes_the_oldest(tmp_path: Path) -> None:
    _, memory = long_bank(tmp_path)
    done, model = run(memory, each_one, limit=5)
    assert (done.facts, done.left) == (5, 35)
    assert all("Person1x" in text for text in facts(model.shown[0]).values())


def test_one_run_at_a_time(two: tuple[Bank, Memory]) -> None:
    bank, memory = two
    seen: list[str] = []

    def rule(shown: dict[str, str]) -> Any:
        with pytest.raises(Busy) as raised:
            opened(bank).consolidate()
        seen.append(raised.value.what)
        return NOTHING

    run(memory, rule)
    assert seen == ["another consolidation is running"]


def test_a_killed_run_goes_on_and_pays_for_nothing_twice(tmp_path: Path) -> None:
    bank, _ = long_bank(tmp_path)
    asked: list[int] = []
    with Decider(lambda seen: (asked.append(1), each_one(seen))[1]) as model:
        program = (
            "import os, sys\nfrom ua_memory.memory import Memory\nfrom ua_memory.llm.model import Endpoint\n"
            "from ua_memory.reflect.decide import Answers\nreal, n = Answers.add, []\n"
            "def add(self, answer):\n    real(self, answer); n.append(1)\n"
            "    if len(n) == 2: os.kill(os.getpid(), 9)\n"
            "Answers.add = add\n"
            f"Memory.open({str(bank.root)!r}).consolidate(model=Endpoint('sk', {model.url!r}))\n"
        )
        assert forking().run([], tmp_path, {**os.environ}, code=program).code == -9
        before = len(asked)
        log(bank, "2026-10-09", "Late comes a fact of its own.")
        done = opened(bank).consolidate(model=model.endpoint)
    first = [len(facts(seen)) for seen in model.shown[:before]]
    rest = [text for seen in model.shown[before:] for text in facts(seen).values()]
    assert before == 2
    assert (done.facts, done.left) == (41, 0)
    assert len(rest) == 41 - sum(first)
    assert len(texts(opened(bank))) == 41
    assert bank.clean()


def test_a_killed_run_s_answers_serve_one_without_a_model(
    two: tuple[Bank, Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, memory = two
    memory.consolidate()  # compared: for a run without a model there is nothing left

    def killed(*args: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ConsolidationRun, "_write", killed)
        with pytest.raises(KeyboardInterrupt):
            run(memory, each_one)
    assert names(memory.consolidate().changes) == ["created", "created"]
    assert run(memory, each_one)[1].bodies == []


# -- what it costs -------------------------------------------------------------------------------------

TOPICS = (
    "billing",
    "search",
    "login",
    "export",
    "mobile app",
    "build",
    "staging",
    "docs",
    "budget",
    "backup",
)
DID = (
    "{who} moved the {what} of {topic} to the new cluster because the old one was too slow.",
    "{who} prefers to review {topic} on Mondays, before the {what} is changed.",
    "The {what} of {topic} failed twice this week; {who} added a retry with 30 seconds.",
    "{who} decided that {topic} keeps its {what} until spring.",
)


def realistic(number: int) -> str:
    who = ("Alice", "Bob", "Carol", "Dan", "Erin", "Frank", "Grace")[number % 7]
    what = ("queue", "cache", "schema", "dashboard", "test suite")[number % 5]
    return DID[number % 4].format(who=who, what=what, topic=TOPICS[number % 10])


def some(seen: dict[str, str]) -> Any:
    """An observation of one fact in four."""
    return decide(*(create(text, (label, text)) for label, text in list(facts(seen).items())[::4]))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("rule", "known"), [(nothing, 50), (some, 50), (nothing, 0), (some, 0), (each_one, 0)]
)
def test_the_price_of_a_fact(tmp_path: Path, rule: Rule, known: int) -> None:
    days = {
        f"2026-09-{d:02d}": [f"Note {d}-{n}: {realistic(d * 7 + n)}" for n in range(20)] for d in range(1, 11)
    }
    bank, memory = bank_with(tmp_path / "bank", days)
    if known:
        lines = "".join(f"- {realistic(n)} ^obs{n:07d}\n" for n in range(known))
        bank.write(f"# All\n\n{lines}", "memory/observations/All.md")
        bank.store.adopt()
    done, model = run(memory, rule)
    assert done.facts == 200
    sent = [json.dumps(body, ensure_ascii=False) for body in model.bodies]
    by_bytes, counted = sum(len(each.encode()) / 4 for each in sent), sum(map(tokens.count, sent))
    assert by_bytes / 200 <= 250
    assert counted / 200 <= 250
    assert shared(model.bodies) >= 0.8


def shared(bodies: list[dict[str, Any]]) -> float:
    """The part of all bytes that stood in the request before, up to a mark for the cache."""
    total = same = 0
    before: list[str] = []
    for body in bodies:
        pieces = [json.dumps(body.get("tools")), *map(json.dumps, body["system"])]
        pieces += [json.dumps(block) for message in body["messages"] for block in message["content"]]
        total += len(json.dumps(body))
        run_, marked = 0, 0
        for piece, old in zip(pieces, before, strict=False):
            if piece != old:
                break
            run_ += len(piece)
            marked = run_ if "cache_control" in piece else marked
        same += marked
        before = pieces
    return same / total


def test_the_dry_run_tells_a_price_and_sends_nothing(tmp_path: Path) -> None:
    bank, memory = long_bank(tmp_path)
    ops = bank.ops()
    with FakeModel() as model:
        told = memory.observations.preview(
            model=Endpoint("sk", "https://example.invalid", "claude-sonnet-5-5")
        )
        assert model.bodies == []
    assert told.estimate is not None
    assert told.estimate.requests > 1
    assert told.estimate.usd and 0 < told.estimate.usd < 1
    done, real = run(memory, nothing)
    assert told.estimate.requests == len(real.bodies)
    assert told.taken == done.facts
    assert bank.ops() == ["consolidate", *ops]


def test_who_comes_after_may_ask_the_same_model(two: tuple[Bank, Memory]) -> None:
    _, memory = two
    heard: list[tuple[int, bool]] = []
    for _ in range(2):
        run(memory, each_one, after=lambda done, asked: heard.append((len(done.changes), asked is not None)))
    assert heard == [(2, True), (0, True)]


def test_an_undone_run_said_nothing(two: tuple[Bank, Memory]) -> None:
    _, memory = two
    run(memory, each_one)
    memory.history.undo("HEAD")
    assert texts(memory) == []
    assert run(memory, each_one)[0].facts == 2


# -- posted at half the price -----------------------------------------------------------------------------


def test_a_batch_is_posted_by_one_run_and_collected_by_another(two: tuple[Bank, Memory]) -> None:
    bank, memory = two
    with Decider(each_one) as model:
        posted = memory.consolidate(model=model.endpoint, batch_api=True)
        assert (posted.posted, posted.left, posted.committed, model.bodies) == (2, 0, False, [])
        (entry,) = Ledger(bank.store.bank.local).entries()
        assert entry.state == "asked" and 0 < entry.counted < 0.1
        log(bank, "2026-11-22", "Late comes a fact of its own.")
        waits = opened(bank).consolidate(model=model.endpoint, batch_api=True)
        assert (waits.posted, waits.left, waits.committed, len(model.batches)) == (2, 1, False, 1)
        assert memory.observations.counts().posted == 2 and memory.observations.counts().since.startswith(
            "20"
        )
        bank.edit("green tea", "black tea")
        model.ended = True
        done = opened(bank).consolidate(model=model.endpoint, batch_api=True)
    assert texts(memory) == [PRICE]  # what was edited meanwhile is asked about anew
    assert (done.facts, done.posted, len(model.batches)) == (1, 2, 2)
    assert "Late comes" in json.dumps(model.batches["msgbatch_2"]) and len(model.bodies) == 1
    first = Ledger(bank.store.bank.local).entries()[0]
    paid = price(first.model)
    assert paid and first.state == "answered"
    assert first.counted == pytest.approx(paid.of(first.usage) / 2)
    assert (done.usage, first.id) == (first.usage, entry.id)
    with Decider(each_one) as other:  # without the flag what is under way is left, and all else is asked
        other.batches = model.batches
        log(bank, "2026-11-23", "Later comes another of its own.")
        more = opened(bank).consolidate(model=other.endpoint)
        assert (more.facts, more.posted, more.left) == (1, 2, 0)
        other.ended = True
        assert opened(bank).consolidate(model=other.endpoint).facts == 2
    assert len(texts(memory)) == 4 and audit.verify(bank.store) == []


def test_a_killed_collection_is_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bank, memory = many(tmp_path, 60)
    with Decider(each_one) as model:
        memory.consolidate(model=model.endpoint, batch_api=True)
        (requests,) = model.batches.values()
        model.ended, add = True, Answers.add

        def killed(self: Answers, answer: Answer) -> None:
            add(self, answer)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Answers, "add", killed)
            with pytest.raises(KeyboardInterrupt):
                opened(bank).consolidate(model=model.endpoint)
        kept = len(Answers(bank.store.bank.pending).all())
        done = opened(bank).consolidate(model=model.endpoint)
    assert kept == 1 and len(requests) > 1
    assert (done.facts, done.left, done.posted) == (60, 0, 0)
    assert len(texts(memory)) == 60
    assert not opened(bank).consolidate(model=model.endpoint).committed


def test_what_a_batch_gave_no_answer_for_is_asked_in_the_same_run(two: tuple[Bank, Memory]) -> None:
    bank, memory = two
    with Decider(lambda seen: each_one(seen) if len(model.bodies) > 1 else {"error": 500}) as model:
        memory.consolidate(model=model.endpoint, batch_api=True)
        model.ended = True
        done = opened(bank).consolidate(model=model.endpoint, batch_api=True)
    assert (done.facts, done.posted, len(model.bodies), len(model.batches)) == (2, 0, 2, 1)
    assert bank.clean()


def test_a_batch_that_nobody_knows_is_let_go_after_a_day(two: tuple[Bank, Memory]) -> None:
    bank, memory = two
    with Decider(each_one) as model:
        memory.consolidate(model=model.endpoint, batch_api=True)
    with Decider(each_one) as other:  # another endpoint, or another workspace's key
        early = opened(bank).consolidate(model=other.endpoint)
        assert isinstance(early.ended, RequestRejected) and (early.facts, other.bodies) == (0, [])
        box = bank.store.bank.pending / "consolidation-batch.json"
        row = json.loads(box.read_bytes())
        before = datetime.fromisoformat(row["at"]) - timedelta(days=1)
        box.write_text(json.dumps({**row, "at": before.isoformat()}))
        late = opened(bank).consolidate(model=other.endpoint)
    assert (late.facts, late.left, late.ended, box.exists()) == (2, 0, None, False)


def test_equal_lines_of_two_days_are_not_taken_for_each_other() -> None:
    """Lines that a person typed have no id, and a fact's place is no part of what it says."""
    first, *more = (
        Fact(text, place=Place(f"memory/2026-05-0{n}.md", 3, 3))
        for n, text in enumerate(("Stand-up is at 9:30.", "Rent was paid.", "Stand-up is at 9:30."), 1)
    )
    stretch = Stretch("", {}, ((first, more[0]), (more[1],)), "")
    told = [user("Decide on f1 to f2."), user("Decide on f3.")]
    assert [question(stretch, portion, {}) for portion in stretch.portions] == told


def test_a_batch_keeps_to_the_budget(tmp_path: Path) -> None:
    _, memory = many(tmp_path, 90)
    with Decider(each_one) as model:
        with pytest.raises(BudgetSpent):
            raise memory.consolidate(model=model.endpoint, batch_api=True, usd=0.001).ended or KeyError
        some = memory.consolidate(model=model.endpoint, batch_api=True, usd=0.08)
    (requests,) = model.batches.values()
    assert 0 < some.posted < 90 and some.left == 90 - some.posted
    assert len(requests) < 4
