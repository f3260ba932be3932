"""Bytes → turns: the one call that the rest of the package makes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import IO

from ua_memory.errors import Usage as UsageError
from ua_memory.records import Problem
from ua_memory.transcripts.calls import settle
from ua_memory.transcripts.claude_code import ClaudeCode
from ua_memory.transcripts.codex import Codex
from ua_memory.transcripts.format import Format
from ua_memory.transcripts.hermes import Hermes
from ua_memory.transcripts.messages import Messages
from ua_memory.transcripts.pi import Clawdbot, OpenClaw, Pi
from ua_memory.transcripts.prose import Markdown, Prose
from ua_memory.transcripts.sniff import CLIENTS, sniff
from ua_memory.transcripts.source import Report, Source
from ua_memory.transcripts.turns import Boundary, Record, Session, Turn, Usage

_FORMATS: dict[str, type[Format]] = {
    format.client: format
    for format in (ClaudeCode, Pi, Clawdbot, OpenClaw, Codex, Hermes, Messages, Markdown, Prose)
}
_PART = re.compile(r"^(.+)\.(\d{1,6})$")


class Reading:
    """A transcript that has been surveyed: its header, its size, and its turns on demand.

    `turns()` may be called again; one iteration at a time, and only while the stream is open. `problems`
    holds the first lines that could not be read and `broken` counts them all; `cut` says that the end is half
    written, `undecoded` how many characters were not UTF-8.
    `resumed` tells whether an id of `since` was found, None where none was given; `reached` are those of
    them that stand where the turns go on.
    """

    def __init__(self, source: Source, format: Format, since: Collection[str]) -> None:
        self._source, self._format = source, format
        report = Report()
        names = {id: max(1, int(part[2])) if (part := _PART.match(id)) else 1 for id in since}
        bases = {part[1] if (part := _PART.match(id)) else id for id in since} | set(names)
        found: dict[str, int] = {}
        last = 0
        for last, record in format.records(source, report):
            format.survey(last, record)
            if bases and (name := format.name(last, record)) in bases:
                found[name] = last
        source.freeze()
        format.close(last)
        self.session: Session = format.session
        self.usage: Usage = format.usage
        self.boundary: Boundary | None = format.boundary
        self.problems: tuple[Problem, ...] = tuple(report.problems)
        self.broken: int = report.broken
        self.cut: bool = report.cut
        self.undecoded: int = report.undecoded
        self.resumed: bool | None = bool(found) if since else None
        places = {id: self._position(id, found) for id in since}
        self._after = max(places.values(), default=(0, 0))
        self.reached = {id for id, place in places.items() if place == self._after > (0, 0)}

    def _position(self, id: str, found: dict[str, int]) -> tuple[int, int]:
        """Line and part up to which the turns have been read, if `id` was the last of them."""
        part = 1
        base = id
        if id not in found and (named := _PART.match(id)):
            base, part = named[1], int(named[2])
        if base not in found:
            return 0, 0
        line = found[base]
        if self._format.keep[line]:
            return line, part
        return self._format.read_to(base, line), 1 << 30

    def __iter__(self) -> Iterator[Turn]:
        return self.turns()

    def turns(self) -> Iterator[Turn]:
        """The turns after `since`, in the order of the conversation."""
        for turn in settle(self._format.events(self._kept())):
            named = _PART.match(turn.id)
            part = int(named[2]) if named else 1
            if (turn.line, part) > self._after:
                yield turn

    def context(self) -> Iterator[str]:
        """All text that fills the model's context since the last compaction, in pieces, for counting alone.

        Tool outputs and summaries are in it: it must never be stored, shown or sent anywhere.
        """
        first = self.boundary.kept if self.boundary else 0
        own = self.boundary.line if self.boundary else 0
        for line, record in self._kept():
            if line >= first or line == own:
                yield from filter(None, self._format.contents(line, record))

    def _kept(self) -> Iterator[tuple[int, Record]]:
        keep = self._format.keep
        for line, record in self._format.records(self._source, Report(), keep):
            if line < len(keep) and keep[line]:
                yield line, record


def read(
    stream: IO[bytes], *, client: str | None = None, since: str | Collection[str] | None = None
) -> Reading:
    """Read a transcript from where the stream stands; it stays open as long as the reading is used.

    `client` is one of `CLIENTS`, or None to tell by the content. `since` is the id, or the ids, of the last
    turn that has been read before: only what follows on the conversation's path comes out. Raises Usage for
    an unknown client and Malformed for what is no transcript at all; lines that cannot be read are problems.
    """
    if client is not None and client not in _FORMATS:
        raise UsageError(f"no reader for transcripts of {client!r}", mend="known are: " + ", ".join(CLIENTS))
    source = Source(stream)
    ids = (since,) if isinstance(since, str) else tuple(since or ())
    return Reading(source, _FORMATS[client or sniff(source.start)](), ids)
