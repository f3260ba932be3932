"""Many clients at one daemon: nothing is lost, nothing fails, and each finds what it has just written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOAD = Path(__file__).resolve().parents[1] / "benchmarks" / "load.py"


@pytest.mark.slow
@pytest.mark.skipif(not LOAD.exists(), reason="the benchmarks are not here")
def test_eight_clients_at_once_lose_nothing() -> None:
    done = subprocess.run(
        [sys.executable, str(LOAD), "5", "8", "200"], capture_output=True, text=True, timeout=280
    )
    figures = [line for line in done.stdout.splitlines() if " load: " in line]
    assert done.returncode == 0, done.stderr
    assert len(figures) == 3 and all(line.startswith("ok ") for line in figures), done.stdout
    assert " 0 inserts" not in done.stdout, done.stdout
