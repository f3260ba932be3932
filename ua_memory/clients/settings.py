"""The supported clients: their folders, and the entries that `ua-memory install` adds to their settings."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.sax.saxutils import escape

from ua_memory import caller, config, discovery
from ua_memory.clients import edit
from ua_memory.clients.edit import EditError, JsonDocument, append_lines, remove_lines, split_lines
from ua_memory.errors import Usage
from ua_memory.text.patterns import data_text

if TYPE_CHECKING:
    from ua_memory.caller import Call

# -- folders and commands ----------------------------------------------------------------------------------
# The folders of each client, the command that starts ua-memory from it, and the files that we ship for it.


def folders(call: Call, client: str) -> list[Path]:
    """The folders of a client, whether or not they exist; the one in use comes first."""
    return [
        caller.absolute(call, call.env.get(variable) or usual).joinpath(*below)
        for variable, usual, *below in CLIENTS[client].homes
    ]


def command_of(call: Call, *, shared: bool = False) -> list[str]:
    """The command line that starts ua-memory from a client, with `--bank` if the caller named one.

    It begins with an absolute path, since a client started from a desktop has another PATH. In files that are
    shared with other people (`shared`) it begins with the bare name.
    """
    bank = ["--bank", str(caller.absolute(call, call.bank))] if call.bank else []
    if shared:
        return ["ua-memory", *bank]
    beside = Path(sys.executable).parent / "ua-memory"
    # Prefer the path found in PATH: a link in ~/.local/bin outlives the environment that it points to now.
    found = shutil.which("ua-memory", path=call.env.get("PATH")) or (str(beside) if beside.exists() else None)
    return [os.path.abspath(found) if found else "ua-memory", *bank]  # noqa: PTH100 (no link is followed)


def _client_files(client: str) -> dict[str, str]:
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


def opencode_server(command: Sequence[str]) -> dict[str, Any]:
    """Our MCP server entry in OpenCode's form."""
    return {"type": "local", "command": [*command, "mcp"], "enabled": True}


SERVERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "": ("mcp.json, or whatever your client calls it", ("mcpServers",)),
    "claude-desktop": ("claude_desktop_config.json (Settings, Developer, Edit Config)", ("mcpServers",)),
    "cline": ("cline_mcp_settings.json (MCP Servers, Configure)", ("mcpServers",)),
    "codex": ("~/.codex/config.toml", ("mcp_servers",)),
    "cursor": ("~/.cursor/mcp.json, or .cursor/mcp.json in a project", ("mcpServers",)),
    "gemini": ("~/.gemini/settings.json", ("mcpServers",)),
    "opencode": ("~/.config/opencode/opencode.json", ("mcp",)),
    "vscode": (".vscode/mcp.json", ("servers",)),
    "windsurf": ("~/.codeium/windsurf/mcp_config.json", ("mcpServers",)),
    "zed": ("~/.config/zed/settings.json", ("context_servers",)),
}
"""{client: (its settings file, the keys of the object that holds MCP servers)}. Clients that `install` does
not support are listed according to their documentation."""


def print_target(client: str, command: Sequence[str]) -> ClientTarget:
    """Our MCP server in a client's form, for the user to paste; '' is the form of most clients."""
    where, holder = SERVERS[client]
    entry = opencode_server(command) if client == "opencode" else command_entry(command, "mcp")
    if client == "codex":
        piece = toml_server(where, entry)
    else:
        piece = mcp_server(where, holder, {"type": "stdio", **entry} if client == "vscode" else entry)
    return ClientTarget(client or "mcp", (piece,), (f"it belongs in {where}",))


EVERY_TOOL = ("--tools", "all")
"""Options for Claude Code, which loads a tool's schema only when it is needed. Other clients send all schemas
with each request, so they get the default set."""


# -- hooks in Claude Code's form ---------------------------------------------------------------------------


