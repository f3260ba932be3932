"""The real transcripts: counts, ids and sizes; their text is not ours to quote."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pytest

from ua_memory.clients.transcripts import read
from ua_memory.text.tokens import count

SHARED = Path(os.environ.get("UA_SHARED") or Path(__file__).parents[3] / "shared") / "data" / "sessions"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not SHARED.is_dir(), reason="the shared transcripts are not here"),
]

A = "claude-code/258c7280-ae70-4798-800f-63464d01a85d"
B = "claude-code/ae4a77f8-aedd-4bc1-888f-c94edc91af04.jsonl"
C = "pi/before-compaction.jsonl"

EXPECTED = {
    f"{A}.jsonl": ({"person": 4, "assistant": 85, "tool": 186}, 77_419),
    B: ({"person": 2, "assistant": 158, "tool": 242}, 102_169),
    C: ({"person": 55, "assistant": 253, "tool": 457}, 168_018),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_real_transcripts(name: str) -> None:
    turns_expected, context = EXPECTED[name]
    path = SHARED / name
    with path.open("rb") as stream:
        began = time.perf_counter()
        reading = read(stream)
        turns = list(reading)
        seconds = time.perf_counter() - began
    print(f"{path.stat().st_size / 1e6 / seconds:.0f} MB/s")
    assert Counter(turn.role for turn in turns) == turns_expected
    assert reading.context_size == context
    assert 2_000 < sum(count(turn.text) for turn in turns if turn.role != "tool") < 20_000
    assert (reading.broken, reading.cut) == (0, False)
    assert len({turn.id for turn in turns}) == len(turns)
    assert reading.boundary is not None and all(turn.at for turn in turns)
    assert sum(1 for turn in turns if turn.role == "tool" and ": ok" not in turn.text) < 40
    assert not any("<system-reminder>" in turn.text or "<task-notification>" in turn.text for turn in turns)
    resumed = turns[len(turns) // 2].id
    with path.open("rb") as stream:
        assert list(read(stream, since=resumed)) == turns[len(turns) // 2 + 1 :]


def test_real_sub_agents() -> None:
    with (SHARED / A / "subagents" / "agent-a881341.jsonl").open("rb") as stream:
        reading = read(stream)
        assert Counter((t.role, t.agent) for t in reading) == {
            ("assistant", "a881341"): 4,
            ("tool", "a881341"): 2,
        }
    with (SHARED / A / "subagents" / "agent-acompact-fffbd0.jsonl").open("rb") as stream:
        assert list(read(stream)) == []
