"""Dates as people say them, and dates that people write for options."""

from __future__ import annotations

import calendar
import re
from datetime import date, datetime, time, timedelta

from ua_memory.errors import Usage


def day_title(day: date, today: date) -> str:
    """`Saturday 21 November 2026`, with `today` or `yesterday` where that helps."""
    near = {0: " (today)", 1: " (yesterday)"}.get((today - day).days, "")
    return f"{day:%A} {day.day} {day:%B} {day.year}{near}"


def ago(then: datetime, now: datetime) -> str:
    """`just now`, `5 minutes ago`, `yesterday`, `12 days ago`; the date from two months on."""
    seconds = (now - then).total_seconds()
    if seconds < 0:
        return f"{then:%Y-%m-%d %H:%M}"
    for size, noun in ((60, ""), (3600, "minute"), (86400, "hour")):
        if seconds < size:
            number = int(seconds // {60: 1, 3600: 60, 86400: 3600}[size])
            return f"{number} {noun}{'' if number == 1 else 's'} ago" if noun else "just now"
    return ago_day(then.date(), now.date())


def ago_day(day: date, today: date) -> str:
    """`today`, `yesterday`, `12 days ago`, `in 3 days`; the date itself from two months on."""
    days = (today - day).days
    if days in (0, 1, -1):
        return {0: "today", 1: "yesterday", -1: "tomorrow"}[days]
    if abs(days) > 60:
        return day.isoformat()
    return f"{days} days ago" if days > 0 else f"in {-days} days"


def parse_moment(text: str | None, option: str, now: datetime) -> datetime:
    """A moment out of what an option was given: `2026-11-21` (its noon), `2026-11-21T14:00`.

    With an offset or in the zone of `now`, which is the answer to None. Usage for anything else.
    """
    if text is None:
        return now
    word = text.strip()
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", word, re.ASCII):
            return datetime.combine(date.fromisoformat(word), time(12), now.tzinfo)
        given = datetime.fromisoformat(word)
        return given if given.tzinfo else given.replace(tzinfo=now.tzinfo)
    except ValueError as error:
        mend = "use 2026-11-21 or 2026-11-21T14:00"
        raise Usage(f"{text!r} is no time", where=option, mend=mend) from error


def parse_day(text: str | None, option: str, today: date, *, end: bool = False) -> str | None:
    """An ISO day out of what an option was given: `2026-11-21`, `2026-11`, `2026`, `today`, `yesterday`, or
    so many days or weeks ago: `30d`, `2w`.

    Of a month or a year it is the first day, or with `end` the last. Usage for anything else.
    """
    if text is None:
        return None
    word = text.strip().lower()
    if word in ("today", "yesterday"):
        return (today - timedelta(days=word == "yesterday")).isoformat()
    if ago := re.fullmatch(r"(\d{1,4})([dw])", word, re.ASCII):
        return (today - timedelta(days=int(ago[1]) * {"d": 1, "w": 7}[ago[2]])).isoformat()
    match = re.fullmatch(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?", word, re.ASCII)
    try:
        if match is None:
            raise ValueError(text)
        year, month = int(match[1]), int(match[2] or (12 if end else 1))
        last = calendar.monthrange(year, month)[1] if end else 1
        return date(year, month, int(match[3] or last)).isoformat()
    except ValueError as error:
        raise Usage(
            f"{text!r} is no date",
            where=option,
            mend="use 2026-11-21, 2026-11, 2026, 30d, today or yesterday",
        ) from error
