"""Merging the files of two machines: three-way by id, without what either has forgotten."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from difflib import SequenceMatcher
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from ua_memory.discovery import BESIDE, CORE_NAMES, SETTINGS, is_dated
from ua_memory.errors import Conflict, NotFound, TooLarge, writing
from ua_memory.git.history import History
from ua_memory.git.repository import blob_id
from ua_memory.knowledge import statements
from ua_memory.knowledge.lineage import strip_citations
from ua_memory.knowledge.tombstones import PATH, Tombstones, add, parse
from ua_memory.markdown import document as markdown_document
from ua_memory.markdown import printer
from ua_memory.markdown.blocks import BlockShape, scan
from ua_memory.paths import is_memory_file
from ua_memory.records import (
    CoreBlock,
    Entity,
    Fact,
    Observation,
    Opinion,
    Place,
    Record,
    Tombstone,
    is_generated,
    written_id,
)
from ua_memory.store import swap
from ua_memory.store.draft import Draft, Result
from ua_memory.store.files import MAX_FILE
from ua_memory.store.saves import merge_parts, split_lines
from ua_memory.store.store import Store
from ua_memory.upkeep import forget, init

# -- units -------------------------------------------------------------------------------------------------
# Splitting files into units and other parts.
#
# A unit has the same key on every machine: a statement's id, a block of core memory, an entity, a tombstone,
# the front matter of a file. All else is split into blocks of markdown, which are merged whole: an item
# without an id, a paragraph, a heading, a blank line.


Key = tuple[str, str]
FRONT = "front matter"
UNIT_MARK = b"\n\0"
"""Begins the token of a unit. No part of a file begins so, since a blank line is a part of its own."""


@dataclass(frozen=True, slots=True)
class MergeUnit:
    """A unit on one side: its exact lines, and the record that they parse to."""

    key: Key
    path: str
    lines: bytes
    record: Record | None

    @property
    def said(self) -> str:
        """A fact's origin, which may stand in the heading above and not in its lines."""
        return self.record.said_by if isinstance(self.record, Fact) else ""


@dataclass(frozen=True, slots=True)
class Side:
    """The files of one side: {path: parts}, with a token for each unit, and the units.

    `duplicates` are keys that occur more than once; these have no unit.
    """

    parts: Mapping[str, list[bytes]] = field(default_factory=dict)
    units: Mapping[Key, MergeUnit] = field(default_factory=dict)
    duplicates: frozenset[Key] = frozenset()


def unit_key(record: Record) -> Key | None:
    """The key that a record has on every machine, None if it has none."""
    match record:
        case Fact() | Observation() | Opinion():
            if not record.id or is_generated(record.id):
                return ("id", record.id) if record.id else None
            return ("id", f"{record.place.path}#^{record.id}")  # a typed id belongs to its file
        case CoreBlock(top=True):
            return None  # its title is not part of it: it is merged line by line
        case CoreBlock() | Entity():
            return (type(record).__name__, record.name)
        case Tombstone():
            return ("Tombstone", record.id)
    return None


def split_files(files: Mapping[str, bytes], plain: Iterable[Key] = ()) -> Side:
    """Split files. Units with keys in `plain`, and duplicates, are treated as ordinary parts."""
    found: dict[Key, MergeUnit] = {}
    seen: Counter[Key] = Counter()
    cut = {path: list(_split_file(data, path, found, seen)) for path, data in files.items()}
    twice = frozenset(key for key, number in seen.items() if number > 1)
    leave = {None, *plain, *twice}
    parts = {path: [raw if key is None or key in leave else unit_token(key) for key, raw in rows]
             for path, rows in cut.items()}  # fmt: skip
    return Side(parts, {key: unit for key, unit in found.items() if key not in leave}, twice)


def unit_token(key: Key) -> bytes:
    """The part that represents a unit."""
    return UNIT_MARK + "\0".join(key).encode("utf-8", "surrogateescape")


def token_key(part: bytes) -> Key | None:
    """The key of the unit that a part represents; None for an ordinary part."""
    if not part.startswith(UNIT_MARK):
        return None
    kind, _, name = part[len(UNIT_MARK) :].decode("utf-8", "surrogateescape").partition("\0")
    return kind, name


def _split_file(
    data: bytes, path: str, found: dict[Key, MergeUnit], seen: Counter[Key]
) -> Iterator[tuple[Key | None, bytes]]:
    lines = split_lines(data)
    if not path.endswith(".md"):
        yield from ((None, line) for line in lines)
        return
    document = markdown_document.parse(data, path)
    starts: dict[int, tuple[int, Key | None, Record | None]] = {}
    for block in scan(document.lines, document.front_end):
        starts[block.start] = (block.end, None, None)
    for each in document.records:
        if (key := unit_key(each)) and (path in CORE_NAMES) == isinstance(each, CoreBlock):
            starts[each.place.line - 1] = (each.place.end, key, each)
    if document.front_end:
        starts[0] = (document.front_end, (FRONT, path), None)
    at = 0
    while at < len(lines):
        end, key, record = starts.get(at, (at + 1, None, None))
        while not key and _HEADING.match(lines[at]) and end < len(lines) and _OUR_COMMENT.match(lines[end]):
            end += 1
        raw = b"".join(lines[at:end])
        if key:
            seen[key] += 1
            found.setdefault(key, MergeUnit(key, path, raw, record))
        yield key, raw
        at = max(end, at + 1)


_HEADING = re.compile(rb"(#{1,6})\s")
_OUR_COMMENT = re.compile(rb"<!-- (?:tags|through):.*-->\s*\Z")
"""A line that is part of the heading above it."""


def _heading_level(part: bytes) -> int:
    """The level of a part that is a heading, 0 for another."""
    found = _HEADING.match(part)
    return len(found[1]) if found else 0


def _headings_by_line(parts: Iterable[bytes]) -> dict[bytes, bytes]:
    """{the line of a heading that occurs once: the part with its comments}."""
    found = [(part.split(b"\n")[0], part) for part in parts if part.startswith(b"#")]
    number = Counter(line for line, _ in found)
    return {line: part for line, part in found if number[line] == 1}


