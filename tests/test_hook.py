"""The hook: an agent's prompt gets what memory holds on it, and nothing ever stands in the agent's way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from banks import git, new_bank
from daemons import Done, Place, until

from ua_memory.cli import fast
from ua_memory.hooks import events as clients
from ua_memory.memory import Memory


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    bank = new_bank(tmp_path / "bank")
    bank.insert("Alice moved the API to Fly.io because Heroku doubled its price", when="2026-11-19")
    bank.write("# Memory\n\n## Me\n\nShort answers.\n", "MEMORY.md")
    found = Place(bank.root)
    found.local.mkdir(mode=0o700, exist_ok=True)
    time.sleep(0.06)
    with Memory(bank.store) as memory:
        memory.search_many(["x"], by_words=True)
    yield found
    found.kill()


def told(name: str, **more: Any) -> str:
    """What Claude Code hands a hook."""
    common = {
        "session_id": "5df2e272",
        "transcript_path": "/x.jsonl",
        "cwd": "/home/noor",
        "prompt_id": "3ae7",
    }
    return json.dumps({**common, "hook_event_name": name, **more})


PROMPT = told("UserPromptSubmit", prompt="Is Heroku's price still doubled?", permission_mode="default")
START = told("SessionStart", source="startup")


def context(done: Done, name: str) -> str:
    """What reaches the model."""
    assert done.code == 0 and done.err == "" and done.out.count("\n") == 1
    found = done.json["hookSpecificOutput"]
    assert found["hookEventName"] == name and set(found) == {"hookEventName", "additionalContext"}
    return str(found["additionalContext"])


def log(place: Place) -> str:
    file = place.local / "hook.log"
    return file.read_text() if file.exists() else ""


@pytest.mark.parametrize("daemon", ["off", "auto"])
def test_a_prompt_is_told_what_memory_holds(place: Place, daemon: str) -> None:
    (place.local / "daemon.started").touch()  # so that none is started
    found = context(place.whole("hook", daemon=daemon, stdin=PROMPT), "UserPromptSubmit")
    assert found.startswith('<ua-memory-recall kind="search">') and "keywords only" in found
    assert "- 2026-11-19: Alice moved the API" in found
    core = context(place.whole("hook", daemon=daemon, stdin=START), "SessionStart")
    assert core.startswith('<ua-memory-recall kind="core">') and "## Me\nShort answers." in core
    assert log(place) == ""


@pytest.mark.parametrize("daemon", ["off", "auto"])
def test_recent_days_are_told_in_the_bank_s_own_folder(place: Place, daemon: str) -> None:
    (place.local / "daemon.started").touch()
    if daemon == "auto":
        assert place.run("daemon", "start").code == 0
    line = "- Alice moved the API to Fly.io because Heroku doubled its price (2026-11-19"
    own = told("SessionStart", source="startup", cwd=str(place.root))
    assert line in context(place.run("hook", daemon=daemon, stdin=own), "SessionStart")
    unsaid = told("SessionStart", source="startup", cwd="")
    assert line in context(place.run("hook", daemon=daemon, stdin=unsaid), "SessionStart"), "where it runs"
    assert line not in context(place.run("hook", daemon=daemon, stdin=START), "SessionStart")
    workspace = place.run("hook", "--client", "openclaw", daemon=daemon, stdin=START)
    assert line in context(workspace, "SessionStart"), "OpenClaw's folder is no project"
    settings = place.root / "ua-memory.toml"
    settings.write_text(settings.read_text() + 'autoRecallTags = ["{project}"]\n')
    assert line not in context(place.run("hook", daemon=daemon, stdin=own), "SessionStart")


def test_by_a_daemon_it_is_the_same_and_by_meaning_too(place: Place) -> None:
    (place.local / "daemon.started").touch()
    here = {event: place.run("hook", daemon="off", stdin=event) for event in (PROMPT, START)}
    assert place.run("daemon", "start").code == 0
    assert place.run("search", "warm it up").code == 0
    there = {event: place.run("hook", stdin=event) for event in (PROMPT, START)}
    assert place.status()["commands"] == 3  # type: ignore[index]
    assert there[START] == here[START]
    assert context(there[PROMPT], "UserPromptSubmit") == context(here[PROMPT], "UserPromptSubmit").replace(
        " Found by keywords only.", ""
    )
    unsaid = told("UserPromptSubmit", prompt="who relocated the API?")
    assert "Alice" in context(place.run("hook", stdin=unsaid), "UserPromptSubmit")


@pytest.mark.parametrize("daemon", ["off", "auto"])
def test_it_is_silent_whatever_comes(place: Place, daemon: str, tmp_path: Path) -> None:
    if daemon == "auto":
        assert place.run("daemon", "start").code == 0
    for given in (
        told("UserPromptSubmit", prompt="otters"),
        told("UserPromptSubmit", prompt="  "),
        told("UserPromptSubmit", prompt="<task-notification>\nheroku price\n</task-notification>"),
        told("UserPromptSubmit"),
        told("PreCompact", trigger="manual", custom_instructions=None),
        told("Stop", last_assistant_message="heroku price"),
    ):
        assert place.run("hook", daemon=daemon, stdin=given) == Done(0, "", ""), given
    assert log(place) == ""
    long = told("UserPromptSubmit", prompt="heroku price " * 200)
    assert place.run("hook", daemon=daemon, stdin=long) == Done(0, "", "")
    assert "not searched: a query of 2,599 characters" in log(place)
    asked = "<system-reminder>Friday.</system-reminder>/ask Is Heroku's price still doubled?"
    assert "Alice" in context(
        place.run("hook", daemon=daemon, stdin=told("UserPromptSubmit", prompt=asked)), "UserPromptSubmit"
    )
    for wrong in ("", "{", "[]", "\x00", '{"hook_event_name": 7}', '"x"', "[" * 100_000):
        assert place.run("hook", daemon=daemon, stdin=wrong) == Done(0, "", ""), wrong[:20]
    assert log(place).count("nothing said") == 7
    assert place.run("hook", "session-start", "--what", daemon=daemon, stdin=START).out
    elsewhere = tmp_path / "project"
    elsewhere.mkdir()
    assert place.run("hook", daemon=daemon, stdin=PROMPT, cwd=elsewhere) == Done(0, "", "")
    assert place.run("hook", daemon=daemon, stdin=START, UA_MEMORY_BANK="/nowhere") == Done(0, "", "")
    assert list(elsewhere.iterdir()) == []


def test_a_broken_bank_is_no_reason_to_speak(place: Place) -> None:
    (place.root / "ua-memory.toml").write_text("search = 7 7\n")
    assert place.run("hook", daemon="off", stdin=PROMPT) == Done(0, "", "")
    (place.root / "ua-memory.toml").write_text("")
    (place.local / "daemon.lock").unlink(missing_ok=True)
    assert place.run("hook", daemon="require", stdin=START).code == 0


BROKEN = {
    "syntax": "search.limit = \n{}",
    "unfinished": '{}\nmission = """never ends\n',
    "type": '{}\nsearch.limit = "many"\n',
    "value": '{}\ntimezone = "Mars/Phobos"\n',
    "identity": 'id = 7\ntrail = "elsewhere"\n',
    "identity and syntax": "id\n= =\n",
    "bytes": "{}\nmission = '\udcff'\n",
    "environment": "{}",
}
SAID = told(
    "Stop",
    prompt="We leave Heroku for Fly.io today, because the price doubled to $1,400 a month.",
    last_assistant_message="I will move it.",
)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("how", "enclosed", "daemon"),
    [
        *((how, number % 2 == 0, "off") for number, how in enumerate(BROKEN)),
        *(("identity and syntax", enclosed, "auto") for enclosed in (True, False)),
        ("value", False, "auto"),
    ],
)
def test_broken_settings_lose_no_turn(tmp_path: Path, how: str, enclosed: bool, daemon: str) -> None:
    """The hook said nothing, wrote nothing down, and queued nothing: the session was lost."""
    if enclosed:
        git(tmp_path, "init", "-q")
        Memory.init(tmp_path / "bank").close()
    place = Place(tmp_path / "bank" if enclosed else new_bank(tmp_path / "bank").root)
    assert (place.root / ".git").exists() is not enclosed
    file, local = place.root / "ua-memory.toml", place.local
    good = file.read_text()
    more = {"UA_CONTEXT_WINDOW": "wide"} if how == "environment" else {}
    try:
        if daemon == "auto":
            assert place.run("daemon", "start").code == 0
        file.write_bytes(BROKEN[how].format(good).encode("utf-8", "surrogateescape"))
        for event in (START, PROMPT, SAID):
            done = place.run("hook", "--client", "openclaw", daemon=daemon, stdin=event, **more)
            assert done == Done(0, "", "")
        where = "UA_CONTEXT_WINDOW: " if more else f"{file}:"
        assert where in (local / "hook.log").read_text()
        for argv in (("status",), ("doctor",)):
            assert where in place.run(*argv, daemon=daemon, **more).out
        assert place.run("doctor", daemon="off", **more).code == 12
        assert place.run("daemon", "status", **more).code == 0
        assert place.run("status", "--json", daemon="off", **more).json["settings"]
        file.write_text(good)
        (waits,) = place.run("queue", "list", "--json", daemon="off").json["waiting"]
        assert waits["turns"] == 2
        assert place.run("status", "--json", daemon=daemon).json["settings"] == []
        assert place.run("flush", "--force", daemon="off").code == 0
        assert "Fly.io" in place.run("search", "Heroku", daemon="off").out
    finally:
        file.write_text(good)
        place.kill()


