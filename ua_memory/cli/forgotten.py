"""What a forgetting does, or has done: for a person, and as JSON. Once it is done, its words are not printed:
a terminal, and an agent's transcript, would keep them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ua_memory import redaction
from ua_memory.cli import shapes
from ua_memory.cli.format import Piece as Words
from ua_memory.cli.format import Screen, commit, count, emit, note, outcome
from ua_memory.records import is_generated

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Forgotten, Memory, Piece

SIGNS = {"gone": ("-", "removed"), "revised": ("~", "warn"), "left": ("?", "bad"), "near": (" ", "faint")}


def quoting(found: Forgotten) -> list[Piece]:
    """The lines of a person that have the words, and stay unless they say otherwise."""
    return [piece for piece in found.plan.left if piece.why == "quotes it"]


def preview(call: Call, memory: Memory, found: Forgotten) -> None:
    """What would go, be revised and be left, with its words."""
    if call.as_json:
        return emit(call, shape(memory, found, words=True))
    screen, plan = Screen(call), found.plan
    screen.line(("Goes, and does not come back:", "strong"))
    _pieces(screen, memory, plan.gone, "gone")
    if plan.revised:
        screen.line(("Stays, without what it took from that:", "strong"))
        _pieces(screen, memory, plan.revised, "revised")
    if plan.left:
        screen.line(("Yours, and stays as it is:", "strong"))
        _pieces(screen, memory, plan.left, "left")
    if found.near:
        screen.line(("Near, and stays (forget ^ID takes one):", "strong"))
        _pieces(screen, memory, found.near, "near")
    for one in found.waiting:
        turns = count(len(one.turns), "turn")
        screen.line(f"What waits of this session goes, too: {turns} ({one.key})")
    if found.touched:
        screen.line(f"It is taken out of what waits: {', '.join(found.touched)}")
    screen.line(("The history keeps it.", "faint"))


def _pieces(screen: Screen, memory: Memory, pieces: Sequence[Piece], kind: str) -> None:
    sign, style = SIGNS[kind]
    for piece in pieces:
        text = " ".join(_masked(memory, piece).split())
        more: list[Words] = [(f"  ^{piece.id}", "id")] if piece.id else []
        screen.item([(f"  {sign} ", style)], text, *more)
        place = f"{piece.place.path}:{piece.place.line}"
        screen.item("      ", (f"{place}  {_named(piece)}", "faint"))


def _name(piece: Piece) -> str:
    """What it is called, so that `why` and `forget --purge` know it again."""
    if piece.id and is_generated(piece.id):
        return f"^{piece.id}"
    return f"{piece.place.path}#^{piece.id}" if piece.id else f"{piece.place.path}:{piece.place.line}"


def _masked(memory: Memory, piece: Piece) -> str:
    return redaction.redact(piece.text, memory.config.redact).text


def _named(piece: Piece) -> str:
    whose = "your " if piece.by_person else ""
    return f"{whose}{piece.what}, {piece.why}"


def show(call: Call, memory: Memory, done: Forgotten, *, purging: bool = False) -> int:
    """What was done, and what the search afterwards found; the exit code. With `purging` the history goes
    next."""
    from ua_memory.errors import StillThere

    assert done.result
    if call.as_json:
        emit(call, shape(memory, done, words=False))
    else:
        _told(call, done, purging)
        for each in done.proof.found:
            note(call, f"it still stands in {each.where}")
        if done.proof.found and quoting(done):
            note(call, "your own lines were left: ua-memory forget PATH:LINE takes one out")
    return 0 if done.proof.holds else StillThere.exit_code


def _told(call: Call, done: Forgotten, purging: bool) -> None:
    screen, plan = Screen(call), done.plan
    assert done.result
    screen.line("Forgot ", _counted(plan.gone), " (", commit(done.result.revision), ")")
    for kind, pieces in (("gone", plan.gone), ("revised", plan.revised), ("left", plan.left)):
        sign, style = SIGNS[kind]
        for piece in pieces:
            name = _name(piece)
            screen.item([(f"  {sign} ", style)], (name, "id" if piece.id else "path"), f"  {_named(piece)}")
    cleared = done.cleared
    if cleared.pending or done.waiting:
        names = [*cleared.pending, *(one.key for one in done.waiting)]
        screen.line(f"Taken out of what waited: {', '.join(names)}")
    looked = ", ".join(f"{number} in {kind}" for kind, number in done.proof.looked.items())
    if done.proof.holds:
        screen.line(("Nothing of it is left", "good"), f": searched {looked}.")
    else:
        screen.line(("Not all of it is gone", "bad"), f": searched {looked}.")
    if not purging:
        screen.line(("The history keeps it; undo brings it back.", "faint"))
    more = [f"the index is made again by the next searches ({cleared.left} left)"] if cleared.left else []
    outcome(call, done.result, *more)


def _counted(pieces: Sequence[Piece]) -> str:
    counted: dict[str, int] = {}
    for piece in pieces:
        counted[piece.what] = counted.get(piece.what, 0) + 1
    plurals = {"entity": "entities"}
    parts = (count(number, what, plurals.get(what)) for what, number in counted.items())
    return ", ".join(parts) or "what waited"


def shape(memory: Memory, found: Forgotten, *, words: bool) -> dict[str, Any]:
    """As JSON; with its `words` only before it is done."""

    def pieces(given: Sequence[Piece]) -> list[dict[str, Any]]:
        return [
            {"what": piece.what, "why": piece.why, "byPerson": piece.by_person}
            | ({"text": _masked(memory, piece)} if words else {})
            | shapes.place(piece.place, piece.id)
            for piece in given
        ]

    plan = found.plan
    done: dict[str, Any] = {}
    if found.result is not None:
        proof = found.proof
        done = {
            "revision": found.result.revision,
            "notes": list(found.result.notes),
            **shapes.searched(proof),
            "cleared": {
                "pending": list(found.cleared.pending),
                "logLines": found.cleared.logs,
                "embeddings": found.cleared.embeddings,
            },
        }
    return {
        "dryRun": found.result is None,
        "gone": pieces(plan.gone),
        "revised": pieces(plan.revised),
        "left": pieces(plan.left),
        **({"near": pieces(found.near)} if words and found.near else {}),
        "waiting": [{"key": one.key, "turns": len(one.turns)} for one in found.waiting],
        "touched": list(found.touched),
        **done,
    }
