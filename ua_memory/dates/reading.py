"""A query → the time it is about. Pure: the day it is asked on and the zone are given."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import reduce

from ua_memory.dates.feasts import FEASTS
from ua_memory.dates.order import Order, order_of
from ua_memory.dates.phrases import phrase
from ua_memory.dates.stretch import Stretch, joined
from ua_memory.dates.text import Text
from ua_memory.dates.words import (
    ALL_MONTHS,
    DAYTIMES,
    DECADES,
    LAST,
    NEXT,
    NUMBERS,
    ORDINALS,
    PART,
    SEASONS,
    SHORT_WEEKDAYS,
    THIS,
    UNITS,
    WEEKDAYS,
    several,
)  # fmt: skip

_MONTH_FIRST = [
    "America/New_York",
    "America/Chicago",
    "America/Denver",
    "America/Los_Angeles",
    "America/Phoenix",
    "America/Anchorage",
    "America/Detroit",
    "America/Boise",
    "America/Indiana/",
    "America/Kentucky/",
    "America/North_Dakota/",
    "America/Juneau",
    "America/Sitka",
    "America/Nome",
    "America/Adak",
    "America/Menominee",
    "America/Puerto_Rico",
    "Pacific/Honolulu",
    "Pacific/Guam",
    "US/",
]
"""Zones, or their beginnings, where 3/5/2026 is the fifth of March."""

_MAYBE_FOREIGN = re.compile(
    r"\b(?:gestern|vorgestern|heute|\w*woche\w*|\w*monat\w*|jahr\w*|januar|februar|mai|juni|juli|oktober|dezember"
    r"|\w+tag|tagen?|mittwoch|sommer|herbst|weihnachten|im|am|seit|hier|demain|janvier|mars|avril|juin|juillet"
    r"|aout|septembre|octobre|novembre|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|semaines?|mois|jours?"
    r"|ans?|printemps|hiver|automne|ayer|anteayer|hoy|enero|febrero|marzo|abril|mayo|junio|julio|agosto"
    r"|septiembre|octubre|noviembre|diciembre|lunes|martes|jueves|viernes|sabado|domingo|semanas?|mes|meses"
    r"|anfang|mitte|ende|seit|vor|nach|bis|zwischen|im|en|avant|entre|depuis|desde|hasta|antes|principios|mediados|finales|hace|verano|primavera|invierno|navidad|dias?|trimestre|quartal)\b",
    re.IGNORECASE,
)
"""Date words of other languages in plain letters: the gate for a query in ASCII."""

_BEGIN = frozenset(
    several(
        "the my our your very earlier later latter former final calendar iso today tonight yesterday tomorrow"
        " yday overmorrow now this half more over at longer less under within not another about"
        " around roughly almost nearly in ytd so since ever no up until till through by before prior"
        " older after newer from starting as between nye mlk"
    )
)
_BEGIN |= {
    *ALL_MONTHS,
    *WEEKDAYS,
    *SHORT_WEEKDAYS,
    *SEASONS,
    *NUMBERS,
    *ORDINALS,
    *UNITS,
    *DAYTIMES,
    *DECADES,
}
_BEGIN |= LAST | THIS | NEXT | set(PART) | {name.split()[0].removesuffix("'s") for name in FEASTS}
"""Words that a phrase of time can begin with. Most words of a query are none, and need no reading."""

LONGEST = 4000
"""Characters of a query that are read: who pastes a page asks for no one day."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a query says of time. `start` and `end` are ISO days, the end exclusive, None an open side.

    `at` has the place of each expression that was read, [from, to) in characters. Of a query without a time
    both sides are None and `at` is empty. `order` is set where the newest or the oldest is asked for.
    """

    start: str | None = None
    end: str | None = None
    at: tuple[tuple[int, int], ...] = ()
    order: Order | None = None

    def __bool__(self) -> bool:
        return self.start is not None or self.end is not None


def read(text: str, now: datetime, zone: tzinfo | None = None) -> Reading:
    """The stretch of days that a query is about, asked at `now`; days are those of `zone`, else of `now`.

    Several expressions make one stretch: the narrower where one lies in the other, else from the first to the
    last. `DatesUnavailable` where another language's reader is wanted and cannot be loaded.
    """
    local = now.astimezone(zone) if zone and now.tzinfo else now
    text = text[:LONGEST]
    found = _english(Text.of(text, local, zone or now.tzinfo, _month_first(zone or now.tzinfo)))
    if not found:
        found = _foreign(text, local, zone or now.tzinfo)
    at = tuple(sorted(place for _, place in found))
    order = order_of(text, at)
    whole = reduce(joined, (stretch for stretch, _ in found)) if found else Stretch(None, None)
    if whole.start is None and whole.end is None:  # before 2020 and after 2021: any day
        return Reading(order=order)
    ends = [each.isoformat() if each else None for each in (whole.start, whole.end)]
    return Reading(ends[0], ends[1], at, order)


def _english(text: Text) -> list[tuple[Stretch, tuple[int, int]]]:
    found, i = [], 0
    while i < len(text):
        one = (
            phrase(text, i)
            if text.kind(i) not in ("word", "mark", "other") or text.low(i) in _BEGIN
            else None
        )
        if one and (one[0].start or one[0].end):
            found.append((one[0], (text.tokens[i].at, text.tokens[one[1] - 1].to)))
            i = one[1]
        else:
            i += 1
    return found


def _foreign(text: str, now: datetime, zone: tzinfo | None) -> list[tuple[Stretch, tuple[int, int]]]:
    """As `_english`, of the date words in another language put into English; places are those in the text."""
    if text.isascii() and not _MAYBE_FOREIGN.search(text):
        return []
    from ua_memory.dates.foreign import language, translated

    code = language(text)
    if code is None:
        return []
    pieces, english, marks = translated(text, code), "", []
    for word, at, to in pieces:
        marks.append((len(english), len(english) + len(word), at, to))
        english += f"{word} "
    found = []
    for stretch, (begin, end) in _english(Text.of(english, now, zone, False)):
        mine = [(at, to) for first, last, at, to in marks if first < end and begin < last]
        found.append((stretch, (min(a for a, _ in mine), max(b for _, b in mine))))
    return found


def _month_first(zone: tzinfo | None) -> bool:
    name = str(getattr(zone, "key", ""))
    return any(name == known or (known.endswith("/") and name.startswith(known)) for known in _MONTH_FIRST)
