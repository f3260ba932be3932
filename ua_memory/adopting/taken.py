"""What became of each thing of a source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ua_memory.importers import Found
from ua_memory.store import Result

State = Literal["new", "same", "updated", "left"]


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one thing of a source: a note, a core block, an item, a model or a page.

    `left` is not taken, and `why` says the reason; of the other states it says more where there is more.
    """

    what: Literal["note", "block", "item", "model", "page"]
    source: str
    path: str
    state: State
    why: str = ""
    day: str | None = None
    facts: int = 0
    prose: int = 0


@dataclass(frozen=True, slots=True)
class Brought:
    """What an import did, or would do; `result` is None for a rehearsal."""

    found: Found
    taken: tuple[Taken, ...]
    redacted: Mapping[str, int]
    result: Result | None = None

    def count(self, what: str, *states: State) -> int:
        return sum(1 for each in self.taken if each.what == what and (not states or each.state in states))