def hooks_piece(file: str, wanted: dict[str, dict[str, Any]], *, loose: bool = False) -> SettingsPiece:
    """Our hooks, one for each event; other hooks stay. `wanted`: {event: the hook object}."""

    def add(document: JsonDocument) -> None:
        for event, places in _our_hooks(document).items():
            for place in reversed(places[1:] if event in wanted else places):
                _remove_hook(document, place)
        for event, hook in wanted.items():
            places = _our_hooks(document).get(event, [])
            if places:
                _update_entry(document, places[0], hook)
                continue
            groups = document.at(("hooks", event))
            number = len(groups.members or ()) if groups else 0
            document.put(("hooks", event, number), {"hooks": [hook]})

    def remove(document: JsonDocument) -> None:
        for places in _our_hooks(document).values():
            for place in reversed(places):
                _remove_hook(document, place)

    return json_piece(file, "hooks", add, remove, loose=loose)


def _shell_hooks(
    command: Sequence[str], client: str, timeouts: Mapping[str, int]
) -> dict[str, dict[str, Any]]:
    """The hooks of a client that runs a shell command: {event: the hook object}."""
    line = shlex.join([*command, "hook", "--client", client])
    return {event: {"type": "command", "command": line, "timeout": n} for event, n in timeouts.items()}


def _our_hooks(document: JsonDocument) -> dict[str, list[tuple[str | int, ...]]]:
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


def _plugin_files(
    folder: str, what: str, texts: Mapping[str, str], command: Sequence[str]
) -> list[SettingsPiece]:
    """The files of a plugin in its own folder, with our command inserted in .py and .js files."""
    pieces = []
    for name, text in sorted(texts.items()):
        shown = with_command(text, command) if name.endswith((".py", ".js")) else text
        pieces.append(own_file(f"{folder}/{name}", what, shown, SERVER_NAME, folder))
    return pieces


# -- claude settings ---------------------------------------------------------------------------------------
# Claude Code: hooks in settings.json and the MCP server in .claude.json, or both as a plugin.
#
# Tested with 2.1.330. A hook's default timeout is 600 s, but 30 s at a prompt and 1.5 s at the end of a
# session. Only `timeout` in a settings.json raises it, not in a plugin's hooks.json. `args` is passed without
# a shell. Hooks of types other than `command` do not run at the start of a session.


CLAUDE_TIMEOUTS = {
    "SessionStart": 10, "UserPromptSubmit": 10, "Stop": 10, "StopFailure": 10,
    "PreCompact": 30, "SessionEnd": 10,
}  # fmt: skip
"""{event: timeout in seconds}. Our hooks take less than 1 s; the rest is for busy machines."""
AUTO_MEMORY_KEY = "autoMemoryDirectory"
"""The setting for the folder of Claude Code's own memory files; it is read from user settings only."""
MARKETPLACE = "ua-memory-local"
DESCRIPTION = "Long-term memory as markdown files: recalled at each prompt, kept from each session."


def claude_code(
    call: Call, project: bool = False, plugin: str | None = None, auto_memory: bool = False
) -> ClientTarget:
    """Claude Code's user settings, the current project's (`project`), or a plugin in the folder `plugin`.

    With `auto_memory` Claude Code's own memory is stored in the bank, too; EditError if it is set to another
    folder. Usage for more than one option."""
    if (plugin is not None) + project + auto_memory > 1:
        raise Usage("one of --project, --plugin and --auto-memory at a time")
    home = folders(call, "claude-code")[0]
    if plugin is not None:
        found = claude_plugin(str(caller.absolute(call, plugin)), command_of(call, shared=True))
        return found._replace(duplicates=_other_hooks(call, home, "plugin"))
    if project:
        here, note = call.cwd, "Claude Code asks once in each checkout whether to use .mcp.json"
        files = f"{here}/.claude/settings.json", f"{here}/.mcp.json"  # which are committed and shared
        found = _claude_target(*files, command_of(call, shared=True), note)
    else:
        state = (home if call.env.get("CLAUDE_CONFIG_DIR") else call.home) / ".claude.json"
        found = claude_target(str(home), str(state), command_of(call))
    found = found._replace(duplicates=_other_hooks(call, home, found.pieces[0].file))
    if not auto_memory:
        return found
    folder = str(caller.bank_root(call) / "memory" / "claude-code")
    more = json_value(f"{home}/settings.json", "its own memory's folder", (AUTO_MEMORY_KEY,), folder)
    return found._replace(pieces=(*found.pieces, more))


