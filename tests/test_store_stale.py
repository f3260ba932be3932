"""A save from an old buffer is merged once; dropping the same again stands (I8)."""

from __future__ import annotations

from pathlib import Path

import pytest
from kill_points import whole
from store_banks import DAY, first_author, in_trail, insert, make, name_person, on_disk, open_again, write

from ua_memory.knowledge import core, tombstones
from ua_memory.knowledge.tombstones import Removal
from ua_memory.memory import Memory
from ua_memory.store.store import Store
from ua_memory.upkeep import undo


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make(tmp_path / "b")


def buffer(store: Store, path: str = DAY) -> str:
    return (store.bank.root / path).read_bytes().decode()


def test_facts_that_an_old_buffer_lacks_are_put_back(store: Store) -> None:
    insert(store, "first")
    old = buffer(store)
    insert(store, "second")
    insert(store, "third")
    write(store, DAY, old + "- by hand\n")
    store.adopt()
    assert sorted(on_disk(store)) == ["by hand", "first", "second", "third"]
    newest, edit = store.history.log([DAY], limit=2)
    assert (newest.author, newest.trailer("Memory-Op")) == ("ua-memory", "merge")
    assert len(newest.trailers["Facts"]) == 2
    assert (edit.author, edit.trailer("Memory-Op")) == ("Ann", "edit")
    assert first_author(store, "by hand") == "Ann"
    whole(store)


def test_dropping_them_again_stands(store: Store) -> None:
    insert(store, "first")
    old = buffer(store)
    insert(store, "second")
    write(store, DAY, old)
    store.adopt()
    write(store, DAY, old)
    insert(store, "third")
    assert on_disk(store) == in_trail(store) == ["first", "third"]
    whole(store)


def test_a_buffer_that_was_never_read_again_is_no_answer(store: Store) -> None:
    """What is put back comes along with a new fact: a save that lacks that too has not seen it."""
    insert(store, "first")
    old = buffer(store)
    for n in range(5):
        insert(store, f"fact {n}")
        old += f"- by hand {n}\n"
        write(store, DAY, old)
    insert(store, "last")
    expected = ["first", "last", *(f"fact {n}" for n in range(5)), *(f"by hand {n}" for n in range(5))]
    assert sorted(on_disk(store)) == sorted(expected)
    seen = buffer(store)
    write(store, DAY, "".join(line for line in seen.splitlines(keepends=True) if "fact 3" not in line))
    store.adopt()
    assert sorted(on_disk(store)) == sorted(set(expected) - {"fact 3"}), "now it is an answer"
    whole(store)


def test_many_put_back_are_remembered_by_name(store: Store) -> None:
    insert(store, "first")
    old = buffer(store)
    with store.revision("insert", door="test") as draft:
        lines = "".join(f"- fact {n} ^{n:010d}\n".replace("0", "a").replace("1", "b") for n in range(60))
        draft.write(DAY, draft.read(DAY) + lines.translate(str.maketrans("89", "xy")).encode(), restored=True)
    count = len(on_disk(store))
    write(store, DAY, old)
    store.adopt()
    assert len(on_disk(store)) == count
    write(store, DAY, old)
    store.adopt()
    assert store.survey().held, "not stale a second time; but so many at once wait for a yes"
    store.adopt(accept=True)
    assert on_disk(store) == ["first"]


def test_an_old_buffer_beside_an_insert(store: Store) -> None:
    insert(store, "first")
    old = buffer(store)
    insert(store, "second")
    write(store, DAY, old + "- by hand\n")
    insert(store, "third")
    assert sorted(on_disk(store)) == sorted(in_trail(store)) == ["by hand", "first", "second", "third"]
    assert [r.trailer("Memory-Op") for r in store.history.log(limit=3)] == ["insert", "merge", "edit"]
    whole(store)


def test_what_a_person_wrote_and_took_away_is_gone(store: Store) -> None:
    insert(store, "first")
    old = buffer(store)
    write(store, DAY, old + "- by hand\n")
    store.adopt()
    write(store, DAY, old)
    store.adopt()
    assert on_disk(store) == ["first"]


