"""The command line as people and scripts meet it: what it prints, where, and the exit codes."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
import time
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from banks import git, repository
from daemons import Place
from terminal import EVERY, Shell, new_shell

from ua_memory.caller import origin_of
from ua_memory.cli.app import VERBS, Verbs, command_line
from ua_memory.errors import EXIT_CODES, Usage
from ua_memory.index.filters import parse_day
from ua_memory.text import dates
from ua_memory.views import output as boundary
from ua_memory.views.hits import match_positions, shown_lines
from ua_memory.views.output import Screen, ago, cell_width, day_title, dumps, line_breaks, printable

ANSI = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
SECRET = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return new_shell(tmp_path)


# -- a bank is found, or one is told how to make it ----------------------------------------------------


def test_init_says_what_it_made_and_a_second_run_changes_nothing(tmp_path: Path) -> None:
    shell = Shell(tmp_path, tmp_path)
    first = shell.ok("init", "notes")
    assert "MEMORY.md" in first.out and "Next:" in first.out
    assert f"cd {tmp_path / 'notes'}" in first.out
    assert "  cd " not in shell.ok("init", ".").out
    before = {p: p.read_bytes() for p in (tmp_path / "notes").iterdir() if p.is_file()}
    again = shell.ok("init", "notes")
    assert "already" in again.out and "Next" not in again.out
    assert before == {p: p.read_bytes() for p in (tmp_path / "notes").iterdir() if p.is_file()}


def test_init_without_a_path_makes_the_default_bank(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    Shell(tmp_path, tmp_path / "work").ok("init")
    assert (tmp_path / "ua-memory" / "MEMORY.md").exists()


def test_who_finds_nothing_outside_of_every_bank_is_told_which_one_was_searched(tmp_path: Path) -> None:
    bank, outside = tmp_path / "ua-memory", tmp_path / "project"
    outside.mkdir()
    shell = Shell(tmp_path, outside, terminals=EVERY)
    shell.ok("init")
    told = f"ua-memory: no bank here or above; using {bank}\n"
    shell.ok("insert", "Alice drinks tea")
    assert told in shell.ok("search", "zebra").err and told not in shell.ok("search", "tea").err
    assert told not in Shell(tmp_path, bank, terminals=EVERY).ok("search", "zebra").err
    assert told not in Shell(tmp_path, outside).ok("search", "zebra").err, "a program"


def test_init_says_that_it_makes_the_default_bank_and_how_to_get_another(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    shell = Shell(tmp_path, project)
    for _ in range(2):
        done = shell.ok("init")
        assert "default bank" in done.err and "ua-memory init ." in done.err
    assert "default bank" in shell.ok("init", "--json").json["notes"][0]
    assert "default" not in shell.ok("init", ".").err + shell.ok("init").err
    assert "default" not in Shell(tmp_path, tmp_path / "ua-memory").ok("init").err


def test_init_tells_what_it_does_not_read_and_the_command_that_includes_it(tmp_path: Path) -> None:
    vault = tmp_path / "my notes"
    shell = Shell(tmp_path, vault)
    files = "one.md Daily/2026-11-21.md memory/2026-11-20.md MEMORY.md node_modules/b.md .obsidian/x.md a.txt"
    for path in files.split():
        shell.write(path, "- the invoice goes to Elm Street\n")
    done = shell.ok("init", ".")
    assert "2 markdown files are outside of memory/" in done.err
    assert done.err.endswith("ua-memory config set extraPaths '[\".\"]'\n")
    elsewhere = Shell(tmp_path, tmp_path).ok("init", "my notes").err
    assert f"ua-memory --bank '{vault}' config set extraPaths" in elsewhere
    shell.ok("config", "set", "extraPaths", '["."]')
    assert "outside" not in shell.ok("init", ".").err
    found = [hit["path"] for hit in shell.ok("search", "invoice Elm Street", "--json").json["results"]]
    assert len(found) == len(set(found))
    assert {name.removeprefix(f"{vault}/") for name in found} <= {
        "one.md", "Daily/2026-11-21.md", "memory/2026-11-20.md", "MEMORY.md"
    }  # fmt: skip
    shell.write("more/three.md", "- more\n")
    shell.ok("config", "set", "extraPaths", '["Daily", "/srv/wiki"]')
    told = shell.ok("init", ".").err
    assert "2 markdown files" in told and told.endswith('config set extraPaths \'[".", "/srv/wiki"]\'\n')
    assert "outside" not in Shell(tmp_path, tmp_path).ok("init", "empty").err


def test_empty_settings_are_filled_by_init_and_named_until_then(tmp_path: Path) -> None:
    shell = Shell(tmp_path, tmp_path / "work")
    shell.write("ua-memory.toml", "")
    refused = shell("insert", "tea")
    assert refused.code == 3 and "ua-memory.toml here is empty" in refused.err
    assert "ua-memory.toml here is empty" in shell("status", "--bank", ".").err
    made = shell.ok("init", ".")
    assert "ua-memory.toml" in made.out and "id = " in (shell.cwd / "ua-memory.toml").read_text()
    shell.ok("insert", "tea")


def test_init_takes_the_callers_time_zone(tmp_path: Path) -> None:
    Shell(tmp_path, tmp_path).ok("init", "a", TZ=":Europe/Kyiv")
    assert 'timezone = "Europe/Kyiv"' in (tmp_path / "a" / "ua-memory.toml").read_text()
    Shell(tmp_path, tmp_path).ok("init", "b", TZ="XYZ-3")
    assert '\ntimezone = "' not in (tmp_path / "b" / "ua-memory.toml").read_text()


def test_which_bank(shell: Shell, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shell.ok("init", str(other))
    assert shell.ok("status", "--json").json["bank"] == str(shell.cwd)
    assert shell.ok("--bank", str(other), "status", "--json").json["bank"] == str(other)
    assert shell.ok("status", "--bank", str(other), "--json").json["bank"] == str(other)
    assert shell.ok("status", "--json", UA_MEMORY_BANK=str(other)).json["bank"] == str(other)
    assert shell.ok("--bank", str(shell.cwd), "status", "--json", UA_MEMORY_BANK=str(other)).json[
        "bank"
    ] == str(shell.cwd)
    assert shell.ok("status", "--json", UA_MEMORY_BANK="~/bank").json["bank"] == str(shell.cwd)
    (shell.cwd / "memory" / "deep").mkdir()
    shell.cwd = shell.cwd / "memory" / "deep"
    assert shell.ok("status", "--json").json["bank"] == str(shell.cwd.parent.parent)


def test_without_a_bank_it_says_how_to_make_one(tmp_path: Path) -> None:
    shell = Shell(tmp_path, tmp_path)
    for argv in (["search", "x"], ["insert", "x"], ["status"], ["config"]):
        done = shell(*argv)
        assert done.code == 3 and "hint: ua-memory init" in done.err and done.out == ""
    done = shell("--bank", "no where", "log")
    assert done.code == 3 and "not a memory bank (given by --bank)" in done.err and "init '" in done.err


def test_a_bank_whose_files_git_cleaned_away_is_restored_by_what_is_said(tmp_path: Path) -> None:
    project = repository(tmp_path / "project")
    shell = Shell(tmp_path, project)
    shell.ok("init", ".")
    shell.ok("insert", "Alice drinks tea")
    git(project, "clean", "-fdxq")
    (project / "src").mkdir()
    said = Shell(tmp_path, project / "src")("search", "tea")
    assert said.code == 3 and f"ua-memory init {project} (restores them)" in said.err
    done = shell.ok("init", str(project))
    assert done.out.startswith("Completed the memory bank") and "restored 3 files" in done.err
    assert "Alice drinks tea" in shell.ok("search", "tea").out


def test_a_folder_that_is_gone(shell: Shell) -> None:
    gone = shell.cwd / "gone"
    shell.cwd = gone
    done = shell("log")
    assert done.code == 3 and "current folder is gone" in done.err


# -- insert, get, search -------------------------------------------------------------------------------


def test_insert_says_where_it_is(shell: Shell) -> None:
    done = shell.ok("insert", "Alice", "moved to Fly.io", "--tag", "infra")
    found = re.fullmatch(
        r"Remembered in (memory/2026-11-21\.md):(\d+) \((\^[a-z2-7]{10}), commit ([0-9a-f]{7})\)\n", done.out
    )
    assert found and done.err == ""
    assert "Alice moved to Fly.io #infra" in (shell.cwd / found[1]).read_text()
    assert shell.ok("get", found[3]).out.startswith("- Alice moved to Fly.io")
    assert shell.ok("get", f"{found[1]}:{found[2]}").out == shell.ok("get", found[3]).out
    assert found[4] in shell.ok("log").out


def test_insert_reads_standard_input(shell: Shell) -> None:
    shell.ok("insert", stdin="from a pipe\n")
    shell.ok("insert", "-", stdin="with a dash\r\nand a second line\n")
    log = (shell.cwd / "memory/2026-11-21.md").read_text()
    assert "- from a pipe ^" in log and "with a dash" in log and "second line" in log
    assert shell("insert", stdin=b"\xff\xfe broken").code == 2
    assert shell("insert", stdin="").code == 2
    shell.terminals = EVERY
    refused = shell("insert")
    assert refused.code == 2 and "no text given" in refused.err


def test_what_is_typed_is_utf_8_whatever_the_locale(shell: Shell) -> None:
    typed = "Ärger".encode().decode("ascii", "surrogateescape")  # as Python reads it in LC_ALL=C
    assert "Ärger" in (shell.ok("insert", typed) and shell.ok("list").out)
    broken = shell("insert", b"\xc4rger".decode("utf-8", "surrogateescape"))  # of a terminal in Latin-1
    assert broken.code == 2 and "the text: not UTF-8 at byte 0" in broken.err
    assert shell("insert", "", stdin="not read").code == 2


def test_an_option_without_its_value_leads_to_the_help_of_its_verb(shell: Shell) -> None:
    done = shell("insert", "x", "--tag")
    assert done.code == 2 and "requires an argument" in done.err
    assert "hint: ua-memory insert --help" in done.err


def test_days_that_end_before_they_begin(shell: Shell) -> None:
    done = shell("search", "x", "--since", "2026-12", "--until", "2026-11")
    assert done.code == 2 and "since 2026-12-01 is later than until 2026-11-30" in done.err


def test_a_kind_that_there_is_not(shell: Shell) -> None:
    done = shell("search", "x", "--kind", "nonsense")
    assert done.code == 2 and "unknown kind: nonsense" in done.err and "preference" in done.err
    for kind in ("world", "passage", "core"):
        shell.ok("search", "x", "--kind", kind)


def test_insert_again_is_a_sighting_and_a_repeated_request_is_answered(shell: Shell) -> None:
    shell.ok("insert", "the same words")
    assert shell.ok("insert", "the same words").out.startswith("Already known: memory/2026-11-21.md:")
    first = shell.ok("insert", "once", "--request", "r1")
    again = shell.ok("insert", "once", "--request", "r1")
    assert "already carried out" in again.out and first.out.partition("(")[2] == again.out.partition("(")[2]
    assert (shell.cwd / "memory/2026-11-21.md").read_text().count("once") == 1


def test_insert_takes_secrets_out_and_says_so(shell: Shell) -> None:
    done = shell.ok("insert", f"the token is {SECRET}")
    assert "removed before writing" in done.err and SECRET not in done.out + done.err
    assert "ua-memory edit today" in done.err
    assert SECRET not in (shell.cwd / "memory/2026-11-21.md").read_text()


@pytest.mark.parametrize(
    ("env", "at_terminal", "expected"),
    [
        ({}, True, ("person", "terminal")),
        ({}, False, ("agent", "cli")),
        ({"CLAUDECODE": "1"}, True, ("agent", "claude-code")),
        ({"CODEX_SANDBOX": "seatbelt"}, True, ("agent", "codex")),
        ({"PI_CODING_AGENT": "true"}, False, ("agent", "pi")),
        ({"CODEX_HOME": "/home/me/.codex", "CLAUDECODE": ""}, True, ("person", "terminal")),
    ],
)
def test_who_calls(shell: Shell, env: dict[str, str], at_terminal: bool, expected: tuple[str, str]) -> None:
    import io

    from ua_memory.caller import Call

    terminals = EVERY if at_terminal else frozenset()
    call = Call([], shell.cwd, shell.home, env, io.BytesIO(), io.StringIO(), io.StringIO(), terminals)
    assert origin_of(call) == expected


def test_origin_and_client_stand_in_the_file(shell: Shell) -> None:
    shell.ok("insert", "read on a page", "--origin", "web", "--client", "browser", "--session", "8f2c")
    assert "· browser · session 8f2c · web" in (shell.cwd / "memory/2026-11-21.md").read_text()
    assert shell("insert", "x", "--origin", "nobody").code == 2
    assert shell("insert", "x", "--kind", "opinion").code == 2


def test_search_finds_what_was_written_by_hand_and_by_tool(shell: Shell) -> None:
    shell.ok("insert", "Alice moved the API to Fly.io because Heroku doubled its price", "--tag", "infra")
    shell.write("memory/2026-10-01.md", "# 2026-10-01\n\n- Bob keeps bees behind the house\n")
    done = shell.ok("search", "why did we leave Heroku", "--limit", "1")
    assert (
        re.match(r"1\. \d\.\d\d  memory/2026-11-21\.md:5  \^[a-z2-7]{10}", done.out) and "Fly.io" in done.out
    )
    assert "Bob keeps bees" in shell.ok("search", "bees", "--until", "2026-10").out
    nothing = shell.ok("search", "bees", "--since", "today")
    assert "Bob" not in nothing.out
    explained = shell.ok("search", "bees", "--explain", "-n", "1").out
    assert "found by" in explained and "match" in explained


def test_explain_says_how_a_query_is_read(shell: Shell) -> None:
    out = shell.ok("explain", "when did Alice last ride over the summer", "--now", "2026-11-21").out
    assert "time   Monday 1 June 2026 to Monday 31 August 2026\n" in out
    assert "names  Alice\n" in out and "order  the latest first\n" in out
    assert "time   none\n" in shell.ok("explain", "port 2019").out
    since = shell.ok("explain", "since last spring", "--now", "2026-11-21T14:00").out
    assert "from Sunday 1 March 2026 on\n" in since
    assert "up to Tuesday 31 December 2019\n" in shell.ok("explain", "before 2020").out
    assert "'soon' is not a valid time" in shell("explain", "x", "--now", "soon").err


def test_search_that_finds_nothing_says_what_to_try(shell: Shell) -> None:
    done = shell.ok("search", "xylophone", "--tag", "nope")
    assert "Nothing found" in done.out and "without the filters" in done.out


def test_a_hit_shows_the_flag_of_a_fact(shell: Shell) -> None:
    shell.write(
        "memory/2026-11-20.md", "- Alice drinks tea. ^ifwzv5k7b2\n  - flag: contradicts ^k7m2q9x4tb\n"
    )
    assert "flag      contradicts ^k7m2q9x4tb" in shell.ok("search", "alice tea").out
    assert shell.ok("search", "alice tea", "--json").json["results"][0]["flag"] == "contradicts ^k7m2q9x4tb"


def test_search_says_once_that_days_have_nothing_and_shows_few_of_other_days(shell: Shell) -> None:
    for number in range(12):
        shell.ok("insert", f"The hedge trimmer of next week number {number}", "--when", "2026-10-01")
    found = shell.ok("search", "next week").out
    assert found.startswith("Nothing from 2026-11-23 to 2026-11-29. From other days:\n\n1. ")
    assert found.count("trimmer") <= 6 and "Nothing found" not in found


def test_search_does_not_say_that_days_have_nothing_if_only_nothing_matches(shell: Shell) -> None:
    shell.write("memory/2026-11-12.md", "- Ann drinks tea\n")
    shell.write("memory/2026-10-01.md", "- We decided to paint the hedge\n")
    for query, days, listing in (
        (
            "who painted a hedge last week",
            "2026-11-09 to 2026-11-15",
            "--since 2026-11-09 --until 2026-11-15",
        ),
        ("the hedge since yesterday", "2026-11-20 or later", "--since 2026-11-20"),
    ):
        found = shell.ok("search", query).out.splitlines()[0]
        assert found == f"No match from {days} (all: ua-memory list {listing}). From other days:"


def test_a_search_without_a_ready_index_does_not_say_that_there_is_nothing(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **more: connect(*a, **{**more, "timeout": 0.1}))
    shell.ok("search", "kiln")
    (shell.cwd / "memory").mkdir(exist_ok=True)
    (shell.cwd / "memory/2026-11-20.md").write_text("- The kiln is at Ana's.\n")
    words = next(shell.cwd.rglob("words.db"))
    with contextlib.closing(sqlite3.connect(words, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = shell.ok("search", "kiln")
        assert "The index is not ready" in done.out and "Nothing found" not in done.out
        assert shell.ok("search", "--json", "kiln").json["stale"]["files"] >= 1
    assert "Ana" in shell.ok("search", "kiln").out


@pytest.mark.parametrize(
    "argv",
    [
        ["search"],
        ["search", "  "],
        ["search", "x", "--since", "soon"],
        ["search", "x", "--since", "2026-13"],
        ["search", "x", "--limit", "0"],
        ["search", "x", "--min-score", "2"],
        ["search", "x", "--nonsense"],
        ["get"],
        ["get", "../etc/passwd"],
        ["get", "memory/2026-11-21.md:9-3"],
        ["nonsense"],
    ],
    ids=" ".join,
)
def test_a_call_that_is_off(shell: Shell, argv: list[str]) -> None:
    shell.ok("insert", "something")
    done = shell(*argv)
    assert done.code == 2
    assert done.err.startswith("ua-memory: error: ") and "\n  hint: " in done.err and done.out == ""


def test_a_typo_is_guessed(shell: Shell) -> None:
    for typed, meant in (
        ("serch", "search"), ("find", "search"), ("remember", "insert"), ("history", "log"), ("rm", "forget"),
        ("delete", "forget"), ("restore", "undo"), ("show", "get"), ("ask", "reflect"),
        ("delte", "forget"), ("rember", "insert"), ("version", "--version"),
    ):  # fmt: skip
        assert f"did you mean '{meant}'?" in shell(typed, "x").err
    assert "hint: ua-memory search 'our doctor'" in shell("list", "our doctor").err
    assert "hint: ua-memory search doctor" in shell("get", "doctor").err


def test_text_that_begins_with_a_dash(shell: Shell) -> None:
    """A list item is words, since no option has a space in its name; one word might be a slip."""
    shell.ok("insert", "- buy milk", "--tag", "home")
    assert "buy milk #home ^" in (shell.cwd / "memory/2026-11-21.md").read_text()
    shell.ok("core", "replace", "Todo", "- a\n- b")
    assert shell.ok("core", "get", "Todo").out.rstrip() == "- a\n- b"
    for words in (["--tagg", "home", "x"], ["-bullet"]):
        refused = shell("insert", *words)
        assert refused.code == 2 and "-- TEXT" in refused.err
    shell.ok("insert", "--", "-bullet")


def test_get_prints_the_text_as_it_stands(shell: Shell) -> None:
    text = "# Notes\n\n- one\n- two\n\ttabbed é 🎉\n"
    shell.write("memory/notes.md", text)
    assert shell.ok("get", "memory/notes.md").out == text
    assert shell.ok("get", "memory/notes.md:3-4").out == "- one\n- two\n"
    assert shell("get", "memory/notes.md:77").code == 4
    assert shell("get", "memory/none.md").code == 4
    assert shell("get", "^aaaaaaaaaa").code == 4


# -- core memory ---------------------------------------------------------------------------------------


def test_core(shell: Shell) -> None:
    assert "No blocks yet" in shell.ok("core", "list").out
    assert "core replace Me ''" in shell("core", "replace", "Me").err
    assert shell.ok("core", "replace", "Me", "likes tea").out.startswith("Added Me in MEMORY.md:")
    changed = shell.ok("core", "replace", "Me", "-", stdin="likes tea\nand maps\n").out
    assert "Replaced Me" in changed and "  + and maps" in changed and "  - " not in changed
    assert shell("core", "replace", "Me", "-", stdin="").code == 2, "a failed command's"
    assert shell.ok("core", "get", "me").out == "likes tea\nand maps\n"
    assert shell.ok("core", "get").out == "## Me\n\nlikes tea\nand maps\n"
    assert re.search(r"Me +5 of 1,000 tokens|Me +\d of 1,000 tokens", shell.ok("core", "list").out)
    assert shell("core", "replace", "Me", "x", "--expect", "something else").code == 6
    assert "Nothing was changed" in shell.ok("core", "replace", "Me", "likes tea\nand maps").out
    assert shell("core", "get", "Nobody").code == 4


def test_core_warns_before_the_budget_and_refuses_beyond_it(shell: Shell) -> None:
    shell.write(
        "ua-memory.toml", (shell.cwd / "ua-memory.toml").read_text() + "\n[core]\nblock_tokens = 20\n"
    )
    warned = shell.ok("core", "replace", "Me", "word " * 17)
    assert "of 20 tokens" in warned.err
    refused = shell("core", "replace", "Me", "word " * 40)
    assert refused.code == 13 and "over its budget" in refused.err
    shell.terminals = EVERY
    assert "█" in shell.ok("core", "list").out


# -- history -------------------------------------------------------------------------------------------


def test_log_is_a_diary(shell: Shell) -> None:
    shell.ok("insert", "first")
    shell.time = datetime(2026, 11, 22, 8, 0, tzinfo=UTC)
    shell.ok("insert", "second")
    block = shell.ok("insert", "the third and secret thing", "--json").json["id"]
    out = shell.ok("log").out
    assert out.index("Sunday 22 November 2026\n") < out.index("Saturday 21 November 2026\n")
    folded = "Inserted 2 facts in 2 revisions from 08:01 on: “second”, “the third and secret thing”"
    assert re.search(rf"^  08:02  [0-9a-f]{{7}}  {folded}$", out, re.M), out
    assert shell.ok("log", "-n", "1").out.count("Inserted") == 1
    assert shell.ok("log", "--each").out.count("Inserted: ") == 3
    assert len(shell.ok("log", "-n", "2", "--json").json["revisions"]) == 2
    assert "bank" not in shell.ok("log", "memory/2026-11-21.md").out
    assert "Inserted" not in shell.ok("log", "--op", "init").out
    shell.ok("undo")
    shell.ok("redo")
    assert shell.ok("log").out.count("(undone)") == 1
    shell.ok("forget", f"^{block}")
    out = shell.ok("log", "-n", "9").out
    assert f"Forgot 1 fact (^{block})" in out and "secret thing" not in out


def test_the_log_tells_what_was_removed_by_hand(shell: Shell) -> None:
    from ua_memory.memory import Memory

    for text in ("- one\n- two\n- a ^aaaaaaaaaa\n", "- one\n- a ^aaaaaaaaaa\n", "- three ^bbbbbbbbbb\n", ""):
        shell.write("memory/a.md", text)
        (shell.cwd / "memory/a.md").unlink() if not text else None
        with Memory.open(shell.cwd) as memory:
            memory.store.adopt()
    out = shell.ok("log").out
    assert "removed 1 fact from memory/a.md by hand\n" in out and "deleted memory/a.md by hand" in out
    assert "from memory/a.md by hand and wrote: “three”" in out


def test_the_log_of_a_file_and_of_a_fact_quotes_no_other(shell: Shell) -> None:
    for name in ("one", "two"):
        shell.write(f"memory/{name}.md", f"- in {name}\n- also in {name} ^{name}aaaaaaa\n")
    shell.ok("insert", "said elsewhere")
    from ua_memory.memory import Memory

    Memory.open(shell.cwd).store.adopt()
    assert "person edited 2 files by hand: “in one”" in shell.ok("log").out
    out = shell.ok("log", "memory/one.md").out
    assert "in one" in out and "two”" not in out and "elsewhere" not in out
    assert "in two”" not in shell.ok("log", "^oneaaaaaaa").out


def test_a_log_says_the_same_of_a_revision_however_many_are_asked_for(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ua_memory.cli.history.GROUP_SIZE", 2)
    for n in range(7):
        shell.ok("insert", f"fact {n}")
    shell.ok("core", "replace", "Me", "tea")
    shell.ok("undo", shell.ok("log", "--each", "--json").json["revisions"][-2]["revision"])
    shell.ok("core", "replace", "Me", "coffee")
    shell.ok("redo")
    shell.ok("undo")
    rows = [row for row in shell.ok("log", "-n", "99").out.splitlines() if row.startswith("  ")]
    assert len(rows) == 7 and "(inserted: “fact 0”)" in rows[1], rows
    for number in range(1, len(rows) + 1):
        some = [row for row in shell.ok("log", "-n", str(number)).out.splitlines() if row.startswith("  ")]
        assert some == rows[:number]


def test_undo_redo_status_and_log_have_one_wording(shell: Shell) -> None:
    shell.ok("insert", "a mistake")
    undone, redone = shell.ok("undo").out, shell.ok("redo").out
    newest, older = (row.split("  ", 3)[3] for row in shell.ok("log", "-n", "2").out.splitlines()[1:])
    assert redone.startswith(f"{newest}, commit ") and undone.startswith(
        f"{older.removesuffix(' (undone)')}, "
    )
    assert newest.endswith("(inserted: “a mistake”)") and newest in shell.ok("status").out


def test_a_forgetting_by_words_shows_apart_what_is_only_near(shell: Shell) -> None:
    shell.ok("insert", "Bob is allergic to walnuts")
    shell.ok("insert", "Bob likes hazelnuts")
    gone, near = shell.ok("forget", "--query", "walnuts", "--dry-run").out.split("Near matches")
    assert "walnuts" in gone and "hazelnuts" not in gone and "hazelnuts" in near
    assert shell("forget", "--query", "project aurora", "--yes").code == 4
    shell.ok("forget", "--query", "walnuts", "--yes")
    assert "hazelnuts" in shell.ok("search", "walnuts").out


def test_undo_and_redo(shell: Shell) -> None:
    shell.ok("insert", "a mistake")
    done = shell.ok("undo")
    assert done.out.startswith("Undid ") and "ua-memory redo" in done.out
    assert not (shell.cwd / "memory/2026-11-21.md").exists()
    assert "Redid" in shell.ok("redo").out
    assert "a mistake" in (shell.cwd / "memory/2026-11-21.md").read_text()
    assert shell("undo", "nosuch").code == 4


def test_undo_that_conflicts_shows_both_sides(shell: Shell) -> None:
    shell.ok("core", "replace", "Me", "tea")
    revision = shell.ok("log", "-n", "1", "--json").json["revisions"][0]["revision"]
    shell.ok("core", "replace", "Me", "coffee")
    done = shell("undo", revision)
    assert done.code == 7 and "coffee" in done.err


def test_diff_of_hand_edits_and_of_a_revision(shell: Shell) -> None:
    assert shell.ok("diff").out == ""
    shell.ok("insert", "one")
    log = shell.cwd / "memory/2026-11-21.md"
    log.write_text(log.read_text() + "- by hand\n")
    assert "+- by hand" in shell.ok("diff").out
    assert "+- one" in shell.ok("diff", "HEAD").out
    shell.terminals = EVERY
    assert "\x1b[32m+- by hand" in shell.ok("diff").out


def test_blame_names_who_wrote_a_line(shell: Shell) -> None:
    shell.ok("insert", "one")
    log = shell.cwd / "memory/2026-11-21.md"
    log.write_text(log.read_text() + "- by hand\n")
    out = shell.ok("blame", "memory/2026-11-21.md").out
    assert re.search(r"^[0-9a-f]{7}  2026-11-21  ua-memory +5  - one", out, re.M)
    assert re.search(r"^not yet +6  - by hand", out, re.M)
    shell.ok("insert", "two")
    assert re.search(r"person +6  - by hand", shell.ok("blame", "memory/2026-11-21.md").out)
    log.write_bytes(log.read_bytes().replace(b"\n", b"\r\n"))
    assert re.search(r"- by hand$", shell.ok("blame", "memory/2026-11-21.md").out, re.M)


# -- looking after it ----------------------------------------------------------------------------------


def test_verify_and_scan_exit_with_twelve(shell: Shell) -> None:
    assert shell.ok("verify").out.startswith("No problems in ")
    assert shell.ok("scan").out.startswith("No secrets")
    shell.write("memory/2026-11-01.md", f"- one ^aaaaaaaaaa\n- key {SECRET}\n")
    shell.write("memory/2026-11-02.md", "- another ^aaaaaaaaaa\n")
    found = shell("verify")
    assert found.code == 12 and re.search(r"^memory/2026-11-02\.md:1: \^aaaaaaaaaa is also", found.out, re.M)
    assert "1 problem in" in found.err
    leaked = shell("scan")
    assert (
        leaked.code == 12 and leaked.out.startswith("memory/2026-11-01.md:2: ") and SECRET not in leaked.out
    )


def test_facts_that_disappear_are_held_until_somebody_says(shell: Shell) -> None:
    shell.write("memory/2026-11-01.md", "".join(f"- fact number {n} about gardens\n" for n in range(12)))
    shell.ok("init", ".")
    (shell.cwd / "memory/2026-11-01.md").unlink()
    held = shell.ok("status").out
    assert "Held" in held and "status --accept" in held
    assert "gardens" in shell.ok("search", "gardens").out
    restored = shell.ok("undo").out
    assert restored.startswith("Restored what had disappeared from memory/2026-11-01.md")
    assert (shell.cwd / "memory/2026-11-01.md").exists()
    (shell.cwd / "memory/2026-11-01.md").unlink()
    accepted = shell.ok("status", "--accept")
    assert "confirmed: memory/2026-11-01.md" in accepted.err and "Held" not in accepted.out


def test_status_tells_what_is_edited(shell: Shell) -> None:
    shell.ok("core", "replace", "Me", "tea")
    shell.write("MEMORY.md", (shell.cwd / "MEMORY.md").read_text() + "\nMore.\n")
    out = shell.ok("status").out
    assert re.search(r"^Edited +MEMORY\.md: not committed", out, re.M)
    assert re.search(r"^Problems +none$", out, re.M)


def test_status_says_how_to_mend_a_damaged_index(shell: Shell) -> None:
    shell.ok("search", "kiln")
    next(shell.cwd.rglob("words.db")).write_bytes(b"")
    assert "not usable (no such table: meta); ua-memory index rebuild" in shell.ok("status").out


def test_doctor_finds_and_mends(shell: Shell) -> None:
    assert shell.ok("doctor").out.startswith("ok ")
    state = shell.cwd / ".git" / "ua-memory"
    state.chmod(0o755)
    found = shell("doctor")
    assert found.code == 12 and re.search(r"^wrong +privacy .*\n +hint: chmod", found.out, re.M)
    assert re.search(r"^mended +privacy", shell.ok("doctor", "--mend").out, re.M)


def test_config_shows_values_and_where_they_come_from(shell: Shell) -> None:
    settings = (shell.cwd / "ua-memory.toml").read_text() + "\n[search]\nlimit = 3\nlimmit = 4\n"
    shell.write("ua-memory.toml", settings)
    done = shell.ok("config", UA_MEMORY_ENABLED="0")
    assert re.search(r"^search\.limit +ua-memory\.toml +3$", done.out, re.M)
    assert re.search(r"^enabled +UA_MEMORY_ENABLED +false$", done.out, re.M)
    assert re.search(r"^core\.tokens +default +4000$", done.out, re.M)
    assert "limmit" in done.err
    assert shell.ok("config", "search.limit").out == shell.ok("config", "get", "search.limit").out == "3\n"
    assert shell("config", "nonsense").code == 4
    shell.write("ua-memory.toml", settings.replace("limit = 3", "limit = 0"))
    assert shell("config").code == 9


def test_index_rebuild(shell: Shell) -> None:
    assert re.search(r"^Index +none yet; the next search builds it$", shell.ok("status").out, re.MULTILINE)
    shell.ok("insert", "one")
    assert re.match(r"Indexed \d+ items? of \d+ files? in \d", shell.ok("index", "rebuild").out)


# -- errors --------------------------------------------------------------------------------------------


def test_settings_that_are_gone_come_back(shell: Shell) -> None:
    for command in ("git restore ua-memory.toml", "undo"):
        (shell.cwd / "ua-memory.toml").unlink()
        if command == "undo":
            git(shell.cwd, "commit", "-qam", "deleted")
        checked = shell("doctor").out
        assert f"hint: ua-memory {command}" in checked
        assert "ua-memory.toml: is gone" in shell("sync", "--remote", "nowhere.git").err
        shell.ok(*checked.partition("hint: ua-memory ")[2].split("\n")[0].split())
        assert (shell.cwd / "ua-memory.toml").exists()


def test_an_address_with_a_name_that_is_too_long(shell: Shell) -> None:
    said = shell("sync", "--remote", f"../{'a' * 300}")
    assert "does not appear to be a git repository" in said.err and "hint: see whether" in said.err


def test_settings_that_are_gone_beside_a_repository(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", "-m", "theirs")
    shell = Shell(root, root)
    shell.ok("init", ".")
    (shell.cwd / "ua-memory.toml").unlink()
    for checked in (shell("doctor").out, shell("sync", "--remote", "nowhere.git").err):
        assert "is gone" in checked and "hint: ua-memory init ." in checked
    shell.ok("init", ".")
    assert "is gone" not in shell("doctor").out


def test_a_line_with_an_id_is_retired_and_one_without_is_changed_in_its_file(shell: Shell) -> None:
    shell.write("memory/a.md", "- one\n- two ^x2\n")
    assert "ua-memory edit memory/a.md:1" in shell("retire", "memory/a.md:1").err
    assert "as `ua-memory search` prints them" in shell("retire", "one").err
    assert "Retired" in shell.ok("retire", "memory/a.md:2").out


def test_a_word_for_a_number_is_refused_in_plain_words(shell: Shell) -> None:
    assert "'x' is not an integer" in shell("search", "a", "--limit", "x").err
    assert "'x' is not a number" in shell("search", "a", "--min-score", "x").err


def test_each_cause_has_its_exit_code(shell: Shell) -> None:
    codes = [cls.exit_code for cls in EXIT_CODES.values()]
    assert sorted(codes) == list(range(2, 2 + len(codes)))
    assert not {boundary.INTERRUPTED, boundary.PIPE_CLOSED, 0, 1} & set(codes)


def test_a_bug_is_one_line_and_a_traceback_only_for_who_asks(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ua_memory.upkeep.undo import BankHistory

    def broken(*_: object, **__: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(BankHistory, "log", broken)
    done = shell("log")
    assert done.code == 1 and "Traceback" not in done.err and done.err.count("\n") == 2
    assert "KeyError" in done.err and "UA_MEMORY_DEBUG=1" in done.err
    assert "Traceback" in shell("log", UA_MEMORY_DEBUG="1").err

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(BankHistory, "log", interrupted)
    assert shell("log").code == 130

    def closed(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(BankHistory, "log", closed)
    assert (shell("log").code, shell("log").err) == (141, "")


# -- what a terminal sees ------------------------------------------------------------------------------


def test_nothing_is_coloured_or_cut_in_a_pipe(shell: Shell) -> None:
    shell.width = 40
    text = "a long line " * 30
    shell.ok("insert", text.strip())
    for argv in (["search", "long line"], ["log"], ["blame", "memory/2026-11-21.md"], ["status"]):
        out = shell.ok(*argv).out
        assert "\x1b" not in out
    assert text.strip() in shell.ok("search", "long line").out


@pytest.mark.parametrize("width", [40, 80, 200])
def test_lines_fit_the_terminal(shell: Shell, width: int) -> None:
    shell.ok("insert", "Ядвіга 東京タワーに行きました 🎉 and went home, then out again, then home " * 3)
    shell.ok("core", "replace", "A block with a rather long name", "words " * 20)
    shell.terminals, shell.width = EVERY, width
    for argv in (
        ["search", "東京"],
        ["log"],
        ["blame", "memory/2026-11-21.md"],
        ["status"],
        ["core", "list"],
        ["core", "replace", "Me", "other words " * 12],
        ["config"],
        ["doctor"],
        ["diff", "HEAD"],
        ["--help"],
        ["insert", "--help"],
    ):
        out = ANSI.sub("", shell.ok(*argv).out)
        longest = max(out.splitlines(), key=cell_width)
        words = max((cell_width(word) for word in longest.split(" ")), default=0)
        assert cell_width(longest) <= width or words > width - 30, (argv, longest)


def test_colour_and_no_colour(shell: Shell) -> None:
    shell.ok("insert", "a fact about herons")
    shell.terminals = EVERY
    assert "\x1b[1;31mherons" in shell.ok("search", "heron").out
    plain = shell.ok("search", "heron", NO_COLOR="1").out
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", plain) and "herons" in plain
    assert "\x1b" not in shell.ok("search", "heron", TERM="dumb").out
    assert "today" in shell.ok("search", "heron").out and "(today)" in shell.ok("log").out


HOSTILE = "evil \x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b2J \u202eeman\u202c back\x08 bell"


PRINTS = (
    "search evil bell", "blame memory/2026-11-20.md", "log", "log memory/2026-11-20.md", "diff", "diff HEAD",
    "get memory/2026-11-20.md", "get memory/2026-11-20.md:1", "get MEMORY.md", "recall evil bell",
    "core list", "core get User", "pages list", "pages get evil", "models list", "models get evil",
    "observations list", "entities list", "opinions list", "status", "stats", "verify", "scan",
    "why memory/2026-11-20.md:1", "explain evil bell", "config mission",
)  # fmt: skip


def test_remembered_text_cannot_drive_the_terminal(shell: Shell) -> None:
    page = f"---\nid: evil\nname: evil\nsource_query: what is evil\n---\n\n{HOSTILE}\n"
    shell.write("memory/pages/evil.md", page)
    shell.write("memory/models/evil.md", page.replace("source_query: what is evil\n", ""))
    shell.write("memory/observations/evil.md", f"- {HOSTILE} ^abcdefghij\n  - proofs: 1\n")
    shell.write("memory/entities.md", f"- [[evil]]\n  - alias: {HOSTILE}\n")
    shell.write("MEMORY.md", f"# Memory\n\n## User\n\n{HOSTILE}\n")
    shell.write("memory/2026-11-20.md", f"- {HOSTILE}\n")
    shell.ok("insert", HOSTILE)
    shell.write("memory/2026-11-20.md", f"- {HOSTILE}\n- {HOSTILE} again\n")
    for terminals in (frozenset[str](), EVERY):
        shell.terminals = terminals
        for argv in PRINTS:
            done = shell(*argv.split())
            out = ANSI.sub("", done.out + done.err) if terminals else done.out + done.err
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", out), argv
        assert shell.ok("get", "memory/2026-11-20.md:1", "--raw").out == f"- {HOSTILE}\n"
        assert f"\n+- {HOSTILE} again\n" in shell.ok("diff", "--raw").out
    assert "\x1b" not in shell("get", "\x1b[31m.md").err


def test_line_ends_of_a_file_are_no_control_characters(shell: Shell) -> None:
    (shell.cwd / "memory/2026-11-20.md").write_bytes(b"- one\r\n- tw\ro\r\n")
    assert "+- one\r\n+- tw\\x0do\r\n" in shell.ok("diff").out
    assert "+- one\r\n+- tw\ro\r\n" in shell.ok("diff", "--raw").out


def test_progress_is_for_terminals_and_for_long_work(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    from ua_memory.caller import Call
    from ua_memory.views import output as module

    def shown(terminals: frozenset[str], seconds: float, patience: float) -> str:
        monkeypatch.setattr(module, "PROGRESS_DELAY", patience)
        err = io.StringIO()
        env = {"TERM": "xterm"}
        call = Call([], shell.cwd, shell.home, env, io.BytesIO(), io.StringIO(), err, terminals, 60)
        with module.progress(call, "Indexing") as tell:
            time.sleep(seconds)
            if tell is not None:
                assert "?" not in err.getvalue().replace("\x1b[?", "")
                assert ("0:00:0" in err.getvalue()) == (patience == 0), "a clock, as long as nothing is known"
                tell(5, 10)
                time.sleep(0.3)
        return err.getvalue()

    assert shown(frozenset(), 0.3, 0.0) == ""
    assert shown(EVERY, 0.0, 60.0) == ""
    seen = shown(EVERY, 0.5, 0.0)
    assert "Indexing" in seen and "5/10" in seen and seen.endswith(("\x1b[2K", "\x1b[?25h\r\x1b[1A\x1b[2K"))


def test_visible_and_cells() -> None:
    assert printable("a\x1b\x07\u202e\udc80b\tc\n") == "a\\x1b\\x07\\u202e\\x80b\tc\n"
    assert [cell_width(text) for text in ("abc", "東京", "🎉", "e\u0301", "")] == [3, 4, 2, 1, 0]


def test_japanese_is_wrapped_between_its_signs() -> None:
    """A run without blanks was one word, which began on a line of its own; 。 stood first in a line."""

    def wrapped(text: str, width: int) -> list[str]:
        return [text[a:b] for a, b in pairwise([0, *line_breaks(text, width), len(text)])]

    assert wrapped("Person: 今日は暑い。", 16) == ["Person: 今日は暑", "い。"]
    assert wrapped("Person: 今日は暑い。", 18) == ["Person: 今日は暑", "い。"]
    assert wrapped("色は（水彩）にした。", 6) == ["色は", "（水", "彩）に", "した。"]
    assert wrapped("Wacom Cintiqを買う", 10) == ["Wacom ", "Cintiqを買", "う"]
    assert wrapped("x" * 12 + "。", 8) == ["x" * 8, "xxxx。"]


def test_matches_are_forms_of_the_querys_words() -> None:
    def marked(text: str, query: str) -> list[str]:
        return [text[a:b] for a, b in match_positions(text, query)]

    assert marked("The tiles of the server", "map tile servers the") == ["tiles", "server"]
    assert marked("the cat", "the") == ["the"]
    assert marked("昨日東京タワーに行った", "東京タワー") == ["東京タワー"]
    assert marked("Straße und STRASSE", "strasse") == ["Straße", "STRASSE"]
    assert marked("anything", "") == []


def test_the_lines_of_a_snippet_with_the_match_are_shown() -> None:
    rows = [f"| Member {n} | 06 00 00 00 {n:02} |" for n in range(10)]
    table = ["| Name | Phone |", "|---|---|", *rows, "| Priya | 06 42 |"]
    assert shown_lines(table, "phone of Priya").split("\n") == [*table[:2], "…", *table[-4:]]
    assert shown_lines(table, "boats").split("\n") == [*table[:6], "…"]
    assert shown_lines(table[:6], "Priya").split("\n") == table[:6]
    text = [f"line {n}" for n in range(8)]
    assert shown_lines([*text, "the mast"], "mast").split("\n") == ["…", *text[3:], "the mast"]


# -- dates ---------------------------------------------------------------------------------------------


def test_dates_as_people_say_them() -> None:
    now = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
    said = [
        ago(datetime(*when, tzinfo=UTC), now)
        for when in (
            (2026, 11, 21, 13, 59, 30),
            (2026, 11, 21, 13, 59),
            (2026, 11, 21, 11, 0),
            (2026, 11, 20, 9),
        )
    ]
    assert said == ["just now", "1 minute ago", "3 hours ago", "yesterday"]
    assert ago(datetime(2026, 11, 1, tzinfo=UTC), now) == "20 days ago"
    assert ago(datetime(2026, 1, 1, tzinfo=UTC), now) == "2026-01-01"
    assert day_title(now.date(), now.date()) == "Saturday 21 November 2026 (today)"


@pytest.mark.parametrize(
    ("text", "end", "expected"),
    [
        ("2026-11-21", False, "2026-11-21"),
        ("2026-02", False, "2026-02-01"),
        ("2024-02", True, "2024-02-29"),
        ("2026", True, "2026-12-31"),
        ("Yesterday", False, "2026-11-20"),
        ("next week", False, "2026-11-23"),
        ("next week", True, "2026-11-29"),
        ("tomorrow", False, "2026-11-22"),
        ("May", True, "2026-05-31"),
        ("spring", False, "2026-03-01"),
        ("2w", False, "2026-11-07"),
        ("2 weeks ago", False, "2026-11-02"),
        ("in 3 days", False, "2026-11-24"),
        ("since May", False, "2026-05-01"),
        ("letzte Woche", True, "2026-11-15"),
        ("hier", False, "2026-11-20"),
        ("on Monday", False, "2026-11-16"),
        ("am Montag", False, "2026-11-16"),
        ("el lunes pasado", False, "2026-11-16"),
        ("en mayo", True, "2026-05-31"),
        ("вчора", False, "2026-11-20"),
        ("昨天", False, "2026-11-20"),
        ("一昨日", False, "2026-11-19"),
        ("先週の火曜日", False, "2026-11-10"),
        ("先月", True, "2026-10-31"),
        ("3週間前", False, "2026-10-26"),
        ("２０２６", False, "2026-01-01"),
        ("la settimana scorsa", True, "2026-11-15"),
        ("ontem", False, "2026-11-20"),
        ("sexta", False, "2026-11-20"),
        ("25 gennaio 2027", False, "2027-01-25"),
        ("おととい", False, "2026-11-19"),
        ("先々週", False, "2026-11-02"),
        ("4 December", False, "2025-12-04"),
        ("3.12.", False, "2025-12-03"),
    ],
)
def test_dates_as_options_take_them(text: str, end: bool, expected: str) -> None:
    assert parse_day(text, "--since", datetime(2026, 11, 21), end=end) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tomorrow at 15:00", "2026-11-22T15:00"),
        ("5 pm tomorrow", "2026-11-22T17:00"),
        ("tomorrow at 9", "2026-11-22T09:00"),
        ("mañana a las 10", "2026-11-22T10:00"),
        ("morgen um 10 Uhr", "2026-11-22T10:00"),
        ("demain à 10h30", "2026-11-22T10:30"),
        ("明日14時", "2026-11-22T14:00"),
        ("domani alle 16", "2026-11-22T16:00"),
        ("amanhã às 10h", "2026-11-22T10:00"),
        ("morgen om 10 uur", "2026-11-22T10:00"),
        ("3 março", "2027-03-03"),
        ("3.12. um 10 Uhr", "2026-12-03T10:00"),
        ("4 December", "2026-12-04"),
        ("4. Dezember", "2026-12-04"),
        ("12 décembre", "2026-12-12"),
        ("12月4日", "2026-12-04"),
        ("1 November", "2026-11-01"),
        ("22 May", "2027-05-22"),
        ("15/12", "2026-12-15"),
        ("viernes 4 a las 11", "2026-12-04T11:00"),
        ("hoy a las 5 de la tarde", "2026-11-21T17:00"),
        ("mañana a las 10 de la mañana", "2026-11-22T10:00"),
        ("domani alle 8 di sera", "2026-11-22T20:00"),
        ("no dia 12 de outubro", "2026-10-12"),
        ("dia 12 de maio às 9h", "2027-05-12T09:00"),
        ("20 June 2025", "2025-06-20"),
        ("Christmas", "2026-12-25"),
        ("3 to 9 December", "2026-12-03/2026-12-09"),
        ("May", "2026-05"),
        ("Saturday", "2026-11-21"),
        ("Tuesday", "2026-11-17"),
        ("Wednesday", "2026-11-18"),
        ("last Saturday", "2026-11-14"),
        ("next Saturday", "2026-11-28"),
        ("last week", "2026-11-09/2026-11-15"),
        ("2w", "2026-11-07"),
        ("15:00", "2026-11-21T15:00"),
        ("tomorrow noon", "2026-11-22T12:00"),
    ],
)
def test_a_day_with_its_time(text: str, expected: str) -> None:
    assert dates.parse_when(text, datetime(2026, 11, 21)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-13",
        "2026-02-30",
        "lunch tomorrow",
        "tomorow",
        "before May",
        "99999999 years ago",
        "sette",
        "3.12",
        "set",
        "a segunda parte",
    ],
)
def test_dates_that_are_none(text: str) -> None:
    with pytest.raises(Usage):
        parse_day(text, "--since", datetime(2026, 11, 21))


# -- the table of verbs --------------------------------------------------------------------------------


def test_the_table_says_what_each_verb_says_of_itself() -> None:
    command = command_line()
    assert isinstance(command, Verbs)
    for section in VERBS.values():
        for name, listed in section.items():
            verb = command.get_command(None, name)
            first = (verb.help or "").strip().split("\n\n")[0].split("\n")[0]
            assert first.startswith(listed.does.rstrip(".").split(":")[0][:20]), name


def test_one_module_looks_at_the_process() -> None:
    """What a daemon must be able to do on a caller's behalf reads nothing of its own process."""
    import ua_memory.cli.app

    world = re.compile(
        r"os\.environ|getenv|sys\.(stdin|stdout|stderr|argv)|Path\.(cwd|home)|get_terminal_size"
    )
    root = Path(ua_memory.cli.__file__).parents[1]
    files = [root / "caller.py", root / "daemon" / "connect.py"]
    files += [file for door in ("cli", "hooks", "mcp", "views") for file in (root / door).glob("*.py")]
    found = {
        f"{file.parent.name}/{file.name}"
        for file in files
        if world.search(file.read_text("utf-8").replace("`", ""))
    }
    # These run in the caller's process, before a daemon is asked or where there is none; cli/daemon lends
    # the daemon's own to its caller.
    own = {"daemon/connect.py", "cli/fast.py", "mcp/relay.py", "cli/without_daemon.py", "cli/web.py"}
    assert found == {"ua_memory/caller.py", "cli/app.py", "cli/daemon.py", *own}
    assert len(world.findall((root / "cli" / "app.py").read_text("utf-8"))) == 1, "only to hush a closed pipe"


