"""So long ago or ahead: `3 days ago`, `two springs ago`, `more than a month ago`, `three weeks from now`."""

from __future__ import annotations

import re
from datetime import date, timedelta
from functools import partial

from ua_memory.dates.anchors import season
from ua_memory.dates.stretch import (
    DAY,
    Cycle,
    Stretch,
    day,
    month,
    shifted,
    unit_of,
    weekday,
    yearly,
)
from ua_memory.dates.text import Found, Text
from ua_memory.dates.words import (
    MONTHS,
    SEASONS,
    UNITS,
    WEEKDAYS,
)

_MORE = (("more", "than"), ("over",), ("at", "least"), ("longer", "than"))
_LESS = (("less", "than"), ("under",), ("within",), ("not", "even"))


def ago(text: Text, i: int) -> Found | None:
    """`3 days ago`, `two springs ago`, `a year and a half ago`, `more than a month ago`."""
    for words in (*_MORE, *_LESS):
        j = text.after(i, *words)
        if j > i and (found := _so_long(text, j)) and text.low(found[1]) in ("ago", "back", "old"):
            then = found[0].point or found[0].parts()[0]
            open_ = Stretch(None, then) if words in _MORE else Stretch(then, text.today + DAY)
            return open_, found[1] + 1
    if text.low(i - 1) == "than" and text.low(i - 2) in ("older", "newer"):
        counted = text.count(i)
        found = _so_long(text, i) if counted and text.low(counted[1]) in UNITS else None
        return found and (found[0], found[1] + (text.low(found[1]) in ("ago", "old")))
    found = _so_long(text, i)
    if found is None:
        return None
    j = found[1]
    if text.low(j) == "ago" and text.low(j + 1) == "today" and found[0].point:
        return day(found[0].point), j + 2
    if text.low(j) == "ago" or (
        text.low(j) in ("back", "earlier") and text.low(i) != "an" and _closes(text, j + 1)
    ):
        return found[0], j + 1
    if text.after(j, "before", "now") > j:
        return found[0], j + 2
    return None


def _closes(text: Text, j: int) -> bool:
    return j >= len(text) or text.kind(j) == "mark"


def _so_long(text: Text, i: int) -> tuple[Stretch, int] | None:
    """How far back: a count and a unit, or a count and what repeats."""
    at = text.after(i, "half", "a")
    if at > i and text.low(at) in ("year", "decade"):
        return _back(text, 6 if text.low(at) == "year" else 60, "month"), at + 1
    count = text.count(i)
    if count is None:
        return None
    number, j = count
    if text.low(j) in ("or", "to") or text.kind(j) == "dash":
        other = text.count(j + 1)
        if other and (unit := UNITS.get(text.low(other[1]), "")):
            near, far = _back(text, number, unit), _back(text, other[0], unit)
            return Stretch(far.start, near.end), other[1] + 1
    unit = UNITS.get(text.low(j), "")
    if unit == "weekend":
        return unit_of(text.today - timedelta(weeks=number), unit), j + 1
    if unit:
        return _with_rest(text, number, unit, j + 1)
    repeats = repeating(text, j)
    return (repeats.past(text.today, number), j + 1) if repeats else None


def _with_rest(text: Text, number: int, unit: str, j: int) -> tuple[Stretch, int]:
    """`a year and a half`, `a week or two`; else just the count."""
    if text.after(j, "and", "a", "half") > j and unit in ("year", "month", "week"):
        smaller, size = {"year": ("month", 12), "month": ("day", 30), "week": ("day", 7)}[unit]
        return _back(text, number * size + size // 2, smaller), j + 3
    if text.low(j) == "or" and text.low(j + 1) in ("two", "so") and number == 1:
        far = _back(text, 2 if text.low(j + 1) == "two" else 1, unit)
        return Stretch(far.start, _back(text, 1, unit).end), j + 2
    return _back(text, number, unit), j


def _back(text: Text, number: int, unit: str) -> Stretch:
    """The day, week, month or year so many before today's: "two months ago" names a month, not a day."""
    if unit in ("second", "minute", "hour"):
        return day((text.now - timedelta(**{f"{unit}s": number})).date())
    then = shifted(text.today, -number, unit)
    whole = unit_of(then, unit)
    return Stretch(whole.start, whole.end, whole.grain, then)


def repeating(text: Text, j: int) -> Cycle | None:
    """What a count can count of itself: springs, Mondays, Mays, Christmases."""
    word = text.low(j)
    for name in (word, word.removesuffix("s"), word.removesuffix("es")):
        if name in SEASONS:
            return season(SEASONS[name])
        if name in WEEKDAYS:
            return weekday(WEEKDAYS[name])
        if name in MONTHS:
            return yearly(partial(_month_of, MONTHS[name]), "month")
        if name in ("christmas", "christmase"):
            return yearly(lambda turn: day(date(turn, 12, 25)), "day")
    return None


_AHEAD = re.compile(
    r"due|will|upcoming|happen(?:s|ing)?|start(?:s|ing)?|planned|scheduled|going|coming|expires?|ends?"
)


def ahead(text: Text, i: int) -> Found | None:
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
            return _forward(text, count[0], unit), after
    coming = any(_AHEAD.fullmatch(token.low) for token in text.tokens)
    return (_forward(text, count[0], unit), j) if inside and coming and _closes(text, j) else None


def _forward(text: Text, number: int, unit: str) -> Stretch:
    if unit in ("minute", "hour"):
        return day((text.now + timedelta(**{f"{unit}s": number})).date())
    then = shifted(text.today, number, unit)
    whole = unit_of(then, "month" if unit in ("quarter", "half") else unit)
    return Stretch(whole.start, whole.end, whole.grain, then)


def _month_of(number: int, turn: int) -> Stretch:
    return month(turn, number)
