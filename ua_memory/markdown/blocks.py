"""Lines to blocks: front matter, headings, list items, paragraphs, passages."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, auto
from functools import cache
from typing import Any

from ua_memory.errors import Malformed
from ua_memory.markdown.lines import (
    BLANK,
    closes,
    comment_end,
    decode,
    dedent,
    fence_of,
    heading_level,
    hides,
    indent_of,
    interrupts,
    is_id,
    is_rule,
    key_of,
    marker_of,
    paragraph_end,
    readable,
    split_tail,
    unescape_start,
)
from ua_memory.records import ORIGINS, Heading, Origin

# -- items -------------------------------------------------------------------------------------------------
# One top-level list item with its children: its lines of text, its metadata, its tags and id.
#
# What belongs to an item: lines indented by two columns or more, blank lines before such a line, and
# unindented lines that carry on the item's paragraph. A code fence or a comment inside an item ends with
# the item at the latest.


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
                elif block_id is None and (lone := bare.strip(BLANK)).startswith("^") and is_id(lone[1:]):
                    block_id, bare = lone[1:], ""
                if not bare:
                    continue
                bare = decode(unescape_start(bare))
            elif line.role is not Role.CODE:
                continue
            words.append(bare)
            solid = len(words)
        return "\n".join(words[:solid]) if solid else None, tags, block_id


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


# -- blocks ------------------------------------------------------------------------------------------------
# Lines → blocks: headings, list items, paragraphs, code, comments and rules, in file order.
#
# This is the part of CommonMark that decides what is a record and what is not. One pass; no line is looked
# at more than a fixed number of times.


class BlockShape(Enum):
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

    shape: BlockShape
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
        return Block(BlockShape.ITEM, at, item.end, item)
    if indent <= 3:
        if heading_level(words):
            return Block(BlockShape.HEADING, at, at + 1)
        if fence := fence_of(words):
            return _until(BlockShape.CODE, lines, at, fence, lambda line: closes(line.strip(BLANK), fence))
        if hides(words) and comment_end(words) >= 0:
            return Block(BlockShape.COMMENT, at, at + 1)
        if hides(words):
            return _until(BlockShape.COMMENT, lines, at, "-->", lambda line: "-->" in line)
        if is_rule(words):
            return Block(BlockShape.RULE, at, at + 1)
    return Block(BlockShape.PARAGRAPH, at, _paragraph_end(lines, at))


def _until(
    shape: BlockShape, lines: Sequence[str], at: int, closing: str, closes_it: Callable[[str], bool]
) -> Block:
    """The block that begins at a line and ends with the next one that closes it, or with the file."""
    for end in range(at + 1, len(lines)):
        if closes_it(lines[end]):
            return Block(shape, at, end + 1)
    return Block(shape, at, len(lines), unclosed=closing)


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


# -- headings ----------------------------------------------------------------------------------------------
# Headings: the chain a record stands under, and what a heading of ours says for all its items.


_SEPARATOR = " · "
_TIME = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]")


def heading_line(time: str, client: str, session: str | None, origin: Origin | None) -> str:
    """A heading of ours: `## 14:32 · claude-code · session 8f2c · tool`.

    A client whose name would be read as something else gets the word `client` before it.
    """
    if client in ORIGINS or client.startswith("session "):
        client = f"client {client}"
    parts = [time, client, f"session {session}" if session else "", origin or ""]
    return "## " + _SEPARATOR.join(" ".join(readable(p).replace("·", "-").split()) for p in parts if p)


def tags_line(tags: Sequence[str]) -> str:
    """The comment below a heading that says what holds for all its items: `<!-- tags: ["cwd:/a b"] -->`."""
    listed = json.dumps([readable(tag) for tag in tags], ensure_ascii=False)
    return f"<!-- tags: {listed.replace('>', chr(92) + 'u003e')} -->"


def heading_tags(listed: str) -> tuple[str, ...]:
    """The tags that such a comment lists; none if it is not a list of strings."""
    try:
        found = json.loads(listed)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(found, list) or not all(isinstance(tag, str) for tag in found):
        return ()
    return tuple(tag.strip() for tag in found if tag.strip())


def heading_of(above: Sequence[tuple[int, str, Heading]], text: str, base: Heading) -> Heading:
    """The heading with this text, below those in `above` (level, text, heading, outermost first): what
    it does not say itself is as the one above it says. `base` is what the file says for all of them."""
    trail = (*base.trail, *(words for _, words, _ in above), text)
    own = _ours(text) or older(text)
    if own and base.whole:
        own = replace(own, origin=base.origin, whole=True)
    return replace(own or (above[-1][2] if above else base), trail=trail)


def _ours(text: str) -> Heading | None:
    time, *parts = text.split(_SEPARATOR)
    if not _TIME.fullmatch(time):
        return None
    client, session, origin = None, None, None
    for part in map(str.strip, parts):
        if part in ORIGINS and not origin:
            origin = part
        elif part.startswith("session ") and not session:
            session = part[len("session ") :].strip()
        elif not client:
            client = part
    return Heading((), time, client, session, origin)


def older(text: str) -> Heading | None:
    """`2026-02-20T14:03:11+00:00 — <source>`, as an older generation wrote it; None for all others."""
    stamp, dash, source = text.partition(" — ")
    if not dash or stamp[10:11] != "T":
        return None
    try:
        datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return Heading((), stamp[11:16], source.strip() or None)


# -- passages ----------------------------------------------------------------------------------------------
# Prose → passages: stretches of at most about 900 characters under one heading, cut where it hurts least.
#
# A passage's text is the file's lines as they stand; only a line longer than the limit is cut inside, at
# the end of a sentence, else at a blank, else anywhere.


LIMIT = 900
ITEM_LIMIT = 500
_ENDS = (". ", "! ", "? ", "。", "！", "？")

Span = tuple[int, int]
"""A block's lines, from 0, end excluded."""


