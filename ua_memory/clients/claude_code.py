"""Claude Code's hooks, as version 2.1.330 calls them; and any client's that says the same by `--client`.

At `Stop` the transcript may lack what was said last, so `last_assistant_message` is kept: the last block of
text alone, without blanks at its ends. Subagents' events bear an `agent_id`; a compaction stops one of its
own, with no type. Before a compaction plain text would be put into its instructions: nothing is answered.
"""

from __future__ import annotations

from ua_memory.clients.event import Event, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ua_memory.clients.event import Kind

NAME = "claude-code"
KINDS: dict[str, Kind] = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
    "StopFailure": "stop",
    "SubagentStop": "subagent",
    "PreCompact": "compact",
    "SessionEnd": "end",
}
"""The events that memory has something to do with, by the client's names."""


def event(found: dict[str, Any], client: str = NAME) -> Event | None:
    """The event that a payload tells of, None where memory has nothing to do with it."""
    return plain(found, KINDS, client)
