"""The JSON shapes that several verbs print, as docs/json.md describes them."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from ua_memory.records import Place

if TYPE_CHECKING:
    from ua_memory.memory import BlameLine, Budget, Revision


def place(at: Place, block: str | None) -> dict[str, Any]:
    """Where something stands: path, lines, citation; for what has an id also id and link."""
    found: dict[str, Any] = {
        "path": at.path,
        "startLine": at.line,
        "endLine": at.end,
        "citation": at.citation,
    }
    if block:
        found |= {"id": block, "link": link(at.path, block)}
    return found


def searched(proof: Any) -> dict[str, Any]:
    """What a forgetting looked through, and where it was found still."""
    return {
        "searched": dict(proof.looked),
        "found": [{"where": each.where, "kind": each.kind} for each in proof.found],
    }


def link(path: str, block: str) -> str:
    """Obsidian's link to a block: `[[2026-11-21#^k7m2q9x4tb]]`."""
    return f"[[{PurePosixPath(path).stem}#^{block}]]"


def revision(one: Revision) -> dict[str, Any]:
    """A revision with everything the trail says of it."""
    return {
        "revision": one.id,
        "when": one.when.isoformat(),
        "author": one.author,
        "op": one.trailer("Memory-Op"),
        "subject": one.subject,
        "paths": list(one.paths),
        "trailers": {name: list(values) for name, values in one.trailers.items()},
    }


def blame(one: BlameLine) -> dict[str, Any]:
    """A line and who wrote it; `revision` is absent where no revision has it yet."""
    known = {"revision": one.revision} if one.revision.strip("0") else {}
    return {
        "line": one.line,
        **known,
        "author": one.author,
        "when": one.when.isoformat(),
        "subject": one.subject,
        "text": one.text,
    }


def budget(one: Budget) -> dict[str, Any]:
    """Tokens used of a budget."""
    return {"tokens": one.used, "budget": one.limit, **({"warning": one.warning} if one.warning else {})}


def usage(used: Any) -> dict[str, int]:
    """Tokens that models took, by kind."""
    return {
        "input": used.input,
        "output": used.output,
        "cacheRead": used.cache_read,
        "cacheWrite": used.cache_write,
    }


def without_empty(values: dict[str, Any]) -> dict[str, Any]:
    """The entries that say something: not None, not empty text, not an empty list."""
    return {key: value for key, value in values.items() if value not in (None, "", [], (), {})}
