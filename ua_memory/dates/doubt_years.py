"""Whether digits are a date: 2019 the year or the port, the 90s or a wait of 90s.

In doubt it is no date: a window that nobody asked for hides what was asked for, while a date that is not read
leaves a search as good as it was.
"""

from __future__ import annotations

from ua_memory.dates.around import (
    COUNTED,
    IN,
    NUMBERED,
    PARTS,
    ROUND,
    WHICH,
    YEARLY,
    ends,
    words,
)
from ua_memory.dates.text import Text
from ua_memory.dates.words import (
    LAST,
    THIS,
)


def stands_alone(text: Text, i: int, j: int) -> bool:
    """Whether digits are a date by themselves; `5/3` never, and no `version 2026.05.03`."""
    shape = text.low(i)
    if shape.count("/") == 1 and len(shape) <= 5:
        return False
    if text.kind(i - 1) == "dash" and not (i >= 2 and text.kind(i - 2) == "date"):
        return False
    if text.kind(j) == "dash" and text.low(j) == "-":
        return False
    return text.low(i - 1) not in NUMBERED


def is_year(text: Text, i: int, at: int) -> bool:
    """Whether four digits at `at` are a year; `i` is `at`, or the word "year" before them."""
    number, j, before = int(text.low(at)), at + 1, text.low(i - 1)
    if not 1900 <= number <= 2100 or text.low(j) in COUNTED:
        return False
    if text.kind(j) == "quarter":
        return True
    if text.kind(j) == "dash" or text.kind(i - 1) == "dash":
        return _year_beside_dash(text, i, j)
    if i != at:
        return True
    if text.low(j) in ("to", "through", "until") and text.kind(j + 1) == "number" and before not in NUMBERED:
        other = text.low(j + 1)
        return len(other) == 4 and 1900 <= int(other) <= 2100 and text.low(j + 2) not in COUNTED
    if before in IN | LAST | THIS or (
        before in ROUND and before not in ("at", "on", "to", "for", "about", "than")
    ):
        return _year_after_preposition(text, at, before)
    if before == "to" and text.kind(at - 2) == "number" and text.low(at - 3) in NUMBERED:
        return False
    if before in ("to", "for", "about", "than") or before in WHICH:
        return ends(text, j) and _plausible(text, number)
    if i == 0 and j + (text.kind(j) == "mark") >= len(text):
        return True
    return _plausible(text, number) and _year_by_noun(text, i, j, before)


def _plausible(text: Text, number: int) -> bool:
    return 1990 <= number <= text.today.year + 6


def _year_beside_dash(text: Text, i: int, j: int) -> bool:
    """`2019–2021` and `mid-2025` have years, `2019-rc` and `item-2019` none."""
    left = text.low(i - 2) if text.kind(i - 1) == "dash" else ""
    right = text.low(j + 1) if text.kind(j) == "dash" else ""
    known = [word in WHICH or (len(word) == 4 and word.isdigit()) for word in (left, right) if word]
    return bool(known) and all(known)


def _year_after_preposition(text: Text, at: int, before: str) -> bool:
    """`in 2019` but not `in 2019 files`, `by 2000 users`, `between 2000 and 3000`."""
    j = at + 1
    if (
        before in ("between", "from", "of")
        and text.low(j) in ("and", "to", "-")
        and text.kind(j + 1) == "number"
    ):
        other = text.low(j + 1)
        return len(other) == 4 and 1900 <= int(other) <= 2100 and text.low(j + 2) not in COUNTED
    if before in ("and", "or"):
        other = text.low(at - 2)
        return len(other) == 4 and other.isdigit() and 1900 <= int(other) <= 2100
    if before == "of" and text.low(at - 2) in (
        "total",
        "maximum",
        "limit",
        "minimum",
        "size",
        "sum",
        "value",
    ):
        return False
    if before in ("by", "from", "after", "before", "of", "over", "within", "through", "up"):
        return ends(text, j) or text.low(j) in YEARLY
    return True


def _year_by_noun(text: Text, i: int, j: int, before: str) -> bool:
    """`my 2025 taxes`, `budget 2025`, `2026 goals` at the beginning; not `room 2026`."""
    if before in NUMBERED:
        return False
    if text.low(j) in YEARLY or (before in YEARLY and ends(text, j)):
        return True
    article = before in ("the", "my", "our", "your", "his", "her", "their") or text.owns(i - 1)
    if text.low(j) in ("and", "or", "vs", "versus") and text.kind(j + 1) == "number":
        return False
    return (
        article
        and text.kind(j) == "word"
        and not text.capital(j)
        and not ends(text, j)
        and _event(text.low(j))
    )


def _event(word: str) -> bool:
    """A noun that happens rather than stands about: `my 2019 laptop` is not from a search for 2019."""
    endings = (
        "tion",
        "sion",
        "ment",
        "ing",
        "ance",
        "ence",
        "party",
        "crisis",
        "crash",
        "outage",
        "launch",
        "tour",
    )
    return word.endswith(endings) or word in words(
        "move meeting visit flood war strike audit migration release"
    )


def is_year_after_name(text: Text, i: int, j: int) -> bool:
    """Whether `May 2019` ends there: a counted thing behind it makes it a number, `may 2019 be` a verb."""
    return text.low(j) not in COUNTED and not (
        not text.capital(i) and text.low(i) == "may" and text.low(j) == "be"
    )


def is_decade(text: Text, i: int) -> bool:
    """`the 90s`, `the late 1990s`; not `in his nineties`, `90s music`, `low 20s` or `wait 30s`."""
    before, word = text.low(i - 1), text.low(i)
    if text.kind(i - 1) == "dash":
        before = text.low(i - 2)
    if any(token.low.startswith(("temperature", "degree")) for token in text.tokens):
        return False
    if text.tokens[i].text[0] in "'’" and ends(text, i + 1):
        return True
    if before in PARTS:
        return len(text.low(i)) > 4 or text.low(i - 1) != "start"
    if word in ("00s", "10s", "20s", "30s"):
        return False
    return (before == "the" or (before in ("in", "since", "during") and len(text.low(i)) >= 5)) and ends(
        text, i + 1
    )


def is_short_year(text: Text, i: int) -> bool:
    """`in '19`, `since '24`."""
    return text.low(i - 1) in IN | {"from", "by", "before", "after", "early", "late"} and ends(text, i + 1)
