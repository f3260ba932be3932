"""Two machines' files made one: three-way by id, without what either has forgotten."""

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

from ua_memory.discovery import BESIDE, CORE_NAMES, SETTINGS
from ua_memory.errors import Conflict, NotFound, TooLarge, writing
from ua_memory.git.history import History
from ua_memory.git.repository import blob_id
from ua_memory.knowledge import statements
from ua_memory.knowledge.lineage import plain
from ua_memory.knowledge.tombstones import PATH, Tombstones, add, parse
from ua_memory.markdown import document as markdown_document
from ua_memory.markdown import printer
from ua_memory.markdown.blocks import BlockShape, scan
from ua_memory.paths import is_truth
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
from ua_memory.store.merge3 import lines_of, merge_parts
from ua_memory.store.store import Store
from ua_memory.upkeep import forget, init
from ua_memory.upkeep.forget import (
    ForgetEdits,
    ForgetPlan,
    ForgetPlanner,
    ForgetTarget,
    IsMachineWritten,
    machine_line_check,
    refuse_held,
)

# -- units -------------------------------------------------------------------------------------------------
# A file taken apart for merging: what has an identity, and everything between, piece by piece.
#
# A unit is what is known by name on every machine: a statement by its id, a block of core memory, a settled
# name, a tombstone, the front matter of a file. The rest is cut into blocks of markdown, each a part that
# is kept or goes as a whole: an item without an id, a paragraph, a heading, an empty line.


Key = tuple[str, str]
FRONT = "front matter"
MARK = b"\n\0"
"""Begins the part that stands for a unit. No part of a file does: an empty line is one by itself."""


@dataclass(frozen=True, slots=True)
class MergeUnit:
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
    units: Mapping[Key, MergeUnit] = field(default_factory=dict)
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
    found: dict[Key, MergeUnit] = {}
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
    data: bytes, path: str, found: dict[Key, MergeUnit], seen: Counter[Key]
) -> Iterator[tuple[Key | None, bytes]]:
    lines = lines_of(data)
    if not path.endswith(".md"):
        yield from ((None, line) for line in lines)
        return
    document = markdown_document.parse(data, path)
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
            found.setdefault(key, MergeUnit(key, path, raw, record))
        yield key, raw
        at = max(end, at + 1)


def _is_text(raw: bytes) -> bool:
    """Whether a part is a paragraph, which what stands above it would take in."""
    first = raw.split(b"\n", 1)[0].decode("utf-8", "surrogateescape")
    return [block.shape for block in scan([first])] == [BlockShape.PARAGRAPH]


# -- settling ----------------------------------------------------------------------------------------------
# What becomes of one unit that two machines have: three-way, and where both changed it, word by word.
#
# Deleted on one side and unchanged on the other, it is deleted; deleted against changed, it is kept.
# Changed on both sides, the fields are merged one by one; where one says two things, both stand side by
# side.


EARLIEST, LATEST = ("since", "on"), ("last", "importance")
FOLLOWS_LAST = "trend"
"""Told by the side whose evidence is newer."""
Clash = Callable[..., None]
_NOWHERE = ("place", "heading")


@dataclass(frozen=True, slots=True)
class SettledUnit:
    """A unit as it shall be, None if it goes; `beside` stands next to it. `why` is empty where nothing is
    to be told, else `kept` (deleted here, changed there, or the other way round), `both`, or `theirs` (of
    which one reading can stand)."""

    unit: MergeUnit | None
    beside: MergeUnit | None = None
    why: str = ""


def settle(base: MergeUnit | None, ours: MergeUnit | None, theirs: MergeUnit | None) -> SettledUnit:
    """One unit of three sides."""
    if ours is None or theirs is None:
        left = ours or theirs
        if base is None or left is None:
            return SettledUnit(left)
        return SettledUnit(None) if _same(left, base) else SettledUnit(left, why="kept")
    path = theirs.path if base and base.path != theirs.path else ours.path
    if _same(ours, theirs) or (base and _same(ours, base)):
        return SettledUnit(replace(theirs, path=path))
    if base and _same(theirs, base):
        return SettledUnit(replace(ours, path=path))
    return _both(base, ours, theirs, path)


def _same(one: MergeUnit, other: MergeUnit) -> bool:
    return one.lines.split() == other.lines.split() if one.record is None else _bare(one) == _bare(other)


def _bare(unit: MergeUnit) -> list[bytes]:
    return [line.rstrip() for line in unit.lines.splitlines() if line.strip()]


def _both(base: MergeUnit | None, ours: MergeUnit, theirs: MergeUnit, path: str) -> SettledUnit:
    lines = merged_lines(base.lines if base else None, ours.lines, theirs.lines)
    if lines is not None and (unit := _read(theirs.key, path, lines)):
        return SettledUnit(replace(unit, path=path))
    if ours.key[0] == FRONT:
        return SettledUnit(theirs, why="theirs")
    if isinstance(ours.record, CoreBlock):
        # Two readings of one line stand below each other.
        both = parts(lines_of(base.lines) if base else None, lines_of(ours.lines), lines_of(theirs.lines))
        unit = _read(theirs.key, path, b"".join(both))
        return SettledUnit(replace(unit or theirs, path=path), why="both")
    record = _by_field(base.record if base else None, ours.record, theirs.record)
    if record is not None:
        return SettledUnit(MergeUnit(ours.key, path, _shown(record), record))
    copy = _copy(ours, path)
    return SettledUnit(replace(theirs, path=path), copy, "both" if copy else "theirs")


