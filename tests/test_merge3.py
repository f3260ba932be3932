"""The merge that holds everything together when two sides write the same file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ua_memory.store.saves import merge

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n", b"- x\n"]), max_size=8).map(b"".join)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        (b"a\nb\nc\n", b"a\nX\nb\nc\n", b"a\nb\nc\nY\n", b"a\nX\nb\nc\nY\n"),
        (b"a\nb\n", b"a\nb\nours\n", b"a\nb\ntheirs\n", b"a\nb\ntheirs\nours\n"),
        (b"a\nb\nc\n", b"a\nb\nc\nnew\n", b"a\nb\n", b"a\nb\nnew\n"),  # git calls this a conflict
        (b"a\nb", b"a\nb\nours\n", b"a\nb\ntheirs", b"a\nb\ntheirs\nours\n"),
        (b"a\nb\n", b"a\nb\nsame\n", b"a\nb\nsame\n", b"a\nb\nsame\n"),
        (b"a\nb\n", b"a\nb\nx\n", b"a\nb\nx\ny\n", b"a\nb\nx\ny\n"),
        (b"a\rb\n", b"a\rb\nc\n", b"0\na\rb\n", b"0\na\rb\nc\n"),
        (b"", b"ours\n", b"theirs\n", b"theirs\nours\n"),
    ],
)
def test_merges_without_a_clash(base: bytes, ours: bytes, theirs: bytes, merged: bytes) -> None:
    done = merge(base, ours, theirs)
    assert done.data == merged
    assert done.conflicts == ()


def test_both_versions_of_a_line_stay_and_the_clash_is_named() -> None:
    done = merge(b"a\nb\nc\n", b"a\nB1\nc\n", b"a\nB2\nc\n")
    assert done.data == b"a\nB2\nB1\nc\n"
    assert [(c.line, c.ours, c.theirs) for c in done.conflicts] == [(2, (b"B1\n",), (b"B2\n",))]


@given(base=LINES, ours=LINES, theirs=LINES)
def test_no_added_line_is_lost(base: bytes, ours: bytes, theirs: bytes) -> None:
    lines = set(merge(base, ours, theirs).data.splitlines())
    old = set(base.splitlines())
    assert (set(ours.splitlines()) | set(theirs.splitlines())) - old <= lines


@given(base=LINES, other=LINES)
def test_one_side_that_did_nothing_gives_way(base: bytes, other: bytes) -> None:
    assert merge(base, base, other).data == other
    assert merge(base, other, base).data == other
    assert merge(base, other, other).data == other
