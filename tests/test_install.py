"""`ua-memory install` and `uninstall` as their user runs them, in a home folder of their own."""

from __future__ import annotations

import json
import os
import plistlib
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from terminal import Shell, new_shell
from test_cli_json import agrees

import ua_memory
from ua_memory import clients
from ua_memory.cli import install as installing
from ua_memory.cli.install import SERVERS
from ua_memory.clients import edit, openclaw
from ua_memory.clients import settings as schedule
from ua_memory.mcp import tools as mcp_tools

CLIENTS = list(clients.NAMES)


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
    assert tree(shell.home) == there and "Unchanged " in second.out and "Created" not in second.out
    checked = shell.ok("install", client, "--check", "--json").json
    agrees("install check", checked)
    assert checked["installed"] and checked["checks"][-1]["where"] == f"{shell.env['PATH']}/ua-memory"
    assert shell.ok("uninstall", client, "--dry-run").out.count("+++ /dev/null") == len(there.keys() - before)
    assert "Removed" in shell.ok("uninstall", client).out
    assert tree(shell.home) == before
    assert (
        shell.ok("uninstall", client).out == f"Nothing to remove: ua-memory is not in {client}'s settings.\n"
    )


def test_nobody_reads_a_private_file_while_it_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "private.json"
    file.write_bytes(b"{}")
    file.chmod(0o600)
    modes: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: modes.append(os.fstat(fd).st_mode & 0o077))
    piece = schedule.SettingsPiece(str(file), "hooks", lambda text: text, lambda text: text)
    installing.apply_steps([installing.InstallStep(piece, b"{}", b'{"token": 1}')])
    assert modes == [0] and file.stat().st_mode & 0o777 == 0o600


def test_comments_in_geminis_settings_stay(shell: Shell) -> None:
    """Gemini CLI takes them out itself before it reads the file."""
    file = shell.home / ".gemini" / "settings.json"
    file.parent.mkdir()
    theirs = '{\n  // at night\n  "theme": "dark", /* for now */\n  "mcpServers": {}\n}\n'
    file.write_text(theirs)
    shell.ok("install", "gemini")
    assert "// at night" in file.read_text() and shell.ok("install", "gemini", "--check")
    shell.ok("uninstall", "gemini")
    assert file.read_text() == theirs


def test_hooks_that_are_called_twice_are_told(shell: Shell) -> None:
    """The plugin beside the settings, and a project's settings beside a person's."""
    shell.ok("install", "claude-code")
    assert shell.ok("install", "claude-code", "--check").out.count("twice") == 0
    file = shell.home / ".claude" / "settings.json"
    on = {"ua-memory@ua-memory-local": True, "ua-memory@off": False, "other@ua-memory-local": True}
    file.write_text(json.dumps({**json.loads(file.read_text()), "enabledPlugins": on}))
    told = shell("install", "claude-code", "--check")
    row = f"twice    hooks a second time, by the plugin ua-memory@ua-memory-local: {file}"
    assert told.code == 12 and [line for line in told.out.splitlines() if "twice" in line] == [row]
    assert "more than once" in told.err and "keep one" in told.err
    again = shell.ok("install", "claude-code", "--project", "--dry-run", "--json").json
    assert [each.partition(" in ")[0] for each in again["notes"] if "second time" in each] == [
        "hooks a second time, by the hooks",
        "hooks a second time, by the plugin ua-memory@ua-memory-local",
    ]
    shell.ok("uninstall", "claude-code")
    shell.ok("install", "claude-code", "--project")
    both = shell("install", "claude-code", "--check", "--json")
    assert [each["what"] for each in both.json["checks"] if not each["ok"]] != []


@pytest.mark.parametrize("gone", [(), ("--project",)])
def test_hooks_that_are_left_alone_are_no_second_ones(shell: Shell, gone: tuple[str, ...]) -> None:
    shell.ok("install", "claude-code")
    shell.ok("install", "claude-code", "--project")
    assert "second time" not in shell.ok("uninstall", "claude-code", *gone).out


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
    assert server["args"] == ["--bank", str(shell.cwd / "notes"), "mcp", "--tools", "all"]
    shell.ok("install", "claude-code")
    assert "notes" not in (shell.home / ".claude.json").read_text()


