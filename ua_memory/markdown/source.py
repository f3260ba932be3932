"""Bytes → lines, and edits of bytes by line. Nothing here changes a byte that it was not asked to.

A line ends at b"\\n" and nowhere else: U+0085, U+2028 and a lone "\\r" are ordinary characters. One "\\r"
right before the b"\\n" belongs to the line's end, also in a file that mixes both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ua_memory.records import Place

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


def newline_of(data: bytes) -> str:
    """The first newline of `data`, `\\n` if it has none."""
    at = data.find(b"\n")
    return "\r\n" if at > 0 and data[at - 1 : at] == b"\r" else "\n"


def encoded(line: str) -> bytes:
    """The bytes of a line; surrogate escapes become the bytes they stand for, other surrogates U+FFFD."""
    kept = "".join("\ufffd" if "\ud800" <= c < "\udc80" or "\udcff" < c <= "\udfff" else c for c in line)
    return kept.encode("utf-8", "surrogateescape")


def _block(lines: Sequence[str], newline: str) -> bytes:
    return b"".join(part + newline.encode() for line in lines for part in encoded(line).split(b"\n"))


def add_at_end(data: bytes, lines: Sequence[str], blank: bool) -> bytes:
    """`data`, its missing final newline, an empty line if `blank`, and `lines`."""
    newline = newline_of(data)
    started = bool(data) and data != BOM
    mend = newline.encode() if started and not data.endswith(b"\n") else b""
    gap = newline.encode() if blank and started else b""
    return data + mend + gap + _block(lines, newline)


def insert_after(data: bytes, line: int, lines: Sequence[str]) -> bytes:
    """`data` with `lines` behind its line number `line` (from 1; 0 puts them first, behind a BOM).

    Past the last line they go to the end, whose missing newline is added.
    """
    at = _offset(data, line)
    if at is None or (at == len(data) and not data.endswith(b"\n")):
        return add_at_end(data, lines, False)
    return data[:at] + _block(lines, newline_of(data)) + data[at:]


def replace_lines(data: bytes, place: Place, lines: Sequence[str]) -> bytes:
    """`data` with `lines` in place of the lines of `place`; none takes them out. A file without a final
    newline stays so."""
    start = _offset(data, place.line - 1)
    end = _offset(data, place.end)
    if start is None:
        raise IndexError(f"{place.citation} is past the end of the file")
    block = _block(lines, newline_of(data))
    if end is None:
        end = len(data)
        if not data.endswith(b"\n"):
            block = block.removesuffix(newline_of(data).encode())
    return data[:start] + block + data[end:]


def _offset(data: bytes, line: int) -> int | None:
    """Where the text behind the first `line` lines starts; None if there are not so many newlines."""
    at = len(BOM) if data.startswith(BOM) else 0
    for _ in range(line):
        at = data.find(b"\n", at) + 1
        if not at:
            return None
    return at
