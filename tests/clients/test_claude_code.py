"""Claude Code itself: what our hooks give it, and what they keep. Opt-in: CLAUDE_BIN names the program."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from real_claude import ClaudeCode, talk, tell
from real_client import until

pytestmark = [pytest.mark.client, pytest.mark.slow]

REVIEW = "Is Heroku's price still doubled? We agreed with Bob to review it on 3 March 2027."
ANSWER = {"text": "We decided to keep Fly.io until March 2027."}


def said_by_people(transcript: Path) -> str:
    """The lines of a transcript that are a person's turn, as a client writes them a moment later."""
    return "".join(line for line in transcript.read_text().splitlines() if '"type":"user"' in line)


@pytest.mark.parametrize("daemon", ["off", "auto"])
def test_the_first_request_has_memory_and_the_end_is_kept(tmp_path: Path, daemon: str) -> None:
    with ClaudeCode(tmp_path, [], ANSWER, daemon=daemon) as client:
        client.says(REVIEW)
        first = client.requests("review it on 3 March")[0]
        assert "Short answers, says Noor." in first and "Alice moved the API to Fly.io" in first
        until(lambda: "We agreed with Bob" in client.memory() and not client.sessions())
        until(lambda: not client.waiting())
        assert "keep Fly.io until March 2027" in client.memory() and client.log() == ""
        assert client.memory().count("Alice moved the API") == 1  # recalled, and not learnt again


def test_a_resumed_session_is_read_on(tmp_path: Path) -> None:
    with ClaudeCode(tmp_path, [], ANSWER) as client:
        session = str(client.says(REVIEW)["session_id"])
        until(lambda: not client.sessions() and not client.waiting())
        client.says("--resume", session, "I always prefer tabs over spaces in this project.")
        until(lambda: "tabs over spaces" in client.memory() and not client.waiting())
        assert client.memory().count("We agreed with Bob") == 1
        assert [line for line in client.memory().splitlines() if "keep Fly.io" in line] != []


def test_a_fork_says_nothing_again(tmp_path: Path) -> None:
    with ClaudeCode(tmp_path, [], ANSWER) as client:
        session = str(client.says(REVIEW)["session_id"])
        until(lambda: not client.sessions() and not client.waiting())
        client.says(
            "--resume", session, "--fork-session", "I always prefer tabs over spaces in this project."
        )
        until(lambda: "tabs over spaces" in client.memory() and not client.waiting())
        review = client.memory().partition("We agreed with Bob")[2].partition("\n- ")[0]
        assert client.memory().count("We agreed with Bob") == 1 and "seen:" not in review


def test_a_compaction_flushes_before_and_gives_back_after(tmp_path: Path) -> None:
    full = {"text": "We decided to keep Fly.io until March 2027.", "usage": {"input_tokens": 190_000}}
    rules = [{"match": {"last_user": "review it on 3 March", "has_tools": True}, "reply": full}]
    with ClaudeCode(tmp_path, rules, {"text": "fine"}, UA_TRUNCATION_THRESHOLD="199000") as client:
        with talk(client, "--model", "claude-haiku-4-5", "--autocompact", "100000") as process:
            tell(process, REVIEW)
            assert REVIEW in client.waiting()  # below the threshold it gathers
            tell(process, "Anything else about Heroku?")
            until(lambda: "We agreed with Bob" in client.memory())
            assert client.sessions()  # it goes on
            after = client.requests("A SUMMARY OF ALL")[-1]
            assert "Short answers, says Noor." in after and "Memory given to this session" in after
            assert "Alice moved the API to Fly.io" in after
            assert process.stdin
            process.stdin.close()
            process.wait(30)
        until(lambda: not client.waiting() and not client.sessions())
        assert client.memory().count("We agreed with Bob") == 1 and "A SUMMARY" not in client.memory()


def test_compact_by_hand(tmp_path: Path) -> None:
    with ClaudeCode(tmp_path, [], ANSWER) as client, talk(client) as process:
        tell(process, REVIEW)
        assert REVIEW in client.waiting() and "We agreed" not in client.memory()
        tell(process, "/compact keep the date")
        until(lambda: "We agreed with Bob" in client.memory())
        tell(process, "and now?")
        after = client.requests("A SUMMARY OF ALL")[-1]
        assert "Short answers, says Noor." in after and "Alice moved the API to Fly.io" in after


def test_what_a_killed_client_said_is_found_at_the_next_start(tmp_path: Path) -> None:
    rules = [{"match": {"last_user": "hang"}, "reply": {"hang_s": 60}}]
    with ClaudeCode(tmp_path, rules, ANSWER) as client:
        with talk(client) as process:
            tell(process, REVIEW)
            assert process.stdin
            said = "I always prefer tabs over spaces in this project; now hang."
            message = {"type": "user", "message": {"role": "user", "content": said}}
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            until(lambda: "tabs over spaces" in said_by_people(client.transcript()))
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        assert "We agreed" not in client.memory()
        client.says("hello again")
        until(lambda: "We agreed with Bob" in client.memory() and "tabs over spaces" in client.memory())


def test_a_subagent_does_not_double_what_was_said(tmp_path: Path) -> None:
    task = {"name": "Agent", "input": {
        "description": "look", "prompt": "LOOK-UP-TASK about the price", "subagent_type": "general-purpose",
    }}  # fmt: skip
    rules = [
        {"match": {"last_user": "LOOK-UP-TASK"}, "reply": {"text": "The sub-agent decided on 7 May 2027."}},
        {
            "match": {"last_user": "review it on 3 March", "has_tools": True},
            "reply": {"tool_use": task},
            "times": 1,
        },
    ]
    with ClaudeCode(tmp_path, rules, ANSWER) as client:
        client.says(REVIEW)
        until(lambda: "We agreed with Bob" in client.memory() and not client.sessions())
        assert client.memory().count("We agreed with Bob") == 1
        assert "7 May" not in client.memory() and "LOOK-UP" not in client.memory()
        assert client.log() == ""
