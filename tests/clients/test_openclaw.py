"""OpenClaw itself, by its gateway: what our plugin gives it, and what is kept. Opt-in: OPENCLAW_BIN."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from real_client import shown, until
from real_clients import OpenClaw

pytestmark = [pytest.mark.client, pytest.mark.slow]

REVIEW = "Is Heroku's price still doubled? We agreed with Bob to review it on 3 March 2027."
ANSWER = {"text": "We decided to keep Fly.io until March 2027."}


MAIN = "agent:main:main"


def test_the_gateway_recalls_and_keeps(tmp_path: Path) -> None:
    with OpenClaw(tmp_path, [], ANSWER) as client, client.gateway():
        client.says(REVIEW)
        first = client.requests("review it on 3 March")[0]
        assert "Short answers, says Noor." in first and "Alice moved the API to Fly.io" in first
        until(lambda: REVIEW in client.waiting())
        assert "We agreed with Bob" not in client.memory()
        client.does(
            "gateway", "call", "sessions.reset", "--params", json.dumps({"key": MAIN, "reason": "new"})
        )
        until(lambda: "We agreed with Bob" in client.memory())
        client.says("When do we review Heroku with Bob?")
        again = client.requests("When do we review")[-1]
        assert "review it on 3 March 2027" in again and "Short answers, says Noor." in again
        assert client.memory().count("We agreed with Bob") == 1
        assert client.memory().count("Alice moved the API") == 1 and client.log() == ""


def test_the_gateway_searches_by_mcp_and_is_stopped(tmp_path: Path) -> None:
    find = {"name": "tool_search", "input": {"query": "memory search"}}
    call = {"id": "ua-memory__memory_search", "args": {"query": "API moved"}}
    uses = {"tool_use": {"name": "tool_call", "input": call}}
    rules = [  # its own notes stand behind a tool's result: the words of the whole request tell
        {"match": {"any_text": "good.*tool_result"}, "reply": uses, "times": 1},
        {"match": {"any_text": "any good", "has_tools": True}, "reply": {"tool_use": find}, "times": 1},
    ]
    with OpenClaw(tmp_path, rules, ANSWER) as client:
        with client.gateway():
            client.says("Is Heroku any good?")
            last = json.loads(client.requests("any good")[-1])["messages"]
            assert "Alice moved the API to Fly.io" in shown(last)
            until(lambda: ANSWER["text"] in client.waiting())  # a moment after the answer
        until(lambda: client.run("flush") and "keep Fly.io until March 2027" in client.memory())
        assert client.memory().count("Alice moved the API") == 1 and client.log() == ""


def test_a_compaction_flushes_before_and_gives_back_after(tmp_path: Path) -> None:
    with OpenClaw(tmp_path, [], ANSWER) as client, client.gateway():
        client.says(REVIEW)
        client.says("And what else is there to say? " * 5)
        assert "We agreed with Bob" not in client.memory()
        client.does("sessions", "compact", MAIN)
        until(lambda: "We agreed with Bob" in client.memory())
        client.says("and now?")
        after = client.requests("and now?")[-1]
        assert "Short answers, says Noor." in after and "Memory given to this session" in after
        assert client.memory().count("We agreed with Bob") == 1


def test_a_group_is_told_only_what_was_said_in_it(tmp_path: Path) -> None:
    room = "agent:main:telegram:group:-1001"
    call = {"id": "ua-memory__memory_search", "args": {"query": "API moved"}}
    find = {"name": "tool_search", "input": {"query": "memory search"}}
    rules = [
        {
            "match": {"any_text": "look it up.*tool_result"},
            "reply": {"tool_use": {"name": "tool_call", "input": call}},
            "times": 1,
        },
        {"match": {"any_text": "look it up", "has_tools": True}, "reply": {"tool_use": find}, "times": 1},
    ]
    with OpenClaw(tmp_path, rules, ANSWER) as client, client.gateway():
        client.says(REVIEW, room)
        first = client.requests("review it on 3 March")[0]
        assert "Short answers, says Noor." not in first and "Alice moved the API to Fly.io" not in first
        until(lambda: REVIEW in client.waiting())
        client.does(
            "gateway", "call", "sessions.reset", "--params", json.dumps({"key": room, "reason": "new"})
        )
        until(lambda: "We agreed with Bob" in client.memory())
        assert "group:telegram:group:-1001" in client.memory() and "origin: web" in client.memory()
        client.says("When do we review Heroku with Bob?", room)
        again = client.requests("When do we review")[-1]
        assert "review it on 3 March 2027" in again and "Short answers, says Noor." not in again
        client.says("Where did Alice move the API? Please look it up.", room)
        sent = "".join(client.requests("look it up"))
        assert "memory's tools answer in direct chats only" in sent
        assert "Alice moved the API to Fly.io" not in sent and client.log() == ""
