"""What `Memory` does with conversations: flush them, keep them waiting, and account for what a model cost.

A part of `Memory`. The parts are imported when they are
used: most commands flush nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from ua_memory.modelled import Modelled

if TYPE_CHECKING:
    from ua_memory.llm import Model
    from ua_memory.modelled import Asked
    from ua_memory.retain.estimate import Estimate
    from ua_memory.retain.flush import Done, Flush, Flusher, Tell, Waiting
    from ua_memory.retain.hearing import Heard
    from ua_memory.retain.keeping import Flushed
    from ua_memory.transcripts.turns import Session, Turn

OFF = "flush is switched off (UA_MEMORY_ENABLED, or `enabled` in ua-memory.toml): nothing was read"


class Flushes(Modelled):
    """The part of `Memory` that reads conversations."""

    def flush(
        self, transcript: IO[bytes] | None = None, *, model: Asked = None, force: bool = False,
        client: str | None = None, session: str | None = None, tell: Tell | None = None,
        done: Done | None = None,
    ) -> Flush:  # fmt: skip
        """Save what matters of a conversation, and of all that waits; one commit for each session.

        `transcript` is a stream of any client's; below the threshold nothing happens unless `force`d.
        Without one, what waits is flushed. Without a `model` the speakers' own sentences are kept. `tell`
        hears how far it is, `done` of each session as soon as it is committed.

        Raises what the transcript (Malformed), the model (ModelUnavailable, KeyRejected, RequestRejected,
        ModelRefused, ModelMisbehaved, BudgetSpent) or the store raises: the turns wait then.
        """
        from dataclasses import replace

        from ua_memory.retain.flush import RETRY, Flush

        if not self.config.enabled:
            return Flush(notes=(OFF,))
        with self._asking(model) as asked:
            flusher = self._flusher(asked, tell)
            seen = Flush()
            if transcript is not None:
                seen, _ = flusher.take(transcript, client=client, session=session, force=force)
                if not seen.looked:
                    count = sum(len(each.turns) for each in flusher.queue.all())
                    wait = f"{count} turn{' waits' if count == 1 else 's wait'} for a flush: {RETRY}"
                    return replace(seen, notes=(*seen.notes, *([wait] if count else [])))
            every = force and transcript is None
            return replace(seen, done=tuple(flusher.drain(seen.session, done, every=every)))

    def hand_over(
        self, transcript: IO[bytes] | None, *, force: bool = False, client: str | None = None,
        session: str | None = None, model: Asked = None,
    ) -> Flush:  # fmt: skip
        """Let a transcript's new turns wait, durably, if it is due; flush nothing. `model` is who is to read
        them later."""
        from ua_memory.retain.flush import Flush

        if not self.config.enabled:
            return Flush(notes=(OFF,))
        if transcript is None:
            return Flush()
        flusher = self._flusher(None, None, wants=bool(model))
        return flusher.take(transcript, client=client, session=session, force=force)[0]

    def hear(
        self, session: Session, transcript: IO[bytes] | None, *, said: str = "", asked: str = "",
        spot: Sequence[Any] = (), close: bool = False, model: bool = False,
    ) -> Heard:  # fmt: skip
        """Let the new turns of a session that goes on wait; see `retain.hearing`. `spot` is where the last
        hearing ended, as the values of its `Spot`; `model` tells whether one is to read them."""
        from ua_memory.retain.hearing import Spot, hear

        flusher = self._flusher(None, None, wants=model)
        return hear(flusher, session, transcript, said=said, asked=asked, spot=Spot(*spot), close=close)

    def preview(
        self, transcript: IO[bytes] | None = None, *, model: Asked = None, force: bool = False,
        client: str | None = None, session: str | None = None,
    ) -> tuple[Flush, Estimate | None]:  # fmt: skip
        """What a flush without a model would keep and, where there is a model, what it would cost. Nothing
        is written, and nothing sent."""
        from dataclasses import replace

        from ua_memory.retain.estimate import estimate
        from ua_memory.retain.flush import Flush

        if not self.config.enabled:
            return Flush(notes=(OFF,)), None
        flusher = self._flusher(None, None)
        seen, turns = Flush(), tuple(turn for each in flusher.queue.all() for turn in each.turns)
        if transcript is not None:
            seen, turns = flusher.take(transcript, client=client, session=session, force=force, keep=False)
        cost = estimate(turns, model, self.config.context_window) if model and turns else None
        return replace(seen, preview=flusher.preview(turns), redacted=dict(flusher.redacted)), cost

    def flush_turns(
        self, session: Session, turns: Sequence[Turn], *, size: int | None = None, model: Asked = None
    ) -> Flushed | None:
        """Flush turns that a program has in its hands. They wait first, as those of a transcript do. None
        where nothing is new, or flushes are switched off."""
        if not self.config.enabled:
            return None
        with self._asking(model) as asked:
            flusher = self._flusher(asked, None)
            waiting = flusher.put(session, turns, size)
            return flusher.one(waiting.key, self.config.lock_seconds) if waiting else None

    # -- what waits --------------------------------------------------------------------------------------

    def waiting(self) -> list[Waiting]:
        """The sessions whose turns wait for their flush, those that wait longest first."""
        return self._flusher(None, None).queue.all()

    def retry(
        self, keys: Sequence[str] = (), *, model: Asked = None, tell: Tell | None = None,
        done: Done | None = None,
    ) -> list[Flushed]:  # fmt: skip
        """Flush what waits under these keys, or all of it, set aside or not; where flushes are switched off,
        nothing. NotFound; else as `flush`."""
        if not self.config.enabled:
            return []
        with self._asking(model) as asked:
            flusher = self._flusher(asked, tell)
            for key in keys or flusher.queue.keys():
                flusher.queue.revive(key, self.store.now())
            if not keys:
                return flusher.drain(done=done, every=True)
            flushed = []
            for key in keys:
                flusher.queue.get(key)
                one = flusher.one(key, self.config.lock_seconds)
                flushed += [one] if one else []
                if one and done:
                    done(one)
            return flushed

    def attempt(self, key: str, *, model: Asked = None) -> Flushed | None:
        """Flush what waits under a key, unasked; None if it is set aside. Busy; else as `flush`."""
        with self._asking(model) as asked:
            return self._flusher(asked, None).one(key, 0, unasked=True)

    def drop(self, key: str) -> Waiting:
        """Throw away what waits under a key, and return it. NotFound, Busy."""
        return self._flusher(None, None).queue.drop(key)

    def _flusher(self, model: Model | None, tell: Tell | None, wants: bool | None = None) -> Flusher:
        from ua_memory import core
        from ua_memory.redaction import redact
        from ua_memory.retain.flush import Flusher
        from ua_memory.retain.view import View

        view = View(
            self._lines, self.core_blocks, lambda text: redact(text, self.config.redact).text,
            lambda values: core.check(self.store, values),
        )  # fmt: skip
        return Flusher(self.store, view, self._known, door=self.door, model=model, tell=tell, wants=wants)
