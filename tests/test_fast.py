"""The fast path: what a daemon answers is what the process itself would have printed, and costs less."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from banks import new_bank
from daemons import Lasting, Place, forking, until

from ua_memory import clients, discovery
from ua_memory.cli import fast
from ua_memory.cli.app import VERBS
from ua_memory.cli.daemon import guess_query
from ua_memory.daemon import connect as address
from ua_memory.daemon import connect as asking
from ua_memory.daemon import server as messages
from ua_memory.daemon.spawn import is_running
from ua_memory.text import patterns


def made(folder: Path) -> Place:
    bank = new_bank(folder)
    bank.insert("Alice moved the API to Fly.io because Heroku doubled its price", tags=("infra",))
    bank.insert("Зоряна переїхала до Одеси, \u202e перевернуто")
    bank.write("# Notes\n\n- a line by hand about Heroku\n", "memory/notes.md")
    settings = bank.text(
        "ua-memory.toml"
    )  # an edit that is committed half way through would tell the two apart
    bank.write(f"{settings}\n[hand_edits]\nquiet_seconds = 3600\n", "ua-memory.toml")
    return Place(bank.root)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = made(tmp_path / "bank")
    yield found
    found.kill()


@pytest.fixture(scope="module")
def lasting(_homes: Iterator[Path]) -> Iterator[Lasting]:
    found = Lasting(next(_homes), made)
    with found.asked() as place:  # while it loads its index, on a busy machine, it turns commands away
        until(lambda: place.run("search", "heroku", daemon="require").code == 0, 60)
    yield found
    found.place.kill()


@pytest.fixture
def served(lasting: Lasting) -> Iterator[Place]:
    """With a daemon that other tests ask, too."""
    with lasting.asked() as place:
        yield place


READS = (
    ["search", "heroku"],
    ["search", "heroku", "--json"],
    ["search", "heroku", "--explain", "--json", "--limit", "1"],
    ["search", "nothing of the sort", "--min-score", "0.9"],
    ["search", "Одеса", "--since", "2026"],
    ["search"],
    ["search", "--batch"],
    ["search", "x", "--since", "no day"],
    ["search", "--limit", "many", "x", "--json"],
    ["search", "--help"],
    ["recall", "heroku"],
    ["recall", "heroku", "--json", "--limit", "1"],
    ["recall", "nothing of the sort", "--min-score", "0.9"],
    ["--bank", ".", "search", "fly"],
    ["get", "memory/2026-11-21.md"],
    ["get", "memory/2026-11-21.md:1-3", "--json"],
    ["get", "memory/none.md"],
    ["get", "../secret", "--json"],
    ["core", "list"],
    ["core"],
    ["core", "get", "none"],
    ["log", "--json"],
    ["log", "--nonsense"],
    ["diff"],
    ["blame", "memory/2026-11-21.md"],
    ["status", "--json"],
    ["config"],
    ["config", "search.limit"],
)


@pytest.mark.parametrize(
    ("argv", "query"),
    [
        (("search", "why fly", "--json"), "why fly"),
        (("recall", "x"), "x"),
        (("search",), ""),
        (("search", "--batch"), ""),
        (("search", "why", "fly", "-n", "3"), "why fly"),
        (("--bank", ".", "search", "--json", "why fly"), "why fly"),
        (("search", "-n", "3", "x"), ""),
        (("--bank", ".", "insert", "x"), ""),
        (("--bank",), ""),
        (("insert", "x"), ""),
        ((), ""),
    ],
)
def test_what_a_command_line_is_likely_to_ask(argv: tuple[str, ...], query: str) -> None:
    assert guess_query(argv) == query


def _plain(text: str) -> str:
    """Without what differs from one run to the next: a bar of progress comes where a machine is busy; and
    without what `status` says of the daemon."""
    for name in ("jobs", "watch"):
        text = re.sub(rf', "{name}": \{{(?:[^{{}}]|\{{[^{{}}]*\}})*\}}', "", text)
    text = re.sub(r"\x1b\[\?25l.*?\x1b\[\?25h(\r|\x1b\[1A|\x1b\[2K)*", "", text, flags=re.S)
    return re.sub(r"\d+ (seconds?|minutes?) ago", "N ago", text)


def test_a_daemon_answers_as_the_process_itself(place: Place) -> None:
    here = {" ".join(argv): place.run(*argv, daemon="off", stdin="heroku\nfly\n") for argv in READS}
    whole = place.whole(*READS[0], daemon="off")
    assert (whole.code, _plain(whole.out), _plain(whole.err)) == (0, _plain(here["search heroku"].out), "")
    assert place.run("daemon", "start").code == 0
    for argv in READS:
        there, own = place.run(*argv, stdin="heroku\nfly\n"), here[" ".join(argv)]
        assert (there.code, _plain(there.out), _plain(there.err)) == (
            own.code,
            _plain(own.out),
            _plain(own.err),
        ), argv
    status = place.status()
    assert status and status["commands"] >= len(READS)  # it was the daemon that answered


def test_on_a_terminal_too(place: Place) -> None:
    some = [READS[n] for n in (0, 1, 2, 6, 11, 13, 16, 18)]
    some.remove(["search", "--batch"])
    here = [place.terminal(*argv, daemon="off") for argv in some]
    assert place.run("daemon", "start").code == 0
    for argv, own in zip(some, here, strict=True):
        there = place.terminal(*argv)
        assert (there.code, _plain(there.out)) == (own.code, _plain(own.out)), argv
    assert "\x1b[" in here[0].out


def test_what_is_written_is_read_at_once(place: Place) -> None:
    assert place.run("daemon", "start").code == 0
    done = place.run("insert", "The garage code is 4711", "--json")
    assert done.code == 0 and place.status()["commands"] == 1  # type: ignore[index]
    assert done.json["id"] in place.run("search", "garage code", "--json").out
    (place.root / "memory/by-hand.md").write_text("- the bicycle stands in the cellar\n")
    assert "cellar" in place.run("search", "bicycle").out
    assert place.run("insert", "by another process", daemon="off").code == 0
    assert "by another process" in place.run("search", "another process").out
    subprocess.run(["git", "checkout", "-q", "--detach", "HEAD~1"], cwd=place.root, check=False)
    assert "by another process" not in place.run("search", "another process").out
    assert place.run("search", "x", "--json").json["mode"] == "hybrid"


def test_input_is_read_only_where_the_command_reads_it(served: Place) -> None:
    # A daemon that is busy with others, or with its index, refuses a command, and has done nothing of it.
    script = """while read -r line; do
        tries=0
        until "$0" -P -m ua_memory insert "$line"; do tries=$((tries + 1)); test $tries -lt 30 || exit 1; done
    done"""
    rows = "one of the rows\nanother of the rows\nthe third row\n"
    env = served.environment("require")
    argv = ["sh", "-c", script, sys.executable]
    done = subprocess.run(
        argv, input=rows.encode(), cwd=served.root, env=env, check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert served.run("insert", stdin="from a pipe\n").code == 0
    assert served.run("insert", "-", stdin="\u0435 with a dash\n").code == 0
    assert served.run("insert", stdin="").code == 2
    found = "".join(file.read_text("utf-8") for file in (served.root / "memory").glob("*.md"))
    assert all(row in found for row in [*rows.split("\n"), "from a pipe", "\u0435 with a dash"])


def test_the_callers_world_is_used(served: Place) -> None:
    before = served.up()["commands"]
    env = {"CLAUDECODE": "1", "GIT_AUTHOR_NAME": "Zo", "TZ": "Etc/GMT-14"}
    # a busy one would leave the command to its caller
    done = served.run("insert", "said in Kyiv", daemon="require", **env)
    assert done.code == 0
    text = "".join(file.read_text("utf-8") for file in (served.root / "memory").glob("*.md"))
    assert "· claude-code" in text
    assert served.run("insert", "said here", daemon="require").code == 0
    assert served.up()["commands"] == before + 2
    narrow = _plain(served.terminal("search", "heroku", daemon="require", width=40).out)
    assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in narrow.splitlines()) <= 40


def test_the_next_command_finds_a_daemon(place: Place) -> None:
    assert place.run("log", daemon="auto").code == 0
    assert not is_running(place.local)  # what only looks back starts none
    assert place.run("search", "heroku", daemon="off").code == 0 and not is_running(place.local)
    assert place.run("get", "MEMORY.md", daemon="auto").code == 0
    assert place.up()["commands"] == 0
    assert place.run("search", "heroku").code == 0
    assert place.status()["commands"] == 1  # type: ignore[index]


def test_one_may_insist_on_it(place: Place) -> None:
    assert place.run("config", "search.limit", daemon="require").out == "6\n"  # needs none
    assert place.run("search", "heroku", "--json", daemon="require").code == 0
    assert place.status()["commands"] == 1  # type: ignore[index]
    place.kill()
    (place.local / "daemon.lock").chmod(0)
    (place.local / "daemon.lock").unlink()
    (place.local / "daemon.lock").mkdir()
    failed = place.run("search", "heroku", "--json", daemon="require")
    assert failed.code == 5 and json.loads(failed.err)["error"]["type"] == "Busy"
    assert place.run("search", "heroku", daemon="auto").code == 0
    failed = place.run("search", "heroku", daemon="OFF")
    assert failed.code == 9 and "'OFF' is not one of auto, off, require" in failed.err


def test_a_daemon_that_hangs_does_nothing_twice(place: Place) -> None:
    assert place.run("daemon", "start").code == 0
    pid = place.up()["pid"]
    os.kill(pid, signal.SIGSTOP)
    code = "from ua_memory.cli import fast; from ua_memory.daemon import connect; "
    code += "connect.ACCEPT_TIMEOUT = 0.5; fast.main()"
    env = place.environment("auto")
    try:
        read = forking().run(["log"], place.root, env, code=code)
        assert forking().run(["insert", "told once"], place.root, env, code=code).code == 0
    finally:
        os.kill(pid, signal.SIGCONT)
    assert read.code == 0 and "inserted" in read.out
    assert place.run("insert", "and another").code == 0
    text = "".join(file.read_text("utf-8") for file in (place.root / "memory").glob("*.md"))
    assert text.count("told once") == 1 and "seen:" not in text


def test_a_daemon_that_dies_over_a_command(tmp_path: Path) -> None:
    """Against a daemon that takes the command and ends: a search is done here, an insert is not."""
    bank = new_bank(tmp_path / "bank")
    place = Place(bank.root)
    address.make_socket_folder(os.environ)
    place.local.mkdir(mode=0o700, exist_ok=True)
    (place.local / "daemon.started").touch()  # so that none is started in the place of ours
    for argv, said, code in (
        (["log"], b'{"jsonrpc":"2.0","method":"taken","params":[]}\n', 0),
        (["insert", "x y"], b'{"jsonrpc":"2.0","method":"taken","params":[]}\n', 5),
        (["insert", "not taken"], b"", 0),
        (
            ["insert", "turned away"],
            messages.message_line(id=None, error={"code": asking.BUSY, "message": "too many"}),
            0,
        ),
        (
            ["insert", "failed"],
            messages.message_line(id=1, error={"code": asking.INTERNAL, "message": "oh"}),
            5,
        ),
    ):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(str(place.socket()))
            listener.listen(1)
            begun = threading.Thread(target=_dies, args=(listener, said))
            begun.start()
            done = place.run(*argv, daemon="auto", UA_MEMORY_EMBEDDING="")
            begun.join(30)
        place.socket().unlink()
        assert done.code == code, (argv, done)
        assert ("may have run" in done.err and "ua-memory log" in done.err) == (code == 5)


def _dies(listener: socket.socket, said: bytes) -> None:
    caller, _ = listener.accept()
    with caller:
        caller.recv(1 << 20)
        caller.sendall(said)


def test_a_reader_who_leaves_and_a_closed_output(served: Place) -> None:
    command = f'"{sys.executable}" -P -m ua_memory get memory/2026-11-21.md'
    env = served.environment("auto")
    for shell, code in (
        (f"{command} >&-", 0),
        (f"{command} >/dev/full", 10),
        (f"({command}; echo $? >&2) | true", 0),
    ):
        done = subprocess.run(
            ["bash", "-c", shell], cwd=served.root, env=env, capture_output=True, check=False
        )
        assert done.returncode == code and b"Traceback" not in done.stderr, (shell, done)
        assert (b"was carried out" in done.stderr) == (code == 10)


# -- what it must know and must not load -----------------------------------------------------------------


def test_it_knows_the_verbs_the_agents_and_the_codes() -> None:
    verbs = {name for section in VERBS.values() for name in section}
    assert verbs >= fast.DAEMON_VERBS >= fast.WRITING_VERBS | fast.STARTING_VERBS
    assert set(clients.VARIABLES) <= set(asking.PASSED_VARIABLES)


@pytest.mark.parametrize(
    ("words", "verb"),
    [
        (["search", "x"], "search"),
        (["--bank", "insert", "log"], "log"),
        (["--bank=a", "log"], "log"),
        (["--version"], ""),
        (["--help", "log"], ""),
        ([], ""),
        (["--bank"], ""),
    ],
)
def test_the_verb_is_found(words: list[str], verb: str) -> None:
    assert fast._parse_verb(words) == verb


def test_a_request_is_json_and_an_answer_is_read_as_json_is() -> None:
    words = ["insert", 'a "b" \\ \n \udcff é 🙂', "--tag", ""]
    line = asking.request_line(words, "/a", "/b", b"\x00\xff", [])
    told = json.loads(line)["params"]
    assert told["argv"] == words and told["stdin"] == "\x00\xff" and line.count(b"\n") == 1
    assert messages.command_request(told).stdin == b"\x00\xff"
    value = {"result": {"code": 0, "output": [[1, "é\ud800 \u2028\n"], [2, ""]]}, "x": [1.5, None, True, -3]}
    assert discovery.read_json(json.dumps(value)) == value


def test_a_warm_search_loads_next_to_nothing(served: Place) -> None:
    code = (
        "import os, sys\nfrom ua_memory.cli import fast\n"
        "fast._exit = lambda code: (print(*sorted(sys.modules), file=sys.stderr), os._exit(code))\n"
        "before = set(sys.modules)\nfast.main()"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "search", "heroku", "--json"],
        cwd=served.root, env=served.environment("require"), capture_output=True, text=True, check=True,
    )  # fmt: skip
    bare = subprocess.run(
        [sys.executable, "-P", "-c", "import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    new = set(done.stderr.split()) - set(bare.stdout.split())
    assert {name for name in new if not name.startswith("ua_memory")} <= {
        "__future__", "_socket", "_json", "_blake2",
    }  # fmt: skip
    assert json.loads(done.stdout)["mode"] == "hybrid"


def test_a_warm_hook_loads_no_more_than_a_search(served: Place) -> None:
    """Not `re`, `json` nor `contextlib`: they take as long as Python's own start."""
    code = (
        "import os, sys\nfrom ua_memory.cli import fast\n"
        "fast._exit = lambda code: (print(*sorted(sys.modules), file=sys.stderr), os._exit(code))\n"
        "fast.main()"
    )
    event = {"hook_event_name": "UserPromptSubmit", "session_id": "5df2", "cwd": "/", "prompt": "why heroku?"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "hook"], input=json.dumps(event),
        cwd=served.root, env=served.environment("require"), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "ua_memory.daemon.connect" in done.stderr.split()
    assert not {"re", "json", "contextlib", "typing", "pathlib", "ua_memory.hooks"} & {*done.stderr.split()}


def test_every_pattern_that_is_compiled_late_can_be_compiled() -> None:
    """Its mistakes would show at its first use only."""
    compiled = 0
    for file in sorted((Path(patterns.__file__).parents[1]).rglob("*.py")):
        name = ".".join(file.relative_to(Path(patterns.__file__).parents[2]).with_suffix("").parts)
        if "ua_memory.text.patterns import" not in file.read_text():
            continue
        for value in vars(importlib.import_module(name)).values():
            found = [value] if isinstance(value, patterns._LatePattern) else []
            if isinstance(value, patterns.Phrases):
                with pytest.raises(KeyError):
                    value["no such phrase"]  # it has read its table now
                found = [*value.values()]
            for pattern in found:
                pattern.search("")
                compiled += 1
    assert compiled > 300
