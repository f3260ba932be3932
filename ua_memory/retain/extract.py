"""A flush without a model: the speakers' own sentences that are worth keeping, verbatim."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from itertools import islice

from ua_memory.records import Fact, Quote
from ua_memory.retain import extractor
from ua_memory.retain.extractor import Chunk, ExtractedChunk, TextContext, pieces
from ua_memory.retain.subagent import Candidate, CandidateKind
from ua_memory.retain.subagent import one_line as one_line_candidate
from ua_memory.text import grounding, stated_dates
from ua_memory.text.grounding import terms
from ua_memory.text.names import names
from ua_memory.text.rules import standing_rule
from ua_memory.transcripts.turns import Turn

# -- cues --------------------------------------------------------------------------------------------------
# What makes a sentence worth keeping, as one table: cue, weights, and the words it is told by.
#
# A cue counts once however often it occurs, and weighs differently in a person's words and in an
# assistant's. Most of the words are English; what names a detail, a reason or a decision is known in German,
# French, Spanish and Japanese too.


@dataclass(frozen=True, slots=True)
class Cue:
    """`person` and `assistant` are what it adds to the score of a sentence of theirs."""

    name: str
    pattern: re.Pattern[str]
    person: float
    assistant: float


def _cue(name: str, person: float, assistant: float, *ways: str) -> Cue:
    return Cue(name, re.compile("|".join(ways), re.IGNORECASE), person, assistant)


_WE = r"\b(?:i|we)(?:'d| would|'ll| will)?(?: \w+ly)?(?: only| just| also| always| never| rather)?"
"""We would only …: a person who speaks of what they want."""
_ERRAND = r"(?:do|know|see|test|ask)\b"
"""What one wants to do next is no preference."""
_OPENING = r"(?:(?:ok|okay|great|good|perfect|excellent|alright|right|yes|done|expected)[,.!—-]+ *)?"
_ASKING = (
    r"(?:(?:ok|okay|alright|now|then|and|also|please|yes|so|or|btw|could you|can you|can we|how about you|"
    r"want you to|i (?:actually )?want you to)[, ]+)*"
)
_IT = r"(?:this|that|these|those)"
_DOES = r"(?:was|were|are|will|would|can|could|should|may|might|did|won't|can't|doesn't|isn't|wasn't)"
_MY = (
    r"(?:name|wife|husband|partner|son|daughter|kids?|mother|father|parents?|sister|brother|friend|boss"
    r"|colleagues?|"
    r"team|company|birthday|address|phone|email|doctor|dog|cat|car|house|flat|job|manager|landlord|server"
    r"|laptop|account)"
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|march|april|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|"
    r"dec(?:ember)?)"
)
_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"

_DETAIL = (
    r"(?!.*\b(?:needs? to (?!know)|want you|should|please|can you|could you|i would)\b)"
    r"(?!(?:(?:ok|okay|hm+|so|and|then|but)[, ]+)*(?:you can|how|what|whats|which|who|when|where|why|is|are"
    r"|can|could|do|does|did"
    r"|wie|was|wann|wer|warum|comment|quand|pourquoi|qui|combien|cómo|cuándo|quién|cuánto)\b)"
    r"(?=.*(?:\d|`[^`]+`|\"[^\"]{3,}\"|\w/\w|#[a-z]|(?-i:[a-z][A-Z]|[^\W\d_],? [A-Z][a-z]{2,})"
    r"|[ァ-ン]{3,}|[一-龯]{2,}さん))"
)
"""A number, a name, a path or other words that stand for one thing alone."""
_STATES = (
    r"(?:\b(?:is|are|was|were|its|it's|thats|that's|has|have|takes?|goes|does|moved?|moves|slips?|called"
    r"|named|went|"
    r"starts?|begins?|ends?|planned|limit|budget|total|quote|needs?|expires?|leaves?|owns?|decides?"
    r"|from now|no longer|"
    r"heißt|ist|sind|macht|hat|haben|dürfen|darf|verschiebt|est|sont|c['’]est|passe|prévue?s?|repoussée?s?"
    r"|es|son|"
    r"serán?|hace|quedan?|tiene|están?|se llama)\b|[はがを]|まで)"
)

CUES = (
    _cue("detail", 2.0, 0.0, rf"^{_DETAIL}.*{_STATES}"),
    _cue(
        "preference",
        2.5,
        0.5,
        rf"{_WE} (?:want(?! to {_ERRAND})|prefer|like|love(?! (?:that|how|it|you))|hate|dislike)\b",
        r"\b(?:wants|prefers|insists|hates|loves|dislikes)\b",
        rf"{_WE} (?:expect|assume|think that|insist|care about)\b",
        r"\b(?:i'm|i am) (?:\w+ )?(?:interested in|a fan of|not happy)|\bdon't (?:like|want)\b",
        r"\bprefer(?:s|red)?\b|\bfavou?rite\b|\bplease (?:always|never|don't|do not|stop|keep)\b",
    ),
    _cue(
        "rule",
        2.0,
        0.75,
        r"\b(?:must(?:n't)?(?! have)|from now on|by default|at all times|as a rule)\b",
        r"\b(?:has|have|needs?) to be\b|\bshould(?:n't)?(?: \w+)? be\b|\bmake sure\b|\bonly ever\b",
        r"\b(?:no longer|not allowed|forbidden)\b|^remember (?:that|to)\b",
        r"^(?:please )?(?:always|never|don't ever|do not ever)\b",
        r"^(?:please )?use \S+(?: \w+)?,? (?:not|never)\b",
    ),
    _cue(
        "decision",
        2.0,
        1.25,
        r"\b(?:decided|decision|agreed|settled on|chose|chosen|go(?:ing)? with|opted)\b",
        r"\b(?:instead of|rather than)\b",
        rf"\bwe(?:'ll| will| want to|'re going to) (?!see|need|{_ERRAND})|\bno, we\b|\bbecomes the\b",
        r"\blet's (?:use|keep|not|drop|go with|move to|switch|call|put)\b|\bin favou?r of\b",
        r"^so we (?:use|keep|take)\b|^(?:gut|abgemacht|beschlossen|bien|entendu|d'accord|queda así"
        r"|acordado|decidido) ?[:.]",
        r"^では.*ます|\b(?:on commence|wir nehmen|usamos)\b|にし(?:ます|よう)|で実装",
        r"\bswitch(?:ed|ing)? to\b|\bstick(?:ing)? (?:with|to)\b|\S (?:->|→) \S",
    ),
    _cue(
        "reason",
        2.0,
        2.25,
        r"\b(?:because|due to|reason (?:is|was|being|for)|the reason|root cause|caused? (?:is|was|by))\b",
        r"\b(?:that's why|which is why|so that)\b",
        r"\bsince (?:it|we|they|the|there)\b(?! (?:last|talked|spoke|met))",
        r"\botherwise\b",
        r"\b(?:turn(?:s|ed) out|learn(?:ed|t) that)\b",
        r"\bthe (?:(?:key|real|underlying|main|actual) )?(?:cause|reason|point|difference) (?:is|was)\b",
        r"\b(?:comes?|came) from\b|^(?:in short|result|found it|short version)\b",
        r"\b(?:ursache|grund (?:ist|war|dafür)|weil|d'après|vient de|parce que|porque|debido a"
        r"|resultado)\b|原因|ため|ので",
        r"\bthe key (?:is|was)\b|\bkey fix\b|\bthe (?:pattern|idea|insight|trick|catch|lesson) (?:is|was)\b",
    ),
    _cue(
        "constraint",
        1.5,
        2.25,
        r"\b(?:requires?|required|can(?:'t|not| not)|won't work|unless)\b",
        r"\b(?:not supported|unsupported|incompatible)\b",
        r"\bonly (?:\w+ ){0,2}(?:if|when|on|for|works?|after|supports?|processed)\b|\bbypass(?:es|ed)?\b",
        r"\b(?:does|do|did)(?:n't| not) (?:support|work|allow|exist|block)\b|\blimit(?:ed|s)? (?:to|of|is)\b",
        r"\bfails? (?:if|on|when|unless|because)\b|\bbreak(?:s|ing)? (?:if|when|this|the)\b",
        r"\bno \S+ (?:field|option|support|way) exists?\b",
    ),
    _cue(
        "condition",
        1.0,
        1.0,
        r"\bif (?:we|i|you|the (?!latter|former)|a|an|user|they|it)\b",
        r"\bwhen(?:ever)? (?:we|i|you|the|a|an|user|`)",
    ),
    _cue(
        "habit",
        1.25,
        0.5,
        r"\b(?:always|never|every (?:day|week|month|year|morning|night|time|\d+ \w+s))\b",
    ),
    _cue(
        "how things are",
        2.0,
        0.5,
        r"\bwe (?:use|host|deploy|store|run)\b",
        r"\b(?:lives?|listens?|runs?|is (?:hosted|stored|deployed)) (?:at|on|in|under|behind) \S*[\w./:-]",
        r"\bis (?:the|our|my|a) (?:new )?"
        r"(?:owner|lead|maintainer|manager|contact|boss|designer|accountant|landlord)\b",
    ),
    _cue(  # beside the date itself
        "appointment",
        0.5,
        0.25,
        r"\b(?:is|are|starts?|begins?|ends?|opens?|closes?|expires?|launch(?:es)?)(?: due)?"
        rf"(?: on| from| by)? (?:the )?(?:20\d\d-\d\d-\d\d|{_MONTH} \d{{1,2}}|"
        rf"\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?{_MONTH})\b",
    ),
    _cue(
        "date",
        1.25,
        0.75,
        r"\b(?:19|20)\d\d-\d\d(?:-\d\d)?\b|\b(?:yesterday|tomorrow|last night|tonight)\b",
        rf"\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b|\b\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?{_MONTH}\b",
        rf"\b{_MONTH} (?:19|20)\d\d\b",
        rf"\b(?:on|by|until|till|next|last|this|since|before|every) {_WEEKDAY}\b",
        r"\b\d+ (?:days|weeks|months|years) ago\b",
        r"\b(?:last|next) (?:week|weekend|month|year|summer|winter)\b",
    ),
    _cue(
        "outcome",
        0.75,
        1.0,
        r"\b(?:fixed|resolved|removed|renamed|replaced|migrated|moved|completed?|released|shipped|merged"
        r"|deployed)\b",
        r"\b(?:consolidated|split|introduced|propagated|configured|implemented|rewrote|rewritten|disabled"
        r"|enabled)\b",
        r"\b(?:bought|paid|booked|signed|hired|met|launched)\b",
    ),
    _cue(
        "open end",
        1.0,
        0.75,
        r"\bstill (?:needs?|open|missing|fails?|have to|to do)\b|\b(?:not yet|open question)\b",
        r"\b(?:follow[- ]up|todo|remains? (?:open|to)|deadline|due (?:on|by)|unresolved)\b",
        r"\b(?:waiting (?:for|on)|postponed|blocked (?:by|on))\b",
    ),
    _cue(
        "about a person",
        2.0,
        0.5,
        rf"\bmy {_MY}\b",
        r"\bour (?:team|company|office|customers?|clients?|budget|policy|database|servers?|product)\b",
        r"\bi (?:live|work|was born|moved|studied|started|joined|own|speak|play|bought)\b",
        r"\b(?:i am|i'm) (?:an?|from|allergic|vegetarian|vegan)\b",
    ),
)
"""What carries something."""

LEANS = _cue(
    "leans on another sentence",
    -1.0,
    -1.25,
    rf"^{_IT}(?:'s)?(?= \w+s\b| {_DOES}\b)",
    r"^(?:it(?! turn)|its|it's|that's|they|them|he|she|both|all|yes|yeah|yep)\b",
    rf"\b(?:{_IT}|the same|such) (?:files?|things?|stuff|ones?|approach|way|place|part)\b",
)

PENALTIES = (
    _cue(
        "narration",
        0.0,
        -4.0,
        rf"^{_OPENING}(?:now|let me|let's|also|need to|we need to)\b",
        rf"^{_OPENING}(?:looking at|continuing|starting|moving on|time to)\b",
        rf"^{_OPENING}(?:checking|running|here(?:'s| is| are)|should i|want me)\b",
        rf"^{_OPENING}still (?:compiling|running|waiting)\b",
        rf"^{_OPENING}(?:would you\b|next[,:]|first[,:])",
        rf"^{_OPENING}i(?:'ll| will| need to| see| can see|'m going to|'ve (?:got|made)| should| found)\b",
        rf"^{_OPENING}i have (?:a|all|the|full|both)\b",
    ),
    _cue(
        "pleasantry",
        -2.0,
        -4.0,
        r"^(?:thanks?|thank you|sorry|you're (?:absolutely )?right)\b",
        r"^good (?:catch|point|idea|question|progress)\b",
        r"^(?:great|perfect|excellent|wow|jesus|nice|lol|haha|yo|hi|hello|hey)\b",
    ),
    _cue(
        "errand",
        -2.0,
        0.0,
        rf"^{_ASKING}(?:read|check|look|run|continue|start|work on|do|go|fix|commit|push)\b",
        rf"^{_ASKING}(?:implement|tackle|propose)\b",
        rf"^{_ASKING}(?:show|tell|give|explain|try|investigate)\b",
        rf"^{_ASKING}(?:remember(?! that| to)|revert|create|copy|move|write)\b",
        rf"^{_ASKING}(?:open|find|kill)\b",
        rf"^{_ASKING}(?:let's tackle|could read)\b",
    ),
    _cue(
        "errand", -2.0, 0.0, r"\bi (?:actually )?want you to\b|\byou (?:havn't|haven't|should have|need to)\b"
    ),
    _cue(
        "passing state",
        -0.5,
        -1.5,
        r"\blines? \d+|\bat \d+-\d+|\bin progress\b|\bnext (?:big )?(?:task|step)|\bprogress\b",
        r"\bclean compile|\btests?,? .*\bpass|^(?:all )?(?:green|clean|done|pushed|committed)\b",
    ),
    _cue(
        "not settled",
        -0.75,
        -1.5,
        r"\b(?:maybe|perhaps|probably|possibly|might|could|may need|not sure|would be)\b",
        r"\b(?:for now|temporar\w+|iiuc|i'm thinking)\b",
        r"\b(?:option [a-d]|pros?:|cons?:|recommendation:)|\bi (?:feel|guess|suppose)\b",
    ),
    _cue(
        "step of a plan",
        0.0,
        -1.5,
        r"^(?:add|use|create|update|remove|replace|move|extract|take|handle|implement|define|register|call"
        r"|don't)\b",
    ),
    LEANS,
)
"""What carries nothing once its moment is over."""


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
    `last` that the sentence ends the turn, `whole` that it ends as a sentence does.
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

_ENDED = re.compile(r"[.!?。！？…][\"'”’)\]*_`]*$")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*?)\s*#*$")
_ITEM = re.compile(r"(\s*)(?:[-*+•◦]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?:[✅✓✔☑❌✗☐➜→]\ufe0f?\s+)?")
_MARKED = re.compile(r"\s*[✅✓✔☑❌✗☐]\ufe0f?\s+")
_OTHER = re.compile(r"\s*(?:[|>]|[-=_*─]{3,}\s*$|[├└│┌┐┘↓↑➜$%]|</?[a-zA-Z][\w-]*[\s>])")
"""Tables, quotations, rules, drawings, shell prompts, markup: no words of the speaker's."""
_DUMP = re.compile(
    r"\s*(?:[{}\[\]()]+[,;]?\s*$|[{\[]\s*[\"'{\[]|at\s+\S+\s*\(|File \"|Traceback |diff --git|@@ |"
    r"[+-]{3} [ab]/|"
    r"[\w.$]+\s*=\s*\S.*[;{(]\s*$|(?:import|from|const|let|var|def|class|function|export"
    r"|return)\b.*[;:{(]\s*$|"
    r"(?:\w+)?Error\b:?\s|[\w./-]+:\d+(?::\d+)?:?(?:\s|$)|\"?[\w-]+\"?:\s\S.*,\s*$)|.*(?:[{};]|=>|\\)\s*$"
    r"|.*\{\"|"
    r"\s*(?:\"?[\w-]+\"?:\s+)?[\"{\[].*[\"\]},]\s*$"
)
_BOLD = re.compile(r"(\*\*\*|\*\*|__)(?=\S)(.{1,300}?)(?<=\S)\1")
_ITALIC = re.compile(
    r"(?<![\w*])\*(?=[^\s*])([^*]+?)(?<=[^\s*])\*(?![\w*])|(?<![\w_])_(?=[^\s_])([^_]+?)(?<=[^\s_])_(?![\w_])"
)
_CODE = re.compile(r"(`+)(?!`).{1,600}?(?<!`)\1(?!`)")
_END = re.compile(r"(?<=[.!?…])(?:[\"'”’)\]*_]*)\s+(?=\S)|(?<=[。！？])\s*(?=\S)")
_NO_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|ca|approx|Mr|Mrs|Ms|Dr|Prof|St|Nr|Fig|Inc|Ltd|Co|Jr|Sr|al|aka|a\.k\.a"
    r"|z\.B|bzw)|"
    r"(?<=\w)str|\b(?:am|den|dem|der|vom|zum|bis|ab) \d{1,2}|(?<![\w.])[A-Z]|\b[A-Z]\.[A-Z]|^\s*\d{1,3})\.$",
    re.IGNORECASE,
)
_SHORTENED = re.compile(
    r"(?:\b(?:e\.g|i\.e|vs|cf|ca|approx|Mr|Mrs|Ms|Dr|Prof|St|Nr|Fig|z\.B|bzw)|(?<=\w)str)\.$", re.IGNORECASE
)
"""What stands before a name or a number: a line that ends in it goes on."""
DANGLES = re.compile(
    r"\b(?:because|and|or|but|nor|the|an?|of|to|than|from|by|if|whether|which|whose|my|our|your|its|their)$",
    re.IGNORECASE,
)
"""No statement ends in such a word."""
_SPACE = re.compile(r"\s+")
_WRAPPED = 60
"""Characters from which a line without an end is taken to go on in the next one, as editors wrap text."""

