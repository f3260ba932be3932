"""A conversation's turns, and the base of all readers of transcripts: what a client's own reader needs."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import shutil
import sqlite3
import subprocess
import tempfile
import urllib.parse
import weakref
import zlib
from abc import ABC, abstractmethod
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, ClassVar, Literal, NamedTuple, cast

from ua_memory import discovery
from ua_memory.errors import Malformed
from ua_memory.records import Problem
from ua_memory.text.noise import RECALL_OPEN, assistant_text, block_lines, stripped, typed_text
from ua_memory.text.patterns import late

# -- turns -------------------------------------------------------------------------------------------------


Role = Literal["person", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing that was said or done, in the order of the conversation.

    `id` is the entry's own in its client, with `.2`, `.3` … for further turns of the same entry; without one
    it is the line (`L12`) or the place in the list (`m12`), which are stable as long as the transcript is
    only appended to. `text` is verbatim for people and assistants; for a tool it is one line, `Edit
    src/foo.py: ok` (name, main argument, ok or error, a commit's subject), which ends before the colon if no
    result was recorded. `at` is aware. `agent` names the sub-agent that spoke, "" for the main one. `summary`
    marks a compaction's summary, read only where the turns that it sums up are missing. `line` counts from 1
    (lines of the file, or messages of a JSON list). `echo` has those sentences of an assistant, a line each,
    that repeat what a tool printed shortly before.
    """

    id: str
    role: Role
    text: str
    at: datetime | None = None
    agent: str = ""
    summary: bool = False
    line: int = 0
    echo: str = ""


@dataclass(frozen=True, slots=True)
class Session:
    """The session of a transcript, by its content and not its path.

    `parent` is the session (or, in pi, the file) that this one was resumed, branched or forked from. `group`
    names the group chat, '' if only the owner speaks with the agent. `title` is the client's own; it may
    change, and does not identify the session. `tags` are a program's own, for each fact that is kept of it.
    """

    client: str
    session: str = ""
    cwd: str = ""
    started: datetime | None = None
    parent: str = ""
    agent: str = ""
    group: str = ""
    title: str = field(default="", compare=False)
    tags: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Boundary:
    """The last compaction (or reset) on the conversation's path.

    A turn is still in the context if its `line` is at or after `kept`; `line` is the boundary's own. `after`
    are the tokens that it left, if it says so.
    """

    line: int
    kept: int
    after: int | None = None


@dataclass(slots=True)
class PendingCall:
    """A tool call that waits for its result, which says whether it succeeded."""

    key: str
    turn: Turn
    subject: str = ""
    commits: bool = False


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call. `subject` is a commit's, from the output; nothing else of the output is kept."""

    key: str
    error: bool
    subject: str = ""


Event = Turn | PendingCall | CallResult


class Record(dict[str, Any]):
    """One JSON object of a transcript, as its client wrote it: a value is asked for with its type."""

    @classmethod
    def of(cls, value: object) -> Record:
        """The value if it is an object, else an empty one."""
        return value if isinstance(value, Record) else cls(value if isinstance(value, dict) else {})

    def text(self, key: str) -> str:
        """The value of a key if it is text, else ""."""
        return as_str(self.get(key))

    def part(self, key: str) -> Record:
        """The value of a key if it is an object, else an empty one."""
        return Record.of(self.get(key))

    def decoded(self, key: str) -> Record:
        """The object at a key that the client keeps as JSON text, else an empty one."""
        return Record.of(decode(self.get(key)))

    def time(self, key: str) -> datetime | None:
        """The value of a key as `as_time` reads it."""
        return as_time(self.get(key))

    def blocks(self, key: str = "content") -> Iterator[Record]:
        """The blocks of a content (`turns.blocks`)."""
        return blocks(self.get(key))

    def texts(self, key: str = "content") -> Iterator[str]:
        """The texts of a content (`turns.texts`)."""
        return texts(self.get(key))

    def contents(self) -> Iterator[str]:
        """All text of its content that fills the context: words, arguments, outputs; no images or
        thinking."""
        for block in self.blocks():
            kind = block.get("type")
            if kind in _TEXT_BLOCKS:
                yield block.text("text")
            elif kind in ("tool_use", "toolCall"):
                yield block.text("name")
                yield json.dumps(block.get("input", block.get("arguments")), ensure_ascii=False)
            elif kind == "tool_result":
                yield from block.contents()

    def tokens(self, key: str) -> int:
        """The value of a key if it is a plausible number of tokens, else 0."""
        value = self.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40 else 0


