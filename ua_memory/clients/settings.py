"""The clients: where each keeps its files, and what `install` adds to them (commands: `cli.install`)."""

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

# -- this machine ------------------------------------------------------------------------------------------
# Where each client keeps what it keeps here, how it starts ua-memory, and which files come with us for it.


def folders(call: Call, client: str) -> list[Path]:
    """The folders of a client, the one that it uses first, whether they are there or not."""
    return [
        caller.absolute(call, call.env.get(variable) or usual).joinpath(*below)
        for variable, usual, *below in CLIENTS[client].homes
    ]


def command_of(call: Call, *, shared: bool = False) -> list[str]:
    """The words that start ua-memory from a client, with `--bank` if the caller named one.

    By its full path, since a client started from a desktop has another PATH; in files that go to other
    people (`shared`) by its name.
    """
    bank = ["--bank", str(caller.absolute(call, call.bank))] if call.bank else []
    if shared:
        return ["ua-memory", *bank]
    beside = Path(sys.executable).parent / "ua-memory"
    # As it was called, if it can be: a link in ~/.local/bin outlives the environment it leads to today.
    found = shutil.which("ua-memory", path=call.env.get("PATH")) or (str(beside) if beside.exists() else None)
    return [os.path.abspath(found) if found else "ua-memory", *bank]  # noqa: PTH100 (no link is followed)


def _client_files(client: str) -> dict[str, str]:
    """The files that come with us for a client: text by name. `.in` hides Python from our own tools."""
    folder = Path(__file__).parent.parent / "data" / "plugins" / client
    files = (each for each in sorted(folder.rglob("*")) if each.is_file())
    return {
        each.relative_to(folder).as_posix().removesuffix(".in"): each.read_text("utf-8") for each in files
    }


# -- settings ----------------------------------------------------------------------------------------------
# What an installation adds to a client's own files and removes again: text to text, nothing else.
#
# A `SettingsPiece` is one entry of ours in one file. `put` and `cut` take the file's text (None: no file) and
# return the new text (None: delete the file). Text that needs no change comes back equal, to the byte. All
# else in the file stays. `EditError` where it cannot be parsed: nothing is changed then.


SERVER_NAME = "ua-memory"
"""Our name among a client's MCP servers, plugins and extensions, and that of the command."""

COMMAND_PLACEHOLDER = ("command", "args")
"""The keys of an entry that say what is run."""
TextChange = Callable[[str | None], str | None]


class SettingsPiece(NamedTuple):
    """One entry of ours: its file, its name for people, and the functions that add and remove it.

    `folder` was made for files of ours; it is removed when it is empty.
    """

    file: str
    what: str
    put: TextChange
    cut: TextChange
    folder: str = ""


class ClientTarget(NamedTuple):
    """A client, the entries in its files, and notes for its owner.

    `twice`: (what calls our hooks a second time, its file). `left`: entries that the owner added with the
    client's own commands; `uninstall` removes them too.
    """

    client: str
    pieces: tuple[SettingsPiece, ...]
    notes: tuple[str, ...] = ()
    twice: tuple[tuple[str, str], ...] = ()
    left: tuple[SettingsPiece, ...] = ()


def json_piece(file: str, what: str, put: Callable[[JsonDocument], None], cut: Callable[[JsonDocument], None],
               *, loose: bool = False) -> SettingsPiece:  # fmt: skip
    """A piece in a file of JSON."""

    def putting(text: str | None) -> str | None:
        document = JsonDocument(text or "", loose=loose)
        put(document)
        new = document.text()
        return f"{new}\n" if text is None and new else new

    def cutting(text: str | None) -> str | None:
        if text is None:
            return None
        document = JsonDocument(text, loose=loose)
        cut(document)
        return document.text()

    return SettingsPiece(file, what, putting, cutting)


