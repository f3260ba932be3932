"""`ua-memory index`: the search index, which may be deleted and built anew at any moment."""

from __future__ import annotations

from typing import Any

import typer

from ua_memory.cli import context, verbs

index_app = verbs.new(
    no_args_is_help=True,
    help="The search index, which is made from the files and may be deleted at any moment.",
)


@index_app.callback()
def _group() -> None:
    """A family although it has one member yet."""


@index_app.command(cls=verbs.Verb)
def rebuild(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Build the index anew from the files alone."""
    from ua_memory.cli.format import Screen, count, emit, note
    from ua_memory.cli.progress import progress

    with context.opened(ctx) as (call, memory), progress(call, "Indexing") as tell:
        done = memory.rebuild(tell)
    if call.as_json:
        emit(call, shape(done))
        return
    Screen(call).line(
        f"Indexed {count(done.added, 'item')} of {count(done.files, 'file')} in {done.seconds:.1f} s."
    )
    for problem in done.failed:
        note(call, str(problem))
    for text in done.notes:
        note(call, text)
    if done.semantic != "ready":
        note(call, f"by words alone: {done.semantic}")


def shape(done: Any) -> dict[str, Any]:
    """What a rebuild did."""
    failed = [{"path": p.path, "line": p.line, "message": p.message} for p in done.failed]
    return {
        "items": done.added,
        "files": done.files,
        "embedded": done.embedded,
        "seconds": round(done.seconds, 3),
        "semantic": done.semantic,
        "failed": failed,
        "notes": list(done.notes),
    }
