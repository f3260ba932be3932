"""What a flush by a model would cost, before anything is sent: tokens times the dated table."""

from __future__ import annotations

from collections.abc import Sequence

from ua_memory import tokens
from ua_memory.llm import THEIRS, Endpoint, Estimate, Model, Usage, priced
from ua_memory.retain.flush import PART_OF_WINDOW, stretches
from ua_memory.retain.subagent import DIRECTIVE, shown
from ua_memory.transcripts.turns import Turn

__all__ = ["Estimate", "estimate"]

_OVERHEAD = 1_000
"""The directive's companions: the descriptions of tools, and what the API adds for them."""
_REQUESTS = 6
"""Answers that a flush usually takes; all but the first read the transcript from the cache."""
_SAYS = 500
"""Tokens of an answer with a few calls, thought included."""


def estimate(turns: Sequence[Turn], model: Endpoint | Model, window: int) -> Estimate:
    """What studying these turns would take. Upwards rather than down."""
    total, requests = 0, list[Usage]()
    for stretch in stretches(turns, int(window * PART_OF_WINDOW)):
        size = int((tokens.count(shown(stretch, None)) + tokens.count(DIRECTIVE) + _OVERHEAD) * THEIRS)
        total += size
        requests.append(Usage(cache_write=size, output=_SAYS))
        requests += [Usage(cache_read=size, cache_write=_SAYS, output=_SAYS)] * (_REQUESTS - 1)
    return priced(model, total, requests)
