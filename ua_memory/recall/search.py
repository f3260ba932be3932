"""From a query to an answer: refresh, retrieve, rank, check each hit against its file, cut snippets."""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ua_memory.config import Config
from ua_memory.errors import NotFound, Usage
from ua_memory.index import words as index_words
from ua_memory.index.embedding import CrossUnavailable, EmbeddingUnavailable, embed_queries
from ua_memory.index.filters import Filters
from ua_memory.index.items import SESSION, IndexItem
from ua_memory.index.sync import READY, CurrentFiles, Index, Refresh
from ua_memory.index.terms import STOP_WORDS, Query, clean
from ua_memory.index.terms import words as words_of
from ua_memory.index.vectors import VectorsUnavailable
from ua_memory.index.words import WordIndex, is_damaged
from ua_memory.recall import arms as recall_arms
from ua_memory.recall import dedupe
from ua_memory.recall.arms import (
    ArmHit,
    Arms,
    DateRange,
    ParsedQuery,
    QueryExplanation,
    Ranked,
    explain,
    inverse_frequency,
    is_generic,
    parse_query,
)
from ua_memory.recall.dedupe import KeptHit, folded
from ua_memory.recall.fusion import (
    ANSWERED,
    BASELINE_RANK,
    DEPTH,
    SAME_TOPIC,
    apply_cross_encoder,
    calibrated,
    days_first,
    find_without_model,
    likelihood,
    order_by_time,
    penalize_untrusted,
    rank_candidates,
    recent_first,
)
from ua_memory.records import Place
from ua_memory.text import dates
from ua_memory.text.names import entities
from ua_memory.text.noise import PASSAGES, QueryText, asks, described_in, naming, read_query
from ua_memory.text.wording import counted

if TYPE_CHECKING:
    from ua_memory.index.embedding import EmbeddedQuery
    from ua_memory.index.terms import Query
    from ua_memory.knowledge.statements import Excerpt
    from ua_memory.store.store import Store


# -- snippet -----------------------------------------------------------------------------------------------
# The part of an item's text that shows why it was found.


LENGTH, OF_SESSION = 700, 300
"""Characters: what OpenClaw shows, and what the score against it counts; and of a session's passage."""

_WORD = re.compile(r"\w+")


def snippet(words: WordIndex, text: str, idf: Mapping[str, float], length: int = LENGTH) -> str:
    """At most `length` characters of the text, around where the query's words stand densest.

    A text that fits is given whole; a cut is marked by … at a word's edge.
    """
    if len(text) <= length:
        return text
    return _cut(text, _densest(_matches(words, text, idf), length - 2, len(text)), length)


def _cut(text: str, start: int, length: int) -> str:
    """At most `length` characters of a text from a place on, marked where they are cut."""
    end = min(len(text), start + length - 2)
    if start > 0:
        start = _edge(text, start, 1)
    if end < len(text):
        end = _edge(text, end, -1)
    return ("…" if start > 0 else "") + text[start:end].strip() + ("…" if end < len(text) else "")


def _matches(words: WordIndex, text: str, idf: Mapping[str, float]) -> list[tuple[int, int, str]]:
    begun = {stem[:2] for stem in idf}
    read = {word: words_of(word) for word in set(_WORD.findall(text)) if _may_match(word, begun)}
    stems = words.vocabulary.stems({part for parts in read.values() for part in parts})
    known = {word: [stems[part] for part in parts if idf.get(stems[part])] for word, parts in read.items()}
    # A long run without blanks (CJK) is one span; where in it the match lies is left to its middle.
    return [(*match.span(), stem) for match in _WORD.finditer(text) for stem in known.get(match.group(), ())]


def _may_match(word: str, begun: Set[str]) -> bool:
    """Whether a word of a text may have a stem that begins so: a plain one begins as its stem does."""
    plain = word.isascii() and word.isalpha() and word[1:].islower()
    return not plain or word[:2].lower() in begun


