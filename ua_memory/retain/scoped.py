"""In what a session was held, as tags for filters: one comment below each heading that its facts stand under.

The tags are those that `autoRecallTags` and `--tag` name by `{project}` and the like. They hold for all facts
below a heading, so they stand there once, where a reader of the rendered page does not see them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ua_memory import markdown
from ua_memory.paths import project_of
from ua_memory.records import Fact
from ua_memory.retain import through
from ua_memory.store import Draft
from ua_memory.transcripts.turns import Session

METHOD = "store_method:auto"
"""What a flush writes; `store_method:tool` is what an agent has a tool write."""


def tags(session: Session) -> list[str]:
    """The tags of all that is kept of a session; what is not known is left out."""
    folder = Path(session.cwd) if session.cwd else None
    known = {
        "harness": session.client, "session": session.session, "parent": session.parent, "cwd": session.cwd,
        "basedir": folder.name if folder else "", "project": project_of(folder) if folder else "",
    }  # fmt: skip
    return [*(f"{name}:{value}" for name, value in known.items() if value), METHOD]


def write(draft: Draft, facts: Iterable[Fact], session: Session) -> None:
    """Say below each heading that these facts of an open revision stand under what holds for all of them."""
    line = markdown.tags_line(tags(session))
    if draft.redact(line) != line:  # a path that looks like a secret
        return
    rows = {(fact.place.path, row) for fact in facts if (row := through.heading_row(draft, fact)) is not None}
    for path, row in sorted(rows, reverse=True):
        data = draft.read(path)
        lines = markdown.parse(data, path).lines
        below = row
        while below < len(lines) and lines[below].startswith("<!-- through: "):
            below += 1
        if below == len(lines) or not lines[below].startswith("<!-- tags: "):
            draft.write(path, markdown.insert_after(data, below, [line]))
