"""Gemini CLI: hooks, with event names of its own, and the MCP server. Its transcripts are not read."""

from __future__ import annotations

from collections.abc import Sequence

from ua_memory.clients import settings

# -- settings ----------------------------------------------------------------------------------------------
# Gemini CLI: hooks, with event names of its own, and the MCP server. Written for 0.61. Its settings.json may
# contain comments.


GEMINI_TIMEOUTS = {"SessionStart": 10_000, "BeforeAgent": 10_000, "AfterAgent": 10_000, "SessionEnd": 10_000}
"""{event: timeout in milliseconds}."""


def gemini_target(home: str, command: Sequence[str]) -> settings.ClientTarget:
    """Gemini CLI's user settings; `home` is ~/.gemini."""
    file, wanted = f"{home}/settings.json", settings.shell_hooks(command, "gemini", GEMINI_TIMEOUTS)
    server = settings.mcp_server(file, ("mcpServers",), settings.command_entry(command, "mcp"), loose=True)
    notes = ("restart open sessions",)
    return settings.ClientTarget("gemini", (settings.hooks_piece(file, wanted, loose=True), server), notes)


CLIENT = settings.Client(
    "hooks and the MCP server of Gemini CLI", settings.home_target((("", "~/.gemini"),), gemini_target),
    (("", "~/.gemini"),), printed=settings.server_in("~/.gemini/settings.json"),
)  # fmt: skip
