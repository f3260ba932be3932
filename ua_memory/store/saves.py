"""Judging a person's edit: an ordinary one, a stale editor buffer, or a disappearance that needs a yes.

Three rules of `docs/invariants.md`. A save that drops exactly what was written after some revision R is
an editor's buffer from before R: it is merged against R. More than a few facts gone at once are held
until their owner confirms. Everything else is theirs and stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

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
MERGED = "merge"
"""The `Memory-Op` of a revision that put facts back which a stale buffer had dropped."""
LOOK_BACK = 200
"""So many revisions of one file are looked at for the one an editor's buffer is from."""
AT_ONCE = 20

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
    """A save from a buffer that was read at `since`; `dropped` are the names of the facts it lacks."""

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
    return {key: r for r in markdown.parse(data, path).records if (key := _key(r))}


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


def stale(edit: Edit, history: History) -> Stale | None:
    """The revision whose buffer was saved, if the edit drops just what machines wrote after it, for the
    first time."""
    if edit.trail is None or edit.disk is None:
        return None
    then, now = keys(edit.trail, edit.path), keys(edit.disk, edit.path)
    dropped = set(then) - set(now)
    if not dropped:
        return None
    newest = history.log([edit.path], limit=LOOK_BACK)
    put_back = {
        name for r in newest if r.trailer("Memory-Op") == MERGED for name in r.trailers.get("Facts", ())
    }
    # Put back once already and dropped again: that is meant.
    dropped = {key for key in dropped if not put_back & set(names({key: then[key]}, edit.path))}
    contents: list[bytes | None] = []
    for number, (later, revision) in enumerate(pairwise(newest)):
        if not dropped or later.trailer("Memory-Op") == EDIT:
            return None  # what a person wrote since, a person took away
        if number == len(contents):
            ahead = newest[number + 1 : number + 1 + AT_ONCE]
            contents += history.read_all([(r.id, edit.path) for r in ahead])
        base = contents[number] or b""
        missing = set(then) - set(keys(base, edit.path))
        if missing == dropped:
            return Stale(revision, base, names({key: then[key] for key in dropped}, edit.path))
        if not missing <= dropped:
            return None
    return None
