"""Codex itself: what our hooks give it, and what they keep. Opt-in: CODEX_BIN names the program."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_client import Codex, until

pytestmark = [pytest.mark.client, pytest.mark.slow]

REVIEW = "Is Heroku's price still doubled? We agreed with Bob to review it on 3 March 2027."
ANSWER = {"text": "We decided to keep Fly.io until March 2027."}


def test_the_first_request_has_memory_and_the_end_is_kept(tmp_path: Path) -> None:
    with Codex(tmp_path, [], ANSWER) as client:
        client.says(REVIEW)
        first = client.requests("review it on 3 March")[0]
        assert "Short answers, says Noor." in first and "Alice moved the API to Fly.io" in first
        until(lambda: "We agreed with Bob" in client.memory() and not client.sessions())
        assert "keep Fly.io until March 2027" in client.memory() and client.log() == ""
        assert client.memory().count("Alice moved the API") == 1 and "· codex ·" in client.memory()
        client.says("resume", "--last", "I always prefer tabs over spaces in this project.")
        until(lambda: "tabs over spaces" in client.memory() and not client.waiting())
        assert client.memory().count("We agreed with Bob") == 1


def test_a_compaction_flushes_before_and_gives_back_after(tmp_path: Path) -> None:
    full = {"text": "We decided to keep Fly.io until March 2027.", "usage": {"input_tokens": 190_000}}
    rules = [{"match": {"last_user": "review it on 3 March"}, "reply": full, "times": 1}]
    limit = ("-c", "model_auto_compact_token_limit=100000")
    with Codex(tmp_path, rules, {"text": "A SUMMARY OF ALL"}, UA_TRUNCATION_THRESHOLD="199000") as client:
        client.says(*limit, REVIEW)
        until(lambda: "We agreed with Bob" in client.memory() and not client.sessions())
        client.says(*limit, "resume", "--last", "And what about Heroku now?")
        rollouts = "".join(file.read_text() for file in (client.home / ".codex/sessions").rglob("*.jsonl"))
        assert '"type":"compacted"' in rollouts and client.memory().count("We agreed with Bob") == 1
        assert "Short answers, says Noor." in client.requests("A SUMMARY OF ALL")[-1]
