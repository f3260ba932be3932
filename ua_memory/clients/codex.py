"""Codex: its rollouts; hooks and the MCP server.

Rollouts are JSONL in envelopes `{timestamp, type, payload}`, or bare items in its first months. Read are
response items of users and assistants; what Codex itself says in the user's role (environment, AGENTS.md,
aborted turns) is dropped by its tags, and its events repeat what the items say.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ua_memory.clients import settings, turns
from ua_memory.clients.turns import Event, Record
from ua_memory.text.noise import assistant_text, typed_text

ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "mcp_tool_call")
_CALL_NAMES = {"local_shell_call": "shell", "web_search_call": "web_search"}
_FAILED = re.compile(
    r"^(?:Process exited with code|Exit code:?|Command failed)\s*:?\s*(?!0\b)-?\w+", re.MULTILINE
)


class Codex(turns.Format):
    """`~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`."""

    client = "codex"
    long_line = re.compile(r'"type"\s*:\s*"(?:session_meta|response_item|event_msg)"\s*,\s*"payload"')

    @classmethod
    def wrote(cls, record: Record, records: list[Record]) -> bool:
        kind = record.get("type")
        if kind is None:
            is_head = "id" in record and "timestamp" in record
            return is_head and ("instructions" in record or "git" in record)
        said = record.blocks() if kind == "message" and "role" in record else ()
        is_said = any(block.get("type") in ("input_text", "output_text") for block in said)
        return is_said or (kind in ENVELOPES and isinstance(record.get("payload"), dict))

    def __init__(self) -> None:
        super().__init__()
        self._gauge = turns.ContextGauge()
        self._person_lines = array("Q")
        """Lines of a person's turns, which Codex counts when it rolls turns back."""
        self._dropped: list[tuple[int, int]] = []
        self._compacted: list[turns.Boundary] = []
        self._first_message = 0
        self._our_calls: set[str] = set()

    def name(self, line: int, record: Record) -> str:
        _, item = _payload(record)
        if item.text("type").endswith("_output"):  # it has its call's id, and is no turn
            return f"L{line}"
        return item.text("id") or item.text("call_id") or f"L{line}"

    def survey(self, line: int, record: Record) -> None:
        kind, item = _payload(record)
        inner = item.get("type")
        if kind == "session_meta":
            self._head(record, item)
        elif kind == "compacted":
            self._compacted.append(turns.Boundary(line, line))
        elif kind == "event_msg" and inner == "token_count":
            last = item.part("info").part("last_token_usage")
            size = last.tokens("input_tokens") + last.tokens("output_tokens")
            self._gauge.add(line, last.tokens("total_tokens") or size)
        elif kind == "event_msg" and inner == "thread_rolled_back":
            self._roll_back(line, item.tokens("num_turns"))
        elif kind == "response_item" and inner == "message":
            self._first_message = self._first_message or line
            if item.get("role") == "user" and turns.join_texts(item.texts(), typed_text):
                self._person_lines.append(line)

    def _head(self, record: Record, item: Record) -> None:
        """Set the session by the first header: a fork copies its parent's header below its own."""
        if self.session.session:
            return
        source = item.part("source")
        agent = "subagent" if "subagent" in source or item.get("source") == "subagent" else ""
        at = item.get("timestamp") or record.get("timestamp")
        self.session = replace(
            self.session,
            session=item.text("id") or item.text("session_id"),
            cwd=item.text("cwd"),
            started=turns.as_time(at),
            parent=item.text("forked_from_id") or item.text("parent_thread_id"),
            agent=item.text("agent_nickname") or agent,
        )

    def _roll_back(self, line: int, number: int) -> None:
        """Drop the last turns: the person went back and continued from an earlier one."""
        number = min(number, len(self._person_lines))
        if number:
            self._dropped.append((self._person_lines[-number], line))
            del self._person_lines[-number:]

    def close(self, lines: int) -> None:
        super().close(lines)
        for first, last in self._dropped:
            self.keep[first:last] = bytes(last - first)
        on_path = [boundary for boundary in self._compacted if self.keep[boundary.line]]
        self.boundary = on_path[-1] if on_path else None
        self.context_size = self._gauge.size(self.boundary)

    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        for line, record in records:
            kind, item = _payload(record)
            entry = self.entry(line, record, record.time("timestamp"), self.session.agent)
            inner = item.text("type")
            if kind == "compacted":
                text = item.text("message").strip()
                if text and (not self._first_message or self._first_message > line):
                    yield entry.next(role="assistant", text=text, summary=True)
            elif kind == "response_item" and inner == "message":
                yield from self._message(entry, item)
            elif kind == "response_item" and inner in _CALLS:
                yield from self._call(entry, inner, item)
            elif kind == "response_item" and inner.endswith("_output"):
                output, failed = _result(item.get("output"))
                yield turns.call_result(item.text("call_id"), failed, output)

    def _message(self, entry: turns.EntryIds, item: Record) -> Iterator[Event]:
        if item.get("role") == "user":
            yield from self.typed(entry, item.texts())
        elif item.get("role") == "assistant" and (text := turns.join_texts(item.texts(), assistant_text)):
            yield entry.next(role="assistant", text=text)

    def _call(self, entry: turns.EntryIds, inner: str, item: Record) -> Iterator[Event]:
        action = item.part("action")
        name = item.text("name") or _CALL_NAMES.get(inner, inner)
        given: Any = action or turns.decode(item.get("arguments", item.get("input")))
        key = item.text("call_id") or item.text("id")
        yield from entry.call(key, name, given, self.session.cwd, item.text("namespace"))
        if inner == "web_search_call":
            yield turns.call_result(key, item.get("status") == "failed")

    def contents(self, line: int, record: Record) -> Iterator[str]:
        kind, item = _payload(record)
        if kind == "compacted":
            yield item.text("message")
            history = item.get("replacement_history")
            for one in history if isinstance(history, list) else ():
                yield from Record.of(one).contents()
        elif kind == "response_item":
            yield from item.contents()
            for key in ("arguments", "input"):
                yield item.text(key)
            if "output" in item:
                yield _result(item["output"])[0]

    tells_outputs = True

    def outputs(self, record: Record) -> Iterator[str]:
        kind, item = _payload(record)
        inner, key = item.text("type"), item.text("call_id")
        if kind != "response_item":
            return
        if inner in _CALLS and turns.is_ours(item.text("name"), None, item.text("namespace")):
            self._our_calls.add(key)
        elif inner.endswith("_output") and key not in self._our_calls:
            yield _result(item.get("output"))[0]


