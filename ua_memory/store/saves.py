"""A person's save: an ordinary edit, a stale editor buffer, or a mass deletion to confirm; how it is merged.

See `docs/invariants.md`, I7 and I8. A save that is more like an earlier content of the file than like the
present one was made from that, and is merged with what was written since (docs/decisions/0017). If more than
a few facts disappear at once, the files are held until a person confirms it. Anything else is an edit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from io import BytesIO
from typing import NamedTuple

from ua_memory.git.history import History
from ua_memory.git.repository import MACHINE, Revision
from ua_memory.markdown import document
from ua_memory.markdown import lines as markdown_lines
from ua_memory.markdown.lines import common_prefix_length
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

EDIT = "edit"
"""The `Memory-Op` of a person's own change."""
RESTORED = "restore"
"""The `Memory-Op` of a revision that restored held files."""
MERGED = "merge"
"""The `Memory-Op` of a revision that put back lines which a stale save had dropped."""
HISTORY_DEPTH = 1000
"""A stale save may be based on one of so many revisions of its file."""
READ_AT_ONCE = 20
MOST_PAIRS = 10_000
"""With more pairs of a removed and an added line, no line counts as reworded."""
CACHED_BYTES = 1 << 20
"""The records of smaller contents are cached."""
SHOWN_TRAILER = "Shown"
"""The trailer with the blob id of an intermediate content, which the file had for a moment and no commit
has."""

Key = tuple[str, str]
_ID = re.compile(rb"(?P<text>.*?)(?:\s+\^(?P<id>[A-Za-z0-9-]+))?\s*")
_PUNCTUATION = b".,;:!?"
BY_TEXT = "text"
"""The kind of key of a record without an id: its text's hash. Reworded, it has another key."""


@dataclass(frozen=True)
class Edit:
    """One file that differs from HEAD: its bytes in HEAD (`in_head`) and on `disk`; None: no file."""

    path: str
    in_head: bytes | None
    disk: bytes | None

    @cached_property
    def before(self) -> Mapping[Key, Record]:
        """Its records in HEAD; kept, since to parse a file of 60,000 of them takes a second."""
        return by_key(self.in_head, self.path)

    @cached_property
    def after(self) -> Mapping[Key, Record]:
        """Its records on disk."""
        return by_key(self.disk, self.path)


@dataclass(frozen=True, slots=True)
class DroppedLine:
    """A line or record that was put back: its text, its `^id` or '', and whether a person wrote it."""

    text: str
    name: str
    theirs: bool


@dataclass(frozen=True, slots=True)
class StaleSave:
    """A save that was made from an older content, `merged` with what was written since.

    `theirs` is the save with only the person's own lines put back.
    """

    merged: bytes
    theirs: bytes
    restored: tuple[DroppedLine, ...]


def by_key(data: bytes | None, path: str) -> dict[Key, Record]:
    """{key: record} of a file. The key is the id or name, else the text's hash.

    The key of a core block includes its value, so that a stale save which drops a new value is noticed.
    """
    if data is None:
        return {}
    return dict(_cached_records(data, path) if len(data) < CACHED_BYTES else _parse_records(data, path))


def _parse_records(data: bytes, path: str) -> dict[Key, Record]:
    return {key: r for r in document.parse(data, path).records if (key := _record_key(r))}


_cached_records = lru_cache(maxsize=32)(_parse_records)
"""Classifying one save parses the same few contents many times."""


def _record_key(record: Record) -> Key | None:
    match record:
        case Fact() | Observation() | Opinion():
            return ("id", record.id) if record.id else (BY_TEXT, document.texthash(record.text))
        case Page() | MentalModel() | Tombstone():
            return (type(record).__name__, record.id)
        case Entity():
            return ("Entity", record.name)
        case CoreBlock():
            return ("block", document.texthash(f"{record.name}\n{record.value}"))
    return None


def names_of(found: Mapping[Key, Record], path: str) -> tuple[str, ...]:
    """The names of records in trailers: `^id`, or `path#hash` without an id."""
    return tuple(f"^{name}" if kind == "id" else f"{path}#{name.replace(' ', '-')}" for kind, name in found)


def names_of_new(before: bytes | None, after: bytes | None, path: str) -> tuple[str, ...]:
    """The trailer names of the records that `after` has and `before` has not."""
    known = by_key(before, path)
    return names_of({key: record for key, record in by_key(after, path).items() if key not in known}, path)