def json_value(
    file: str, what: str, path: tuple[str | int, ...], value: Any, *, loose: bool = False,
    more: Callable[[JsonDocument], None] = lambda _: None,
) -> SettingsPiece:  # fmt: skip
    """A value of ours in a file of JSON, and what is put there with it. Broken where there is another."""

    def put(document: JsonDocument) -> None:
        there = document.at(path)
        if there is not None and there.value != value:
            name = ".".join(map(str, path))
            raise EditError(document.line(path), f"{name} is already {there.value!r}; remove it first")
        if there is None:
            document.put(path, value)
        more(document)

    def cut(document: JsonDocument) -> None:
        if (there := document.at(path)) is not None and there.value == value:
            document.cut(path)

    return json_piece(file, what, put, cut, loose=loose)


def toml_table(file: str, what: str, name: tuple[str, str], values: dict[str, Any]) -> SettingsPiece:
    """A table in a file of TOML. One of this name that runs something else is its owner's, and stays."""

    def theirs(text: str) -> bool:
        found = edit.read_table(text, name)
        return found is not None and not is_our_command(found)

    def put(text: str | None) -> str | None:
        if text and theirs(text):
            return text
        there = edit.read_table(text or "", name) or {}
        wanted = {
            key: value for key, value in values.items() if key in COMMAND_PLACEHOLDER or key not in there
        }
        return edit.put_table(text, name, wanted)

    def cut(text: str | None) -> str | None:
        return text if not text or theirs(text) else edit.remove_table(text, name)

    return SettingsPiece(file, what, put, cut)


def model_piece(file: str, provider: str) -> SettingsPiece:
    """The client's own program as memory's model, in the user's settings; another one named there stays."""

    def put(text: str | None) -> str | None:
        return config.put((text or "").encode(), file, "provider", provider).decode()

    def cut(text: str | None) -> str | None:
        if not text or tomllib.loads(text.lstrip("\ufeff")).get("provider") != provider:
            return text
        left = config.edited(
            text.encode(), file, lambda document: document.pop("provider"),
            lambda before: {key: value for key, value in before.items() if key != "provider"},
        )  # fmt: skip
        return left.decode() or None

    return SettingsPiece(file, "model", put, cut, os.path.dirname(file))  # noqa: PTH120


MODEL_NOTE = (
    "{} is memory's model now: each conversation goes once more to the vendor that has it already, and "
    "counts against your subscription. The program keeps nothing of it here. To try it: ua-memory model test"
)


def own_file(file: str, what: str, content: str, mark: str, folder: str = "") -> SettingsPiece:
    """A file that is ours altogether; one without our mark in it is somebody else's: Broken."""

    def put(text: str | None) -> str | None:
        return content if text is None or ours(text) else text

    def cut(text: str | None) -> str | None:
        return None if text is not None and ours(text) else text

    def ours(text: str) -> bool:
        if mark not in text:
            raise EditError(1, f"not our file (it has no {mark!r}); move it away")
        return True

    return SettingsPiece(file, what, put, cut, folder)


# -- MCP ---------------------------------------------------------------------------------------------------


def mcp_server(
    file: str, holder: tuple[str, ...], entry: dict[str, Any], *, loose: bool = False
) -> SettingsPiece:
    """Our server in the object `holder` of a file. What its owner has added to the entry stays."""
    path = (*holder, SERVER_NAME)

    def put(document: JsonDocument) -> None:
        there = document.at(path)
        if there is None:
            document.put(path, entry)
        elif is_our_command(there.value):
            _update_entry(document, path, entry)

    def cut(document: JsonDocument) -> None:
        there = document.at(path)
        if there is not None and is_our_command(there.value):
            document.cut(path)

    return json_piece(file, "MCP server", put, cut, loose=loose)


def _update_entry(document: JsonDocument, path: tuple[str | int, ...], entry: dict[str, Any]) -> None:
    """Bring an entry of ours up to date: what it calls, and what is missing. What its owner set stays."""
    there = document.at(path)
    assert there is not None
    for key, value in entry.items():
        if key not in there.value or (key in COMMAND_PLACEHOLDER and there.value[key] != value):
            document.put((*path, key), value)


def is_our_command(entry: Any) -> bool:
    """Whether an entry of a client's settings calls ua-memory: by `command` and `args`, in whatever form."""
    return bool(our_arguments(entry))


