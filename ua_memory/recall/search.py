"""A query to an Answer: refresh, the arms, one order, each hit checked against its file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from ua_memory import dates
from ua_memory.index.filters import Filters
from ua_memory.index.items import Item
from ua_memory.index.reading import READY, Refresh
from ua_memory.index.scopes import read_groups
from ua_memory.index.sync import Index
from ua_memory.index.terms import clean
from ua_memory.recall import hearsay
from ua_memory.recall.arms import Arms, Found, Ranked
from ua_memory.recall.asked import Asked, Window, idle, read
from ua_memory.recall.boosts import boosted
from ua_memory.recall.chronology import in_time
from ua_memory.recall.fold import Kept, folded
from ua_memory.recall.order import DEPTH, by_words, ordered
from ua_memory.recall.present import Present
from ua_memory.recall.snippet import snippet
from ua_memory.wording import counted

if TYPE_CHECKING:
    from ua_memory.index.said import Said

__all__ = ["Answer", "Filters", "Hit", "read_groups", "search", "search_many"]

Near: TypeAlias = Mapping[int, Sequence[tuple[str, float]]]
TOGETHER = 64
"""Queries that are read and asked of the vectors at once."""

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
    refresh: Callable[[], Refresh] | None = None,
) -> Answer:
    """The best hits for one query. Any text is a query; one that says nothing finds nothing."""
    return search_many(index, [query], limit=limit, min_score=min_score, filters=filters, refresh=refresh)[0]


def search_many(
    index: Index,
    queries: Sequence[str],
    *,
    limit: int = 6,
    min_score: float = 0.0,
    filters: Filters | None = None,
    refresh: Callable[[], Refresh] | None = None,
    depth: int = 0,
    by_words: bool = False,
) -> list[Answer]:
    """An Answer for each query, in order. The index is brought up to date once, by `refresh` if it is given.

    `depth` is how many candidates each arm is asked for, if not as many as usual.
    """
    parts = [queries[start : start + TOGETHER] for start in range(0, len(queries), TOGETHER)]
    # A model that is loaded reads the first queries while files are looked at.
    begun = [] if by_words or not parts or not index.ready else _said(index, parts[0])[0]
    with index.turn:
        report, depth = (refresh or index.refresh)(), depth or max(DEPTH, limit)
        wanted = _Wanted(index, report, limit, min_score, filters or Filters(), depth)
        answers: list[Answer] = []
        for part in parts:
            answers += wanted.answers(part, begun)
            begun = []
        return answers


def _said(index: Index, queries: Sequence[str]) -> tuple[list[Said], list[str]]:
    """The queries as the model begins to read them; none, and why, where it cannot be had."""
    from ua_memory.index.embed import EmbeddingUnavailable, said_of

    try:
        return said_of(index.embeds, [clean(query) for query in queries]), []
    except EmbeddingUnavailable as error:
        return [], [f"searched by words alone: {error}"]


@dataclass(frozen=True, slots=True)
class _Read:
    """A query as it was read, and what was found by that; `newest` is how it orders by time."""

    asked: Asked
    newest: dates.Order | None
    told: Sequence[str]
    arms: Arms


class _Wanted:
    """What all queries of a search have in common."""

    def __init__(
        self, index: Index, report: Refresh, limit: int, min_score: float, where: Filters, depth: int
    ) -> None:
        self.index, self.semantic, self.present = index, report.semantic, Present(index.files)
        self.limit, self.min_score, self.where, self.depth = limit, min_score, where, depth
        left = (("files", report.left_files), ("texts", report.left_texts))
        self.left = {name: count for name, count in left if count}
        self.notes = [*report.notes, *(str(problem) for problem in report.failed)]
        if report.semantic != READY:
            self.notes.append(f"searched by words alone: {report.semantic}")
        self.behind = [f"stale: {_left(self.left)}; the next search reads on"] if self.left else []

    def answers(self, queries: Sequence[str], begun: list[Said]) -> list[Answer]:
        """An Answer for each. What asks for words is done while the model reads."""
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
            self._answer(text, one, said[n] if said else None, near.get(n, ()), notes)
            for n, (text, one) in enumerate(zip(queries, read, strict=True))
        ]

    def _ahead(self, said: Said, likely: Sequence[Found]) -> None:
        """Read the files of what words find, which is likely to be shown, as long as the model reads."""
        for one in likely[: self.limit]:
            if not said.ready:
                self.present.look(one.item.path)

    def _near(self, said: list[Said]) -> tuple[list[Said], Near, list[str]]:
        """The texts nearest to each query, by its number; no query, and why, where they cannot be had."""
        from ua_memory.index.chroma import VectorsUnavailable
        from ua_memory.index.embed import EmbeddingUnavailable

        try:
            # A query of which the model knows no word is a row of zeros: near to nothing, left to the words.
            known = [number for number, one in enumerate(said) if one.vector.any()]
            near = self.index.nearest([said[number].vector for number in known], self.depth)
            return said, dict(zip(known, near, strict=True)), []
        except (EmbeddingUnavailable, VectorsUnavailable) as error:
            return [], {}, [f"searched by words alone: {error}"]

    def _read(self, text: str, said: Said | None) -> _Read:
        window, newest, unread = _time(self.index, text)
        asked = read(self.index.words, text, window, said.spans if said else ())
        arms = by_words(self.index, asked, self.depth, self.where)
        return _Read(asked, newest, [*unread, *asked.guesses], arms)

    def _answer(
        self, text: str, one: _Read, said: Said | None, near: Sequence[tuple[str, float]], notes: list[str]
    ) -> Answer:
        index, known = self.index, said if said is not None and said.vector.any() else None
        arms = self._arms(one, known, near)
        every = ordered(index, one.asked, known, arms, self.where, index.store.config.order)
        found, uncrossed = _placed(index, text, every, one.newest)
        kept, missing = folded(
            index.words, found, self.present.confirm, self.limit, self.min_score, beliefs=not self.where.kinds
        )
        hits = tuple(_hit(index, one.asked, each, arms) for each in kept)
        unknown = said is not None and known is None and bool(text.strip())
        told = [*notes, *one.told, *uncrossed]
        told += [f"searched by words alone: {UNKNOWN}"] if unknown else []
        told += [f"{missing} left out: changed in their files since"] if missing else []
        return Answer(hits, tuple(told), "hybrid" if known else "words", self.left)

    def _arms(self, one: _Read, said: Said | None, near: Sequence[tuple[str, float]]) -> Arms:
        """What the arms found, that of meaning too."""
        if said is None:
            return one.arms
        from ua_memory.recall import semantic

        found = semantic.find(self.index, said.vector, near, self.depth, self.where, one.asked.query)
        return {**one.arms, "semantic": found}


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
    index: Index, text: str, found: list[Ranked], newest: dates.Order | None
) -> tuple[list[Ranked], list[str]]:
    """The candidates after what has a say in their order besides their scores; and what could not have it."""
    found, told = boosted(hearsay.told(index.words, found), index.store.config.boosts), []
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


def _hit(index: Index, asked: Asked, kept: Kept, arms: Arms) -> Hit:
    one, key = kept.one, kept.one.item.key
    by = {
        name: (each.rank, each.score)
        for name, found in arms.items()
        for each in found
        if each.item.key == key
    }
    shown = snippet(index.words, one.item.text, asked.weights.idf)
    return Hit(one.item, one.score, shown, by, one.parts, tuple(kept.under))
