"""From one time to another: `between March and May 2026`, `from 3 to 9 June`, `2019–2021`, `May and June`."""

from __future__ import annotations

from datetime import date

from ua_memory.dates.anchors import month_at
from ua_memory.dates.points import first_day, point, settle
from ua_memory.dates.stretch import (
    DAY,
    Cycle,
    Stretch,
    day,
    in_month,
    monthly,
)
from ua_memory.dates.text import Found, Text, Time
from ua_memory.dates.words import (
    PART,
    UNITS,
)

_FROM = {"from": ("to", "until", "till", "through", "thru", "and", "up"), "between": ("and", "to")}


def stretch_between(text: Text, i: int) -> Found | None:
    """`between March and May 2026`, `from 3 to 9 June`, `2019–2021`, `May and June`."""
    joins = _FROM.get(text.low(i))
    at = i + 1 if joins else i
    days = _days_in_month(text, at, joins)
    if days:
        return days
    left = point(text, at)
    if left is None:
        return None
    j = joined(text, left[1], joins)
    if j is None:
        return None
    if text.low(j) in ("now", "present", date) or text.low(text.skip(j, ("the",))) == "present":
        return Stretch(first_day(settle(text, left[0])), text.today + DAY), text.skip(j, ("the",)) + 1
    if joins is None and text.low(left[1]) in ("and", "or") and text.low(j) in PART:
        return None
    right = _end_in_month(text, left[0], j) or point(text, text.skip(j, ("the",))) or point(text, j)
    if right is None or (joins is None and not _alike(left[0], right[0])):
        return None
    return _between(text, left[0], right[0]), right[1]


def joined(text: Text, j: int, joins: tuple[str, ...] | None) -> int | None:
    """Past what joins the two ends of a range, or None where nothing does."""
    if text.kind(j) == "dash":
        return j + 1
    allowed = joins or ("to", "through", "thru", "until", "till", "and", "or", "&")
    if text.low(j) in allowed or text.low(j) == "through":
        j += 1
        if text.low(j - 1) == "up":
            return text.skip(j, ("to", "until"))
        return text.skip(j, ("to",)) if text.low(j - 1) == "through" else j
    return None


def _alike(left: Time, right: Time) -> bool:
    """Ends that belong together without "from": months with months, days with days."""
    return left.grain == right.grain and bool(left.grain)


def _between(text: Text, left: Time, right: Time) -> Stretch:
    """Both ends settled: the one without a year beside the other, the later the nearer to today."""
    if isinstance(right, Cycle):
        if isinstance(left, Stretch):
            later = [each for each in right.near(first_day(left)) if each.parts()[0] >= first_day(left)]
            settled = later[0]
        else:
            settled = right.begun(text.today)
    else:
        settled = right
    begin = first_day(settled)
    if isinstance(left, Cycle):
        earlier = [each for each in left.near(begin) if each.parts()[0] <= begin]
        left = earlier[-1]
    first, last = left, settled
    if first_day(first) > begin:
        first, last = settled, left
    return Stretch(first_day(first), last.end if last.point is None else last.point + DAY)


def _days_in_month(text: Text, i: int, joins: tuple[str, ...] | None) -> Found | None:
    """`3–9 June`, `from 3 to 9 June 2026`, `between the 3rd and the 9th of last month`."""
    first = _bare_day(text, i)
    j = joined(text, first[1], joins) if first else None
    if first is None or j is None:
        return None
    right = point(text, j) or point(text, text.skip(j, ("the",)))
    if right is None and joins and (bare := _bare_day(text, j)) and text.ordinal(bare[1] - 1):
        right = (monthly(bare[0]), bare[1]) if bare[1] >= len(text) or text.kind(bare[1]) == "mark" else None
    if right is None or right[0].grain != "day":
        return None
    last = settle(text, right[0])
    end = last.parts()[0]
    if first[0] <= end.day:
        return Stretch(end.replace(day=first[0]), last.end), right[1]
    return None


def _bare_day(text: Text, i: int) -> tuple[int, int] | None:
    at = text.skip(i, ("the",))
    found = text.ordinal(at)
    if found is None and text.kind(at) == "number" and len(text.low(at)) <= 2:
        found = int(text.low(at).strip("'’")), at + 1
    return found if found and 1 <= found[0] <= 31 else None


def _end_in_month(text: Text, left: Time, j: int) -> Found | None:
    """The 9 of `June 3 to 9, 2026`."""
    bare = _bare_day(text, j)
    if bare is None or left.grain != "day" or month_at(text, text.skip(bare[1], ("of",))):
        return None
    if text.low(bare[1]) in UNITS or text.kind(bare[1]) == "dash":
        return None
    start = first_day(settle(text, left))
    after = text.skip(bare[1], (",",))
    if isinstance(left, Cycle) and text.kind(after) == "number" and len(text.low(after)) == 4:
        of_year = int(text.low(after))
        return _same_year(start, of_year, bare[0]), after + 1
    if isinstance(left, Cycle):
        return in_month(bare[0], start.month), bare[1]
    return (day(start.replace(day=bare[0])), bare[1]) if bare[0] > start.day else None


def _same_year(start: date, of_year: int, number: int) -> Stretch:
    return day(start.replace(year=of_year, day=number))