def our_arguments(entry: Any) -> list[str]:
    """The words behind our command that an entry calls it with (the command itself first); [] for others."""
    command = entry.get("command") if isinstance(entry, dict) else None
    if isinstance(command, list):  # OpenCode's are one list
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
    for at, word in enumerate(words[:4]):  # `python -P -m ua_memory` is we, too
        if os.path.basename(word) in (SERVER_NAME, "ua_memory"):  # noqa: PTH119 (no file, a word)
            return words[at:]
    return []


def opencode_server(command: Sequence[str]) -> dict[str, Any]:
    """Our entry as OpenCode has it: one list of words."""
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
"""Clients of which we know how they write an MCP server: where, and the object that holds it. Those whose
files `install` does not write are here by their documentation."""


def print_target(client: str, command: Sequence[str]) -> ClientTarget:
    """Our MCP server as a client's settings have it, to be put there by hand; '' for most clients' form."""
    where, holder = SERVERS[client]
    entry = opencode_server(command) if client == "opencode" else command_entry(command, "mcp")
    if client == "codex":
        piece = toml_table(where, "MCP server", ("mcp_servers", SERVER_NAME), entry)
    else:
        piece = mcp_server(where, holder, {"type": "stdio", **entry} if client == "vscode" else entry)
    return ClientTarget(client or "mcp", (piece,), (f"it belongs into {where}",))


EVERY_TOOL = ("--tools", "all")
"""For Claude Code, which shows its model only the names of tools until one is wanted. Other clients send all
schemas with each request: they get the default set."""


# -- hooks in Claude Code's form ---------------------------------------------------------------------------


def hooks_piece(file: str, wanted: dict[str, dict[str, Any]], *, loose: bool = False) -> SettingsPiece:
    """Our hooks, one for each event, beside those of others. `wanted`: event → the hook's own object."""

    def put(document: JsonDocument) -> None:
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

    def cut(document: JsonDocument) -> None:
        for places in _our_hooks(document).values():
            for place in reversed(places):
                _remove_hook(document, place)

    return json_piece(file, "hooks", put, cut, loose=loose)


def _shell_hooks(
    command: Sequence[str], client: str, timeouts: Mapping[str, int]
) -> dict[str, dict[str, Any]]:
    """The hooks of a client that runs a line of the shell."""
    line = shlex.join([*command, "hook", "--client", client])
    return {event: {"type": "command", "command": line, "timeout": n} for event, n in timeouts.items()}


def _our_hooks(document: JsonDocument) -> dict[str, list[tuple[str | int, ...]]]:
    """Where hooks of ours stand, by event."""
    held = document.value.get("hooks", {})
    if not isinstance(held, dict):
        raise EditError(document.line(("hooks",)), "hooks is not an object")
    found: dict[str, list[tuple[str | int, ...]]] = {}
    for event, groups in held.items():
        if not isinstance(groups, list):
            raise EditError(document.line(("hooks", event)), f"hooks.{event} is not a list")
        for number, group in enumerate(groups):
            inner = group.get("hooks") if isinstance(group, dict) else None
            for place, hook in enumerate(inner if isinstance(inner, list) else ()):
                if "hook" in our_arguments(hook)[1:]:
                    found.setdefault(event, []).append(("hooks", event, number, "hooks", place))
    return found


def _remove_hook(document: JsonDocument, place: tuple[str | int, ...]) -> None:
    """Take a hook out; its group goes along if it was the only one there, whatever else stands in that."""
    group = document.at(place[:-2])
    assert group is not None
    document.cut(place if len(group.value["hooks"]) > 1 else place[:-2])


# -- a line for agents -------------------------------------------------------------------------------------

LINE_MARK = "<!-- ua-memory -->"
AGENTS_LINE = (
    "Search ua-memory (the tool `archival_memory_search`) before you answer anything about earlier work,"
    " decisions, people or preferences, and save what later sessions will need with `archival_memory_insert`."
)
"""Agents do not call a memory server of their own accord: measured, 0 of 40 sessions without such a line in
their instructions, 40 of 40 with it."""


def agents_text(client: str) -> str:
    """The line, with the tools that the client has."""
    return (
        AGENTS_LINE.replace("archival_memory_search", "memory_search")
        if client == "openclaw"
        else AGENTS_LINE
    )


