"""Three-way merge by lines, in which changes of adjacent lines do not conflict.

git's merge reports adjacent changes as a conflict, and in an append-only log every change is adjacent to
another. Here hunks conflict only if they change the same lines or insert at the same spot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from io import BytesIO

from ua_memory.markdown.lines import common_prefix_length

ResolveConflict = Callable[[list[bytes], list[bytes], list[bytes]], list[bytes]]


@dataclass(frozen=True, slots=True)
class LineConflict:
    """Lines that both sides changed differently, or `inserted` at the same spot; `line` is of the base, from
    1."""

    line: int
    ours: tuple[bytes, ...]
    theirs: tuple[bytes, ...]
    inserted: bool = False


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged bytes; in a conflict, theirs and then ours. Lines that both sides `inserted` at the same
    spot are listed apart from the conflicts."""

    data: bytes
    conflicts: tuple[LineConflict, ...] = ()
    inserted: tuple[LineConflict, ...] = ()


@dataclass(frozen=True, slots=True)
class _Hunk:
    start: int
    end: int
    lines: tuple[bytes, ...]


def merge(base: bytes, ours: bytes, theirs: bytes) -> Merged:
    """Merge three-way by lines; nothing that either side added is lost."""
    if ours in (base, theirs):
        return Merged(theirs)
    if theirs == base:
        return Merged(ours)
    out, conflicts = merge_parts(split_lines(base), split_lines(ours), split_lines(theirs))
    clashing, inserted = (tuple(c for c in conflicts if c.inserted is kind) for kind in (False, True))
    return Merged(b"".join(out), clashing, inserted)


def merge_parts(
    old: list[bytes], ours: list[bytes], theirs: list[bytes], resolve: ResolveConflict | None = None
) -> tuple[list[bytes], list[LineConflict]]:
    """Merge sequences of parts (lines or larger): (the result, the conflicts).

    `resolve(base, ours, theirs)` gives the result for a conflict; by default theirs and then ours.
    """
    left, right = _hunks(old, ours), _hunks(old, theirs)
    out: list[bytes] = []
    conflicts: list[LineConflict] = []
    at = 0
    while left or right:
        start, end, mine, yours = _pop_overlapping(left, right)
        out += old[at:start]
        one, other = _apply_hunks(old, start, end, mine), _apply_hunks(old, start, end, yours)
        if mine and yours and one != other:
            conflicts.append(LineConflict(start + 1, tuple(one), tuple(other), inserted=start == end))
            out += resolve(old[start:end], one, other) if resolve else _keep_both(one, other)
        else:
            out += one if mine else other
        at = end
    return out + old[at:], conflicts


def split_lines(data: bytes) -> list[bytes]:
    """Lines with their newline, split at `\\n` only. A missing final newline is added, so that it makes no
    difference."""
    return BytesIO(data if not data or data.endswith(b"\n") else data + b"\n").readlines()


def diff_hunks(before: bytes, after: bytes) -> Iterator[tuple[list[bytes], list[bytes], bool]]:
    """Both contents as alternating runs of lines: (lines before, lines after, whether they are equal)."""
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
    head = common_prefix_length(old, new)
    tail = common_prefix_length(old[head:][::-1], new[head:][::-1])
    # Without the common beginning and end, a short change in a long file is cheap to compare.
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    codes = SequenceMatcher(None, a, b, autojunk=len(a) > 5000).get_opcodes()
    return [_Hunk(head + i, head + j, tuple(b[k:m])) for tag, i, j, k, m in codes if tag != "equal"]


def _pop_overlapping(left: list[_Hunk], right: list[_Hunk]) -> tuple[int, int, list[_Hunk], list[_Hunk]]:
    """Remove the first hunk and all that overlap with it from both lists: (start, end, left's, right's)."""
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
        # An insertion conflicts with one at the same spot and with a change around it, not beside it.
        return (
            (start == end == hunk.start == hunk.end)
            or start < hunk.start < end
            or hunk.start < start < hunk.end
        )
    return hunk.start < end and start < hunk.end


def _apply_hunks(old: list[bytes], start: int, end: int, hunks: Sequence[_Hunk]) -> list[bytes]:
    out, at = [], start
    for hunk in hunks:
        out += old[at : hunk.start]
        out += hunk.lines
        at = hunk.end
    return out + old[at:end]


def _keep_both(ours: list[bytes], theirs: list[bytes]) -> list[bytes]:
    """Theirs and then ours; only one of them if it contains the other."""
    if _contains(theirs, ours):
        return theirs
    return ours if _contains(ours, theirs) else theirs + ours


def _contains(long: list[bytes], short: list[bytes]) -> bool:
    return any(long[n : n + len(short)] == short for n in range(len(long) - len(short) + 1))
