"""What work by a model would cost, before anything is sent: tokens times the dated table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .model import Endpoint, Model, Usage, is_on_this_network
from .prices import PRICES_AS_OF, price

THEIRS = 1.3
"""Claude's tokens to one of tiktoken's, about."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """`tokens` that would be read, in `requests`, and the price; None where the table does not know the
    model, 0 where nobody sends a bill. `as_of` is the month of the table."""

    model: str
    tokens: int
    requests: int
    usd: float | None
    as_of: str = PRICES_AS_OF


def priced(
    model: Endpoint | Model, tokens: int, requests: Iterable[Usage], *, share: float = 1.0
) -> Estimate:
    """The estimate for these requests, of which `tokens` would be read for the first time, at this `share` of
    their price."""
    known = price(model.name)
    each = list(requests)
    usd = share * sum(known.of(usage) for usage in each) if known else None
    free = isinstance(model, Endpoint) and is_on_this_network(model.url)
    return Estimate(model.name, tokens, len(each), 0.0 if free else usd)
