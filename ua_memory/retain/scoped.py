"""In what a session was held, as tags for filters: what `autoRecallTags` and `--tag` name by `{project}` and
the like. They hold for all facts below a heading, and stand there once (`facts.Said`)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ua_memory import places
from ua_memory.paths import project_of
from ua_memory.transcripts.turns import Session


def tags(session: Session, scopes: Iterable[str] = ()) -> tuple[str, ...]:
    """The tags of all that a flush keeps of a session. `scopes` are those of the setting."""
    folder = Path(session.cwd) if session.cwd else None
    known = {
        "session": session.session, "parent": session.parent, "cwd": session.cwd,
        "group": session.group, "basedir": folder.name if folder else "",
        "project": project_of(folder) if folder else "",
    }  # fmt: skip
    return places.said_in(session.client, known, places.AUTO, scopes)
