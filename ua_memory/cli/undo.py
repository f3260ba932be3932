"""`ua-memory undo` and `redo`: take back a revision, and take that back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Undone

undo_app, redo_app = verbs.new(), verbs.new()


@undo_app.command(cls=verbs.Verb)
def undo(
    ctx: typer.Context,
    revision: Annotated[str | None, typer.Argument(metavar="[REVISION]", help="A revision, as log shows it; else the newest.", show_default=False)] = None,
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
        _tell(call, done, "Restored what had disappeared" if held else "Took back", "ua-memory redo" if not held else "")


@redo_app.command(cls=verbs.Verb)
def redo(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Take back the newest undo."""
    with context.opened(ctx) as (call, memory):
        _tell(call, memory.redo(), "Brought back what was undone by", "ua-memory undo")


def _tell(call: Call, done: Undone, did: str, back: str) -> None:
    from ua_memory.cli import shapes
    from ua_memory.cli.format import Screen, emit, note

    result = done.result
    if call.as_json:
        emit(call, {"undone": shapes.revision(done.revision), "revision": result.revision, "paths": list(result.paths), "notes": list(result.notes)})
        return
    screen = Screen(call)
    commit = f"commit {result.revision[:7]}" if result.revision else "not committed yet"
    what: list[tuple[str, str] | str] = [" ", (done.revision.id[:7], "rev"), f" {done.revision.subject}"] if back else [f" in {', '.join(result.paths)}"]
    screen.line(did, *what, " (", (commit, "rev"), ")", *([f". To reverse this: {back}"] if back else []))
    for text in result.notes:
        note(call, text)
