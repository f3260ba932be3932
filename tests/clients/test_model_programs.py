"""Claude Code and Codex themselves as memory's model: what they are asked, and what they leave behind.

Opt-in: CLAUDE_BIN and CODEX_BIN name the programs. Each home has our hooks set up, and instructions of its
owner's: none of it may reach the model.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from real_claude import ClaudeCode
from real_client import Place, program, server, until
from real_clients import Codex

pytestmark = [pytest.mark.client, pytest.mark.slow]

PROGRAMS = {"claude-code": ("CLAUDE_BIN", "claude", "fake_anthropic", "FakeAnthropic"),
            "codex": ("CODEX_BIN", "codex", "fake_openai", "FakeOpenAI")}  # fmt: skip
SAID = "We agreed with Bob to review Heroku on 3 March 2027."
FLUSH = {"last_user": "Save what is worth keeping"}
TALK = {
    "type": "user", "uuid": "u1", "sessionId": "s1", "timestamp": "2026-11-20T10:00:00Z",
    "message": {"role": "user", "content": SAID},
}  # fmt: skip


def kept(**more: Any) -> dict[str, str]:
    """A reply that keeps what was said, and claims what nobody said."""
    real = {"content": SAID, "tags": ["hosting"], "quote": SAID, "turn": 1, **more}
    false = {"content": "Bob owns 500 horses", "tags": [], "quote": SAID, "turn": 1}
    calls = [{"tool": "archival_memory_insert", "input": given} for given in (real, false)]
    return {"text": f"```json\n{json.dumps({'calls': calls, 'text': ''})}\n```"}


class Asked(Place):
    """A bank whose model is a client's program, against `fake`."""

    def __init__(self, root: Path, client: str, script: dict[str, Any]) -> None:
        variable, name, module, kind = PROGRAMS[client]
        found = program(variable)
        self.temporary = root / "temporary"
        self.temporary.mkdir()
        super().__init__(root, TMPDIR=str(self.temporary))
        (self.bin / name).symlink_to(found)
        (self.project / "talk.jsonl").write_text(json.dumps(TALK) + "\n")
        for file in ("CLAUDE.md", "AGENTS.md", ".claude/CLAUDE.md", ".codex/AGENTS.md"):
            for folder in (self.project, self.home, self.temporary):
                (folder / file).parent.mkdir(exist_ok=True)
                (folder / file).write_text("Be a pirate.")
        self.client, self.fake = client, getattr(server(module), kind)(script)

    def __enter__(self) -> Asked:
        self.fake.start()
        folder = self.home / ".codex"
        (folder / "config.toml").write_text(
            'model = "gpt-6-sol"\nmodel_provider = "fake"\n[model_providers.fake]\nname = "fake"\n'
            f'base_url = "{self.fake.base_url}/v1"\nwire_api = "responses"\nrequires_openai_auth = true\n'
        )
        (folder / "auth.json").write_text('{"OPENAI_API_KEY": "dummy"}')
        self.install(self.client, "--model", "client")
        return self

    def __exit__(self, *_: object) -> None:
        self.fake.stop()

    def environment(self) -> dict[str, str]:
        keys = {"ANTHROPIC_API_KEY": "sk-ant-metered", "ANTHROPIC_AUTH_TOKEN": "of-the-subscription"}
        url = {"ANTHROPIC_BASE_URL": self.fake.base_url} if hasattr(self, "fake") else {}
        return {**super().environment(), **keys, **url} if url else super().environment()

    def does(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.ours, *words], env={**self.environment(), **env}, cwd=self.project,
            capture_output=True, text=True, check=False, timeout=200,
        )  # fmt: skip

    def files(self) -> set[str]:
        return {str(file.relative_to(self.home)) for file in self.home.rglob("*") if file.is_file()}

    def bodies(self) -> list[dict[str, Any]]:
        return [each["body"] for each in self.fake.requests if each["body"] and "model" in each["body"]]


