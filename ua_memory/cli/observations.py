"""`ua-memory observations`: what is believed, and on what grounds."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.cli.format import Screen
    from ua_memory.memory import Believed, Memory
    from ua_memory.records import Observation

observations_app = verbs.new(no_args_is_help=True, help="What follows from several facts, with proofs.")

Id = Annotated[str, typer.Argument(metavar="^ID", help="The observation's block id.", show_default=False)]


@observations_app.command("list", cls=verbs.Verb)
def observations_list(
    ctx: typer.Context,
    stale: Annotated[
        bool, typer.Option("--stale", help="Only those whose facts changed, or are old.")
    ] = False,
    scope: Annotated[
        str | None, typer.Option(metavar="SCOPE", help="Only those of this scope.", show_default=False)
    ] = None,
    retired: Annotated[bool, typer.Option("--retired", help="Those that hold no more.")] = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """List the observations that hold, file by file."""
    from ua_memory.cli.format import Screen, emit

    with context.opened(ctx) as (call, memory):
        found = memory.observations(scope=scope, stale=stale, retired=retired)
        if call.as_json:
            emit(call, {"observations": [told(one) for one in found]})
            return
        screen = Screen(call)
        if not found:
            any_stale = " is stale" if stale else "s yet. Make some: ua-memory consolidate"
            screen.line(f"No observation{'s of this kind' if retired or scope else any_stale}.")
        for number, (path, group) in enumerate(groupby(found, key=lambda one: one.observation.place.path)):
            if number:
                screen.line()
            screen.line((path, "path"))
            for one in group:
                _line(screen, one)


def _line(screen: Screen, one: Believed) -> None:
    from ua_memory.cli.format import count

    each = one.observation
    days = f", last {each.last}" if each.last else ""
    more = f"  {one.trend or 'undated'}, {count(len(each.proofs), 'proof')}{days}"
    name = [(f"  ^{each.id}", "id")] if each.id else []
    screen.item([("  - ", "faint")], each.text, (more, "faint"), *name)
    for why in (each.retired and f"retired: {each.retired}", *one.freshness.why):
        if why:
            screen.item("    ", (why, "warn"))


@observations_app.command("show", cls=verbs.Verb, hidden=True)
@observations_app.command("get", cls=verbs.Verb)
def observations_get(
    ctx: typer.Context, block: Id, as_json: verbs.Json = False, bank: verbs.Bank = None
) -> None:
    """Show one with its proofs, its former wordings, and how fresh it is."""
    from ua_memory.cli.format import emit

    with context.opened(ctx) as (call, memory):
        one = memory.observation(block)
        if call.as_json:
            emit(call, told(one))
        else:
            _show(call, memory, one)


def _show(call: Call, memory: Memory, one: Believed) -> None:
    from ua_memory.cli.format import Screen, count

    screen, each = Screen(call), one.observation
    screen.line((each.text, "strong"))
    screen.line((each.place.citation, "path"), (f"  ^{each.id}" if each.id else "", "id"))
    span = f"{each.since} to {each.last}" if each.since != each.last else str(each.since)
    said = [("Rests on", f"{count(len(each.proofs), 'proof')}, {span if each.since else 'undated'}")]
    said += [("Trend", one.trend)] if one.trend else []
    said += [("Scope", each.scope)] if each.scope else []
    said += [("Retired", each.retired)] if each.retired else []
    said += [("Fresh", "\n".join(one.freshness.why) or "yes")]
    screen.rows([[(name, "strong"), text] for name, text in said])
    for proof in each.proofs:
        screen.item(
            [("  “", "faint")], proof.quote or "…", ("”  ", "faint"), (f"[[{proof.file}#^{proof.id}]]", "id")
        )
    for was in each.was:
        screen.item([("  was ", "faint")], was.text, (f"  until {was.until}", "faint"))


@observations_app.command("retire", cls=verbs.Verb)
def observations_retire(
    ctx: typer.Context,
    block: Id,
    because: Annotated[str, typer.Option("--because", metavar="TEXT", help="Why it holds no more.")],
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Say that one does not hold any more, and why. It stays in its file."""
    from ua_memory.cli.format import Screen, commit, emit, outcome
    from ua_memory.cli.origin import is_person

    with context.opened(ctx) as (call, memory):
        after, result = memory.retire_observation(block, because, by_person=is_person(call))
        if call.as_json:
            emit(call, {**shape(after), "revision": result.revision})
            return
        Screen(call).line(f"Retired: {after.text} (", commit(result.revision), ")")
        outcome(call, result)


def shape(one: Observation) -> dict[str, Any]:
    """An observation as JSON: what its lines say."""
    from ua_memory.cli import shapes

    known = {
        "since": one.since, "last": one.last, "scope": one.scope, "retired": one.retired,
        "entities": list(one.entities), "tags": list(one.tags),
        "was": [{"text": was.text, "until": was.until} for was in one.was],
    }  # fmt: skip
    return {
        **shapes.place(one.place, one.id),
        "text": one.text,
        "proofs": [{"file": each.file, "id": each.id, "quote": each.quote} for each in one.proofs],
        **shapes.without_empty(known),
    }


def told(one: Believed) -> dict[str, Any]:
    """An observation with its trend today, and how fresh it is."""
    return {
        **shape(one.observation), "trend": one.trend, "fresh": not one.freshness.stale,
        "why": list(one.freshness.why),
    }  # fmt: skip
