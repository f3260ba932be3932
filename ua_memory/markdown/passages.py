"""Prose → passages: stretches of at most about 900 characters under one heading, cut where it hurts least.

A passage's text is the file's lines as they stand; only a line longer than the limit is cut inside,
at the end of a sentence, else at a blank, else anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

LIMIT = 900
ITEM_LIMIT = 500
_ENDS = (". ", "! ", "? ", "。", "！", "？")

Span = tuple[int, int]
"""A block's lines, from 0, end excluded."""


def cut(lines: Sequence[str], spans: Sequence[Span], limit: int = LIMIT) -> Iterator[tuple[str, int, int]]:
    """Passages of the blocks at `spans`, which follow each other with only blank lines between:
    (text, first line, end) with lines from 0, end excluded. Without a letter or digit it is none."""
    for start, end in _grouped(lines, spans, limit):
        if start + 1 == end and len(lines[start]) > limit:
            pieces = _pieces(lines[start], limit)
        else:
            pieces = iter(["\n".join(lines[start:end])])
        for piece in pieces:
            if any(map(str.isalnum, piece)):
                yield piece, start, end


def _grouped(lines: Sequence[str], spans: Sequence[Span], limit: int) -> Iterator[Span]:
    """Neighbouring blocks together while they fit; a block that is too long alone, line by line."""
    first, last, size = -1, -1, 0
    for start, end in _fitting(lines, spans, limit):
        more = sum(map(len, lines[start:end])) + end - start
        if first >= 0 and size + more + start - last <= limit:
            last, size = end, size + more + start - last
            continue
        if first >= 0:
            yield first, last
        first, last, size = start, end, more
    if first >= 0:
        yield first, last


def _fitting(lines: Sequence[str], spans: Sequence[Span], limit: int) -> Iterator[Span]:
    for start, end in spans:
        if sum(map(len, lines[start:end])) + end - start <= limit:
            yield start, end
        else:
            yield from ((at, at + 1) for at in range(start, end) if lines[at].strip())


def _pieces(line: str, limit: int) -> Iterator[str]:
    at = 0
    while len(line) - at > limit:
        half, end = at + limit // 2, at + limit
        stop = max(line.rfind(mark, half, end) + len(mark.rstrip()) for mark in _ENDS)
        if stop <= half:
            stop = line.rfind(" ", half, end) + 1
        stop = stop if stop > half else end
        yield line[at:stop].strip(" \t")
        at = stop
    yield line[at:].strip(" \t")
