"""Codex's hooks, as version 0.169 calls them: Claude Code's names and keys, and `turn_id` and `model` beside.

An interrupted turn has an event of its own; what was said until then is in the rollout.
"""

from __future__ import annotations

from ua_memory.clients import claude_code
from ua_memory.clients.event import Event, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ua_memory.clients.event import Kind

NAME = "codex"
KINDS: dict[str, Kind] = {**claude_code.KINDS, "Interrupt": "stop"}


def told_by(found: dict[str, Any]) -> bool:
    """Whether a payload without a client's name is Codex's."""
    path = found.get("transcript_path")
    rollout = isinstance(path, str) and path.rpartition("/")[2].startswith("rollout-")
    return rollout or ("model" in found and "permission_mode" in found and "prompt_id" not in found)


def event(found: dict[str, Any], client: str = NAME) -> Event | None:
    """The event that a payload tells of, None where memory has nothing to do with it."""
    return plain(found, KINDS, client)
