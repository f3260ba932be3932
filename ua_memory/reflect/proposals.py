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

from ua_memory.errors import Malformed, Usage
from ua_memory.git.repository import MACHINE, REQUESTED_OPS
from ua_memory.knowledge import observations
from ua_memory.knowledge.observations import ObservationIndex, ProofText, by_person, day_of, scope_of
from ua_memory.knowledge.statements import by_ref, ensure_id, name_of, new_id, read_files, resolve_link
from ua_memory.markdown import document, fields
from ua_memory.records import Fact, Observation
from ua_memory.store.draft import Draft
from ua_memory.store.store import Store
from ua_memory.text.grounding import claims, disagreement, terms, ungrounded_claims

# -- proposals ---------------------------------------------------------------------------------------------
# A model's proposals for observations, and their checks.
#
# A proposal names facts and observations by the labels that the model was shown. Its quotes must be in their
# facts, and its text must name nothing that these do not name. `OperationApplier` writes it.


class RefusedProposal(Exception):
    """Why a proposal is refused, in words for the model."""


@dataclass(frozen=True, slots=True)
class KnownObservation:
    """An observation as a run knows it, including those that the run has created. `name` is stable across
    runs: `^id`, or a path and a hash, or `new:…`. `evidence` is further text that its wording may use."""

    name: str
    text: str
    scope: str = ""
    last: str = ""
    proofs: int = 0
    evidence: tuple[str, ...] = ()
    by_person: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One change of an observation, with stable names: facts by their marks, observations by
    `KnownObservation.name`, including the one that is created."""

    do: str
    observation: str
    text: str = ""
    proofs: tuple[tuple[str, str], ...] = ()
    others: tuple[str, ...] = ()

    @property
    def without_proof(self) -> bool:
        """Whether an observation is to be retired since it has no proof left."""
        return self.do == "retire" and not self.proofs


def check_proposal(
    given: Mapping[str, Any], facts: Mapping[str, tuple[str, Fact]], beliefs: Mapping[str, KnownObservation],
    new: str,
) -> Operation:  # fmt: skip
    """Check a proposal and return it as an operation. RefusedProposal. `facts` are (mark, fact) by label,
    `beliefs` the current observations by label; `new` is the name for an observation that is created."""
    do, text = given["do"], " ".join(given.get("text", "").split())
    about = None if do == "create" else _observation_by_label(given.get("observation", ""), beliefs)
    name = about.name if about else new
    if do == "merge":
        merged = {label: _observation_by_label(label, beliefs) for label in given.get("others", ())}
        others = tuple(dict.fromkeys(each.name for each in merged.values()))
        if about is None or not others or name in others:
            raise RefusedProposal("merge needs others, which say the same as observation")
        for label, each in merged.items():
            if not _words(about) & _words(each):
                raise RefusedProposal(f"{label} has no word of {given['observation']}, nor have their proofs")
        return Operation(do, name, others=others)
    proofs = [_check_proof(each, facts) for each in given.get("proofs", ())]
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
    """The words of an observation and its proofs: two with none in common do not say the same."""
    return frozenset(word for word in terms(" ".join((belief.text, *belief.evidence))) if not word.isdigit())


def _observation_by_label(label: str, beliefs: Mapping[str, KnownObservation]) -> KnownObservation:
    if label not in beliefs:
        raise RefusedProposal(f"there is no observation {label or 'given'!r}")
    return beliefs[label]


def _check_proof(given: Mapping[str, Any], facts: Mapping[str, tuple[str, Fact]]) -> tuple[str, Fact, str]:
    if given["fact"] not in facts:
        raise RefusedProposal(f"there is no fact {given['fact']!r} here")
    mark, fact = facts[given["fact"]]
    quote = " ".join(given["quote"].split())
    if not quote or not observations.has_quote(quote, fact):
        raise RefusedProposal(f"{given['fact']} does not have the words {quote[:60]!r}")
    return mark, fact, quote


def _check_text(
    text: str, proofs: Sequence[tuple[Fact, str]], about: KnownObservation | None,
    beliefs: Mapping[str, KnownObservation],
) -> None:  # fmt: skip
    if about and about.by_person:
        raise RefusedProposal("a person worded this observation: strengthen it, or create another")
    same = next((label for label, b in beliefs.items() if b.text.casefold() == text.casefold()), None)
    if same:
        raise RefusedProposal(f"{same} says exactly this: strengthen it")
    facts = [fact for fact, _ in proofs]
    days = [day for fact in facts if (day := day_of(fact))]
    evidence = [source for fact in facts for source in observations.sources(fact)] + days
    evidence += [name for fact in facts for name in (*fact.entities, fact.when or "") if name]
    evidence += [about.text, *about.evidence] if about else []
    missing = ungrounded_claims(text, evidence, date.fromisoformat(max(days)) if days else None)
    if missing:
        raise RefusedProposal(f"not in the facts cited: {', '.join(missing)}")
    quotes = [quote for _, quote in proofs] + ([about.text, *about.evidence] if about else [])
    if why := disagreement(text, quotes, evidence):
        raise RefusedProposal(f"not in agreement with the facts cited: {why}")


# -- considered facts --------------------------------------------------------------------------------------
# Trailers of consolidation commits name the facts that were considered. They are stored nowhere else.
#
# `Considered: ^k7m2q9x4tb:1f2e3d4c …` names facts that a model was shown, `Compared:` those that were only
# compared with the others, and `Set-aside:` those without an answer. A name ends in the first digits of the
# text's hash, so that an edited fact counts as new; a person's lines without an id are named by their path,
# `memory/2026-11-21.md#1f2e3d4c,…`. The newest mention counts, and those of undone runs do not.


CONSIDERED, COMPARED, ASIDE = "Considered", "Compared", "Set-aside"
NAMES_IN_A_LINE = 40
"""Makes lines of some 800 characters: git reads 250 of them as fast as one, and people can scroll."""
_HASH_DIGITS = 8


@dataclass(frozen=True, slots=True)
class ConsideredFacts:
    """The names of facts that runs have considered: each is in one set at most."""

    by_model: frozenset[str] = frozenset()
    compared: frozenset[str] = frozenset()
    aside: frozenset[str] = frozenset()

    def waits(self, fact: Fact, *, modelled: bool, retry: bool = False) -> bool:
        """Whether a run has to consider a fact: with a model, if no model was shown it; without one, if it
        was never compared. Facts that were set aside only with `retry`. Retired facts never, nor untrusted
        ones: an observation is in the owner's own voice."""
        if fact.retired or fact.untrusted:
            return False
        return self.is_new(fact_marks(fact), modelled=modelled, retry=retry)

    def is_new(self, names: Collection[str], *, modelled: bool, retry: bool = False) -> bool:
        """As `waits`, for a fact that is neither retired nor untrusted, by all names it may have had."""
        done = self.by_model if modelled else self.by_model | self.compared
        if any(mark in self.aside for mark in names):
            return modelled and retry
        return not any(mark in done for mark in names)

    def is_aside(self, fact: Fact) -> bool:
        """Whether a fact was set aside."""
        return any(mark in self.aside for mark in fact_marks(fact))


