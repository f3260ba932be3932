"""OpenClaw's settings: the MCP server and leave for our plugin in openclaw.json (JSON5), and the plugin.

Seen with 2026.9.6: plugins in folders below `extensions` are found by themselves; one that did not come along
hears what is said only with `allowConversationAccess`; an `allow` list, where there is one, is strict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ua_memory.clients.json_edit import Document
from ua_memory.clients.settings import NAME, Target, call_of, json_piece, mcp_server, whole_file, with_command

ENTRY = ("plugins", "entries", NAME)
ALLOWED = ("plugins", "allow")


def target(file: str, state: str, command: Sequence[str], plugin: Mapping[str, str]) -> Target:
    """A person's own settings: `file` is openclaw.json, `state` ~/.openclaw, `plugin` texts by name."""
    folder = f"{state}/extensions/{NAME}"
    pieces = [
        mcp_server(file, ("mcp", "servers"), call_of(command, "mcp"), loose=True),
        json_piece(file, "leave for the plugin", _allow, _forbid, loose=True),
    ]
    for name, text in sorted(plugin.items()):
        shown = with_command(text, command) if name.endswith(".js") else text
        pieces.append(whole_file(f"{folder}/{name}", "plugin", shown, NAME, folder))
    return Target(
        "openclaw", tuple(pieces), ("a gateway that runs takes it up by: openclaw gateway restart",)
    )


def _allow(document: Document) -> None:
    if document.at(ENTRY) is None:
        document.put(ENTRY, {"enabled": True, "hooks": {"allowConversationAccess": True}})
    allowed = document.at(ALLOWED)
    if allowed is not None and isinstance(allowed.value, list) and NAME not in allowed.value:
        document.put((*ALLOWED, len(allowed.value)), NAME)


def _forbid(document: Document) -> None:
    allowed = document.at(ALLOWED)
    if allowed is not None and isinstance(allowed.value, list) and NAME in allowed.value:
        document.cut((*ALLOWED, allowed.value.index(NAME)))
    if document.at(ENTRY) is not None:
        document.cut(ENTRY)
