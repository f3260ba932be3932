"""Operations into the truth: in one open revision, each checked against the files as they are now."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import date

from ua_memory import markdown, observations
from ua_memory.errors import Malformed, Usage
from ua_memory.observations import Beliefs, Ground
from ua_memory.records import Fact, Observation
from ua_memory.reflect.considered import marks
from ua_memory.reflect.proposals import Operation
from ua_memory.statements import cited
from ua_memory.store import Draft


def name_of(observation: Observation) -> str:
    """What an observation is called for as long as it is not reworded: `^id`; a typed one by its place."""
    hashed = markdown.texthash(observation.text)
    return f"^{observation.ref}" if observation.ref else f"{observation.place.path}#{hashed}"


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one observation: `how` is created, strengthened, revised, retired, merged, or proofs
    lost; `before` is None for a new one."""

    how: str
    after: Observation
    before: Observation | None = None


@dataclass(slots=True)
class Applying:
    """One revision's changes. `spare` is how many observations may still be retired; what goes beyond that is
    `held`, what could not be done is in `notes`. Names in `waiting` were held by an earlier run,
    what is in `theirs` was worded by a person, and is not reworded."""

    draft: Draft
    beliefs: Beliefs
    today: date
    spare: int
    waiting: Collection[str] = ()
    theirs: Collection[str] = ()
    changes: list[Change] = field(default_factory=list)
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
            if any(observations.stands(proof, self.by_id) for proof in each.proofs):
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
        grounds = [Ground(self._cited(mark), quote) for mark, quote in operation.proofs]
        if operation.do == "create":
            there = {each.place.path for each in self.beliefs.observations}
            made = observations.add(self.draft, operation.text, grounds, today=self.today, there=there)
            self.now[operation.observation] = made
            self.changes.append(Change("created", made))
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
                old, f'"{quote}" {markdown.link_to(self.draft.link_name(fact.place.path), str(fact.id))}'
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
        self.changes.append(Change("retired", after, old))
        self.now.pop(name_of(old), None)

    def _changed(self, how: str, after: Observation, old: Observation) -> None:
        """Note a change, under every name that later operations may use."""
        for name, each in list(self.now.items()):
            if each == old:
                self.now[name] = after
        self.changes.append(Change(how, after, old))

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
