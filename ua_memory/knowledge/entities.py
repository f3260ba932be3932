"""Entities: aliases, merges and splits that a person decided, in `memory/entities.md`."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Literal

from ua_memory.errors import Conflict, Malformed, NotFound, Usage
from ua_memory.knowledge.statements import texts
from ua_memory.markdown import document as markdown_document
from ua_memory.markdown import lines as markdown_lines
from ua_memory.markdown import printer
from ua_memory.markdown.fields import read_names, write_link, write_links, write_name
from ua_memory.records import Entity, Fact
from ua_memory.store.draft import Draft, Result
from ua_memory.store.store import Store
from ua_memory.text.patterns import data_text

# -- alike -------------------------------------------------------------------------------------------------
# Whether two names may be one: pure comparison, which merges nothing.
#
# What only writing makes different (case, signs, accents, a genitive, two letters that changed places) is
# one name. A letter more, less or another may be somebody else (Daniel and Daniela, Martin and Marvin), and
# a short name may be anybody's: those are `maybe`, for the context or a person to decide. Numbers are never
# rounded: `Room 101` is not `Room 102`, and `Python 3` not `Python`.


LONG, LONGER = 5, 9
"""Letters from which one slip of the pen is thought of, and from which two."""

_GENITIVE = re.compile(r"(?<=\w)['’](?:s\b)?(?=\W*$)")
_INITIAL = re.compile(r"\b(\w)\.(?=\s|$)")


@dataclass(frozen=True, slots=True)
class NameSimilarity:
    """How near two names are: `sure` where only the writing differs, `maybe` where it may be another."""

    how: Literal["sure", "maybe"]
    reason: str


@lru_cache(maxsize=8192)
def fold(name: str) -> str:
    """A name as it is compared: case, signs and a genitive aside."""
    text = _GENITIVE.sub("", unicodedata.normalize("NFKC", name)).casefold()
    return " ".join(re.findall(r"\w+", text))


def likeness(one: str, other: str) -> NameSimilarity | None:
    """How near two names are to being one; None if they are not. It does not matter which is given first."""
    a, b = fold(one), fold(other)
    if not a or not b or re.findall(r"\d+", a) != re.findall(r"\d+", b):
        return None
    if a == b:
        return NameSimilarity("sure", "differ only in case and punctuation")
    a, b = _without_accents(a), _without_accents(b)
    if a == b:
        return NameSimilarity("sure", "differ only in accents")
    if min(len(a), len(b)) >= LONG and a.replace(" ", "") == b.replace(" ", ""):
        return NameSimilarity("sure", "the same letters, spaced differently")
    mine, theirs = a.split(), b.split()
    if len(mine) == len(theirs):
        return _compare_words(mine, theirs, _initials(one) | _initials(other))
    return _compare_parts(*sorted((mine, theirs), key=len))


def _without_accents(text: str) -> str:
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def _initials(name: str) -> frozenset[str]:
    return frozenset(_without_accents(letter.casefold()) for letter in _INITIAL.findall(name))


def _compare_words(mine: list[str], theirs: list[str], dotted: frozenset[str]) -> NameSimilarity | None:
    different = [(a, b) for a, b in zip(mine, theirs, strict=True) if a != b]
    if (
        len(different) == 1
        and different[0][0] == mine[0]
        and (found := _nickname_similarity(mine[0], theirs[0]))
    ):
        return found
    if len(different) > 1:
        turned = sorted(mine) == sorted(theirs) and len(mine) == 2
        return NameSimilarity("maybe", "the same words in another order") if turned else None
    short, long = sorted(different[0], key=len)
    if len(short) == 1 and len(mine) > 1:
        if not (short in dotted and len(long) > 1 and long.startswith(short)):
            return None
        return NameSimilarity("maybe", f"{short.upper()}. may stand for {long.capitalize()}")
    return _spelling_similarity(short, long)


@cache
def _nicknames() -> frozenset[tuple[str, str]]:
    """Given names, folded and without accents: (short form, a name that it may stand for)."""
    rows = [line.split() for line in data_text("short_names.txt").splitlines() if not line.startswith("#")]
    return frozenset((short, long) for short, *names in rows for long in names)


def _nickname_similarity(one: str, other: str) -> NameSimilarity | None:
    for short, long in ((one, other), (other, one)):
        if (short, long) in _nicknames():
            return NameSimilarity("maybe", f"{short.capitalize()} is a short form of {long.capitalize()}")
    return None


def _spelling_similarity(short: str, long: str) -> NameSimilarity | None:
    """What may have gone wrong in writing one of two words, which are not equal."""
    if long in (f"{short}s", f"{short}es") and len(short) > 2:
        return NameSimilarity("maybe", "one may be the plural of the other")
    if len(short) < LONG or short[0] != long[0] or not (short + long).isalpha():
        return None
    at = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(short) == len(long):
        if short[at + 1 :] == long[at + 1 :]:
            return NameSimilarity("maybe", "one letter differs")
        if short[at : at + 2] == long[at : at + 2][::-1] and short[at + 2 :] == long[at + 2 :]:
            return NameSimilarity("sure", "two letters are swapped")
    if len(long) == len(short) + 1 and short[at:] == long[at + 1 :]:
        if long[at] == long[at - 1]:
            return NameSimilarity("sure", "a letter is doubled")
        return NameSimilarity("maybe", "one letter is added")
    two = len(short) >= LONGER and _edit_distance(short, long) <= 2
    return NameSimilarity("maybe", "two letters differ") if two else None


def _edit_distance(a: str, b: str) -> int:
    """Letters to change, add or take out to make one word of the other (Levenshtein 1965)."""
    row = list(range(len(b) + 1))
    for n, x in enumerate(a, 1):
        above, row[0] = row[0], n
        for m, y in enumerate(b, 1):
            above, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, above + (x != y))
    return row[-1]


def _compare_parts(short: list[str], long: list[str]) -> NameSimilarity | None:
    """A name that begins or ends another one, as a first or a last name does."""
    if len(short[0]) < 2 or (len(short) == 1 and len(short[0]) < 3):
        return None
    if long[: len(short)] == short or long[-len(short) :] == short:
        return NameSimilarity("maybe", "the shorter is part of the longer")
    return _nickname_similarity(short[0], long[0]) if len(short) == 1 else None


# -- drawn -------------------------------------------------------------------------------------------------
# Facts that were drawn while two names were taken for one: whoever says that they are two gets them back.


_ENTITIES_LINE = re.compile(r"(\s+[-*+]\s+entities:\s*)\S.*")


def restore_names(
    store: Store, draft: Draft, names: Collection[str], other: str, called: str | None = None
) -> int:
    """In an open revision: where a fact of ours has one of `names` among its entities, and its words say only
    `other`, `other` stands there again, or what they are `called` that it names. How many these are; the
    draft notes it."""
    links = [write_link(name).encode("utf-8", "replace") for name in names]
    paths = [path for path, data in texts(store) if any(link in data for link in links)]
    count = 0
    for path in paths:
        for fact in markdown_document.parse(draft.read(path), path).of(Fact):
            if fact.id and fact.heading.client and _needs_restore(fact, names, other):
                count += _rewrite_entities(draft, path, fact.id, names, called or other)
    if count:
        draft.notes.append(f"extracted meanwhile under the name {called or other}: {count}")
    return count


def restore_all_names(store: Store, draft: Draft, before: Sequence[Entity], after: Sequence[Entity]) -> None:
    """The same for all names that were one's in the records `before`, and are not in those `after`."""
    for mine in before:
        there = [e for e in after if fold(mine.name) in _names(e)]
        left = {fold(n) for e in there for n in (e.name, *e.aliases)}
        names = (mine.name, *(n for n in mine.aliases if fold(n) in left))
        for other in (n for n in mine.aliases if fold(n) not in left):
            whose = [e.name for e in after if fold(other) in _names(e)]
            restore_names(store, draft, names, other, whose[0] if len(whose) == 1 else None)


