"""What a transcript is once it has been read: who said what, in which session, and how full its context is.

Values only. A reader per client makes them; `reading` hands them out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

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
    counts from 1 (lines of the file, or messages of a JSON list).
    """

    id: str
    role: Role
    text: str
    at: datetime | None = None
    agent: str = ""
    summary: bool = False
    line: int = 0


@dataclass(frozen=True, slots=True)
class Session:
    """Whose conversation this is. Nothing of it comes from the file's path.

    `parent` is the session (or, in pi, the file) that this one was resumed, branched or forked from. `group`
    names the group chat it is, '' where its owner alone speaks with the agent.
    """

    client: str
    session: str = ""
    cwd: str = ""
    started: datetime | None = None
    parent: str = ""
    version: str = ""
    agent: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
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
class Call:
    """A tool call on its way to becoming a turn: it waits for its result, which alone says ok or error."""

    key: str
    turn: Turn
    subject: str = ""
    commits: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """That a call came back. `subject` is a commit's, seen in the output; nothing else of it is kept."""

    key: str
    error: bool
    subject: str = ""


Event = Turn | Call | Result


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