def as_time(value: object) -> datetime | None:
    """A recorded time, aware: ISO text, or seconds or milliseconds since 1970; None for anything else.

    A time without an offset is taken as UTC: every client here writes UTC.
    """
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value)
            return at if at.tzinfo else at.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if abs(value) >= 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def as_str(value: object) -> str:
    """The value if it is text, else ""."""
    return value if isinstance(value, str) else ""


# -- tool calls --------------------------------------------------------------------------------------------
# A tool call becomes one line: what was done to what, and whether it succeeded, without its output. Calls of
# our own tools are recognised here and left out, so that recalled memory is not extracted again.


LONGEST_ARGUMENT = 160
LONGEST_SUBJECT = 200
_LONGEST_WAIT = 256
"""Most turns that wait for the result of a call before them."""

_PATHS = ("file_path", "path", "notebook_path", "filePath", "file")
_ARGUMENTS = (
    *_PATHS, "command", "cmd", "query", "pattern", "url", "skill", "subject", "description", "title",
    "prompt", "question", "task_id", "name", "id",
)  # fmt: skip
"""The arguments that say what a call is about; the first that exists is shown."""

_OUR_TOOLS = late(
    r"ua[-_]?mem(?:ory)?(?:[-_].*)?|archival_memory_.*|core_memory_.*|get_core_memory_blocks|"
    r"memory_search|memory_get"
)
_OUR_SHORT_NAMES = late(r"recall|retain|reflect|retire")
"""Our tools if no other server is named: others have tools of these names, too."""
_OUR_PAGES = late(r"(?:list|get|create|update|delete)_pages?|ingest(?:_file)?")
_OUR_SERVER = late(r"ua[-_]?mem|hindsight", re.IGNORECASE)
_OUR_COMMAND = late(
    r"(?:^|[;&|(`]|\n)\s*(?:(?:uvx|uv run|exec|time|command|python3? -m)\s+)?(?:\S*/)?ua[-_]memory(?:\s|$)"
)
_MEMORY_VERBS = frozenset({"view", "create", "str_replace", "insert", "delete", "rename"})

_COMMIT = late(r"\bgit\b[^;&|\n]{0,200}?\bcommit\b")
_HEREDOC = late(
    r"(?:-[a-z]*m\s*[\"']?\$\(cat\s|-F\s*-\s[^\n]{0,200}?)\s*<<-?\s*['\"]?(\w+)['\"]?[^\n]{0,200}\n\s*(.+)"
)
_MESSAGE = late(r"(?:\s-[a-z]*m\s*|--message[= ]\s*)(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)')")
_COMMITTED = late(r"^\[[^\]\n]{1,200} [0-9a-f]{7,40}\] (.+)$", re.MULTILINE)
_PATCHED = late(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


def is_ours(name: str, arguments: Any, server: str = "") -> bool:
    """Whether a call is of one of our own tools, with any client's prefix, or of our command."""
    prefix, tool = _split_name(name)
    if _OUR_SERVER.search(server or prefix) or _OUR_TOOLS.fullmatch(tool):
        return True
    given = Record.of(arguments)
    # The API's memory tool, which we serve.
    if name == "memory" and given.text("command") in _MEMORY_VERBS:
        return True
    if not prefix and not server and (_OUR_PAGES.fullmatch(tool) or _OUR_SHORT_NAMES.fullmatch(tool)):
        return True
    return bool(_OUR_COMMAND.search(command_of(given)[:20_000]))


def _split_name(name: str) -> tuple[str, str]:
    """Server and tool of a name: `mcp__s__t` (Claude Code, Codex, pi), `mcp_s_t` (Gemini), `s__t` (OpenClaw),
    and ours as `ua-memory_t` (OpenCode)."""
    if "__" in name:
        prefix, _, tool = name.rpartition("__")
        return prefix.removeprefix("mcp__"), tool
    if name.startswith("mcp_"):
        for tool in ("memory_search", "memory_get", "archival_memory_insert", "archival_memory_search"):
            if name.endswith("_" + tool):
                return name[4 : -len(tool) - 1], tool
    if name.startswith("ua-memory_"):
        return "ua-memory", name.removeprefix("ua-memory_")
    return "", name


def command_of(arguments: Record) -> str:
    """The shell command of a call, "" if it has none. A list is an argv; of `bash -lc X` it is X."""
    command = arguments.get("command", arguments.get("cmd"))
    if isinstance(command, list):
        words = [part for part in command if isinstance(part, str)]
        return words[-1] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)
    return as_str(command)


