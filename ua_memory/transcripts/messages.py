"""Message lists as the Anthropic API takes them, and plain text or markdown with speakers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time

from ua_memory.text import calendar, foreign_dates
from ua_memory.text.noise import is_summary, typed, uttered
from ua_memory.transcripts.format import (
    CHUNK,
    ByteSource,
    ContextGauge,
    EntryIds,
    Format,
    JsonElements,
    Unreadable,
    blocks,
    claude_usage,
    filling,
    joined,
    json_lines,
    parse,
    recalled_in,
    texts,
)
from ua_memory.transcripts.turns import CallResult, Event, Record, Role, Turn, committed, instant, table, word

# -- messages ----------------------------------------------------------------------------------------------
# Messages as the Anthropic API takes them: a list, `{"messages": […]}`, or one to a line.
#
# What a program keeps itself: no session, no tree. OpenAI's `tool_calls` and `role: tool` are understood
# too.


class Messages(Format):
    """`line` is a message's place in the list, counted from 1; its id `m<place>` unless it has one."""

    client = "messages"

    def __init__(self) -> None:
        super().__init__()
        self._gauge = ContextGauge()
        self._elements: JsonElements | None = None

    def records(
        self, source: ByteSource, report: Unreadable, keep: bytearray | None = None
    ) -> Iterator[tuple[int, Record]]:
        if _one_to_a_line(source.start):
            yield from json_lines(source, report, keep)
            return
        self._elements = JsonElements(source, report)
        for number, value in self._elements:
            if isinstance(value, dict):
                report.recalled |= dict.fromkeys(recalled_in(value))
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
            entry = self.entry(line, record, instant(record.get("timestamp")))
            role, content = record.get("role"), record.get("content")
            if role == "user":
                yield from self._user(entry, line, content)
            elif role == "assistant":
                yield from entry.said(content, "")
                yield from entry.calls(record.get("tool_calls"), "")
            elif role == "tool":
                yield CallResult(
                    word(record.get("tool_call_id")), False, committed("\n".join(texts(content)))
                )

    def _user(self, entry: EntryIds, line: int, content: object) -> Iterator[Event]:
        for block in blocks(content):
            if block.get("type") == "tool_result":
                output = "\n".join(texts(block.get("content")))
                key = word(block.get("tool_use_id"))
                yield CallResult(key, block.get("is_error") is True, committed(output))
        said = "\n\n".join(texts(content)).strip()
        if line == 1 and is_summary(said):
            yield entry.next(role="assistant", text=said, summary=True)
        elif text := joined(texts(content), typed):
            yield entry.next(text=text)

    def contents(self, line: int, record: Record) -> Iterator[str]:
        yield from filling(record.get("content"))


def _one_to_a_line(head: bytes) -> bool:
    """Whether the first line is a message, or, where that is damaged, most of those that follow are."""
    lines = [line for line in head.split(b"\n") if line.strip()]
    found = [record is not None and "role" in record for record in map(parse, lines)]
    return bool(found) and (found[0] or 2 * sum(found) >= len(found))


# -- prose -------------------------------------------------------------------------------------------------
# Plain text and markdown: speakers by their headings or by `User:` at the start of a line, else one person.
#
# A turn that grows past `LONGEST_TURN` is cut at the next line, so that a book is read in bounded memory.


LONGEST_TURN = 32 << 10
"""Characters."""

