"""Grammar rules for calendar dates and dates relative to today: `3/5/2026`, `next Tuesday`, `3 days ago`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import partial

from ua_memory.text.calendar import (
    ALL_MONTHS,
    DAY,
    DAYTIMES,
    DECADES,
    HOLIDAYS,
    LAST,
    MONTHS,
    MONTHS_IN,
    NEXT,
    SEASONS,
    SHORT_WEEKDAYS,
    THIS,
    UNITS,
    WEEK,
    WEEKDAYS,
    Cycle,
    DateSpan,
    DateText,
    Found,
    add_months,
    add_units,
    day,
    day_on_weekday,
    is_bare_ordinal,
    is_day_after_month,
    is_day_before_month,
    is_decade,
    is_holiday,
    is_month,
    is_named_quarter,
    is_numeric_date,
    is_quarter,
    is_season,
    is_short_year,
    is_weekday,
    is_weekend,
    is_year,
    is_year_after_name,
    longest,
    month,
    monthly,
    months,
    unit_around,
    weekday,
    year,
    yearly,
    yearly_day,
)
from ua_memory.text.patterns import late

# -- digits ------------------------------------------------------------------------------------------------
# Dates in digits: ISO forms, `3/5/2026`, years and decades.


def numeric_date(text: DateText, i: int) -> Found | None:
    if text.kind(i) == "calendarweek" and (of := year_at(text, i + 1)):
        return _week(of[0], int(text.low(i)[1:])), of[1]
    if text.kind(i) != "date" or not is_numeric_date(text, i, i + 1):
        return None
    for pattern, form in _NUMERIC_FORMS:
        if match := pattern.fullmatch(text.low(i)):
            found = form(match, text)
            return (found, i + 1) if found else None
    return None


def _iso_time(match: re.Match[str], text: DateText) -> DateSpan:
    at = datetime.fromisoformat(match[0].upper().replace(",", "."))
    return day((at.astimezone(text.zone) if at.tzinfo and text.zone else at).date())


def _week(of_year: int, number: int) -> DateSpan:
    start = date.fromisocalendar(of_year, number, 1)
    return DateSpan(start, start + WEEK, "week")


def _iso_week(match: re.Match[str], text: DateText) -> DateSpan:
    if match["d"]:
        return day(date.fromisocalendar(int(match["y"]), int(match["w"]), int(match["d"])))
    return _week(int(match["y"]), int(match["w"]))


def _day_and_month(match: re.Match[str], text: DateText) -> DateSpan:
    """`3/5/2026`: the number above 12 is the day, else the time zone decides. With dots the day is first."""
    first, second = int(match["a"]), int(match["b"])
    swap = second > 12 or (text.month_first and first <= 12 and match["sep"] != ".")
    of_month, number = (first, second) if swap else (second, first)
    return day(date(int(match["y"]), of_month, number))


def quarter_or_half(of: int | None, name: str) -> DateSpan | Cycle:
    letter, number = ("q", int(name.strip("q"))) if "q" in name else ("h", int(name.strip("h")))
    size, grain = (3, "quarter") if letter == "q" else (6, "half")
    if not 1 <= number <= 12 // size:
        raise ValueError(name)

    def at(turn: int) -> DateSpan:
        return months(turn, (number - 1) * size + 1, size, grain)

    return yearly(at, grain) if of is None else at(of)


def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_FormReader = Callable[[re.Match[str], DateText], DateSpan | Cycle | None]
_NUMERIC_FORMS: tuple[tuple[re.Pattern[str], _FormReader], ...] = (
    (_regex(r"\d{4}-\d\d-\d\dT.*"), _iso_time),
    (
        _regex(r"(?P<y>\d{4})([-/.])(?P<m>\d\d?)\2(?P<d>\d\d?)"),
        lambda m, t: day(date(int(m["y"]), int(m["m"]), int(m["d"]))),
    ),
    (_regex(r"(?P<y>\d{4})-(?P<m>\d\d)"), lambda m, t: month(int(m["y"]), int(m["m"]))),
    (_regex(r"(?P<m>\d\d?)/(?P<y>\d{4})"), lambda m, t: month(int(m["y"]), int(m["m"]))),
    (_regex(r"(?P<y>\d{4})-?W(?P<w>\d\d)(?:-?(?P<d>\d))?"), _iso_week),
    (_regex(r"(?P<y>\d{4})-?(?P<q>[QH]\d)"), lambda m, t: quarter_or_half(int(m["y"]), m["q"].lower())),
    (_regex(r"(?P<q>[QH]\d)-(?P<y>\d{4})"), lambda m, t: quarter_or_half(int(m["y"]), m["q"].lower())),
    (_regex(r"(?P<a>\d\d?)(?P<sep>[/.-])(?P<b>\d\d?)(?P=sep)(?P<y>\d{4})"), _day_and_month),
    (
        _regex(r"(?P<d>\d\d?)-(?P<m>[a-z]+)-(?P<y>\d{4})"),
        lambda m, t: day(date(int(m["y"]), _number(m["m"]), int(m["d"]))),
    ),
)


def _number(name: str) -> int:
    if name.lower() not in ALL_MONTHS:
        raise ValueError(name)
    return ALL_MONTHS[name.lower()]


def year_at(text: DateText, i: int) -> tuple[int, int] | None:
    """(year, index after it) right after a month, season or quarter: `2026`, `of 2026`, `'26`."""
    j = i + 1 if text.low(i) == "," or (text.low(i) == "of" and text.kind(i + 1) == "number") else i
    word = text.low(j)
    if text.kind(j) != "number" or (text.kind(j + 1) == "dash" and text.low(j + 1) == "/" and len(word) != 4):
        return None
    if len(word) == 4 and word[:2] in ("19", "20"):
        return int(word), j + 1
    if len(word) == 3 and word[0] in "'’":
        return 2000 + int(word[1:]), j + 1
    return None


def year_alone(text: DateText, i: int) -> Found | None:
    at = text.after(i, "year")
    word = text.low(at)
    if at == i and text.kind(at) == "number" and word[0] in "'’" and is_short_year(text, i):
        return year(2000 + int(word[1:])), at + 1
    if text.kind(at) != "number" or len(word) != 4 or not is_year(text, i, at):
        return None
    for name in (text.kind(at + 1) == "quarter") * (text.low(at + 1),):
        return quarter_or_half(int(word), name), at + 2
    return year(int(word)), at + 1


def decade(text: DateText, i: int) -> Found | None:
    word = text.low(i).replace("'", "")
    if text.kind(i) == "decade":
        figures = word.rstrip("s")
        first = int(figures) if len(figures) == 4 else (1900 if int(figures) >= 30 else 2000) + int(figures)
    elif word in DECADES:
        first = 1900 + DECADES[word]
    else:
        return None
    if not is_decade(text, i):
        return None
    return DateSpan(date(first, 1, 1), date(first + 10, 1, 1), "decade"), i + 1


# -- calendar dates ----------------------------------------------------------------------------------------
# Dates that a calendar names: digits, days of months, months, seasons, quarters, holidays.
#
# A name without a year is a `Cycle`. The `is_…` functions of `calendar` decide whether a word is such a name.


def anchor(text: DateText, i: int) -> Found | None:
    """A calendar date that begins at a token."""
    named = (_day_of_month, _month, _weekday, _season, _quarter, _holiday)
    return longest(text, i, numeric_date, *named, year_alone, decade, _nth)


def month_at(text: DateText, i: int) -> tuple[int, int] | None:
    """(number of a month, index after its name), with the dot of an abbreviation."""
    number = ALL_MONTHS.get(text.low(i)) if text.kind(i) == "word" else None
    if number is None:
        return None
    dotted = text.low(i + 1) == "." and text.low(i) in ("sept", *(n for n in ALL_MONTHS if len(n) == 3))
    return number, i + 1 + (dotted and i + 2 < len(text))


def day_at(text: DateText, i: int) -> tuple[int, int] | None:
    """(number of a day, index after it): `3`, `3rd`, `third`, `the 3rd`."""
    i = text.skip(i, ("the",))
    found = text.ordinal(i)
    if found is None and text.kind(i) == "number" and len(text.low(i)) <= 2:
        found = int(text.low(i)), i + 1
    return found if found and 1 <= found[0] <= 31 else None


def _day_of_month(text: DateText, i: int) -> Found | None:
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
    date(2024, of_month, of_day)  # ValueError for a day that not even a leap year has
    return yearly_day(of_day, of_month), j


def _nth(text: DateText, i: int) -> Found | None:
    """`on the 3rd`: of this month, or of the last if it is still to come."""
    at = text.skip(i, ("the",))
    if text.kind(at) != "ordinal" or (at == i and text.low(i - 1) != "the") or not is_bare_ordinal(text, at):
        return None
    number = int(text.low(at)[:-2])
    return (monthly(number), at + 1) if 1 <= number <= 31 else None


def _month(text: DateText, i: int) -> Found | None:
    named = month_at(text, i)
    if named is None:
        return None
    of_year = year_at(text, named[1])
    if of_year and is_year_after_name(text, i, of_year[1]):
        return month(of_year[0], named[0]), of_year[1]
    if not is_month(text, i, i + 1):
        return None
    return yearly(lambda turn: month(turn, named[0]), "month"), i + 1


_BEHIND_DAY = ("at", "and", "or", "to", "until", "for", "with", *DAYTIMES)


def _weekday(text: DateText, i: int) -> Found | None:
    number = WEEKDAYS.get(text.low(i), SHORT_WEEKDAYS.get(text.low(i)))
    if text.kind(i) != "word" or number is None:
        return None
    # "Sunday, 3 May 2026": the date says all.
    j = i + 1 + (text.low(i + 1) in (",", "."))
    dated = longest(text, text.skip(j, ("the",)), numeric_date, _day_of_month)
    if dated and isinstance(dated[0], Cycle):  # "Friday 4 December": the weekday tells the year
        every = (one for one in dated[0].occurrences_near(text.today) if one.bounds()[0].weekday() == number)
        return min(every, key=lambda one: abs(one.bounds()[0] - text.today), default=dated[0]), dated[1]
    if dated and dated[0].grain == "day":
        return dated
    numbered = day_at(text, j)  # "Friday the 4th at 11", not "Friday 4 people"
    alone = numbered and (
        text.kind(numbered[1]) in ("", "mark", "clock") or text.low(numbered[1]) in _BEHIND_DAY
    )
    if numbered and alone and (near := day_on_weekday(number, numbered[0], text.today)):
        return day(near), numbered[1]
    return (weekday(number), i + 1) if is_weekday(text, i, i + 1) else None


def season(first: int) -> Cycle:
    """A season by its first month. Winter belongs to the year it begins in."""

    def turn(of: date) -> int:
        # In January "this winter" is the one that began last year; in April it is that one still.
        return of.year - (first == 12 and of.month <= 6)

    return Cycle(lambda number: months(number, first, 3, "season"), turn, "season")


def _season(text: DateText, i: int) -> Found | None:
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


def _quarter(text: DateText, i: int) -> Found | None:
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


def _holiday(text: DateText, i: int) -> Found | None:
    for words in (n for n in (4, 3, 2, 1) if i + n <= len(text)):
        name = " ".join(t.text.lower().replace("’", "'") for t in text.tokens[i : i + words])
        at = HOLIDAYS.get(name) or (HOLIDAYS.get(name.removesuffix("'s")) if words == 1 else None)
        is_plain = name.startswith("new year") and not text.is_capitalised(i)
        if at is None or (is_plain and text.low(i - 1) == "a"):
            continue
        of_year = year_at(text, i + words)
        if of_year:
            return at(of_year[0]), of_year[1]
        return (yearly(at, "day"), i + words) if is_holiday(text, i, i + words) else None
    return None


# -- ago ---------------------------------------------------------------------------------------------------
# A duration before or after today: `3 days ago`, `two springs ago`, `three weeks from now`.


_MORE = (("more", "than"), ("over",), ("at", "least"), ("longer", "than"))
_LESS = (("less", "than"), ("under",), ("within",), ("not", "even"))


def ago(text: DateText, i: int) -> Found | None:
    """`3 days ago`, `two springs ago`, `a year and a half ago`, `more than a month ago`."""
    for words in (*_MORE, *_LESS):
        j = text.after(i, *words)
        if j > i and (found := _duration_ago(text, j)) and text.low(found[1]) in ("ago", "back", "old"):
            then = found[0].point or found[0].bounds()[0]
            open_ = DateSpan(None, then) if words in _MORE else DateSpan(then, text.today + DAY)
            return open_, found[1] + 1
    if text.low(i - 1) == "than" and text.low(i - 2) in ("older", "newer"):
        counted = text.count(i)
        found = _duration_ago(text, i) if counted and text.low(counted[1]) in UNITS else None
        return found and (found[0], found[1] + (text.low(found[1]) in ("ago", "old")))
    found = _duration_ago(text, i)
    if found is None:
        return None
    j = found[1]
    if text.low(j) == "ago" and text.low(j + 1) == "today" and found[0].point:
        return day(found[0].point), j + 2
    if text.low(j) == "ago" or (
        text.low(j) in ("back", "earlier") and text.low(i) != "an" and _is_last(text, j + 1)
    ):
        return found[0], j + 1
    if text.after(j, "before", "now") > j:
        return found[0], j + 2
    return None


def _is_last(text: DateText, j: int) -> bool:
    return j >= len(text) or text.kind(j) == "mark"


def _duration_ago(text: DateText, i: int) -> tuple[DateSpan, int] | None:
    """The range that lies a duration before today: a count and a unit, or a count and a recurring date."""
    at = text.after(i, "half", "a")
    if at > i and text.low(at) in ("year", "decade"):
        return _unit_ago(text, 6 if text.low(at) == "year" else 60, "month"), at + 1
    count = text.count(i)
    if count is None:
        return None
    number, j = count
    if text.low(j) in ("or", "to") or text.kind(j) == "dash":
        other = text.count(j + 1)
        if other and (unit := UNITS.get(text.low(other[1]), "")):
            near, far = _unit_ago(text, number, unit), _unit_ago(text, other[0], unit)
            return DateSpan(far.start, near.end), other[1] + 1
    unit = UNITS.get(text.low(j), "")
    if unit == "weekend":
        return unit_around(text.today - timedelta(weeks=number), unit), j + 1
    if unit:
        return _unit_and_half(text, number, unit, j + 1)
    repeats = repeating(text, j)
    return (repeats.previous(text.today, number), j + 1) if repeats else None


def _unit_and_half(text: DateText, number: int, unit: str, j: int) -> tuple[DateSpan, int]:
    """`a year and a half`, `a week or two`; else the unit alone."""
    if text.after(j, "and", "a", "half") > j and unit in ("year", "month", "week"):
        smaller, size = {"year": ("month", 12), "month": ("day", 30), "week": ("day", 7)}[unit]
        return _unit_ago(text, number * size + size // 2, smaller), j + 3
    if text.low(j) == "or" and text.low(j + 1) in ("two", "so") and number == 1:
        far = _unit_ago(text, 2 if text.low(j + 1) == "two" else 1, unit)
        return DateSpan(far.start, _unit_ago(text, 1, unit).end), j + 2
    return _unit_ago(text, number, unit), j


def _unit_ago(text: DateText, number: int, unit: str) -> DateSpan:
    """The calendar unit that contains the day so long ago: "two months ago" is a month, not a day."""
    if unit in ("second", "minute", "hour"):
        return day((text.now - timedelta(**{f"{unit}s": number})).date())
    then = add_units(text.today, -number, unit)
    whole = unit_around(then, unit)
    return DateSpan(whole.start, whole.end, whole.grain, then)


def repeating(text: DateText, j: int) -> Cycle | None:
    """The recurring date that a plural names: springs, Mondays, Mays, Christmases."""
    word = text.low(j)
    for name in (word, word.removesuffix("s"), word.removesuffix("es")):
        if name in SEASONS:
            return season(SEASONS[name])
        if name in WEEKDAYS:
            return weekday(WEEKDAYS[name])
        if name in MONTHS:
            return yearly(partial(month, number=MONTHS[name]), "month")
        if name in ("christmas", "christmase"):
            return yearly(lambda turn: day(date(turn, 12, 25)), "day")
    return None


_AHEAD = late(
    r"due|will|upcoming|happen(?:s|ing)?|start(?:s|ing)?|planned|scheduled|going|coming|expires?|ends?"
)


def ahead(text: DateText, i: int) -> Found | None:
    """`three weeks from now`, `in 3 days' time`, and `in 3 days` where the text speaks of what is to come."""
    inside = text.low(i) == "in"
    count = text.count(i + inside)
    if count is None or text.low(i - 1) in ("every", "each"):
        return None
    unit, j = UNITS.get(text.low(count[1]), ""), count[1] + 1
    if not unit or unit in ("second", "weekend"):
        return None
    for words in (("from", "now"), ("from", "today"), ("hence",), ("time",)):
        after = text.after(j, *words)
        if after > j and (inside or words != ("time",)):
            return _unit_ahead(text, count[0], unit), after
    coming = any(_AHEAD.fullmatch(token.low) for token in text.tokens)
    return (_unit_ahead(text, count[0], unit), j) if inside and coming and _is_last(text, j) else None


def _unit_ahead(text: DateText, number: int, unit: str) -> DateSpan:
    if unit in ("minute", "hour"):
        return day((text.now + timedelta(**{f"{unit}s": number})).date())
    then = add_units(text.today, number, unit)
    whole = unit_around(then, "month" if unit in ("quarter", "half") else unit)
    return DateSpan(whole.start, whole.end, whole.grain, then)


# -- relative ----------------------------------------------------------------------------------------------
# Dates relative to today: yesterday, last May, in the last ten days, the week before last.


def relative(text: DateText, i: int) -> Found | None:
    """A date relative to today that begins at a token."""
    return longest(text, i, _relative_day, _selected, _last_n, ago, ahead, _before_last, _past_half, _to_date)


def _relative_day(text: DateText, i: int) -> Found | None:
    """Yesterday, today, tomorrow, the weekend, last night."""
    today, at = text.today, text.skip(i, ("the",))
    for words, side in ((("day", "before", "yesterday"), -2), (("day", "after", "tomorrow"), 2)):
        if text.after(at, *words) > at:
            return day(today + side * DAY), at + 3
    word, before = text.low(i), text.low(i - 1)
    steps = {"today": 0, "tonight": 0, "yesterday": -1, "tomorrow": 1, "yday": -1, "overmorrow": 2, "now": 0}
    if word in steps and text.kind(i) == "word":
        if word == "now":
            return (day(today), i + 1) if before in ("to", "until", "till", "and") else None
        # USA Today, Yesterday by the Beatles, Tomorrow Never Dies
        title = (
            text.is_capitalised(i)
            and not text.tokens[i].text.isupper()
            and (
                (i > 0 and text.kind(i - 1) != "mark" and text.is_capitalised(i - 1))
                or text.low(i + 1) == "by"
                or (text.is_capitalised(i + 1) and text.low(i + 1) == "show")
                or (i > 1 and text.low(i - 1) in ("song", "film", "movie"))
            )
        )
        title = title or (text.low(i + 1) == "never" and text.low(i + 2) == "dies")
        hyphened = text.kind(i + 1) == "dash" and text.low(i + 1) == "-"
        return None if title or hyphened else (day(today + steps[word] * DAY), i + 1)
    if word in ("my", "our", "your") and text.low(i + 1) == "weekend":
        at = i + 1
    if (word == "the" or at == i + 1) and text.low(at) == "weekend" and is_weekend(text, at):
        found = unit_around(today, "weekend")
        past = found.bounds()[0] > today
        return (unit_around(today - timedelta(weeks=1), "weekend") if past else found), at + 1
    if word == "last" and text.low(i + 1) in DAYTIMES:
        return day(today - DAY), i + 2
    if (word == "this" and text.low(i + 1) in DAYTIMES - {"night"}) or (
        word == "earlier" and text.low(i + 1) == "today"
    ):
        return day(today), i + 2
    return None


def _selected(text: DateText, i: int) -> Found | None:
    """`last week`, `next Tuesday`, `this past Friday`, `next May`, `the previous quarter`, `last 3 May`."""
    rolling = text.low(i - 1) == "the" or text.low(i - 1) in ("these", "this")
    word, j = text.low(i), i + 1
    if word == "this" and text.low(j) in LAST | NEXT:
        word, j, rolling = text.low(j), j + 1, text.low(j) in LAST
    if word not in LAST | THIS | NEXT or text.kind(j) == "dash":
        return None
    unit = UNITS.get(text.low(j), "") if text.low(j) == UNITS.get(text.low(j), "") else ""
    if unit:
        found = _selected_unit(text, word, unit, rolling, i)
        return (found, j + 1) if found else None
    if word in ("prior", "past", "following") and text.low(j) not in MONTHS | WEEKDAYS | SEASONS:
        return None
    repeats = anchor(text, j)
    cycle, end = repeats or (None, 0)
    if not isinstance(cycle, Cycle):
        return None
    at = cycle.current if word in THIS else cycle.previous if word in LAST else cycle.upcoming
    return at(text.today), end


def _selected_unit(text: DateText, word: str, unit: str, rolling: bool, i: int) -> DateSpan | None:
    """The previous, current or next calendar unit; `in the last month` is the month up to today."""
    before = text.low(i - 2) if text.low(i - 1) in ("the", "this", "these") else text.low(i - 1)
    within = before in ("in", "over", "during", "within", "for", "throughout", "from", "since")
    if unit in ("second", "minute", "hour", "day"):
        return _rolling(text, 1, unit, word) if rolling and within and word in LAST | NEXT else None
    if unit == "weekend":
        step = -1 if word in LAST else 0 if word in THIS else 1
        return unit_around(text.today + step * timedelta(weeks=1), "weekend")
    to_now = word == "past" or (rolling and word == "last" and within) or unit == "decade"
    if word in LAST and to_now:
        return _rolling(text, 1, unit, word)
    if word == "next" and rolling and within:
        return _rolling(text, 1, unit, word)
    if unit == "fortnight":
        return None if word in THIS else _rolling(text, 1, unit, word)
    step = -1 if word in LAST else 0 if word in THIS else 1
    return _stepped(text.today, step, unit)


def _stepped(today: date, step: int, unit: str) -> DateSpan:
    """The calendar unit `step` units after the current one."""
    start = unit_around(today, unit).bounds()[0]
    return unit_around(add_units(start, step, unit), unit)


def _rolling(text: DateText, count: int, unit: str, word: str) -> DateSpan:
    """`count` units up to and including today, or from today on."""
    if unit in ("second", "minute", "hour"):
        span = timedelta(**{f"{unit}s": count})
        ends = (text.now - span, text.now) if word not in NEXT else (text.now, text.now + span)
        return DateSpan(ends[0].date(), ends[1].date() + DAY)
    if word in NEXT:
        return DateSpan(text.today, add_units(text.today, count, unit) + DAY)
    return DateSpan(add_units(text.today, -count, unit), text.today + DAY)


def _last_n(text: DateText, i: int) -> Found | None:
    """`the last 10 days`, `past few weeks`, `last couple of months`, `the next three days`."""
    word, j = text.low(i), i + 1
    if word == "this" and text.low(j) == "past":
        word, j = "past", j + 1
    if word not in LAST | NEXT or text.low(j) in ("a", "an"):
        return None
    count = text.count(j)
    if count is None:
        return None
    unit = UNITS.get(text.low(count[1]), "")
    if not unit or unit == "weekend" or (text.low(count[1] + 1) == "of" and text.low(count[1] + 2) != "work"):
        return None
    return _rolling(text, count[0], unit, word), count[1] + 1


_TIME_NAMES = frozenset((*UNITS, *WEEKDAYS, *MONTHS, *SEASONS, "christmas", "night", "easter"))


def _before_last(text: DateText, i: int) -> Found | None:
    """`the week before last`, `the Friday before last`, `the year after next`, `the spring before last`."""
    at = text.skip(i, ("the",))
    word, side = text.low(at), (text.low(at + 1), text.low(at + 2))
    step = {("before", "last"): -2, ("after", "next"): 2}.get(side)
    if step is None or text.low(at + 3) in _TIME_NAMES:
        return None
    unit = UNITS.get(word, "")
    if unit == "weekend":
        return unit_around(text.today + step * timedelta(weeks=1), unit), at + 3
    if unit and unit in ("week", *MONTHS_IN):
        return _stepped(text.today, step, unit), at + 3
    if word in ("night", "day") and step < 0:
        return day(text.today - 2 * DAY), at + 3
    repeats = repeating(text, at)
    if repeats is None:
        return None
    return (repeats.previous(text.today, 2) if step < 0 else repeats.upcoming(text.today, 2)), at + 3


def _past_half(text: DateText, i: int) -> Found | None:
    """`the past half year`, `last year and a half`."""
    if text.low(i) not in LAST:
        return None
    for words, count in ((("half", "year"), 6), (("year", "and", "a", "half"), 18), (("six", "months"), 6)):
        after = text.after(i + 1, *words)
        if after > i + 1:
            return DateSpan(add_months(text.today, -count), text.today + DAY), after
    return None


def _to_date(text: DateText, i: int) -> Found | None:
    """`year to date`, `so far this year`, `this month so far`."""
    if text.after(i, "year", "to", "date") > i or text.low(i) == "ytd":
        return DateSpan(year(text.today.year).start, text.today + DAY), i + (1 if text.low(i) == "ytd" else 3)
    front = text.after(i, "so", "far")
    unit = UNITS.get(text.low(front + 1), "")
    if text.low(front) != "this" or unit not in ("week", "month", "quarter", "year"):
        return None
    end = text.after(front + 2, "so", "far")
    if front == i and end == front + 2:
        return None
    return DateSpan(unit_around(text.today, unit).start, text.today + DAY), end
