"""Calibrate the scores of hits: how probable it is that one of the first answers the query.

The score that is shown is the probability that one of the first three hits answers the query, by a logistic
model of a few features of the first hit; `benchmarks/answers.py` fits its weights, `data/answers.json`.
Every other hit has the probability it would have in the first place, capped in proportion to its score.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate

from ua_memory.index import items as index_items
from ua_memory.index.items import SESSION
from ua_memory.index.terms import is_english, is_unspaced
from ua_memory.index.terms import words as words_of
from ua_memory.recall.arms import ParsedQuery, Ranked
from ua_memory.text.names import coined_words, entities, numerals
from ua_memory.text.patterns import data_text, without_accents
from ua_memory.text.questions import word_stem

# -- probabilities -----------------------------------------------------------------------------------------


ANSWER_THRESHOLD = 0.5
"""The probability from which on a query counts as answered."""
BASELINE_RANK = 5
"""The hit that shows how well other texts of the bank match: an answer scores well above these."""
WEAK_MATCH = 0.35
"""A first hit with a lower score is no answer, whatever its other features."""
BASELINE_FLOOR = 0.12
"""The minimum score of the baseline hit, also if there is none: a small bank often has no other match."""
WORDS_CAP = 6
"""The maximum of the feature that counts words besides names."""
SAME_TOPIC = 0.5
"""Hits for a prompt, which nobody reviews, must have this share of the first score."""


@cache
def _weights() -> Mapping[str, Mapping[str, float]]:
    """{model: {feature or `bias`: weight}} of the models `late` (with token vectors), `words` (without) and
    `prompt` (`search.usefulness`)."""
    weights: Mapping[str, Mapping[str, float]] = json.loads(data_text("answers.json"))
    return weights


def logistic_probability(model: str, found: Mapping[str, float]) -> float:
    """The probability, 0 to 1, that a logistic model gives for these features by name."""
    weights = _weights()[model]
    return 1 / (1 + math.exp(-weights["bias"] - sum(weights[name] * value for name, value in found.items())))


def features(asked: ParsedQuery, hits: Sequence[Ranked]) -> Mapping[str, float]:
    """The features for `answer_probability`, by name, each about 0 to 1, of at least one hit, best first."""
    first, late = hits[0], "every" in hits[0].parts
    fifth = score_alone(hits[:BASELINE_RANK][-1]) if len(hits) >= (BASELINE_RANK if late else 2) else 0.0
    words = [word for word in asked.words if word.stems and word.specific]
    others = len(words) - sum(asked.are_names(words))
    found = {
        "score": score_alone(first),
        "fifth": max(BASELINE_FLOOR, fifth),
        "words": min(others, WORDS_CAP) / WORDS_CAP,
        "session": float(first.item.record == SESSION),
        "when": float(first.parts.get("when", 0) > 0),
    }
    return {**found, **{key: first.parts[key] for key in ("every", "names", "rest") if key in first.parts}}


def score_alone(one: Ranked) -> float:
    """The score of a hit without what a passage gains from the facts in it, and a text from having the kind
    of answer that is asked for in another language than English."""
    return one.score - one.parts.get("support", 0.0) - one.parts.get("form", 0.0)


def answer_probability(asked: ParsedQuery, hits: Sequence[Ranked]) -> float:
    """The probability, 0 to 1, that one of the first three of these hits answers the query."""
    if not hits or not hits[0].score:
        return 0.0
    if asked.window and asked.window.only and asked.window.covers(hits[0].item):
        return max(hits[0].score, ANSWER_THRESHOLD)  # the query asks for nothing but these days
    found = features(asked, hits)
    sure = logistic_probability("late" if "every" in found else "words", found)
    sure = min(sure, hits[0].score) if hits[0].score < WEAK_MATCH else sure
    first = hits[:CHECKED_HITS]
    checks = (_lacks_number, _about_other_number, _about_another_name, _lacks_object, _lacks_term)
    other = any(check(asked, first) for check in checks)
    return sure * OTHER_NUMBER if other else sure


def calibrated_scores(asked: ParsedQuery, hits: Sequence[Ranked]) -> list[float]:
    """The shown scores of these hits (best first), 0 to 1, not increasing; the first is the
    `answer_probability`."""
    # A newer value comes before the older one, which may match the query's words much better.
    old = next((n for n, one in enumerate(hits[:CHECKED_HITS]) if not one.parts.get("newer")), 0)
    reordered = [*hits[old : old + 1], *hits[:old], *hits[old + 1 :]]
    top = max(answer_probability(asked, hits), answer_probability(asked, reordered))
    if not top:
        return [0.0] * len(hits)
    scores = [top]
    for at, one in enumerate(hits[1:], 1):
        own = answer_probability(asked, [one, *hits[:at], *hits[at + 1 :]]) * _own_share(one)
        scores.append(min(top, top * one.score / hits[0].score, own))
    return [round(score, 6) for score in accumulate(reversed(scores), max)][::-1]  # none below a later one


def _own_share(one: Ranked) -> float:
    """The share of a hit's match that does not come from its neighbours; 1 in a conversation, where an answer
    often has none of the question's words."""
    own, lent = one.parts.get("words", 0.0), one.parts.get("beside", 0.0)
    return own / (own + lent) if lent > 0 and not one.item.speaker else 1.0