def pending_call(turn: Turn, key: str, name: str, arguments: Any, cwd: str) -> PendingCall:
    """A call as a turn without its result. `turn` has all but the text; `cwd` shortens paths."""
    given = Record.of(arguments)
    command = command_of(given)[:50_000]
    commits = bool(_COMMIT.search(command))
    line = f"{stripped(name)[:80]} {_main_argument(given, arguments, command, cwd)}".strip()
    return PendingCall(key, replace(turn, text=line), commit_subject(command) if commits else "", commits)


def _main_argument(given: dict[str, Any], arguments: Any, command: str, cwd: str) -> str:
    if isinstance(arguments, str):  # apply_patch and other free-form tools
        return _one_line(", ".join(_PATCHED.findall(arguments)[:5]) or arguments)
    for key in _ARGUMENTS:
        value = command if key in ("command", "cmd") else given.get(key)
        if isinstance(value, str) and value.strip():
            if key in _PATHS and cwd and value.startswith(cwd.rstrip("/") + "/"):
                value = value[len(cwd.rstrip("/")) + 1 :]
            return _one_line(value)
    return _one_line(next((v for v in given.values() if isinstance(v, str) and v.strip()), ""))


def _one_line(text: str) -> str:
    first, _, rest = stripped(text[:20_000]).partition("\n")
    line = " ".join(first.split())
    if len(line) > LONGEST_ARGUMENT or rest:
        line = line[:LONGEST_ARGUMENT].rstrip() + " …"
    return line


def commit_subject(command: str) -> str:
    """The subject of a commit as the command gives it; those of several commits joined by ` / `."""
    subjects = [found[2] for found in _HEREDOC.finditer(command)]
    if not subjects:
        for piece in re.split(r"(?=\bcommit\b)", command)[1:]:
            if found := _MESSAGE.search(piece):
                subjects.append((found[1] or found[2] or "").partition("\n")[0].replace('\\"', '"'))
    return " / ".join(s for one in subjects if (s := stripped(one)[:LONGEST_SUBJECT]))


def git_subject(output: str) -> str:
    """The subjects in git's output, `[main 1a2b3c4] Subject`, for commands that do not give them."""
    return " / ".join(stripped(one)[:LONGEST_SUBJECT] for one in _COMMITTED.findall(output[:20_000])[:5])


def decode(arguments: Any) -> Any:
    """Arguments that a client keeps as JSON text, parsed; other text unchanged."""
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict) else arguments


def settle(events: Iterable[Event]) -> Iterator[Turn]:
    """Turns in order, each call with its result.

    A call whose result is missing, or comes after many more turns, is shown without one.
    """
    queue: deque[Turn | PendingCall] = deque()
    waiting: dict[str, PendingCall] = {}
    for event in events:
        if isinstance(event, CallResult):
            if found := waiting.pop(event.key, None):
                _add_result(found, event)
        else:
            queue.append(event)
            if isinstance(event, PendingCall):
                waiting[event.key] = event
        while queue and (len(queue) > _LONGEST_WAIT or _is_ready(queue[0], waiting)):
            first = queue.popleft()
            if isinstance(first, PendingCall) and waiting.get(first.key) is first:
                del waiting[first.key]
            yield _turn_of(first)
    for left in queue:
        yield _turn_of(left)


def _is_ready(one: Turn | PendingCall, waiting: dict[str, PendingCall]) -> bool:
    return isinstance(one, Turn) or waiting.get(one.key) is not one


def _turn_of(one: Turn | PendingCall) -> Turn:
    return one if isinstance(one, Turn) else one.turn


def _add_result(found: PendingCall, result: CallResult) -> None:
    text = f"{found.turn.text}: {'error' if result.error else 'ok'}"
    subject = found.subject or result.subject
    if found.commits and subject and not result.error:
        text += f"; commit: {subject}"
    found.turn = replace(found.turn, text=text)


