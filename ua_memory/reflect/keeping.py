"""The opinions that a reflection proposes: held against what it found, and written in one revision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from ua_memory import opinions
from ua_memory.opinions import Changed
from ua_memory.records import Fact, Kind, Observation, Opinion
from ua_memory.reflect.evidence import Piece
from ua_memory.reflect.judging import bounded, claimed
from ua_memory.store import Result, Store

SCHEMA: Mapping[str, Any] = {
    "type": "array",
    "maxItems": 3,
    "description": "What you think of this now, where memory bears it out. May be empty.",
    "items": {
        "type": "object",
        "properties": {
            "change": {"type": "string", "enum": ["form", "revise", "drop"]},
            "id": {"type": "string", "description": "Of the opinion to revise or drop, like ^k7m2q9x4tb."},
            "text": {"type": "string", "maxLength": 500, "description": "One plain sentence."},
            "kind": {"type": "string", "enum": list(opinions.KINDS)},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "because": {"type": "array", "items": {"type": "integer"}, "maxItems": 8},
            "why": {"type": "string", "maxLength": 200, "description": "Why it is revised or dropped."},
        },
        "required": ["change"],
    },
}
assert set(opinions.KINDS) <= set(get_args(Kind))


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change that holds: what is to be done, to which opinion (None: a new one), and what bears it."""

    change: str
    before: Opinion | None
    text: str
    kind: Kind | None
    confidence: float | None
    because: tuple[Piece, ...]
    why: str


def weigh(
    given: Sequence[Mapping[str, Any]], pieces: Mapping[int, Piece], there: Sequence[Opinion],
    everything: Sequence[Opinion], question: str,
) -> tuple[list[Proposal], list[str]]:  # fmt: skip
    """(what may be written, what is wrong with the rest, in words for the model). `there` are the opinions it
    was shown and may change, `everything` those that hold at all, which must not be said twice. An opinion
    goes beyond what it rests on, but names nothing that neither the pieces nor the question name."""
    fine: list[Proposal] = []
    wrong: list[str] = []
    for one in given:
        proposal, fault = _weighed(one, pieces, there)
        if proposal is not None and not fault and proposal.change != "drop":
            fault = _fault(proposal, everything, pieces, question)
        if proposal is not None and not fault:
            fine.append(proposal)
        else:
            wrong.append(f"opinion “{str(one.get('text') or one.get('id', ''))[:60]}”: {fault}")
    return fine, wrong


def _weighed(
    one: Mapping[str, Any], pieces: Mapping[int, Piece], there: Sequence[Opinion]
) -> tuple[Proposal | None, str]:
    change, block = one["change"], str(one.get("id", "")).strip().removeprefix("^")
    before = next((each for each in there if block and each.id == block), None)
    if change != "form" and before is None:
        return None, f"there is no opinion ^{block} among those you were shown"
    if change == "drop":
        return Proposal(change, before, "", None, None, (), str(one.get("why", ""))), ""
    numbers = [n for n in one.get("because", ()) if n in pieces]
    because = tuple(pieces[n] for n in numbers if _citable(pieces[n]))
    text = " ".join(str(one.get("text", "")).split())
    share, why = _confidence(one, because), str(one.get("why", ""))
    return Proposal(change, before, text, one.get("kind"), share, because, why), ""


def _fault(one: Proposal, everything: Sequence[Opinion], pieces: Mapping[int, Piece], question: str) -> str:
    if one.change == "form" and not one.text:
        return "there is no text"
    if not one.because and (one.change == "form" or one.text):
        return "because must name facts or observations that you were shown and that are not untrusted"
    known = [question, *([one.before.text] if one.before else ())]
    if one.text and (missing := claimed(one.text, [*pieces.values()], known)):
        return f"{', '.join(missing)} is nowhere in what you were shown"
    alike = opinions.like(one.text, everything) if one.change == "form" else None
    return f"^{alike.id} says this already; revise it" if alike else ""


def _citable(piece: Piece) -> bool:
    return isinstance(piece.record, Observation | Fact) and not piece.hearsay


def _confidence(one: Mapping[str, Any], because: Sequence[Piece]) -> float | None:
    given = one.get("confidence", 0.5 if one["change"] == "form" else None)
    if given is None:
        return None
    return bounded(float(given), because, ())


def write(store: Store, proposals: Sequence[Proposal], *, question: str, door: str) -> tuple[Changed, ...]:
    """Write what was proposed, as one revision: each as it was and is."""
    if not proposals:
        return ()
    day = store.now().date().isoformat()
    done: list[tuple[Opinion | None, Opinion]] = []
    with store.revision("reflect", door=door) as draft:
        for one in proposals:
            grounds = [(p.record, "") for p in one.because if isinstance(p.record, Fact | Observation)]
            if one.before is None:
                after = opinions.form(
                    draft,
                    one.text,
                    grounds,
                    kind=one.kind or "opinion",
                    confidence=one.confidence or 0.0,
                    day=day,
                )
            elif one.change == "drop":
                after = opinions.drop(draft, one.before, one.why, day)
            else:
                after = opinions.revise(
                    draft, one.before, text=one.text, grounds=grounds, kind=one.kind,
                    confidence=one.confidence, day=day,
                )  # fmt: skip
            done.append((one.before, after))
        draft.subject = f"reflect: {_counted(done)}"
        draft.body = f"Asked: {draft.redact(' '.join(question.split()))}"
        draft.facts = [f"^{after.id}" for _, after in done]
    result: Result = draft.result
    return tuple(Changed(before, after, result) for before, after in done)


def _counted(done: Sequence[tuple[Opinion | None, Opinion]]) -> str:
    formed = sum(before is None for before, _ in done)
    dropped = sum(before is not None and bool(after.retired) for before, after in done)
    told = {"formed": formed, "revised": len(done) - formed - dropped, "dropped": dropped}
    said = ", ".join(f"{number} {word}" for word, number in told.items() if number)
    return f"{said} (memory/opinions.md)"
