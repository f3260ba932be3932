"""Sessions of Hermes and OpenCode, which are in databases: rows as JSON lines, the session's own first.

`clients.sessions` exports the rows unchanged.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import urllib.parse
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from ua_memory import discovery
from ua_memory.text.noise import assistant_text, typed_text
from ua_memory.transcripts.format import EntryIds, Format, all_texts, texts
from ua_memory.transcripts.turns import (
    CallResult,
    Event,
    Record,
    as_dict,
    as_str,
    as_time,
    decode,
    git_subject,
)

# -- hermes ------------------------------------------------------------------------------------------------
# Rows of `sessions` and `messages`. Row numbers cannot be ids, since Hermes rewrites a conversation when it
# compacts it: a turn is identified by its time and a hash of its text.


MACHINES = ("cron", "subagent", "tool")
"""Sources of automatic sessions."""
STRUCTURED = "\0json:"
"""The prefix of a content that is JSON of its parts instead of plain text."""
_SUMMARY = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
_PRIOR, _MERGED = "[PRIOR CONTEXT", "[END OF PRIOR CONTEXT"
"""The marks around a person's text where a summary was appended to the same message."""
_LONG_TEXT = 40
"""An equal text of so many characters is a copy that a compaction made, though it has another time."""


class Hermes(Format):
    """A session of `$HERMES_HOME/state.db`."""

    client = "hermes"

    def __init__(self) -> None:
        super().__init__()
        self._compacted = False
        self._seen: dict[tuple[str, ...], object] = {}
        self._dropped: set[int] = set()
        """Lines of turns that a person undid, and of copies that a compaction made."""

    def name(self, line: int, record: Record) -> str:
        if not _is_message(record) or line in self._dropped:
            return f"L{line}"
        at, identity = record.get("timestamp"), "\0".join(map(str, _identity(record)))
        time = f"{at:.6f}" if isinstance(at, int | float) and not isinstance(at, bool) else "0"
        return f"{time}-{hashlib.sha256(identity.encode('utf-8', 'replace')).hexdigest()[:8]}"

    def survey(self, line: int, record: Record) -> None:
        if not _is_message(record):
            if not self.session.session:
                self._head(record)
            return
        words, at = _identity(record), record.get("timestamp")
        again = words in self._seen and (self._seen[words] == at or len("".join(words)) > _LONG_TEXT)
        if (record.get("active") == 0 and not record.get("compacted")) or (again and self._compacted):
            self._dropped.add(line)
        self._seen[words] = at
        self._compacted = self._compacted or bool(record.get("compacted"))

    def _head(self, record: Record) -> None:
        settings = as_dict(decode(record.get("model_config")))
        source = as_str(record.get("source"))
        self.session = replace(
            self.session,
            session=as_str(record.get("id")),
            cwd=as_str(record.get("cwd")),
            started=_time(record.get("started_at")),
            parent=as_str(record.get("parent_session_id")),
            agent="subagent" if settings.get("_delegate_from") else source if source in MACHINES else "",
            title=as_str(record.get("title")),
        )

    def close(self, lines: int) -> None:
        super().close(lines)
        self._seen.clear()
        for line in self._dropped:
            self.keep[line] = 0

    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        for line, record in records:
            entry = self.entry(line, record, _time(record.get("timestamp")))
            if not _is_message(record):
                continue
            role = record.get("role")
            if role == "user":
                yield from self._user(entry, record)
            elif role == "assistant":
                yield from self._assistant(entry, record)
            elif role == "tool":
                output, failed = _result(record.get("content"))
                yield CallResult(as_str(record.get("tool_call_id")), failed, git_subject(output))

    def _user(self, entry: EntryIds, record: Record) -> Iterator[Event]:
        said = []
        for text in _texts_of(record):
            if text.startswith(_SUMMARY):
                if not self._compacted and not self.session.parent:
                    yield entry.next(role="assistant", text=text.strip(), summary=True)
                continue
            if text.startswith(_PRIOR) and _MERGED in text:
                text = text.partition("\n")[2].rpartition(_MERGED)[0]
            said.append(typed_text(text))
        if text := "\n\n".join(filter(None, said)):
            yield entry.next(text=text, role="assistant" if self.session.agent else "person")

    def _assistant(self, entry: EntryIds, record: Record) -> Iterator[Event]:
        for text in _texts_of(record):
            if not text.startswith(_SUMMARY) and (said := assistant_text(text)):
                yield entry.next(role="assistant", text=said)
        yield from entry.calls(_calls(record), self.session.cwd)

    def contents(self, line: int, record: Record) -> Iterator[str]:
        if _is_message(record) and record.get("active") != 0:
            yield from _texts_of(record)
            yield as_str(record.get("tool_calls"))


def _is_message(record: Record) -> bool:
    return "role" in record and "session_id" in record


def _time(seconds: object) -> Any:
    """A time of Hermes, in seconds since 1970."""
    known = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return as_time(seconds * 1000) if known else None  # type: ignore[operator]