def cut(lines: Sequence[str], spans: Sequence[Span], limit: int = LIMIT) -> Iterator[tuple[str, int, int]]:
    """Passages of the blocks at `spans`, which follow each other with only blank lines between:
    (text, first line, end) with lines from 0, end excluded. Without a letter or digit it is none."""
    for start, end in _grouped(lines, spans, limit):
        if start + 1 == end and len(lines[start]) > limit:
            pieces = _pieces(lines[start], limit)
        else:
            pieces = iter(["\n".join(lines[start:end])])
        for piece in pieces:
            if any(map(str.isalnum, piece)):
                yield piece, start, end


def _grouped(lines: Sequence[str], spans: Sequence[Span], limit: int) -> Iterator[Span]:
    """Neighbouring blocks together while they fit; a block that is too long alone, line by line."""
    first, last, size = -1, -1, 0
    for start, end in _fitting(lines, spans, limit):
        more = sum(map(len, lines[start:end])) + end - start
        if first >= 0 and size + more + start - last <= limit:
            last, size = end, size + more + start - last
            continue
        if first >= 0:
            yield first, last
        first, last, size = start, end, more
    if first >= 0:
        yield first, last


def _fitting(lines: Sequence[str], spans: Sequence[Span], limit: int) -> Iterator[Span]:
    for start, end in spans:
        if sum(map(len, lines[start:end])) + end - start <= limit:
            yield start, end
        else:
            yield from ((at, at + 1) for at in range(start, end) if lines[at].strip())


def _pieces(line: str, limit: int) -> Iterator[str]:
    at = 0
    while len(line) - at > limit:
        half, end = at + limit // 2, at + limit
        stop = max(line.rfind(mark, half, end) + len(mark.rstrip()) for mark in _ENDS)
        if stop <= half:
            stop = line.rfind(" ", half, end) + 1
        stop = stop if stop > half else end
        yield line[at:stop].strip(" \t")
        at = stop
    yield line[at:].strip(" \t")


