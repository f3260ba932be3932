"""All beliefs of a bank, and the facts they may rest on, in one pass over its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ua_memory import markdown, statements
from ua_memory.errors import NotFound
from ua_memory.records import Fact, Observation
from ua_memory.store import Store


@dataclass(frozen=True, slots=True)
class Beliefs:
    """`observations` are all there are, retired ones as well, `facts` likewise; each knows its place."""

    observations: tuple[Observation, ...] = ()
    facts: tuple[Fact, ...] = ()
    by_id: Mapping[str, Fact] = field(default_factory=dict)
    """Those facts that have an id."""

    @property
    def live(self) -> tuple[Observation, ...]:
        """The observations that hold."""
        return tuple(each for each in self.observations if not each.retired)


def everyone(store: Store) -> Beliefs:
    """What the files say now; of a disappearance that is held, what the trail says."""
    observations: list[Observation] = []
    facts: list[Fact] = []
    for path, data in statements.texts(store):
        document = markdown.parse(data, path)
        observations += document.of(Observation)
        facts += document.of(Fact)
    return Beliefs(tuple(observations), tuple(facts), {fact.id: fact for fact in facts if fact.id})


def find(store: Store, block: str) -> Observation:
    """The observation with this id (`^id` or `id`). NotFound."""
    found = statements.find(store, block)
    if not isinstance(found, Observation):
        raise NotFound("no observation has this id", where=block, mend="ua-memory observations list")
    return found
