"""`ua-memory pages`: knowledge pages, which are written from what memory knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Kept
    from ua_memory.records import MentalModel, Page

pages_app = verbs.new(
    no_args_is_help=True, help="Knowledge pages: you say what one tracks, memory writes it, with its sources."
)

Id = Annotated[str, typer.Argument(metavar="ID", help="The page's id: its file's name.", show_default=False)]
Name = Annotated[str | None, typer.Option(help="What it is called.", show_default=False)]
Query = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="The question it answers, and keeps answering.", show_default=False),
]
Tag = Annotated[list[str] | None, typer.Option(metavar="TAG", help="A tag; repeatable.", show_default=False)]


@pages_app.command("list", cls=verbs.Verb)
def pages_list(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """List the pages and what each tracks."""
    from ua_memory.cli.format import Screen, emit

    with context.opened(ctx) as (call, memory):
        there = memory.list_pages()
        if call.as_json:
            emit(call, {"pages": [shape(one) for one in there]})
            return
        screen = Screen(call)
        if not there:
            screen.line("No pages yet. Make one: ua-memory pages create ID --name NAME --query QUESTION")
        for one in there:
            screen.item([(one.id, "id"), "  "], (one.name, "strong"), f"  {one.source_query}")


@pages_app.command("get", cls=verbs.Verb)
def pages_get(ctx: typer.Context, id: Id, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Read a page."""
    with context.opened(ctx) as (call, memory):
        show(call, memory.get_page(id))


@pages_app.command("create", cls=verbs.Verb)
def pages_create(
    ctx: typer.Context,
    id: Id,
    query: Annotated[str, typer.Option(metavar="TEXT", help="The question it answers, and keeps answering.")],
    name: Name = None,
    tag: Tag = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Say what a page tracks.

    Its text comes with the first `pages refresh`. What you write into it yourself stays as it is.
    """
    with context.opened(ctx) as (call, memory):
        tell(call, "Created", memory.create_page(id, name or id, query, tag or (), by_person=is_person(call)))


@pages_app.command("update", cls=verbs.Verb)
def pages_update(
    ctx: typer.Context,
    id: Id,
    name: Name = None,
    query: Query = None,
    tag: Tag = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Change what a page is called or tracks.

    Another question has the next refresh write the page anew.
    """
    with context.opened(ctx) as (call, memory):
        done = memory.update_page(id, name=name, source_query=query, tags=tag, by_person=is_person(call))
        tell(call, "Changed", done)


@pages_app.command("delete", cls=verbs.Verb)
def pages_delete(ctx: typer.Context, id: Id, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Let a page go; `ua-memory undo` brings it back."""
    with context.opened(ctx) as (call, memory):
        tell(call, "Deleted", memory.delete_page(id, by_person=is_person(call)))


def is_person(call: Call) -> bool:
    from ua_memory.cli.origin import caller

    return caller(call)[0] == "person"


def show(call: Call, one: Page | MentalModel) -> None:
    """A page or a mental model: its text as it stands, after a line that says what it is."""
    from ua_memory.cli.format import Screen, emit

    if call.as_json:
        emit(call, shape(one))
    elif one.body:
        Screen(call).raw(one.body)
    else:
        Screen(call).line(f"Nothing is written yet: ua-memory pages refresh {one.id}")


def shape(one: Page | MentalModel) -> dict[str, Any]:
    """A page or a mental model as JSON; `query` is a page's."""
    from ua_memory.cli import shapes

    return {
        "id": one.id,
        "name": one.name,
        **({"query": one.source_query} if hasattr(one, "source_query") else {}),
        "tags": list(one.tags),
        "body": one.body,
        **shapes.place(one.place, None),
    }


def tell(call: Call, did: str, done: Kept) -> None:
    """What was done to a page or a mental model."""
    from ua_memory.cli.format import Screen, commit, emit, outcome

    if call.as_json:
        result = done.result
        more = {"redacted": dict(result.redacted), "notes": list(result.notes)}
        emit(call, {**shape(done.record), "revision": result.revision, **more})
        return
    place = (done.record.place.path, "path")
    Screen(call).line(
        f"{did} ", (done.record.name, "strong"), " in ", place, " (", commit(done.result.revision), ")"
    )
    outcome(call, done.result)
