"""From what the arms found to one order and one score between 0 and 1."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

from ua_memory.index.embedding import CrossEncoder
from ua_memory.index.filters import Filters
from ua_memory.index.items import SESSION, IndexItem
from ua_memory.index.sync import Index
from ua_memory.index.terms import is_unspaced
from ua_memory.index.terms import words as words_of
from ua_memory.recall import arms as recall_arms
from ua_memory.recall.arms import Arms, DateRange, ParsedQuery, Ranked
from ua_memory.recall.rerank import REACH, Stems, TokenMatches, foremost, rerank, timely
from ua_memory.text.names import numerals
from ua_memory.text.patterns import data_text

if TYPE_CHECKING:
    from ua_memory.index.embedding import EmbeddedQuery
    from ua_memory.text.dates import Order


# -- fuse --------------------------------------------------------------------------------------------------
# The score of a bank without token vectors; with them, the usual case, `recall.rerank` scores instead. Pure
# arithmetic.
#
#     meaning  m = (cosine - 0.1) / 0.9, not below 0
#     words    w = 0.75 * share of the query's weight that the item has + 0.25 * min(1, BM25 / that weight)
#     own      o = 1 - (1 - m) * (1 - 0.95 * w)
#     all      a = 1 - (1 - o) * (1 - 0.2 * o of the item before) * (1 - 0.2 * o of the item after)
#     score    s = a ** 0.85
#
# Either arm alone can carry a hit: a cosine of 0.37 or three tenths of the query's words make 0.35. The
# neighbours are those under the same heading: a reply answers what the line above it asked. The score is
# absolute, so it can be compared across queries, and the order is that of the score; the last step only
# places it, so that 0.35 parts good hits from others. The constants were picked among some ninety settings
# on two development conversations, where most lie within a point of each other, which is noise. Scored
# offline, over all items, R@10 is 71.9 with these, 71.7 with standardised scores added up, 60.9 with
# reciprocal ranks and no neighbours; the search itself, which sees only its candidates, reaches 71.5.


FLOOR = 0.1
"""Cosines of unrelated texts lie below this."""
WORDS_WEIGHT = 0.95
BM25_PART = 0.25
NEIGHBOUR = 0.2
PLACED = 0.85


@dataclass(frozen=True, slots=True)
class Signals:
    """What is known of a candidate: cosine (None without vectors), share of the query's weight, BM25."""

    item: IndexItem
    cosine: float | None
    share: float
    bm25: float


def fuse(candidates: Sequence[Signals], weight: float) -> list[Ranked]:
    """All candidates by score, ties by path and line. `weight` is the sum of the query's term weights."""
    own = {one.item.key: _own(one, weight) for one in candidates}
    at = {(one.item.path, one.item.seq): one.item for one in candidates}
    fused = []
    for one in candidates:
        meaning, words, alone = own[one.item.key]
        before = _beside(one.item, at.get((one.item.path, one.item.seq - 1)), own)
        after = _beside(one.item, at.get((one.item.path, one.item.seq + 1)), own)
        score = 1 - (1 - alone) * (1 - NEIGHBOUR * before) * (1 - NEIGHBOUR * after)
        parts = {"meaning": meaning, "words": words, "before": before, "after": after}
        fused.append(
            Ranked(one.item, round(score**PLACED, 6), {name: round(part, 4) for name, part in parts.items()})
        )
    return sorted(fused, key=lambda f: (-f.score, f.item.path, f.item.line, f.item.key))


def own_score(one: Signals, weight: float) -> float:
    """A candidate's score by itself, without its neighbours."""
    return _own(one, weight)[2]


def _own(one: Signals, weight: float) -> tuple[float, float, float]:
    meaning = max(0.0, ((one.cosine or 0.0) - FLOOR) / (1 - FLOOR))
    words = (1 - BM25_PART) * one.share + BM25_PART * min(1.0, one.bm25 / weight if weight else 0.0)
    return min(meaning, 1.0), words, 1 - (1 - min(meaning, 1.0)) * (1 - WORDS_WEIGHT * words)


def _beside(item: IndexItem, other: IndexItem | None, own: Mapping[str, tuple[float, float, float]]) -> float:
    if other is None or (other.heading, other.session) != (item.heading, item.session):
        return 0.0
    return own[other.key][2]


