"""Reading transcripts: detects the client, and gives the turns."""

from __future__ import annotations

import io
import os
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import IO

from ua_memory import discovery
from ua_memory.errors import Malformed
from ua_memory.errors import Usage as UsageError
from ua_memory.records import Problem
from ua_memory.text import grounding
from ua_memory.text.noise import has_envelope
from ua_memory.text.sentences import main_clauses
from ua_memory.transcripts.claude_code import ClaudeCode
from ua_memory.transcripts.codex import ENVELOPES, Codex
from ua_memory.transcripts.databases import Hermes, OpenCode
from ua_memory.transcripts.format import ByteSource, Format, Unreadable, blocks, parse_object, texts
from ua_memory.transcripts.messages import Markdown, Messages, Prose, is_conversation, is_markdown
from ua_memory.transcripts.pi import Clawdbot, OpenClaw, Pi
from ua_memory.transcripts.turns import Boundary, Record, Session, Turn, as_dict, as_str, settle

# -- detecting the client ----------------------------------------------------------------------------------
# By content, since a pipe has no file name. A new client needs a `Format` in a file of its own, its name in
# `CLIENTS` (as in `clients.settings`), its class in `_FORMATS`, and a check in `_client_of`.


CLIENTS = (
    *("claude-code", "pi", "clawdbot", "openclaw", "codex", "hermes", "opencode"),
    *("messages", "markdown", "text"),
)
_CLIENTS_HINT = f"known clients: {', '.join(CLIENTS)}"

_SNIFFED_LINES = 50
_CLAUDE_CODE = (
    *("summary", "file-history-snapshot", "queue-operation", "last-prompt", "permission-mode", "mode"),
    *("agent-name", "custom-title", "ai-title"),
)
_LONG_LINES = (
    (re.compile(r'^\{\s*"type"\s*:\s*"session"'), "pi"),
    (re.compile(r'"type"\s*:\s*"(?:session_meta|response_item|event_msg)"\s*,\s*"payload"'), "codex"),
    (re.compile(r'"(?:parentUuid|isSidechain|sessionId)"\s*:'), "claude-code"),
    (re.compile(r'^\{\s*"(?:messages|model|system|max_tokens|tools|role|content)"\s*:'), "messages"),
)
"""Patterns for the beginning of a line that is longer than the head."""


_OBJECT = re.compile(r'\{\s*(?:"|\}|$)')
_KEY = re.compile(r',\s*"\w+"\s*:')
_RECORD = re.compile(r'\s*\{\s*"')


def sniff(head: bytes) -> str:
    """Detect the client: one of `CLIENTS`, from the first bytes of a transcript (64 KB suffice).

    Malformed for JSON of an unknown kind, and for binary data, which would otherwise be taken for a person's
    words.
    """
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    if re.match(r"\[\s*(?:\{|\]|$)", text):
        return "messages"
    lines = [line for line in text.split("\n")[:_SNIFFED_LINES] if line.strip()]
    if not _OBJECT.match(text) and not _mostly_objects(lines):
        if b"\0" in head:
            raise Malformed("this is a binary file, not a transcript", hint="ua-memory flush --help")
        return "markdown" if is_markdown(text) or is_conversation(text) else "text"
    records = [record for line in lines if (record := parse_object(line.encode("utf-8", "replace")))]
    for record in records:
        if client := _client_of(record, records):
            return client
    for part in (text, *lines):
        for pattern, client in _LONG_LINES:
            if pattern.search(part):
                return client
    raise Malformed("this is JSON, but not a transcript of a known client", hint=_CLIENTS_HINT)


def _mostly_objects(lines: list[str]) -> bool:
    """Whether most lines are JSON objects though the first is not: it is damaged or truncated, as by `tail`.
    A person's text that quotes a record is not."""
    looks = sum(_RECORD.match(line) is not None for line in lines)
    first = lines[0].rstrip() if lines and not _RECORD.match(lines[0]) else ""
    cut = first.endswith("}")
    rest = cut and first.count("}") > first.count("{") and _KEY.search(first) is not None
    return (looks > 0 or rest) and 2 * (looks + cut) > len(lines)


