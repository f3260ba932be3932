"""Filters of a search: dates, kinds, paths, tags …, as values and as SQL conditions."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Literal, TypeAlias, get_args

from ua_memory.config import MATCHES
from ua_memory.errors import Usage
from ua_memory.records import Kind

# -- days ------------------------------------------------------------------------------------------------


DATES = "2026-11-21, 2026-11, 30d, yesterday, last week, ieri or amanhã"
"""Examples of what `parse_day` reads, for help and errors."""


def parse_day(text: str | None, option: str, now: datetime, *, end: bool = False) -> str | None:
    """An ISO day out of what an option was given: `2026-11-21`, `2026-11`, `2026`, so many days or weeks ago
    (`30d`, `2w`), or time words as `dates.parse_days` reads them: `yesterday`, `last week`, `May`.

    Of several days it is the first, or with `end` the last. Usage for anything else.
    """
    if text is None:
        return None
    word = text.strip().lower()
    try:
        if match := re.fullmatch(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?", word, re.ASCII):
            year, month = int(match[1]), int(match[2] or (12 if end else 1))
            last = calendar.monthrange(year, month)[1] if end else 1
            return date(year, month, int(match[3] or last)).isoformat()
        from ua_memory.text import dates  # some 40 ms, which no ISO date need wait for

        day = dates.parse_days(text, now)[end]
        if day is None:
            raise ValueError(text)
        return day.isoformat()
    except (ValueError, OverflowError) as error:
        raise Usage(f"{text!r} is not a valid date", where=option, hint=f"use {DATES}") from error


def parse_since(text: str | None, now: datetime) -> datetime | None:
    """The beginning of the day that `--since` names, as `parse_day` reads it, in the zone of `now`."""
    day = parse_day(text, "--since", now)
    return datetime.combine(date.fromisoformat(day), time(), now.tzinfo) if day else None


def parse_until(text: str | None, now: datetime) -> datetime | None:
    """The end of the last day that `--until` names, in the zone of `now`."""
    day = parse_day(text, "--until", now, end=True)
    return datetime.combine(date.fromisoformat(day) + timedelta(1), time(), now.tzinfo) if day else None


# -- tag filters -------------------------------------------------------------------------------------------
# Which tags an item must have, in one of five modes, or in groups:
#
#     any          one of the tags, or no tag at all
#     all          each of the tags, or no tag at all
#     any_strict   one of the tags
#     all_strict   each of the tags
#     exact        these tags and no other; without any: no tag
#
# Modes and groups are compatible with Hindsight's `tags_match` and `tag_groups`. A tag also matches those
# nested below it (`infra` matches `infra/db`), except in `exact`, which also ignores tags of provenance
# (`project:shop`) that are not in the filter.


DEEPEST = 20
"""Nesting of groups, far below SQLite's limit."""
MOST_LEAVES = 200
"""Tags in all groups together."""

Sql: TypeAlias = "tuple[str, list[str]]"
"""A condition over `items`, and its parameters."""


@dataclass(frozen=True, slots=True)
class Tagged:
    """A condition on tags, at least one unless the mode is `exact`. Usage for an unknown mode."""

    tags: tuple[str, ...]
    match: str = "any_strict"

    def __post_init__(self) -> None:
        if self.match not in MATCHES:
            raise Usage(f"unknown way to match tags: {self.match}", hint=f"one of {', '.join(MATCHES)}")

    def sql(self) -> Sql:
        """The SQL condition and its parameters."""
        names = [tag.lstrip("#").casefold() for tag in self.tags]
        row = "EXISTS (SELECT 1 FROM json_each(items.tags) AS t WHERE {})"
        if self.match == "exact":
            marks = ",".join("?" * len(names))
            other = row.format(f"t.value NOT IN ({marks}) AND instr(t.value, ':') = 0")
            return f"({' AND '.join([*[row.format('t.value = ?')] * len(names), f'NOT {other}'])})", names * 2
        one = "(t.value = ? OR substr(t.value, 1, length(?)) = ?)"
        if self.match.startswith("any"):
            condition = row.format(" OR ".join([one] * len(self.tags)))
        else:
            condition = " AND ".join([row.format(one)] * len(self.tags))
        if not self.match.endswith("_strict"):
            condition = f"items.tags = '[]' OR ({condition})"
        return f"({condition})", [value for name in names for value in (name, f"{name}/", f"{name}/")]


