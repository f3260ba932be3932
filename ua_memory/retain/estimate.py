"""What a flush by a model would cost, before anything is sent: tokens times the dated table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ua_memory import tokens
from ua_memory.llm import PRICES_AS_OF, Endpoint, Model, Usage, is_on_this_network, price
from ua_memory.retain.flush import PART_OF_WINDOW, stretches
from ua_memory.retain.subagent import DIRECTIVE, shown
from ua_memory.transcripts.turns import Turn

THEIRS = 1.3
"""Claude's tokens to one of tiktoken's, about."""
_OVERHEAD = 1_000
"""The directive's companions: the descriptions of tools, and what the API adds for them."""
_REQUESTS = 6
"""Answers that a flush usually takes; all but the first read the transcript from the cache."""
_SAYS = 500
"""Tokens of an answer with a few calls, thought included."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """`tokens` that would be read, in `requests`, and the price; None where the table does not know the
    model, 0 where nobody sends a bill. `as_of` is the month of the table."""

    model: str
    tokens: int
    requests: int
    usd: float | None
    as_of: str = PRICES_AS_OF


def estimate(turns: Sequence[Turn], model: Endpoint | Model, window: int) -> Estimate:
    """What studying these turns would take. Upwards rather than down."""
    total, requests, usage = 0, 0, 0.0
    known = price(model.name)
    for stretch in stretches(turns, int(window * PART_OF_WINDOW)):
        size = int((tokens.count(shown(stretch, None)) + tokens.count(DIRECTIVE) + _OVERHEAD) * THEIRS)
        total += size
        requests += _REQUESTS
        first = Usage(cache_write=size, output=_SAYS)
        later = Usage(cache_read=size, cache_write=_SAYS, output=_SAYS)
        usage += known.of(first) + (_REQUESTS - 1) * known.of(later) if known else 0.0
    free = isinstance(model, Endpoint) and is_on_this_network(model.url)
    return Estimate(model.name, total, requests, 0.0 if free else usage if known else None)
