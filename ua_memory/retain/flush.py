"""The flush: a dying conversation goes in; facts, core edits and one commit come out.

Turns wait in the queue first, so that whatever goes wrong afterwards loses nothing. A model studies them
in stretches that fit its window, or, without one, the speakers' own sentences are kept. All of it is
written in one revision whose `Through` says how far the session has been read; then the turns are let go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import IO, TYPE_CHECKING
from zoneinfo import ZoneInfo

from ua_memory import redaction
from ua_memory.errors import Busy, Malformed, NotFound, UaMemoryError
from ua_memory.retain import through
from ua_memory.retain.intake import Due, Intake, take_in
from ua_memory.retain.queue import Queue, Waiting, key_of
from ua_memory.retain.sieve import sieved
from ua_memory.retain.tries import STOPPED, its_own
from ua_memory.store import Store
from ua_memory.transcripts.turns import Session, Turn
from ua_memory.wording import counted

if TYPE_CHECKING:
    from ua_memory.facts import Equal
    from ua_memory.llm import Model
    from ua_memory.retain.candidate import Candidate
    from ua_memory.retain.keeping import Flushed
    from ua_memory.retain.subagent import Harvest
    from ua_memory.retain.view import View

# What extracts, what asks a model and what writes are imported where they work: a hook only lets turns wait.

OVERLAP = 4
"""Turns that two stretches of a long transcript share, so that no statement loses its neighbours."""
PART_OF_WINDOW = 0.5
"""What of a model's window one stretch may fill: its tokens are smaller than ours, and it has to answer."""
LONGEST_ANSWER = 8_000
"""Tokens of one answer of the sub-agent: some forty statements. A model that says more says nothing."""
_PER_TURN = 12
RETRY = "ua-memory queue retry"

Tell = Callable[[int, int], None]
Done = Callable[["Flushed"], None]


@dataclass(frozen=True, slots=True)
class Flush:
    """What a call did. `due` is None where no transcript was given; `looked` tells whether it was due, or
    forced, and `turns` how many new ones it had. `done` is what was flushed, one for each session; `preview`
    is what a dry run would have kept; `silent` that nobody said anything in it."""

    due: Due | None = None
    session: Session | None = None
    turns: int = 0
    looked: bool = False
    done: tuple[Flushed, ...] = ()
    preview: tuple[Candidate, ...] | None = None
    redacted: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    silent: bool = False


