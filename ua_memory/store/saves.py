"""Judging a person's edit: an ordinary one, a stale editor buffer, or a disappearance that needs a yes.

Three rules of `docs/invariants.md`. A save that drops exactly what was written after some revision R is
an editor's buffer from before R: it is merged against R. More than a few facts gone at once are held
until their owner confirms. Everything else is theirs and stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from ua_memory import markdown
from ua_memory.history import History, Revision
from ua_memory.records import Fact, Observation, Opinion, Record

EDIT = "edit"
"""The `Memory-Op` of a person's own change."""
MERGED = "merge"
"""The `Memory-Op` of a revision that put facts back which a stale buffer had dropped."""
LOOK_BACK = 200
"""So many revisions of one file are looked at for the one an editor's buffer is from."""

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Edit:
    """One file that differs from the trail: `trail` and `disk` bytes (None: no file)."""

    path: str
    trail: bytes | None
    disk: bytes | None


@dataclass(frozen=True, slots=True)
class Stale:
    """A save from a buffer that was read at `since`; `dropped` are the keys of the facts it lacks."""

    since: Revision
    base: bytes
    dropped: tuple[str, ...]


def keys(data: bytes | None, path: str) -> dict[Key, Record]:
    """The facts and beliefs of a file by identity: the block id, or the text's hash where there is none."""
    if data is None:
        return {}
    found = markdown.parse(data, path).records
    named = [r for r in found if isinstance(r, Fact | Observation | Opinion)]
    return {("id", r.id) if r.id else ("text", markdown.texthash(r.text)): r for r in named}


def names(found: Mapping[Key, Record], path: str) -> tuple[str, ...]:
    """What trailers call these facts: `^id`, or `path#texthash` for a person's line without one."""
    return tuple(f"^{name}" if kind == "id" else f"{path}#{name}" for kind, name in found)


def vanished(edits: Mapping[str, Edit]) -> dict[str, int]:
    """{path: facts gone for good} over all edits together: a fact that was moved or reworded is not gone."""
    before = {path: keys(edit.trail, path) for path, edit in edits.items()}
    after = {path: keys(edit.disk, path) for path, edit in edits.items()}
    everywhere = {key for found in after.values() for key in found}
    known = {key for found in before.values() for key in found}
    gone: dict[str, int] = {}
    for path, found in before.items():
        lost = sum(key not in everywhere for key in found)
        # A line without an id that was reworded looks like one gone and one new.
        fresh = sum(key not in known for key in after[path])
        gone[path] = max(0, lost - fresh)
    return gone


def held(edits: Mapping[str, Edit], few: int) -> set[str]:
    """The paths to be held: all that lost facts, if together they lost more than a few."""
    gone = vanished(edits)
    return {path for path, count in gone.items() if count} if sum(gone.values()) > few else set()


def stale(edit: Edit, history: History) -> Stale | None:
    """The revision whose buffer was saved, if the edit drops just what machines wrote after it, and for the first time."""
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
    for later, revision in pairwise(newest):
        if not dropped or later.trailer("Memory-Op") == EDIT:
            return None  # what a person wrote since, a person took away
        base = history.read(revision.id, edit.path) or b""
        missing = set(then) - set(keys(base, edit.path))
        if missing == dropped:
            return Stale(revision, base, names({key: then[key] for key in dropped}, edit.path))
        if not missing <= dropped:
            return None
    return None
