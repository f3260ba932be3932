"""What was forgotten does not come back: not by an import, a flush, a document, or another undo."""

from __future__ import annotations

from pathlib import Path

import pytest
from banks import DAY, NOON, Bank, new_bank

from ua_memory.clients.turns import Session, Turn
from ua_memory.errors import Conflict
from ua_memory.knowledge import tombstones
from ua_memory.knowledge.tombstones import Removal
from ua_memory.markdown import document as markdown
from ua_memory.memory import Memory
from ua_memory.records import Fact, Quote, Tombstone
from ua_memory.retain.flush import FlushWriter
from ua_memory.retain.queue import TurnQueue as Queue
from ua_memory.retain.subagent import Candidate, CoreEdit, SubagentResult
from ua_memory.upkeep.import_ import import_contents
from ua_memory.upkeep.import_sources import CopiedNote as Note
from ua_memory.upkeep.import_sources import ImportedRecord as Item
from ua_memory.upkeep.import_sources import SourceContents as Found
from ua_memory.upkeep.undo import BankHistory

SAID = "The spare key lies under the blue stone."
KEPT = "We decided to keep the spare key under the blue stone."
PATH = tombstones.PATH
TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


@pytest.fixture
def there(tmp_path: Path) -> Bank:
    return new_bank(tmp_path / "bank")


def forgotten(bank: Bank, text: str = SAID, **more: object) -> Fact:
    fact = bank.insert(text, **more).fact
    Memory(bank.store).forget(f"^{fact.id}")
    return fact


def texts(bank: Bank, path: str = DAY) -> list[str]:
    data = bank.bytes(path) if bank.path(path).exists() else b""
    return [fact.text for fact in markdown.parse(data, path).of(Fact)]


# -- how it is known again -----------------------------------------------------------------------------------


def test_a_text_is_known_by_its_hash_alone(there: Bank) -> None:
    with there.store.revision("forget", door="test") as draft:
        gone = [
            Removal("aaaaaaaaaa", f"{SAID} {TOKEN}", ("under the blue stone", "a key")),
            Removal("bbbbbbbbbb", "x y"),
        ]
        tombstones.add(there.store, draft, gone, "2026-11-21")
    stones = tombstones.read(there.store)
    assert "aaaaaaaaaa" in stones and "^bbbbbbbbbb" in stones and "cccccccccc" not in stones
    assert stones.has_text(f"the SPARE key\n lies under the blue stone.  {TOKEN}.")
    assert stones.has_text(f"{SAID} [redacted: github-token]")  # as a door of ours would have it
    assert stones.quoted("Under the blue stone!") and not stones.quoted("a key")
    assert not stones.has_text(SAID) and not stones.has_text("x") and stones.has_text("“X y”")
    assert SAID.split()[2].encode() not in there.bytes(PATH) and TOKEN.encode() not in there.bytes(PATH)
    salts = {mark.split(":")[0] for stone in stones.by_id.values() for mark in stone.hash.split()}
    assert len(salts) == 1
    with there.store.revision("forget", door="test") as draft:
        tombstones.add(
            there.store,
            draft,
            [Removal("dddddddddd", "more"), Removal("aaaaaaaaaa", "not again")],
            "2026-11-22",
        )
    again = tombstones.read(there.store)
    assert again.salt in salts and again.by_id["aaaaaaaaaa"] == stones.by_id["aaaaaaaaaa"]


def test_stones_of_two_machines_hold_side_by_side(there: Bank, tmp_path: Path) -> None:
    other = new_bank(tmp_path / "other")
    for bank, text in ((there, "What one machine forgot."), (other, "What the other one forgot.")):
        forgotten(bank, text)
    there.write(there.bytes(PATH) + b"\n".join(other.bytes(PATH).split(b"\n")[2:]), PATH)
    stones = tombstones.read(there.store)
    assert stones.has_text("what one machine forgot") and stones.has_text("what the other one forgot")


def test_a_stone_without_a_hash_stops_its_id_alone(there: Bank) -> None:
    there.write("- ^aaaaaaaaaa\n  - on: 2026-11-21\n", PATH)
    stones = tombstones.read(there.store)
    assert stones.matches(Fact("anything", id="aaaaaaaaaa")) and not stones.matches(
        Fact("anything", id="bbbbbbbbbb")
    )


# -- doors ---------------------------------------------------------------------------------------------------


def candidate(text: str, quote: str = "") -> Candidate:
    return Candidate(text, "world", "person", None, (), (), quote or text, "t1", NOON, 1.0, "")


