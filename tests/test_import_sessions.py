"""Sessions that lie on the machine: found, told and flushed; each turn once, however often and wherever."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import subprocess
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fake_model import FakeModel
from scripted_model import keep
from terminal import EVERY, Shell, new_shell
from test_flush import ID, TALK, transcript

DATA = Path(__file__).parent / "transcripts/data"
OTHER = "b" * 8 + ID[8:]
THIRD = "c" * 8 + ID[8:]
ASKED, SAID = (
    "p: We drop Redis for Valkey from today, because its licence changed.",
    "Valkey it is, from now on.",
)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return new_shell(tmp_path)


def put(shell: Shell, path: str, data: bytes) -> Path:
    file = shell.home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def claude(shell: Shell, *said: str, name: str = ID, folder: str = "-home-x", after: str = "") -> Path:
    """A session of Claude Code; with `after`, one that begins with a copy of that file."""
    file = shell.home / f".claude/projects/{folder}/{name}.jsonl"
    data = transcript(*said, name=name).getvalue()
    if after:
        rows = [json.loads(line) for line in Path(after).read_bytes().splitlines()]
        mine = [json.loads(line) for line in data.splitlines()]
        mine[0]["parentUuid"] = rows[-1]["uuid"]
        rows = [{**row, "sessionId": name} for row in rows] + mine
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return put(shell, str(file.relative_to(shell.home)), data)


def hermes(shell: Shell, *rows: tuple[str, str, str], end: str = "", **sessions: str) -> Path:
    """A database of Hermes: rows of session, role and words; `sessions` are ids with their parents'."""
    path = put(shell, ".hermes/state.db", b"")
    there = sqlite3.connect(path)
    there.execute(
        "CREATE TABLE sessions (id, source, parent_session_id, started_at, cwd, model_config, end_reason)"
    )
    there.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id, role, content, tool_calls,"
                  " tool_call_id, timestamp, active DEFAULT 1, compacted DEFAULT 0)")  # fmt: skip
    begun = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
    for n, (id, parent) in enumerate(sessions.items()):
        config = json.dumps({"_delegate_from": parent} if end == "delegated" else {})
        row = (id, "cli", parent, begun + n, "/home/x", config if parent else "{}", "")
        there.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    for n, (id, role, words) in enumerate(rows):
        row = (id, role, words, begun + 60 * n)
        there.execute("INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, ?)", row)
    there.commit()
    there.close()
    return path


def opencode(shell: Shell, *rows: tuple[str, str, str], **sessions: str) -> Path:
    """A database of OpenCode: rows of session, role and words; `sessions` are ids with their parents'."""
    path = put(shell, ".local/share/opencode/opencode.db", b"")
    begun = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp() * 1000
    with closing(sqlite3.connect(path)) as there, there:
        there.execute("CREATE TABLE session (id, slug, directory, parent_id, title, revert, time_created)")
        there.execute("CREATE TABLE message (id, session_id, time_created, data)")
        there.execute("CREATE TABLE part (id, message_id, session_id, data)")
        for id, parent in sessions.items():
            row = (id, "calm-wizard", "/home/x", parent or None, "A talk", None, begun)
            there.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        for n, (id, role, words) in enumerate(rows):
            said = json.dumps({"type": "text", "text": words})
            message = (f"msg_{n:02}", id, begun + 60_000 * n, json.dumps({"role": role}))
            there.execute("INSERT INTO message VALUES (?, ?, ?, ?)", message)
            there.execute("INSERT INTO part VALUES (?, ?, ?, ?)", (f"prt_{n:02}", f"msg_{n:02}", id, said))
    return path


