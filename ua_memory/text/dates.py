"""Reads the dates of a query, a `when:` or a statement: "last spring", "next Tuesday" become ranges of days.

`relative_dates` has the grammar rules, `resolve` chooses which Tuesday or spring is meant."""

from __future__ import annotations

import calendar as std_calendar
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache, reduce
from itertools import zip_longest
from typing import Literal

from ua_memory.text import foreign_dates
from ua_memory.text.calendar import (
    ALL_MONTHS,
    DAY,
    DAYTIMES,
    DECADES,
    HOLIDAYS,
    LAST,
    MONTHS_IN,
    NEXT,
    NUMBERS,
    ORDINALS,
    PART,
    SEASONS,
    SHORT_WEEKDAYS,
    THIS,
    TIME_WORDS,
    UNITS,
    WEEKDAYS,
    Cycle,
    DateSpan,
    DateText,
    Found,
    Rule,
    Span,
    Time,
    add_units,
    day,
    day_on_weekday,
    implied_days,
    in_nearby_years,
    longest,
    monday,
    monthly,
    nth_in,
    spans,
    tense,
    third_of,
    unit_around,
    weekday,
    word_tuple,
    yearly_day,
)
from ua_memory.text.calendar import joined as joined_stretch
from ua_memory.text.foreign_dates import PHRASES, language, languages, translated
from ua_memory.text.names import STOP_WORDS, foreign_stop_words, is_foreign
from ua_memory.text.patterns import late
from ua_memory.text.relative_dates import anchor, day_at, month_at, relative
from ua_memory.text.wording import MOVED, around

# -- single times ------------------------------------------------------------------------------------------
# How time words combine into one time: modifier × unit × anchor, and parts of a range.
#
# Read from the inside out: a calendar date or a date relative to today, then what contains it (the Friday of
# last week), then which part of it is meant.


_SIZES = {
    "day": 1,
    "weekend": 2,
    "week": 7,
    "month": 31,
    "quarter": 92,
    "season": 92,
    "half": 184,
    "year": 366,
}


class _NearestText(DateText):
    """A text in which a day of a month without a year is the nearest one, and a weekday may be today."""


class _ComingText(DateText):
    """A text that asks about the future: without a year the next day, week or month of a name is meant."""


def resolve(text: DateText, time: Time) -> DateSpan:
    """A time as a date range. A recurring date becomes the latest that has begun, the next or the nearest."""
    if isinstance(time, Cycle) and isinstance(text, _ComingText):
        return next(each for each in time.occurrences_near(text.today) if each.bounds()[1] > text.today)
    if isinstance(time, Cycle) and isinstance(text, _NearestText) and time.grain == "day":
        near = [
            one for one in time.occurrences_near(text.today) if time.today or one.bounds()[0] <= text.today
        ]
        return min(near, key=lambda each: abs(each.bounds()[0] - text.today - timedelta(hours=1)))
    return time.latest(text.today) if isinstance(time, Cycle) else time


def time_point(text: DateText, i: int) -> Found | None:
    """One time: `early last year`, `the second week of May`, `Friday last week at noon`."""
    found = longest(text, i, _part, _nth_unit, _unit_containing, _offset, _daytime_of, nested_time)
    return (found[0], _skip_time_of_day(text, found[1])) if found else None


def nested_time(text: DateText, i: int) -> Found | None:
    """A time and what contains it, in either order: `May last year`, `last week on Tuesday`."""
    at = text.skip(i, ("the",))
    found = longest(text, at, relative, anchor) or longest(text, i, relative, anchor)
    if found is None:
        return None
    time, j = found
    inside = text.skip(j, ("of", "in", ",", "on", "at", "during"))
    other = longest(text, text.skip(inside, ("the",)), relative, anchor) if inside < len(text) else None
    if other is None:
        return found
    if isinstance(time, Cycle) and isinstance(other[0], DateSpan) and _longer(other[0], time.grain):
        within = time.first_within(other[0])
        return (within, other[1]) if within else found
    if isinstance(time, DateSpan) and isinstance(other[0], Cycle) and _longer(time, other[0].grain):
        within = other[0].first_within(time)
        return (within, other[1]) if within else found
    if isinstance(time, Cycle) and isinstance(other[0], Cycle) and inside > j and text.low(j) in ("of", "in"):
        settled = other[0].latest(text.today)
        within = time.first_within(settled) if _longer(settled, time.grain) else None
        return (within, other[1]) if within else found
    return found


def _longer(container: DateSpan, grain: str) -> bool:
    if container.start is None or container.end is None:
        return False
    return container.days > _SIZES.get(grain, 10**6)


def _container(text: DateText, i: int) -> tuple[DateSpan, int] | None:
    """The range that a part belongs to: `May`, `last month`, and `the year` for this one."""
    unit = UNITS.get(text.low(i + 1), "")
    if (
        text.low(i) == "the"
        and (unit in MONTHS_IN or unit in ("week", "weekend"))
        and text.low(i + 1) == unit
    ):
        after = text.low(i + 2)
        if after not in ("of", "before", "after", "starting", "beginning", "ending"):
            return unit_around(text.today, unit), i + 2
    found = longest(text, i, _nth_unit, _unit_containing, nested_time)
    return (resolve(text, found[0]), found[1]) if found else None


def _part(text: DateText, i: int) -> Found | None:
    """`early 2026`, `mid-May`, `the end of last month`, `late in the summer`, `earlier this year`."""
    at = text.skip(i, ("the", "very"))
    word = text.low(at)
    if word in ("earlier", "later"):
        return _rest_of(text, at + 1, word)
    if word not in PART:
        return None
    j = at + 1
    if text.kind(j) == "dash":
        j += 1
    elif word in ("beginning", "start", "end", "middle"):
        if text.low(j) != "of":
            return None
        j += 1
    else:
        j = text.skip(j, ("in", "on", "of"))
    if word in ("early", "late") and text.low(j) in ("this", "that") and text.low(j + 1) in DAYTIMES:
        return longest(text, j, relative)
    found = _container(text, j) or _container(text, text.skip(j, ("the",)))
    if found is None:
        return None
    whole = found[0]
    return (whole if whole.grain == "day" else third_of(whole, PART[word])), found[1]


