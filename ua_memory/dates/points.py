"""How time words combine into one time: modifier × unit × anchor, and parts of a stretch.

Read from the inside out: what a calendar names or what is counted from today, then what it lies in (the
Friday of last week), then which part of it is meant.
"""

from __future__ import annotations

from datetime import date

from ua_memory.dates.anchors import anchor
from ua_memory.dates.relative import relative
from ua_memory.dates.stretch import (
    DAY,
    MONTHS_IN,
    Cycle,
    Stretch,
    count_in,
    day,
    monday,
    shifted,
    third,
    unit_of,
    weekday,
)
from ua_memory.dates.text import Found, Text, Time, longest
from ua_memory.dates.words import (
    DAYTIMES,
    PART,
    UNITS,
    WEEKDAYS,
)

_SIZES = {
    "day": 1,
    "weekend": 2,
    "week": 7,
    "month": 31,
    "quarter": 92,
    "season": 92,
    "half": 184,
    "year": 366,
}


def settle(text: Text, time: Time) -> Stretch:
    """Which occurrence is meant where no other word says so: the latest that has begun."""
    return time.begun(text.today) if isinstance(time, Cycle) else time


def point(text: Text, i: int) -> Found | None:
    """One time: `early last year`, `the second week of May`, `Friday last week at noon`."""
    found = longest(text, i, _part, _counted, _of_week, _offset, _daytime_of, bounded)
    return (found[0], _tail(text, found[1])) if found else None


def bounded(text: Text, i: int) -> Found | None:
    """A core and what it lies in, in either order: `May last year`, `last week on Tuesday`."""
    at = text.skip(i, ("the",))
    found = longest(text, at, relative, anchor) or longest(text, i, relative, anchor)
    if found is None:
        return None
    time, j = found
    inside = _link(text, j, ("of", "in", ",", "on", "at", "during"))
    other = longest(text, text.skip(inside, ("the",)), relative, anchor) if inside < len(text) else None
    if other is None:
        return found
    if isinstance(time, Cycle) and isinstance(other[0], Stretch) and _longer(other[0], time.grain):
        within = _this_or_first(time, other[0])
        return (within, other[1]) if within else found
    if isinstance(time, Stretch) and isinstance(other[0], Cycle) and _longer(time, other[0].grain):
        within = other[0].within(time)
        return (within, other[1]) if within else found
    if isinstance(time, Cycle) and isinstance(other[0], Cycle) and inside > j and text.low(j) in ("of", "in"):
        settled = other[0].begun(text.today)
        within = time.within(settled) if _longer(settled, time.grain) else None
        return (within, other[1]) if within else found
    return found


def _this_or_first(cycle: Cycle, container: Stretch) -> Stretch | None:
    return cycle.within(container)


def _longer(container: Stretch, grain: str) -> bool:
    if container.start is None or container.end is None:
        return False
    return container.days > _SIZES.get(grain, 10**6)


def _link(text: Text, j: int, words: tuple[str, ...]) -> int:
    return text.skip(j, words)


def _container(text: Text, i: int) -> tuple[Stretch, int] | None:
    """What something is a part of: `May`, `last month`, and `the year` for this one."""
    unit = UNITS.get(text.low(i + 1), "")
    if (
        text.low(i) == "the"
        and (unit in MONTHS_IN or unit in ("week", "weekend"))
        and text.low(i + 1) == unit
    ):
        after = text.low(i + 2)
        if after not in ("of", "before", "after", "starting", "beginning", "ending"):
            return unit_of(text.today, unit), i + 2
    found = longest(text, i, _counted, _of_week, bounded)
    return (settle(text, found[0]), found[1]) if found else None


