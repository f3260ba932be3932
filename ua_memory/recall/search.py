"""A query to an Answer: refresh, both arms, one order, each hit checked against its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ua_memory.index.filters import Filters
from ua_memory.index.items import Item
from ua_memory.index.sync import READY, Index, Refresh
from ua_memory.index.terms import Query, clean, read_query
from ua_memory.recall import keyword
from ua_memory.recall.fuse import Evidence, Fused, fuse, own_score
from ua_memory.recall.keyword import Weights
from ua_memory.recall.present import Present
from ua_memory.recall.snippet import snippet

if TYPE_CHECKING:
    from ua_memory.recall.semantic import Semantic

__all__ = ["Answer", "Filters", "Hit", "search", "search_many"]

DEPTH = 150
"""Candidates asked of each arm."""

UNKNOWN = "the model knows too few of the query's words"

CLOSE = 60
"""Candidates whose neighbours are looked at."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One result. `score` is calibrated (see `fuse`); `arms` has (rank, raw score) of each arm that found it,
    'keyword' (BM25) and 'semantic' (cosine); `parts` what the score is made of."""

    item: Item
    score: float
    snippet: str
    arms: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """The hits, best first; `notes` say what was left out or not at hand; mode is 'hybrid' or 'words'.

    `stale` counts what there was no time to read: `files` that have changed, `texts` without a vector.
    """

    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()
    mode: str = "words"
    stale: Mapping[str, int] = field(default_factory=dict)


def search(
    index: Index,
    query: str,
    *,
    limit: int = 6,
    min_score: float = 0.0,
    filters: Filters | None = None,
    refreshed: Refresh | None = None,
) -> Answer:
    """The best hits for one query. Any text is a query; one that says nothing finds nothing."""
    return search_many(
        index, [query], limit=limit, min_score=min_score, filters=filters, refreshed=refreshed
    )[0]


def search_many(
    index: Index,
    queries: Sequence[str],
    *,
    limit: int = 6,
    min_score: float = 0.0,
    filters: Filters | None = None,
    refreshed: Refresh | None = None,
) -> list[Answer]:
    """An Answer for each query, in order. The index is brought up to date once, all queries embedded at once.

    `refreshed` is the report of a caller who has just done that.
    """
    report = refreshed or index.refresh()
    notes, vectors, near = _prepared(index, queries, report)
    left = {name: n for name, n in (("files", report.left_files), ("texts", report.left_texts)) if n}
    notes += [f"stale: {_left(left)}; the next search reads on"] if left else []
    where, present = filters or Filters(), Present(index.store)
    answers = []
    for number, text in enumerate(queries):
        asked = _Asked(index, text, where)
        said = vectors is not None and bool(vectors[number].any())
        if said:
            asked.by_meaning(vectors[number], near[number])
        hits, missing = _hits(asked, present, limit, min_score)
        unknown = vectors is not None and not said and bool(text.strip())
        told = [*notes, *([f"searched by words alone: {UNKNOWN}"] if unknown else [])]
        told += [f"{missing} left out: changed in their files since"] if missing else []
        answers.append(Answer(hits, tuple(told), "hybrid" if said else "words", left))
    return answers


def _left(left: Mapping[str, int]) -> str:
    files, texts = left.get("files", 0), left.get("texts", 0)
    said = [f"{files} changed file{'' if files == 1 else 's'} not read yet"] if files else []
    said += [f"{texts} text{'' if texts == 1 else 's'} found by words alone yet"] if texts else []
    return ", ".join(said)


def _prepared(index: Index, queries: Sequence[str], report: Refresh) -> tuple[list[str], Any, Any]:
    """Notes, the queries' vectors and the nearest texts of each; no vectors where there can be none."""
    notes = [*report.notes, *(str(problem) for problem in report.failed)]
    if report.semantic != READY:
        return [*notes, f"searched by words alone: {report.semantic}"], None, None
    from ua_memory.index.embed import EmbeddingUnavailable
    from ua_memory.index.vectors import VectorsUnavailable

    try:
        vectors: Any = index.embeds.texts([clean(query) for query in queries]) if queries else []
        # A query of which the model knows no word is a row of zeros: near to nothing, asked by words alone.
        said = [number for number, row in enumerate(vectors) if row.any()]
        near = dict(zip(said, index.nearest([vectors[number] for number in said], DEPTH), strict=True))
        return notes, vectors, near
    except (EmbeddingUnavailable, VectorsUnavailable) as error:
        return [*notes, f"searched by words alone: {error}"], None, None


class _Asked:
    """One query on its way: what the arms found, and what is known of each candidate."""

    def __init__(self, index: Index, text: str, where: Filters) -> None:
        self.index, self.where = index, where
        self.query: Query = read_query(text)
        self.keyword = keyword.find(index.words, self.query, DEPTH, where)
        self.weights: Weights = keyword.weigh(index.words, self.query)
        self.semantic: list[Semantic] = []
        self._vector: Any = None

    def by_meaning(self, vector: Any, near: Sequence[tuple[str, float]]) -> None:
        from ua_memory.recall import semantic

        self._vector = vector
        self.semantic = semantic.find(self.index, vector, near, DEPTH, self.where, self.query)

    def fused(self) -> list[Fused]:
        """The candidates of both arms and their neighbours, in one order, without what filters forbid."""
        found = {one.item.key: one.item for one in self.keyword}
        found.update((one.item.key, one.item) for one in self.semantic)
        known = self._evidence(list(found.values()))
        best = sorted(
            known, key=lambda one: (-own_score(one, self.weights.total), one.item.path, one.item.line)
        )[:CLOSE]
        beside = self.index.words.neighbours([one.item for one in best])
        known += self._evidence([item for item in beside if item.key not in found])
        strict = bool(self.where or self.query.phrases)
        ranked = fuse(known, self.weights.total)
        return [one for one in ranked if one.score > 0 and (not strict or one.item.key in found)]

    def _evidence(self, items: list[Item]) -> list[Evidence]:
        bm25 = {one.item.key: one.score for one in self.keyword}
        share = keyword.shares(self.index.words, self.weights, items)
        cosine = self._cosines(items)
        return [Evidence(i, cosine.get(i.vhash), share[i.key], bm25.get(i.key, 0.0)) for i in items]

    def _cosines(self, items: list[Item]) -> dict[str, float]:
        if self._vector is None:
            return {}
        from ua_memory.recall import semantic

        known = {one.item.vhash: one.score for one in self.semantic}
        missing = sorted({item.vhash for item in items} - set(known))
        return {**known, **semantic.cosines(self.index, self._vector, missing)}


def _hits(asked: _Asked, present: Present, limit: int, min_score: float) -> tuple[tuple[Hit, ...], int]:
    arms: dict[str, dict[str, tuple[int, float]]] = {}
    for by_words in asked.keyword:
        arms.setdefault(by_words.item.key, {})["keyword"] = (by_words.rank, by_words.score)
    for by_meaning in asked.semantic:
        arms.setdefault(by_meaning.item.key, {})["semantic"] = (by_meaning.rank, by_meaning.score)
    hits: list[Hit] = []
    missing = 0
    for one in asked.fused():
        if len(hits) >= limit or one.score < min_score:
            break
        item = present.confirm(one.item)
        if item is None:
            missing += 1
            continue
        shown = snippet(asked.index.words, item.text, asked.weights.idf)
        hits.append(Hit(item, one.score, shown, arms.get(item.key, {}), one.parts))
    return tuple(hits), missing
