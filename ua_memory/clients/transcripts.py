"""Transcripts: finds them on this machine, detects their client, gives the turns, removes recalled memory."""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from ua_memory import clients, discovery
from ua_memory.clients import turns
from ua_memory.clients.messages import Markdown, Messages, Prose, is_conversation, is_markdown
from ua_memory.clients.openclaw import ARCHIVES, index_speakers
from ua_memory.clients.settings import folders
from ua_memory.errors import Malformed, NotFound, UaMemoryError, Usage
from ua_memory.paths import Surroundings
from ua_memory.records import Problem
from ua_memory.text import grounding
from ua_memory.text.noise import RECALL_CLOSE, RECALL_OPEN
from ua_memory.text.redaction import change_texts
from ua_memory.text.wording import main_clauses

# -- detecting the client ----------------------------------------------------------------------------------
# By content, since a pipe has no file name.


CLIENTS = clients.load()
_OF_CLIENTS = [format for client in CLIENTS.values() for format in client.formats]
_OTHERS: tuple[type[turns.Format], ...] = (Messages, Markdown, Prose)
FORMATS = {format.client: format for format in (*_OF_CLIENTS, *_OTHERS)}
_CLIENTS_HINT = f"known clients: {', '.join(FORMATS)}"
_DETECTED: tuple[type[turns.Format], ...] = (*reversed(_OF_CLIENTS), Messages)
"""In the order they are asked: OpenClaw's are pi's, too, and Claude Code has the most kinds of records."""

_SNIFFED_LINES = 50
_OBJECT = re.compile(r'\{\s*(?:"|\}|$)')
_KEY = re.compile(r',\s*"\w+"\s*:')
_RECORD = re.compile(r'\s*\{\s*"')


def sniff(head: bytes) -> str:
    """Detect the client: one of `FORMATS`, from the first bytes of a transcript (64 KB suffice).

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
    records = [record for line in lines if (record := turns.parse_object(line.encode("utf-8", "replace")))]
    for record in records:
        for format in _DETECTED:
            if format.wrote(record, records):
                return format.client
    for part in (text, *lines):
        for format in _DETECTED:
            if format.long_line and format.long_line.search(part):
                return format.client
    raise Malformed("this is JSON, but not a transcript of a known client", hint=_CLIENTS_HINT)


def _mostly_objects(lines: list[str]) -> bool:
    """Whether most lines are JSON objects though the first is not: it is damaged or truncated, as by `tail`.
    A person's text that quotes a record is not."""
    looks = sum(_RECORD.match(line) is not None for line in lines)
    first = lines[0].rstrip() if lines and not _RECORD.match(lines[0]) else ""
    cut = first.endswith("}")
    rest = cut and first.count("}") > first.count("{") and _KEY.search(first) is not None
    return (looks > 0 or rest) and 2 * (looks + cut) > len(lines)


# -- reading -----------------------------------------------------------------------------------------------


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

    def __init__(self, source: turns.ByteSource, format: turns.Format, since: Collection[str]) -> None:
        self._source, self._format = source, format
        report = turns.Unreadable()
        bases = {*since, *(part[1] for id in since if (part := _PART_ID.match(id)))}
        found: dict[str, int] = {}
        last = 0
        for last, record in format.records(source, report):
            format.survey(last, record)
            if bases and (name := format.name(last, record)) in bases:
                found[name] = last
        source.freeze()
        format.close(last)
        self.session: turns.Session = format.session
        self.context_size: int | None = format.context_size
        self.boundary: turns.Boundary | None = format.boundary
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

    def __iter__(self) -> Iterator[turns.Turn]:
        """The turns after `since`, in the order of the conversation."""
        outputs: deque[str] = deque()
        for turn in turns.settle(self._format.events(self._records_with_outputs(outputs))):
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
        for _, record in self._format.records(self._source, turns.Unreadable()):
            yield from filter(None, self._format.outputs(record))

    def _records_with_outputs(self, outputs: deque[str]) -> Iterator[tuple[int, turns.Record]]:
        """The records of the conversation; `outputs` is filled with the latest tool outputs, normalised."""
        size = 0
        for line, record in self._path_records():
            for text in self._format.outputs(record):
                outputs.append(grounding.words_only(text[:LONGEST_OUTPUT]))
                size += len(outputs[-1])
            while size > MOST_OUTPUT:
                size -= len(outputs.popleft())
            yield line, record

    def _path_records(self) -> Iterator[tuple[int, turns.Record]]:
        keep = self._format.keep
        for line, record in self._format.records(self._source, turns.Unreadable(), keep):
            if line < len(keep) and keep[line]:
                yield line, record


