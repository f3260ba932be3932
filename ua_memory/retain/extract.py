"""A flush without a model: the speakers' own sentences that are worth keeping, verbatim."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import cache
from itertools import groupby, islice
from math import exp, log

from ua_memory.index.terms import STOP_WORDS, all_stop_words
from ua_memory.index.terms import words as words_of
from ua_memory.knowledge.entities import likeness
from ua_memory.records import Fact, Quote
from ua_memory.retain import extractor
from ua_memory.retain.extractor import Chunk, ExtractedChunk, TextContext, pieces
from ua_memory.retain.subagent import Candidate, CandidateKind, one_line
from ua_memory.text import foreign_dates, grounding, redaction
from ua_memory.text.calendar import A_MONTH, WEEKDAYS
from ua_memory.text.grounding import terms
from ua_memory.text.names import LABELS, NO_NAMES, in_lexicon, names
from ua_memory.text.noise import command
from ua_memory.text.patterns import data_text, late, table
from ua_memory.text.wording import CHANGED, standing_rule
from ua_memory.transcripts.messages import TextPart, text_parts
from ua_memory.transcripts.turns import Turn

# -- cues --------------------------------------------------------------------------------------------------
# What tells whether a sentence is worth keeping: the cues of `data/cues.txt`.
#
# What a cue weighs was learned (`weighing`).


CARRIES, PASSES = "carries", "passes"
LEANS = "leans on another sentence"
_NAME = r"(?-i:(?<=[a-z,;] )(?:[A-Z][a-z]+(?:[A-Z]\w*)?|[A-Z][\w-]*[a-z]\w*)\b)"
_WEEKDAY = "(?:" + "|".join(WEEKDAYS) + ")"
_TELLS = late(rf"{_NAME}|\d|`|/\w|\b(?:because|called)\b")
"""A name, a number or a path, by which a sentence can be told from others though it opens with a pronoun."""
_BEGINS = {"opens": "^", "words": r"\b", "parts": ""}
"""Where a pattern is tried. Such a one takes a third of the time of one whose every way has its own `\\b`."""


@dataclass(frozen=True, slots=True)
class Cue:
    """A kind of words, and the pattern that finds them: in the text if `cased`, else in its small letters.

    Its group: what `carries` something, what `passes` with its moment, or a `sign`, which says nothing alone.
    """

    group: str
    pattern: re.Pattern[str]
    cased: bool


@cache
def cues() -> Mapping[str, Cue]:
    """The cues by name."""
    ways: dict[tuple[str, str, bool], list[str]] = {}
    for heading, pattern in table("cues.txt", name=_NAME, month=A_MONTH, weekday=_WEEKDAY):
        kind, _, name = heading.partition(": ")
        group, *cased, way = kind.split()
        ways.setdefault((name, group, bool(cased)), []).append(f"{_BEGINS[way]}(?:{pattern})")
    return {
        name: Cue(group, late("|".join(some), re.IGNORECASE if cased else 0), cased)
        for (name, group, cased), some in ways.items()
    }


# -- sentences ---------------------------------------------------------------------------------------------
# The sentences of a turn, as their speaker said them: no code, no tables, no headings, no quoted text.
#
# Stripped from a sentence is what decorates it and nothing else: the marker of a list item with its task
# box or check mark, asterisks and underscores that make words bold or italic, and line breaks within it.
# Backquotes, links, punctuation and everything between them stay as they were said.


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence or list item. `quote` is its slice of the turn, decoration included, on one line.

    `lead` is the line that introduces its list ("Remaining:"), `heading` the last heading above it, both
    plain. `block` numbers the paragraphs and list items of the turn. `marker` is what opens the item ("-",
    "3."), empty for prose and for what follows in the item; `nested` says that the item is inside another,
    `last` that the sentence ends the turn, `whole` that it ends as a sentence does, `joined` that it is
    several short items of one list. `speaker` is who said it ("Helen: …") where the text names them before.
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
    def told(self) -> str:
        """Its words after whose they are, where they do not say so themselves."""
        named = not self.speaker or self.text.startswith(f"{self.speaker}:")
        return self.text if named else f"{self.speaker}: {self.text}"

    @property
    def item(self) -> bool:
        return bool(self.marker)

    @property
    def whole(self) -> bool:
        return bool(_ENDED.search(self.text))


LONGEST = 100_000
"""Characters of one turn that are looked at from either end: more than that was pasted, not said."""

_LONGEST_SENTENCE = 2_000
"""Characters; what goes on longer without an end was no sentence."""

_ENDED = late(r"[.!?。！？…][\"'”’)\]*_`]*$")
_FENCE = late(r"\s*(`{3,}|~{3,})")
_HEADING = late(r"\s{0,3}#{1,6}\s+(.*?)\s*#*$")
_ITEM = late(r"(\s*)(?:[-*+•◦]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?:[✅✓✔☑❌✗☐➜→]\ufe0f?\s+)?")
_MARKED = late(r"\s*[✅✓✔☑❌✗☐]\ufe0f?\s+")
_OTHER = late(r"\s*(?:[|>]|[-=_*─]{3,}\s*$|[├└│┌┐┘↓↑➜$%]|</?[a-zA-Z][\w-]*[\s>])")
"""Tables, quotations, rules, drawings, shell prompts, markup: no words of the speaker's."""
_DUMP = late(
    r"\s*(?:[{}\[\]()]+[,;]?\s*$|[{\[]\s*[\"'{\[]|at\s+\S+\s*\(|File \"|Traceback |diff --git|@@ |"
    r"[+-]{3} [ab]/|"
    r"[\w.$]+\s*=\s*\S.*[;{(]\s*$|(?:import|from|const|let|var|def|class|function|export"
    r"|return)\b.*[;:{(]\s*$|"
    r"(?:\w+)?Error\b:?\s|[\w./-]+:\d+(?::\d+)?:?(?:\s|$)|\"?[\w-]+\"?:\s\S.*,\s*$)|.*(?:[{};]|=>|\\)\s*$"
    r"|.*\{\"|"
    r"\s*(?:\"?[\w-]+\"?:\s+)?[\"{\[].*[\"\]},]\s*$"
)
_BOLD = late(r"(\*\*\*|\*\*|__)(?=\S)(.{1,300}?)(?<=\S)\1")
_ITALIC = late(
    r"(?<![\w*])\*(?=[^\s*])([^*]+?)(?<=[^\s*])\*(?![\w*])|(?<![\w_])_(?=[^\s_])([^_]+?)(?<=[^\s_])_(?![\w_])"
)
_CODE = late(r"(`+)(?!`).{1,600}?(?<!`)\1(?!`)")
_END = late(r"(?<=[.!?…])(?:[\"'”’)\]*_]*)\s+(?=\S)|(?<=[。！？])\s*(?=\S)")
_NO_END = late(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|ca|approx|Mr|Mrs|Ms|Dr|Prof|St|Nr|Fig|Inc|Ltd|Co|Jr|Sr|al|aka|a\.k\.a"
    r"|z\.B|bzw)|"
    r"(?<=\w)str|\b(?:(?<!\bi )am|im|den|dem|der|vom|zum|bis|ab) \d{1,2}"
    r"|(?<![\w.])[A-Z]|\b[A-Z]\.[A-Z]|^\s*\d{1,3})\.$",
    re.IGNORECASE,
)
_ORDINAL, _NEXT_WORD = late(r"(?<![\w.,:/-])\d{1,2}\.$"), late(r"[^\W\d_]+")
_SHORTENED = late(
    r"(?:\b(?:e\.g|i\.e|vs|cf|ca|approx|Mr|Mrs|Ms|Dr|Prof|St|Nr|Fig|z\.B|bzw)|(?<=\w)str)\.$", re.IGNORECASE
)
"""What stands before a name or a number: a line that ends in it goes on."""
DANGLES = late(
    r"\b(?:because|and|or|but|nor|the|an?|of|to|than|from|by|if|whether|which|whose|my|our|your|its|their)$",
    re.IGNORECASE,
)
"""No statement ends in such a word."""
_LABELLED = late(
    r"[*_]*((?:(?:Frau|Herr|Dr\.) )?[A-ZÀ-ÖØ-Þ][\w'’-]*[a-zß-ÿ](?: [A-ZÀ-ÖØ-Þ][\w'’-]+){0,2}):[*_]* "
    r"(?=\S)(I\b)?"
)
_WRAPPED = 60
"""Characters from which a line without an end is taken to go on in the next one, as editors wrap text."""

