"""Replacing one file while somebody else may be saving it (I4, W4, W5)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest
from store_banks import finish, python

from ua_memory.errors import CannotWrite, TooLarge
from ua_memory.store import files as reading
from ua_memory.store import swap
from ua_memory.store.files import is_half_written, is_unused, read


def put(file: Path, data: bytes | None) -> bytes | None:
    out = file.with_name(".ua-out-key.0-x")
    if data is not None:
        swap.stage(file, data, out)
    swap.swap_in(file, out)
    swap.sync_swapped(file.parent)
    return swap.swapped_out(file, out)


@pytest.fixture(params=["exchange", "without"])
def file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "without":
        monkeypatch.setattr(swap, "exchange_call", lambda: None)
    return tmp_path / "memory" / "a.md"


@contextmanager
def held_open(file: Path, how: str) -> Iterator[None]:
    """Another process that has the file open."""
    child = python(
        "import sys, os; f = open(sys.argv[1], sys.argv[2]); print('open', flush=True); sys.stdin.read()",
        file,
        how,
    )
    assert child.stdout and child.stdout.readline() == "open\n"
    try:
        yield
    finally:
        finish([child])


def test_a_new_file_and_its_folder_are_made(file: Path) -> None:
    assert put(file, b"new\n") is None
    assert file.read_bytes() == b"new\n"


def test_what_was_there_comes_out(file: Path) -> None:
    put(file, b"old\n")
    file.with_name(".ua-out-key.0-x").unlink()
    assert put(file, b"new\n") == b"old\n"
    assert file.read_bytes() == b"new\n"
    assert [p.name for p in file.parent.iterdir()] != []


def test_a_file_goes(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"old\n")
    assert put(file, None) == b"old\n"
    assert not file.exists()
    file.with_name(".ua-out-key.0-x").unlink()
    assert put(file, None) is None


def test_mode_is_kept_and_a_new_file_obeys_the_umask(file: Path) -> None:
    before = os.umask(0o027)
    try:
        put(file, b"1")
        assert file.stat().st_mode & 0o777 == 0o640
        file.with_name(".ua-out-key.0-x").unlink()
        file.chmod(0o600)
        put(file, b"2")
        assert file.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_root_leaves_a_file_to_its_owner(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"1")
    os.chown(file, 1234, 1234)
    put(file, b"2")
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 1234)


def test_a_save_between_laying_and_entering_comes_out(file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"old\n")
    out = file.with_name(".ua-out-key.0-x")
    swap.stage(file, b"ours\n", out)
    fresh = file.with_name("temp")
    fresh.write_bytes(b"theirs\n")
    fresh.replace(file)
    swap.swap_in(file, out)
    assert swap.swapped_out(file, out) == b"theirs\n"
    assert file.read_bytes() == b"ours\n"


def test_without_exchange_a_save_in_the_gap_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swap, "exchange_call", lambda: None)
    file, out = tmp_path / "a.md", tmp_path / ".ua-out-key.0-x"
    file.write_bytes(b"old\n")
    swap.stage(file, b"ours\n", out)
    link, calls = os.link, []

    def saved_just_before(one: Path, other: Path) -> None:
        calls.append(one)
        if len(calls) == 2:  # the first is the attempt to link a new file, this one is in the gap
            file.write_bytes(b"theirs\n")
        link(one, other)

    monkeypatch.setattr(os, "link", saved_just_before)
    swap.swap_in(file, out)
    assert file.read_bytes() == b"ours\n"
    assert sorted(p.read_bytes() for p in tmp_path.iterdir()) == [b"old\n", b"ours\n", b"theirs\n"]
    assert swap.swapped_out(file, out) == b"theirs\n"


def test_a_name_as_long_as_names_get(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 252 + ".md")
    put(file, b"1")
    assert file.read_bytes() == b"1"


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.md").mkdir()
    with pytest.raises(CannotWrite, match="folder"):
        put(tmp_path / "a.md", b"1")
    with pytest.raises(CannotWrite):
        read(tmp_path / "a.md")


@pytest.mark.skipif(not hasattr(reading.fcntl, "F_SETLEASE"), reason="no leases here")
def test_who_has_a_file_open_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_bytes(b"1")
    assert not is_half_written(file, b"1")
    assert is_unused(file)
    with held_open(file, "r+"):
        assert is_half_written(file, b"1")
        assert not is_unused(file)
    with held_open(file, "r"):
        assert not is_half_written(file, b"1")
        assert not is_unused(file)


@pytest.mark.skipif(not hasattr(reading.fcntl, "F_SETLEASE"), reason="no leases here")
@pytest.mark.parametrize("seconds", [0.15, 1])
def test_a_reader_waits_for_who_truncates_and_writes(tmp_path: Path, seconds: float) -> None:
    file = tmp_path / "a.md"
    file.write_bytes(b"old\n")
    child = python(
        """
        import sys, time
        with open(sys.argv[1], "w") as f:
            print("open", flush=True)
            time.sleep(float(sys.argv[2]))
            f.write("whole\\n")
        """,
        file,
        seconds,
    )
    assert child.stdout and child.stdout.readline() == "open\n"
    assert read(file) == b"whole\n"
    finish([child])


@pytest.mark.skipif(not hasattr(reading.fcntl, "F_SETLEASE"), reason="no leases here")
def test_who_truncates_a_file_that_is_being_read_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor opens it just after it was seen to be at rest: what is read is the old file, whole."""
    file, whole = tmp_path / "a.md", reading._read_all
    file.write_bytes(b"old\n")
    children = []

    def slowly(handle: BinaryIO) -> bytes:
        write = "import sys; print('on its way', flush=True); open(sys.argv[1], 'w').write('new')"
        children.append(child := python(write, file))
        assert child.stdout and child.stdout.readline()
        time.sleep(0.1)
        return whole(handle)

    with monkeypatch.context() as patch:
        patch.setattr(reading, "_read_all", slowly)
        assert read(file) == b"old\n"
    finish(children)
    assert read(file) == b"new"


def test_without_leases_the_last_change_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(reading.fcntl, "F_SETLEASE", raising=False)
    file = tmp_path / "a.md"
    file.write_bytes(b"1")
    assert not is_unused(file)
    os.utime(file, (1, 1))
    assert is_unused(file)
    assert read(file) == b"1"


def test_an_expected_file_is_waited_for(tmp_path: Path) -> None:
    child = python("import sys, time; time.sleep(0.02); open(sys.argv[1], 'w').write('x')", tmp_path / "a.md")
    assert read(tmp_path / "a.md") is None
    finish([child])
    (tmp_path / "a.md").unlink()
    assert read(tmp_path / "a.md", expected=True) is None


def test_a_file_over_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_FILE", 10)
    (tmp_path / "a.md").write_bytes(b"x" * 10)
    assert read(tmp_path / "a.md") == b"x" * 10
    (tmp_path / "a.md").write_bytes(b"x" * 11)
    with pytest.raises(TooLarge):
        read(tmp_path / "a.md")