def test_one_of_two_new_facts_taken_away_is_a_wish(store: Store) -> None:
    for text in ("first", "second", "third"):
        insert(store, text)
    text = buffer(store)
    write(store, DAY, "".join(line for line in text.splitlines(keepends=True) if "second" not in line))
    store.adopt()
    assert on_disk(store) == ["first", "third"]


def test_more_than_a_few_from_an_old_buffer_are_put_back_and_not_held(store: Store) -> None:
    insert(store, "first")
    old = buffer(store)
    for n in range(9):
        insert(store, f"fact {n}")
    write(store, DAY, old)
    assert not store.survey().held
    store.adopt()
    assert len(on_disk(store)) == 10


def test_a_block_of_core_memory_that_an_old_buffer_has_is_not_put_back_in_place(store: Store) -> None:
    core.CoreMemory(store, "test").replace("User", "old value")
    core.CoreMemory(store, "test").replace("Project", "stays")
    path = core.core_path(store)
    old = buffer(store, path)
    core.CoreMemory(store, "test").replace("User", "new value")
    write(store, path, old.replace("stays", "stays, by hand"))
    store.adopt()
    assert {b.name: b.value for b in core.blocks(store)} == {"User": "new value", "Project": "stays, by hand"}
    write(store, path, old)
    store.adopt()
    assert core.CoreMemory(store, "test").get("User").value == "old value"
    whole(store)


@pytest.mark.parametrize("before", [[], ["Water the trees on Friday.\nPrune in May."]])
def test_a_block_that_a_person_corrects_is_no_old_buffer(store: Store, before: list[str]) -> None:
    for value in [*before, "Water the trees on Monday.\nPrune in March."]:
        core.CoreMemory(store, "test").replace("Plan", value)
    path = core.core_path(store)
    write(store, path, buffer(store, path).replace("March", "April"))
    core.CoreMemory(store, "test").replace("Other", "a block")
    assert [(b.name, b.value) for b in core.blocks(store)] == [
        ("Plan", "Water the trees on Monday.\nPrune in April."),
        ("Other", "a block"),
    ]
    whole(store)


def test_a_buffer_read_in_the_moment_of_writing_loses_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between our exchange and the merge of a save that came just before, the file lacks that save."""
    from ua_memory.store import commit as store_commit
    from ua_memory.store import swap

    insert(store, "first")
    old, enter, came_out, seen = buffer(store), swap.swap_in, swap.swapped_out, []

    def saved(file: Path, out: Path) -> None:
        monkeypatch.setattr(swap, "swap_in", enter)
        write(store, DAY, old + "- by hand\n")
        enter(file, out)

    def read(file: Path, out: Path) -> bytes | None:
        seen.append(buffer(store))
        return came_out(file, out)

    monkeypatch.setattr(swap, "swap_in", saved)
    monkeypatch.setattr(store_commit.swap, "swapped_out", read)
    insert(store, "second")
    monkeypatch.undo()
    assert "by hand" not in seen[0] and "second" in seen[0]
    insert(store, "third")
    write(store, DAY, seen[0] + "- by hand later\n")
    store.adopt()
    assert sorted(on_disk(store)) == ["by hand", "by hand later", "first", "second", "third"]
    whole(store)


def test_a_save_on_top_of_ours_while_another_is_merged(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second save was made from what we had put in place: it is the person's, after ours."""
    from ua_memory.store import commit as store_commit
    from ua_memory.store import swap

    insert(store, "first")
    old, enter, came_out, shown = buffer(store), swap.swap_in, swap.swapped_out, []

    def saved(file: Path, out: Path) -> None:
        monkeypatch.setattr(swap, "swap_in", enter)
        write(store, DAY, old + "- by hand\n")
        enter(file, out)

    def read(file: Path, out: Path) -> bytes | None:
        shown.append(buffer(store))
        if len(shown) == 1:
            write(store, DAY, shown[0] + "- on top\n")
        return came_out(file, out)

    monkeypatch.setattr(swap, "swap_in", saved)
    monkeypatch.setattr(store_commit.swap, "swapped_out", read)
    insert(store, "second")
    monkeypatch.undo()
    assert len(shown) == 3
    assert sorted(on_disk(store)) == sorted(in_trail(store)) == ["by hand", "first", "on top", "second"]
    authors = {t: first_author(store, t) for t in ("by hand", "on top", "second")}
    assert authors == {"by hand": "Ann", "on top": "Ann", "second": "ua-memory"}
    whole(store)
    write(store, DAY, shown[1] + "- later\n")
    store.adopt()
    assert {"by hand", "first", "on top", "second", "later"} == set(on_disk(store))


