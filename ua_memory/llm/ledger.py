"""The usage ledger, the limits of tokens and money, and estimates before anything is sent."""

from __future__ import annotations

import json
import os
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from ua_memory.errors import BudgetSpent, CannotWrite, Malformed
from ua_memory.llm.model import PRICES_AS_OF, Endpoint, Model, TokenUsage, dearest, is_subscription, price
from ua_memory.paths import make_private
from ua_memory.text.wording import dollars

# -- ledger ------------------------------------------------------------------------------------------------
# The usage ledger: one JSON line before each request with its worst case, one after it with what it cost.
#
# `local/usage.jsonl` is only ever appended to, and set aside under `usage-YYYY-NNN.jsonl` when it grows or
# the year turns. A request without its second line was killed on the way and counts as its worst case. So a
# half line, which a kill leaves, may be skipped: either the request was never sent, or its first line
# stands. Lines that are not ours at all make reading fail: a limit must not rest on what cannot be read.


FILE = "usage.jsonl"
LARGEST = 400_000
"""Bytes of the file that is written to."""
MOST = 100
"""Older ones that are kept: in all some 100,000 requests."""
_OURS = b'{"at":"'
_WORDS = ("id", "state", "run", "purpose", "model")
_COUNTS = ("in", "out", "cache_read", "cache_write")
"""The keys of a line that say what a request was, and of its tokens, in the order of `TokenUsage`."""
State = Literal["asked", "answered", "failed"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One request. While `state` is asked, `usage` and `counted` are its worst case.

    `usd` is the price by the table, None where it knows none; `counted` is what limits reckon with.
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
            **{name: getattr(self, name) for name in _WORDS},
            **dict(zip(_COUNTS, astuple(self.usage), strict=True)),
            **{name: getattr(self, name) for name in ("usd", "counted", "request")},
        }
        return json.dumps(row, separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Totals:
    """Requests added up. `usd` leaves out the `unpriced` ones, whose model the table does not know,
    and those that count against a subscription;
    `open` were killed or are under way, and their worst case is in `usage` and `usd`."""

    requests: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)
    usd: float = 0.0
    unpriced: int = 0
    failed: int = 0
    open: int = 0

    def plus(self, entry: Entry) -> Totals:
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
    """What was used in a stretch of time: altogether, and by purpose, day (ISO) and model; `by_both` by day
    and then purpose."""

    total: Totals
    by_purpose: Mapping[str, Totals]
    by_day: Mapping[str, Totals]
    by_model: Mapping[str, Totals]
    by_both: Mapping[str, Mapping[str, Totals]] = field(default_factory=dict)


