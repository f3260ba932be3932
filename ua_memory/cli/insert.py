"""`insert` and `core`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ua_memory.caller import caller as caller_origin
from ua_memory.caller import is_person, read_text
from ua_memory.cli import app
from ua_memory.views import output
from ua_memory.views.output import Piece, Screen, commit, emit, outcome

if TYPE_CHECKING:
    from ua_memory.caller import Call
    from ua_memory.knowledge.core import BlockChange, Budget
    from ua_memory.knowledge.facts import InsertResult
    from ua_memory.memory import Memory
    from ua_memory.records import CoreBlock


# -- insert ------------------------------------------------------------------------------------------------
# `ua-memory insert`: remember one fact.


insert_app = app.new()


Text = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TEXT...", help="The fact; `-` or nothing reads standard input.", show_default=False
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="A tag; repeatable.", show_default=False),
]
Kind = Annotated[
    Literal["world", "experience", "preference"],
    typer.Option(metavar="KIND", help="world, experience or preference."),
]
When = Annotated[
    str | None, typer.Option(metavar="DATE", help="The day or time it is about, if not today: 2026-11-19.")
]
Entities = Annotated[
    list[str] | None,
    typer.Option(
        "--entity",
        metavar="NAME",
        help="Who or what it is about; repeatable.",
        show_default=False,
    ),
]
Came = Annotated[
    Literal["person", "agent", "tool", "web", "import"] | None,
    typer.Option(
        metavar="WORD",
        help="person, agent, tool, web or import (default: person at a terminal, agent for programs).",
        show_default=False,
    ),
]
Client = Annotated[
    str | None, typer.Option(metavar="NAME", help="The program it came from.", show_default=False)
]


@app.verb(insert_app)
def insert(
    call: Call,
    memory: Memory,
    text: Text = None,
    tag: Tags = None,
    kind: Kind = "world",
    when: When = None,
    entity: Entities = None,
    origin: Came = None,
    client: Client = None,
    session: app.Session = None,
    request: app.Request = None,
) -> None:
    """Remember one fact, verbatim.

    It is added to today's log and committed before the command returns. Secrets are removed first. A known
    text is not added again; today is noted as a day on which it was seen.
    """
    who, through = caller_origin(call)
    done = memory.insert(
        read_text(call, text),
        tags=tag or (),
        kind=kind,
        when=when,
        entities=entity or (),
        origin=origin or who,
        client=client or through,
        session=session,
        request=request,
    )
    emit(call, shape(done)) if call.as_json else _tell_inserted(call, done)


def shape(done: InsertResult) -> dict[str, Any]:
    return {
        **output.place(done.fact.place, done.fact.id),
        "revision": done.result.revision,
        "sighting": done.sighting,
        "repeated": done.repeated,
        "redacted": dict(done.result.redacted),
        "notes": list(done.result.notes),
    }


def _tell_inserted(call: Call, done: InsertResult) -> None:
    did = "Remembered in"
    if done.repeated:
        did = "This request was answered before:"
    elif done.sighting:
        did = "Already known:"
    fact = done.fact
    block: list[Piece] = [(f"^{fact.id}", "id"), ", "] if fact.id else []
    place: list[Piece] = (
        [(f"{fact.place.path}:{fact.place.line}", "path")] if fact.place.path else ["gone since"]
    )
    Screen(call).line(f"{did} ", *place, " (", *block, commit(done.result.revision), ")")
    outcome(call, done.result)


# -- core --------------------------------------------------------------------------------------------------
# `ua-memory core`: the blocks of MEMORY.md.


core_app = app.new(
    no_args_is_help=True, help="Core memory: the blocks of MEMORY.md, which every session begins with."
)


@app.verb(core_app, "list")
def core_list(call: Call, memory: Memory) -> None:
    """List the blocks and their share of the budget."""
    whole, *each = memory.core.budgets()
    if call.as_json:
        pairs = zip(memory.core.list(), each, strict=True)
        emit(call, {"blocks": [_block(block, budget) for block, budget in pairs], **output.budget(whole)})
        return
    screen = Screen(call)
    if not each:
        screen.line("No blocks yet. Create one: ua-memory core replace NAME VALUE")
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


@app.verb(core_app, "get")
def core_get(
    call: Call,
    memory: Memory,
    name: Annotated[
        str | None, typer.Argument(help="A block's name (default: all).", show_default=False)
    ] = None,
) -> None:
    """Read a block, or all of them."""
    blocks = [memory.core.get(name)] if name is not None else memory.core.list()
    if call.as_json:
        budgets = {budget.name: budget for budget in memory.core.budgets()[1:]}
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
    return {
        "name": block.name,
        "value": block.value,
        **output.place(block.place, None),
        **output.budget(budget),
    }


@app.verb(core_app, "replace")
def core_replace(
    call: Call,
    memory: Memory,
    name: Annotated[str, typer.Argument(help="The block's name; created if new.", show_default=False)],
    value: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="VALUE...",
            help="Its new text; `-` or nothing reads standard input.",
            show_default=False,
        ),
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Refuse unless the block has this text now.", show_default=False),
    ] = None,
    session: app.Session = None,
    request: app.Request = None,
) -> None:
    """Replace a block's text, or add a block.

    Nothing else of the file changes. A text over its budget is refused, not cut.
    """
    text = read_text(call, value)
    person = is_person(call)
    done = memory.core.replace(name, text, expect=expect, request=request, session=session, by_person=person)
    if call.as_json:
        emit(call, _replaced(done))
    else:
        _tell_core(call, done)


def _replaced(done: BlockChange) -> dict[str, Any]:
    return {
        "name": done.after.name,
        "value": done.after.value,
        **({"before": done.before.value} if done.before else {}),
        **output.place(done.after.place, None),
        "revision": done.result.revision,
        "redacted": dict(done.result.redacted),
        "warnings": list(done.warnings),
        "notes": list(done.result.notes),
    }


def _tell_core(call: Call, done: BlockChange) -> None:
    from difflib import ndiff

    screen, block = Screen(call), done.after
    old = done.before.value if done.before else ""
    if done.before and old == block.value:
        screen.line(f"{block.name} already says that. Nothing was changed.")
        return
    place = (f"{block.place.path}:{block.place.line}", "path")
    did = "Replaced " if done.before else "Added "
    screen.line(did, (block.name, "strong"), " in ", place, " (", commit(done.result.revision), ")")
    for row in ndiff(old.splitlines(), block.value.splitlines()):
        if not row.startswith("?"):
            style = {"+": "added", "-": "removed"}.get(row[0], "faint")
            screen.item([(f"  {row[:2]}", style)], (row[2:], style))
    outcome(call, done.result, *done.warnings)