def _densest(found: list[tuple[int, int, str]], length: int, size: int) -> int:
    """Where the window with most matches begins: different words first, then how many."""
    best, chosen = (0, 0), (0, 0)
    low = 0
    for high in range(len(found)):
        while found[high][1] - found[low][0] > length and low < high:
            low += 1
        window = found[low : high + 1]
        value = len({stem for _, _, stem in window}), len(window)
        if value > best:
            best, chosen = value, (found[low][0], min(found[high][1], found[low][0] + length))
    middle = (chosen[0] + chosen[1]) // 2 if found else 0
    return max(0, min(middle - length // 2, size - length))


def _edge(text: str, at: int, step: int) -> int:
    """The nearest blank in a direction, if there is one within 40 characters."""
    for far in range(40):
        here = at + far * step
        if 0 < here < len(text) and text[here - (step < 0)].isspace():
            return here
    return at


# -- search ------------------------------------------------------------------------------------------------
# A query to an Answer: refresh, the arms, one order, each hit checked against its file.


T = TypeVar("T")
Near: TypeAlias = Mapping[int, Sequence[tuple[str, float]]]
Refreshing: TypeAlias = "Callable[[], Refresh]"
TOGETHER = 64
"""Queries that are read and asked of the vectors at once."""

UNKNOWN = "the model knows too few of the query's words"


@dataclass(frozen=True, slots=True)
class Hit:
    """One result. `score` is calibrated (see `fusion.chance`), `match` the score by which hits are ordered
    (`rerank`, `fuse`); `arms` has (rank, raw score) of each arm that found it, by name; `parts` what both are
    made of; `folded` the items it stands for (see `dedupe.folded`), `replaces` an older one with another
    value."""

    item: IndexItem
    score: float
    match: float
    snippet: str
    arms: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)
    folded: tuple[IndexItem, ...] = ()
    replaces: IndexItem | None = None
    outside: bool = False
    """Whether it is of other days than the query asks for."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits, best first; `notes` say what was left out or not available; `mode` is 'hybrid' or 'words'.

    `stale` counts what there was no time to read: changed `files`, `texts` without a vector. `answered` is
    whether the hits are likely to have the answer; if not, they are the nearest there is.
    """

    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()
    mode: str = "words"
    stale: Mapping[str, int] = field(default_factory=dict)
    answered: bool = False
    days: DateRange | None = None
    """The days that the query asks for, where it names some."""
    items: int = 0
    """How many the index has."""


def search(
    index: Index,
    query: str,
    *,
    limit: int = 6,
    min_score: float = 0.0,
    filters: Filters | None = None,
    refresh: Refreshing | None = None,
) -> SearchResult:
    """The best hits for one query. Any text is a valid query; an empty one has no hits."""
    return search_many(index, [query], limit=limit, min_score=min_score, filters=filters, refresh=refresh)[0]


def search_many(
    index: Index,
    queries: Sequence[str],
    *,
    limit: int = 6,
    min_score: float = 0.0,
    filters: Filters | None = None,
    refresh: Refreshing | None = None,
    depth: int = 0,
    by_words: bool = False,
    whole_days: bool = False,
) -> list[SearchResult]:
    """A result for each query, in order. The index is updated once, by `refresh` if it is given.

    `depth` is how many candidates each arm is asked for, if not as many as usual. With `whole_days` a query
    that is only a time is given all there is of it, up to `WHOLE_DAYS` hits. `by_words` is for somebody who
    types: nothing is embedded, and the last word may be unfinished.
    """
    parts = [queries[start : start + TOGETHER] for start in range(0, len(queries), TOGETHER)]
    # A model that is loaded reads the first queries while files are looked at.
    begun = [] if by_words or not parts or not index.ready else _said(index, parts[0])[0]
    with index.lock:
        report, depth = (refresh or index.refresh)(), depth or max(DEPTH, limit)
        where = Filters() if filters is None else filters
        wanted = _SearchOptions(
            index, report, limit, min_score, where, depth, whole_days=whole_days, typed=by_words
        )
        answers: list[SearchResult] = []
        for part in parts:
            answers += wanted.answers(part, begun)
            begun = []
        return answers


def _said(index: Index, queries: Sequence[str]) -> tuple[list[EmbeddedQuery], list[str]]:
    """The queries as the model begins to read them; none, and why, where it cannot be had."""
    try:
        return embed_queries(index.embeds, [clean(query) for query in queries]), []
    except EmbeddingUnavailable as error:
        return [], [f"keyword search only: {error}"]


@dataclass(frozen=True, slots=True)
class _AnsweredQuery:
    """A query as it was read, and what was found by that; `newest` is how it orders by time."""

    asked: ParsedQuery
    newest: dates.Order | None
    past: bool
    notes: Sequence[str]
    arms: Arms


@dataclass(frozen=True, slots=True)
class _UnderstoodQuery:
    """A query, how it was read, as the model read it, the texts nearest to it, and what is to be said."""

    text: str
    read: _AnsweredQuery
    said: EmbeddedQuery | None
    near: Sequence[tuple[str, float]]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Candidates:
    """What was found for a query before the answer is cut from it. `said` is the query as the model has read
    it, `known` the same where it knows any of its words; `scored` are all candidates, `found` those in the
    order of the answer, and `replaced` which of them replaces which."""

    said: EmbeddedQuery | None
    known: EmbeddedQuery | None
    arms: Arms
    scored: Sequence[Ranked]
    found: list[Ranked]
    replaced: Mapping[str, IndexItem]
    notes: Sequence[str]


class _SearchOptions:
    """What all queries of a search have in common."""

    def __init__(
        self,
        index: Index,
        report: Refresh,
        limit: int,
        min_score: float,
        where: Filters,
        depth: int,
        *,
        two_steps: bool = True,
        whole_days: bool = False,
        typed: bool = False,
    ) -> None:
        self.typed = typed
        self.index, self.semantic, self.present = index, report.semantic, CurrentFiles(index.files)
        self.report, self.two_steps, self.whole_days = report, two_steps, whole_days
        self.limit, self.min_score, self.where, self.depth = limit, min_score, where, depth
        left = (("files", report.left_files), ("texts", report.left_texts))
        self.left = {name: count for name, count in left if count}
        self.notes = [*report.notes, *(str(problem) for problem in report.failed)]
        if report.semantic != READY:
            self.notes.append(f"keyword search only: {report.semantic}")
        self.behind = [f"indexing: {_left(self.left)}"] if self.left else []

    def answers(self, queries: Sequence[str], begun: list[EmbeddedQuery]) -> list[SearchResult]:
        """A result for each. What asks for words is done while the model reads."""
        return [
            self._through(one.text, self._shown(one, self._candidates(one)))
            for one in self._understood(queries, begun)
        ]

    def trace(self, text: str, item: IndexItem | None) -> SearchTrace:
        """The answer to one query, and what became of an item in it."""
        (one,) = self._understood([text], [])
        there = self._candidates(one)
        answer = self._through(text, self._shown(one, there))
        return _SearchTracer(self, one.read, there, answer).trace(item)

    def _understood(self, queries: Sequence[str], begun: list[EmbeddedQuery]) -> list[_UnderstoodQuery]:
        said, why = begun if self.semantic == READY else [], list[str]()
        if not said and self.semantic == READY:
            said, why = _said(self.index, queries)
        read = [self._read(text, said[n] if said else None) for n, text in enumerate(queries)]
        near: Near = {}
        if said:
            self._ahead(said[0], read[0].arms["keyword"])
            said, near, why = self._near(said)
        notes = [*self.notes, *why, *self.behind]
        return [
            _UnderstoodQuery(text, one, said[n] if said else None, near.get(n, ()), notes)
            for n, (text, one) in enumerate(zip(queries, read, strict=True))
        ]

    def _through(self, text: str, direct: SearchResult) -> SearchResult:
        """The answer to a query about somebody whom it describes instead of naming: first who that is, then
        what is asked of them. What answers comes first, then what tells who it is, then the rest."""
        asked = clean(text)
        short = self.two_steps and len(asked) <= LONGEST_DESCRIBED
        described = described_in(asked) if short else None
        if described is None:
            return direct
        steps = self._within(DESCRIBED)
        who = steps.answers([described["clause"]], [])[0]
        found = [
            (answer, hit)
            for hit in who.hits
            if hit.match >= SURE_EVENT * who.hits[0].match
            for answer in steps.answers([naming(described, name) for name in _names_in(hit, text)], [])
            if answer.answered and answer.hits[0].item.key != hit.item.key
        ]
        if not found:
            return direct
        best, told = max(found, key=lambda pair: pair[0].hits[0].match)
        first = best.hits[0]
        others = [hit for hit in direct.hits if hit.item.key not in (first.item.key, told.item.key)]
        rest = [replace(hit, score=min(hit.score, first.score)) for hit in (told, *others)]
        return replace(direct, hits=tuple([first, *rest][: self.limit]), answered=True)

    def _within(self, limit: int) -> _SearchOptions:
        """What a search looks something up by on its way to an answer."""
        return _SearchOptions(self.index, self.report, limit, 0.0, self.where, self.depth, two_steps=False)

    def _ahead(self, said: EmbeddedQuery, likely: Sequence[ArmHit]) -> None:
        """Read the files of what words find, which is likely to be shown, as long as the model reads."""
        for one in likely[: self.limit]:
            if not said.ready:
                self.present.preload(one.item.path)

    def _near(self, said: list[EmbeddedQuery]) -> tuple[list[EmbeddedQuery], Near, list[str]]:
        """The texts nearest to each query, by its number; no query, and why, where they cannot be had."""
        try:
            # A query of which the model knows no word is a row of zeros: near to nothing, left to the words.
            known = [number for number, one in enumerate(said) if one.vector.any()]
            near = self.index.nearest([said[number].vector for number in known], self.depth)
            return said, dict(zip(known, near, strict=True)), []
        except (EmbeddingUnavailable, VectorsUnavailable) as error:
            return [], {}, [f"keyword search only: {error}"]

    def _read(self, text: str, said: EmbeddedQuery | None) -> _AnsweredQuery:
        window, newest, past = _time(self.index, text, self.where.asked_at)
        taken: list[str] = []
        if window is None:
            window, taken = self._event_days(text)
        asked = parse_query(self.index.words, text, window, said.spans if said else (), typed=self.typed)
        depth = max(self.depth, WHOLE_DAYS) if window and window.only else self.depth
        arms = find_without_model(self.index, asked, depth, self.where)
        return _AnsweredQuery(asked, newest, past, (*asked.correction_notes, *taken), arms)

    def _event_days(self, text: str) -> tuple[DateRange | None, list[str]]:
        """The days that a query tells by an event, once that is found, and what it was taken for."""
        event = dates.event_of(clean(text))
        if event is None:
            return None, []
        found = self._within(NEAR_EVENT).answers([event.phrase], [])[0]
        hit = event_hit(event.phrase, found.hits) if found.answered else None
        if hit is None:
            return None, []
        start, end = event.window(date.fromisoformat(hit.item.date))
        alone = is_generic(clean(text), (event.at,))
        days = (start.isoformat() if start else "", end.isoformat() if end else "")
        window = DateRange(*days, alone, (event.at,) if alone or event.days else (), not event.days)
        told = f"{hit.item.path}:{hit.item.line}: {hit.snippet.splitlines()[0][:LONGEST_EVENT]}"
        return window, [f"“{event.phrase}” is taken for {hit.item.date} ({told})"]

    def _candidates(self, asked: _UnderstoodQuery) -> _Candidates:
        index, one, said = self.index, asked.read, asked.said
        known = said if said is not None and said.vector.any() else None
        arms = self._arms(one, known, asked.near)
        scored = rank_candidates(index, one.asked, known, arms, self.where)
        every = scored
        if self.where.retired is None and not one.past:
            every = [each for each in every if not each.item.retired]
        return _Candidates(said, known, arms, scored, *_placed(index, asked.text, every, one))

    def _shown(self, asked: _UnderstoodQuery, there: _Candidates) -> SearchResult:
        index, one, known, window = self.index, asked.read, there.known, asked.read.asked.window
        limit = self._limit(one, there)
        kept, missing = self._kept(there.found, max(limit, BASELINE_RANK))
        scores = calibrated(one.asked, [each.one for each in kept])
        hits = tuple(
            _hit(index, one.asked, each, score, there.arms, there.replaced)
            for each, score in zip(kept[:limit], scores, strict=False)
            if score >= self.min_score
        )
        unknown = there.said is not None and known is None and bool(asked.text.strip())
        notes = [*asked.notes, *one.notes, *there.notes]
        notes += [f"keyword search only: {UNKNOWN}"] if unknown else []
        notes += [f"{missing} left out: changed in their files meanwhile"] if missing else []
        mode, passed = "hybrid" if known else "words", bool(hits) and hits[0].score >= ANSWERED
        days = None if window is None or window.approximate else window
        if days:
            hits = tuple(replace(hit, outside=not days.covers(hit.item)) for hit in hits)
        return SearchResult(hits, tuple(notes), mode, self.left, passed, days, index.words.count())

    def _limit(self, one: _AnsweredQuery, there: _Candidates) -> int:
        window = one.asked.window
        if not (self.whole_days and window and window.only):
            return self.limit
        inside = any(window.covers(each.item) for each in there.found)
        return max(self.limit, WHOLE_DAYS) if inside else self.limit

    def _kept(self, found: Sequence[Ranked], limit: int) -> tuple[list[KeptHit], int]:
        """What is shown of the candidates, and how many were nowhere in their files."""
        beliefs = not self.where.kinds
        return folded(self.index.words, found, self.present.confirm, limit, beliefs=beliefs)

    def _arms(
        self, one: _AnsweredQuery, said: EmbeddedQuery | None, near: Sequence[tuple[str, float]]
    ) -> Arms:
        """What the arms found, that of meaning too."""
        if said is None:
            return one.arms
        found = recall_arms.find_by_meaning(
            self.index, said.vector, near, self.depth, self.where, one.asked.query
        )
        return {**one.arms, "semantic": found}


WHOLE_DAYS = 50
"""Hits that a query is given that is only a time."""
LONGEST_EVENT = 100
"""Characters that are told of the text by which the day of an event was known."""
NEAR_EVENT = 10
"""Hits among which an event is looked for."""
SURE_EVENT = 0.75
"""The share of the best match that a text about the event must reach."""


def event_hit(phrase: str, hits: Sequence[Hit]) -> Hit | None:
    """Of the best of these hits the one that speaks of an event in its words as of something that happened:
    not of a plan, a wish, or what never came. The better match, then the later. None where none names a day,
    or has all the names in the phrase."""
    told = [
        word[: max(4, len(word) - 2)] for word in words_of(phrase) if len(word) > 2 and word not in STOP_WORDS
    ]
    names = [name.casefold() for name in re.findall(r"(?<!^)\b[A-Z]\w+", phrase)]
    near = [
        hit
        for hit in hits
        if len(hit.item.date) == len("2026-06-20")  # a `when:` may be a month alone
        and all(name in hit.item.text.casefold() for name in names)
        and 3 * sum(word in hit.item.text.casefold() for word in told) >= 2 * len(told)
        and not dates.is_planned(hit.item.text)
    ]
    sure = [hit for hit in near if hit.match >= SURE_EVENT * near[0].match]
    return max(
        sure,
        key=lambda hit: (dates.has_happened(hit.item.text), round(hit.match, 1), hit.item.date),
        default=None,
    )


DESCRIBED, NAMES = 4, 3
"""Hits that may tell who is described, and names of each that are tried."""
LONGEST_DESCRIBED = 200
"""Characters of a query that may describe somebody: each name costs a search."""


def _names_in(hit: Hit, query: str) -> list[str]:
    """Who may be meant by a text: the title of the note that it stands in, and the names in it that the query
    does not have."""
    title = hit.item.heading.partition(" > ")[0].partition(" (")[0]
    named = (*([title] if title and hit.item.record == "passage" else ()), *hit.item.entities)
    every = dict.fromkeys((*named, *entities(hit.item.text)))
    return [name for name in every if name.casefold() not in query.casefold()][:NAMES]


def _time(index: Index, text: str, now: datetime | None) -> tuple[DateRange | None, dates.Order | None, bool]:
    """The days that a query means, as of `now` (None: the clock) and where the bank is, whether it asks for
    the newest or the oldest, and whether for what held in the past."""
    text = clean(text)
    now = now or index.store.now()
    time = dates.read(text, now, index.store.config.zone)
    alone = is_generic(text, time.at, foreign=time.foreign)
    window = DateRange(time.start or "", time.end or "", alone, time.at) if time else None
    today = f"{now.astimezone(index.store.config.zone):%Y-%m-%d}"
    past = time.order == "earliest" or dates.asks_past(text) or bool(time.end and time.end <= today)
    return window, time.order, past


def _placed(
    index: Index, text: str, found: list[Ranked], one: _AnsweredQuery
) -> tuple[list[Ranked], Mapping[str, IndexItem], list[str]]:
    """The candidates after what has a say in their order besides their scores; which replaces which; and what
    could have no say."""
    found, notes = penalize_untrusted(dedupe.with_origin_of_proofs(index.words, found)), []
    if index.cross is not None and text.strip():
        try:
            found = apply_cross_encoder(index.cross, clean(text), found)
        except CrossUnavailable as error:
            notes = [f"ordered without the cross-encoder: {error}"]
    if one.newest:
        found = order_by_time(found, one.newest)
    elif not one.past:
        found = recent_first(found, one.asked)
    if one.asked.window:
        found = days_first(found, one.asked.window)
    return (found, {}, notes) if one.past else (*dedupe.newer_first(found, text), notes)


def _left(left: Mapping[str, int]) -> str:
    files, texts = left.get("files", 0), left.get("texts", 0)
    said = [f"{counted(files, 'changed file')} not read so far"] if files else []
    said += [f"{counted(texts, 'item')} keyword-only so far"] if texts else []
    return ", ".join(said)


def _hit(
    index: Index,
    asked: ParsedQuery,
    kept: KeptHit,
    score: float,
    arms: Arms,
    replaced: Mapping[str, IndexItem],
) -> Hit:
    one, key = kept.one, kept.one.item.key
    by = _places(arms, one.item)
    length = OF_SESSION if one.item.record == SESSION else LENGTH
    weights = asked.weights
    idf = {**{form: weights.idf[own[0]] for form, own in weights.forms.items()}, **weights.idf}
    shown = snippet(index.words, one.item.text, idf, length)
    return Hit(one.item, score, one.score, shown, by, one.parts, tuple(kept.under), replaced.get(key))


# -- why not -----------------------------------------------------------------------------------------------
# What became of an item that was expected in an answer: which arm found it, and what kept it out.


WIDE = 1000
"""So far down an arm's order an item is looked for that is not among its candidates."""


@dataclass(frozen=True, slots=True)
class SearchTrace:
    """What became of an item in a search.

    `cause` is one of: `shown`; `folded` (under the hit `by`, which says the same or was made of it);
    `min_score`; `older` (`by` gives a newer value) and `limit`, beyond the hits asked for; `displaced`, by
    who the query describes; `filter` (by those of `filters`); `phrase`, which it lacks; `retired`; `no_arm`,
    among no arm's candidates; `no_match`, none of what it has in common counts; `changed`, its lines are
    nowhere in its file; `held` and `not_indexed`, with no item.

    `rank` is its place once what says the same is folded, `score` as `Hit.score`, None where it was no
    candidate; `arms` has its (rank, raw score) in each arm's order, also beyond the `depth` candidates that
    an arm gives.
    """

    cause: str
    answer: SearchResult
    item: IndexItem | None = None
    rank: int | None = None
    score: float | None = None
    arms: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)
    by: IndexItem | None = None
    filters: tuple[str, ...] = ()
    limit: int = 0
    min_score: float = 0.0
    depth: int = 0


