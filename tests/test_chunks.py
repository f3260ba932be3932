"""Chunks: all of the text, bounded, and an edit in one place leaves those elsewhere alone."""

from __future__ import annotations

import random
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ua_memory.retain.extract_by_model import EDGE_CHUNK, LONGEST_CHUNK, chunk_name, split_text

HEADING = "## {}\n\n"
TALK = "the API moved to Fly because the price doubled and Alice said so in March of that year"
WORDS = TALK.split(" ")
LINES = ["# One", "## Two", "- an item", "```", "a word, and another.", "", " ", "\t", "x" * 400]
line = st.sampled_from(LINES)
texts = st.one_of(st.text(), st.lists(line, max_size=120).map("\n".join))


def prose(seed: int, paragraphs: int = 60) -> str:
    rng = random.Random(seed)
    parts = []
    for n in range(paragraphs):
        if rng.random() < 0.15:
            parts.append(f"## Part {n} of {rng.choice(WORDS)}")
        parts.append(" ".join(rng.choice(WORDS) for _ in range(rng.randint(20, 120))) + ".")
    return "\n\n".join(parts)


@given(texts)
def test_joined_they_are_the_text(text: str) -> None:
    found = split_text(text)
    assert "".join(chunk.text for chunk in found) == (text if text.strip() else "")
    assert all(len(chunk.text) <= LONGEST_CHUNK for chunk in found)


@given(st.integers(0, 50), st.floats(0, 1), st.integers(1, 400))
@settings(max_examples=max(30, settings().max_examples), deadline=None)
def test_an_edit_changes_only_chunks_nearby(seed: int, where: float, size: int) -> None:
    text = prose(seed)
    at = int(where * len(text))
    edited = text[:at] + " new words" * (size // 10) + text[at:]
    before, after = split_text(text), split_text(edited)
    same = {chunk.name for chunk in before} & {chunk.name for chunk in after}
    reach, start = 3 * LONGEST_CHUNK, 0
    for chunk in before:
        if start + len(chunk.text) < at - reach or start > at + reach:
            assert chunk.name in same, (start, at)
        start += len(chunk.text)


def test_they_are_some_3000_characters_and_begin_at_headings() -> None:
    text = (Path(__file__).parent.parent / "docs" / "format.md").read_text("utf-8")
    found = split_text(text)
    assert 1_800 < len(text) / len(found) < 3_500
    assert all(len(chunk.text) >= EDGE_CHUNK for chunk in found)
    assert sum(chunk.text.lstrip().startswith("#") for chunk in found) > len(found) // 2
    assert found[1].heading


def test_what_is_short_is_one_chunk_and_white_space_around_it_is_nothing() -> None:
    (chunk,) = split_text("One sentence.\n")
    assert chunk.name == chunk_name("\n\nOne sentence.  ") and chunk.name.startswith("c")
    assert split_text(" \n\n") == ()


def test_equal_lines_without_end_are_cut_in_time() -> None:
    assert len(split_text("- the same\n" * 20_000)) < 400
    assert max(len(chunk.text) for chunk in split_text("x" * 50_000)) <= LONGEST_CHUNK