def fact_mark(fact: Fact) -> str:
    """The name of a fact in trailers, as it reads now."""
    return fact_marks(fact)[0]


def fact_marks(fact: Fact) -> tuple[str, ...]:
    """All names a fact may have in trailers: it may have had no id before."""
    return marks_from_index(fact.place.path, fact.ref, document.texthash(fact.text))


def marks_from_index(path: str, ref: str | None, texthash: str) -> tuple[str, ...]:
    """As `fact_marks`, from what an index knows of a fact."""
    hashed = texthash[:_HASH_DIGITS]
    by_place = f"{quote(path, safe='/@+=~')}#{hashed}"
    return (f"^{ref}:{hashed}", by_place) if ref else (by_place,)


def trailer_values(names: Iterable[str]) -> list[str]:
    """Names as the values of several trailers; those of one file share its path."""
    found, by_path = [], dict[str, list[str]]()
    for name in sorted(names):
        path, sign, hashed = name.partition("#")
        by_path.setdefault(path if sign else "", []).append(hashed if sign else name)
    for path, each in by_path.items():
        for at in range(0, len(each), NAMES_IN_A_LINE):
            some = each[at : at + NAMES_IN_A_LINE]
            found.append(f"{path}#{','.join(some)}" if path else " ".join(some))
    return found