class _SearchTracer:
    """One search of which all steps are known."""

    def __init__(
        self, how: _SearchOptions, one: _AnsweredQuery, there: _Candidates, answer: SearchResult
    ) -> None:
        self.how, self.one, self.there, self.answer = how, one, there, answer
        self.limit = how._limit(one, there)

    def trace(self, item: IndexItem | None) -> SearchTrace:
        how = self.how
        known = {"answer": self.answer, "limit": self.limit, "min_score": how.min_score, "depth": how.depth}
        if item is None:
            return SearchTrace("not_indexed", **known)  # type: ignore[arg-type]
        kept, _ = how._kept(self.there.found, max(len(self.there.found), 1))
        every = (*self.there.found, *self.there.scored)  # what is retired is among the latter alone
        own = next((each for each in every if each.item.key == item.key), None)
        rank = next((n for n, each in enumerate(kept, 1) if each.one.item.key == item.key), None)
        score = self._score(own, kept, rank) if own else None
        cause, by, filters = self._cause(item, kept, own, rank, score or 0.0)
        return SearchTrace(
            cause, item=item, rank=rank, score=score, arms=self._arms(item), parts=own.parts if own else {},
            by=by, filters=filters, **known,  # type: ignore[arg-type]
        )  # fmt: skip

    def _score(self, own: Ranked, kept: Sequence[KeptHit], rank: int | None) -> float:
        """As `Hit.score`, also of an item that is no hit."""
        best = [each.one for each in kept[: max(self.limit, BASELINE_RANK)]]
        at = min(rank - 1 if rank else len(best), len(best))
        return calibrated(self.one.asked, [*best[:at], own, *best[at + 1 :]])[at]

    def _cause(
        self, item: IndexItem, kept: Sequence[KeptHit], own: Ranked | None, rank: int | None, score: float
    ) -> tuple[str, IndexItem | None, tuple[str, ...]]:
        if any(hit.item.key == item.key for hit in self.answer.hits):
            return "shown", None, ()
        if own is None:
            return self._no_candidate(item)
        above = next((hit.item for hit in self.answer.hits if _stands_for(hit.folded, item)), None)
        above = above or next((each.one.item for each in kept if _stands_for(each.under, item)), None)
        if above:
            return "folded", above, ()
        if not any(each.item.key == item.key for each in self.there.found):
            return "retired", None, ()
        if rank is None:
            return "changed", None, ()
        if score < self.how.min_score:
            return "min_score", None, ()
        newer = [key for key, old in self.there.replaced.items() if old.key == item.key]
        if newer:
            return "older", next(iter(self.how.index.words.get(newer)), None), ()
        return "displaced" if rank <= self.limit else "limit", None, ()

    def _no_candidate(self, item: IndexItem) -> tuple[str, None, tuple[str, ...]]:
        words, where, query = self.how.index.words, self.how.where, self.one.asked.query

        def passes(allowed: Filters | None, phrases: Query | None = None) -> bool:
            return any(each.key == item.key for each in words.by_text([item.vhash], allowed, phrases))

        alone = {name: one for name, one in where.single() if not passes(one)}
        if alone:
            return "filter", None, tuple(alone)
        if query.phrases and not passes(None, query):
            return "phrase", None, ()
        found = any(each.item.key == item.key for arm in self.there.arms.values() for each in arm)
        return "no_match" if found else "no_arm", None, ()

    def _arms(self, item: IndexItem) -> Mapping[str, tuple[int, float]]:
        """Where each arm has the item, looked for further down by words and meaning where it is not among
        their candidates. Items are not read for that: texts alone are ranked by meaning."""
        found = _places(self.there.arms, item)
        how, said, query = self.how, self.there.known, self.one.asked.query
        wide: dict[str, Iterable[tuple[str, str, float]]] = {}
        if "keyword" not in found:
            hits = how.index.words.search(query, WIDE, how.where)
            wide["keyword"] = ((item.key, hit.key, hit.score) for hit in hits)
        if said is not None and "semantic" not in found and not (how.where or query.phrases):
            near = how.index.nearest([said.vector], WIDE)[0]
            wide["semantic"] = ((item.vhash, name, cosine) for name, cosine in near)
        for arm, order in wide.items():
            ranks = ((n, score) for n, (own, other, score) in enumerate(order, 1) if own == other)
            if place := next(ranks, None):
                found[arm] = place
        return found


