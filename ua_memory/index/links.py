"""Names and the items they stand in: who speaks, who is spoken of. Drawn from the files, without a model.

A name is a speaker, an entity of an `entities:` line, or a wikilink. Looked up by the query's own words, so
that a lookup costs by the query and not by the bank.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from ua_memory.index.items import Item
from ua_memory.index.tables import chunks, marks
from ua_memory.index.terms import words

LONGEST = 4
"""Words of a name that are tried."""

_LINK = re.compile(r"\[\[([^\]|#^]+)")


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """A name as it is compared: its words, case and signs aside."""
    return " ".join(words(name))


def names_of(item: Item) -> Iterator[str]:
    """The names that stand in an item, folded, each as often as it does."""
    for name in (item.speaker, *item.entities, *_LINK.findall(item.text)):
        if found := folded(name):
            yield found


def add(db: sqlite3.Connection, first: int, items: Sequence[Item]) -> None:
    """Write down the names of items numbered from `first` on; a trigger drops them with their items."""
    rows = {(name, first + number) for number, item in enumerate(items) for name in names_of(item)}
    db.executemany("INSERT OR IGNORE INTO names VALUES (?, ?)", sorted(rows))


def named(db: sqlite3.Connection, query: str) -> Mapping[str, int]:
    """{name: how many items have it} of the bank's names that stand in a query, longest first."""
    said = words(query)
    tried = {
        " ".join(said[start : start + size])
        for size in range(1, LONGEST + 1)
        for start in range(len(said) - size + 1)
    }
    found: dict[str, int] = {}
    for part in chunks(sorted(tried)):
        found.update(
            db.execute(f"SELECT name, count(*) FROM names WHERE name IN ({marks(part)}) GROUP BY name", part)
        )
    return dict(sorted(found.items(), key=lambda pair: (-len(pair[0]), pair[0])))