def _rest_of(text: DateText, j: int, word: str) -> Found | None:
    """`earlier this year`: up to today; `later this month`: from today on. All of a range that is over."""
    found = _container(text, text.skip(j, ("in", "on")))
    if found is None:
        return None
    start, end = found[0].bounds()
    if start <= text.today < end:
        span = DateSpan(start, text.today + DAY) if word == "earlier" else DateSpan(text.today, end)
        return span, found[1]
    return found


def _nth_unit(text: DateText, i: int) -> Found | None:
    """`the second week of May`, `the last two days of 2025`, `the first half of last year`."""
    at = text.skip(i, ("the",))
    last = text.low(at) in ("last", "final", "latter")
    ordinal = (-1, at + 1) if last else (1, at + 1) if text.low(at) == "former" else text.ordinal(at)
    if ordinal is None:
        return None
    number, j = ordinal
    sized = text.count(j) if text.low(j) not in ("a", "an") else None
    size, j = sized or (1, j)
    weekday_, unit = WEEKDAYS.get(text.low(j)), UNITS.get(text.low(j), "")
    unit = "half" if text.low(j) == "half" else unit
    month_day = number > 0 and sized is None and text.low(j) in ("of", "day")
    if month_day and text.low(j) == "of":
        return _day_of(text, number, j + 1)
    if (weekday_ is None and not unit) or text.low(j + 1) not in ("of", "in"):
        return None
    inside = _container(text, j + 2)
    if inside is None:
        return None
    found = _nth(inside[0], number, size, unit, weekday_)
    return (found, inside[1]) if found else None


def _day_of(text: DateText, number: int, j: int) -> Found | None:
    """`the 3rd of last month`, `the 3rd of the month`."""
    inside = _container(text, j)
    if inside is None or inside[0].grain != "month":
        return None
    start, end = inside[0].bounds()
    found = start + (number - 1) * DAY
    return (day(found), inside[1]) if found < end else None


def _nth(inside: DateSpan, number: int, size: int, unit: str, weekday_: int | None) -> DateSpan | None:
    start, end = inside.bounds()
    if weekday_ is not None:
        return nth_in(inside, weekday(weekday_), number)
    if unit in ("minute", "hour", "second", "fortnight", "decade"):
        return None
    if unit == "half":
        half = add_units(start, 6, "month") if inside.grain == "year" else start + inside.days // 2 * DAY
        return DateSpan(start, half) if number == 1 else DateSpan(half, end) if number in (2, -1) else None
    if unit == "weekend":
        first = monday(start) + 5 * DAY
        first = first if first >= start else first + 7 * DAY
        mine = [first + n * 7 * DAY for n in range(60) if first + n * 7 * DAY < end]
        at = mine[number - 1 if number > 0 else -1]
        return DateSpan(at, at + 2 * DAY, "weekend")
    if number < 0:
        found = DateSpan(add_units(end, -size, unit), end, unit)
    else:
        first = add_units(start, (number - 1) * size, unit)
        found = DateSpan(first, min(end, add_units(first, size, unit)), unit if size == 1 else "")
    return found if found.bounds()[0] >= start and found.days > 0 else None


def _unit_containing(text: DateText, i: int) -> Found | None:
    """`the week of 3 May`, `the week starting 4 May`, `the weekend of …`, `the month of May`."""
    at = text.skip(text.skip(i, ("the",)), ("calendar", "iso"))
    unit = text.low(at)
    if unit == "week" and text.kind(at + 1) == "number":
        return _numbered_week(text, at + 1)
    if unit not in ("week", "weekend", "month", "year", "quarter", "day"):
        return None
    how, j = text.low(at + 1), at + 2
    if how not in ("of", "starting", "beginning", "commencing", "ending", "around", "containing", "from"):
        return None
    inner = nested_time(text, text.skip(j, ("on",)))
    if inner is None:
        return None
    found = resolve(text, inner[0])
    start, end = found.bounds()
    if how in ("starting", "beginning", "commencing", "from"):
        return (DateSpan(start, add_units(start, 1, unit)), inner[1]) if unit in ("week", "month") else None
    if how == "ending":
        return (DateSpan(end - 7 * DAY, end), inner[1]) if unit == "week" else None
    return (unit_around(start, unit) if found.days <= _SIZES.get(unit, 0) else found), inner[1]


def _numbered_week(text: DateText, i: int) -> Found | None:
    j = text.skip(i + 1, ("of", ","))
    if text.kind(j) != "number" or len(text.low(j)) != 4:
        return None
    start = date.fromisocalendar(int(text.low(j)), int(text.low(i)), 1)
    return DateSpan(start, start + 7 * DAY, "week"), j + 1


def _offset(text: DateText, i: int) -> Found | None:
    """`two days before Christmas`, `the week after 3 May`, `the Friday before Easter 2026`."""
    at = text.skip(i, ("the",))
    count = text.count(at) if at == i else (1, at)
    if count is None:
        return None
    number, j = count
    word = text.low(j)
    unit, weekday_ = UNITS.get(word, ""), WEEKDAYS.get(word)
    side = text.low(j + 1)
    if side not in ("before", "after", "following", "preceding") or not (unit or weekday_ is not None):
        return None
    inner = nested_time(text, j + 2)
    if inner is None:
        return None
    base, earlier = resolve(text, inner[0]), side in ("before", "preceding")
    start, end = base.bounds()
    if weekday_ is not None:
        cycle = weekday(weekday_)
        return (cycle.previous(start) if earlier else cycle.upcoming(end - DAY)), inner[1]
    if unit in ("minute", "hour", "second"):
        return base, inner[1]
    if unit == "weekend":
        saturday = weekday(5).previous(start, number) if earlier else weekday(5).upcoming(end - DAY, number)
        return unit_around(saturday.bounds()[0], unit), inner[1]
    if at != i and unit != "day":  # the week before it, up to it
        if base.grain == unit:
            return unit_around(start - DAY if earlier else end, unit), inner[1]
        first, last = (add_units(start, -1, unit), start) if earlier else (end, add_units(end, 1, unit))
        return DateSpan(first, last), inner[1]
    return day(add_units(start, -number, unit) if earlier else add_units(end - DAY, number, unit)), inner[1]


