"""What a calendar names by itself: digits, days of months, months, seasons, quarters, feasts.

A name without its year is a `Cycle`; whether a word is a name at all is asked of the `doubt` modules.
"""

from __future__ import annotations

import re
from datetime import date

from ua_memory.dates.digits import decade, digits, quarter_or_half, year_alone, year_at
from ua_memory.dates.doubt_months import is_day_after_month, is_day_before_month, is_month, is_nth
from ua_memory.dates.doubt_names import (
    is_feast,
    is_named_quarter,
    is_quarter,
    is_season,
    is_weekday,
)
from ua_memory.dates.doubt_years import is_year_after_name
from ua_memory.dates.feasts import FEASTS
from ua_memory.dates.stretch import (
    Cycle,
    Stretch,
    day,
    in_month,
    month,
    monthly,
    months,
    weekday,
    yearly,
)
from ua_memory.dates.text import Found, Text, longest
from ua_memory.dates.words import (
    ALL_MONTHS,
    SEASONS,
    SHORT_WEEKDAYS,
    WEEKDAYS,
)


def anchor(text: Text, i: int) -> Found | None:
    """Whatever the calendar names at a token."""
    return longest(
        text, i, digits, _day_of_month, _month, _weekday, _season, _quarter, _feast, year_alone, decade, _nth
    )


def month_at(text: Text, i: int) -> tuple[int, int] | None:
    """A month's name, an abbreviation with its dot, and what follows."""
    number = ALL_MONTHS.get(text.low(i)) if text.kind(i) == "word" else None
    if number is None:
        return None
    dotted = text.low(i + 1) == "." and text.low(i) in ("sept", *(n for n in ALL_MONTHS if len(n) == 3))
    return number, i + 1 + (dotted and i + 2 < len(text))


def day_at(text: Text, i: int) -> tuple[int, int] | None:
    """The number of a day: `3`, `3rd`, `third`, `the 3rd`; and what follows."""
    i = text.skip(i, ("the",))
    found = text.ordinal(i)
    if found is None and text.kind(i) == "number" and len(text.low(i)) <= 2 and text.low(i).isdigit():
        found = int(text.low(i)), i + 1
    return found if found and 1 <= found[0] <= 31 else None


def _day_of_month(text: Text, i: int) -> Found | None:
    named = month_at(text, i)
    if named:
        number = day_at(text, named[1])
        if number is None or not is_day_after_month(text, i, named[1], number[1]):
            return None
        of_month, (of_day, j) = named[0], number
    else:
        number = day_at(text, i)
        if number is None:
            return None
        of_day, j = number
        j = text.skip(j, ("of", "-"))
        named = month_at(text, j)
        if named is None or not is_day_before_month(text, i, j, named[1]):
            return None
        of_month, j = named
    of_year = year_at(text, j)
    if of_year:
        return day(date(of_year[0], of_month, of_day)), of_year[1]
    date(2024, of_month, of_day)  # a leap year: what it has not, none has
    return in_month(of_day, of_month), j


def _nth(text: Text, i: int) -> Found | None:
    """`on the 3rd`: of this month, or of the last if it is still to come."""
    at = text.skip(i, ("the",))
    if text.kind(at) != "ordinal" or (at == i and text.low(i - 1) != "the") or not is_nth(text, at):
        return None
    number = int(text.low(at)[:-2])
    return (monthly(number), at + 1) if 1 <= number <= 31 else None


def _month(text: Text, i: int) -> Found | None:
    named = month_at(text, i)
    if named is None:
        return None
    of_year = year_at(text, named[1])
    if of_year and is_year_after_name(text, i, of_year[1]):
        return month(of_year[0], named[0]), of_year[1]
    if not is_month(text, i, i + 1):
        return None
    return yearly(lambda turn: month(turn, named[0]), "month"), i + 1


def _weekday(text: Text, i: int) -> Found | None:
    number = WEEKDAYS.get(text.low(i), SHORT_WEEKDAYS.get(text.low(i)))
    if text.kind(i) != "word" or number is None:
        return None
    # "Sunday, 3 May 2026": the date says all.
    j = i + 1 + (text.low(i + 1) in (",", "."))
    dated = longest(text, text.skip(j, ("the",)), digits, _day_of_month)
    if dated and (not isinstance(dated[0], Stretch) or dated[0].grain == "day"):
        return dated
    return (weekday(number), i + 1) if is_weekday(text, i, i + 1) else None


def season(first: int) -> Cycle:
    """A season by its first month. Winter belongs to the year it begins in."""

    def turn(of: date) -> int:
        # In January "this winter" is the one that began last year; in April it is that one still.
        return of.year - (first == 12 and of.month <= 6)

    return Cycle(lambda number: months(number, first, 3, "season"), turn, "season")


def _season(text: Text, i: int) -> Found | None:
    first = SEASONS.get(text.low(i)) if text.kind(i) == "word" else None
    if first is None:
        return None
    cycle = season(first)
    both = re.fullmatch(r"(\d{4})-(\d\d)", text.low(text.skip(i + 1, ("of",))))
    if both and (int(both[1]) + 1) % 100 == int(both[2]):  # winter 2025-26
        return cycle.at(int(both[1])), text.skip(i + 1, ("of",)) + 1
    if of_year := year_at(text, i + 1):
        found, j = cycle.at(of_year[0]), of_year[1]
        if text.low(j) in ("/", "-", "–") and text.kind(j + 1) == "number":  # winter 2025/26
            j += 2
        return found, j
    return (cycle, i + 1) if is_season(text, i, i + 1) else None


def _quarter(text: Text, i: int) -> Found | None:
    if text.kind(i) == "quarter":
        of_year = year_at(text, i + 1)
        if of_year is None and not is_quarter(text, i):
            return None
        return quarter_or_half(of_year[0] if of_year else None, text.low(i)), of_year[1] if of_year else i + 1
    count = text.ordinal(i)
    if count is None or text.low(count[1]) != "quarter" or not is_named_quarter(text, i, count[1] + 1):
        return None
    of_year = year_at(text, count[1] + 1)
    end = of_year[1] if of_year else count[1] + 1
    return quarter_or_half(of_year[0] if of_year else None, f"q{count[0]}"), end


def _feast(text: Text, i: int) -> Found | None:
    for words in (n for n in (4, 3, 2, 1) if i + n <= len(text)):
        name = " ".join(t.text.lower().replace("’", "'") for t in text.tokens[i : i + words])
        at = FEASTS.get(name) or (FEASTS.get(name.removesuffix("'s")) if words == 1 else None)
        if at is None or (name.startswith("new year") and not text.capital(i) and text.low(i - 1) == "a"):
            continue
        of_year = year_at(text, i + words)
        if of_year:
            return at(of_year[0]), of_year[1]
        return (yearly(at, "day"), i + words) if is_feast(text, i, i + words) else None
    return None