def _stands_for(folded: Sequence[IndexItem], item: IndexItem) -> bool:
    return any(each.key == item.key for each in folded)


def _places(arms: Arms, item: IndexItem) -> dict[str, tuple[int, float]]:
    """(rank, raw score) of an item in each arm that found it, by name."""
    key = item.key
    return {
        name: (each.rank, each.score)
        for name, found in arms.items()
        for each in found
        if each.item.key == key
    }


class Searching:
    """What there is to know about searches of one bank besides their hits. `refresh` brings the index up to
    date."""

    def __init__(
        self, store: Store, index: Callable[[], Index], refresh: Callable[[], Refresh],
        get: Callable[[str], Excerpt],
    ) -> None:  # fmt: skip
        self._store, self._index, self._refresh, self._get = store, index, refresh, get

    def why_not(
        self, query: str, target: str, *, limit: int | None = None, min_score: float | None = None,
        filters: Filters | None = None,
    ) -> SearchTrace:  # fmt: skip
        """What became of a fact or line (`^id`, `PATH:LINE`, or what is best found by these words) in a
        search for a query, asked as `Memory.search` would: where each arm has it, and what kept it out of the
        answer. NotFound, Usage for a target that there is not; Usage for a query that says nothing."""
        config, index = self._store.config, self._index()
        place, read = self._place(target, index), wanted(query, config)
        if read.skipped or not read.text.strip():
            raise Usage(read.why or "the query is empty", where=query[:80])
        with index.lock:
            how = _SearchOptions(
                index, self._refresh(), config.search_limit if limit is None else limit,
                config.min_score if min_score is None else min_score,
                Filters() if filters is None else filters,
                max(DEPTH, limit or 0), whole_days=limit is None,
            )  # fmt: skip
            item = next(iter(index_words.items_at(index.words, place)), None)
            found = how.trace(read.text, item)
        if item is None and place.path in self._store.survey().held:
            return replace(found, cause="held")
        return found

    def _place(self, target: str, index: Index) -> Place:
        """Where a target stands. NotFound, Usage."""
        try:
            there = self._get(target)
        except (Usage, NotFound):
            terms = tuple(word for word in dict.fromkeys(words_of(target)) if word not in STOP_WORDS)
            if target.startswith("^") or len(terms) < 2:
                raise
            with index.lock:
                self._refresh()
                hits = index.words.search(Query(terms), 1)
                item = next(iter(index.words.get([hit.key for hit in hits])), None)
            if item is None:
                raise
            return Place(item.path, item.line, item.end)
        if there.id is None and 1 == there.line < there.end == there.lines:
            raise Usage("a whole file is meant", where=target[:200], hint="name ^id or PATH:LINE")
        return Place(there.path, there.line, there.end)