def _other_hooks(call: Call, home: Path, but: str) -> tuple[tuple[str, str], ...]:
    """(what, its file) of everything else that makes Claude Code run our hooks in the current folder, except
    the hooks in the file `but`, or the plugin if `but` is "plugin"."""
    here = call.cwd / ".claude"
    files = dict.fromkeys((home / "settings.json", here / "settings.json", here / "settings.local.json"))
    found = []
    for file in files:
        with suppress(OSError, ValueError, EditError):  # none, or an invalid one, which the edit reports
            ways = enabled_hooks(discovery.read(file).decode("utf-8-sig"))
            mine = {"hooks": str(file)}  # else it is our plugin
            found += [(way, str(file)) for way in ways if mine.get(way, "plugin") != but]
    return tuple(found)


def claude_target(home: str, state: str, command: Sequence[str]) -> ClientTarget:
    """Claude Code's user settings; `home` is ~/.claude, `state` the file .claude.json."""
    note = "restart open sessions; /hooks and /mcp show it there"
    return _claude_target(f"{home}/settings.json", state, command, note, env={})


def _claude_target(
    hooks: str, servers: str, command: Sequence[str], note: str, **more: dict[str, Any]
) -> ClientTarget:
    server = {"type": "stdio", **command_entry(command, "mcp", *EVERY_TOOL), **more}
    pieces = hooks_piece(hooks, _claude_hooks(command)), mcp_server(servers, ("mcpServers",), server)
    return ClientTarget("claude-code", pieces, (note,))


def claude_plugin(folder: str, command: Sequence[str]) -> ClientTarget:
    """A marketplace folder with one plugin: hooks, MCP server, README and skills. Generated files replace
    shipped files of the same name."""
    from ua_memory import __version__ as version

    inner = f"{folder}/plugins/{SERVER_NAME}"
    owner = {"name": "ua-memory contributors"}
    manifest = {
        "name": SERVER_NAME, "version": version, "description": DESCRIPTION, "author": owner,
        "license": "MIT", "keywords": ["memory", "recall", "markdown"],
    }  # fmt: skip
    plugin = {
        "name": SERVER_NAME, "source": f"./plugins/{SERVER_NAME}", "description": DESCRIPTION,
        "version": version,
    }  # fmt: skip
    metadata = {"description": "ua-memory from this machine"}
    market = {"name": MARKETPLACE, "owner": owner, "metadata": metadata, "plugins": [plugin]}
    servers = {"mcpServers": {"memory": command_entry(command, "mcp", *EVERY_TOOL)}}
    events = {event: [{"hooks": [hook]}] for event, hook in _claude_hooks(command).items()}
    files = {
        **{f"{inner}/{path}": text for path, text in _client_files("claude-code").items()},
        f"{folder}/.claude-plugin/marketplace.json": _to_json(market),
        f"{inner}/.claude-plugin/plugin.json": _to_json(manifest),
        f"{inner}/hooks/hooks.json": _to_json({"description": DESCRIPTION, "hooks": events}),
        f"{inner}/.mcp.json": _to_json(servers),
    }
    pieces = [own_file(file, "plugin", text, SERVER_NAME, folder) for file, text in files.items()]
    notes = (
        f"in Claude Code: /plugin marketplace add {folder}, then /plugin install {SERVER_NAME}@{MARKETPLACE}",
        "a plugin has 1.5 s at the end of a session",
    )
    return ClientTarget("claude-code", tuple(pieces), notes)


def enabled_hooks(text: str) -> list[str]:
    """What in the text of a settings.json runs our hooks: "hooks" for its own, "plugin NAME" for our enabled
    plugin. EditError if it is invalid."""
    document = JsonDocument(text)
    switched = document.value.get("enabledPlugins")
    plugins = switched.items() if isinstance(switched, dict) else ()
    named = [f"plugin {name}" for name, on in plugins if on and name.partition("@")[0] == SERVER_NAME]
    return [*(["hooks"] if _our_hooks(document) else []), *named]


def _claude_hooks(command: Sequence[str]) -> dict[str, dict[str, Any]]:
    call = command_entry(command, "hook", "--client", "claude-code")
    return {
        event: {"type": "command", **call, "timeout": seconds} for event, seconds in CLAUDE_TIMEOUTS.items()
    }


def _to_json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2) + "\n"


# -- codex settings ----------------------------------------------------------------------------------------
# Codex: hooks.json in Claude Code's form, and the MCP server in config.toml. Tested with 0.169.0.


