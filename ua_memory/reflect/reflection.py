"""The values of a reflection: how much it may take, what it is asked, what it answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ua_memory.llm import Usage
from ua_memory.opinions import Changed
from ua_memory.records import Opinion
from ua_memory.reflect.evidence import LAYERS, Layer, Piece
from ua_memory.reflect.judging import level
from ua_memory.reflect.shaped import Shape

DONT_KNOW = "I don't know: memory has nothing on this."
UNPROVEN = "I don't know: nothing of the model's answer stands in what it cites."


@dataclass(frozen=True, slots=True)
class Size:
    """What one reflection may take: turns; hits of each layer, and tokens of them (`room`); tokens of the
    answer; and tokens sent and received in all, from which on it must answer with what it has (`spend`)."""

    turns: int
    models: int
    observations: int
    facts: int
    room: int
    answer: int
    spend: int


SIZES: Mapping[str, Size] = {
    "low": Size(4, 2, 6, 8, 800, 500, 20_000),
    "mid": Size(8, 3, 10, 16, 2000, 1000, 60_000),
    "high": Size(16, 4, 16, 30, 5000, 2000, 200_000),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the path: what was done (`search_facts`, `read`, `answer`, …), of what, how many pieces
    that brought and their tokens. `said` is why it was refused; `by` is `ours` for what was asked before the
    model came."""

    what: str
    asked: str
    found: int = 0
    tokens: int = 0
    by: str = "model"
    said: str = ""


@dataclass(frozen=True, slots=True)
class Reflection:
    """An answer, and everything it rests on.

    `text` is '' without a model, whose name is `model`. `evidence` is all that was found, in the order of
    the layers; `citations` are those of it that the text cites, numbered 1, 2, … as they come in it.
    `confidence` is from 0 to 1, and at most what the citations can bear. `structured` is what a schema asked
    for. `opinions` were formed, revised or dropped. `notes` say what was cut out of the answer and why.
    """

    question: str
    text: str = ""
    answered: bool = False
    confidence: float = 0.0
    citations: tuple[Piece, ...] = ()
    evidence: tuple[Piece, ...] = ()
    path: tuple[Step, ...] = ()
    model: str = ""
    structured: Any = None
    opinions: tuple[Changed, ...] = ()
    notes: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)

    @property
    def level(self) -> str:
        """The confidence in a word."""
        return level(self.confidence)

    @property
    def based_on(self) -> dict[Layer, tuple[Piece, ...]]:
        """What the answer cites, by layer; without a model all that was found."""
        chosen = self.citations if self.model else self.evidence
        return {layer: tuple(one for one in chosen if one.layer == layer) for layer in LAYERS}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and how it is to be answered. `there` are opinions on the matter, `all_opinions` those that
    hold at all; `keep` says that opinions may be formed."""

    question: str
    size: Size
    context: str = ""
    shape: Shape | None = None
    keep: bool = False
    there: tuple[Opinion, ...] = ()
    all_opinions: tuple[Opinion, ...] = ()


def in_order(pieces: Iterable[Piece]) -> list[Piece]:
    """The pieces by layer, from above, and by number."""
    rank = {layer: number for number, layer in enumerate(LAYERS)}
    return sorted(pieces, key=lambda piece: (rank[piece.layer], piece.number))
