"""What the parts of `Memory` that may ask a model stand on: the bank, its search, and the model itself.

`Memory` is put together of parts that live beside what they do (`retain.flushes`, `reflect`); each is a base
of it, derives from this, and imports what it needs when it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ua_memory import fence
from ua_memory.config import Config
from ua_memory.store import Store

if TYPE_CHECKING:
    from ua_memory.facts import Equal
    from ua_memory.llm import Endpoint, Model, Spent
    from ua_memory.records import CoreBlock, Fact

    Asked = Endpoint | Model | None


class Modelled:
    """A part of `Memory`: what it may use of the rest."""

    store: Store
    config: Config
    door: str

    def core_blocks(self) -> list[CoreBlock]:
        """The blocks of MEMORY.md."""
        raise NotImplementedError

    def search(
        self, query: str, *, limit: int | None = None, min_score: float | None = None, filters: Any = None
    ) -> Any:
        """Hits for one query."""
        raise NotImplementedError

    def _lines(self, query: str) -> Sequence[str]:
        hits = self.search(query, limit=8).hits
        rows = ((f"{hit.item.day or hit.item.path}{_whose(hit.item)}", hit.snippet.split()) for hit in hits)
        return [fence.harmless(f"{head}: {' '.join(words)}") for head, words in rows]

    def _known(self) -> Equal:
        """Facts by their exact text, as the index knows them now."""
        raise NotImplementedError

    def _equal(self, text: str) -> Sequence[Fact]:
        return self._known()(text)

    # -- the model ---------------------------------------------------------------------------------------

    @staticmethod
    def endpoint(api_key: str = "", base_url: str = "", model: str = "") -> Endpoint | None:
        """Where a model is, as the owner's environment says it; None where neither key nor URL is given."""
        from ua_memory.llm import Endpoint

        given = api_key.strip() or base_url.strip()
        return Endpoint(api_key.strip(), base_url.strip(), model.strip()) if given else None

    def spent(self, since: datetime | None = None) -> Spent:
        """What models have used in this bank since then, by purpose, day and model."""
        from ua_memory.llm import Ledger

        return Ledger(self.store.bank.local).spent(since)

    @staticmethod
    def prices_as_of() -> str:
        """The month in which the price list was read."""
        from ua_memory.llm import PRICES_AS_OF

        return PRICES_AS_OF

    @contextmanager
    def _asking(self, model: Asked, usd: float | None = None) -> Iterator[Model | None]:
        """A model to ask: an endpoint is opened for one run, metered by this bank's limits and ledger, and by
        `usd` for this run where that is less."""
        from ua_memory.llm import Claude, Endpoint, Ledger, Limits, Meter

        if not isinstance(model, Endpoint):
            yield model
            return
        own = self.config
        limits = Limits(
            own.run_tokens, own.run_usd if usd is None else min(usd, own.run_usd), own.day_tokens, own.day_usd
        )
        self.store.make_state()
        meter = Meter(Ledger(self.store.bank.local), limits, self.store.now)
        with Claude(model, meter, patterns=own.redact) as claude:
            yield claude


def _whose(item: Any) -> str:
    """That nobody of the house has said it, where that is so."""
    return f" (untrusted, {item.origin})" if item.untrusted else ""