def test_a_flush_of_the_same_words(there: Bank) -> None:
    forgotten(there, "The key is hidden outside.", quotes=(Quote("it lies under the blue stone"),))
    forgotten(there, SAID)
    session = Session("test", "8f2c")
    waiting = Queue(there.store.bank.pending, str).put(session, [Turn("t1", "person", SAID, NOON)], at=NOON)
    core = {name: CoreEdit(name, "", value) for name, value in (("Key", f"- a\n- {SAID}"), ("Me", "Brief."))}
    harvest = SubagentResult(
        [candidate(SAID), candidate("Another wording.", "It lies under the blue stone."), candidate("New.")],
        core_edits=core,
    )
    done = FlushWriter(there.store, waiting, None, None).write(harvest, by="", door="test")
    assert texts(there) == ["New."] and [each.after.name for each in done.core] == ["Me"]
    assert done.notes == (
        "2 statements were left out: forgotten here before",
        "core block Key was left as it is: it records what was forgotten here",
    )


def test_a_document_that_is_read_again(there: Bank) -> None:
    memory = Memory(there.store)
    text = f"# Keys\n\n{KEPT}\n\nThe office closes at six in winter.\n"
    done = memory.retain(text, document_id="keys")
    (fact,) = (fact for fact in done.facts if "stone" in fact.text)
    memory.forget(f"^{fact.id}")
    path = done.path
    assert memory.retain(text, document_id="keys").facts == ()
    longer = f"{text}\nAnd Alice has a key to the garden.\n"
    again = memory.retain(longer, document_id="keys", redo=True)
    assert KEPT not in texts(there, path) and len(texts(there, path)) == 1
    assert again.notes == ("1 statement was left out: forgotten here before",)
    memory.retain(f"{KEPT} Bob has the other one.")
    assert all(
        KEPT not in texts(there, stat.path) for stat in there.store.files() if stat.path.endswith(".md")
    )
    memory.close()


def test_an_import_of_the_same(there: Bank) -> None:
    gone = forgotten(there)
    items = [
        Item(Fact("Other words.", id=gone.id), "2026-02-03"),
        Item(Fact(SAID.upper(), id="bbbbbbbbbb"), "2026-02-03"),
        Item(Fact("New.", id="cccccccccc"), "2026-02-03"),
    ]
    note = Note(
        "a.md",
        "a.md",
        f"# A\n\n- {SAID}\n- fine ^{gone.id}\n\nProse.\n{SAID}\n\n- kept\n".encode(),
        "2026-02-03",
    )
    found = Found("markdown", "vault", notes=(note,), items=tuple(items))
    done = import_contents(there.store, found, door="test")
    assert [(one.source, one.state, one.why) for one in done.taken if one.state == "left"] == [
        (f"^{gone.id}", "left", "it was forgotten here"), ("^bbbbbbbbbb", "left", "it was forgotten here"),
    ]  # fmt: skip
    (copy,) = (one for one in done.taken if one.what == "note")
    assert copy.why == "3 statements were left out: forgotten here before"
    assert there.text(copy.path).split("---\n")[2] == "# A\n\n\nProse.\n\n- kept\n"
    assert texts(there, "memory/2026-02-03.md") == ["New."]
    assert [
        one.state for one in import_contents(there.store, found, door="test").taken if one.what == "note"
    ] == ["same"]


def test_who_says_it_anew_wishes_it_kept(there: Bank) -> None:
    gone = forgotten(there)
    again = there.insert(SAID).fact
    assert (
        again.id != gone.id
        and there.find(again.id).text == SAID
        and Memory(there.store).health.verify() == []
    )


# -- undo ----------------------------------------------------------------------------------------------------


def test_undo_of_a_forgetting_brings_it_back_and_lifts_the_stone(there: Bank) -> None:
    gone = forgotten(there)
    BankHistory(there.store, "test").undo()
    assert there.find(gone.id) == gone and not there.path(PATH).exists()
    BankHistory(there.store, "test").redo()
    assert texts(there) == [] and gone.id in tombstones.read(there.store)


def test_no_other_undo_does(there: Bank) -> None:
    gone, first = there.insert(SAID).fact, there.insert("First.").fact
    there.edit(f"- {SAID} ^{gone.id}\n", "")
    there.store.adopt()
    deleted = there.store.history.head()
    there.write(there.text() + f"- {SAID} ^{gone.id}\n")
    there.store.adopt()
    Memory(there.store).forget(f"^{gone.id}")
    with pytest.raises(Conflict, match="forgotten"):
        BankHistory(there.store, "test").undo(deleted)
    assert texts(there) == [first.text] and gone.id in tombstones.read(there.store)


def test_parsed_as_the_format_says(there: Bank) -> None:
    forgotten(there)
    (stone,) = markdown.parse(there.bytes(PATH), PATH).of(Tombstone)
    assert len(stone.hash) == 8 + 1 + 16 and not markdown.parse(there.bytes(PATH), PATH).problems
