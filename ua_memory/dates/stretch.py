"""Stretches of days and what repeats: calendar arithmetic, without any words.

A `Stretch` is a known stretch of days. A `Cycle` is what comes again, such as May, Friday or Christmas: which
of them is meant depends on the words around it and on today.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta

DAY, WEEK = timedelta(days=1), timedelta(weeks=1)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Days from `start` to before `end`; None is open. `grain` is the unit it is one of ('' for none).

    `point` is the very day where a stretch stands for "about then" (two weeks ago): what "since" counts from.
    """

    start: date | None
    end: date | None
    grain: str = ""
    point: date | None = None

    def parts(self) -> tuple[date, date]:
        """Both ends of a stretch that has them. ValueError for an open one."""
        if self.start is None or self.end is None:
            raise ValueError("an open stretch has no parts")
        return self.start, self.end

    @property
    def days(self) -> int:
        start, end = self.parts()
        return (end - start).days

    def holds(self, other: Stretch) -> bool:
        """Whether all of the other lies in it."""
        after = self.start is None or (other.start is not None and self.start <= other.start)
        return after and (self.end is None or (other.end is not None and other.end <= self.end))


def joined(one: Stretch, other: Stretch) -> Stretch:
    """The narrower if it lies in the other, of `since …` and `until …` what they share, else the hull."""
    if one.holds(other) or other.holds(one):
        return other if one.holds(other) else one
    for first, last in ((one, other), (other, one)):
        if first.end is None and last.start is None and first.start and last.end and first.start < last.end:
            return Stretch(first.start, last.end)
    return hull(one, other)


def hull(one: Stretch, other: Stretch) -> Stretch:
    """From the earlier start to the later end."""
    starts, ends = (one.start, other.start), (one.end, other.end)
    start = None if None in starts else min(each for each in starts if each)
    return Stretch(start, None if None in ends else max(each for each in ends if each))


@dataclass(frozen=True, slots=True)
class Cycle:
    """What repeats. `at(turn)` is its occurrence in a turn, `turn(day)` the turn that a day lies in.

    A turn is a year, a month or a week, by its number. `at` raises ValueError where there is none.
    `today` says whether "on …" may mean today: not of a weekday, for who means today says so.
    """

    at: Callable[[int], Stretch]
    turn: Callable[[date], int]
    grain: str
    today: bool = True

    def near(self, day: date) -> list[Stretch]:
        """The occurrences around a day, in order."""
        found, now = [], self.turn(day)
        for turn in range(now - 12, now + 13):
            with suppress(ValueError, OverflowError):
                found.append(self.at(turn))
        return found

    def begun(self, day: date) -> Stretch:
        """The latest that has begun."""
        last = day if self.today else day - DAY
        return _at([each for each in self.near(day) if each.parts()[0] <= last], -1)

    def past(self, day: date, count: int = 1) -> Stretch:
        """The `count`-th back of those that are over."""
        if count <= 10:
            return _at([each for each in self.near(day) if each.parts()[1] <= day], -count)
        newest = self.turn(self.past(day).parts()[0])
        return self.at(newest - count + 1)

    def coming(self, day: date, count: int = 1) -> Stretch:
        """The `count`-th of those that have not begun."""
        return _at([each for each in self.near(day) if each.parts()[0] > day], count - 1)

    def this(self, day: date) -> Stretch:
        """The one that a day lies in, else that of the day's turn."""
        for each in self.near(day):
            start, end = each.parts()
            if start <= day < end:
                return each
        return self.at(self.turn(day))

    def within(self, container: Stretch) -> Stretch | None:
        """The first that begins in a stretch, or None."""
        start, end = container.parts()
        near = [each for each in self.near(start) if start <= each.parts()[0] < end]
        return near[0] if near else None


def _at(found: list[Stretch], place: int) -> Stretch:
    if not -len(found) <= place < len(found):
        raise ValueError("the calendar ends before that")
    return found[place]


# -- single stretches -------------------------------------------------------------------------------------


def day(start: date) -> Stretch:
    return Stretch(start, start + DAY, "day")


def month(year: int, number: int) -> Stretch:
    start = date(year, number, 1)
    return Stretch(start, months_on(start, 1), "month")


def year(number: int) -> Stretch:
    return Stretch(date(number, 1, 1), date(number + 1, 1, 1), "year")


def months(year_: int, first: int, count: int, grain: str) -> Stretch:
    """So many months from the first of a month: a quarter, a half, a season."""
    start = date(year_, first, 1)
    return Stretch(start, months_on(start, count), grain)


def months_on(start: date, count: int) -> date:
    """So many months later, on the same day or the month's last."""
    years, number = divmod(start.year * 12 + start.month - 1 + count, 12)
    return date(years, number + 1, min(start.day, calendar.monthrange(years, number + 1)[1]))


