"""An editor reads the file in the midst of a write of ours, and saves later: none of its lines goes (I3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from kill_points import whole
from store_banks import DAY, first_author, git, in_trail, insert, make, on_disk, open_again, write

from ua_memory.store import draft, swap
from ua_memory.store.store import Store

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
    enter, count = swap.swap_in, 0

    def entered(file: Path, out: Path) -> None:
        nonlocal count
        number, count = count, count + 1
        script.get(("before", number), lambda: None)()
        enter(file, out)
        script.get(("after", number), lambda: None)()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swap, "swap_in", entered)
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


class Another(Editor):
    """A second editor of the same file: it does not know of the first."""

    def save(self, kind: str = "- ") -> None:
        self.lines.append(f"his own {len(self.lines)}")
        self.buffer += f"{kind}{self.lines[-1]}\n"
        write(self.store, DAY, self.buffer)


WITHIN: dict[str, tuple[Mapping[Moment, str], Mapping[Moment, str]]] = {
    "one before ours and one on top": ({("before", 0): "save"}, {("after", 0): "on_top"}),
    "both before ours": ({("before", 0): "save"}, {("after", 0): "save"}),
    "one before ours and two on top": (
        {("before", 0): "save"},
        {("after", 0): "on_top", ("after", 1): "save"},
    ),
    "the second from before the first": (
        {("before", 0): "save", ("after", 1): "save"},
        {("after", 0): "save", ("before", 1): "read"},
    ),
}


@pytest.mark.parametrize("name", WITHIN)
def test_two_editors_save_within_one_write(store: Store, name: str) -> None:
    insert(store, "first")
    one, two = Editor(store), Another(store)
    one.read()
    two.read()
    script: dict[Moment, Callable[[], None]] = {}
    for editor, moments in zip((one, two), WITHIN[name], strict=True):
        script |= {moment: getattr(editor, does) for moment, does in moments.items()}
    amid(script, lambda: insert(store, "second"))
    one.lines += two.lines
    all_once(store, one, "first", "second")


def test_a_line_that_a_write_has_read_stays_though_another_editor_saves_within_it(store: Store) -> None:
    """It was in no commit yet; the other editor had read the file before."""
    insert(store, "first")
    one, two = Editor(store), Another(store)
    two.read()
    one.on_top()
    amid({("before", 0): two.save}, lambda: insert(store, "second"))
    one.lines += two.lines
    all_once(store, one, "first", "second")


def test_an_old_buffer_that_comes_within_a_write(store: Store) -> None:
    insert(store, "first")
    one, two = Editor(store), Another(store)
    two.read()
    one.on_top()
    insert(store, "second")
    one.on_top()
    amid({("before", 0): two.save, ("after", 0): one.on_top}, lambda: insert(store, "third"))
    one.lines += two.lines
    all_once(store, one, "first", "second", "third")


def test_saves_while_an_old_buffer_is_put_right(store: Store) -> None:
    """What is put back is the last that such a revision writes, and no other comes after it."""
    insert(store, "first")
    one, two = Editor(store), Another(store)
    one.read()
    two.on_top()
    insert(store, "second")
    one.save()
    amid({("before", 0): one.save, ("after", 0): two.on_top, ("after", 1): one.save}, store.adopt)
    one.lines += two.lines
    all_once(store, one, "first", "second")


def test_what_was_read_between_two_saves_that_one_write_takes_in(store: Store) -> None:
    """No commit has what the second editor read: the first saved again before we looked."""
    insert(store, "first")
    one, two = Editor(store), Another(store)
    one.read()
    insert(store, "second")
    one.save()
    two.read()
    one.save()
    amid({("before", 0): two.save}, lambda: insert(store, "third"))
    one.lines += two.lines
    all_once(store, one, "first", "second", "third")


def test_what_was_read_before_several_saves_of_another_editor_within_a_write(store: Store) -> None:
    """It stood there without the first of these saves, and is not the last that did."""
    insert(store, "base")
    one, other = Editor(store), Editor(store)
    one.read()

    def read() -> None:
        one.on_top()
        other.read()

    script = {("before", 0): one.save, ("before", 1): read}
    amid({**script, **{("before", n): one.on_top for n in range(2, 6)}}, lambda: insert(store, "ours"))
    store.adopt()
    write(store, DAY, other.buffer + "- of the other editor\n")
    one.lines.append("of the other editor")
    all_once(store, one, "base", "ours")


def test_an_old_buffer_after_another_editor_has_saved_on_top_of_ours(store: Store) -> None:
    """It was read before the write began: what came since, in earlier revisions too, stays."""
    insert(store, "first")
    one, two = Editor(store), Another(store)
    two.read()
    for text in ("second", "third"):
        insert(store, text)
    script = {("before", 0): one.on_top, ("after", 0): one.on_top, ("after", 1): two.save}
    amid(script, lambda: insert(store, "fourth"))
    one.lines += two.lines
    all_once(store, one, "first", "second", "third", "fourth")


def test_a_save_while_words_are_merged_that_came_too_late(store: Store) -> None:
    """Our own commit has changed git's index by then: that is no git at work on the files."""
    insert(store, "first")
    editor = Editor(store)
    with (store.bank.root / DAY).open("ab") as late:
        insert(store, "second")
        late.write(b"- written late\n")
        late.flush()
        editor.read()
    amid({("before", 0): editor.save}, lambda: insert(store, "third"))
    editor.lines.append("written late")
    all_once(store, editor, "first", "second", "third")


