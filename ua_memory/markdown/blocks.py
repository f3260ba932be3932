"""Parsing lines into blocks: front matter, headings, list items, paragraphs, passages."""

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
    closes_fence,
    comment_end,
    decode,
    dedent,
    fence_of,
    heading_level,
    indent_of,
    interrupts_paragraph,
    is_comment_only,
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


CHILD_INDENT = 2
"""A line with so many columns of indentation belongs to the item above it."""


class Role(Enum):
    """The kind of a line of an item."""

    TEXT = auto()
    BLANK = auto()
    CODE = auto()
    COMMENT = auto()
    META = auto()
    META_MORE = auto()


@dataclass(slots=True)
class Line:
    """A line of an item: its number (from 0), its text without the item's indentation, its role."""

    number: int
    words: str
    role: Role


@dataclass(slots=True)
class Meta:
    """A nested item with a reserved key: its value as written, and its lines as indices in the item."""

    key: str
    value: str
    number: int
    lines: range


@dataclass(slots=True)
class Item:
    """A list item. `start` and `end` are line numbers of the file, from 0, `end` excluded."""

    start: int
    lines: list[Line]
    end: int = 0
    unclosed: list[tuple[int, str]] = field(default_factory=list)
    """(line number, message) of each fence or comment that is open at the item's end."""

    @property
    def hidden(self) -> bool:
        """Whether it has nothing but comments."""
        return all(line.role in (Role.COMMENT, Role.BLANK) for line in self.lines)

    @property
    def tail(self) -> int:
        """The number of the line that may have tags and an id at its end; -1 without a paragraph."""
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
        """The metadata, in file order."""
        found: list[Meta] = []
        for at, line in enumerate(self.lines):
            if line.role is Role.META:
                value = line.words.partition(":")[2].strip(BLANK)
                found.append(Meta(key_of(line.words.lstrip(" ")), value, line.number, range(at, at + 1)))
            elif line.role is Role.META_MORE:
                last = found[-1]
                last.value = f"{last.value}\n{line.words.strip(BLANK)}".strip("\n")
                last.lines = range(last.lines.start, at + 1)
        return found

    def text(self, keep: Collection[int] = ()) -> tuple[str | None, tuple[str, ...], str | None]:
        """(text or None, tags, id). `keep` are the indices of invalid metadata lines, which count as text."""
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


class _ItemReader:
    """Parses one item line by line. Its state is the open fence, comment or nested item."""

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
        self.item.lines.append(Line(number, words, self.classify(words, number)))

    def classify(self, words: str, number: int) -> Role:
        bare = words.lstrip(" ")
        if self.fence:
            if closes_fence(bare, self.fence):
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
        if is_comment_only(bare):
            self.comment, self.opened = comment_end(bare) < 0, number
            return Role.COMMENT
        if number == self.item.start:
            return Role.TEXT
        return self.classify_text(bare, indent)

    def classify_text(self, bare: str, indent: int) -> Role:
        marker = marker_of(bare)
        nested = self.child is not None and indent >= self.child
        if not nested:
            self.child = None
            if marker in ("-", "*", "+") and indent <= 3 and key_of(bare) in self.keys:
                self.meta = indent + CHILD_INDENT
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
            if after == len(lines) or not self.continues_with(lines[after], after > at):
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

    def continues_with(self, line: str, after_blank: bool) -> bool:
        """Whether `line` belongs to the item: as a child, or as a lazy continuation of its paragraph."""
        indent, chars = indent_of(line)
        if indent >= CHILD_INDENT:
            return True
        last = self.item.lines[-1]
        if after_blank or last.role is not Role.TEXT or self.fence or self.comment:
            return False
        bare = last.words.strip(BLANK)
        words = line[chars:].rstrip(BLANK)
        starts = interrupts_paragraph(words) or marker_of(words + " x")  # an empty item ends this one too
        return not (starts or heading_level(bare) or is_rule(bare))


def read_item(lines: Sequence[str], start: int, keys: Collection[str]) -> Item:
    """Parse the item that begins on `lines[start]`; nested items with one of `keys` are metadata."""
    return _ItemReader(lines, start, keys).read()


# -- blocks ------------------------------------------------------------------------------------------------
# The subset of CommonMark that is needed to tell records from prose. One pass, in linear time.


class BlockShape(Enum):
    """The kind of a block."""

    HEADING = auto()
    ITEM = auto()
    PARAGRAPH = auto()
    CODE = auto()
    COMMENT = auto()
    RULE = auto()


@dataclass(slots=True)
class Block:
    """A block and its lines, from 0, `end` excluded; `unclosed` is what would close one that is still
    open."""

    shape: BlockShape
    start: int
    end: int
    item: Item | None = None
    unclosed: str = ""