def _identity(record: Record) -> tuple[str, ...]:
    """What identifies a message: role, text and calls."""
    return tuple(as_str(record.get(key)) for key in ("role", "content", "tool_calls", "tool_call_id"))


def _texts_of(record: Record) -> Iterator[str]:
    content = record.get("content")
    if isinstance(content, str) and content.startswith(STRUCTURED):
        try:
            content = json.loads(content[len(STRUCTURED) :])
        except (ValueError, RecursionError):
            return
    yield from texts(content) if not isinstance(content, dict) else all_texts([content])


def _calls(record: Record) -> object:
    calls = record.get("tool_calls")
    try:
        return json.loads(calls) if isinstance(calls, str) else calls
    except (ValueError, RecursionError):
        return None


def _result(content: object) -> tuple[str, bool]:
    """A result's text, and whether the call failed."""
    value = decode(content)
    if not isinstance(value, dict):
        return as_str(content), False
    code = value.get("exit_code", value.get("returncode"))
    failed = bool(value.get("error")) or value.get("success") is False
    return as_str(value.get("output")) or as_str(value.get("result")), failed or code not in (None, 0)


# -- opencode ----------------------------------------------------------------------------------------------
# Rows of `session`, and of `message` with its parts, as in version 1.18. A compaction keeps all turns; its
# own texts, and those that plugins and files add to a prompt, are marked.


class OpenCode(Format):
    """A session of `opencode.db`."""

    client = "opencode"

    def __init__(self) -> None:
        super().__init__()
        self._undone = ""
        """The id of the first message that the person undid; ids are ordered by time."""

    def survey(self, line: int, record: Record) -> None:
        if "parts" not in record and not self.session.session:
            self._undone = as_str(as_dict(decode(record.get("revert"))).get("messageID"))
            self.session = replace(
                self.session,
                session=as_str(record.get("id")),
                cwd=as_str(record.get("directory")),
                started=as_time(record.get("time_created")),
                parent=as_str(record.get("parent_id")),
                agent="subagent" if record.get("parent_id") else "",
                title=as_str(record.get("title")),
            )

    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        for line, record in records:
            if "parts" not in record or self._is_undone(record):
                continue
            data, at = as_dict(decode(record.get("data"))), as_time(record.get("time_created"))
            entry = self.entry(line, record, at)
            if data.get("role") == "user":
                yield from self.typed(entry, map(_unquoted, _texts(record)))
            elif data.get("role") == "assistant" and not data.get("summary"):
                yield from self._assistant(entry, record)

    def _assistant(self, entry: EntryIds, record: Record) -> Iterator[Event]:
        for part in _parts(record):
            state, name = as_dict(part.get("state")), as_str(part.get("tool"))
            if part.get("type") == "text" and (said := assistant_text(_text(part))):
                yield entry.next(role="assistant", text=said)
            elif part.get("type") == "tool":
                key, code = as_str(part.get("callID")), as_dict(state.get("metadata")).get("exit")
                yield from entry.call(key, name, state.get("input"), self.session.cwd)
                failed = state.get("status") == "error" or code not in (None, 0)
                yield CallResult(key, failed, git_subject(as_str(state.get("output"))))

    def contents(self, line: int, record: Record) -> Iterator[str]:
        for part in [] if self._is_undone(record) else _parts(record):
            yield as_str(part.get("text"))
            yield as_str(as_dict(part.get("state")).get("output"))

    def _is_undone(self, record: Record) -> bool:
        return bool(self._undone) and as_str(record.get("id")) >= self._undone


def _parts(record: Record) -> list[Record]:
    parts = record.get("parts")
    return [as_dict(decode(one)) for one in parts] if isinstance(parts, list) else []


def _texts(record: Record) -> Iterator[str]:
    return (_text(part) for part in _parts(record) if part.get("type") == "text")


def _text(part: Record) -> str:
    """The text of a part, unless OpenCode, a file or a plugin added it."""
    return "" if part.get("synthetic") or part.get("ignored") else as_str(part.get("text"))


def _unquoted(text: str) -> str:
    """The text without the quotes that `opencode run` puts around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1] else text


# -- opening -----------------------------------------------------------------------------------------------


@contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open another program's database without writing to it or its log. OSError if it cannot be read."""
    discovery.open_regular(path).close()  # SQLite would wait for somebody at the other end of a pipe
    name = urllib.parse.quote(str(path))
    for how in ("mode=ro", "mode=ro&immutable=1"):  # a log that may not be opened is left aside
        try:
            with closing(sqlite3.connect(f"file:{name}?{how}", uri=True)) as there:
                there.execute("SELECT name FROM sqlite_master LIMIT 1").fetchall()
                there.row_factory = sqlite3.Row
                try:
                    yield there
                except sqlite3.Error as error:
                    raise OSError(0, str(error), str(path)) from error
                return
        except sqlite3.Error:
            continue
    raise OSError(0, "not a readable SQLite database", str(path))
