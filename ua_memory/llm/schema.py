"""Checks a tool's input against its JSON schema: the part of JSON Schema that our tools use, and no more.

Unlike JSON Schema itself, an object takes only the keys it names: what a model makes up has no place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_CHECKED = {
    *("type", "properties", "required", "additionalProperties", "enum", "items", "pattern"),
    *("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"),
}
_TOLD = {"description", "title", "default", "examples"}


def check_schema(schema: Mapping[str, Any], where: str = "the schema") -> None:
    """ValueError for a schema that says something `faults` would not check."""
    if unknown := schema.keys() - _CHECKED - _TOLD:
        raise ValueError(f"{where}: {', '.join(sorted(unknown))} is not checked here")
    for kind in _kinds(schema):
        if kind not in _TYPES:
            raise ValueError(f"{where}: no type {kind!r}")
    if schema.get("additionalProperties", False) is not False:
        raise ValueError(f"{where}: objects take only the keys they name")
    properties = schema.get("properties", {})
    if missing := set(schema.get("required", ())) - properties.keys():
        raise ValueError(f"{where}: {', '.join(sorted(missing))} is required and not described")
    for name, inner in properties.items():
        check_schema(inner, f"{where}.{name}")
    if "items" in schema:
        check_schema(schema["items"], f"{where}[]")


def faults(value: Any, schema: Mapping[str, Any], where: str = "") -> list[str]:
    """What is wrong with `value`, said so that the model can mend it; [] if nothing. At most ten."""
    found: list[str] = []
    for fault in _faults(value, schema, where):
        found.append(fault)
        if len(found) == 10:
            break
    return found


def _kinds(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kinds = schema.get("type", ())
    return (kinds,) if isinstance(kinds, str) else tuple(kinds)


def _is(value: Any, kind: str) -> bool:
    # bool is an int to Python, and not to JSON.
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _faults(value: Any, schema: Mapping[str, Any], where: str) -> Iterator[str]:
    at = where or "the input"
    kinds = _kinds(schema)
    if kinds and not any(_is(value, kind) for kind in kinds):
        yield f"{at} must be {' or '.join(kinds)}, not {_kind_of(value)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at} must be one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, str):
        yield from _length(len(value), "characters", schema.get("minLength"), schema.get("maxLength"), at)
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"{at} must match {schema['pattern']}"
    elif isinstance(value, list):
        yield from _length(len(value), "items", schema.get("minItems"), schema.get("maxItems"), at)
        for number, item in enumerate(value):
            yield from _faults(item, schema.get("items", {}), f"{where}[{number}]")
    elif isinstance(value, dict):
        yield from _keys(value, schema, where)
    elif _is(value, "number") and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{at} is out of range: from {schema.get('minimum', '-∞')} to {schema.get('maximum', '∞')}"


def _keys(value: dict[str, Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{where + '.' if where else ''}{name} is missing"
    for name, item in value.items():
        inner = f"{where}.{name}" if where else name
        if name in properties:
            yield from _faults(item, properties[name], inner)
        else:
            yield f"{inner[:80]} is unknown; known are {', '.join(properties) or 'none'}"


def _length(size: int, of: str, low: int | None, high: int | None, at: str) -> Iterator[str]:
    if low is not None and size < low:
        yield f"{at} has {size} {of}, fewer than {low}"
    if high is not None and size > high:
        yield f"{at} has {size} {of}, more than {high}"


def _kind_of(value: Any) -> str:
    return next((kind for kind in _TYPES if _is(value, kind)), type(value).__name__)
