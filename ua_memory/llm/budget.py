"""What may be spent: limits of tokens and money by run and by day, checked before each request.

A request is let through only if its worst case fits into every limit: the estimated prompt, none of it
cached, and an answer of full length. What it may cost is written into the ledger before it is sent, so
that neither a kill nor a second process can make the day's sum too small.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ua_memory.errors import BudgetSpent
from ua_memory.money import dollars

from .ledger import Entry, Ledger
from .model import Usage
from .prices import DEAREST, price


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds, 0 for nothing at all. Tokens are all that go in, cached or not, and come out."""

    run_tokens: int = 5_000_000
    run_usd: float = 3.0
    day_tokens: int = 50_000_000
    day_usd: float = 15.0


class Meter:
    """Counts one run, say one flush, against its limits and, through the ledger, against the day's.

    `now` gives times in the bank's timezone: its midnight is where a day begins.
    """

    def __init__(
        self, ledger: Ledger, limits: Limits, now: Callable[[], datetime], *, session: str = ""
    ) -> None:
        self.run = uuid.uuid4().hex[:12]
        self.usage, self.counted = Usage(), 0.0
        self._ledger, self._limits, self._now, self._session = ledger, limits, now, session

    def reserve(self, purpose: str, model: str, worst: Usage, *, free: bool = False) -> Entry:
        """Write the worst case of a request down, or raise BudgetSpent if it does not fit.

        `free` says that nobody sends a bill: a model that the table does not know then counts as nothing,
        else as the dearest one. Raises Malformed or CannotWrite where the ledger does not work.
        """
        return self.reserve_all(purpose, model, [worst], free=free)

    def reserve_all(
        self, purpose: str, model: str, each: Sequence[Usage], *, share: float = 1.0, free: bool = False
    ) -> Entry:
        """The same for several requests in one line, which cost this `share` of their price."""
        known, worst = price(model), sum(each, Usage())
        sums = share * sum((known or DEAREST).of(one) for one in each)
        counted = sums if known or not free else 0.0
        at = self._now()
        entry = Entry(
            at, uuid.uuid4().hex, "asked", self.run, purpose, model, worst,
            usd=counted if known else None, counted=counted, session=self._session,
        )  # fmt: skip
        with self._ledger.locked():
            today = self._ledger.entries(at.replace(hour=0, minute=0, second=0, microsecond=0))
            tokens, usd = sum(each.usage.total for each in today), sum(each.counted for each in today)
            limits = self._limits
            self._check("run", "tokens", self.usage.total, worst.total, limits.run_tokens)
            self._check("run", "usd", self.counted, counted, limits.run_usd)
            self._check("day", "tokens", tokens, worst.total, limits.day_tokens)
            self._check("day", "usd", usd, counted, limits.day_usd)
            self._ledger.append(entry)
        return entry

    def settle(self, entry: Entry, model: str, usage: Usage, *, failed: bool, request: str = "") -> Entry:
        """Write down what the request really used; `model` is the one that answered."""
        return self.settle_all(entry, [usage], model=model, failed=failed, request=request)

    def settle_all(
        self, entry: Entry, each: Sequence[Usage], *, share: float = 1.0, model: str = "", failed: bool,
        request: str = "",
    ) -> Entry:  # fmt: skip
        """The same for what `reserve_all` wrote down, be it in another process."""
        known, usage = price(model) or price(entry.model), sum(each, Usage())
        free = entry.usd is None and entry.counted == 0.0
        sums = share * sum((known or DEAREST).of(one) for one in each)
        usd, counted = (sums if known else None), (0.0 if free and not known else sums)
        self.usage, self.counted = self.usage + usage, self.counted + counted
        done = replace(
            entry, at=self._now(), state="failed" if failed else "answered", model=model or entry.model,
            usage=usage, usd=usd, counted=counted, request=request,
        )  # fmt: skip
        with self._ledger.locked():
            self._ledger.append(done)
        return done

    def _check(self, span: str, unit: str, spent: float, next_: float, limit: float) -> None:
        if spent + next_ <= limit:
            return

        def told(amount: float) -> str:
            return dollars(amount) if unit == "usd" else f"{int(amount):,} tokens"

        whose = "today" if span == "day" else "in this run"
        raise BudgetSpent(
            f"the next request could use {told(next_)}, and {told(spent)} of {told(limit)} are used {whose}",
            mend=f"raise limits.{span}_{unit}" + (", or go on tomorrow" if span == "day" else ""),
        )
