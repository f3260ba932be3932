"""pi: its session JSONL, a tree under a header, as OpenClaw has it too; the extension and the MCP server.

v1 has no ids: its lines follow one another. From v2 on every entry names its parent and the last one
appended is the leaf, unless a `leaf` entry points elsewhere. `custom_message` is what extensions injected,
we among them: it is never read.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from ua_memory.clients import settings, turns
from ua_memory.clients.settings import SERVER_NAME
from ua_memory.clients.turns import Event, Record
from ua_memory.text.noise import without_envelope

_SUMMARIES = ("compaction", "branch_summary")


class Pi(turns.Format):
    """`~/.pi/agent/sessions/--<cwd>--/<timestamp>_<id>.jsonl`."""

    client = "pi"
    long_line: ClassVar[re.Pattern[str] | None] = re.compile(r'^\{\s*"type"\s*:\s*"session"')

    @classmethod
    def wrote(cls, record: Record, records: list[Record]) -> bool:
        if record.get("type") == "message":  # a file whose header is broken
            return "timestamp" in record and isinstance(record.get("message"), dict)
        return record.get("type") == "session" and ("cwd" in record or "version" in record)

    channels: ClassVar[bool] = False
    """Whether a person's texts have a chat channel's envelope around them."""

    def __init__(self) -> None:
        super().__init__()
        self._tree = turns.Tree()
        self._gauge = turns.ContextGauge()
        self._has_head = False
        self._compactions: list[tuple[int, int, Record]] = []
        self._first_message_line = 0
        """The first line with a message, for files without ids."""
        self._messages = array("Q")
        self._summary_lines: set[int] = set()
        """Lines of summaries whose turns are not in the file."""

    def survey(self, line: int, record: Record) -> None:
        kind = record.get("type")
        if kind == "session":
            if not self._has_head:
                self._head(record)
            return
        id = record.text("id")
        number = -1
        if id:
            up = "targetId" if kind == "leaf" else "parentId"
            number = self._tree.add(id, record.text(up), line, follows=up not in record)
        if kind == "message":
            self._first_message_line = self._first_message_line or line
            if number >= 0:
                self._messages.append(number)
            message = record.part("message")
            if message.get("role") == "assistant" and message.get("stopReason") not in ("aborted", "error"):
                self._gauge.add(line, _size(message.part("usage")))
        elif kind == "session_info":
            self.session = replace(self.session, title=record.text("name"))
        elif kind in ("compaction", "reset", "branch_summary"):
            light = {key: value for key, value in record.items() if key not in ("summary", "details")}
            self._compactions.append((line, number, Record(light)))

    def _head(self, record: Record) -> None:
        self._has_head = True
        self.session = replace(
            self.session,
            session=record.text("id"),
            cwd=record.text("cwd"),
            started=record.time("timestamp"),
            parent=record.text("parentSession") or record.text("branchedFrom"),
        )

    def close(self, lines: int) -> None:
        if len(self._tree):
            self.keep = bytearray(lines + 1)
            self._tree.walk(len(self._tree) - 1)
            self._tree.flag_lines(self.keep)
        else:
            super().close(lines)
        first = self._first_message()
        for line, _, record in self._compactions:
            if not self.keep[line]:
                continue
            kept = self._first_kept_line(line, record)
            if record.get("type") == "branch_summary":
                if self._tree.find(record.text("fromId")) < 0:
                    self._summary_lines.add(line)
                continue
            if not first or first >= kept:
                self._summary_lines.add(line)
            self.boundary = turns.Boundary(line, kept, record.tokens("tokensAfter") or None)
        self.context_size = self._gauge.size(self.boundary)

    def _first_message(self) -> int:
        """The first line with a message on the path."""
        if not len(self._tree):
            return self._first_message_line
        return next((self._tree.line(number) for number in self._messages if self._tree.flags[number]), 0)

    def _first_kept_line(self, line: int, record: Record) -> int:
        """The first line that a compaction left in the context; its own if it left none, or does not say.

        v1 counts entries, the header included; later versions name an id.
        """
        index = record.get("firstKeptEntryIndex")
        if isinstance(index, int) and 0 <= index < line:
            return index + 1
        found = self._tree.line(self._tree.find(record.text("firstKeptEntryId")))
        return found if 0 < found < line else line

    def read_to(self, id: str, line: int) -> int:
        return self._tree.last_read(id)

    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        for line, record in records:
            kind = record.get("type")
            message = record.part("message")
            at = record.time("timestamp") or message.time("timestamp")
            entry = self.entry(line, record, at)
            if kind == "message":
                yield from self._message(entry, message)
            elif (
                kind in _SUMMARIES
                and line in self._summary_lines
                and (text := record.text("summary").strip())
            ):
                yield entry.next(role="assistant", text=text, summary=True)

    def _message(self, entry: turns.EntryIds, message: Record) -> Iterator[Event]:
        role = message.get("role")
        if role == "user":
            said = message.texts()
            yield from self.typed(entry, map(without_envelope, said) if self.channels else said)
        elif role == "assistant":
            yield from entry.said(message, self.session.cwd)
        elif role == "toolResult":
            failed = message.get("isError") is True
            yield turns.call_result(message.text("toolCallId"), failed, message.get("content"))
        elif role == "bashExecution" and not message.get("excludeFromContext"):
            yield from entry.call("!", "bash", {"command": message.get("command")}, self.session.cwd)
            yield turns.call_result("!", bool(message.get("exitCode")) or message.get("cancelled") is True)

    def contents(self, line: int, record: Record) -> Iterator[str]:
        kind = record.get("type")
        message = record.part("message")
        if kind == "message":
            yield from message.contents()
            yield message.text("command")
            yield message.text("output")
        elif kind == "custom_message":
            yield from record.contents()
        elif kind == "branch_summary" or (
            kind == "compaction" and self.boundary and line == self.boundary.line
        ):
            yield record.text("summary")

    tells_outputs = True

    def outputs(self, record: Record) -> Iterator[str]:
        message = record.part("message")
        if message.get("role") == "toolResult" and not turns.is_ours(message.text("toolName"), None):
            yield "\n".join(message.texts())
        elif message.get("role") == "bashExecution":
            yield message.text("output")


def _size(usage: Record) -> int:
    parts = sum(usage.tokens(key) for key in ("input", "output", "cacheRead", "cacheWrite"))
    return parts or usage.tokens("totalTokens")


# -- settings ----------------------------------------------------------------------------------------------
# pi: an extension, and the MCP server in mcp.json. Tested with 1.5.2.


def pi_target(home: str, command: Sequence[str]) -> settings.ClientTarget:
    """pi's user settings; `home` is ~/.pi/agent."""
    extension = settings.with_command(settings.client_files("pi")["ua-memory.ts"], command)
    entry = {**settings.command_entry(command, "mcp"), "exposure": "direct"}
    pieces = (
        settings.own_file(f"{home}/extensions/{SERVER_NAME}.ts", "extension", extension, "ua-memory for pi."),
        settings.mcp_server(f"{home}/mcp.json", ("mcpServers",), entry),
    )
    return settings.ClientTarget("pi", pieces, ("in open sessions type /reload",))


HOMES = (("PI_CODING_AGENT_DIR", "~/.pi/agent"),)
CLIENT = settings.Client(
    "the extension and the MCP server of pi", settings.home_target(HOMES, pi_target), HOMES,
    ("sessions/*/*.jsonl",), (Pi,),
)  # fmt: skip
