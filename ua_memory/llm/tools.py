"""A bounded conversation with tools, and the check of a tool's input against its schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ua_memory.errors import ModelMisbehaved
from ua_memory.llm.model import Message, Model, Reply, TokenUsage, ToolCall

# -- schema ------------------------------------------------------------------------------------------------
# Checks a tool's input against its JSON schema: the part of JSON Schema that our tools use, and no more.
#
# Unlike JSON Schema itself, an object takes only the keys it names: what a model makes up has no place.


_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_CHECKED = {
    *("type", "properties", "required", "additionalProperties", "enum", "items", "pattern"),
    *("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum"),
}
_TOLD = {"description", "title", "default", "examples"}


def check_schema(schema: Mapping[str, Any], where: str = "the schema") -> None:
    """ValueError for a schema that says something `faults` would not check."""
    if unknown := schema.keys() - _CHECKED - _TOLD:
        raise ValueError(f"{where}: {', '.join(sorted(unknown))} is not checked here")
    for kind in _kinds(schema):
        if kind not in _TYPES:
            raise ValueError(f"{where}: no type {kind!r}")
    if schema.get("additionalProperties", False) is not False:
        raise ValueError(f"{where}: objects take only the keys they name")
    properties = schema.get("properties", {})
    if missing := set(schema.get("required", ())) - properties.keys():
        raise ValueError(f"{where}: {', '.join(sorted(missing))} is required and not described")
    for name, inner in properties.items():
        check_schema(inner, f"{where}.{name}")
    if "items" in schema:
        check_schema(schema["items"], f"{where}[]")


def faults(value: Any, schema: Mapping[str, Any], where: str = "") -> list[str]:
    """What is wrong with `value`, said so that the model can mend it; [] if nothing. At most ten."""
    found: list[str] = []
    for fault in _faults(value, schema, where):
        found.append(fault)
        if len(found) == 10:
            break
    return found


def _kinds(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kinds = schema.get("type", ())
    return (kinds,) if isinstance(kinds, str) else tuple(kinds)


def _is(value: Any, kind: str) -> bool:
    # bool is an int to Python, and not to JSON.
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _faults(value: Any, schema: Mapping[str, Any], where: str) -> Iterator[str]:
    at = where or "the input"
    kinds = _kinds(schema)
    if kinds and not any(_is(value, kind) for kind in kinds):
        yield f"{at} must be {' or '.join(kinds)}, not {_kind_of(value)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at} must be one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, str):
        yield from _length(len(value), "characters", schema.get("minLength"), schema.get("maxLength"), at)
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"{at} must match {schema['pattern']}"
    elif isinstance(value, list):
        yield from _length(len(value), "items", schema.get("minItems"), schema.get("maxItems"), at)
        for number, item in enumerate(value):
            yield from _faults(item, schema.get("items", {}), f"{where}[{number}]")
    elif isinstance(value, dict):
        yield from _keys(value, schema, where)
    elif _is(value, "number") and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{at} is out of range: from {schema.get('minimum', '-∞')} to {schema.get('maximum', '∞')}"


def _keys(value: dict[str, Any], schema: Mapping[str, Any], where: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{where + '.' if where else ''}{name} is missing"
    for name, item in value.items():
        inner = f"{where}.{name}" if where else name
        if name in properties:
            yield from _faults(item, properties[name], inner)
        else:
            yield f"{inner[:80]} is unknown; known are {', '.join(properties) or 'none'}"


def _length(size: int, of: str, low: int | None, high: int | None, at: str) -> Iterator[str]:
    if low is not None and size < low:
        yield f"{at} has {size} {of}, fewer than {low}"
    if high is not None and size > high:
        yield f"{at} has {size} {of}, more than {high}"


def _kind_of(value: Any) -> str:
    return next((kind for kind in _TYPES if _is(value, kind)), type(value).__name__)


# -- loop --------------------------------------------------------------------------------------------------
# A bounded conversation with tools: the model calls, we check and do, until it is done or at an end.
#
# Nothing a model says widens what it may do: only the tools given exist, only inputs that fit their schema
# reach them, and the number of turns, calls and faults is bounded. Money and tokens are bounded by the
# model's meter, whose errors, like all of a model's, pass through and end the loop.


Ended = Literal["done", "turns", "calls", "nonsense", "cut", "window"]
_SAID: Mapping[Ended, str] = {
    "turns": "came to no end within {turns} turns",
    "calls": "made more than {calls} calls",
    "nonsense": "kept on making calls that are none, or the same again",
    "cut": "was cut off at the longest answer allowed",
    "window": "filled its context window",
}

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


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a loop ended, what the model said last, and what it took. `refused` calls were not done."""

    ended: Ended
    text: str
    turns: int
    calls: int
    refused: int
    usage: TokenUsage
    messages: tuple[Message, ...] = field(repr=False)

    def require_done(self) -> Outcome:
        """Itself if the model came to a good end; else ModelMisbehaved, and nothing is to be kept."""
        if self.ended == "done":
            return self
        what = _SAID[self.ended].format(turns=self.turns, calls=self.calls)
        raise ModelMisbehaved(
            f"the model {what}; nothing of it was kept", hint="try again, or another UA_MEMORY_MODEL"
        )


def run_tools(
    model: Model,
    system: str,
    messages: Sequence[Message],
    tools: Mapping[str, Tool],
    *,
    purpose: str,
    bounds: Bounds | None = None,
    max_tokens: int = 16_000,
    watch: Callable[[Reply], None] | None = None,
) -> Outcome:
    """Ask until the model has nothing more to call. `watch` sees each reply before its calls are done.

    Raises what `Model.ask` raises, and what a tool raises besides ToolError: then nothing is to be kept.
    """
    loop = _Loop(tools, bounds or Bounds(), list(messages))
    offered = [
        {"name": name, "description": tool.description, "input_schema": tool.schema}
        for name, tool in tools.items()
    ]
    while loop.ended is None:
        reply = model.ask(
            system, loop.messages, purpose=purpose, max_tokens=max_tokens, tools=offered, goes_on=True
        )
        if watch is not None:
            watch(reply)
        loop.take(reply)
    return Outcome(
        loop.ended, loop.text, loop.turns, loop.calls, loop.refused, loop.usage, tuple(loop.messages)
    )


class _Loop:
    """Where a loop stands."""

    def __init__(self, tools: Mapping[str, Tool], bounds: Bounds, messages: list[Message]) -> None:
        self.messages = messages
        self.ended: Ended | None = None
        self.text, self.usage = "", TokenUsage()
        self.turns = self.calls = self.refused = 0
        self._tools, self._bounds = tools, bounds
        self._in_vain = 0
        self._before: list[tuple[str, Any]] = []

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
        if wrong := faults(call.input, tool.schema):
            return "; ".join(wrong), False
        try:
            return tool.call(call.input), True
        except ToolError as error:
            return str(error), False
