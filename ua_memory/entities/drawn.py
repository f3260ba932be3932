"""Facts that were drawn while two names were taken for one: whoever says that they are two gets them back."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from ua_memory import markdown
from ua_memory.entities.alike import fold
from ua_memory.markdown.values import write_link, write_links
from ua_memory.records import Entity, Fact
from ua_memory.statements import texts
from ua_memory.store import Draft, Store

_ROW = re.compile(r"(\s+[-*+]\s+entities:\s*)\S.*")


def give_back(
    store: Store, draft: Draft, names: Collection[str], other: str, called: str | None = None
) -> int:
    """In an open revision: where a fact of ours has one of `names` among its entities, and its words say only
    `other`, `other` stands there again, or what they are `called` that it names. How many these are; the
    draft notes it."""
    links = [write_link(name).encode("utf-8", "replace") for name in names]
    paths = [path for path, data in texts(store) if any(link in data for link in links)]
    count = 0
    for path in paths:
        for fact in markdown.parse(draft.read(path), path).of(Fact):
            if fact.id and fact.heading.client and _taken(fact, names, other):
                count += _renamed(draft, path, fact.id, names, called or other)
    if count:
        draft.notes.append(f"drawn meanwhile, and named {called or other} again: {count}")
    return count


def give_back_all(store: Store, draft: Draft, before: Sequence[Entity], after: Sequence[Entity]) -> None:
    """The same for all names that were one's in the records `before`, and are not in those `after`."""
    for mine in before:
        there = [e for e in after if fold(mine.name) in _names(e)]
        left = {fold(n) for e in there for n in (e.name, *e.aliases)}
        names = (mine.name, *(n for n in mine.aliases if fold(n) in left))
        for other in (n for n in mine.aliases if fold(n) not in left):
            whose = [e.name for e in after if fold(other) in _names(e)]
            give_back(store, draft, names, other, whose[0] if len(whose) == 1 else None)


def _names(entity: Entity) -> set[str]:
    return {fold(name) for name in (entity.name, *entity.aliases)}


def _taken(fact: Fact, names: Collection[str], other: str) -> bool:
    said = f" {fold(' '.join((fact.text, *(quote.text for quote in fact.quotes))))} "
    return (
        not set(names).isdisjoint(fact.entities)
        and f" {fold(other)} " in said
        and not any(f" {fold(name)} " in said for name in names)
    )


def _renamed(draft: Draft, path: str, block: str, names: Collection[str], other: str) -> bool:
    """One fact's line of entities written anew, if it reads so afterwards and nothing else does otherwise."""
    document = markdown.parse(draft.read(path), path)
    known = document.of(Fact)
    old = next(fact for fact in known if fact.id == block)
    wanted = tuple(dict.fromkeys(other if name in names else name for name in old.entities))
    lines = list(document.lines[old.place.line - 1 : old.place.end])
    rows = [n for n, line in enumerate(lines) if _ROW.fullmatch(line)]
    if len(rows) != 1:
        return False
    lines[rows[0]] = _ROW.sub(lambda match: match[1] + write_links(wanted), lines[rows[0]])
    data = markdown.replace_lines(draft.read(path), old.place, lines)
    expected = [replace(fact, entities=wanted) if fact is old else fact for fact in known]
    if list(markdown.parse(data, path).of(Fact)) != expected:
        return False
    draft.write(path, data, removes=[old])
    return True