def merged_lines(base: bytes | None, ours: bytes, theirs: bytes) -> bytes | None:
    """Three-way by lines; None where both sides changed the same ones."""
    if base is None:
        return None
    old, one, other = (BytesIO(text).readlines() for text in (base, ours, theirs))
    out, clashes = merge_parts(old, one, other)
    return b"".join(out) if all(clash.inserted for clash in clashes) else None


def parts(
    base: list[bytes] | None, ours: list[bytes], theirs: list[bytes], met: Clash | None = None
) -> list[bytes]:
    """The same of texts in parts. Without a base what both have in common stands for it. `met` hears of each
    stretch that both changed: base, ours, theirs."""
    base = common(ours, theirs) if base is None else base

    def both(*sides: list[bytes]) -> list[bytes]:
        if met:
            met(*sides)
        return side_by_side(*sides)

    return merge_parts(base, ours, theirs, both)[0]


def common(ours: list[bytes], theirs: list[bytes]) -> list[bytes]:
    """The parts that two texts share, in order."""
    alike = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    return [part for block in alike for part in ours[block.a : block.a + block.size]]


def side_by_side(old: list[bytes], ours: list[bytes], theirs: list[bytes]) -> list[bytes]:
    """Where both changed something: what one took away is gone, what one brought stands, theirs first."""
    gone = {part for part in old if part.strip() and (part not in ours or part not in theirs)}
    kept = [part for part in theirs if part not in gone]
    there = {part for part in (*theirs, *old) if part.strip() and not part.startswith(b"#")}
    fresh = [part for part in ours if part not in there]
    if not any(part.strip() for part in fresh):
        return kept
    if kept and not kept[-1].strip() and not fresh[0].strip():
        fresh = fresh[1:]
    return kept + fresh


def _read(key: Key, path: str, lines: bytes) -> MergeUnit | None:
    """The unit that lines make up, if they are that one and nothing else."""
    document = markdown_document.parse(lines, path)
    if key[0] == FRONT:
        whole = document.front and document.front_end == len(document.lines) and not document.problems
        return MergeUnit(key, path, lines, None) if whole else None
    found = [record for record in document.records if key_of(record)]
    alone = len(found) == 1 and key_of(found[0]) == key and not document.problems
    return MergeUnit(key, path, lines, found[0]) if alone else None


def _by_field(base: Any, ours: Any, theirs: Any) -> Record | None:
    """A record whose fields are merged one by one; None where one field says two things."""
    fields_of = Fact | Observation | Opinion | Entity | Tombstone
    if type(ours) is not type(theirs) or not isinstance(ours, fields_of):
        return None
    base = base if type(base) is type(ours) else None
    values: dict[str, Any] = {}
    for name in (each.name for each in fields(ours) if each.name not in _NOWHERE):
        old, one, other = (getattr(side, name, None) if side else None for side in (base, ours, theirs))
        if one == other or (base and one == old):
            values[name] = other
        elif base and other == old:
            values[name] = one
        elif isinstance(one, tuple) and isinstance(other, tuple):
            values[name] = _union(old or (), one, other)
        elif name in (*EARLIEST, *LATEST) and one and other:
            values[name] = (min if name in EARLIEST else max)(one, other)
        elif name == FOLLOWS_LAST:
            values[name] = one if _newest(ours) > _newest(theirs) else other
        elif name == "hash":
            values[name] = " ".join(dict.fromkeys(f"{other} {one}".split()))
        elif not one or not other:
            values[name] = one or other
        else:
            return None
    merged: Record = replace(theirs, **values)
    return merged


def _newest(record: Record) -> str:
    return (isinstance(record, Observation) and record.last) or ""


def _union(old: Sequence[Any], ours: Sequence[Any], theirs: Sequence[Any]) -> tuple[Any, ...]:
    gone = {each for each in old if each not in ours or each not in theirs}
    return tuple(each for each in dict.fromkeys((*theirs, *ours)) if each not in gone)


def _copy(ours: MergeUnit, path: str) -> MergeUnit | None:
    """This machine's reading, to stand beside the other: under an id of its own. It says so in words that are
    true on both machines."""
    record = ours.record
    if not isinstance(record, Fact | Observation | Opinion) or not record.id:
        return None
    digest = hashlib.sha256(f"{record.id}\0".encode() + ours.lines).digest()
    block = base64.b32encode(digest)[:10].decode().lower()
    flag = f"{statements.OTHER_VERSION}^{record.id}"
    new: Any = replace(record, id=block, flag=f"{record.flag}; {flag}" if record.flag else flag)
    if isinstance(new, Fact) and not new.origin:
        new = replace(new, origin=record.said_by) if isinstance(record, Fact) else new
    return MergeUnit(("id", block), path, _shown(new), new)


def _shown(record: Record) -> bytes:
    return (printer.show(record) + "\n").encode("utf-8", "surrogateescape")


# -- renamed -----------------------------------------------------------------------------------------------
# Files that were renamed on one side, or on both: they are merged under the name that they are to have.
#
# Lines with an id are known wherever they stand. All others are known by their file, and a file that has
# two names would stand there twice.


Files = Mapping[str, bytes]
_ID = re.compile(rb"\s+\^[A-Za-z0-9-]+\s*$")


