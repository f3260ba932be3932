"""How far a session has been read: `through:` in the files and `Through` in the trail, and nothing else.

Both say `client/session/entry`. Either suffices: a file's mark survives a lost trail, a trailer survives a
file that somebody tidied up. A turn counts as read if it stands at or before any marked one on its path.
"""

from __future__ import annotations

from collections.abc import Iterable

from ua_memory import markdown
from ua_memory.store import Store
from ua_memory.transcripts.turns import Session, Turn

TRAILER, SIZE = "Through", "Context"


def mark(session: Session, entry: str) -> str:
    """`client/session/entry`, as it stands in files and trailers."""
    return f"{_part(session.client)}/{_part(session.session)}/{_part(entry)}"


def read_so_far(store: Store, session: Session) -> set[str]:
    """The marks of a session, from the files as they are and from every revision."""
    prefix = f"{_part(session.client)}/{_part(session.session)}/"
    found = {m for r in store.history.log(grep=[f"{TRAILER}: {prefix}"]) for m in r.trailers.get(TRAILER, ())}
    for stat in store.files():
        data = store.truth(stat.path)
        if prefix.encode() in data:
            found |= set(markdown.parse(data, stat.path).through)
    return {m for m in found if m.startswith(prefix)}


def size_at_last_flush(store: Store, session: Session) -> int | None:
    """How large the session's context was when it was last flushed, in tokens; None if it never was."""
    prefix = f"{TRAILER}: {_part(session.client)}/{_part(session.session)}/"
    last = store.history.log(grep=[prefix], limit=1)
    size = last[0].trailer(SIZE) if last else ""
    return int(size) if size.isdigit() else None


def unread(turns: Iterable[Turn], session: Session, marks: set[str]) -> list[Turn]:
    """The turns behind the last marked one, in order."""
    fresh: list[Turn] = []
    for turn in turns:
        fresh.append(turn)
        if mark(session, turn.id) in marks:
            fresh.clear()
    return fresh


def _part(text: str) -> str:
    """One part of a mark, with what separates marks, parts and comments written as %xx."""
    return "".join(f"%{ord(c):02x}" if c in "/%,>" or not c.isprintable() or c.isspace() else c for c in text) or "-"
