"""Talk in a file: who says an item, and which turns are embedded together.

A turn of a talk leans on those before it ("Yes, last Tuesday!"). Turns that stand together go through the
model together, and each then takes its own tokens' states out ("late chunking", Günther et al. 2024,
arXiv 2409.04701): the same number of tokens, hence of seconds, as one at a time. Facts that are no talk
are embedded alone: among unrelated neighbours this costs three points of R@10.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

RUN = 600
"""Characters of a run, some 130 tokens: the model was trained on texts of up to 128."""

_LABEL = re.compile(r"(\*\*|__)?([^\W\d_][^*:\n]{0,39}?)(?(1)(?:\1:|:\1)|:)(?:\s|$)")
_ASKS = re.compile(r"\?[^?]{0,24}$")
_NOTE = re.compile(r"\s*\[[^\]]*\]\s*$")


def label(text: str) -> str:
    """The `Name` of a text that begins with `Name:` or `**Name**:`, of at most three words; else ''."""
    found = _LABEL.match(text)
    name = found[2].strip() if found else ""
    return name if len(name.split()) <= 3 else ""


def speakers(texts: Sequence[str]) -> list[str]:
    """Who says each of a file's texts, '' for nobody. Who speaks once only is a heading, not a speaker."""
    labels = [label(text) for text in texts]
    often = Counter(labels)
    return [name if name and often[name] > 1 else "" for name in labels]


def runs(turns: Sequence[tuple[str, str, str | None, str]]) -> Iterator[tuple[int, int]]:
    """(start, end) of the runs of a file's (speaker, heading, session, text); what is no talk is alone."""
    start, size = 0, 0
    for number, (speaker, heading, session, text) in enumerate(turns):
        if number > start:
            first = turns[start]
            together = speaker and first[0] and (heading, session) == first[1:3]
            if not together or size + len(text) > RUN:
                yield start, number
                start, size = number, 0
        size += len(text)
    if turns:
        yield start, len(turns)


def led(heading: str, text: str) -> str:
    """A text as it is embedded when it stands alone: after its heading, which says what it is about.

    A heading that begins with a digit is a day or a time and says nothing of the kind.
    """
    lead = heading.rpartition(" > ")[2]
    return f"{lead}\n{text}" if lead and not lead[0].isdigit() else text


def asks(text: str) -> bool:
    """Whether a text ends in a question, a bracketed note at its end aside."""
    if "?" not in text:  # most texts: told without looking for a note, which tries every blank
        return False
    return bool(_ASKS.search(_NOTE.sub("", text) if "[" in text else text))