# -- order -------------------------------------------------------------------------------------------------
# From what the arms find to one order: all candidates and their neighbours, scored in one way.
#
# `_late` ranks by late interaction (`recall.rerank`); where there are no token vectors, `_scored` by `fuse`.


DEPTH = 60
"""Candidates asked of each arm: with 60 and their neighbours R@10 is that of scoring all items, with 30 too,
but R@2000t falls by a point."""

LEANING = 40
"""Candidates whose neighbours are looked at, the best by themselves."""

CLOSE = 60
"""Candidates whose neighbours are looked at where scores are added up."""


def ordered(
    index: Index, asked: ParsedQuery, said: EmbeddedQuery | None, arms: Arms, where: Filters
) -> list[Ranked]:
    """What the arms found and what stands beside it, best first. Without `said` words decide."""
    strict = bool(where or asked.query.phrases)
    ranked: Sequence[Ranked] | None = None
    if said is not None and len(said.tokens):
        import numpy as np

        # Seen under load, once in some thousand searches: numpy warns of an invalid value in a product of
        # numbers that are all finite.
        with np.errstate(invalid="ignore"):
            ranked = _late(index, asked, said, arms, where)
    if ranked is None:
        ranked = _scored(index, asked, said, arms, strict)
    return [one for one in recall_arms.lift_linked(ranked, arms["entity"]) if one.score > 0]


def by_words(index: Index, asked: ParsedQuery, depth: int, where: Filters) -> Arms:
    """What the arms find that need no model."""
    return {
        "keyword": recall_arms.find_by_words(index.words, asked.query, depth, where),
        "semantic": [],  # its place in the order of arms, until the model has read
        # What must hold a phrase is found by its words; a name or a day says nothing about it.
        "entity": [] if asked.query.phrases else recall_arms.find_by_names(index.words, asked, depth, where),
        "temporal": []
        if asked.query.phrases
        else recall_arms.find_by_days(index.words, asked.window, depth, where),
    }


def _together(arms: Arms) -> list[IndexItem]:
    """What the arms found, each once."""
    return list({one.item.key: one.item for found in arms.values() for one in found}.values())


def _late(
    index: Index, asked: ParsedQuery, said: EmbeddedQuery, arms: Arms, where: Filters
) -> list[Ranked] | None:
    """The candidates by late interaction; None where no text has token vectors, or no word counts."""
    found, kept = _together(arms), TokenMatches(asked, said)
    wanted_stems = {stem for word in kept.words for stem in (*word.stems, word.whole)}
    forms = asked.weights.forms

    stems, known = Stems({}, {}), set[str]()

    def read(items: list[IndexItem]) -> None:
        new = [item for item in items if item.key not in known]
        known.update(item.key for item in new)
        kept.add(index.cache.read(index.embeds.model, kept.missing(item.vhash for item in new)))
        spelt = new if kept.spelt else kept.unread(new)
        stems.over.update(recall_arms.heading_stems(index.words, new, wanted_stems, forms))
        if spelt:
            stems.within.update(recall_arms.matching_stems(index.words, spelt, wanted_stems, forms))

    read(found)
    if not kept.any_tokens or not kept.weights.any():
        return None
    best = foremost(asked, found, kept, stems, LEANING)
    talk = [item for item in best if item.speaker]
    # A passage of a session has its neighbours within it: 900 characters.
    near = [item for item in best if item.record != SESSION]
    beside = index.words.neighbours(talk, REACH) + index.words.neighbours(near, (-1, 1))
    items = list({item.key: item for item in (*found, *beside)}.values())
    wanted = {item.key for item in (*found, *_joining(asked, where, beside))}
    read(items)
    return rerank(asked, items, kept, stems, wanted)


def _joining(asked: ParsedQuery, where: Filters, beside: list[IndexItem]) -> list[IndexItem]:
    """What of that which stands beside candidates may be a hit: nothing where there are filters. Where a
    phrase is required, only what is said around it in a talk, if a question asks: "What did you take from
    “Becoming Nicole”?" is answered two turns on, without the title."""
    if where:
        return []
    if not asked.query.phrases:
        return beside
    return [item for item in beside if item.speaker] if asked.text.rstrip().endswith("?") else []


