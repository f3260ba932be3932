"""Sessions that clients keep in SQLite, as the lines that their reader takes. They are never written.

Hermes: `sessions` and `messages`. OpenClaw: `transcript_events`, which hold the lines of its former files,
the long ones packed with zstd, which the command of that name unpacks: Python does from 3.14 on only.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import tempfile
import urllib.parse
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, cast

from ua_memory import regular
from ua_memory.errors import Malformed

HELD = 4 << 20
"""Bytes of a session that are held in memory; of a longer one they go through a temporary file."""
SECONDS = 60
MACHINES = ("subagent", "cron", "hook", "acp", "heartbeat")
"""Parts of OpenClaw's session keys (`agent:main:cron:…`) that no person speaks in."""
GROUPS = frozenset({"group", "channel", "room"})
PACKED = b"\x28\xb5\x2f\xfd"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kept:
    """A session in a database: whose, its id, when it was last written to, and the `machine` that alone
    speaks in it, '' for a person's."""

    client: str
    session: str
    changed: datetime
    machine: str = ""


def kept(path: Path) -> list[Kept]:
    """The sessions in a database; none where it is not one that is known. OSError where it cannot be read."""
    with _opened(path) as there:
        names = {str(row["name"]) for row in _rows(there, "SELECT name FROM sqlite_master")}
        if {"sessions", "messages"} <= names:
            query = "SELECT session_id AS id, max(timestamp) AS at FROM messages GROUP BY session_id"
            return [Kept("hermes", str(row["id"]), _at(row["at"])) for row in _rows(there, query)]
        if "transcript_events" in names:
            query = (
                "SELECT session_id AS id, max(created_at) AS at FROM transcript_events GROUP BY session_id"
            )
            machines = _machines(there, names)
            found = ((str(row["id"]), _at(row["at"] / 1000)) for row in _rows(there, query))
            return [Kept("openclaw", id, at, machines.get(id, "")) for id, at in found]
    return []


@contextmanager
def stream(path: Path, one: Kept) -> Iterator[IO[bytes]]:
    """A session's lines. OSError; Malformed where they are packed and nothing here unpacks them."""
    with _opened(path) as there, tempfile.SpooledTemporaryFile(max_size=HELD) as lines:
        for row in _hermes(there, one.session) if one.client == "hermes" else _openclaw(there, one.session):
            lines.write(row + b"\n")
        lines.seek(0)
        yield cast(IO[bytes], lines)


def unpacked(packed: bytes) -> bytes:
    """What is packed with zstd, one or more frames. Malformed."""
    command = shutil.which("zstd")
    if not command:
        raise Malformed("it is packed with zstd, which is not installed", mend="install zstd")
    try:
        done = subprocess.run([command, "-dc"], input=packed, capture_output=True, timeout=SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise Malformed(f"zstd: {error}") from error
    if done.returncode:
        raise Malformed(f"it is packed and damaged: {done.stderr.decode('utf-8', 'replace').strip()}")
    return done.stdout


def _hermes(there: sqlite3.Connection, session: str) -> Iterator[bytes]:
    left_out = ("system_prompt",)
    for row in _rows(there, "SELECT * FROM sessions WHERE id = ?", (session,)):
        yield _line({key: value for key, value in row.items() if key not in left_out})
    for row in _rows(there, "SELECT * FROM messages WHERE session_id = ? ORDER BY id", (session,)):
        yield _line(
            {k: v for k, v in row.items() if v is not None and not k.startswith(("reason", "codex_"))}
        )


def _openclaw(there: sqlite3.Connection, session: str) -> Iterator[bytes]:
    query = "SELECT * FROM transcript_events WHERE session_id = ? ORDER BY seq"
    rows = _rows(there, query, (session,))
    packed = [row for row in rows if row.get("event_json") is None and row.get("event_zstd") is not None]
    # All at once: a process for each line would take longer than everything else.
    text = unpacked(b"".join(row["event_zstd"] for row in packed)) if packed else b""
    at = 0
    for row in rows:
        if row.get("event_json") is not None:
            yield str(row["event_json"]).replace("\n", " ").encode("utf-8", "replace")
        elif row.get("event_zstd") is not None:
            size = int(row.get("event_utf8_bytes") or 0)
            yield text[at : at + size].replace(b"\n", b" ")
            at += size


def _machines(there: sqlite3.Connection, names: set[str]) -> dict[str, str]:
    """Which sessions no person speaks in, and what does instead."""
    found: dict[str, str] = {}
    if not {"session_windows", "session_nodes"} <= names:
        return found
    query = (
        "SELECT w.session_id AS id, w.session_key AS name, coalesce(w.spawned_by, n.spawned_by) AS spawned "
        "FROM session_windows w LEFT JOIN session_nodes n ON n.session_key = w.session_key"
    )
    for row in _rows(there, query):
        machine = machine_of(str(row["name"]))
        if machine or row["spawned"]:
            found[str(row["id"])] = machine or "sub-agent"
    return found


def machine_of(key: str) -> str:
    """What speaks in an OpenClaw session by its key, '' where its owner does."""
    parts = key.split(":")[2:]
    found = next((part for part in parts if part in MACHINES), "")
    if not found and GROUPS.intersection(parts[:-1]):
        return "group chat"  # strangers' words are no memory of its owner's
    return "sub-agent" if found == "subagent" else found


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    regular.opened(path).close()  # SQLite would wait for somebody at the other end of a pipe
    name = urllib.parse.quote(str(path))
    for how in ("mode=ro", "mode=ro&immutable=1"):  # a log that may not be opened is left aside
        try:
            there = sqlite3.connect(f"file:{name}?{how}", uri=True)
            with closing(there):
                there.execute("SELECT name FROM sqlite_master LIMIT 1").fetchall()
                there.row_factory = sqlite3.Row
                try:
                    yield there
                except sqlite3.Error as error:
                    raise OSError(0, str(error), str(path)) from error
                return
        except sqlite3.Error:
            continue
    raise OSError(0, "no SQLite database that can be read", str(path))


def _rows(there: sqlite3.Connection, query: str, values: Sequence[object] = ()) -> list[Row]:
    return [dict(row) for row in there.execute(query, values)]


def _line(row: Row) -> bytes:
    return json.dumps(row, default=lambda value: None).encode()


def _at(seconds: float | None) -> datetime:
    return datetime.fromtimestamp(float(seconds or 0), UTC)


def keys_of(index: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """Which sessions of an OpenClaw `sessions.json` no person speaks in, and what does instead."""
    found: dict[str, str] = {}
    for key, entry in index:
        if isinstance(entry, dict) and isinstance(id := entry.get("sessionId"), str):
            machine = machine_of(key) or ("sub-agent" if entry.get("spawnedBy") else "")
            found |= {id: machine} if machine else {}
    return found
