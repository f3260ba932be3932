"""`ua-memory sessions`: what was said, session by session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ua_memory.cli import app, search
from ua_memory.cli.bank import set_in_bank
from ua_memory.views import flushed as views
from ua_memory.views.hits import search_shape, show_hits
from ua_memory.views.output import Screen, emit, parse_day, progress, show, show_list

if TYPE_CHECKING:
    from ua_memory.caller import Call
    from ua_memory.memory import Memory

sessions_app = app.new(no_args_is_help=True, help="What was said, session by session.")

Project = Annotated[str, typer.Option(metavar="NAME", help="Only of this project.", show_default=False)]
Since = Annotated[
    str | None,
    typer.Option(metavar="DATE", help="Begun on this day or later: 2026-11-21, 30d.", show_default=False),
]
Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A name from the list, or a session's id.", show_default=False),
]


@app.verb(sessions_app, "list")
def sessions_list(call: Call, memory: Memory, project: Project = "", since: Since = None) -> None:
    """List the sessions whose words are kept, the newest first."""
    day = parse_day(since, "--since", memory.store.now()) or ""
    found = [one for one in memory.sessions.all(project=project) if one.day >= day]
    show_list(
        call,
        "sessions",
        found,
        views.session_shape,
        views.show_session_row,
        views.no_sessions(memory.config.sessions_keep),
    )


@app.verb(sessions_app, "get")
def sessions_get(call: Call, memory: Memory, name: Name) -> None:
    """Print a session: who said what, and when."""
    show(call, memory.sessions.get(name), views.full_session_shape, views.show_session)


@app.verb(sessions_app, "search")
def sessions_search(
    call: Call,
    memory: Memory,
    query: search.Query = None,
    project: Project = "",
    since: search.Since = None,
    until: search.Until = None,
    limit: search.Limit = None,
) -> None:
    """Find what was said, by keywords and meaning."""
    tag = [f"project:{project}"] if project else None
    where = search.ScopeOptions(since=since, until=until, tag=tag, tags_match="all_strict")
    filters = where.filters(call, memory, ["session"])
    text = search.one(query)
    with progress(call, "Indexing") as tell:
        (answer,) = memory.search_many([text], limit=limit, filters=filters, progress=tell)
    if call.as_json:
        emit(call, search_shape(answer))
        return
    today, filtered = memory.store.now().date(), bool(project or since or until)
    show_hits(Screen(call), text, answer, today, explain=False, filtered=filtered)


@app.verb(sessions_app, "forget")
def sessions_forget(
    call: Call,
    memory: Memory,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a session's words: its file, and what the index holds of it. The facts of it stay."""
    found = memory.sessions.get(name)
    if not yes and not views.confirmed_session(call, found):
        return
    memory.sessions.delete(found)
    memory.refresh(vectors=False)
    show(call, found, views.deleted_session_shape, views.show_deleted_session)


@app.verb(sessions_app, "off")
def sessions_off(
    call: Call,
    memory: Memory,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Keep no more words of sessions in this bank, and delete those that are there.

    It sets sessions.keep to 0. Facts stay.
    """
    found = list(memory.sessions.all())
    if not yes and found and not views.confirmed_sessions(call, found):
        return
    set_in_bank(call, memory, "sessions.keep", False)
    for one in found:
        memory.sessions.delete(one)
    memory.refresh(vectors=False)
    show(call, found, views.sessions_off_shape, views.show_sessions_off)
