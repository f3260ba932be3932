"""`AutoFlush`: flushes a program's own list of messages when it is full, and returns a shorter one."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from ua_memory.clients.messages import check_messages, messages_stream, to_json
from ua_memory.clients.transcripts import read
from ua_memory.clients.turns import Session, Turn
from ua_memory.errors import UaMemoryError, at_least, checked
from ua_memory.knowledge import tombstones
from ua_memory.knowledge.facts import unique_tags
from ua_memory.llm.model import Message, blocks, check_model
from ua_memory.records import CoreBlock
from ua_memory.retain.extract import extract
from ua_memory.retain.flush import FlushedSession, flush_due
from ua_memory.retain.ledger import with_chained_ids
from ua_memory.retain.subagent import one_line
from ua_memory.text import tokens
from ua_memory.text.noise import HAND_OVER, RECALL_CLOSE, SAVED, fenced

if TYPE_CHECKING:
    from ua_memory.knowledge.core import CoreMemory
    from ua_memory.llm.model import Endpoint, Model
    from ua_memory.retain.conversations import Conversations, WaitQueue
    from ua_memory.store.store import Store

M = TypeVar("M", bound=Message)
"""The type of a program's messages: a dict, or a TypedDict of its SDK."""


# -- hand-over ---------------------------------------------------------------------------------------------
# The context after a reset: a summary, and the last messages that fit.
#
# Messages are those of the Anthropic API: `{"role", "content"}` with a text or blocks. The summary is marked
# as recalled memory, so that no later flush extracts it again.


_LAST_REQUEST = "What you were asked last:\n"
_LONGEST_REQUEST = 1_500
"""Most characters of the last request in the summary."""
_LEFT_OPEN, _DECIDED = "Said to be left open", "Decided"
_SAVED_NOW, _SAVED_EARLIER = f"{SAVED}from it", f"{SAVED}earlier from this conversation"
_PART_LINES = {_LEFT_OPEN: 5, _DECIDED: 5, _SAVED_NOW: 12, _SAVED_EARLIER: 40}
"""The parts of a summary, most important first, and the most lines of each."""
_MOST_LINES = 200
"""Most lines that are remembered of each part."""
_SUMMARY_SHARE = 0.25
"""The share of the threshold that these parts may fill; each has at least one line."""


def count_message_tokens(messages: Iterable[Message]) -> int:
    """Tokens of messages, counted with tiktoken."""
    return sum(tokens.count(_text(message.get("content") or "")) + 4 for message in messages)


def first_kept(messages: Sequence[Message], budget: int) -> int:
    """Index of the first message to keep. The messages from it on fit the budget, and each tool result has
    its call. The last exchange is always kept."""
    begins = [n for n, message in enumerate(messages) if _may_be_first(message)]
    best, left = begins[-1] if begins else 0, budget
    for n in range(len(messages) - 1, -1, -1):
        left -= count_message_tokens([messages[n]])
        if left < 0:
            break
        best = min(best, n) if n in begins else best
    return best


def with_summary(head: str, tail: Sequence[Message]) -> list[dict[str, Any]]:
    """The summary and the kept messages as one valid conversation, which begins with the user."""
    opening = {"type": "text", "text": head}
    if tail and tail[0].get("role") == "user":
        first = {"role": "user", "content": [opening, *blocks(tail[0])]}
        return [first, *map(dict, tail[1:])]
    return [{"role": "user", "content": [opening]}, *map(dict, tail)]


def summary_block(
    core: Sequence[CoreBlock], lines: Mapping[str, Sequence[str]], saved: str, request: str, room: int = 1_000
) -> str:
    """The summary of the messages that are left out, as a block of recalled memory. `saved` says whether
    they were saved; `lines` has the lines of each part, newest last, of which `room` tokens are used. The
    last `request` comes last, where `carried_request` finds it."""
    parts = [f"The conversation before this point was left out. {saved}".strip()]
    if core:
        parts.append("Core memory:\n\n" + "\n\n".join(f"## {block.name}\n{block.value}" for block in core))
    seen: set[str] = set()
    for name, most in _PART_LINES.items():
        kept: list[str] = []
        for line in reversed(lines.get(name, ())):
            size = tokens.count(line) + 2
            if line in seen or len(kept) == most or (kept and size > room):
                continue
            kept.insert(0, f"- {line}")
            seen.add(line)
            room -= size
        parts += ["\n".join([f"{name}:", *kept])] if kept else []
    if request:
        more = " …" if len(request) > _LONGEST_REQUEST else ""
        parts.append(f"{_LAST_REQUEST}{request[:_LONGEST_REQUEST]}{more}")
    return fenced(HAND_OVER, "\n\n".join(parts))