@pytest.mark.parametrize(
    ("client", "file", "holder", "asked"),
    [
        ("claude-code", ".claude.json", ("mcpServers",), ["--tools", "all"]),
        ("codex", ".codex/config.toml", ("mcp_servers",), []),
        ("pi", ".pi/agent/mcp.json", ("mcpServers",), []),
        ("gemini", ".gemini/settings.json", ("mcpServers",), []),
        ("openclaw", ".openclaw/openclaw.json", ("mcp", "servers"), ["--tools", "openclaw"]),
    ],
)
def test_each_client_is_given_the_tools_that_suit_it(
    shell: Shell, client: str, file: str, holder: tuple[str, ...], asked: list[str]
) -> None:
    said = shell.ok("install", client).out
    text = (shell.home / file).read_text()
    found = tomllib.loads(text) if file.endswith(".toml") else json.loads(text)
    for key in (*holder, "ua-memory"):
        found = found[key]
    assert found["args"] == ["mcp", *asked]
    named = {word for word in re.findall(r"`(\w+)`", " ".join(said.split())) if word in mcp_tools.TOOLS}
    sets = asked[1:] or ["default"]
    assert len(named) == 2 and named <= set(mcp_tools.expand_names(sets)), (
        "the line for agents names its tools"
    )


def test_claude_codes_own_memory_is_pointed_at_the_bank(shell: Shell) -> None:
    file = shell.home / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text('{"model": "opus"}')
    shell.ok("install", "claude-code", "--auto-memory")
    folder = str(shell.cwd / "memory" / "claude-code")
    assert json.loads(file.read_text())["autoMemoryDirectory"] == folder
    shell.ok("uninstall", "claude-code", "--auto-memory")
    assert file.read_text() == '{"model": "opus"}'
    file.write_text('{"autoMemoryDirectory": "/mine"}')
    assert shell("install", "claude-code", "--auto-memory").code == 9
    assert file.read_text() == '{"autoMemoryDirectory": "/mine"}'
    assert shell("install", "claude-code", "--auto-memory", "--project").code == 2


def test_openclaws_memory_slot_is_taken_and_given_back(shell: Shell) -> None:
    folder = shell.home / ".openclaw"
    folder.mkdir()
    file = folder / "openclaw.json"
    for theirs in (
        '{\n  // mine\n  "agents": {},\n}\n',
        '{"plugins": {"slots": {"contextEngine": "x"}, "allow": ["y"]}}',
    ):
        file.write_text(theirs)
        shell.ok("install", "openclaw", "--memory-slot")
        found = edit.JsonDocument(file.read_text(), loose=True).value
        assert found["plugins"]["slots"]["memory"] == "ua-memory"
        assert found["plugins"]["entries"]["ua-memory"]["config"] == {"dreaming": {"enabled": False}}
        tools = found["mcp"]["servers"]["ua-memory"]["args"][2].split(",")
        assert set(tools) | {"memory_search", "memory_get"} == set(mcp_tools.expand_names(["openclaw"]))
        manifest = json.loads((folder / "extensions/ua-memory/openclaw.plugin.json").read_text())
        assert manifest["kind"] == "memory" and manifest["contracts"]["tools"] == [
            "memory_search",
            "memory_get",
        ]
        before = tree(folder)
        shell.ok("install", "openclaw")  # after an update: it stays what it is
        shell.ok("install", "openclaw", "--memory-slot", "--check")
        assert tree(folder) == before
        shell.ok("uninstall", "openclaw")
        assert tree(folder) == {"openclaw.json": theirs.encode()}
    for value in ("null", '"memory-lancedb"'):
        file.write_text(f'{{"plugins": {{"slots": {{"memory": {value}}}}}}}')
        refused = shell("install", "openclaw", "--memory-slot")
        assert refused.code == 9 and "plugins.slots.memory is already " in refused.err
        assert list(tree(folder)) == ["openclaw.json"] and value in file.read_text()
    shell.ok("install", "openclaw")
    assert '"memory-lancedb"' in file.read_text(), "beside it"


def test_openclaws_two_tools_take_what_ours_take() -> None:
    """The plugin declares them itself, for a plugin's tools must be known before anything is asked."""
    source = (Path(ua_memory.__file__).parent / "data/plugins/openclaw/index.js").read_text()
    said = re.sub(r'" \+\s+"', "", source)
    for name in openclaw.SLOT_TOOLS:
        tool = mcp_tools.TOOLS[name]
        assert tool.declaration["description"] in said
        block = source[source.index(f"  {name}: {{") :]
        block = block[: block.index("additionalProperties")]
        assert all(re.search(rf"\b{param}\b", block) for param in tool.parameters)


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


