"""Message lists of the Anthropic API, and plain text or markdown with speakers."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from itertools import groupby, pairwise
from typing import IO, Any

from ua_memory.clients import turns
from ua_memory.clients.turns import ByteSource, EntryIds, Event, Record, Role
from ua_memory.errors import Usage
from ua_memory.llm.model import Message
from ua_memory.text import calendar, foreign_dates
from ua_memory.text.names import LABELS, NO_NAMES, in_lexicon, is_foreign
from ua_memory.text.noise import assistant_text, is_summary, typed_text

# -- message lists -----------------------------------------------------------------------------------------
# Messages of the Anthropic API: a list, `{"messages": […]}`, or one per line, without a session or branches.
# OpenAI's `tool_calls` and `role: tool` are read, too.


_ROLES = {"user", "assistant", "tool", "system", "developer", "function"}


def check_messages(messages: Iterable[Message]) -> None:
    """Usage for what is no message. Of an SDK's items with a type, some have no role."""
    items: Sequence[Any] = messages if isinstance(messages, list | tuple) else [messages]
    for one in items:
        said: Mapping[str, Any] = one if isinstance(one, Mapping) else {}
        role, content = said.get("role", "system" if "type" in said else None), said.get("content")
        readable = role in ("tool", "function") or isinstance(content, str | list | tuple | None)
        if not isinstance(role, str) or role not in _ROLES or "parts" in said or not readable:
            hint = 'pass [{"role": "user", "content": "…"}], and of the objects of an SDK their model_dump()'
            raise Usage(f"a message is a dict with role and content, not {one!r:.80}", hint=hint)


def messages_stream(messages: Sequence[Message]) -> IO[bytes]:
    """A program's messages as a transcript."""
    check_messages(messages)
    data = json.dumps(list(messages), default=to_json, ensure_ascii=False)
    return io.BytesIO(data.encode("utf-8", "replace"))


def to_json(value: Any) -> Any:
    """A block of an SDK as JSON data."""
    dump = getattr(value, "model_dump", None)
    return dump(exclude_none=True) if dump else str(value)


class Messages(turns.Format):
    """Message lists. `line` is a message's place in the list, counted from 1; its id is `m<place>` unless it
    has one."""

    client = "messages"
    long_line = re.compile(r'^\{\s*"(?:messages|model|system|max_tokens|tools|role|content)"\s*:')

    @classmethod
    def wrote(cls, record: Record, records: list[Record]) -> bool:
        is_one = "role" in record and "content" in record and record.get("type") in (None, "message")
        return is_one or isinstance(record.get("messages"), list)

    def __init__(self) -> None:
        super().__init__()
        self._gauge = turns.ContextGauge()
        self._elements: turns.JsonElements | None = None

    def records(
        self, source: ByteSource, report: turns.Unreadable, keep: bytearray | None = None
    ) -> Iterator[tuple[int, Record]]:
        if _is_json_lines(source.start):
            yield from turns.json_lines(source, report, keep)
            return
        self._elements = turns.JsonElements(source, report)
        for number, value in self._elements:
            if isinstance(value, dict):
                report.recalled |= dict.fromkeys(turns.recalled_lines(value))
                yield number, Record(value)
            else:
                report.add(number, "not a message")

    def name(self, line: int, record: Record) -> str:
        return record.text("id") or f"m{line}"

    def survey(self, line: int, record: Record) -> None:
        if record.get("role") == "assistant":
            self._gauge.add(line, turns.claude_usage(record.part("usage")))
        if not self.session.started:
            self.session = replace(self.session, started=record.time("timestamp"))

    def close(self, lines: int) -> None:
        super().close(lines)
        top = self._elements.top if self._elements else Record()
        session = top.text("session_id") or top.text("id")
        self.session = replace(self.session, session=session, cwd=top.text("cwd"))
        self.context_size = self._gauge.size(None)

    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        for line, record in records:
            entry = self.entry(line, record, record.time("timestamp"))
            role = record.get("role")
            if role == "user":
                yield from self._user(entry, line, record)
            elif role == "assistant":
                yield from entry.said(record, "")
                yield from entry.calls(record.get("tool_calls"), "")
            elif role == "tool":
                yield turns.call_result(record.text("tool_call_id"), False, record.get("content"))

    def _user(self, entry: EntryIds, line: int, message: Record) -> Iterator[Event]:
        for block in message.blocks():
            if block.get("type") == "tool_result":
                failed = block.get("is_error") is True
                yield turns.call_result(block.text("tool_use_id"), failed, block.get("content"))
        said = "\n\n".join(message.texts()).strip()
        if line == 1 and is_summary(said):
            yield entry.next(role="assistant", text=said, summary=True)
        else:
            yield from self.typed(entry, message.texts())

    def contents(self, line: int, record: Record) -> Iterator[str]:
        yield from record.contents()


