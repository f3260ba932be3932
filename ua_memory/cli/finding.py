"""Where clients keep the transcripts of their sessions on this machine, and those that are there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ua_memory import regular
from ua_memory.cli import databases, homes
from ua_memory.errors import NotFound, UaMemoryError
from ua_memory.transcripts import Transcript, sniff

if TYPE_CHECKING:
    from ua_memory.cli.call import Call

PATTERNS: dict[str, tuple[str, ...]] = {
    "claude-code": ("projects/*/*.jsonl",),
    "codex": ("sessions/**/rollout-*.jsonl", "archived_sessions/rollout-*.jsonl"),
    "pi": ("sessions/*/*.jsonl",),
    "openclaw": ("agents/*/sessions/*.jsonl*", "agents/*/agent/openclaw-agent.sqlite"),
    "hermes": ("state.db", "profiles/*/state.db"),
}
DATABASES = (".db", ".sqlite", ".sqlite3")
LINES = (".jsonl", ".jsonl.gz", ".jsonl.zst")
OPENCLAW_ARCHIVES = (".jsonl.reset.", ".jsonl.deleted.")
LOOKED_AT = 64 << 10
Indexes = dict[Path, dict[str, str]]
"""By folder: which of its sessions no person speaks in, and what does instead."""


def places(call: Call, clients: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """The folders in which these clients keep what they keep, as far as there are any."""
    for client in clients:
        yield from ((client, folder) for folder in homes.folders(call, client) if folder.is_dir())


def on_machine(call: Call, clients: Iterable[str]) -> Iterator[Transcript]:
    """All transcripts in these clients' own folders."""
    indexes: Indexes = {}
    for client, home in places(call, clients):
        for pattern in PATTERNS[client]:
            for path in sorted(home.glob(pattern)):
                yield from _in(path, client, indexes)


def below(root: Path) -> Iterator[Transcript]:
    """All that may be a transcript in a folder, or the one that a path names. NotFound."""
    if not root.exists():
        raise NotFound("there is nothing", where=str(root), mend="name a folder with transcripts, or none")
    if not root.is_dir():
        yield from _in(root, None, {})
        return
    indexes: Indexes = {}
    for folder, names, files in os.walk(root):
        names.sort()
        for name in sorted(files):
            if name.endswith((*LINES, *DATABASES)) or any(part in name for part in OPENCLAW_ARCHIVES):
                yield from _in(Path(folder, name), None, indexes)


def _in(path: Path, client: str | None, indexes: Indexes) -> Iterator[Transcript]:
    """The transcripts in a file: one, or as many as a database has sessions."""

    changed = _changed(path)
    if changed is None:  # it went while we looked
        return
    if path.name.endswith(DATABASES):
        try:
            found = databases.kept(path)
        except OSError:
            yield Transcript(str(path), client, changed, _file(path))  # whose error is told then
            return
        for one in found:
            where = f"{path} session {one.session}"
            yield Transcript(where, one.client, one.changed, _row(path, one), one.machine)
    elif not path.is_dir() and not path.name.endswith((".lock", ".json")):
        machine = _machine(path, indexes) if client in (None, "openclaw") else ""
        machine = machine or ("sub-agent" if "subagents" in path.parts else "")
        yield Transcript(str(path), _reader(path, client), changed, _file(path), machine)


def _reader(path: Path, client: str | None) -> str | None:
    """Whose reader takes a file: in OpenClaw's folder what looks like pi's is Clawdbot's."""
    if client != "openclaw":
        return client
    try:
        with regular.opened(path) as file:
            return {"pi": "clawdbot"}.get(sniff(file.read(LOOKED_AT)))
    except (OSError, UaMemoryError):
        return None


def _machine(path: Path, indexes: Indexes) -> str:
    """What speaks in an OpenClaw session's file, by the index beside it."""
    if path.parent not in indexes:
        try:
            index = json.loads(regular.read(path.parent / "sessions.json"))
        except (OSError, ValueError, RecursionError):
            index = None
        indexes[path.parent] = databases.keys_of(index.items()) if isinstance(index, dict) else {}
    return indexes[path.parent].get(path.name.partition(".jsonl")[0].partition("-topic-")[0], "")


def _file(path: Path) -> Callable[[], AbstractContextManager[IO[bytes]]]:
    @contextmanager
    def opened() -> Iterator[IO[bytes]]:
        with regular.opened(path) as file:
            packed = file.read(4) == databases.PACKED
            file.seek(0)
            yield BytesIO(databases.unpacked(file.read())) if packed else file

    return opened


def _row(path: Path, one: databases.Kept) -> Callable[[], AbstractContextManager[IO[bytes]]]:
    return lambda: databases.stream(path, one)


def _changed(path: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return None
