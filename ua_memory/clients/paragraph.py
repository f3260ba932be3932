"""Lines of ours at the end of somebody's text, behind an empty line, and out again to the byte."""

from __future__ import annotations

import re


def rows_of(text: str) -> list[str]:
    """The lines of a text with their ends. Only a line feed ends one, whatever else stands in it."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def newline_of(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def added(text: str | None, lines: list[str]) -> str:
    """The text with the lines at its end. They end as it does; None, no file, as with a line's end."""
    newline = newline_of(text or "")
    block = newline.join(lines)
    if not text:
        return block + ("\n" if text is None else "")
    return f"{text}{newline}{block}{newline}" if text.endswith("\n") else f"{text}{newline * 2}{block}"


def removed(rows: list[str], start: int, end: int) -> list[str]:
    """The lines without those from `start` to before `end`, and without what `added` put around them."""
    cut_off = not rows[end - 1].endswith("\n")
    parted = start > 1 and rows[start - 1] in ("\n", "\r\n")
    kept = rows[: start - parted] + rows[end:]
    if cut_off and parted:  # the text had no line's end when they came
        kept[-1] = kept[-1].removesuffix(rows[start - 1])
    return kept
