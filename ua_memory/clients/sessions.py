"""Find the transcripts of clients on this machine, and remove recalled memory from them."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from ua_memory import discovery
from ua_memory.clients.settings import CLIENTS, folders
from ua_memory.errors import Malformed, NotFound, UaMemoryError, Usage
from ua_memory.text.noise import RECALL_CLOSE, RECALL_OPEN
from ua_memory.text.redaction import change_texts
from ua_memory.transcripts.databases import open_database
from ua_memory.transcripts.reader import Transcript, sniff

if TYPE_CHECKING:
    from ua_memory.caller import Call


# -- databases ---------------------------------------------------------------------------------------------
# Read sessions from clients' SQLite databases as the lines that the transcript readers parse. Databases are
# never written.
#
# Tables: Hermes `sessions` and `messages`; OpenCode `session`, `message` and `part`; OpenClaw
# `transcript_events`, each row a line of its former files. Long lines are compressed with zstd; the command
# `zstd` decompresses them, since Python has no zstd before 3.14.


MEMORY_LIMIT = 4 << 20
"""Bytes of a session in memory; a longer one is written to a temporary file."""
UNPACK_TIMEOUT = 60
AUTOMATIC_KEYS = ("subagent", "cron", "hook", "acp", "heartbeat")
"""Parts of OpenClaw's session keys (`agent:main:cron:…`) that mark sessions without a person."""
GROUP_KEYS = frozenset({"group", "channel", "room"})
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

Row = dict[str, Any]


_DATABASES = {
    "hermes": ({"sessions", "messages"},
        "SELECT session_id AS id, max(timestamp) AS at, '' AS machine FROM messages GROUP BY session_id"),
    "opencode": ({"session", "message", "part"},
        "SELECT session.id, max(message.time_created) / 1000.0 AS at, "
        "CASE WHEN parent_id IS NULL THEN '' ELSE 'sub-agent' END AS machine "
        "FROM session JOIN message ON message.session_id = session.id GROUP BY session.id"),
    "openclaw": ({"transcript_events"},
        "SELECT session_id AS id, max(created_at) / 1000.0 AS at, '' AS machine FROM transcript_events "
        "GROUP BY session_id"),
}  # fmt: skip
"""{client: (the tables of its database, a query of its sessions: id, time of the last message, and the
automatic speaker or '')}. A database is that of the first client all of whose tables it has."""


def database_sessions(path: Path) -> list[Transcript]:
    """The sessions in a database; [] if it is of no known client. OSError if it cannot be read."""
    with open_database(path) as there:
        names = {str(row["name"]) for row in _rows(there, "SELECT name FROM sqlite_master")}
        for client, (tables, query) in _DATABASES.items():
            if tables <= names:
                machines, found = _automatic_sessions(there, names), []
                for row in _rows(there, query):
                    id, at = str(row["id"]), datetime.fromtimestamp(float(row["at"] or 0), UTC)
                    where, lines = f"{path} session {id}", partial(open_session, path, client, id)
                    machine = row["machine"] or machines.get(id, "")
                    found.append(Transcript(where, client, at, lines, machine))
                return found
    return []


@contextmanager
def open_session(path: Path, client: str, session: str) -> Iterator[IO[bytes]]:
    """Open the lines of a session in a database. OSError; Malformed if they cannot be decompressed."""
    with open_database(path) as there, tempfile.SpooledTemporaryFile(max_size=MEMORY_LIMIT) as lines:
        for row in _LINES[client](there, session):
            lines.write(row + b"\n")
        lines.seek(0)
        yield cast(IO[bytes], lines)


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


def _hermes_lines(there: sqlite3.Connection, session: str) -> Iterator[bytes]:
    for row in _rows(there, "SELECT * FROM sessions WHERE id = ?", (session,)):
        yield _line({key: value for key, value in row.items() if key != "system_prompt"})
    for row in _rows(there, "SELECT * FROM messages WHERE session_id = ? ORDER BY id", (session,)):
        kept = {key: value for key, value in row.items() if not key.startswith(("reason", "codex_"))}
        yield _line({key: value for key, value in kept.items() if value is not None})