def _names(entity: Entity) -> set[str]:
    return {fold(name) for name in (entity.name, *entity.aliases)}


def _needs_restore(fact: Fact, names: Collection[str], other: str) -> bool:
    said = f" {fold(' '.join((fact.text, *(quote.text for quote in fact.quotes))))} "
    return (
        not set(names).isdisjoint(fact.entities)
        and f" {fold(other)} " in said
        and not any(f" {fold(name)} " in said for name in names)
    )


def _rewrite_entities(draft: Draft, path: str, block: str, names: Collection[str], other: str) -> bool:
    """One fact's line of entities written anew, if it reads so afterwards and nothing else does otherwise."""
    document = markdown_document.parse(draft.read(path), path)
    known = document.of(Fact)
    old = next(fact for fact in known if fact.id == block)
    wanted = tuple(dict.fromkeys(other if name in names else name for name in old.entities))
    lines = list(document.lines[old.place.line - 1 : old.place.end])
    rows = [n for n, line in enumerate(lines) if _ENTITIES_LINE.fullmatch(line)]
    if len(rows) != 1:
        return False
    lines[rows[0]] = _ENTITIES_LINE.sub(lambda match: match[1] + write_links(wanted), lines[rows[0]])
    data = markdown_lines.replace_lines(draft.read(path), old.place, lines)
    expected = [replace(fact, entities=wanted) if fact is old else fact for fact in known]
    if list(markdown_document.parse(data, path).of(Fact)) != expected:
        return False
    draft.write(path, data, removes=[old])
    return True


