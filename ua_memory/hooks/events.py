"""Parse the hook events of agents' clients into one type. Loaded for every prompt, so it imports little."""

from __future__ import annotations

import json

from ua_memory.clients import CLAUDE_EVENTS, EVENTS

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from typing import Any, Literal


# -- event -------------------------------------------------------------------------------------------------


if TYPE_CHECKING:
    Kind = Literal["start", "prompt", "stop", "subagent", "compact", "end"]


class Event:
    """An event of a client. `name` is the client's name for it, `client` the client's own.

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

    @property
    def is_session(self) -> bool:
        """Whether it is of a session itself, and of no sub-agent in it."""
        return bool(self.session) and not self.agent


def _group_name(named: object) -> str:
    """A group chat's name as text. It may be a number, and must not be mistaken for no group."""
    if named is None or named is False or named == "":
        return ""
    return " ".join(str(named).split()) or "unknown"


# -- payloads ----------------------------------------------------------------------------------------------
# Hooks as of Claude Code 2.1.330, Codex 0.169 and Gemini CLI 0.61. Other clients call us with Claude Code's
# keys and `--client`.
#
# At `Stop` the transcript may lack the last message, so `last_assistant_message` is used: its last block of
# text, stripped. Events of subagents have an `agent_id`; a compaction stops one of its own, without a type.
# PreCompact is not answered: the text would be added to the compaction's instructions. After Codex's
# interrupted turns the rollout has what was said. Gemini's compression event comes before every model call,
# so it is ignored; its transcripts are not read: prompt and answer come from the event at the end of a turn.


def _read_event(found: dict[str, Any], client: str) -> Event | None:
    """Parse a payload. None for an event that memory ignores. Values that are not text are ignored, except
    the group's."""

    def text(*keys: str) -> str:
        return next((value for key in keys if isinstance(value := found.get(key), str) and value), "")

    name = text("hook_event_name")
    kind: Kind | None = EVENTS.get(client, CLAUDE_EVENTS).get(name)  # type: ignore[assignment]
    if kind is None:
        return None
    event = Event(name, kind, text("prompt").strip() if kind in ("prompt", "stop") else "", client)
    event.session, event.parent = text("session_id"), text("parent_session_id")
    event.cwd, event.agent = text("cwd"), text("agent_id")
    event.transcript = text("transcript_path")
    event.said, event.group = text("last_assistant_message"), _group_name(found.get("group"))
    event.why = text({"start": "source", "compact": "trigger", "end": "reason"}.get(kind, ""))
    return event


def _is_codex(found: dict[str, Any]) -> bool:
    """Whether a payload without a client's name is Codex's."""
    path = found.get("transcript_path")
    rollout = isinstance(path, str) and path.rpartition("/")[2].startswith("rollout-")
    return rollout or ("model" in found and "permission_mode" in found and "prompt_id" not in found)


def _is_gemini(found: dict[str, Any]) -> bool:
    """Whether a payload without a client's name is Gemini's: only Gemini sends a timestamp."""
    return found.get("hook_event_name") in ("BeforeAgent", "AfterAgent") or "timestamp" in found


# -- parsing and answering ---------------------------------------------------------------------------------
# A client gives a hook one JSON object on standard input, with `hook_event_name`. The text in
# `additionalContext` of the answer goes to the model.


ANSWERED_KINDS = ("start", "prompt")
"""The kinds of events whose answer goes to the model."""
_CLIENT_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
LARGEST_EVENT = 16 << 20
"""Bytes of an event; parsed it takes eight times as much memory."""


def parse_event(data: bytes, client: str = "", cwd: str = "") -> Event | None:
    """The event that a hook was given, None if memory has nothing to do with it. `client` is who calls; else
    the payload's own shape tells Claude Code, Codex and Gemini CLI apart. `cwd` is the folder of a hook whose
    event names none.

    ValueError where it is not the JSON object of a hook or a very large one, or the client's name could not
    stand in a heading.
    """
    if len(data) > LARGEST_EVENT:
        raise ValueError(f"the event is larger than {LARGEST_EVENT >> 20} MB")
    try:
        payload = json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(payload, dict) or not isinstance(payload.get("hook_event_name"), str):
        raise ValueError("no JSON object with hook_event_name")
    if client and (len(client) > 40 or not _CLIENT_NAME_CHARACTERS.issuperset(client) or client[0] == "-"):
        raise ValueError(f"--client {client[:40]!r}: small letters, digits and - name a client")
    client = client or ("gemini" if _is_gemini(payload) else "codex" if _is_codex(payload) else "claude-code")
    event = _read_event(payload, client)
    if event and client == "gemini":
        event.transcript, answer = "", payload.get("prompt_response")
        event.said = answer if event.kind == "stop" and isinstance(answer, str) else ""
    if event:
        event.cwd = event.cwd or cwd
    return None if event and event.kind == "prompt" and not event.prompt else event


def reply_json(event: Event, context: str) -> str:
    """The hook's output that passes a text to the model: one line of ASCII JSON."""
    shape = {"hookEventName": event.name, "additionalContext": context}
    return json.dumps({"hookSpecificOutput": shape}) + "\n"
