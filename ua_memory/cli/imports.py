"""`ua-memory import`: what other tools remembered, into this bank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from pathlib import Path

    from ua_memory.cli.call import Call
    from ua_memory.importers import Files, Found

import_app = verbs.new()

Source = Annotated[
    Literal["openclaw", "claude-code", "basic-memory", "markdown", "hindsight"],
    typer.Argument(
        metavar="SOURCE",
        help="openclaw, claude-code, basic-memory, markdown or hindsight.",
        show_default=False,
    ),
]
From = Annotated[str, typer.Argument(metavar="PATH", help="The folder or file it is in.", show_default=False)]
Days = Annotated[
    int, typer.Option(metavar="N", min=0, help="Of what has a day: the newest N days that the source has.")
]
DAYS = 7


@import_app.command(name="import", cls=verbs.Verb)
def import_(
    ctx: typer.Context,
    source: Source,
    path: From,
    days: Days = DAYS,
    everything: Annotated[bool, typer.Option("--all", help="Everything, whatever its day.")] = False,
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
    --compare nothing is imported: both sides answer, of everything the source has. See docs/import.md.
    """
    from ua_memory import importers
    from ua_memory.cli import imported
    from ua_memory.cli.format import emit

    with context.opened(ctx) as (call, memory):
        root, ours = context.absolute(call, path), memory.store.bank.root
        _not_ours(root.resolve(), ours)
        files, unread = imported.files_of(root, ours, source)
        found = importers.read(source, root.resolve().name, files)
        if compare or old:
            _compare(call, found, root, files, compare, old)
            return
        done = memory.bring_in(found.within(None if everything else days), dry_run=dry_run)
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
