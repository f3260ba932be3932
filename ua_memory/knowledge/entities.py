"""Entities: the aliases, merges and splits that a person decided, in `memory/entities.md`."""

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
from ua_memory.records import Entity, Fact, Problem
from ua_memory.store.draft import Draft, Result
from ua_memory.store.store import Store
from ua_memory.text.patterns import data_text, without_accents

# -- similarity --------------------------------------------------------------------------------------------
# Compare two names; nothing is merged here.
#
# Names that differ only in spelling (case, punctuation, accents, a genitive, two swapped letters) are the
# same. One letter more, less or changed may be somebody else (Daniel and Daniela, Martin and Marvin), and a
# short name may refer to several: those are `maybe`, for the context or a person to decide. Numbers must be
# equal: `Room 101` is not `Room 102`, and `Python 3` not `Python`.


LONG, LONGER = 5, 9
"""Least letters of a word for one spelling mistake, and for two."""

_GENITIVE = re.compile(r"(?<=\w)['’](?:s\b)?(?=\W*$)")
_INITIAL = re.compile(r"\b(\w)\.(?=\s|$)")


@dataclass(frozen=True, slots=True)
class NameSimilarity:
    """How similar two names are: `sure` if they differ only in spelling, `maybe` if they may be different."""

    how: Literal["sure", "maybe"]
    reason: str


@lru_cache(maxsize=8192)
def fold(name: str) -> str:
    """Normalize a name for comparison: casefolded, without punctuation or a genitive's ending."""
    text = _GENITIVE.sub("", unicodedata.normalize("NFKC", name)).casefold()
    return " ".join(re.findall(r"\w+", text))


def likeness(one: str, other: str) -> NameSimilarity | None:
    """The similarity of two names, None if they are different. Symmetric."""
    a, b = fold(one), fold(other)
    if not a or not b or re.findall(r"\d+", a) != re.findall(r"\d+", b):
        return None
    if a == b:
        return NameSimilarity("sure", "differ only in case and punctuation")
    a, b = without_accents(a), without_accents(b)
    if a == b:
        return NameSimilarity("sure", "differ only in accents")
    if min(len(a), len(b)) >= LONG and a.replace(" ", "") == b.replace(" ", ""):
        return NameSimilarity("sure", "the same letters, spaced differently")
    mine, theirs = a.split(), b.split()
    if len(mine) == len(theirs):
        return _compare_words(mine, theirs, _initials(one) | _initials(other))
    return _compare_parts(*sorted((mine, theirs), key=len))


def _initials(name: str) -> frozenset[str]:
    return frozenset(without_accents(letter.casefold()) for letter in _INITIAL.findall(name))


def _compare_words(mine: list[str], theirs: list[str], dotted: frozenset[str]) -> NameSimilarity | None:
    different = [(a, b) for a, b in zip(mine, theirs, strict=True) if a != b]
    first = (mine[0], theirs[0])
    if different == [first] and (found := _nickname_similarity(*first)):
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
    """Compare two different words: plurals and spelling mistakes; None if they are not similar."""
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
    """The Levenshtein distance of two words, in letters."""
    row = list(range(len(b) + 1))
    for n, x in enumerate(a, 1):
        above, row[0] = row[0], n
        for m, y in enumerate(b, 1):
            above, row[m] = row[m], min(row[m] + 1, row[m - 1] + 1, above + (x != y))
    return row[-1]


def _compare_parts(short: list[str], long: list[str]) -> NameSimilarity | None:
    """Compare a name with a longer one that it may begin or end, as a first or last name does."""
    if len(short[0]) < 2 or (len(short) == 1 and len(short[0]) < 3):
        return None
    if long[: len(short)] == short or long[-len(short) :] == short:
        return NameSimilarity("maybe", "the shorter is part of the longer")
    return _nickname_similarity(short[0], long[0]) if len(short) == 1 else None


# -- restoring names ---------------------------------------------------------------------------------------
# Restore the entities of facts that were extracted while two names were merged, when they are split again.


_ENTITIES_LINE = re.compile(r"(\s+[-*+]\s+entities:\s*)\S.*")


