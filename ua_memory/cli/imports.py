"""`ua-memory import`: what other tools remembered, into this bank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from pathlib import Path

    from ua_memory.cli.call import Call
    from ua_memory.importers import Files, Found

import_app = verbs.new()

Source = Annotated[
    Literal["sessions", "openclaw", "claude-code", "basic-memory", "markdown", "hindsight", "archive"],
    typer.Argument(
        metavar="SOURCE",
        help="sessions, openclaw, claude-code, basic-memory, markdown, hindsight or archive.",
        show_default=False,
    ),
]
From = Annotated[
    str | None,
    typer.Argument(
        metavar="PATH",
        help="The folder or file it is in; of sessions, where their clients keep them.",
        show_default=False,
    ),
]
Days = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=0, help="Of what has a day: the newest N days that the source has (7).",
        show_default=False,
    ),
]  # fmt: skip
DAYS = 7
SINCE = "30d"
Since = Annotated[
    str | None,
    typer.Option(
        metavar="DATE", help="Sessions that went on since: 30d (the default), 2w, 2026-11-21.",
        show_default=False,
    ),
]  # fmt: skip
Clients = Annotated[
    list[str] | None,
    typer.Option(
        "--client", metavar="NAME", help="Sessions of this client; may be given again.", show_default=False
    ),
]
Project = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Sessions of this project, or in this folder and below.", show_default=False
    ),
]


@import_app.command(name="import", cls=verbs.Verb)
def import_(
    ctx: typer.Context,
    source: Source,
    path: From = None,
    days: Days = None,
    everything: Annotated[bool, typer.Option("--all", help="Everything, whatever its day.")] = False,
    since: Since = None,
    client: Clients = None,
    project: Project = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what would be taken over; change nothing.")
    ] = False,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Ask FILE's queries, one a line, of the old index and of ours.",
            show_default=False,
        ),
    ] = None,
    old: Annotated[
        str | None,
        typer.Option(
            metavar="INDEX",
            help="The old index: its SQLite file, or the URL of a bank of Hindsight.",
            show_default=False,
        ),
    ] = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Take over what another tool remembered.

    Curated memory comes first, then the newest days; --all takes the rest. Text is copied as it stands, the
    source is never written, and a second run doubles nothing. It is one commit: undo takes it back. With
    --compare nothing is imported: both sides answer, of everything the source has. Of `sessions` the
    transcripts that clients keep on this machine are flushed, each as a commit. An `archive` is what `export`
    wrote: verified whole, then merged by id. See docs/import.md.
    """
    if source == "sessions":
        _refuse({"--days": days is not None, "--compare": compare, "--old": old}, source)
        _sessions(ctx, path, since, everything, tuple(client or ()), project, dry_run)
    elif source == "archive":
        given = {"--since": since, "--client": client, "--project": project, "--days": days is not None}
        _refuse({**given, "--all": everything, "--compare": compare, "--old": old}, source)
        _archive(ctx, path, dry_run)
    else:
        _refuse({"--since": since, "--client": client, "--project": project}, source)
        _remembered(
            ctx, source, path, None if everything else DAYS if days is None else days, dry_run, compare, old
        )


def _refuse(given: dict[str, Any], source: str) -> None:
    """Usage for an option that says nothing of this source."""
    from ua_memory.errors import Usage

    for option, value in given.items():
        if value:
            raise Usage(f"{option} says nothing of {source}", mend="ua-memory import --help")


def _sessions(
    ctx: typer.Context,
    path: str | None,
    since: str | None,
    everything: bool,
    clients: tuple[str, ...],
    project: str | None,
    dry_run: bool,
) -> None:
    from ua_memory.cli import bringing, surveyed
    from ua_memory.errors import Usage

    if everything and since:
        raise Usage("--all and --since contradict one another")
    with context.opened(ctx) as (call, memory):
        asked = surveyed.Asked(path, "" if everything else since or SINCE, clients, project, dry_run)
        bringing.run(call, memory, asked)


def _archive(ctx: typer.Context, path: str | None, dry_run: bool) -> None:
    from ua_memory.cli import purged
    from ua_memory.cli.sync import restored
    from ua_memory.errors import StillThere, Usage

    if path is None:
        raise Usage("there is no FILE", mend="ua-memory import archive FILE")
    with context.opened(ctx) as (call, memory):
        done = memory.restore(context.absolute(call, path), dry_run=dry_run)
        restored(call, done)
        if done.heard and not done.heard.proof.holds:
            purged.out(StillThere.exit_code)


def _remembered(
    ctx: typer.Context,
    source: str,
    path: str | None,
    days: int | None,
    dry_run: bool,
    compare: str | None,
    old: str | None,
) -> None:
    from ua_memory import importers
    from ua_memory.cli import imported
    from ua_memory.cli.format import emit
    from ua_memory.errors import Usage

    if path is None:
        raise Usage("there is no PATH", mend=f"ua-memory import {source} PATH")
    with context.opened(ctx) as (call, memory):
        root, ours = context.absolute(call, path), memory.store.bank.root
        _not_ours(root.resolve(), ours)
        files, unread = imported.files_of(root, ours, source)
        found = importers.read(source, root.resolve().name, files)
        if compare or old:
            _compare(call, found, root, files, compare, old)
            return
        done = memory.bring_in(found.within(days), dry_run=dry_run)
        if call.as_json:
            emit(call, imported.shape(done, unread))
        else:
            imported.tell(call, done, unread)


def _compare(
    call: Call, found: Found, root: Path, files: Files, queries: str | None, old: str | None
) -> None:
    from ua_memory.cli import compared, olds
    from ua_memory.cli.format import emit
    from ua_memory.errors import Usage

    if not queries:
        raise Usage("--old is for a comparison", mend="add --compare FILE, with one query a line")
    asked = compared.queries_of(call, queries)
    done = compared.compare(call, found, olds.asked(call, found, root, files, old), asked)
    emit(call, compared.shape(done)) if call.as_json else compared.tell(call, done)


def _not_ours(root: Path, ours: Path) -> None:
    from ua_memory.errors import Usage

    if ours in (root, *root.parents):
        raise Usage("this is the bank itself, which is searched as it stands", where=str(root))