def considered(store: Store) -> ConsideredFacts:
    """The facts that all runs have considered, from their trailers."""
    found: dict[str, str] = {}
    log = store.history.with_trailer("Memory-Op", "consolidate")
    gone = store.history.undone_revisions()
    for run in log:  # the newest first
        if run.id in gone:
            continue
        for key in (CONSIDERED, COMPARED, ASIDE):
            for name in _parse_trailers(run.trailers.get(key, ())):
                # A comparison does not change whether a model was shown the fact.
                found[name] = key if found.get(name, COMPARED) == COMPARED else found[name]
    named = {key: frozenset(name for name, of in found.items() if of == key) for key in set(found.values())}
    return ConsideredFacts(*(named.get(key, frozenset()) for key in (CONSIDERED, COMPARED, ASIDE)))


def _parse_trailers(values: Iterable[str]) -> Iterator[str]:
    for value in values:
        path, sign, hashes = value.partition("#")
        yield from (f"{path}#{each}" for each in hashes.split(",")) if sign else value.split()


# -- applying operations -----------------------------------------------------------------------------------
# All in one open revision; each is checked against the files as they are now.


@dataclass(frozen=True, slots=True)
class ObservationChange:
    """A change of one observation: `how` is created, strengthened, revised, retired, merged, or proofs lost;
    `before` is None for a new one."""

    how: str
    after: Observation
    before: Observation | None = None