# -- decisions ---------------------------------------------------------------------------------------------
# Decisions about names: each one some lines of `memory/entities.md`, one commit, and undone as such.
#
# Facts keep their words. Of the file only the lines that a decision is about are written anew, so that what
# a person wrote beside them stays; a record that cannot be changed so is left alone with Malformed.


ENTITIES = "memory/entities.md"

_DECISION_ROW = re.compile(r"(?P<lead>\s+[-*+]\s+(?P<key>alias|not):\s*)(?P<value>.*?)\s*")


@dataclass(frozen=True, slots=True)
class EntityDecision:
    """What was decided: the records as they stand now, first the one it is about, and its commit."""

    entities: tuple[Entity, ...]
    result: Result
    path: str = ENTITIES


def alias(store: Store, name: str, other: str, *, door: str, by_person: bool = False) -> EntityDecision:
    """`other` is another name of `name`. Usage where `other` has a record of its own, which is for `merge`;
    Conflict where somebody has said that they are two."""
    with _decision_revision(store, door, by_person) as sheet:
        if any(fold(e.name) == fold(other) for e in sheet.entities()):
            hint = f"ua-memory entities merge {_quote(name)} {_quote(other)}"
            raise Usage(f"{other} has its own record", where=ENTITIES, hint=hint)
        sheet.join(name, other)
    return sheet.decided()


def merge(store: Store, name: str, other: str, *, door: str, by_person: bool = False) -> EntityDecision:
    """`other` and all its aliases are `name`. Only the file of names changes: facts keep their words, so that
    `split` and undo lead back. Conflict where somebody has said that they are two."""
    with _decision_revision(store, door, by_person) as sheet:
        sheet.join(name, other)
    return sheet.decided()


def split(store: Store, name: str, other: str, *, door: str, by_person: bool = False) -> EntityDecision:
    """`other` is not `name`: the alias goes, and a `not:` on both sides keeps them apart for good. Facts of
    ours that were drawn meanwhile, and whose words say only `other`, name `other` again."""
    with _decision_revision(store, door, by_person) as sheet:
        _require_different(name, other)
        mine = sheet.record(name, other) or Entity(name)
        if fold(mine.name) == fold(other):  # it is the record's own name that goes
            raise Usage(
                f"{other} is the name of the record", where=ENTITIES,
                hint=f"ua-memory entities rename {_quote(other)} NEW, then split",
            )  # fmt: skip
        aliases = tuple(n for n in mine.aliases if fold(n) != fold(other))
        theirs = next((e for e in sheet.entities() if fold(e.name) == fold(other)), None)
        sheet.put(mine, replace(mine, aliases=aliases, nots=_add_name(mine.nots, other)))
        theirs = theirs or Entity(other)
        sheet.put(theirs, replace(theirs, nots=_add_name(theirs.nots, mine.name)))
        sheet.say(f"{other} is not {mine.name}", mine.name, other)
        if aliases != mine.aliases:
            restore_names(store, sheet.draft, (mine.name, *aliases), other)
    return sheet.decided()


