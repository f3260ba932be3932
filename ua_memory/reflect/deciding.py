"""Asking a model about facts, portion by portion: checked, durable, and halved where it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from ua_memory.errors import ModelMisbehaved, ModelRefused, UaMemoryError
from ua_memory.grounding.terms import terms
from ua_memory.llm import Bounds, Model, Tool, ToolError, run_tools
from ua_memory.llm import Usage as Tokens
from ua_memory.observations import day_of, scope_of
from ua_memory.records import Fact
from ua_memory.reflect.answers import Answer, Answers
from ua_memory.reflect.considered import mark
from ua_memory.reflect.proposals import SCHEMA, Belief, Operation, Refused, checked
from ua_memory.reflect.stretches import Stretch, asked, opening
from ua_memory.statements import new_id

HOPELESS = 3
"""Facts in a row that no answer can be had for, and none before: it is the model, and not the facts."""
LONGEST_ANSWER = 6_000
"""Tokens of one answer, thought included."""
TOLD = "Say what the facts change."
OFFERED: Mapping[str, Any] = {"name": "decide", "description": TOLD, "input_schema": SCHEMA}
"""The tool as a request has it."""
_BOUNDS = Bounds(turns=3, calls=3, at_once=4, faults=2)
_RELATED = 12
"""Beliefs of this run that are shown with a later batch."""


@dataclass(slots=True)
class Sketch:
    """What the operations so far come to: beliefs made or reworded in this run, and those that are gone."""

    changed: dict[str, Belief] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def take(self, operation: Operation, known: Mapping[str, Belief], facts: Sequence[Fact]) -> None:
        """Note what an operation changes."""
        if operation.do == "merge":
            self.gone.update(operation.others)
        elif operation.do == "retire":
            self.gone.add(operation.observation)
        elif operation.text:
            old = self.changed.get(operation.observation) or known.get(operation.observation)
            # What the old wording named, the next may name as well.
            evidence = (*old.evidence, old.text) if old else ()
            scope = scope_of(facts[0]) if facts else ""
            named = (*evidence, *(text for fact in facts for text in (fact.text, day_of(fact))))
            self.changed[operation.observation] = Belief(
                operation.observation, operation.text, scope, evidence=named
            )


class Deciding:
    """One run's questions. `answers` keeps what was answered; `clean` takes secrets out of what is told."""

    def __init__(
        self, model: Model, answers: Answers, sketch: Sketch, clean: Callable[[str], str] = str
    ) -> None:
        self.model, self.answers, self.sketch, self.clean = model, answers, sketch, clean
        self.usage = Tokens()
        self.good = 0
        self.lost: list[tuple[Fact, str]] = []

    def decide(self, stretch: Stretch) -> Iterator[int]:
        """Have all facts of a stretch decided; tells after each portion how many that were.

        Where no answer can be had, the fault may lie in any fact that is shown: from there on each portion is
        shown alone, and in halves, down to the one fact. Raises what ends a run: ModelUnavailable,
        KeyRejected, RequestRejected, BudgetSpent; and ModelMisbehaved or ModelRefused where the model answers
        nothing at all.
        """
        together = len(stretch.portions) > 1
        for portion in stretch.portions:
            together = together and self._failure(stretch, portion) is None
            if not together:
                self._halve(stretch.alone(portion))
            yield len(portion)

    def decided(self, stretch: Stretch, portion: Sequence[Fact]) -> bool:
        """Have one portion decided; whether an answer could be had."""
        return self._failure(stretch, portion) is None

    def _halve(self, stretch: Stretch) -> None:
        facts = stretch.facts
        error = self._failure(stretch, facts)
        if error and len(facts) > 1:
            half = len(facts) // 2
            self._halve(stretch.alone(facts[:half]))
            self._halve(stretch.alone(facts[half:]))
        elif error:
            self.lost.append((facts[0], error.what))
            if not self.good and len(self.lost) >= HOPELESS:
                raise error

    def _failure(self, stretch: Stretch, facts: Sequence[Fact]) -> UaMemoryError | None:
        """Have some decided; why not, if no answer could be had."""
        try:
            answer = self._ask(stretch, facts)
        except (ModelMisbehaved, ModelRefused) as error:
            return error
        self.good += 1
        self._give_up()
        self.answers.add(answer)
        return None

    def close(self) -> None:
        """Set aside what no answer was had for, if any other answer was."""
        if self.good:
            self._give_up()

    def _give_up(self) -> None:
        for fact, why in self.lost:
            self.answers.add(Answer((mark(fact),), aside=self.clean(why), by=self.model.name))
        self.lost.clear()

    def _ask(self, stretch: Stretch, facts: Sequence[Fact]) -> Answer:
        shown = self._changed(stretch, facts)
        batch = _Batch(stretch.facts, shown)
        tool = {"decide": Tool(TOLD, SCHEMA, batch.decide, ends=True)}
        reminded = {label: belief for label, belief in shown.items() if belief.name in self.sketch.changed}
        outcome = run_tools(
            self.model, stretch.system, [*opening(stretch), asked(stretch, facts, reminded)], tool,
            purpose="consolidate", bounds=_BOUNDS, max_tokens=LONGEST_ANSWER,
        )  # fmt: skip
        self.usage += outcome.usage
        if not batch.answered:
            outcome.require_done()
            raise ModelMisbehaved(
                "the model said something, and decided nothing", mend="another UA_MEMORY_MODEL"
            )
        known = {belief.name: belief for belief in stretch.beliefs.values()}
        for operation in batch.accepted:
            self.sketch.take(operation, known, [batch.by_mark[each] for each, _ in operation.proofs])
        marks = tuple(mark(fact) for fact in facts)
        refused = tuple(self.clean(each) for each in batch.refused)
        return Answer(marks, tuple(batch.accepted), refused, by=self.model.name)

    def _changed(self, stretch: Stretch, facts: Sequence[Fact]) -> dict[str, Belief]:
        """The beliefs of a stretch by label, as they are now, and those of this run on these facts."""
        now = {
            label: replace(self.sketch.changed.get(belief.name, belief), by_person=belief.by_person)
            for label, belief in stretch.beliefs.items() if belief.name not in self.sketch.gone
        }  # fmt: skip
        words = frozenset(word for fact in facts for word in terms(fact.text))
        there = {belief.name for belief in now.values()}
        new = [
            belief for name, belief in self.sketch.changed.items()
            if name not in there and name not in self.sketch.gone and belief.scope == stretch.scope
        ]  # fmt: skip
        near = sorted(new, key=lambda b: len(terms(b.text) & words), reverse=True)[:_RELATED]
        near = [belief for belief in near if len(terms(belief.text) & words) > 1]
        reworded = {
            label: belief for label, belief in now.items()
            if belief.name not in self.sketch.changed or len(terms(belief.text) & words) > 1
        }  # fmt: skip
        return {**reworded, **{f"n{number}": belief for number, belief in enumerate(near, 1)}}