_PERSON = "user|human|you|me|person"
_ASSISTANT = (
    r"assistant|ai|agent|model|bot|claude(?: code)?|chatgpt|gpt[\w.-]*|codex|gemini|copilot|clawd(?:bot)?"
)
_OTHER = "system|tool|tools|tool result|tool output|developer|function"
_LABEL = (
    rf"(?:(?P<person>(?:{_PERSON})(?: said)?|du hast gesagt|vous avez dit|dijiste)"
    rf"|(?P<assistant>(?:{_ASSISTANT})(?: said| hat gesagt| a dit| dijo)?)|(?P<other>{_OTHER}))"
)
_NOTE = r"(?:\s*[(\[][^)\]\n]{0,80}[)\]])?"
_SPEAKER = re.compile(
    rf"\s{{0,3}}(?:"
    rf"\#{{1,6}}\s+(?:[^\w\s]{{1,3}}\s*)?(?:\*\*)?{_LABEL}(?:\*\*)?{_NOTE}\s*:?\s*$"
    rf"|(?:\[[^\]\n]{{1,40}}\]\s*)?(?:\*\*|__)?{_LABEL.replace('P<', 'P<l_')}{_NOTE}"
    rf"(?:\*\*|__)?\s*:(?:\*\*|__)?(?=\s|$)"
    rf")",
    re.IGNORECASE,
)
_FENCE = re.compile(r"\s{0,3}(```+|~~~+)")
_MARKDOWN = re.compile(
    r"(?m)^(?:#{1,6} |[-*] |\d+\. |```|> )|\*\*[^*\n]+\*\*|\[[^\[\]\n]+\]\([^)\n]{1,2000}\)"
)
"""Bounded: 64 KB of `[` took a minute while a bracket could begin what another had begun."""


def speaker(line: str) -> tuple[Role | None, str] | None:
    """Who is named at the start of a line, and what follows on it; None is neither person nor agent."""
    found = _SPEAKER.match(line)
    if not found:
        return None
    rest = line[found.end() :].strip()
    if found["person"] or found["l_person"]:
        return "person", rest
    if found["assistant"] or found["l_assistant"]:
        return "assistant", rest
    return None, rest


_CLOCK = r"\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?P<half>[\s\u202f]?[ap]\.?m\.?)?"
_NUMBERS = r"\d{1,4}[/.-]\d{1,2}[/.-]\d{2,4}"
_SHORT_NAME = r"(?P<name>[^:\s]{1,40}(?: [^:\s]{1,40}){0,2})"
_WHATSAPP = (
    # as an iPhone and as Android exports it; without a name it is a notice
    re.compile(rf"\u200e?\[(?P<day>{_NUMBERS}),? {_CLOCK}\] (?:\u200e?{_SHORT_NAME}:)?", re.IGNORECASE),
    re.compile(rf"\u200e?(?P<day>{_NUMBERS}),? {_CLOCK} [-–] (?:{_SHORT_NAME}:)?", re.IGNORECASE),
)
_SLACK = (  # a line of its own
    re.compile(rf"\u200e?(?P<name>[^\W\d_]\S*(?: [^\W\d_]\S*){{0,3}})  +\[?{_CLOCK}\]?\s*$", re.IGNORECASE),
    re.compile(r"\u200e?(?P<name>[A-ZÀ-Þ]\S*(?: [A-ZÀ-Þ]\S*){1,3}) \d{1,2}:\d\d [AP]M\s*$"),
)
_MAIL = (
    re.compile(
        r"\u200e?(?:From|Von|De|Da): *\"?(?P<name>[^\"<\n]{0,80}?)\"? *<?(?P<mail>[\w.+-]+@[\w.-]+)>?\s*$"
    ),
    re.compile(
        r"\u200e?(?:Date|Sent|Datum|Data|Gesendet|Fecha|Enviado|Envoyé) ?: *"
        r"(?P<date>.{0,60}\b(?:19|20)\d\d\b.{0,60})$"
    ),
)
_MAIL_FIELD = re.compile(r"[A-ZÀ-Þ][\w-]{0,20} ?: |[ \t]+\S")


@dataclass(frozen=True, slots=True)
class TextPart:
    """What one speaker says in a text: `speaker` is their name, `at` when, None where the text has times that
    do not tell the day. `head` are the lines that say so."""

    role: Role | None
    at: datetime | None
    speaker: str = ""
    text: str = ""
    head: str = ""


def text_parts(text: str, at: datetime, form: TextForm) -> Iterator[TextPart]:
    """A text that was written at a time, cut where its lines say who speaks next, or when: exports of chats,
    mails, pasted conversations with an agent. Any other text is one part."""
    whose, held = TextPart("person", at), list[str]()
    for _, part, opens, line in _by_part(enumerate(text.splitlines(keepends=True)), form, whose):
        if opens:
            if "".join(held).strip():
                yield replace(whose, text="".join(held))
            whose, held = part, []
        held.append(line)
    yield replace(whose, text="".join(held))


