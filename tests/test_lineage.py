"""From a sentence to somebody's own words: the chain that is told, and each link of it broken on purpose."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from banks import DAY, Bank, new_bank
from terminal import EVERY, Shell
from test_cli_json import agrees

from ua_memory.errors import NotFound, Usage
from ua_memory.knowledge import statements
from ua_memory.knowledge.lineage import BeliefStep, Chain, FactStep, SentenceStep, why
from ua_memory.knowledge.trust import FileProofs as Held
from ua_memory.knowledge.trust import broken_reason
from ua_memory.markdown import document as markdown
from ua_memory.memory import Memory
from ua_memory.records import Fact
from ua_memory.store.store import Store
from ua_memory.upkeep import audit

OBSERVED, OPINIONS, PAGE = "memory/observations/alice.md", "memory/opinions.md", "memory/pages/infra.md"

FACTS = """# 2026-11-21

## 14:32 · claude-code · session 8f2c

- Alice moved the API to Fly.io, because Heroku's price doubled ^k7m2q9x4tb
  - quote: "we're done with Heroku, Fly from today" (turn 41)
- The database stays on Neon ^n8c3v5b2aa

<!-- through: claude-code/8f2c/41 -->
"""
OBSERVATION = """- Alice chooses providers by price. ^p2w7c5n3rd
  - proofs: 2
  - proof: [[2026-11-21#^k7m2q9x4tb]] "because Heroku's price doubled"
  - proof: [[2026-11-21#^k7m2q9x4tb]] "we're done with Heroku"
"""
OPINION = """- Moving again would cost more. ^r5t9y2u6ws
  - kind: risk
  - because: [[alice#^p2w7c5n3rd]] "chooses providers by price"
"""
BODY = """## Hosting

The API runs on Fly.io. [[2026-11-21#^k7m2q9x4tb]] Price decides there,
as ever. [[alice#^p2w7c5n3rd]] [[2026-11-21#^k7m2q9x4tb]]

- The database is Neon. [[2026-11-21#^n8c3v5b2aa]]
"""
HEADER = "---\nid: infra\nname: Infrastructure\nsource_query: where do our services run\n---\n\n"


def _refresh(store: Store, body: str) -> None:
    """A machine writes the page, as a refresh does."""
    with store.revision("refresh", door="test") as draft:
        old = markdown.parse(draft.read(PAGE), PAGE).records
        draft.write(PAGE, (HEADER + body).encode(), removes=old)


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    """A bank whose sentences all rest on something."""
    bank = new_bank(tmp_path / "home" / "bank")
    with bank.store.revision("insert", door="test") as draft:
        draft.write(DAY, FACTS.encode())
    with bank.store.revision("consolidate", door="test") as draft:
        draft.write(OBSERVED, OBSERVATION.encode())
        draft.write(OPINIONS, OPINION.encode())
    _refresh(bank.store, BODY)
    return bank


def _said(bank: Bank) -> list[str]:
    return [str(problem) for problem in audit.verify(bank.store)]


def _flat(chain: Chain) -> list[SentenceStep | BeliefStep | FactStep]:
    found: list[SentenceStep | BeliefStep | FactStep] = []
    waiting = list(chain.steps)
    while waiting:
        step = waiting.pop(0)
        found.append(step)
        if not isinstance(step, FactStep):
            waiting += [link.step for link in step.links if link.step]
    return found


# -- the chain ---------------------------------------------------------------------------------------------


def test_a_sentence_leads_down_to_a_quote_a_session_and_a_commit(bank: Bank) -> None:
    chain = why(bank.store, "infra:10")
    (sentence,) = chain.steps
    assert isinstance(sentence, SentenceStep) and chain.breaks == () and chain.exit_code == 0
    assert sentence.text == "Price decides there, as ever."
    assert sentence.written and (sentence.written.op, sentence.written.author) == ("refresh", "ua-memory")
    belief, fact = (link.step for link in sentence.links)
    assert isinstance(belief, BeliefStep) and isinstance(fact, FactStep)
    assert (belief.record, belief.id, belief.written and belief.written.op) == (
        "observation", "p2w7c5n3rd", "consolidate",
    )  # fmt: skip
    assert [link.quote for link in belief.links] == [
        "because Heroku's price doubled",
        "we're done with Heroku",
    ]
    assert fact == belief.links[0].step and fact.written and fact.written.op == "insert"
    assert fact.quotes[0].source == "turn 41"
    said = fact.session
    assert (said.client, said.session, said.day, said.time) == ("claude-code", "8f2c", "2026-11-21", "14:32")
    assert said.origin == "agent" and said.through == ("claude-code/8f2c/41",)


def test_what_may_be_asked_for(bank: Bank) -> None:
    assert [step.text for step in why(bank.store, f"{PAGE}:9").steps] == [
        "The API runs on Fly.io.", "Price decides there, as ever.",
    ]  # fmt: skip
    assert [step.text for step in why(bank.store, "infra").steps][2] == "The database is Neon."
    for target in ("^k7m2q9x4tb", f"{DAY}:5", f"{DAY}:6"):
        (step,) = why(bank.store, target).steps
        assert isinstance(step, FactStep) and step.id == "k7m2q9x4tb"
    opinion = why(bank.store, "^r5t9y2u6ws")
    assert [type(step) for step in _flat(opinion)] == [BeliefStep, BeliefStep, FactStep, FactStep]
    for target in ("infra:7", "^zzzzzzzzzz", "none:3", "infra:99"):
        with pytest.raises(NotFound):
            why(bank.store, target)
    with pytest.raises(NotFound) as words:  # a newcomer names a fact by its words
        why(bank.store, "Flat White")
    assert words.value.hint == "name ^id, PATH or PATH:LINE, as `ua-memory search` prints them"
    with pytest.raises(Usage):
        why(bank.store, "infra:9-1")


def test_a_fact_that_moved_is_found_by_its_id(bank: Bank) -> None:
    bank.write(FACTS, "memory/archive/2020.md")
    bank.path().unlink()
    assert not why(bank.store, "infra").breaks
    assert not [one for one in _said(bank) if "^" in one]


def test_a_person_need_not_cite_anything(bank: Bank) -> None:
    bank.write(HEADER + BODY + "\nMy own remark.\n\n- And another, see [[My note#^block]]\n", PAGE)
    bank.write("A paragraph of mine. ^block\n", "memory/My note.md")
    bank.write("- I think so.\n", "memory/observations/mine.md")
    assert _said(bank) == []
    bank.store.adopt()
    assert _said(bank) == []
    (step,) = why(bank.store, "infra:14").steps
    assert (
        isinstance(step, SentenceStep) and step.fault is None and step.written and step.written.op == "edit"
    )


def test_a_line_that_was_given_an_id_is_still_its_writers(bank: Bank) -> None:
    bank.write("- Otters hold hands.\n", "memory/notes.md")
    bank.store.adopt()
    with bank.store.revision("consolidate", door="test") as draft:
        (fact,) = markdown.parse(draft.read("memory/notes.md"), "memory/notes.md").of(Fact)
        cited = statements.ensure_id(draft, fact)
    (step,) = why(bank.store, f"^{cited.id}").steps
    assert isinstance(step, FactStep) and step.written and step.written.op == "edit"


def test_a_retired_fact_is_there_and_said_to_be_retired(bank: Bank) -> None:
    bank.edit("(turn 41)\n", "(turn 41)\n  - retired: 2026-11-30, they went back\n")
    chain = why(bank.store, "infra:9")
    assert not chain.breaks and {step.retired for step in _flat(chain) if isinstance(step, FactStep)} == {
        "2026-11-30, they went back"
    }


# -- each link broken --------------------------------------------------------------------------------------

K = "^k7m2q9x4tb"
BREAKS = [
    ("nowhere", DAY, "- The database stays on Neon ^n8c3v5b2aa\n", "", "infra:12", 4,
     f"{PAGE}:12: ^n8c3v5b2aa does not exist in the bank"),
    ("nowhere", OBSERVED, K, "^k7m2q9x4zz", "^p2w7c5n3rd", 4,
     f"{OBSERVED}:3: ^k7m2q9x4zz does not exist in the bank"),
    ("nowhere", OPINIONS, "^p2w7c5n3rd", "^p2w7c5n3zz", "^r5t9y2u6ws", 4,
     f"{OPINIONS}:3: ^p2w7c5n3zz does not exist in the bank"),
    ("quote", DAY, "Heroku's price doubled", "the price of Heroku doubled", "^p2w7c5n3rd", 12,
     f"""{OBSERVED}:3: {K} does not say "because Heroku's price doubled\""""),
    ("quote", OPINIONS, "chooses providers", "chooses suppliers", "^r5t9y2u6ws", 12,
     f'{OPINIONS}:3: ^p2w7c5n3rd does not say "chooses suppliers by price"'),
    ("unproved", OBSERVED, OBSERVATION, "- Alice likes price. ^p2w7c5n3rd\n", "^p2w7c5n3rd", 12,
     f"{OBSERVED}:1: ^p2w7c5n3rd is an observation without a proof"),
    ("unproved", OPINIONS, OPINION, "- Too dear. ^r5t9y2u6ws\n", "^r5t9y2u6ws", 12,
     f"{OPINIONS}:1: ^r5t9y2u6ws is an opinion without a reason"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("cause", "path", "old", "new", "target", "code", "problem"), BREAKS, ids=lambda each: str(each)[:20]
)
def test_each_broken_link_is_found(
    bank: Bank, cause: str, path: str, old: str, new: str, target: str, code: int, problem: str
) -> None:
    assert _said(bank) == []
    bank.edit(old, new, path)
    chain = why(bank.store, target)
    assert {one.cause for one in chain.breaks} == {cause} and chain.exit_code == code
    assert problem in _said(bank)


def test_what_was_forgotten_is_said_to_be(bank: Bank) -> None:
    bank.edit("- The database stays on Neon ^n8c3v5b2aa\n", "")
    bank.write("- ^n8c3v5b2aa\n  - hash: 9f2c4e81d07ab365\n  - on: 2026-12-01\n", "memory/forgotten.md")
    chain = why(bank.store, "infra:12")
    assert [one.message for one in chain.breaks] == ["^n8c3v5b2aa was forgotten on 2026-12-01"]
    assert chain.exit_code == 4 and f"{PAGE}:12: ^n8c3v5b2aa was forgotten on 2026-12-01" in _said(bank)
    with pytest.raises(NotFound, match="it was forgotten on 2026-12-01"):
        why(bank.store, "^n8c3v5b2aa")


def test_a_refresh_that_cites_nothing_is_found_and_a_person_is_not(bank: Bank) -> None:
    _refresh(bank.store, f"{BODY}\nTrust me.\n")
    bank.edit("Trust me.", "Trust me.\n\nI say so.", PAGE)
    bank.store.adopt()
    assert _said(bank) == [f"{PAGE}:14: written by a refresh without a citation"]
    assert [one.cause for one in why(bank.store, "infra").breaks] == ["uncited"]


def test_a_belief_that_rests_on_itself_ends(bank: Bank) -> None:
    bank.write(OBSERVATION.replace(K, "^p2w7c5n3rd"), OBSERVED)
    assert {one.message for one in why(bank.store, "^p2w7c5n3rd").breaks} == {"^p2w7c5n3rd cites itself"}


@pytest.mark.parametrize("seed", range(5))
def test_whatever_is_written_properly_holds_and_whatever_is_taken_away_is_missed(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"{number:03}fact{seed:03}" for number in range(30)]
    facts = {name: f"They said {name[:3]} of {chance.randrange(99)} things" for name in names}
    days = {name: f"2026-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}" for name in names}
    beliefs = {f"obs{n:03}": chance.sample(names, 3) for n in range(8)}
    cited = [chance.sample([*names, *beliefs], 2) for _ in range(6)]

    def problems(without: str = "", other: str = "") -> set[str]:
        """The ids that do not hold, of a bank without one fact or with other words in another."""
        held, logs = Held(), dict[str, str]()
        for name, text in facts.items():
            text = "Something else" if name == other else text
            logs[days[name]] = logs.get(days[name], "") + (f"- {text} ^{name}\n" if name != without else "")
        files = {f"memory/{day}.md": text for day, text in logs.items()}
        files[OBSERVED] = "".join(
            f"- Belief ^{block}\n" + "".join(f'  - proof: [[x#^{n}]] "said {n[:3]} of"\n' for n in on)
            for block, on in beliefs.items()
        )
        files[PAGE] = HEADER + "".join(f"So it is. [[x#^{a}]] [[#^{b}]]\n\n" for a, b in cited)
        for path in chance.sample(sorted(files), len(files)):
            held.read(markdown.parse(files[path].encode(), path))
        bad = [broken_reason(proof, held.said, held.buried) and proof.id for _, _, proof in held.cited]
        return {one for one in [*bad, *(each.message for each in held.bare), *held.loose] if one}

    assert problems() == set()
    proved = {name for on in beliefs.values() for name in on}
    for name in chance.sample(names, 8):
        used = name in proved or name in {each for pair in cited for each in pair}
        assert problems(without=name) == ({name} if used else set())
        assert problems(other=name) == ({name} if name in proved else set())


# -- in a shell ----------------------------------------------------------------------------------------------


def test_the_tree_and_its_json(bank: Bank) -> None:
    shell = Shell(bank.root.parent, bank.root)
    shown = shell.ok("why", "infra:10").out
    assert (
        shown.splitlines()[0] == "Price decides there, as ever."
        and "“because Heroku's price doubled”" in shown
    )
    bank.edit(
        "The API runs on Fly.io. [[2026-11-21#^k7m2q9x4tb]]", f"The API. [[2026-11-21#{K}]] [[x#^zz]]", PAGE
    )
    done = shell("why", "infra:9", "--json")
    printed = json.loads(done.out)
    assert done.code == 4 and [one["message"] for one in printed["breaks"]] == [
        "^zz does not exist in the bank"
    ]
    printed["steps"] = printed["steps"][:1]
    printed["steps"][0]["written"] = shell.ok("why", "infra:12", "--json").json["steps"][0]["written"]
    printed["steps"][0]["proofs"][0]["quote"] = "…"
    del printed["steps"][0]["proofs"][0]["rests"]["written"]
    agrees("why", printed)
    assert "does not exist" in shell("why", "infra:9").out and "is broken" in shell("why", "infra:9").err
    shell.terminals = EVERY
    assert max(len(line) for line in _bare(shell("why", "infra:9").out).splitlines()) <= 80


def _bare(text: str) -> str:
    import re

    return re.sub("\x1b\\[[0-9;]*m", "", text)


# -- upwards -------------------------------------------------------------------------------------------------


def test_what_rests_on_a_fact_and_on_that(bank: Bank) -> None:
    bank.write("# Core\n\n## Hosting\n\nWe pay Fly.io by the hour [[2026-11-21#^k7m2q9x4tb]].\n", "MEMORY.md")
    memory = Memory(bank.store)
    found = memory.facts.cited_by("^k7m2q9x4tb")
    assert [(one.record, one.place.path, one.text) for one in found] == [
        ("core", "MEMORY.md", "We pay Fly.io by the hour"),
        ("observation", OBSERVED, "Alice chooses providers by price."),
        ("page", PAGE, "The API runs on Fly.io."),
        ("page", PAGE, "Price decides there, as ever."),
    ]
    opinion, sentence = found[1].cited_by
    assert (opinion.record, opinion.id, opinion.text) == (
        "opinion", "r5t9y2u6ws", "Moving again would cost more.",
    )  # fmt: skip
    assert (sentence.record, sentence.place.line, sentence.place.end) == ("page", 9, 10)
    assert opinion.cited_by == ()
    # by any name that `get` takes; what nobody cites; what there is not
    assert memory.facts.cited_by(f"{DAY}:5") == memory.facts.cited_by("k7m2q9x4tb") == found
    assert memory.facts.cited_by("^r5t9y2u6ws") == ()
    with pytest.raises(NotFound):
        memory.facts.cited_by("^zzzzzzzzzz")
    with pytest.raises(Usage):
        memory.facts.cited_by(PAGE)


def test_what_rests_on_something_follows_the_files(bank: Bank) -> None:
    memory = Memory(bank.store)
    memory.facts.cited_by("^n8c3v5b2aa")
    bank.edit("- The database is Neon. [[2026-11-21#^n8c3v5b2aa]]", "- The database is Neon.", PAGE)
    bank.edit("- The database stays on Neon ^n8c3v5b2aa\n", "", DAY)
    with pytest.raises(NotFound):
        memory.facts.cited_by("^n8c3v5b2aa")
    bank.edit("is Neon.", "is Neon [[2026-11-21#^n8c3v5b2aa]] and ghp_" + "a1" * 18 + " [[x#^yy]].", PAGE)
    (left,) = memory.facts.cited_by("^n8c3v5b2aa")  # gone, and cited still
    assert left.text == "The database is Neon" and not left.cited_by


def test_beliefs_that_cite_each_other_come_to_an_end(bank: Bank) -> None:
    bank.edit("- proofs: 2\n", "- proofs: 3\n  - proof: [[opinions#^r5t9y2u6ws]]\n", OBSERVED)
    found = Memory(bank.store).facts.cited_by("^r5t9y2u6ws")
    assert [one.id for one in found] == ["p2w7c5n3rd"]
    assert [one.id for one in found[0].cited_by] == [None]


def test_an_id_that_a_person_typed_is_of_its_file(bank: Bank) -> None:
    for name in ("a", "b"):
        bank.write(f"- The budget of {name} is 40 ^budget\n- See [[{name}#^budget]]\n", f"memory/{name}.md")
    facts = Memory(bank.store).facts
    assert [one.place.path for one in facts.cited_by("[[a#^budget]]")] == ["memory/a.md"]
    with pytest.raises(Usage, match="2 statements have this id"):
        facts.cited_by("^budget")
    bank.write("- The rent is 900 ^rent\n\n", "memory/c.md")
    bank.write("Too much, see [[elsewhere#^rent]].\n", "memory/d.md")  # the file of a link is a hint
    assert [one.place.path for one in facts.cited_by("^rent")] == ["memory/d.md"]


def test_an_index_with_other_citations_or_spellings_is_told(bank: Bank) -> None:
    memory = Memory(bank.store)
    memory.facts.cited_by("^k7m2q9x4tb")
    assert not memory.health.verify()
    memory.index.words.db.execute("DELETE FROM cites WHERE cited = 'k7m2q9x4tb'")
    assert any("citations" in str(one) for one in memory.health.verify())
    memory.index.words.db.execute("UPDATE names SET spelled = 'Alicia' WHERE name = 'alice'")
    assert any("its names of" in str(one) for one in memory.health.verify())


def test_up_in_a_shell(bank: Bank) -> None:
    shell = Shell(bank.root.parent, bank.root)
    printed = shell.ok("why", "--up", "^k7m2q9x4tb", "--json").json
    agrees("why --up", printed)
    shown = shell.ok("why", "--up", "^k7m2q9x4tb").out.splitlines()
    assert shown[0] == "├ Alice chooses providers by price." and shown[2].startswith("│ ├ Moving again")
    assert shell.ok("why", "--up", "^r5t9y2u6ws").out == "Nothing cites it.\n"
