"""A flush without a model: the speakers' own sentences that are worth keeping, verbatim, and few of them.

Sentences are weighed one by one (`weighing`). Those that lean on each other are one thought, what was said
before is folded into one candidate, and only the heaviest stay within the budget. Memory is bounded by what
is kept, not by what is read. Nothing is reworded, so nothing can be made up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from ua_memory import dates
from ua_memory.grounding.terms import terms
from ua_memory.names import names
from ua_memory.retain.candidate import Candidate, CandidateKind
from ua_memory.retain.sentences import Sentence, sentences
from ua_memory.retain.weighing import THRESHOLD, Context, Score, score
from ua_memory.transcripts.turns import Turn

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
    r"(?:it|its|it's|this|that|that's|these|those|they|them|he|she|both|so|but|because|otherwise|then|therefore|hence|"
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
        extraction.hear(turn)
    return extraction.best(per_10_000_words, at_least)


@dataclass(slots=True)
class _Held:
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
        self._held: dict[int, _Held] = {}
        self._by_term: dict[str, set[int]] = {}
        self._count = 0
        self._person = 0
        """The number of the person's latest turn."""

    def hear(self, turn: Turn) -> None:
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
        kept = ranked[:budget]
        if any(held.candidate.who == "person" for held in ranked):
            rest = sorted(ranked[budget:], key=lambda held: held.candidate.who != "person")
            kept += rest[: max(0, at_least - len(kept))]
        return [held.candidate for held in sorted(kept, key=lambda held: held.order)]

    def _weigh(self, number: int, turn: Turn, context: Context) -> None:
        for thought in _thoughts(sentences(turn.text), context):
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
        self._held[self._count] = _Held(candidate, order, said)
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
class _Thought:
    """Sentences that stand together, and the score of the heaviest."""

    sentences: tuple[Sentence, ...]
    score: Score

    @property
    def first(self) -> Sentence:
        return self.sentences[0]


def _thoughts(said: list[Sentence], context: Context) -> Iterator[_Thought]:
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
        yield _Thought(tuple(said[at:end]), heaviest)
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


def _candidate(thought: _Thought, turn: Turn, context: Context, zone: tzinfo | None) -> Candidate:
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
        kind=_kind(thought.score, context),
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


def _kind(found: Score, context: Context) -> CandidateKind:
    if context.person and "preference" in found.cues:
        return "preference"
    return "experience" if found.cues[0] == "outcome" else "world"


def _when(text: str, said: datetime | None) -> str | None:
    """The one day that a text names, if it is another than the one it was said on."""
    if said is None:
        return None
    named = set(dates.days(text, said.date()))
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
