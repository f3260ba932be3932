"""Judging a person's edit: an ordinary one, a stale editor buffer, or a disappearance that needs a yes.

Three rules of `docs/invariants.md`. A save that lacks all that was written after some revision R, and little
else, is an editor's buffer from before R: it is merged against R. More than a few facts gone at once are held
until their owner confirms. Everything else is theirs and stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ua_memory import markdown
from ua_memory.history import History, Revision
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
)

EDIT = "edit"
"""The `Memory-Op` of a person's own change."""
RESTORED = "restore"
"""The `Memory-Op` of a person's wish to have back what had disappeared."""
BY_PERSON = (EDIT, RESTORED)
MERGED = "merge"
"""The `Memory-Op` of a revision that put facts back which a stale buffer had dropped."""
LOOK_BACK = 200
"""So many revisions of one file are looked at for the one an editor's buffer is from."""
AT_ONCE = 20
CACHED = 1 << 20
"""Bytes of a content whose records are remembered."""
SHOWN = "Shown"
"""The trailer that names a content by its blob id: it stood in the file for a moment and was in no commit."""

Key = tuple[str, str]
NAMELESS = "text"
"""The kind of key of a record that is known by its words alone: reworded, it is another one."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One file that differs from the trail: `trail` and `disk` bytes (None: no file)."""

    path: str
    trail: bytes | None
    disk: bytes | None


@dataclass(frozen=True, slots=True)
class Stale:
    """A save from a buffer that was read at `since`; `dropped` are the names of the facts it lacks: none
    where it lacks only lines of prose."""

    since: Revision
    base: bytes
    dropped: tuple[str, ...]


def keys(data: bytes | None, path: str) -> dict[Key, Record]:
    """The records of a file by identity: the id or name, or the text's hash where there is none.

    A block of core memory is known by name and value: a machine's new value is something that a stale
    buffer can drop.
    """
    if data is None:
        return {}
    return dict(_parsed(data, path) if len(data) < CACHED else _keys(data, path))


def _keys(data: bytes, path: str) -> dict[Key, Record]:
    return {key: r for r in markdown.parse(data, path).records if (key := _key(r))}


_parsed = lru_cache(maxsize=32)(_keys)
"""One judgement asks for the same few contents again and again, while an editor may be saving."""


def _key(record: Record) -> Key | None:
    match record:
        case Fact() | Observation() | Opinion():
            return ("id", record.id) if record.id else (NAMELESS, markdown.texthash(record.text))
        case Page() | MentalModel() | Tombstone():
            return (type(record).__name__, record.id)
        case Entity():
            return ("Entity", record.name)
        case CoreBlock():
            return ("block", markdown.texthash(f"{record.name}\n{record.value}"))
    return None


def names(found: Mapping[Key, Record], path: str) -> tuple[str, ...]:
    """What trailers call these: `^id`, or `path#hash` for what has no id."""
    return tuple(f"^{name}" if kind == "id" else f"{path}#{name.replace(' ', '-')}" for kind, name in found)


def vanished(edits: Mapping[str, Edit]) -> dict[str, int]:
    """{path: records gone for good} over all edits together: what was moved or reworded is not gone."""
    before = {path: keys(edit.trail, path) for path, edit in edits.items()}
    after = {path: keys(edit.disk, path) for path, edit in edits.items()}
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


def _words(record: Record) -> str:
    """What a record is still recognised by when its id was taken off or its value changed."""
    return f"## {record.name}" if isinstance(record, CoreBlock) else str(getattr(record, "text", record))


def held(edits: Mapping[str, Edit], few: int) -> set[str]:
    """The paths to be held: all that lost something, if together they lost more than a few.

    Files that went altogether in the same moment are part of it, whatever was in them.
    """
    gone = vanished(edits)
    if sum(gone.values()) <= few:
        return set()
    return {path for path, count in gone.items() if count or edits[path].disk is None}


@dataclass(slots=True)
class Past:
    """The newest revisions of one file and what they left in it, read once, for one head of the trail."""

    path: str
    history: History
    head: str | None
    revisions: list[Revision] | None = None
    contents: dict[int, list[tuple[Revision, bytes, bool]]] = field(default_factory=dict)

    def newest(self) -> list[Revision]:
        if self.revisions is None:
            self.revisions = self.history.log([self.path], limit=LOOK_BACK)
        return self.revisions

    def buffers(self) -> Iterator[tuple[Revision, bytes, bool]]:
        """What an editor may have read, newest first: what a revision left, or (True) showed for a moment.
        It ends at a person's own edit: what they wrote since, they took away."""
        for start in range(0, len(self.newest()), AT_ONCE):
            if start not in self.contents:
                self.contents[start] = self._read(self.newest()[start : start + AT_ONCE])
            last = None
            for revision, data, shown in self.contents[start]:
                if last is not None and last is not revision and last.trailer("Memory-Op") in BY_PERSON:
                    return
                last = revision
                yield revision, data, shown
            if last is not None and last.trailer("Memory-Op") in BY_PERSON:
                return

    def _read(self, some: Sequence[Revision]) -> list[tuple[Revision, bytes, bool]]:
        named = ((r, ((r.id, self.path), *((s, "") for s in r.trailers.get(SHOWN, ())))) for r in some)
        rows = [(r, name) for r, names_ in named for name in names_]
        found = self.history.read_all([name for _, name in rows])
        there = ((r, data, not path) for (r, (_, path)), data in zip(rows, found, strict=True))
        # A content that was shown may be collected as garbage in time; a file that was not there was empty.
        return [(r, data or b"", shown) for r, data, shown in there if data is not None or not shown]


