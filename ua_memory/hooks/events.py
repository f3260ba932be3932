"""What happened at a client, as one type, and how each client names it."""

from __future__ import annotations

import json

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from typing import Any, Literal


# -- event -------------------------------------------------------------------------------------------------
# What happened at an agent's client, in our words: one type for all of them.


if TYPE_CHECKING:
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


def claude_shaped(found: dict[str, Any], kinds: dict[str, Kind], client: str) -> Event | None:
    """The event of a payload that has Claude Code's keys, as Codex's and Gemini's have; None for one that
    memory has nothing to do with. Keys that are no text count as not said, but for the group."""

    def text(*keys: str) -> str:
        return next((value for key in keys if isinstance(value := found.get(key), str) and value), "")

    name = text("hook_event_name")
    kind = kinds.get(name)
    if kind is None:
        return None
    event = Event(name, kind, text("prompt").strip() if kind in ("prompt", "stop") else "", client)
    event.session, event.parent = text("session_id"), text("parent_session_id")
    event.cwd, event.agent = text("cwd"), text("agent_id")
    event.transcript = text("transcript_path")
    event.said, event.group = text("last_assistant_message"), _group(found.get("group"))
    event.why = text({"start": "source", "compact": "trigger", "end": "reason"}.get(kind, ""))
    return event


# -- claude code -------------------------------------------------------------------------------------------
# Claude Code's hooks, as version 2.1.330 calls them; and any client's that says the same by `--client`.
#
# At `Stop` the transcript may lack what was said last, so `last_assistant_message` is kept: the last block
# of text alone, without blanks at its ends. Subagents' events bear an `agent_id`; a compaction stops one of
# its own, with no type. Before a compaction plain text would be put into its instructions: nothing is
# answered.


CLAUDE_KINDS: dict[str, Kind] = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
    "StopFailure": "stop",
    "SubagentStop": "subagent",
    "PreCompact": "compact",
    "SessionEnd": "end",
}
"""The events that memory has something to do with, by the client's names."""


# -- codex -------------------------------------------------------------------------------------------------
# Codex's hooks, as version 0.169 calls them: Claude Code's names and keys, and `turn_id` and `model`
# beside.
#
# An interrupted turn has an event of its own; what was said until then is in the rollout.


CODEX_KINDS: dict[str, Kind] = {**CLAUDE_KINDS, "Interrupt": "stop"}


def is_codex(found: dict[str, Any]) -> bool:
    """Whether a payload without a client's name is Codex's."""
    path = found.get("transcript_path")
    rollout = isinstance(path, str) and path.rpartition("/")[2].startswith("rollout-")
    return rollout or ("model" in found and "permission_mode" in found and "prompt_id" not in found)


# -- gemini ------------------------------------------------------------------------------------------------
# Gemini CLI's hooks, as version 0.61 calls them, by names of its own.
#
# It says before every call of its model that it compresses, so that is not heard. Its transcripts have no
# reader here: what was asked and answered is taken from the event at the end of each turn.


GEMINI_KINDS: dict[str, Kind] = {
    "BeforeAgent": "prompt",
    "SessionStart": "start",
    "AfterAgent": "stop",
    "SessionEnd": "end",
}


def is_gemini(found: dict[str, Any]) -> bool:
    """Whether a payload without a client's name is Gemini's: it alone writes a time."""
    return found.get("hook_event_name") in ("BeforeAgent", "AfterAgent") or "timestamp" in found


# -- clients -----------------------------------------------------------------------------------------------
# What the hooks of agents' clients say, and what they are answered. Pure, and read for every prompt:
# nothing is imported that costs.
#
# A client hands a hook one JSON object on standard input, with `hook_event_name`; what is put into
# `additionalContext` goes to the model.


KINDS = {"codex": CODEX_KINDS, "gemini": GEMINI_KINDS}
"""The events of clients that do not name them all as Claude Code does."""
ANSWERED = ("start", "prompt")
"""The kinds of events whose answer reaches a model."""
_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
LARGEST = 16 << 20
"""Bytes of an event; as Python's objects they take eight times as much."""


def hook_event(data: bytes, client: str = "", cwd: str = "") -> Event | None:
    """The event that a hook was given, None if memory has nothing to do with it. `client` is who calls; else
    the payload's own shape tells Claude Code, Codex and Gemini CLI apart. `cwd` is the folder of a hook whose
    event names none.

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
    client = client or ("gemini" if is_gemini(found) else "codex" if is_codex(found) else "claude-code")
    heard = claude_shaped(found, KINDS.get(client, CLAUDE_KINDS), client)
    if heard and client == "gemini":
        heard.transcript, answer = "", found.get("prompt_response")
        heard.said = answer if heard.kind == "stop" and isinstance(answer, str) else ""
    if heard:
        heard.cwd = heard.cwd or cwd
    return None if heard and heard.kind == "prompt" and not heard.prompt else heard


def reply(to: Event, context: str) -> str:
    """What the hook prints so that a text reaches the model: one line of ASCII."""
    return json.dumps({"hookSpecificOutput": {"hookEventName": to.name, "additionalContext": context}}) + "\n"
