"""Dates in digits: ISO forms, `3/5/2026`, years and decades."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime

from ua_memory.dates.doubt_years import is_decade, is_short_year, is_year, stands_alone
from ua_memory.dates.stretch import (
    WEEK,
    Cycle,
    Stretch,
    day,
    month,
    months,
    year,
    yearly,
)
from ua_memory.dates.text import Found, Text
from ua_memory.dates.words import (
    ALL_MONTHS,
    DECADES,
)


def digits(text: Text, i: int) -> Found | None:
    if text.kind(i) == "calendarweek" and (of := year_at(text, i + 1)):
        return _week(of[0], int(text.low(i)[1:])), of[1]
    if text.kind(i) != "date" or not stands_alone(text, i, i + 1):
        return None
    for pattern, form in _FORMS:
        if match := pattern.fullmatch(text.low(i)):
            found = form(match, text)
            return (found, i + 1) if found else None
    return None


def _iso_time(match: re.Match[str], text: Text) -> Stretch:
    at = datetime.fromisoformat(match[0].upper().replace(",", "."))
    return day((at.astimezone(text.zone) if at.tzinfo and text.zone else at).date())


def _week(of_year: int, number: int) -> Stretch:
    start = date.fromisocalendar(of_year, number, 1)
    return Stretch(start, start + WEEK, "week")


def _iso_week(match: re.Match[str], text: Text) -> Stretch:
    if match["d"]:
        return day(date.fromisocalendar(int(match["y"]), int(match["w"]), int(match["d"])))
    return _week(int(match["y"]), int(match["w"]))


def _written(match: re.Match[str], text: Text) -> Stretch:
    """`3/5/2026`: what cannot be a month is the day, else as the zone writes it; dots mean day first."""
    first, second = int(match["a"]), int(match["b"])
    swap = second > 12 or (text.month_first and first <= 12 and match["sep"] != ".")
    of_month, number = (first, second) if swap else (second, first)
    return day(date(int(match["y"]), of_month, number))


def quarter_or_half(of: int | None, name: str) -> Stretch | Cycle:
    letter, number = ("q", int(name.strip("q"))) if "q" in name else ("h", int(name.strip("h")))
    size, grain = (3, "quarter") if letter == "q" else (6, "half")
    if not 1 <= number <= 12 // size:
        raise ValueError(name)

    def at(turn: int) -> Stretch:
        return months(turn, (number - 1) * size + 1, size, grain)

    return yearly(at, grain) if of is None else at(of)


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Text], Stretch | Cycle | None]], ...] = (
    (_form(r"\d{4}-\d\d-\d\dT.*"), _iso_time),
    (
        _form(r"(?P<y>\d{4})([-/.])(?P<m>\d\d?)\2(?P<d>\d\d?)"),
        lambda m, t: day(date(int(m["y"]), int(m["m"]), int(m["d"]))),
    ),
    (_form(r"(?P<y>\d{4})-(?P<m>\d\d)"), lambda m, t: month(int(m["y"]), int(m["m"]))),
    (_form(r"(?P<m>\d\d?)/(?P<y>\d{4})"), lambda m, t: month(int(m["y"]), int(m["m"]))),
    (_form(r"(?P<y>\d{4})-?W(?P<w>\d\d)(?:-?(?P<d>\d))?"), _iso_week),
    (_form(r"(?P<y>\d{4})-?(?P<q>[QH]\d)"), lambda m, t: quarter_or_half(int(m["y"]), m["q"].lower())),
    (_form(r"(?P<q>[QH]\d)-(?P<y>\d{4})"), lambda m, t: quarter_or_half(int(m["y"]), m["q"].lower())),
    (_form(r"(?P<a>\d\d?)(?P<sep>[/.-])(?P<b>\d\d?)(?P=sep)(?P<y>\d{4})"), _written),
    (
        _form(r"(?P<d>\d\d?)-(?P<m>[a-z]+)-(?P<y>\d{4})"),
        lambda m, t: day(date(int(m["y"]), _number(m["m"]), int(m["d"]))),
    ),
)


def _number(name: str) -> int:
    if name.lower() not in ALL_MONTHS:
        raise ValueError(name)
    return ALL_MONTHS[name.lower()]


def year_at(text: Text, i: int) -> tuple[int, int] | None:
    """A year right behind a month, a season, a quarter: `2026`, `of 2026`, `'26`; and what follows."""
    j = i + 1 if text.low(i) == "," or (text.low(i) == "of" and text.kind(i + 1) == "number") else i
    word = text.low(j)
    if text.kind(j) != "number" or (text.kind(j + 1) == "dash" and text.low(j + 1) == "/" and len(word) != 4):
        return None
    if len(word) == 4 and word[:2] in ("19", "20"):
        return int(word), j + 1
    if len(word) == 3 and word[0] in "'’":
        return 2000 + int(word[1:]), j + 1
    return None


def year_alone(text: Text, i: int) -> Found | None:
    at = text.after(i, "year")
    word = text.low(at)
    if at == i and text.kind(at) == "number" and word[0] in "'’" and is_short_year(text, i):
        return year(2000 + int(word[1:])), at + 1
    if text.kind(at) != "number" or len(word) != 4 or not is_year(text, i, at):
        return None
    for name in (text.kind(at + 1) == "quarter") * (text.low(at + 1),):
        return quarter_or_half(int(word), name), at + 2
    return year(int(word)), at + 1


def decade(text: Text, i: int) -> Found | None:
    word = text.low(i).replace("'", "")
    if text.kind(i) == "decade":
        digits = word.rstrip("s")
        first = int(digits) if len(digits) == 4 else (1900 if int(digits) >= 30 else 2000) + int(digits)
    elif word in DECADES:
        first = 1900 + DECADES[word]
    else:
        return None
    if not is_decade(text, i):
        return None
    return Stretch(date(first, 1, 1), date(first + 10, 1, 1), "decade"), i + 1
