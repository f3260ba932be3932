"""Lines of markdown: bytes to lines, escapes, and what kind of line each is."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import Enum, auto

from ua_memory.records import Entity, Fact, Observation, Opinion, Place, Tombstone

# -- lines -------------------------------------------------------------------------------------------------
# What a single line of markdown is: how far it is indented, and which block it opens.
#
# Every function here takes one line without its newline and is linear in its length. Only spaces and tabs
# are white space; U+00A0, U+0085 and their like are ordinary characters of a line.


BLANK = " \t"
_NUMBER = re.compile(r"([0-9]{1,9})[.)](?=[ \t])")
_HEADING = re.compile(r"#{1,6}(?=[ \t]|$)")
_HTML = re.compile(
    r"</?(?:blockquote|center|dd|details|div|dl|dt|figure|footer|form|h[1-6]|header|hr|iframe|li|main|nav"
    r"|ol|p|section|summary|table|tbody|td|tfoot|th|thead|tr|ul)(?=[ \t>]|/>|$)",
    re.IGNORECASE,
)
_COMMENTS = re.compile(r"\A(?:<!(?=--).*?-->[ \t]*)+", re.DOTALL)
_SURROGATES = re.compile("[\ud800-\udfff]")


def readable(text: str) -> str:
    """`text` with U+FFFD in place of surrogates, which stand for bytes that are no UTF-8."""
    return _SURROGATES.sub("\ufffd", text)


def is_visible(text: str) -> bool:
    """`str.isprintable`, but with the joiners, which Persian words and emoji have, and not these alone."""
    shown = text.translate({0x200C: None, 0x200D: None})
    return bool(shown) and shown.isprintable()


def indent_of(line: str) -> tuple[int, int]:
    """Columns and characters of leading white space; a tab reaches the next multiple of 4."""
    chars = len(line) - len(line.lstrip(BLANK))
    if not chars:  # most lines
        return 0, 0
    return len(line[:chars].expandtabs(4)), chars


def dedent(line: str, columns: int) -> str:
    """`line` without its first `columns` columns of indentation; what is left of it becomes spaces."""
    indent, chars = indent_of(line)
    return " " * max(0, indent - columns) + line[chars:].rstrip(BLANK)


def heading_level(words: str) -> int:
    """1 to 6 for an ATX heading, else 0. `words` has no indentation."""
    match = _HEADING.match(words)
    return match.end() if match else 0


def heading_text(words: str) -> str:
    """The text of an ATX heading, without its `#`s at either end."""
    text = words.lstrip("#").strip(BLANK)
    bare = text.rstrip("#")
    return bare.rstrip(BLANK) if bare != text and bare[-1:] in ("", " ", "\t") else text


def fence_of(words: str) -> str:
    """The run of three or more backticks or tildes that opens a code fence, or ''."""
    if not words.startswith(("```", "~~~")):
        return ""
    run = words[: len(words) - len(words.lstrip(words[0]))]
    return "" if run[0] == "`" and "`" in words[len(run) :] else run


def closes_fence(words: str, fence: str) -> bool:
    """Whether a line closes the fence that `fence` opened."""
    return words.startswith(fence) and not words.strip(fence[0])


def comment_end(words: str) -> int:
    """For a line that starts with `<!--`: -1 if the comment runs on, else where text behind it starts,
    which is the length of the line where there is none."""
    rest = _COMMENTS.sub("", words)
    return -1 if rest.startswith("<!--") else len(words) - len(rest)


def is_comment_only(words: str) -> bool:
    """Whether a line is, or opens, a comment with nothing but comments on it."""
    return words.startswith("<!--") and comment_end(words) in (-1, len(words))


def is_rule(words: str) -> bool:
    """A thematic break: three or more of `-`, `*` or `_`, and blanks."""
    if words[:1] not in ("-", "*", "_") or words[-1] != words[0]:
        return False
    bare = words.replace(" ", "").replace("\t", "")
    return len(bare) >= 3 and not bare.strip(words[0])


def marker_of(words: str) -> str:
    """The list marker of an item with something on its line (`-`, `12.`), or ''. `words` is stripped."""
    if words[:1] in ("-", "*", "+") and words[1:2] in (" ", "\t"):
        return "" if is_rule(words) else words[0]
    match = _NUMBER.match(words)
    return match.group() if match else ""


def interrupts_paragraph(words: str) -> bool:
    """Whether a stripped line ends the paragraph before it. A number does only if it is 1, so that a
    sentence wrapped before `1986. ` stays whole (CommonMark's rule)."""
    first = words[:1]
    if first in ("-", "*", "+", "_"):
        return is_rule(words) or bool(marker_of(words))
    if first == "1":
        return marker_of(words) in ("1.", "1)")
    if first == "#":
        return heading_level(words) > 0
    if first in ("`", "~"):
        return bool(fence_of(words))
    if first == "<":
        return is_comment_only(words) or bool(_HTML.match(words))
    return first == ">"


# -- source ------------------------------------------------------------------------------------------------
# Bytes → lines, and edits of bytes by line. Nothing here changes a byte that it was not asked to.
#
# A line ends at b"\n" and nowhere else: U+0085, U+2028 and a lone "\r" are ordinary characters. One "\r"
# right before the b"\n" belongs to the line's end, also in a file that mixes both.


BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Source:
    """A file's lines without their ends; bytes that are no UTF-8 are surrogate escapes."""

    lines: tuple[str, ...]
    newline: str
    final_newline: bool
    bom: bool
    valid: bool
    """Whether all of it is UTF-8."""


def split(data: bytes) -> Source:
    """The lines of `data`."""
    bom = data.startswith(BOM)
    body = data[len(BOM) :] if bom else data
    try:
        text, valid = body.decode("utf-8"), True
    except UnicodeDecodeError:
        text, valid = body.decode("utf-8", "surrogateescape"), False
    lines = text.split("\n")
    last = lines.pop()
    if "\r" in text:
        lines = [line[:-1] if line.endswith("\r") else line for line in lines]
    final = not last and bool(lines)
    return Source(tuple(lines if not last else [*lines, last]), newline_of(data), final, bom, valid)


def common_prefix_length(one: Sequence[object], other: Sequence[object]) -> int:
    """The number of equal lines (or other elements) at the beginning of two sequences of one type, which are
    compared by halves: of bytes that is much faster than one by one."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def newline_of(data: bytes) -> str:
    """The first newline of `data`, `\\n` if it has none."""
    at = data.find(b"\n")
    return "\r\n" if at > 0 and data[at - 1 : at] == b"\r" else "\n"


def encode_line(line: str) -> bytes:
    """The bytes of a line; surrogate escapes become the bytes they stand for, other surrogates U+FFFD."""
    text = "".join("\ufffd" if "\ud800" <= c < "\udc80" or "\udcff" < c <= "\udfff" else c for c in line)
    return text.encode("utf-8", "surrogateescape")


def _encode_block(lines: Sequence[str], newline: str) -> bytes:
    return b"".join(part + newline.encode() for line in lines for part in encode_line(line).split(b"\n"))


def append_lines(data: bytes, lines: Sequence[str], blank: bool) -> bytes:
    """`data` with `lines` appended, after a missing final newline, and a blank line if `blank`."""
    newline = newline_of(data)
    started = bool(data) and data != BOM
    mend = newline.encode() if started and not data.endswith(b"\n") else b""
    gap = newline.encode() if blank and started else b""
    return data + mend + gap + _encode_block(lines, newline)


def insert_after(data: bytes, line: int, lines: Sequence[str]) -> bytes:
    """`data` with `lines` inserted after line number `line` (from 1; 0: at the beginning, after a BOM).

    Beyond the last line they are appended, and a missing final newline is added.
    """
    at = _offset(data, line)
    if at is None or (at == len(data) and not data.endswith(b"\n")):
        return append_lines(data, lines, False)
    return data[:at] + _encode_block(lines, newline_of(data)) + data[at:]


def replace_lines(data: bytes, place: Place, lines: Sequence[str]) -> bytes:
    """`data` with the lines of `place` replaced by `lines`, or removed if there are none. A missing final
    newline is not added."""
    start = _offset(data, place.line - 1)
    end = _offset(data, place.end)
    if start is None:
        raise IndexError(f"{place.citation} is past the end of the file")
    block = _encode_block(lines, newline_of(data))
    if end is None:
        end = len(data)
        if not data.endswith(b"\n"):
            block = block.removesuffix(newline_of(data).encode())
    return data[:start] + block + data[end:]


def remove_places(data: bytes, places: Iterable[Place]) -> bytes:
    """`data` without the lines of these places, which do not overlap."""
    for place in sorted(places, key=lambda each: -each.line):
        data = replace_lines(data, place, ())
    return data


def _offset(data: bytes, line: int) -> int | None:
    """The offset after the first `line` lines; None if there are fewer newlines."""
    at = len(BOM) if data.startswith(BOM) else 0
    for _ in range(line):
        at = data.find(b"\n", at) + 1
        if not at:
            return None
    return at


# -- escapes -----------------------------------------------------------------------------------------------
# Escaping any text for the lines of a list item, so that it parses back exactly.
#
# Three escapes of CommonMark, so that other programs show the same text: `&#N;` for characters that would be
# lost, a backslash at the start of a line that would be syntax, and one before a last word that would be
# parsed as a tag, an id or a comment.


_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]|&(?=#(?:[0-9]{1,7}|[xX][0-9a-fA-F]{1,6});)"
)
_ENTITY = re.compile(r"&#([0-9]{1,7});")
_NUMBERED = re.compile(r"[0-9]{1,9}(\\+)[.)](?=[ \t]|$)")
_ASCII_TAG = re.compile(r"[A-Za-z0-9_/-]+\Z")
_ID = re.compile(r"[A-Za-z0-9-]+\Z")
_KEY = re.compile(r"[-*+][ \t]+([a-z]+):(?=[ \t]|$)")
_FENCE_LINES = 400
"""The fence of a longer code block in a text is escaped, instead of searching for its end."""


def is_id(word: str) -> bool:
    """Whether Obsidian takes `word` for a block id: ASCII letters, digits and hyphens."""
    return bool(_ID.match(word))


def is_tag(word: str) -> bool:
    """Whether Obsidian can hold `word` as `#word`: letters, digits, `_ - /`, and not digits alone."""
    if word.isascii():
        return bool(_ASCII_TAG.match(word)) and not word.isdecimal()
    return all(map(_is_tag_char, word)) and not word.isdecimal()


def _is_tag_char(char: str) -> bool:
    if char.isascii():
        return char.isalnum() or char in "_-/"
    return unicodedata.category(char)[0] in "LMN" or unicodedata.category(char) == "So"


def hashtags(text: str) -> tuple[str, ...]:
    """The `#tags` within a text, by Obsidian's rules: behind a blank or at a line's start."""
    found: list[str] = []
    for line in text.split("\n"):
        for word in line.replace("\t", " ").split(" "):
            if word[:1] == "#" and len(word) > 1:
                end = next((k for k in range(1, len(word)) if not _is_tag_char(word[k])), len(word))
                if is_tag(word[1:end]):
                    found.append(word[1:end])
    return tuple(found)


def key_of(words: str) -> str:
    """The key of a nested item `- key: …`, whether reserved or not, or ''."""
    match = _KEY.match(words)
    return match.group(1) if match else ""


# characters


def encode_value(text: str, also: str = "") -> str:
    """`text` on one line: control characters, outer blanks and the characters of `also` as `&#N;`."""
    line = _encode_characters(text, first=True).replace("\n", "&#10;")
    for char in also:
        line = line.replace(char, f"&#{ord(char)};")
    return line


def decode(line: str) -> str:
    """`line` with each decimal `&#N;` as its character; other entities stay as they are written."""
    return _ENTITY.sub(_character, line) if "&#" in line else line


def _character(match: re.Match[str]) -> str:
    number = int(match.group(1))
    return match.group() if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF else chr(number)


def _entity(char: str) -> str:
    return f"&#{ord(char)};"


def _encode_characters(line: str, first: bool) -> str:
    """Spaces before a later line of a text may stand as they are; a person indents nested items so."""
    line = _UNSAFE.sub(lambda match: _entity(match.group()), readable(line))
    if line[-1:] in (" ", "\t"):
        line = line[:-1] + _entity(line[-1])
    start = 0 if first else len(line) - len(line.lstrip(" "))
    if line[start : start + 1] in (" ", "\t"):
        line = line[:start] + _entity(line[start]) + line[start + 1 :]
    return line


# the start of a line


def unescape_start(line: str) -> str:
    """`line` without the one backslash that kept its start from being syntax."""
    if "\\" not in line:
        return line
    at = len(line) - len(line.lstrip(" "))
    if line[at : at + 1] == "\\" and (len(line) == at + 1 or line[at + 1] in _PUNCTUATION):
        return line[:at] + line[at + 1 :]
    match = _NUMBERED.match(line, at)
    return line[: match.start(1)] + line[match.start(1) + 1 :] if match else line


def _escape_start(line: str, first: bool, keys: Collection[str]) -> str:
    words = line.lstrip(" ")
    at = len(line) - len(words)
    if _is_syntax(words, first, keys) or (
        words[:1] == "\\" and (len(words) == 1 or words[1] in _PUNCTUATION)
    ):
        return line[:at] + "\\" + words
    match = _NUMBERED.match(line, at)
    return line[: match.start(1)] + "\\" + line[match.start(1) :] if match else line


def _is_syntax(words: str, first: bool, keys: Collection[str]) -> bool:
    if not words or words.startswith("<!--") or fence_of(words) or heading_level(words):
        return True
    if is_rule(words) or not words.strip("="):
        return True
    if words[0] == "^":
        return is_id(words[1:])
    return is_rule("- " + words) if first else key_of(words) in keys


# the end of an item's first paragraph


def split_tail(line: str, first: bool) -> tuple[str, tuple[str, ...], str | None]:
    """The text, tags and id of a paragraph's last line; comments behind the text are left out.

    A tag that is all there is on the item's first line is its text.
    """
    if "#" not in line and "^" not in line and "-->" not in line:
        return line, (), None
    end, tags, found = len(line.rstrip(BLANK)), list[str](), None
    lead = len(line) - len(line.lstrip(BLANK))
    while end:
        comment = _comment_start(line, end)
        if comment > lead and line[comment - 1] != "\\":
            end = _text_before(line, comment)
            continue
        start = _word_start(line, end)
        word = line[start:end]
        if word[0] == "^" and found is None and is_id(word[1:]):
            found = word[1:]
        elif word[0] == "#" and is_tag(word[1:]) and not (first and start <= lead):
            tags.append(word[1:])
        else:
            break
        end = _text_before(line, start)
    return _unescape_end(line[:end], lead), tuple(reversed(tags)), found


def _word_start(line: str, end: int) -> int:
    # By the letter: a search for the other kind of blank goes through the whole line for each of its tags.
    while end and line[end - 1] not in BLANK:
        end -= 1
    return end


def _text_before(line: str, at: int) -> int:
    while at and line[at - 1] in BLANK:
        at -= 1
    return at


def _comment_start(line: str, end: int) -> int:
    """Where the comment that ends at `end` starts, or -1."""
    if not line.endswith("-->", 0, end):
        return -1
    start = line.rfind("<!--", 0, end)
    return start if start >= 0 and line.find("-->", start + 2, end) == end - 3 else -1


def _end_escape(line: str, lead: int) -> int:
    """Where a last word or comment starts that needs, or has, a backslash, or -1. Backslashes before
    it are counted in; what starts with the line is left to the rule for a line's start."""
    comment = _comment_start(line, len(line))
    start = comment if comment >= 0 else _word_start(line, len(line))
    if comment < 0:
        word = line[start:].lstrip("\\")
        if not (word[:1] == "^" and is_id(word[1:])) and not (word[:1] == "#" and is_tag(word[1:])):
            return -1
    while start > lead and line[start - 1] == "\\":
        start -= 1
    return start


def _unescape_end(line: str, lead: int) -> str:
    at = _end_escape(line, lead)
    return line[:at] + line[at + 1 :] if at > lead and line[at] == "\\" else line


def _escape_end(line: str, first: bool) -> str:
    lead = len(line) - len(line.lstrip(" "))
    at = _end_escape(line, lead)
    if at > lead or (at == lead and not first and line[at] != "\\"):
        return line[:at] + "\\" + line[at:]
    return line


# whole texts


def paragraph_end(lines: Sequence[str]) -> int:
    """How many of an item's lines its first paragraph has; its tags and id stand on the last of them."""
    for count, line in enumerate(lines[1:], 1):
        words = line.strip(BLANK)
        if not words or interrupts_paragraph(words):
            return count
    return len(lines)


def encode_text(text: str, tags: Sequence[str], block_id: str | None, keys: Collection[str]) -> list[str]:
    """The lines of an item that says `text`, without its marker and indentation.

    `keys` are the words that a nested item must not seem to have as a key.
    """
    source = text.split("\n")
    fences = _fence_lines(source) if "```" in text or "~~~" in text else []
    lines: list[str] = []
    while len(lines) < len(source):
        at = len(lines)
        if at and fences and (block := _code_block(source, at, fences)):
            lines.extend(block)
        elif not source[at] and 0 < at < len(source) - 1:
            lines.append("")
        else:
            lines.append(_escape_start(_encode_characters(source[at], not at), not at, keys))
    last = paragraph_end(lines) - 1
    tail = [f"#{tag}" for tag in tags] + ([f"^{block_id}"] if block_id else [])
    lines[last] = " ".join([_escape_end(lines[last], last == 0), *tail])
    return lines


def _code_block(lines: Sequence[str], start: int, ends: Sequence[int]) -> Sequence[str]:
    """The lines of a closed code block at `start` that can stand as they are, else none; `ends` are
    the lines that hold nothing but a fence."""
    fence = fence_of(lines[start].lstrip(" "))
    if not fence:
        return ()
    for number in range(bisect_right(ends, start), len(ends)):
        at = ends[number]
        if at >= start + _FENCE_LINES:
            return ()
        if closes_fence(lines[at].lstrip(" "), fence):
            block = lines[start : at + 1]
            return block if all(map(_is_literal, block)) else ()
    return ()


def _is_literal(line: str) -> bool:
    if not line:
        return True
    literal = _UNSAFE.sub(lambda match: "&" if match.group() == "&" else "", readable(line))
    return line[-1] not in BLANK and line.lstrip(" ")[:1] != "\t" and literal == line


def _fence_lines(lines: Sequence[str]) -> list[int]:
    bare = [(number, line.lstrip(" ")) for number, line in enumerate(lines)]
    return [k for k, words in bare if words.startswith(("```", "~~~")) and not words.strip(words[0])]


# -- filekinds ---------------------------------------------------------------------------------------------
# What kind of file a file of the bank is, and of which day, by its path alone.


_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[-_].*)?\.md\Z", re.DOTALL)


