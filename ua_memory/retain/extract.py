"""Extraction without a model: the speakers' own sentences that are worth keeping, verbatim.

`Extraction` reads a conversation turn by turn, `extract_without_model` a text; the parts of this file, in
order: words (cues and phrases, from `data/`), the sentences of a turn, the classifier that scores them, short
answers, conversations, texts, and their lists.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, tzinfo
from functools import cache
from itertools import groupby, pairwise
from math import exp, log
from typing import NamedTuple

from ua_memory.clients.messages import PERSON_NAME, TextPart, front_matter, speaker, text_parts
from ua_memory.clients.turns import Turn
from ua_memory.index.terms import STOP_WORDS, all_stop_words, is_english, query_spans, specific_words
from ua_memory.index.terms import words as words_of
from ua_memory.knowledge.entities import likeness
from ua_memory.records import Fact, Quote
from ua_memory.retain.extract_by_model import Chunk, ExtractedChunk, TextContext, pieces
from ua_memory.retain.subagent import PHRASES, Candidate, CandidateKind, one_line
from ua_memory.text import dates, foreign_dates, grounding, redaction
from ua_memory.text.calendar import A_MONTH, A_WEEKDAY, ALL_MONTHS, SHORT_WEEKDAYS
from ua_memory.text.grounding import terms
from ua_memory.text.names import (
    LABELS,
    NO_NAMES,
    ORDINARY,
    in_lexicon,
    is_foreign,
    name_candidates,
    names,
)
from ua_memory.text.noise import command
from ua_memory.text.patterns import data_text, late, table
from ua_memory.text.wording import (
    ANSWER_DASH,
    CHANGED,
    CODE,
    counted,
    goes_on,
    spans,
    standing_rule,
    stated_for_good,
)
from ua_memory.text.wording import sentences as plain_sentences

# -- words -------------------------------------------------------------------------------------------------
# Cues are features of the classifier, phrases are what the rules below ask for.


WORTH_KEEPING, MOMENTARY = "carries", "passes"
REFERS_BACK = "leans on another sentence"
_NAME = r"(?-i:(?<=[a-z,;] )(?:[A-Z][a-z]+(?:[A-Z]\w*)?|[A-Z][\w-]*[a-z]\w*)\b)"
_SPECIFIC = late(rf"{_NAME}|\d|`|/\w|\b(?:because|called)\b")
"""A name, number or path: with one a sentence can be understood alone though it opens with a pronoun."""
_ANCHORS = {"opens": "^", "words": r"\b", "parts": ""}
"""How a pattern is anchored. One common `\\b` takes a third of the time of one in every alternative."""


@dataclass(frozen=True, slots=True)
class Cue:
    """A pattern for a kind of words; it is matched against the text if `cased`, else against the lower-cased
    text.

    `group` is `carries` for what is worth keeping, `passes` for what only matters at the moment, or `sign`,
    which means nothing alone.
    """

    group: str
    pattern: re.Pattern[str]
    cased: bool


@cache
def worth_cues() -> Mapping[str, Cue]:
    """The cues by name."""
    patterns: dict[tuple[str, str, bool], list[str]] = {}
    for heading, pattern in table("cues.txt", name=_NAME, month=A_MONTH, weekday=A_WEEKDAY):
        kind, _, name = heading.partition(": ")
        group, *cased, anchor = kind.split()
        patterns.setdefault((name, group, bool(cased)), []).append(f"{_ANCHORS[anchor]}(?:{pattern})")
    return {
        name: Cue(group, late("|".join(alternatives), re.IGNORECASE if cased else 0), cased)
        for (name, group, cased), alternatives in patterns.items()
    }


def opens_with_cue(name: str, text: str) -> bool:
    return worth_cues()[name].pattern.match(text.lower()) is not None


def opens_as(name: str, text: str) -> bool:
    """Whether a text begins with a phrase: `opens_as("denies", "no, still red")`."""
    return PHRASES[name].match(text.strip()) is not None


def has_phrase(name: str, text: str) -> bool:
    """Whether a phrase is anywhere in a text."""
    return PHRASES[name].search(text) is not None


# -- sentences ---------------------------------------------------------------------------------------------
# The sentences of a turn, without code, tables, headings and quoted text.
#
# List markers with their task boxes, asterisks and underscores of bold and italic type, and line breaks are
# removed. Backquotes, links, punctuation and all words stay.


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence or list item. `quote` is its part of the turn with all markup, on one line.

    `lead` is the line that introduces its list ("Remaining:"), `heading` the last heading above it, both
    plain. `block` numbers the paragraphs and list items of the turn. `marker` is that of the list item ("-",
    "3."), empty for prose and for further sentences of the item; `nested`: the item is inside another;
    `last`: the sentence ends the turn; `joined`: it consists of several short items of one list. `speaker` is
    the name before a colon ("Helen: …") where the text has such labels.
    """

    text: str
    quote: str
    index: int
    block: int = 0
    marker: str = ""
    nested: bool = False
    heading: str = ""
    lead: str = ""
    last: bool = False
    joined: bool = False
    speaker: str = ""

    @property
    def with_speaker(self) -> str:
        """The text, with the speaker's name before it unless it has that."""
        named = not self.speaker or self.text.startswith(f"{self.speaker}:")
        return self.text if named else f"{self.speaker}: {self.text}"

    @property
    def is_item(self) -> bool:
        return bool(self.marker)

    @property
    def is_complete(self) -> bool:
        return bool(_SENTENCE_END.search(self.text))


LONGEST_TURN_END = 100_000
"""Characters of one turn that are read from either end: longer turns were pasted."""

_LONGEST_SENTENCE = 2_000
"""Most characters of a sentence; longer ones are skipped."""

_QUOTE_MARKS = '"„“”»«'
_SENTENCE_END = late(r"[.!?。！？…][\"'”“’»«)\]*_`]*$")
_FENCE = late(r"\s*(`{3,}|~{3,})")
_HEADING = late(r"\s{0,3}#{1,6}\s+(.*?)\s*#*$")
_ITEM = late(r"(\s*)(?:[-*+•◦]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?:[✅✓✔☑❌✗☐➜→]\ufe0f?\s+)?")
_NUMBERED_LINES = late(r"(?:^[ \t]*\d{1,3}[.)][ \t].*(?:\n|\Z))+", re.MULTILINE)
_CHECKED_ITEM = late(r"\s*(?:[✅✓✔☑❌✗☐]\ufe0f?|\[[ xX]\])\s+")
_NOT_PROSE = late(
    r"\s*(?:[|>]|[-=_*─]{3,}\s*$|[├└│┌┐┘↓↑➜$%]|</?[a-zA-Z][\w-]*[\s>]"
    r"|(?:\S+(?: \S+)*?(?<![.!?:,;]) {2,}){2}\S)"  # three columns
)
"""Tables, quotations, rules, drawings, shell prompts, markup: not the speaker's own words."""
_OUTPUT = late(
    r"\s*\[?(?:\d{4}-\d\d-\d\d[T ,]+|(?:[A-Z][a-z]{2} [ \d]\d ))\d\d:\d\d:\d\d\b"
    r"|\s*(?:[\w: ]{0,40}\b)?(?:\w+\.)+\w*(?:Exception|Error):\s|\s*(?:[a-z]|error|warning): \S+:\d+"
)
"""A line of a log, of an exception with its package, or of a compiler, also if it ends as a sentence does."""
_DUMP_STARTS = (
    r"[{}\[\]()]+[,;]?\s*$",  # nothing but brackets
    r"[{\[]\s*[\"'{\[]|\"?[\w-]+\"?:\s\S.*,\s*$",  # JSON
    r"at\s+\S+\s*\(|File \"|Traceback |(?:E\s+)?(?:\w+)?Error\b:?\s|E {3}",  # a traceback; pytest's lines
    r"[\w./-]+:\d+(?::\d+)?:?(?:\s|$)",  # a compiler's place: main.c:12:5
    r"diff --git|@@ |[+-]{3} [ab]/",
    r"[\w.$]+\s*=\s*\S.*[;{(]\s*$",  # an assignment
    r"(?:import|from|const|let|var|def|class|function|export|return)\b.*[;:{(]\s*$",
)
_DUMP_VALUE = r"\s*(?:\"?[\w-]+\"?:\s+)?[\"{\[].*[\"\]},]\s*$"
_DUMP = late(rf"\s*(?:{'|'.join(_DUMP_STARTS)})|.*(?:[{{}};]|=>|\\)\s*$|.*\{{\"|{_DUMP_VALUE}")
"""Output and code."""
_BOLD = late(r"(\*\*\*|\*\*|__)(?=\S)(.{1,300}?)(?<=\S)\1")
_ITALIC = late(
    r"(?<![\w*])\*(?=[^\s*])([^*]+?)(?<=[^\s*])\*(?![\w*])|(?<![\w_])_(?=[^\s_])([^_]+?)(?<=[^\s_])_(?![\w_])"
)
_NEXT_WORD = late(r"[\"'„“«(]*([^\W\d_]+)")

_SPEAKER_LABEL = late(rf"[*_]*({PERSON_NAME})\s?:[*_]* (?=\S)((?:I|Ich|Je|J['’]|Yo|Eu|Io)\b)?")
"""A speaker's name, and whether they say "I"."""
_FIELD = late(
    r"[*_]*([A-ZÀ-Þ](?:[^:.!?\n]|\.(?= \d)){1,40}?|(?:morgen|mittag|abend|nacht)s|matin|midi|soir|morning"
    r"|noon|evening|night) ?:[*_]* *(?=\S)"
)
"""A label and its value, as in a form."""
_GAP = late(r"^([*_]*[A-ZÀ-Þ][^\W\d_]*(?:[ /'’.-]{1,2}[^\W_]+){0,4}\.?)(?: {2,}|\t+)(?=\S)(?!.*(?: {2}|\t))")
"""A label and its value as two columns: "Validity     30 days"."""
_CONTACT = late(
    r"[^\W\d_].*(?:(?<![\w.,/-])(?:\+|0)\d[\d /()-]{5,}\d|\b\d{3}-\d{4}\b|\b\d{2,4}(?: \d{2,4}){2,}"
    r"|[\w.+-]+@[\w-]+\.\w+)"
)
_WRAPPED_LINE = 60
"""A line of so many characters without an end continues in the next one, as editors wrap text."""


def sentences(text: str) -> list[Sentence]:
    """All sentences of one turn, in order. Of a very long turn only the beginning and the end are read."""
    if len(text) > 2 * LONGEST_TURN_END:
        text = text[:LONGEST_TURN_END] + "\n\n" + text[-LONGEST_TURN_END:]
    found: list[Sentence] = []
    speakers, speaker, begin = _speakers(text), "", 0
    apart = len(speakers) < 2 or max(speakers.values()) < 2  # as the labels of a form are
    for number, block in enumerate(_blocks(text)):
        label = _label(block.text)
        if label or apart or block.text.endswith(":"):
            speaker = label[1] if label and label[1] in speakers else ""
        for n, (start, end) in enumerate(spans(block.text)):
            quote = one_line(block.text[start:end])
            if len(quote) > _LONGEST_SENTENCE:
                continue
            said = without_markup(quote)
            if speaker and n == 0:
                said = re.sub(rf"^{re.escape(speaker)}\s:", f"{speaker}:", said)  # as in French
            if any(letter.isalpha() for letter in said):
                marker = block.marker if n == 0 else ""
                where = (len(found), number, marker, block.nested, block.heading, block.lead)
                found.append(Sentence(said, quote, *where, speaker=speaker))
                begin = start
            elif found and found[-1].block == number:  # a stray sign: the quote of both is still verbatim
                found[-1] = replace(found[-1], quote=one_line(block.text[begin:end]))
    if found and text.rstrip().endswith(found[-1].quote[-20:]):
        found[-1] = replace(found[-1], last=True)
    return found


def _label(line: str) -> re.Match[str] | None:
    """A speaker's label: a name before a colon at the beginning of a line."""
    found = _SPEAKER_LABEL.match(line)
    known = found and (found[1] in NO_NAMES or found[1].casefold() in LABELS)
    return None if known else found


