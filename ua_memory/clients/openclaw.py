"""OpenClaw, once Clawdbot: sessions in pi's format or a database, a plugin and the MCP server."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import suppress

from ua_memory import discovery, paths
from ua_memory.clients import settings, turns
from ua_memory.clients.edit import EditError, JsonDocument
from ua_memory.clients.pi import Pi
from ua_memory.clients.settings import SERVER_NAME
from ua_memory.clients.turns import Record
from ua_memory.paths import Surroundings
from ua_memory.text.noise import has_envelope

# -- transcripts -------------------------------------------------------------------------------------------
# v4 of pi's format in files, and in the database's `transcript_events`, each row a line of its former files.
# Long lines are compressed with zstd.


AUTOMATIC_KEYS = ("subagent", "cron", "hook", "acp", "heartbeat")
"""Parts of OpenClaw's session keys (`agent:main:cron:…`) that mark sessions without a person."""
GROUP_KEYS = frozenset({"group", "channel", "room"})
_FOLDER = re.compile(r"/(?:clawd|\.clawdbot|\.openclaw|\.moltbot)(?:/|$)")
ARCHIVES = (".jsonl.reset.", ".jsonl.deleted.")
"""In the names of files with sessions that were ended."""


class Clawdbot(Pi):
    """pi's v3 with messages from chat channels."""

    client = "clawdbot"
    channels = True
    long_line = None

    @classmethod
    def wrote(cls, record: Record, records: list[Record]) -> bool:
        if record.get("type") != "session" or not super().wrote(record, records):
            return False
        if _FOLDER.search(record.text("cwd").rstrip("/")):
            return True
        messages = (each.part("message") for each in records)
        typed = next((message for message in messages if message.get("role") == "user"), Record())
        return has_envelope(next(typed.texts(), ""))


class OpenClaw(Clawdbot):
    """v4, which adds `reset` and `leaf` entries: archives of sessions that are otherwise in SQLite."""

    client = "openclaw"

    @classmethod
    def wrote(cls, record: Record, records: list[Record]) -> bool:
        version = record.get("version")
        return record.get("type") == "session" and isinstance(version, int) and version >= 4


def openclaw_lines(there: sqlite3.Connection, session: str) -> Iterator[bytes]:
    query = "SELECT * FROM transcript_events WHERE session_id = ? ORDER BY seq"
    rows = turns.rows_of(there, query, (session,))
    packed = [row for row in rows if row.get("event_json") is None and row.get("event_zstd") is not None]
    # All at once: a process for each line would take longer than all other work.
    text = turns.unpack_zstd(b"".join(row["event_zstd"] for row in packed)) if packed else b""
    at = 0
    for row in rows:
        if row.get("event_json") is not None:
            yield str(row["event_json"]).replace("\n", " ").encode("utf-8", "replace")
        elif row.get("event_zstd") is not None:
            size = int(row.get("event_utf8_bytes") or 0)
            yield text[at : at + size].replace(b"\n", b" ")
            at += size


def automatic_sessions(there: sqlite3.Connection, names: set[str]) -> dict[str, str]:
    """{session id: its automatic speaker} of an OpenClaw database's sessions without a person."""
    found: dict[str, str] = {}
    if not {"session_windows", "session_nodes"} <= names:
        return found
    query = (
        "SELECT w.session_id AS id, w.session_key AS name, coalesce(w.spawned_by, n.spawned_by) AS spawned "
        "FROM session_windows w LEFT JOIN session_nodes n ON n.session_key = w.session_key"
    )
    for row in turns.rows_of(there, query):
        machine = automatic_speaker(str(row["name"]))
        if machine or row["spawned"]:
            found[str(row["id"])] = machine or "sub-agent"
    return found


def automatic_speaker(key: str) -> str:
    """The automatic speaker of an OpenClaw session, such as "cron", by its key; '' for the user."""
    parts = key.split(":")[2:]
    found = next((part for part in parts if part in AUTOMATIC_KEYS), "")
    if not found and GROUP_KEYS.intersection(parts[:-1]):
        return "group chat"  # what others say is not the user's memory
    return "sub-agent" if found == "subagent" else found


def index_speakers(index: object) -> dict[str, str]:
    """{session id: its automatic speaker} of the sessions without a person in an OpenClaw `sessions.json`."""
    found: dict[str, str] = {}
    for key, entry in index.items() if isinstance(index, dict) else ():
        if isinstance(entry, dict) and isinstance(id := entry.get("sessionId"), str):
            machine = automatic_speaker(key) or ("sub-agent" if entry.get("spawnedBy") else "")
            found |= {id: machine} if machine else {}
    return found


