"""What a tool is: what it says of itself and its arguments, how it checks them, and who calls it.

One table serves all: the schemas that a client sees, the check of what it sends, and the words of an error.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ua_memory.errors import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ua_memory.memory import Endpoint, Filters, Memory

    Work = Callable[[Memory, Mapping[str, Any], "Caller"], str]
    Scope = Callable[[Memory, Mapping[str, Any]], Filters]


class Caller(NamedTuple):
    """Who calls: the client's name; its session if it has told; what it has configured.

    `model` is the model of the caller's own environment. `behind` starts a command of ours that goes on when
    the call is over, and returns the path of its log. `folders` are those whose files may be read on the
    caller's behalf. `scope` reads the arguments that filter, with the caller's places filled in. `said_in`
    are the tags of what is kept for it.
    """

    client: str = "mcp"
    session: str | None = None
    model: Endpoint | None = None
    behind: Callable[[Sequence[str]], str] | None = None
    folders: tuple[Path, ...] = ()
    scope: Scope | None = None
    said_in: tuple[str, ...] = ()


class Param(NamedTuple):
    """An argument: its kind (a key of KINDS), what it means, whether it must be there, and what it may be."""

    kind: str
    says: str
    needed: bool = False
    among: tuple[str, ...] = ()
    least: float | None = None


class Hints(NamedTuple):
    """What a client may tell its user before a call. `asks`: what it reads may go to the caller's model."""

    reads: bool = False
    destroys: bool = False
    repeats: bool = False
    asks: bool = False


READS = Hints(reads=True, repeats=True)
ADDS = Hints()
REPLACES = Hints(destroys=True, repeats=True)


class Tool(NamedTuple):
    """A tool: its name, its title, what it does and when to call it, its arguments, and the work."""

    name: str
    title: str
    says: str
    takes: Mapping[str, Param]
    hints: Hints
    work: Work


def _integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class Kind(NamedTuple):
    """A kind of value: its JSON schema, how an error calls it, and whether a value is one."""

    schema: Mapping[str, Any]
    word: str
    holds: Callable[[Any], bool]


KINDS: Mapping[str, Kind] = {
    "text": Kind({"type": "string"}, "a text", lambda v: isinstance(v, str)),
    "texts": Kind(
        {"type": "array", "items": {"type": "string"}}, "a list of texts",
        lambda v: isinstance(v, list) and all(isinstance(each, str) for each in v),
    ),
    "integer": Kind({"type": "integer"}, "a whole number", _integer),
    "number": Kind({"type": "number"}, "a number", _number),
    "object": Kind({"type": "object"}, "an object", lambda v: isinstance(v, dict)),
    "objects": Kind(
        {"type": "array", "items": {"type": "object"}}, "a list of objects",
        lambda v: isinstance(v, list) and all(isinstance(each, dict) for each in v),
    ),
}  # fmt: skip


def schema(takes: Mapping[str, Param]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments."""
    properties = {}
    for name, param in takes.items():
        more: dict[str, Any] = {"description": param.says}
        more |= {"enum": list(param.among)} if param.among else {}
        more |= {"minimum": param.least} if param.least is not None else {}
        properties[name] = {**KINDS[param.kind].schema, **more}
    found: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    needed = [name for name, param in takes.items() if param.needed]
    return {**found, "required": needed} if needed else found


def usage(takes: Mapping[str, Param]) -> str:
    """What to pass, in words."""
    return ", ".join(
        f"{name} ({KINDS[param.kind].word}{'' if param.needed else ', or nothing'})"
        for name, param in takes.items()
    ) or "nothing"  # fmt: skip


def checked(takes: Mapping[str, Param], arguments: object) -> dict[str, Any]:
    """The arguments of a call, without those that are null. Usage says what is missing, unknown or off."""
    given = {} if arguments is None else arguments
    mend = f"pass {usage(takes)}"
    if not isinstance(given, dict):
        raise Usage("the arguments must be an object", mend=mend)
    if unknown := sorted(set(given) - set(takes)):
        raise Usage(f"it takes no {', '.join(unknown)}", mend=mend)
    found = {}
    for name, param in takes.items():
        if given.get(name) is None:
            if param.needed:
                missing = "is missing" if name not in given else f"must be {KINDS[param.kind].word}"
                raise Usage(f"{name} {missing}", mend=mend)
            continue
        found[name] = _value(name, param, given[name], mend)
    return found


def _value(name: str, param: Param, value: Any, mend: str) -> Any:
    kind = KINDS[param.kind]
    if isinstance(value, str) and param.kind != "text":  # some clients write what is no text as JSON
        text = value
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(text)
        if param.kind == "texts" and not isinstance(value, list):  # and some a list as people do: a, b
            value = [word for each in text.split(",") if (word := each.strip())]
    if not kind.holds(value):
        raise Usage(f"{name} must be {kind.word}", mend=mend)
    if param.among and value not in param.among:
        raise Usage(f"{name} is none of {', '.join(param.among)}", mend=mend)
    if param.least is not None and not value >= param.least:
        raise Usage(f"{name} must be at least {param.least:g}", mend=mend)
    return value


def aside(redacted: Mapping[str, int], notes: Sequence[str]) -> list[str]:
    """What was taken out of a text before it was written, and what else is to be said of it."""
    taken = ", ".join(redacted)
    return [*([f"Taken out before writing: {taken}."] if taken else []), *(f"{note}." for note in notes)]


def masked(memory: Memory, text: str) -> str:
    """A text of the bank without the secrets that a person wrote into it; its lines keep their numbers."""
    from ua_memory import redaction

    return redaction.masked(text, memory.config.redact)
