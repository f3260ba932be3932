"""What the hooks of agents' clients say, and what they are answered. Pure, and read for every prompt: nothing
is imported that costs.

Claude Code, Codex and Gemini CLI hand a hook one JSON object on standard input, with `hook_event_name`; what
is put into `additionalContext` goes to the model. Seen with Claude Code 2.1.330, Codex 0.169 and Gemini 0.61.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from typing import Literal

KINDS = {"UserPromptSubmit": "prompt", "BeforeAgent": "prompt", "SessionStart": "start"}
"""The events that are answered, by the clients' names for them."""


class Event:
    """Something that happened at a client. `name` is its word for it; `prompt` is '' but for a prompt.

    `session`, the one that it came out of (`parent`) and the folder it runs in (`cwd`) are '' where the
    client does not say.
    """

    __slots__ = ("cwd", "kind", "name", "parent", "prompt", "session")

    def __init__(self, name: str, kind: Literal["prompt", "start"], prompt: str = "") -> None:
        self.name, self.kind, self.prompt = name, kind, prompt
        self.session = self.parent = self.cwd = ""


def event(data: bytes) -> Event | None:
    """The event that a hook was given, None if it is none that memory has anything to say to.

    ValueError where it is not the JSON object of a hook.
    """
    try:
        found = json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    name = found.get("hook_event_name") if isinstance(found, dict) else None
    if not isinstance(name, str):
        raise ValueError("no JSON object with hook_event_name")
    kind = KINDS.get(name)
    if kind == "start":
        return Event(name, "start")
    prompt = found.get("prompt")
    if kind is None or not isinstance(prompt, str):
        return None
    prompt = prompt.strip()
    if not prompt:
        return None
    asked = Event(name, "prompt", prompt)
    told = (found.get(key) for key in ("session_id", "parent_session_id", "cwd"))
    asked.session, asked.parent, asked.cwd = (each if isinstance(each, str) else "" for each in told)
    return asked


def reply(to: Event, context: str) -> str:
    """What the hook prints so that a text reaches the model: one line of ASCII."""
    return json.dumps({"hookSpecificOutput": {"hookEventName": to.name, "additionalContext": context}}) + "\n"
