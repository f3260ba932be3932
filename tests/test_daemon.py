"""The daemon: one a bank, whatever happens to its socket, its callers or its process."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from banks import new_bank
from daemons import Lasting, Place, answer, forking, until
from test_cli_json import EXAMPLES, agrees

from ua_memory.cli import daemon as stopping
from ua_memory.daemon import connect as address
from ua_memory.daemon import connect as asking
from ua_memory.daemon import server as peer
from ua_memory.daemon import server as service
from ua_memory.daemon import spawn as client
from ua_memory.daemon.connect import BUSY, NEEDS_INPUT, OTHER_BANK, OTHER_CODE
from ua_memory.daemon.connect import RequestRefused as Refused
from ua_memory.daemon.spawn import LARGEST_LOG, Log, is_running
from ua_memory.daemon.worker import Job, Worker
from ua_memory.errors import Busy


def made(folder: Path) -> Place:
    bank = new_bank(folder)
    bank.insert("Alice moved the API to Fly.io because Heroku doubled its price")
    return Place(bank.root)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = made(tmp_path / "bank")
    yield found
    found.kill()


@pytest.fixture
def served(place: Place) -> Place:
    assert place.run("daemon", "start").code == 0
    return place


@pytest.fixture(scope="module")
def lasting(_homes: Iterator[Path]) -> Iterator[Lasting]:
    found = Lasting(next(_homes), made)
    yield found
    found.place.kill()


@pytest.fixture
def called(lasting: Lasting) -> Iterator[Place]:
    """One that is called and goes on."""
    with lasting.asked() as place:
        yield place


# -- starting and leaving ------------------------------------------------------------------------------


def test_it_starts_answers_and_stops(place: Place) -> None:
    assert place.run("daemon", "status", "--json").json == {"running": False}
    started = place.whole("daemon", "start", "--json").json
    assert started["running"] and started["commands"] == 0
    for told in (started, place.run("daemon", "status", "--json").json):
        # Events come a moment after the answers, or not at all where a probe is late on a busy machine.
        assert told["watch"]["mode"] in ("events", "polling")
        agrees("daemon status", {**told, "watch": EXAMPLES["daemon status"]["watch"]})
    agrees("daemon logs", place.run("daemon", "logs", "--json").json)
    assert "answers" in place.run("doctor").out
    assert stat.S_IMODE(place.socket().stat().st_mode) == 0o600
    assert stat.S_IMODE(place.socket().parent.stat().st_mode) == 0o700
    assert place.run("daemon", "start", "--json").json["pid"] == started["pid"]
    again = place.run("daemon", "restart", "--json").json
    assert again["pid"] != started["pid"]
    assert "Stopped: process" in place.whole("daemon", "stop").out
    assert not is_running(place.local) and not place.socket().exists()
    assert "No daemon" in place.run("daemon", "stop").out
    logs = place.run("daemon", "logs", "--json").json["lines"]
    assert "listens on" in logs[0] and "exited: requested" in logs[-1]


def test_one_that_cannot_start_says_why(place: Place) -> None:
    """It was said not to answer, and only the log had the reason."""
    place.local.mkdir(parents=True, exist_ok=True)
    code = """
import subprocess, sys
from ua_memory.cli import app
from ua_memory.daemon import spawn
def start(bank, env, *, key=False):
    spawn.Log(bank.local).say("ua-memory: error: no private folder for a socket")
    spawn.Log(bank.local).say("  hint: check owner")
    return subprocess.Popen([sys.executable, "-c", "raise SystemExit(10)"])
