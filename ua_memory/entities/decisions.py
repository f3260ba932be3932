"""Decisions about names: each one some lines of `memory/entities.md`, one commit, and undone as such.

Facts keep their words. Of the file only the lines that a decision is about are written anew, so that what a
person wrote beside them stays; a record that cannot be changed so is left alone with Malformed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from ua_memory import markdown
from ua_memory.entities.alike import fold
from ua_memory.entities.drawn import give_back
from ua_memory.errors import Conflict, Malformed, Usage
from ua_memory.markdown.values import read_names, write_link, write_name
from ua_memory.records import Entity
from ua_memory.store import Draft, Result, Store

ENTITIES = "memory/entities.md"

_ROW = re.compile(r"(?P<lead>\s+[-*+]\s+(?P<key>alias|not):\s*)(?P<value>.*?)\s*")


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided: the records as they stand now, first the one it is about, and its commit."""

    entities: tuple[Entity, ...]
    result: Result
    path: str = ENTITIES


def alias(store: Store, name: str, other: str, *, door: str, by_person: bool = False) -> Decision:
    """`other` is another name of `name`. Usage where `other` has a record of its own, which is for `merge`;
    Conflict where somebody has said that they are two."""
    with _deciding(store, door, by_person) as sheet:
        if any(fold(e.name) == fold(other) for e in sheet.entities()):
            mend = f"ua-memory entities merge {_quoted(name)} {_quoted(other)}"
            raise Usage(f"{other} has a record of its own", where=ENTITIES, mend=mend)
        sheet.join(name, other)
    return sheet.decided()


def merge(store: Store, name: str, other: str, *, door: str, by_person: bool = False) -> Decision:
    """`other` and all its aliases are `name`. Only the file of names changes: facts keep their words, so that
    `split` and undo lead back. Conflict where somebody has said that they are two."""
    with _deciding(store, door, by_person) as sheet:
        sheet.join(name, other)
    return sheet.decided()


def split(store: Store, name: str, other: str, *, door: str, by_person: bool = False) -> Decision:
    """`other` is not `name`: the alias goes, and a `not:` on both sides keeps them apart for good. Facts of
    ours that were drawn meanwhile, and whose words say only `other`, name `other` again."""
    with _deciding(store, door, by_person) as sheet:
        _different(name, other)
        mine = sheet.record(name, other) or Entity(name)
        if fold(mine.name) == fold(other):  # it is the record's own name that goes
            raise Usage(
                f"{other} is what the record is called", where=ENTITIES,
                mend=f"ua-memory entities rename {_quoted(other)} NEW, then split",
            )  # fmt: skip
        aliases = tuple(n for n in mine.aliases if fold(n) != fold(other))
        theirs = next((e for e in sheet.entities() if fold(e.name) == fold(other)), None)
        sheet.put(mine, replace(mine, aliases=aliases, nots=_with(mine.nots, other)))
        theirs = theirs or Entity(other)
        sheet.put(theirs, replace(theirs, nots=_with(theirs.nots, mine.name)))
        sheet.say(f"{other} is not {mine.name}", mine.name, other)
        if aliases != mine.aliases:
            give_back(store, sheet.draft, (mine.name, *aliases), other)
    return sheet.decided()


def rename(store: Store, old: str, new: str, *, door: str, by_person: bool = False) -> Decision:
    """What was called `old` is called `new`; the old name stays as an alias. Usage where `new` is somebody
    else's name already."""
    with _deciding(store, door, by_person) as sheet:
        _different(old, new, exactly=True)
        was = sheet.record(old) or Entity(old)
        taken = [e for e in sheet.entities() if fold(new) in map(fold, (e.name, *e.aliases)) and e != was]
        if taken:
            mend = f"ua-memory entities merge {_quoted(new)} {_quoted(old)}"
            raise Usage(f"{new} is a name of {taken[0].name}", where=_where(taken[0]), mend=mend)
        aliases = tuple(n for n in was.aliases if fold(n) != fold(new))
        if fold(was.name) != fold(new):
            aliases = _with(aliases, was.name)
        sheet.put(was, replace(was, name=new, aliases=aliases))
        sheet.say(f"{was.name} is called {new}", new)
    return sheet.decided()


