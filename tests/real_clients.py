"""Codex, pi, OpenClaw and Hermes themselves in a throw-away home, set up by `install` (see `real_client`).

PI_BIN and OPENCLAW_BIN name their JavaScript, the others a command; CLIENT_PATH has Node.js for those two.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
from real_client import PATH, Place, Screen, program, server, until


class Driven(Place):
    """A client against `fake`, a scripted model."""

    speaks = "anthropic"

    def __init__(self, root: Path, rules: list[Any], default: Any, **more: str) -> None:
        super().__init__(root, **more)
        script = {"rules": rules, "default": default}
        anthropic = server("fake_anthropic")  # what the other one is made of
        openai = self.speaks == "openai"
        self.fake = server("fake_openai").FakeOpenAI(script) if openai else anthropic.FakeAnthropic(script)

    def __enter__(self) -> Self:
        self.fake.start()
        self.set_up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.fake.stop()
        self.stop()

    def provider(self, **model: Any) -> dict[str, Any]:
        """`fake`, as pi and OpenClaw name one."""
        models = [{"id": "claude-fake-1", "contextWindow": 200_000, **model}]
        return {
            "baseUrl": self.fake.base_url,
            "apiKey": "dummy",
            "api": "anthropic-messages",
            "models": models,
        }

    def set_up(self) -> None:
        """Its own settings, and ours."""
        raise NotImplementedError

    def started(self, words: list[str], told: int = subprocess.PIPE, **env: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            words, cwd=self.project, env={**self.outside(), **env}, start_new_session=True,
            stdin=told, stdout=pipe, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def done(self, words: list[str], **env: str) -> str:
        """What one run printed; it must end well."""
        return self.finished(self.started(words, subprocess.PIPE, **env))

    def finished(self, process: subprocess.Popen[str]) -> str:
        """What a run prints that is told no more; it must end well."""
        with process:
            out, _ = process.communicate("" if process.stdin else None, timeout=240)
            assert process.returncode == 0, out
        return out

    def requests(self, containing: str) -> list[str]:
        """What was sent to the model, where it has these words."""
        sent = [json.dumps(each["body"], ensure_ascii=False) for each in self.fake.requests if each["body"]]
        return [each for each in sent if containing in each]


def node() -> str:
    """The Node.js that comes first on CLIENT_PATH."""
    found = shutil.which("node", path=PATH)
    if not found:
        pytest.skip("no node on CLIENT_PATH")
    return found


def ended(process: subprocess.Popen[str]) -> None:
    """Have a process end, and what it started where it does not end by itself."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)


