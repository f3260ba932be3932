"""The part of `Memory` for pages, mental models, observations, opinions and reflection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ua_memory.errors import BudgetSpent, KeyRejected, ModelUnavailable, RequestRejected, UaMemoryError, Usage
from ua_memory.index.filters import Filters
from ua_memory.knowledge import observations, pages
from ua_memory.knowledge.observations import Believed, Standing
from ua_memory.knowledge.pages import Kept
from ua_memory.recall.block import Modelled
from ua_memory.records import MentalModel, Observation, Page
from ua_memory.text.redaction import redact

if TYPE_CHECKING:
    from ua_memory.knowledge.opinions import Changed
    from ua_memory.knowledge.statements import Statement
    from ua_memory.llm.model import Model
    from ua_memory.recall.block import Asked
    from ua_memory.recall.search import Answer
    from ua_memory.records import Opinion
    from ua_memory.reflect.consolidate import Consolidated, Consolidating, Preview
    from ua_memory.reflect.consolidate import Tell as ConsolidateTell
    from ua_memory.reflect.reflection import Reflection, ReflectRun
    from ua_memory.reflect.refresh import Proposal, Recalled, Refreshed, Refresher, Stale, Tell
    from ua_memory.store.draft import Result


# -- paged -------------------------------------------------------------------------------------------------
# The part of `Memory` that keeps knowledge pages and mental models.


HOPELESS = (ModelUnavailable, KeyRejected, RequestRejected, BudgetSpent)
"""What no other page would be spared."""


class Paged(Modelled):
    """Knowledge pages and mental models of a bank."""

    def create_page(
        self, id: str, name: str, source_query: str, tags: Sequence[str] = (), *, by_person: bool = False
    ) -> Kept:
        """Declare what a page tracks; `refresh_page` writes its body. Usage."""
        return pages.create_page(
            self.store, id, name, source_query, tags, door=self.door, by_person=by_person
        )

    def update_page(
        self, id: str, *, name: str | None = None, source_query: str | None = None,
        tags: Sequence[str] | None = None, by_person: bool = False,
    ) -> Kept:  # fmt: skip
        """Change a page's name, question or tags; never its body. NotFound, Usage, Malformed."""
        return pages.update_page(
            self.store, id, title=name, source_query=source_query, tags=tags, door=self.door,
            by_person=by_person,
        )  # fmt: skip

    def delete_page(self, id: str, *, by_person: bool = False) -> Kept:
        """Let a page go. NotFound."""
        return pages.delete(self.store, "page", id, door=self.door, by_person=by_person)

    def list_pages(self) -> list[Page]:
        """All pages."""
        return pages.pages(self.store)

    def get_page(self, id: str) -> Page:
        """One page. NotFound."""
        return pages.page(self.store, id)

    # -- refreshing --------------------------------------------------------------------------------------

    def refresh(self) -> Any:
        """Bring the index up to date."""
        raise NotImplementedError

    def fact(self, block: str) -> Statement:
        """What has a block id."""
        raise NotImplementedError

    def staleness(self, id: str) -> Stale:
        """Whether a page is out of date, and why. Reads only. NotFound."""
        return self._refresher(None, None).stale(self.get_page(id))

    def refresh_page(
        self, id: str, *, full: bool = False, dry_run: bool = False, model: Asked = None,
        tell: Tell | None = None,
    ) -> Refreshed:  # fmt: skip
        """Bring a page up to date, in one commit; nothing is asked or written where nothing has changed.

        Without a `model` it is put together from the facts' own words. `full` writes it anew; `dry_run`
        writes nothing, but asks the model; `tell` hears the price first. Raises NotFound, ChangedOnDisk,
        Malformed, and what the model raises: the page is as it was then.
        """
        page = self.get_page(id)
        with self._asking(model) as asked:
            return self._refresher(asked, model).refresh(page, full=full, dry_run=dry_run, tell=tell)

    def refresh_stale(
        self, model: Asked = None, *, every: bool = False, full: bool = False, dry_run: bool = False,
        tell: Tell | None = None, done: Callable[[Refreshed], None] | None = None,
    ) -> list[Refreshed]:  # fmt: skip
        """Refresh the pages that are stale, each in a commit of its own; with `every` those that are not are
        in the result, too. `done` hears of each as it comes.

        A page that fails does not keep others from it, unless no other would be spared; the first error is
        raised at the end.
        """
        all_done: list[Refreshed] = []
        failed: UaMemoryError | None = None
        with self._asking(model) as asked:
            refresher = self._refresher(asked, model)
            for page in self.list_pages():
                try:
                    one = refresher.refresh(page, full=full, dry_run=dry_run, tell=tell)
                except HOPELESS:
                    raise
                except UaMemoryError as error:
                    failed = failed or error
                    continue
                if every or one.why or one.revision or one.diff:
                    all_done.append(one)
                    if done:
                        done(one)
        if failed:
            raise failed
        return all_done

    def propose_model(self, id: str, *, model: Asked = None, tell: Tell | None = None) -> Proposal:
        """What memory would change in a mental model. Nothing is written. NotFound; the model's errors."""
        from ua_memory.reflect.refresh import propose

        one = self.get_model(id)
        with self._asking(model) as asked:
            return propose(self._refresher(asked, model), one, tell)

    def _refresher(self, model: Model | None, at: Asked) -> Refresher:
        from ua_memory.reflect.refresh import FAINTEST, KINDS, PASSED, Refresher, RefreshView

        wanted = Filters(kinds=KINDS, retired=False)

        def recall(question: str) -> Recalled:
            found = self.search(question, limit=PASSED, min_score=FAINTEST, filters=wanted)
            if found.stale:  # it had no time to read all; a page would be called up to date that is not
                self.refresh()
                found = self.search(question, limit=PASSED, min_score=FAINTEST, filters=wanted)
            return found.hits, found.notes

        view = RefreshView(recall, self.fact, self._equal, lambda text: redact(text, self.config.redact).text)
        return Refresher(self.store, view, door=self.door, model=model, at=at)

    # -- mental models -----------------------------------------------------------------------------------

    def create_model(
        self, id: str, name: str, body: str, tags: Sequence[str] = (), *, by_person: bool = False
    ) -> Kept:
        """Write a person's mental model; for a machine (not `by_person`) Usage."""
        return pages.create_model(self.store, id, name, body, tags, door=self.door, by_person=by_person)

    def update_model(
        self, id: str, *, name: str | None = None, body: str | None = None, by_person: bool = False
    ) -> Kept:
        """Change a mental model as a person wants it. NotFound, Usage."""
        return pages.update_model(self.store, id, title=name, body=body, door=self.door, by_person=by_person)

    def delete_model(self, id: str, *, by_person: bool = False) -> Kept:
        """Let a mental model go. NotFound, Usage."""
        return pages.delete(self.store, "model", id, door=self.door, by_person=by_person)

    def list_models(self) -> list[MentalModel]:
        """All mental models."""
        return pages.models(self.store)

    def get_model(self, id: str) -> MentalModel:
        """One mental model. NotFound."""
        return pages.model(self.store, id)


