"""Claude Code: its transcripts in JSONL; hooks and the MCP server, or both as a plugin.

A transcript is a tree of records, one per content block, between much that is not conversation. Read are
`user` and `assistant` records on the path from the last leaf, and what a person typed while the agent worked.
Attachments, hook output, request copies and meta records hold the memory we injected: they are never read. A
file of sidechain records alone is a sub-agent's; inline ones in a main file are left out.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ua_memory import discovery, paths
from ua_memory.clients import settings, turns
from ua_memory.clients.edit import EditError, JsonDocument
from ua_memory.clients.settings import SERVER_NAME
from ua_memory.clients.turns import Event, Record
from ua_memory.errors import Usage
from ua_memory.paths import Surroundings
from ua_memory.text.noise import is_summary, typed_text

_TYPES = (
    *("summary", "file-history-snapshot", "queue-operation", "last-prompt", "permission-mode", "mode"),
    *("agent-name", "custom-title", "ai-title"),
)
"""Types of records that no other client has."""
_MACHINES = ("acompact", "aprompt_suggestion", "aside_question")
"""The client's own sub-agents: the one for compaction repeats the conversation."""

_RESULTS_ONLY, _QUEUE = 3, 4


class _Branch:
    """The main conversation of a file, or its sidechain: each has a tree, a leaf and usage of its own."""

    def __init__(self) -> None:
        self.tree = turns.Tree()
        self.leaf = -1
        self.gauge = turns.ContextGauge()
        self.boundaries: list[tuple[int, turns.Boundary, str, str]] = []
        """Entry number, boundary, id of the logical parent, id of the first message left in the context."""
        self.summaries: list[int] = []
        """Lines of summaries of turns that are not in the file."""
        self.results: list[int] = []
        self.agent = ""


