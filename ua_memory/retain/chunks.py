"""A text in chunks of some 3,000 characters, cut where the text itself says so.

A cut is decided by what stands near it and by nothing else, as content-defined chunking does for backups
(LBFS, 2001; the choice of local maxima after Bjørner, Blass and Gurevich, 2010): a line inserted at the top
must not move the cuts below, or every edit of a document would have all of it read again and paid for.
Cutting at a fixed size would do exactly that.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

NEAR = 1_600
"""Characters to either side within which a place must be the best one to be cut at."""
EDGE = 700
"""Characters that the first and the last chunk have at least."""
MOST = 4_500
"""Characters of a chunk; what is longer is cut again, at a line, a sentence or a blank if need be."""

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_SENTENCE = re.compile(r"(?<=[.!?。！？…])[\"'”’)\]]*\s+(?=\S)|(?<=[。！？])(?=\S)")
_BLANK = re.compile(r"\s+(?=\S)")


_Weight = tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A stretch of a text. `name` is a hash of its words: white space around it changes nothing. `heading` is
    the last heading above its first words or within its first line, '' if there is none."""

    text: str
    name: str
    heading: str = ""


def cut(text: str) -> tuple[Chunk, ...]:
    """The chunks of a text, in order. Their texts joined are the text; () for one with nothing in it."""
    pieces: list[Chunk] = []
    heading = ""
    for piece in _cut(text):
        headings = [line.strip().strip("#").strip() for line in _headings(piece)]
        first = next((line for line in piece.splitlines() if line.strip()), "")
        if headings and _HEADING.match(first):
            heading = headings[0]
        pieces.append(Chunk(piece, name_of(piece), heading))
        heading = headings[-1] if headings else heading
    return tuple(pieces)


def name_of(text: str) -> str:
    """What a chunk with this text is called: `c` and eleven hexadecimal digits: to YAML a word."""
    return "c" + hashlib.sha256(text.strip().encode("utf-8", "replace")).hexdigest()[:11]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a text may be cut, and how good a place it is: the rank first, a hash to choose among equals."""

    at: int
    weight: _Weight


def _cut(text: str) -> Iterator[str]:
    if not text.strip():
        return
    places = [each for each in _places(text) if EDGE <= each.at <= len(text) - EDGE]
    ends = [*(place.at for place in _best(places)), len(text)]
    start = 0
    for end in ends:
        yield from _small(text[start:end])
        start = end


def _best(places: Sequence[_Place]) -> Iterator[_Place]:
    """The places that no other within NEAR characters outdoes; of equals the first."""
    before = _heaviest(places)
    after = _heaviest([replace(place, at=-place.at) for place in reversed(places)])[::-1]
    for place, left, right in zip(places, before, after, strict=True):
        if (left is None or left < place.weight) and (right is None or right <= place.weight):
            yield place


def _heaviest(places: Sequence[_Place]) -> list[_Weight | None]:
    """Of each place the heaviest weight within NEAR characters before it; None where there is none. In one
    pass: a list of 80,000 items must not take minutes."""
    found: list[_Weight | None] = []
    falling: deque[_Place] = deque()
    for place in places:
        while falling and falling[0].at < place.at - NEAR:
            falling.popleft()
        found.append(falling[0].weight if falling else None)
        while falling and falling[-1].weight <= place.weight:
            falling.pop()
        falling.append(place)
    return found


def _small(text: str) -> Iterator[str]:
    """A stretch in pieces of at most MOST characters, cut at its best inner place, and these again."""
    if len(text) <= MOST:
        yield text
        return
    low, high, middle = EDGE, len(text) - EDGE, len(text) // 2
    inner = [place for place in _places(text) if low <= place.at <= high] or _finer(text, low, high)
    # Among equals the middle one: a list of one item a thousand times must not be peeled off item by item.
    at = max(inner, key=lambda place: (place.weight, -abs(place.at - middle))).at if inner else middle
    yield from _small(text[:at])
    yield from _small(text[at:])


def _places(text: str) -> Iterator[_Place]:
    """The beginnings of headings, paragraphs and top-level items, in order; none inside a code fence."""
    at, fence, blank = 0, "", True
    for line in text.splitlines(keepends=True):
        opened = _FENCE.match(line)
        heading = None if fence else _HEADING.match(line)
        if heading:
            yield _place(line, at, 9 - len(heading[1]))
        elif blank and line.strip() and not fence and not line[0].isspace():
            yield _place(line, at, 2)
        if opened and (not fence or opened[1].startswith(fence)):
            fence = "" if fence else opened[1]
        blank = not line.strip()
        at += len(line)


def _finer(text: str, low: int, high: int) -> list[_Place]:
    """Where a paragraph may be cut: at lines, else at sentences, else at blanks, nearest the middle."""
    for pattern in (re.compile(r"\n(?=[^\n])"), _SENTENCE, _BLANK):
        found = [match.end() for match in pattern.finditer(text, low, high)]
        if found:
            return [_place(text[at : at + 80], at, 1) for at in found]
    return []


def _place(words: str, at: int, rank: int) -> _Place:
    return _Place(at, (rank, hashlib.sha256(words.strip().encode("utf-8", "replace")).digest()[:8]))


def _headings(text: str) -> Iterator[str]:
    fence = ""
    for line in text.splitlines():
        opened = _FENCE.match(line)
        if not fence and _HEADING.match(line):
            yield line
        if opened and (not fence or opened[1].startswith(fence)):
            fence = "" if fence else opened[1]
