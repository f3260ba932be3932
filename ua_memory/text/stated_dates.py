"""The days that a statement names, read from the day it was made; its verbs tell the year."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from ua_memory.text.calendar import A_MONTH, ALL_MONTHS, NUMBERS, WEEKDAYS, months_on
from ua_memory.text.patterns import late

# -- tense -------------------------------------------------------------------------------------------------
# Whether a sentence speaks of a day as past or as to come: told by the verb nearest to the day.
#
# Small tables, no grammar: where neither tells, nobody guesses, and `stated` takes the nearest such day.


Tense = Literal["past", "ahead", ""]

_AHEAD = (
    r"(?:will|won['’]t|shall|(?<=\w)['’]ll)(?: not)?(?: (?:have been|have|be)(?: \w+)?)?"
    r"|(?:is|are|am) going to|(?:is|are) due"
)
_PAST = """agreed arrived became began bought broke brought built came chose cut did died drove fell felt
flew forgot found gave got grew had heard held hired kept knew laid lay left lost made met paid put quit
ran read said sat saw sent set shut slept sold spent spoke stood taught thought told took tried
understood was were went woke won wrote since"""
_OPEN = """is are am be being must (?-i:may) might can could should would plan plans due deadline start starts
begin begins end ends open opens close closes launch launches ship ships expire expires happen happens
goes leave leaves arrive arrives return returns"""
"""Verbs of what is, or is to be: beside them a day may be either."""
_NO_VERB = "hundred|need|speed|feed|seed|breed|indeed|shed|embed|exceed|proceed|succeed|united"
_IRREGULAR = "|".join(_PAST.split())
_CUE = late(
    rf"\b(?P<ahead>{_AHEAD})\b"
    rf"|\b(?P<no>(?:is|are|be) (?:\w+ed|{_IRREGULAR})|(?:planned|scheduled) for)\b"
    rf"|\b(?P<past>{_IRREGULAR}|(?:has|have) been|(?!(?:{_NO_VERB})\b)[a-z]{{2,}}ed)\b"
    rf"|\b(?P<open>{'|'.join(_OPEN.split())})\b"
    r"|(?<!went )(?<!came )(?<!moved )(?<!flew )(?<!drove )(?<!back )\b(?P<verb>(?-i:to [a-z]+))\b"
    r"(?<!to the)(?<!to a)(?<!to an)(?<!to my)(?<!to our)(?<!to his)(?<!to her)(?<!to their)(?<!to it)",
    re.IGNORECASE,
)
_SENTENCE = late(r"[.!?](?=\s)|[;\n]")
_CLAUSE = late(r"\b(?:that|which|who|because|so|but)\b", re.IGNORECASE)
_ARRANGED = late(
    r"\b(?:for|(?:moved|postponed|pushed|put|rescheduled|delayed|deferred|extended|shifted)\b.{0,80}\bto)"
    r"(?: the| \w+day,?)?\s*$",
    re.IGNORECASE,
)
"""Between a verb of the past and the day that something was booked or put off for: that may be either."""
_FARTHEST = 160
"""Characters of a sentence that are looked at on either side of a day."""


def tense(text: str, at: int, to: int) -> Tense:
    """How the day that stands at `text[at:to]` is spoken of: the last verb before it in its clause tells,
    else the first one behind it in its sentence."""
    before = _SENTENCE.split(text[max(0, at - _FARTHEST) : at])[-1]
    cues = list(_CUE.finditer(_CLAUSE.split(before)[-1]))
    if not cues:
        after = _CUE.search(_SENTENCE.split(text[to : to + _FARTHEST], maxsplit=1)[0])
        cues = [after] if after else []
    if not cues or (cues[-1]["past"] and _ARRANGED.search(before)):
        return ""
    return "past" if cues[-1]["past"] else "ahead" if cues[-1]["ahead"] else ""


# -- stated ------------------------------------------------------------------------------------------------
# Time words → days. "Last Friday" said on a known day is a known day; what is no date stays a word.
#
# A first reader: calendar dates in digits and in words, the days around today, weekdays, and so many days,
# weeks, months or years ago. What it cannot read it leaves alone; it never guesses a day out of a number.


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of days that a text names: `start` to before `end`, and where in the text it is named. Not
    `sure` is a day without a year of which its sentence does not tell whether it is past or to come."""

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
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_COUNT = r"(?P<count>\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
_WEEKDAY = "(?P<weekday>" + "|".join(WEEKDAYS) + ")"

