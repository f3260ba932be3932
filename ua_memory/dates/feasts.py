"""Feasts by name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

from ua_memory.dates.stretch import (
    DAY,
    Stretch,
    day,
    easter,
    nth_weekday,
)


def _around_easter(days: int) -> Callable[[int], Stretch]:
    return lambda of: day(easter(of) + timedelta(days=days))


def _after(at: Callable[[int], Stretch], days: int) -> Callable[[int], Stretch]:
    return lambda of: day(at(of).parts()[0] + days * DAY)


_THANKSGIVING = nth_weekday(4, 3, 11)


def _fixed(of_month: int, of_day: int) -> Callable[[int], Stretch]:
    return lambda of: day(date(of, of_month, of_day))


FEASTS: dict[str, Callable[[int], Stretch]] = {
    "christmas": _fixed(12, 25), "christmas day": _fixed(12, 25), "xmas": _fixed(12, 25),
    "christmas eve": _fixed(12, 24), "boxing day": _fixed(12, 26), "new year's eve": _fixed(12, 31),
    "new year": _fixed(1, 1), "new year's": _fixed(1, 1), "new year's day": _fixed(1, 1),
    "new years": _fixed(1, 1),
    "new years eve": _fixed(12, 31), "new years day": _fixed(1, 1), "nye": _fixed(12, 31),
    "valentine's day": _fixed(2, 14), "valentines day": _fixed(2, 14), "halloween": _fixed(10, 31),
    "st patrick's day": _fixed(3, 17), "epiphany": _fixed(1, 6), "all saints' day": _fixed(11, 1),
    "easter": _around_easter(0), "easter sunday": _around_easter(0), "easter monday": _around_easter(1),
    "good friday": _around_easter(-2), "palm sunday": _around_easter(-7),
    "ash wednesday": _around_easter(-46),
    "pentecost": _around_easter(49), "whit monday": _around_easter(50), "ascension day": _around_easter(39),
    "thanksgiving": _THANKSGIVING, "thanksgiving day": _THANKSGIVING,
    "black friday": _after(_THANKSGIVING, 1),
    "cyber monday": _after(_THANKSGIVING, 4), "labor day": nth_weekday(1, 0, 9),
    "memorial day": nth_weekday(-1, 0, 5), "mother's day": nth_weekday(2, 6, 5),
    "father's day": nth_weekday(3, 6, 6),
    "martin luther king day": nth_weekday(3, 0, 1), "mlk day": nth_weekday(3, 0, 1),
}  # fmt: skip
"""Feasts by name: one day each. The moving ones of civil life are those of the United States."""
