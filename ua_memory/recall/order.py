"""From what the arms find to one order: all candidates and what stands beside them, scored in one way.

`late` is the default; `score` adds calibrated scores up, and stands in where there are no token vectors;
`rrf` adds reciprocal ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ua_memory.index.filters import Filters
from ua_memory.index.items import Item
from ua_memory.index.sync import Index
from ua_memory.recall import entity, keyword, temporal
from ua_memory.recall.arms import Arms, Ranked
from ua_memory.recall.asked import Asked, Window
from ua_memory.recall.fuse import Evidence, fuse, own_score, reciprocal

if TYPE_CHECKING:
    from ua_memory.index.said import Said

DEPTH = 60
"""Candidates asked of each arm: with 60 and their neighbours R@10 is that of scoring all items, with 30 too,
but R@2000t falls by a point."""

LEANING = 40
"""Candidates whose neighbours are looked at, the best by themselves."""

CLOSE = 60
"""Candidates whose neighbours are looked at where scores are added up."""


def ordered(
    index: Index, asked: Asked, said: Said | None, arms: Arms, where: Filters, order: str
) -> list[Ranked]:
    """What the arms found and what stands beside it, best first. Without `said` words decide."""
    strict = bool(where or asked.query.phrases)
    ranked: Sequence[Ranked] | None = None
    if order == "late" and said is not None and len(said.tokens):
        ranked = _late(index, asked, said, arms, where)
    if ranked is None:
        ranked = reciprocal(arms) if order == "rrf" else _scored(index, asked, said, arms, strict)
    return [one for one in entity.linked(ranked, arms["entity"]) if one.score > 0]


def by_words(index: Index, asked: Asked, depth: int, where: Filters) -> Arms:
    """What the arms find that need no model."""
    return {
        "keyword": keyword.find(index.words, asked.query, depth, where),
        "semantic": [],  # its place in the order of arms, until the model has read
        # What must hold a phrase is found by its words; a name or a day says nothing about it.
        "entity": [] if asked.query.phrases else entity.find(index.words, asked, depth, where),
        "temporal": [] if asked.query.phrases else temporal.find(index.words, asked.window, depth, where),
    }


def _together(arms: Arms) -> list[Item]:
    """What the arms found, each once."""
    return list({one.item.key: one.item for found in arms.values() for one in found}.values())


def _late(index: Index, asked: Asked, said: Said, arms: Arms, where: Filters) -> list[Ranked] | None:
    """The candidates by late interaction; None where no text has token vectors, or no word counts."""
    from ua_memory.recall.rerank import REACH, Matches, foremost, rerank

    found, kept = _together(arms), Matches(asked, said)

    def read(items: list[Item]) -> Mapping[str, frozenset[str]]:
        names = kept.missing(item.vhash for item in items)
        kept.add(index.cache.read(index.embeds.model, names))
        spelt = items if kept.spelt else kept.unread(items)
        return keyword.stems(index.words, spelt) if spelt else {}

    stems = read(found)
    if not kept.told or not kept.weights.any():
        return None
    best = foremost(asked, found, kept, stems, LEANING)
    talk = [item for item in best if item.speaker]
    beside = index.words.neighbours(talk, REACH) + index.words.neighbours(best, (-1, 1))
    items = list({item.key: item for item in (*found, *beside)}.values())
    wanted = {item.key for item in (*found, *_joining(asked, where, beside))}
    return rerank(asked, items, kept, read(items), wanted)


def _joining(asked: Asked, where: Filters, beside: list[Item]) -> list[Item]:
    """What of that which stands beside candidates may be a hit: nothing where there are filters. Where a
    phrase is required, only what is said around it in a talk, if a question asks: "What did you take from
    “Becoming Nicole”?" is answered two turns on, without the title."""
    if where:
        return []
    if not asked.query.phrases:
        return beside
    return [item for item in beside if item.speaker] if asked.text.rstrip().endswith("?") else []


def _scored(index: Index, asked: Asked, said: Said | None, arms: Arms, strict: bool) -> list[Ranked]:
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


def _timely(ranked: list[Ranked], window: Window | None) -> list[Ranked]:
    """What lies in the days that the query means is lifted, as late interaction does."""
    if window is None:
        return ranked
    from ua_memory.recall.rerank import timely

    lifted = [
        one._replace(score=min(1.0, one.score + lift), parts={**one.parts, "when": lift})
        if (one.score > 0 or window.alone) and (lift := timely(window, one.item))
        else one
        for one in ranked
    ]
    return sorted(lifted, key=lambda one: -one.score)


def _evidence(index: Index, asked: Asked, said: Said | None, arms: Arms, items: list[Item]) -> list[Evidence]:
    bm25 = {one.item.key: one.score for one in arms["keyword"]}
    share = keyword.shares(index.words, asked.weights, items)
    cosine: dict[str, float] = {}
    if said is not None:
        from ua_memory.recall import semantic

        cosine = {one.item.vhash: one.score for one in arms["semantic"]}
        missing = sorted({item.vhash for item in items} - set(cosine))
        cosine |= semantic.cosines(index, said.vector, missing)
    return [Evidence(i, cosine.get(i.vhash), share[i.key], bm25.get(i.key, 0.0)) for i in items]