def test_a_save_in_the_moment_of_writing_is_judged_like_any_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ua_memory.store import swap

    insert(store, "first")
    old = buffer(store)
    insert(store, "second")
    enter = swap.swap_in

    def saved(file: Path, out: Path) -> None:
        monkeypatch.undo()
        write(store, DAY, old + "- by hand\n")
        enter(file, out)

    monkeypatch.setattr(swap, "swap_in", saved)
    insert(store, "third")
    assert sorted(on_disk(store)) == sorted(in_trail(store)) == ["by hand", "first", "second", "third"]
    assert [r.trailer("Memory-Op") for r in store.history.log(limit=3)] == ["insert", "merge", "edit"]
    assert first_author(store, "third") == "ua-memory"
    assert first_author(store, "by hand") == "Ann"
    whole(store)


# -- whoever wrote since ---------------------------------------------------------------------------------


def authors(store: Store, path: str = DAY) -> dict[str, str]:
    """{fact: whose the line is}"""
    lines = store.history.blame(path, store.read(path))
    return {line.text[2:].partition(" ^")[0]: line.author for line in lines if line.text.startswith("- ")}


def between(store: Store) -> str:
    """A buffer, and a person's line between two facts that came after it."""
    insert(store, "base")
    old = buffer(store)
    insert(store, "The invoice address is Elm Street 5")
    write(store, DAY, buffer(store) + "- P: mine\n")
    insert(store, "Y")
    return old


@pytest.mark.parametrize("again", [False, True], ids=["one process", "another process"])
def test_a_persons_line_that_was_never_committed_and_that_a_search_has_seen(
    store: Store, again: bool
) -> None:
    insert(store, "base")
    old = buffer(store)
    insert(store, "said by a machine")
    write(store, DAY, buffer(store) + "- P: never committed\n")
    store.adopt(quiet=3600)
    assert "P: never committed" not in in_trail(store)
    store = open_again(store.bank.root) if again else store
    write(store, DAY, old + "- mine\n")
    (note,) = store.adopt(quiet=3600).notes
    assert "1 fact and 1 line of yours restored" in note and "“P: never committed”" in note
    assert "may have been saved from an old copy" in note and "delete them again" in note
    assert sorted(on_disk(store)) == sorted(in_trail(store))
    assert authors(store) == {
        "base": "ua-memory", "said by a machine": "ua-memory", "mine": "Ann", "P: never committed": "Ann",
    }  # fmt: skip
    whole(store)
    write(store, DAY, old + "- mine\n")
    assert store.adopt().notes == ()
    assert sorted(on_disk(store)) == ["base", "mine"]


def test_what_a_person_wrote_and_took_away_before_it_was_committed_stays_away(store: Store) -> None:
    insert(store, "base")
    insert(store, "said by a machine")
    then = buffer(store)
    write(store, DAY, then + "- not after all\n")
    store.adopt(quiet=3600)
    write(store, DAY, then + "- this instead\n")
    assert store.adopt(quiet=3600).notes == ()
    insert(store, "more")
    assert sorted(on_disk(store)) == ["base", "more", "said by a machine", "this instead"]