def test_json_cannot_be_taken_for_a_lines_end() -> None:
    import io

    text = dumps({"a": "x\u2028y\x85z\udc80é"}, io.StringIO())
    assert text == '{"a": "x\\u2028y\\u0085z\\udc80é"}'
    assert dumps("é", io.TextIOWrapper(io.BytesIO(), "latin-1")) == '"\\u00e9"'


def test_a_screen_without_pieces(shell: Shell) -> None:
    import io

    from ua_memory.caller import Call

    out = io.StringIO()
    call = Call([], shell.cwd, shell.home, {"TERM": "xterm"}, io.BytesIO(), out, io.StringIO(), EVERY, 40)
    screen = Screen(call)
    screen.line()
    screen.rows([])
    screen.item("label  ", "")
    assert [line.rstrip() for line in out.getvalue().splitlines()] == ["", "label"]


# -- as a process --------------------------------------------------------------------------------------

COMMAND = [sys.executable, "-m", "ua_memory"]


def test_a_reader_that_leaves_early_is_no_error(shell: Shell) -> None:
    shell.write("memory/long.md", "line\n" * 200_000)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [*COMMAND, "get", "memory/long.md"],
        cwd=shell.cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        assert (process.wait(30), said) == (boundary.PIPE_CLOSED, b"")


