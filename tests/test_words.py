"""The word index: what a word is, BM25 against an independent one, and queries that mean harm."""

from __future__ import annotations

import contextlib
import math
import random
import re
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ua_memory.index.filters import Filters
from ua_memory.index.items import items_of
from ua_memory.index.terms import fts_text, specific_words, split_query
from ua_memory.index.words import WordIndex as Words
from ua_memory.markdown import document as markdown


def made(*facts: str, path: str = "memory/2026-11-21.md", words: Words | None = None) -> Words:
    """A word index in memory over one daily log."""
    words = words or Words(":memory:")
    text = "".join(f"- {fact}\n" for fact in facts)
    with words.writing():
        words.replace_file(path, list(items_of(markdown.parse(text.encode(), path), lambda text: text)))
        words.next_generation()
    return words


def found(words: Words, query: str, where: Filters | None = None) -> list[str]:
    hits = words.search(split_query(query), 50, where)
    return [item.text for item in words.get([hit.key for hit in hits])]


def bm25(texts: list[str], query: list[str], k1: float = 1.2, b: float = 0.75) -> list[float]:
    """BM25 as in the books, with the inverse document frequency that SQLite documents."""
    bags = [Counter(text.split()) for text in texts]
    mean = sum(sum(bag.values()) for bag in bags) / len(bags)
    scores = []
    for bag in bags:
        score = 0.0
        for term in query:
            having = sum(term in other for other in bags)
            idf = max(math.log((len(bags) - having + 0.5) / (having + 0.5)), 1e-6)
            score += idf * bag[term] * (k1 + 1) / (bag[term] + k1 * (1 - b + b * sum(bag.values()) / mean))
        scores.append(score)
    return scores


def test_bm25_orders_as_an_independent_one() -> None:
    rng = random.Random(7)
    # Words that the stemmer leaves alone and that are in no list of small words.
    vocabulary = [
        f"{a}{b}" for a in ("kor", "mit", "zab", "pul", "gor") for b in ("tak", "rom", "lup", "zit", "bok")
    ]
    texts = sorted({" ".join(rng.choices(vocabulary, k=rng.randint(3, 30))) for _ in range(200)})
    words = made(*texts)
    for _ in range(40):
        query = rng.sample(vocabulary, 3)
        expected = sorted(((-s, n) for n, s in enumerate(bm25(texts, query)) if s > 0))[:20]
        hits = words.search(split_query(" ".join(query)), 20)
        assert [round(hit.score, 6) for hit in hits] == [round(-s, 6) for s, _ in expected]
        assert {item.text for item in words.get([hit.key for hit in hits])} <= set(texts)


def test_what_english_hangs_onto_a_word_finds_nothing() -> None:
    words = made("Alice's dentist was fine", "Rob's bill came, he didn't pay")
    assert split_query("Bob's and Bob’s invoice isn't").terms == ("bob", "invoice", "isn")
    assert found(words, "Bob's invoice") == [] and found(words, '"Alice\'s dentist"') == [
        "Alice's dentist was fine"
    ]


def test_terms_are_ored_and_stemmed() -> None:
    words = made("Alice runs the servers in Frankfurt", "Bob paints", "The server was connected")
    assert found(words, "running connections") == [
        "The server was connected",
        "Alice runs the servers in Frankfurt",
    ]
    assert found(words, "crème") == found(words, "CREME") == []
    assert found(made("Crème brûlée on Friday"), "creme BRULEE") == ["Crème brûlée on Friday"]


def test_small_words_count_only_alone() -> None:
    words = made("To be or not to be", "The price of Heroku doubled")
    assert found(words, "what is the price") == ["The price of Heroku doubled"]
    assert found(words, "to be") == ["To be or not to be"]


def test_quoted_phrases_are_required() -> None:
    words = made("left Heroku for Fly", "Fly left us", "we left, then Heroku fell")
    assert found(words, '"left Heroku" fly') == ["left Heroku for Fly"]
    assert found(words, '"heroku fly"') == []
    assert len(found(words, "left Heroku")) == 3


@pytest.mark.parametrize(
    "query",
    ["UA_TRUNCATION_THRESHOLD", "truncation threshold", "ua_truncation_threshold", "threshold"],
)
def test_identifiers_whole_and_in_parts(query: str) -> None:
    words = made("set UA_TRUNCATION_THRESHOLD to 150000", "something else entirely", "a door")
    assert found(words, query) == ["set UA_TRUNCATION_THRESHOLD to 150000"]


