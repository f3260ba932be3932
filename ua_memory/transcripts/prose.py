"""Plain text and markdown: speakers by their headings or by `User:` at the start of a line, else one person.

A turn that grows past `LONGEST_TURN` is cut at the next line, so that a book is read in bounded memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ua_memory.spoken import typed, uttered
from ua_memory.transcripts.format import Entry, Format
from ua_memory.transcripts.source import CHUNK, Report, Source
from ua_memory.transcripts.turns import Event, Record, Role, Turn

LONGEST_TURN = 32 << 10
"""Characters."""

_PERSON = "user|human|you|me|person"
_ASSISTANT = (
    r"assistant|ai|agent|model|bot|claude(?: code)?|chatgpt|gpt[\w.-]*|codex|gemini|copilot|clawd(?:bot)?"
)
_OTHER = "system|tool|tools|tool result|tool output|developer|function"
_LABEL = rf"(?:(?P<person>{_PERSON})|(?P<assistant>{_ASSISTANT})|(?P<other>{_OTHER}))"
_NOTE = r"(?:\s*[(\[][^)\]\n]{0,80}[)\]])?"
_SPEAKER = re.compile(
    rf"\s{{0,3}}(?:"
    rf"\#{{1,6}}\s+(?:[^\w\s]{{1,3}}\s*)?(?:\*\*)?{_LABEL}(?:\*\*)?{_NOTE}\s*:?\s*$"
    rf"|(?:\[[^\]\n]{{1,40}}\]\s*)?(?:\*\*|__)?{_LABEL.replace('P<', 'P<l_')}{_NOTE}"
    rf"(?:\*\*|__)?\s*:(?:\*\*|__)?(?=\s|$)"
    rf")",
    re.IGNORECASE,
)
_FENCE = re.compile(r"\s{0,3}(```+|~~~+)")
_MARKDOWN = re.compile(
    r"(?m)^(?:#{1,6} |[-*] |\d+\. |```|> )|\*\*[^*\n]+\*\*|\[[^\[\]\n]+\]\([^)\n]{1,2000}\)"
)
"""Bounded: 64 KB of `[` took a minute while a bracket could begin what another had begun."""


def speaker(line: str) -> tuple[Role | None, str] | None:
    """Who is named at the start of a line, and what follows on it; None is neither person nor agent."""
    found = _SPEAKER.match(line)
    if not found:
        return None
    rest = line[found.end() :].strip()
    if found["person"] or found["l_person"]:
        return "person", rest
    if found["assistant"] or found["l_assistant"]:
        return "assistant", rest
    return None, rest


def named_speakers(head: str) -> bool:
    """Whether a text is a conversation with names to it: it begins with one, or has both sides."""
    seen: set[Role | None] = set()
    first = True
    for line in head.splitlines():
        if not line.strip():
            continue
        who = speaker(line)
        if who and first:
            return True
        first = first and line.startswith(("#", "---"))
        if who:
            seen.add(who[0])
    return {"person", "assistant"} <= seen


def is_markdown(head: str) -> bool:
    """Whether it looks like markdown rather than plain text."""
    return _MARKDOWN.search(head) is not None


class Prose(Format):
    """Text without any structure but its lines. The id of a turn is that of its first line."""

    client = "text"

    def records(
        self, source: Source, report: Report, keep: bytearray | None = None
    ) -> Iterator[tuple[int, Record]]:
        chat = named_speakers(source.head.decode("utf-8", "replace"))
        role: Role | None = "person"
        first, held, size, fence = 1, list[str](), 0, ""
        for number, line in _lines(source, report):
            mark = _FENCE.match(line)
            if mark:
                fence = "" if fence and line.strip().startswith(fence) else fence or mark[1][:3]
            who = speaker(line) if chat and not fence else None
            if who or size > LONGEST_TURN:
                yield first, {"role": role, "text": "".join(held)}
                first, held, size = number, [], 0
            if who:
                role, line = who[0], who[1] + "\n"
            held.append(line)
            size += len(line)
        yield first, {"role": role, "text": "".join(held)}

    def survey(self, line: int, record: Record) -> None:
        pass

    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        last, entry = 0, Entry(Turn("L0", "person", ""))
        for line, record in records:
            role = record["role"]
            text = uttered(record["text"]) if role == "assistant" else typed(record["text"])
            if line != last:
                last, entry = line, Entry(Turn(f"L{line}", "person", "", line=line))
            if role and text and not (role == "person" and _only_headings(text)):
                yield entry.next(role=role, text=text)

    def contents(self, line: int, record: Record) -> Iterator[str]:
        yield record["text"]


class Markdown(Prose):
    """The same; told apart for what is shown of it."""

    client = "markdown"


def _only_headings(text: str) -> bool:
    """A title above the first speaker is nobody's words."""
    return all(line.startswith(("# ", "## ", "---", "===")) or not line.strip() for line in text.splitlines())


def _lines(source: Source, report: Report) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; one that is very long comes in pieces under the same number."""
    number, rest = 1, ""
    for piece in source.pieces(report):
        *whole, rest = (rest + piece).split("\n")
        for line in whole:
            yield number, line.removesuffix("\r") + "\n"
            number += 1
        if len(rest) > CHUNK:
            yield number, rest
            rest = ""
    if rest:
        yield number, rest
