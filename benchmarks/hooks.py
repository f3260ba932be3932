"""What an agent's client waits for: whole processes of `hook`, event by event, and the first list of MCP
tools; with a warm daemon, and without one.

The promises are in milliseconds: an end leaves within 300, and a start or a prompt that needs only files and
words is answered within 100, with no daemon either, on a machine that starts Python in 25.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from figures import Figure, console_script, main, paired, process
from invented import environment, fill, sentence

EVENTS = (
    ("start", "SessionStart", 3, 4),
    ("prompt", "UserPromptSubmit", 3, 4),
    ("stop", "Stop", 4, 25),
    ("end", "SessionEnd", 3, 3),
)
"""What happens, by Claude Code's name, and the bars: with a daemon, and without."""
TOOLS = 3
SETTLED = 60.0
"""Seconds in which what an end has handed over is flushed."""


def measure(args: Sequence[str]) -> Iterator[Figure]:
    """[RUNS [FACTS]]: how many pairs (15) in a bank of how many facts (1000)."""
    runs, facts = (*(int(arg) for arg in args), *(15, 1000)[len(args) :])
    script, python = console_script()
    with tempfile.TemporaryDirectory() as folder:
        bank = Path(folder) / "bank"
        at = (script, "--bank", str(bank))
        alone, warm = environment(folder, "off"), environment(folder)
        process(script, "init", str(bank), env=alone)()
        fill(bank, facts)
        time.sleep(3)  # what was changed just now may change again unseen, and is proven by nothing
        process(*at, "index", "rebuild", env=alone)()
        process(*at, "hook", env=alone, stdin=_event("SessionStart", "first"))()
        yield from _doors(at, python, bank, alone, runs, warm=False)
        process(*at, "daemon", "start", env=warm)()
        try:
            process(*at, "search", "memory", env=warm)()
            yield from _doors(at, python, bank, warm, runs, warm=True)
        finally:
            process(*at, "daemon", "stop", env=warm)()


def _doors(
    at: tuple[str, ...], python: str, bank: Path, env: dict[str, str], runs: int, *, warm: bool
) -> Iterator[Figure]:
    floor = process(python, "-c", "pass", env=env)
    how = "warm" if warm else "no daemon"
    for what, name, *bars in EVENTS:
        number = itertools.count()

        def happens(name: str = name, number: Iterator[int] = number) -> None:
            process(*at, "hook", env=env, stdin=_event(name, f"{how} {next(number)}"))()

        yield paired(
            f"{what}, {how} / python -c pass", happens, floor, bar=bars[not warm], runs=runs,
            between=_settled(bank),
        )  # fmt: skip
    yield paired(f"list of tools, {how} / python -c pass", _listed(at, env), floor, bar=TOOLS, runs=runs)


def _event(name: str, session: str) -> str:
    told = {"UserPromptSubmit": {"prompt": sentence(8)}, "Stop": {"last_assistant_message": sentence(12)}}
    return json.dumps({"session_id": session, "cwd": "/", "hook_event_name": name, **told.get(name, {})})


def _settled(bank: Path) -> Callable[[], None]:
    """Waits until the flush of what was handed over has ended: it would be measured along."""
    log = bank / ".git" / "ua-memory" / "local" / "flush.log"

    def wait() -> None:
        until = time.monotonic() + SETTLED
        while time.monotonic() < until:
            named = ("ps", "-A", "-o", "args=")
            rows = subprocess.run(named, capture_output=True, text=True, check=True).stdout.splitlines()
            if not any(str(bank) in row and " flush" in row for row in rows):
                return
            time.sleep(0.05)
        raise SystemExit(f"a flush does not end: {log.read_text() if log.exists() else ''}")

    return wait


def _listed(at: tuple[str, ...], env: dict[str, str]) -> Callable[[], object]:
    """From the start of the server to the answer to `tools/list`, and its end."""
    told = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "b", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": told},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    return process(*at, "mcp", env=env, stdin="".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main(measure)
