"""Whether a statement says about what its evidence says: a sentence of ordinary words names nothing, and may
still be made up from its first word to its last.

Measured in November 2026 on 76 rewordings of turns of real talks, most of them free, and on 213 sentences
that a small model said about such turns. Of the rewordings three are refused. Of what the model said the
names and numbers leave 72, and this 29, most of them the turn's own words in a frame ("the text says …").
What lies in the words that were said, or leaves out their "not", it cannot tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ua_memory.grounding.terms import UNSPACED, terms

_SHARE, _MORE = 1 / 3, 2
"""The part of its words that a text must share, and how many more than these it may have of its own: a short
rewording is free, a long one is not."""
_WHO = terms("user person agent assistant owner speaker says said tells told asks wants yes ok ll re ve")
"""Who speaks is told by the turn, not by its words, and that he does so says nothing."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_SHORTEST, _FEW = 4, 4


def supported(text: str, evidence: Sequence[str], asked: str = "") -> bool:
    """Whether of the words that a text has beside the little ones enough stand in its evidence, in some form:
    a third of them, and in a long text nearly half; so too of each longer sentence of it.

    Those of the question that was `asked` prove nothing either way, nor do numbers, which are claims of their
    own. A text that has nothing else ("No, no.") says nothing, unless it was asked for.
    """
    there = _terms(evidence)
    stems = {_stem(word) for word in there}
    begun = {word[:end] for word in there for end in range(_SHORTEST, len(word) + 1)}

    def stands(word: str) -> bool:
        beginnings = (word[:end] for end in range(_SHORTEST, len(word)))
        return word in there or _stem(word) in begun or any(each in stems for each in beginnings)

    apart = _terms([asked]) | _WHO
    if not asked and not _terms([text]) - apart:
        return False
    for number, part in enumerate((text, *_SENTENCE_END.split(text))):
        own = {word for word in _terms([part]) - apart if not word.isdigit()}
        shared = sum(map(stands, own))
        enough = shared >= _SHARE * len(own) and len(own) - shared <= shared + _MORE
        if not enough and (number == 0 or len(own) > _FEW):
            return False
    return True


def _terms(pieces: Iterable[str]) -> set[str]:
    text = "\n".join(pieces)
    spaced = (word for word in terms(UNSPACED.sub(" ", text)) if len(word) > 1)  # the m of I'm says nothing
    return {*UNSPACED.findall(text), *spaced}


def _stem(word: str) -> str:
    """What the forms of a word have in common: all but two letters."""
    return word[: max(_SHORTEST, len(word) - 2)]
