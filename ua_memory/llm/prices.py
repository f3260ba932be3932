"""What models cost: one dated table, in US dollars per million tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .model import Usage

PRICES_AS_OF = "2026-10"
"""The month in which Anthropic's price list was read: platform.claude.com/docs/en/about-claude/pricing."""

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens. A prompt over `long_from` tokens costs `long_factor` times as much;
    writing to the five-minute cache costs 1.25 times the input."""

    input: float
    output: float
    cache_read: float
    long_from: int | None = None
    long_factor: float = 1.0

    def of(self, usage: Usage) -> float:
        """The dollars that one request cost. Not for sums of requests: a long prompt has its own price."""
        dollars = (usage.input + 1.25 * usage.cache_write) * self.input
        dollars += usage.cache_read * self.cache_read + usage.output * self.output
        is_long = self.long_from is not None and usage.prompt > self.long_from
        return dollars * (self.long_factor if is_long else 1.0) / MILLION


_OPUS = Price(5, 25, 0.5)
_SONNET = Price(3, 15, 0.3)
_TABLE: dict[str, Price] = {
    "claude-fable-5-1": Price(10, 50, 0.25),
    "claude-mythos-5-1": Price(10, 50, 0.25),
    "claude-fable-5": Price(10, 50, 1),
    "claude-mythos-5": Price(10, 50, 1),
    "claude-opus-5-5": Price(4, 20, 0.2),
    "claude-opus-5": _OPUS,
    "claude-opus-4-8": _OPUS,
    "claude-opus-4-7": _OPUS,
    "claude-opus-4-6": _OPUS,
    "claude-opus-4-5": _OPUS,
    "claude-sonnet-5-5": Price(2, 10, 0.1),
    "claude-sonnet-5": Price(2, 10, 0.2),
    "claude-sonnet-4-6": _SONNET,
    "claude-sonnet-4-5": _SONNET,
    "claude-haiku-5-5": Price(0.1, 0.5, 0.01, long_from=100_000, long_factor=5),
    "claude-haiku-4-5": Price(1, 5, 0.1),
}
DEAREST = max(_TABLE.values(), key=lambda price: (price.output, price.cache_read))
"""What a limit reckons with where a model is not in the table and somebody may send a bill for it."""


def price(model: str) -> Price | None:
    """The price of a model by its id, dated (`-20251001`) or not; None if the table does not know it."""
    return _TABLE.get(re.sub(r"-\d{8}$", "", model))