Reader = Callable[[re.Match[str], date], tuple[date, date] | None]


def spans(text: str, said: date) -> tuple[Span, ...]:
    """Every date that `text` names, as who said it on the day `said` meant it; in order, no two overlap."""
    found: list[Span] = []
    for pattern, reader in _READERS:
        for match in pattern.finditer(text):
            if any(match.start() < span.to and span.at < match.end() for span in found):
                continue
            days = _safely(reader, match, said)
            if days:
                sure = reader is not _named or bool(match["year"] or _tense(match))
                found.append(Span(*days, match.start(), match.end(), sure))
    return tuple(sorted(found, key=lambda span: span.at))


def days(text: str, said: date) -> tuple[str, ...]:
    """The single days among them, as ISO days."""
    return tuple(span.start.isoformat() for span in spans(text, said) if span.is_day)


def _safely(reader: Reader, match: re.Match[str], said: date) -> tuple[date, date] | None:
    try:
        return reader(match, said)
    except (ValueError, OverflowError):  # the 31st of February, the year 20000
        return None


def _day(start: date) -> tuple[date, date]:
    return start, start + timedelta(days=1)


def _iso(match: re.Match[str], said: date) -> tuple[date, date]:
    return _day(date(int(match["year"]), int(match["m"]), int(match["d"])))


def _named(match: re.Match[str], said: date) -> tuple[date, date]:
    month, day, year = ALL_MONTHS[match["month"].lower()], int(match["day"]), match["year"]
    if year:
        return _day(date(int(year), month, day))
    near = in_years(said, month, day)
    how = _tense(match)
    # "Decided on 3 March" is never next March's; where nothing tells, people mean the nearest one.
    told = [d for d in near if (d <= said if how == "past" else d >= said if how else True)]
    return _day(min(told or near, key=lambda d: abs(d - said)))


def _tense(match: re.Match[str]) -> Tense:
    return tense(match.string, match.start(), match.end())


def in_years(said: date, month: int, day: int) -> list[date]:
    """A day without its year, in the year it was said, the one before and the one after, where it exists."""
    years = (said.year + n for n in (-1, 0, 1))
    return [date(year, month, day) for year in years if day <= calendar.monthrange(year, month)[1]]


def _month(match: re.Match[str], said: date) -> tuple[date, date]:
    start = date(int(match["year"]), ALL_MONTHS[match["month"].lower()], 1)
    return start, months_on(start, 1)


def _near(match: re.Match[str], said: date) -> tuple[date, date]:
    steps = {
        "today": 0,
        "tonight": 0,
        "yesterday": -1,
        "last night": -1,
        "tomorrow": 1,
        "the day before yesterday": -2,
        "the day after tomorrow": 2,
    }
    return _day(said + timedelta(days=steps[" ".join(match[0].lower().split())]))


def _weekday(match: re.Match[str], said: date) -> tuple[date, date]:
    wanted, which = WEEKDAYS[match["weekday"].lower()], match["which"].lower()
    back = (said.weekday() - wanted) % 7
    if which == "last":
        return _day(said - timedelta(days=back or 7))
    if which == "next":
        return _day(said + timedelta(days=(7 - back) or 7))
    return _day(said - timedelta(days=said.weekday()) + timedelta(days=wanted))


def _ago(match: re.Match[str], said: date) -> tuple[date, date]:
    words = " ".join(match["count"].lower().split())
    count = int(words) if words.isdigit() else _NUMBERS[words]
    unit = match["unit"].lower()
    if unit == "day":
        return _day(said - timedelta(days=count))
    if unit == "week":
        return _day(said - timedelta(weeks=count))
    return _day(months_on(said, -count * (12 if unit == "year" else 1)))