def agents_line_piece(file: str, client: str) -> SettingsPiece:
    """The line in AGENTS.md, CLAUDE.md or their like, behind an empty line at the end; known by its mark."""
    line = f"{agents_text(client)} {LINE_MARK}"

    def put(text: str | None) -> str | None:
        if text and LINE_MARK in text:
            return "".join(
                line + row[len(row.rstrip("\r\n")) :] if LINE_MARK in row else row
                for row in split_lines(text)
            )
        return append_lines(text, [line])

    def cut(text: str | None) -> str | None:
        rows = split_lines(text or "")
        at = next((n for n, row in enumerate(rows) if LINE_MARK in row), None)
        if text is None or at is None:
            return text
        return "".join(remove_lines(rows, at, at + 1)) if text != line + "\n" else None

    return SettingsPiece(file, "line for agents", put, cut)


def command_entry(command: Sequence[str], *more: str) -> dict[str, Any]:
    """`command` and `args` of an entry: the words that start ua-memory, and what it is to do."""
    return {"command": command[0], "args": [*command[1:], *more]}


def with_command(text: str, command: Sequence[str]) -> str:
    """A shim's text with these words in the place where it says how ua-memory is called."""
    usual = f'["{SERVER_NAME}"]'
    assert text.count(usual) == 1, "a shim must name the ua-memory command exactly once"
    return text.replace(usual, json.dumps(list(command)))


def _plugin_files(
    folder: str, what: str, texts: Mapping[str, str], command: Sequence[str]
) -> list[SettingsPiece]:
    """The files of a plugin in a folder of its own, the command named in those that are code."""
    pieces = []
    for name, text in sorted(texts.items()):
        shown = with_command(text, command) if name.endswith((".py", ".js")) else text
        pieces.append(own_file(f"{folder}/{name}", what, shown, SERVER_NAME, folder))
    return pieces


# -- claude settings ---------------------------------------------------------------------------------------
# Claude Code's settings: hooks in settings.json, the MCP server in .claude.json, and all of it as a plugin.
#
# Seen with 2.1.330: a hook has 600 s by default but 30 s at a prompt and 1.5 s at the end of a session,
# which only a `timeout` in a settings.json raises (one in a plugin's hooks.json does not); `args` is passed
# on without a shell; hooks of types other than `command` do not run at the start of a session.


CLAUDE_TIMEOUTS = {
    "SessionStart": 10, "UserPromptSubmit": 10, "Stop": 10, "StopFailure": 10,
    "PreCompact": 30, "SessionEnd": 10,
}  # fmt: skip
"""The events we answer, and seconds for each. A hook of ours takes a fraction of one; machines are busy."""
AUTO_MEMORY_KEY = "autoMemoryDirectory"
"""Where Claude Code keeps what it notes by itself, a file a fact; read in a person's settings only."""
MARKETPLACE = "ua-memory-local"
DESCRIPTION = "Long-term memory as markdown files: recalled at each prompt, kept from each session."


def claude_code(
    call: Call, project: bool = False, plugin: str | None = None, auto_memory: bool = False
) -> ClientTarget:
    """Claude Code: the person's settings, the folder's, or a plugin; with `auto_memory` its own memory is
    pointed at a folder of the bank, too (Broken where it points elsewhere)."""
    if (plugin is not None) + project + auto_memory > 1:
        raise Usage("one of --project, --plugin and --auto-memory at a time")
    home = folders(call, "claude-code")[0]
    if plugin is not None:
        found = claude_plugin(str(caller.absolute(call, plugin)), command_of(call, shared=True))
        return found._replace(twice=_other_hooks(call, home, "plugin"))
    if project:
        found = claude_project(str(call.cwd), command_of(call, shared=True))
    else:
        state = (home if call.env.get("CLAUDE_CONFIG_DIR") else call.home) / ".claude.json"
        found = claude_target(str(home), str(state), command_of(call))
    found = found._replace(twice=_other_hooks(call, home, found.pieces[0].file))
    if not auto_memory:
        return found
    folder = str(caller.bank_root(call) / "memory" / "claude-code")
    more = json_value(f"{home}/settings.json", "its own memory's folder", (AUTO_MEMORY_KEY,), folder)
    return found._replace(pieces=(*found.pieces, more))


