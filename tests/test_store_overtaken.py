"""An editor reads the file in the midst of a write of ours, and saves later: none of its lines goes (I3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from killing import whole
from truth import DAY, first_author, in_trail, insert, make, on_disk, write

from ua_memory.store import Store, swap

Moment = tuple[str, int]
"""Before or after the nth exchange of a revision."""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make(tmp_path / "b")


class Editor:
    """Reads the file and saves it with one line more, as one person does, one after the other."""

    def __init__(self, store: Store) -> None:
        self.store, self.buffer, self.lines = store, "", list[str]()

    def read(self) -> None:
        self.buffer = (self.store.bank.root / DAY).read_text()

    def save(self, kind: str = "- ") -> None:
        line = f"by hand {len(self.lines)}"
        self.lines.append(line)
        self.buffer += f"{kind}{line}\n"
        write(self.store, DAY, self.buffer)

    def on_top(self) -> None:
        """Goes on from what stands there now."""
        self.read()
        self.save()


def amid(script: Mapping[Moment, Callable[[], None]], work: Callable[[], object]) -> None:
    """Do the work with the script carried out around its exchanges."""
    enter, count = swap.enter, 0

    def entered(file: Path, out: Path) -> None:
        nonlocal count
        number, count = count, count + 1
        script.get(("before", number), lambda: None)()
        enter(file, out)
        script.get(("after", number), lambda: None)()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swap, "enter", entered)
        work()
    assert {number for _, number in script} <= {*range(count)}, "all of the script was carried out"


def all_once(store: Store, editor: Editor, *facts: str) -> None:
    store.adopt()
    assert sorted(on_disk(store)) == sorted(in_trail(store)) == sorted([*facts, *editor.lines])
    assert {first_author(store, line) for line in editor.lines} == {"Ann"}
    assert {first_author(store, fact) for fact in facts} == {"ua-memory"}
    whole(store)


def test_a_save_on_top_of_ours_is_itself_something_to_be_read(store: Store) -> None:
    """The editor's second save stands in the file without its first, and is what its third was made from."""
    insert(store, "first")
    editor = Editor(store)
    editor.read()

    amid({("before", 0): editor.save, ("after", 0): editor.on_top, ("before", 1): editor.read},
         lambda: insert(store, "second"))  # fmt: skip
    assert "by hand 0" not in editor.buffer and "by hand 1" in editor.buffer
    insert(store, "third")
    editor.save()
    all_once(store, editor, "first", "second", "third")


def test_a_save_made_from_the_last_save_and_not_from_what_took_its_place(store: Store) -> None:
    """The same, and the third save comes while the second is being merged."""
    insert(store, "first")
    editor = Editor(store)
    editor.read()

    amid({("before", 0): editor.save, ("after", 0): editor.on_top, ("before", 1): editor.read,
          ("after", 1): editor.save},
         lambda: insert(store, "second"))  # fmt: skip
    all_once(store, editor, "first", "second")


def test_lines_that_are_no_facts_stay_too(store: Store) -> None:
    insert(store, "first")
    editor = Editor(store)
    editor.read()
    editor.save("\n")
    editor.read()
    amid(
        {("before", 0): lambda: editor.save("\n"), ("after", 0): editor.read}, lambda: insert(store, "second")
    )
    editor.save("\n")
    assert "by hand 1" not in editor.buffer
    store.adopt()
    text = (store.bank.root / DAY).read_text()
    assert [text.count(line) for line in (*editor.lines, "first", "second")] == [1] * 5
    assert store.history.log(limit=1)[0].subject == "merge: put back lines a stale buffer had dropped"
    whole(store)


def test_an_old_buffer_in_which_a_line_was_reworded_is_one_still(store: Store) -> None:
    """It lacks more than what came since it was read: the rest is what its owner changed."""
    insert(store, "first")
    editor = Editor(store)
    editor.read()
    editor.save()
    for text in ("second", "third"):
        insert(store, text)
    write(store, DAY, editor.buffer.replace("by hand 0", "by hand, reworded"))
    store.adopt()
    assert sorted(on_disk(store)) == ["by hand, reworded", "first", "second", "third"]
    assert len(store.history.log(limit=1)[0].trailers["Facts"]) == 2, "those that were put back"
    write(store, DAY, editor.buffer.replace("by hand 0", "by hand, reworded"))
    store.adopt()
    assert sorted(on_disk(store)) == ["by hand, reworded", "first"], "dropped again: it is meant"
    whole(store)