def align_renames(
    base: Files, ours: Files, theirs: Files
) -> tuple[tuple[Files, Files, Files], list[tuple[str, str]], Mapping[str, str]]:
    """The sides, each file under the name that it is to have; those that both sides renamed: (this side's
    name, the other's, which it gets); and {name: what the other calls that file}. What one side renamed and
    the other deleted stays as it is; so does a file whose new name the other side gave to another one."""
    here, there = renamed(base, ours), renamed(base, theirs)
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
    sides = _named(base, old), _named(ours, mine), _named(theirs, other)
    return sides, twice, {new: path for path, new in other.items()}


def _named(files: Files, names: Mapping[str, str]) -> Files:
    return {names.get(path, path): data for path, data in files.items()}


def renamed(base: Files, side: Files) -> dict[str, str]:
    """{a file of the base that is gone: the new one that has its lines}: at least half of those of the
    shorter one, whatever ids they were given since; each new file once, the likest first."""
    gone = {path: lines for path in base if path not in side and (lines := _lines(path, base[path]))}
    new = {path: lines for path in side if path not in base and (lines := _lines(path, side[path]))}
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


def _lines(path: str, data: bytes) -> Counter[bytes]:
    """The lines of a file that say something: no headings, and no ids."""
    if path in (*CORE_NAMES, SETTINGS) or not path.endswith(".md"):
        return Counter()
    lines = (_ID.sub(b"", line).strip() for line in data.split(b"\n"))
    return Counter(line for line in lines if line.strip(b"-*_") and not line.startswith(b"#"))


# -- banks -------------------------------------------------------------------------------------------------
# Two machines' files made one: three-way by id, whatever file a thing stands in, and by parts between.
#
# Pure: bytes in, bytes out. No conflict marks are ever written: where both sides say something else, both
# stand side by side. What comes out is read again, and must say what was decided, nothing more or less.


NAMED = {"id": "^{}", "CoreBlock": "## {}", "Entity": "[[{}]]", "Tombstone": "^{}"}
KEPT = "## Kept from another machine"


@dataclass(frozen=True, slots=True)
class MergeNote:
    """Something that both machines changed. `why` is `kept` (one deleted it, the other changed it, and it
    stays), `both` (each changed it, and both readings stand) or `theirs` (of settings and of the header of a
    file one reading can hold); the texts are what each side has."""

    what: str
    path: str
    why: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Merge:
    """What all files become (None: goes), what there is to tell, and the ids that stay forgotten."""

    files: Mapping[str, bytes | None]
    notes: tuple[MergeNote, ...] = ()
    forgotten: tuple[str, ...] = ()
    came: int = 0
    changed: int = 0
    went: int = 0
    """Statements that this machine had not, had otherwise, and has no more."""
    dropped: tuple[Dropped, ...] = ()
    """What was written or changed on one machine and forgotten on the other."""


def merge(base: Files, ours: Files, theirs: Files, other: str = "") -> Merge:
    """Three sides of the same paths; `other` is the revision of the third. Conflict where a file cannot be
    merged without harm to what it says."""
    sides, twice, there = align_renames(base, ours, theirs)
    done = _Merging(*sides, other, there).merged()
    named = tuple(MergeNote("file name", other, "theirs", here, other) for here, other in twice)
    files = {**dict.fromkeys(ours.keys() - sides[1].keys()), **done.files}
    return replace(done, files=files, notes=(*named, *done.notes))


