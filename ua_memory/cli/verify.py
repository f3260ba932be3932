"""`ua-memory verify`: check everything that must hold."""

from __future__ import annotations

import typer

from ua_memory.cli import context, verbs

verify_app = verbs.new()


@verify_app.command(cls=verbs.Verb)
def verify(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Check everything that must hold: the files, the ids, the history, the index.

    Prints `file:line: message` for each problem; the exit code is 12 if there are any.
    """
    from ua_memory.cli.format import Screen, count, emit, note
    from ua_memory.errors import ProblemsFound

    with context.opened(ctx) as (call, memory):
        found, unchecked = memory.verified()
        files = len(memory.store.survey().files)
    if call.as_json:
        emit(
            call,
            {
                "problems": [{"path": p.path, "line": p.line, "message": p.message} for p in found],
                "unchecked": [{"path": p.path, "message": p.message} for p in unchecked],
                "files": files,
            },
        )
    else:
        screen = Screen(call)
        for one in unchecked:
            note(call, f"{one.path}: {one.message}")
        for problem in found:
            screen.item([(f"{problem.path}:{problem.line}:", "path"), " "], problem.message)
        if not found:
            screen.line(("No problems", "good"), f" in {count(files, 'file')}.")
        else:
            note(call, f"{count(len(found), 'problem')} in {count(files, 'file')}")
    if found:
        raise typer.Exit(ProblemsFound.exit_code)
