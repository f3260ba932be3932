"""docs/format.md is the specification: each of its examples is parsed and compared with what it promises."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from records_json import as_json, without

from ua_memory.markdown.document import parse
from ua_memory.markdown.fields import FIELDS
from ua_memory.markdown.printer import show
from ua_memory.records import KINDS, ORIGINS, Passage, Record

DOC = Path(__file__).parent.parent / "docs" / "format.md"


@dataclass(frozen=True)
class Example:
    """A file in the document, the line it starts on, and what it promises."""

    path: str
    line: int
    text: str
    promised: list[dict[str, Any]]


def fenced(text: str) -> list[tuple[str, int, str]]:
    """Info string, first line and content of each code block; ua-memory's own parser is not asked."""
    found, info, fence, start, content = [], "", "", 0, list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        if not fence and line.startswith("```"):
            fence = line[: len(line) - len(line.lstrip("`"))]
            info, start, content = line[len(fence) :], number + 1, []
        elif fence and line == fence:
            found.append((info, start, "".join(part + "\n" for part in content)))
            fence = ""
        elif fence:
            content.append(line)
    return found


def examples() -> list[Example]:
    blocks = fenced(DOC.read_text("utf-8"))
    found = []
    for (info, line, text), (next_info, _, promised) in pairwise(blocks):
        if info.startswith("markdown "):
            assert next_info == "json", f"{DOC}:{line}: no promise follows this example"
            found.append(Example(info.removeprefix("markdown "), line, text, json.loads(promised)))
    return found


EXAMPLES = examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: f"line{each.line}")
def test_example_parses_as_promised(example: Example) -> None:
    document = parse(example.text.encode(), example.path)
    found: list[dict[str, Any]] = []
    for record, promise in zip(document.records, example.promised, strict=False):
        left_out = {"lines", "heading"} - set(promise)
        found.append(without(as_json(record), *left_out))
    found += [as_json(record) for record in document.records[len(found) :]]
    found += [{"problem": str(problem)} for problem in document.problems]
    assert found == example.promised


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: f"line{each.line}")
def test_what_an_example_holds_can_be_printed(example: Example) -> None:
    for record in parse(example.text.encode(), example.path).records:
        if isinstance(record, Passage):  # shown, never written
            continue
        again = parse(show(record).encode(), example.path).of(type(record))
        assert again == (record,)


def test_every_kind_of_record_has_an_example() -> None:
    shown = {promise.get("record") for example in EXAMPLES for promise in example.promised}
    assert {kind.__name__ for kind in get_args(Record)} <= shown


def test_every_reserved_key_kind_and_origin_is_documented() -> None:
    text = DOC.read_text("utf-8")
    keys = {row.key for rows in FIELDS.values() for row in rows}
    for word in keys | set(KINDS) | set(ORIGINS):
        assert f"`{word}`" in text or f"- {word}:" in text, f"{word} is not documented"