# -- tree --------------------------------------------------------------------------------------------------
# The lines of a transcript that are the conversation: the path from the last leaf to the root.
#
# Clients append to one file, and each entry names its parent, so that going back makes a branch. An entry
# takes three numbers of eight bytes: a million entries take 25 MB (ids in a dict took five times that).


_NONE = 0
_MISSED_PARENTS = 32
"""After so many parents that are not in the file, only nearby entries are searched for others."""


def id_hash(text: str) -> int:
    """A non-zero number for an id, unique within this process."""
    return (hash(text) & 0xFFFF_FFFF_FFFF_FFFF) or 1


class Tree:
    """Entries in file order: ids, parents and lines."""

    def __init__(self) -> None:
        self._ids, self._parents, self._lines = array("Q"), array("Q"), array("Q")
        self._group_of = array("Q")
        self._misses = 0
        self.flags = bytearray()

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, id: str, parent: str, line: int, group: str = "", follows: bool = False) -> int:
        """Add an entry and return its number. `group` is the API message it belongs to.

        With `follows` an entry without a parent continues the one above it instead of starting a new root.
        """
        self._ids.append(id_hash(id))
        before = self._ids[-2] if follows and not parent and len(self._ids) > 1 else _NONE
        self._parents.append(id_hash(parent) if parent else before)
        self._lines.append(line)
        self._group_of.append(id_hash(group) if group else _NONE)
        return len(self._ids) - 1

    def walk(self, leaf: int) -> None:
        """Flag the path from this entry to the root in `flags`: 1 for entries on it, 2 for others of the same
        API message.

        Parallel tool calls are written as a chain of records of one message, each result below its own call:
        the path runs through one of them. (Measured on the shared Claude Code transcripts: 4 calls and 26
        results.)
        """
        self.flags = bytearray(len(self._ids))
        at = leaf
        while at >= 0:
            self.flags[at] = 1
            at = self._parent(at)
        current = _NONE
        for number, group in enumerate(self._group_of):
            if self.flags[number]:
                current = group or current
            elif group and group == current:
                self.flags[number] = 2

    def _parent(self, child: int) -> int:
        """The parent of an entry, which is always above it; -1 at the root.

        If the parent is not found (its line is broken, or in another file), the entry directly above is used:
        a turn of a dropped branch is better than the loss of everything before.
        """
        want = self._parents[child]
        if want == _NONE or child == 0:
            return -1
        if self._ids[child - 1] == want:
            return child - 1
        lowest = -1 if self._misses < _MISSED_PARENTS else max(-1, child - 1000)
        at = child - 2
        while at > lowest and self._ids[at] != want:
            at -= 1
        if at > lowest:
            return at
        self._misses += 1
        return child - 1

    def find(self, id: str) -> int:
        """The number of the entry with this id, the last one if there are several; -1 if there is none."""
        want = id_hash(id)
        try:
            at = self._ids.index(want)
        except ValueError:
            return -1
        return next(n for n in range(len(self._ids) - 1, at - 1, -1) if self._ids[n] == want)

    def line(self, number: int) -> int:
        return self._lines[number] if number >= 0 else 0

    def last_read(self, id: str) -> int:
        """The line up to which the conversation has been read, if `id` was the last entry.

        For an entry on a dropped branch it is where that branch leaves the path. 0 if `id` is unknown.
        """
        at = self.find(id)
        while at >= 0 and not self.flags[at]:
            at = self._parent(at)
        return self.line(at)

    def flag_lines(self, keep: bytearray) -> None:
        """Flag the lines of the path."""
        for number, on in enumerate(self.flags):
            if on:
                keep[self._lines[number]] = 1


# -- source ------------------------------------------------------------------------------------------------
# Bytes that can be read twice in bounded memory: a first pass finds the path of the conversation, a second
# reads it. Streams that cannot seek are spooled to a temporary file, compressed ones unpacked there. Lines
# longer than `LONGEST_LINE` are skipped, so that one pasted video does not use up the memory.


LONGEST_LINE = 16 << 20
"""Most bytes of a line, which may take eight times as much while it is parsed, at four bytes a letter."""
SPOOL = 4 << 20
HEAD = 64 << 10
CHUNK = 64 << 10
LISTED_PROBLEMS = 50
_RECALL = RECALL_OPEN.encode()


