"""`flush`, `queue` and `stats` as people, hooks and scripts meet them, against a model on loopback."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from banks import git, repository
from daemons import forking
from fake_model import FakeModel
from scripted_model import keep
from terminal import EVERY, Done, Shell, new_shell
from test_flush import TALK, transcript

ROOT = Path(__file__).parent.parent
SECRET = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
KEEPS = {"calls": [keep("The API left Heroku, whose price doubled to $1,400.", TALK[0][3:])]}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = new_shell(tmp_path)
    (shell.cwd / "talk.jsonl").write_bytes(transcript().getvalue())
    (shell.cwd / "short.jsonl").write_bytes(transcript(context=77_419).getvalue())
    return shell


def asking(shell: Shell, fake: FakeModel, *argv: str, **more: Any) -> Done:
    return shell(*argv, ANTHROPIC_BASE_URL=fake.url, ANTHROPIC_API_KEY="sk-ant-test", **more)


# -- what it says --------------------------------------------------------------------------------------


def test_below_the_threshold_it_says_the_numbers(shell: Shell) -> None:
    done = shell.ok("flush", "short.jsonl")
    assert done.out == "77,419 tokens, flushes at 150,000: nothing to do yet. Flush anyway with --force.\n"
    assert shell.ok("flush", "short.jsonl", UA_TRUNCATION_THRESHOLD="70000").out.startswith(
        "4 turns of claude-code"
    )


def test_each_fact_gets_the_tags(shell: Shell) -> None:
    shell.ok("flush", "talk.jsonl", "--tag", "shop", "--tag", "#b")
    facts = shell.ok("list", "--tag", "shop", "--json").out
    assert facts.count('"shop"') == facts.count('"b"') == 3
    assert shell("flush", "talk.jsonl", "--dry-run", "--tag", "shop").code == 2
    assert "--again takes no" in shell("flush", "--again", "--tag", "shop").err


def test_an_interruption_says_what_waits(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: object, turns: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ua_memory.retain.flush.Flusher._propose", interrupted)
    done = shell("flush", "talk.jsonl")
    assert done.code == 130 and "interrupted; 1 conversation in the queue" in done.err


def test_why_nothing_happens_is_told(shell: Shell) -> None:
    for empty in ("", "[]"):
        assert shell.ok("flush", "-", "--force", stdin=empty).out == "The transcript contains no turns.\n"
    assert "nothing to do yet" in shell.ok("flush", "short.jsonl", "--dry-run").out
    assert (
        "is beyond the context window"
        in shell.ok("flush", "short.jsonl", UA_TRUNCATION_THRESHOLD="900000").err
    )
    with FakeModel({"calls": [("archival_memory_insert", {})]}) as fake:
        failed = asking(shell, fake, "flush", "talk.jsonl")
        assert failed.code and failed.err.count("nothing") == 1
    done = shell.ok("flush", "short.jsonl")
    assert "4 turns wait for a flush: ua-memory queue retry" in done.err
    shell.ok("queue", "retry")
    assert "an earlier flush has read" in shell.ok("flush", "talk.jsonl", "--dry-run", "--force").out


def test_what_was_kept_reads_like_a_diff(shell: Shell) -> None:
    done = shell.ok("flush", "talk.jsonl")
    first, _, path, *facts = done.out.splitlines()
    assert re.fullmatch(
        r"4 turns of claude-code session 258c7280: saved \d facts \(commit [0-9a-f]{7}\)", first
    )
    assert path == "memory/2026-11-20.md" and all(
        re.match(r"  \+ .+  \^[a-z2-7]{10}$", line) for line in facts
    )
    assert "without a model" in done.err and done.err.count("\n") == 1
    assert "an earlier flush has read all of it" in shell.ok("flush", "talk.jsonl", "--force").out
    assert "We leave Heroku" in shell.ok("search", "why leave Heroku").out
    shell.ok("undo")
    assert (
        not (shell.cwd / "memory/2026-11-20.md").exists()
        or "Heroku" not in (shell.cwd / "memory/2026-11-20.md").read_text()
    )
    assert "without a model" not in shell.ok("flush", "short.jsonl", "--force").err


def test_what_an_undone_flush_had_read_is_read_again_by_force_alone(shell: Shell) -> None:
    shell.ok("flush", "talk.jsonl")
    shell.ok("undo")
    done = shell.ok("flush", "talk.jsonl", UA_TRUNCATION_THRESHOLD="1000")
    assert "kept" not in done.out
    grown = transcript(*TALK, context=190_000).getvalue()
    done = shell.ok("flush", stdin=grown)
    assert "an earlier flush has read" in done.out and "was undone; --force reads again" in done.err
    with FakeModel(KEEPS, {"text": "done"}) as fake:
        assert "saved 1 fact" in asking(shell, fake, "flush", "--force", stdin=grown).out
        assert "an earlier flush has read" in asking(shell, fake, "flush", "--force", stdin=grown).out
    done = shell.ok("flush", "talk.jsonl", "--force")
    assert "an earlier flush has read" in done.out and "undone" not in done.err
    assert shell.ok("queue", "list").out == "The queue is empty.\n"


@pytest.mark.parametrize("argv", [("flush",), ("flush", "-")])
def test_standard_input_is_a_transcript(shell: Shell, argv: tuple[str, ...]) -> None:
    assert shell.ok(*argv, stdin=transcript().getvalue()).out.startswith("4 turns of claude-code")


def test_nothing_given_is_what_waits(shell: Shell) -> None:
    assert shell.ok("flush").out == "Nothing to flush: no conversation is queued.\n"
    shell.terminals = EVERY
    assert shell.ok("flush").out == "Nothing to flush: no conversation is queued.\n"


def test_client_and_session_may_be_named(shell: Shell) -> None:
    shell.ok("flush", "talk.jsonl", "--client", "my-agent", "--session", "run 7")
    assert "· my-agent · session run-7" in (shell.cwd / "memory/2026-11-20.md").read_text()
    assert shell.ok("flush", "talk.jsonl", "--force").out.startswith("4 turns of claude-code")


def test_switched_off_it_says_so_and_reads_nothing(shell: Shell) -> None:
    done = shell.ok("flush", "no such file", "--force", UA_MEMORY_ENABLED="0")
    assert done.out == "" and "switched off" in done.err
    off = shell.ok("queue", "retry", UA_MEMORY_ENABLED="0")
    assert off.out == "" and "switched off" in off.err
    assert shell.ok("flush", "--detach", UA_MEMORY_ENABLED="0", stdin=transcript().getvalue()).out == ""
    assert shell.ok("queue", "list").out == "The queue is empty.\n"


def test_what_cannot_be_read(shell: Shell) -> None:
    assert shell("flush", "gone.jsonl").code == 4
    assert shell("flush", "memory").code == 2
    assert shell("flush", "--force", stdin='{"hello": 1}\n').code == 9
    assert shell("flush", "talk.jsonl", UA_TRUNCATION_THRESHOLD="many").code == 9


def test_secrets_are_taken_out_and_told(shell: Shell) -> None:
    done = shell.ok(
        "flush", "--force", stdin=transcript(f"p: From now on we use the token {SECRET}.").getvalue()
    )
    assert "removed" in done.err and SECRET not in done.out + done.err
    assert SECRET not in "".join(p.read_text() for p in (shell.cwd / "memory").rglob("*.md"))


def test_a_dry_run_shows_what_and_how_much(shell: Shell) -> None:
    done = shell.ok("flush", "talk.jsonl", "--dry-run", ANTHROPIC_API_KEY="sk-ant-test")
    assert "would be saved without a model:" in done.out and re.search(
        r"about \$0\.\d\d, prices of", done.out
    )
    assert (
        shell.ok("queue", "list").out == "The queue is empty.\n"
        and not (shell.cwd / "memory/2026-11-20.md").exists()
    )
    with FakeModel() as fake:
        assert "no cost" in asking(shell, fake, "flush", "talk.jsonl", "--dry-run").out and fake.bodies == []


def test_a_dry_run_explains_why_a_sentence_is_not_saved(shell: Shell) -> None:
    kept = "We moved the shop database to Postgres because of its JSON type."
    (shell.cwd / "talk.md").write_text(
        f"**User:** hi there! {kept} What is the port? Port: 6543. It may be nice to look at it today.\n\n"
        "**Assistant:** ok, I will look at it.\n",
        "utf-8",
    )
    *lines, last = shell.ok("flush", "talk.md", "--dry-run", "--force", "--explain").out.splitlines()[1:]
    assert lines == [
        f"  + {kept}",
        "  - hi there!  (a greeting, a pleasantry or a line of a log)",
        "  - What is the port?  (a question)",
        "  - Port: 6543.  (2 words, fewer than 4)",
    ]
    assert re.fullmatch(r"  - It may be nice .*  \(score 0\.\d\d, less than 0\.5\d\)", last)
    assert "--explain belongs to --dry-run" in shell("flush", "talk.md", "--explain").err


# -- a model -------------------------------------------------------------------------------------------


def test_a_model_phrases_and_the_ledger_counts(shell: Shell) -> None:
    assert shell.ok("stats", "--cost").out == "No model has been called yet.\n"
    with FakeModel(KEEPS, {"text": "done"}) as fake:
        done = asking(shell, fake, "flush", "talk.jsonl")
    assert (
        done.code == 0
        and "+ The API left Heroku, whose price doubled to $1,400." in done.out
        and done.err == ""
    )
    spent = shell.ok("stats", "--cost", "--json").json
    assert spent["purposes"]["flush"]["requests"] == 2 and spent["total"]["failed"] == 0
    table = shell.ok("stats", "--cost").out
    assert "flush" in table and "2026-11-21" in table and "Limits: $3.00 a run, $15.00 a day" in table
    assert shell.ok("stats", "--cost", "--since", "2027").out == "No model has been called yet.\n"
    (tmp := shell.cwd / "ua-memory.toml").write_text(
        tmp.read_text() + "\n[limits]\nrun_usd = 0.0\nday_usd = 0.0\n"
    )
    more = transcript(*TALK, "p: Tariq owns the tile server.", context=190_000).getvalue()
    refused = shell("flush", stdin=more, ANTHROPIC_API_KEY="sk-ant-test")
    assert refused.code == 19 and "limits.run_usd" in refused.err and "2 turns wait" not in refused.out


def test_what_a_model_only_talks_about_is_kept_in_the_speakers_own_words(shell: Shell) -> None:
    with FakeModel({"text": "What a nice talk about Heroku!"}) as fake:
        done = asking(shell, fake, "flush", "talk.jsonl")
    assert done.code == 0 and "made no valid call for 4 of 4 turns" in done.out + done.err
    assert "We leave Heroku" in done.out and "nice talk" not in done.out
    assert shell.ok("queue", "list").out == "The queue is empty.\n"


def test_a_new_bank_s_core_grows_by_a_flush(shell: Shell) -> None:
    value = {"section": "Projects", "value": "The API runs on Fly.io."}
    replies = [
        {"calls": [("get_core_memory_blocks", {})]},
        {"calls": [("core_memory_replace", value)]},
        {"text": "done"},
    ]
    with FakeModel(*replies) as fake:
        assert asking(shell, fake, "flush", "talk.jsonl").code == 0
    assert shell.ok("core", "get", "Projects").out == "The API runs on Fly.io.\n"


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("replies", "code"),
    [
        ([{"error": 401, "type": "authentication_error"}], 15),
        ([{"error": 400, "type": "invalid_request_error"}], 16),
        ([{"error": 429, "type": "rate_limit_error", "retry_after": 0}], 14),
        ([{"error": 429, "type": "rate_limit_error", "retry_after": 86400}], 14),
        ([{"error": 529, "type": "overloaded_error", "retry_after": 0}], 14),
        ([KEEPS, {"error": 529, "type": "overloaded_error", "retry_after": 0}], 14),
        ([{**KEEPS, "cut": 3}], 14),
        ([{**KEEPS, "short": 3}], 14),
        ([{**KEEPS, "broken": "overloaded_error"}], 14),
        ([{"garbage": "<html>not today</html>"}], 14),
        ([{"text": "no", "stop": "refusal", "details": {"category": "cyber"}}], 17),
        ([{"calls": [("nonsense", {})]}], 18),
        ([{"calls": [("archival_memory_insert", '{"content": "half')]}], 18),
        ([{"calls": [("get_core_memory_blocks", {})]}], 18),
        (2 * [KEEPS, {"text": "and on", "stop": "max_tokens"}], 18),
    ],
    ids=[
        "401", "400", "429", "429 for a day", "529", "529 half-way", "cut", "short", "broken", "garbage",
        "refusal", "nonsense", "no JSON", "endless", "cut off",
    ],
)  # fmt: skip
def test_every_way_a_model_fails(shell: Shell, replies: list[dict[str, Any]], code: int) -> None:
    before = shell.ok("log", "--json").json
    with FakeModel(*replies) as fake:
        failed = asking(shell, fake, "flush", "talk.jsonl")
        assert failed.code == code, failed.err
        assert "4 turns wait" in failed.err and "ua-memory queue retry" in failed.err and failed.out == ""
        again = asking(shell, fake, "queue", "retry")
        assert again.code == code
    assert shell.ok("log", "--json").json == before and not (shell.cwd / "memory/2026-11-20.md").exists()
    (waiting,) = shell.ok("queue", "list", "--json").json["waiting"]
    assert waiting["tries"] == 2 and waiting["reason"] and waiting["turns"] == 4
    assert "failed 2 times" in shell.ok("queue", "list").out
    assert "4 turns of claude-code" in shell.ok("status").out
    with FakeModel(KEEPS, {"text": "done"}) as fake:
        assert asking(shell, fake, "queue", "retry").code == 0
    assert shell.ok("status", "--json").json["waiting"] == []
    assert shell.ok("log").out.count("Saved 1 fact from claude-code, session 258c7280") == 1


def test_nobody_there(shell: Shell) -> None:
    failed = shell("flush", "talk.jsonl", ANTHROPIC_BASE_URL="http://127.0.0.1:9", ANTHROPIC_API_KEY="x")
    assert failed.code == 14 and "4 turns wait" in failed.err
    assert shell.ok("queue", "retry").out.startswith("4 turns of claude-code")


def test_an_error_is_json_too(shell: Shell) -> None:
    with FakeModel({"error": 401, "type": "authentication_error"}) as fake:
        failed = asking(shell, fake, "flush", "talk.jsonl", "--json")
    assert failed.out == "" and json.loads(failed.err)["error"]["type"] == "KeyRejected"


def test_a_banks_file_configures_no_model(shell: Shell) -> None:
    with FakeModel() as fake:
        text = f'\n[anthropic]\nbase_url = "{fake.url}"\n[flush]\nendpoint = "{fake.url}"\n'
        (shell.cwd / "ua-memory.toml").write_text((shell.cwd / "ua-memory.toml").read_text() + text)
        shell.ok("flush", "talk.jsonl", UA_MEMORY_MODEL="claude-sonnet-5-5")
        assert fake.bodies == [] and fake.headers == []


def test_dropping_what_waits(shell: Shell) -> None:
    shell("flush", "talk.jsonl", ANTHROPIC_BASE_URL="http://127.0.0.1:9")
    (waiting,) = shell.ok("queue", "list", "--json").json["waiting"]
    assert shell.ok("queue", "drop", waiting["key"]).out == f"Discarded 4 turns of {waiting['key']}\n"
    assert shell("queue", "drop", waiting["key"]).code == 4 and shell.ok("flush").out.startswith("Nothing")


def test_stats(shell: Shell) -> None:
    shell.ok("insert", "Alice pays", "--tag", "money")
    shell.ok("flush", "talk.jsonl")
    out = shell.ok("stats").out
    assert "facts in" in out and "2026-11" in out and "claude-code" in out and "flush" in out
    assert shell.ok("stats", "--json").json["ops"] == {"flush": 1, "insert": 1, "init": 1}


# -- a terminal, and the end of one --------------------------------------------------------------------


def test_colours_on_a_terminal_and_no_control_characters(shell: Shell) -> None:
    shell.terminals = EVERY
    said = transcript("p: I want \x1b[31mred\x07 buttons from now on.").getvalue()
    done = shell.ok("flush", "-", "--force", stdin=said)
    assert "\x1b[32m  + " in done.out and "\x07" not in done.out and "\x1b[31mred" not in done.out


def process(shell: Shell, *argv: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """A real process with next to nothing in its environment, as cron has it."""
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-m", "ua_memory", "--bank", str(shell.cwd), *argv]
    options = {"stdin": subprocess.DEVNULL, "cwd": "/", "env": env, **more}
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, **options)


def begun_as_one(shell: Shell, *argv: str, stdin: str = "") -> Done:
    """The same, without the time that a process takes to start."""
    return forking().run(["--bank", str(shell.cwd), *argv], Path("/"), {"PATH": "/usr/bin:/bin"}, stdin)


def flushed(shell: Shell, seconds: float = 30) -> str:
    """The log, once a flush in the background has come to its end."""
    log = shell.cwd / ".git/ua-memory/local/flush.log"
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if log.exists() and "commit" in log.read_text() and "queue is empty" in shell.ok("status").out:
            return log.read_text()
        time.sleep(0.1)
    raise AssertionError(log.read_text() if log.exists() else "no log")


def test_detached_it_hands_over_and_leaves(shell: Shell) -> None:
    path = shell.cwd / "talk.jsonl"
    done = process(shell, "flush", str(path), "--detach")
    assert done.returncode == 0 and done.stdout.startswith("4 turns queued"), done.stderr
    path.unlink()  # clients do
    assert "4 turns of claude-code session 258c7280" in flushed(shell)
    assert "We leave Heroku" in (shell.cwd / "memory/2026-11-20.md").read_text()


def test_detached_below_the_threshold_starts_nothing(shell: Shell) -> None:
    done = begun_as_one(shell, "flush", str(shell.cwd / "short.jsonl"), "--detach")
    assert "nothing to do yet" in done.out and not (shell.cwd / ".git/ua-memory/local/flush.log").exists()


def test_detached_through_a_pipe_as_json(shell: Shell) -> None:
    talk = (shell.cwd / "talk.jsonl").read_text()
    told = begun_as_one(shell, "flush", "--detach", "--json", stdin=talk).json
    assert told["turns"] == 4 and told["waiting"] == 1 and told["log"].endswith("flush.log")
    flushed(shell)


def test_detached_from_a_git_hook(shell: Shell, tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    hook = repo / ".git/hooks/post-commit"
    command = f"{sys.executable} -m ua_memory --bank {shell.cwd} flush --detach {shell.cwd}/talk.jsonl"
    line = f"PYTHONPATH={ROOT} {command}"
    hook.write_text(f"#!/bin/sh\n{line}\n")
    hook.chmod(0o755)
    git(repo, "commit", "-q", "--allow-empty", "-m", "x")
    flushed(shell)
    assert git(repo, "rev-list", "--count", "--all").strip() == "1"


def test_detached_it_outlives_its_terminal(shell: Shell) -> None:
    """What zshexit does: the shell goes, its terminal with it, and SIGHUP comes."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ["PYTHONPATH"] = str(ROOT)
        words = [
            "-m",
            "ua_memory",
            "--bank",
            str(shell.cwd),
            "flush",
            str(shell.cwd / "talk.jsonl"),
            "--detach",
        ]
        os.execv(sys.executable, [sys.executable, *words])
    said = b""
    while b"queued" not in said:
        said += os.read(terminal, 1000)
    os.close(terminal)
    os.waitpid(child, 0)
    flushed(shell)
