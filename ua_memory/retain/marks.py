"""All `through:` marks of a bank, looked up once: for whoever asks after many sessions at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from urllib.parse import unquote

from ua_memory import markdown, statements
from ua_memory.retain import through
from ua_memory.store import Store
from ua_memory.transcripts.turns import Session

By = dict[str, set[str]]
"""Entry ids by what the marks of their session begin with."""


class Marks:
    """How far each session has been read, as `through.ledger` tells it of one. As of the first question."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def of(self, session: Session) -> set[str]:
        """The ids of the turns up to which a session has been read, be it by flushes that were undone since:
        what was taken back comes again only where somebody asks for it."""
        found, undone = self._trail
        start = through.prefix(session)
        gone = undone.get(start, set())
        return (found.get(start) or self._files.get(start, set()) - gone) | gone

    def elsewhere(self, client: str) -> set[str]:
        """The ids up to which any session of a client has been read, as far as no two entries share them."""
        start = through.prefix(Session(client)).partition("/")[0] + "/"
        by = (ids for each in self._trail for name, ids in each.items() if name.startswith(start))
        return through.unique(id for ids in by for id in ids)

    @cached_property
    def _trail(self) -> tuple[By, By]:
        """The marks of flushes that stand, and of those that were undone."""
        log = self.store.history.log(grep=[f"{through.TRAILER}: "])
        gone = self.store.history.taken_back() if log else set()
        stand = _by(m for each in log if each.id not in gone for m in each.trailers.get(through.TRAILER, ()))
        undone = _by(m for each in log if each.id in gone for m in each.trailers.get(through.TRAILER, ()))
        return stand, {start: ids - stand.get(start, set()) for start, ids in undone.items()}

    @cached_property
    def _files(self) -> By:
        texts = (each for each in statements.texts(self.store) if b"through:" in each[1])
        return _by(mark for path, data in texts for mark in markdown.parse(data, path).through)


def _by(marks: Iterable[str]) -> By:
    found: By = defaultdict(set)
    for mark in marks:
        start, _, entry = mark.rpartition("/")
        found[f"{start}/"].add(unquote(entry))
    return dict(found)
