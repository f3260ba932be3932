"""`show`: a record → its lines. What it prints, `parse` reads back as an equal record.

Text, names and values may be any strings. What cannot be written so that it is read back (an id
with a blank in it, an unknown kind) is refused with Malformed before anything reaches a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ua_memory.errors import Malformed
from ua_memory.markdown.blocks import BlockShape, scan, write_header
from ua_memory.markdown.fields import KEYS, OPINION_KINDS, is_time, write_fields, write_link
from ua_memory.markdown.lines import (
    BLANK,
    encode_text,
    heading_level,
    heading_text,
    is_id,
    is_tag,
    is_visible,
    readable,
)
from ua_memory.records import (
    KINDS,
    ORIGINS,
    CoreBlock,
    Entity,
    Fact,
    MentalModel,
    Observation,
    Opinion,
    Page,
    Passage,
    Record,
    SourceDocument,
    Tombstone,
)

CORE_NAME = "Memory"
"""What a block of core memory is called that stands under no title."""
_CORE_SYNTAX = re.compile(r"[ \t]*(\\*)(?:#{1,2}(?=[ \t]|$)|```|~~~|<!--)")
_CORE_UNSAFE = re.compile("\r|&(?=#(?:13|38);)")


def show(record: Record) -> str:
    """The record's lines joined with newlines, without a final one. Malformed if it cannot be read back."""
    return PRINTERS[type(record)](record)


def through_line(marks: str) -> str:
    """The comment that says how far a session has been read: `<!-- through: client/session/id -->`."""
    if "-->" in marks or not marks.isprintable():
        raise Malformed(f"a through: mark cannot hold {marks!r}")
    return f"<!-- through: {marks} -->"


# list items


def _item(text: str, tags: Sequence[str], block_id: str | None, record: Any) -> str:
    _check(record)
    behind = next((k for k, tag in enumerate(tags) if not is_tag(tag)), len(tags))
    lines = encode_text(text, tags[:behind], block_id, KEYS[type(record)])
    lines += write_fields(record, tags[behind:])
    return "\n".join(("  " if k else "- ") + line if line else "" for k, line in enumerate(lines))


def _check(record: Any) -> None:
    """Refuses values that would be read back as a problem."""
    proofs = [*getattr(record, "proofs", ()), *getattr(record, "because", ())]
    ids = [record.id, *(proof.id for proof in proofs)]
    times = [getattr(record, name, None) for name in ("when", "since", "last", "on")]
    wrong = [value for value in ids if value is not None and not is_id(value)]
    wrong += [value for value in times if value and not is_time(value)]
    if getattr(record, "kind", "world") not in (OPINION_KINDS if isinstance(record, Opinion) else KINDS):
        wrong.append(record.kind)
    if getattr(record, "origin", None) not in (*ORIGINS, None):
        wrong.append(record.origin)
    if not 0 <= (getattr(record, "confidence", None) or 0) <= 1:
        wrong.append(str(record.confidence))
    if not 0 <= (getattr(record, "importance", None) or 0) < 10**9:
        wrong.append(str(record.importance))
    if wrong:
        raise Malformed(f"{wrong[0]!r} cannot be written in a {type(record).__name__.lower()}")


def _statement(record: Fact | Observation | Opinion) -> str:
    return _item(record.text, record.tags, record.id, record)


def _entity(record: Entity) -> str:
    return "\n".join([f"- {write_link(record.name)}", *("  " + line for line in write_fields(record))])


def _tombstone(record: Tombstone) -> str:
    _check(record)
    return "\n".join([f"- ^{record.id}", *("  " + line for line in write_fields(record))])


# files with a front matter


_FRONT = {
    Page: ("id", "name", "source_query", "tags"),
    MentalModel: ("id", "name", "tags"),
    SourceDocument: ("document_id", "source", "chunks"),
}
"""The keys of the front matter, in order; empty ones are left out."""


def _file(record: Page | MentalModel | SourceDocument) -> str:
    values = {key: value for key in _FRONT[type(record)] if (value := getattr(record, key))}
    body = "" if isinstance(record, SourceDocument) else readable(record.body)
    return "\n".join([*write_header(values), *(["", body] if body else [])])


# core memory


def _core(record: CoreBlock) -> str:
    line = f"## [{record.name}]" if record.labelled else f"{'#' if record.top else '##'} {record.name}"
    if core_name(heading_text(line)) != (record.name, record.labelled) or not is_visible(record.name):
        raise Malformed(f"{record.name!r} cannot be the name of a core block")
    value = encode_core(record.value)
    return f"{line}\n\n{value}" if value else line


def core_name(heading: str) -> tuple[str, bool]:
    """The block's name in a heading's text, and whether it is written `[NAME]`."""
    labelled = len(heading) > 2 and heading[0] == "[" and heading[-1] == "]" and "]" not in heading[:-1]
    return (heading[1:-1].strip(BLANK), True) if labelled else (heading, False)


def encode_core(value: str) -> str:
    """A core block's value with one backslash before each line that would end the block: headings of
    level 1 and 2, and fences and comments that are not closed. Blank lines around it are left out."""
    text = _CORE_UNSAFE.sub(lambda match: f"&#{ord(match.group())};", readable(value))
    lines = text.split("\n")
    for at, line in enumerate(lines):
        match = _CORE_SYNTAX.match(line)
        if match and match.group(1):
            lines[at] = line[: match.start(1)] + "\\" + line[match.start(1) :]
    while bad := _ending_lines(lines):
        for at in bad:
            indent = len(lines[at]) - len(lines[at].lstrip(BLANK))
            lines[at] = lines[at][:indent] + "\\" + lines[at][indent:]
    return strip_blank("\n".join(lines))


def _ending_lines(lines: Sequence[str]) -> list[int]:
    found = []
    for block in scan(lines):
        words = lines[block.start].strip(BLANK)
        if block.unclosed or (block.shape is BlockShape.HEADING and heading_level(words) <= 2):
            found.append(block.start)
    return found


def decode_core(lines: Sequence[str]) -> str:
    """The value that stands on `lines`; the inverse of `encode_core`."""
    found = []
    for line in lines:
        match = _CORE_SYNTAX.match(line)
        if match and match.group(1):
            line = line[: match.start(1)] + line[match.start(1) + 1 :]
        found.append(line.replace("&#13;", "\r").replace("&#38;", "&") if "&#" in line else line)
    return strip_blank("\n".join(found))


def strip_blank(text: str) -> str:
    """`text` without the blank lines at its start and end."""
    lines = text.split("\n")
    full = [k for k, line in enumerate(lines) if line.strip(BLANK)]
    return "\n".join(lines[full[0] : full[-1] + 1]) if full else ""


PRINTERS: dict[type, Callable[[Any], str]] = {
    Fact: _statement,
    Observation: _statement,
    Opinion: _statement,
    Entity: _entity,
    Tombstone: _tombstone,
    Page: _file,
    MentalModel: _file,
    SourceDocument: _file,
    CoreBlock: _core,
    Passage: lambda record: readable(record.text),
}