def test_a_whole_identifier_beats_its_scattered_parts() -> None:
    words = made("foo is in src and py is not", "see src/foo.py", "bar", "baz", "qux", "quux")
    assert found(words, "src/foo.py")[0] == "see src/foo.py"
    assert found(words, "foo")[:2] and set(found(words, "foo")) == {
        "see src/foo.py",
        "foo is in src and py is not",
    }
    assert found(made("call getUserName first", "other"), "user name") == ["call getUserName first"]
    assert found(made("host db-01.example.com is down", "other"), "db-01.example.com") == [
        "host db-01.example.com is down"
    ]


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("我们昨天离开了北京去上海", ["北京", "上海", "海", "离开了北京"]),
        ("東京都の天気は晴れです", ["東京", "天気", "京都の", "晴れ"]),
        ("서울에서 회의가 있었다", ["서울", "회의"]),
        ("Meeting in 東京 with 田中さん", ["東京", "田中", "meeting"]),
        ("昨晚把API迁到Fly.io上了", ["API", "fly.io", "迁到", "昨晚", "上"]),
        ("วันนี้เราไปกรุงเทพมหานคร", ["กรุงเทพ", "วันนี้", "เรา"]),
        ("ຂ້ອຍຢູ່ວຽງຈັນ", ["ວຽງຈັນ"]),
        ("ខ្ញុំរស់នៅភ្នំពេញ", ["ភ្នំពេញ"]),
    ],
)
def test_cjk(text: str, queries: list[str]) -> None:
    words = made(text, "nothing of the kind", "全然違う話", "完全不同的事", "ฝนตกหนัก")
    for query in queries:
        assert found(words, query)[0] == text, query
        assert "nothing of the kind" not in found(words, query), query


def test_pairs_that_stand_together_beat_scattered_signs() -> None:
    words = made("京の東で待つ", "東京で待つ", "東の京は待たない", *["別の話"] * 9)
    assert found(words, "東京")[0] == "東京で待つ"
    assert found(words, "犬猫") == []


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("モモの体重は？", "モモ 体重"),
        ("犬を診てくれた先生", "犬 診て 診 先生"),
        ("web02はどこですか", "web02"),
        ("りんごの値段", "りん んご 値段"),
        ("どうしますか", "どう うし しま ます すか"),  # nothing but small words
        ("合同什么时候到期？", "合同 到期"),
        ("목적지 주소", "목적 적지 주소"),
    ],
)
def test_a_query_of_japanese_or_chinese_is_about_its_words(query: str, terms: str) -> None:
    """Pairs across two of its words (の体) and small words (ました) were searched for, too: a prompt such as
    お願いします was given any fact that is said politely."""
    assert split_query(query).terms == tuple(terms.split())


def test_japanese_and_chinese_courtesies_say_nothing_specific() -> None:
    for prompt in ("はい、お願いします", "ありがとうございます！", "続けてください", "好的，谢谢"):
        assert not specific_words(prompt), prompt
    assert specific_words("体重を教えて") >= {"体重"}


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("UA_TRUNCATION_THRESHOLD", "truncation"),
        ("src/foo.py", "foo"),
        ("ECONNREFUSED", "econnrefused"),
        ("foo.bar()", "bar"),
        ("--max-tokens", "tokens"),
        ("v1.2.3", "v1.2.3"),
        ("#123", "123"),
        ("noor@db-01.example.org", "noor"),
        ("getUserName", "user"),
        ("std::vector", "vector"),
        ("C:\\Users\\noor", "users"),
        ("user_connections", "connections"),
    ],
)
def test_what_is_written_in_one_piece_is_found_whole_and_by_its_parts(query: str, parts: str) -> None:
    scattered = " then ".join(reversed(re.findall(r"\w+", query.replace("_", " "))))
    text = f"somebody wrote {query} that day"
    words = made(text, scattered, *(f"nothing number {n}" for n in range(200, 220)))
    assert found(words, query)[0] == text or " then " not in scattered
    assert text in found(words, query) and text in found(words, parts)


HOSTILE = [
    *(
        "",
        " ",
        '"',
        '""',
        '"""',
        "'",
        "*",
        "a*",
        "NEAR(a b)",
        "a AND",
        "NOT",
        "OR OR",
        "text:alice",
        "^alice",
    ),
    *(
        "-alice",
        "a\0b",
        "\0",
        "🎉🎉",
        "x" * 10_000,
        "alice " * 2000,
        "'; DROP TABLE items; --",
        "{a b}",
        "(((",
    ),
    *("alice)", "\ud800", '"alice', "“alice”", "%", "_", "a" * 50 + "/" * 50, "café\u0301", "\x85"),
    " ".join(f"w{number}" for number in range(3000)),
]


@pytest.mark.parametrize("query", HOSTILE)
def test_hostile_queries_are_only_words(query: str) -> None:
    words = made("alice and bob", "drop the table")
    words.search(split_query(query), 5)
    assert words.count() == 2