def _scored(
    index: Index, asked: ParsedQuery, said: EmbeddedQuery | None, arms: Arms, strict: bool
) -> list[Ranked]:
    """The candidates and their neighbours by scores added up, without what filters forbid."""
    found = _together(arms)
    known = _evidence(index, asked, said, arms, found)
    total = asked.weights.total
    best = sorted(known, key=lambda one: (-own_score(one, total), one.item.path, one.item.line))[:CLOSE]
    known += _evidence(index, asked, said, arms, index.words.neighbours([one.item for one in best]))
    keys = {item.key for item in found}
    known = list({one.item.key: one for one in reversed(known)}.values())
    ranked = [one for one in fuse(known, total) if not strict or one.item.key in keys]
    return _timely(ranked, asked.window)


def _timely(ranked: list[Ranked], window: DateRange | None) -> list[Ranked]:
    """What lies in the days that the query means is lifted, as late interaction does."""
    if window is None:
        return ranked
    lifted = [
        one._replace(score=min(1.0, one.score + lift), parts={**one.parts, "when": lift})
        if (one.score > 0 or window.only) and (lift := timely(window, one.item))
        else one
        for one in ranked
    ]
    return sorted(lifted, key=lambda one: -one.score)


def _evidence(
    index: Index, asked: ParsedQuery, said: EmbeddedQuery | None, arms: Arms, items: list[IndexItem]
) -> list[Signals]:
    bm25 = {one.item.key: one.score for one in arms["keyword"]}
    share = recall_arms.coverage(index.words, asked.weights, items)
    cosine: dict[str, float] = {}
    if said is not None:
        cosine = {one.item.vhash: one.score for one in arms["semantic"]}
        missing = sorted({item.vhash for item in items} - set(cosine))
        cosine |= recall_arms.cosines(index, said.vector, missing)
    return [Signals(i, cosine.get(i.vhash), share[i.key], bm25.get(i.key, 0.0)) for i in items]


# -- untrusted ---------------------------------------------------------------------------------------------
# What nobody of the house has said is lowered by `LOWERED`: beside an equal answer of a person or an agent it
# stands behind it, and alone it is still found. Age lowers nothing: a memory is for years, and a bank that
# nobody has written to for five must answer as it did on its last day.


LOWERED = 0.05
"""About five places among the first ten."""


def lowered(found: list[Ranked]) -> list[Ranked]:
    """The candidates by their scores, once those of untrusted ones are lowered; equal ones stay in order."""
    if any(one.item.untrusted for one in found):
        return sorted(map(_lowered, found), key=lambda one: -one.score)
    return found


def _lowered(one: Ranked) -> Ranked:
    if not one.item.untrusted:
        return one
    score = round(max(one.score - LOWERED, one.score / 2), 6)
    return one._replace(score=score, parts={**one.parts, "untrusted": round(score - one.score, 4)})


# -- sessions ----------------------------------------------------------------------------------------------
# What people say later in a project corrects what they said before, in words that seldom say so.


RECENT, AMONG = 0.08, 20
"""The most that a passage of a session gains by its day, and the hits, best first, whose days are compared.
Of twelve stories that nothing else was tuned to, with 72 questions about values that had changed, the newer
value stands before the older for 57 % with it and for 40 % without, and the first hit is right for 60 %
instead of 53 %; 0.05 and 0.12 do as well."""
FACT, SAME = 0.58, 0.8
"""The score from which on a fact counts as a good answer, and the share of a query's words that a question
has which asks the same."""
_QUESTION = re.compile(r"[^.!?。！？\n]*[?？]")


def recent_first(found: list[Ranked], asked: ParsedQuery) -> list[Ranked]:
    """The candidates, best first, with passages of later sessions before others that match about as well.

    What was written after all of them gains as much as the last; the turns of a talk stay where they are,
    since one of them seldom corrects another. A passage that only asks the same stands behind a good fact.
    """
    near = found[:AMONG]
    days = sorted({one.item.day for one in near if one.item.record == SESSION and one.item.day})
    if not days:
        return found
    gained = {day: RECENT * n / max(len(days) - 1, 1) for n, day in enumerate(days)}
    fact = max((one.score for one in near if one.item.record != SESSION), default=0.0)

    def placed(one: Ranked) -> float:
        day = one.item.day or ""
        if one.item.record != SESSION or one.item.speaker:
            return -one.score - (RECENT if day > days[-1] else 0)
        score = one.score + gained.get(day, 0)
        again = score >= fact >= FACT and _asks_again(asked, one.item.text)
        return -min(score, fact - 1e-6) if again else -score

    return sorted(near, key=placed) + found[AMONG:]


