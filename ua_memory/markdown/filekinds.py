"""What a file of the bank holds, and of which day, told from its path alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from enum import Enum, auto

from ua_memory.records import Entity, Fact, Observation, Opinion, Tombstone

_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[-_].*)?\.md\Z", re.DOTALL)


class FileKind(Enum):
    """What a file of the bank holds; LOG is every daily log and every other note."""

    CORE = auto()
    LOG = auto()
    OBSERVATIONS = auto()
    OPINIONS = auto()
    PAGE = auto()
    MODEL = auto()
    DOCUMENT = auto()
    ENTITIES = auto()
    TOMBSTONES = auto()


_FILES = {
    "MEMORY.md": FileKind.CORE,
    "memory.md": FileKind.CORE,
    "memory/opinions.md": FileKind.OPINIONS,
    "memory/entities.md": FileKind.ENTITIES,
    "memory/forgotten.md": FileKind.TOMBSTONES,
}
_FOLDERS = {
    "memory/observations/": FileKind.OBSERVATIONS,
    "memory/pages/": FileKind.PAGE,
    "memory/models/": FileKind.MODEL,
    "memory/documents/": FileKind.DOCUMENT,
}
ITEMS: Mapping[FileKind, type] = {
    FileKind.LOG: Fact,
    FileKind.DOCUMENT: Fact,
    FileKind.OBSERVATIONS: Observation,
    FileKind.OPINIONS: Opinion,
    FileKind.ENTITIES: Entity,
    FileKind.TOMBSTONES: Tombstone,
}
"""What a top-level item is in each kind of file; in the others it is prose."""


def kind_of(path: str) -> FileKind:
    """The kind of the file at a bank-relative path."""
    folder = next((kind for start, kind in _FOLDERS.items() if path.startswith(start)), FileKind.LOG)
    return _FILES.get(path, folder)


def day_of(path: str) -> str | None:
    """The day in a log's name (`memory/2026-11-21-slug.md`); None if it has none or it is no real day."""
    match = _DAY.match(path.rpartition("/")[2])
    try:
        return date.fromisoformat(match.group(1)).isoformat() if match else None
    except ValueError:
        return None
