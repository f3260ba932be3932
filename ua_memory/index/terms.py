"""Text into search terms: the same cut for what is indexed and for what is asked.

SQLite's tokenizer lowers, strips accents and stems; this module decides before it what a word is.
Identifiers (`UA_TRUNCATION_THRESHOLD`, `src/foo.py`, `getUserName`) stand both in parts and whole.
Chinese, Japanese, Thai and their like have no spaces to cut at, so their runs become overlapping pairs, and
each character besides. A query is cut into plain terms before it meets FTS5, so no operator survives.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import islice

LONGEST_WORD = 100
"""Characters; what is longer is a blob, found by its beginning."""

MOST_TERMS = 2000
"""Distinct terms read of one query; a longer one was pasted by accident."""

MOST_AGAIN = 8
"""Identifiers of a query, and parts of each, that are counted."""

_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u0e01-\u0e3a\u0e40-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17e0-\u17e9"
)
"""Scripts that set no or few spaces: Chinese, Japanese, Korean, Thai, Lao, Burmese, Khmer."""
_ASCII_RUN = re.compile(r"[A-Za-z0-9]+")
_JOINED = re.compile(r"(?<![^\W_])[^\W_]++(?:[_/.\-@:\\]+[^\W_]++)+")
_SEPARATORS = re.compile(r"[\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PIECE = re.compile(r"\w+")
_QUOTED = re.compile(r'"([^"]*)"|“([^”]*)”|„([^“”]*)[“”]')

_CLITIC = re.compile(r"(?<=\w)['’](?:s|t|ll|re|ve|m|d)\b", re.IGNORECASE)
"""What English hangs onto a word: the s of "Bob's", rare in a small bank, says nothing of what is meant."""

_SMALL_WORDS = """
a about am an and any are as at be been but by can could did do does for from had has have he her
him his how i if in into is it its me my no not of on or our she should so some than that the their
them then there these they this those to us was we were what when where which who whom whose why
will with would you your
"""
STOP = frozenset(_SMALL_WORDS.split())
"""English words that say nothing about which item is meant; dropped from a query that has others."""

_SPECIAL = re.compile(rf"_|[a-z0-9][A-Z]|[A-Z][A-Z][a-z]|\w[/.\-@:\\]+\w|\w{{{LONGEST_WORD + 1}}}|\x00")
"""What makes an ASCII text more than words and what stands between them."""


class Query:
    """A query cut up: `terms` are OR-ed, each of `phrases` (its words in order) is required. `again` has an
    identifier for each of its parts: it counts as much as they do, so that it is not found by them first.

    No dataclass: a hook that opens no bank would load them for this one alone, a fifth of its time.
    """

    __slots__ = ("again", "phrases", "terms")

    def __init__(
        self, terms: tuple[str, ...], phrases: tuple[tuple[str, ...], ...] = (), again: tuple[str, ...] = ()
    ) -> None:
        self.terms, self.phrases, self.again = terms, phrases, again

    @property
    def empty(self) -> bool:
        return not self.terms and not self.phrases


def clean(text: str) -> str:
    """The text as SQLite and the tokenizer can take it: stray bytes become U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


@cache
def _run() -> re.Pattern[str]:
    """Compiled where it is needed: it takes 5 ms, and a hook whose prompt is plain ASCII has none to lose."""
    return re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")


@cache
def _cjk_run() -> re.Pattern[str]:
    return re.compile(rf"[{_CJK}]+")


def _runs(text: str) -> list[str]:
    """The runs of letters and digits in a text, those without spaces apart from the others."""
    return (_ASCII_RUN if text.isascii() else _run()).findall(text)


def _is_cjk(run: str) -> bool:
    return not run.isascii() and _cjk_run().match(run) is not None


def words(text: str) -> list[str]:
    """The words of a text in order; a CJK run of two or more characters as its overlapping pairs."""
    if text.isascii() and not _HUMP.search(text):
        return [word[:LONGEST_WORD] for word in _ASCII_RUN.findall(text.casefold())]
    found: list[str] = []
    for run in _runs(unicodedata.normalize("NFKC", text)):
        if not _is_cjk(run):
            found.extend(part[:LONGEST_WORD].casefold() for part in _HUMP.split(run))
        else:
            signs = _signs(run)
            found.extend(signs[i : i + 2] for i in range(max(len(signs) - 1, min(len(signs), 1))))
    return found


def _signs(run: str) -> str:
    """A run without the vowels and tones above and below its letters, which FTS5 takes for blanks."""
    return "".join(sign for sign in run if unicodedata.category(sign) not in ("Mn", "Mc"))


def pieces(indexed_text: str) -> frozenset[str]:
    """The different words of a text that went through `indexed`."""
    return frozenset(_PIECE.findall(indexed_text.casefold()))


def wholes(text: str) -> list[str]:
    """What is to be found besides its words: identifiers in one piece, single CJK characters."""
    text = unicodedata.normalize("NFKC", text)
    found = [whole for whole, _ in _identifiers(text)]
    for run in () if text.isascii() else _runs(text):
        if _is_cjk(run):
            found.extend(_signs(run) if len(run) > 1 else ())
    return found


def _identifiers(text: str) -> Iterator[tuple[str, str]]:
    """(an identifier as one word, as it stands), from a normal text."""
    for match in _JOINED.findall(text):
        yield _SEPARATORS.sub("_", match).casefold()[:LONGEST_WORD], match
    for run in _runs(text) if _HUMP.search(text) else ():
        if not _is_cjk(run) and _HUMP.search(run):
            yield run[:LONGEST_WORD].casefold(), run


def _again(query: str) -> Iterator[str]:
    for whole, text in islice(_identifiers(unicodedata.normalize("NFKC", query)), MOST_AGAIN):
        yield from [whole] * min(len(words(text)), MOST_AGAIN)


def indexed(text: str) -> str:
    """The text as it is handed to FTS5: its words, then its wholes, parted by blanks.

    Most lines are plain: FTS5 cuts those as we would, so they go as they are.
    """
    if text.isascii() and not _SPECIAL.search(text):
        return text
    return " ".join([*words(text), *wholes(text)])


def every_word(query: str) -> Query:
    """A query that only what contains all of its words answers, in any order: the parts of an identifier, a
    run without spaces and what is quoted each in theirs. Small words count where there are no others."""
    query = clean(query)
    quoted = ["".join(groups) for groups in _QUOTED.findall(query)]
    parts = [*quoted, *_CLITIC.sub(" ", _QUOTED.sub(" ", query)).split()]
    phrases = list(dict.fromkeys(phrase for phrase in (tuple(words(part)) for part in parts) if phrase))
    telling = [phrase for phrase in phrases if not STOP.issuperset(phrase)] or phrases
    return Query((), tuple(telling))


def read_query(query: str) -> Query:
    """Cut a query up. Never raises; an empty result means there is nothing to look for by words."""
    query = clean(query)
    phrases: list[tuple[str, ...]] = []
    for match in _QUOTED.finditer(query):
        quoted = next((group for group in match.groups() if group), "")
        phrase = tuple(words(quoted))
        if phrase and phrase not in phrases and len(phrases) < 8:
            phrases.append(phrase[:64])
    terms = list(dict.fromkeys([*words(_CLITIC.sub(" ", query)), *wholes(query)]))[:MOST_TERMS]
    # A pair of characters says more than either of them, and a single one is in every other text.
    telling = [term for term in terms if not (len(term) == 1 and _is_cjk(term))] or terms
    telling = [term for term in telling if term not in STOP] or telling
    return Query(tuple(telling), tuple(phrases), tuple(_again(query)))
