"""Interpreting a query, and the four retrievers: by words, meaning, entities and days."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ua_memory.index import items as index_items
from ua_memory.index import terms as index_terms
from ua_memory.index.filters import Filters
from ua_memory.index.items import IndexItem, NamedInQuery, chunks, placeholders
from ua_memory.index.sync import Index
from ua_memory.index.terms import (
    STOP_WORDS,
    Query,
    all_stop_words,
    clean,
    compound_terms,
    read_query,
    stop_words,
)
from ua_memory.index.terms import words as words_of
from ua_memory.index.words import WordIndex
from ua_memory.text import dates
from ua_memory.text.names import entities
from ua_memory.text.noise import QueryText

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# -- arms --------------------------------------------------------------------------------------------------
# What an arm finds: items in the arm's own order, with the arm's own score.


class ArmHit(NamedTuple):
    """An item that a retriever found: its rank (from 1) and the retriever's score, higher is better.

    For items that the entity retriever found through a related name, `seeds` has the keys of the items that
    lead there, and `bond` the strength, 0 to 1.
    """

    item: IndexItem
    rank: int
    score: float
    seeds: tuple[str, ...] = ()
    bond: float = 0.0


class Ranked(NamedTuple):
    """A candidate: its score, 0 to 1, and the parts of the score by name."""

    item: IndexItem
    score: float
    parts: Mapping[str, float]


Arms: TypeAlias = Mapping[str, Sequence[ArmHit]]
"""What each arm found, by the arm's name: 'semantic' (cosine), 'keyword' (BM25), 'entity', 'temporal'."""


# -- keyword -----------------------------------------------------------------------------------------------
# The keyword arm: items by BM25 over their words, and how much of the query each of them matches.