# -- header ------------------------------------------------------------------------------------------------
# The front matter of a file: found, read, and changed key by key without touching anything else.
#
# python-frontmatter (and YAML beneath it) gets the header's text only. It would sort keys, drop comments,
# turn `007` into 7, CRLF into LF and eat the body's first blank lines; so the boundaries, the body's bytes
# and every line whose key does not change are kept here.


LONGEST = 65_536
"""Characters. A longer header is none: YAML in pure Python is slow, and nobody writes one by hand."""
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_/.,;()'?! -]*")
_YAML_ERRORS = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""What YAML raises besides its own error for odd dates, keys, numbers and depths."""


@dataclass(frozen=True, slots=True)
class Header:
    """`values` as YAML reads them; `raw` with every scalar as it is written, so that `007` stays so;
    `size` in lines, both `---` included; `problem` with its line from 0 if it cannot be read."""

    values: Mapping[str, Any] = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict)
    size: int = 0
    problem: tuple[int, str] | None = None

    def text(self, key: str) -> str | None:
        """A value that is one word or sentence, as written; None for all others."""
        value = self.raw.get(key)
        return value if isinstance(value, str) and value else None

    def texts(self, key: str) -> tuple[str, ...]:
        """A value that is a list, or text with commas, as its parts."""
        value = self.raw.get(key)
        parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
        words = [part for part in parts if isinstance(part, str) and part.strip()]
        return tuple(part.strip() for part in words) if isinstance(value, str) else tuple(words)

    def tags(self) -> tuple[str, ...]:
        """What `tags` or `tag`, in upper or lower case, names, as Obsidian reads it: a list, or text with
        commas or blanks between, each with or without `#`."""
        found: list[Any] = []
        for value in (value for key, value in self.raw.items() if key.lower() in ("tags", "tag")):
            found += re.split(r"[,\s]+", value) if isinstance(value, str) else ()
            found += value if isinstance(value, list) else ()
        words = (part.strip().lstrip("#") for part in found if isinstance(part, str))
        return tuple(dict.fromkeys(filter(None, words)))


def read_header(lines: Sequence[str]) -> Header:
    """The front matter of a file's lines; without one, an empty Header of size 0."""
    if not lines or lines[0].rstrip(BLANK) != "---":
        return Header()
    end = next((k for k in range(1, len(lines)) if lines[k].rstrip(BLANK) in ("---", "...")), 0)
    if not end:
        if len(lines) > 1 and _KEY_LINE.match(lines[1]):
            return Header(problem=(0, "this front matter is not closed by `---`; it is read as text"))
        return Header()
    text = "\n".join(lines[1:end])
    if len(text) > LONGEST:
        return Header(size=end + 1, problem=(0, f"this front matter is longer than {LONGEST} characters"))
    return _load(text, end + 1)


_KEY_LINE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*:(?:[ \t]|$)")


@cache
def _loader() -> type[Any]:
    """Parses once what is read twice: as it is written, and as the values that it stands for."""
    import yaml
    from yaml.constructor import BaseConstructor

    class Loader(yaml.SafeLoader):
        def get_single_data(self) -> tuple[Any, Any]:
            node = self.get_single_node()
            if node is None:
                return None, None
            # In this order: the other one works merged keys (`<<`) into the node.
            return BaseConstructor().construct_document(node), self.construct_document(node)

    return Loader


def _load(text: str, size: int) -> Header:
    import yaml
    from frontmatter.default_handlers import YAMLHandler

    try:
        raw, values = YAMLHandler().load(text, Loader=_loader()) if text.strip() else ({}, {})
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = min(size - 1, 1 + text.count("\n", 0, mark.index)) if mark else 0
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
        return Header(size=size, problem=(line, f"this front matter cannot be read: {what}"))
    except _YAML_ERRORS as error:
        return Header(size=size, problem=(0, f"this front matter cannot be read: {type(error).__name__}"))
    if values is None and raw in (None, ""):
        values, raw = {}, {}
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        what = "the text between the first two --- is not a list of `key: value`; it is read as text"
        return Header(problem=(0, what))
    return Header(values, raw, size)


