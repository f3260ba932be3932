"""Claude Code itself: MCP tools, a plugin, a daemon that fails, a transcript that lags, its own screen."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from real_claude import ClaudeCode, talk, tell
from real_client import shown, until

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.client, pytest.mark.slow]

REVIEW = "Is Heroku's price still doubled? We agreed with Bob to review it on 3 March 2027."
ANSWER = {"text": "We decided to keep Fly.io until March 2027."}
SEARCH = "mcp__ua-memory__archival_memory_search"


def asks(tool: str) -> list[dict[str, object]]:
    """A model that searches memory once before it answers."""
    call = {"name": tool, "input": {"query": "why was the API moved"}}
    return [
        {"match": {"has_tools": True, "tool_result": "."}, "reply": ANSWER},
        {"match": {"has_tools": True, "last_user": "Heroku"}, "reply": {"tool_use": call}},
    ]


def given(client: ClaudeCode) -> str:
    """What the model was given as the result of its tool."""
    return shown(json.loads(client.requests('"tool_result"')[-1]))


@pytest.mark.parametrize("daemon", ["off", "auto"])
def test_a_tool_is_called_and_shown_as_text(tmp_path: Path, daemon: str) -> None:
    with ClaudeCode(tmp_path, asks(SEARCH), ANSWER, daemon=daemon) as client:
        client.says("--allowedTools", SEARCH, "--", "Is Heroku any good?")
        text = given(client)
        assert "Alice moved the API to Fly.io" in text and not text.lstrip().startswith(("{", "["))
        until(lambda: not client.sessions() and not client.waiting())
        assert client.memory().count("Alice moved the API") == 1 and client.log() == ""


@pytest.mark.parametrize("checkout", [False, True])
def test_a_plugin_from_a_local_marketplace(tmp_path: Path, checkout: bool) -> None:
    tool = "mcp__plugin_ua-memory_memory__archival_memory_search"
    with ClaudeCode(tmp_path, asks(tool), ANSWER, install=False) as client:
        market, inner, name = str(tmp_path / "market"), "plugins/ua-memory", "ua-memory@ua-memory-local"
        if checkout:
            market, inner, name = str(ROOT), "ua_memory/data/plugins/claude-code", "ua-memory@ua-memory"
        else:
            client.install("claude-code", "--plugin", market)
        for words in (("validate", market), ("validate", f"{market}/{inner}"),
                      ("marketplace", "add", market), ("install", name)):  # fmt: skip
            client.does("plugin", *words)
        assert name in client.does("plugin", "list")
        client.says("--allowedTools", tool, "--", REVIEW)
        first = client.requests("review it on 3 March")[0]
        assert "Short answers, says Noor." in first and "Alice moved the API to Fly.io" in first
        assert "Alice moved the API to Fly.io" in given(client)
        until(lambda: "We agreed with Bob" in client.memory() and not client.sessions())
        assert client.memory().count("keep Fly.io until March") == 1 and client.log() == ""


@pytest.mark.parametrize("way", ["killed", "stopped"])
def test_a_start_has_its_memory_while_the_daemon_is_down(tmp_path: Path, way: str) -> None:
    """Killed: its socket lies there and nobody answers. Stopped: it takes the connection, and is silent."""
    with ClaudeCode(tmp_path, [], ANSWER, daemon="auto") as client:
        client.run("daemon", "start")
        pid = int(json.loads(client.run("daemon", "status", "--json"))["pid"])
        os.kill(pid, signal.SIGKILL if way == "killed" else signal.SIGSTOP)
        try:
            client.says(REVIEW)
            first = client.requests("review it on 3 March")[0]
            assert "Short answers, says Noor." in first and "Alice moved the API to Fly.io" in first
            until(lambda: REVIEW in client.waiting() or "We agreed with Bob" in client.memory())
        finally:
            if way == "stopped":
                os.kill(pid, signal.SIGCONT)
        until(lambda: "We agreed with Bob" in client.memory() and not client.sessions())
        assert client.memory().count("keep Fly.io until March") == 1


def test_answers_are_kept_although_the_transcript_lags(tmp_path: Path) -> None:
    """Beside our hook stands one that looks into the transcript: some answers are not in it yet."""
    answers = [f"We decided to move part {n} to host h{n}x on 3 May 2027." for n in range(12)]
    rules = [
        {"match": {"last_user": f"Question {n},"}, "reply": {"text": text}} for n, text in enumerate(answers)
    ]
    with ClaudeCode(tmp_path, rules, ANSWER) as client:
        late = client.home / "late"
        file = '"$HOME"/.claude/projects/*/"$CLAUDE_CODE_SESSION_ID".jsonl'
        look = f'grep -o "part [0-9]* to" {file} | sort -u | wc -l >> "$HOME/late"'
        settings = client.home / ".claude" / "settings.json"
        found = json.loads(settings.read_text())
        found["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": look, "timeout": 10}]})
        settings.write_text(json.dumps(found))
        with talk(client) as process:
            for n in range(12):
                tell(process, f"Question {n}, please?")
                kept = [text for text in client.waiting() if "We decided" in text]
                assert kept == answers[: n + 1]
            assert process.stdin
            process.stdin.close()
            process.wait(30)
        until(lambda: not client.waiting() and not client.sessions())
        assert "host h11x on 3 May 2027" in client.memory()
        written = [int(each) for each in late.read_text().split()]
        if written == list(range(1, 13)):
            pytest.skip("the transcript never lagged this time; all was kept")


def test_a_failed_answer_keeps_the_prompt(tmp_path: Path) -> None:
    """The model refuses for good: there is no Stop, and what was asked is kept at the end."""
    refused = {"error": {"status": 400, "type": "invalid_request_error", "message": "no"}}
    with ClaudeCode(tmp_path, [{"match": {"last_user": "review it"}, "reply": refused}], ANSWER) as client:
        process = client.start("-p", REVIEW)
        process.communicate("", timeout=120)
        assert process.returncode != 0
        until(lambda: "We agreed with Bob" in client.memory() and not client.sessions())
        assert client.memory().count("We agreed with Bob") == 1


def test_clear_on_its_own_screen(tmp_path: Path) -> None:
    with ClaudeCode(tmp_path, [], ANSWER) as client:
        with client.screen() as screen:
            screen.types(REVIEW)
            screen.shows("keep Fly.io until March 2027")
            assert "We agreed with Bob" not in client.memory()
            screen.types("/clear")
            until(lambda: "We agreed with Bob" in client.memory())
            screen.types("What did we agree on with Bob?")
            until(lambda: client.requests("What did we agree on"))
            again = client.requests("What did we agree on")[0]
            assert "Short answers, says Noor." in again and "review it on 3 March 2027" in again
            screen.types("/exit")
            screen.ends()
        until(lambda: not client.sessions() and not client.waiting())
        assert client.memory().count("We agreed with Bob") == 1 and client.log() == ""


def test_a_failed_turn_on_its_own_screen(tmp_path: Path) -> None:
    """An interactive session goes on after an error: StopFailure has the prompt gather at once."""
    refused = {"error": {"status": 400, "type": "invalid_request_error", "message": "refused for good"}}
    rules = [{"match": {"last_user": "review it"}, "reply": refused}]
    with ClaudeCode(tmp_path, rules, ANSWER) as client, client.screen() as screen:
        screen.types(REVIEW)
        screen.shows("refused for good")
        until(lambda: REVIEW in client.waiting())


def test_a_plugin_beside_the_settings_answers_once(tmp_path: Path) -> None:
    with ClaudeCode(tmp_path, [], ANSWER) as client:
        market = str(tmp_path / "market")
        client.install("claude-code", "--plugin", market)
        client.does("plugin", "marketplace", "add", market)
        client.does("plugin", "install", "ua-memory@ua-memory-local")
        told = client.checks("claude-code")
        assert "twice    hooks a second time, by the plugin ua-memory@ua-memory-local" in told
        client.says(REVIEW)
        first = client.requests("review it on 3 March")[0]
        assert first.count("Short answers, says Noor.") == 1
        assert first.count("Alice moved the API to Fly.io") == 1
        until(lambda: "We agreed with Bob" in client.memory() and not client.sessions())
        assert client.memory().count("We agreed with Bob") == 1