def test_the_users_broken_settings_lose_no_turn(place: Place) -> None:
    mine = Path(os.environ["XDG_CONFIG_HOME"]) / "ua-memory" / "config.toml"
    mine.parent.mkdir(parents=True)
    mine.write_text("\n[search\n")
    assert place.run("hook", daemon="off", stdin=SAID) == Done(0, "", "")
    assert f"{mine}:2:" in log(place) and f"{mine}:2:" in place.run("status", daemon="off").out
    assert len(place.run("status", "--json", daemon="off").json["waiting"]) == 1
    assert f"{mine}: cannot be read" in place.run("search", "x", daemon="off").err


def test_who_is_switched_off_is_so_in_a_broken_file_too(place: Place) -> None:
    file, local = place.root / "ua-memory.toml", place.local
    good = file.read_text()
    file.write_text(f"{good}enabled = false  # for now\nsearch.limit =\n")
    assert place.run("hook", daemon="off", stdin=SAID) == Done(0, "", "")
    assert not list(local.parent.glob("pending/turns-*"))
    file.write_text(good)


def test_what_waited_under_broken_settings_is_flushed_by_the_mended_ones(place: Place) -> None:
    """What they take out was let wait, since nobody could read that."""
    file = place.root / "ua-memory.toml"
    good = f'redaction.patterns = {{ house = "Elm Street [0-9]+" }}\n{file.read_text()}'
    file.write_text(f"{good}search.limit =\n")
    said = told("Stop", prompt="Remember that I live in Elm Street 5 in Leeds", last_assistant_message="Yes.")
    place.run("hook", "--client", "openclaw", daemon="off", stdin=said)
    file.write_text(good)
    assert place.run("flush", "--force", daemon="off").code == 0
    found = place.run("search", "Leeds", daemon="off").out
    assert "Leeds" in found and "Elm Street 5" not in found
    assert not [f for f in (place.root / "memory").glob("*.md") if "Elm Street 5" in f.read_text()]