def openclaw(shell: Shell, *, packed: tuple[bytes, ...] = ()) -> Path:
    """A database of OpenClaw: a person's session, and a sub-agent's."""
    path = put(shell, ".openclaw/agents/main/agent/openclaw-agent.sqlite", b"")
    there = sqlite3.connect(path)
    there.execute("CREATE TABLE session_windows (session_id, session_key, spawned_by)")
    there.execute("CREATE TABLE session_nodes (session_key, spawned_by)")
    there.execute("CREATE TABLE transcript_events (session_id, seq, event_json, event_zstd, event_utf8_bytes,"
                  " created_at)")  # fmt: skip
    at = datetime(2026, 11, 20, 12, tzinfo=UTC)
    for id, key in (
        ("oc-1", "agent:main:main"),
        ("oc-2", "agent:main:subagent:9"),
        ("oc-3", "agent:main:cron:1"),
    ):
        there.execute("INSERT INTO session_windows VALUES (?, ?, NULL)", (id, key))
        message = {
            "role": "user",
            "content": "We drop Redis for Valkey from today, because its licence changed.",
        }
        events: list[Any] = [
            {"type": "session", "version": 4, "id": id, "timestamp": at.isoformat(), "cwd": "/home/x/ws"},
            {"type": "message", "id": f"{id}-aaaaaaaaaaaa", "parentId": None, "timestamp": at.isoformat(),
             "message": message},
        ]  # fmt: skip
        for seq, event in enumerate(events):
            text = json.dumps(event)
            zipped = packed[seq] if packed and id == "oc-1" else None
            row = (id, seq, None if zipped else text, zipped, len(text), at.timestamp() * 1000)
            there.execute("INSERT INTO transcript_events VALUES (?, ?, ?, ?, ?, ?)", row)
    there.commit()
    there.close()
    return path


def found(shell: Shell, *more: str, **env: str) -> Any:
    return shell.ok("import", "sessions", "--json", *more, **env).json


def new(done: Any) -> dict[str, int]:
    return {each["session"]: each["new"] for each in done["sessions"]}


def facts(shell: Shell) -> list[str]:
    files = sorted((shell.cwd / "memory").glob("*.md"))
    return [line for file in files for line in file.read_text().splitlines() if line.startswith("- ")]


# -- what is found ---------------------------------------------------------------------------------------


def test_the_sessions_of_all_clients_are_found_and_no_machines(shell: Shell) -> None:
    at = "2026-11-20T10:00:00Z"
    data = (DATA / "codex.jsonl").read_bytes()
    claude(shell)
    put(shell, f".claude/projects/-home-x/{ID}/subagents/agent-a1.jsonl", b"{}")
    put(shell, ".claude/projects/-home-x/agent-a2.jsonl", (DATA / "claude-code-agent.jsonl").read_bytes())
    put(shell, ".codex/sessions/2026/11/20/rollout-1.jsonl", data)
    put(shell, ".pi/agent/sessions/--home-x--/1_a.jsonl", (DATA / "pi-v3.jsonl").read_bytes())
    head = json.dumps({"type": "session", "version": 3, "id": "old-1", "timestamp": at, "cwd": "/x"})
    said = {"type": "message", "id": "a1", "parentId": None, "timestamp": at}
    said["message"] = {"role": "user", "content": "The choir sings on 3 May."}
    put(
        shell,
        ".clawdbot/agents/main/sessions/a.jsonl.reset.2026-11-20",
        f"{head}\n{json.dumps(said)}".encode(),
    )
    put(shell, ".clawdbot/agents/main/sessions/b.jsonl", f"{head}\n{json.dumps(said)}".encode())
    index = {"agent:main:cron:7": {"sessionId": "b"}}
    put(shell, ".clawdbot/agents/main/sessions/sessions.json", json.dumps(index).encode())
    hermes(shell, ("h1", "user", ASKED), h1="")
    openclaw(shell)
    done = found(shell, "--all", "--dry-run")
    clients = [each["client"] for each in done["sessions"]]
    assert sorted(clients) == ["claude-code", "clawdbot", "codex", "hermes", "openclaw", "pi"]
    assert done["leftAside"] == {"sub-agent": 2, "cron": 2} and done["problems"] == []
    assert not facts(shell) and done["flushed"] == []


