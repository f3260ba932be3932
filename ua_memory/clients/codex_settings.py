"""Codex's settings: hooks.json in Claude Code's form, the MCP server in config.toml. Seen with 0.169.0."""

from __future__ import annotations

from collections.abc import Sequence

from ua_memory.clients.settings import NAME, Target, call_of, hooks, toml_table

TIMEOUTS = {"SessionStart": 10, "UserPromptSubmit": 10, "Stop": 10, "PreCompact": 30, "SessionEnd": 3}
"""The events we answer, and seconds for each; more than 3 at the end of a session Codex does not give."""


def target(home: str, command: Sequence[str]) -> Target:
    """A person's own settings; `home` is ~/.codex."""
    import shlex

    line = shlex.join([*command, "hook", "--client", "codex"])
    wanted = {event: {"type": "command", "command": line, "timeout": n} for event, n in TIMEOUTS.items()}
    server = {**call_of(command, "mcp"), "startup_timeout_sec": 20}
    pieces = (
        hooks(f"{home}/hooks.json", wanted),
        toml_table(f"{home}/config.toml", "MCP server", ("mcp_servers", NAME), server),
    )
    notes = (
        "Codex runs a hook only after you have trusted it: start codex, type /hooks, and trust the five",
    )
    return Target("codex", pieces, notes)
