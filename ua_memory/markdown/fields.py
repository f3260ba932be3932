"""Metadata of a record: one row for each reserved key, with its reader and its printer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, tzinfo
from typing import Any

from ua_memory import records
from ua_memory.markdown.blocks import Item
from ua_memory.markdown.lines import decode, encode_value, is_id
from ua_memory.records import Proof, Quote, Was

# -- values ------------------------------------------------------------------------------------------------
# One metadata value ↔ what it says: times, names, tags, quotes, citations.
#
# Each `read_…` takes a value as it is written and raises ValueError with what is wrong, worded to go on
# after the value: "`when: soon` is no day". Each `write_…` gives one line that reads back the same.


_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_MONTH = re.compile(r"[0-9]{4}(?:-(?:0[1-9]|1[0-2]))?")
_SCALE = re.compile(r"[0-9]*\.?[0-9]+(?:e-[0-9]{1,3})?")
_BLANK = " \t"
_QUOTE = '"'


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


def local_time(point: str, zone: tzinfo | None) -> str:
    """A day, month or year as it is; a time with an offset as that of a zone, to the second at most."""
    if len(point) <= len("2026-11-19") or (given := datetime.fromisoformat(point)).tzinfo is None:
        return point
    with suppress(OverflowError):  # the year 0 or 10000
        return f"{given.astimezone(zone):%Y-%m-%dT%H:%M:%S}".removesuffix(":00")
    return point


def read_time(value: str) -> str:
    """A day, time, month, year or span, as written."""
    if not is_time(value):
        raise ValueError("is not a day, time, month or year such as 2026-11-19, or two separated by a slash")
    return value


def read_count(value: str) -> int:
    """A whole number from 0 on."""
    if not (value.isascii() and value.isdigit() and len(value) <= 9):
        raise ValueError("is not an integer")
    return int(value)


def read_confidence(value: str) -> float:
    """A number from 0 to 1."""
    if not _SCALE.fullmatch(value) or float(value) > 1:
        raise ValueError("is not a number from 0 to 1")
    return float(value)


def read_origin(value: str) -> dict[str, Any]:
    """`web (https://…)` as `origin` and its `source`; either may be missing, not both."""
    word, source = value, None
    if value.endswith(")"):
        at = value.find("(")
        if at == 0 or value[at - 1 : at] == " ":
            word, source = value[:at].rstrip(_BLANK), decode(value[at + 1 : -1])
    if word not in records.ORIGINS and (word or source is None):
        raise ValueError(f"is not one of {', '.join(records.ORIGINS)}")
    return {"origin": word or None, "source": source}


def write_origin(origin: str | None, source: str | None) -> str:
    """`web (https://…)`, without what is not known; '' if nothing is."""
    return " ".join(filter(None, (origin, f"({encode_value(source)})" if source else "")))


def read_names(value: str) -> tuple[str, ...]:
    """`[[A]], [[B|shown]]` or `A, B` as names."""
    found: list[str] = []
    at = 0
    while at < len(value):
        if value[at] in " \t,":
            at += 1
        elif value.startswith("[[", at):
            end = value.find("]]", at)
            if end < 0:
                raise ValueError("has [[ without ]]")
            found.append(decode(value[at + 2 : end].partition("|")[0].strip(_BLANK)))
            at = end + 2
            if value[at : at + 1] not in ("", " ", "\t", ","):
                raise ValueError("has text directly after ]]")
        else:
            end = value.find(",", at)
            end = len(value) if end < 0 else end
            found.append(decode(value[at:end].strip(_BLANK)))
            at = end
    if not found or not all(found):
        raise ValueError("has an empty name")
    return tuple(found)


def write_link(name: str) -> str:
    """`[[name]]`, with what would end or split the link as an entity."""
    return f"[[{encode_value(name, ']|')}]]"


def write_links(names: Sequence[str]) -> str:
    """`[[A]], [[B]]`."""
    return ", ".join(map(write_link, names))


def write_name(name: str) -> str:
    """The name alone, or as a link where it has a comma or starts like a link."""
    return write_link(name) if "," in name or name.startswith("[[") else encode_value(name)


def read_tags(value: str) -> tuple[str, ...]:
    """A JSON list of strings; from a person's hand also `a, b` or `#a #b`."""
    if not value.startswith("["):
        parts = value.split(",") if "," in value else value.split(" ")
        found = [decode(part.strip(_BLANK).removeprefix("#")) for part in parts if part.strip(_BLANK)]
    else:
        try:
            found = json.loads(decode(value))
        except (ValueError, RecursionError) as error:
            raise ValueError("is not a JSON list") from error
    if not found or not all(isinstance(tag, str) and tag for tag in found):
        raise ValueError("is not a list of tags")
    return tuple(found)


