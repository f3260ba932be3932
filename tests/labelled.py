"""The sentences of the shared transcripts that were labelled by hand, and how an extraction fares on them.

`data/labels.tsv` says how they were drawn and what the labels mean; the text stays in the transcripts.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ua_memory.clients.transcripts import read
from ua_memory.clients.turns import Turn
from ua_memory.retain.extract import Sentence, extract, sentences
from ua_memory.retain.subagent import Candidate
from ua_memory.text.grounding import terms

HERE = Path(__file__).parent
SESSIONS = Path(os.environ.get("UA_SHARED", HERE.parents[1] / "shared")) / "data" / "sessions"
WEIGHTS = {"P": 92 / 91, "C": 241 / 69, "N": 352 / 30, "R": 811 / 10}
"""How many sentences of the frame one of a stratum stands for."""


@dataclass(frozen=True)
class Label:
    """`good` says that it is worth keeping; stratum K are kept sentences that were labelled afterwards."""

    file: str
    turn: str
    hash: str
    stratum: str
    half: str
    good: bool

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, self.turn, self.hash


@dataclass(frozen=True)
class Measured:
    """Kept and good, kept and not good, good and not kept."""

    hits: float
    wrong: float
    missed: float

    @property
    def precision(self) -> float:
        return self.hits / ((self.hits + self.wrong) or 1)

    @property
    def recall(self) -> float:
        return self.hits / ((self.hits + self.missed) or 1)


def labels() -> list[Label]:
    lines = (HERE / "data" / "labels.tsv").read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines if line and not line.startswith("#"))
    return [
        Label(file, turn, digest, stratum, half, good == "1")
        for file, turn, digest, stratum, half, good in rows
    ]


def transcripts() -> list[Path]:
    """The shared transcripts; captured hook inputs are none."""
    return sorted(path for path in SESSIONS.rglob("*.jsonl") if path.parent.name != "samples")


def turns(path: Path) -> list[Turn]:
    with path.open("rb") as stream:
        return list(read(stream))


def words(said: Iterable[Turn]) -> int:
    return sum(len(turn.text.split()) for turn in said if turn.role != "tool")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def kept(path: Path) -> Iterator[tuple[tuple[str, str, str], bool]]:
    """Each sentence of a transcript and whether the extraction keeps it, or one that says the same."""
    said = turns(path)
    found = extract(said)
    for turn in said:
        if turn.role != "tool":
            for sentence in sentences(turn.text):
                key = (path.name, turn.id, digest(sentence.text))
                yield key, any(_holds(candidate, turn, sentence) for candidate in found)


def measure(
    given: Sequence[Label], fate: dict[tuple[str, str, str], bool], weights: dict[str, float] | None = None
) -> Measured:
    """How the labels fared; with `weights`, as an estimate for the whole frame."""
    sums = {(True, True): 0.0, (True, False): 0.0, (False, True): 0.0, (False, False): 0.0}
    for label in given:
        sums[fate[label.key], label.good] += weights[label.stratum] if weights else 1
    return Measured(sums[True, True], sums[True, False], sums[False, True])


def _holds(candidate: Candidate, turn: Turn, sentence: Sentence) -> bool:
    if candidate.turn == turn.id:
        return sentence.quote in candidate.quote
    said = terms(sentence.text)
    return turn.id in candidate.seen and len(said & terms(candidate.text)) >= 0.7 * len(said)
