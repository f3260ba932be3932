"""Time words that name no day: in december, this morning, next sprint, by Friday, the end of the month."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from datetime import date, timedelta

_MONTHS = {name.casefold(): n for n, name in enumerate(calendar.month_name) if n}
_DAYS = {name.casefold(): n for n, name in enumerate(calendar.day_name)}
_DOUBTFUL = ("march", "may", "august")
_CLEAR = "|".join(name for name in (*_MONTHS, *_DAYS) if name not in _DOUBTFUL)
_TO = r"(?:in|since|until|till|by|during|over|from|of|for|last|next|this|early|late|mid)[ \n-](?:the[ \n])?"
_PHRASE = re.compile(
    r"\b(?P<phrase>(?:this|that|last|next|coming|past)[ \n]"
    r"(?:morning|afternoon|evening|night|noon|weekend|week|month|quarter|year|decade|century|sprint|semester))\b"
    rf"|\b(?P<clear>{_CLEAR})s?\b"
    rf"|\b{_TO}(?P<doubtful>{'|'.join(_DOUBTFUL)}|spring|summer|autumn|fall|winter|morning|afternoon|evening)s?\b"
    r"|\bat[ \n](?P<hour>noon|midnight|dawn|night)\b",
)
_TOWARDS = re.compile(
    rf"\b(?:(?P<on>by|until|till|before)|(?P<back>since))[ \n](?P<day>{'|'.join(_DAYS)})\b"
    r"|\bend[ \n]of[ \n](?:the|this)[ \n](?P<end>month|year)\b",
    re.IGNORECASE,
)


def moments(text: str) -> Iterator[str]:
    """The time words of a text that are written small; capitalised ones are claimed as names are."""
    for match in _PHRASE.finditer(text):
        yield " ".join(next(filter(None, match.groups())).split())


def resolves(moment: str, stretches: set[tuple[date, date]]) -> bool:
    """Whether one of these stretches of days (start, and the day after the end) lies in such a month, or is
    such a day of the week."""
    if moment in _DAYS:
        return any(start.weekday() == _DAYS[moment] and (end - start).days == 1 for start, end in stretches)
    return moment in _MONTHS and any(
        start.month == _MONTHS[moment] and (end - start).days < 32 for start, end in stretches
    )


def meant(text: str, said: date) -> Iterator[date]:
    """The days that words mean which have a direction: "by Friday" is the first Friday after the day it was
    said, "since Monday" the last Monday before it, "the end of the month" that month's last day.

    "On Friday" is none of them: nobody can tell the last from the next.
    """
    for match in _TOWARDS.finditer(text):
        if match["end"]:
            month = said.month if match["end"].casefold() == "month" else 12
            yield date(said.year, month, calendar.monthrange(said.year, month)[1])
            continue
        off = (_DAYS[match["day"].casefold()] - said.weekday()) % 7 or 7
        yield said + timedelta(days=off if match["on"] else off - 7 if off < 7 else -7)