@dataclass(slots=True)
class Unreadable:
    """What could not be read. `cut`: the last line is half written, as in many live transcripts; `undecoded`
    counts bytes that are not UTF-8, which become U+FFFD."""

    problems: list[Problem] = field(default_factory=list)
    broken: int = 0
    cut: bool = False
    undecoded: int = 0
    recalled: dict[str, None] = field(default_factory=dict)
    """The lines of recalled memory, each once, in order."""

    def add(self, line: int, message: str) -> None:
        self.broken += 1
        if len(self.problems) < LISTED_PROBLEMS:
            self.problems.append(Problem("", line, message))

    def count_undecoded(self, text: str, raw: bytes) -> None:
        """Count the U+FFFD in a text that are not in its bytes."""
        if "\ufffd" in text:
            self.undecoded += max(0, text.count("\ufffd") - raw.count(b"\xef\xbf\xbd"))


class ByteSource:
    """A transcript's bytes from the stream's position on, readable several times, one pass at a time."""

    def __init__(self, stream: IO[bytes], lines_before: int = 0) -> None:
        self._stream, self._start = _readable_again(stream)
        self._lines_before = lines_before
        if self._stream is not stream:  # the copy is ours to close
            weakref.finalize(self, self._stream.close)
        self._end: int | None = None
        self.head = self._stream.read(HEAD)
        self.start = self.head
        """The bytes by which the client is detected: the head, or what follows its line if that is long."""
        if not self.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
            self.start = self._after_first_line()
        if self.head.startswith(b"SQLite format 3"):
            hint = "export the session first: openclaw sessions export-trajectory, opencode export"
            raise Malformed("this is an SQLite database, not a transcript", hint=hint)

    def freeze(self) -> None:
        """Have later passes end here: a live transcript may grow in between."""
        self._end = self._stream.tell()

    def _after_first_line(self) -> bytes:
        if len(self.head) < HEAD or b"\n" in self.head:
            return self.head
        end = b""
        while more := self._stream.readline(CHUNK):
            end = (end + more)[-CHUNK:]
            if more.endswith(b"\n"):
                return end + self._stream.read(HEAD)
        return self.head

    def lines(self) -> Iterator[tuple[int, bytes | None]]:
        """Number and bytes of each line, newline included; None for a line that is too long."""
        self._stream.seek(self._start)
        left = None if self._end is None else self._end - self._start
        number = self._lines_before
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
        """The text in pieces of at most `CHUNK` bytes."""
        self._stream.seek(self._start)
        left = None if self._end is None else self._end - self._start
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while left is None or left > 0:
            data = self._stream.read(CHUNK if left is None else min(CHUNK, left))
            if not data:
                break
            left = None if left is None else left - len(data)
            text = decoder.decode(data)
            report.count_undecoded(text, data)
            yield text
        yield decoder.decode(b"", final=True)


def _readable_again(stream: IO[bytes]) -> tuple[IO[bytes], int]:
    """A stream that can be read again (itself, or a spooled copy), and its start."""
    start = 0
    if _seekable(stream):
        readable, start = stream, stream.tell()
    else:
        readable = _spool(stream)
    for read in (_decompressed, _as_utf8):
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


def _decompressed(stream: IO[bytes], magic: bytes) -> IO[bytes] | None:
    """The content of a compressed stream; None for any other."""
    if magic[:2] == b"\x1f\x8b":
        return cast(IO[bytes], gzip.GzipFile(fileobj=stream))
    if magic == b"\x28\xb5\x2f\xfd":
        # The standard library reads zstd from Python 3.14 on only, and no dependency of ours does.
        raise Malformed("the transcript is compressed with zstd", hint="zstd -dc FILE | ua-memory flush -")
    return None


def _as_utf8(stream: IO[bytes], magic: bytes) -> IO[bytes] | None:
    """UTF-16 with a byte order mark, as PowerShell and Notepad write it, as UTF-8; None for any other."""
    if magic[:2] not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return None
    return cast(IO[bytes], codecs.EncodedFile(stream, "utf-8", "utf-16", "replace"))