def _speakers(text: str) -> Counter[str]:
    """The speakers of a text, and the number of their labels, of which one before "I" counts as two; none
    unless one label is no English word, or its speaker says "I"."""
    labels = [label for label in map(_label, text.splitlines()) if label]
    certain = any(label[2] or not in_lexicon(label[1].split()[0]) for label in labels)
    return Counter(label[1] for label in labels if certain for _ in range(2 if label[2] else 1))


def without_markup(text: str) -> str:
    """The text without the asterisks and underscores of bold and italic type, except in code."""
    parts, at = [], 0
    for code in CODE.finditer(text):
        parts += [_without_emphasis(text[at : code.start()]), code[0]]
        at = code.end()
    spread = "".join([*parts, _without_emphasis(text[at:])])
    # Bold type around code ("**`name`** does …") spans several of these parts.
    return _BOLD.sub(r"\2", spread).strip() if "**" in spread else spread.strip()


def _without_emphasis(text: str) -> str:
    if "*" not in text and "_" not in text:
        return text
    return _ITALIC.sub(lambda m: m[1] or m[2], _BOLD.sub(r"\2", text))


@dataclass(slots=True)
class _Block:
    """A paragraph or one list item, with the heading and the lead above it. `apart`: no line stands right
    above it."""

    text: str
    marker: str
    nested: bool
    heading: str
    lead: str
    apart: bool = False


def _blocks(text: str) -> Iterator[_Block]:
    heading = lead = fence = ""
    days = frozenset(_days_by_number(text))
    open_block: _Block | None = None
    dumped, kind = False, "blank"
    for line in text.splitlines():
        apart = kind != "prose" and kind != "item"
        mark = _FENCE.match(line)
        if fence or mark:
            if mark and not fence:
                fence = mark[1]
            elif mark and line.strip() == mark[1] and mark[1].startswith(fence):
                fence = ""
            kind = "break"
        else:
            kind = "prose" if line in days else _line_kind(line)
            # A dump ends at an empty line.
            dumped = kind != "blank" and (dumped or kind == "dump")
            kind = "break" if dumped else kind
        if open_block and (kind != "prose" or not _continues(open_block, line)):
            yield open_block
            # A line that ends in a colon introduces the list below it.
            if not open_block.marker:
                is_lead = open_block.text.rstrip(" *_").endswith(":")
                lead = without_markup(one_line(open_block.text)) if is_lead else ""
            open_block = None
        if kind == "heading":
            heading, lead = without_markup(_HEADING.match(line)[1]), ""  # type: ignore[index]
        elif kind == "item":
            marker = _marker(line)
            assert marker
            nested = len(line) - len(line.lstrip()) > 1
            open_block = _Block(line[marker.end() :], one_line(marker[0]), nested, heading, lead)
        elif kind == "prose" and open_block:
            open_block.text += "\n" + line
        elif kind == "prose":
            lead = ""
            open_block = _Block(line.strip(), "", False, heading, lead, apart)
    if open_block:
        yield open_block


def _marker(line: str) -> re.Match[str] | None:
    """The marker of a list item."""
    return _ITEM.match(line) or _CHECKED_ITEM.match(line)


def _days_by_number(text: str) -> Iterator[str]:
    """The lines that begin with a day ("1. Februar"), as all numbered lines next to them do."""
    for run in _NUMBERED_LINES.finditer(text):
        lines = run[0].splitlines()
        words = (_NEXT_WORD.match(line.lstrip(" \t0123456789.)")) for line in lines)
        if all(word and foreign_dates.is_month(word[1]) for word in words):
            yield from lines


def _line_kind(line: str) -> str:
    if not line.strip():
        return "blank"
    if _HEADING.match(line):
        return "heading"
    if _marker(line):
        return "item"
    if _OUTPUT.match(line) or (_DUMP.match(line) and not _SENTENCE_END.search(line)):
        return "dump"
    if _NOT_PROSE.match(line) or line.startswith(("    ", "\t")):
        return "break"
    return "prose"


def _continues(block: _Block, line: str) -> bool:
    """Whether a line continues the one above, as a wrapped line does."""
    if _SPEAKER_LABEL.match(line) or PHRASES["salutation"].fullmatch(block.text.strip()):
        return False
    above = block.text.rsplit("\n", 1)[-1].rstrip()
    cut = has_phrase("cut off", above) and len(above) >= _WRAPPED_LINE
    forms = ((_FIELD, _GAP), (_CONTACT,))
    if not cut and any(all(any(f.match(one) for f in of) for one in (line, block.text)) for of in forms):
        return False
    if above.endswith((":", ".", "!", "?")) and not goes_on(above, line):
        return line.startswith("  ") and bool(block.marker)
    if above.endswith((",", ".")) or has_phrase("cut off", above) or len(above) >= _WRAPPED_LINE:
        return True
    # In a chat each line is one message, and mostly all of them begin small.
    wrapped = block.text.lstrip()[:1].isupper() and line[:1].islower()
    return wrapped or (bool(block.marker) and line.startswith("  "))


# -- classifier --------------------------------------------------------------------------------------------
# How likely a sentence is worth keeping: logistic regression over cues and its place in the conversation.


THRESHOLD = {"person": 0.5, "assistant": 0.6}
TALK_THRESHOLD, LONG_TALK = {"person": 0.25, "assistant": 0.6}, 20
LONG_THRESHOLD, LONG_CONVERSATION = {"person": 0.84, "assistant": 0.92}, 170
"""The probability from which a sentence of each speaker is kept; in a talk of so many turns of persons in
which no tool is called, where nine of ten that a person says are worth keeping from there on; and in a long
conversation at work, in which the speaker says at least so many sentences: the longer it is, the more of it
is overtaken by its end, an agent's words sooner than a person's."""


@dataclass(frozen=True, slots=True)
class Context:
    """Where a sentence was said. `closing`: its turn is the assistant's last before a person spoke again;
    `final`: the conversation ends with it; `proposal`: the turn asks for permission; `refused`, `confirmed`:
    the person's answer; `denies`: the person says that the assistant's claim is wrong; `heard`: the terms of
    what the person has said, if the assistant answers at once."""

    person: bool
    closing: bool = False
    final: bool = False
    proposal: bool = False
    refused: bool = False
    confirmed: bool = False
    denies: bool = False
    heard: frozenset[str] = frozenset()


_LOG_LINE = late(
    r"\[?(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d\S*\s+\[?(?:ERROR|WARN|INFO|DEBUG|TRACE|FATAL|CRITICAL)"
)
"""A line of a log."""
_CODE_LIKE = late(r"`[^`]*`|\S*[/\\]\S*\.\w+|\b[\w-]+\.(?:[a-z]{1,4})\b|\w+\(\)")


@dataclass(frozen=True, slots=True)
class Score:
    """The probability that a sentence is worth keeping, and the names of the cues in it, heaviest first."""

    value: float
    cues: tuple[str, ...]


NO_SCORE = Score(0.0, ())
CONFIRMED = 3.0
"""Log-odds that an agent's sentence gains if the person confirms it."""
NEW_STATE = 1.0
"""Log-odds of an agent's sentence about how things are after a change, which ends what was said of them, or
about what is left for later."""
RESTATED = 2.0
"""Log-odds of an agent's sentence that says in its words what the person has just settled."""
LEFT_TO_DO, REQUEST, UNDECIDED, CORRECTS_CLAIM, ENDS = 2.3, -3.0, -3.0, 2.0, 1.5
"""Log-odds of a person's sentence that says what is still to be done, which is rare among the labelled ones;
of one that asks for something to be done now; of one that only weighs whether to do something; of one right
after "that's wrong"; and of one that ends or replaces what held, or else what held is all that is kept."""
INTRODUCTION, SETTLED = Score(0.9, ("about a person",)), Score(0.8, ("decision",))
TOLD = Score(0.8, ("detail",))
RULE_SCORE = Score(1.0, ("standing rule",))
"""The score of a person's standing rule, which is always kept, as a preference."""


@cache
def _weights() -> dict[str, dict[str, float]]:
    """The weights of the features, in log-odds, by speaker: learned by `benchmarks/worth.py` from labelled
    sentences."""
    return {who: dict(some) for who, some in json.loads(data_text("worth.json"))["weights"].items()}


def score(sentence: Sentence, context: Context) -> Score:
    """The probability that a sentence is worth keeping in its context; `NO_SCORE` if it is no statement."""
    if only_secrets(sentence.text):
        return NO_SCORE
    told = _told_score(sentence) if context.person else None
    if told or not (context.person or is_statement(sentence, person=False)):
        return told or NO_SCORE
    weights = _weights()["person" if context.person else "assistant"]
    found = {name: weights.get(name, 0.0) * value for name, value in features(sentence, context).items()}
    offer = opens_as("offers", sentence.lead) or opens_as("offers", sentence.text)
    guess = not context.confirmed and (offer or {"not settled", "reason"} <= found.keys())
    bare = {"claims a change", "under 8 words"} <= found.keys() and not _SPECIFIC.search(sentence.text)
    if not context.person and (guess or bare):
        return NO_SCORE
    changed = (
        not context.person
        and context.closing
        and (
            any(has_phrase(how, sentence.text) for how in ("new state", "ends what held"))
            or opens_as("leaves for later", sentence.text)
        )
    )
    restates = sentence.index == 0 and context.heard and opens_as("restates", sentence.text)
    restated = restates and not context.heard.isdisjoint(terms(sentence.text))
    more = CONFIRMED * context.confirmed + NEW_STATE * changed + RESTATED * bool(restated)
    if context.person:
        more += LEFT_TO_DO * ("left to do" in found) + REQUEST * ("request" in found)
        weighs = "undecided" in found and not re.search(r"\d", sentence.text)
        more += UNDECIDED * weighs + CORRECTS_CLAIM * (context.denies and sentence.index == 1)
        more += ENDS * has_phrase("ends what held", sentence.text)
    value = 1 / (1 + exp(-sum(found.values()) - more))
    carrying = (name for name, cue in worth_cues().items() if cue.group == WORTH_KEEPING)
    heaviest = sorted(((found[name], name) for name in carrying if found.get(name, 0) > 0), reverse=True)
    return Score(round(value, 3), tuple(dict.fromkeys(name for _, name in heaviest)) or ("statement",))


def _told_score(sentence: Sentence) -> Score | None:
    """The score of a person's sentence if its words alone decide: also `NO_SCORE`, if it is no statement."""
    text = sentence.text
    if opens_as("leaves for later", text) and is_statement(sentence, person=True):
        return TOLD
    if standing_rule(text) and not text.endswith(":") and not opens_as("asks", text):
        return RULE_SCORE
    if _introduces(text):
        return INTRODUCTION
    if not is_statement(sentence, person=True) or opens_as("rules out", text):
        return NO_SCORE
    if opens_as("tells", text) or opens_as("tells by asking", text):
        return TOLD
    settles = opens_as("settles", text) and _has_unknown(text)
    return SETTLED if settles or opens_as("concludes", text) else None


def _introduces(text: str) -> bool:
    """Whether somebody says their name."""
    found = PHRASES["introduces"].match(text)
    name = found["named"] if found else ""
    ordinary = in_lexicon(name.lower()) or name.lower() in STOP_WORDS
    return bool(found and name not in NO_NAMES and not (found["only"] and ordinary))


