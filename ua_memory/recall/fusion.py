"""Score the candidates of all retrievers, and reorder them by trust, identifiers, age and days."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, NamedTuple

from ua_memory.index.embedding import CrossEncoder
from ua_memory.index.filters import Filters
from ua_memory.index.items import SESSION, IndexItem, chunks, placeholders
from ua_memory.index.sync import Index
from ua_memory.index.terms import (
    has_identifier,
    identifiers,
    is_about_another,
    numbered,
)
from ua_memory.index.terms import words as words_of
from ua_memory.knowledge.sessions import is_announcement
from ua_memory.recall import arms as recall_arms
from ua_memory.recall.arms import Arms, DateRange, ParsedQuery, Part, Ranked
from ua_memory.recall.calibration import NAME_MATCH, OTHER_NUMBER
from ua_memory.recall.dedupe import capped
from ua_memory.recall.rerank import (
    ANSWERS,
    NEIGHBOUR_STEPS,
    Stems,
    TokenMatches,
    best_alone,
    date_boost,
    rerank,
)
from ua_memory.records import ref_of, written_id
from ua_memory.text import wording
from ua_memory.text.questions import is_question
from ua_memory.text.wording import sentences

if TYPE_CHECKING:
    from ua_memory.index.embedding import EmbeddedQuery
    from ua_memory.index.words import WordIndex
    from ua_memory.text.dates import Order


# -- score fusion ------------------------------------------------------------------------------------------
# The score without token vectors: a noisy-or of cosine and BM25, smoothed by the neighbours. With token
# vectors, the usual case, `recall.rerank` scores instead, and BM25 and cosine only find candidates.
#
#     meaning  m = (cosine - 0.1) / 0.9, not below 0
#     words    w = 0.75 * coverage + 0.25 * min(1, BM25 / the query's weight)
#     own      o = 1 - (1 - m) * (1 - 0.95 * w)
#     all      a = 1 - (1 - o) * (1 - 0.2 * o of the item before) * (1 - 0.2 * o of the item after)
#     score    s = a ** 0.85
#
# One retriever suffices: a cosine of 0.37 or three tenths of the query's words yield 0.35. Neighbours must be
# under the same heading: a reply answers the question above it. Scores can be compared across queries; the
# exponent places 0.35 between good hits and others. The constants were chosen among ninety settings on two
# development conversations, most of which differ by less than a point, which is noise. Scored offline over
# all items, the recall among ten hits is 71.9 with these, 71.7 with a sum of standardised scores, and 60.9
# with reciprocal ranks and no neighbours; the search, which only scores candidates, reaches 71.5.


COSINE_FLOOR = 0.1
"""Cosines of unrelated texts are below this."""
WORDS_WEIGHT = 0.95
BM25_PART = 0.25
NEIGHBOUR_WEIGHT = 0.2
SCORE_EXPONENT = 0.85


@dataclass(frozen=True, slots=True)
class Signals:
    """A candidate's cosine (None without vectors), the share of the query's weight that it has, and BM25."""

    item: IndexItem
    cosine: float | None
    coverage: float
    bm25: float


class OwnParts(NamedTuple):
    """What a candidate scores for its meaning and its words, and for both, without its neighbours."""

    meaning: float
    words: float
    score: float


def fuse(candidates: Sequence[Signals], weight: float) -> list[Ranked]:
    """Score all candidates, best first, ties by path and line. `weight` is the total of the query's terms."""
    own = {one.item.key: _own_parts(one, weight) for one in candidates}
    at = {(one.item.path, one.item.seq): one.item for one in candidates}
    fused = []
    for one in candidates:
        meaning, words, alone = own[one.item.key]
        before = _neighbour_score(one.item, at.get((one.item.path, one.item.seq - 1)), own)
        after = _neighbour_score(one.item, at.get((one.item.path, one.item.seq + 1)), own)
        score = 1 - (1 - alone) * (1 - NEIGHBOUR_WEIGHT * before) * (1 - NEIGHBOUR_WEIGHT * after)
        parts: dict[Part, float] = {"meaning": meaning, "words": words, "before": before, "after": after}
        parts = {name: round(part, 4) for name, part in parts.items()}
        fused.append(Ranked(one.item, round(score**SCORE_EXPONENT, 6), parts))
    return sorted(fused, key=lambda f: (-f.score, f.item.path, f.item.line, f.item.key))


