"""Three-way merge by lines, in which changes that only touch do not conflict.

git's own merge calls neighbouring changes a conflict, and in an append-only log everything is a
neighbour: taking back the last but one fact, or two writers at the end of a day. Here hunks conflict
only if they change the same lines or insert at the same spot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from io import BytesIO

from ua_memory.markdown.lines import alike

Settle = Callable[[list[bytes], list[bytes], list[bytes]], list[bytes]]


@dataclass(frozen=True, slots=True)
class Clash:
    """Lines of the base that both sides changed, each in its way, or the spot where both `inserted` some;
    `line` counts from 1 in the base."""

    line: int
    ours: tuple[bytes, ...]
    theirs: tuple[bytes, ...]
    inserted: bool = False


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged bytes; where both sides changed the same lines, theirs and then ours. Lines that both
    `inserted` at one spot are no clash."""

    data: bytes
    clashes: tuple[Clash, ...] = ()
    inserted: tuple[Clash, ...] = ()


@dataclass(frozen=True, slots=True)
class _Hunk:
    start: int
    end: int
    lines: tuple[bytes, ...]


def merge(base: bytes, ours: bytes, theirs: bytes) -> Merged:
    """Apply to `base` what changed towards `ours` and towards `theirs`; nothing either side added is lost."""
    if ours in (base, theirs):
        return Merged(theirs)
    if theirs == base:
        return Merged(ours)
    out, met = merge_parts(lines_of(base), lines_of(ours), lines_of(theirs))
    clashes, inserted = (tuple(c for c in met if c.inserted is kind) for kind in (False, True))
    return Merged(b"".join(out), clashes, inserted)


def merge_parts(
    old: list[bytes], ours: list[bytes], theirs: list[bytes], settle: Settle | None = None
) -> tuple[list[bytes], list[Clash]]:
    """The same of texts cut into parts of any size. `settle` says what stands where both sides changed or
    inserted something: of (base, ours, theirs) there; else theirs and then ours."""
    left, right = _hunks(old, ours), _hunks(old, theirs)
    out: list[bytes] = []
    clashes: list[Clash] = []
    at = 0
    while left or right:
        start, end, mine, yours = _next_group(left, right)
        out += old[at:start]
        one, other = _side(old, start, end, mine), _side(old, start, end, yours)
        if mine and yours and one != other:
            clashes.append(Clash(start + 1, tuple(one), tuple(other), inserted=start == end))
            out += settle(old[start:end], one, other) if settle else _both(one, other)
        else:
            out += one if mine else other
        at = end
    return out + old[at:], clashes


def lines_of(data: bytes) -> list[bytes]:
    """The lines of a content, split at newlines alone: a lone carriage return is part of its line. A final
    newline that is missing is added, since that is no change."""
    return BytesIO(data if not data or data.endswith(b"\n") else data + b"\n").readlines()


def changes(before: bytes, after: bytes) -> Iterator[tuple[list[bytes], list[bytes], bool]]:
    """The two as stretches of whole lines: (lines before, lines after, whether they are the same)."""
    old, new = BytesIO(before).readlines(), BytesIO(after).readlines()
    at = to = 0
    for hunk in _hunks(old, new):
        same = old[at : hunk.start]
        yield same, same, True
        to += len(same) + len(hunk.lines)
        yield old[hunk.start : hunk.end], list(hunk.lines), False
        at = hunk.end
    yield old[at:], new[to:], True


def _hunks(old: list[bytes], new: list[bytes]) -> list[_Hunk]:
    head = alike(old, new)
    tail = alike(old[head:][::-1], new[head:][::-1])
    # Only the stretch that differs is compared: a short change costs no more in a long file.
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    codes = SequenceMatcher(None, a, b, autojunk=len(a) > 5000).get_opcodes()
    return [_Hunk(head + i, head + j, tuple(b[k:m])) for tag, i, j, k, m in codes if tag != "equal"]


def _next_group(left: list[_Hunk], right: list[_Hunk]) -> tuple[int, int, list[_Hunk], list[_Hunk]]:
    """Take the next hunk and all that overlap with it, from either side."""
    first = min(filter(None, (left, right)), key=lambda side: (side[0].start, side[0].end))
    hunk = first.pop(0)
    start, end = hunk.start, hunk.end
    groups: tuple[list[_Hunk], list[_Hunk]] = ([hunk], []) if first is left else ([], [hunk])
    grown = True
    while grown:
        grown = False
        for side, group in ((left, groups[0]), (right, groups[1])):
            while side and _overlap(start, end, side[0]):
                group.append(side.pop(0))
                end, grown = max(end, group[-1].end), True
    return start, end, groups[0], groups[1]


def _overlap(start: int, end: int, hunk: _Hunk) -> bool:
    if start == end or hunk.start == hunk.end:
        # An insertion clashes with another at the same spot, and with a change around it, not beside it.
        return (
            (start == end == hunk.start == hunk.end)
            or start < hunk.start < end
            or hunk.start < start < hunk.end
        )
    return hunk.start < end and start < hunk.end


def _side(old: list[bytes], start: int, end: int, hunks: Sequence[_Hunk]) -> list[bytes]:
    out, at = [], start
    for hunk in hunks:
        out += old[at : hunk.start]
        out += hunk.lines
        at = hunk.end
    return out + old[at:end]


def _both(ours: list[bytes], theirs: list[bytes]) -> list[bytes]:
    """Theirs and then ours, or the one that holds the other whole."""
    if _holds(theirs, ours):
        return theirs
    return ours if _holds(ours, theirs) else theirs + ours


def _holds(long: list[bytes], short: list[bytes]) -> bool:
    return any(long[n : n + len(short)] == short for n in range(len(long) - len(short) + 1))
