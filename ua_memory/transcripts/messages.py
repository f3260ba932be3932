"""Messages as the Anthropic API takes them: a list, `{"messages": […]}`, or one to a line.

What a program keeps itself: no session, no tree. OpenAI's `tool_calls` and `role: tool` are understood too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ua_memory.spoken import is_summary, typed, uttered
from ua_memory.transcripts.calls import call, committed, decoded, ours
from ua_memory.transcripts.elements import Elements
from ua_memory.transcripts.format import Entry, Format, Gauge, blocks, claude_usage, filling, texts
from ua_memory.transcripts.source import Report, Source, json_lines, parse
from ua_memory.transcripts.turns import Event, Record, Result, Turn, instant, table, word


class Messages(Format):
    """`line` is a message's place in the list, counted from 1; its id `m<place>` unless it has one."""

    client = "messages"

    def __init__(self) -> None:
        super().__init__()
        self._gauge = Gauge()
        self._elements: Elements | None = None

    def records(
        self, source: Source, report: Report, keep: bytearray | None = None
    ) -> Iterator[tuple[int, Record]]:
        if _one_to_a_line(source.start):
            yield from json_lines(source, report, keep)
            return
        self._elements = Elements(source, report)
        for number, value in self._elements:
            if isinstance(value, dict):
                yield number, value
            else:
                report.add(number, "not a message")

    def name(self, line: int, record: Record) -> str:
        return word(record.get("id")) or f"m{line}"

    def survey(self, line: int, record: Record) -> None:
        if record.get("role") == "assistant":
            self._gauge.reply(line, word(record.get("model")), claude_usage(table(record.get("usage"))))
        if not self.session.started:
            self.session = replace(self.session, started=instant(record.get("timestamp")))

    def close(self, lines: int) -> None:
        super().close(lines)
        top = self._elements.top if self._elements else {}
        session = word(top.get("session_id")) or word(top.get("id"))
        self.session = replace(self.session, session=session, cwd=word(top.get("cwd")))
        usage = self._gauge.usage(None)
        self.usage = replace(usage, model=usage.model or word(top.get("model")))

    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        for line, record in records:
            entry = Entry(
                Turn(self.name(line, record), "person", "", instant(record.get("timestamp")), line=line)
            )
            role, content = record.get("role"), record.get("content")
            if role == "user":
                yield from self._user(entry, line, content)
            elif role == "assistant":
                yield from self._assistant(entry, record)
            elif role == "tool":
                yield Result(word(record.get("tool_call_id")), False, committed("\n".join(texts(content))))

    def _user(self, entry: Entry, line: int, content: object) -> Iterator[Event]:
        for block in blocks(content):
            if block.get("type") == "tool_result":
                output = "\n".join(texts(block.get("content")))
                key = word(block.get("tool_use_id"))
                yield Result(key, block.get("is_error") is True, committed(output))
        said = "\n\n".join(texts(content)).strip()
        if line == 1 and is_summary(said):
            yield entry.next(role="assistant", text=said, summary=True)
        elif text := "\n\n".join(filter(None, map(typed, texts(content)))):
            yield entry.next(text=text)

    def _assistant(self, entry: Entry, record: Record) -> Iterator[Event]:
        for block in blocks(record.get("content")):
            if block.get("type") == "text" and (text := uttered(word(block.get("text")))):
                yield entry.next(role="assistant", text=text)
            elif block.get("type") == "tool_use":
                yield from _call(entry, word(block.get("id")), word(block.get("name")), block.get("input"))
        calls = record.get("tool_calls")
        for one in calls if isinstance(calls, list) else ():
            made = table(table(one).get("function"))
            yield from _call(
                entry, word(table(one).get("id")), word(made.get("name")), decoded(made.get("arguments"))
            )

    def contents(self, line: int, record: Record) -> Iterator[str]:
        yield from filling(record.get("content"))


def _one_to_a_line(head: bytes) -> bool:
    """Whether the first line is a message, or, where that is damaged, most of those that follow are."""
    lines = [line for line in head.split(b"\n") if line.strip()]
    found = [record is not None and "role" in record for record in map(parse, lines)]
    return bool(found) and (found[0] or 2 * sum(found) >= len(found))


def _call(entry: Entry, key: str, name: str, given: object) -> Iterator[Event]:
    if name and not ours(name, given):
        yield call(entry.next(role="tool"), key, name, given, "")