def _own_parts(one: Signals, weight: float) -> OwnParts:
    meaning = min(1.0, max(0.0, ((one.cosine or 0.0) - COSINE_FLOOR) / (1 - COSINE_FLOOR)))
    words = (1 - BM25_PART) * one.coverage + BM25_PART * min(1.0, one.bm25 / weight if weight else 0.0)
    return OwnParts(meaning, words, 1 - (1 - meaning) * (1 - WORDS_WEIGHT * words))


def _neighbour_score(item: IndexItem, other: IndexItem | None, own: Mapping[str, OwnParts]) -> float:
    if other is None or (other.heading, other.session) != (item.heading, item.session):
        return 0.0
    return own[other.key].score


# -- ranking -----------------------------------------------------------------------------------------------
# All candidates and their neighbours are ranked together: by late interaction (`recall.rerank`), or by `fuse`
# if no text has token vectors.


DEPTH = 60
"""Candidates per retriever. With 60 and their neighbours R@10 is that of scoring all items; with 30 as well,
but the recall in the first 2,000 tokens is a point lower."""

TOKEN_NEIGHBOURS_OF = 40
"""Candidates whose neighbours are scored, too, by late interaction: the best on their own."""

FUSION_NEIGHBOURS_OF = 60
"""Candidates whose neighbours are scored, too, by `fuse`."""


def rank_candidates(
    index: Index, asked: ParsedQuery, embedded: EmbeddedQuery | None, arms: Arms, where: Filters
) -> list[Ranked]:
    """The candidates and their neighbours, best first, without those scored 0. `embedded` is None for a
    ranking by words only."""
    strict = bool(where or asked.query.phrases)
    ranked: Sequence[Ranked] | None = None
    if embedded is not None and len(embedded.tokens):
        import numpy as np

        # Under load, once in some thousand searches, numpy warns of an invalid value in a product of finite
        # numbers.
        with np.errstate(invalid="ignore"):
            ranked = _rank_by_tokens(index, asked, embedded, arms, where)
    if ranked is None:
        ranked = _rank_by_fusion(index, asked, embedded, arms, strict)
    return [one for one in recall_arms.boost_linked(ranked, arms["entity"]) if one.score > 0]


def find_without_model(index: Index, asked: ParsedQuery, depth: int, where: Filters) -> Arms:
    """The hits of all retrievers but the semantic one."""
    return {
        "keyword": recall_arms.find_by_words(index.words, asked.query, depth, where),
        "semantic": [],  # keeps its place in the order; filled when the query is embedded
        # Required phrases are found by words; names and dates would only add items without the phrase.
        "entity": [] if asked.query.phrases else recall_arms.find_by_names(index.words, asked, depth, where),
        "temporal": []
        if asked.query.phrases
        else recall_arms.find_by_days(index.words, asked.window, depth, where),
    }


def _distinct_items(arms: Arms) -> list[IndexItem]:
    """The items that the retrievers found, without duplicates."""
    return list({one.item.key: one.item for found in arms.values() for one in found}.values())


def _rank_by_tokens(
    index: Index, asked: ParsedQuery, embedded: EmbeddedQuery, arms: Arms, where: Filters
) -> list[Ranked] | None:
    """Rank by late interaction; None if no text has token vectors, or no word of the query has a weight."""
    found, matches = _distinct_items(arms), TokenMatches(asked, embedded)
    wanted_stems = {stem for word in matches.words for stem in (*word.stems, word.whole)}
    forms = asked.weights.forms

    stems, known = Stems({}, {}), set[str]()

    def read(items: list[IndexItem]) -> None:
        new = [item for item in items if item.key not in known]
        known.update(item.key for item in new)
        matches.add(index.cache.read(index.embeds.model, matches.missing(item.vhash for item in new)))
        by_stems = new if matches.by_stems else matches.without_tokens(new)
        stems.heading.update(recall_arms.heading_stems(index.words, new, wanted_stems, forms))
        if by_stems:
            stems.text.update(recall_arms.matching_stems(index.words, by_stems, wanted_stems, forms))

    read(found)
    if not matches.any_tokens or not matches.weights.any():
        return None
    best = best_alone(asked, found, matches, stems, TOKEN_NEIGHBOURS_OF)
    turns = [item for item in best if item.speaker]
    # A session's passage already includes its surroundings: 900 characters.
    others = [item for item in best if item.record != SESSION]
    neighbours = index.words.neighbours(turns, NEIGHBOUR_STEPS) + index.words.neighbours(others, (-1, 1))
    items = list({item.key: item for item in (*found, *neighbours)}.values())
    wanted = {item.key for item in (*found, *_eligible_neighbours(asked, where, neighbours))}
    read(items)
    return rerank(asked, items, matches, stems, wanted)