@dataclass
class _Merging:
    base: Files
    ours: Files
    theirs: Files
    revision: str = ""
    there: Mapping[str, str] = field(default_factory=dict)
    """What the other side calls a file that this one has renamed."""
    notes: list[MergeNote] = field(default_factory=list)
    settled: dict[Key, SettledUnit] = field(default_factory=dict)
    units: dict[Key, MergeUnit] = field(default_factory=dict)

    def merged(self) -> Merge:
        self.paths = sorted({*self.base, *self.ours, *self.theirs})
        sides = [read(files) for files in (self.base, self.ours, self.theirs)]
        if twice := frozenset[Key]().union(*(side.twice for side in sides)):
            # What stands twice has no identity, on no side.
            sides = [read(files, twice) for files in (self.base, self.ours, self.theirs)]
        self.old, self.mine, self.other = sides
        self._settle()
        dead = self._apply_tombstones()
        files = {path: self._file(path, rows) for path, rows in self._placed().items()}
        mine = {key: unit for key, unit in self.mine.units.items() if key[0] == "id"}
        new = {key: unit for key, unit in self.units.items() if key[0] == "id"}
        changed = sum(key in mine and mine[key].lines != unit.lines for key, unit in new.items())
        figures = len(new.keys() - mine.keys()), changed, len(mine.keys() - new.keys())
        return Merge(files, tuple(self.notes), tuple(dead), *figures)

    # -- units -------------------------------------------------------------------------------------

    def _settle(self) -> None:
        for key in dict.fromkeys((*self.other.units, *self.mine.units)):
            b, o, t = (side.units.get(key) for side in (self.old, self.mine, self.other))
            done = self.settled[key] = settle(b, o, t)
            if done.unit:
                self.units[key] = done.unit
            if done.beside and done.beside.key not in {**self.mine.units, **self.other.units}:
                self.units[done.beside.key] = done.beside
            if done.why:
                said = [side.lines.decode("utf-8", "replace").strip() if side else "" for side in (o, t)]
                what = NAMED.get(key[0], "{}'s " + key[0]).format(key[1])
                what = what.removeprefix("^") if "#^" in what else what
                self.notes.append(MergeNote(what, (done.unit or o or t).path, done.why, *said))  # type: ignore[union-attr]

    def _apply_tombstones(self) -> list[str]:
        """Take out what has a tombstone; the ids that one of the machines still had."""
        forgotten = {name: None for kind, name in self.units if kind == "Tombstone"}
        for name in forgotten:
            self.units.pop(("id", name), None)
        self.notes = [note for note in self.notes if note.what.removeprefix("^") not in forgotten]
        for done in self.settled.values():
            if done.beside and done.unit and done.unit.key[1] in forgotten:
                self.units.pop(done.beside.key, None)
        return [
            name for name in forgotten if any(("id", name) in side.units for side in (self.mine, self.other))
        ]

    # -- places ------------------------------------------------------------------------------------

    def _placed(self) -> dict[str, list[bytes] | None]:
        """The parts of each file, where every unit that stays has one place."""
        rows = {path: self._rows(path) for path in self.paths}
        seen: set[Key] = set()
        for path, there in rows.items():
            kept = []
            for part in there or ():
                key = key_in(part)
                if key and (key not in self.units or self.units[key].path != path or key in seen):
                    continue
                seen |= {key} if key else set()
                kept.append(part)
            if there is not None:
                rows[path] = kept
        for key, unit in self.units.items():
            if key not in seen:
                rows[unit.path] = self._put(rows[unit.path] or [], key, unit)
        return rows

    def _rows(self, path: str) -> list[bytes] | None:
        old, mine, other = (side.parts.get(path) for side in (self.old, self.mine, self.other))
        if mine in (old, other) or other == old:
            return other if mine == old else mine
        both = parts(old, mine or [], other or [], lambda *sides: self._clash(path, *sides))
        if mine is not None and other is not None:
            return both
        return both if any(part.strip() for part in both) else None  # gone on one side, and nothing is new

    def _clash(self, path: str, old: list[bytes], mine: list[bytes], other: list[bytes]) -> None:
        """Tell of prose that both changed, each otherwise: both readings stand."""
        new = ([p for p in s if p.strip() and p not in (*old, *t)] for s, t in ((mine, other), (other, mine)))
        said = [
            b"".join(p for p in side if not p.startswith(MARK)).decode("utf-8", "replace") for side in new
        ]
        changed = any(p.strip() and p not in (*mine, *other) and not p.startswith(MARK) for p in old)
        if changed and path != SETTINGS and all(text.strip() for text in said):
            self.notes.append(MergeNote("text", path, "both", *(text.strip() for text in said)))

    def _put(self, rows: list[bytes], key: Key, unit: MergeUnit) -> list[bytes]:
        """Give a unit a place: behind what stands before it on the side that has it, else at the end."""
        aside = next((k for k, s in self.settled.items() if s.beside and s.beside.key == key), key)
        if aside != key and token(aside) in rows:
            at = rows.index(token(aside)) + 1
            return [*rows[:at], token(key), *rows[at:]]
        for side in (self.other, self.mine):
            there = side.parts.get(unit.path) or []
            if token(key) in there:
                before = there[: there.index(token(key))]
                near = (rows.index(part) for part in reversed(before) if part.strip() and part in rows)
                at = next(near, len(rows) - 1) + 1
                return [*rows[:at], token(key), *rows[at:]]
        return [*rows, token(key)]

    # -- files -------------------------------------------------------------------------------------

    def _file(self, path: str, rows: list[bytes] | None) -> bytes | None:
        if rows is None:
            return None
        for side, files in ((self.other, self.theirs), (self.mine, self.ours)):
            if rows == side.parts.get(path) and all(
                self.units[key].lines == side.units[key].lines for part in rows if (key := key_in(part))
            ):
                return files[path]  # as it stands there, to the byte
        if not any(part.strip() for part in rows) and (path not in self.ours or path not in self.theirs):
            return None
        data = self._joined(rows)
        if path == SETTINGS:
            return self._settings()
        if self._restamp(path, data):
            data = self._joined(rows)
        if self._says(path, data):
            return data
        return self._apart(path)

    def _settings(self) -> bytes:
        """The settings by lines; where both changed the same, or nobody could read the outcome, theirs."""
        texts = [files.get(SETTINGS) for files in (self.base, self.ours, self.theirs)]
        data = merged_lines(texts[0], texts[1] or b"", texts[2] or b"")
        with contextlib.suppress(tomllib.TOMLDecodeError, UnicodeDecodeError):
            if data is not None and tomllib.loads(data.decode("utf-8-sig")) is not None:
                return data
        said = [(text or b"").decode("utf-8", "replace").strip() for text in texts[1:]]
        self.notes.append(MergeNote(SETTINGS, SETTINGS, "theirs", *said))
        return texts[2] or b""

    def _joined(self, rows: list[bytes]) -> bytes:
        """The file that parts make up. Two texts from different machines do not run into each other."""
        out: list[bytes] = []
        for part in rows:
            raw = self.units[key].lines if (key := key_in(part)) else part
            if not raw:
                continue
            if out and _is_text(raw) and out[-1].strip() and not out[-1].startswith((b"#", b"---")):
                out.append(b"\r\n" if out[-1].endswith(b"\r\n") else b"\n")
            out.append(raw)
        return b"".join(out)

    def _restamp(self, path: str, data: bytes) -> bool:
        """Say in a fact's own lines who said it, where the heading above it does not any more."""
        done = False
        for record in markdown_document.parse(data, path).of(Fact):
            key = key_of(record)
            unit = self.units.get(key) if key else None
            if not key or not unit or unit.path != path or not isinstance(unit.record, Fact):
                continue
            sides = (side.units.get(key) for side in (self.other, self.mine))
            said: Any = next((each.said for each in sides if each), unit.said)
            if said and said != record.said_by:
                fact = replace(unit.record, origin=said)
                self.units[key] = replace(unit, lines=_shown(fact), record=fact)
                done = True
        return done

    def _says(self, path: str, data: bytes) -> bool:
        """Whether a file, read again, has the units it should and no words that neither side has."""
        wanted = {key: unit.record for key, unit in self.units.items() if unit.path == path and unit.record}
        sides = [files.get(path, b"") for files in (self.ours, self.theirs)]
        known: Counter[Record] = Counter()
        for side in sides:
            known |= Counter(markdown_document.parse(side, path).records)
        lines = {line.strip() for side in sides for line in side.split(b"\n")}
        found: dict[Key, Record] = {}
        for record in markdown_document.parse(data, path).records:
            key = key_of(record)
            if key in wanted:
                found[key] = record
            elif isinstance(record, CoreBlock) and record.top:  # merged line by line
                value = record.value.encode("utf-8", "surrogateescape")
                if not {line.strip() for line in value.split(b"\n")} <= {*lines, b""}:
                    return False
            elif isinstance(record, Fact | CoreBlock) and record not in known:
                return False
        return found == wanted

    def _apart(self, path: str) -> bytes:
        """The other machine's file as it stands but for what is settled, and below it what is only ours."""
        theirs = self.other.parts.get(path) or []
        rows = [part for part in theirs if not (key := key_in(part)) or self._is_here(key, path)]
        core = path in CORE_NAMES
        mine = list(self._only_ours(path, {*theirs}))
        if core:  # what is in no section stands above the first one, and would be of the last one below
            first = next((n for n, part in enumerate(rows) if key_in(part)), len(rows))
            loose = [text for key, text in mine if not key]
            rows[first:first] = [*loose, b"\n"] if loose else []
        data = self._joined(rows)
        for n, text in enumerate(text for key, text in mine if key or not core):
            lines = text.decode("utf-8", "surrogateescape").rstrip("\n").split("\n")
            data = markdown_document.append(data, lines if core or n else [KEPT, "", *lines])
        if self._restamp(path, data):
            return self._apart(path)
        if not self._says(path, data):
            raise Conflict(
                "the two machines' versions cannot be merged", where=path,
                hint="edit it here until both agree, then sync; the other machine's is"
                f" shown by: ua-memory git show {self.revision[:10]}:{self.there.get(path, path)}",
            )  # fmt: skip
        return data

    def _is_here(self, key: Key, path: str) -> bool:
        return key in self.units and self.units[key].path == path

    def _only_ours(self, path: str, theirs: set[bytes]) -> Iterator[tuple[Key | None, bytes]]:
        old = set(self.old.parts.get(path) or ())
        for part in self.mine.parts.get(path) or ():
            key = key_in(part)
            if part in theirs or not part.strip():
                continue
            if key and self._is_here(key, path):
                yield key, self.units[key].lines
            elif not key and part not in old and not part.startswith(b"#"):
                yield None, part
        for key, unit in self.units.items():
            if unit.path == path and key not in self.mine.units and token(key) not in theirs:
                yield key, unit.lines


