"""The usage ledger, the limits of tokens and money, and estimates before anything is sent."""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Any, Literal

from ua_memory.errors import BudgetSpent, CannotWrite, Malformed
from ua_memory.llm.model import PRICES_AS_OF, Endpoint, Model, TokenUsage, is_subscription, price, top_price
from ua_memory.paths import append_lines, make_private
from ua_memory.text.wording import dollars

# -- ledger ------------------------------------------------------------------------------------------------
# The usage ledger: one JSON line before each request, with its worst case, and one after it, with its cost.
#
# `local/usage.jsonl` is append-only, and rotated to `usage-YYYY-NNN.jsonl` by size and year. A request
# without its second line was killed and counts as its worst case. So the half line that a kill leaves may be
# skipped: the request was never sent, or its first line is there. Any other invalid line is an error, since
# limits must not rest on a ledger that cannot be read.


LEDGER_FILE = "usage.jsonl"
LARGEST_FILE = 400_000
"""Bytes from which the file is rotated."""
MOST_FILES = 100
"""Most rotated files: in all some 100,000 requests."""
_LINE_START = b'{"at":"'
_TEXT_KEYS = ("id", "state", "run", "purpose", "model")
_TOKEN_KEYS = ("in", "out", "cache_read", "cache_write")
"""The keys of a line: text, and the tokens in the order of `TokenUsage`."""
State = Literal["asked", "answered", "failed"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One request. While `state` is asked, `usage` and `counted` are its worst case.

    `usd` is the price, None if the table does not know it; `counted` is what counts against limits.
    """

    at: datetime
    id: str
    state: State
    run: str
    purpose: str
    model: str
    usage: TokenUsage
    usd: float | None
    counted: float
    request: str = ""

    def line(self) -> bytes:
        """The entry as a line of the file."""
        row = {
            "at": self.at.isoformat(timespec="milliseconds"),
            **{name: getattr(self, name) for name in _TEXT_KEYS},
            **dict(zip(_TOKEN_KEYS, astuple(self.usage), strict=True)),
            **{name: getattr(self, name) for name in ("usd", "counted", "request")},
        }
        return json.dumps(row, separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over requests. `usd` leaves out the `unpriced` ones, whose model the price table does not know,
    and those that count against a subscription; `open` ones were killed or are under way, and count as their
    worst case."""

    requests: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)
    usd: float = 0.0
    unpriced: int = 0
    failed: int = 0
    open: int = 0

    def add(self, entry: Entry) -> Totals:
        return Totals(
            self.requests + 1,
            self.usage + entry.usage,
            self.usd + (entry.usd or 0.0),
            self.unpriced + (entry.usd is None and not is_subscription(entry.model)),
            self.failed + (entry.state == "failed"),
            self.open + (entry.state == "asked"),
        )


@dataclass(frozen=True, slots=True)
class Spent:
    """Usage in a period: in total, by purpose, by day (ISO), by model, and by day and then purpose
    (`by_both`)."""

    total: Totals
    by_purpose: Mapping[str, Totals]
    by_day: Mapping[str, Totals]
    by_model: Mapping[str, Totals]
    by_both: Mapping[str, Mapping[str, Totals]] = field(default_factory=dict)


