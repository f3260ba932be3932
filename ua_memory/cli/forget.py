"""`ua-memory forget`: remove statements, and what was derived from them, and prove that they are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Forgotten, Memory

forget_app = verbs.new(no_args_is_help=True)


@forget_app.command(cls=verbs.Verb)
def forget(
    ctx: typer.Context,
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[^ID|PATH:LINE]...", help="What to forget: ids, or lines of a file.", show_default=False
        ),
    ] = None,
    query: Annotated[
        str,
        typer.Option("--query", metavar="QUERY", help="What has all of these words.", show_default=False),
    ] = "",
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="At most so many of these, the best.")
    ] = None,
    session: Annotated[
        str,
        typer.Option("--session", metavar="ID", help="All that was said in a session.", show_default=False),
    ] = "",
    entity: Annotated[
        str, typer.Option("--entity", metavar="NAME", help="All about somebody.", show_default=False)
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show exactly what would go and be revised; change nothing.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Ask nothing. Your own lines that quote it stay.")
    ] = False,
    own_lines: Annotated[
        bool, typer.Option("--own-lines", help="Take your own lines that quote it, too.")
    ] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="Out of the history, too: alone, all that was forgotten.")
    ] = False,
    backup: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where a purge puts the old history.", show_default=False),
    ] = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Remove a fact, and what was derived from it.

    It goes from the files, the index, the caches and what waits; what rests on something else, too, is
    revised. Then all of it is searched for the words. The history keeps them, and `undo` brings them back.
    A tombstone (id and salted hash) stops an import, a flush or another machine from doing so.

    With --purge the history is rewritten as well. All that it was goes into a bundle outside of the bank; the
    purge is finished when you delete that.
    """
    from ua_memory.cli import forgotten, purged

    with context.opened(ctx) as (call, memory):
        if purge and (target or not (query or session or entity)) and purged.only(memory, target or ()):
            return purged.out(purged.run(call, memory, target or (), None, backup, dry_run=dry_run, yes=yes))
        named = {"query": query, "session": session, "entity": entity, "limit": limit}
        found = memory.forget(*(target or ()), **named, dry_run=True, take=own_lines)  # type: ignore[arg-type]
        if dry_run:
            return forgotten.preview(call, memory, found)
        go, more = (True, False) if yes else _agreed(call, memory, found)
        if not go:
            return
        take = own_lines or more
        done = memory.forget(*(target or ()), **named, take=take)  # type: ignore[arg-type]
        if purge:
            return purged.out(purged.run(call, memory, (), done, backup, dry_run=False, yes=yes))
        purged.out(forgotten.show(call, memory, done))


def _agreed(call: Call, memory: Memory, found: Forgotten) -> tuple[bool, bool]:
    """Whether it is to be done, and whether a person's own lines go, too. Usage where nobody can be asked."""
    from ua_memory.cli import forgotten
    from ua_memory.cli.format import agrees, count
    from ua_memory.errors import Usage

    many = len(found.plan.asked) + len(found.waiting) > 1
    mine = forgotten.quoting(found)
    if not call.reads_terminal or call.as_json:
        if many:
            raise Usage(
                f"{count(len(found.plan.asked), 'statement')} would be forgotten",
                mend="look at them with --dry-run, then say --yes",
            )
        return True, False
    if not many and not mine:
        return True, False
    forgotten.preview(call, memory, found)
    if many and not agrees(call, f"Forget these {len(found.plan.asked)}?"):
        return False, False
    lines = f"the {len(mine)} lines of yours that quote" if len(mine) > 1 else "the line of yours that quotes"
    return True, bool(mine) and agrees(call, f"Also take out {lines} it?")