def _spool(stream: IO[bytes]) -> IO[bytes]:
    copy = cast(IO[bytes], tempfile.SpooledTemporaryFile(max_size=SPOOL))  # noqa: SIM115
    try:
        while data := stream.read(1 << 20):
            copy.write(data)
    except EOFError:
        pass  # a truncated archive is read as far as it goes, as any half-written transcript
    except (gzip.BadGzipFile, zlib.error) as error:
        copy.close()
        raise Malformed(f"the compressed transcript is damaged: {error}", hint="unpack it by hand") from error
    copy.seek(0)
    return copy


def recalled_lines(value: object) -> Iterator[str]:
    """The lines of recalled memory in all texts of a JSON value, also in JSON within a text, as from
    hooks."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from recalled_lines(part)
    elif isinstance(value, str) and RECALL_OPEN in value:
        inner = parse_object(value.encode("utf-8", "replace")) if value.lstrip().startswith("{") else None
        yield from recalled_lines(inner) if inner else block_lines(value)


def parse_object(raw: bytes, report: Unreadable | None = None) -> Record | None:
    """The JSON object in a line, or None. Bytes that are not UTF-8 become U+FFFD."""
    try:
        try:
            value = json.loads(raw)
        except UnicodeDecodeError:
            text = raw.decode("utf-8", "replace")
            value = json.loads(text)
            if report:
                report.count_undecoded(text, raw)
    except (ValueError, RecursionError):
        return None
    return Record(value) if isinstance(value, dict) else None


def json_lines(
    source: ByteSource, report: Unreadable, keep: bytearray | None = None
) -> Iterator[tuple[int, Record]]:
    """The objects of a JSONL file with their line numbers; with `keep` only of the lines flagged there."""
    last = 0
    for number, raw in source.lines():
        if keep is not None and (number >= len(keep) or not keep[number]):
            continue
        record = parse_object(raw, report) if raw else None
        if record is not None:
            if raw and _RECALL in raw:
                report.recalled |= dict.fromkeys(recalled_lines(record))
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


class Format(ABC):
    """The reader of one client's transcripts, made anew for each reading.

    `survey` gets every record once, in file order; `close` then decides which lines are the conversation;
    `events` turns the records of those lines into turns, calls and results, and `contents` into the text that
    fills the model's context, tool outputs included, which is for counting alone.
    """

    client: ClassVar[str] = ""
    long_line: ClassVar[re.Pattern[str] | None] = None
    """What is found in the beginning of its lines, for those that are too long to be parsed."""

    @classmethod
    def wrote(cls, record: Record, records: list[Record]) -> bool:
        """Whether a record is of this client; `records` are the first ones of the transcript."""
        return False

    def __init__(self) -> None:
        self.session = Session(self.client)
        self.context_size: int | None = None
        """Tokens of the last reply's input (cached or not) and output; None if no reply reported any, or
        after a compaction that does not say what it left."""
        self.boundary: Boundary | None = None
        self.keep = bytearray()
        """A flag for each line; lines with 0 are not read in the second pass."""

    def records(
        self, source: ByteSource, report: Unreadable, keep: bytearray | None = None
    ) -> Iterator[tuple[int, Record]]:
        return json_lines(source, report, keep)

    def name(self, line: int, record: Record) -> str:
        """The id of the record's first turn."""
        return record.text("id") or f"L{line}"

    def entry(self, line: int, record: Record, at: datetime | None, agent: str = "") -> EntryIds:
        """The turns of a record; the speaker is a person unless said otherwise."""
        return EntryIds(Turn(self.name(line, record), "person", "", at, agent, line=line))

    def typed(self, entry: EntryIds, said: Iterable[str]) -> Iterator[Event]:
        """What a person typed. A sub-agent's user is the main agent."""
        if text := join_texts(said, typed_text):
            yield entry.next(text=text, role="assistant" if self.session.agent else "person")

    @abstractmethod
    def survey(self, line: int, record: Record) -> None:
        """Look at a record in the first pass."""

    def close(self, lines: int) -> None:
        """End the first pass; the file has so many lines."""
        self.keep = bytearray(b"\1") * (lines + 1)

    def read_to(self, id: str, line: int) -> int:
        """The line up to which the path has been read, if the last entry read is `id`, on a dropped line."""
        return line

    @abstractmethod
    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        """The turns, calls and results of the records on the path."""

    @abstractmethod
    def contents(self, line: int, record: Record) -> Iterator[str]:
        """The texts of a record that fill the context."""

    tells_outputs: ClassVar[bool] = False
    """Whether `outputs` can read tools' outputs from this client's records."""

    def outputs(self, record: Record) -> Iterator[str]:
        """The tools' outputs in a record, without those of our own tools. Called with all records in file
        order."""
        yield from ()


