"""Changes to observations: grouping facts, checking proposals, applying them to the files."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any
from urllib.parse import quote

from ua_memory.errors import Malformed, NotFound, Usage
from ua_memory.git.repository import MACHINE, ON_BEHALF
from ua_memory.knowledge import observations
from ua_memory.knowledge.observations import (
    FOLDER,
    ObservationIndex,
    ProofText,
    by_person,
    day_of,
    has_quote,
    is_supported,
    scope_of,
    sources,
)
from ua_memory.knowledge.statements import by_ref, cited, linked, name_of, new_id
from ua_memory.markdown import document, fields
from ua_memory.records import Fact, Observation
from ua_memory.store.draft import Draft
from ua_memory.store.store import Store
from ua_memory.text.grounding import claims, disagreement, terms, ungrounded

# -- proposals ---------------------------------------------------------------------------------------------
# What a model may propose to do with observations, and what of it is let through.
#
# A proposal names facts and observations by the labels they were shown under, and nothing else exists for
# it. Its quotes must stand in their facts, its statement must name nothing that these do not name. It is
# data until `applying` writes it.


class RefusedProposal(Exception):
    """Why a proposal is refused, in words for the model."""


@dataclass(frozen=True, slots=True)
class KnownObservation:
    """An observation as a run knows it, one that it has made itself included. `name` outlives the run:
    `^id`, or a place and a hash, or `new:…`. `evidence` is what its wording may go on naming."""

    name: str
    text: str
    scope: str = ""
    last: str = ""
    proofs: int = 0
    evidence: tuple[str, ...] = ()
    by_person: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One change, in names that outlive the run: facts by their marks, observations by
    `KnownObservation.name`. What is created is called `observation`, too."""

    do: str
    observation: str
    text: str = ""
    proofs: tuple[tuple[str, str], ...] = ()
    others: tuple[str, ...] = ()

    @property
    def lost(self) -> bool:
        """Whether an observation is to be retired since nothing proves it any more."""
        return self.do == "retire" and not self.proofs

    @staticmethod
    def of(row: Mapping[str, Any]) -> Operation:
        """From JSON. KeyError, TypeError, ValueError for what is none."""
        proofs = tuple((str(mark), str(quote)) for mark, quote in row["proofs"])
        names = (str(row["do"]), str(row["observation"]), str(row["text"]))
        return Operation(*names, proofs, tuple(map(str, row["others"])))


def checked(
    given: Mapping[str, Any],
    facts: Mapping[str, tuple[str, Fact]],
    beliefs: Mapping[str, KnownObservation],
    new: str,
) -> Operation:
    """A proposal as an operation, or Refused. `facts` are (mark, fact) by label, `beliefs` those that hold,
    by label; `new` is the name for one that is created."""
    do, text = given["do"], " ".join(given.get("text", "").split())
    about = None if do == "create" else _belief(given.get("observation", ""), beliefs)
    name = about.name if about else new
    if do == "merge":
        merged = {label: _belief(label, beliefs) for label in given.get("others", ())}
        others = tuple(dict.fromkeys(each.name for each in merged.values()))
        if about is None or not others or name in others:
            raise RefusedProposal("merge needs others, which say the same as observation")
        for label, each in merged.items():
            if not _words(about) & _words(each):
                raise RefusedProposal(f"{label} has no word of {given['observation']}, nor have their proofs")
        return Operation(do, name, others=others)
    proofs = [_proof(each, facts) for each in given.get("proofs", ())]
    if not proofs:
        raise RefusedProposal(f"{do} needs proofs")
    operation = Operation(do, name, proofs=tuple((mark, quote) for mark, _, quote in proofs))
    if do in ("strengthen", "retire"):
        return operation
    if not text:
        raise RefusedProposal(f"{do} needs a text")
    _check_text(text, [(fact, quote) for _, fact, quote in proofs], about, beliefs)
    return Operation(do, name, text, operation.proofs)


def _words(belief: KnownObservation) -> frozenset[str]:
    """The words of a belief and of its proofs: two that have none in common do not say the same."""
    return frozenset(word for word in terms(" ".join((belief.text, *belief.evidence))) if not word.isdigit())


def _belief(label: str, beliefs: Mapping[str, KnownObservation]) -> KnownObservation:
    if label not in beliefs:
        raise RefusedProposal(f"there is no observation {label or 'given'!r}")
    return beliefs[label]