def write_tags(tags: Sequence[str]) -> str:
    """The tags as a JSON list."""
    return encode_value(json.dumps(list(tags), ensure_ascii=False))


def read_quote(value: str) -> Quote:
    """`"words" (source)`; words without quotation marks are taken whole."""
    at = value.rfind('" (')
    if value[0] == _QUOTE and value[-1] == ")" and at > 0:
        return Quote(decode(value[1:at]), decode(value[at + 3 : -1]))
    return Quote(_unquoted(value))


def write_quote(quote: Quote) -> str:
    """`"words" (source)`."""
    source = "" if quote.source is None else f" ({encode_value(quote.source, _QUOTE)})"
    return _quoted(quote.text) + source


def _quoted(text: str) -> str:
    return f'"{encode_value(text)}"'


def _unquoted(value: str) -> str:
    whole = len(value) > 1 and value[0] == value[-1] == _QUOTE
    return decode(value[1:-1] if whole else value)


def read_list(value: str) -> tuple[str, ...]:
    """What stands between the commas."""
    return tuple(decode(part.strip(_BLANK)) for part in value.split(",") if part.strip(_BLANK))


def write_list(values: Sequence[str]) -> str:
    """The values with commas between."""
    return ", ".join(encode_value(value, ",") for value in values)


def read_proof(value: str) -> Proof:
    """`[[file#^id]] "quote"`; the quote may be missing."""
    end = value.find("]]")
    target, mark, block_id = value[2:end].partition("|")[0].rpartition("#^")
    if not value.startswith("[[") or end < 0 or not mark or not is_id(block_id):
        raise ValueError('is not of the form [[file#^id]] "quote"')
    return Proof(decode(target), block_id, _unquoted(value[end + 2 :].strip(_BLANK)))


def write_proof(proof: Proof) -> str:
    """`[[file#^id]] "quote"`."""
    target = f"[[{encode_value(proof.file, ']|')}#^{proof.id}]]"
    return f"{target} {_quoted(proof.quote)}" if proof.quote else target


def read_was(value: str) -> Was:
    """`former wording (2026-05-03)`."""
    at = value.rfind("(")
    if not value.endswith(")") or at < 0 or value[at - 1 : at] not in ("", " "):
        raise ValueError("does not end with the day until which it held, such as (2026-05-03)")
    return Was(decode(value[:at].strip(_BLANK)), decode(value[at + 1 : -1]))


def write_was(was: Was) -> str:
    """`former wording (2026-05-03)`."""
    return f"{encode_value(was.text)} ({encode_value(was.until, '(')})".lstrip(" ")


# -- fields ------------------------------------------------------------------------------------------------
# Metadata: one row for each reserved key of each record, with its reader and its printer.
#
# A record's table is the order in which its metadata is printed. To add a key, add a row here and its
# attribute in `records`. The readers set the attribute that is called like the key: for a key such as
# `place`, which `Fact` has for something else, write a `Field` of its own.


OPINION_KINDS = ("opinion", "pattern", "risk")


@dataclass(frozen=True, slots=True)
class Field:
    """A reserved metadata key.

    `read` parses a value into attributes of the record, or raises ValueError with the reason; `write` returns
    the values to print, one per line. A key with `many` may occur more than once.
    """

    key: str
    read: Callable[[str], dict[str, Any]]
    write: Callable[[Any], Iterable[str]]
    many: bool = False


def _one_value(
    key: str, read: Callable[[str], Any], write: Callable[[Any], str], default: Any = None
) -> Field:
    """A field with one value, which is not written if it is None, empty or the default."""

    def written(record: Any) -> list[str]:
        value = getattr(record, key)
        return [] if value in (None, "", default) else [write(value)]

    return Field(key, lambda value: {key: read(value)}, written)


