"""All beliefs of a bank, and the facts they may rest on, in one pass over its files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ua_memory import excerpts, markdown, statements
from ua_memory.errors import NotFound
from ua_memory.markdown import Document
from ua_memory.records import Fact, Observation
from ua_memory.store import Store

_COUNT = re.compile(r"\s+[-*+]\s+proofs:\s*(\d{1,9})\s*")


@dataclass(frozen=True, slots=True)
class Beliefs:
    """`observations` are all there are, retired ones as well, `facts` likewise; each knows its place."""

    observations: tuple[Observation, ...] = ()
    facts: tuple[Fact, ...] = ()
    by_id: Mapping[str, Fact] = field(default_factory=dict)
    """Those facts that have an id; see `statements.by_ref`."""
    miscounted: frozenset[str] = frozenset()
    """The ids of the observations whose `proofs:` is another number than they have: a person took some."""

    @property
    def live(self) -> tuple[Observation, ...]:
        """The observations that hold."""
        return tuple(each for each in self.observations if not each.retired)


def everyone(store: Store) -> Beliefs:
    """What the files say now; of a disappearance that is held, what the trail says."""
    observations: list[Observation] = []
    facts: list[Fact] = []
    miscounted: list[str] = []
    for path, data in statements.texts(store):
        document = markdown.parse(data, path)
        observations += document.of(Observation)
        facts += document.of(Fact)
        miscounted += _miscounted(document) if document.problems else ()
    by_id = statements.by_ref(facts)
    return Beliefs(tuple(observations), tuple(facts), by_id, frozenset(miscounted))


def _miscounted(document: Document) -> Iterator[str]:
    for each in document.of(Observation):
        counts = map(_COUNT.fullmatch, document.lines[each.place.line - 1 : each.place.end])
        if each.id and any(count and int(count[1]) != len(each.proofs) for count in counts):
            yield str(each.ref)


def find(store: Store, block: str) -> Observation:
    """The observation that is named (`excerpts`). NotFound."""
    found = excerpts.find(store, block).record
    if not isinstance(found, Observation):
        raise NotFound("no observation has this id", where=block, mend="ua-memory observations list")
    return found