class ClaudeCode(turns.Format):
    """`~/.claude/projects/<cwd>/<session>.jsonl` and `…/<session>/subagents/agent-<id>.jsonl`."""

    client = "claude-code"
    long_line = re.compile(r'"(?:parentUuid|isSidechain|sessionId)"\s*:')

    @classmethod
    def wrote(cls, record: Record, records: list[Record]) -> bool:
        if "role" in record or "messages" in record:  # a list of messages, not a session
            return False
        is_entry = "uuid" in record and "parentUuid" in record
        return is_entry or "sessionId" in record or record.get("type") in _TYPES

    def __init__(self) -> None:
        super().__init__()
        self._main, self._side = _Branch(), _Branch()
        self._queue_lines: list[int] = []
        self._recorded_texts: set[int] = set()
        """Hashes of a person's texts that have records of their own, which the queue's log repeats."""
        self._branch = self._main
        self._last_head: tuple[object, ...] = ()
        self._our_calls: set[str] = set()
        self._title_rank = -3

    def name(self, line: int, record: Record) -> str:
        if record.get("type") == "queue-operation":
            return f"queued-{record.text('timestamp') or line}"
        return record.text("uuid") or f"L{line}"

    def survey(self, line: int, record: Record) -> None:
        kind = record.get("type")
        if kind == "queue-operation":
            self._queue_lines.append(line)
            return
        self._title(kind, record)
        id = record.text("uuid")
        if not id:
            return
        branch = self._side if record.get("isSidechain") is True else self._main
        self._head(record)
        message = record.part("message")
        parent = record.text("parentUuid") or record.text("logicalParentUuid")
        summary = _is_summary(record)
        bound = record.get("subtype") == "compact_boundary"
        group = message.text("id") if kind == "assistant" else ""
        number = branch.tree.add(id, parent, line, group, follows=summary or bound)
        if bound:
            branch.boundaries.append((number, _boundary(line, record), parent, _first_kept_id(record)))
        elif kind in ("user", "assistant"):
            self._add_message(branch, line, number, record, message)
        elif kind == "attachment":
            queued = record.part("attachment")
            if queued.get("type") == "queued_command":
                self._recorded_texts.update(turns.id_hash(text) for text in queued.texts("prompt"))

    def _title(self, kind: object, record: Record) -> None:
        """Update the title: the person's own before the model's, the last of each. A summary, which may be
        another session's, counts only without these."""
        titles = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
        if isinstance(kind, str) and kind in titles and (title := record.text(titles[kind])):
            rank = -[*titles].index(kind)
            if rank >= self._title_rank:
                self._title_rank, self.session = rank, replace(self.session, title=title)

    def _add_message(self, branch: _Branch, line: int, number: int, record: Record, message: Record) -> None:
        if _is_summary(record):
            if branch.leaf < 0:
                branch.summaries.append(line)
        elif record.get("type") == "assistant":
            branch.agent = record.text("agentId") or branch.agent
            if message.get("model") != "<synthetic>":
                branch.gauge.add(line, turns.claude_usage(message.part("usage")))
        elif "toolUseResult" in record or "sourceToolAssistantUUID" in record:
            branch.results.append(number)
        elif isinstance(message.get("content"), str):
            self._recorded_texts.add(turns.id_hash(message["content"]))
        branch.leaf = number

    def _head(self, record: Record) -> None:
        """Update the session. The last one counts: a resumed file begins with records of the session
        before."""
        head = self.session
        now = (record.get("sessionId"), record.get("forkedFrom"))
        if now == self._last_head:
            return
        self._last_head = now
        session = record.text("sessionId") or head.session
        parent = record.part("forkedFrom").text("sessionId") or head.parent
        if head.session and session != head.session and not head.parent:
            parent = head.session
        self.session = replace(
            head,
            session=session,
            parent=parent if parent != session else "",
            cwd=head.cwd or record.text("cwd"),
            started=head.started or record.time("timestamp"),
        )

    def close(self, lines: int) -> None:
        branch = self._branch = self._main if self._main.leaf >= 0 else self._side
        self.keep = bytearray(lines + 1)
        branch.tree.walk(branch.leaf)
        branch.tree.flag_lines(self.keep)
        for number in branch.results:
            if not branch.tree.flags[number]:
                self.keep[branch.tree.line(number)] = _RESULTS_ONLY
        for line in self._queue_lines:
            self.keep[line] = _QUEUE
        if branch is self._side:
            self.session = replace(self.session, agent=branch.agent)
            if branch.agent.startswith(_MACHINES):
                self.keep = bytearray(lines + 1)
        for number, boundary, parent, first in reversed(branch.boundaries):
            before = branch.tree.find(parent) if parent else -1
            if branch.tree.flags[number] or (before >= 0 and branch.tree.flags[before]):
                kept = branch.tree.line(branch.tree.find(first)) if first else 0
                self.boundary = replace(boundary, kept=kept or boundary.line)
                break
        self.context_size = branch.gauge.size(self.boundary)

    def read_to(self, id: str, line: int) -> int:
        return self._branch.tree.last_read(id)

    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        queue: deque[str] = deque()
        asked: set[str] = set()
        for line, record in records:
            flag = self.keep[line]
            if flag == _QUEUE:
                yield from self._queued_turns(line, record, queue)
                continue
            at = record.time("timestamp")
            entry = self.entry(line, record, at, record.text("agentId"))
            kind = record.get("type")
            if kind == "assistant":
                yield from self._assistant(entry, record, asked)
            elif kind == "user":
                yield from self._user(entry, line, record, asked, flag == _RESULTS_ONLY)
            elif kind == "attachment":
                queued = record.part("attachment")
                if queued.get("type") == "queued_command" and queued.get("commandMode") in (None, "prompt"):
                    text = turns.join_texts(queued.texts("prompt"), typed_text)
                    if text and _is_by_person(queued):
                        yield entry.next(text=text)

    def _assistant(self, entry: turns.EntryIds, record: Record, asked: set[str]) -> Iterator[Event]:
        message = record.part("message")
        if record.get("isApiErrorMessage") or message.get("model") == "<synthetic>":
            return
        made = (block for block in message.blocks() if block.get("type") == "tool_use")
        asked.update(block.text("id") for block in made if block.get("name") == "AskUserQuestion")
        yield from entry.said(message, self.session.cwd)

    def _user(
        self, entry: turns.EntryIds, line: int, record: Record, asked: set[str], results_only: bool
    ) -> Iterator[Event]:
        message = record.part("message")
        for block in message.blocks():
            if block.get("type") == "tool_result":
                key = block.text("tool_use_id")
                yield turns.call_result(key, block.get("is_error") is True, block.get("content"))
                if key in asked and (text := _answers_of_person(record)) and not results_only:
                    yield entry.next(text=text)
        if results_only or record.get("isMeta"):
            return
        if _is_summary(record):
            if line in self._branch.summaries:
                text = "\n\n".join(message.texts()).strip()
                yield entry.next(role="assistant", text=text, summary=True)
            return
        if not record.get("isVisibleInTranscriptOnly") and _is_by_person(record):
            yield from self.typed(entry, message.texts())

    def _queued_turns(self, line: int, record: Record, queue: deque[str]) -> Iterator[Event]:
        """Turns that were typed while the agent worked, and given to it in mid-turn.

        The queue's log has no ids; an operation `remove` gave its text to the model. Newer clients also write
        a queued_command record, which is preferred. Version 2.1.39 has only the log, in which notices of
        background tasks are queued, too, but are no turns.
        """
        operation = record.get("operation")
        if operation == "enqueue":
            if typed_text(record.text("content")):
                queue.append(record.text("content"))
            if len(queue) > 1000:
                queue.popleft()
        elif operation in ("dequeue", "remove", "popAll"):
            said = queue.popleft() if queue else ""
            said = record.text("content") or said
            text = typed_text(said)
            if operation == "remove" and text and turns.id_hash(said) not in self._recorded_texts:
                at = record.time("timestamp")
                yield turns.Turn(self.name(line, record), "person", text, at, line=line)

    def contents(self, line: int, record: Record) -> Iterator[str]:
        if self.keep[line] == 1 and record.get("type") in ("user", "assistant"):
            yield from record.part("message").contents()

    tells_outputs = True

    def outputs(self, record: Record) -> Iterator[str]:
        for block in record.part("message").blocks():
            if block.get("type") == "tool_use" and turns.is_ours(block.text("name"), None):
                self._our_calls.add(block.text("id"))
            elif block.get("type") == "tool_result" and block.get("tool_use_id") not in self._our_calls:
                yield "\n".join(block.texts())