def _is_json_lines(head: bytes) -> bool:
    """Whether the first line is a message, or, if it is damaged, most of the others are."""
    lines = [line for line in head.split(b"\n") if line.strip()]
    found = [record is not None and "role" in record for record in map(turns.parse_object, lines)]
    return bool(found) and (found[0] or 2 * sum(found) >= len(found))


# -- plain text --------------------------------------------------------------------------------------------
# Plain text and markdown: speakers are named by headings or by `User:` at the start of a line, else all is
# one person's. A turn longer than `LONGEST_TURN` is cut at a line, so that a book takes bounded memory.


LONGEST_TURN = 32 << 10
"""Characters of a turn."""

_USER = (
    r"user|human|usu[áa]rio|utente|utilizador|utilisat(?:eur|rice)|(?:be)?nutzer(?:in)?|gebruiker|użytkownik"
    r"|kullanıcı|användare|bruker|bruger|пользователь|користувач|ユーザー?|用户|用戶|使用者|사용자"
)
_AGENT = (
    r"assistante?|assistent(?:e|in)?|asistente?|asystent|ассистент|асистент|アシスタント|助手|어시스턴트"
    r"|claude(?: code)?|(?:o )?chatgpt|gpt[\w.-]*|codex|gemini|copilot|clawd(?:bot)?"
)
_PERSON = rf"{_USER}|you|me|person|ich|du|moi|io|yo|eu|você|ik|私|我"
_ASSISTANT = rf"{_AGENT}|agente?|ai|ia|ki|model|bot"
_SAID = " said| hat gesagt| a dit| dijo| disse| ha detto| zei"
_YOU_SAID = "du hast gesagt|vous avez dit|dijiste|você disse|hai detto|je zei"
_OTHER = "system|tool|tools|tool result|tool output|developer|function"
_LABEL = (
    rf"(?:(?P<person>(?:{_PERSON})(?: said)?|{_YOU_SAID})|(?P<assistant>(?:{_ASSISTANT})(?:{_SAID})?)"
    rf"|(?P<other>{_OTHER}))"
)
_LABEL_NOTE = r"(?:\s*[(\[][^)\]\n]{0,80}[)\]])?"
_SPEAKER = re.compile(
    rf"\s{{0,3}}(?:"
    rf"\#{{1,6}}\s+(?:[^\w\s]{{1,3}}\s*)?(?:\*\*)?{_LABEL}(?:\*\*)?{_LABEL_NOTE}\s*[:：]?\s*$"
    rf"|(?:\[[^\]\n]{{1,40}}\]\s*)?(?:\*\*|__)?{_LABEL.replace('P<', 'P<l_')}{_LABEL_NOTE}"
    rf"(?:\*\*|__)?\s*(?:：|:(?=(?:\*\*|__)?(?:\s|$)|[^\x00-\xff]))(?:\*\*|__)?"
    rf")",
    re.IGNORECASE,
)
_SURE_LABEL = re.compile(rf"\W*(?:{_USER}|{_AGENT}|.* .*)\W*", re.IGNORECASE)
"""Labels that may tell a conversation in two lines; a list of contacts may have a person and an agent."""
_REPLY = re.compile(
    r"\W*(?:ok(?:ay)?|noted|got it|understood|sure|done|thanks?|sorry|of course|yes|yeah|yep|no|nope|not yet"
    r"|i['’]ll|i will|ja|nein|noch nicht|alles klar|gerne?|notiert|verstanden|danke|oui|non|pas encore"
    r"|noté|merci|sí|todavía no|entendido|anotado|gracias|sì|non ancora|capito|grazie|sim|não|ainda não"
    r"|anotei)(?!\w)"
    r"|\W*(?:はい|いいえ|まだ|了解|承知|わかりました|好的|是的|不是|还没|네|아니)",
    re.IGNORECASE,
)
"""How a reply begins, which a line of a list does not."""
_FENCE = re.compile(r"\s{0,3}(```+|~~~+)")
_MARKDOWN = re.compile(
    r"(?m)^(?:#{1,6} |[-*] |\d+\. |```|> )|\*\*[^*\n]+\*\*|\[[^\[\]\n]+\]\([^)\n]{1,2000}\)"
)
"""Bounded, since 64 KB of `[` took a minute without a limit."""


