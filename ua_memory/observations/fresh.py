"""Whether a belief is still up to date: of each its own, told from the files and from what waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ua_memory.grounding.terms import terms
from ua_memory.observations.evidence import holds, scope_of
from ua_memory.observations.writing import by_person
from ua_memory.records import Fact, Observation
from ua_memory.statements import linked
from ua_memory.wording import counted

_SHARED = 0.5
"""The part of a belief's words that a fact must have to speak of it, where no entity tells."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """`newer` are facts that speak of the belief and that no consolidation has considered; `lost` are those
    of its proofs that do not stand any more, each as `[[file#^id]] is gone`, and one for all where a person
    took them out of the file."""

    newer: tuple[Fact, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def stale(self) -> bool:
        """Whether the belief must be held against the facts before anybody relies on it."""
        return bool(self.newer or self.lost)

    @property
    def why(self) -> tuple[str, ...]:
        """The reasons in words, none for one that is fresh."""
        count = len(self.newer)
        fresh = f"{counted(count, 'newer fact')} on it not considered yet"
        return (*([fresh] if count else []), *self.lost)


def freshness(observation: Observation, facts: Mapping[str, Fact], waiting: Iterable[Fact]) -> Freshness:
    """How fresh an observation is: `facts` are all there are, by id, `waiting` those that no run has
    considered (`reflect.considered` tells). Retired facts prove nothing, and being new make nothing stale."""
    words = terms(observation.text)
    newer = (fact for fact in waiting if not fact.retired and speaks_of(fact, observation, words))
    return Freshness(tuple(newer), tuple(_lost(observation, facts)))


def speaks_of(fact: Fact, observation: Observation, words: frozenset[str] | None = None) -> bool:
    """Whether a fact may bear on a belief: of the same scope, and names an entity of it, or has half of its
    words. `words` are the belief's, where they are known already. Its own proofs bear on it anyway."""
    if scope_of(fact) != (observation.scope or ""):
        return False
    text = fact.text.casefold()
    entities = {name.casefold() for name in fact.entities}
    if any(name.casefold() in entities or name.casefold() in text for name in observation.entities):
        return True
    words = terms(observation.text) if words is None else words
    return len(words & terms(fact.text)) >= max(2, _SHARED * len(words))


def _lost(observation: Observation, facts: Mapping[str, Fact]) -> Iterable[str]:
    if not (observation.proofs or observation.retired or by_person(observation)):
        yield "its proofs were taken out of the file"
    for proof in observation.proofs:
        fact = linked(proof, facts)
        cited = f"[[{proof.file}#^{proof.id}]]"
        if fact is None:
            yield f"{cited} is gone"
        elif fact.retired:
            yield f"{cited} was retired: {fact.retired}"
        elif proof.quote and not holds(proof.quote, fact):
            yield f"{cited} was edited: it does not say {proof.quote!r} any more"
