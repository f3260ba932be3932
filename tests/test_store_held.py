"""The disappearance of more than a few facts at once waits for a yes (I7)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kill_points import whole
from store_banks import DAY, copied, git, in_trail, insert, make, name_person, on_disk, open_again, write

from ua_memory.knowledge import core, statements
from ua_memory.store import draft
from ua_memory.store.store import Store
from ua_memory.upkeep import undo

OTHER = "memory/2026-11-20.md"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A bank with ten facts of ours in one file, and ten lines of a person in another."""

    def fill(root: Path) -> None:
        store = make(root)
        for n in range(10):
            insert(store, f"fact {n}")
        write(store, OTHER, "".join(f"- line {n}\n" for n in range(10)))
        store.adopt()

    name_person()
    copied(tmp_path / "b", "held", fill)
    return open_again(tmp_path / "b")


def lines(store: Store, path: str = DAY) -> list[str]:
    return (store.bank.root / path).read_text().splitlines(keepends=True)


def test_a_few_may_go(store: Store) -> None:
    write(store, OTHER, "".join(lines(store, OTHER)[5:]))
    store.adopt()
    assert len(on_disk(store, OTHER)) == 5
    assert not store.survey().changed


@pytest.mark.parametrize("how", ["lines", "emptied", "deleted", "link", "folder"])
def test_many_at_once_are_held_and_searched_from_the_trail(how: str, store: Store) -> None:
    file, kept = store.bank.root / DAY, store.read(DAY)
    block = statements.find(store, str(statements.find(store, _id(store)).id))
    if how == "lines":
        write(store, DAY, "".join(lines(store)[:4]))
    elif how == "emptied":
        file.write_bytes(b"")
    elif how == "folder":
        shutil.rmtree(file.parent)
    else:
        file.unlink()
    if how == "link":
        (store.bank.root / "elsewhere.md").write_text("- other\n")
        file.symlink_to(store.bank.root / "elsewhere.md")
    seen = store.survey()
    assert DAY in seen.held and (OTHER in seen.held) == (how == "folder")
    assert DAY in {f.path for f in seen.files}
    assert store.accepted_bytes(DAY) == kept
    store.adopt()
    assert DAY in store.survey().held, "adopting alone is no yes"
    assert statements.find(store, str(block.id)).text == block.text
    assert in_trail(store) == [f"fact {n}" for n in range(10)]


def test_an_id_that_notes_share_is_gone_in_each_of_them(store: Store) -> None:
    """I35"""
    for n in range(10):
        write(store, f"memory/trip {n}.md", f"- trip {n} costs {n}000 ^budget\n")
    store.adopt()
    write(store, "memory/trip 0.md", "- trip 0 costs 0000 ^budget\n- and a little more\n")
    for n in range(1, 10):
        write(store, f"memory/trip {n}.md", "- nothing\n")
    assert set(store.survey().held) == {f"memory/trip {n}.md" for n in range(1, 10)}


def test_a_note_with_ids_that_notes_share_may_be_renamed(store: Store) -> None:
    rows = [f"- item {n} costs {n}000 ^item-{n}\n" for n in range(10)]
    write(store, "memory/trip.md", "".join(rows))
    store.adopt()
    (store.bank.root / "memory/trip.md").rename(store.bank.root / "memory/journey.md")
    assert not store.survey().held


def _id(store: Store) -> str:
    from ua_memory.markdown import document as markdown
    from ua_memory.records import Fact

    return str(markdown.parse(store.read(DAY), DAY).of(Fact)[5].id)


def test_a_yes_makes_it_stand(store: Store) -> None:
    (store.bank.root / DAY).unlink()
    store.adopt(accept=True)
    assert not store.survey().changed and in_trail(store) == []
    assert store.history.log(limit=1)[0].author == "Ann"
    insert(store, "new")
    assert on_disk(store) == ["new"]
    whole(store)


def test_undo_restores_it_with_what_was_added(store: Store) -> None:
    write(store, DAY, "".join(lines(store)[:4]) + "- by hand\n")
    undo.BankHistory(store, "test").undo(None)
    store.adopt()
    assert sorted(on_disk(store)) == sorted(["by hand", *(f"fact {n}" for n in range(10))])
    assert not store.survey().held
    whole(store)