def _part(text: Text, i: int) -> Found | None:
    """`early 2026`, `mid-May`, `the end of last month`, `late in the summer`, `earlier this year`."""
    at = text.skip(i, ("the", "very"))
    word = text.low(at)
    if word in ("earlier", "later"):
        return _side(text, at + 1, word)
    if word not in PART:
        return None
    j = at + 1
    if text.kind(j) == "dash":
        j += 1
    elif word in ("beginning", "start", "end", "middle"):
        if text.low(j) != "of":
            return None
        j += 1
    else:
        j = text.skip(j, ("in", "on", "of"))
    if word in ("early", "late") and text.low(j) in ("this", "that") and text.low(j + 1) in DAYTIMES:
        return longest(text, j, relative)
    found = _container(text, j) or _container(text, text.skip(j, ("the",)))
    if found is None:
        return None
    whole = found[0]
    return (whole if whole.grain == "day" else third(whole, PART[word])), found[1]


def _side(text: Text, j: int, word: str) -> Found | None:
    """`earlier this year`: up to today; `later this month`: from today on. Of what is over, all."""
    found = _container(text, text.skip(j, ("in", "on")))
    if found is None:
        return None
    start, end = found[0].parts()
    if start <= text.today < end:
        return (Stretch(start, text.today + DAY) if word == "earlier" else Stretch(text.today, end)), found[1]
    return found


def _counted(text: Text, i: int) -> Found | None:
    """`the second week of May`, `the last two days of 2025`, `the first half of last year`."""
    at = text.skip(i, ("the",))
    last = text.low(at) in ("last", "final", "latter")
    ordinal = (-1, at + 1) if last else (1, at + 1) if text.low(at) == "former" else text.ordinal(at)
    if ordinal is None:
        return None
    number, j = ordinal
    several = text.count(j) if text.low(j) not in ("a", "an") else None
    size, j = several or (1, j)
    weekday_, unit = WEEKDAYS.get(text.low(j)), UNITS.get(text.low(j), "")
    unit = "half" if text.low(j) == "half" else unit
    month_day = number > 0 and several is None and text.low(j) in ("of", "day")
    if month_day and text.low(j) == "of":
        return _day_of(text, number, j + 1)
    if (weekday_ is None and not unit) or text.low(j + 1) not in ("of", "in"):
        return None
    inside = _container(text, j + 2)
    if inside is None:
        return None
    found = _nth(inside[0], number, size, unit, weekday_)
    return (found, inside[1]) if found else None


def _day_of(text: Text, number: int, j: int) -> Found | None:
    """`the 3rd of last month`, `the 3rd of the month`."""
    inside = _container(text, j)
    if inside is None or inside[0].grain != "month":
        return None
    start, end = inside[0].parts()
    found = start + (number - 1) * DAY
    return (day(found), inside[1]) if found < end else None


def _nth(inside: Stretch, number: int, size: int, unit: str, weekday_: int | None) -> Stretch | None:
    start, end = inside.parts()
    if weekday_ is not None:
        return count_in(inside, weekday(weekday_), number)
    if unit in ("minute", "hour", "second", "fortnight", "decade"):
        return None
    if unit == "half":
        middle = shifted(start, 6, "month") if inside.grain == "year" else start + inside.days // 2 * DAY
        return Stretch(start, middle) if number == 1 else Stretch(middle, end) if number in (2, -1) else None
    if unit == "weekend":
        first = monday(start) + 5 * DAY
        first = first if first >= start else first + 7 * DAY
        mine = [first + n * 7 * DAY for n in range(60) if first + n * 7 * DAY < end]
        at = mine[number - 1 if number > 0 else -1]
        return Stretch(at, at + 2 * DAY, "weekend")
    if number < 0:
        found = Stretch(shifted(end, -size, unit), end, unit)
    else:
        first = shifted(start, (number - 1) * size, unit)
        found = Stretch(first, min(end, shifted(first, size, unit)), unit if size == 1 else "")
    return found if found.parts()[0] >= start and found.days > 0 else None


