"""A log that is read again from where it differs is read as it would be from its beginning (I30, I51)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ua_memory.index import items
from ua_memory.markdown import document as markdown
from ua_memory.markdown import reader as again
from ua_memory.markdown.blocks import read_header
from ua_memory.markdown.reader import Reader

PATH = "memory/2026-11-21.md"
LINES = (
    *(
        "",
        "",
        "- one ^k7m2q9x4tb",
        "- one",
        "- two #tag",
        "- three ^k7m2q9x4tb",
        "1. four",
        "-",
        "- - nested",
    ),
    *("  - when: 2026-11-19", "  more of it", "lazy", "  - kind: nonsense", "    deep", "   - odd"),
    *("# Day", "## 14:32 · claude-code · session 8f2c", "## 15:00 · web", "### Below", "## Prose"),
    *("<!-- through: a/1/b, c/2/d -->", "<!-- tags: project:x -->", "<!-- open", "closed -->"),
    *("```", "  ```", "~~~ text", "- ```", "---", "***", "===", "Prose that goes on.", "> quoted"),
    *("## 2026-11-21T14:32:00 — telegram", "- session: s", "- tags: a, b", "- summary: said", "key: value"),
)
LOG = st.lists(st.sampled_from(LINES), min_size=1, max_size=40)
CHANGE = st.tuples(st.integers(0, 60), st.integers(0, 3), st.lists(st.sampled_from(LINES), max_size=4))


def found(reader: Reader) -> tuple[object, ...]:
    reader.read()
    return reader.records, reader.problems, reader.through, reader.unclosed


@given(LOG, st.lists(CHANGE, max_size=5))
def test_what_is_read_again_is_what_is_there(
    log: list[str], changes: list[tuple[int, int, list[str]]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(again, "BLOCKS_BETWEEN_POINTS", 1)
        recent = again.RecentReaders()
        for at, away, new in [(0, 0, []), *changes, (len(log), 0, ["- at the end"])]:
            log[at : at + away] = new
            lines, header = tuple(log), read_header(log)
            assert found(again.IncrementalReader(PATH, lines, header, recent)) == found(
                Reader(PATH, lines, header)
            )


def test_of_a_long_day_only_the_end_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks: list[int] = []
    real = Reader._block
    monkeypatch.setattr(Reader, "_block", lambda self, block: (blocks.append(block.start), real(self, block)))
    day = b"## 14:32 \xc2\xb7 cli\n\n" + b"".join(b"- Fact number %d.\n" % n for n in range(2000))
    first = markdown.parse(day, PATH)
    assert len(blocks) == 2001
    blocks.clear()
    more = markdown.parse(day + b"- One more.\n", PATH)
    assert len(blocks) <= again.BLOCKS_BETWEEN_POINTS + 1
    assert more.records[:2000] == first.records and more.records[0] is first.records[0]
    assert more.records[-1].place.line == 2003


def test_the_rows_of_what_is_read_again_are_those_of_what_is_there() -> None:
    day = [f"- Fact number {n % 290}." if n % 7 else f"- Fact ^k7m2q{n:05}" for n in range(300)]
    prose = [*day, "Prose of a person."]
    secret = [*day, "- The password: hunter2hunter2"]
    talk = [*day, "- Ann: Yes, last Tuesday!", "- Bob: No.", "- Ann: Yes.", "- Bob: Well."]
    moved = ["", *day]
    versions = [day, [*day, day[5]], secret, prose, talk, [*prose, "- one more"], moved, day[:280], day]

    def hidden(text: str) -> str:
        return text.replace("hunter2hunter2", "[secret]")

    made: list[list[items.IndexItem]] = []
    logs = items.LogCache()
    for lines in versions:
        document = markdown.parse("\n".join(["## 14:32 · cli", "", *lines]).encode(), PATH)
        made.append(list(items.items_of(document, hidden, logs)))
        assert made[-1] == list(items.items_of(document, hidden))
    assert made[1][7] is made[0][7]
    assert "hunter2" not in repr(made[2])
