"""Who is who: names held against each other, what is settled, and decisions that can be taken back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from banks import Bank, new_bank
from terminal import Shell, new_shell
from test_cli_json import agrees

from ua_memory.errors import Conflict, Usage
from ua_memory.knowledge import entities
from ua_memory.knowledge.entities import ENTITIES, EntityRecords, likeness, suggestions
from ua_memory.records import Entity, Quote
from ua_memory.upkeep import audit, undo

# -- two names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "how"),
    [
        ("Alice", "ALICE", "sure"),
        ("Alice", "Alice's", "sure"),
        ("Zoë Ávila", "Zoe Avila", "sure"),
        ("GitHub", "Git Hub", "sure"),
        ("Kubernetes", "Kuberentes", "sure"),
        ("Pereira", "Perreira", "sure"),
        ("Alice P.", "Alice Pereira", "maybe"),
        ("Alice", "Alice Pereira", "maybe"),
        ("Pereira", "Alice Pereira", "maybe"),
        ("Pereira, Alice", "Alice Pereira", "maybe"),
        ("Daniel", "Daniela", "maybe"),
        ("Martin", "Marvin", "maybe"),
        ("Invoice", "Invoices", "maybe"),
        ("Ben", "Benjamin", "maybe"),
        ("Bob Smith", "Robert Smith", "maybe"),
        ("Jack", "John", "maybe"),
        ("Liz", "Elizabeth Moreau", "maybe"),
        ("Git", "GitHub", None),
        ("Room 101", "Room 102", None),
        ("Room", "Room 101", None),
        ("Python 3", "Python", None),
        ("Plan A", "Plan B", None),
        ("Tigran", "Iran", None),
        ("Al", "Al Gore", None),
        ("Alice Pereira", "Alice Moreau", None),
        ("Alice P.", "Alice Moreau", None),
        ("Anne", "Anna", None),
        ("…", "Alice", None),
    ],
)
def test_how_near_two_names_are(one: str, other: str, how: str | None) -> None:
    found = likeness(one, other)
    assert (found and found.how) == how
    assert likeness(other, one) == found, "either way round"


# -- whom a name stands for ----------------------------------------------------------------------------------

PEOPLE = EntityRecords(
    (
        Entity("Alice Pereira", ("Ali", "Alice"), ("Alice Cooper",)),
        Entity("Alice Moreau", ("Alice",)),
        Entity("Kubernetes", ("k8s",)),
        Entity("Alice Cooper"),
        Entity("Room 101"),
    )
)


@pytest.mark.parametrize(
    ("name", "context", "expected", "how"),
    [
        ("alice pereira", (), "Alice Pereira", "exact"),
        ("ALI", (), "Alice Pereira", "alias"),
        ("Ali's", (), "Alice Pereira", "alias"),
        ("Kuberentes", (), "Kubernetes", "form"),
        ("Alice", (), "Alice", "open"),
        ("Alice", ("Lisbon",), "Alice Pereira", "context"),
        ("Alice", ("Paris", "Lyon", "Lisbon"), "Alice Moreau", "context"),
        ("Alice", ("Lisbon", "Paris"), "Alice", "open"),
        ("Alice", ("Alice Moreau", "Lisbon"), "Alice Moreau", "context"),
        ("Moreau", (), "Moreau", "open"),
        ("Moreau", ("Paris",), "Moreau", "open"),
        ("Moreau", ("Paris", "Lyon"), "Alice Moreau", "context"),
        ("Room 102", ("Room 101",), "Room 102", "open"),
        ("Tigran", (), "Tigran", "open"),
    ],
)
def test_whom_a_name_stands_for(name: str, context: tuple[str, ...], expected: str, how: str) -> None:
    company = {"Alice Pereira": {"Lisbon", "Tom"}, "Alice Moreau": {"Paris", "Lyon"}}
    found = PEOPLE.resolve(name, context, lambda one: company.get(one, ()))
    assert (found.name, found.how) == (expected, how)


def test_an_open_name_has_its_candidates() -> None:
    assert PEOPLE.resolve("Alice").candidates == ("Alice Pereira", "Alice Moreau")
    assert PEOPLE.resolve("Tigran").candidates == ()


def test_what_is_said_to_be_two_is_never_one() -> None:
    known = EntityRecords((Entity("Kubernetes", (), ("Kuberentes",)), Entity("Robert", ("Bob",), ("Bobby",))))
    assert known.resolve("Kuberentes").how == "open" and known.resolve("Kuberentes").candidates == ()
    assert known.are_separate("Bob", "Bobby") and known.are_separate("Bobby", "Robert"), (
        "aliases too, either way round"
    )
    assert EntityRecords().resolve("Anybody").name == "Anybody"


def test_suggestions_have_reasons_and_ask_nothing_twice() -> None:
    names = {"Alice Pereira": 9, "Alice": 5, "Kubernetes": 4, "Kuberentes": 2, "Mistral": 3, "Mixtral": 3}
    names |= {"Lisbon": 8, "Tom": 7, "GPU": 2, "Ben": 2, "Benjamin": 2, "Bob": 1, "Robert": 1}
    company = {
        "Alice Pereira": ("Lisbon", "Tom"), "Alice": ("Tom", "Lisbon"),
        "Ben": ("Lisbon", "Tom"), "Benjamin": ("Lisbon", "Tom"),
        "Mistral": ("Mixtral", "GPU", "Tom"), "Mixtral": ("Mistral", "GPU", "Tom"),
    }  # fmt: skip

    def suggested(*known: Entity) -> list[tuple[str, str]]:
        found = suggestions(names, EntityRecords(known), lambda one: company.get(one, ()))
        assert all(each.reason for each in found)
        return [(each.name, each.other) for each in found]

    both = [("Kubernetes", "Kuberentes"), ("Alice Pereira", "Alice"), ("Benjamin", "Ben")]
    assert suggested() == both, "and not what stands beside each other, as two do"
    assert suggested(Entity("Kubernetes", ("Kuberentes",))) == both[1:]
    assert suggested(Entity("Alice", nots=("Alice Pereira",))) == [both[0], both[2]]


# -- decisions -----------------------------------------------------------------------------------------------


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    return new_bank(tmp_path / "bank")


def _by_hand(bank: Bank, text: str) -> None:
    bank.write(text, ENTITIES)


HAND = """# People

