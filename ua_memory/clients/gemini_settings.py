"""Gemini CLI's settings: hooks, with names and milliseconds of its own, and the MCP server. For 0.61.

It reads comments in its settings.json, so they may stand there.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ua_memory.clients.settings import Target, call_of, hooks, mcp_server

TIMEOUTS = {"SessionStart": 10_000, "BeforeAgent": 10_000, "AfterAgent": 10_000, "SessionEnd": 10_000}
"""The events we answer, and milliseconds for each."""


def target(home: str, command: Sequence[str]) -> Target:
    """A person's own settings; `home` is ~/.gemini."""
    file = f"{home}/settings.json"
    line = shlex.join([*command, "hook", "--client", "gemini"])
    wanted = {event: {"type": "command", "command": line, "timeout": n} for event, n in TIMEOUTS.items()}
    server = mcp_server(file, ("mcpServers",), call_of(command, "mcp"), loose=True)
    notes = ("sessions that are open take it up when they are started anew",)
    return Target("gemini", (hooks(file, wanted, loose=True), server), notes)