def _proof(given: Mapping[str, Any], facts: Mapping[str, tuple[str, Fact]]) -> tuple[str, Fact, str]:
    if given["fact"] not in facts:
        raise RefusedProposal(f"there is no fact {given['fact']!r} here")
    mark, fact = facts[given["fact"]]
    quote = " ".join(given["quote"].split())
    if not quote or not has_quote(quote, fact):
        raise RefusedProposal(f"{given['fact']} does not have the words {quote[:60]!r}")
    return mark, fact, quote


def _check_text(
    text: str,
    proofs: Sequence[tuple[Fact, str]],
    about: KnownObservation | None,
    beliefs: Mapping[str, KnownObservation],
) -> None:
    if about and about.by_person:
        raise RefusedProposal("a person worded this observation: strengthen it, or create another")
    same = next((label for label, b in beliefs.items() if b.text.casefold() == text.casefold()), None)
    if same:
        raise RefusedProposal(f"{same} says exactly this: strengthen it")
    facts = [fact for fact, _ in proofs]
    days = [day for fact in facts if (day := day_of(fact))]
    evidence = [source for fact in facts for source in sources(fact)] + days
    evidence += [name for fact in facts for name in (*fact.entities, fact.when or "") if name]
    evidence += [about.text, *about.evidence] if about else []
    missing = ungrounded(text, evidence, date.fromisoformat(max(days)) if days else None)
    if missing:
        raise RefusedProposal(f"not in the facts cited: {', '.join(missing)}")
    quotes = [quote for _, quote in proofs] + ([about.text, *about.evidence] if about else [])
    if why := disagreement(text, quotes, evidence):
        raise RefusedProposal(f"not in agreement with the facts cited: {why}")


# -- considered --------------------------------------------------------------------------------------------
# Which facts a consolidation has considered: said by the trail alone, in the trailers of its runs.
#
# `Considered: ^k7m2q9x4tb:1f2e3d4c …` names facts that a model was shown, `Compared:` those that were only
# compared with the others, and `Set-aside:` those that no answer could be had for. A name ends in the first
# digits of the text's hash, so that an edited fact counts as new; a person's lines without an id are named
# by their path, `memory/2026-11-21.md#1f2e3d4c,…`. The newest mention counts, and an undone run said
# nothing.


CONSIDERED, COMPARED, ASIDE = "Considered", "Compared", "Set-aside"
NAMES_IN_A_LINE = 40
"""A line of some 800 characters: git reads 250 of them as quickly as one, and a person can page them."""
_DIGITS = 8


@dataclass(frozen=True, slots=True)
class ConsideredFacts:
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
        return self.is_new(marks(fact), modelled=modelled, retry=retry)

    def is_new(self, own: Collection[str], *, modelled: bool, retry: bool = False) -> bool:
        """As `waits`, for a fact that a run may look at, by the names it may have been called by."""
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
    return names_of(fact.place.path, fact.ref, document.texthash(fact.text))


def names_of(path: str, ref: str | None, texthash: str) -> tuple[str, ...]:
    """As `marks`, of what an index knows of a fact."""
    hashed = texthash[:_DIGITS]
    by_place = f"{quote(path, safe='/@+=~')}#{hashed}"
    return (f"^{ref}:{hashed}", by_place) if ref else (by_place,)


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


def read(store: Store) -> ConsideredFacts:
    """What the trail says of all facts."""
    found: dict[str, str] = {}
    log = store.history.with_trailer("Memory-Op", "consolidate")
    gone = store.history.taken_back()
    for run in log:  # the newest first
        if run.id in gone:
            continue
        for key in (CONSIDERED, COMPARED, ASIDE):
            for name in _names(run.trailers.get(key, ())):
                # Being compared says nothing about what a model was, or was not, shown.
                found[name] = key if found.get(name, COMPARED) == COMPARED else found[name]
    named = {key: frozenset(name for name, of in found.items() if of == key) for key in set(found.values())}
    return ConsideredFacts(*(named.get(key, frozenset()) for key in (CONSIDERED, COMPARED, ASIDE)))


def _names(values: Iterable[str]) -> Iterator[str]:
    for value in values:
        path, sign, hashes = value.partition("#")
        yield from (f"{path}#{each}" for each in hashes.split(",")) if sign else value.split()


# -- applying ----------------------------------------------------------------------------------------------
# Operations into the truth: in one open revision, each checked against the files as they are now.


