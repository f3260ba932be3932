"""Words that were meant: for one that no item has, the nearest in spelling that some item has.

Each word of the bank stands in a table under its trigrams (a blank at either end counts), so that a lookup
reads the few words that share some, and not all. What shares enough, and begins or ends as it does, is
compared by the edits that it takes: a letter too many, missing or wrong, or two that changed places. Nothing
is imported that costs.
"""

from __future__ import annotations

import sqlite3

from ua_memory.index.terms import STOP

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    Counted: TypeAlias = Callable[[Sequence[str]], Mapping[str, int]]

SHORTEST, LONGEST = 5, 40
"""Letters of a word that is guessed at: below, half the language is one edit away; above, it is no word."""

LONG = 9
"""From so many letters on two edits are allowed; below, one."""

FEW = 6
"""Words of a query that are guessed at; with more it is no query in the bank's language."""

COMPARED = 200
"""Words that are compared letter by letter, those that share most trigrams."""


def told(word: str) -> bool:
    """Whether a word may be guessed at, or guessed: not the short, nor numbers."""
    return SHORTEST <= len(word) <= LONGEST and sum(map(str.isalpha, word)) >= SHORTEST


def grams(word: str) -> set[str]:
    """The trigrams of a word and the blanks around it."""
    padded = f" {word} "
    return {padded[n : n + 3] for n in range(len(word))}


def add(db: sqlite3.Connection, words: Iterable[str]) -> None:
    """Write down how words are spelt. They stay when their last item goes; `meant` looks what is left."""
    rows = [(gram, len(word), word) for word in sorted(words) if told(word) for gram in sorted(grams(word))]
    db.executemany("INSERT OR IGNORE INTO grams VALUES (?, ?, ?)", rows)


def near(db: sqlite3.Connection, word: str) -> list[str]:
    """The words of the bank that take fewest edits to be this one, all that are equally near. Empty where
    none is near, or where it is not to be guessed at."""
    if not told(word):
        return []
    own, most = sorted(grams(word)), 2 if len(word) >= LONG else 1
    # An edit spoils three trigrams, two letters that changed places spoil four.
    least = max(1, len(own) - 3 * most - 1)
    rows = db.execute(
        f"SELECT word FROM grams WHERE gram IN ({','.join('?' * len(own))}) AND size BETWEEN ? AND ?"
        " AND (substr(word, 1, 1) = ? OR substr(word, -1) = ?)"
        " GROUP BY word HAVING count(*) >= ? ORDER BY count(*) DESC, word LIMIT ?",
        (*own, len(word) - most, len(word) + most, word[0], word[-1], least, COMPARED),
    )
    letters, digits = set(word), _digits(word)
    found: list[tuple[int, str]] = []
    for (other,) in rows:
        if len(letters ^ set(other)) <= 2 * most and _digits(other) == digits:
            far = edits(word, other, most)
            if 0 < far <= most:
                most = far
                found.append((far, other))
    return [other for far, other in sorted(found) if far == most]


def meant(db: sqlite3.Connection, counted: Counted, unknown: Iterable[str]) -> dict[str, str]:
    """{term that no item has: the word that was meant}, '' for a small word, which says nothing. What has
    none near is left out. FEW are guessed at, in their order; `counted` says how many items have a term."""
    found: dict[str, str] = {}
    for term in [term for term in unknown if told(term)][:FEW]:
        close = near(db, term)
        many = counted(close)
        # Two letters that changed places are likelier than one taken for another.
        likely = [(sorted(word) != sorted(term), word[0] != term[0], -many[word], word) for word in close]
        word = min((each for each in likely if each[2]), default=("",))[-1]
        if word:
            found[term] = "" if word in STOP else str(word)
    return found


def edits(one: str, other: str, most: int) -> int:
    """The letters to add, drop or change, and neighbours to swap, to turn one word into the other (optimal
    string alignment); `most` + 1 for any more than that."""
    before, row = list[int](), list(range(len(other) + 1))
    for n, letter in enumerate(one, 1):
        last, before, row = before, row, [n]
        for m, sign in enumerate(other, 1):
            cost = min(before[m] + 1, row[m - 1] + 1, before[m - 1] + (letter != sign))
            if n > 1 and m > 1 and letter == other[m - 2] and one[n - 2] == sign:
                cost = min(cost, last[m - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def _digits(word: str) -> str:
    return "".join(sign for sign in word if sign.isdigit())
