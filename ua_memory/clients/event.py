"""What happened at an agent's client, in our words: one type for all of them."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from typing import Any, Literal

    Kind = Literal["start", "prompt", "stop", "subagent", "compact", "end"]


class Event:
    """Something that happened at a client. `name` is the client's word for it, `client` its own.

    `kind` is start, prompt, stop (the agent has answered), subagent (one of its sub-agents has), compact
    (before a compaction) or end. What the client does not say is '': `session`, the one that it came out of
    (`parent`), its `transcript`'s path, the folder it runs in (`cwd`), the `agent` if a sub-agent is meant,
    the `prompt`, the last words of the assistant (`said`), and `why`: the source of a start (startup, resume,
    clear, compact, fork), the trigger of a compaction (manual, auto, overflow), the reason of an end. `group`
    names the group chat that it happens in, '' for a conversation with the owner alone.
    """

    __slots__ = (
        *("agent", "client", "cwd", "group", "kind", "name", "parent"),
        *("prompt", "said", "session", "transcript", "why"),
    )

    def __init__(self, name: str, kind: Kind, prompt: str = "", client: str = "claude-code") -> None:
        self.name, self.kind, self.prompt, self.client = name, kind, prompt, client
        self.session = self.parent = self.transcript = self.cwd = self.agent = ""
        self.said = self.why = self.group = ""


def _group(named: object) -> str:
    """A group chat's name. It may be a number: what is no text must not pass for the owner alone."""
    if named is None or named is False or named == "":
        return ""
    return " ".join(str(named).split()) or "unknown"


def plain(found: dict[str, Any], kinds: dict[str, Kind], client: str) -> Event | None:
    """The event of a payload that has Claude Code's keys, as Codex's and Gemini's have; None for one that
    memory has nothing to do with. Keys that are no text count as not said, but for the group."""

    def told(*keys: str) -> str:
        return next((value for key in keys if isinstance(value := found.get(key), str) and value), "")

    name = told("hook_event_name")
    kind = kinds.get(name)
    if kind is None:
        return None
    event = Event(name, kind, told("prompt").strip() if kind in ("prompt", "stop") else "", client)
    event.session, event.parent = told("session_id"), told("parent_session_id")
    event.cwd, event.agent = told("cwd"), told("agent_id")
    event.transcript = told("transcript_path")
    event.said, event.group = told("last_assistant_message"), _group(found.get("group"))
    event.why = told({"start": "source", "compact": "trigger", "end": "reason"}.get(kind, ""))
    return event