def features(sentence: Sentence, context: Context) -> dict[str, float]:
    """The features of a sentence in its context, each with its value."""
    text = PHRASES["tag"].sub("", sentence.text)
    small = text.lower()
    seen = (name for name, cue in worth_cues().items() if cue.pattern.search(text if cue.cased else small))
    found = dict.fromkeys(seen, 1.0)
    words, above = _length(text), f"{sentence.heading} {sentence.lead}"
    opens = sentence.index == 0 and not sentence.is_item
    holding = {
        "bias": True,
        "under 5 words": words < 5,
        "under 8 words": words < 8,
        "over 15 words": words > 15,
        "over 30 words": words > 30,
        "item": sentence.is_item,
        "short list": sentence.joined,
        "list of values": sentence.joined and all(re.search(r"\d", item) for item in text.split("; ")),
        "nested": sentence.nested,
        "introduced": bool(sentence.lead),
        "good place": has_phrase("heading of results", above),
        "under a plan": has_phrase("heading of plans", above),
        "first": opens and not sentence.last,
        "all that is said": opens and sentence.last,
        "last": sentence.last and sentence.index > 0,
        "late": sentence.index > 8,
        "closing": context.closing,
        "final": context.final,
        "proposal": context.proposal,
        "refused": context.refused,
    }
    found |= {name: 1.0 for name, holds in holding.items() if holds}
    found["length"] = log(words + 1) - 2.3
    return found


def only_secrets(text: str) -> bool:
    """Whether a text had secrets that were removed, and nothing but their names is left."""
    left, count = redaction.MARKER.subn(" ", text)
    if not count:
        return False
    if _UNSPACED.search(left := PHRASES["credential"].sub(" ", left)):
        return len(_KANA.sub("", left)) < 3
    return len({word for word in words_of(left) if len(word) > 1} - STOP_WORDS - all_stop_words()) < 2


_KANA = late(r"[ぁ-ん\W]")
_UNSPACED = late("[ぁ-んァ-ン一-龯가-힣]")
_WORD = late(r"[^\W\d_]{1,2}|\d+")
"""Words in a script without blanks: two letters count as one word."""


def _without_speaker(sentence: Sentence) -> str:
    return sentence.text.removeprefix(f"{sentence.speaker}: ")


def is_statement(sentence: Sentence, person: bool) -> bool:
    """Whether a sentence is a statement."""
    return not why_no_statement(sentence, person)


def why_no_statement(sentence: Sentence, person: bool) -> str:
    """Why a sentence is no statement, '' if it is one: neither too short nor too long, not cut off, and no
    row of names, line of a log, question or pleasantry."""
    text, said = sentence.text, _without_speaker(sentence)
    if _LOG_LINE.match(text) or PHRASES["salutation"].fullmatch(text) or opens_as("pleasantry", text):
        return "a greeting, a pleasantry or a line of a log"
    telling = person and (has_phrase("tag", text) or opens_as("tells by asking", text))
    if _asks(said) and not telling:
        return "a question"
    if opens_as("courtesy", said) and not _SPECIFIC.search(said):
        return "a courtesy"
    if opens_as("jests", said) if person else has_phrase("notes it", said):
        return "a joke" if person else "a courtesy"
    words = _words(text)
    told = opens_as("tells", text) or (opens_as("short appointment", text) and _has_value(text))
    least = 3 if person and told else 5 - person
    if len(words) < least:
        return f"{counted(len(words), 'word')}, fewer than {least}"
    if len(words) > 80 or len(text) > 600:
        return "too long"
    complete = person or sentence.is_complete or sentence.marker
    if not complete or text.endswith(":") or has_phrase("cut off", text):
        return "not complete"
    enough = _spoken(text) >= (1 if person and told else min(4, least))
    return "" if enough else "mostly code or numbers"


def _spoken(text: str) -> int:
    """The number of words in a text, each piece of code beside at least two others as one; 0 if most are
    numbers."""
    plain, code = (text, 0) if _UNSPACED.search(text) else _CODE_LIKE.subn(" ", text)
    words = _words(plain)
    spoken = sum(word.lstrip("\"'„“«(")[:1].isalpha() for word in words)
    length = sum(any(map(str.isalnum, word)) for word in words)  # French has blanks before its colons and €
    return 0 if 2 * spoken < length else spoken + code if spoken > 1 else spoken


# -- answers -----------------------------------------------------------------------------------------------
# Many people answer in a word or two: "which port?", "5432". Such an answer is kept together with what the
# assistant has asked.


_ASKS = "?", "？"
ANSWER, REMARK = Score(0.9, ("answer",)), Score(0.6, ("remark with a number",))
LIMIT, CORRECTION = Score(0.8, ("limited assent",)), Score(0.6, ("correction",))
_LONGEST_ANSWER, _LONGEST_REMARK = 30, 14
"""Most words of a person's answer to a question, and of a short remark with a number."""
_LONGEST_VALUE = 4
"""Most words of another value in place of the one before."""
_SHORT_QUESTION, _LONGEST_QUESTION = 4, 160
"""A question of fewer words is kept with the sentence before it; none is kept with more characters."""
_OPTION = late(
    r"(?:^[ \t]*(?:[-*] )?(?:\*\*)?(\d{1,2}|[a-eA-E])[.)]\*{0,2}|\(([a-e]|\d)\))[ \t]+"
    r"((?:(?!\([a-e\d]\) )[^\n])+)",
    re.MULTILINE,
)
"""One of several things to choose from: "2) Postgres" in a line, "(b) Postgres" anywhere."""
_STANDS_ALONE = 4
"""Words from which a remark is understood without what the assistant has just said."""


def _question_in(said: Sequence[Sentence]) -> str:
    """What a short answer to an assistant's turn is about: its last question, if one of the last three
    sentences is one, else its last sentence, and the one before if that is very short. Nothing if they ask
    for a secret, or if the turn ends with the options to choose from."""
    said = said[-3:]
    asked = [n for n, one in enumerate(said) if _asks(one.text)]
    if any(redaction.names_secret(one.text) for one in said) or (said and said[-1].is_item and not asked):
        return ""
    said = said[: asked[-1] + 1] if asked else said
    text, before = said[-1].text if said else "", said[-2] if len(said) > 1 else None
    about_it = asked and before and has_phrase("of it", text) and _length(before.text) >= _SHORT_QUESTION
    short = about_it or _length(text) < _SHORT_QUESTION
    if before and short and (before.text.endswith(_ASKS) or not before.is_item):
        text = f"{before.text} {text}"
    text += "?" if asked and not text.endswith(_ASKS) else ""
    least = 2 if asked and has_phrase("asks what", text) else _SHORT_QUESTION - 1
    return text if len(text) <= _LONGEST_QUESTION and _length(text) >= least else ""


def _options_in(turn: Turn) -> dict[str, str]:
    """What an assistant's turn lets a person choose from, by number or letter."""
    found = [(one[1] or one[2], without_markup(one[3].strip(" ,;."))) for one in _OPTION.finditer(turn.text)]
    options = {mark.lower(): text for mark, text in found if text}
    return options if len(options) == len(found) > 1 else {}


def _chosen(text: str, options: Mapping[str, str]) -> str:
    """The options that a person's turn chooses, if it says no more than that: "2 and 3", "option b"."""
    only = PHRASES["chooses options"].fullmatch(text.strip())
    marks = re.findall(r"\b(?:\d{1,2}|[a-e])\b", only["which"].lower()) if only else []
    return "; ".join(options[mark] for mark in marks) if all(mark in options for mark in marks) else ""


def _asks(text: str) -> bool:
    """Whether a sentence is a question, if need be without its mark."""
    return text.endswith(_ASKS) or opens_as("asks", text)


def _words(text: str) -> list[str]:
    """The words of a text, also in a script without blanks."""
    return _WORD.findall(text) if _UNSPACED.search(text) else text.split()


def _length(text: str) -> int:
    return len(_words(text))


def _asks_what(question: str) -> bool:
    return _is_question(question) and has_phrase("asks what", question)


def _is_open(question: str) -> bool:
    """Whether a value or a choice answers a question, as it does not answer "shall I begin?"."""
    named = _has_value(question) or opens_as("chooses", question)
    return bool(named or _asks_what(question) or _length(question) < 3)


def _is_question(text: str) -> bool:
    """Whether a text asks for more than a permission, or than whatever comes to mind."""
    if has_phrase("asks nothing", text) and (
        not has_phrase("asks for a choice", text) or has_phrase("of the moment", text)
    ):
        return False
    return text.endswith(_ASKS)


def _answer_score(question: str, text: str) -> Score | None:
    """The score of a person's turn, if it is a short answer or a short remark with a number."""
    words, rest = _length(text), text[PHRASES["mere assent"].match(text).end() :]  # type: ignore[union-attr]
    says = any(map(str.isalnum, rest)) and not has_phrase("answers nothing", text) and not only_secrets(text)
    back = opens_as("takes back", text) or opens_as("denies", text)
    back = back and not opens_as("outdates", text)
    if not question or words > _LONGEST_ANSWER or not says or back:
        return None
    if redaction.tells_secret(text) or _is_pasted(text):
        return None
    if _asks_what(question):
        return ANSWER
    proposes = question.endswith(_ASKS) or has_phrase("proposes to", question)
    if proposes and opens_as("limits", text) and not has_phrase("of the moment", question):
        return LIMIT
    if _is_question(question) and opens_as("names another", text) and _has_unknown(text):
        return None if has_phrase("of the moment", question) else ANSWER
    asks = any(opens_with_cue("request", part) for part in re.split(r"[.,;!]\s+", text))
    numbers, known = (set(re.findall(r"\b\d+", each)) for each in (rest, question))
    repeats = (
        numbers and numbers <= known and all(map(_has_digit, specific_words(text)))
    )  # "ah, at 3:15 then"
    value = _has_digit(rest) or (proposes and _has_value(rest) and not has_phrase("of the moment", question))
    with_number = value and not repeats and not _DUMP.match(text)
    return REMARK if with_number and words <= _LONGEST_REMARK and not asks else None


def _without_rules(turn: Turn, said: Sequence[Sentence]) -> tuple[Turn, list[Sentence]]:
    """A turn without the standing rules that stand alone in it beside another sentence, and these rules."""
    text, rules = one_line(turn.text), list[Sentence]()
    for one in said:
        rule = stated_for_good(one.text) and standing_rule(one.text) and is_statement(one, person=True)
        if rule and not opens_with_cue(REFERS_BACK, one.text) and one.quote in text:
            text, rules = text.replace(one.quote, "", 1).strip(), [*rules, one]
    return (replace(turn, text=text), rules) if rules and text else (turn, [])


def _is_pasted(text: str) -> bool:
    """Whether a turn is output or code of several lines, or lines of a log."""
    lines = text.strip().splitlines()
    return any(_LOG_LINE.match(line) or (len(lines) > 1 and _DUMP.match(line)) for line in lines)


def _has_unknown(text: str) -> bool:
    """Whether a text has a word that is no plain English one: most names, and all of other languages."""
    return not all(in_lexicon(word.lower()) for word in re.findall(r"[^\W\d_]{3,}", text))


def _answer(question: str, found: Score, turn: Turn, zone: tzinfo | None, leans: bool = False) -> Candidate:
    """A person's short turn as a candidate, after what it answers or corrects unless it is understood alone;
    if it `leans` on that, always."""
    quote = one_line(turn.text)
    sentence = Sentence(without_markup(quote), quote, 0)
    candidate = _to_candidate(([sentence], found), turn, Context(person=True), zone)
    alone = not leans and not _is_question(question)
    words = [end - start for start, end, small in query_spans(quote) if not small and quote[start].isalpha()]
    if alone and (sum(size > 1 for size in words) >= _STANDS_ALONE or opens_as("tells", quote)):
        return candidate
    return replace(candidate, text=f"{question} – {candidate.text}")


# -- extraction from conversations -------------------------------------------------------------------------
# Sentences are scored one by one, and those above the threshold are kept verbatim. Sentences that refer to
# each other are kept as one passage, repetitions are merged, a later value replaces an earlier one, and what
# the person denies is dropped. Memory use is bounded by what is kept, not by what is read.


