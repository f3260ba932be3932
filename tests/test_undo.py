"""Taking back: any revision, three-way, with both sides shown or nothing lost."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pytest
from banks import DAY, Bank, everywhere, git, new_bank
from test_forget import PAGE, believe, by_machine, link, opine
from unreadable import unreadable

from ua_memory.errors import Conflict, GitFailed, NotFound, Usage
from ua_memory.git.history import History
from ua_memory.git.process import GitObject
from ua_memory.knowledge import core
from ua_memory.markdown import document as markdown
from ua_memory.memory import Memory
from ua_memory.records import Fact
from ua_memory.upkeep import audit
from ua_memory.upkeep.undo import BankHistory, UndoPlan, UndoResult


@pytest.fixture
def there(tmp_path: Path) -> Bank:
    return new_bank(tmp_path / "bank")


def back(bank: Bank, revision: str | None = None) -> UndoResult:
    return BankHistory(bank.store, "test").undo(revision)


def again(bank: Bank) -> UndoResult:
    return BankHistory(bank.store, "test").redo()


def facts(bank: Bank, path: str = DAY) -> list[str]:
    data = bank.bytes(path) if bank.path(path).exists() else b""
    return [fact.text for fact in markdown.parse(data, path).of(Fact)]


# -- which one -------------------------------------------------------------------------------------------


def test_the_newest(there: Bank) -> None:
    """I43"""
    there.insert("one")
    before = there.bytes()
    two = there.insert("two")
    done = back(there)
    assert done.revision.id == two.result.revision
    assert there.bytes() == before
    newest = there.store.history.log(limit=1)[0]
    assert (newest.trailer("Memory-Op"), newest.trailer("Undoes")) == ("undo", two.result.revision)
    assert newest.subject == f"undo: insert: 1 fact into {DAY}"
    assert newest.trailers["Facts"] == (f"^{two.fact.id}",)
    assert there.clean()


def test_a_file_that_was_deleted_by_hand_just_now(there: Bank) -> None:
    there.write("- a note\n", "memory/n.md")
    there.store.adopt()
    two = there.insert("two")
    there.path("memory/n.md").unlink()
    there.write("- half a sent", "memory/half.md")  # an edit that may go on
    plan = planned(there)
    assert (plan.op, [one.path for one in plan.changes]) == ("edit", ["memory/n.md"])
    back(there)
    assert there.bytes("memory/n.md") == b"- a note\n" and facts(there) == ["two"]
    assert there.bytes("memory/half.md") == b"- half a sent"
    assert back(there).revision.id == two.result.revision


@pytest.mark.parametrize("how", ["shut", "folder", "link", "bytes"])
def test_a_file_that_was_deleted_beside_one_that_cannot_be_read(there: Bank, how: str) -> None:
    there.insert("one")
    other = there.path("memory/o.md")
    there.write("- of another\n", "memory/o.md")
    there.write("- a note\n", "memory/n.md")
    there.store.adopt()
    there.path("memory/n.md").unlink()
    if how in ("folder", "link"):
        other.unlink()
        other.mkdir() if how == "folder" else other.symlink_to(DAY)
    elif how == "bytes":
        other.write_bytes(b"- of an\xf6ther\n")
    with unreadable(other) if how == "shut" else nullcontext():
        assert [one.path for one in planned(there).changes] == ["memory/n.md"]
        back(there)
    assert there.bytes("memory/n.md") == b"- a note\n"
    assert there.store.history.read("HEAD", "memory/o.md") == b"- of another\n"


def test_a_file_that_was_renamed_just_now(there: Bank) -> None:
    there.write("- a note\n", "memory/n.md")
    there.store.adopt()
    there.path("memory/n.md").rename(there.path("memory/m.md"))
    back(there)
    assert there.bytes("memory/n.md") == b"- a note\n" and not there.path("memory/m.md").exists()


def test_an_edit_before_the_newest_revision_is_not_the_newest_change(there: Bank) -> None:
    there.insert("one")
    there.write("- a note\n", "memory/n.md")
    there.again(quiet_seconds=0)
    there.clock.at = datetime(2099, 1, 1, tzinfo=UTC)
    two = there.insert("two")
    assert back(there).revision.id == two.result.revision
    assert there.bytes("memory/n.md") == b"- a note\n"


def test_a_conflict_with_an_edit_that_is_not_committed_says_when_it_is_undone(there: Bank) -> None:
    there.write("- a note\n", "memory/n.md")
    there.store.adopt()
    there.write("- another note\n", "memory/n.md")
    with pytest.raises(Conflict) as refused:
        back(there)
    assert "n.md has an edit that is not committed yet" in str(refused.value.hint)
    there.again(quiet_seconds=0)
    back(there)
    assert there.bytes("memory/n.md") == b"- a note\n"


def test_what_was_moved_by_hand_is_one_edit(there: Bank) -> None:
    there.insert("one")
    moved = there.insert("two").fact
    line = next(line for line in there.bytes().splitlines(True) if b"two" in line)
    there.path(DAY).write_bytes(there.bytes().replace(line, b""))
    there.write(line, "memory/n.md")
    there.write("- half a sent", "memory/half.md")  # not this revision's
    three = there.insert("three")
    (edit,) = [one for one in there.store.history.log(limit=2) if one.id != three.result.revision]
    assert edit.subject == "edit: 2 files" and set(edit.paths) == {DAY, "memory/n.md"}
    assert facts(there) == ["one", "three"]
    back(there, edit.id)
    assert facts(there) == ["one", moved.text, "three"] and not there.path("memory/n.md").exists()


def test_a_person_s_own_commit_of_notes_outside_of_the_bank(there: Bank) -> None:
    """A vault's backup plugin commits everything each ten minutes."""

    def backup() -> str:
        git(there.path(""), "add", "-A")
        git(there.path(""), "commit", "-qm", "vault backup")
        return git(there.path(""), "rev-parse", "HEAD").strip()

    one = there.insert("one")
    there.write("# An idea\n", "ideas/idea.md")
    outside = backup()
    there.write("# Another\n", "ideas/idea.md")
    there.write("- by hand\n", "memory/n.md")
    both = backup()
    with pytest.raises(Usage, match="it changed no file of the bank"):
        back(there, outside)
    done = back(there)
    assert done.revision.id == both and not there.path("memory/n.md").exists()
    assert done.result.notes == ("1 file outside of the bank not undone",)
    assert there.bytes("ideas/idea.md") == b"# Another\n"
    assert back(there).revision.id == one.result.revision