def rename(store: Store, old: str, new: str, *, door: str, by_person: bool = False) -> EntityDecision:
    """What was called `old` is called `new`; the old name stays as an alias. Usage where `new` is somebody
    else's name already."""
    with _decision_revision(store, door, by_person) as sheet:
        _require_different(old, new, exactly=True)
        was = sheet.record(old) or Entity(old)
        taken = [e for e in sheet.entities() if fold(new) in map(fold, (e.name, *e.aliases)) and e != was]
        if taken:
            hint = f"ua-memory entities merge {_quote(new)} {_quote(old)}"
            raise Usage(f"{new} is a name of {taken[0].name}", where=_citation(taken[0]), hint=hint)
        aliases = tuple(n for n in was.aliases if fold(n) != fold(new))
        if fold(was.name) != fold(new):
            aliases = _add_name(aliases, was.name)
        sheet.put(was, replace(was, name=new, aliases=aliases))
        sheet.say(f"{was.name} is called {new}", new)
    return sheet.decided()


class _EntitiesFile:
    """The file of names within one revision."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.about: tuple[str, ...] = ()

    def entities(self) -> tuple[Entity, ...]:
        return markdown_document.parse(self.draft.read(ENTITIES), ENTITIES).of(Entity)

    def record(self, name: str, also: str = "") -> Entity | None:
        """Who is called so; with `also`, of several the one who is called that too. Usage for several."""
        named = [e for e in self.entities() if fold(name) in map(fold, (e.name, *e.aliases))]
        own = [e for e in named if fold(e.name) == fold(name)]
        both = [e for e in named if also and fold(also) in map(fold, (e.name, *e.aliases))]
        found = both or own or named
        if len(found) > 1:
            who = " or ".join(e.name for e in found)
            raise Usage(f"{name} may be {who}", where=ENTITIES, hint="use the full name")
        return found[0] if found else None

    def join(self, name: str, other: str) -> None:
        """Make `other` a name of `name`, with all that it is called."""
        _require_different(name, other)
        mine, theirs = self.record(name), self.record(other)
        if mine is not None and mine == theirs:
            raise Usage(f"{name} and {other} are already the same", where=_citation(mine))
        mine, theirs = mine or Entity(name), theirs or Entity(other)
        self._refuse_two(mine, theirs)
        into = mine
        for each in (theirs.name, *theirs.aliases):
            into = replace(into, aliases=_add_name(into.aliases, each))
        for each in theirs.nots:
            into = replace(into, nots=_add_name(into.nots, each))
        self.put(theirs, None)
        self.put(mine, into)
        self.say(f"{theirs.name} is {into.name}", into.name)

    @staticmethod
    def _refuse_two(one: Entity, other: Entity) -> None:
        for a, b in ((one, other), (other, one)):
            names = [n for n in a.nots if fold(n) in map(fold, (b.name, *b.aliases))]
            if names:
                hint = f"remove `not: {names[0]}` from {ENTITIES} first, on both sides"
                raise Conflict(f"{a.name} is marked as not {names[0]}", where=_citation(a), hint=hint)

    def put(self, old: Entity, new: Entity | None) -> None:
        """Write a record in place of one, or at the end where it was none; None takes it out."""
        known = self.entities()
        there = next((e for e in known if e == old), None)
        if (there is None and new is None) or there == new:
            return
        data = self.draft.read(ENTITIES)
        wanted = [new if e is there else e for e in known] + ([new] if there is None else [])
        for changed in _change_record(data, there, new):
            found = markdown_document.parse(changed, ENTITIES).of(Entity)
            if [e for e in wanted if e is not None] == list(found):
                self.draft.write(ENTITIES, changed, removes=[there] if there else [])
                return
        raise Malformed(
            "this record cannot be changed", where=_citation(there or old), hint="ua-memory verify"
        )

    def say(self, what: str, *about: str) -> None:
        self.draft.subject, self.about = f"entities: {what}", about

    def decided(self) -> EntityDecision:
        found = markdown_document.parse(self.draft.read(ENTITIES), ENTITIES).of(Entity)
        kept = [e for name in self.about for e in found if fold(e.name) == fold(name)]
        return EntityDecision(tuple(kept), self.draft.result)


@contextmanager
def _decision_revision(store: Store, door: str, by_person: bool) -> Iterator[_EntitiesFile]:
    with store.revision("entities", door=door, by_person=by_person) as draft:
        yield _EntitiesFile(draft)


def _change_record(data: bytes, old: Entity | None, new: Entity | None) -> Iterator[bytes]:
    """The file with a record changed: its own lines as far as they may stand, else all of them anew."""
    if old is None:
        assert new is not None
        start = data if data.strip() else b"# Entities\n\n"
        yield markdown_document.append(start, printer.show(new).split("\n"))
    elif new is None:
        yield markdown_lines.replace_lines(data, old.place, [])
    else:
        lines = markdown_document.parse(data, ENTITIES).lines[old.place.line - 1 : old.place.end]
        yield markdown_lines.replace_lines(data, old.place, _change_lines(list(lines), old, new))
        yield markdown_lines.replace_lines(data, old.place, printer.show(new).split("\n"))


def _change_lines(lines: list[str], old: Entity, new: Entity) -> list[str]:
    """A record's lines with only those changed whose names come or go."""
    if old.name != new.name:
        written = next((w for w in (write_link(old.name), old.name) if w in lines[0]), lines[0])
        lines[0] = lines[0].replace(written, write_link(new.name), 1)
    for key, had, wanted in (("alias", old.aliases, new.aliases), ("not", old.nots, new.nots)):
        gone, more = set(had) - set(wanted), [n for n in wanted if n not in had]
        rows = [n for n, line in enumerate(lines) if (m := _DECISION_ROW.fullmatch(line)) and m["key"] == key]
        for row in reversed(rows if gone else []):
            _remove_names(lines, row, gone)
        rows = [n for n, line in enumerate(lines) if (m := _DECISION_ROW.fullmatch(line)) and m["key"] == key]
        if more and rows:
            lines[rows[-1]] = ", ".join([lines[rows[-1]].rstrip(), *map(write_name, more)])
        elif more:
            last = max((n for n, line in enumerate(lines) if _DECISION_ROW.fullmatch(line)), default=0)
            lines.insert(1 if key == "alias" else last + 1, f"  - {key}: {', '.join(map(write_name, more))}")
    return lines


