"""Who is who: names that a person has settled, which name stands for whom, and how that is decided."""

from __future__ import annotations

from ua_memory.entities.alike import Likeness, fold, likeness
from ua_memory.entities.decisions import ENTITIES, Decision, alias, merge, rename, split
from ua_memory.entities.drawn import give_back_all
from ua_memory.entities.settled import Beside, Resolved, Settled, Suggestion, settled, suggestions

__all__ = [
    "ENTITIES",
    "Beside",
    "Decision",
    "Likeness",
    "Resolved",
    "Settled",
    "Suggestion",
    "alias",
    "fold",
    "give_back_all",
    "likeness",
    "merge",
    "rename",
    "settled",
    "split",
    "suggestions",
]
