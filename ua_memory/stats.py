"""Counts over a bank: what it holds, by kind, origin, client and month, and what was done to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ua_memory import markdown, statements
from ua_memory.markdown import FileKind
from ua_memory.records import Fact
from ua_memory.store import Store


@dataclass(frozen=True, slots=True)
class Stats:
    """`months` counts facts by their log's month, `ops` revisions by what they did. Days are ISO days."""

    files: int
    bytes: int
    facts: int
    first: str
    last: str
    revisions: int
    kinds: Mapping[str, int]
    origins: Mapping[str, int]
    clients: Mapping[str, int]
    months: Mapping[str, int]
    ops: Mapping[str, int]


def count(store: Store) -> Stats:
    """Read every file once and count. Retired facts count, for they are still there."""
    kinds, origins, clients, months = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    days: list[str] = []
    files = size = 0
    for path, data in statements.texts(store):
        files, size = files + 1, size + len(data)
        if markdown.kind_of(path) is not FileKind.LOG and not path.startswith("memory/documents/"):
            continue
        day = markdown.day_of(path)
        found = markdown.parse(data, path).of(Fact)
        days += [day] if day and found else []
        for fact in found:
            kinds[fact.kind] += 1
            origins[fact.said_by] += 1
            clients[fact.heading.client or "by hand"] += 1
            months[day[:7] if day else "undated"] += 1
    done = store.history.log()
    ops = Counter(one.trailer("Memory-Op") or "other" for one in done)
    return Stats(
        files=files,
        bytes=size,
        facts=sum(kinds.values()),
        first=min(days, default=""),
        last=max(days, default=""),
        revisions=len(done),
        kinds=dict(kinds.most_common()),
        origins=dict(origins.most_common()),
        clients=dict(clients.most_common()),
        months=dict(sorted(months.items())),
        ops=dict(ops.most_common()),
    )