def test_the_whole_memory_and_its_settings_come_back(store: Store) -> None:
    core.CoreMemory(store, "test").replace("User", "value")
    before = {f.path: store.read(f.path) for f in store.files()}
    shutil.rmtree(store.bank.root / "memory")
    for name in ("MEMORY.md", "ua-memory.toml"):
        (store.bank.root / name).unlink()
    assert set(store.survey().held) == set(before)
    assert core.CoreMemory(store, "test").get("User").value == "value"
    undo.BankHistory(store, "test").undo(None)
    assert {f.path: store.read(f.path) for f in store.files()} == before
    whole(store)


def test_an_insert_into_a_held_file_works_and_keeps_the_hold(store: Store) -> None:
    write(store, DAY, "".join(lines(store)[:4]))
    insert(store, "new")
    assert on_disk(store)[-1] == "new"
    assert in_trail(store) == [*(f"fact {n}" for n in range(10)), "new"]
    assert DAY in store.survey().held
    insert(store, "newer")
    assert DAY in store.survey().held
    undo.BankHistory(store, "test").undo(None)
    assert sorted(on_disk(store)) == sorted([*(f"fact {n}" for n in range(10)), "new", "newer"])
    whole(store)


def test_an_insert_into_a_deleted_file_keeps_the_hold(store: Store) -> None:
    (store.bank.root / DAY).unlink()
    insert(store, "new")
    assert on_disk(store) == ["new"]
    assert set(in_trail(store)) == {*(f"fact {n}" for n in range(10)), "new"}
    assert DAY in store.survey().held
    assert {r.author for r in store.history.log([DAY])} == {"ua-memory"}


def test_facts_that_moved_are_not_gone(store: Store) -> None:
    (store.bank.root / DAY).rename(store.bank.root / "memory/moved.md")
    assert not store.survey().held
    insert(store, "new")
    assert on_disk(store) == ["new"]
    store.adopt()
    assert len(on_disk(store, "memory/moved.md")) == 10
    whole(store)


def test_rewording_many_lines_of_ones_own_is_no_disappearance(store: Store) -> None:
    write(store, OTHER, "".join(f"- reworded {n}\n" for n in range(10)))
    assert not store.survey().held
    store.adopt()
    assert len(on_disk(store, OTHER)) == 10


def test_new_lines_do_not_make_up_for_facts_with_ids(store: Store) -> None:
    write(store, DAY, "".join(lines(store)[:4]) + "".join(f"- reworded {n}\n" for n in range(10)))
    assert DAY in store.survey().held


def test_ids_that_were_taken_off_are_no_disappearance(store: Store) -> None:
    import re

    write(store, DAY, re.sub(r" \^\w{10}", "", "".join(lines(store))))
    assert not store.survey().held


def test_a_few_from_each_of_many_files_are_many(store: Store) -> None:
    for day in range(1, 5):
        write(store, f"memory/2026-10-0{day}.md", "".join(f"- {day}/{n}\n" for n in range(4)))
    store.adopt()
    for day in range(1, 5):
        write(store, f"memory/2026-10-0{day}.md", "- 0\n")
    assert len(store.survey().held) == 4
    with store.revision("test", door="test") as draft:
        assert draft.read("memory/2026-10-01.md") == b"- 0\n"
    assert len(store.survey().held) == 4, "looking at one of them alone is no yes"


def test_a_branch_switch_that_takes_the_files_is_held(store: Store) -> None:
    git(store.bank.root, "stash", "--quiet", "--include-untracked", ok=False)
    git(store.bank.root, "rm", "-q", "-r", "--cached", "memory")
    shutil.rmtree(store.bank.root / "memory")
    assert DAY in open_again(store.bank.root).survey().held


@pytest.mark.parametrize("kept", [0, 4])
def test_a_file_read_half_written_is_no_disappearance(
    store: Store, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor kept waiting in the midst of a write, and done soon after: the rest is not deleted."""
    content = store.read(DAY) + b"- by hand\n"
    write(store, DAY, content.decode())
    read, half = draft.read, [b"".join(content.splitlines(keepends=True)[:kept])]
    monkeypatch.setattr(draft, "read", lambda *of, **how: half.pop() if half else read(*of, **how))
    insert(store, "new")
    store.adopt()
    assert on_disk(store) == in_trail(store) == [*(f"fact {n}" for n in range(10)), "by hand", "new"]
    whole(store)