def find_by_words(words: WordIndex, query: Query, limit: int, where: Filters) -> list[ArmHit]:
    """The best items by BM25. Empty for a query without words."""
    hits = words.search(query, limit, where)
    items = {item.key: item for item in words.get([hit.key for hit in hits])}
    return [ArmHit(items[hit.key], rank, hit.score) for rank, hit in enumerate(hits, 1) if hit.key in items]


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each query term: {stem: inverse document frequency}. `forms` has the query's stems for
    which another stem of the bank counts, too: {that: these}."""

    idf: dict[str, float]
    forms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return sum(self.idf.values())


GUESSED = 0.8
"""What a word that was not typed, but perhaps meant, counts beside one that was."""


def weigh(words: WordIndex, query: Query, guessed: Set[str] = frozenset()) -> Weights:
    """The weights of the query's terms; terms with one stem count once.

    A term that no item has weighs as much as one that a single item has. `guessed` terms weigh less.
    """
    terms = list(dict.fromkeys([*query.terms, *(word for phrase in query.phrases for word in phrase)]))
    stems, known = words.vocabulary.stems(terms), _frequencies(words, terms, query.forms)
    total = words.count()
    least = {stems[t]: GUESSED for t in terms if t in guessed} | {
        stems[t]: 1.0 for t in terms if t not in guessed
    }
    idf = {stems[t]: inverse(known[t], total) * least[stems[t]] for t in terms if stems[t]}
    forms = defaultdict[str, list[str]](list)
    for term, others in query.forms.items():
        for other in words.vocabulary.stems(others).values() if stems[term] else ():
            forms[other].append(stems[term])
    return Weights(idf, {other: tuple(own) for other, own in forms.items()})


def _frequencies(
    words: WordIndex, terms: Sequence[str], forms: Mapping[str, tuple[str, ...]]
) -> dict[str, int]:
    """{term: how many items have it or another form of it, at most}."""
    known = words.vocabulary.frequencies(terms)
    for term in known.keys() & forms.keys():
        known[term] += sum(words.vocabulary.frequencies(forms[term]).values())
        known[term] = min(known[term], words.count())
    return known


def inverse(known: int, total: int) -> float:
    """The inverse document frequency of a term that `known` of `total` items have."""
    return math.log(1 + (max(total, 1) - known + 0.5) / (max(known, 1) + 0.5))


def stems(
    words: WordIndex, items: Sequence[IndexItem], wanted: Set[str], forms: Mapping[str, tuple[str, ...]]
) -> dict[str, frozenset[str]]:
    """{key: those of the wanted stems that an item's words have, heading and tags included}. `forms` as in
    `Weights`."""
    texts = words.vocabulary.tokens([item.key for item in items])
    known = words.vocabulary.stems(set().union(*texts.values())) if texts else {}
    telling: dict[str, tuple[str, ...]] = {word: (stem,) for word, stem in known.items() if stem in wanted}
    if forms:
        telling = {word: own for word, stem in known.items() if (own := _standing_for(stem, wanted, forms))}
    return {
        key: frozenset(stem for word in text & telling.keys() for stem in telling[word])
        for key, text in texts.items()
    }


def _standing_for(stem: str, wanted: Set[str], forms: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The wanted stems that a stem of an item is, or is another form of."""
    return tuple(each for each in (stem, *forms.get(stem, ())) if each in wanted)


def stems_over(
    words: WordIndex, items: Sequence[IndexItem], wanted: Set[str], forms: Mapping[str, tuple[str, ...]]
) -> dict[str, frozenset[str]]:
    """{key: those of the wanted stems that stand over an item}, its headings, its title, tags and names;
    without those that have none. A session's title is most often its first words, which stand in it."""
    items = [item for item in items if item.record != index_items.SESSION]
    places = {item.key: (item.heading, (*item.tags, *item.entities)) for item in items}
    said = {place: frozenset(index_items.heading_words(*place)) for place in set(places.values())}
    known = words.vocabulary.stems(set().union(*said.values()))
    found = {
        place: frozenset(stem for word in over for stem in _standing_for(known[word], wanted, forms))
        for place, over in said.items()
    }
    return {key: found[place] for key, place in places.items() if found[place]}


def shares(words: WordIndex, weights: Weights, items: Sequence[IndexItem]) -> dict[str, float]:
    """{key: share of the query's weight whose terms the item has, 0 to 1}, heading and tags included."""
    total = weights.total or 1.0
    return {
        key: sum(weights.idf[stem] for stem in sorted(have)) / total
        for key, have in stems(words, items, weights.idf.keys(), weights.forms).items()
    }


# -- asked -------------------------------------------------------------------------------------------------
# How a query was read: its terms, its words and what each is worth, whom it names, which days it means.


SMALL = 0.5
"""What a word that every text has counts beside its rarity: "when" and "who" say a little."""

DATED = 0.02
"""What a word counts that says when, beside what is asked of that time: next to nothing."""

FEW_ITEMS = 100
"""So many texts are added, half of which have a small word: few items cannot tell how common it is."""

MOST = 256
"""Words of a query that are weighed one by one; the model reads no further either."""

_TELLING = """
all anything did done else everything going happen happened happening happens new news recall remember said
show something talk talked talking tell work worked working ll m re s t ve
"""
_ASKS_WHAT_WAS = tuple(
    "passier gescheh gemacht pasó pasado hice hizo hicimos hecho passé fait".split()  # noqa: SIM905
)
"""How words of other languages begin that ask what there was."""
_ASKS_FOR_NOTES = re.compile(
    r"\W*(?:what (?:did|have|had) (?:i|we) (?:write|written|note|noted|log|logged|jot|jotted)(?: down)?"
    r"|what (?:was|were|have|had) (?:i|we) (?:been )?up to"
    r"|(?:show |list )?(?:me )?(?:all )?(?:my |the |our )?(?:notes|entries) (?:of|from)"
    r"|was (?:habe ich|haben wir)\W+(?:am |im )?\W*(?:geschrieben|notiert)"
    r"|qué (?:escribí|anoté|apunté|escribimos)|qu['’](?:ai-je|est-ce que j['’]ai) (?:écrit|noté))"
    r"\W*(?:on|in|during|at|between|el|en|le|am|im)?\W*",
    re.IGNORECASE,
)
"""What asks for all that was written down, where nothing else is said but the time."""
IDLE = STOP_WORDS | frozenset(_TELLING.split())
"""English words that ask what there was, and say nothing about what it was."""

_WORD = re.compile(r"[^\W_]+")
_KANA = re.compile(r"[ぁ-ゖ]+")


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of the query: where it stands, its weight, its stems, and whether it is part of a name of the
    bank's or of an identifier (then that, whole)."""

    start: int
    end: int
    weight: float
    stems: tuple[str, ...]
    small: bool = False
    named: bool = False
    whole: str = ""

    @property
    def telling(self) -> bool:
        """Whether it says something of what is asked: no small word, no single letter."""
        return not self.small and self.end - self.start > 1


@dataclass(frozen=True, slots=True)
class DateRange:
    """The days a query means: ISO, `end` exclusive; an open side is ''. `alone`: the query asks for nothing
    but what there was in them ("what happened last week?"). `at` is where the query says them; `loose`: by
    something that happened alone ("after the race"): what is near in time often tells of it too."""

    start: str = ""
    end: str = ""
    alone: bool = False
    at: tuple[tuple[int, int], ...] = ()
    loose: bool = False

    def holds(self, day: str) -> bool:
        """Whether an ISO day lies in it."""
        return bool(day) and self.start <= day and (not self.end or day < self.end)

    def covers(self, item: IndexItem) -> bool:
        """Whether an item is of these days; where nothing else is asked for, also what was said in them."""
        return self.holds(item.date) or (self.alone and self.holds(item.day or ""))


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """One query as all arms see it. `meant` is {word that no item has: the word of the bank it was taken for,
    '' where that is a small one}."""

    text: str
    query: Query
    weights: Weights
    words: tuple[QueryWord, ...]
    named: NamedInQuery
    window: DateRange | None = None
    meant: Mapping[str, str] = field(default_factory=dict)

    def naming(self, words: Sequence[QueryWord]) -> list[bool]:
        """Of each word whether it is part of a name that the bank knows."""
        known = {part for name in self.named.every for part in name.split()}
        said = (index_items.folded(self.text[word.start : word.end]) for word in words)
        return [word.named or each in known for word, each in zip(words, said, strict=True)]

    @property
    def guesses(self) -> tuple[str, ...]:
        """What the words that no item has were taken for, to be told with the answer."""
        told = {typed: word for typed, word in self.meant.items() if word}
        parts = {typed for typed in told for other in told if typed != other and typed in other}
        return tuple(
            f"no match for “{typed}”: searched for “{told[typed]}”" for typed in told if typed not in parts
        )


def read(
    words: WordIndex, text: str, window: DateRange | None = None, pieces: Iterable[tuple[int, int]] = (),
    *, typed: bool = False,
) -> ParsedQuery:  # fmt: skip
    """Read a query against a bank's words. Never raises. In a question, a phrase that no item has is not
    required. `pieces` are the places of what a model reads at once: a whole word there is no typo. With
    `typed` the last word may be the beginning of one."""
    text = clean(text)
    query = read_query(text)
    if query.phrases and text.rstrip().endswith("?") and not words.search(query, 1):
        # A title in a question ("Did you read “The Four Seasons”?") is no operator where nothing holds it.
        query = Query(query.terms, (), query.repeats)
    forms = words.vocabulary.forms(query.terms)
    last = query.terms[-1] if typed and query.terms else ""
    if last and text.casefold().endswith(last):
        begun = index_terms.completions(words.db, words.vocabulary.frequencies, last)
        forms = {**forms, last: begun} if begun else forms
    meant = misspelt(words, query, {text[start:end].casefold() for start, end in pieces} | forms.keys())
    terms, again = ([meant.get(t, t) for t in part] for part in (query.terms, query.repeats))
    query = Query(tuple(filter(None, dict.fromkeys(terms))), query.phrases, tuple(again), forms)
    named = index_items.names_in_query(words.db, text)
    weights = weigh(words, query, frozenset(meant.values()))
    own = _words(words, text, named.declared, meant, forms)
    if window:
        own = tuple(_dated(one, text, window) for one in own)
    return ParsedQuery(text, query, weights, own, named, window, meant)


def _dated(word: QueryWord, text: str, window: DateRange) -> QueryWord:
    """A word of a query with a time: what says the time is looked for in days, not in texts."""
    if window.alone:
        return replace(word, weight=0.0)
    if any(start <= word.start and word.end <= end for start, end in window.at):
        return replace(word, weight=word.weight * DATED, small=True)
    return word


def idle(text: str, at: Iterable[tuple[int, int]], *, foreign: bool = False) -> bool:
    """Whether a query has nothing to search for besides the text at these places; `foreign`: they are not in
    English."""
    for start, end in at:
        text = text[:start] + " " * (end - start) + text[end:]
    if _ASKS_FOR_NOTES.fullmatch(text):
        return True
    words = [word.casefold() for word in _WORD.findall(text)]
    if not foreign:
        return IDLE.issuperset(words)
    known = IDLE | all_stop_words()
    return all(word in known or word.startswith(_ASKS_WHAT_WAS) for word in words)


def misspelt(words: WordIndex, query: Query, known: Set[str] = frozenset()) -> dict[str, str]:
    """{unknown term: the bank's word that was meant}. Costs nothing if every term is known."""
    many = words.vocabulary.frequencies(query.terms)
    unknown = (term for term in query.terms if not many[term] and term not in known)
    return index_terms.corrections(words.db, words.vocabulary.frequencies, unknown)


def _words(
    words: WordIndex,
    text: str,
    names: Mapping[str, int],
    meant: Mapping[str, str],
    forms: Mapping[str, tuple[str, ...]],
) -> tuple[QueryWord, ...]:
    spans = index_terms.spans(text)[:MOST]
    typed = [words_of(text[start:end]) for start, end in spans]
    pieces = [[each for each in (meant.get(piece, piece) for piece in part) if each] for part in typed]
    joined = [(start, end, meant.get(whole) or whole) for start, end, whole in _joined(text)]
    every = sorted({piece for part in pieces for piece in part} | {whole for _, _, whole in joined})
    stems, known, total = words.vocabulary.stems(every), _frequencies(words, every, forms), words.count()
    naming = {word for name in names for word in name.split()}
    little = stop_words(piece for part in typed for piece in part)
    found = []
    for (start, end), part, before in zip(spans, pieces, typed, strict=True):
        # What follows "web02" in "web02はどこですか" is grammar.
        grammar = len(spans) > 1 and _KANA.fullmatch(text, start, end)
        small = bool(grammar) or all(piece in little for piece in part)
        few = FEW_ITEMS if small else 0
        rare = max((inverse(known[piece] + few // 2, total + few) for piece in part), default=0.0)
        weight = rare * (SMALL if small else 1.0) * (1.0 if part == before else GUESSED)
        own = tuple(stems[piece] for piece in part if stems[piece])
        named = bool(part) and all(piece in naming for piece in part)
        whole = next((stems[each] for low, high, each in joined if low <= start and end <= high), "")
        if not whole and (part != before or not forms.keys().isdisjoint(part)) and len(own) == 1:
            # The model reads the letters that were typed, in English; go by those that were meant, too.
            whole = own[0]
        found.append(QueryWord(start, end, weight, own, small, named, whole))
    return tuple(found)


def _joined(text: str) -> list[tuple[int, int, str]]:
    """(start, end, as indexed) of the identifiers in a text."""
    found = []
    for match in re.finditer(r"\S+", text):
        whole = compound_terms(match[0]) if match[0].isascii() else []
        if whole:
            found.append((*match.span(), whole[0]))
    return found


# -- explain -----------------------------------------------------------------------------------------------
# How a query is read before anything is searched: its time, whom it names, the terms it is looked up by.


@dataclass(frozen=True, slots=True)
class QueryExplanation:
    """What was understood.

    `time` is what the dates say, `entities` the names as the query writes them, `terms` what the keyword arm
    looks for (OR-ed), `phrases` what was quoted and is required. `meant` is {term that the bank does not
    have: the word it is taken for}; `why` says why the query was skipped or condensed, if it was.
    """

    time: dates.Reading
    entities: tuple[str, ...]
    terms: tuple[str, ...]
    phrases: tuple[str, ...] = ()
    meant: Mapping[str, str] = field(default_factory=dict)
    why: str = ""


def explain(
    wanted: QueryText, now: datetime, zone: tzinfo | None = None, words: WordIndex | None = None
) -> QueryExplanation:
    """Interpret a query asked at `now`; days are in `zone` (default: that of `now`). `words` is the index
    used for spelling."""
    query = clean(wanted.text)
    time = dates.read(query, now, zone)
    rest = query
    for at, to in time.at:  # what was read as a date names nobody
        rest = rest[:at] + "\0" * (to - at) + rest[to:]
    read = read_query(query)
    phrases = tuple(" ".join(each) for each in read.phrases)
    forms = words.vocabulary.forms(read.terms) if words else {}
    meant = misspelt(words, read, forms.keys()) if words else {}
    terms = Query(read.terms, forms=forms).every_term
    return QueryExplanation(time, entities(rest), terms, phrases, meant, wanted.why)


# -- semantic ----------------------------------------------------------------------------------------------
# The semantic arm: items whose text lies nearest to the query in the model's space.


if TYPE_CHECKING:
    Row = NDArray[np.float32]

FEW_EMBEDDED = 2000
"""So many texts that pass a filter are compared one by one, exactly, without Chroma."""

WIDEST = 4096
"""More than this is not asked of Chroma at once."""


def find_by_meaning(
    index: Index, vector: Row, near: Sequence[tuple[str, float]], limit: int, where: Filters, query: Query
) -> list[ArmHit]:
    """The nearest items that pass the filters. `near` is Chroma's result for this query, best first."""
    if where or query.phrases:
        return _filtered(index, vector, limit, where, query)
    return _ranked(index, near, limit, where, query)


def _ranked(
    index: Index, near: Sequence[tuple[str, float]], limit: int, where: Filters, query: Query
) -> list[ArmHit]:
    cosines = dict(near)
    items = index.words.by_text(list(cosines), where, query)
    items.sort(key=lambda item: (-cosines[item.vhash], item.path, item.line, item.key))
    return [ArmHit(item, rank, cosines[item.vhash]) for rank, item in enumerate(items[:limit], 1)]


def _filtered(index: Index, vector: Row, limit: int, where: Filters, query: Query) -> list[ArmHit]:
    names = index.words.allowed_texts(where, query, FEW_EMBEDDED)
    if names is not None:
        return _ranked(index, list(cosines(index, vector, names).items()), limit, where, query)
    width = limit * 4
    while True:
        found = _ranked(index, index.nearest([vector], width)[0], limit, where, query)
        if len(found) >= limit or width >= WIDEST:
            return found
        width *= 4


def cosines(index: Index, vector: Row, names: Sequence[str]) -> dict[str, float]:
    """{name: cosine} of texts whose embedding is kept; exact, and rounded as the arm's own are."""
    import numpy as np

    kept = index.cache.get(index.embeds.model, names)
    if not kept:
        return {}
    rows = np.stack(list(kept.values())).astype(np.float64)
    lengths = np.maximum(np.linalg.norm(rows, axis=1) * float(np.linalg.norm(vector)), 1e-12)
    found = rows @ vector.astype(np.float64) / lengths
    return {name: round(float(cosine), 6) for name, cosine in zip(kept, found, strict=True)}


# -- entity ------------------------------------------------------------------------------------------------
# The entity arm: items in which somebody or something stands that the query names, and what these lead to.
#
# Seeds hold a rare name of the query. Names that stand beside it more often than chance would have it lead
# on, one step: "Alice's brother is Tom" to "Tom works at Initech". What is found so comes after every seed.


COMMON = 200
"""Who stands in more items than this says too little about which is meant, and would flood the rest."""

LEAST = 2.0
"""So many times oftener than chance must a name stand beside the query's to lead on."""

BESIDE, BRIDGES, HOPS = 128, 8, 20
"""Names beside the query's that are weighed, the most frequent; those that lead on; items they lead to."""

LINKED = 0.8
"""How much of the way to its seed an item goes whose bond is 1: what stands beside in a talk lends as much
(`rerank.BEFORE`). On 40 made-up questions over two facts each, among 1,200, the second is among the first ten
hits of 27, of none without."""

NEARER = 3
"""Items that are moved so: the rest stands where its own words put it."""

TIE = 1e-6
"""The last digit of a score: so far it stays below a seed."""

BELOW = 0.9
"""What the closest bound counts beside the least of the seeds: less than any of them."""


@dataclass(frozen=True, slots=True)
class LinkedName:
    """A related name: how closely it is tied to the query's, 0 to 1, and the items it occurs in."""

    name: str
    bond: float
    seeds: tuple[str, ...]


def find_by_names(words: WordIndex, asked: ParsedQuery, limit: int, where: Filters) -> list[ArmHit]:
    """The items with most of the query's rare names, then those of related names. Empty if the query names
    nobody, or only common names."""
    rare = {name: count for name, count in asked.named.every.items() if count <= COMMON}
    if not rare:
        return []
    total, worth = words.count(), defaultdict[str, float](float)
    numbers: dict[str, int] = {}
    for name, key, number in _items(words, rare, where):
        worth[key] += inverse(rare[name], total)
        numbers[key] = number
    seeds = sorted(worth, key=lambda key: (-worth[key], key))[:limit]
    room = min(HOPS, limit - len(seeds))
    bridges = _bridges(words, asked, {numbers[key]: key for key in seeds}, total) if room > 0 else []
    hops = _hops(words, bridges, worth.keys(), where)
    far = sorted(hops, key=lambda key: (-hops[key].bond, key))[:room]
    least = min((worth[key] for key in seeds), default=0.0)
    found = []
    for rank, item in enumerate(words.get([*seeds, *far]), 1):
        hop = hops.get(item.key)
        if hop:
            score = BELOW * least * hop.bond
            found.append(ArmHit(item, rank, round(score, 6), hop.seeds, hop.bond))
        else:
            found.append(ArmHit(item, rank, round(worth[item.key], 6)))
    return found


def linked(ranked: Sequence[Ranked], found: Sequence[ArmHit]) -> list[Ranked]:
    """Hits, best first, the best of what the entity arm found at one remove nearer to the seed it hangs on.

    It answers what its seed leaves open of the query. No seed that scores above it by itself is passed.
    """
    far = {one.item.key: one for one in found if one.seeds}
    if not far:
        return list(ranked)
    seeds = {one.item.key for one in found} - far.keys()
    scores = {one.item.key: one.score for one in ranked if one.item.key in seeds}
    lifted, left = [], NEARER
    for one in ranked:
        hop = far.get(one.item.key)
        best = max((scores.get(key, 0.0) for key in hop.seeds), default=0.0) if hop else 0.0
        if hop and left and best > one.score:
            above = min(score for score in scores.values() if score > one.score)
            score = min(one.score + LINKED * hop.bond * (best - one.score), above - TIE)
            one = _raised(one, score)
            left -= 1
        lifted.append(one)
    return sorted(lifted, key=lambda one: -one.score)


def _raised(one: Ranked, score: float) -> Ranked:
    score = max(one.score, round(score, 6))
    return one._replace(score=score, parts={**one.parts, "linked": round(score - one.score, 4)})


def _items(words: WordIndex, names: Iterable[str], where: Filters) -> Iterable[tuple[str, str, int]]:
    """(name, key, number) of each item that has one of the names and passes."""
    condition, values = where.sql()
    for part in chunks(sorted(names)):
        yield from words.db.execute(
            "SELECT names.name, items.key, items.rowid FROM names JOIN items ON items.rowid = names.item"
            f" WHERE names.name IN ({placeholders(part)}) AND {condition}", (*part, *values)
        )  # fmt: skip


def _bridges(words: WordIndex, asked: ParsedQuery, seeds: Mapping[int, str], total: int) -> list[LinkedName]:
    """The names beside the query's that lead on, the closest bound first: by their normalised pointwise
    mutual information with it (Bouma 2009). `seeds` has the keys of items by their numbers."""
    beside = defaultdict[str, list[str]](list)
    for part in chunks(sorted(seeds)):
        sql = f"SELECT name, item FROM names WHERE item IN ({placeholders(part)}) AND how > ?"
        for name, item in words.db.execute(sql, (*part, index_items.SENTENCE_START)):
            if name not in asked.named.every:
                beside[name].append(seeds[item])
    names = sorted(beside, key=lambda name: (-len(beside[name]), name))[:BESIDE]
    counts = _counts(words, names)
    bridges = []
    for name in names:
        both, there = len(beside[name]), counts[name]
        if both < there <= COMMON and both * total >= LEAST * there * len(seeds):
            bond = math.log(both * total / (there * len(seeds))) / math.log(total / both)
            bridges.append(LinkedName(name, round(min(bond, 1.0), 6), tuple(sorted(beside[name]))))
    return sorted(bridges, key=lambda one: (-one.bond, one.name))[:BRIDGES]


def _counts(words: WordIndex, names: Sequence[str]) -> Mapping[str, int]:
    """{name: in how many items it stands}, counted no further than it is of use."""
    found: dict[str, int] = {}
    for part in chunks(list(names), 250):
        rows = f"(VALUES {','.join(['(?)'] * len(part))})"
        counted = f"(SELECT count(*) FROM (SELECT 1 FROM names WHERE name = column1 LIMIT {COMMON + 1}))"
        found.update(words.db.execute(f"SELECT column1, {counted} FROM {rows}", part))
    return found


def _hops(
    words: WordIndex, bridges: Sequence[LinkedName], seeds: Collection[str], where: Filters
) -> dict[str, LinkedName]:
    """{key of an item: the closest bound name that leads to it}."""
    found: dict[str, LinkedName] = {}
    by_name = {one.name: one for one in bridges}
    for name, key, _ in _items(words, by_name, where):
        if key not in seeds and (key not in found or found[key].bond < by_name[name].bond):
            found[key] = by_name[name]
    return found


# -- temporal ----------------------------------------------------------------------------------------------
# The temporal arm: items of the days that the query means, the newest first.


def find_by_days(words: WordIndex, window: DateRange | None, limit: int, where: Filters) -> list[ArmHit]:
    """The items within the window; empty without one. The score is 1."""
    if window is None:
        return []
    condition, values = where.sql()
    within = "(date >= ? AND date != '' AND (? = '' OR date < ?))"
    if window.alone:
        within = f"({within} OR (day >= ? AND day != '' AND (? = '' OR day < ?)))"
    days = (window.start, window.end, window.end) * (1 + window.alone)
    rows = words.db.execute(
        f"SELECT key FROM items WHERE {within} AND {condition} ORDER BY date DESC, path, line LIMIT ?",
        (*days, *values, limit),
    )
    return [ArmHit(item, rank, 1.0) for rank, item in enumerate(words.get([key for (key,) in rows]), 1)]