def scan(lines: Sequence[str], start: int = 0, keys: Collection[str] = ()) -> Iterator[Block]:
    """The blocks of `lines` from `start` on, without the blank lines between them."""
    at = start
    while at < len(lines):
        words = lines[at].strip(BLANK)
        if not words:
            at += 1
            continue
        block = _read_block(lines, at, words, keys)
        yield block
        at = block.end


def _read_block(lines: Sequence[str], at: int, words: str, keys: Collection[str]) -> Block:
    indent = indent_of(lines[at])[0]
    if indent <= 1 and marker_of(words):
        item = read_item(lines, at, keys)
        return Block(BlockShape.ITEM, at, item.end, item)
    if indent <= 3:
        if heading_level(words):
            return Block(BlockShape.HEADING, at, at + 1)
        if fence := fence_of(words):
            return _read_until(
                BlockShape.CODE, lines, at, fence, lambda line: closes_fence(line.strip(BLANK), fence)
            )
        if is_comment_only(words) and comment_end(words) >= 0:
            return Block(BlockShape.COMMENT, at, at + 1)
        if is_comment_only(words):
            return _read_until(BlockShape.COMMENT, lines, at, "-->", lambda line: "-->" in line)
        if is_rule(words):
            return Block(BlockShape.RULE, at, at + 1)
    return Block(BlockShape.PARAGRAPH, at, _paragraph_end(lines, at))


def _read_until(
    shape: BlockShape, lines: Sequence[str], at: int, closing: str, closes_it: Callable[[str], bool]
) -> Block:
    """The block from line `at` to the first line that closes it, or to the end of the file."""
    for end in range(at + 1, len(lines)):
        if closes_it(lines[end]):
            return Block(shape, at, end + 1)
    return Block(shape, at, len(lines), unclosed=closing)


def _paragraph_end(lines: Sequence[str], at: int) -> int:
    for end in range(at + 1, len(lines)):
        words = lines[end].strip(BLANK)
        if not words:
            return end
        if interrupts_paragraph(words):
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
    """The comment below a heading with the tags of all its items: `<!-- tags: ["cwd:/a b"] -->`."""
    listed = json.dumps([readable(tag) for tag in tags], ensure_ascii=False)
    return f"<!-- tags: {listed.replace('>', chr(92) + 'u003e')} -->"


def heading_tags(listed: str) -> tuple[str, ...]:
    """The tags in such a comment; none if it is not a list of strings."""
    try:
        found = json.loads(listed)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(found, list) or not all(isinstance(tag, str) for tag in found):
        return ()
    return tuple(tag.strip() for tag in found if tag.strip())


def heading_of(above: Sequence[tuple[int, str, Heading]], text: str, base: Heading) -> Heading:
    """The metadata of a heading with this text, below `above` (level, text, metadata; outermost first), from
    which missing values are inherited. `base` has the file's values."""
    texts = (*base.texts, *(words for _, words, _ in above), text)
    own = _parse_our_heading(text) or parse_old_heading(text)
    if own and base.whole:
        own = replace(own, origin=base.origin, whole=True)
    return replace(own or (above[-1][2] if above else base), texts=texts)


def _parse_our_heading(text: str) -> Heading | None:
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


def parse_old_heading(text: str) -> Heading | None:
    """Parse `2026-02-20T14:03:11+00:00 — <source>`, the format of an earlier tool; None for other
    headings."""
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
"""(first line, end) of a block, from 0, end excluded."""


def split_passages(
    lines: Sequence[str], spans: Sequence[Span], limit: int = LIMIT
) -> Iterator[tuple[str, int, int]]:
    """Split adjacent blocks into passages of at most `limit` characters: (text, first line, end), from 0, end
    excluded. Text without a letter or digit is left out."""
    for start, end in _group_blocks(lines, spans, limit):
        if start + 1 == end and len(lines[start]) > limit:
            pieces = _split_line(lines[start], limit)
        else:
            pieces = iter(["\n".join(lines[start:end])])
        for piece in pieces:
            if any(map(str.isalnum, piece)):
                yield piece, start, end


def _group_blocks(lines: Sequence[str], spans: Sequence[Span], limit: int) -> Iterator[Span]:
    """Join adjacent blocks up to the limit; split a block that is too long by lines."""
    first, last, size = -1, -1, 0
    for start, end in _split_long(lines, spans, limit):
        more = sum(map(len, lines[start:end])) + end - start
        if first >= 0 and size + more + start - last <= limit:
            last, size = end, size + more + start - last
            continue
        if first >= 0:
            yield first, last
        first, last, size = start, end, more
    if first >= 0:
        yield first, last


