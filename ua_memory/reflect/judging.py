"""An answer held against what it cites: no number that was not shown, no name or date that nobody said.

A model is told once what is wrong. What it still gets wrong then is cut out, sentence by sentence, and the
answer says so: a shorter answer that holds is worth more than a fluent one that does not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from ua_memory.grounding import supported, ungrounded
from ua_memory.grounding.terms import terms
from ua_memory.reflect.evidence import Piece

_CITED = re.compile(r"\s*\[(\d{1,4}(?:\s*[-–,;]\s*\d{1,4})*)\]")
_END = re.compile(r"(?<=[.!?。！？])[\"')\]»”]*((?:\s*\[[\d\s,;–-]+\])*)(?:\s+|$)")
_DENIAL = re.compile(
    r"\b(?:no|not|nothing|never|none|neither|nor|nobody|unknown|unclear|without)\b|n't\b", re.I
)
_MARKS = re.compile(r"^\s*(?:[-*+•]|\d+[.)]|#{1,6})\s+")
_SHARED = 0.5
"""The part of its words that an uncited sentence must share with what the rest of the answer cites."""
_MOST_LISTED = 6

LEVELS = ((0.75, "high"), (0.5, "medium"), (0.0, "low"))
"""From which number a confidence is called what."""
CAPS = (0.0, 0.7, 0.8, 0.9)
"""The most that one, two, three proofs can bear; more of them bear 0.95."""
BY_HAND = 0.9
"""What a mental model bears: its owner wrote it."""
SHAKY = 0.5
"""What an answer bears that rests on what is disputed, or on stale observations alone."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of an answer with its citations behind it, and the numbers that it cites."""

    text: str
    cites: tuple[int, ...]

    @property
    def bare(self) -> str:
        """Its words, without citations and list marks."""
        return _MARKS.sub("", _CITED.sub("", self.text)).strip()


@dataclass(frozen=True, slots=True)
class Judged:
    """What holds of an answer: `text`, the numbers it cites in their order, and what was wrong, in words for
    the model (`faults`) and as the sentences that were `cut`."""

    text: str
    cites: tuple[int, ...]
    faults: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()


def judge(
    text: str, pieces: Mapping[int, Piece], question: str, *, found: bool, checked: Collection[int]
) -> Judged:
    """Hold an answer against the pieces. `checked` are stale observations that were held against facts.

    `found` is whether it claims to have an answer: then a sentence must rest on what it cites, and one that
    cites nothing on what the others do. One that says what is missing may repeat the question.
    """
    lines = [list(sentences(line)) for line in text.strip().split("\n")]
    every = [one for line in lines for one in line]
    known = [n for n in dict.fromkeys(n for one in every for n in one.cites) if n in pieces]
    whole = [pieces[n] for n in known] if found else [*pieces.values()]
    kept, cites, faults, cut = [], dict[int, None](), [], []
    for line in lines:
        good = []
        for one in line:
            wrong = _wrong(one, pieces, whole, question, found, checked)
            faults += wrong
            if wrong and not _only_invented(one, pieces, wrong):
                cut.append(one.bare)
            else:
                good.append(with_numbers(one.text, {n: n for n in pieces}))
                cites.update(dict.fromkeys(n for n in one.cites if n in pieces))
        if good or not line:
            kept.append(" ".join(good))
    if found and not cites and not faults:
        faults.append("no sentence cites a number")
    body = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return Judged(body, tuple(cites), tuple(dict.fromkeys(faults))[:_MOST_LISTED], tuple(dict.fromkeys(cut)))


def sentences(line: str) -> Iterator[Sentence]:
    """The sentences of a line, each with the citations that stand in or behind it."""
    start = 0
    for match in _END.finditer(line):
        rest = line[match.end() :]
        if rest and not match[1] and rest[:1].islower():
            continue  # an abbreviation
        if text := line[start : match.end()].strip():
            yield Sentence(text, _numbers(text))
        start = match.end()
    if text := line[start:].strip():
        yield Sentence(text, _numbers(text))


