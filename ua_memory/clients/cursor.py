"""Cursor: the MCP server, by its documentation. It has no hook that can add to a prompt."""

from __future__ import annotations

from ua_memory.clients import settings
from ua_memory.paths import Surroundings

# -- cursor settings ---------------------------------------------------------------------------------------
# Cursor: the MCP server, according to its documentation. It has no hook that can add to a prompt.


def cursor(call: Surroundings, project: bool = False) -> settings.ClientTarget:
    """Cursor's user settings, or the current project's (`project`)."""
    folder = str((call.cwd if project else call.home) / ".cursor")
    entry = settings.command_entry(settings.command_of(call, shared=project), "mcp")
    server = settings.mcp_server(f"{folder}/mcp.json", ("mcpServers",), entry)._replace(folder=folder)
    notes = ("Cursor has no hooks that recall or save: its agent does, by the tools; see the line below",)
    return settings.ClientTarget("cursor", (server,), notes)


CLIENT = settings.Client(
    "the MCP server of Cursor", cursor, model=False,
    printed=settings.server_in("~/.cursor/mcp.json, or .cursor/mcp.json in a project"),
)  # fmt: skip
