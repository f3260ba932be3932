"""Whose a line is: who brought its words in, whatever a machine did to it since that changed none of them."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Literal

import pytest
from banks import DAY, Bank, everywhere, new_bank, repository
from test_sync_machines import sync
from test_sync_machines import two as two_machines

from ua_memory.git.repository import MACHINE, SOMEBODY, Commit
from ua_memory.index.sync import Index
from ua_memory.knowledge import facts, observations, statements
from ua_memory.knowledge.facts import InsertResult, Provenance
from ua_memory.knowledge.lineage import FactStep
from ua_memory.knowledge.observations import ProofText
from ua_memory.markdown import document as markdown
from ua_memory.mcp.memory_tool import MemoryTool, MemoryToolError
from ua_memory.memory import Memory
from ua_memory.records import Fact
from ua_memory.reflect import refresh as staleness
from ua_memory.reflect.proposals import observations_by_person
from ua_memory.store.store import Store
from ua_memory.upkeep import archive, audit
from ua_memory.upkeep import init as bank
from ua_memory.upkeep.undo import BankHistory

OTHER = "memory/2026-11-20.md"
LOG = "# 2026-11-20\n\n- The gate code is kept by Bruno.\n"
LINE = "- The gate code is kept by Bruno."


@pytest.fixture(params=["own", "enclosed"])
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Bank:
    """A bank of its own, and one inside somebody's repository."""
    if request.param == "own":
        return new_bank(tmp_path / "bank")
    repository(tmp_path / "code", {"main.py": "print()\n"})
    return new_bank(tmp_path / "code")


def typed(there: Bank, path: str = OTHER, text: str = LOG) -> None:
    """A person writes a file, and it is committed as theirs."""
    there.write(text, path)
    there.store.adopt()


def given_id(there: Bank, path: str = OTHER) -> str:
    """A machine gives the first line that has none an id, as a consolidation does."""
    fact = next(f for f in _facts(there.store, path) if f.id is None)
    with there.store.revision("consolidate", door="test") as draft:
        return str(statements.ensure_id(draft, fact).id)


def _facts(store: Store, path: str) -> list[Fact]:
    return list(markdown.parse(store.accepted_bytes(path), path).of(Fact))


def author(there: Bank, words: str = "gate code", path: str = OTHER) -> list[str]:
    """Who wrote each line with these words."""
    return [line.author for line in audit.blame(there.store, path) if words in line.text]


def test_a_line_that_was_given_an_id_stays_its_writers(there: Bank) -> None:
    typed(there)
    edit = there.store.history.head()
    given_id(there)
    assert author(there) == ["person"]
    assert audit.blame(there.store, f"{OTHER}:3")[0].revision == edit


def test_forgetting_an_equal_line_leaves_a_persons_that_was_given_an_id(there: Bank) -> None:
    typed(there)
    typed(there, DAY, LOG.replace("20", "21"))
    kept, gone = given_id(there), given_id(there, DAY)
    done = Memory(there.store).forget(f"^{gone}")
    assert f"{LINE} ^{kept}" in there.text(OTHER)
    assert [(piece.place.path, piece.by_person) for piece in done.plan.left] == [(OTHER, True)]
    assert "gate code" not in there.text(DAY)


def test_what_a_machine_wrote_itself_goes_along_as_before(there: Bank) -> None:
    typed(there)
    known = given_id(there)
    there.insert("The gate code is kept by Bruno.")
    Memory(there.store).forget(f"^{known}")
    assert not any(b"gate code" in there.bytes(file.path) for file in there.store.files())


def test_a_line_put_back_from_an_old_buffer_stays_its_writers(there: Bank) -> None:
    typed(there, DAY, "# 2026-11-21\n\n- mine to begin with\n")
    buffer = there.text()
    there.insert("said by a machine")
    given_id(there, DAY)
    there.write(buffer + "- mine too\n")
    there.insert("one more")
    assert "merge" in there.ops()
    assert author(there, "mine", DAY) == ["person", "person"]
    assert author(there, "machine", DAY) == ["ua-memory"]


