"""What a retain kept, as a person likes to read it, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ua_memory.cli import shapes
from ua_memory.cli.format import Screen, commit, count, emit, note

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Item, Priced, Retained
    from ua_memory.records import Fact

NO_MODEL = (
    "without a model the author's own sentences were taken; one would choose better and phrase them "
    "(ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for one of your own)"
)


def show(call: Call, done: Sequence[Retained], *, modelled: bool) -> None:
    """Texts that were retained."""
    if call.as_json:
        emit(call, {"retained": [shape(one) for one in done]})
        return
    for one in done:
        _one(call, one)
    if not modelled and any(one.facts and one.item.mode != "chunks" for one in done):
        note(call, NO_MODEL)


def _one(call: Call, one: Retained) -> None:
    screen = Screen(call)
    name = one.item.document_id or "The text"
    if one.repeated:
        screen.line(f"{name} was retained before: nothing changed (", commit(one.revision), ")")
        return
    if not one.item.text:
        screen.line(
            f"{name} is gone: {count(len(one.removed), 'fact')} went with it (", commit(one.revision), ")"
        )
    elif one.item.document_id and not one.read and not one.removed:
        each = "chunk costs" if one.chunks == 1 else "chunks cost"
        screen.line(f"{name} has not changed: its {one.chunks:,} {each} nothing.")
    else:
        screen.line(f"{name}: {_counted(one)} (", commit(one.revision), ")")
    if not (one.facts or one.seen_again or one.removed or one.repeated or one.by) and one.read:
        note(call, "no sentence of it weighs enough without a model; to keep it as it is: --mode chunks")
    if one.facts:
        screen.line()
        screen.line((one.path, "path"))
    for fact in one.facts:
        more = "".join(f" #{tag}" for tag in fact.tags) + (f"  ({fact.when})" if fact.when else "")
        screen.item([("  + ", "added")], fact.text, (more, "faint"), (f"  ^{fact.id}", "id"))
    for fact in one.removed:
        screen.item([("  - ", "removed")], fact.text, (f"  ^{fact.id}", "id"))
    if one.refused:
        screen.line()
        screen.line((f"Proposed by {one.by}, and not kept as proposed:", "faint"))
        for text in one.refused:
            screen.item([("  ? ", "warn")], (text, "faint"))
    for kind, number in one.redacted.items():
        note(call, f"taken out before writing: {kind}{f' ({number} times)' if number > 1 else ''}")
    for text in (*kept(one), *one.notes):
        note(call, text)


def kept(one: Retained) -> list[str]:
    """That a person's lines were left where they are."""
    lines = [f"yours, and left as it is in {one.path}: {text[:80]}" for text in one.kept]
    return lines


def _counted(one: Retained) -> str:
    of = "" if one.read == one.chunks else f", {one.read} of them new or changed"
    parts = [f"{count(one.chunks, 'chunk')}{of}"] if one.item.document_id else []
    parts += [f"kept {count(len(one.facts), 'fact')}"]
    parts += [f"{len(one.seen_again)} seen again"] if one.seen_again else []
    parts += [f"{len(one.removed)} gone"] if one.removed else []
    return ", ".join(parts)


def show_offered(call: Call, items: Sequence[Item], keys: Sequence[str], log: str) -> None:
    """Texts that were handed over."""
    if call.as_json:
        told = [
            {"key": key, **({"documentId": item.document_id} if item.document_id else {})}
            for key, item in zip(keys, items, strict=True)
        ]
        emit(call, {"offered": told, "log": log})
        return
    what = count(len(items), "text") if len(items) > 1 else items[0].document_id or "The text"
    wait = "are safe and wait" if len(items) > 1 else "is safe and waits"
    Screen(call).line(f"{what} {wait} for the model; it goes on behind, and writes to ", (log, "path"))


def show_priced(call: Call, found: Sequence[Priced]) -> None:
    """What a dry run found."""
    if call.as_json:
        emit(call, {"preview": [shape_of_priced(one) for one in found]})
        return
    screen = Screen(call)
    for one in found:
        name = one.item.document_id or "The text"
        screen.line(f"{name}: {count(one.chunks, 'chunk')}, {one.read} to be read")
        if one.facts:
            screen.line(f"{count(len(one.facts), 'fact')} would be kept without a model:")
        for fact in one.facts:
            screen.item([("  + ", "added")], fact.text, (f"  {fact.when}" if fact.when else "", "faint"))
    costs = [one.cost for one in found if one.cost]
    if costs:
        total = sum(cost.tokens for cost in costs)
        usd = None if any(cost.usd is None for cost in costs) else sum(cost.usd or 0 for cost in costs)
        price = "no price known" if usd is None else f"about ${usd:.2f}, prices of {costs[0].as_of}"
        price = "no bill: it is on this network" if usd == 0 else price
        requests = sum(cost.requests for cost in costs)
        asks = count(requests, "request")
        screen.line(f"{costs[0].model} would read about {total:,} tokens in {asks}: {price}.")


# -- JSON ----------------------------------------------------------------------------------------------


def _facts(facts: Sequence[Fact]) -> list[dict[str, Any]]:
    return [{**shapes.place(fact.place, fact.id), "text": fact.text} for fact in facts]


def shape(one: Retained) -> dict[str, Any]:
    used = one.usage
    return {
        **({"documentId": one.item.document_id} if one.item.document_id else {}),
        "path": one.path,
        "model": one.by,
        "chunks": one.chunks,
        "read": one.read,
        "repeated": one.repeated,
        "facts": _facts(one.facts),
        "seenAgain": _facts(one.seen_again),
        "removed": [{"id": fact.id, "text": fact.text} for fact in one.removed],
        "kept": list(one.kept),
        "refused": list(one.refused),
        "revision": one.revision,
        "redacted": dict(one.redacted),
        "usage": shapes.usage(used),
        "notes": list(one.notes),
    }


def shape_of_priced(one: Priced) -> dict[str, Any]:
    """What a dry run found of one text; `estimate` only where a model is configured."""
    told: dict[str, Any] = {
        **({"documentId": one.item.document_id} if one.item.document_id else {}),
        "chunks": one.chunks,
        "read": one.read,
        "facts": [{"text": f.text, **({"when": f.when} if f.when else {})} for f in one.facts],
    }
    if one.cost:
        usd = {} if one.cost.usd is None else {"usd": round(one.cost.usd, 4)}
        cost = one.cost
        told["estimate"] = {"model": cost.model, "tokens": cost.tokens, "requests": cost.requests, **usd}
    return told
