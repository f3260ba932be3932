"""Asking a model what new facts change in the observations: groups and portions, saved answers, batches."""

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
from ua_memory.llm.model import Message, Model, Reply, TokenUsage, prompt, tool_task, user
from ua_memory.llm.tools import Bounds, Tool, ToolError, run_tools, schema
from ua_memory.paths import append_lines, make_private, sync_path
from ua_memory.records import Fact
from ua_memory.reflect.proposals import (
    KnownObservation,
    Operation,
    RefusedProposal,
    check_proposal,
    fact_mark,
    group_related,
)
from ua_memory.retain.queue import encode_rows, from_row, read_rows, to_row
from ua_memory.store import swap
from ua_memory.text.grounding import terms
from ua_memory.text.noise import escape_tags

# -- answers -----------------------------------------------------------------------------------------------
# Answers that were paid for and are not in the bank's files yet: one line each in `pending/`, fsynced.
#
# A run that is killed leaves them, and the next one takes them up before it asks anything; facts that
# changed since are asked about anew. After the commit the file goes, but for what waits for a person's
# word.


ANSWERS_FILE = "consolidation.jsonl"


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The answer about one portion: the marks of its facts, the operations, what was refused. `aside` is why
    its only fact is set aside, '' if it is not; `held`: a person has to accept the operations first."""

    facts: tuple[str, ...]
    operations: tuple[Operation, ...] = ()
    refused: tuple[str, ...] = ()
    aside: str = ""
    by: str = ""
    held: bool = False

    @property
    def rests_on(self) -> set[str]:
        """The marks of its facts and of the facts that prove its operations."""
        return {*self.facts, *(mark for each in self.operations for mark, _ in each.proofs)}


class Answers:
    """The file with the saved answers of a bank. Only the process that holds the run's claim uses it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / ANSWERS_FILE

    def all(self) -> list[BatchOutcome]:
        """The saved answers; a half-written line is skipped."""
        try:
            with self.file.open("rb") as file:
                return [answer for row in read_rows(file) if (answer := _answer_from_row(row))]
        except FileNotFoundError:
            return []

    def add(self, answer: BatchOutcome) -> None:
        """Save an answer; it is on the disk on return. CannotWrite."""
        with writing(self.file, None):
            make_private(self.file.parent)
            new = not self.file.exists()
            with os.fdopen(os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b") as file:
                append_lines(file, encode_rows([asdict(answer)]))
            if new:
                sync_path(self.file.parent)

    def keep_only(self, answers: Iterable[BatchOutcome]) -> None:
        """Remove all answers but these. CannotWrite."""
        rest = list(answers)
        with writing(self.file, None):
            if not rest:
                self.file.unlink(missing_ok=True)
            elif rest != self.all():
                swap.replace_file(self.file, encode_rows(map(asdict, rest)), self.file.with_suffix(".rest"))


def _answer_from_row(row: Mapping[str, Any]) -> BatchOutcome | None:
    try:
        rows = ({**each, "proofs": [*map(tuple, each["proofs"])]} for each in row["operations"])
        operations = [from_row(Operation, each) for each in rows]
        return from_row(BatchOutcome, {**row, "operations": operations})
    except (ValueError, KeyError, TypeError):
        return None


# -- groups of facts ---------------------------------------------------------------------------------------
# A model is shown the observations and facts of a group, and decides on one portion of it at a time.
#
# All requests of a group begin alike (instructions, tool, observations, facts), and end with the numbers of
# one portion and what the run has changed meanwhile. So the model sees which facts of a group belong
# together, and five sixths of what is sent come from the prompt cache. `plan` chooses the cheapest sizes.


FACTS_SHOWN = 600
"""So many facts are shown with the same observations."""
OBSERVATIONS_SHOWN = 80
OBSERVATION_CHARS, FEW_CHARS = 9_000, 3_000
"""Most observations that are shown, and their most characters; the second number if there are few facts."""
CACHED_SHARE = 0.83
"""The share of what is sent that should be in the prompt cache."""
BEGINNING_CHARS, PORTIONS = 26_000, 9
"""Most characters of the common beginning, and most portions of a group."""
LEAST_PORTION, MOST_PORTION, PORTION_FACTS = 1_000, 4_000, 40
"""Least and most characters of a portion, and its most facts, about."""
LONGEST_FACT = 700
"""Most characters that are shown of one fact."""
_FRAME = 60
"""Characters of JSON around each of the five messages."""


@dataclass(frozen=True, slots=True)
class FactGroup:
    """Facts of one scope that are shown together, in the portions that are decided on one by one, and the
    observations shown with them, by label."""

    scope: str
    beliefs: Mapping[str, KnownObservation]
    portions: tuple[tuple[Fact, ...], ...]
    system: str

    @property
    def facts(self) -> list[Fact]:
        """All facts that are shown, in the order of their labels."""
        return [fact for portion in self.portions for fact in portion]

    def with_facts(self, facts: Sequence[Fact]) -> FactGroup:
        """The same group with these facts alone."""
        return replace(self, portions=(tuple(facts),))


def fact_groups(
    facts: Sequence[Fact], beliefs: Sequence[KnownObservation], mission: str = ""
) -> Iterator[FactGroup]:
    """The groups of facts to ask about, in order. A group has facts of one scope only."""
    system = prompt("consolidate")
    system += f"\n\nWhat this memory is for: {mission}" if mission.strip() else ""
    for scoped in group_related(facts):
        for start in range(0, len(scoped), FACTS_SHOWN):
            chosen = scoped[start : start + FACTS_SHOWN]
            scope = scope_of(chosen[0])
            near = _nearest(chosen, [each for each in beliefs if each.scope == scope])
            labelled = {f"o{n}": belief for n, belief in enumerate(near, 1)}
            frame = len(system) + len(json.dumps(schema("decide"))) + len(_format_observations(near)) + _FRAME
            count, turns = plan(frame, sum(map(_chars, chosen)), len(chosen))
            for shown in _split_evenly(chosen, count):
                yield FactGroup(scope, labelled, tuple(_split_evenly(shown, turns)), system)


def _nearest(facts: Sequence[Fact], beliefs: Sequence[KnownObservation]) -> list[KnownObservation]:
    """The observations with most words in common with these facts, in the order of the bank."""
    often = Counter(word for fact in facts for word in terms(fact.text))
    weight = {b.name: sum(often[w] ** 0.5 for w in terms(b.text)) for b in beliefs}
    room = min(OBSERVATION_CHARS, max(FEW_CHARS, 3 * sum(map(_chars, facts))))
    chosen: set[str] = set()
    chars = 0
    for belief in sorted(beliefs, key=lambda b: weight[b.name], reverse=True)[:OBSERVATIONS_SHOWN]:
        if chars + len(belief.text) <= room:  # one that is too long hides none behind it
            chars += len(belief.text)
            chosen.add(belief.name)
    return [belief for belief in beliefs if belief.name in chosen]


def plan(frame: int, chars: int, facts: int) -> tuple[int, int]:
    """The number of groups for so many facts of so many characters, and the number of portions of each, where
    instructions and observations have `frame` characters: the cheapest plan that shares enough, else the one
    that shares most."""
    best, found = (False, 0.0), (1, 1)
    least = max(1, facts // PORTION_FACTS)  # so many portions at least, however short the facts
    for groups in range(1, max(1, chars // LEAST_PORTION, least) + 1):
        begins = frame + chars // groups
        for turns in range(1, PORTIONS + 1):
            parts = groups * turns
            size = chars // parts
            few = facts <= PORTION_FACTS * parts if size >= LEAST_PORTION else parts == least
            if parts > 1 and not (few and size <= MOST_PORTION and (begins <= BEGINNING_CHARS or turns == 1)):
                continue
            sent = parts * (begins + 5 * _FRAME)
            shared = (groups * (turns - 1) * begins + (groups - 1) * frame) / sent
            rank = (shared >= CACHED_SHARE, -sent if shared >= CACHED_SHARE else shared)
            if rank > best:
                best, found = rank, (groups, turns)
    return found


def _split_evenly(facts: Sequence[Fact], number: int) -> Iterator[tuple[Fact, ...]]:
    """The facts in so many parts of about the same length, none of them empty, each by day."""
    parts: list[list[Fact]] = [[] for _ in range(number)]
    whole, before = sum(map(_chars, facts)), 0
    for fact in facts:
        parts[number * (2 * before + _chars(fact)) // (2 * whole)].append(fact)
        before += _chars(fact)
    yield from (tuple(sorted(part, key=_by_day)) for part in parts if part)


def _by_day(fact: Fact) -> tuple[str, str, int]:
    return day_of(fact), fact.place.path, fact.place.line


def _chars(fact: Fact) -> int:
    return len(_shorten(fact)) + 8


def shared_messages(group: FactGroup) -> list[Message]:
    """The messages that all requests of a group begin with. After each part comes a word of the assistant's,
    since servers with a strict template insist on alternating roles."""
    ready: Message = {"role": "assistant", "content": "Ready."}
    shown = (_format_observations(group.beliefs.values()), _format_facts(group.facts))
    return [message for text in shown for message in (user(text), ready)]


def question(group: FactGroup, portion: Sequence[Fact], changed: Mapping[str, KnownObservation]) -> Message:
    """The message that says which facts to decide on. `changed` are observations that this run has created or
    reworded and that may be related."""
    lines = [f"{label} {_one_line(belief.text)}" for label, belief in changed.items()]
    known = f"<changed>\n{chr(10).join(lines)}\n</changed>\n" if lines else ""
    # Not by `index`: lines without an id that say the same on two days are equal.
    first = next(n for n, fact in enumerate(group.facts, 1) if fact is portion[0])
    last = first + len(portion) - 1
    return user(f"{known}Decide on f{first}" + (f" to f{last}." if last > first else "."))


def _format_facts(facts: Iterable[Fact]) -> str:
    rows, day = [], None
    for number, fact in enumerate(facts, 1):
        if day_of(fact) != day:
            day = day_of(fact)
            rows.append(f"{day or 'undated'}:")
        rows.append(f"f{number} {_shorten(fact)}")
    return f"<facts>\n{chr(10).join(rows)}\n</facts>"


def _format_observations(beliefs: Iterable[KnownObservation]) -> str:
    rows = [
        f"o{number} {_one_line(each.text)} [{each.proofs}{f', last {each.last}' if each.last else ''}]"
        for number, each in enumerate(beliefs, 1)
    ]
    return f"<observations>\n{chr(10).join(rows) or 'none yet'}\n</observations>"


def _shorten(fact: Fact) -> str:
    text = _one_line(fact.text)
    return text if len(text) <= LONGEST_FACT else text[:LONGEST_FACT].rpartition(" ")[0] + " …"


def _one_line(text: str) -> str:
    # The text cannot close the block that it is in.
    return escape_tags(" ".join(text.split()), "facts", "observations", "changed")


# -- asking ------------------------------------------------------------------------------------------------


GIVE_UP_AFTER = 3
"""After so many facts without an answer, and none with one, the model itself has failed."""
LONGEST_ANSWER = 6_000
"""Most tokens of one answer, thinking included."""
_BOUNDS = Bounds(turns=3, calls=3, at_once=4, faults=2)
_RELATED_SHOWN = 12
"""Most observations of this run that are shown with a later portion."""


@dataclass(slots=True)
class ObservationDraft:
    """The effect of the operations so far: the observations that this run created or reworded, and those that
    are gone."""

    changed: dict[str, KnownObservation] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def add(self, operation: Operation, known: Mapping[str, KnownObservation], facts: Sequence[Fact]) -> None:
        """Record what an operation changes."""
        if operation.do == "merge":
            self.gone.update(operation.others)
        elif operation.do == "retire":
            self.gone.add(operation.observation)
        elif operation.text:
            old = self.changed.get(operation.observation) or known.get(operation.observation)
            # A new wording may name what the old one named.
            evidence = (*old.evidence, old.text) if old else ()
            scope = scope_of(facts[0]) if facts else ""
            evidence += tuple(text for fact in facts for text in (fact.text, day_of(fact)))
            made = KnownObservation(operation.observation, operation.text, scope, evidence=evidence)
            self.changed[made.name] = made


class Decider:
    """Asks the questions of one run. `answers` saves the answers; `clean` removes secrets from what is
    reported."""

    def __init__(
        self, model: Model, answers: Answers, overlay: ObservationDraft, clean: Callable[[str], str] = str
    ) -> None:
        self.model, self.answers, self.overlay, self.clean = (model, answers, overlay, clean)
        self.usage = TokenUsage()
        self.answered = 0
        self.unanswered: list[tuple[Fact, str]] = []

    def decide(self, group: FactGroup) -> Iterator[int]:
        """Have all facts of a group decided; yields after each portion its number of facts.

        If there is no valid answer, any fact that is shown may be the cause: from then on each portion is
        shown alone, and split in halves, down to single facts. Raises what ends a run: ModelUnavailable,
        KeyRejected, RequestRejected, BudgetSpent; and ModelMisbehaved or ModelRefused if the model gives no
        valid answer at all.
        """
        together = len(group.portions) > 1
        for portion in group.portions:
            together = together and self._try(group, portion) is None
            if not together:
                self._decide_in_halves(group.with_facts(portion))
            yield len(portion)

    def collect(
        self, batch_file: BatchFile, posted: PendingBatch, facts: Mapping[str, Fact],
        beliefs: Mapping[str, KnownObservation], decided: set[str], now: datetime,
    ) -> bool:  # fmt: skip
        """Save the answers of a batch, each durably at once; False if the batch has not ended. `facts` are
        those that wait, by mark, `beliefs` all observations, by name. Facts in `decided` were saved before a
        kill. RequestRejected if the endpoint does not know the batch, which may be a wrong endpoint; after a
        day that counts as no answers."""
        try:
            replies = _batch_model(self.model).collect(posted.post)
        except RequestRejected:
            if now - posted.at < BATCH_DURATION:
                raise
            replies = {}
        if replies is None:
            return False
        for number, one in enumerate(posted.shown):
            portion = tuple(facts[name] for name in one.portion if name in facts)
            if number in replies and portion and not decided >= set(map(fact_mark, portion)):
                labelled = {label: beliefs[name] for label, name in one.beliefs.items() if name in beliefs}
                shown = tuple(facts.get(name, GONE_FACT) for name in one.facts)
                reply_model = _ReplyModel(posted.post.model, replies[number])
                decider = Decider(reply_model, self.answers, self.overlay, self.clean)
                decider._try(FactGroup(one.scope, labelled, (shown,), ""), portion)
                self.usage += decider.usage
        batch_file.clear()
        return True

    def _decide_in_halves(self, group: FactGroup) -> None:
        facts = group.facts
        error = self._try(group, facts)
        if error and len(facts) > 1:
            half = len(facts) // 2
            self._decide_in_halves(group.with_facts(facts[:half]))
            self._decide_in_halves(group.with_facts(facts[half:]))
        elif error:
            self.unanswered.append((facts[0], error.what))
            if not self.answered and len(self.unanswered) >= GIVE_UP_AFTER:
                raise error

    def _try(self, group: FactGroup, facts: Sequence[Fact]) -> UaMemoryError | None:
        """Ask about these facts and save the answer; the error if there is no valid one."""
        try:
            answer = self._ask(group, facts)
        except (ModelMisbehaved, ModelRefused) as error:
            return error
        self.answered += 1
        self._set_unanswered_aside()
        self.answers.add(answer)
        return None

    def close(self) -> None:
        """Set facts without an answer aside, if there was an answer for any other."""
        if self.answered:
            self._set_unanswered_aside()

    def _set_unanswered_aside(self) -> None:
        for fact, why in self.unanswered:
            self.answers.add(BatchOutcome((fact_mark(fact),), aside=self.clean(why), by=self.model.name))
        self.unanswered.clear()

    def _ask(self, group: FactGroup, facts: Sequence[Fact]) -> BatchOutcome:
        shown = self._current_observations(group, facts)
        answer = _DecideTool(group.facts, shown)
        tool = {"decide": Tool(tool_task("decide"), schema("decide"), answer.decide, ends=True)}
        reminded = {label: belief for label, belief in shown.items() if belief.name in self.overlay.changed}
        outcome = run_tools(
            self.model, group.system, [*shared_messages(group), question(group, facts, reminded)], tool,
            purpose="consolidate", bounds=_BOUNDS, max_tokens=LONGEST_ANSWER,
        )  # fmt: skip
        self.usage += outcome.usage
        if not answer.answered:
            outcome.require_done()
            what = "the model said something, and decided nothing"
            raise ModelMisbehaved(what, hint="another UA_MEMORY_MODEL")
        known = {belief.name: belief for belief in group.beliefs.values()}
        for operation in answer.accepted:
            self.overlay.add(operation, known, [answer.by_mark[each] for each, _ in operation.proofs])
        marks = tuple(fact_mark(fact) for fact in facts)
        refused = tuple(self.clean(each) for each in answer.refused)
        return BatchOutcome(marks, tuple(answer.accepted), refused, by=self.model.name)

    def _current_observations(self, group: FactGroup, facts: Sequence[Fact]) -> dict[str, KnownObservation]:
        """The observations of a group by label, with the changes of this run, and those that this run created
        and that are related to these facts."""
        now = {
            label: replace(self.overlay.changed.get(belief.name, belief), by_person=belief.by_person)
            for label, belief in group.beliefs.items() if belief.name not in self.overlay.gone
        }  # fmt: skip
        words = frozenset(word for fact in facts for word in terms(fact.text))
        there = {belief.name for belief in now.values()}
        new = [
            belief for name, belief in self.overlay.changed.items()
            if name not in there and name not in self.overlay.gone and belief.scope == group.scope
        ]  # fmt: skip
        near = sorted(new, key=lambda b: len(terms(b.text) & words), reverse=True)[:_RELATED_SHOWN]
        near = [belief for belief in near if len(terms(belief.text) & words) > 1]
        reworded = {
            label: belief for label, belief in now.items()
            if belief.name not in self.overlay.changed or len(terms(belief.text) & words) > 1
        }  # fmt: skip
        return {**reworded, **{f"n{number}": belief for number, belief in enumerate(near, 1)}}


class _DecideTool:
    """The tool for one portion: the accepted and the refused proposals. The model can correct the refused
    ones once."""

    def __init__(self, facts: Sequence[Fact], beliefs: Mapping[str, KnownObservation]) -> None:
        self.facts = {f"f{number}": (fact_mark(fact), fact) for number, fact in enumerate(facts, 1)}
        self.by_mark = dict(self.facts.values())
        self.beliefs = dict(beliefs)
        self.accepted: list[Operation] = []
        self.refused: list[str] = []
        self.answered = False
        self.seen: set[str] = set()

    def decide(self, given: Mapping[str, Any]) -> str:
        """Accept the valid proposals. ToolError reports the others, the first time."""
        refused = [why for each in given["operations"] if (why := self._accept(each))]
        again, self.answered = self.answered, True
        self.refused = refused  # only those of the second time
        if refused and not again:
            rest = "All else is. Send only these again, put right, or none."
            raise ToolError(f"not taken: {'; '.join(refused)}. {rest}")
        return "taken"

    def _accept(self, given: Mapping[str, Any]) -> str:
        label = f"{given['do']} {given.get('observation') or ''} {given.get('text') or ''}".strip()[:120]
        if repr(given) in self.seen:
            return ""
        try:
            operation = check_proposal(given, self.facts, self.beliefs, f"new:{new_id()}")
        except RefusedProposal as error:
            return f"{label}: {error}"
        self.seen.add(repr(given))
        self.accepted.append(operation)
        if operation.do == "create":  # so that a later proposal can refer to it
            free = next(label for n in count(1) if (label := f"n{n}") not in self.beliefs)
            named = [self.by_mark[each] for each, _ in operation.proofs]
            evidence = tuple(text for fact in named for text in (fact.text, day_of(fact)))
            self.beliefs[free] = KnownObservation(operation.observation, operation.text, evidence=evidence)
        gone = {"merge": operation.others, "retire": (operation.observation,)}.get(operation.do, ())
        self.beliefs = {label: b for label, b in self.beliefs.items() if b.name not in gone}
        return ""


# -- message batches ---------------------------------------------------------------------------------------
# The Batches API answers within a day at half the price: one run posts a batch, a later one collects it.
#
# The batch's id and questions are saved in `pending/`. All portions are asked at once, so none sees what the
# others change. Refused proposals are reported and not asked about again; facts without an answer are.


BATCH_FILE = "consolidation-batch.json"
ANSWERS_KEPT = timedelta(days=29)
"""How long the API keeps the answers of a batch."""
BATCH_DURATION = timedelta(days=1)
"""The longest that a batch takes."""
GONE_FACT = Fact("", retired="gone or edited")
"""A placeholder for a fact that was shown and has been edited or removed since."""


@dataclass(frozen=True, slots=True)
class DecisionPrompt:
    """One question of a batch: the marks of the facts that were shown and of those to decide on, and the
    names of the observations by label."""

    scope: str
    facts: tuple[str, ...]
    portion: tuple[str, ...]
    beliefs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PendingBatch:
    """A batch that has been posted: its handle, when, and its questions."""

    post: BatchHandle
    at: datetime
    shown: tuple[DecisionPrompt, ...]

    @property
    def marks(self) -> set[str]:
        """All facts to be decided on."""
        return {each for one in self.shown for each in one.portion}


class BatchFile:
    """The file with the pending batch of a bank. Only the process that holds the run's claim uses it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / BATCH_FILE

    def read(self, now: datetime) -> PendingBatch | None:
        """The pending batch; None if there is none, or if it is so old that its answers have expired."""
        try:
            row = json.loads(self.file.read_bytes())
            shown = tuple(from_row(DecisionPrompt, one) for one in row["shown"])
            found = PendingBatch(BatchHandle(**row["post"]), datetime.fromisoformat(row["at"]), shown)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return found if now - found.at < ANSWERS_KEPT else None

    def save(self, posted: PendingBatch) -> None:
        """Save a batch; it is on the disk on return."""
        make_private(self.file.parent)
        data = json.dumps(to_row(posted)).encode("utf-8", "replace")
        swap.replace_file(self.file, data, self.file.with_suffix(".new"))

    def clear(self) -> None:
        """Remove the file."""
        self.file.unlink(missing_ok=True)


def post(file: BatchFile, model: Model, groups: Sequence[FactGroup], at: datetime) -> PendingBatch | None:
    """Post a batch with as many questions as the limits allow; None if there are none. Usage for a model that
    takes no batches; what `Claude.post` raises."""
    each = [(group, portion) for group in groups for portion in group.portions]
    if not each:
        return None
    tool = {"name": "decide", "description": tool_task("decide"), "input_schema": schema("decide")}
    questions = [
        BatchQuestion(group.system, [*shared_messages(group), question(group, portion, {})], [tool])
        for group, portion in each
    ]
    made = _batch_model(model).post(questions, purpose="consolidate", max_tokens=LONGEST_ANSWER)
    shown = tuple(
        DecisionPrompt(
            group.scope, tuple(map(fact_mark, group.facts)), tuple(map(fact_mark, portion)),
            {label: belief.name for label, belief in group.beliefs.items()},
        )
        for group, portion in each[: made.count]
    )  # fmt: skip
    posted = PendingBatch(made, at, shown)
    file.save(posted)
    return posted


def _batch_model(model: Model) -> Claude:
    if not isinstance(model, Claude):
        raise Usage("this model does not support batches", hint="consolidate without --batch-api")
    return model


class _ReplyModel:
    """A model that gives one known reply."""

    one_shot = False

    def __init__(self, name: str, reply: Reply) -> None:
        self.name = name
        self._reply: Reply | None = reply

    def ask(self, *_: Any, **__: Any) -> Reply:
        """The reply, then an empty one."""
        reply, self._reply = self._reply, None
        return reply or Reply("", (), "end_turn", TokenUsage(), ())
