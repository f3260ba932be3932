"""Which items a search may return: dates, kinds, paths, and tags as scopes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Literal, TypeAlias, get_args

from ua_memory.config import MATCHES
from ua_memory.errors import Usage
from ua_memory.records import Kind

# -- scopes ------------------------------------------------------------------------------------------------
# Tags as a scope: which tags an item must have, in one of five modes or in groups of them, as a value and
# as SQL over the word index's rows.
#
#     any          one of the tags, or no tag at all
#     all          each of the tags, or no tag at all
#     any_strict   one of the tags
#     all_strict   each of the tags
#     exact        these tags and no other; without any: no tag
#
# The modes and the shape of a group are those of Hindsight's `tags_match` and `tag_groups`, so that what
# its users have written down goes on working. A tag also stands for those nested below it (`infra` for
# `infra/db`), but not in `exact`, which does not count tags that say where something was said
# (`project:shop`) either unless they are asked for.


DEEPEST = 20
"""Groups inside groups; SQLite's own limit lies far beyond."""
MOST_LEAVES = 200
"""Tags in all groups together."""

Sql: TypeAlias = "tuple[str, list[str]]"
"""A condition over `items`, and its parameters."""


@dataclass(frozen=True, slots=True)
class Tagged:
    """A leaf: these tags, one at least unless `exact`, matched in this mode. Usage for no such mode."""

    tags: tuple[str, ...]
    match: str = "any_strict"

    def __post_init__(self) -> None:
        if self.match not in MATCHES:
            raise Usage(f"unknown way to match tags: {self.match}", hint=f"one of {', '.join(MATCHES)}")

    def sql(self) -> Sql:
        """The condition that an item's tags meet it."""
        names = [tag.lstrip("#").casefold() for tag in self.tags]
        row = "EXISTS (SELECT 1 FROM json_each(items.tags) AS t WHERE {})"
        if self.match == "exact":
            marks = ",".join("?" * len(names))
            other = row.format(f"t.value NOT IN ({marks}) AND instr(t.value, ':') = 0")
            return f"({' AND '.join([*[row.format('t.value = ?')] * len(names), f'NOT {other}'])})", names * 2
        one = "(t.value = ? OR substr(t.value, 1, length(?)) = ?)"
        if self.match.startswith("any"):
            said = row.format(" OR ".join([one] * len(self.tags)))
        else:
            said = " AND ".join([row.format(one)] * len(self.tags))
        if not self.match.endswith("_strict"):
            said = f"items.tags = '[]' OR ({said})"
        return f"({said})", [value for name in names for value in (name, f"{name}/", f"{name}/")]


@dataclass(frozen=True, slots=True)
class TagGroup:
    """Groups under `and` or `or`, one at least, or a single one under `not`."""

    how: Literal["and", "or", "not"]
    groups: tuple[Group, ...]

    def sql(self) -> Sql:
        """The condition that an item's tags meet it."""
        parts = [group.sql() for group in self.groups]
        values = [value for _, part in parts for value in part]
        if self.how == "not":
            return f"(NOT {parts[0][0]})", values
        return f"({f' {self.how.upper()} '.join(text for text, _ in parts)})", values


Group: TypeAlias = Tagged | TagGroup


def read_groups(value: object) -> tuple[Group, ...]:
    """The groups that a list from JSON stands for, all of which must hold.

    A group is `{"tags": […], "match": "any_strict"}`, `{"and": […]}`, `{"or": […]}` or `{"not": {…}}`. One
    that names no tag says nothing, and counts for nothing. Usage where it is none of these, too deep or too
    long.
    """
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _wrong("the groups must be a list", value)
    groups = _groups(value, 1)
    if sum(map(_leaves, groups)) > MOST_LEAVES:
        raise Usage(f"the groups have more than {MOST_LEAVES} tags", hint="use fewer tags")
    return groups


def _groups(values: Sequence[object], depth: int) -> tuple[Group, ...]:
    if depth > DEEPEST:
        raise Usage(f"tag groups are nested more than {DEEPEST} deep", hint="nest fewer groups")
    return tuple(group for value in values for group in _group(value, depth))


def _group(value: object, depth: int) -> tuple[Group, ...]:
    """The group, or none where it names no tag."""
    if isinstance(value, Mapping):
        if "tags" in value and set(value) <= {"tags", "match"}:
            tags = value["tags"]
            if isinstance(tags, Sequence) and not isinstance(tags, str) and all(map(_text, tags)):
                leaf = Tagged(tuple(tags), str(value.get("match", "any_strict")))
                return (leaf,) if tags or leaf.match == "exact" else ()
        elif set(value) in ({"and"}, {"or"}):
            (how, inner), *_ = value.items()
            if isinstance(inner, Sequence) and not isinstance(inner, str):
                groups = _groups(inner, depth + 1)
                return (TagGroup(how, groups),) if groups else ()
        elif set(value) == {"not"}:
            groups = _groups([value["not"]], depth + 1)
            return (TagGroup("not", groups),) if groups else ()
    raise _wrong("not a group of tags", value)