# -- asking ------------------------------------------------------------------------------------------------
# Queries as they came to a door: each searched for as it was read, or skipped and told why.


def wanted(query: str, config: Config) -> QueryText:
    """The part of a query that a person asked, by the bank's settings; see docs/cli.md, How a query is
    cleaned."""
    return read_query(query, config.long_query, config.longest_query)


def answered(
    index: Index,
    queries: Sequence[str],
    config: Config,
    limit: int | None = None,
    min_score: float | None = None,
    refresh: Refreshing | None = None,
    **how: Any,
) -> list[SearchResult]:
    """An Answer for each query, in order, as `search_many` gives it; what is skipped has no hits. `limit` and
    `min_score` are the settings' where they are not given."""
    how["limit"] = config.search_limit if limit is None else limit
    how["whole_days"] = limit is None
    how["min_score"] = config.min_score if min_score is None else min_score
    every = [wanted(query, config) for query in queries]
    texts = [one.text for one in every if not one.skipped]
    found = iter(
        _sound(index, refresh or index.refresh, lambda fresh: search_many(index, texts, refresh=fresh, **how))
    )
    answers = [SearchResult(()) if one.skipped else next(found) for one in every]
    return [
        replace(answer, notes=(one.why, *answer.notes)) if one.why else answer
        for one, answer in zip(every, answers, strict=True)
    ]


