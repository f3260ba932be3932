"""`ua-memory undo` and `redo`: take back a revision, and take that back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Undone

undo_app, redo_app = verbs.new(), verbs.new()


@undo_app.command(cls=verbs.Verb)
def undo(
    ctx: typer.Context,
    revision: Annotated[
        str | None,
        typer.Argument(
            metavar="[REVISION]", help="A revision, as log shows it; else the newest.", show_default=False
        ),
    ] = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Take back a revision, also an old one.

    What came later stays. Where the same lines were changed again, both sides are shown and nothing is
    written. If facts disappeared all at once and are held, plain `undo` restores them.
    """
    with context.opened(ctx) as (call, memory):
        held = revision is None and bool(memory.status().held)
        done = memory.undo(revision)
        _tell(
            call,
            done,
            "Restored what had disappeared" if held else "Took back",
            "ua-memory redo" if not held else "",
        )


@redo_app.command(cls=verbs.Verb)
def redo(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Take back the newest undo."""
    with context.opened(ctx) as (call, memory):
        _tell(call, memory.redo(), "Brought back what was undone by", "ua-memory undo")


def _tell(call: Call, done: Undone, did: str, back: str) -> None:
    """Say what was done; `back` is the command that reverses it, empty where there is none."""
    from ua_memory.cli.format import Piece, Screen, commit, emit, outcome

    if call.as_json:
        return emit(call, shape(done))
    screen, result = Screen(call), done.result
    what: list[Piece] = [(done.revision.id[:7], "rev"), f" {done.revision.subject}"]
    if not back:
        what = ["in ", (", ".join(result.paths), "path")]
    screen.line(f"{did} ", *what, " (", commit(result.revision), ")")
    if back:
        screen.line((f"To reverse this: {back}", "faint"))
    outcome(call, result)


def shape(done: Undone) -> dict[str, Any]:
    from ua_memory.cli import shapes

    return {
        "undone": shapes.revision(done.revision),
        "revision": done.result.revision,
        "paths": list(done.result.paths),
        "notes": list(done.result.notes),
    }
