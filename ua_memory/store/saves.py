"""What a person's save is: an ordinary edit, a stale editor buffer, or a mass deletion to be confirmed.

Three rules of `docs/invariants.md`. A save that is more like what the file was at some earlier moment than
like what it is now was made from that, and is merged with what was written since, whoever wrote it
(docs/decisions/0017). More than a few facts gone at once are held until their owner confirms. Everything
else is theirs and stands.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from ua_memory.git.history import History
from ua_memory.git.repository import MACHINE, Revision
from ua_memory.markdown import document
from ua_memory.markdown import lines as markdown_lines
from ua_memory.records import (
    CoreBlock,
    Entity,
    Fact,
    MentalModel,
    Observation,
    Opinion,
    Page,
    Record,
    Tombstone,
    is_generated,
)
from ua_memory.store.merge3 import merge

EDIT = "edit"
"""The `Memory-Op` of a person's own change."""
RESTORED = "restore"
"""The `Memory-Op` of a person's wish to have back what had disappeared."""
MERGED = "merge"
"""The `Memory-Op` of a revision that put facts back which a stale buffer had dropped."""
LOOK_BACK = 1000
"""So many revisions of one file are looked at for the one an editor's buffer is from."""
AT_ONCE = 20
MOST_PAIRS = 10_000
"""So many pairs of a line that went and one that came are looked at for a rewording."""
CACHED = 1 << 20
"""Bytes of a content whose records are remembered."""
SHOWN = "Shown"
"""The trailer that names a content by its blob id: it stood in the file for a moment and was in no commit."""

Key = tuple[str, str]
_ID = re.compile(rb"(?P<text>.*?)(?:\s+\^(?P<id>[A-Za-z0-9-]+))?\s*")
_ENDS = b".,;:!?"
NAMELESS = "text"
"""The kind of key of a record that is known by its words alone: reworded, it is another one."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One file that differs from the trail: `trail` and `disk` bytes (None: no file)."""

    path: str
    trail: bytes | None
    disk: bytes | None


@dataclass(frozen=True, slots=True)
class DroppedLine:
    """A line that was put back, or a record: what it says, its `^id` if it has one, and whether it is the
    person's own."""

    text: str
    name: str
    theirs: bool


@dataclass(frozen=True, slots=True)
class StaleSave:
    """A save that was made from an older content: what comes of it and of what was written since, `merged`.
    `theirs` is the save with only the person's own lines put back."""

    merged: bytes
    theirs: bytes
    back: tuple[DroppedLine, ...]


def keys(data: bytes | None, path: str) -> dict[Key, Record]:
    """The records of a file by identity: the id or name, or the text's hash where there is none.

    A block of core memory is known by name and value: a machine's new value is something that a stale
    buffer can drop.
    """
    if data is None:
        return {}
    return dict(_parsed(data, path) if len(data) < CACHED else _keys(data, path))


def _keys(data: bytes, path: str) -> dict[Key, Record]:
    return {key: r for r in document.parse(data, path).records if (key := _key(r))}


_parsed = lru_cache(maxsize=32)(_keys)
"""One judgement asks for the same few contents again and again, while an editor may be saving."""


def _key(record: Record) -> Key | None:
    match record:
        case Fact() | Observation() | Opinion():
            return ("id", record.id) if record.id else (NAMELESS, document.texthash(record.text))
        case Page() | MentalModel() | Tombstone():
            return (type(record).__name__, record.id)
        case Entity():
            return ("Entity", record.name)
        case CoreBlock():
            return ("block", document.texthash(f"{record.name}\n{record.value}"))
    return None


def names(found: Mapping[Key, Record], path: str) -> tuple[str, ...]:
    """What trailers call these: `^id`, or `path#hash` for what has no id."""
    return tuple(f"^{name}" if kind == "id" else f"{path}#{name.replace(' ', '-')}" for kind, name in found)


def new_names(before: bytes | None, after: bytes | None, path: str) -> tuple[str, ...]:
    """The names of the records that one content has and the one before it had not."""
    known = keys(before, path)
    return names({key: record for key, record in keys(after, path).items() if key not in known}, path)