def _is_summary(record: Record) -> bool:
    if record.get("isCompactSummary"):
        return True
    if record.get("type") != "user":
        return False
    return is_summary(next(record.part("message").texts(), ""))


def _is_by_person(record: Record) -> bool:
    """Whether a person wrote a prompt, and not the client, a hook or a background task."""
    origins = (record.get("turnOrigin"), record.part("origin").get("kind"))
    return record.get("promptSource") != "system" and all(o in (None, "human", "sdk") for o in origins)


def _answers_of_person(record: Record) -> str:
    """A person's answers to the agent's question, from the client's own record."""
    answers = record.part("toolUseResult").part("answers")
    pairs = (f"{question} {answer}" for question, answer in answers.items() if isinstance(answer, str))
    return "\n".join(pairs).strip()


def _first_kept_id(record: Record) -> str:
    """The id of the first message that a compaction left in the context, or ""."""
    meta = record.part("compactMetadata")
    kept = meta.part("preservedMessages").get("uuids")
    first = turns.as_str(kept[0]) if isinstance(kept, list) and kept else ""
    return first or meta.part("preservedSegment").text("headUuid")


def _boundary(line: int, record: Record) -> turns.Boundary:
    left = record.part("compactMetadata").tokens("postTokens")
    return turns.Boundary(line, line, left or None)


# -- settings ----------------------------------------------------------------------------------------------
# Claude Code: hooks in settings.json and the MCP server in .claude.json, or both as a plugin.
#
# Tested with 2.1.330. A hook's default timeout is 600 s, but 30 s at a prompt and 1.5 s at the end of a
# session. Only `timeout` in a settings.json raises it, not in a plugin's hooks.json. `args` is passed without
# a shell. Hooks of types other than `command` do not run at the start of a session.


