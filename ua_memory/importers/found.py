"""What a source holds, as values: a file of markdown is taken over as it stands (`Note`); what a database had
becomes records (`Item`), pages and mental models."""

from __future__ import annotations

import hashlib
from base64 import b32encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta

from ua_memory.records import CoreBlock, Fact, MentalModel, Observation, Opinion, Page, Problem

Files = Mapping[str, bytes]
"""A source's files: path relative to what was named, with `/`, and bytes."""


@dataclass(frozen=True, slots=True)
class Note:
    """A file of markdown, to be copied to the byte.

    `path` is relative to the source; `name` is where it goes, relative to the folder of the import, and has
    `day` in it where there is one. `curated` notes are wanted whatever their day. `body` is written in place
    of the bytes where there is more to say of their items.
    """

    path: str
    name: str
    data: bytes
    day: str | None = None
    curated: bool = False
    body: bytes | None = None

    @property
    def hash(self) -> str:
        """Twelve hexadecimal digits that name these bytes."""
        return hashlib.sha256(self.data).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Item:
    """A record of a database, under the block id that is made from its id there; when it was said (ISO day or
    time); the session or document it is from; and the items that it rests on, by their block ids."""

    record: Fact | Observation | Opinion
    said: str | None = None
    session: str | None = None
    proofs: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return self.record.id or ""

    @property
    def day(self) -> str | None:
        return self.said[:10] if self.said else None


@dataclass(frozen=True, slots=True)
class Core:
    """A curated file whose blocks may become core memory. `note` is the file itself."""

    note: Note
    blocks: tuple[CoreBlock, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What a source holds. `problems` have the source's paths; `left` says what is not taken, and why."""

    source: str
    name: str
    notes: tuple[Note, ...] = ()
    items: tuple[Item, ...] = ()
    core: Core | None = None
    models: tuple[MentalModel, ...] = ()
    pages: tuple[Page, ...] = ()
    problems: tuple[Problem, ...] = ()
    left: tuple[str, ...] = ()
    later: int = 0
    """Notes and items that the chosen days leave out."""

    def within(self, days: int | None) -> Found:
        """What is curated or undated, and the newest `days` days that the source has; all for None.

        What rests on other items goes with the newest of them, and takes the others along.
        """
        if days is None:
            return self
        day_of = {item.id: item.day or "" for item in self.items}
        for item in self.items:
            day_of[item.id] = max((day_of[p] for p in item.proofs if p in day_of), default=day_of[item.id])
        known = sorted({day for day in (*(n.day for n in self.notes), *day_of.values()) if day})
        first = _days_before(known[-1], days - 1) if known and days else "9999-12-31"
        notes = tuple(n for n in self.notes if n.curated or (n.day or "") >= first)
        chosen = {item.id for item in self.items if not (day := day_of[item.id]) or day >= first}
        chosen |= {proof for item in self.items if item.id in chosen for proof in item.proofs}
        items = tuple(item for item in self.items if item.id in chosen)
        later = len(self.notes) - len(notes) + len(self.items) - len(items)
        return replace(self, notes=notes, items=items, later=later)


def _days_before(day: str, days: int) -> str:
    return (date.fromisoformat(day) - timedelta(days=days)).isoformat()


def stable_id(source: str, key: str) -> str:
    """The block id of what has this id in that source: the same each time it is read."""
    return b32encode(hashlib.sha256(f"{source}\0{key}".encode()).digest())[:10].decode().lower()