_ASIDE = 400
"""Characters after which an open bracket is taken to have been forgotten; a stop before is inside it."""


def sentences(text: str) -> list[Sentence]:
    """All sentences of one turn's text, in order. Of a very long text its beginning and its end are read."""
    if len(text) > 2 * LONGEST:
        text = text[:LONGEST] + "\n\n" + text[-LONGEST:]
    found: list[Sentence] = []
    speakers, speaker = _speakers(text), ""
    for number, block in enumerate(_blocks(text)):
        label = _label(block.text)
        if label or speakers.total() < 2:
            speaker = label[1] if label and label[1] in speakers else ""
        for n, (start, end) in enumerate(_spans(block.text)):
            quote = one_line(block.text[start:end])
            if len(quote) > _LONGEST_SENTENCE:
                continue
            said = plain(quote)
            if any(letter.isalpha() for letter in said):
                marker = block.marker if n == 0 else ""
                where = (len(found), number, marker, block.nested, block.heading, block.lead)
                found.append(Sentence(said, quote, *where, speaker=speaker))
    if found and text.rstrip().endswith(found[-1].quote[-20:]):
        found[-1] = replace(found[-1], last=True)
    return found


def _label(line: str) -> re.Match[str] | None:
    """What stands before a colon at the beginning of a line as a speaker's name does."""
    found = _LABELLED.match(line)
    known = found and (found[1] in NO_NAMES or found[1].casefold() in LABELS)
    return None if known else found


def _speakers(text: str) -> Counter[str]:
    """Who speaks in a text, and how often: labels of which one is no English word, or says "I"."""
    labels = [label for label in map(_label, text.splitlines()) if label]
    certain = any(label[2] or not in_lexicon(label[1].split()[0]) for label in labels)
    return Counter(label[1] for label in labels if certain)


def plain(text: str) -> str:
    """Without the asterisks and underscores of bold and italic type, outside code."""
    parts, at = [], 0
    for code in _CODE.finditer(text):
        parts += [_without_type(text[at : code.start()]), code[0]]
        at = code.end()
    spread = "".join([*parts, _without_type(text[at:])])
    # Bold type around code ("**`name`** does …") spans the pieces above.
    return _BOLD.sub(r"\2", spread).strip() if "**" in spread else spread.strip()


def _without_type(text: str) -> str:
    if "*" not in text and "_" not in text:
        return text
    return _ITALIC.sub(lambda m: m[1] or m[2], _BOLD.sub(r"\2", text))


@dataclass(slots=True)
class _Block:
    """Lines that belong together: a paragraph or one list item, with what stands over them."""

    text: str
    marker: str
    nested: bool
    heading: str
    lead: str


def _blocks(text: str) -> Iterator[_Block]:
    heading = lead = fence = ""
    open_block: _Block | None = None
    dumped = False
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence or mark:
            if mark and not fence:
                fence = mark[1]
            elif mark and line.strip() == mark[1] and mark[1].startswith(fence):
                fence = ""
            kind = "break"
        else:
            kind = _kind(line)
            # What was pasted goes on until an empty line.
            dumped = kind != "blank" and (dumped or kind == "dump")
            kind = "break" if dumped else kind
        if open_block and (kind != "prose" or not _goes_on(open_block, line)):
            yield open_block
            # A line that ends in a colon introduces the list below it.
            if not open_block.marker:
                lead = plain(one_line(open_block.text)) if open_block.text.rstrip(" *_").endswith(":") else ""
            open_block = None
        if kind == "heading":
            heading, lead = plain(_HEADING.match(line)[1]), ""  # type: ignore[index]
        elif kind == "item":
            marker = _ITEM.match(line) or _MARKED.match(line)
            assert marker
            nested = len(line) - len(line.lstrip()) > 1
            open_block = _Block(line[marker.end() :], one_line(marker[0]), nested, heading, lead)
        elif kind == "prose":
            if open_block:
                open_block.text += "\n" + line
            else:
                lead = ""
                open_block = _Block(line.strip(), "", False, heading, lead)
    if open_block:
        yield open_block


