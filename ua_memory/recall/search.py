"""Search: refresh the index, retrieve, rank, verify each hit against its file, cut snippets."""

from __future__ import annotations

import itertools
import math
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ua_memory.config import Config
from ua_memory.errors import NotFound, Usage, checked
from ua_memory.index import words as index_words
from ua_memory.index.embedding import CrossUnavailable, EmbeddingUnavailable, embed_queries
from ua_memory.index.filters import LISTED_KINDS, Filters
from ua_memory.index.items import SESSION, IndexItem
from ua_memory.index.sync import NOT_REQUESTED, READY, CurrentFiles, Index, Refresh
from ua_memory.index.terms import STOP_WORDS, Query, clean, is_english, is_unspaced, specific_words
from ua_memory.index.terms import words as words_of
from ua_memory.index.vectors import VectorsUnavailable
from ua_memory.index.words import WordIndex, is_damaged
from ua_memory.markdown.document import texthash
from ua_memory.recall import arms as recall_arms
from ua_memory.recall.arms import (
    ArmHit,
    Arms,
    DateRange,
    ParsedQuery,
    Part,
    QueryExplanation,
    Ranked,
    explain,
    inverse_frequency,
    is_generic,
    parse_query,
    query_dates,
)
from ua_memory.recall.calibration import (
    ANSWER_THRESHOLD,
    BASELINE_RANK,
    SAME_TOPIC,
    calibrated_scores,
    logistic_probability,
)
from ua_memory.recall.dedupe import KeptHit, fold, with_support
from ua_memory.recall.fusion import (
    DEPTH,
    apply_cross_encoder,
    days_first,
    find_without_model,
    identified_first,
    in_file_order,
    named_note_first,
    order_by_time,
    penalize_untrusted,
    rank_candidates,
    recent_first,
    unanswered_last,
    with_origin_of_proofs,
)
from ua_memory.recall.newer import newer_first, replaced_first, why_not_replaced
from ua_memory.records import Place
from ua_memory.text import dates, questions
from ua_memory.text.names import entities
from ua_memory.text.noise import PROMPT_PASSAGES, QueryText, read_query
from ua_memory.text.wording import counted

if TYPE_CHECKING:
    from ua_memory.index.embedding import EmbeddedQuery
    from ua_memory.index.terms import Query
    from ua_memory.knowledge.statements import Excerpt
    from ua_memory.store.store import Store
    from ua_memory.text.questions import Description


# -- snippets ----------------------------------------------------------------------------------------------


SNIPPET_LENGTH, SESSION_SNIPPET_LENGTH = 700, 300
"""Characters of a snippet (as OpenClaw shows), and of that of a session's passage."""
LEAST_SHOWN = 120
"""Characters of its line that a snippet shows behind a word of the query; after a question, of the next."""

_WORD = re.compile(r"\w+")


def snippet(words: WordIndex, text: str, idf: Mapping[str, float], length: int = SNIPPET_LENGTH) -> str:
    """At most `length` characters of the text, where the query's words are densest, cut at word boundaries
    and marked by …"""
    if len(text) <= length:
        return text
    return _cut(text, _densest(_matches(words, text, idf), idf, length - 2, len(text)), length)


def _cut(text: str, start: int, length: int) -> str:
    """At most `length` characters of a text from `start` on, marked where they are cut."""
    end = min(len(text), start + length - 2)
    if start > 0:
        start = _word_boundary(text, start, 1)
    if end < len(text):
        end = _word_boundary(text, end, -1)
    return ("…" if start > 0 else "") + text[start:end].strip() + ("…" if end < len(text) else "")


def _matches(words: WordIndex, text: str, idf: Mapping[str, float]) -> list[tuple[int, int, str]]:
    prefixes = {stem[:2] for stem in idf}
    parts_of = {word: words_of(word) for word in set(_WORD.findall(text)) if _may_match(word, prefixes)}
    stems = words.vocabulary.stems({part for parts in parts_of.values() for part in parts})
    known = {word: [stems[p] for p in parts if idf.get(stems[p])] for word, parts in parts_of.items()}
    # A long run without spaces (CJK) is one span; the window is placed around its middle.
    return [
        (match.start(), _end_shown(text, match.end()), stem)
        for match in _WORD.finditer(text)
        for stem in known.get(match.group(), ())
    ]


def _end_shown(text: str, end: int) -> int:
    """How far a text is shown with a word that ends here: what is said of it often stands behind it."""
    line = text.find("\n", end, end + LEAST_SHOWN)
    if line > 0 and text[line - 1] in "?？":  # the answer is in the next line
        return _end_shown(text, line + 1)
    return line if line >= 0 else min(end + LEAST_SHOWN, len(text))


def _may_match(word: str, prefixes: Set[str]) -> bool:
    """Whether the stem of a word may have one of these prefixes: an ASCII word starts like its stem."""
    simple = word.isascii() and word.isalpha() and word[1:].islower()
    return not simple or word[:2].lower() in prefixes