def _last(match: re.Match[str], said: date) -> tuple[date, date]:
    step = {"last": -1, "this": 0, "next": 1}[match["which"].lower()]
    unit = match["unit"].lower()
    if unit == "week":
        monday = said - timedelta(days=said.weekday()) + timedelta(weeks=step)
        return monday, monday + timedelta(weeks=1)
    if unit == "month":
        start = months_on(said.replace(day=1), step)
        return start, months_on(start, 1)
    return date(said.year + step, 1, 1), date(said.year + step + 1, 1, 1)


def _readers() -> Iterator[tuple[re.Pattern[str], Reader]]:
    def at_word(pattern: str) -> re.Pattern[str]:
        return re.compile(rf"(?<![\w/.-])(?:{pattern})(?![\w/-])(?!\.\d)", re.IGNORECASE)

    yield at_word(rf"{_YEAR}-(?P<m>\d\d)-(?P<d>\d\d)(?=T|\b)(?:T[\d:.Z+-]*)?"), _iso
    yield at_word(rf"{_MONTH}\s+{_DAY}(?:,?\s+{_YEAR})?"), _named
    yield at_word(rf"{_DAY}(?:\s+of)?\s+{_MONTH}(?:,?\s+{_YEAR})?"), _named
    yield at_word(rf"{_MONTH}\s+{_YEAR}"), _month
    yield (
        at_word(
            r"the\s+day\s+before\s+yesterday|the\s+day\s+after\s+tomorrow|yesterday|today|tonight|last\s+night|tomorrow"
        ),
        _near,
    )
    yield at_word(rf"(?P<which>last|this|next)\s+{_WEEKDAY}"), _weekday
    yield at_word(rf"{_COUNT}\s+(?P<unit>day|week|month|year)s?\s+ago"), _ago
    yield at_word(r"(?P<which>last|this|next)\s+(?P<unit>week|month|year)"), _last


_READERS = tuple(_readers())


# -- moments -----------------------------------------------------------------------------------------------
# Time words that name no day: in december, this morning, next sprint, by Friday, the end of the month.


MONTH_NAMES = {name.casefold(): n for n, name in enumerate(calendar.month_name) if n}
DAY_NAMES = {name.casefold(): n for n, name in enumerate(calendar.day_name)}
_UNCLEAR = ("march", "may", "august")
_CLEARLY = "|".join(name for name in (*MONTH_NAMES, *DAY_NAMES) if name not in _UNCLEAR)
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
    rf"\b(?:(?P<on>by|until|till|before)|(?P<back>since))[ \n](?P<day>{'|'.join(DAY_NAMES)})\b"
    r"|\bend[ \n]of[ \n](?:the|this)[ \n](?P<end>month|year)\b",
    re.IGNORECASE,
)


def moments(text: str) -> Iterator[str]:
    """The time words of a text that are written small; capitalised ones are claimed as names are."""
    for match in _MOMENT.finditer(text):
        yield " ".join(next(filter(None, match.groups())).split())


def resolves(moment: str, stretches: set[tuple[date, date]]) -> bool:
    """Whether one of these stretches of days (start, and the day after the end) lies in such a month, or is
    such a day of the week."""
    if moment in DAY_NAMES:
        return any(
            start.weekday() == DAY_NAMES[moment] and (end - start).days == 1 for start, end in stretches
        )
    return moment in MONTH_NAMES and any(
        start.month == MONTH_NAMES[moment] and (end - start).days < 32 for start, end in stretches
    )


def meant(text: str, said: date) -> Iterator[date]:
    """The days that words mean which have a direction: "by Friday" is the first Friday after the day it was
    said, "since Monday" the last Monday before it, "the end of the month" that month's last day.

    "On Friday" is none of them: nobody can tell the last from the next.
    """
    for match in _DIRECTED.finditer(text):
        if match["end"]:
            month = said.month if match["end"].casefold() == "month" else 12
            yield date(said.year, month, calendar.monthrange(said.year, month)[1])
            continue
        off = (DAY_NAMES[match["day"].casefold()] - said.weekday()) % 7 or 7
        yield said + timedelta(days=off if match["on"] else off - 7 if off < 7 else -7)