def _payload(record: Record) -> tuple[str, Record]:
    """The kind of a record and its payload. A bare item is a response item, a bare header a session's."""
    kind = record.text("type")
    if kind in ENVELOPES:
        return kind, record.part("payload") or (record if kind == "compacted" else Record())
    if not kind and "id" in record and "timestamp" in record:
        return "session_meta", record
    return "response_item", record


def _result(output: object) -> tuple[str, bool]:
    """A result's text, and whether the call failed: by its metadata, or by the exit code at its beginning."""
    value = turns.decode(output)
    if isinstance(value, dict):
        value = Record.of(value)
        code = value.part("metadata").get("exit_code")
        text = value.text("output") or value.text("content")
        return text, (isinstance(code, int) and code != 0) or value.get("success") is False
    text = "\n".join(turns.texts(value))
    return text, bool(_FAILED.search(text[:300]))


# -- settings ----------------------------------------------------------------------------------------------
# Codex: hooks.json in Claude Code's form, and the MCP server in config.toml. Tested with 0.169.0.


CODEX_TIMEOUTS = {"SessionStart": 10, "UserPromptSubmit": 10, "Stop": 10, "PreCompact": 30, "SessionEnd": 3}
"""{event: timeout in seconds}. Codex allows at most 3 s at the end of a session."""


def codex_target(home: str, command: Sequence[str]) -> settings.ClientTarget:
    """Codex's user settings; `home` is ~/.codex."""
    server = {**settings.command_entry(command, "mcp"), "startup_timeout_sec": 20}
    pieces = (
        settings.hooks_piece(f"{home}/hooks.json", settings.shell_hooks(command, "codex", CODEX_TIMEOUTS)),
        settings.toml_server(f"{home}/config.toml", server),
    )
    notes = ("Codex runs hooks only after you trust them: start codex, type /hooks, and trust the five",)
    return settings.ClientTarget("codex", pieces, notes)


HOMES = (("CODEX_HOME", "~/.codex"),)
CLIENT = settings.Client(
    "hooks and the MCP server of Codex", settings.home_target(HOMES, codex_target), HOMES,
    ("sessions/**/rollout-*.jsonl", "archived_sessions/rollout-*.jsonl"), (Codex,),
    printed=lambda ours: settings.toml_server("~/.codex/config.toml", settings.command_entry(ours, "mcp")),
)  # fmt: skip
