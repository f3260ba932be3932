"""What `Memory` does with transcripts that lie about: tell what is in them, and flush what is new."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ua_memory.retain.flushes import Flushes

if TYPE_CHECKING:
    from ua_memory.modelled import Asked
    from ua_memory.retain.estimate import Estimate
    from ua_memory.retain.flush import Tell
    from ua_memory.retain.keeping import Flushed
    from ua_memory.retain.survey import Survey, Surveyed
    from ua_memory.transcripts import Transcript


class Surveys(Flushes):
    """The part of `Memory` that takes in whole sessions."""

    def survey(
        self, transcripts: Sequence[Transcript], *, since: datetime | None = None,
        going: Collection[tuple[str, str]] = (), tell: Tell | None = None,
    ) -> Survey:  # fmt: skip
        """What is in these transcripts, and how much of it was flushed. Nothing is written. `since` leaves
        out sessions last spoken in before it; `going` names client and session of those that go on."""
        from ua_memory.retain.survey import Surveyor

        queue = self._flusher(None, None).queue
        return Surveyor(self.store, queue).survey(transcripts, since=since, going=going, tell=tell)

    def bring_sessions(
        self, sessions: Iterable[Surveyed], *, model: Asked = None
    ) -> Iterator[tuple[Surveyed, Flushed]]:
        """Flush the new turns of these sessions and those that wait, one session after the other, each as a
        commit of its own.

        Raises as `flush`: the turns of that session wait then, and those behind it are as they were.
        """
        from ua_memory.retain.queue import key_of
        from ua_memory.retain.survey import turns_of

        with self._asking(model) as asked:
            flusher = self._flusher(asked, None)
            for one in sessions:
                if one.new:
                    flusher.put(one.session, turns_of(one), one.size)
                if flushed := flusher.one(key_of(one.session), self.config.lock_seconds):
                    yield one, flushed

    def preview_sessions(
        self, sessions: Iterable[Surveyed], *, model: Asked = None
    ) -> tuple[int, Estimate | None]:
        """How many facts would be kept of the new turns without a model and, where there is one, what it
        would cost. Nothing is written or sent."""
        from ua_memory.retain.estimate import Estimate, estimate
        from ua_memory.retain.survey import turns_of

        flusher, kept, costs = self._flusher(None, None), 0, list[Estimate]()
        for one in sessions:
            turns = turns_of(one)
            kept += len(flusher.preview(turns))
            if model and turns:
                costs.append(estimate(turns, model, self.config.context_window))
        return kept, _summed(costs)


def _summed(costs: Sequence[Estimate]) -> Estimate | None:
    from dataclasses import replace

    if not costs:
        return None
    known = [cost.usd for cost in costs if cost.usd is not None]
    read, asked = sum(cost.tokens for cost in costs), sum(cost.requests for cost in costs)
    return replace(
        costs[0], tokens=read, requests=asked, usd=sum(known) if len(known) == len(costs) else None
    )
