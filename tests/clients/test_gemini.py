"""Gemini CLI itself: what our hooks give it, and what they keep. Opt-in: GEMINI_BIN names the program."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_client import until
from real_gemini import Gemini

pytestmark = [pytest.mark.client, pytest.mark.slow]

REVIEW = "Is Heroku's price still doubled? We agreed with Bob to review it on 3 March 2027."
ANSWER = {"text": "We decided to keep Fly.io until March 2027."}


def test_start_prompt_and_end(tmp_path: Path) -> None:
    with Gemini(tmp_path, [], ANSWER) as client:
        client.says(REVIEW)
        first = client.requests("review it on 3 March")[0]
        assert "Short answers, says Noor." in first and "Alice moved the API to Fly.io" in first
        client.run("flush")  # its end is not awaited: what it left is found
        until(lambda: "We agreed with Bob" in client.memory() and not client.waiting())
        assert client.memory().count("We agreed with Bob") == 1 and "· gemini ·" in client.memory()
        assert client.memory().count("keep Fly.io until March 2027") == 1
        assert client.memory().count("Alice moved the API") == 1 and client.log() == ""


def test_a_tool_is_called(tmp_path: Path) -> None:
    call = {"tool_use": {"name": "mcp_ua-memory_archival_memory_search", "input": {"query": "API moved"}}}
    rules = [
        {"match": {"any_text": "any good.*functionResponse|any good.*tool_result"}, "reply": ANSWER},
        {"match": {"any_text": "any good", "has_tools": True}, "reply": call},
    ]
    with Gemini(tmp_path, rules, ANSWER) as client:
        client.says("Is Heroku any good?", "--yolo")
        results = client.requests('"functionResponse"')
        assert "Alice moved the API to Fly.io" in results[-1].partition('"functionResponse"')[2]
