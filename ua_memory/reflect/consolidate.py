"""Consolidation: one run updates the observations from new facts; its preview; the observations of a bank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ua_memory.errors import (
    BudgetSpent,
    KeyRejected,
    ModelMisbehaved,
    ModelRefused,
    ModelUnavailable,
    RequestRejected,
    UaMemoryError,
    checked,
)
from ua_memory.index.sync import Facts
from ua_memory.knowledge import observations
from ua_memory.knowledge.statements import Progress, name_of
from ua_memory.llm.client import BATCH_PRICE
from ua_memory.llm.ledger import MODEL_TOKENS, Estimate, estimate_of
from ua_memory.llm.model import Endpoint, Message, Model, ModelOrEndpoint, TokenUsage
from ua_memory.llm.tools import schema
from ua_memory.markdown.lines import FileKind, kind_of
from ua_memory.records import Fact, Observation
from ua_memory.reflect import decide, proposals
from ua_memory.store.draft import Draft, Result
from ua_memory.store.lock import locked
from ua_memory.store.store import Store
from ua_memory.text import tokens
from ua_memory.text.wording import counted

# -- consolidate -------------------------------------------------------------------------------------------
# One run compares the facts that no run has considered with the observations, and makes one commit:
#
#     waiting facts → answers (asked now, or saved by a killed run) → operations → one revision
#
# Each answer of the model is saved before the next question. If a run ends early, what was answered is
# committed, and the other facts wait for the next run. Without a model facts are only compared.


CLAIM = "consolidation.lock"
RETIRABLE_PART = 4
"""A run may retire one in so many observations without a person's consent."""
_RUN_ERRORS = (BudgetSpent, KeyRejected, ModelMisbehaved, ModelRefused, ModelUnavailable, RequestRejected)


@dataclass(frozen=True, slots=True)
class ConsolidationResult:
    """What a run did. `facts` were considered, `left` still wait; `by` names the model, '' without one.

    `at_odds` are pairs of facts that may contradict each other, the newer first; `refused` is what a model
    proposed without proof; `aside` are facts without an answer, with the reason; `held` is how many
    observations are to be retired once a person accepts it, `stale` how many have no recent evidence. `ended`
    is the error that ended the run early, `posted` how many facts a pending batch has.
    """

    by: str = ""
    facts: int = 0
    left: int = 0
    changes: tuple[proposals.ObservationChange, ...] = ()
    at_odds: tuple[tuple[Fact, Fact], ...] = ()
    refused: tuple[str, ...] = ()
    aside: tuple[tuple[Fact, str], ...] = ()
    held: int = 0
    stale: int = 0
    revision: str | None = None
    paths: tuple[str, ...] = ()
    """The files that were changed."""
    committed: bool = False
    notes: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)
    usage: TokenUsage = field(default_factory=TokenUsage)
    ended: UaMemoryError | None = None
    posted: int = 0


@dataclass(slots=True)
class ConsolidationWork:
    """The work of a run: the facts to consider, oldest first, those that this run takes, and by mark those
    that no model has decided on yet."""

    beliefs: observations.ObservationIndex
    waiting: list[Fact]
    taken: list[Fact]
    undecided: Mapping[str, Fact]
    by_person: frozenset[str]
    """The names of the observations that a person worded."""

    def known(self) -> list[proposals.KnownObservation]:
        """The current observations, as a model is shown them."""
        return [_known(each, name_of(each) in self.by_person) for each in self.beliefs.live]


