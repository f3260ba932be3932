"""Settings that count only from their owner: what a bank that came from a stranger says is shown, and not
obeyed, until the owner has agreed to exactly that."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from index_bank import write
from terminal import EVERY, Shell, new_shell

from ua_memory import config
from ua_memory.errors import Malformed

PRIVATE = "# Diary\n\n- The vault code is written behind the mirror\n"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A bank whose file names the owner's private folder, as a cloned one may."""
    shell = new_shell(tmp_path)
    write(shell.home / "private" / "diary.md", PRIVATE)
    says(shell, 'extraPaths = ["~/private"]')
    return shell


def says(shell: Shell, *lines: str) -> None:
    """Have the bank's file say this, besides who it is."""
    file = shell.cwd / "ua-memory.toml"
    kept = [row for row in file.read_text().splitlines() if row.startswith(("id", "trail", "timezone"))]
    file.write_text("\n".join([*kept, *lines]) + "\n")


def hits(shell: Shell, query: str = "vault code mirror") -> list[str]:
    found = shell.ok("search", query, "--json").json["results"]
    return [hit["path"] for hit in found if hit["path"].startswith("/")]


def test_a_strangers_paths_are_not_read_before_their_owner_says_so(shell: Shell) -> None:
    """It was obeyed on the first search: an agent in a cloned repository read ~/private."""
    done = shell.ok("search", "vault code mirror", "--json")
    assert "vault code" not in done.out.replace("vault code mirror", "")
    assert done.err.count("\n") == 1 and "extraPaths" in done.err and "ua-memory trust" in done.err
    shell.ok("trust", "--yes")
    assert hits(shell) == [str(shell.home / "private" / "diary.md")]
    assert shell.ok("search", "vault code mirror").err == ""


def test_the_line_is_said_once_and_breaks_no_json(shell: Shell) -> None:
    for argv in (
        ["status"],
        ["recall", "mirror"],
        ["search", "mirror", "--json"],
        ["insert", "A bicycle is green"],
    ):
        done = shell.ok(*argv)
        assert done.err.count("not trusted in ua-memory.toml, and ignored: extraPaths") == 1, argv
    says(shell, 'extraPaths = ["~/private"]', 'strip = ["secret"]', 'search.cross_encoder = "/opt/ranker"')
    assert "search.cross_encoder, extraPaths, strip (to review: ua-memory trust)" in shell.ok("status").err
    says(shell, "extraPaths = []", "strip = []")
    assert shell.ok("status").err == ""


def test_trust_shows_asks_and_takes_back(shell: Shell) -> None:
    shell.terminals, shell.width = EVERY, 400
    assert "to review: ua-memory trust" in shell.ok("status").err
    asked = shell.ok("trust", stdin="n\n")
    assert "without a warning" in asked.err and "not trusted" not in shell.ok("status").err
    assert "not trusted" in asked.out and str(shell.home / "private") in asked.out and "[y/N]" in asked.err
    assert hits(shell) == []
    assert "Trusted." in shell.ok("trust", stdin="y\n").out
    assert hits(shell)
    assert "[y/N]" not in shell.ok("trust").err
    says(shell, 'extraPaths = ["~/private"]', 'strip = ["secret"]')
    assert "ignored: strip (to review" in shell.ok("status").err, "what is new is asked for"
    shell.ok("trust", stdin="n\n")
    assert hits(shell), "what was agreed to before counts"
    assert shell.ok("trust", "--revoke").err == "" and hits(shell) == []
    assert shell.ok("status").err == ""


def test_without_a_person_trust_takes_a_yes(shell: Shell) -> None:
    refused = shell("trust")
    assert refused.code == 2 and "--yes" in refused.err and hits(shell) == []
    told = shell.ok("trust", "--yes", "--json").json
    private = str(shell.home / "private")
    assert told["settings"] == [
        {"key": "extraPaths", "value": [private], "trusted": True, "leadsTo": [private]}
    ]
    file = shell.home / ".config" / "ua-memory" / "trusted.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert private not in file.read_text()


def test_a_changed_value_is_asked_for_again(shell: Shell) -> None:
    shell.ok("trust", "--yes")
    says(shell, 'extraPaths = ["~/private", "~"]')
    assert hits(shell) == []
    assert shell.ok("trust", "--yes", "--json").json["settings"][0]["trusted"]


def test_config_says_what_does_not_count(shell: Shell) -> None:
    row = shell.ok("config", "extraPaths", "--json").json
    assert row["value"] == [] and row["source"] == "default" and row["untrusted"] == [f"{shell.home}/private"]
    assert "not trusted: ua-memory trust" in shell.ok("config").out
    shell.ok("trust", "--yes")
    row = shell.ok("config", "extraPaths", "--json").json
    assert row["source"] == "ua-memory.toml" and "untrusted" not in row
    assert "not trusted" not in shell.ok("config").out


# -- config set ----------------------------------------------------------------------------------------------


def test_set_keeps_comments_commits_and_trusts(shell: Shell) -> None:
    says(shell, "# mine", 'mission = "x" # why', "[search]", "limit = 3 # few", "", "[mine]", "a = 1")
    file = shell.cwd / "ua-memory.toml"
    before = file.read_text()
    done = shell.ok("config", "set", "extraPaths", "~/private", "../api docs")
    assert "(commit " in done.out and done.err == ""
    assert done.out.startswith('Set extraPaths to ["~/private", "../api docs"] in ')  # as it may be typed
    assert set(before.splitlines()) <= set(file.read_text().splitlines())
    assert hits(shell) == [str(shell.home / "private" / "diary.md")]
    assert shell.ok("config", "set", "search.limit", "4", "--json").json["value"] == 4
    assert "limit = 4 # few" in file.read_text() and 'mission = "x" # why' in file.read_text()
    assert shell.ok("log", "-n", "1", "--json").json["revisions"][0]["subject"] == "config: set search.limit"
    assert shell.ok("status", "--json").json["edited"] == []
    again = shell.ok("config", "set", "search.limit", "4", "--json").json
    assert "revision" not in again


