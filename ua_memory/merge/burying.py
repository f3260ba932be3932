"""Both sides of a merge without what the other has forgotten since, and what went along with it.

A tombstone holds against whatever the other machine did meanwhile. What somebody had written or changed there
is told with its place, never with its words: its revision has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ua_memory import markdown
from ua_memory.records import Tombstone, written_id
from ua_memory.statements import Statement
from ua_memory.tombstones import PATH, Tombstones, stones

Files = Mapping[str, bytes]
_COUNTED = re.compile(rb"\s*[-*+] (?:seen|proofs|last|trend):")
"""What machines note of a statement as they go: nobody misses it."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """Lines that were written or changed on one machine and that another had forgotten: the id, if they have
    one, the place, whose they were (`here` or `there`), and the revision that has them still: empty where
    they are in none yet, the file with the old history where that was purged."""

    id: str
    path: str
    line: int
    side: str
    revision: str = ""


def buried(
    base: Files, mine: Files, theirs: Files, patterns: Mapping[str, str]
) -> tuple[Files, Files, list[Dropped]]:
    """Both sides without the statements that the other has forgotten since, by what they say: there they may
    have another id, or none. An undone forgetting is not done again."""
    known, here, there = (stones(side.get(PATH)) for side in (base, mine, theirs))
    lines = {line.strip() for data in base.values() for line in data.split(b"\n")}
    sides: list[Files] = []
    dropped: list[Dropped] = []
    for side, files, own, others in (("here", mine, here, there), ("there", theirs, there, here)):
        new = {name: stone for name, stone in others.items() if name not in own and name not in known}
        buried = Tombstones(new, patterns)
        # What is as it was here, the other side has seen when it forgot: as that left it, it stands.
        notes = {
            path: data
            for path, data in files.items()
            if path.endswith(".md") and path != PATH and data != base.get(path)
        }
        for path, data in notes.items() if here or there else ():
            rows = data.split(b"\n")
            for block, numbers in _lost(buried, {**here, **there}, data, path):
                fresh = [rows[n - 1] for n in numbers if rows[n - 1].strip() not in lines]
                if any(row.strip() and not _COUNTED.match(row) for row in fresh):
                    dropped.append(Dropped(block, path, numbers[0], side))
        sides.append({**files, **{p: buried.without(data, p)[0] for p, data in notes.items() if new}})
    return sides[0], sides[1], dropped


def _lost(
    stones: Tombstones, all_stones: Mapping[str, Tombstone], data: bytes, path: str
) -> Iterator[tuple[str, list[int]]]:
    """What goes of a file: by what is new, and what has an id that both know to be forgotten."""
    gone = list(stones.found(data, path)) if stones.stones else []
    found = {numbers[0] for _, numbers in gone}
    yield from gone
    both = Tombstones(all_stones, stones.redact)
    if any(f"^{written_id(block)}".encode() in data for block in all_stones):
        for record in markdown.parse(data, path).records:
            if isinstance(record, Statement) and both.buried(record) and record.place.line not in found:
                yield str(record.id), [*range(record.place.line, record.place.end + 1)]
