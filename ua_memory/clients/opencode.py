"""OpenCode: sessions in its database, as JSON lines, the session's own first; a plugin and the MCP server."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ua_memory import paths
from ua_memory.clients import settings, turns
from ua_memory.clients.settings import SERVER_NAME
from ua_memory.clients.turns import Event, Record
from ua_memory.paths import Surroundings
from ua_memory.text.noise import assistant_text

# -- transcripts -------------------------------------------------------------------------------------------
# Rows of `session`, and of `message` with its parts, as in version 1.18. A compaction keeps all turns; its
# own texts, and those that plugins and files add to a prompt, are marked.


class OpenCode(turns.Format):
    """A session of `opencode.db`."""

    client = "opencode"

    @classmethod
    def wrote(cls, record: Record, records: list[Record]) -> bool:
        is_message = "session_id" in record and "parts" in record
        return is_message or ("slug" in record and "directory" in record)

    def __init__(self) -> None:
        super().__init__()
        self._undone = ""
        """The id of the first message that the person undid; ids are ordered by time."""

    def survey(self, line: int, record: Record) -> None:
        if "parts" not in record and not self.session.session:
            self._undone = record.decoded("revert").text("messageID")
            self.session = replace(
                self.session,
                session=record.text("id"),
                cwd=record.text("directory"),
                started=record.time("time_created"),
                parent=record.text("parent_id"),
                agent="subagent" if record.get("parent_id") else "",
                title=record.text("title"),
            )

    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        for line, record in records:
            if "parts" not in record or self._is_undone(record):
                continue
            data, at = record.decoded("data"), record.time("time_created")
            entry = self.entry(line, record, at)
            if data.get("role") == "user":
                yield from self.typed(entry, map(_unquoted, _texts(record)))
            elif data.get("role") == "assistant" and not data.get("summary"):
                yield from self._assistant(entry, record)

    def _assistant(self, entry: turns.EntryIds, record: Record) -> Iterator[Event]:
        for part in _parts(record):
            state, name = part.part("state"), part.text("tool")
            if part.get("type") == "text" and (said := assistant_text(_text(part))):
                yield entry.next(role="assistant", text=said)
            elif part.get("type") == "tool":
                key, code = part.text("callID"), state.part("metadata").get("exit")
                yield from entry.call(key, name, state.get("input"), self.session.cwd)
                failed = state.get("status") == "error" or code not in (None, 0)
                yield turns.call_result(key, failed, state.text("output"))

    def contents(self, line: int, record: Record) -> Iterator[str]:
        for part in [] if self._is_undone(record) else _parts(record):
            yield part.text("text")
            yield part.part("state").text("output")

    def _is_undone(self, record: Record) -> bool:
        return bool(self._undone) and record.text("id") >= self._undone


def _parts(record: Record) -> list[Record]:
    parts = record.get("parts")
    return [Record.of(turns.decode(one)) for one in parts] if isinstance(parts, list) else []


def _texts(record: Record) -> Iterator[str]:
    return (_text(part) for part in _parts(record) if part.get("type") == "text")


def _text(part: Record) -> str:
    """The text of a part, unless OpenCode, a file or a plugin added it."""
    return "" if part.get("synthetic") or part.get("ignored") else part.text("text")


def _unquoted(text: str) -> str:
    """The text without the quotes that `opencode run` puts around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1] else text


def opencode_lines(there: sqlite3.Connection, session: str) -> Iterator[bytes]:
    for row in turns.rows_of(there, "SELECT * FROM session WHERE id = ?", (session,)):
        yield turns.as_line(row)
    parts: dict[str, list[str]] = {}
    query = "SELECT message_id, data FROM part WHERE session_id = ? ORDER BY id"
    for row in turns.rows_of(there, query, (session,)):
        parts.setdefault(str(row["message_id"]), []).append(str(row["data"]))
    for row in turns.rows_of(there, "SELECT * FROM message WHERE session_id = ? ORDER BY id", (session,)):
        yield turns.as_line({**row, "parts": parts.get(str(row["id"]), [])})


# -- settings ----------------------------------------------------------------------------------------------
# OpenCode: the MCP server, and a plugin in its plugin folder. Tested with 1.18.33. It reads opencode.json and
# opencode.jsonc; both may contain comments.


def opencode(call: Surroundings) -> settings.ClientTarget:
    """OpenCode's user settings and a plugin."""
    home = paths.absolute(call, call.env.get("XDG_CONFIG_HOME") or str(call.home / ".config"))
    folder = paths.absolute(call, call.env.get("OPENCODE_CONFIG_DIR") or str(home / "opencode"))
    names = (folder / f"opencode.{end}" for end in ("json", "jsonc"))
    file = next((name for name in names if name.exists()), folder / "opencode.json")
    command, plugins = settings.command_of(call), f"{folder}/plugin"
    whole = settings.with_command(settings.client_files("opencode")["ua-memory.js"], command)
    pieces = (
        settings.mcp_server(str(file), ("mcp",), opencode_server(command), loose=True),
        settings.own_file(f"{plugins}/{SERVER_NAME}.js", "plugin", whole, "ua-memory for OpenCode.", plugins),
    )
    return settings.ClientTarget("opencode", pieces, ("restart open sessions",))


def opencode_server(command: Sequence[str]) -> dict[str, Any]:
    """Our MCP server entry in OpenCode's form."""
    return {"type": "local", "command": [*command, "mcp"], "enabled": True}


CLIENT = settings.Client(
    "the plugin and the MCP server of OpenCode", opencode, (("XDG_DATA_HOME", "~/.local/share", "opencode"),),
    ("opencode*.db",), (OpenCode,),
    turns.Database(
        {"session", "message", "part"},
        "SELECT session.id, max(message.time_created) / 1000.0 AS at, "
        "CASE WHEN parent_id IS NULL THEN '' ELSE 'sub-agent' END AS machine "
        "FROM session JOIN message ON message.session_id = session.id GROUP BY session.id",
        opencode_lines,
    ),
    printed=lambda command: settings.mcp_server(
        "~/.config/opencode/opencode.json", ("mcp",), opencode_server(command)
    ),
)  # fmt: skip
