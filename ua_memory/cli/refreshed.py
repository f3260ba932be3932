"""What a refresh of a page did, as a person and as a script read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ua_memory.cli import shapes
from ua_memory.cli.format import Screen, commit, count, note

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Price, Proposal, Refreshed, Stale

NO_MODEL = (
    "without a model the page lists what facts say, in their own words; one would write it "
    "(ANTHROPIC_API_KEY, or ANTHROPIC_BASE_URL for one of your own)"
)


def told_price(call: Call, price: Price) -> None:
    """What asking will cost, before it is done."""
    cost = "no price known" if price.usd is None else f"about ${price.usd:.2f}, prices of {price.as_of}"
    cost = "no bill: it is on this network" if price.usd == 0 else cost
    note(call, f"{price.model} will read about {price.tokens:,} tokens: {cost}")


def show(call: Call, one: Refreshed) -> None:
    """One page's refresh: why, what changed as a diff, and what became of persons' words."""
    screen, page = Screen(call), one.page
    front: list[Any] = [(page.id, "id"), "  "]
    if not one.why and not one.revision and not one.diff:
        screen.item(front, "nothing has changed for it")
        for text in one.notes:
            note(call, text)
        return
    did = "would be written anew" if one.full and one.dry_run else "written anew" if one.full else "refreshed"
    did = "would be refreshed" if one.dry_run and not one.full else did
    where: list[Any] = [" (dry run)"] if one.dry_run else [" (", commit(one.revision), ")"]
    screen.item(front, f"{did}: {one.why or 'asked for'}", *where)
    if one.diff:
        screen.diff(one.diff.removesuffix("\n"))
    else:
        screen.item("  ", ("its text stays as it is", "faint"))
    for fact in one.learnt:
        block = f"  ^{fact.id}" if fact.id else ""
        screen.item([("  + ", "added")], "yours, remembered: ", fact.text, (block, "id"))
    for fact in one.flagged:
        screen.item([("  ? ", "warn")], f"memory has it otherwise: {fact.text} ", (f"({fact.flag})", "faint"))
    if one.left_out:
        screen.item(
            [("  ! ", "warn")], f"no room for {count(one.left_out, 'more fact')} (max_tokens in its header)"
        )
    _refused(screen, one.by, one.refused)
    for kind, number in one.redacted.items():
        note(call, f"taken out before writing: {kind}{f' ({number} times)' if number > 1 else ''}")
    for text in one.notes:
        note(call, text)


def _refused(screen: Screen, by: str, refused: tuple[str, ...]) -> None:
    if refused:
        screen.line((f"Proposed by {by}, and not kept as proposed, or no longer so:", "faint"))
    for text in refused:
        screen.item([("  ? ", "warn")], (text, "faint"))


def show_proposal(call: Call, one: Proposal) -> None:
    """What would be different in a mental model."""
    screen = Screen(call)
    if one.diff:
        screen.diff(one.diff.removesuffix("\n"))
        note(call, "only a proposal: nothing was written; edit the file, or: ua-memory models update")
    else:
        screen.line(f"Held against {count(one.evidence, 'fact')}: nothing to propose.")
    _refused(screen, one.by, one.refused)
    for text in one.notes:
        note(call, text)


# -- JSON ----------------------------------------------------------------------------------------------


def stale(why: Stale) -> dict[str, Any]:
    """Why a page is stale; the names are `^id`, or `path#texthash` of a line without an id."""
    return {
        "is": bool(why),
        "why": str(why),
        "new": list(why.new),
        "edited": list(why.edited),
        "gone": list(why.gone),
        "yours": why.yours,
    }


def shape(one: Refreshed, cost: Price | None) -> dict[str, Any]:
    """One page's refresh; `estimate` only where the price was told before."""
    return {
        **({"estimate": price(cost)} if cost else {}),
        "id": one.page.id,
        "path": one.page.place.path,
        "model": one.by,
        "stale": stale(one.why),
        "full": one.full,
        "dryRun": one.dry_run,
        "diff": one.diff,
        "body": one.page.body,
        "learnt": [_fact(fact) for fact in one.learnt],
        "flagged": [_fact(fact) for fact in one.flagged],
        "refused": list(one.refused),
        "leftOut": one.left_out,
        "revision": one.revision,
        "redacted": dict(one.redacted),
        "usage": shapes.usage(one.usage),
        "notes": list(one.notes),
    }


def _fact(fact: Any) -> dict[str, Any]:
    named = shapes.place(fact.place, fact.id) if fact.place.path else {}
    return {**named, "text": fact.text, **({"flag": fact.flag} if fact.flag else {})}


def proposal(one: Proposal) -> dict[str, Any]:
    """What would be different in a mental model."""
    return {
        "id": one.model.id,
        "path": one.model.place.path,
        "model": one.by,
        "diff": one.diff,
        "evidence": one.evidence,
        "refused": list(one.refused),
        "usage": shapes.usage(one.usage),
        "notes": list(one.notes),
    }


def price(one: Price) -> dict[str, Any]:
    """What asking would cost."""
    usd = {} if one.usd is None else {"usd": round(one.usd, 4)}
    return {"model": one.model, "tokens": one.tokens, **usd}