MOST_STATEMENTS = 300
"""Most statements of one conversation: the likeliest are kept, `Extraction.left_out` counts the others."""
_PASSAGE_SENTENCES, _PASSAGE_LENGTH = 3, 360
"""Most sentences, and most characters, of one passage."""
_SAME_WORDS = 0.7
"""Two statements with this share of their words in common say the same."""
_LOW_THRESHOLD = 0.25
"""The probability from which a sentence is kept that refers to the one before, which is kept."""
_SHORT_ITEM, _LONG_LEAD = 4, 10
"""In words: shorter items are joined with the rest of their list; a longer lead does not introduce it."""
_VALUE = late(rf".*\d|(?:{A_MONTH}|{A_WEEKDAY})$")
_VALUE_WORD = late(r"[^\W\d_]{3,}")
_NUMBERED = late(
    rf"\b(?!{A_MONTH}\b)([^\W\d_]{{3,}}(?<!s)) #?(\d[\w.-]*)"
    r" (?:is|are|was|has|[^\W\d_]{2,}s|[^\W\d_]{3,}(?:t|ed))\b",
    re.IGNORECASE,
)
"""A noun with its number, and a verb: "room 12 costs"."""
_CHANGE_WORDS = terms("back set planned make lets again")
"""Words about a change of a value that do not say what the value is of."""


def extract(turns: Iterable[Turn], *, likely: float | None = None) -> list[Candidate]:
    """The statements of these turns that are worth keeping, in the order in which they were said.

    `likely` is a threshold in place of the speakers' own. The text is verbatim: removing secrets is up to the
    caller.
    """
    extraction = Extraction(likely=likely)
    for turn in turns:
        extraction.add(turn)
    return extraction.best()


class Unkept(NamedTuple):
    """A person's sentence, and why extraction does not keep it."""

    text: str
    why: str


def why_not_kept(turns: Sequence[Turn], kept: Iterable[Candidate]) -> Iterator[Unkept]:
    """A person's sentences in these turns that are in no statement `kept`."""
    extraction = Extraction()
    for turn in turns:
        extraction.add(turn)
    quotes, least = " ".join(" ".join(one.quote.split()) for one in kept), extraction.threshold("person")
    for one in (one for turn in turns if turn.role == "person" for one in sentences(turn.text)):
        found = score(one, Context(person=True)).value
        known = found >= least and "said before, in another statement, or taken back"
        why = known or why_no_statement(one, person=True) or f"score {found:.2f}, less than {least:.2f}"
        if " ".join(one.quote.split()) not in quotes:
            yield Unkept(one.text, why)


@dataclass(slots=True)
class _PlacedCandidate:
    """A candidate with its position in the conversation and the terms it is compared by."""

    candidate: Candidate
    order: tuple[int, int]
    terms: frozenset[str]
    subject: frozenset[str] = frozenset()
    """If it has a number: its terms without the value, and without words that say that it changed."""
    duplicates: int = 0
    """The number of near-duplicates that were merged into it."""


_CORRECTING = "corrects", "slips", "judges", "picks another", "rechooses", "outdates", "overrules"
_OF_SAME_THING = "corrects", "slips"
"""Phrases by which a person may correct what they said in an earlier turn; and those of them after which
common terms are enough."""


class Extraction:
    """Extracts the best statements of turns that are added one by one."""

    def __init__(
        self, zone: tzinfo | None = None, most: int = MOST_STATEMENTS, likely: float | None = None
    ) -> None:
        self.left_out = 0
        """The number of statements left out, since there are too many."""
        self.duplicates = 0
        """The number of near-duplicates left out; known after `best`."""
        self._zone, self._limit, self._given_threshold = zone, most, likely
        self._sentence_counts, self._turns_by = Counter[str](), Counter[str]()
        """The number of sentences of each speaker, and of turns of each role."""
        self._turns = 0
        self._pending_turn: tuple[int, Turn, frozenset[str]] | None = None
        """The assistant's latest turn, scored with the turn after it as context, and the terms of what it
        answers."""
        self._heard = frozenset[str]()
        """The terms of the latest turn, if it is the person's."""
        self._options: dict[str, str] = {}
        """What the assistant's latest turn lets the person choose from."""
        self._candidates: dict[int, _PlacedCandidate] = {}
        self._by_term: dict[str, set[int]] = {}
        self._count = 0
        self._person_turn = 0
        """The number of the person's latest turn."""
        self._open = False
        """Whether the assistant's latest turn asks something that a value or a name answers."""
        self._question = self._value = self._last_said = ""
        """What the assistant's latest turn ends with, until the person has answered; its last sentence
        with a value, if it has one; and what the person's latest turn ends with."""

    def add(self, turn: Turn) -> None:
        """Add a turn, in the order of the conversation."""
        self._turns += 1
        self._turns_by[turn.role] += 1
        self._score_pending_turn(turn)
        if turn.role == "person":
            self._add_person_turn(turn)
        elif turn.role == "assistant":
            self._pending_turn = (self._turns, turn, self._heard)
        self._heard = terms(turn.text) if turn.role == "person" else frozenset[str]()

    def _add_person_turn(self, turn: Turn) -> None:
        """Drop what a person takes back or denies, and join what they correct with the correction."""
        another = opens_as("rechooses", turn.text) or opens_as("picks another", turn.text)
        if opens_as("takes back", turn.text) and not another:
            self._drop(range(self._person_turn, self._person_turn + 1))
        since = range(self._person_turn + 1, self._turns)
        if opens_as("denies", turn.text):
            self._drop(since)
        elif opens_as("says otherwise", turn.text) and not self._question.endswith(_ASKS):
            self._drop(since, terms(turn.text))
        self._drop_guess("refutes", turn.text, since, "assistant")
        self._drop_guess("concedes", turn.text, range(self._turns))
        if corrected := self._find_corrected(turn.text):
            self._last_said = ""
        self._person_turn = self._turns
        context = Context(person=True, denies=opens_as("says wrong", turn.text))
        self._score_turn(self._turns, turn, context)
        if corrected in self._candidates:
            self._join_correction(corrected, turn)
        self._question, self._open, self._options = "", False, {}

    def best(self) -> list[Candidate]:
        """The statements worth keeping, in the order in which they were said."""
        self._score_pending_turn(None)
        said = sorted(self._candidates.values(), key=lambda each: each.order)
        kept = [each for each in said if each.candidate.score >= self.threshold(each.candidate.who)]
        self.duplicates = sum(each.duplicates for each in kept)
        return [each.candidate for each in kept]

    def _score_pending_turn(self, following: Turn | None) -> None:
        if self._pending_turn:
            (number, turn, heard), self._pending_turn = self._pending_turn, None
            self._score_turn(number, turn, replace(_assistant_context(turn, following), heard=heard))

    def threshold(self, who: str) -> float:
        """The least score of a speaker's statement: it rises with the length of the conversation at work, and
        falls with that of a talk."""
        long = min(1.0, self._sentence_counts[who] / LONG_CONVERSATION)
        at_work = THRESHOLD[who] + (LONG_THRESHOLD[who] - THRESHOLD[who]) * long
        turns, tools = self._turns_by["person"], self._turns_by["tool"]
        talk = min(1.0, turns / LONG_TALK) * max(0.0, 1 - tools / (turns or 1))
        return self._given_threshold or at_work + (TALK_THRESHOLD[who] - at_work) * talk

    def _score_turn(self, number: int, turn: Turn, context: Context) -> None:
        typed = command(turn.text.strip()) if context.person else None
        said = sentences(typed[1] if typed else turn.text)
        if not context.person:
            self._note_question(said)
            self._options = _options_in(turn)
        if turn.echo:  # an agent that repeats a tool's output says nothing of its own
            echo = grounding.words_only(turn.echo)
            said = [one for one in said if not grounding.mostly_repeats(one.text, echo)]
        self._sentence_counts[turn.role] += len(said)
        if context.person:
            said = self._reply(number, turn, said, context, typed=bool(typed))
        elif self._drop_disproved(turn, said):
            context = replace(context, confirmed=True)
        leans = bool(said) and said[0].index < 0  # a poor remark must not be joined with what it is about
        likely = self._given_threshold or (THRESHOLD if leans else TALK_THRESHOLD)[turn.role]
        for passage in _passages(join_lists(said), context, likely):
            if context.refused and any(has_phrase("suggests", one.text) for one in passage[0]):
                continue
            self._insert(_to_candidate(passage, turn, context, self._zone), (number, passage[0][0].index))
        rows = _rows(turn.text, len(said)) if context.closing and self._last_said.endswith(_ASKS) else ()
        for row in rows:
            self._insert(_to_candidate(([row], ANSWER), turn, context, self._zone), (number, row.index))

    def _note_question(self, said: Sequence[Sentence]) -> None:
        """Note what an assistant's turn asks, and its last value."""
        self._question = _question_in(said)
        self._open = any(_asks(one.text) and _is_open(one.text) for one in said[-3:])
        values = (one.text for one in reversed(said) if _has_value(one.text))
        self._value = next((text for text in values if len(text) <= _LONGEST_QUESTION), self._question)

    def _drop_disproved(self, turn: Turn, said: Iterable[Sentence]) -> bool:
        """Drop what an assistant's turn takes back, and what the person took for the cause if the turn says
        that it is not. Whether it says that."""
        if opens_as("admits", turn.text):
            self._drop(range(self._person_turn - 1, self._person_turn), terms(turn.text))
        self._drop_refused(turn.text)
        asked = range(self._person_turn, self._person_turn + 1)
        refuted = [one for one in said if self._drop_guess("refutes", one.text, asked)]
        return bool(refuted)

    def _drop_refused(self, text: str) -> None:
        """Drop what the person took for so ("the job runs at 2, right?") if the text says no or gives another
        value."""
        no, yes, said = opens_as("refuses", text), opens_as("agrees", text), terms(text)
        for key, found in [*self._candidates.items()]:
            asks = found.order[0] == self._person_turn and has_phrase("tag", found.candidate.text)
            if asks and not yes and (no or _differ_in_value(found.terms, said)):
                self._pop(key)

    def _reply(
        self, number: int, turn: Turn, said: list[Sentence], context: Context, *, typed: bool
    ) -> list[Sentence]:
        """Keep a person's turn if it is a short answer. Returns the sentences that are left, after the one
        that the first of them leans on: what the agent has said, or the person before."""
        before, self._last_said = self._last_said, _question_in(said)
        if (chosen := _chosen(turn.text, self._options)) and not opens_as("asks a number", self._question):
            lead = next((each for each in (self._question, before) if has_phrase("asks what", each)), "")
            lead += ":" if lead and not lead.endswith(_ASKS) else ""
            kept = _answer(f"{lead} {chosen}".strip(), ANSWER, turn, self._zone, leans=True)
            self._insert(kept, (number, 0))
            return []
        answer, rules = _without_rules(turn, said)
        first = next((n for n, one in enumerate(said) if _length(one.text) > 1), 0)
        leans = bool(said) and opens_as("points back", said[first].text)
        about = self._value if leans and opens_as("outdates", turn.text) else self._question
        if before.endswith(_ASKS) and opens_as("knows not", about):
            about = before  # the person answers their own question
        if not typed and (least := _answer_score(about, answer.text)):
            others = [score(one, context) for one in said if one not in rules]
            found = max([least, *others], key=lambda found: found.value)
            if before and _is_bare_value(turn.text) and _asks_of_it(about):
                both = f"{before}{'.' * before[-1].isalnum()} {about}"
                about = both if len(both) <= _LONGEST_QUESTION else about
            kept = _answer(about, found, answer, self._zone, least is LIMIT or leans)
            self._insert(kept, (number, 0))
            self._last_said = kept.text
            return rules
        amends = _has_value(before) and _has_value(turn.text) and opens_as("corrects", turn.text)
        asked = self._question.endswith(_ASKS)  # what it leans on is in the question
        lines = (before,) if amends else (about, *(() if asked else (before,))) if leans else ()
        fit = (one for one in lines if 0 < len(one) <= _LONGEST_QUESTION and (asked or not _passes(one)))
        line = next(fit, "")
        if not line or not said or self._given_threshold:
            return said
        return [replace(said[first], text=f"{line} –", quote="", index=-1), *said[first:]]

    def _insert(self, candidate: Candidate, order: tuple[int, int]) -> None:
        """Keep a candidate, merged with those that say the same; if there are too many, drop the one with the
        lowest score."""
        new = _PlacedCandidate(candidate, order, terms(candidate.text), _subject_terms(candidate.text))
        for key in self._similar(new):
            earlier = self._pop(key)
            merged = _merge(earlier.candidate, new.candidate)
            more = earlier.duplicates + (new.terms != earlier.terms and merged.was != earlier.candidate.text)
            kept = earlier if merged.turn == earlier.candidate.turn else new
            new = replace(kept, candidate=merged, duplicates=new.duplicates + more)
        self._count += 1
        self._candidates[self._count] = new
        for term in new.terms:
            self._by_term.setdefault(term, set()).add(self._count)
        if len(self._candidates) > self._limit:
            self.left_out += 1
            lowest = min(self._candidates, key=lambda key: self._candidates[key].candidate.score)
            self._pop(lowest)

    def _drop(self, turns: range, about: frozenset[str] | None = None) -> None:
        """Drop the candidates of these turns; only those with two of the terms `about`, if given."""
        for key in [key for key, found in self._candidates.items() if found.order[0] in turns]:
            if about is None or len(about & self._candidates[key].terms) > 1:
                self._pop(key)

    def _drop_guess(self, how: str, text: str, turns: range, who: str = "person") -> bool:
        """Drop what a speaker in these turns took for the cause, if the text denies just that. Whether it
        does."""
        denied = None if text.endswith(_ASKS) else PHRASES[how].match(text)
        about = terms(denied["what"] if denied else "")
        guesses = [
            key
            for key, found in self._candidates.items()
            if found.order[0] in turns
            and (found.candidate.who, found.candidate.kind) == (who, "world")
            and (blamed := PHRASES["blames"].match(found.candidate.text))
            and about
            and about <= terms(blamed["cause"])
        ]
        for key in guesses:
            self._pop(key)
        return bool(guesses)

    def _ways_of_correcting(self, text: str) -> set[str]:
        """The phrases by which a person's turn may correct what they said before. If the agent has asked
        something, a bare value or "no, …" answers that."""
        if text.endswith(_ASKS) or _length(text) > _LONGEST_ANSWER:
            return set()
        ways = {name for name in _CORRECTING if opens_as(name, text)}
        if self._open:
            slip = "slips" in ways and not opens_as("meant", text)
            ways -= {"slips", "picks another", "corrects" if slip else ""}
        if self._question.endswith(_ASKS) or not ways.isdisjoint(_OF_SAME_THING):
            ways.discard("overrules")
        return ways | {"asks which"} if opens_as("asks which", self._question) else ways

    def _find_corrected(self, text: str) -> int:
        """The key of what a person's turn corrects ("sorry, Thursday"), 0 for nothing: a statement of their
        turn before for one of the reasons below, or an earlier one with two common terms."""
        ways = self._ways_of_correcting(text)
        overrules = PHRASES["overrules"].match(text.strip()) if "overrules" in ways else None
        rest = text.strip()[overrules.end() :] if overrules else ""
        first = re.split(r"[,.;:]", rest)[0]
        brief = _has_value(first) and _length(first) < 3
        gives_value = "judges" not in ways and (brief or _length(rest) <= _LONGEST_VALUE)
        said, named, asked = terms(text), terms(first), terms(self._question)
        corrects = not ways.isdisjoint(_OF_SAME_THING)
        outdated = {*re.findall(r"\d+", self._value)} if "outdates" in ways else set()
        told = len(asked) > 1 and not self._question.endswith(_ASKS)  # the agent speaks of something else

        def latest(one: tuple[int, _PlacedCandidate]) -> tuple[int, int, tuple[int, int]]:
            return one[1].order[0], len(said & one[1].terms), one[1].order

        for key, found in sorted(self._candidates.items(), key=latest, reverse=True) if ways else ():
            if found.candidate.who != "person":
                continue
            shared, confirmed = said & found.terms, not asked.isdisjoint(found.terms)
            both_values = _has_value(text) and _has_value(found.candidate.text)
            chosen = confirmed or (not told and opens_as("chooses", found.candidate.text))
            reasons = (
                "rechooses" in ways,
                "picks another" in ways and chosen,
                "asks which" in ways and (confirmed or _length(self._question) < 4),
                both_values and (gives_value or shared),
                corrects and shared,
                named and named <= found.terms,
            )
            # What is outdated may be what the agent has said.
            own = not outdated or not outdated.isdisjoint(found.terms)
            if own and found.order[0] == self._person_turn and any(reasons):
                return key
            same_value = _has_digit("".join(shared))
            if corrects and len(shared) > 1 and (same_value or "outdates" not in ways):
                return key
        return 0

    def _join_correction(self, key: int, turn: Turn) -> None:
        """Replace a statement and what was found in the turn that corrects it by both as one."""
        earlier = self._pop(key)
        self._drop(range(self._turns, self._turns + 1))
        old = frozenset(word for word in earlier.terms if _has_digit(word))
        for other, found in [*self._candidates.items()]:  # what the agent made of the old value
            if found.candidate.who == "assistant" and found.order > earlier.order and old & found.terms:
                self._pop(other)
        weight = Score(max(REMARK.value, earlier.candidate.score), ("correction",))
        both = _answer(earlier.candidate.text, weight, turn, self._zone, leans=True)
        self._insert(replace(both, kind=earlier.candidate.kind), (self._turns, 0))

    def _similar(self, new: _PlacedCandidate) -> list[int]:
        """The keys of the candidates that say the same, or give an earlier value of the same
        thing, the newest first."""
        shared = {key for term in new.terms for key in self._by_term.get(term, ())}
        return [key for key in sorted(shared, reverse=True) if _are_one(self._candidates[key], new)]

    def _pop(self, key: int) -> _PlacedCandidate:
        found = self._candidates.pop(key)
        for term in found.terms:
            self._by_term[term].discard(key)
            if not self._by_term[term]:
                del self._by_term[term]
        return found