def test_cursor_in_a_project_names_the_command_only(shell: Shell) -> None:
    theirs = '{\n  "mcpServers": {\n    "other": {"url": "http://127.0.0.1:9"}\n  }\n}\n'
    shell.write(".cursor/mcp.json", theirs)
    shell.ok("install", "cursor", "--project")
    servers = json.loads((shell.cwd / ".cursor/mcp.json").read_text())["mcpServers"]
    assert servers["ua-memory"] == {"command": "ua-memory", "args": ["mcp"]} and "other" in servers
    shell.ok("uninstall", "cursor", "--project")
    assert (shell.cwd / ".cursor/mcp.json").read_text() == theirs


def test_opencodes_settings_may_be_in_jsonc_and_elsewhere(shell: Shell) -> None:
    theirs = '{\n  // mine\n  "model": "a/b",\n}\n'
    shell.env["OPENCODE_CONFIG_DIR"] = str(shell.cwd / "oc")
    shell.write("oc/opencode.jsonc", theirs)
    shell.ok("install", "opencode")
    command = [f"{shell.env['PATH']}/ua-memory", "mcp"]
    assert json.dumps(command[0]) in (shell.cwd / "oc/opencode.jsonc").read_text()
    plugin = (shell.cwd / "oc/plugin/ua-memory.js").read_text()
    assert f"const COMMAND = {json.dumps(command[:1])};" in plugin
    assert not (shell.cwd / "oc/opencode.json").exists()
    shell.env["PATH"] = "/moved"
    shell.ok("install", "opencode")
    assert command[0] not in (shell.cwd / "oc/opencode.jsonc").read_text(), "brought up to date"
    shell.ok("uninstall", "opencode")
    assert tree(shell.cwd / "oc") == {"opencode.jsonc": theirs.encode()}


BELONGS_IN = {
    "": ("mcpServers", "mcp.json, or whatever"),
    "claude-desktop": ("mcpServers", "claude_desktop_config.json"),
    "cline": ("mcpServers", "cline_mcp_settings.json"),
    "codex": ("mcp_servers", "~/.codex/config.toml"),
    "cursor": ("mcpServers", "~/.cursor/mcp.json"),
    "gemini": ("mcpServers", "~/.gemini/settings.json"),
    "opencode": ("mcp", "~/.config/opencode/opencode.json"),
    "vscode": ("servers", ".vscode/mcp.json"),
    "windsurf": ("mcpServers", "~/.codeium/windsurf/mcp_config.json"),
    "zed": ("context_servers", "~/.config/zed/settings.json"),
}


@pytest.mark.parametrize("client", SERVERS)
def test_the_entry_for_any_client(shell: Shell, client: str) -> None:
    before = tree(shell.home)
    shown = shell.ok("install", "mcp", "--print", *(["--client", client] if client else []))
    parsed = tomllib.loads(shown.out) if client == "codex" else json.loads(shown.out)
    holder, where = BELONGS_IN[client]
    entry = parsed[holder]["ua-memory"]
    assert schedule.our_arguments(entry)[1:] == ["mcp"] and f"it belongs in {where}" in shown.err
    assert Path(schedule.our_arguments(entry)[0]).is_absolute() and tree(shell.home) == before
    assert shell("install", "mcp", "--client", "nobody").code == 2


def test_a_checkout_is_a_marketplace_of_the_plugin_that_install_writes(shell: Shell) -> None:
    here = Path(__file__).parents[1]
    market = json.loads((here / ".claude-plugin/marketplace.json").read_text())
    shell.ok("install", "claude-code", "--plugin", "market")
    made = json.loads((shell.cwd / "market/.claude-plugin/marketplace.json").read_text())["plugins"][0]
    plugin = market["plugins"][0]
    assert {**plugin, "source": made["source"]} == made
    there = tree(shell.cwd / "market/plugins/ua-memory")
    assert tree(here / plugin["source"]) == there and ".claude-plugin/plugin.json" in there


