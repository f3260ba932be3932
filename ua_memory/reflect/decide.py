"""Asking a model what follows from facts: portions, answers that are durable, and batches."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from ua_memory.errors import ModelMisbehaved, ModelRefused, RequestRejected, UaMemoryError, Usage, writing
from ua_memory.knowledge.observations import day_of, scope_of
from ua_memory.knowledge.statements import new_id
from ua_memory.llm.client import BatchHandle, BatchQuestion, Claude
from ua_memory.llm.model import Message, Model, Reply, prompt, user
from ua_memory.llm.model import TokenUsage as Tokens
from ua_memory.llm.tools import Bounds, Tool, ToolError, run_tools, schema
from ua_memory.paths import make_private
from ua_memory.records import Fact
from ua_memory.reflect.proposals import (
    KnownObservation,
    Operation,
    RefusedProposal,
    checked,
    in_order,
    mark,
)
from ua_memory.retain.queue import append_rows, encode_rows, read_rows, to_row
from ua_memory.store import swap
from ua_memory.text.grounding import terms
from ua_memory.text.noise import defanged

# -- answers -----------------------------------------------------------------------------------------------
# Answers that were paid for and are not in the truth yet: one line each in `pending/`, fsynced.
#
# A run that is killed leaves them, and the next one takes them up before it asks anything; facts that
# changed since are asked about anew. After the commit the file goes, but for what waits for a person's
# word.


FILE = "consolidation.jsonl"


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """What became of one batch: the marks of its facts, what is to be done, what was refused. `aside` is why
    its one fact is set aside, '' if it is not; `held` that it waits for a person's word."""

    facts: tuple[str, ...]
    operations: tuple[Operation, ...] = ()
    refused: tuple[str, ...] = ()
    aside: str = ""
    by: str = ""
    held: bool = False

    @property
    def rests_on(self) -> set[str]:
        """The marks of the facts that it is about, and of those that prove it."""
        return {*self.facts, *(mark for each in self.operations for mark, _ in each.proofs)}


