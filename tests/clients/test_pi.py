"""pi itself: what our extension gives it, and what is kept. Opt-in: PI_BIN names its JavaScript."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from real_client import shown, until
from real_clients import Pi

pytestmark = [pytest.mark.client, pytest.mark.slow]

REVIEW = "Is Heroku's price still doubled? We agreed with Bob to review it on 3 March 2027."
ANSWER = {"text": "We decided to keep Fly.io until March 2027."}
SEARCH = "mcp__ua_memory__archival_memory_search"


def test_start_prompt_and_end(tmp_path: Path) -> None:
    with Pi(tmp_path, [], ANSWER) as client:
        client.says(REVIEW)
        first = client.requests("review it on 3 March")[0]
        assert "Short answers, says Noor." in first and "Alice moved the API to Fly.io" in first
        assert "Alice moved" not in client.said_to_itself()  # recalled for its own turn only
        until(lambda: "We agreed with Bob" in client.memory() and not client.sessions())
        assert "keep Fly.io until March 2027" in client.memory() and client.log() == ""
        assert client.memory().count("Alice moved the API") == 1 and "· pi ·" in client.memory()
        client.says("--continue", "I always prefer tabs over spaces in this project.")
        until(lambda: "tabs over spaces" in client.memory() and not client.waiting())
        assert client.memory().count("We agreed with Bob") == 1


def test_a_tool_is_called_and_shown_as_text(tmp_path: Path) -> None:
    call = {"tool_use": {"name": SEARCH, "input": {"query": "API moved"}}}
    rules = [
        {"match": {"has_tools": True, "tool_result": "."}, "reply": ANSWER},
        {"match": {"has_tools": True, "last_user": "Heroku"}, "reply": call},
    ]
    with Pi(tmp_path, rules, ANSWER) as client:
        client.says("Is Heroku any good?")
        text = shown(json.loads(client.requests("any good")[-1])["messages"])
        assert "Alice moved the API to Fly.io" in text and not text.lstrip().startswith(("{", "["))


def test_a_compaction_by_hand(tmp_path: Path) -> None:
    with Pi(tmp_path, [], ANSWER) as client, client.talk() as do:
        do("prompt", message=REVIEW)
        assert REVIEW in client.waiting() and "We agreed with Bob" not in client.memory()
        do("prompt", message="And what else is there to say? " * 20)
        do("compact", customInstructions="keep the date")
        assert '"type":"compaction"' in client.said_to_itself()
        until(lambda: "We agreed with Bob" in client.memory())
        do("prompt", message="and now?")
        after = client.requests("and now?")[-1]
        assert "Short answers, says Noor." in after and "Memory given to this session" in after
        assert client.memory().count("We agreed with Bob") == 1


def test_an_automatic_compaction(tmp_path: Path) -> None:
    full = {**ANSWER, "usage": {"input_tokens": 190_000}}
    rules = [{"match": {"nth": 2}, "reply": full}]
    with Pi(tmp_path, rules, ANSWER, UA_TRUNCATION_THRESHOLD="199000") as client, client.talk() as do:
        do("prompt", message=REVIEW)
        assert REVIEW in client.waiting() and "We agreed with Bob" not in client.memory()
        do("prompt", message="And what else is there to say? " * 20)
        until(lambda: '"type":"compaction"' in client.said_to_itself())
        until(lambda: "We agreed with Bob" in client.memory())
        assert client.sessions()  # it goes on
        do("prompt", message="and now?")
        after = client.requests("and now?")[-1]
        assert "Short answers, says Noor." in after and "Memory given to this session" in after
        assert client.memory().count("We agreed with Bob") == 1


def test_a_new_session_flushes_the_one_before(tmp_path: Path) -> None:
    with Pi(tmp_path, [], ANSWER) as client, client.talk() as do:
        do("prompt", message=REVIEW)
        do("new_session")
        until(lambda: "We agreed with Bob" in client.memory())
        do("prompt", message="When do we review Heroku with Bob?")
        assert "review it on 3 March 2027" in client.requests("When do we review")[0]
