"""What somebody sees first: `ua-memory` alone, help everywhere, progress, a pager, completions of values."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from banks import new_bank
from daemons import Place
from terminal import EVERY, Shell, new_shell

from ua_memory.cli.app import VERBS, command_line
from ua_memory.memory import Memory
from ua_memory.upkeep import audit


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return new_shell(tmp_path, UA_MEMORY_DAEMON="off")


# -- where to begin ------------------------------------------------------------------------------------------


def test_without_a_bank_it_says_how_to_make_one(tmp_path: Path) -> None:
    done = Shell(tmp_path, tmp_path)()
    assert done.code == 0 and "There is no memory bank here or above" in done.out
    assert (
        f"ua-memory init    create one at {tmp_path}/ua-memory" in done.out and "ua-memory init ." in done.out
    )
    missing = Shell(tmp_path, tmp_path)("--bank", "nowhere")
    assert missing.code != 0 and "not a memory bank" in missing.err
    shell = new_shell(tmp_path / "other")
    done = shell("--bank", "MEMORY.md", "search", "x")
    assert (
        done.code == 3 and "not a folder (given by --bank)" in done.err and f"in: {shell.cwd}\n" in done.err
    )
    assert "name the folder of a bank" in shell("--bank", "/etc/passwd", "search", "x").err


def test_with_a_bank_it_says_where_it_is_and_what_is_next(shell: Shell) -> None:
    (shell.home / ".codex").mkdir()
    first = shell.ok().out
    assert first.startswith(f"Bank   {shell.cwd}\n") and "ua-memory insert" in first
    assert "ua-memory install codex" in first and "ua-memory help lists all commands." in first
    shell.ok("insert", "The gate is green")
    shell.ok("install", "codex")
    then = shell.ok().out
    assert "install" not in then and "ua-memory today" in then and "Inserted: “The gate is green”" in then
    assert then.count("\n  ua-memory ") == 3
    (shell.cwd / "memory/2026-11-21.md").unlink()
    assert shell.ok().out.count("ua-memory ") == 4


def test_init_asks_nothing_and_names_three_steps(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    done = Shell(tmp_path, tmp_path).ok("init")
    steps = done.out.partition("Next:\n")[2].splitlines()
    assert [row.split()[1] for row in steps] == ["insert", "search", "install"]
    assert "ua-memory install claude-code" in steps[2]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_what_is_next_fits_the_terminal(shell: Shell, width: int) -> None:
    shell.terminals, shell.width = EVERY, width
    rows = shell.ok().out.splitlines()
    assert all(len(row) <= width for row in rows if "/" not in row), rows


def test_more_than_three_files_are_counted(shell: Shell) -> None:
    for n in range(30):
        shell.write(f"memory/notes/{n:02}.md", "- a note\n")
    row = next(row for row in shell.ok("status").out.splitlines() if row.startswith("Edited"))
    assert row.endswith("01.md, memory/notes/02.md and 27 other files: not committed yet")
    assert len(shell.ok("status", "--json").json["edited"]) == 30


# -- help ----------------------------------------------------------------------------------------------------


def commands() -> Iterator[tuple[str, ...]]:
    root = command_line()
    context = root.make_context("ua-memory", ["--help"], resilient_parsing=True)
    for name in (name for section in VERBS.values() for name in section):
        found = root.get_command(context, name)
        yield (name,)
        for inner in getattr(found, "commands", ()):
            yield name, inner


def test_h_is_help_everywhere(shell: Shell) -> None:
    every = list(commands())
    assert len(every) > 90
    for words in every:
        short = shell.ok(*words, "-h").out
        assert short.startswith(f"Usage: ua-memory {' '.join(words)} "), short
        assert short == shell.ok(*words, "--help").out == shell.ok("help", *words).out
    assert shell.ok("help").out == shell.ok("-h").out
    assert shell("help", "serch").code == 2


# -- progress ------------------------------------------------------------------------------------------------


def test_progress_is_of_all_texts_together(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    with Memory(new_bank(tmp_path / "bank").store, door="cli") as memory:
        text = "\n\n".join(
            f"# Part {n}\n\n" + "Alice pays 40 euros for the kiln in May. " * 60 for n in range(4)
        )
        items = [memory.documents.item(text, document_id=name) for name in ("a", "b", "c")]
        memory.documents.retain(items, tell=lambda done, total: told.append((done, total)))
    assert told[0] == (0, told[0][1]) and len({total for _, total in told}) == 1
    done = [each for each, _ in told]
    assert done == sorted(done) and len(set(done)) > 3 and done[-1] < told[0][1]


def test_checks_and_archives_tell_how_far_they_are(tmp_path: Path) -> None:
    bank = new_bank(tmp_path / "bank")
    for day in range(10, 20):
        bank.write(f"- Alice said {day}\n", f"memory/2026-11-{day}.md")
    told: dict[str, list[tuple[int, int]]] = {}

    @contextlib.contextmanager
    def watch(what: str) -> Iterator[Any]:
        yield lambda done, total: told.setdefault(what, []).append((done, total))

    with Memory(bank.store, door="cli") as memory:
        memory.refresh(vectors=False)
        assert memory.health.verified(watch) == ([], [])
        with watch("scan") as tell:
            assert audit.find_secrets(memory.store, tell) == []
        with watch("export") as tell:
            memory.remote.export(tmp_path / "bank.tar", tell=tell)
    assert set(told) == {"Checking the files", "Checking the index", "scan", "export"}
    for reports in told.values():
        done, total = [one for one, _ in reports], {one for _, one in reports}
        assert done == list(range(len(done))) and total == {len(done)} and len(done) > 10


# -- the pager -----------------------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(new_bank(tmp_path / "bank").root)
    for n in range(3):
        assert found.run("insert", f"The gate has {n} bars", daemon="off").code == 0
    yield found
    found.kill()


def on_a_terminal(place: Place, *argv: str, daemon: str = "off", **env: str) -> tuple[str, int]:
    """What a terminal shows of a command, and its exit code."""
    place.env = env
    done = place.terminal(*argv, daemon=daemon)
    return done.out, done.code


PREFIX = "sed 's/^/> /'"


@pytest.mark.parametrize(("variable", "daemon"), [("UA_MEMORY_PAGER", "off"), ("PAGER", "auto")])
def test_log_and_diff_are_shown_by_a_pager(place: Place, variable: str, daemon: str) -> None:
    if daemon == "auto":
        assert place.run("daemon", "start").code == 0
    text, code = on_a_terminal(place, "log", "--each", daemon=daemon, **{variable: PREFIX})
    rows = [row for row in text.splitlines() if "bars" in row]
    assert code == 0 and len(rows) == 3 and all(row.startswith("> ") for row in rows), text
    assert "\x1b[" in rows[0], "it is coloured, as on the terminal itself"
    newest = json.loads(place.run("log", "--json", daemon="off").out)["revisions"][0]["revision"]
    text, code = on_a_terminal(place, "diff", newest[:7], daemon=daemon, **{variable: PREFIX})
    assert code == 0 and "> " in text and "+- The gate has 2 bars" in text


def test_ours_goes_before_theirs_and_what_is_quiet_or_json_has_none(place: Place) -> None:
    text = on_a_terminal(place, "log", PAGER="sed s/^/THEIRS/", UA_MEMORY_PAGER=PREFIX)[0]
    assert "> " in text and "THEIRS" not in text
    for more in (["--no-pager"], ["--json"], ["-h"]):
        assert "> " not in on_a_terminal(place, "log", *more, UA_MEMORY_PAGER=PREFIX)[0].replace(" -> ", "")
    for none in ("", "cat"):
        assert "bars" in on_a_terminal(place, "log", UA_MEMORY_PAGER=none, PAGER=PREFIX)[0]
    assert "> " not in place.run("log", daemon="off", UA_MEMORY_PAGER=PREFIX).out


def test_a_pager_that_is_left_or_missing_or_a_command_that_fails(place: Place) -> None:
    text, code = on_a_terminal(place, "log", "--each", UA_MEMORY_PAGER="head -n 1")
    assert code == 0 and "bars" not in text
    assert on_a_terminal(place, "log", UA_MEMORY_PAGER="no-such-pager")[1] == 127
    text, code = on_a_terminal(place, "diff", "nope", UA_MEMORY_PAGER=PREFIX)
    assert code not in (0, 127) and "error" in text


# -- completions of values -----------------------------------------------------------------------------------


def test_values_are_completed(shell: Shell) -> None:
    told: dict[str, Any] = shell.ok(
        "insert", "Alice sells the kiln to Bob", "--tag", "pottery", "--json"
    ).json
    shell.ok("search", "kiln")
    shell.ok("pages", "create", "kiln", "--query", "What is known of the kiln?")
    shell.ok("core", "replace", "Me", "Short answers.")
    newest = shell.ok("log", "--json", "-n", "1").json["revisions"][0]["revision"][:7]

    def offered(*words: str) -> list[str]:
        return shell.ok("completion", "bash", "--", *words).out.splitlines()

    block = told["id"].removeprefix("^")
    assert offered("search", "--tag", "po") == ["pottery"]
    assert offered("get", f"^{block[:3]}") == [f"^{block}"] and f"^{block}" in offered("retire", "")
    assert offered("why", f"^{block[:3]}") == [f"^{block}"] == offered("retire", "x", "--by", f"^{block[:3]}")
    assert offered("undo", newest[:4]) == [newest] == offered("diff", newest[:4])
    assert offered("pages", "get", "") == ["kiln"] and offered("pages", "create", "") == []
    assert offered("core", "get", "M") == ["Me"] and offered("edit", "MEM") == ["MEMORY.md"]
    assert offered("search", "--kind", "pre") == ["preference"]
    assert offered("recall", "--tags-match", "e") == ["exact"] and offered("list", "--person", "Al") == [
        "Alice"
    ]
    assert offered("mcp", "--tools", "list_t") == ["list_tags"] and offered("help", "lo") == ["log"]
    assert offered("config", "set", "mcp.t") == ["mcp.tools"]
    assert (
        shell.ok("completion", "fish", "--", "get", f"^{block[:3]}").out
        == f"^{block}\tAlice sells the kiln to Bob\n"
    )


def test_without_a_bank_or_an_index_nothing_is_offered_and_nothing_is_said(
    tmp_path: Path, shell: Shell
) -> None:
    for where in (Shell(tmp_path, tmp_path), shell):
        done = where.ok("completion", "bash", "--", "search", "--tag", "")
        assert done.out == done.err == ""


# -- what to type --------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_doctor_says_what_to_type_where_it_cannot_write(shell: Shell) -> None:
    (shell.cwd / "memory").chmod(0o500)
    try:
        done = shell("doctor")
        assert done.code == 12 and f"hint: chmod u+rwx {shell.cwd / 'memory'}" in done.out
    finally:
        (shell.cwd / "memory").chmod(0o700)


def test_doctor_says_what_to_type_where_the_lock_is_a_folder(shell: Shell) -> None:
    lock = Path(shell.ok("status", "--json").json["trail"]) / "ua-memory" / "lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()
    done = shell("doctor")
    assert done.code == 12 and f"hint: rm -r {lock}" in done.out


def test_a_query_has_a_time_and_a_text_metadata(shell: Shell) -> None:
    text = "We decided that Alice moves the API to Fly.io: Heroku costs 400 dollars."
    shell.ok("retain", text, "--timestamp", "2026-03-05", "--metadata", "ticket=SHOP-12")
    assert "Fly.io" in shell.ok("search", "Fly.io", "--tag", "ticket:SHOP-12").out
    assert "Fly.io" in shell.ok("search", "what was decided last week?", "--now", "2026-03-12", "-n", "1").out
    assert "Fly.io" in shell.ok("recall", "Fly.io", "--since", "last week", "--until", "last week",
                                "--now", "2026-03-12").out  # fmt: skip
    assert shell("search", "x", "--now", "soon").code == 2
    assert shell("retain", "x", "--metadata", "ticket").code == 2