class Answers:
    """The file of a bank. One process at a time has it: who holds the claim of the run."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE

    def all(self) -> list[BatchOutcome]:
        """The answers there are; a line that a kill left half written is passed over."""
        try:
            with self.file.open("rb") as file:
                return [answer for row in read_rows(file) if (answer := _read(row))]
        except FileNotFoundError:
            return []

    def add(self, answer: BatchOutcome) -> None:
        """Keep an answer; it is on the disk when this returns. CannotWrite."""
        with writing(self.file, None):
            make_private(self.file.parent)
            new = not self.file.exists()
            with os.fdopen(os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b") as file:
                append_rows(file, [asdict(answer)])
            if new:
                swap.sync_folder(self.file.parent)

    def keep_only(self, answers: Iterable[BatchOutcome]) -> None:
        """Let go of all but these. CannotWrite."""
        rest = list(answers)
        with writing(self.file, None):
            if not rest:
                self.file.unlink(missing_ok=True)
            elif rest != self.all():
                swap.replace_file(self.file, encode_rows(map(asdict, rest)), self.file.with_suffix(".rest"))


def _read(row: Mapping[str, Any]) -> BatchOutcome | None:
    try:
        operations = tuple(Operation.of(each) for each in row["operations"])
        facts, refused = tuple(map(str, row["facts"])), tuple(map(str, row["refused"]))
        return BatchOutcome(facts, operations, refused, str(row["aside"]), str(row["by"]), bool(row["held"]))
    except (ValueError, KeyError, TypeError):
        return None


# -- stretches ---------------------------------------------------------------------------------------------
# What a model is shown: the observations and the facts of a stretch, and which of these it decides on now.
#
# All requests of a stretch begin alike: instructions, tool, observations, facts. All but the first read
# that from the prompt cache, and end with no more than the numbers of one portion and what the run has
# changed meanwhile. So a model sees what goes together in all of a stretch, and five sixths of what is sent
# stood in the request before. How much is shown at once, and in how many turns, is the cheapest `plan` that
# does so.


ALIKE = 600
"""Facts that the same observations are shown with."""
OBSERVATIONS = 80
LETTERS, FEW = 9_000, 3_000
"""Observations that are shown, and their characters: those that have most words in common with the facts, and
fewer where the facts are few."""
SHARED = 0.83
"""The part of all that is sent that should stand in the request before."""
LONG, TURNS = 26_000, 9
"""Characters of a beginning, and the portions that share it, at most."""
LEAST, MOST, FACTS = 1_000, 4_000, 40
"""Characters of a portion, and facts of one, about."""
LONGEST = 700
"""Characters that are shown of one fact."""
_FRAME = 60
"""Characters of JSON around a message; there are five."""


@dataclass(frozen=True, slots=True)
class FactStretch:
    """Facts of one scope that are shown together, in the portions in which they are decided on, and the
    observations shown with them, by label."""

    scope: str
    beliefs: Mapping[str, KnownObservation]
    portions: tuple[tuple[Fact, ...], ...]
    system: str

    @property
    def facts(self) -> list[Fact]:
        """All that is shown, in the order of their labels."""
        return [fact for portion in self.portions for fact in portion]

    def alone(self, facts: Sequence[Fact]) -> FactStretch:
        """The same with none but these."""
        return replace(self, portions=(tuple(facts),))


def stretches(
    facts: Sequence[Fact], beliefs: Sequence[KnownObservation], mission: str = ""
) -> Iterator[FactStretch]:
    """All there is to ask, in order. Scopes never meet in one request."""
    system = prompt("consolidate")
    system += f"\n\nWhat this memory is for: {mission}" if mission.strip() else ""
    for scoped in in_order(facts):
        for start in range(0, len(scoped), ALIKE):
            some = scoped[start : start + ALIKE]
            scope = scope_of(some[0])
            near = _nearest(some, [each for each in beliefs if each.scope == scope])
            labelled = {f"o{n}": belief for n, belief in enumerate(near, 1)}
            frame = len(system) + len(json.dumps(schema("decide"))) + len(_observations(near)) + _FRAME
            count, turns = plan(frame, sum(map(_size, some)), len(some))
            for shown in _parts(some, count):
                yield FactStretch(scope, labelled, tuple(_parts(shown, turns)), system)


def _nearest(facts: Sequence[Fact], beliefs: Sequence[KnownObservation]) -> list[KnownObservation]:
    """The beliefs that share most with these facts, as they stand in the bank."""
    often = Counter(word for fact in facts for word in terms(fact.text))
    weight = {b.name: sum(often[w] ** 0.5 for w in terms(b.text)) for b in beliefs}
    room = min(LETTERS, max(FEW, 3 * sum(map(_size, facts))))
    chosen: set[str] = set()
    letters = 0
    for belief in sorted(beliefs, key=lambda b: weight[b.name], reverse=True)[:OBSERVATIONS]:
        if letters + len(belief.text) <= room:  # one that is too long hides none behind it
            letters += len(belief.text)
            chosen.add(belief.name)
    return [belief for belief in beliefs if belief.name in chosen]


def plan(frame: int, letters: int, facts: int) -> tuple[int, int]:
    """Into how many stretches to put so many facts of so many characters, and each into how many portions,
    where instructions and observations have `frame` characters: the cheapest plan that shares enough, else
    the one that shares most."""
    best, found = (False, 0.0), (1, 1)
    least = max(1, facts // FACTS)  # so many portions at least, however short the facts
    for stretches in range(1, max(1, letters // LEAST, least) + 1):
        begins = frame + letters // stretches
        for turns in range(1, TURNS + 1):
            portion = letters // (stretches * turns)
            few = facts <= FACTS * stretches * turns if portion >= LEAST else stretches * turns == least
            if stretches * turns > 1 and not (few and portion <= MOST and (begins <= LONG or turns == 1)):
                continue
            sent = stretches * turns * (begins + 5 * _FRAME)
            shared = (stretches * (turns - 1) * begins + (stretches - 1) * frame) / sent
            rank = (shared >= SHARED, -sent if shared >= SHARED else shared)
            if rank > best:
                best, found = rank, (stretches, turns)
    return found


def _parts(facts: Sequence[Fact], number: int) -> Iterator[tuple[Fact, ...]]:
    """The facts in so many parts of about the same length, none of them empty, each in the order of days."""
    parts: list[list[Fact]] = [[] for _ in range(number)]
    whole, before = sum(map(_size, facts)), 0
    for fact in facts:
        parts[number * (2 * before + _size(fact)) // (2 * whole)].append(fact)
        before += _size(fact)
    yield from (tuple(sorted(part, key=_told)) for part in parts if part)


def _told(fact: Fact) -> tuple[str, str, int]:
    return day_of(fact), fact.place.path, fact.place.line


def _size(fact: Fact) -> int:
    return len(_shown(fact)) + 8


def opening(stretch: FactStretch) -> list[Message]:
    """What all requests of a stretch begin with. Each part ends with a word of the model's own, so that user
    and assistant take turns, which servers with a strict template insist on."""
    ready: Message = {"role": "assistant", "content": "Ready."}
    shown = (_observations(stretch.beliefs.values()), _facts(stretch.facts))
    return [message for text in shown for message in (user(text), ready)]


def asked(stretch: FactStretch, portion: Sequence[Fact], changed: Mapping[str, KnownObservation]) -> Message:
    """Which facts to decide on; `changed` are the beliefs that this run has made or reworded, where they may
    bear on them."""
    lines = [f"{label} {_flat(belief.text)}" for label, belief in changed.items()]
    known = f"<changed>\n{chr(10).join(lines)}\n</changed>\n" if lines else ""
    # Not by `index`: lines without an id that say the same on two days are equal.
    first = next(n for n, fact in enumerate(stretch.facts, 1) if fact is portion[0])
    last = first + len(portion) - 1
    return user(f"{known}Decide on f{first}" + (f" to f{last}." if last > first else "."))


def _facts(facts: Iterable[Fact]) -> str:
    rows, day = [], None
    for number, fact in enumerate(facts, 1):
        if day_of(fact) != day:
            day = day_of(fact)
            rows.append(f"{day or 'undated'}:")
        rows.append(f"f{number} {_shown(fact)}")
    return f"<facts>\n{chr(10).join(rows)}\n</facts>"


def _observations(beliefs: Iterable[KnownObservation]) -> str:
    rows = [
        f"o{number} {_flat(each.text)} [{each.proofs}{f', last {each.last}' if each.last else ''}]"
        for number, each in enumerate(beliefs, 1)
    ]
    return f"<observations>\n{chr(10).join(rows) or 'none yet'}\n</observations>"


def _shown(fact: Fact) -> str:
    text = _flat(fact.text)
    return text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] + " …"


def _flat(text: str) -> str:
    # What closes the block it stands in cannot be forged from within it.
    return defanged(" ".join(text.split()), "facts", "observations", "changed")


# -- deciding ----------------------------------------------------------------------------------------------
# Asking a model about facts, portion by portion: checked, durable, and halved where it fails.


HOPELESS = 3
"""Facts in a row that no answer can be had for, and none before: it is the model, and not the facts."""
LONGEST_ANSWER = 6_000
"""Tokens of one answer, thought included."""
TOLD = "Say what the facts change."
OFFERED: Mapping[str, Any] = {"name": "decide", "description": TOLD, "input_schema": schema("decide")}
"""The tool as a request has it."""
_BOUNDS = Bounds(turns=3, calls=3, at_once=4, faults=2)
_RELATED = 12
"""Beliefs of this run that are shown with a later batch."""


@dataclass(slots=True)
class ObservationDraft:
    """What the operations so far come to: beliefs made or reworded in this run, and those that are gone."""

    changed: dict[str, KnownObservation] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def take(
        self, operation: Operation, known: Mapping[str, KnownObservation], facts: Sequence[Fact]
    ) -> None:
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
            self.changed[operation.observation] = KnownObservation(
                operation.observation, operation.text, scope, evidence=named
            )


class Decider:
    """One run's questions. `answers` keeps what was answered; `clean` takes secrets out of what is told."""

    def __init__(
        self, model: Model, answers: Answers, sketch: ObservationDraft, clean: Callable[[str], str] = str
    ) -> None:
        self.model, self.answers, self.sketch, self.clean = model, answers, sketch, clean
        self.usage = Tokens()
        self.good = 0
        self.lost: list[tuple[Fact, str]] = []

    def decide(self, stretch: FactStretch) -> Iterator[int]:
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

    def collect(
        self, box: BatchFile, posted: PendingBatch, facts: Mapping[str, Fact],
        beliefs: Mapping[str, KnownObservation], have: set[str], now: datetime,
    ) -> bool:  # fmt: skip
        """Take in the answers to a batch, each durable at once; whether it had ended. `facts` are those that
        wait, by mark, `beliefs` all there are, by name. What `have` names was taken in before a kill.
        RequestRejected where the endpoint knows no such batch: for a day, since the endpoint may be another
        by mistake; then there are no answers, or nothing would be asked for a month."""
        try:
            replies = _claude(self.model).collect(posted.post)
        except RequestRejected:
            if now - posted.at < DONE:
                raise
            replies = {}
        if replies is None:
            return False
        for number, one in enumerate(posted.shown):
            portion = tuple(facts[name] for name in one.portion if name in facts)
            if number in replies and portion and not have >= set(map(mark, portion)):
                labelled = {label: beliefs[name] for label, name in one.beliefs.items() if name in beliefs}
                shown = tuple(facts.get(name, GONE) for name in one.facts)
                said = _ModelFinished(posted.post.model, replies[number])
                hand = Decider(said, self.answers, self.sketch, self.clean)
                hand._failure(FactStretch(one.scope, labelled, (shown,), ""), portion)
                self.usage += hand.usage
        box.clear()
        return True

    def _halve(self, stretch: FactStretch) -> None:
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

    def _failure(self, stretch: FactStretch, facts: Sequence[Fact]) -> UaMemoryError | None:
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
            self.answers.add(BatchOutcome((mark(fact),), aside=self.clean(why), by=self.model.name))
        self.lost.clear()

    def _ask(self, stretch: FactStretch, facts: Sequence[Fact]) -> BatchOutcome:
        shown = self._changed(stretch, facts)
        batch = _Batch(stretch.facts, shown)
        tool = {"decide": Tool(TOLD, schema("decide"), batch.decide, ends=True)}
        reminded = {label: belief for label, belief in shown.items() if belief.name in self.sketch.changed}
        outcome = run_tools(
            self.model, stretch.system, [*opening(stretch), asked(stretch, facts, reminded)], tool,
            purpose="consolidate", bounds=_BOUNDS, max_tokens=LONGEST_ANSWER,
        )  # fmt: skip
        self.usage += outcome.usage
        if not batch.answered:
            outcome.require_done()
            raise ModelMisbehaved(
                "the model said something, and decided nothing", hint="another UA_MEMORY_MODEL"
            )
        known = {belief.name: belief for belief in stretch.beliefs.values()}
        for operation in batch.accepted:
            self.sketch.take(operation, known, [batch.by_mark[each] for each, _ in operation.proofs])
        marks = tuple(mark(fact) for fact in facts)
        refused = tuple(self.clean(each) for each in batch.refused)
        return BatchOutcome(marks, tuple(batch.accepted), refused, by=self.model.name)

    def _changed(self, stretch: FactStretch, facts: Sequence[Fact]) -> dict[str, KnownObservation]:
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

    def __init__(self, facts: Sequence[Fact], beliefs: Mapping[str, KnownObservation]) -> None:
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
        except RefusedProposal as error:
            return f"{told}: {error}"
        self.said.add(repr(given))
        self.accepted.append(operation)
        if operation.do == "create":  # a second one of the same words is this one
            free = next(label for n in count(1) if (label := f"n{n}") not in self.beliefs)
            named = [self.by_mark[each] for each, _ in operation.proofs]
            evidence = tuple(text for fact in named for text in (fact.text, day_of(fact)))
            self.beliefs[free] = KnownObservation(operation.observation, operation.text, evidence=evidence)
        gone = (
            operation.others
            if operation.do == "merge"
            else (operation.observation,) * (operation.do == "retire")
        )
        self.beliefs = {label: b for label, b in self.beliefs.items() if b.name not in gone}
        return ""


