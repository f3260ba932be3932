"""Extraction by a model: the facts of a text, chunk by chunk, and checks of these against it.

Extraction without a model shares the chunks, and how the days are read that a sentence is about.
"""

from __future__ import annotations

import calendar
import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise, zip_longest
from typing import Any, Literal

from ua_memory.index.terms import STOP_WORDS, all_stop_words
from ua_memory.knowledge.entities import EntityRecords
from ua_memory.llm.model import Message, Model, prompt, user
from ua_memory.llm.model import TokenUsage as Tokens
from ua_memory.llm.tools import Bounds, Outcome, Tool, run_tools, schema
from ua_memory.markdown.fields import is_time
from ua_memory.records import Fact, Quote
from ua_memory.retain.subagent import SHORTEST_QUOTE, link_name, one_line
from ua_memory.text import calendar as text_calendar
from ua_memory.text import dates, foreign_dates
from ua_memory.text.grounding import disagreement, is_grounded_name, locate, nearby_turns, ungrounded_claims
from ua_memory.text.names import is_foreign
from ua_memory.text.noise import escape_tags
from ua_memory.text.patterns import late
from ua_memory.text.sentences import around, spans
from ua_memory.text.wording import MOVED
from ua_memory.transcripts.messages import ONE_AUTHOR, TextForm, text_form, text_parts

# -- prompts -----------------------------------------------------------------------------------------------


Mode = Literal["concise", "verbatim", "chunks", "custom"]
MODES: tuple[Mode, ...] = ("concise", "verbatim", "chunks", "custom")


@dataclass(frozen=True, slots=True)
class TextContext:
    """What is known of a text besides its words. `at` is when it was said or written, and what "yesterday"
    refers to. `title` and `context` count as part of the text; `mission` and `instructions` are the owner's
    wishes."""

    at: datetime
    mode: Mode = "concise"
    title: str = ""
    context: str = ""
    mission: str = ""
    instructions: str = ""
    tags: tuple[str, ...] = ()


TOOL_NAME = "keep"
KEEP_TASK = "Keep the facts of this text."
DESCRIBE_TASK = "Describe the numbered pieces of this text."
REMINDER = f"Nothing is kept: call {TOOL_NAME}, with an empty list if nothing is worth it."


def directive(brief: TextContext) -> str:
    """The system prompt: the task, and the owner's wishes."""
    if brief.mode == "verbatim":
        parts = [prompt("retain_verbatim")]
    else:
        task = "retain_custom" if brief.mode == "custom" and brief.instructions else "retain"
        parts = [prompt(task), brief.instructions, prompt("retain_rules")]
    if brief.mission:
        parts.append(f"What this memory is for: {brief.mission}")
    return "\n".join(part for part in parts if part)


def prompt_text(text: str, brief: TextContext) -> str:
    """The text as the model reads it, in a block whose end it cannot forge."""
    if brief.mode == "verbatim":
        text = "\n".join(f"[{n}] {piece}" for n, piece in enumerate(pieces(text), 1))
    text = escape_tags(text, "text")
    given = (("title", brief.title), ("context", brief.context))
    about = "".join(f' {key}="{_attribute(value)}"' for key, value in given if value)
    return f'<text written="{brief.at:%Y-%m-%d}, {brief.at:%A}"{about}>\n{text.strip()}\n</text>'


def _attribute(text: str) -> str:
    return " ".join(re.sub(r'[<>"]', " ", escape_tags(text, "text")).split())


_ITEM = late(r"(?:[-*+]|\d{1,3}[.)])[ \t]")


def pieces(text: str) -> list[str]:
    """The paragraphs and top-level items of a text, in order, without its headings; a code fence is one."""
    found: list[list[str]] = []
    fresh = True
    for line, code in _lines(text):
        if not code and (not line.strip() or _HEADING.match(line)):
            fresh = True
            continue
        if not code and (fresh or _ITEM.match(line)):
            found.append([])
        fresh = False
        found[-1].append(line.rstrip())
    return ["\n".join(lines).strip() for lines in found if any(line.strip() for line in lines)]


# -- dates of facts ----------------------------------------------------------------------------------------
# The days that a fact is about, read from its words relative to the day the text was written.


