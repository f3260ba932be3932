"""Nothing made up: what a fact names must stand in its quote or in the turns around it.

A model writes fluent sentences that were never said. So every name, number, date, path and URL in a
machine-written fact is looked for in the evidence; one that is not there takes the whole sentence down,
and the verbatim quote stands in its place. Ordinary words may differ: rewording is what a fact is for.
In doubt a word is a claim: to refuse a true sentence costs its wording, to keep a false one costs trust.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import date

from ua_memory import dates
from ua_memory.retain.names import ORDINARY

_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s<>\"'`)\]]+|\bwww\.[^\s<>\"'`)\]]+", re.IGNORECASE)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PATH = re.compile(
    r"(?<![\w/])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*|(?<![\w/])/[\w.@+-]+|"
    r"(?<![\w/.])(?!(?:e\.g|i\.e|a\.m|p\.m|a\.k)\b)\.?[\w-]+\.[a-z]\w{0,4}\b(?![/\w])",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(
    r"(?:\b(?:\w+_\w+|[a-z]+[A-Z]\w*|[A-Z]{2,}\w*|\w+-\d[\w.-]*|v\d[\w.]*)|@\w[\w.-]*)\b"
)
_NUMBER = re.compile(r"\d{1,3}(?:[ ,'.]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.,]\d+)*")
_WORD = re.compile(r"[^\W\d_][\w'-]*")
_SENTENCE_END = re.compile(r"[.!?:;]\s*$|^\s*$")
_TRAILING = ".,;:!?"

_SPELT = {
    **{word: n for n, word in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven"])},
    "eight": 8,
    **{word: n for n, word in enumerate(["nine", "ten", "eleven", "twelve", "thirteen", "fourteen"], 9)},
    **{word: n for n, word in enumerate(["fifteen", "sixteen", "seventeen", "eighteen", "nineteen"], 15)},
    **{"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80},
    **{"ninety": 90, "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "dozen": 12},
}
_ONE = frozenset({"one"})
"""So often a pronoun or an adverb that it claims nothing."""


def ungrounded(text: str, evidence: Sequence[str], said: date | None = None) -> tuple[str, ...]:
    """The names, numbers, dates, paths and URLs of `text` that no piece of the evidence has, in order.

    `said` is the day of the quote, against which "yesterday" is read in both; without it only dates that
    name their year are compared as dates, and the words of the others as words.
    """
    known = _Evidence(evidence, said)
    return tuple(claim for kind, claim in claims(text, said) if not known.has(kind, claim))


class _Evidence:
    """What the evidence names, by kind."""

    def __init__(self, pieces: Sequence[str], said: date | None) -> None:
        text = _plain("\n".join(pieces))
        self._text = text.casefold()
        self._days = {day for _, day in _dates(text, said)}
        if said:
            self._days.add(said.isoformat())
        self._urls = {_url(match[0]) for match in _URL.finditer(text)}
        self._words = {form for word in _WORD.findall(text) for form in _forms(word)}
        self._stems = {stem for word in self._words for stem in _stems(word)}
        self._numbers = _numbers(text)

    def has(self, kind: str, claim: str) -> bool:
        if kind == "date":
            return claim in self._days
        if kind == "number":
            return claim in self._numbers
        if kind == "url":
            return _url(claim) in self._urls or self._stands(claim)
        if kind == "name":
            return all(_forms(part) & self._words for part in claim.split("-") if part)
        if kind == "opening":
            return bool((_stems(claim) | _forms(claim)) & (self._stems | self._words))
        if kind == "identifier":  # "API" stands in "API-keys", "gpt-4" not in "gpt-4.1"
            return any(self._stands(form, r"[.-]\d") for form in (claim, claim.removesuffix("s")))
        return self._stands(claim)

    def _stands(self, claim: str, longer: str = r"/|[.-]\w") -> bool:
        """Whether the claim stands there as a whole: what `longer` matches after it makes it a part."""
        wanted = re.escape(claim.casefold())
        return re.search(rf"(?<!\w){wanted}(?!\w|{longer})", self._text) is not None


def claims(text: str, said: date | None = None) -> Iterator[tuple[str, str]]:
    """(kind, what) of everything in a text that can be true or made up.

    Kinds: url, email, path, date (an ISO day), identifier, number, name, and opening for a capitalised word
    that a sentence begins with, which may be a name or not.
    """
    rest = _plain(text)
    for kind, pattern in (("url", _URL), ("email", _EMAIL), ("path", _PATH)):
        for match in pattern.finditer(rest):
            yield kind, match[0].rstrip(_TRAILING)
        rest = pattern.sub(_blank, rest)
    for span, day in _dates(rest, said):
        yield "date", day
        rest = rest[: span.at] + " " * (span.to - span.at) + rest[span.to :]
    for match in _IDENTIFIER.finditer(rest):
        yield "identifier", match[0]
    rest = _IDENTIFIER.sub(_blank, rest)
    yield from (("number", n) for n in sorted(_numbers(rest)))
    yield from _names(rest)


def locate(quote: str, turns: Sequence[str]) -> int | None:
    """The index of the turn that has these very words, white space aside, or None; no half words."""
    wanted = " ".join(_plain(quote).split())
    if not wanted:
        return None
    before = r"(?<!\w)" if wanted[0].isalnum() else ""
    after = r"(?!\w)" if wanted[-1].isalnum() else ""
    pattern = re.compile(before + re.escape(wanted) + after)
    return next((n for n, turn in enumerate(turns) if pattern.search(" ".join(_plain(turn).split()))), None)


def around(index: int, turns: Sequence[str]) -> list[str]:
    """A turn and the two around it: what a fact drawn from it may speak of."""
    return list(turns[max(0, index - 1) : index + 2])


def _dates(text: str, said: date | None) -> list[tuple[dates.Span, str]]:
    """The single days of a text and where it names them; none that needs a today we do not have."""
    found = []
    for span in dates.spans(text, said or date(2000, 1, 1)):
        words = text[span.at : span.to]
        if span.is_day and (said or re.search(r"\d{4}", words)):
            found.append((span, span.start.isoformat()))
    return found


def _names(text: str) -> Iterator[tuple[str, str]]:
    for match in _WORD.finditer(text):
        word = match[0]
        if not word[0].isupper():
            continue
        opens = _SENTENCE_END.search(text[: match.start()].rstrip("\"'(*_ ")[-3:]) is not None
        plain = word.casefold()
        if plain in ORDINARY and (opens or len(word) < 3 or plain in ("user", "assistant")):
            continue
        yield ("opening" if opens and "-" not in word else "name"), word


def _numbers(text: str) -> set[str]:
    found = {_digits(match[0]) for match in _NUMBER.finditer(text)}
    spelt = (word.casefold() for word in _WORD.findall(text))
    found |= {
        str(_SPELT[part]) for word in spelt for part in word.split("-") if part in _SPELT and part not in _ONE
    }
    return found - {""}


def _digits(number: str) -> str:
    """`1,500.0` as `1500`: written another way it is the same number."""
    plain = number.replace(",", "").replace("'", "").replace(" ", "")
    return plain.rstrip("0").rstrip(".") if plain.count(".") == 1 else plain


def _forms(word: str) -> set[str]:
    """A word, and it without the genitive's or the plural's s: `Heroku's` is Heroku, but James is not jam."""
    plain = word.casefold().strip("'-")
    forms = {plain, *plain.split("-")}
    forms |= {form[:-2] for form in forms if form.endswith("'s")}
    forms |= {form[:-1] for form in forms if form.endswith("s") and len(form) > 3}
    return forms - {""}


def _stems(word: str) -> set[str]:
    """A word without the endings of verbs, so that `Decided` at the start of a sentence is decide."""
    plain = word.casefold().strip("'-")
    endings = [e for e in ("es", "ed", "d", "ing", "ly") if plain.endswith(e) and len(plain) - len(e) >= 4]
    return {plain, *(plain[: -len(ending)] for ending in endings)}


def _url(text: str) -> str:
    return text.rstrip(_TRAILING).rstrip("/")


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def _plain(text: str) -> str:
    """Composed, with straight quotation marks: they are typed and printed in many ways."""
    text = unicodedata.normalize("NFKC", text)
    return text.translate({0x2019: "'", 0x2018: "'", 0x201C: '"', 0x201D: '"'})