def test_an_old_buffer_that_is_saved_again_and_again_within_a_write(store: Store) -> None:
    """Each save was made from the one before, which no commit has and which another editor saved over."""
    insert(store, "first")
    one, two = Editor(store), Another(store)
    one.read()
    facts = ["first", "second", "third", "fourth"]
    for text in facts[1:]:
        insert(store, text)
    script = {
        ("before", 0): one.save,
        **{("after", n): two.on_top if n % 2 == 0 else one.save for n in range(6)},
    }
    amid(script, lambda: insert(store, "fifth"))
    one.lines += two.lines
    all_once(store, one, *facts, "fifth")


def test_words_that_came_too_late_leave_the_other_files_alone(store: Store) -> None:
    """The same revision wrote another file, which a person has saved since: it is not written again."""
    other = "memory/other.md"
    insert(store, "first")
    write(store, other, "- one\n")
    with (store.bank.root / DAY).open("ab") as late:
        with store.revision("test", door="test") as draft:
            for path in (other, DAY):
                draft.write(path, draft.read(path) + b"- both ^0123456789\n", restored=True)
        write(store, other, "- one\n- both, and by hand ^0123456789\n")
        late.write(b"- written late\n")
    saved = (store.bank.root / other).stat().st_ino
    store.adopt()
    store.adopt()
    assert (store.bank.root / other).stat().st_ino == saved
    assert on_disk(store, other) == in_trail(store, other) == ["one", "both, and by hand"]
    assert on_disk(store) == in_trail(store) == ["first", "written late", "both"]


@pytest.mark.parametrize("words", [["add", "memory"], ["rm", "-q", "--cached", "MEMORY.md"]])
def test_a_save_while_git_writes_its_index(store: Store, words: list[str]) -> None:
    """As a checkout does; but these put nothing into the file, and the save goes the way of any other."""
    insert(store, "first")
    editor = Editor(store)
    editor.read()

    def saved() -> None:
        editor.save()
        git(store.bank.root, *words)

    amid({("before", 0): saved, ("after", 0): editor.on_top}, lambda: insert(store, "second"))
    all_once(store, editor, "first", "second")
    assert not [r for r in store.history.log() if r.trailer("Memory-Op") == "merge"], "nothing was put back"


@pytest.mark.parametrize("words", [["checkout", "HEAD~1", "--", "memory"], ["rm", "-r", "-q", "memory"]])
def test_git_puts_a_file_back_and_then_it_is_saved(store: Store, words: list[str]) -> None:
    """What came out first is git's, and goes back; the save was made before that, and is no less a save."""
    insert(store, "first")
    insert(store, "second")
    editor = Editor(store)
    editor.read()
    amid(
        {("before", 0): lambda: git(store.bank.root, *words), ("after", 0): editor.on_top},
        lambda: insert(store, "third"),
    )
    assert {"third", "by hand 0"} <= set(on_disk(store))
    all_once(store, editor, "first", "second", "third")


@pytest.mark.parametrize("kept", [1, 5])
@pytest.mark.parametrize("turn", [0, 1], ids=["before ours", "on top of ours"])
def test_a_save_that_comes_out_half_written(
    store: Store, turn: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine kept its editor waiting in the midst of it: what is missing is not deleted, and nothing
    stands there twice when the rest is written into what was exchanged away."""
    facts = [f"fact {n}" for n in range(3)]
    for fact in facts:
        insert(store, fact)
    editor, out, looks = Editor(store), swap.swapped_out, []

    def looked(*of: Path) -> bytes | None:
        looks.append(of)
        came = out(*of) or b""
        return b"".join(came.splitlines(keepends=True)[:kept]) if len(looks) == turn + 1 else came

    with monkeypatch.context() as patch:
        patch.setattr(swap, "swapped_out", looked)
        amid({("before", n): editor.on_top for n in range(turn + 1)}, lambda: insert(store, "amid"))
    all_once(store, editor, *facts, "amid")


def test_a_content_read_amid_a_write_is_not_recorded_as_an_edit_after_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search reads the file while another process writes it, and goes on when that has committed. What it
    has read lacks the new fact, which nobody has taken away."""
    insert(store, "first")
    editor = Editor(store)
    editor.on_top()
    enter, reader, held = draft.read, open_again(store.bank.root), list[bytes]()

    def save() -> None:
        held.append((store.bank.root / DAY).read_bytes())
        editor.save()

    def read(file: Path, **how: bool) -> bytes | None:
        if file.name not in DAY or held:
            return enter(file, **how)
        with monkeypatch.context() as patch:
            patch.setattr(draft, "read", enter)
            amid({("before", 0): save}, lambda: insert(store, "second"))
        return held[0]

    with monkeypatch.context() as patch:
        patch.setattr(draft, "read", read)
        reader.adopt(quiet=3600)
    assert b"second" not in held[0]
    editor.on_top()
    insert(store, "third")
    all_once(store, editor, "first", "second", "third")