def _are_one(earlier: _PlacedCandidate, later: _PlacedCandidate) -> bool:
    """Whether a statement says what an earlier one says, or gives another value for it."""
    one, other = earlier.candidate, later.candidate
    if (other.quote[:1] == "|" and one.turn == other.turn) or _are_of_others(one.text, other.text):
        return False
    completes = other.text.startswith(f"{one.text} – ")
    return (
        completes
        or _repeats(earlier, later)
        or _updates(earlier, later)
        or _differ_in_typo(one.text, other.text)
    )


def _repeats(earlier: _PlacedCandidate, later: _PlacedCandidate) -> bool:
    """Whether two statements have most words in common, and neither a name nor a subject of its own."""
    short, long = sorted((len(earlier.terms), len(later.terms)))
    if len(earlier.terms & later.terms) < max(3, _SAME_WORDS * short, 0.5 * long):
        return False
    # Staging on 8080, the preview on 9090. Where only the number differs, the later one corrects the earlier.
    own = earlier.terms - later.terms, later.terms - earlier.terms
    of_others = all({_has_digit(term) for term in some} == {True, False} for some in own)
    # Each has a name that the other lacks: what Martin likes, Marvin may like too.
    mine, theirs = {*earlier.candidate.entities}, {*later.candidate.entities}
    return not of_others and not (mine - theirs and theirs - mine)


def _are_of_others(one: str, other: str) -> bool:
    """Whether two statements are of things that only their numbers tell apart (room 12 costs 80 euros, room
    13 costs 95), or answer different questions: staging and production may have the same port."""
    mine, theirs = _NUMBERED.search(one), _NUMBERED.search(other)
    if mine and theirs and mine[1].lower() == theirs[1].lower() and mine[2] != theirs[2]:
        values, others = (re.findall(r"\d+", at.string[at.end() :]) for at in (mine, theirs))
        if values and others and values != others:
            return True
    asked = [terms(text[: at.start()]) for text in (one, other) if (at := ANSWER_DASH.search(text))]
    return len(asked) == 2 and bool(asked[0] - asked[1] and asked[1] - asked[0])


def _differ_in_typo(one: str, other: str) -> bool:
    """Whether two statements are the same except for a typing error in one word."""
    if abs(len(one) - len(other)) > 2:
        return False
    mine, theirs = (re.findall(r"\w+", text.lower()) for text in (one, other))
    apart = [pair for pair in zip(mine, theirs, strict=False) if pair[0] != pair[1]]
    if len(mine) != len(theirs) or len(apart) != 1:
        return False
    found = likeness(*apart[0])
    return found is not None and found.how == "sure"


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _has_value(text: str) -> bool:
    """Whether a text has a number, a day or a month."""
    forms = (form for word in _VALUE_WORD.findall(text) for form in (word, word.rstrip("s")))
    return _has_digit(text) or any(map(foreign_dates.is_name, forms))


def _is_bare_value(text: str) -> bool:
    return _has_value(text) and _length(text) <= _LONGEST_VALUE


def _asks_of_it(question: str) -> bool:
    """Whether what a question is about is only in the turn before it: "What should it be then?"."""
    thin = len(terms(question)) < 3 or not is_english(question)
    return thin and has_phrase("of it", question) and len(plain_sentences(question)) == 1


def _subject_terms(text: str) -> frozenset[str]:
    if not _has_digit(text):
        return frozenset()
    return frozenset(word for word in terms(CHANGED.sub(" ", text)) if not _VALUE.match(word)) - _CHANGE_WORDS


def _updates(earlier: _PlacedCandidate, later: _PlacedCandidate) -> bool:
    """Whether a statement gives another number or day for what an earlier one was about. One that says that
    something changed may say more besides."""
    old, new = earlier.subject, later.subject
    same = old == new or (len(new) >= 2 and old < new and CHANGED.search(later.candidate.text))
    return bool(old and new and same) and _differ_in_value(earlier.terms, later.terms)


