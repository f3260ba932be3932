"""A bounded conversation with tools, and the check of what a model gives against a JSON schema."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

from ua_memory.errors import ModelMisbehaved
from ua_memory.llm.model import Message, Model, Reply, TokenUsage, ToolCall, user
from ua_memory.text.patterns import data_text

# -- JSON schemas ------------------------------------------------------------------------------------------
# The schemas of our tools (`data/schemas.json`), and the home of jsonschema: whether a tool's input, or a
# structured answer, fits its schema.


def schema(name: str) -> Mapping[str, Any]:
    """What a tool of a model takes."""
    return _schemas()[name]


@cache
def _schemas() -> Mapping[str, Mapping[str, Any]]:
    return json.loads(data_text("schemas.json"))  # type: ignore[no-any-return]


LISTED = 10
"""Errors that are told at once."""


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy in which an object takes only the keys it names: what a model makes up has no place."""
    found = copy.deepcopy(dict(schema))
    for inner in _parts(found):
        if "properties" in inner or inner.get("type") == "object":
            inner.setdefault("additionalProperties", False)
    return found


def check_schema(schema: Mapping[str, Any]) -> None:
    """ValueError for what is not a JSON schema, or refers to something outside itself: nothing is fetched."""
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"not a JSON schema: {error}") from error
    _check_schema(text)


@lru_cache(maxsize=64)
def _check_schema(text: str) -> None:
    """The same for a schema as JSON. It takes some milliseconds, and most tools are made again and again."""
    import jsonschema

    schema = json.loads(text)
    away = [ref for ref in references(schema) if not ref.startswith("#")]
    if away:
        raise ValueError(f"the schema refers to {away[0]}; nothing is fetched")
    validator = _validator(schema)
    try:
        validator.check_schema(schema)
        [*validator.iter_errors(None)]
    except jsonschema.SchemaError as error:
        raise ValueError(f"not a JSON schema: {_text(error)}") from error
    except Exception as error:  # a reference to a part that is not there, by a class of another package
        raise ValueError(f"the schema cannot be used: {str(error)[:200]}") from error


def schema_errors(value: Any, schema: Mapping[str, Any]) -> list[str]:
    """What does not fit, each with its path, so that a model can correct it; [] if all does. At most ten."""
    return sorted(map(_text, _validator(schema).iter_errors(value)))[:LISTED]


def references(value: Any) -> Iterator[str]:
    """Everything that a schema refers to."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key in ("$ref", "$dynamicRef") and isinstance(inner, str):
                yield inner
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and the schemas of its properties and items."""
    if isinstance(schema, dict):
        yield schema
        for inner in (*schema.get("properties", {}).values(), schema.get("items")):
            yield from _parts(inner)


def _validator(schema: Mapping[str, Any]) -> Any:
    import jsonschema
    from referencing import Registry

    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return _strict(kind)(schema, registry=Registry())


@lru_cache(maxsize=8)
def _strict(kind: Any) -> Any:
    """The validator's class that takes no 1.0 for an integer: JSON has none of its own, but Python code that
    counts with it needs an int. It takes five milliseconds to make, and each call of a tool is checked."""
    import jsonschema

    types = kind.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    return jsonschema.validators.extend(kind, type_checker=types)


def _text(error: Any) -> str:
    path, said = ".".join(map(str, error.absolute_path)), error.message
    said = said if len(said) <= 200 else f"{said[:80]}…{said[-120:]}"  # the value first, what is wrong last
    return f"{path}: {said}" if path else said


# -- loop --------------------------------------------------------------------------------------------------
# A bounded conversation with tools: the model calls, we check and do, until it is done or at an end.
#
# Nothing a model says widens what it may do: only the tools given exist, only inputs that fit their schema
# reach them, and the number of turns, calls and faults is bounded. Money and tokens are bounded by the
# model's meter, whose errors, like all of a model's, pass through and end the loop.


Ended = Literal["done", "turns", "calls", "nonsense", "cut", "window"]
_SAID: Mapping[Ended, str] = {
    "turns": "did not finish within {turns} turns",
    "calls": "made more than {calls} calls",
    "nonsense": "kept making invalid or repeated calls",
    "cut": "was cut off at the longest answer allowed",
    "window": "filled its context window",
}

SAY_DONE = "answer with the one word: done"
"""What a reminder says where a model may have nothing to call."""
_TOO_MANY = ("not done: too many calls in one message", False)


class ToolError(Exception):
    """A tool's answer to a call it will not do; the model reads the text and may do better."""


@dataclass(frozen=True, slots=True)
class Tool:
    """`call` gets an input that fits `schema` and returns what the model reads; ToolError is told to
    the model, any other error ends the loop. With `ends`, a call that was done ends it well."""

    description: str
    schema: Mapping[str, Any]
    call: Callable[[Mapping[str, Any]], str]
    ends: bool = False

    def __post_init__(self) -> None:
        check_schema(self.schema)
        if self.schema.get("type") != "object":
            raise ValueError("a tool's input is an object")


@dataclass(frozen=True, slots=True)
class Bounds:
    """At most so many turns, calls in all and in one message, and messages in a row with no good call."""

    turns: int = 24
    calls: int = 400
    at_once: int = 64
    faults: int = 3


