"""The bank's names counted: who stands in how many items, from when to when, and beside whom.

Names are folded here as the index keeps them (`links.folded`); `written` finds how they are spelled.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ua_memory.index.items import Item
from ua_memory.index.links import OPENING, folded
from ua_memory.index.tables import COLUMNS, chunks, from_row, marks
from ua_memory.index.words import Words
from ua_memory.names import drawn

SAMPLE = 24
"""Items in which it is looked up how a name is written, and how a word is."""

LABEL = 0.6
"""What stands before a colon in so large a part of its places is a label (`Status:`) and nobody's name."""

_LINK = re.compile(r"\[\[([^\]|#^]+)")
_DAY = "COALESCE(NULLIF(day, ''), substr(\"when\", 1, 10), '')"


@dataclass(frozen=True, slots=True)
class Count:
    """A folded name: in how many items it stands, how surely it is one (`links`), first and last ISO day."""

    name: str
    items: int
    how: int
    first: str
    last: str


def census(words: Words) -> list[Count]:
    """All names that stand somewhere as more than the first word of a sentence, the most frequent first."""
    rows = words.db.execute(
        f"SELECT name, count(*), max(how), COALESCE(min(NULLIF({_DAY}, '')), ''), max({_DAY})"
        f" FROM names JOIN items ON items.rowid = names.item GROUP BY name HAVING max(how) > {OPENING}"
        " ORDER BY count(*) DESC, name"
    )
    return [Count(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class Written:
    """How a name is written most often, and whether it is rather an ordinary word, a label, or only ever a
    part of longer names."""

    spelling: str
    doubtful: bool


def written(words: Words, name: str) -> Written:
    """A folded name as the bank writes it, by some of the items it stands in."""
    rows = words.db.execute(
        "SELECT text, entities, speaker, path || heading FROM names JOIN items ON items.rowid = names.item"
        f" WHERE name = ? LIMIT {SAMPLE}", (name,)
    ).fetchall()  # fmt: skip
    spellings: Counter[str] = Counter()
    declared, within = False, 0
    for text, entities, speaker, _ in rows:
        said = [*_LINK.findall(text), *json.loads(entities)]
        declared |= any(folded(one) == name for one in said)
        every = {*drawn(text), *said, speaker}
        spellings.update(one for one in every if folded(one) == name)
        within += any(f" {name} " in f" {folded(one)} " for one in every if folded(one) != name)
    best = max(spellings, key=lambda one: (spellings[one], one)) if spellings else name
    doubtful = within == len(rows) or _is_label(best, rows) or _is_word(words, best)
    return Written(best, doubtful and not declared)


def _is_label(name: str, rows: Sequence[Sequence[str]]) -> bool:
    """Whether a name mostly stands before a colon or in a table's cell, without speaking in turns there."""
    before = re.compile(rf"{re.escape(name)}\W{{0,3}}[:|]|[|]\W*{re.escape(name)}")
    places = [where for text, _, _, where in rows if before.search(text)]
    return len(places) >= LABEL * len(rows) and len(places) < 2 * len(set(places))


def _is_word(words: Words, name: str) -> bool:
    """Whether a single word stands at least as often in small letters as it is written like a name."""
    if not name.isalpha() or name == name.lower():
        return False
    rows = words.db.execute(
        "SELECT items.text FROM words JOIN items ON items.rowid = words.rowid WHERE words.text MATCH ?"
        f" LIMIT {2 * SAMPLE}", (f'"{name}"',)
    )  # fmt: skip
    alone = r"(?<![\w/.@-])%s(?![\w/@-])"
    small, large = re.compile(alone % name.lower()), re.compile(alone % name)
    found = [(bool(small.search(text)), bool(large.search(text))) for (text,) in rows]
    return sum(one for one, _ in found) >= sum(other for _, other in found)


def items(words: Words, names: Iterable[str]) -> list[Item]:
    """The items in which one of these folded names stands, in the order of their days, each once."""
    found: dict[int, Item] = {}
    for part in chunks(sorted(set(names))):
        there = f"SELECT item FROM names WHERE name IN ({marks(part)})"
        rows = words.db.execute(f"SELECT {COLUMNS} FROM items WHERE rowid IN ({there})", part)
        found |= {row[0]: from_row(row) for row in rows}
    return sorted(found.values(), key=lambda item: (item.day or item.date, item.path, item.line))


def beside(words: Words, names: Iterable[str]) -> Mapping[str, int]:
    """{folded name: in how many of the items of these names it stands too}, without those that only ever
    open a sentence there."""
    own = set(names)
    found = defaultdict[str, set[int]](set)
    for part in chunks(sorted(own)):
        sql = (
            f"SELECT name, item FROM names WHERE how > {OPENING} AND item IN"
            f" (SELECT item FROM names WHERE name IN ({marks(part)}))"
        )
        for name, item in words.db.execute(sql, part):
            found[name].add(item)
    return {name: len(where) for name, where in found.items() if name not in own}
