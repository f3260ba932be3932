"""How a query is understood, and the four retrievers ("arms") that find candidates for it: by words,
embeddings, entities and dates."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

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
    split_query,
    stop_words,
)
from ua_memory.index.terms import words as words_of
from ua_memory.index.words import WordIndex
from ua_memory.text import calendar, dates
from ua_memory.text.names import entities
from ua_memory.text.noise import QueryText
from ua_memory.text.questions import PHRASES, asks_for_tasks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# -- hits --------------------------------------------------------------------------------------------------


class ArmHit(NamedTuple):
    """An item that a retriever found: its rank (from 1) and the retriever's score, higher is better.

    If the entity retriever found it through a related name, `seeds` has the keys of the items that link to
    it, and `strength` that of the link, 0 to 1.
    """

    item: IndexItem
    rank: int
    score: float
    seeds: tuple[str, ...] = ()
    strength: float = 0.0


# The parts of a score (`search --explain`). Those in brackets are features, which are not added to it.
#
#     words       how well the item itself matches the query's words
#     beside      what its neighbours add to that; in `fusion.fuse` it is `before` and `after`, one for each
#     named       the bonus for being about somebody the query names
#     when        the bonus for being of the days it asks about
#     meaning     the bonus or penalty for the similarity of the whole texts
#     alike       the penalty for being unlike the best hits
#     (every)     how well all its words are matched: low if one is missing
#     (names)     how well its names are matched
#     (rest)      how well its other words are matched
#     (kind)      1 if the item has the kind of answer asked for, -1 if not, 0 if none is asked for
#     form        what `kind` adds for a query that is not English
#     linked      found by a related name
#     support     of a passage, for the fact that quotes it
#     facts       of an observation, for its facts
#     newer       it replaces an older hit
#     other       it is about another identifier
#     untrusted   its source is not trusted
#     asks        it only repeats the question
#     order       the query asks for the newest or oldest
#     (cross)     the cross-encoder's score


MatchPart: TypeAlias = Literal[
    "words", "beside", "named", "when", "meaning", "alike", "every", "names", "rest", "kind"
]
"""In the order of `rerank`'s columns."""
Part: TypeAlias = Literal[
    MatchPart, "form", "before", "after", "linked", "support", "facts", "newer", "other", "untrusted",
    "asks", "order", "cross",
]  # fmt: skip


class Ranked(NamedTuple):
    """A candidate with its score, 0 to 1, and the score's parts by name."""

    item: IndexItem
    score: float
    parts: Mapping[Part, float]

    def rescored(self, score: float, why: Part) -> Ranked:
        """The candidate with another score; the difference is the part `why`."""
        return self._replace(score=score, parts={**self.parts, why: round(score - self.score, 4)})


Arms: TypeAlias = Mapping[str, Sequence[ArmHit]]
"""The hits of each retriever: 'semantic' (scored by cosine), 'keyword' (BM25), 'entity', 'temporal'."""


# -- query parsing -----------------------------------------------------------------------------------------


STOP_WORD_WEIGHT = 0.5
"""The factor on the weight of stop words: "when" and "who" help a little."""

DATE_WORD_WEIGHT = 0.02
"""The factor on the weight of words that only say when: they are matched with dates instead."""

PRIOR_ITEMS = 100
"""A prior for the frequency of stop words: this many items, half of which have it, since a small bank cannot
tell how common it is."""

MOST_WORDS = 256
"""Words of a query that are weighted; the model reads no more, either."""