# -- hits about something else -----------------------------------------------------------------------------


def _about_another_name(asked: ParsedQuery, hits: Sequence[Ranked]) -> bool:
    """Whether the query names somebody whom the bank knows, the first hit begins with another name, and
    no hit has both the name and most of what is asked: "what is Matteo allergic to" finds "Léonie is allergic
    to hazelnuts"."""
    item, rest = hits[0].item, hits[0].parts.get("rest", 0.0)
    if not asked.named.every or hits[0].parts.get("names", 1.0) > NAME_MATCH or item.record == SESSION:
        return False
    begins = next((name for name in entities(item.text) if item.text.startswith(name)), "")
    known = {*asked.named.every, *(other for some in asked.named.aliases.values() for other in some)}
    near = [one.item for one in hits if one.parts.get("rest", 0.0) >= ALSO_GOOD * rest]
    texts = [index_items.folded(f"{one.heading} {one.text}") for one in near]
    return bool(begins) and not any(name in text for text in texts for name in known)


def _lacks_object(asked: ParsedQuery, hits: Sequence[Ranked]) -> bool:
    """Whether a query that is not in English asks for something of a thing that none of these hits has: of
    "prix du gasoil" one has only a price. The model, which is English, finds any two of these words alike."""
    match = None if asked.window else _OF_OBJECT.search(asked.text)
    word = next((w for w in asked.words if match and w.end == match.end(1) and w.specific), None)
    if match is None or word is None or word.named or is_english(asked.text):
        return False
    term = match[1].casefold()
    forms = {word_stem(without_accents(each)) for each in (term, *asked.query.forms.get(term, ()))}
    texts = (f"{one.item.heading} {one.item.text[:CHECKED_CHARACTERS]} {one.item.fields}" for one in hits)
    said = {without_accents(each) for text in texts for each in words_of(text)}
    return not any(each.startswith(tuple(forms)) for each in said)


def _lacks_term(asked: ParsedQuery, _: Sequence[Ranked]) -> bool:
    """Whether an English query names something by a word that is not English (`redis`, `SLA`), which no item
    of the bank has: only the rest of the query is found, as in "which version do we run"."""
    unknown = [asked.text[word.start : word.end] for word in asked.words if word.unknown and word.specific]
    if not unknown or not is_english(asked.text):
        return False
    coined = {*coined_words(asked.text.casefold())}
    return any((word.isupper() and word.isalpha()) or word.casefold() in coined for word in unknown)


def _lacks_number(asked: ParsedQuery, hits: Sequence[Ranked]) -> bool:
    """Whether an English query asks for an amount or a number, and none of these hits contains one."""
    if not _ASKS_NUMBER.match(asked.text) or _ELSE_TOO.search(asked.text):
        return False
    near = [one for one in hits if one.score >= ALSO_GOOD * hits[0].score]
    words = {word for one in near for word in words_of(one.item.text[:CHECKED_CHARACTERS])}
    return not any(_KANJI_OR_DIGIT.search(word) or word in _COUNTS or word in numerals() for word in words)


_OF_OBJECT = re.compile(
    r"\w\s+(?:(?:d[eiou]|d[aeo]s|del|de (?:la|los|las)|dell[aeo]|degli|der|vom|van(?: het)?)\s+"
    r"|(?:de l|d|dell)['’])([^\W\d_]{4,})\W*\Z",
    re.IGNORECASE,
)
"""What a query asks something of, at its end: `prix du gasoil`."""