def lost_records(edits: Mapping[str, Edit]) -> dict[str, int]:
    """{path: number of lost records} over all edits together; moved and reworded ones are not lost."""
    before = {path: _qualify_ids(edit.before, path) for path, edit in edits.items()}
    after = {path: _qualify_ids(edit.after, path) for path, edit in edits.items()}
    there = {key for found in after.values() for key in found}
    words = {_identifying_text(record) for found in after.values() for record in found.values()}
    known = {key for found in before.values() for key in found}
    gone: dict[str, int] = {}
    for path, found in before.items():
        lost = Counter(
            k[0] for k, record in found.items() if k not in there and _identifying_text(record) not in words
        )
        # A reworded line without an id looks like one removed and one added; so does a renamed block.
        fresh = Counter(key[0] for key in after[path] if key not in known)
        returned = {kind: fresh[kind] for kind in (BY_TEXT, "block")}
        gone[path] = sum(max(0, n - returned.get(kind, 0)) for kind, n in lost.items())
    return gone


def _qualify_ids(found: Mapping[Key, Record], path: str) -> dict[Key, Record]:
    """The same, with the path added to ids that a person typed: other files may use the same."""
    return {
        (kind, name if kind != "id" or is_generated(name) else f"{path}#^{name}"): record
        for (kind, name), record in found.items()
    }


def _identifying_text(record: Record) -> str:
    """The text that identifies a record whose id was removed, or whose value changed."""
    return f"## {record.name}" if isinstance(record, CoreBlock) else str(getattr(record, "text", record))


def paths_to_hold(edits: Mapping[str, Edit], few: int) -> set[str]:
    """The paths to hold: all that lost records, if together they lost more than `few`; also deleted files."""
    gone = lost_records(edits)
    if sum(gone.values()) <= few:
        return set()
    return {path for path, count in gone.items() if count or edits[path].disk is None}


INTERMEDIATE = -1
"""The number of a candidate that is a content during a write which is not committed yet."""


class BaseCandidate(NamedTuple):
    """A content that an editor may have read, and that a save may be based on.

    It is the file after revision `number` (0 is the newest), an intermediate content named in its `Shown`
    trailer (`shown`), or a `part` of a person's next edit on top of it.
    """

    number: int
    data: bytes
    shown: bool
    part: bool = False


@dataclass(slots=True)
class FileHistory:
    """The recent revisions of one file and its content after each, cached for one `head`.

    `uncommitted` is the blob id of a hand edit that was read but not committed; it counts as the newest.
    """

    path: str
    history: History
    head: str | None
    uncommitted: str = ""
    revisions: list[Revision] | None = None
    contents: dict[int, list[BaseCandidate]] = field(default_factory=dict)

    def recent(self) -> list[Revision]:
        if self.revisions is None:
            self.revisions = self.history.log([self.path], limit=HISTORY_DEPTH)
            if self.uncommitted and self.revisions:
                trailers = {"Memory-Op": (EDIT,)}
                edit = replace(self.revisions[0], id=self.uncommitted, author="", trailers=trailers)
                self.revisions.insert(0, edit)
        return self.revisions

    def candidates(self) -> Iterator[BaseCandidate]:
        """The contents that an editor may have read, newest first, back to the last restore."""
        for start in range(0, len(self.recent()), READ_AT_ONCE):
            if start not in self.contents:
                self.contents[start] = self._read(start)
            yield from self.contents[start]
            if any(_op(r) == RESTORED for r in self.recent()[start : start + READ_AT_ONCE]):
                return

    def content_after(self, number: int) -> bytes:
        """The file after a revision; empty if it is too old."""
        return next((b.data for b in self.candidates() if b.number == number and not b.shown), b"")

    def _read(self, start: int) -> list[BaseCandidate]:
        some = self.recent()[start : start + READ_AT_ONCE]
        restored = next((n for n, r in enumerate(some, 1) if _op(r) == RESTORED), len(some))
        rows = [
            (start + n, name)
            for n, r in enumerate(some[:restored])
            for name in ((r.id, self.path), *((s, "") for s in r.trailers.get(SHOWN_TRAILER, ())))
        ]
        wanted = [(name, "" if name == self.uncommitted else path) for _, (name, path) in rows]
        found = self.history.read_all(wanted)
        there = (
            BaseCandidate(n, data or b"", not path) for (n, (_, path)), data in zip(rows, found, strict=True)
        )
        # The blob of an intermediate content may have been garbage-collected; a missing file counts as empty.
        return [b for b in there if b.data or not b.shown]


