"""Structured answers: a caller's JSON schema, and whether an answer fits it.

The home of jsonschema: what a caller writes may use all of JSON Schema, of which our own tools need little
(`llm.schema`). Nothing is fetched: a schema refers to its own parts alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ua_memory.errors import Usage
from ua_memory.llm.schema import check_schema

LONGEST = 8000
"""Characters of a schema as JSON: it is sent with the question."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A JSON schema (draft 2020-12 unless it says another)."""

    schema: Mapping[str, Any]

    @property
    def field(self) -> Mapping[str, Any]:
        """What the tool `answer` takes as `data`: the schema itself where it is of the kind that tools are
        checked by, else JSON as a text."""
        return self.schema if self._plain else {"type": "string", "description": "JSON that fits the schema."}

    @property
    def told(self) -> str:
        """What a model is told of it, besides."""
        says = "`data` of the answer: with values from memory alone"
        text = "" if self._plain else json.dumps(self.schema, ensure_ascii=False, separators=(",", ":"))
        return f"{says}, as JSON text that fits this JSON schema: {text}" if text else f"{says}."

    @property
    def _plain(self) -> bool:
        try:
            check_schema(self.schema)
        except ValueError:
            return False
        return True

    def read(self, given: Any) -> Any:
        """What was given as `data`. ValueError where it should be JSON and is none."""
        return given if self._plain else json.loads(given)

    def faults(self, data: Any) -> list[str]:
        """What does not fit, in words; [] if all does. At most five."""
        found = sorted(
            _validator(self.schema).iter_errors(data), key=lambda error: list(map(str, error.path))
        )
        return [f"{_path(error.absolute_path)}{error.message[:200]}" for error in found[:5]]

    def words(self, data: Any) -> str:
        """All texts, numbers and keys of the data, a line each: what can be made up."""
        return "\n".join(_leaves(data))


def shape(schema: Any) -> Shape:
    """A schema that can be answered to. Usage for what is none, is too long, or refers to other places."""
    import jsonschema

    if not isinstance(schema, Mapping):
        raise Usage("a JSON schema is an object", mend='{"type": "object", "properties": {…}}')
    if len(json.dumps(schema)) > LONGEST:
        raise Usage(f"the schema has more than {LONGEST} characters", mend="leave descriptions out")
    away = [ref for ref in _refs(schema) if not ref.startswith("#")]
    if away:
        raise Usage(f"the schema refers to {away[0]}; nothing is fetched", mend="put it into $defs")
    try:
        validator = _validator(schema)
        validator.check_schema(schema)
        [*validator.iter_errors(None)]
    except jsonschema.SchemaError as error:
        raise Usage(f"no JSON schema: {_path(error.absolute_path)}{error.message[:200]}") from error
    except Exception as error:  # a reference to a part that is not there, by a class of another package
        raise Usage(f"the schema cannot be used: {str(error)[:200]}") from error
    return Shape(schema)


def _validator(schema: Mapping[str, Any]) -> Any:
    import jsonschema
    from referencing import Registry

    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return kind(schema, registry=Registry())


def _path(parts: Any) -> str:
    path = ".".join(map(str, parts))
    return f"{path}: " if path else ""


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key in ("$ref", "$dynamicRef") and isinstance(inner, str):
                yield inner
            else:
                yield from _refs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _refs(inner)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
