"""Hermes: sessions in its database, as JSON lines, the session's own first; a memory provider."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from ua_memory.clients import settings, turns
from ua_memory.clients.edit import split_lines
from ua_memory.clients.settings import SERVER_NAME
from ua_memory.clients.turns import Event, Record
from ua_memory.text.noise import assistant_text, typed_text

# -- transcripts -------------------------------------------------------------------------------------------
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


class Hermes(turns.Format):
    """A session of `$HERMES_HOME/state.db`."""

    client = "hermes"

    @classmethod
    def wrote(cls, record: Record, records: list[Record]) -> bool:
        is_message = "session_id" in record and "role" in record
        return is_message or ("started_at" in record and "source" in record)

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
        settings = record.decoded("model_config")
        source = record.text("source")
        self.session = replace(
            self.session,
            session=record.text("id"),
            cwd=record.text("cwd"),
            started=_time(record.get("started_at")),
            parent=record.text("parent_session_id"),
            agent="subagent" if settings.get("_delegate_from") else source if source in MACHINES else "",
            title=record.text("title"),
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
                yield turns.call_result(record.text("tool_call_id"), failed, output)

    def _user(self, entry: turns.EntryIds, record: Record) -> Iterator[Event]:
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

    def _assistant(self, entry: turns.EntryIds, record: Record) -> Iterator[Event]:
        for text in _texts_of(record):
            if not text.startswith(_SUMMARY) and (said := assistant_text(text)):
                yield entry.next(role="assistant", text=said)
        yield from entry.calls(_calls(record), self.session.cwd)

    def contents(self, line: int, record: Record) -> Iterator[str]:
        if _is_message(record) and record.get("active") != 0:
            yield from _texts_of(record)
            yield record.text("tool_calls")


def _is_message(record: Record) -> bool:
    return "role" in record and "session_id" in record


def _time(seconds: object) -> Any:
    """A time of Hermes, in seconds since 1970."""
    known = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return turns.as_time(seconds * 1000) if known else None  # type: ignore[operator]


def _identity(record: Record) -> tuple[str, ...]:
    """What identifies a message: role, text and calls."""
    return tuple(record.text(key) for key in ("role", "content", "tool_calls", "tool_call_id"))


def _texts_of(record: Record) -> Iterator[str]:
    content = record.get("content")
    if isinstance(content, str) and content.startswith(STRUCTURED):
        try:
            content = json.loads(content[len(STRUCTURED) :])
        except (ValueError, RecursionError):
            return
    yield from Record(content=[content]).contents() if isinstance(content, dict) else turns.texts(content)


def _calls(record: Record) -> object:
    calls = record.get("tool_calls")
    try:
        return json.loads(calls) if isinstance(calls, str) else calls
    except (ValueError, RecursionError):
        return None


def _result(content: object) -> tuple[str, bool]:
    """A result's text, and whether the call failed."""
    value = Record.of(turns.decode(content))
    if not value:
        return turns.as_str(content), False
    code = value.get("exit_code", value.get("returncode"))
    failed = bool(value.get("error")) or value.get("success") is False
    return value.text("output") or value.text("result"), failed or code not in (None, 0)


def hermes_lines(there: sqlite3.Connection, session: str) -> Iterator[bytes]:
    for row in turns.rows_of(there, "SELECT * FROM sessions WHERE id = ?", (session,)):
        yield turns.as_line({key: value for key, value in row.items() if key != "system_prompt"})
    for row in turns.rows_of(there, "SELECT * FROM messages WHERE session_id = ? ORDER BY id", (session,)):
        kept = {key: value for key, value in row.items() if not key.startswith(("reason", "codex_"))}
        yield turns.as_line({key: value for key, value in kept.items() if value is not None})


# -- settings ----------------------------------------------------------------------------------------------
# Hermes: a memory provider in its plugins folder. Tested with 0.19.0.
#
# config.yaml selects the one provider in use. The user sets it with `hermes config set`; `uninstall` removes
# it, since Hermes would otherwise look for a provider that no longer exists.


_HEAD = re.compile(r"memory:[ \t]*(?:#.*)?[\r\n]*")
_OURS = re.compile(rf"([ \t]+)provider:[ \t]*(['\"]?){SERVER_NAME}\2[ \t]*(?:#.*)?[\r\n]*")


def hermes_target(home: str, command: Sequence[str]) -> settings.ClientTarget:
    """Our memory provider for a user; `home` is ~/.hermes."""
    folder = f"{home}/plugins/{SERVER_NAME}"
    pieces = settings.plugin_files(folder, "memory provider", settings.client_files("hermes"), command)
    notes = (f"to use it in Hermes: hermes config set memory.provider {SERVER_NAME}",)
    chosen = settings.SettingsPiece(
        f"{home}/config.yaml", "memory.provider", lambda text: text, _without_choice
    )
    return settings.ClientTarget("hermes", tuple(pieces), notes, left=(chosen,))


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


HOMES = (("HERMES_HOME", "~/.hermes"),)
CLIENT = settings.Client(
    "the memory provider of Hermes", settings.home_target(HOMES, hermes_target), HOMES,
    ("state.db", "profiles/*/state.db"), (Hermes,),
    turns.Database(
        {"sessions", "messages"},
        "SELECT session_id AS id, max(timestamp) AS at, '' AS machine FROM messages GROUP BY session_id",
        hermes_lines,
    ),
)  # fmt: skip
