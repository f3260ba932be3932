"""What a client is, and the entries that `ua-memory install` adds to the settings of one."""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ua_memory import config, paths
from ua_memory.clients import edit
from ua_memory.clients.edit import EditError, JsonDocument, append_lines, remove_lines, split_lines
from ua_memory.clients.turns import Database, Format
from ua_memory.paths import Surroundings
from ua_memory.text.patterns import data_text

# -- folders and commands ----------------------------------------------------------------------------------
# The folders of each client, the command that starts ua-memory from it, and the files that we ship for it.


Homes = tuple[tuple[str, ...], ...]
"""The folders of a client: (environment variable, default folder, subfolders)."""


def folders(call: Surroundings, homes: Homes) -> list[Path]:
    """The folders of a client, whether or not they exist; the one in use comes first."""
    return [
        paths.absolute(call, call.env.get(variable) or usual).joinpath(*below)
        for variable, usual, *below in homes
    ]


def command_of(call: Surroundings, *, shared: bool = False) -> list[str]:
    """The command line that starts ua-memory from a client, with `--bank` if the caller named one.

    It begins with an absolute path, since a client started from a desktop has another PATH. In files that are
    shared with other people (`shared`) it begins with the bare name.
    """
    bank = ["--bank", str(paths.absolute(call, call.bank))] if call.bank else []
    if shared:
        return ["ua-memory", *bank]
    beside = Path(sys.executable).parent / "ua-memory"
    # Prefer the path found in PATH: a link in ~/.local/bin outlives the environment that it points to now.
    found = shutil.which("ua-memory", path=call.env.get("PATH")) or (str(beside) if beside.exists() else None)
    return [os.path.abspath(found) if found else "ua-memory", *bank]  # noqa: PTH100 (no link is followed)


def client_files(client: str) -> dict[str, str]:
    """The files shipped for a client: {name: text}. The suffix `.in` hides Python from our own linters."""
    folder = Path(__file__).parent.parent / "data" / "plugins" / client
    files = {f.relative_to(folder).as_posix(): f for f in sorted(folder.rglob("*")) if f.is_file()}
    return {name.removesuffix(".in"): file.read_text("utf-8") for name, file in files.items()}


# -- settings ----------------------------------------------------------------------------------------------
# Pure functions that add our entries to the text of a client's settings files and remove them.
#
# A `SettingsPiece` is one entry of ours in one file. `add` and `remove` take the file's text (None: no file)
# and return the new text (None: delete the file). Text that needs no change is returned unchanged, and all
# other bytes of the file stay. They raise EditError if the text cannot be parsed.


SERVER_NAME = "ua-memory"
"""The name of our MCP server, plugins and extensions in a client, and of the command."""

COMMAND_PLACEHOLDER = ("command", "args")
"""The keys of an entry that hold its command line."""
TextChange = Callable[[str | None], str | None]


class SettingsPiece(NamedTuple):
    """One entry of ours: its file, a name to show (`what`), and the functions that add and remove it.

    `folder` is a folder that we create; `uninstall` removes it if it is empty.
    """

    file: str
    what: str
    add: TextChange
    remove: TextChange
    folder: str = ""


class ClientTarget(NamedTuple):
    """The entries to install in a client's files, and notes for the user.

    `duplicates`: (what else runs our hooks, its file). `left`: entries that the user made with the client's
    own commands; `uninstall` removes them too.
    """

    client: str
    pieces: tuple[SettingsPiece, ...]
    notes: tuple[str, ...] = ()
    duplicates: tuple[tuple[str, str], ...] = ()
    left: tuple[SettingsPiece, ...] = ()


def json_piece(file: str, what: str, add: Callable[[JsonDocument], None],
               remove: Callable[[JsonDocument], None], *, loose: bool = False) -> SettingsPiece:  # fmt: skip
    """An entry in a JSON file; `loose` accepts JSON5."""

    def add_to_text(text: str | None) -> str | None:
        document = JsonDocument(text or "", loose=loose)
        add(document)
        new = document.text()
        return f"{new}\n" if text is None and new else new

    def remove_from_text(text: str | None) -> str | None:
        if text is None:
            return None
        document = JsonDocument(text, loose=loose)
        remove(document)
        return document.text()

    return SettingsPiece(file, what, add_to_text, remove_from_text)