def _other_hooks(call: Call, home: Path, but: str) -> tuple[tuple[str, str], ...]:
    """What else has Claude Code call our hooks in this folder, and where that stands: all but the hooks in
    the file `but`, or all but the plugin."""
    here = call.cwd / ".claude"
    files = dict.fromkeys((home / "settings.json", here / "settings.json", here / "settings.local.json"))
    found = []
    for file in files:
        try:
            ways = enabled_hooks(discovery.read(file).decode("utf-8-sig"))
        except (
            OSError,
            ValueError,
            EditError,
        ):  # none there, or what has it made right says where it is wrong
            continue
        mine = {"hooks": str(file)}  # else a plugin of ours
        found += [(way, str(file)) for way in ways if mine.get(way, "plugin") != but]
    return tuple(found)


def claude_target(home: str, state: str, command: Sequence[str]) -> ClientTarget:
    """A person's own settings: `home` is ~/.claude, `state` the file .claude.json."""
    server = {"type": "stdio", **command_entry(command, "mcp", *EVERY_TOOL), "env": {}}
    return ClientTarget(
        "claude-code",
        (
            hooks_piece(f"{home}/settings.json", _claude_hooks(command)),
            mcp_server(state, ("mcpServers",), server),
        ),
        ("restart open sessions; /hooks and /mcp show it there",),
    )


def claude_project(folder: str, command: Sequence[str]) -> ClientTarget:
    """A project's settings, which go to everybody who has a checkout."""
    server = {"type": "stdio", **command_entry(command, "mcp", *EVERY_TOOL)}
    pieces = (
        hooks_piece(f"{folder}/.claude/settings.json", _claude_hooks(command)),
        mcp_server(f"{folder}/.mcp.json", ("mcpServers",), server),
    )
    return ClientTarget(
        "claude-code", pieces, ("Claude Code asks once in each checkout whether to use .mcp.json",)
    )


def claude_plugin(folder: str, command: Sequence[str]) -> ClientTarget:
    """A folder that is a marketplace with one plugin: hooks, server, README and skills. What is written here
    for this bank and version takes the place of a text that comes with us."""
    from ua_memory import __version__ as version

    inner = f"{folder}/plugins/{SERVER_NAME}"
    owner = {"name": "ua-memory contributors"}
    manifest = {
        "name": SERVER_NAME, "version": version, "description": DESCRIPTION, "author": owner,
        "license": "MIT", "keywords": ["memory", "recall", "markdown"],
    }  # fmt: skip
    market = {
        "name": MARKETPLACE,
        "owner": owner,
        "metadata": {"description": "ua-memory from this machine"},
        "plugins": [
            {
                "name": SERVER_NAME,
                "source": f"./plugins/{SERVER_NAME}",
                "description": DESCRIPTION,
                "version": version,
            }
        ],
    }
    events = {event: [{"hooks": [hook]}] for event, hook in _claude_hooks(command).items()}
    files = {
        **{f"{inner}/{path}": text for path, text in _client_files("claude-code").items()},
        f"{folder}/.claude-plugin/marketplace.json": _to_json(market),
        f"{inner}/.claude-plugin/plugin.json": _to_json(manifest),
        f"{inner}/hooks/hooks.json": _to_json({"description": DESCRIPTION, "hooks": events}),
        f"{inner}/.mcp.json": _to_json(
            {"mcpServers": {"memory": command_entry(command, "mcp", *EVERY_TOOL)}}
        ),
    }
    pieces = [own_file(file, "plugin", text, SERVER_NAME, folder) for file, text in files.items()]
    notes = (
        f"in Claude Code: /plugin marketplace add {folder}, then /plugin install {SERVER_NAME}@{MARKETPLACE}",
        "a plugin has 1.5 s at the end of a session",
    )
    return ClientTarget("claude-code", tuple(pieces), notes)


def enabled_hooks(text: str) -> list[str]:
    """What in a settings.json has our hooks called: itself ('hooks'), and our plugin by its full name. Broken
    where it cannot be read."""
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
# Codex's settings: hooks.json in Claude Code's form, the MCP server in config.toml. Seen with 0.169.0.