def test_set_trusts_what_it_set_alone(shell: Shell) -> None:
    says(shell, 'extraPaths = ["~/private"]', 'strip = ["a"]')
    shell.ok("config", "set", "strip", "<private>.*", "b,c")
    assert shell.ok("config", "strip", "--json").json["value"] == ["<private>.*", "b,c"]
    assert hits(shell) == []


def test_set_for_the_user_counts_everywhere(shell: Shell) -> None:
    says(shell, "search.limit = 2")
    done = shell.ok("config", "set", "search.limit", "9", "--user")
    mine = shell.home / ".config" / "ua-memory" / "config.toml"
    assert str(mine) in done.out and stat.S_IMODE(mine.stat().st_mode) == 0o600
    row = shell.ok("config", "search.limit", "--json").json
    assert (row["value"], row["source"]) == (9, "config.toml")
    note = shell.ok("config", "set", "search.limit", "1").err
    assert "config.toml also sets it, and overrides this file" in note
    shell.ok("config", "set", "extraPaths", "~/private", "--user")
    assert hits(shell)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["search.limit", "many"], 2), (["search.limit", "0"], 2), (["serch.limit", "3"], 4),
        (["id", "x"], 2), (["trail", "own"], 2), (["strip", "("], 2), (["redaction.patterns", "x"], 2),
        (["extraPaths", "notes", "--user"], 2), (["mission"], 2), (["mcp.tools", "core", "nope"], 2),
        (["mcp.tools", ""], 2),
        (["index.chroma_url", "https://ck-0123456789abcdefABCDEF0123456789@api.trychroma.com"], 2),
    ],
)  # fmt: skip
def test_set_refuses_what_cannot_be(shell: Shell, words: list[str], code: int) -> None:
    before = (shell.cwd / "ua-memory.toml").read_bytes()
    done = shell("config", "set", *words)
    assert done.code == code, done.err
    if words == ["mcp.tools", ""]:
        assert "the name of a tool is empty" in done.err
    if words[0] in ("search.limit", "strip", "redaction.patterns"):
        assert f"hint: ua-memory config set {words[0]} VALUE (" in done.err
    assert (shell.cwd / "ua-memory.toml").read_bytes() == before
    assert not (shell.home / ".config" / "ua-memory" / "config.toml").exists()


def test_set_mends_a_value_that_is_wrong_but_no_file_that_is(shell: Shell) -> None:
    says(shell, 'search.limit = "many"')
    assert shell("search", "x").code == Malformed.exit_code
    shell.ok("config", "set", "search.limit", "5")
    assert shell.ok("config", "search.limit").out == "5\n"
    says(shell, "search.limit = ")
    assert shell("config", "set", "search.limit", "5").code == Malformed.exit_code
    says(shell, "search = 3")
    done = shell("config", "set", "search.limit", "5")
    assert done.code == Malformed.exit_code and "'search' is a value there, no table" in done.err


@pytest.mark.parametrize(
    ("key", "words", "value"),
    [
        ("redaction.patterns", ['{"host": "[a-z]+"}'], {"host": "[a-z]+"}),
        ("mcp.tools", ['["recall", "get_page"]'], ["recall", "get_page"]),
        ("mcp.tools", ["recall,get_page"], ["recall", "get_page"]),
        ("mcp.read_only", ["yes"], True), ("limits.run_usd", ["0.5"], 0.5),
        ("mission", ["Keep it", "short"], "Keep it short"),
        ("extraPaths", ["[]"], []),
    ],
)  # fmt: skip
def test_set_takes_what_a_shell_can_say(shell: Shell, key: str, words: list[str], value: object) -> None:
    assert shell.ok("config", "set", key, *words, "--json").json["value"] == value
    assert shell.ok("config", key, "--json").json["value"] == value


# -- agents --------------------------------------------------------------------------------------------------


def test_an_agents_tool_does_not_read_a_strangers_paths(shell: Shell) -> None:
    asked = {"tool": "archival_memory_search", "arguments": {"query": "vault code mirror"}}
    done = shell.ok("mcp", "--call", stdin=json.dumps(asked))
    assert "behind the mirror" not in done.out and done.err.count("\n") == 1
    shell.ok("trust", "--yes")
    assert "behind the mirror" in shell.ok("mcp", "--call", stdin=json.dumps(asked)).out


def test_a_hook_says_nothing_and_writes_down_why(shell: Shell) -> None:
    told = {"session_id": "5df2", "transcript_path": "/x.jsonl", "cwd": str(shell.cwd), "source": "startup"}
    done = shell.ok("hook", stdin=json.dumps({**told, "hook_event_name": "SessionStart"}))
    assert done.err == "" and "behind the mirror" not in done.out
    asked = {**told, "hook_event_name": "UserPromptSubmit", "prompt": "where is the vault code, the mirror?"}
    assert shell.ok("hook", stdin=json.dumps(asked)).out == ""
    log = (config_local(shell) / "hook.log").read_text()
    assert log.count("ignored: extraPaths") == 1
    shell.ok("trust", "--yes")
    assert "behind the mirror" in shell.ok("hook", stdin=json.dumps(asked)).out


def config_local(shell: Shell) -> Path:
    from ua_memory.upkeep import init as bank

    settings = config.load(shell.cwd, {})
    return bank.open_store(shell.cwd, settings, settings.clock()).bank.local
