"""What a transcript is once it has been read: turns, sessions, and a tool call as one line."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from ua_memory.text.noise import clean
from ua_memory.text.patterns import late

# -- turns -------------------------------------------------------------------------------------------------
# What a transcript is once it has been read: who said what, in which session, and how full its context is.
#
# Values only. A reader per client makes them; `reading` hands them out.


Role = Literal["person", "assistant", "tool"]
Record = dict[str, Any]
"""One JSON object of a transcript, as its client wrote it. Nothing in it can be relied upon."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing that was said or done, in the order of the conversation.

    `id` is the entry's own in its client, with `.2`, `.3` … for what else the same entry holds; where the
    client gives none it is made of the line (`L12`) or of the place in the list (`m12`), both stable as long
    as the transcript is only appended to. `text` is verbatim for people and assistants; for a tool it is one
    line, `Edit src/foo.py: ok` (name, main argument, ok or error, a commit's subject), which ends before the
    colon where no result has been recorded. `at` is aware. `agent` names the sub-agent that spoke, "" for the
    main line. `summary` marks a compaction's summary, read only where the turns it sums up are gone. `line`
    counts from 1 (lines of the file, or messages of a JSON list). `echo` has those sentences of an assistant,
    a line each, that repeat what a tool printed shortly before.
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
    """Whose conversation this is. Nothing of it comes from the file's path.

    `parent` is the session (or, in pi, the file) that this one was resumed, branched or forked from. `group`
    names the group chat it is, '' where its owner alone speaks with the agent. `title` is the client's own;
    it may change, and does not tell sessions apart.
    """

    client: str
    session: str = ""
    cwd: str = ""
    started: datetime | None = None
    parent: str = ""
    version: str = ""
    agent: str = ""
    group: str = ""
    title: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ContextUsage:
    """How full the context is, in tokens, by what the client recorded of the model's replies.

    `context` is the last reply's input, cache read, cache creation and output together; None where no reply
    reported any, or where a compaction has come after it that does not say what it left. `peak` is the
    largest such sum in the whole file. `window` is the model's limit where the client writes it down.
    """

    context: int | None = None
    peak: int | None = None
    model: str = ""
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Boundary:
    """The last compaction (or reset) on the conversation's path.

    A turn is still in the context if its `line` is at or after `kept`; `line` is the boundary's own.
    """

    line: int
    kept: int
    at: datetime | None = None
    trigger: str = ""
    before: int | None = None
    after: int | None = None


@dataclass(slots=True)
class PendingCall:
    """A tool call on its way to becoming a turn: it waits for its result, which alone says ok or error."""

    key: str
    turn: Turn
    subject: str = ""
    commits: bool = False


@dataclass(frozen=True, slots=True)
class CallResult:
    """That a call came back. `subject` is a commit's, seen in the output; nothing else of it is kept."""

    key: str
    error: bool
    subject: str = ""


Event = Turn | PendingCall | CallResult


def instant(value: object) -> datetime | None:
    """A recorded time, aware: ISO text, or milliseconds since 1970. None for anything else.

    A time without an offset is taken as UTC: every client here writes UTC.
    """
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value)
            return at if at.tzinfo else at.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def word(value: object) -> str:
    """The value if it is text, else ""."""
    return value if isinstance(value, str) else ""


def table(value: object) -> Record:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def tokens(value: object) -> int:
    """The value if it is a sane number of tokens, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40 else 0


# -- calls -------------------------------------------------------------------------------------------------
# A tool call as one line: what was done to what, and whether it went well. Never what came out of it.
#
# The calls of our own tools are told apart here, so that what memory said is not learnt a second time.


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

_OURS = late(
    r"ua[-_]?mem(?:ory)?(?:[-_].*)?|archival_memory_.*|core_memory_.*|get_core_memory_blocks|"
    r"memory_search|memory_get"
)
_OUR_WORDS = late(r"recall|retain|reflect|retire")
"""Ours where no other server is named: words that others' tools bear, too."""
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
    """Server and tool: `mcp__s__t` (Claude Code, Codex, pi), `mcp_s_t` (Gemini), `s__t` (OpenClaw), and ours
    as `ua-memory_t` (OpenCode)."""
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
    """The shell command of a call, "" where it has none. A list is an argv; of `bash -lc X` it is X."""
    command = arguments.get("command", arguments.get("cmd"))
    if isinstance(command, list):
        words = [part for part in command if isinstance(part, str)]
        return words[-1] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)
    return word(command)


def call(turn: Turn, key: str, name: str, arguments: Any, cwd: str) -> PendingCall:
    """The call as a turn still without its outcome. `turn` has all but the text; `cwd` shortens paths."""
    given = table(arguments)
    command = command_of(given)[:50_000]
    commits = bool(_COMMIT.search(command))
    line = f"{clean(name)[:80]} {_main_argument(given, arguments, command, cwd)}".strip()
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
    queue: deque[Turn | PendingCall] = deque()
    waiting: dict[str, PendingCall] = {}
    for event in events:
        if isinstance(event, CallResult):
            if found := waiting.pop(event.key, None):
                _close(found, event)
        else:
            queue.append(event)
            if isinstance(event, PendingCall):
                waiting[event.key] = event
        while queue and (len(queue) > _WAITING or _ready(queue[0], waiting)):
            first = queue.popleft()
            if isinstance(first, PendingCall) and waiting.get(first.key) is first:
                del waiting[first.key]
            yield _turn(first)
    for left in queue:
        yield _turn(left)


def _ready(one: Turn | PendingCall, waiting: dict[str, PendingCall]) -> bool:
    return isinstance(one, Turn) or waiting.get(one.key) is not one


def _turn(one: Turn | PendingCall) -> Turn:
    return one if isinstance(one, Turn) else one.turn


def _close(found: PendingCall, result: CallResult) -> None:
    text = f"{found.turn.text}: {'error' if result.error else 'ok'}"
    subject = found.subject or result.subject
    if found.commits and subject and not result.error:
        text += f"; commit: {subject}"
    found.turn = replace(found.turn, text=text)