def _sound(index: Index, refresh: Refreshing, ask: Callable[[Refreshing], T]) -> T:
    """What is asked of the index after that refresh; once more where its words turn out to be damaged."""
    try:
        return ask(refresh)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not is_damaged(error):
            raise
        why = str(error)
        return ask(lambda: _anew(index, why))


def _anew(index: Index, why: str) -> Refresh:
    """Words made anew from the files: they are damaged in a place that the refresh had no reason to read."""
    with index.lock:
        index.close()
        index.generations.discard()
        done = index.refresh(vectors=False)
    return replace(done, notes=(*done.notes, f"the word index was damaged ({why}); rebuilt"))


# -- list --------------------------------------------------------------------------------------------------
# What passes the filters, without a query.


LISTED = ("fact", "passage")
"""Records that are listed where no kind is asked for: what was remembered and noted, not what follows."""


@dataclass(frozen=True, slots=True)
class ListResult:
    """Items, the newest day first; `total` is how many there are without a limit, `notes` what a person
    should hear."""

    items: tuple[IndexItem, ...]
    total: int = 0
    notes: tuple[str, ...] = ()


def listed(index: Index, filters: Filters, limit: int | None, refresh: Refreshing) -> ListResult:
    """What passes the filters, each item checked against its file. The index is updated first."""
    where = replace(filters, kinds=filters.kinds or LISTED, retired=bool(filters.retired))
    return _sound(index, refresh, lambda fresh: _listed(index, where, limit, fresh))


