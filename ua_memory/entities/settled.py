"""The names that are settled in `memory/entities.md`, and whom a name in a text stands for.

A person's lines decide; what is not decided there is left open rather than guessed, and a `not:` is never
passed over. Everything but `settled` is pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from ua_memory import markdown
from ua_memory.entities.alike import Likeness, fold, likeness
from ua_memory.entities.decisions import ENTITIES
from ua_memory.errors import NotFound
from ua_memory.records import Entity
from ua_memory.store import Store

SHARED = 2
"""So many names must stand beside both to decide by company what a likeness alone leaves open."""

CROWD = 400
"""Names with a word in common that are compared with each other; more have an ordinary word in common."""

Beside = Callable[[str], Collection[str]]
"""The names that stand beside somebody's in the bank."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Whom a name stands for. `name` is what they are called, or the name as it was given while that is open.

    `how`: exact (the name itself), alias, form (only the writing differs), context (decided by the names
    beside it), open. `candidates` are who else it may be, where it is open.
    """

    name: str
    how: Literal["exact", "alias", "form", "context", "open"]
    reason: str = ""
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Two names that may be one, for a person to decide: `name` would stay, `other` become its alias."""

    name: str
    other: str
    how: Literal["sure", "maybe"]
    reason: str


@dataclass(frozen=True)
class Settled:
    """The records of `memory/entities.md`, and what follows from them."""

    records: tuple[Entity, ...] = ()

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[Entity]]:
        found = defaultdict[str, list[Entity]](list)
        for entity in self.records:
            for name in dict.fromkeys(map(fold, (entity.name, *entity.aliases))):
                found[name].append(entity)
        return found

    def called(self, name: str) -> Sequence[Entity]:
        """Those who are called so, by name or alias: none, one, or several who share it."""
        return self._by_name.get(fold(name), ())

    def apart(self, one: str, other: str) -> bool:
        """Whether somebody has said that these two names are not one."""
        ours, theirs = self._kept_from(one), self._kept_from(other)
        return bool(ours & self._all_of(other) or theirs & self._all_of(one))

    def _all_of(self, name: str) -> set[str]:
        named = (n for entity in self.called(name) for n in (entity.name, *entity.aliases))
        return {fold(name), *map(fold, named)}

    def _kept_from(self, name: str) -> set[str]:
        return {fold(n) for entity in self.called(name) for n in entity.nots}

    def together(self, one: str, other: str) -> bool:
        """Whether two names are settled to be one's."""
        return any(a is b for a in self.called(one) for b in self.called(other))

    def resolve(self, name: str, context: Iterable[str] = (), beside: Beside | None = None) -> Resolved:
        """Whom a name in a text stands for. `context` are the other names of that text, `beside` gives the
        names that stand beside somebody's elsewhere in the bank."""
        company = {fold(each) for each in context} - {fold(name)}
        named = self.called(name)
        if len(named) == 1:
            how: Literal["exact", "alias"] = "exact" if fold(named[0].name) == fold(name) else "alias"
            return Resolved(named[0].name, how, "" if how == "exact" else f"{ENTITIES} says so")
        if named:
            return self._by_company(name, named, company, beside, 1)
        near = list(self._near(name))
        sure = [entity for entity, like in near if like.how == "sure"]
        if len(sure) == 1:
            return Resolved(
                sure[0].name, "form", next(like.reason for entity, like in near if entity is sure[0])
            )
        return self._by_company(name, sure or [entity for entity, _ in near], company, beside, SHARED)

    def names(self, said: Sequence[str]) -> tuple[str, ...]:
        """The names of a drawn fact as they are settled, each once; one that is not stays as it was said."""
        return tuple(dict.fromkeys(self.resolve(name, said).name for name in said))

    def _near(self, name: str) -> Iterator[tuple[Entity, Likeness]]:
        """Those whom a name may stand for, with the best reason to think so."""
        for entity in self.records:
            if self.apart(entity.name, name):
                continue
            found = [like for each in (entity.name, *entity.aliases) if (like := likeness(each, name))]
            if found:
                yield entity, min(found, key=lambda like: like.how != "sure")

    def _by_company(
        self, name: str, among: Sequence[Entity], company: set[str], beside: Beside | None, least: int
    ) -> Resolved:
        """Decide by the names beside it: one's own full name is enough, else `least` shared ones, and more
        than anybody else has."""
        if not among:
            return Resolved(name, "open")
        said = [e for e in among if company & ({fold(n) for n in (e.name, *e.aliases)} - {fold(name)})]
        if len(said) == 1:
            return Resolved(said[0].name, "context", f"{said[0].name} is named beside it")
        shared = [(company & {fold(n) for n in beside(e.name)}, e) for e in among] if beside else []
        shared.sort(key=lambda pair: -len(pair[0]))
        if (
            shared
            and len(shared[0][0]) >= least
            and (len(shared) == 1 or len(shared[0][0]) > len(shared[1][0]))
        ):
            why = (
                ", ".join(sorted(n for n in beside(shared[0][1].name) if fold(n) in shared[0][0]))
                if beside
                else ""
            )
            return Resolved(shared[0][1].name, "context", f"as elsewhere it stands beside {why}")
        candidates = tuple(dict.fromkeys(entity.name for entity in among))
        return Resolved(name, "open", "it may be any of them" if len(candidates) > 1 else "", candidates)


