"""Keeps what nobody of the house has said out of what every session begins with (see `trust`)."""

from __future__ import annotations

import re

from ua_memory import markdown
from ua_memory.errors import Usage
from ua_memory.records import Fact
from ua_memory.statements import texts
from ua_memory.store import Store

FEWEST = 5
"""Words of a sentence that are somebody's: fewer are said by chance."""
_TELLS = re.compile(rb"(?:origin:|\xc2\xb7)[ \t]*(?:web|tool|import)\b")
_ENDS = re.compile(r"(?<=[.!?。！？])\s+|\n")
_WORD = re.compile(r"\w+")


def borrowed(store: Store, text: str, before: str = "") -> Fact | None:
    """The untrusted fact of which a sentence stands in `text`, word for word, and not in `before`; if any.

    The files are read, not the index: what came a moment ago counts. A paraphrase is not recognised.
    """
    now, was = _flat(text), _flat(before)
    for path, data in texts(store):
        if _TELLS.search(data):
            for fact in markdown.parse(data, path).of(Fact):
                if fact.untrusted and any(s in now and s not in was for s in _sentences(fact.text)):
                    return fact
    return None


def require(store: Store, text: str, before: str = "") -> None:
    """Raises Usage where `borrowed` finds a fact."""
    if found := borrowed(store, text, before):
        raise Usage(
            f"this was said by no person and no agent here, but came as {found.said_by}",
            where=f"^{found.id}" if found.id else found.place.citation,
            mend="have a person put it into core memory, or leave it out",
        )


def _sentences(text: str) -> list[str]:
    return [flat for one in _ENDS.split(text) if (flat := _flat(one)).count(" ") > FEWEST]


def _flat(text: str) -> str:
    """The words alone, so that neither case nor marks nor markdown hide them."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "
