"""Codex's rollouts: JSONL in envelopes `{timestamp, type, payload}`, or bare items in its first months.

Read are response items of users and assistants; what Codex itself says in the user's role (environment,
AGENTS.md, aborted turns) is dropped by its tags, and its events repeat what the items say.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ua_memory.text.noise import typed, uttered
from ua_memory.transcripts.format import ContextGauge, EntryIds, Format, filling, joined, texts
from ua_memory.transcripts.turns import (
    Boundary,
    CallResult,
    Event,
    Record,
    committed,
    decoded,
    instant,
    ours,
    table,
    tokens,
    word,
)

_ENVELOPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call", "mcp_tool_call")
_FAILED = re.compile(
    r"^(?:Process exited with code|Exit code:?|Command failed)\s*:?\s*(?!0\b)-?\w+", re.MULTILINE
)


class Codex(Format):
    """`~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`."""

    client = "codex"

    def __init__(self) -> None:
        super().__init__()
        self._gauge = ContextGauge()
        self._model = ""
        self._window: int | None = None
        self._people = array("Q")
        """Lines on which a person's turn begins, as Codex counts them when it rolls turns back."""
        self._dropped: list[tuple[int, int]] = []
        self._compacted: list[Boundary] = []
        self._spoken = 0
        self._our_calls: set[str] = set()

    def name(self, line: int, record: Record) -> str:
        _, item = _opened(record)
        if word(item.get("type")).endswith("_output"):  # it bears its call's id, and is no turn
            return f"L{line}"
        return word(item.get("id")) or word(item.get("call_id")) or f"L{line}"

    def survey(self, line: int, record: Record) -> None:
        kind, item = _opened(record)
        inner = item.get("type")
        if kind == "session_meta":
            self._head(record, item)
        elif kind == "turn_context":
            self._model = word(item.get("model")) or self._model
        elif kind == "compacted":
            self._compacted.append(Boundary(line, line, instant(record.get("timestamp")), "compacted"))
        elif kind == "event_msg" and inner == "token_count":
            info = table(item.get("info"))
            last = table(info.get("last_token_usage"))
            size = tokens(last.get("input_tokens")) + tokens(last.get("output_tokens"))
            self._gauge.reply(line, self._model, tokens(last.get("total_tokens")) or size)
            self._window = tokens(info.get("model_context_window")) or self._window
        elif kind == "event_msg" and inner == "thread_rolled_back":
            self._roll_back(line, tokens(item.get("num_turns")))
        elif kind == "response_item" and inner == "message":
            self._spoken = self._spoken or line
            if item.get("role") == "user" and _said(item):
                self._people.append(line)

    def _head(self, record: Record, item: Record) -> None:
        """The first one counts: a fork copies its parent's header below its own."""
        if self.session.session:
            return
        source = table(item.get("source"))
        agent = "subagent" if "subagent" in source or item.get("source") == "subagent" else ""
        at = item.get("timestamp") or record.get("timestamp")
        self.session = replace(
            self.session,
            session=word(item.get("id")) or word(item.get("session_id")),
            cwd=word(item.get("cwd")),
            started=instant(at),
            parent=word(item.get("forked_from_id")) or word(item.get("parent_thread_id")),
            version=word(item.get("cli_version")),
            agent=word(item.get("agent_nickname")) or agent,
        )

    def _roll_back(self, line: int, turns: int) -> None:
        """A person went back and said something else: the last turns were taken out of the conversation."""
        turns = min(turns, len(self._people))
        if turns:
            self._dropped.append((self._people[-turns], line))
            del self._people[-turns:]

    def close(self, lines: int) -> None:
        super().close(lines)
        for first, last in self._dropped:
            self.keep[first:last] = bytes(last - first)
        standing = [boundary for boundary in self._compacted if self.keep[boundary.line]]
        self.boundary = standing[-1] if standing else None
        self.usage = self._gauge.usage(self.boundary, self._window)
        if not self.usage.model:
            self.usage = replace(self.usage, model=self._model)

    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        for line, record in records:
            kind, item = _opened(record)
            entry = self.entry(line, record, instant(record.get("timestamp")), self.session.agent)
            inner = word(item.get("type"))
            if kind == "compacted":
                text = word(item.get("message")).strip()
                if text and (not self._spoken or self._spoken > line):
                    yield entry.next(role="assistant", text=text, summary=True)
            elif kind == "response_item" and inner == "message":
                yield from self._message(entry, item)
            elif kind == "response_item" and inner in _CALLS:
                yield from self._call(entry, inner, item)
            elif kind == "response_item" and inner.endswith("_output"):
                output, failed = _outcome(item.get("output"))
                yield CallResult(word(item.get("call_id")), failed, committed(output))

    def _message(self, entry: EntryIds, item: Record) -> Iterator[Event]:
        if item.get("role") == "user" and (text := _said(item)):
            yield entry.next(text=text, role="assistant" if self.session.agent else "person")
        elif item.get("role") == "assistant" and (text := joined(texts(item.get("content")), uttered)):
            yield entry.next(role="assistant", text=text)

    def _call(self, entry: EntryIds, inner: str, item: Record) -> Iterator[Event]:
        action = table(item.get("action"))
        name = word(item.get("name")) or {"local_shell_call": "shell", "web_search_call": "web_search"}.get(
            inner, inner
        )
        given: Any = action or decoded(item.get("arguments", item.get("input")))
        key = word(item.get("call_id")) or word(item.get("id"))
        yield from entry.call(key, name, given, self.session.cwd, word(item.get("namespace")))
        if inner == "web_search_call":
            yield CallResult(key, item.get("status") == "failed")

    def contents(self, line: int, record: Record) -> Iterator[str]:
        kind, item = _opened(record)
        if kind == "compacted":
            yield word(item.get("message"))
            history = item.get("replacement_history")
            for one in history if isinstance(history, list) else ():
                yield from filling(table(one).get("content"))
        elif kind == "response_item":
            yield from filling(item.get("content"))
            for key in ("arguments", "input"):
                yield word(item.get(key))
            if "output" in item:
                yield _outcome(item["output"])[0]

    tells_outputs = True

    def outputs(self, record: Record) -> Iterator[str]:
        kind, item = _opened(record)
        inner, key = word(item.get("type")), word(item.get("call_id"))
        if kind != "response_item":
            return
        if inner in _CALLS and ours(word(item.get("name")), None, word(item.get("namespace"))):
            self._our_calls.add(key)
        elif inner.endswith("_output") and key not in self._our_calls:
            yield _outcome(item.get("output"))[0]


def _opened(record: Record) -> tuple[str, Record]:
    """The kind of envelope and what is in it. A bare item is a response item, a bare header a session's."""
    kind = word(record.get("type"))
    if kind in _ENVELOPES:
        return kind, table(record.get("payload")) or (record if kind == "compacted" else {})
    if not kind and "id" in record and "timestamp" in record:
        return "session_meta", record
    return "response_item", record


def _said(item: Record) -> str:
    return joined(texts(item.get("content")), typed)


def _outcome(output: object) -> tuple[str, bool]:
    """A result's text, and whether the call failed: by its metadata, or by the exit code it begins with."""
    value = decoded(output)
    if isinstance(value, dict):
        code = table(value.get("metadata")).get("exit_code")
        text = word(value.get("output")) or word(value.get("content"))
        return text, (isinstance(code, int) and code != 0) or value.get("success") is False
    text = "\n".join(texts(value))
    return text, bool(_FAILED.search(text[:300]))