def test_the_line_for_agents(shell: Shell) -> None:
    rules = shell.cwd / "AGENTS.md"
    rules.write_text("# Rules\n")
    assert "archival_memory_search" in shell.ok("install", "pi").out
    assert "--agents-md" not in shell.ok("install", "pi", "--agents-md", "AGENTS.md").out
    assert rules.read_text().count("<!-- ua-memory -->") == 1
    assert shell.ok("install", "pi", "--agents-md", "AGENTS.md", "--check").code == 0
    shell.ok("uninstall", "pi", "--agents-md", "AGENTS.md")
    assert rules.read_text() == "# Rules\n"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_check_is_not_content_without_a_bank(shell: Shell, client: str) -> None:
    shell.ok("install", client)
    shell.ok("install", client, "--check")
    shutil.rmtree(shell.cwd)
    shell.cwd.mkdir()
    checked = shell("install", client, "--check")
    assert checked.code == 12 and "missing  bank: none" in checked.out and "ua-memory init" in checked.err


THEIRS = "model:\n  default: gpt # mine\n"


@pytest.mark.parametrize(
    ("config", "after"),
    [
        ("memory:\n  provider: ua-memory\n", ""),
        (
            "memory:\n  provider: 'ua-memory'  # ours\n  memory_enabled: true\n",
            "memory:\n  memory_enabled: true\n",
        ),
        (
            'memory:\n    memory_enabled: true\n    provider: "ua-memory"\n',
            "memory:\n    memory_enabled: true\n",
        ),
        ("memory:\n  other: 1\n\n  # note\n  provider: ua-memory\n", "memory:\n  other: 1\n\n  # note\n"),
        ("memory:\r\n  provider: ua-memory\r\n", ""),
        ("memory:\n  provider: mem0\n", None),
        ("memory:\n  other:\n    provider: ua-memory\n", None),
        ("tools:\n  provider: ua-memory\n", None),
        ("# memory:\n#   provider: ua-memory\n", None),
    ],
)
def test_hermes_is_not_left_asking_for_a_provider_that_is_gone(
    shell: Shell, config: str, after: str | None
) -> None:
    shell.ok("install", "hermes")
    file = shell.home / ".hermes" / "config.yaml"
    for text, wanted in (
        (f"{THEIRS}{config}", f"{THEIRS}{after}"),
        (f"{config}{THEIRS}", f"{after}{THEIRS}"),
    ):
        shell.ok("install", "hermes")
        file.write_bytes(text.encode())
        shell.ok("uninstall", "hermes")
        assert file.read_bytes().decode() == (text if after is None else wanted)


def test_a_bank_that_other_folders_do_not_find_is_told(tmp_path: Path) -> None:
    home, notes = tmp_path / "home", tmp_path / "home/my notes"
    notes.mkdir(parents=True)
    shell = Shell(home, notes)
    shell.ok("init", ".")
    told = shell.ok("install", "claude-code").err
    assert f"only sessions in {notes} use it" in told and f"--bank '{notes}' install claude-code" in told
    assert "only sessions" not in shell.ok("--bank", str(notes), "install", "claude-code").err
    shell.ok("init", str(home / "ua-memory"))
    assert "only sessions" not in shell.ok("install", "codex").err


def test_without_a_bank_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    shell = Shell(tmp_path / "home", tmp_path / "work")
    assert "ua-memory init" in shell.ok("install", "codex").err


CRONTAB = """#!/bin/sh
file="$HOME/crontab"
if [ "$1" = -l ]; then cat "$file" 2>/dev/null; else cat > "$file"; fi
"""


def test_a_job_for_the_night(shell: Shell) -> None:
    shell.env["PATH"] += f":{os.environ['PATH']}"
    shell.env["HOME"] = str(shell.home)
    crontab = Path(shell.env["PATH"].partition(":")[0]) / "crontab"
    crontab.write_text(CRONTAB)
    crontab.chmod(0o755)
    theirs = "MAILTO=noor\n0 5 * * * backup # all"
    (shell.home / "crontab").write_text(theirs)
    shown = shell.ok("install", "cron", "--kind", "cron", "--at", "4:05", "--json").json
    agrees("install cron", shown)
    line = shown["files"][0]["text"]
    assert line.startswith("5 4 * * * ") and f"--bank {shell.cwd} consolidate" in line
    assert shell("install", "cron", "--kind", "cron", "--check").code == 12
    for _ in range(2):
        shell.ok("install", "cron", "--kind", "cron", "--at", "4:05", "--write")
        assert (shell.home / "crontab").read_text() == f"{theirs}\n{line}"
    shell.ok("install", "cron", "--kind", "cron", "--write")
    assert (shell.home / "crontab").read_text() == f"{theirs}\n" + line.replace("5 4 *", "30 3 *")
    assert shell.ok("uninstall", "cron").out == "Changed  line in crontab\n"
    assert (shell.home / "crontab").read_text() == f"{theirs}\n"
    assert shell("install", "cron", "--at", "24:00").code == 2


