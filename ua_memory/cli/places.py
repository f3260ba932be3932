"""What `{session} {parent} {cwd} {basedir} {project}` stand for in a call: where and in what it is made."""

from __future__ import annotations

from ua_memory.places import GROUP, filled, filled_groups

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from typing import Any

    from ua_memory.cli.call import Call
    from ua_memory.clients import Event
    from ua_memory.config import Config

SESSIONS = ("CLAUDE_CODE_SESSION_ID",)
"""Variables in which a client tells the commands that it runs which session they are run in."""


def places(call: Call, event: Event | None = None) -> dict[str, str]:
    """What each placeholder stands for, '' where that is not known: by the event, else by the call."""
    from pathlib import Path

    from ua_memory.paths import project_of

    folder = Path(event.cwd) if event and event.cwd else call.cwd
    session = next((call.env[name] for name in SESSIONS if call.env.get(name)), "")
    return {
        "session": (event.session if event else "") or session,
        "parent": event.parent if event else "",
        "cwd": str(folder),
        "basedir": folder.name,
        "project": project_of(folder),
    }


def auto_scope(call: Call, config: Config, event: Event) -> dict[str, Any]:
    """What the settings `autoRecallTags…` let into a prompt at an event, as `Memory.filters` takes it. Into a
    group chat comes only what was said in it."""
    from json import loads

    if event.group:
        return {"tags": [f"{GROUP}:{event.group}"], "match": "all_strict"}

    known = places(call, event)
    groups = filled_groups(loads(config.auto_recall_tag_groups or "[]"), known)
    tags = filled(config.auto_recall_tags, known)
    return {"tags": tags, "match": config.auto_recall_tags_match, "groups": groups}