def carried_request(messages: Sequence[Message]) -> str:
    """The request in the summary that these messages begin with, or ""."""
    return _carried_summary(messages).partition(f"\n\n{_LAST_REQUEST}")[2].strip()


def carried_lines(messages: Sequence[Message]) -> dict[str, list[str]]:
    """The lines of each part of the summary that these messages begin with."""
    found: dict[str, list[str]] = {}
    for part in _carried_summary(messages).partition(f"\n\n{_LAST_REQUEST}")[0].split("\n\n"):
        name, *rows = part.split("\n")
        if name.removesuffix(":") in _PART_LINES and all(row.startswith("- ") for row in rows):
            found[name.removesuffix(":")] = [row.removeprefix("- ") for row in rows]
    return found


def _carried_summary(messages: Sequence[Message]) -> str:
    """The summary that these messages begin with, or ""."""
    for message in messages[:1]:
        for block in blocks(message):
            text = str(_field(block, "text") or "")
            if text.startswith(fenced(HAND_OVER, "").partition("\n")[0]):
                return text.removesuffix(RECALL_CLOSE)
    return ""


def fingerprint(message: Message) -> str:
    """A hash of a message without the cache marks that a program may add to its blocks."""
    parts = [str(message.get("role"))]
    for block in blocks(message):
        parts += [_text(_field(block, key) or "") for key in ("type", "text", "id", "tool_use_id")]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _may_be_first(message: Message) -> bool:
    results = (block for block in blocks(message) if _field(block, "type") == "tool_result")
    return message.get("role") == "assistant" or not any(results)


def _field(block: Any, key: str) -> Any:
    return block.get(key) if isinstance(block, Mapping) else getattr(block, key, None)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, default=to_json, ensure_ascii=False)


# -- autoflush ---------------------------------------------------------------------------------------------
# autoflush = AutoFlush(memory, model)
# while True:
#     reply = client.messages.create(messages=messages, …)
#     messages = autoflush.step([*messages, …], reply.usage)


_USAGE_FIELDS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class FlushTarget(Protocol):
    """What `AutoFlush` uses of a `Memory`."""

    store: Store

    @cached_property  # what a `Memory` has: for pyright a property is something else
    def conversations(self) -> Conversations: ...
    @cached_property
    def queue(self) -> WaitQueue: ...
    @cached_property
    def core(self) -> CoreMemory: ...