class Ledger:
    """The ledger in a bank's `local` folder. Safe for several processes at once."""

    def __init__(self, folder: Path, *, rotate_bytes: int = LARGEST, keep: int = MOST) -> None:
        self.file = folder / FILE
        self._rotate_bytes, self._keep = rotate_bytes, keep

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds other processes off between reading and appending."""
        try:
            make_private(self.file.parent)
            lock = os.open(self.file.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise self._cannot_write(error) from error
        try:
            _wait_for(lock)
            yield
        finally:
            os.close(lock)

    def append(self, entry: Entry) -> None:
        """Write one line, durably. Call it inside `locked`. Raises CannotWrite."""
        try:
            self._rotate(entry.at.year)
            fd = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "a+b") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(size - 1, 0))
                torn = size > 0 and file.read(1) != b"\n"
                file.write((b"\n" if torn else b"") + entry.line())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._cannot_write(error) from error

    def entries(self, since: datetime | None = None) -> list[Entry]:
        """Each request once, in the state it was last seen in, oldest first. Raises Malformed."""
        found: dict[str, Entry] = {}
        for file in self._files(since):
            for entry in self._read(file, since):
                found[entry.id] = entry
        return [entry for entry in found.values() if since is None or entry.at >= since]

    def spent(self, since: datetime | None = None) -> Spent:
        """The totals of every request since then. Raises Malformed for a ledger that is none."""
        entries = self.entries(since)
        days: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            days[entry.at.date().isoformat()].append(entry)
        return Spent(
            _total(entries),
            _grouped((entry.purpose, entry) for entry in entries),
            {day: _total(days[day]) for day in sorted(days)},
            _grouped((entry.model, entry) for entry in entries),
            {day: _grouped((entry.purpose, entry) for entry in each) for day, each in days.items()},
        )

    def _files(self, since: datetime | None) -> list[Path]:
        """The files that may hold requests since then, oldest first."""
        files = [self.file]
        for file in reversed(self._set_aside()):
            if since is not None and (ends := self._end(file)) and ends < since:
                break
            files.insert(0, file)
        return files

    def _end(self, file: Path) -> datetime | None:
        """When the last line of a file that was set aside was written; None if that cannot be told."""
        try:
            with file.open("rb") as opened:
                opened.seek(max(opened.seek(0, os.SEEK_END) - 4096, 0))
                last = opened.read().splitlines()[-1]
            return datetime.fromisoformat(json.loads(last)["at"])
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            return None

    def _set_aside(self) -> list[Path]:
        return sorted(self.file.parent.glob(f"{self.file.stem}-*.jsonl"))

    def _read(self, file: Path, since: datetime | None) -> Iterator[Entry]:
        # Written in any zone: two days before, a line is surely too old, and need not be parsed.
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
            if not text or _OURS.startswith(text):
                continue
            if not text.startswith(_OURS):
                raise self._unreadable(file, f"line {number} is not a ledger entry")
            if text[len(_OURS) : len(_OURS) + 10] < day:
                continue
            try:
                row = json.loads(text)
            except (ValueError, RecursionError):
                continue  # half a line: see above
            try:
                yield entry_of(row)
            except (KeyError, TypeError, ValueError) as error:
                raise self._unreadable(file, f"line {number} is not a ledger entry") from error

    def _rotate(self, year: int) -> None:
        try:
            with self.file.open("rb") as file:
                begins, size = file.read(len(_OURS) + 4), os.fstat(file.fileno()).st_size
        except FileNotFoundError:
            return
        written = begins[len(_OURS) :].decode("ascii", "replace")
        if not size or (size < self._rotate_bytes and written == str(year)):
            return
        written = written if written.isdigit() else str(year)
        taken = [file.stem.rpartition("-")[2] for file in self._set_aside() if f"-{written}-" in file.name]
        number = max((int(each) for each in taken if each.isdigit()), default=0) + 1
        self.file.replace(self.file.with_name(f"{self.file.stem}-{written}-{number:03}.jsonl"))
        for old in self._set_aside()[: -self._keep]:
            old.unlink(missing_ok=True)

    def _unreadable(self, file: Path, why: str) -> Malformed:
        return Malformed(
            f"the usage ledger cannot be read, so no limit can be kept and no model is called: {why}",
            where=str(file),
            hint=f"look at {file}; if you move it away, earlier spending is no longer counted",
        )

    def _cannot_write(self, error: OSError) -> CannotWrite:
        return CannotWrite(
            f"the usage ledger cannot be written, so no model is called: {error.strerror}",
            where=str(self.file),
            hint=f"free disk space, or make it writable: {self.file.parent}",
        )


def _wait_for(lock: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows, where one process works alone
        return
    fcntl.flock(lock, fcntl.LOCK_EX)


def entry_of(row: Mapping[str, Any]) -> Entry:
    """The entry that a line of the file says, as JSON. KeyError, TypeError, ValueError for what is none."""
    if row["state"] not in ("asked", "answered", "failed"):
        raise ValueError(row["state"])
    return Entry(
        at=datetime.fromisoformat(row["at"]),
        id=str(row["id"]),
        state=row["state"],
        run=str(row["run"]),
        purpose=str(row["purpose"]),
        model=str(row["model"]),
        usage=TokenUsage(*(int(row[name]) for name in _COUNTS)),
        usd=None if row["usd"] is None else float(row["usd"]),
        counted=float(row["counted"]),
        request=str(row.get("request", "")),
    )


def _total(entries: Iterable[Entry]) -> Totals:
    total = Totals()
    for entry in entries:
        total = total.plus(entry)
    return total


def _grouped(pairs: Iterable[tuple[str, Entry]]) -> dict[str, Totals]:
    groups: dict[str, Totals] = defaultdict(Totals)
    for name, entry in pairs:
        groups[name] = groups[name].plus(entry)
    return dict(groups)


# -- budget ------------------------------------------------------------------------------------------------
# What may be spent: limits of tokens and money by run and by day, checked before each request.
#
# A request is let through only if its worst case fits into every limit: the estimated prompt, none of it
# cached, and an answer of full length. What it may cost is written into the ledger before it is sent, so
# that neither a kill nor a second process can make the day's sum too small.


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

    def __init__(self, ledger: Ledger, limits: Limits, now: Callable[[], datetime]) -> None:
        self.run = uuid.uuid4().hex[:12]
        self.usage, self.counted = TokenUsage(), 0.0
        self._ledger, self._limits, self._now = ledger, limits, now

    def reserve(
        self, purpose: str, model: str, *each: TokenUsage, share: float = 1.0, free: bool = False
    ) -> Entry:
        """Write the worst case of a request, or of several, down in one line, or raise BudgetSpent if that
        does not fit. They cost this `share` of their price.

        `free` says that nobody sends a bill: a model that the table does not know then counts as nothing,
        else as the dearest one. Raises Malformed or CannotWrite where the ledger does not work.
        """
        known, worst = price(model), sum(each, TokenUsage())
        sums = share * sum((known or dearest()).of(one) for one in each)
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

    def settle(
        self, entry: Entry, model: str, *each: TokenUsage, share: float = 1.0, failed: bool, request: str = ""
    ) -> Entry:
        """Write down what was really used of what `reserve` wrote, be it in another process; `model` is the
        one that answered, '' for the one that was asked."""
        known, usage = price(model) or price(entry.model), sum(each, TokenUsage())
        free = entry.usd is None and entry.counted == 0.0
        sums = share * sum((known or dearest()).of(one) for one in each)
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

        def money(amount: float) -> str:
            return dollars(amount) if unit == "usd" else f"{int(amount):,} tokens"

        whose = "today" if span == "day" else "in this run"
        raise BudgetSpent(
            f"the next request could use {money(next_)}, and {money(spent)} of {money(limit)} are used "
            f"{whose}",
            hint=f"raise limits.{span}_{unit}" + (", or go on tomorrow" if span == "day" else ""),
        )


# -- estimate ----------------------------------------------------------------------------------------------
# What work by a model would cost, before anything is sent: tokens times the dated table.


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

    @property
    def subscription(self) -> bool:
        """Whether it counts against its owner's subscription."""
        return is_subscription(self.model)