# -- forgotten elsewhere -------------------------------------------------------------------------------------
# Each side without what the other has forgotten since the merge base, exactly as `forget` leaves a bank: what
# was derived from it on one machine is nothing that the other could have let go of.
#
# A tombstone holds against whatever the other machine did meanwhile. What somebody had written or changed
# there is told with its place, never with its words: its revision has them.


Read = Callable[[str], bytes | None]
_COUNTED = re.compile(rb"\s*[-*+] (?:seen|proofs|last|trend):")
"""What machines note of a statement as they go: nobody misses it."""


@dataclass(frozen=True, slots=True)
class ForgottenPlans:
    """What each side loses with what the other has forgotten."""

    ours: ForgetPlan = field(default_factory=ForgetPlan)
    theirs: ForgetPlan = field(default_factory=ForgetPlan)

    @property
    def paths(self) -> set[str]:
        """The files that it changes on either side."""
        return {*self.ours.files, *self.theirs.files}

    def ids(self, files: Mapping[str, bytes | None]) -> set[str]:
        """The ids that go, but for those that stand in the merged files all the same."""
        gone = {*self.ours.ids, *self.theirs.ids}
        for path, data in files.items():
            if path != PATH and data and any(f"^{written_id(block)}".encode() in data for block in gone):
                gone -= {str(each.ref) for each in markdown_document.parse(data, path).statements}
        return gone

    def notes(self) -> list[str]:
        """What rested on the forgotten and went with it or was revised, in numbers."""
        gone = tuple(each for each in (*self.ours.gone, *self.theirs.gone) if each.why != forget.REQUESTED)
        both = ForgetPlan(gone, (*self.ours.revised, *self.theirs.revised))
        if not both.gone and not both.revised:
            return []
        return [f"removed with what depended on it: {forget.summarize(both)}"]

    def record(self, store: Store, draft: Draft) -> None:
        """Write tombstones for what went with it, as `forget` does. A line without an id has the other's
        already."""
        gone = self.ids(draft.files)
        removals = [one for plan in (self.ours, self.theirs) for one in plan.removals if one.id in gone]
        add(store, draft, removals, store.now().date().isoformat())