Whom we know.

* [[Alice]]
    * alias: Ali
    * not: [[Alice Cooper, Inc.]]
- [[Robert Smith]]
  - alias: Rob

The rest is gossip.
"""


def test_each_decision_is_a_line_and_a_commit(bank: Bank) -> None:
    entities.alias(bank.store, "Alice", "Ali", door="test")
    entities.merge(bank.store, "Ali", "Pereira, Alice", door="test")
    entities.rename(bank.store, "Alice", "Alice Pereira", door="test")
    done = entities.split(bank.store, "Alice Pereira", "Ali", door="test", by_person=True)
    assert bank.text(ENTITIES) == (
        "# Entities\n\n- [[Alice Pereira]]\n  - alias: [[Pereira, Alice]], Alice\n  - not: Ali\n"
        "- [[Ali]]\n  - not: Alice Pereira\n"
    )
    assert [each.name for each in done.entities] == ["Alice Pereira", "Ali"]
    assert [(op, subject) for _, op, subject in bank.log()][:4] == [
        ("entities", "entities: Ali is not Alice Pereira"),
        ("entities", "entities: Alice is called Alice Pereira"),
        ("entities", "entities: Pereira, Alice is Alice"),
        ("entities", "entities: Ali is Alice"),
    ]
    assert bank.log()[0][0] != "ua-memory" == bank.log()[1][0], "a person's decision has their name"
    assert bank.clean()


def test_a_merge_takes_over_all_that_was_said_of_the_other(bank: Bank) -> None:
    _by_hand(bank, HAND)
    entities.merge(bank.store, "Alice", "Rob", door="test")
    text = HAND.replace("* alias: Ali", "* alias: Ali, Robert Smith, Rob")
    assert bank.text(ENTITIES) == text.replace("- [[Robert Smith]]\n  - alias: Rob\n", "")


def test_what_a_person_wrote_stays_as_it_is(bank: Bank) -> None:
    _by_hand(bank, HAND)
    entities.alias(bank.store, "Rob", "Bob", door="test")
    assert bank.text(ENTITIES) == HAND.replace("alias: Rob\n", "alias: Rob, Bob\n")
    entities.split(bank.store, "Robert Smith", "Bob", door="test")
    assert "- [[Robert Smith]]\n  - alias: Rob\n  - not: Bob\n" in bank.text(ENTITIES)
    assert bank.text(ENTITIES).startswith(HAND.partition("- [[Rob")[0])


def test_no_decision_passes_over_another(bank: Bank) -> None:
    _by_hand(bank, HAND)
    for name, other in (("Alice", "Alice Cooper, Inc."), ("Alice Cooper, Inc.", "Ali")):
        with pytest.raises(Conflict) as refused:
            entities.merge(bank.store, name, other, door="test")
        assert refused.value.where == f"{ENTITIES}:5"
    for refused_call in (
        lambda: entities.alias(bank.store, "Alice", "Robert Smith", door="test"),
        lambda: entities.merge(bank.store, "Alice", "alice's", door="test"),
        lambda: entities.merge(bank.store, "Alice", "Ali", door="test"),
        lambda: entities.rename(bank.store, "Alice", "Rob", door="test"),
        lambda: entities.split(bank.store, "Ali", "Alice", door="test"),
        lambda: entities.alias(bank.store, "Alice", " \n", door="test"),
    ):
        with pytest.raises(Usage):
            refused_call()
    assert bank.text(ENTITIES) == HAND and "entities" not in bank.ops()


def test_a_split_gives_back_the_facts_that_were_drawn_meanwhile(bank: Bank) -> None:
    entities.merge(bank.store, "Robert Smith", "Bob", door="test")
    bank.insert("Bob's report is due", entities=("Riga", "Robert Smith"))
    bank.insert("Bob met Robert Smith", entities=("Robert Smith",))
    bank.insert("The tea is gone", entities=("Robert Smith",), quotes=(Quote("bob drank it"),))
    mine = "- Bob rests ^k7m2q9x4tb\n  - entities: [[Robert Smith]]\n"
    bank.write(mine, "memory/2026-11-01.md")
    done = entities.split(bank.store, "Robert Smith", "Bob", door="test")
    assert re.findall("entities: (.*)", bank.text()) == ["[[Riga]], [[Bob]]", "[[Robert Smith]]", "[[Bob]]"]
    assert bank.text("memory/2026-11-01.md") == mine and done.result.notes[0].endswith("Bob: 2")
    assert bank.clean()


def test_so_does_the_undo_of_a_merge_and_redo_takes_them_again(bank: Bank) -> None:
    bank.write("# Entities\n\n- [[Bob]]\n  - alias: Bobby\n- [[Robert Smith]]\n", ENTITIES)
    done = entities.merge(bank.store, "Robert Smith", "Bob", door="test")
    bank.insert("Bobby's report is due", entities=("Riga", "Robert Smith"))
    bank.insert("Robert Smith met Bob", entities=("Robert Smith",))
    undone = undo.BankHistory(bank.store, "test").undo(done.result.revision)
    assert re.findall("entities: (.*)", bank.text()) == ["[[Riga]], [[Bob]]", "[[Robert Smith]]"]
    assert undone.result.notes == ("extracted in the meantime under the name Bob: 1",)
    undo.BankHistory(bank.store, "test").redo()
    assert re.findall("entities: (.*)", bank.text()) == ["[[Riga]], [[Robert Smith]]", "[[Robert Smith]]"]
    renamed = entities.rename(bank.store, "Robert Smith", "Rob", door="test")
    bank.insert("Robert Smith sails", entities=("Rob",))
    undo.BankHistory(bank.store, "test").undo(renamed.result.revision)
    assert re.findall("entities: (.*)", bank.text())[-1] == "[[Robert Smith]]"
    assert bank.clean()


def test_what_is_split_is_not_merged_again(bank: Bank) -> None:
    entities.merge(bank.store, "Alice", "Ali", door="test")
    entities.split(bank.store, "Alice", "Ali", door="test")
    for name, other in (("Alice", "Ali"), ("Ali", "Alice")):
        with pytest.raises(Conflict):
            entities.merge(bank.store, name, other, door="test")
    assert entities.entity_records(bank.store).resolve("Ali").name == "Ali"


def test_an_alias_of_two_is_told_and_split_leaves_it_to_the_other(bank: Bank) -> None:
    bank.write(
        "# Entities\n\n- [[Wilma Kern]]\n  - alias: Willi\n- [[Wilhelm Busch]]\n  - alias: Willi\n", ENTITIES
    )
    (told,) = audit.file_problems(bank.store)
    split = 'ua-memory entities split "Wilhelm Busch" Willi'
    assert str(told) == f"{ENTITIES}:5: Willi is a name of Wilma Kern, too; {split}, or merge the two"
    entities.split(bank.store, "Wilhelm Busch", "Willi", door="test")
    assert entities.entity_records(bank.store).resolve("Willi").name == "Wilma Kern"
    assert not [*audit.file_problems(bank.store)] and bank.text(ENTITIES).count("[[") == 2


# -- in a shell ----------------------------------------------------------------------------------------------

NOTES = """# Notes

