"""What core memory may take from a conversation: what its person said.

Every session begins with core memory, so an order that a page or a tool put into the assistant's mouth would
be obeyed for ever. What only an assistant's or a tool's turn says, or a search showed, may become a fact that
says whose it is. A sentence is a person's if its words are, in the main: stems are compared, so a translation
is not recognised, and a "yes" to the assistant's words does not make them the person's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ua_memory.grounding import likeness
from ua_memory.transcripts.turns import Turn

_TELLING = "always never must ignore instead without skip bypass disable force trust obey forbid allow permit"
ORDERS = likeness.units(_TELLING)
"""Words that make an order of a statement, or turn it around: a person has said them, or they stay out."""
_SPEAKERS = frozenset({"user", "person", "assistant", "agent"})
_SHORT = re.compile(r"(\w{3,})\.[a-z]{2,3}")
_CAPITAL = re.compile(r"\b[A-Z]\w*")


def is_persons(turn: Turn) -> bool:
    """Whether a turn is in a person's own words, and not a sub-agent's or a compaction's account of them."""
    return turn.role == "person" and not turn.agent and not turn.summary


def unborne(value: str, kept: Sequence[str], said: Sequence[str], others: Sequence[str]) -> str:
    """Why a sentence of `value` is not the person's, in words for the model; '' where all are.

    `kept` is what stood there, `said` the persons' turns, `others` all else that the model was shown.
    """
    ours = "\n".join((*kept, *said))
    was, here, words = likeness.flat("\n".join(kept)), likeness.flat(ours), likeness.units(ours)
    plain, theirs = likeness.plain(ours), likeness.units("\n".join(others)) - words
    for one in likeness.sentences(value):
        if likeness.within(likeness.flat(one), was):
            continue
        if why := _why(one, here, plain, words, theirs):
            return f"“{one.strip()[:80]}”: {why}"
    return ""


def _why(one: str, here: str, plain: str, words: frozenset[str], theirs: frozenset[str]) -> str:
    units = likeness.units(one) - _SPEAKERS
    if things := [each for each in likeness.things(one) if not _named(plain, each)]:
        return f"no person said {', '.join(sorted(things))}"
    if orders := (units & ORDERS) - words:
        return f"no person said {', '.join(word for word in one.split() if likeness.units(word) & orders)}"
    mine, strange = units & words, (units & theirs) - likeness.units(" ".join(_CAPITAL.findall(one)))
    if not units and not likeness.within(likeness.flat(one), here):
        return "no person said it"
    if 2 * len(strange) > len(mine) or 2 * len(mine) < len(units):
        return "no person said so in such words"
    return ""


def _named(plain: str, thing: str) -> bool:
    """Whether a thing is named there: `fly.io` also by who says Fly."""
    short = _SHORT.fullmatch(thing)
    return likeness.names(plain, thing) or (short is not None and likeness.names(plain, short[1]))
