"""Texts that wait to be retained: one durable record a text in `pending/`, beside the turns of conversations.

A record holds the text itself, without secrets, and what was drawn from its chunks so far, so that neither a
killed process nor a spent budget has anything read and paid for twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from ua_memory.errors import NotFound
from ua_memory.records import Fact, Origin, Quote
from ua_memory.retain import tries
from ua_memory.retain.asked import Mode
from ua_memory.retain.drawing import Drawn
from ua_memory.retain.queue import Queue, Waiting
from ua_memory.retain.rows import Row, time_of
from ua_memory.retain.rows import append as _append
from ua_memory.retain.rows import rows as _rows
from ua_memory.store import swap
from ua_memory.transcripts.turns import Session, Turn

PREFIX = "retain-"


@dataclass(frozen=True, slots=True)
class Item:
    """One text to be retained, and what was said with it.

    `at` is when it was said or written (aware). Without a `document_id` its facts go into that day's log.
    `source` is the place it came from, for people. `request` makes it one that is carried out once. `redo`
    has chunks read again that have not changed.
    """

    text: str
    at: datetime
    document_id: str = ""
    source: str = ""
    append: bool = False
    mode: Mode = "concise"
    mission: str = ""
    instructions: str = ""
    context: str = ""
    tags: tuple[str, ...] = ()
    client: str = ""
    session: str = ""
    origin: Origin = "agent"
    request: str = ""
    redo: bool = False
    said_in: tuple[str, ...] = ()
    """Tags of all that is said where this was: they stand once, below the heading."""


@dataclass(frozen=True, slots=True)
class WaitingItem(Waiting):
    """A text that waits; `drawn` are its chunks that were read already, by their names."""

    item: Item | None = None
    drawn: dict[str, Drawn] = field(default_factory=dict)


class Items(Queue):
    """The waiting texts of a bank."""

    prefix = PREFIX

    def offer(self, key: str, item: Item, *, at: datetime, modelled: bool) -> None:
        """Have a text wait under a key; on the disk, without secrets, when this returns. CannotWrite."""
        clean = replace(
            item, text=self.clean(item.text), document_id=self.clean(item.document_id),
            context=self.clean(item.context), source=self.clean(item.source),
        )  # fmt: skip
        with self._open(key) as file:
            if not any("item" in row for row in _rows(file)):
                put = {"put": at.isoformat(), "size": None, "model": modelled}
                _append(file, [{"item": {**dataclasses.asdict(clean), "at": clean.at.isoformat()}}, put])
                swap.sync_folder(self.folder)

    def read(self, key: str) -> WaitingItem:
        """What waits under a key. NotFound."""
        found = self.get(key)
        assert isinstance(found, WaitingItem)
        return found

    def waiting(self) -> list[WaitingItem]:
        """Everything that waits, the longest first."""
        return [one for one in self.all() if isinstance(one, WaitingItem)]

    def has(self, key: str) -> bool:
        """Whether anything waits under a key."""
        try:
            return self._path(key).exists()
        except NotFound:
            return False

    def note(self, key: str, name: str, drawn: Drawn) -> None:
        """Keep what was drawn from a chunk until all of them are."""
        facts = [dataclasses.asdict(replace(fact)) for fact in drawn.facts]
        causes = [[n, cause] for n, cause in drawn.causes.items()]
        self._note(key, {"drawn": name, "facts": facts, "causes": causes, "refused": list(drawn.refused)})

    def done(self, key: str) -> None:
        """Let go of a text whose facts are committed."""
        self._path(key).unlink(missing_ok=True)

    def _told(self, key: str, rows: list[Row], *, garbled: bool) -> WaitingItem:
        try:
            given = next((row["item"] for row in rows if "item" in row), None)
            if given is None or garbled:
                raise ValueError("it does not say which text it is about")
            known: Row = {each.name: given[each.name] for each in fields(Item) if each.name in given}
            known["at"] = datetime.fromisoformat(known["at"])
            known |= {key: tuple(known.get(key, ())) for key in ("tags", "said_in")}
            item = Item(**known)
            put = next(row for row in rows if "put" in row)
            since = time_of(put["put"])
            return WaitingItem(
                key, Session(item.client, item.session), (Turn(key, "person", item.text, item.at),), None,
                tries.told(rows), since, since, put.get("model"), item=item, drawn=dict(_drawn(rows)),
            )  # fmt: skip
        except (ValueError, TypeError, AttributeError, KeyError, StopIteration) as error:
            return WaitingItem(key, Session("", ""), (), broken=f"the record cannot be read: {error}")


def _drawn(rows: Iterable[Row]) -> Iterable[tuple[str, Drawn]]:
    for row in rows:
        if "drawn" in row:
            facts = tuple(map(_fact, row["facts"]))
            yield row["drawn"], Drawn(facts, dict(row["causes"]), tuple(row["refused"]))


def _fact(given: dict[str, Any]) -> Fact:
    plain = {key: value for key, value in given.items() if key not in ("place", "heading")}
    plain |= {key: tuple(plain[key]) for key in ("entities", "tags", "seen")}
    return Fact(**{**plain, "quotes": tuple(Quote(**quote) for quote in plain["quotes"])})
