"""Time words that a statement claims without naming a day: in december, this morning, next sprint."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from datetime import date

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
