"""Hermes itself: what our memory provider gives it, and what is kept. Opt-in: HERMES_BIN names it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from real_client import until
from real_clients import Hermes

pytestmark = [pytest.mark.client, pytest.mark.slow]

REVIEW = "Is Heroku's price still doubled? We agreed with Bob to review it on 3 March 2027."
ANSWER = {"text": "We decided to keep Fly.io until March 2027."}


def test_start_prompt_and_end(tmp_path: Path) -> None:
    with Hermes(tmp_path, [], ANSWER) as client:
        client.says(REVIEW)
        first = client.requests("review it on 3 March")[0]
        assert "Short answers, says Noor." in first and "Alice moved the API to Fly.io" in first
        until(lambda: "We agreed with Bob" in client.memory() and not client.sessions())
        assert "keep Fly.io until March 2027" in client.memory() and client.log() == ""
        assert client.memory().count("Alice moved the API") == 1 and "· hermes ·" in client.memory()
        client.says("I always prefer tabs over spaces in this project.", "--continue")
        until(lambda: "tabs over spaces" in client.memory() and not client.waiting())
        assert client.memory().count("We agreed with Bob") == 1


def test_a_tool_is_called(tmp_path: Path) -> None:
    call = {"tool_use": {"name": "archival_memory_search", "input": {"query": "API moved"}}}
    rules = [
        {"match": {"has_tools": True, "tool_result": "."}, "reply": ANSWER},
        {"match": {"has_tools": True, "any_text": "any good"}, "reply": call},
    ]
    with Hermes(tmp_path, rules, ANSWER) as client:
        client.says("Is Heroku any good?")
        rows = json.loads(client.requests('"role": "tool"')[-1])["messages"]
        results = [row["content"] for row in rows if row["role"] == "tool"]
        assert len(results) == 1 and "Alice moved the API to Fly.io" in json.loads(results[0])["result"]
