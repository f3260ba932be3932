"""Sessions of Hermes and OpenCode: rows of their databases as JSON, one to a line, the session's own first.

They keep no files; the door (`clients.sessions`) writes the rows down as they are.
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
from ua_memory.text.noise import typed, uttered
from ua_memory.transcripts.format import EntryIds, Format, filling, joined, texts
from ua_memory.transcripts.turns import CallResult, Event, Record, committed, decoded, instant, table, word

# -- hermes ------------------------------------------------------------------------------------------------
# `sessions` and `messages`. A row's number is no name, since Hermes writes a conversation anew when it
# compacts it: a turn is known by time and words.


MACHINES = ("cron", "subagent", "tool")
"""Where sessions come from that no person speaks in."""
STRUCTURED = "\0json:"
"""What a content begins with that is no plain text but JSON of its parts."""
_SUMMARY = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
_PRIOR, _MERGED = "[PRIOR CONTEXT", "[END OF PRIOR CONTEXT"
"""Around what a person said before, where a summary was put into the same message behind it."""
_LONG = 40
"""Characters from which on nobody says the same twice; a copy that a compaction made has its own time."""


class Hermes(Format):
    """`$HERMES_HOME/state.db`, a session of it at a time."""

    client = "hermes"

    def __init__(self) -> None:
        super().__init__()
        self._compacted = False
        self._told: dict[tuple[str, ...], object] = {}
        self._dropped: set[int] = set()
        """Lines with what a person took back, and with copies that a compaction made."""

    def name(self, line: int, record: Record) -> str:
        if not _is_message(record) or line in self._dropped:
            return f"L{line}"
        at, told = record.get("timestamp"), "\0".join(map(str, _words(record)))
        time = f"{at:.6f}" if isinstance(at, int | float) and not isinstance(at, bool) else "0"
        return f"{time}-{hashlib.sha256(told.encode('utf-8', 'replace')).hexdigest()[:8]}"

    def survey(self, line: int, record: Record) -> None:
        if not _is_message(record):
            if not self.session.session:
                self.session = _session(record)
            return
        words, at = _words(record), record.get("timestamp")
        again = words in self._told and (self._told[words] == at or len("".join(words)) > _LONG)
        if (record.get("active") == 0 and not record.get("compacted")) or (again and self._compacted):
            self._dropped.add(line)
        self._told[words] = at
        self._compacted = self._compacted or bool(record.get("compacted"))

    def close(self, lines: int) -> None:
        super().close(lines)
        self._told.clear()
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
                output, failed = _outcome(record.get("content"))
                yield CallResult(word(record.get("tool_call_id")), failed, committed(output))

    def _user(self, entry: EntryIds, record: Record) -> Iterator[Event]:
        said = []
        for text in _said(record):
            if text.startswith(_SUMMARY):
                if not self._compacted and not self.session.parent:
                    yield entry.next(role="assistant", text=text.strip(), summary=True)
                continue
            if text.startswith(_PRIOR) and _MERGED in text:
                text = text.partition("\n")[2].rpartition(_MERGED)[0]
            said.append(typed(text))
        if told := "\n\n".join(filter(None, said)):
            yield entry.next(text=told, role="assistant" if self.session.agent else "person")

    def _assistant(self, entry: EntryIds, record: Record) -> Iterator[Event]:
        for text in _said(record):
            if not text.startswith(_SUMMARY) and (said := uttered(text)):
                yield entry.next(role="assistant", text=said)
        yield from entry.calls(_calls(record), self.session.cwd)

    def contents(self, line: int, record: Record) -> Iterator[str]:
        if _is_message(record) and record.get("active") != 0:
            yield from _said(record)
            yield word(record.get("tool_calls"))


def _session(record: Record) -> Any:
    settings = table(decoded(record.get("model_config")))
    source = word(record.get("source"))
    agent = "subagent" if settings.get("_delegate_from") else source if source in MACHINES else ""
    return replace(
        Hermes().session,
        session=word(record.get("id")),
        cwd=word(record.get("cwd")),
        started=_time(record.get("started_at")),
        parent=word(record.get("parent_session_id")),
        agent=agent,
        title=word(record.get("title")),
    )


def _is_message(record: Record) -> bool:
    return "role" in record and "session_id" in record


def _time(seconds: object) -> Any:
    """A time that Hermes wrote down, in seconds since 1970."""
    known = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return instant(seconds * 1000) if known else None  # type: ignore[operator]


def _words(record: Record) -> tuple[str, ...]:
    """What tells a message from others: who, what, and which calls."""
    return tuple(word(record.get(key)) for key in ("role", "content", "tool_calls", "tool_call_id"))


def _said(record: Record) -> Iterator[str]:
    content = record.get("content")
    if isinstance(content, str) and content.startswith(STRUCTURED):
        try:
            content = json.loads(content[len(STRUCTURED) :])
        except (ValueError, RecursionError):
            return
    yield from texts(content) if not isinstance(content, dict) else filling([content])


def _calls(record: Record) -> object:
    calls = record.get("tool_calls")
    try:
        return json.loads(calls) if isinstance(calls, str) else calls
    except (ValueError, RecursionError):
        return None


def _outcome(content: object) -> tuple[str, bool]:
    """A result's text, and whether the call failed."""
    value = decoded(content)
    if not isinstance(value, dict):
        return word(content), False
    code = value.get("exit_code", value.get("returncode"))
    failed = bool(value.get("error")) or value.get("success") is False
    return word(value.get("output")) or word(value.get("result")), failed or code not in (None, 0)


