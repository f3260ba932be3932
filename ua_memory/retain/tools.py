"""What the tools of the sub-agent take, as JSON schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_TEXT = {"type": "string", "minLength": 1, "maxLength": 2000}
_NAMES = {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 100}, "maxItems": 12}


def _schema(required: Sequence[str], **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


INSERT = _schema(
    ("content", "tags", "quote", "turn"),
    content={**_TEXT, "description": "the statement, one sentence"},
    tags={**_NAMES, "description": "topics, single words"},
    quote={**_TEXT, "description": "the words it rests on, copied exactly from one turn"},
    turn={"type": "integer", "minimum": 1, "description": "the number of that turn"},
    kind={"type": "string", "enum": ["world", "experience", "preference"]},
    when={"type": "string", "maxLength": 40, "description": "ISO day or time the statement is about"},
    entities={**_NAMES, "description": "people, projects, products it names"},
)
REPLACE = _schema(
    ("section", "value"),
    section={**_TEXT, "maxLength": 200, "description": "the name of a block that was read"},
    value={"type": "string", "minLength": 1, "maxLength": 20000, "description": "its whole new text"},
)
SEARCH = _schema(("query",), query={"type": "string", "minLength": 1, "maxLength": 400})
NOTHING = _schema(())
