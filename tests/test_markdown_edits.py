"""Edits change what they were asked to change, and not one byte more."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records_strategies import FACTS, TEXTS

from ua_memory.errors import Malformed
from ua_memory.markdown.blocks import heading_line
from ua_memory.markdown.document import append, parse, set_front, with_id
from ua_memory.markdown.lines import insert_after, replace_lines
from ua_memory.markdown.printer import show, through_line
from ua_memory.records import Fact, Heading, Place

LOG = "memory/2026-11-21.md"
FILES = st.lists(
    st.one_of(
        TEXTS.map(lambda text: text.encode()),
        st.sampled_from(
            [b"\n", b"\n- a", b"\n  b", b"\xff", b"\r\n", b"\n```\n", b"\n<!--", b"---\na: 1\n---\n"]
        ),
    )
).map(b"".join)


@given(FILES, FACTS)
def test_an_appended_fact_is_read_and_nothing_else_changes(data: bytes, fact: Fact) -> None:
    before = parse(data, LOG)
    after = append(data, ["## 14:32 · cli", "", *show(fact).split("\n")])
    assert after.startswith(data)
    document = parse(after, LOG)
    assert document.of(Fact) == (*before.of(Fact), fact)
    assert document.of(Fact)[-1].heading.time == "14:32"


@pytest.mark.parametrize(
    ("data", "result"),
    [
        (b"", b"## h\n- x\n"),
        (b"- a", b"- a\n\n## h\n- x\n"),
        (b"- a\n", b"- a\n\n## h\n- x\n"),
        (b"- a\n\n", b"- a\n\n## h\n- x\n"),
        (b"- a\r\n- b", b"- a\r\n- b\r\n\r\n## h\r\n- x\r\n"),
        (b"\xef\xbb\xbf", b"\xef\xbb\xbf## h\n- x\n"),
        (b"```\ncode\n", b"```\ncode\n```\n\n## h\n- x\n"),
        (b"<!-- a", b"<!-- a\n-->\n\n## h\n- x\n"),
        (b"- \xff\n", b"- \xff\n\n## h\n- x\n"),
    ],
)
def test_append(data: bytes, result: bytes) -> None:
    assert append(data, ["## h", "- x"]) == result


def test_append_puts_items_together() -> None:
    assert append(b"- a\n", ["- b", "  - when: 2026"]) == b"- a\n- b\n  - when: 2026\n"
    assert append(b"- a", []) == b"- a"
    assert append(b"- a\n", ["- b\n  c"]) == b"- a\n- b\n  c\n"


@given(FILES, st.integers(0, 30))
def test_insert_after_keeps_all_lines(data: bytes, line: int) -> None:
    after = insert_after(data, line, ["NEW"])
    at = after.index(b"NEW")
    end = at + 3 + (2 if after[at + 3 : at + 4] == b"\r" else 1)
    assert (after[:at] + after[end:]).rstrip(b"\r\n") == data.rstrip(b"\r\n")


@pytest.mark.parametrize(
    ("data", "line", "result"),
    [
        (b"a\nb\n", 0, b"N\na\nb\n"),
        (b"a\nb\n", 1, b"a\nN\nb\n"),
        (b"a\nb\n", 2, b"a\nb\nN\n"),
        (b"a\nb", 2, b"a\nb\nN\n"),
        (b"a\nb\n", 9, b"a\nb\nN\n"),
        (b"\xef\xbb\xbfa\r\nb", 0, b"\xef\xbb\xbfN\r\na\r\nb"),
        (b"", 0, b"N\n"),
    ],
)
def test_insert_after(data: bytes, line: int, result: bytes) -> None:
    assert insert_after(data, line, ["N"]) == result


@pytest.mark.parametrize(
    ("data", "lines", "new", "result"),
    [
        (b"a\nb\nc\n", (2, 2), ["x", "y"], b"a\nx\ny\nc\n"),
        (b"a\nb\nc\n", (1, 3), [], b""),
        (b"a\nb\nc", (3, 3), ["x"], b"a\nb\nx"),
        (b"a\nb\r\nc\n", (2, 3), ["x"], b"a\nx\n"),
        (b"a\r\nb", (2, 2), ["x", "y"], b"a\r\nx\r\ny"),
        (b"\xef\xbb\xbfa\nb\n", (1, 1), ["x"], b"\xef\xbb\xbfx\nb\n"),
    ],
)
def test_replace_lines(data: bytes, lines: tuple[int, int], new: list[str], result: bytes) -> None:
    assert replace_lines(data, Place(LOG, *lines), new) == result


def test_replace_lines_past_the_end() -> None:
    with pytest.raises(IndexError):
        replace_lines(b"a\n", Place(LOG, 3, 3), ["x"])


@given(FILES, st.data())
def test_a_fact_can_be_replaced(data: bytes, drawn: st.DataObject) -> None:
    facts = parse(data, LOG).of(Fact)
    if not facts:
        return
    number = drawn.draw(st.integers(0, len(facts) - 1))
    new = drawn.draw(FACTS)
    after = replace_lines(data, facts[number].place, show(new).split("\n"))
    assert new in parse(after, LOG).of(Fact)


# ids


@pytest.mark.parametrize(
    ("data", "result"),
    [
        (b"- a", b"- a ^k7m2"),
        (b"x\n\n- a #x\r\n  - when: 2026\r\n", b"x\n\n- a #x ^k7m2\r\n  - when: 2026\r\n"),
        (b"- a\n  b\n\n  c\n", b"- a\n  b ^k7m2\n\n  c\n"),
        (b"- a\nb\n", b"- a\nb ^k7m2\n"),
        (b"- a <!-- note -->\n", b"- a <!-- note --> ^k7m2\n"),
        (b"- a\n  - b\n", b"- a ^k7m2\n  - b\n"),
        (b"- ```\n  code\n  ```\n- b\n", b"- ```\n  code\n  ```\n  ^k7m2\n- b\n"),
        (b"- caf\xe9\n", b"- caf\xe9 ^k7m2\n"),
        (b"7) a\n", b"7) a ^k7m2\n"),
    ],
)
def test_with_id(data: bytes, result: bytes) -> None:
    fact = parse(data, LOG).of(Fact)[0]
    assert with_id(data, fact, "k7m2") == result
    assert parse(result, LOG).of(Fact)[0].id == "k7m2"


def test_with_id_on_an_older_entry() -> None:
    data = "## 2026-11-21T14:03:11+00:00 — s\n\n- session: x\n- summary: a\n- tags: t\n".encode()
    fact = parse(data, LOG).of(Fact)[0]
    assert with_id(data, fact, "k7m2") == data.replace(b"summary: a", b"summary: a ^k7m2")


@given(FILES, st.data())
def test_with_id_changes_one_id(data: bytes, drawn: st.DataObject) -> None:
    facts = parse(data, LOG).of(Fact)
    if not facts:
        return
    fact = drawn.draw(st.sampled_from(facts))
    try:
        after = with_id(data, fact, "newnewnew2")
    except Malformed:  # what would change more than this id is refused; the cases above must not be
        return
    assert (
        after.replace(b" ^newnewnew2", b"", 1) == data
        or after.replace(b"  ^newnewnew2", b"", 1).split() == data.split()
    )


@pytest.mark.parametrize("data", [b"- a ^other\n", b"- ```\n  open\n", b"text\n"])
def test_with_id_refuses(data: bytes) -> None:
    fact = next(iter(parse(data, LOG).of(Fact)), Fact("a", place=Place(LOG, 1, 1)))
    with pytest.raises(Malformed):
        with_id(data, fact, "k7m2")
    with pytest.raises(Malformed):
        with_id(data, fact, "no id")


# lines of ours


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        (("14:32", "claude-code", "8f2c", "tool"), "## 14:32 · claude-code · session 8f2c · tool"),
        (("14:32", "cli", None, None), "## 14:32 · cli"),
        (("14:32", "a\n- b · c", None, None), "## 14:32 · a - b - c"),
        (("14:32", "web", None, None), "## 14:32 · client web"),
    ],
)
def test_heading_line(parts: tuple[Any, ...], line: str) -> None:
    assert heading_line(*parts) == line
    heading = parse(f"{line}\n- a\n".encode(), LOG).of(Fact)[0].heading
    assert (heading.time, heading.session, heading.origin) == (parts[0], parts[2], parts[3])
    assert isinstance(heading, Heading)


def test_through_line() -> None:
    line = through_line("claude-code/8f2c/01JD, pi/1/2")
    assert parse(f"text\n{line}\n".encode(), LOG).through == ("claude-code/8f2c/01JD", "pi/1/2")
    for marks in ("a --> b", "a\nb"):
        with pytest.raises(Malformed):
            through_line(marks)


# front matter

HEADER = b"""\
---
# kept: comments
id: 007   # keep me
name: "A: b"

