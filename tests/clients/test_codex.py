"""Codex itself: what our hooks give it, and what they keep. Opt-in: CODEX_BIN names the program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from real_client import until
from real_clients import Codex

pytestmark = [pytest.mark.client, pytest.mark.slow]

REVIEW = "Is Heroku's price still doubled? We agreed with Bob to review it on 3 March 2027."
ANSWER = {"text": "We decided to keep Fly.io until March 2027."}
LIMIT = ("-c", "model_auto_compact_token_limit=100000")


def uses(name: str, given: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A reply that calls a tool."""
    call = {"type": "tool_use", "id": "toolu_1", "name": name, "input": given, **more}
    return {"content": [call]}


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


def test_a_tool_is_called_and_its_text_comes_back(tmp_path: Path) -> None:
    search = uses("archival_memory_search", {"query": "API moved"}, namespace="mcp__ua_memory")
    rules = [{"match": {"last_user": "any good"}, "reply": search, "times": 1}]
    with Codex(tmp_path, rules, ANSWER) as client:
        client.says("Is Heroku any good?")
        rows = json.loads(client.requests("function_call_output")[-1])["input"]
        output = json.dumps([row["output"] for row in rows if row.get("type") == "function_call_output"])
        assert "Alice moved the API to Fly.io" in output
        until(lambda: not client.sessions() and not client.waiting())
        assert client.memory().count("Alice moved the API") == 1 and client.log() == ""


def test_a_compaction_at_the_start_of_a_turn_gives_back_after(tmp_path: Path) -> None:
    full = {**ANSWER, "usage": {"input_tokens": 190_000}}
    rules = [{"match": {"last_user": "review it on 3 March"}, "reply": full, "times": 1}]
    with Codex(tmp_path, rules, {"text": "A SUMMARY OF ALL"}, UA_TRUNCATION_THRESHOLD="199000") as client:
        client.says(*LIMIT, REVIEW)
        until(lambda: "We agreed with Bob" in client.memory() and not client.sessions())
        client.says(*LIMIT, "resume", "--last", "And what about Heroku now?")
        assert '"type":"compacted"' in client.rollouts() and client.memory().count("We agreed with Bob") == 1
        assert "Short answers, says Noor." in client.requests("A SUMMARY OF ALL")[-1]


def test_a_compaction_within_a_turn_flushes_before(tmp_path: Path) -> None:
    """The turn goes on for a while after it: what was asked stands in memory before the turn has ended."""
    full = {**uses("exec_command", {"cmd": "true"}), "usage": {"input_tokens": 190_000}}
    rules = [
        {"match": {"nth": 1}, "reply": full},
        {"match": {"nth": 2}, "reply": {"text": "A SUMMARY OF ALL"}},
        {"match": {"nth": 3}, "reply": {**ANSWER, "delay_s": 30}},
    ]
    with Codex(tmp_path, rules, ANSWER, UA_TRUNCATION_THRESHOLD="199000") as client:
        with client.start(*LIMIT, REVIEW) as process:
            until(lambda: "We agreed with Bob" in client.memory(), 60)
            assert process.poll() is None and '"type":"compacted"' in client.rollouts()
            client.finished(process)
        assert "Short answers, says Noor." in client.requests("A SUMMARY OF ALL")[-1]
        until(lambda: not client.sessions() and not client.waiting())
        assert client.memory().count("We agreed with Bob") == 1