def json_value(
    file: str, what: str, path: tuple[str | int, ...], value: Any, *, loose: bool = False,
    more: Callable[[JsonDocument], None] = lambda _: None,
) -> SettingsPiece:  # fmt: skip
    """A single value in a JSON file; `more` makes further edits. EditError if another value is set there."""

    def add(document: JsonDocument) -> None:
        there = document.at(path)
        if there is not None and there.value != value:
            name = ".".join(map(str, path))
            raise EditError(document.line(path), f"{name} is already {there.value!r}; remove it first")
        if there is None:
            document.put(path, value)
        more(document)

    def remove(document: JsonDocument) -> None:
        if (there := document.at(path)) is not None and there.value == value:
            document.cut(path)

    return json_piece(file, what, add, remove, loose=loose)


def toml_server(file: str, entry: dict[str, Any]) -> SettingsPiece:
    """Our MCP server in a TOML file. A table of this name with another command is the user's and stays
    unchanged."""
    name = ("mcp_servers", SERVER_NAME)

    def add(text: str | None) -> str | None:
        there = edit.read_table(text or "", name)
        if there is not None and not our_arguments(there):
            return text
        wanted = {k: v for k, v in entry.items() if k in COMMAND_PLACEHOLDER or k not in (there or {})}
        return edit.put_table(text, name, wanted)

    def remove(text: str | None) -> str | None:
        there = edit.read_table(text or "", name)
        theirs = there is not None and not our_arguments(there)
        return text if not text or theirs else edit.remove_table(text, name)

    return SettingsPiece(file, "MCP server", add, remove)


def model_piece(file: str, provider: str) -> SettingsPiece:
    """The setting `provider` in the user's config: the client's program as the model. Another value stays."""

    def add(text: str | None) -> str | None:
        return config.put((text or "").encode(), file, "provider", provider).decode()

    def remove(text: str | None) -> str | None:
        if not text or tomllib.loads(text.lstrip("\ufeff")).get("provider") != provider:
            return text
        left = config.edited(
            text.encode(), file, lambda document: document.pop("provider"),
            lambda before: {key: value for key, value in before.items() if key != "provider"},
        )  # fmt: skip
        return left.decode() or None

    return SettingsPiece(file, "model", add, remove, os.path.dirname(file))  # noqa: PTH120


MODEL_NOTE = (
    "{} is memory's model now: each conversation is sent once more to the vendor that already has it, and "
    "counts against your subscription. The program saves nothing of it here. To test it: ua-memory model test"
)


def own_file(file: str, what: str, content: str, mark: str, folder: str = "") -> SettingsPiece:
    """A file that is wholly ours. EditError if the existing file does not contain `mark`."""

    def add(text: str | None) -> str | None:
        return content if text is None or ours(text) else text

    def remove(text: str | None) -> str | None:
        return None if text is not None and ours(text) else text

    def ours(text: str) -> bool:
        if mark not in text:
            raise EditError(1, f"not our file (it has no {mark!r}); move it away")
        return True

    return SettingsPiece(file, what, add, remove, folder)


# -- MCP ---------------------------------------------------------------------------------------------------


def mcp_server(
    file: str, holder: tuple[str, ...], entry: dict[str, Any], *, loose: bool = False
) -> SettingsPiece:
    """Our MCP server in the object `holder` of a JSON file. Keys that the user added to the entry stay."""
    path = (*holder, SERVER_NAME)

    def add(document: JsonDocument) -> None:
        there = document.at(path)
        if there is None:
            document.put(path, entry)
        elif our_arguments(there.value):
            _update_entry(document, path, entry)

    def remove(document: JsonDocument) -> None:
        there = document.at(path)
        if there is not None and our_arguments(there.value):
            document.cut(path)

    return json_piece(file, "MCP server", add, remove, loose=loose)


def _update_entry(document: JsonDocument, path: tuple[str | int, ...], entry: dict[str, Any]) -> None:
    """Update the command of our entry and add missing keys. Other values that the user set stay."""
    there = document.at(path)
    assert there is not None
    for key, value in entry.items():
        if key not in there.value or (key in COMMAND_PLACEHOLDER and there.value[key] != value):
            document.put((*path, key), value)