def test_an_edit_that_was_taken_back_is_none_that_was_never_committed(store: Store) -> None:
    insert(store, "base")
    old = buffer(store)
    insert(store, "said by a machine")
    write(store, DAY, buffer(store) + "- a mistake\n")
    store.adopt(quiet=3600)
    store.adopt()
    undo.BankHistory(store, "test").undo(store.history.log(limit=1)[0].id)
    assert sorted(on_disk(store)) == ["base", "said by a machine"]
    write(store, DAY, old + "- mine\n")
    store.adopt()
    assert sorted(on_disk(store)) == ["base", "mine", "said by a machine"]


def test_every_line_of_a_block_that_was_put_back_is_named(store: Store) -> None:
    core.CoreMemory(store, "test").replace("Me", "tea")
    old = buffer(store, "MEMORY.md")
    core.CoreMemory(store, "test").replace("Work", "Fly\nby train")
    write(store, "MEMORY.md", buffer(store, "MEMORY.md") + "a sentence of mine\n")
    core.CoreMemory(store, "test").replace("Place", "Graz")
    write(store, "MEMORY.md", old + "on the old one\n")
    (note,) = store.adopt().notes
    assert "5 lines and 1 line of yours restored" in note
    every = ("## Work", "Fly", "by train", "a sentence of mine", "## Place", "Graz")
    assert all(f"“{line}”" in note for line in every)
    assert "fact" not in store.history.log(limit=1)[0].subject
    whole(store)


@pytest.mark.parametrize("more", ["", "- mine\n"], ids=["unchanged", "with a line"])
def test_a_persons_line_between_facts_hides_no_old_buffer(store: Store, more: str) -> None:
    old = between(store)
    write(store, DAY, old + more)
    (note,) = store.adopt().notes
    every = ["base", "The invoice address is Elm Street 5", "P: mine", "Y", *(["mine"] if more else [])]
    assert sorted(on_disk(store)) == sorted(in_trail(store)) == sorted(every)
    assert "2 facts and 1 line of yours restored" in note
    assert all(f"“{text}”" in note for text in every[1:4]) and "base" not in note
    assert authors(store) == {text: "Ann" if "mine" in text else "ua-memory" for text in every}
    whole(store)
    write(store, DAY, old + more)
    assert store.adopt().notes == ()
    assert on_disk(store) == ["base", *(["mine"] if more else [])], "dropped again: it is meant"
    whole(store)


def test_what_an_old_buffers_owner_took_away_stays_gone(store: Store) -> None:
    for n in range(6):
        insert(store, f"old {n}")
    old = buffer(store)
    for n in range(2):
        write(store, DAY, buffer(store) + f"- by hand {n}\n")
        insert(store, f"new {n}")
    kept = [line for line in old.splitlines(keepends=True) if "old 2" not in line and "old 4" not in line]
    write(store, DAY, "".join(kept) + "- mine\n")
    store.adopt()
    expected = ["old 0", "old 1", "old 3", "old 5", "new 0", "new 1", "by hand 0", "by hand 1", "mine"]
    assert sorted(on_disk(store)) == sorted(expected)
    whole(store)


def test_what_came_after_a_persons_own_lines_alone_is_theirs_to_take_away(store: Store) -> None:
    """Deleting facts of the day is no old buffer, where the line that was written after them is there."""
    for text in ("a", "b", "c"):
        insert(store, text)
    write(store, DAY, buffer(store) + "- by hand\n")
    insert(store, "d")
    write(
        store,
        DAY,
        "".join(row for row in buffer(store).splitlines(keepends=True) if row[:4] not in ("- b ", "- c ")),
    )
    assert store.adopt().notes == ()
    assert on_disk(store) == ["a", "by hand", "d"]


def test_a_second_editor_takes_no_line_of_the_first(store: Store) -> None:
    """Nothing of ours came between the two."""
    insert(store, "base")
    old = buffer(store)
    write(store, DAY, old + "- of the first editor\n")
    store.adopt()
    write(store, DAY, old + "- of the second\n")
    assert "“of the first editor”" in store.adopt().notes[0]
    assert sorted(on_disk(store)) == ["base", "of the first editor", "of the second"]
    assert authors(store)["of the first editor"] == "Ann"
    write(store, DAY, old + "- of the second\n")
    assert store.adopt().notes == () and sorted(on_disk(store)) == ["base", "of the second"]