_GENERIC = """
all anything did done else everything going happen happened happening happens new news recall remember said
show something talk talked talking tell work worked working ll m re s t ve
"""
_FOREIGN_GENERIC = (
    "passier", "gescheh", "gemacht", "pasó", "pasado", "hice", "hizo", "hicimos", "hecho", "passé", "fait",
    "fatto", "fatta", "successo", "accadut", "cosa", "fiz", "fez", "houve", "acontec", "gedaan", "gebeur",
    "deed", "deden", "neuf", "neues", "novit", "novedad", "novidad", "nuevo", "nuovo", "novo", "nieuw",
    "случи", "происх", "произо", "делал", "dział", "wydarzy", "robił",
)  # fmt: skip
"""Prefixes of words in other languages that ask what happened."""
_FOREIGN_PRONOUNS = frozenset(
    """
j ai qu c cos eu что было был была были будет в во у меня нас мы я co było był była będzie w we u mnie nas się
ne neler var vardı oldu olacak ayında günü yaptım yaptık
""".split()  # noqa: SIM905
)
GENERIC_WORDS = STOP_WORDS | frozenset(_GENERIC.split())
"""English words of queries such as "what happened", which say nothing about the content."""

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A word of a query: its span, weight and stems. `stop`: it is a stop word. `named`: it is part of a name
    of the bank. `whole`: the identifier it is part of, '' for none. `unknown`: no item has it."""

    start: int
    end: int
    weight: float
    stems: tuple[str, ...]
    stop: bool = False
    named: bool = False
    whole: str = ""
    unknown: bool = False

    @property
    def specific(self) -> bool:
        """Whether it says something about the content: it is no stop word and no single letter."""
        return not self.stop and self.end - self.start > 1


DAYS_OF_ITEM = ("date", "named", "day")
"""The days of an item: the one it is about, one that its text names, and the one it was said on. The first
two have an index."""


YEAR = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class DateRange:
    """The days a query asks about, ISO; `end` is exclusive, an open side is ''. `only`: the query asks for
    nothing else ("what happened last week?"). `spans` are the places of the dates in the query.
    `approximate`: the range is only given by an event ("after the race"), which other days may be about,
    too. `holiday`: its name, if the range is given by one, which texts of the year before may have, too."""

    start: str = ""
    end: str = ""
    only: bool = False
    spans: tuple[tuple[int, int], ...] = ()
    approximate: bool = False
    holiday: str = ""

    @property
    def text(self) -> str:
        """The days for people: "2026-07-01 to 2026-07-31", "2026-07-01 or later"."""
        last = (date.fromisoformat(self.end) - timedelta(days=1)).isoformat() if self.end else ""
        if self.start and last:
            return f"{self.start} to {last}" if last != self.start else last
        return f"{self.start} or later" if self.start else f"{last} or earlier"

    @property
    def is_one_day(self) -> bool:
        day = timedelta(days=1)
        return bool(self.start and self.end) and date.fromisoformat(self.start) + day == date.fromisoformat(
            self.end
        )

    @property
    def bounds(self) -> tuple[str, str]:
        """`start` and `end` to compare dates with as texts: "2026-12" for its first day, since that month may
        be a date, too, and begins on this day; "2026" likewise."""
        return (
            self.start.removesuffix("-01").removesuffix("-01"),
            self.end.removesuffix("-01").removesuffix("-01"),
        )

    def sql(self, columns: Sequence[str]) -> tuple[str, tuple[str, ...]]:
        """An SQL condition for rows with a date of the range in one of these columns, or that name days
        around it, and its parameters."""
        start, end = self.bounds
        within = " OR ".join(f"({day} >= ? AND {day} != '' AND (? = '' OR {day} < ?))" for day in columns)
        around = "(last >= ? AND (? = '' OR date < ?))"
        return f"({within} OR {around})", (start, end, end) * (len(columns) + 1)

    def contains(self, day: str) -> bool:
        """Whether an ISO day, or the first of a month or year, is in the range."""
        start, end = self.bounds
        return bool(day) and start <= day and (not end or day < end)

    def covers(self, item: IndexItem) -> bool:
        """Whether an item is about these days, names them or their holiday, or was said in them."""
        if any(self.contains(getattr(item, name) or "") for name in DAYS_OF_ITEM):
            return True
        start, end = self.bounds
        if item.last and item.last >= start and (not end or item.date < end):
            return True
        if not self.holiday or not item.day or self.holiday not in item.text.casefold():
            return False
        return timedelta() < date.fromisoformat(self.start) - date.fromisoformat(item.day) < YEAR

    def is_only_named(self, item: IndexItem) -> bool:
        """Whether an item was said on another day and has no `when` in the range: "exam on 3 December"."""
        return not self.contains(item.when or item.day or "")


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A query, parsed for all retrievers. `corrections` is {word that no item has: its correction, '' if that
    is a stop word}; `window` are the days it asks about."""

    text: str
    query: Query
    weights: Weights
    words: tuple[QueryWord, ...]
    named: NamedInQuery
    window: DateRange | None = None
    corrections: Mapping[str, str] = field(default_factory=dict)

    def are_names(self, words: Sequence[QueryWord]) -> list[bool]:
        """Of each word whether it is part of a name of the bank."""
        known = {part for name in self.named.every for part in name.split()}
        texts = (index_items.folded(self.text[word.start : word.end]) for word in words)
        return [word.named or text in known for word, text in zip(words, texts, strict=True)]

    @property
    def correction_notes(self) -> tuple[str, ...]:
        """Messages about corrected words, for the answer's notes."""
        found = {typed: word for typed, word in self.corrections.items() if word}
        parts = {typed for typed in found for other in found if typed != other and typed in other}
        return tuple(
            f"no match for “{typed}”: searched for “{found[typed]}”" for typed in found if typed not in parts
        )


