"""A bounded conversation with tools, and the check of what a model gives against a JSON schema."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ua_memory.errors import ModelMisbehaved
from ua_memory.llm.model import Message, Model, Reply, TokenUsage, ToolCall, user
from ua_memory.text.patterns import data_text

if TYPE_CHECKING:  # to a type checker our memory tool is a subclass of the SDK's, which is not loaded for it
    from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool, BetaBuiltinFunctionTool
    from anthropic.types.beta import BetaMemoryTool20250818Param

    SdkTool: TypeAlias = BetaBuiltinFunctionTool
    SdkAsyncTool: TypeAlias = BetaAsyncBuiltinFunctionTool
    MemoryToolParam: TypeAlias = BetaMemoryTool20250818Param
else:
    SdkTool = SdkAsyncTool = object
    MemoryToolParam = Mapping

# -- JSON schemas ------------------------------------------------------------------------------------------
# The schemas of our tools (`data/schemas.json`), and the home of jsonschema: whether a tool's input, or a
# structured answer, fits its schema.


def schema(name: str) -> Mapping[str, Any]:
    """The JSON schema of a tool's input."""
    return _schemas()[name]


@cache
def _schemas() -> Mapping[str, Mapping[str, Any]]:
    return json.loads(data_text("schemas.json"))  # type: ignore[no-any-return]


LISTED_ERRORS = 10
"""Most errors that are reported at once."""


def closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy in which objects allow no keys but those they name."""
    found = copy.deepcopy(dict(schema))
    for inner in _inner_schemas(found):
        if "properties" in inner or inner.get("type") == "object":
            inner.setdefault("additionalProperties", False)
    return found


def check_schema(schema: Mapping[str, Any]) -> None:
    """ValueError for an invalid JSON schema, or one that refers to another document: nothing is fetched."""
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"not a JSON schema: {error}") from error
    _check_schema(text)


@lru_cache(maxsize=64)
def _check_schema(text: str) -> None:
    """The same for a schema as JSON text, cached: it takes milliseconds, and most tools are made
    repeatedly."""
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
        raise ValueError(f"not a JSON schema: {_error_text(error)}") from error
    except Exception as error:  # a reference to a part that is not there, by a class of another package
        raise ValueError(f"the schema cannot be used: {str(error)[:200]}") from error


def schema_errors(value: Any, schema: Mapping[str, Any]) -> list[str]:
    """Why a value does not fit, each with its path so that a model can correct it; [] if it fits. At most
    ten."""
    return sorted(map(_error_text, _validator(schema).iter_errors(value)))[:LISTED_ERRORS]


def references(value: Any) -> Iterator[str]:
    """All references of a schema."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key in ("$ref", "$dynamicRef") and isinstance(inner, str):
                yield inner
            else:
                yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def _inner_schemas(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and, recursively, the schemas of its properties and items."""
    if isinstance(schema, dict):
        yield schema
        for inner in (*schema.get("properties", {}).values(), schema.get("items")):
            yield from _inner_schemas(inner)


def _validator(schema: Mapping[str, Any]) -> Any:
    import jsonschema
    from referencing import Registry

    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return _strict(kind)(schema, registry=Registry())


@lru_cache(maxsize=8)
def _strict(kind: Any) -> Any:
    """The validator's class, which does not accept 1.0 as an integer: Python code needs an int. It takes five
    milliseconds to make, and each tool call is checked."""
    import jsonschema

    types = kind.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    return jsonschema.validators.extend(kind, type_checker=types)


def _error_text(error: Any) -> str:
    path, said = ".".join(map(str, error.absolute_path)), error.message
    said = said if len(said) <= 200 else f"{said[:80]}…{said[-120:]}"  # the value first, what is wrong last
    return f"{path}: {said}" if path else said


# -- agent loop --------------------------------------------------------------------------------------------
# A bounded conversation in which the model calls tools until it is done.
#
# Only the given tools exist, only inputs that fit their schemas reach them, and turns, calls and faults are
# bounded. The model's meter bounds money and tokens; all errors of the model end the loop.


Ended = Literal["done", "turns", "calls", "nonsense", "cut", "window"]
_ENDED_TEXT: Mapping[Ended, str] = {
    "turns": "did not finish within {turns} turns",
    "calls": "made more than {calls} calls",
    "nonsense": "kept making invalid or repeated calls",
    "cut": "was cut off at the longest answer allowed",
    "window": "filled its context window",
}

SAY_DONE = "answer with the one word: done"
"""Part of a reminder to a model that may have nothing to call."""
_TOO_MANY = ("not done: too many calls in one message", False)


class ToolError(Exception):
    """The error result of a call; the model reads the text and may correct the call."""


@dataclass(frozen=True, slots=True)
class Tool:
    """`call` gets an input that fits `schema` and returns the result, or None for "done"; the model reads a
    ToolError, any other error ends the loop. With `ends` a successful call ends the loop."""

    description: str
    schema: Mapping[str, Any]
    call: Callable[[Mapping[str, Any]], str | None]
    ends: bool = False

    def __post_init__(self) -> None:
        check_schema(self.schema)
        if self.schema.get("type") != "object":
            raise ValueError("a tool's input is an object")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most turns, calls in all and in one message, and consecutive messages without a valid call."""

    turns: int = 24
    calls: int = 400
    at_once: int = 64
    faults: int = 3


def run_tools(
    model: Model, system: str, messages: Sequence[Message], tools: Mapping[str, Tool], *, purpose: str,
    bounds: Bounds | None = None, max_tokens: int = 16_000, on_reply: Callable[[Reply], None] | None = None,
    one_shot: bool = False, reminder: str = "",
) -> Outcome:  # fmt: skip
    """Ask until the model calls no more tools, or with `one_shot` until it has called some. `on_reply` gets
    each reply before its calls are carried out. A model that only talks is given the `reminder` and asked
    once more, unless it says `done` and the reminder offers that."""
    outcome = Outcome(tools, bounds or Bounds(), messages)
    offered = [
        {"name": name, "description": tool.description, "input_schema": tool.schema}
        for name, tool in tools.items()
    ]
    while outcome.ended is None:
        reply = model.ask(
            system, outcome.messages, purpose=purpose, max_tokens=max_tokens, tools=offered, cacheable=True
        )
        if on_reply is not None:
            on_reply(reply)
        outcome.add(reply)
        if one_shot and reply.calls:
            outcome.ended = "done"
        if reminder and outcome.talked and not (outcome.says_done and SAY_DONE in reminder):
            outcome = outcome.with_reminder(reminder)
            reminder = ""
    return outcome


class Outcome:
    """The state of a conversation with tools, and its result: how it `ended`, the model's last text, and the
    usage. `refused` calls were not carried out."""

    def __init__(self, tools: Mapping[str, Tool], bounds: Bounds, messages: Sequence[Message]) -> None:
        self.messages = list(messages)
        self.ended: Ended | None = None
        self.text, self.usage = "", TokenUsage()
        self.turns = self.calls = self.refused = 0
        self._tools, self._bounds = tools, bounds
        self._faults_in_a_row = 0
        self._last_calls: list[tuple[str, Any]] = []

    @property
    def talked(self) -> bool:
        """Whether the model called nothing, which must not count as "nothing here is worth keeping"."""
        return self.ended == "done" and not self.calls and not self.refused

    @property
    def says_done(self) -> bool:
        """Whether the model's last text is the word that it may say instead of a call."""
        return self.text.strip(" \n.!*\"'").casefold() == "done"

    def with_reminder(self, reminder: str) -> Outcome:
        """The same conversation with a reminder after it, and new bounds."""
        again = Outcome(self._tools, self._bounds, [*self.messages, user(reminder)])
        again.usage = self.usage
        return again

    def require_done(self) -> Outcome:
        """Itself if the model ended well; else ModelMisbehaved, and nothing must be saved."""
        if self.ended in (None, "done"):
            return self
        what = _ENDED_TEXT[self.ended].format(turns=self.turns, calls=self.calls)
        hint = "try again, or another UA_MEMORY_MODEL"
        raise ModelMisbehaved(f"the model {what}; none of it was saved", hint=hint)

    def add(self, reply: Reply) -> None:
        """Add a reply, carry out its calls, and decide whether the conversation has ended."""
        self.turns += 1
        self.usage += reply.usage
        self.text = reply.text or self.text
        if reply.blocks:
            self.messages.append(reply.message)
        if reply.calls:
            self._carry_out(reply.calls)
            if self.ended is None and reply.stop == "window":
                self.ended = "window"
        else:
            self.ended = self._end_without_calls(reply)
        if self.ended is None and self.turns >= self._bounds.turns:
            self.ended = "turns"

    def _end_without_calls(self, reply: Reply) -> Ended | None:
        if reply.stop == "pause_turn" and reply.blocks:
            return None  # the API asks for the same messages with its own behind them
        if reply.stop in ("end_turn", "stop_sequence"):
            return "done"
        ends: dict[str, Ended] = {"max_tokens": "cut", "window": "window"}
        return ends.get(reply.stop, "nonsense")

    def _carry_out(self, calls: Sequence[ToolCall]) -> None:
        """Carry out the calls in order, and answer all of them in one message, as the API requires."""
        same = [(call.name, call.input) for call in calls]
        good = 0
        results = []
        for number, call in enumerate(calls):
            text, done = self._call(call) if number < self._bounds.at_once else _TOO_MANY
            good += done
            result = {"type": "tool_result", "tool_use_id": call.id, "content": text or "done"}
            results.append(result if done else {**result, "is_error": True})
            if done and self._tools[call.name].ends:
                self.ended = "done"
        self.messages.append({"role": "user", "content": results})
        self.calls += good
        self.refused += len(calls) - good
        # The same message again is as good as no good call: what it asks for has been done.
        self._faults_in_a_row = self._faults_in_a_row + 1 if not good or same == self._last_calls else 0
        self._last_calls = same
        if self.ended is None and self._faults_in_a_row >= self._bounds.faults:
            self.ended = "nonsense"
        if self.ended is None and self.calls >= self._bounds.calls:
            self.ended = "calls"

    def _call(self, call: ToolCall) -> tuple[str | None, bool]:
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