def test_a_fact_has_the_day_and_the_speaker_of_its_session(shell: Shell) -> None:
    claude(shell)
    foretold = found(shell, "--dry-run")["preview"]
    done = found(shell)
    assert new(done) == {ID: 4} and len(done["flushed"]) == 1 and len(facts(shell)) == foretold
    text = (shell.cwd / "memory/2026-11-20.md").read_text()
    assert "## 14:30 · claude-code · session 258c7280" in text and f"through: claude-code/{ID}/" in text
    assert "origin: person" in text and '"cwd:/home/x"' in text


def test_again_finds_nothing_new(shell: Shell) -> None:
    file = claude(shell)
    found(shell)
    kept = facts(shell)
    again = found(shell)
    assert [each["flushed"] for each in again["sessions"]] == [4] and not again["flushed"]
    shell.ok("flush", str(file), "--force")
    assert facts(shell) == kept


def test_what_a_flush_has_read_is_not_read_again_and_what_was_undone_neither(shell: Shell) -> None:
    file = claude(shell, *TALK)
    shell.ok("flush", str(file))
    whole = transcript(*TALK, ASKED, SAID).getvalue()
    file.write_bytes(whole)
    done = found(shell)
    assert new(done) == {ID: 2} and done["flushed"][0]["turns"] == 2
    assert sum("Valkey" in line for line in facts(shell)) >= 1
    shell.ok("undo")
    assert new(found(shell)) == {ID: 0}


def test_a_fork_is_kept_once(shell: Shell) -> None:
    first = claude(shell, *TALK)
    claude(shell, ASKED, SAID, name=OTHER, after=str(first))
    first.write_bytes(transcript(*TALK, "p: I prefer tabs.", "Tabs it is.").getvalue())
    done = found(shell)
    assert new(done) == {ID: 6, OTHER: 2}
    assert len(facts(shell)) == len({line.partition("^")[0] for line in facts(shell)})
    third = claude(shell, "p: Never deploy on a Friday.", "Noted.", name=THIRD, after=str(first))
    assert new(found(shell)) == {ID: 0, OTHER: 0, THIRD: 2}
    third.unlink()


# -- databases -------------------------------------------------------------------------------------------


def test_what_a_compaction_of_hermes_copied_into_a_second_session_is_kept_once(shell: Shell) -> None:
    hermes(
        shell, ("h1", "user", ASKED[3:]), ("h1", "assistant", SAID), ("h2", "user", "[CONTEXT COMPACTION] …"),
        ("h2", "user", ASKED[3:]), ("h2", "assistant", SAID), ("h2", "user", "I prefer tabs."),
        h1="", h2="h1",
    )  # fmt: skip
    assert new(found(shell)) == {"h1": 2, "h2": 1}
    assert new(found(shell)) == {"h1": 0, "h2": 0}


def test_what_a_client_told_itself_is_not_kept_again_from_its_database(shell: Shell) -> None:
    event = {"session_id": "h1", "cwd": "/home/x", "prompt": ASKED[3:], "last_assistant_message": SAID}
    for name in ("Stop", "SessionEnd"):
        told = json.dumps({"hook_event_name": name, **event})
        shell("hook", "--client", "hermes", stdin=told)
    shell.time = datetime(2026, 11, 21, 9, 10, tzinfo=UTC)
    hermes(shell, ("h1", "user", ASKED[3:]), ("h1", "assistant", SAID), h1="")
    done = found(shell)
    assert new(done) == {"h1": 0} and done["sessions"][0]["waiting"] == 2
    shell.ok("flush")
    kept = facts(shell)
    assert new(found(shell)) == {"h1": 0} and facts(shell) == kept
    (shell.home / ".hermes/state.db").unlink()
    rows = [
        ("h1", "user", ASKED[3:]),
        ("h1", "assistant", SAID),
        ("h1", "user", "I prefer tabs over spaces."),
    ]
    hermes(shell, *rows, h1="")
    assert new(found(shell)) == {"h1": 1}


