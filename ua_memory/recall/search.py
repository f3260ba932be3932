"""A query to an Answer: refresh, the arms, one order, each hit checked against its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ua_memory import dates
from ua_memory.index.filters import Filters
from ua_memory.index.items import Item
from ua_memory.index.reading import READY, Refresh
from ua_memory.index.scopes import read_groups
from ua_memory.index.sync import Index
from ua_memory.index.terms import clean
from ua_memory.recall.asked import Asked, Window, idle, read
from ua_memory.recall.boosts import boosted
from ua_memory.recall.chronology import in_time
from ua_memory.recall.fold import Kept, folded
from ua_memory.recall.order import DEPTH, Ordered, ordered
from ua_memory.recall.present import Present
from ua_memory.recall.snippet import snippet
from ua_memory.wording import counted

if TYPE_CHECKING:
    from ua_memory.index.embed import Said

__all__ = ["Answer", "Filters", "Hit", "read_groups", "search", "search_many"]

UNKNOWN = "the model knows too few of the query's words"


@dataclass(frozen=True, slots=True)
class Hit:
    """One result. `score` is calibrated (see `rerank`, `fuse`); `arms` has (rank, raw score) of each arm that
    found it, by name; `parts` what the score is made of; `folded` the items it stands for (see `fold`)."""

    item: Item
    score: float
    snippet: str
    arms: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)
    folded: tuple[Item, ...] = ()


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
    depth: int = 0,
) -> list[Answer]:
    """An Answer for each query, in order. The index is brought up to date once, all queries embedded at once.

    `refreshed` is the report of a caller who has just done that. `depth` is how many candidates each arm is
    asked for, if not as many as usual.
    """
    report = refreshed or index.refresh()
    depth = depth or max(DEPTH, limit)
    notes, said, near = _prepared(index, queries, report, depth)
    left = {name: n for name, n in (("files", report.left_files), ("texts", report.left_texts)) if n}
    notes += [f"stale: {_left(left)}; the next search reads on"] if left else []
    where, present = filters or Filters(), Present(index.files)
    answers = []
    for number, text in enumerate(queries):
        window, newest, unread = _time(index, text)
        meant = said[number] if said else None
        asked = read(index.words, text, window, meant.spans if meant else ())
        known = meant if meant is not None and meant.vector.any() else None
        every = ordered(index, asked, known, near.get(number, ()), depth, where, index.store.config.order)
        found, uncrossed = _placed(index, text, every, newest)
        kept, missing = folded(index.words, found, present.confirm, limit, min_score, beliefs=not where.kinds)
        hits = tuple(_hit(index, asked, one) for one in kept)
        unknown = meant is not None and known is None and bool(text.strip())
        told = [*notes, *unread, *asked.guesses, *uncrossed]
        told += [f"searched by words alone: {UNKNOWN}"] if unknown else []
        told += [f"{missing} left out: changed in their files since"] if missing else []
        answers.append(Answer(hits, tuple(told), "hybrid" if known else "words", left))
    return answers


def _time(index: Index, text: str) -> tuple[Window | None, dates.Order | None, list[str]]:
    """The days that a query means, as of now and where the bank is, and whether it asks for the newest or the
    oldest; or why they could not be read."""
    text = clean(text)
    try:
        time = dates.read(text, index.store.now(), index.store.config.zone)
    except dates.DatesUnavailable as error:
        return None, None, [f"its time words were not read: {error.what}"]
    window = Window(time.start or "", time.end or "", idle(text, time.at)) if time else None
    return window, time.order, []


def _placed(
    index: Index, text: str, found: list[Ordered], newest: dates.Order | None
) -> tuple[list[Ordered], list[str]]:
    """The candidates after what has a say in their order besides their scores; and what could not have it."""
    found, told = boosted(found, index.store.config.boosts), []
    if index.cross is not None and text.strip():
        from ua_memory.index.cross import CrossUnavailable
        from ua_memory.recall.cross import crossed

        try:
            found = crossed(index.cross, clean(text), found)
        except CrossUnavailable as error:
            told = [f"ordered without the cross-encoder: {error}"]
    return in_time(found, newest) if newest else found, told


def _left(left: Mapping[str, int]) -> str:
    files, texts = left.get("files", 0), left.get("texts", 0)
    said = [f"{counted(files, 'changed file')} not read yet"] if files else []
    said += [f"{counted(texts, 'text')} found by words alone yet"] if texts else []
    return ", ".join(said)


def _prepared(
    index: Index, queries: Sequence[str], report: Refresh, depth: int
) -> tuple[list[str], list[Said], dict[int, Sequence[tuple[str, float]]]]:
    """Notes, the queries as the model reads them, and the nearest texts of each, where these can be had."""
    notes = [*report.notes, *(str(problem) for problem in report.failed)]
    if report.semantic != READY:
        return [*notes, f"searched by words alone: {report.semantic}"], [], {}
    from ua_memory.index.chroma import VectorsUnavailable
    from ua_memory.index.embed import EmbeddingUnavailable, said_of

    try:
        said = said_of(index.embeds, [clean(query) for query in queries]) if queries else []
        # A query of which the model knows no word is a row of zeros: near to nothing, asked by words alone.
        known = [number for number, one in enumerate(said) if one.vector.any()]
        near = index.nearest([said[number].vector for number in known], depth)
        return notes, said, dict(zip(known, near, strict=True))
    except (EmbeddingUnavailable, VectorsUnavailable) as error:
        return [*notes, f"searched by words alone: {error}"], [], {}


def _hit(index: Index, asked: Asked, kept: Kept) -> Hit:
    one = kept.one
    shown = snippet(index.words, one.item.text, asked.weights.idf)
    return Hit(one.item, one.score, shown, one.arms, one.parts, tuple(kept.under))