def _remove_names(lines: list[str], row: int, gone: set[str]) -> None:
    match = _DECISION_ROW.fullmatch(lines[row])
    assert match is not None
    try:
        names = read_names(match["value"])
    except ValueError:  # left out when it was read, and left alone now
        return
    kept = [name for name in names if name not in gone]
    if len(kept) < len(names):
        lines[row : row + 1] = [match["lead"] + ", ".join(map(write_name, kept))] if kept else []


def _add_name(names: Sequence[str], name: str) -> tuple[str, ...]:
    return (*names, *([name] if fold(name) not in map(fold, names) else []))


def _require_different(one: str, other: str, *, exactly: bool = False) -> None:
    for name in (one, other):
        if not fold(name) or not name.isprintable():
            raise Usage(f"{name!r} is not a valid name")
    if one == other if exactly else fold(one) == fold(other):
        raise Usage(f"{one} and {other} are the same name")


def _citation(entity: Entity) -> str:
    return f"{ENTITIES}:{entity.place.line}" if entity.place.line else ENTITIES


def _quote(name: str) -> str:
    return f'"{name}"' if re.search(r"[^\w.-]", name) else name


# -- settled -----------------------------------------------------------------------------------------------
# The names that are settled in `memory/entities.md`, and whom a name in a text stands for.
#
# A person's lines decide; what is not decided there is left open rather than guessed, and a `not:` is never
# passed over. Everything but `settled` is pure.