def our_arguments(entry: Any) -> list[str]:
    """Our command and its arguments in a settings entry; [] if the entry runs something else."""
    command = entry.get("command") if isinstance(entry, dict) else None
    if isinstance(command, list):  # OpenCode: command and arguments are one list
        words = [each for each in command if isinstance(each, str)]
    elif isinstance(command, str):
        more = entry.get("args", [])
        args = [each for each in more if isinstance(each, str)] if isinstance(more, list) else []
        try:
            words = [command] if args else shlex.split(command)
        except ValueError:
            return []
        words += args
    else:
        return []
    for at, word in enumerate(words[:4]):  # `python -P -m ua_memory` is ours, too
        if os.path.basename(word) in (SERVER_NAME, "ua_memory"):  # noqa: PTH119 (not a path)
            return words[at:]
    return []


Printed = Callable[[Sequence[str]], SettingsPiece]
"""Makes our MCP server of a command, in a client's form, for the user to paste."""


def server_in(where: str, holder: str = "mcpServers", **more: str) -> Printed:
    """Our MCP server for a client that has it in the usual form, in the object `holder`."""
    return lambda command: mcp_server(where, (holder,), {**more, **command_entry(command, "mcp")})


SERVERS: Mapping[str, Printed] = {
    "": server_in("mcp.json, or whatever your client calls it"),
    "claude-desktop": server_in("claude_desktop_config.json (Settings, Developer, Edit Config)"),
    "cline": server_in("cline_mcp_settings.json (MCP Servers, Configure)"),
    "vscode": server_in(".vscode/mcp.json", "servers", type="stdio"),
    "windsurf": server_in("~/.codeium/windsurf/mcp_config.json"),
    "zed": server_in("~/.config/zed/settings.json", "context_servers"),
}
"""The form of the MCP server in clients that `install` does not support, by their documentation."""


EVERY_TOOL = ("--tools", "all")
"""Options for Claude Code, which loads a tool's schema only when it is needed. Other clients send all schemas
with each request, so they get the default set."""


# -- hooks in Claude Code's form ---------------------------------------------------------------------------


def hooks_piece(file: str, wanted: dict[str, dict[str, Any]], *, loose: bool = False) -> SettingsPiece:
    """Our hooks, one for each event; other hooks stay. `wanted`: {event: the hook object}."""

    def add(document: JsonDocument) -> None:
        for event, places in our_hooks(document).items():
            for place in reversed(places[1:] if event in wanted else places):
                _remove_hook(document, place)
        for event, hook in wanted.items():
            places = our_hooks(document).get(event, [])
            if places:
                _update_entry(document, places[0], hook)
                continue
            groups = document.at(("hooks", event))
            number = len(groups.members or ()) if groups else 0
            document.put(("hooks", event, number), {"hooks": [hook]})

    def remove(document: JsonDocument) -> None:
        for places in our_hooks(document).values():
            for place in reversed(places):
                _remove_hook(document, place)

    return json_piece(file, "hooks", add, remove, loose=loose)


def shell_hooks(
    command: Sequence[str], client: str, timeouts: Mapping[str, int]
) -> dict[str, dict[str, Any]]:
    """The hooks of a client that runs a shell command: {event: the hook object}."""
    line = shlex.join([*command, "hook", "--client", client])
    return {event: {"type": "command", "command": line, "timeout": n} for event, n in timeouts.items()}


def our_hooks(document: JsonDocument) -> dict[str, list[tuple[str | int, ...]]]:
    """The key paths of our hooks: {event: paths}. EditError if `hooks` has another form."""
    hooks = document.value.get("hooks", {})
    if not isinstance(hooks, dict):
        raise EditError(document.line(("hooks",)), "hooks is not an object")
    found: dict[str, list[tuple[str | int, ...]]] = {}
    for event, groups in hooks.items():
        if not isinstance(groups, list):
            raise EditError(document.line(("hooks", event)), f"hooks.{event} is not a list")
        for number, group in enumerate(groups):
            inner = group.get("hooks") if isinstance(group, dict) else None
            for place, hook in enumerate(inner if isinstance(inner, list) else ()):
                if "hook" in our_arguments(hook)[1:]:
                    found.setdefault(event, []).append(("hooks", event, number, "hooks", place))
    return found