@pytest.mark.parametrize("off", ["0", "false", "off", "No"])
def test_switched_off_it_costs_nothing(place: Place, off: str) -> None:
    started = time.monotonic()
    for event in (PROMPT, START):
        assert place.run("hook", stdin=event, UA_MEMORY_ENABLED=off) == Done(0, "", "")
    assert time.monotonic() - started < 5 and not (place.local / "daemon.started").exists()
    with (place.root / "ua-memory.toml").open("a") as settings:
        settings.write("\nenabled = false\n")
    assert place.run("hook", daemon="off", stdin=START) == Done(0, "", "")


def test_the_next_prompt_finds_a_daemon_that_is_warm(place: Place) -> None:
    assert "keywords only" in context(place.run("hook", stdin=PROMPT), "UserPromptSubmit")
    place.up()
    deadline = time.monotonic() + 30
    while not (place.status() or {}).get("commands"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert place.status()["warm"]  # type: ignore[index]
    assert "keywords only" not in context(place.run("hook", stdin=PROMPT), "UserPromptSubmit")


def test_a_daemon_that_hangs_costs_a_second(place: Place) -> None:
    assert place.run("daemon", "start").code == 0
    (place.local / "daemon.started").touch()  # so that none is started once this one is gone
    pid = place.up()["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        started = time.monotonic()
        assert "Alice" in context(place.run("hook", stdin=PROMPT), "UserPromptSubmit")
        assert time.monotonic() - started < fast.HOOK_TIMEOUT + 4
    finally:
        os.kill(pid, signal.SIGCONT)


def test_recall_too_goes_by_words_where_no_daemon_runs(place: Place) -> None:
    (place.local / "daemon.started").touch()
    done = place.run("recall", "heroku", "price")
    assert done.code == 0 and "Alice" in done.out and "keywords only" in done.out
    assert done.err == "ua-memory: keyword search only: no daemon runs yet\n"
    none = place.run("--bank", str(place.root), "recall", "otters", cwd=Path("/"))
    assert (none.code, none.out) == (0, "") and "by keywords" in none.err
    assert place.run("recall").code == 2
    assert place.run("recall", "heroku", "--json").json["mode"] == "hybrid"


HEAVY = {
    *("typer", "rich", "click", "chromadb", "onnxruntime", "numpy", "git", "tokenizers", "yaml", "mcp"),
    *(
        "subprocess",
        "socket",
        "ua_memory.memory",
        "ua_memory.markdown.document",
        "ua_memory.records",
        "ua_memory.store.store",
    ),
}


@pytest.mark.parametrize("event", [PROMPT, START], ids=["prompt", "start"])
def test_without_a_daemon_it_loads_nothing_heavy(place: Place, event: str) -> None:
    code = (
        "import os, sys\nfrom ua_memory.cli import fast\n"
        "fast._exit = lambda code: (print(*sorted(sys.modules), file=sys.stderr), os._exit(code))\n"
        "fast.main()"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "hook"],
        input=event, cwd=place.root, env=place.environment("off"), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "additionalContext" in done.stdout
    assert "sqlite3" in done.stderr.split() and not HEAVY & set(done.stderr.split())


@pytest.mark.parametrize("daemon", ["off", "auto"])
def test_what_is_said_gathers_and_the_end_hands_it_over(place: Place, daemon: str, tmp_path: Path) -> None:
    if daemon == "auto":
        assert place.run("daemon", "start").code == 0
    transcript = tmp_path / "talk.jsonl"
    message = {"role": "user", "content": "We agreed with Bob to review the price on 3 March 2027."}
    row = {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "5df2e272", "message": message}
    transcript.write_text(json.dumps(row) + "\n")
    known = {"transcript_path": str(transcript)}

    def happens(name: str, **more: Any) -> None:
        event = told(name, **known, **more)
        assert place.run("hook", daemon=daemon, stdin=event, CLAUDE_PID=str(os.getpid())).code == 0

    happens("SessionStart", source="startup")
    happens("SubagentStop", last_assistant_message="a sub-agent's words", agent_id="a1")
    happens("Stop", last_assistant_message="Noted: the review is on 3 March 2027, says the assistant.")
    waiting = place.run("queue", "list", "--json").json["waiting"]
    assert [(one["session"], one["turns"], one["gathers"]) for one in waiting] == [("5df2e272", 2, True)]
    assert "Bob" not in place.run("flush", daemon=daemon).out  # it goes on
    started = time.monotonic()
    happens("SessionEnd", reason="other")
    assert time.monotonic() - started < 5  # a bound for loaded machines; benchmarks/warm.py has the figure
    pending = place.local.parent / "pending"
    until(lambda: not [file for file in pending.iterdir() if file.name.startswith(("turns", "session"))], 60)
    assert "We agreed with Bob" in place.run("get", "memory/" + time.strftime("%Y-%m-%d") + ".md").out
    assert log(place) == ""


CODEX = {"transcript_path": "/s/rollout-1.jsonl"}


def event_of(name: str, client: str = "", **more: Any) -> clients.Event | None:
    return clients.parse_event(told(name, **more).encode(), client)


@pytest.mark.parametrize(
    ("name", "more", "wanted"),
    [
        ("SessionStart", {"source": "compact"}, ("claude-code", "start", "compact", "")),
        ("Stop", {"last_assistant_message": "done"}, ("claude-code", "stop", "", "done")),
        ("SubagentStop", {"agent_id": "a1"}, ("claude-code", "subagent", "", "")),
        ("PreCompact", {"trigger": "auto"}, ("claude-code", "compact", "auto", "")),
        ("SessionEnd", {"reason": "clear"}, ("claude-code", "end", "clear", "")),
        ("PreCompact", {**CODEX, "trigger": "auto"}, ("codex", "compact", "auto", "")),
        ("Interrupt", CODEX, ("codex", "stop", "", "")),
        ("SessionStart", {"timestamp": "1", "source": "startup"}, ("gemini", "start", "startup", "")),
        ("AfterAgent", {"prompt": "why?", "prompt_response": "so"}, ("gemini", "stop", "", "so")),
        ("SessionEnd", {"timestamp": "1", "reason": "exit"}, ("gemini", "end", "exit", "")),
    ],
)  # fmt: skip
def test_each_client_says_it_its_own_way(name: str, more: dict[str, str], wanted: tuple[str, ...]) -> None:
    found = event_of(name, **more)
    assert found and (found.client, found.kind, found.why, found.said) == wanted
    assert (found.session, found.cwd) == ("5df2e272", "/home/noor")


def test_others_say_who_they_are() -> None:
    found = event_of("Stop", "my-agent", last_assistant_message="x")
    assert found and found.client == "my-agent" and event_of("PostToolUse", "my-agent") is None
    for wrong in ("My Agent", "a/b", "x" * 41, "-x"):
        with pytest.raises(ValueError, match="client"):
            event_of("Stop", wrong)
    assert event_of("Stop", "gemini") is None and event_of("PreCompress", timestamp="1") is None


@pytest.mark.parametrize("name", ["UserPromptSubmit", "BeforeAgent"])
def test_events_are_read(name: str) -> None:
    event = clients.parse_event(json.dumps({"hook_event_name": name, "prompt": " é\ud83d\ude00 "}).encode())
    assert event and (event.kind, event.prompt) == ("prompt", "é😀")
    assert json.loads(clients.reply_json(event, 'a "b"\n')) == {
        "hookSpecificOutput": {"hookEventName": name, "additionalContext": 'a "b"\n'}
    }
