"""A handful of points each: killed, without power, with a disk that refuses; `make crash` takes them all."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from kill_points import WRITES, fail_at, kill_at, prepared
from kill_scenarios import WORK
from powercut import Disk

AT = {"flush": 30, "queue drain": 40, "consolidate": 30}
"""Where the first point is: in the writing, for what has much to read before."""


ONCE = {
    "purge": 90,
    "sync after a purge here": 120,
    "sync after a purge there": 130,
    "import": 25,
    "import of an archive": 40,
}
"""What takes seconds is killed at one point here, in the midst of what it changes."""
ELSEWHERE = {"sync"}
"""Killed in `test_sync_machines`."""


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ONCE)
def test_killed_in_the_midst_of_what_takes_long(name: str, tmp_path: Path) -> None:
    kill_at(name, prepared(name, tmp_path / "bank"), tmp_path / "killed", ONCE[name], "insert")


@pytest.mark.few(2)
@pytest.mark.parametrize("name", [name for name in WORK if name not in {*ONCE, *ELSEWHERE}])
def test_a_sample_of_kills_cuts_and_refusals(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    bank, first = prepared(name, tmp_path / "bank"), AT.get(name, 5)
    kill_at(name, bank, tmp_path / "killed", first, "insert")
    kill_at(name, bank, tmp_path / "later", first + 13, "adopt")
    kill_at(name, bank, tmp_path / "cut", first + 9, "adopt", power=True)
    kill_at(name, bank, tmp_path / "after", 10**6, "adopt", power=True)
    fail_at(name, bank, tmp_path / "refused", first + 4, errno.ENOSPC)
    record_property("figure", f"{name}: 2 kills, 2 power cuts, 1 full disk, nothing lost")


@pytest.mark.few(3)
@pytest.mark.parametrize("name", WRITES)
def test_a_power_cut_after_the_last_step(name: str, tmp_path: Path) -> None:
    """What was acknowledged is durable, and not only written."""
    kill_at(name, prepared(name, tmp_path / "bank"), tmp_path / "cut", 10**6, "insert", power=True)


def test_a_power_cut_spares_what_git_writes_in_the_place_of_a_deleted_file(tmp_path: Path) -> None:
    disk, ours = Disk(tmp_path), tmp_path / "ours"
    for number in range(9):  # file systems give a deleted file's inode to the next one
        os.close(disk.does("open", os.open, (ours, os.O_WRONLY | os.O_CREAT), {}))
        ours.unlink()  # as `shutil.rmtree` does it, of which the disk is not told
        (tmp_path / f"ref-{number}").write_text("whole")
    disk.cut(torn=True)
    assert {file.read_text() for file in tmp_path.glob("ref-*")} == {"whole"}