LONGEST_OUTPUT, MOST_OUTPUT = 32 << 10, 256 << 10
"""Most characters of one output, and of the latest ones, that an assistant's text is compared with."""


def _with_echo_of(turn: turns.Turn, outputs: Collection[str]) -> turns.Turn:
    source = "\n".join(outputs)
    echo = [one.strip() for one in main_clauses(turn.text) if grounding.mostly_repeats(one, source)]
    return replace(turn, echo="\n".join(echo)) if echo else turn


def read(
    stream: IO[bytes], *, client: str | None = None, since: str | Collection[str] | None = None,
    lines_before: int = 0,
) -> TranscriptReading:  # fmt: skip
    """Read a transcript from where the stream stands. The stream must stay open while the reading is used.

    `client` is one of `FORMATS`, or None to detect it. `since` has the id, or the ids, of the last turn that
    was read before: only later turns on the conversation's path are given. A transcript's tail has so many
    `lines_before` it, since turns without an id are named by their line. Usage for an unknown client,
    Malformed for data that is no transcript; lines that cannot be read are problems.
    """
    if client is not None and client not in FORMATS:
        raise Usage(f"no reader for transcripts of {client!r}", hint=_CLIENTS_HINT)
    source = turns.ByteSource(stream, lines_before)
    ids = (since,) if isinstance(since, str) else tuple(since or ())
    return TranscriptReading(source, FORMATS[client or sniff(source.start)](), ids)


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
    if client not in FORMATS or not FORMATS[client].tells_outputs:
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


# -- finding transcripts -----------------------------------------------------------------------------------


READABLE_CLIENTS = [client for client, known in CLIENTS.items() if known.transcripts]
"""The clients whose transcripts can be read."""
DATABASE_SUFFIXES = (".db", ".sqlite", ".sqlite3")
LINE_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst")
SNIFFED_BYTES = 64 << 10
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
MEMORY_LIMIT = 4 << 20
"""Bytes of a session in memory; a longer one is written to a temporary file."""
SpeakersByFolder = dict[Path, dict[str, str]]
"""{folder: {session id: its automatic speaker}}, for sessions without a person."""


