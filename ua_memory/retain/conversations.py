"""Conversations: flushed at once, made to wait for a flush, and what waits with the texts beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

from ua_memory.knowledge import core
from ua_memory.retain.capture import CaptureResult, ReadPosition, capture
from ua_memory.retain.flush import RETRY, Flush, Flusher, estimate
from ua_memory.retain.subagent import MemoryView
from ua_memory.text import noise

if TYPE_CHECKING:
    from ua_memory.index.items import IndexItem
    from ua_memory.knowledge.facts import Equal
    from ua_memory.llm.access import ModelAccess, ModelOrEndpoint
    from ua_memory.llm.ledger import Estimate
    from ua_memory.llm.model import Model
    from ua_memory.recall.search import SearchResult
    from ua_memory.retain.flush import Done, FlushedSession, Tell
    from ua_memory.retain.queue import QueuedText, QueueEntry
    from ua_memory.retain.retain import Retainer, RetainResult
    from ua_memory.retain.retain import Tell as RetainTell
    from ua_memory.store.store import Store
    from ua_memory.transcripts.turns import Session, Turn

# -- conversations -----------------------------------------------------------------------------------------
# A conversation, as a transcript or as turns: flushed, previewed, or made to wait.


OFF = "flush is switched off (UA_MEMORY_ENABLED, or `enabled` in ua-memory.toml): nothing was read"


class Conversations:
    """Flushes conversations into one bank; `door` names who does. `lookup` finds facts by their exact text,
    and `search` what a sub-agent asks of memory."""

    def __init__(
        self, store: Store, door: str, models: ModelAccess, lookup: Callable[[], Equal],
        search: Callable[..., SearchResult],
    ) -> None:  # fmt: skip
        self._store, self._door, self._models = store, door, models
        self._lookup, self._search = lookup, search

    def flush(
        self, transcript: IO[bytes] | None = None, *, model: ModelOrEndpoint = None, force: bool = False,
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
        if not self._store.config.enabled:
            return Flush(notes=(OFF,))
        with self._models.open(model) as asked:
            flusher = self.flusher(asked, tell)
            seen = Flush()
            if transcript is not None:
                seen, _ = flusher.take(transcript, client=client, session=session, force=force)
                if not seen.looked:
                    count = sum(len(each.turns) for each in flusher.queue.all())
                    wait = f"{count} turn{' waits' if count == 1 else 's wait'} for a flush: {RETRY}"
                    return replace(seen, notes=(*seen.notes, *([wait] if count else [])))
            every = force and transcript is None
            return replace(seen, done=tuple(flusher.drain(seen.session, done, every=every)))

    def enqueue(
        self, transcript: IO[bytes] | None, *, force: bool = False, client: str | None = None,
        session: str | None = None, model: ModelOrEndpoint = None,
    ) -> Flush:  # fmt: skip
        """Let a transcript's new turns wait, durably, if it is due; flush nothing. `model` is who is to read
        them later."""
        if not self._store.config.enabled:
            return Flush(notes=(OFF,))
        if transcript is None:
            return Flush()
        flusher = self.flusher(wants=bool(model))
        return flusher.take(transcript, client=client, session=session, force=force)[0]

    def capture(
        self, session: Session, transcript: IO[bytes] | None, *, said: str = "", asked: str = "",
        spot: Sequence[Any] = (), close: bool = False, model: bool = False,
    ) -> CaptureResult:  # fmt: skip
        """Let the new turns of a session that goes on wait; see `retain.capture`. `spot` is where the last
        hearing ended, as the values of its `ReadPosition`; `model` tells whether one is to read them."""
        flusher = self.flusher(wants=model)
        return capture(
            flusher, session, transcript, said=said, asked=asked, spot=ReadPosition(*spot), close=close
        )

    def preview(
        self, transcript: IO[bytes] | None = None, *, model: ModelOrEndpoint = None, force: bool = False,
        client: str | None = None, session: str | None = None,
    ) -> tuple[Flush, Estimate | None]:  # fmt: skip
        """What a flush without a model would keep and, where there is a model, what it would cost. Nothing
        is written, and nothing sent."""
        if not self._store.config.enabled:
            return Flush(notes=(OFF,)), None
        flusher = self.flusher()
        seen, turns = Flush(), tuple(turn for each in flusher.queue.all() for turn in each.turns)
        if transcript is not None:
            seen, turns = flusher.take(transcript, client=client, session=session, force=force, keep=False)
        cost = estimate(turns, model, self._store.config.context_window) if model and turns else None
        return replace(seen, preview=flusher.preview(turns), redacted=dict(flusher.redacted)), cost

    def flush_turns(
        self,
        session: Session,
        turns: Sequence[Turn],
        *,
        size: int | None = None,
        model: ModelOrEndpoint = None,
    ) -> FlushedSession | None:
        """Flush turns that a program has in its hands. They wait first, as those of a transcript do. None
        where nothing is new, or flushes are switched off."""
        if not self._store.config.enabled:
            return None
        with self._models.open(model) as asked:
            flusher = self.flusher(asked, None)
            waiting = flusher.put(session, turns, size)
            return flusher.one(waiting.key, self._store.config.lock_seconds) if waiting else None

    def flusher(
        self, model: Model | None = None, tell: Tell | None = None, *, wants: bool | None = None
    ) -> Flusher:
        """What flushes. `tell` hears how far it is; `wants` tells whether a model is to read what is made to
        wait, else whether there is one."""
        view = MemoryView(
            self.search_lines, lambda: core.blocks(self._store), self._store.redacted,
            lambda values: core.check(self._store, values),
        )  # fmt: skip
        return Flusher(self._store, view, self._lookup, door=self._door, model=model, tell=tell, wants=wants)

    def search_lines(self, query: str) -> Sequence[str]:
        """What memory holds on a query, one line for each hit, as a sub-agent may read it."""
        hits = self._search(query, limit=8).hits
        rows = ((f"{hit.item.day or hit.item.path}{_origin(hit.item)}", hit.snippet.split()) for hit in hits)
        return [noise.harmless(f"{head}: {' '.join(words)}") for head, words in rows]


def _origin(item: IndexItem) -> str:
    """A warning where neither a person nor the agent has said it."""
    return f" (untrusted, {item.origin})" if item.untrusted else ""


# -- queue -------------------------------------------------------------------------------------------------
# What waits for its model: conversations for their flush, and texts to be retained.


class WaitQueue:
    """Everything of one bank that waits for a model, each under a key."""

    def __init__(
        self, store: Store, models: ModelAccess, flusher: Callable[..., Flusher],
        retainer: Callable[..., Retainer],
    ) -> None:  # fmt: skip
        self._store, self._models = store, models
        self._flusher, self._retainer = flusher, retainer

    def list(self) -> Sequence[QueueEntry]:
        """All that waits: conversations, then texts."""
        return [*self.conversations(), *self.texts()]

    def conversations(self) -> Sequence[QueueEntry]:
        """The sessions whose turns wait for their flush, those that wait longest first."""
        return self._flusher().queue.all()

    def texts(self) -> Sequence[QueuedText]:
        """The texts that wait to be retained, those that wait longest first."""
        return self._retainer().items.waiting()

    def is_text(self, key: str) -> bool:
        """Whether a key is that of a text, and not of a conversation."""
        return self._retainer().items.has(key)

    def retry_conversations(
        self, keys: Sequence[str] = (), *, model: ModelOrEndpoint = None, tell: Tell | None = None,
        done: Done | None = None,
    ) -> Sequence[FlushedSession]:  # fmt: skip
        """Flush what waits under these keys, or all of it, set aside or not; where flushes are switched off,
        nothing. NotFound; else as `flush`."""
        if not self._store.config.enabled:
            return []
        with self._models.open(model) as asked:
            flusher = self._flusher(asked, tell)
            for key in keys or flusher.queue.keys():
                flusher.queue.revive(key, self._store.now())
            if not keys:
                return flusher.drain(done=done, every=True)
            flushed = []
            for key in keys:
                flusher.queue.get(key)
                one = flusher.one(key, self._store.config.lock_seconds)
                flushed += [one] if one else []
                if one and done:
                    done(one)
            return flushed

    def retry_texts(
        self, keys: Sequence[str] = (), *, model: ModelOrEndpoint = None, tell: RetainTell | None = None
    ) -> Sequence[RetainResult]:
        """Retain what waits under these keys, or all of it, set aside or not. NotFound; else as `retain`."""
        with self._models.open(model) as asked:
            retainer = self._retainer(asked, tell)
            for key in keys or retainer.items.keys():
                retainer.items.revive(key, self._store.now())
            if not keys:
                return retainer.drain()
            found = (retainer.one(key, self._store.config.lock_seconds) for key in keys)
            return [one for one in found if one is not None]

    def attempt(self, key: str, *, model: ModelOrEndpoint = None) -> FlushedSession | RetainResult | None:
        """Flush or retain what waits under a key, unasked; None if it is set aside. Busy; else as `flush` and
        `retain`."""
        with self._models.open(model) as asked:
            if self.is_text(key):
                return self._retainer(asked).one(key, 0, unasked=True)
            return self._flusher(asked).one(key, 0, unasked=True)

    def drop(self, key: str) -> QueueEntry:
        """Throw away what waits under a key, and return it. NotFound, Busy."""
        items = self._retainer().items
        if not items.has(key):
            return self._flusher().queue.drop(key)
        gone = items.read(key)
        items.drop(key)
        return gone
