"""`ua-memory undo` and `redo`: take back a revision, and take that back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Memory, Undone

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
        _tell(call, memory, done, "" if held else "ua-memory redo")


@redo_app.command(cls=verbs.Verb)
def redo(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Take back the newest undo."""
    with context.opened(ctx) as (call, memory):
        _tell(call, memory, memory.redo(), "ua-memory undo")


def _tell(call: Call, memory: Memory, done: Undone, back: str) -> None:
    """Say what was done, as `log` does; `back` is the command that reverses it, empty where held facts were
    restored."""
    from ua_memory.cli.format import Screen, commit, emit, outcome

    if call.as_json:
        return emit(call, shape(done))
    screen, result = Screen(call), done.result
    if back:
        said = _said(memory, done, "undo" if back.endswith("redo") else "redo")
        screen.line(f"{said}, ", commit(result.revision))
        screen.line((f"To reverse this: {back}", "faint"))
    else:
        where = ", ".join(result.paths)
        screen.line("Restored what had disappeared in ", (where, "path"), " (", commit(result.revision), ")")
    outcome(call, result)


def _said(memory: Memory, done: Undone, op: str) -> str:
    """The diary's words for it, also while its commit is owed."""
    from ua_memory.cli import diary
    from ua_memory.cli.log import entries

    named = {"Memory-Op": (op,), "Undoes": (done.revision.id,)}
    subject = f"{op}: {done.revision.subject}"
    own = replace(done.revision, id="", author=diary.OURS, subject=subject, trailers=named, paths=())
    (entry,) = entries(memory, [own], None, set())
    return entry.says


def shape(done: Undone) -> dict[str, Any]:
    from ua_memory.cli import shapes

    return {
        "undone": shapes.revision(done.revision),
        "revision": done.result.revision,
        "paths": list(done.result.paths),
        "notes": list(done.result.notes),
    }
