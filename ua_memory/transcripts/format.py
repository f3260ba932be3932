"""What every reader has in common: a first pass surveys the records, a second lets them speak."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from ua_memory.transcripts.source import Report, Source, json_lines
from ua_memory.transcripts.turns import Boundary, Event, Record, Session, Turn, Usage, tokens, word


class Format:
    """One client's way of writing transcripts down. Made anew for each reading.

    `survey` sees every record once, in file order; `close` then decides which lines are the conversation;
    `events` turns the records of those lines into turns, calls and results, and `contents` into the text
    that fills the model's context, tool outputs included, which is for counting alone.
    """

    client: ClassVar[str] = ""

    def __init__(self) -> None:
        self.session = Session(self.client)
        self.usage = Usage()
        self.boundary: Boundary | None = None
        self.keep = bytearray()
        """One flag a line; 0 is not read in the second pass."""

    def records(
        self, source: Source, report: Report, keep: bytearray | None = None
    ) -> Iterator[tuple[int, Record]]:
        return json_lines(source, report, keep)

    def name(self, line: int, record: Record) -> str:
        """The id of the record's first turn."""
        return word(record.get("id")) or f"L{line}"

    def survey(self, line: int, record: Record) -> None:
        raise NotImplementedError

    def close(self, lines: int) -> None:
        """All of it was seen; the file has so many lines."""
        self.keep = bytearray(b"\1") * (lines + 1)

    def read_to(self, id: str, line: int) -> int:
        """The line up to which the path has been read, if what was read last is `id`, on a dropped line."""
        return line

    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        raise NotImplementedError

    def contents(self, line: int, record: Record) -> Iterator[str]:
        raise NotImplementedError


class Entry:
    """Gives the turns of one record their ids: `a1`, `a1.2`, `a1.3`."""

    def __init__(self, turn: Turn) -> None:
        self._turn, self._count = turn, 0

    def next(self, **changes: Any) -> Turn:
        self._count += 1
        base = self._turn
        fields: dict[str, Any] = {
            "id": base.id if self._count == 1 else f"{base.id}.{self._count}",
            "role": base.role,
            "text": base.text,
            "at": base.at,
            "agent": base.agent,
            "summary": base.summary,
            "line": base.line,
        }
        return Turn(**(fields | changes))


class Gauge:
    """Collects what replies report of their size, each API message once."""

    def __init__(self) -> None:
        self.line = 0
        self.last: int | None = None
        self.peak: int | None = None
        self.model = ""

    def reply(self, line: int, model: str, total: int) -> None:
        """A reply's whole size. 0 says nothing (aborted, failed); repeats of one are equal or grow."""
        if total:
            self.line, self.last, self.model = line, total, model or self.model
            self.peak = max(self.peak or 0, total)

    def usage(self, boundary: Boundary | None, window: int | None = None) -> Usage:
        """As it stands: after a compaction only what the compaction says it left counts."""
        stale = boundary is not None and boundary.line > self.line
        return Usage(boundary.after if boundary and stale else self.last, self.peak, self.model, window)


def claude_usage(usage: Record) -> int:
    """Input, cache creation, cache read and output of one reply, as the Anthropic API reports them."""
    keys = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    return sum(tokens(usage.get(key)) for key in keys)


def blocks(content: object) -> Iterator[Record]:
    """The blocks of a message's content; a plain text is one block of text."""
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, dict):
                yield block
            elif isinstance(block, str):
                yield {"type": "text", "text": block}


def texts(content: object) -> Iterator[str]:
    """The texts in a content, whatever kind of text block a client uses."""
    for block in blocks(content):
        if block.get("type") in ("text", "input_text", "output_text") and isinstance(block.get("text"), str):
            yield block["text"]


def filling(content: object) -> Iterator[str]:
    """All text by which a content fills a context: words, arguments, outputs. No images, no thinking."""
    for block in blocks(content):
        kind = block.get("type")
        if kind in ("text", "input_text", "output_text"):
            yield word(block.get("text"))
        elif kind in ("tool_use", "toolCall"):
            yield word(block.get("name"))
            yield json.dumps(block.get("input", block.get("arguments")), ensure_ascii=False)
        elif kind == "tool_result":
            yield from filling(block.get("content"))