def _daytime_of(text: DateText, i: int) -> Found | None:
    """`the morning of 3 May`: that day."""
    at = text.skip(i, ("the",))
    if at == i or text.low(at) not in DAYTIMES or text.low(at + 1) not in ("of", "after", "before"):
        return None
    j = at + 2 if text.low(at + 1) == "of" else at
    inner = nested_time(text, text.skip(j, ("the",))) if j != at else None
    return inner if inner and resolve(text, inner[0]).grain == "day" else None


def _skip_time_of_day(text: DateText, j: int) -> int:
    """The index after a time of day, which is ignored: `yesterday morning`, `on Monday at 14:00`."""
    while True:
        at = text.skip(j, (",",)) if text.kind(j + 1) == "clock" else j
        at = text.skip(at, ("at", "around", "in", "about"))
        at = text.skip(at, ("the", "early", "late"))
        clock = text.kind(at) == "clock" or (text.low(at - 1) == "at" and text.low(at + 1) in ("am", "pm"))
        if not (clock or text.low(at) in DAYTIMES):
            return j
        j = at + 1 + (text.low(at + 1) in ("am", "pm"))


def first_day(stretch: DateSpan) -> date:
    start = stretch.point or stretch.start
    if start is None:
        raise ValueError("an open stretch does not begin")
    return start


# -- ranges ------------------------------------------------------------------------------------------------
# From one time to another: `between March and May 2026`, `from 3 to 9 June`, `2019–2021`, `May and June`.


_FROM = {"from": ("to", "until", "till", "through", "thru", "and", "up"), "between": ("and", "to")}


def range_between(text: DateText, i: int) -> Found | None:
    """`between March and May 2026`, `from 3 to 9 June`, `2019–2021`, `May and June`."""
    joins = _FROM.get(text.low(i))
    at = i + 1 if joins else i
    days = _days_in_month(text, at, joins)
    if days:
        return days
    left = time_point(text, at)
    if left is None:
        return None
    j = joined(text, left[1], joins)
    if j is None:
        return None
    after = text.skip(j, ("the",))
    if text.low(j) in ("now", "date") or text.low(after) == "present":
        return DateSpan(first_day(resolve(text, left[0])), text.today + DAY), after + 1
    if joins is None and text.low(left[1]) in ("and", "or") and text.low(j) in PART:
        return None
    right = _end_in_month(text, left[0], j) or time_point(text, after) or time_point(text, j)
    if right is None or (joins is None and not _have_same_grain(left[0], right[0])):
        return None
    return _make_range(text, left[0], right[0]), right[1]


def joined(text: DateText, j: int, joins: tuple[str, ...] | None) -> int | None:
    """The index after the word or dash that joins two ends of a range, None if there is none."""
    if text.kind(j) == "dash":
        return j + 1
    allowed = joins or ("to", "through", "thru", "until", "till", "and", "or", "&")
    if text.low(j) in allowed or text.low(j) == "through":
        j += 1
        if text.low(j - 1) == "up":
            return text.skip(j, ("to", "until"))
        return text.skip(j, ("to",)) if text.low(j - 1) == "through" else j
    return None


def _have_same_grain(left: Time, right: Time) -> bool:
    """Whether two times may be the ends of a range without "from": months with months, days with days."""
    return left.grain == right.grain and bool(left.grain)


def _make_range(text: DateText, left: Time, right: Time) -> DateSpan:
    """The range between two times. An end without a year is resolved next to the other end."""
    if isinstance(right, Cycle):
        if isinstance(left, DateSpan):
            start = first_day(left)
            settled = next(each for each in right.occurrences_near(start) if each.bounds()[0] >= start)
        else:
            settled = resolve(text, right)
    else:
        settled = right
    begin = first_day(settled)
    if isinstance(left, Cycle):
        earlier = [each for each in left.occurrences_near(begin) if each.bounds()[0] <= begin]
        left = earlier[-1]
    first, last = left, settled
    if first_day(first) > begin:
        first, last = settled, left
    return DateSpan(first_day(first), last.end if last.point is None else last.point + DAY)


def _days_in_month(text: DateText, i: int, joins: tuple[str, ...] | None) -> Found | None:
    """`3–9 June`, `from 3 to 9 June 2026`, `between the 3rd and the 9th of last month`."""
    first = day_at(text, i)
    j = joined(text, first[1], joins) if first else None
    if first is None or j is None:
        return None
    right = time_point(text, j) or time_point(text, text.skip(j, ("the",)))
    if right is None and joins and (bare := day_at(text, j)) and text.ordinal(bare[1] - 1):
        right = (monthly(bare[0]), bare[1]) if bare[1] >= len(text) or text.kind(bare[1]) == "mark" else None
    if right is None or right[0].grain != "day":
        return None
    last = resolve(text, right[0])
    end = last.bounds()[0]
    if first[0] <= end.day:
        return DateSpan(end.replace(day=first[0]), last.end), right[1]
    return None


def _end_in_month(text: DateText, left: Time, j: int) -> Found | None:
    """The 9 of `June 3 to 9, 2026`."""
    bare = day_at(text, j)
    if bare is None or left.grain != "day" or month_at(text, text.skip(bare[1], ("of",))):
        return None
    if text.low(bare[1]) in UNITS or text.kind(bare[1]) == "dash":
        return None
    start = first_day(resolve(text, left))
    after = text.skip(bare[1], (",",))
    if isinstance(left, Cycle) and text.kind(after) == "number" and len(text.low(after)) == 4:
        return day(start.replace(year=int(text.low(after)), day=bare[0])), after + 1
    if isinstance(left, Cycle):
        return yearly_day(bare[0], start.month), bare[1]
    return (day(start.replace(day=bare[0])), bare[1]) if bare[0] > start.day else None


# -- phrases -----------------------------------------------------------------------------------------------
# A whole time phrase: a single time, a range, or an open range (`since March`, `before 2020`).


def phrase(text: DateText, i: int) -> tuple[DateSpan, int] | None:
    """The longest time phrase that begins at a token, as a date range."""
    found = longest(text, i, _resolved(range_between), _resolved(_open_range), _resolved(time_point))
    return found and (resolve(text, found[0]), found[1])


def _resolved(rule: Rule) -> Rule:
    def settled(text: DateText, i: int) -> Found | None:
        found = rule(text, i)
        return found and (resolve(text, found[0]), found[1])

    return settled


