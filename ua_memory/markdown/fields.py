"""Metadata: one row for each reserved key of each record, with its reader and its printer.

A record's table is the order in which its metadata is printed. Adding a key is adding a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ua_memory.markdown.escapes import decode, encode_value
from ua_memory.markdown.items import Item
from ua_memory.markdown.values import (
    is_time,
    read_confidence,
    read_count,
    read_list,
    read_names,
    read_origin,
    read_proof,
    read_quote,
    read_tags,
    read_time,
    read_was,
    write_links,
    write_list,
    write_name,
    write_origin,
    write_proof,
    write_quote,
    write_tags,
    write_was,
)
from ua_memory.records import KINDS, ORIGINS, Entity, Fact, Observation, Opinion, Tombstone

__all__ = ["FIELDS", "KEYS", "OPINION_KINDS", "Field", "is_time", "read_fields", "write_fields"]

OPINION_KINDS = ("opinion", "pattern", "risk")


@dataclass(frozen=True, slots=True)
class Field:
    """A reserved key: `read` turns a written value into attributes of the record or raises ValueError
    with what is wrong; `write` gives the values to print, one a line. `many` may stand more than once,
    and what its lines say is joined."""

    key: str
    read: Callable[[str], dict[str, Any]]
    write: Callable[[Any], Iterable[str]]
    many: bool = False


def _one(key: str, read: Callable[[str], Any], write: Callable[[Any], str], default: Any = None) -> Field:
    """A single value, left out if it is None, empty or the default."""

    def written(record: Any) -> list[str]:
        value = getattr(record, key)
        return [] if value in (None, "", default) else [write(value)]

    return Field(key, lambda value: {key: read(value)}, written)


def _text(key: str) -> Field:
    return _one(key, decode, encode_value)


def _time(key: str) -> Field:
    return _one(key, read_time, str)


def _word(key: str, words: Sequence[str], default: str | None = None) -> Field:
    def read(value: str) -> str:
        if value not in words:
            raise ValueError(f"is none of {', '.join(words)}")
        return value

    return _one(key, read, str, default)


def _listed(
    key: str, attribute: str, read: Callable[[str], tuple[Any, ...]], write: Callable[[Any], str]
) -> Field:
    """Several values on one line."""

    def written(record: Any) -> list[str]:
        values = getattr(record, attribute)
        return [write(values)] if values else []

    return Field(key, lambda value: {attribute: read(value)}, written, many=True)


def _lines(
    key: str, attribute: str, read: Callable[[str], tuple[Any, ...]], write: Callable[[Any], str]
) -> Field:
    """Several values, one a line."""
    return Field(
        key,
        lambda value: {attribute: read(value)},
        lambda record: map(write, getattr(record, attribute)),
        True,
    )


def _alone(read: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    return lambda value: (read(value),)


def _traced_origin(value: str) -> dict[str, Any]:
    origin, trail = read_origin(value)
    return {"origin": origin, "trail": trail}


_ENTITIES = _listed("entities", "entities", read_names, write_links)
_TAGS = Field("tags", lambda value: {"tags": read_tags(value)}, lambda tags: [write_tags(tags)], many=True)
_ENDING = (_text("retired"), _text("flag"))

FIELDS: Mapping[type, tuple[Field, ...]] = {
    Fact: (
        _word("kind", KINDS, "world"),
        _time("when"),
        *map(_text, ("where", "who", "why", "cause")),
        _one("importance", read_count, str),
        _ENTITIES,
        _TAGS,
        _lines("quote", "quotes", _alone(read_quote), write_quote),
        _listed("seen", "seen", read_list, write_list),
        Field("origin", _traced_origin, lambda r: filter(None, [write_origin(r.origin, r.trail)])),
        *_ENDING,
    ),
    Observation: (
        Field(
            "proofs",
            lambda value: {"count": read_count(value)},
            lambda r: [str(len(r.proofs))][: len(r.proofs)],
        ),
        _lines("proof", "proofs", _alone(read_proof), write_proof),
        _time("since"),
        _time("last"),
        _text("trend"),
        _text("scope"),
        _lines("was", "was", _alone(read_was), write_was),
        _ENTITIES,
        _TAGS,
        _word("origin", ORIGINS),
        *_ENDING,
    ),
    Opinion: (
        _word("kind", OPINION_KINDS, "opinion"),
        _one("confidence", read_confidence, lambda number: repr(abs(float(number)))),
        _lines("because", "because", _alone(read_proof), write_proof),
        _time("when"),
        _ENTITIES,
        _TAGS,
        *_ENDING,
    ),
    Entity: (
        _lines("alias", "aliases", read_names, write_name),
        _lines("not", "nots", read_names, write_name),
    ),
    Tombstone: (_text("hash"), _time("on")),
}
_ROWS = {kind: {row.key: row for row in rows} for kind, rows in FIELDS.items()}
KEYS: Mapping[type, frozenset[str]] = {kind: frozenset(rows) for kind, rows in _ROWS.items()}
"""The reserved words of each record."""


def read_fields(kind: type, item: Item) -> tuple[dict[str, Any], frozenset[int], list[tuple[int, str]]]:
    """What an item's metadata says for a record of `kind`: attributes by name, the indices of the
    lines that could not be read and stay text, and (line from 0, message) for each of those."""
    if len(item.lines) == 1:
        return {}, frozenset(), []
    rows = _ROWS[kind]
    found: dict[str, Any] = {}
    joined: dict[str, list[Any]] = {}
    kept: list[int] = []
    wrong: list[tuple[int, str]] = []
    met: set[str] = set()
    for meta in item.metas():
        row = rows[meta.key]
        try:
            if not meta.value:
                raise ValueError("has no value")
            if meta.key in met and not row.many:
                raise ValueError("stands here twice")
            for name, value in row.read(meta.value).items():
                if row.many:
                    joined.setdefault(name, []).extend(value)
                else:
                    found[name] = value
            met.add(meta.key)
        except ValueError as error:
            kept.extend(meta.lines)
            shown = f" {meta.value[:40]}" if meta.value else ""
            wrong.append((meta.number, f"`{meta.key}:{shown}` {error}"))
    return {**found, **{name: tuple(values) for name, values in joined.items()}}, frozenset(kept), wrong


def write_fields(record: Any, listed_tags: Sequence[str] = ()) -> list[str]:
    """The metadata lines of a record, without indentation; `listed_tags` do not fit behind its text."""
    lines: list[str] = []
    for row in FIELDS[type(record)]:
        if row is not _TAGS:
            lines.extend(f"- {row.key}: {value}" for value in row.write(record))
        elif listed_tags:
            lines.extend(f"- {row.key}: {value}" for value in row.write(listed_tags))
    return lines
