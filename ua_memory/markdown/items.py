"""One top-level list item with its children: its lines of text, its metadata, its tags and id.

What belongs to an item: lines indented by two columns or more, blank lines before such a line, and
unindented lines that carry on the item's paragraph. A code fence or a comment inside an item ends
with the item at the latest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from ua_memory.markdown.escapes import decode, is_id, key_of, paragraph_end, split_tail, unescape_start
from ua_memory.markdown.lines import (
    BLANK,
    closes,
    comment_end,
    dedent,
    fence_of,
    heading_level,
    hides,
    indent_of,
    interrupts,
    is_rule,
    marker_of,
)

CHILD = 2
"""Columns of indentation from which a line belongs to the item above it."""


class Role(Enum):
    """What a line of an item is."""

    TEXT = auto()
    BLANK = auto()
    CODE = auto()
    COMMENT = auto()
    META = auto()
    META_MORE = auto()


@dataclass(slots=True)
class Line:
    """A line of an item: its number from 0, its words without the item's indentation, its role."""

    number: int
    words: str
    role: Role


@dataclass(slots=True)
class Meta:
    """A nested item under a reserved key, its value as written, and the lines it takes in the item."""

    key: str
    value: str
    number: int
    lines: range


@dataclass(slots=True)
class Item:
    """A list item as it stands; `start` and `end` number the file's lines from 0, `end` excluded."""

    start: int
    lines: list[Line]
    end: int = 0
    unclosed: list[tuple[int, str]] = field(default_factory=list)
    """Line number and message of each fence or comment that the item's end cut off."""

    @property
    def hidden(self) -> bool:
        """Whether there are only comments in it."""
        return all(line.role in (Role.COMMENT, Role.BLANK) for line in self.lines)

    @property
    def tail(self) -> int:
        """The number of the line that may end in tags and an id, -1 if the item has no paragraph."""
        return self.lines[self._paragraph - 1].number if self._paragraph else -1

    @property
    def _paragraph(self) -> int:
        if self.lines[0].role is not Role.TEXT:
            return 0
        if len(self.lines) == 1:
            return 1
        count = next((k for k, line in enumerate(self.lines) if line.role is not Role.TEXT), len(self.lines))
        return paragraph_end([line.words for line in self.lines[:count]])

    def metas(self) -> list[Meta]:
        """The metadata, in the order it is written."""
        found: list[Meta] = []
        for index, line in enumerate(self.lines):
            if line.role is Role.META:
                value = line.words.partition(":")[2].strip(BLANK)
                found.append(
                    Meta(key_of(line.words.lstrip(" ")), value, line.number, range(index, index + 1))
                )
            elif line.role is Role.META_MORE:
                last = found[-1]
                last.value = f"{last.value}\n{line.words.strip(BLANK)}".strip("\n")
                last.lines = range(last.lines.start, index + 1)
        return found

    def text(self, keep: Collection[int] = ()) -> tuple[str | None, tuple[str, ...], str | None]:
        """Text, tags and id; the text is None if there is none. `keep` are the indices of metadata
        lines that could not be read and therefore are text."""
        if len(self.lines) == 1 and self.lines[0].role is Role.TEXT:
            bare, tags, block_id = split_tail(self.lines[0].words, True)
            return decode(unescape_start(bare)) if bare else None, tags, block_id
        words: list[str] = []
        solid, tags, block_id = 0, (), None
        last = self._paragraph - 1
        for index, line in enumerate(self.lines):
            bare = line.words
            if line.role is Role.BLANK:
                words.extend([""] if words else [])
                continue
            if line.role is Role.TEXT or index in keep:
                if index == last:
                    bare, tags, block_id = split_tail(bare, index == 0)
                elif block_id is None and _lone_id(bare):
                    block_id, bare = bare.strip(BLANK)[1:], ""
                if not bare:
                    continue
                bare = decode(unescape_start(bare))
            elif line.role is not Role.CODE:
                continue
            words.append(bare)
            solid = len(words)
        return "\n".join(words[:solid]) if solid else None, tags, block_id


