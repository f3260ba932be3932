"""Two sides of a bank made one by id: what each rule says, and that random edits of both obey all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ua_memory.markdown import document as markdown
from ua_memory.records import CoreBlock, Fact, Observation
from ua_memory.upkeep.merge import Merge, merge

DAY, NEXT, CORE = "memory/2026-11-21.md", "memory/2026-11-22.md", "MEMORY.md"
BELIEFS = "memory/observations/Alice.md"
BASE = """# 2026-11-21

## 09:00 · codex · tool

- Alice drinks tea. ^aaaaaaaaaa
- Bob moved to Lisbon. ^bbbbbbbbbb
- a line without an id

Prose of a person.
"""


def of(ours: str, theirs: str, base: str = BASE, path: str = DAY) -> Merge:
    return merge(*({path: text.encode()} for text in (base, ours, theirs)))


def text(done: Merge, path: str = DAY) -> str:
    return (done.files[path] or b"").decode()


def facts(done: Merge, path: str = DAY) -> dict[str | None, Fact]:
    return {fact.id: fact for fact in markdown.parse(done.files[path] or b"", path).of(Fact)}


def test_what_each_side_adds_stays_below_its_own_heading() -> None:
    ours = BASE + "\n## 10:00 · cli\n\n- ours ^cccccccccc\n"
    theirs = BASE + "\n## 11:00 · web · web\n\n- theirs ^dddddddddd\n"
    done = of(ours, theirs)
    assert text(done) == theirs + "\n## 10:00 · cli\n\n- ours ^cccccccccc\n" and not done.notes
    assert facts(done)["dddddddddd"].said_by == "web" and done.added == 1


BELIEF = """# Alice

