"""A model at work on one page: it reads the page and the evidence, and asks for small operations.

It writes nothing. Each sentence names its evidence by number and is held against it on the spot; one that
says more is refused with the reason, and left out if the model does no better.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ua_memory.errors import ModelMisbehaved
from ua_memory.grounding import supported
from ua_memory.llm import (
    Bounds,
    Message,
    Model,
    Tool,
    ToolError,
    run_tools,
    user,
)
from ua_memory.llm import Usage as Tokens
from ua_memory.reflect.briefing import DIRECTIVE, Clean, opened
from ua_memory.reflect.grounds import Evidence, unsupported
from ua_memory.reflect.sections import Refused, Sheet
from ua_memory.reflect.units import Unit, mark, plain

_REMINDER = "Nothing was changed: you called no tool. Use the tools, or answer with the one word: done."
BOUNDS = Bounds(turns=16, calls=120)
LONGEST_ANSWER = 8_000
LONGEST_SENTENCE = 600

_TEXT, _REF = {"type": "string"}, {"type": "string"}
_SENTENCES = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"text": _TEXT, "evidence": {"type": "array", "items": {"type": "integer"}}},
        "required": ["text", "evidence"],
    },
}


def _schema(needed: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {**needed, **more}, "required": list(needed)}


@dataclass(slots=True)
class Written:
    """What a model did: sentences that were refused and why, persons' paragraphs that are contradicted (with
    the numbers of the evidence), and what it took."""

    refused: list[str] = field(default_factory=list)
    contradicted: list[tuple[Unit, tuple[int, ...]]] = field(default_factory=list)
    usage: Tokens = field(default_factory=Tokens)


def write(model: Model, sheet: Sheet, question: str, evidence: Sequence[Evidence], clean: Clean) -> Written:
    """Let a model work on the sheet. Raises what the model raises; then the sheet is to be thrown away."""
    writer = _Writer(sheet, evidence)
    opening: list[Message] = [user(opened(sheet, question, evidence, clean), "Bring the page up to date.")]
    outcome = run_tools(
        model, DIRECTIVE, opening, writer.tools(), purpose="refresh", bounds=BOUNDS,
        max_tokens=LONGEST_ANSWER,
    )  # fmt: skip
    writer.written.usage += outcome.usage
    if outcome.ended == "done" and not outcome.calls + outcome.refused and not _done(outcome.text):
        outcome = run_tools(
            model, DIRECTIVE, [*outcome.messages, user(_REMINDER)], writer.tools(), purpose="refresh",
            bounds=BOUNDS, max_tokens=LONGEST_ANSWER,
        )  # fmt: skip
        writer.written.usage += outcome.usage
        if not outcome.calls and not _done(outcome.text):
            raise ModelMisbehaved(
                "the model only talked about the page; nothing of it was kept",
                mend="try again, or another UA_MEMORY_MODEL",
            )
    outcome.require_done()
    return writer.end()


def _done(text: str) -> bool:
    return text.strip(" \n.!*\"'").casefold() == "done"


class _Writer:
    """The tools over one sheet."""

    def __init__(self, sheet: Sheet, evidence: Sequence[Evidence]) -> None:
        self.sheet, self.written = sheet, Written()
        self.evidence = {each.number: each for each in evidence}
        self._open: dict[tuple[str, ...], list[str]] = {}
        """What was refused of a call, until the model does better."""

    def tools(self) -> dict[str, Tool]:
        given, place, title = {"sentences": _SENTENCES}, {"section": _REF}, {"title": _TEXT}
        paragraph = {"paragraph": _REF}
        return {
            "append_paragraph": Tool(
                "Add a paragraph at the end of a section, or behind the paragraph `after`.",
                _schema({**place, **given}, after=_REF), self._append,
            ),
            "replace_paragraph": Tool(
                "Write a paragraph anew.", _schema({**paragraph, **given}), self._replace
            ),
            "remove_paragraph": Tool("Take a paragraph out.", _schema(paragraph), self._remove),
            "add_section": Tool(
                "Add a section at the end of the page; answers with its number.", _schema(title), self._add
            ),
            "rename_section": Tool("Give a section a new title.", _schema({**place, **title}), self._rename),
            "remove_section": Tool(
                "Take a section out, with all its paragraphs.", _schema(place), self._remove_section
            ),
            "contradict": Tool(
                "Say below a person's paragraph what the evidence has against it.",
                _schema({**paragraph, **given}), self._contradict,
            ),
        }  # fmt: skip

    def _append(self, given: Mapping[str, Any]) -> str:
        text, told, _ = self._text(given, "append", given["section"], given.get("after", ""))
        with _telling():
            made = self.sheet.append(given["section"], text, given.get("after", ""))
        return f"{made.ref}{told}"

    def _replace(self, given: Mapping[str, Any]) -> str:
        text, told, _ = self._text(given, "replace", given["paragraph"])
        with _telling():
            self.sheet.replace(given["paragraph"], text)
        return f"done{told}"

    def _remove(self, given: Mapping[str, Any]) -> str:
        with _telling():
            self.sheet.remove(given["paragraph"])
        return "done"

    def _add(self, given: Mapping[str, Any]) -> str:
        self._title(given["title"])
        with _telling():
            return self.sheet.add_section(given["title"]).ref

    def _rename(self, given: Mapping[str, Any]) -> str:
        self._title(given["title"])
        with _telling():
            self.sheet.rename(given["section"], given["title"])
        return "done"

    def _remove_section(self, given: Mapping[str, Any]) -> str:
        with _telling():
            self.sheet.remove_section(given["section"])
        return "done"

    def _contradict(self, given: Mapping[str, Any]) -> str:
        text, told, cited = self._text(given, "contradict", given["paragraph"])
        with _telling():
            self.sheet.contradict(given["paragraph"], text)
        unit = next(unit for unit in self.sheet.units if unit.ref == given["paragraph"].strip())
        self.written.contradicted.append((unit, cited))
        return f"done{told}"

    # -- what is held against the evidence ---------------------------------------------------------------

    def _text(self, given: Mapping[str, Any], *what: str) -> tuple[str, str, tuple[int, ...]]:
        """(the paragraph, what to tell, the numbers it cites). ToolError where a sentence says too much; the
        second time, and where others are good, it is left out."""
        good: list[str] = []
        bad: list[str] = []
        cited: list[int] = []
        for each in given["sentences"]:
            wrong = self._wrong(each["text"], each["evidence"])
            if wrong:
                bad.append(f"{each['text'][:200]} ({wrong})")
                continue
            numbers = list(dict.fromkeys(each["evidence"]))
            good.append(" ".join([plain(each["text"]), "".join(map(mark, numbers))]))
            cited += numbers
        again = what in self._open
        if bad and not (good and again):
            self._open[what] = bad
            raise ToolError(f"nothing was changed; say only what the evidence says: {'; '.join(bad)}")
        if not good:
            raise ToolError("there is no sentence; nothing was changed")
        self._open.pop(what, None)
        self.written.refused += bad
        told = f"; left out: {'; '.join(bad)}" if bad else ""
        return " ".join(good), told, tuple(dict.fromkeys(cited))

    def _wrong(self, text: str, numbers: Sequence[int]) -> str:
        if not any(map(str.isalnum, text)) or len(text) > LONGEST_SENTENCE:
            return f"a sentence has at most {LONGEST_SENTENCE} characters, and at least a word"
        if "[[" in text or "]]" in text:
            return "no links inside a sentence: give the numbers of its evidence"
        if not numbers:
            return "it names no evidence"
        unknown = [str(number) for number in numbers if number not in self.evidence]
        if unknown:
            return f"there is no evidence {', '.join(unknown)}"
        cited = [self.evidence[number] for number in numbers]
        if missing := unsupported(text, cited):
            return f"its evidence has no {', '.join(missing)}"
        return (
            "" if supported(text, [each.words for each in cited]) else "its evidence has hardly a word of it"
        )

    def _title(self, title: str) -> None:
        # A title begins with a capital that makes no name of its first word; only "API" is still one.
        plainly = re.sub(r"^\s*[A-Z](?=[a-z])", lambda match: match[0].lower(), title)
        missing = unsupported(plainly, list(self.evidence.values()))
        if missing:
            raise ToolError(f"the evidence has no {', '.join(missing)}; nothing was changed")

    def end(self) -> Written:
        """What was done; what was refused and never done better is told."""
        for bad in self._open.values():
            self.written.refused += [text for text in bad if text not in self.written.refused]
        return self.written


class _telling:
    """Turns what a sheet refuses into a tool's answer."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, Refused):
            raise ToolError(f"{error}; nothing was changed") from error