@dataclass(slots=True)
class OperationApplier:
    """Applies operations in one revision. `spare` is how many observations may still be retired; operations
    beyond that are `held`, those that failed are in `notes`. Names in `waiting` were held by an earlier run;
    observations in `by_person` were worded by a person and are not reworded."""

    draft: Draft
    beliefs: ObservationIndex
    today: date
    spare: int
    waiting: Collection[str] = ()
    by_person: Collection[str] = ()
    changes: list[ObservationChange] = field(default_factory=list)
    held: list[Operation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    now: dict[str, Observation] = field(default_factory=dict)
    facts: dict[str, Fact] = field(default_factory=dict)
    by_id: dict[str, Fact] = field(default_factory=dict)
    _given_ids: dict[str, Fact] = field(default_factory=dict)
    """The facts that the current operation has given an id, as they were before."""

    def __post_init__(self) -> None:
        self.now = {name_of(each): each for each in self.beliefs.live}
        self.by_id = dict(self.beliefs.by_id)
        self.facts = {name: fact for fact in self.beliefs.facts for name in fact_marks(fact)}

    def remove_lost_proofs(self) -> None:
        """Remove proofs whose fact is gone, retired, or was edited so that it no longer has the quote. Where
        a person removed proofs from the file, update count and days. An observation without proofs left is
        retired, or held; one that never had any is a person's, and stays. This comes last, since an operation
        may prove it again."""
        counted = {change.after.ref for change in self.changes}
        for each in {name_of(one): one for one in self.now.values()}.values():
            fresh = observations.freshness(each, self.by_id, ())
            fewer = each.ref in self.beliefs.miscounted and each.ref not in counted
            if not (fresh.lost or fewer) or (name_of(each) in self.by_person and not each.proofs):
                continue
            if any(observations.is_supported(proof, self.by_id) for proof in each.proofs):
                after = observations.drop_lost_proofs(self.draft, each, self.by_id, today=self.today)
                self._record_change("proofs lost", after, each)
            elif self.spare > 0 and name_of(each) not in self.waiting:
                after = observations.drop_lost_proofs(self.draft, each, self.by_id, today=self.today)
                self._retire(after, f"nothing proves it any more: {'; '.join(fresh.lost)}"[:400])
            else:
                self.held.append(Operation("retire", name_of(each)))

    def apply(self, operations: Iterable[Operation]) -> None:
        """Apply the operations in order. One that fails leaves no trace, not even an id in a line."""
        for operation in operations:
            files = dict(self.draft.files)
            self._given_ids = {}
            try:
                self._apply(operation)
            except (Malformed, Usage, KeyError) as error:
                self._roll_back(files)
                what = getattr(error, "what", "a fact or observation was changed in the meantime")
                name = operation.text or operation.observation
                self.notes.append(f"left out: {operation.do} {name}: {what}"[:300])

    def _apply(self, operation: Operation) -> None:
        if operation.do in ("retire", "merge"):
            self._retire_or_merge(operation)
            return
        grounds = [ProofText(self._fact_with_id(mark), quote) for mark, quote in operation.proofs]
        if operation.do == "create":
            there = {each.place.path for each in self.beliefs.observations}
            made = observations.add(self.draft, operation.text, grounds, today=self.today, there=there)
            self.now[operation.observation] = made
            self.changes.append(ObservationChange("created", made))
            return
        old = self.now[operation.observation]
        text = operation.text or old.text
        if text != old.text and name_of(old) in self.by_person:
            raise Malformed("a person worded this observation", where=old.place.citation)
        after = observations.revise(self.draft, old, text, grounds, self.by_id, today=self.today)
        if after != old:
            self._record_change("revised" if after.text != old.text else "strengthened", after, old)

    def _fact_with_id(self, mark: str) -> Fact:
        """A fact by its mark, with an id, which is added to its line if it has none. KeyError if the fact has
        changed."""
        known = self.facts[mark]
        fact = ensure_id(self.draft, known)
        if not known.id:
            self._given_ids[mark] = known
        self.facts[mark] = self.by_id[str(fact.ref)] = fact
        return fact

    def _roll_back(self, files: dict[str, bytes | None]) -> None:
        """Restore the files and facts from before an operation."""
        self.draft.files = files
        for mark, known in self._given_ids.items():
            self.by_id.pop(str(self.facts[mark].ref), None)
            self.facts[mark] = known

    def _retire_or_merge(self, operation: Operation) -> None:
        old = self.now[operation.observation]
        others = [self.now[name] for name in operation.others]
        if self.spare < (len(others) or 1):
            self.held.append(operation)
            return
        if operation.do == "retire":
            mark, quote = operation.proofs[0]
            fact = self._fact_with_id(mark)
            link = fields.link_to(self.draft.link_name(fact.place.path), str(fact.id))
            self._retire(old, f'"{quote}" {link}')
            return
        after = observations.merge(self.draft, old, others, self.by_id, today=self.today)
        self.spare -= len(others)
        self._record_change("merged", after, old)
        for name in operation.others:
            del self.now[name]

    def _retire(self, old: Observation, reason: str) -> None:
        self.spare -= 1
        after = observations.retire(self.draft, old, reason)
        self.changes.append(ObservationChange("retired", after, old))
        self.now.pop(name_of(old), None)

    def _record_change(self, how: str, after: Observation, old: Observation) -> None:
        """Record a change, under every name that later operations may use."""
        for name, each in list(self.now.items()):
            if each == old:
                self.now[name] = after
        self.changes.append(ObservationChange(how, after, old))

    def update_trends(self) -> None:
        """Update the trends of all current observations."""
        for name, each in list(self.now.items()):
            if observations.trend(observations.days_of(each, self.by_id), self.today) not in ("", each.trend):
                self.now[name] = observations.update_trend(self.draft, each, self.by_id, today=self.today)


# -- similarity --------------------------------------------------------------------------------------------
# Related facts, for one request to a model, and near-duplicates.
#
# Words have inverse document frequencies as weights (Spärck Jones 1972), entities three times as much.
# Near-duplicates are found by a set similarity join with prefix filtering (Chaudhuri, Ganti, Kaushik 2006):
# two similar sets share one of their rarest words, so only those are compared.


SIMILAR = 0.62
"""The Jaccard similarity from which two statements say the same."""
LEAST_WORDS = 4
"""Shorter statements are not compared: "Status: done" may be about anything."""
LONGEST_STATEMENT = 60
"""Most words of a statement that is compared; a longer one is no single statement."""
COMMON_WORD = 200
"""A word leads to so many statements at most, the latest; a more common word does not distinguish any."""
_FIRM_CLAIMS = ("number", "date", "stretch")
_NAME_CLAIMS = ("identifier", "url", "email", "path", "code", "name", "opening")
_NEGATIONS = frozenset("no not never none nor neither without cannot".split())  # noqa: SIM905


@dataclass(frozen=True, eq=False)
class ComparedStatement:
    """A fact or observation, prepared for comparison."""

    text: str
    scope: str
    day: str = ""
    source: str = ""
    """Where it was said: a session or a file. Repetitions in one source do not count as evidence."""
    fact: Fact | None = None

    @cached_property
    def mark(self) -> str:
        """The fact's name in trailers, '' for an observation."""
        return fact_mark(self.fact) if self.fact else ""

    @property
    def entities(self) -> tuple[str, ...]:
        """The fact's entities."""
        return self.fact.entities if self.fact else ()

    @cached_property
    def words(self) -> frozenset[str]:
        """All words that carry meaning, entities included."""
        return terms(f"{self.text} {' '.join(self.entities)}")

    @cached_property
    def own_words(self) -> frozenset[str]:
        """The words of the text alone, without single letters."""
        return frozenset(word for word in terms(self.text) if len(word) > 1 or word.isdigit())

    @cached_property
    def fixed(self) -> frozenset[tuple[str, str]]:
        """The numbers, days and negations, which are equal in statements that say the same."""
        found = {(kind, what.casefold()) for kind, what in claims(self.text) if kind in _FIRM_CLAIMS}
        return frozenset(found | {("denial", word) for word in _negations(self.text)})

    @cached_property
    def names(self) -> frozenset[str]:
        """The words of names and identifiers."""
        named = " ".join(what for kind, what in claims(self.text) if kind in _NAME_CLAIMS)
        return terms(named) & self.own_words


def comparable(fact: Fact) -> ComparedStatement:
    """A fact, prepared for comparison."""
    source = fact.heading.session or fact.place.path
    return ComparedStatement(fact.text, scope_of(fact), day_of(fact), source, fact)


def overlap(one: ComparedStatement, other: ComparedStatement) -> float:
    """The Jaccard similarity of two statements' words, 0 to 1; 0 if their scopes differ."""
    either = one.own_words | other.own_words
    return len(one.own_words & other.own_words) / len(either) if either and one.scope == other.scope else 0.0


def says_the_same(one: ComparedStatement, other: ComparedStatement) -> bool:
    """Whether two statements say the same: most words in common, equal numbers and negations, and not each a
    name that the other lacks."""
    if min(len(one.own_words), len(other.own_words)) < LEAST_WORDS or overlap(one, other) < SIMILAR:
        return False
    return one.fixed == other.fixed and not (one.names - other.own_words and other.names - one.own_words)


def may_contradict(one: ComparedStatement, other: ComparedStatement) -> bool:
    """Whether two statements may contradict each other: most words in common, but another number, or one is
    negated."""
    if min(len(one.own_words), len(other.own_words)) < LEAST_WORDS - 1 or overlap(one, other) < SIMILAR:
        return False
    if one.names - other.own_words and other.names - one.own_words:
        return False
    apart = {kind for kind, _ in one.fixed ^ other.fixed}
    both = {kind for kind, _ in one.fixed} & {kind for kind, _ in other.fixed}
    return apart == {"denial"} or (apart == {"number"} and "number" in both)


def similar_pairs(each: Sequence[ComparedStatement], fresh: Container[str]) -> Iterator[tuple[int, int]]:
    """The pairs of statements, by index, that may be SIMILAR. One of the two is in `fresh`, by its mark."""
    often = Counter(word for one in each for word in one.own_words)
    having: dict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(each):
        if not LEAST_WORDS - 1 <= len(one.own_words) <= LONGEST_STATEMENT:
            continue
        rare = sorted(one.own_words, key=lambda word: (often[word], word))
        prefix = rare[: len(rare) - math.ceil(SIMILAR * len(rare)) + 1]
        for before in {n for word in prefix for n in having[word][-COMMON_WORD:]}:
            if each[number].mark in fresh or each[before].mark in fresh:
                yield before, number
        for word in prefix:
            having[word].append(number)


def duplicate_groups(each: Sequence[ComparedStatement], fresh: Container[str]) -> list[list[int]]:
    """Groups of statements that say the same as the first of each, which is similar to most others; the
    others come newest first. No group has a single member."""
    twins: dict[int, set[int]] = defaultdict(set)
    for one, other in similar_pairs(each, fresh):
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


def group_related(facts: Sequence[Fact]) -> list[list[Fact]]:
    """The facts of each scope, ordered so that related ones are neighbours: from the oldest on, the next is
    the one that shares most with the last few."""
    scopes: dict[str, list[ComparedStatement]] = defaultdict(list)
    for fact in facts:
        scopes[scope_of(fact)].append(comparable(fact))
    return [[one.fact for one in _order_by_relation(scopes[scope]) if one.fact] for scope in sorted(scopes)]


_WINDOW = 6
_ENTITY_WEIGHT = 3.0


def _order_by_relation(each: Sequence[ComparedStatement]) -> Iterator[ComparedStatement]:
    often = Counter(word for one in each for word in one.words)
    having: dict[str, list[int]] = defaultdict(list)
    for number, one in enumerate(each):
        for word in one.words:
            if 1 < often[word] <= COMMON_WORD:
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
        score.update(_shared_weights(each, number, having, often))
        score.pop(number, None)
        if len(recent) > _WINDOW:
            score.subtract(_shared_weights(each, recent.pop(0), having, often))
            score = Counter({n: s for n, s in score.items() if s > 1e-9 and n in left})


def _shared_weights(
    each: Sequence[ComparedStatement], number: int, having: dict[str, list[int]], often: Counter[str]
) -> Counter[int]:
    """How much a statement has in common with each of the others."""
    found: Counter[int] = Counter()
    entities = {name.casefold() for name in each[number].entities}
    for word in each[number].words:
        weight = math.log(1 + len(each) / often[word]) * (_ENTITY_WEIGHT if word in entities else 1)
        for other in having.get(word, ()):
            found[other] += weight  # type: ignore[assignment]
    return found


def _negations(text: str) -> Iterable[str]:
    plain = text.casefold().replace("'", "").replace("’", "")
    words = {"".join(c for c in word if c.isalnum()) for word in plain.split()}
    return (words & _NEGATIONS) | {word for word in words if word.endswith("nt") and word[:-2] in _VERBS}


_VERBS = frozenset("do does did is are was were has have had wo ca could should would must".split())  # noqa: SIM905


# -- consolidation without a model -------------------------------------------------------------------------
# Near-duplicates from several sources become one observation. Its text is that of the fact that is most
# similar to the others, without list marks and emphasis; the facts are its proofs.


_CHECKBOX = re.compile(r"\A\s*\[[ xX]\]\s+")
_EMPHASIS = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_LONGEST_QUOTE = 300
_PATHS_AND_CODE = re.compile(r"`[^`]*`|\S*[/\\_=]\S*|\S+\.\w{1,4}\b")
_WORD = re.compile(r"[^\W\d_]{2,}")
_FILE_ENTRY = re.compile(r"\s*(?:`[^`]*`|~?[\w.-]*/\S+|\S+\.\w{1,4})\s*(?:\([^)]*\)\s*)?(?:[-–—:→]|$)")
_LEAST_WORDS, _LEAST_LOWERCASE = 4, 2
"""The least words outside of paths and code, and of these the least in lower case: lists of files are no
prose."""


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """Result of a comparison: operations, and pairs of facts that may contradict each other, the newer
    first."""

    operations: tuple[Operation, ...] = ()
    at_odds: tuple[tuple[Fact, Fact], ...] = ()


def compare_facts(
    beliefs: ObservationIndex, waiting: Sequence[Fact], clean: Callable[[str], str]
) -> ComparisonResult:
    """Compare the waiting facts with all others and with the observations. Facts in which `clean` finds
    secrets are not quoted."""
    fresh = {fact_mark(fact) for fact in waiting}
    if not fresh:
        return ComparisonResult()
    everything = [comparable(fact) for fact in beliefs.facts if not fact.retired]
    own = [ComparedStatement(each.text, each.scope or "", each.last or "") for each in beliefs.live]
    operations, proved = _strengthen_operations(beliefs.live, own, everything, fresh, clean)
    # A retired observation is not created again from the same facts.
    ended = {proof.ref for each in beliefs.observations if each.retired for proof in each.proofs}
    rest = [one for one in everything if one.fact and one.mark not in proved and one.fact.ref not in ended]
    operations += _create_operations(rest, beliefs, fresh, clean)
    return ComparisonResult(tuple(operations), tuple(_contradictions(everything, fresh)))


def _strengthen_operations(
    live: Sequence[Observation], own: Sequence[ComparedStatement],
    facts: Sequence[ComparedStatement], fresh: set[str], clean: Callable[[str], str],
) -> tuple[list[Operation], set[str]]:  # fmt: skip
    """Operations with new proofs for current observations, and the marks of all facts that prove one."""
    by_id = by_ref(one.fact for one in facts if one.fact)
    # An edited fact proves nothing until it is found to be similar again.
    every = (
        (n, p) for n, each in enumerate(live) for p in each.proofs if observations.is_supported(p, by_id)
    )
    proofs = {fact.ref: number for number, p in every if (fact := resolve_link(p, by_id))}
    of_fact = {id(one): proofs.get(one.fact.ref or "") for one in facts if one.fact}
    found: dict[int, list[Fact]] = {}
    each = [*own, *facts]
    for one, other in similar_pairs(each, fresh):
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
        quoted = _quotes([fact for fact in some if fact_mark(fact) not in proved], clean)
        proved |= {each for each, _ in quoted}
        if quoted:
            made.append(Operation("strengthen", name_of(live[number]), proofs=quoted))
    return made, proved


def _create_operations(
    rest: Sequence[ComparedStatement], beliefs: ObservationIndex, fresh: set[str], clean: Callable[[str], str]
) -> list[Operation]:
    texts = {each.text.casefold() for each in beliefs.observations}
    made = []
    for group in duplicate_groups(rest, fresh):
        facts = [fact for number in group if (fact := rest[number].fact)]
        text = as_sentence(facts[0].text)
        sources = {fact_mark(fact): comparable(fact).source for fact in facts}
        quoted = _quotes(facts, clean)
        several = len({sources[each] for each, _ in quoted}) > 1
        is_new = fresh & sources.keys() and text.casefold() not in texts
        if several and is_new and _is_prose(text) and clean(text) == text:
            made.append(Operation("create", f"new:{new_id()}", text, quoted))
    return made


def _is_prose(text: str) -> bool:
    """Whether a text is prose rather than an entry of a list such as `src/a.py — fixed` or `late = 5
    (~84%)`."""
    words = _WORD.findall(_PATHS_AND_CODE.sub(" ", text))
    small = sum(not word[0].isupper() for word in words)
    return len(words) >= _LEAST_WORDS and small >= _LEAST_LOWERCASE and not _FILE_ENTRY.match(text)


def _quotes(facts: Iterable[Fact], clean: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
    """Each fact's mark with its text as a quote, cut at a word if it is long."""
    found = {}
    for fact in facts:
        words = " ".join(fact.text.split())
        quote = words if len(words) <= _LONGEST_QUOTE else words[:_LONGEST_QUOTE].rpartition(" ")[0]
        if quote and clean(quote) == quote:
            found[fact_mark(fact)] = quote
    return tuple(found.items())


def _contradictions(facts: Sequence[ComparedStatement], fresh: set[str]) -> Iterable[tuple[Fact, Fact]]:
    """Pairs of a waiting fact and any other that may contradict each other."""
    for one, other in similar_pairs(facts, fresh):
        pair = sorted((facts[one], facts[other]), key=lambda each: (each.day, each.source), reverse=True)
        if pair[0].source == pair[1].source or not may_contradict(*pair):
            continue
        newer, older = pair[0].fact, pair[1].fact
        if newer and older and fresh & {fact_mark(newer), fact_mark(older)}:
            yield newer, older


def as_sentence(text: str) -> str:
    """A list item as a sentence, without checkbox and emphasis."""
    return " ".join(_EMPHASIS.sub(r"\2", _CHECKBOX.sub("", text)).split())


# -- authorship --------------------------------------------------------------------------------------------
# An observation is worded by a person if a commit of theirs changed the text of its id to what it is now. A
# file that a person added or moved as a whole does not count.


_Texts = Mapping[str, str]
"""Texts by id."""


def observations_by_person(store: Store, live: Iterable[Observation]) -> frozenset[Observation]:
    """The observations that a person has worded, which no run rewords."""
    theirs = [*_wordings_by_person(store)]
    return frozenset(one for one in live if by_person(one) or (one.id, one.text) in theirs)


def _wordings_by_person(store: Store) -> Iterator[tuple[str, str]]:
    """The id and text of each observation whose text a person has changed, on disk or in a commit."""
    changed = [path for path in store.survey().changed if path.startswith(f"{observations.FOLDER}/")]
    before = _texts((path, store.history.read("HEAD", path)) for path in changed)
    yield from _changed_texts(before, _texts(read_files(store, changed)))
    for done in store.history.log([observations.FOLDER]):
        if done.author != MACHINE[0] and done.trailer("Memory-Op") not in REQUESTED_OPS:
            paths = [path for path in done.paths if path.startswith(f"{observations.FOLDER}/")]
            sides = ([(revision, path) for path in paths] for revision in (f"{done.id}^", done.id))
            files = (zip(paths, store.history.read_all(side), strict=True) for side in sides)
            yield from _changed_texts(*map(_texts, files))


def _changed_texts(before: _Texts, after: _Texts) -> Iterator[tuple[str, str]]:
    yield from ((block, said) for block, said in after.items() if before.get(block, said) != said)


def _texts(files: Iterable[tuple[str, bytes | None]]) -> _Texts:
    found = (document.parse(data, path).of(Observation) for path, data in files if data)
    return {one.id: one.text for each in found for one in each if one.id}
