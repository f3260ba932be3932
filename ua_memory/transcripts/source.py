"""Bytes that can be read twice, line by line or value by value, in bounded memory.

A reader goes over a transcript once to find the path of the conversation and once to read it. What cannot
seek is spooled to a temporary file; what is compressed is unpacked there. No line longer than `LONGEST_LINE`
is held, so that one pasted video does not decide how much memory a flush takes.
"""

from __future__ import annotations

import codecs
import gzip
import json
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, cast

from ua_memory.errors import Malformed
from ua_memory.records import Problem
from ua_memory.transcripts.turns import Record

LONGEST_LINE = 16 << 20
"""Bytes. Such a line may take eight times as much while it is parsed, at four bytes a letter."""
SPOOL = 4 << 20
HEAD = 64 << 10
CHUNK = 64 << 10
PROBLEMS_KEPT = 50


@dataclass(slots=True)
class Report:
    """What could not be read. `cut` says that the end is half written, which a live transcript's often is;
    `undecoded` counts what was not UTF-8, and came as U+FFFD."""

    problems: list[Problem] = field(default_factory=list)
    broken: int = 0
    cut: bool = False
    undecoded: int = 0

    def add(self, line: int, message: str) -> None:
        self.broken += 1
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(Problem("", line, message))

    def decoded(self, text: str, raw: bytes) -> None:
        """Count what came as U+FFFD and was none."""
        if "\ufffd" in text:
            self.undecoded += max(0, text.count("\ufffd") - raw.count(b"\xef\xbf\xbd"))


class Source:
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
                mend="export the session first: openclaw sessions export-trajectory, opencode export",
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

    def pieces(self, report: Report) -> Iterator[str]:
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
        raise Malformed("the transcript is compressed with zstd", mend="zstd -dc FILE | ua-memory flush -")
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
        raise Malformed(f"the compressed transcript is damaged: {error}", mend="unpack it by hand") from error
    copy.seek(0)
    return copy


def parse(raw: bytes, report: Report | None = None) -> Record | None:
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


def json_lines(source: Source, report: Report, keep: bytearray | None = None) -> Iterator[tuple[int, Record]]:
    """The objects of a JSONL file with their line numbers; with `keep`, of the lines flagged there alone."""
    last = 0
    for number, raw in source.lines():
        if keep is not None and (number >= len(keep) or not keep[number]):
            continue
        record = parse(raw, report) if raw else None
        if record is not None:
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
