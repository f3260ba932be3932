"""The guards around every test hold, in this process and in those that tests start."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import fork_server
import pytest
from guards import REACHED, ROOM, NetworkReached, is_local, memory_folder


def test_home_is_a_folder_of_the_test(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert Path.home().is_relative_to(tmp_path_factory.getbasetemp())
    told = subprocess.run(
        [sys.executable, "-c", "import pathlib; print(pathlib.Path.home())"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == str(Path.home())


def test_no_setting_leaks_in() -> None:
    assert [name for name in os.environ if name.startswith(("UA_", "ANTHROPIC_"))] == ["UA_MEMORY_DAEMON"]
    assert os.environ["UA_MEMORY_DAEMON"] == "off"


def test_git_has_neither_identity_nor_settings(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    listed = subprocess.run(
        ["git", "config", "--list", "--show-scope"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    rows = [line.split("\t") for line in listed.stdout.splitlines()]
    assert [row for row in rows if row[0] != "local"] == [["system", "user.useconfigonly=true"]]
    guessed = subprocess.run(
        ["git", "var", "GIT_AUTHOR_IDENT"], cwd=tmp_path, capture_output=True, check=False
    )
    assert guessed.returncode, "with a mail transport's /etc/mailname git would take the account's name"


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "example.org", b"example.org", "0.0.0.0"])
def test_the_outside_is_not_local(address: str | bytes) -> None:
    assert not is_local(address)


def test_connecting_to_the_outside_raises() -> None:
    with socket.socket() as sock, pytest.raises(NetworkReached):
        sock.connect(("192.0.2.1", 80))
    with pytest.raises(NetworkReached):
        socket.create_connection(("example.org", 80), timeout=1)
    with socket.socket(type=socket.SOCK_DGRAM) as sock, pytest.raises(NetworkReached):
        sock.sendto(b"x", ("192.0.2.1", 53))
    assert len(REACHED) == 3  # also where somebody has swallowed the exception
    REACHED.clear()


def test_loopback_works() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(("localhost", server.getsockname()[1]), timeout=5) as client:
            client.sendall(b"hello")
            peer, _ = server.accept()
        with peer:
            assert peer.recv(5) == b"hello"


def test_memory_is_for_tests_only_where_it_has_room(tmp_path: Path) -> None:
    assert memory_folder(str(tmp_path), room=0) in (str(tmp_path), None)  # None where it may run no program
    assert memory_folder(str(tmp_path), room=1 << 70) is None
    assert memory_folder(str(tmp_path / "none"), room=0) is None
    assert ROOM >= 1 << 30


def test_what_was_forked_off_ends_with_who_asked_for_it() -> None:
    """Also what a test has stopped (SIGSTOP), whose run was killed."""
    asks, theirs = socket.socketpair()
    server = os.fork()
    if not server:
        asks.close()
        try:
            fork_server.serve(theirs)
        finally:
            os._exit(0)
    theirs.close()
    told = {"argv": [], "cwd": "/", "env": {**os.environ}, "code": "import time; time.sleep(600)"}
    child = fork_server.begin(asks, [0, 1, 2], told)
    try:
        os.kill(child.pid, signal.SIGSTOP)
        asks.close()
        assert os.waitpid(server, 0)[1] == 0
        with pytest.raises(ProcessLookupError):
            os.kill(child.pid, 0)
    finally:
        with child.answers, child.lines, contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)


def test_every_long_test_is_there() -> None:
    listed = Path(__file__).with_name("long.txt")
    names = [line.split("::") for line in listed.read_text().splitlines() if not line.startswith("#")]
    assert names
    for file, name, *_ in names:
        text = (listed.parent / file).read_text("utf-8")
        assert re.search(rf"^(def {name}\(|(class )?{name}\b)", text, re.M), (
            f"tests/long.txt: no {file}::{name}"
        )