def _by_part(
    lines: Iterable[tuple[int, str]], form: TextForm, part: TextPart
) -> Iterator[tuple[int, TextPart, bool, str]]:
    """Each line but the other fields of a mail's head: its number, the part that it is of, whether it opens
    that, and what it says."""
    before, fields, fence = part, False, ""
    for number, line in lines:
        fence = _fenced(line, fence)
        following = None if fence else _following(line, before, form)
        if following:
            part = before = following
            said, fields = following.text, not following.text
        elif fields := fields and bool(_MAIL_FIELD.match(line)):
            continue
        else:
            said = line
        if said.strip() and before.head:  # the head ends where somebody speaks
            before = replace(before, head="")
        yield number, part, following is not None, said


def _fenced(line: str, fence: str) -> str:
    """The fence of code that a line is in, '' outside of one."""
    mark = _FENCE.match(line)
    if not mark:
        return fence
    return "" if fence and line.strip().startswith(fence) else fence or mark[1][:3]


@dataclass(frozen=True, slots=True)
class TextForm:
    """How the lines of a text say who speaks: by `labels` such as `User:`, or by `stamps`."""

    labels: bool = False
    stamps: tuple[re.Pattern[str], ...] = ()


ONE_AUTHOR = TextForm()
"""Of a text in which nobody else speaks."""


def text_form(text: str) -> TextForm:
    """A note may have a line like those of a chat by chance. So a chat or mail begins with a stamp, half of a
    chat's have a name, and in one of Slack's, whose lines say the least, a name comes twice; a conversation
    with an agent begins with a label, and has both sides of it."""
    lines = [line for line in text.splitlines() if line.strip()]
    first = next((line for line in lines if not line.startswith(("# ", "---"))), "")
    labels, stamps = False, tuple[re.Pattern[str], ...]()

    def begins(forms: Iterable[re.Pattern[str]]) -> bool:
        return any(form.match(first) for form in forms)

    if begins(_WHATSAPP) and 2 * sum(map(bool, names := _stamp_names(lines, _WHATSAPP))) >= len(names):
        stamps += _WHATSAPP
    if begins(_SLACK) and len(names := _stamp_names(lines, _SLACK)) > len(set(names)):
        stamps += _SLACK
    if begins(_MAIL):
        stamps += _MAIL
    if speaker(first):
        said = [who[0] for line in lines if (who := speaker(line))]
        both = {"person", "assistant"} <= {*said}
        labels = both and (len(said) > 2 or " " in first.partition(":")[0])
    return TextForm(labels, stamps)


def _stamp_names(lines: Iterable[str], forms: Iterable[re.Pattern[str]]) -> list[str]:
    found = (form.match(line) for line in lines for form in forms)
    return [match["name"] or "" for match in found if match]


def _following(line: str, part: TextPart, form: TextForm) -> TextPart | None:
    """The part that a line opens, None where it goes on with the one before."""
    if form.labels and (who := speaker(line)):
        return replace(part, role=who[0], speaker="", text=f"{who[1]}\n", head=line)
    return stamped(line, part, form.stamps)


def stamped(line: str, before: TextPart, forms: Iterable[re.Pattern[str]]) -> TextPart | None:
    """The part that a line opens by a name and a time in one of these forms, after the one before it; None
    where it opens none."""
    found = next(filter(None, (pattern.match(line) for pattern in forms)), None)
    if not found:
        return None
    has = found.groupdict()
    name = (has.get("name") or has.get("mail") or "").strip()
    name = "" if speaker(f"{name}:") else name
    head = found[0] if has.get("day") else before.head + line
    if date := has.get("date"):
        return replace(before, at=_mailed(date, before.at), text="", head=head)
    if has.get("mail"):
        return replace(before, role="person", speaker=name, text="", head=head)
    day = _day(has["day"], bool(has["half"])) if has.get("day") else None
    at = datetime.combine(day, time(12), before.at.tzinfo if before.at else UTC) if day else None
    role: Role | None = "person" if has["name"] else None
    return TextPart(role, at, name, line[found.end() :].lstrip() or "\n", f"{head.rstrip()}\n")


