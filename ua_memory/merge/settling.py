"""What becomes of one unit that two machines have: three-way, and where both changed it, word by word.

Deleted on one side and unchanged on the other, it is deleted; deleted against changed, it is kept. Changed on
both sides, the fields are merged one by one; where one says two things, both stand side by side.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from io import BytesIO
from typing import Any

from ua_memory import markdown
from ua_memory.merge.units import FRONT, Key, Unit, key_of
from ua_memory.records import CoreBlock, Entity, Fact, Observation, Opinion, Record, Tombstone
from ua_memory.store.threeway import merge_parts

EARLIEST, LATEST = ("since", "on"), ("last", "importance")
FOLLOWS_LAST = "trend"
"""Told by the side whose evidence is newer."""
Clash = Callable[..., None]
_NOWHERE = ("place", "heading")


@dataclass(frozen=True, slots=True)
class Settled:
    """A unit as it shall be, None if it goes; `beside` stands next to it. `why` is empty where nothing is
    to be told, else `kept` (deleted here, changed there, or the other way round), `both`, or `theirs` (of
    which one reading can stand)."""

    unit: Unit | None
    beside: Unit | None = None
    why: str = ""


def settle(base: Unit | None, ours: Unit | None, theirs: Unit | None) -> Settled:
    """One unit of three sides."""
    if ours is None or theirs is None:
        left = ours or theirs
        if base is None or left is None:
            return Settled(left)
        return Settled(None) if _same(left, base) else Settled(left, why="kept")
    path = theirs.path if base and ours.path == base.path else ours.path
    if base and ours.path != base.path != theirs.path:
        path = theirs.path
    if _same(ours, theirs) or (base and _same(ours, base)):
        return Settled(replace(theirs, path=path))
    if base and _same(theirs, base):
        return Settled(replace(ours, path=path))
    return _both(base, ours, theirs, path)


def _same(one: Unit, other: Unit) -> bool:
    return one.lines.split() == other.lines.split() if one.record is None else _bare(one) == _bare(other)


def _bare(unit: Unit) -> list[bytes]:
    return [line.rstrip() for line in unit.lines.splitlines() if line.strip()]


def _both(base: Unit | None, ours: Unit, theirs: Unit, path: str) -> Settled:
    lines = merged_lines(base.lines if base else None, ours.lines, theirs.lines)
    if lines is not None and (unit := _read(theirs.key, path, lines)):
        return Settled(replace(unit, path=path))
    if ours.key[0] == FRONT:
        return Settled(theirs, why="theirs")
    if isinstance(ours.record, CoreBlock):
        both = settled_lines(base.lines if base else None, ours.lines, theirs.lines)
        unit = _read(theirs.key, path, both)
        return Settled(replace(unit or theirs, path=path), why="both")
    record = _by_field(base.record if base else None, ours.record, theirs.record)
    if record is not None:
        return Settled(Unit(ours.key, path, _shown(record), record))
    copy = _copy(ours, path)
    return Settled(replace(theirs, path=path), copy, "both" if copy else "theirs")


def merged_lines(base: bytes | None, ours: bytes, theirs: bytes) -> bytes | None:
    """Three-way by lines; None where both sides changed the same ones."""
    if base is None:
        return None
    old, one, other = (BytesIO(text).readlines() for text in (base, ours, theirs))
    out, clashes = merge_parts(old, one, other)
    return None if clashes else b"".join(out)


def settled_lines(base: bytes | None, ours: bytes, theirs: bytes) -> bytes:
    """Three-way by lines, two readings of one line below each other."""
    return b"".join(parts(None if base is None else _rows(base), _rows(ours), _rows(theirs)))


def _rows(text: bytes) -> list[bytes]:
    return BytesIO(text if text.endswith(b"\n") else text + b"\n").readlines()


def parts(
    base: list[bytes] | None, ours: list[bytes], theirs: list[bytes], met: Clash | None = None
) -> list[bytes]:
    """The same of texts in parts. Without a base what both have in common stands for it. `met` hears of each
    stretch that both changed: base, ours, theirs."""
    if base is None:
        _, common = _common(ours, theirs)
        base = common

    def both(*sides: list[bytes]) -> list[bytes]:
        if met:
            met(*sides)
        return side_by_side(*sides)

    return merge_parts(base, ours, theirs, both)[0]


def _common(ours: list[bytes], theirs: list[bytes]) -> tuple[int, list[bytes]]:
    from difflib import SequenceMatcher

    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    return len(blocks), [part for block in blocks for part in ours[block.a : block.a + block.size]]


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


def _read(key: Key, path: str, lines: bytes) -> Unit | None:
    """The unit that lines make up, if they are that one and nothing else."""
    if key[0] == FRONT:
        document = markdown.parse(lines, path)
        whole = document.front and document.front_end == len(document.lines) and not document.problems
        return Unit(key, path, lines, None) if whole else None
    found = [record for record in markdown.parse(lines, path).records if key_of(record)]
    if len(found) != 1 or key_of(found[0]) != key or markdown.parse(lines, path).problems:
        return None
    return Unit(key, path, lines, found[0])


def _by_field(base: Any, ours: Any, theirs: Any) -> Record | None:
    """A record whose fields are merged one by one; None where one field says two things."""
    if type(ours) is not type(theirs) or not isinstance(
        ours, Fact | Observation | Opinion | Entity | Tombstone
    ):
        return None
    base = base if type(base) is type(ours) else None
    values: dict[str, Any] = {}
    for name in (field.name for field in fields(ours) if field.name not in _NOWHERE):
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


def _copy(ours: Unit, path: str) -> Unit | None:
    """This machine's reading, to stand beside the other: under an id of its own, which says so."""
    record = ours.record
    if not isinstance(record, Fact | Observation | Opinion) or not record.id:
        return None
    digest = hashlib.sha256(f"{record.id}\0".encode() + ours.lines).digest()
    block = base64.b32encode(digest)[:10].decode().lower()
    flag = f"another machine has this otherwise: ^{record.id}"
    new: Any = replace(record, id=block, flag=f"{record.flag}; {flag}" if record.flag else flag)
    if isinstance(new, Fact) and not new.origin:
        new = replace(new, origin=record.said_by) if isinstance(record, Fact) else new
    return Unit(("id", block), path, _shown(new), new)


def _shown(record: Record) -> bytes:
    return (markdown.show(record) + "\n").encode("utf-8", "surrogateescape")


def with_origin(unit: Unit, said: Any) -> Unit:
    """The same fact with who said it in its own lines: the heading that did stands above it no more."""
    if not isinstance(unit.record, Fact):
        return unit
    record = replace(unit.record, origin=said)
    return replace(unit, lines=_shown(record), record=record)