def _text(value: object) -> bool:
    return isinstance(value, str)


def _leaves(group: Group) -> int:
    return len(group.tags) if isinstance(group, Tagged) else sum(map(_leaves, group.groups))


def _wrong(what: str, value: object) -> Usage:
    return Usage(
        f"{what}: {str(value)[:80]}",
        hint='[{"tags": ["a", "b"], "match": "any_strict"}, {"not": {"tags": ["c"]}}], also "and" and "or"',
    )


# -- filters -----------------------------------------------------------------------------------------------
# Which items a search may return, as a value and as SQL over the word index's rows.


KINDS = tuple(
    dict.fromkeys(
        (*get_args(Kind), "fact", "passage", "observation", "opinion", "page", "model", "core", "session")
    )
)
"""What `kinds` may name: the kinds of facts and opinions, and the records an item may be."""


@dataclass(frozen=True, slots=True)
class Filters:
    """All that are set must hold. Days are ISO, both inclusive; items without a day fail them, and of what is
    about a whole month a part is enough.

    `tags`: matched as `match` says, case aside; `groups`: all of them must hold, beside the tags (see
    `scopes`). `kinds`: a fact's kind or the name of a record. `sources`: an origin word or a client's
    name. `path`: the beginning of a bank-relative path. `names`: folded names, one of which it contains;
    `sessions`: ids of the sessions it was said in, or beginnings of them. `day`: an ISO day on which it
    was said, or that it is about. `retired`: whether what is retired may come;
    None: if the query asks for the past. `asked_at` filters nothing: it is when the query was asked (aware;
    None: now), which is what its "last week" counts from.
    Usage for a kind, a mode or a day that there is not, and for days that end before they begin: it would
    find nothing, and nobody would know why.
    """

    since: str | None = None
    until: str | None = None
    tags: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    path: str = ""
    retired: bool | None = None
    match: str = "any_strict"
    groups: tuple[Group, ...] = ()
    names: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    day: str = ""
    asked_at: datetime | None = None

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise Usage(f"unknown kind: {kind}", hint=f"one of {', '.join(KINDS)}")
        for day in filter(None, (self.since, self.until)):
            try:
                date.fromisoformat(day[:10])
            except ValueError:
                raise Usage(f"{day!r} is not an ISO day", hint="2026-11-21") from None
        if self.since and self.until and self.since[:10] > self.until[:10]:
            raise Usage(f"since {self.since} is later than until {self.until}", hint="swap the two days")
        Tagged(self.tags, self.match)

    def __bool__(self) -> bool:
        """Whether anything is filtered at all."""
        return self.sql()[0] != "1"

    def single(self) -> Iterator[tuple[str, Filters]]:
        """Each of the filters that are set, by its name, alone."""
        for name in (
            "since",
            "until",
            "tags",
            "groups",
            "kinds",
            "sources",
            "path",
            "names",
            "sessions",
            "day",
        ):
            if value := getattr(self, name):
                yield name, replace(Filters(match=self.match), **{name: value})
        if self.retired is False:
            yield "retired", Filters(retired=False)

    def sql(self) -> tuple[str, list[str]]:
        """A condition over `items` and its parameters; `1` if nothing is filtered."""
        parts: list[str] = []
        values: list[str] = []
        if self.since:
            parts.append("items.date >= substr(?, 1, length(items.date)) AND items.date != ''")
            values.append(self.since[:10])
        if self.until:
            parts.append("items.date <= ? AND items.date != ''")
            values.append(self.until[:10])
        tagged = (Tagged(self.tags, self.match),) if self.tags or self.match == "exact" else ()
        for group in (*tagged, *self.groups):
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
        if self.names:
            marks = ",".join("?" * len(self.names))
            parts.append(f"items.rowid IN (SELECT item FROM names WHERE name IN ({marks}))")
            values += self.names
        if self.sessions:
            one = "substr(items.session, 1, length(?)) = ?"
            parts.append(" OR ".join([one] * len(self.sessions)))
            values += [each for each in self.sessions for _ in range(2)]
        if self.day:
            parts.append("items.date = ? OR items.day = ?")
            values += [self.day, self.day]
        if self.retired is False:
            parts.append("items.retired = ''")
        return " AND ".join(f"({part})" for part in parts) or "1", values
