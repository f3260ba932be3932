"""The part of `Memory` that recalls: what a search finds, as a block for a prompt, within its budget.

The command line, MCP and Python programs recall by it alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ua_memory.modelled import Modelled

if TYPE_CHECKING:
    from ua_memory.index.sync import Progress
    from ua_memory.recall.search import Answer, Filters


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
        from ua_memory.glance import hits_block, preset

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