def monday(of: date) -> date:
    return of - timedelta(days=of.weekday())


MONTHS_IN = {"month": 1, "quarter": 3, "half": 6, "year": 12, "decade": 120, "century": 1200}
DAYS_IN = {"day": 1, "week": 7, "fortnight": 14}


def shifted(from_: date, count: int, unit: str) -> date:
    """So many units later; months and longer keep the day of the month where they can."""
    if unit in MONTHS_IN:
        return months_on(from_, count * MONTHS_IN[unit])
    return from_ + timedelta(days=count * DAYS_IN[unit])


def unit_of(of: date, unit: str) -> Stretch:
    """The calendar's day, week (from Monday), weekend, month, quarter, half, year or decade around a day."""
    if unit == "weekend":
        start = monday(of) + 5 * DAY
        return Stretch(start, start + 2 * DAY, unit)
    if unit in ("week", "fortnight"):
        return Stretch(monday(of), monday(of) + WEEK, "week")
    if unit in ("month", "quarter", "half"):
        size = MONTHS_IN[unit]
        return months(of.year, (of.month - 1) // size * size + 1, size, unit)
    if unit in ("year", "decade"):
        first = of.year if unit == "year" else of.year // 10 * 10
        return Stretch(date(first, 1, 1), date(first + MONTHS_IN[unit] // 12, 1, 1), unit)
    return day(of)


def third(of: Stretch, part: int) -> Stretch:
    """The early (0), middle (1) or late (2) part of a stretch.

    Of a month ten days, ten days and the rest, of a year four months each; of a decade four years, three
    and three; of anything else thirds in whole days.
    """
    start, end = of.parts()
    if of.grain == "month":
        marks = [start, start + 10 * DAY, start + 20 * DAY, end]
    elif of.grain == "decade":
        marks = [start, *(date(start.year + n, 1, 1) for n in (4, 7)), end]
    elif of.grain in ("year", "quarter", "season"):
        size = (end.year * 12 + end.month - start.year * 12 - start.month) // 3
        marks = [months_on(start, n * size) for n in range(4)]
    elif of.grain == "week":
        marks = [start, start + 2 * DAY, start + 4 * DAY, end]
    else:
        marks = [start + timedelta(days=of.days * n // 3) for n in range(4)]
    return of if marks[part] == marks[part + 1] else Stretch(marks[part], marks[part + 1])


# -- what repeats -------------------------------------------------------------------------------------------


def yearly(at: Callable[[int], Stretch], grain: str) -> Cycle:
    return Cycle(at, lambda of: of.year, grain)


def monthly(number: int) -> Cycle:
    """The 3rd, of whatever month."""

    def at(turn: int) -> Stretch:
        return day(date(turn // 12, turn % 12 + 1, number))

    return Cycle(at, lambda of: of.year * 12 + of.month - 1, "day")


def weekday(number: int) -> Cycle:
    """A day of the week, Monday being 0."""

    def at(turn: int) -> Stretch:
        return day(date.fromordinal(turn * 7 + 1 + number))

    return Cycle(at, lambda of: (of.toordinal() - 1) // 7, "day", today=False)


def in_month(number: int, of_month: int) -> Cycle:
    return yearly(lambda turn: day(date(turn, of_month, number)), "day")


def nth_weekday(count: int, number: int, of_month: int) -> Callable[[int], Stretch]:
    """The `count`-th such weekday of a month in a year; -1 is the last."""

    def at(turn: int) -> Stretch:
        return count_in(month(turn, of_month), weekday(number), count)

    return at


def count_in(container: Stretch, cycle: Cycle, count: int) -> Stretch:
    """The `count`-th occurrence that begins in a stretch, -1 the last. ValueError where there is none."""
    start, end = container.parts()
    found: list[Stretch] = []
    at = start
    while at < end and len(found) < 60:
        one = cycle.within(Stretch(at, end))
        if one is None:
            break
        found.append(one)
        at = one.parts()[0] + DAY
    if not found or abs(count) > len(found):
        raise ValueError("not so many in there")
    return replace(found[count - 1 if count > 0 else count])


def easter(of_year: int) -> date:
    """Easter Sunday, Gregorian: the algorithm of 1876 that Meeus gives in Astronomical Algorithms."""
    a, (b, c) = of_year % 19, divmod(of_year, 100)
    (d, e), f = divmod(b, 4), (b + 8) // 25
    h = (19 * a + b - d - (b - f + 1) // 3 + 15) % 30
    (i, k) = divmod(c, 4)
    m = (32 + 2 * e + 2 * i - h - k) % 7
    number, rest = divmod(h + m - 7 * ((a + 11 * h + 22 * m) // 451) + 114, 31)
    return date(of_year, number, rest + 1)
