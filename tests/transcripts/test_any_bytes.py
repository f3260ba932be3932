"""Whatever the bytes, nothing but our own errors; a transcript cut anywhere is a beginning of the whole."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ua_memory.clients.transcripts import FORMATS, read
from ua_memory.clients.turns import Turn
from ua_memory.errors import UaMemoryError

DATA = Path(__file__).parent / "data"
CUT = (
    "claude-code-agent.jsonl",
    "claude-code-continued.jsonl",
    "pi-v1.jsonl",
    "codex-old.jsonl",
    "messages.json",
)
"""Transcripts without a fork: going back makes another conversation, of which this does not hold."""

NAMES = """
type message role user assistant content text tool_use tool_result toolCall id uuid parentUuid parentId
session version usage compaction firstKeptEntryId payload response_item event_msg session_meta timestamp
isSidechain queue-operation operation enqueue remove system compact_boundary logicalParentUuid a b c
"""
words = st.sampled_from(NAMES.split())
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.floats() | words | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=6),
    max_leaves=8,
)


def everything(data: bytes, client: str | None, since: str | None = None) -> list[Turn]:
    reading = read(io.BytesIO(data), client=client, since=since)
    list(reading.context())
    return list(reading)


@given(st.binary(max_size=300), st.sampled_from((*FORMATS, None)))
@settings(max_examples=max(40, settings().max_examples), deadline=None)
def test_no_bytes_raise_anything_but_our_errors(data: bytes, client: str | None) -> None:
    with suppress(UaMemoryError):
        everything(data, client)


@given(
    st.lists(st.dictionaries(words, values, max_size=8), max_size=6),
    st.sampled_from(("claude-code", "pi", "clawdbot", "openclaw", "codex", "messages")),
    st.none() | words,
)
@settings(max_examples=max(40, settings().max_examples), deadline=None)
def test_no_json_raises_anything(records: list[Any], client: str, since: str | None) -> None:
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    for turn in everything(data, client, since):
        turn.text.encode()
        assert turn.text


@pytest.mark.parametrize("name", CUT)
def test_cut_anywhere_it_is_a_beginning(name: str) -> None:
    data = (DATA / name).read_bytes()
    client = "pi" if name.startswith("pi") else name.partition("-agent")[0].partition("-continued")[0]
    client = {"codex-old.jsonl": "codex", "messages.json": "messages"}.get(name, client)
    whole = everything(data, client)
    for size in range(0, len(data), 7):
        part = everything(data[:size], client)
        assert [turn.id for turn in part] == [turn.id for turn in whole[: len(part)]]
        for mine, full in zip(part, whole, strict=False):
            assert full.text.startswith(mine.text)
