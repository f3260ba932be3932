"""Any text ↔ the lines of a list item: what must be escaped so that it is read back exactly.

Three means, all of them CommonMark's own, so that other readers show the same text: `&#N;` for a
character that would not survive, one backslash at the start of a line that would be syntax, and one
backslash before a last word that would be taken for a tag, an id or a comment.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Sequence

from ua_memory.markdown.lines import (
    BLANK,
    closes,
    fence_of,
    heading_level,
    interrupts,
    is_rule,
    readable,
)

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
"""A longer code block in a text is escaped at its fence instead of being looked through to its end."""


def is_id(word: str) -> bool:
    """Whether Obsidian takes `word` for a block id: ASCII letters, digits and hyphens."""
    return bool(_ID.match(word))


def is_tag(word: str) -> bool:
    """Whether Obsidian can hold `word` as `#word`: letters, digits, `_ - /`, and not digits alone."""
    if word.isascii():
        return bool(_ASCII_TAG.match(word)) and not word.isdecimal()
    return all(map(_in_tag, word)) and not word.isdecimal()


def _in_tag(char: str) -> bool:
    if char.isascii():
        return char.isalnum() or char in "_-/"
    return unicodedata.category(char)[0] in "LMN" or unicodedata.category(char) == "So"


def hashtags(text: str) -> tuple[str, ...]:
    """The `#tags` within a text, by Obsidian's rules: behind a blank or at a line's start."""
    found: list[str] = []
    for line in text.split("\n"):
        for word in line.replace("\t", " ").split(" "):
            if word[:1] == "#" and len(word) > 1:
                end = next((k for k in range(1, len(word)) if not _in_tag(word[k])), len(word))
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
            end = _before(line, comment)
            continue
        start = _word_start(line, end)
        word = line[start:end]
        if word[0] == "^" and found is None and is_id(word[1:]):
            found = word[1:]
        elif word[0] == "#" and is_tag(word[1:]) and not (first and start <= lead):
            tags.append(word[1:])
        else:
            break
        end = _before(line, start)
    return _unescape_end(line[:end], lead), tuple(reversed(tags)), found


def _word_start(line: str, end: int) -> int:
    # By the letter: a search for the other kind of blank goes through the whole line for each of its tags.
    while end and line[end - 1] not in BLANK:
        end -= 1
    return end


def _before(line: str, at: int) -> int:
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
        if not words or interrupts(words):
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
        if closes(lines[at].lstrip(" "), fence):
            block = lines[start : at + 1]
            return block if all(map(_is_literal, block)) else ()
    return ()


def _is_literal(line: str) -> bool:
    if not line:
        return True
    return line[-1] not in BLANK and line.lstrip(" ")[:1] != "\t" and _literal(line) == line


def _fence_lines(lines: Sequence[str]) -> list[int]:
    bare = [(number, line.lstrip(" ")) for number, line in enumerate(lines)]
    return [k for k, words in bare if words.startswith(("```", "~~~")) and not words.strip(words[0])]


def _literal(line: str) -> str:
    return _UNSAFE.sub(lambda match: "&" if match.group() == "&" else "", readable(line))