def priced(
    model: Endpoint | Model, tokens: int, requests: Iterable[TokenUsage], *, share: float = 1.0
) -> Estimate:
    """The estimate for these requests, of which `tokens` would be read for the first time, at this `share` of
    their price."""
    known = price(model.name)
    each = list(requests)
    usd = share * sum(known.of(usage) for usage in each) if known else None
    free = isinstance(model, Endpoint) and model.free
    return Estimate(model.name, tokens, len(each), 0.0 if free else usd)


def asked_on(size: int, answers: int, says: int) -> list[TokenUsage]:
    """The requests of a conversation that is answered `answers` times, about `says` tokens each: the first
    writes the prompt of `size` tokens to the cache, all others read it from there."""
    again = TokenUsage(cache_read=size, cache_write=says, output=says)
    return [TokenUsage(cache_write=size, output=says), *[again] * (answers - 1)]


def together(costs: Sequence[Estimate]) -> Estimate | None:
    """Several estimates for one model as one; None where there is none."""
    if not costs:
        return None
    known = [cost.usd for cost in costs if cost.usd is not None]
    read, asked = sum(cost.tokens for cost in costs), sum(cost.requests for cost in costs)
    return replace(
        costs[0], tokens=read, requests=asked, usd=sum(known) if len(known) == len(costs) else None
    )
