"""A tool call as one line: what was done to what, and whether it went well. Never what came out of it.

The calls of our own tools are told apart here, so that what memory said is not learnt a second time.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from ua_memory.spoken import clean
from ua_memory.transcripts.turns import Call, Event, Result, Turn, table, word

LONGEST_ARGUMENT = 160
LONGEST_SUBJECT = 200
_WAITING = 256
"""How many turns wait at most for the result of a call before them."""

_PATHS = ("file_path", "path", "notebook_path", "filePath", "file")
_ARGUMENTS = (
    *_PATHS,
    "command",
    "cmd",
    "query",
    "pattern",
    "url",
    "skill",
    "subject",
    "description",
    "title",
    "prompt",
    "question",
    "task_id",
    "name",
    "id",
)
"""Which argument says what a call is about, the first that is there."""

_OURS = re.compile(
    r"ua[-_]?mem(?:ory)?(?:[-_].*)?|archival_memory_.*|core_memory_.*|get_core_memory_blocks|"
    r"memory_search|memory_get"
)
_OUR_WORDS = re.compile(r"recall|retain|reflect")
"""Ours where no other server is named: words that others' tools bear, too."""
_OUR_PAGES = re.compile(r"(?:list|get|create|update|delete)_pages?|ingest(?:_file)?")
_OUR_SERVER = re.compile(r"ua[-_]?mem|hindsight", re.IGNORECASE)
_OUR_COMMAND = re.compile(
    r"(?:^|[;&|(`]|\n)\s*(?:(?:uvx|uv run|exec|time|command|python3? -m)\s+)?(?:\S*/)?ua[-_]memory(?:\s|$)"
)
_MEMORY_VERBS = frozenset({"view", "create", "str_replace", "insert", "delete", "rename"})

_COMMIT = re.compile(r"\bgit\b[^;&|\n]{0,200}?\bcommit\b")
_HEREDOC = re.compile(
    r"(?:-[a-z]*m\s*[\"']?\$\(cat\s|-F\s*-\s[^\n]{0,200}?)\s*<<-?\s*['\"]?(\w+)['\"]?[^\n]{0,200}\n\s*(.+)"
)
_MESSAGE = re.compile(r"(?:\s-[a-z]*m\s*|--message[= ]\s*)(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)')")
_COMMITTED = re.compile(r"^\[[^\]\n]{1,200} [0-9a-f]{7,40}\] (.+)$", re.MULTILINE)
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


def ours(name: str, arguments: Any, server: str = "") -> bool:
    """Whether a call is one of our own tools, under whatever prefix a client gave it, or our command."""
    prefix, tool = _split(name)
    if _OUR_SERVER.search(server or prefix) or _OURS.fullmatch(tool):
        return True
    given = table(arguments)
    if (
        name == "memory" and word(given.get("command")) in _MEMORY_VERBS
    ):  # the API's memory tool, which we serve
        return True
    if not prefix and not server and (_OUR_PAGES.fullmatch(tool) or _OUR_WORDS.fullmatch(tool)):
        return True
    return bool(_OUR_COMMAND.search(command_of(given)[:20_000]))


def _split(name: str) -> tuple[str, str]:
    """Server and tool: `mcp__s__t` (Claude Code, Codex, pi), `mcp_s_t` (Gemini), `s__t` (OpenClaw)."""
    if "__" in name:
        prefix, _, tool = name.rpartition("__")
        return prefix.removeprefix("mcp__"), tool
    if name.startswith("mcp_"):
        for tool in ("memory_search", "memory_get", "archival_memory_insert", "archival_memory_search"):
            if name.endswith("_" + tool):
                return name[4 : -len(tool) - 1], tool
    return "", name


def command_of(arguments: dict[str, Any]) -> str:
    """The shell command of a call, "" where it has none. A list is an argv; of `bash -lc X` it is X."""
    command = arguments.get("command", arguments.get("cmd"))
    if isinstance(command, list):
        words = [part for part in command if isinstance(part, str)]
        return words[-1] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)
    return word(command)


