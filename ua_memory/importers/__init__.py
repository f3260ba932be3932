"""What other tools remembered → what a bank can hold. One module a source; all of them pure.

A reader gets a source's files as bytes and returns `Found`. `adopting` puts that into a bank, and `cli`
reads the files. Nothing is rephrased.
"""

from __future__ import annotations

from collections.abc import Callable

from ua_memory.errors import Usage
from ua_memory.importers.found import Core, Files, Found, Item, Note, stable_id

__all__ = ["Core", "Files", "Found", "Item", "Note", "read", "stable_id"]


def read(source: str, name: str, files: Files) -> Found:
    """What a source of this kind holds. Usage for an unknown kind, or where nothing of the kind is there."""
    from ua_memory.importers import basic_memory, claude_code, hindsight, notes, openclaw

    readers: dict[str, Callable[[str, Files], Found]] = {
        "openclaw": openclaw.read,
        "claude-code": claude_code.read,
        "basic-memory": basic_memory.read,
        "markdown": notes.read,
        "hindsight": hindsight.read,
    }
    if source not in readers:
        raise Usage(f"{source!r} is nothing that can be imported", mend=f"use {', '.join(readers)}")
    return readers[source](name, files)
