"""The part of an item's text that shows why it was found."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ua_memory.index.terms import words as words_of
from ua_memory.index.words import Words

LENGTH = 700
"""Characters: what OpenClaw shows, and what the score against it counts."""

_WORD = re.compile(r"\w+")


def snippet(words: Words, text: str, idf: Mapping[str, float], length: int = LENGTH) -> str:
    """At most `length` characters of the text, around where the query's words stand densest.

    A text that fits is given whole; a cut is marked by … at a word's edge.
    """
    if len(text) <= length:
        return text
    start = _densest(_matches(words, text, idf), length - 2, len(text))
    end = min(len(text), start + length - 2)
    if start > 0:
        start = _edge(text, start, 1)
    if end < len(text):
        end = _edge(text, end, -1)
    return ("…" if start > 0 else "") + text[start:end].strip() + ("…" if end < len(text) else "")


def _matches(words: Words, text: str, idf: Mapping[str, float]) -> list[tuple[int, int, str]]:
    spans = [(m.start(), m.end(), words_of(m.group())) for m in _WORD.finditer(text)]
    stems = words.vocabulary.stems(sorted({part for _, _, parts in spans for part in parts}))
    found = []
    for start, end, parts in spans:
        known = [stems.get(part, "") for part in parts]
        found += [(start, end, stem) for stem in known if idf.get(stem)]
    # A long run without blanks (CJK) is one span; where in it the match lies is left to its middle.
    return found


def _densest(found: list[tuple[int, int, str]], length: int, size: int) -> int:
    """Where the window with most matches begins: different words first, then how many."""
    best, chosen = (0, 0), (0, 0)
    low = 0
    for high in range(len(found)):
        while found[high][1] - found[low][0] > length and low < high:
            low += 1
        window = found[low : high + 1]
        value = len({stem for _, _, stem in window}), len(window)
        if value > best:
            best, chosen = value, (found[low][0], min(found[high][1], found[low][0] + length))
    middle = (chosen[0] + chosen[1]) // 2 if found else 0
    return max(0, min(middle - length // 2, size - length))


def _edge(text: str, at: int, step: int) -> int:
    """The nearest blank in a direction, if there is one within 40 characters."""
    for far in range(40):
        here = at + far * step
        if 0 < here < len(text) and text[here - (step < 0)].isspace():
            return here
    return at
