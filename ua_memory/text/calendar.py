"""Date ranges, English time words, whether a word is meant as a date, and the days that a statement names."""

from __future__ import annotations

import calendar
import re
import tomllib
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, tzinfo
from typing import Literal

from ua_memory.text.patterns import data_text, late
from ua_memory.text.wording import around

# -- date ranges -------------------------------------------------------------------------------------------
# Date ranges and recurring dates: calendar arithmetic, without any words.
#
# A `DateSpan` is a range of days. A `Cycle` is a date that recurs, such as May, Friday or Christmas: which
# occurrence is meant depends on the words around it and on today.


DAY, WEEK = timedelta(days=1), timedelta(weeks=1)


@dataclass(frozen=True, slots=True)
class DateSpan:
    """Days from `start` to before `end`; None is open. `grain` is the calendar unit that it is ('' for none).

    `point` is the exact day where a range means "about then" (two weeks ago); "since" counts from it.
    """

    start: date | None
    end: date | None
    grain: str = ""
    point: date | None = None

    def bounds(self) -> tuple[date, date]:
        """(start, end). ValueError for an open range."""
        if self.start is None or self.end is None:
            raise ValueError("an open stretch has no parts")
        return self.start, self.end

    @property
    def days(self) -> int:
        start, end = self.bounds()
        return (end - start).days

    def contains(self, other: DateSpan) -> bool:
        """Whether it contains all of the other."""
        after = self.start is None or (other.start is not None and self.start <= other.start)
        return after and (self.end is None or (other.end is not None and other.end <= self.end))


def joined(one: DateSpan, other: DateSpan) -> DateSpan:
    """The narrower one if the other contains it, the overlap of `since …` and `until …`, else the hull."""
    if one.contains(other) or other.contains(one):
        return other if one.contains(other) else one
    for first, last in ((one, other), (other, one)):
        if first.end is None and last.start is None and first.start and last.end and first.start < last.end:
            return DateSpan(first.start, last.end)
    return hull(one, other)


def hull(one: DateSpan, other: DateSpan) -> DateSpan:
    """From the earlier start to the later end."""
    start_days, end_days = (one.start, other.start), (one.end, other.end)
    start = None if None in start_days else min(each for each in start_days if each)
    return DateSpan(start, None if None in end_days else max(each for each in end_days if each))


@dataclass(frozen=True, slots=True)
class Cycle:
    """A recurring date. `turn(day)` is the number of the year, month or week of a day, and `at(turn)` the
    occurrence in it; ValueError if it has none.

    `today` says whether "on …" may mean today. It is False for weekdays: people then say "today".
    """

    at: Callable[[int], DateSpan]
    turn: Callable[[date], int]
    grain: str
    today: bool = True

    def occurrences_near(self, day: date) -> list[DateSpan]:
        """The occurrences in the twelve turns before and after a day, in order."""
        found, now = [], self.turn(day)
        for turn in range(now - 12, now + 13):
            with suppress(ValueError, OverflowError):
                found.append(self.at(turn))
        return found

    def latest(self, day: date) -> DateSpan:
        """The latest occurrence that has begun."""
        last = day if self.today else day - DAY
        return _nth_of([each for each in self.occurrences_near(day) if each.bounds()[0] <= last], -1)

    def previous(self, day: date, count: int = 1) -> DateSpan:
        """The `count`-th last occurrence that is over."""
        if count <= 10:
            return _nth_of([each for each in self.occurrences_near(day) if each.bounds()[1] <= day], -count)
        newest = self.turn(self.previous(day).bounds()[0])
        return self.at(newest - count + 1)

    def upcoming(self, day: date, count: int = 1) -> DateSpan:
        """The `count`-th occurrence that has not begun."""
        return _nth_of([each for each in self.occurrences_near(day) if each.bounds()[0] > day], count - 1)

    def current(self, day: date) -> DateSpan:
        """The occurrence that contains a day, else the one in the day's turn."""
        for each in self.occurrences_near(day):
            start, end = each.bounds()
            if start <= day < end:
                return each
        return self.at(self.turn(day))

    def first_within(self, container: DateSpan) -> DateSpan | None:
        """The first occurrence that begins in a range, or None."""
        start, end = container.bounds()
        occurrences_near = [each for each in self.occurrences_near(start) if start <= each.bounds()[0] < end]
        return occurrences_near[0] if occurrences_near else None


def _nth_of(found: list[DateSpan], place: int) -> DateSpan:
    if not -len(found) <= place < len(found):
        raise ValueError("the calendar ends before that")
    return found[place]


# -- calendar units ----------------------------------------------------------------------------------------


def day(start: date) -> DateSpan:
    return DateSpan(start, start + DAY, "day")


def month(year: int, number: int) -> DateSpan:
    start = date(year, number, 1)
    return DateSpan(start, add_months(start, 1), "month")


def year(number: int) -> DateSpan:
    return DateSpan(date(number, 1, 1), date(number + 1, 1, 1), "year")


def months(year_: int, first: int, count: int, grain: str) -> DateSpan:
    """A range of whole months, such as a quarter, a half or a season."""
    start = date(year_, first, 1)
    return DateSpan(start, add_months(start, count), grain)


def add_months(start: date, count: int) -> date:
    """The same day `count` months later, or the last day of that month."""
    years, number = divmod(start.year * 12 + start.month - 1 + count, 12)
    return date(years, number + 1, min(start.day, calendar.monthrange(years, number + 1)[1]))


def monday(of: date) -> date:
    return of - timedelta(days=of.weekday())


MONTHS_IN = {"month": 1, "quarter": 3, "half": 6, "year": 12, "decade": 120, "century": 1200}
DAYS_IN = {"day": 1, "week": 7, "fortnight": 14}


def add_units(from_: date, count: int, unit: str) -> date:
    """The day `count` units later; months and longer units keep the day of the month if they can."""
    if unit in MONTHS_IN:
        return add_months(from_, count * MONTHS_IN[unit])
    return from_ + timedelta(days=count * DAYS_IN[unit])