def parse_query(
    words: WordIndex, text: str, window: DateRange | None = None, pieces: Iterable[tuple[int, int]] = (),
    *, typed: bool = False,
) -> ParsedQuery:  # fmt: skip
    """Parse a query with a bank's vocabulary. Never raises. A phrase that no item has is not required in a
    question. `pieces` are the spans of the model's tokens: a word that is a single token is not corrected.
    With `typed` the last word may be incomplete."""
    text = clean(text)
    query = split_query(text)
    if query.phrases and text.rstrip().endswith("?") and not words.search(query, 1):
        # Quotes are no operator around a title in a question: "Did you read “The Four Seasons”?"
        query = Query(query.terms, (), query.repeats, spoken=query.spoken)
    forms = words.vocabulary.forms(query.terms, query.spoken)
    last = query.terms[-1] if typed and query.terms else ""
    if last and text.casefold().endswith(last):
        completed = index_terms.completions(words.db, words.vocabulary.frequencies, last)
        forms = {**forms, last: completed} if completed else forms
    named = index_items.names_in_query(words.db, text)
    known = {text[start:end].casefold() for start, end in pieces} | forms.keys()
    known |= {word for name in named.aliases for word in name.split()}
    fixed = spelling_corrections(words, query, known)
    terms, repeats = ([fixed.get(t, t) for t in part] for part in (query.terms, query.repeats))
    query = Query(tuple(filter(None, dict.fromkeys(terms))), query.phrases, tuple(repeats), forms)
    weights = term_weights(words, query, frozenset(fixed.values()))
    own = _query_words(words, text, named.declared, fixed, forms)
    if window:
        own = tuple(_reweighted(one, window) for one in own)
    return ParsedQuery(text, query, weights, own, named, window, fixed)


def _reweighted(word: QueryWord, window: DateRange) -> QueryWord:
    """A word of a query with dates: words that say when are matched with dates, not with texts."""
    if window.only:
        return replace(word, weight=0.0)
    if any(start <= word.start and word.end <= end for start, end in window.spans):
        return replace(word, weight=word.weight * DATE_WORD_WEIGHT, stop=True)
    return word