def _asks_again(asked: ParsedQuery, text: str) -> bool:
    """Whether a text has a question with most of the query's words."""
    words = [asked.text[word.start : word.end].casefold() for word in asked.words if word.specific]
    questions = _QUESTION.findall(text.casefold())
    return bool(words) and any(
        sum(word in question for word in words) >= SAME * len(words) for question in questions
    )


# -- chronology --------------------------------------------------------------------------------------------
# Hits in order of time, where the newest or the oldest is asked for: among good answers, and no others.


BAND = 0.1
"""So far below the best a hit may score and still be taken for as good an answer. On the development data the
next turn that answers a question lies 0.09 below the best of them in half the cases, the fifth hit 0.14."""


def in_time(ranked: Sequence[Ranked], order: Order) -> list[Ranked]:
    """Hits, best first, with those as good as the best (`BAND`) in order of time; of one day, by score.

    What has no date comes after what has one. Who is named in the best hit must be named in the others too:
    the latest of somebody else is not what was asked for. The places' scores stay, so that they still fall;
    what a hit gains or loses by it is its part `order`.
    """
    near = [n for n, one in enumerate(ranked) if _as_good(one, ranked[0])]
    dated = [n for n in near if ranked[n].item.date]
    dated.sort(key=lambda n: ranked[n].item.date, reverse=order == "latest")
    placed = list(ranked)
    for at, n in zip(near, [*dated, *(n for n in near if not ranked[n].item.date)], strict=True):
        one, score = ranked[n], ranked[at].score
        placed[at] = one._replace(score=score, parts={**one.parts, "order": round(score - one.score, 4)})
    return placed


def _as_good(one: Ranked, best: Ranked) -> bool:
    return one.score >= best.score - BAND and one.parts.get("named", 0) >= best.parts.get("named", 0)


MATTER = 0.2
"""The share of the best score below which a hit of the days that are asked for is about something else."""


def within(ranked: Sequence[Ranked], window: DateRange) -> list[Ranked]:
    """Hits, best first, with those of the days that the query means before all others. Scores still fall."""
    inside = [one for one in ranked if window.covers(one.item)]
    if inside and window.only:
        return _by_day(inside)
    near = [one for one in inside if one.score >= MATTER * ranked[0].score]
    if not near or window.approximate:
        return list(ranked)
    first = {one.item.key for one in near}
    # What is of those days, but about something else, comes last.
    others = sorted(
        (one for one in ranked if one.item.key not in first), key=lambda one: window.covers(one.item)
    )
    falling = accumulate((one.score for one in (*near, *others)), min)
    return [one._replace(score=score) for one, score in zip((*near, *others), falling, strict=True)]


def _by_day(found: Sequence[Ranked]) -> list[Ranked]:
    """Hits of a query that is only a time, one as good as another: facts, then passages of sessions, each the
    oldest first."""
    placed = sorted(
        found, key=lambda one: (one.item.record == SESSION, one.item.date, one.item.path, one.item.line)
    )
    return [one._replace(score=placed[0].score) for one in placed]


# -- cross -------------------------------------------------------------------------------------------------
# The last word on the order of the best hits, for those who have a cross-encoder (see `index.embedding`).


READ = 30
"""So many of the best are read: on two cores a small model takes some tens of milliseconds for them."""


def crossed(model: CrossEncoder, query: str, found: Sequence[Ranked]) -> list[Ranked]:
    """The first READ in the model's order, the rest as they were. Raises CrossUnavailable.

    Its numbers mean something else with each model, so the scores stay those of the places: the best is as
    good as the best was before. What the model said stands in `parts`, under `cross`.
    """
    best, rest = found[:READ], found[READ:]
    if not best:
        return []
    texts = [" ".join(part for part in (one.item.context, one.item.text) if part) for one in best]
    said = model.scores(query, texts)
    order = sorted(range(len(best)), key=lambda n: -said[n])
    return [
        best[n]._replace(score=place.score, parts={**best[n].parts, "cross": round(said[n], 4)})
        for n, place in zip(order, best, strict=True)
    ] + list(rest)


