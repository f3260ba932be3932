"""pi's settings: an extension, and the MCP server in mcp.json. Seen with 1.5.2."""

from __future__ import annotations

from collections.abc import Sequence

from ua_memory.clients.settings import NAME, Target, call_of, mcp_server, whole_file, with_command


def target(home: str, command: Sequence[str], extension: str) -> Target:
    """A person's own settings; `home` is ~/.pi/agent, `extension` the text of the one that comes with us."""
    file = f"{home}/extensions/{NAME}.ts"
    pieces = (
        whole_file(file, "extension", with_command(extension, command), "ua-memory for pi."),
        mcp_server(f"{home}/mcp.json", ("mcpServers",), {**call_of(command, "mcp"), "exposure": "direct"}),
    )
    return Target("pi", pieces, ("sessions that are open take it up with /reload",))
