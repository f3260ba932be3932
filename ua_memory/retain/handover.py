"""The context after a reset: core memory, what was going on, and the last messages that fit, whole.

Messages are those of the Anthropic API: `{"role", "content"}` with a text or blocks. What is written here
stands between the marks of recalled memory, so that no later flush learns it again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ua_memory import tokens
from ua_memory.fence import RECALL_CLOSE, fenced
from ua_memory.records import CoreBlock
from ua_memory.retain.extract import extract
from ua_memory.transcripts.turns import Turn

Message = Mapping[str, Any]
_ASKED = "What you were asked last:\n"
_LONGEST = 1_500
"""Characters of the last request that are handed over."""
_NAMED = 12
"""So many facts that were just saved are named."""


def size_of(messages: Iterable[Message]) -> int:
    """Tokens of messages, by our own count."""
    return sum(tokens.count(_text(message.get("content") or "")) + 4 for message in messages)


def cut(messages: Sequence[Message], budget: int) -> int:
    """Where the tail begins: the first message from which on all fits the budget, no tool result without its
    call. At least the last exchange is kept, whatever its size."""
    begins = [n for n, message in enumerate(messages) if _may_begin(message)]
    left = budget
    best = begins[-1] if begins else 0
    for n in range(len(messages) - 1, -1, -1):
        left -= size_of([messages[n]])
        if left < 0:
            break
        if n in begins:
            best = min(best, n)
    return best


def context(head: str, tail: Sequence[Message]) -> list[dict[str, Any]]:
    """The hand-over and the tail as one valid conversation: a person first, then in turn."""
    opening = {"type": "text", "text": head}
    if tail and tail[0].get("role") == "user":
        first = {"role": "user", "content": [opening, *blocks(tail[0])]}
        return [first, *map(dict, tail[1:])]
    return [{"role": "user", "content": [opening]}, *map(dict, tail)]


def written(core: Sequence[CoreBlock], turns: Sequence[Turn], saved: Sequence[str], asked: str) -> str:
    """What the agent needs to go on, as a block of recalled memory: last in it, where it is given, what was
    `asked` last, since `carried` finds it there again."""
    parts = ["The conversation before this point was saved to memory and left out."]
    if core:
        parts.append("Core memory:\n\n" + "\n\n".join(f"## {block.name}\n{block.value}" for block in core))
    left = [each.text for each in extract(turns) if "open end" in each.reason][-5:]
    if left:
        parts.append("Left open:\n" + "\n".join(f"- {text}" for text in left))
    if saved:
        parts.append("Just saved:\n" + "\n".join(f"- {text}" for text in saved[-_NAMED:]))
    if asked:
        more = " …" if len(asked) > _LONGEST else ""
        parts.append(f"{_ASKED}{asked[:_LONGEST]}{more}")
    return fenced("hand-over", "\n\n".join(parts))


def carried(messages: Sequence[Message]) -> str:
    """The request that an earlier hand-over in these messages carries, or ""."""
    for message in messages[:1]:
        for block in blocks(message):
            text = str(_field(block, "text") or "")
            if text.startswith(fenced("hand-over", "").partition("\n")[0]):
                return text.removesuffix(RECALL_CLOSE).partition(f"\n\n{_ASKED}")[2].strip()
    return ""


def fingerprint(message: Message) -> str:
    """What tells a message from others, whatever marks for a cache a program puts on its blocks meanwhile."""
    parts = [str(message.get("role"))]
    for block in blocks(message):
        parts += [_text(_field(block, key) or "") for key in ("type", "text", "id", "tool_use_id")]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def blocks(message: Message) -> list[Any]:
    """A message's content as blocks."""
    content = message.get("content") or ""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _may_begin(message: Message) -> bool:
    return message.get("role") == "assistant" or all(
        _kind(block) != "tool_result" for block in blocks(message)
    )


def _kind(block: Any) -> str:
    return str(_field(block, "type") or "")


def _field(block: Any, key: str) -> Any:
    return block.get(key) if isinstance(block, Mapping) else getattr(block, key, None)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, default=plain, ensure_ascii=False)


def plain(value: Any) -> Any:
    """A block of an SDK as JSON has it."""
    dump = getattr(value, "model_dump", None)
    return dump(exclude_none=True) if dump else str(value)
