"""When a fact of a text is about: the days that its words name, read from the day the text was written."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta

from ua_memory import dates
from ua_memory.markdown import is_time

_MONTHS = "|".join(name for name in calendar.month_name if name)
_SEASON = "spring|summer|autumn|winter"
_DAYS = "|".join(calendar.day_name)
_LOOSE = re.compile(
    rf"\b(?:(?i:on|by|until) (?:{_DAYS})(?!s)|"
    rf"(?i:in|since|during|by|until) (?:early |mid-|late )?(?:{_MONTHS})(?! \d| ?,? ?\d{{4}})|"
    rf"(?i:this|last|next|in the|in) (?:{_SEASON})(?: of (?:19|20)\d\d)?|"
    rf"(?i:in|since|during) (?:19|20)\d\d\b|\bQ[1-4] (?:19|20)\d\d)\b"
)
"""Stretches that are said without a day. `dates.spans` leaves these alone, for a flush must not guess; a text
that was written on a known day means the one next to it."""
_AHEAD = re.compile(
    r"\b(?:will|won't|going to|plans? to|planned for|due|'ll|shall|deadline|until|by)\b", re.I
)
_PART = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?(?:[T ](\d\d:\d\d))?")


def derived(text: str, said: date) -> str | None:
    """The one day or stretch that a text names, as `when:` has it; None where it names none or several, or
    the day it was said."""
    found = set(_named(text, said))
    if len(found) != 1:
        return None
    start, end = found.pop()
    return None if (start, end) == (said, said + timedelta(days=1)) else written(start, end)


def written(start: date, end: date) -> str:
    """The days from `start` to before `end` as `when:` has them: a day, month, year, or two with a slash."""
    last = end - timedelta(days=1)
    if start == last:
        return start.isoformat()
    if start.day == 1 and last.day == calendar.monthrange(last.year, last.month)[1]:
        if (start.year, start.month) == (last.year, last.month):
            return f"{start:%Y-%m}"
        if start.year == last.year and (start.month, last.month) == (1, 12):
            return f"{start:%Y}"
    return f"{start}/{last}"


def accepted(when: str, evidence: Sequence[str], said: date) -> str | None:
    """`when` as a model gave it, if it is a time that lies within a stretch which the evidence names, or is
    the day it was said; a time of the day stays only if it stands there."""
    when = when.strip()
    if not is_time(when):
        return None
    text = "\n".join(evidence)
    days = _days(when)
    named = [(said, said + timedelta(days=1)), *_named(text, said)]
    for span in (span for span in dates.spans(text, said) if not span.sure):
        years = dates.in_years(said, span.start.month, span.start.day)
        named += [(day, day + timedelta(days=1)) for day in years]
    if days is None or not any(start <= days[0] and days[1] <= end for start, end in named):
        return None
    clock = re.search(r"\d\d:\d\d", when)
    return when if not clock or clock[0] in text else written(*days)


def _named(text: str, said: date) -> Iterator[tuple[date, date]]:
    """The stretches that a text names, first day and the day after the last."""
    taken = []
    for span in dates.spans(text, said):
        taken.append((span.at, span.to))
        yield span.start, span.end
    for match in _LOOSE.finditer(text):
        if any(at < match.end() and match.start() < to for at, to in taken):
            continue
        reading = dates.read(match[0], datetime.combine(said, time(12), UTC))
        if reading.start and reading.end:
            start, end = date.fromisoformat(reading.start), date.fromisoformat(reading.end)
            sentence = re.split(r"[.!?\n]", text[: match.start()])[-1] + match[0]
            past = end <= said and not re.search(r"\d{4}|last|this", match[0])
            if past and _AHEAD.search(sentence):
                day = end - start == timedelta(days=1)
                start, end = (_next(each, 7 if day else 0) for each in (start, end))
            yield start, end


def _next(day: date, days: int) -> date:
    """The same day so many days later, or the first of its month a year later."""
    return day + timedelta(days) if days else day.replace(year=day.year + 1, day=1)


def _days(when: str) -> tuple[date, date] | None:
    ends = []
    for part in when.split("/"):
        match = _PART.match(part.strip())
        if not match:
            return None
        year, month, day = (int(each) if each else 0 for each in match.groups()[:3])
        try:
            first = date(year, month or 1, day or 1)
        except ValueError:
            return None
        length = 1 if day else calendar.monthrange(year, month)[1] if month else 365 + calendar.isleap(year)
        ends.append((first, first + timedelta(days=length)))
    return (ends[0][0], ends[-1][1])
