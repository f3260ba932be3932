"""A write killed before every one of its steps (I1, I2, I5); `make crash` runs all of it."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from kill_points import SCENARIOS, fail_at, kill_at, prepared, steps_of
from kill_scenarios import WORK

pytestmark = pytest.mark.slow
CODES = (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.EMFILE, errno.EDQUOT)
Record = Callable[[str, object], None]


@pytest.mark.parametrize("following", ["insert", "adopt"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_killed_before_every_step(name: str, following: str, tmp_path: Path, record_property: Record) -> None:
    bank = prepared(name, tmp_path / "bank")
    steps = steps_of(name, bank, tmp_path / "counted")
    assert steps > 10
    for stop in range(steps):
        kill_at(name, bank, tmp_path / str(stop), stop, following)
    record_property("figure", f"{name}, then {following}: killed at {steps} points, nothing lost")


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_power_goes_before_every_step_and_after_the_last(
    name: str, tmp_path: Path, record_property: Record
) -> None:
    """What was not fsynced is gone: names come back, bytes are missing, or half of them have arrived."""
    bank = prepared(name, tmp_path / "bank")
    steps = steps_of(name, bank, tmp_path / "counted")
    for stop in range(steps + 1):
        kill_at(name, bank, tmp_path / str(stop), stop, "adopt", power=True)
    record_property("figure", f"{name}: power cut at {steps + 1} points, nothing acknowledged lost")


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_step_may_fail(name: str, tmp_path: Path, record_property: Record) -> None:
    bank = prepared(name, tmp_path / "bank")
    steps, told = steps_of(name, bank, tmp_path / "counted"), 0
    for stop in range(steps):
        told += fail_at(name, bank, tmp_path / str(stop), stop, CODES[stop % len(CODES)])
    record_property(
        "figure", f"{name}: {steps} steps refused by the system, {told} told, the rest done all the same"
    )


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in WORK])
def test_killed_and_killed_again_while_it_recovers(
    name: str, tmp_path: Path, record_property: Record
) -> None:
    bank = prepared(name, tmp_path / "bank")
    steps, tried = steps_of(name, bank, tmp_path / "counted"), 0
    for stop in range(3, steps, 2):
        for again in range(1, 22, 3):
            kill_at(name, bank, tmp_path / f"{stop}-{again}", stop, "insert", again)
            tried += 1
    record_property("figure", f"{name}: killed twice in {tried} ways, nothing lost")
