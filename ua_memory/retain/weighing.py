"""What one sentence weighs, in its place in the conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ua_memory.retain.cues import CUES, LEANS, PENALTIES, Cue
from ua_memory.retain.sentences import DANGLES, Sentence

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
    r"\b(?:is|are|was|were|be|been|has|have|had|do|does|did|can|could|will|would|should|must|may|might|need|needs|"
    r"want|wants|use|uses|used|isn't|aren't|don't|doesn't|can't|won't|goes|gets|makes|takes|keeps|requires|becomes|fails|breaks|works|means|causes|holds|"
    r"returns|bypass(?:es)?|moves?|adds?|i'm|we're|it's|that's|there's|[a-z]{3,}ed|"
    r"[a-z]{3,}(?<!s)s (?:the|a|an|its|to|no)|made|"
    r"built|wrote|took|went|came|got|kept|left|put|ran|sent|set|cut|split|chose|found|gave|held|lost|met|paid|said|"
    r"sold|told|won|bought|began|broke|drove|fell|felt|grew|knew|led|rose|saw|spent|stood|taught|thought|wore)\b|"
    r"\b(?:i|we|you|they|he|she) [a-z]+|→|->|'ll\b|'re\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"`[^`]*`|\S*[/\\]\S*\.\w+|\b[\w-]+\.(?:[a-z]{1,4})\b|\w+\(\)")


@dataclass(frozen=True, slots=True)
class Score:
    """How much a sentence weighs, and the names of the cues that made it so, heaviest first."""

    value: float
    cues: tuple[str, ...]


NOTHING = Score(float("-inf"), ())


def score(sentence: Sentence, context: Context) -> Score:
    """What a sentence weighs in its place; `NOTHING` for what is no statement at all."""
    text = sentence.text
    if not _stands_alone(sentence, context.person):
        return NOTHING
    found = [(weight, cue.name) for cue, weight in _found(text, context.person)]
    carries = [entry for entry in found if entry[0] > 0]
    if not carries or not (_VERB.search(_CODE.sub(" ", text)) or (context.person and max(carries)[0] >= 2)):
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


def _stands_alone(sentence: Sentence, person: bool) -> bool:
    """Whether it is long enough, short enough, not cut off, and no row of names."""
    text = sentence.text
    words = text.split()
    if not 5 - person <= len(words) <= 80 or text.endswith(":") or len(text) > 600:
        return False
    if DANGLES.search(text):
        return False
    if not (person or sentence.whole or sentence.marker):
        return False
    bare = _CODE.sub(" ", text)
    spoken = [word for word in bare.split() if word[:1].isalpha()]
    return len(spoken) >= 4 and 2 * len(spoken) >= len(words)
