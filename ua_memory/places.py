"""Where and in what something is said or asked: `{session} {parent} {cwd} {basedir} {project}` in tags, and
the tags that say it of what is kept.

Alone, a placeholder is the tag that says so (`{project}` is `project:api`); inside other text it is the bare
value (`team:{project}`). What is not known, such as the session of a person at a terminal, takes the tags
that need it with it: a scope that nobody can be in would only hide things.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False  # typing's own constant would cost the import of typing
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

GROUP = "group"
"""The key of the tag that says in which group chat something was said."""
NAMES = ("session", "parent", "cwd", "basedir", "project")
OF_ONE_SESSION = ("session:", "parent:")
AUTO, TOOL = "store_method:auto", "store_method:tool"
"""Who had it kept: a flush, or an agent that called a tool."""
_PLACE = re.compile("{(" + "|".join(NAMES) + ")}")


def filled(tags: Iterable[str], known: Mapping[str, str]) -> list[str]:
    """The tags with their placeholders filled in, without those for which something is not known."""
    found = []
    for tag in tags:
        names = _PLACE.findall(tag)
        if all(known.get(name) for name in names):
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


def group_of(tags: Iterable[str]) -> str:
    """The tag that says in which group chat something was said, '' where it was none."""
    return next((tag for tag in tags if tag.startswith(f"{GROUP}:")), "")


def said_in(
    harness: str, known: Mapping[str, str], method: str, scopes: Iterable[str] = ()
) -> tuple[str, ...]:
    """The tags of all that is kept there; what is not known is left out. `scopes` (`observationScopes`) are
    the tags by whose values beliefs are kept apart."""
    named = {"harness": harness, **{name: known.get(name, "") for name in (*NAMES, GROUP)}}
    where = [f"{name}:{value}" for name, value in named.items() if value]
    return (*where, method, *(f"scope:{tag.removeprefix('scope:')}" for tag in filled(scopes, known)))