tags:
  - one   # inner
  - two
# before created
created: 2026-01-01
source_query: >-
  where do
  we run
last: x
---

  body
"""


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        ({"name": "C"}, b'name: "A: b"', b"name: C"),
        ({"id": "008"}, b"id: 007   #", b'id: "008"   #'),
        ({"id": 7}, b"", b""),
        ({"tags": ["x, y", "z"]}, b"tags:\n  - one   # inner\n  - two\n", b'tags: ["x, y", z]\n'),
        ({"tags": None}, b"tags:\n  - one   # inner\n  - two\n", b""),
        ({"source_query": "who"}, b"source_query: >-\n  where do\n  we run\n", b"source_query: who\n"),
        ({"last": None}, b"last: x\n", b""),
        ({"new": "a\x85b\u2028"}, b"last: x\n", b'last: x\nnew: "a\\u0085b\\u2028"\n'),
        ({"last": "yes", "new": "no"}, b"last: x\n", b'last: "yes"\nnew: "no"\n'),
        ({"gone": None}, b"", b""),
    ],
)
@pytest.mark.parametrize("crlf", [False, True])
def test_set_front(changes: dict[str, Any], old: bytes, new: bytes, crlf: bool) -> None:
    def styled(data: bytes) -> bytes:
        return data.replace(b"\n", b"\r\n") if crlf else data

    after = set_front(styled(HEADER), changes)
    assert after == styled(HEADER.replace(old, new, 1))
    assert set_front(after, changes) == after


def test_set_front_makes_a_header() -> None:
    assert set_front(b"\xef\xbb\xbfbody\r\n", {"id": "a"}) == b"\xef\xbb\xbf---\r\nid: a\r\n---\r\nbody\r\n"
    assert set_front(b"body", {"id": None}) == b"body"


@pytest.mark.parametrize(
    "data",
    [
        b"---\na: [\n---\n",
        b"---\n{a: 1}\n---\n",
        b"---\na: &x 1\nb: *x\n---\n",
        b"---\n- a\n---\n",
        b"---\na: 1\n",
    ],
)
def test_set_front_refuses_what_it_cannot_keep(data: bytes) -> None:
    with pytest.raises(Malformed):
        set_front(data, {"b": 2})


@given(TEXTS, st.sampled_from(["id", "name", "tags", "last", "other"]))
def test_set_front_sets_any_text(text: str, key: str) -> None:
    after = set_front(HEADER, {key: text})
    document = parse(after, "memory/pages/a.md")
    assert document.front[key] == text
    assert after.endswith(b"---\n\n  body\n")
    kept = [line for line in HEADER.split(b"\n") if line.startswith(b"#")]
    assert all(line in after.split(b"\n") for line in kept)