def is_generic(text: str, spans: Iterable[tuple[int, int]], *, foreign: bool = False) -> bool:
    """Whether a query has no content besides these spans of dates; `foreign`: it is not in English."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    if PHRASES["notes of a time"].fullmatch(text):
        return True
    words = [word.casefold() for word in _WORD.findall(text)]
    if not foreign:
        return GENERIC_WORDS.issuperset(words)
    known = GENERIC_WORDS | all_stop_words() | _FOREIGN_PRONOUNS
    return all(word in known or word.startswith(_FOREIGN_GENERIC) for word in words)


def spelling_corrections(words: WordIndex, query: Query, known: Set[str] = frozenset()) -> dict[str, str]:
    """{term that no item has: its correction}, without `known` terms."""
    counts = words.vocabulary.frequencies(query.terms)
    unknown = (term for term in query.terms if not counts[term] and term not in known)
    return index_terms.corrections(words.db, words.vocabulary.frequencies, unknown, query.spoken)


def _query_words(
    words: WordIndex,
    text: str,
    names: Mapping[str, int],
    fixed: Mapping[str, str],
    forms: Mapping[str, tuple[str, ...]],
) -> tuple[QueryWord, ...]:
    spans = index_terms.query_spans(text)[:MOST_WORDS]
    typed = [index_terms.query_words(text[start:end]) for start, end, _ in spans]
    pieces = [[each for each in (fixed.get(piece, piece) for piece in part) if each] for part in typed]
    identifiers = [(start, end, fixed.get(whole) or whole) for start, end, whole in _identifiers(text)]
    every = sorted({piece for part in pieces for piece in part} | {whole for _, _, whole in identifiers})
    stems, known, total = words.vocabulary.stems(every), _frequencies(words, every, forms), words.count()
    name_words = {word for name in names for word in name.split()}
    empty = index_terms.ELISION, index_terms.IDLE
    elided = [match.span() for pattern in empty for match in pattern.finditer(text)]
    stopping = stop_words(piece for part in typed for piece in part)
    found = []
    for (start, end, small), part, before in zip(spans, pieces, typed, strict=True):
        stop = (small and len(spans) > 1) or all(piece in stopping for piece in part)
        stop = stop or any(low <= start and end <= high for low, high in elided)
        prior = PRIOR_ITEMS if stop else 0
        idfs = (inverse_frequency(known[piece] + prior // 2, total + prior) for piece in part)
        weight = max(idfs, default=0.0)
        weight *= (STOP_WORD_WEIGHT if stop else 1.0) * (1.0 if part == before else CORRECTION_WEIGHT)
        own = tuple(stems[piece] for piece in part if stems[piece])
        named = bool(part) and all(piece in name_words for piece in part)
        whole = next((stems[each] for low, high, each in identifiers if low <= start and end <= high), "")
        if not whole and (part != before or not forms.keys().isdisjoint(part)) and len(own) == 1:
            # The model embeds the word as it was typed, and English only: match the correction by letters.
            whole = own[0]
        unknown = not any(known[piece] for piece in part)
        found.append(QueryWord(start, end, weight, own, stop, named, whole, unknown))
    return tuple(found)


def _identifiers(text: str) -> list[tuple[int, int, str]]:
    """[(start, end, indexed form)] of the identifiers in a text."""
    found = []
    for match in re.finditer(r"\S+", text):
        whole = compound_terms(match[0]) if match[0].isascii() else []
        if whole:
            found.append((*match.span(), whole[0]))
    return found


# -- weights of terms --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of a query's terms: {stem: inverse document frequency}. `forms` is {other stem of the bank:
    the query's stems of which it is an inflected form}."""

    idf: dict[str, float]
    forms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def total(self) -> float:
        return sum(self.idf.values())


CORRECTION_WEIGHT = 0.8
"""The factor on the weight of a word that was corrected."""


def term_weights(words: WordIndex, query: Query, guessed: Set[str] = frozenset()) -> Weights:
    """The weights of a query's terms; terms with the same stem count once. A term that no item has weighs as
    much as one that a single item has. `guessed` terms, which are corrections, weigh less."""
    terms = list(dict.fromkeys([*query.terms, *(word for phrase in query.phrases for word in phrase)]))
    stems, known = words.vocabulary.stems(terms), _frequencies(words, terms, query.forms)
    total = words.count()
    factors = {stems[t]: CORRECTION_WEIGHT for t in terms if t in guessed} | {
        stems[t]: 1.0 for t in terms if t not in guessed
    }
    idf = {stems[t]: inverse_frequency(known[t], total) * factors[stems[t]] for t in terms if stems[t]}
    forms = defaultdict[str, list[str]](list)
    for term, others in query.forms.items():
        for other in words.vocabulary.stems(others).values() if stems[term] else ():
            forms[other].append(stems[term])
    return Weights(idf, {other: tuple(own) for other, own in forms.items()})


