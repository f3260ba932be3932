"""The words two sentences are compared by."""

from __future__ import annotations

import re

_WORD = re.compile(r"[^\W_]+")
_LIGHT_WORDS = """
    a about after again all also an and any are as at be because been but by can could did do does for
    from had has have had he her his how i if in into is it its just let me more my need no not now of
    off on one only or our out over she should so some than that the their them then there these they
    this those to too up us was we were what when where which while who will with would you your
"""
_LIGHT = frozenset(_LIGHT_WORDS.split())

UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]"
)
"""A character of a script that puts no space between words: each is compared."""


def terms(text: str) -> frozenset[str]:
    """The words of a text that carry meaning, endings cut, for comparing it with another."""
    words = (word.casefold() for word in _WORD.findall(text))
    return frozenset(_stem(word) for word in words if word not in _LIGHT)


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