@dataclass(frozen=True, slots=True)
class TagGroup:
    """At least one group under `and` or `or`, or exactly one under `not`."""

    operator: Literal["and", "or", "not"]
    groups: tuple[Group, ...]

    def sql(self) -> Sql:
        """The SQL condition and its parameters."""
        parts = [group.sql() for group in self.groups]
        values = [value for _, part in parts for value in part]
        if self.operator == "not":
            return f"(NOT {parts[0][0]})", values
        return f"({f' {self.operator.upper()} '.join(text for text, _ in parts)})", values


Group: TypeAlias = Tagged | TagGroup


def read_groups(value: object) -> tuple[Group, ...]:
    """Parse a JSON list of groups, all of which must match.

    A group is `{"tags": […], "match": "any_strict"}`, `{"and": […]}`, `{"or": […]}` or `{"not": {…}}`. Groups
    without tags are dropped. Usage for any other value, and for groups nested too deep or with too many tags.
    """
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _group_error("the groups must be a list", value)
    groups = _groups(value, 1)
    if sum(map(_count_tag_lists, groups)) > MOST_LEAVES:
        raise Usage(f"the groups have more than {MOST_LEAVES} tags", hint="use fewer tags")
    return groups


def _groups(values: Sequence[object], depth: int) -> tuple[Group, ...]:
    if depth > DEEPEST:
        raise Usage(f"tag groups are nested more than {DEEPEST} deep", hint="nest fewer groups")
    return tuple(group for value in values for group in _group(value, depth))


def _group(value: object, depth: int) -> tuple[Group, ...]:
    """(the parsed group,), or () if it has no tags."""
    if isinstance(value, Mapping):
        if "tags" in value and set(value) <= {"tags", "match"}:
            tags = value["tags"]
            if isinstance(tags, Sequence) and not isinstance(tags, str) and all(map(_text, tags)):
                leaf = Tagged(tuple(tags), str(value.get("match", "any_strict")))
                return (leaf,) if tags or leaf.match == "exact" else ()
        elif set(value) in ({"and"}, {"or"}):
            (operator, inner), *_ = value.items()
            if isinstance(inner, Sequence) and not isinstance(inner, str):
                groups = _groups(inner, depth + 1)
                return (TagGroup(operator, groups),) if groups else ()
        elif set(value) == {"not"}:
            groups = _groups([value["not"]], depth + 1)
            return (TagGroup("not", groups),) if groups else ()
    raise _group_error("not a group of tags", value)


def _text(value: object) -> bool:
    return isinstance(value, str)


def _count_tag_lists(group: Group) -> int:
    return len(group.tags) if isinstance(group, Tagged) else sum(map(_count_tag_lists, group.groups))


def _group_error(what: str, value: object) -> Usage:
    return Usage(
        f"{what}: {str(value)[:80]}",
        hint='[{"tags": ["a", "b"], "match": "any_strict"}, {"not": {"tags": ["c"]}}], also "and" and "or"',
    )


# -- filters -----------------------------------------------------------------------------------------------


