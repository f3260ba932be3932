"""A second opinion on what is made up, written apart from `grounding`: tokens, compared bluntly.

It knows no claims and no kinds: every word with a capital, every run with a digit, every word with a slash,
dot, underscore or @ in the middle must stand somewhere in the evidence, in the same letters. It is stricter
about words and blind to meaning, so the two fail in different ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

_TOKEN = re.compile(r"[^\s,;!?()\[\]{}<>\"“”«»*`|]+")
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_COUNTING = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand
million billion dozen"""
_BEGINNINGS = """the this that these those there here his her its our your their they you she after before
because when while where which what why how and but not for from with without into until since all both each
every some any many most only also once again then now today yesterday tomorrow was were are has have had can
will would should user person assistant someone nobody nothing everything one"""
_NUMBERS, _STARTS = _COUNTING.split(), frozenset(_BEGINNINGS.split())
_OPENS = re.compile(
    r"[A-Z][a-z]{3,}ing (?:on|the|an?|to|with|for|in|at|from|of|up|out|his|her|their|our|your|it|that)\b"
    r"|[A-Z][a-z]{3,}(?:ually|ently|antly|ously|ively|arily|tely) [a-z]"
)
"""`Working on`, `Usually the`: words that begin a sentence as these do are no names."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def made_up(fact: str, evidence: Iterable[str], said: datetime | None = None) -> list[str]:
    """The tokens of a fact that name something and stand nowhere in the evidence, in order."""
    heap = " ".join(evidence).casefold().replace("’", "'")
    squeezed = re.sub(r"[\s,'_]", "", heap)
    days = _days(heap, said)
    found = []
    for sentence in re.split(r"(?<=[.!?:])\s+", fact):
        if _OPENS.match(sentence):
            sentence = f"the {sentence[:1].lower()}{sentence[1:]}"
        for place, token in enumerate(_TOKEN.findall(sentence)):
            word = _EDGES.sub("", token)  # signs and emoji name nothing
            if _names_something(word, place) and not _stands(word, heap, squeezed, days):
                found.append(word)
    return found


def wanders(fact: str, evidence: Iterable[str]) -> bool:
    """Whether a fact of ordinary words is about something else: of its longer words not one in four begins
    like anything in the evidence."""
    heap = " ".join(evidence).casefold()
    long = {word for word in re.findall(r"[^\W\d_]{4,}", fact.casefold()) if word not in _STARTS}
    return len(long) > 3 and sum(word[:4] in heap for word in long) < len(long) / 4


def _names_something(word: str, place: int) -> bool:
    plain = word.casefold()
    if any(c.isdigit() for c in word) or plain in _NUMBERS[2:]:
        return True
    if re.search(r"\w[/@_]\w|\w\.\w|://", word):
        return True
    if plain in ("i", "i'm", "i'll", "i'd", "i've"):
        return False
    if place == 0 and not any(c.isupper() for c in word[1:]):
        return word[:1].isupper() and len(word) > 2 and plain not in _STARTS
    return any(c.isupper() for c in word)


def _stands(word: str, heap: str, squeezed: str, days: set[str]) -> bool:
    plain = word.casefold().replace("’", "'")
    bare = plain.removesuffix("'s")
    whole = re.sub(r"[,'_]", "", plain)
    if any(c.isdigit() for c in plain):  # 40 does not stand in 1400
        if any(re.search(rf"(?<![\d.]){re.escape(each)}(?!\d)", heap) for each in (plain, bare)):
            return True
        if re.search(rf"(?<![\d.]){re.escape(whole)}(?!\d)", squeezed):
            return True
    elif plain in heap or bare in heap or whole in squeezed:
        return True
    if plain in days or plain[:10] in days:
        return True
    if plain in _NUMBERS and str(_NUMBERS.index(plain)) in re.findall(r"\d+", heap):
        return True
    # A hyphenated or dotted word is there if all its parts are.
    parts = [part for part in re.split(r"[-/.]", bare) if part]
    return (
        len(parts) > 1 and not bare[:1].isdigit() and "/" not in bare and all(part in heap for part in parts)
    )


def _days(heap: str, said: datetime | None) -> set[str]:
    """The ISO days that relative words of the evidence can mean: generously, any within what they say."""
    if said is None:
        return set()
    near = {0}
    near |= {-1} if "yesterday" in heap or "last night" in heap else set()
    near |= {1} if "tomorrow" in heap else set()
    if re.search(r"\b(?:last|next|this|on|by|until)?\s*(?:mon|tues|wednes|thurs|fri|satur|sun)day", heap):
        near |= set(range(-8, 9))
    for number, unit in re.findall(r"\b(\w+) (day|week|month|year)s? ago", heap):
        count = int(number) if number.isdigit() else _NUMBERS.index(number) if number in _NUMBERS else 1
        size = {"day": 1, "week": 7, "month": 31, "year": 366}[unit]
        near |= set(range(-count * size - 3, -count * size * 9 // 10 + 4))
    if any(re.search(rf"\b{month}", heap) for month in _MONTHS):
        near |= set(range(-400, 401))
    return {(said + timedelta(days=n)).date().isoformat() for n in near}