- Alice drinks tea at {2}. ^{0}
  - proofs: 2
  - proof: [[2026-11-21#^aaaaaaaaaa]] "Alice drinks tea."
  - proof: [[2026-11-21#^{1}]] "a line without an id"
  - trend: new
"""


def test_what_both_machines_concluded_and_the_line_that_both_gave_an_id_are_there_once() -> None:
    def side(belief: str, line: str, when: str) -> dict[str, bytes]:
        log = BASE.replace("without an id\n", f"without an id ^{line}\n")
        return {DAY: log.encode(), BELIEFS: BELIEF.format(belief, line, when).encode()}

    ours, theirs = side("oooooooooo", "pppppppppp", "four"), side("tttttttttt", "uuuuuuuuuu", "four")
    done = merge({DAY: BASE.encode()}, ours, theirs)
    assert done.files == theirs and not done.notes
    both = text(merge({DAY: BASE.encode()}, side("oooooooooo", "pppppppppp", "five"), theirs), BELIEFS)
    assert both.count("^uuuuuuuuuu") == 2 and "pppppppppp" not in both, "another belief cites their id"


@pytest.mark.parametrize("place", ["10:00 · cli · session 8f2c", "10:01 · cli"])
def test_what_was_said_twice_is_there_twice(place: str) -> None:
    ours, theirs = (
        f"{BASE}\n## {place}\n\n- said ^cccccccccc\n",
        f"{BASE}\n## 10:00 · cli\n\n- said ^dddddddddd\n",
    )
    assert facts(of(ours, theirs)).keys() > {"cccccccccc", "dddddddddd"}


def test_deleted_and_unchanged_is_deleted_but_deleted_and_changed_is_kept_and_told() -> None:
    ours = BASE.replace("- Alice drinks tea. ^aaaaaaaaaa\n", "").replace("- a line without an id\n", "")
    assert text(of(ours, BASE + "\nMore.\n")) == ours + "\nMore.\n"
    done = of(ours, BASE.replace("tea", "coffee"))
    assert facts(done)["aaaaaaaaaa"].text == "Alice drinks coffee."
    assert [(t.what, t.why, t.ours) for t in done.notes] == [("^aaaaaaaaaa", "kept", "")]
    alone = BASE.replace("- Bob moved to Lisbon. ^bbbbbbbbbb\n- a line without an id\n", "")
    changed, gone = alone.replace("tea", "coffee"), alone.replace("- Alice drinks tea. ^aaaaaaaaaa\n", "")
    assert text(of(changed, gone, alone)) == text(of(gone, changed, alone)) == changed


def test_what_both_add_to_core_memory_above_its_first_section_stands_there() -> None:
    base = "# Memory\n\nKept short.\n\n## Who\n\n- Alice\n"
    sides = (base.replace("short.\n", f"short.\n- {word}\n") for word in ("ours", "theirs"))
    done = of(*sides, base, CORE)
    rows = [row for row in text(done, CORE).split("\n") if row]
    assert rows == ["# Memory", "Kept short.", "- theirs", "- ours", "## Who", "- Alice"]
    done = of(
        base.replace("short.\n", "short.\n- ours\n"),
        base.replace("Kept short.", "## Kept\n\nNo more."),
        base,
        CORE,
    )
    blocks = markdown.parse(done.files[CORE] or b"", CORE).of(CoreBlock)
    assert [(each.name, each.value) for each in blocks] == [
        ("Memory", "- ours"),
        ("Kept", "No more."),
        ("Who", "- Alice"),
    ]


HEADING = '## 09:00 · codex · session s1 · tool\n<!-- tags: ["project:shop"] -->\n\n'
OLD, NEW = "- Alice drinks tea. ^aaaaaaaaaa\n", "- Bob moved. ^bbbbbbbbbb\n"


@pytest.mark.parametrize("heading", [HEADING, HEADING.replace('<!-- tags: ["project:shop"] -->\n', "")])
@pytest.mark.parametrize("before", ["", "## 08:00 · cli\n\n- ours ^cccccccccc\n\n"])
@pytest.mark.parametrize("after", ["", "\n## 10:00 · web · web\n\n- web ^dddddddddd\n"])
@pytest.mark.parametrize("now", [OLD + NEW, OLD.replace("tea", "coffee")])
def test_what_is_new_below_a_heading_that_the_other_side_removed_keeps_it(
    heading: str, before: str, after: str, now: str
) -> None:
    base = f"# Saturday\n\n{before}{heading}{OLD}{after}"
    left = f"# Saturday\n\n{before}{after}"
    kept = f"# Saturday\n\n{before}{heading}{now.removeprefix(OLD)}{after}"
    for sides in ((left, base.replace(OLD, now)), (base.replace(OLD, now), left)):
        assert text(of(*sides, base)).split() == kept.split()
    if "tags" not in heading:
        there = {DAY: base.replace(OLD, now).encode()}
        for files in (({}, there), (there, {})):
            done = merge({DAY: base.encode()}, *files)
            assert text(done).split() == f"# Saturday\n\n{heading}{now.removeprefix(OLD)}".split()


TWO = (
    ("## 09:00 · codex · session s1", "## 11:00 · claude-code · session s2", '["project:shop"]'),
    ("## 09:00 · cli", "## 09:00 · cli", '["b"]'),
)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("one", "other", "tags"), TWO)
def test_what_is_new_stands_below_its_own_heading_and_no_other(
    newline: str, one: str, other: str, tags: str
) -> None:
    first = f'{one}\n<!-- tags: ["project:shop"] -->\n\n{OLD}\n'
    second = f"{other}\n<!-- tags: {tags} -->\n\n- two ^bbbbbbbbbb\n"
    three = "- three ^cccccccccc\n"
    for left in ("# Saturday\n", f"# Saturday\n\n{first}"):
        base = f"# Saturday\n\n{first}{second}"
        kept = left.rstrip() + "\n\n" + second.replace("- two ^bbbbbbbbbb\n", three)
        left, base, more, kept = (t.replace("\n", newline) for t in (left, base, base + three, kept))
        for sides in ((left, more), (more, left)):
            assert text(of(*sides, base)) == kept and not of(*sides, base).notes


def test_what_is_new_below_a_heading_that_was_renamed_stands_below_its_new_name() -> None:
    for was, now in (("09:00", "09:30"), ("# 2026-11-21", "# Saturday")):
        there = BASE.replace(was, now)
        new = BASE.replace("tea. ^aaaaaaaaaa\n", "tea. ^aaaaaaaaaa\n- new ^cccccccccc\n")
        new += "\n## 10:00 · cli\n\n- ours ^dddddddddd\n"
        for sides in ((there, new), (new, there)):
            assert text(of(*sides)) == new.replace(was, now)


def test_comments_of_both_sides_stand_below_one_heading() -> None:
    heading, mark = "## 09:00 · codex · tool\n", "<!-- through: codex/s/{} -->\n"
    base, ours, theirs = (BASE.replace(heading, heading + mark.format(n)) for n in (1, 2, 3))
    done = text(of(ours + "\n- ours ^cccccccccc\n", theirs, base))
    assert done == BASE.replace(heading, heading + mark.format(3) + mark.format(2)) + "\n- ours ^cccccccccc\n"


def test_two_readings_of_one_fact_stand_side_by_side() -> None:
    done = of(BASE.replace("tea", "coffee"), BASE.replace("tea", "water"))
    assert "<<<" not in text(done) and [t.why for t in done.notes] == ["both"]
    one, other = (f for f in facts(done).values() if f.text.startswith("Alice"))
    assert (one.id, one.text) == ("aaaaaaaaaa", "Alice drinks water.")
    assert other.text == "Alice drinks coffee."
    assert other.flag == "changed on two machines, the other version: ^aaaaaaaaaa"
    assert one.said_by == other.said_by == "tool"
    again = of(text(done), text(done).replace("water", "water."), text(done))
    assert len(facts(again)) == len(facts(done))


def test_metadata_of_both_sides_goes_together() -> None:
    base = BASE.replace("aaaaaaaaaa\n", "aaaaaaaaaa\n  - seen: 2026-11-22\n")
    done = of(
        base.replace("11-22\n", "11-22, 2026-11-24\n"), base.replace("11-22\n", "11-22, 2026-11-23\n"), base
    )
    assert facts(done)["aaaaaaaaaa"].seen == ("2026-11-22", "2026-11-23", "2026-11-24") and not done.notes


def test_a_tombstone_holds_against_whatever_the_other_side_did() -> None:
    grave, stone = "memory/forgotten.md", b"# Forgotten\n\n- ^aaaaaaaaaa\n  - hash: s:h\n  - on: 2026-11-22\n"
    gone = BASE.replace("- Alice drinks tea. ^aaaaaaaaaa\n", "").encode()
    for changed in (BASE.replace("tea", "much tea"), BASE):
        for swapped in (False, True):
            sides = ({DAY: gone, grave: stone}, {DAY: changed.encode()})
            done = merge({DAY: BASE.encode()}, *(reversed(sides) if swapped else sides))
            assert b"Alice" not in (done.files[DAY] or b"") and done.files[grave] == stone
            assert done.forgotten == ("aaaaaaaaaa",) and not done.notes


def test_a_fact_that_was_moved_is_edited_where_it_is_now() -> None:
    line = "- Bob moved to Lisbon. ^bbbbbbbbbb\n"
    ours = {DAY: BASE.replace(line, "").encode(), NEXT: f"# Moved\n\n{line}".encode()}
    done = merge({DAY: BASE.encode()}, ours, {DAY: BASE.replace("Lisbon", "Porto").encode()})
    assert facts(done, NEXT)["bbbbbbbbbb"].text == "Bob moved to Porto." and "bbbbbbbbbb" not in facts(done)
    assert facts(done, NEXT)["bbbbbbbbbb"].said_by == "tool"  # as the heading said it stood below


def test_core_memory_is_merged_by_block_and_then_by_line() -> None:
    base = "# Memory\n\n## Who\n\n- tea\n- cake\n\n## Where\n\nLisbon\n"
    ours = base.replace("tea", "coffee").replace("\n## Where\n\nLisbon\n", "")
    theirs = base.replace("tea", "water").replace("cake", "pie") + "\n## When\n\nnow\n"
    done = of(ours, theirs, base, CORE)
    blocks = {b.name: b.value for b in markdown.parse(done.files[CORE] or b"", CORE).of(CoreBlock)}
    assert blocks == {"Who": "- water\n- pie\n- coffee", "When": "now"}
    assert [(t.what, t.why) for t in done.notes] == [("## Who", "both")]


def test_what_is_told_of_prose_and_headers_is_what_stands_there() -> None:
    """Of a text both readings stand; of a file's header one can, and it is not said that both do."""
    page = "---\nname: Bees\n---\n\nBob keeps bees.\n"
    sides = [page.replace("name: Bees", f"name: {name}").replace("bees", text)
             for name, text in (("Hives", "two hives"), ("Honey", "three hives"))]  # fmt: skip
    done = of(*sides, page, "memory/pages/bees.md")
    assert [t.why for t in done.notes if "front" in t.what] == ["theirs"]
    (told,) = [t for t in done.notes if t.what == "text"]
    assert (told.why, told.ours, told.theirs) == ("both", "Bob keeps two hives.", "Bob keeps three hives.")
    assert "name: Honey" in (out := text(done, "memory/pages/bees.md")) and "Hives\n---" not in out
    assert told.ours in out and told.theirs in out
    quiet = of(page + "\nMore.\n", page + "\nOther.\n", page, "memory/pages/bees.md")
    assert not quiet.notes  # what both added stands, and nothing of it was changed


def test_a_conflict_with_windows_line_ends_adds_no_blank_line() -> None:
    base = "# Bees\n\nOne.\n\nTwo.\nMore.\n\n- x\n- y\n"
    sides = [base.replace("One", who).replace("- x", f"- {who}") for who in ("Ours", "Theirs")]
    plain, windows = (
        of(*(side.replace("\n", end) for side in (*sides, base)), NOTE) for end in ("\n", "\r\n")
    )
    assert text(windows, NOTE) == text(plain, NOTE).replace("\n", "\r\n") and len(windows.notes) == 2


def test_a_file_gone_on_one_side_stays_gone_unless_the_other_changed_it() -> None:
    assert merge({DAY: BASE.encode()}, {}, {DAY: BASE.encode()}).files == {DAY: None}
    base = BASE[: BASE.index("- a line")]  # of statements alone, each has its own result
    done = merge({DAY: base.encode()}, {}, {DAY: base.replace("tea", "milk").encode()})
    assert [f.text for f in facts(done).values()] == ["Alice drinks milk."]


TRIP = "---\ntags: [trip]\n---\n# Trip\n\nBy train.\n\nThe hotel.\n\nBack on Sunday.\n"
NOTE = "memory/trip.md"


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize(
    ("base", "old", "new", "told"),
    [
        (TRIP, "Sunday", "Monday", "Back on Monday."),
        (TRIP, "[trip]", "[trips]", "---\ntags: [trips]\n---"),
        (TRIP, "The hotel.\n\n", "", "---\ntags: [trip]\n---\n# Trip\nBy train.\nBack on Sunday."),
        (TRIP.replace("\n", "\r\n"), "Sunday", "Monday", "Back on Monday."),
        ("# List\n\n- one\n- two\n- three\n", "two", "two more", "- two more"),
        (BASE, "tea", "milk", "- Alice drinks milk. ^aaaaaaaaaa"),
        ("# Memory\n\n## Who\n\nAnn\n\n## Where\n\nLisbon\n", "Ann", "Bob", "## Who\n\nBob"),
    ],
)
def test_a_file_that_one_side_deleted_and_the_other_changed_is_kept_whole_and_told(
    here: bool, base: str, old: str, new: str, told: str
) -> None:
    path = CORE if "# Memory" in base else NOTE
    left = {path: base.replace(old, new).encode()}
    done = merge({path: base.encode()}, *((left, {}) if here else ({}, left)))
    assert done.files == left
    (note,) = done.notes
    assert (note.what, note.path, note.why) == ("file", path, "kept")
    assert (note.ours, note.theirs) == ((told, "") if here else ("", told))
    again = merge({path: base.encode()}, left, {path: base.encode()}), merge({}, {}, left)
    assert all(each.files == left and not each.notes for each in again)


def test_what_was_forgotten_does_not_come_back_with_a_file_that_is_kept_whole() -> None:
    """A tombstone holds; and that something forgotten was removed from a file is no change that keeps it."""
    stone = {"memory/forgotten.md": b"# Forgotten\n\n- ^aaaaaaaaaa\n  - hash: s:h\n  - on: 2026-11-22\n"}
    left = {DAY: BASE.replace("Prose", "More prose").replace("tea", "milk").encode()}
    done = merge({DAY: BASE.encode()}, stone, left)
    assert text(done) == left[DAY].decode().replace("- Alice drinks milk. ^aaaaaaaaaa\n", "")
    assert [(t.what, t.theirs) for t in done.notes] == [("file", "More prose of a person.")]
    less = {NOTE: TRIP.replace("The hotel.\n\n", "").encode()}
    assert merge({NOTE: TRIP.encode()}, {}, less, reduced=[NOTE]).files == {NOTE: None}


def test_what_began_apart_goes_together_by_what_both_have() -> None:
    ours, theirs = BASE + "- mine ^cccccccccc\n", BASE + "\n## 12:00 · cli\n\n- yours ^dddddddddd\n"
    done = merge({}, {DAY: ours.encode()}, {DAY: theirs.encode()})
    assert text(done).count("# 2026-11-21\n") == 1 and {"cccccccccc", "dddddddddd"} < set(facts(done))


def test_beliefs_keep_the_proofs_of_both() -> None:
    path = "memory/observations/a.md"
    one = "  - proof: [[2026-11-21#^aaaaaaaaaa]]\n"
    base = f"- Alice likes tea. ^oooooooooo\n  - proofs: 1\n{one}  - last: 2026-11-21\n"
    sides = [
        base.replace(": 1", ": 2").replace("  - last: 2026-11-21", f"{one.replace('a', i)}  - last: {day}")
        for day, i in (("2026-11-22", "b"), ("2026-11-23", "c"))
    ]
    done = of(*sides, base, path)
    (belief,) = markdown.parse(done.files[path] or b"", path).of(Observation)
    assert (
        {p.id[0] for p in belief.proofs} == {"a", "b", "c"} and belief.last == "2026-11-23" and not done.notes
    )


@pytest.mark.parametrize("theirs", ["other = 3\n", 'x = "'])
def test_settings_are_never_left_unreadable(theirs: str) -> None:
    path = "ua-memory.toml"
    done = of('id = "a"\nx = 2\n', 'id = "a"\n' + theirs, 'id = "a"\nx = 1\n', path)
    assert text(done, path) == 'id = "a"\n' + theirs and [t.why for t in done.notes] == ["theirs"]


# -- random edits on both sides --------------------------------------------------------------------------


@dataclass
class Side:
    """One machine's bank as a model: what stands in it by id, and lines without one."""

    items: dict[str, tuple[str, str]] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    stones: set[str] = field(default_factory=set)

    def copy(self) -> Side:
        return Side(
            dict(self.items), {path: list(rows) for path, rows in self.notes.items()}, set(self.stones)
        )

    def files(self) -> dict[str, bytes]:
        out = {}
        for path in (DAY, NEXT):
            rows = [f"- {words} ^{i}" for i, (where, words) in sorted(self.items.items()) if where == path]
            rows += [f"- {note}" for note in self.notes.get(path, ())] and ["", *self.notes[path]]
            if rows:
                out[path] = "\n".join([f"# {path[7:17]}", "", "## 09:00 · codex", "", *rows, ""]).encode()
        if self.stones:
            stones = "".join(f"- ^{i}\n  - hash: s:{i}\n  - on: 2026-11-21\n" for i in sorted(self.stones))
            out["memory/forgotten.md"] = f"# Forgotten\n\n{stones}".encode()
        return out


WORDS = st.sampled_from(["tea", "two words", "## no heading", "ends in #tag", "[[Link]] and *more*", "Δ"])
Edits = list[tuple[str, int, str]]
EDITS = st.lists(st.tuples(st.sampled_from("aeedmfn"), st.integers(0, 7), WORDS), max_size=6)


def edited(side: Side, edits: Edits, who: str) -> Side:
    for n, (what, at, words) in enumerate(edits):
        there = sorted(side.items)
        block = there[at % len(there)] if there else ""
        if what == "a":
            side.items[f"{who}{n}" * 5] = ((DAY, NEXT)[at % 2], f"{words} by {who}{n}")
        elif what == "n":
            side.notes.setdefault((DAY, NEXT)[at % 2], []).append(f"{words} noted by {who}{n}")
        elif not block:
            continue
        elif what == "e":
            side.items[block] = (side.items[block][0], f"{words} said {who}{n}")
        elif what == "m":
            side.items[block] = (NEXT, side.items[block][1])
        else:
            del side.items[block]
            if what == "f":
                side.stones.add(block)
    return side


def stand(files: Mapping[str, bytes | None]) -> dict[str, str]:
    """{id: text} of all facts."""
    docs = (markdown.parse(data, path) for path, data in files.items() if data)
    return {str(fact.id): fact.text for doc in docs for fact in doc.of(Fact) if fact.id}


@pytest.mark.hypothesis
@given(EDITS, EDITS, EDITS)
def test_random_edits_on_both_sides(start: Edits, a: Edits, b: Edits) -> None:
    before = edited(Side(), [("a", n, w) for n, (_, _, w) in enumerate(start)], "z")
    ours, theirs = edited(before.copy(), a, "x"), edited(before.copy(), b, "y")
    base, one, two = (stand(side.files()) for side in (before, ours, theirs))
    done = merge(before.files(), ours.files(), theirs.files())
    now, stones = stand(done.files), ours.stones | theirs.stones
    for block in {*base, *one, *two}:
        was, mine, yours = base.get(block), one.get(block), two.get(block)
        if block in stones or (None in (mine, yours) and (mine or yours) == was):
            assert block not in now
        elif was == mine or mine == yours or mine is None:
            assert now.get(block) == yours
        elif was == yours or yours is None:
            assert now[block] == mine
        else:
            assert now[block] == yours and mine in now.values()
    extra = set(now) - {*base, *one, *two}
    assert len(extra) == sum(told.why == "both" for told in done.notes)
    whole = b"".join(data or b"" for data in done.files.values()).decode()
    assert "<<<<" not in whole and ">>>>" not in whole
    for side in (ours, theirs):
        for note in (row for rows in side.notes.values() for row in rows):
            assert whole.count(note) == 1
    # The other machine goes on from here: nothing more happens, whoever merges again.
    result = {path: data for path, data in done.files.items() if data}
    for sides in ((theirs.files(), theirs.files(), result), (ours.files(), result, ours.files())):
        assert {p: d for p, d in merge(*sides).files.items() if d} == result
