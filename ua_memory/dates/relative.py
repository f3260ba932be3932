"""What is counted from today: yesterday, last May, in the last ten days, the week before last."""

from __future__ import annotations

from datetime import date, timedelta

from ua_memory.dates.ago import ago, ahead, repeating
from ua_memory.dates.anchors import anchor
from ua_memory.dates.doubt_names import (
    is_weekend,
)
from ua_memory.dates.stretch import (
    DAY,
    MONTHS_IN,
    Cycle,
    Stretch,
    day,
    months_on,
    shifted,
    unit_of,
    year,
)
from ua_memory.dates.text import Found, Text, longest
from ua_memory.dates.words import (
    DAYTIMES,
    LAST,
    MONTHS,
    NEXT,
    SEASONS,
    THIS,
    UNITS,
    WEEKDAYS,
)


def relative(text: Text, i: int) -> Found | None:
    """Whatever is counted from today at a token."""
    return longest(text, i, _near, _which, _last_many, ago, ahead, _but_one, _past_half, _to_date)


def _near(text: Text, i: int) -> Found | None:
    """The days around today by their names."""
    today, at = text.today, text.skip(i, ("the",))
    for words, side in ((("day", "before", "yesterday"), -2), (("day", "after", "tomorrow"), 2)):
        if text.after(at, *words) > at:
            return day(today + side * DAY), at + 3
    word, before = text.low(i), text.low(i - 1)
    steps = {"today": 0, "tonight": 0, "yesterday": -1, "tomorrow": 1, "yday": -1, "overmorrow": 2, "now": 0}
    if word in steps and text.kind(i) == "word":
        if word == "now":
            return (day(today), i + 1) if before in ("to", "until", "till", "and") else None
        # USA Today, Yesterday by the Beatles, Tomorrow Never Dies
        title = (
            text.capital(i)
            and not text.tokens[i].text.isupper()
            and (
                (i > 0 and text.kind(i - 1) != "mark" and text.capital(i - 1))
                or text.low(i + 1) == "by"
                or (text.capital(i + 1) and text.low(i + 1) == "show")
                or (i > 1 and text.low(i - 1) in ("song", "film", "movie"))
            )
        )
        title = title or (text.low(i + 1) == "never" and text.low(i + 2) == "dies")
        hyphened = text.kind(i + 1) == "dash" and text.low(i + 1) == "-"
        return None if title or hyphened else (day(today + steps[word] * DAY), i + 1)
    if word in ("my", "our", "your") and text.low(i + 1) == "weekend":
        at = i + 1
    if (word == "the" or at == i + 1) and text.low(at) == "weekend" and is_weekend(text, at):
        found = unit_of(today, "weekend")
        past = found.parts()[0] > today
        return (unit_of(today - timedelta(weeks=1), "weekend") if past else found), at + 1
    if word == "last" and text.low(i + 1) in DAYTIMES:
        return day(today - DAY), i + 2
    if (word == "this" and text.low(i + 1) in DAYTIMES - {"night"}) or (
        word == "earlier" and text.low(i + 1) == "today"
    ):
        return day(today), i + 2
    return None


def _which(text: Text, i: int) -> Found | None:
    """`last week`, `this past Friday`, `next May`, `the previous quarter`, `last 3 May`."""
    rolling = text.low(i - 1) == "the" or text.low(i - 1) in ("these", "this")
    word, j = text.low(i), i + 1
    if word == "this" and text.low(j) in LAST | NEXT:
        word, j, rolling = text.low(j), j + 1, text.low(j) in LAST
    if word not in LAST | THIS | NEXT or text.kind(j) == "dash":
        return None
    unit = UNITS.get(text.low(j), "") if text.low(j) == UNITS.get(text.low(j), "") else ""
    if unit:
        found = _which_unit(text, word, unit, rolling, i, j)
        return (found, j + 1) if found else None
    if word in ("prior", "past", "following") and text.low(j) not in MONTHS | WEEKDAYS | SEASONS:
        return None
    repeats = anchor(text, j)
    if repeats is None or not isinstance(repeats[0], Cycle):
        return None
    return _occurrence(text, repeats[0], word, text.low(j)), repeats[1]


def _occurrence(text: Text, cycle: Cycle, word: str, name: str) -> Stretch:
    if word in THIS:
        return cycle.this(text.today)
    return cycle.past(text.today) if word in LAST else cycle.coming(text.today)