def claimed(text: str, pieces: Sequence[Piece], beside: Sequence[str] = ()) -> tuple[str, ...]:
    """The names, numbers and dates of a text that none of the pieces has, each read on its own day."""
    words = [word for piece in pieces for word in piece.words if word]
    days = dict.fromkeys(piece.said for piece in pieces)
    missing: tuple[str, ...] | None = None
    for day in days or [""]:
        not_here = ungrounded(text, [*words, *beside], _date(day))
        missing = not_here if missing is None else tuple(claim for claim in missing if claim in not_here)
        if not missing:
            return ()
    return missing or ()


def bounded(confidence: float, pieces: Sequence[Piece], checked: Collection[int]) -> float:
    """A confidence, at most as high as what was cited can bear: how many independent proofs, whether they
    are fresh, whether anything is disputed."""
    proofs = {proof for piece in pieces for proof in piece.proofs}
    cap = CAPS[len(proofs)] if len(proofs) < len(CAPS) else 0.95
    if any(piece.layer == "models" for piece in pieces):
        cap = max(cap, BY_HAND)
    stale = [piece for piece in pieces if piece.stale]
    if any(piece.disputed for piece in pieces) or (stale and len(stale) == len(pieces)):
        cap = min(cap, SHAKY)
    return round(max(0.0, min(confidence, cap)), 2)


def level(confidence: float) -> str:
    """A confidence in a word: high, medium or low; none for nothing at all."""
    return next(word for low, word in LEVELS if confidence >= low) if confidence > 0 else "none"


def _wrong(
    one: Sentence, pieces: Mapping[int, Piece], whole: Sequence[Piece], question: str, found: bool,
    checked: Collection[int],
) -> list[str]:  # fmt: skip
    """What is wrong with a sentence, each in words for the model."""
    invented = [n for n in one.cites if n not in pieces]
    wrong = [f"nothing is numbered {', '.join(map(str, invented))}"] if invented else []
    mine = [pieces[n] for n in one.cites if n in pieces]
    denies = not found or _DENIAL.search(one.bare) is not None
    missing = claimed(one.bare, mine or whole, [question] if denies else ())
    if missing:
        where = ", ".join(f"[{piece.number}]" for piece in mine) or "nothing that you cite"
        wrong.append(
            f"“{_short(one.bare)}”: {', '.join(missing)} {'is not in ' if mine else 'is in '}{where}"
        )
    elif found and not one.cites and not denies and not _rests(one.bare, whole, question):
        wrong.append(f"“{_short(one.bare)}” cites nothing")
    elif found and mine and not denies and not supported(one.bare, _said(mine), question):
        wrong.append(
            f"“{_short(one.bare)}”: {', '.join(f'[{p.number}]' for p in mine)} have hardly a word of it"
        )
    stale = [piece.number for piece in mine if piece.stale]
    if stale and len(stale) == len(mine) and not set(stale) <= set(checked):
        wrong.append(f"[{stale[0]}] is stale: read {stale[0]} first, or cite a fact beside it")
    return wrong


def _only_invented(one: Sentence, pieces: Mapping[int, Piece], wrong: Sequence[str]) -> bool:
    """Whether nothing is wrong but one number among others that hold."""
    invented = any(n not in pieces for n in one.cites)
    return invented and len(wrong) == 1 and any(n in pieces for n in one.cites)


def _rests(text: str, pieces: Sequence[Piece], question: str) -> bool:
    mine = terms(text) - terms(question)
    said = terms(" ".join(_said(pieces)))
    return len(mine & said) >= _SHARED * len(mine)


def _said(pieces: Sequence[Piece]) -> list[str]:
    return [word for piece in pieces for word in piece.words]


def with_numbers(text: str, numbers: Mapping[int, int]) -> str:
    """The text with its citations renumbered; those that have no new number are left out."""

    def left(match: re.Match[str]) -> str:
        kept = sorted(numbers[n] for n in _spread(match[1]) if n in numbers)
        return f" [{', '.join(map(str, kept))}]" if kept else ""

    return "\n".join(_CITED.sub(left, line).strip() for line in text.split("\n"))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(n for match in _CITED.finditer(text) for n in _spread(match[1])))


def _spread(written: str) -> Iterator[int]:
    """The numbers of `2, 5-7`."""
    for part in re.split(r"[,;]", written):
        first, *last = (int(number) for number in re.findall(r"\d+", part))
        yield from range(first, min(last[-1] if last else first, first + 20) + 1)


def _date(day: str) -> date | None:
    try:
        return date.fromisoformat(day[:10])
    except ValueError:
        return None


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}…"
