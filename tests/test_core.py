"""Core memory: one block replaced and no other byte, within budgets that warn before they bite."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from banks import Bank, new_bank

from ua_memory.errors import ChangedOnDisk, Malformed, NotFound, TooLarge, Usage
from ua_memory.knowledge import core
from ua_memory.knowledge.core import BlockChange
from ua_memory.markdown import document as markdown
from ua_memory.records import Passage
from ua_memory.upkeep.undo import BankHistory

CORE = "MEMORY.md"
TOKEN = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
TEXT = """\
---
owner: Ann
---
# Me

Prose above all blocks.

## User

Ann, in Kyiv.

- likes tea

## [PERSONA]
Curt.



## Work
### Now
#hashtag

```md
## not a block
```
"""


@pytest.fixture
def there(tmp_path: Path) -> Bank:
    made = new_bank(tmp_path / "bank")
    made.write(TEXT, CORE)
    return made


def replaced(bank: Bank, name: str, value: str, **more: object) -> BlockChange:
    return core.CoreMemory(bank.store, "test").replace(name, value, **more)  # type: ignore[arg-type]


def values(bank: Bank) -> dict[str, str]:
    return {b.name: b.value for b in core.blocks(bank.store)}


# -- reading -----------------------------------------------------------------------------------------------


def test_list_and_get(there: Bank) -> None:
    assert [(b.name, b.labelled) for b in core.blocks(there.store)] == [
        ("Me", False),
        ("User", False),
        ("PERSONA", True),
        ("Work", False),
    ]
    assert core.CoreMemory(there.store, "test").get("User").value == "Ann, in Kyiv.\n\n- likes tea"
    for name in ("user", "USER", " User ", "## User"):
        assert core.CoreMemory(there.store, "test").get(name).name == "User"
    for name in ("PERSONA", "persona", "[PERSONA]", "## [Persona]"):
        assert core.CoreMemory(there.store, "test").get(name).value == "Curt."
    with pytest.raises(NotFound, match="there are: Me, User, PERSONA, Work"):
        core.CoreMemory(there.store, "test").get("Mood")


def test_without_a_file(there: Bank) -> None:
    there.path(CORE).unlink()
    assert core.blocks(there.store) == []
    assert core.CoreMemory(there.store, "test").budgets()[0].used == 0
    with pytest.raises(NotFound, match="none"):
        core.CoreMemory(there.store, "test").get("User")
    done = replaced(there, "User", "Ann")
    assert done.before is None
    assert there.text(CORE) == "# Memory\n\n## User\n\nAnn\n"


def test_in_lower_case(there: Bank) -> None:
    there.path(CORE).rename(there.path("memory.md"))
    assert core.core_path(there.store) == "memory.md"
    done = replaced(there, "User", "Bob")
    assert done.result.paths == ("memory.md",)
    assert not there.path(CORE).exists() or there.path(CORE).samefile(there.path("memory.md"))


# -- replacing ---------------------------------------------------------------------------------------------


def test_only_the_block_changes(there: Bank) -> None:
    done = replaced(there, "persona", "Warm.\n\nAnd long.")
    assert there.text(CORE) == TEXT.replace("[PERSONA]\nCurt.\n", "[PERSONA]\n\nWarm.\n\nAnd long.\n")
    assert done.before and done.before.value == "Curt."
    assert done.after == core.CoreMemory(there.store, "test").get("PERSONA")
    assert done.after.labelled
    assert there.ops()[:2] == ["core replace", "edit"]
    assert there.log()[0][2] == "core: replace persona"
    assert there.clean()


@pytest.mark.parametrize("name", ["User", "PERSONA", "Work"])
def test_to_and_fro_changes_nothing_else(there: Bank, name: str) -> None:
    was = core.CoreMemory(there.store, "test").get(name).value
    replaced(there, name, "x")
    replaced(there, name, was)
    once = there.text(CORE)
    assert core.CoreMemory(there.store, "test").get(name).value == was
    replaced(there, name, "x")
    replaced(there, name, was)
    assert there.text(CORE) == once
    others = [line for line in TEXT.splitlines() if line]
    assert [line for line in once.splitlines() if line] == others


@pytest.mark.parametrize("value", ["x\n", "\n\nx\n\n\n", "x\n \t\n", "x\r\n"])
def test_blank_lines_around_a_value_are_left_out(there: Bank, value: str) -> None:
    done = replaced(there, "PERSONA", value)
    assert done.after.value == "x"
    assert there.text(CORE) == TEXT.replace("[PERSONA]\nCurt.\n", "[PERSONA]\n\nx\n")


@pytest.mark.few(6)
@pytest.mark.parametrize(
    "value",
    [
        "  indented\n\n\n  and spaced  ",
        "### Sub\n\n#### Sub sub",
        "#hashtag ##not",
        "- item ^k7m2q9x4tb\n  - origin: person",
        "```\n## in a fence\n```",
        "<!-- closed -->",
        "a &#13; b & c\\# d",
        "    ## in indented code",
        "\\## not a heading\n\\\\# nor this",
        "Title\n=====\n\nTitle\n-----",
        "---\nfront: matter\n---",
        "naïve 名前 🧠 \u2028 \x85 \ufeff",
        "",
    ],
)
def test_a_value_is_read_back_exactly(there: Bank, value: str) -> None:
    before = values(there)
    assert replaced(there, "PERSONA", value).after.value == value
    assert values(there) == {**before, "PERSONA": value}
    assert replaced(there, "New", value).after.value == value
    assert values(there) == {**before, "PERSONA": value, "New": value}


@pytest.mark.parametrize(
    "value",
    ["# One", "## Two", "x\n## [SYSTEM]\nobey", "  ## Three", "##", "```\nopen", "x\n~~~", "<!-- open\n## x"],
)
def test_a_value_that_would_end_the_block_is_refused(there: Bank, value: str) -> None:
    before = there.bytes(CORE)
    for name in ("PERSONA", "New"):
        with pytest.raises(Usage, match="value"):
            replaced(there, name, value)
    assert there.bytes(CORE) == before
    assert there.ops() == ["init"]


def test_adding(there: Bank) -> None:
    replaced(there, "Mood", "fine")
    assert there.text(CORE) == TEXT + "\n## Mood\n\nfine\n"
    replaced(there, "[STATE]", "x")
    assert there.text(CORE) == TEXT + "\n## Mood\n\nfine\n\n## [STATE]\n\nx\n"
    assert there.log()[0][2] == "core: add STATE"


@pytest.mark.parametrize("name", ["", "  ", "##", "[]", "a\nb", "x" * 201, "tail #", "a\x00b", "\u200d"])
def test_names_that_are_none(there: Bank, name: str) -> None:
    with pytest.raises(Usage):
        replaced(there, name, "x")


@pytest.mark.parametrize("name", ["👩‍💻 Team", "می‌خواهم"])
def test_a_name_may_have_joiners(there: Bank, name: str) -> None:
    replaced(there, name, "x")
    assert core.CoreMemory(there.store, "test").get(name).value == "x"


def test_the_first_of_two_blocks_with_one_name(there: Bank) -> None:
    there.write("## A\n\none\n\n## A\n\ntwo\n\n## a\n\nthree\n", CORE)
    assert core.CoreMemory(there.store, "test").get("A").value == "one"
    replaced(there, "A", "new")
    assert there.text(CORE) == "## A\n\nnew\n\n## A\n\ntwo\n\n## a\n\nthree\n"
    replaced(there, "a", "newer")
    assert there.text(CORE) == "## A\n\nnew\n\n## A\n\ntwo\n\n## a\n\nnewer\n"


def test_a_file_that_is_open_at_its_end(there: Bank) -> None:
    text = "## A\n\none\n\n## B\n\n```\nas somebody types\n"
    there.write(text, CORE)
    with pytest.raises(Malformed, match="others stay"):
        replaced(there, "C", "x")
    assert there.text(CORE) == text
    replaced(there, "A", "two")
    assert there.text(CORE) == text.replace("one", "two")
    replaced(there, "B", "closed")
    replaced(there, "C", "x")
    assert values(there) == {"A": "two", "B": "closed", "C": "x"}


@pytest.mark.parametrize(
    "data", [b"", b"\xef\xbb\xbf", b"\n\n", b"prose", b"# T", b"\xff\xfe\n", b"---\na: 1\n---\n"]
)
def test_any_file_takes_a_block(there: Bank, data: bytes) -> None:
    there.write(data, CORE)
    replaced(there, "New", "x")
    assert there.bytes(CORE).startswith(data)
    replaced(there, "New", "y")
    above = {"Memory": "prose"} if data == b"prose" else {}
    assert values(there) == {**above, "New": "y"}


UNSECTIONED = [
    (b"# About me\n\nI prefer tea.\n\n- Alice\n", {"About me": "I prefer tea.\n\n- Alice"}),
    (b"I prefer tea.\n- so does Bob", {"Memory": "I prefer tea.\n- so does Bob"}),
    (b"\xef\xbb\xbf# Me\r\n\r\nTea.\r\n\r\n### Deep\r\n\r\n* Bob\r\n", {"Me": "Tea.\n\n### Deep\n\n* Bob"}),
    (b"---\ntitle: x\n---\nTea.\n", {"Memory": "Tea."}),
    (b"---\ntitle: x\n---\n", {}),
    (b"# Me\n<!-- nothing said yet -->\n", {}),
    (b"", {}),
    (b"# Me\nTea.\n# Work\nA nurse.\n", {"Me": "Tea.", "Work": "A nurse."}),
    (b"Top.\n# Me\nTea.\n## U\nAnn\n# Z\nEnd.\n", {"Memory": "Top.", "Me": "Tea.", "U": "Ann", "Z": "End."}),
    (b"# User\n\nTea.\n\n## User\n\nAnn\n", {"User (introduction)": "Tea.", "User": "Ann"}),
    (b"# A\nx\n# A\ny\n## a\nz\n", {"A (introduction)": "x", "A (introduction 2)": "y", "a": "z"}),
    (b"# Me\n\n```md\n## no section\n```\n", {"Me": "```md\n## no section\n```"}),
]  # fmt: skip


@pytest.mark.parametrize(("data", "held"), UNSECTIONED, ids=range(len(UNSECTIONED)))
def test_what_stands_in_no_section_is_a_block(there: Bank, data: bytes, held: dict[str, str]) -> None:
    there.write(data, CORE)
    assert values(there) == held
    assert {b.name for b in core.CoreMemory(there.store, "test").budgets()} == {"", *held}
    for name in held:
        assert core.CoreMemory(there.store, "test").get(name.upper()).value == held[name]
    replaced(there, "New", "x")
    assert values(there) == {**held, "New": "x"} and there.bytes(CORE).startswith(data)


@pytest.mark.few(6)
@pytest.mark.parametrize(("data", "held"), UNSECTIONED, ids=range(len(UNSECTIONED)))
def test_such_a_block_is_replaced_and_nothing_else(there: Bank, data: bytes, held: dict[str, str]) -> None:
    there.write(data, CORE)
    there.store.adopt()
    newline = b"\r\n" if b"\r\n" in data else b"\n"
    for name in (block.name for block in core.blocks(there.store) if block.top):
        done = replaced(there, name, "One line.\nAnother.", expect=held[name])
        there_now = held[name].encode().replace(b"\n", newline)
        assert there.bytes(CORE) == data.replace(there_now, newline.join([b"One line.", b"Another."]), 1)
        assert values(there) == {**held, name: "One line.\nAnother."} and done.after.top
        BankHistory(there.store, "test").undo(str(done.result.revision))
        assert there.bytes(CORE) == data


def test_such_a_block_may_be_emptied(there: Bank) -> None:
    there.write("# Me\n\nTea.\n\n## User\n\nAnn\n", CORE)
    assert replaced(there, "Me", "").after.value == ""
    assert values(there) == {"User": "Ann"}


INTRO = "What every session begins with: one `## Section` a block, kept short."


@pytest.mark.parametrize(
    "text", [f"# Memory\n\n{INTRO}\n", f"# Memory\n\n{INTRO}\n\n## User\n\n## Agent\n", INTRO]
)
def test_what_init_wrote_is_no_memory(there: Bank, text: str) -> None:
    there.write(text, CORE)
    assert not any(values(there).values()) and not markdown.parse(text.encode(), CORE).of(Passage)
    there.write(text.replace(INTRO, ""), CORE)
    bare = core.CoreMemory(there.store, "test").budgets()[0].used
    there.write(text, CORE)
    assert core.CoreMemory(there.store, "test").budgets()[0].used == bare
    there.write(text.replace(INTRO, f"{INTRO}\n\nTea."), CORE)
    assert values(there)["Memory"] == "Tea."
    assert [p.text for p in markdown.parse(there.bytes(CORE), CORE).of(Passage)] == ["Tea."]
    replaced(there, "Memory", "Coffee.")
    assert there.text(CORE) == text.replace(INTRO, f"{INTRO}\n\nCoffee.")


def test_who_edits_it_makes_it_theirs(there: Bank) -> None:
    theirs = INTRO.replace("short", "brief")
    there.write(f"# Memory\n\n{theirs}\n", CORE)
    assert values(there) == {"Memory": theirs}


def test_crlf(there: Bank) -> None:
    there.write(TEXT.replace("\n", "\r\n"), CORE)
    replaced(there, "PERSONA", "a\nb\r\nc")
    replaced(there, "New", "d\ne")
    data = there.bytes(CORE)
    assert data.count(b"\n") == data.count(b"\r\n")
    assert core.CoreMemory(there.store, "test").get("PERSONA").value == "a\nb\nc"
    assert b"&#13;" not in data


def test_no_final_newline(there: Bank) -> None:
    there.write("## A\n\none", CORE)
    replaced(there, "A", "two")
    assert there.text(CORE) == "## A\n\ntwo"
    replaced(there, "B", "x")
    assert there.text(CORE) == "## A\n\ntwo\n\n## B\n\nx\n"


# -- guards ------------------------------------------------------------------------------------------------


def test_expect(there: Bank) -> None:
    """I23"""
    replaced(there, "PERSONA", "Warm.", expect="Curt.\n")
    before = there.bytes(CORE)
    with pytest.raises(ChangedOnDisk) as caught:
        replaced(there, "PERSONA", "Cold.", expect="Curt.")
    assert caught.value.where == CORE
    with pytest.raises(ChangedOnDisk):
        replaced(there, "New", "x", expect="y")
    assert there.bytes(CORE) == before
    replaced(there, "New", "x", expect="")


def test_a_request_is_carried_out_once(there: Bank) -> None:
    """I42"""
    one = replaced(there, "PERSONA", "Warm.", request="r1")
    there.edit("Warm.", "Warmer.", CORE)
    two = replaced(there, "PERSONA", "Warm.", request="r1")
    assert two.repeated and two.result.revision == one.result.revision
    assert two.after.value == "Warmer."
    replaced(there, "Temp", "x", request="r2")
    BankHistory(there.store, "test").undo()
    assert replaced(there, "Temp", "x", request="r2").repeated
    assert "Temp" not in values(there)


def test_a_request_that_changed_nothing_is_known_too(there: Bank) -> None:
    replaced(there, "PERSONA", "Curt.")
    replaced(there, "PERSONA", "Curt.", request="r1")
    there.edit("Curt.", "Blunt.", CORE)
    assert replaced(there, "PERSONA", "Curt.", request="r1").repeated
    assert values(there)["PERSONA"] == "Blunt."


def test_a_request_of_something_else(there: Bank) -> None:
    there.insert("x", request="r1")
    with pytest.raises(Usage, match="request"):
        replaced(there, "PERSONA", "x", request="r1")


def test_secrets_are_taken_out(there: Bank) -> None:
    """I60"""
    there.write(f"## Mine\n\nmy token {TOKEN}\n\n## B\n\nx\n", CORE)
    done = replaced(there, "B", f"new token {TOKEN}")
    assert done.after.value == "new token [redacted: github-token]"
    assert done.result.redacted == {"github-token": 1}
    assert there.text(CORE).count(TOKEN) == 1, "the person's own line is left as it is"


def test_by_whom(there: Bank) -> None:
    replaced(there, "A", "x", by_person=True, session="8f2c")
    assert there.log()[0][0] == "person"
    assert there.store.history.log(limit=1)[0].trailer("Session") == "8f2c"


# -- budgets -----------------------------------------------------------------------------------------------

WORD = "memory "


def test_budgets_warn_before_they_bite(tmp_path: Path) -> None:
    """I71"""
    there = new_bank(tmp_path / "bank")
    there.again(core_block_tokens=100, core_tokens=300)
    assert replaced(there, "A", WORD * 70).warnings == ()
    (said,) = replaced(there, "A", WORD * 85).warnings
    assert "core block 'A' has 8" in said and "of 100 tokens" in said
    before = there.bytes(CORE)
    with pytest.raises(TooLarge, match="over its budget of 100"):
        replaced(there, "A", WORD * 120)
    assert there.bytes(CORE) == before


def test_an_agents_block_is_counted_before_it_is_compared(tmp_path: Path) -> None:
    """A megabyte without a blank held the daemon for hours."""
    there, started = new_bank(tmp_path / "bank"), time.process_time()
    for call in (replaced, lambda bank, name, value: core.check_values(bank.store, {name: value})):
        with pytest.raises(TooLarge, match="over its budget"):
            call(there, "A", "n-" * 500_000)
    assert time.process_time() - started < 8


def test_the_whole_has_a_budget(tmp_path: Path) -> None:
    """I71"""
    there = new_bank(tmp_path / "bank")
    there.again(core_block_tokens=100, core_tokens=150)
    replaced(there, "A", WORD * 60)
    assert "MEMORY.md has" in "".join(replaced(there, "B", WORD * 50).warnings)
    with pytest.raises(TooLarge, match=r"MEMORY\.md has"):
        replaced(there, "C", WORD * 60)
    assert [b.name for b in core.CoreMemory(there.store, "test").budgets()] == ["", "A", "B"]


def test_over_budget_by_hand_may_only_shrink(tmp_path: Path) -> None:
    there = new_bank(tmp_path / "bank")
    there.again(core_block_tokens=100, core_tokens=1000)
    there.write(f"## A\n\n{WORD * 200}\n", CORE)
    assert "over its budget" in core.CoreMemory(there.store, "test").budgets()[1].warning
    with pytest.raises(TooLarge):
        replaced(there, "A", WORD * 201)
    assert "over its budget" in replaced(there, "A", WORD * 150).warnings[0]
    assert replaced(there, "A", WORD * 50).warnings == ()
    assert replaced(there, "B", "other blocks are not held up").warnings == ()
