"""What every reader has in common: its source in bounded memory, and the tree of its records."""

from __future__ import annotations

import codecs
import gzip
import json
import tempfile
import weakref
import zlib
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import IO, Any, ClassVar, cast

from ua_memory.errors import Malformed
from ua_memory.records import Problem
from ua_memory.text.noise import RECALL_OPEN, recalled, uttered
from ua_memory.transcripts.turns import (
    Boundary,
    ContextUsage,
    Event,
    Record,
    Session,
    Turn,
    call,
    decoded,
    ours,
    table,
    tokens,
    word,
)

# -- tree --------------------------------------------------------------------------------------------------
# Which lines of a transcript are the conversation: the path from its last leaf to its root.
#
# Clients append to one file and let each entry name its parent, so that going back and saying something
# else makes a fork. Kept per entry: three numbers of eight bytes, so that a million entries take 25 MB (ids
# in a dict took five times that).


_NONE = 0
_LOOKS = 32
"""How many parents that are nowhere in the file are searched for before the rest is taken to be linear."""


def mark(text: str) -> int:
    """A number that stands for an id within this process."""
    return (hash(text) & 0xFFFF_FFFF_FFFF_FFFF) or 1


class Tree:
    """Entries in file order: what they are called, what they follow, and where they stand."""

    def __init__(self) -> None:
        self._ids, self._parents, self._lines = array("Q"), array("Q"), array("Q")
        self._group_of = array("Q")
        self._misses = 0
        self.on = bytearray()

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, id: str, parent: str, line: int, group: str = "", follows: bool = False) -> int:
        """One entry; its number. `group` is the API message it is part of.

        `follows` makes an entry without a parent continue the entry above it instead of beginning anew.
        """
        self._ids.append(mark(id))
        before = self._ids[-2] if follows and not parent and len(self._ids) > 1 else _NONE
        self._parents.append(mark(parent) if parent else before)
        self._lines.append(line)
        self._group_of.append(mark(group) if group else _NONE)
        return len(self._ids) - 1

    def walk(self, leaf: int) -> None:
        """Mark the path from this entry to the root: 1 in `on`, and 2 for what belongs to a message on it.

        Several tools called at once are written as a chain of records of one message, each result below its
        own call: the path runs through one of them, the others hang beside it. (Measured on the shared
        Claude Code transcripts: 4 calls and 26 results.)
        """
        self.on = bytearray(len(self._ids))
        at = leaf
        while at >= 0:
            self.on[at] = 1
            at = self._parent(at)
        current = _NONE
        for number, group in enumerate(self._group_of):
            if self.on[number]:
                current = group or current
            elif group and group == current:
                self.on[number] = 2

    def _parent(self, child: int) -> int:
        """The entry it follows, which always stands above it; -1 at the root.

        A parent that is nowhere above (its line is broken, or in another file) is replaced by the entry
        directly above: better a turn of a dropped branch than the loss of everything before.
        """
        want = self._parents[child]
        if want == _NONE or child == 0:
            return -1
        if self._ids[child - 1] == want:
            return child - 1
        lowest = -1 if self._misses < _LOOKS else max(-1, child - 1000)
        at = child - 2
        while at > lowest and self._ids[at] != want:
            at -= 1
        if at > lowest:
            return at
        self._misses += 1
        return child - 1

    def find(self, id: str) -> int:
        """The number of the entry called so, the last one if there are several; -1 if there is none."""
        want = mark(id)
        try:
            at = self._ids.index(want)
        except ValueError:
            return -1
        return next(n for n in range(len(self._ids) - 1, at - 1, -1) if self._ids[n] == want)

    def line(self, number: int) -> int:
        return self._lines[number] if number >= 0 else 0

    def last_read(self, id: str) -> int:
        """The line up to which the conversation has been read, if `id` was the last entry that was.

        For an entry on a dropped branch it is where that branch leaves the path. 0 if `id` is unknown.
        """
        at = self.find(id)
        while at >= 0 and not self.on[at]:
            at = self._parent(at)
        return self.line(at)

    def keep(self, flags: bytearray) -> None:
        """Flag the lines of the path."""
        for number, on in enumerate(self.on):
            if on:
                flags[self._lines[number]] = 1


# -- source ------------------------------------------------------------------------------------------------
# Bytes that can be read twice, line by line or value by value, in bounded memory.
#
# A reader goes over a transcript once to find the path of the conversation and once to read it. What cannot
# seek is spooled to a temporary file; what is compressed is unpacked there. No line longer than
# `LONGEST_LINE` is held, so that one pasted video does not decide how much memory a flush takes.