def _split_long(lines: Sequence[str], spans: Sequence[Span], limit: int) -> Iterator[Span]:
    for start, end in spans:
        if sum(map(len, lines[start:end])) + end - start <= limit:
            yield start, end
        else:
            yield from ((at, at + 1) for at in range(start, end) if lines[at].strip())


def _split_line(line: str, limit: int) -> Iterator[str]:
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
"""Characters. A longer front matter is ignored: YAML in pure Python is slow, and nobody writes such one."""
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_/.,;()'?! -]*")
_YAML_ERRORS = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""The exceptions of PyYAML, including those for invalid dates, keys, numbers and depths."""


@dataclass(frozen=True, slots=True)
class Header:
    """Front matter: `values` as YAML parses them, and `raw` with every scalar as written, such as `007`.

    `size` is in lines, both `---` included; `problem` is (line from 0, message) if it is invalid.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict)
    size: int = 0
    problem: tuple[int, str] | None = None

    def text(self, key: str) -> str | None:
        """A scalar value as written; None if it is missing, or of another type."""
        value = self.raw.get(key)
        return value if isinstance(value, str) and value else None

    def texts(self, key: str) -> tuple[str, ...]:
        """The items of a list, or of text with commas."""
        value = self.raw.get(key)
        parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
        words = [part for part in parts if isinstance(part, str) and part.strip()]
        return tuple(part.strip() for part in words) if isinstance(value, str) else tuple(words)

    def tags(self) -> tuple[str, ...]:
        """The values of `tags` or `tag` (any case), as Obsidian reads them: a list, or text separated by
        commas or blanks, each with or without `#`."""
        found: list[Any] = []
        for value in (value for key, value in self.raw.items() if key.lower() in ("tags", "tag")):
            found += re.split(r"[,\s]+", value) if isinstance(value, str) else ()
            found += value if isinstance(value, list) else ()
        words = (part.strip().lstrip("#") for part in found if isinstance(part, str))
        return tuple(dict.fromkeys(filter(None, words)))


def read_header(lines: Sequence[str]) -> Header:
    """Parse the front matter of a file's lines; without one, an empty Header of size 0."""
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
    """A YAML loader that returns (values, scalars as written) in one pass."""
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
    """A value as one line of YAML: plain if that is safe, else as JSON, a subset of YAML."""
    if isinstance(value, str):
        return value if _is_plain(value) else _json(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_write_list_item, value))}]"
    return _json(value)


def _write_list_item(value: Any) -> str:
    return write_value(value) if not isinstance(value, str) or "," not in value else _json(value)


def _is_plain(text: str) -> bool:
    import yaml

    return bool(_PLAIN.fullmatch(text)) and text == text.strip() and yaml.safe_load(text) == text


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return re.sub(
        "[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]",
        _escape_match,
        text,
    )


def _escape_match(match: re.Match[str]) -> str:
    number = ord(match.group())
    return "\\ufffd" if 0xD800 <= number <= 0xDFFF else f"\\u{number:04x}"


def write_header(values: Mapping[str, Any]) -> list[str]:
    """The lines of a new front matter."""
    return ["---", *(f"{key}: {write_value(value)}" for key, value in values.items()), "---"]


def change_header(lines: Sequence[str], changes: Mapping[str, Any]) -> tuple[int, list[str]]:
    """(number of lines of the present header, its new lines), with each key of `changes` set, or removed for
    None. Only lines of changed keys differ. Malformed if the header is invalid or cannot be changed so."""
    old = read_header(lines)
    if old.problem:
        raise Malformed(old.problem[1], hint="correct the lines between the two --- by hand")
    if not old.size:
        return 0, write_header({key: value for key, value in changes.items() if value is not None})
    text = "\n".join(lines[1 : old.size - 1])
    new = _change_keys(text, {k: v for k, v in changes.items() if k not in old.values or old.values[k] != v})
    result = [lines[0], *(new.split("\n") if new else []), lines[old.size - 1]]
    wanted = {key: value for key, value in {**old.values, **changes}.items() if value is not None}
    if _comparable(read_header(result).values) != _comparable(wanted):
        raise Malformed("this front matter cannot be changed safely", hint="edit it by hand")
    return old.size, result


def _comparable(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, default=repr)


def _change_keys(text: str, changes: Mapping[str, Any]) -> str:
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
            text = _replace_entry(text, starts[number], end, value, key.value, changes[key.value])
    known = {key.value for key, _ in pairs}
    added = [f"{k}: {write_value(v)}" for k, v in changes.items() if k not in known and v is not None]
    return "\n".join([*([text] if text else []), *added])


def _replace_entry(text: str, start: int, end: int, node: Any, key: str, new: Any) -> str:
    """`text` with the entry at `start` set to `new`; comments after it stay."""
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