def _listed(index: Index, where: Filters, limit: int | None, refresh: Refreshing) -> ListResult:
    with index.lock:
        report, present, found = refresh(), CurrentFiles(index.files), list[IndexItem]()
        notes = [*report.notes, *(str(problem) for problem in report.failed)]
        if report.left_files:
            notes.append(f"indexing: {_left({'files': report.left_files})}")
        total, items = index.words.listed(where)
        for item in items:
            if len(found) == limit:
                break
            if there := present.confirm(item):
                found.append(there)
            else:
                total -= 1
        return ListResult(tuple(found), total, tuple(notes))


def explained(query: str, config: Config, now: datetime, words: WordIndex | None) -> QueryExplanation:
    """How the cleaned query is interpreted at `now`."""
    return explain(wanted(query, config), now, config.zone, words)


@dataclass(frozen=True, slots=True)
class RecallResult:
    """A block for a prompt, empty if nothing was found or fits; `left` are the lines that did not fit into
    `most` tokens or, if that is 0, into a hook's characters. `answer` is the search."""

    block: str
    left: Sequence[str]
    most: int
    answer: SearchResult


# -- prompts -----------------------------------------------------------------------------------------------
# What of an answer goes into a prompt, where nobody looks through it: nothing where there is no answer, and
# nothing that is far below the first hit. Where nobody has searched: facts, then at most two passages of
# sessions, and only if the first of them is likely enough.