class Ledger:
    """The ledger in a bank's `local` folder. Safe for several processes at once."""

    def __init__(self, folder: Path, *, rotate_bytes: int = LARGEST_FILE, keep: int = MOST_FILES) -> None:
        self.file = folder / LEDGER_FILE
        self._rotate_bytes, self._keep = rotate_bytes, keep

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the ledger during the block, between reading and appending."""
        try:
            make_private(self.file.parent)
            lock = os.open(self.file.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise self._cannot_write(error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def append(self, entry: Entry) -> None:
        """Append a line durably, inside `locked`. CannotWrite."""
        try:
            self._rotate(entry.at.year)
            fd = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "a+b") as file:
                append_lines(file, entry.line())
        except OSError as error:
            raise self._cannot_write(error) from error

    def entries(self, since: datetime | None = None) -> list[Entry]:
        """Each request once, in its last state, oldest first. Malformed."""
        found = {entry.id: entry for file in self._files(since) for entry in self._read(file, since)}
        return [entry for entry in found.values() if since is None or entry.at >= since]

    def spent(self, since: datetime | None = None) -> Spent:
        """The totals of all requests since then. Malformed."""
        entries = self.entries(since)
        days: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            days[entry.at.date().isoformat()].append(entry)
        return Spent(
            _total(entries),
            _totals_by_name((entry.purpose, entry) for entry in entries),
            {day: _total(days[day]) for day in sorted(days)},
            _totals_by_name((entry.model, entry) for entry in entries),
            {day: _totals_by_name((entry.purpose, entry) for entry in each) for day, each in days.items()},
        )

    def _files(self, since: datetime | None) -> list[Path]:
        """The files that may have requests since then, oldest first."""
        files = [self.file]
        for file in reversed(self._rotated()):
            if since is not None and (ends := self._last_time(file)) and ends < since:
                break
            files.insert(0, file)
        return files

    def _last_time(self, file: Path) -> datetime | None:
        """The time of the last line of a rotated file, None if unknown."""
        try:
            with file.open("rb") as opened:
                opened.seek(max(opened.seek(0, os.SEEK_END) - 4096, 0))
                last = opened.read().splitlines()[-1]
            return datetime.fromisoformat(json.loads(last)["at"])
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            return None

    def _rotated(self) -> list[Path]:
        return sorted(self.file.parent.glob(f"{self.file.stem}-*.jsonl"))

    def _read(self, file: Path, since: datetime | None) -> Iterator[Entry]:
        # Times may be in any timezone: lines that are two days older need not be parsed.
        day = (since - timedelta(days=2)).date().isoformat().encode() if since else b""
        try:
            lines = file.read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unreadable(file, str(error)) from error
        for number, line in enumerate(lines, 1):
            # After a loss of power a file may end in NULs: the length was written and the bytes were not.
            text = line.strip(b"\0\r ")
            if not text or _LINE_START.startswith(text):
                continue
            if not text.startswith(_LINE_START):
                raise self._unreadable(file, f"line {number} is not a ledger entry")
            if text[len(_LINE_START) : len(_LINE_START) + 10] < day:
                continue
            try:
                row = json.loads(text)
            except (ValueError, RecursionError):
                continue  # half a line: see above
            try:
                yield parse_entry(row)
            except (KeyError, TypeError, ValueError) as error:
                raise self._unreadable(file, f"line {number} is not a ledger entry") from error

    def _rotate(self, year: int) -> None:
        try:
            with self.file.open("rb") as file:
                begins, size = file.read(len(_LINE_START) + 4), os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return
        written = begins[len(_LINE_START) :].decode("ascii", "replace")
        if not size or (size < self._rotate_bytes and written == str(year)):
            return
        written = written if written.isdigit() else str(year)
        numbers = [file.stem.rpartition("-")[2] for file in self._rotated() if f"-{written}-" in file.name]
        number = max((int(each) for each in numbers if each.isdigit()), default=0) + 1
        self.file.replace(self.file.with_name(f"{self.file.stem}-{written}-{number:03}.jsonl"))
        for old in self._rotated()[: -self._keep]:
            old.unlink(missing_ok=True)

    def _unreadable(self, file: Path, why: str) -> Malformed:
        what = f"the usage ledger cannot be read, so no limit can be kept and no model is called: {why}"
        hint = f"look at {file}; if you move it away, earlier spending no longer counts"
        return Malformed(what, where=str(file), hint=hint)

    def _cannot_write(self, error: OSError) -> CannotWrite:
        what = f"the usage ledger cannot be written, so no model is called: {error.strerror}"
        hint = f"free disk space, or make it writable: {self.file.parent}"
        return CannotWrite(what, where=str(self.file), hint=hint)


def parse_entry(row: Mapping[str, Any]) -> Entry:
    """Parse a line's JSON. KeyError, TypeError, ValueError."""
    if row["state"] not in ("asked", "answered", "failed"):
        raise ValueError(row["state"])
    texts: dict[str, Any] = {name: str(row[name]) for name in _TEXT_KEYS}
    return Entry(
        at=datetime.fromisoformat(row["at"]),
        **texts,
        usage=TokenUsage(*(int(row[name]) for name in _TOKEN_KEYS)),
        usd=None if row["usd"] is None else float(row["usd"]),
        counted=float(row["counted"]),
        request=str(row.get("request", "")),
    )


def _total(entries: Iterable[Entry]) -> Totals:
    return reduce(Totals.add, entries, Totals())


def _totals_by_name(pairs: Iterable[tuple[str, Entry]]) -> dict[str, Totals]:
    groups: dict[str, Totals] = defaultdict(Totals)
    for name, entry in pairs:
        groups[name] = groups[name].add(entry)
    return dict(groups)


