"""`ua-memory log`: what was done, read like a diary."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.cli.diary import Entry
    from ua_memory.memory import Memory, Revision

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

    Each entry has the id that `undo` and `diff` take; facts that one client inserted in a row are one
    entry, with the id of the last. Hand edits stand here under the name of the person who made them.
    """
    from ua_memory.cli import shapes
    from ua_memory.cli.format import emit

    with context.opened(ctx) as (call, memory):
        if as_json:
            done = memory.log(about, op=op, limit=number)
            return emit(call, {"revisions": [shapes.revision(one) for one in done]})
        _tell(call, _entries(memory, about, op, number, each=each), memory.store.now().date())


def _entries(memory: Memory, about: str | None, op: str | None, number: int, *, each: bool) -> list[Entry]:
    """The newest entries, each of them whole: it ends where another begins, not where reading did."""
    from ua_memory.cli import diary

    zone, gone, shown = memory.store.now().tzinfo, memory.taken_back(), number
    while True:
        limit = shown if each else shown * FOLDED
        done = memory.log(about, op=op, limit=limit)
        # Which go together at most is known without their words; these are read of little more than is shown.
        starts = {one.revision for one in diary.entries(done, {}, gone, zone, each=each)[shown:][:1]}
        end = next((n + 1 for n, one in enumerate(done) if one.id in starts), len(done))
        found = entries(memory, done[:end], about, gone, each=each)
        if each or len(found) > number or (end == len(done) and len(done) < limit):
            return found[:number]
        shown *= 2


def entries(
    memory: Memory, done: Sequence[Revision], about: str | None, gone: set[str], *, each: bool = False
) -> list[Entry]:
    """Revisions as the diary tells of them, with what they took back, however long ago."""
    from ua_memory.cli import diary

    others = _taken(memory, done)
    brought = memory.brought([*done, *others], about)
    return diary.entries(done, brought, gone, memory.store.now().tzinfo, each=each, others=others)


def _taken(memory: Memory, done: Sequence[Revision]) -> list[Revision]:
    """What these took or brought back, and what that had; without those that the history has no more."""
    from ua_memory.errors import NotFound

    found: dict[str, Revision] = {one.id: one for one in done}
    left = [name for one in done for name in one.trailers.get("Undoes", ())]
    while left:
        name = left.pop()
        if name not in found:
            with contextlib.suppress(NotFound):
                found[name] = memory.store.history.show(name)
                left += found[name].trailers.get("Undoes", ())
    return list(found.values())[len(done) :]


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
