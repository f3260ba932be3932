"""OpenCode itself: what its plugin gives it, and what is kept. Opt-in: OPENCODE_BIN names the program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from real_client import program
from real_clients import Driven

pytestmark = [pytest.mark.client, pytest.mark.slow]

REVIEW = "Is Heroku's price still doubled? We agreed with Bob to review it on 3 March 2027."
ANSWER = {"text": "We decided to keep Fly.io until March 2027."}


class OpenCode(Driven):
    """OpenCode, one run a prompt. It fetches its providers' packages itself."""

    def set_up(self) -> None:
        folder = self.home / ".config" / "opencode"
        folder.mkdir(parents=True)
        fake = {"options": {"baseURL": f"{self.fake.base_url}/v1", "apiKey": "dummy"}}
        model = {"model": "anthropic/claude-sonnet-4-5", "small_model": "anthropic/claude-sonnet-4-5"}
        own = {**model, "provider": {"anthropic": fake}, "autoupdate": False}
        folder.joinpath("opencode.json").write_text(json.dumps(own))
        self.install("opencode")

    def says(self, text: str, *words: str) -> str:
        return self.done([program("OPENCODE_BIN"), "run", *words, text])


def test_start_prompt_and_end(tmp_path: Path) -> None:
    program("OPENCODE_BIN")
    with OpenCode(tmp_path, [], ANSWER) as client:
        client.says(REVIEW)
        first = next(each for each in client.requests("review it on 3 March") if '"tools"' in each)
        assert "Short answers, says Noor." in first and "Alice moved the API to Fly.io" in first
        client.run("flush")
        assert client.memory().count("We agreed with Bob") == 1 and "· opencode ·" in client.memory()
        assert client.memory().count("keep Fly.io until March 2027") == 1
        assert client.memory().count("Alice moved the API") == 1 and client.log() == ""
        client.says("And what did we agree with Bob?", "--continue")
        again = next(each for each in client.requests("what did we agree") if '"tools"' in each)
        assert again.count("What memory has on this") == 1, "what was recalled before is not in the session"
        client.run("flush")
        assert client.memory().count("We agreed with Bob") == 1, "nothing twice"


def test_a_tool_is_called(tmp_path: Path) -> None:
    program("OPENCODE_BIN")
    call = {"tool_use": {"name": "ua-memory_archival_memory_search", "input": {"query": "API moved"}}}
    rules = [
        {"match": {"any_text": "any good.*tool_result"}, "reply": ANSWER},
        {"match": {"any_text": "any good", "has_tools": True}, "reply": call},
    ]
    with OpenCode(tmp_path, rules, ANSWER) as client:
        client.says("Is Heroku any good?")
        results = client.requests('"tool_result"')
        assert "Alice moved the API to Fly.io" in results[-1].partition('"tool_result"')[2]


def test_its_stored_sessions_are_imported(tmp_path: Path) -> None:
    program("OPENCODE_BIN")
    with OpenCode(tmp_path, [], ANSWER) as client:
        client.run("uninstall", "opencode")  # nothing hears it
        client.says(REVIEW)
        client.says("What else is there to say about it?", "--continue")
        assert client.memory().count("We agreed with Bob") == 0
        done = json.loads(client.run("import", "sessions", "--client", "opencode", "--json"))
        assert [one["new"] for one in done["sessions"]] == [4] and done["problems"] == []
        assert client.memory().count("We agreed with Bob") == 1
        assert client.memory().count("keep Fly.io until March 2027") == 1
        again = json.loads(client.run("import", "sessions", "--client", "opencode", "--json"))
        assert [one["new"] for one in again["sessions"]] == [0]