def call(turn: Turn, key: str, name: str, arguments: Any, cwd: str) -> Call:
    """The call as a turn still without its outcome. `turn` has all but the text; `cwd` shortens paths."""
    given = table(arguments)
    command = command_of(given)[:50_000]
    commits = bool(_COMMIT.search(command))
    line = f"{clean(name)[:80]} {_main_argument(given, arguments, command, cwd)}".strip()
    return Call(key, replace(turn, text=line), commit_subject(command) if commits else "", commits)


def _main_argument(given: dict[str, Any], arguments: Any, command: str, cwd: str) -> str:
    if isinstance(arguments, str):  # apply_patch and other free-form tools
        return _one_line(", ".join(_PATCHED.findall(arguments)[:5]) or arguments)
    for key in _ARGUMENTS:
        value = command if key in ("command", "cmd") else given.get(key)
        if isinstance(value, str) and value.strip():
            if key in _PATHS and cwd and value.startswith(cwd.rstrip("/") + "/"):
                value = value[len(cwd.rstrip("/")) + 1 :]
            return _one_line(value)
    return _one_line(next((v for v in given.values() if isinstance(v, str) and v.strip()), ""))


def _one_line(text: str) -> str:
    first, _, rest = clean(text[:20_000]).partition("\n")
    line = " ".join(first.split())
    if len(line) > LONGEST_ARGUMENT or rest:
        line = line[:LONGEST_ARGUMENT].rstrip() + " …"
    return line


def commit_subject(command: str) -> str:
    """The first line of a commit's message as the command gives it; several commits' joined by ` / `."""
    subjects = [found[2] for found in _HEREDOC.finditer(command)]
    if not subjects:
        for piece in re.split(r"(?=\bcommit\b)", command)[1:]:
            if found := _MESSAGE.search(piece):
                subjects.append((found[1] or found[2] or "").partition("\n")[0].replace('\\"', '"'))
    return " / ".join(s for one in subjects if (s := clean(one)[:LONGEST_SUBJECT]))


def committed(output: str) -> str:
    """The subject in git's own answer, `[main 1a2b3c4] Subject`, for commands that do not give it."""
    return " / ".join(clean(one)[:LONGEST_SUBJECT] for one in _COMMITTED.findall(output[:20_000])[:5])


def decoded(arguments: Any) -> Any:
    """Arguments that a client keeps as JSON text, as a value; other text as it stands."""
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict) else arguments


def settle(events: Iterable[Event]) -> Iterator[Turn]:
    """Turns in order, each call with its outcome.

    A call whose result has not come after many more turns, or at all, is shown without one.
    """
    queue: deque[Turn | Call] = deque()
    waiting: dict[str, Call] = {}
    for event in events:
        if isinstance(event, Result):
            if found := waiting.pop(event.key, None):
                _close(found, event)
        else:
            queue.append(event)
            if isinstance(event, Call):
                waiting[event.key] = event
        while queue and (len(queue) > _WAITING or _ready(queue[0], waiting)):
            first = queue.popleft()
            if isinstance(first, Call) and waiting.get(first.key) is first:
                del waiting[first.key]
            yield _turn(first)
    for left in queue:
        yield _turn(left)


def _ready(one: Turn | Call, waiting: dict[str, Call]) -> bool:
    return isinstance(one, Turn) or waiting.get(one.key) is not one


def _turn(one: Turn | Call) -> Turn:
    return one if isinstance(one, Turn) else one.turn


def _close(found: Call, result: Result) -> None:
    text = f"{found.turn.text}: {'error' if result.error else 'ok'}"
    subject = found.subject or result.subject
    if found.commits and subject and not result.error:
        text += f"; commit: {subject}"
    found.turn = replace(found.turn, text=text)
