"""Puts a streamed answer together, event by event, and knows whether it is whole.

The SDK's own accumulator takes a stream that ends early for a short answer, and half a tool input for a
whole one. Saving half of what a model meant to say would be a false memory; so the events are read here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ua_memory import tokens

from .model import Reply, Stop, ToolCall, Usage

_STOPS: Mapping[str, Stop] = {
    "end_turn": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "stop_sequence": "stop_sequence",
    "pause_turn": "pause_turn",
    "model_context_window_exceeded": "window",
}


class Garbled(Exception):
    """The events make no message."""


class ErrorEvent(Exception):
    """The endpoint ended its stream with an error. `kind` is the API's type, such as overloaded_error."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def events(chunks: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The JSON objects of a stream of server-sent events, pings included. Garbled for what is none.

    Lines end at LF alone (or CR LF): U+2028 and its like stand inside JSON strings.
    """
    data: list[bytes] = []
    for line in _lines(chunks):
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
        elif not line and data:
            try:
                event = json.loads(b"\n".join(data))
            except (ValueError, RecursionError) as error:
                raise Garbled("an event is no JSON") from error
            data = []
            if isinstance(event, dict):
                yield event


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line.rstrip(b"\r") for line in whole)


class Answer:
    """An answer on its way in. `begun` once the endpoint has said what the prompt cost."""

    def __init__(self) -> None:
        self.begun = self.whole = False
        self.model = self.request_id = ""
        self.refusal: str | None = None
        self._stop: str | None = None
        self._usage: dict[str, int] = {}
        self._counted = False
        self._blocks: dict[int, dict[str, Any]] = {}
        self._parts: dict[tuple[int, str], list[str]] = {}

    def take(self, event: Mapping[str, Any]) -> None:
        """Add one event. Raises ErrorEvent or Garbled."""
        try:
            self._take(event)
        except (KeyError, TypeError, AttributeError) as error:
            raise Garbled(f"an event of type {event.get('type')!r} makes no sense") from error

    def _take(self, event: Mapping[str, Any]) -> None:
        kind = event["type"]
        if kind == "message_start":
            self.begun = True
            self.model = str(event["message"].get("model") or "")
            self._note(event["message"].get("usage"))
        elif kind == "content_block_start":
            self._blocks[event["index"]] = dict(event["content_block"])
        elif kind == "content_block_delta":
            self._delta(event["index"], event["delta"])
        elif kind == "message_delta":
            self._stop = event["delta"].get("stop_reason") or self._stop
            if self._stop == "refusal":
                details = event["delta"].get("stop_details") or {}
                self.refusal = str(details.get("explanation") or details.get("category") or "")
            self._counted = self._note(event.get("usage"))
        elif kind == "message_stop":
            self.whole = self.begun
        elif kind == "error":
            told = event.get("error") or {}
            raise ErrorEvent(str(told.get("type") or "api_error"), str(told.get("message") or ""))

    def _note(self, usage: Mapping[str, Any] | None) -> bool:
        """Counts are totals so far: later ones replace earlier ones, and absent ones leave them."""
        found = {key: value for key, value in (usage or {}).items() if isinstance(value, int)}
        self._usage.update(found)
        return "output_tokens" in found

    def _delta(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self._blocks[index]
        for key in ("text", "thinking", "signature", "partial_json"):
            if isinstance(delta.get(key), str):
                name = "input" if key == "partial_json" else key
                if block["type"] == "tool_use" or name in block or name == "signature":
                    self._parts.setdefault((index, name), []).append(delta[key])

    @property
    def usage(self) -> Usage:
        """What the endpoint has reported; of an answer that was cut, the output is counted here."""
        told = self._usage.get
        output = told("output_tokens", 0)
        if not self._counted:
            output = max(output, tokens.count("".join("".join(each) for each in self._parts.values())))
        read, written = told("cache_read_input_tokens", 0), told("cache_creation_input_tokens", 0)
        return Usage(told("input_tokens", 0), output, read, written)

    def reply(self) -> Reply:
        """The whole answer. A call that the end of the answer cut off is left out of it."""
        blocks, calls = [], []
        last = max(self._blocks, default=0)
        for index in sorted(self._blocks):
            block = self._joined(index)
            if block["type"] == "tool_use":
                if index == last and self._stop in ("max_tokens", "model_context_window_exceeded"):
                    continue
                given = self._input(index, block)
                block["input"] = given or {}
                calls.append(ToolCall(str(block.get("id", "")), str(block.get("name", "")), given))
            if block["type"] != "text" or str(block.get("text", "")).strip():
                blocks.append(block)  # the API does not take an empty text back
        text = "\n\n".join(block["text"] for block in blocks if block["type"] == "text")
        stop = _STOPS.get(self._stop or "", "unknown")
        return Reply(text, tuple(calls), stop, self.usage, tuple(blocks), self.model, self.request_id)

    def _joined(self, index: int) -> dict[str, Any]:
        block = dict(self._blocks[index])
        for name in ("text", "thinking", "signature"):
            if parts := self._parts.get((index, name)):
                block[name] = str(block.get(name) or "") + "".join(parts)
        return block

    def _input(self, index: int, block: Mapping[str, Any]) -> dict[str, Any] | None:
        """A call's input, read strictly; None where it is no JSON object."""
        text = "".join(self._parts.get((index, "input"), ()))
        try:
            given = json.loads(text) if text.strip() else block.get("input", {})
        except (ValueError, RecursionError):
            return None
        return given if isinstance(given, dict) else None