def test_sub_agents_of_hermes_are_left_aside(shell: Shell) -> None:
    hermes(shell, ("h1", "user", ASKED), ("h2", "user", SAID), end="delegated", h1="", h2="h1")
    done = found(shell)
    assert new(done) == {"h1": 1} and done["leftAside"] == {"sub-agent": 1}


def test_sessions_of_opencode_are_read_once_and_its_sub_agents_left_aside(shell: Shell) -> None:
    event = {"session_id": "o1", "cwd": "/home/x", "prompt": ASKED[3:], "last_assistant_message": SAID}
    for name in ("Stop", "SessionEnd"):
        told = json.dumps({"hook_event_name": name, **event})
        shell("hook", "--client", "opencode", stdin=told)
    shell.ok("flush")
    rows = [("o1", "user", f'"{ASKED[3:]}"'), ("o1", "assistant", SAID), ("o2", "user", "Read all files.")]
    opencode(shell, *rows, ("o3", "user", "I prefer tabs over spaces."), o1="", o2="o1", o3="")
    done = found(shell, "--client", "opencode")
    assert new(done) == {"o1": 0, "o3": 1} and done["leftAside"] == {"sub-agent": 1}
    assert new(found(shell)) == {"o1": 0, "o3": 0} and "".join(facts(shell)).count("prefer tabs") == 1


@pytest.mark.skipif(not shutil.which("zstd"), reason="there is no zstd here")
def test_packed_lines_of_openclaw_are_unpacked(shell: Shell) -> None:
    plain = openclaw(shell)
    query = "SELECT event_json FROM transcript_events WHERE session_id = 'oc-1' ORDER BY seq"
    with closing(sqlite3.connect(plain)) as there:
        lines = [row[0].encode() for row in there.execute(query)]
    plain.unlink()
    openclaw(shell, packed=tuple(_zipped(line) for line in lines))
    assert new(found(shell)) == {"oc-1": 1} and "Valkey" in facts(shell)[0]
    plain.unlink()
    openclaw(shell, packed=(b"\x28\xb5\x2f\xfdno", b"\x28\xb5\x2f\xfdno"))
    assert "damaged" in found(shell)["problems"][0]


def _zipped(line: bytes) -> bytes:
    return subprocess.run(["zstd", "-c"], input=line, capture_output=True, check=True).stdout


# -- who is asked for ------------------------------------------------------------------------------------


def test_since_client_project_and_path_choose(shell: Shell, tmp_path: Path) -> None:
    claude(shell)
    hermes(shell, ("h1", "user", ASKED), h1="")
    old = claude(shell, name=OTHER, folder="-old")
    text = old.read_bytes().replace(b"2026-11-20", b"2026-09-20").replace(b"/home/x", b"/home/y/api")
    old.write_bytes(text)
    done = found(shell, "--dry-run")
    assert set(new(done)) == {ID, "h1"} and done["older"] == 1
    assert set(new(found(shell, "--dry-run", "--since", "2026-09-01"))) == {ID, OTHER, "h1"}
    assert set(new(found(shell, "--dry-run", "--all", "--client", "hermes"))) == {"h1"}
    for name in ("API", "/home/y"):
        assert set(new(found(shell, "--dry-run", "--all", "--project", name))) == {OTHER}
    copied = tmp_path / "copied.jsonl.gz"
    copied.write_bytes(gzip.compress(text))
    assert set(new(found(shell, str(copied), "--all", "--dry-run"))) == {OTHER}
    moved = found(shell, "--all", "--dry-run", CLAUDE_CONFIG_DIR=str(tmp_path), HERMES_HOME="~/nowhere")
    assert moved["sessions"] == []


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("sessions", "--client", "vim"), "unknown client 'vim'"),
        (("sessions", "--client", "gemini"), "ua-memory install gemini"),
        (("sessions", "--days", "3"), "--days does not apply to sessions"),
        (("sessions", "--all", "--since", "3d"), "cannot be used together"),
        (("sessions", "--since", "soon"), "is not a valid date"),
        (("sessions", "/nowhere"), "no such file or folder"),
        (("openclaw",), "PATH is missing"),
        (("markdown", ".", "--project", "x"), "--project does not apply to markdown"),
    ],
)
def test_what_says_nothing_is_refused(shell: Shell, argv: tuple[str, ...], why: str) -> None:
    done = shell("import", *argv)
    assert done.code and why in done.err


