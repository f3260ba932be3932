"""Any text is read back exactly, and plain text is written as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records_strategies import FACTS, IDS, TEXTS

from ua_memory.errors import Malformed
from ua_memory.markdown.document import parse
from ua_memory.markdown.lines import hashtags, is_tag
from ua_memory.markdown.printer import show
from ua_memory.records import Entity, Fact, Opinion

LOG = "memory/2026-11-21.md"

ORDINARY = [
    "Alice moved the API to Fly.io because Heroku's price doubled.",
    "C:\\tmp\\x is the folder",
    "\\d+ matches digits; use \\n for a newline",
    "a_b*c, **bold**, *it*, `code`, ~tilde~",
    "#1 priority",
    "#12",
    "##no heading",
    "2 - 1",
    "5) x",
    "1. is a number",
    "-5 degrees",
    "+1 from Bob",
    "[ ] call Carol",
    "[x] called Carol",
    "see [[2026-11-21#^k7m2q9x4tb]]",
    "https://example.org/#top?a=1&b=2",
    "AT&T, &amp; and & alone, R&D;",
    "a #tag in the middle",
    "C# and F#",
    "mail me at a@b.c <a@b.c>",
    "when: soon",
    "time: 12:30 - 13:00",
    "~5 minutes, ~~gone~~",
    "a | b | c",
    "^ is a caret, x^2 too",
    "日本語 と English",
    "$PATH, %TEMP%, ${x}",
    "--flag and -f",
    "*",
    "-",
    "> 5 of them",
    'he said "no" (twice)',
    "ends with a backslash \\",
    "x <!-- y --> z",
    "---",
]
NOT_QUITE = {"---"}


@pytest.mark.parametrize("text", [text for text in ORDINARY if text not in NOT_QUITE])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert show(Fact(text)) == f"- {text}"
    assert parse(f"- {text}".encode(), LOG).records == (Fact(text),)


def test_nested_lists_and_code_stay_as_they_are() -> None:
    text = (
        "Steps:\n- one\n  - deeper\n1. two\n\n> quoted\n\n```sh\n- when: x\n\n  ls  -l # ^id\n```\nmood: fine"
    )
    assert show(Fact(text)) == "- " + text.replace("\n", "\n  ").replace("\n  \n", "\n\n")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("done #infra", "- done \\#infra"),
        ("see ^k7m2", "- see \\^k7m2"),
        ("^k7m2", "- \\^k7m2"),
        ("## [SYSTEM]", "- \\## [SYSTEM]"),
        ("a\n  - origin: person", "- a\n    \\- origin: person"),
        ("a\n- origin: person", "- a\n  \\- origin: person"),
        ("```\nnever closed", "- \\```\n  never closed"),
        ("a\n```\nnever closed", "- a\n  \\```\n  never closed"),
        ("---\na: b\n---", "- \\---\n  a: b\n  \\---"),
        ("- -", "- \\- -"),
        ("a\n===", "- a\n  \\==="),
        ("a <!-- b -->", "- a \\<!-- b -->"),
        ("<!-- through: a/b/c -->", "- \\<!-- through: a/b/c -->"),
        ("", "- \\"),
        ("\n", "- \\\n  \\"),
        ("a\n\nb", "- a\n\n  b"),
        (" a ", "- &#32;a&#32;"),
        ("a\r\nb\x85c\u2028d\ufeff", "- a&#13;\n  b&#133;c&#8232;d&#65279;"),
        ("\ta\n\tb", "- &#9;a\n  &#9;b"),
        ("&#10; and &#x41;", "- &#38;#10; and &#38;#x41;"),
        ("\\- a", "- \\\\- a"),
        ("1\\. a", "- 1\\\\. a"),
        ("\ud800", "- \ufffd"),
    ],
)
def test_escapes(text: str, lines: str) -> None:
    assert show(Fact(text)) == lines


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("- \\# no heading", "# no heading"),
        ("- 1986\\. A great year", "1986. A great year"),
        ("- a&#32;&#233;", "a é"),
        ("- &#55296; &#1114112; &#x41; &amp;", "&#55296; &#1114112; &#x41; &amp;"),
        ("- \\*not emphasis*", "*not emphasis*"),
        ("- really \\#infra", "really #infra"),
        ("- a  ", "a"),
        ("-    a", "a"),
        ("-\ta", "a"),
    ],
)
def test_escapes_written_by_hand(line: str, text: str) -> None:
    assert parse(line.encode(), LOG).records == (Fact(text),)


@given(TEXTS, st.none() | IDS, st.booleans())
def test_any_text_is_one_fact_with_exactly_that_text(text: str, block_id: str | None, tagged: bool) -> None:
    fact = Fact(text, id=block_id, tags=("infra", "a/b") if tagged else ())
    document = parse(show(fact).encode(), LOG)
    assert document.records == (fact,)
    assert document.problems == ()
    assert show(document.records[0]) == show(fact)


@given(st.lists(FACTS, min_size=2, max_size=4), st.sampled_from(["\n", "\n\n"]), st.booleans())
def test_facts_in_one_file_stay_apart(facts: list[Fact], gap: str, crlf: bool) -> None:
    data = ("# Log\n\n" + gap.join(map(show, facts)) + "\n").encode()
    document = parse(data.replace(b"\n", b"\r\n") if crlf else data, LOG)
    assert document.records == tuple(facts)
    assert document.through == ()


@given(TEXTS)
def test_a_text_with_half_a_character_gets_the_replacement_character(text: str) -> None:
    document = parse(show(Fact("\udcff" + text + "\ud83d")).encode(), LOG)
    assert document.of(Fact)[0].text == "\ufffd" + text + "\ufffd"


def test_tags_that_obsidian_cannot_hold_are_listed() -> None:
    fact = Fact("a", tags=("infra", "cwd:/a b", "db"))
    assert show(fact) == '- a #infra\n  - tags: ["cwd:/a b", "db"]'


@pytest.mark.parametrize("word", ["infra", "a/b", "x-1", "1a", "été", "_", "日本", "🙂"])
def test_tags(word: str) -> None:
    assert is_tag(word)


@pytest.mark.parametrize("word", ["", "12", "a b", "a,b", "a:b", "c#", "٣", "a\u00a0b"])
def test_no_tags(word: str) -> None:
    assert not is_tag(word)


def test_hashtags_within_a_text() -> None:
    text = "#one and (#no) a#no #two, #12 #three/four: C#\n#five\t#six"
    assert hashtags(text) == ("one", "two", "three/four", "five", "six")


@pytest.mark.parametrize(
    "record",
    [
        Fact("a", id="has blank"),
        Fact("a", when="soon"),
        Fact("a", when="2026-02-30"),
        Fact("a", kind="banana"),  # type: ignore[arg-type]
        Fact("a", importance=-1),
        Opinion("a", kind="world"),
        Opinion("a", confidence=1.5),
    ],
)
def test_what_could_not_be_read_back_is_refused(record: Fact | Opinion) -> None:
    with pytest.raises(Malformed):
        show(record)


def test_names_keep_their_brackets_bars_and_commas() -> None:
    entity = Entity("a]]b|c", ("Fly.io, Inc.", "[[x]]", "plain"), ("d]",))
    assert parse(show(entity).encode(), "memory/entities.md").records == (entity,)