def test_interrupting_is_quiet(shell: Shell) -> None:
    with subprocess.Popen(
        [*COMMAND, "insert", "-"],
        cwd=shell.cwd,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # `make test &` of a script hands down that it is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stderr is not None
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == boundary.INTERRUPTED
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
def test_a_full_disk_behind_standard_output(shell: Shell) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, "insert", "I like tea."],
            cwd=shell.cwd,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 10 and "the output: No space left" in done.stderr
    assert "was carried out" in done.stderr and "tea" in shell("search", "tea").out


def test_a_closed_pipe_ends_also_the_help_of_a_group(shell: Shell) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, "sessions"], cwd=shell.cwd, stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_closed_streams(shell: Shell) -> None:
    line = " ".join([*COMMAND, "config", "trail"])
    for closed in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", f"{line} {closed}"], cwd=shell.cwd, capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr and done.returncode == 0, closed


def test_an_encoding_that_lacks_the_letters(shell: Shell) -> None:
    shell.ok("insert", "naïve 東京")
    env = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [*COMMAND, "get", "memory/2026-11-21.md"], cwd=shell.cwd, capture_output=True, env=env, check=False
    )
    assert done.returncode == 0 and b"na\xefve \\u6771" in done.stdout


def test_a_file_is_found_by_a_name_that_the_locale_lacks(shell: Shell) -> None:
    shell.write("memory/küche.md", "- The stove is green\n")
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    env.pop("PYTHONIOENCODING", None)
    done = subprocess.run(
        [*COMMAND, "search", "stove"], cwd=shell.cwd, capture_output=True, env=env, check=False
    )
    assert done.returncode == 0 and b"k\\xfcche.md:1" in done.stdout, done.stderr


