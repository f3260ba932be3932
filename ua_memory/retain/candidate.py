"""What a flush proposes to keep, before it becomes a fact: by a model or by extraction, in one shape."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

CandidateKind = Literal["world", "experience", "preference"]
Speaker = Literal["person", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One statement worth keeping, with the words it was drawn from.

    `text` is one line. `quote` is verbatim in the turn `turn`, white space aside. `when` is the ISO day that
    the statement is about, None if that is the day it was said, or if it names none or several. `at` is when
    the turn was said, where its client wrote that down. `score` orders candidates of one flush and means
    nothing across flushes; `reason` says in words what the statement was kept for. `seen` are further turns
    that said the same.
    """

    text: str
    kind: CandidateKind
    who: Speaker
    when: str | None
    entities: tuple[str, ...]
    tags: tuple[str, ...]
    quote: str
    turn: str
    at: datetime | None
    score: float
    reason: str
    seen: tuple[str, ...] = ()


def one_line(text: str) -> str:
    """White space made single spaces."""
    return " ".join(text.split())


def as_name(text: str) -> str:
    """A name as a link can hold it."""
    return one_line(re.sub(r"[\[\]|#^]", " ", text))
