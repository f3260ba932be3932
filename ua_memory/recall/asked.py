"""How a query was read: its terms, its words and what each is worth, whom it names, which days it means."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

from ua_memory.index import links, spelling
from ua_memory.index.links import Named
from ua_memory.index.terms import STOP, Query, clean, read_query, wholes
from ua_memory.index.terms import words as words_of
from ua_memory.index.words import Words
from ua_memory.recall.keyword import GUESSED, Weights, inverse, weigh

SMALL = 0.5
"""What a word that every text has counts beside its rarity: "when" and "who" say a little."""

FEW = 100
"""So many texts are added, half of which have a small word: few items cannot tell how common it is."""

MOST = 256
"""Words of a query that are weighed one by one; the model reads no further either."""

_TELLING = """
all anything did done else everything going happen happened happening happens new news recall remember said
show something talk talked talking tell work worked working ll m re s t ve
"""
IDLE = STOP | frozenset(_TELLING.split())
"""English words that ask what there was, and say nothing about what it was."""

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the query: where it stands, its weight, its stems, and whether it is part of a name of the
    bank's or of an identifier (then that, whole)."""

    start: int
    end: int
    weight: float
    stems: tuple[str, ...]
    small: bool = False
    named: bool = False
    whole: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """The days a query means: ISO, `end` exclusive; an open side is ''. `alone`: the query asks for nothing
    but what there was in them ("what happened last week?")."""

    start: str = ""
    end: str = ""
    alone: bool = False

    def holds(self, day: str) -> bool:
        """Whether an ISO day lies in it."""
        return bool(day) and self.start <= day and (not self.end or day < self.end)


@dataclass(frozen=True, slots=True)
class Asked:
    """One query as all arms see it. `meant` is {word that no item has: the word of the bank it was taken for,
    '' where that is a small one}."""

    text: str
    query: Query
    weights: Weights
    words: tuple[Word, ...]
    named: Named
    window: Window | None = None
    meant: Mapping[str, str] = field(default_factory=dict)

    @property
    def guesses(self) -> tuple[str, ...]:
        """What the words that no item has were taken for, to be told with the answer."""
        told = {typed: word for typed, word in self.meant.items() if word}
        parts = {typed for typed in told for other in told if typed != other and typed in other}
        return tuple(
            f"nothing has “{typed}”: read as “{told[typed]}”" for typed in told if typed not in parts
        )


def read(
    words: Words, text: str, window: Window | None = None, pieces: Iterable[tuple[int, int]] = ()
) -> Asked:
    """Read a query against a bank's words. Never raises. In a question, a phrase that no item has is not
    required. `pieces` are the places of what a model reads at once: a whole word there is no typo."""
    text = clean(text)
    query = read_query(text)
    if query.phrases and text.rstrip().endswith("?") and not words.search(query, 1):
        # A title in a question ("Did you read “The Four Seasons”?") is no operator where nothing holds it.
        query = Query(query.terms, (), query.again)
    meant = misspelt(words, query, {text[start:end].casefold() for start, end in pieces})
    if meant:
        terms, again = ([meant.get(t, t) for t in part] for part in (query.terms, query.again))
        query = Query(tuple(filter(None, dict.fromkeys(terms))), query.phrases, tuple(again))
    named = links.named(words.db, text)
    weights, own = weigh(words, query, frozenset(meant.values())), _words(words, text, named.declared, meant)
    if window and window.alone:
        own = tuple(replace(one, weight=0.0) if _idle(text[one.start : one.end]) else one for one in own)
    return Asked(text, query, weights, own, named, window, meant)


def idle(text: str, at: Iterable[tuple[int, int]]) -> bool:
    """Whether a query has nothing to go by but what stands at these places."""
    for start, end in at:
        text = text[:start] + " " * (end - start) + text[end:]
    return all(_idle(word) for word in _WORD.findall(text))


def _idle(word: str) -> bool:
    return word.casefold() in IDLE


def misspelt(words: Words, query: Query, known: Set[str] = frozenset()) -> dict[str, str]:
    """{term that no item has, nor the language: the word of the bank that was meant}. Costs nothing where
    every term is known."""
    many = words.vocabulary.frequencies(query.terms)
    unknown = (term for term in query.terms if not many[term] and term not in known)
    return spelling.meant(words.db, words.vocabulary.frequencies, unknown)


def _words(words: Words, text: str, names: Mapping[str, int], meant: Mapping[str, str]) -> tuple[Word, ...]:
    spans = [match.span() for match in _WORD.finditer(text)][:MOST]
    typed = [words_of(text[start:end]) for start, end in spans]
    pieces = [[each for each in (meant.get(piece, piece) for piece in part) if each] for part in typed]
    joined = [(start, end, meant.get(whole) or whole) for start, end, whole in _joined(text)]
    every = sorted({piece for part in pieces for piece in part} | {whole for _, _, whole in joined})
    stems, known, total = words.vocabulary.stems(every), words.vocabulary.frequencies(every), words.count()
    naming = {word for name in names for word in name.split()}
    found = []
    for (start, end), part, before in zip(spans, pieces, typed, strict=True):
        small = all(piece in STOP for piece in part)
        few = FEW if small else 0
        rare = max((inverse(known[piece] + few // 2, total + few) for piece in part), default=0.0)
        weight = rare * (SMALL if small else 1.0) * (1.0 if part == before else GUESSED)
        own = tuple(stems[piece] for piece in part if stems[piece])
        named = bool(part) and all(piece in naming for piece in part)
        whole = next((stems[each] for low, high, each in joined if low <= start and end <= high), "")
        if not whole and part != before and len(own) == 1:
            whole = own[0]  # the model reads the letters that were typed; go by those that were meant
        found.append(Word(start, end, weight, own, small, named, whole))
    return tuple(found)


def _joined(text: str) -> list[tuple[int, int, str]]:
    """(start, end, as indexed) of the identifiers in a text."""
    found = []
    for match in re.finditer(r"\S+", text):
        whole = wholes(match[0]) if match[0].isascii() else []
        if whole:
            found.append((*match.span(), whole[0]))
    return found