def test_an_old_one(there: Bank) -> None:
    first = there.insert("one")
    there.insert("two")
    there.insert("three")
    back(there, first.result.revision)
    assert facts(there) == ["two", "three"]


def test_again_goes_further_back(there: Bank) -> None:
    """`redo` is there to go forth; a second undo that took back the first would be of no use."""
    for text in ("one", "two", "three"):
        there.insert(text)
    back(there)
    back(there)
    assert facts(there) == ["one"]
    again(there)
    assert facts(there) == ["one", "two"]
    again(there)
    assert facts(there) == ["one", "two", "three"]
    with pytest.raises(NotFound, match="nothing to redo"):
        again(there)
    back(there)
    there.insert("four")
    back(there)
    assert facts(there) == ["one", "two"]
    back(there)
    back(there)
    assert facts(there) == []
    with pytest.raises(NotFound, match="nothing to undo"):
        back(there)


def test_an_undo_can_be_taken_back_by_its_name(there: Bank) -> None:
    there.insert("one")
    undone = back(there)
    back(there, undone.result.revision)
    assert facts(there) == ["one"]
    back(there)
    assert facts(there) == [], "what was taken back twice counts again"
    again(there)
    assert facts(there) == ["one"]


def test_the_making_of_the_bank_is_not_taken_back(there: Bank) -> None:
    with pytest.raises(NotFound):
        back(there)
    with pytest.raises(Usage, match="creation of the bank"):
        back(there, "HEAD")
    assert there.path("ua-memory.toml").exists()


def test_what_was_there_before_the_bank_needs_to_be_named(tmp_path: Path) -> None:
    (tmp_path / "bank" / "memory").mkdir(parents=True)
    (tmp_path / "bank" / DAY).write_text("- mine\n")
    there = new_bank(tmp_path / "bank")
    with pytest.raises(NotFound):
        back(there)
    assert facts(there) == ["mine"]
    back(there, there.store.history.log()[-1].id)
    assert not there.path().exists()
    again(there)
    assert there.text() == "- mine\n"


