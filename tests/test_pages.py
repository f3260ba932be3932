"""Pages and mental models as files: declared, changed, deleted; a model is a person's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_model import FakeModel
from terminal import EVERY, Shell, new_shell
from test_cli_json import agrees

from ua_memory.errors import Usage

WRITES = (
    "append_paragraph",
    {"section": "S0", "sentences": [{"text": "The API runs on Fly.io.", "evidence": [1]}]},
)


def preview(shell: Shell) -> Any:
    """One page of a dry run with a model."""
    with FakeModel({"calls": [WRITES]}, {"text": "done"}) as fake:
        url = {"ANTHROPIC_BASE_URL": fake.url}
        return shell.ok("pages", "refresh", "infra", "--full", "--dry-run", "--json", **url).json["pages"][0]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return new_shell(tmp_path)


def test_a_page_is_declared_in_one_commit_and_its_body_is_empty(shell: Shell) -> None:
    shell.ok(
        "pages", "create", "infra", "--name", "Infra: ours", "--query", "where does it run", "--tag", "x"
    )
    text = (shell.cwd / "memory/pages/infra.md").read_text()
    assert text == '---\nid: infra\nname: "Infra: ours"\nsource_query: where does it run\ntags: [x]\n---\n'
    assert shell.ok("log").out.count("Created the page infra") == 1
    assert "pages refresh infra" in shell.ok("pages", "get", "infra").out
    listed = "infra  Infra: ours  where does it run  stale: never refreshed\n"
    assert shell.ok("pages", "list").out == listed


def test_only_the_lines_of_what_is_changed_differ(shell: Shell) -> None:
    shell.write(
        "memory/pages/own.md", "---\nid: own # mine\nname: Own\nsource_query: a\nx: 1\n---\n\nBody.\r\n"
    )
    shell.ok("pages", "update", "own", "--query", "b")
    data = (shell.cwd / "memory/pages/own.md").read_bytes()
    assert data == b"---\nid: own # mine\nname: Own\nsource_query: b\nx: 1\n---\n\nBody.\r\n"


@pytest.mark.parametrize("bad", ["", "../x", "a/b", ".a", "2026-11-21", "con", "x" * 65, "a b", "ä"])
def test_an_id_is_a_file_name_everywhere(shell: Shell, bad: str) -> None:
    assert shell("pages", "create", bad, "--query", "x").code == Usage.exit_code
    assert not (shell.cwd / "memory/pages").exists()


@pytest.mark.parametrize(
    "more", [("--query", " "), ("--query", "a\nb"), ("--query", "x", "--name", "y" * 201)]
)
def test_a_recipe_is_plain_words(shell: Shell, more: tuple[str, ...]) -> None:
    assert shell("pages", "create", "a", *more).code == 2
    assert not (shell.cwd / "memory/pages").exists()


def test_there_is_one_page_of_an_id_in_either_letter_case(shell: Shell) -> None:
    shell.ok("pages", "create", "infra", "--query", "x")
    assert "already" in shell("pages", "create", "INFRA", "--query", "x").err
    assert shell.ok("pages", "get", "INFRA").out and shell("pages", "update", "infra").code == 2
    missing = shell("pages", "get", "nope")
    assert missing.code == 4 and "ua-memory pages list" in missing.err


def test_a_deleted_page_comes_back_by_undo(shell: Shell) -> None:
    shell.ok("pages", "create", "infra", "--query", "x")
    shell.ok("pages", "delete", "infra")
    assert shell.ok("pages", "list").out.startswith("No pages yet")
    shell.ok("undo")
    assert shell.ok("pages", "list").out.startswith("infra")


def test_a_mental_model_is_written_by_a_person_and_by_no_machine(shell: Shell) -> None:
    shell.ok("models", "create", "host", "--name", "Hosts", stdin="Price first.\n\nThen latency.\n")
    shell.terminals = EVERY
    shell.ok("models", "update", "host", "Latency", "first.")
    assert shell.ok("models", "get", "host").out == "Latency first.\n"
    shell.terminals = frozenset()
    for verb in ("create", "update", "delete"):
        refused = shell("models", verb, "host", *(() if verb == "delete" else ("x",)), CLAUDECODE="1")
        assert refused.code == 2 and ("only a person" in refused.err or "already" in refused.err)
    assert [one["author"] for one in shell.ok("log", "--json").json["revisions"][:2]] == ["person"] * 2
    assert shell("models", "create", "empty", stdin="\n").code == 2


def test_an_editor_opens_where_a_person_gives_no_text(shell: Shell) -> None:
    shell.terminals = EVERY
    editor = shell.cwd.parent / "editor.sh"
    editor.write_text('#!/bin/sh\necho "Written in an editor." > "$1"\n')
    editor.chmod(0o700)
    shell.ok("models", "create", "host", EDITOR=str(editor), VISUAL=str(editor))
    assert shell.ok("models", "get", "host").out == "Written in an editor.\n"
    assert "the editor saved nothing" in shell("models", "update", "host", EDITOR="true", VISUAL="true").err


def test_secrets_in_a_recipe_or_a_model_are_taken_out(shell: Shell) -> None:
    secret = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    shell.ok("pages", "create", "a", "--query", f"what is {secret} for")
    done = shell.ok("models", "create", "b", f"Use {secret}", "--json").json
    assert done["redacted"] and not any(
        secret in path.read_text() for path in (shell.cwd / "memory").rglob("*.md")
    )


def test_what_is_printed_as_json(shell: Shell) -> None:
    made = shell.ok("pages", "create", "infra", "--query", "x", "--json").json
    agrees("pages create", made)
    listed = shell.ok("pages", "list", "--json").json
    agrees("pages list", listed)
    assert shell.ok("pages", "get", "infra", "--json").json == {
        key: value for key, value in listed["pages"][0].items() if key != "stale"
    }
    shell.ok("insert", "The API runs on Fly.io.")
    shell.write(
        "memory/pages/infra.md", "---\nid: infra\nname: x\nsource_query: API on Fly\n---\n\nIt is mine.\n"
    )
    with FakeModel({"calls": [WRITES]}, {"text": "done"}) as fake:
        asked = shell.ok("pages", "refresh", "--all", "--json", ANTHROPIC_BASE_URL=fake.url)
    agrees("pages refresh", asked.json)
    again = shell.ok("pages", "refresh", "--stale", "--json").json
    assert asked.err == "" and again == {"pages": []}
    assert {"model", "tokens", "requests", "usd"} == set(preview(shell)["estimate"])
    assert made["name"] == "infra" and made["path"] == "memory/pages/infra.md"
    model = shell.ok("models", "create", "host", "Price first.", "--json").json
    assert set(model) == set(made) - {"query"}
    (one,) = shell.ok("models", "list", "--json").json["models"]
    assert one == shell.ok("models", "get", "host", "--json").json and one["body"] == "Price first."
    agrees("models refresh", shell.ok("models", "refresh", "host", "--json").json)


def test_a_mental_model_is_only_ever_proposed_to(shell: Shell) -> None:
    shell.ok("insert", "The database is hosted at Hetzner, where it is cheapest.")
    shell.ok("models", "create", "host", "Where we host the database: the cheapest.")
    before = (shell.cwd / "memory/models/host.md").read_text()
    plain = shell.ok("models", "refresh", "host")
    assert "+- The database is hosted at Hetzner" in plain.out and "nothing was written" in plain.err
    given = {"paragraph": "P1", "sentences": [{"text": "We host at Hetzner.", "evidence": [1]}]}
    with FakeModel({"calls": [("replace_paragraph", given)]}, {"text": "done"}) as fake:
        asked = shell.ok("models", "refresh", "host", ANTHROPIC_BASE_URL=fake.url)
    assert "-Where we host the database" in asked.out and "+We host at Hetzner. [[2026-11-21#^" in asked.out
    assert (shell.cwd / "memory/models/host.md").read_text() == before