# A ticket, port, version or host with another number is another thing, which embeddings hardly distinguish,
# so numbers are compared as text.
OTHER_NUMBER = 1 / 3
"""The factor on the probability if the query names a thing by a number and the best hits name others, or if
it asks for a number and they have none."""
NAME_MATCH = 0.5
"""With a better match a hit, or its neighbour, has the names of the query."""
CHECKED_HITS, CHECKED_CHARACTERS = 3, 4000
"""Hits that are checked for numbers, and characters of each."""
_NUMBERED = re.compile(
    r"(?<![^\W_])([^\W\d_]{1,40})[-_#№.:\s]{0,2}(\d+(?:[.,:/-]\d+)*)(?![A-Za-z0-9%€$£¥日月年円人個回時分秒件])"
)
_PARTICLE = re.compile(r"[ぁ-ん]\Z")
_ASKS_NUMBER = re.compile(
    r"\s*(?:how (?:much|many) (?!of\b)"
    r"|what (?:did|do|does|will|would) [^?]*\b(?:cost|pay)\W*\Z"
    r"|(?:what(?:[’']s| is| was| are| were) )?(?:the )?"
    r"(?:price|costs?|rent|fee|salary|(?:\w+ )?number) (?:of|for) )",
    re.IGNORECASE,
)
_ELSE_TOO = re.compile(r"\b(?:who|whom|whose|why|where|which)\b", re.IGNORECASE)
"""The query asks for something besides a number."""
_COUNTS = frozenset(
    """
one once twice half dozen hundred thousand free every daily weekly monthly no none nobody nothing never all
both pair twins couple few several many handful waived paid most some
""".split()  # noqa: SIM905
)
"""Words, other than numerals, that state an amount."""
ALSO_GOOD = 0.75
"""A hit with at least this share of the first score may have the number instead."""
_KANJI_OR_DIGIT = re.compile(r"[\d一二三四五六七八九十百千万]")


def _about_other_number(asked: ParsedQuery, hits: Sequence[Ranked]) -> bool:
    """Whether the query is about a thing named by a number, the first hit about one with another number, no
    hit about the same one, and the first hit has at most half of the query's other words."""
    things = [*_NUMBERED.finditer(asked.text)] if asked.window is None else []
    if not things:
        return False
    texts = [one.item.text[:CHECKED_CHARACTERS] for one in hits]
    rest = [word for word in asked.words if word.specific]
    others = False
    for match in things:
        parts = [word for word in asked.words if match.start() <= word.start and word.end <= match.end()]
        noun_end = len(asked.text[: match.start()].rstrip())  # of "ticket" in "the ticket BUG-78"
        rest = [word for word in rest if word not in parts and word.end != noun_end]
        if any(word.stop and word.end <= match.end(1) for word in parts) or _PARTICLE.search(match[1]):
            continue  # "in 2026", "at 5"
        found = [[n for name, n in _NUMBERED.findall(text) if _same_name(name, match[1])] for text in texts]
        same = any(_same_number(n, match[2]) for numbers in found for n in numbers)
        same = same or (_is_year(match[2]) and match[2] in words_of(texts[0]))  # "child fee 2027", "child 8"
        others = others or (bool(found[0]) and not same)
    if not others:
        return False
    asked_words = [asked.text[word.start : word.end].casefold() for word in rest]
    words = tuple(words_of(texts[0]))
    shared = sum(any(w.startswith(word_stem(word)) for w in words) for word in asked_words)
    return shared <= len(asked_words) / 2


def _is_year(number: str) -> bool:
    return len(number) == 4 and number.isdigit() and number[:2] in ("19", "20")


def _same_name(one: str, other: str) -> bool:
    """Whether two names are equal, or in a script without spaces one ends with the other."""
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    return long == short or (long.endswith(short) and is_unspaced(long[-len(short) - 1]))


def _same_number(one: str, other: str) -> bool:
    """Whether two numbers are equal, or one is a more exact version of the other: 3 and 3.11."""
    short, long = sorted((one.replace(",", ""), other.replace(",", "")), key=len)
    return long == short or long.startswith(f"{short}.")