spawn.start_daemon = start
app.main()
"""
    told = forking().run(["daemon", "start"], place.root, place.environment("auto"), code=code)
    assert told.code == 5 and "cannot be started: no private folder for a socket\n" in told.err


@pytest.mark.parametrize("lacking", ["git", "memory"])
def test_none_starts_with_less_than_other_shells_have(lacking: str, place: Place, tmp_path: Path) -> None:
    """One that cron had started without git left uncommitted what any shell wrote, until it was stopped."""
    path = f"PATH={tmp_path} " if lacking == "git" else "ulimit -v 1000000; "
    run = f"{path}{shlex.quote(sys.executable)} -m ua_memory daemon start"
    told = subprocess.run(
        ["/bin/sh", "-c", run], cwd=place.root, env=place.environment("auto"), capture_output=True, text=True
    )
    assert told.returncode == 5 and not is_running(place.local)
    why = f"{tmp_path}: git is not on the PATH" if lacking == "git" else "too little memory for Chroma"
    assert f"the daemon cannot be started: {why}" in told.stderr
    assert ", commit " in place.run("insert", "the next shell has both of them again").out


def test_one_of_another_user_is_named(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """`daemon restart` was to be typed, which waited for 35 seconds and had no right to stop it."""

    def kill(pid: int, number: int) -> None:
        raise PermissionError

    place.local.mkdir(parents=True, exist_ok=True)
    with client.process_lock(place.local / "daemon.lock"):
        monkeypatch.setattr(client.os, "kill", kill)
        silent = client.not_answering(place.local)
        assert silent.hint == f"another user started it: sudo kill {os.getpid()}"
        bank, call = SimpleNamespace(root=place.root, local=place.local), SimpleNamespace(env=os.environ)
        with pytest.raises(Busy, match="does not answer"):
            stopping._stop(cast("Any", bank), cast("Any", call))
        with pytest.raises(Busy) as told:
            client.ensure_answers(cast("Any", bank), call.env)
        assert told.value.hint == silent.hint


def test_one_that_is_frozen_can_be_stopped(served: Place) -> None:
    """It was said not to run, and `stop` gave up after half a minute."""
    os.kill(served.up()["pid"], signal.SIGSTOP)
    code = "from ua_memory.cli import app\nfrom ua_memory.daemon import spawn\n"
    code += "spawn.ASK_TIMEOUT = 0.3\napp.main()"
    told = forking().run(["daemon", "status"], served.root, served.environment("auto"), code=code)
    assert told.code == 5 and "does not answer" in told.err and "daemon restart" in told.err
    pid = int((served.local / "daemon.lock").read_text())
    checked = served.run("doctor").out
    assert f"process {pid} runs, but does not answer" in checked and "daemon restart" in checked
    done = served.run("daemon", "stop")
    assert done.code == 0 and done.out == f"Stopped: process {pid}, which did not answer\n"
    assert not is_running(served.local) and "No daemon" in served.run("daemon", "status").out
    assert not [*served.socket().parent.glob(f"{served.socket().name}*")]


@pytest.fixture
def deaf(place: Place) -> Iterator[Place]:
    """Somebody listens, lets callers in and says nothing."""
    address.make_socket_folder(os.environ)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(place.socket()))
        listener.listen(8)
        yield place


def test_one_that_does_not_answer_is_waited_for_once(deaf: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "ACCEPT_TIMEOUT", 0.05)
    monkeypatch.setattr(address, "PROBE_TIMEOUT", 0.01)
    words, path, home = ["--bank", str(deaf.root), "search", "x"], str(deaf.socket()), os.environ["HOME"]

    def asked(hurry: float = 0) -> float:
        """For how long it is waited."""
        with contextlib.closing(asking.connect_to_daemon(words, "/", home, hurry)) as daemon:
            waits: float = daemon.gettimeout()
            with pytest.raises(asking.NoAnswer, match="does not answer"):
                asking.read_answer(daemon, hurry)
        return waits

    assert [asked(), asked(), asked()] == [0.05, 0.01, 0.01] and address.is_silent(path)
    with pytest.raises(asking.NoAnswer, match="does not answer"):
        asking.connect_to_daemon(words, "/", home, 1)  # who is in a hurry does not wait at all
    os.utime(path + address.SILENT_SUFFIX, (time.time() - 3 * asking.RETRY_AFTER,) * 2)
    os.utime(path, (1, 1))
    assert asked(1) == 0.01  # but now and then
    assert client.status(deaf.root, os.environ) is None and client.is_bank_silent(deaf.root, os.environ)


def test_what_was_noted_of_one_that_did_not_answer_is_over_when_it_does(served: Place) -> None:
    path = str(served.socket())
    address.record_answer(path, False)
    assert address.is_silent(path)
    assert served.run("get", "MEMORY.md").err == "" and not address.is_silent(path)
    address.record_answer(path, False)
    assert client.status(served.root, os.environ) and not address.is_silent(path)
    address.record_answer(path, False)
    assert served.run("daemon", "restart").code == 0 and not address.is_silent(path)


def test_commands_go_on_without_one_that_is_frozen(served: Place) -> None:
    assert served.run("search", "heroku").code == 0
    os.kill(served.up()["pid"], signal.SIGSTOP)
    address.record_answer(str(served.socket()), False)
    found = served.run("search", "heroku")
    assert found.code == 0 and "Alice" in found.out
    assert "the daemon does not answer; this command runs without it (hint: ua-memory daemon re" in found.err
    assert served.run("insert", "Bob likes figs").code == 0
    assert json.loads(served.run("search", "figs", "--json").out)["results"]
    for argv in (("search", "figs"), ("insert", "Bob likes plums")):
        refused = served.run(*argv, daemon="require")
        assert refused.code == 5 and "the daemon does not answer" in refused.err
        assert "hint: ua-memory daemon restart" in refused.err
    assert served.run("daemon", "start").code == 5
    assert served.run("daemon", "restart").code == 0
    assert served.run("search", "figs", daemon="require").err == ""


def of_these_tests(place: Place, *words: str) -> str:
    """What `daemon WORDS` prints where only the tests' own socket folder is looked into: others on this
    machine, which may be the developer's, are neither listed nor stopped."""
    code = (
        "from ua_memory.daemon import connect; every = connect.socket_folders\n"
        "connect.socket_folders = lambda env: iter([next(every(env))])\n"
        "from ua_memory.__main__ import main; main()"
    )
    done = forking().run(["daemon", *words], place.root.parent, place.environment("off"), code=code)
    assert done.code == 0
    return done.out