# -- settings ----------------------------------------------------------------------------------------------
# OpenClaw: a plugin, and the MCP server and the plugin's permissions in openclaw.json (JSON5).
#
# Tested with 2026.9.6. Plugins below `extensions` are found automatically. A plugin that is not bundled can
# read the conversation only with `allowConversationAccess`. If there is an `allow` list, only the plugins in
# it are loaded.


ENTRY = ("plugins", "entries", SERVER_NAME)
ALLOWED = ("plugins", "allow")
SLOT = ("plugins", "slots", "memory")
SLOT_TOOLS = ("memory_search", "memory_get")
"""Tools that the plugin itself registers in the memory slot; the MCP server then omits them."""
WITHOUT_SLOT = ("archival_memory_insert", "retire", "list_pages", "get_page", "ingest")
"""Tools of the MCP server if the plugin has the memory slot."""
MANIFEST = "openclaw.plugin.json"


def openclaw(call: Surroundings, memory_slot: bool = False) -> settings.ClientTarget:
    """OpenClaw's user settings and a plugin. The plugin replaces OpenClaw's own memory if it has the
    memory slot already, or with `memory_slot`."""
    state, command = settings.folders(call, HOMES)[0], settings.command_of(call)
    file = str(paths.absolute(call, call.env.get("OPENCLAW_CONFIG_PATH") or f"{state}/openclaw.json"))
    with suppress(OSError, ValueError, EditError):  # no such file, or it is invalid, which the edit reports
        slot = JsonDocument(discovery.read(file).decode("utf-8-sig"), loose=True).at(SLOT)
        memory_slot = memory_slot or (slot is not None and slot.value == SERVER_NAME)
    tools, texts = ",".join(WITHOUT_SLOT) if memory_slot else "openclaw", settings.client_files("openclaw")
    pieces = [
        settings.mcp_server(
            file, ("mcp", "servers"), settings.command_entry(command, "mcp", "--tools", tools), loose=True
        ),
        settings.json_piece(file, "permission for the plugin", _allow_plugin, _remove_plugin, loose=True),
    ]
    if memory_slot:
        pieces.append(
            settings.json_value(file, "memory slot", SLOT, SERVER_NAME, loose=True, more=_disable_dreaming)
        )
        # OpenClaw loads only the selected plugin of kind `memory`.
        kind = {"kind": "memory", "categories": ["memory"], "contracts": {"tools": SLOT_TOOLS}}
        texts[MANIFEST] = settings.to_json(json.loads(texts[MANIFEST]) | kind)
    pieces += settings.plugin_files(f"{state}/extensions/{SERVER_NAME}", "plugin", texts, command)
    return settings.ClientTarget(
        "openclaw", tuple(pieces), ("restart a running gateway: openclaw gateway restart",)
    )


def _allow_plugin(document: JsonDocument) -> None:
    if document.at(ENTRY) is None:
        document.put(ENTRY, {"enabled": True, "hooks": {"allowConversationAccess": True}})
    allowed = document.at(ALLOWED)
    if allowed is not None and isinstance(allowed.value, list) and SERVER_NAME not in allowed.value:
        document.put((*ALLOWED, len(allowed.value)), SERVER_NAME)


def _remove_plugin(document: JsonDocument) -> None:
    allowed = document.at(ALLOWED)
    if allowed is not None and isinstance(allowed.value, list) and SERVER_NAME in allowed.value:
        document.cut((*ALLOWED, allowed.value.index(SERVER_NAME)))
    if document.at(ENTRY) is not None:
        document.cut(ENTRY)


def _disable_dreaming(document: JsonDocument) -> None:
    if document.at((*ENTRY, "config")) is None:  # else memory-core rewrites MEMORY.md at night
        document.put((*ENTRY, "config"), {"dreaming": {"enabled": False}})


HOMES = (("OPENCLAW_STATE_DIR", "~/.openclaw"), ("CLAWDBOT_STATE_DIR", "~/.clawdbot"))
CLIENT = settings.Client(
    "the plugin and the MCP server of OpenClaw", openclaw, HOMES,
    ("agents/*/sessions/*.jsonl*", "agents/*/agent/openclaw-agent.sqlite"), (Clawdbot, OpenClaw),
    turns.Database(
        {"transcript_events"},
        "SELECT session_id AS id, max(created_at) / 1000.0 AS at, '' AS machine FROM transcript_events "
        "GROUP BY session_id",
        openclaw_lines, automatic_sessions,
    ),
)  # fmt: skip
