"""What a single line of markdown is: how far it is indented, and which block it opens.

Every function here takes one line without its newline and is linear in its length. Only spaces and
tabs are white space; U+00A0, U+0085 and their like are ordinary characters of a line.
"""

from __future__ import annotations

import re

BLANK = " \t"
_NUMBER = re.compile(r"([0-9]{1,9})[.)](?=[ \t])")
_HEADING = re.compile(r"#{1,6}(?=[ \t]|$)")
_HTML = re.compile(
    r"</?(?:blockquote|center|dd|details|div|dl|dt|figure|footer|form|h[1-6]|header|hr|iframe|li|main|nav"
    r"|ol|p|section|summary|table|tbody|td|tfoot|th|thead|tr|ul)(?=[ \t>]|/>|$)",
    re.IGNORECASE,
)
_SURROGATES = re.compile("[\ud800-\udfff]")


def readable(text: str) -> str:
    """`text` with U+FFFD in place of surrogates, which stand for bytes that are no UTF-8."""
    return _SURROGATES.sub("\ufffd", text)


def indent_of(line: str) -> tuple[int, int]:
    """Columns and characters of leading white space; a tab reaches the next multiple of 4."""
    chars = len(line) - len(line.lstrip(BLANK))
    if "\t" not in line[:chars]:
        return chars, chars
    column = 0
    for char in line[:chars]:
        column += 4 - column % 4 if char == "\t" else 1
    return column, chars


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


def closes(words: str, fence: str) -> bool:
    """Whether a line closes the fence that `fence` opened."""
    return words.startswith(fence) and not words.strip(fence[0])


def comment_end(words: str) -> int:
    """For a line that starts with `<!--`: -1 if the comment runs on, else where text behind it starts,
    which is the length of the line where there is none."""
    at = 0
    while words.startswith("<!--", at):
        close = words.find("-->", at + 2)
        if close < 0:
            return -1
        at = close + 3
        while words[at : at + 1] in (" ", "\t"):
            at += 1
    return at


def hides(words: str) -> bool:
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


def interrupts(words: str) -> bool:
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
        return hides(words) or bool(_HTML.match(words))
    return first == ">"
