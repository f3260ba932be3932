"""Which facts a consolidation has considered: said by the trail alone, in the trailers of its runs.

`Considered: ^k7m2q9x4tb:1f2e3d4c …` names facts that a model was shown, `Compared:` those that were only
compared with the others, and `Set-aside:` those that no answer could be had for. A name ends in the first
digits of the text's hash, so that an edited fact counts as new; a person's lines without an id are named by
their path, `memory/2026-11-21.md#1f2e3d4c,…`. The newest mention counts, and an undone run said nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

from ua_memory import markdown
from ua_memory.records import Fact
from ua_memory.store import Store

CONSIDERED, COMPARED, ASIDE = "Considered", "Compared", "Set-aside"
NAMES_IN_A_LINE = 40
"""A line of some 800 characters: git reads 250 of them as quickly as one, and a person can page them."""
_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Considered:
    """The names of facts by what became of them; each stands in one set at most."""

    by_model: frozenset[str] = frozenset()
    compared: frozenset[str] = frozenset()
    aside: frozenset[str] = frozenset()

    def waits(self, fact: Fact, *, modelled: bool, retry: bool = False) -> bool:
        """Whether a run has to look at a fact: a model's run at what no model was shown, one without a model
        at what was never compared. What was set aside waits for `retry`. Retired facts never wait, nor
        those that nobody of the house has said: a belief would speak in the owner's own voice."""
        if fact.retired or fact.untrusted:
            return False
        own = marks(fact)
        done = self.by_model if modelled else self.by_model | self.compared
        if any(mark in self.aside for mark in own):
            return modelled and retry
        return not any(mark in done for mark in own)

    def is_aside(self, fact: Fact) -> bool:
        """Whether a fact was set aside."""
        return any(mark in self.aside for mark in marks(fact))


def mark(fact: Fact) -> str:
    """What a trailer calls a fact as it reads now."""
    return marks(fact)[0]


def marks(fact: Fact) -> tuple[str, ...]:
    """The names a fact may have been called by: one that has an id may have been a line without one."""
    hashed = markdown.texthash(fact.text)[:_DIGITS]
    by_place = f"{quote(fact.place.path, safe='/@+=~')}#{hashed}"
    return (f"^{fact.ref}:{hashed}", by_place) if fact.ref else (by_place,)


def lines(names: Iterable[str]) -> list[str]:
    """Names as the values of several trailers; those of one file's lines share its path."""
    found, by_path = [], dict[str, list[str]]()
    for name in sorted(names):
        path, sign, hashed = name.partition("#")
        by_path.setdefault(path if sign else "", []).append(hashed if sign else name)
    for path, each in by_path.items():
        for at in range(0, len(each), NAMES_IN_A_LINE):
            some = each[at : at + NAMES_IN_A_LINE]
            found.append(f"{path}#{','.join(some)}" if path else " ".join(some))
    return found


def read(store: Store) -> Considered:
    """What the trail says of all facts."""
    found: dict[str, str] = {}
    log = store.history.log(grep=["Memory-Op: consolidate"])
    gone = store.history.taken_back() if log else set()
    for run in log:  # the newest first
        if run.id in gone:
            continue
        for key in (CONSIDERED, COMPARED, ASIDE):
            for name in _names(run.trailers.get(key, ())):
                # Being compared says nothing about what a model was, or was not, shown.
                found[name] = key if found.get(name, COMPARED) == COMPARED else found[name]
    named = {key: frozenset(name for name, of in found.items() if of == key) for key in set(found.values())}
    return Considered(*(named.get(key, frozenset()) for key in (CONSIDERED, COMPARED, ASIDE)))


def _names(values: Iterable[str]) -> Iterator[str]:
    for value in values:
        path, sign, hashes = value.partition("#")
        yield from (f"{path}#{each}" for each in hashes.split(",")) if sign else value.split()
