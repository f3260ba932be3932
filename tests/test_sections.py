"""Operations on a page's sections: what none names keeps its bytes, a person's words survive all."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ua_memory.errors import Malformed
from ua_memory.knowledge.pages import Owner, PageEditor, escape_line, placeholder, uncited_sentences
from ua_memory.knowledge.pages import RefusedEdit as Refused

PATH = "memory/pages/infra.md"
HEAD = "---\nid: infra\nname: Infra\nsource_query: x\n---\n"
LINK = "[[2026-11-21#^k7m2q9x4tb]]"


def sheet(body: str, theirs: str = "", limit: int = 10_000) -> PageEditor:
    """A page whose lines with the letter `theirs` are a person's."""
    data = (HEAD + body).encode()
    rows = data.decode().split("\n")
    owners: list[Owner] = ["person" if theirs and theirs in row else "ours" for row in rows]
    return PageEditor(data, PATH, owners, limit)


def body(page: PageEditor) -> str:
    return page.data({n: f"[[x#^{n}]]" for n in range(100)}).decode().removeprefix(HEAD)


BODY = (
    f"\nLead. {LINK}\n\n## Hosts\n\nOne. {LINK}\n\n- two {LINK}\n- three {LINK}\n\n\n## Last\n\nEnd. {LINK}\n"
)


def test_without_an_operation_nothing_changes() -> None:
    assert body(sheet(BODY)) == BODY
    page = sheet(BODY)
    assert [unit.ref for unit in page.units] == ["P1", "S1", "P2", "P3", "P4", "S2", "P5"]


def test_each_operation_changes_its_own_lines() -> None:
    page = sheet(BODY)
    page.append("S1", f"Four. {placeholder(4)}")
    page.append("S0", "Five.")
    page.append("S1", "- six", after="P3")
    page.replace("P2", f"Uno. {placeholder(1)}")
    page.remove("P5")
    page.rename("S2", "Later")
    new = page.add_section("New")
    page.append(new.ref, "Seven.")
    assert body(page) == (
        f"\nLead. {LINK}\n\nFive.\n\n## Hosts\n\nUno. [[x#^1]]\n\n- two {LINK}\n- six\n- three {LINK}\n\n"
        "Four. [[x#^4]]\n\n\n## Later\n\n## New\n\nSeven.\n"
    )
    page.remove_section(new.ref)
    page.remove_empty_headings()
    assert "## New" not in body(page) and "## Later" not in body(page) and "## Hosts" in body(page)


@pytest.mark.parametrize(
    "operation",
    [
        lambda page: page.replace("P9", "x"),
        lambda page: page.remove("S1"),
        lambda page: page.append("S9", "x"),
        lambda page: page.append("S1", "x", after="P9"),
        lambda page: page.rename("S1", "Last"),
        lambda page: page.rename("S1", "a [[link]]"),
        lambda page: page.add_section("  "),
        lambda page: page.remove_section("S0"),
        lambda page: page.contradict("P1", "x"),
        lambda page: page.replace("P2", "x"),
        lambda page: page.remove("P2"),
        lambda page: page.remove_section("S1"),
    ],
)
def test_what_cannot_be_done_changes_nothing(operation: object) -> None:
    page = sheet(BODY, theirs="One")
    with pytest.raises(Refused):
        operation(page)  # type: ignore[operator]
    assert body(page) == BODY


def test_a_page_that_is_full_takes_what_makes_it_shorter() -> None:
    page = sheet(BODY, limit=1)
    for operation in (lambda: page.append("S1", "More."), lambda: page.add_section("More")):
        with pytest.raises(Refused, match="make room"):
            operation()
    with pytest.raises(Refused, match="make room"):
        page.replace("P1", "Longer than the lead was, by far and away, and longer still than that was.")
    assert body(page) == BODY
    page.replace("P1", "Less.")
    page.remove("P2")


def test_a_contradiction_is_a_box_below_a_persons_words() -> None:
    page = sheet("\nMine: it runs here.\n\nOurs.\n", theirs="Mine")
    page.contradict("P1", f"It moved. {placeholder(3)}")
    box = "> [!question] Memory has it otherwise\n> It moved. [[x#^3]]\n"
    assert body(page) == f"\nMine: it runs here.\n\n{box}\nOurs.\n"
    page.append("S0", "Beside it.", after="P1")
    assert body(page) == f"\nMine: it runs here.\n\n{box}\nBeside it.\n\nOurs.\n"