# -- opencode ----------------------------------------------------------------------------------------------
# `session`, and `message` with its parts, as version 1.18 has them. All turns stay when it compacts; what it
# then writes for itself, and what plugins and files put beside a prompt, is marked as such.


class OpenCode(Format):
    """`opencode.db`, a session of it at a time."""

    client = "opencode"

    def __init__(self) -> None:
        super().__init__()
        self._undone = ""
        """The first message that its person took back; their ids rise with time."""

    def survey(self, line: int, record: Record) -> None:
        if "parts" not in record and not self.session.session:
            self._undone = word(table(decoded(record.get("revert"))).get("messageID"))
            self.session = replace(
                self.session,
                session=word(record.get("id")),
                cwd=word(record.get("directory")),
                started=instant(record.get("time_created")),
                parent=word(record.get("parent_id")),
                agent="subagent" if record.get("parent_id") else "",
                title=word(record.get("title")),
            )

    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        for line, record in records:
            if "parts" not in record or self._is_undone(record):
                continue
            data, at = table(decoded(record.get("data"))), instant(record.get("time_created"))
            entry = self.entry(line, record, at)
            if data.get("role") == "user":
                if told := joined(map(_unquoted, _texts(record)), typed):
                    yield entry.next(text=told, role="assistant" if self.session.agent else "person")
            elif data.get("role") == "assistant" and not data.get("summary"):
                yield from self._assistant(entry, record)

    def _assistant(self, entry: EntryIds, record: Record) -> Iterator[Event]:
        for part in _parts(record):
            state, name = table(part.get("state")), word(part.get("tool"))
            if part.get("type") == "text" and (said := uttered(_text(part))):
                yield entry.next(role="assistant", text=said)
            elif part.get("type") == "tool":
                key, code = word(part.get("callID")), table(state.get("metadata")).get("exit")
                yield from entry.call(key, name, state.get("input"), self.session.cwd)
                failed = state.get("status") == "error" or code not in (None, 0)
                yield CallResult(key, failed, committed(word(state.get("output"))))

    def contents(self, line: int, record: Record) -> Iterator[str]:
        for part in [] if self._is_undone(record) else _parts(record):
            yield word(part.get("text"))
            yield word(table(part.get("state")).get("output"))

    def _is_undone(self, record: Record) -> bool:
        return bool(self._undone) and word(record.get("id")) >= self._undone


def _parts(record: Record) -> list[Record]:
    parts = record.get("parts")
    return [table(decoded(one)) for one in parts] if isinstance(parts, list) else []


def _texts(record: Record) -> Iterator[str]:
    return (_text(part) for part in _parts(record) if part.get("type") == "text")


def _text(part: Record) -> str:
    """What was said in a part; not what OpenCode, a file or a plugin put there."""
    return "" if part.get("synthetic") or part.get("ignored") else word(part.get("text"))


def _unquoted(text: str) -> str:
    """Without the quotes that `opencode run` puts around its words."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1] else text


# -- opening -----------------------------------------------------------------------------------------------


@contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Another program's database. It is never written, nor is its log. OSError where it cannot be read."""
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