def lost_records(edits: Mapping[str, Edit]) -> dict[str, int]:
    """{path: records gone for good} over all edits together: what was moved or reworded is not gone."""
    before = {path: _among_files(keys(edit.trail, path), path) for path, edit in edits.items()}
    after = {path: _among_files(keys(edit.disk, path), path) for path, edit in edits.items()}
    there = {key for found in after.values() for key in found}
    words = {_words(record) for found in after.values() for record in found.values()}
    known = {key for found in before.values() for key in found}
    gone: dict[str, int] = {}
    for path, found in before.items():
        lost = Counter(k[0] for k, record in found.items() if k not in there and _words(record) not in words)
        # A line without an id that was reworded looks like one gone and one new; so does a renamed block.
        fresh = Counter(key[0] for key in after[path] if key not in known)
        gone[path] = sum(
            max(0, n - (fresh[kind] if kind in (NAMELESS, "block") else 0)) for kind, n in lost.items()
        )
    return gone


def _among_files(found: Mapping[Key, Record], path: str) -> dict[Key, Record]:
    """The same by what tells them from other files' records: an id that was typed is its file's alone."""
    return {
        (kind, name if kind != "id" or is_generated(name) else f"{path}#^{name}"): record
        for (kind, name), record in found.items()
    }


def _words(record: Record) -> str:
    """What a record is still recognised by when its id was taken off or its value changed."""
    return f"## {record.name}" if isinstance(record, CoreBlock) else str(getattr(record, "text", record))


def held(edits: Mapping[str, Edit], few: int) -> set[str]:
    """The paths to be held: all that lost something, if together they lost more than a few.

    Files that went altogether in the same moment are part of it, whatever was in them.
    """
    gone = lost_records(edits)
    if sum(gone.values()) <= few:
        return set()
    return {path for path, count in gone.items() if count or edits[path].disk is None}


INTERMEDIATE = -1
"""In place of a revision's number: a content that the file had during a write which is not committed yet."""


class BaseCandidate(NamedTuple):
    """A content that an editor may have read, and its save been made from: what the revision with this number
    left (the newest is 0), or what was `shown` for a moment while it was written; or that with a `part` of
    what the person wrote next."""

    number: int
    data: bytes
    shown: bool
    part: bool = False


@dataclass(slots=True)
class FileHistory:
    """The newest revisions of one file and its content after each, read once, for one head of the trail;
    before them the person's edit that left `uncommitted`, a blob that was seen and is in no commit."""

    path: str
    history: History
    head: str | None
    uncommitted: str = ""
    revisions: list[Revision] | None = None
    contents: dict[int, list[BaseCandidate]] = field(default_factory=dict)

    def newest(self) -> list[Revision]:
        if self.revisions is None:
            self.revisions = self.history.log([self.path], limit=LOOK_BACK)
            if self.uncommitted and self.revisions:
                edit = replace(
                    self.revisions[0], id=self.uncommitted, author="", trailers={"Memory-Op": (EDIT,)}
                )
                self.revisions.insert(0, edit)
        return self.revisions

    def buffers(self) -> Iterator[BaseCandidate]:
        """What an editor may have read, newest first, back to what the person asked to have restored."""
        for start in range(0, len(self.newest()), AT_ONCE):
            if start not in self.contents:
                self.contents[start] = self._read(start)
            yield from self.contents[start]
            if any(_op(r) == RESTORED for r in self.newest()[start : start + AT_ONCE]):
                return

    def left(self, number: int) -> bytes:
        """What a revision left in the file; nothing where that is too long ago."""
        return next((b.data for b in self.buffers() if b.number == number and not b.shown), b"")

    def _read(self, start: int) -> list[BaseCandidate]:
        some = self.newest()[start : start + AT_ONCE]
        restored = next((n for n, r in enumerate(some, 1) if _op(r) == RESTORED), len(some))
        rows = [
            (start + n, name)
            for n, r in enumerate(some[:restored])
            for name in ((r.id, self.path), *((s, "") for s in r.trailers.get(SHOWN, ())))
        ]
        found = self.history.read_all(
            [(name, "" if name == self.uncommitted else path) for _, (name, path) in rows]
        )
        there = (
            BaseCandidate(n, data or b"", not path) for (n, (_, path)), data in zip(rows, found, strict=True)
        )
        # A content that was shown may be collected as garbage in time; a file that was not there was empty.
        return [b for b in there if b.data or not b.shown]