class _Sheet:
    """The file of names within one revision."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.about: tuple[str, ...] = ()

    def entities(self) -> tuple[Entity, ...]:
        return markdown.parse(self.draft.read(ENTITIES), ENTITIES).of(Entity)

    def record(self, name: str, also: str = "") -> Entity | None:
        """Who is called so; with `also`, of several the one who is called that too. Usage for several."""
        named = [e for e in self.entities() if fold(name) in map(fold, (e.name, *e.aliases))]
        own = [e for e in named if fold(e.name) == fold(name)]
        both = [e for e in named if also and fold(also) in map(fold, (e.name, *e.aliases))]
        found = both or own or named
        if len(found) > 1:
            who = " or ".join(e.name for e in found)
            raise Usage(f"{name} may be {who}", where=ENTITIES, mend="use the full name")
        return found[0] if found else None

    def join(self, name: str, other: str) -> None:
        """Make `other` a name of `name`, with all that it is called."""
        _different(name, other)
        mine, theirs = self.record(name), self.record(other)
        if mine is not None and mine == theirs:
            raise Usage(f"{name} and {other} are one already", where=_where(mine))
        mine, theirs = mine or Entity(name), theirs or Entity(other)
        self._refuse_two(mine, theirs)
        into = mine
        for each in (theirs.name, *theirs.aliases):
            into = replace(into, aliases=_with(into.aliases, each))
        for each in theirs.nots:
            into = replace(into, nots=_with(into.nots, each))
        self.put(theirs, None)
        self.put(mine, into)
        self.say(f"{theirs.name} is {into.name}", into.name)

    @staticmethod
    def _refuse_two(one: Entity, other: Entity) -> None:
        for a, b in ((one, other), (other, one)):
            names = [n for n in a.nots if fold(n) in map(fold, (b.name, *b.aliases))]
            if names:
                mend = f"take `not: {names[0]}` out of {ENTITIES} first, on both sides"
                raise Conflict(
                    f"somebody has said that {a.name} is not {names[0]}", where=_where(a), mend=mend
                )

    def put(self, old: Entity, new: Entity | None) -> None:
        """Write a record in place of one, or at the end where it was none; None takes it out."""
        known = self.entities()
        there = next((e for e in known if e == old), None)
        if (there is None and new is None) or there == new:
            return
        data = self.draft.read(ENTITIES)
        wanted = [new if e is there else e for e in known] + ([new] if there is None else [])
        for changed in _changed(data, there, new):
            found = markdown.parse(changed, ENTITIES).of(Entity)
            if [e for e in wanted if e is not None] == list(found):
                self.draft.write(ENTITIES, changed, removes=[there] if there else [])
                return
        raise Malformed("this record cannot be changed", where=_where(there or old), mend="ua-memory verify")

    def say(self, what: str, *about: str) -> None:
        self.draft.subject, self.about = f"entities: {what}", about

    def decided(self) -> Decision:
        found = markdown.parse(self.draft.read(ENTITIES), ENTITIES).of(Entity)
        kept = [e for name in self.about for e in found if fold(e.name) == fold(name)]
        return Decision(tuple(kept), self.draft.result)


@contextmanager
def _deciding(store: Store, door: str, by_person: bool) -> Iterator[_Sheet]:
    with store.revision("entities", door=door) as draft:
        draft.by_person = by_person
        yield _Sheet(draft)


def _changed(data: bytes, old: Entity | None, new: Entity | None) -> Iterator[bytes]:
    """The file with a record changed: its own lines as far as they may stand, else all of them anew."""
    if old is None:
        assert new is not None
        start = data if data.strip() else b"# Entities\n\n"
        yield markdown.append(start, markdown.show(new).split("\n"))
    elif new is None:
        yield markdown.replace_lines(data, old.place, [])
    else:
        lines = markdown.parse(data, ENTITIES).lines[old.place.line - 1 : old.place.end]
        yield markdown.replace_lines(data, old.place, _relined(list(lines), old, new))
        yield markdown.replace_lines(data, old.place, markdown.show(new).split("\n"))


def _relined(lines: list[str], old: Entity, new: Entity) -> list[str]:
    """A record's lines with only those changed whose names come or go."""
    if old.name != new.name:
        written = next((w for w in (write_link(old.name), old.name) if w in lines[0]), lines[0])
        lines[0] = lines[0].replace(written, write_link(new.name), 1)
    for key, had, wanted in (("alias", old.aliases, new.aliases), ("not", old.nots, new.nots)):
        gone, more = set(had) - set(wanted), [n for n in wanted if n not in had]
        rows = [n for n, line in enumerate(lines) if (m := _ROW.fullmatch(line)) and m["key"] == key]
        for row in reversed(rows if gone else []):
            _without(lines, row, gone)
        rows = [n for n, line in enumerate(lines) if (m := _ROW.fullmatch(line)) and m["key"] == key]
        if more and rows:
            lines[rows[-1]] = ", ".join([lines[rows[-1]].rstrip(), *map(write_name, more)])
        elif more:
            last = max((n for n, line in enumerate(lines) if _ROW.fullmatch(line)), default=0)
            lines.insert(1 if key == "alias" else last + 1, f"  - {key}: {', '.join(map(write_name, more))}")
    return lines


def _without(lines: list[str], row: int, gone: set[str]) -> None:
    match = _ROW.fullmatch(lines[row])
    assert match is not None
    try:
        names = read_names(match["value"])
    except ValueError:  # left out when it was read, and left alone now
        return
    kept = [name for name in names if name not in gone]
    if len(kept) < len(names):
        lines[row : row + 1] = [match["lead"] + ", ".join(map(write_name, kept))] if kept else []


def _with(names: Sequence[str], name: str) -> tuple[str, ...]:
    return (*names, *([name] if fold(name) not in map(fold, names) else []))


def _different(one: str, other: str, *, exactly: bool = False) -> None:
    for name in (one, other):
        if not fold(name) or not name.isprintable():
            raise Usage(f"{name!r} is no name")
    if one == other if exactly else fold(one) == fold(other):
        raise Usage(f"{one} and {other} are the same name")


def _where(entity: Entity) -> str:
    return f"{ENTITIES}:{entity.place.line}" if entity.place.line else ENTITIES


def _quoted(name: str) -> str:
    return f'"{name}"' if re.search(r"[^\w.-]", name) else name