# -- reflections -------------------------------------------------------------------------------------------
# What `Memory` thinks about: reflection, the opinions it forms, the directives that bind it.
#
# A part of `Memory`. What it needs is imported when it is used: most commands reflect on nothing.


NO_MODEL = (
    "without a model this is the evidence, in order, and no answer: one would weigh it and say what it adds "
    "up to (ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for one of your own)"
)
NOT_KEPT = "no opinion was formed: that takes a model"
BEFORE = 5
"""Opinions on a matter that a reflection is shown."""


class Reflections(Modelled):
    """The part of `Memory` that answers questions."""

    def observations(self) -> list[Believed]:
        """The observations that hold, with their freshness; `Believing` has them."""
        raise NotImplementedError

    def reflect(
        self, question: str, *, model: Asked = None, budget: str = "low", max_tokens: int = 0,
        schema: Mapping[str, Any] | None = None, context: str = "", filters: Filters | None = None,
        keep_opinion: bool = False,
    ) -> Reflection:  # fmt: skip
        """Answer a question from memory: mental models first, then observations, then facts, all cited.

        `budget` is low, mid or high: turns, hits and tokens. `max_tokens` bounds the answer's text, `schema`
        is a JSON schema for a structured answer beside it, `filters` what may be found at all. With
        `keep_opinion` what the model comes to think is written to memory/opinions.md; else nothing is.
        Without a model the evidence is returned; where there is none, no model is asked.

        Raises Usage for a question, budget or schema that is none, and what the model raises: then there is
        no answer, and nothing was kept.
        """
        from ua_memory.reflect.reflection import DONT_KNOW, Reflection, Stance, answer, in_order, write

        if not question.strip():
            raise Usage("there is no question", mend='ua-memory reflect "why did we leave Heroku"')
        session = self._session(question.strip(), budget, max_tokens, schema, context, filters, keep_opinion)
        layers = session.gather()
        pieces = tuple(in_order(session.found.pieces.values()))
        left = tuple(session.found.notes)
        if model is None or not pieces:
            notes = [*left, *([] if model else [NO_MODEL, *([NOT_KEPT] if keep_opinion else [])])]
            text = "" if pieces else DONT_KNOW
            return Reflection(question, text, evidence=pieces, path=tuple(session.path), notes=tuple(notes))
        stance = Stance.of(self.config)
        system = stance.system(session.asked.size.answer * 2 // 3, keep_opinion)
        with self._asking(model) as asked:
            assert asked is not None
            done = answer(asked, session, session.opening(layers, stance), system)
        opinions = write(self.store, session.proposals, question=question, door=self.door)
        return replace(done, opinions=opinions, notes=(*left, *done.notes))

    def _session(
        self, question: str, budget: str, max_tokens: int, schema: Mapping[str, Any] | None, context: str,
        filters: Filters | None, keep: bool,
    ) -> ReflectRun:  # fmt: skip
        from ua_memory.knowledge import opinions
        from ua_memory.reflect.evidence import Findings
        from ua_memory.reflect.reflection import SIZES, ReflectQuestion, ReflectRun, shape

        if budget not in SIZES:
            raise Usage(f"no budget {budget!r}", mend=f"one of {', '.join(SIZES)}")
        size = SIZES[budget] if max_tokens <= 0 else replace(SIZES[budget], answer=max_tokens)
        base = filters or Filters()
        found = Findings(
            self.store, self._found, lambda text: redact(text, self.config.redact).text,
            self.store.now().date(), base, self.observations,
        )  # fmt: skip
        holding = tuple(opinions.listed(self.store))
        asked = ReflectQuestion(
            question, size, context.strip(), shape(schema) if schema is not None else None, keep,
            self._opinions_on(question, base, holding), holding,
        )  # fmt: skip
        return ReflectRun(asked, found)

    def _found(self, query: str, limit: int, filters: Filters) -> Answer:
        answer: Answer = self.search(query, limit=limit, filters=filters)
        return answer

    def _opinions_on(self, question: str, base: Filters, holding: Sequence[Opinion]) -> tuple[Opinion, ...]:
        """The opinions that a search for the question finds: those which what is thought now may change."""
        from ua_memory.reflect.evidence import bears

        if not holding:
            return ()
        where = replace(base, kinds=("opinion", "pattern", "risk"), retired=False)
        ids = [hit.item.id for hit in self._found(question, BEFORE, where).hits if bears(hit)]
        return tuple(one for one in holding if one.id and one.id in ids)

    # -- opinions ----------------------------------------------------------------------------------------

    def opinions(self, *, retired: bool = False) -> list[Opinion]:
        """What the agent thinks; with `retired` also what it thought and dropped."""
        from ua_memory.knowledge import opinions

        return opinions.listed(self.store, retired=retired)

    def opinion(self, block: str) -> Opinion:
        """The opinion with an id, also a dropped one. NotFound."""
        from ua_memory.knowledge import opinions

        return opinions.named(self.store, block)

    def opinion_revise(
        self, block: str, *, text: str = "", confidence: float | None = None, because: Sequence[str] = (),
        by_person: bool = False,
    ) -> Changed:  # fmt: skip
        """Change an opinion: its words, its confidence, or more that it rests on (`^id`). NotFound, Usage."""
        from ua_memory.knowledge import opinions

        return opinions.revise_by_hand(
            self.store, block, text=text, confidence=confidence, because=because,
            day=self.store.now().date().isoformat(), door=self.door, by_person=by_person,
        )  # fmt: skip

    def opinion_drop(self, block: str, why: str = "", *, by_person: bool = False) -> Changed:
        """Retire an opinion: it stays in its file with the day and the reason. NotFound, Usage."""
        from ua_memory.knowledge import opinions

        day = self.store.now().date().isoformat()
        return opinions.drop_by_hand(self.store, block, why, day=day, door=self.door, by_person=by_person)

    # -- directives --------------------------------------------------------------------------------------

    def direct(self, text: str, *, by_person: bool = False) -> tuple[tuple[str, ...], Result]:
        """Add a hard rule for reflect to ua-memory.toml: (all rules, what was done). Usage, Malformed."""
        from ua_memory.reflect import reflection

        rules, result = reflection.add(self.store, text, door=self.door, by_person=by_person)
        self.config = replace(self.config, directives=rules)
        return rules, result

    def redirect(self, number: int, text: str, *, by_person: bool = False) -> tuple[tuple[str, ...], Result]:
        """Put another rule in the place of this number: (all rules, what was done). NotFound, Usage."""
        from ua_memory.reflect import reflection

        rules, result = reflection.change(self.store, number, text, door=self.door, by_person=by_person)
        self.config = replace(self.config, directives=rules)
        return rules, result

    def directive(self, number: int) -> str:
        """The rule of this number, from 1. NotFound."""
        from ua_memory.reflect import reflection

        return reflection.named(self.config.directives, number)

    def undirect(self, number: int, *, by_person: bool = False) -> tuple[str, Result]:
        """Take the rule of this number (from 1) out: (it, what was done). NotFound, Malformed."""
        from ua_memory.reflect import reflection

        gone, rules, result = reflection.remove(self.store, number, door=self.door, by_person=by_person)
        self.config = replace(self.config, directives=rules)
        return gone, result


# -- beliefs -----------------------------------------------------------------------------------------------
# What `Memory` does with beliefs: consolidate facts into observations, list them, retire one.
#
# A part of `Memory`. What it needs is imported when it is used: most commands consolidate nothing.


class Believing(Modelled):
    """The part of `Memory` that makes observations of facts."""

    def consolidate(
        self, *, model: Asked = None, limit: int | None = None, usd: float | None = None,
        retry: bool = False, accept: bool = False, batch_api: bool = False,
        tell: ConsolidateTell | None = None,
        after: Callable[[Consolidated, Model | None], None] | None = None,
    ) -> Consolidated:  # fmt: skip
        """Hold the facts that no run has considered against the observations; one commit, or none.

        Without a `model` they are only compared. `limit` is how many facts a run takes, `usd` what it may
        cost if that is less than the settings say. `retry` takes up facts that were set aside, `accept` lets
        more than a quarter of the observations be retired. With `batch_api` facts are posted at half the
        price, and a later run collects the answers. `after` hears of the run and may ask on, within
        the same `usd`.

        Busy while another run is at it. What a model raises ends the run, and is in the result.
        """
        with self._asking(model, usd) as asked:
            with_all = self._consolidating(
                asked, limit, retry=retry, accept=accept, tell=tell, batch_api=batch_api
            )
            done = with_all.run()
            if after:
                after(done, asked)
        return done

    def preview_consolidation(
        self, *, model: Asked = None, limit: int | None = None, batch_api: bool = False
    ) -> Preview:
        """What a run would do and cost. Nothing is written, and nothing sent."""
        from ua_memory.reflect.consolidate import preview

        return preview(self._consolidating(None, limit, batch_api=batch_api), model)

    def observations(
        self, *, scope: str | None = None, stale: bool = False, retired: bool = False
    ) -> list[Believed]:
        """The observations that hold, or with `retired` those that do not; of one scope, or only those that
        are `stale`: their facts changed, or new ones came, or none came for long."""
        told = (one for one in self._believed() if bool(one.observation.retired) == retired)
        found = [one for one in told if scope is None or (one.observation.scope or "") == scope]
        return [one for one in found if not stale or one.freshness.stale or one.trend == "stale"]

    def observation(self, block: str) -> Believed:
        """One observation, by its id. NotFound."""
        found = observations.find(self.store, block)
        return next(one for one in self._believed() if one.observation == found)

    def _believed(self) -> Iterator[Believed]:
        from ua_memory.reflect import proposals

        beliefs, done = observations.everyone(self.store), proposals.read(self.store)
        waiting = [fact for fact in beliefs.facts if done.waits(fact, modelled=False)]
        today = self.store.now().date()
        for each in beliefs.observations:
            word = observations.trend(observations.days_of(each, beliefs.by_id), today)
            yield Believed(each, word, observations.freshness(each, beliefs.by_id, waiting))

    def retire_observation(
        self, block: str, reason: str, *, by_person: bool = False
    ) -> tuple[Observation, Result]:
        """Say that an observation does not hold, and why; it stays in its file. NotFound, Usage."""
        found = observations.find(self.store, block)
        with self.store.revision("retire", door=self.door) as draft:
            draft.by_person = by_person
            after = observations.retire(draft, found, reason)
            draft.subject = f"retire: ^{after.id} in {after.place.path}"
            draft.facts = [f"^{after.id}"]
        return after, draft.result

    def standing(self) -> Standing:
        """How many beliefs there are, and how much waits to be considered."""
        from ua_memory.reflect import proposals
        from ua_memory.reflect.decide import Box

        beliefs, done = observations.everyone(self.store), proposals.read(self.store)
        waiting = sum(done.waits(fact, modelled=False) for fact in beliefs.facts)
        batch = Box(self.store.bank.pending).there(self.store.now())
        posted = (len(batch.marks), f"{batch.at:%Y-%m-%d %H:%M}") if batch else (0, "")
        return Standing(len(beliefs.live), waiting, sum(map(done.is_aside, beliefs.facts)), *posted)

    def _consolidating(
        self, model: Model | None, limit: int | None, *, retry: bool = False, accept: bool = False,
        tell: ConsolidateTell | None = None, batch_api: bool = False,
    ) -> Consolidating:  # fmt: skip
        from ua_memory.reflect.consolidate import Consolidating

        return Consolidating(
            self.store, door=self.door, model=model, limit=limit, retry=retry, accept=accept, tell=tell,
            batch_api=batch_api, clean=lambda text: redact(text, self.config.redact).text,
        )  # fmt: skip