def join_texts(said: Iterable[str], own: Callable[[str], str]) -> str:
    """Several texts as one, each cleaned by `own`."""
    return "\n\n".join(filter(None, map(own, said)))


class EntryIds:
    """The turns of one record, with the ids `a1`, `a1.2`, `a1.3`."""

    def __init__(self, turn: Turn) -> None:
        self._turn, self._count = turn, 0

    def next(self, **changes: Any) -> Turn:
        self._count += 1
        id = self._turn.id if self._count == 1 else f"{self._turn.id}.{self._count}"
        return replace(self._turn, id=id, **changes)

    def call(self, key: str, name: str, given: Any, cwd: str, server: str = "") -> Iterator[Event]:
        """A tool call; nothing for our own tools. `cwd` shortens paths."""
        if name and not is_ours(name, given, server):
            yield pending_call(self.next(role="tool"), key, name, given, cwd)

    def calls(self, made: object, cwd: str) -> Iterator[Event]:
        """Tool calls as OpenAI's API has them."""
        for one in map(Record.of, made if isinstance(made, list) else ()):
            function = one.part("function")
            given = decode(function.get("arguments"))
            yield from self.call(one.text("id"), function.text("name"), given, cwd)

    def said(self, message: Record, cwd: str) -> Iterator[Event]:
        """An assistant's texts and tool calls, in the order of their blocks."""
        for block in message.blocks():
            if block.get("type") == "text" and (text := assistant_text(block.text("text"))):
                yield self.next(role="assistant", text=text)
            elif block.get("type") in ("tool_use", "toolCall"):
                given = block.get("input", block.get("arguments"))
                yield from self.call(block.text("id"), block.text("name"), given, cwd)


def call_result(key: str, failed: bool, content: object = "") -> CallResult:
    """The result of a call with this content."""
    return CallResult(key, failed, git_subject("\n".join(texts(content))))


class ContextGauge:
    """Collects the context sizes that replies report, each API message once."""

    def __init__(self) -> None:
        self.line = 0
        self.last: int | None = None

    def add(self, line: int, total: int) -> None:
        """Record a reply's total size. 0 is ignored (aborted, failed); repeats of a reply are equal or
        grow."""
        if total:
            self.line, self.last = line, total

    def size(self, boundary: Boundary | None) -> int | None:
        """The last size; after a compaction what that says it left."""
        return boundary.after if boundary and boundary.line > self.line else self.last


def claude_usage(usage: Record) -> int:
    """Input, cache creation, cache read and output of a reply, as the Anthropic API reports them."""
    keys = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    return sum(usage.tokens(key) for key in keys)


def blocks(content: object) -> Iterator[Record]:
    """The blocks of a message's content; a plain text is one block of text."""
    listed = [content] if isinstance(content, str) else content if isinstance(content, list) else []
    for block in listed:
        if isinstance(block, str):
            yield Record(type="text", text=block)
        elif isinstance(block, dict):
            yield Record.of(block)


def texts(content: object) -> Iterator[str]:
    """The texts of a content, with any client's type of text block."""
    for block in blocks(content):
        if block.get("type") in _TEXT_BLOCKS and isinstance(block.get("text"), str):
            yield block["text"]


_TEXT_BLOCKS = ("text", "input_text", "output_text")


# -- JSON documents ----------------------------------------------------------------------------------------


_DECODER = json.JSONDecoder()