- Met [[Robert Smith]] in Lisbon
- Golf with [[Bob]] and Tom near Lisbon

## 09:00

- Status: done

## 10:00

- **Status:** late
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = new_shell(tmp_path)
    shell.write("memory/2026-11-20.md", NOTES)
    return shell


def test_a_wrong_merge_changes_recall_until_it_is_undone(shell: Shell) -> None:
    words = "- Met [[Robert Smith]] at noon\n- Golf with [[Bob]]\n"
    shell.write("memory/2026-11-20.md", words)

    def entity_arm() -> set[str]:
        hits = shell.ok("search", "Robert Smith", "--explain", "--json").json["results"]
        return {hit["snippet"] for hit in hits if "entity" in hit["arms"]}

    before = entity_arm()
    shell.ok("entities", "merge", "Robert Smith", "Bob")
    during = entity_arm()
    shell.ok("undo")
    assert not any("Golf" in each for each in before) and any("Golf" in each for each in during)
    assert entity_arm() == before
    assert (shell.cwd / "memory/2026-11-20.md").read_text() == words, "facts keep their words"


def test_names_are_counted_and_common_words_are_none(shell: Shell) -> None:
    shell.write(ENTITIES, "- [[Robert Smith]]\n  - alias: Bob\n  - not: Bobby\n")
    printed = shell.ok("entities", "list", "--json").json
    agrees("entities list", printed)
    assert [(one["name"], one["count"]) for one in printed["entities"]] == [
        ("Lisbon", 2),
        ("Robert Smith", 2),
        ("Tom", 1),
    ]
    assert "Status" in shell.ok("entities", "list", "--all").out
    shell.ok("insert", "[[\U0001f680 Rocket]] lifts off")
    assert "\U0001f680 Rocket" in shell.ok("entities", "list").out
    assert "also Bob; not Bobby" in shell.ok("entities", "list").out


