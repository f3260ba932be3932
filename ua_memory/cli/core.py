"""`ua-memory core`: the blocks of MEMORY.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Budget, CoreBlock, Replaced

core_app = verbs.new(
    no_args_is_help=True, help="Core memory: the blocks of MEMORY.md, which every session begins with."
)


@core_app.command("list", cls=verbs.Verb)
def core_list(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """List the blocks and how much of their budget they take."""
    from ua_memory.cli import shapes
    from ua_memory.cli.format import Screen, emit

    with context.opened(ctx) as (call, memory):
        whole, *each = memory.core_budgets()
        if call.as_json:
            pairs = zip(memory.core_blocks(), each, strict=True)
            emit(call, {"blocks": [_block(block, budget) for block, budget in pairs], **shapes.budget(whole)})
            return
        screen = Screen(call)
        if not each:
            screen.line("No blocks yet. Make one: ua-memory core replace NAME VALUE")
        _table(screen, [*each, whole])


def _table(screen: Any, budgets: list[Budget]) -> None:
    rows = []
    size = 10 if screen.width >= 60 else 5
    for one in budgets:
        name = (one.name, "strong") if one.name else ("all of MEMORY.md", "faint")
        used = f"{one.used:,} of {one.limit:,} tokens"
        bar = screen.bar(one.used / one.limit, size)
        rows.append([name, *bar[:-1], f"{used}" + ("  over its budget" if one.used > one.limit else "")])
    screen.rows(rows)


@core_app.command("get", cls=verbs.Verb)
def core_get(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="A block's name; else all blocks.", show_default=False)
    ] = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Read a block, or all of them."""
    from ua_memory.cli.format import Screen, emit

    with context.opened(ctx) as (call, memory):
        blocks = [memory.core_block(name)] if name is not None else memory.core_blocks()
        if call.as_json:
            budgets = {budget.name: budget for budget in memory.core_budgets()[1:]}
            shapes = [_block(block, budgets[block.name]) for block in blocks]
            emit(call, shapes[0] if name is not None else {"blocks": shapes})
        elif name is not None:
            Screen(call).raw(blocks[0].value)
        else:
            Screen(call).raw(
                "\n\n".join(f"{_heading(block)}\n\n{block.value}" for block in blocks)
            ) if blocks else None


def _heading(block: CoreBlock) -> str:
    return f"## [{block.name}]" if block.labelled else f"## {block.name}"


def _block(block: CoreBlock, budget: Budget) -> dict[str, Any]:
    from ua_memory.cli import shapes

    return {
        "name": block.name,
        "value": block.value,
        **shapes.place(block.place, None),
        **shapes.budget(budget),
    }


@core_app.command("replace", cls=verbs.Verb)
def core_replace(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="The block's name; a new one is added.", show_default=False)],
    value: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="VALUE...",
            help="Its new text; `-` or nothing reads it from standard input.",
            show_default=False,
        ),
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Refuse if the block is not this text now.", show_default=False),
    ] = None,
    session: verbs.Session = None,
    request: verbs.Request = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Replace a block's text, or add a block.

    Nothing else of the file changes. A text over its budget is refused, not cut.
    """
    from ua_memory.cli.format import emit
    from ua_memory.cli.origin import is_person, read_text

    with context.opened(ctx) as (call, memory):
        text = read_text(call, value)
        person = is_person(call)
        done = memory.core_replace(
            name, text, expect=expect, request=request, session=session, by_person=person
        )
        if call.as_json:
            emit(call, _replaced(done))
        else:
            _tell(call, done)


def _replaced(done: Replaced) -> dict[str, Any]:
    from ua_memory.cli import shapes

    return {
        "name": done.after.name,
        "value": done.after.value,
        **({"before": done.before.value} if done.before else {}),
        **shapes.place(done.after.place, None),
        "revision": done.result.revision,
        "redacted": dict(done.result.redacted),
        "warnings": list(done.warnings),
        "notes": list(done.result.notes),
    }


def _tell(call: Call, done: Replaced) -> None:
    from difflib import ndiff

    from ua_memory.cli.format import Screen, commit, outcome

    screen, block = Screen(call), done.after
    old = done.before.value if done.before else ""
    if done.before and old == block.value:
        screen.line(f"{block.name} says that already. Nothing was changed.")
        return
    place = (f"{block.place.path}:{block.place.line}", "path")
    did = "Replaced " if done.before else "Added "
    screen.line(did, (block.name, "strong"), " in ", place, " (", commit(done.result.revision), ")")
    for row in ndiff(old.splitlines(), block.value.splitlines()):
        if not row.startswith("?"):
            style = {"+": "added", "-": "removed"}.get(row[0], "faint")
            screen.item([(f"  {row[:2]}", style)], (row[2:], style))
    outcome(call, done.result, *done.warnings)