def detect_stale(edit: Edit, past: FileHistory, intermediate: Sequence[bytes] = ()) -> StaleSave | None:
    """The merge of a stale save: one made from an older content, which lacks what was written since, for the
    first time. None for an ordinary edit.

    A save is based on the content with the least edit distance. If it drops only the person's own later
    lines, and adds no new line, it is an ordinary edit: the person removes them. That does not hold if its
    base is one of the `intermediate` contents, or if lines of ours are dropped too.
    """
    if edit.in_head is None or edit.disk is None:
        return None
    then, now = edit.before, edit.after
    dropped = then.keys() - now.keys()
    again = any(kind not in (BY_TEXT, "block") for kind, _ in now.keys() - then.keys())
    if not again and not missing_lines(edit.in_head, edit.disk):
        return None
    if not intermediate and not any(_is_ours(r) or SHOWN_TRAILER in r.trailers for r in past.recent()):
        return None
    dropped -= _reworded_blocks({key: then[key] for key in dropped}, now, past)
    base = _merge_base(edit, then, dropped, past, intermediate)
    if base and not base.shown and (known := _acknowledged_put_back(edit, base, past)) is not None:
        base = _merge_base(edit, then, dropped, past, intermediate, until=known)
    return _merged_with_later(edit, base, past) if base else None


def _merge_base(
    edit: Edit, then: Mapping[Key, Record], dropped: AbstractSet[Key], past: FileHistory,
    intermediate: Sequence[bytes], until: int | None = None,
) -> BaseCandidate | None:  # fmt: skip
    """The older content with the least edit distance to a save, the newest of several; None if the present
    one is nearer. It may not lack a later record that the save has."""
    best, least = None, edit_distance(edit.in_head or b"", edit.disk or b"")
    for option in _base_candidates(edit, past, intermediate):
        if until is not None and option.number > until:
            break
        ours = not option.shown and not option.part and _is_ours(past.recent()[option.number])
        cost = edit_distance(option.data, edit.disk or b"")
        if option.shown and option.number != INTERMEDIATE and not missing_lines(option.data, edit.disk):
            cost = 0  # a save with all of an intermediate content, and nothing later, was made from it
        if cost < least or ours:
            fits = then.keys() - by_key(option.data, edit.path).keys() <= dropped
            if fits and cost < least and _keeps_most(edit, option.data):
                best, least = option, cost
            if ours and not fits:
                break
        if not least:
            break
    return best


def _base_candidates(edit: Edit, past: FileHistory, intermediate: Sequence[bytes]) -> Iterator[BaseCandidate]:
    """All contents that an editor may have read, newest first.

    A person's edit and an intermediate content may have been written in several saves: also the parts of them
    that the save has are candidates.
    """
    yield from (BaseCandidate(INTERMEDIATE, data, True) for data in intermediate)
    if intermediate:
        committed = past.content_after(0)
        for data in (edit.in_head or b"", *intermediate):
            yield BaseCandidate(INTERMEDIATE, partial_content(committed, data, edit.disk), True)
    last: BaseCandidate | None = None
    for base in past.candidates():
        if last and not base.shown and _op(past.recent()[last.number]) == EDIT:
            yield BaseCandidate(base.number, partial_content(base.data, last.data, edit.disk), False, True)
        yield base
        if base.shown:
            before = past.content_after(base.number + 1)
            yield BaseCandidate(base.number + 1, partial_content(before, base.data, edit.disk), False, True)
        last = last if base.shown else base
    if last and _op(past.recent()[last.number]) == EDIT:  # the person's file from the beginning
        yield BaseCandidate(last.number + 1, partial_content(b"", last.data, edit.disk), False, True)


def partial_content(before: bytes, after: bytes, save: bytes | None) -> bytes:
    """`after` without the new lines that a save lacks, as if they had been written later."""
    return _remove_last_lines(after, _absent_from(missing_lines(after, before), save))