def test_revisions_that_are_none(there: Bank) -> None:
    for name in ("nope", "-x", "HEAD~99", "0" * 40, ""):
        with pytest.raises(NotFound):
            back(there, name)


def test_a_git_that_fails_is_no_first_revision(there: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a parent the whole file would count as added by it, and go."""
    there.insert("one")
    there.insert("two")
    before, real = there.bytes(), History.read_objects

    def read_objects(self: History, names: Sequence[str]) -> list[GitObject | None]:
        if any("^^" in name for name in names):
            raise GitFailed("no process to be had")
        return real(self, names)

    monkeypatch.setattr(History, "read_objects", read_objects)
    with pytest.raises(GitFailed):
        BankHistory(there.store, "test").undo("HEAD")
    assert there.bytes() == before


def test_twice_the_same_one(there: Bank) -> None:
    one = there.insert("one")
    there.insert("two")
    back(there, one.result.revision)
    with pytest.raises(Conflict, match="nothing is left to undo"):
        back(there, one.result.revision)


# -- what it was -----------------------------------------------------------------------------------------


def test_of_a_file_s_first_fact(there: Bank) -> None:
    there.insert("one")
    back(there)
    assert not there.path().exists()
    again(there)
    assert facts(there) == ["one"]
    assert there.text().startswith("# 2026-11-21\n")


def test_later_facts_keep_the_heading_they_stand_under(there: Bank) -> None:
    one = there.insert("one", session="8f2c", origin="tool")
    there.insert("two", session="8f2c", origin="tool")
    there.insert("three", session="other")
    back(there, one.result.revision)
    assert [(f.text, f.said_by, f.heading.session) for f in markdown.parse(there.bytes(), DAY).of(Fact)] == [
        ("two", "tool", "8f2c"),
        ("three", "agent", "other"),
    ]
    assert there.text().startswith("# 2026-11-21\n")


def test_a_heading_that_nothing_stands_under_goes_too(there: Bank) -> None:
    there.insert("one", session="a")
    two = there.insert("two", session="b")
    there.insert("three", session="c")
    back(there, two.result.revision)
    assert "session b" not in there.text()


def test_a_sighting(there: Bank) -> None:
    there.insert("said")
    before = there.bytes()
    there.insert("said", equal=everywhere(there))
    back(there)
    assert there.bytes() == before


def test_a_fact_that_was_seen_again(there: Bank) -> None:
    one = there.insert("said")
    there.insert("said", equal=everywhere(there))
    with pytest.raises(Conflict):
        back(there, one.result.revision)
    assert facts(there) == ["said"]


def test_a_core_block(there: Bank) -> None:
    core.CoreMemory(there.store, "test").replace("User", "Ann")
    core.CoreMemory(there.store, "test").replace("Mood", "fine")
    there.clock.later(minutes=1)
    changed = core.CoreMemory(there.store, "test").replace("User", "Bob")
    core.CoreMemory(there.store, "test").replace("Mood", "tired")
    back(there, changed.result.revision)
    assert {b.name: b.value for b in core.blocks(there.store)} == {"User": "Ann", "Mood": "tired"}


def test_what_was_undone_comes_back_beside_other_facts_and_not_beside_another_value(there: Bank) -> None:
    there.insert("one")
    back(there)
    there.insert("two")
    again(there)
    assert facts(there) == ["one", "two"]
    assert there.bytes().count(b"# 2026") == 1
    core.CoreMemory(there.store, "test").replace("User", "Lena, Berlin")
    back(there)
    core.CoreMemory(there.store, "test").replace("User", "Lena, Hamburg")
    there.write("mission = 'a'\n", "ua-memory.toml")
    before = there.log()
    with pytest.raises(Conflict, match="now:    Lena, Hamburg"):
        again(there)
    assert [b.value for b in core.blocks(there.store)] == ["Lena, Hamburg"]
    assert there.log()[-len(before) :] == before


def test_settings_are_not_redone_beside_others(there: Bank) -> None:
    there.write("[recall]\nlimit = 5\n", "ua-memory.toml")
    there.store.adopt()
    there.write("[recall]\nlimit = 5\nmission = 'a'\n", "ua-memory.toml")
    there.store.adopt()
    back(there)
    there.write("[recall]\nlimit = 5\nmission = 'b'\n", "ua-memory.toml")
    there.store.adopt()
    with pytest.raises(Conflict, match="mission = 'b'"):
        again(there)
    assert there.bytes("ua-memory.toml").count(b"mission") == 1


def test_a_hand_edit(there: Bank) -> None:
    there.insert("one")
    there.edit("one", "one, corrected")
    there.insert("two")
    edit = there.store.history.log()[1]
    assert edit.trailer("Memory-Op") == "edit"
    back(there, edit.id)
    assert facts(there) == ["one", "two"]


def test_a_file_s_deletion(there: Bank) -> None:
    there.write("- a\n- b\n", "memory/notes.md")
    there.store.adopt()
    there.path("memory/notes.md").unlink()
    there.store.adopt()
    assert there.ops()[0] == "edit"
    back(there)
    assert there.text("memory/notes.md") == "- a\n- b\n"
    again(there)
    assert not there.path("memory/notes.md").exists()


def test_a_deletion_of_a_file_that_is_there_again(there: Bank) -> None:
    there.write("- a\n", "memory/notes.md")
    there.store.adopt()
    there.path("memory/notes.md").unlink()
    there.store.adopt()
    there.write("- b\n", "memory/notes.md")
    there.store.adopt()
    back(there, there.store.history.log()[1].id)
    assert sorted(facts(there, "memory/notes.md")) == ["a", "b"]


def test_what_a_stale_buffer_was_merged_with(there: Bank) -> None:
    there.write("# Day\n\nmine\n")
    there.store.adopt()
    there.insert("one")
    there.write("# Day\n\nmine, changed\n")  # saved from a buffer that never saw the fact
    there.insert("two", session="x")
    assert "merge" in there.ops()
    assert facts(there) == ["one", "two"]
    merged = next(r for r in there.store.history.log() if r.trailer("Memory-Op") == "merge")
    back(there, merged.id)
    assert facts(there) == ["two"]
    assert "mine, changed" in there.text()


def test_crlf_and_other_bytes_stay(there: Bank) -> None:
    data = b"\xef\xbb\xbf# Day\r\n\r\n- caf\xe9\r\n"
    there.write(data)
    one = there.insert("one")
    there.insert("two", session="x")
    back(there, one.result.revision)
    back(there)
    assert there.bytes() == data


# -- beside later changes ----------------------------------------------------------------------------------


def test_hand_edits_since_are_committed_first_and_kept(there: Bank) -> None:
    one = there.insert("one")
    there.insert("two")
    there.edit("# 2026-11-21", "# 2026-11-21\n\nMy own words.")
    back(there, one.result.revision)
    assert facts(there) == ["two"]
    assert "My own words." in there.text()
    assert there.ops()[:2] == ["undo", "edit"]
    assert there.log()[1][0] == "person"


def test_a_conflict_shows_both_sides_and_writes_nothing(there: Bank) -> None:
    """I43"""
    one = there.insert("the price was 5")
    there.edit("price was 5", "price was 7")
    there.store.adopt()
    before, log = there.bytes(), there.log()
    with pytest.raises(Conflict) as caught:
        back(there, one.result.revision)
    said = str(caught.value)
    assert "1 place was changed again since" in said
    assert f"{DAY}:" in said and "now:    - the price was 7" in said
    assert caught.value.hint
    assert (there.bytes(), there.log()) == (before, log)
    assert there.clean()


def test_both_sides_of_a_conflict(there: Bank) -> None:
    there.write("- a: 1\n")
    there.store.adopt()
    there.write("- a: 2\n")
    there.store.adopt()
    there.write("- a: 3\n")
    there.store.adopt()
    with pytest.raises(Conflict) as caught:
        back(there, there.store.history.log()[1].id)
    assert "now:    - a: 3" in str(caught.value)
    assert "wanted: - a: 1" in str(caught.value)


def test_of_many_files_all_or_none(there: Bank) -> None:
    """I2"""
    there.write("- a\n", "memory/a.md")
    there.write("- b\n", "memory/b.md")
    there.store.adopt()
    both = there.store.history.log(limit=1)[0]
    assert len(both.paths) == 2
    there.edit("- b", "- b, changed", "memory/b.md")
    there.store.adopt()
    before = there.log()
    with pytest.raises(Conflict):
        back(there, both.id)
    assert facts(there, "memory/a.md") == ["a"]
    assert there.log() == before


def test_an_id_is_never_given_again(there: Bank) -> None:
    """I34"""
    ids = []
    for _ in range(4):
        ids.append(there.insert("said").fact.id)
        back(there)
    assert len(set(ids)) == 4


def test_old_words_are_not_redacted_anew(there: Bank) -> None:
    line = "- my token ghp_" + "0123456789abcdefghijABCDEFGHIJ012345\n"
    there.write(line, "memory/notes.md")
    there.store.adopt()
    there.write("- gone\n", "memory/notes.md")
    there.store.adopt()
    back(there)
    assert there.text("memory/notes.md") == line


# -- what is held ------------------------------------------------------------------------------------------


def test_what_disappeared_is_restored(there: Bank) -> None:
    """I7"""
    for n in range(9):
        there.insert(f"fact {n}")
    before = there.bytes()
    there.path().unlink()
    there.path("MEMORY.md").write_text("# Mine\n")
    assert list(there.store.survey().held) == [DAY]
    back(there)
    assert there.bytes() == before
    assert there.text("MEMORY.md") == "# Mine\n"
    assert not there.store.survey().held


def test_what_the_person_added_meanwhile_is_kept(there: Bank) -> None:
    for n in range(9):
        there.insert(f"fact {n}")
    lines = there.text().splitlines(keepends=True)
    reworded = lines[4].replace("fact 0", "fact 0, reworded")
    there.write("".join([*lines[:4], reworded, lines[9], "\nMine.\n\n- my own\n"]))
    assert there.store.survey().held
    back(there)
    assert sorted(facts(there)) == ["fact 0, reworded", *(f"fact {n}" for n in range(1, 9)), "my own"]
    assert "Mine." in there.text()
    assert there.clean()


def whole(bank: Bank) -> dict[str, bytes]:
    return {file.path: bank.bytes(file.path) for file in bank.store.survey().files}


def test_what_rests_on_a_cited_fact_goes_and_comes_back_with_it(there: Bank) -> None:
    gone, card = there.insert("Alice moved the API to Fly.io.").fact, there.insert("Alice pays by card.").fact
    made = there.store.history.log()[1].id
    alone = believe(there, "Alice left Heroku.", (gone, "Alice moved the API"))
    both = believe(there, "Alice pays by card, always.", (gone, "moved the API"), (card, "pays by card"))
    opinion = opine(there, "Alice likes to move.", there.find(card.id), gone)
    by_machine(there, f"The API moved away. {link(gone)} By card. {link(card)}\n")
    was = whole(there)
    done = BankHistory(there.store, "test").undo(made)
    left = b"".join(whole(there).values()).decode()
    assert alone.text not in left and both.text in left and "moved the API" not in left
    assert "moved away" not in left and "By card." in left and opinion in left
    assert (
        "what depended on it was removed or revised too: 1 observation, 1 sentence; 2 revised"
        in done.result.notes[0]
    )
    assert not [each for each in Memory(there.store).health.verify() if each.path != PAGE]
    BankHistory(there.store, "test").redo()
    assert whole(there) == was


# -- what would change ---------------------------------------------------------------------------------------


def planned(bank: Bank, revision: str | None = None) -> UndoPlan:
    """The plan; nothing was written for it."""
    before, head = bank.bytes(), bank.store.history.head()
    found = BankHistory(bank.store, "test").plan_undo(revision)
    assert (bank.bytes(), bank.store.history.head()) == (before, head)
    return found


def test_a_plan_says_what_would_change_against_now(there: Bank) -> None:
    one = there.insert("one")
    there.insert("two")
    found = planned(there, one.result.revision)
    assert (found.op, found.revision.id, found.conflicts) == ("undo", one.result.revision, ())
    (gone,) = found.changes
    assert (gone.path, gone.line, gone.record, gone.id) == (DAY, one.fact.place.line, "fact", one.fact.id)
    assert (gone.before, gone.after) == (f"- one ^{one.fact.id}", None)
    back(there, one.result.revision)
    (again,) = BankHistory(there.store, "test").plan_redo().changes
    assert (again.before, again.after) == (None, f"- one ^{one.fact.id}")
    assert again.id == one.fact.id


def test_a_plan_shows_both_sides_of_a_conflict_and_no_secret(there: Bank) -> None:
    secret = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    one = there.insert("the port is 80")
    there.edit("80", f"81, {secret}")
    found = planned(there, one.result.revision)
    (sides,) = found.conflicts
    assert found.changes == () and sides.path == DAY
    assert "the port is 81" in sides.now and secret not in sides.now and sides.wanted == ""
    with pytest.raises(Conflict):
        back(there, one.result.revision)


def test_a_plan_of_an_undo_that_brings_back_what_was_forgotten_shows_it(there: Bank) -> None:
    one = there.insert("Erik owes Alice 40 euros")
    with Memory.open(there.store.bank.root, now=there.clock) as memory:
        memory.forget(f"^{one.fact.id}")
        (back_again,) = memory.history.plan_undo().changes
        assert back_again.after == f"- Erik owes Alice 40 euros ^{one.fact.id}"
        memory.history.undo()
        (goes_again,) = memory.history.plan_redo().changes
        assert (goes_again.before, goes_again.after) == (back_again.after, None)
        memory.history.redo()
        # of the revision that had it, nothing is told as long as it is forgotten
        assert memory.history.changes(one.result.revision) == []


def test_what_was_forgotten_again_since_is_not_forgotten_twice(there: Bank) -> None:
    one = there.insert("Erik owes Alice 40 euros")
    with Memory.open(there.store.bank.root, now=there.clock) as memory:
        memory.forget(f"^{one.fact.id}")
        memory.history.undo()
        memory.forget(f"^{one.fact.id}")
        with pytest.raises(Conflict, match="nothing is left to redo"):
            memory.history.redo()
        assert not memory.health.verify()
        memory.history.undo()
        assert "Erik owes" in there.bytes().decode()


def test_what_a_revision_changed_by_statement(there: Bank) -> None:
    there.write("- tea is green\n- boards are oak\n\n## Notes\n\nProse.\n")
    there.store.adopt()
    first = there.store.history.head()
    one = there.insert("the port is 80", tags=("infra",))
    there.edit("80", "81")
    there.edit("oak", "pine")
    there.edit("- tea is green\n", "- tea is cold\n")
    there.edit("- boards", "- a new one\n- boards")
    there.edit("Prose.", "Other prose.")
    uncommitted = list(audit.changes(there.store))
    there.store.adopt()
    found = list(audit.changes(there.store, "HEAD"))
    assert found == uncommitted
    told = [(one.record, one.id, one.before, one.after) for one in found]
    assert sorted(told, key=str) == sorted([
        ("fact", one.fact.id, f"- the port is 80 #infra ^{one.fact.id}",
         f"- the port is 81 #infra ^{one.fact.id}"),
        ("fact", None, "- tea is green", "- tea is cold"),
        ("fact", None, None, "- a new one"),
        ("fact", None, "- boards are oak", "- boards are pine"),
        ("passage", None, "Prose.", "Other prose."),
    ], key=str)  # fmt: skip
    added = [(one.record, one.before) for one in audit.changes(there.store, first)]
    assert added == [("fact", None), ("fact", None), ("passage", None)]
    # a line that is only moved, or given an id, is no other statement
    there.edit("- boards are pine\n", "")
    there.write(there.text() + "\n- boards are pine ^myown\n")
    (given,) = audit.changes(there.store)
    assert (given.id, given.before, given.after) == ("myown", "- boards are pine", "- boards are pine ^myown")


def test_a_block_of_core_memory_and_the_settings_are_told_once(there: Bank) -> None:
    there.write("# Core\n\n## Me\n\nlikes tea\n", "MEMORY.md")
    there.store.adopt()
    there.edit("tea", "green tea", "MEMORY.md")
    there.write(there.text("ua-memory.toml") + "\n[search]\nlimit = 7\n", "ua-memory.toml")
    block, settings = audit.changes(there.store)
    assert (block.record, block.before, block.after) == (
        "core", "## Me\n\nlikes tea", "## Me\n\nlikes green tea",
    )  # fmt: skip
    assert settings.record == "settings" and settings.after and settings.after.endswith("limit = 7\n")