class JsonElements:
    """The messages of one JSON document, `[…]` or `{"messages": […], …}`, read one by one."""

    def __init__(self, source: ByteSource, report: Unreadable) -> None:
        self._pieces, self._report = source.pieces(report), report
        self._text, self._at, self._at_end = "", 0, False
        self.top = Record()
        """Short values before the messages: model, session id."""

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        try:
            if self._peek() == "{" and not self._skip_to_messages():
                return
            self._expect("[")
            number = 0
            while self._peek() != "]":
                if number:
                    self._expect(",")
                number += 1
                yield number, self._value()
        except EOFError:
            self._report.cut = True
            self._report.add(0, "the list of messages ends in the middle")
        except (ValueError, RecursionError) as error:
            self._report.add(0, f"the list of messages cannot be read further: {error}"[:200])

    def _skip_to_messages(self) -> bool:
        """Skip the keys before "messages"; False if there is no such key."""
        self._expect("{")
        while self._peek() == '"':
            key = self._value()
            self._expect(":")
            if key == "messages" and self._peek() == "[":
                return True
            value = self._value()
            if isinstance(value, str) and len(value) < 1000 and len(self.top) < 100:
                self.top[key] = value
            if self._peek() == ",":
                self._expect(",")
        self._report.add(0, "it contains no list of messages")
        return False

    def _read_more(self, at_least: int = CHUNK) -> bool:
        """Read more text and drop what was used; whether there was any."""
        got: list[str] = [self._text[self._at :]]
        size = 0
        while size < at_least and not self._at_end:
            piece = next(self._pieces, None)
            self._at_end = piece is None
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
            if not self._read_more():
                raise EOFError

    def _expect(self, sign: str) -> None:
        if self._peek() != sign:
            raise ValueError(f"expected {sign}")
        self._at += 1

    def _value(self) -> Any:
        """The next value. The text read doubles with each attempt, so that a large value is not parsed
        often."""
        self._peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
                if end < len(self._text) or self._at_end:
                    self._at = end
                    return value
                self._read_more()  # a number may go on in the next piece
            except ValueError:
                have = len(self._text) - self._at
                if have > LONGEST_LINE:
                    raise ValueError(f"a message is longer than {LONGEST_LINE >> 20} MB, or broken") from None
                if not self._read_more(max(CHUNK, have)):
                    raise EOFError from None


# -- databases -----------------------------------------------------------------------------------------------


@contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open another program's database without writing to it or its log. OSError if it cannot be read."""
    discovery.open_regular(path).close()  # SQLite would wait for somebody at the other end of a pipe
    name = urllib.parse.quote(str(path))
    for how in ("mode=ro", "mode=ro&immutable=1"):  # a log that may not be opened is left aside
        try:
            with closing(sqlite3.connect(f"file:{name}?{how}", uri=True)) as there:
                there.execute("SELECT name FROM sqlite_master LIMIT 1").fetchall()
                there.row_factory = sqlite3.Row
                try:
                    yield there
                except sqlite3.Error as error:
                    raise OSError(0, str(error), str(path)) from error
                return
        except sqlite3.Error:
            continue
    raise OSError(0, "not a readable SQLite database", str(path))


class Database(NamedTuple):
    """How a client has its sessions in a database.

    `tables` are those by which it is recognised; `query` gives its sessions: id, time of the last message and
    the automatic speaker or ''. `lines` gives those of a session as the reader parses them, `speakers`
    {session id: its automatic speaker}, where the tables of the database tell more than the query.
    """

    tables: set[str]
    query: str
    lines: Callable[[sqlite3.Connection, str], Iterator[bytes]]
    speakers: Callable[[sqlite3.Connection, set[str]], dict[str, str]] = lambda _, tables: {}


def rows_of(there: sqlite3.Connection, query: str, values: Sequence[object] = ()) -> list[dict[str, Any]]:
    return [dict(row) for row in there.execute(query, values)]


def as_line(row: dict[str, Any]) -> bytes:
    return json.dumps(row, default=lambda value: None).encode()


UNPACK_TIMEOUT = 60


def unpack_zstd(packed: bytes) -> bytes:
    """Decompress one or more zstd frames. Malformed, also if the command `zstd` is missing."""
    command = shutil.which("zstd")
    if not command:
        raise Malformed("it is packed with zstd, which is not installed", hint="install zstd")
    try:
        done = subprocess.run([command, "-dc"], input=packed, capture_output=True, timeout=UNPACK_TIMEOUT)
    except (OSError, subprocess.SubprocessError) as error:
        raise Malformed(f"zstd: {error}") from error
    if done.returncode:
        raise Malformed(f"it is packed and damaged: {done.stderr.decode('utf-8', 'replace').strip()}")
    return done.stdout
