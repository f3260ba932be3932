"""Nothing made up: what a fact names must stand in its quote or in the turns around it.

A model writes fluent sentences that were never said. So every name, number, date, path and URL in a
machine-written fact is looked for in the evidence; one that is not there takes the whole sentence down,
and the verbatim quote stands in its place. Ordinary words may differ: rewording is what a fact is for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import date

from ua_memory import dates

_URL = re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s<>\"'`)\]]+|\bwww\.[^\s<>\"'`)\]]+", re.IGNORECASE)
_PATH = re.compile(r"(?<![\w/])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*|(?<![\w/])[\w-]+\.[a-z]{1,5}\b(?![/\w])", re.IGNORECASE)
_IDENTIFIER = re.compile(r"\b(?:\w+_\w+|[a-z]+[A-Z]\w*|[A-Z]{2,}\w*|\w+-\d[\w.-]*|v\d[\w.]*|@\w[\w.-]*)\b")
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,.' ]*\d|(?<!\w)\d|\d+")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_SENTENCE_END = re.compile(r"[.!?:;]\s*$|^\s*$")

_SPELT = dict(
    zip(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
        " seventeen eighteen nineteen twenty".split(), range(21), strict=True
    )
)  # fmt: skip
_SPELT |= {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_SPELT |= {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "dozen": 12}
_ONE = frozenset({"one"})
"""So often a pronoun or an adverb that it claims nothing."""

_PLAIN_STARTS = frozenset(
    """a about after again all also always an and any are as asked assistant at because before being both but by can
    changed chose client code could created current currently database decided decision did do does done during each every
    everything everyone feature first fixed for from general had has have he her here his how however i if implemented in instead into is it
    its kept later learned left let likes made many may might more most moved must my need needed needs never new next
    no none not nothing now of old on once one only open or our out over people person plan planned please prefer preferred prefers
    problem project reason removed replaced right said saw several she should since so some someone something still
    switched team tests than that the their them then there these they this those though to today together tomorrow
    two under until updated us use used user users uses using very want wanted wants was we went were what when where
    whether which while who whole why will with without work works would yes yesterday yet you your""".split()
)
"""Words that begin a sentence without being a name."""


def ungrounded(text: str, evidence: Sequence[str], said: date) -> tuple[str, ...]:
    """The names, numbers, dates, paths and URLs of `text` that no piece of the evidence has, in order."""
    whole = _plain("\n".join(evidence))
    known_days = set(dates.days("\n".join(evidence), said)) | {said.isoformat()}
    words = {word for w in _WORD.findall(whole) for word in _forms(w)}
    numbers = _numbers(whole)
    missing = []
    for kind, claim in claims(text):
        if kind == "date":
            ok = claim in known_days
        elif kind == "number":
            ok = claim in numbers
        elif kind == "name":
            ok = bool(_forms(claim) & words)
        else:
            ok = _plain(claim).casefold() in whole.casefold()
        if not ok:
            missing.append(claim)
    return tuple(missing)


def claims(text: str) -> Iterator[tuple[str, str]]:
    """(kind, what) of everything in a text that can be true or made up: url, path, date, identifier, number, name."""
    rest = _plain(text)
    for kind, pattern in (("url", _URL), ("path", _PATH)):
        for match in pattern.finditer(rest):
            yield kind, match[0].rstrip(".,;:")
        rest = pattern.sub(lambda m: " " * len(m[0]), rest)
    for span in dates.read(rest, date(2000, 1, 1)):
        # Only a date that needs no "today" is a claim of its own; "yesterday" claims nothing without one.
        if span.is_day and re.search(r"\d{4}", rest[span.at : span.to]):
            yield "date", span.start.isoformat()
            rest = rest[: span.at] + " " * (span.to - span.at) + rest[span.to :]
    for match in _IDENTIFIER.finditer(rest):
        yield "identifier", match[0]
    rest = _IDENTIFIER.sub(lambda m: " " * len(m[0]), rest)
    yield from (("number", n) for n in sorted(_numbers(rest)))
    yield from (("name", name) for name in _names(rest))


def locate(quote: str, turns: Sequence[str]) -> int | None:
    """The index of the turn that has these very words (white space aside), or None."""
    wanted = " ".join(_plain(quote).split())
    if not wanted:
        return None
    return next((n for n, turn in enumerate(turns) if wanted in " ".join(_plain(turn).split())), None)


def around(index: int, turns: Sequence[str]) -> list[str]:
    """A turn and the two around it: what a fact drawn from it may speak of."""
    return list(turns[max(0, index - 1) : index + 2])


def _names(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text):
        word = match[0]
        if not word[0].isupper():
            continue
        begins = _SENTENCE_END.search(text[: match.start()].rstrip("\"'“‘(*_ ")[-3:]) is not None
        if word.casefold() in _PLAIN_STARTS and (begins or len(word) < 3 or word.casefold() in ("i", "the", "user", "assistant")):
            continue
        yield word


def _numbers(text: str) -> set[str]:
    found = {_digits(match[0]) for match in _NUMBER.finditer(text)}
    spelt = (word.casefold() for word in _WORD.findall(text))
    found |= {str(_SPELT[part]) for word in spelt for part in word.split("-") if part in _SPELT and part not in _ONE}
    return found - {""}


def _digits(number: str) -> str:
    """`1,500.0` as `1500`: written another way it is the same number."""
    plain = number.replace(",", "").replace("'", "").replace(" ", "").strip("+-.")
    return plain.rstrip("0").rstrip(".") if "." in plain and plain.count(".") == 1 else plain


def _forms(word: str) -> set[str]:
    """A word and its common endings taken off, so that `Heroku's` is Heroku and `Decided` is decide."""
    plain = word.casefold().replace("’", "'").strip("'-")
    stems = {plain, *plain.split("-")}
    for ending in ("'s", "s", "es", "ed", "d", "ing", "ly"):
        if plain.endswith(ending) and len(plain) - len(ending) >= 3:
            stems.add(plain[: -len(ending)])
    return stems - {""}


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'").replace("“", '"').replace("”", '"')