def _client_of(record: Record, records: list[Record]) -> str:
    kind = record.get("type")
    if kind == "session" and ("cwd" in record or "version" in record):
        return _pi_variant(record, records)
    if kind in ENVELOPES and isinstance(record.get("payload"), dict):
        return "codex"
    if (
        kind is None
        and "id" in record
        and "timestamp" in record
        and ("instructions" in record or "git" in record)
    ):
        return "codex"
    if ("slug" in record and "directory" in record) or ("session_id" in record and "parts" in record):
        return "opencode"
    if ("session_id" in record and "role" in record) or ("started_at" in record and "source" in record):
        return "hermes"
    if "role" in record and "content" in record and kind in (None, "message"):
        return "codex" if kind and _has_input_text(record) else "messages"
    if isinstance(record.get("messages"), list):
        return "messages"
    if ("uuid" in record and "parentUuid" in record) or "sessionId" in record or kind in _CLAUDE_CODE:
        return "claude-code"
    if kind == "message" and "timestamp" in record and isinstance(record.get("message"), dict):
        return "pi"  # a session file whose header is broken
    return ""


def _has_input_text(record: Record) -> bool:
    return any(block.get("type") in ("input_text", "output_text") for block in blocks(record.get("content")))


def _pi_variant(header: Record, records: list[Record]) -> str:
    """v4 is OpenClaw's; Clawdbot's v3 is pi's with messages from chat channels."""
    version = header.get("version")
    if isinstance(version, int) and version >= 4:
        return "openclaw"
    cwd = as_str(header.get("cwd")).rstrip("/")
    if re.search(r"/(?:clawd|\.clawdbot|\.openclaw|\.moltbot)(?:/|$)", cwd):
        return "clawdbot"
    for record in records:
        message = as_dict(record.get("message"))
        if message.get("role") == "user":
            return "clawdbot" if has_envelope(next(texts(message.get("content")), "")) else "pi"
    return "pi"


# -- reading -----------------------------------------------------------------------------------------------


_FORMATS: dict[str, type[Format]] = {
    format.client: format
    for format in (ClaudeCode, Pi, Clawdbot, OpenClaw, Codex, Hermes, OpenCode, Messages, Markdown, Prose)
}
_PART_ID = re.compile(r"^(.+)\.(\d{1,6})$")
MOST_RECALLED = 400
"""Most lines of recalled memory that are kept, the last ones."""


class TranscriptReading:
    """A transcript after its first pass: its header, its size, and its turns on demand.

    It may be iterated again, one iteration at a time, and only while the stream is open. `problems` has
    the first lines that could not be read, `broken` counts them all; `cut`: the last line is half written;
    `undecoded` counts characters that were not UTF-8. `recalled` has the last lines of recalled memory.
    `reached` are the ids of `since` after which the turns begin.
    """

    def __init__(self, source: ByteSource, format: Format, since: Collection[str]) -> None:
        self._source, self._format = source, format
        report = Unreadable()
        bases = {*since, *(part[1] for id in since if (part := _PART_ID.match(id)))}
        found: dict[str, int] = {}
        last = 0
        for last, record in format.records(source, report):
            format.survey(last, record)
            if bases and (name := format.name(last, record)) in bases:
                found[name] = last
        source.freeze()
        format.close(last)
        self.session: Session = format.session
        self.context_size: int | None = format.context_size
        self.boundary: Boundary | None = format.boundary
        self.problems: tuple[Problem, ...] = tuple(report.problems)
        self.broken: int = report.broken
        self.cut: bool = report.cut
        self.undecoded: int = report.undecoded
        self.recalled: tuple[str, ...] = tuple(report.recalled)[-MOST_RECALLED:]
        places = {id: self._position(id, found) for id in since}
        self._after = max(places.values(), default=(0, 0))
        self.reached = {id for id, place in places.items() if place == self._after > (0, 0)}

    def _position(self, id: str, found: dict[str, int]) -> tuple[int, int]:
        """Line and part up to which the turns have been read, if `id` was the last one."""
        part = 1
        base = id
        if id not in found and (named := _PART_ID.match(id)):
            base, part = named[1], int(named[2])
        if base not in found:
            return 0, 0
        line = found[base]
        if self._format.keep[line]:
            return line, part
        return self._format.read_to(base, line), 1 << 30

    def after(self, since: Collection[str]) -> TranscriptReading:
        """The same transcript, as far as it was read, without the turns up to these ids."""
        return TranscriptReading(self._source, type(self._format)(), since)

    def __iter__(self) -> Iterator[Turn]:
        """The turns after `since`, in the order of the conversation."""
        outputs: deque[str] = deque()
        for turn in settle(self._format.events(self._records_with_outputs(outputs))):
            turn = _with_echo_of(turn, outputs) if turn.role == "assistant" and outputs else turn
            named = _PART_ID.match(turn.id)
            part = int(named[2]) if named else 1
            if (turn.line, part) > self._after:
                yield turn

    def context(self) -> Iterator[str]:
        """All text that fills the model's context since the last compaction, in pieces, for counting alone.

        It has tool outputs and summaries: it must never be stored, shown or sent anywhere.
        """
        first = self.boundary.kept if self.boundary else 0
        own = self.boundary.line if self.boundary else 0
        for line, record in self._path_records():
            if line >= first or line == own:
                yield from filter(None, self._format.contents(line, record))

    def outputs(self) -> Iterator[str]:
        """The tools' outputs, also on dropped branches, without those of our own tools. For comparison alone:
        they must never be stored, shown or sent anywhere."""
        for _, record in self._format.records(self._source, Unreadable()):
            yield from filter(None, self._format.outputs(record))

    def _records_with_outputs(self, outputs: deque[str]) -> Iterator[tuple[int, Record]]:
        """The records of the conversation; `outputs` is filled with the latest tool outputs, normalised."""
        size = 0
        for line, record in self._path_records():
            for text in self._format.outputs(record):
                outputs.append(grounding.words_only(text[:LONGEST_OUTPUT]))
                size += len(outputs[-1])
            while size > MOST_OUTPUT:
                size -= len(outputs.popleft())
            yield line, record

    def _path_records(self) -> Iterator[tuple[int, Record]]:
        keep = self._format.keep
        for line, record in self._format.records(self._source, Unreadable(), keep):
            if line < len(keep) and keep[line]:
                yield line, record


