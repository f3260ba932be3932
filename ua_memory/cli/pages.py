"""`ua-memory pages`: knowledge pages, which are written from what memory knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs
from ua_memory.cli.origin import is_person

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Kept, Price, Refreshed
    from ua_memory.records import MentalModel, Page

pages_app = verbs.new(
    no_args_is_help=True, help="Knowledge pages: you say what one tracks, memory writes it, with its sources."
)

Id = Annotated[str, typer.Argument(metavar="ID", help="The page's id: its file's name.", show_default=False)]
Name = Annotated[str | None, typer.Option(help="What it is called.", show_default=False)]
Query = Annotated[
    str | None,
    typer.Option(
        "--query",
        "--source-query",
        metavar="TEXT",
        help="The question it answers, and keeps answering.",
        show_default=False,
    ),
]
Tag = Annotated[list[str] | None, typer.Option(metavar="TAG", help="A tag; repeatable.", show_default=False)]


@pages_app.command("list", cls=verbs.Verb)
def pages_list(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """List the pages, what each tracks, and whether it is out of date."""
    from ua_memory.cli import refreshed
    from ua_memory.cli.format import Screen, emit, note

    with context.opened(ctx) as (call, memory):
        there = [(one, memory.staleness(one.id)) for one in memory.list_pages()]
        notes = dict.fromkeys(said for _, why in there for said in why.notes)
        if call.as_json:
            told = [{**shape(one), "stale": refreshed.stale(why)} for one, why in there]
            emit(call, {"pages": told, "notes": list(notes)})
            return
        screen = Screen(call)
        if not there:
            screen.line("No pages yet. Make one: ua-memory pages create ID --query QUESTION")
        for one, why in there:
            state: list[Any] = [(f"stale: {why}", "warn")] if why else [("up to date", "good")]
            screen.item([(one.id, "id"), "  "], (one.name, "strong"), f"  {one.source_query}  ", *state)
        for said in notes:
            note(call, said)


@pages_app.command("get", cls=verbs.Verb)
def pages_get(ctx: typer.Context, id: Id, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Read a page."""
    with context.opened(ctx) as (call, memory):
        show(call, memory.get_page(id))


@pages_app.command("create", cls=verbs.Verb)
def pages_create(
    ctx: typer.Context,
    id: Id,
    query: Annotated[
        str,
        typer.Option(
            "--query", "--source-query", metavar="TEXT", help="The question it answers, and keeps answering."
        ),
    ],
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


@pages_app.command("refresh", cls=verbs.Verb)
def pages_refresh(
    ctx: typer.Context,
    id: Annotated[
        list[str] | None, typer.Argument(metavar="[ID...]", help="Only these.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All pages; those that are not stale say so.")] = False,
    stale: Annotated[bool, typer.Option("--stale", help="All pages that are stale.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Write them anew, stale or not.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would change; a model is asked, price told.")
    ] = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Bring pages up to date.

    Nothing is asked or written where nothing has changed. Paragraphs of yours stay as they are, and are
    remembered. Without a model (ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL) a page lists what facts say.
    """
    from ua_memory.cli import refreshed
    from ua_memory.cli.format import Screen, emit, note
    from ua_memory.errors import Usage

    if bool(id) + every + stale != 1:
        raise Usage("which pages?", mend="name them, or use --stale or --all")
    done: list[Refreshed] = []
    shapes: list[dict[str, Any]] = []
    prices: list[Price] = []
    with context.opened(ctx) as (call, memory):
        model = call.endpoint

        def tell(price: Price) -> None:
            prices.append(price)
            refreshed.told_price(call, price)

        def show_one(one: Refreshed) -> None:
            done.append(one)
            shapes.append(refreshed.shape(one, prices.pop() if prices else None))
            if not call.as_json:
                refreshed.show(call, one)

        chosen: dict[str, Any] = {"model": model, "full": full, "dry_run": dry_run}
        chosen |= {"tell": tell if dry_run else None}
        try:
            for one in id or ():
                show_one(memory.refresh_page(one, **chosen))
            if not id:
                memory.refresh_stale(every=every, done=show_one, **chosen)
        finally:  # what was written before another one failed is told in any case
            if call.as_json and done:
                emit(call, {"pages": shapes})
        if call.as_json and not done:
            emit(call, {"pages": []})
        elif not done:
            Screen(call).line("No page is stale.")
        elif not model and any(one.diff for one in done):
            note(call, refreshed.NO_MODEL)


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
