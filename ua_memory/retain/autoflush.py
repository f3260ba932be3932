"""`AutoFlush`: flushes a program's own list of messages when it is full, and returns a shorter one."""

from __future__ import annotations

import hashlib
import io
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from ua_memory.errors import UaMemoryError
from ua_memory.knowledge import tombstones
from ua_memory.records import CoreBlock
from ua_memory.retain.extract import extract
from ua_memory.retain.flush import FlushedSession, flush_due
from ua_memory.retain.ledger import with_chained_ids
from ua_memory.retain.subagent import one_line
from ua_memory.text import tokens
from ua_memory.text.noise import HAND_OVER, RECALL_CLOSE, SAVED, fenced
from ua_memory.transcripts.reader import read
from ua_memory.transcripts.turns import Session, Turn

if TYPE_CHECKING:
    from ua_memory.knowledge.core import CoreMemory
    from ua_memory.llm.model import Endpoint, Model
    from ua_memory.retain.conversations import Conversations, WaitQueue
    from ua_memory.store.store import Store


# -- handover ----------------------------------------------------------------------------------------------
# The context after a reset: core memory, what was going on, and the last messages that fit, whole.
#
# Messages are those of the Anthropic API: `{"role", "content"}` with a text or blocks. What is written here
# stands between the marks of recalled memory, so that no later flush learns it again.


Message = Mapping[str, Any]
_ASKED = "What you were asked last:\n"
_LONGEST = 1_500
"""Characters of the last request that are handed over."""
_OPEN, _DECIDED = "Said to be left open", "Decided"
_NEW, _EARLIER = f"{SAVED}from it", f"{SAVED}earlier from this conversation"
_LINES = {_OPEN: 5, _DECIDED: 5, _NEW: 12, _EARLIER: 40}
"""The parts of a hand-over in the order in which they get room, and how many lines each has at most."""
_MOST = 200
"""Lines that are carried on of each part."""
_ROOM = 0.25
"""The share of the threshold that these parts may fill; each has one line in any case."""


def count_message_tokens(messages: Iterable[Message]) -> int:
    """Tokens of messages, counted with tiktoken."""
    return sum(tokens.count(_text(message.get("content") or "")) + 4 for message in messages)


def cut(messages: Sequence[Message], budget: int) -> int:
    """Index of the first message to keep: all from it on fit the budget, and no tool result lacks its
    call. The last exchange is always kept."""
    begins = [n for n, message in enumerate(messages) if _may_begin(message)]
    left = budget
    best = begins[-1] if begins else 0
    for n in range(len(messages) - 1, -1, -1):
        left -= count_message_tokens([messages[n]])
        if left < 0:
            break
        if n in begins:
            best = min(best, n)
    return best


def context(head: str, tail: Sequence[Message]) -> list[dict[str, Any]]:
    """The summary and the kept messages as one valid conversation: a person first, then in turn."""
    opening = {"type": "text", "text": head}
    if tail and tail[0].get("role") == "user":
        first = {"role": "user", "content": [opening, *blocks(tail[0])]}
        return [first, *map(dict, tail[1:])]
    return [{"role": "user", "content": [opening]}, *map(dict, tail)]


def summary_block(
    core: Sequence[CoreBlock], lines: Mapping[str, Sequence[str]], told: str, asked: str, room: int = 1_000
) -> str:
    """What the agent needs to go on, as a block of recalled memory. `told` says what became of the messages
    that are gone, `lines` are those of each part, newest last, within `room` tokens. What was `asked` stands
    last: where it is given, `carried_request` finds it there again."""
    parts = [f"The conversation before this point was left out. {told}".strip()]
    if core:
        parts.append("Core memory:\n\n" + "\n\n".join(f"## {block.name}\n{block.value}" for block in core))
    seen: set[str] = set()
    for name, most in _LINES.items():
        kept: list[str] = []
        for line in reversed(lines.get(name, ())):
            size = tokens.count(line) + 2
            if line in seen or len(kept) == most or (kept and size > room):
                continue
            kept.insert(0, f"- {line}")
            seen.add(line)
            room -= size
        parts += ["\n".join([f"{name}:", *kept])] if kept else []
    if asked:
        more = " …" if len(asked) > _LONGEST else ""
        parts.append(f"{_ASKED}{asked[:_LONGEST]}{more}")
    return fenced(HAND_OVER, "\n\n".join(parts))