RECORDS = ("fact", "passage", "observation", "opinion", "page", "model", "core", "session")
LISTED_KINDS = ("fact", "passage")
"""The records listed by default: what was remembered and noted, without what is derived from it."""
TASKS = {"todo": "[ ] ", "done": "[x] "}
"""How an open and a finished item of a task list begin, in an item of their own or below another."""
KINDS = tuple(dict.fromkeys((*get_args(Kind), *RECORDS, *TASKS)))
"""Valid values of `kinds`: the kinds of facts and opinions, the names of records, and `TASKS`."""


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a search; an item must pass all that are set.

    `since` and `until` are inclusive ISO days of what an item is about, else when it was said; a date without
    day (a month) passes if it overlaps, an item without date does not. `tags` (case-insensitive) are matched
    by the mode `match`, and all `groups` must match, too. `kinds`: some of `KINDS`.
    `sources`: origins or names of clients. `path`: a prefix of the bank-relative path. `names`: folded names,
    one of which the item contains. `sessions`: ids of sessions, or what some begin with. `day`: an ISO day on
    which it was said or that it is about. `retired`: whether retired items are included; None: only if the
    query asks about the past. `asked_at` is no filter: relative dates in the query ("last week") count from
    it (aware; None: now).

    Usage for an unknown kind or mode, an invalid day, and `since` after `until`.
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
        for day in filter(None, (self.since, self.until, self.day)):
            try:
                date.fromisoformat(day[:10])
            except ValueError:
                raise Usage(f"{day!r} is not an ISO day", hint="2026-11-21") from None
        if self.since and self.until and self.since[:10] > self.until[:10]:
            raise Usage(f"since {self.since} is later than until {self.until}", hint="swap the two days")
        Tagged(self.tags, self.match)

    def __bool__(self) -> bool:
        """Whether any filter is set."""
        return self.sql()[0] != "1"

    def single(self) -> Iterator[tuple[str, Filters]]:
        """Yield (name, filters with only this one) for each that is set."""
        names = ("since", "until", "tags", "groups", "kinds", "sources", "path", "names", "sessions", "day")
        for name in names:
            if value := getattr(self, name):
                yield name, replace(Filters(match=self.match), **{name: value})
        if self.retired is False:
            yield "retired", Filters(retired=False)

    def sql(self) -> tuple[str, list[str]]:
        """An SQL condition on `items` and its parameters; `1` without filters."""
        parts: list[str] = []
        values: list[str] = []
        if self.since or self.until:
            # A fact that names a day to come is found by that, by each day up to the last that it names, and
            # by the day it was said.
            since, until = (self.since or "")[:10], (self.until or "9999")[:10]
            within = "({0} >= substr(?, 1, length({0})) AND {0} <= ? AND {0} != '')"
            parts.append(
                f"{within.format('items.date')} OR (items.named IS NOT NULL AND {within.format('items.day')})"
                " OR (items.last >= ? AND items.date <= ?)"
            )
            values += [since, until] * 3
        tagged = (Tagged(self.tags, self.match),) if self.tags or self.match == "exact" else ()
        for group in (*tagged, *self.groups):
            condition, tags = group.sql()
            parts.append(condition)
            values += tags
        if self.kinds:
            marks = ",".join("?" * len(self.kinds))
            tasks = [f"{at}{TASKS[kind]}%" for kind in self.kinds if kind in TASKS for at in ("", "%- ")]
            listed = " OR (items.text LIKE ? AND items.record != 'session')" * len(tasks)
            parts.append(f"(items.kind IN ({marks}) OR items.record IN ({marks}){listed})")
            values += [*self.kinds, *self.kinds, *tasks]
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
            same = "EXISTS (SELECT 1 FROM items AS same WHERE same.session = ?)"
            one = f"items.session = ? OR (substr(items.session, 1, length(?)) = ? AND NOT {same})"
            parts.append(" OR ".join([one] * len(self.sessions)))
            values += [each for each in self.sessions for _ in range(4)]
        if self.day:
            parts.append("? IN (items.date, items.named, items.day) OR ? BETWEEN items.date AND items.last")
            values += [self.day] * 2
        if self.retired is False:
            parts.append("items.retired = ''")
        return " AND ".join(f"({part})" for part in parts) or "1", values