@checked
class AutoFlush:
    """Flushes one conversation of a program when its context is full. `memory` is a `Memory`.

    `threshold` and `window` are tokens (else the bank's settings), `keep` how many tokens of the last
    messages stay after a reset; each fact gets the `tags`. Unless `enabled`, by the bank's settings too,
    nothing is flushed or reset.
    After each flush `flushed` has what was saved, or `error` the reason why not: the turns are then queued in
    the bank, and the context is reset all the same.
    """

    def __init__(
        self, memory: FlushTarget, model: Endpoint | Model | None = None, *, threshold: int | None = None,
        window: int | None = None, keep: int = 20_000, client: str = "python", session: str = "",
        tags: Sequence[str] = (), enabled: bool = True,
    ) -> None:  # fmt: skip
        at_least(1, threshold=threshold, window=window)
        at_least(0, keep=keep)
        check_model(model)
        config = memory.store.config
        self.memory, self.model = memory, model
        self.threshold = min(threshold or config.truncation_threshold, window or config.context_window)
        self.enabled = enabled and config.enabled
        self.keep = min(keep, self.threshold // 2)
        self.session = Session(client, session or uuid.uuid4().hex, tags=unique_tags(tags))
        self.flushed: FlushedSession | None = None
        self.error: UaMemoryError | None = None
        self._read_count = 0
        self._fingerprint = ""
        """The fingerprint of the last message that was read."""
        self._size: int | None = None
        self._lines: dict[str, list[str]] = {}
        """The lines of each part of the next summary."""

    def step(self, messages: Sequence[M], usage: Any = None) -> Sequence[M]:
        """The messages to continue with: the same ones below the threshold, a new and shorter list above it.

        `usage` is the last reply's (an object or mapping of the Anthropic API, or a number of tokens);
        without it tokens are counted. Raises CannotWrite if the turns could not be queued.
        """
        self._reset_if_changed(messages)
        size = _usage_tokens(usage) or count_message_tokens(messages)
        if not flush_due(size, self._size, self.threshold).is_due:
            return messages
        return self.flush(messages, size)

    def flush(self, messages: Sequence[M], size: int | None = None) -> Sequence[M]:
        """Flush the new turns of these messages, whatever their size, and return the reset context."""
        if not self.enabled:
            return messages
        self._reset_if_changed(messages)
        turns, recalled = self._turns(messages)
        fresh = [turn for turn in turns if turn.line > self._read_count]
        self.flushed = self.error = None
        if fresh:
            try:
                self.flushed = self.memory.conversations.flush_turns(
                    self.session, fresh, size=size, model=self.model, recalled=recalled
                )
            except UaMemoryError as error:
                if not any(each.session == self.session for each in self.memory.queue.conversations()):
                    raise
                self.error = error
        self._collect_lines(messages, fresh)
        start = first_kept(messages, self.keep)
        if start == 0:
            self._mark_read(messages, size)
            return messages
        request, room = _last_request(messages, turns, start), int(self.threshold * _SUMMARY_SHARE)
        head = summary_block(self.memory.core.list(), self._lines, self._outcome(), request, room)
        self._lines[_SAVED_EARLIER] = [*self._lines.get(_SAVED_EARLIER, ()), *self._lines.pop(_SAVED_NOW, ())]
        reset = with_summary(head, messages[start:])
        self._mark_read(reset, None)
        return cast("Sequence[M]", reset)

    def _collect_lines(self, messages: Sequence[Message], fresh: Sequence[Turn]) -> None:
        """Add what this flush saved, and what was decided or left open, to the lines of the next summary."""
        for name, rows in () if self._lines else carried_lines(messages).items():
            self._lines.setdefault(_SAVED_EARLIER if name == _SAVED_NOW else name, []).extend(rows)
        done, said = self.flushed, extract(fresh)
        new = {
            _LEFT_OPEN: [each.text for each in said if "open end" in each.reason],
            _DECIDED: [each.text for each in said if "decision" in each.reason],
            _SAVED_NOW: [fact.text for fact in (*done.facts, *done.seen_again)] if done else [],
        }
        forgotten = tombstones.read(self.memory.store)
        for name in _PART_LINES:
            every = dict.fromkeys([*self._lines.get(name, ()), *map(one_line, new.get(name, ()))])
            self._lines[name] = [row for row in every if not forgotten.has_text(row)][-_MOST_LINES:]

    def _outcome(self) -> str:
        """Whether the messages that are left out were saved."""
        if self.error:
            return f"It is not saved yet ({self.error.what})."
        if self._lines[_SAVED_NOW]:
            return "What was saved of it is below, the newest as far as there is room."
        if self.memory.store.config.sessions_keep:
            return "No fact of it was saved; a search of memory finds its words."
        return "Nothing of it was saved."

    def _reset_if_changed(self, messages: Sequence[Message]) -> None:
        """Start over if the messages do not continue those that were read: a program went back, or began
        another conversation. Usage for what is no message."""
        check_messages(messages)
        read = self._read_count
        if read and (len(messages) < read or fingerprint(messages[read - 1]) != self._fingerprint):
            self._mark_read((), None)
            self._lines.clear()

    def _mark_read(self, messages: Sequence[Message], size: int | None) -> None:
        """Record that all of these messages have been read."""
        self._read_count, self._size = len(messages), size
        self._fingerprint = fingerprint(messages[-1]) if messages else ""

    def _turns(self, messages: Sequence[Message]) -> tuple[list[Turn], tuple[str, ...]]:
        """All turns of these messages, with ids that no reset or later run repeats, and the recalled lines in
        them."""
        now = self.memory.store.now()
        reading = read(messages_stream(messages), client="messages")
        return [replace(turn, at=turn.at or now) for turn in with_chained_ids(reading)], reading.recalled


def _last_request(messages: Sequence[Message], turns: Sequence[Turn], start: int) -> str:
    """The person's last request, unless the messages from `start` on have it."""
    last = next((turn for turn in reversed(turns) if turn.role == "person"), None)
    if last is None:
        return carried_request(messages)
    return last.text if last.line <= start else ""


def _usage_tokens(usage: Any) -> int:
    if usage is None or isinstance(usage, int):
        return usage or 0
    if not isinstance(usage, Mapping):
        usage = {name: getattr(usage, name, None) for name in _USAGE_FIELDS}
    return sum(int(usage.get(name) or 0) for name in _USAGE_FIELDS)