MIN_SHARED = 2
"""So many names must stand beside both to decide by company what a likeness alone leaves open."""

CROWD_SIZE = 400
"""Names with a word in common that are compared with each other; more have an ordinary word in common."""

Beside = Callable[[str], Collection[str]]
"""The names that stand beside somebody's in the bank."""


@dataclass(frozen=True, slots=True)
class ResolvedName:
    """Whom a name stands for. `name` is what they are called, or the name as it was given while that is open.

    `how`: exact (the name itself), alias, form (only the writing differs), context (decided by the names
    beside it), open. `candidates` are who else it may be, where it is open.
    """

    name: str
    how: Literal["exact", "alias", "form", "context", "open"]
    reason: str = ""
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Two names that may be one, for a person to decide: `name` would stay, `other` become its alias."""

    name: str
    other: str
    how: Literal["sure", "maybe"]
    reason: str


@dataclass(frozen=True)
class EntityRecords:
    """The records of `memory/entities.md`, and what follows from them."""

    records: tuple[Entity, ...] = ()

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[Entity]]:
        found = defaultdict[str, list[Entity]](list)
        for entity in self.records:
            for name in dict.fromkeys(map(fold, (entity.name, *entity.aliases))):
                found[name].append(entity)
        return found

    def by_name(self, name: str) -> Sequence[Entity]:
        """Those who are called so, by name or alias: none, one, or several who share it."""
        return self._by_name.get(fold(name), ())

    def are_separate(self, one: str, other: str) -> bool:
        """Whether somebody has said that these two names are not one."""
        ours, theirs = self._kept_from(one), self._kept_from(other)
        return bool(ours & self._all_of(other) or theirs & self._all_of(one))

    def _all_of(self, name: str) -> set[str]:
        named = (n for entity in self.by_name(name) for n in (entity.name, *entity.aliases))
        return {fold(name), *map(fold, named)}

    def _kept_from(self, name: str) -> set[str]:
        return {fold(n) for entity in self.by_name(name) for n in entity.nots}

    def are_same(self, one: str, other: str) -> bool:
        """Whether two names are settled to be one's."""
        return any(a is b for a in self.by_name(one) for b in self.by_name(other))

    def resolve(self, name: str, context: Iterable[str] = (), beside: Beside | None = None) -> ResolvedName:
        """Whom a name in a text stands for. `context` are the other names of that text, `beside` gives the
        names that stand beside somebody's elsewhere in the bank."""
        company = {fold(each) for each in context} - {fold(name)}
        named = self.by_name(name)
        if len(named) == 1:
            how: Literal["exact", "alias"] = "exact" if fold(named[0].name) == fold(name) else "alias"
            return ResolvedName(named[0].name, how, "" if how == "exact" else f"{ENTITIES} says so")
        if named:
            return self._by_company(name, named, company, beside, 1)
        near = list(self._near(name))
        sure = [entity for entity, like in near if like.how == "sure"]
        if len(sure) == 1:
            return ResolvedName(sure[0].name, "form", dict(near)[sure[0]].reason)
        return self._by_company(name, sure or [entity for entity, _ in near], company, beside, MIN_SHARED)

    def names(self, said: Sequence[str]) -> tuple[str, ...]:
        """The names of a drawn fact as they are settled, each once; one that is not stays as it was said."""
        return tuple(dict.fromkeys(self.resolve(name, said).name for name in said))

    def _near(self, name: str) -> Iterator[tuple[Entity, NameSimilarity]]:
        """Those whom a name may stand for, with the best reason to think so."""
        for entity in self.records:
            if self.are_separate(entity.name, name):
                continue
            found = [like for each in (entity.name, *entity.aliases) if (like := likeness(each, name))]
            if found:
                yield entity, min(found, key=lambda like: like.how != "sure")

    def _by_company(
        self, name: str, among: Sequence[Entity], company: set[str], beside: Beside | None, least: int
    ) -> ResolvedName:
        """Decide by the names beside it: one's own full name is enough, else `least` shared ones, and more
        than anybody else has."""
        if not among:
            return ResolvedName(name, "open")
        said = [e for e in among if company & ({fold(n) for n in (e.name, *e.aliases)} - {fold(name)})]
        if len(said) == 1:
            return ResolvedName(said[0].name, "context", f"{said[0].name} appears with it")
        if beside:
            shared = [({fold(n): n for n in beside(e.name) if fold(n) in company}, e) for e in among]
            (most, entity), *others = sorted(shared, key=lambda pair: -len(pair[0]))
            if len(most) >= least and not (others and len(others[0][0]) == len(most)):
                why = ", ".join(sorted(most.values()))
                return ResolvedName(entity.name, "context", f"elsewhere it appears with {why}")
        candidates = tuple(dict.fromkeys(entity.name for entity in among))
        return ResolvedName(name, "open", "it may be any of them" if len(candidates) > 1 else "", candidates)