CODEX_TIMEOUTS = {"SessionStart": 10, "UserPromptSubmit": 10, "Stop": 10, "PreCompact": 30, "SessionEnd": 3}
"""The events we answer, and seconds for each; more than 3 at the end of a session Codex does not give."""


def codex_target(home: str, command: Sequence[str]) -> ClientTarget:
    """A person's own settings; `home` is ~/.codex."""
    server = {**command_entry(command, "mcp"), "startup_timeout_sec": 20}
    pieces = (
        hooks_piece(f"{home}/hooks.json", _shell_hooks(command, "codex", CODEX_TIMEOUTS)),
        toml_table(f"{home}/config.toml", "MCP server", ("mcp_servers", SERVER_NAME), server),
    )
    notes = ("Codex runs hooks only after you trust them: start codex, type /hooks, and trust the five",)
    return ClientTarget("codex", pieces, notes)


# -- gemini settings ---------------------------------------------------------------------------------------
# Gemini CLI's settings: hooks, with names and milliseconds of its own, and the MCP server. For 0.61.
#
# It reads comments in its settings.json, so they may stand there.


GEMINI_TIMEOUTS = {"SessionStart": 10_000, "BeforeAgent": 10_000, "AfterAgent": 10_000, "SessionEnd": 10_000}
"""The events we answer, and milliseconds for each."""


def gemini_target(home: str, command: Sequence[str]) -> ClientTarget:
    """A person's own settings; `home` is ~/.gemini."""
    file, wanted = f"{home}/settings.json", _shell_hooks(command, "gemini", GEMINI_TIMEOUTS)
    server = mcp_server(file, ("mcpServers",), command_entry(command, "mcp"), loose=True)
    notes = ("restart open sessions",)
    return ClientTarget("gemini", (hooks_piece(file, wanted, loose=True), server), notes)


# -- cursor settings ---------------------------------------------------------------------------------------
# Cursor's settings: the MCP server. By its documentation; it has no hook that could add to a prompt.


def cursor(call: Call, project: bool = False) -> ClientTarget:
    """Cursor: the person's settings, or the folder's."""
    folder = str((call.cwd if project else call.home) / ".cursor")
    entry = command_entry(command_of(call, shared=project), "mcp")
    server = mcp_server(f"{folder}/mcp.json", ("mcpServers",), entry)._replace(folder=folder)
    notes = ("Cursor has no hooks that recall or save: its agent does, by the tools; see the line below",)
    return ClientTarget("cursor", (server,), notes)


# -- opencode settings -------------------------------------------------------------------------------------
# OpenCode's settings: the MCP server, and a plugin, which it finds by its folder. Seen with 1.18.33.
#
# It reads opencode.json and opencode.jsonc, both with comments.


def opencode(call: Call) -> ClientTarget:
    """OpenCode: the person's settings and a plugin."""
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
# Hermes's settings: a memory provider in its plugins' folder. Seen with 0.19.0.
#
# Which provider is used stands in config.yaml, and there can be one only. Hermes itself sets it (`hermes
# config set`); taken out it is by us, since Hermes would go on asking for a provider that is gone.


_HEAD = re.compile(r"memory:[ \t]*(?:#.*)?[\r\n]*")
_OURS = re.compile(rf"([ \t]+)provider:[ \t]*(['\"]?){SERVER_NAME}\2[ \t]*(?:#.*)?[\r\n]*")


def hermes_target(home: str, command: Sequence[str]) -> ClientTarget:
    """A person's own provider; `home` is ~/.hermes."""
    folder = f"{home}/plugins/{SERVER_NAME}"
    pieces = _plugin_files(folder, "memory provider", _client_files("hermes"), command)
    notes = (f"to use it in Hermes: hermes config set memory.provider {SERVER_NAME}",)
    chosen = SettingsPiece(f"{home}/config.yaml", "memory.provider", lambda text: text, _without_choice)
    return ClientTarget("hermes", tuple(pieces), notes, left=(chosen,))