# -- calibration -------------------------------------------------------------------------------------------
# From the score that orders the hits to the one that is shown: the chance that the first of them, or one of
# the two after it, answers the query. A logistic model of a few features of the first hit; its weights are in
# `data/answers.json`, made by `benchmarks/answers.py`. Another hit has the chance that it would have in the
# first one's place, at most its share of the first one's.


ANSWERED = 0.5
"""The chance from which on a query counts as answered."""
FIFTH = 5
"""The hit that tells how well the bank's other texts match: an answer stands out from these."""
WEAK = 0.35
"""A first hit that matches less well by itself is no answer, whatever speaks for it besides."""
FAINT = 0.12
"""A fifth hit below this, or none, counts as this much: that a small bank has nothing near says little."""
MANY_WORDS = 6
"""Words besides names that are counted, no more."""
SAME_MATTER = 0.5
"""The share of the first hit's score below which a hit is no part of an answer that nobody looks through."""


@cache
def _weights() -> Mapping[str, Mapping[str, float]]:
    """The weights by feature, `bias` among them, with token vectors (`late`) and without (`words`), and for
    what a prompt is given unasked (`prompt`, see `search.served`)."""
    read: Mapping[str, Mapping[str, float]] = json.loads(data_text("answers.json"))
    return read


def likelihood(model: str, found: Mapping[str, float]) -> float:
    """What one of the models says of features by name, 0 to 1."""
    weights = _weights()[model]
    return 1 / (1 + math.exp(-weights["bias"] - sum(weights[name] * value for name, value in found.items())))


def features(asked: ParsedQuery, hits: Sequence[Ranked]) -> Mapping[str, float]:
    """What the chance of an answer depends on, by name, each about 0 to 1. `hits` are those shown, at least
    one, best first."""
    first, late = hits[0], "every" in hits[0].parts
    fifth = hits[:FIFTH][-1].score if len(hits) >= (FIFTH if late else 2) else 0.0
    words = [word for word in asked.words if word.stems and word.specific]
    others = len(words) - sum(asked.are_names(words))
    found = {
        "score": first.score,
        "fifth": max(FAINT, fifth),
        "words": min(others, MANY_WORDS) / MANY_WORDS,
        "session": float(first.item.record == SESSION),
        "when": float(first.parts.get("when", 0) > 0),
    }
    return {
        **found,
        **{name: first.parts[name] for name in ("every", "names", "rest") if name in first.parts},
    }


def chance(asked: ParsedQuery, hits: Sequence[Ranked]) -> float:
    """The chance, 0 to 1, that one of the first three of these hits answers the query."""
    if not hits or not hits[0].score:
        return 0.0
    if asked.window and asked.window.only and asked.window.covers(hits[0].item):
        return max(hits[0].score, ANSWERED)  # of these days, and nothing else was asked
    found = features(asked, hits)
    sure = likelihood("late" if "every" in found else "words", found)
    sure = min(sure, hits[0].score) if hits[0].score < WEAK else sure
    first = hits[:LOOKED_AT]
    return sure * ANOTHER if _lacks_number(asked, first) or _of_another(asked, first) else sure


def _lacks_number(asked: ParsedQuery, hits: Sequence[Ranked]) -> bool:
    """Whether an English query asks for an amount or a number, and none of these hits has one."""
    if not _ASKS_NUMBER.match(asked.text) or _ELSE_TOO.search(asked.text):
        return False
    near = [one for one in hits if one.score >= AS_WELL * hits[0].score]
    words = {word for one in near for word in words_of(one.item.text[:LOOKED_INTO])}
    return not any(_KANJI_OR_DIGIT.search(word) or word in _COUNTS or word in numerals() for word in words)