def run_tools(
    model: Model,
    system: str,
    messages: Sequence[Message],
    tools: Mapping[str, Tool],
    *,
    purpose: str,
    bounds: Bounds | None = None,
    max_tokens: int = 16_000,
    on_reply: Callable[[Reply], None] | None = None,
    once: bool = False,
    reminder: str = "",
) -> Outcome:
    """Ask until the model calls no more tools, or with `once` until it has called some. `on_reply` gets each
    reply before its calls are carried out. A model that only talks is given the `reminder` and asked once
    more, unless it says `done` and the reminder offers that."""
    outcome = Outcome(tools, bounds or Bounds(), messages)
    offered = [
        {"name": name, "description": tool.description, "input_schema": tool.schema}
        for name, tool in tools.items()
    ]
    while outcome.ended is None:
        reply = model.ask(
            system, outcome.messages, purpose=purpose, max_tokens=max_tokens, tools=offered, goes_on=True
        )
        if on_reply is not None:
            on_reply(reply)
        outcome.take(reply)
        if once and reply.calls:
            outcome.ended = "done"
        if reminder and outcome.talked and not (outcome.says_done and SAY_DONE in reminder):
            outcome = outcome.reminded(reminder)
            reminder = ""
    return outcome


class Outcome:
    """Where a conversation with tools stands, and in the end how it `ended`, what the model said last, and
    what it took. `refused` calls were not done."""

    def __init__(self, tools: Mapping[str, Tool], bounds: Bounds, messages: Sequence[Message]) -> None:
        self.messages = list(messages)
        self.ended: Ended | None = None
        self.text, self.usage = "", TokenUsage()
        self.turns = self.calls = self.refused = 0
        self._tools, self._bounds = tools, bounds
        self._in_vain = 0
        self._before: list[tuple[str, Any]] = []

    @property
    def talked(self) -> bool:
        """Whether the model called nothing. Nobody may take that for "nothing here is worth keeping"."""
        return self.ended == "done" and not self.calls and not self.refused

    @property
    def says_done(self) -> bool:
        """Whether the model's last words are the one that it may say instead of a call."""
        return self.text.strip(" \n.!*\"'").casefold() == "done"

    def reminded(self, reminder: str) -> Outcome:
        """The same conversation with a reminder behind it, and all its bounds anew."""
        again = Outcome(self._tools, self._bounds, [*self.messages, user(reminder)])
        again.usage = self.usage
        return again

    def require_done(self) -> Outcome:
        """Itself if the model came to a good end; else ModelMisbehaved, and nothing is to be kept."""
        if self.ended in (None, "done"):
            return self
        what = _SAID[self.ended].format(turns=self.turns, calls=self.calls)
        raise ModelMisbehaved(
            f"the model {what}; none of it was saved", hint="try again, or another UA_MEMORY_MODEL"
        )

    def take(self, reply: Reply) -> None:
        """Note a reply, do its calls, and see whether that is the end."""
        self.turns += 1
        self.usage += reply.usage
        self.text = reply.text or self.text
        if reply.blocks:
            self.messages.append(reply.message)
        if reply.calls:
            self._answer(reply.calls)
            if self.ended is None and reply.stop == "window":
                self.ended = "window"
        else:
            self.ended = self._without_calls(reply)
        if self.ended is None and self.turns >= self._bounds.turns:
            self.ended = "turns"

    def _without_calls(self, reply: Reply) -> Ended | None:
        if reply.stop == "pause_turn" and reply.blocks:
            return None  # the API asks for the same messages with its own behind them
        if reply.stop in ("end_turn", "stop_sequence"):
            return "done"
        ends: dict[str, Ended] = {"max_tokens": "cut", "window": "window"}
        return ends.get(reply.stop, "nonsense")

    def _answer(self, calls: Sequence[ToolCall]) -> None:
        """Do the calls in their order and answer all of them in one message, as the API wants it."""
        same = [(call.name, call.input) for call in calls]
        good = 0
        results = []
        for number, call in enumerate(calls):
            text, done = self._do(call) if number < self._bounds.at_once else _TOO_MANY
            good += done
            result = {"type": "tool_result", "tool_use_id": call.id, "content": text or "done"}
            results.append(result if done else {**result, "is_error": True})
            if done and self._tools[call.name].ends:
                self.ended = "done"
        self.messages.append({"role": "user", "content": results})
        self.calls += good
        self.refused += len(calls) - good
        # The same message again is as good as no good call: what it asks for has been done.
        self._in_vain = self._in_vain + 1 if not good or same == self._before else 0
        self._before = same
        if self.ended is None and self._in_vain >= self._bounds.faults:
            self.ended = "nonsense"
        if self.ended is None and self.calls >= self._bounds.calls:
            self.ended = "calls"

    def _do(self, call: ToolCall) -> tuple[str, bool]:
        tool = self._tools.get(call.name)
        if tool is None:
            return f"there is no tool {call.name[:80]!r}; there are {', '.join(self._tools)}", False
        if call.input is None:
            return "the input is no JSON object", False
        if wrong := schema_errors(call.input, closed(tool.schema)):
            return "; ".join(wrong), False
        try:
            return tool.call(call.input), True
        except ToolError as error:
            return str(error), False