@given(st.text())
def test_any_text_is_indexed_and_asked(text: str) -> None:
    words = Words(":memory:")
    try:
        with words.writing():
            words.db.execute("INSERT INTO words VALUES (?, '')", (fts_text(text),))
        words.search(split_query(text), 5)
        words.vocabulary.stems(fts_text(text).split())
    finally:
        words.close()


def test_equal_scores_come_by_path_and_line() -> None:
    words = made("same words", path="memory/2026-11-22.md")
    made(*(f"same words ^{letter * 10}" for letter in "abcd"), path="memory/2026-11-21.md", words=words)
    hits = words.get([hit.key for hit in words.search(split_query("same words"), 3)])
    assert [(item.path[-5:], item.line) for item in hits] == [("21.md", 1), ("21.md", 2), ("21.md", 3)]


def test_a_tie_longer_than_the_fetch_is_cut_by_place() -> None:
    words = made("same words", path="memory/2026-11-22.md")
    made(*["same words"] * 150, path="memory/2026-11-21.md", words=words)
    hits = words.get([hit.key for hit in words.search(split_query("same"), 10)])
    assert [item.line for item in hits] == list(range(1, 11))


def test_filters() -> None:
    words = made("went to Rome #trip/italy", "painted the door #home", path="memory/2026-01-02.md")
    made("went to Oslo #Trip", path="memory/2026-03-04.md", words=words)
    assert found(words, "went", Filters(since="2026-02-01")) == ["went to Oslo"]
    assert found(words, "went", Filters(until="2026-02-01")) == ["went to Rome"]
    assert len(found(words, "went", Filters(tags=("trip",)))) == 2
    assert found(words, "door", Filters(tags=("#HOME", "other"))) == ["painted the door"]
    assert found(words, "went", Filters(path="memory/2026-03")) == ["went to Oslo"]
    assert found(words, "went", Filters(kinds=("preference",))) == []
    assert len(found(words, "went", Filters(kinds=("fact",)))) == 2
    assert len(found(words, "went", Filters(kinds=("world", "risk")))) == 2
    assert len(found(words, "went", Filters(sources=("person",)))) == 2
    assert found(words, "went", Filters(tags=("'; --",))) == []


def test_moved_lines_are_only_renumbered() -> None:
    words = made("one", "two ^aaaaaaaaaa", "three")
    before = dict(words.db.execute("SELECT text, rowid FROM items"))
    made("zero", "one", "two ^aaaaaaaaaa", "three", words=words)
    after = dict(words.db.execute("SELECT text, rowid FROM items"))
    assert before.items() <= after.items()
    assert [item.line for item in words.items("1 ORDER BY path, line, key")] == [1, 2, 3, 4]
    assert words.changed_texts(1) == [
        item.vhash for item in words.items("1 ORDER BY path, line, key") if item.text == "zero"
    ]


def test_equal_texts_are_separate_items() -> None:
    words = made("buy milk", "buy milk")
    assert [item.line for item in words.items("1 ORDER BY path, line, key")] == [1, 2]
    assert len({item.key for item in words.items("1 ORDER BY path, line, key")}) == 2


def test_what_raises_inside_a_transaction_leaves_nothing(tmp_path: Path) -> None:
    words = Words(tmp_path / "words.db")
    with pytest.raises(RuntimeError), words.writing():
        words.set_meta("generation", "9")
        raise RuntimeError
    assert words.generation == 0
    words.close()
    (tmp_path / "words.db").write_bytes(b"no database at all, but long enough to be looked at" * 40)
    with pytest.raises(sqlite3.DatabaseError):
        Words(tmp_path / "words.db")


def test_items_kept_in_memory_are_let_go_of_when_anybody_writes(tmp_path: Path) -> None:
    with (
        contextlib.closing(Words(tmp_path / "words.db")) as mine,
        contextlib.closing(Words(tmp_path / "words.db")) as other,
    ):
        made("one", "two", words=mine)
        assert [i.line for i in mine.get([i.key for i in mine.items("1 ORDER BY path, line, key")])] == [1, 2]
        made("new", "one", "two", words=other)  # moves the rest down
        made("elsewhere", path="memory/2026-11-22.md", words=other)
        key = next(i.key for i in other.items("1 ORDER BY path, line, key") if i.text == "two")
        assert [i.line for i in mine.get([key])] == [3]
        made("two", words=mine)
        assert [i.line for i in mine.get([key])] == [1]
        with pytest.raises(KeyError), mine.writing():
            mine.remove_file("memory/2026-11-21.md")
            assert mine.get([key]) == []
            raise KeyError
        assert [i.line for i in mine.get([key])] == [1]
