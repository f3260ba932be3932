"""What a flush kept, as a diff a person likes to read, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import ndiff
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ua_memory.cli.format import Piece, Screen, commit, count, note
from ua_memory.money import dollars

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Estimate, Flush, Flushed, Replaced
    from ua_memory.records import Fact

NO_MODEL = (
    "without a model the speakers' own sentences were taken; one would choose better and phrase them "
    "(ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for one of your own)"
)
SHORT = 8
"""Characters of a session's id that are shown."""


def show(call: Call, one: Flushed) -> None:
    """One session's flush: what came in, then file by file what was added and changed."""
    screen = Screen(call)
    session = f" session {one.session[:SHORT]}" if one.session else ""
    screen.line(
        f"{count(one.turns, 'turn')} of {one.client}{session}: {_counted(one)} (", commit(one.revision), ")"
    )
    for path, facts in groupby(one.facts, key=lambda fact: fact.place.path):
        screen.line()
        screen.line((path, "path"))
        for fact in facts:
            _added(screen, fact)
    for each in one.core:
        _replaced(screen, each)
    if one.refused:
        screen.line()
        screen.line((f"Proposed by {one.by}, and not kept as proposed:", "faint"))
        for text in one.refused:
            screen.item([("  ? ", "warn")], (text, "faint"))
    for kind, number in one.redacted.items():
        note(call, f"taken out before writing: {kind}{f' ({number} times)' if number > 1 else ''}")
    for text in one.notes:
        note(call, text)


def conclude(call: Call, found: Flush | None, done: Sequence[Flushed], modelled: bool) -> None:
    """What there is to say at the end: why nothing happened, what was taken out, that a model does better."""
    screen = Screen(call)
    if not done and found is None:
        screen.line("Nothing waits for a flush.")
    elif not done and found is not None and (found.due or not found.notes):
        _nothing(screen, found)
    for kind, number in (found.redacted if found else {}).items():
        note(
            call, f"taken out before it was kept or sent: {kind}{f' ({number} times)' if number > 1 else ''}"
        )
    for text in found.notes if found else ():
        note(call, text)
    if done and not modelled:
        note(call, NO_MODEL)


def _nothing(screen: Screen, found: Flush) -> None:
    if found.due is None:
        screen.line("Nothing waits for a flush.")
    elif found.silent:
        screen.line("Nothing was said in it.")
    elif found.looked:
        screen.line(f"{found.due}: all of it was read by an earlier flush.")
    else:
        screen.line(f"{found.due}: nothing to do yet. Flush anyway with --force.")


def _counted(one: Flushed) -> str:
    parts = [f"kept {count(len(one.facts), 'fact')}"]
    parts += [f"{len(one.seen_again)} seen again"] if one.seen_again else []
    parts += [f"{count(len(one.core), 'core block')} changed"] if one.core else []
    return ", ".join(parts)


def _added(screen: Screen, fact: Fact) -> None:
    more: list[Piece] = [(f" #{tag}", "faint") for tag in fact.tags]
    more += [(f"  ({fact.when})", "faint")] if fact.when else []
    screen.item([("  + ", "added")], fact.text, *more, (f"  ^{fact.id}", "id"))


def _replaced(screen: Screen, one: Replaced) -> None:
    screen.line()
    screen.line((one.after.place.path, "path"), "  ", (one.after.name, "strong"))
    before = one.before.value if one.before else ""
    for row in ndiff(before.splitlines(), one.after.value.splitlines()):
        if not row.startswith("?"):
            style = {"+": "added", "-": "removed"}.get(row[0], "faint")
            screen.item([(f"  {row[:2]}", style)], (row[2:], style))


# -- a dry run -----------------------------------------------------------------------------------------


def show_preview(call: Call, found: Flush, cost: Estimate | None) -> None:
    """What would be kept without a model, and what one would cost."""
    screen = Screen(call)
    if found.preview:
        screen.line(f"{count(len(found.preview), 'fact')} would be kept without a model:")
    for each in found.preview or ():
        screen.item([("  + ", "added")], each.text, (f"  {each.at:%Y-%m-%d}" if each.at else "", "faint"))
    if found.due and not found.turns:
        _nothing(screen, found)
    elif found.due and not found.preview:
        screen.line(f"{found.due}: nothing would be kept.")
    elif not found.preview:
        screen.line("Nothing would be kept.")
    if cost:
        screen.line(costs(cost))
    for text in found.notes:
        note(call, text)


def costs(cost: Estimate) -> str:
    """What a model would take, in a sentence."""
    price = "no price known" if cost.usd is None else f"about {dollars(cost.usd)}, prices of {cost.as_of}"
    price = "no bill: it is on this network" if cost.usd == 0 else price
    return f"{cost.model} would read about {cost.tokens:,} tokens: {price}."


# -- JSON ----------------------------------------------------------------------------------------------


def shape(found: Flush | None, done: Iterable[Flushed], waiting: int) -> dict[str, Any]:
    """The result of a flush; `context`, `client` and `session` only where a transcript was given."""
    return {
        **_of_transcript(found),
        "flushed": [flushed(one) for one in done],
        "waiting": waiting,
        "redacted": dict(found.redacted) if found else {},
        "notes": list(found.notes) if found else [],
    }


def _of_transcript(found: Flush | None) -> dict[str, Any]:
    if found is None or found.due is None or found.session is None:
        return {}
    due = found.due
    return {
        "context": {
            "tokens": due.size,
            "threshold": due.threshold,
            "reported": due.reported,
            "due": due.fires,
        },
        "client": found.session.client,
        "session": found.session.session,
        "turns": found.turns,
    }


def flushed(one: Flushed) -> dict[str, Any]:
    """One session's flush."""
    from ua_memory.cli import shapes

    used = one.usage
    return {
        "client": one.client,
        "session": one.session,
        "turns": one.turns,
        "model": one.by,
        "facts": [{**shapes.place(fact.place, fact.id), "text": fact.text} for fact in one.facts],
        "seenAgain": [{**shapes.place(fact.place, fact.id), "text": fact.text} for fact in one.seen_again],
        "core": [
            {
                "name": each.after.name,
                "before": each.before.value if each.before else "",
                "value": each.after.value,
            }
            for each in one.core
        ],
        "refused": list(one.refused),
        "revision": one.revision,
        "redacted": dict(one.redacted),
        "usage": shapes.usage(used),
        "notes": list(one.notes),
    }


def shape_of_preview(found: Flush, cost: Estimate | None) -> dict[str, Any]:
    """What a dry run found; `estimate` only where a model is configured."""
    told = {
        **_of_transcript(found),
        "preview": [
            {
                "text": one.text,
                "kind": one.kind,
                "who": one.who,
                "turn": one.turn,
                "quote": one.quote,
                "entities": list(one.entities),
                "tags": list(one.tags),
                **({"when": one.when} if one.when else {}),
            }
            for one in found.preview or ()
        ],
        "redacted": dict(found.redacted),
        "notes": list(found.notes),
    }
    if cost:
        told["estimate"] = estimate(cost)
    return told


def estimate(cost: Estimate) -> dict[str, Any]:
    """What a model would take."""
    usd = {} if cost.usd is None else {"usd": round(cost.usd, 4)}
    return {"model": cost.model, "tokens": cost.tokens, "requests": cost.requests, **usd}