CODEX_TIMEOUTS = {"SessionStart": 10, "UserPromptSubmit": 10, "Stop": 10, "PreCompact": 30, "SessionEnd": 3}
"""{event: timeout in seconds}. Codex allows at most 3 s at the end of a session."""


def codex_target(home: str, command: Sequence[str]) -> ClientTarget:
    """Codex's user settings; `home` is ~/.codex."""
    server = {**command_entry(command, "mcp"), "startup_timeout_sec": 20}
    pieces = (
        hooks_piece(f"{home}/hooks.json", _shell_hooks(command, "codex", CODEX_TIMEOUTS)),
        toml_server(f"{home}/config.toml", server),
    )
    notes = ("Codex runs hooks only after you trust them: start codex, type /hooks, and trust the five",)
    return ClientTarget("codex", pieces, notes)


# -- gemini settings ---------------------------------------------------------------------------------------
# Gemini CLI: hooks, with event names of its own, and the MCP server. Written for 0.61. Its settings.json may
# contain comments.


GEMINI_TIMEOUTS = {"SessionStart": 10_000, "BeforeAgent": 10_000, "AfterAgent": 10_000, "SessionEnd": 10_000}
"""{event: timeout in milliseconds}."""


def gemini_target(home: str, command: Sequence[str]) -> ClientTarget:
    """Gemini CLI's user settings; `home` is ~/.gemini."""
    file, wanted = f"{home}/settings.json", _shell_hooks(command, "gemini", GEMINI_TIMEOUTS)
    server = mcp_server(file, ("mcpServers",), command_entry(command, "mcp"), loose=True)
    notes = ("restart open sessions",)
    return ClientTarget("gemini", (hooks_piece(file, wanted, loose=True), server), notes)


# -- cursor settings ---------------------------------------------------------------------------------------
# Cursor: the MCP server, according to its documentation. It has no hook that can add to a prompt.


def cursor(call: Call, project: bool = False) -> ClientTarget:
    """Cursor's user settings, or the current project's (`project`)."""
    folder = str((call.cwd if project else call.home) / ".cursor")
    entry = command_entry(command_of(call, shared=project), "mcp")
    server = mcp_server(f"{folder}/mcp.json", ("mcpServers",), entry)._replace(folder=folder)
    notes = ("Cursor has no hooks that recall or save: its agent does, by the tools; see the line below",)
    return ClientTarget("cursor", (server,), notes)


# -- opencode settings -------------------------------------------------------------------------------------
# OpenCode: the MCP server, and a plugin in its plugin folder. Tested with 1.18.33. It reads opencode.json and
# opencode.jsonc; both may contain comments.


def opencode(call: Call) -> ClientTarget:
    """OpenCode's user settings and a plugin."""
    home = caller.absolute(call, call.env.get("XDG_CONFIG_HOME") or str(call.home / ".config"))
    folder = caller.absolute(call, call.env.get("OPENCODE_CONFIG_DIR") or str(home / "opencode"))
    names = (folder / f"opencode.{end}" for end in ("json", "jsonc"))
    file = next((name for name in names if name.exists()), folder / "opencode.json")
    command, plugins = command_of(call), f"{folder}/plugin"
    whole = with_command(_client_files("opencode")["ua-memory.js"], command)
    pieces = (
        mcp_server(str(file), ("mcp",), opencode_server(command), loose=True),
        own_file(f"{plugins}/{SERVER_NAME}.js", "plugin", whole, "ua-memory for OpenCode.", plugins),
    )
    return ClientTarget("opencode", pieces, ("restart open sessions",))


# -- hermes settings ---------------------------------------------------------------------------------------
# Hermes: a memory provider in its plugins folder. Tested with 0.19.0.
#
# config.yaml selects the one provider in use. The user sets it with `hermes config set`; `uninstall` removes
# it, since Hermes would otherwise look for a provider that no longer exists.


_HEAD = re.compile(r"memory:[ \t]*(?:#.*)?[\r\n]*")
_OURS = re.compile(rf"([ \t]+)provider:[ \t]*(['\"]?){SERVER_NAME}\2[ \t]*(?:#.*)?[\r\n]*")


