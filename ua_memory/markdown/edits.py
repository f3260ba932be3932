"""Edits that know the syntax: an append that cannot fall into an open fence, an id, a front matter key.

All of them keep every byte they were not asked to change, and what could be misread is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

from ua_memory.errors import Malformed
from ua_memory.markdown.blocks import scan
from ua_memory.markdown.escapes import is_id
from ua_memory.markdown.header import change_header, read_header
from ua_memory.markdown.items import read_item
from ua_memory.markdown.lines import heading_level
from ua_memory.markdown.reader import Reader
from ua_memory.markdown.source import BOM, add_at_end, newline_of, split
from ua_memory.markdown.source import insert_after as insert_lines
from ua_memory.records import Fact, Place, Record


def append(data: bytes, lines: Sequence[str], *, closed: bool = False) -> bytes:
    """`data` with `lines` at its end, in its newline style; a missing final newline is added before
    them, and an empty line before a heading. A code fence or comment that is still open is closed
    first, since what is written into it could not be read; `closed` says that none is, as a Document
    knows it, and spares another look through a long file."""
    if not lines:
        return data
    source = split(data)
    closing = [] if closed else _closing(source.lines)
    if closing:
        data = add_at_end(data, closing, False)
    last = closing[-1] if closing else source.lines[-1] if source.lines else ""
    blank = bool(heading_level(lines[0])) and bool(last.strip())
    return add_at_end(data, lines, blank)


def _closing(lines: Sequence[str]) -> list[str]:
    return [block.unclosed for block in scan(lines, read_header(lines).size) if block.unclosed]


def set_front(data: bytes, changes: Mapping[str, Any]) -> bytes:
    """`data` with the front matter keys in `changes` set, or taken out where the value is None. Lines
    of other keys, comments and the body keep their bytes. Malformed where that cannot be done."""
    source = split(data)
    size, new = change_header(source.lines, changes)
    if not size:
        return insert_lines(data, 0, new) if len(new) > 2 else data
    newline = newline_of(data)
    start = len(BOM) if source.bom else 0
    pieces = data[start:].split(b"\n")
    matcher = SequenceMatcher(None, source.lines[:size], new, autojunk=False)
    kept: list[bytes] = []
    for _, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if source.lines[old_start:old_end] == tuple(new[new_start:new_end]):
            kept.extend(pieces[old_start:old_end])
        else:
            kept.extend((line + newline[:-1]).encode() for line in new[new_start:new_end])
    return data[:start] + b"\n".join([*kept, *pieces[size:]])


def with_id(data: bytes, fact: Fact, new_id: str) -> bytes:
    """`data` with ` ^new_id` behind the fact's first paragraph, which stands where `fact.place` says.

    Malformed if that would change anything but this fact's id.
    """
    if not is_id(new_id):
        raise Malformed(f"{new_id!r} is no block id")
    path = fact.place.path
    before = _records(data, path)
    wanted = [replace(r, id=new_id) if isinstance(r, Fact) and r.place == fact.place else r for r in before]
    for changed in _with_id_somewhere(data, fact.place, new_id):
        if wanted != before and _records(changed, path) == wanted:
            return changed
    raise Malformed("this item cannot be given an id", where=fact.place.citation, mend="read the file again")


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
    yield insert_lines(data, place.end, [f"  ^{new_id}"])


def _with_suffix(data: bytes, line: int, suffix: str) -> bytes:
    pieces = data.split(b"\n", line + 1)
    piece = pieces[line]
    end = b"\r" if piece.endswith(b"\r") and len(pieces) > line + 1 else b""
    pieces[line] = piece[: len(piece) - len(end)] + suffix.encode() + end
    return b"\n".join(pieces)