@pytest.fixture
def crontab(shell: Shell) -> Path:
    """Where a crontab of ours keeps its lines."""
    shell.env |= {"PATH": f"{shell.env['PATH']}:{os.environ['PATH']}", "HOME": str(shell.home)}
    command = Path(shell.env["PATH"].partition(":")[0]) / "crontab"
    command.write_text(CRONTAB)
    command.chmod(0o755)
    (shell.home / "crontab").touch()
    return shell.home / "crontab"


CRON = ("install", "cron", "--kind", "cron")


def test_a_check_asks_for_the_time_that_was_chosen(shell: Shell, crontab: Path) -> None:
    shell.ok(*CRON, "--at", "06:49", "--write")
    assert shell.ok("install", "cron", "--check").out.startswith("ok ")  # whatever runs jobs here
    shell.ok(*CRON, "--check", "--at", "06:49")
    assert shell(*CRON, "--check", "--at", "06:50").code == 12
    shell.ok("uninstall", "cron")
    assert "missing" in shell(*CRON, "--check").out


@pytest.mark.parametrize(("kind", "file"), [("systemd", "*.timer"), ("launchd", "*.plist")])
def test_a_check_reads_the_time_of_every_kind(shell: Shell, kind: str, file: str) -> None:
    job = schedule.schedule_target(
        kind, str(shell.cwd), ["u", "--bank", str(shell.cwd)], (6, 49), str(shell.home)
    )
    texts = [piece.add(None) or "" for piece in job.pieces if Path(piece.file).match(file)]
    assert [schedule.scheduled_time(kind, str(shell.cwd), text) for text in texts] == [(6, 49)]


def test_an_older_line_of_cron_s_is_known_mended_and_taken_out(shell: Shell, crontab: Path) -> None:
    name = schedule.job_name(str(shell.cwd))
    old = f"49 6 * * * /b/ua-memory --bank {shell.cwd} consolidate >/dev/null 2>&1 # {name}\n"
    crontab.write_text(f"0 5 * * * backup\n{old}")
    found = shell(*CRON, "--check")
    assert found.code == 12 and "outdated line" in found.out
    shell.ok(*CRON, "--at", "06:49", "--write")
    assert "/dev/null" not in crontab.read_text() and crontab.read_text().count(name) == 1
    shell.ok(*CRON, "--check")
    crontab.write_text(f"0 5 * * * backup\n{old}")
    shell.ok("uninstall", "cron")
    assert crontab.read_text() == "0 5 * * * backup\n"