_SEVERAL = re.compile(r"[,;]|\b(?:and|or|both|each|every|all|list|compare|which \w+s)\b", re.IGNORECASE)
"""What a query says that asks for several things."""
GOOD_FACT, GOOD_PASSAGE = 0.58, 0.75
"""The least score of the first hit, a fact or a passage, from which on a prompt that asks is given it."""
SERVED = 0.5
"""The least of `served` from which on a prompt is given something. With it 90 of 100 tasks about what was
never said are given nothing."""
PROMPT_WORDS = 8
"""A longer prompt shares rare words with any text by chance: what it shares counts by so many words."""


def told(answer: SearchResult, query: str) -> SearchResult:
    """The answer with those hits only that a prompt is given by who asked for it."""
    return replace(answer, hits=_near_first(answer.hits, query) if answer.answered else ())


def for_prompt(
    answer: SearchResult, prompt: str, project: str, config: Config, but: str = ""
) -> SearchResult:
    """The answer with those hits only that a prompt of a project is given, none of the session `but`."""
    scope = f"project:{project}".casefold()

    def fits(hit: Hit) -> bool:
        tags = [tag for one in (hit.item, *hit.folded) for tag in one.tags]
        return (
            config.sessions_recall and (not but or hit.item.session != but) and (not project or scope in tags)
        )

    hits = [hit for hit in answer.hits if hit.item.record != SESSION or fits(hit)]
    if not hits or not _worth_telling(hits, prompt, answer):
        return replace(answer, hits=())
    return replace(answer, hits=likely(hits, prompt, config))


def _worth_telling(hits: Sequence[Hit], prompt: str, answer: SearchResult) -> bool:
    """Whether a prompt is given something of what was found for it."""
    if answer.mode == "words":  # then the score is never so sure, and no match comes by meaning
        return hits[0].score >= ANSWERED
    good = GOOD_PASSAGE if hits[0].item.record == SESSION else GOOD_FACT
    asked = asks(prompt) and hits[0].score >= good
    return asked or served(hits, prompt, answer.items) >= SERVED


def served(hits: Sequence[Hit], prompt: str, items: int) -> float:
    """The chance, 0 to 1, that one of these hits, at least one, helps with a task that asks for nothing. The
    weights are in `data/answers.json`, made by `benchmarks/prompts.py`."""
    return likelihood("prompt", prompt_features(hits, prompt, items))


def prompt_features(hits: Sequence[Hit], prompt: str, items: int) -> Mapping[str, float]:
    """What `served` depends on, by name: how well the best hit matches; the rare words that the prompt shares
    with one of them (BM25, as a share of what the rarest word of a bank of so many `items` brings, for each
    `PROMPT_WORDS` words); and the size of the bank, where more is met by chance."""
    shared = max((hit.arms["keyword"][1] for hit in hits if "keyword" in hit.arms), default=0.0)
    words = max(1.0, len(_WORD.findall(prompt)) / PROMPT_WORDS)
    return {
        "match": max(hit.match for hit in hits),
        "shared": shared / inverse_frequency(1, items) / words,
        "size": math.log(max(items, 1)),
    }


def likely(hits: Sequence[Hit], prompt: str, config: Config) -> tuple[Hit, ...]:
    """Those of the hits that a prompt is given: not far below the first, facts before sessions' passages."""
    near = _near_first(hits, prompt)
    facts = [hit for hit in near if hit.item.record != SESSION][: config.search_limit]
    return (*facts, *[_wider(hit) for hit in near if hit.item.record == SESSION][:PASSAGES])


IN_PROMPT = 800
"""Characters of a passage that a prompt is given: nobody looks for the rest."""


def _wider(hit: Hit) -> Hit:
    """A passage with more of what stands around its snippet."""
    text, core = hit.item.text, hit.snippet.strip("…")
    at = text.find(core)
    if at < 0 or len(text) <= len(core):
        return hit
    start = max(0, min(at - (IN_PROMPT - len(core)) // 2, len(text) - IN_PROMPT))
    return replace(hit, snippet=_cut(text, start, IN_PROMPT) if len(text) > IN_PROMPT else text)


def _near_first(hits: Sequence[Hit], query: str) -> tuple[Hit, ...]:
    """The hits that are not far below the first, or all where the query asks for several things."""
    if not hits or _SEVERAL.search(query):
        return tuple(hits)
    return tuple(hit for hit in hits if hit.match >= SAME_TOPIC * hits[0].match)