def _of_week(text: Text, i: int) -> Found | None:
    """`the week of 3 May`, `the week starting 4 May`, `the weekend of …`, `the month of May`."""
    at = text.skip(text.skip(i, ("the",)), ("calendar", "iso"))
    unit = text.low(at)
    if unit == "week" and text.kind(at + 1) == "number":
        return _numbered_week(text, at + 1)
    if unit not in ("week", "weekend", "month", "year", "quarter", "day"):
        return None
    how, j = text.low(at + 1), at + 2
    if how not in ("of", "starting", "beginning", "commencing", "ending", "around", "containing", "from"):
        return None
    inner = bounded(text, text.skip(j, ("on",)))
    if inner is None:
        return None
    found = settle(text, inner[0])
    start, end = found.parts()
    if how in ("starting", "beginning", "commencing", "from"):
        return (Stretch(start, shifted(start, 1, unit)), inner[1]) if unit in ("week", "month") else None
    if how == "ending":
        return (Stretch(end - 7 * DAY, end), inner[1]) if unit == "week" else None
    return (unit_of(start, unit) if found.days <= _SIZES.get(unit, 0) else found), inner[1]


def _numbered_week(text: Text, i: int) -> Found | None:
    j = text.skip(i + 1, ("of", ","))
    if text.kind(j) != "number" or len(text.low(j)) != 4:
        return None
    start = date.fromisocalendar(int(text.low(j)), int(text.low(i)), 1)
    return Stretch(start, start + 7 * DAY, "week"), j + 1


def _offset(text: Text, i: int) -> Found | None:
    """`two days before Christmas`, `the week after 3 May`, `the Friday before Easter 2026`."""
    at = text.skip(i, ("the",))
    count = text.count(at) if at == i else (1, at)
    if count is None:
        return None
    number, j = count
    word = text.low(j)
    unit, weekday_ = UNITS.get(word, ""), WEEKDAYS.get(word)
    side = text.low(j + 1)
    if side not in ("before", "after", "following", "preceding") or not (unit or weekday_ is not None):
        return None
    inner = bounded(text, j + 2)
    if inner is None:
        return None
    base, earlier = settle(text, inner[0]), side in ("before", "preceding")
    start, end = base.parts()
    if weekday_ is not None:
        cycle = weekday(weekday_)
        return (cycle.past(start) if earlier else cycle.coming(end - DAY)), inner[1]
    if unit in ("minute", "hour", "second"):
        return base, inner[1]
    if at != i and unit != "day":  # the week before it, up to it
        if base.grain == unit:
            return unit_of(start - DAY if earlier else end, unit), inner[1]
        size = "week" if unit == "weekend" else unit
        near = Stretch(shifted(start, -1, size), start) if earlier else Stretch(end, shifted(end, 1, size))
        if unit == "weekend":
            saturday = weekday(5).past(start) if earlier else weekday(5).coming(end - DAY)
            return unit_of(saturday.parts()[0], "weekend"), inner[1]
        return near, inner[1]
    return day(shifted(start, -number, unit) if earlier else shifted(end - DAY, number, unit)), inner[1]


def _daytime_of(text: Text, i: int) -> Found | None:
    """`the morning of 3 May`: that day."""
    at = text.skip(i, ("the",))
    if at == i or text.low(at) not in DAYTIMES or text.low(at + 1) not in ("of", "after", "before"):
        return None
    j = at + 2 if text.low(at + 1) == "of" else at
    inner = bounded(text, text.skip(j, ("the",))) if j != at else None
    return inner if inner and settle(text, inner[0]).grain == "day" else None


def _tail(text: Text, j: int) -> int:
    """Past a time of day, which a day is read without: `yesterday morning`, `on Monday at 14:00`."""
    while True:
        at = text.skip(j, (",",)) if text.kind(j + 1) == "clock" else j
        at = text.skip(at, ("at", "around", "in", "about"))
        at = text.skip(at, ("the", "early", "late"))
        clock = text.kind(at) == "clock" or (text.low(at - 1) == "at" and text.low(at + 1) in ("am", "pm"))
        if not (clock or text.low(at) in DAYTIMES):
            return j
        j = at + 1 + (text.low(at + 1) in ("am", "pm"))


def first_day(stretch: Stretch) -> date:
    start = stretch.point or stretch.start
    if start is None:
        raise ValueError("an open stretch does not begin")
    return start
