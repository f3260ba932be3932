"""Which items a search may return, as a value and as SQL over the word index's rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from ua_memory.errors import Usage
from ua_memory.index.scopes import Group, Tagged
from ua_memory.records import Kind

KINDS = tuple(
    dict.fromkeys((*get_args(Kind), "fact", "passage", "observation", "opinion", "page", "model", "core"))
)
"""What `kinds` may name: the kinds of facts and opinions, and the records an item may be."""


@dataclass(frozen=True, slots=True)
class Filters:
    """All that are set must hold. Days are ISO, both inclusive; items without a day fail them.

    `tags`: matched as `match` says, case aside; `groups`: all of them must hold, beside the tags (see
    `scopes`). `kinds`: a fact's kind or the name of a record. `sources`: an origin word or a client's
    name. `path`: the beginning of a bank-relative path. `retired`: whether retired facts may come.
    Usage for a kind or a mode that there is not, and for days that end before they begin: it would find
    nothing, and nobody would know why.
    """

    since: str | None = None
    until: str | None = None
    tags: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    path: str = ""
    retired: bool = True
    match: str = "any_strict"
    groups: tuple[Group, ...] = ()

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise Usage(f"no such kind: {kind}", mend=f"one of {', '.join(KINDS)}")
        if self.since and self.until and self.since[:10] > self.until[:10]:
            raise Usage(
                f"nothing is both since {self.since} and until {self.until}", mend="exchange the days"
            )
        Tagged(self.tags, self.match)

    def __bool__(self) -> bool:
        """Whether anything is filtered at all."""
        return self.sql()[0] != "1"

    def sql(self) -> tuple[str, list[str]]:
        """A condition over `items` and its parameters; `1` if nothing is filtered."""
        parts: list[str] = []
        values: list[str] = []
        if self.since:
            parts.append("items.date >= ? AND items.date != ''")
            values.append(self.since[:10])
        if self.until:
            parts.append("items.date <= ? AND items.date != ''")
            values.append(self.until[:10])
        for group in (Tagged(self.tags, self.match), *self.groups) if self.tags else self.groups:
            said, tags = group.sql()
            parts.append(said)
            values += tags
        if self.kinds:
            marks = ",".join("?" * len(self.kinds))
            parts.append(f"(items.kind IN ({marks}) OR items.record IN ({marks}))")
            values += [*self.kinds, *self.kinds]
        if self.sources:
            marks = ",".join("?" * len(self.sources))
            parts.append(f"(items.origin IN ({marks}) OR items.client IN ({marks}))")
            values += [*self.sources, *self.sources]
        if self.path:
            parts.append("substr(items.path, 1, length(?)) = ?")
            values += [self.path, self.path]
        if not self.retired:
            parts.append("items.retired = ''")
        return " AND ".join(f"({part})" for part in parts) or "1", values