def test_an_editor_that_never_reads_again_drops_nothing_for_good(store: Store) -> None:
    """Each save goes on from the one before, and what was put back came alone: it has not been seen."""
    old = between(store)
    for n in range(4):
        old += f"- mine {n}\n"
        write(store, DAY, old)
        assert "restored" in store.adopt().notes[0]
    expected = [
        "base",
        "The invoice address is Elm Street 5",
        "P: mine",
        "Y",
        *(f"mine {n}" for n in range(4)),
    ]
    assert sorted(on_disk(store)) == sorted(expected)
    whole(store)


def test_two_editors_that_never_read_again(store: Store) -> None:
    insert(store, "first")
    one = two = buffer(store)
    for n in range(4):
        one += f"- hers {n}\n"
        write(store, DAY, one)
        insert(store, f"fact {n}")
        two += f"- his {n}\n"
        write(store, DAY, two)
        insert(store, f"fact {n} again")
    kinds = ("fact {}", "fact {} again", "hers {}", "his {}")
    expected = ["first", *(kind.format(n) for kind in kinds for n in range(4))]
    assert sorted(on_disk(store)) == sorted(in_trail(store)) == sorted(expected)
    assert {author for text, author in authors(store).items() if text[:3] in ("her", "his")} == {"Ann"}
    whole(store)


def test_what_was_undone_does_not_come_back_with_an_old_buffer(store: Store) -> None:
    insert(store, "first")
    insert(store, "wrong")
    old = buffer(store)
    undo.BankHistory(store, "test").undo()
    insert(store, "right")
    write(store, DAY, old + "- mine\n")
    store.adopt()
    assert sorted(on_disk(store)) == ["first", "mine", "right"]
    whole(store)


def forget(store: Store, block: str, text: str) -> None:
    with store.revision("forget", door="test") as draft:
        lines = [row for row in draft.read(DAY).splitlines(keepends=True) if f"^{block}".encode() not in row]
        draft.write(DAY, b"".join(lines), restored=True)
        tombstones.add(store, draft, [Removal(block, text)], "2026-11-21")


@pytest.mark.parametrize("reworded", [False, True])
def test_what_was_forgotten_comes_back_with_no_buffer(store: Store, reworded: bool) -> None:
    insert(store, "first")
    gone = insert(store, "to be forgotten")
    old = buffer(store).replace("to be", "to have been" if reworded else "to be")
    forget(store, str(gone.id), gone.text)
    head = store.history.head()
    for n in range(3):
        old += f"- mine {n}\n"
        write(store, DAY, old)
        (note,) = [note for note in store.adopt().notes if "forgotten" in note]
        assert f"^{gone.id}" in note
    write(store, DAY, old)
    insert(store, "second")
    assert (
        sorted(on_disk(store)) == sorted(in_trail(store)) == ["first", "mine 0", "mine 1", "mine 2", "second"]
    )
    since = store.history.run("log", "-p", "--format=", f"{head}..HEAD").decode()
    assert f"+- {gone.text}" not in since and "forgotten" not in since, "nor into the trail once more"
    write(store, DAY, buffer(store) + f"- {gone.text} ^{gone.id}\n")
    store.adopt()
    assert gone.text not in on_disk(store)
    whole(store)


def test_what_an_old_buffer_lacks_is_found_at_once(tmp_path: Path) -> None:
    """However young the save is (I52)."""
    name_person()
    there = make(tmp_path / "b")
    with Memory.open(there.bank.root, now=there.now, door="test") as memory:
        old = between(memory.store)
        write(memory.store, DAY, old + "- mine\n")
        assert memory.search("invoice address").hits[0].item.text == "The invoice address is Elm Street 5"
        write(memory.store, DAY, buffer(memory.store) + "- young\n")
        memory.search("young")
        assert "young" not in in_trail(memory.store), "an ordinary edit waits until it is left alone"