def unit_around(of: date, unit: str) -> DateSpan:
    """The calendar day, week (from Monday), weekend, month, quarter, half, year or decade of a day."""
    if unit == "weekend":
        start = monday(of) + 5 * DAY
        return DateSpan(start, start + 2 * DAY, unit)
    if unit in ("week", "fortnight"):
        return DateSpan(monday(of), monday(of) + WEEK, "week")
    if unit in ("month", "quarter", "half"):
        size = MONTHS_IN[unit]
        return months(of.year, (of.month - 1) // size * size + 1, size, unit)
    if unit in ("year", "decade"):
        first = of.year if unit == "year" else of.year // 10 * 10
        return DateSpan(date(first, 1, 1), date(first + MONTHS_IN[unit] // 12, 1, 1), unit)
    return day(of)


def third_of(of: DateSpan, part: int) -> DateSpan:
    """The early (0), middle (1) or late (2) part of a range.

    Of a month ten days, ten days and the rest, of a year four months each; of a decade four years, three
    and three; of anything else thirds in whole days.
    """
    start, end = of.bounds()
    if of.grain == "month":
        marks = [start, start + 10 * DAY, start + 20 * DAY, end]
    elif of.grain == "decade":
        marks = [start, *(date(start.year + n, 1, 1) for n in (4, 7)), end]
    elif of.grain in ("year", "quarter", "season"):
        size = (end.year * 12 + end.month - start.year * 12 - start.month) // 3
        marks = [add_months(start, n * size) for n in range(4)]
    elif of.grain == "week":
        marks = [start, start + 2 * DAY, start + 4 * DAY, end]
    else:
        marks = [start + timedelta(days=of.days * n // 3) for n in range(4)]
    return of if marks[part] == marks[part + 1] else DateSpan(marks[part], marks[part + 1])


# -- recurring dates ---------------------------------------------------------------------------------------


def yearly(at: Callable[[int], DateSpan], grain: str) -> Cycle:
    return Cycle(at, lambda of: of.year, grain)


def monthly(number: int) -> Cycle:
    """A day of every month, such as the 3rd."""

    def at(turn: int) -> DateSpan:
        return day(date(turn // 12, turn % 12 + 1, number))

    return Cycle(at, lambda of: of.year * 12 + of.month - 1, "day")


def weekday(number: int) -> Cycle:
    """A day of the week, Monday being 0."""

    def at(turn: int) -> DateSpan:
        return day(date.fromordinal(turn * 7 + 1 + number))

    return Cycle(at, lambda of: (of.toordinal() - 1) // 7, "day", today=False)


def day_on_weekday(number: int, of_day: int, near: date) -> date | None:
    """The day of a month, nearest to another, that is such a weekday: `Friday 4`. None within 60 days."""
    days = (near + step * DAY for distance in range(61) for step in (distance, -distance))
    return next((each for each in days if (each.weekday(), each.day) == (number, of_day)), None)


def yearly_day(number: int, of_month: int) -> Cycle:
    return yearly(lambda turn: day(date(turn, of_month, number)), "day")


def nth_weekday(count: int, number: int, of_month: int) -> Callable[[int], DateSpan]:
    """The `count`-th such weekday of a month in a year; -1 is the last."""

    def at(turn: int) -> DateSpan:
        return nth_in(month(turn, of_month), weekday(number), count)

    return at


def nth_in(container: DateSpan, cycle: Cycle, count: int) -> DateSpan:
    """The `count`-th occurrence that begins in a range, -1 the last. ValueError if there is none."""
    start, end = container.bounds()
    found: list[DateSpan] = []
    at = start
    while at < end and len(found) < 60:
        one = cycle.first_within(DateSpan(at, end))
        if one is None:
            break
        found.append(one)
        at = one.bounds()[0] + DAY
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


# -- tokens ------------------------------------------------------------------------------------------------
# The time words of English, and the tokenizer of the date grammar.
#
# Words joined to other characters (`port:2019`, `src/may.py`, `3.12`, `#5`, `$2019`) are no time words.


def word_tuple(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


MONTHS = {name.lower(): n for n, name in enumerate(calendar.month_name) if n}
SHORT_MONTHS = {name.lower(): n for n, name in enumerate(calendar.month_abbr) if n and name != "May"}
SHORT_MONTHS |= {"sept": 9}
ALL_MONTHS = MONTHS | SHORT_MONTHS
WEEKDAYS = {name.lower(): n for n, name in enumerate(calendar.day_name)}
A_MONTH = "(?:" + "|".join(sorted(ALL_MONTHS, key=len, reverse=True)) + ")"
"""The pattern of an English month, in full or shortened."""
A_WEEKDAY = "(?:" + "|".join(WEEKDAYS) + ")"
SHORT_WEEKDAYS = {name.lower(): n for n, name in enumerate(calendar.day_abbr)}
SHORT_WEEKDAYS |= {"tues": 1, "thur": 3, "thurs": 3}
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The first month of each, in the northern half: three whole months, as meteorology counts them."""

_ONES = word_tuple(
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
)
_TENS = word_tuple("twenty thirty forty fifty sixty seventy eighty ninety")
TENS = {word: n * 10 for n, word in enumerate(_TENS, 2)}
ONES = {word: n for n, word in enumerate(_ONES, 1)}
NUMBERS = ONES | TENS | {"a": 1, "an": 1, "couple": 2, "few": 3, "several": 5, "dozen": 12}
_ORDINALS = word_tuple(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth"
    " fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
ORDINALS = {word: n for n, word in enumerate(_ORDINALS, 1)}
ORDINALS |= {"thirtieth": 30}

_UNITS = word_tuple("second minute hour day night week fortnight month quarter year decade weekend")
UNITS = {name: name for name in _UNITS} | {f"{name}s": name for name in _UNITS}
UNITS |= {"hr": "hour", "hrs": "hour", "min": "minute", "mins": "minute", "wk": "week", "wks": "week"}
UNITS |= {"yr": "year", "yrs": "year", "night": "day", "nights": "day"}
DAYTIMES = {"morning", "afternoon", "evening", "night", "noon", "midday", "midnight", "lunchtime", "nite"}
DECADES = {"fifties": 50, "sixties": 60, "seventies": 70, "eighties": 80, "nineties": 90}

LAST = {"last", "past", "previous", "prior"}
THIS = {"this", "current"}
NEXT = {"next", "coming", "upcoming", "following"}
EARLY = {"early", "beginning", "start"}
LATE = {"late", "end"}
MIDDLE = {"mid", "middle"}
PART = dict.fromkeys(EARLY, 0) | dict.fromkeys(MIDDLE, 1) | dict.fromkeys(LATE, 2)

_DATE = (
    r"(?:19|20)\d\d-\d\d?-\d\d?(?:T\d\d:?\d\d(?::?\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?"
    r"|(?:19|20)\d\d-\d\d(?!\d)|(?:19|20)\d\d-?W\d\d(?:-?[1-7])?|(?:19|20)\d\d-?[QH]\d|[QH]\d-(?:19|20)\d\d"
    r"|(?:19|20)\d\d[/.]\d\d?[/.]\d\d?|\d\d?(?P<sep>[/.-])\d\d?(?P=sep)(?:19|20)\d\d|\d\d?/(?:19|20)\d\d"
    r"|\d\d?-[A-Za-z]{3,9}-(?:19|20)\d\d|\d\d?/\d\d?"
)
_KINDS = (
    ("date", _DATE),
    ("clock", r"\d{1,2}:\d\d(?::\d\d)?(?:[ap]m|Z)?|\d{1,2}[ap]\.?m\.?|\d{1,2}h"),
    ("ordinal", r"\d{1,3}(?:st|nd|rd|th)"),
    ("decade", r"['’]?\d0['’]?s|(?:19|20)\d0['’]?s"),
    ("quarter", r"[QH][1-4]|[1-4][QH]"),
    ("calendarweek", r"W[0-5]?\d"),
    ("number", r"\d{1,4}|['’]\d\d"),
    ("word", r"[^\W\d_]+(?:['’][^\W\d_]+)*['’]?"),
    ("dash", "[-–—/]|\\.\\."),
)
_TOKEN = late("|".join(f"(?P<{name}>{pattern})" for name, pattern in _KINDS), re.IGNORECASE)
_WHOLE_DATE = late(_DATE, re.IGNORECASE)
_CHUNK = late(r"\S+")
_OPENS, _CLOSES = "([{<\"“„‘'«¿¡*_`", ")]}>\"”“’'»,.;:!?…*_`"
_COMPOUND = late(
    r"[^\W_]+(?:['’][^\W_]+)*(?:(?:-|–|—|/|\.\.)['’]?[^\W_]+)+|(?:\d{4}-\d\d-\d\d)(?:/|\.\.|–|—)(?:\d{4}-\d\d-\d\d)"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token: `kind` is word, number, …, `mark` for punctuation, or `other` for words joined to characters.

    `low` is the word in lower case, without the `'s` if it `is_genitive`. It is `text[at:to]` of the input.
    """

    kind: str
    text: str
    low: str
    at: int
    to: int
    is_genitive: bool = False

    @property
    def is_capitalised(self) -> bool:
        return self.text[:1].isupper()


def tokenize(text: str) -> list[Token]:
    """The tokens of a text, in order."""
    found: list[Token] = []
    for chunk in _CHUNK.finditer(text):
        at, to = chunk.span()
        while at < to and text[at] in _OPENS and not _decade_at(text, at):
            found.append(Token("mark", text[at], text[at], at, at + 1))
            at += 1
        end = to
        while end > at and text[end - 1] in _CLOSES:
            end -= 1
        found += _tokenize_chunk(text, at, end)
        found += [Token("mark", text[n], text[n], n, n + 1) for n in range(end, to)]
    return found


def _decade_at(text: str, at: int) -> bool:
    return text[at] in "'‘’" and re.match(r".\d\d(?:s\b|(?!\w))", text[at:]) is not None


def _tokenize_chunk(text: str, at: int, to: int) -> list[Token]:
    core = text[at:to]
    if not core:
        return []
    whole = _TOKEN.fullmatch(core)
    if whole and whole.lastgroup:
        return [_make_token(_token_kind(whole), core, at)]
    if _COMPOUND.fullmatch(core) and (cut_up := _split_compound(core, at)):
        return cut_up
    return [Token("other", core, core.lower(), at, to)]


def _split_compound(core: str, at: int) -> list[Token]:
    """The tokens of `mid-May`, `3–9`, `2019–2021`, `twenty-one`; empty if a piece is no token."""
    if core.count("/") > 1 and not _WHOLE_DATE.match(core):
        return []  # a path
    found, n = [], 0
    while n < len(core):
        match = _TOKEN.match(core, n)
        if not match or (match.end() < len(core) and match[0][-1].isalnum() and core[match.end()].isalnum()):
            return []
        found.append(_make_token(_token_kind(match), match[0], at + n))
        n = match.end()
    return found


def _token_kind(match: re.Match[str]) -> str:
    return next(name for name, _ in _KINDS if match[name] is not None)


def _make_token(kind: str, text: str, at: int) -> Token:
    low = text.lower().replace("’", "'")
    owns = kind == "word" and low.endswith(("'s", "s'"))
    if owns:
        low = low[:-2] if low.endswith("'s") else low[:-1]
    return Token(kind, text, low, at, at + len(text), owns)


# -- grammar -----------------------------------------------------------------------------------------------
# The input of the grammar's rules: tokens, and the day that they are read on.


Time = DateSpan | Cycle
Found = tuple[Time, int]
"""(a time, the index of the token after it)."""


@dataclass(frozen=True, slots=True)
class DateText:
    """Tokens, and `now` in the time zone of the reader; `month_first` reads 3/5/2026 as the 5th of March."""

    tokens: tuple[Token, ...]
    now: datetime
    zone: tzinfo | None
    month_first: bool = False

    @classmethod
    def of(cls, text: str, now: datetime, zone: tzinfo | None, month_first: bool) -> DateText:
        return cls(tuple(tokenize(text)), now, zone, month_first)

    @property
    def today(self) -> date:
        return self.now.date()

    def __len__(self) -> int:
        return len(self.tokens)

    def low(self, i: int) -> str:
        """A token in lower case; '' outside of the text."""
        return self.tokens[i].low if 0 <= i < len(self.tokens) else ""

    def kind(self, i: int) -> str:
        return self.tokens[i].kind if 0 <= i < len(self.tokens) else ""

    def is_capitalised(self, i: int) -> bool:
        return 0 <= i < len(self.tokens) and self.tokens[i].is_capitalised

    def is_genitive(self, i: int) -> bool:
        return 0 <= i < len(self.tokens) and self.tokens[i].is_genitive

    def after(self, i: int, *word_set: str) -> int:
        """The index after these words in sequence, or `i` if they are not there."""
        here = all(self.low(i + n) == word for n, word in enumerate(word_set))
        return i + len(word_set) if here else i

    def skip(self, i: int, word_set: Container[str]) -> int:
        """The index after one of these words, or `i` if none is there."""
        return i + 1 if self.low(i) and self.low(i) in word_set else i

    def count(self, i: int) -> tuple[int, int] | None:
        """(a count such as `3`, `three`, `twenty-one`, `a couple of`; the index after it)."""
        i = self.skip(i, ("another", "about", "around", "roughly", "almost", "nearly"))
        if self.kind(i) == "number" and self.low(i).isdigit():
            return int(self.low(i)), i + 1
        word = self.low(i)
        if word in TENS and self.kind(i + 1) == "dash" and NUMBERS.get(self.low(i + 2), 99) < 10:
            return TENS[word] + NUMBERS[self.low(i + 2)], i + 3
        if word not in NUMBERS:
            return None
        if word in ("a", "an") and self.low(i + 1) in ("couple", "few", "dozen"):
            i, word = i + 1, self.low(i + 1)
        return NUMBERS[word], self.skip(i + 1, ("of",)) if word in ("couple", "dozen") else i + 1

    def ordinal(self, i: int) -> tuple[int, int] | None:
        """(an ordinal such as `3rd`, `third`, `twenty-first`; the index after it)."""
        if self.kind(i) == "ordinal":
            return int(self.low(i)[:-2]), i + 1
        word = self.low(i)
        if word in TENS and self.kind(i + 1) == "dash" and ORDINALS.get(self.low(i + 2), 99) < 10:
            return TENS[word] + ORDINALS[self.low(i + 2)], i + 3
        return (ORDINALS[word], i + 1) if word in ORDINALS else None


Rule = Callable[[DateText, int], Found | None]
"""Reads a time that begins at a token; None if there is none. ValueError for a day that no calendar has."""


def longest(text: DateText, i: int, *rules: Rule) -> Found | None:
    """The result of the rule that reads the most tokens, the first of equals."""
    best: Found | None = None
    for rule in rules:
        try:
            found = rule(text, i)
        except (ValueError, OverflowError):  # the 31st of February, the year 20000
            continue
        if found and (best is None or found[1] > best[1]):
            best = found
    return best


# -- holidays ----------------------------------------------------------------------------------------------


def _easter_offset(days: int) -> Callable[[int], DateSpan]:
    return lambda of: day(easter(of) + timedelta(days=days))


def _days_after(at: Callable[[int], DateSpan], days: int) -> Callable[[int], DateSpan]:
    return lambda of: day(at(of).bounds()[0] + days * DAY)


_THANKSGIVING = nth_weekday(4, 3, 11)


def _fixed(of_month: int, of_day: int) -> Callable[[int], DateSpan]:
    return lambda of: day(date(of, of_month, of_day))


HOLIDAYS: dict[str, Callable[[int], DateSpan]] = {
    "christmas": _fixed(12, 25), "christmas day": _fixed(12, 25), "xmas": _fixed(12, 25),
    "christmas eve": _fixed(12, 24), "boxing day": _fixed(12, 26), "new year's eve": _fixed(12, 31),
    "new year": _fixed(1, 1), "new year's": _fixed(1, 1), "new year's day": _fixed(1, 1),
    "new years": _fixed(1, 1),
    "new years eve": _fixed(12, 31), "new years day": _fixed(1, 1), "nye": _fixed(12, 31),
    "valentine's day": _fixed(2, 14), "valentines day": _fixed(2, 14), "halloween": _fixed(10, 31),
    "st patrick's day": _fixed(3, 17), "epiphany": _fixed(1, 6), "all saints' day": _fixed(11, 1),
    "easter": _easter_offset(0), "easter sunday": _easter_offset(0), "easter monday": _easter_offset(1),
    "good friday": _easter_offset(-2), "palm sunday": _easter_offset(-7),
    "ash wednesday": _easter_offset(-46),
    "pentecost": _easter_offset(49), "whit monday": _easter_offset(50), "ascension day": _easter_offset(39),
    "thanksgiving": _THANKSGIVING, "thanksgiving day": _THANKSGIVING,
    "black friday": _days_after(_THANKSGIVING, 1),
    "cyber monday": _days_after(_THANKSGIVING, 4), "labor day": nth_weekday(1, 0, 9),
    "memorial day": nth_weekday(-1, 0, 5), "mother's day": nth_weekday(2, 6, 5),
    "father's day": nth_weekday(3, 6, 6),
    "martin luther king day": nth_weekday(3, 0, 1), "mlk day": nth_weekday(3, 0, 1),
}  # fmt: skip
"""Holidays by name: one day each. Civil holidays without a fixed date are those of the United States."""


# -- context -----------------------------------------------------------------------------------------------
# The words around a time word: which of them begin a date, end one, or show that it is none.


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


TIME_WORDS = tomllib.loads(data_text("english_times.toml"))
"""The tables of `data/english_times.toml`."""
IN_WORDS = word_set("in during over since until till throughout through across circa within into")
EDGES = word_set(
    "from by before after to around between and or for at on about of starting ending through up than"
)
SELECTORS = LAST | THIS | NEXT | EARLY | LATE | MIDDLE | {"earlier", "later"}
EACH = word_set("every each any man most many some per all no another one two")
PHRASE_ENDS = word_set(TIME_WORDS["closed"])
"""Words that follow a complete date. A noun would make the date a part of something else."""
PRONOUNS = word_set("i i'm i've i'd i'll we you he she they it")
COUNTED = word_set(TIME_WORDS["counted"])
"""Nouns after a count: `in 2019 files`, `May 3 people join`."""
NUMBERED = word_set(TIME_WORDS["numbered"])
"""Nouns before a number that is no date: `port 2019`, `Office 2019`."""
YEARLY = word_set(TIME_WORDS["yearly"])
"""Nouns before or after a year: `budget 2025`, `2026 goals`."""
TIMES_OF = word_set(TIME_WORDS["times_of"])
NOT_AFTER_SEASON = word_set(TIME_WORDS["not_of_season"])
NOT_AFTER_DAY = word_set(TIME_WORDS["not_of_day"])


def may_end(text: DateText, i: int) -> bool:
    """Whether a phrase may end before a token: at the end, a mark, or a word that cannot be its noun."""
    return i >= len(text) or text.kind(i) == "mark" or text.low(i) in PHRASE_ENDS or is_subject(text, i)


def is_subject(text: DateText, i: int) -> bool:
    """Whether a token is a capitalised word: most likely the subject of the sentence."""
    return text.kind(i) == "word" and text.is_capitalised(i) and not text.tokens[i].text.isupper()


_BEFORE_OF = SELECTORS | word_set("half month week day quarter")


def word_before(text: DateText, i: int) -> str:
    """The word before a token, skipping articles and dashes."""
    i -= 1
    while i >= 0 and (text.low(i) in ("the", "of", "a") or text.kind(i) == "dash"):
        if text.low(i) == "of" and text.low(i - 1) not in _BEFORE_OF:
            break
        i -= 1
    return text.low(i)


PARTS = EARLY | LATE | MIDDLE


def is_of_year(text: DateText, j: int) -> bool:
    """Whether `last year` or `of this year` follows, after a month or a season."""
    j = j + (text.low(j) == "of")
    return text.low(j) in ("last", "this", "next") and text.low(j + 1) == "year"


def joins_month(text: DateText, j: int) -> bool:
    return text.low(j + 1) in ALL_MONTHS


def ends_unnamed(text: DateText, j: int) -> bool:
    """Whether a phrase ends here and no name follows: `by May`, not `by May Smith`."""
    return may_end(text, j) and not (is_subject(text, j) and text.low(j) not in PRONOUNS)


def is_yearlike(text: DateText, j: int) -> bool:
    return text.kind(j) == "number" and len(text.low(j)) == 4


# -- months ------------------------------------------------------------------------------------------------
# Whether a month's name is a month: May the month, the name or the verb; `3 May` or `may 3 people join`.


_MONTH_PARTS = word_set(
    """week weeks weekend half month day days end start beginning middle part third quarter morning evening
    monday tuesday wednesday thursday friday saturday sunday"""
)
"""Parts of a month: `the first week of May`."""
_UNAMBIGUOUS = word_set("january february july september october november december")


def is_month(text: DateText, i: int, j: int) -> bool:
    """Whether a month's name without a day or a year is the month."""
    word, low_case = text.low(i), not text.is_capitalised(i)
    if text.low(i - 1) in EACH or (
        text.kind(j) == "dash" and text.low(j) == "-" and not joins_month(text, j)
    ):
        return False
    before = word_before(text, i)
    if word in _UNAMBIGUOUS:
        is_name = is_subject(text, j) and text.low(j) not in PRONOUNS
        return not is_name or before in IN_WORDS | SELECTORS | EDGES
    if text.tokens[i].text.isupper() and len(word) <= 4:
        return False
    if text.kind(j) == "dash" and joins_month(text, j) and not low_case:
        return True
    if len(word) <= 4 and word in ALL_MONTHS and word not in ("may", "june"):
        begins = before in IN_WORDS | SELECTORS | word_set("from to and between by before after")
        return begins and may_end(text, j)
    if i == 0 and j + (text.kind(j) == "mark") >= len(text):
        return True
    if text.is_genitive(i):
        return before in SELECTORS
    if text.low(i - 1) == "of" and text.low(i - 2) in _MONTH_PARTS:
        return True
    return _month_or_name(text, i, j, before, low_case)


def _month_or_name(text: DateText, i: int, j: int, before: str, low_case: bool) -> bool:
    """`is_month` for March, April, May, June and August, which may be a verb, a name or an adjective."""
    direct = text.low(i - 1)
    if is_of_year(text, j):
        return True
    if before in SELECTORS or before in IN_WORDS:
        if low_case and text.low(i) in ("may", "march", "august"):
            return may_end(text, j) and not _is_other_word(text, j, before)
        return not (direct == "the" and before in IN_WORDS and text.low(j) == "of")
    if text.low(j) in ("and", "or", "to", "through", "until", "till", "–", "-", "/") and joins_month(text, j):
        return before in EDGES or not low_case
    if before in EDGES and (not low_case or text.low(i) not in ("may", "march", "august")):
        person = before in ("by", "for", "to", "about", "at", "on", "of") and direct != "the"
        if before in ("and", "or", "to", "of"):
            dated = text.kind(i - 2) == "date" or is_yearlike(text, i - 2)
            return (
                dated
                or text.low(i - 2) in ALL_MONTHS
                or (before == "of" and text.low(i - 2) in ("end", "start", "month"))
            )
        return (not person or before == "by") and ends_unnamed(text, j)
    if before in word_set("from before after between") and low_case:
        return j >= len(text) or text.kind(j) == "mark"
    return (
        direct == "the"
        and not low_case
        and text.kind(j) == "word"
        and not text.is_capitalised(j)
        and not may_end(text, j)
    )


def _is_other_word(text: DateText, j: int, before: str) -> bool:
    """Whether the next word makes a month's name a verb or noun: `this may be`, `the last march of`."""
    return before in SELECTORS and text.low(j) in word_set(
        "be have not also only of on to do still just never always already at again towards toward as out"
    )


def is_day_after_month(text: DateText, i: int, at: int, j: int) -> bool:
    """Whether `May 3` is a date: not `May 3 people join`, `march 3 miles`, nor `May 3–5 be enough`."""
    if text.kind(at) == "number" and text.low(j) in COUNTED:
        return text.low(i - 1) in ("on", "since") and text.low(j) != "of"
    if text.kind(j) == "clock" or text.kind(at) != "number":
        return text.is_capitalised(i) or text.low(at) == "the" or text.kind(at) == "ordinal"
    if text.low(i) in ("may", "march") and not text.is_capitalised(i):
        return (
            text.low(i - 1) in IN_WORDS | EDGES
            or may_end(text, j)
            or text.low(j) in ("-", "–")
            or is_yearlike(text, j)
        )
    if len(text.low(i)) == 3 and text.low(i) != "may" and not text.is_capitalised(i):
        return text.low(i) != "mar" or text.low(i - 1) in IN_WORDS | EDGES
    return not (text.low(i) in ("may", "will") and text.low(j) in ("be", "have"))


def is_day_before_month(text: DateText, i: int, at: int, j: int) -> bool:
    """Whether `3 May` is a date: not `version 3 may break`, `all 3 may`, `the second may`."""
    spelt = text.ordinal(text.skip(i, ("the",))) is not None
    if not text.is_capitalised(at) and text.low(at) in ("may", "march", "august"):
        of = text.low(at - 1) == "of"
        return (
            of
            or is_yearlike(text, j)
            or j >= len(text)
            or text.kind(j) == "mark"
            or (
                text.low(i - 1) in word_set("on since until till by from before after between and to through")
                and not _is_other_word(text, j, "last")
                and may_end(text, j)
            )
        )
    if text.low(i - 1) in NUMBERED and not spelt:
        return False
    name = (
        is_subject(text, j)
        and text.low(j) not in PRONOUNS
        and text.low(at) in ("may", "april", "june", "august")
    )
    return not (name and text.low(at - 1) != "of" and text.low(i - 1) not in ("on", "since", "until", "by"))


def is_bare_ordinal(text: DateText, at: int) -> bool:
    """`on the 3rd`, `since the 3rd?`; not `on the 3rd floor`, `the 3rd attempt`."""
    begins = text.low(at - 2) in ("on", "since", "until", "till", "before", "after", "by")
    return begins and (
        may_end(text, at + 1)
        and text.low(at + 1) not in ("of", "in", "and", "or")
        and not is_subject(text, at + 1)
    )


# -- weekdays, seasons, quarters ---------------------------------------------------------------------------
# Whether the name of a weekday, season, quarter or holiday is one: spring, or spring boot?


def is_weekday(text: DateText, i: int, j: int) -> bool:
    """Whether a weekday is a day: `on Friday`, `Friday we`; not `Sunday roast`, `each Monday`, `a Friday`."""
    word, before = text.low(i), word_before(text, i)
    if (
        text.low(i - 1) in EACH | {"a"}
        or text.low(j) in NOT_AFTER_DAY
        or (text.kind(j) == "dash" and text.low(j + 1) not in WEEKDAYS)
    ):
        return False
    if (text.low(j) == "the" and text.kind(j + 1) == "ordinal") or text.low(j + 1) in (
        "lights",
        "live",
        "fever",
    ):
        return False
    if word not in WEEKDAYS:
        by = before in word_set("on last next this since until till by from past before after to and")
        return by and text.is_capitalised(i) and ends_unnamed(text, j) and not text.tokens[i].text.isupper()
    if text.low(i - 1) == "the":
        before = text.low(i - 2) if may_end(text, j) or text.low(j) in DAYTIMES else ""
    if before in IN_WORDS | EDGES | SELECTORS and before not in ("for", "about", "of", "in", "at", "into"):
        return True
    if text.is_genitive(i) or text.low(j) in DAYTIMES or text.kind(j) == "clock":
        return not is_subject(text, i - 1)
    named = (is_subject(text, i - 1) and (i > 1 or (j == len(text) and text.is_capitalised(i)))) or (
        is_subject(text, j) and text.low(j) not in PRONOUNS
    )
    return may_end(text, j) and not named and text.low(i - 1) != "the"


def is_weekend(text: DateText, i: int) -> bool:
    """`over the weekend`, not `the weekend edition`, `the weekend in Rome`, nor `the weekend of`, whose own
    rule reads more."""
    placed = text.low(i + 1) in ("in", "at") and text.is_capitalised(i + 2)
    placed = placed and not (text.low(i + 2) in ALL_MONTHS or text.low(i - 2) in IN_WORDS)
    return may_end(text, i + 1) and not placed and text.low(i + 1) not in ("of", "before", "after")


def is_season(text: DateText, i: int, j: int) -> bool:
    """Whether a season without a year is a time: `over the summer`; not `spring boot`, `fall back`."""
    before, direct, word = word_before(text, i), text.low(i - 1), text.low(i)
    if text.low(j) in NOT_AFTER_SEASON or text.kind(j) == "dash" or text.tokens[i].text.isupper():
        return False
    if direct in EACH or text.kind(i - 1) == "dash":
        return direct in ("-", "–") and text.low(i - 2) in MIDDLE
    if is_of_year(text, j):
        return True
    if (text.low(j) in ("or", "and", "to") and text.low(j + 1) in SEASONS) and before not in EACH:
        return text.kind(j + 2) == "number" or before in IN_WORDS | EDGES
    then = text.low(j) in TIMES_OF or may_end(text, j)
    if before in SELECTORS:
        mine = text.low(i - 2) in ("my", "his", "her", "their", "its", "our", "your") and not then
        return not mine and not (word == "fall" and text.low(i - 2) in ("her", "his", "my", "its"))
    if before == "of" or (text.low(j) == "of" and text.low(j + 1) not in ("last", "this", "that", "next")):
        return text.low(i - 2) in ("end", "start", "beginning", "middle", "half")
    if word == "fall" and (
        before not in word_set("in during over since until till by") or direct not in IN_WORDS | {"the"}
    ):
        return False
    if before in IN_WORDS | word_set("from by before after to around between and or") or direct == "that":
        linked = before not in ("and", "or", "to") or text.low(i - 2) in SEASONS
        is_name = is_subject(text, i) and is_subject(text, j)
        return then and linked and direct not in ("to", "a") and not is_name
    return False


def is_quarter(text: DateText, i: int) -> bool:
    """Whether `Q3` without a year is the quarter: `our Q3 goals`; not the car, not question 3, not `h1`."""
    if not text.is_capitalised(i) or (is_subject(text, i - 1) and not text.is_genitive(i - 1) and i > 1):
        return False
    before = word_before(text, i)
    if text.kind(i + 2) == "quarter" and (
        text.kind(i + 1) == "dash" or text.low(i + 1) in ("and", "to", "through", "or")
    ):
        return True
    if is_of_year(text, i + 1):
        return True
    if "h" in text.low(i):
        begins = before in IN_WORDS | SELECTORS | word_set("by before after from for to and")
        return begins and may_end(text, i + 1)
    owners = word_set("our my the their his her your did last's")
    return before in IN_WORDS | EDGES | SELECTORS | owners or text.is_genitive(i - 1)


def is_named_quarter(text: DateText, i: int, j: int) -> bool:
    """`in the third quarter`; not `a third quarter of the pie`."""
    if text.low(j) == "of":
        return text.kind(j + 1) == "number" and len(text.low(j + 1)) == 4
    return word_before(text, i) in IN_WORDS | EDGES and may_end(text, j)


def is_holiday(text: DateText, i: int, j: int) -> bool:
    """Whether a holiday's name is the day: `at Christmas`; not `Easter egg`, `every Christmas`."""
    if is_of_year(text, j):
        return True
    before = word_before(text, i)
    if text.low(i - 1) in EACH or text.kind(j) == "dash" or text.is_genitive(j - 1):
        return text.low(j - 1) in ("new year", "years") or (text.is_genitive(j - 1) and may_end(text, j))
    if before in SELECTORS or (i == 0 and j == len(text)):
        return text.low(j) not in ("egg", "eggs", "tree", "carol", "island")
    return before in IN_WORDS | EDGES and (may_end(text, j) or text.low(j) in TIMES_OF)


# -- years -------------------------------------------------------------------------------------------------
# Whether digits are a date: 2019 the year or the port, the 90s or a wait of 90s.
#
# In doubt they are no date: a wrong date range hides results, while a date that is not read only leaves a
# search as it was.


def is_numeric_date(text: DateText, i: int, j: int) -> bool:
    """Whether digits are a date by themselves; `5/3` never, and no `version 2026.05.03`."""
    shape = text.low(i)
    if shape.count("/") == 1 and len(shape) <= 5:
        return False
    if text.kind(i - 1) == "dash" and not (i >= 2 and text.kind(i - 2) == "date"):
        return False
    if text.kind(j) == "dash" and text.low(j) == "-":
        return False
    return text.low(i - 1) not in NUMBERED


def is_year(text: DateText, i: int, at: int) -> bool:
    """Whether four digits at `at` are a year; `i` is `at`, or the word "year" before them."""
    number, j, before = int(text.low(at)), at + 1, text.low(i - 1)
    if not _in_years(text.low(at)) or text.low(j) in COUNTED:
        return False
    if text.kind(j) == "quarter":
        return True
    if text.kind(j) == "dash" or text.kind(i - 1) == "dash":
        return _year_beside_dash(text, i, j)
    if i != at:
        return True
    if text.low(j) in ("to", "through", "until") and text.kind(j + 1) == "number" and before not in NUMBERED:
        return _in_years(text.low(j + 1)) and text.low(j + 2) not in COUNTED
    if before in IN_WORDS | LAST | THIS or (
        before in EDGES and before not in ("at", "on", "to", "for", "about", "than")
    ):
        return _year_after_preposition(text, at, before)
    if before == "to" and text.kind(at - 2) == "number" and text.low(at - 3) in NUMBERED:
        return False
    if before in ("to", "for", "about", "than") or before in SELECTORS:
        return may_end(text, j) and _is_plausible(text, number)
    if i == 0 and j + (text.kind(j) == "mark") >= len(text):
        return True
    return _is_plausible(text, number) and _year_by_noun(text, i, j, before)


def _in_years(word: str) -> bool:
    return len(word) == 4 and word.isdigit() and 1900 <= int(word) <= 2100


def _is_plausible(text: DateText, number: int) -> bool:
    return 1990 <= number <= text.today.year + 6


def _year_beside_dash(text: DateText, i: int, j: int) -> bool:
    """`2019–2021` and `mid-2025` have years, `2019-rc` and `item-2019` none."""
    left = text.low(i - 2) if text.kind(i - 1) == "dash" else ""
    right = text.low(j + 1) if text.kind(j) == "dash" else ""
    known = [word in SELECTORS or (len(word) == 4 and word.isdigit()) for word in (left, right) if word]
    return bool(known) and all(known)


_TOTALS = word_set("total maximum limit minimum size sum value")
_EVENTS = word_set("move meeting visit flood war strike audit migration release")
_EVENT_ENDINGS = tuple("tion sion ment ing ance ence party crisis crash outage launch tour".split())  # noqa: SIM905


def _year_after_preposition(text: DateText, at: int, before: str) -> bool:
    """`in 2019` but not `in 2019 files`, `by 2000 users`, `between 2000 and 3000`."""
    j = at + 1
    if (
        before in ("between", "from", "of")
        and text.low(j) in ("and", "to", "-")
        and text.kind(j + 1) == "number"
    ):
        return _in_years(text.low(j + 1)) and text.low(j + 2) not in COUNTED
    if before in ("and", "or"):
        return _in_years(text.low(at - 2))
    if before == "of" and text.low(at - 2) in _TOTALS:
        return False
    if before in ("by", "from", "after", "before", "of", "over", "within", "through", "up"):
        return may_end(text, j) or text.low(j) in YEARLY
    return True


def _year_by_noun(text: DateText, i: int, j: int, before: str) -> bool:
    """Whether a noun next to digits makes them a year: `my 2025 taxes`, `2026 goals`; not `room 2026`."""
    if before in NUMBERED:
        return False
    if text.low(j) in YEARLY or (before in YEARLY and may_end(text, j)):
        return True
    article = before in ("the", "my", "our", "your", "his", "her", "their") or text.is_genitive(i - 1)
    if text.low(j) in ("and", "or", "vs", "versus") and text.kind(j + 1) == "number":
        return False
    return (
        article
        and text.kind(j) == "word"
        and not text.is_capitalised(j)
        and not may_end(text, j)
        and _is_event_noun(text.low(j))
    )


def _is_event_noun(word: str) -> bool:
    """Whether a noun is an event: `my 2019 move` is about 2019, `my 2019 laptop` is not."""
    return word in _EVENTS or word.endswith(_EVENT_ENDINGS)


def is_year_after_name(text: DateText, i: int, j: int) -> bool:
    """Whether the year of `May 2019` is one: not in `May 2019 files`, `may 2019 be`."""
    verb = not text.is_capitalised(i) and text.low(i) == "may" and text.low(j) == "be"
    return text.low(j) not in COUNTED and not verb


def is_decade(text: DateText, i: int) -> bool:
    """`the 90s`, `the late 1990s`; not `in his nineties`, `90s music`, `low 20s` or `wait 30s`."""
    before, word = text.low(i - 1), text.low(i)
    if text.kind(i - 1) == "dash":
        before = text.low(i - 2)
    if any(token.low.startswith(("temperature", "degree")) for token in text.tokens):
        return False
    if text.tokens[i].text[0] in "'’" and may_end(text, i + 1):
        return True
    if before in PARTS:
        return len(text.low(i)) > 4 or text.low(i - 1) != "start"
    if word in ("00s", "10s", "20s", "30s"):
        return False
    named = before == "the" or (before in ("in", "since", "during") and len(word) >= 5)
    return named and may_end(text, i + 1)


def is_short_year(text: DateText, i: int) -> bool:
    """`in '19`, `since '24`."""
    begins = text.low(i - 1) in IN_WORDS | {"from", "by", "before", "after", "early", "late"}
    return begins and may_end(text, i + 1)


# -- tense -------------------------------------------------------------------------------------------------
# Whether a sentence speaks of a day as past or future, by the verb nearest to the day.
#
# Small tables, no grammar. Where no verb decides, `spans` takes the nearest such day.


Tense = Literal["past", "ahead", "open", ""]
"""`open`: a verb in the present, whose day may be past or future; '' if there is no verb."""

_AHEAD = TIME_WORDS["ahead"].replace("\n", "")
_IRREGULAR, _OPEN, _NO_VERB = ("|".join(TIME_WORDS[kind].split()) for kind in ("past", "open", "no_verb"))
_TENSE_CUE = late(
    rf"\b(?P<ahead>{_AHEAD})\b"
    rf"|\b(?P<no>(?:is|are|be)(?:n['’]t| not)? (?:\w+ed|{_IRREGULAR})|(?:planned|scheduled) for)\b"
    rf"|\b(?P<past>{_IRREGULAR}|(?:has|have) been|(?!(?:{_NO_VERB})\b)[a-z]{{2,}}ed)\b"
    rf"|\b(?P<open>{_OPEN}|(?:it|that)['’]s(?! been)|(?<=, )(?:its|thats))\b"
    r"|(?<!back )\b(?P<verb>(?-i:to (?:be )?[a-z]+))\b"
    r"(?<!to the)(?<!to a)(?<!to an)(?<!to my)(?<!to our)(?<!to his)(?<!to her)(?<!to their)(?<!to it)",
    re.IGNORECASE,
)
_MOTION = word_set("went came moved flew drove switched migrated upgraded changed returned")
"""Verbs after which "to" stands before a place, as in "we moved to dbt 2"."""
_CLAUSE_END = late(
    r"[;–]|[:,](?!\d|\s(?:on|in|at|from|since)(?: the)?\s*$)|\b(?:that|which|who|because|so|but)\b",
    re.IGNORECASE,
)
_BECAUSE = late(r"\bbecause\b[^,]*", re.IGNORECASE)
_SCHEDULED = late(
    r"\b(?:for|by|if|(?:agreed|settled) on"
    r"|(?:moved|postponed|pushed|put|rescheduled|delayed|deferred|extended|shifted|slipped)\b.{0,80}\bto)"
    r"(?: the| \w+day,?)?\s*$",
    re.IGNORECASE,
)
"""A day that something was booked or postponed for may be past or future, despite a verb in the past."""


def tense(text: str, at: int, to: int) -> Tense:
    """The tense of the day at `text[at:to]`: that of the last verb before it in its clause, else of the first
    verb after it in its sentence."""
    before, after = around(text, at, to)
    cues = [*_TENSE_CUE.finditer(_CLAUSE_END.split(before)[-1])]
    cues = cues or [*_TENSE_CUE.finditer(_BECAUSE.sub("", after.partition(";")[0]))][:1]
    if not cues:
        return ""
    if cues[-1]["verb"] and cues[1:] and cues[-2][0].lower() in _MOTION:
        cues.pop()
    if cues[-1]["past"]:
        return "open" if _SCHEDULED.search(before) else "past"
    return "ahead" if cues[-1]["ahead"] else "open"


# -- spans -------------------------------------------------------------------------------------------------
# The days that a statement names, relative to the day it was said on.
#
# Calendar dates in digits and words, the days around today, weekdays, and a number of days, weeks, months or
# years ago. It never guesses a day from a number alone. `dates` reads more, for queries.


@dataclass(frozen=True, slots=True)
class Span:
    """A date range named at `text[at:to]`: `start` to before `end`. It is not `sure` if it is a day without a
    year, and the sentence does not say whether it is past or future."""

    start: date
    end: date
    at: int
    to: int
    sure: bool = True

    @property
    def is_day(self) -> bool:
        return self.end - self.start == timedelta(days=1)


_NUMBERS = {word: n for word, n in NUMBERS.items() if word not in ("couple", "few", "several", "dozen")}
_NUMBERS |= {"zero": 0, "a couple of": 2, "a few": 3}

_MONTH = rf"(?P<month>{A_MONTH})\.?"
_DAY = r"(?P<day>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?"
_YEAR = r"(?:of\s+)?(?P<year>(?:19|20)\d\d|(?:last|this|next)\s+year)"
_COUNT = r"(?P<count>\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
_STEPS = {"last": -1, "this": 0, "next": 1}
_WEEKDAY = "(?P<weekday>" + "|".join(WEEKDAYS) + ")"
ALL_WEEKDAYS = WEEKDAYS | SHORT_WEEKDAYS
_OF_WEEKDAY = rf"(?:(?P<weekday>{'|'.join(ALL_WEEKDAYS)})\.?,?\s+(?:the\s+)?)?"

Reader = Callable[[re.Match[str], date], tuple[date, date] | None]


def spans(text: str, said_on: date) -> tuple[Span, ...]:
    """The dates that a text names, said on the day `said_on`; in order, without overlaps."""
    found: list[Span] = []
    for pattern, reader in _READERS:
        for match in pattern.finditer(text):
            if any(match.start() < span.to and span.at < match.end() for span in found):
                continue
            days = _read_match(reader, match, said_on)
            if days:
                sure = reader is not _day_of_month or match["year"] or _tense(match) in ("past", "ahead")
                found.append(Span(*days, match.start(), match.end(), bool(sure)))
    return tuple(sorted(found, key=lambda span: span.at))


def days(text: str, said_on: date) -> tuple[str, ...]:
    """The single days that a text names, as ISO days."""
    return tuple(span.start.isoformat() for span in spans(text, said_on) if span.is_day)


def _read_match(reader: Reader, match: re.Match[str], said_on: date) -> tuple[date, date] | None:
    try:
        return reader(match, said_on)
    except (ValueError, OverflowError):  # the 31st of February, the year 20000
        return None


def _day(start: date) -> tuple[date, date]:
    return start, start + timedelta(days=1)


def _iso(match: re.Match[str], said_on: date) -> tuple[date, date]:
    return _day(date(int(match["year"]), int(match["m"]), int(match["d"])))


def _day_of_month(match: re.Match[str], said_on: date) -> tuple[date, date]:
    month, day, year = ALL_MONTHS[match["month"].lower()], int(match["day"]), match["year"]
    if year:
        return _day(date(_year_named(year, said_on), month, day))
    near = in_nearby_years(said_on, month, day)
    weekday, how = ALL_WEEKDAYS.get((match["weekday"] or "").lower()), _tense(match)
    near = [one for one in near if one.weekday() == weekday] or near
    # "Decided on 3 March" is never next March's; where nothing tells, people mean the nearest one.
    told = [d for d in near if (d <= said_on if how == "past" else d >= said_on or how != "ahead")]
    return _day(min(told or near, key=lambda d: abs(d - said_on)))


def _tense(match: re.Match[str]) -> Tense:
    return tense(match.string, match.start(), match.end())


def in_nearby_years(said_on: date, month: int, day: int) -> list[date]:
    """A day of a month in the year of `said_on`, the year before and the year after, where it exists."""
    years = (said_on.year + n for n in (-1, 0, 1))
    return [date(year, month, day) for year in years if day <= calendar.monthrange(year, month)[1]]


def _year_named(name: str, said_on: date) -> int:
    return int(name) if name.isdigit() else said_on.year + _STEPS[name.split()[0].lower()]


def _month(match: re.Match[str], said_on: date) -> tuple[date, date]:
    start = date(_year_named(match["year"], said_on), ALL_MONTHS[match["month"].lower()], 1)
    return start, add_months(start, 1)


def _relative_day(match: re.Match[str], said_on: date) -> tuple[date, date]:
    steps = {
        "today": 0,
        "tonight": 0,
        "yesterday": -1,
        "last night": -1,
        "tomorrow": 1,
        "the day before yesterday": -2,
        "the day after tomorrow": 2,
    }
    return _day(said_on + timedelta(days=steps[" ".join(match[0].lower().split())]))


def _weekday(match: re.Match[str], said_on: date) -> tuple[date, date]:
    wanted, which = WEEKDAYS[match["weekday"].lower()], match["which"].lower()
    back = (said_on.weekday() - wanted) % 7
    if which == "last":
        return _day(said_on - timedelta(days=back or 7))
    if which == "next":
        return _day(said_on + timedelta(days=(7 - back) or 7))
    return _day(said_on - timedelta(days=said_on.weekday()) + timedelta(days=wanted))


def _ago(match: re.Match[str], said_on: date) -> tuple[date, date]:
    count_text = " ".join(match["count"].lower().split())
    count = int(count_text) if count_text.isdigit() else _NUMBERS[count_text]
    unit = match["unit"].lower()
    if unit == "day":
        return _day(said_on - timedelta(days=count))
    if unit == "week":
        return _day(said_on - timedelta(weeks=count))
    return _day(add_months(said_on, -count * (12 if unit == "year" else 1)))


def _this_or_next(match: re.Match[str], said_on: date) -> tuple[date, date]:
    step = _STEPS[match["which"].lower()]
    unit = match["unit"].lower()
    if unit == "week":
        monday = said_on - timedelta(days=said_on.weekday()) + timedelta(weeks=step)
        return monday, monday + timedelta(weeks=1)
    if unit == "month":
        start = add_months(said_on.replace(day=1), step)
        return start, add_months(start, 1)
    return date(said_on.year + step, 1, 1), date(said_on.year + step + 1, 1, 1)


def _readers() -> Iterator[tuple[re.Pattern[str], Reader]]:
    def at_word(pattern: str) -> re.Pattern[str]:
        return re.compile(rf"(?<![\w/.-])(?:{pattern})(?![\w/-])(?!\.\d)", re.IGNORECASE)

    yield at_word(rf"{_YEAR}-(?P<m>\d\d)-(?P<d>\d\d)(?=T|\b)(?:T[\d:.Z+-]*)?"), _iso
    yield at_word(rf"{_OF_WEEKDAY}{_MONTH}\s+{_DAY}(?:,?\s+{_YEAR})?"), _day_of_month
    yield at_word(rf"{_OF_WEEKDAY}{_DAY}(?:\s+of)?\s+{_MONTH}(?:,?\s+{_YEAR})?"), _day_of_month
    yield at_word(rf"(?<!\d\. )(?!(?-i:may|march)\s+\D){_MONTH}\s+{_YEAR}"), _month
    yield (
        at_word(
            r"the\s+day\s+before\s+yesterday|the\s+day\s+after\s+tomorrow|yesterday|today|tonight|last\s+night|tomorrow"
        ),
        _relative_day,
    )
    yield at_word(rf"(?P<which>last|this|next)\s+{_WEEKDAY}"), _weekday
    yield at_word(rf"{_COUNT}\s+(?P<unit>day|week|month|year)s?\s+ago"), _ago
    yield at_word(r"(?P<which>last|this|next)\s+(?P<unit>week|month|year)"), _this_or_next


_READERS = tuple(_readers())


# -- moments -----------------------------------------------------------------------------------------------
# Time words without an exact day: in december, this morning, next sprint, by Friday, the end of the month.


MONTH_NAMES = {name.casefold(): n for n, name in enumerate(calendar.month_name) if n}
_UNCLEAR = ("march", "may", "august")
_CLEARLY = "|".join(name for name in (*MONTH_NAMES, *WEEKDAYS) if name not in _UNCLEAR)
_PREPOSED = (
    r"(?:in|since|until|till|by|during|over|from|of|for|last|next|this|early|late|mid)[ \n-](?:the[ \n])?"
)
_MOMENT = late(
    r"\b(?P<phrase>(?:this|that|last|next|coming|past)[ \n]"
    r"(?:morning|afternoon|evening|night|noon|weekend|week|month|quarter|year|decade|century|sprint|semester))\b"
    rf"|\b(?P<clear>{_CLEARLY})s?\b"
    rf"|\b{_PREPOSED}(?P<doubtful>{'|'.join(_UNCLEAR)}|spring|summer|autumn|fall|winter|morning|afternoon|evening)s?\b"
    r"|\bat[ \n](?P<hour>noon|midnight|dawn|night)\b",
)
_DIRECTED = late(
    rf"\b(?:(?P<on>by|until|till|before)|(?P<back>since))[ \n](?P<day>{'|'.join(WEEKDAYS)})\b"
    r"|\bend[ \n]of[ \n](?:the|this)[ \n](?P<end>month|year)\b",
    re.IGNORECASE,
)


def moments(text: str) -> Iterator[str]:
    """The lower-case time words of a text; capitalised ones are read as names."""
    for match in _MOMENT.finditer(text):
        yield " ".join(next(filter(None, match.groups())).split())


def matches_range(moment: str, stretches: set[tuple[date, date]]) -> bool:
    """Whether one of these date ranges (start, and the day after the end) is in a month, or is a weekday, of
    this name."""
    if moment in WEEKDAYS:
        days = (start for start, end in stretches if (end - start).days == 1)
        return any(day.weekday() == WEEKDAYS[moment] for day in days)
    months = (start.month for start, end in stretches if (end - start).days < 32)
    return moment in MONTH_NAMES and MONTH_NAMES[moment] in months


def implied_days(text: str, said_on: date) -> Iterator[date]:
    """The days that words with a direction mean: "by Friday" is the first Friday after `said_on`, "since
    Monday" the last Monday before it, "the end of the month" that month's last day.

    "On Friday" is skipped, since it may be the last or the next.
    """
    for match in _DIRECTED.finditer(text):
        if match["end"]:
            month = said_on.month if match["end"].casefold() == "month" else 12
            yield date(said_on.year, month, calendar.monthrange(said_on.year, month)[1])
            continue
        off = (WEEKDAYS[match["day"].casefold()] - said_on.weekday()) % 7 or 7
        with suppress(OverflowError):  # there is no day before year 1 or after 9999
            yield said_on + timedelta(days=off if match["on"] else off - 7 if off < 7 else -7)
