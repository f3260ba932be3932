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
from datetime import date, timedelta

from ua_memory import dates
from ua_memory.grounding.amounts import Amounts, amounts
from ua_memory.grounding.coined import coined, opens
from ua_memory.grounding.compounds import compounds, stands, without
from ua_memory.grounding.moments import meant, moments, resolves
from ua_memory.grounding.terms import UNSPACED, terms
from ua_memory.names import ORDINARY

_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s<>\"'`)\]]+|\bwww\.[^\s<>\"'`)\]]+", re.IGNORECASE)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PATH = re.compile(
    r"(?<![\w/])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*|(?<![\w/])/[\w.@+-]+|"
    r"(?<![\w/.])(?!(?:e\.g|i\.e|a\.m|p\.m|a\.k)\b)\.?[\w-]+(?:\.[\w-]+)*\."
    r"(?:[a-z]\w{0,4}|(?-i:[a-z]{2,14}))\b(?![/\w])",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(
    r"(?:\b(?:\w+_\w+|\w+-\d[\w.-]*|[a-z]+[A-Z]\w*|[A-Z]{2,}\w*|v\d[\w.]*)|@\w[\w.-]*)\b"
)
_ABBREVIATIONS = re.compile("[A-Z]{2,}s")
"""Only these have a plural: `PRs` are each a PR, but what code calls `map_keys` is no `map_key`."""
_QUOTED = re.compile(r"`([^`\n]+)`|(?<![\w&/])#([A-Za-z][\w/-]*)")
_VERBATIM = re.compile(r"(?<!\w)[\"„«](?=\S)([^\"„«»\n]*\S)[\"»]")
_LEFT_OUT = re.compile(r"\[?(?:…|\.\.\.)\]?")
_WORD = re.compile(r"[^\W\d_][\w'-]*")
_SENTENCE_END = re.compile(r"[.!?:;]\s*$|^\s*$")
_TRAILING = ".,;:!?"


def ungrounded(text: str, evidence: Sequence[str], said: date | None = None) -> tuple[str, ...]:
    """The names, numbers, dates, paths and URLs of `text` that no piece of the evidence has, in order.

    `said` is the day of the quote, against which "yesterday" is read in both; without it only dates that
    name their year are compared as dates, and the words of the others as words.
    """
    known = _Evidence(evidence, said)
    return tuple(claim for kind, claim in claims(text, said) if not known.has(kind, claim))


def named(name: str, evidence: Sequence[str]) -> bool:
    """Whether what a model lists as a name is one, and stands in the evidence. "There" is none anywhere."""
    words = [word.casefold() for word in _WORD.findall(name)]
    ordinary = bool(words) and all(word in ORDINARY or not terms(word) for word in words)
    return not ordinary and _Evidence(evidence, None).names(_plain(name))


class _Evidence:
    """What the evidence names, by kind."""

    def __init__(self, pieces: Sequence[str], said: date | None) -> None:
        text = _plain("\n".join(pieces))
        self._said = said
        self._text = text.casefold()
        self._flat = " ".join(self._text.split())
        self._stretches = {(span.start, span.end) for span in _spans(text, said)}
        days = _dates(text, said)
        self._days = {day for _, day in days}
        self._yearless = {day[5:] for _, day in days}
        self._unsure = {day[5:] for span, day in days if not span.sure}
        if said:
            ahead = set(meant(text, said))
            self._days |= {day.isoformat() for day in (said, *ahead)}
            self._stretches |= {(day, day + timedelta(days=1)) for day in ahead}
        self._urls = {_url(match[0]) for match in _URL.finditer(text)}
        self._words = {form for word in _WORD.findall(text) for form in _forms(word)}
        self._stems = {stem for word in self._words for stem in _stems(word)}
        self._amounts = Amounts(without(text))

    def has(self, kind: str, claim: str) -> bool:
        if kind == "date":
            return claim in self._days or (claim[5:] in self._unsure and self._near(claim))
        if kind == "yearless":
            return claim[5:] in self._yearless
        if kind == "number":
            return self._amounts.has(claim)
        if kind == "compound":
            return stands(claim, self._flat)
        if kind in ("verbatim", "code"):
            return self._says(claim)
        if kind in ("stretch", "moment"):
            return self._says(claim) or self._within(kind, claim)
        if kind == "url":
            return _url(claim) in self._urls or self._stands(claim)
        if kind in ("name", "opening") and resolves(claim.casefold(), self._stretches):
            return True
        if kind == "name":
            return all(_forms(part) & self._words for part in claim.split("-") if part)
        if kind in ("opening", "coined"):
            return bool((_stems(claim) | _forms(claim)) & (self._stems | self._words))
        if kind == "identifier":  # "API" stands in "API-keys", "gpt-4" not in "gpt-4.1"
            forms = (claim, claim[:-1]) if _ABBREVIATIONS.fullmatch(claim) else (claim,)
            return any(self._stands(form, r"[.-]\d") for form in forms)
        return self._stands(claim)

    def names(self, name: str) -> bool:
        """Whether it is called so there; in a script without spaces, whether these characters stand there."""
        whole = self._says(name) or self._says(f"{name}s")
        return whole or bool(UNSPACED.search(name) and name.casefold() in self._flat)

    def _near(self, day: str) -> bool:
        """Whether a day is what one without its year can mean: the last such, or the next."""
        return self._said is None or abs((date.fromisoformat(day) - self._said).days) <= 366

    def _says(self, claim: str) -> bool:
        """Whether these very words stand there, white space and letter case aside."""
        wanted = re.escape(" ".join(claim.casefold().split()))
        return re.search(rf"(?<!\w){wanted}(?!\w)", self._flat) is not None

    def _within(self, kind: str, claim: str) -> bool:
        """Whether a date of the evidence is what these time words mean."""
        if kind == "moment":
            return self._says(f"{claim}s") or resolves(claim, self._stretches)
        mine = [(span.start, span.end) for span in _spans(claim, self._said)]
        return any(start <= first and last <= end for start, end in mine for first, last in self._stretches)

    def _stands(self, claim: str, longer: str = r"/|[.-]\w") -> bool:
        """Whether the claim stands there as a whole: what `longer` matches after it makes it a part."""
        wanted = re.escape(claim.casefold())
        return re.search(rf"(?<!\w){wanted}(?!\w|{longer})", self._text) is not None


def claims(text: str, said: date | None = None) -> Iterator[tuple[str, str]]:
    """(kind, what) of everything in a text that can be true or made up.

    Kinds: verbatim (what stands in quotation marks), code (what is quoted as such, or a tag), url, email,
    path, date (an ISO day), yearless (one whose year is a guess), stretch (of days), moment (other time
    words), identifier, compound (a word with a number in it, or an ordinal), number, name, opening for a
    capitalised word that a sentence begins with, which may be a name or not, and coined for a lower-case
    one that is no English.
    """
    rest = _plain(text)
    for match in _VERBATIM.finditer(rest):
        parts = (part.strip().rstrip(_TRAILING) for part in _LEFT_OUT.split(match[1]))
        yield from (("verbatim", words) for words in parts if words)
    yield from (("code", (match[1] or match[2]).strip()) for match in _QUOTED.finditer(rest))
    for kind, pattern in (("url", _URL), ("email", _EMAIL), ("path", _PATH)):
        for match in pattern.finditer(rest):
            yield kind, match[0].rstrip(_TRAILING)
        rest = pattern.sub(_blank, rest)
    for span, day in _dates(rest, said):
        yield ("date" if span.sure else "yearless"), day
        rest = rest[: span.at] + " " * (span.to - span.at) + rest[span.to :]
    for span in _spans(rest, said):
        yield "stretch", rest[span.at : span.to]
        rest = rest[: span.at] + " " * (span.to - span.at) + rest[span.to :]
    yield from (("moment", each) for each in moments(rest))
    for match in _IDENTIFIER.finditer(rest):
        yield "identifier", match[0]
    rest = _IDENTIFIER.sub(_blank, rest)
    for match in compounds(rest):
        yield "compound", match[0]
        rest = rest[: match.start()] + " " * len(match[0]) + rest[match.end() :]
    yield from (("number", written) for written in sorted({each.written for each in amounts(rest)}))
    yield from _names(rest)
    yield from (("coined", word) for word in coined(rest))


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


def _spans(text: str, said: date | None) -> list[dates.Span]:
    """The stretches of days that a text names; none that needs a today we do not have."""
    found = dates.spans(text, said or date(2000, 1, 1))
    return [each for each in found if said or re.search(r"\d{4}", text[each.at : each.to])]


def _dates(text: str, said: date | None) -> list[tuple[dates.Span, str]]:
    """The single days of a text and where it names them."""
    return [(span, span.start.isoformat()) for span in _spans(text, said) if span.is_day]


def _names(text: str) -> Iterator[tuple[str, str]]:
    for match in _WORD.finditer(text):
        word = match[0]
        if not word[0].isupper():
            continue
        first = _SENTENCE_END.search(text[: match.start()].rstrip("\"'(*_ ")[-3:]) is not None
        plain = word.casefold()
        if plain in ORDINARY and (first or len(word) < 3 or plain in ("user", "assistant")):
            continue
        if first and opens(word, text[match.end() : match.end() + 10]):
            continue
        yield ("opening" if first and "-" not in word else "name"), word


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