# writing


def write_value(value: Any) -> str:
    """A value on one line of YAML: plain where that is safe, else as JSON, which YAML includes."""
    if isinstance(value, str):
        return value if _is_plain(value) else _json(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_in_list, value))}]"
    return _json(value)


def _in_list(value: Any) -> str:
    return write_value(value) if not isinstance(value, str) or "," not in value else _json(value)


def _is_plain(text: str) -> bool:
    import yaml

    return bool(_PLAIN.fullmatch(text)) and text == text.strip() and yaml.safe_load(text) == text


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return re.sub(
        "[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]", _escaped, text
    )


def _escaped(match: re.Match[str]) -> str:
    number = ord(match.group())
    return "\\ufffd" if 0xD800 <= number <= 0xDFFF else f"\\u{number:04x}"


def write_header(values: Mapping[str, Any]) -> list[str]:
    """The lines of a new front matter."""
    return ["---", *(f"{key}: {write_value(value)}" for key, value in values.items()), "---"]


def change_header(lines: Sequence[str], changes: Mapping[str, Any]) -> tuple[int, list[str]]:
    """(Lines the header takes now, its new lines): each key of `changes` set, or taken out if None.
    Only lines of changed keys differ. Malformed if the header cannot be read or so changed."""
    old = read_header(lines)
    if old.problem:
        raise Malformed(old.problem[1], hint="correct the lines between the two --- by hand")
    if not old.size:
        return 0, write_header({key: value for key, value in changes.items() if value is not None})
    text = "\n".join(lines[1 : old.size - 1])
    new = _changed(text, {k: v for k, v in changes.items() if k not in old.values or old.values[k] != v})
    result = [lines[0], *(new.split("\n") if new else []), lines[old.size - 1]]
    wanted = {key: value for key, value in {**old.values, **changes}.items() if value is not None}
    if _comparable(read_header(result).values) != _comparable(wanted):
        raise Malformed("this front matter cannot be changed safely", hint="edit it by hand")
    return old.size, result


def _comparable(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, default=repr)


def _changed(text: str, changes: Mapping[str, Any]) -> str:
    import yaml

    if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
        raise Malformed("this front matter uses YAML aliases", hint="edit it by hand")
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    if isinstance(node, yaml.CollectionNode) and node.flow_style:
        raise Malformed("this front matter is written as one {…}", hint="edit it by hand")
    starts = [key.start_mark.index for key, _ in pairs]
    for number in reversed(range(len(pairs))):
        key, value = pairs[number]
        if key.value in changes:
            end = starts[number + 1] if number + 1 < len(pairs) else len(text)
            text = _replaced(text, starts[number], end, value, key.value, changes[key.value])
    known = {key.value for key, _ in pairs}
    added = [f"{k}: {write_value(v)}" for k, v in changes.items() if k not in known and v is not None]
    return "\n".join([*([text] if text else []), *added])


def _replaced(text: str, start: int, end: int, node: Any, key: str, new: Any) -> str:
    """`text` with the entry from `start` set to `new`; comments behind it and below it stay."""
    first, last = node.start_mark.index, node.end_mark.index
    if new is not None and last > first and "\n" not in text[start:last]:
        return text[:first] + write_value(new) + text[last:]
    lines = text[start:end].split("\n")
    keep = len(lines)
    while keep > 1 and (not lines[keep - 1].strip() or lines[keep - 1].startswith("#")):
        keep -= 1
    if new is None and end == len(text):
        return text[:start].removesuffix("\n") + "".join("\n" + line for line in lines[keep:])
    head = [] if new is None else [f"{key}: {write_value(new)}"]
    return text[:start] + "\n".join([*head, *lines[keep:]]) + text[end:]