# -- budget ------------------------------------------------------------------------------------------------
# Limits of tokens and money by run and by day, checked before each request.
#
# A request is sent only if its worst case fits every limit: the estimated prompt, none of it cached, and an
# answer of full length. It is written to the ledger first, so that no kill or second process makes the day's
# sum too small.


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper bounds; 0 allows nothing. Tokens are all input, cached or not, and output."""

    run_tokens: int = 5_000_000
    run_usd: float = 3.0
    day_tokens: int = 50_000_000
    day_usd: float = 15.0


class Meter:
    """Counts the usage of one run, such as a flush, against its limits and, through the ledger, the day's.

    `now` gives times in the bank's timezone, whose midnight begins a day.
    """

    def __init__(self, ledger: Ledger, limits: Limits, now: Callable[[], datetime]) -> None:
        self.run = uuid.uuid4().hex[:12]
        self.usage, self.counted = TokenUsage(), 0.0
        self._ledger, self._limits, self._now = ledger, limits, now

    def reserve(
        self, purpose: str, model: str, *each: TokenUsage, share: float = 1.0, free: bool = False
    ) -> Entry:
        """Record the worst case of one or several requests as one entry. BudgetSpent if it does not fit. They
        cost this `share` of their price.

        With `free` a model without a known price counts as nothing, else as the most expensive one. Malformed
        or CannotWrite if the ledger cannot be used.
        """
        known, worst = price(model), sum(each, TokenUsage())
        sums = share * sum((known or top_price()).of(one) for one in each)
        counted = sums if known or not free else 0.0
        at = self._now()
        entry = Entry(
            at, uuid.uuid4().hex, "asked", self.run, purpose, model, worst,
            usd=counted if known else None, counted=counted,
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

    def record_usage(
        self, entry: Entry, model: str, *each: TokenUsage, share: float = 1.0, failed: bool, request: str = ""
    ) -> None:
        """Record the actual usage for an entry that `reserve` made, possibly in another process; `model` is
        the one that answered, '' for the one that was asked."""
        known, usage = price(model) or price(entry.model), sum(each, TokenUsage())
        free = entry.usd is None and entry.counted == 0.0
        sums = share * sum((known or top_price()).of(one) for one in each)
        usd, counted = (sums if known else None), (0.0 if free and not known else sums)
        self.usage, self.counted = self.usage + usage, self.counted + counted
        done = replace(
            entry, at=self._now(), state="failed" if failed else "answered", model=model or entry.model,
            usage=usage, usd=usd, counted=counted, request=request,
        )  # fmt: skip
        with self._ledger.locked():
            self._ledger.append(done)

    def _check(self, span: str, unit: str, spent: float, more: float, limit: float) -> None:
        if spent + more <= limit:
            return

        def money(amount: float) -> str:
            return dollars(amount) if unit == "usd" else f"{int(amount):,} tokens"

        whose = "today" if span == "day" else "in this run"
        raise BudgetSpent(
            f"the next request could use {money(more)}, and {money(spent)} of {money(limit)} are used "
            f"{whose}",
            hint=f"raise limits.{span}_{unit}" + (", or go on tomorrow" if span == "day" else ""),
        )


# -- estimate ----------------------------------------------------------------------------------------------


MODEL_TOKENS = 1.3
"""Claude's tokens for one token of tiktoken's, about."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The `tokens` to be read in `requests`, and the price: None if the table does not know the model, 0 if
    it is free. `as_of` is the month of the table."""

    model: str
    tokens: int
    requests: int
    usd: float | None
    as_of: str = PRICES_AS_OF

    @property
    def subscription(self) -> bool:
        """Whether it counts against the owner's subscription."""
        return is_subscription(self.model)


def estimate_of(
    model: Endpoint | Model, tokens: int, requests: Iterable[TokenUsage], *, share: float = 1.0
) -> Estimate:
    """The estimate for these requests, of which `tokens` are not cached, at this `share` of their price."""
    known = price(model.name)
    each = list(requests)
    usd = share * sum(known.of(usage) for usage in each) if known else None
    free = isinstance(model, Endpoint) and model.free
    return Estimate(model.name, tokens, len(each), 0.0 if free else usd)


def cached_requests(size: int, answers: int, says: int) -> list[TokenUsage]:
    """The requests of a conversation with so many answers of `says` tokens: the first writes the prompt of
    `size` tokens to the cache, the others read it from there."""
    again = TokenUsage(cache_read=size, cache_write=says, output=says)
    return [TokenUsage(cache_write=size, output=says), *[again] * (answers - 1)]


def sum_estimates(costs: Sequence[Estimate]) -> Estimate | None:
    """The sum of several estimates for one model; None if there are none."""
    if not costs:
        return None
    known = [cost.usd for cost in costs if cost.usd is not None]
    read, made = sum(cost.tokens for cost in costs), sum(cost.requests for cost in costs)
    return replace(costs[0], tokens=read, requests=made, usd=sum(known) if len(known) == len(costs) else None)
