"""A file of the bank: its bytes, records and problems, and edits that keep everything else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, TypeVar

from ua_memory.errors import Malformed
from ua_memory.markdown.blocks import change_header, read_header, read_item, scan
from ua_memory.markdown.lines import (
    BOM,
    add_at_end,
    heading_level,
    insert_after,
    is_id,
    newline_of,
    readable,
    split,
)
from ua_memory.markdown.reader import IncrementalReader, Reader, RecentReaders
from ua_memory.records import Fact, Observation, Opinion, Place, Problem, Record

# -- edits -------------------------------------------------------------------------------------------------
# Edits that know the syntax: an append that cannot fall into an open fence, an id, a front matter key.
#
# All of them keep every byte they were not asked to change, and what could be misread is refused.


def append(data: bytes, lines: Sequence[str], *, closed: bool = False) -> bytes:
    """`data` with `lines` at its end, in its newline style; a missing final newline is added before
    them, and an empty line before a heading. A code fence or comment that is still open is closed
    first, since what is written into it could not be read; `closed` says that none is, as a Document
    knows it, and spares another look through a long file."""
    if not lines:
        return data
    source = split(data)
    open_blocks = () if closed else scan(source.lines, read_header(source.lines).size)
    closing = [block.unclosed for block in open_blocks if block.unclosed]
    if closing:
        data = add_at_end(data, closing, False)
    last = closing[-1] if closing else source.lines[-1] if source.lines else ""
    blank = bool(heading_level(lines[0])) and bool(last.strip())
    return add_at_end(data, lines, blank)


def set_front(data: bytes, changes: Mapping[str, Any]) -> bytes:
    """`data` with the front matter keys in `changes` set, or taken out where the value is None. Lines
    of other keys, comments and the body keep their bytes. Malformed where that cannot be done."""
    source = split(data)
    size, new = change_header(source.lines, changes)
    if not size:
        return insert_after(data, 0, new) if len(new) > 2 else data
    newline = newline_of(data)
    start = len(BOM) if source.bom else 0
    pieces = data[start:].split(b"\n")
    matcher = SequenceMatcher(None, source.lines[:size], new, autojunk=False)
    kept = [(line + newline[:-1]).encode("utf-8", "surrogateescape") for line in new]
    for old_start, new_start, count in matcher.get_matching_blocks():
        kept[new_start : new_start + count] = pieces[old_start : old_start + count]
    return data[:start] + b"\n".join([*kept, *pieces[size:]])


def with_id(data: bytes, fact: Fact, new_id: str) -> bytes:
    """`data` with ` ^new_id` behind the fact's first paragraph, which stands where `fact.place` says.

    Malformed if that would change anything but this fact's id.
    """
    if not is_id(new_id):
        raise Malformed(f"{new_id!r} is not a block id")
    path = fact.place.path
    before = _records(data, path)
    wanted = [replace(r, id=new_id) if isinstance(r, Fact) and r.place == fact.place else r for r in before]
    for changed in _with_id_somewhere(data, fact.place, new_id):
        if wanted != before and _records(changed, path) == wanted:
            return changed
    raise Malformed("this item cannot be given an id", where=fact.place.citation, hint="read the file again")


def _records(data: bytes, path: str) -> list[Record]:
    source = split(data)
    reader = Reader(path, source.lines, read_header(source.lines))
    reader.read()
    return reader.records


def _with_id_somewhere(data: bytes, place: Place, new_id: str) -> Iterator[bytes]:
    lines = split(data).lines
    at = place.line - 1
    while 0 <= at < min(place.end, len(lines)):
        item = read_item(lines, at, ())
        if item.tail >= 0:
            yield _with_suffix(data, item.tail, f" ^{new_id}")
        at = item.end
    yield insert_after(data, place.end, [f"  ^{new_id}"])


def _with_suffix(data: bytes, line: int, suffix: str) -> bytes:
    pieces = data.split(b"\n", line + 1)
    piece = pieces[line]
    end = b"\r" if piece.endswith(b"\r") and len(pieces) > line + 1 else b""
    pieces[line] = piece[: len(piece) - len(end)] + suffix.encode() + end
    return b"\n".join(pieces)


# -- markdown ----------------------------------------------------------------------------------------------
# The files of a bank: bytes → records and problems, record → lines, and edits that keep every other byte.
#
# This is the face of the syntax: `docs/format.md` specifies it, and whatever else reads or writes a bank's
# markdown imports it from here. Pure: no files, no clock.


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

    @property
    def statements(self) -> tuple[Fact | Observation | Opinion, ...]:
        """The records that have a block id, in file order."""
        return tuple(record for record in self.records if isinstance(record, Fact | Observation | Opinion))


LEAST, SMALL, LARGE = 1 << 12, 1 << 16, 1 << 20
"""Bytes of a file that is parsed once where it is asked for again soon: a revision reads each of its files
when it looks for the place, when it compares, and when it says what has become of it. A consolidation that
made 200 observations spent half of its time on that, and an insert into a day of 1,200 facts four fifths.
Of large files two are kept, what a revision found and what it makes of it, and of what `again` reads four:
some 20 MB where they are of this size, since they share what is the same in them."""


class ParseCache:
    """Files as they were parsed last, and the readers that parse what was added to a long one."""

    def __init__(self) -> None:
        self._recent = RecentReaders()
        self._small, self._large = lru_cache(maxsize=8)(self._parsed), lru_cache(maxsize=2)(self._parsed)

    def parse(self, data: bytes, path: str) -> Document:
        """The file at the bank-relative `path` with these bytes. Never raises, whatever they are."""
        if len(data) <= SMALL:
            return self._small(data, path)
        return self._large(data, path) if len(data) <= LARGE else self._parsed(data, path)

    def cache_clear(self) -> None:
        """Forget all of them."""
        self._recent.readers = ()
        self._small.cache_clear()
        self._large.cache_clear()

    def _parsed(self, data: bytes, path: str) -> Document:
        source = split(data)
        header = read_header(source.lines)
        lines = source.lines if source.valid else tuple(map(readable, source.lines))
        if LEAST <= len(data) <= LARGE:
            reader: Reader = IncrementalReader(path, lines, header, self._recent)
        else:
            reader = Reader(path, lines, header)
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


_cache = ParseCache()
parse = _cache.parse


def _not_utf8(path: str, lines: Sequence[str]) -> list[Problem]:
    found = []
    for number, line in enumerate(lines, 1):
        if not line.isascii() and (cleaned := readable(line)) != line:
            column = next(k for k, (a, b) in enumerate(zip(line, cleaned, strict=True)) if a != b)
            byte = ord(line[column]) - 0xDC00
            found.append(Problem(path, number, f"byte 0x{byte:02x} in column {column + 1} is not UTF-8"))
    return found


def texthash(text: str) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of `text`, which names a fact without an id."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
