"""`ua-memory directives`: the hard rules of reflect, in ua-memory.toml."""

from __future__ import annotations

from typing import Annotated

import typer

from ua_memory.cli import context, verbs

directives_app = verbs.new(no_args_is_help=True, help="The hard rules of reflect, in ua-memory.toml.")


Rule = Annotated[list[str], typer.Argument(metavar="RULE...", help="One rule.", show_default=False)]
Number = Annotated[int, typer.Argument(metavar="N", help="Its number in the list.", show_default=False)]


@directives_app.command("list", cls=verbs.Verb)
def directives_list(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """List the rules, with the mission and the disposition."""
    from ua_memory.cli.format import Screen, emit

    with context.opened(ctx) as (call, memory):
        config = memory.config
        traits = {name: getattr(config, name) for name in ("skepticism", "literalism", "empathy")}
        if call.as_json:
            emit(
                call,
                {"directives": list(config.directives), "mission": config.mission, "disposition": traits},
            )
            return
        screen = Screen(call)
        if not config.directives:
            screen.line('No directives. Add one: ua-memory directives create "Never name a customer."')
        for number, rule in enumerate(config.directives, 1):
            screen.item([(f"{number:>2}. ", "strong")], rule)
        screen.line()
        screen.line(("Mission: ", "faint"), config.mission or ("not set", "faint"))
        screen.line(
            ("Disposition: ", "faint"), ", ".join(f"{name} {level}" for name, level in traits.items())
        )


@directives_app.command("create", cls=verbs.Verb)
def directives_create(
    ctx: typer.Context,
    rule: Rule,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Add a rule at the end.

    It binds reflect from the next question on. Comments and all else in ua-memory.toml stay.
    """
    from ua_memory.cli.format import Screen, commit, emit, outcome
    from ua_memory.cli.origin import is_person

    with context.opened(ctx) as (call, memory):
        rules, result = memory.direct(" ".join(rule), by_person=is_person(call))
        if call.as_json:
            emit(call, {"directives": list(rules), "added": rules[-1], "revision": result.revision,
                        "redacted": dict(result.redacted), "notes": list(result.notes)})  # fmt: skip
            return
        Screen(call).line(f"Added {len(rules)}. {rules[-1]} (", commit(result.revision), ")")
        outcome(call, result)


@directives_app.command("get", cls=verbs.Verb)
def directives_get(
    ctx: typer.Context, number: Number, as_json: verbs.Json = False, bank: verbs.Bank = None
) -> None:
    """Read one rule."""
    from ua_memory.cli.format import Screen, emit

    with context.opened(ctx) as (call, memory):
        rule = memory.directive(number)
        if call.as_json:
            emit(call, {"number": number, "directive": rule})
        else:
            Screen(call).line(rule)


@directives_app.command("update", cls=verbs.Verb)
def directives_update(
    ctx: typer.Context, number: Number, rule: Rule, as_json: verbs.Json = False, bank: verbs.Bank = None
) -> None:
    """Put another rule in the place of one."""
    from ua_memory.cli.format import Screen, commit, emit, outcome
    from ua_memory.cli.origin import is_person

    with context.opened(ctx) as (call, memory):
        rules, result = memory.redirect(number, " ".join(rule), by_person=is_person(call))
        if call.as_json:
            emit(call, {"directives": list(rules), "changed": rules[number - 1], "revision": result.revision,
                        "redacted": dict(result.redacted), "notes": list(result.notes)})  # fmt: skip
            return
        Screen(call).line(f"Changed {number}. {rules[number - 1]} (", commit(result.revision), ")")
        outcome(call, result)


@directives_app.command("delete", cls=verbs.Verb)
def directives_delete(
    ctx: typer.Context,
    number: Number,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Take a rule out."""
    from ua_memory.cli.format import Screen, commit, emit, outcome
    from ua_memory.cli.origin import is_person

    with context.opened(ctx) as (call, memory):
        gone, result = memory.undirect(number, by_person=is_person(call))
        if call.as_json:
            emit(call, {"removed": gone, "directives": list(memory.config.directives),
                        "revision": result.revision, "notes": list(result.notes)})  # fmt: skip
            return
        Screen(call).line(f"Removed {number}. {gone} (", commit(result.revision), ")")
        outcome(call, result)