def test_cron_s_line_keeps_what_is_said_in_the_state_folder(shell: Shell, crontab: Path) -> None:
    from ua_memory.daemon.spawn import LARGEST_LOG

    command = shutil.which("ua-memory", path=shell.env["PATH"])
    assert command
    Path(command).write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m ua_memory "$@"\n')
    shell.ok(*CRON, "--at", "06:49", "--write")
    minute, hour, *_, line = crontab.read_text().split(" ", 5)
    assert (minute, hour) == ("49", "6")
    for day in (19, 20):
        shell.write(f"memory/2026-11-{day}.md", "- The kiln is fired at night since power is cheap then\n")
    log = shell.cwd / ".git/ua-memory/local/consolidate.log"
    few = {"HOME": str(shell.home), "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", "LOGNAME": "noor"}

    def nightly() -> None:
        words = ["sh", "-c", line.replace(r"\%", "%").strip()]
        done = subprocess.run(words, env=few, cwd=shell.home, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    nightly()
    said = log.read_text()
    assert "considered without a model" in said and log.stat().st_mode & 0o777 == 0o600
    log.write_text("x" * LARGEST_LOG)
    nightly()
    assert log.stat().st_size < LARGEST_LOG and log.with_suffix(".log.1").stat().st_size == LARGEST_LOG


def test_a_crontab_that_cannot_be_read_is_not_replaced(shell: Shell) -> None:
    shell.env["PATH"] += f":{os.environ['PATH']}"
    shell.env["HOME"] = str(shell.home)
    crontab = Path(shell.env["PATH"].partition(":")[0]) / "crontab"
    there = shell.home / "crontab"
    odd = b"0 5 * * * echo caf\xe9\r\n"
    there.write_bytes(odd)
    crontab.write_text(CRONTAB.replace('cat "$file" 2>/dev/null', 'echo "you may not" >&2; exit 1'))
    crontab.chmod(0o755)
    asked = ("install", "cron", "--kind", "cron", "--write")
    refused = shell(*asked)
    assert refused.code == 10 and "you may not" in refused.err
    assert shell("uninstall", "cron").code == 10 and there.read_bytes() == odd
    crontab.write_text(CRONTAB)  # and what is not UTF-8 stays to the byte
    assert shell.ok(*asked) and there.read_bytes().startswith(odd)
    assert "caf" in shell.ok("uninstall", "cron", "--dry-run").out
    assert shell.ok("uninstall", "cron") and there.read_bytes() == odd
    crontab.write_text(CRONTAB.replace('cat "$file" 2>/dev/null', 'echo "no crontab for noor" >&2; exit 1'))
    assert shell.ok(*asked) and there.read_bytes().count(b"\n") == 1


def test_advice_without_crontab_is_what_is_there(shell: Shell) -> None:
    asked = ("install", "cron", "--kind", "cron", "--write")
    assert "hint: install your system's cron" in shell(*asked).err
    command = Path(shell.env["PATH"]) / "systemctl"
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    assert "hint: ua-memory install cron --kind systemd" in shell(*asked).err


def test_a_job_of_systemd(shell: Shell) -> None:
    log = shell.home / "systemctl.log"
    command = Path(shell.env["PATH"]) / "systemctl"
    command.write_text(f'#!/bin/sh\necho "$@" >> {log}\n')
    command.chmod(0o755)
    told = shell.ok("install", "cron", "--write")
    assert "at your next login: loginctl enable-linger" in told.out + told.err
    units = sorted((shell.home / ".config/systemd/user").iterdir())
    assert [unit.suffix for unit in units] == [".service", ".timer"]
    assert f"--bank {shell.cwd} consolidate" in units[0].read_text()
    assert "OnCalendar=*-*-* 03:30:00" in units[1].read_text()
    assert log.read_text().splitlines()[1:] == [
        "--user daemon-reload",
        f"--user enable --now {units[1].name}",
    ]
    shell.ok("uninstall", "cron")
    assert not list((shell.home / ".config/systemd/user").iterdir())
    assert f"--user disable --now {units[1].name}" in log.read_text()


def test_names_that_schedulers_would_read_as_something_else() -> None:
    bank, home = '/h/50% "off" $x', "/h"
    for kind in schedule.SCHEDULERS:
        job = schedule.schedule_target(kind, bank, ["/b/ua-memory", "--bank", bank], (3, 30), home)
        text = job.pieces[0].add(None)
        assert text and job.pieces[0].add(text) == text
    cron, systemd, launchd = (
        schedule.schedule_target(kind, bank, ["u", "--bank", bank], (3, 30), home).pieces[0].add(None) or ""
        for kind in schedule.SCHEDULERS
    )
    assert r"'/h/50\% " in cron and '"/h/50%% \\"off\\" $$x"' in systemd
    assert plistlib.loads(launchd.encode())["ProgramArguments"] == ["u", "--bank", bank, "consolidate"]


# -- shells ------------------------------------------------------------------------------------------------


def test_completions_know_verbs_options_and_families(shell: Shell) -> None:
    def offered(*words: str) -> list[str]:
        return shell.ok("completion", "bash", "--", *words).out.splitlines()

    assert offered("sea") == ["search"] and "install" in offered("") and "--bank" in offered("--b")
    assert offered("search", "--lim") == ["--limit"]
    assert offered("--bank", "x", "uninstall", "cl") == ["claude-code"]
    assert offered("--bank", "") == []
    assert shell.ok("completion", "zsh", "--", "scan").out == "scan:Find secrets in the files.\n"
    assert shell.ok("completion", "fish", "--", "scan").out.startswith("scan\tFind")
    assert shell("completion", "ksh").code == 2
    assert {"-h", "--help"} <= {*offered("retire", "-")}
    assert "-h, --help" in shell.ok("retire", "-h").out, "in one process"


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_what_shells_are_given_is_their_language(shell: Shell, name: str) -> None:
    if not (program := shutil.which(name)):
        pytest.skip(f"no {name} here")
    text = shell.ok("completion", name).out
    text += "" if name == "fish" else shell.ok("hook", "shell", name).out
    assert subprocess.run([program, "-n"], input=text, text=True, check=False).returncode == 0
    assert shell("hook", "shell", "tcsh").code == 2