def restore_names(
    store: Store, draft: Draft, names: Collection[str], other: str, called: str | None = None
) -> None:
    """Restore `other` (or `called`, its entity's name) as an entity of extracted facts, in an open revision:
    of those that list one of `names` but mention only `other`. Their number is added to the draft's notes."""
    links = [write_link(name).encode("utf-8", "replace") for name in names]
    paths = [path for path, data in texts(store) if any(link in data for link in links)]
    count = 0
    for path in paths:
        for fact in markdown_document.parse(draft.read(path), path).of(Fact):
            if fact.id and fact.heading.client and _needs_restore(fact, names, other):
                count += _rewrite_entities(draft, path, fact.id, names, called or other)
    if count:
        draft.notes.append(f"extracted in the meantime under the name {called or other}: {count}")


def restore_all_names(store: Store, draft: Draft, before: Sequence[Entity], after: Sequence[Entity]) -> None:
    """Call `restore_names` for every alias of the records `before` that their entity has lost in `after`."""
    for mine in before:
        there = [e for e in after if fold(mine.name) in _names(e)]
        left = {name for e in there for name in _names(e)}
        names = (mine.name, *(n for n in mine.aliases if fold(n) in left))
        for other in (n for n in mine.aliases if fold(n) not in left):
            whose = [e.name for e in after if fold(other) in _names(e)]
            restore_names(store, draft, names, other, whose[0] if len(whose) == 1 else None)


def draft_entities(draft: Draft) -> tuple[Entity, ...]:
    """The records of the file in an open revision."""
    return markdown_document.parse(draft.read(ENTITIES), ENTITIES).of(Entity)


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
    """Rewrite one fact's `entities:` line; False, without a change, if that would change anything else."""
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
# Decisions about names: each changes some lines of `memory/entities.md` in one commit, and can be undone.
#
# The text of facts is not changed. Only the lines concerned are rewritten, so that a person's other lines
# stay; Malformed if that is not possible.


ENTITIES = "memory/entities.md"

_DECISION_ROW = re.compile(r"(?P<lead>\s+[-*+]\s+(?P<key>alias|not):\s*)(?P<value>.*?)\s*")


@dataclass(frozen=True, slots=True)
class EntityDecision:
    """The result of a decision: the records as they are now, the main one first, and its commit."""

    entities: tuple[Entity, ...]
    result: Result
    path: str = ENTITIES


def alias(store: Store, name: str, other: str, *, door: str, by_person: bool = False) -> EntityDecision:
    """Make `other` an alias of `name`. Usage if `other` has a record of its own (use `merge`); Conflict if a
    `not:` keeps them apart."""
    with _decision_revision(store, door, by_person) as sheet:
        if any(fold(e.name) == fold(other) for e in sheet.entities()):
            hint = f"ua-memory entities merge {_quote(name)} {_quote(other)}"
            raise Usage(f"{other} has its own record", where=ENTITIES, hint=hint)
        sheet.join(name, other)
    return sheet.decided()


def merge(store: Store, name: str, other: str, *, door: str, by_person: bool = False) -> EntityDecision:
    """Make `other` and all its aliases aliases of `name`. Facts are not changed, so that `split` and undo can
    restore it. Conflict if a `not:` keeps them apart."""
    with _decision_revision(store, door, by_person) as sheet:
        sheet.join(name, other)
    return sheet.decided()


def split(store: Store, name: str, other: str, *, door: str, by_person: bool = False) -> EntityDecision:
    """Separate `other` from `name`: remove the alias, and add a `not:` to both records. Facts that were
    extracted meanwhile and mention only `other` list it as their entity again."""
    with _decision_revision(store, door, by_person) as sheet:
        _require_different(name, other)
        mine = sheet.record(name, other) or Entity(name)
        if fold(mine.name) == fold(other):  # it would leave the record without its name
            raise Usage(
                f"{other} is the name of the record", where=ENTITIES,
                hint=f"ua-memory entities rename {_quote(other)} NEW, then split",
            )  # fmt: skip
        aliases = tuple(n for n in mine.aliases if fold(n) != fold(other))
        sheet.put(mine, replace(mine, aliases=aliases, nots=_add_name(mine.nots, other)))
        named = [e for e in sheet.entities() if fold(other) in _names(e)]
        theirs = min(named, key=lambda e: fold(e.name) != fold(other), default=Entity(other))
        sheet.put(theirs, replace(theirs, nots=_add_name(theirs.nots, mine.name)))
        sheet.say(f"{other} is not {mine.name}", mine.name, theirs.name)
        if aliases != mine.aliases:
            restore_names(store, sheet.draft, (mine.name, *aliases), other, theirs.name)
    return sheet.decided()