def _eligible_neighbours(asked: ParsedQuery, where: Filters, neighbours: list[IndexItem]) -> list[IndexItem]:
    """The neighbours of candidates that may become hits: none with filters. If the query requires a phrase,
    turns of conversations only, and only for a question: "What did you take from “Becoming Nicole”?" is
    answered two turns later, without the title."""
    if where:
        return []
    if not asked.query.phrases:
        return neighbours
    return [item for item in neighbours if item.speaker] if asked.text.rstrip().endswith("?") else []


def _rank_by_fusion(
    index: Index, asked: ParsedQuery, embedded: EmbeddedQuery | None, arms: Arms, strict: bool
) -> list[Ranked]:
    """Rank by `fuse`; with `strict` neighbours of candidates are no hits."""
    found = _distinct_items(arms)
    known = _signals(index, asked, embedded, arms, found)
    total = asked.weights.total
    best = sorted(known, key=lambda one: (-_own_parts(one, total).score, one.item.path, one.item.line))
    neighbours = index.words.neighbours([one.item for one in best[:FUSION_NEIGHBOURS_OF]])
    known += _signals(index, asked, embedded, arms, neighbours)
    keys = {item.key for item in found}
    known = list({one.item.key: one for one in reversed(known)}.values())
    ranked = [one for one in fuse(known, total) if not strict or one.item.key in keys]
    return _boost_dated(ranked, asked.window)


def _boost_dated(ranked: list[Ranked], window: DateRange | None) -> list[Ranked]:
    """Add the bonus for being of the days that the query asks about, as `rerank` does."""
    if window is None:
        return ranked
    boosted = [
        one._replace(score=min(1.0, one.score + boost), parts={**one.parts, "when": boost})
        if (one.score > 0 or window.only) and (boost := date_boost(window, one.item))
        else one
        for one in ranked
    ]
    return sorted(boosted, key=lambda one: -one.score)


def _signals(
    index: Index, asked: ParsedQuery, embedded: EmbeddedQuery | None, arms: Arms, items: list[IndexItem]
) -> list[Signals]:
    bm25 = {one.item.key: one.score for one in arms["keyword"]}
    coverage = recall_arms.coverage(index.words, asked.weights, items)
    cosine: dict[str, float] = {}
    if embedded is not None:
        cosine = {one.item.vhash: one.score for one in arms["semantic"]}
        missing = sorted({item.vhash for item in items} - set(cosine))
        cosine |= recall_arms.cosines(index, embedded.vector, missing)
    return [Signals(i, cosine.get(i.vhash), coverage[i.key], bm25.get(i.key, 0.0)) for i in items]


# -- untrusted sources -------------------------------------------------------------------------------------
# Hits from tools, the web and imports rank below equal ones of a person or an agent. Age is no penalty: a
# bank that has not been written to for five years must answer as on its last day.


UNTRUSTED_PENALTY = 0.05
"""About five ranks among the first ten."""


def penalize_untrusted(found: list[Ranked]) -> list[Ranked]:
    """The candidates, reordered after the penalty for untrusted ones; ties keep their order."""
    if any(one.item.untrusted for one in found):
        return sorted(map(_penalized, found), key=lambda one: -one.score)
    return found


def _penalized(one: Ranked) -> Ranked:
    if not one.item.untrusted:
        return one
    return one.rescored(round(max(one.score - UNTRUSTED_PENALTY, one.score / 2), 6), "untrusted")


# -- sources of beliefs ------------------------------------------------------------------------------------
# A belief is no more trustworthy than the facts it cites.


def with_origin_of_proofs(words: WordIndex, found: list[Ranked]) -> list[Ranked]:
    """The candidates; an observation of untrusted facts only, and an opinion that cites one, get the origin
    of such a fact, and with it its label and penalty. Beliefs that a person wrote keep theirs."""
    beliefs = {one.item.key: one.item for one in found if one.item.proofs and one.item.origin != "person"}
    if not beliefs:
        return found
    sources = _untrusted_sources(words, {proof for item in beliefs.values() for proof in item.proofs})
    inherited = {key: source for key, item in beliefs.items() if (source := _inherited_source(item, sources))}
    return [_with_source(one, inherited.get(one.item.key)) for one in found]


def _with_source(one: Ranked, source: Source | None) -> Ranked:
    return one._replace(item=replace(one.item, origin=source[0], client=source[1])) if source else one