def _with_headings(parts: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """(part, the heading that it stands below or b"") of each part that is not blank."""
    above = [b""]
    for part in parts:
        if level := _heading_level(part):
            above = [each for each in above if _heading_level(each) < level]
        if part.strip():
            yield part, above[-1]
        if level:
            above.append(part)


def _renamed_headings(old: list[bytes], pairs: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """{a heading: its new line}, where a part of `old` stands below a new heading now."""
    was = dict(_with_headings(old))
    return {was[part]: up for part, up in pairs if part in was and was[part] != up and up not in old}


def _split_misplaced(
    rows: list[bytes], right: Collection[tuple[bytes, bytes]]
) -> tuple[list[bytes], list[bytes]]:
    """The parts that stand below a heading of their own, and the others, with all that is below those.

    `right` has each (part, heading above it) of both sides."""
    known, here = {part for part, _ in right}, _with_headings(rows)
    kept: list[bytes] = []
    moved: list[bytes] = []
    below, moving = 0, False  # the level of a heading that is moved with all below it
    for part in rows:
        if not part.strip():
            kept += [] if moving else [part]
            continue
        pair, level = next(here), _heading_level(part)
        below = 0 if 0 < level <= below else below
        moving = bool(below) or (pair not in right if part in known else moving)
        below = below or (level if moving else 0)
        (moved if moving else kept).append(part)
    return kept, moved


def _next_heading(parts: Sequence[bytes], at: int, level: int) -> int:
    """Where the next heading of this or a higher level is; the end if there is none."""
    return next((n for n in range(at, len(parts)) if 0 < _heading_level(parts[n]) <= level), len(parts))


def _insert_below(rows: list[bytes], there: list[bytes], at: int, renamed: Mapping[bytes, bytes]) -> int:
    """Insert a part of one side, `there[at]`, below its heading and what stands before it there; where it is.

    The heading is inserted too if it is neither in `rows` nor renamed."""
    part, level = there[at], _heading_level(there[at])
    up = next((n for n in reversed(range(at)) if 0 < _heading_level(there[n]) < (level or 7)), -1)
    above, start = there[up] if up >= 0 else b"", 0
    if above := above if above in rows else renamed.get(above, above):
        start = 1 + (rows.index(above) if above in rows else _insert_below(rows, there, up, renamed))
    end = _next_heading(rows, start, level - 1 if level else 6)
    before = {each for each in there[:at] if each.strip()}
    where = next((n + 1 for n in reversed(range(start, end)) if rows[n] in before), start)
    newline = b"\r\n" if any(each.endswith(b"\r\n") for each in (*rows, *there)) else b"\n"
    if level:
        where = _next_heading(rows, where, level)
        gap = [newline] if where and rows[where - 1].strip() else []
        rows[where:where] = [*gap, part, newline]
        return where + len(gap)
    while start == where < end and not rows[where].strip():
        start = where = where + 1
    rows[where:where] = [part, newline] if where < len(rows) and _heading_level(rows[where]) else [part]
    return where


def _part_texts(parts: Iterable[bytes], units: Mapping[Key, MergeUnit]) -> list[str]:
    """The texts of parts, without blank ones and units that are not in `units`."""
    found = (
        (units[key].lines if key in units else b"") if (key := token_key(part)) else part for part in parts
    )
    return [text.decode("utf-8", "replace").strip() for text in found if text.strip()]


def _ids_of_the_same(base: Side, ours: Side, theirs: Side) -> dict[bytes, bytes]:
    """{our id: theirs} of what both sides wrote or gave an id, such as a belief that both drew at night or
    the line of a person that it cites. It would be there twice."""

    def new(side: Side, other: Side) -> dict[tuple[object, ...], str]:
        found: dict[tuple[object, ...], list[str]] = {}
        for key, unit in side.units.items():
            record = unit.record
            if key in base.units or key in other.units or not isinstance(record, statements.Statement):
                continue
            if record.id and is_generated(record.id):
                part = (
                    record.heading if is_dated(unit.path.rpartition("/")[2]) else getattr(record, "scope", "")
                )
                found.setdefault((type(record), unit.path, record.text, part), []).append(record.id)
        return {same: ids[0] for same, ids in found.items() if len(ids) == 1}

    mine, there = new(ours, theirs), new(theirs, ours)
    return {f"^{mine[same]}".encode(): f"^{there[same]}".encode() for same in mine.keys() & there.keys()}


def _is_paragraph(raw: bytes) -> bool:
    """Whether a part is a paragraph, which would continue a text right above it."""
    first = raw.split(b"\n", 1)[0].removesuffix(b"\r").decode("utf-8", "surrogateescape")
    return [block.shape for block in scan([first])] == [BlockShape.PARAGRAPH]


# -- merging a unit ----------------------------------------------------------------------------------------
# Deleted on one side and unchanged on the other, a unit is deleted; deleted and changed, it is kept. Changed
# on both sides, it is merged by lines, then by fields; if a field conflicts, both versions are kept.


EARLIEST, LATEST = ("since", "on"), ("last", "importance")
FROM_NEWER = "trend"
"""Taken from the side with the newer evidence."""
OnConflict = Callable[..., None]
_POSITION = ("place", "heading")


@dataclass(frozen=True, slots=True)
class UnitResult:
    """The merged unit, None if it is removed; `beside` is a second version that is inserted after it.

    `why` is the conflict to report, as in `MergeNote`, or ''.
    """

    unit: MergeUnit | None
    beside: MergeUnit | None = None
    why: str = ""


def merge_unit(base: MergeUnit | None, ours: MergeUnit | None, theirs: MergeUnit | None) -> UnitResult:
    """Merge one unit three-way."""
    if ours is None or theirs is None:
        left = ours or theirs
        if base is None or left is None:
            return UnitResult(left)
        return UnitResult(None) if _same(left, base) else UnitResult(left, why="kept")
    path = theirs.path if base and base.path != theirs.path else ours.path
    if _same(ours, theirs) or (base and _same(ours, base)):
        return UnitResult(replace(theirs, path=path))
    if base and _same(theirs, base):
        return UnitResult(replace(ours, path=path))
    return _merge_both(base, ours, theirs, path)


def _same(one: MergeUnit, other: MergeUnit) -> bool:
    return one.lines.split() == other.lines.split() if one.record is None else _rows(one) == _rows(other)


def _rows(unit: MergeUnit) -> list[bytes]:
    return [line.rstrip() for line in unit.lines.splitlines() if line.strip()]


def _merge_both(base: MergeUnit | None, ours: MergeUnit, theirs: MergeUnit, path: str) -> UnitResult:
    lines = merged_lines(base.lines if base else None, ours.lines, theirs.lines)
    if lines is not None and (unit := _parse_unit(theirs.key, path, lines)):
        return UnitResult(replace(unit, path=path))
    if ours.key[0] == FRONT:
        return UnitResult(theirs, why="theirs")
    if isinstance(ours.record, CoreBlock):
        # Both versions of a line are kept, one below the other.
        old = split_lines(base.lines) if base else None
        both = merge_sequences(old, split_lines(ours.lines), split_lines(theirs.lines))
        unit = _parse_unit(theirs.key, path, b"".join(both))
        return UnitResult(replace(unit or theirs, path=path), why="both")
    record = _merge_fields(base.record if base else None, ours.record, theirs.record)
    if record is not None:
        return UnitResult(MergeUnit(ours.key, path, _record_bytes(record), record))
    copy = _copy_with_new_id(ours, path)
    return UnitResult(replace(theirs, path=path), copy, "both" if copy else "theirs")


def merged_lines(base: bytes | None, ours: bytes, theirs: bytes) -> bytes | None:
    """Merge three-way by lines; None if both sides changed the same lines, or there is no base."""
    if base is None:
        return None
    old, one, other = (BytesIO(text).readlines() for text in (base, ours, theirs))
    out, clashes = merge_parts(old, one, other)
    return b"".join(out) if all(clash.inserted for clash in clashes) else None


def merge_sequences(
    base: list[bytes] | None, ours: list[bytes], theirs: list[bytes], on_conflict: OnConflict | None = None
) -> list[bytes]:
    """Merge sequences of parts three-way; without a base, against what both have in common.

    `on_conflict(base, ours, theirs)` is called for each stretch that both changed.
    """
    base = common_parts(ours, theirs) if base is None else base

    def both(*sides: list[bytes]) -> list[bytes]:
        if on_conflict:
            on_conflict(*sides)
        return join_conflict(*sides)

    return merge_parts(base, ours, theirs, both)[0]


def common_parts(ours: list[bytes], theirs: list[bytes]) -> list[bytes]:
    """The parts that two texts share, in order."""
    alike = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    return [part for block in alike for part in ours[block.a : block.a + block.size]]


def join_conflict(old: list[bytes], ours: list[bytes], theirs: list[bytes]) -> list[bytes]:
    """Resolve a conflict: what either side removed is removed, what either added is kept, theirs first."""
    gone = {part for part in old if part.strip() and (part not in ours or part not in theirs)}
    kept = [part for part in theirs if part not in gone]
    there = {part for part in (*theirs, *old) if part.strip() and not part.startswith(b"#")}
    fresh = [part for part in ours if part not in there and part not in gone]
    if not any(part.strip() for part in fresh):
        return kept
    if kept and not kept[-1].strip() and not fresh[0].strip():
        fresh = fresh[1:]
    return kept + fresh


def _parse_unit(key: Key, path: str, lines: bytes) -> MergeUnit | None:
    """The unit with this key, if the lines parse to it and to nothing else."""
    document = markdown_document.parse(lines, path)
    if key[0] == FRONT:
        whole = document.front and document.front_end == len(document.lines) and not document.problems
        return MergeUnit(key, path, lines, None) if whole else None
    found = [record for record in document.records if unit_key(record)]
    alone = len(found) == 1 and unit_key(found[0]) == key and not document.problems
    return MergeUnit(key, path, lines, found[0]) if alone else None


def _merge_fields(base: Any, ours: Any, theirs: Any) -> Record | None:
    """A record merged field by field; None if a field conflicts, or the types differ."""
    fields_of = Fact | Observation | Opinion | Entity | Tombstone
    if type(ours) is not type(theirs) or not isinstance(ours, fields_of):
        return None
    base = base if type(base) is type(ours) else None
    values: dict[str, Any] = {}
    for name in (each.name for each in fields(ours) if each.name not in _POSITION):
        old, one, other = (getattr(side, name, None) for side in (base, ours, theirs))
        if one == other or (base and one == old):
            values[name] = other
        elif base and other == old:
            values[name] = one
        elif isinstance(one, tuple) and isinstance(other, tuple):
            values[name] = _merge_values(old or (), one, other)
        elif name in (*EARLIEST, *LATEST) and one and other:
            values[name] = (min if name in EARLIEST else max)(one, other)
        elif name == FROM_NEWER:
            values[name] = one if _last_day(ours) > _last_day(theirs) else other
        elif name == "hash":
            values[name] = " ".join(dict.fromkeys(f"{other} {one}".split()))
        elif not one or not other:
            values[name] = one or other
        else:
            return None
    merged: Record = replace(theirs, **values)
    return merged


def _last_day(record: Record) -> str:
    return (isinstance(record, Observation) and record.last) or ""


def _merge_values(old: Sequence[Any], ours: Sequence[Any], theirs: Sequence[Any]) -> tuple[Any, ...]:
    gone = {each for each in old if each not in ours or each not in theirs}
    return tuple(each for each in dict.fromkeys((*theirs, *ours)) if each not in gone)


def _copy_with_new_id(ours: MergeUnit, path: str) -> MergeUnit | None:
    """Our version of a statement under a new id, flagged as another version; None if it cannot have one.

    The id is derived from the content, so that both machines make the same copy.
    """
    record = ours.record
    if not isinstance(record, Fact | Observation | Opinion) or not record.id:
        return None
    digest = hashlib.sha256(f"{record.id}\0".encode() + ours.lines).digest()
    block = base64.b32encode(digest)[:10].decode().lower()
    flag = f"{statements.OTHER_VERSION}^{record.id}"
    new: Any = replace(record, id=block, flag=f"{record.flag}; {flag}" if record.flag else flag)
    if isinstance(record, Fact) and not record.origin:
        new = replace(new, origin=record.said_by)
    return MergeUnit(("id", block), path, _record_bytes(new), new)


def _record_bytes(record: Record) -> bytes:
    return (printer.show(record) + "\n").encode("utf-8", "surrogateescape")


# -- renamed files -----------------------------------------------------------------------------------------
# A file that was renamed on one side or both is merged under its new name. Otherwise its lines without an id
# would be in the result twice.


Files = Mapping[str, bytes]
_ID = re.compile(rb"\s+\^[A-Za-z0-9-]+\s*$")


def align_renames(
    base: Files, ours: Files, theirs: Files
) -> tuple[tuple[Files, Files, Files], list[tuple[str, str]], Mapping[str, str]]:
    """Give renamed files the same name on all sides.

    Returns (base, ours, theirs), the files that both renamed as (our name, their name, which wins), and
    {new name: their name}. A file that the other side deleted keeps its name, and so does one whose new name
    the other side has given to another file.
    """
    here, there = find_renames(base, ours), find_renames(base, theirs)
    old, mine, other = dict[str, str](), dict[str, str](), dict[str, str]()
    twice: list[tuple[str, str]] = []
    for path in {**here, **there}:
        one, two = here.get(path), there.get(path)
        if one and two and one != two and two not in ours and one not in theirs:
            mine[one] = two
            twice.append((one, two))
        elif one and two is None and path in theirs and one not in theirs:
            other[path] = one
        elif two and one is None and path in ours and two not in ours:
            mine[path] = two
        elif not (one and one == two):
            continue
        old[path] = two or one or path
    sides = _rename_files(base, old), _rename_files(ours, mine), _rename_files(theirs, other)
    return sides, twice, {new: path for path, new in other.items()}


def _rename_files(files: Files, names: Mapping[str, str]) -> Files:
    return {names.get(path, path): data for path, data in files.items()}


def find_renames(base: Files, side: Files) -> dict[str, str]:
    """{path in the base: new path} of files that were renamed.

    A new file is a renamed one if they share half of the shorter one's lines, ids aside. Best matches first;
    each new file is used once.
    """
    gone = {path: lines for path in base if path not in side and (lines := _content_lines(path, base[path]))}
    new = {path: lines for path in side if path not in base and (lines := _content_lines(path, side[path]))}
    alike: list[tuple[int, str, str]] = []
    for path, lines in gone.items():
        for name, others in new.items():
            common = (lines & others).total()
            if 2 * common >= min(lines.total(), others.total()):
                alike.append((-common, path, name))
    found: dict[str, str] = {}
    for _, path, name in sorted(alike):
        if path not in found and name not in found.values():
            found[path] = name
    return found


def _content_lines(path: str, data: bytes) -> Counter[bytes]:
    """The lines of a file without headings, rules, blank lines and ids."""
    if path in (*CORE_NAMES, SETTINGS) or not path.endswith(".md"):
        return Counter()
    lines = (_ID.sub(b"", line).strip() for line in data.split(b"\n"))
    return Counter(line for line in lines if line.strip(b"-*_") and not line.startswith(b"#"))


# -- merging all files -------------------------------------------------------------------------------------
# Units are merged by key, whatever file they are in; other parts by file.
#
# Pure: bytes in, bytes out. No conflict marks are written: both versions are kept. The result is parsed again
# and must have exactly the records that were decided on.


NOTE_NAMES = {"id": "^{}", "CoreBlock": "## {}", "Entity": "[[{}]]", "Tombstone": "^{}"}
KEPT_HEADING = "## Kept from another machine"


@dataclass(frozen=True, slots=True)
class MergeNote:
    """A conflict, with each side's text.

    `why` is `kept` (deleted on one side, changed on the other), `both` (both versions are kept) or `theirs`
    (settings or front matter, where there can be one version only).
    """

    what: str
    path: str
    why: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Merge:
    """{path: new bytes, None to delete}, the conflicts, and the ids that are removed by a tombstone."""

    files: Mapping[str, bytes | None]
    notes: tuple[MergeNote, ...] = ()
    forgotten: tuple[str, ...] = ()
    added: int = 0
    changed: int = 0
    removed: int = 0
    """Numbers of statements that the merge adds to, changes in and removes from our files."""
    dropped: tuple[ForgottenEdit, ...] = ()
    """Lines that were written or changed on one machine and forgotten on the other."""


def merge(base: Files, ours: Files, theirs: Files, other: str = "", reduced: Collection[str] = ()) -> Merge:
    """Merge files three-way; `other` is the revision of `theirs`, for messages, and `reduced` are files from
    which something forgotten was removed before. Conflict if the merged lines of a file do not parse to the
    merged records."""
    sides, twice, there = align_renames(base, ours, theirs)
    done = _BankMerge(*sides, other, there, reduced).run()
    named = tuple(MergeNote("file name", other, "theirs", here, other) for here, other in twice)
    files = {**dict.fromkeys(ours.keys() - sides[1].keys()), **done.files}
    return replace(done, files=files, notes=(*named, *done.notes))


@dataclass
class _BankMerge:
    base: Files
    ours: Files
    theirs: Files
    revision: str = ""
    there: Mapping[str, str] = field(default_factory=dict)
    """{path: their name} of files that this side has renamed."""
    reduced: Collection[str] = ()
    notes: list[MergeNote] = field(default_factory=list)
    results: dict[Key, UnitResult] = field(default_factory=dict)
    units: dict[Key, MergeUnit] = field(default_factory=dict)

    def run(self) -> Merge:
        self.paths = sorted({*self.base, *self.ours, *self.theirs})
        sides = [split_files(files) for files in (self.base, self.ours, self.theirs)]
        if names := _ids_of_the_same(*sides):
            pattern = re.compile(rb"(?:%s)\b" % b"|".join(map(re.escape, names)))
            self.ours = {path: pattern.sub(lambda m: names[m[0]], data) for path, data in self.ours.items()}
            sides[1] = split_files(self.ours)
        if twice := frozenset[Key]().union(*(side.duplicates for side in sides)):
            # A key that occurs twice on one side identifies nothing on any side.
            sides = [split_files(files, twice) for files in (self.base, self.ours, self.theirs)]
        self.old, self.mine, self.other = sides
        self.joined = {path for path in self.paths if self._join_comments(path)}
        self.whole = {path: side for path in self.paths if (side := self._only_side(path))}
        self._merge_units()
        dead = self._apply_tombstones()
        self._note_whole_files()
        files = {path: self._build_file(path, rows) for path, rows in self._arrange_parts().items()}
        mine = {key: unit for key, unit in self.mine.units.items() if key[0] == "id"}
        new = {key: unit for key, unit in self.units.items() if key[0] == "id"}
        changed = sum(key in mine and mine[key].lines != unit.lines for key, unit in new.items())
        figures = len(new.keys() - mine.keys()), changed, len(mine.keys() - new.keys())
        return Merge(files, tuple(self.notes), tuple(dead), *figures)

    def _join_comments(self, path: str) -> bool:
        """Give both sides of a heading the comments of both, if both changed them; whether there was one."""
        sides = [side.parts.get(path, []) for side in (self.old, self.mine, self.other)]
        old, mine, other = map(_headings_by_line, sides)
        done = False
        for line in old.keys() & mine.keys() & other.keys():
            both = mine[line], other[line]
            if both[0] != both[1] and old[line] not in both:
                was, ours, theirs = map(split_lines, (old[line], *both))
                lines = merge_sequences(was, ours, theirs)
                for rows, part in zip(sides[1:], both, strict=True):
                    rows[rows.index(part)] = b"".join(lines)
                done = True
        return done

    # -- files that one side deleted ---------------------------------------------------------------

    def _only_side(self, path: str) -> Side | None:
        """The side whose version of a file is kept whole, since it changed what the other deleted.

        None for a file of nothing but headings and statements, or one whose statements the other side has
        elsewhere: each statement has its own result.
        """
        old = self.old.parts.get(path)
        gone, left = (self.mine, self.other) if path in self.other.parts else (self.other, self.mine)
        if old is None or path in gone.parts or path not in left.parts:
            return None
        keys = [token_key(part) for part in old if part.strip() and not part.startswith(b"#")]
        if not any(key is None or key[0] in (FRONT, CoreBlock.__name__) for key in keys):
            return None
        was, now = (_part_texts(side.parts[path], side.units) for side in (self.old, left))
        changed = {*now} - {*was} if path in self.reduced else now != was
        return left if changed and not any(key in gone.units for key in keys) else None

    def _note_whole_files(self) -> None:
        """Report each file that is kept whole, with what is new in it."""
        for path, side in self.whole.items():
            was = _part_texts(self.old.parts[path], self.old.units)
            now = _part_texts(side.parts[path], self.units)
            said = "\n".join([text for text in now if text not in was] or now)
            both = (said, "") if side is self.mine else ("", said)
            self.notes.append(MergeNote("file", path, "kept", *both))

    # -- units -------------------------------------------------------------------------------------

    def _merge_units(self) -> None:
        for key in dict.fromkeys((*self.other.units, *self.mine.units)):
            b, o, t = (side.units.get(key) for side in (self.old, self.mine, self.other))
            left = None if o and t else o or t
            whole = b and left and b.path == left.path in self.whole
            done = self.results[key] = UnitResult(left) if whole else merge_unit(b, o, t)
            if done.unit:
                self.units[key] = done.unit
            if done.beside and done.beside.key not in {**self.mine.units, **self.other.units}:
                self.units[done.beside.key] = done.beside
            if done.why:
                said = [side.lines.decode("utf-8", "replace").strip() if side else "" for side in (o, t)]
                what = NOTE_NAMES.get(key[0], "{}'s " + key[0]).format(key[1])
                what = what.removeprefix("^") if "#^" in what else what
                self.notes.append(MergeNote(what, (done.unit or o or t).path, done.why, *said))  # type: ignore[union-attr]

    def _apply_tombstones(self) -> list[str]:
        """Remove units that have a tombstone; the ids of those that one of the sides still had."""
        forgotten = {name: None for kind, name in self.units if kind == "Tombstone"}
        for name in forgotten:
            self.units.pop(("id", name), None)
        self.notes = [note for note in self.notes if note.what.removeprefix("^") not in forgotten]
        for done in self.results.values():
            if done.beside and done.unit and done.unit.key[1] in forgotten:
                self.units.pop(done.beside.key, None)
        there = {*self.mine.units, *self.other.units}
        return [name for name in forgotten if ("id", name) in there]

    # -- places ------------------------------------------------------------------------------------

    def _arrange_parts(self) -> dict[str, list[bytes] | None]:
        """{path: merged parts, None for a deleted file}, with each remaining unit in exactly one place."""
        rows = {path: self._merge_parts(path) for path in self.paths}
        seen: set[Key] = set()
        for path, there in rows.items():
            kept = []
            for part in there or ():
                key = token_key(part)
                if key and (key not in self.units or self.units[key].path != path or key in seen):
                    continue
                seen |= {key} if key else set()
                kept.append(part)
            if there is not None:
                rows[path] = kept
        for key, unit in self.units.items():
            if key not in seen:
                rows[unit.path] = self._insert_unit(rows[unit.path] or [], key, unit)
        return {path: there and self._restore_headings(path, there) for path, there in rows.items()}

    def _merge_parts(self, path: str) -> list[bytes] | None:
        if path in self.whole:
            return self.whole[path].parts[path]
        old, mine, other = (side.parts.get(path) for side in (self.old, self.mine, self.other))
        if mine in (old, other) or other == old:
            return other if mine == old else mine
        both = merge_sequences(old, mine or [], other or [], lambda *sides: self._note_conflict(path, *sides))
        if mine is not None and other is not None:
            return both
        return both if any(part.strip() for part in both) else None  # gone on one side, and nothing is new

    def _note_conflict(self, path: str, old: list[bytes], mine: list[bytes], other: list[bytes]) -> None:
        """Report prose that both sides changed; both versions are kept."""
        new = ([p for p in s if p.strip() and p not in (*old, *t)] for s, t in ((mine, other), (other, mine)))
        prose = (b"".join(part for part in side if not part.startswith(UNIT_MARK)) for side in new)
        said = [text.decode("utf-8", "replace").strip() for text in prose]
        changed = any(p.strip() and p not in (*mine, *other) and not p.startswith(UNIT_MARK) for p in old)
        if changed and path != SETTINGS and all(said):
            self.notes.append(MergeNote("text", path, "both", *said))

    def _restore_headings(self, path: str, rows: list[bytes]) -> list[bytes]:
        """Move what stands below a heading of neither side below its own, which is put back if one side has
        removed it: a fact has its time, client, session and tags from its heading."""
        old, mine, other = (side.parts.get(path) or [] for side in (self.old, self.mine, self.other))
        if rows in (mine, other) or not path.endswith(".md"):
            return rows
        pairs = [*_with_headings(mine), *_with_headings(other)]
        renamed = _renamed_headings(old, pairs)
        new_names = ((part, renamed[up]) for part, up in pairs if up in renamed and up not in rows)
        kept, moved = _split_misplaced(rows, {*pairs, *new_names})
        last = len(kept) - 1
        for part in moved:
            there = other if part in other else mine
            if part not in there:  # a copy of the one before
                last += 1
                kept.insert(last, part)
            elif not _heading_level(part) or part not in kept:
                last = _insert_below(kept, there, there.index(part), renamed)
        return kept

    def _insert_unit(self, rows: list[bytes], key: Key, unit: MergeUnit) -> list[bytes]:
        """Insert a unit after its predecessor on the side that has it, else at the end."""
        aside = next((k for k, s in self.results.items() if s.beside and s.beside.key == key), key)
        if aside != key and unit_token(aside) in rows:
            at = rows.index(unit_token(aside)) + 1
            return [*rows[:at], unit_token(key), *rows[at:]]
        for side in (self.other, self.mine):
            there = side.parts.get(unit.path) or []
            if unit_token(key) in there:
                before = there[: there.index(unit_token(key))]
                near = (rows.index(part) for part in reversed(before) if part.strip() and part in rows)
                at = next(near, len(rows) - 1) + 1
                if 0 < at < len(rows) and _heading_level(rows[at - 1]) and not rows[at].strip():
                    at += 1  # the blank line below a heading stays there
                return [*rows[:at], unit_token(key), *rows[at:]]
        return [*rows, unit_token(key)]

    # -- files -------------------------------------------------------------------------------------

    def _build_file(self, path: str, rows: list[bytes] | None) -> bytes | None:
        if rows is None:
            return None
        sides = ((self.other, self.theirs), (self.mine, self.ours))
        for side, files in () if path in self.joined else sides:
            if rows == side.parts.get(path) and all(
                self.units[key].lines == side.units[key].lines for part in rows if (key := token_key(part))
            ):
                return files[path]  # as it stands there, to the byte
        if not any(part.strip() for part in rows) and (path not in self.ours or path not in self.theirs):
            return None
        if path == SETTINGS:
            return self._merge_settings()
        data = self._join_parts(rows)
        if self._restore_origins(path, data):
            data = self._join_parts(rows)
        return data if self._reads_back(path, data) else self._append_ours(path)

    def _merge_settings(self) -> bytes:
        """The settings merged by lines; theirs if they conflict, or the result is not valid TOML."""
        texts = [files.get(SETTINGS) for files in (self.base, self.ours, self.theirs)]
        data = merged_lines(texts[0], texts[1] or b"", texts[2] or b"")
        if data is not None and parse_settings(data) is not None:
            return data
        said = [(text or b"").decode("utf-8", "replace").strip() for text in texts[1:]]
        self.notes.append(MergeNote(SETTINGS, SETTINGS, "theirs", *said))
        return texts[2] or b""

    def _join_parts(self, rows: list[bytes]) -> bytes:
        """The file's bytes, with a blank line where a paragraph would continue the text above it."""
        out: list[bytes] = []
        for part in rows:
            raw = self.units[key].lines if (key := token_key(part)) else part
            if not raw:
                continue
            if out and _is_paragraph(raw) and out[-1].strip() and not out[-1].startswith((b"#", b"---")):
                out.append(b"\r\n" if out[-1].endswith(b"\r\n") else b"\n")
            out.append(raw)
        return b"".join(out)

    def _restore_origins(self, path: str, data: bytes) -> bool:
        """Write the origin into a fact's own lines if the heading above it no longer has it; whether any."""
        done = False
        for record in markdown_document.parse(data, path).of(Fact):
            key = unit_key(record)
            unit = self.units.get(key) if key else None
            if not key or not unit or unit.path != path or not isinstance(unit.record, Fact):
                continue
            sides = (side.units.get(key) for side in (self.other, self.mine))
            said: Any = next((each.said for each in sides if each), unit.said)
            if said and said != record.said_by:
                fact = replace(unit.record, origin=said)
                self.units[key] = replace(unit, lines=_record_bytes(fact), record=fact)
                done = True
        return done

    def _reads_back(self, path: str, data: bytes) -> bool:
        """Whether a merged file parses to its units, and to no other record that neither side has."""
        wanted = {key: unit.record for key, unit in self.units.items() if unit.path == path and unit.record}
        sides = [files.get(path, b"") for files in (self.ours, self.theirs)]
        known: Counter[Record] = Counter()
        for side in sides:
            known |= Counter(markdown_document.parse(side, path).records)
        lines = {line.strip() for side in sides for line in side.split(b"\n")}
        found: dict[Key, Record] = {}
        for record in markdown_document.parse(data, path).records:
            key = unit_key(record)
            if key in wanted:
                found[key] = record
            elif isinstance(record, CoreBlock) and record.top:  # merged line by line
                value = record.value.encode("utf-8", "surrogateescape")
                if not {line.strip() for line in value.split(b"\n")} <= {*lines, b""}:
                    return False
            elif isinstance(record, Fact | CoreBlock) and record not in known:
                return False
        return found == wanted

    def _append_ours(self, path: str) -> bytes:
        """Their file with the merged units, and at its end what only we have. Conflict."""
        theirs = self.other.parts.get(path) or []
        rows = [part for part in theirs if not (key := token_key(part)) or self._belongs_in(key, path)]
        core = path in CORE_NAMES
        mine = list(self._only_ours(path, {*theirs}))
        if core:  # what is in no section stands above the first one, and would be of the last one below
            first = next((n for n, part in enumerate(rows) if token_key(part)), len(rows))
            loose = [text for key, text in mine if not key]
            rows[first:first] = [*loose, b"\n"] if loose else []
        data = self._join_parts(rows)
        for n, text in enumerate(text for key, text in mine if key or not core):
            lines = text.decode("utf-8", "surrogateescape").rstrip("\n").split("\n")
            data = markdown_document.append(data, lines if core or n else [KEPT_HEADING, "", *lines])
        if self._restore_origins(path, data):
            return self._append_ours(path)
        if not self._reads_back(path, data):
            raise Conflict(
                "the two machines' versions cannot be merged", where=path,
                hint="edit it here until both agree, then sync; the other machine's is"
                f" shown by: ua-memory git show {self.revision[:10]}:{self.there.get(path, path)}",
            )  # fmt: skip
        return data

    def _belongs_in(self, key: Key, path: str) -> bool:
        return key in self.units and self.units[key].path == path

    def _only_ours(self, path: str, theirs: set[bytes]) -> Iterator[tuple[Key | None, bytes]]:
        old = set(self.old.parts.get(path) or ())
        for part in self.mine.parts.get(path) or ():
            key = token_key(part)
            if part in theirs or not part.strip():
                continue
            if key and self._belongs_in(key, path):
                yield key, self.units[key].lines
            elif not key and part not in old and not part.startswith(b"#"):
                yield None, part
        for key, unit in self.units.items():
            if unit.path == path and key not in self.mine.units and unit_token(key) not in theirs:
                yield key, unit.lines


# -- forgotten on the other machine --------------------------------------------------------------------------
# Before the merge, each side loses what the other has forgotten since the merge base, as `forget` does it:
# including what was derived from it on this side, which the other machine never saw.
#
# A tombstone wins over any change on the other machine. Lines that somebody had written or changed there are
# reported by place and revision, never with their text.


ReadFile = Callable[[str], bytes | None]
_BOOKKEEPING = re.compile(rb"\s*[-*+] (?:seen|proofs|last|trend):")
"""Metadata that machines update by themselves: a change of it is not reported."""


@dataclass(frozen=True, slots=True)
class ForgottenPlans:
    """What is removed from each side because the other has forgotten it."""

    ours: forget.ForgetPlan = field(default_factory=forget.ForgetPlan)
    theirs: forget.ForgetPlan = field(default_factory=forget.ForgetPlan)

    @property
    def paths(self) -> set[str]:
        """The files that are changed on either side."""
        return {*self.ours.files, *self.theirs.files}

    def ids(self, files: Mapping[str, bytes | None]) -> set[str]:
        """The removed ids, except those that the merged files still have."""
        gone = {*self.ours.ids, *self.theirs.ids}
        for path, data in files.items():
            if path != PATH and data and any(f"^{written_id(block)}".encode() in data for block in gone):
                gone -= {str(each.ref) for each in markdown_document.parse(data, path).statements}
        return gone

    def notes(self) -> list[str]:
        """A line with the numbers of derived statements that were removed or revised; empty without any."""
        gone = tuple(each for each in (*self.ours.gone, *self.theirs.gone) if each.why != forget.REQUESTED)
        both = forget.ForgetPlan(gone, (*self.ours.revised, *self.theirs.revised))
        if not both.gone and not both.revised:
            return []
        return [f"what depended on it was removed or revised too: {forget.summarize(both)}"]

    def record(self, store: Store, draft: Draft) -> None:
        """Write tombstones for the removed statements, as `forget` does. A line without an id has one from
        the other side already."""
        gone = self.ids(draft.files)
        removals = [one for plan in (self.ours, self.theirs) for one in plan.removals if one.id in gone]
        add(store, draft, removals, store.now().date().isoformat())


def plan_forgotten(
    store: Store, base: str | None, other: str, ours: ReadFile, edited: Collection[str]
) -> ForgottenPlans:
    """Plan what each side loses because the other has forgotten it since the merge base.

    `ours` reads a file of this side; `edited` are paths that differ from its last revision.
    """
    history = store.history
    known = parse(history.read(base, PATH)) if base else {}
    here, there = parse(ours(PATH)), parse(history.read(other, PATH))
    head = history.head()
    new_there = {block: stone for block, stone in there.items() if block not in here and block not in known}
    new_here = {block: stone for block, stone in here.items() if block not in there and block not in known}
    old = history.blobs(rev=base) if base and (new_there or new_here) else {}
    found = ForgottenPlans()
    # Without commits of its own, this side has derived nothing that the other did not see when it forgot.
    if new_there and head and (edited or not history.is_within(head, other)):
        texts = dict(statements.texts(store))
        texts |= {path: ours(path) or b"" for path in {*edited} & texts.keys()}
        found = replace(found, ours=_plan_side(store, texts, new_there, old, "HEAD"))
    if new_here:
        names = {path: blob for path, blob in history.blobs(rev=other).items()
                 if is_memory_file(path) and path.endswith(".md")}  # fmt: skip
        read = history.contents(names.values())
        texts = {path: read[blob] for path, blob in names.items()}
        found = replace(found, theirs=_plan_side(store, texts, new_here, old, other))
    return found


def _plan_side(
    store: Store, texts: Mapping[str, bytes], new: Mapping[str, Tombstone], old: Mapping[str, str], rev: str
) -> forget.ForgetPlan:
    fresh = {path for path, data in texts.items() if old.get(path) != blob_id(data)}
    ours, today = forget.machine_line_check(store, texts, rev), store.now().date()
    return plan_by_tombstones(texts, Tombstones(new, store.config.redact), fresh, ours, today)


def plan_by_tombstones(
    texts: Mapping[str, bytes], forgotten: Tombstones, fresh: Collection[str], ours: forget.IsMachineWritten,
    today: date,
) -> forget.ForgetPlan:  # fmt: skip
    """Plan to forget what has one of these tombstones, found by id.

    In files that are `fresh` since the merge base also by text. The other machine saw the older files when it
    forgot, and chose to leave what they say.
    """
    marks, targets = [f"^{written_id(block)}".encode() for block in forgotten.by_id], []
    for path, data in texts.items():
        if path == PATH or not (path in fresh or any(mark in data for mark in marks)):
            continue
        document = markdown_document.parse(data, path)
        for record in document.statements:
            if forgotten.has_id_of(record) or (path in fresh and forgotten.matches(record)):
                targets.append(forget.target_of(record))
        said = {each.place.line for each in targets if each.place.path == path}
        for _, rows in forgotten.found(data, path) if path in fresh else ():
            if rows[0] not in said:
                text = "\n".join(document.lines[rows[0] - 1 : rows[-1]])
                targets.append(
                    forget.ForgetTarget(Place(path, rows[0], rows[-1]), strip_citations(text).strip())
                )
    deriving = forget.ForgetPlanner(
        texts, targets, ours, today, take=False, patterns=forgotten.redact, ids=forgotten.by_id.keys()
    )
    return deriving.plan()


@dataclass(frozen=True, slots=True)
class ForgottenEdit:
    """Lines that were written or changed on one side (`here` or `there`) and forgotten on the other.

    `revision` still has them. It is '' if they are not committed, and the backup's path after a purge.
    """

    id: str
    path: str
    line: int
    side: str
    revision: str = ""


def _forgotten_edits(
    base: Files, side: str, files: Files, plan: forget.ForgetPlan, gone: Collection[str]
) -> Iterator[ForgottenEdit]:
    """The lines of one side, new since the merge base, that a plan removes or whose id is `gone`."""
    old = {line.strip() for data in base.values() for line in data.split(b"\n")}
    pieces = [
        (piece.id or "", piece.place)
        for piece in plan.gone
        if piece.why == forget.REQUESTED or piece.by_person or piece.what == "fact"
    ]
    left = split_files(plan.apply(files)).units
    pieces += [(name, unit.record.place) for name in gone if (unit := left.get(("id", name))) and unit.record]
    for block, place in sorted(pieces, key=lambda each: (each[1].path, each[1].line)):
        rows = files[place.path].split(b"\n")[place.line - 1 : place.end]
        if any(row.strip() and row.strip() not in old and not _BOOKKEEPING.match(row) for row in rows):
            yield ForgottenEdit(block, place.path, place.line, side)


# -- checks ------------------------------------------------------------------------------------------------
# Content that no other machine would accept. The message says how to fix it on the machine that has it.


def require_mergeable(history: History, other: str, there: Mapping[str, tuple[str, str]]) -> None:
    """Raise Conflict for a symbolic link among the memory files, TooLarge for a file above `MAX_FILE`.

    `there` is {path: (mode, blob)} of what the revision `other` changed.
    """
    if path := find_link(there):
        what = "the other machine has a symbolic link in the place of memory"
        hint = f"on the machine that made it: {link_fix(path)}; then sync there, and here again"
        raise Conflict(what, where=f"{other[:10]}:{path}", hint=hint)
    large = (p for p, size in history.sizes(other).items() if is_memory_file(p) and size > MAX_FILE)
    if path := next(large, ""):
        hint = "on the machine that made it: split the file, sync; then sync here again"
        raise TooLarge(f"larger than {MAX_FILE >> 20} MB", where=f"{other[:10]}:{path}", hint=hint)


def find_link(there: Mapping[str, tuple[str, str]]) -> str:
    """The first path among the memory files that is not a regular file; '' for none."""
    return next(
        (p for p, (mode, _) in there.items() if is_memory_file(p) and mode[:3] not in ("100", "")), ""
    )


def link_fix(path: str) -> str:
    """The hint that says how to undo a committed link."""
    name = shlex.quote(path)
    gone = f"ua-memory git rm {name}; ua-memory git commit -m 'no link'"
    return f"replace the link with the file itself, or remove it ({gone})"


def require_pushable(history: History, offered: str | None, head: str) -> None:
    """Raise Conflict if a link was committed here among the memory files."""
    if path := find_link(history.differing(offered, head)):
        what = "a symbolic link was committed in the place of memory; other machines refuse it"
        hint = f"{link_fix(path)}; then sync again"
        raise Conflict(what, where=path, hint=hint)


# -- foreign files -----------------------------------------------------------------------------------------
# Files in the repository of a bank of its own that are not memory.


def foreign_files(
    store: Store, foreign: Mapping[str, str], base: str | None, other: str
) -> tuple[dict[str, bytes | None], list[str]]:
    """{path: bytes, None if deleted} of the other's files that are not memory, and notes on conflicts.

    A file that both changed stays as it is here. Conflict for files in a history beside code, and for links.
    """
    if not foreign:
        return {}, []
    if not store.bank.own:
        what = "the other history has files that are not memory"
        hint = "give this history a remote of its own: ua-memory git remote set-url origin ADDRESS"
        raise Conflict(what, where=", ".join(sorted(foreign)[: forget.LISTED]), hint=hint)
    history = store.history
    head = history.head()
    here = history.differing(base, head) if head else {}
    there = history.differing(base, other)
    linked = [path for path in foreign if there[path][0][:3] not in ("100", "")]
    if linked and head and not history.is_within(head, other):
        raise Conflict("links and submodules are not merged here", where=linked[0], hint="ua-memory git pull")
    both = sorted(path for path in foreign if path in here and here[path] != there[path])
    theirs = {path: blob for path, blob in foreign.items() if there[path][0] != "160000" and path not in both}
    what = f"was changed on both machines; this one's version is kept, {other[:10]} has the other"
    notes = [f"{path} {what}" for path in both]
    return {path: history.blob(blob) if blob else None for path, blob in theirs.items()}, notes


def write_foreign(store: Store, files: Mapping[str, bytes | None], was: Mapping[str, str]) -> list[str]:
    """Write files that are not memory, unless they were changed here; notes on those that were not written.

    `was` is {path: blob id} of the last revision here.
    """
    notes = []
    for path, data in files.items():
        file = store.bank.root / path
        if not _is_writable(store.bank.root, path):
            notes.append(f"{path} was not written")
            continue
        here = file.read_bytes() if file.is_file() else None
        if (here is None) != (path not in was) or (here is not None and blob_id(here) != was[path]):
            if here != data:
                notes.append(f"{path} differs from the repository's: see git status")
            continue
        with writing(file):
            if data is None:
                file.unlink(missing_ok=True)
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                fresh = file.with_name(f".ua-{file.name[:100]}.fresh")
                swap.replace_file(file, data, fresh, mode=0o666)
    return notes


def _is_writable(root: Path, path: str) -> bool:
    """Whether a path is inside the folder, and neither git's nor in the state folder nor behind a link."""
    here = root
    for part in path.split("/"):
        here = here / part
        if part in ("", ".", "..", BESIDE) or part.lower() == ".git" or here.is_symlink():
            return False
    return True


# -- joining histories -------------------------------------------------------------------------------------
# A merge is a revision like any other: recorded before a file is touched, and finished by the next command if
# the process is killed.


OP = "sync"
_SEE_DOCS = "see docs/sync.md"


@dataclass(frozen=True, slots=True)
class JoinResult:
    """The merge, how many revisions came in, and its own revision (`result`; None if there was no need)."""

    merge: Merge
    revisions: int = 0
    result: Result | None = None
    notes: tuple[str, ...] = ()
    forgotten_plans: ForgottenPlans = field(default_factory=ForgottenPlans)
    """What was removed because one of the machines has forgotten it."""


def merge_commit(
    store: Store, base: str | None, other: str, ours: ReadFile, edited: Collection[str], *, fresh: bool
) -> tuple[Merge, Mapping[str, str], ForgottenPlans]:
    """Merge the revision `other` into this machine's files, of which some are `edited` since the last commit.

    Returns (the merge, {path: blob id} of the other's changed files that are not memory, what either side
    loses because the other has forgotten it). A bank that is `fresh` becomes the other one.
    """
    history = store.history
    head = history.head()
    there = history.differing(base, other)
    here = history.differing(base, head) if head else {}
    require_mergeable(history, other, there)
    lost = plan_forgotten(store, base, other, ours, edited)
    paths = sorted({path for path in (*there, *here, *edited) if is_memory_file(path)} | lost.paths)
    old = history.blobs(paths, rev=base) if base and paths else {}
    new = {path: there[path][1] if path in there else old.get(path, "") for path in paths}
    read = history.contents(blob for blob in (*old.values(), *new.values()) if blob)
    sides = (
        {path: read[blob] for path, blob in old.items()},
        {path: data for path in paths if (data := ours(path)) is not None},
        {path: read[blob] for path, blob in new.items() if blob},
    )
    done = merge_sides(*sides, lost, other, fresh=fresh)
    return done, {path: blob for path, (_, blob) in there.items() if not is_memory_file(path)}, lost


def merge_sides(
    base: Files, mine: Files, theirs: Files, lost: ForgottenPlans, other: str = "", *, fresh: bool = False
) -> Merge:
    """Remove from both sides what either has forgotten, then merge. `other` is the revision of theirs."""
    left, right = lost.ours.apply(mine), lost.theirs.apply(theirs)
    done = merge(left if fresh else base, left, right, other, lost.paths)
    # The merge has not seen a file that only we had and that was removed whole.
    done = replace(done, files={**dict.fromkeys(mine.keys() - done.files), **done.files})
    # Report also what was removed before the merge.
    there_now = {path: data for path, data in done.files.items() if data is not None}
    had, has, now = (set(split_files(files).units) for files in (mine, left, there_now))
    gone = [name for kind, name in sorted(had - has - now) if kind == "id"]
    gone = [*done.forgotten, *(name for name in gone if name not in done.forgotten)]
    number = done.removed + len(gone) - len(done.forgotten)
    gone += sorted(lost.ids(done.files) - {*gone})
    dropped = (
        *_forgotten_edits(base, "here", mine, lost.ours, done.forgotten),
        *_forgotten_edits(base, "there", theirs, lost.theirs, done.forgotten),
    )
    dropped = tuple(each for each in dropped if ("id", each.id) not in now)  # its forgetting was taken back
    return replace(done, removed=number, forgotten=(*gone,), dropped=dropped)


def prepare(store: Store, *, dry_run: bool = False) -> tuple[str, ...]:
    """Commit hand edits and finish pending revisions before a merge; notes. Held (see `refuse_held`)."""
    forget.refuse_held(store.survey().held)
    if dry_run:
        return ()
    store.require_settled()
    notes, left = store.adopt().notes, sorted(store.survey().changed)
    names = ", ".join(left[:SHOWN_LEFT]) + (" …" if len(left) > SHOWN_LEFT else "")
    return (*notes, f"left out, since it cannot be committed (ua-memory status): {names}") if left else notes


SHOWN_LEFT = 3
"""Files that a note names."""


def join_history(
    store: Store, other: str, *, door: str, subject: str, dry_run: bool = False, base: str | None = None
) -> JoinResult:
    """Merge a fetched history in one revision; with `dry_run` only compute the result.

    `base` is the merge base if the other history was rewritten. Conflict if it is not of the same bank.
    """
    history = store.history
    fresh, head = _require_same_bank(store, other), history.head()
    base = base or history.fork(head or other, other)
    number = history.number(head, other)
    if dry_run:
        changed = store.survey().changed
        done, _, lost = merge_commit(store, base, other, partial(_read_or_none, store), changed, fresh=fresh)
        done = _locate_edits(store, done, other)
        return JoinResult(done, number, notes=tuple(lost.notes()), forgotten_plans=lost)
    with store.revision(OP, door=door) as draft:
        if history.holds(other):
            return JoinResult(Merge({}))
        done, foreign, lost = merge_commit(store, base, other, draft.get, store.survey().changed, fresh=fresh)
        forget.refuse_held([path for path, touched in draft.touched.items() if touched.held])
        draft.foreign_files, notes = foreign_files(store, foreign, base, other)
        was = history.blobs(sorted(draft.foreign_files)) if draft.foreign_files else {}
        for path, data in done.files.items():
            draft.restore(path, data)
        lost.record(store, draft)
        draft.joins, draft.even_if_empty, draft.subject = other, True, subject
        draft.trailers["Joins"] = [other]
    notes += [*write_foreign(store, draft.foreign_files, was), *lost.notes()]
    done = _locate_edits(store, done, other, draft.result.revision)
    return JoinResult(done, number, draft.result, tuple(notes), lost)


def _locate_edits(store: Store, done: Merge, other: str, merged: str | None = None) -> Merge:
    """Fill in the revisions that still have the dropped lines; on this side, the one before the merge."""
    here = ""
    with contextlib.suppress(NotFound):
        here = store.history.resolve(f"{merged}^" if merged else "HEAD") if done.dropped else ""
    changed = set() if merged else set(store.survey().changed)

    def has(each: ForgottenEdit) -> str:
        return other if each.side == "there" else "" if each.path in changed else here

    return replace(done, dropped=tuple(replace(each, revision=has(each)) for each in done.dropped))


def _read_or_none(store: Store, path: str) -> bytes | None:
    with contextlib.suppress(NotFound):
        return store.read(path)
    return None


# -- identity of the bank --------------------------------------------------------------------------------


def _require_same_bank(store: Store, other: str) -> bool:
    """Raise Conflict unless another history is of this bank. Returns whether this bank is new and takes over
    the other's identity."""
    history = store.history
    there = parse_settings(history.read(other, SETTINGS))
    if there is None:
        raise Conflict("not a memory bank: it has no ua-memory.toml", where=other[:10], hint=_SEE_DOCS)
    here = {"id": store.config.id, "trail": store.config.trail}
    if all(there.get(key, value) == value for key, value in here.items()):
        return False
    if there.get("trail", "beside") != store.config.trail:
        what = "one bank is its own git repository, the other has its history separate from a code repository"
        hint = 'make `trail = "…"` the same in both, which `ua-memory init` sets up; ' + _SEE_DOCS
        raise Conflict(what, where=SETTINGS, hint=hint)
    if store.bank.own and _is_untouched(store):
        return True
    what = f"these are different banks: {store.config.id} here, {there.get('id')} there"
    hint = f'to make them one, write `id = "{there.get("id")}"` here, run `ua-memory init .`, sync again'
    raise Conflict(what, where=SETTINGS, hint=hint)


def parse_settings(data: bytes | None) -> dict[str, object] | None:
    """The settings in a file's bytes; None if they are no valid TOML."""
    try:
        return None if data is None else tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return None


def _is_untouched(store: Store) -> bool:
    """Whether a bank is still as `init` made it."""
    log = store.history.log(limit=2)
    files = {file.path for file in store.survey().files}
    if len(log) != 1 or log[0].trailer("Memory-Op") != "init" or not files <= {CORE_NAMES[0], SETTINGS}:
        return False
    return _read_or_none(store, CORE_NAMES[0]) in (None, init.NEW_CORE_MEMORY)
