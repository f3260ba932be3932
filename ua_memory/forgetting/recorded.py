"""What a purge says of itself, for machines that have the history from before it: ids, and salted hashes.

A purge's commit names the ids that left the history (`Purged:`) and the hashes of all texts that were taken
out (`Purged-Words:`); `memory/forgotten.md` has a tombstone for each. By these another machine sees whether
what a rewritten history lacks is that and nothing else. Nothing here has a word of what it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property

from ua_memory import markdown, tombstones
from ua_memory.errors import Conflict
from ua_memory.forgetting.purging import said, without
from ua_memory.forgetting.words import MARK, Needle, needles
from ua_memory.history import History
from ua_memory.records import Fact, Tombstone
from ua_memory.statements import Statement

_HASH = re.compile(r"([0-9a-f]{8}):([0-9a-f]{16})")
_OUT = MARK.encode()
Knows = Callable[[str], bool]
MOST_PLACES = 200
"""So often the words that follow a mark are sought in one stretch of a text, before it counts as another."""


@dataclass(frozen=True)
class Record:
    """One purge: the revision that says so, the ids, and the hashes of what was taken out."""

    revision: str
    ids: frozenset[str]
    marks: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """{salt: hashes}."""

    def knows(self, text: str) -> bool:
        """Whether this is one of the texts that were taken out."""
        form = tombstones.folded(text)
        return any(tombstones.mark(salt, form) in marks for salt, marks in self.marks.items())


@dataclass(frozen=True)
class Records:
    """The purges that one history has and another has not, oldest first."""

    each: Sequence[Record] = ()
    patterns: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.each)

    @cached_property
    def ids(self) -> frozenset[str]:
        """All ids that were purged."""
        return frozenset[str]().union(*(record.ids for record in self.each))

    def knows(self, text: str) -> bool:
        """Whether one of them took this text out."""
        return any(record.knows(text) for record in self.each)

    def applied(self, data: bytes, path: str, sought: Sequence[Needle] = ()) -> bytes:
        """A content as if these ids had never been, and without the texts that are `sought`."""
        for record in self.each:
            data = without(data, path, record.ids, (), self.patterns)
        return without(data, path, (), sought, self.patterns) if sought else data

    def covers(self, old: bytes, new: bytes, paths: Collection[str]) -> bool:
        """Whether a content was changed by these purges and by nothing else."""
        return any(covered(self.applied(old, path), new, self.knows) for path in paths)

    def sought(self, blobs: Iterable[tuple[str, bytes]], others: Iterable[tuple[str, bytes]]) -> list[Needle]:
        """The texts that (path, content) of a history before these purges have: what the ids said, and lines
        that are known by their hash. Of `others`, which only this machine has, whatever wording the ids
        have."""
        found: dict[str, None] = {}
        lines: set[bytes] = set()
        for own, rows in ((False, blobs), (True, others)):
            for path, data in rows:
                if path == tombstones.PATH:
                    continue
                for record in markdown.parse(data, path).records:
                    if not isinstance(record, Statement) or record.ref not in self.ids:
                        continue
                    if isinstance(record, Fact) or own or self.knows(record.text):
                        found[record.text] = None
                lines.update(data.split(b"\n"))
        hashes = tombstones.Tombstones({"": Tombstone("", self._hashes, "")}, self.patterns)
        found |= dict.fromkeys(said(lines, hashes))
        return [needle for needle in needles(found, self.patterns) if not needle.short]

    @cached_property
    def _hashes(self) -> str:
        rows = (f"{salt}:{m}" for r in self.each for salt, marks in r.marks.items() for m in marks)
        return " ".join(dict.fromkeys(rows))


def records(history: History, tip: str, without_: str | None, patterns: Mapping[str, str]) -> Records:
    """The purges of one history that another has not. Conflict where one names an id that has no
    tombstone."""
    span = f"{without_}..{tip}" if without_ else tip
    done = history.log(grep=[f"{tombstones.PURGED}: "], rev=span)
    return Records([_record(history, each.id, each.trailers) for each in reversed(done)], patterns)


def _record(history: History, revision: str, trailers: Mapping[str, Sequence[str]]) -> Record:
    ids = frozenset(block.removeprefix("^") for block in trailers.get(tombstones.PURGED, ()))
    stones = tombstones.stones(history.read(revision, tombstones.PATH))
    if strange := sorted(ids - stones.keys()):
        raise Conflict(
            f"a purge names ^{strange[0]}, which has no tombstone",
            where=f"{revision[:10]} {tombstones.PATH}",
            mend="nothing was changed here; docs/sync.md, A rewritten history, tells what to do",
        )  # fmt: skip
    said = [*trailers.get(tombstones.WORDS, ()), *(stones[block].hash for block in ids)]
    marks: dict[str, set[str]] = {}
    for salt, mark in _HASH.findall(" ".join(said)):
        marks.setdefault(salt, set()).add(mark)
    return Record(revision, ids, {salt: frozenset(found) for salt, found in marks.items()})


# -- whether a text was changed by what is recorded, and by nothing else ---------------------------------


def covered(old: bytes, new: bytes, knows: Knows) -> bool:
    """Whether `new` is `old` with `[forgotten]` in the place of texts that are known, and nothing else."""
    if old == new:
        return True
    if _OUT not in new:
        return False
    one, other = old.splitlines(keepends=True), new.splitlines(keepends=True)
    for kind, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if kind != "equal" and not _stretch(b"".join(one[a:b]), b"".join(other[c:d]), knows):
            return False
    return True


def _stretch(old: bytes, new: bytes, knows: Knows) -> bool:
    """The same of lines that differ: between the marks both say the same, and what a mark stands for is
    known."""
    first, *rest = new.split(_OUT)
    if not old.startswith(first):
        return False
    ends = {len(first)}
    for n, literal in enumerate(rest, 1):
        last, found, tried = n == len(rest), set[int](), 0
        for start in ends:
            for at in _places(old, literal, start, last):
                tried += 1
                if tried > MOST_PLACES:
                    break
                if old[start:at] == _OUT or any(map(knows, _forms(old[start:at]))):
                    found.add(at + len(literal))
        ends = found
    return len(old) in ends


def _places(old: bytes, literal: bytes, start: int, last: bool) -> Iterator[int]:
    if last:
        if old.endswith(literal) and len(old) - len(literal) >= start:
            yield len(old) - len(literal)
        return
    at = old.find(literal, start)
    while at >= 0:
        yield at
        at = old.find(literal, at + 1)


def _forms(piece: bytes) -> Iterator[str]:
    """A text as it may have stood: plain, quoted, with the escapes of our files or of JSON."""
    text = piece.decode("utf-8", "replace")
    yield text
    yield re.sub(r"\n[ \t]*>+[ \t]?", "\n", text)
    yield re.sub(r"\\(?=\W)", "", text)
    plain = re.sub(r"\\[nrt]", " ", text)
    yield re.sub(r"\\+(?=\W)", "", re.sub(r"(?:\\u[0-9a-f]{4})+", _unicode, plain))


def _unicode(found: re.Match[str]) -> str:
    units = bytes.fromhex(found[0].replace("\\u", ""))
    return units.decode("utf-16-be", "replace")
