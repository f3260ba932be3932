"""A file taken apart for merging: what has an identity, and everything between, piece by piece.

A unit is what is known by name on every machine: a statement by its id, a block of core memory, a settled
name, a tombstone, the front matter of a file. The rest is cut into blocks of markdown, each a part that
is kept or goes as a whole: an item without an id, a paragraph, a heading, an empty line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO

from ua_memory import markdown
from ua_memory.markdown.blocks import Shape, scan
from ua_memory.paths import CORE_NAMES
from ua_memory.records import CoreBlock, Entity, Fact, Observation, Opinion, Record, Tombstone, is_generated

Key = tuple[str, str]
FRONT = "front matter"
MARK = b"\n\0"
"""Begins the part that stands for a unit. No part of a file does: an empty line is one by itself."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Something with an identity as one side has it: its lines to the byte, and what they say."""

    key: Key
    path: str
    lines: bytes
    record: Record | None

    @property
    def said(self) -> str:
        """Who said it, where that matters: the heading above may say it, and is not part of the lines."""
        return self.record.said_by if isinstance(self.record, Fact) else ""


@dataclass(frozen=True, slots=True)
class Side:
    """The files of one side: their parts, where a unit is `MARK` and its number, and the units."""

    parts: Mapping[str, list[bytes]] = field(default_factory=dict)
    units: Mapping[Key, Unit] = field(default_factory=dict)
    twice: frozenset[Key] = frozenset()


def key_of(record: Record) -> Key | None:
    """What a record is known by on every machine, if by anything."""
    match record:
        case Fact() | Observation() | Opinion():
            if not record.id or is_generated(record.id):
                return ("id", record.id) if record.id else None
            return ("id", f"{record.place.path}#^{record.id}")  # a person's own is of its file
        case CoreBlock(top=True):
            return None  # its title is no part of it: it is merged line by line
        case CoreBlock() | Entity():
            return (type(record).__name__, record.name)
        case Tombstone():
            return ("Tombstone", record.id)
    return None


def read(files: Mapping[str, bytes], plain: Iterable[Key] = ()) -> Side:
    """Take files apart. `plain` are units to be treated like any other lines; those that stand twice are."""
    found: dict[Key, Unit] = {}
    seen: Counter[Key] = Counter()
    cut: dict[str, list[tuple[Key | None, bytes]]] = {}
    leave = set(plain)
    for path, data in files.items():
        cut[path] = list(_cut(data, path, found, seen))
    twice = frozenset(key for key, number in seen.items() if number > 1)
    leave |= twice
    parts = {
        path: [raw if key is None or key in leave else token(key) for key, raw in rows]
        for path, rows in cut.items()
    }
    return Side(parts, {key: unit for key, unit in found.items() if key not in leave}, twice)


def token(key: Key) -> bytes:
    """The part that stands for a unit."""
    return MARK + "\0".join(key).encode("utf-8", "surrogateescape")


def key_in(part: bytes) -> Key | None:
    """The unit that a part stands for, if it does."""
    if not part.startswith(MARK):
        return None
    kind, _, name = part[len(MARK) :].decode("utf-8", "surrogateescape").partition("\0")
    return kind, name


def _cut(
    data: bytes, path: str, found: dict[Key, Unit], seen: Counter[Key]
) -> Iterator[tuple[Key | None, bytes]]:
    lines = BytesIO(data if not data or data.endswith(b"\n") else data + b"\n").readlines()
    if not path.endswith(".md"):
        yield from ((None, line) for line in lines)
        return
    document = markdown.parse(data, path)
    starts: dict[int, tuple[int, Key | None, Record | None]] = {}
    for block in scan(document.lines, document.front_end):
        starts[block.start] = (block.end, None, None)
    for each in document.records:
        if (key := key_of(each)) and (path in CORE_NAMES) == isinstance(each, CoreBlock):
            starts[each.place.line - 1] = (each.place.end, key, each)
    if document.front_end:
        starts[0] = (document.front_end, (FRONT, path), None)
    at = 0
    while at < len(lines):
        end, key, record = starts.get(at, (at + 1, None, None))
        raw = b"".join(lines[at:end])
        if key:
            seen[key] += 1
            found.setdefault(key, Unit(key, path, raw, record))
        yield key, raw
        at = max(end, at + 1)


def joined(parts: Iterable[bytes], lines_of: Callable[[Key], bytes]) -> bytes:
    """The file that parts make up. Two texts from different machines do not run into each other."""
    out: list[bytes] = []
    for part in parts:
        key = key_in(part)
        raw = lines_of(key) if key else part
        if not raw:
            continue
        if out and _is_text(raw) and out[-1].strip() and not out[-1].startswith((b"#", b"---")):
            out.append(b"\r\n" if out[-1].endswith(b"\r\n") else b"\n")
        out.append(raw)
    return b"".join(out)


def _is_text(raw: bytes) -> bool:
    """Whether a part is a paragraph, which what stands above it would take in."""
    first = raw.split(b"\n", 1)[0].decode("utf-8", "surrogateescape")
    shapes = [block.shape for block in scan([first])]
    return shapes == [Shape.PARAGRAPH]