LONGEST_LINE = 16 << 20
"""Bytes. Such a line may take eight times as much while it is parsed, at four bytes a letter."""
SPOOL = 4 << 20
HEAD = 64 << 10
CHUNK = 64 << 10
PROBLEMS_KEPT = 50
_RECALL = RECALL_OPEN.encode()


@dataclass(slots=True)
class Unreadable:
    """What could not be read. `cut` says that the end is half written, which a live transcript's often is;
    `undecoded` counts what was not UTF-8, and came as U+FFFD."""

    problems: list[Problem] = field(default_factory=list)
    broken: int = 0
    cut: bool = False
    undecoded: int = 0
    recalled: dict[str, None] = field(default_factory=dict)
    """The lines of recalled memory that were met, each once, in order."""

    def add(self, line: int, message: str) -> None:
        self.broken += 1
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(Problem("", line, message))

    def decoded(self, text: str, raw: bytes) -> None:
        """Count what came as U+FFFD and was none."""
        if "\ufffd" in text:
            self.undecoded += max(0, text.count("\ufffd") - raw.count(b"\xef\xbf\xbd"))


class ByteSource:
    """A transcript's bytes from where the stream stands, readable any number of times, one pass at a time."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._start = _rereadable(stream)
        if self._stream is not stream:  # the copy is ours to close
            weakref.finalize(self, self._stream.close)
        self._end: int | None = None
        self.head = self._stream.read(HEAD)
        self.start = self.head
        """What tells whose it is: the head; where that is inside one long line, what follows the line."""
        if not self.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
            self.start = self._past_the_first_line()
        if self.head.startswith(b"SQLite format 3"):
            raise Malformed(
                "this is an SQLite database, not a transcript",
                hint="export the session first: openclaw sessions export-trajectory, opencode export",
            )

    def freeze(self) -> None:
        """Later passes end where this one did: a live transcript may grow in between."""
        self._end = self._stream.tell()

    def _past_the_first_line(self) -> bytes:
        if len(self.head) < HEAD or b"\n" in self.head:
            return self.head
        end = b""
        while more := self._stream.readline(CHUNK):
            end = (end + more)[-CHUNK:]
            if more.endswith(b"\n"):
                return end + self._stream.read(HEAD)
        return self.head

    def lines(self) -> Iterator[tuple[int, bytes | None]]:
        """Number and bytes of each line, newline included; None for one that is too long."""
        self._stream.seek(self._start)
        left = None if self._end is None else self._end - self._start
        number = 0
        while left is None or left > 0:
            raw = self._stream.readline(LONGEST_LINE + 1)
            if not raw:
                return
            number += 1
            size = len(raw)
            if size > LONGEST_LINE and not raw.endswith(b"\n"):
                raw = b""
                while (more := self._stream.readline(CHUNK)) and not more.endswith(b"\n"):
                    size += len(more)
                size += len(more)
            if left is not None:
                left -= size
            yield number, raw or None

    def pieces(self, report: Unreadable) -> Iterator[str]:
        """The text, in pieces of at most `CHUNK` bytes; bytes that are not UTF-8 come as U+FFFD."""
        self._stream.seek(self._start)
        left = None if self._end is None else self._end - self._start
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while left is None or left > 0:
            data = self._stream.read(CHUNK if left is None else min(CHUNK, left))
            if not data:
                break
            left = None if left is None else left - len(data)
            text = decoder.decode(data)
            report.decoded(text, data)
            yield text
        yield decoder.decode(b"", final=True)


def _rereadable(stream: IO[bytes]) -> tuple[IO[bytes], int]:
    """The stream itself where it can seek, else a spooled copy; and where to begin."""
    start = 0
    if _seekable(stream):
        readable, start = stream, stream.tell()
    else:
        readable = _spool(stream)
    for read in (_unpacked, _as_utf_8):
        magic = readable.read(4)
        readable.seek(start)
        if (inside := read(readable, magic)) is not None:
            packed = readable
            try:
                readable, start = _spool(inside), 0
            finally:
                if packed is not stream:
                    packed.close()
    return readable, start


def _seekable(stream: IO[bytes]) -> bool:
    try:
        return stream.seekable()
    except (AttributeError, OSError, ValueError):
        return False


def _unpacked(stream: IO[bytes], magic: bytes) -> IO[bytes] | None:
    """What a compressed stream holds; None for any other."""
    if magic[:2] == b"\x1f\x8b":
        return cast(IO[bytes], gzip.GzipFile(fileobj=stream))
    if magic == b"\x28\xb5\x2f\xfd":
        # The standard library reads zstd from Python 3.14 on only, and no dependency of ours does.
        raise Malformed("the transcript is compressed with zstd", hint="zstd -dc FILE | ua-memory flush -")
    return None


def _as_utf_8(stream: IO[bytes], magic: bytes) -> IO[bytes] | None:
    """UTF-16 as PowerShell and Notepad write it, by its mark, as UTF-8; None for any other."""
    if magic[:2] not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return None
    return cast(IO[bytes], codecs.EncodedFile(stream, "utf-8", "utf-16", "replace"))


def _spool(stream: IO[bytes]) -> IO[bytes]:
    copy = cast(IO[bytes], tempfile.SpooledTemporaryFile(max_size=SPOOL))  # noqa: SIM115
    try:
        while data := stream.read(1 << 20):
            copy.write(data)
    except EOFError:
        pass  # an archive cut short: what came out of it is read, as with any half-written transcript
    except (gzip.BadGzipFile, zlib.error) as error:
        copy.close()
        raise Malformed(f"the compressed transcript is damaged: {error}", hint="unpack it by hand") from error
    copy.seek(0)
    return copy


def recalled_in(value: object) -> Iterator[str]:
    """The lines of recalled memory in all texts of a JSON value; hooks' output is JSON in a text."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from recalled_in(part)
    elif isinstance(value, str) and RECALL_OPEN in value:
        inner = parse(value.encode("utf-8", "replace")) if value.lstrip().startswith("{") else None
        yield from recalled_in(inner) if inner else recalled(value)