class FileKind(Enum):
    """What a file of the bank holds; LOG is every daily log and every other note."""

    CORE = auto()
    LOG = auto()
    OBSERVATIONS = auto()
    OPINIONS = auto()
    PAGE = auto()
    MODEL = auto()
    DOCUMENT = auto()
    ENTITIES = auto()
    TOMBSTONES = auto()


_FILES = {
    "MEMORY.md": FileKind.CORE,
    "memory.md": FileKind.CORE,
    "memory/opinions.md": FileKind.OPINIONS,
    "memory/entities.md": FileKind.ENTITIES,
    "memory/forgotten.md": FileKind.TOMBSTONES,
}
_FOLDERS = {
    "memory/observations/": FileKind.OBSERVATIONS,
    "memory/pages/": FileKind.PAGE,
    "memory/models/": FileKind.MODEL,
    "memory/documents/": FileKind.DOCUMENT,
}
ITEMS: Mapping[FileKind, type] = {
    FileKind.LOG: Fact,
    FileKind.DOCUMENT: Fact,
    FileKind.OBSERVATIONS: Observation,
    FileKind.OPINIONS: Opinion,
    FileKind.ENTITIES: Entity,
    FileKind.TOMBSTONES: Tombstone,
}
"""What a top-level item is in each kind of file; in the others it is prose."""


def kind_of(path: str) -> FileKind:
    """The kind of the file at a bank-relative path."""
    folder = next((kind for start, kind in _FOLDERS.items() if path.startswith(start)), FileKind.LOG)
    return _FILES.get(path, folder)


def day_of(path: str) -> str | None:
    """The day in a log's name (`memory/2026-11-21-slug.md`); None if it has none or it is no real day."""
    match = _DAY.match(path.rpartition("/")[2])
    try:
        return date.fromisoformat(match.group(1)).isoformat() if match else None
    except ValueError:
        return None