def _acknowledged_put_back(edit: Edit, base: BaseCandidate, past: FileHistory) -> int | None:
    """The number of the newest revision since `base` that put back what the save lacks, if its author has
    seen that; else None. Dropping lines a second time is a decision, and stands.

    Lines are put back in one write with what the revision adds. A save that lacks those too was read before:
    it is still the old buffer. A save that drops only what was put back, and adds no line, has seen it.
    """
    lost = missing_lines(edit.in_head, edit.disk)
    fresh = _new_lines(edit, base)
    newest, added_with_it = past.recent(), frozenset[Key]()
    for number in range(base.number):
        revision = newest[number]
        if _op(revision) != MERGED:
            there = by_key(past.content_after(number + 1), edit.path)
            added_with_it = frozenset(by_key(past.content_after(number), edit.path).keys() - there.keys())
            continue
        if revision.trailer("Request"):  # a put-back with a request of its own was all of its revision
            added_with_it = frozenset()
        now, before = past.content_after(number), past.content_after(number + 1)
        answered = missing_lines(now, before) & lost or missing_lines(before, now) & missing_lines(
            edit.disk, edit.in_head
        )
        if answered and not fresh and not added_with_it & edit.before.keys():
            return number
    return None


def _new_lines(edit: Edit, base: BaseCandidate) -> Counter[bytes]:
    """The lines of a save that neither its base nor the present content has."""
    return _absent_from(missing_lines(edit.disk, base.data), edit.in_head)


def _merged_with_later(edit: Edit, base: BaseCandidate, past: FileHistory) -> StaleSave | None:
    in_head, disk = edit.in_head or b"", edit.disk or b""
    if missing_lines(base.data, disk) == missing_lines(base.data, b""):
        return None  # the save has nothing of it: the file was rewritten
    merged = merge(base.data, in_head, disk).data
    restored, gone = missing_lines(merged, disk), missing_lines(disk, merged)
    own, removed = Counter[bytes](), Counter[bytes]()
    for number in range(base.number + 1 if base.shown else base.number):
        if not _is_ours(past.recent()[number]):
            now, before = past.content_after(number), past.content_after(number + 1)
            own |= missing_lines(now, before)
            removed |= missing_lines(before, now)
    # What HEAD has not yet is the person's, and is not committed yet with ours.
    if base.number == INTERMEDIATE:
        own |= missing_lines(in_head, past.content_after(0))
    theirs_alone = not (base.shown or restored - own or gone - removed)
    uncommitted = bool(past.uncommitted) and base.number <= 1
    if not (restored or gone) or (theirs_alone and (uncommitted or not _new_lines(edit, base))):
        return None
    own |= _lines_by_person(restored - own, past)
    was = by_key(disk, edit.path)
    named = {key: record for key, record in by_key(merged, edit.path).items() if key not in was}
    lines = tuple(_dropped_lines(merged, named, restored, own, edit.path))
    theirs = _remove_last_lines(merged, restored - own) if restored & own else disk
    return StaleSave(merged, theirs, lines)


def _lines_by_person(lines: Counter[bytes], past: FileHistory) -> Counter[bytes]:
    """Those of the lines that were last added by a commit of the person's."""
    left, found = Counter(lines), Counter[bytes]()
    for number, revision in enumerate(past.recent()[:READ_AT_ONCE]):
        if not left:
            break
        came = left & missing_lines(past.content_after(number), past.content_after(number + 1))
        found += Counter() if _is_ours(revision) else came
        left -= came
    return found


def _dropped_lines(
    merged: bytes, records: Mapping[Key, Record], back: Counter[bytes], own: Counter[bytes], path: str
) -> Iterator[DroppedLine]:
    """The statements that were put back, then the lines outside statements, such as those of a core block."""
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
        yield DroppedLine(said, names_of({key: record}, path)[0] if key[0] == "id" else "", theirs)
        left.subtract(rows[n] for n in span)
    for n, row in enumerate(rows):
        if n not in within and left[row] > 0 and (named or not row.startswith(b"#")):
            left[row] -= 1
            yield DroppedLine(row.decode("utf-8", "replace").strip(), "", mine[row] > 0)


def _remove_last_lines(data: bytes, lines: Counter[bytes]) -> bytes:
    """A content without the last occurrence of each of these lines."""
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


