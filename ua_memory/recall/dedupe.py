"""Fold duplicates among hits, and rank passages by the facts that quote them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from ua_memory.index.items import SESSION
from ua_memory.index.terms import words as words_of
from ua_memory.recall.arms import Ranked

if TYPE_CHECKING:
    from ua_memory.index.items import IndexItem
    from ua_memory.index.words import WordIndex


# -- folding duplicates ------------------------------------------------------------------------------------
# A hit represents its duplicates, and an observation its facts; the hit lists them with their days.
#
# **Observations.** A fact is folded under an observation that cites it, which takes the fact's rank if it
# ranked lower, provided its own score is nearly as high (`OBSERVATION_SHARE`): "Alice chooses by price" does
# not answer when she moved. A search for kinds is not folded so.
#
# **Duplicates** are two items of one kind with the same words in the same order, ignoring inflection, case,
# punctuation and articles, or where one has one word in ten more, which is no number, name or negation. Items
# with different dates are different events; retired and current items are different. The first one is kept.
# "Cheap" and "dear" are thus never folded: contradictions must be visible.
#
# **Passages** of a session are folded under a fact that states or quotes a part of them, if its score is as
# high. Of two passages with the same words a person's is kept rather than an agent's, then the later. A
# session that continued after it was moved into the bank has two files: if a passage begins with all of
# another, it is kept.


OBSERVATION_SHARE = 2 / 3
"""The minimum score of an observation, relative to the fact it represents."""
WORDS_PER_ADDED = 10
"""A duplicate may have one additional word per this many words."""
LONGEST = 200
"""Words that are compared; longer texts are only duplicates if they are equal."""


_NO_LETTERS = re.compile(r"[\W_]+")
LEAST_QUOTED = 12
"""Letters and digits of a fact or its quote that are recognized in a passage."""
SUPPORT = 0.6
"""The share of its best fact's score that a session's passage gains."""
GOOD_ALONE = 0.8
"""The score from which a fact answers by itself, and supports no passage."""
CERTAIN_FACT = 0.9
"""The score of a fact that no gain lifts a session's passage above."""
LIFTS_ABOVE_NOTE = 0.75
"""The share of an undated note's score that the fact in a passage needs to lift it above that."""

SPEAKER = re.compile(r"^(?:Person|Agent): ", re.MULTILINE)
_ARTICLES = frozenset(("a", "an", "the"))
_NEGATIONS = frozenset("no not never none nor neither without cannot dont t".split())  # noqa: SIM905
"""Also `t`, which `terms.words` leaves of "don't"."""


@dataclass(slots=True)
class KeptHit:
    """A hit, verified against its file, and the items folded under it."""

    one: Ranked
    under: list[IndexItem] = field(default_factory=list)

    def add(self, item: IndexItem) -> None:
        """Fold an item under this hit; of two passages the better (`_passage_rank`) becomes the hit."""
        own = self.one.item
        if own.record == SESSION and _passage_rank(item) > _passage_rank(own):
            item, self.one = own, self.one._replace(item=item)
        self.under.append(item)


def fold(
    words: WordIndex,
    found: Sequence[Ranked],
    confirm: Callable[[IndexItem], IndexItem | None],
    limit: int,
    *,
    beliefs: bool,
) -> tuple[list[KeptHit], int]:
    """(the first `limit` hits after folding, the number of candidates no longer in their files).

    `confirm` verifies an item against its file. With `beliefs` observations stand for their facts.
    """
    observations = _observations_by_fact(found) if beliefs else {}
    kept: dict[str, KeptHit] = {}
    texts, missing = SeenTexts(words), 0
    for one in found:
        full = len(kept) >= limit
        belief = _observation_for(one, observations, kept, full) if observations else None
        if one.item.key in kept or (full and not belief and not texts.equal(one.item)):
            continue
        item = confirm(one.item)
        if item is None:
            missing += not full
            continue
        if belief and belief.item.key not in kept:
            current = confirm(belief.item)
            belief = _in_place_of(belief, one, current) if current else None
            if belief:
                kept[belief.item.key] = KeptHit(belief)
        above = kept[belief.item.key] if belief else texts.duplicate(item, full)
        above = above or _fact_quoting(one, kept.values())
        if above:
            above.add(item)
        elif not full:
            kept[item.key] = KeptHit(one._replace(item=item))
            texts.add(kept[item.key])
    return list(kept.values()), missing