@pytest.mark.parametrize("by", [MACHINE, SOMEBODY], ids=["ours", "the person's"])
def test_a_line_that_a_merge_brings_back_stays_its_writers(there: Bank, by: tuple[str, str]) -> None:
    """Whatever a put-back looks like: here all of it is one commit, of ours or of the person."""
    typed(there)
    given_id(there)
    with there.store.revision("insert", door="test") as draft:
        draft.write(OTHER, there.bytes(OTHER) + b"- said by a machine ^aaaaaaaaaa\n", restored=True)
    full = there.bytes(OTHER)
    bare = b"# 2026-11-20\n"
    there.write(bare, OTHER)
    there.store.adopt()
    there.write(full, OTHER)
    text = "merge: put back 1 fact\n\nMemory-Op: merge\nDoor: store\n"
    there.store.history.commit([Commit(by, there.clock(), text, {OTHER: full})])
    assert author(there) == ["person"] and author(there, "machine") == ["ua-memory"]


@pytest.mark.parametrize("person", [False, True], ids=["ours", "the person's"])
def test_an_undo_and_a_redo_leave_every_line_its_writers(there: Bank, person: bool) -> None:
    typed(there)
    given_id(there)
    BankHistory(there.store, "test").undo(by_person=person)
    assert there.text(OTHER) == LOG and author(there) == ["person"]
    BankHistory(there.store, "test").redo(by_person=person)
    assert "^" in there.text(OTHER) and author(there) == ["person"]
    there.path(OTHER).unlink()
    there.store.adopt()
    gone = next(r for r in there.store.history.log() if r.trailer("Memory-Op") == "edit")
    BankHistory(there.store, "test").undo(gone.id, by_person=person)
    assert author(there) == ["person"]
    there.insert("said by a machine")
    BankHistory(there.store, "test").undo(by_person=person)
    BankHistory(there.store, "test").redo(by_person=person)
    assert author(there, "machine", DAY) == ["ua-memory"]
    assert (there.store.history.log(limit=1)[0].author == "person") is person


def test_what_a_persons_forgetting_and_undo_revise_stays_a_machines(there: Bank) -> None:
    """Who asks for a revision is its author; lines that it writes anew are not their words for that."""
    said = [there.insert(text).fact for text in ("Alice runs the gym.", "Alice opens the gym at six.")]
    with there.store.revision("consolidate", door="test") as draft:
        one = observations.add(draft, "Alice is in.", [ProofText(said[0], "gym")], today=date(2026, 11, 21))
    with there.store.revision("consolidate", door="test") as draft:
        more, text = [ProofText(said[1], "at six")], "Alice is in early."
        observations.revise(draft, one, text, more, {str(said[0].id): said[0]}, today=date(2026, 11, 22))
    reworded = str(draft.result.revision)
    Memory(there.store).forget(f"^{said[1].id}", by_person=True)
    forgotten = there.store.history.log(limit=1)[0]
    assert (forgotten.author, forgotten.trailer("Memory-Op")) == ("person", "forget")
    for take_back in (forgotten.id, reworded):
        assert {*author(there, "", one.place.path)} == {"ua-memory"}
        BankHistory(there.store, "test").undo(take_back, by_person=True)
    assert {*author(there, "", one.place.path)} == {"ua-memory"} and one.text in there.text(one.place.path)
    assert not observations_by_person(there.store, observations.all_observations(there.store).live)


def test_an_observation_is_a_persons_by_a_change_of_its_words(there: Bank) -> None:
    """Not by a file that they copied into the bank, though a machine wrote other lines of it since, nor by
    another order: no run would word these anew."""

    def theirs() -> list[str]:
        live = observations.all_observations(there.store).live
        return sorted(one.text for one in observations_by_person(there.store, live))

    path, cited = "memory/observations/alice.md", "  - proof: [[2026-11-21#^k7m2q9x4tb]]\n"
    tea, rent = (
        f"- Alice {does} ^{id}\n" for does, id in (("likes tea", "aaaa1111bb"), ("rents", "bbbb2222cc"))
    )
    typed(there, path, f"{tea}{cited}{rent}{cited}")
    with there.store.revision("consolidate", door="test") as draft:
        data = draft.read(path)
        dated = data.replace(b"  - proof", b"  - since: 2026-11-21\n  - proof")
        draft.write(path, dated, removes=markdown.parse(data, path).records)
    assert not theirs()
    above, _, below = there.text(path).partition(rent)
    typed(there, path, f"{rent}{below}{above}")
    assert not theirs()
    typed(there, path, there.text(path).replace("rents", "rents a flat"))
    assert theirs() == ["Alice rents a flat"]


def test_a_line_of_a_file_that_was_renamed_stays_its_writers(there: Bank) -> None:
    typed(there)
    given_id(there)
    there.path(OTHER).rename(there.path("memory/2026-11-20-gate.md"))
    there.store.adopt()
    assert author(there, path="memory/2026-11-20-gate.md") == ["person"]
    typed(there, "memory/notes.md", "- a line of mine\n- and one more of mine\n")
    given_id(there, "memory/notes.md")
    there.path("memory/notes.md").rename(there.path("memory/other.md"))
    there.store.adopt()
    given_id(there, "memory/other.md")
    assert author(there, "mine", "memory/other.md") == ["person", "person"]


