"""The words of time in English, and a text cut into tokens that the grammar reads.

What is glued to other signs (`port:2019`, `src/may.py`, `3.12`, `#5`, `$2019`) is no word of time.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass


def several(text: str) -> tuple[str, ...]:
    """Words written one after another."""
    return tuple(text.split())


MONTHS = {name.lower(): n for n, name in enumerate(calendar.month_name) if n}
SHORT_MONTHS = {name.lower(): n for n, name in enumerate(calendar.month_abbr) if n and name != "May"}
SHORT_MONTHS |= {"sept": 9}
ALL_MONTHS = MONTHS | SHORT_MONTHS
WEEKDAYS = {name.lower(): n for n, name in enumerate(calendar.day_name)}
SHORT_WEEKDAYS = {name.lower(): n for n, name in enumerate(calendar.day_abbr)}
SHORT_WEEKDAYS |= {"tues": 1, "thur": 3, "thurs": 3}
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The first month of each, in the northern half: three whole months, as meteorology counts them."""

_ONES = several(
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
)
_TENS = several("twenty thirty forty fifty sixty seventy eighty ninety")
TENS = {word: n * 10 for n, word in enumerate(_TENS, 2)}
NUMBERS = {word: n for n, word in enumerate(_ONES, 1)}
NUMBERS |= TENS | {"a": 1, "an": 1, "couple": 2, "few": 3, "several": 5, "dozen": 12}
_ORDINALS = several(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth"
    " fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
ORDINALS = {word: n for n, word in enumerate(_ORDINALS, 1)}
ORDINALS |= {"thirtieth": 30}

_UNITS = several("second minute hour day night week fortnight month quarter year decade weekend")
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
_CUT = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in _KINDS), re.IGNORECASE)
_WHOLE_DATE = re.compile(_DATE, re.IGNORECASE)
_CHUNK = re.compile(r"\S+")
_OPENS, _CLOSES = "([{<\"“„‘'«¿¡*_`", ")]}>\"”“’'»,.;:!?…*_`"
_COMPOUND = re.compile(
    r"[^\W_]+(?:['’][^\W_]+)*(?:(?:-|–|—|/|\.\.)['’]?[^\W_]+)+|(?:\d{4}-\d\d-\d\d)(?:/|\.\.|–|—)(?:\d{4}-\d\d-\d\d)"
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text: `kind` is word, number, …, `mark` for punctuation, or `other` for what is glued.

    `low` is the word in small letters without a genitive's `'s`, which `owns` tells of.
    """

    kind: str
    text: str
    low: str
    at: int
    to: int
    owns: bool = False

    @property
    def capital(self) -> bool:
        return self.text[:1].isupper()


def cut(text: str) -> list[Token]:
    """The text's tokens in order."""
    found: list[Token] = []
    for chunk in _CHUNK.finditer(text):
        at, to = chunk.span()
        while at < to and text[at] in _OPENS and not _decade_at(text, at):
            found.append(Token("mark", text[at], text[at], at, at + 1))
            at += 1
        end = to
        while end > at and text[end - 1] in _CLOSES:
            end -= 1
        found += _core(text, at, end)
        found += [Token("mark", text[n], text[n], n, n + 1) for n in range(end, to)]
    return found


def _decade_at(text: str, at: int) -> bool:
    return text[at] in "'‘’" and re.match(r".\d\d(?:s\b|(?!\w))", text[at:]) is not None


def _core(text: str, at: int, to: int) -> list[Token]:
    core = text[at:to]
    if not core:
        return []
    whole = _CUT.fullmatch(core)
    if whole and whole.lastgroup:
        return [_token(_kind(whole), core, at)]
    if _COMPOUND.fullmatch(core) and (cut_up := _compound(core, at)):
        return cut_up
    return [Token("other", core, core.lower(), at, to)]


def _compound(core: str, at: int) -> list[Token]:
    """`mid-May`, `3–9`, `2019–2021`, `twenty-one` in their pieces; empty where a piece is no token."""
    if core.count("/") > 1 and not _WHOLE_DATE.match(core):
        return []  # a path
    found, n = [], 0
    while n < len(core):
        match = _CUT.match(core, n)
        if not match or (match.end() < len(core) and match[0][-1].isalnum() and core[match.end()].isalnum()):
            return []
        found.append(_token(_kind(match), match[0], at + n))
        n = match.end()
    return found


def _kind(match: re.Match[str]) -> str:
    return next(name for name, _ in _KINDS if match[name] is not None)


def _token(kind: str, text: str, at: int) -> Token:
    low = text.lower().replace("’", "'")
    owns = kind == "word" and low.endswith(("'s", "s'"))
    if owns:
        low = low[:-2] if low.endswith("'s") else low[:-1]
    return Token(kind, text, low, at, at + len(text), owns)
