"""The keyword arm: items by BM25 over their words, and how much of the query each of them matches."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass

from ua_memory.index.filters import Filters
from ua_memory.index.items import Item
from ua_memory.index.terms import Query
from ua_memory.index.words import Words
from ua_memory.recall.arms import Found


def find(words: Words, query: Query, limit: int, where: Filters) -> list[Found]:
    """The best items by BM25. Empty for a query without words."""
    hits = words.search(query, limit, where)
    items = {item.key: item for item in words.get([hit.key for hit in hits])}
    return [Found(items[hit.key], rank, hit.score) for rank, hit in enumerate(hits, 1) if hit.key in items]


@dataclass(frozen=True, slots=True)
class Weights:
    """What each of a query's terms is worth: {stem: inverse document frequency}, and how words stem."""

    idf: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.idf.values())


GUESSED = 0.8
"""What a word that was not typed, but perhaps meant, counts beside one that was."""


def weigh(words: Words, query: Query, guessed: Set[str] = frozenset()) -> Weights:
    """The weights of the query's terms; of several terms with one stem, one counts.

    A term no item has weighs as much as one that a single item has: the query asked for it. Of `guessed`
    terms each weighs less.
    """
    terms = list(dict.fromkeys([*query.terms, *(word for phrase in query.phrases for word in phrase)]))
    stems, known = words.vocabulary.stems(terms), words.vocabulary.frequencies(terms)
    total = words.count()
    least = {stems[t]: GUESSED for t in terms if t in guessed} | {
        stems[t]: 1.0 for t in terms if t not in guessed
    }
    return Weights({stems[t]: inverse(known[t], total) * least[stems[t]] for t in terms if stems[t]})


def inverse(known: int, total: int) -> float:
    """The inverse document frequency of a term that `known` of `total` items have."""
    return math.log(1 + (max(total, 1) - known + 0.5) / (max(known, 1) + 0.5))


def stems(words: Words, items: Sequence[Item]) -> dict[str, frozenset[str]]:
    """{key: the stems of an item's words, heading and tags included}."""
    texts = words.vocabulary.tokens([item.key for item in items])
    known = words.vocabulary.stems(set().union(*texts.values())) if texts else {}
    return {key: frozenset(known[word] for word in text) for key, text in texts.items()}


def shares(words: Words, weights: Weights, items: Sequence[Item]) -> dict[str, float]:
    """{key: share of the query's weight whose terms the item has, 0 to 1}, heading and tags included."""
    total = weights.total or 1.0
    return {
        key: sum(weights.idf[stem] for stem in sorted(have & weights.idf.keys())) / total
        for key, have in stems(words, items).items()
    }
