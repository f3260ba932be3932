"""Dollars as people read them: cents, and below a cent as many digits as it takes to be seen."""

from __future__ import annotations

import math


def dollars(amount: float) -> str:
    """`$12.50`, `$1,400.00`, `$0.0004`; `$0.00` is nothing at all."""
    if not amount or abs(amount) >= 0.01:
        return f"${amount:,.2f}"
    places = 1 - math.floor(math.log10(abs(amount)))
    return f"${amount:.{places}f}".rstrip("0")