def test_the_daemons_of_all_banks_are_listed_and_stopped(served: Place, tmp_path: Path) -> None:
    """Also those that are frozen, and those whose bank was removed."""
    frozen, gone = made(tmp_path / "frozen"), made(tmp_path / "gone")
    killed = made(tmp_path / "killed")
    for each in (frozen, gone, killed):
        assert each.run("daemon", "start").code == 0
    killed.kill()
    pids = {each.root: each.up()["pid"] for each in (served, frozen, gone)}
    os.kill(pids[frozen.root], signal.SIGSTOP)
    shutil.rmtree(gone.root)
    listed = json.loads(of_these_tests(served, "list", "--json"))
    agrees("daemon list", listed)
    assert {(one["bank"], one["pid"], one["answers"]) for one in listed["daemons"]} == {
        (str(root), pid, root != frozen.root) for root, pid in pids.items()
    }
    shown = of_these_tests(served, "list")
    assert f"process {pids[frozen.root]}, {frozen.root}, does not answer\n" in shown
    assert of_these_tests(served, "stop", "--all").count("Stopped: process") == 3
    assert of_these_tests(served, "list") == "No daemon runs.\n"
    assert json.loads(of_these_tests(served, "stop", "--all", "--json")) == {"daemons": []}
    assert not is_running(served.local) and not is_running(frozen.local)


HURRY = f"import {service.__name__} as s; s.TICK_SECONDS = 0.1; import ua_memory.__main__ as m; m.main()"


@pytest.mark.few(1)
@pytest.mark.parametrize("what", ["bank", "settings", "state"])
def test_it_leaves_when_its_bank_is_gone(what: str, place: Place) -> None:
    daemon = place.begun(HURRY, "daemon", "run")
    place.up()
    if what == "settings":  # the folder stays, which is a bank no more
        for path in (place.root / "MEMORY.md", place.root / "ua-memory.toml"):
            path.unlink()
        shutil.rmtree(place.root / "memory")
    else:
        gone = place.local if what == "state" else place.root
        while gone.exists():  # the daemon may write a file meanwhile
            shutil.rmtree(gone, ignore_errors=True)
    assert daemon.wait(30) == 0
    assert not place.socket().exists()


