"""The files of a bank: bytes → records and problems, record → lines, and edits that keep every other byte.

This is the face of the syntax: `docs/format.md` specifies it, and whatever else reads or writes a
bank's markdown imports it from here. Pure: no files, no clock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from ua_memory.markdown.again import Again
from ua_memory.markdown.citations import Citation, citations, link, link_to
from ua_memory.markdown.edits import append, set_front, with_id
from ua_memory.markdown.escapes import hashtags
from ua_memory.markdown.fields import is_time
from ua_memory.markdown.filekinds import FileKind, day_of, kind_of
from ua_memory.markdown.header import read_header
from ua_memory.markdown.headings import heading_line, tags_line
from ua_memory.markdown.lines import readable
from ua_memory.markdown.printer import encode_core, show, through_line
from ua_memory.markdown.reader import Reader
from ua_memory.markdown.source import insert_after, replace_lines, split
from ua_memory.records import Problem, Record

__all__ = [
    "Citation",
    "Document",
    "FileKind",
    "append",
    "citations",
    "day_of",
    "encode_core",
    "hashtags",
    "heading_line",
    "insert_after",
    "is_time",
    "kind_of",
    "link",
    "link_to",
    "parse",
    "readable",
    "replace_lines",
    "set_front",
    "show",
    "tags_line",
    "texthash",
    "through_line",
    "with_id",
]

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed file."""

    path: str
    """Relative to the bank, with `/`."""
    lines: tuple[str, ...]
    """Without their ends; bytes that are no UTF-8 are surrogate escapes."""
    newline: str
    """`\\n` or `\\r\\n`: the first one met, `\\n` if there is none."""
    final_newline: bool
    bom: bool
    front: Mapping[str, Any]
    """The front matter's values, empty if there is none or it cannot be read."""
    front_end: int
    """How many lines the front matter takes."""
    records: tuple[Record, ...]
    """In file order, prose as Passages included."""
    problems: tuple[Problem, ...]
    through: tuple[str, ...]
    """The marks of all `<!-- through: … -->` comments."""
    unclosed: tuple[str, ...] = ()
    """What would close the code fence or comment that is still open at the end of the file."""
    tags: tuple[str, ...] = ()
    """Those of its front matter: they are of all that stands in it."""

    def of(self, kind: type[R]) -> tuple[R, ...]:
        """The records of one type, in file order."""
        return tuple(record for record in self.records if isinstance(record, kind))


def parse(data: bytes, path: str) -> Document:
    """The file at the bank-relative `path` with these bytes. Never raises, whatever they are."""
    if len(data) <= SMALL:
        return _again(data, path)
    return _again_large(data, path) if len(data) <= LARGE else _parsed(data, path)


LEAST, SMALL, LARGE = 1 << 12, 1 << 16, 1 << 20
"""Bytes of a file that is parsed once where it is asked for again soon: a revision reads each of its files
when it looks for the place, when it compares, and when it says what has become of it. A consolidation that
made 200 observations spent half of its time on that, and an insert into a day of 1,200 facts four fifths.
Of large files two are kept, what a revision found and what it makes of it, and of what `again` reads four:
some 20 MB where they are of this size, since they share what is the same in them."""


def _parsed(data: bytes, path: str) -> Document:
    source = split(data)
    header = read_header(source.lines)
    lines = source.lines if source.valid else tuple(map(readable, source.lines))
    reader = (Again if LEAST <= len(data) <= LARGE else Reader)(path, lines, header)
    reader.read()
    problems = reader.problems
    if not source.valid:
        problems = sorted([*problems, *_not_utf8(path, source.lines)], key=lambda problem: problem.line)
    return Document(
        path,
        source.lines,
        source.newline,
        source.final_newline,
        source.bom,
        header.values,
        header.size,
        tuple(reader.records),
        tuple(problems),
        tuple(reader.through),
        tuple(reader.unclosed),
        header.tags(),
    )


_again, _again_large = lru_cache(maxsize=8)(_parsed), lru_cache(maxsize=2)(_parsed)


def _not_utf8(path: str, lines: Sequence[str]) -> list[Problem]:
    found = []
    for number, line in enumerate(lines, 1):
        if not line.isascii() and (cleaned := readable(line)) != line:
            column = next(k for k, (a, b) in enumerate(zip(line, cleaned, strict=True)) if a != b)
            byte = ord(line[column]) - 0xDC00
            found.append(Problem(path, number, f"byte 0x{byte:02x} in column {column + 1} is no UTF-8"))
    return found


def texthash(text: str) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of `text`, which names a fact without an id."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