def hermes_target(home: str, command: Sequence[str]) -> ClientTarget:
    """Our memory provider for a user; `home` is ~/.hermes."""
    folder = f"{home}/plugins/{SERVER_NAME}"
    pieces = _plugin_files(folder, "memory provider", _client_files("hermes"), command)
    notes = (f"to use it in Hermes: hermes config set memory.provider {SERVER_NAME}",)
    chosen = SettingsPiece(f"{home}/config.yaml", "memory.provider", lambda text: text, _without_choice)
    return ClientTarget("hermes", tuple(pieces), notes, left=(chosen,))


def _without_choice(text: str | None) -> str | None:
    """The text of config.yaml without the line that selects our provider, and without `memory:` if that is
    empty then. All other lines stay."""
    rows = split_lines(text or "")
    start = next((n for n, row in enumerate(rows) if _HEAD.fullmatch(row)), len(rows))
    below = [*takewhile(lambda n: rows[n][0] in " \t#\r\n", range(start + 1, len(rows)))]
    values = [n for n in below if rows[n].strip() and rows[n].strip()[0] != "#"]
    found = ((n, _OURS.fullmatch(rows[n])) for n in values)
    ours = {n for n, row in found if row and not rows[values[0]].removeprefix(row[1])[:1].isspace()}
    gone = ours | ({start} if ours == set(values) else set()) if ours else ours
    return None if text is None else "".join(row for n, row in enumerate(rows) if n not in gone)


# -- openclaw settings -------------------------------------------------------------------------------------
# OpenClaw: a plugin, and the MCP server and the plugin's permissions in openclaw.json (JSON5).
#
# Tested with 2026.9.6. Plugins below `extensions` are found automatically. A plugin that is not bundled can
# read the conversation only with `allowConversationAccess`. If there is an `allow` list, only the plugins in
# it are loaded.


ENTRY = ("plugins", "entries", SERVER_NAME)
ALLOWED = ("plugins", "allow")
SLOT = ("plugins", "slots", "memory")
SLOT_TOOLS = ("memory_search", "memory_get")
"""Tools that the plugin itself registers in the memory slot; the MCP server then omits them."""
WITHOUT_SLOT = ("archival_memory_insert", "retire", "list_pages", "get_page", "ingest")
"""Tools of the MCP server if the plugin has the memory slot."""
MANIFEST = "openclaw.plugin.json"


def openclaw(call: Call, memory_slot: bool = False) -> ClientTarget:
    """OpenClaw's user settings and a plugin. The plugin replaces OpenClaw's own memory if it has the
    memory slot already, or with `memory_slot`."""
    state, command = folders(call, "openclaw")[0], command_of(call)
    file = str(caller.absolute(call, call.env.get("OPENCLAW_CONFIG_PATH") or f"{state}/openclaw.json"))
    with suppress(OSError, ValueError, EditError):  # no such file, or it is invalid, which the edit reports
        slot = JsonDocument(discovery.read(file).decode("utf-8-sig"), loose=True).at(SLOT)
        memory_slot = memory_slot or (slot is not None and slot.value == SERVER_NAME)
    tools, texts = ",".join(WITHOUT_SLOT) if memory_slot else "openclaw", _client_files("openclaw")
    pieces = [
        mcp_server(file, ("mcp", "servers"), command_entry(command, "mcp", "--tools", tools), loose=True),
        json_piece(file, "permission for the plugin", _allow_plugin, _remove_plugin, loose=True),
    ]
    if memory_slot:
        pieces.append(json_value(file, "memory slot", SLOT, SERVER_NAME, loose=True, more=_disable_dreaming))
        # OpenClaw loads only the selected plugin of kind `memory`.
        kind = {"kind": "memory", "categories": ["memory"], "contracts": {"tools": SLOT_TOOLS}}
        texts[MANIFEST] = _to_json(json.loads(texts[MANIFEST]) | kind)
    pieces += _plugin_files(f"{state}/extensions/{SERVER_NAME}", "plugin", texts, command)
    return ClientTarget("openclaw", tuple(pieces), ("restart a running gateway: openclaw gateway restart",))


def _allow_plugin(document: JsonDocument) -> None:
    if document.at(ENTRY) is None:
        document.put(ENTRY, {"enabled": True, "hooks": {"allowConversationAccess": True}})
    allowed = document.at(ALLOWED)
    if allowed is not None and isinstance(allowed.value, list) and SERVER_NAME not in allowed.value:
        document.put((*ALLOWED, len(allowed.value)), SERVER_NAME)


