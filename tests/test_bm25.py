"""BM25 against an independent one, with headings; and what the cut at common words may and may not do."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from ua_memory.index import words as matching
from ua_memory.index.filters import Filters
from ua_memory.index.items import IndexItem as Item
from ua_memory.index.items import items_of
from ua_memory.index.terms import Query, split_query
from ua_memory.index.words import CONTEXT_WEIGHT
from ua_memory.index.words import WordIndex as Words
from ua_memory.markdown import document as markdown

# Words that the stemmer leaves alone and that are in no list of small words.
SYLLABLES = ("kor", "mit", "zab", "pul", "gor"), ("tak", "rom", "lup", "zit", "bok")
VOCABULARY = [first + last for first in SYLLABLES[0] for last in SYLLABLES[1]]
COMMON_FIRST = [1 / rank for rank in range(1, len(VOCABULARY) + 1)]


def bm25(
    items: Sequence[Item], query: Sequence[str], k1: float = 1.2, b: float = 0.75
) -> list[tuple[float, str]]:
    """(score, key) of all that match, best first: the formula that SQLite documents, columns weighted."""
    columns = [(Counter(item.text.split()), Counter(item.context.split())) for item in items]
    sizes = [sum(text.values()) + sum(context.values()) for text, context in columns]
    mean, found = sum(sizes) / len(sizes), []
    idf = {}
    for term in query:
        having = sum(term in text or term in context for text, context in columns)
        idf[term] = max(math.log((len(items) - having + 0.5) / (having + 0.5)), 1e-6)
    for item, (text, context), size in zip(items, columns, sizes, strict=True):
        score = 0.0
        for term in query:
            times = text[term] + CONTEXT_WEIGHT * context[term]
            score += idf[term] * times * (k1 + 1) / (times + k1 * (1 - b + b * size / mean))
        if score:
            found.append((score, item.key))
    return sorted(found, key=lambda pair: -pair[0])


@pytest.fixture(scope="module")
def bank() -> tuple[Words, list[Item]]:
    """1,500 items under 250 headings."""
    rng, words = random.Random(7), Words(":memory:")
    with words.writing():
        for day in range(1, 26):
            path, rows = f"memory/2026-01-{day:02}.md", list[str]()
            for _ in range(10):
                rows.append("## " + " ".join(rng.choices(VOCABULARY, k=3)))
                texts = (rng.choices(VOCABULARY, COMMON_FIRST, k=rng.randint(3, 30)) for _ in range(6))
                rows += ["", *(f"- {' '.join(text)}" for text in texts), ""]
            parsed = markdown.parse("\n".join(rows).encode(), path)
            words.replace_file(path, list(items_of(parsed, lambda text: text)))
    return words, words.items("1 ORDER BY path, line, key")


def same(words: Words, query: Query, expected: Sequence[tuple[float, str]], limit: int) -> None:
    """The same items in the same order with the same scores; equal scores may change places."""
    hits, scores = words.search(query, limit), {key: score for score, key in expected}
    assert len(hits) == min(limit, len(expected))
    for hit, (score, _) in zip(hits, expected, strict=False):
        assert hit.score == pytest.approx(score, abs=1e-6) == pytest.approx(scores[hit.key], abs=1e-6)


def test_scores_and_order_are_those_of_an_independent_bm25(bank: tuple[Words, list[Item]]) -> None:
    words, items = bank
    rng = random.Random(11)
    for _ in range(12):
        query = rng.sample(VOCABULARY, rng.randint(1, 5))
        same(words, split_query(" ".join(query)), bm25(items, query), 60)


def test_common_words_only_add_to_what_rarer_ones_find(
    bank: tuple[Words, list[Item]], monkeypatch: pytest.MonkeyPatch
) -> None:
    words, items = bank
    rng = random.Random(13)
    known = words.vocabulary.frequencies(VOCABULARY)
    monkeypatch.setattr(matching, "RARE_ROWS_CEILING", 200)
    cut = 0
    for _ in range(12):
        query = rng.sample(VOCABULARY, 4)
        order = sorted(query, key=lambda term: (known[term], term))
        sums = [sum(known[each] for each in order[:n]) for n in range(5)]
        rare = {term for term, before in zip(order, sums, strict=False) if before < 200}
        has = {i.key for i in items if rare & {*i.text.split(), *i.context.split()}}
        every = bm25(items, query)
        same(words, split_query(" ".join(query)), [pair for pair in every if pair[1] in has], 60)
        cut += len(has) < len(every)
    assert cut >= 6


def test_no_cut_where_it_would_find_too_few(
    bank: tuple[Words, list[Item]], monkeypatch: pytest.MonkeyPatch
) -> None:
    words, items = bank
    asked = split_query("korrom gorbok zabzit mittak")
    known = words.vocabulary.frequencies(asked.terms)
    few = sum(sorted(known.values())[:1])
    monkeypatch.setattr(matching, "RARE_ROWS_CEILING", 1)
    same(words, asked, bm25(items, asked.terms), few + 1)
    there = {item.key for item in items if item.path == "memory/2026-01-02.md"}
    hits = words.search(asked, len(there), Filters(path="memory/2026-01-02"))
    assert {hit.key for hit in hits} == there & {key for _, key in bm25(items, asked.terms)}
    monkeypatch.setattr(matching, "RARE_ROWS_CEILING", len(items))
    same(words, asked, bm25(items, asked.terms), 60)


def test_what_is_counted_once_is_counted_anew_after_a_write() -> None:
    words = Words(":memory:")

    def write(*texts: str) -> set[str]:
        with words.writing():
            parsed = markdown.parse("".join(f"- {text}\n" for text in texts).encode(), "memory/2026-01-01.md")
            items = list(items_of(parsed, lambda text: text))
            words.replace_file("memory/2026-01-01.md", items)
        return {*words.vocabulary.item_stems([items[0].key])[items[0].key]}

    assert write("red gate ^q3k9f2m7xa", "two gates") == {"red", "gate"}
    assert words.count() == 2 and words.vocabulary.frequencies(["gate", "door"]) == {"gate": 2, "door": 0}
    assert write("red door ^q3k9f2m7xa") == {"red", "door"}
    assert words.count() == 1 and words.vocabulary.frequencies(["gate", "door"]) == {"gate": 0, "door": 1}