def _which_unit(text: Text, word: str, unit: str, rolling: bool, i: int, j: int) -> Stretch | None:
    """The calendar's week, month, … beside today's; `the last month` is the month up to today."""
    before = text.low(i - 2) if text.low(i - 1) in ("the", "this", "these") else text.low(i - 1)
    within = before in ("in", "over", "during", "within", "for", "throughout", "from", "since")
    if unit in ("second", "minute", "hour", "day"):
        return _rolling(text, 1, unit, word) if rolling and within and word in LAST | NEXT else None
    if unit == "weekend":
        step = -1 if word in LAST else 0 if word in THIS else 1
        return unit_of(text.today + step * timedelta(weeks=1), "weekend")
    to_now = word == "past" or (rolling and word == "last" and within) or unit == "decade"
    if word in LAST and to_now and unit != "fortnight":
        return _rolling(text, 1, unit, word)
    if word == "next" and rolling and within:
        return _rolling(text, 1, unit, word)
    if unit == "fortnight":
        return None if word in THIS else _rolling(text, 1, unit, word)
    step = -1 if word in LAST else 0 if word in THIS else 1
    return _stepped(text.today, step, unit)


def _stepped(today: date, step: int, unit: str) -> Stretch:
    """The calendar's unit so many before or after today's."""
    start = unit_of(today, unit).parts()[0]
    return unit_of(shifted(start, step, unit), unit)


def _rolling(text: Text, count: int, unit: str, word: str) -> Stretch:
    """So many units up to today, which counts, or from today on."""
    if unit in ("second", "minute", "hour"):
        span = timedelta(**{f"{unit}s": count})
        ends = (text.now - span, text.now) if word not in NEXT else (text.now, text.now + span)
        return Stretch(ends[0].date(), ends[1].date() + DAY)
    if word in NEXT:
        return Stretch(text.today, shifted(text.today, count, unit) + DAY)
    return Stretch(shifted(text.today, -count, unit), text.today + DAY)


def _last_many(text: Text, i: int) -> Found | None:
    """`the last 10 days`, `past few weeks`, `last couple of months`, `the next three days`."""
    word, j = text.low(i), i + 1
    if word == "this" and text.low(j) == "past":
        word, j = "past", j + 1
    if word not in LAST | NEXT or text.low(j) in ("a", "an"):
        return None
    count = text.count(j)
    if count is None:
        return None
    unit = UNITS.get(text.low(count[1]), "")
    if not unit or unit == "weekend" or (text.low(count[1] + 1) == "of" and text.low(count[1] + 2) != "work"):
        return None
    return _rolling(text, count[0], unit, word), count[1] + 1


def _but_one(text: Text, i: int) -> Found | None:
    """`the week before last`, `the Friday before last`, `the year after next`, `the spring before last`."""
    at = text.skip(i, ("the",))
    word, side = text.low(at), (text.low(at + 1), text.low(at + 2))
    step = {("before", "last"): -2, ("after", "next"): 2}.get(side)
    if step is None or text.low(at + 3) in (
        *UNITS,
        *WEEKDAYS,
        *MONTHS,
        *SEASONS,
        "christmas",
        "night",
        "easter",
    ):
        return None
    unit = UNITS.get(word, "")
    if unit == "weekend":
        return unit_of(text.today + step * timedelta(weeks=1), unit), at + 3
    if unit and unit in ("week", *MONTHS_IN):
        return _stepped(text.today, step, unit), at + 3
    if word in ("night", "day") and step < 0:
        return day(text.today - 2 * DAY), at + 3
    repeats = repeating(text, at)
    if repeats is None:
        return None
    return (repeats.past(text.today, 2) if step < 0 else repeats.coming(text.today, 2)), at + 3


def _past_half(text: Text, i: int) -> Found | None:
    """`the past half year`, `last year and a half`."""
    if text.low(i) not in LAST:
        return None
    for words, count in ((("half", "year"), 6), (("year", "and", "a", "half"), 18), (("six", "months"), 6)):
        after = text.after(i + 1, *words)
        if after > i + 1:
            return Stretch(months_on(text.today, -count), text.today + DAY), after
    return None


def _to_date(text: Text, i: int) -> Found | None:
    """`year to date`, `so far this year`, `this month so far`."""
    if text.after(i, "year", "to", "date") > i or text.low(i) == "ytd":
        return Stretch(year(text.today.year).start, text.today + DAY), i + (1 if text.low(i) == "ytd" else 3)
    front = text.after(i, "so", "far")
    unit = UNITS.get(text.low(front + 1), "")
    if text.low(front) != "this" or unit not in ("week", "month", "quarter", "year"):
        return None
    end = text.after(front + 2, "so", "far")
    if front == i and end == front + 2:
        return None
    return Stretch(unit_of(text.today, unit).start, text.today + DAY), end