def carried_request(messages: Sequence[Message]) -> str:
    """The request that an earlier hand-over in these messages carries, or ""."""
    return _carried(messages).partition(f"\n\n{_ASKED}")[2].strip()


def carried_lines(messages: Sequence[Message]) -> dict[str, list[str]]:
    """The lines of each part of an earlier hand-over in these messages."""
    found: dict[str, list[str]] = {}
    for part in _carried(messages).partition(f"\n\n{_ASKED}")[0].split("\n\n"):
        name, *rows = part.split("\n")
        if name.removesuffix(":") in _LINES and all(row.startswith("- ") for row in rows):
            found[name.removesuffix(":")] = [row.removeprefix("- ") for row in rows]
    return found


def _carried(messages: Sequence[Message]) -> str:
    """The hand-over that these messages begin with, or ""."""
    for message in messages[:1]:
        for block in blocks(message):
            text = str(_field(block, "text") or "")
            if text.startswith(fenced(HAND_OVER, "").partition("\n")[0]):
                return text.removesuffix(RECALL_CLOSE)
    return ""


def fingerprint(message: Message) -> str:
    """A hash of a message that ignores cache marks which a program adds to its blocks."""
    parts = [str(message.get("role"))]
    for block in blocks(message):
        parts += [_text(_field(block, key) or "") for key in ("type", "text", "id", "tool_use_id")]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def blocks(message: Message) -> list[Any]:
    """A message's content as blocks."""
    content = message.get("content") or ""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _may_begin(message: Message) -> bool:
    results = (block for block in blocks(message) if _field(block, "type") == "tool_result")
    return message.get("role") == "assistant" or not any(results)


def _field(block: Any, key: str) -> Any:
    return block.get(key) if isinstance(block, Mapping) else getattr(block, key, None)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, default=plain, ensure_ascii=False)


def plain(value: Any) -> Any:
    """A block of an SDK as plain JSON."""
    dump = getattr(value, "model_dump", None)
    return dump(exclude_none=True) if dump else str(value)


# -- autoflush ---------------------------------------------------------------------------------------------
# `AutoFlush`: watches a program's own list of messages, flushes it when it is full, and resets it.
#
# autoflush = AutoFlush(memory, model)
# while True:
#     reply = client.messages.create(messages=messages, …)
#     messages = autoflush.step([*messages, …], reply.usage)


_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class FlushTarget(Protocol):
    """What `AutoFlush` uses of a `Memory`."""

    store: Store

    @property
    def conversations(self) -> Conversations: ...
    @property
    def queue(self) -> WaitQueue: ...
    @property
    def core(self) -> CoreMemory: ...