def detect_stale(edit: Edit, past: FileHistory, intermediate: Sequence[bytes] = ()) -> StaleSave | None:
    """What is to come of a save that was made from an older content of the file, and lacks what was written
    since for the first time; None for a person's own change of what is there.

    Of all contents the file had, a save was made from the one it is most like. What only its owner wrote
    since, a save without a new word takes away again, and any save what was not committed yet; unless that
    older content stood for a moment in the midst of a write of ours, as those `intermediate` did, or
    something of ours is gone with it. With a new word it may be of another editor, which never read what is
    gone."""
    if edit.trail is None or edit.disk is None:
        return None
    then, now = keys(edit.trail, edit.path), keys(edit.disk, edit.path)
    dropped = then.keys() - now.keys()
    again = any(kind not in (NAMELESS, "block") for kind, _ in now.keys() - then.keys())
    if not again and not lines_lacking(edit.trail, edit.disk):
        return None
    if not intermediate and not any(_is_ours(r) or SHOWN in r.trailers for r in past.newest()):
        return None
    dropped -= _reworded({key: then[key] for key in dropped}, now, past)
    base = _merge_base(edit, then, dropped, past, intermediate)
    if base and not base.shown and (known := _answered_put_back(edit, base, past)) is not None:
        base = _merge_base(edit, then, dropped, past, intermediate, until=known)
    return _merged_with_later(edit, base, past) if base else None


def _merge_base(
    edit: Edit, then: Mapping[Key, Record], dropped: AbstractSet[Key], past: FileHistory,
    intermediate: Sequence[bytes], until: int | None = None,
) -> BaseCandidate | None:  # fmt: skip
    """The merge base of a save: the content it is most like, the newest of several; None where that is the
    present one. A content that lacks a record which the save has of those that came since is none."""
    best, least = None, distance(edit.trail or b"", edit.disk or b"")
    for buffer in _base_candidates(edit, past, intermediate):
        if until is not None and buffer.number > until:
            break
        ours = not buffer.shown and not buffer.part and _is_ours(past.newest()[buffer.number])
        cost = distance(buffer.data, edit.disk or b"")
        if buffer.shown and buffer.number != INTERMEDIATE and not lines_lacking(buffer.data, edit.disk):
            cost = 0  # who has all that stood there for a moment, and nothing that came since, read just that
        if cost < least or ours:
            fits = then.keys() - keys(buffer.data, edit.path).keys() <= dropped
            if fits and cost < least and _keeps_most(edit, buffer.data):
                best, least = buffer, cost
            if ours and not fits:
                break
        if not least:
            break
    return best


def _base_candidates(edit: Edit, past: FileHistory, intermediate: Sequence[bytes]) -> Iterator[BaseCandidate]:
    """What an editor may have read, newest first. Of what a person wrote, and of what stood for a moment,
    all that a save lacks may have come after it was read: what stood there before is in no commit."""
    yield from (BaseCandidate(INTERMEDIATE, data, True) for data in intermediate)
    if intermediate:
        committed = past.left(0)
        for data in (edit.trail or b"", *intermediate):
            yield BaseCandidate(INTERMEDIATE, partial_content(committed, data, edit.disk), True)
    last: BaseCandidate | None = None
    for buffer in past.buffers():
        if last and not buffer.shown and _op(past.newest()[last.number]) == EDIT:
            yield BaseCandidate(
                buffer.number, partial_content(buffer.data, last.data, edit.disk), False, True
            )
        yield buffer
        if buffer.shown:
            before = past.left(buffer.number + 1)
            yield BaseCandidate(
                buffer.number + 1, partial_content(before, buffer.data, edit.disk), False, True
            )
        last = last if buffer.shown else buffer
    if last and _op(past.newest()[last.number]) == EDIT:  # the person's file from the beginning
        yield BaseCandidate(last.number + 1, partial_content(b"", last.data, edit.disk), False, True)


def partial_content(before: bytes, after: bytes, save: bytes | None) -> bytes:
    """A content as it may have been before all of it was written: without the new lines that a save lacks."""
    return _without(after, _unknown(lines_lacking(after, before), save))


def _answered_put_back(edit: Edit, base: BaseCandidate, past: FileHistory) -> int | None:
    """The newest revision since `base` that put back what the save lacks, and that its maker has seen; None
    where there is none.

    What is put back comes into the file in one step with what its revision adds. A save that lacks that, too,
    was read before: it is the old buffer still, and no answer. Where it came alone, a save without a new word
    is the answer to it.
    """
    lost = lines_lacking(edit.trail, edit.disk)
    fresh = _fresh(edit, base)
    newest, along = past.newest(), frozenset[Key]()
    for number in range(base.number):
        revision = newest[number]
        if _op(revision) != MERGED:
            there = keys(past.left(number + 1), edit.path)
            along = frozenset(keys(past.left(number), edit.path).keys() - there.keys())
            continue
        if revision.trailer("Request"):  # a put-back with a request of its own was all of its revision
            along = frozenset()
        now, before = past.left(number), past.left(number + 1)
        answered = lines_lacking(now, before) & lost or lines_lacking(before, now) & lines_lacking(
            edit.disk, edit.trail
        )
        if answered and not fresh and not along & keys(edit.trail, edit.path).keys():
            return number
    return None