def _remove_hook(document: JsonDocument, place: tuple[str | int, ...]) -> None:
    """Remove a hook, and its whole group if the group has no other hook."""
    group = document.at(place[:-2])
    assert group is not None
    document.cut(place if len(group.value["hooks"]) > 1 else place[:-2])


# -- line for agents ---------------------------------------------------------------------------------------

LINE_MARK = "<!-- ua-memory -->"
AGENTS_LINE = (
    "Search ua-memory (the tool `archival_memory_search`) before you answer anything about earlier work,"
    " decisions, people or preferences, and save what later sessions will need with `archival_memory_insert`."
)
"""A line for an agent's instructions. In our measurement no agent searched memory without it (0 of 40
sessions), and all did with it (40 of 40)."""


def agents_text(client: str) -> str:
    """The line for agents with the tool names of the client."""
    name = "memory_search" if client == "openclaw" else "archival_memory_search"
    return AGENTS_LINE.replace("archival_memory_search", name)


def agents_line_piece(file: str, client: str) -> SettingsPiece:
    """The line for agents at the end of AGENTS.md, CLAUDE.md or the like, identified by LINE_MARK."""
    line = f"{agents_text(client)} {LINE_MARK}"

    def add(text: str | None) -> str | None:
        if text and LINE_MARK in text:
            return "".join(
                line + row[len(row.rstrip("\r\n")) :] if LINE_MARK in row else row
                for row in split_lines(text)
            )
        return append_lines(text, [line])

    def remove(text: str | None) -> str | None:
        rows = split_lines(text or "")
        at = next((n for n, row in enumerate(rows) if LINE_MARK in row), None)
        if text is None or at is None:
            return text
        return "".join(remove_lines(rows, at, at + 1)) if text != line + "\n" else None

    return SettingsPiece(file, "line for agents", add, remove)


def command_entry(command: Sequence[str], *more: str) -> dict[str, Any]:
    """A settings entry {command, args} that runs ua-memory with the further arguments `more`."""
    return {"command": command[0], "args": [*command[1:], *more]}


def with_command(text: str, command: Sequence[str]) -> str:
    """A plugin's source with its ua-memory command replaced by `command`."""
    usual = f'["{SERVER_NAME}"]'
    assert text.count(usual) == 1, "a shim must name the ua-memory command exactly once"
    return text.replace(usual, json.dumps(list(command)))


def plugin_files(
    folder: str, what: str, texts: Mapping[str, str], command: Sequence[str]
) -> list[SettingsPiece]:
    """The files of a plugin in its own folder, with our command inserted in .py and .js files."""
    pieces = []
    for name, text in sorted(texts.items()):
        shown = with_command(text, command) if name.endswith((".py", ".js")) else text
        pieces.append(own_file(f"{folder}/{name}", what, shown, SERVER_NAME, folder))
    return pieces


def to_json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2) + "\n"


# -- clients -----------------------------------------------------------------------------------------------


class Client(NamedTuple):
    """A supported client.

    `does` describes what `target` sets up; `target` takes the call and the options of `cli.install`.
    `transcripts` are glob patterns of session files below `homes`, `formats` read them, `database` those of
    them that are SQLite's. `printed` is for `install mcp`. `model` is true if its program can be used as
    memory's model.
    """

    does: str
    target: Callable[..., ClientTarget]
    homes: Homes = ()
    transcripts: tuple[str, ...] = ()
    formats: tuple[type[Format], ...] = ()
    database: Database | None = None
    printed: Printed | None = None
    model: bool = True


def home_target(
    homes: Homes, target: Callable[[str, Sequence[str]], ClientTarget]
) -> Callable[[Surroundings], ClientTarget]:
    """Adapt a function of (folder, command) to the signature of `Client.target`."""
    return lambda call: target(str(folders(call, homes)[0]), command_of(call))


# -- schedule ----------------------------------------------------------------------------------------------
# A nightly `ua-memory consolidate` of one bank: a crontab line, a systemd timer or a launchd agent. Each bank
# has its own job, whose name contains a hash of the bank's path.


