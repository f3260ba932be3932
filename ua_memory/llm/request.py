"""The body of a request: every text redacted once more, counted, and marked for the prompt cache.

The cache works on prefixes, in the order tools, system, messages, and finds one again only where a
request ended it with a mark. At most four marks are allowed: behind the system text (which covers the
tools), behind the first message (the transcript), behind the newest message, and again where the request
before had its newest. Without that last one, twenty parallel calls would lie between two marks, and the
server does not look back further than that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ua_memory import tokens
from ua_memory.redaction import NO_PATTERNS, redact

from .model import Block, Message

_MARK = {"cache_control": {"type": "ephemeral"}}
_REMEMBERED = 5_000
# What the API adds around texts, measured by its users: a few tokens a block, some 300–600 for tools.
_FOR_A_BLOCK, _FOR_TOOLS = 8, 600


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent besides the model's name and the length of the answer; `tokens` by our own count."""

    body: dict[str, Any]
    tokens: int


class Words:
    """Redacts and counts texts, each only once: a loop sends the same long transcript every turn."""

    def __init__(self, patterns: Mapping[str, str] = NO_PATTERNS) -> None:
        self._patterns = patterns
        self._known: dict[str, tuple[str, int]] = {}

    def clean(self, text: str) -> str:
        """The text without secrets, and without lone surrogates, which JSON cannot carry."""
        return self._both(text)[0]

    def count(self, text: str) -> int:
        """tokens.count of the clean text."""
        return self._both(text)[1]

    def _both(self, text: str) -> tuple[str, int]:
        if text not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            clean = redact(text.encode("utf-8", "replace").decode(), self._patterns).text
            self._known[text] = clean, tokens.count(clean)
        return self._known[text]


def build(
    words: Words,
    system: str,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    goes_on: bool = False,
) -> Request:
    """The request for these messages. ValueError for a block of a kind that cannot be redacted."""
    marked = _marked(messages) if goes_on else frozenset()
    sent = []
    for number, message in enumerate(messages):
        blocks = [_block(block, words.clean) for block in _blocks(message)]
        if number in marked:
            blocks[-1] = {**blocks[-1], **_MARK}
        sent.append({"role": message["role"], "content": blocks})
    body: dict[str, Any] = {"messages": sent}
    if system:
        body["system"] = [{"type": "text", "text": words.clean(system), **_MARK}]
    if tools:
        body["tools"] = [_described(tool, words.clean) for tool in tools]
    return Request(body, _count(words, system, messages, body.get("tools", [])))


def _marked(messages: Sequence[Message]) -> frozenset[int]:
    said = [number for number, message in enumerate(messages) if message["role"] == "user"]
    return frozenset(said[:1] + said[-2:])


def _blocks(message: Message) -> list[Block]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _block(block: Block, clean: Callable[[str], str]) -> dict[str, Any]:
    """The block with every text of ours cleaned. What the model thought is signed and goes back as it
    came: it was made of cleaned text."""
    kind = block["type"]
    if kind == "text":
        return {**block, "text": clean(block["text"])}
    if kind == "tool_use":
        return {**block, "input": _deep(block["input"], clean)}
    if kind == "tool_result":
        content = block.get("content", "")
        is_text = isinstance(content, str)
        return {
            **block,
            "content": clean(content) if is_text else [_block(each, clean) for each in content],
        }
    if kind in ("thinking", "redacted_thinking"):
        return dict(block)
    raise ValueError(f"a block of type {kind!r} is never sent: nothing can take secrets out of it")


def _deep(value: Any, clean: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list | tuple):
        return [_deep(item, clean) for item in value]
    if isinstance(value, Mapping):
        return {key: _deep(item, clean) for key, item in value.items()}
    return value


def _described(tool: Any, clean: Callable[[str], str]) -> Any:
    """A tool's definition with its descriptions cleaned; names, types and limits are code."""
    if isinstance(tool, Mapping):
        return {
            key: clean(item) if key == "description" and isinstance(item, str) else _described(item, clean)
            for key, item in tool.items()
        }
    return [_described(item, clean) for item in tool] if isinstance(tool, list | tuple) else tool


def _count(words: Words, system: str, messages: Sequence[Message], tools: Sequence[Any]) -> int:
    total = words.count(system) + (_FOR_TOOLS + words.count(json.dumps(tools)) if tools else 0)
    for message in messages:
        for block in _blocks(message):
            total += _FOR_A_BLOCK + sum(words.count(text) for text in _texts(block))
    return total


def _texts(block: Block) -> list[str]:
    kind = block["type"]
    if kind == "tool_use":
        return [json.dumps(block["input"], ensure_ascii=False)]
    if kind == "tool_result":
        content = block.get("content", "")
        return [content] if isinstance(content, str) else [t for each in content for t in _texts(each)]
    return [str(block.get(kind, "")) if kind != "redacted_thinking" else str(block.get("data", ""))]
