"""What another machine has forgotten and this one hears of by a sync: cleared away beside the files, too, and
sought in everything, as `forget` does. A person's prose that has the words stays, and is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ua_memory import markdown, statements
from ua_memory.errors import UaMemoryError
from ua_memory.forgetting import searching
from ua_memory.forgetting.clearing import Clearing
from ua_memory.forgetting.searching import Searched
from ua_memory.forgetting.words import Needle, needles, unsaid
from ua_memory.history import History
from ua_memory.merge.banks import Merge
from ua_memory.merge.joining import Joined, join
from ua_memory.records import Tombstone, written_id
from ua_memory.statements import Statement
from ua_memory.store import Store
from ua_memory.tombstones import PATH, Tombstones, stones

if TYPE_CHECKING:
    from ua_memory.index.sync import Index


@dataclass(frozen=True, slots=True)
class Heard:
    """The ids that are forgotten here now, too, and the search for what they said here."""

    ids: tuple[str, ...]
    proof: Searched


def joined(
    store: Store, other: str, index: Callable[[], Index], *, door: str, subject: str, look: bool = False
) -> tuple[Joined, Heard | None]:
    """Join another history, and clear away what it has forgotten. Killed in the midst of it, the next sync or
    `forget` brings that to its end. With `look` say what would be, and where the words would stand still."""
    head = store.history.head()
    fork = store.history.fork(head, other) if head else None
    new = _new(store.history, other, [rev for rev in (head, fork) if rev])
    foreseen = join(store, other, door=door, subject=subject, look=True) if look or new else Joined(Merge({}))
    files = _after(store, foreseen) if new else {}
    sought = _sought(store, fork, new) if new else ()
    sought += unsaid(foreseen.along.texts, sought, files.values(), store.config.redact)
    if look:
        heard = Heard(tuple(sorted(new)), searching.within(files, sought)) if sought else None
        return foreseen, heard
    if not sought:
        return join(store, other, door=door, subject=subject), None
    ids = {*new, *foreseen.along.ids(files)}
    clearing = Clearing(store, index)
    with clearing.alone():
        begun = clearing.begin(new, ids, sought)
        try:
            done = join(store, other, door=door, subject=subject)
        except UaMemoryError:
            begun.unlink(missing_ok=True)
            raise
        return done, Heard(tuple(sorted(new)), clearing.end(begun, sought, ids)[1])


def _after(store: Store, foreseen: Joined) -> dict[str, bytes]:
    """The files as they would be."""
    there = {**dict(statements.texts(store)), **foreseen.merge.files}
    return {path: data for path, data in there.items() if data is not None}


def _new(history: History, other: str, ours: Sequence[str]) -> dict[str, Tombstone]:
    """What the other has forgotten since both last met. What was forgotten and taken back here is not."""
    known = {block for rev in ours for block in stones(history.read(rev, PATH))}
    return {name: stone for name, stone in stones(history.read(other, PATH)).items() if name not in known}


def _sought(store: Store, fork: str | None, new: dict[str, Tombstone]) -> tuple[Needle, ...]:
    """What was said here under these ids, now and when both last met, and what says the same."""
    history, forgotten = store.history, Tombstones(new, store.config.redact)
    here = list(statements.texts(store))
    before = [path for path, data in here if any(f"^{written_id(block)}".encode() in data for block in new)]
    old = zip(before, history.read_all([(fork, path) for path in before]), strict=True) if fork else ()
    said = [
        record.text
        for path, data in (*here, *old)
        if data
        for record in markdown.parse(data, path).records
        if isinstance(record, Statement) and forgotten.forbid(record)
    ]
    return needles(dict.fromkeys(said), store.config.redact)
