"""Keeps what nobody of the house has said out of what every session begins with (see `trust`).

First it is asked where things come from: an address, path, file, host or flag that only untrusted facts name
has come from them, in whatever words. Then each new sentence is held against theirs: word for word, and by
the words they share. What a person has said as well, no less alike, is the person's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ua_memory import markdown
from ua_memory.errors import Usage
from ua_memory.grounding import likeness
from ua_memory.records import CoreBlock, Fact, Observation, Opinion, Passage
from ua_memory.statements import texts
from ua_memory.store import Store

FEWEST = 2
"""Words of a sentence that are somebody's: a single one is said by chance."""
_PART = 4
"""Words from which a sentence is recognised within a longer one."""
_TOGETHER = 3
"""Sentences that are also held together against one of theirs."""
_MOSTLY = 0.75
"""The share of theirs that these must have: several sentences share words by chance."""
_TELLS = re.compile(rb"(?:origin:|\xc2\xb7)[ \t]*(?:web|tool|import)\b")
_HOUSE = (Fact, Observation, Opinion, Passage, CoreBlock)


@dataclass(frozen=True, slots=True)
class _Said:
    """A sentence, or some that follow each other: its words, and what it is compared by."""

    flat: str
    units: frozenset[str]
    several: bool = False


def borrowed(store: Store, text: str, before: str = "") -> Fact | None:
    """The untrusted fact of which `text` has a sentence, or names a thing, that is not in `before`; if any.

    The files are read, not the index: what came a moment ago counts.
    """
    fresh, things = list(_fresh(text, before)), likeness.things(text) - likeness.things(before)
    named: dict[str, Fact] = {}
    persons: dict[str, float] = {}
    for fact in _untrusted(store) if fresh else ():
        theirs = _of(fact)
        for new in fresh:
            how = _alike(new, theirs)
            if how and new.flat not in persons:
                persons[new.flat] = _by_persons(store, new)
            if how > persons.get(new.flat, 0.0):
                return fact
        plain = likeness.plain(_text(fact))
        named |= {thing: fact for thing in things if likeness.names(plain, thing)}
    for plain in map(likeness.plain, _house(store) if named else ()):
        named = {thing: fact for thing, fact in named.items() if not likeness.names(plain, thing)}
    return next(iter(named.values()), None)


def require(store: Store, text: str, before: str = "") -> None:
    """Raises Usage where `borrowed` finds a fact."""
    if found := borrowed(store, text, before):
        raise Usage(
            f"this was said by no person and no agent here, but came as {found.said_by}",
            where=f"^{found.id}" if found.id else found.place.citation,
            mend="have a person put it into core memory, or leave it out",
        )


def _fresh(text: str, before: str) -> Iterator[_Said]:
    """The sentences that were not there, and neighbours of them together: a line break hides nothing."""
    was = likeness.flat(before)
    new = [one for one in likeness.sentences(text) if not likeness.within(likeness.flat(one), was)]
    for size in range(1, _TOGETHER + 1):
        for at in range(len(new) - size + 1):
            several = " ".join(new[at : at + size])
            yield _Said(likeness.flat(several), likeness.units(several), size > 1)


def _of(fact: Fact) -> list[_Said]:
    return [_Said(likeness.flat(one), likeness.units(one)) for one in likeness.sentences(_text(fact))]


def _text(fact: Fact) -> str:
    return "\n".join([fact.text, *(quote.text for quote in fact.quotes)])


def _alike(new: _Said, theirs: Iterable[_Said]) -> float:
    """How much a new sentence is one of theirs; 0 where that is not enough to say so."""
    return max((_like(new, one) for one in theirs), default=0.0)


def _like(new: _Said, one: _Said) -> float:
    if len(one.units) >= FEWEST and new.flat == one.flat:
        return 1.0
    if len(one.units) >= _PART and likeness.within(one.flat, new.flat):
        return 1.0
    if new.several and len(new.units & one.units) < _MOSTLY * len(one.units):
        return 0.0
    return likeness.likeness(new.units, one.units)


def _untrusted(store: Store) -> Iterator[Fact]:
    for path, data in texts(store):
        if _TELLS.search(data):
            yield from (fact for fact in markdown.parse(data, path).of(Fact) if fact.untrusted)


def _by_persons(store: Store, new: _Said) -> float:
    """How much of it a person has said. Looked up where there is a suspicion alone."""
    documents = (markdown.parse(data, path) for path, data in texts(store))
    facts = (fact for document in documents for fact in document.of(Fact) if fact.said_by == "person")
    return max((_alike(new, _of(fact)) for fact in facts), default=0.0)


def _house(store: Store) -> Iterator[str]:
    """All that the bank holds and that is no untrusted fact."""
    for path, data in texts(store):
        for record in markdown.parse(data, path).records:
            if isinstance(record, _HOUSE) and not (isinstance(record, Fact) and record.untrusted):
                yield record.value if isinstance(record, CoreBlock) else record.text