def test_equal_lines_of_a_person_and_a_machine_are_told_apart(there: Bank) -> None:
    typed(there, DAY, "# 2026-11-21\n\n- Tea is at four.\n")
    there.insert("Tea is at four.")
    given_id(there, DAY)
    assert author(there, "Tea", DAY) == ["person", "ua-memory"]


# -- whose it is decides more than forgetting ---------------------------------------------------------------


def test_a_paragraph_of_a_page_that_a_merge_put_back_stays_its_writers(there: Bank) -> None:
    page = "memory/pages/gate.md"
    head = "---\nid: gate\nname: Gate\nsource_query: who keeps the gate code\n---\n\n"
    typed(there, page, f"{head}Ours to begin with.\n\nMine stays mine.\n")
    with there.store.revision("refresh", door="test") as draft:
        draft.subject = "refresh: gate"
        draft.write(page, f"{head}Written by a refresh.\n".encode(), restored=True)
    BankHistory(there.store, "test").undo()
    lines = there.bytes(page)
    rows = dict(zip(lines.decode().splitlines(), staleness.owners(there.store, page, lines), strict=True))
    assert rows["Mine stays mine."] == "person"
    BankHistory(there.store, "test").redo()
    lines = there.bytes(page)
    rows = dict(zip(lines.decode().splitlines(), staleness.owners(there.store, page, lines), strict=True))
    assert rows["Written by a refresh."] == "ours"


def test_a_note_of_a_persons_that_was_given_an_id_is_not_an_agents_to_remove(there: Bank) -> None:
    typed(there, "memory/notes.md", "- Bruno keeps the code.\n")
    given_id(there, "memory/notes.md")
    with pytest.raises(MemoryToolError, match="what a person wrote"):
        MemoryTool(Memory(there.store)).call({"command": "delete", "path": "/memories/notes.md"})


def test_why_names_who_typed_the_words(there: Bank) -> None:
    typed(there)
    block = given_id(there)
    there.clock.later(hours=1)
    step = Memory(there.store).history.why(f"^{block}").steps[0]
    assert isinstance(step, FactStep) and step.written is not None
    assert (step.written.author, step.written.op) == ("person", "edit")


@pytest.mark.parametrize("heading", ["person", "agent"])
def test_beside_a_persons_line_that_was_given_an_id_an_equal_text_is_a_fact_of_its_own(
    there: Bank, heading: Literal["person", "agent"]
) -> None:
    def insert(text: str) -> InsertResult:
        fact, said = Fact(text, origin="person"), Provenance(there.clock(), "test", heading)
        return facts.insert(there.store, fact, said, door="test", equal=everywhere(there))

    insert("Something else.")
    typed(there, DAY, there.text() + "- Tea is at four.\n")
    given_id(there, DAY)
    before = there.text()
    assert not insert("Tea is at four.").sighting and there.text().startswith(before)
    assert insert("Tea is at four.").sighting and there.text().startswith(before)


def test_a_line_that_another_machine_gave_an_id_stays_its_writers_after_a_sync(tmp_path: Path) -> None:
    one, two = two_machines(tmp_path)
    typed(one)
    sync(one)
    sync(two)
    given_id(two)
    two.insert("said by a machine")
    typed(one, "memory/notes.md", "- mine on one\n")
    sync(two)
    sync(one)
    for machine in (one, two):
        sync(machine)
        assert author(machine) == ["person"]
        assert author(machine, "mine", "memory/notes.md") == ["person"]
        assert author(machine, "machine", DAY) == ["ua-memory"]


def test_a_line_that_was_given_an_id_stays_its_writers_in_an_archive(tmp_path: Path) -> None:
    one, fresh = new_bank(tmp_path / "one"), Bank(tmp_path / "fresh")
    typed(one)
    given_id(one)
    one.insert("said by a machine")
    archive.export(one.store, tmp_path / "bank.tar")
    bank.init(fresh.root, one.clock, timezone="UTC", door="test")
    fresh.again()
    archive.restore(fresh.store, tmp_path / "bank.tar", door="test", index=lambda: Index(fresh.store))
    assert author(fresh) == ["person"] and author(fresh, "machine", DAY) == ["ua-memory"]