def shared_aliases(entities: Sequence[Entity]) -> Iterator[Problem]:
    """The aliases that are a name of another entity as well, as after a merge of two machines' files."""
    owners = {fold(e.name): e.name for e in entities}
    for mine in entities:
        for other in mine.aliases:
            if (owner := owners.setdefault(fold(other), mine.name)) != mine.name:
                split = f"ua-memory entities split {_quote(mine.name)} {_quote(other)}"
                what = f"{other} is a name of {owner}, too; {split}, or merge the two"
                yield Problem(mine.place.path, mine.place.line, what)


def rename(store: Store, old: str, new: str, *, door: str, by_person: bool = False) -> EntityDecision:
    """Rename an entity from `old` to `new`; the old name stays as an alias. Usage if `new` is a name of
    another entity."""
    with _decision_revision(store, door, by_person) as sheet:
        _require_different(old, new, exactly=True)
        was = sheet.record(old) or Entity(old)
        taken = [e for e in sheet.entities() if fold(new) in _names(e) and e != was]
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
    """`memory/entities.md` in an open revision."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.about: tuple[str, ...] = ()

    def entities(self) -> tuple[Entity, ...]:
        return draft_entities(self.draft)

    def record(self, name: str, also: str = "") -> Entity | None:
        """The record with this name or alias, None if there is none. Of several, the one that also has the
        name `also`, else the one of which it is the main name. Usage if several are left."""
        named = [e for e in self.entities() if fold(name) in _names(e)]
        own = [e for e in named if fold(e.name) == fold(name)]
        both = [e for e in named if also and fold(also) in _names(e)]
        found = both or own or named
        if len(found) > 1:
            who = " or ".join(e.name for e in found)
            raise Usage(f"{name} may be {who}", where=ENTITIES, hint="use the full name")
        return found[0] if found else None

    def join(self, name: str, other: str) -> None:
        """Make `other` and its aliases aliases of `name`."""
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
            names = [n for n in a.nots if fold(n) in _names(b)]
            if names:
                hint = f"remove `not: {names[0]}` from {ENTITIES} first, on both sides"
                raise Conflict(f"{a.name} is marked as not {names[0]}", where=_citation(a), hint=hint)

    def put(self, old: Entity, new: Entity | None) -> None:
        """Replace the record `old`, or append `new` if there is no such record; None deletes it. Malformed if
        other records would change."""
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
        kept = [e for name in self.about for e in self.entities() if fold(e.name) == fold(name)]
        return EntityDecision(tuple(kept), self.draft.result)


@contextmanager
def _decision_revision(store: Store, door: str, by_person: bool) -> Iterator[_EntitiesFile]:
    with store.revision("entities", door=door, by_person=by_person) as draft:
        yield _EntitiesFile(draft)


def _change_record(data: bytes, old: Entity | None, new: Entity | None) -> Iterator[bytes]:
    """Candidates for the changed file: only the changed lines replaced, then the whole record rewritten."""
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
    """A record's lines; only those are changed that lose or gain a name."""
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
    except ValueError:  # the parser ignores this line
        return
    kept = [name for name in names if name not in gone]
    if len(kept) < len(names):
        lines[row : row + 1] = [match["lead"] + ", ".join(map(write_name, kept))] if kept else []


def _add_name(names: Sequence[str], name: str) -> tuple[str, ...]:
    return (*names, *([name] if fold(name) not in map(fold, names) else []))


def _require_different(one: str, other: str, *, exactly: bool = False) -> None:
    for name in (one, other):
        if not fold(name) or not markdown_lines.is_visible(name):
            raise Usage(f"{name!r} is not a valid name")
    if one == other if exactly else fold(one) == fold(other):
        raise Usage(f"{one} and {other} are the same name")


def _citation(entity: Entity) -> str:
    return f"{ENTITIES}:{entity.place.line}" if entity.place.line else ENTITIES


def _quote(name: str) -> str:
    return f'"{name}"' if re.search(r"[^\w.-]", name) else name


# -- resolution --------------------------------------------------------------------------------------------
# Resolve names in texts to the entities of `memory/entities.md`, and suggest names that may be one entity.
#
# A person's lines decide. What they leave open is not guessed, and a `not:` always holds. Only
# `entity_records` reads the store.


MIN_SHARED = 2
"""Shared co-occurring names from which context decides between similar names."""

CROWD_SIZE = 400
"""Most names sharing a word that are compared with each other; a word of more names is too common."""