def losses(store: Store, base: str | None, other: str, ours: Read, edited: Collection[str]) -> ForgottenPlans:
    """What each side loses with what the other has forgotten since the merge base. `ours` reads this side
    files, of which some are `edited` since its last revision."""
    history = store.history
    known = parse(history.read(base, PATH)) if base else {}
    here, there = parse(ours(PATH)), parse(history.read(other, PATH))
    head = history.head()
    new_there = {block: stone for block, stone in there.items() if block not in here and block not in known}
    new_here = {block: stone for block, stone in here.items() if block not in there and block not in known}
    old = history.blobs(rev=base) if base and (new_there or new_here) else {}
    found = ForgottenPlans()
    # Who has nothing of its own has derived nothing that the other did not see when it forgot.
    if new_there and head and (edited or not history.is_within(head, other)):
        texts = dict(statements.texts(store))
        texts |= {path: ours(path) or b"" for path in {*edited} & texts.keys()}
        found = replace(found, ours=_plan(store, texts, new_there, old, "HEAD"))
    if new_here:
        names = {path: blob for path, blob in history.blobs(rev=other).items()
                 if is_truth(path) and path.endswith(".md")}  # fmt: skip
        read = history.contents(names.values())
        texts = {path: read[blob] for path, blob in names.items()}
        found = replace(found, theirs=_plan(store, texts, new_here, old, other))
    return found


def _plan(
    store: Store, texts: Mapping[str, bytes], new: Mapping[str, Tombstone], old: Mapping[str, str], rev: str
) -> ForgetPlan:
    fresh = {path for path, data in texts.items() if old.get(path) != blob_id(data)}
    ours, today = machine_line_check(store, texts, rev), store.now().date()
    return forgetting(texts, Tombstones(new, store.config.redact), fresh, ours, today)


def forgetting(
    texts: Mapping[str, bytes],
    forgotten: Tombstones,
    fresh: Collection[str],
    ours: IsMachineWritten,
    today: date,
) -> ForgetPlan:
    """A forgetting of what has these tombstones, by its id; in files that are `fresh` since the merge base
    also by what it says: of the others, who forgot it has seen and left what stands there."""
    marks, targets = [f"^{written_id(block)}".encode() for block in forgotten.by_id], []
    for path, data in texts.items():
        if path == PATH or not (path in fresh or any(mark in data for mark in marks)):
            continue
        document = markdown_document.parse(data, path)
        for record in document.statements:
            if forgotten.names(record) or (path in fresh and forgotten.forbid(record)):
                targets.append(forget.target_of(record))
        said = {each.place.line for each in targets if each.place.path == path}
        for _, rows in forgotten.found(data, path) if path in fresh else ():
            if rows[0] not in said:
                text = "\n".join(document.lines[rows[0] - 1 : rows[-1]])
                targets.append(ForgetTarget(Place(path, rows[0], rows[-1]), plain(text).strip()))
    deriving = ForgetPlanner(
        texts, targets, ours, today, take=False, patterns=forgotten.redact, ids=forgotten.by_id.keys()
    )
    return ForgetEdits(deriving).plan()


@dataclass(frozen=True, slots=True)
class Dropped:
    """Lines that were written or changed on one machine and that another had forgotten: the id, if they have
    one, the place, whose they were (`here` or `there`), and the revision that has them still: empty where
    they are in none yet, the file with the old history where that was purged."""

    id: str
    path: str
    line: int
    side: str
    revision: str = ""


def _dropped(
    base: Files, side: str, files: Files, plan: ForgetPlan, gone: Collection[str]
) -> Iterator[Dropped]:
    """What somebody had written or changed on a side since the merge base, of what goes by a plan and of what
    is `gone` by its id."""
    old = {line.strip() for data in base.values() for line in data.split(b"\n")}
    pieces = [
        (piece.id or "", piece.place)
        for piece in plan.gone
        if piece.why == forget.REQUESTED or piece.by_person or piece.what == "fact"
    ]
    left = read(plan.apply(files)).units
    pieces += [(name, unit.record.place) for name in gone if (unit := left.get(("id", name))) and unit.record]
    for block, place in sorted(pieces, key=lambda each: (each[1].path, each[1].line)):
        rows = files[place.path].split(b"\n")[place.line - 1 : place.end]
        if any(row.strip() and row.strip() not in old and not _COUNTED.match(row) for row in rows):
            yield Dropped(block, place.path, place.line, side)


# -- refusing ----------------------------------------------------------------------------------------------
# What of a revision another machine cannot take in, said so that it can be mended where it came from.


def refuse(history: History, other: str, there: Mapping[str, tuple[str, str]]) -> None:
    """Conflict for a link in the place of memory, TooLarge for a file that nobody would read. `there` is
    {path: (mode, blob)} of what the revision `other` has otherwise."""
    if path := link_in(there):
        what = "the other machine has a symbolic link in the place of memory"
        hint = f"on the machine that made it: {undone(path)}; then sync there, and here again"
        raise Conflict(what, where=f"{other[:10]}:{path}", hint=hint)
    large = (p for p, size in history.sizes(other).items() if is_truth(p) and size > MAX_FILE)
    if path := next(large, ""):
        hint = "on the machine that made it: split the file, sync; then sync here again"
        raise TooLarge(f"larger than {MAX_FILE >> 20} MB", where=f"{other[:10]}:{path}", hint=hint)


