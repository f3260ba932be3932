"""`ua-memory log`: what was done, read like a diary."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.cli.diary import Entry
    from ua_memory.memory import Memory

log_app = verbs.new()
FOLDED = 10
"""So many revisions are read for each entry that is shown: those in a row that are alike are one."""


@log_app.command(cls=verbs.Verb)
def log(
    ctx: typer.Context,
    about: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATH | ^ID]", help="Only what touched this file or fact.", show_default=False
        ),
    ] = None,
    number: Annotated[
        int,
        typer.Option(
            "-n", "--limit", metavar="N", min=1, help="At most so many entries (with --json: revisions)."
        ),
    ] = 20,
    op: Annotated[
        str | None, typer.Option(metavar="WORD", help="Only this operation: insert, adopt, undo, …")
    ] = None,
    each: Annotated[
        bool, typer.Option("--each", help="An entry for each revision; nothing is folded.")
    ] = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Tell what was done, newest first, as a diary.

    Each entry has the id that `undo` and `diff` take; facts that one client noted in a row are one entry,
    with the id of the last. Hand edits stand here under the name of the person who made them.
    """
    from ua_memory.cli import shapes
    from ua_memory.cli.format import emit

    with context.opened(ctx) as (call, memory):
        if as_json:
            done = memory.log(about, op=op, limit=number)
            return emit(call, {"revisions": [shapes.revision(one) for one in done]})
        _tell(call, _entries(memory, about, op, number, each=each), memory.store.now().date())


def _entries(memory: Memory, about: str | None, op: str | None, number: int, *, each: bool) -> list[Entry]:
    from ua_memory.cli import diary

    done = memory.log(about, op=op, limit=number if each else number * FOLDED)
    zone = memory.store.now().tzinfo
    # Which go together is known without their words; these are read of what is shown only.
    plain = diary.entries(done, {}, set(), zone, each=each)
    if len(plain) > number:
        done = done[: next(n for n, one in enumerate(done) if one.id == plain[number].revision)]
    return diary.entries(done, memory.brought(done), memory.taken_back(), zone, each=each)[:number]


def _tell(call: Call, found: list[Entry], today: date) -> None:
    from ua_memory.cli.format import Piece, Screen
    from ua_memory.cli.times import day_title

    screen, day = Screen(call), None
    if not found:
        screen.line("No revisions.")
    for one in found:
        if one.when.date() != day:
            if day is not None:
                screen.line()
            day = one.when.date()
            screen.line((day_title(day, today if screen.fancy else date.min), "strong"))
        label: list[Piece] = [(f"  {one.when:%H:%M}  ", "faint"), (one.revision[:7], "rev"), "  "]
        said: list[Piece] = [(one.says, "faint"), (" (taken back)", "warn")] if one.gone else [one.says]
        screen.item(label, *said)
