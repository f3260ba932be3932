"""Gemini CLI's hooks, as version 0.61 calls them, by names of its own.

It says before every call of its model that it compresses, so that is not heard. Its transcripts have no
reader here: what was asked and answered is taken from the event at the end of each turn.
"""

from __future__ import annotations

from ua_memory.clients.event import Event, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ua_memory.clients.event import Kind

NAME = "gemini"
KINDS: dict[str, Kind] = {
    "BeforeAgent": "prompt",
    "SessionStart": "start",
    "AfterAgent": "stop",
    "SessionEnd": "end",
}


def told_by(found: dict[str, Any]) -> bool:
    """Whether a payload without a client's name is Gemini's: it alone writes a time."""
    return found.get("hook_event_name") in ("BeforeAgent", "AfterAgent") or "timestamp" in found


def event(found: dict[str, Any], client: str = NAME) -> Event | None:
    """The event that a payload tells of, None where memory has nothing to do with it."""
    heard = plain(found, KINDS, client)
    if heard:
        heard.transcript = ""
        answer = found.get("prompt_response")
        heard.said = answer if heard.kind == "stop" and isinstance(answer, str) else ""
    return heard
