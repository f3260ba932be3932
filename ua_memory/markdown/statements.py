"""A list item → the record it is, by the kind of file it stands in, with the problems met on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ua_memory.markdown.escapes import split_tail
from ua_memory.markdown.fields import read_fields
from ua_memory.markdown.items import Item
from ua_memory.markdown.values import read_names
from ua_memory.records import Entity, Fact, Heading, Observation, Opinion, Place, Record, Tombstone

Note = Callable[[int, str], None]
"""Takes a problem: its line, counted from 0, and what is wrong."""


def read_record(kind: type, item: Item, path: str, heading: Heading, note: Note) -> Record | None:
    """The record of this kind that the item is, None if it is none and therefore prose."""
    place = Place(path, item.start + 1, item.end)
    if kind in _STATEMENTS:
        return _statement(_STATEMENTS[kind], item, {"place": place, "heading": heading}, note)
    return _entity(item, place, note) if kind is Entity else _tombstone(item, place, note)


_STATEMENTS: Mapping[type, type[Fact | Observation | Opinion]] = {
    kind: kind for kind in (Fact, Observation, Opinion)
}


def _statement(
    kind: type[Fact | Observation | Opinion], item: Item, where: dict[str, Any], note: Note
) -> Record | None:
    found, kept, wrong = read_fields(kind, item)
    text, tags, block_id = item.text(kept)
    if text is None:
        return None
    for line, message in wrong:
        note(line, f"{message}; it is read as text")
    count, proofs = found.pop("count", None), len(found.get("proofs", ()))
    if count is not None and count != proofs:
        line = next(meta.number for meta in item.metas() if meta.key == "proofs")
        note(line, f"`proofs: {count}`, but the `proof:` items are {proofs}")
    found["tags"] = tags + found.get("tags", ())
    return kind(text=text, id=block_id, **found, **where)


def _entity(item: Item, place: Place, note: Note) -> Entity | None:
    try:
        (name,) = read_names(split_tail(item.lines[0].words, True)[0])
    except ValueError:
        note(item.start, "this item is no single name like [[Alice]]; it is read as prose")
        return None
    found, _, wrong = read_fields(Entity, item)
    for line, message in wrong:
        note(line, f"{message}; it is left out")
    return Entity(name, **found, place=place)


def _tombstone(item: Item, place: Place, note: Note) -> Tombstone | None:
    found, _, wrong = read_fields(Tombstone, item)
    text, _, block_id = item.text()
    if text is not None or block_id is None:
        note(
            item.start,
            "this item is no tombstone, which is an id alone like ^k7m2q9x4tb; it is read as prose",
        )
        return None
    for line, message in wrong:
        note(line, f"{message}; it is left out")
    missing = [key for key in ("hash", "on") if key not in found]
    if missing:
        note(item.start, f"this tombstone lacks {' and '.join(missing)}")
    return Tombstone(block_id, found.get("hash", ""), found.get("on", ""), place)
