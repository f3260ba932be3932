"""Recalled memory that a client has written into its session file: found line by line, and taken out there.

pi keeps messages that extensions add as entries with a `customType`; Claude Code keeps what hooks said as
attachments; Codex as messages of a developer. Only these are looked at: our marks in anybody's words stay.
Pure: bytes in, bytes out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ua_memory.fence import RECALL_CLOSE, RECALL_OPEN

TYPED = ("hindsight-recall",)
"""What a message of recalled memory is called where messages have types."""
PRUNED = "(recalled memory was pruned)"
"""Stands where a block stood: some endpoints refuse a text without a word in it."""
SIGNS = (RECALL_OPEN.encode(), *(f'"{name}"'.encode() for name in TYPED))
_BLOCK = re.compile(re.escape(RECALL_OPEN) + r"(?=[\s>])[^<>]*>.*?" + re.escape(RECALL_CLOSE), re.DOTALL)


def pruned(line: bytes) -> bytes | None:
    """A line of a session file without its recalled memory, blanks behind it, as long as it was: whoever
    appends to the file meanwhile is not disturbed. None where nothing of it is to go, or it cannot."""
    if not any(sign in line for sign in SIGNS):
        return None
    text = line.rstrip(b"\r\n")
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    wanted = _typed(record) if isinstance(record, dict) else None
    new = _shown(wanted) if wanted else _cut(text)
    if new is None or len(new) > len(text):
        return None
    return new + b" " * (len(text) - len(new)) + line[len(text) :]


def _typed(record: dict[str, Any]) -> dict[str, Any] | None:
    """pi's entry of a typed message as one that is no part of the conversation: what follows it in the tree
    still hangs on it. None for all others."""
    message = record.get("message") if record.get("type") == "message" else None
    found = message if isinstance(message, dict) and message.get("role") == "custom" else record
    if found is record and record.get("type") != "custom_message":
        return None
    if found.get("customType") not in TYPED:
        return None
    kept: dict[str, Any] = {key: record[key] for key in ("id", "parentId", "timestamp") if key in record}
    return {"type": "custom", **kept, "customType": found["customType"]}


def _cut(text: bytes) -> bytes | None:
    """The JSON text without the blocks in what hooks and extensions said. Every other byte is the same, but
    where one stands elsewhere in it, too. None where there are none."""
    wanted, record = json.loads(text), json.loads(text)
    if not isinstance(wanted, dict):
        return None
    for holder, key in list(_places(wanted)):
        holder[key] = _without(holder[key])
    if wanted == record:
        return None
    new = _BLOCK.sub(PRUNED, text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
    return new if json.loads(new) == wanted else _shown(wanted)


def _shown(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _places(record: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """(object, key) of each part of a record in which a client keeps what was injected."""
    payload = record.get("payload")
    if record.get("type") == "attachment":
        yield from ((record, key) for key in ("attachment", "rendered") if key in record)
    elif record.get("type") == "custom_message" and "content" in record:
        yield record, "content"
    elif record.get("type") in ("response_item", "compacted") and isinstance(payload, dict):
        history = payload.get("replacement_history")
        for message in (payload, *(history if isinstance(history, list) else ())):
            if isinstance(message, dict) and message.get("role") == "developer" and "content" in message:
                yield message, "content"


def _without(value: Any) -> Any:
    if isinstance(value, str):
        return _BLOCK.sub(PRUNED, value)
    if isinstance(value, list):
        return [_without(each) for each in value]
    return {key: _without(each) for key, each in value.items()} if isinstance(value, dict) else value
