"""The content of a transcript: turns, sessions, and tool calls as one line."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from ua_memory.text.noise import stripped
from ua_memory.text.patterns import late

# -- turns -------------------------------------------------------------------------------------------------


Role = Literal["person", "assistant", "tool"]
Record = dict[str, Any]
"""One JSON object of a transcript, as its client wrote it; unvalidated."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing that was said or done, in the order of the conversation.

    `id` is the entry's own in its client, with `.2`, `.3` … for further turns of the same entry; without one
    it is the line (`L12`) or the place in the list (`m12`), which are stable as long as the transcript is
    only appended to. `text` is verbatim for people and assistants; for a tool it is one line, `Edit
    src/foo.py: ok` (name, main argument, ok or error, a commit's subject), which ends before the colon if no
    result was recorded. `at` is aware. `agent` names the sub-agent that spoke, "" for the main one. `summary`
    marks a compaction's summary, read only where the turns that it sums up are missing. `line` counts from 1
    (lines of the file, or messages of a JSON list). `echo` has those sentences of an assistant, a line each,
    that repeat what a tool printed shortly before.
    """

    id: str
    role: Role
    text: str
    at: datetime | None = None
    agent: str = ""
    summary: bool = False
    line: int = 0
    echo: str = ""


@dataclass(frozen=True, slots=True)
class Session:
    """The session of a transcript, by its content and not its path.

    `parent` is the session (or, in pi, the file) that this one was resumed, branched or forked from. `group`
    names the group chat, '' if only the owner speaks with the agent. `title` is the client's own; it may
    change, and does not identify the session. `tags` are a program's own, for each fact that is kept of it.
    """

    client: str
    session: str = ""
    cwd: str = ""
    started: datetime | None = None
    parent: str = ""
    agent: str = ""
    group: str = ""
    title: str = field(default="", compare=False)
    tags: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Boundary:
    """The last compaction (or reset) on the conversation's path.

    A turn is still in the context if its `line` is at or after `kept`; `line` is the boundary's own. `after`
    are the tokens that it left, if it says so.
    """

    line: int
    kept: int
    after: int | None = None


@dataclass(slots=True)
class PendingCall:
    """A tool call that waits for its result, which says whether it succeeded."""

    key: str
    turn: Turn
    subject: str = ""
    commits: bool = False


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call. `subject` is a commit's, from the output; nothing else of the output is kept."""

    key: str
    error: bool
    subject: str = ""


Event = Turn | PendingCall | CallResult


def as_time(value: object) -> datetime | None:
    """A recorded time, aware: ISO text, or seconds or milliseconds since 1970; None for anything else.

    A time without an offset is taken as UTC: every client here writes UTC.
    """
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value)
            return at if at.tzinfo else at.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if abs(value) >= 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def as_str(value: object) -> str:
    """The value if it is text, else ""."""
    return value if isinstance(value, str) else ""


def as_dict(value: object) -> Record:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_tokens(value: object) -> int:
    """The value if it is a plausible number of tokens, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40 else 0


# -- tool calls --------------------------------------------------------------------------------------------
# A tool call becomes one line: what was done to what, and whether it succeeded, without its output. Calls of
# our own tools are recognised here and left out, so that recalled memory is not extracted again.


LONGEST_ARGUMENT = 160
LONGEST_SUBJECT = 200
_LONGEST_WAIT = 256
"""Most turns that wait for the result of a call before them."""

_PATHS = ("file_path", "path", "notebook_path", "filePath", "file")
_ARGUMENTS = (
    *_PATHS, "command", "cmd", "query", "pattern", "url", "skill", "subject", "description", "title",
    "prompt", "question", "task_id", "name", "id",
)  # fmt: skip
"""The arguments that say what a call is about; the first that exists is shown."""

_OUR_TOOLS = late(
    r"ua[-_]?mem(?:ory)?(?:[-_].*)?|archival_memory_.*|core_memory_.*|get_core_memory_blocks|"
    r"memory_search|memory_get"
)
_OUR_SHORT_NAMES = late(r"recall|retain|reflect|retire")
"""Our tools if no other server is named: others have tools of these names, too."""
_OUR_PAGES = late(r"(?:list|get|create|update|delete)_pages?|ingest(?:_file)?")
_OUR_SERVER = late(r"ua[-_]?mem|hindsight", re.IGNORECASE)
_OUR_COMMAND = late(
    r"(?:^|[;&|(`]|\n)\s*(?:(?:uvx|uv run|exec|time|command|python3? -m)\s+)?(?:\S*/)?ua[-_]memory(?:\s|$)"
)
_MEMORY_VERBS = frozenset({"view", "create", "str_replace", "insert", "delete", "rename"})

_COMMIT = late(r"\bgit\b[^;&|\n]{0,200}?\bcommit\b")
_HEREDOC = late(
    r"(?:-[a-z]*m\s*[\"']?\$\(cat\s|-F\s*-\s[^\n]{0,200}?)\s*<<-?\s*['\"]?(\w+)['\"]?[^\n]{0,200}\n\s*(.+)"
)
_MESSAGE = late(r"(?:\s-[a-z]*m\s*|--message[= ]\s*)(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)')")
_COMMITTED = late(r"^\[[^\]\n]{1,200} [0-9a-f]{7,40}\] (.+)$", re.MULTILINE)
_PATCHED = late(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


def is_ours(name: str, arguments: Any, server: str = "") -> bool:
    """Whether a call is of one of our own tools, with any client's prefix, or of our command."""
    prefix, tool = _split_name(name)
    if _OUR_SERVER.search(server or prefix) or _OUR_TOOLS.fullmatch(tool):
        return True
    given = as_dict(arguments)
    # The API's memory tool, which we serve.
    if name == "memory" and as_str(given.get("command")) in _MEMORY_VERBS:
        return True
    if not prefix and not server and (_OUR_PAGES.fullmatch(tool) or _OUR_SHORT_NAMES.fullmatch(tool)):
        return True
    return bool(_OUR_COMMAND.search(command_of(given)[:20_000]))


