"""What `Memory` does with beliefs: consolidate facts into observations, list them, retire one.

A part of `Memory`. What it needs is imported when it is used: most commands consolidate nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ua_memory.modelled import Modelled
from ua_memory.records import Observation

if TYPE_CHECKING:
    from ua_memory.llm import Model
    from ua_memory.modelled import Asked
    from ua_memory.observations import Freshness
    from ua_memory.reflect.consolidate import Consolidated, Consolidating, Tell
    from ua_memory.reflect.preview import Preview
    from ua_memory.store import Result


@dataclass(frozen=True, slots=True)
class Believed:
    """An observation with what its days say today, and how fresh it is."""

    observation: Observation
    trend: str
    freshness: Freshness


@dataclass(frozen=True, slots=True)
class Standing:
    """Beliefs in numbers: observations that hold, facts that no run has looked at, facts set aside, and facts
    that a batch is under way with, since when ('' without one)."""

    observations: int
    waiting: int
    aside: int
    posted: int = 0
    since: str = ""


class Believing(Modelled):
    """The part of `Memory` that makes observations of facts."""

    def consolidate(
        self, *, model: Asked = None, limit: int | None = None, usd: float | None = None,
        retry: bool = False, accept: bool = False, batch_api: bool = False, tell: Tell | None = None,
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
        from ua_memory.reflect.preview import preview

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
        from ua_memory import observations

        found = observations.find(self.store, block)
        return next(one for one in self._believed() if one.observation == found)

    def _believed(self) -> Iterator[Believed]:
        from ua_memory import observations
        from ua_memory.reflect import considered

        beliefs, done = observations.everyone(self.store), considered.read(self.store)
        waiting = [fact for fact in beliefs.facts if done.waits(fact, modelled=False)]
        today = self.store.now().date()
        for each in beliefs.observations:
            word = observations.trend(observations.days_of(each, beliefs.by_id), today)
            yield Believed(each, word, observations.freshness(each, beliefs.by_id, waiting))

    def retire_observation(
        self, block: str, reason: str, *, by_person: bool = False
    ) -> tuple[Observation, Result]:
        """Say that an observation does not hold, and why; it stays in its file. NotFound, Usage."""
        from ua_memory import observations

        found = observations.find(self.store, block)
        with self.store.revision("retire", door=self.door) as draft:
            draft.by_person = by_person
            after = observations.retire(draft, found, reason)
            draft.subject = f"retire: ^{after.id} in {after.place.path}"
            draft.facts = [f"^{after.id}"]
        return after, draft.result

    def standing(self) -> Standing:
        """How many beliefs there are, and how much waits to be considered."""
        from ua_memory import observations
        from ua_memory.reflect import considered
        from ua_memory.reflect.posted import Box

        beliefs, done = observations.everyone(self.store), considered.read(self.store)
        waiting = sum(done.waits(fact, modelled=False) for fact in beliefs.facts)
        batch = Box(self.store.bank.pending).there(self.store.now())
        posted = (len(batch.marks), f"{batch.at:%Y-%m-%d %H:%M}") if batch else (0, "")
        return Standing(len(beliefs.live), waiting, sum(map(done.is_aside, beliefs.facts)), *posted)

    def _consolidating(
        self, model: Model | None, limit: int | None, *, retry: bool = False, accept: bool = False,
        tell: Tell | None = None, batch_api: bool = False,
    ) -> Consolidating:  # fmt: skip
        from ua_memory.redaction import redact
        from ua_memory.reflect.consolidate import Consolidating

        return Consolidating(
            self.store, door=self.door, model=model, limit=limit, retry=retry, accept=accept, tell=tell,
            batch_api=batch_api, clean=lambda text: redact(text, self.config.redact).text,
        )  # fmt: skip