HOMES = (("CLAUDE_CONFIG_DIR", "~/.claude"),)
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
    call: Surroundings, project: bool = False, plugin: str | None = None, auto_memory: bool = False
) -> settings.ClientTarget:
    """Claude Code's user settings, the current project's (`project`), or a plugin in the folder `plugin`.

    With `auto_memory` Claude Code's own memory is stored in the bank, too; EditError if it is set to another
    folder. Usage for more than one option."""
    if (plugin is not None) + project + auto_memory > 1:
        raise Usage("one of --project, --plugin and --auto-memory at a time")
    home = settings.folders(call, HOMES)[0]
    if plugin is not None:
        found = claude_plugin(str(paths.absolute(call, plugin)), settings.command_of(call, shared=True))
        return found._replace(duplicates=_other_hooks(call, home, "plugin"))
    if project:
        here, note = call.cwd, "Claude Code asks once in each checkout whether to use .mcp.json"
        files = f"{here}/.claude/settings.json", f"{here}/.mcp.json"  # which are committed and shared
        found = _claude_target(*files, settings.command_of(call, shared=True), note)
    else:
        state = (home if call.env.get("CLAUDE_CONFIG_DIR") else call.home) / ".claude.json"
        found = claude_target(str(home), str(state), settings.command_of(call))
    found = found._replace(duplicates=_other_hooks(call, home, found.pieces[0].file))
    if not auto_memory:
        return found
    folder = str(paths.bank_root(call) / "memory" / "claude-code")
    more = settings.json_value(f"{home}/settings.json", "its own memory's folder", (AUTO_MEMORY_KEY,), folder)
    return found._replace(pieces=(*found.pieces, more))


def _other_hooks(call: Surroundings, home: Path, but: str) -> tuple[tuple[str, str], ...]:
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


def claude_target(home: str, state: str, command: Sequence[str]) -> settings.ClientTarget:
    """Claude Code's user settings; `home` is ~/.claude, `state` the file .claude.json."""
    note = "restart open sessions; /hooks and /mcp show it there"
    return _claude_target(f"{home}/settings.json", state, command, note, env={})


def _claude_target(
    hooks: str, servers: str, command: Sequence[str], note: str, **more: dict[str, Any]
) -> settings.ClientTarget:
    server = {"type": "stdio", **settings.command_entry(command, "mcp", *settings.EVERY_TOOL), **more}
    pieces = (
        settings.hooks_piece(hooks, _claude_hooks(command)),
        settings.mcp_server(servers, ("mcpServers",), server),
    )
    return settings.ClientTarget("claude-code", pieces, (note,))


def claude_plugin(folder: str, command: Sequence[str]) -> settings.ClientTarget:
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
    servers = {"mcpServers": {"memory": settings.command_entry(command, "mcp", *settings.EVERY_TOOL)}}
    events = {event: [{"hooks": [hook]}] for event, hook in _claude_hooks(command).items()}
    files = {
        **{f"{inner}/{path}": text for path, text in settings.client_files("claude-code").items()},
        f"{folder}/.claude-plugin/marketplace.json": settings.to_json(market),
        f"{inner}/.claude-plugin/plugin.json": settings.to_json(manifest),
        f"{inner}/hooks/hooks.json": settings.to_json({"description": DESCRIPTION, "hooks": events}),
        f"{inner}/.mcp.json": settings.to_json(servers),
    }
    pieces = [settings.own_file(file, "plugin", text, SERVER_NAME, folder) for file, text in files.items()]
    notes = (
        f"in Claude Code: /plugin marketplace add {folder}, then /plugin install {SERVER_NAME}@{MARKETPLACE}",
        "a plugin has 1.5 s at the end of a session",
    )
    return settings.ClientTarget("claude-code", tuple(pieces), notes)


def enabled_hooks(text: str) -> list[str]:
    """What in the text of a settings.json runs our hooks: "hooks" for its own, "plugin NAME" for our enabled
    plugin. EditError if it is invalid."""
    document = JsonDocument(text)
    switched = document.value.get("enabledPlugins")
    plugins = switched.items() if isinstance(switched, dict) else ()
    named = [f"plugin {name}" for name, on in plugins if on and name.partition("@")[0] == SERVER_NAME]
    return [*(["hooks"] if settings.our_hooks(document) else []), *named]


def _claude_hooks(command: Sequence[str]) -> dict[str, dict[str, Any]]:
    call = settings.command_entry(command, "hook", "--client", "claude-code")
    return {
        event: {"type": "command", **call, "timeout": seconds} for event, seconds in CLAUDE_TIMEOUTS.items()
    }


CLIENT = settings.Client(
    "hooks and the MCP server of Claude Code", claude_code, HOMES, ("projects/*/*.jsonl",), (ClaudeCode,)
)