def speaker(line: str) -> tuple[Role | None, str] | None:
    """The role of the speaker that a line names at its start, and the rest of the line; a role of None is
    neither person nor agent. None if it names no speaker."""
    found = _SPEAKER.match(line)
    if not found:
        return None
    rest = line[found.end() :].strip()
    if found["person"] or found["l_person"]:
        return "person", rest
    if found["assistant"] or found["l_assistant"]:
        return "assistant", rest
    return None, rest


_CLOCK = r"(?P<clock>\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?P<half>[\s\u202f]?[ap]\.?m\.?)?)"
_NUMBERS = r"\d{1,4}[/.-]\d{1,2}[/.-]\d{2,4}"
_TIME = re.compile(r"(\d{1,2})[:.](\d\d)(?:[:.]\d\d)?(?:[\s\u202f]?([ap])\.?m)?", re.IGNORECASE)
_SHORT_NAME = r"(?P<name>[^:\s]{1,40}(?: [^:\s]{1,40}){0,2})"
_WHATSAPP = (
    # as exported by an iPhone and by Android; a line without a name is a notice
    re.compile(rf"\u200e?\[(?P<day>{_NUMBERS}),? {_CLOCK}\] (?:\u200e?{_SHORT_NAME}:)?", re.IGNORECASE),
    re.compile(rf"\u200e?(?P<day>{_NUMBERS}),? {_CLOCK} [-–] (?:{_SHORT_NAME}:)?", re.IGNORECASE),
)
_SLACK = (  # a line of its own
    re.compile(rf"\u200e?(?P<name>[^\W\d_]\S*(?: [^\W\d_]\S*){{0,3}})  +\[?{_CLOCK}\]?\s*$", re.IGNORECASE),
    re.compile(r"\u200e?(?P<name>[A-ZÀ-Þ]\S*(?: [A-ZÀ-Þ]\S*){1,3}) \d{1,2}:\d\d [AP]M\s*$"),
)
_LINE = (  # title, a line for each day, and messages, whose time is of that day
    re.compile(r"\[LINE\] .*$(?P<name>)"),
    re.compile(rf"(?:\w{{2,9}}, )?(?P<day>{_NUMBERS})(?:\s?\(\w+\)| \w+)?\s*$"),
    re.compile(r"(?P<time>\d{1,2}:\d\d(?: [AP]M)?)\t(?:(?P<name>[^\t\n]{1,40})(?:\t|$))?"),
)
PERSON_NAME = r"(?:(?:Frau|Herr|Mme|M\.|Dr\.) )?[A-ZÀ-ÖØ-Þ][\w'’-]*[a-zß-ÿ](?: [A-ZÀ-ÖØ-Þ][\w'’-]+){0,2}"
_NAME_LABEL = r"[*_]*(?P<name>{0})\s?:[*_]* (?=\S)"
_FROM = r"\u200e?(?:From|Von|De|Da) ?: *"
_SENDER = r"\"?(?P<name>[^\"<(\n]{0,60}?)\"? *[<(]*(?P<mail>[\w.+-]+@[\w.-]+)[>)]*"
_MAIL = (
    re.compile(rf"{_FROM}{_SENDER}\s*$"),
    re.compile(
        r"\u200e?(?:Date|Sent|Datum|Data|Gesendet|Fecha|Enviado|Envoyé) ?: *"
        r"(?P<date>.{0,60}\b(?:19|20)\d\d\b.{0,60})$"
    ),
)
_MAIL_FIELD = re.compile(r"[A-ZÀ-Þ][\w-]{0,20} ?: |[ \t]+\S")
_QUOTED = re.compile(  # above the mail that another answers
    r"(?=.*(?:@|\bschrieb\b|wrote:|écrit ?:|escribió:|scritto:|escreveu:))(?:On|Am|Le|El|Il|Em) "
    r"(?P<date>[^<\n]{0,40}?\b(?:19|20)\d\d\b"
    r"(?:,? (?:\w+ ){0,2}\d\d?[:.h]\d\d(?:\s?[AP]M\b| Uhr)?)?),? (?:schrieb )?"
    rf"{_SENDER.replace('<(', ':<(').replace('-]+)[', '-]+)?[')}"
    r" *(?:wrote|a écrit|escribió|ha scritto|escreveu)? ?:?(?<=[:>])\s*$"
)
_QUOTE_SIGNS = re.compile(r"^(?:> ?)+")
_LETTER = (  # the line with the day on which a letter was written, or a heading with that of a diary
    re.compile(r"#{1,6} (?P<date>(?:19|20)\d\d-\d\d-\d\d)\s*$"),
    re.compile(
        r"(?:#{1,6} )?(?:(?!Born|Geb|N[ée]e? |Nat[oa]|Nacid)[A-ZÀ-Þ][^,:\d]{1,60}, )?"
        r"(?P<date>(?:(?:den|le|lì|il|a|el) )?(?:[^\W\d_]{2,12}\.?,? )?(?:"
        r"\d{1,2}(?:\.|er|º|st|nd|rd|th)? (?:de |of )?[^\W\d_]{3,12}\.?,? (?:de )?"
        r"|[^\W\d_]{3,12}\.? \d{1,2}(?:st|nd|rd|th)?,? )(?:19|20)\d\d)\s*$"
    ),
    re.compile(r"(?:[A-ZÀ-Þ]\w+, (?:den )?)?(?P<date>\d\d?\.\d\d?\.(?:19|20)\d\d)\s*$"),
    re.compile(r"[*_]*(?:Date|Datum|Stand|Data|Fecha) ?:[*_]* *(?P<date>.{0,30}\b(?:19|20)\d\d\b.{0,30})$"),
)
_LETTERHEAD = 16
"""Lines of a letter among which is its date."""
_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\n(?=[^\W\d_][\w -]*:)(?:.*\n)*?---[ \t]*\n")
_TITLE = re.compile(r"\s*(?:---\n(?:.*\n)*?---\n\s*)?(#{1,2} .*\n|.*[^\s.!?;,:][ \t]*\n[ \t]*\n)(?=\s*\S)")
"""The title of a text, below its front matter: a heading, or a line of its own that is no sentence."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """What one speaker says in a text: `speaker` is their name; `at` when, None if the text has times without
    a clear day. `head` has the lines that name them."""

    role: Role | None
    at: datetime | None
    speaker: str = ""
    text: str = ""
    head: str = ""


def text_parts(text: str, at: datetime, form: TextForm) -> Iterator[TextPart]:
    """A text, written at a time, as parts by speaker and time: exports of chats, mails, pasted conversations
    with an agent or between named people. Any other text is one part."""
    current, lines = TextPart("person", at), list[str]()
    for _, part, starts, line in _lines_by_part(enumerate(text.splitlines(keepends=True)), form, current):
        if starts and (current.head or form.stamps is not _LETTER):
            if "".join(lines).strip():
                yield replace(current, text="".join(lines))
            lines = []
        current = part if starts else current
        lines.append(line)
    yield replace(current, text="".join(lines))


def _lines_by_part(
    lines: Iterable[tuple[int, str]], form: TextForm, part: TextPart
) -> Iterator[tuple[int, TextPart, bool, str]]:
    """Each line, except further header fields of a mail: its number, its part, whether it starts that part,
    and its text."""
    before, fields, fence = part, False, ""
    own, written, quotes = part, part.at, False
    for number, line in lines:
        fence = _open_fence(line, fence)
        plain = _QUOTE_SIGNS.sub("", line) if _QUOTED in form.stamps else line
        following = None if fence else _starting_part(plain, before, form)
        if form.stamps is _LETTER and following:
            at = following.at  # a day to come is that of an event
            following = following if at and (not written or at <= written) else None
        if following and plain == line and not _QUOTED.match(line):
            own = following
        elif quotes and plain == line and line.strip():
            following = replace(own, text=line)  # below what a mail quotes
        if line.strip():
            quotes = plain != line and (bool(following) or part is not own)
        if following:
            part = before = following
            said, fields = following.text, not following.text
        elif fields := fields and bool(_MAIL_FIELD.match(plain)):
            continue
        else:
            said = line if part is own else plain
        if said.strip() and before.head:  # the head ends where the text begins
            before = replace(before, head="")
        yield number, part, following is not None, said


def _open_fence(line: str, fence: str) -> str:
    """The open code fence after a line, '' if there is none."""
    mark = _FENCE.match(line)
    if not mark:
        return fence
    return "" if fence and line.strip().startswith(fence) else fence or mark[1][:3]


@dataclass(frozen=True, slots=True)
class TextForm:
    """How a text's lines name the speaker: by `labels` such as `User:`, or by `stamps` with name and time."""

    labels: bool = False
    stamps: tuple[re.Pattern[str], ...] = ()