_ASIDE = 400
"""Characters after which an open bracket is taken to have been forgotten; a stop before is inside it."""


def sentences(text: str) -> list[Sentence]:
    """All sentences of one turn's text, in order. Of a very long text its beginning and its end are read."""
    if len(text) > 2 * LONGEST:
        text = text[:LONGEST] + "\n\n" + text[-LONGEST:]
    found: list[Sentence] = []
    for number, block in enumerate(_blocks(text)):
        for n, (start, end) in enumerate(_spans(block.text)):
            quote = one_line(block.text[start:end])
            if len(quote) > _LONGEST_SENTENCE:
                continue
            said = plain(quote)
            if any(letter.isalpha() for letter in said):
                marker = block.marker if n == 0 else ""
                where = (len(found), number, marker, block.nested, block.heading, block.lead)
                found.append(Sentence(said, quote, *where))
    if found and text.rstrip().endswith(found[-1].quote[-20:]):
        found[-1] = replace(found[-1], last=True)
    return found


def one_line(text: str) -> str:
    """White space made single spaces."""
    return _SPACE.sub(" ", text).strip()


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
        if _NO_END.search(hidden[max(start, stop.start() - 8) : stop.start()]):
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


THRESHOLD = 2.25
"""A sentence that scores less is not kept."""


