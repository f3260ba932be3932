"""Words that texts of every layer need alike: commits, errors, and what a model is told."""

from __future__ import annotations

OFF = (
    "Memory is off: its user has switched it off (UA_MEMORY_ENABLED, or `enabled` in the settings)."
    " Nothing was read or written."
)
"""What every tool of an agent answers then."""


def counted(number: int, noun: str) -> str:
    """`1 fact`, `3 facts`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


CORE_INTRO = "What every session begins with: one `## Section` a block, kept short."
"""The sentence that a new MEMORY.md begins with. As long as nobody has changed it, it is no memory: it is not
indexed, not given to an agent, not counted."""