def settled(store: Store) -> Settled:
    """What `memory/entities.md` says now, hand edits included; nothing where there is no such file."""
    try:
        data = store.truth(ENTITIES)
    except NotFound:
        return Settled()
    return Settled(markdown.parse(data, ENTITIES).of(Entity))


def suggestions(
    names: Mapping[str, int], known: Settled, beside: Beside, limit: int = 20
) -> list[Suggestion]:
    """Names that may be one, the likeliest first. `names` are those of the bank, and how often each stands.

    What a person has decided, either way, is not asked again. Names that may be two need company in common
    and must not stand beside each other: who writes `Mistral and Mixtral` means two.
    """
    found: list[tuple[tuple[int, int, str], Suggestion]] = []
    listed = {fold(name): name for name in names}
    for one, other in _pairs(names):
        like = likeness(one, other)
        if like is None or known.together(one, other) or known.apart(one, other):
            continue
        mine, theirs = ({fold(n) for n in beside(name)} for name in (one, other))
        common = mine & theirs & listed.keys()
        strangers = len(common) < SHARED or fold(other) in mine or fold(one) in theirs
        if like.how == "maybe" and strangers:
            continue
        keep, drop = _kept(one, other, names, known)
        shown = sorted((listed[n] for n in common), key=lambda n: (-names[n], n))
        reason = like.reason + (f"; beside both: {', '.join(shown[:3])}" if shown else "")
        rank = (like.how != "sure", -len(common) * min(names[one], names[other]), keep)
        found.append((rank, Suggestion(keep, drop, like.how, reason)))
    return [suggestion for _, suggestion in sorted(found, key=lambda pair: pair[0])][:limit]


def _pairs(names: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """The pairs of names that are worth a comparison: they share a word, or begin alike."""
    crowds = defaultdict[str, list[str]](list)
    for name in names:
        words = fold(name).split()
        for crowd in {*words, "".join(words)[:2] + "…"}:
            crowds[crowd].append(name)
    seen: set[tuple[str, str]] = set()
    for together in crowds.values():
        for n, one in enumerate(together if len(together) <= CROWD else ()):
            for other in together[n + 1 :]:
                if abs(len(one) - len(other)) <= 2 or " " in one + other:
                    seen.add((one, other) if one < other else (other, one))
    yield from sorted(seen)


def _kept(one: str, other: str, names: Mapping[str, int], known: Settled) -> tuple[str, str]:
    """Which of two names would stay: the settled one, the longer one, the one that is written oftener."""

    def worth(name: str) -> tuple[bool, int, int, str]:
        return bool(known.called(name)), len(fold(name).split()), names.get(name, 0), name

    return (one, other) if worth(one) >= worth(other) else (other, one)