def link_in(there: Mapping[str, tuple[str, str]]) -> str:
    """The first path of memory at which something else than a file stands; empty where there is none."""
    return next((p for p, (mode, _) in there.items() if is_truth(p) and mode[:3] not in ("100", "")), "")


def undone(path: str) -> str:
    """How a committed link is taken back."""
    name = shlex.quote(path)
    gone = f"ua-memory git rm {name}; ua-memory git commit -m 'no link'"
    return f"replace the link with the file itself, or remove it ({gone})"


def refuse_push(history: History, offered: str | None, head: str) -> None:
    """Conflict where a link was committed here that no other machine would take in."""
    if path := link_in(history.differing(offered, head)):
        what = "a symbolic link was committed in the place of memory; other machines refuse it"
        hint = f"{undone(path)}; then sync again"
        raise Conflict(what, where=path, hint=hint)


# -- foreign files -----------------------------------------------------------------------------------------
# What else a bank of its own has in its repository, and is no memory: it is taken where only the other
# machine has changed it.


def foreign_files(
    store: Store, foreign: Mapping[str, str], base: str | None, other: str
) -> tuple[dict[str, bytes | None], list[str]]:
    """What else a bank of its own has in its repository: taken where only the other changed it."""
    if not foreign:
        return {}, []
    if not store.bank.own:
        what = "the other history has files that are not memory"
        hint = "give this history a remote of its own: ua-memory git remote set-url origin ADDRESS"
        raise Conflict(what, where=", ".join(sorted(foreign)[: forget.LISTED_FILES]), hint=hint)
    history = store.history
    head = history.head()
    here = history.differing(base, head) if head else {}
    there = history.differing(base, other)
    linked = [path for path in foreign if there[path][0][:3] not in ("100", "")]
    if linked and head and not history.is_within(head, other):
        raise Conflict("links and submodules are not merged here", where=linked[0], hint="ua-memory git pull")
    both = sorted(path for path in foreign if path in here and here[path] != there[path])
    theirs = {path: blob for path, blob in foreign.items() if there[path][0] != "160000" and path not in both}
    notes = [
        f"{path} was changed on both machines; this one's version is kept, {other[:10]} has the other"
        for path in both
    ]
    return {path: history.blob(blob) if blob else None for path, blob in theirs.items()}, notes


def write_foreign(store: Store, files: Mapping[str, bytes | None], was: Mapping[str, str]) -> list[str]:
    """Write files that are no memory, where nobody has changed them; what was not written."""
    notes = []
    for path, data in files.items():
        file = store.bank.root / path
        if not _ours(store.bank.root, path):
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
                swap.put(file, data, fresh, mode=0o666)
    return notes


def _ours(root: Path, path: str) -> bool:
    """Whether a path stays in the folder, outside of what git and we keep there."""
    here = root
    for part in path.split("/"):
        here = here / part
        if part in ("", ".", "..", BESIDE) or part.lower() == ".git" or here.is_symlink():
            return False
    return True


# -- joining -----------------------------------------------------------------------------------------------
# Bringing another copy of the bank in: its history joined to this one's, its files merged into these.
#
# One revision, as any other: recorded before a file is touched, finished by the next command if it is
# killed.


OP = "sync"
_SEE = "see docs/sync.md"


@dataclass(frozen=True, slots=True)
class JoinResult:
    """What came in: the merge, how many revisions, and what brought it (None: nothing was to be brought)."""

    merge: Merge
    revisions: int = 0
    result: Result | None = None
    notes: tuple[str, ...] = ()
    losses: ForgottenPlans = field(default_factory=ForgottenPlans)
    """What went with what one of the machines has forgotten."""


def merged(
    store: Store, base: str | None, other: str, ours: Read, edited: Collection[str], *, fresh: bool
) -> tuple[Merge, Mapping[str, str], ForgottenPlans]:
    """This machine's files, some `edited` since its last revision, merged with another revision's against a
    base, and what goes on either side with what the other has forgotten; {path: blob id} of what the other
    has otherwise and is no memory. A bank that is `fresh` becomes the other one."""
    history = store.history
    head = history.head()
    there = history.differing(base, other)
    here = history.differing(base, head) if head else {}
    refuse(history, other, there)
    lost = losses(store, base, other, ours, edited)
    paths = sorted({path for path in (*there, *here, *edited) if is_truth(path)} | lost.paths)
    old = history.blobs(paths, rev=base) if base and paths else {}
    new = {path: there[path][1] if path in there else old.get(path, "") for path in paths}
    read = history.contents(blob for blob in (*old.values(), *new.values()) if blob)
    sides = (
        {path: read[blob] for path, blob in old.items()},
        {path: data for path in paths if (data := ours(path)) is not None},
        {path: read[blob] for path, blob in new.items() if blob},
    )
    done = together(*sides, lost, other, fresh=fresh)
    return done, {path: blob for path, (_, blob) in there.items() if not is_truth(path)}, lost


