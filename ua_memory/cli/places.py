"""What `{session} {parent} {cwd} {basedir} {project}` stand for in tags: where and in what a call is made.

Alone, a placeholder is the tag that says so (`{project}` is `project:api`); inside other text it is the bare
value (`team:{project}`). What is not known here, such as the session of a person at a terminal, takes the
tags that need it with it: a scope that nobody can be in would only hide things.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ua_memory.cli.call import Call
    from ua_memory.clients import Event
    from ua_memory.config import Config

NAMES = ("session", "parent", "cwd", "basedir", "project")
SESSIONS = ("CLAUDE_CODE_SESSION_ID",)
"""Variables in which a client tells the commands that it runs which session they are run in."""
_PLACE = re.compile("{(" + "|".join(NAMES) + ")}")


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


def filled(tags: Iterable[str], known: Mapping[str, str]) -> list[str]:
    """The tags with their placeholders filled in, without those for which something is not known."""
    found = []
    for tag in tags:
        names = _PLACE.findall(tag)
        if all(known[name] for name in names):
            alone = f"{names[0]}:{known[names[0]]}" if names and _PLACE.fullmatch(tag) else ""
            found.append(alone or _PLACE.sub(lambda name: known[name[1]], tag))
    return found


def filled_groups(groups: Any, known: Mapping[str, str]) -> Any:
    """Groups of tags, as JSON has them, with the placeholders of all their tags filled in."""
    if isinstance(groups, dict):
        return {key: filled_groups(value, known) for key, value in groups.items()}
    if isinstance(groups, list):
        if groups and all(isinstance(each, str) for each in groups):
            return filled(groups, known)
        return [filled_groups(each, known) for each in groups]
    return groups


def auto_scope(call: Call, config: Config, event: Event) -> dict[str, Any]:
    """What the settings `autoRecallTags…` let into a prompt at an event, as `Memory.filters` takes it."""
    from json import loads

    known = places(call, event)
    groups = filled_groups(loads(config.auto_recall_tag_groups or "[]"), known)
    tags = filled(config.auto_recall_tags, known)
    return {"tags": tags, "match": config.auto_recall_tags_match, "groups": groups}