Source = tuple[str, str | None]
"""An origin and a client."""


def _untrusted_sources(words: WordIndex, ids: Iterable[str]) -> dict[str, Source | None]:
    """{ref: the source of an untrusted fact, None for a trusted one} of the facts that exist."""
    found: dict[str, Source | None] = {}
    refs = frozenset(ids)
    for part in chunks(sorted({written_id(ref) for ref in refs})):
        query = f"SELECT id, origin, client, path FROM items WHERE id IN ({placeholders(part)})"
        for written, origin, client, path in words.db.execute(query, part):
            if (block := ref_of(path, written)) not in refs:
                continue
            if not wording.untrusted(origin, client or None, path):
                found[block] = None
            else:
                found.setdefault(block, (origin, client or None))
    return found


def _inherited_source(item: IndexItem, sources: dict[str, Source | None]) -> Source | None:
    known = [sources[proof] for proof in item.proofs if proof in sources]
    untrusted = [each for each in known if each]
    return untrusted[0] if untrusted and (item.record == "opinion" or len(untrusted) == len(known)) else None


# -- identifiers -------------------------------------------------------------------------------------------


def identified_first(found: list[Ranked], asked: ParsedQuery) -> list[Ranked]:
    """The candidates; those about another identifier than the query (`terms.is_about_another`) have a third
    of their score, which is no answer. If none has the query's, the first of these caps all behind it: they
    stay there.

    Turns of conversations, whose subject may be in another turn, keep their scores, and so do linked items.
    """
    text = asked.text
    for start, end in asked.window.spans if asked.window else ():
        text = text[:start] + " " * (end - start) + text[end:]
    wanted, counted = identifiers(text), numbered(text)
    if not wanted and not counted:
        return found
    texts = [_identifying(one.item) for one in found]
    every = "\n".join(texts)
    wanted += [each for each in counted if has_identifier(every, each)]
    missing, cap, changed = is_about_another(every, wanted), 1.0, list[Ranked]()
    for one, own in zip(found, texts, strict=True):
        score = min(one.score, cap)
        if not one.item.speaker and not one.parts.get("linked") and is_about_another(own, wanted):
            score = one.score * OTHER_NUMBER
            cap = min(cap, score) if missing else cap
        if score < one.score:
            one = one.rescored(round(score, 6), "other")
        changed.append(one)
    return sorted(changed, key=lambda one: -one.score)


def _identifying(item: IndexItem) -> str:
    """The text in which an item's identifiers are searched for. A session's title is left out: it may be a
    question."""
    if item.record == SESSION:
        return item.text
    return "\n".join((item.text, item.heading, item.context, *item.tags, *item.entities))


# -- recency of sessions -----------------------------------------------------------------------------------
# Later sessions often correct earlier ones without saying so.


RECENCY_GAIN, RECENCY_HITS = 0.25, 20
"""The maximum bonus of a session's passage for its day, and the number of hits whose days are compared. In 48
stories (36 of them in `benchmarks/data/stories`), with 192 questions about values that had changed, the newer
value ranks before the older for 80 % with 0.25 and 71 % with 0.08; the first hit is right for 61 % in both
cases."""
GOOD_MATCH = 0.58
"""The minimum match of a fact that is a good answer; `search.GOOD_FACT` is a calibrated score."""
SAME_QUESTION = 0.8
"""The minimum share of the query's words in a passage that merely asks the same question."""


def recent_first(found: list[Ranked], asked: ParsedQuery) -> list[Ranked]:
    """The candidates, with passages of later sessions before others that match about as well.

    Other items newer than all these passages gain as much as the last, but not so that one ranks before an
    older one that matches better: a text ingested today is no news. Turns of a conversation gain nothing,
    since they seldom correct each other. A passage that only asks the same question ranks behind a good fact,
    and none gains so much that it ranks before a certain one, or before an undated note that matches better.
    """
    near = found[:RECENCY_HITS]
    days = sorted({one.item.day for one in near if one.item.record == SESSION and one.item.day})
    if not days:
        return found
    gains = {day: RECENCY_GAIN * n / max(len(days) - 1, 1) for n, day in enumerate(days)}
    notes = [one for one in near if one.item.record != SESSION]
    best_fact = max((one.score for one in notes), default=0.0)
    undated = max((one.score for one in notes if not one.item.day), default=0.0)
    older = max((one.score for one in notes if (one.item.day or "") <= days[-1]), default=0.0)

    def sort_key(one: Ranked) -> float:
        day = one.item.day or ""
        if one.item.record != SESSION or one.item.speaker:
            gained = one.score + (RECENCY_GAIN if day > days[-1] else 0)
            return -capped(gained, one.score, older, caps=one.score < older)
        score = capped(one.score + gains.get(day, 0), one.score, best_fact)
        score = capped(score, one.score, undated, caps=True) if one.score < undated else score
        question = score >= best_fact >= GOOD_MATCH and _asks_the_same(asked, one.item.text)
        return -min(score, best_fact - 1e-6) if question else -score

    return sorted(near, key=sort_key) + found[RECENCY_HITS:]


