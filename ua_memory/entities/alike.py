"""Whether two names may be one: pure comparison, which merges nothing.

What only writing makes different (case, signs, accents, a genitive, two letters that changed places) is one
name. A letter more, less or another may be somebody else (Daniel and Daniela, Martin and Marvin), and a short
name may be anybody's: those are `maybe`, for the context or a person to decide. Numbers are never rounded:
`Room 101` is not `Room 102`, and `Python 3` not `Python`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

LONG, LONGER = 5, 9
"""Letters from which one slip of the pen is thought of, and from which two."""

_GENITIVE = re.compile(r"(?<=\w)['’](?:s\b)?(?=\W*$)")
_INITIAL = re.compile(r"\b(\w)\.(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Likeness:
    """How near two names are: `sure` where only the writing differs, `maybe` where it may be another."""

    how: Literal["sure", "maybe"]
    reason: str


@lru_cache(maxsize=8192)
def fold(name: str) -> str:
    """A name as it is compared: case, signs and a genitive aside."""
    text = _GENITIVE.sub("", unicodedata.normalize("NFKC", name)).casefold()
    return " ".join(re.findall(r"\w+", text))


def likeness(one: str, other: str) -> Likeness | None:
    """How near two names are to being one; None if they are not. It does not matter which is given first."""
    a, b = fold(one), fold(other)
    if not a or not b or re.findall(r"\d+", a) != re.findall(r"\d+", b):
        return None
    if a == b:
        return Likeness("sure", "written alike but for case and signs")
    a, b = _bare(a), _bare(b)
    if a == b:
        return Likeness("sure", "written alike but for accents")
    if min(len(a), len(b)) >= LONG and a.replace(" ", "") == b.replace(" ", ""):
        return Likeness("sure", "the same letters, written apart or together")
    mine, theirs = a.split(), b.split()
    if len(mine) == len(theirs):
        return _word_by_word(mine, theirs, _initials(one) | _initials(other))
    return _shorter(*sorted((mine, theirs), key=len))


def _bare(text: str) -> str:
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def _initials(name: str) -> frozenset[str]:
    return frozenset(_bare(letter.casefold()) for letter in _INITIAL.findall(name))


def _word_by_word(mine: list[str], theirs: list[str], dotted: frozenset[str]) -> Likeness | None:
    different = [(a, b) for a, b in zip(mine, theirs, strict=True) if a != b]
    if len(different) > 1:
        turned = sorted(mine) == sorted(theirs) and len(mine) == 2
        return Likeness("maybe", "the same words in another order") if turned else None
    short, long = sorted(different[0], key=len)
    if len(short) == 1 and len(mine) > 1:
        initial = short in dotted and len(long) > 1 and long.startswith(short)
        return Likeness("maybe", f"{short.upper()}. may stand for {long.capitalize()}") if initial else None
    return _slip(short, long)


def _slip(short: str, long: str) -> Likeness | None:
    """What may have gone wrong in writing one of two words, which are not equal."""
    if long in (f"{short}s", f"{short}es") and len(short) > 2:
        return Likeness("maybe", "a plural, or an s of its own")
    if len(short) < LONG or short[0] != long[0] or not (short + long).isalpha():
        return None
    at = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) == len(long):
        if short[at + 1 :] == long[at + 1 :]:
            return Likeness("maybe", "one letter is another")
        if short[at : at + 2] == long[at : at + 2][::-1] and short[at + 2 :] == long[at + 2 :]:
            return Likeness("sure", "two letters have changed places")
    if len(long) == len(short) + 1 and short[at:] == long[at + 1 :]:
        doubled = long[at] == long[at - 1]
        return Likeness("sure", "a letter is doubled") if doubled else Likeness("maybe", "one letter more")
    two = len(short) >= LONGER and _edits(short, long) <= 2
    return Likeness("maybe", "two letters differ") if two else None


def _edits(a: str, b: str) -> int:
    """Letters to change, add or take out to make one word of the other (Levenshtein 1965)."""
    row = list(range(len(b) + 1))
    for n, x in enumerate(a, 1):
        above, row[0] = row[0], n
        for m, y in enumerate(b, 1):
            above, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, above + (x != y))
    return row[-1]


def _shorter(short: list[str], long: list[str]) -> Likeness | None:
    """A name that begins or ends another one, as a first or a last name does."""
    if len(short[0]) < 2 or (len(short) == 1 and len(short[0]) < 3):
        return None
    if long[: len(short)] == short or long[-len(short) :] == short:
        return Likeness("maybe", "the shorter is part of the longer")
    return None