def _densest(found: list[tuple[int, int, str]], idf: Mapping[str, float], length: int, size: int) -> int:
    """The start of the window with the rarest distinct matches, then most matches."""
    best, chosen = (0.0, 0), (0, 0)
    low = 0
    for high in range(len(found)):
        while found[high][1] - found[low][0] > length and low < high:
            low += 1
        window = found[low : high + 1]
        # `sum` would depend on the order of a set, which differs between processes.
        value = math.fsum(idf[stem] for stem in {stem for _, _, stem in window}), len(window)
        if value > best:
            best, chosen = value, (found[low][0], min(found[high][1], found[low][0] + length))
    middle = (chosen[0] + chosen[1]) // 2 if found else 0
    return max(0, min(middle - length // 2, size - length))


def _word_boundary(text: str, at: int, step: int) -> int:
    """The nearest whitespace in a direction within 40 characters, else `at`."""
    for offset in range(40):
        here = at + offset * step
        if 0 < here < len(text) and text[here - (step < 0)].isspace():
            return here
    return at


# -- search ------------------------------------------------------------------------------------------------


T = TypeVar("T")
Near: TypeAlias = Mapping[int, Sequence[tuple[str, float]]]
Refreshing: TypeAlias = "Callable[[], Refresh]"
QUERY_BATCH = 64
"""Queries embedded and searched together."""

UNKNOWN_WORDS = "the model knows too few of these words, so only notes with the same words are found"


@dataclass(frozen=True, slots=True)
class Hit:
    """A result. `score` is a probability (`calibration.answer_probability`), `match` the score that hits are
    ordered by (`rerank` or `fuse`) and `parts` its parts. `arms` is {retriever that found it: (rank, raw
    score)}. `folded` are its duplicates (`dedupe.fold`), `replaces` is an older item with
    another value."""

    item: IndexItem
    score: float
    match: float
    snippet: str
    arms: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    parts: Mapping[Part, float] = field(default_factory=dict)
    folded: tuple[IndexItem, ...] = ()
    replaces: IndexItem | None = None
    outside: bool = False
    """Whether it is of other days than the query asks about."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits, best first; messages about what was left out or unavailable; `mode` is 'hybrid' or 'words'.

    `stale` counts what there was no time to index: changed `files`, `texts` without a vector. `answered`:
    whether the hits probably contain the answer; if not, they are only the nearest.
    """

    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()
    mode: str = "words"
    stale: Mapping[str, int] = field(default_factory=dict)
    answered: bool = False
    days: DateRange | None = None
    """The days that the query asks about, if it names any."""
    items: int = 0
    """The number of items in the index."""


def search(
    index: Index,
    query: str,
    *,
    limit: int = 6,
    min_score: float = 0.0,
    filters: Filters | None = None,
    refresh: Refreshing | None = None,
) -> SearchResult:
    """The best hits for a query. Any text is a valid query; an empty one has no hits."""
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
    """A result for each query, in order. The index is refreshed once, by `refresh` if it is given.

    `depth` is the number of candidates per retriever (default: DEPTH, at least `limit`). With `whole_days` a
    query for nothing but a time may have up to `WHOLE_DAYS_HITS` hits. `by_words` is for search while typing:
    nothing is embedded, and the last word may be incomplete.
    """
    queries = [questions.with_plain_tag(query) for query in queries]
    parts = [queries[start : start + QUERY_BATCH] for start in range(0, len(queries), QUERY_BATCH)]
    # A loaded model embeds the first queries during the refresh.
    begun = [] if by_words or not parts or not index.ready else _embed(index, parts[0])[0]
    with index.lock:
        report, depth = (refresh or index.refresh)(), depth or max(DEPTH, limit)
        where = Filters() if filters is None else filters
        run = _Search(index, report, limit, min_score, where, depth, whole_days=whole_days, typed=by_words)
        answers: list[SearchResult] = []
        with index.words.reading():
            for part in parts:
                answers += map(run.resolve, part, run.answers(part, begun))
                begun = []
        return answers


def _embed(index: Index, queries: Sequence[str]) -> tuple[list[EmbeddedQuery], list[str]]:
    """(the queries, being embedded in the background, no notes), or ([], why not)."""
    try:
        return embed_queries(index.embeds, [clean(query) for query in queries]), []
    except EmbeddingUnavailable as error:
        return [], [f"keyword search only: {error}"]


@dataclass(frozen=True, slots=True)
class _PreparedQuery:
    """A parsed query with the hits of all retrievers but the semantic one. `order`: the query asks for the
    newest or oldest; `past`: it asks about the past."""

    asked: ParsedQuery
    order: dates.Order | None
    past: bool
    notes: Sequence[str]
    arms: Arms


@dataclass(frozen=True, slots=True)
class _SearchInput:
    """A query with its embedding, if there is one, and the (text id, cosine) of the nearest texts."""

    text: str
    prepared: _PreparedQuery
    embedded: EmbeddedQuery | None
    near: Sequence[tuple[str, float]]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Candidates:
    """The ranked candidates of a query. `embedded` is the query's embedding, `known` the same if the model
    knows any of its words; `scored` are all candidates, `found` those in their final order, and `replaced` is
    {key of a newer item: the older one it replaces}."""

    embedded: EmbeddedQuery | None
    known: EmbeddedQuery | None
    arms: Arms
    scored: Sequence[Ranked]
    found: list[Ranked]
    replaced: Mapping[str, IndexItem]
    notes: Sequence[str]


class _Search:
    """A search for several queries with the same options."""

    def __init__(
        self,
        index: Index,
        report: Refresh,
        limit: int,
        min_score: float,
        where: Filters,
        depth: int,
        *,
        whole_days: bool = False,
        typed: bool = False,
    ) -> None:
        self.index, self.semantic, self.present = index, report.semantic, CurrentFiles(index.files)
        self.report, self.whole_days, self.typed = report, whole_days, typed
        self.limit, self.min_score, self.where, self.depth = limit, min_score, where, depth
        left = (("files", report.left_files), ("texts", report.left_texts))
        self.left = {name: count for name, count in left if count}
        self.notes = [*report.notes, *(str(problem) for problem in report.failed)]
        if report.semantic not in (READY, NOT_REQUESTED):
            self.notes.append(f"keyword search only: {report.semantic}")
        self.behind = [f"indexing: {_backlog(self.left)}"] if self.left else []

    def answers(self, queries: Sequence[str], begun: list[EmbeddedQuery]) -> list[SearchResult]:
        """A result for each query. Words are searched while the model embeds."""
        return [self._result(one, self._candidates(one)) for one in self._prepare(queries, begun)]

    def trace(self, text: str, item: IndexItem | None) -> SearchTrace:
        """The answer to one query, and what became of an item in it."""
        text = questions.with_plain_tag(text)
        (one,) = self._prepare([text], [])
        candidates = self._candidates(one)
        answer = self.resolve(text, self._result(one, candidates))
        return _SearchTracer(self, one.prepared, candidates, answer).trace(item)

    def _prepare(self, queries: Sequence[str], begun: list[EmbeddedQuery]) -> list[_SearchInput]:
        embedded, why = begun if self.semantic == READY else [], list[str]()
        if not embedded and self.semantic == READY:
            embedded, why = _embed(self.index, queries)
        prepared = [self._parse(text, embedded[n] if embedded else None) for n, text in enumerate(queries)]
        near: Near = {}
        if embedded:
            self._preload(embedded[0], prepared[0].arms["keyword"])
            embedded, near, why = self._near(embedded)
        notes = [*self.notes, *why, *self.behind]
        return [
            _SearchInput(text, one, embedded[n] if embedded else None, near.get(n, ()), notes)
            for n, (text, one) in enumerate(zip(queries, prepared, strict=True))
        ]

    def resolve(self, text: str, direct: SearchResult) -> SearchResult:
        """The answer to a query, given that of a direct search: who describes somebody instead of naming them
        ("the man who fell") is searched for first, then what is asked of that name."""
        asked = clean(text)
        if len(asked) > LONGEST_DESCRIBED:
            return direct
        if tasks := questions.asks_for_tasks(asked):
            return self._find_tasks(*tasks, direct)
        if both := questions.two_questions(asked):
            return self._join_questions(both, direct)
        described = questions.find_description(asked)
        if described is None or not questions.asks_more(described):
            return direct
        if described.after is not None:
            return self._resolve_role(text, described, direct)
        hits = self._lookup(DESCRIBED_HITS, [described.clause])[0].hits
        least = max(EVENT_SHARE * hits[0].match, KNOWN_DESCRIPTION) if hits else 0.0
        who = [hit for hit in hits if hit.match >= least and not questions.is_question(hit.item.text)]
        found = self._find_about(text, described, who, ANSWER_THRESHOLD)
        return self._joined(direct, *found) if found else direct

    def _find_tasks(self, kind: str, about: str, direct: SearchResult) -> SearchResult:
        """The items of task lists of a kind, of those `about` a topic or some days, before other answers."""
        if self.where.kinds:
            return direct
        where = replace(self.where, kinds=(kind,), retired=bool(self.where.retired))
        found = self._lookup(self.limit, [about], where)[0] if about else None
        only = found is not None and found.days is not None and found.days.only
        if found and (only or specific_words(about)):
            hits = [hit for hit in found.hits if (only or "keyword" in hit.arms) and not hit.outside]
        else:
            items = filter(None, map(self.present.confirm, self.index.words.listed(where, LAST_DAY)[1]))
            hits = [Hit(item, 0.0, 0.0, item.text) for item in itertools.islice(items, self.limit)]
        hits = [replace(hit, score=max(hit.score, ANSWER_THRESHOLD)) for hit in hits]
        hits = [hit for hit in hits if hit.score >= self.min_score]
        answers = tuple(hit for hit in direct.hits if hit.score >= ANSWER_THRESHOLD)
        return self._joined(replace(direct, hits=answers), *hits) if hits else direct

    def _join_questions(self, both: Sequence[str], direct: SearchResult) -> SearchResult:
        """The hits of each of two questions by turns, those of an answered one first."""
        found = list(map(self.resolve, both, self._lookup(self.limit, both)))
        found.sort(key=lambda one: not one.answered)
        pairs = itertools.zip_longest(*(one.hits for one in found))
        hits = [hit for pair in pairs for hit in pair if hit and hit.score >= self.min_score]
        if direct.answered and direct.hits[0].score > max((hit.score for hit in hits), default=0.0):
            hits.insert(0, direct.hits[0])  # it has both
        same = all(one.days == direct.days for one in found)  # the days of one question are not the other's
        return self._joined(direct if same else replace(direct, days=None), *hits) if hits else direct

    def _resolve_role(self, text: str, role: Description, direct: SearchResult) -> SearchResult:
        """The same for a role ("our cellist"), only if a direct search finds no more than who has it. What is
        found comes second if it is no answer, or a worse one."""
        hits = self._lookup(DESCRIBED_HITS, [role.clause])[0].hits
        who = [hit for hit in hits if hit.match >= KNOWN_ROLE and not questions.is_question(hit.item.text)]
        if direct.answered and direct.hits[0].item.key not in {hit.item.key for hit in who}:
            return direct
        found = self._find_about(text, role, who, self.min_score)
        if not found:
            return direct
        about, who_has_it = found
        best = direct.hits[0] if direct.hits else about
        if about.score >= max(ANSWER_THRESHOLD, best.score if direct.answered else 0):
            return self._joined(direct, about, who_has_it)
        return self._joined(direct, best if direct.answered else replace(who_has_it, score=best.score), about)

    def _find_about(self, text: str, asked: Description, who: list[Hit], least: float) -> tuple[Hit, ...]:
        """The best hit, of at least a score, about a name in the texts that may say `who` is described, and
        the one of these with the name."""
        named = [(hit, name) for hit in who for name in _candidate_names(hit, text, asked)]
        queries = [questions.replace_description(asked, name, hit.item.text) for hit, name in named]
        found = [
            (about, hit)
            for (hit, name), answer in zip(named, self._lookup(DESCRIBED_HITS, queries), strict=True)
            for about in answer.hits
            if about.score >= least and about.item.key != hit.item.key and _is_about(about, name)
        ]
        return max(found, key=lambda pair: pair[0].score, default=())

    def _joined(self, direct: SearchResult, *first: Hit) -> SearchResult:
        """The hits of a direct search after these, each once."""
        every: dict[str, Hit] = {}
        for hit in (*first, *direct.hits):
            every.setdefault(hit.item.key, hit)
        scores = itertools.accumulate((hit.score for hit in every.values()), min)
        scored = (replace(hit, score=score) for hit, score in zip(every.values(), scores, strict=True))
        hits = _mark_outside(scored, direct.days)
        return replace(direct, hits=hits[: self.limit], answered=hits[0].score >= ANSWER_THRESHOLD)

    def _lookup(self, limit: int, queries: Sequence[str], where: Filters | None = None) -> list[SearchResult]:
        """The answers of an intermediate search, as part of this one; by default with the same filters."""
        within = self.where if where is None else where
        steps = _Search(self.index, self.report, limit, 0.0, within, self.depth)
        steps.present = self.present
        return steps.answers(queries, [])

    def _preload(self, embedded: EmbeddedQuery, likely: Sequence[ArmHit]) -> None:
        """Read the embeddings of the keyword hits, which are compared, and the files of the first, which will
        probably be shown, until the query is embedded."""
        if not embedded.ready:
            self.index.cache.read(self.index.embeds.model, [one.item.vhash for one in likely])
        for one in likely[: self.limit]:
            if not embedded.ready:
                self.present.preload(one.item.path)

    def _near(self, embedded: list[EmbeddedQuery]) -> tuple[list[EmbeddedQuery], Near, list[str]]:
        """(the queries, {number of a query: the nearest texts}, no notes), or ([], {}, why not)."""
        try:
            # A query without a known word has a zero vector, and is searched by words only.
            known = [number for number, one in enumerate(embedded) if one.vector.any()]
            near = self.index.nearest([embedded[number].vector for number in known], self.depth)
            return embedded, dict(zip(known, near, strict=True)), []
        except (EmbeddingUnavailable, VectorsUnavailable) as error:
            return [], {}, [f"keyword search only: {error}"]

    def _parse(self, text: str, embedded: EmbeddedQuery | None) -> _PreparedQuery:
        window, order, past = query_dates(self.index, text, self.where)
        notes: list[str] = []
        quoted = self.index.words.items("texthash = ? LIMIT 1", [texthash(text.strip())])
        if quoted and window and not window.only:
            window = None  # an item's text is a query for that item, not for the days that it names
        elif window is None and not quoted:
            window, notes = self._event_days(text)
        pieces = embedded.spans if embedded else ()
        asked = parse_query(self.index.words, text, window, pieces, typed=self.typed)
        depth = max(self.depth, WHOLE_DAYS_HITS) if window and window.only else self.depth
        arms = find_without_model(self.index, asked, depth, self.where)
        return _PreparedQuery(asked, order, past, (*asked.correction_notes, *notes), arms)

    def _event_days(self, text: str) -> tuple[DateRange | None, list[str]]:
        """(the days that a query gives by an event ("after the race"), a note about that event)."""
        event = dates.timing_event(clean(text))
        if event is None:
            return None, []
        found = self._lookup(EVENT_HITS, [event.phrase])[0]
        hit = event_hit(event.phrase, found.hits) if found.answered else None
        if hit is None:
            return None, []
        start, end = event.window(date.fromisoformat(hit.item.date))
        only = is_generic(clean(text), (event.at,), foreign=not is_english(text))
        days = (start.isoformat() if start else "", end.isoformat() if end else "")
        window = DateRange(*days, only, (event.at,) if only or event.days else (), not event.days)
        source = f"{hit.item.path}:{hit.item.line}: {hit.snippet.splitlines()[0][:LONGEST_EVENT]}"
        return window, [f"“{event.phrase}” is taken for {hit.item.date} ({source})"]

    def _candidates(self, given: _SearchInput) -> _Candidates:
        index, one, embedded = self.index, given.prepared, given.embedded
        known = embedded if embedded is not None and embedded.vector.any() else None
        arms = self._arms(one, known, given.near)
        scored = rank_candidates(index, one.asked, known, arms, self.where)
        every = scored
        if self.where.retired is None and not one.past:
            every = [each for each in every if not each.item.retired]
        return _Candidates(embedded, known, arms, scored, *_reorder(index, given.text, every, one))

    def _result(self, given: _SearchInput, candidates: _Candidates) -> SearchResult:
        index, one, known, window = self.index, given.prepared, candidates.known, given.prepared.asked.window
        limit = self._limit(one, candidates)
        kept, missing = self._confirmed_hits(candidates.found, max(limit, BASELINE_RANK))
        scores = calibrated_scores(one.asked, [each.one for each in kept])
        hits = tuple(
            _hit(index, one.asked, each, score, candidates.arms, candidates.replaced)
            for each, score in zip(kept[:limit], scores, strict=False)
            if score >= self.min_score
        )
        notes = [*given.notes, *one.notes, *candidates.notes]
        notes += [f"{missing} left out: their files were changed in the meantime"] if missing else []
        mode, answered = "hybrid" if known else "words", bool(hits) and hits[0].score >= ANSWER_THRESHOLD
        unknown = candidates.embedded is not None and known is None and any(map(str.isalnum, given.text))
        notes += [f"keyword search only: {UNKNOWN_WORDS}"] if unknown and not answered else []
        days = None if window is None or window.approximate else window
        hits = _mark_outside(hits, days)
        return SearchResult(hits, tuple(notes), mode, self.left, answered, days, index.words.count())

    def _limit(self, one: _PreparedQuery, candidates: _Candidates) -> int:
        window = one.asked.window
        if not (self.whole_days and window and window.only):
            return self.limit
        inside = any(window.covers(each.item) for each in candidates.found)
        return max(self.limit, WHOLE_DAYS_HITS) if inside else self.limit

    def _confirmed_hits(self, found: Sequence[Ranked], limit: int) -> tuple[list[KeptHit], int]:
        """(the first candidates after folding duplicates, the number of those no longer in their files)."""
        beliefs = not self.where.kinds
        return fold(self.index.words, found, self.present.confirm, limit, beliefs=beliefs)

    def _arms(
        self, one: _PreparedQuery, embedded: EmbeddedQuery | None, near: Sequence[tuple[str, float]]
    ) -> Arms:
        """The hits of all retrievers."""
        if embedded is None:
            return one.arms
        found = recall_arms.find_by_meaning(
            self.index, embedded.vector, near, self.depth, self.where, one.asked.query
        )
        return {**one.arms, "semantic": found}


WHOLE_DAYS_HITS = 50
"""Hits of a query for nothing but a time."""
LONGEST_EVENT = 100
"""Characters of the event's text in a note."""
EVENT_HITS = 10
"""Hits among which an event is searched for."""
EVENT_SHARE = 0.75
"""The minimum match of a text about the event, relative to the best."""


def event_hit(phrase: str, hits: Sequence[Hit]) -> Hit | None:
    """The hit about an event that has happened, not one that was planned or wished for; of several the better
    match, then the later. None if no hit has a day, two thirds of the phrase's words and all its names."""
    content = (word for word in words_of(phrase) if len(word) > 2 and word not in STOP_WORDS)
    stems = [questions.word_stem(word) for word in content]
    names = [name.casefold() for name in re.findall(r"(?<!^)\b[A-Z]\w+", phrase)]
    near = [
        hit
        for hit in hits
        if len(hit.item.date) == len("2026-06-20")  # a `when:` may be a month alone
        and all(name in hit.item.text.casefold() for name in names)
        and 3 * sum(word in hit.item.text.casefold() for word in stems) >= 2 * len(stems)
        and not dates.is_planned(hit.item.text)
    ]
    sure = [hit for hit in near if hit.match >= EVENT_SHARE * near[0].match]
    return max(
        sure,
        key=lambda hit: (dates.has_happened(hit.item.text), round(hit.match, 1), hit.item.date),
        default=None,
    )


def _mark_outside(hits: Iterable[Hit], days: DateRange | None) -> tuple[Hit, ...]:
    """The hits, each with whether it is outside of the days that a query asks about."""
    return tuple(replace(hit, outside=days is not None and not days.covers(hit.item)) for hit in hits)


DESCRIBED_HITS, DESCRIBED_NAMES = 4, 3
"""Hits that may name whom the query describes, and names of each that are tried."""
LONGEST_DESCRIBED = 200
"""Characters of a query that is searched for descriptions: each name takes a search."""


KNOWN_ROLE, KNOWN_DESCRIPTION = 0.8, 0.52
"""The minimum match of a text that says who has a role."""


def _is_about(hit: Hit, name: str) -> bool:
    """Whether a hit contains a name, or it but for its last word."""
    short = (name.rpartition(" ")[0] or name).casefold()
    return any(short in one.casefold() for one in (hit.item.text, hit.item.heading, *hit.item.entities))


_HOLDS = r"[\s,:(–-]*(?:(?:is|called|named|the|our|my|his|her|their|now|new|current)[\s,:]+)*"
"""What may stand between a name and a role: nothing that somebody does, nor "was" or "a"."""


def _candidate_names(hit: Hit, query: str, described: Description) -> list[str]:
    """The names, not in the query, that a hit may give to whom it describes: its note's title, and names in
    it; for a role those that its text says have it, else the one it begins with."""
    title, text = hit.item.heading.partition(" > ")[0].partition(" (")[0], hit.item.text.casefold()
    own = list(dict.fromkeys((*hit.item.entities, *entities(hit.item.text))))
    if described.after is not None:
        own = [name for name in own if _has_role(text, name.casefold(), described.clause.casefold())]
    every = dict.fromkeys((*([title] if title and hit.item.record == "passage" else ()), *own))
    return [name for name in every if name.casefold() not in query.casefold()][:DESCRIBED_NAMES]


def _has_role(text: str, name: str, clause: str) -> bool:
    """Whether a text says that somebody has the role at the end of a clause, or, if it names no role, begins
    with the name. The text need not have the rest: technician, lab technician."""
    *rest, role = clause.split()
    who = re.escape(name) if is_unspaced(name) else rf"(?<!\w){re.escape(name)}(?!\w)"
    if role not in text:
        return re.match(who, text) is not None
    which = "".join(rf"(?:{re.escape(word)}\s+)?" for word in rest)
    holder = who if role in name else f"{who}{_HOLDS}{which}{role}|{role}{_HOLDS}{who}"
    return re.search(holder, text) is not None


def _reorder(
    index: Index, text: str, found: list[Ranked], one: _PreparedQuery
) -> tuple[list[Ranked], Mapping[str, IndexItem], list[str]]:
    """(the candidates in their final order, {key of a newer item: the older one it replaces}, notes): after
    the penalty for untrusted sources, the cross-encoder, dates, and replaced values."""
    found, notes = penalize_untrusted(with_origin_of_proofs(index.words, found)), []
    found = unanswered_last(identified_first(found, one.asked), one.asked)
    if index.cross is not None and text.strip():
        try:
            found = apply_cross_encoder(index.cross, clean(text), found)
        except CrossUnavailable as error:
            notes = [f"ordered without the cross-encoder: {error}"]
    found = in_file_order(with_support(found))
    if order := one.order or ("latest" if not one.past and dates.asks_number(text) else None):
        found = order_by_time(found, order)
    elif not one.past:
        found = named_note_first(recent_first(found, one.asked), text)
    found = days_first(found, one.asked)
    if not one.past:
        return *newer_first(found, text), notes
    before = one.order != "earliest" and dates.asks_past(text)
    return replaced_first(found, text) if before else found, {}, notes


def _backlog(left: Mapping[str, int]) -> str:
    files, texts = left.get("files", 0), left.get("texts", 0)
    notes = [f"{counted(files, 'changed file')} not read so far"] if files else []
    notes += [f"{counted(texts, 'item')} keyword-only so far"] if texts else []
    return ", ".join(notes)


def _hit(
    index: Index,
    asked: ParsedQuery,
    kept: KeptHit,
    score: float,
    arms: Arms,
    replaced: Mapping[str, IndexItem],
) -> Hit:
    one, key = kept.one, kept.one.item.key
    by = _ranks(arms, one.item)
    length = SESSION_SNIPPET_LENGTH if one.item.record == SESSION else SNIPPET_LENGTH
    weights = asked.weights
    idf = {**{form: weights.idf[own[0]] for form, own in weights.forms.items()}, **weights.idf}
    shown = snippet(index.words, one.item.text, idf, length)
    if field := _matched_field(index.words, asked, one.item):
        shown += f" ({snippet(index.words, field, idf, SESSION_SNIPPET_LENGTH)})"
    return Hit(one.item, score, one.score, shown, by, one.parts, tuple(kept.under), replaced.get(key))


def _matched_field(words: WordIndex, asked: ParsedQuery, item: IndexItem) -> str:
    """The quote or field such as `why:` with most of the query's words that the fact's text lacks, '' if none
    has any."""
    fields = [one for one in item.fields.split("\n") if one and one not in item.text]
    if not fields:
        return ""

    def stems(text: str) -> Set[str]:
        return {*words.vocabulary.stems(words_of(text)).values()}

    missing = {stem for word in asked.words if word.specific for stem in word.stems} - stems(item.text)
    best = max(fields, key=lambda one: len(missing & stems(one)))
    return best if missing & stems(best) else ""


# -- tracing a missing hit ---------------------------------------------------------------------------------


TRACE_DEPTH = 1000
"""Hits of a retriever among which an item is searched for that is not among its candidates."""


@dataclass(frozen=True, slots=True)
class SearchTrace:
    """What became of an item in a search.

    `cause` is one of:

        shown        it is a hit
        folded       it is a duplicate of the hit `by`, or a fact of that observation
        min_score    its score is too low
        limit        it ranks below the limit
        older        it ranks below the limit, since `by` has a newer value
        displaced    by the answer about whom the query describes
        filter       the filters named in `filters` exclude it
        phrase       it lacks a required phrase
        retired      it is retired, and the query does not ask about the past
        no_arm       no retriever has it among its candidates
        no_match     it was a candidate, but its score is 0
        changed      its lines are no longer in its file
        held         its file has an edit that is held
        not_indexed  there is no such item in the index

    `rank` is its rank after folding, `score` as `Hit.score`, None if it was no candidate; `arms` is
    {retriever: (rank, raw score)}, also of ranks beyond `depth`. If nothing replaces it, `newer` has the best
    candidates that were said later, each with why it does not.
    """

    cause: str
    answer: SearchResult
    item: IndexItem | None = None
    rank: int | None = None
    score: float | None = None
    arms: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    parts: Mapping[Part, float] = field(default_factory=dict)
    by: IndexItem | None = None
    filters: tuple[str, ...] = ()
    newer: Sequence[tuple[IndexItem, str]] = ()
    limit: int = 0
    min_score: float = 0.0
    depth: int = 0


class _SearchTracer:
    """Traces items through a finished search."""

    def __init__(
        self, search: _Search, one: _PreparedQuery, candidates: _Candidates, answer: SearchResult
    ) -> None:
        self.search, self.one, self.candidates, self.answer = search, one, candidates, answer
        self.limit = search._limit(one, candidates)

    def trace(self, item: IndexItem | None) -> SearchTrace:
        search, candidates = self.search, self.candidates
        known = {"answer": self.answer, "limit": self.limit}
        known |= {"min_score": search.min_score, "depth": search.depth}
        if item is None:
            return SearchTrace("not_indexed", **known)  # type: ignore[arg-type]
        kept, _ = search._confirmed_hits(candidates.found, max(len(candidates.found), 1))
        every = (*candidates.found, *candidates.scored)  # retired items are only in the latter
        own = next((each for each in every if each.item.key == item.key), None)
        rank = next((n for n, each in enumerate(kept, 1) if each.one.item.key == item.key), None)
        score = self._score(own, kept, rank) if own else None
        cause, by, filters = self._cause(item, kept, own, rank, score or 0.0)
        fixed = self.one.past or any(old.key == item.key for old in candidates.replaced.values())
        newer = [] if fixed else why_not_replaced(candidates.found, self.one.asked.text, item)
        return SearchTrace(
            cause, item=item, rank=rank, score=score, arms=self._arms(item), parts=own.parts if own else {},
            by=by, filters=filters, newer=newer, **known,  # type: ignore[arg-type]
        )  # fmt: skip

    def _score(self, own: Ranked, kept: Sequence[KeptHit], rank: int | None) -> float:
        """The score as `Hit.score`, also for an item that is no hit."""
        best = [each.one for each in kept[: max(self.limit, BASELINE_RANK)]]
        at = min(rank - 1 if rank else len(best), len(best))
        return calibrated_scores(self.one.asked, [*best[:at], own, *best[at + 1 :]])[at]

    def _cause(
        self, item: IndexItem, kept: Sequence[KeptHit], own: Ranked | None, rank: int | None, score: float
    ) -> tuple[str, IndexItem | None, tuple[str, ...]]:
        if any(hit.item.key == item.key for hit in self.answer.hits):
            return "shown", None, ()
        if own is None:
            return self._no_candidate(item)
        above = next((hit.item for hit in self.answer.hits if _contains(hit.folded, item)), None)
        above = above or next((each.one.item for each in kept if _contains(each.under, item)), None)
        if above:
            return "folded", above, ()
        if not any(each.item.key == item.key for each in self.candidates.found):
            return "retired", None, ()
        if rank is None:
            return "changed", None, ()
        if score < self.search.min_score:
            return "min_score", None, ()
        newer = [key for key, old in self.candidates.replaced.items() if old.key == item.key]
        if newer:
            return "older", next(iter(self.search.index.words.get(newer)), None), ()
        return "displaced" if rank <= self.limit else "limit", None, ()

    def _no_candidate(self, item: IndexItem) -> tuple[str, None, tuple[str, ...]]:
        words, where, query = self.search.index.words, self.search.where, self.one.asked.query

        def passes(allowed: Filters | None, phrases: Query | None = None) -> bool:
            return any(each.key == item.key for each in words.by_text([item.vhash], allowed, phrases))

        excluding = tuple(name for name, one in where.single() if not passes(one))
        if excluding:
            return "filter", None, excluding
        if query.phrases and not passes(None, query):
            return "phrase", None, ()
        found = any(each.item.key == item.key for arm in self.candidates.arms.values() for each in arm)
        return "no_match" if found else "no_arm", None, ()

    def _arms(self, item: IndexItem) -> Mapping[str, tuple[int, float]]:
        """The item's (rank, raw score) by retriever; the keyword and semantic ones are searched further down
        if it is not among their candidates. Semantic ranks then count texts instead of items."""
        found = _ranks(self.candidates.arms, item)
        search, embedded, query = self.search, self.candidates.known, self.one.asked.query
        wide: dict[str, Iterable[tuple[str, str, float]]] = {}
        if "keyword" not in found:
            hits = search.index.words.search(query, TRACE_DEPTH, search.where)
            wide["keyword"] = ((item.key, hit.key, hit.score) for hit in hits)
        if embedded is not None and "semantic" not in found and not (search.where or query.phrases):
            near = search.index.nearest([embedded.vector], TRACE_DEPTH)[0]
            wide["semantic"] = ((item.vhash, name, cosine) for name, cosine in near)
        for arm, order in wide.items():
            ranks = ((n, score) for n, (own, other, score) in enumerate(order, 1) if own == other)
            if place := next(ranks, None):
                found[arm] = place
        return found


def _contains(folded: Sequence[IndexItem], item: IndexItem) -> bool:
    return any(each.key == item.key for each in folded)


def _ranks(arms: Arms, item: IndexItem) -> dict[str, tuple[int, float]]:
    """{retriever that found an item: (rank, raw score)}."""
    key = item.key
    return {name: (hit.rank, hit.score) for name, hits in arms.items() for hit in hits if hit.item.key == key}


@checked
class Searching:
    """`memory.searching`: why a search does not find something."""

    def __init__(
        self, store: Store, index: Callable[[], Index], refresh: Callable[[], Refresh],
        get: Callable[[str], Excerpt],
    ) -> None:  # fmt: skip
        self._store, self._index, self._refresh, self._get = store, index, refresh, get

    def why_not(
        self, query: str, target: str, *, limit: int | None = None, min_score: float | None = None,
        filters: Filters | None = None,
    ) -> SearchTrace:  # fmt: skip
        """Why a search does not find a fact or line (`^id`, `PATH:LINE`, or words that find it): its rank in
        each retriever, and what kept it out of the answer. The search is that of `Memory.search`. NotFound or
        Usage for an unknown target; Usage for an empty query."""
        config, index = self._store.config, self._index()
        place, read = self._place(target, index), clean_query(query, config)
        if read.skipped or not read.text.strip():
            raise Usage(read.why or "the query is empty", where=query[:80])
        with index.lock:
            search = _Search(
                index, self._refresh(), config.search_limit if limit is None else limit,
                config.min_score if min_score is None else min_score,
                Filters() if filters is None else filters,
                max(DEPTH, limit or 0), whole_days=limit is None,
            )  # fmt: skip
            item = next(iter(index_words.items_at(index.words, place)), None)
            found = search.trace(read.text, item)
        if item is None and place.path in self._store.survey().held:
            return replace(found, cause="held")
        return found

    def _place(self, target: str, index: Index) -> Place:
        """The lines of a target. NotFound, Usage."""
        try:
            found = self._get(target)
        except (Usage, NotFound):
            terms = tuple(word for word in dict.fromkeys(words_of(target)) if word not in STOP_WORDS)
            if target.startswith("^") or ".md:" in target or ".md#" in target or len(terms) < 2:
                raise
            with index.lock:
                self._refresh()
                hits = index.words.search(Query(terms), 1)
                item = next(iter(index.words.get([hit.key for hit in hits])), None)
            if item is None:
                raise
            return Place(item.path, item.line, item.end)
        if found.id is None and 1 == found.line < found.end == found.lines:
            raise Usage("a whole file is meant", where=target[:200], hint="name ^id or PATH:LINE")
        return Place(found.path, found.line, found.end)


# -- cleaned queries ---------------------------------------------------------------------------------------


def clean_query(query: str, config: Config) -> QueryText:
    """The question in a prompt, by the bank's settings; see docs/cli.md, How a query is cleaned."""
    return read_query(query, config.long_query, config.longest_query)


def search_cleaned(
    index: Index,
    queries: Sequence[str],
    config: Config,
    limit: int | None = None,
    min_score: float | None = None,
    refresh: Refreshing | None = None,
    **how: Any,
) -> list[SearchResult]:
    """Clean the queries, then `search_many`: a result for each, in order, without hits for a skipped one.
    `limit` and `min_score` default to the settings."""
    how["limit"] = config.search_limit if limit is None else limit
    how["whole_days"] = limit is None
    how["min_score"] = config.min_score if min_score is None else min_score
    every = [clean_query(query, config) for query in queries]
    texts = [one.text for one in every if not one.skipped]
    found = iter(
        _with_rebuild(
            index, refresh or index.refresh, lambda fresh: search_many(index, texts, refresh=fresh, **how)
        )
    )
    answers = [SearchResult(()) if one.skipped else next(found) for one in every]
    return [
        replace(answer, notes=(one.why, *answer.notes)) if one.why else answer
        for one, answer in zip(every, answers, strict=True)
    ]


def _with_rebuild(index: Index, refresh: Refreshing, ask: Callable[[Refreshing], T]) -> T:
    """Run `ask` with a refresh; if the word index turns out to be damaged, rebuild it and run `ask` again."""
    try:
        return ask(refresh)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if not is_damaged(error):
            raise
        why = str(error)
        return ask(lambda: _rebuild_words(index, why))


def _rebuild_words(index: Index, why: str) -> Refresh:
    """Rebuild the words, damaged where the refresh did not read them."""
    with index.lock:
        index.close()
        index.generations.discard()
        done = index.refresh(vectors=False)
    return replace(done, notes=(*done.notes, f"the word index was damaged ({why}); rebuilt"))


# -- list --------------------------------------------------------------------------------------------------
# Items that pass the filters, without a query.


LAST_DAY = "9999-12-31"
"""No day is later: with a time in the filters each item is listed under the day that it is about."""


@dataclass(frozen=True, slots=True)
class ListResult:
    """Items, newest `listed_day` as of `today` first; `total` is their number without the limit; messages for
    the user."""

    items: tuple[IndexItem, ...]
    today: str
    total: int = 0
    notes: tuple[str, ...] = ()


def list_items(
    index: Index, filters: Filters, limit: int | None, today: str, refresh: Refreshing
) -> ListResult:
    """The items that pass the filters, each verified against its file. The index is refreshed first."""
    where = replace(filters, kinds=filters.kinds or LISTED_KINDS, retired=bool(filters.retired))
    today = LAST_DAY if filters.since or filters.until or filters.day else today
    return _with_rebuild(index, refresh, lambda fresh: _list(index, where, limit, today, fresh))


def _list(index: Index, where: Filters, limit: int | None, today: str, refresh: Refreshing) -> ListResult:
    with index.lock:
        report, present, found = refresh(), CurrentFiles(index.files), list[IndexItem]()
        notes = [*report.notes, *(str(problem) for problem in report.failed)]
        if report.left_files:
            notes.append(f"indexing: {_backlog({'files': report.left_files})}")
        total, items = index.words.listed(where, today)
        for item in items:
            if len(found) == limit:
                break
            if current := present.confirm(item):
                found.append(current)
            else:
                total -= 1
        return ListResult(tuple(found), today, total, tuple(notes))


def explain_query(query: str, config: Config, now: datetime, words: WordIndex | None) -> QueryExplanation:
    """How a query is cleaned and interpreted at `now`."""
    return explain(clean_query(query, config), now, config.zone, words)


@dataclass(frozen=True, slots=True)
class RecallResult:
    """A block of text for a prompt, '' if nothing was found or fits. `left` are the lines that did not fit
    into `most` tokens or, if that is 0, into a hook's limit of characters."""

    block: str
    left: Sequence[str]
    most: int
    answer: SearchResult


# -- hits for prompts --------------------------------------------------------------------------------------
# Which hits go into a prompt, where nobody reviews them: none without an answer, and none far below the
# first. A hook, where nobody has searched, adds facts and at most two passages of sessions, and only if they
# are probably useful.


_ASKS_SEVERAL = re.compile(r"[,;]|\b(?:and|or|both|each|every|all|list|compare|which \w+s)\b", re.IGNORECASE)
"""Queries for several things."""
GOOD_FACT, GOOD_PASSAGE = 0.58, 0.75
"""The minimum score of a first hit, a fact or a passage, for a prompt that asks a question."""
USEFUL, USEFUL_FOR_CHORE = 0.5, 0.65
"""The minimum `usefulness` for other prompts, and for chores (`questions.is_chore`). Of 100 tasks about
unknown things 90 get no hits."""
_NOUN_PHRASE = re.compile(
    r"\W*(?:\w+\s+){1,2}(?:(?:of|d[eu]|des|dell?[ao]?|von|vom|van|di|d[ao]s?)\s+|d['’])(?:\w+\W*){1,2}",
    re.IGNORECASE,
)
"""A prompt such as `prix du gasoil` is a query: it gets what answers that, or nothing."""
PROMPT_WORDS = 8
"""Long prompts share rare words with any text by chance: the shared weight is divided by their length in
units of this many words."""


_CODE_NAME = re.compile(r"\b(?:\w+\.[a-z]{1,4}|\w+_\w+|\w*[a-z][A-Z]\w*)\b")
"""A name of a file, or of something in it."""


def without_weak_hits(answer: SearchResult, query: str) -> SearchResult:
    """The result with the hits for a prompt whose author asked for it: none if it is not answered."""
    return replace(answer, hits=_near_best(answer.hits, query) if answer.answered else ())


def for_prompt(found: SearchResult, prompt: str, project: str, config: Config, but: str = "") -> SearchResult:
    """The result with the hits that a hook adds to a prompt in a project, none of the session `but`. One
    specific word is enough for facts, not for passages; these must have a name in the code that the prompt
    is about. Without a daemon `ReadOnlySearch.for_prompt` decides, with bounds of its own."""
    scope, specific = f"project:{project}".casefold(), specific_words(prompt)
    code = _CODE_NAME.findall(prompt)

    def fits(hit: Hit) -> bool:
        tags = [tag for one in (hit.item, *hit.folded) for tag in one.tags]
        named = not code or any(name in hit.item.text for name in code)
        allowed = config.sessions_recall and len(specific) > 1 and named
        return allowed and (not but or hit.item.session != but) and (not project or scope in tags)

    # What is about another identifier has lost most of its score.
    near = (hit for hit in found.hits if hit.parts.get("other", 0.0) > -hit.match)
    hits = [hit for hit in near if hit.item.record != SESSION or fits(hit)]
    idle = not specific or questions.is_order(prompt)
    if idle or not hits or not _is_useful(hits, prompt, found):
        return replace(found, hits=())
    return replace(found, hits=prompt_hits(hits, prompt, config))


def _is_useful(hits: Sequence[Hit], prompt: str, answer: SearchResult) -> bool:
    """Whether a hook adds these hits to a prompt: whether the first one scores enough for its kind."""
    if answer.mode == "words":  # scores by words alone are lower, and `usefulness` was fitted with vectors
        return hits[0].score >= ANSWER_THRESHOLD
    if hits[0].score < ANSWER_THRESHOLD and _NOUN_PHRASE.fullmatch(prompt):
        return False
    if questions.is_question(prompt) and not questions.is_request(prompt):
        return hits[0].score >= (GOOD_PASSAGE if hits[0].item.record == SESSION else GOOD_FACT)
    least = USEFUL_FOR_CHORE if questions.is_chore(prompt) else USEFUL
    return usefulness(hits, prompt, answer.items) >= least


def usefulness(hits: Sequence[Hit], prompt: str, items: int) -> float:
    """The probability, 0 to 1, that one of these hits (at least one) helps with a prompt that is not a
    question; `benchmarks/prompts.py` fits the weights."""
    return logistic_probability("prompt", prompt_features(hits, prompt, items))


def prompt_features(hits: Sequence[Hit], prompt: str, items: int) -> Mapping[str, float]:
    """The features of `usefulness`, by name: the best match; the best BM25, relative to the rarest word of a
    bank of this many `items`, per `PROMPT_WORDS` words of the prompt; the log of the bank's size, since a
    larger bank has more matches by chance; and the match of a `foreign` prompt, since the English model finds
    any two texts of another language similar."""
    shared = max((hit.arms["keyword"][1] for hit in hits if "keyword" in hit.arms), default=0.0)
    words = max(1.0, len(_WORD.findall(prompt)) / PROMPT_WORDS)
    match = max(hit.match - hit.parts.get("support", 0.0) - hit.parts.get("form", 0.0) for hit in hits)
    return {
        "match": match,
        "foreign": 0.0 if is_english(prompt) else match,
        "shared": shared / inverse_frequency(1, items) / words,
        "size": math.log(max(items, 1)),
    }


def prompt_hits(hits: Sequence[Hit], prompt: str, config: Config) -> tuple[Hit, ...]:
    """The hits to add to a prompt: not far below the first, facts before sessions' passages."""
    near = _near_best(hits, prompt)
    facts = [hit for hit in near if hit.item.record != SESSION][: config.search_limit]
    return (*facts, *[_widened(hit) for hit in near if hit.item.record == SESSION][:PROMPT_PASSAGES])


PROMPT_PASSAGE_LENGTH = 800
"""Characters of a passage in a prompt: more than a snippet, since nobody opens the rest."""


def _widened(hit: Hit) -> Hit:
    """A passage with more text around its snippet."""
    text, core = hit.item.text, hit.snippet.strip("…")
    at = text.find(core)
    if at < 0 or len(text) <= len(core):
        return hit
    start = max(0, min(at - (PROMPT_PASSAGE_LENGTH - len(core)) // 2, len(text) - PROMPT_PASSAGE_LENGTH))
    return replace(
        hit, snippet=_cut(text, start, PROMPT_PASSAGE_LENGTH) if len(text) > PROMPT_PASSAGE_LENGTH else text
    )


def _near_best(hits: Sequence[Hit], query: str) -> tuple[Hit, ...]:
    """The hits not far below the first, those that answer one of two questions, or all if the query asks for
    several things."""
    if questions.two_questions(query):
        return tuple(hit for hit in hits if hit.score >= ANSWER_THRESHOLD)
    if not hits or _ASKS_SEVERAL.search(query):
        return tuple(hits)
    return tuple(hit for hit in hits if hit.match >= SAME_TOPIC * hits[0].match)