def stale(edit: Edit, past: Past) -> Stale | None:
    """The revision whose buffer was saved, if the edit lacks what machines wrote after it, for the first
    time; or what stood in the file for a moment, before a save of the person's own was merged in."""
    if edit.trail is None or edit.disk is None:
        return None
    then, now = keys(edit.trail, edit.path), keys(edit.disk, edit.path)
    dropped = set(then) - set(now)
    dropped -= _reworded({key: then[key] for key in dropped}, now, past)
    if not dropped:
        return _read_by(edit, then, dropped, past) if _lines(edit.trail, edit.disk) else None
    newest = past.newest()
    called = {names({key: record}, edit.path)[0]: key for key, record in then.items()}
    lacking = {name for name, key in called.items() if key in dropped}
    # Put back once already, and dropped again by somebody who has seen that: it is meant.
    dropped -= {called[name] for name in _put_back_and_seen(newest, lacking, set(called) - lacking)}
    if not dropped:
        return None
    return _read_by(edit, then, dropped, past)


def _read_by(edit: Edit, then: Mapping[Key, Record], dropped: set[Key], past: Past) -> Stale | None:
    """What was read by who dropped these: of the contents that lack them, the one most like the save.

    One that lacks just these comes first; else one that lacks some, where the rest is little that the save
    itself took away or reworded. Where no record was dropped, only what was shown for a moment counts, if
    it lacks the very lines: any other line that is gone was taken away.
    """
    lost = _lines(edit.trail, edit.disk)
    found: list[tuple[tuple[bool, int], Stale]] = []
    for revision, base, shown in past.buffers():
        had = keys(base, edit.path)
        missing = {key: record for key, record in then.items() if key not in had}
        lacks = _lines(edit.trail, base)
        strange = ((lost - lacks) + (lacks - lost)).total()
        if missing.keys() == dropped:
            fits = bool(dropped) or (shown and not strange)
        else:
            fits = missing.keys() < dropped and strange < lost.total() and _took_little(edit, base)
        if fits and (missing or shown):
            found.append(
                ((len(missing) != len(dropped), strange), Stale(revision, base, names(missing, edit.path)))
            )
        if not shown and not missing.keys() <= dropped:
            break
    return min(found, key=lambda one: one[0])[1] if found else None


def _took_little(edit: Edit, base: bytes) -> bool:
    """Whether a save still has most of what it was made from; reworded is not taken."""
    gone = vanished({edit.path: Edit(edit.path, base, edit.disk)})[edit.path]
    return 2 * gone <= len(keys(base, edit.path))


def _lines(data: bytes | None, other: bytes | None) -> Counter[bytes]:
    """The lines of one that the other lacks, blank ones aside."""
    gone = Counter((data or b"").splitlines()) - Counter((other or b"").splitlines())
    return Counter({line: n for line, n in gone.items() if line.strip()})


def _reworded(lacking: Mapping[Key, Record], now: Mapping[Key, Record], past: Past) -> set[Key]:
    """Blocks of core memory whose value the person has changed: what stands there is more like the value it
    lacks than like any that an editor may have read before."""
    theirs = {record.name: record.value for record in now.values() if isinstance(record, CoreBlock)}
    found: set[Key] = set()
    for key, block in lacking.items():
        if isinstance(block, CoreBlock) and block.name in theirs:
            records = (r for _, data, _ in past.buffers() for r in keys(data, past.path).values())
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


def _put_back_and_seen(newest: Sequence[Revision], lacking: set[str], having: set[str]) -> set[str]:
    """Those of the names a save lacks that were put back in a revision which the save has seen.

    What is put back comes into the file in one step with what its revision adds. A save that lacks that
    too was read before: it is the old buffer still, and no answer.
    """
    seen: set[str] = set()
    for number, revision in enumerate(newest):
        named = set(revision.trailers.get("Facts", ()))
        if revision.trailer("Memory-Op") != MERGED or not named & lacking:
            continue
        # A put-back with a request of its own was all of its revision.
        along = newest[number - 1] if number and not revision.trailer("Request") else None
        added = set(along.trailers.get("Facts", ())) - named if along else set()
        if not added & lacking or added & having:
            seen |= named
    return seen & lacking