RelatedNames = Callable[[str], Collection[str]]
"""Gives the names that co-occur with a name in the bank."""


@dataclass(frozen=True, slots=True)
class ResolvedName:
    """The entity that a name refers to. `name` is the entity's main name, or the given name if `how` is open.

    `how`: exact (the main name), alias, form (only the spelling differs), context (decided by co-occurring
    names), open (undecided). `candidates` are the entities that an open name may refer to.
    """

    name: str
    how: Literal["exact", "alias", "form", "context", "open"]
    reason: str = ""
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Two names that may be one entity, for a person to decide: `other` would become an alias of `name`."""

    name: str
    other: str
    how: Literal["sure", "maybe"]
    reason: str


@dataclass(frozen=True)
class EntityRecords:
    """The records of `memory/entities.md`, and lookups in them."""

    records: tuple[Entity, ...] = ()

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[Entity]]:
        found = defaultdict[str, list[Entity]](list)
        for entity in self.records:
            for name in _names(entity):
                found[name].append(entity)
        return found

    def by_name(self, name: str) -> Sequence[Entity]:
        """The records with this name or alias; several may share it."""
        return self._by_name.get(fold(name), ())

    def are_separate(self, one: str, other: str) -> bool:
        """Whether a `not:` keeps these two names apart."""
        ours, theirs = self._kept_from(one), self._kept_from(other)
        return bool(ours & self._all_of(other) or theirs & self._all_of(one))

    def _all_of(self, name: str) -> set[str]:
        return {fold(name)}.union(*map(_names, self.by_name(name)))

    def _kept_from(self, name: str) -> set[str]:
        return {fold(n) for entity in self.by_name(name) for n in entity.nots}

    def are_same(self, one: str, other: str) -> bool:
        """Whether two names are in one record."""
        return any(a is b for a in self.by_name(one) for b in self.by_name(other))

    def resolve(
        self, name: str, context: Iterable[str] = (), beside: RelatedNames | None = None
    ) -> ResolvedName:
        """Find the entity that a name in a text refers to. `context` are the other names of that text,
        `beside` gives the names that co-occur with a name elsewhere in the bank."""
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
        """The main names of a fact's entities, each once; open names stay as they are."""
        return tuple(dict.fromkeys(self.resolve(name, said).name for name in said))

    def _near(self, name: str) -> Iterator[tuple[Entity, NameSimilarity]]:
        """The entities with a name similar to this one, each with its best similarity."""
        for entity in self.records:
            if self.are_separate(entity.name, name):
                continue
            found = [like for each in (entity.name, *entity.aliases) if (like := likeness(each, name))]
            if found:
                yield entity, min(found, key=lambda like: like.how != "sure")

    def _by_company(
        self, name: str, among: Sequence[Entity], company: set[str], beside: RelatedNames | None, least: int
    ) -> ResolvedName:
        """Decide by context: another name of one entity in the same text is enough, else `least` co-occurring
        names, and more than any other entity has."""
        if not among:
            return ResolvedName(name, "open")
        said = [e for e in among if company & (_names(e) - {fold(name)})]
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
    """Read `memory/entities.md`; empty if there is no such file."""
    try:
        data = store.accepted_bytes(ENTITIES)
    except NotFound:
        return EntityRecords()
    return EntityRecords(markdown_document.parse(data, ENTITIES).of(Entity))


def suggestions(
    names: Mapping[str, int], known: EntityRecords, beside: RelatedNames, limit: int = 20
) -> list[Suggestion]:
    """Names that may be one entity, most likely first. `names` are the bank's names with their counts.

    What a person has decided, either way, is not suggested again. Names whose similarity is `maybe` must
    share co-occurring names and must not co-occur: `Mistral and Mixtral` are two.
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
    """The pairs of names to compare: they share a word or their first two letters, or one's first word is a
    short form of the other's."""
    crowds = defaultdict[str, list[str]](list)
    first = defaultdict[str, list[str]](list)
    for name in names:
        words = fold(name).split()
        first[without_accents(words[0]) if words else ""].append(name)
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
    """(name to keep, other): prefer one with a record, then more words, then the more frequent."""

    def worth(name: str) -> tuple[bool, int, int, str]:
        return bool(known.by_name(name)), len(fold(name).split()), names.get(name, 0), name

    return (one, other) if worth(one) >= worth(other) else (other, one)