def _without_choice(text: str | None) -> str | None:
    """config.yaml without its choice of our provider, and without the `memory:` that held nothing else; every
    other line as it was."""
    rows = split_lines(text or "")
    start = next((n for n, row in enumerate(rows) if _HEAD.fullmatch(row)), len(rows))
    below = [*takewhile(lambda n: rows[n][0] in " \t#\r\n", range(start + 1, len(rows)))]
    values = [n for n in below if rows[n].strip() and rows[n].strip()[0] != "#"]
    found = ((n, _OURS.fullmatch(rows[n])) for n in values)
    ours = {n for n, row in found if row and not rows[values[0]].removeprefix(row[1])[:1].isspace()}
    gone = ours | ({start} if ours == set(values) else set()) if ours else ours
    return None if text is None else "".join(row for n, row in enumerate(rows) if n not in gone)


# -- openclaw settings -------------------------------------------------------------------------------------
# OpenClaw's settings: the MCP server and leave for our plugin in openclaw.json (JSON5), and the plugin.
#
# Seen with 2026.9.6: plugins in folders below `extensions` are found by themselves; one that did not come
# along hears what is said only with `allowConversationAccess`; an `allow` list, where there is one, is
# strict.


ENTRY = ("plugins", "entries", SERVER_NAME)
ALLOWED = ("plugins", "allow")
SLOT = ("plugins", "slots", "memory")
SLOT_TOOLS = ("memory_search", "memory_get")
"""What the plugin registers itself when it has the slot: the server leaves them out then."""
WITHOUT_SLOT = ("archival_memory_insert", "retire", "list_pages", "get_page", "ingest")
MANIFEST = "openclaw.plugin.json"


def openclaw(call: Call, memory_slot: bool = False) -> ClientTarget:
    """OpenClaw: the person's settings and a plugin, which takes the place of OpenClaw's own memory where that
    is asked for (`memory_slot`) or is so."""
    state, command = folders(call, "openclaw")[0], command_of(call)
    file = str(caller.absolute(call, call.env.get("OPENCLAW_CONFIG_PATH") or f"{state}/openclaw.json"))
    with suppress(OSError, ValueError, EditError):  # none there, or what writes it says what is wrong
        slot = JsonDocument(discovery.read(file).decode("utf-8-sig"), loose=True).at(SLOT)
        memory_slot = memory_slot or (slot is not None and slot.value == SERVER_NAME)
    tools, texts = ",".join(WITHOUT_SLOT) if memory_slot else "openclaw", _client_files("openclaw")
    pieces = [
        mcp_server(file, ("mcp", "servers"), command_entry(command, "mcp", "--tools", tools), loose=True),
        json_piece(file, "permission for the plugin", _allow_plugin, _remove_plugin, loose=True),
    ]
    if memory_slot:
        pieces.append(json_value(file, "memory slot", SLOT, SERVER_NAME, loose=True, more=_disable_dreaming))
        # Of two plugins of this kind only the selected one is loaded.
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
    if document.at((*ENTRY, "config")) is None:  # else memory-core dreams on, and writes MEMORY.md at night
        document.put((*ENTRY, "config"), {"dreaming": {"enabled": False}})


# -- pi settings -------------------------------------------------------------------------------------------
# pi's settings: an extension, and the MCP server in mcp.json. Seen with 1.5.2.


def pi_target(home: str, command: Sequence[str]) -> ClientTarget:
    """A person's own settings; `home` is ~/.pi/agent."""
    file, extension = (
        f"{home}/extensions/{SERVER_NAME}.ts",
        with_command(_client_files("pi")["ua-memory.ts"], command),
    )
    pieces = (
        own_file(file, "extension", extension, "ua-memory for pi."),
        mcp_server(
            f"{home}/mcp.json", ("mcpServers",), {**command_entry(command, "mcp"), "exposure": "direct"}
        ),
    )
    return ClientTarget("pi", pieces, ("in open sessions type /reload",))


# -- clients -----------------------------------------------------------------------------------------------
# All of them. A new client is a row here, and the function that the row names.


