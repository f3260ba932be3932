"""A shell to type commands into: they run in this process, with the test's streams, folder and clock."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from banks import founded

from ua_memory.caller import Call
from ua_memory.cli.app import run

MORNING = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
EVERY = frozenset({"stdin", "stdout", "stderr"})


@dataclass(frozen=True)
class Done:
    """What a command did: its exit code, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Shell:
    """Type commands: `shell("search", "heroku")`. Each takes a minute of the shell's own clock."""

    home: Path
    cwd: Path
    env: dict[str, str] = field(default_factory=dict)
    terminals: frozenset[str] = frozenset()
    width: int = 80
    time: datetime = MORNING

    def __call__(self, *argv: str, stdin: str | bytes = b"", **env: str) -> Done:
        self.time += timedelta(minutes=1)
        out, err = io.StringIO(), io.StringIO()
        call = Call(
            argv=argv,
            cwd=self.cwd,
            home=self.home,
            env={"TERM": "xterm-256color", **self.env, **env},
            stdin=io.BytesIO(stdin.encode() if isinstance(stdin, str) else stdin),
            stdout=out,
            stderr=err,
            terminals=self.terminals,
            width=self.width,
            now=lambda: self.time,
        )
        return Done(run(call), out.getvalue(), err.getvalue())

    def ok(self, *argv: str, **more: Any) -> Done:
        """The same, for what must succeed."""
        done = self(*argv, **more)
        assert done.code == 0, done.err or done.out
        return done

    def write(self, path: str, text: str) -> None:
        """Save a file as an editor would."""
        file = self.cwd / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def new_shell(
    tmp_path: Path, how: str = "shell", fill: Callable[[Shell], object] = lambda shell: None, **env: str
) -> Shell:
    """A shell in a fresh bank, `tmp_path/home/bank`, where `fill` was done already: once a process for each
    name `how`, and then copied."""
    home = tmp_path / "home"
    bank = home / "bank"
    bank.mkdir(parents=True)
    shell = Shell(home.resolve(), bank.resolve(), dict(env))

    def init(root: Path) -> None:
        first = Shell(home.resolve(), root, dict(env))
        first.ok("init", str(root))
        fill(first)
        _AT[how] = first.time

    founded(bank, how, init)
    shell.time = _AT[how]
    return shell


_AT: dict[str, datetime] = {}
"""When a shell was ready, by the name of what was done in it."""