def _frequencies(
    words: WordIndex, terms: Sequence[str], forms: Mapping[str, tuple[str, ...]]
) -> dict[str, int]:
    """{term: document frequency, including its other forms (an upper bound)}."""
    known = words.vocabulary.frequencies(terms)
    for term in known.keys() & forms.keys():
        known[term] += sum(words.vocabulary.frequencies(forms[term]).values())
        known[term] = min(known[term], words.count())
    return known


def inverse_frequency(known: int, total: int) -> float:
    """The inverse document frequency of a term that `known` of `total` items have."""
    return math.log(1 + (max(total, 1) - known + 0.5) / (max(known, 1) + 0.5))


# -- dates of a query --------------------------------------------------------------------------------------


def read_dates(
    words: WordIndex | None, text: str, now: datetime, zone: tzinfo | None, kinds: Sequence[str] = ()
) -> dates.Reading:
    """The days that a query asks about. A past one without a year ("the dinner of 3 December") is the next
    one, if the bank has items of that only, or any and the query asks for open tasks."""
    time = dates.read(text, now, zone)
    today = f"{now.astimezone(zone) if zone and now.tzinfo else now:%Y-%m-%d}"
    if words is None or not time.start or not time.end or time.end > today:
        return time
    todo = "todo" in kinds or "todo" in (asks_for_tasks(text) or ())
    if not todo and _has_days(words, time):
        return time
    ahead = dates.read(text, now, zone, ahead=True)
    coming = ahead.end is not None and ahead.end > today
    return ahead if coming and _has_days(words, ahead) else time


def _has_days(words: WordIndex, time: dates.Reading) -> bool:
    within, days = DateRange(time.start or "", time.end or "").sql(DAYS_OF_ITEM[:2])
    return words.db.execute(f"SELECT 1 FROM items WHERE {within} LIMIT 1", days).fetchone() is not None


def query_dates(index: Index, text: str, where: Filters) -> tuple[DateRange | None, dates.Order | None, bool]:
    """(the days that a query asks about, as of `asked_at` (None: the clock) in its zone; whether it
    asks for the newest or oldest; whether it asks about the past)."""
    text = clean(text)
    now = where.asked_at or index.store.now()
    time = read_dates(index.words, text, now, index.store.config.zone, where.kinds)
    only = is_generic(text, time.at, foreign=time.foreign)
    window = DateRange(time.start or "", time.end or "", only, time.at) if time else None
    if window and window.is_one_day:
        spoken = " ".join(text[start:end] for start, end in window.spans).casefold()
        named = (name for name in calendar.HOLIDAYS if re.search(rf"\b{name}\b", spoken))
        window = replace(window, holiday=max(named, key=len, default=""))
    today = f"{now.astimezone(index.store.config.zone):%Y-%m-%d}"
    past = time.order == "earliest" or dates.asks_past(text) or bool(time.end and time.end <= today)
    return window, time.order, past


# -- explanation -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueryExplanation:
    """How a query is interpreted: its dates, its names as written, the terms that are searched (OR-ed), the
    quoted phrases that are required, {term that no item has: correction} as `meant`, and why the query was
    skipped or condensed, if it was."""

    time: dates.Reading
    entities: tuple[str, ...]
    terms: tuple[str, ...]
    phrases: tuple[str, ...] = ()
    meant: Mapping[str, str] = field(default_factory=dict)
    why: str = ""


def explain(
    wanted: QueryText, now: datetime, zone: tzinfo | None = None, words: WordIndex | None = None
) -> QueryExplanation:
    """Interpret a query asked at `now`; days are in `zone` (default: that of `now`). Without `words` spelling
    is not corrected."""
    query = clean(wanted.text)
    time = read_dates(words, query, now, zone)
    rest = query
    for start, end in time.at:  # a date is no name
        rest = rest[:start] + "\0" * (end - start) + rest[end:]
    parsed = split_query(query)
    phrases = tuple(" ".join(each) for each in parsed.phrases)
    forms = words.vocabulary.forms(parsed.terms, parsed.spoken) if words else {}
    meant = spelling_corrections(words, parsed, forms.keys()) if words else {}
    terms = Query(parsed.terms, forms=forms).every_term
    return QueryExplanation(time, entities(rest), terms, phrases, meant, wanted.why)