ONE_AUTHOR = TextForm()
"""The form of a text with a single author."""


def text_form(text: str) -> TextForm:
    """Detect the form of a text. A note may have a single line as in a chat, so a chat or mail must begin
    with a stamp, half of a chat's stamps must have a name, and in Slack's form, which is the least distinct,
    a name must occur twice, as in LINE's without its title. A conversation with an agent begins with a label,
    and has both sides; in one between named people somebody is asked something."""
    lines = [line for line in text.splitlines() if line.strip()]
    first = next((line for line in lines if not line.startswith(("# ", "---"))), "")
    stamps = tuple[re.Pattern[str], ...]()

    def begins(forms: Iterable[re.Pattern[str]]) -> bool:
        return any(form.match(first) for form in forms)

    if begins(_WHATSAPP) and 2 * sum(map(bool, names := _stamp_names(lines, _WHATSAPP))) >= len(names):
        stamps += _WHATSAPP
    if begins(_SLACK) and len(names := _stamp_names(lines, _SLACK)) > len(set(names)):
        stamps += _SLACK
    names = _stamp_names(lines, _LINE[2:]) if begins(_LINE[:2]) else []
    if len(names) > len(set(names)) or (names and begins(_LINE[:1])):
        stamps += _LINE
    plain = [_QUOTE_SIGNS.sub("", line) for line in lines]
    names = [
        re.escape(one.split(":", 1)[1].strip())
        for one, other in pairwise(plain)
        if re.match(_FROM, one) and _MAIL[1].match(other) and re.search(r"\d[:h]\d\d", other)
    ]
    if begins(_MAIL) or names or any(map(_QUOTED.match, plain)):
        named = [re.compile(rf"{_FROM}(?P<name>{'|'.join(names)})(?P<mail>)\s*$")] if names else []
        stamps += (*_MAIL, _QUOTED, *named)
    labels = bool(speaker(first)) and _has_both_sides(lines)
    if stamps or labels:
        return TextForm(labels, stamps)
    body = text[len(front_matter(text)) :]
    top = ["", *(line.strip() for line in body.splitlines()[:_LETTERHEAD]), ""]
    dated = any(
        form.match(line)
        for above, line, below in zip(top, top[1:], top[2:], strict=False)
        for form in _LETTER
        if not (above and below) or (":" in line and not all(":" in each for each in lines[1:]))
    )
    return TextForm(stamps=_name_labels(lines) or (_LETTER if dated else ()))


