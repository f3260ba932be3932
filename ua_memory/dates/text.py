"""A text on its way through the grammar: its tokens, and the today it is read against."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from datetime import date, datetime, tzinfo

from ua_memory.dates.stretch import Cycle, Stretch
from ua_memory.dates.words import NUMBERS, ORDINALS, TENS, Token, cut

Time = Stretch | Cycle
Found = tuple[Time, int]
"""What was read, and the number of the token after it."""


@dataclass(frozen=True, slots=True)
class Text:
    """Tokens, and `now` in the zone whose days are meant; `month_first` is how 3/5/2026 is written there."""

    tokens: tuple[Token, ...]
    now: datetime
    zone: tzinfo | None
    month_first: bool = False

    @classmethod
    def of(cls, text: str, now: datetime, zone: tzinfo | None, month_first: bool) -> Text:
        return cls(tuple(cut(text)), now, zone, month_first)

    @property
    def today(self) -> date:
        return self.now.date()

    def __len__(self) -> int:
        return len(self.tokens)

    def low(self, i: int) -> str:
        """The word there in small letters; '' where there is none."""
        return self.tokens[i].low if 0 <= i < len(self.tokens) else ""

    def kind(self, i: int) -> str:
        return self.tokens[i].kind if 0 <= i < len(self.tokens) else ""

    def capital(self, i: int) -> bool:
        return 0 <= i < len(self.tokens) and self.tokens[i].capital

    def owns(self, i: int) -> bool:
        return 0 <= i < len(self.tokens) and self.tokens[i].owns

    def after(self, i: int, *words: str) -> int:
        """The token after such words one after another, or `i` itself where they do not stand there."""
        here = all(self.low(i + n) == word for n, word in enumerate(words))
        return i + len(words) if here else i

    def skip(self, i: int, words: Container[str]) -> int:
        """The token after one of these words, if it stands there."""
        return i + 1 if self.low(i) and self.low(i) in words else i

    def count(self, i: int) -> tuple[int, int] | None:
        """A number of things: `3`, `three`, `twenty-one`, `a couple of`; and what comes after."""
        i = self.skip(i, ("another", "about", "around", "roughly", "almost", "nearly"))
        if self.kind(i) == "number" and self.low(i).isdigit():
            return int(self.low(i)), i + 1
        word = self.low(i)
        if word in TENS and self.kind(i + 1) == "dash" and NUMBERS.get(self.low(i + 2), 99) < 10:
            return TENS[word] + NUMBERS[self.low(i + 2)], i + 3
        if word not in NUMBERS:
            return None
        if word in ("a", "an") and self.low(i + 1) in ("couple", "few", "dozen"):
            i, word = i + 1, self.low(i + 1)
        return NUMBERS[word], self.skip(i + 1, ("of",)) if word in ("couple", "dozen") else i + 1

    def ordinal(self, i: int) -> tuple[int, int] | None:
        """`3rd`, `third`, `twenty-first`, and what comes after."""
        if self.kind(i) == "ordinal":
            return int(self.low(i)[:-2]), i + 1
        word = self.low(i)
        if word in TENS and self.kind(i + 1) == "dash" and ORDINALS.get(self.low(i + 2), 99) < 10:
            return TENS[word] + ORDINALS[self.low(i + 2)], i + 3
        return (ORDINALS[word], i + 1) if word in ORDINALS else None


Rule = Callable[[Text, int], Found | None]
"""Reads what begins at a token, if anything does. ValueError for a day that no calendar has."""


def longest(text: Text, i: int, *rules: Rule) -> Found | None:
    """What reads most; the first of those that read the same."""
    best: Found | None = None
    for rule in rules:
        try:
            found = rule(text, i)
        except (ValueError, OverflowError):  # the 31st of February, the year 20000
            continue
        if found and (best is None or found[1] > best[1]):
            best = found
    return best
