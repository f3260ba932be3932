"""How much one sentence is another in other words: shared words by their stems, and signs of scripts that set
no spaces by twos and threes.

A second net only: who may say something somewhere is decided by where it comes from. What shares few words
with its source, or stands in another language, is not recognised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from unicodedata import category, normalize

from ua_memory.grounding.terms import terms

LIKE = {4: 0.5, 3: 0.6}
"""So many words shared, and the share of the shorter one's words from which two sentences say the same; fewer
are shared by chance. Of 666 pairs of one bank's notes on one project none does."""
_ALIKE = str.maketrans("асԁеһіјорԛѕуѵх", "acdehijopqsyvx")
"""Small letters of other scripts that cannot be told from Latin ones."""
_ENDS = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n")
_WORD = re.compile(r"\w+")
_PAIRED = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\uac00-\ud7ff"
_KANA = "\u3041-\u309f"
_TRIPLED = "\u0e01-\u0e59\u0e81-\u0edf\u1000-\u109f\u1780-\u17e9"
_RUN = re.compile(rf"(?P<two>[{_PAIRED}]+)|(?P<three>[{_TRIPLED}]+)|[^\W{_PAIRED}{_TRIPLED}{_KANA}]+")
"""Chinese and Korean by twos, Thai, Lao, Burmese and Khmer by threes; katakana stand as words, and hiragana,
which bind them, are passed over."""
_THING = re.compile(
    r"\b[a-z][a-z0-9+.-]*://[^\s<>\"'`)\]]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?<![\w-])--?[a-z][\w-]*|"
    r"(?<![\w/])[~.]{0,2}/?(?:[\w.@+-]+/)+[\w.@+-]*|(?<![\w/.])\.?\w[\w-]*(?:\.[\w-]+)*\.[a-z]\w{1,13}\b",
    re.IGNORECASE,
)


def plain(text: str) -> str:
    """A text as it reads: letter case, letters without width and those that only look different aside."""
    seen = "".join(sign for sign in normalize("NFKC", text) if category(sign) not in ("Cf", "Mn"))
    return seen.casefold().translate(_ALIKE)


def flat(text: str) -> str:
    """The words alone, a blank on either side, so that neither marks nor markdown hide them."""
    return f" {' '.join(_WORD.findall(plain(text)))} "


def sentences(text: str) -> list[str]:
    """The sentences of a text, and its lines, that have any words."""
    return [one for one in _ENDS.split(normalize("NFC", text)) if _WORD.search(one)]


def units(text: str) -> frozenset[str]:
    """What of a text is compared: the stems of its words, pairs or triples of signs without spaces."""
    return frozenset(_units(plain(text)))


def _units(text: str) -> Iterator[str]:
    for run in _RUN.finditer(text):
        size = 2 if run["two"] else 3 if run["three"] else 0
        if size:
            yield from (run[0][at : at + size] for at in range(max(1, len(run[0]) - size + 1)))
        else:
            yield from terms(run[0])


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of the shorter one's words that both have; 0 where that is not enough to say the same."""
    shared = len(one & other)
    least = LIKE.get(min(shared, max(LIKE)))
    share = shared / min(len(one), len(other)) if least else 0.0
    return share if least and share >= least else 0.0


def within(sentence: str, text: str) -> bool:
    """Whether a flat text has all words of a flat sentence in their order; without spaces, its signs."""
    bare = sentence.strip()
    return (sentence if " " in bare or bare.isascii() else bare) in text


def things(text: str) -> frozenset[str]:
    """What is not said by chance: addresses, paths, names of files and hosts, the flags of commands."""
    return frozenset(one.rstrip(".,;:!?/") for one in _THING.findall(plain(text)))


def names(text: str, thing: str) -> bool:
    """Whether a text, as `plain` gives it, has a thing as a whole."""
    return thing in text and re.search(rf"(?<![\w-]){re.escape(thing)}(?!\w)", text) is not None
