"""Metadata: one row for each reserved key of each record, with its reader and its printer.

A record's table is the order in which its metadata is printed. Adding a key is adding a row.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from ua_memory.escapes import decode, encode_value, is_id
from ua_memory.items import Item
from ua_memory.records import (
    KINDS,
    ORIGINS,
    Entity,
    Fact,
    Observation,
    Opinion,
    Proof,
    Quote,
    Tombstone,
    Was,
)

_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_MONTH = re.compile(r"[0-9]{4}(?:-(?:0[1-9]|1[0-2]))?")
_SCALE = re.compile(r"[0-9]*\.?[0-9]+(?:e-[0-9]{1,3})?")
DOUBLE = '"'
OPINION_KINDS = ("opinion", "pattern", "risk")


@dataclass(frozen=True, slots=True)
class Field:
    """A reserved key: `read` turns a written value into attributes of the record or raises ValueError
    with what is wrong; `write` gives the values to print, one a line."""

    key: str
    read: Callable[[str], dict[str, Any]]
    write: Callable[[Any], Iterable[str]]
    many: bool = False


def is_time(text: str) -> bool:
    """Whether `text` is a day, a time, a month, a year, or two of them with a slash between."""
    parts = text.split("/")
    return len(parts) <= 2 and all(map(_is_point, parts))


def _is_point(text: str) -> bool:
    if _MONTH.fullmatch(text):
        return text[:4] != "0000"
    if not _TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
        date.fromisoformat(text[:10])
    except ValueError:
        return False
    return True


# readers and printers of one value


def _text(key: str) -> Field:
    return Field(key, lambda value: {key: decode(value)}, lambda record: _printed(getattr(record, key)))


def _printed(value: str | None) -> list[str]:
    return [encode_value(value)] if value else []


def _time(key: str) -> Field:
    def read(value: str) -> dict[str, Any]:
        if not is_time(value):
            raise ValueError("is no day, time, month or year like 2026-11-19, nor two with a slash between")
        return {key: value}

    return Field(key, read, lambda record: _printed(getattr(record, key)))


def _word(key: str, words: Sequence[str], default: str | None) -> Field:
    def read(value: str) -> dict[str, Any]:
        if value not in words:
            raise ValueError(f"is none of {', '.join(words)}")
        return {key: value}

    return Field(key, read, lambda record: [w for w in [getattr(record, key)] if w and w != default])


def _read_origin(value: str) -> dict[str, Any]:
    word, trail = _parenthesised(value)
    if word not in (*ORIGINS, "") or (not word and trail is None):
        raise ValueError(f"is none of {', '.join(ORIGINS)}")
    return {"origin": word or None, "trail": None if trail is None else decode(trail)}


def _write_origin(record: Fact) -> list[str]:
    trail = f"({encode_value(record.trail)})" if record.trail else ""
    return [" ".join(filter(None, (record.origin, trail)))] if record.origin or trail else []


def _parenthesised(value: str) -> tuple[str, str | None]:
    """`words (rest)` in its two parts; the rest is None where there is none."""
    if value.startswith("(") and value.endswith(")"):
        return "", value[1:-1]
    at = value.find(" (")
    return (value[:at], value[at + 2 : -1]) if at >= 0 and value.endswith(")") else (value, None)


def _read_importance(value: str) -> dict[str, Any]:
    if not (value.isascii() and value.isdigit() and len(value) <= 9):
        raise ValueError("is no whole number")
    return {"importance": int(value)}


def _read_confidence(value: str) -> dict[str, Any]:
    if not _SCALE.fullmatch(value) or float(value) > 1:
        raise ValueError("is no number from 0 to 1")
    return {"confidence": float(value)}


def names(value: str) -> tuple[str, ...]:
    """`[[A]], [[B|shown]]` or `A, B` as names."""
    found: list[str] = []
    at = 0
    while at < len(value):
        if value[at] in " \t,":
            at += 1
        elif value.startswith("[[", at):
            end = value.find("]]", at)
            if end < 0:
                raise ValueError("opens [[ and does not close it")
            found.append(decode(value[at + 2 : end].partition("|")[0].strip(" \t")))
            at = end + 2
            if value[at : at + 1] not in ("", " ", "\t", ","):
                raise ValueError("has something right behind ]]")
        else:
            end = value.find(",", at)
            end = len(value) if end < 0 else end
            found.append(decode(value[at:end].strip(" \t")))
            at = end
    if not all(found):
        raise ValueError("has an empty name")
    return tuple(found)


def link(name: str) -> str:
    """`[[name]]`, with what would end or split the link as an entity."""
    return f"[[{encode_value(name, ']|')}]]"


def _bare(name: str) -> str:
    return link(name) if "," in name or name.startswith("[[") else encode_value(name)


def _read_tags(value: str) -> dict[str, Any]:
    if not value.startswith("["):
        parts = value.split(",") if "," in value else value.split()
        found = [decode(part.strip().removeprefix("#")) for part in parts]
    else:
        try:
            found = json.loads(decode(value))
        except (ValueError, RecursionError) as error:
            raise ValueError("is no JSON list") from error
    if not all(isinstance(tag, str) and tag for tag in found):
        raise ValueError("is no list of tags")
    return {"tags": tuple(found)}


def json_list(values: Sequence[str]) -> str:
    """The values as a JSON list on one line that survives in markdown."""
    return encode_value(json.dumps(list(values), ensure_ascii=False)) if values else ""


def _quoted(text: str) -> str:
    return f'"{encode_value(text)}"'


def _unquoted(value: str) -> str:
    whole = len(value) > 1 and value[0] == value[-1] == '"'
    return decode(value[1:-1] if whole else value)


def _read_quote(value: str) -> dict[str, Any]:
    at = value.rfind('" (')
    if value[0] == '"' and value[-1] == ")" and at > 0:
        return {"quotes": (Quote(decode(value[1:at]), decode(value[at + 3 : -1])),)}
    return {"quotes": (Quote(_unquoted(value)),)}


def _write_quotes(record: Fact) -> list[str]:
    return [_quoted(quote.text) + _source(quote.source) for quote in record.quotes]


def _source(source: str | None) -> str:
    return "" if source is None else f" ({encode_value(source, also=DOUBLE)})"


def _read_seen(value: str) -> dict[str, Any]:
    return {"seen": tuple(decode(part.strip(" \t")) for part in value.split(",") if part.strip(" \t"))}


def _proofs(key: str, attribute: str) -> Field:
    def read(value: str) -> dict[str, Any]:
        end = value.find("]]")
        target, mark, block_id = value[2:end].partition("|")[0].rpartition("#^")
        if not value.startswith("[[") or end < 0 or not mark or not is_id(block_id):
            raise ValueError('does not read [[file#^id]] "quote"')
        return {attribute: (Proof(decode(target), block_id, _unquoted(value[end + 2 :].strip(" \t"))),)}

    def write(record: Any) -> list[str]:
        return [_cited(proof) for proof in getattr(record, attribute)]

    return Field(key, read, write, many=True)


def _cited(proof: Proof) -> str:
    target = f"[[{encode_value(proof.file, ']|')}#^{proof.id}]]"
    return f"{target} {_quoted(proof.quote)}" if proof.quote else target


def _read_count(value: str) -> dict[str, Any]:
    return {"count": _read_importance(value)["importance"]}


def _read_was(value: str) -> dict[str, Any]:
    at = value.rfind("(")
    if not value.endswith(")") or at < 0 or value[at - 1 : at] not in ("", " "):
        raise ValueError("does not end in the day until which it held, like (2026-05-03)")
    return {"was": (Was(decode(value[:at].strip(" \t")), decode(value[at + 1 : -1])),)}


def _write_was(record: Observation) -> list[str]:
    return [f"{encode_value(was.text)} ({encode_value(was.until, '(')})".lstrip(" ") for was in record.was]


# the tables

_ENTITIES = Field(
    "entities",
    lambda value: {"entities": names(value)},
    lambda record: [", ".join(map(link, record.entities))] if record.entities else [],
    many=True,
)
_TAGS = Field("tags", _read_tags, lambda tags: [json_list(tags)] if tags else [], many=True)
_SEEN = Field(
    "seen",
    _read_seen,
    lambda record: [", ".join(encode_value(s, ",") for s in record.seen)] if record.seen else [],
    many=True,
)
_ORIGIN = Field("origin", _read_origin, _write_origin)


def _names_of(key: str, attribute: str) -> Field:
    return Field(
        key, lambda value: {attribute: names(value)}, lambda r: map(_bare, getattr(r, attribute)), many=True
    )


FIELDS: Mapping[type, tuple[Field, ...]] = {
    Fact: (
        _word("kind", KINDS, "world"),
        _time("when"),
        *map(_text, ("where", "who", "why", "cause")),
        Field("importance", _read_importance, lambda r: [] if r.importance is None else [str(r.importance)]),
        _ENTITIES,
        _TAGS,
        Field("quote", _read_quote, _write_quotes, many=True),
        _SEEN,
        _ORIGIN,
        *map(_text, ("retired", "flag")),
    ),
    Observation: (
        Field("proofs", _read_count, lambda r: [str(len(r.proofs))] if r.proofs else []),
        _proofs("proof", "proofs"),
        *map(_time, ("since", "last")),
        *map(_text, ("trend", "scope")),
        Field("was", _read_was, _write_was, many=True),
        _ENTITIES,
        _TAGS,
        _word("origin", ORIGINS, None),
        *map(_text, ("retired", "flag")),
    ),
    Opinion: (
        _word("kind", OPINION_KINDS, "opinion"),
        Field(
            "confidence",
            _read_confidence,
            lambda r: [] if r.confidence is None else [repr(float(r.confidence))],
        ),
        _proofs("because", "because"),
        _time("when"),
        _ENTITIES,
        _TAGS,
        *map(_text, ("retired", "flag")),
    ),
    Entity: (_names_of("alias", "aliases"), _names_of("not", "nots")),
    Tombstone: (_text("hash"), _time("on")),
}
KEYS: Mapping[type, frozenset[str]] = {kind: frozenset(f.key for f in rows) for kind, rows in FIELDS.items()}


def read_fields(kind: type, item: Item) -> tuple[dict[str, Any], list[int], list[tuple[int, str]]]:
    """What an item's metadata says for a record of `kind`: attributes by name, the indices of the
    lines that could not be read and stay text, and (line from 0, message) for each of those."""
    rows = {row.key: row for row in FIELDS[kind]}
    found: dict[str, Any] = {}
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
                found[name] = found.get(name, ()) + value if row.many else value
        except ValueError as error:
            kept.extend(meta.lines)
            shown = f" {meta.value[:40]}" if meta.value else ""
            wrong.append((meta.number, f"`{meta.key}:{shown}` {error}; it is read as text"))
        met.add(meta.key)
    return found, kept, wrong


def write_fields(record: Any, listed_tags: Sequence[str] = ()) -> list[str]:
    """The metadata lines of a record, without indentation; `listed_tags` do not fit behind its text."""
    lines: list[str] = []
    for row in FIELDS[type(record)]:
        values = row.write(listed_tags if row is _TAGS else record)
        lines.extend(f"- {row.key}: {value}" for value in values)
    return lines
