"""A write killed before every one of its steps (I1, I2, I5); `make crash` runs all of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from killing import SCENARIOS, kill_at, prepared, steps_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("following", ["insert", "adopt"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_killed_before_every_step(name: str, following: str, tmp_path: Path) -> None:
    bank = prepared(name, tmp_path / "bank")
    steps = steps_of(name, bank, tmp_path / "counted")
    assert steps > 10
    for stop in range(steps):
        kill_at(name, bank, tmp_path / str(stop), stop, following)
    print(f"{name}, then {following}: killed at {steps} points, nothing lost")


@pytest.mark.parametrize("name", SCENARIOS)
def test_killed_and_killed_again_while_it_recovers(name: str, tmp_path: Path) -> None:
    bank = prepared(name, tmp_path / "bank")
    steps, tried = steps_of(name, bank, tmp_path / "counted"), 0
    for stop in range(3, steps, 2):
        for again in range(1, 22, 3):
            kill_at(name, bank, tmp_path / f"{stop}-{again}", stop, "insert", again)
            tried += 1
    print(f"{name}: killed twice in {tried} ways, nothing lost")