@dataclass(frozen=True, slots=True)
class Context:
    """Where a sentence was said. `closing`: its turn ended what an assistant did before a person spoke again,
    `final`: the conversation ended there; `proposal`: the turn asks for leave to go on; `refused`: the person
    said no to it."""

    person: bool
    closing: bool = False
    final: bool = False
    proposal: bool = False
    refused: bool = False


_NAME = re.compile(r"(?<=[a-z,;] )(?:[A-Z][a-z]+(?:[A-Z]\w*)?|[A-Z][\w-]*[a-z]\w*)\b")
_NUMBER = re.compile(r"(?<![\w.`/-])\d[\d.,:]*(?: ?%| ?[€$£]| \w+)|[€$£] ?\d")
_GOOD_PLACE = re.compile(
    r"\b(?:summary|key (?:fix|point|insight|decision)s?|important|notes?|results?|decisions?|decided|"
    r"root cause|problem|conclusion|lessons?|why|"
    r"completed|accomplished|done|changes|fix|removal)\b",
    re.IGNORECASE,
)
_BAD_PLACE = re.compile(
    r"\b(?:plan|phase|proposed?|proposal|options?|benefits?|risks?|next steps?|remaining|"
    r"current|would|example|todo)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?:(?:so|and|but|or|ok|okay|btw|like|wait|sooo*|then|well|slight \w+)[,:]? )*"
    r"(?:(?:who|what|which|when|where|why|how|whose|"
    r"is|are|was|were|do|does|did|can|could|will|would|should|shall|may|might|has|have|had|any|same|"
    r"isn't|aren't|can't|don't|doesn't|won't|wouldn't|shouldn't|wtf)\b|"
    r"[^,]*\b(?:can't|isn't|couldn't|shouldn't) (?:we|i|you|it|that)\b)",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|do|does|did|can|could|will|would|should|must|may|might"
    r"|need|needs|"
    r"want|wants|use|uses|used|isn't|aren't|don't|doesn't|can't|won't|goes|gets|makes|takes|keeps|requires"
    r"|becomes|fails|breaks|works|means|causes|holds|"
    r"returns|bypass(?:es)?|moves?|adds?|i'm|we're|it's|that's|there's|[a-z]{3,}ed|"
    r"[a-z]{3,}(?<!s)s (?:the|a|an|its|to|no)|made|"
    r"built|wrote|took|went|came|got|kept|left|put|ran|sent|set|cut|split|chose|found|gave|held|lost|met"
    r"|paid|said|"
    r"sold|told|won|bought|began|broke|drove|fell|felt|grew|knew|led|rose|saw|spent|stood|taught|thought"
    r"|wore)\b|"
    r"\b(?:i|we|you|they|he|she) [a-z]+|→|->|'ll\b|'re\b",
    re.IGNORECASE,
)
_CODE_LIKE = re.compile(r"`[^`]*`|\S*[/\\]\S*\.\w+|\b[\w-]+\.(?:[a-z]{1,4})\b|\w+\(\)")