DEAF = """
import fcntl, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(fd, fcntl.LOCK_EX)
os.write(fd, f"{os.getpid()}\\n".encode())
print(flush=True)
time.sleep(60)
"""


def test_one_that_does_not_leave_is_killed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.local.mkdir(parents=True, exist_ok=True)
    bank, call = SimpleNamespace(root=place.root, local=place.local), SimpleNamespace(env=os.environ)
    monkeypatch.setattr(client, "STOP_TIMEOUT", 0.2)
    argv = [sys.executable, "-c", DEAF, place.local / "daemon.lock"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as deaf:
        assert deaf.stdout and deaf.stdout.readline()
        stopping._stop(cast("Any", bank), cast("Any", call))
        assert deaf.wait(5) == -signal.SIGKILL and not is_running(place.local)


def test_a_person_is_told_by_their_next_command_what_was_put_back_meanwhile(served: Place) -> None:
    """I8"""
    assert served.run("insert", "base").code == 0
    day = max((served.root / "memory").glob("2*.md"))  # of today
    old = day.read_bytes()
    assert served.run("insert", "The invoice address is Elm Street 5").code == 0
    assert served.run("search", "invoice").code == 0  # it is warm, and hears of saves
    day.write_bytes(old + b"- mine\n")
    until(lambda: b"Elm Street" in day.read_bytes(), 20)
    hook = '{"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "what is the base of all?"}'
    assert "restored" not in served.run("hook", stdin=hook).err, "an agent is no person"
    # The file has it before the commit is made, and the note comes after that.
    until(lambda: "“The invoice address is Elm Street 5”" in served.run("status").err, 20)
    assert "restored" not in served.run("status").err


def test_two_that_start_at_once_become_one(place: Place) -> None:
    code = "from ua_memory.__main__ import main; main()"
    both = [place.begun(code, "daemon", "run") for _ in range(3)]
    pid = place.up()["pid"]
    losers = [one for one in both if one.pid != pid]
    assert len(losers) == 2 and [one.wait(30) for one in losers] == [0, 0]
    place.kill(signal.SIGTERM)
    assert [one.wait(30) for one in both] == [0, 0, 0]


def test_what_a_killed_one_leaves_is_no_hindrance(served: Place) -> None:
    served.kill()
    assert served.socket().exists()  # and nobody listens
    assert served.run("search", "heroku", daemon="auto", UA_MEMORY_DAEMON="off").code == 0
    assert served.status() is None
    assert served.run("daemon", "start").code == 0
    assert served.command("get", "memory/2026-11-21.md")["result"]["code"] == 0


def test_it_leaves_when_it_has_nothing_to_do_or_no_bank(place: Place) -> None:
    settings = place.root / "ua-memory.toml"
    settings.write_text(
        settings.read_text() + "\n[daemon]\nidle_minutes = 0\n[hand_edits]\nquiet_seconds = 0\n"
    )
    assert (
        place.begun(HURRY, "daemon", "run").wait() == 0 and "exited: idle" in place.run("daemon", "logs").out
    )


def test_sigterm_lets_a_command_end(served: Place) -> None:
    pid = served.up()["pid"]
    found: list[object] = []
    caller = threading.Thread(target=lambda: found.append(served.command("search", "heroku", "--json")))
    caller.start()
    until(lambda: (served.status() or {}).get("busy") or found, 20)
    os.kill(pid, signal.SIGTERM)
    caller.join(30)
    served.gone()
    assert found[0]["result"]["code"] == 0  # type: ignore[index]


# -- callers ---------------------------------------------------------------------------------------------


def test_slow_and_broken_callers_keep_nobody_waiting(called: Place) -> None:
    silent = [called.connected() for _ in range(5)]
    half = called.connected()
    half.sendall(b'{"jsonrpc": "2.0", "id"')
    gone = called.connected()
    gone.sendall(b'{"jsonrpc":"2.0","id":1,"method":"status"}\n' * 50)
    gone.close()
    began = time.monotonic()
    assert called.command("get", "MEMORY.md")["result"]["code"] == 0
    assert time.monotonic() - began < 5
    for caller in [*silent, half]:
        caller.close()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"nonsense\n", asking.BAD_JSON),
        (b"[" * 100_000 + b"\n", asking.BAD_JSON),
        (b"[]\n", asking.BAD_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":5}\n', asking.BAD_REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":"dance"}\n', asking.NO_METHOD),
    ],
)
def test_what_is_no_request_is_refused(line: bytes, code: int, called: Place) -> None:
    with called.connected() as caller:
        caller.sendall(line)
        assert answer(caller)["error"]["code"] == code


