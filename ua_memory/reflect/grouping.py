"""Which facts belong together: for one request to a model, and as the same thing said again.

Two words weigh the more the fewer facts have them (inverse document frequency, Spärck Jones 1972), an entity
as much as three words. Near-duplicates are found as in set similarity joins with prefix filtering (Chaudhuri,
Ganti, Kaushik 2006): two sets that are alike share one of their rarest words, so only those are compared.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ua_memory.grounding import claims
from ua_memory.grounding.terms import terms
from ua_memory.observations import day_of, scope_of
from ua_memory.records import Fact
from ua_memory.reflect.considered import mark

ALIKE = 0.62
"""The part of all their words that two statements share to be the same said twice (Jaccard)."""
LEAST_WORDS = 4
"""Fewer words say too little: "Status: done" stands under many things."""
LONGEST = 60
"""Words of a statement that are compared; what is longer is a text, and no belief."""
COMMON = 200
"""Statements that a word may lead to, the last ones: one that more have tells nothing apart."""
_FIRM = ("number", "date", "stretch")
_NAMES = ("identifier", "url", "email", "path", "code", "name", "opening")
_DENIALS = frozenset("no not never none nor neither without cannot".split())  # noqa: SIM905


@dataclass(frozen=True, eq=False)
class Said:
    """A statement as it is compared: a fact, or the text of an observation."""

    text: str
    scope: str
    day: str = ""
    source: str = ""
    """What tells one telling from another: a session, or a file and a heading."""
    fact: Fact | None = None

    @cached_property
    def mark(self) -> str:
        """What a trailer calls the fact, '' for an observation."""
        return mark(self.fact) if self.fact else ""

    @property
    def entities(self) -> tuple[str, ...]:
        """What the fact is tagged as being about."""
        return self.fact.entities if self.fact else ()

    @cached_property
    def words(self) -> frozenset[str]:
        """The words that carry meaning, entities among them."""
        return terms(f"{self.text} {' '.join(self.entities)}")

    @cached_property
    def own(self) -> frozenset[str]:
        """The words of the text alone; of single letters nothing is told."""
        return frozenset(word for word in terms(self.text) if len(word) > 1 or word.isdigit())

    @cached_property
    def firm(self) -> frozenset[tuple[str, str]]:
        """The numbers, days and denials, in which statements that say the same do not differ."""
        found = {(kind, what.casefold()) for kind, what in claims(self.text) if kind in _FIRM}
        return frozenset(found | {("denial", word) for word in _denied(self.text)})

    @cached_property
    def names(self) -> frozenset[str]:
        """The words that name something."""
        named = " ".join(what for kind, what in claims(self.text) if kind in _NAMES)
        return terms(named) & self.own


def said(fact: Fact) -> Said:
    """A fact as it is compared."""
    return Said(fact.text, scope_of(fact), day_of(fact), fact.heading.session or fact.place.path, fact)


def overlap(one: Said, other: Said) -> float:
    """The part of all their words that two statements share; 0 where they are of two scopes."""
    either = one.own | other.own
    return len(one.own & other.own) / len(either) if either and one.scope == other.scope else 0.0


def alike(one: Said, other: Said) -> bool:
    """Whether two statements say the same: most words in common, the same numbers and denials, and not each
    a name that the other has not."""
    if min(len(one.own), len(other.own)) < LEAST_WORDS or overlap(one, other) < ALIKE:
        return False
    return one.firm == other.firm and not (one.names - other.own and other.names - one.own)


def at_odds(one: Said, other: Said) -> bool:
    """Whether two statements say different things of the same: most words in common, but another number, or
    one of them denies. A guess for a person to look at."""
    if min(len(one.own), len(other.own)) < LEAST_WORDS - 1 or overlap(one, other) < ALIKE:
        return False
    if one.names - other.own and other.names - one.own:
        return False
    apart = {kind for kind, _ in one.firm ^ other.firm}
    both = {kind for kind, _ in one.firm} & {kind for kind, _ in other.firm}
    return apart == {"denial"} or (apart == {"number"} and "number" in both)


def near(each: Sequence[Said], least: float, fresh: Container[str]) -> Iterator[tuple[int, int]]:
    """The pairs of statements, by their numbers, that may share at least this part of their words, where one
    of the two is fresh, by its mark."""
    often = Counter(word for one in each for word in one.own)
    having: dict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(each):
        if not LEAST_WORDS - 1 <= len(one.own) <= LONGEST:
            continue
        rare = sorted(one.own, key=lambda word: (often[word], word))
        prefix = rare[: len(rare) - math.ceil(least * len(rare)) + 1]
        for before in {n for word in prefix for n in having[word][-COMMON:]}:
            if each[number].mark in fresh or each[before].mark in fresh:
                yield before, number
        for word in prefix:
            having[word].append(number)


def same(each: Sequence[Said], fresh: Container[str]) -> list[list[int]]:
    """Groups of statements that say the same as the first of each, which has most in common with the others;
    the others come newest first. Nobody is alone."""
    twins: dict[int, set[int]] = defaultdict(set)
    for one, other in near(each, ALIKE, fresh):
        if alike(each[one], each[other]):
            twins[one].add(other)
            twins[other].add(one)
    groups: list[list[int]] = []
    taken: set[int] = set()
    for number in sorted(twins, key=lambda n: (len(twins[n]), each[n].day, n), reverse=True):
        rest = sorted(twins[number] - taken, key=lambda n: (each[n].day, n), reverse=True)
        if number not in taken and rest:
            groups.append([number, *rest])
            taken.update(groups[-1])
    return groups


def in_order(facts: Sequence[Fact]) -> list[list[Fact]]:
    """The facts of each scope so that what belongs together stands together: from the oldest on, the next is
    the one that shares most with the last few. One list for each scope."""
    scopes: dict[str, list[Said]] = defaultdict(list)
    for fact in facts:
        scopes[scope_of(fact)].append(said(fact))
    return [[one.fact for one in _chained(scopes[scope]) if one.fact] for scope in sorted(scopes)]


_WINDOW = 6
_HEAVY = 3.0


def _chained(each: Sequence[Said]) -> Iterator[Said]:
    often = Counter(word for one in each for word in one.words)
    having: dict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(each):
        for word in one.words:
            if 1 < often[word] <= COMMON:
                having[word].append(number)
    left = dict.fromkeys(sorted(range(len(each)), key=lambda n: (each[n].day, n)))
    score: Counter[int] = Counter()
    recent: list[int] = []
    while left:
        best = max((n for n in score if n in left), key=lambda n: (score[n], -n), default=None)
        number = best if best is not None and score[best] > 0 else next(iter(left))
        del left[number]
        yield each[number]
        recent.append(number)
        score.update(_pull(each, number, having, often))
        score.pop(number, None)
        if len(recent) > _WINDOW:
            score.subtract(_pull(each, recent.pop(0), having, often))
            score = Counter({n: s for n, s in score.items() if s > 1e-9 and n in left})


def _pull(
    each: Sequence[Said], number: int, having: dict[str, list[int]], often: Counter[str]
) -> Counter[int]:
    """How much a statement has in common with each of the others."""
    found: Counter[int] = Counter()
    entities = {name.casefold() for name in each[number].entities}
    for word in each[number].words:
        weight = math.log(1 + len(each) / often[word]) * (_HEAVY if word in entities else 1)
        for other in having.get(word, ()):
            found[other] += weight  # type: ignore[assignment]
    return found


def _denied(text: str) -> Iterable[str]:
    plain = text.casefold().replace("'", "").replace("’", "")
    words = {"".join(c for c in word if c.isalnum()) for word in plain.split()}
    return (words & _DENIALS) | {word for word in words if word.endswith("nt") and word[:-2] in _VERBS}


_VERBS = frozenset("do does did is are was were has have had wo ca could should would must".split())  # noqa: SIM905