def remove_ids(data: bytes, path: str, ids: Collection[str]) -> bytes:
    """A content without the statements that have one of these ids."""
    found = (r.place for r in by_key(data, path).values() if getattr(r, "id", None) in ids)
    return markdown_lines.remove_places(data, found)


def _op(revision: Revision) -> str:
    return revision.trailer("Memory-Op")


def _is_ours(revision: Revision) -> bool:
    """Whether a revision wrote lines of ours, not only a person's. A merge commit made by git may have
    both."""
    return _op(revision) != EDIT and (_op(revision) != MERGED or revision.author == MACHINE[0])


def _keeps_most(edit: Edit, base: bytes) -> bool:
    """Whether a save still has at least half of the records of its base; reworded ones count."""
    gone = lost_records({edit.path: Edit(edit.path, base, edit.disk)})[edit.path]
    return 2 * gone <= len(by_key(base, edit.path))


def edit_distance(base: bytes, save: bytes) -> int:
    """The edit distance of two contents: 4 for each added or removed line, 1 for each reworded one."""
    gone, new = missing_lines(base, save), missing_lines(save, base)
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
    """Whether two lines have the same id, or share the first half of their words.

    Lines that differ in a number may be two separate entries: then a duplicate line is the lesser evil.
    """
    one, other = (_ID.fullmatch(line.strip().lstrip(b"-*+ ")) for line in (old, new))
    if one is None or other is None:
        return False
    if one["id"] != other["id"]:
        return not other["id"] and one["text"] == other["text"]
    a, b = one["text"].split(), other["text"].split()
    pairs = ((x.strip(_PUNCTUATION), y.strip(_PUNCTUATION)) for x, y in zip(a, b, strict=False))
    same = next((n for n, (x, y) in enumerate(pairs) if x != y), min(len(a), len(b)))
    numbers = [any(48 <= c < 58 for c in words[same]) if same < len(words) else False for words in (a, b)]
    return bool(one["id"]) or (2 * same > len(a) and not all(numbers))


def missing_lines(data: bytes | None, other: bytes | None) -> Counter[bytes]:
    """The non-blank lines of `data` that `other` lacks, with their counts."""
    one, two = _trim_common_lines(data or b"", other or b"")
    found = Counter(one.splitlines()) - Counter(two.splitlines())
    return Counter({line: n for line, n in found.items() if line.strip()})


def _absent_from(lines: Counter[bytes], data: bytes | None) -> Counter[bytes]:
    """The lines that a content does not have."""
    return lines - Counter(line for line in (data or b"").splitlines() if line in lines)


def _trim_common_lines(one: bytes, other: bytes) -> tuple[bytes, bytes]:
    """Both contents without their common lines at the beginning and end."""
    start = one.rfind(b"\n", 0, markdown_lines.common_prefix_length(one, other)) + 1
    one, other = one[start:], other[start:]
    same = markdown_lines.common_prefix_length(one[::-1], other[::-1])
    after = one.find(b"\n", len(one) - same) + 1
    end = len(one) - after if after else 0
    return one[: len(one) - end], other[: len(other) - end]


def _reworded_blocks(lacking: Mapping[Key, Record], now: Mapping[Key, Record], past: FileHistory) -> set[Key]:
    """The core blocks whose value the person has changed: the save's value is nearer to the present one than
    to any older one."""
    theirs = {record.name: record.value for record in now.values() if isinstance(record, CoreBlock)}
    found: set[Key] = set()
    for key, block in lacking.items():
        if isinstance(block, CoreBlock) and block.name in theirs:
            records = (r for b in past.candidates() for r in by_key(b.data, past.path).values())
            values = {r.value for r in records if isinstance(r, CoreBlock) and r.name == block.name}
            value = theirs[block.name]
            if _word_overlap(value, block.value) > max(
                (_word_overlap(value, old) for old in values - {block.value}), default=0
            ):
                found.add(key)
    return found


def _word_overlap(one: str, other: str) -> float:
    """The share of common words, 0 to 1."""
    a, b = Counter(one.split()), Counter(other.split())
    return 2 * (a & b).total() / ((a + b).total() or 1)


# -- three-way merge ---------------------------------------------------------------------------------------
# By lines; changes of adjacent lines do not conflict.
#
# git's merge reports adjacent changes as a conflict, and in an append-only log every change is adjacent to
# another. Here hunks conflict only if they change the same lines or insert at the same spot.


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
