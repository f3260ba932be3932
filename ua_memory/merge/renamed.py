"""Files that were renamed on one side, or on both: they are merged under the name that they are to have.

Lines with an id are known wherever they stand. All others are known by their file, and a file that has two
names would stand there twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ua_memory.paths import CORE_NAMES, SETTINGS

Files = Mapping[str, bytes]
_ID = re.compile(rb"\s+\^[A-Za-z0-9-]+\s*$")


@dataclass(frozen=True, slots=True)
class Aligned:
    """Three sides, each file under the name that it is to have. `twice` are those that both sides renamed:
    (this side's name, the other's, which it gets); `there` is {name: what the other calls that file}."""

    base: Files
    ours: Files
    theirs: Files
    twice: tuple[tuple[str, str], ...]
    there: Mapping[str, str]


def aligned(base: Files, ours: Files, theirs: Files) -> Aligned:
    """The sides with renamed files under one name. What one side renamed and the other deleted stays as it
    is; so does a file whose new name the other side gave to another one."""
    here, there = renamed(base, ours), renamed(base, theirs)
    old, mine, other = dict[str, str](), dict[str, str](), dict[str, str]()
    twice: list[tuple[str, str]] = []
    for path in {**here, **there}:
        one, two = here.get(path), there.get(path)
        if one and two and one != two and two not in ours and one not in theirs:
            mine[one] = two
            twice.append((one, two))
        elif one and two is None and path in theirs and one not in theirs:
            other[path] = one
        elif two and one is None and path in ours and two not in ours:
            mine[path] = two
        elif not (one and one == two):
            continue
        old[path] = two or one or path
    back = {new: path for path, new in other.items()}
    return Aligned(_named(base, old), _named(ours, mine), _named(theirs, other), tuple(twice), back)


def _named(files: Files, names: Mapping[str, str]) -> Files:
    return {names.get(path, path): data for path, data in files.items()}


def renamed(base: Files, side: Files) -> dict[str, str]:
    """{a file of the base that is gone: the new one that has its lines}: at least half of those of the
    shorter one, whatever ids they were given since; each new file once, the likest first."""
    gone = {path: lines for path in base if path not in side and (lines := _lines(path, base[path]))}
    new = {path: lines for path in side if path not in base and (lines := _lines(path, side[path]))}
    alike: list[tuple[int, str, str]] = []
    for path, lines in gone.items():
        for name, others in new.items():
            common = (lines & others).total()
            if 2 * common >= min(lines.total(), others.total()):
                alike.append((-common, path, name))
    found: dict[str, str] = {}
    for _, path, name in sorted(alike):
        if path not in found and name not in found.values():
            found[path] = name
    return found


def _lines(path: str, data: bytes) -> Counter[bytes]:
    """The lines of a file that say something: no headings, and no ids."""
    if path in (*CORE_NAMES, SETTINGS) or not path.endswith(".md"):
        return Counter()
    lines = (_ID.sub(b"", line).strip() for line in data.split(b"\n"))
    return Counter(line for line in lines if line.strip(b"-*_") and not line.startswith(b"#"))