def session_folders(call: Surroundings, clients: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """(client, folder) of the existing folders of these clients."""
    for client in clients:
        yield from ((client, folder) for folder in folders(call, CLIENTS[client].homes) if folder.is_dir())


def folder_names(call: Surroundings, clients: Iterable[str]) -> list[str]:
    """The existing folders of these clients, or of all, with `~` for the home folder."""
    home, found = call.home, session_folders(call, clients or READABLE_CLIENTS)
    each = dict.fromkeys(folder for _, folder in found)
    return [f"~/{one.relative_to(home)}" if one.is_relative_to(home) else str(one) for one in each]


def require_readable(clients: Iterable[str]) -> None:
    """Raise Usage if a client's transcripts cannot be read."""
    unknown = set(clients) - set(READABLE_CLIENTS)
    if "gemini" in unknown:
        what = "Gemini CLI's transcripts are not read: hooks capture its sessions as they happen"
        raise Usage(what, hint="ua-memory install gemini")
    if unknown:
        raise Usage(f"unknown client {min(unknown)!r}", hint=f"known clients: {', '.join(READABLE_CLIENTS)}")


def all_transcripts(call: Surroundings, clients: Iterable[str]) -> Iterator[Transcript]:
    """All transcripts in the folders of these clients."""
    indexes: SpeakersByFolder = {}
    for client, home in session_folders(call, clients):
        for pattern in CLIENTS[client].transcripts:
            for path in sorted(home.glob(pattern)):
                yield from _file_transcripts(path, client, indexes)


def transcripts_in(root: Path) -> Iterator[Transcript]:
    """All files below a folder that may be transcripts, or the file that `root` is. NotFound."""
    if not root.exists():
        hint = "give a folder with transcripts, or leave it out"
        raise NotFound("no such file or folder", where=str(root), hint=hint)
    indexes: SpeakersByFolder = {}
    if not root.is_dir():
        yield from _file_transcripts(root, None, indexes)
    for folder, names, files in os.walk(root):  # which is empty for a file
        names.sort()
        for name in sorted(files):
            archived = any(part in name for part in ARCHIVES)
            if archived or name.endswith((*LINE_SUFFIXES, *DATABASE_SUFFIXES)):
                yield from _file_transcripts(Path(folder, name), None, indexes)


def _file_transcripts(path: Path, client: str | None, indexes: SpeakersByFolder) -> Iterator[Transcript]:
    """The transcripts in a file: one, or each session of a database."""
    try:
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:  # deleted meanwhile
        return
    if path.name.endswith(DATABASE_SUFFIXES):
        try:
            yield from database_sessions(path)
        except OSError:
            yield Transcript(str(path), client, changed, _opener(path))  # opening it reports the error
    elif not path.is_dir() and not path.name.endswith((".lock", ".json")):
        machine = _session_speaker(path, indexes) if client in (None, "openclaw") else ""
        machine = machine or ("sub-agent" if "subagents" in path.parts else "")
        yield Transcript(str(path), _detect_reader(path, client), changed, _opener(path), machine)


def _detect_reader(path: Path, client: str | None) -> str | None:
    """The client whose reader parses a file. In OpenClaw's folder, files in pi's format are Clawdbot's."""
    if client != "openclaw":
        return client
    try:
        with discovery.open_regular(path) as file:
            return {"pi": "clawdbot"}.get(sniff(file.read(SNIFFED_BYTES)))
    except (OSError, UaMemoryError):
        return None


def _session_speaker(path: Path, indexes: SpeakersByFolder) -> str:
    """The automatic speaker of an OpenClaw session file, by the `sessions.json` beside it; else ''."""
    if path.parent not in indexes:
        try:
            index = json.loads(discovery.read(path.parent / "sessions.json"))
        except (OSError, ValueError, RecursionError):
            index = None
        indexes[path.parent] = index_speakers(index)
    return indexes[path.parent].get(path.name.partition(".jsonl")[0].partition("-topic-")[0], "")


def _opener(path: Path) -> Callable[[], AbstractContextManager[IO[bytes]]]:
    @contextmanager
    def opened() -> Iterator[IO[bytes]]:
        with discovery.open_regular(path) as file:
            packed = file.read(4) == ZSTD_MAGIC
            file.seek(0)
            yield io.BytesIO(turns.unpack_zstd(file.read())) if packed else file

    return opened


def database_sessions(path: Path) -> list[Transcript]:
    """The sessions in a database; [] if it is of no known client. OSError if it cannot be read."""
    with turns.open_database(path) as there:
        names = {str(row["name"]) for row in turns.rows_of(there, "SELECT name FROM sqlite_master")}
        for name, client in reversed(CLIENTS.items()):
            database = client.database
            if database and database.tables <= names:
                speakers, found = database.speakers(there, names), []
                for row in turns.rows_of(there, database.query):
                    id, at = str(row["id"]), datetime.fromtimestamp(float(row["at"] or 0), UTC)
                    where, lines = f"{path} session {id}", partial(_open_session, path, database, id)
                    machine = row["machine"] or speakers.get(id, "")
                    found.append(Transcript(where, name, at, lines, machine))
                return found
    return []


@contextmanager
def _open_session(path: Path, database: turns.Database, session: str) -> Iterator[IO[bytes]]:
    """Open the lines of a session in a database. OSError; Malformed if they cannot be decompressed."""
    with turns.open_database(path) as there, tempfile.SpooledTemporaryFile(max_size=MEMORY_LIMIT) as lines:
        for row in database.lines(there, session):
            lines.write(row + b"\n")
        lines.seek(0)
        yield cast(IO[bytes], lines)


# -- pruning recalled memory -------------------------------------------------------------------------------
# Remove recalled memory from the lines of a client's session file.
#
# pi stores messages of extensions as entries with a `customType`, Claude Code the output of hooks as
# attachments, Codex as messages of the role `developer`. Only these are changed: our markers in the words of
# a user or a model stay.


RECALL_TYPES = ("hindsight-recall",)
"""Values of `customType` for messages of recalled memory."""
PRUNED_TEXT = "(recalled memory was pruned)"
"""Replaces a removed block, since some model APIs reject an empty text."""
RECALL_MARKERS = (RECALL_OPEN.encode(), *(f'"{name}"'.encode() for name in RECALL_TYPES))
_RECALL_BLOCK = re.compile(
    rf"{re.escape(RECALL_OPEN)}(?=[\s>])[^<>]*>.*?{re.escape(RECALL_CLOSE)}", re.DOTALL
)


def prune_line(line: bytes) -> bytes | None:
    """Remove recalled memory from a line of a session file. None if there is none, or it cannot be removed.

    The line is padded with spaces to its old length, so that the client can append to the file meanwhile."""
    if not any(sign in line for sign in RECALL_MARKERS):
        return None
    text = line.rstrip(b"\r\n")
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    wanted = _prune_pi_message(record) if isinstance(record, dict) else None
    new = _dump(wanted) if wanted else _remove_blocks(text)
    if new is None or len(new) > len(text):
        return None
    return new + b" " * (len(text) - len(new)) + line[len(text) :]


def _prune_pi_message(record: dict[str, Any]) -> dict[str, Any] | None:
    """Replace pi's entry of recalled memory by one outside the conversation; None for other entries. Its id
    stays, since later entries refer to it as their parent."""
    message = record.get("message") if record.get("type") == "message" else None
    found = message if isinstance(message, dict) and message.get("role") == "custom" else record
    if found is record and record.get("type") != "custom_message":
        return None
    if found.get("customType") not in RECALL_TYPES:
        return None
    kept: dict[str, Any] = {key: record[key] for key in ("id", "parentId", "timestamp") if key in record}
    return {"type": "custom", **kept, "customType": found["customType"]}


def _remove_blocks(text: bytes) -> bytes | None:
    """Remove blocks of recalled memory from what hooks and extensions injected; None if there are none. All
    other bytes stay, unless a block occurs elsewhere in the text, too."""
    wanted, record = json.loads(text), json.loads(text)
    if not isinstance(wanted, dict):
        return None
    for holder, key in list(_injected_parts(wanted)):
        holder[key] = change_texts(holder[key], partial(_RECALL_BLOCK.sub, PRUNED_TEXT))
    if wanted == record:
        return None
    pruned = _RECALL_BLOCK.sub(PRUNED_TEXT, text.decode("utf-8", "surrogateescape"))
    new = pruned.encode("utf-8", "surrogateescape")
    return new if json.loads(new) == wanted else _dump(wanted)


def _dump(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _injected_parts(record: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """(object, key) of each part of a record that holds injected text."""
    payload = record.get("payload")
    if record.get("type") == "attachment":
        yield from ((record, key) for key in ("attachment", "rendered") if key in record)
    elif record.get("type") == "custom_message" and "content" in record:
        yield record, "content"
    elif record.get("type") in ("response_item", "compacted") and isinstance(payload, dict):
        history = payload.get("replacement_history")
        for message in (payload, *(history if isinstance(history, list) else ())):
            if isinstance(message, dict) and message.get("role") == "developer" and "content" in message:
                yield message, "content"