def test_where_flushes_are_off_nothing_is_read(shell: Shell) -> None:
    claude(shell)
    done = found(shell, UA_MEMORY_ENABLED="0")
    assert done["sessions"] == [] and "switched off" in done["notes"][0] and not facts(shell)


def test_a_session_that_goes_on_is_left_to_its_hooks_until_it_ends(shell: Shell) -> None:
    file = claude(shell)
    event = {"session_id": ID, "cwd": "/home/x", "transcript_path": str(file)}
    shell("hook", stdin=json.dumps({"hook_event_name": "Stop", **event, "last_assistant_message": TALK[-1]}))
    done = found(shell)
    assert not done["sessions"] and done["going"] == [{"client": "claude-code", "session": ID}]
    shell("hook", stdin=json.dumps({"hook_event_name": "SessionEnd", **event}))
    assert found(shell)["sessions"][0]["waiting"] == 4
    assert found(shell)["sessions"][0]["flushed"] == 4 and facts(shell)


# -- with a model, and told ------------------------------------------------------------------------------


def test_a_model_reads_and_where_it_fails_the_rest_is_still_new(shell: Shell) -> None:
    claude(shell)
    claude(shell, ASKED, SAID, name=OTHER)
    key = {"ANTHROPIC_API_KEY": "sk-ant-test"}
    with FakeModel({"error": {"status": 401, "type": "authentication_error", "message": "no"}}) as fake:
        failed = shell("import", "sessions", "--json", ANTHROPIC_BASE_URL=fake.url, **key)
    assert failed.code and "wait" in failed.err
    left = found(shell, "--dry-run", ANTHROPIC_BASE_URL="http://127.0.0.1:9", **key)
    assert sorted((each["waiting"], each["new"]) for each in left["sessions"]) in (
        [(0, 2), (4, 0)],
        [(0, 4), (2, 0)],
    )
    assert left["estimate"]["tokens"] > 1000
    shell.ok("queue", "drop", shell.ok("queue", "list", "--json").json["waiting"][0]["key"])
    keeps = {"calls": [keep("The API left Heroku, whose price doubled to $1,400.", TALK[0][3:])]}
    with FakeModel(keeps, {"text": "done"}) as fake:
        done = found(shell, ANTHROPIC_BASE_URL=fake.url, **key)
    assert done["flushed"] and all(each["model"] for each in done["flushed"])


def test_what_was_found_reads_like_a_table(shell: Shell) -> None:
    claude(shell)
    hermes(shell, ("h1", "user", ASKED[3:]), ("h1", "assistant", SAID), h1="")
    shell.terminals, shell.width = EVERY, 100
    out = shell.ok("import", "sessions", TERM="dumb").out.splitlines()
    assert out[0] == "Sessions since 2026-10-22 in ~/.claude, ~/.hermes"
    assert out[2:6] == [
        "  client       project  sessions  turns  flushed  new  days",
        "  claude-code  x               1      4        -    4  2026-11-20",
        "  hermes       x               1      2        -    2  2026-11-20",
        "  in all                       2      6        -    6  2026-11-20",
    ]
    assert out[-1].startswith("Kept ") and out[-1].endswith(" of 6 turns in 2 sessions.")
    assert "hermes x h1: 2 turns, saved" in out[-3] + out[-2]
    again = shell.ok("import", "sessions").out
    assert "Nothing new" in again
