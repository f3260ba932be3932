"""Records as JSON that a person can read: the kind, and every value that is not the default."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any

from ua_memory.records import Place


def as_json(record: Any) -> dict[str, Any]:
    """The record's kind and its values, its lines as `3-5`; what is left at its default is left out."""
    shown: dict[str, Any] = {"record": type(record).__name__}
    for each in fields(record):
        value = getattr(record, each.name)
        if isinstance(value, Place):
            shown["lines"] = f"{value.line}-{value.end}"
        elif value != _default(each):
            shown[each.name] = _plain(value)
    return shown


def _default(each: Field[Any]) -> Any:
    return None if each.default is MISSING else each.default


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if is_dataclass(value):
        parts = {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
        defaults = {each.name: _plain(_default(each)) for each in fields(value)}
        return {name: part for name, part in parts.items() if part != defaults[name]}
    return value


def without(shown: dict[str, Any], *names: str) -> dict[str, Any]:
    """The same without the keys in `names`."""
    return {name: value for name, value in shown.items() if name not in names}