def test_windows_lines_and_a_missing_last_newline() -> None:
    data = b"---\r\nid: a\r\n---\r\n\r\nMine"
    page = PageEditor(data, PATH, ["person"] * 5, 1000)
    assert page.data({}) == data
    page.append("S0", "Ours.")
    assert page.data({}) == data + b"\r\n\r\nOurs.\r\n"
    empty = PageEditor(b"---\nid: a\n---", PATH, ["person"] * 3, 1000)
    empty.append("S0", "Ours.")
    assert empty.data({}) == b"---\nid: a\n---\n\nOurs.\n"


def test_below_what_is_not_closed_nothing_is_written() -> None:
    with pytest.raises(Malformed, match="not closed"):
        sheet("\n```\ncode\n")


def test_a_sentence_cannot_become_syntax_nor_a_citation() -> None:
    for text in (
        "# a",
        "- a",
        "1. a",
        "> a",
        "a <!-- b",
        "```x",
        "~~~ y",
        "[[x#^k7m2q9x4tb]] a",
        "| a",
        "---",
    ):
        page = sheet("\nx\n")
        page.append("S0", escape_line(text))
        again = sheet(body(page))
        assert len(again.units) == 2 and not again.units[1].sentences, text


def test_sentences_of_a_unit() -> None:
    page = sheet(f"\n- One is it. {LINK} Two, v1.2 {LINK}{LINK}. Three\n")
    (unit,) = page.units
    assert [s.text for s in unit.sentences] == ["One is it.", "Two, v1.2"]
    assert uncited_sentences(unit)[:2] == ["One is it.", "Two, v1.2"]


LINES = st.sampled_from(
    [
        "T mine\n",
        "T mine\nT more\n",
        "ours\n",
        "- ours\n",
        "- T mine\n",
        "## ours\n",
        "## T mine\n",
        "```\nT\n```\n",
    ]
)
GAPS = st.sampled_from(["", "\n", "\n\n", "\n\n\n"])
PAGES = st.lists(st.tuples(LINES, GAPS), max_size=8).map(lambda parts: "".join(a + b for a, b in parts))
REFS = st.sampled_from(["P1", "P2", "P3", "P4", "P5", "S0", "S1", "S2", "S3"])
TEXTS = st.sampled_from(["new", "- new item", "new " * 30])
Step = tuple[str, str, str, str]
NAMES = "append after replace remove add_section rename remove_section contradict clear".split()  # noqa: SIM905
STEPS = st.lists(st.tuples(st.sampled_from(NAMES), REFS, REFS, TEXTS), max_size=12)


def step(page: PageEditor, name: str, ref: str, other: str, text: str) -> None:
    with contextlib.suppress(Refused):
        if name == "append":
            page.append(ref, text)
        elif name == "after":
            page.append(other, text, after=ref)
        elif name in ("replace", "rename", "contradict"):
            getattr(page, name)(ref, text)
        elif name in ("remove", "remove_section"):
            getattr(page, name)(ref)
        elif name == "add_section":
            page.add_section(text)
        else:
            page.clear()


@pytest.mark.hypothesis
@given(PAGES, st.sampled_from(["\n", "\r\n"]), STEPS, st.sampled_from([40, 10_000]))
@example("T mine\n- ours\n", "\n", [("replace", "P2", "", "new")], 40)
@example("- T mine\n- ours\n", "\r\n", [("replace", "P2", "", "new")], 40)
def test_a_persons_words_survive_any_operations(
    text: str, newline: str, steps: list[Step], limit: int
) -> None:
    text = text.replace("\n", newline)
    page = sheet(text, theirs="T", limit=limit)
    theirs = [unit.raw.rstrip(b"\r\n") for unit in page.units if unit.owner != "ours"]
    for one in steps:
        step(page, *one)
    assert [unit.raw.rstrip(b"\r\n") for unit in page.units if unit.owner != "ours"] == theirs
    data = page.data({})
    assert data.startswith(HEAD.encode())
    rows = data.decode().split("\n")
    again = PageEditor(data, PATH, ["person" if "T" in row else "ours" for row in rows], limit)
    assert [unit.raw.rstrip(b"\r\n") for unit in again.units] == [
        unit.raw.rstrip(b"\r\n") for unit in page.units
    ], "it reads back as what was put together"


@pytest.mark.hypothesis
@given(PAGES, STEPS)
def test_what_no_operation_names_keeps_its_bytes(text: str, steps: list[Step]) -> None:
    page = sheet(text, theirs="T")
    before = [(unit, unit.raw) for unit in page.units]
    named = {ref for name, ref, _, _ in steps if name in ("replace", "rename")}
    left = [(unit, raw) for unit, raw in before if unit.ref not in named]
    for one in steps:
        step(page, *one)
    assert all(unit.raw == raw for unit, raw in left if unit in page.units)