LONGEST_OUTPUT, MOST_OUTPUT = 32 << 10, 256 << 10
"""Most characters of one output, and of the latest ones, that an assistant's text is compared with."""


def _with_echo_of(turn: Turn, outputs: Collection[str]) -> Turn:
    source = "\n".join(outputs)
    echo = [one.strip() for one in main_clauses(turn.text) if grounding.mostly_repeats(one, source)]
    return replace(turn, echo="\n".join(echo)) if echo else turn


def read(
    stream: IO[bytes], *, client: str | None = None, since: str | Collection[str] | None = None,
    lines_before: int = 0,
) -> TranscriptReading:  # fmt: skip
    """Read a transcript from where the stream stands. The stream must stay open while the reading is used.

    `client` is one of `CLIENTS`, or None to detect it. `since` has the id, or the ids, of the last turn that
    was read before: only later turns on the conversation's path are given. A transcript's tail has so many
    `lines_before` it, since turns without an id are named by their line. Usage for an unknown client,
    Malformed for data that is no transcript; lines that cannot be read are problems.
    """
    if client is not None and client not in _FORMATS:
        raise UsageError(f"no reader for transcripts of {client!r}", hint=_CLIENTS_HINT)
    source = ByteSource(stream, lines_before)
    ids = (since,) if isinstance(since, str) else tuple(since or ())
    return TranscriptReading(source, _FORMATS[client or sniff(source.start)](), ids)


# -- words of a session ------------------------------------------------------------------------------------
# For checking what the agent of a running session writes.


MOST_READ = 16 << 20
"""Most bytes that are read, from the end of the transcript."""


@dataclass(frozen=True, slots=True)
class TranscriptWords:
    """The person's turns of a session, and its tools' outputs. `complete`: none of it is missing."""

    said: tuple[str, ...]
    outputs: tuple[str, ...]
    complete: bool


def transcript_words(path: str, client: str) -> TranscriptWords | None:
    """The words of the transcript at `path`; None if it cannot be read, or if its client does not record
    tools' outputs."""
    if client not in _FORMATS or not _FORMATS[client].tells_outputs:
        return None
    try:
        with discovery.open_regular(path) as file:
            start = max(0, file.seek(0, os.SEEK_END) - MOST_READ)
            file.seek(start)
            if start:
                file.readline()
            reading = read(io.BytesIO(file.read(MOST_READ)), client=client)
    except (OSError, discovery.Irregular, Malformed):
        return None
    said = [t.text for t in reading if t.role == "person" and not t.agent and not t.summary]
    return TranscriptWords(tuple(said), tuple(reading.outputs()), not start and not reading.broken)


# -- transcripts on disk -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Transcript:
    """A transcript that has not been opened. `where` is its place, for people; `client` its reader, None to
    detect it; `changed` when it was last written; `opened` opens it. `machine` is the kind of automatic run,
    if that is known without reading it."""

    where: str
    client: str | None
    changed: datetime
    opened: Callable[[], AbstractContextManager[IO[bytes]]]
    machine: str = ""