def _day(numbers: str, half: bool) -> date | None:
    """The day of a stamp; None where a clock of twelve hours leaves open whether the month comes first."""
    first, second, third = (int(number) for number in re.split("[/.-]", numbers))
    if first > 31:
        first, third = third, first
    elif half and "/" in numbers and first <= 12 and second <= 12 and first != second:
        return None
    elif second > 12:
        first, second = second, first
    with suppress(ValueError):
        return date(third + 2000 * (third < 100), second, first)
    return None


def _mailed(text: str, near: datetime | None) -> datetime | None:
    """The day that a mail was sent on."""
    spans = [span for span in calendar.spans(text, date(2000, 1, 1)) if span.is_day]
    foreign = [date(*each[:3]) for each in foreign_dates.days_of_months(text) if each[0]]
    day = spans[0].start if spans else foreign[0] if foreign else None
    return datetime.combine(day, time(12), near.tzinfo if near else UTC) if day else None


def named_speakers(head: str) -> bool:
    """Whether a text is a conversation with names to it: it begins with one, or has both sides."""
    seen: set[Role | None] = set()
    first = True
    for line in head.splitlines():
        if not line.strip():
            continue
        who = speaker(line)
        if who and first:
            return True
        first = first and line.startswith(("#", "---"))
        if who:
            seen.add(who[0])
    return {"person", "assistant"} <= seen


def is_markdown(head: str) -> bool:
    """Whether it looks like markdown rather than plain text."""
    return _MARKDOWN.search(head) is not None


class Prose(Format):
    """Text without any structure but its lines. The id of a turn is that of its first line."""

    client = "text"

    def records(
        self, source: ByteSource, report: Unreadable, keep: bytearray | None = None
    ) -> Iterator[tuple[int, Record]]:
        head = source.head.decode("utf-8", "replace")
        form = replace(text_form(head), labels=named_speakers(head))
        whose, first, held, size = TextPart("person", None), 1, list[str](), 0
        for number, part, opens, line in _by_part(_lines(source, report), form, whose):
            if opens or size > LONGEST_TURN:
                yield first, {"part": whose, "text": "".join(held)}
                whose, first, held, size = part, number, [], 0
            held.append(line)
            size += len(line)
        yield first, {"part": whose, "text": "".join(held)}

    def survey(self, line: int, record: Record) -> None:
        pass

    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        last, entry = 0, EntryIds(Turn("L0", "person", ""))
        for line, record in records:
            part: TextPart = record["part"]
            role = part.role
            text = uttered(record["text"]) if role == "assistant" else typed(record["text"])
            if line != last:
                last, entry = line, EntryIds(Turn(f"L{line}", "person", "", line=line))
            if role and text and not (role == "person" and _only_headings(text)):
                text = f"{part.speaker}: {text}" if part.speaker else text
                yield entry.next(role=role, text=text, at=part.at)

    def contents(self, line: int, record: Record) -> Iterator[str]:
        yield record["text"]


class Markdown(Prose):
    """The same; told apart for what is shown of it."""

    client = "markdown"


def _only_headings(text: str) -> bool:
    """A title above the first speaker is nobody's words."""
    return all(line.startswith(("# ", "## ", "---", "===")) or not line.strip() for line in text.splitlines())


def _lines(source: ByteSource, report: Unreadable) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; one that is very long comes in pieces under the same number."""
    number, rest = 1, ""
    for piece in source.pieces(report):
        *whole, rest = (rest + piece).split("\n")
        for line in whole:
            yield number, line.removesuffix("\r") + "\n"
            number += 1
        if len(rest) > CHUNK:
            yield number, rest
            rest = ""
    if rest:
        yield number, rest