def in_file_order(found: list[Ranked]) -> list[Ranked]:
    """The candidates; consecutive ones under one heading that match equally well, by its words, are in the
    order of their lines."""

    def section(one: Ranked) -> tuple[object, ...]:
        # The key, which no other has, leaves one without a match where it is.
        words = one.parts.get("words", 0.0) if one.item.heading and one.item.record != SESSION else 0.0
        return one.item.path, one.item.heading, words or one.item.key

    ordered: list[Ranked] = []
    for _, run in groupby(found, key=section):
        near = list(run)
        if len(near) > 1:
            lines = sorted(near, key=lambda one: one.item.line)
            near = [one._replace(score=at.score) for one, at in zip(lines, near, strict=True)]
        ordered += near
    return ordered


NEARLY_AS_WELL = 0.9
"""The share of the best score that a note has which the query names by its title or alias."""


def named_note_first(found: list[Ranked], text: str) -> list[Ranked]:
    """The candidates; if the whole query is a note's title or alias, and something of the note matches nearly
    as well as the best, this is the first: every note that mentions the name matches it as well."""
    name = text.strip(" \"'“”?!.").casefold()
    for at, one in enumerate(found):
        if one.score < NEARLY_AS_WELL * found[0].score:
            break
        title, _, _ = one.item.heading.casefold().partition(" > ")
        bare, _, aliases = title.removesuffix(")").partition(" (")
        if name in (title, bare, *aliases.split(", ")):
            return [one._replace(score=found[0].score), *found[:at], *found[at + 1 :]]
    return found


def _asks_the_same(asked: ParsedQuery, text: str) -> bool:
    """Whether a text contains a question with most of the query's words."""
    words = _specific_words(asked)
    asks = (one for one in sentences(text.casefold()) if one.endswith(("?", "？")))
    return any(_share(words, one) >= SAME_QUESTION for one in asks)


def _specific_words(asked: ParsedQuery) -> list[str]:
    return [asked.text[word.start : word.end].casefold() for word in asked.words if word.specific]


def _share(words: Sequence[str], text: str) -> float:
    """The share of these words that are in a text, all in lower case."""
    return sum(word in text for word in words) / len(words) if words else 0.0


# -- questions without an answer ---------------------------------------------------------------------------


UNANSWERED = 1 / 3
"""The factor on the score of a passage that only repeats the query."""
_TURN = re.compile(r"^(?=(?:person|agent): )", re.MULTILINE)


def unanswered_last(found: list[Ranked], asked: ParsedQuery) -> list[Ranked]:
    """The candidates; a session's passage that repeats the query without an answer has a third of its score,
    which is no answer."""
    words, changed = _specific_words(asked), list[Ranked]()
    for one in found:
        if one.item.record == SESSION and _only_asks(words, one.item.text.casefold()):
            one = one.rescored(round(one.score * UNANSWERED, 6), "asks")
        changed.append(one)
    return sorted(changed, key=lambda one: -one.score)


def _only_asks(words: Sequence[str], text: str) -> bool:
    """Whether a passage, in lower case, asks what the query does, without an answer, and says little else of
    it."""
    if _share(words, text) < SAME_QUESTION:
        return False  # most passages; none of its sentences has more
    turns, asks, rest = _TURN.split(text), False, list[str]()
    for turn, after in zip(turns, [*turns[1:], ""], strict=True):
        who, _, said = turn.partition(": ")
        parts = sentences(said)
        at = next(
            (n for n, s in enumerate(parts) if is_question(s) and _share(words, s) >= SAME_QUESTION), None
        )
        if at is None:
            rest.append(said)
            continue
        reply = after.partition(": ")[2] if not after.startswith(who) else ""
        replies = (" ".join(parts[at + 1 :]), reply)
        if any(not ANSWERS["no answer"].match(each) and not is_announcement(each) for each in replies):
            return False
        asks, rest = True, [*rest, *parts[:at]]
    return asks and _share(words, " ".join(rest)) < SAME_QUESTION / 2


