"""Where the sentences of a text end.

Imports little: a hook shortens a long prompt by its sentences before anything else is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from ua_memory.text.patterns import late, table

CODE = late(r"(`+)(?!`).{1,600}?(?<!`)\1(?!`)")
"""Code in a line of text."""
_STOP = late(
    r"([.!?…。！？](?:(?<=[.!?…])[\"'”“’»«)\]*_`]*(?=\s)|(?<=[。！？])[\"'”’」』）)\]*_`]*))"
    r"\s*(?=\S)(?!(?<=[?？]\s)– |(?<=[\"”“»«]\s)[a-z])"
)
"""The stop of a sentence with closing quotes and brackets, and the blanks after it. A dash after a question
introduces its answer."""
_WORD, _SEMICOLON = late(r"\w"), late(r"(?<=;)\s+|(?<=；)\s*")
_LONGEST_ASIDE = 400
"""A stop within so many characters of an open bracket is inside it; later the bracket is ignored."""
_NEAR = 160
"""Characters of a sentence that are looked at on either side of a place in it."""

_LAST_WORD = late(r"((?:\d{1,3}|[^\W_])(?![^\W_])|rts)|[^\W_]+", re.IGNORECASE)
"""A word backwards, in a group if it is a small number, an initial or a German street (`Hauptstr.`)."""
_GOES_ON = late(lambda: rf"(?=[^\0]*\0)(?:{'|'.join(pattern for _, pattern in table('full_stops.txt'))})")


def sentences(text: str) -> list[str]:
    """The sentences of each line of a text, if they have any words."""
    found = []
    for line in text.splitlines():
        found += [line[start:end].strip() for start, end in spans(line)]
    return [one for one in found if _WORD.search(one)]


def main_clauses(text: str) -> list[str]:
    """The same, also cut at semicolons."""
    return [part for one in sentences(text) for part in _SEMICOLON.split(one) if _WORD.search(part)]


def around(text: str, at: int, to: int) -> tuple[str, str]:
    """What is before and after `text[at:to]` in its sentence, at most `_NEAR` characters of each."""
    before = text[max(0, at - _NEAR) : at].rpartition("\n")[2]
    line = before + text[at : to + _NEAR].partition("\n")[0]
    at, to = len(before), len(before) + to - at
    start, end = next((span for span in spans(line) if span[1] > at), (at, to))
    return line[start:at], line[to:end]


def spans(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence of a paragraph, whose line breaks are blanks. A stop in code, in
    brackets or after an abbreviation ends none."""
    hidden = CODE.sub(lambda m: "x" * len(m[0]), text) if "`" in text else text
    start, aside = 0, "(" in hidden
    for stop in _STOP.finditer(hidden):
        at, to = stop.span()
        near = max(start, at - _LONGEST_ASIDE)
        if aside and near == start and hidden.count("(", near, to) > hidden.count(")", near, to):
            continue
        if hidden[at] == "." and goes_on(hidden[near : at + 1], hidden[to : to + 40]):
            continue
        yield start, stop.end(1)
        start = to
    if start < len(text):
        yield start, len(text)


def goes_on(before: str, after: str) -> bool:
    """Whether the full stop that ends `before` is that of an abbreviation, an ordinal or a date, and ends no
    sentence."""
    last = _LAST_WORD.match(before[-2:-18:-1])  # a search forwards takes longer
    if not last or not (last[1] or last[0].casefold() in _last_words()):
        return False
    return _GOES_ON.search(f"{before[-16:]}\0{after}") is not None


@cache
def _last_words() -> frozenset[str]:
    """The last words of all abbreviations, backwards."""
    stops = (pattern.partition(r"\.\x00")[0] for _, pattern in table("full_stops.txt"))
    return frozenset(word[::-1] for stop in stops for word in re.findall(r"\w+(?=[|)])", stop))