@pytest.mark.parametrize("client", PROGRAMS)
def test_a_flush_is_one_request_and_leaves_nothing(tmp_path: Path, client: str) -> None:
    with Asked(tmp_path, client, {"default": kept()}) as place:
        before = place.files()
        done = place.does("flush", "--force", "talk.jsonl")
        assert done.returncode == 0, done.stderr
        assert "review Heroku on 3 March 2027" in place.memory() and "horses" not in place.memory()
        assert "Bob owns 500 horses" in done.stdout and f"Proposed by {client}" in done.stdout
        (body,) = place.bodies()
        text = json.dumps(body)
        assert "Be a pirate" not in text and "Alice moved the API to Fly.io" in text and "says Noor" in text
        names = {tool.get("name") for tool in body.get("tools") or ()}
        names |= {each["name"] for row in body.get("input") or () for each in nested(row)}
        assert names <= {"view_image", "request_user_input"}
        (sent,) = [
            each["headers"] for each in place.fake.requests if each["body"] and "model" in each["body"]
        ]
        assert "x-api-key" not in {name.lower() for name in sent}
        new = {
            each
            for each in place.files() - before
            if not each.startswith((".claude.json", ".claude/backups", ".claude/plugins"))
        }
        assert new == set() and not list(place.temporary.glob("ua-memory-model-*"))
        assert "talk.jsonl" not in text and str(place.project) not in text
        assert place.log() == "" and not place.waiting() and not place.sessions()
        assert "subscription" in place.does("model", "test").stdout


def nested(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for tool in row.get("tools") or ():
        yield from tool["tools"] if tool["type"] == "namespace" else (tool,)


@pytest.mark.parametrize("client", PROGRAMS)
@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        ({"status": 401, "type": "authentication_error", "message": "bad login"}, 15, "log in with"),
        ({"status": 404, "type": "not_found_error", "message": "no such model"}, 16, "UA_MEMORY_MODEL"),
    ],
)
def test_a_failure_says_why_and_the_turns_wait(
    tmp_path: Path, client: str, error: dict[str, Any], code: int, said: str
) -> None:
    with Asked(tmp_path, client, {"default": {"error": error}}) as place:
        done = place.does("flush", "--force", "talk.jsonl", UA_MEMORY_MODEL="gpt-none")
        assert done.returncode == code and said in done.stderr
        assert place.waiting() == [SAID]
        status = place.does("status").stdout
        assert status.count("gave no answer") == 1
        assert not list(place.temporary.glob("ua-memory-model-*"))


@contextmanager
def settled(place: Any) -> Iterator[None]:
    """What is in flight has come to rest."""
    yield
    until(lambda: not place.sessions() and not place.waiting(), 60)


def test_a_session_of_claude_code_is_read_by_claude_code(tmp_path: Path) -> None:
    """From the hook at its end, by the login of its settings; what the child does is no session."""
    rules = [{"match": FLUSH, "reply": kept()}]
    with ClaudeCode(tmp_path, rules, {"text": "Agreed."}, install=False) as client:
        file = client.home / ".claude" / "settings.json"
        file.parent.mkdir()
        own = {"ANTHROPIC_BASE_URL": client.fake.base_url, "ANTHROPIC_AUTH_TOKEN": "of-the-subscription"}
        file.write_text(json.dumps({"env": own}))
        (client.bin / "claude").symlink_to(client.program)
        client.install("claude-code", "--model", "client")
        with settled(client):
            client.does("-p", SAID)
            until(lambda: "review Heroku on 3 March" in client.memory(), 60)
        assert client.log() == "" and "horses" not in client.memory()
        assert len([each for each in asked(client) if "Save what is worth keeping" in each]) == 1
        assert len(list((client.home / ".claude" / "projects").rglob("*.jsonl"))) == 1


def test_a_session_of_codex_is_read_by_codex(tmp_path: Path) -> None:
    rules = [{"match": FLUSH, "reply": kept()}]
    with Codex(tmp_path, rules, {"text": "Agreed."}) as client:
        (client.bin / "codex").symlink_to(client.program)
        client.install("codex", "--model", "client")
        with settled(client):
            client.says(SAID)
            until(lambda: "review Heroku on 3 March" in client.memory(), 60)
        assert client.log() == "" and "horses" not in client.memory()
        assert len([each for each in asked(client) if "Save what is worth keeping" in each]) == 1
        assert len(list((client.home / ".codex" / "sessions").rglob("*.jsonl"))) == 1


def asked(client: Any) -> list[str]:
    return [json.dumps(each["body"]) for each in client.fake.requests if each["body"]]