def _split_name(name: str) -> tuple[str, str]:
    """Server and tool of a name: `mcp__s__t` (Claude Code, Codex, pi), `mcp_s_t` (Gemini), `s__t` (OpenClaw),
    and ours as `ua-memory_t` (OpenCode)."""
    if "__" in name:
        prefix, _, tool = name.rpartition("__")
        return prefix.removeprefix("mcp__"), tool
    if name.startswith("mcp_"):
        for tool in ("memory_search", "memory_get", "archival_memory_insert", "archival_memory_search"):
            if name.endswith("_" + tool):
                return name[4 : -len(tool) - 1], tool
    if name.startswith("ua-memory_"):
        return "ua-memory", name.removeprefix("ua-memory_")
    return "", name


def command_of(arguments: dict[str, Any]) -> str:
    """The shell command of a call, "" if it has none. A list is an argv; of `bash -lc X` it is X."""
    command = arguments.get("command", arguments.get("cmd"))
    if isinstance(command, list):
        words = [part for part in command if isinstance(part, str)]
        return words[-1] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)
    return as_str(command)


def pending_call(turn: Turn, key: str, name: str, arguments: Any, cwd: str) -> PendingCall:
    """A call as a turn without its result. `turn` has all but the text; `cwd` shortens paths."""
    given = as_dict(arguments)
    command = command_of(given)[:50_000]
    commits = bool(_COMMIT.search(command))
    line = f"{stripped(name)[:80]} {_main_argument(given, arguments, command, cwd)}".strip()
    return PendingCall(key, replace(turn, text=line), commit_subject(command) if commits else "", commits)


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
    first, _, rest = stripped(text[:20_000]).partition("\n")
    line = " ".join(first.split())
    if len(line) > LONGEST_ARGUMENT or rest:
        line = line[:LONGEST_ARGUMENT].rstrip() + " …"
    return line


def commit_subject(command: str) -> str:
    """The subject of a commit as the command gives it; those of several commits joined by ` / `."""
    subjects = [found[2] for found in _HEREDOC.finditer(command)]
    if not subjects:
        for piece in re.split(r"(?=\bcommit\b)", command)[1:]:
            if found := _MESSAGE.search(piece):
                subjects.append((found[1] or found[2] or "").partition("\n")[0].replace('\\"', '"'))
    return " / ".join(s for one in subjects if (s := stripped(one)[:LONGEST_SUBJECT]))


def git_subject(output: str) -> str:
    """The subjects in git's output, `[main 1a2b3c4] Subject`, for commands that do not give them."""
    return " / ".join(stripped(one)[:LONGEST_SUBJECT] for one in _COMMITTED.findall(output[:20_000])[:5])


def decode(arguments: Any) -> Any:
    """Arguments that a client keeps as JSON text, parsed; other text unchanged."""
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict) else arguments


def settle(events: Iterable[Event]) -> Iterator[Turn]:
    """Turns in order, each call with its result.

    A call whose result is missing, or comes after many more turns, is shown without one.
    """
    queue: deque[Turn | PendingCall] = deque()
    waiting: dict[str, PendingCall] = {}
    for event in events:
        if isinstance(event, CallResult):
            if found := waiting.pop(event.key, None):
                _add_result(found, event)
        else:
            queue.append(event)
            if isinstance(event, PendingCall):
                waiting[event.key] = event
        while queue and (len(queue) > _LONGEST_WAIT or _is_ready(queue[0], waiting)):
            first = queue.popleft()
            if isinstance(first, PendingCall) and waiting.get(first.key) is first:
                del waiting[first.key]
            yield _turn_of(first)
    for left in queue:
        yield _turn_of(left)


def _is_ready(one: Turn | PendingCall, waiting: dict[str, PendingCall]) -> bool:
    return isinstance(one, Turn) or waiting.get(one.key) is not one


def _turn_of(one: Turn | PendingCall) -> Turn:
    return one if isinstance(one, Turn) else one.turn


def _add_result(found: PendingCall, result: CallResult) -> None:
    text = f"{found.turn.text}: {'error' if result.error else 'ok'}"
    subject = found.subject or result.subject
    if found.commits and subject and not result.error:
        text += f"; commit: {subject}"
    found.turn = replace(found.turn, text=text)