def _kind(line: str) -> str:
    if not line.strip():
        return "blank"
    if _HEADING.match(line):
        return "heading"
    if _ITEM.match(line) or _MARKED.match(line):
        return "item"
    if _DUMP.match(line) and not _ENDED.search(line):
        return "dump"
    if _OTHER.match(line) or line.startswith(("    ", "\t")):
        return "break"
    return "prose"


def _goes_on(block: _Block, line: str) -> bool:
    """Whether a line continues the one above: a wrapped line does, a line of its own does not."""
    if _label(line):
        return False
    above = block.text.rsplit("\n", 1)[-1].rstrip()
    if above.endswith((":", ".", "!", "?")) and not _SHORTENED.search(above):
        return line.startswith("  ") and bool(block.marker)
    if above.endswith((",", ".")) or DANGLES.search(above) or len(above) >= _WRAPPED:
        return True
    # In a chat each line is one message, and mostly all of them begin small.
    wrapped = block.text.lstrip()[:1].isupper() and line[:1].islower()
    return wrapped or (bool(block.marker) and line.startswith("  "))


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence of a block begins and ends; a stop inside code or an abbreviation is none."""
    hidden = _CODE.sub(lambda m: "x" * len(m[0]), text) if "`" in text else text
    start = 0
    for stop in _END.finditer(hidden):
        before = hidden[max(start, stop.start() - 8) : stop.start()]
        following = _NEXT_WORD.match(hidden, stop.end())
        counts = following and (following[0] == "de" or foreign_dates.is_month(following[0]))
        if _NO_END.search(before) or (counts and _ORDINAL.search(before)):
            continue
        if stop.start() - start < _ASIDE and hidden.count("(", start, stop.end()) > hidden.count(
            ")", start, stop.end()
        ):
            continue
        yield start, stop.end()
        start = stop.end()
    if start < len(text):
        yield start, len(text)


# -- weighing ----------------------------------------------------------------------------------------------
# What one sentence weighs, in its place in the conversation.


THRESHOLD = {"person": 0.5, "assistant": 0.6}
LONG_THRESHOLD, LONG_TALK = {"person": 0.84, "assistant": 0.92}, 170
"""How likely a sentence of each speaker must be worth keeping to be kept, and how likely in a conversation
in which they say so many sentences or more: the longer one goes on, the more is overtaken by its own end, and
an agent's words sooner than a person's."""


@dataclass(frozen=True, slots=True)
class Context:
    """Where a sentence was said. `closing`: its turn ended what an assistant did before a person spoke again,
    `final`: the conversation ended there; `proposal`: the turn asks for leave to go on; `refused`: the person
    said no to it, `confirmed`: that it is so."""

    person: bool
    closing: bool = False
    final: bool = False
    proposal: bool = False
    refused: bool = False
    confirmed: bool = False


_GOOD_PLACE = late(
    r"\b(?:summary|key (?:fix|point|insight|decision)s?|important|notes?|results?|decisions?|decided|"
    r"root cause|problem|conclusion|lessons?|why|"
    r"completed|accomplished|done|changes|fix|removal)\b",
    re.IGNORECASE,
)
_PLAN_PLACE = late(
    r"\b(?:need(?:s|ed)?|should|would|could|will|i'll|let me|want me|going to|next|remaining|plan"
    r"|fix(?:es)? (?:plan|options?)|options?|phase|propos(?:ed|als?)|examples?|todo|possible"
    r"|current(?:ly)?|right now|target|goals?|better"
    r"|progress|can:|risks?|benefits?|overview)\b",
    re.IGNORECASE,
)
"""Over a list of what is to be done, or of how things are before it is."""
_TAG = late(r"(?:,|\.{2,})? ?\b(?:right|ok|okay|correct|oder|hein|verdad|no)\s*[?？]$", re.IGNORECASE)
"""What makes a statement a question that expects a yes: "it ought to stay as it is, right?"."""
_PLEASANT = late(r"\bcan['’]?t wait\b|^(?:thanks|thank you|welcome|congrat\w+)\b[^.,;:]*$", re.IGNORECASE)
_ANSWERS = late(
    r"(?:got it|noted|understood|hi|hey|hello|thanks|thank you|sorry|you're (?:right|welcome)"
    r"|good (?:catch|point)|sounds good"
    r"|bonjour|hallo|hola|danke|merci|gracias)\b",
    re.IGNORECASE,
)
_LOGGED = late(
    r"\[?(?:\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d\S*\s+\[?(?:ERROR|WARN|INFO|DEBUG|TRACE|FATAL|CRITICAL)"
)
"""A line of a log."""
_CODE_LIKE = late(r"`[^`]*`|\S*[/\\]\S*\.\w+|\b[\w-]+\.(?:[a-z]{1,4})\b|\w+\(\)")


@dataclass(frozen=True, slots=True)
class Score:
    """How much a sentence weighs, and the names of the cues that made it so, heaviest first."""

    value: float
    cues: tuple[str, ...]


NOTHING = Score(0.0, ())
CONFIRMED = 3.0
"""Log-odds that a sentence gains of which the person says that it is so: now it is theirs, too."""
LEFT_TO_DO, REQUEST = 2.3, -3.0
"""Log-odds of a person's sentence that says what is still to be done, which few labelled ones do, and of one
that asks for something to be done now."""
RULE = Score(1.0, ("standing rule",))
"""A person's standing rule is kept whatever else is, and is a preference."""


@cache
def _weights() -> dict[str, dict[str, float]]:
    """What each feature of a person's and of an assistant's sentence weighs, in log-odds: learned by
    `benchmarks/worth.py` from labelled sentences."""
    return {who: dict(some) for who, some in json.loads(data_text("worth.json"))["weights"].items()}


