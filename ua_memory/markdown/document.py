"""Parsing a file of the bank into a Document, and edits that keep all other bytes."""

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
    append_lines,
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
# Edits that know the syntax: appending outside of an open fence, adding an id, setting a front matter key.
# They keep all other bytes, and raise Malformed if the result would parse differently.


def append(data: bytes, lines: Sequence[str], *, closed: bool = False) -> bytes:
    """`data` with `lines` appended, in its newline style, with a blank line before a heading.

    An open code fence or comment is closed first. `closed` says that there is none (`Document.unclosed`),
    which saves scanning a long file.
    """
    if not lines:
        return data
    source = split(data)
    open_blocks = () if closed else scan(source.lines, read_header(source.lines).size)
    closing = [block.unclosed for block in open_blocks if block.unclosed]
    if closing:
        data = append_lines(data, closing, False)
    last = closing[-1] if closing else source.lines[-1] if source.lines else ""
    blank = bool(heading_level(lines[0])) and bool(last.strip())
    return append_lines(data, lines, blank)


def set_front(data: bytes, changes: Mapping[str, Any]) -> bytes:
    """`data` with the front matter keys in `changes` set, or removed for None. All other lines keep their
    bytes. Malformed if that is not possible."""
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
    """`data` with ` ^new_id` after the first paragraph of the fact at `fact.place`.

    Malformed if that would change anything but this fact's id.
    """
    if not is_id(new_id):
        raise Malformed(f"{new_id!r} is not a block id")
    path = fact.place.path
    before = _parse_records(data, path)
    wanted = [replace(r, id=new_id) if isinstance(r, Fact) and r.place == fact.place else r for r in before]
    for changed in _id_candidates(data, fact.place, new_id):
        if wanted != before and _parse_records(changed, path) == wanted:
            return changed
    raise Malformed("this item cannot be given an id", where=fact.place.citation, hint="read the file again")


def _parse_records(data: bytes, path: str) -> list[Record]:
    source = split(data)
    reader = Reader(path, source.lines, read_header(source.lines))
    reader.read()
    return reader.records


def _id_candidates(data: bytes, place: Place, new_id: str) -> Iterator[bytes]:
    lines = split(data).lines
    at = place.line - 1
    while 0 <= at < min(place.end, len(lines)):
        item = read_item(lines, at, ())
        if item.tail >= 0:
            yield _append_to_line(data, item.tail, f" ^{new_id}")
        at = item.end
    yield insert_after(data, place.end, [f"  ^{new_id}"])


def _append_to_line(data: bytes, line: int, suffix: str) -> bytes:
    pieces = data.split(b"\n", line + 1)
    piece = pieces[line]
    end = b"\r" if piece.endswith(b"\r") and len(pieces) > line + 1 else b""
    pieces[line] = piece[: len(piece) - len(end)] + suffix.encode() + end
    return b"\n".join(pieces)


# -- markdown ----------------------------------------------------------------------------------------------
# Parsing bytes into records and problems, as specified in `docs/format.md`. Pure: no files, no clock.


R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Document:
    """One parsed file."""

    path: str
    """Relative to the bank, with `/`."""
    lines: tuple[str, ...]
    """Without newlines; invalid UTF-8 as surrogate escapes."""
    newline: str
    """`\\n` or `\\r\\n`: the first in the file, `\\n` if there is none."""
    final_newline: bool
    bom: bool
    front: Mapping[str, Any]
    """The front matter's values; empty if there is none, or it is invalid."""
    front_end: int
    """The number of lines of the front matter."""
    records: tuple[Record, ...]
    """In file order, prose as Passages included."""
    problems: tuple[Problem, ...]
    through: tuple[str, ...]
    """The marks of all `<!-- through: … -->` comments."""
    unclosed: tuple[str, ...] = ()
    """What closes the code fence or comment that is open at the end of the file."""
    tags: tuple[str, ...] = ()
    """The tags of the front matter, which apply to all records."""

    def of(self, kind: type[R]) -> tuple[R, ...]:
        """The records of one type, in file order."""
        return tuple(record for record in self.records if isinstance(record, kind))

    @property
    def statements(self) -> tuple[Fact | Observation | Opinion, ...]:
        """The facts, observations and opinions, in file order."""
        return tuple(record for record in self.records if isinstance(record, Fact | Observation | Opinion))


INCREMENTAL_FROM, SMALL_FILE, LARGE_FILE = 1 << 12, 1 << 16, 1 << 20
"""Sizes in bytes: from the first a file is parsed incrementally; up to the second and third it is cached.

One revision parses each of its files several times. Without a cache, a consolidation with 200 observations
spent half of its time on that, an insert into a log of 1,200 facts four fifths. Two large files are cached,
the one that a revision reads and the one it writes, and four incremental readers: some 20 MB at this size.
"""


class ParseCache:
    """Caches parsed files, and the readers for incremental parsing of long ones."""

    def __init__(self) -> None:
        self._recent = RecentReaders()
        self._small, self._large = lru_cache(maxsize=8)(self._parse), lru_cache(maxsize=2)(self._parse)

    def parse(self, data: bytes, path: str) -> Document:
        """Parse the bytes of the file at a path of the bank. Never raises."""
        if len(data) <= SMALL_FILE:
            return self._small(data, path)
        return self._large(data, path) if len(data) <= LARGE_FILE else self._parse(data, path)

    def cache_clear(self) -> None:
        """Clear the cache."""
        self._recent.readers = ()
        self._small.cache_clear()
        self._large.cache_clear()

    def _parse(self, data: bytes, path: str) -> Document:
        source = split(data)
        header = read_header(source.lines)
        lines = source.lines if source.valid else tuple(map(readable, source.lines))
        if INCREMENTAL_FROM <= len(data) <= LARGE_FILE:
            reader: Reader = IncrementalReader(path, lines, header, self._recent)
        else:
            reader = Reader(path, lines, header)
        reader.read()
        problems = reader.problems
        if not source.valid:
            problems = [*problems, *_encoding_problems(path, source.lines)]
            problems.sort(key=lambda problem: problem.line)
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


def _encoding_problems(path: str, lines: Sequence[str]) -> list[Problem]:
    if lines and lines[0].startswith(("\udcff\udcfe", "\udcfe\udcff")):  # its byte order mark
        return [Problem(path, 1, "this is UTF-16; convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW")]
    found = []
    for number, line in enumerate(lines, 1):
        if not line.isascii() and (cleaned := readable(line)) != line:
            column = next(k for k, (a, b) in enumerate(zip(line, cleaned, strict=True)) if a != b)
            byte = ord(line[column]) - 0xDC00
            found.append(Problem(path, number, f"byte 0x{byte:02x} in column {column + 1} is not UTF-8"))
    return found


def texthash(text: str) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of `text`, which identify a fact without an id."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