def test_a_line_without_an_end_is_cut_off(called: Place) -> None:
    with called.connected() as caller, pytest.raises(OSError):
        for _ in range(address.LARGEST_MESSAGE // (1 << 20) + 2):
            caller.sendall(b"x" * (1 << 20))
        caller.recv(1)
    assert called.status()


def test_requests_with_parameters_of_another_type(called: Place) -> None:
    for wrong in ({"argv": [1]}, {"width": "80"}, {"env": 5}, {"cwd": None}, {"stdin": "\u20ac"}):
        assert called.command("log", **wrong)["error"]["code"] == asking.BAD_PARAMS, wrong


@pytest.mark.parametrize(
    "path",
    [
        "../outside.md", "{outside}", "memory/link.md", "memory/x\0/../../outside.md", "memory/\ud800.md",
        "memory/" + "a" * 5000 + ".md", "memory\\..\\..\\outside.md", "memory/%2e%2e/%2e%2e/outside.md",
        "memory/\uff0e\uff0e\uff0foutside.md", "MEMORY/LINK.MD", "--help",
    ],
)  # fmt: skip
def test_no_path_leads_out_over_the_socket(path: str, called: Place) -> None:
    """I63. What no shell can pass, a socket can: every answer is one of ours, and no bug."""
    outside = called.root.parent / "outside.md"
    outside.write_text("- the canary sings\n")
    link = called.root / "memory/link.md"
    link.unlink(missing_ok=True)
    link.symlink_to(outside)
    path, before = path.format(outside=outside), sorted(called.root.parent.iterdir())
    asked: list[dict[str, Any]] = [
        {"tool": "memory_get", "arguments": {"path": path}}, {"read": f"memory://page/{path}"},
        {"tool": "delete_page", "arguments": {"id": path}},
        {"tool": "ingest_file", "arguments": {"file_path": path}},
    ]  # fmt: skip
    said = [
        called.command(*argv, path)
        for argv in (["get"], ["blame"], ["why"], ["log"], ["pages", "get"], ["git", "show"])
    ] + [
        called.command("mcp", "--call", stdin=json.dumps(one), env={"HOME": os.environ["HOME"]})
        for one in asked
    ]
    odd = [one for one in said if one.get("result", {}).get("code") == 1]
    assert not odd and {one["error"]["code"] for one in said if "error" in one} <= {BUSY}
    assert "canary" not in str(said) and outside.read_text() == "- the canary sings\n"
    assert sorted(called.root.parent.iterdir()) == before


def test_a_caller_without_a_protocol_is_of_another_installation(served: Place) -> None:
    with served.connected() as caller:
        caller.sendall(b'{"jsonrpc":"2.0","id":1,"method":"run","params":{}}\n')
        assert answer(caller)["error"]["code"] == OTHER_CODE
    served.gone()


def test_another_bank_input_and_other_code_are_handed_back(served: Place, tmp_path: Path) -> None:
    other = new_bank(tmp_path / "other")
    assert served.command("log", "--bank", str(other.root))["error"]["code"] == OTHER_BANK
    assert served.command("insert")["error"]["code"] == NEEDS_INPUT
    assert served.command("insert", stdin="from a pipe é\n".encode().decode("latin-1"))["result"]["code"] == 0
    assert "from a pipe é" in (served.root / "memory" / time.strftime("%Y-%m-%d.md")).read_text("utf-8")
    assert served.command("log", code="/elsewhere")["error"]["code"] == OTHER_CODE
    served.gone()


def test_the_peer_is_who_the_kernel_says(tmp_path: Path) -> None:
    import socket

    ours, theirs = socket.socketpair()
    assert peer.peer_uid(ours) == os.getuid()
    ours.close()
    theirs.close()


# -- what it is made of ----------------------------------------------------------------------------------


def test_a_job_waits_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ua_memory.daemon.worker.BUSY_AFTER", 0.1)
    worker, free, heard = Worker(lambda _: None), threading.Event(), []
    long = threading.Thread(
        target=lambda: heard.append(worker.submit(Job(lambda _: free.wait(20)), lambda _: None))
    )
    long.start()
    until(lambda: worker.busy, 5)
    with pytest.raises(Refused) as refused:
        worker.submit(Job(lambda _: heard.append("never")), lambda _: None)
    assert refused.value.code == BUSY
    free.set()
    long.join(5)
    assert worker.submit(Job(lambda _: "next"), lambda _: None) == "next"
    assert worker.stop(5) and heard == [True]


def test_a_job_that_fails_is_not_the_end() -> None:
    worker = Worker(lambda _: None)

    def fails(_: Job) -> None:
        raise SystemExit(3)

    with pytest.raises(Refused) as refused:
        worker.submit(Job(fails), lambda _: None)
    assert refused.value.code == asking.INTERNAL
    assert worker.submit(Job(lambda _: 1), lambda _: None) == 1
    assert worker.stop(5)


def test_what_fails_between_jobs_is_not_the_end() -> None:
    """A daemon whose thread had died said that it runs, kept each command waiting for two seconds, and never
    left."""
    said, called = list[str](), list[float]()

    def idle(seconds: float) -> float:
        called.append(seconds)
        raise ValueError("of a library")

    worker = Worker(idle, 0.01, said.append)
    until(lambda: len(called) > 3, 5)
    assert worker.submit(Job(lambda _: 1), lambda _: None) == 1
    assert said == ["background work failed: ValueError('of a library')"] and worker.stop(5)


def test_the_log_is_bounded(tmp_path: Path) -> None:
    log = Log(tmp_path)
    for _ in range(5):
        log.say("x" * (LARGEST_LOG // 2))
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 2 * LARGEST_LOG + 200
    log.say("the last")
    assert log.tail(1)[0].endswith("the last") and log.tail(0) == []


def test_sockets_lie_where_only_the_user_can_put_one() -> None:
    long = {"XDG_RUNTIME_DIR": f"/tmp/{'x' * 90}", "TMPDIR": "/var/tmp/"}
    found = list(address.socket_folders(long))
    assert f"/var/tmp/ua-memory-{os.getuid()}" in found and all(len(one) < 80 for one in found)
    with tempfile.TemporaryDirectory(dir="/tmp") as short:  # pytest's own folder may be too long for a socket
        assert address.make_socket_folder({"XDG_RUNTIME_DIR": short}) == f"{short}/ua-memory"
        Path(short, "ua-memory").chmod(0o755)
        assert not address.is_private(f"{short}/ua-memory")
        Path(short, "link").symlink_to(short)
        assert not address.is_private(f"{short}/link") and not address.is_private(f"{short}/none")


def test_doctor_says_where_no_socket_can_be_put(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It said that the next search starts one, which never did."""
    bank = cast("Any", SimpleNamespace(root=place.root, local=place.local))
    assert [check.ok for check in client.daemon_checks(bank, {})] == [True]
    monkeypatch.setattr(address, "socket_folders", lambda env: iter(["/dev/null/ua-memory"]))
    (found,) = client.daemon_checks(bank, {})
    assert (found.ok, found.hint) == (False, "set XDG_RUNTIME_DIR to one with mode 700")
    (found,) = client.daemon_checks(bank, {client.MODE_VARIABLE: "off"})
    assert found.ok and found.seen == "none runs: UA_MEMORY_DAEMON=off"