def _observations_by_fact(found: Sequence[Ranked]) -> Mapping[str, Ranked]:
    """{ref of a fact: the best current observation among the candidates that cites it}."""
    observations: dict[str, Ranked] = {}
    for one in found:
        if one.item.record == "observation" and not one.item.retired:
            for proof in one.item.proofs:
                observations.setdefault(proof, one)
    return observations


def _observation_for(
    one: Ranked, observations: Mapping[str, Ranked], kept: Mapping[str, KeptHit], full: bool
) -> Ranked | None:
    """The observation that a fact is folded under, None for none."""
    is_current_fact = one.item.record == "fact" and not one.item.retired
    found = observations.get(one.item.ref or "") if is_current_fact else None
    if found is None or found.item.key in kept:
        return found
    return None if full or found.score < OBSERVATION_SHARE * one.score else found


def _in_place_of(belief: Ranked, fact: Ranked, current: IndexItem) -> Ranked:
    """An observation with the score of its fact; `current` is the verified item."""
    gain = round(fact.score - belief.score, 6)
    return belief._replace(item=current, score=fact.score, parts={**belief.parts, "facts": gain})


def with_support(found: list[Ranked]) -> list[Ranked]:
    """The candidates; a session's passage gains a share of the score of the best fact that states or quotes a
    part of it: a long passage has words of many questions, a fact is about one thing. It gains nothing from a
    fact that answers by itself, and is folded under that."""
    # Without token vectors the scores of a fact and a passage are not of one scale.
    if not any(one.item.record == SESSION and "every" in one.parts for one in found):
        return found
    facts = [(one.score, _quotable(one.item)) for one in found if one.item.record == "fact"]
    first = max((score for score, _ in facts), default=0.0)
    note = max((one.score for one in found if one.item.record != SESSION and not one.item.day), default=0.0)

    def supported(one: Ranked) -> Ranked:
        text = _passage_letters(one.item) if one.item.record == SESSION and one.score > 0 else ""
        best = next((score for score, rows in facts if any(_has_letters(text, row) for row in rows)), 0.0)
        if best <= 0 or best >= max(one.score, GOOD_ALONE):
            return one
        score = capped(one.score + SUPPORT * best, one.score, first)
        # A note without a day is not older than the session, which need not say how it is now.
        gain = round(capped(score, one.score, note, caps=best < LIFTS_ABOVE_NOTE * note) - one.score, 4)
        return one._replace(score=one.score + gain, parts={**one.parts, "support": gain})

    return sorted(map(supported, found), key=lambda one: -one.score)


def capped(score: float, own: float, best: float, *, caps: bool | None = None) -> float:
    """The score of a passage with its gain, but below that of the `best` fact if this `caps` it, by default
    if it is a `CERTAIN_FACT`; never less than `own`, the score without the gain."""
    caps = best >= CERTAIN_FACT if caps is None else caps
    return max(own, min(score, best - 1e-4)) if caps else score


def is_quoted_in(fact: IndexItem, passage: IndexItem) -> bool:
    """Whether a session's passage has a fact's text, or one of its quotes."""
    text = _passage_letters(passage)
    return any(_has_letters(text, row) for row in _quotable(fact))


def _passage_letters(item: IndexItem) -> str:
    """The letters of a passage without its speakers."""
    return _letters(SPEAKER.sub("", item.text))


def _quotable(fact: IndexItem) -> list[str]:
    """A fact's text and quotes as `_letters`, without those that are too short to be recognized."""
    rows = map(_letters, (fact.text, *fact.context.split("\n")))
    return [row for row in rows if len(row) >= LEAST_QUOTED]


@lru_cache(maxsize=2048)
def _letters(text: str) -> str:
    """A text's letters and digits in lower case: what is quoted without markup is found in it."""
    return _NO_LETTERS.sub("", text.casefold())


def _has_letters(text: str, row: str) -> bool:
    """Whether a text has these letters; "costs 40" is not in "costs 400"."""
    return row in text and bool(re.search(rf"(?:(?<!\d)|(?!\d)){row}(?:(?!\d)|(?<!\d))", text))


def _passage_rank(passage: IndexItem) -> tuple[bool, str, int]:
    return not passage.own, passage.day or "", len(passage.text)


def _fact_quoting(passage: Ranked, kept: Iterable[KeptHit]) -> KeptHit | None:
    """The hit with a fact that states or quotes a part of a session's passage, with at least its score."""
    if passage.item.record != SESSION:
        return None
    text = _passage_letters(passage.item)
    for each in kept:
        own = each.one.score - each.one.parts.get("newer", 0)
        rows = _quotable(each.one.item) if each.one.item.record == "fact" and own >= passage.score else ()
        if any(_has_letters(text, row) for row in rows):
            return each
    return None


