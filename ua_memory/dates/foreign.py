"""Dates in other languages: their words through dateparser into English ones, which the grammar then reads.

dateparser's own `search_dates` finds single words without what bounds them (of "между мартом и маем" a month)
and answers with a day where a month was named; its language data is what is wanted here. Importing it costs
some 0.4 s, so a gate of plain words comes first: English queries never load it.
"""

from __future__ import annotations

import re
from typing import Any

from ua_memory.dates.chinese import HAN, in_english
from ua_memory.dates.tongues import TONGUES, Tongue
from ua_memory.dates.words import Token, cut
from ua_memory.errors import UaMemoryError

_CYRILLIC = re.compile("[Ѐ-ӿ]")
_ONLY_UKRAINIAN, _ONLY_RUSSIAN = re.compile("[іїєґ]", re.I), re.compile("[ыэёъ]", re.I)
_DONE = re.compile(
    r"(?:in )?\d+ (?:second|minute|hour|day|week|month|year)s?(?: ago)?"
    r"|(?:january|february|march|april|may|june|july|august|september|october|november|december)"
    r"|(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
)
_WIDEST = 5
"""Tokens of one expression that dateparser is asked for: `il y a trois jours`."""

_BOUNDS = {"in", "since", "until", "before", "after", "between", "early", "mid", "late", "from"}
"""What makes a date of a bare year: `Anfang 2026`."""

Piece = tuple[str, int, int]
"""An English word or two, and the place [from, to) of what it was made of."""


class DatesUnavailable(UaMemoryError):
    """dateparser is not installed or fails; nobody is told that the text has no date."""

    exit_code = 1


def language(text: str) -> str | None:
    """The language whose date words a text has, if it is one we read: 'de', 'fr', 'es', 'ru', 'uk', 'zh'."""
    if HAN.search(text):
        return "zh" if in_english(text) else None
    low = {token.low: token for token in cut(text.replace("’", "'")) if token.kind == "word"}
    words = set(low) | {f"{token.text.lower()}" for token in low.values()}
    best, score = None, 0
    for tongue in TONGUES:
        cyrillic = tongue.code in ("ru", "uk")
        if cyrillic != bool(_CYRILLIC.search(text)) or _excluded(tongue, text):
            continue
        names = words & set(tongue.names)
        sure = names - tongue.doubtful
        signs = words & tongue.signs - names
        short = bool(sure) and all(word in tongue.names or _known(word, tongue) for word in words)
        dated = len(words) <= 2 and bool(names) and re.search(r"\b\d{4}\b", text) is not None
        if not names and re.search(r"\b(?:19|20)\d\d\b", text):
            bounds = {word for word in words if tongue.joins.get(word) in _BOUNDS}
            names, dated = bounds, bool(bounds and (len(words) <= 2 or len(signs - bounds) > 0))
            signs = set()
        weight = (3 if names & set(tongue.names) else 1) * len(names) + len(signs)
        if names and (signs or short or cyrillic or dated) and weight > score:
            best, score = tongue.code, weight
    return best


def _known(word: str, tongue: Tongue) -> bool:
    return word in tongue.joins or _stem(word, tongue) is not None


def _excluded(tongue: Tongue, text: str) -> bool:
    if tongue.code == "ru":
        return bool(_ONLY_UKRAINIAN.search(text))
    return tongue.code == "uk" and bool(_ONLY_RUSSIAN.search(text))


def translated(text: str, code: str) -> list[Piece]:
    """The text's date words in English, in order; anything between them is a comma."""
    if code == "zh":
        return in_english(text)
    tongue = next(each for each in TONGUES if each.code == code)
    tokens = cut(text.replace("’", "'"))
    pieces: list[Piece] = []
    i = 0
    while i < len(tokens):
        word, width = _piece(text, tokens, i, tongue)
        at, to = tokens[i].at, tokens[i + width - 1].to
        i += width
        if word.endswith("<"):
            _before_its_noun(pieces, (word[:-1], at, to))
        elif word:
            pieces.append((word, at, to))
    return _settled(pieces)


