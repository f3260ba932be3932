"""A save from an old buffer is merged once; dropping the same again stands (I8)."""

from __future__ import annotations

from pathlib import Path

import pytest
from killing import whole
from truth import DAY, first_author, in_trail, insert, make, on_disk, write

from ua_memory import core
from ua_memory.store import Store


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
    core.replace(store, "User", "old value", door="test")
    core.replace(store, "Project", "stays", door="test")
    path = core.core_path(store)
    old = buffer(store, path)
    core.replace(store, "User", "new value", door="test")
    write(store, path, old.replace("stays", "stays, by hand"))
    store.adopt()
    assert {b.name: b.value for b in core.blocks(store)} == {"User": "new value", "Project": "stays, by hand"}
    write(store, path, old)
    store.adopt()
    assert core.block(store, "User").value == "old value"
    whole(store)


@pytest.mark.parametrize("before", [[], ["Water the trees on Friday.\nPrune in May."]])
def test_a_block_that_a_person_corrects_is_no_old_buffer(store: Store, before: list[str]) -> None:
    for value in [*before, "Water the trees on Monday.\nPrune in March."]:
        core.replace(store, "Plan", value, door="test")
    path = core.core_path(store)
    write(store, path, buffer(store, path).replace("March", "April"))
    core.replace(store, "Other", "a block", door="test")
    assert [(b.name, b.value) for b in core.blocks(store)] == [
        ("Plan", "Water the trees on Monday.\nPrune in April."),
        ("Other", "a block"),
    ]
    whole(store)


def test_a_buffer_read_in_the_moment_of_writing_loses_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between our exchange and the merge of a save that came just before, the file lacks that save."""
    from ua_memory.store import landing, swap

    insert(store, "first")
    old, enter, came_out, seen = buffer(store), swap.enter, swap.came_out, []

    def saved(file: Path, out: Path) -> None:
        monkeypatch.setattr(swap, "enter", enter)
        write(store, DAY, old + "- by hand\n")
        enter(file, out)

    def read(file: Path, out: Path) -> bytes | None:
        seen.append(buffer(store))
        return came_out(file, out)

    monkeypatch.setattr(swap, "enter", saved)
    monkeypatch.setattr(landing.swap, "came_out", read)
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
    from ua_memory.store import landing, swap

    insert(store, "first")
    old, enter, came_out, shown = buffer(store), swap.enter, swap.came_out, []

    def saved(file: Path, out: Path) -> None:
        monkeypatch.setattr(swap, "enter", enter)
        write(store, DAY, old + "- by hand\n")
        enter(file, out)

    def read(file: Path, out: Path) -> bytes | None:
        shown.append(buffer(store))
        if len(shown) == 1:
            write(store, DAY, shown[0] + "- on top\n")
        return came_out(file, out)

    monkeypatch.setattr(swap, "enter", saved)
    monkeypatch.setattr(landing.swap, "came_out", read)
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
    enter = swap.enter

    def saved(file: Path, out: Path) -> None:
        monkeypatch.undo()
        write(store, DAY, old + "- by hand\n")
        enter(file, out)

    monkeypatch.setattr(swap, "enter", saved)
    insert(store, "third")
    assert sorted(on_disk(store)) == sorted(in_trail(store)) == ["by hand", "first", "second", "third"]
    assert [r.trailer("Memory-Op") for r in store.history.log(limit=3)] == ["insert", "merge", "edit"]
    assert first_author(store, "third") == "ua-memory"
    assert first_author(store, "by hand") == "Ann"
    whole(store)
