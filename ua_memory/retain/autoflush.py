"""`AutoFlush`: watches a program's own list of messages, flushes it when it is full, and resets it.

autoflush = AutoFlush(memory, model)
while True:
    reply = client.messages.create(messages=messages, …)
    messages = autoflush.step([*messages, …], reply.usage)
"""

from __future__ import annotations

import io
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ua_memory.errors import UaMemoryError
from ua_memory.retain import handover
from ua_memory.retain.handover import Message
from ua_memory.retain.intake import due
from ua_memory.retain.through import chained
from ua_memory.transcripts import read
from ua_memory.transcripts.turns import Session, Turn

if TYPE_CHECKING:
    from ua_memory.llm import Endpoint, Model
    from ua_memory.retain.flushes import Flushes
    from ua_memory.retain.keeping import Flushed

_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class AutoFlush:
    """One conversation of a program. `memory` is a `Memory`.

    `threshold` and `window` are tokens (else the bank's settings), `keep` how many tokens of the last
    messages stay after a reset. Unless `enabled`, by the bank's settings too, nothing is flushed or reset.
    After each flush `flushed` says what was kept, and `error` why nothing was: the turns wait in the bank's
    queue then, and the context is reset all the same.
    """

    def __init__(
        self, memory: Flushes, model: Endpoint | Model | None = None, *, threshold: int | None = None,
        window: int | None = None, keep: int = 20_000, client: str = "python", session: str = "",
        enabled: bool = True,
    ) -> None:  # fmt: skip
        config = memory.config
        self.memory, self.model = memory, model
        self.threshold = min(threshold or config.truncation_threshold, window or config.context_window)
        self.enabled = enabled and config.enabled
        self.keep = min(keep, self.threshold // 2)
        self.session = Session(client, session or uuid.uuid4().hex)
        self.flushed: Flushed | None = None
        self.error: UaMemoryError | None = None
        self._read = 0
        self._last = ""
        """What the last message that was read is told by."""
        self._size: int | None = None

    def step(self, messages: Sequence[Message], usage: Any = None) -> Sequence[Message]:
        """The messages to go on with: the same below the threshold, a new and shorter list above it.

        `usage` is the last reply's (an object or mapping of the Anthropic API, or a number of tokens);
        without it tokens are counted. Raises CannotWrite if the turns could not even be made to wait.
        """
        self._recognise(messages)
        size = _size(usage) or handover.size_of(messages)
        if not due(size, self._size, self.threshold).fires:
            return messages
        return self.flush(messages, size)

    def flush(self, messages: Sequence[Message], size: int | None = None) -> Sequence[Message]:
        """Flush what is new in these messages, whatever their size, and return the reset context."""
        if not self.enabled:
            return messages
        self._recognise(messages)
        turns = self._turns(messages)
        fresh = [turn for turn in turns if turn.line > self._read]
        self.flushed = self.error = None
        if fresh:
            try:
                self.flushed = self.memory.flush_turns(self.session, fresh, size=size, model=self.model)
            except UaMemoryError as error:
                if not any(each.session == self.session for each in self.memory.waiting()):
                    raise
                self.error = error
        start = handover.cut(messages, self.keep)
        if start == 0:
            self._reach(messages, size)
            return messages
        saved = [fact.text for fact in self.flushed.facts] if self.flushed else []
        asked = _asked(messages, turns, start)
        head = handover.written(self.memory.core_blocks(), fresh, saved, asked)
        reset = handover.context(head, messages[start:])
        self._reach(reset, None)
        return reset

    def _recognise(self, messages: Sequence[Message]) -> None:
        """Begin anew where what was read is not how these messages begin: a program went back, or took up
        another conversation."""
        if self._read and (
            len(messages) < self._read or handover.fingerprint(messages[self._read - 1]) != self._last
        ):
            self._reach((), None)

    def _reach(self, messages: Sequence[Message], size: int | None) -> None:
        """All of these messages have been read."""
        self._read, self._size = len(messages), size
        self._last = handover.fingerprint(messages[-1]) if messages else ""

    def _turns(self, messages: Sequence[Message]) -> list[Turn]:
        """All turns of these messages, by ids that no reset and no other run of the program repeats."""
        data = json.dumps(list(messages), default=handover.plain, ensure_ascii=False)
        now = self.memory.store.now()
        turns = chained(read(io.BytesIO(data.encode("utf-8", "replace")), client="messages"))
        return [replace(turn, at=turn.at or now) for turn in turns]


def _asked(messages: Sequence[Message], turns: Sequence[Turn], start: int) -> str:
    """What a person asked last, however long ago, where the messages from `start` on do not say it."""
    last = next((turn for turn in reversed(turns) if turn.role == "person"), None)
    if last is None:
        return handover.carried(messages)
    return last.text if last.line <= start else ""


def _size(usage: Any) -> int:
    if usage is None or isinstance(usage, int):
        return usage or 0
    told = usage if isinstance(usage, Mapping) else {name: getattr(usage, name, None) for name in _COUNTS}
    return sum(int(told.get(name) or 0) for name in _COUNTS)
