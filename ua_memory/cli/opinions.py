"""`ua-memory opinions`: what the agent came to think, with its reasons."""

from __future__ import annotations

from typing import Annotated

import typer

from ua_memory.cli import context, verbs

opinions_app = verbs.new(no_args_is_help=True, help="What the agent came to think, with its reasons.")

Id = Annotated[str, typer.Argument(metavar="^ID", help="The opinion.", show_default=False)]


@opinions_app.command("list", cls=verbs.Verb)
def opinions_list(
    ctx: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Those that were dropped, too.")] = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """List the opinions, each with its confidence."""
    from ua_memory.cli import answers
    from ua_memory.cli.format import Screen, emit

    with context.opened(ctx) as (call, memory):
        found = memory.opinions(retired=everything)
        if call.as_json:
            emit(call, {"opinions": [answers.shape_of_opinion(one) for one in found]})
            return
        screen = Screen(call)
        if not found:
            screen.line('No opinions yet. They are formed by: ua-memory reflect --keep "…"')
        for one in found:
            answers.show_opinion(screen, one)


@opinions_app.command("show", cls=verbs.Verb, hidden=True)
@opinions_app.command("get", cls=verbs.Verb)
def opinions_get(ctx: typer.Context, block: Id, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Show one opinion and what it rests on."""
    from ua_memory.cli import answers
    from ua_memory.cli.format import Screen, emit

    with context.opened(ctx) as (call, memory):
        found = memory.opinion(block)
        if call.as_json:
            emit(call, answers.shape_of_opinion(found))
        else:
            answers.show_opinion(Screen(call), found)


@opinions_app.command("revise", cls=verbs.Verb)
def opinions_revise(
    ctx: typer.Context,
    block: Id,
    text: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT...]", help="Its new words.", show_default=False)
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(metavar="SHARE", min=0, max=1, help="From 0 to 1.", show_default=False)
    ] = None,
    because: Annotated[
        list[str] | None,
        typer.Option("--because", metavar="^ID", help="A fact that it rests on, too.", show_default=False),
    ] = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Change an opinion: its words, its confidence, its reasons.

    How it was worded before stands in the trail: ua-memory blame ^id.
    """
    from ua_memory.cli import answers
    from ua_memory.cli.format import Screen, emit, outcome
    from ua_memory.cli.origin import is_person
    from ua_memory.errors import Usage

    if not text and confidence is None and not because:
        raise Usage("nothing to change", mend='ua-memory opinions revise ^id "…" --confidence 0.6')
    with context.opened(ctx) as (call, memory):
        done = memory.opinion_revise(
            block, text=" ".join(text or ()), confidence=confidence, because=because or (),
            by_person=is_person(call),
        )  # fmt: skip
        if call.as_json:
            emit(call, answers.shape_of_change(done))
        else:
            answers.show_change(Screen(call), done)
            outcome(call, done.result)


@opinions_app.command("drop", cls=verbs.Verb)
def opinions_drop(
    ctx: typer.Context,
    block: Id,
    why: Annotated[
        list[str] | None, typer.Argument(metavar="[WHY...]", help="The reason.", show_default=False)
    ] = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Retire an opinion that holds no more.

    It stays in memory/opinions.md with the day and the reason.
    """
    from ua_memory.cli import answers
    from ua_memory.cli.format import Screen, emit, outcome
    from ua_memory.cli.origin import is_person

    with context.opened(ctx) as (call, memory):
        done = memory.opinion_drop(block, " ".join(why or ()), by_person=is_person(call))
        if call.as_json:
            emit(call, answers.shape_of_change(done))
        else:
            answers.show_change(Screen(call), done)
            outcome(call, done.result)
