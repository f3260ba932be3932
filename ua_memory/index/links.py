"""Names and the items they stand in: who speaks, who is spoken of. Drawn from the files, without a model.

A name is declared, as a speaker, in an `entities:` line or by a wikilink, or drawn from the text: a proper
name, handle, path, identifier, host or address. Looked up by the query's own words, so that a lookup costs by
the query and not by the bank. What else somebody is called comes from `memory/entities.md`.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ua_memory.index.items import Item
from ua_memory.index.tables import chunks, marks
from ua_memory.index.terms import STOP, words
from ua_memory.names import ORDINARY, drawn, entities
from ua_memory.records import Entity, Record

LONGEST = 6
"""Words of a name that are tried: `https://fly.io/docs/apps` has five. Longer ones are not kept."""

OPENING, DRAWN, DECLARED = 0, 1, 2
"""How a name is known to be one: it opens a sentence, as any word may; it stands within; it is said to be."""

MANY = 1000
"""Items of a name that are counted; the rest makes no difference."""

_LINK = re.compile(r"\[\[([^\]|#^]+)")


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """A name as it is compared: its words, case and signs aside."""
    return " ".join(words(name))


def names_of(item: Item) -> dict[str, int]:
    """{name: how it is known to be one} of the names that stand in an item, folded."""
    found: dict[str, int] = {}
    for name, sure in drawn(item.text).items():
        name = folded(name)
        if name not in STOP and name not in ORDINARY and not name.isdigit():
            found[name] = max(DRAWN if sure else OPENING, found.get(name, OPENING))
    for name in (item.speaker, *item.entities, *_LINK.findall(item.text)):
        found[folded(name)] = DECLARED
    return {name: how for name, how in found.items() if name and name.count(" ") < LONGEST}


def holds(item: Item, names: Iterable[str]) -> bool:
    """Whether one of these folded names stands in an item."""
    text = f" {folded(item.speaker)} {' '.join(words(item.text))} "
    return any(f" {name} " in text for name in names) or any(folded(name) in names for name in item.entities)


def add(db: sqlite3.Connection, first: int, items: Sequence[Item]) -> None:
    """Write down the names of items numbered from `first` on; a trigger drops them with their items."""
    rows = [(name, how, first + n) for n, item in enumerate(items) for name, how in names_of(item).items()]
    db.executemany("INSERT INTO names VALUES (?, ?, ?)", sorted(rows))


def settle(db: sqlite3.Connection, records: Iterable[Record], masked: Callable[[str], str]) -> None:
    """Make the names that these records settle the settled ones, in place of those there were."""
    db.execute("DELETE FROM settled")
    db.executemany("INSERT OR IGNORE INTO settled VALUES (?, ?, ?)", sorted(settling(records, masked)))


def settling(records: Iterable[Record], masked: Callable[[str], str]) -> set[tuple[str, int, str]]:
    """(folded name, number of the entity, role) of the names that these records settle."""
    rows = set()
    settled = (record for record in records if isinstance(record, Entity))
    for number, entity in enumerate(settled):
        for role, said in (("name", (entity.name, *entity.aliases)), ("not", entity.nots)):
            rows |= {(found, number, role) for name in said if (found := folded(masked(name)))}
    return rows


@dataclass(frozen=True, slots=True)
class Named:
    """The bank's names that stand in a query: {name: how many items have it, up to `MANY`}, longest first.

    `declared` are those that somebody gave as names, `every` also those drawn from texts. Who is said by one
    settled name is there by all of them; `also` has {name said: the others}.
    """

    declared: Mapping[str, int]
    every: Mapping[str, int]
    also: Mapping[str, tuple[str, ...]]


def named(db: sqlite3.Connection, query: str) -> Named:
    """Whom a query names. A name that only ever opens a sentence counts where the query writes it as one."""
    said = words(query)
    tried = {
        " ".join(said[start : start + size])
        for size in range(1, LONGEST + 1)
        for start in range(len(said) - size + 1)
    }
    also, others = _settled(db, tried, f" {' '.join(said)} ")
    settled = {*also, *(name for names in also.values() for name in names)}
    written = {folded(name) for name in entities(query)} if said else set()
    declared, every = {}, {}
    for name, count, how in _known(db, sorted((tried | settled) - others)):
        if how == DECLARED or name in settled:
            declared[name] = count
        if how >= DRAWN or name in settled or name in written:
            every[name] = count
    return Named(_longest(declared), _longest(every), also)


def _longest(names: Mapping[str, int]) -> Mapping[str, int]:
    return dict(sorted(names.items(), key=lambda pair: (-len(pair[0]), pair[0])))


def _known(db: sqlite3.Connection, names: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """(name, how many items have it, how it is known to be one at best) of those that there are."""
    for part in chunks(list(names), 250):
        yield from db.execute(
            "SELECT * FROM (SELECT column1,"
            f" (SELECT count(*) FROM (SELECT 1 FROM names WHERE name = column1 LIMIT {MANY})),"
            " (SELECT how FROM names WHERE name = column1 ORDER BY how DESC LIMIT 1) AS how"
            f" FROM (VALUES {','.join(['(?)'] * len(part))})) WHERE how IS NOT NULL",
            part,
        )


def _settled(
    db: sqlite3.Connection, tried: set[str], said: str
) -> tuple[dict[str, tuple[str, ...]], set[str]]:
    """({settled name that is said: what else that one is called}, names that are said of another).

    A name that is said only within one that it is settled not to be ("Alice" in "Alice Cooper") is not meant.
    """
    groups: dict[int, dict[str, set[str]]] = {}
    for part in chunks(sorted(tried)):
        rows = db.execute(
            "SELECT entity, role, name FROM settled WHERE entity IN"
            f" (SELECT entity FROM settled WHERE name IN ({marks(part)}) AND role = 'name')", part
        )  # fmt: skip
        for entity, role, name in rows:
            groups.setdefault(entity, {"name": set(), "not": set()})[role].add(name)
    also: dict[str, set[str]] = {}
    others: set[str] = set()
    for group in groups.values():
        rest = said
        for name in sorted(group["not"], key=len, reverse=True):
            rest = rest.replace(f" {name} ", "  ")
        for name in sorted(group["name"] & tried):
            if f" {name} " in rest:
                also.setdefault(name, set()).update(group["name"] - group["not"] - {name})
            else:
                others.add(name)
    return {name: tuple(sorted(names)) for name, names in also.items()}, others - also.keys()
