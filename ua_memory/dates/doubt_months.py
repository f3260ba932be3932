"""Whether a month is one: May the month, the name or the verb; `3 May` and `may 3 people join`."""

from __future__ import annotations

from ua_memory.dates.around import (
    COUNTED,
    EACH,
    IN,
    NUMBERED,
    PRONOUNS,
    ROUND,
    WHICH,
    before_word,
    ends,
    joins_months,
    of_a_year,
    plain_end,
    subject,
    words,
    yearlike,
)
from ua_memory.dates.text import Text
from ua_memory.dates.words import (
    ALL_MONTHS,
)

_HAS_PARTS = words(
    """week weeks weekend half month day days end start beginning middle part third quarter morning evening
    monday tuesday wednesday thursday friday saturday sunday"""
)
"""What can be of a month: `the first week of May`."""
_SURE = words("january february july september october november december")


def is_month(text: Text, i: int, j: int) -> bool:
    """Whether a month's name without a day or a year is the month."""
    word, low_case = text.low(i), not text.capital(i)
    if text.low(i - 1) in EACH or (
        text.kind(j) == "dash" and text.low(j) == "-" and not joins_months(text, j)
    ):
        return False
    before = before_word(text, i)
    if word in _SURE:
        named = subject(text, j) and text.low(j) not in PRONOUNS and before not in IN | WHICH | ROUND
        return not named
    if text.tokens[i].text.isupper() and len(word) <= 4:
        return False
    if text.kind(j) == "dash" and joins_months(text, j) and not low_case:
        return True
    if len(word) <= 4 and word in ALL_MONTHS and word not in ("may", "june"):
        return before in IN | WHICH | words("from to and between by before after") and ends(text, j)
    if i == 0 and j + (text.kind(j) == "mark") >= len(text):
        return True
    if text.owns(i):
        return before in WHICH
    if text.low(i - 1) == "of" and text.low(i - 2) in _HAS_PARTS:
        return True
    return _month_or_name(text, i, j, before, low_case)


def _month_or_name(text: Text, i: int, j: int, before: str, low_case: bool) -> bool:
    """For March, April, May, June and August: a verb, a name of people, an adjective."""
    direct = text.low(i - 1)
    if of_a_year(text, j):
        return True
    if before in WHICH or before in IN:
        if low_case and text.low(i) in ("may", "march", "august"):
            return ends(text, j) and not _goes_on(text, j, before)
        return not (direct == "the" and before in IN and text.low(j) == "of")
    if text.low(j) in ("and", "or", "to", "through", "until", "till", "–", "-", "/") and joins_months(
        text, j
    ):
        return before in ROUND or not low_case
    if before in ROUND and (not low_case or text.low(i) not in ("may", "march", "august")):
        person = before in ("by", "for", "to", "about", "at", "on", "of") and direct != "the"
        if before in ("and", "or", "to", "of"):
            dated = text.kind(i - 2) == "date" or yearlike(text, i - 2)
            return (
                dated
                or text.low(i - 2) in ALL_MONTHS
                or (before == "of" and text.low(i - 2) in ("end", "start", "month"))
            )
        return (not person or before == "by") and plain_end(text, j)
    if before in words("from before after between") and low_case:
        return j >= len(text) or text.kind(j) == "mark"
    return (
        direct == "the"
        and not low_case
        and text.kind(j) == "word"
        and not text.capital(j)
        and not ends(text, j)
    )


def _goes_on(text: Text, j: int, before: str) -> bool:
    """`this may be`, `the last march of the penguins`: what follows makes it a verb or a noun."""
    return before in WHICH and text.low(j) in words(
        "be have not also only of on to do still just never always already at again towards toward as out"
    )


def is_day_after_month(text: Text, i: int, at: int, j: int) -> bool:
    """Whether `May 3` is a date: not `May 3 people join`, `march 3 miles`, nor `May 3–5 be enough`."""
    if text.kind(at) == "number" and text.low(j) in COUNTED:
        return text.low(i - 1) in ("on", "since") and text.low(j) != "of"
    if text.kind(j) == "clock" or text.kind(at) != "number":
        return text.capital(i) or text.low(at) == "the" or text.kind(at) == "ordinal"
    if text.low(i) in ("may", "march") and not text.capital(i):
        return (
            text.low(i - 1) in IN | ROUND or ends(text, j) or text.low(j) in ("-", "–") or yearlike(text, j)
        )
    if len(text.low(i)) == 3 and text.low(i) != "may" and not text.capital(i):
        return text.low(i) != "mar" or text.low(i - 1) in IN | ROUND
    return not (text.low(i) in ("may", "will") and text.low(j) in ("be", "have"))


def is_day_before_month(text: Text, i: int, at: int, j: int) -> bool:
    """Whether `3 May` is a date: not `version 3 may break`, `all 3 may`, `the second may`."""
    spelt = text.ordinal(text.skip(i, ("the",))) is not None
    if not text.capital(at) and text.low(at) in ("may", "march", "august"):
        of = text.low(at - 1) == "of"
        return (
            of
            or yearlike(text, j)
            or j >= len(text)
            or text.kind(j) == "mark"
            or (
                text.low(i - 1) in words("on since until till by from before after between and to through")
                and not _goes_on(text, j, "last")
                and ends(text, j)
            )
        )
    if text.low(i - 1) in NUMBERED and not spelt:
        return False
    name = (
        subject(text, j)
        and text.low(j) not in PRONOUNS
        and text.low(at) in ("may", "april", "june", "august")
    )
    return not (name and text.low(at - 1) != "of" and text.low(i - 1) not in ("on", "since", "until", "by"))


def is_nth(text: Text, at: int) -> bool:
    """`on the 3rd`, `since the 3rd?`; not `on the 3rd floor`, `the 3rd attempt`."""
    begins = text.low(at - 2) in ("on", "since", "until", "till", "before", "after", "by")
    return begins and (
        ends(text, at + 1) and text.low(at + 1) not in ("of", "in", "and", "or") and not subject(text, at + 1)
    )
