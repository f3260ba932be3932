"""What `Memory` does with texts: retain them, keep them waiting, and say beforehand what they would cost.

A part of `Memory`. The parts are imported when they are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.modelled import Modelled

if TYPE_CHECKING:
    from ua_memory.llm import Model
    from ua_memory.modelled import Asked
    from ua_memory.records import Origin
    from ua_memory.retain.asked import Mode
    from ua_memory.retain.items import Item, WaitingItem
    from ua_memory.retain.pricing import Priced
    from ua_memory.retain.retained import Retained
    from ua_memory.retain.retaining import Retainer, Tell


class Retains(Modelled):
    """The part of `Memory` that takes in texts."""

    def item(
        self, text: str, *, document_id: str = "", source: str = "", append: bool = False,
        mode: Mode = "concise", mission: str = "", instructions: str = "", context: str = "",
        timestamp: datetime | None = None, tags: Sequence[str] = (), origin: Origin = "agent",
        client: str | None = None, session: str | None = None, request: str | None = None,
        redo: bool = False, said_in: Sequence[str] = (),
    ) -> Item:  # fmt: skip
        """A text as `retain_many` takes it. `timestamp` (aware) is when it was said or written, else now;
        `request` an id of this call, so that a repetition changes nothing; `said_in` tags of all that is said
        there. Usage for a mode that there is not."""
        import secrets

        from ua_memory.errors import Usage
        from ua_memory.retain.asked import MODES
        from ua_memory.retain.items import Item

        if mode not in MODES:
            raise Usage(f"{mode!r} is no mode", mend=f"use {', '.join(MODES)}")
        if mode == "custom" and not instructions.strip():
            raise Usage("the mode custom needs instructions")
        if append and not document_id:
            raise Usage("append needs a document_id to append to")
        return Item(
            text, timestamp or self.store.now(), document_id, source, append, mode, mission, instructions,
            context, tuple(tags), client or self.door, session or "", origin,
            request or f"retain-{secrets.token_hex(8)}", redo, tuple(said_in),
        )  # fmt: skip

    def file(self, path: Path, **more: Any) -> Item:
        """A file outside the bank as a text: markdown, plain text and, with the extra `ingest`, HTML, PDF and
        DOCX. Its id is its path unless `document_id` is given, its time the day in its name or when it was
        saved last. `more` as for `item`. Usage, NotFound, Malformed, TooLarge."""
        from ua_memory.retain import files

        given = files.read(self.store, path)
        more = {**more, "document_id": more.get("document_id") or given.path, "source": given.path}
        return self.item(given.text, **{**more, "timestamp": more.get("timestamp") or given.at})

    def retain(
        self, text: str, *, document_id: str = "", source: str = "", append: bool = False,
        mode: Mode = "concise", mission: str = "", instructions: str = "", context: str = "",
        timestamp: datetime | None = None, tags: Sequence[str] = (), origin: Origin = "agent",
        client: str | None = None, session: str | None = None, request: str | None = None,
        redo: bool = False, model: Asked = None, tell: Tell | None = None,
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
        self, items: Iterable[Item], *, model: Asked = None, tell: Tell | None = None
    ) -> list[Retained]:
        """Retain several texts, each as one commit, in their order; all of them wait first."""
        with self._asking(model) as asked:
            retainer = self._retainer(asked, tell)
            keys = [retainer.offer(item, modelled=asked is not None) for item in items]
            found = (retainer.one(key, self.config.lock_seconds) for key in dict.fromkeys(keys))
            return [one for one in found if one is not None]

    def offer(self, items: Iterable[Item], *, model: Asked = None) -> list[str]:
        """Have texts wait, durably, and retain none of them. Their keys; `model` is who is to read them."""
        retainer = self._retainer(None, None)
        return [retainer.offer(item, modelled=model is not None) for item in items]

    def priced(self, items: Iterable[Item], *, model: Asked = None) -> list[Priced]:
        """What retaining these texts would keep without a model, and what it would cost with one. Nothing
        is written, and nothing sent."""
        from ua_memory.retain.pricing import priced

        retainer = self._retainer(None, None)
        clean = (replace(item, text=retainer.items.clean(item.text)) for item in items)
        return [priced(self.store, retainer.brief(item), item, model) for item in clean]

    # -- what waits --------------------------------------------------------------------------------------

    def waiting_texts(self) -> list[WaitingItem]:
        """The texts that wait to be retained, those that wait longest first."""
        return self._retainer(None, None).items.waiting()

    def retain_waiting(
        self, keys: Sequence[str] = (), *, model: Asked = None, tell: Tell | None = None
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

    def _retainer(self, model: Model | None, tell: Tell | None) -> Retainer:
        from ua_memory.retain.retaining import Retainer

        return Retainer(self.store, self._known, door=self.door, model=model, tell=tell)