class AutoFlush:
    """One conversation of a program. `memory` is a `Memory`.

    `threshold` and `window` are tokens (else the bank's settings), `keep` how many tokens of the last
    messages stay after a reset. Unless `enabled`, by the bank's settings too, nothing is flushed or reset.
    After each flush `flushed` says what was kept, and `error` why nothing was: the turns wait in the bank's
    queue then, and the context is reset all the same.
    """

    def __init__(
        self, memory: FlushTarget, model: Endpoint | Model | None = None, *, threshold: int | None = None,
        window: int | None = None, keep: int = 20_000, client: str = "python", session: str = "",
        enabled: bool = True,
    ) -> None:  # fmt: skip
        config = memory.store.config
        self.memory, self.model = memory, model
        self.threshold = min(threshold or config.truncation_threshold, window or config.context_window)
        self.enabled = enabled and config.enabled
        self.keep = min(keep, self.threshold // 2)
        self.session = Session(client, session or uuid.uuid4().hex)
        self.flushed: FlushedSession | None = None
        self.error: UaMemoryError | None = None
        self._read = 0
        self._last = ""
        """What the last message that was read is told by."""
        self._size: int | None = None
        self._lines: dict[str, list[str]] = {}
        """What the next hand-over has of the parts that conversations fill bit by bit."""

    def step(self, messages: Sequence[Message], usage: Any = None) -> Sequence[Message]:
        """The messages to go on with: the same below the threshold, a new and shorter list above it.

        `usage` is the last reply's (an object or mapping of the Anthropic API, or a number of tokens);
        without it tokens are counted. Raises CannotWrite if the turns could not even be made to wait.
        """
        self._recognise(messages)
        size = _size(usage) or count_message_tokens(messages)
        if not flush_due(size, self._size, self.threshold).is_due:
            return messages
        return self.flush(messages, size)

    def flush(self, messages: Sequence[Message], size: int | None = None) -> Sequence[Message]:
        """Flush what is new in these messages, whatever their size, and return the reset context."""
        if not self.enabled:
            return messages
        self._recognise(messages)
        turns, recalled = self._turns(messages)
        fresh = [turn for turn in turns if turn.line > self._read]
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
        self._gather(messages, fresh)
        start = cut(messages, self.keep)
        if start == 0:
            self._reach(messages, size)
            return messages
        asked, room = _asked(messages, turns, start), int(self.threshold * _ROOM)
        head = summary_block(self.memory.core.list(), self._lines, self._told(), asked, room)
        self._lines[_EARLIER] = [*self._lines.get(_EARLIER, ()), *self._lines.pop(_NEW, ())]
        reset = context(head, messages[start:])
        self._reach(reset, None)
        return reset

    def _gather(self, messages: Sequence[Message], fresh: Sequence[Turn]) -> None:
        """Add what a flush saved, and what was decided and left open, to what earlier ones brought."""
        for name, rows in () if self._lines else carried_lines(messages).items():
            self._lines.setdefault(_EARLIER if name == _NEW else name, []).extend(rows)
        done, said = self.flushed, extract(fresh)
        new = {
            _OPEN: [each.text for each in said if "open end" in each.reason],
            _DECIDED: [each.text for each in said if "decision" in each.reason],
            _NEW: [fact.text for fact in (*done.facts, *done.seen_again)] if done else [],
        }
        forgotten = tombstones.read(self.memory.store)
        for name in _LINES:
            every = [*self._lines.get(name, ()), *map(one_line, new.get(name, ()))]
            self._lines[name] = [row for row in dict.fromkeys(every) if not forgotten.has(row)][-_MOST:]

    def _told(self) -> str:
        """What became of what is left out, as it is: saved, waiting, or only its words."""
        if self.error:
            return f"It is not saved yet ({self.error.what})."
        if self._lines[_NEW]:
            return "What was saved of it is below, the newest as far as there is room."
        if self.memory.store.config.sessions_keep:
            return "No fact of it was saved; a search of memory finds its words."
        return "Nothing of it was saved."

    def _recognise(self, messages: Sequence[Message]) -> None:
        """Begin anew where what was read is not how these messages begin: a program went back, or took up
        another conversation."""
        if self._read and (len(messages) < self._read or fingerprint(messages[self._read - 1]) != self._last):
            self._reach((), None)
            self._lines.clear()

    def _reach(self, messages: Sequence[Message], size: int | None) -> None:
        """All of these messages have been read."""
        self._read, self._size = len(messages), size
        self._last = fingerprint(messages[-1]) if messages else ""

    def _turns(self, messages: Sequence[Message]) -> tuple[list[Turn], tuple[str, ...]]:
        """All turns of these messages, by ids that no reset and no other run of the program repeats, and what
        memory gave."""
        data = json.dumps(list(messages), default=plain, ensure_ascii=False)
        now = self.memory.store.now()
        reading = read(io.BytesIO(data.encode("utf-8", "replace")), client="messages")
        return [replace(turn, at=turn.at or now) for turn in with_chained_ids(reading)], reading.recalled


def _asked(messages: Sequence[Message], turns: Sequence[Turn], start: int) -> str:
    """What a person asked last, however long ago, where the messages from `start` on do not say it."""
    last = next((turn for turn in reversed(turns) if turn.role == "person"), None)
    if last is None:
        return carried_request(messages)
    return last.text if last.line <= start else ""


def _size(usage: Any) -> int:
    if usage is None or isinstance(usage, int):
        return usage or 0
    told = usage if isinstance(usage, Mapping) else {name: getattr(usage, name, None) for name in _COUNTS}
    return sum(int(told.get(name) or 0) for name in _COUNTS)