def test_an_alias_is_no_misspelling(shell: Shell) -> None:
    shell.write(ENTITIES, "- [[Porto]]\n  - alias: Oporto\n")
    shell.ok("insert", "Ann moved to Porto")
    done = shell.ok("search", "Oporto")
    assert "Ann moved to Porto" in done.out and "no match" not in done.err


def test_a_name_is_shown_with_all_that_is_known(shell: Shell) -> None:
    shell.write(ENTITIES, "- [[Robert Smith]]\n  - alias: Bob\n")
    shell.write("memory/2026-10-02.md", "- Bob lost his keys ^k7m2q9x4tb\n")
    printed = shell.ok("entities", "show", "bob", "--json").json
    agrees("entities show", printed)
    assert (printed["name"], printed["count"]) == ("Robert Smith", 3)
    assert [one["startLine"] for one in printed["facts"]] == [4, 3, 1]
    assert printed["beside"] == [{"name": "Lisbon", "count": 2}, {"name": "Tom", "count": 1}]
    assert printed["timeline"] == [{"when": "2026-10", "count": 1}, {"when": "2026-11", "count": 2}]
    assert "^k7m2q9x4tb" in shell.ok("entities", "show", "Bob").out
    missing = shell("entities", "show", "Robret Smith")
    assert missing.code == 4 and "did you mean Robert Smith?" in missing.err
    assert shell("entities", "merge", "Robert Smith", "Nobody Known").code == 4


def test_names_are_counted_in_pairs(shell: Shell) -> None:
    agrees("entities graph", shell.ok("entities", "graph", "--json").json)
    shell.write(ENTITIES, "- [[Robert Smith]]\n  - alias: Bob\n")
    printed = shell.ok("entities", "graph", "--json").json
    assert {(one["one"], one["other"]): one["count"] for one in printed["together"]} == {
        ("Lisbon", "Robert Smith"): 2,
        ("Lisbon", "Tom"): 1,
        ("Robert Smith", "Tom"): 1,
    }
    some = shell.ok("entities", "graph", "Bob", "Lisbon", "Nobody Known", "--json").json
    assert [(one["name"], one["count"]) for one in some["entities"]] == [
        ("Robert Smith", 2), ("Lisbon", 2), ("Nobody Known", 0)
    ]  # fmt: skip
    assert some["together"] == [{"one": "Lisbon", "other": "Robert Smith", "count": 2}]
    assert "Lisbon" in shell.ok("entities", "graph").out
    shell.write("memory/2026-11-18.md", "- Oslo is cold, Tom says.\n- In Oslo it snows.\n")
    begins = shell.ok("entities", "graph", "Oslo", "Tom", "--json").json
    assert begins["together"] == [{"one": "Oslo", "other": "Tom", "count": 1}], (
        "also where it begins a sentence"
    )
    assert "No two" in shell.ok("entities", "graph", "Tom").out


def test_decisions_and_suggestions_as_json(shell: Shell) -> None:
    agrees("entities merge", shell.ok("entities", "split", "Robert Smith", "Bob", "--json").json)
    shell.write("memory/2026-11-19.md", "- We asked Kubernetes\n- They run Kuberentes\n")
    printed = shell.ok("entities", "list", "--suggest", "--json").json
    agrees("entities list --suggest", printed)
    assert printed["suggestions"][0]["reason"] == "two letters are swapped"
    assert "merge" in shell.ok("entities", "list", "--suggest").out