_MONTHS = "|".join(name for name in calendar.month_name if name)
_SEASON = "spring|summer|autumn|winter"
_DAYS = "|".join(calendar.day_name)
_PERIOD = late(
    rf"\b(?i:(?:on|from|starts?|begins?|comes|arrives?|leaves?|ends?) (?P<day>{_DAYS})(?!s))|"
    rf"(?i:\b(?<!from the )end of )(?:{_MONTHS})|"
    r"(?i:\b(?:is|are|due|starts?|begins?|ends?|leaves?|arrives?|expires?|again|back) in) "
    r"(?P<ahead>\w+ (?:days?|weeks?|months?))\b|"
    rf"\b(?:(?i:in|since|during|by|until) (?:early |mid-|late )?(?:{_MONTHS})(?! \d| ?,? ?\d{{4}})|"
    rf"(?i:this|last|next|in the|in) (?:{_SEASON})(?: of (?:19|20)\d\d)?|"
    rf"(?i:in|since|during) (?:19|20)\d\d\b|\bQ[1-4] (?:19|20)\d\d)\b"
)
"""Periods without a day or year. `dates.spans` skips them, since a flush must not guess; in a text that was
written on a known day the nearest one is meant."""
_HYPHEN = late(r"(?<![\w.-])(\d{1,2})-(\d{1,2})(?![\d-])")
_RANGE_SIGN = late(r"\s*(?:to|until|till|through|[-–—])\s*(?:the )?")
_FIRST_DAY = late(
    r"(?<![\w.,:/-])(?:between (?:the )?(\d\d?)(?:st|nd|rd|th)? and"
    r"|(\d\d?)(?:st|nd|rd|th)? ?(?:to|until|till|through|[-–—])) ?(?:the )?$"
)
_LAST_DAY = late(r" ?[–—] ?(\d\d?)(?:st|nd|rd|th)?(?![\w:.,]*\d)")
_PAST_ONLY = late(
    r"\b(?:seit|depuis|desde)\b(?!.*\b(?:bis|jusqu\w*|hasta)\b)"
    r"|\b(?:ab|an|aus|ein|um|weg)?ge(?:blieben|boren|fahren|flogen|gangen|kauft|kommen|storben|troffen|zogen)\b",
    re.I,
)
"""Words for what has lasted since a day or happened on it, in other languages than English."""
_RELATIVE = late(
    r"\b(?:yesterday|tomorrow|ago|week after next"
    rf"|(?:last|next|of this) (?:week|month|year|weekend|{_DAYS}))\b"
)
_DAY_WITHIN = late(
    r"\b(?:the )?\d{1,2}(?:st|nd|rd|th)? of (?:last|this|next) month\b"
    rf"|\b(?:{_DAYS}) of (?:(?:last|this|next) week|the week after next)\b",
    re.IGNORECASE,
)
"""A day within a week or month that is counted from the day of the text."""
_LASTING = late(r"\b(?:seit|depuis|desde|(?:hace|il y a)\b.*\bque)\b", re.I)
_REASON = late(
    r"\s(?:because(?!\s+of\b)|weil|parce\s+qu[e'’]|porque|xq|pq)\b(?:[^,.;]|[,.](?=\d))*"
    r"|\b(?:instead of|rather than|(?:an)?statt|au lieu d[eu]|en (?:vez|lugar) de|em vez de|invece d\w+"
    r"|in plaats van)\b[^,.;]{0,40}"
    rf"|\b(?:(?:was|were) (?:wrong|mistaken)|as (?:\w+ )?(?:said|told|mentioned|agreed|discussed))"
    rf" (?:on |last )?(?:{_DAYS}|yesterday)\b|\b(?:wie (?:\w+ )?(?:gesagt|besprochen|erwähnt)\b"
    r"|(?:lag(?:en)?|habe?n? (?:mich|uns)) [^,.;:]{0,40}\b(?:falsch|geirrt|vertan)\b)",
    re.I,
)
"""A clause that says why, or what was said or thought before: its day is not that of what it explains."""
_SHORT_DAY = r"(0?[1-9]|[12]\d|3[01])\.(?:(0?[1-9]|1[0-2])\.)?"
_YEAR = r"(?:19|20)\d\d\b"
_ON = (
    r"(?<!\w)(?:am|vom|zum|ab|(?<!\.\s)bis|de[nrm](?!\s+\S+\s+(?-i:[A-ZÄÖÜ]))|seit"
    r"|(?-i:Mo|Di|Mi|Do|Fr|Sa|So)\.?,?|\w+(?:tag|day|woch),?)\s+"
)
_SLASHED = late(
    r"(?:(?<![\w/.,-])(?=\S+/\d{4})|\b(?:le|el|il|du|del|dal|au|al) |^(?!1/2|[12]/3|[13]/4))"
    r"(0?[1-9]|[12]\d|3[01])/(0?[1-9]|1[0-2])(?:/((?:19|20)\d\d))?(?![\w/])"
    r"(?! (?:tasses?|cuill\w+|verres?|litres?|tazas?|cuchara\w+|vasos?|litros?|tazz[ae]|cucchiai\w*"
    r"|bicchier[ei]|litr[oi]|xícaras?|colher\w*|copos?|tassen?|becher|liter|[ckm]?[gl])\b)"
)
_SHORT_DATE = late(
    rf"(?<![\w.,:/-])(?:(?:(?:{_ON}|^|(?<=[:(,]\s)){_SHORT_DAY}\s*(?:bis(?:\s+zum)?|und|[-–—])\s*)|{_ON}"
    rf"|(?=[\d.]+\s?{_YEAR})){_SHORT_DAY.replace('.)?', '.)')}(?:\s?({_YEAR})(?!\.?\d)|(?![\d\w]))",
    re.I,
)
"""A German date, or a period between two: "am 2.12.", "21.12. bis 6.1.", "3.4.1948"."""
_FROM_TO = late(
    r"\b(?:du|vom|del?|dal)\s+\d{1,2}(?:er|[.º])?\s+(?:de\s+)?[^\W\d_]{3,12}\.?(?:\s+(?:de\s+)?\d{4})?"
    r"\s+(?:au|bis(?:\s+zum)?|al?|até)\s+(?:el\s+)?\d",
    re.I,
)
"""A period of two days of two months: `du 24 décembre au 4 janvier`."""
_RECURRING = late(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day (?:morning|noon|afternoon|evening|night)s\b", re.I
)
"""Days of every week, as "on Mondays"."""
_HABIT = late(
    r"\b(?:(?:no|not|only|open|prefer\w*|don['’]t)\b(?=.*\bon $)"
    r"|(?:always|closed|each|every|never|usually)\b)",
    re.I,
)
"""Words by which "on Friday" is no day of its own, but any Friday."""
_BORN = late(
    r"(?:\b(?:geb(?:oren|\.)|born|née?|nat[oa]|nacid[oa])|\*)(?: (?:am|on|le|il|el))? ?\d[\d./]{5,9}", re.I
)
"""Somebody's date of birth, by which others are told who they are."""
_CLAUSE_TEXT = late(r"(?:[^,;:!?.]|(?<=\d)(?<!\d{3})\.|[.,:](?=\s?\d))+")
_OLD_DATE = late(
    r"\b(?:from|vo[nm]|du|del?|dal?|van)\s+(?:(?:[^\W\d]+,?\s+)?\d.{0,40}?|[^\W\d]+)"
    r"\s(?=(?:to|auf|zum?|au|à|al?|para|naar|op)\s)",
    re.I,
)
"""The old date in a clause with a word of `MOVED`: "postponed from 3 to 5 May" is no period."""
_WITHIN_MONTH = late(
    r"\b(?:of|from|on|vom|am|du|del|van|op|le|il|el)\s+(?:the\s+)?\d{1,2}(?:st|nd|rd|th|er|[.º])?\s+(?:(?:of|de)\s+)?"
    r"(?P<month>[^\W\d_]{3,12})\b(?P<between>\D{1,80}?)"
    r"\b(?:to the|on the|auf den|am|al|il|au|le|el|naar de|op)\s+"
    r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|e|[.º])?(?=[,;:!)]|\.?\W*$|\s+(?:with|at|because|mit|um|weil|avec|à|parce"
    r"|con|alle|perch[eé]|porque|met|omdat|verschoben|verlegt|vorgezogen|verzet|verplaatst|uitgesteld)\b)",
    re.I,
)
"""A date, and another day of its month, to which something is moved: "the call of 3 May moves to the 5th"."""
_CLAUSE_SIGN = late(r"[,;:–]\s")
_WORD = late(r"\w+")
_NOT_THEN = late(r"\b(?:not|instead of|rather than|nicht|statt|pas|au lieu d[eu]|no)(?: \w+)? \w+day\b", re.I)
"""A weekday that is not meant."""
_CLOCK = late(
    r"\b\d{1,2}(?:[:.]\d\d)? ?(?:uhr|h|[ap]m)\b|\b\d{1,2}[:h]\d\d\b(?! ?(?:uhr|h|[ap]m)\b)"
    r"|\b(?:a las?|às|alle(?: ore)?|um|at) \d{1,2}\b(?![:.,]\d| ?(?:uhr|h|[ap]m|%|€))",
    re.I,
)
_BYGONE = late(
    rf"\b(?:last|letzte\w*|always|usually|every|each|jede\w*|cada|chaque|tous|war(?:en)?|hatten?|wurden?|kam(?:en)?|trafe?n?"
    rf"|ging(?:en)?|étai\w+|fue|estuv\w+|ha(?:be?n?|st|t) .*ge\w+(?:t|en)"
    r"|\w+ó|\w{2,}(?:aron|ieron)|vin[eo]|fu[ei]|fuimos|hi[cz][eo]|tuv[eo]|dij[eo]|h(?:e|a|emos|an) \w+[ai]do"
    r"|\w{2,}[gdmlvnrçzs]ou|veio|foi|fez|teve|h[oa] \w+[aiu]to|è \w+[aiu]t[oa]|a[is]? \w+é|est venue?)\b"
    rf"|{_PAST_ONLY.pattern}",
    re.I,
)
"""Words by which a weekday is not the coming one."""
_FUTURE = late(r"\b(?:will|won't|going to|plans? to|planned for|due|'ll|shall|deadline|until|by)\b", re.I)
_DATE_PART = late(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?(?:[T ](\d\d:\d\d))?")


def _without_old_date(clause: re.Match[str]) -> str:
    """A clause without a date that something was moved from. Only in German and Dutch may the verb follow:
    "the trip from 3 to 12 May was moved" has a period."""
    old = _OLD_DATE.search(clause[0])
    before = clause[0] if not old or old[0][0] in "vV" else clause[0][: old.end()]
    return clause[0].replace(old[0], "", 1) if old and MOVED.search(before) else clause[0]


def _with_new_day(text: str) -> str:
    """A text with the day that something is moved to in the place of the day before, if it has no month."""
    moved = _WITHIN_MONTH.search(text)
    if not moved or not foreign_dates.is_month(moved["month"]) or not MOVED.search(text):
        return text
    new = f"{moved['between']}on {moved['day']} {moved['month']}"
    return text[: moved.start()] + new.lstrip() + text[moved.end() :]


@lru_cache(maxsize=1024)  # a sentence is asked by its score, as a candidate and as a fact
def when_in_text(text: str, said: date | None) -> str | None:
    """The one day or period that a text names, as in a `when:` field; None if it names none or several, or
    the day it was said. If that day is unknown, only what does not depend on it."""
    if said is None:
        first, other = (when_in_text(text, day) for day in (date(2001, 2, 3), date(2020, 8, 21)))
        return first if first == other else None
    text = _with_new_day(text)
    text = _CLAUSE_TEXT.sub(_without_old_date, with_dots(text) if is_foreign(text) else text)
    text = _with_numbered_weekdays(_RECURRING.sub(" ", text), said)
    stated = _REASON.sub(" ", text)
    found = set(_named_periods(stated, said))
    if len(found) > 1:
        found = set(_named_periods(_BORN.sub(" ", stated), said))
    if len(found) != 1:
        return None
    start, end = found.pop()
    weekdays = {day.weekday() for day, _ in _weekdays(_NOT_THEN.sub(" ", stated), said)}
    if end - start == timedelta(days=1) and {start.weekday()} < weekdays:
        return None
    return None if (start, end) == (said, said + timedelta(days=1)) else when_field(start, end)


def with_dots(text: str) -> str:
    """A text that is not in English with its dates as in German: `le 3/12`, `04/06/1939`."""
    return _SLASHED.sub(lambda m: f"am {m[1]}.{m[2]}.{m[3] or ''}", text)


def when_field(start: date, end: date) -> str:
    """The days from `start` to before `end` as a `when:` field: a day, month, year, or two days with a
    slash."""
    last = end - timedelta(days=1)
    if start == last:
        return start.isoformat()
    if start.day == 1 and last.day == calendar.monthrange(last.year, last.month)[1]:
        if (start.year, start.month) == (last.year, last.month):
            return f"{start:%Y-%m}"
        if start.year == last.year and (start.month, last.month) == (1, 12):
            return f"{start:%Y}"
    return f"{start}/{last}"


def supported_when(when: str, evidence: Sequence[str], said: date) -> str | None:
    """A model's `when` if the evidence supports it: the day it was said, or within a period that the evidence
    names. A time of day stays only if the evidence has it."""
    when = when.strip()
    if not is_time(when):
        return None
    text = "\n".join(evidence)
    days = _first_and_end(when)
    named = [(said, said + timedelta(days=1)), *_named_periods(text, said)]
    for span in (span for span in text_calendar.spans(text, said) if not span.sure):
        years = text_calendar.in_nearby_years(said, span.start.month, span.start.day)
        named += [(day, day + timedelta(days=1)) for day in years]
    if days is None or not any(start <= days[0] and days[1] <= end for start, end in named):
        return None
    clock = re.search(r"\d\d:\d\d", when)
    return when if not clock or clock[0] in text else when_field(*days)


_NUMBERED = late(
    r"\b(?P<name>[^\W\d_]+(?:-feira)?),?\s+(?:the |den |dem |le |il |el |dia )?"
    r"(?P<day>\d{1,2})(?:st|nd|rd|th|º|\.(?!\d))?"
    r"(?![\w:/€$%°–-]|[.,]\d|\s?(?:uhr|h|[ap]m)\b)(?=(?P<rest>(?:\s+[^\W\d_]+){0,2}))",
    re.I,
)


def _with_numbered_weekdays(text: str, said: date) -> str:
    """A text with its weekdays that have a number as ISO days: `Friday 4 at 11`, `Freitag, den 4.`, not
    `Friday 4 people`."""

    def in_digits(found: re.Match[str]) -> str:
        number, rest = foreign_dates.weekday_named(found["name"]), found["rest"].casefold().split()
        if (
            number is None
            or any(map(foreign_dates.is_month, rest))
            or (rest and rest[0] not in STOP_WORDS and rest[0] not in all_stop_words())
        ):
            return found[0]
        day = text_calendar.day_on_weekday(number, int(found["day"]), said)
        return day.isoformat() if day else found[0]

    return _NUMBERED.sub(in_digits, text)


def _named_periods(text: str, said: date) -> Iterator[tuple[date, date]]:
    """The periods that a text names: the first day, and the day after the last."""
    found = list(_periods_in_english(text, said)) or list(_periods_in_other_languages(text, said))
    yield from found or _appointments(text, said)


def _appointments(text: str, said: date) -> Iterator[tuple[date, date]]:
    """The coming days that a text names by their weekday, if it has one time of day: "Ok, Friday 8 pm"."""
    if len(_CLOCK.findall(text)) != 1 or _BYGONE.search(text):
        return
    for day, at in _weekdays(text, said):
        if text_calendar.tense(text, at, at) != "past":
            yield day, day + timedelta(days=1)


def _weekdays(text: str, said: date) -> Iterator[tuple[date, int]]:
    """The coming days that a text names by their weekday, and where."""
    code = foreign_dates.language(text)
    english = [(found[0], found.start()) for found in _WORD.finditer(text)]
    words = [(word, at) for word, at, _ in foreign_dates.translated(text, code)] if code else english
    for word, at in words:
        if (number := text_calendar.WEEKDAYS.get(word.lower())) is not None:
            yield said + timedelta(days=(number - said.weekday()) % 7), at


def _periods_in_other_languages(text: str, said: date) -> Iterator[tuple[date, date]]:
    """The days that a text names in other languages: by their month (without a year the nearest one is
    meant), else by words such as `nächste Woche` and `ayer`."""
    yield from (short := list(_short_dates(text, said)))
    dated = foreign_dates.days_of_months(text)
    months = [] if dated or short else foreign_dates.months_of_years(text)
    for start in (date(year, month, 1) for year, month in months):
        yield start, (start + timedelta(days=31)).replace(day=1)
    code = None if dated or short or months or _LASTING.search(text) else foreign_dates.language(text)
    english = " ".join(word for word, _, _ in foreign_dates.translated(text, code)) if code else ""
    for part in filter(_RELATIVE.search, english.split(",")):
        yield from _periods_in_english(part, said)
    days = [*_dated_days(dated, said, past=bool(_PAST_ONLY.search(text)))]
    if len(days) == 2 and _FROM_TO.search(text):
        (start, _), (_, end) = days
        yield start, end if end > start else end.replace(year=end.year + 1)
    else:
        yield from days


def _dated_days(
    dated: Sequence[tuple[int, int, int, int]], said: date, *, past: bool
) -> Iterator[tuple[date, date]]:
    """The days of `days_of_months`; without a year the nearest, if `past` the nearest that is over."""
    for year, month, first, last in dated:
        with suppress(ValueError):
            near = [date(year, month, last)] if year else text_calendar.in_nearby_years(said, month, last)
            at = min((one for one in near if one <= said or not past), key=lambda one: abs(one - said))
            yield at.replace(day=first), at + timedelta(days=1)


def _short_dates(text: str, said: date) -> Iterator[tuple[date, date]]:
    """The German dates of a text, and periods between two; without a year the nearest is meant."""
    past = _PAST_ONLY.search(text)
    for match in _SHORT_DATE.finditer(text):
        first, first_month, day, month, year = (int(part or 0) for part in match.groups())
        with suppress(ValueError):
            begins = first_month or month, first or day
            near = text_calendar.in_nearby_years(said, *begins)
            near = [date(year - (begins > (month, day)), *begins)] if year else near
            start = min((one for one in near if one <= said or not past), key=lambda one: abs(one - said))
            end = start.replace(month=month, day=day)
            yield start, (end if end >= start else end.replace(year=end.year + 1)) + timedelta(days=1)


def _periods_in_english(text: str, said: date) -> Iterator[tuple[date, date]]:
    text, noon = _HYPHEN.sub(r"\1–\2", text), datetime.combine(said, time(12), UTC)
    for match in _DAY_WITHIN.finditer(text):
        if first := dates.read(match[0], noon).start:
            yield (day := date.fromisoformat(first)), day + timedelta(days=1)
    text = _DAY_WITHIN.sub(" ", text)
    spans = text_calendar.spans(text, said)
    taken = [(span.at, span.to) for span in spans]
    yield from _with_ranges(text, spans)
    yield from ((day, day + timedelta(days=1)) for day in text_calendar.implied_days(text, said))
    for match in _PERIOD.finditer(text):
        if any(at < match.end() and match.start() < to for at, to in taken):
            continue
        if match["day"]:
            yield from _day_of_week(match, said)
            continue
        phrase = f"{match['ahead']} from now" if match["ahead"] else match[0]
        reading = dates.read(phrase, noon)
        if reading.start and reading.end:
            start, end = date.fromisoformat(reading.start), date.fromisoformat(reading.end)
            passed = end <= said and not re.search(r"\d{4}|last|this", match[0])
            if passed and _is_upcoming(match, start, said):
                start, end = (each.replace(year=each.year + 1, day=1) for each in (start, end))
            yield start, end


def _day_of_week(match: re.Match[str], said: date) -> Iterator[tuple[date, date]]:
    """The last day of a name if its verb is in the past, else the coming one; none for a habit."""
    before, after = around(match.string, match.start("day"), match.end("day"))
    if _HABIT.search(_CLAUSE_SIGN.split(before)[-1]) or _HABIT.search(_CLAUSE_SIGN.split(after)[0]):
        return
    tense = text_calendar.tense(match.string, match.start("day"), match.end("day"))
    back = (said.weekday() - text_calendar.WEEKDAYS[match["day"].casefold()]) % 7 or 7
    day = said - timedelta(days=back if tense == "past" else back - 7 if back < 7 else -7)
    yield day, day + timedelta(days=1)


def _with_ranges(text: str, spans: Sequence[text_calendar.Span]) -> Iterator[tuple[date, date]]:
    """The days that are named; ranges such as "3 to 5 May" as one period."""
    begun: text_calendar.Span | None = None
    for span, following in zip_longest(spans, spans[1:]):
        start, end = begun.start if begun and begun.start < span.start else span.start, span.end
        begun = None
        if following and _RANGE_SIGN.fullmatch(text, span.to, following.at):
            begun = span
            continue
        if span.is_day and (first := _FIRST_DAY.search(text[max(0, span.at - 30) : span.at])):
            day = int(first[1] or first[2])
            start = start.replace(day=day) if 0 < day < start.day else start
        elif span.is_day and (last := _LAST_DAY.match(text, span.to)) and int(last[1]) > start.day:
            with suppress(ValueError):
                end = start.replace(day=int(last[1])) + timedelta(days=1)
        yield start, end


def _is_upcoming(match: re.Match[str], start: date, said: date) -> bool:
    """Whether a month without a year is the coming one: its verb is in the future or present, or there is no
    verb and the coming month is nearer."""
    before, _ = around(match.string, match.start(), match.end())
    tense = text_calendar.tense(match.string, match.start(), match.end())
    alone = tense == "" and (_FUTURE.search(before + match[0]) or (said - start).days > 183)
    return tense in ("ahead", "open") or bool(alone)


def _first_and_end(when: str) -> tuple[date, date] | None:
    ends = []
    for part in when.split("/"):
        match = _DATE_PART.match(part.strip())
        if not match:
            return None
        year, month, day = (int(each) if each else 0 for each in match.groups()[:3])
        try:
            first = date(year, month or 1, day or 1)
        except ValueError:
            return None
        length = 1 if day else calendar.monthrange(year, month)[1] if month else 365 + calendar.isleap(year)
        ends.append((first, first + timedelta(days=length)))
    return (ends[0][0], ends[-1][1])


# -- chunks ------------------------------------------------------------------------------------------------
# Content-defined chunking into chunks of some 3,000 characters (LBFS, 2001; cuts at local maxima after
# Bjørner, Blass and Gurevich, 2010).
#
# A cut depends on the text near it alone: a line inserted at the top must not move the cuts below, or every
# edit of a document would have all of it read again and paid for. Chunks of a fixed size would do that.


CUT_DISTANCE = 1_600
"""A text is cut at a place if no better one is within so many characters on either side."""
EDGE_CHUNK = 700
"""The least characters of the first and of the last chunk."""
LONGEST_CHUNK = 4_500
"""Most characters of a chunk; longer ones are split, at a line, a sentence or a blank if need be."""

_HEADING = late(r" {0,3}(#{1,6})(?:[ \t]|$)")
_FENCE = late(r" {0,3}(`{3,}|~{3,})")
_LINE, _BLANK = late(r"\n(?=[^\n])"), late(r"\s+(?=\S)")


_Weight = tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a text. `name` is a hash of its text without outer white space. `heading` is the last heading
    above its first line or in it, '' if there is none. `form` is that of the whole text; `above` has the
    lines before the chunk that say who speaks in it first, and when."""

    text: str
    name: str
    heading: str = ""
    above: str = ""
    form: TextForm = ONE_AUTHOR


def split_text(text: str) -> tuple[Chunk, ...]:
    """The chunks of a text, in order. Their texts joined are the text; () for an empty one."""
    pieces: list[Chunk] = []
    heading = above = ""
    form = text_form(text)
    for piece in _parts(text):
        found = (line for line, code in _lines(piece) if not code and _HEADING.match(line))
        headings = [line.strip().strip("#").strip() for line in found]
        first = next((line for line in piece.splitlines() if line.strip()), "")
        if headings and _HEADING.match(first):
            heading = headings[0]
        pieces.append(Chunk(piece, chunk_name(piece), heading, above, form))
        if form != ONE_AUTHOR:
            above = [*text_parts(above + piece, datetime.max, form)][-1].head
        heading = headings[-1] if headings else heading
    return tuple(pieces)


def chunk_name(text: str) -> str:
    """The name of a chunk with this text: `c` and eleven hexadecimal digits, which YAML reads as a word."""
    return "c" + hashlib.sha256(text.strip().encode("utf-8", "replace")).hexdigest()[:11]


_CutPoint = tuple[int, _Weight]
"""A place where a text may be cut, and its weight: a rank, then a hash that decides among equal ranks."""


def _parts(text: str) -> Iterator[str]:
    if not text.strip():
        return
    places = [each for each in _cut_points(text) if EDGE_CHUNK <= each[0] <= len(text) - EDGE_CHUNK]
    for start, end in pairwise((0, *_local_maxima(places), len(text))):
        yield from _bounded_parts(text[start:end])


def _local_maxima(places: Sequence[_CutPoint]) -> Iterator[int]:
    """The places that no place within CUT_DISTANCE characters exceeds in weight; of equals the first."""
    before = _greatest_weights(places)
    after = _greatest_weights([(-at, weight) for at, weight in reversed(places)])[::-1]
    for (at, weight), left, right in zip(places, before, after, strict=True):
        if (left is None or left < weight) and (right is None or right <= weight):
            yield at


def _greatest_weights(places: Sequence[_CutPoint]) -> list[_Weight | None]:
    """For each place the greatest weight within CUT_DISTANCE characters before it, None if there is none. A
    sliding maximum in one pass: a list of 80,000 items must not take minutes."""
    found: list[_Weight | None] = []
    falling: deque[_CutPoint] = deque()
    for at, weight in places:
        while falling and falling[0][0] < at - CUT_DISTANCE:
            falling.popleft()
        found.append(falling[0][1] if falling else None)
        while falling and falling[-1][1] <= weight:
            falling.pop()
        falling.append((at, weight))
    return found


def _bounded_parts(text: str) -> Iterator[str]:
    """The text in parts of at most LONGEST_CHUNK characters: split at its best inner place, then
    recursively."""
    if len(text) <= LONGEST_CHUNK:
        yield text
        return
    low, high, middle = EDGE_CHUNK, len(text) - EDGE_CHUNK, len(text) // 2
    inner = [place for place in _cut_points(text) if low <= place[0] <= high] or _finer_cuts(text, low, high)
    # Among equals the middle one: a list of one item a thousand times must not be peeled off item by item.
    at, _ = max(inner, key=lambda place: (place[1], -abs(place[0] - middle)), default=(middle, None))
    yield from _bounded_parts(text[:at])
    yield from _bounded_parts(text[at:])


def _cut_points(text: str) -> Iterator[_CutPoint]:
    """The starts of headings, paragraphs and top-level items, in order; none inside a code fence."""
    at, blank = 0, True
    for line, code in _lines(text, keepends=True):
        heading = None if code else _HEADING.match(line)
        if heading:
            yield _cut_point(line, at, 9 - len(heading[1]))
        elif blank and line.strip() and not code and not line[0].isspace():
            yield _cut_point(line, at, 2)
        blank = not line.strip()
        at += len(line)


def _finer_cuts(text: str, low: int, high: int) -> list[_CutPoint]:
    """Places within a paragraph: lines, else sentences, else blanks."""
    lines, blanks = ([match.end() for match in one.finditer(text, low, high)] for one in (_LINE, _BLANK))
    for found in (lines, [low + at for at in _sentence_starts(text[low:high])], blanks):
        if found:
            return [_cut_point(text[at : at + 80], at, 1) for at in found]
    return []


def _sentence_starts(text: str) -> list[int]:
    return [start for start, _ in spans(text) if start]


def _cut_point(words: str, at: int, rank: int) -> _CutPoint:
    return at, (rank, hashlib.sha256(words.strip().encode("utf-8", "replace")).digest()[:8])


def _lines(text: str, *, keepends: bool = False) -> Iterator[tuple[str, bool]]:
    """The lines of a text, each with whether it is inside a code fence."""
    fence = ""
    for line in text.splitlines(keepends=keepends):
        yield line, bool(fence)
        opened = _FENCE.match(line)
        if opened and (not fence or opened[1].startswith(fence)):
            fence = "" if fence else opened[1]


# -- extraction --------------------------------------------------------------------------------------------
# The facts of a chunk, extracted by a model and checked against the text.
#
# One request a chunk: one tool takes the list of facts, and its call ends the turn. The chunks of a text are
# one growing conversation, so that the server's prompt cache has all but the last, and the model sees which
# facts it has given. At a bound a new conversation begins. Instructions within the text are data.


CONVERSATION_LENGTH = 64_000
"""Characters that the conversation about one text may grow to, answers included: a dozen chunks."""
LONGEST_ANSWER = 8_000
SMALLEST_SPLIT = 600
"""A chunk of fewer characters is not split when the answer to it was cut off."""
_BOUNDS = Bounds(turns=4, calls=4, faults=3)


@dataclass(frozen=True, slots=True)
class ExtractedChunk:
    """The facts of one chunk. `causes` maps a fact's index to that of the earlier fact which caused it;
    `refused` is what the model proposed and the text does not support; `talked`: it called no tool."""

    facts: tuple[Fact, ...] = ()
    causes: Mapping[int, int] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    talked: bool = False

    def settle_names(self, who: EntityRecords) -> ExtractedChunk:
        """The same with the names that the owner has settled in `entities.md`."""
        facts = (replace(fact, entities=who.names(fact.entities)) for fact in self.facts)
        return replace(self, facts=tuple(facts))

    def without(self, forbidden: Callable[[Fact], bool]) -> ExtractedChunk:
        """The same without some facts."""
        kept = [n for n, fact in enumerate(self.facts) if not forbidden(fact)]
        if len(kept) == len(self.facts):
            return self
        now = {n: new for new, n in enumerate(kept)}
        causes = {now[n]: now[c] for n, c in self.causes.items() if n in now and c in now}
        return replace(self, facts=tuple(self.facts[n] for n in kept), causes=causes)


class ChunkExtractor:
    """Extracts the facts of one text with a model, chunk by chunk in order."""

    def __init__(self, model: Model, brief: TextContext) -> None:
        self.model, self.brief = model, brief
        self.usage = Tokens()
        self._messages: list[Message] = []
        self._size = 0

    def extract(self, chunk: Chunk) -> ExtractedChunk:
        """The facts of a chunk. Raises what the model raises, and ModelMisbehaved for an invalid answer; then
        nothing of the text is kept."""
        extraction = _ExtractionTools(chunk, self.brief)
        outcome = run_tools(
            self.model, directive(self.brief), self._next_messages(chunk), extraction.tools(),
            purpose="retain", bounds=_BOUNDS, max_tokens=LONGEST_ANSWER, reminder=REMINDER,
        )  # fmt: skip
        self.usage += outcome.usage
        if outcome.ended in ("cut", "window") and not extraction.called:
            return self._extract_halves(chunk, outcome)
        if outcome.talked:
            self._reset()
            return ExtractedChunk(talked=True)
        if not extraction.called:
            outcome.require_done()
        self._messages = list(outcome.messages)
        return extraction.result()

    def _next_messages(self, chunk: Chunk) -> list[Message]:
        """The messages of the next request: the conversation so far and the chunk, or the chunk alone if that
        has grown too long."""
        text = prompt_text(chunk.text, self.brief)
        if self._size + 2 * len(text) > CONVERSATION_LENGTH:
            self._reset()
        self._size += 2 * len(text)  # an answer is about as long as what it is about
        last = self._messages[-1] if self._messages else None
        if last and last["role"] == "user":
            content = [*last["content"], *user(text)["content"]]
            return [*self._messages[:-1], {"role": "user", "content": content}]
        return [*self._messages, user(text)]

    def _reset(self) -> None:
        self._messages, self._size = [], 0

    def _extract_halves(self, chunk: Chunk, outcome: Outcome) -> ExtractedChunk:
        """The facts of both halves of a chunk, whose facts did not fit into one answer."""
        self._reset()
        middle = len(chunk.text) // 2
        breaks = [match.end() for match in _LINE.finditer(chunk.text)] + _sentence_starts(chunk.text)
        at = min(breaks, key=lambda place: abs(place - middle), default=middle)
        if len(chunk.text) < SMALLEST_SPLIT or not 0 < at < len(chunk.text):
            outcome.require_done()
        halves = (replace(chunk, text=t, name=chunk_name(t)) for t in (chunk.text[:at], chunk.text[at:]))
        one, other = (self.extract(half) if half.text.strip() else ExtractedChunk() for half in halves)
        offset = len(one.facts)
        causes = {**one.causes, **{n + offset: m + offset for n, m in other.causes.items()}}
        facts, refused = (*one.facts, *other.facts), (*one.refused, *other.refused)
        return ExtractedChunk(facts, causes, refused, one.talked or other.talked)


class _ExtractionTools:
    """The tools for one chunk: they take the model's facts and check them against the text."""

    def __init__(self, chunk: Chunk, brief: TextContext) -> None:
        self.chunk, self.brief = chunk, brief
        self.pieces = pieces(chunk.text)
        self.called = False
        self._facts: list[Fact] = []
        self._causes: dict[int, int] = {}
        self._refused: list[str] = []

    def tools(self) -> dict[str, Tool]:
        if self.brief.mode == "verbatim":
            return {TOOL_NAME: Tool(DESCRIBE_TASK, schema("describe"), self._describe, ends=True)}
        return {TOOL_NAME: Tool(KEEP_TASK, schema("keep"), self._keep, ends=True)}

    def result(self) -> ExtractedChunk:
        return ExtractedChunk(tuple(self._facts), dict(self._causes), tuple(self._refused))

    def _keep(self, given: Mapping[str, Any]) -> str:
        self.called = True
        places: dict[int, int] = {}
        for number, one in enumerate(given["facts"], 1):
            if fact := self._to_fact(one):
                if (cause := places.get(one.get("cause", 0))) is not None:
                    self._causes[len(self._facts)] = cause
                places[number] = len(self._facts)
                self._facts.append(fact)
        return f"kept {len(self._facts)}"

    def _describe(self, given: Mapping[str, Any]) -> str:
        self.called = True
        described = {one["n"]: one for one in reversed(given["facts"])}
        for number, piece in enumerate(self.pieces, 1):
            fact = Fact(piece, tags=self.brief.tags, when=when_in_text(piece, self.brief.at.date()))
            evidence = self._evidence(number - 1)
            self._facts.append(self._with_fields(fact, described.get(number, {}), evidence, piece))
        return f"kept {len(self._facts)}"

    def _to_fact(self, given: Mapping[str, Any]) -> Fact | None:
        what, quote = one_line(given["what"]), one_line(given["quote"])
        where = locate(quote, self.pieces) if quote else None
        if not what or (where is None and locate(quote, [self.chunk.text]) is None):
            self._refused.append(f"{what or quote} (no such words in the text: {quote[:80]})")
            return None
        evidence = [self.chunk.text] if where is None else self._evidence(where)
        missing = ", ".join(ungrounded_claims(what, evidence, self.brief.at.date()))
        wrong = f"the text does not say {missing} there" if missing else ""
        wrong = wrong or disagreement(what, [quote], evidence)
        if wrong:
            self._refused.append(f"{what} ({wrong})")
            if len(quote.split()) < SHORTEST_QUOTE or self._is_quoted(quote):
                return None
            what = quote
        quotes = () if what == quote else (Quote(quote),)
        fact = Fact(what, kind=given.get("kind", "world"), quotes=quotes)
        return self._with_fields(fact, {} if wrong else given, evidence, quote)

    def _is_quoted(self, quote: str) -> bool:
        """Whether a fact with these words as its text or quote was accepted already."""
        return any(quote in (fact.text, *(each.text for each in fact.quotes)) for fact in self._facts)

    def _with_fields(self, fact: Fact, given: Mapping[str, Any], evidence: Sequence[str], quote: str) -> Fact:
        """The fact with those of the model's further fields that the text supports."""
        day = self.brief.at.date()

        def supported(key: str) -> str | None:
            words = one_line(given.get(key) or "")
            holds = words and not ungrounded_claims(words, evidence, day)
            return words if holds and (key != "why" or not disagreement(words, evidence)) else None

        names = (link_name(name) for name in given.get("entities", ()))
        tags = ("-".join(tag.strip().strip("#").split()) for tag in given.get("tags", ()))
        grounded = (tag for tag in tags if tag and not ungrounded_claims(tag, [*evidence, self.chunk.text]))
        when = supported_when(given.get("when") or "", evidence, day)
        return replace(
            fact,
            kind=given.get("kind", fact.kind),
            when=when or fact.when or when_in_text(quote, day),
            where=supported("where"), who=supported("who"), why=supported("why"),
            entities=tuple(dict.fromkeys(n for n in names if is_grounded_name(n, evidence))),
            tags=tuple(dict.fromkeys((*self.brief.tags, *grounded))),
        )  # fmt: skip

    def _evidence(self, index: int) -> list[str]:
        """The text that supports a statement from a piece: the piece, its neighbours, the heading, context
        and title."""
        return [*nearby_turns(index, self.pieces), self.chunk.heading, self.brief.context, self.brief.title]
