"""The budget of a block: never over, greedy in the order of the hits, the same bytes for the same inputs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from terminal import MORNING, Shell, new_shell

from ua_memory.config import BUDGETS
from ua_memory.errors import Usage
from ua_memory.recall.readonly import PRESETS, budgeted_block, preset
from ua_memory.text import noise as fence
from ua_memory.text import tokens

ROWS = st.lists(st.tuples(st.text(), st.text(max_size=9)).map(lambda two: fence.row("2026-11-21", *two)))


@given(ROWS, st.integers(1, 300))
@example([fence.row("", "\n]\r\n " * 40, " \t ") for _ in range(3)], 90)
@example([fence.row("", "的" * 90, "a#L1"), fence.row("", "b", "a#L2")], 80)
@example(["- " + "  " * 5000 + "x"], 10_000)
def test_never_over_and_greedy(lines: list[str], most: int) -> None:
    text, left = budgeted_block("head", lines, most)
    assert tokens.count(text + "\n") <= most or not text
    kept = text.split("\n")[2:-1]
    clean = [fence.sanitize(line) for line in lines]
    assert sorted(kept + left) == sorted(clean)
    # Greedy: walked in order, each line is in if and only if it still fitted.
    here: list[str] = []
    for line in clean:
        fits = tokens.count(fence.fenced("search", "\n".join(["head", *here, line])) + "\n") <= most
        here += [line] if fits else []
    assert kept == here
    assert (text, left) == budgeted_block("head", lines, most)


def test_presets_grow_and_are_those_of_the_settings() -> None:
    sizes = [(one.depth, one.tokens) for one in PRESETS.values()]
    assert sizes == sorted(sizes) and tuple(PRESETS) == BUDGETS
    assert preset("low", 70).tokens == 70 and preset("low", 70).depth == PRESETS["low"].depth
    assert preset() == PRESETS["mid"]
    with pytest.raises(Usage):
        preset("huge")


_MADE: list[Path] = []
"""The home of the bank below, once a test has made it."""


@pytest.fixture
def shell(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    if not _MADE:
        _MADE.append(_indexed(tmp_path_factory.mktemp("indexed")).home)
    home = shutil.copytree(_MADE[0], tmp_path / "home").resolve()
    return Shell(home, home / "bank", time=MORNING + timedelta(minutes=2))


def _indexed(folder: Path) -> Shell:
    shell = new_shell(folder)
    said = (f"- The harbour office opened gate {n} after the storm, said witness {n}" for n in range(150))
    shell.write("memory/2026-11-20.md", "\n".join(said) + "\n")
    shell.ok("index", "rebuild")  # whatever time that takes; a search would say what it had to leave
    return shell


def test_recall_keeps_to_it(shell: Shell) -> None:
    def size(*argv: str) -> int:
        return tokens.count(shell.ok("recall", "who opened the harbour gate", *argv).out)

    low, mid, high = (size("--budget", name) for name in BUDGETS)
    assert 500 < low <= 600 < 1900 < mid <= 2000 < high <= 6000
    assert 60 < size("--max-tokens", "100") <= 100
    assert 400 < size("--budget", "high", "--max-tokens", "500") <= 500
    few = shell.ok("recall", "who opened the harbour gate", "--max-tokens", "20")
    assert few.out == "" and "nothing fits in 20 tokens" in few.err
    assert len(shell.ok("recall", "gate", "--budget", "mid", "--limit", "2").out.splitlines()) == 5
    assert shell("recall", "gate", "--budget", "huge").code == 2
    shell.write(
        "ua-memory.toml", (shell.cwd / "ua-memory.toml").read_text() + "\n[recall]\nmax_tokens = 300\n"
    )
    assert 200 < size() <= 300 and size("--max-tokens", "150") <= 150


def test_by_itself_it_fits_9500_characters_and_every_line_says_when_and_where(shell: Shell) -> None:
    shell.write("memory/2026-11-19.md", "\n".join(f"- gate {n} " + "lock " * 60 for n in range(40)) + "\n")
    shown = shell.ok("recall", "gate lock", "--limit", "40")
    assert 8000 < len(shown.out.rstrip()) <= 9500 and "left out: no room in 9,500 characters" in shown.err
    begin, head, *rows, end = shown.out.splitlines()
    assert (begin, end) == ('<ua-memory-recall kind="search">', "</ua-memory-recall>") and "data" in head
    assert all(re.match(r"- 2026-11-(\d\d): .* \[memory/2026-11-\1\.md#L\d", row) for row in rows)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_same_bytes_in_every_process(shell: Shell, seed: str) -> None:
    """Whatever the seed of Python's hashes."""
    argv = ("recall", "harbour gate storm witness", "--budget", "low")
    ask = [sys.executable, "-m", "ua_memory", "--bank", str(shell.cwd), *argv]
    there = {**os.environ, "HOME": str(shell.home), "UA_MEMORY_DAEMON": "off"}
    first = shell.ok(*argv).out
    assert first and first == shell.ok(*argv).out
    done = subprocess.run(ask, env={**there, "PYTHONHASHSEED": seed}, capture_output=True, check=True)
    assert done.stdout.decode() == first