class Flusher:
    """Flushes into one bank. `tell` is told how many turns of how many have been read."""

    def __init__(
        self, store: Store, view: View, known: Callable[[], Equal], *, door: str,
        model: Model | None = None, tell: Tell | None = None, wants: bool | None = None,
    ) -> None:  # fmt: skip
        self.store, self.view, self.known = store, view, known
        self.door, self.model, self.tell = door, model, tell
        self.wants = model is not None if wants is None else wants
        """Whether a model is to read what is made to wait."""
        self.redacted: Counter[str] = Counter()
        self.queue = Queue(store.bank.pending, self._clean)
        self.zone: tzinfo | None = ZoneInfo(store.config.timezone) if store.config.timezone else None

    def take(
        self, stream: IO[bytes], *, client: str | None = None, session: str | None = None,
        force: bool = False, keep: bool = True,
    ) -> tuple[Flush, tuple[Turn, ...]]:  # fmt: skip
        """Look at a transcript; if it is due, let its new turns wait, unless `keep` is false."""
        found = take_in(self.store, stream, client=client, session=session, force=force)
        found = replace(found, turns=tuple(self._unheard(found)))
        if keep and found.turns:
            self.put(found.session, found.turns, found.due.size)
        seen = Flush(
            found.due, found.session, len(found.turns), force or found.due.fires,
            redacted=dict(self.redacted), notes=found.notes, silent=found.silent,
        )  # fmt: skip
        return seen, found.turns

    def _unheard(self, found: Intake) -> Iterator[Turn]:
        """The turns without what a client has told of this session before its transcript had it."""
        try:
            ids = [turn.id for turn in self.queue.get(key_of(found.session)).turns]
        except NotFound:
            ids = []
        return through.unsaid(found.turns, ids, through.bases(ids) - {turn.id for turn in found.turns})

    def put(
        self, session: Session, turns: Iterable[Turn], size: int | None, *, more: bool = False
    ) -> Waiting | None:
        """Let those turns wait for their flush that the settings want kept, None if there are none; they are
        on the disk, without secrets, when this returns. With `more` they gather: no flush is due."""
        turns = list(sieved(turns, self.store.config))
        if not turns:
            return None
        self.store.make_state()
        now = self.store.now()
        return self.queue.put(session, turns, at=now, size=size, modelled=self.wants, more=more)

    def preview(self, turns: Sequence[Turn]) -> tuple[Candidate, ...]:
        """What an extractive flush of these turns would keep. Nothing is written or sent."""
        clean = (replace(t, text=self._clean(t.text)) for t in sieved(turns, self.store.config))
        return tuple(self._own_words(clean))

    def drain(
        self, first: Session | None = None, done: Done | None = None, *, every: bool = False
    ) -> list[Flushed]:
        """Flush what waits: of `first` before all others, each as one revision. Not what was set aside, and
        what gathers still only if it is `first`, or with `every`.

        `done` hears of each as soon as it is committed. Raises what the model or the store raises: the turns
        go on waiting then, and so do those of the sessions that would have come after.
        """
        mine = [key for each in self.queue.all() if (key := each.key) and first and each.session == first]
        flushed = []
        self.queue.sweep()
        now = self.store.now()
        rest = [e.key for e in self.queue.all() if not e.aside and (every or not e.gathers(now))]
        for key in dict.fromkeys((*mine, *rest)):
            try:
                one = self.one(key, self.store.config.lock_seconds if key in mine or not first else 0)
            except Busy:
                if key in mine or not first:
                    raise
                continue  # another process is at it
            if one is not None:
                flushed.append(one)
                if done:
                    done(one)
        return flushed

    def one(self, key: str, patience: float, *, unasked: bool = False) -> Flushed | None:
        """Flush what waits under a key; None if all of it was read before, by a run that was killed late.

        A try that nobody asked for is noted before it begins, so that one that its process does not survive
        is counted as well; it leaves alone (None) what is set aside.
        """
        with self.queue.claimed(key, patience):
            try:
                waiting = self.queue.begin(key, self.store.now()) if unasked else self.queue.get(key)
            except NotFound:
                return None
            if unasked and waiting.aside:
                return None
            if waiting.broken:
                mend = f"take what you miss, then: ua-memory queue drop {key}"
                raise Malformed(waiting.broken, where=str(self.queue.folder), mend=mend)
            unread = through.unread(waiting.turns, through.entries(self.store, waiting.session))
            fresh = [*self._as_wanted_now(unread)]
            try:
                flushed = self._flushed(replace(waiting, turns=tuple(fresh))) if fresh else None
            except SystemExit:
                self.queue.failed(key, STOPPED, self.store.now())
                raise
            self.queue.taken(key, {turn.id for turn in waiting.turns})
            return flushed

    def _as_wanted_now(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        """What the settings of today let pass of turns: those under which they were let wait may have been
        others, or broken."""
        own = self.store.config.redact
        yield from (
            replace(t, text=self._clean(t.text)) if own else t for t in sieved(turns, self.store.config)
        )

    def _flushed(self, waiting: Waiting) -> Flushed:
        from ua_memory.retain.keeping import Keeping

        try:
            harvest = self._harvest(waiting.turns, core=not waiting.session.group)
            by = self.model.name if self.model else ""
            return Keeping(self.store, waiting, self.zone, self.known()).write(harvest, by=by, door=self.door)
        except UaMemoryError as error:
            self._failed(waiting.key, error.what, error)
            turns = len(waiting.turns)
            what = error.what.removesuffix("; nothing of it was kept")
            what = f"{what}; nothing was kept, and {counted(turns, 'turn')} wait"
            mend = f"{error.mend}; then: {RETRY}" if error.mend else RETRY
            raise type(error)(what, where=error.where, mend=mend) from error
        except Exception as error:  # a bug: it must not be met with each flush to come
            self._failed(waiting.key, f"{type(error).__name__}: {error}", error)
            raise

    def _failed(self, key: str, why: str, error: Exception) -> None:
        modelled = self.model is not None
        self.queue.failed(key, why, self.store.now(), own=its_own(error), modelled=modelled)

    def _harvest(self, turns: Sequence[Turn], *, core: bool) -> Harvest:
        from ua_memory.retain.subagent import Harvest, study

        if self.model is None:
            return Harvest(kept=self._own_words(turns))
        whole, behind, window = Harvest(), 0, self.store.config.context_window
        answer = min(LONGEST_ANSWER, window // 4)
        for stretch in stretches(turns, int(window * PART_OF_WINDOW)):
            watch = self._watch(behind, len(turns))
            study(
                self.model, stretch, self.view, self.zone, into=whole, watch=watch, max_tokens=answer,
                core=core,
            )  # fmt: skip
            behind = min(behind + len(stretch) - OVERLAP, len(turns))
        # What a model only talked about was not read by anybody yet: its speakers' own words are kept.
        unread = {turn.id for turn in whole.unstudied}
        whole.kept += self._own_words([turn for turn in turns if turn.id in unread])
        return whole

    def _own_words(self, turns: Iterable[Turn]) -> list[Candidate]:
        from ua_memory.retain.extract import extract

        return extract(turns, zone=self.zone or self.store.now().tzinfo)

    def _watch(self, behind: int, total: int) -> Callable[[int], None]:
        return lambda reached: self.tell(min(max(behind, 0) + reached, total), total) if self.tell else None

    def _clean(self, text: str) -> str:
        found = redaction.redact(text, self.store.config.redact)
        self.redacted.update(found.taken)
        return found.text


def stretches(turns: Sequence[Turn], window: int) -> Iterator[Sequence[Turn]]:
    """The turns in runs of at most `window` tokens, each beginning with the last turns of the one before.

    A turn that is too long by itself comes in pieces, which have its id.
    """
    from ua_memory import tokens

    sized = [
        (piece, tokens.count(piece.text) + _PER_TURN) for turn in turns for piece in _pieces(turn, window)
    ]
    start, used = 0, 0
    for n, (_, size) in enumerate(sized):
        if used + size > window and n > start:
            yield [turn for turn, _ in sized[start:n]]
            back = n
            used = 0
            while back > max(start + 1, n - OVERLAP) and used + sized[back - 1][1] + size <= window // 2:
                back -= 1
                used += sized[back][1]
            start = back
        used += size
    if start < len(sized):
        yield [turn for turn, _ in sized[start:]]


def _pieces(turn: Turn, window: int) -> Iterator[Turn]:
    text, room = turn.text, max(window - _PER_TURN, 1)
    if len(text) <= room:  # no token is shorter than a character
        yield turn
        return
    from ua_memory import tokens

    while text:
        head = tokens.fit(text, room) or text[:1]
        yield replace(turn, text=head)
        text = text[len(head) :]


__all__ = ["Due", "Flush", "Flusher", "Intake", "Queue", "Waiting", "stretches"]
