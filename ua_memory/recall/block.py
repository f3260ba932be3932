"""The part of `Memory` that recalls, and what all parts that may ask a model have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ua_memory.config import Config
from ua_memory.store.store import Store
from ua_memory.text import noise

if TYPE_CHECKING:
    from ua_memory.index.filters import Filters
    from ua_memory.index.sync import Progress
    from ua_memory.knowledge.facts import Equal
    from ua_memory.llm.ledger import Spent
    from ua_memory.llm.model import Endpoint, Model
    from ua_memory.recall.search import Answer
    from ua_memory.records import CoreBlock


# -- modelled ----------------------------------------------------------------------------------------------
# What the parts of `Memory` that may ask a model stand on: the bank, its search, and the model itself.
#
# `Memory` is put together of parts that live beside what they do (`retain.bank`, `reflect`); each is a base
# of it, derives from this, and imports what it needs when it is used.


if TYPE_CHECKING:
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
        return [noise.harmless(f"{head}: {' '.join(words)}") for head, words in rows]

    def _known(self) -> Equal:
        """The files of facts by their exact text, as the index knows them, and those it could not read."""
        raise NotImplementedError

    def _equal(self, text: str) -> Iterable[str]:
        return self._known()(text)

    # -- the model ---------------------------------------------------------------------------------------

    @staticmethod
    def endpoint(api_key: str = "", base_url: str = "", model: str = "") -> Endpoint | None:
        """Where a model is, as the owner's environment says it; None where neither key nor URL is given."""
        from ua_memory.llm.model import Endpoint

        given = api_key.strip() or base_url.strip()
        return Endpoint(api_key.strip(), base_url.strip(), model.strip()) if given else None

    def spent(self, since: datetime | None = None) -> Spent:
        """What models have used in this bank since then, by purpose, day and model."""
        from ua_memory.llm.ledger import Ledger

        return Ledger(self.store.bank.local).spent(since)

    @staticmethod
    def prices_as_of() -> str:
        """The month in which the price list was read."""
        from ua_memory.llm.model import PRICES_AS_OF

        return PRICES_AS_OF

    @contextmanager
    def _asking(self, model: Asked, usd: float | None = None) -> Iterator[Model | None]:
        """A model to ask: an endpoint is opened for one run, metered by this bank's limits and ledger, and by
        `usd` for this run where that is less."""
        from ua_memory.llm.client import Claude
        from ua_memory.llm.ledger import Ledger, Limits, Meter
        from ua_memory.llm.model import Endpoint

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


# -- recalled ----------------------------------------------------------------------------------------------
# The part of `Memory` that recalls: what a search finds, as a block for a prompt, within its budget.
#
# The command line, MCP and Python programs recall by it alike.


@dataclass(frozen=True, slots=True)
class Recalled:
    """A block for a prompt, empty where nothing was found or fits; `left` are the lines that had no room in
    `most` tokens or, where that is 0, in the characters a hook may print. `answer` is the search."""

    block: str
    left: Sequence[str]
    most: int
    answer: Answer


class Recalls(Modelled):
    """The part of `Memory` that makes blocks for prompts."""

    def search_many(
        self, queries: Sequence[str], *, limit: int | None = None, min_score: float | None = None,
        filters: Any = None, progress: Progress | None = None, depth: int = 0,
    ) -> list[Answer]:  # fmt: skip
        """Hits for many queries; `Memory` has it."""
        raise NotImplementedError

    def recall(
        self, query: str, *, budget: str = "", max_tokens: int = 0, limit: int | None = None,
        min_score: float | None = None, filters: Filters | None = None, progress: Progress | None = None,
    ) -> Recalled:  # fmt: skip
        """What memory holds on a query, marked as data, with the date and place of every line.

        `budget` is low, mid or high, else the setting recall.budget; `max_tokens` counts marks and all, else
        recall.max_tokens. With neither it has as many lines as a search has hits, and at most 9,500
        characters. `filters` are those of `Memory.filters`. Usage for no such budget.
        """
        from ua_memory.recall.readonly import hits_block, preset

        budget, max_tokens = (
            budget or self.config.recall_budget,
            max_tokens or self.config.recall_max_tokens,
        )
        most, depth, lines = 0, 0, None
        if budget or max_tokens:
            chosen = preset(budget, max_tokens)
            most, depth, lines = chosen.tokens, chosen.depth, min(chosen.lines, 1000)
        found = self.search_many(
            [query], limit=limit or lines, min_score=min_score, filters=filters, progress=progress,
            depth=depth,
        )[0]  # fmt: skip
        return Recalled(*hits_block(found, most), most, found)
