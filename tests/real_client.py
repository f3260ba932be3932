"""The real Claude Code and Codex in a throw-away home, against a scripted model on loopback, with our hooks.

Where they are says the environment: CLAUDE_BIN, CODEX_BIN; UA_SHARED has the scripted model servers.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(os.environ.get("UA_SHARED") or Path(__file__).parents[2] / "shared") / "tools"
PROGRAMS = {name: os.environ.get(name, "") for name in ("CLAUDE_BIN", "CODEX_BIN")}
"""Read before a test's environment is emptied."""
EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact", "SessionEnd")
SUMMARY = {
    "match": {"last_user": "summary of the conversation"},
    "reply": {"text": "<analysis>.</analysis>\n<summary>\nA SUMMARY OF ALL\n</summary>"},
}


def program(name: str) -> str:
    """The program that a variable names; the test is skipped where there is none."""
    found = PROGRAMS[name]
    if not found or not Path(found).exists() or not SHARED.is_dir():
        pytest.skip(f"{name} names no program, or the scripted model is absent")
    return found


def server(module: str) -> Any:
    """A scripted model server by the name of its module."""
    spec = importlib.util.spec_from_file_location(module, SHARED / f"{module}.py")
    assert spec and spec.loader
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[module] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def until(found: Callable[[], Any], seconds: float = 30) -> Any:
    """What it returns once it is true; it must be so in time."""
    deadline = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < deadline, "not within the time"
        time.sleep(0.05)
    return value


class Place:
    """A home, a project, a bank, and our command line with the hooks' environment."""

    def __init__(self, root: Path, daemon: str = "off", **settings: str) -> None:
        self.home, self.project, self.bank = root / "home", root / "project", root / "bank"
        for folder in (self.home / "run", self.project):
            folder.mkdir(parents=True, mode=0o700)
        own = {"UA_MEMORY_DAEMON": daemon, "XDG_RUNTIME_DIR": str(self.home / "run"), **settings}
        own |= {"PYTHONPATH": path} if (path := os.environ.get("PYTHONPATH")) else {}
        self.own = own
        self.ours = [sys.executable, "-P", "-m", "ua_memory", "--bank", str(self.bank)]
        subprocess.run([*self.ours[:4], "init", str(self.bank)], env=self.environment(), check=True)
        (self.bank / "MEMORY.md").write_text("# Memory\n\n## Me\n\nShort answers, says Noor.\n")
        self.run("insert", "Alice moved the API to Fly.io because Heroku doubled its price")
        self.run("search", "all is indexed")

    def environment(self) -> dict[str, str]:
        path = os.environ.get("CLIENT_PATH") or "/usr/local/bin:/usr/bin:/bin"
        return {"PATH": path, "HOME": str(self.home), "TERM": "dumb", "LANG": "C.UTF-8", **self.own}

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [*self.ours, *words], env=self.environment(), capture_output=True, text=True, check=True
        )
        return done.stdout

    def hook(self) -> dict[str, Any]:
        """The hook as a client's settings name it; its model's key is not for us."""
        unset = ["-u", "ANTHROPIC_API_KEY", "-u", "ANTHROPIC_BASE_URL"]
        own = [f"{name}={value}" for name, value in self.own.items()]
        return {"type": "command", "command": "/usr/bin/env", "args": [*unset, *own, *self.ours, "hook"]}

    @property
    def state(self) -> Path:
        return self.bank / ".git" / "ua-memory"

    def waiting(self) -> list[str]:
        """The texts that gather or wait."""
        rows = [
            json.loads(line)
            for file in sorted((self.state / "pending").glob("turns-*.jsonl"))
            for line in file.read_text().splitlines()
        ]
        return [row["text"] for row in rows if "text" in row]

    def sessions(self) -> list[Path]:
        return list((self.state / "pending").glob("session-*.json"))

    def memory(self) -> str:
        """All that the logs say."""
        return "\n".join(file.read_text() for file in sorted((self.bank / "memory").glob("*.md")))

    def log(self) -> str:
        file = self.state / "local" / "hook.log"
        return file.read_text() if file.exists() else ""

    def stop(self) -> None:
        subprocess.run(
            [*self.ours, "daemon", "stop"], env=self.environment(), capture_output=True, check=False
        )


class ClaudeCode(Place):
    """Claude Code against `fake`, whose requests are kept."""

    def __init__(self, root: Path, rules: list[Any], default: Any, **more: str) -> None:
        self.program = program("CLAUDE_BIN")
        super().__init__(root, **more)
        self.fake = server("fake_anthropic").FakeAnthropic({"rules": [SUMMARY, *rules], "default": default})
        settings = {"hooks": {name: [{"hooks": [self.hook()]}] for name in EVENTS}}
        (self.home / ".claude").mkdir()
        (self.home / ".claude" / "settings.json").write_text(json.dumps(settings))

    def __enter__(self) -> ClaudeCode:
        self.fake.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.fake.stop()
        self.stop()

    def environment_of_client(self) -> dict[str, str]:
        quiet = ("DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER")
        off = dict.fromkeys((*quiet, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"), "1")
        model = {"ANTHROPIC_BASE_URL": self.fake.base_url, "ANTHROPIC_API_KEY": "sk-ant-dummy-not-a-key"}
        return {**self.environment(), **off, **model}

    def start(self, *words: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [self.program, *words], cwd=self.project, env=self.environment_of_client(),
            stdin=pipe, stdout=pipe, stderr=pipe, text=True,
        )  # fmt: skip

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


class Codex(Place):
    """Codex against `fake`."""

    def __init__(self, root: Path, rules: list[Any], default: Any, **more: str) -> None:
        self.program = program("CODEX_BIN")
        super().__init__(root, **more)
        server("fake_anthropic")  # what the other one is made of
        self.fake = server("fake_openai").FakeOpenAI({"rules": rules, "default": default})

    def __enter__(self) -> Codex:
        self.fake.start()
        folder = self.home / ".codex"
        folder.mkdir()
        folder.joinpath("config.toml").write_text(
            'model = "gpt-5.1-codex"\nmodel_provider = "fake"\n[model_providers.fake]\nname = "fake"\n'
            f'base_url = "{self.fake.base_url}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
        )
        hook = self.hook()
        command = {"type": "command", "command": shlex.join([hook["command"], *hook["args"]]), "timeout": 30}
        hooks = {"hooks": {name: [{"hooks": [command]}] for name in EVENTS}}
        folder.joinpath("hooks.json").write_text(json.dumps(hooks))
        return self

    def __exit__(self, *_: object) -> None:
        self.fake.stop()
        self.stop()

    def says(self, *words: str) -> str:
        """One run of `codex exec`; what it printed."""
        flags = ("--skip-git-repo-check", "--json", "--dangerously-bypass-hook-trust")
        done = subprocess.run(
            [self.program, "exec", *flags, *words], env={**self.environment(), "OPENAI_API_KEY": "dummy"},
            cwd=self.project, input="", capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def requests(self, containing: str) -> list[str]:
        """What was sent to the model, where it has these words."""
        sent = [json.dumps(each["body"], ensure_ascii=False) for each in self.fake.requests if each["body"]]
        return [each for each in sent if containing in each]