class SeenTexts:
    """The texts of the hits so far, to find duplicates of them."""

    def __init__(self, words: WordIndex) -> None:
        self._words = words
        self._by_text: dict[tuple[object, ...], KeptHit] = {}
        self._hashes: set[str] = set()
        self._seen: list[tuple[list[str], list[str], KeptHit]] = []
        self._passages: list[KeptHit] = []

    def add(self, kept: KeptHit) -> None:
        self._by_text.setdefault(_text_key(kept.one.item), kept)
        self._hashes.add(kept.one.item.texthash)
        if kept.one.item.record == SESSION:
            self._passages.append(kept)
        words = _comparable_words(kept.one.item)
        self._seen.append((words, _prefixes(words), kept))

    def equal(self, item: IndexItem) -> bool:
        """Whether a hit so far has exactly this text."""
        return item.texthash in self._hashes and _text_key(item) in self._by_text

    def duplicate(self, item: IndexItem, exactly: bool) -> KeptHit | None:
        """The first hit so far of which this is a duplicate, or (`exactly`) with exactly this text."""
        found = self._by_text.get(_text_key(item))
        if found and _same_day(found.one.item, item):
            return found
        if item.record == SESSION:
            return next((each for each in self._passages if _extends(each.one.item, item)), None)
        words = [] if exactly else _comparable_words(item)
        prefixes = _prefixes(words)
        for other, other_prefixes, kept in self._seen if words else ():
            # Comparing prefixes first avoids most queries for stems.
            similar = _added_words(prefixes, other_prefixes) is not None
            if similar and self._says_the_same(words, other, item, kept.one.item):
                return kept
        return None

    def _says_the_same(self, one: list[str], other: list[str], item: IndexItem, seen: IndexItem) -> bool:
        if _type_key(item) != _type_key(seen) or not _same_day(item, seen):
            return False
        stems = self._words.vocabulary.stems({*one, *other})
        added = _added_words([stems[word] or word for word in one], [stems[word] or word for word in other])
        text = seen.text if len(one) < len(other) else item.text
        return added is not None and all(_is_minor(stem, text) for stem in added)


def _extends(one: IndexItem, other: IndexItem) -> bool:
    """Whether one of two passages of a session, in different files, begins with all of the other."""
    if (one.client, one.session) != (other.client, other.session) or one.path == other.path:
        return False
    short, long = sorted((_passage_letters(one), _passage_letters(other)), key=len)
    return long.startswith(short)


def _comparable_words(item: IndexItem) -> list[str]:
    """The words of an item without articles; [] for more than `LONGEST`, and for sessions' passages."""
    if item.record == SESSION:
        return []
    words = [word for word in words_of(item.text[: LONGEST * 20]) if word not in _ARTICLES]
    return words if len(words) <= LONGEST else []


def _prefixes(words: Sequence[str]) -> list[str]:
    return [word[:2] for word in words]


def _type_key(item: IndexItem) -> tuple[object, ...]:
    return item.record, item.kind, bool(item.retired)


def _text_key(item: IndexItem) -> tuple[object, ...]:
    return *_type_key(item), _passage_letters(item) if item.record == SESSION else item.texthash


def _same_day(one: IndexItem, other: IndexItem) -> bool:
    """Whether their dates do not differ. The day on which they were said may."""
    return not (one.when and other.when) or one.when == other.when


def _added_words(one: Sequence[str], other: Sequence[str]) -> list[str] | None:
    """The additional words of the longer text; None if it lacks words of the shorter, or has too many."""
    short, long = (one, other) if len(one) < len(other) else (other, one)
    if not short or len(long) - len(short) > len(short) // WORDS_PER_ADDED:
        return None
    added: list[str] = []
    at = 0
    for word in long:
        if at < len(short) and short[at] == word:
            at += 1
        elif len(added) == len(long) - len(short):
            return None
        else:
            added.append(word)
    return added


def _is_minor(stem: str, text: str) -> bool:
    """Whether an added word changes little: it is no number, negation or name."""
    if stem in _NEGATIONS or not stem.isalpha():
        return False
    # A name is capitalised, so that its stem, in lower case, is not found.
    return bool(re.search(rf"(?<!\w){re.escape(stem[:-1] or stem)}", text))
