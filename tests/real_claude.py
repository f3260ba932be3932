"""The real Claude Code: one run at a time, a session that goes on, and its own screen (see `real_client`)."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from real_client import Place, Screen, program, server

KEY = "sk-ant-dummy-not-a-key"
SUMMARY = {
    "match": {"last_user": "summary of the conversation"},
    "reply": {"text": "<analysis>.</analysis>\n<summary>\nA SUMMARY OF ALL\n</summary>"},
}


class ClaudeCode(Place):
    """Claude Code against `fake`, whose requests are kept."""

    def __init__(
        self, root: Path, rules: list[Any], default: Any, *, install: bool = True, **more: str
    ) -> None:
        self.program = program("CLAUDE_BIN")
        super().__init__(root, **more)
        self.fake = server("fake_anthropic").FakeAnthropic({"rules": [SUMMARY, *rules], "default": default})
        if install:
            self.install("claude-code")

    def __enter__(self) -> ClaudeCode:
        self.fake.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.fake.stop()
        self.stop()

    def environment_of_client(self) -> dict[str, str]:
        quiet = ("DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER")
        off = dict.fromkeys((*quiet, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"), "1")
        model = {"ANTHROPIC_BASE_URL": self.fake.base_url, "ANTHROPIC_API_KEY": KEY}
        return {**self.outside(), **off, **model}

    def start(self, *words: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [self.program, *words], cwd=self.project, env=self.environment_of_client(),
            stdin=pipe, stdout=pipe, stderr=pipe, text=True,
        )  # fmt: skip

    def does(self, *words: str) -> str:
        """One of its commands that asks no model; what it printed."""
        process = self.start(*words)
        out, err = process.communicate("", timeout=120)
        assert process.returncode == 0, out + err
        return out

    def screen(self) -> Screen:
        """Itself on a terminal, where it asks nothing before the first prompt."""
        self.trust()
        return Screen(self, [self.program], self.environment_of_client())

    def trust(self) -> None:
        """Have the folder, the key and the theme settled."""
        file = self.home / ".claude.json"
        found = json.loads(file.read_text()) if file.exists() else {}
        settled = {"hasCompletedOnboarding": True, "customApiKeyResponses": {"approved": [KEY[-20:]]}}
        folders = {"projects": {str(self.project): {"hasTrustDialogAccepted": True}}}
        file.write_text(json.dumps(found | settled | folders))

    def says(self, *words: str) -> dict[str, Any]:
        """One run with `-p`; what it printed."""
        process = self.start("-p", "--output-format", "json", *words)
        out, err = process.communicate("", timeout=120)
        assert process.returncode == 0, err
        return dict(json.loads(out))

    def requests(self, containing: str) -> list[str]:
        """What was sent to the model, where it has these words."""
        sent = [
            json.dumps(each["body"]["messages"], ensure_ascii=False)
            for each in self.fake.requests
            if each["body"]
        ]
        return [each for each in sent if containing in each]

    def transcript(self) -> Path:
        return next((self.home / ".claude" / "projects").glob("*/*.jsonl"))


@contextlib.contextmanager
def talk(client: ClaudeCode, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A session that takes one message a line and goes on; killed where it still runs."""
    streams = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
    process = client.start("-p", *streams, *words)
    try:
        yield process
    finally:
        process.kill()
        with contextlib.suppress(ValueError):  # its input was closed
            process.communicate()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream
            with contextlib.suppress(OSError):
                stream.close()


def tell(process: subprocess.Popen[str], text: str) -> list[dict[str, Any]]:
    """Say something; all that comes until the answer is whole."""
    assert process.stdin and process.stdout
    message = {"type": "user", "message": {"role": "user", "content": text}}
    process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()
    came: list[dict[str, Any]] = []
    for line in process.stdout:
        came.append(json.loads(line))
        if came[-1].get("type") == "result":
            break
    return came