def _lone_id(words: str) -> bool:
    bare = words.strip(BLANK)
    return bare.startswith("^") and is_id(bare[1:])


class _Reader:
    """Reads the lines of one item, holding what is open: a fence, a comment, a nested item."""

    def __init__(self, lines: Sequence[str], start: int, keys: Collection[str]) -> None:
        self.source, self.keys = lines, keys
        column, chars = indent_of(lines[start])
        rest = lines[start][chars:].rstrip(BLANK)
        marker = marker_of(rest)
        words = rest[len(marker) :].lstrip(BLANK)
        content = indent_of(lines[start][:chars] + " " * len(marker) + rest[len(marker) :])[0]
        behind = column + len(marker)
        self.column = content if content <= behind + 4 else behind + 1
        self.item = Item(start, [])
        self.fence, self.comment, self.opened = "", False, start
        self.child: int | None = None
        self.meta: int | None = None
        self.add(start, words)

    def add(self, number: int, words: str) -> None:
        self.item.lines.append(Line(number, words, self.role(words, number)))

    def role(self, words: str, number: int) -> Role:
        bare = words.lstrip(" ")
        if self.fence:
            if closes(bare, self.fence):
                self.fence = ""
            return Role.CODE
        if self.comment:
            self.comment = "-->" not in bare
            return Role.COMMENT
        indent = len(words) - len(bare)
        if self.meta is not None and indent >= self.meta:
            return Role.META_MORE
        self.meta = None
        if fence := fence_of(bare):
            self.fence, self.opened = fence, number
            return Role.CODE
        if hides(bare):
            self.comment, self.opened = comment_end(bare) < 0, number
            return Role.COMMENT
        if number == self.item.start:
            return Role.TEXT
        return self.text_or_meta(bare, indent)

    def text_or_meta(self, bare: str, indent: int) -> Role:
        marker = marker_of(bare)
        nested = self.child is not None and indent >= self.child
        if not nested:
            self.child = None
            if marker in ("-", "*", "+") and indent <= 3 and key_of(bare) in self.keys:
                self.meta = indent + CHILD
                return Role.META
            if marker:
                self.child = indent + len(marker) + 1
        return Role.TEXT

    def read(self) -> Item:
        at, lines = self.item.start + 1, self.source
        while at < len(lines):
            after = at
            while after < len(lines) and not lines[after].strip(BLANK):
                after += 1
            if after == len(lines) or not self.takes(lines[after], after > at):
                break
            for number in range(at, after):
                self.item.lines.append(Line(number, "", Role.CODE if self.fence else Role.BLANK))
                self.meta = None
            self.add(after, dedent(lines[after], self.column))
            at = after + 1
        self.item.end = self.item.lines[-1].number + 1
        if self.fence or self.comment:
            what = "code fence" if self.fence else "comment"
            self.item.unclosed.append((self.opened, f"this {what} is still open where its list item ends"))
        return self.item

    def takes(self, line: str, after_blank: bool) -> bool:
        """Whether the item goes on with `line`: as a child, or as its paragraph's next line."""
        indent, chars = indent_of(line)
        if indent >= CHILD:
            return True
        last = self.item.lines[-1]
        if after_blank or last.role is not Role.TEXT or self.fence or self.comment:
            return False
        bare = last.words.strip(BLANK)
        words = line[chars:].rstrip(BLANK)
        starts = interrupts(words) or marker_of(words + " x")  # an item with nothing in it ends this one too
        return not (starts or heading_level(bare) or is_rule(bare))


def read_item(lines: Sequence[str], start: int, keys: Collection[str]) -> Item:
    """The item whose marker stands on `lines[start]`; nested items under one of `keys` are metadata."""
    return _Reader(lines, start, keys).read()