def _text_field(key: str) -> Field:
    return _one_value(key, decode, encode_value)


def _time_field(key: str) -> Field:
    return _one_value(key, read_time, str)


def _choice_field(key: str, words: Sequence[str], default: str | None = None) -> Field:
    def read(value: str) -> str:
        if value not in words:
            raise ValueError(f"is not one of {', '.join(words)}")
        return value

    return _one_value(key, read, str, default)


def _many_values(
    key: str, attribute: str, read: Callable[[str], Iterable[Any]], write: Callable[[Any], Iterable[str]]
) -> Field:
    """A field with several values; `write` returns the lines for all of them."""
    return Field(
        key, lambda value: {attribute: read(value)}, lambda record: write(getattr(record, attribute)), True
    )


def _one_per_line(key: str, attribute: str, read: Callable[[str], Any], write: Callable[[Any], str]) -> Field:
    """A field with several values, one per line."""
    return _many_values(key, attribute, lambda value: (read(value),), lambda values: map(write, values))


_ENTITIES = _many_values("entities", "entities", read_names, lambda names: filter(None, [write_links(names)]))
_TAGS = Field("tags", lambda value: {"tags": read_tags(value)}, lambda tags: [write_tags(tags)], many=True)
_ENDING = (_text_field("retired"), _text_field("flag"))

FIELDS: Mapping[type, tuple[Field, ...]] = {
    records.Fact: (
        _choice_field("kind", records.KINDS, "world"),
        _time_field("when"),
        *map(_text_field, records.TEXT_KEYS),
        _one_value("importance", read_count, str),
        _ENTITIES,
        _TAGS,
        _one_per_line("quote", "quotes", read_quote, write_quote),
        _many_values("seen", "seen", read_list, lambda values: filter(None, [write_list(values)])),
        _one_per_line("was", "was", read_was, write_was),
        Field("origin", read_origin, lambda r: filter(None, [write_origin(r.origin, r.source)])),
        *_ENDING,
    ),
    records.Observation: (
        Field(
            "proofs",
            lambda value: {"count": read_count(value)},
            lambda r: [str(len(r.proofs))][: len(r.proofs)],
        ),
        _one_per_line("proof", "proofs", read_proof, write_proof),
        _time_field("since"),
        _time_field("last"),
        _text_field("trend"),
        _text_field("scope"),
        _one_per_line("was", "was", read_was, write_was),
        _ENTITIES,
        _TAGS,
        _choice_field("origin", records.ORIGINS),
        *_ENDING,
    ),
    records.Opinion: (
        _choice_field("kind", OPINION_KINDS, "opinion"),
        _one_value("confidence", read_confidence, lambda number: repr(abs(float(number)))),
        _one_per_line("because", "because", read_proof, write_proof),
        _time_field("when"),
        _ENTITIES,
        _TAGS,
        *_ENDING,
    ),
    records.Entity: (
        _many_values("alias", "aliases", read_names, lambda names: map(write_name, names)),
        _many_values("not", "nots", read_names, lambda names: map(write_name, names)),
    ),
    records.Tombstone: (_text_field("hash"), _time_field("on")),
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
                raise ValueError("is repeated")
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


# -- citations ---------------------------------------------------------------------------------------------
# Citations: links to blocks, `[[2026-11-21#^k7m2q9x4tb]]`, as proofs, pages and answers carry them.


_LINK = re.compile(r"\[\[(?P<file>[^\[\]#|^\n]*)#\^(?P<id>[A-Za-z0-9-]+)(?:\|[^\[\]\n]*)?\]\]")


@dataclass(frozen=True, slots=True)
class Citation:
    """A link to a block: the file's name is a hint, the id is what is meant. It stands at `start`."""

    file: str
    id: str
    start: int
    end: int

    @property
    def ref(self) -> str:
        """What the id is known by; see `ref_of`."""
        return records.ref_of(self.file, self.id)


def link_to(name: str, block: str) -> str:
    """The link to a block of a file that is called so (`Draft.link_name`)."""
    return f"[[{name}#^{block}]]"


def citations(text: str) -> Iterator[Citation]:
    """The links to blocks in a text, in order."""
    for match in _LINK.finditer(text):
        yield Citation(match["file"], match["id"], match.start(), match.end())