def together(
    base: Files, mine: Files, theirs: Files, lost: ForgottenPlans, other: str = "", *, fresh: bool = False
) -> Merge:
    """Both sides made one: without what either has forgotten, and what went with it; then by id. `other` is
    the revision of theirs."""
    left, right = lost.ours.apply(mine), lost.theirs.apply(theirs)
    done = merge(left if fresh else base, left, right, other)
    # A file that goes whole, and that nobody else has, is in no merge.
    done = replace(done, files={**dict.fromkeys(mine.keys() - done.files), **done.files})
    # What was taken out before it came to the merge is told as well.
    there_now = {path: data for path, data in done.files.items() if data is not None}
    had, has, now = (set(read(files).units) for files in (mine, left, there_now))
    gone = [name for kind, name in sorted(had - has - now) if kind == "id"]
    gone = [*done.forgotten, *(name for name in gone if name not in done.forgotten)]
    number = done.went + len(gone) - len(done.forgotten)
    gone += sorted(lost.ids(done.files) - {*gone})
    dropped = (
        *_dropped(base, "here", mine, lost.ours, done.forgotten),
        *_dropped(base, "there", theirs, lost.theirs, done.forgotten),
    )
    dropped = tuple(each for each in dropped if ("id", each.id) not in now)  # its forgetting was taken back
    return replace(done, went=number, forgotten=(*gone,), dropped=dropped)


def prepare(store: Store, *, look: bool = False) -> tuple[str, ...]:
    """Commit what people changed and finish what is owed, so that all of this machine's memory takes part;
    what there is to tell of it. Held where facts disappeared and nobody said whether that was meant."""
    refuse_held(store.survey().held)
    if look:
        return ()
    store.require_settled()
    return store.adopt().notes


def join(
    store: Store, other: str, *, door: str, subject: str, look: bool = False, base: str | None = None
) -> JoinResult:
    """Bring in another history that was fetched; with `look` only say what would be. `base` is the revision
    to merge against where the other history was rewritten. Conflict where the two are no copies of one
    bank."""
    history = store.history
    fresh, head = _compared(store, other), history.head()
    base = base or history.fork(head or other, other)
    number = history.number(head, other)
    if look:
        changed = store.survey().changed
        done, _, lost = merged(store, base, other, partial(_read_joined, store), changed, fresh=fresh)
        return JoinResult(_placed(store, done, other), number, notes=tuple(lost.notes()), losses=lost)

    with store.revision(OP, door=door) as draft:
        if history.holds(other):
            return JoinResult(Merge({}))
        done, foreign, lost = merged(store, base, other, draft.get, store.survey().changed, fresh=fresh)
        refuse_held([path for path, touched in draft.touched.items() if touched.held])
        draft.carried, notes = foreign_files(store, foreign, base, other)
        was = history.blobs(sorted(draft.carried)) if draft.carried else {}
        for path, data in done.files.items():
            draft.restore(path, data)
        lost.record(store, draft)
        draft.joins, draft.even_if_empty, draft.subject = other, True, subject
        draft.trailers["Joins"] = [other]
    notes += [*write_foreign(store, draft.carried, was), *lost.notes()]
    done = _placed(store, done, other, draft.result.revision)
    return JoinResult(done, number, draft.result, tuple(notes), lost)


def _placed(store: Store, done: Merge, other: str, merged: str | None = None) -> Merge:
    """A merge with the revisions that have what it dropped: this machine's is the one before."""
    here = ""
    with contextlib.suppress(NotFound):
        here = store.history.resolve(f"{merged}^" if merged else "HEAD") if done.dropped else ""
    changed = set() if merged else set(store.survey().changed)

    def has(each: Dropped) -> str:
        return other if each.side == "there" else "" if each.path in changed else here

    return replace(done, dropped=tuple(replace(each, revision=has(each)) for each in done.dropped))


def _read_joined(store: Store, path: str) -> bytes | None:
    with contextlib.suppress(NotFound):
        return store.read(path)
    return None


# -- whether they are one bank ---------------------------------------------------------------------------


def _compared(store: Store, other: str) -> bool:
    """See that another history is of this bank; whether this one is new, and becomes that one."""
    history = store.history
    there = settings(history.read(other, SETTINGS))
    if there is None:
        raise Conflict("not a memory bank: it has no ua-memory.toml", where=other[:10], hint=_SEE)
    here = {"id": store.config.id, "trail": store.config.trail}
    if all(there.get(key, value) == value for key, value in here.items()):
        return False
    if there.get("trail", "beside") != store.config.trail:
        what = "one bank is its own git repository, the other is kept beside code"
        hint = 'make `trail = "…"` the same in both, which `ua-memory init` sets up; ' + _SEE
        raise Conflict(what, where=SETTINGS, hint=hint)
    if store.bank.own and _new(store):
        return True
    what = f"these are different banks: {store.config.id} here, {there.get('id')} there"
    hint = f'to make them one, write `id = "{there.get("id")}"` here, run `ua-memory init .`, sync again'
    raise Conflict(what, where=SETTINGS, hint=hint)


def settings(data: bytes | None) -> dict[str, object] | None:
    """The settings of a bank as a file has them, None where it cannot be read."""
    try:
        return None if data is None else tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return None


def _new(store: Store) -> bool:
    """Whether a bank is as `init` made it."""
    log = store.history.log(limit=2)
    files = {file.path for file in store.survey().files}
    if len(log) != 1 or log[0].trailer("Memory-Op") != "init" or not files <= {CORE_NAMES[0], SETTINGS}:
        return False
    return _read_joined(store, CORE_NAMES[0]) in (None, init.CORE)