class Lines:
    """What a process prints, read as it comes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.lines: list[str] = []
        self.process = process
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line)

    def after(self, number: int, found: Callable[[str], bool], seconds: float = 90) -> None:
        """Wait for a line behind the first so many."""
        until(lambda: any(map(found, self.lines[number:])), seconds)


class Codex(Driven):
    """Codex, by `codex exec`."""

    speaks = "openai"

    def __init__(self, root: Path, rules: list[Any], default: Any, **more: str) -> None:
        self.program = program("CODEX_BIN")
        super().__init__(root, rules, default, **more)

    def set_up(self) -> None:
        folder = self.home / ".codex"
        folder.mkdir()
        folder.joinpath("config.toml").write_text(
            'model = "gpt-5.1-codex"\nmodel_provider = "fake"\n[model_providers.fake]\nname = "fake"\n'
            f'base_url = "{self.fake.base_url}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
        )
        self.install("codex")

    def start(self, *words: str) -> subprocess.Popen[str]:
        flags = ("--skip-git-repo-check", "--json", "--dangerously-bypass-hook-trust")
        run = [self.program, "exec", *flags, *words]
        return self.started(
            run, subprocess.DEVNULL, OPENAI_API_KEY="dummy"
        )  # it reads a pipe to its end first

    def says(self, *words: str) -> str:
        """One run; what it printed."""
        return self.finished(self.start(*words))

    def rollouts(self) -> str:
        """All its transcripts."""
        return "".join(file.read_text() for file in (self.home / ".codex/sessions").rglob("*.jsonl"))


class Pi(Driven):
    """pi, a line of JSON a command."""

    def __init__(self, root: Path, rules: list[Any], default: Any, **more: str) -> None:
        self.words = [node(), program("PI_BIN"), "--model", "fake/claude-fake-1"]
        super().__init__(root, rules, default, **more)

    def outside(self) -> dict[str, str]:
        return {**super().outside(), "PI_OFFLINE": "1"}

    def set_up(self) -> None:
        folder = self.home / ".pi" / "agent"
        folder.mkdir(parents=True)
        folder.joinpath("models.json").write_text(json.dumps({"providers": {"fake": self.provider()}}))
        # Also little is worth a compaction, then.
        folder.joinpath("settings.json").write_text('{"compaction": {"keepRecentTokens": 20}}')
        self.install("pi")

    def says(self, *words: str) -> str:
        """One run with `-p`; what it printed."""
        return self.done([*self.words, "-p", *words])

    @contextlib.contextmanager
    def talk(self, *words: str) -> Iterator[Callable[..., None]]:
        """A session that goes on: what is called with a command returns once that is done."""
        with self.started([*self.words, "--mode", "rpc", *words]) as process:
            lines = Lines(process)

            def do(kind: str, **more: str) -> None:
                assert process.stdin
                number = len(lines.lines)
                process.stdin.write(json.dumps({"type": kind, **more}) + "\n")
                process.stdin.flush()
                mark = '"agent_settled"' if kind == "prompt" else '"type":"response"'
                lines.after(number, lambda line: mark in line.replace(": ", ":"))

            try:
                yield do
                assert process.stdin
                process.stdin.close()
                process.wait(30)
            finally:
                ended(process)

    def said_to_itself(self) -> str:
        """All its session files."""
        files = (self.home / ".pi" / "agent" / "sessions").rglob("*.jsonl")
        return "\n".join(file.read_text() for file in files)


class OpenClaw(Driven):
    """OpenClaw; its gateway is a process of its own. `installed` are words for `install openclaw`."""

    installed: tuple[str, ...] = ()

    def __init__(self, root: Path, rules: list[Any], default: Any, **more: str) -> None:
        self.words = [node(), program("OPENCLAW_BIN")]
        super().__init__(root, rules, default, **more)

    def set_up(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
        fake = self.provider(name="Fake", maxTokens=4096, input=["text"], reasoning=False, cost=cost)
        workspace = {"workspace": str(self.project), "model": {"primary": "fake/claude-fake-1"}}
        token = {"mode": "token", "token": "t" * 32}
        settings = {
            "agents": {"defaults": {**workspace, "skipBootstrap": True}},
            "models": {"providers": {"fake": fake}},
            "gateway": {"mode": "local", "port": port, "bind": "loopback", "auth": token},
        }
        folder = self.home / ".openclaw"
        folder.mkdir()
        folder.joinpath("openclaw.json").write_text(json.dumps(settings, indent=2))
        self.install("openclaw", *self.installed)

    @contextlib.contextmanager
    def gateway(self) -> Iterator[Lines]:
        """Its gateway, until it answers and as long as it is wanted."""
        with self.started([*self.words, "gateway", "run"]) as process:
            lines = Lines(process)
            self.printed = lines.lines
            try:
                lines.after(0, lambda line: "[gateway] ready" in line, 240)
                yield lines
            finally:
                ended(process)

    def does(self, *words: str) -> str:
        return self.done([*self.words, *words])

    def says(self, text: str, key: str = "") -> str:
        where = ["--session-key", key] if key else ["--agent", "main"]
        return self.does("agent", *where, "--message", text)


class Hermes(Driven):
    """Hermes, whose memory provider we are."""

    speaks = "openai"

    def __init__(self, root: Path, rules: list[Any], default: Any, **more: str) -> None:
        self.words = [program("HERMES_BIN")]
        super().__init__(root, rules, default, **more)

    def set_up(self) -> None:
        folder = self.home / ".hermes"
        folder.mkdir()
        folder.joinpath("config.yaml").write_text(
            "model:\n  default: gpt-5.5\n  provider: custom\n"
            f"  base_url: {self.fake.base_url}/v1\n  api_key: dummy\n"
        )
        self.install("hermes")
        self.done([*self.words, "config", "set", "memory.provider", "ua-memory"])

    def says(self, text: str, *words: str) -> str:
        return self.done([*self.words, "chat", "-Q", "-q", text, *words])

    def screen(self) -> Screen:
        """Itself on a terminal."""
        return Screen(self, [*self.words, "chat"], self.outside())