def entity_records(store: Store) -> EntityRecords:
    """What `memory/entities.md` says now, hand edits included; nothing where there is no such file."""
    try:
        data = store.truth(ENTITIES)
    except NotFound:
        return EntityRecords()
    return EntityRecords(markdown_document.parse(data, ENTITIES).of(Entity))


def suggestions(
    names: Mapping[str, int], known: EntityRecords, beside: Beside, limit: int = 20
) -> list[Suggestion]:
    """Names that may be one, the likeliest first. `names` are those of the bank, and how often each stands.

    What a person has decided, either way, is not asked again. Names that may be two need company in common
    and must not stand beside each other: who writes `Mistral and Mixtral` means two.
    """
    found: list[tuple[tuple[int, int, str], Suggestion]] = []
    listed = {fold(name): name for name in names}
    for one, other in _candidate_pairs(names):
        like = likeness(one, other)
        if like is None or known.are_same(one, other) or known.are_separate(one, other):
            continue
        mine, theirs = ({fold(n) for n in beside(name)} for name in (one, other))
        common = mine & theirs & listed.keys()
        strangers = len(common) < MIN_SHARED or fold(other) in mine or fold(one) in theirs
        if like.how == "maybe" and strangers:
            continue
        keep, drop = _choose_name(one, other, names, known)
        shown = sorted((listed[n] for n in common), key=lambda n: (-names[n], n))
        reason = like.reason + (f"; both appear with: {', '.join(shown[:3])}" if shown else "")
        rank = (like.how != "sure", -len(common) * min(names[one], names[other]), keep)
        found.append((rank, Suggestion(keep, drop, like.how, reason)))
    return [suggestion for _, suggestion in sorted(found, key=lambda pair: pair[0])][:limit]


def _candidate_pairs(names: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """The pairs of names that are worth a comparison: they share a word, begin alike, or one begins with a
    short form of the other's first word."""
    crowds = defaultdict[str, list[str]](list)
    first = defaultdict[str, list[str]](list)
    for name in names:
        words = fold(name).split()
        first[_without_accents(words[0]) if words else ""].append(name)
        for crowd in {*words, "".join(words)[:2] + "…"}:
            crowds[crowd].append(name)
    seen: set[tuple[str, str]] = set()
    for short, long in _nicknames():
        seen |= {(min(a, b), max(a, b)) for a in first.get(short, ()) for b in first.get(long, ())}
    for together in crowds.values():
        for n, one in enumerate(together if len(together) <= CROWD_SIZE else ()):
            for other in together[n + 1 :]:
                if abs(len(one) - len(other)) <= 2 or " " in one + other:
                    seen.add((one, other) if one < other else (other, one))
    yield from sorted(seen)


def _choose_name(one: str, other: str, names: Mapping[str, int], known: EntityRecords) -> tuple[str, str]:
    """Which of two names would stay: the settled one, the longer one, the one that is written oftener."""

    def worth(name: str) -> tuple[bool, int, int, str]:
        return bool(known.by_name(name)), len(fold(name).split()), names.get(name, 0), name

    return (one, other) if worth(one) >= worth(other) else (other, one)