# Of what has a number for its name (a ticket, a port, a version, a host) another number names another thing.
# A model sees next to no difference between the two, so the numbers are compared by their signs.
ANOTHER = 1 / 3
"""What is left of the chance where a query names a thing by a number, and the best hits name others, or asks
for a number, and the best hit has none."""
LOOKED_AT, LOOKED_INTO = 3, 4000
"""Hits that are looked at, and characters of each."""
_NUMBERED = re.compile(
    r"(?<![^\W_])([^\W\d_]{1,40})[-_#№.:\s]{0,2}(\d+(?:[.,:/-]\d+)*)(?![A-Za-z0-9%€$£¥日月年円人個回時分秒件])"
)
_PARTICLE = re.compile(r"[ぁ-ん]\Z")
_ASKS_NUMBER = re.compile(
    r"\s*(?:how (?:much|many) (?!of\b)"
    r"|what (?:did|do|does|will|would) [^?]*\b(?:cost|pay)\W*\Z"
    r"|(?:what(?:[’']s| is| was| are| were) )?(?:the )?"
    r"(?:price|costs?|rent|fee|salary|(?:\w+ )?number) (?:of|for) )",
    re.IGNORECASE,
)
_ELSE_TOO = re.compile(r"\b(?:who|whom|whose|why|where|which)\b", re.IGNORECASE)
"""What a query asks for besides a number."""
_COUNTS = frozenset(
    """
one once twice half dozen hundred thousand free every daily weekly monthly no none nobody nothing never all
both pair twins couple few several many handful waived paid most some
""".split()  # noqa: SIM905
)
"""Words besides those for numbers that an amount may be told by."""
AS_WELL = 0.75
"""The share of the first one's match from which on a hit may hold the number instead."""
_KANJI_OR_DIGIT = re.compile(r"[\d一二三四五六七八九十百千万]")


def _of_another(asked: ParsedQuery, hits: Sequence[Ranked]) -> bool:
    """Whether the query is about something with a number in its name, the first of the hits about one with
    another number, none about that one, and most of what is asked for besides not in the first either."""
    numbered = [*_NUMBERED.finditer(asked.text)] if asked.window is None else []
    if not numbered:
        return False
    texts = [one.item.text[:LOOKED_INTO] for one in hits]
    rest = [word for word in asked.words if word.specific]
    others = False
    for match in numbered:
        within = [word for word in asked.words if match.start() <= word.start and word.end <= match.end()]
        what = len(asked.text[: match.start()].rstrip())  # the end of "ticket" in "the ticket BUG-78"
        rest = [word for word in rest if word not in within and word.end != what]
        if any(word.stop and word.end <= match.end(1) for word in within) or _PARTICLE.search(match[1]):
            continue  # "in 2026", "at 5"
        found = [[n for name, n in _NUMBERED.findall(text) if _one_name(name, match[1])] for text in texts]
        same = any(_one_number(n, match[2]) for numbers in found for n in numbers)
        others = others or (bool(found[0]) and not same)
    if not others:
        return False
    said = [asked.text[word.start : word.end].casefold() for word in rest]
    there = tuple(words_of(texts[0]))
    met = sum(any(one.startswith(word[: max(4, len(word) - 2)]) for one in there) for word in said)
    return met <= len(said) / 2


def _one_name(one: str, other: str) -> bool:
    """Whether two names are one; in a script without spaces what stands before a name is joined to it."""
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    return long == short or (long.endswith(short) and is_unspaced(long[-len(short) - 1]))


def _one_number(one: str, other: str) -> bool:
    """Whether two numbers are one, or one is the other more exactly: 3 and 3.11."""
    short, long = sorted((one.replace(",", ""), other.replace(",", "")), key=len)
    return long == short or long.startswith(f"{short}.")


def calibrated(asked: ParsedQuery, hits: Sequence[Ranked]) -> list[float]:
    """The scores of hits, best first, 0 to 1: of the first its `chance`; none is below a later one's."""
    sure = chance(asked, hits)
    if not sure:
        return [0.0] * len(hits)
    scores = [sure]
    for at, one in enumerate(hits[1:], 1):
        alone = chance(asked, [one, *hits[:at], *hits[at + 1 :]]) * _own_share(one)
        scores.append(min(sure, sure * one.score / hits[0].score, alone))
    return [round(score, 6) for score in accumulate(reversed(scores), max)][::-1]


def _own_share(one: Ranked) -> float:
    """How much of a hit's match is not lent by what stands beside it; 1 in a talk, where an answer has often
    none of the question's words."""
    own, lent = one.parts.get("words", 0.0), one.parts.get("beside", 0.0)
    return own / (own + lent) if lent > 0 and not one.item.speaker else 1.0