@dataclass(frozen=True, slots=True)
class ObservationChange:
    """What became of one observation: `how` is created, strengthened, revised, retired, merged, or proofs
    lost; `before` is None for a new one."""

    how: str
    after: Observation
    before: Observation | None = None


@dataclass(slots=True)
class OperationApplier:
    """One revision's changes. `spare` is how many observations may still be retired; what goes beyond that is
    `held`, what could not be done is in `notes`. Names in `waiting` were held by an earlier run,
    what is in `theirs` was worded by a person, and is not reworded."""

    draft: Draft
    beliefs: ObservationIndex
    today: date
    spare: int
    waiting: Collection[str] = ()
    theirs: Collection[str] = ()
    changes: list[ObservationChange] = field(default_factory=list)
    held: list[Operation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    now: dict[str, Observation] = field(default_factory=dict)
    facts: dict[str, Fact] = field(default_factory=dict)
    by_id: dict[str, Fact] = field(default_factory=dict)
    _given: dict[str, Fact] = field(default_factory=dict)
    """The facts that the operation at hand gave an id, as they were before."""

    def __post_init__(self) -> None:
        self.now = {name_of(each): each for each in self.beliefs.live}
        self.by_id = dict(self.beliefs.by_id)
        self.facts = {name: fact for fact in self.beliefs.facts for name in marks(fact)}

    def mend(self) -> None:
        """Take the proofs away that do not stand any more: a fact is gone, retired, or was edited so that the
        words are not in it. Where a person took proofs out of the file, count and days follow. Who has none
        left is retired, or held as it is; who never had any is a person's, and stays. Last of all, since what
        a fact says now may be a proof again."""
        counted = {change.after.ref for change in self.changes}
        for each in {name_of(one): one for one in self.now.values()}.values():
            fresh = observations.freshness(each, self.by_id, ())
            fewer = each.ref in self.beliefs.miscounted and each.ref not in counted
            if not (fresh.lost or fewer) or (name_of(each) in self.theirs and not each.proofs):
                continue
            if any(observations.is_supported(proof, self.by_id) for proof in each.proofs):
                after = observations.without_lost(self.draft, each, self.by_id, today=self.today)
                self._changed("proofs lost", after, each)
            elif self.spare > 0 and name_of(each) not in self.waiting:
                after = observations.without_lost(self.draft, each, self.by_id, today=self.today)
                self._retire(after, f"nothing proves it any more: {'; '.join(fresh.lost)}"[:400])
            else:
                self.held.append(Operation("retire", name_of(each)))

    def apply(self, operations: Iterable[Operation]) -> None:
        """Do what can be done, in order. What cannot gives no line an id either."""
        for operation in operations:
            files = dict(self.draft.files)
            self._given = {}
            try:
                self._apply(operation)
            except (Malformed, Usage, KeyError) as error:
                self._take_back(files)
                what = (
                    error.what
                    if isinstance(error, Malformed | Usage)
                    else "a fact or observation changed meanwhile"
                )
                self.notes.append(
                    f"left out: {operation.do} {operation.text or operation.observation}: {what}"[:300]
                )

    def _apply(self, operation: Operation) -> None:
        if operation.do in ("retire", "merge"):
            self._end(operation)
            return
        grounds = [ProofText(self._cited(mark), quote) for mark, quote in operation.proofs]
        if operation.do == "create":
            there = {each.place.path for each in self.beliefs.observations}
            made = observations.add(self.draft, operation.text, grounds, today=self.today, there=there)
            self.now[operation.observation] = made
            self.changes.append(ObservationChange("created", made))
            return
        old = self.now[operation.observation]
        text = operation.text or old.text
        if text != old.text and name_of(old) in self.theirs:
            raise Malformed("a person worded this observation", where=old.place.citation)
        after = observations.revise(self.draft, old, text, grounds, self.by_id, today=self.today)
        if after != old:
            self._changed("revised" if after.text != old.text else "strengthened", after, old)

    def _cited(self, mark: str) -> Fact:
        """A fact with an id, which it is given if it has none. KeyError where it has changed meanwhile."""
        known = self.facts[mark]
        fact = cited(self.draft, known)
        if not known.id:
            self._given[mark] = known
        self.facts[mark] = self.by_id[str(fact.ref)] = fact
        return fact

    def _take_back(self, files: dict[str, bytes | None]) -> None:
        """Leave the files as they were before an operation, and the facts without the ids it gave them."""
        self.draft.files = files
        for mark, known in self._given.items():
            self.by_id.pop(str(self.facts[mark].ref), None)
            self.facts[mark] = known

    def _end(self, operation: Operation) -> None:
        old = self.now[operation.observation]
        others = [self.now[name] for name in operation.others]
        if self.spare < (len(others) or 1):
            self.held.append(operation)
            return
        if operation.do == "retire":
            fact, quote = self._cited(operation.proofs[0][0]), operation.proofs[0][1]
            self._retire(
                old, f'"{quote}" {fields.link_to(self.draft.link_name(fact.place.path), str(fact.id))}'
            )
            return
        after = observations.merge(self.draft, old, others, self.by_id, today=self.today)
        self.spare -= len(others)
        self._changed("merged", after, old)
        for name in operation.others:
            del self.now[name]

    def _retire(self, old: Observation, reason: str) -> None:
        self.spare -= 1
        after = observations.retire(self.draft, old, reason)
        self.changes.append(ObservationChange("retired", after, old))
        self.now.pop(name_of(old), None)

    def _changed(self, how: str, after: Observation, old: Observation) -> None:
        """Note a change, under every name that later operations may use."""
        for name, each in list(self.now.items()):
            if each == old:
                self.now[name] = after
        self.changes.append(ObservationChange(how, after, old))

    def trends(self) -> int:
        """Bring the trends of all that hold up to today; how many changed."""
        changed = 0
        for name, each in list(self.now.items()):
            if observations.trend(observations.days_of(each, self.by_id), self.today) in ("", each.trend):
                continue
            after = observations.with_trend(self.draft, each, self.by_id, today=self.today)
            changed += after != each
            self.now[name] = after
        return changed


# -- grouping ----------------------------------------------------------------------------------------------
# Which facts belong together: for one request to a model, and as the same thing said again.
#
# Two words weigh the more the fewer facts have them (inverse document frequency, Spärck Jones 1972), an
# entity as much as three words. Near-duplicates are found as in set similarity joins with prefix filtering
# (Chaudhuri, Ganti, Kaushik 2006): two sets that are alike share one of their rarest words, so only those
# are compared.


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
class ComparedStatement:
    """A fact or observation, prepared for comparison."""

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


def comparable(fact: Fact) -> ComparedStatement:
    """A fact, prepared for comparison."""
    return ComparedStatement(
        fact.text, scope_of(fact), day_of(fact), fact.heading.session or fact.place.path, fact
    )


def overlap(one: ComparedStatement, other: ComparedStatement) -> float:
    """The share of their words that two statements have in common, 0 to 1; 0 if their scopes differ."""
    either = one.own | other.own
    return len(one.own & other.own) / len(either) if either and one.scope == other.scope else 0.0


def says_the_same(one: ComparedStatement, other: ComparedStatement) -> bool:
    """Whether two statements say the same: most words in common, the same numbers and denials, and not each
    a name that the other has not."""
    if min(len(one.own), len(other.own)) < LEAST_WORDS or overlap(one, other) < ALIKE:
        return False
    return one.firm == other.firm and not (one.names - other.own and other.names - one.own)


def at_odds(one: ComparedStatement, other: ComparedStatement) -> bool:
    """Whether two statements say different things of the same: most words in common, but another number, or
    one of them denies. A guess for a person to look at."""
    if min(len(one.own), len(other.own)) < LEAST_WORDS - 1 or overlap(one, other) < ALIKE:
        return False
    if one.names - other.own and other.names - one.own:
        return False
    apart = {kind for kind, _ in one.firm ^ other.firm}
    both = {kind for kind, _ in one.firm} & {kind for kind, _ in other.firm}
    return apart == {"denial"} or (apart == {"number"} and "number" in both)


def similar_pairs(
    each: Sequence[ComparedStatement], least: float, fresh: Container[str]
) -> Iterator[tuple[int, int]]:
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


def same(each: Sequence[ComparedStatement], fresh: Container[str]) -> list[list[int]]:
    """Groups of statements that say the same as the first of each, which has most in common with the others;
    the others come newest first. Nobody is alone."""
    twins: dict[int, set[int]] = defaultdict(set)
    for one, other in similar_pairs(each, ALIKE, fresh):
        if says_the_same(each[one], each[other]):
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
    scopes: dict[str, list[ComparedStatement]] = defaultdict(list)
    for fact in facts:
        scopes[scope_of(fact)].append(comparable(fact))
    return [[one.fact for one in _chained(scopes[scope]) if one.fact] for scope in sorted(scopes)]


_WINDOW = 6
_HEAVY = 3.0


def _chained(each: Sequence[ComparedStatement]) -> Iterator[ComparedStatement]:
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
    each: Sequence[ComparedStatement], number: int, having: dict[str, list[int]], often: Counter[str]
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


# -- folding -----------------------------------------------------------------------------------------------
# Consolidation without a model: what several days say in nearly the same words becomes one observation.
#
# Nothing is phrased and nothing concluded: the words are those of the fact that has most in common with the
# others, freed of list marks and emphasis, and each proof is the fact it is from.


_CHECKBOX = re.compile(r"\A\s*\[[ xX]\]\s+")
_EMPHASIS = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_LONGEST_QUOTE = 300
_NO_PROSE = re.compile(r"`[^`]*`|\S*[/\\_=]\S*|\S+\.\w{1,4}\b")
_WORD = re.compile(r"[^\W\d_]{2,}")
_LISTED = re.compile(r"\s*(?:`[^`]*`|~?[\w.-]*/\S+|\S+\.\w{1,4})\s*(?:\([^)]*\)\s*)?(?:[-–—:→]|$)")
_LEAST_WORDS, _LEAST_SMALL = 4, 2
"""Words besides paths and code, and those of them that are no names: a list of files is no belief."""


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """The result of a comparison: operations, and pairs of facts that may contradict each other, the newer
    first."""

    operations: tuple[Operation, ...] = ()
    at_odds: tuple[tuple[Fact, Fact], ...] = ()


def fold(beliefs: ObservationIndex, waiting: Sequence[Fact], clean: Callable[[str], str]) -> ComparisonResult:
    """Compare the facts that wait with all others and with the observations there are. `clean` takes secrets
    out: a fact that has any is no quote for a belief."""
    fresh = {mark(fact) for fact in waiting}
    if not fresh:
        return ComparisonResult()
    everything = [comparable(fact) for fact in beliefs.facts if not fact.retired]
    own = [ComparedStatement(each.text, each.scope or "", each.last or "") for each in beliefs.live]
    operations, proved = _strengthened(beliefs.live, own, everything, fresh, clean)
    # What a person retired is not made anew of the same facts.
    ended = {proof.ref for each in beliefs.observations if each.retired for proof in each.proofs}
    rest = [one for one in everything if one.fact and one.mark not in proved and one.fact.ref not in ended]
    operations += _created(rest, beliefs, fresh, clean)
    return ComparisonResult(tuple(operations), tuple(_at_odds(everything, fresh)))


def _strengthened(
    live: Sequence[Observation], own: Sequence[ComparedStatement],
    facts: Sequence[ComparedStatement], fresh: set[str], clean: Callable[[str], str],
) -> tuple[list[Operation], set[str]]:  # fmt: skip
    """New proofs for what is believed already, and the marks of all facts that are some belief's proof."""
    by_id = by_ref(one.fact for one in facts if one.fact)
    # A fact that was edited since proves nothing until it is found alike again.
    every = ((number, p) for number, each in enumerate(live) for p in each.proofs if is_supported(p, by_id))
    proofs = {fact.ref: number for number, p in every if (fact := linked(p, by_id))}
    of_fact = {id(one): proofs.get(one.fact.ref or "") for one in facts if one.fact}
    found: dict[int, list[Fact]] = {}
    each = [*own, *facts]
    for one, other in similar_pairs(each, ALIKE, fresh):
        first, second = (other, one) if other < len(own) or one >= len(own) else (one, other)
        for left, right in ((first, second), (second, first)):
            fact = each[right].fact
            if fact is None or each[right].mark not in fresh or of_fact[id(each[right])] is not None:
                continue
            number = left if left < len(own) else of_fact[id(each[left])]
            if number is not None and says_the_same(each[left], each[right]):
                found.setdefault(number, []).append(fact)
    made, proved = [], {one.mark for one in facts if one.fact and of_fact[id(one)] is not None}
    for number, some in sorted(found.items()):
        quoted = _quoted([fact for fact in some if mark(fact) not in proved], clean)
        proved |= {each for each, _ in quoted}
        if quoted:
            made.append(Operation("strengthen", name_of(live[number]), proofs=quoted))
    return made, proved


def _created(
    rest: Sequence[ComparedStatement], beliefs: ObservationIndex, fresh: set[str], clean: Callable[[str], str]
) -> list[Operation]:
    texts = {each.text.casefold() for each in beliefs.observations}
    made = []
    for group in same(rest, fresh):
        facts = [fact for number in group if (fact := rest[number].fact)]
        text, told = plain(facts[0].text), {mark(fact): comparable(fact).source for fact in facts}
        quoted = _quoted(facts, clean)
        several = len({told[each] for each, _ in quoted}) > 1
        if (
            several
            and _is_prose(text)
            and fresh & told.keys()
            and text.casefold() not in texts
            and clean(text) == text
        ):
            made.append(Operation("create", f"new:{new_id()}", text, quoted))
    return made


def _is_prose(text: str) -> bool:
    """Whether a line says something, and is no entry of a list: `src/a.py — fixed`, `late = 5 (~84%)`."""
    words = _WORD.findall(_NO_PROSE.sub(" ", text))
    small = sum(not word[0].isupper() for word in words)
    return len(words) >= _LEAST_WORDS and small >= _LEAST_SMALL and not _LISTED.match(text)


def _quoted(facts: Iterable[Fact], clean: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
    """Each fact with its own words, cut at a word where they are many."""
    found = {}
    for fact in facts:
        words = " ".join(fact.text.split())
        quote = words if len(words) <= _LONGEST_QUOTE else words[:_LONGEST_QUOTE].rpartition(" ")[0]
        if quote and clean(quote) == quote:
            found[mark(fact)] = quote
    return tuple(found.items())


def _at_odds(facts: Sequence[ComparedStatement], fresh: set[str]) -> Iterable[tuple[Fact, Fact]]:
    """Facts that wait, against all others: the same words, another number or a denial."""
    for one, other in similar_pairs(facts, ALIKE, fresh):
        pair = sorted((facts[one], facts[other]), key=lambda each: (each.day, each.source), reverse=True)
        if pair[0].source == pair[1].source or not at_odds(*pair):
            continue
        newer, older = pair[0].fact, pair[1].fact
        if newer and older and fresh & {mark(newer), mark(older)}:
            yield newer, older


def plain(text: str) -> str:
    """A list line as a sentence, without checkbox and emphasis."""
    return " ".join(_EMPHASIS.sub(r"\2", _CHECKBOX.sub("", text)).split())


# -- worded ------------------------------------------------------------------------------------------------
# Whose words an observation has: those that a person wrote over a machine's are the person's.
#
# Nothing in the file says so. The trail does: a revision of a person that changed the text of an id, and
# the text that stands there still. A file that a person brought as it was, or moved, made nobody's words
# theirs.


_Texts = Mapping[str, str]
"""Texts by id."""


def persons(store: Store, live: Iterable[Observation]) -> frozenset[Observation]:
    """The observations that a person wrote: no machine rewords them."""
    theirs = [*_wordings(store)]
    return frozenset(one for one in live if by_person(one) or (one.id, one.text) in theirs)


def _wordings(store: Store) -> Iterator[tuple[str, str]]:
    """(id, text) wherever a person has changed the text of an id, on disk or in the trail."""
    changed = [path for path in store.survey().changed if path.startswith(f"{FOLDER}/")]
    yield from _between(
        _texts((path, store.history.read("HEAD", path)) for path in changed),
        _texts((path, _now(store, path)) for path in changed),
    )
    for done in store.history.log([FOLDER]):
        if done.author != MACHINE[0] and done.trailer("Memory-Op") not in ON_BEHALF:
            paths = [path for path in done.paths if path.startswith(f"{FOLDER}/")]
            before = store.history.read_all([(f"{done.id}^", path) for path in paths])
            after = store.history.read_all([(done.id, path) for path in paths])
            yield from _between(
                _texts(zip(paths, before, strict=True)), _texts(zip(paths, after, strict=True))
            )


def _between(before: _Texts, after: _Texts) -> Iterator[tuple[str, str]]:
    yield from ((block, said) for block, said in after.items() if before.get(block, said) != said)


def _texts(files: Iterable[tuple[str, bytes | None]]) -> _Texts:
    found = (document.parse(data, path).of(Observation) for path, data in files if data)
    return {one.id: one.text for each in found for one in each if one.id}


def _now(store: Store, path: str) -> bytes | None:
    try:
        return store.truth(path)
    except NotFound:
        return None