def score(sentence: Sentence, context: Context) -> Score:
    """How likely a sentence is worth keeping, in its place; `NOTHING` for what is no statement at all."""
    if only_secrets(sentence.text):
        return NOTHING
    if context.person and standing_rule(sentence.text):
        return RULE
    if not states(sentence, context.person):
        return NOTHING
    weights = _weights()["person" if context.person else "assistant"]
    found = {name: weights.get(name, 0.0) * value for name, value in features(sentence, context).items()}
    carrying = (name for name, cue in cues().items() if cue.group == CARRIES and found.get(name, 0) > 0)
    carries = sorted(((found[name], name) for name in carrying), reverse=True)
    more = CONFIRMED * context.confirmed
    if context.person:
        more += LEFT_TO_DO * ("left to do" in found) + REQUEST * ("request" in found)
    value = 1 / (1 + exp(-sum(found.values()) - more))
    return Score(round(value, 3), tuple(dict.fromkeys(name for _, name in carries)) or ("statement",))


def features(sentence: Sentence, context: Context) -> dict[str, float]:
    """What is seen of a sentence in its place: the names of its features, each with its value."""
    text = _TAG.sub("", sentence.text)
    small = text.lower()
    seen = (name for name, cue in cues().items() if cue.pattern.search(text if cue.cased else small))
    found = dict.fromkeys(seen, 1.0)
    words = len(_WORD.findall(text) if _UNSPACED.search(text) else text.split())
    above = f"{sentence.heading} {sentence.lead}"
    opens = sentence.index == 0 and not sentence.item
    said = {
        "bias": True,
        "under 5 words": words < 5,
        "under 8 words": words < 8,
        "over 15 words": words > 15,
        "over 30 words": words > 30,
        "item": sentence.item,
        "short list": sentence.joined,
        "list of values": sentence.joined and all(re.search(r"\d", item) for item in text.split("; ")),
        "nested": sentence.nested,
        "introduced": bool(sentence.lead),
        "good place": bool(_GOOD_PLACE.search(above)),
        "under a plan": bool(_PLAN_PLACE.search(above)),
        "first": opens and not sentence.last,
        "all that is said": opens and sentence.last,
        "last": sentence.last and sentence.index > 0,
        "late": sentence.index > 8,
        "closing": context.closing,
        "final": context.final,
        "proposal": context.proposal,
        "refused": context.refused,
    }
    found |= {name: 1.0 for name, holds in said.items() if holds}
    found["length"] = log(words + 1) - 2.3
    return found


def only_secrets(text: str) -> bool:
    """Whether secrets were taken out of a text, and what is left says no more than what they were."""
    left, count = redaction.MARKER.subn(" ", text)
    if not count:
        return False
    if _UNSPACED.search(left := _CREDENTIAL.sub(" ", left)):
        return len(_KANA.sub("", left)) < 3
    return len({word for word in words_of(left) if len(word) > 1} - STOP_WORDS - all_stop_words()) < 2


_CREDENTIAL = late(
    r"\b(?:api|access|auth|secret|private)?[ _-]?(?:keys?|tokens?|pass(?:word|phrase|wd|code)?s?|pwd"
    r"|secrets?|credentials?|logins?|pins?|user(?:name)?s?|passw[oö]rt(?:er)?|kennwort|schlüssel|zugangsdaten"
    r"|mots?\s+de\s+passe|clés?|jetons?|identifiants?|contraseñas?|claves?|credenciales)\b"
    r"|\b(?:use|here|remember|please|db|set|new|now|note|always|immer|toujours|siempre|nuev[oa]|neue[rs]?)\b"
    r"|パスワード|暗証番号|キー|鍵|トークン|新しい|ユーザー名?",
    re.IGNORECASE,
)
_KANA = late(r"[ぁ-ん\W]")
_UNSPACED = late("[ぁ-んァ-ン一-龯가-힣]")
_WORD = late(r"[^\W\d_]{1,2}|\d+")
"""Words of a script that puts no blanks between them, two letters for one."""


def states(sentence: Sentence, person: bool) -> bool:
    """Whether it is a statement at all: long enough, short enough, not cut off, no row of names, no line of a
    log, no question and no pleasantry."""
    text = sentence.text
    if _LOGGED.match(text) or (text.endswith(("?", "？")) and not (person and _TAG.search(text))):
        return False
    if _PLEASANT.search(text) or (_ANSWERS.match(text) and not _TELLS.search(text)):
        return False
    words = _WORD.findall(text) if _UNSPACED.search(text) else text.split()
    if not 5 - person <= len(words) <= 80 or text.endswith(":") or len(text) > 600:
        return False
    if DANGLES.search(text):
        return False
    if not (person or sentence.whole or sentence.marker):
        return False
    bare = _CODE_LIKE.sub(" ", text)
    spoken = [word for word in (words if _UNSPACED.search(text) else bare.split()) if word[:1].isalpha()]
    return len(spoken) >= 4 and 2 * len(spoken) >= len(words)


# -- extract -----------------------------------------------------------------------------------------------
# A flush without a model: the speakers' own sentences that are worth keeping, verbatim.
#
# Sentences are weighed one by one (`weighing`), and what is likely enough to be worth it is kept. Sentences
# that lean on each other are one thought, what was said before is folded into one candidate, a later value
# replaces an earlier one, and what the person denies goes. Memory is bounded by what is kept, not by what is
# read. Nothing is reworded, so nothing can be made up.