def test_a_real_terminal_is_noticed(shell: Shell) -> None:
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen([*COMMAND, "log"], cwd=shell.cwd, stdout=theirs, stderr=theirs, env=env) as process:
        process.wait(30)
        os.close(theirs)
        seen = os.read(ours, 65536).decode()
        os.close(ours)
    assert "\x1b[" in seen and "Created the bank" in seen


def test_git_is_run_on_the_trail(shell: Shell, tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main", str(code)], check=True)
    (code / "main.py").write_text("print()\n")
    shell.cwd = code
    shell.ok("init", ".")
    shell.ok("insert", "kept apart")
    place = Place(code)
    log = place.run("git", "log", "--format=%s", "-n", "1")
    assert (log.code, log.out) == (0, "insert: 1 fact into memory/2026-11-21.md\n")
    assert place.run("git", "status", "--short").out == ""
    with (code / "memory/2026-11-21.md").open("a") as file:
        file.write("- by hand\n")
    assert place.run("git", "status", "--short").out == " M memory/2026-11-21.md\n"
    assert place.run("git", "nonsense").code != 0
    refused = place.run("git", "clean", "-fdx")
    assert refused.code == 2 and (code / "main.py").exists()
    outer = subprocess.run(["git", "log"], cwd=code, capture_output=True, check=False)
    assert outer.returncode != 0, "the project's own repository has no commit of ours"