# -- keyword retriever -------------------------------------------------------------------------------------
# Items by BM25, and the share of the query's weight that an item matches.


def find_by_words(words: WordIndex, query: Query, limit: int, where: Filters) -> list[ArmHit]:
    """The best items by BM25, [] for a query without words."""
    hits = words.search(query, limit, where)
    items = {item.key: item for item in words.get([hit.key for hit in hits])}
    return [ArmHit(items[hit.key], rank, hit.score) for rank, hit in enumerate(hits, 1) if hit.key in items]


def matching_stems(
    words: WordIndex, items: Sequence[IndexItem], wanted: Set[str], forms: Mapping[str, tuple[str, ...]]
) -> dict[str, frozenset[str]]:
    """{item key: the wanted stems in its text, heading or tags}. `forms` as in `Weights`."""
    wanted_by = {stem: _query_stems(stem, wanted, forms) for stem in (*wanted, *forms)}
    known = frozenset(wanted_by)
    return {
        key: frozenset(each for stem in known & stems for each in wanted_by[stem])
        for key, stems in words.vocabulary.item_stems([item.key for item in items]).items()
    }


def _query_stems(stem: str, wanted: Set[str], forms: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The wanted stems that are equal to an item's stem, or of which it is an inflected form."""
    return tuple(each for each in (stem, *forms.get(stem, ())) if each in wanted)


@lru_cache(maxsize=1024)  # the items of a file and of a day have most of them in common
def _words_beside(heading: str, names: tuple[str, ...], fields: str) -> frozenset[str]:
    return frozenset((*index_items.heading_words(heading, names), *words_of(fields)))


def heading_stems(
    words: WordIndex, items: Sequence[IndexItem], wanted: Set[str], forms: Mapping[str, tuple[str, ...]]
) -> dict[str, frozenset[str]]:
    """{item key: the wanted stems in its headings, tags, names, and other fields such as `why:`}, without
    items that have none. Sessions are left out: their title is mostly their first words."""
    items = [item for item in items if item.record != index_items.SESSION]
    about = {item.key: (item.heading, (*item.tags, *item.entities), item.fields) for item in items}
    texts = {each: _words_beside(*each) for each in set(about.values())}
    known = words.vocabulary.stems(set().union(*texts.values()))
    found = {
        each: frozenset(stem for word in text for stem in _query_stems(known[word], wanted, forms))
        for each, text in texts.items()
    }
    return {key: found[each] for key, each in about.items() if found[each]}


def coverage(words: WordIndex, weights: Weights, items: Sequence[IndexItem]) -> dict[str, float]:
    """{item key: the share of the query's weight that its text, heading and tags match, 0 to 1}."""
    total = weights.total or 1.0
    return {
        key: sum(weights.idf[stem] for stem in sorted(have)) / total
        for key, have in matching_stems(words, items, weights.idf.keys(), weights.forms).items()
    }


# -- semantic retriever ------------------------------------------------------------------------------------
# The items whose embeddings are nearest to the query's.


if TYPE_CHECKING:
    Row = NDArray[np.float32]

EXACT_SEARCH_TEXTS = 2000
"""If at most this many texts pass the filters, their cosines are computed without Chroma."""

WIDEST = 4096
"""Chroma is asked for more and more texts, up to this number, until enough pass the filters."""


def find_by_meaning(
    index: Index, vector: Row, near: Sequence[tuple[str, float]], limit: int, where: Filters, query: Query
) -> list[ArmHit]:
    """The nearest items that pass the filters. `near` is Chroma's result without filters, best first."""
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
    names = index.words.allowed_texts(where, query, EXACT_SEARCH_TEXTS)
    if names is not None:
        return _ranked(index, list(cosines(index, vector, names).items()), limit, where, query)
    width = limit * 4
    while True:
        found = _ranked(index, index.nearest([vector], width)[0], limit, where, query)
        if len(found) >= limit or width >= WIDEST:
            return found
        width *= 4


def cosines(index: Index, vector: Row, names: Sequence[str]) -> dict[str, float]:
    """{text id: cosine} of the texts whose embedding is cached, rounded to six digits."""
    import numpy as np

    cached = index.cache.get(index.embeds.model, names)
    if not cached:
        return {}
    rows = np.stack(list(cached.values())).astype(np.float64)
    lengths = np.maximum(np.linalg.norm(rows, axis=1) * float(np.linalg.norm(vector)), 1e-12)
    found = rows @ vector.astype(np.float64) / lengths
    return {name: round(float(cosine), 6) for name, cosine in zip(cached, found, strict=True)}


# -- entity retriever --------------------------------------------------------------------------------------
# Items with a name of the query, and items linked to them.
#
# Seeds are items with a rare name of the query. Other names that occur in the seeds more often than by chance
# link to further items, in one hop: from "Alice's brother is Tom" to "Tom works at Initech". These rank after
# all seeds.


COMMON_NAME_ITEMS = 200
"""Names in more items than this are not searched: they are not specific, and would flood the results."""

LEAST_ASSOCIATION = 2.0
"""A name links further if it occurs in seeds this many times more often than by chance."""

CO_OCCURRING, BRIDGES, HOPS = 128, 8, 20
"""Other names in the seeds that are scored, the most frequent; the best of them, which link further; the
items that these link to."""

LINK_BOOST = 0.8
"""How far the score of a linked item with strength 1 is raised towards its seed's; a neighbour in a
conversation lends as much (`rerank.BEFORE`). Of 40 invented questions that need two of 1,200 facts, the
second fact is among the first ten hits for 27, without it for none."""

BOOSTED = 3
"""Linked items whose score is raised."""

EPSILON = 1e-6
"""A raised item stays this much below the next seed."""

HOP_SCORE = 0.9
"""The score of a linked item with strength 1, relative to the last seed."""


@dataclass(frozen=True, slots=True)
class LinkedName:
    """A name that links to further items: its association with the query's names, 0 to 1, and the seeds in
    which it occurs."""

    name: str
    strength: float
    seeds: tuple[str, ...]


def find_by_names(words: WordIndex, asked: ParsedQuery, limit: int, where: Filters) -> list[ArmHit]:
    """The items with most of the query's rare names, then linked items. [] if it has no rare name."""
    rare = {name: count for name, count in asked.named.every.items() if count <= COMMON_NAME_ITEMS}
    if not rare:
        return []
    total, scores = words.count(), defaultdict[str, float](float)
    numbers: dict[str, int] = {}
    for name, key, number in _items_naming(words, rare, where):
        scores[key] += inverse_frequency(rare[name], total)
        numbers[key] = number
    seeds = sorted(scores, key=lambda key: (-scores[key], key))[:limit]
    left = min(HOPS, limit - len(seeds))
    bridges = _bridges(words, asked, {numbers[key]: key for key in seeds}, total) if left > 0 else []
    hops = _hops(words, bridges, scores.keys(), where)
    linked = sorted(hops, key=lambda key: (-hops[key].strength, key))[:left]
    least = min((scores[key] for key in seeds), default=0.0)
    found = []
    for rank, item in enumerate(words.get([*seeds, *linked]), 1):
        hop = hops.get(item.key)
        if hop:
            score = HOP_SCORE * least * hop.strength
            found.append(ArmHit(item, rank, round(score, 6), hop.seeds, hop.strength))
        else:
            found.append(ArmHit(item, rank, round(scores[item.key], 6)))
    return found


def boost_linked(ranked: Sequence[Ranked], found: Sequence[ArmHit]) -> list[Ranked]:
    """Raise the best linked items of the entity retriever (`found`) towards their seeds, since they may
    answer the rest of the query. No seed with a higher score is passed."""
    linked = {one.item.key: one for one in found if one.seeds}
    if not linked:
        return list(ranked)
    seeds = {one.item.key for one in found} - linked.keys()
    scores = {one.item.key: one.score for one in ranked if one.item.key in seeds}
    boosted, left = [], BOOSTED
    for one in ranked:
        hop = linked.get(one.item.key)
        best = max((scores.get(key, 0.0) for key in hop.seeds), default=0.0) if hop else 0.0
        if hop and left and best > one.score:
            above = min(score for score in scores.values() if score > one.score)
            score = min(one.score + LINK_BOOST * hop.strength * (best - one.score), above - EPSILON)
            one = one.rescored(max(one.score, round(score, 6)), "linked")
            left -= 1
        boosted.append(one)
    return sorted(boosted, key=lambda one: -one.score)


def _items_naming(words: WordIndex, names: Iterable[str], where: Filters) -> Iterable[tuple[str, str, int]]:
    """Yield (name, item key, rowid) of each item that has one of the names and passes the filters."""
    condition, values = where.sql()
    for part in chunks(sorted(names)):
        yield from words.db.execute(
            "SELECT names.name, items.key, items.rowid FROM names JOIN items ON items.rowid = names.item"
            f" WHERE names.name IN ({placeholders(part)}) AND {condition}", (*part, *values)
        )  # fmt: skip


def _bridges(words: WordIndex, asked: ParsedQuery, seeds: Mapping[int, str], total: int) -> list[LinkedName]:
    """The names that link further, by their normalised pointwise mutual information with the query's names
    (Bouma 2009), best first. `seeds` is {rowid: item key}."""
    co_occurring = defaultdict[str, list[str]](list)
    for part in chunks(sorted(seeds)):
        sql = f"SELECT name, item FROM names WHERE item IN ({placeholders(part)}) AND how > ?"
        for name, item in words.db.execute(sql, (*part, index_items.SENTENCE_START)):
            if name not in asked.named.every:
                co_occurring[name].append(seeds[item])
    names = sorted(co_occurring, key=lambda name: (-len(co_occurring[name]), name))[:CO_OCCURRING]
    counts = _name_counts(words, names)
    bridges = []
    for name in names:
        both, count = len(co_occurring[name]), counts[name]
        if both < count <= COMMON_NAME_ITEMS and both * total >= LEAST_ASSOCIATION * count * len(seeds):
            strength = math.log(both * total / (count * len(seeds))) / math.log(total / both)
            bridges.append(LinkedName(name, round(min(strength, 1.0), 6), tuple(sorted(co_occurring[name]))))
    return sorted(bridges, key=lambda one: (-one.strength, one.name))[:BRIDGES]


def _name_counts(words: WordIndex, names: Sequence[str]) -> Mapping[str, int]:
    """{name: number of items, at most COMMON_NAME_ITEMS + 1}."""
    found: dict[str, int] = {}
    for part in chunks(list(names), 250):
        rows = f"(VALUES {','.join(['(?)'] * len(part))})"
        counted = (
            f"(SELECT count(*) FROM (SELECT 1 FROM names WHERE name = column1 LIMIT {COMMON_NAME_ITEMS + 1}))"
        )
        found.update(words.db.execute(f"SELECT column1, {counted} FROM {rows}", part))
    return found


def _hops(
    words: WordIndex, bridges: Sequence[LinkedName], seeds: Collection[str], where: Filters
) -> dict[str, LinkedName]:
    """{key of a linked item: the name with the strongest link to it}."""
    found: dict[str, LinkedName] = {}
    by_name = {one.name: one for one in bridges}
    for name, key, _ in _items_naming(words, by_name, where):
        if key not in seeds and (key not in found or found[key].strength < by_name[name].strength):
            found[key] = by_name[name]
    return found


# -- temporal retriever ------------------------------------------------------------------------------------


def find_by_days(words: WordIndex, window: DateRange | None, limit: int, where: Filters) -> list[ArmHit]:
    """The items of the days that a query asks about, newest first, with score 1; [] without a window."""
    if window is None:
        return []
    condition, values = where.sql()
    within, days = window.sql(DAYS_OF_ITEM if window.only else DAYS_OF_ITEM[:2])
    rows = words.db.execute(
        f"SELECT key FROM items WHERE {within} AND {condition} ORDER BY date DESC, path, line LIMIT ?",
        (*days, *values, limit),
    )
    return [ArmHit(item, rank, 1.0) for rank, item in enumerate(words.get([key for (key,) in rows]), 1)]