def _fresh(edit: Edit, base: BaseCandidate) -> Counter[bytes]:
    """The new words of a save: lines that neither its base nor the present content has."""
    return _unknown(lines_lacking(edit.disk, base.data), edit.trail)


def _merged_with_later(edit: Edit, base: BaseCandidate, past: FileHistory) -> StaleSave | None:
    trail, disk = edit.trail or b"", edit.disk or b""
    if lines_lacking(base.data, disk) == lines_lacking(base.data, b""):
        return None  # nothing of it is left: the file was written anew
    merged = merge(base.data, trail, disk).data
    back, gone = lines_lacking(merged, disk), lines_lacking(disk, merged)
    own, taken = Counter[bytes](), Counter[bytes]()
    for number in range(base.number + 1 if base.shown else base.number):
        if not _is_ours(past.newest()[number]):
            now, before = past.left(number), past.left(number + 1)
            own |= lines_lacking(now, before)
            taken |= lines_lacking(before, now)
    if (
        base.number == INTERMEDIATE
    ):  # what the trail has not yet is the person's, and is not committed yet with ours
        own |= lines_lacking(trail, past.left(0))
    theirs_alone = not (base.shown or back - own or gone - taken)
    uncommitted = bool(past.uncommitted) and base.number <= 1
    if not (back or gone) or (theirs_alone and (uncommitted or not _fresh(edit, base))):
        return None
    own |= _written_by_hand(back - own, past)
    was = keys(disk, edit.path)
    named = {key: record for key, record in keys(merged, edit.path).items() if key not in was}
    lines = tuple(_dropped_lines(merged, named, back, own, edit.path))
    theirs = _without(merged, back - own) if back & own else disk
    return StaleSave(merged, theirs, lines)


def _written_by_hand(lines: Counter[bytes], past: FileHistory) -> Counter[bytes]:
    """Those of the lines that came last with a commit of the person's, of the newest there are."""
    left, found = Counter(lines), Counter[bytes]()
    for number, revision in enumerate(past.newest()[:AT_ONCE]):
        if not left:
            break
        came = left & lines_lacking(past.left(number), past.left(number + 1))
        found += Counter() if _is_ours(revision) else came
        left -= came
    return found


def _dropped_lines(
    merged: bytes, records: Mapping[Key, Record], back: Counter[bytes], own: Counter[bytes], path: str
) -> Iterator[DroppedLine]:
    """Each statement that was put back, and each line that is part of none: a block's, its heading's, too."""
    rows, within = merged.splitlines(), set[int]()
    named = any(isinstance(record, CoreBlock) for record in records.values())
    left, mine = Counter(back), Counter(own)
    for key, record in records.items():
        if isinstance(record, CoreBlock):  # many lines, and each may be another's
            continue
        span = range(record.place.line - 1, record.place.end)
        within.update(span)
        theirs = bool(span) and mine[rows[span[0]]] > 0
        said = str(getattr(record, "text", "")) or rows[span[0]].decode("utf-8", "replace").strip()
        yield DroppedLine(said, names({key: record}, path)[0] if key[0] == "id" else "", theirs)
        left.subtract(rows[n] for n in span)
    for n, row in enumerate(rows):
        if n not in within and left[row] > 0 and (named or not row.startswith(b"#")):
            left[row] -= 1
            yield DroppedLine(row.decode("utf-8", "replace").strip(), "", mine[row] > 0)


def _without(data: bytes, lines: Counter[bytes]) -> bytes:
    """A content without the last of these lines each."""
    if not lines:
        return data
    left, kept = Counter(lines), list[bytes]()
    for row in reversed(data.splitlines(keepends=True)):
        bare = row.rstrip(b"\r\n")
        if left[bare] > 0:
            left[bare] -= 1
        else:
            kept.append(row)
    return b"".join(reversed(kept))


def without(data: bytes, path: str, ids: Collection[str]) -> bytes:
    """A content without the statements that have one of these ids."""
    found = (r.place for r in keys(data, path).values() if getattr(r, "id", None) in ids)
    return markdown_lines.without_places(data, found)


