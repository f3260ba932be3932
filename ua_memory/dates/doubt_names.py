"""Whether a weekday, a season, a quarter or a feast is one: spring, or spring boot?"""

from __future__ import annotations

from ua_memory.dates.around import (
    EACH,
    IN,
    NOT_OF_DAY,
    NOT_OF_SEASON,
    PRONOUNS,
    ROUND,
    TIMES_OF,
    WHICH,
    before_word,
    ends,
    of_a_year,
    plain_end,
    subject,
    words,
)
from ua_memory.dates.text import Text
from ua_memory.dates.words import (
    DAYTIMES,
    MIDDLE,
    SEASONS,
    WEEKDAYS,
)


def is_weekday(text: Text, i: int, j: int) -> bool:
    """Whether a weekday is a day: `on Friday`, `Friday we`; not `Sunday roast`, `every Monday`."""
    word, before = text.low(i), before_word(text, i)
    if (
        text.low(i - 1) in EACH
        or text.low(j) in NOT_OF_DAY
        or (text.kind(j) == "dash" and not _day_after(text, j))
    ):
        return False
    if (text.low(j) == "the" and text.kind(j + 1) == "ordinal") or text.low(j + 1) in (
        "lights",
        "live",
        "fever",
    ):
        return False
    if word not in WEEKDAYS:
        by = before in words("on last next this since until till by from past before after to and")
        return by and text.capital(i) and plain_end(text, j) and not text.tokens[i].text.isupper()
    if text.low(i - 1) == "the":
        before = text.low(i - 2) if ends(text, j) or text.low(j) in DAYTIMES else ""
    if before in IN | ROUND | WHICH and before not in ("for", "about", "of", "in", "at", "into"):
        return True
    if text.owns(i) or text.low(j) in DAYTIMES or text.kind(j) == "clock":
        return not subject(text, i - 1)
    named = (subject(text, i - 1) and (i > 1 or (j == len(text) and text.capital(i)))) or (
        subject(text, j) and text.low(j) not in PRONOUNS
    )
    return ends(text, j) and not named and text.low(i - 1) != "the"


def _day_after(text: Text, j: int) -> bool:
    return text.low(j + 1) in WEEKDAYS


def is_weekend(text: Text, i: int) -> bool:
    """`over the weekend`, not `the weekend edition`, nor `the weekend of`, whose own rule reads more."""
    return ends(text, i + 1) and text.low(i + 1) not in ("of", "before", "after")


def is_season(text: Text, i: int, j: int) -> bool:
    """Whether a season without a year is a time: `over the summer`; not `spring boot`, `fall back`."""
    before, direct, word = before_word(text, i), text.low(i - 1), text.low(i)
    if text.low(j) in NOT_OF_SEASON or text.kind(j) == "dash" or text.tokens[i].text.isupper():
        return False
    if direct in EACH or text.kind(i - 1) == "dash":
        return direct in ("-", "–") and text.low(i - 2) in MIDDLE
    if of_a_year(text, j):
        return True
    if (text.low(j) in ("or", "and", "to") and text.low(j + 1) in SEASONS) and before not in EACH:
        return text.kind(j + 2) == "number" or before in IN | ROUND
    then = text.low(j) in TIMES_OF or ends(text, j)
    if before in WHICH:
        mine = text.low(i - 2) in ("my", "his", "her", "their", "its", "our", "your") and not then
        return not mine and not (word == "fall" and text.low(i - 2) in ("her", "his", "my", "its"))
    if before == "of" or (text.low(j) == "of" and text.low(j + 1) not in ("last", "this", "that", "next")):
        return text.low(i - 2) in ("end", "start", "beginning", "middle", "half")
    if word == "fall" and (
        before not in words("in during over since until till by") or direct not in IN | {"the"}
    ):
        return False
    if before in IN | words("from by before after to around between and or") or direct == "that":
        linked = before not in ("and", "or", "to") or text.low(i - 2) in SEASONS
        return then and linked and not (direct in ("to", "a") or (subject(text, i) and subject(text, j)))
    return False


def is_quarter(text: Text, i: int) -> bool:
    """Whether `Q3` without a year is the quarter: `our Q3 goals`; not the car, not question 3, not `h1`."""
    if not text.capital(i) or (subject(text, i - 1) and not text.owns(i - 1) and i > 1):
        return False
    before = before_word(text, i)
    if text.kind(i + 2) == "quarter" and (
        text.kind(i + 1) == "dash" or text.low(i + 1) in ("and", "to", "through", "or")
    ):
        return True
    if of_a_year(text, i + 1):
        return True
    if "h" in text.low(i):
        return before in IN | WHICH | words("by before after from for to and") and ends(text, i + 1)
    return before in IN | ROUND | WHICH | words("our my the their his her your did last's") or text.owns(
        i - 1
    )


def is_named_quarter(text: Text, i: int, j: int) -> bool:
    """`in the third quarter`; not `a third quarter of the pie`."""
    if text.low(j) == "of":
        return text.kind(j + 1) == "number" and len(text.low(j + 1)) == 4
    return before_word(text, i) in IN | ROUND and ends(text, j)


def is_feast(text: Text, i: int, j: int) -> bool:
    """Whether a feast is the day: `at Christmas`; not `Easter egg`, `every Christmas`."""
    if of_a_year(text, j):
        return True
    before = before_word(text, i)
    if text.low(i - 1) in EACH or text.kind(j) == "dash" or text.owns(j - 1):
        return text.low(j - 1) in ("new year", "years") or (text.owns(j - 1) and ends(text, j))
    if before in WHICH or (i == 0 and j == len(text)):
        return text.low(j) not in ("egg", "eggs", "tree", "carol", "island")
    return before in IN | ROUND and (ends(text, j) or text.low(j) in TIMES_OF)
