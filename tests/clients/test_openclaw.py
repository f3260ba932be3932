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


class InSlot(OpenClaw):
    """OpenClaw with us in the place of its own memory, and its own flush due after each turn."""

    installed = ("--memory-slot",)

    def set_up(self) -> None:
        super().set_up()
        due_at_once(self)


def due_at_once(client: OpenClaw) -> None:
    file = client.home / ".openclaw" / "openclaw.json"
    settings = json.loads(file.read_text())
    settings["agents"]["defaults"]["compaction"] = {"memoryFlush": {"forceFlushTranscriptBytes": 1}}
    file.write_text(json.dumps(settings))


def asks(words: str, tool: str, args: dict[str, object]) -> list[object]:
    """A model that looks a tool up and calls it once a prompt has these words."""
    find = {"name": "tool_search", "input": {"query": tool.replace("_", " ")}}
    call = {"tool_use": {"name": "tool_call", "input": {"id": tool, "args": args}}}
    return [
        {"match": {"any_text": f"{words}.*tool_result"}, "reply": call, "times": 1},
        {"match": {"any_text": words, "has_tools": True}, "reply": {"tool_use": find}, "times": 1},
    ]


ITS_FLUSH = "Pre-compaction memory flush"


def test_in_the_slot_its_memory_is_ours(tmp_path: Path) -> None:
    room = "agent:main:telegram:group:-1001"
    rules = [
        *asks("any good", "memory_search", {"query": "API moved"}),
        *asks("look it up", "memory_search", {"query": "API moved"}),
    ]
    with InSlot(tmp_path, rules, ANSWER) as client, client.gateway():
        client.says("Is Heroku any good?")
        first, *_, last = client.requests("any good")
        assert "## Memory Recall" in first and "memory_search (ua-memory)" in first
        assert r"memory/" in shown(json.loads(last)["messages"])
        assert "Alice moved the API to Fly.io" in shown(json.loads(last)["messages"])
        asked = client.does("gateway", "call", "memory.search", "--params", '{"query": "API moved"}')
        assert '"provider": "ua-memory"' in asked and "Alice moved the API to Fly.io" in asked
        client.says(REVIEW)
        client.does("sessions", "compact", MAIN)
        until(lambda: "We agreed with Bob" in client.memory())
        client.says("Where did Alice move the API? Please look it up.", room)
        sent = "".join(client.requests("look it up"))
        assert "memory_search (ua-memory)" not in sent and "## Memory Recall" not in sent
        assert "Alice moved the API to Fly.io" not in sent and "Short answers" not in sent
        assert not client.requests(ITS_FLUSH) and not list(client.project.glob("memory/*"))
        assert client.log() == ""


def test_beside_its_own_memory_it_is_a_corpus_of_that(tmp_path: Path) -> None:
    rules = asks("any good", "memory_search", {"query": "API moved", "corpus": "wiki"})
    with OpenClaw(tmp_path, rules, ANSWER) as client:
        due_at_once(client)
        with client.gateway():
            client.says("Is Heroku any good?")
            last = shown(json.loads(client.requests("any good")[-1])["messages"])
            assert r"ua-memory" in last and "Alice moved the API to Fly.io" in last
            client.says("And Render?")
            assert client.requests(ITS_FLUSH), "what has the slot's test mean something"


def test_uninstalled_openclaw_is_as_it_was(tmp_path: Path) -> None:
    with InSlot(tmp_path, [], ANSWER) as client:
        file = client.home / ".openclaw" / "openclaw.json"
        client.run("uninstall", "openclaw")
        before = file.read_bytes()
        client.install("openclaw", "--memory-slot")
        client.does("plugins", "list")
        client.run("uninstall", "openclaw")
        assert file.read_bytes() == before and not list(file.parent.glob("extensions/*"))
        with client.gateway():
            client.says("Is Heroku any good?")
            assert "memory_search (memory-core)" in client.requests("any good")[0]