MOST = 300
"""Statements of one conversation; of more the likeliest are kept: `Extraction.left` counts the others."""
_TOGETHER, _THOUGHT = 3, 360
"""Sentences, and characters, that one thought has at most."""
_SAME = 0.7
"""Share of words in common from which two statements say the same."""
_LEANING = 0.25
"""How likely a sentence must be worth keeping that follows one that is kept, and leans on it."""
_SHORT_ITEM, _LEAD = 4, 10
"""Words: items of fewer say something only with the rest of their list; a longer lead introduces nothing."""
_CONTINUES = late(
    r"(?:it|its|it's|this|that|that's|these|those|they|them|he|she|both|so|but|because|otherwise|then"
    r"|therefore|hence|"
    r"which|unless|until|except|however|instead)\b",
    re.IGNORECASE,
)
_EMPTY_LEAD = late(
    r"\b(?:here(?:'s| is| are)|let me|i(?:'ve|'ll| have| need| see)?|we(?:'ve| have| now|'ll)?|you"
    r"|want me|now|done"
    r"|summary|changes|notes?|overview|fix|the following|steps?|approach|key|question|ich|je"
    r"|voici|hier)\b",
    re.IGNORECASE,
)
"""Such a line before a list says nothing of its items."""
_VALUE = late(rf".*\d|(?:{A_MONTH}|{_WEEKDAY})$")
_CHANGES = terms("back set planned make lets again")
"""Words that go with a change of a value, and say nothing of what it is."""
_HASHTAG = late(r"(?<![\w&/])#([A-Za-z][\w/-]*)")


def extract(
    turns: Iterable[Turn], *, zone: tzinfo | None = None, most: int = MOST, likely: float | None = None
) -> list[Candidate]:
    """The statements of these turns that are worth keeping, in the order in which they were said.

    At most `most`. `likely` is how likely one must be worth keeping, if not what the speaker's words need.
    `zone` is where the speakers' day begins; without it, the recorded times' own. Text is as it was said:
    taking out secrets is the caller's.
    """
    extraction = Extraction(zone, most, likely)
    for turn in turns:
        extraction.add(turn)
    return extraction.best()


@dataclass(slots=True)
class _PlacedCandidate:
    """A candidate with its place in the conversation and the words it is compared by."""

    candidate: Candidate
    order: tuple[int, int]
    terms: frozenset[str]
    about: frozenset[str] = frozenset()
    """Where it gives a number: its words but the value and those that say that it changed."""
    repeated: int = 0
    """Statements in other words that it stands for."""


class Extraction:
    """Turns go in one by one, the best statements come out. Sub-agents are lines of their own."""

    def __init__(self, zone: tzinfo | None = None, most: int = MOST, likely: float | None = None) -> None:
        self.left = 0
        """Statements worth keeping that are left out, since there are too many."""
        self.repeated = 0
        """Statements that are left out, since one that is kept says nearly the same; known after `best`."""
        self._zone, self._most, self._likely = zone, most, likely
        self._heard: Counter[str] = Counter()
        """Sentences of each speaker."""
        self._turns = 0
        self._waiting: tuple[int, Turn] | None = None
        """The assistant's latest turn: what follows tells whether it closed what was being done."""
        self._held: dict[int, _PlacedCandidate] = {}
        self._by_term: dict[str, set[int]] = {}
        self._count = 0
        self._person = 0
        """The number of the person's latest turn."""

    def add(self, turn: Turn) -> None:
        """One more turn, in the order of the conversation."""
        self._turns += 1
        self._weigh_waiting(turn)
        if turn.role == "tool":
            return
        if turn.role == "person":
            if _TAKES_BACK.match(turn.text):
                self._drop(range(self._person, self._person + 1))
            if _DENIES.match(turn.text):
                self._drop(range(self._person + 1, self._turns))
            self._person = self._turns
            self._weigh(self._turns, turn, Context(person=True))
        else:
            self._waiting = (self._turns, turn)

    def best(self) -> list[Candidate]:
        """What is worth keeping of all that was heard, in the order it was said."""
        self._weigh_waiting(None)
        said = sorted(self._held.values(), key=lambda held: held.order)
        kept = [held for held in said if held.candidate.score >= self._likely_enough(held.candidate.who)]
        self.repeated = sum(held.repeated for held in kept)
        return [held.candidate for held in kept]

    def _weigh_waiting(self, following: Turn | None) -> None:
        if self._waiting:
            (number, turn), self._waiting = self._waiting, None
            self._weigh(number, turn, _assistant(turn, following))

    def _likely_enough(self, who: str) -> float:
        long = min(1.0, self._heard[who] / LONG_TALK)
        return self._likely or THRESHOLD[who] + (LONG_THRESHOLD[who] - THRESHOLD[who]) * long

    def _weigh(self, number: int, turn: Turn, context: Context) -> None:
        typed = command(turn.text.strip()) if context.person else None
        said, echo = sentences(typed[1] if typed else turn.text), grounding.flat(turn.echo)
        if turn.echo:  # what a tool printed is not remembered because an agent repeats it
            said = [one for one in said if not grounding.repeats(one.text, echo)]
        self._heard[turn.role] += len(said)
        for thought in _thoughts(join_lists(said), context, self._likely or THRESHOLD[turn.role]):
            self._keep(_candidate(thought, turn, context, self._zone), (number, thought[0][0].index))

    def _keep(self, candidate: Candidate, order: tuple[int, int]) -> None:
        """Take it in, folded with what says the same; let the lightest go when too many are held."""
        said, about, repeated = terms(candidate.text), _about(candidate.text), 0
        for key in self._alike(candidate, said, about):
            earlier = self._held.pop(key)
            self._forget(key, earlier.terms)
            other_words = said != earlier.terms
            candidate = _folded(earlier.candidate, candidate)
            repeated += earlier.repeated + (other_words and candidate.was != earlier.candidate.text)
            if candidate.turn == earlier.candidate.turn:
                order, said, about = earlier.order, earlier.terms, earlier.about
        self._count += 1
        self._held[self._count] = _PlacedCandidate(candidate, order, said, about, repeated)
        for term in said:
            self._by_term.setdefault(term, set()).add(self._count)
        if len(self._held) > self._most:
            self.left += 1
            lightest = min(self._held, key=lambda key: self._held[key].candidate.score)
            self._forget(lightest, self._held.pop(lightest).terms)

    def _drop(self, turns: range) -> None:
        """Let go of what was said in these turns."""
        for key in [key for key, held in self._held.items() if held.order[0] in turns]:
            self._forget(key, self._held.pop(key).terms)

    def _alike(self, candidate: Candidate, said: frozenset[str], about: frozenset[str]) -> list[int]:
        """The keys of those held that say the same, or give an earlier value of the same thing."""
        changes = bool(CHANGED.search(candidate.text))
        named = set(candidate.entities)
        shared = Counter(key for term in said for key in self._by_term.get(term, ()))
        return [
            key
            for key, common in shared.items()
            if (
                common >= 3
                and common >= _SAME * min(len(said), len(self._held[key].terms))
                and common >= 0.5 * max(len(said), len(self._held[key].terms))
                and not _of_others(said, self._held[key].terms)
                and not _differ(named, set(self._held[key].candidate.entities))
            )
            or _new_value(self._held[key], said, about, changes)
            or _misspelt(self._held[key].candidate.text, candidate.text)
        ]

    def _forget(self, key: int, said: frozenset[str]) -> None:
        for term in said:
            self._by_term[term].discard(key)
            if not self._by_term[term]:
                del self._by_term[term]