@dataclass(frozen=True, slots=True)
class Score:
    """How much a sentence weighs, and the names of the cues that made it so, heaviest first."""

    value: float
    cues: tuple[str, ...]


NOTHING = Score(float("-inf"), ())
RULE = Score(6.0, ("standing rule",))
"""A person's standing rule is kept whatever else is, and is a preference."""


def score(sentence: Sentence, context: Context) -> Score:
    """What a sentence weighs in its place; `NOTHING` for what is no statement at all."""
    text = sentence.text
    if context.person and standing_rule(text):
        return RULE
    if not _stands_alone(sentence, context.person):
        return NOTHING
    found = [(weight, cue.name) for cue, weight in _found(text, context.person)]
    carries = [entry for entry in found if entry[0] > 0]
    if not carries or not (_VERB.search(_CODE_LIKE.sub(" ", text)) or max(carries)[0] >= 2):
        return NOTHING
    total = sum(weight for weight, _ in found)
    if sentence.index == 0 and any(name == LEANS.name for _, name in found):
        total -= 1.0  # what it leans on is not even in the same turn
    total += _details(text, context.person) + _place(sentence, context)
    if text.endswith("?"):
        # People state what they expect as a question: "it ought to stay as it is, right?"
        total -= 0.25 if context.person and not _ASKS.match(text) else 3.0
    return Score(round(total, 2), tuple(name for _, name in sorted(carries, reverse=True)))