def _openclaw_lines(there: sqlite3.Connection, session: str) -> Iterator[bytes]:
    query = "SELECT * FROM transcript_events WHERE session_id = ? ORDER BY seq"
    rows = _rows(there, query, (session,))
    packed = [row for row in rows if row.get("event_json") is None and row.get("event_zstd") is not None]
    # All at once: a process for each line would take longer than all other work.
    text = unpack_zstd(b"".join(row["event_zstd"] for row in packed)) if packed else b""
    at = 0
    for row in rows:
        if row.get("event_json") is not None:
            yield str(row["event_json"]).replace("\n", " ").encode("utf-8", "replace")
        elif row.get("event_zstd") is not None:
            size = int(row.get("event_utf8_bytes") or 0)
            yield text[at : at + size].replace(b"\n", b" ")
            at += size


def _opencode_lines(there: sqlite3.Connection, session: str) -> Iterator[bytes]:
    for row in _rows(there, "SELECT * FROM session WHERE id = ?", (session,)):
        yield _line(row)
    parts: dict[str, list[str]] = {}
    for row in _rows(there, "SELECT message_id, data FROM part WHERE session_id = ? ORDER BY id", (session,)):
        parts.setdefault(str(row["message_id"]), []).append(str(row["data"]))
    for row in _rows(there, "SELECT * FROM message WHERE session_id = ? ORDER BY id", (session,)):
        yield _line({**row, "parts": parts.get(str(row["id"]), [])})


_LINES = {"hermes": _hermes_lines, "openclaw": _openclaw_lines, "opencode": _opencode_lines}


def _automatic_sessions(there: sqlite3.Connection, names: set[str]) -> dict[str, str]:
    """{session id: its automatic speaker} of an OpenClaw database's sessions without a person."""
    found: dict[str, str] = {}
    if not {"session_windows", "session_nodes"} <= names:
        return found
    query = (
        "SELECT w.session_id AS id, w.session_key AS name, coalesce(w.spawned_by, n.spawned_by) AS spawned "
        "FROM session_windows w LEFT JOIN session_nodes n ON n.session_key = w.session_key"
    )
    for row in _rows(there, query):
        machine = automatic_speaker(str(row["name"]))
        if machine or row["spawned"]:
            found[str(row["id"])] = machine or "sub-agent"
    return found


def automatic_speaker(key: str) -> str:
    """The automatic speaker of an OpenClaw session, such as "cron", by its key; '' for the user."""
    parts = key.split(":")[2:]
    found = next((part for part in parts if part in AUTOMATIC_KEYS), "")
    if not found and GROUP_KEYS.intersection(parts[:-1]):
        return "group chat"  # what others say is not the user's memory
    return "sub-agent" if found == "subagent" else found


def _rows(there: sqlite3.Connection, query: str, values: Sequence[object] = ()) -> list[Row]:
    return [dict(row) for row in there.execute(query, values)]


def _line(row: Row) -> bytes:
    return json.dumps(row, default=lambda value: None).encode()


def index_speakers(index: object) -> dict[str, str]:
    """{session id: its automatic speaker} of the sessions without a person in an OpenClaw `sessions.json`."""
    found: dict[str, str] = {}
    for key, entry in index.items() if isinstance(index, dict) else ():
        if isinstance(entry, dict) and isinstance(id := entry.get("sessionId"), str):
            machine = automatic_speaker(key) or ("sub-agent" if entry.get("spawnedBy") else "")
            found |= {id: machine} if machine else {}
    return found


# -- finding transcripts -----------------------------------------------------------------------------------


READABLE_CLIENTS = [client for client, known in CLIENTS.items() if known.transcripts]
"""The clients whose transcripts can be read."""
DATABASE_SUFFIXES = (".db", ".sqlite", ".sqlite3")
LINE_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst")
OPENCLAW_ARCHIVES = (".jsonl.reset.", ".jsonl.deleted.")
SNIFFED_BYTES = 64 << 10
SpeakersByFolder = dict[Path, dict[str, str]]
"""{folder: {session id: its automatic speaker}}, for sessions without a person."""


def session_folders(call: Call, clients: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """(client, folder) of the existing folders of these clients."""
    for client in clients:
        yield from ((client, folder) for folder in folders(call, client) if folder.is_dir())


def folder_names(call: Call, clients: Iterable[str]) -> list[str]:
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


def all_transcripts(call: Call, clients: Iterable[str]) -> Iterator[Transcript]:
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
            archived = any(part in name for part in OPENCLAW_ARCHIVES)
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
            yield BytesIO(unpack_zstd(file.read())) if packed else file

    return opened


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