def _has_both_sides(lines: Sequence[str]) -> bool:
    """Whether a person and an agent speak: in two lines only if the one asks or the other replies, since
    notes may have such labels, too."""
    said = [(n, *who) for n, line in enumerate(lines) if (who := speaker(line))]
    if not {"person", "assistant"} <= {role for _, role, _ in said}:
        return False
    if len(said) > 2:
        return True
    (_, (second, _, reply)), labels = said, [re.split("[:：]", lines[n])[0] for n, _, _ in said]
    asks = any(line.rstrip("*_ ").endswith(("?", "？", "!", "！")) for line in lines[:second])
    replies = asks or " " in labels[0].strip() or _REPLY.match(reply or "".join(lines[second + 1 :]))
    return bool(replies) and all(map(_SURE_LABEL.fullmatch, labels))


def _name_labels(lines: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """The labels of a conversation between named people: most lines begin with one, and one person asks
    another, who replies, or one speaks again after another. None if one is an agent's, or if all are English
    words."""
    label = re.compile(_NAME_LABEL.format(PERSON_NAME))
    labels = [(found["name"], line.rstrip()) for line in lines if (found := label.match(line))]
    others = {name for name, _ in labels if name in NO_NAMES or name.casefold() in LABELS}
    said = [one for one in labels if one[0] not in others]
    names = dict.fromkeys(name for name, _ in said)
    again = sum(1 for _ in groupby(name for name, _ in said)) > len(names)
    asked = any(
        one != other and line.endswith(("?", "？")) and (again or _REPLY.match(reply.partition(":")[2]))
        for (one, line), (other, reply) in pairwise(said)
    )
    if not asked or 2 * len(said) < len(lines) or all(in_lexicon(name.split()[0]) for name in names):
        return ()
    if any(who[0] != "person" for name in names if (who := speaker(f"{name}:"))):
        return ()
    by_name = _NAME_LABEL.format("|".join(map(re.escape, names)))
    ends = "|".join(rf"(?={re.escape(other)}\s?:)" for other in others)
    return (re.compile(by_name), *([re.compile(ends)] if ends else []))


def _stamp_names(lines: Iterable[str], forms: Iterable[re.Pattern[str]]) -> list[str]:
    found = (form.match(line) for line in lines for form in forms)
    return [match["name"] or "" for match in found if match]


def _starting_part(line: str, part: TextPart, form: TextForm) -> TextPart | None:
    """The part that a line starts, None if it continues the one before."""
    if form.labels and (who := speaker(line)):
        return replace(part, role=who[0], speaker="", text=f"{who[1]}\n", head=line)
    return stamped_part(line, part, form.stamps)


def stamped_part(line: str, before: TextPart, forms: Iterable[re.Pattern[str]]) -> TextPart | None:
    """The part that a line starts by a name and time in one of these forms; None if it starts none."""
    found = next(filter(None, (pattern.match(line) for pattern in forms)), None)
    if not found:
        return None
    has = found.groupdict()
    name = (has.get("name") or has.get("mail") or "").strip()
    name = "" if speaker(f"{name}:") else name
    head = found[0] if has.get("day") else before.head + line
    if has.get("time"):
        head = f"{before.at:%Y/%m/%d}\n{found[0]}" if before.at else found[0]
    if "date" in has or "mail" in has:
        at = _mail_day(has["date"], before.at) if "date" in has else before.at
        name = name if "mail" in has else before.speaker
        field = _MAIL_FIELD.match(line) and forms is not _LETTER
        text = "" if field else line if "mail" not in has else "\n"
        return replace(before, role="person", at=at, speaker=name, text=text, head=head)
    role: Role | None = "person" if has.get("name") or "name" not in has else None
    said = line[found.end() :].lstrip() or "\n"
    if not {"day", "clock", "time"} & has.keys():  # a name alone
        return replace(before, role=role, speaker=name, text=said)
    day = _stamp_day(has["day"] or "", bool(has.get("half"))) if "day" in has else None
    day = before.at.date() if has.get("time") and before.at else day
    at = _moment(day, has.get("clock") or has.get("time") or "", before.at)
    return TextPart(role, at, name, said, f"{head.rstrip()}\n")


def _moment(day: date | None, clock: str, near: datetime | None) -> datetime | None:
    """A day at the time that a text names, at noon if it names none; None without a day."""
    at, found = time(12), _TIME.search(clock)
    with suppress(ValueError):
        if found and found[3]:
            at = time(int(found[1]) % 12 + 12 * (found[3] in "pP"), int(found[2]))
        elif found:
            at = time(int(found[1]), int(found[2]))
    return datetime.combine(day, at, near.tzinfo if near else UTC) if day else None


def _stamp_day(numbers: str, half: bool) -> date | None:
    """The day of a stamp; None if it is not clear whether the month comes first."""
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


def _mail_day(text: str, near: datetime | None) -> datetime | None:
    """The day on which a mail was sent."""
    spans = [span for span in calendar.spans(text, date(2000, 1, 1)) if span.is_day]
    numbers = [f"{day}.{month}.{year}" for year, month, day, _ in foreign_dates.days_of_months(text) if year]
    numbers += re.findall(r"\d\d?\.\d\d?\.\d{4}", text)
    day = _stamp_day(numbers[0], half=False) if numbers else spans[0].start if spans else None
    return _moment(day, text.replace(".", " "), near)


def front_matter(text: str) -> str:
    """The front matter that a text begins with, its marks included; '' if there is none."""
    found = _FRONT_MATTER.match(text)
    return found[0] if found else ""


def title_day(text: str, now: datetime) -> datetime | None:
    """The day that the title of a text names: "Minutes of 5 May 2026". None if it names none or one to come,
    and for a diary, whose lines name theirs."""
    title = _TITLE.match(text)
    words = re.sub(r"(?<![\d-])\d\d?\s?[–-]\s?(?=\d\d? )", "", title[1]) if title else ""  # 6–10 April
    if not re.search(r"\b(?:19|20)\d\d\b", words):
        return None
    day = _mail_day(words.replace("/", ".") if is_foreign(text[:2_000]) else words, now)
    named = day and day <= now and str(day.year) in words
    days = (line for line in text.splitlines() if any(form.match(line) for form in _LETTER))
    return day if named and sum(1 for _ in days) < 2 else None


def is_conversation(head: str) -> bool:
    """Whether a text is a conversation: it begins with a speaker, or has both sides."""
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
    """Whether a text is markdown rather than plain text."""
    return _MARKDOWN.search(head) is not None


class Prose(turns.Format):
    """Plain text. The id of a turn is that of its first line."""

    client = "text"

    def records(
        self, source: ByteSource, report: turns.Unreadable, keep: bytearray | None = None
    ) -> Iterator[tuple[int, Record]]:
        head = source.head.decode("utf-8", "replace")
        form = replace(text_form(head), labels=is_conversation(head))
        current, first, lines, size = TextPart("person", None), 1, list[str](), 0
        for number, part, starts, line in _lines_by_part(_lines(source, report), form, current):
            if starts or size > LONGEST_TURN:
                yield first, Record(part=current, text="".join(lines))
                current, first, lines, size = part, number, [], 0
            lines.append(line)
            size += len(line)
        yield first, Record(part=current, text="".join(lines))

    def survey(self, line: int, record: Record) -> None:
        pass

    def events(self, records: Iterable[tuple[int, Record]]) -> Iterator[Event]:
        last, entry = 0, EntryIds(turns.Turn("L0", "person", ""))
        for line, record in records:
            part: TextPart = record["part"]
            role = part.role
            text = assistant_text(record["text"]) if role == "assistant" else typed_text(record["text"])
            if line != last:
                last, entry = line, EntryIds(turns.Turn(f"L{line}", "person", "", line=line))
            if role and text and not (role == "person" and _only_headings(text)):
                text = f"{part.speaker}: {text}" if part.speaker else text
                # In which zone is not known; noon is on the same day in most.
                yield entry.next(role=role, text=text, at=part.at and part.at.replace(hour=12, minute=0))

    def contents(self, line: int, record: Record) -> Iterator[str]:
        yield record["text"]


class Markdown(Prose):
    """As plain text; only the client's name differs."""

    client = "markdown"


def _only_headings(text: str) -> bool:
    """Whether a text has only headings; a title above the first speaker is no turn."""
    return all(line.startswith(("# ", "## ", "---", "===")) or not line.strip() for line in text.splitlines())


def _lines(source: ByteSource, report: turns.Unreadable) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; a very long line comes in pieces with the same number."""
    number, rest = 1, ""
    for piece in source.pieces(report):
        *whole, rest = (rest + piece).split("\n")
        for line in whole:
            yield number, line.removesuffix("\r") + "\n"
            number += 1
        if len(rest) > turns.CHUNK:
            yield number, rest
            rest = ""
    if rest:
        yield number, rest