def parse(raw: bytes, report: Unreadable | None = None) -> Record | None:
    """The JSON object that a line holds, or None. Bytes that are not UTF-8 inside it come as U+FFFD."""
    try:
        value = json.loads(raw)
    except UnicodeDecodeError:
        try:
            text = raw.decode("utf-8", "replace")
            value = json.loads(text)
            if report:
                report.decoded(text, raw)
        except (ValueError, RecursionError):
            return None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def json_lines(
    source: ByteSource, report: Unreadable, keep: bytearray | None = None
) -> Iterator[tuple[int, Record]]:
    """The objects of a JSONL file with their line numbers; with `keep`, of the lines flagged there alone."""
    last = 0
    for number, raw in source.lines():
        if keep is not None and (number >= len(keep) or not keep[number]):
            continue
        record = parse(raw, report) if raw else None
        if record is not None:
            if raw and _RECALL in raw:
                report.recalled |= dict.fromkeys(recalled_in(record))
            yield number, record
        elif raw is None:
            report.add(number, f"the line is longer than {LONGEST_LINE >> 20} MB and was skipped")
        elif raw.strip() and not raw.endswith(b"\n"):
            report.cut = True
            last = number
        elif raw.strip():
            report.add(number, "not a JSON object")
    if report.cut and keep is None:
        report.add(last, "the last line is half written and was left for later")


# -- format ------------------------------------------------------------------------------------------------
# What every reader has in common: a first pass surveys the records, a second lets them speak.


class Format(ABC):
    """One client's way of writing transcripts down. Made anew for each reading.

    `survey` sees every record once, in file order; `close` then decides which lines are the conversation;
    `events` turns the records of those lines into turns, calls and results, and `contents` into the text
    that fills the model's context, tool outputs included, which is for counting alone.
    """

    client: ClassVar[str] = ""

    def __init__(self) -> None:
        self.session = Session(self.client)
        self.usage = ContextUsage()
        self.boundary: Boundary | None = None
        self.keep = bytearray()
        """One flag a line; 0 is not read in the second pass."""

    def records(
        self, source: ByteSource, report: Unreadable, keep: bytearray | None = None
    ) -> Iterator[tuple[int, Record]]:
        return json_lines(source, report, keep)

    def name(self, line: int, record: Record) -> str:
        """The id of the record's first turn."""
        return word(record.get("id")) or f"L{line}"

    def entry(self, line: int, record: Record, at: datetime | None, agent: str = "") -> EntryIds:
        """The turns of a record, a person's unless they say another speaker."""
        return EntryIds(Turn(self.name(line, record), "person", "", at, agent, line=line))

    @abstractmethod
    def survey(self, line: int, record: Record) -> None:
        """See a record once."""

    def close(self, lines: int) -> None:
        """All of it was seen; the file has so many lines."""
        self.keep = bytearray(b"\1") * (lines + 1)

    def read_to(self, id: str, line: int) -> int:
        """The line up to which the path has been read, if what was read last is `id`, on a dropped line."""
        return line

    @abstractmethod
    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        """The turns, calls and results of the records that are the conversation."""

    @abstractmethod
    def contents(self, line: int, record: Record) -> Iterator[str]:
        """The texts of a record that fill the context."""

    tells_outputs: ClassVar[bool] = False
    """Whether the client's records hold what tools printed, and `outputs` reads it."""

    def outputs(self, record: Record) -> Iterator[str]:
        """What tools printed, as a record has it, without what our own tools answered. Records are given in
        the file's order, all of them."""
        yield from ()


