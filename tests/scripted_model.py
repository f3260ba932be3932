"""A model that says what a test wrote down, in this process, and the turns it is given to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from ua_memory.clients.turns import Session, Turn
from ua_memory.errors import ModelUnavailable
from ua_memory.llm.model import Message, Reply, ToolCall
from ua_memory.llm.model import TokenUsage as Usage

Call = tuple[str, Any]
Answer = str | Exception | Sequence[Call]
SAID = datetime(2026, 11, 20, 14, 30, tzinfo=UTC)
DONE = "done"


class Scripted:
    """Answers in turn, the last one for ever: text, calls as (tool, input), or an error to raise.

    `stop` is the reason why an answer of words ended.
    `asked` are the messages of each request; `told` what the tools answered, in order.
    """

    name = "scripted"
    one_shot = False

    def __init__(
        self, *answers: Answer, on_ask: Callable[[], None] | None = None, stop: str = "end_turn"
    ) -> None:
        self.answers, self.on_ask, self.stop = list(answers) or [DONE], on_ask, stop
        self.asked: list[list[Message]] = []
        self.tools: list[Sequence[Mapping[str, Any]]] = []

    def ask(
        self,
        system: str,
        messages: Sequence[Message],
        *,
        purpose: str,
        max_tokens: int = 16_000,
        tools: Sequence[Mapping[str, Any]] = (),
        cacheable: bool = False,
    ) -> Reply:
        self.asked.append(list(messages))
        self.tools.append(tools)
        if self.on_ask:
            self.on_ask()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        usage = Usage(input=100, output=10)
        if isinstance(answer, str):
            return Reply(answer, (), self.stop, usage, ({"type": "text", "text": answer},))
        number = len(self.asked)
        calls = tuple(ToolCall(f"call_{number}_{n}", name, given) for n, (name, given) in enumerate(answer))
        blocks = [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.input or {}} for c in calls]
        return Reply("", calls, "tool_use", usage, tuple(blocks))

    @property
    def told(self) -> list[str]:
        """What the tools answered, in order."""
        found = []
        for message in self.asked[-1]:
            blocks = message["content"] if message["role"] == "user" else []
            found += [block["content"] for block in blocks if block["type"] == "tool_result"]
        return found


def keep(content: str, quote: str | None = None, turn: int = 1, **more: Any) -> Call:
    """A call that inserts a statement; its quote is itself unless one is given."""
    return "archival_memory_insert", {
        "content": content,
        "tags": [],
        "quote": quote or content,
        "turn": turn,
        **more,
    }


def offline() -> ModelUnavailable:
    return ModelUnavailable("the model's endpoint cannot be reached", hint="try again later")


def turns(*said: str, start: datetime | None = SAID, first: int = 1) -> list[Turn]:
    """Turns a minute apart: `p: …` is the person's, `t: …` a tool's, everything else the assistant's."""
    made = []
    for n, text in enumerate(said):
        role, _, words = text.partition(": ") if text[:3] in ("p: ", "a: ", "t: ") else ("a", "", text)
        at = start + timedelta(minutes=n) if start else None
        name = {"p": "person", "a": "assistant", "t": "tool"}[role]
        made.append(Turn(f"e{first + n}", name, words or text, at))  # type: ignore[arg-type]
    return made


def session(name: str = "5f0c7f0e-8a53-4c7b-9f61-0d4f8a6b2c11", client: str = "claude-code") -> Session:
    return Session(client, name)