def _remove_plugin(document: JsonDocument) -> None:
    allowed = document.at(ALLOWED)
    if allowed is not None and isinstance(allowed.value, list) and SERVER_NAME in allowed.value:
        document.cut((*ALLOWED, allowed.value.index(SERVER_NAME)))
    if document.at(ENTRY) is not None:
        document.cut(ENTRY)


def _disable_dreaming(document: JsonDocument) -> None:
    if document.at((*ENTRY, "config")) is None:  # else memory-core rewrites MEMORY.md at night
        document.put((*ENTRY, "config"), {"dreaming": {"enabled": False}})


# -- pi settings -------------------------------------------------------------------------------------------
# pi: an extension, and the MCP server in mcp.json. Tested with 1.5.2.


def pi_target(home: str, command: Sequence[str]) -> ClientTarget:
    """pi's user settings; `home` is ~/.pi/agent."""
    extension = with_command(_client_files("pi")["ua-memory.ts"], command)
    entry = {**command_entry(command, "mcp"), "exposure": "direct"}
    pieces = (
        own_file(f"{home}/extensions/{SERVER_NAME}.ts", "extension", extension, "ua-memory for pi."),
        mcp_server(f"{home}/mcp.json", ("mcpServers",), entry),
    )
    return ClientTarget("pi", pieces, ("in open sessions type /reload",))


# -- clients -----------------------------------------------------------------------------------------------
# The table of supported clients. A new client is a row in it and a function that makes its ClientTarget.


class Client(NamedTuple):
    """A supported client.

    `does` describes what `target` sets up; `target` takes the call and the options of `cli.install`. `homes`
    are its folders: (environment variable, default folder, subfolders). `transcripts` are glob patterns of
    session files below them. `model` is true if its program can be used as memory's model.
    """

    does: str
    target: Callable[..., ClientTarget]
    homes: tuple[tuple[str, ...], ...] = ()
    transcripts: tuple[str, ...] = ()
    model: bool = True


def home_target(
    client: str, target: Callable[[str, Sequence[str]], ClientTarget]
) -> Callable[[Call], ClientTarget]:
    """Adapt a function of (folder, command) to the signature of `Client.target`."""
    return lambda call: target(str(folders(call, client)[0]), command_of(call))


CLIENTS: Mapping[str, Client] = {
    "claude-code": Client(
        "hooks and the MCP server of Claude Code", claude_code, (("CLAUDE_CONFIG_DIR", "~/.claude"),),
        ("projects/*/*.jsonl",),
    ),
    "cursor": Client("the MCP server of Cursor", cursor, model=False),
    "codex": Client(
        "hooks and the MCP server of Codex", home_target("codex", codex_target),
        (("CODEX_HOME", "~/.codex"),),
        ("sessions/**/rollout-*.jsonl", "archived_sessions/rollout-*.jsonl"),
    ),
    "pi": Client(
        "the extension and the MCP server of pi", home_target("pi", pi_target),
        (("PI_CODING_AGENT_DIR", "~/.pi/agent"),), ("sessions/*/*.jsonl",),
    ),
    "opencode": Client(
        "the plugin and the MCP server of OpenCode", opencode,
        (("XDG_DATA_HOME", "~/.local/share", "opencode"),), ("opencode*.db",),
    ),
    "openclaw": Client(  # Clawdbot is its old name
        "the plugin and the MCP server of OpenClaw", openclaw,
        (("OPENCLAW_STATE_DIR", "~/.openclaw"), ("CLAWDBOT_STATE_DIR", "~/.clawdbot")),
        ("agents/*/sessions/*.jsonl*", "agents/*/agent/openclaw-agent.sqlite"),
    ),
    "gemini": Client(
        "hooks and the MCP server of Gemini CLI", home_target("gemini", gemini_target), (("", "~/.gemini"),),
    ),
    "hermes": Client(
        "the memory provider of Hermes", home_target("hermes", hermes_target),
        (("HERMES_HOME", "~/.hermes"),),
        ("state.db", "profiles/*/state.db"),
    ),
}  # fmt: skip


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
        return ClientTarget("cron", pieces, (key,))
    file = f"{home}/Library/LaunchAgents/{name}.plist"
    strings = "".join(f"    <string>{escape(word)}</string>\n" for word in words)
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
