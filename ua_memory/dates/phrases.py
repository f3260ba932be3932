"""A whole phrase of time: a point, a range, or a side left open (`since March`, `before 2020`)."""

from __future__ import annotations

from ua_memory.dates.points import first_day, point, settle
from ua_memory.dates.ranges import stretch_between
from ua_memory.dates.stretch import (
    DAY,
    Stretch,
)
from ua_memory.dates.text import Found, Rule, Text, longest


def phrase(text: Text, i: int) -> tuple[Stretch, int] | None:
    """The longest time that begins at a token, resolved against today."""
    found = longest(text, i, _settled(stretch_between), _settled(_open), _settled(point))
    return found and (settle(text, found[0]), found[1])


def _settled(rule: Rule) -> Rule:
    def settled(text: Text, i: int) -> Found | None:
        found = rule(text, i)
        return found and (settle(text, found[0]), found[1])

    return settled


def _open(text: Text, i: int) -> Found | None:
    """`since March`, `until Friday`, `before 2020`, `after 3 May`, `older than a week`."""
    for words, how in _SIDES:
        j = text.after(i, *words)
        if j > i:
            found = (
                _bare_day_of(text, j)
                or point(text, j)
                or point(text, text.skip(j, ("the", "about", "around")))
            )
            if found is None:
                continue
            return _sided(text, settle(text, found[0]), how, i, j), found[1]
    if text.low(i) in ("from", "starting", "as", "beginning"):
        return _onwards(text, i)
    return None


def _bare_day_of(text: Text, j: int) -> Found | None:
    return None


def _sided(text: Text, found: Stretch, how: str, i: int, j: int) -> Stretch:
    if text.low(i) == "through" and found.grain == "season":
        return found
    at_edge = _edge_word(text, j)
    begin, end = first_day(found), found.point + DAY if found.point else found.end
    if at_edge == "end" and how in ("before", "until"):
        return Stretch(None, end)
    if at_edge == "start" and how in ("before", "until"):
        return Stretch(None, begin)
    if at_edge == "end" and how == "since":
        return Stretch(begin, None)
    if at_edge == "start" and how == "after":
        return Stretch(begin, None)
    return {
        "since": Stretch(begin, None),
        "until": Stretch(None, end),
        "before": Stretch(None, begin),
        "after": Stretch(end, None),
    }[how]


def _edge_word(text: Text, j: int) -> str:
    word = text.low(text.skip(j, ("the", "very")))
    return "start" if word in ("start", "beginning") else "end" if word == "end" else ""


def _onwards(text: Text, i: int) -> Found | None:
    j = i + 1
    begins = text.low(i) != "from"
    j = text.skip(j, ("from", "in", "on", "of", "with")) if begins else j
    found = point(text, j)
    if found is None:
        return None
    stretch = settle(text, found[0])
    for words in (
        ("onwards",),
        ("onward",),
        ("on",),
        ("and", "later"),
        ("and", "after"),
        ("forward",),
        ("until", "now"),
    ):
        after = text.after(found[1], *words)
        if after > found[1] and (words != ("on",) or after >= len(text) or text.kind(after) == "mark"):
            return Stretch(first_day(stretch), None), after
    return (Stretch(first_day(stretch), None), found[1]) if begins else None


_SIDES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("since", "before"), "before"),
    (("ever", "since"), "since"),
    (("since",), "since"),
    (("not", "before"), "since"),
    (("no", "earlier", "than"), "since"),
    (("no", "later", "than"), "until"),
    (("not", "after"), "until"),
    (("up", "until"), "until"),
    (("up", "till"), "until"),
    (("up", "to", "and", "including"), "until"),
    (("up", "to"), "until"),
    (("until",), "until"),
    (("till",), "until"),
    (("through",), "until"),
    (("by",), "until"),
    (("before",), "before"),
    (("prior", "to"), "before"),
    (("earlier", "than"), "before"),
    (("older", "than"), "before"),
    (("after",), "after"),
    (("later", "than"), "after"),
    (("newer", "than"), "after"),
    (("more", "recent", "than"), "after"),
)