def _open_range(text: DateText, i: int) -> Found | None:
    """`since March`, `until Friday`, `before 2020`, `after 3 May`, `older than a week`."""
    for words, how in _OPEN_WORDS:
        j = text.after(i, *words)
        if j > i:
            found = time_point(text, j) or time_point(text, text.skip(j, ("the", "about", "around")))
            if found is None:
                continue
            return _open_span(text, resolve(text, found[0]), how, i, j), found[1]
    part = text.low(i) == "beginning" and text.low(i + 1) == "of"
    if text.low(i) in ("from", "starting", "as", "beginning") and not part:
        return _onwards(text, i)
    return None


def _open_span(text: DateText, found: DateSpan, how: str, i: int, j: int) -> DateSpan:
    if text.low(i) == "through" and found.grain == "season":
        return found
    edge = _edge_word(text, j) or ("end" if how in ("until", "after") else "start")
    begin, end = first_day(found), found.point + DAY if found.point else found.end
    if how in ("before", "until"):
        return DateSpan(None, end if edge == "end" else begin)
    return DateSpan(end if how == "after" and edge == "end" else begin, None)


def _edge_word(text: DateText, j: int) -> str:
    word = text.low(text.skip(j, ("the", "very")))
    return "start" if word in ("start", "beginning") else "end" if word == "end" else ""


def _onwards(text: DateText, i: int) -> Found | None:
    j = i + 1
    begins = text.low(i) != "from"
    j = text.skip(j, ("from", "in", "on", "of", "with")) if begins else j
    found = time_point(text, j)
    if found is None:
        return None
    stretch = resolve(text, found[0])
    for words in ("onwards", "onward", "on", "and later", "and after", "forward", "until now"):
        after = text.after(found[1], *words.split())
        if after > found[1] and (words != "on" or after >= len(text) or text.kind(after) == "mark"):
            return DateSpan(first_day(stretch), None), after
    return (DateSpan(first_day(stretch), None), found[1]) if begins else None


_OPEN_WORDS = tuple(
    (word_tuple(words), side)
    for words, _, side in (row.partition(": ") for row in TIME_WORDS["sides"].splitlines())
)


# -- order -------------------------------------------------------------------------------------------------
# Whether a query asks for the newest or the oldest results.


Order = Literal["latest", "earliest"]


def asks_past(text: str) -> bool:
    """Whether a query asks for something that may no longer be true."""
    return bool(PHRASES["past"].search(text))


def asks_number(text: str) -> bool:
    """Whether a query asks for a number, as of a phone or a policy: the newest of those as good is valid."""
    return bool(PHRASES["number"].search(text))


def requested_order(text: str, read: Sequence[tuple[int, int]] = ()) -> Order | None:
    """The order that a query asks for, ignoring the places `read` as dates ("the last ten days")."""
    for at, to in read:
        text = text[:at] + "," * (to - at) + text[to:]
    latest, earliest = PHRASES["latest"].search(text), PHRASES["earliest"].search(text)
    if latest and (not earliest or latest.start() <= earliest.start()):
        return "latest"
    return "earliest" if earliest else None


# -- events ------------------------------------------------------------------------------------------------
# A time that a query gives by an event: "after the regatta", "the day before we moved". The day of the event
# has to be looked up in the bank.


@dataclass(frozen=True, slots=True)
class TimedByEvent:
    """A time relative to an event: the event's `phrase`, and the place `at` of the whole in the query.

    `how` is after, before, since, until or during. `days` is the distance if it is given, and `length` the
    number of days there. `weekend` means the next Saturday and Sunday, or the ones before.
    """

    phrase: str
    how: str
    at: tuple[int, int]
    days: int = 0
    length: int = 0
    weekend: bool = False

    def window(self, day: date) -> tuple[date | None, date | None]:
        """(start, end) of the days meant if the event was on `day`; the end is exclusive, None is open."""
        one = timedelta(days=1)
        if self.weekend:
            weekday = day.weekday()
            off = (5 - weekday if weekday < 5 else 12 - weekday) if self.how == "after" else -weekday - 2
            return day + off * one, day + (off + 2) * one
        if self.days:
            before = max(self.days, self.length)
            start = day + timedelta(days=self.days if self.how == "after" else -before)
            return start, start + timedelta(days=self.length)
        if self.how == "during":
            return day, day + one
        return (day, None) if self.how in ("after", "since") else (None, day + one)