# -- posted ------------------------------------------------------------------------------------------------
# Facts that a model decides on within a day, at half the price: posted by one run, collected by a later
# one.
#
# What was posted stands in `pending/` with the batch's name, so that any run that comes after, be it on
# another day, finds it. All portions are asked at once: none sees what the others change. What of it cannot
# be taken is reported, and nobody is asked a second time about it; facts without an answer are asked about
# as ever.


BATCH_FILE = "consolidation-batch.json"
KEPT = timedelta(days=29)
"""For so long the API keeps the answers of a batch."""
DONE = timedelta(days=1)
"""After so long every batch has ended."""
GONE = Fact("", retired="gone or edited")
"""Stands where a fact was shown that does not say any more what it said then."""


@dataclass(frozen=True, slots=True)
class DecisionPrompt:
    """One question: the facts that were shown, those of them to decide on, by their marks, and the names of
    the observations by label."""

    scope: str
    facts: tuple[str, ...]
    portion: tuple[str, ...]
    beliefs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PendingBatch:
    """A batch that is under way, when it was posted, and what it asks."""

    post: BatchHandle
    at: datetime
    shown: tuple[DecisionPrompt, ...]

    @property
    def marks(self) -> set[str]:
        """All facts to be decided on."""
        return {each for one in self.shown for each in one.portion}


