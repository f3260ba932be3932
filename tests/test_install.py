"""`ua-memory install` and `uninstall` as their user runs them, in a home folder of their own."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from terminal import Shell, new_shell
from test_cli_json import agrees

CLIENTS = ["claude-code", "codex", "pi", "openclaw", "hermes"]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = new_shell(tmp_path)
    command = tmp_path / "bin" / "ua-memory"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    shell.env["PATH"] = str(command.parent)
    return shell


def tree(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("client", CLIENTS)
def test_in_twice_and_out_again(shell: Shell, client: str) -> None:
    before = tree(shell.home)
    assert shell("install", client, "--check").code == 12
    shown = shell.ok("install", client, "--dry-run")
    assert tree(shell.home) == before and shown.out.startswith("--- /dev/null\n+++ ") and shown.err == ""
    first = shell.ok("install", client, "--json").json
    agrees("install", first)
    assert first["changed"] and {each["does"] for each in first["files"]} <= {"make", "change"}
    there = tree(shell.home)
    second = shell.ok("install", client)
    assert tree(shell.home) == there and "In place" in second.out and "Made" not in second.out
    checked = shell.ok("install", client, "--check", "--json").json
    agrees("install check", checked)
    assert checked["installed"] and checked["checks"][-1]["where"] == f"{shell.env['PATH']}/ua-memory"
    assert shell.ok("uninstall", client, "--dry-run").out.count("+++ /dev/null") == len(there.keys() - before)
    assert "Removed" in shell.ok("uninstall", client).out
    assert tree(shell.home) == before
    assert shell.ok("uninstall", client).out == f"Nothing of ua-memory is in {client}'s settings.\n"


def test_a_missing_command_is_told(shell: Shell) -> None:
    shell.ok("install", "codex")
    (Path(shell.env["PATH"]) / "ua-memory").rename(Path(shell.env["PATH"]) / "gone")
    assert shell("install", "codex", "--check").code == 12


def test_a_file_that_cannot_be_read_keeps_all_of_them_as_they_are(shell: Shell) -> None:
    broken = shell.home / ".claude.json"
    broken.write_text('{\n  "a": 1,,\n}')
    refused = shell("install", "claude-code")
    assert refused.code == 9 and f"{broken}:2: cannot be read" in refused.err
    assert not (shell.home / ".claude").exists() and broken.read_text() == '{\n  "a": 1,,\n}'
    broken.write_bytes(b"{\n\n\xff}")
    assert f"{broken}:3: cannot be read: not UTF-8" in shell("install", "claude-code").err


def test_mode_and_links_stay(shell: Shell, tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles" / "claude.json"
    dotfiles.parent.mkdir()
    dotfiles.write_text("{}")
    dotfiles.chmod(0o600)
    link = shell.home / ".claude.json"
    link.symlink_to(dotfiles)
    shell.ok("install", "claude-code")
    assert link.is_symlink() and "ua-memory" in dotfiles.read_text()
    assert stat.S_IMODE(dotfiles.stat().st_mode) == 0o600
    assert list(dotfiles.parent.iterdir()) == [dotfiles]
    shell.ok("uninstall", "claude-code")
    assert link.is_symlink() and dotfiles.read_text() == "{}"


def test_variables_of_the_clients_name_their_folders(shell: Shell, tmp_path: Path) -> None:
    shell.env |= {"CLAUDE_CONFIG_DIR": str(tmp_path / "c"), "CODEX_HOME": str(tmp_path / "x")}
    shell.ok("install", "claude-code")
    shell.ok("install", "codex")
    assert {"c/settings.json", "c/.claude.json", "x/config.toml", "x/hooks.json"} <= tree(tmp_path).keys()


def test_a_named_bank_goes_along(shell: Shell) -> None:
    shell.ok("--bank", "notes", "install", "claude-code")
    server = json.loads((shell.home / ".claude.json").read_text())["mcpServers"]["ua-memory"]
    assert server["args"] == ["--bank", str(shell.cwd / "notes"), "mcp"]
    shell.ok("install", "claude-code")
    assert "notes" not in (shell.home / ".claude.json").read_text()


def test_a_project_calls_the_command_by_its_name(shell: Shell) -> None:
    shell.ok("install", "claude-code", "--project")
    assert (
        json.loads((shell.cwd / ".mcp.json").read_text())["mcpServers"]["ua-memory"]["command"] == "ua-memory"
    )
    assert not (shell.home / ".claude.json").exists()


def test_a_plugin_is_a_marketplace_that_goes_without_a_trace(shell: Shell) -> None:
    shell.ok("install", "claude-code", "--plugin", "market/here")
    inner = shell.cwd / "market/here/plugins/ua-memory"
    hooks = json.loads((inner / "hooks/hooks.json").read_text())["hooks"]
    assert hooks["SessionEnd"][0]["hooks"][0]["command"] == "ua-memory"
    assert {file.name for file in (inner / "skills").iterdir()} == {"recall", "remember"}
    shell.ok("uninstall", "claude-code", "--plugin", "market/here")
    assert not (shell.cwd / "market/here").exists()


def test_the_line_for_agents(shell: Shell) -> None:
    rules = shell.cwd / "AGENTS.md"
    rules.write_text("# Rules\n")
    assert "archival_memory_search" in shell.ok("install", "pi").out
    assert "--agents-md" not in shell.ok("install", "pi", "--agents-md", "AGENTS.md").out
    assert rules.read_text().count("<!-- ua-memory -->") == 1
    assert shell.ok("install", "pi", "--agents-md", "AGENTS.md", "--check").code == 0
    shell.ok("uninstall", "pi", "--agents-md", "AGENTS.md")
    assert rules.read_text() == "# Rules\n"


def test_without_a_bank_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    shell = Shell(tmp_path / "home", tmp_path / "work")
    assert "ua-memory init" in shell.ok("install", "codex").err