class ConsolidationRun:
    """One consolidation of a bank. `accept` allows more than a quarter of the observations to be retired,
    `retry` includes facts that were set aside."""

    def __init__(
        self, store: Store, *, door: str, model: Model | None = None, clean: Callable[[str], str] = str,
        retry: bool = False, accept: bool = False, limit: int | None = None, tell: Progress | None = None,
        batch_api: bool = False,
    ) -> None:  # fmt: skip
        self.store, self.door, self.model, self.clean = store, door, model, clean
        self.retry, self.accept, self.limit, self.tell = retry, accept, limit, tell
        self.answers = decide.Answers(store.bank.pending)
        self.batch_file = decide.BatchFile(store.bank.pending)
        self.batch_api, self.posted = batch_api, set[str]()
        self.overlay = decide.ObservationDraft()

    def run(self) -> ConsolidationResult:
        """Consolidate. Busy if another run is active; what the store raises. An error of the model ends the
        run and is in the result."""
        self.store.make_state()
        busy = "another consolidation is running", "try again when it is done"
        with locked(self.store.bank.state / CLAIM, 0, *busy):
            # Finish a killed run's revision first, whose changes cannot be read before.
            self.store.require_settled()
            work = self.work()
            usage, ended = self._ask(work, self._usable_answers(work))
            if self.model:  # a person may have edited files meanwhile
                work = self.work()
            held = [answer for answer in self.answers.all() if answer.held]
            return self._write(work, self._usable_answers(work), held, usage, ended)

    def work(self) -> ConsolidationWork:
        """The facts that wait now, and the current observations."""
        beliefs, done = observations.all_observations(self.store), proposals.considered(self.store)
        each = {
            proposals.fact_mark(fact): fact for fact in beliefs.facts
            if done.waits(fact, modelled=self.model is not None, retry=self.retry)
        }  # fmt: skip
        undecided = {
            proposals.fact_mark(f): f for f in beliefs.facts if done.waits(f, modelled=True, retry=True)
        }
        waiting = sorted(each.values(), key=lambda f: (observations.day_of(f), f.place.path, f.place.line))
        by_person = frozenset(map(name_of, proposals.observations_by_person(self.store, beliefs.live)))
        return ConsolidationWork(beliefs, waiting, waiting[: self.limit], undecided, by_person)

    def fact_groups(self, work: ConsolidationWork, facts: Sequence[Fact]) -> list[decide.FactGroup]:
        """The groups of facts that a model would be asked about."""
        return list(decide.fact_groups(facts, work.known(), self.store.config.mission))

    # -- asking ----------------------------------------------------------------------------------------

    def _usable_answers(self, work: ConsolidationWork) -> list[decide.BatchOutcome]:
        """The saved answers whose facts still wait, unedited; edited facts are asked about again."""
        saved = [answer for answer in self.answers.all() if not answer.held]
        return [answer for answer in saved if work.undecided.keys() >= answer.rests_on]

    def _ask(
        self, work: ConsolidationWork, usable: Sequence[decide.BatchOutcome]
    ) -> tuple[TokenUsage, UaMemoryError | None]:
        if self.model is None:
            return TokenUsage(), None
        by_mark = work.undecided
        known = {belief.name: belief for belief in work.known()}
        for answer in usable:
            for operation in answer.operations:
                self.overlay.add(operation, known, [by_mark[each] for each, _ in operation.proofs])
        decided = {each for answer in usable for each in answer.facts}
        decider = decide.Decider(self.model, self.answers, self.overlay, self.clean)
        done = 0
        try:
            unanswered = self._collect_batch(decider, work, decided)
            facts = [fact for fact in work.taken if proposals.fact_mark(fact) not in decided]
            if self.batch_api:
                fresh = [fact for fact in facts if proposals.fact_mark(fact) not in unanswered]
                if not self.posted:
                    groups = self.fact_groups(work, fresh)
                    found = decide.post(self.batch_file, self.model, groups, self.store.now())
                    self.posted = found.marks if found else set()
                facts = [fact for fact in facts if proposals.fact_mark(fact) in unanswered]
            for group in self.fact_groups(work, facts):
                for number in decider.decide(group):
                    done += number
                    if self.tell:
                        self.tell(done, len(facts))
        except _RUN_ERRORS as error:
            return decider.usage, error
        finally:
            decider.close()
        return decider.usage, None

    def _collect_batch(self, decider: decide.Decider, work: ConsolidationWork, decided: set[str]) -> set[str]:
        """Save the answers of a batch that an earlier run has posted. Adds to `decided` the facts that are
        decided or still pending; returns those without an answer."""
        saved = self.batch_file.read(now := self.store.now())
        if saved is None:
            return set()
        before = {each for answer in self.answers.all() for each in answer.facts}
        known = {belief.name: belief for belief in work.known()}
        if not decider.collect(self.batch_file, saved, work.undecided, known, before, now):
            self.posted = saved.marks & work.undecided.keys()
            decided |= self.posted
            return set()
        decided |= {each for answer in self.answers.all() for each in answer.facts}
        return saved.marks - decided

    # -- writing ---------------------------------------------------------------------------------------

    def _write(
        self, work: ConsolidationWork, answers: Sequence[decide.BatchOutcome],
        held: Sequence[decide.BatchOutcome], usage: TokenUsage, ended: UaMemoryError | None,
    ) -> ConsolidationResult:  # fmt: skip
        aside = {answer.facts[0]: answer.aside for answer in answers if answer.aside}
        waits = {proposals.fact_mark(fact) for fact in work.waiting}
        decided = {each for answer in answers if not answer.aside for each in answer.facts}
        operations = [operation for answer in answers for operation in answer.operations]
        # Observations without proofs are held again in each run.
        lost = {op.observation for answer in held for op in answer.operations if op.without_proof}
        held = [answer for answer in held if not any(op.without_proof for op in answer.operations)]
        operations += [op for answer in held for op in answer.operations] if self.accept else []
        folded = proposals.compare_facts(work.beliefs, work.taken, self.clean) if self.model is None else None
        compared = {proposals.fact_mark(fact) for fact in work.taken} - decided if folded else set()
        operations += folded.operations if folded else ()
        with self.store.revision("consolidate", door=self.door) as draft:
            applier = self.applier(draft, work, () if self.accept else lost)
            applier.apply(operations)
            applier.remove_lost_proofs()
            if applier.changes or decided or compared or aside:
                applier.update_trends()
            names = {proposals.CONSIDERED: decided, proposals.COMPARED: compared, proposals.ASIDE: set(aside)}
            self._describe(draft, applier.changes, names)
            draft.even_if_empty = bool(decided or compared or aside)
        kept = held if not self.accept else ()
        self.answers.keep_only([*kept, *(decide.BatchOutcome((), (op,), held=True) for op in applier.held)])
        wrote = bool(draft.changed()) or draft.even_if_empty
        done = decided | compared
        return ConsolidationResult(
            by=self.model.name if self.model else "",
            facts=len(done),
            left=len(waits - done - aside.keys() - self.posted),
            changes=tuple(applier.changes),
            at_odds=folded.at_odds if folded else (),
            refused=tuple(each for answer in answers for each in answer.refused),
            aside=tuple((work.undecided[each], why) for each, why in aside.items()),
            held=len(applier.held) + sum(len(answer.operations) for answer in kept),
            stale=sum(each.trend == "stale" for each in {o.id: o for o in applier.now.values()}.values()),
            revision=draft.result.revision if wrote else None,
            paths=tuple(sorted(draft.changed())),
            committed=wrote,
            notes=(*applier.notes, *draft.result.notes),
            redacted=draft.result.redacted,
            usage=usage,
            ended=ended,
            posted=len(self.posted),
        )

    def applier(
        self, draft: Draft, work: ConsolidationWork, waiting: Collection[str] = ()
    ) -> proposals.OperationApplier:
        """An applier for an open revision; `waiting` are the names of observations that a person has to
        accept first."""
        live = len(work.beliefs.live)
        spare = live if self.accept else max(1, live // RETIRABLE_PART)
        return proposals.OperationApplier(
            draft, work.beliefs, self.store.now().date(), spare, waiting, work.by_person
        )

    def _describe(
        self, draft: Draft, changes: Sequence[proposals.ObservationChange], names: Mapping[str, set[str]]
    ) -> None:
        count = len(names[proposals.CONSIDERED] | names[proposals.COMPARED])
        draft.subject = f"consolidate: {summarize(changes, count)}"
        draft.body = "\n".join(f"{one.how} ^{one.after.id} in {one.after.place.path}" for one in changes)
        draft.trailers |= {key: proposals.trailer_values(each) for key, each in names.items() if each}
        draft.facts = list(dict.fromkeys(f"^{one.after.id}" for one in changes))


def summarize(changes: Sequence[proposals.ObservationChange], facts: int) -> str:
    """A summary such as `2 created, 1 strengthened, of 9 facts`, or `nothing new, of 9 facts`."""
    each = Counter(change.how for change in changes)
    said = ", ".join(f"{number} {how}" for how, number in each.items()) or "nothing new"
    return f"{said}, of {counted(facts, 'fact')}"


def _known(observation: Observation, theirs: bool) -> proposals.KnownObservation:
    evidence = (*(proof.quote for proof in observation.proofs), *(was.text for was in observation.was))
    days = tuple(was.until for was in observation.was)
    return proposals.KnownObservation(
        name_of(observation), observation.text, observation.scope or "", observation.last or "",
        len(observation.proofs), (*evidence, *days), theirs,
    )  # fmt: skip


# -- preview -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Preview:
    """What a run would do to `waiting` facts: `diff` and `changes` of a run without a model, and `estimate`,
    the cost of one with a model, None without one."""

    waiting: int
    taken: int
    changes: tuple[proposals.ObservationChange, ...]
    at_odds: tuple[tuple[Fact, Fact], ...]
    diff: str
    estimate: Estimate | None


_ANSWER_TOKENS = 400
"""Tokens that an answer usually has."""


def preview(run: ConsolidationRun, model: Endpoint | Model | None) -> Preview:
    """What a run would do. Writes and sends nothing."""
    work = run.work()
    folded = proposals.compare_facts(work.beliefs, work.taken, run.clean)
    with run.store.revision("consolidate", door=run.door) as draft:
        draft.trial = True
        applying = run.applier(draft, work)
        applying.apply(folded.operations)
        applying.remove_lost_proofs()
    cost, facts = None, work.waiting
    if model:
        done = proposals.considered(run.store)
        facts = [fact for fact in work.beliefs.facts if done.waits(fact, modelled=True)][: run.limit]
        cost = estimate(run.fact_groups(work, facts), model, BATCH_PRICE if run.batch_api else 1.0)
    changes, diff = tuple(applying.changes), draft.diff(context=1)
    return Preview(len(work.waiting), len(facts), changes, folded.at_odds, diff, cost)


def estimate(each: Sequence[decide.FactGroup], model: Endpoint | Model, share: float = 1.0) -> Estimate:
    """The tokens and cost of asking about these groups, rounded up; `share` of the price."""
    requests = [usage for group in each for usage in _requests(group)]
    return estimate_of(model, sum(usage.prompt for usage in requests), requests, share=share)


def _requests(group: decide.FactGroup) -> Iterator[TokenUsage]:
    frame = tokens.count(group.system) + tokens.count(str(schema("decide")))
    frame += _count_tokens(decide.shared_messages(group))
    for number, portion in enumerate(group.portions):
        own = int(_count_tokens([decide.question(group, portion, {})]) * MODEL_TOKENS)
        begins = int(frame * MODEL_TOKENS)
        cached = {"cache_read": begins, "cache_write": own} if number else {"cache_write": begins + own}
        yield TokenUsage(**cached, output=_ANSWER_TOKENS)


def _count_tokens(messages: Sequence[Message]) -> int:
    return sum(tokens.count(str(message["content"])) for message in messages)


# -- observations ------------------------------------------------------------------------------------------


@checked
class Observations:
    """The observations of one bank; `door` names the caller."""

    def __init__(self, store: Store, door: str, facts: Facts) -> None:
        self._store, self._door, self._facts = store, door, facts

    def preview(
        self, *, model: ModelOrEndpoint = None, limit: int | None = None, batch_api: bool = False
    ) -> Preview:
        """What a run would do and cost. Writes and sends nothing."""
        how: dict[str, Any] = {"door": self._door, "clean": self._store.redacted}
        return preview(ConsolidationRun(self._store, limit=limit, batch_api=batch_api, **how), model)

    def list(
        self, *, scope: str | None = None, stale: bool = False, retired: bool = False
    ) -> Sequence[observations.ObservationView]:
        """The current observations, or the retired ones; of one scope, or only `stale` ones: their facts
        changed, there are newer facts, or no recent evidence."""
        those = (one for one in self._views() if bool(one.observation.retired) == retired)
        found = [one for one in those if scope is None or (one.observation.scope or "") == scope]
        return [one for one in found if not stale or one.freshness.stale or one.trend == "stale"]

    def get(self, block: str) -> observations.ObservationView:
        """One observation, by its id. NotFound."""
        found = observations.find(self._store, block)
        return next(one for one in self._views() if one.observation == found)

    def _views(self) -> Iterator[observations.ObservationView]:
        beliefs, done = self._with_evidence()
        waiting = [fact for fact in beliefs.facts if done.waits(fact, modelled=False)]
        today = self._store.now().date()
        for each in beliefs.observations:
            word = observations.trend(observations.days_of(each, beliefs.by_id), today)
            yield observations.ObservationView(
                each, word, observations.freshness(each, beliefs.by_id, waiting)
            )

    def _with_evidence(self) -> tuple[observations.ObservationIndex, proposals.ConsideredFacts]:
        """All observations, the facts that they cite, and the facts that no run has considered."""
        files = self._store.survey().files
        own = {each.path for each in files if kind_of(each.path) is FileKind.OBSERVATIONS}
        beliefs, done = (observations.all_observations(self._store, own), proposals.considered(self._store))
        if not beliefs.observations:
            return beliefs, done

        def is_new(path: str, ref: str | None, texthash: str) -> bool:
            return done.is_new(proposals.marks_from_index(path, ref, texthash), modelled=False)

        cited = {proof.id for each in beliefs.observations for proof in each.proofs}
        paths = self._facts.files(cited, is_new)
        return observations.all_observations(self._store, None if paths is None else own.union(paths)), done

    def retire(self, block: str, reason: str, *, by_person: bool = False) -> tuple[Observation, Result]:
        """Retire an observation with a reason; it stays in its file. NotFound, Usage."""
        found = observations.find(self._store, block)
        with self._store.revision("retire", door=self._door, by_person=by_person) as draft:
            after = observations.retire(draft, found, reason)
            draft.subject = f"retire: ^{after.id} in {after.place.path}"
            draft.facts = [f"^{after.id}"]
        return after, draft.result

    def counts(self) -> observations.ObservationCounts:
        """The number of observations, and of facts to consider."""
        beliefs, done = observations.all_observations(self._store), proposals.considered(self._store)
        waiting = sum(done.waits(fact, modelled=False) for fact in beliefs.facts)
        batch = decide.BatchFile(self._store.bank.pending).read(self._store.now())
        posted = (len(batch.marks), f"{batch.at:%Y-%m-%d %H:%M}") if batch else (0, "")
        return observations.ObservationCounts(
            len(beliefs.live), waiting, sum(map(done.is_aside, beliefs.facts)), *posted
        )
