"""parse and show over whole files: round trips, golden files, any bytes, and the kinds of records."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from records_json import as_json
from records_strategies import PATHS, RECORDS, TEXTS

from ua_memory.markdown.document import append, parse, texthash, with_id
from ua_memory.markdown.fields import FIELDS
from ua_memory.markdown.lines import replace_lines, split
from ua_memory.markdown.printer import PRINTERS, show
from ua_memory.records import Fact, Heading, Place, Problem, Record

LOG = "memory/2026-11-21.md"
GOLDEN = Path(__file__).parent / "golden" / "format"
SHARED = Path(os.environ.get("UA_SHARED", Path(__file__).parents[2] / "shared")) / "data" / "logs" / "clawd"


# every kind of record


def test_a_kind_of_record_is_printed_built_and_placed() -> None:
    kinds = set(get_args(Record))
    assert kinds == set(PRINTERS), "a kind without a printer in printer.py, or a printer too many"
    assert kinds == set(RECORDS) == set(PATHS), (
        "a kind without a strategy and a path in records_strategies.py"
    )


def test_every_kind_of_record_stands_in_a_golden_file() -> None:
    shown = {entry["record"] for path in GOLDEN.rglob("*.json") for entry in _golden(path)["records"]}
    assert shown == {kind.__name__ for kind in get_args(Record)}


def _golden(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return value


@pytest.mark.parametrize("kind", list(RECORDS), ids=lambda kind: kind.__name__)
@given(st.data())
def test_what_is_shown_is_read_back(kind: type, data: st.DataObject) -> None:
    record = data.draw(RECORDS[kind])
    lines = show(record)
    document = parse(lines.encode(), PATHS[kind])
    assert document.of(kind) == (record,)
    assert show(document.of(kind)[0]) == lines
    whole_file = kind not in FIELDS
    assert document.problems == () or whole_file
    assert whole_file or len(document.records) == 1


def test_metadata_has_one_order() -> None:
    written = (
        "- a #x ^k7m2\n  - flag: f\n  - retired: r\n  - origin: web (t)\n"
        '  - was: w (d)\n  - seen: s\n  - quote: "q" (1)\n'
        "  - entities: A\n  - importance: 3\n  - cause: c\n  - why: y\n  - who: o\n"
        "  - where: w\n  - when: 2026\n"
        '  - kind: risk\n  - tags: ["t t"]\n'
    )
    shown = show(parse(written.encode(), LOG).records[0])
    keys = [line.strip()[2:].partition(":")[0] for line in shown.split("\n")[1:]]
    assert keys == [row.key for row in FIELDS[Fact]]


# golden files: a small bank, each file with what is read from it beside it


@pytest.mark.parametrize(
    "path", sorted(GOLDEN.rglob("*.md")), ids=lambda path: path.relative_to(GOLDEN).as_posix()
)
def test_golden(path: Path, golden: Callable[[Path, bytes], None]) -> None:
    document = parse(path.read_bytes(), path.relative_to(GOLDEN).as_posix())
    found = {
        "records": [as_json(record) for record in document.records],
        "problems": [str(problem) for problem in document.problems],
        "front": json.loads(json.dumps(document.front, default=str)),
        "through": list(document.through),
        "file": {
            "lines": len(document.lines),
            "newline": document.newline,
            "final_newline": document.final_newline,
            "bom": document.bom,
            "front_end": document.front_end,
        },
    }
    golden(path.with_suffix(".json"), _one_a_line(found).encode())
    assert_stable(path.read_bytes(), path.relative_to(GOLDEN).as_posix())


def _one_a_line(found: dict[str, Any]) -> str:
    """JSON with each record, problem and mark on a line of its own, so that a diff can be read."""
    parts = []
    for name, value in found.items():
        shown = json.dumps(value, ensure_ascii=False)
        if isinstance(value, list) and value:
            shown = "[\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in value) + "\n]"
        parts.append(f'"{name}": {shown}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def test_golden_files_are_there() -> None:
    assert len(list(GOLDEN.rglob("*.md"))) > 20


def assert_stable(data: bytes, path: str) -> None:
    """parse∘show is the identity on the file's records, and no edit changes a byte it was not asked to."""
    document = parse(data, path)
    for record in document.records:
        if type(record) in FIELDS:
            assert parse(show(record).encode(), path).of(type(record)) == (record,)
    again = append(data, ["- x"])
    assert again.startswith(data)
    assert again[len(data) :].strip().endswith(b"- x")
    assert replace_lines(again, Place(path, len(split(again).lines), len(split(again).lines)), []).startswith(
        data
    )


# any bytes


_PIECES = TEXTS.map(str.encode) | st.sampled_from([b"\n", b"\n- ", b"\n  ", b"\xff", b"\r\n"])
BYTES = st.binary(max_size=200) | st.lists(_PIECES).map(b"".join)


@given(BYTES, st.sampled_from(sorted(PATHS.values())))
def test_parse_never_raises_and_places_lie_within_the_file(data: bytes, path: str) -> None:
    document = parse(data, path)
    for record in document.records:
        assert 1 <= record.place.line <= record.place.end <= len(document.lines)
    for problem in document.problems:
        assert 1 <= problem.line <= max(1, len(document.lines))
    assert document.of(Fact) == tuple(record for record in document.records if isinstance(record, Fact))


@given(BYTES)
def test_lines_are_the_bytes(data: bytes) -> None:
    source = split(data)
    body = data[3:] if source.bom else data
    pieces = body.split(b"\n")
    assert [line.encode("utf-8", "surrogateescape") for line in source.lines] == [
        piece.removesuffix(b"\r") if number < len(pieces) - 1 else piece
        for number, piece in enumerate(pieces)
        if piece or number < len(pieces) - 1
    ]


