"""A warm daemon: whole processes of `search`, `hook` and `insert` against their floors, its memory at rest.

The facts are sentences of 6 to 16 made-up words, common and rare ones as in a language; a query has five.

Needs an installation that is not editable, since that is what users have; `make bench` makes one.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from figures import Figure, console_script, main, paired, process, seconds
from invented import committed, environment, fill, sentence

from ua_memory.memory import Memory

SCRIPT = """\
#!/bin/sh
echo "- a line that somebody says, number $1" >> memory/2026-11-21.md
git -c core.fsync=all add memory/2026-11-21.md
git -c core.fsync=all commit -q -m "add a line"
"""
IDLE_SECONDS = 30


def measure(args: Sequence[str]) -> Iterator[Figure]:
    """[RUNS [FACTS]]: how many pairs (40) in a bank of how many facts (10000)."""
    runs, facts = (*(int(arg) for arg in args), *(40, 10_000)[len(args) :])
    script, python = console_script()
    with tempfile.TemporaryDirectory() as folder:
        env = environment(folder)
        bank = Path(folder) / "bank"
        process(script, "init", str(bank), env=env)()
        fill(bank, facts)
        with Memory.open(bank) as memory:
            committed(memory)  # else that comes half a minute later, and two searches wait for it
        at = (script, "--bank", str(bank))
        # All of it: a search would stop to embed after `search.seconds`, and the first ones measured go on.
        process(*at, "index", "rebuild", env={**env, "UA_MEMORY_DAEMON": "off"})()
        process(*at, "daemon", "start", env=env)()
        try:
            yield from _searches(at, python, env, runs)
            yield _hooks(at, python, env, runs)
            yield _inserts(at, Path(folder) / "plain", env, runs)
            yield from at_rest(at, bank, env, facts)
        finally:
            process(*at, "daemon", "stop", env=env)()


def _searches(at: tuple[str, ...], python: str, env: dict[str, str], runs: int) -> Iterator[Figure]:
    asked = [process(*at, "search", "--json", sentence(5), env=env) for _ in range(runs + 1)]
    floor = process(python, "-c", "pass", env=env)
    asked[-1](), floor()
    pairs = [(seconds(ask), seconds(floor)) for ask in asked[:-1]]
    ratios = sorted(ours / theirs for ours, theirs in pairs)
    ours, theirs = sorted(o for o, _ in pairs), statistics.median(t for _, t in pairs)
    said = f"{statistics.median(ours) * 1000:.1f} ms against {theirs * 1000:.1f} ms"
    yield Figure(
        "warm search, p50 / python -c pass", statistics.median(ratios), 2.5, said, ratios[0], ratios[-1]
    )
    late = ours[int(len(ours) * 0.95)]
    yield Figure("warm search, p95 / python -c pass", late / theirs, 4, f"{late * 1000:.1f} ms")


def _hooks(at: tuple[str, ...], python: str, env: dict[str, str], runs: int) -> Figure:
    """A prompt event as Claude Code hands it over."""
    prompt = {"session_id": "8f4a", "cwd": "/", "hook_event_name": "UserPromptSubmit"}
    events = iter([json.dumps({**prompt, "prompt": sentence(8)}) for _ in range(runs + 1)])

    def hook() -> None:
        process(*at, "hook", env=env, stdin=next(events))()

    floor = process(python, "-c", "pass", env=env)
    return paired("warm hook on a prompt / python -c pass", hook, floor, bar=3, runs=runs)


def _inserts(at: tuple[str, ...], plain: Path, env: dict[str, str], runs: int) -> Figure:
    (plain / "memory").mkdir(parents=True)
    process("git", "init", "-q", env=env, cwd=plain)()
    (plain / "add.sh").write_text(SCRIPT)
    number = iter(range(10**6))

    def insert() -> None:
        process(*at, "insert", f"a line that somebody says, number {next(number)}", env=env)()

    def append() -> None:
        process("sh", "add.sh", str(next(number)), env=env, cwd=plain)()

    return paired("warm insert / shell script, core.fsync=all", insert, append, bar=6, runs=max(runs // 2, 5))


def at_rest(
    at: tuple[str, ...], bank: Path, env: dict[str, str], facts: int, most: float = 400
) -> Iterator[Figure]:
    """Memory and processor time of the daemon when nobody asks, first warm, then with all let go."""
    yield Figure("daemon's memory in MB, warm", megabytes(at, env), most, f"{facts:,} facts")
    daemon = pid(at, env)
    time.sleep(5)  # what it does after a command is not idling
    before, began = busy(daemon), time.monotonic()
    time.sleep(IDLE_SECONDS)
    share = 100 * (busy(daemon) - before) / (time.monotonic() - began)
    yield Figure("idle daemon, % of a processor", share, 0.1, f"over {IDLE_SECONDS} s")
    with (bank / "ua-memory.toml").open("a", encoding="utf-8") as settings:
        settings.write("\n[daemon]\nwarm_minutes = 0\n")
    process(*at, "search", "the last", env=env)()
    time.sleep(20)  # it looks every 15 s whether there is something to let go of
    yield Figure("daemon's memory in MB, all let go", megabytes(at, env), 150, f"{facts:,} facts")


def megabytes(at: tuple[str, ...], env: dict[str, str]) -> float:
    """What the daemon of a bank holds of the machine's memory."""
    ps = ["ps", "-o", "rss=", "-p", str(pid(at, env))]
    return int(subprocess.run(ps, capture_output=True, text=True, check=True).stdout) / 1024


def pid(at: tuple[str, ...], env: dict[str, str]) -> int:
    """The process of a bank's daemon."""
    said = subprocess.run([*at, "daemon", "status", "--json"], env=env, capture_output=True, check=True)
    return int(json.loads(said.stdout)["pid"])


def busy(process: int) -> float:
    """Seconds of processor time so far, by the clock that Linux has for each process."""
    if not sys.platform.startswith("linux"):
        sys.exit("the idle figure needs Linux")
    return time.clock_gettime(~process << 3 | 2)


if __name__ == "__main__":
    main(measure)