def _differ_in_value(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether each of two statements has a number that the other lacks."""
    return all(_has_digit("".join(some)) for some in (one - other, other - one))


_Passage = tuple[Sequence[Sentence], Score]
"""Consecutive sentences that belong together, and the highest score among them."""


def join_lists(said: list[Sentence]) -> Iterator[Sentence]:
    """The sentences, with the short items of one list joined into a single one: a name and a number alone say
    little."""
    for _, run in groupby(said, key=lambda one: (one.lead, one.nested) if _is_short_item(one) else one.index):
        items = list(run)
        settings = items[0].lead if all(_SETS.match(one.text) for one in items) else ""
        lead = _useful_lead(items[0]) or settings
        text = f"{lead} " + "; ".join(one.text.rstrip(".;,") for one in items)
        if len(items) < 2 or not lead or len(text) > _PASSAGE_LENGTH:
            yield from items
            continue
        quote = items[0].quote + "".join(f" {one.marker} {one.quote}" for one in items[1:])
        yield replace(items[-1], text=text, quote=quote, index=items[0].index, lead="", joined=True)


_SETS = late(r"`?[\w.-]+(?: [\w.-]+)?`? ?[:=] ?`?\S")
"""A name and its value: "log level: debug", "`BATCH_MAX=2000`"."""


def _is_short_item(sentence: Sentence) -> bool:
    short = len(sentence.text.split()) < _SHORT_ITEM or _spoken(sentence.text) < _SHORT_ITEM
    return bool(sentence.lead and sentence.marker) and short


def _useful_lead(sentence: Sentence) -> str:
    """The lead of a list item, if it says what the items are; else ''."""
    last = (plain_sentences(sentence.lead if sentence.is_item else "") or [""])[-1]
    fits = 0 < len(last.split()) <= _LONG_LEAD
    if last and has_phrase("rejecting lead", last):
        return last  # without it the items say the opposite
    says = _CODE_LIKE.search(last) or not (has_phrase("empty lead", last) or _passes(last))
    return last if fits and says else ""


def _passes(text: str) -> bool:
    """Whether a sentence has a cue of what only matters at the moment."""
    cues = (cue.pattern for cue in worth_cues().values() if cue.group == MOMENTARY)
    return any(pattern.search(text.lower()) for pattern in cues)


def _passages(said: Iterable[Sentence], context: Context, likely: float) -> Iterator[_Passage]:
    """The sentences worth keeping, each with its neighbours that belong to it."""
    said = list(said)
    scores = _scores(said, context)
    at = free = 0
    while at < len(said):
        found, at = at, at + 1
        start = _passage_start(said, scores, found, free) if scores[found].value >= likely else None
        if start is None:
            continue
        at = _passage_end(said, scores, start, found + 1)
        free = at
        yield said[start:at], max(scores[start:at], key=lambda one: one.value)


def _scores(said: Sequence[Sentence], context: Context) -> list[Score]:
    """The scores of the sentences of a turn; a person's corrections are worth keeping."""
    scores = [score(sentence, context) if sentence.quote else NO_SCORE for sentence in said]
    for n, one in enumerate(said) if context.person else ():
        above = said[n - 1] if n and said[n - 1].block == one.block else None
        if (above and _corrects_value(above, one)) or opens_as("gives the right value", one.text):
            scores[n] = max(CORRECTION, scores[n], key=lambda found: found.value)
    return scores


def _passage_start(said: Sequence[Sentence], scores: Sequence[Score], start: int, free: int) -> int | None:
    """Where the passage of a sentence begins: with the first of its steps, or the sentence before that it is
    about. None if it is about one, and nothing says which. Sentences before `free` are in a passage."""
    while start > free and said[start].marker:
        if not _belongs_to(said[start - 1], said[start], scores[start - 1]):
            break
        start -= 1
    one, before = said[start], said[start - 1] if start > free else None
    corrects = opens_as("amends", one.text)
    refers = opens_with_cue(REFERS_BACK, one.text)
    leans = corrects or refers or any(opens_as(how, one.text) for how in ("points back", "concludes"))
    if before and not leans:
        several = opens_as("about them", one.text) and has_phrase("several", before.text)
        leans = several or _speaks_on(before, one)
    if leans and before and before.block == one.block and _introduces_next(before):
        return start - 1
    alone = corrects or not refers or _SPECIFIC.search(one.text) or _ends_in_rule(one.text)
    return start if alone else None


def _passage_end(said: Sequence[Sentence], scores: Sequence[Score], start: int, at: int) -> int:
    """Where the passage that begins at `start` ends, if the sentences before `at` are in it."""
    while (
        at < len(said)
        and at - start < _PASSAGE_SENTENCES
        and _belongs_to(said[at - 1], said[at], scores[at])
        and sum(len(sentence.text) for sentence in said[start : at + 1]) <= _PASSAGE_LENGTH
    ):
        at += 1
    return at


def _corrects_value(one: Sentence, other: Sentence) -> bool:
    """Whether a sentence gives another value than the one before, or in a few words what it should say."""
    if not opens_as("amends", other.text) or not _introduces_next(one):
        return False
    request = opens_with_cue("request", one.text)
    both = _has_value(one.text) and _has_value(other.text)
    return both or (opens_as("picks another", other.text) and not request)


def _ends_in_rule(text: str) -> bool:
    """Whether a standing rule follows a semicolon, and says itself what it is about."""
    rule = text.partition("; ")[2]
    return standing_rule(rule) and not opens_with_cue(REFERS_BACK, rule)


def _speaks_on(one: Sentence, other: Sentence) -> bool:
    """Whether a sentence is a mere quotation of somebody who speaks in the one before."""
    says = PHRASES["somebody says"]
    return other.text[0] in _QUOTE_MARKS and bool(says.search(one.text)) and not says.search(other.text)


def _introduces_next(sentence: Sentence) -> bool:
    """Whether a sentence can say what the next one is about: it is no exclamation, question or lead."""
    return _length(sentence.text) > 2 and not sentence.text.endswith(("?", ":"))


def _belongs_to(one: Sentence, other: Sentence, weight: Score) -> bool:
    """Whether a sentence right after another that is kept belongs to the same passage.

    In a paragraph it does if it refers to the one before; a lower score then suffices. The items of a
    numbered list are steps and belong together, unless each says what it is about; those of a bulleted list
    do not.
    """
    if one.block == other.block:
        if _asks(other.text):
            return False
        if _speaks_on(one, other):
            return True
        words = _length(other.text)
        if opens_as("tells by asking", one.text) and _has_value(other.text):
            return True
        named = _has_value(other.text) or other.text.find("#") > 0
        if (opens_as("votes", other.text) and words < 4) or (words < 3 and named):
            return True
        if any(opens_as(how, other.text) for how in ("amends", "gives the right value", "concludes")):
            return True
        refers = opens_as("refers", other.text) or opens_as("points back", other.text)
        return bool(refers) and (weight.value >= _LOW_THRESHOLD or "reason" in weight.cues)
    if not (one.marker[:1].isdigit() and other.marker[:1].isdigit()) or other.block != one.block + 1:
        return False
    same = (one.nested, one.heading, one.lead) == (other.nested, other.heading, other.lead)
    same = same and not all(each.is_complete and _is_specific(each.text) for each in (one, other))
    return same and weight.value >= _LOW_THRESHOLD


def _to_candidate(passage: _Passage, turn: Turn, context: Context, zone: tzinfo | None) -> Candidate:
    sentences, score = passage
    text, quote = _useful_lead(sentences[0]), ""
    for said in sentences:
        unspaced = text.endswith(("。", "！", "？"))
        joint = "" if not text or unspaced else " " if text.endswith((".", "!", "?", "…", ":", "–")) else "; "
        text += joint + (said.with_speaker if context.person and not text else said.text)
        quote += (f" {said.marker} " if said.marker and quote else " " if quote else "") + said.quote
    at = turn.at.astimezone(zone) if turn.at and zone else turn.at
    kind = _candidate_kind(score, context)
    when = _when([said.text for said in sentences], text, at.date()) if at else None
    return Candidate(
        text=text,
        kind=kind,
        who="person" if context.person else "assistant",
        # A past day in a rule is that of its reason: "…, we shipped two broken links last week".
        when=when if kind != "preference" or not at or (when or "") > at.date().isoformat() else None,
        entities=names(text),
        tags=tuple(dict.fromkeys(filter(None, PHRASES["hashtag"].findall(text)))),
        quote=quote,
        turn=turn.id,
        at=turn.at,
        score=score.value,
        reason=", ".join(score.cues),
    )


def _when(said: Sequence[str], text: str, day: date | None) -> str | None:
    """When the event of a text is, from the last of its sentences that corrects another, if any does."""
    amended = (one for one in reversed(said) if opens_as("amends", one))
    return dates.when_in_text(next(filter(_has_value, amended), text), day)


def _candidate_kind(found: Score, context: Context) -> CandidateKind:
    if context.person and ("preference" in found.cues or found.cues == RULE_SCORE.cues):
        return "preference"
    return "experience" if found.cues[0] == "outcome" else "world"


def _merge(earlier: Candidate, later: Candidate) -> Candidate:
    """Two candidates merged: the text with more numbers or the higher score, or the later one if they are
    equal; the other turn is recorded in `seen`."""
    if _differ_in_value(terms(earlier.text), terms(later.text)):
        return replace(later, score=max(earlier.score, later.score), was=earlier.text)
    corrected = _differ_in_typo(earlier.text, later.text) or later.text.startswith(f"{earlier.text} – ")
    says_more = {*re.findall(r"\d+", earlier.text)} > {*re.findall(r"\d+", later.text)}
    first = (earlier.score > later.score and not corrected) or says_more
    kept, other = (earlier, later) if first else (later, earlier)
    seen = dict.fromkeys((*earlier.seen, *later.seen, other.turn))
    seen.pop(kept.turn, None)
    # A repetition in another turn raises the score once.
    again = 0.5 if earlier.turn != later.turn and not earlier.seen and not later.seen else 0.0
    return replace(kept, score=kept.score + again, seen=tuple(seen))


def _assistant_context(turn: Turn, following: Turn | None) -> Context:
    """The context of an assistant's turn, seen from the turn after it."""
    closing = following is None or following.role != "tool" or turn.summary
    answer = following.text if following and following.role == "person" else ""
    return Context(
        person=False,
        closing=closing,
        final=following is None,
        proposal=closing and has_phrase("asks permission", turn.text[-300:]),
        refused=opens_as("refuses", answer),
        confirmed=opens_as("confirms", answer),
    )


# -- extraction from texts ---------------------------------------------------------------------------------
# Facts of a text without a model: its author's own sentences, list items and rows of tables, verbatim.


TEXT_THRESHOLD, FEW_FACTS, SHORT_TEXT = 0.4, 12, 3
"""The probability from which a sentence of a text is kept, lower than in a conversation. If fewer facts are
found, sentences with a name or a number are added up to so many."""
_FEWEST_WORDS = 4
"""The least words of a sentence or list item that is kept."""
_CONTENTS = late(r"(?:[^:;]*: )?(?:\[[^\]]*\]\(#[^)]*\)[\W\d]*){2,}|©.*")
"""A table of contents: links to headings; the foot of a web page."""


def extract_without_model(chunk: Chunk, brief: TextContext) -> ExtractedChunk:
    """The facts of a chunk, extracted without a model."""
    one_part = TextPart("person", brief.at)
    if brief.mode == "chunks":
        text = chunk.text.strip()
        facts = [replace(_to_fact(one_part, text, text), entities=())]
    elif brief.mode == "verbatim":
        facts = [_to_fact(one_part, each, each) for each in pieces(chunk.text)]
    else:
        front = front_matter(chunk.text)
        body = replace(chunk, text=chunk.text[len(front) :])
        parts = list(text_parts(chunk.above + body.text, brief.at, chunk.form))
        title = _text_title(front, body.text, brief) if len(parts) == 1 else ""
        facts = [*_front_facts(front, title, one_part), *_text_facts(body, parts, title)]
    return ExtractedChunk(
        tuple(replace(fact, tags=tuple(dict.fromkeys((*brief.tags, *fact.tags)))) for fact in facts)
    )


_NO_FIELDS = {
    "title", "name", "alias", "aliases", "id", "uid", "uuid", "tag", "tags", "cssclass", "cssclasses",
    "publish", "draft", "lang", "type", "template", "layout", "permalink", "slug", "updated",
    *dates.DATE_KEYS,
}  # fmt: skip
"""Keys of a note's front matter that say nothing of what it is about."""
_LINKS = late(r"\s*(?:\[[^\]]*\]\([^)]*\)\W*)+")
_FRONT_LINE = late(r"^([^\W\d_][\w -]*): +(?![\[{|>&*!])([\"']?)(.+?)\2 *$", re.MULTILINE)


def _text_title(front: str, text: str, brief: TextContext) -> str:
    """What a text calls itself: in its front matter, by its first line if that is short and no sentence, or
    as a note by its file's name; '' if it does not."""
    named = next((value for key, _, value in _FRONT_LINE.findall(front) if key == "title"), "")
    lines = (line for line in text.splitlines() if line.strip() and not _LINKS.fullmatch(line))
    first = next(lines, "")
    heading, plain = _HEADING.match(first), without_markup(one_line(first))
    other = any(form.match(plain) for form in (_FIELD, _CONTACT, _ITEM, _NOT_PROSE, PHRASES["salutation"]))
    short = 0 < len(plain.split()) <= _LONGEST_ENTRY and not (_ENDS_OTHERWISE.search(plain) or other)
    short = short and (text.strip().startswith(f"{first.strip()}\n\n") or bool(names(plain)))
    note = brief.title.removesuffix(".md") if brief.title.endswith(".md") else ""
    own = without_markup(heading[1]) if heading else plain if short else ""
    return named or ("" if dates.day_of_heading(own) else own) or note


def _front_facts(front: str, title: str, part: TextPart) -> Iterator[Fact]:
    """The lines of a note's front matter with a value of its own: "Rondine – rate: 18 € a page"."""
    for line in _FRONT_LINE.finditer(front):
        key, value = line[1], line[3]
        if key.casefold() not in _NO_FIELDS and "{{" not in value and _is_specific(value):
            lead = f"{title} – " if title else ""
            yield _to_fact(
                part, f"{lead}{key}: {value}", one_line(line[0]), f"{_inner_names(title)} : {value}"
            )


def _text_facts(chunk: Chunk, parts: Sequence[TextPart], title: str = "") -> list[Fact]:
    """The facts of what people say in a chunk, in its order: its lists, what is worth keeping, answers, and
    if these are few, whole sentences with a name or a number; or a short text as one statement. `title` is
    the text's."""
    whole = [one for one in parts if one.role == "person"]
    plain = [replace(one, text=_without_tales(one.text)) for one in whole]
    said = [(one, sentences(one.text)) for one in plain]
    heads = [one_line(one.head) for one in plain if one.head in one.text]
    listed = list(_outside(heads, (fact for one in plain for fact in _entries(one, title))))
    covered = [*heads, *map(_quote_of, listed)]
    scored = [
        *_worthy_facts(plain),
        *(fact for one in said for fact in (*_list_facts(*one), *_attendance(*one))),
        *_answers_in_chat(parts),
    ]
    scored = [*listed, *_outside(covered, scored)]
    told = (sentence.text for _, some in said for sentence in some)
    known = {name for text in told if len(text.split()) > 2 and not text.isupper() for name in names(text)}
    known |= {name for fact in scored for name in fact.entities}
    known_quotes = [*covered, *map(_quote_of, scored)]
    specific = list(_outside(known_quotes, (fact for one in said for fact in _specific_facts(*one, known))))
    tasks = [fact for fact in specific if _is_task(fact.text, known)]
    every = [*scored, *tasks[:FEW_FACTS], *specific[: max(FEW_FACTS - len(scored), 0)]]
    found = [*_outside(covered, _short_text(whole, every))] or every
    in_order = sorted(found, key=lambda fact: _position(chunk.text, fact))
    return [_with_first_names(fact, known) for fact in _without_repetitions(in_order)]


def _without_tales(text: str) -> str:
    """A text without what the creatures or people of a tale say of themselves."""
    anybody = PHRASES["somebody says"]
    if len(PHRASES["creature says"].findall(text)) < 2:
        return text
    for one in sentences(text):
        if (anybody.search(one.quote) or one.quote[0] in _QUOTE_MARKS) and opens_as("of oneself", one.quote):
            text = re.sub(r"\s+".join(map(re.escape, one.quote.split())) + "[ \t]*", "", text)
    return text


def _outside(lines: Sequence[str], found: Iterable[Fact]) -> Iterator[Fact]:
    """The facts that are no part of these lines of lists and headers, and have no two of them in a row."""
    plain = [" ".join(words_of(line)) for line in lines if line]
    whole, pairs = " ".join(plain), [*map(" ".join, pairwise(plain))]
    for fact in found:
        quote = " ".join(words_of(_quote_of(fact)))
        if quote not in whole and not any(two in quote for two in pairs):
            yield fact


def _with_first_names(fact: Fact, known: Collection[str]) -> Fact:
    """The fact with the names that its sentences begin with, of those that are known as names."""
    more = (name for name, sure in name_candidates(fact.text).items() if not sure and name in known)
    return replace(fact, entities=tuple(dict.fromkeys((*fact.entities, *more))))


def _worthy_facts(parts: Sequence[TextPart]) -> Iterator[Fact]:
    turns = [Turn(str(n), "person", part.text, part.at) for n, part in enumerate(parts)]
    for each in extract(turns, likely=TEXT_THRESHOLD):
        fact = _to_fact(parts[int(each.turn)], each.text, each.quote)
        yield replace(fact, kind=each.kind, tags=each.tags, when=each.when or fact.when)


def _short_text(parts: Sequence[TextPart], found: Sequence[Fact]) -> Iterator[Fact]:
    """A text of few sentences as one statement, unless each of them is one of the facts `found`: whoever
    hands it over wants it kept."""
    said = [sentence for part in parts for sentence in sentences(part.text)]
    plain = len(parts) == 1 and not (parts[0].speaker or parts[0].head)
    plain = plain and sum(one.is_complete or not _dated(one.text, False) for one in said) <= SHORT_TEXT
    text = one_line(parts[0].text) if plain else ""
    whole = text == " ".join(one.text for one in said) and len(text.split()) >= _FEWEST_WORDS
    whole = whole and not any(_aligned_rows(parts[0].text))
    left = (one.text for one in said if all(one.text not in fact.text for fact in found))
    asks = "?" in text or (said and _asks(_without_speaker(said[-1])))
    if whole and not asks and any(len(one.split()) >= _FEWEST_WORDS - 1 for one in left):
        lines = [*filter(str.strip, parts[0].text.splitlines())]
        each = map(one_line, lines) if all(map(speaker, lines)) else [text]
        yield from (_to_fact(parts[0], one, one) for one in each)


def _attendance(part: TextPart, said: Iterable[Sentence]) -> Iterator[Fact]:
    """Who was at a meeting and who was not, as one statement with the title or heading above it."""
    title = ""
    for present, run in groupby(said, key=lambda one: opens_as("attendance", one.text)):
        lines = list(run)
        if present:
            text = "; ".join(one.text.rstrip(".;") for one in lines)
            named = " ".join(f"with {one.text.partition(': ')[2]}" for one in lines)
            text = f"{title} – {text}" if (title := title or lines[0].heading) else text
            fact = _to_fact(part, text, " ".join(one.quote for one in lines), named)
            yield replace(fact, when=dates.when_in_text(text, part.at.date() if part.at else None))
        titles = [one for one in lines if not _FIELD.match(one.text)]
        title = titles[-1].text if titles and not (titles[-1].is_complete or titles[-1].marker) else ""


def _answers_in_chat(parts: Sequence[TextPart]) -> Iterator[Fact]:
    """Short answers in a chat, each with the question before it, which may be confirmed by a mere yes."""
    for asking, part in pairwise(parts):
        question, quote = _question_in(sentences(asking.text)), one_line(part.text)
        if part.role != "person" or (asking.role, asking.speaker) == (part.role, part.speaker):
            continue
        if asking.at and part.at and part.at < asking.at:
            continue  # a mail quotes the one that it answers
        if not question.endswith(_ASKS) or has_phrase("chatter", f"{question} – {quote}"):
            continue
        if not _answer_score(question, quote) and not _agrees(question, quote):
            continue
        asked, answer = _to_fact(asking, question, question), _to_fact(part, quote, quote)
        who, when = dict.fromkeys((*asked.entities, *answer.entities)), answer.when or asked.when
        text = f"{asked.text} – {answer.text}"
        yield replace(answer, text=text, entities=tuple(who), when=when, quotes=(Quote(quote),))


def _agrees(question: str, reply: str) -> bool:
    """Whether a reply says yes, and no more, to a question with a name or a number."""
    specific = _is_question(question) and (_has_digit(question) or names(question))
    mere = opens_as("agrees", reply) and PHRASES["mere assent"].fullmatch(reply)
    return bool(specific and mere)


def _is_task(text: str, known: Collection[str]) -> bool:
    """Whether a sentence says what somebody is to do: it begins with a name, or with no other known word."""
    found = PHRASES["task"].match(text)
    if not found or any(found[1].casefold() in some for some in (ORDINARY, STOP_WORDS, all_stop_words())):
        return False
    return found[1] in known or not in_lexicon(found[1])


def _specific_facts(part: TextPart, said: Iterable[Sentence], known: Collection[str]) -> Iterator[Fact]:
    """Whole sentences with a name or a number."""
    for sentence in said:
        whole = sentence.is_complete or part.speaker  # in a chat few end with a stop
        plain = whole and not sentence.is_item and not sentence.text.rstrip().endswith("?")
        first = sentence.text.split(maxsplit=1)[0]
        task = _is_task(sentence.text, known)
        telling = first in known or task or _is_specific(sentence.text)
        if part.head and opens_with_cue("request", sentence.text):
            continue  # of an agent, or of the other side of a chat
        plain = plain and not opens_as("pleasantry", sentence.text)
        fewest = _FEWEST_WORDS - (sentence.is_complete and _has_digit(sentence.text))
        if plain and telling and len(sentence.text.split()) >= fewest:
            yield _to_fact(part, sentence.with_speaker, sentence.quote)


def _is_specific(text: str) -> bool:
    """Whether a text has a number or a name."""
    return _has_digit(text) or bool(names(text))


def _to_fact(part: TextPart, text: str, quote: str, named: str = "", day: str = "") -> Fact:
    """A statement as a fact, with its quote if that differs. Its names and its day are read from it unless
    other words for them are given."""
    found = names(named or text)
    if part.speaker:
        text, found = f"{part.speaker}: {text}", tuple(dict.fromkeys((part.speaker, *found)))
    said = [one.text for one in sentences(quote)]
    when = _when(said, day or quote, part.at.date() if part.at else None)
    return Fact(text, entities=found, when=when, quotes=() if text == quote else (Quote(quote),))


def _without_repetitions(facts: Iterable[Fact]) -> Iterator[Fact]:
    """Each statement once, without those that are part of another."""
    kept: list[tuple[frozenset[str], Fact]] = []
    for fact in facts:
        lead = fact.text.endswith((":", "："))  # its items have it before them
        if lead or only_secrets(fact.text) or _CONTENTS.fullmatch(fact.text):
            continue
        words = terms(fact.text)
        if not any(words <= said for said, _ in kept):
            kept = [each for each in kept if not each[0] < words]
            kept.append((words, fact))
    yield from (fact for _, fact in kept)


def _position(text: str, fact: Fact) -> int:
    flat = one_line(text)
    return flat.find(_quote_of(fact)) % (len(flat) + 1)


def _quote_of(fact: Fact) -> str:
    return one_line(fact.quotes[0].text if fact.quotes else fact.text)


# -- lists, forms and tables of texts ----------------------------------------------------------------------
# A list is a run of lines of one kind below one heading. Short items are joined to one statement; a day, a
# contact, a field of a form and a row of a table are one each, with the title, or the heads of the columns.


_ANY_DAY = date(2001, 2, 3)
_SECOND = late(r"\b\d\d:\d\d:\d\d\b")
"""A time as the lines of a log have it."""
_SETTING = late(r"^[ \t]*([a-z_][\w.-]*: \S+)$", re.MULTILINE)
"""A line of a configuration."""
_ENDS_OTHERWISE = late(r"(?<!\d)[.!?,;…]$|\b(?:19|20)\d\d$")
"""The end of a line that is no title."""
_FEWEST_ENTRIES = {"dated": 2, "contact": 2, "field": 3, "item": 1, "line": 1}
"""The kinds of lists, and how many lines each needs: "3.12. Röntgen", "Dr. Weber 030 1234567", "Size: 42", an
item with a marker, and a line below one that says that a list follows."""
_JOINED_KINDS = "item", "line"
"""The lines of these are one statement, those of the others one each."""
_LONGEST_ENTRY, _LONGEST_TITLE = 12, 6
"""Most words of a line of a list, and of one that is joined with others or is their title."""
_MOST_JOINED, _MOST_ROWS = 20, 12
"""Most lines that are one statement, and most rows of an answer's tables that are one each."""
_ROW = late(r"\s*\|(.*)\|\s*$")
_RULE = late(r"\s*\|[\s:|-]+\|\s*$")


def _entries(part: TextPart, of_text: str) -> Iterator[Fact]:
    """The facts of the lists of a text, with their titles; a form or contact without one has the text's."""
    foreign = is_foreign(part.text)
    for kind, title, lines in _lists(part.text, foreign, of_text):
        if kind in _JOINED_KINDS:
            yield from _joined_entries(part, kind, title, lines)
        else:
            yield from _single_entries(part, kind, title, lines, foreign)


def _joined_entries(part: TextPart, kind: str, title: str, lines: Sequence[_Block]) -> Iterator[Fact]:
    """Short lines below a title as one statement: "Zutaten: Mehl; Butter; 3 Eier"."""
    for at in range(0, len(lines) if title else 0, _MOST_JOINED):
        some = lines[at : at + _MOST_JOINED]
        texts = [_entry_text(line) for line in some]
        lengths = [len(text.split()) for text in texts]
        few = kind == "line" or min(lengths) < _FEWEST_WORDS
        if few and max(lengths) <= _LONGEST_TITLE and not texts[-1].endswith("?"):
            quote = one_line(" ".join(f"{line.marker} {line.text}" for line in some))
            quote, text = quote.removeprefix(some[0].marker).strip(), "; ".join(texts)
            yield _to_fact(part, f"{title} {text}", quote, f"{_inner_names(title)} {text}", text)


def _single_entries(
    part: TextPart, kind: str, title: str, lines: Sequence[_Block], foreign: bool
) -> Iterator[Fact]:
    """Each line of a list as a statement: "Termine: 3.12. Röntgen"."""
    texts = [_entry_text(line) for line in lines]
    leads = _field_leads(title, texts) if kind == "field" else [title] * len(texts)
    for line, lead, text in zip(lines, leads, texts, strict=True):
        label, _, value = text.partition(":") if kind == "field" else ("", "", text)
        owner = "" if lead == title else f"with {lead}"
        named = f"{_inner_names(title)} {_inner_names(label)} {owner} : {value}"
        yield _to_fact(part, f"{lead} {text}".strip(), one_line(line.text), named, _dated(text, foreign))


def _entry_text(line: _Block) -> str:
    return without_markup(_with_colon(line.text)).rstrip(".;,")


def _with_colon(line: str) -> str:
    """A line, with a colon where blanks stand between a label and its value."""
    return one_line(_GAP.sub(r"\1: ", line, count=1))


def _inner_names(title: str) -> str:
    """The names in a title or label, but not at its beginning, where no name is certain."""
    return " ".join(f"with {name}" for name in names(title) if not (title.startswith(name) or name.isupper()))


def _field_leads(title: str, fields: Iterable[str]) -> Iterator[str]:
    """What stands before each field of a form: its title, or the person's name once that is known."""
    owner = ""
    for field in fields:
        yield f"{owner} –" if owner else title
        label, _, value = field.partition(":")
        if PHRASES["name label"].fullmatch(label.strip()) and value.strip()[:1].isupper():
            owner = f"{owner} {value.strip()}".strip()


def _lists(text: str, foreign: bool, of_text: str) -> Iterator[tuple[str, str, Sequence[_Block]]]:
    """The lists of a text: their kind, their title with a colon, '' for none, and their lines. A list ends
    where a line of another kind or a heading follows. A contact or a form of several lines without a title
    has that `of_text`."""
    blocks = [each for block in _blocks(text) for each in _with_days_apart(block, foreign)]
    kinds = list(_entry_kinds(blocks, foreign))
    labels = kinds.count("field") + sum(block.text.endswith(":") for block in blocks)
    is_output = _is_output(text)
    for (kind, _), run in groupby(range(len(blocks)), key=lambda n: (kinds[n], blocks[n].heading)):
        first, *more = run
        lines, above = blocks[first : first + 1 + len(more)], blocks[first - 1] if first else None
        whose = f"{of_text}:" if of_text and (kind == "contact" or labels >= _FEWEST_ENTRIES["field"]) else ""
        if kind == "contact" and not more and _FIELD.match(_with_colon(lines[0].text)):
            kind = "field"
        if not kind or _are_outline(lines) or (is_output and kind in ("field", "line")):
            continue
        enough = len(lines) >= _FEWEST_ENTRIES[kind] or (kind == "contact" and bool(names(lines[0].text)))
        titled = enough and not kinds[first - 1]
        if kind == "field":
            enough = (labels >= _FEWEST_ENTRIES[kind] or _has_details(lines[0])) and _differ_in_label(lines)
        if enough:
            own = whose if kind in ("field", "contact") else ""
            yield kind, _list_title(lines, above, titled) or own, lines


def _is_output(text: str) -> bool:
    """Whether a text is a configuration, or what a server says."""
    settings = sum(not _FIELD.match(line) for line in _SETTING.findall(text))
    return settings > 1 or bool(re.match(r".*\bHTTP/\d", text))


def _has_details(field: _Block) -> bool:
    """Whether a field alone says enough: it has a number or an enumeration, and is no sentence."""
    return bool(re.search(r": .*[\d,].*[^.!?]$", _with_colon(field.text)))


def _differ_in_label(fields: Sequence[_Block]) -> bool:
    """Whether the lines of a form have a label each; in a conversation a name comes again."""
    return len({_with_colon(field.text).partition(":")[0] for field in fields}) == len(fields)


def _list_title(lines: Sequence[_Block], above: _Block | None, titled: bool) -> str:
    """The title of a list: the line `above`, if it can be one (`titled`) and ends in a colon or is short and
    apart; else its heading, if nothing stands between them."""
    title = one_line(above.text) if above and titled else ""
    apart = above and (above.apart or lines[0].apart) and not re.search(r" {2}|\t", above.text)
    alone = apart and 0 < len(title.split()) <= _LONGEST_TITLE and not _ENDS_OTHERWISE.search(title)
    if not title.endswith(":") and not alone:
        title = "" if above and above.heading == lines[0].heading else lines[0].heading
    title = "" if dates.day_of_heading(title) else title
    return f"{without_markup(title).rstrip(' :')}:" if title else ""


def _are_outline(lines: Sequence[_Block]) -> bool:
    """Whether lines that seem dated are numbered as an outline is: 1.1., 1.2., 2.1."""
    found = [re.match(r"(\d+)\.(\d+)\D*$", line.text) for line in lines]
    numbers = [(int(each[1]), int(each[2])) for each in found if each]
    steps = (two[1] in ((two[0][0], two[0][1] + 1), (two[0][0] + 1, 1)) for two in pairwise(numbers))
    return len(lines) == len(numbers) > 1 and all(steps)


def _entry_kinds(blocks: Sequence[_Block], foreign: bool) -> Iterator[str]:
    """The kind of list that each block is a line of, the first that holds; '' for none."""
    kind = above = ""
    for block in blocks:
        text = _with_colon(block.text)
        short = len(text.split()) <= _LONGEST_ENTRY and not _SECOND.search(text)
        short = short and (bool(block.marker) or not re.search("[.!?:]$", text))
        is_contact = short and _CONTACT.match(text)
        attending = opens_as("attendance", without_markup(text))
        is_field = not block.marker and _FIELD.match(text) and len(list(spans(text))) == 1
        holding = {
            "dated": short and _dated(text, foreign),
            "field": is_field and (kind == "field" or not is_contact) and not attending,
            "contact": is_contact,
            "item": block.marker,
            "line": short and not block.apart and (kind == "line" or has_phrase("above a list", above)),
        }
        kind, above = next((kind for kind, holds in holding.items() if holds), ""), text
        yield kind


def _with_days_apart(block: _Block, foreign: bool) -> Iterator[_Block]:
    """An enumeration of days ("Termine: 3.12. Röntgen, 10.12. Kontrolle") as a title and its lines."""
    label, _, rest = one_line(block.text).partition(": ")
    lines: list[str] = []
    for each in re.split(r"(?<=[,;]) ", rest):
        if _dated(each, foreign):
            lines.append(each)
        elif lines:
            lines[-1] += f" {each}"
        else:
            break
    if len(lines) < 2 or len(list(spans(lines[-1].partition(" ")[2]))) > 1:
        yield block
    else:
        yield replace(block, text=f"{label}:")
        yield from (replace(block, text=line.rstrip(".,;"), apart=False) for line in lines)


def _dated(line: str, foreign: bool) -> str:
    """A line that begins with a day, in words from which that can be read; '' for another."""
    line = PHRASES["on day"].sub("", line)
    line = dates.with_dots(line).removeprefix("am ") if foreign else line
    start = " ".join(line.split()[:4])
    word = _NEXT_WORD.match(start)
    named = word and (
        foreign_dates.is_name(word[1])
        or any(word[1].lower() in some for some in (ALL_MONTHS, SHORT_WEEKDAYS))
    )
    if not (named or start[:1].isdigit()) or not _has_digit(start):
        return ""
    leads = ("am ", "") if foreign else ("", "am ")
    ways = (lead for lead in leads if dates.when_in_text(lead + start, _ANY_DAY))
    return next((lead + line for lead in ways), "")


def _list_facts(part: TextPart, said: Iterable[Sentence]) -> Iterator[Fact]:
    """List items that are whole statements, and the rows of tables."""
    for sentence in said:
        if sentence.is_item and not sentence.nested and len(sentence.text.split()) >= _FEWEST_WORDS:
            text = f"{sentence.lead} {sentence.text}" if sentence.lead else sentence.with_speaker
            if not text.rstrip().endswith("?"):
                yield _to_fact(part, text, sentence.quote)
    rows = (*_table_rows(part.text), *_aligned_rows(part.text))
    yield from (_to_fact(part, text, line, cells) for text, line, cells, _ in rows)


def _rows(text: str, at: int) -> list[Sentence]:
    """The rows of the tables of a turn, as list items below the line above the table; none of many, and none
    if one has no value."""
    rows = [*_table_rows(text)]
    fit = len(rows) <= _MOST_ROWS and all(_has_digit(cells.partition(";")[2]) for _, _, cells, _ in rows)
    return [
        Sentence(said, line, at + n, marker="|", lead=lead)
        for n, (said, line, _, lead) in enumerate(rows if fit else ())
    ]


def _table_rows(text: str) -> Iterator[tuple[str, str, str, str]]:
    """For each row of a table: its cells with the heads of their columns, the row verbatim, its cells alone,
    and the line above the table if it ends in a colon."""
    head: list[str] = []
    above = lead = ""
    for line in text.splitlines():
        row = _ROW.match(line)
        if _RULE.match(line):
            found = _ROW.match(above)
            head = [without_markup(cell.strip()) for cell in found[1].split("|")] if found else []
        elif row and head:
            cells = [without_markup(cell.strip()) for cell in row[1].split("|")]
            if not any(head):  # a document's table has its heads in the first row
                head = cells
                continue
            said = [f"{key}: {cell}" if key else cell for key, cell in zip(head, cells, strict=False) if cell]
            if len(said) > 1:
                yield "; ".join(said), one_line(line), "; ".join(cells), lead
        elif not row:
            head = []
            if line.strip():
                lead = without_markup(one_line(line)) if line.rstrip(" *_").endswith(":") else ""
        above = line


_CELL = late(r"\S+(?: \S+)*")
_HEAD = late(r"[^\d\s]+(?: [^\d\s]+){0,2}")
"""The head of a column: up to three words."""
_FEWEST_COLUMNS = 3


def _aligned_rows(text: str) -> Iterator[tuple[str, str, str, str]]:
    """The same for tables whose columns stand apart by blanks or tabs, as in a printed offer."""
    head: list[tuple[int, int, str]] = []
    fence = False
    for line in text.splitlines():
        fence ^= bool(_FENCE.match(line))
        cells = [] if fence else _aligned_cells(line)
        if head and len(cells) > 1:
            row: dict[str, str] = {}
            for start, end, cell in cells:
                _, _, key = min(head, key=lambda one: min(abs(one[0] - start), abs(one[1] - end)))
                row[key] = f"{row[key]} {cell}" if key in row else cell
            if head[0][2] in row and len(row) > 1:
                said = "; ".join(f"{key}: {cell}" for key, cell in row.items())
                yield said, one_line(line), "; ".join(row.values()), ""
        elif any(char.isalnum() for char in line) or not line.strip():
            named = len(cells) >= _FEWEST_COLUMNS and all(_HEAD.fullmatch(cell) for *_, cell in cells)
            head = cells if named and not all(cell.endswith((".", "!", "?")) for *_, cell in cells) else []


def _aligned_cells(line: str) -> list[tuple[int, int, str]]:
    """The cells of a line, each with its first and last column: those that stand apart by two blanks, or the
    number of its tab."""
    if "\t" in line.strip():
        return [(n, n, cell.strip()) for n, cell in enumerate(line.split("\t")) if cell.strip()]
    return [(cell.start(), cell.end(), cell[0]) for cell in _CELL.finditer(line)]
