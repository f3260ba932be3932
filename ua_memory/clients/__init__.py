"""What the hooks of agents' clients say, and what they are answered. Pure, and read for every prompt: nothing
is imported that costs.

A client hands a hook one JSON object on standard input, with `hook_event_name`; what is put into
`additionalContext` goes to the model. Each client has a module that knows its names.
"""

from __future__ import annotations

import json

from ua_memory.clients import claude_code, codex, gemini
from ua_memory.clients.event import Event

__all__ = ["ANSWERED", "Event", "event", "reply"]

ANSWERED = ("start", "prompt")
"""The kinds of events whose answer reaches a model."""
_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
LARGEST = 16 << 20
"""Bytes of an event; as Python's objects they take eight times as much."""


def event(data: bytes, client: str = "") -> Event | None:
    """The event that a hook was given, None if memory has nothing to do with it. `client` is who calls; else
    the payload's own shape tells Claude Code, Codex and Gemini CLI apart.

    ValueError where it is not the JSON object of a hook or a very large one, or the client's name could not
    stand in a heading.
    """
    if len(data) > LARGEST:
        raise ValueError(f"the event is larger than {LARGEST >> 20} MB")
    try:
        found = json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(found, dict) or not isinstance(found.get("hook_event_name"), str):
        raise ValueError("no JSON object with hook_event_name")
    if client and (len(client) > 40 or not _NAME.issuperset(client) or client[0] == "-"):
        raise ValueError(f"--client {client[:40]!r}: small letters, digits and - name a client")
    if client == gemini.NAME or (not client and gemini.told_by(found)):
        heard = gemini.event(found)
    elif client == codex.NAME or (not client and codex.told_by(found)):
        heard = codex.event(found)
    else:
        heard = claude_code.event(found, client or claude_code.NAME)
    return None if heard and heard.kind == "prompt" and not heard.prompt else heard


def reply(to: Event, context: str) -> str:
    """What the hook prints so that a text reaches the model: one line of ASCII."""
    return json.dumps({"hookSpecificOutput": {"hookEventName": to.name, "additionalContext": context}}) + "\n"
