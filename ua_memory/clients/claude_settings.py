"""Claude Code's settings: hooks in settings.json, the MCP server in .claude.json, and all of it as a plugin.

Seen with 2.1.330: a hook has 600 s by default but 30 s at a prompt and 1.5 s at the end of a session, which
only a `timeout` in a settings.json raises (one in a plugin's hooks.json does not); `args` is passed on
without a shell; hooks of types other than `command` do not run at the start of a session.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ua_memory.clients.json_edit import Broken, Document
from ua_memory.clients.settings import (
    NAME,
    Piece,
    Target,
    call_of,
    has_hooks,
    hooks,
    json_piece,
    mcp_server,
    whole_file,
)

TIMEOUTS = {
    "SessionStart": 10, "UserPromptSubmit": 10, "Stop": 10, "StopFailure": 10,
    "PreCompact": 30, "SessionEnd": 10,
}  # fmt: skip
"""The events we answer, and seconds for each. A hook of ours takes a fraction of one; machines are busy."""
OWN_MEMORY = "autoMemoryDirectory"
"""Where Claude Code keeps what it notes by itself, a file a fact; read in a person's settings only."""
MARKET = "ua-memory-local"
DESCRIPTION = "Long-term memory as markdown files: recalled at each prompt, kept from each session."


def target(home: str, state: str, command: Sequence[str]) -> Target:
    """A person's own settings: `home` is ~/.claude, `state` the file .claude.json."""
    server = {"type": "stdio", **call_of(command, "mcp"), "env": {}}
    return Target(
        "claude-code",
        (hooks(f"{home}/settings.json", _hooks(command)), mcp_server(state, ("mcpServers",), server)),
        ("sessions that are open take it up when they are started anew; /hooks and /mcp show it there",),
    )


def auto_memory(home: str, folder: str) -> Piece:
    """Claude Code's own memory pointed at a folder of the bank. Broken where it points elsewhere."""

    def put(document: Document) -> None:
        there = document.value.get(OWN_MEMORY)
        if there not in (None, folder):
            raise Broken(
                document.line((OWN_MEMORY,)), f"{OWN_MEMORY} is {there!r} already; take it out first"
            )
        if there is None:
            document.put((OWN_MEMORY,), folder)

    def cut(document: Document) -> None:
        if document.value.get(OWN_MEMORY) == folder:
            document.cut((OWN_MEMORY,))

    return json_piece(f"{home}/settings.json", "its own memory's folder", put, cut)


def project(folder: str, command: Sequence[str]) -> Target:
    """A project's settings, which go to everybody who has a checkout."""
    server = {"type": "stdio", **call_of(command, "mcp")}
    pieces = (
        hooks(f"{folder}/.claude/settings.json", _hooks(command)),
        mcp_server(f"{folder}/.mcp.json", ("mcpServers",), server),
    )
    return Target("claude-code", pieces, ("Claude Code asks once in each checkout whether to use .mcp.json",))


def plugin(folder: str, command: Sequence[str], version: str, texts: Mapping[str, str]) -> Target:
    """A folder that is a marketplace with one plugin: hooks, server, and `texts` by path: README, skills."""
    inner = f"{folder}/plugins/{NAME}"
    owner = {"name": "ua-memory contributors"}
    manifest = {
        "name": NAME, "version": version, "description": DESCRIPTION, "author": owner, "license": "MIT",
        "keywords": ["memory", "recall", "markdown"],
    }  # fmt: skip
    market = {
        "name": MARKET,
        "owner": owner,
        "metadata": {"description": "ua-memory from this machine"},
        "plugins": [
            {"name": NAME, "source": f"./plugins/{NAME}", "description": DESCRIPTION, "version": version}
        ],
    }
    events = {event: [{"hooks": [hook]}] for event, hook in _hooks(command).items()}
    files = {
        f"{folder}/.claude-plugin/marketplace.json": _shown(market),
        f"{inner}/.claude-plugin/plugin.json": _shown(manifest),
        f"{inner}/hooks/hooks.json": _shown({"description": DESCRIPTION, "hooks": events}),
        f"{inner}/.mcp.json": _shown({"mcpServers": {"memory": call_of(command, "mcp")}}),
        **{f"{inner}/{path}": text for path, text in texts.items()},
    }
    pieces = [whole_file(file, "plugin", text, NAME, folder) for file, text in files.items()]
    notes = (
        f"in Claude Code: /plugin marketplace add {folder}, then /plugin install {NAME}@{MARKET}",
        "the end of a session has 1.5 s there: a plugin cannot ask for more",
    )
    return Target("claude-code", tuple(pieces), notes)


def set_up(text: str) -> list[str]:
    """What in a settings.json has our hooks called: itself ('hooks'), and our plugin by its full name. Broken
    where it cannot be read."""
    switched = Document(text).value.get("enabledPlugins")
    plugins = switched.items() if isinstance(switched, dict) else ()
    named = [f"plugin {name}" for name, on in plugins if on and name.partition("@")[0] == NAME]
    return [*(["hooks"] if has_hooks(text) else []), *named]


def _hooks(command: Sequence[str]) -> dict[str, dict[str, Any]]:
    call = call_of(command, "hook", "--client", "claude-code")
    return {event: {"type": "command", **call, "timeout": seconds} for event, seconds in TIMEOUTS.items()}


def _shown(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2) + "\n"