def _of_others(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two statements differ in a number and in what it is of: staging on 8080, the preview on 9090.
    Where only the number differs, the later one corrects the earlier."""
    apart = [{any(map(str.isdigit, term)) for term in terms} for terms in (one - other, other - one)]
    return apart == [{True, False}] * 2


def _differ(some: set[str], others: set[str]) -> bool:
    """Whether each has a name that the other has not: what Martin likes, Marvin may like too."""
    return bool(some - others and others - some)


def _misspelt(one: str, other: str) -> bool:
    """Whether two statements are the same but for a slip of the pen in one word: "remoev that" and its
    correction."""
    if abs(len(one) - len(other)) > 2:
        return False
    mine, theirs = (re.findall(r"\w+", text.lower()) for text in (one, other))
    apart = [pair for pair in zip(mine, theirs, strict=False) if pair[0] != pair[1]]
    if len(mine) != len(theirs) or len(apart) != 1:
        return False
    found = likeness(*apart[0])
    return found is not None and found.how == "sure"


def _about(text: str) -> frozenset[str]:
    if not any(map(str.isdigit, text)):
        return frozenset()
    return frozenset(word for word in terms(CHANGED.sub(" ", text)) if not _VALUE.match(word)) - _CHANGES


def _new_value(earlier: _PlacedCandidate, said: frozenset[str], about: frozenset[str], changes: bool) -> bool:
    """Whether a statement gives the thing that an earlier one was about another number or day. One that says
    that something changed may say more besides."""
    same = about == earlier.about or (changes and len(about) >= 2 and earlier.about < about)
    if not (earlier.about and about and same):
        return False
    return all(any(map(str.isdigit, "".join(some))) for some in (earlier.terms - said, said - earlier.terms))


_Thought = tuple[Sequence[Sentence], Score]
"""Sentences that stand together, and the score of the heaviest."""


def join_lists(said: list[Sentence]) -> Iterator[Sentence]:
    """The sentences, the short items of one list as a single one: a name and a number say nothing alone."""
    for _, some in groupby(
        said, key=lambda one: (one.lead, one.nested) if _is_short_item(one) else one.index
    ):
        items = list(some)
        lead = _lead(items[0])
        text = f"{lead} " + "; ".join(one.text.rstrip(".;,") for one in items)
        if len(items) < 2 or not lead or len(text) > _THOUGHT:
            yield from items
            continue
        quote = items[0].quote + "".join(f" {one.marker} {one.quote}" for one in items[1:])
        yield replace(items[-1], text=text, quote=quote, index=items[0].index, lead="", joined=True)


def _is_short_item(sentence: Sentence) -> bool:
    return bool(sentence.lead and sentence.marker) and len(sentence.text.split()) < _SHORT_ITEM


def _lead(sentence: Sentence) -> str:
    """The words that introduce the list of an item, where they say what its items are; else ''."""
    last = _END.split(sentence.lead)[-1] if sentence.item else ""
    fits = 0 < len(last.split()) <= _LEAD and not _EMPTY_LEAD.search(last)
    passes = (cue.pattern.search(last.lower()) for cue in cues().values() if cue.group == PASSES)
    return last if fits and not any(passes) else ""


def _thoughts(said: Iterable[Sentence], context: Context, likely: float) -> Iterator[_Thought]:
    """The sentences worth keeping, each with those beside it that belong to it."""
    said = list(said)
    scores = [score(sentence, context) for sentence in said]
    at = free = 0
    while at < len(said):
        start, at = at, at + 1
        if scores[start].value < likely:
            continue
        while (
            start > free and said[start].marker and _belongs(said[start - 1], said[start], scores[start - 1])
        ):
            start -= 1
        corrects = _CORRECTS.match(said[start].text)
        if corrects or cues()[LEANS].pattern.match(said[start].text.lower()):
            before = start - 1
            if before >= free and said[before].block == said[start].block and _carries_on(said[before]):
                start = before
            elif not corrects and not _TELLS.search(said[start].text):
                continue  # nobody can tell what it is about
        while (
            at < len(said)
            and at - start < _TOGETHER
            and _belongs(said[at - 1], said[at], scores[at])
            and sum(len(sentence.text) for sentence in said[start : at + 1]) <= _THOUGHT
        ):
            at += 1
        free = at
        heaviest = max(scores[start:at], key=lambda one: one.value)
        yield said[start:at], heaviest


def _carries_on(sentence: Sentence) -> bool:
    """Whether a sentence says what the next one is about: it is no exclamation, no question, no lead."""
    return len(sentence.text.split()) > 2 and not sentence.text.endswith(("?", ":"))


def _belongs(one: Sentence, other: Sentence, weight: Score) -> bool:
    """Whether a sentence, right after another that is kept, is part of the same thought.

    In a paragraph it is if it leans on the one before; it then may weigh less than one that stands alone.
    The items of a numbered list are steps and belong together, those of a bulleted list are not.
    """
    if one.block == other.block:
        if other.text.endswith(("?", "？")):
            return False
        if _CORRECTS.match(other.text):
            return True
        return bool(_CONTINUES.match(other.text)) and (weight.value >= _LEANING or "reason" in weight.cues)
    if not (one.marker[:1].isdigit() and other.marker[:1].isdigit()) or other.block != one.block + 1:
        return False
    same = (one.nested, one.heading, one.lead) == (other.nested, other.heading, other.lead)
    return same and weight.value >= _LEANING


def _candidate(thought: _Thought, turn: Turn, context: Context, zone: tzinfo | None) -> Candidate:
    sentences, score = thought
    text, quote = _lead(sentences[0]), ""
    for sentence in sentences:
        joint = "" if not text else " " if text.endswith((".", "!", "?", "…", ":")) else "; "
        text += joint + (sentence.told if context.person and not text else sentence.text)
        quote += (
            f" {sentence.marker} " if sentence.marker and quote else " " if quote else ""
        ) + sentence.quote
    at = turn.at.astimezone(zone) if turn.at and zone else turn.at
    return Candidate(
        text=text,
        kind=_candidate_kind(score, context),
        who="person" if context.person else "assistant",
        when=extractor.when_in_text(text, at.date()) if at else None,
        entities=names(text),
        tags=tuple(dict.fromkeys(_HASHTAG.findall(text))),
        quote=quote,
        turn=turn.id,
        at=turn.at,
        score=score.value,
        reason=", ".join(score.cues),
    )


def _candidate_kind(found: Score, context: Context) -> CandidateKind:
    if context.person and ("preference" in found.cues or found.cues == RULE.cues):
        return "preference"
    return "experience" if found.cues[0] == "outcome" else "world"


def _folded(earlier: Candidate, later: Candidate) -> Candidate:
    """One for both: the heavier wording, the later if they weigh the same; the other turn is a sighting."""
    before, now = terms(earlier.text), terms(later.text)
    if all(any(map(str.isdigit, "".join(some))) for some in (before - now, now - before)):
        return replace(later, score=max(earlier.score, later.score), was=earlier.text)
    corrected = _misspelt(earlier.text, later.text)
    kept, other = (earlier, later) if earlier.score > later.score and not corrected else (later, earlier)
    seen = dict.fromkeys((*earlier.seen, *later.seen, other.turn))
    seen.pop(kept.turn, None)
    # That it was said again in another turn says that it matters; a third time says no more.
    again = 0.5 if earlier.turn != later.turn and not earlier.seen and not later.seen else 0.0
    return replace(kept, score=kept.score + again, seen=tuple(seen))


_REFUSAL = late(
    r"\s*(?:no\b(?! problem)|nope|nah|wait\b|stop\b|wtf|that's (?:wrong|horrible|not)|"
    r"this (?:is|looks) wrong|don't\b|"
    r"actually[, ]|revert|undo|sooo*,? why|why (?:would|are|do|did) (?:we|you))",
    re.IGNORECASE,
)
_CONFIRMS = late(
    r"\s*(?:(?:o+h+|a+h+|yes|yeah|ja|oui|sí|perfect|great|ok)[,.! ]+)*(?:exactly|correct\b|agreed|confirmed"
    r"|(?:that's|thats) (?:it|right|true)\b|you(?:'re| are) right|let['’]?s do (?:it|that)|genau|richtig"
    r"|stimmt\b(?! nicht)|exact|c['’]est (?:ça|bien ça|exact)|eso es|correcto|así es)"
    r"|(?:はい|ああ)?[、。]?(?:そうです|その通り)",
    re.IGNORECASE,
)
_TAKES_BACK = late(
    r"\s*(?:(?:no|wait|hm+|ok|sorry)[,. ]+)?(?:actually,? (?:can|could|let's|revert|undo|no\b|never)|"
    r"scratch that|never ?mind|"
    r"forget (?:that|it|about)|on second thought|i changed my mind|i take that back|strike that)",
    re.IGNORECASE,
)
_CORRECTS = late(
    r"(?:(?:oh|ah|eh|euh|äh|hm+|ach)[,.… ]+)?(?:(?:no|nein|non)\b[,.… ]*(?:wait|hold on|sorry|moment|warte"
    r"|pardon|attends?|perdon\w*|perdón|espera|mejor)|sorry|i mean|ich meine?|quatsch|je veux dire"
    r"|quiero decir|mejor dicho)\b|いや|違",
    re.IGNORECASE,
)
"""With such words a person puts right what they have just said: alone they do not say of what."""
_DENIES = late(
    r"\s*(?:(?:hm+|no+|nope|nah|ok|well|sorry|but|wait|nein|non|aber|mais|pero)[,. !]+)*"
    r"(?:(?:it|that|this|page|build|the \w+)?(?:'s| is)? ?still (?!need|open|to do|want|like)"
    r"|same (?:error|problem|issue|result|thing)"
    r"|(?:it|that|this) (?:did(?:n['’]?t| not) (?:work|help|fix)|does(?:n['’]?t| not) (?:work|help)"
    r"|is(?:n['’]?t| not) (?:it|fixed"
    r"|true|right)|was(?:n['’]?t| not) it)|(?:that|this|it)(?:['’]?s| is) (?:wrong|not (?:it|true|right"
    r"|fixed))"
    r"|i (?:undid|reverted|rolled) |nothing (?:changed|has changed)|not fixed|(?:immer )?noch immer"
    r"|immer noch|geht (?:immer )?noch nicht"
    r"|stimmt nicht|das (?:war|ist) es nicht|toujours (?:pareil|la même|cassé|rouge)"
    r"|ça (?:ne )?marche (?:toujours )?pas"
    r"|sigue (?:igual|fallando|sin)|no funciona|まだ)"
    r"|\s*(?:no|nope|nah|nein|non)\s*[.!]*\s*$",
    re.IGNORECASE,
)
"""With such words a person denies what the agent has just claimed."""
_PROPOSES = late(
    r"(?:want me to|should i|shall i|would you like|do you want|what do you think|your take)[^?\n]*\?\s*$",
    re.IGNORECASE,
)


def _assistant(turn: Turn, following: Turn | None) -> Context:
    """How an assistant's turn stands in the conversation, seen from the turn after it."""
    closing = following is None or following.role != "tool" or turn.summary
    return Context(
        person=False,
        closing=closing,
        final=following is None,
        proposal=closing and bool(_PROPOSES.search(turn.text[-300:])),
        refused=bool(following and following.role == "person" and _REFUSAL.match(following.text)),
        confirmed=bool(following and following.role == "person" and _CONFIRMS.match(following.text)),
    )


# -- own words ---------------------------------------------------------------------------------------------
# Facts of a text without a model: its author's own sentences, list items and rows of tables.
#
# Nothing is reworded. A row is written with the words of its table's head before its own, since alone it
# would say nothing.


OWN_LIKELY, OWN_AT_LEAST = 0.4, 12
"""How likely a sentence must be worth keeping, less than in a talk: an author chose the words. Of so few
sentences all are kept that name somebody or count something."""
_WORDS = 4
"""A list item of fewer words says nothing alone."""
_ROW = late(r"\s*\|(.*)\|\s*$")
_RULE = late(r"\s*\|[\s:|-]+\|\s*$")


def extract_without_model(chunk: Chunk, brief: TextContext) -> ExtractedChunk:
    """What is kept of a chunk without a model."""
    whole = TextPart("person", brief.at)
    if brief.mode == "chunks":
        text = chunk.text.strip()
        return ExtractedChunk((replace(_tagged(_fact(whole, text, text), brief), entities=()),))
    if brief.mode == "verbatim":
        return ExtractedChunk(tuple(_tagged(_fact(whole, each, each), brief) for each in pieces(chunk.text)))
    parts = [
        part for part in text_parts(chunk.above + chunk.text, brief.at, chunk.form) if part.role == "person"
    ]
    weighed = [*_said(parts), *(fact for part in parts for fact in _listed(part))] or [*_alone(parts)]
    more = islice((fact for part in parts for fact in _named(part)), max(OWN_AT_LEAST - len(weighed), 0))
    found = [(_position(chunk.text, fact), fact) for fact in (*weighed, *more)]
    found.sort(key=lambda each: each[0])
    tagged = (_tagged(fact, brief) for fact in _once(fact for _, fact in found))
    return ExtractedChunk(tuple(tagged))


def _said(parts: Sequence[TextPart]) -> Iterator[Fact]:
    turns = [Turn(str(n), "person", part.text, part.at) for n, part in enumerate(parts)]
    for each in extract(turns, likely=OWN_LIKELY):
        fact = _fact(parts[int(each.turn)], each.text, each.quote)
        yield replace(fact, kind=each.kind, tags=each.tags)


def _alone(parts: Sequence[TextPart]) -> Iterator[Fact]:
    """A statement that is all there is: whoever hands over one sentence wants it kept."""
    said = [(part, sentence) for part in parts for sentence in sentences(part.text)]
    for part, sentence in said[: len(said) == 1]:
        text = one_line(part.text)
        if sentence.text == text and len(text.split()) >= _WORDS and not text.endswith("?"):
            yield _fact(part, text, text)


def _listed(part: TextPart) -> Iterator[Fact]:
    """Items that are whole statements, and the rows of tables."""
    for sentence in sentences(part.text):
        if sentence.item and not sentence.nested and len(sentence.text.split()) >= _WORDS:
            text = f"{sentence.lead} {sentence.text}" if sentence.lead else sentence.told
            if not text.rstrip().endswith("?"):
                yield _fact(part, text, sentence.quote)
    yield from (_fact(part, text, line, cells) for text, line, cells in _rows(part.text))


def _named(part: TextPart) -> Iterator[Fact]:
    """Whole sentences that name somebody or count something: few of a document are chat."""
    for sentence in sentences(part.text):
        whole = sentence.whole or part.speaker  # in a chat few end with a stop
        plain = whole and not sentence.item and not sentence.text.rstrip().endswith("?")
        telling = any(map(str.isdigit, sentence.text)) or names(sentence.text)
        if part.head and cues()["request"].pattern.match(sentence.text.lower()):
            continue  # of an agent, or of the other side of a chat
        if plain and telling and len(sentence.text.split()) >= _WORDS:
            yield _fact(part, sentence.told, sentence.quote)


def _fact(part: TextPart, text: str, quote: str, named: str = "") -> Fact:
    """A statement of a part, with the words it was made of where these are others."""
    found = names(named or text)
    if part.speaker:
        text, found = f"{part.speaker}: {text}", tuple(dict.fromkeys((part.speaker, *found)))
    when = extractor.when_in_text(quote, part.at.date() if part.at else None)
    return Fact(text, entities=found, when=when, quotes=() if text == quote else (Quote(quote),))


def _rows(text: str) -> Iterator[tuple[str, str, str]]:
    """Each row of a table with the words of its head, as it stands there, and its cells alone."""
    head: list[str] = []
    above = ""
    for line in text.splitlines():
        row = _ROW.match(line)
        if _RULE.match(line):
            found = _ROW.match(above)
            head = [plain(cell.strip()) for cell in found[1].split("|")] if found else []
        elif row and head:
            cells = [plain(cell.strip()) for cell in row[1].split("|")]
            said = [f"{key}: {cell}" if key else cell for key, cell in zip(head, cells, strict=False) if cell]
            if len(said) > 1:
                yield "; ".join(said), one_line(line), "; ".join(cells)
        elif not row:
            head = []
        above = line


def _once(facts: Iterator[Fact]) -> Iterator[Fact]:
    """Each statement once: one that is within another is no second."""
    kept: list[tuple[frozenset[str], Fact]] = []
    for fact in facts:
        if only_secrets(fact.text):
            continue
        words = terms(fact.text)
        if not any(words <= said for said, _ in kept):
            kept = [each for each in kept if not each[0] < words]
            kept.append((words, fact))
    yield from (fact for _, fact in kept)


def _tagged(fact: Fact, brief: TextContext) -> Fact:
    return replace(fact, tags=tuple(dict.fromkeys((*brief.tags, *fact.tags))))


def _evidence(fact: Fact) -> str:
    return fact.quotes[0].text if fact.quotes else fact.text


def _position(text: str, fact: Fact) -> int:
    flat = one_line(text)
    return flat.find(one_line(_evidence(fact))) % (len(flat) + 1)