# -- dates -------------------------------------------------------------------------------------------------


AS_GOOD_BAND = 0.1
"""A hit at most this far below the best is as good an answer. On the development data the second turn that
answers a question is 0.09 below the first in half of the cases, the fifth hit 0.14."""


def order_by_time(ranked: Sequence[Ranked], order: Order) -> list[Ranked]:
    """For a query about the newest or oldest: the hits that are as good as the best in order of time (of one
    day by score, undated ones last), then the others.

    A hit must name whom the best hit names: the latest about somebody else is no answer. Scores stay with
    their ranks, so that they decrease; the change of a hit's score is its part `order`.
    """
    near = [n for n, one in enumerate(ranked) if _as_good(one, ranked[0])]
    dated = [n for n in near if ranked[n].item.date]
    dated.sort(key=lambda n: ranked[n].item.date, reverse=order == "latest")
    ordered = list(ranked)
    for at, n in zip(near, [*dated, *(n for n in near if not ranked[n].item.date)], strict=True):
        ordered[at] = ranked[n].rescored(ranked[at].score, "order")
    return ordered


def _as_good(one: Ranked, best: Ranked) -> bool:
    named = one.parts.get("named", 0) >= best.parts.get("named", 0)
    has_name = one.parts.get("names", 1) > NAME_MATCH or best.parts.get("names", 0) <= NAME_MATCH
    return one.score >= best.score - AS_GOOD_BAND and named and has_name


RELEVANT_SHARE = 0.2
"""A hit of the right days with less than this share of the best score is about something else."""


def days_first(ranked: Sequence[Ranked], asked: ParsedQuery) -> list[Ranked]:
    """The hits of the days that the query asks about, then those that only name these, then the others, with
    decreasing scores; for a query of nothing but a time only those others that have its words: "tuesday", "3
    november"."""
    window = asked.window
    if window is None:
        return list(ranked)
    inside = [one for one in ranked if window.covers(one.item)]
    if inside and window.only:
        ordered = _by_day(inside, window)
        words = {word for start, end in window.spans for word in words_of(asked.text[start:end])}
        others = [one for one in ranked if not window.covers(one.item)] if words else []
        named = (one for one in others if words.issubset(words_of(one.item.text)))
        return ordered + [one._replace(score=min(one.score, ordered[0].score)) for one in named]
    near = [one for one in inside if one.score >= RELEVANT_SHARE * ranked[0].score]
    near.sort(key=lambda one: window.is_only_named(one.item))
    if not near or window.approximate:
        return list(ranked)
    first = {one.item.key for one in near}
    # Hits of these days about something else come last.
    others = sorted(
        (one for one in ranked if one.item.key not in first), key=lambda one: window.covers(one.item)
    )
    scores = accumulate((one.score for one in (*near, *others)), min)
    return [one._replace(score=score) for one, score in zip((*near, *others), scores, strict=True)]


def _by_day(found: Sequence[Ranked], window: DateRange) -> list[Ranked]:
    """The hits of a query for nothing but a time, with equal scores: facts, then facts that only name the
    time, then passages of sessions, each the oldest first."""

    def place(one: Ranked) -> tuple[bool, bool, str, str, int]:
        item = one.item
        day = item.when or item.day or ""
        return item.record == SESSION, window.is_only_named(item), day, item.path, item.line

    ordered = sorted(found, key=place)
    return [one._replace(score=ordered[0].score) for one in ordered]


# -- cross-encoder -----------------------------------------------------------------------------------------


CROSS_HITS = 30
"""Hits that are scored by the cross-encoder; with a small model on two cores, some tens of milliseconds."""


def apply_cross_encoder(model: CrossEncoder, query: str, found: Sequence[Ranked]) -> list[Ranked]:
    """The first CROSS_HITS hits in the order of the cross-encoder, then the rest. Raises CrossUnavailable.

    The scale differs between models, so scores stay with their ranks; the model's score is the part `cross`.
    """
    best, rest = found[:CROSS_HITS], found[CROSS_HITS:]
    if not best:
        return []
    texts = [" ".join(part for part in (one.item.context, one.item.text) if part) for one in best]
    scores = model.scores(query, texts)
    order = sorted(range(len(best)), key=lambda n: -scores[n])
    return [
        best[n]._replace(score=place.score, parts={**best[n].parts, "cross": round(scores[n], 4)})
        for n, place in zip(order, best, strict=True)
    ] + list(rest)
