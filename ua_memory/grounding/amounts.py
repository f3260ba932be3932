"""Numbers as a statement claims them: with their scale, sign, percent and currency.

`500k` is no 500, and 500 euros are no 500 dollars. Written another way (1,500 or 1'500.0, twelve or 12, 2k or
two thousand) a number is the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PLAIN = r"\d{1,3}(?:[ ,'.]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.,]\d+)*"
_SIGN = r"(?:(?<![\w.,)-])[-\u2212](?=[$€£¥]?\d)|\bminus )?"
_SCALES = {"k": 3, "thousand": 3, "m": 6, "mio": 6, "million": 6, "millions": 6, "bn": 9, "billion": 9}
_MONEY = {
    "$": ("$", "dollar", "dollars", "usd", "bucks"),
    "€": ("€", "euro", "euros", "eur"),
    "£": ("£", "pound", "pounds", "gbp", "quid"),
    "¥": ("¥", "yen", "jpy"),
    "%": ("%", "percent", "per cent", "pct"),
    "×": ("×", "times", "x"),
}
_UNITS = {word: unit for unit, words in _MONEY.items() for word in words}
_UNIT = "|".join(
    sorted(map(re.escape, (word for word in _UNITS if word.isalpha() or " " in word)), key=len)[::-1]
)
_AMOUNT = re.compile(
    rf"(?P<sign>{_SIGN})(?P<before>[$€£¥] ?)?(?P<digits>{_PLAIN})"
    rf"(?:(?P<close>k|m|bn)\b|[ -](?P<scale>thousand|millions?|mio|billion)\b)?"
    rf"(?: ?(?P<mark>[%$€£¥×])|[ -]?(?P<unit>{_UNIT})\b)?",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_][\w'-]*")
_SPELT = {
    **{word: n for n, word in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven"])},
    "eight": 8,
    **{word: n for n, word in enumerate(["nine", "ten", "eleven", "twelve", "thirteen", "fourteen"], 9)},
    **{word: n for n, word in enumerate(["fifteen", "sixteen", "seventeen", "eighteen", "nineteen"], 15)},
    **{"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80},
    **{"ninety": 90, "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "dozen": 12},
}
_ONE = frozenset({"one"})
"""So often a pronoun or an adverb that it claims nothing."""
_OFTEN = {"twice": 2, "thrice": 3}
"""How often: of things that are not two, `twice` says nothing."""
_TIMES = _OFTEN | {"double": 2, "doubled": 2, "doubles": 2, "triple": 3, "tripled": 3}
"""What says how often, but claims no number of its own, save those above."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A number in a text: `digits` as they are compared, its unit (a sign of `%$€£¥×`, or ""), and how it is
    written. `minutes` says that an `m` behind it may be that, or metres."""

    digits: str
    unit: str = ""
    written: str = ""
    negative: bool = False
    minutes: str = ""


class Amounts:
    """The numbers that a text has."""

    def __init__(self, text: str) -> None:
        found = list(amounts(text))
        self._exact = {(each.digits, each.unit) for each in found}
        self._negative = {each.digits for each in found if each.negative}
        words = {word.casefold() for word in _WORD.findall(text)}
        self._exact |= {(str(n), "×") for word, n in _TIMES.items() if word in words}
        plain = [each for each in found if each.written not in _OFTEN]
        self._digits = {each.digits for each in plain} | {each.minutes for each in plain}
        self._units = {
            unit for word, unit in _UNITS.items() if word in words or (len(word) == 1 and word in text)
        }

    def has(self, claim: str) -> bool:
        """Whether all numbers of a claim stand here, none in another currency or of another sign."""
        return all(map(self._has, amounts(claim)))

    def _has(self, one: Amount) -> bool:
        if one.negative and one.digits not in self._negative:
            return False
        if one.unit and (one.digits, one.unit) in self._exact:
            return True
        if one.unit and one.unit != "×":
            return (one.digits, "") in self._exact and one.unit in self._units
        return one.digits in self._digits or bool(one.minutes and one.minutes in self._digits)


def amounts(text: str) -> Iterator[Amount]:
    """The numbers in a text, those that are written in digits first."""
    rest = text
    for match in _AMOUNT.finditer(text):
        digits = plain = _plain(match["digits"])
        scale = (match["close"] or match["scale"] or "").casefold()
        unit = _UNITS.get((match["mark"] or match["unit"] or match["before"] or "").strip().casefold(), "")
        if scale:
            digits = _scaled(plain, _SCALES[scale])
            rest = rest[: match.start()] + " " * len(match[0]) + rest[match.end() :]
        minutes = plain if scale == "m" else ""
        yield Amount(digits, unit, match[0].strip(), bool(match["sign"]), minutes)
    for match in _WORD.finditer(rest):
        often = "×" if rest.startswith(" times", match.end()) else ""
        for part in match[0].casefold().split("-"):
            if part in _SPELT and part not in _ONE:
                yield Amount(
                    str(_SPELT[part]), often, f"{_SPELT[part]} times" if often else str(_SPELT[part])
                )
            elif part in _OFTEN:
                yield Amount(str(_OFTEN[part]), "×", part)


def _plain(number: str) -> str:
    """`1,500.0` as `1500`: written another way it is the same number."""
    plain = number.replace(",", "").replace("'", "").replace(" ", "")
    return plain.rstrip("0").rstrip(".") if plain.count(".") == 1 else plain


def _scaled(plain: str, power: int) -> str:
    whole, _, part = plain.partition(".")
    if not (whole + part).isdigit() or "." in part or len(part) > power:
        return plain
    return (whole + part.ljust(power, "0")).lstrip("0") or "0"