def _piece(text: str, tokens: list[Token], i: int, tongue: Tongue) -> tuple[str, int]:
    """English for what begins at a token, and how many tokens that is."""
    for width in range(min(_WIDEST, len(tokens) - i), 1, -1):
        window = tokens[i : i + width]
        if any(token.kind not in ("word", "number", "dash") for token in window):
            continue
        key = " ".join(token.text.lower() for token in window)
        known = tongue.names.get(key) or tongue.joins.get(key)
        known = known or tongue.names.get(key.replace(" - ", "-"))
        if known is None and any(token.text.lower() in tongue.names for token in window):
            known = _asked(" ".join(_numeral(token, tongue) for token in window).replace(" - ", "-"), tongue)
        if known:
            return known, width
    token = tokens[i]
    low = token.text.lower()
    if token.kind in ("number", "date", "ordinal", "dash", "clock"):
        return token.text, 1
    if token.kind == "mark":
        dotted = token.text == "." and i and tokens[i - 1].kind == "number" and len(tokens[i - 1].text) <= 2
        return ("" if dotted else ","), 1
    return tongue.names.get(low) or tongue.joins.get(low) or _stem(low, tongue) or ",", 1


def _numeral(token: Token, tongue: Tongue) -> str:
    english = tongue.joins.get(token.text.lower(), "")
    return english if english.isdigit() else token.text


def _stem(low: str, tongue: Tongue) -> str | None:
    stems = (key for key in tongue.joins if key.endswith("*") and low.startswith(key[:-1]))
    return next((tongue.joins[key] for key in stems), None)


def _asked(phrase: str, tongue: Tongue) -> str | None:
    """What dateparser makes of a phrase, where that is a date through and through."""
    english = _locale(tongue.code).translate(phrase.lower()).strip()
    if tongue.code == "es" and english.startswith("ago "):
        english = english[4:] + " ago"
    if not _DONE.fullmatch(english) or not english[-1].isalpha():
        return None
    if english.startswith("in "):
        return f"{english[3:]} from now"
    return english if english.endswith("ago") else None


_locales: dict[str, Any] = {}


def _locale(code: str) -> Any:
    if code not in _locales:
        try:
            from dateparser.conf import settings
            from dateparser.languages.loader import default_loader
        except ImportError as error:
            raise DatesUnavailable(
                f"dateparser, which reads dates in other languages, cannot be loaded: {error}",
                mend="pip install 'dateparser==1.5.0'",
            ) from error
        _locales[code] = _Known(default_loader.get_locale(code), settings)
    return _locales[code]


class _Known:
    """dateparser's words for one language."""

    def __init__(self, locale: Any, settings: Any) -> None:
        self._locale, self._settings = locale, settings

    def translate(self, phrase: str) -> str:
        return str(self._locale.translate(phrase, keep_formatting=True, settings=self._settings))


def _before_its_noun(pieces: list[Piece], which: Piece) -> None:
    """`lundi dernier`, `les 10 derniers jours`: "last" goes before the noun, or before the number."""
    if pieces and pieces[-1][0] not in (",", "the", "of", "on", "in"):
        noun, at, to = pieces[-1]
        pieces[-1] = which
        pieces.append((noun.removeprefix("the "), at, to))
    else:
        pieces.append(which)


def _settled(pieces: list[Piece]) -> list[Piece]:
    """What depends on neighbours: `с марта по май`, `в 2019 году`, `hace tres días`, `10 last days`."""
    words = [word for word, _, _ in pieces]
    found: list[Piece] = []
    for n, piece in enumerate(pieces):
        word, before = piece[0], words[n - 1] if n else ""
        if word == "since" and any(each in ("to", "until") for each in words[n + 1 : n + 6]):
            word = "from"
        if word == "year" and re.fullmatch(r"(?:19|20)\d\d", before):
            found[-1] = (found[-1][0], found[-1][1], piece[2])
            continue
        if word.startswith("in ") and before in (
            "last",
            "this",
            "next",
            "early",
            "mid",
            "late",
            "since",
            "until",
        ):
            word = word[3:]
        if word == "ago>":
            word = ","
        found.append((word, piece[1], piece[2]))
    return found
