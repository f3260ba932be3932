"""Time words → days. "Last spring" asked on a known day is a known stretch; what is no date stays a word.

`read` reads a query: one stretch that it is about, and whether it asks for the newest or the oldest. `spans`
reads what somebody said, more strictly: the single dates that a statement names; its verbs tell the year.
docs/time.md is the table of what is read how. English is read here, other languages through dateparser,
loaded when it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ua_memory.dates.stated import Span, days, in_years, spans

if TYPE_CHECKING:
    from ua_memory.dates.foreign import DatesUnavailable
    from ua_memory.dates.order import Order
    from ua_memory.dates.reading import Reading, read

__all__ = ["DatesUnavailable", "Order", "Reading", "Span", "days", "in_years", "read", "spans"]


def __getattr__(name: str) -> Any:
    """The reader of queries, loaded by who reads one: 30 ms that a flush need not pay."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ua_memory.dates import foreign, order, reading

    home = {"Order": order, "DatesUnavailable": foreign}
    return getattr(home.get(name, reading), name)