def joined(said: Iterable[str], own: Callable[[str], str]) -> str:
    """Several texts as one, each as `own` leaves it: without what nobody said."""
    return "\n\n".join(filter(None, map(own, said)))


class EntryIds:
    """The turns of one record, which it gives their ids: `a1`, `a1.2`, `a1.3`."""

    def __init__(self, turn: Turn) -> None:
        self._turn, self._count = turn, 0

    def next(self, **changes: Any) -> Turn:
        self._count += 1
        id = self._turn.id if self._count == 1 else f"{self._turn.id}.{self._count}"
        return replace(self._turn, id=id, **changes)

    def call(self, key: str, name: str, given: Any, cwd: str, server: str = "") -> Iterator[Event]:
        """A call of a tool; nothing for one of ours. `cwd` shortens paths."""
        if name and not ours(name, given, server):
            yield call(self.next(role="tool"), key, name, given, cwd)

    def calls(self, made: object, cwd: str) -> Iterator[Event]:
        """Calls of tools as OpenAI's API has them."""
        for one in map(table, made if isinstance(made, list) else ()):
            function = table(one.get("function"))
            given = decoded(function.get("arguments"))
            yield from self.call(word(one.get("id")), word(function.get("name")), given, cwd)

    def said(self, content: object, cwd: str) -> Iterator[Event]:
        """An assistant's words and calls of tools, in the order of their blocks."""
        for block in blocks(content):
            if block.get("type") == "text" and (text := uttered(word(block.get("text")))):
                yield self.next(role="assistant", text=text)
            elif block.get("type") in ("tool_use", "toolCall"):
                given = block.get("input", block.get("arguments"))
                yield from self.call(word(block.get("id")), word(block.get("name")), given, cwd)


class ContextGauge:
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

    def usage(self, boundary: Boundary | None, window: int | None = None) -> ContextUsage:
        """As it stands: after a compaction only what the compaction says it left counts."""
        stale = boundary is not None and boundary.line > self.line
        return ContextUsage(
            boundary.after if boundary and stale else self.last, self.peak, self.model, window
        )


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


# -- elements ----------------------------------------------------------------------------------------------
# One large JSON document, read message by message.


_decoder = json.JSONDecoder()


class JsonElements:
    """The messages of one JSON document, `[…]` or `{"messages": […], …}`, without holding the document."""

    def __init__(self, source: ByteSource, report: Unreadable) -> None:
        self._pieces, self._report = source.pieces(report), report
        self._text, self._at, self._over = "", 0, False
        self.top: Record = {}
        """Short values that stand before the messages: model, session id."""

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        try:
            if self._peek() == "{" and not self._enter():
                return
            self._take("[")
            number = 0
            while self._peek() != "]":
                if number:
                    self._take(",")
                number += 1
                yield number, self._value()
        except EOFError:
            self._report.cut = True
            self._report.add(0, "the list of messages ends in the middle")
        except (ValueError, RecursionError) as error:
            self._report.add(0, f"the list of messages cannot be read further: {error}"[:200])

    def _enter(self) -> bool:
        """Past the keys before "messages"; False where there is no such key."""
        self._take("{")
        while self._peek() == '"':
            key = self._value()
            self._take(":")
            if key == "messages" and self._peek() == "[":
                return True
            value = self._value()
            if isinstance(value, str) and len(value) < 1000 and len(self.top) < 100:
                self.top[key] = value
            if self._peek() == ",":
                self._take(",")
        self._report.add(0, "it contains no list of messages")
        return False

    def _more(self, at_least: int = CHUNK) -> bool:
        """More text, if there is any: what has been used is let go."""
        got: list[str] = [self._text[self._at :]]
        size = 0
        while size < at_least and not self._over:
            piece = next(self._pieces, None)
            self._over = piece is None
            got.append(piece or "")
            size += len(piece or "")
        self._text, self._at = "".join(got), 0
        return size > 0

    def _peek(self) -> str:
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in " \t\r\n\ufeff":
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                raise EOFError

    def _take(self, sign: str) -> None:
        if self._peek() != sign:
            raise ValueError(f"expected {sign}")
        self._at += 1

    def _value(self) -> Any:
        """The next value. What is read doubles with each try, so that a large one is not parsed often."""
        self._peek()
        while True:
            try:
                value, end = _decoder.raw_decode(self._text, self._at)
                if end < len(self._text) or self._over:
                    self._at = end
                    return value
                self._more()  # a number may go on in the next piece
            except ValueError:
                have = len(self._text) - self._at
                if have > LONGEST_LINE:
                    raise ValueError(f"a message is longer than {LONGEST_LINE >> 20} MB, or broken") from None
                if not self._more(max(CHUNK, have)):
                    raise EOFError from None
