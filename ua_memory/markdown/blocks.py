"""Lines → blocks: headings, list items, paragraphs, code, comments and rules, in file order.

This is the part of CommonMark that decides what is a record and what is not. One pass; no line is
looked at more than a fixed number of times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from ua_memory.markdown.items import Item, read_item
from ua_memory.markdown.lines import (
    BLANK,
    closes,
    comment_end,
    fence_of,
    heading_level,
    hides,
    indent_of,
    interrupts,
    is_rule,
    marker_of,
)


class Shape(Enum):
    """What a block is."""

    HEADING = auto()
    ITEM = auto()
    PARAGRAPH = auto()
    CODE = auto()
    COMMENT = auto()
    RULE = auto()


@dataclass(slots=True)
class Block:
    """A block and its lines, from 0, `end` excluded; `unclosed` tells what runs to the end of the file."""

    shape: Shape
    start: int
    end: int
    item: Item | None = None
    unclosed: str = ""


def scan(lines: Sequence[str], start: int = 0, keys: Collection[str] = ()) -> Iterator[Block]:
    """The blocks of `lines` from `start` on; blank lines between them belong to none."""
    at = start
    while at < len(lines):
        words = lines[at].strip(BLANK)
        if not words:
            at += 1
            continue
        block = _block(lines, at, words, keys)
        yield block
        at = block.end


def _block(lines: Sequence[str], at: int, words: str, keys: Collection[str]) -> Block:
    indent = indent_of(lines[at])[0]
    if indent <= 1 and marker_of(words):
        item = read_item(lines, at, keys)
        return Block(Shape.ITEM, at, item.end, item)
    if indent <= 3:
        if heading_level(words):
            return Block(Shape.HEADING, at, at + 1)
        if fence := fence_of(words):
            return _code(lines, at, fence)
        if hides(words):
            return _comment(lines, at, words)
        if is_rule(words):
            return Block(Shape.RULE, at, at + 1)
    return Block(Shape.PARAGRAPH, at, _paragraph_end(lines, at))


def _code(lines: Sequence[str], at: int, fence: str) -> Block:
    for end in range(at + 1, len(lines)):
        if closes(lines[end].strip(BLANK), fence):
            return Block(Shape.CODE, at, end + 1)
    return Block(Shape.CODE, at, len(lines), unclosed=fence)


def _comment(lines: Sequence[str], at: int, words: str) -> Block:
    if comment_end(words) >= 0:
        return Block(Shape.COMMENT, at, at + 1)
    for end in range(at + 1, len(lines)):
        if "-->" in lines[end]:
            return Block(Shape.COMMENT, at, end + 1)
    return Block(Shape.COMMENT, at, len(lines), unclosed="-->")


def _paragraph_end(lines: Sequence[str], at: int) -> int:
    for end in range(at + 1, len(lines)):
        words = lines[end].strip(BLANK)
        if not words:
            return end
        if interrupts(words):
            indent = indent_of(lines[end])[0]
            if indent <= 1 or (indent <= 3 and not marker_of(words)):
                return end
    return len(lines)
