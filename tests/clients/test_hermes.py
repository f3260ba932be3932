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


def test_a_compaction_by_hand(tmp_path: Path) -> None:
    rules = [{"match": {"any_text": "ummar", "has_tools": False}, "reply": {"text": "A SUMMARY OF ALL"}}]
    with Hermes(tmp_path, rules, ANSWER) as client, client.screen() as screen:
        screen.types(REVIEW)
        until(lambda: REVIEW in client.waiting(), 60)
        for n in range(6):
            screen.types(f"And what else is there to say, number {n}?")
            until(lambda n=n: any(f"number {n}?" in text for text in client.waiting()), 60)
        assert "We agreed with Bob" not in client.memory()
        screen.types("/compress")
        until(lambda: "We agreed with Bob" in client.memory(), 60)
        screen.types("and now?")
        until(lambda: client.requests("and now?"), 60)
        after = client.requests("and now?")[-1]
        assert "A SUMMARY OF ALL" in after and "Short answers, says Noor." in after
        assert "Memory given to this session" in after
        assert client.memory().count("We agreed with Bob") == 1
