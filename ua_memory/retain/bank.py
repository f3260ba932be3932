"""The part of `Memory` for conversations, texts, found transcripts and watched files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ua_memory.errors import NotFound, UaMemoryError, Usage
from ua_memory.knowledge import core
from ua_memory.recall.block import Modelled
from ua_memory.text.redaction import redact

if TYPE_CHECKING:
    from ua_memory.llm.ledger import Estimate
    from ua_memory.llm.model import Model
    from ua_memory.recall.block import Asked
    from ua_memory.records import Origin
    from ua_memory.retain.capture import Captured
    from ua_memory.retain.extractor import Mode
    from ua_memory.retain.flush import Done, Flush, Flushed, Flusher, Tell
    from ua_memory.retain.queue import TextItem, Waiting, WaitingItem
    from ua_memory.retain.retain import Priced, Retained, Retainer
    from ua_memory.retain.retain import Tell as RetainingTell
    from ua_memory.retain.survey import Look, Survey, Surveyed, Watched
    from ua_memory.transcripts.reader import Transcript
    from ua_memory.transcripts.turns import Session, Turn


# -- flushes -----------------------------------------------------------------------------------------------
# What `Memory` does with conversations: flush them, keep them waiting, and account for what a model cost.
#
# A part of `Memory`. The parts are imported when they are used: most commands flush nothing.


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
    ) -> Captured:  # fmt: skip
        """Let the new turns of a session that goes on wait; see `retain.capture`. `spot` is where the last
        hearing ended, as the values of its `Spot`; `model` tells whether one is to read them."""
        from ua_memory.retain.capture import Spot, hear

        flusher = self._flusher(None, None, wants=model)
        return hear(flusher, session, transcript, said=said, asked=asked, spot=Spot(*spot), close=close)

    def preview(
        self, transcript: IO[bytes] | None = None, *, model: Asked = None, force: bool = False,
        client: str | None = None, session: str | None = None,
    ) -> tuple[Flush, Estimate | None]:  # fmt: skip
        """What a flush without a model would keep and, where there is a model, what it would cost. Nothing
        is written, and nothing sent."""
        from dataclasses import replace

        from ua_memory.retain.flush import Flush, estimate

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
        from ua_memory.retain.flush import Flusher
        from ua_memory.retain.subagent import MemoryView

        view = MemoryView(
            self._lines, self.core_blocks, lambda text: redact(text, self.config.redact).text,
            lambda values: core.check(self.store, values),
        )  # fmt: skip
        return Flusher(self.store, view, self._known, door=self.door, model=model, tell=tell, wants=wants)


# -- retains -----------------------------------------------------------------------------------------------
# What `Memory` does with texts: retain them, keep them waiting, and say beforehand what they would cost.
#
# A part of `Memory`. The parts are imported when they are used.


class Retains(Modelled):
    """The part of `Memory` that takes in texts."""

    def item(
        self, text: str, *, document_id: str = "", source: str = "", append: bool = False,
        mode: Mode = "concise", mission: str = "", instructions: str = "", context: str = "",
        timestamp: datetime | None = None, tags: Sequence[str] = (), origin: Origin = "agent",
        client: str | None = None, session: str | None = None, request: str | None = None,
        redo: bool = False, said_in: Sequence[str] = (),
    ) -> TextItem:  # fmt: skip
        """A text as `retain_many` takes it. `timestamp` (aware) is when it was said or written, else now;
        `request` an id of this call, so that a repetition changes nothing; `said_in` tags of all that is said
        there. Usage for a mode that there is not."""
        import secrets

        from ua_memory.retain.extractor import MODES
        from ua_memory.retain.queue import TextItem

        if mode not in MODES:
            raise Usage(f"{mode!r} is no mode", mend=f"use {', '.join(MODES)}")
        if mode == "custom" and not instructions.strip():
            raise Usage("the mode custom needs instructions")
        if append and not document_id:
            raise Usage("append needs a document_id to append to")
        return TextItem(
            text, timestamp or self.store.now(), document_id, source, append, mode, mission, instructions,
            context, tuple(tags), client or self.door, session or "", origin,
            request or f"retain-{secrets.token_hex(8)}", redo, tuple(said_in),
        )  # fmt: skip

    def file(self, path: Path, **more: Any) -> TextItem:
        """A file outside the bank as a text: markdown, plain text and, with the extra `ingest`, HTML, PDF and
        DOCX. Its id is its path unless `document_id` is given, its time the day in its name or when it was
        saved last. `more` as for `item`. Usage, NotFound, Malformed, TooLarge."""
        from ua_memory.retain import documents

        given = documents.read(self.store, path)
        more = {**more, "document_id": more.get("document_id") or given.path, "source": given.path}
        return self.item(given.text, **{**more, "timestamp": more.get("timestamp") or given.at})

    def retain(
        self, text: str, *, document_id: str = "", source: str = "", append: bool = False,
        mode: Mode = "concise", mission: str = "", instructions: str = "", context: str = "",
        timestamp: datetime | None = None, tags: Sequence[str] = (), origin: Origin = "agent",
        client: str | None = None, session: str | None = None, request: str | None = None,
        redo: bool = False, model: Asked = None, tell: RetainingTell | None = None,
    ) -> Retained:  # fmt: skip
        """Draw the facts out of a text, now; one commit.

        With a `document_id` they go into that document's file: chunks of it that are there already cost
        nothing and keep their facts, those that are gone take theirs with them; `append` adds. Without one
        they go into the day's log, and the same text again changes nothing. Without a `model`, and in the
        mode `chunks`, the author's own words are kept.

        Raises what the model (ModelUnavailable, KeyRejected, RequestRejected, ModelRefused, ModelMisbehaved,
        BudgetSpent) or the store raises: the text waits then, and `queue retry` goes on.
        """
        item = self.item(
            text, document_id=document_id, source=source, append=append, mode=mode, mission=mission,
            instructions=instructions, context=context, timestamp=timestamp, tags=tags, origin=origin,
            client=client, session=session, request=request, redo=redo,
        )  # fmt: skip
        return self.retain_many([item], model=model, tell=tell)[0]

    def retain_many(
        self, items: Iterable[TextItem], *, model: Asked = None, tell: RetainingTell | None = None
    ) -> list[Retained]:
        """Retain several texts, each as one commit, in their order; all of them wait first."""
        with self._asking(model) as asked:
            retainer = self._retainer(asked, tell)
            keys = [retainer.offer(item, modelled=asked is not None) for item in items]
            found = (retainer.one(key, self.config.lock_seconds) for key in dict.fromkeys(keys))
            return [one for one in found if one is not None]

    def offer(self, items: Iterable[TextItem], *, model: Asked = None) -> list[str]:
        """Have texts wait, durably, and retain none of them. Their keys; `model` is who is to read them."""
        retainer = self._retainer(None, None)
        return [retainer.offer(item, modelled=model is not None) for item in items]

    def priced(self, items: Iterable[TextItem], *, model: Asked = None) -> list[Priced]:
        """What retaining these texts would keep without a model, and what it would cost with one. Nothing
        is written, and nothing sent."""
        from ua_memory.retain.retain import priced

        retainer = self._retainer(None, None)
        clean = (replace(item, text=retainer.items.clean(item.text)) for item in items)
        return [priced(self.store, retainer.brief(item), item, model) for item in clean]

    # -- what waits --------------------------------------------------------------------------------------

    def waiting_texts(self) -> list[WaitingItem]:
        """The texts that wait to be retained, those that wait longest first."""
        return self._retainer(None, None).items.waiting()

    def retain_waiting(
        self, keys: Sequence[str] = (), *, model: Asked = None, tell: RetainingTell | None = None
    ) -> list[Retained]:
        """Retain what waits under these keys, or all of it, set aside or not. NotFound; else as `retain`."""
        with self._asking(model) as asked:
            retainer = self._retainer(asked, tell)
            for key in keys or retainer.items.keys():
                retainer.items.revive(key, self.store.now())
            if not keys:
                return retainer.drain()
            found = (retainer.one(key, self.config.lock_seconds) for key in keys)
            return [one for one in found if one is not None]

    def attempt_text(self, key: str, *, model: Asked = None) -> Retained | None:
        """Retain what waits under a key, unasked; None if it is set aside. Busy; else as `retain`."""
        with self._asking(model) as asked:
            return self._retainer(asked, None).one(key, 0, unasked=True)

    def waits_as_text(self, key: str) -> bool:
        """Whether a key is that of a text, and not of a conversation."""
        return self._retainer(None, None).items.has(key)

    def drop_text(self, key: str) -> WaitingItem:
        """Throw away the text that waits under a key, and return it. NotFound, Busy."""
        items = self._retainer(None, None).items
        gone = items.read(key)
        items.drop(key)
        return gone

    def _retainer(self, model: Model | None, tell: RetainingTell | None) -> Retainer:
        from ua_memory.retain.retain import Retainer

        return Retainer(self.store, self._known, door=self.door, model=model, tell=tell)


# -- surveys -----------------------------------------------------------------------------------------------
# What `Memory` does with transcripts that lie about: tell what is in them, and flush what is new.


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
        from ua_memory.llm.ledger import Estimate
        from ua_memory.retain.flush import estimate
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


# -- watches -----------------------------------------------------------------------------------------------
# What `Memory` does with files that lie outside the bank and change: retain them again, when they rest.
#
# A part of `Memory`. A daemon calls `watch_run` by itself; without one a person or cron does.


CLAIM = "watched"


@dataclass(frozen=True, slots=True)
class Caught:
    """What catching up with watched paths did. `young` were saved too lately, `failed` could not be read
    (file and why), `gone` vanished: their facts stay until they are let go, as those of `let_go` were now.
    `missing` are watched paths that are not there at all."""

    done: tuple[Retained, ...] = ()
    young: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    gone: tuple[str, ...] = ()
    let_go: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class Watches(Retains):
    """The part of `Memory` that watches."""

    def watch_add(self, path: Path, *, model: Asked = None) -> tuple[Watched, Look]:
        """Watch a file or folder outside the bank, and say what there is to read. `model` is who is to read
        it. Usage, TooLarge."""
        from ua_memory.retain import survey

        self.store.make_state()
        one = survey.add(self.store, path, modelled=model is not None)
        return one, survey.look(self.store, one, 0)

    def watched(self) -> list[tuple[Watched, Look]]:
        """What is watched, and what has changed there since. TooLarge."""
        from ua_memory.retain import survey

        quiet = self.config.watch_seconds
        return [(one, survey.look(self.store, one, quiet)) for one in survey.load(self.store)]

    def watch_remove(self, path: str) -> Watched:
        """Watch a path no longer; its documents stay. NotFound."""
        from ua_memory.retain import survey

        known = survey.load(self.store)
        gone = next((one for one in known if one.path in (path, str(Path(path).resolve()))), None)
        if gone is None:
            raise NotFound("this path is not watched", where=path, mend="ua-memory watch list")
        survey.save(self.store, [one for one in known if one is not gone])
        return gone

    def watch_due(self, *, modelled: bool) -> bool:
        """Whether anything is to be taken in now. Without a model only what nobody meant for one."""
        if not (self.store.bank.local / "watched.json").exists():
            return False
        ours = [(one, look) for one, look in self.watched() if modelled or not one.modelled]
        fresh = (name for one, look in ours for name in look.gone if not one.files[name].gone)
        return any(look.ready for _, look in ours) or any(True for _ in fresh)

    def watch_run(
        self, *, model: Asked = None, accept: bool = False, now: bool = False, unasked: bool = False,
        tell: RetainingTell | None = None,
    ) -> Caught:  # fmt: skip
        """Take in what has changed at watched paths and rests, or, with `now`, whether it rests or not.

        Of a file that vanished the facts stay, and it is told: a disk that is not mounted and another branch
        look the same. `accept` lets them go. `unasked` leaves alone what is meant for a model where there is
        none. What the model fails at waits in the queue. Busy; else as `retain`.
        """
        from ua_memory.retain import survey

        self.store.make_state()
        retainer = self._retainer(None, None)
        with retainer.items.claimed(CLAIM, 0):
            known = survey.load(self.store)
            mine = [one for one in known if not (unasked and model is None and one.modelled)]
            caught = Caught()
            keys: list[str] = []
            for one in mine:
                look = survey.look(self.store, one, 0 if now else self.config.watch_seconds)
                after, items, caught = self._taken(one, look, caught, accept)
                keys += [retainer.offer(item, modelled=model is not None) for item in items]
                known[known.index(one)] = after
            survey.save(self.store, known)
            gone = tuple(self._let_go(name) for name in caught.let_go)
            done = self.retain_waiting(keys, model=model, tell=tell) if keys else []
        return replace(caught, done=(*done, *gone))

    def _taken(
        self, one: Watched, look: Look, caught: Caught, accept: bool
    ) -> tuple[Watched, list[TextItem], Caught]:
        """A watched path as it stands after a look, and the texts to be retained."""
        from ua_memory.retain.survey import Stood

        files, items, failed = dict(one.files), [], []
        for name, stamp in look.ready.items():
            try:
                item = self.file(Path(name), origin="import", client="watch")
                items += [item] if item.text.strip() else []
                files[name] = Stood(stamp)
            except UaMemoryError as error:  # tried again when it is saved again
                files[name] = Stood(stamp, error.what)
                failed.append((name, error.what))
        for name in look.gone:
            if accept:
                del files[name]
            else:
                files[name] = replace(files[name], gone=True)
        return replace(one, files=files), items, Caught(
            (), (*caught.young, *look.young), (*caught.failed, *failed),
            caught.gone if accept else (*caught.gone, *look.gone),
            (*caught.let_go, *look.gone) if accept else caught.let_go,
            (*caught.missing, one.path) if look.missing else caught.missing,
        )  # fmt: skip

    def _let_go(self, document_id: str) -> Retained:
        return self._retainer(None, None).let_go(document_id)

    def priced_watch(self, *, model: Asked = None) -> list[Priced]:
        """What `watch_run` would keep and cost; see `priced`."""
        ready = [name for _, look in self.watched() for name in (*look.ready, *look.young)]
        return self.priced((self.file(Path(name), origin="import") for name in ready), model=model)