_AFTER = ("after", "après", "nach", "después de")
_WEEKENDS = ("weekend", "week-end", "wochenende", "fin de semana")
_LENGTHS = {
    **dict.fromkeys(("week", "semaine", "woche", "semana"), 7),
    **dict.fromkeys(("month", "mois", "monat", "mes"), 30),
}
_COUNTS = {
    **{"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "ten": 10},
    **{"deux": 2, "zwei": 2, "dos": 2, "trois": 3, "drei": 3, "tres": 3, "quatre": 4, "vier": 4, "cuatro": 4},
}
_STATEMENT = late(r"(?!(?:i|we|you|he|she|they)\b)\w+\s.*\s(?:i|we|you|he|she|they)\s+\w", re.IGNORECASE)
"""A noun and a clause after it: "after the dinner we sold the boat" states something and asks for no time."""


def timing_event(text: str) -> TimedByEvent | None:
    """The event that a query gives its time by, or None. To be called only if `read` finds no time."""
    found = PHRASES["event"].search(text[:LONGEST])
    if not found:
        abroad = PHRASES["event abroad"].search(text[:LONGEST])
        return abroad and _at_distance(abroad)
    if not re.search(r"[^\W\d_]{3}", found["phrase"]):
        return None
    if not found.start() and not text[found.end() :].strip("?!. ") and _STATEMENT.match(found["phrase"]):
        return None
    how, unit = found["how"].casefold(), found["unit"]
    if how not in ("after", "before") or not unit:
        at = found.start("how") if unit else found.start()
        return TimedByEvent(found["phrase"].strip(), how, (at, found.end()))
    return _at_distance(found)


def _at_distance(found: re.Match[str]) -> TimedByEvent:
    """A time that is so many days, weeks or months before or after an event."""
    phrase, how = found["phrase"].strip(), "after" if found["how"].casefold() in _AFTER else "before"
    unit, number = found["unit"].casefold(), (found["number"] or "").casefold()
    if unit in _WEEKENDS:
        return TimedByEvent(phrase, how, found.span(), 1, 2, weekend=True)
    length = _LENGTHS.get(unit, 1)
    count = int(number) if number.isdigit() else _COUNTS.get(number, 1)
    days = count * length if length == 1 or count > 1 else 1
    return TimedByEvent(phrase, how, found.span(), max(days, 1), length)


def is_planned(text: str) -> bool:
    """Whether a text speaks of a plan, a wish, or something cancelled."""
    return PHRASES["planned"].search(text) is not None


def has_happened(text: str) -> bool:
    """Whether a text speaks of something that happened."""
    return PHRASES["happened"].search(text) is not None


# -- reading -----------------------------------------------------------------------------------------------
# A query → a date range. Pure: the time and zone are given.


_MONTH_FIRST = word_tuple(TIME_WORDS["month_first"])
"""Zones, or their beginnings, where 3/5/2026 is the fifth of March."""

_PLAIN_WORD = late("week-end|[a-z]+")
_MAYBE_FOREIGN = frozenset(TIME_WORDS["foreign"].split())
"""Date words of other languages in plain letters: the gate for a query in ASCII."""

_FIRST_WORDS = frozenset(word_tuple(TIME_WORDS["begin"]))
_FIRST_WORDS |= {*ALL_MONTHS, *WEEKDAYS, *SHORT_WEEKDAYS, *SEASONS}
_FIRST_WORDS |= {*NUMBERS, *ORDINALS, *UNITS, *DAYTIMES, *DECADES}
_FIRST_WORDS |= LAST | THIS | NEXT | set(PART) | {name.split()[0].removesuffix("'s") for name in HOLIDAYS}
"""Words that a time phrase can begin with. Most words of a query are none, and are skipped."""

LONGEST = 4000
"""Characters of a query that are read. A pasted page asks for no particular day."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The time of a query. `start` and `end` are ISO days; the end is exclusive, None is open.

    `at` has the place of each expression that was read, [from, to) in characters. Without a time both ends
    are None and `at` is empty. `order` is set if the newest or the oldest results are asked for.
    """

    start: str | None = None
    end: str | None = None
    at: tuple[tuple[int, int], ...] = ()
    order: Order | None = None
    foreign: bool = False
    """Whether the time was in another language than English."""

    def __bool__(self) -> bool:
        return self.start is not None or self.end is not None


def read(text: str, now: datetime, zone: tzinfo | None = None, *, ahead: bool = False) -> Reading:
    """The date range of a query asked at `now`; days are those of `zone`, else of `now`. With `ahead` a day
    or month without a year is the next one, unless the query asks about the past.

    Several expressions give one range: the narrower if one contains the other, else from the first to the
    last.
    """
    local = now.astimezone(zone) if zone and now.tzinfo else now
    text = text[:LONGEST]
    month_first = _is_month_first(zone or now.tzinfo)
    coming = (ahead or PHRASES["asks ahead"].search(text)) and not PHRASES["asks back"].search(text)
    kind = _ComingText if coming else DateText
    found = _find_phrases(kind.of(text, local, zone or now.tzinfo, month_first))
    if kind is _ComingText and any(tense(text, *at) == "past" for _, at in found):
        found = _find_phrases(DateText.of(text, local, zone or now.tzinfo, month_first))
    foreign = not found
    if foreign:
        found = _find_foreign(text, local, zone or now.tzinfo, kind)
    at = tuple(sorted(place for _, place in found))
    order = requested_order(text, at)
    whole = reduce(joined_stretch, (stretch for stretch, _ in found)) if found else DateSpan(None, None)
    if whole.start is None and whole.end is None:  # before 2020 and after 2021: any day
        return Reading(order=order)
    ends = [each.isoformat() if each else None for each in (whole.start, whole.end)]
    return Reading(ends[0], ends[1], at, order, foreign)


def parse_days(text: str, now: datetime, *, nearest: bool = False) -> tuple[date | None, date | None]:
    """(first, last) day of a text that is only a date, such as an option's value; None is open. "May",
    "last week", "in two days", "2 weeks ago", "hier".

    A word that could be something else in a sentence is a date here. Without a year the latest that has begun
    is meant, or of days the `nearest`. `30d` and `2w` are so many days or weeks ago. ValueError for a text
    that is no date or more than a date.
    """
    word = " ".join(text.split())[:LONGEST]
    word = re.sub(r"(?i)\b(?:d[ií]a|giorno)\s(?=\d{1,2}\s\D)", "", word)  # no dia 12 de outubro
    if slashed := re.fullmatch(r"(\d{1,2})/(\d{1,2})", word):
        first, second = map(int, slashed.groups())
        swap = second > 12 or (first <= 12 and _is_month_first(now.tzinfo))
        word = f"{second}.{first}." if swap else f"{first}.{second}."
    if ago := re.fullmatch(r"(\d{1,4})([dw])", word, re.ASCII | re.IGNORECASE):
        day = now.date() - int(ago[1]) * (DAY if ago[2] in "dD" else 7 * DAY)
        return day, day
    zone = now.tzinfo
    plain = word.removeprefix("in ")
    kind = _NearestText if nearest else DateText
    forms = (plain, f"this {plain}", f"{plain} from now" if plain != word else f"{plain} ago")
    found = [_find_phrases(kind.of(form, now, zone, _is_month_first(zone))) for form in forms]
    read_as = [*zip(forms, found, strict=True), (word, _find_foreign(word, now, zone, kind))]
    for code in (each.code for each in languages()):
        form = " ".join(piece[0] for piece in translated(word, code))
        read_as.append((form, _find_phrases(kind.of(form, now, zone, False))))
    for form, phrases in read_as:
        left = [re.findall(r"\w+", form[:at] + form[to:]) for _, (at, to) in phrases]
        if len(left) == 1 and {"on", "in", "the"}.issuperset(left[0]):
            span = phrases[0][0]
            return span.start, span.end and span.end - DAY
    raise ValueError(text)


DATE_KEYS = (
    "date", "day", "created", "created_at", "date_created", "creation_date", "modified", "fecha", "datum",
    "data", "written",
)  # fmt: skip
_IN_NAME = late(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)")
_IN_FOLDERS = late(r"(?:^|/)((?:19|20)\d\d)/(\d\d)/(\d\d)(?!\d)")
_YEAR = late(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_EITHER = late(r"(?:0?[1-9]|1[0-2])[-_ /](?:0?[1-9]|1[0-2])[-_ /]\d{4}")
"""Day and month, or month and day."""


def day_of_note(path: str, front: Mapping[str, object], zone: tzinfo | None = None) -> str | None:
    """The ISO day in a note's path, else in the first of `DATE_KEYS` of its front matter that has one."""
    nested = front.get("metadata")
    tables = (front, nested) if isinstance(nested, Mapping) else (front,)
    values = [table.get(key) for table in tables for key in DATE_KEYS]
    return day_in_path(path, zone) or next((day for value in values if (day := _day_of_value(value))), None)


def day_in_path(path: str, zone: tzinfo | None = None) -> str | None:
    """The ISO day in a path, in digits or words: `17-11-2026`, `Martes 17 noviembre 2026`. The last one in
    the file name counts. The `zone` decides which of two numbers is the month."""
    stem = path.rpartition("/")[2].removesuffix(".md")
    for match in reversed(list(_IN_NAME.finditer(stem))):
        if day := _valid_day(match[1], match[3], match[4]):
            return day
    if folders := _IN_FOLDERS.search(path):
        return _valid_day(*folders.groups())
    if not _YEAR.search(stem) or (zone is None and _EITHER.fullmatch(stem)):
        return None
    with suppress(ValueError):
        first, last = parse_days(stem.replace("_", "-"), datetime(2000, 1, 1, tzinfo=zone))
        return first.isoformat() if first and first == last else None
    return None


def day_of_heading(heading: str, zone: tzinfo | None = None) -> str | None:
    """The ISO day that the innermost of a note's headings begins with or is: `Diary > 2026-11-16`, `Monday 16
    November 2026`, `16/11/2026`."""
    for part in reversed(heading.split(" > ")):
        name = part.replace("/", "-")
        if (_IN_NAME.match(name) or not _IN_NAME.search(name)) and (day := day_in_path(name, zone)):
            return day
    return None


def _day_of_value(value: object) -> str | None:
    if isinstance(value, datetime | date):
        return value.isoformat()[:10]
    match = _IN_NAME.match(value) if isinstance(value, str) else None
    return _valid_day(match[1], match[3], match[4]) if match else None


def _valid_day(year: str, month: str, day: str) -> str | None:
    with suppress(ValueError):
        return date(int(year), int(month), int(day)).isoformat()
    return None


def parse_when(text: str, now: datetime) -> str:
    """The days of a text in the format of a fact's `when:`: `2026-11-25`, `2026-11-25T15:00` for "tomorrow
    at 15:00" or "mañana a las 15", `2026-05` for "May", `2026-11-16/2026-11-22` for "last week".
    A day of a month without a year is the nearest, a bare weekday the latest, or today.
    ValueError."""
    for word, clock_time in (("noon", "12:00"), ("midnight", "00:00")):
        text = re.sub(rf"\b(?:at )?(?:12(?::00)? )?{word}\b", clock_time, text, flags=re.IGNORECASE)
    found = [one for one in PHRASES["clock"].finditer(text) if one["at"] or one["minute"] or one["unit"]]
    clock = found[-1] if found else None
    rest = text[: clock.start()] + text[clock.end() :] if clock else text
    first, last = parse_days(rest.strip() or ("today" if clock else ""), now, nearest=True)
    if clock and clock["late"] and clock["hour"] == "12":
        raise ValueError(text)  # las 12 de la noche: of which day?
    if first is None or last is None or (clock and first != last) or re.search(r"\d:\d", rest):
        raise ValueError(text)
    if clock:
        hour, half = int(clock["hour"]), "p" if clock["late"] else (clock["half"] or "").lower()
        hour = hour % 12 + 12 * (half == "p") if half and hour <= 12 else hour
        return f"{first}T{hour:02}:{clock['minute'] or '00'}"
    if first == last:
        return first.isoformat()
    if first.day == 1 and last + DAY == add_units(first, 1, "month"):
        return f"{first:%Y-%m}"
    return f"{first}/{last}"


def _find_phrases(text: DateText) -> list[tuple[DateSpan, tuple[int, int]]]:
    found, i = [], 0
    while i < len(text):
        one = (
            phrase(text, i)
            if text.kind(i) not in ("word", "mark", "other") or text.low(i) in _FIRST_WORDS
            else None
        )
        if one and (one[0].start or one[0].end):
            found.append((one[0], (text.tokens[i].at, text.tokens[one[1] - 1].to)))
            i = one[1]
        else:
            i += 1
    return found


def _find_foreign(
    text: str, now: datetime, zone: tzinfo | None, kind: type[DateText] = DateText
) -> list[tuple[DateSpan, tuple[int, int]]]:
    """As `_find_phrases`, for translated date words of another language. Places are those in `text`."""
    if text.isascii() and "/" not in text and _MAYBE_FOREIGN.isdisjoint(_PLAIN_WORD.findall(text.lower())):
        return []
    code = language(text)
    if code is None:
        return []
    pieces, english, marks = translated(text, code), "", []
    for word, at, to in pieces:
        marks.append((len(english), len(english) + len(word), at, to))
        english += f"{word} "
    found = []
    for stretch, (begin, end) in _find_phrases(kind.of(english, now, zone, False)):
        mine = [(at, to) for first, last, at, to in marks if first < end and begin < last]
        found.append((stretch, (min(a for a, _ in mine), max(b for _, b in mine))))
    return found


def _is_month_first(zone: tzinfo | None) -> bool:
    name = str(getattr(zone, "key", ""))
    return any(name == known or (known.endswith("/") and name.startswith(known)) for known in _MONTH_FIRST)


# -- statements --------------------------------------------------------------------------------------------
# The days that a statement is about, read from its words relative to the day it was said.


_HYPHEN = late(r"(?<![\w.-])(\d{1,2})-(\d{1,2})(?![\d-])")
_RANGE_SIGN = late(r"\s*(?:to|until|till|through|[-–—])\s*(?:the )?")
_FIRST_DAY = late(
    r"(?<![\w.,:/-])(?:between (?:the )?(\d\d?)(?:st|nd|rd|th)? and"
    r"|(\d\d?)(?:st|nd|rd|th)? ?(?:to|until|till|through|[-–—])) ?(?:the )?$"
)
_LAST_DAY = late(r" ?[–—] ?(\d\d?)(?:st|nd|rd|th)?(?![\w:.,]*\d)")
_CLAUSE_TEXT = late(r"(?:[^,;:!?.]|(?<=\d)(?<!\d{3})\.|[.,:](?=\s?\d))+")
_CLAUSE_SIGN = late(r"[,;:–]\s")
_WORD = late(r"\w+")
_DATE_WORDS = _MAYBE_FOREIGN.union(
    ALL_MONTHS, WEEKDAYS, SHORT_WEEKDAYS, SEASONS, UNITS, ("ago", "tomorrow", "yesterday")
)
_WORD_OF_LETTERS = late("[a-z]+")
_MAY_NAME_A_DAY = late(
    r"(?<![\d.,:/-])\d{1,2}[./-]\d{1,2}(?!\d)|\d(?:st|nd|rd|th|er|\.) |(?<!\d)(?:19|20)\d\d(?!\d)"
)


def _without_old_date(clause: re.Match[str]) -> str:
    """A clause without a date that something was moved from. Only in German and Dutch may the verb follow:
    "the trip from 3 to 12 May was moved" has a period."""
    old = PHRASES["old date"].search(clause[0])
    before = clause[0] if not old or old[0][0] in "vV" else clause[0][: old.end()]
    return clause[0].replace(old[0], "", 1) if old and MOVED.search(before) else clause[0]


def _with_new_day(text: str) -> str:
    """A text with the day that something is moved to in the place of the day before, if it has no month."""
    moved = PHRASES["within month"].search(text)
    if not moved or not foreign_dates.is_month(moved["month"]) or not MOVED.search(text):
        return text
    new = f"{moved['between']}on {moved['day']} {moved['month']}"
    return text[: moved.start()] + new.lstrip() + text[moved.end() :]


@lru_cache(maxsize=1024)  # a sentence is asked by its score, as a candidate and as a fact
def when_in_text(text: str, said: date | None, *, several: bool = False) -> str | None:
    """The one day or period that a text names, as in a `when:` field; None if it names none or several, or
    the day it was said. If that day is unknown, only what does not depend on it. Of `several` the first day
    to come, unless the text denies something, which may be that day."""
    if (
        text.isascii()
        and not _MAY_NAME_A_DAY.search(text)
        and _DATE_WORDS.isdisjoint(_WORD_OF_LETTERS.findall(text.lower()))
    ):
        return None  # three of four: the rest takes fifty times as long
    if said is None:
        first, other = (when_in_text(text, day) for day in (date(2001, 2, 3), date(2020, 8, 21)))
        return first if first == other else None
    text = _with_new_day(text)
    text = _CLAUSE_TEXT.sub(_without_old_date, with_dots(text) if is_foreign(text) else text)
    text = _with_numbered_weekdays(PHRASES["recurring"].sub(" ", text), said)
    stated = PHRASES["reason"].sub(" ", text)
    found = set(named_periods(stated, said))
    if len(found) > 1:
        found = set(named_periods(PHRASES["born"].sub(" ", stated), said))
    coming = [days for days in found if said < days[0] == days[1] - DAY]
    if len(found) > 1 and several and coming and not PHRASES["denies"].search(text):
        found = {min(coming)}
    if len(found) != 1:
        return None
    start, end = found.pop()
    weekdays = {day.weekday() for day, _ in _weekdays(PHRASES["not then"].sub(" ", stated), said)}
    if end - start == timedelta(days=1) and {start.weekday()} < weekdays:
        return None
    return None if (start, end) == (said, said + timedelta(days=1)) else when_field(start, end)


def with_dots(text: str) -> str:
    """A text that is not in English with its dates as in German: `le 3/12`, `04/06/1939`."""
    return PHRASES["slashed"].sub(lambda m: f"am {m[1]}.{m[2]}.{m[3] or ''}", text)


def when_field(start: date, end: date) -> str:
    """The days from `start` to before `end` as a `when:` field: a day, month, year, or two days with a
    slash."""
    last = end - timedelta(days=1)
    if start == last:
        return start.isoformat()
    if start.day == 1 and last.day == std_calendar.monthrange(last.year, last.month)[1]:
        if (start.year, start.month) == (last.year, last.month):
            return f"{start:%Y-%m}"
        if start.year == last.year and (start.month, last.month) == (1, 12):
            return f"{start:%Y}"
    return f"{start}/{last}"


def _with_numbered_weekdays(text: str, said: date) -> str:
    """A text with its weekdays that have a number as ISO days: `Friday 4 at 11`, `Freitag, den 4.`, not
    `Friday 4 people`."""

    def in_digits(found: re.Match[str]) -> str:
        number, rest = foreign_dates.weekday_named(found["name"]), found["rest"].casefold().split()
        if (
            number is None
            or any(map(foreign_dates.is_month, rest))
            or (rest and len(rest[0]) > 2 and not (rest[0] in STOP_WORDS or rest[0] in foreign_stop_words()))
        ):
            return found[0]
        day = day_on_weekday(number, int(found["day"]), said)
        return day.isoformat() if day else found["day"]  # farther off; not the coming weekday

    return PHRASES["numbered weekday"].sub(in_digits, text)


def named_periods(text: str, said: date) -> Iterator[tuple[date, date]]:
    """The periods that a text names: the first day, and the day after the last."""
    found = list(_periods_in_english(text, said)) or list(_periods_in_other_languages(text, said))
    yield from found or _appointments(text, said)


def _appointments(text: str, said: date) -> Iterator[tuple[date, date]]:
    """The coming days that a text names by their weekday, if it has one time of day: "Ok, Friday 8 pm"."""
    if len(PHRASES["time of day"].findall(text)) != 1 or PHRASES["bygone"].search(text):
        return
    for coming, at in _weekdays(text, said):
        if tense(text, at, at) != "past" and not PHRASES["plural does"].search(text[:at]):
            yield coming, coming + DAY


def _weekdays(text: str, said: date) -> Iterator[tuple[date, int]]:
    """The coming days that a text names by their weekday, and where."""
    code = language(text)
    english = [(found[0], found.start()) for found in _WORD.finditer(text)]
    words = [(word, at) for word, at, _ in translated(text, code)] if code else english
    for word, at in words:
        if (number := WEEKDAYS.get(word.lower())) is not None:
            yield said + timedelta(days=(number - said.weekday()) % 7), at


def _periods_in_other_languages(text: str, said: date) -> Iterator[tuple[date, date]]:
    """The days that a text names in other languages: by their month (without a year the nearest one is
    meant), else by words such as `nächste Woche` and `ayer`."""
    yield from (short := list(_short_dates(text, said)))
    dated = foreign_dates.days_of_months(text)
    months = [] if dated or short else foreign_dates.months_of_years(text)
    for start in (date(year, month, 1) for year, month in months):
        yield start, (start + timedelta(days=31)).replace(day=1)
    code = None if dated or short or months or PHRASES["lasting"].search(text) else language(text)
    english = " ".join(word for word, _, _ in translated(text, code)) if code else ""
    for part in filter(PHRASES["relative"].search, english.split(",")):
        yield from _periods_in_english(part, said)
    days = [*_dated_days(dated, said, past=bool(PHRASES["past only"].search(text)))]
    if len(days) == 2 and PHRASES["from to"].search(text):
        (start, _), (_, end) = days
        yield start, end if end > start else end.replace(year=end.year + 1)
    else:
        yield from days


def _dated_days(
    dated: Sequence[tuple[int, int, int, int]], said: date, *, past: bool
) -> Iterator[tuple[date, date]]:
    """The days of `days_of_months`; without a year the nearest, if `past` the nearest that is over."""
    for year, month, first, last in dated:
        with suppress(ValueError):
            near = [date(year, month, last)] if year else in_nearby_years(said, month, last)
            at = min((one for one in near if one <= said or not past), key=lambda one: abs(one - said))
            yield at.replace(day=first), at + timedelta(days=1)


def _short_dates(text: str, said: date) -> Iterator[tuple[date, date]]:
    """The German dates of a text, and periods between two; without a year the nearest is meant."""
    past = PHRASES["past only"].search(text)
    for match in PHRASES["short date"].finditer(text):
        first, first_month, day, month, year = (int(part or 0) for part in match.groups())
        with suppress(ValueError):
            begins = first_month or month, first or day
            near = in_nearby_years(said, *begins)
            near = [date(year - (begins > (month, day)), *begins)] if year else near
            start = min((one for one in near if one <= said or not past), key=lambda one: abs(one - said))
            end = start.replace(month=month, day=day)
            yield start, (end if end >= start else end.replace(year=end.year + 1)) + timedelta(days=1)


def _periods_in_english(text: str, said: date) -> Iterator[tuple[date, date]]:
    text, noon = _HYPHEN.sub(r"\1–\2", text), datetime.combine(said, time(12), UTC)
    for match in PHRASES["day within"].finditer(text):
        if first := read(match[0], noon).start:
            yield (day := date.fromisoformat(first)), day + timedelta(days=1)
    text = PHRASES["day within"].sub(" ", text)
    named = spans(text, said)
    taken = [(span.at, span.to) for span in named]
    yield from _with_ranges(text, named)
    yield from ((day, day + timedelta(days=1)) for day in implied_days(text, said))
    for match in PHRASES["period"].finditer(text):
        if any(at < match.end() and match.start() < to for at, to in taken):
            continue
        if match["day"]:
            yield from _day_of_week(match, said)
            continue
        phrase = f"{match['ahead']} from now" if match["ahead"] else match[0]
        reading = read(phrase, noon)
        if reading.start and reading.end:
            start, end = date.fromisoformat(reading.start), date.fromisoformat(reading.end)
            passed = end <= said and not re.search(r"\d{4}|last|this", match[0])
            if passed and _is_upcoming(match, start, said):
                start, end = (each.replace(year=each.year + 1, day=1) for each in (start, end))
            yield start, end


def _day_of_week(match: re.Match[str], said: date) -> Iterator[tuple[date, date]]:
    """The last day of a name if its verb is in the past, else the coming one; none for a habit."""
    before, after = around(match.string, match.start("day"), match.end("day"))
    clause = _CLAUSE_SIGN.split(before)[-1]
    if (
        PHRASES["habit"].search(clause)
        or PHRASES["plural does"].search(clause)
        or PHRASES["habit"].search(_CLAUSE_SIGN.split(after)[0])
    ):
        return
    when = tense(match.string, match.start("day"), match.end("day"))
    back = (said.weekday() - WEEKDAYS[match["day"].casefold()]) % 7 or 7
    day = said - timedelta(days=back if when == "past" else back - 7 if back < 7 else -7)
    yield day, day + timedelta(days=1)


def _with_ranges(text: str, named: Sequence[Span]) -> Iterator[tuple[date, date]]:
    """The days that are named; ranges such as "3 to 5 May" as one period."""
    begun: Span | None = None
    for span, following in zip_longest(named, named[1:]):
        start, end = begun.start if begun and begun.start < span.start else span.start, span.end
        begun = None
        if following and _RANGE_SIGN.fullmatch(text, span.to, following.at):
            begun = span
            continue
        if span.is_day and (first := _FIRST_DAY.search(text[max(0, span.at - 30) : span.at])):
            day = int(first[1] or first[2])
            start = start.replace(day=day) if 0 < day < start.day else start
        elif span.is_day and (last := _LAST_DAY.match(text, span.to)) and int(last[1]) > start.day:
            with suppress(ValueError):
                end = start.replace(day=int(last[1])) + timedelta(days=1)
        yield start, end


def _is_upcoming(match: re.Match[str], start: date, said: date) -> bool:
    """Whether a month without a year is the coming one: its verb is in the future or present, or there is no
    verb and the coming month is nearer."""
    before, _ = around(match.string, match.start(), match.end())
    verb = tense(match.string, match.start(), match.end())
    alone = verb == "" and (PHRASES["future"].search(before + match[0]) or (said - start).days > 183)
    return verb in ("ahead", "open") or bool(alone)
