"""Where each client keeps what it keeps on this machine: its settings and its sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.cli import context

if TYPE_CHECKING:
    from ua_memory.cli.call import Call

CLIENTS: dict[str, tuple[tuple[str, str], ...]] = {
    "claude-code": (("CLAUDE_CONFIG_DIR", "~/.claude"),),
    "codex": (("CODEX_HOME", "~/.codex"),),
    "pi": (("PI_CODING_AGENT_DIR", "~/.pi/agent"),),
    "openclaw": (("OPENCLAW_STATE_DIR", "~/.openclaw"), ("CLAWDBOT_STATE_DIR", "~/.clawdbot")),
    "hermes": (("HERMES_HOME", "~/.hermes"),),
}
"""The variable that names a client's folder, and where that is otherwise. Clawdbot is OpenClaw's old name."""


def folders(call: Call, client: str) -> list[Path]:
    """The folders of a client, the present one first, whether they are there or not."""
    return [context.absolute(call, call.env.get(variable) or usual) for variable, usual in CLIENTS[client]]


def folder(call: Call, client: str) -> Path:
    """The folder that a client uses."""
    return folders(call, client)[0]