SCHEDULERS = ("cron", "systemd", "launchd")
CRONTAB = "crontab"
"""Stands for the file of a crontab line, which is read by `crontab -l` and written by `crontab -`."""


def job_name(bank: str) -> str:
    """The name of a bank's job, such as `ua-memory-1a2b3c4d`."""
    return f"{SERVER_NAME}-{hashlib.sha256(bank.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"


def schedule_target(
    kind: str, bank: str, command: Sequence[str], at: tuple[int, int], home: str
) -> ClientTarget:
    """The job of a bank in a scheduler (`kind`) at an (hour, minute). `command` includes `--bank`."""
    name, words = job_name(bank), [*command, "consolidate"]
    if kind == "cron":
        key = MODEL_KEY_NOTE.format("the head of the crontab: ANTHROPIC_API_KEY=…")
        return ClientTarget("cron", (_crontab_piece(name, [*words, "--log"], at),), (key,))
    if kind == "systemd":
        units = f"{home}/.config/systemd/user/{name}"
        said: dict[str, Any] = {"bank": _unit(bank), "words": " ".join(map(_quote_systemd, words))}
        said |= {"hour": at[0], "minute": at[1]}
        pieces = tuple(
            own_file(f"{units}.{kind}", kind, data_text(f"schedule/unit.{kind}").format(**said), SERVER_NAME)
            for kind in ("service", "timer")
        )
        where = f"systemctl --user edit {name}.service: [Service] Environment=ANTHROPIC_API_KEY=…"
        key = MODEL_KEY_NOTE.format(where)
        return ClientTarget("cron", pieces, (LINGER_NOTE, key))
    file = f"{home}/Library/LaunchAgents/{name}.plist"
    strings = "".join(f"    <string>{html.escape(word, quote=False)}</string>\n" for word in words)
    plist = data_text("schedule/agent.plist").format(name=name, words=strings, hour=at[0], minute=at[1])
    key = MODEL_KEY_NOTE.format("its EnvironmentVariables")
    return ClientTarget("cron", (own_file(file, "agent", plist, SERVER_NAME),), (key,))


_TIMES = {
    "cron": r"(?m)^(?P<minute>\d+) (?P<hour>\d+) \* \* \* .*# {name}$",
    "systemd": r"(?m)^OnCalendar=\*-\*-\* (?P<hour>\d+):(?P<minute>\d+):",
    "launchd": r"Hour</key>\s*<integer>(?P<hour>\d+)<[^M]*Minute</key>\s*<integer>(?P<minute>\d+)<",
}


def scheduled_time(kind: str, bank: str, text: str) -> tuple[int, int] | None:
    """The (hour, minute) of a bank's job in the text of its file; None if it is not in our form."""
    found = re.search(_TIMES[kind].replace("{name}", job_name(bank)), text)
    return (int(found["hour"]), int(found["minute"])) if found else None


LINGER_NOTE = "systemd runs it only while you are logged in, else at your next login: loginctl enable-linger"
MODEL_KEY_NOTE = "the job runs without your shell's environment; put a model's key into {}"


def _crontab_piece(name: str, words: Sequence[str], at: tuple[int, int]) -> SettingsPiece:
    """A crontab line, identified by the job's name in a comment at its end."""
    mark = f" # {name}\n"
    # Cron treats a bare percent sign as the end of the line.
    line = f"{at[1]} {at[0]} * * * {shlex.join(words)}".replace("%", r"\%") + mark

    def add(text: str | None) -> str | None:
        rows = split_lines(text or "")
        if any(row.endswith(mark) for row in rows):
            return "".join(line if row.endswith(mark) else row for row in rows)
        end = "\n" if rows and not rows[-1].endswith("\n") else ""
        return f"{text or ''}{end}{line}"

    def remove(text: str | None) -> str | None:
        return None if text is None else "".join(row for row in split_lines(text) if not row.endswith(mark))

    return SettingsPiece(CRONTAB, "line", add, remove)


def _quote_systemd(word: str) -> str:
    """Quote a word for systemd, with specifiers and variables escaped."""
    plain = _unit(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{plain}"' if plain != word or any(c.isspace() or c in "';" for c in word) else word


def _unit(text: str) -> str:
    return text.replace("%", "%%").replace("\n", " ")
