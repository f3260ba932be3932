"""A throw-away home with a bank, in which `install` sets a real client up, against a scripted model.

Where they are says the environment: CLAUDE_BIN, CODEX_BIN and so on (`NAMED`); UA_SHARED has the scripted
models, CLIENT_PATH is a PATH with a Node.js that they like. `real_claude` and `real_clients` drive them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(os.environ.get("UA_SHARED") or Path(__file__).parents[2] / "shared") / "tools"
NAMED = ("CLAUDE_BIN", "CODEX_BIN", "PI_BIN", "OPENCLAW_BIN", "HERMES_BIN", "GEMINI_BIN", "OPENCODE_BIN")
PROGRAMS = {name: os.environ.get(name, "") for name in (*NAMED, "INSPECTOR", "CONFORMANCE")}
"""Read before a test's environment is emptied."""
PATH = os.environ.get("CLIENT_PATH") or "/usr/local/bin:/usr/bin:/bin"


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


def shown(messages: list[dict[str, Any]]) -> str:
    """What a model was given as the results of its tools, which did not fail: the text of it."""
    blocks = [each for row in messages if isinstance(row["content"], list) for each in row["content"]]
    results = [each for each in blocks if each["type"] == "tool_result"]
    assert results and not any(each.get("is_error") for each in results)
    contents = [each["content"] for each in results]
    texts = [[each] if isinstance(each, str) else [part["text"] for part in each] for each in contents]
    return "\n".join(part for each in texts for part in each)


class Place:
    """A home, a project, a bank, and our command line with the hooks' environment. Two clients may use it."""

    def __init__(self, root: Path, daemon: str = "off", **settings: str) -> None:
        self.home, self.project, self.bank = root / "home", root / "project", root / "bank"
        for folder in (self.home / "run", self.project):
            folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        own = {"UA_MEMORY_DAEMON": daemon, "XDG_RUNTIME_DIR": str(self.home / "run"), **settings}
        own |= {"PYTHONPATH": path} if (path := os.environ.get("PYTHONPATH")) else {}
        self.own = own
        python = [sys.executable, "-P", "-m", "ua_memory"]
        self.ours = [*python, "--bank", str(self.bank)]
        self.bin = self.home / "bin"
        if self.bank.exists():  # another client has made it
            return
        self._put_command(python)
        subprocess.run([*python, "init", str(self.bank)], env=self.environment(), check=True)
        (self.bank / "MEMORY.md").write_text("# Memory\n\n## Me\n\nShort answers, says Noor.\n")
        self.run("insert", "Alice moved the API to Fly.io because Heroku doubled its price")
        self.run("search", "all is indexed")

    def outside(self) -> dict[str, str]:
        """The environment that a client runs in: what is set for us alone stands in our command."""
        found = {"PATH": f"{self.bin}:{PATH}", "HOME": str(self.home), "TERM": "dumb", "LANG": "C.UTF-8"}
        return {**found, "XDG_RUNTIME_DIR": self.own["XDG_RUNTIME_DIR"]}

    def environment(self) -> dict[str, str]:
        return {**self.outside(), **self.own}

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [*self.ours, *words], env=self.environment(), capture_output=True, text=True, check=True
        )
        return done.stdout

    def _put_command(self, python: list[str]) -> None:
        """`ua-memory` on the PATH, as an installation has it, with the bank; a model's key is not for it."""
        self.bin.mkdir()
        unset = [word for key in ("API_KEY", "BASE_URL") for word in ("-u", f"ANTHROPIC_{key}")]
        own = [f"{name}={value}" for name, value in {**self.own, "UA_MEMORY_BANK": str(self.bank)}.items()]
        command = self.bin / "ua-memory"
        command.write_text(f'#!/bin/sh\nexec {shlex.join(["env", *unset, *own, *python])} "$@"\n')
        command.chmod(0o755)

    def install(self, *words: str) -> str:
        """`ua-memory install`, as its user calls it; what it printed."""
        done = self._installs(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def checks(self, *words: str) -> str:
        """What `install --check` printed, which is not content."""
        done = self._installs(*words, "--check")
        assert done.returncode == 12
        return done.stdout

    def _installs(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["ua-memory", "install", *words], env=self.environment(), cwd=self.project,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

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


class Screen:
    """A client on a terminal of tmux, as a person has it before them."""

    def __init__(self, place: Place, words: list[str], env: dict[str, str], ready: str = "❯") -> None:
        if not shutil.which("tmux"):
            pytest.skip("no tmux")
        self.place, self.words, self.env, self.ready = place, words, env, ready
        self.tmux = ["tmux", "-S", str(place.home / "run" / "tmux"), "-f", "/dev/null"]

    def __enter__(self) -> Screen:
        start = ["new-session", "-d", "-s", "it", "-x", "150", "-y", "50", "-c", str(self.place.project)]
        env = {**self.env, "TERM": "xterm-256color"}
        subprocess.run([*self.tmux, *start, shlex.join(self.words)], env=env, check=True)
        self.shows(self.ready)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind:
            print(self.text())
        subprocess.run([*self.tmux, "kill-server"], capture_output=True, check=False)

    def text(self) -> str:
        done = subprocess.run(
            [*self.tmux, "capture-pane", "-p", "-t", "it"], capture_output=True, text=True, check=False
        )
        return done.stdout

    def types(self, text: str) -> None:
        """Type a line, and Enter once it stands on the screen."""
        subprocess.run([*self.tmux, "send-keys", "-t", "it", "-l", text], check=True)
        self.shows(text[-20:])
        time.sleep(0.5)  # a paste takes an Enter that comes along as a new line
        subprocess.run([*self.tmux, "send-keys", "-t", "it", "Enter"], check=True)

    def shows(self, text: str) -> None:
        until(lambda: text in self.text().replace("\n", " "), 60)

    def ends(self) -> None:
        done = [*self.tmux, "has-session", "-t", "it"]
        until(lambda: subprocess.run(done, capture_output=True, check=False).returncode != 0)