def _found(text: str, person: bool) -> Iterator[tuple[Cue, float]]:
    for cue in (*CUES, *PENALTIES):
        weight = cue.person if person else cue.assistant
        if weight and cue.pattern.search(text):
            yield cue, weight


def _details(text: str, person: bool) -> float:
    """Names and numbers make a statement worth finding again; much code says what the files say anyway."""
    code = 0.0 if person else min(4, text.count("`") // 2)
    return 0.5 * bool(_NAME.search(text)) + 0.25 * bool(_NUMBER.search(text)) - 0.25 * code


def _place(sentence: Sentence, context: Context) -> float:
    above = f"{sentence.heading} {sentence.lead}"
    good, bad = bool(_GOOD_PLACE.search(above)), bool(_BAD_PLACE.search(above))
    value = 0.75 * good - 1.5 * bad
    if context.person:
        return value + 0.5
    value += 1.0 + 0.5 * context.final if context.closing else -0.25
    # What was found out stays true when what was proposed upon it is refused.
    return value if good and not bad else value - 1.0 * context.proposal - 2.0 * context.refused


_UNSPACED = re.compile("[ぁ-んァ-ン一-龯가-힣]")
_WORD = re.compile(r"[^\W\d_]{1,2}|\d+")
"""Words of a script that puts no blanks between them, two letters for one."""


def _stands_alone(sentence: Sentence, person: bool) -> bool:
    """Whether it is long enough, short enough, not cut off, and no row of names."""
    text = sentence.text
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
# A flush without a model: the speakers' own sentences that are worth keeping, verbatim, and few of them.
#
# Sentences are weighed one by one (`weighing`). Those that lean on each other are one thought, what was
# said before is folded into one candidate, and only the heaviest stay within the budget. Memory is bounded
# by what is kept, not by what is read. Nothing is reworded, so nothing can be made up.


PER_10_000_WORDS = 15
"""How many facts so many words of people and assistants may leave."""
AT_LEAST = 8
"""How many a conversation may leave, however short, in which a person said something worth keeping."""
_HELD = 500
"""Candidates held before the end is known: early ones may still be needed when the budget has grown."""
_TOGETHER, _THOUGHT = 3, 360
"""Sentences, and characters, that one thought has at most."""
_SAME = 0.7
"""Share of words in common from which two statements say the same."""
_LEANING = 1.25
"""What a sentence loses by leaning on another: given back where that one is kept with it."""
_CONTINUES = re.compile(
    r"(?:it|its|it's|this|that|that's|these|those|they|them|he|she|both|so|but|because|otherwise|then"
    r"|therefore|hence|"
    r"which|unless|until|except|however|instead)\b",
    re.IGNORECASE,
)
_HASHTAG = re.compile(r"(?<![\w&/])#([A-Za-z][\w/-]*)")


def extract(
    turns: Iterable[Turn],
    *,
    zone: tzinfo | None = None,
    per_10_000_words: float = PER_10_000_WORDS,
    at_least: int = AT_LEAST,
) -> list[Candidate]:
    """The statements of these turns that are worth keeping, in the order in which they were said.

    At most `per_10_000_words` for so many words of people and assistants, but one in any case. Where a person
    has said something worth keeping, a short conversation may leave `at_least`, the person's words first.
    `zone` is where the speakers' day begins; without it, the recorded times' own. Text is as it was said:
    taking out secrets is the caller's.
    """
    extraction = Extraction(zone)
    for turn in turns:
        extraction.add(turn)
    return extraction.best(per_10_000_words, at_least)


@dataclass(slots=True)
class _PlacedCandidate:
    """A candidate with its place in the conversation and the words it is compared by."""

    candidate: Candidate
    order: tuple[int, int]
    terms: frozenset[str]


class Extraction:
    """Turns go in one by one, the best statements come out. Sub-agents are lines of their own."""

    def __init__(self, zone: tzinfo | None = None) -> None:
        self.words = 0
        self._zone = zone
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
        if self._waiting:
            number, before = self._waiting
            self._waiting = None
            self._weigh(number, before, _assistant(before, turn))
        if turn.role == "tool":
            return
        self.words += len(turn.text.split())
        if turn.role == "person":
            if _TAKES_BACK.match(turn.text):
                self._take_back(self._person)
            self._person = self._turns
            self._weigh(self._turns, turn, Context(person=True))
        else:
            self._waiting = (self._turns, turn)

    def best(self, per_10_000_words: float = PER_10_000_WORDS, at_least: int = AT_LEAST) -> list[Candidate]:
        """What is worth keeping of all that was heard, within the budget, in the order it was said."""
        if self._waiting:
            number, last = self._waiting
            self._waiting = None
            self._weigh(number, last, _assistant(last, None))
        budget = max(1, int(self.words * per_10_000_words / 10_000))
        ranked = sorted(self._held.values(), key=lambda held: (-held.candidate.score, held.order))
        rules = [held for held in ranked if held.candidate.reason == RULE.cues[0]]
        ranked = [held for held in ranked if held.candidate.reason != RULE.cues[0]]
        budget = max(0, budget - len(rules))
        kept = rules + ranked[:budget]
        if any(held.candidate.who == "person" for held in ranked):
            rest = sorted(ranked[budget:], key=lambda held: held.candidate.who != "person")
            kept += rest[: max(0, at_least - len(kept) + len(rules))]
        return [held.candidate for held in sorted(kept, key=lambda held: held.order)]

    def _weigh(self, number: int, turn: Turn, context: Context) -> None:
        said, echo = sentences(turn.text), grounding.flat(turn.echo)
        if turn.echo:  # what a tool printed is not remembered because an agent repeats it
            said = [one for one in said if not grounding.repeats(one.text, echo)]
        for thought in _thoughts(said, context):
            self._keep(_candidate(thought, turn, context, self._zone), (number, thought.first.index))

    def _keep(self, candidate: Candidate, order: tuple[int, int]) -> None:
        """Take it in, folded with what says the same; let the lightest go when too many are held."""
        said = terms(candidate.text)
        for key in self._alike(said):
            earlier = self._held.pop(key)
            self._forget(key, earlier.terms)
            candidate = _folded(earlier.candidate, candidate)
            if candidate.turn == earlier.candidate.turn:
                order, said = earlier.order, earlier.terms
        self._count += 1
        self._held[self._count] = _PlacedCandidate(candidate, order, said)
        for term in said:
            self._by_term.setdefault(term, set()).add(self._count)
        if len(self._held) > _HELD + self.words * PER_10_000_WORDS // 10_000:
            lightest = min(self._held, key=lambda key: self._held[key].candidate.score)
            self._forget(lightest, self._held.pop(lightest).terms)

    def _take_back(self, number: int) -> None:
        """Let go of what the person said in this turn."""
        for key in [key for key, held in self._held.items() if held.order[0] == number]:
            self._forget(key, self._held.pop(key).terms)

    def _alike(self, said: frozenset[str]) -> list[int]:
        shared = Counter(key for term in said for key in self._by_term.get(term, ()))
        return [
            key
            for key, common in shared.items()
            if common >= 3
            and common >= _SAME * min(len(said), len(self._held[key].terms))
            and common >= 0.5 * max(len(said), len(self._held[key].terms))
            and not _of_others(said, self._held[key].terms)
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


@dataclass(frozen=True, slots=True)
class _SentenceGroup:
    """Sentences that stand together, and the score of the heaviest."""

    sentences: tuple[Sentence, ...]
    score: Score

    @property
    def first(self) -> Sentence:
        return self.sentences[0]


def _thoughts(said: list[Sentence], context: Context) -> Iterator[_SentenceGroup]:
    """The sentences worth keeping, each with those that follow it and belong to it."""
    scores = [score(sentence, context) for sentence in said]
    at = 0
    while at < len(said):
        if scores[at].value < THRESHOLD:
            at += 1
            continue
        end = at + 1
        while (
            end < len(said)
            and end - at < _TOGETHER
            and _belongs(said[end - 1], said[end], scores[end])
            and sum(len(sentence.text) for sentence in said[at : end + 1]) <= _THOUGHT
        ):
            end += 1
        heaviest = max(scores[at:end], key=lambda one: one.value)
        yield _SentenceGroup(tuple(said[at:end]), heaviest)
        at = end


def _belongs(one: Sentence, other: Sentence, weight: Score) -> bool:
    """Whether a sentence, right after another that is kept, is part of the same thought.

    In a paragraph it is if it leans on the one before; it then may weigh less than one that stands alone.
    The items of a numbered list are steps and belong together, those of a bulleted list are not.
    """
    if one.block == other.block:
        return bool(_CONTINUES.match(other.text)) and weight.value >= THRESHOLD - _LEANING
    if not (one.marker[:1].isdigit() and other.marker[:1].isdigit()) or other.block != one.block + 1:
        return False
    same = (one.nested, one.heading, one.lead) == (other.nested, other.heading, other.lead)
    return same and weight.value >= THRESHOLD


def _candidate(thought: _SentenceGroup, turn: Turn, context: Context, zone: tzinfo | None) -> Candidate:
    text = quote = ""
    for sentence in thought.sentences:
        joint = "" if not text else " " if text.endswith((".", "!", "?", "…")) else "; "
        text += joint + sentence.text
        quote += (
            f" {sentence.marker} " if sentence.marker and quote else " " if quote else ""
        ) + sentence.quote
    at = turn.at.astimezone(zone) if turn.at and zone else turn.at
    return Candidate(
        text=text,
        kind=_candidate_kind(thought.score, context),
        who="person" if context.person else "assistant",
        when=_when(text, at),
        entities=names(text),
        tags=tuple(dict.fromkeys(_HASHTAG.findall(text))),
        quote=quote,
        turn=turn.id,
        at=turn.at,
        score=thought.score.value,
        reason=", ".join(thought.score.cues),
    )


def _candidate_kind(found: Score, context: Context) -> CandidateKind:
    if context.person and ("preference" in found.cues or found.cues == RULE.cues):
        return "preference"
    return "experience" if found.cues[0] == "outcome" else "world"


def _when(text: str, said: datetime | None) -> str | None:
    """The one day that a text names, if it is another than the one it was said on."""
    if said is None:
        return None
    named = set(stated_dates.days(text, said.date()))
    day = named.pop() if len(named) == 1 else None
    return None if day == said.date().isoformat() else day


def _folded(earlier: Candidate, later: Candidate) -> Candidate:
    """One for both: the heavier wording, the later if they weigh the same; the other turn is a sighting."""
    kept, other = (earlier, later) if earlier.score > later.score else (later, earlier)
    seen = dict.fromkeys((*earlier.seen, *later.seen, other.turn))
    seen.pop(kept.turn, None)
    # That it was said again in another turn says that it matters; a third time says no more.
    again = 0.5 if earlier.turn != later.turn and not earlier.seen and not later.seen else 0.0
    return replace(kept, score=kept.score + again, seen=tuple(seen))


_REFUSAL = re.compile(
    r"\s*(?:no\b(?! problem)|nope|nah|wait\b|stop\b|wtf|that's (?:wrong|horrible|not)|"
    r"this (?:is|looks) wrong|don't\b|"
    r"actually[, ]|revert|undo|sooo*,? why|why (?:would|are|do|did) (?:we|you))",
    re.IGNORECASE,
)
_TAKES_BACK = re.compile(
    r"\s*(?:(?:no|wait|hm+|ok|sorry)[,. ]+)?(?:actually,? (?:can|could|let's|revert|undo|no\b|never)|"
    r"scratch that|never ?mind|"
    r"forget (?:that|it|about)|on second thought|i changed my mind|i take that back|strike that)",
    re.IGNORECASE,
)
_PROPOSES = re.compile(
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
    )


# -- own words ---------------------------------------------------------------------------------------------
# Facts of a text without a model: its author's own sentences, list items and rows of tables.
#
# Nothing is reworded. A row is written with the words of its table's head before its own, since alone it
# would say nothing.


OWN_PER_10_000_WORDS, OWN_AT_LEAST = 300, 12
"""How much a document may leave: its author chose the words, so more than of a talk."""
_WORDS = 4
"""A list item of fewer words says nothing alone."""
_ROW = re.compile(r"\s*\|(.*)\|\s*$")
_RULE = re.compile(r"\s*\|[\s:|-]+\|\s*$")


def extract_without_model(chunk: Chunk, brief: TextContext) -> ExtractedChunk:
    """What is kept of a chunk without a model."""
    if brief.mode == "chunks":
        text = chunk.text.strip()
        return ExtractedChunk(
            (Fact(text, tags=brief.tags, when=extractor.when_in_text(text, brief.at.date())),)
        )
    if brief.mode == "verbatim":
        return ExtractedChunk(
            tuple(_dated(Fact(each, entities=names(each)), each, brief) for each in pieces(chunk.text))
        )
    weighed = [*_said(chunk, brief), *_listed(chunk)] or [*_alone(chunk)]
    more = islice(_named(chunk), max(OWN_AT_LEAST - len(weighed), 0))
    found = [(_position(chunk.text, fact), fact) for fact in (*weighed, *more)]
    found.sort(key=lambda each: each[0])
    return ExtractedChunk(
        tuple(_dated(fact, _evidence(fact), brief) for fact in _once(fact for _, fact in found))
    )


def _said(chunk: Chunk, brief: TextContext) -> Iterator[Fact]:
    turn = Turn("text", "person", chunk.text, brief.at)
    for each in extract([turn], per_10_000_words=OWN_PER_10_000_WORDS, at_least=OWN_AT_LEAST):
        quotes = () if each.text == each.quote else (Quote(each.quote),)
        yield Fact(each.text, kind=each.kind, entities=each.entities, tags=each.tags, quotes=quotes)


def _alone(chunk: Chunk) -> Iterator[Fact]:
    """A statement that is all there is: whoever hands over one sentence wants it kept."""
    said = list(sentences(chunk.text))
    text = one_line_candidate(chunk.text)
    if len(said) == 1 and said[0].text == text and len(text.split()) >= _WORDS and not text.endswith("?"):
        yield Fact(text, entities=names(text))


def _listed(chunk: Chunk) -> Iterator[Fact]:
    """Items that are whole statements, and the rows of tables."""
    for sentence in sentences(chunk.text):
        if sentence.item and not sentence.nested and len(sentence.text.split()) >= _WORDS:
            text = f"{sentence.lead} {sentence.text}" if sentence.lead else sentence.text
            quotes = (Quote(sentence.quote),) if text != sentence.quote else ()
            if not text.rstrip().endswith("?"):
                yield Fact(text, entities=names(text), quotes=quotes)
    yield from _rows(chunk.text)


def _named(chunk: Chunk) -> Iterator[Fact]:
    """Whole sentences that name somebody or count something: few of a document are chat."""
    for sentence in sentences(chunk.text):
        found = names(sentence.text)
        plain = sentence.whole and not sentence.item and not sentence.text.rstrip().endswith("?")
        telling = bool(found) or any(map(str.isdigit, sentence.text))
        if plain and telling and len(sentence.text.split()) >= _WORDS:
            quotes = () if sentence.text == sentence.quote else (Quote(sentence.quote),)
            yield Fact(sentence.text, entities=found, quotes=quotes)


def _rows(text: str) -> Iterator[Fact]:
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
                yield Fact(
                    "; ".join(said),
                    entities=names("; ".join(cells)),
                    quotes=(Quote(one_line_candidate(line)),),
                )
        elif not row:
            head = []
        above = line


def _once(facts: Iterator[Fact]) -> Iterator[Fact]:
    """Each statement once: one that is within another is no second."""
    kept: list[tuple[frozenset[str], Fact]] = []
    for fact in facts:
        words = terms(fact.text)
        if not any(words <= said for said, _ in kept):
            kept = [each for each in kept if not each[0] < words]
            kept.append((words, fact))
    yield from (fact for _, fact in kept)


def _dated(fact: Fact, text: str, brief: TextContext) -> Fact:
    tags = tuple(dict.fromkeys((*brief.tags, *fact.tags)))
    return replace(fact, when=extractor.when_in_text(text, brief.at.date()), tags=tags)


def _evidence(fact: Fact) -> str:
    return fact.quotes[0].text if fact.quotes else fact.text


def _position(text: str, fact: Fact) -> int:
    flat = one_line_candidate(text)
    return flat.find(one_line_candidate(_evidence(fact))) % (len(flat) + 1)