class _Batch:
    """The tool's side of one batch: what was let through, and what not, which the model is told once."""

    def __init__(self, facts: Sequence[Fact], beliefs: Mapping[str, Belief]) -> None:
        self.facts = {f"f{number}": (mark(fact), fact) for number, fact in enumerate(facts, 1)}
        self.by_mark = dict(self.facts.values())
        self.beliefs = dict(beliefs)
        self.accepted: list[Operation] = []
        self.refused: list[str] = []
        self.answered = False
        self.said: set[str] = set()

    def decide(self, given: Mapping[str, Any]) -> str:
        """Take what can be taken. ToolError tells, the first time, what cannot."""
        refused = [why for each in given["operations"] if (why := self._take(each))]
        again, self.answered = self.answered, True
        self.refused = refused  # what is put right the second time, or left out, is not told of
        if refused and not again:
            raise ToolError(
                f"not taken: {'; '.join(refused)}. All else is. Send only these again, put right, or none."
            )
        return "taken"

    def _take(self, given: Mapping[str, Any]) -> str:
        told = f"{given['do']} {given.get('observation') or ''} {given.get('text') or ''}".strip()[:120]
        if repr(given) in self.said:
            return ""
        try:
            operation = checked(given, self.facts, self.beliefs, f"new:{new_id()}")
        except Refused as error:
            return f"{told}: {error}"
        self.said.add(repr(given))
        self.accepted.append(operation)
        if operation.do == "create":  # a second one of the same words is this one
            free = next(label for n in count(1) if (label := f"n{n}") not in self.beliefs)
            named = [self.by_mark[each] for each, _ in operation.proofs]
            evidence = tuple(text for fact in named for text in (fact.text, day_of(fact)))
            self.beliefs[free] = Belief(operation.observation, operation.text, evidence=evidence)
        gone = (
            operation.others
            if operation.do == "merge"
            else (operation.observation,) * (operation.do == "retire")
        )
        self.beliefs = {label: b for label, b in self.beliefs.items() if b.name not in gone}
        return ""