def _op(revision: Revision) -> str:
    return revision.trailer("Memory-Op")


def _is_ours(revision: Revision) -> bool:
    """Whether a revision brought what was acknowledged, and not a person's own lines. One that git alone made
    may have joined two branches."""
    return _op(revision) != EDIT and (_op(revision) != MERGED or revision.author == MACHINE[0])


def _keeps_most(edit: Edit, base: bytes) -> bool:
    """Whether a save still has at least half of the records of its base; a reworded one counts as there."""
    gone = lost_records({edit.path: Edit(edit.path, base, edit.disk)})[edit.path]
    return 2 * gone <= len(keys(base, edit.path))


def distance(base: bytes, save: bytes) -> int:
    """The edit distance of two contents: a line that was written or taken away
    counts four times as much as one that was reworded."""
    gone, new = lines_lacking(base, save), lines_lacking(save, base)
    return 4 * (gone + new).total() - 7 * _rewordings(gone, new)


def _rewordings(gone: Counter[bytes], new: Counter[bytes]) -> int:
    if not gone or not new or len(gone) * len(new) > MOST_PAIRS:
        return 0
    left, found = [*new.elements()], 0
    for old in gone.elements():
        other = next((line for line in left if _is_reworded(old, line)), None)
        if other is not None:
            left.remove(other)
            found += 1
    return found


def _is_reworded(old: bytes, new: bytes) -> bool:
    """Whether a line goes on as the other begins. Two that differ by a number may be two entries: which of
    two authors wrote what, nobody can tell, and a line that stands there twice is the lesser evil."""
    one, other = (_ID.fullmatch(line.strip().lstrip(b"-*+ ")) for line in (old, new))
    if one is None or other is None:
        return False
    if one["id"] != other["id"]:
        return not other["id"] and one["text"] == other["text"]
    a, b = one["text"].split(), other["text"].split()
    same = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x.strip(_ENDS) != y.strip(_ENDS)),
                min(len(a), len(b)))  # fmt: skip
    numbers = [any(48 <= c < 58 for c in words[same]) if same < len(words) else False for words in (a, b)]
    return bool(one["id"]) or (2 * same > len(a) and not all(numbers))


def lines_lacking(data: bytes | None, other: bytes | None) -> Counter[bytes]:
    """The lines of one that the other lacks, blank ones aside."""
    one, two = _where_they_differ(data or b"", other or b"")
    found = Counter(one.splitlines()) - Counter(two.splitlines())
    return Counter({line: n for line, n in found.items() if line.strip()})


def _unknown(lines: Counter[bytes], data: bytes | None) -> Counter[bytes]:
    """Those of the lines that a content lacks."""
    return lines - Counter(line for line in (data or b"").splitlines() if line in lines)


def _where_they_differ(one: bytes, other: bytes) -> tuple[bytes, bytes]:
    """Both without the whole lines that they begin and end with alike: of a long file that is nearly all."""
    start = one.rfind(b"\n", 0, _same_bytes(one, other)) + 1
    one, other = one[start:], other[start:]
    same = _same_bytes(one[::-1], other[::-1])
    after = one.find(b"\n", len(one) - same) + 1
    end = len(one) - after if after else 0
    return one[: len(one) - end], other[: len(other) - end]


def _same_bytes(one: bytes, other: bytes) -> int:
    """How many bytes two contents begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _reworded(lacking: Mapping[Key, Record], now: Mapping[Key, Record], past: FileHistory) -> set[Key]:
    """Blocks of core memory whose value the person has changed: what stands there is more like the value it
    lacks than like any that an editor may have read before."""
    theirs = {record.name: record.value for record in now.values() if isinstance(record, CoreBlock)}
    found: set[Key] = set()
    for key, block in lacking.items():
        if isinstance(block, CoreBlock) and block.name in theirs:
            records = (r for b in past.buffers() for r in keys(b.data, past.path).values())
            values = {r.value for r in records if isinstance(r, CoreBlock) and r.name == block.name}
            value = theirs[block.name]
            if _likeness(value, block.value) > max(
                (_likeness(value, old) for old in values - {block.value}), default=0
            ):
                found.add(key)
    return found


def _likeness(one: str, other: str) -> float:
    """The share of words, 0 to 1, that two texts have in common."""
    a, b = Counter(one.split()), Counter(other.split())
    return 2 * (a & b).total() / ((a + b).total() or 1)
