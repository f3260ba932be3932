"""Extraction by a model: the facts of a text, chunk by chunk, and checks of these against it.

Extraction without a model shares the chunks.
"""

from __future__ import annotations

import calendar
import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any, Literal

from ua_memory.clients.messages import ONE_AUTHOR, TextForm, text_form, text_parts
from ua_memory.knowledge.entities import EntityRecords
from ua_memory.llm.model import Message, Model, prompt, user
from ua_memory.llm.model import TokenUsage as Tokens
from ua_memory.llm.tools import Bounds, Outcome, Tool, run_tools, schema
from ua_memory.markdown.fields import is_time
from ua_memory.records import Fact, Quote
from ua_memory.retain.subagent import SHORTEST_QUOTE, link_name, one_line
from ua_memory.text import calendar as text_calendar
from ua_memory.text import dates
from ua_memory.text.grounding import disagreement, is_grounded_name, locate, nearby_turns, ungrounded_claims
from ua_memory.text.noise import escape_tags
from ua_memory.text.patterns import late
from ua_memory.text.wording import spans

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


# -- the time that a model gives --------------------------------------------------------------------------


_DATE_PART = late(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?(?:[T ](\d\d:\d\d))?")


def supported_when(when: str, evidence: Sequence[str], said: date) -> str | None:
    """A model's `when` if the evidence supports it: the day it was said, or within a period that the evidence
    names. A time of day stays only if the evidence has it."""
    when = when.strip()
    if not is_time(when):
        return None
    text = "\n".join(evidence)
    days = _first_and_end(when)
    named = [(said, said + timedelta(days=1)), *dates.named_periods(text, said)]
    for span in (span for span in text_calendar.spans(text, said) if not span.sure):
        years = text_calendar.in_nearby_years(said, span.start.month, span.start.day)
        named += [(day, day + timedelta(days=1)) for day in years]
    if days is None or not any(start <= days[0] and days[1] <= end for start, end in named):
        return None
    clock = re.search(r"\d\d:\d\d", when)
    return when if not clock or clock[0] in text else dates.when_field(*days)


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
_LINE, _BLANK = late(r"\n(?=[^\n])"), late(r"\s(?=\S)")


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
            fact = Fact(piece, tags=self.brief.tags, when=dates.when_in_text(piece, self.brief.at.date()))
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
            what = self._with_speaker(quote)
        quotes = () if what == quote else (Quote(quote),)
        fact = Fact(what, kind=given.get("kind", "world"), quotes=quotes)
        return self._with_fields(fact, {} if wrong else given, evidence, quote)

    def _with_speaker(self, quote: str) -> str:
        """A quote with the name of who says it, in a conversation between named people."""
        parts = text_parts(self.chunk.above + self.chunk.text, self.brief.at, self.chunk.form)
        named = (part for part in parts if part.speaker and locate(quote, [part.text]) is not None)
        return next((f"{part.speaker}: {quote}" for part in named), quote)

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
            when=when or fact.when or dates.when_in_text(quote, day),
            where=supported("where"), who=supported("who"), why=supported("why"),
            entities=tuple(dict.fromkeys(n for n in names if is_grounded_name(n, evidence))),
            tags=tuple(dict.fromkeys((*self.brief.tags, *grounded))),
        )  # fmt: skip

    def _evidence(self, index: int) -> list[str]:
        """The text that supports a statement from a piece: the piece, its neighbours, the heading, context
        and title."""
        return [*nearby_turns(index, self.pieces), self.chunk.heading, self.brief.context, self.brief.title]