class BatchFile:
    """The file of a bank. One process at a time has it: who holds the claim of the run."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / BATCH_FILE

    def there(self, now: datetime) -> PendingBatch | None:
        """What is under way; None where nothing is, or so old that nobody has its answers any more."""
        try:
            row = json.loads(self.file.read_bytes())
            shown = tuple(
                DecisionPrompt(one["scope"], tuple(one["facts"]), tuple(one["portion"]), dict(one["beliefs"]))
                for one in row["shown"]
            )
            found = PendingBatch(BatchHandle(**row["post"]), datetime.fromisoformat(row["at"]), shown)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return found if now - found.at < KEPT else None

    def keep(self, posted: PendingBatch) -> None:
        """Note a batch; it is on the disk when this returns."""
        make_private(self.file.parent)
        data = json.dumps(to_row(posted)).encode("utf-8", "replace")
        swap.replace_file(self.file, data, self.file.with_suffix(".new"))

    def clear(self) -> None:
        """Let go of it."""
        self.file.unlink(missing_ok=True)


def post(box: BatchFile, model: Model, stretches: Sequence[FactStretch], at: datetime) -> PendingBatch | None:
    """Post what there is to ask, as far as the limits bear. Usage for a model that takes no batches; what
    `Claude.post` raises."""
    each = [(stretch, portion) for stretch in stretches for portion in stretch.portions]
    if not each:
        return None
    questions = [
        BatchQuestion(stretch.system, [*opening(stretch), asked(stretch, portion, {})], [OFFERED])
        for stretch, portion in each
    ]
    made = _claude(model).post(questions, purpose="consolidate", max_tokens=LONGEST_ANSWER)
    shown = tuple(
        DecisionPrompt(
            stretch.scope, tuple(map(mark, stretch.facts)), tuple(map(mark, portion)),
            {label: belief.name for label, belief in stretch.beliefs.items()},
        )
        for stretch, portion in each[: made.count]
    )  # fmt: skip
    posted = PendingBatch(made, at, shown)
    box.keep(posted)
    return posted


def _claude(model: Model) -> Claude:
    if not isinstance(model, Claude):
        raise Usage("this model does not support batches", hint="consolidate without --batch-api")
    return model


class _ModelFinished:
    """A model that has said what it has to say."""

    once = False

    def __init__(self, name: str, reply: Reply) -> None:
        self.name = name
        self._reply: Reply | None = reply

    def ask(self, *_: Any, **__: Any) -> Reply:
        """The reply, and then nothing."""
        reply, self._reply = self._reply, None
        return reply or Reply("", (), "end_turn", Tokens(), ())