class Client(NamedTuple):
    """A client that is known.

    `homes`: a variable that names its folder, where that is otherwise, and what lies below it. `transcripts`
    are patterns of the files in that folder that hold sessions. `does` says what is set up by `target`, a
    function of the caller and of options that `cli.install` knows. `model` tells whether its program may be
    memory's model; `out` is how `uninstall` begins.
    """

    does: str
    target: Callable[..., ClientTarget]
    homes: tuple[tuple[str, ...], ...] = ()
    transcripts: tuple[str, ...] = ()
    model: bool = True
    out: str = "Remove"


def home_target(
    client: str, target: Callable[[str, Sequence[str]], ClientTarget]
) -> Callable[[Call], ClientTarget]:
    """What a client with nothing but its folder has: a target of that and of our command."""
    return lambda call: target(str(folders(call, client)[0]), command_of(call))


CLIENTS: Mapping[str, Client] = {
    "claude-code": Client(
        "hooks and the MCP server of Claude Code", claude_code, (("CLAUDE_CONFIG_DIR", "~/.claude"),),
        ("projects/*/*.jsonl",), out="Take out",
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
# A nightly `ua-memory consolidate` of one bank: a line of cron, a timer of systemd, an agent of launchd.
#
# Each bank has a job of its own, known by a name with a hash of the bank's path.


SCHEDULERS = ("cron", "systemd", "launchd")
CRONTAB = "crontab"
"""The file of a line of cron's: none, but what `crontab -l` shows and `crontab -` takes."""


def job_name(bank: str) -> str:
    """The job's name: `ua-memory-1a2b3c4d`."""
    return f"{SERVER_NAME}-{hashlib.sha256(bank.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"


def schedule_target(
    kind: str, bank: str, command: Sequence[str], at: tuple[int, int], home: str
) -> ClientTarget:
    """The job of a kind for a bank, at an hour and minute; `command` starts ua-memory with `--bank`."""
    name, words = job_name(bank), [*command, "consolidate"]
    if kind == "cron":
        key = MODEL_KEY_NOTE.format("the head of the crontab: ANTHROPIC_API_KEY=…")
        return ClientTarget("cron", (_crontab_piece(name, [*words, "--log"], at),), (key,))
    if kind == "systemd":
        units = f"{home}/.config/systemd/user/{name}"
        said = {
            "bank": _unit(bank),
            "words": " ".join(map(_quote_systemd, words)),
            "hour": at[0],
            "minute": at[1],
        }
        pieces = tuple(
            own_file(f"{units}.{kind}", kind, data_text(f"schedule/unit.{kind}").format(**said), SERVER_NAME)
            for kind in ("service", "timer")
        )
        key = MODEL_KEY_NOTE.format(
            f"systemctl --user edit {name}.service: [Service] Environment=ANTHROPIC_API_KEY=…"
        )
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
    """The hour and minute at which the job in a file runs, None where it does not say them as we do."""
    found = re.search(_TIMES[kind].replace("{name}", job_name(bank)), text)
    return (int(found["hour"]), int(found["minute"])) if found else None


MODEL_KEY_NOTE = "the job runs without your shell's environment; put a model's key into {}"


def _crontab_piece(name: str, words: Sequence[str], at: tuple[int, int]) -> SettingsPiece:
    """A line of the crontab, known by the job's name behind it."""
    mark = f" # {name}\n"
    # Cron takes a bare percent sign for the end of the line.
    line = f"{at[1]} {at[0]} * * * {shlex.join(words)}".replace("%", r"\%") + mark

    def put(text: str | None) -> str | None:
        rows = split_lines(text or "")
        if any(row.endswith(mark) for row in rows):
            return "".join(line if row.endswith(mark) else row for row in rows)
        end = "\n" if rows and not rows[-1].endswith("\n") else ""
        return f"{text or ''}{end}{line}"

    def cut(text: str | None) -> str | None:
        return None if text is None else "".join(row for row in split_lines(text) if not row.endswith(mark))

    return SettingsPiece(CRONTAB, "line", put, cut)


def _quote_systemd(word: str) -> str:
    """A word as systemd reads it: specifiers and variables are not meant."""
    plain = _unit(word).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{plain}"' if plain != word or any(c.isspace() or c in "';" for c in word) else word


def _unit(text: str) -> str:
    return text.replace("%", "%%").replace("\n", " ")