@given(BYTES)
def test_facts_read_from_any_bytes_are_read_back(data: bytes) -> None:
    assert_stable(data, LOG)


def test_bytes_that_are_no_utf8() -> None:
    document = parse(b"# a\n\n- caf\xe9 \xff #x ^k7m2\n- fine\n", LOG)
    assert document.records == (Fact("caf\ufffd \ufffd", id="k7m2", tags=("x",)), Fact("fine"))
    assert document.problems == (Problem(LOG, 3, "byte 0xe9 in column 6 is not UTF-8"),)
    assert document.lines[2].encode("utf-8", "surrogateescape") == b"- caf\xe9 \xff #x ^k7m2"
    (wide,) = parse("- wide\n".encode("utf-16"), LOG).problems
    assert "UTF-16; convert it: iconv" in str(wide)


@pytest.mark.few(5)
@pytest.mark.parametrize(
    "data",
    [
        b"- a #x ^k7\n  - when: 2026\n" * 5_000,
        b"- a\n" + b"  - entities: [[A]]\n" * 5_000,
        b"- a\n" + b"  - when: x\n" * 5_000,
        b"".join(b" " * k + b"- x\n" for k in range(500)),
        b"- " * 75_000 + b"a",
        b"- x " + b"#a " * 25_000,
        b"- x" + b"\t#a" * 500_000,
        b"- x " + b"<!--a--> " * 25_000,
        b"- x " + b"<!-- " * 25_000 + b"-->",
        b"- " + b"\\" * 75_000 + b"#a",
        b"<!--\n" * 25_000,
        b"- <!--\n" * 5_000,
        b"```a\n" * 25_000,
        b"- a\n" + b"  ```a\n" * 12_500,
        b"- a\n" + b"\n" * 75_000 + b"  b\n",
        b"x" * 250_000,
        b"x. " * 75_000,
        b"- a &#1" * 25_000,
        b"- a\n  - entities: " + b"[[" * 75_000,
        b"- a\n  - tags: " + b"[" * 75_000,
        b"---\n" + b"[" * 15_000 + b"\n---\n",
        b"---\na: &a [x]\n" + b"".join(b"b%d: &b%d [*a,*a]\n" % (k, k) for k in range(99)) + b"---\n",
        b"# a\n## b\n" * 5_000,
        b"\xff\n" * 12_500,
    ],
    ids=lambda data: repr(data[:12]),
)
def test_no_file_takes_more_than_linear_time(data: bytes) -> None:
    """Each takes half a minute, or the stack, once some step is quadratic, and a tenth of a second now."""
    began = time.process_time()
    parse(data, LOG)
    if not data.startswith(b"---"):
        parse(data, "MEMORY.md")
    assert time.process_time() - began < 5


@pytest.mark.slow
def test_a_long_text_is_printed_in_linear_time() -> None:
    for text in ("```a\n" * 20_000, "#a " * 100_000, "a\n" * 100_000, "\\" * 300_000, "- when: x\n" * 20_000):
        assert parse(show(Fact(text)).encode(), LOG).records == (Fact(text),)


def test_texthash() -> None:
    assert texthash("a") == "ca978112ca1bbdca"
    assert texthash("\udcff") != texthash("\ufffd")


# a real workspace, where it is at hand


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared logs are not here")
def test_a_real_workspace() -> None:
    facts = 0
    for path in sorted(SHARED.rglob("*.md")):
        data, name = path.read_bytes(), path.relative_to(SHARED).as_posix()
        document = parse(data, name)
        assert document.problems == ()
        assert_stable(data, name)
        facts += len(document.of(Fact))
        for fact in document.of(Fact)[:3]:
            changed = with_id(data, fact, "k7m2q9x4tb")
            assert changed.replace(b" ^k7m2q9x4tb", b"") == data
    assert facts > 1000


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared logs are not here")
def test_the_items_of_a_real_workspace_are_those_of_commonmark() -> None:
    markdown_it = pytest.importorskip("markdown_it")
    reference = markdown_it.MarkdownIt("commonmark").enable("table")
    for path in sorted((SHARED / "memory").rglob("*.md")):
        tokens = reference.parse(path.read_text("utf-8"))
        items = [token.map[0] + 1 for token in tokens if token.type == "list_item_open" and token.level == 1]
        assert [fact.place.line for fact in parse(path.read_bytes(), LOG).of(Fact)] == items


def test_headings_give_their_items_what_they_say() -> None:
    text = "# 2026\n## 14:32 · pi · session 1 · web\n- a\n### x ##\n- b\n## other\n- c\n## 24:00 · no\n- d\n"
    headings = [fact.heading for fact in parse(text.encode(), LOG).of(Fact)]
    ours = "14:32 · pi · session 1 · web"
    assert headings == [
        Heading(("2026", ours), "14:32", "pi", "1", "web"),
        Heading(("2026", ours, "x"), "14:32", "pi", "1", "web"),
        Heading(("2026", "other")),
        Heading(("2026", "24:00 · no")),
    ]


@pytest.mark.parametrize(
    "data",
    ['json\n{\n\t"type": "excalidraw",\n\t"version": 2\n}', "compressed-json\nN4KAkARALgngDgUwgLgAQQQ"],
)
def test_the_data_of_an_excalidraw_drawing_are_no_text(data: str) -> None:
    top = "---\nexcalidraw-plugin: parsed\n---\n# Text Elements\nice core ^a1\n\n"
    document = parse(f"{top}%%\n# Drawing\n```{data}\n```\n%%\n".encode(), "drawings/core.excalidraw.md")
    assert [getattr(record, "text", "") for record in document.records] == ["ice core ^a1\n\n%%"]
