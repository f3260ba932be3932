"""Opening a model for one run: metered by the bank's limits, and entered in its ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ua_memory.llm.model import Endpoint, Model
from ua_memory.store.store import Store

ModelOrEndpoint = Endpoint | Model | None
"""A model, or where one is; None for none: then nothing leaves the machine."""


class ModelAccess:
    """The models that a bank's parts may ask."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @contextmanager
    def open(self, model: ModelOrEndpoint, usd: float | None = None) -> Iterator[Model | None]:
        """A model to ask: an endpoint is opened for one run, metered by this bank's limits and ledger, and by
        `usd` for this run where that is less."""
        from ua_memory.llm.client import Claude
        from ua_memory.llm.ledger import Ledger, Limits, Meter

        if not isinstance(model, Endpoint):
            yield model
            return
        own = self._store.config
        limits = Limits(
            own.run_tokens, own.run_usd if usd is None else min(usd, own.run_usd), own.day_tokens, own.day_usd
        )
        self._store.make_state()
        meter = Meter(Ledger(self._store.bank.local), limits, self._store.now)
        with Claude(model, meter, patterns=own.redact) as claude:
            yield claude
