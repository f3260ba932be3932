"""`ua-memory scan`: secrets that stand in the files already."""

from __future__ import annotations

import typer

from ua_memory.cli import context, verbs

scan_app = verbs.new()


@scan_app.command(cls=verbs.Verb)
def scan(ctx: typer.Context, as_json: verbs.Json = False, bank: verbs.Bank = None) -> None:
    """Look for secrets that stand in the files.

    What people write is never changed, so a secret in a hand-written note stays until they take it out;
    search and agents see it masked. Prints `file:line: kind`, never the secret. The exit code is 12 if there
    are any.
    """
    from ua_memory.cli.format import Screen, count, emit, note
    from ua_memory.errors import ProblemsFound

    with context.opened(ctx) as (call, memory):
        found = memory.secrets()
    if call.as_json:
        emit(call, {"secrets": [{"path": path, "line": line, "kind": kind} for path, line, kind in found]})
    else:
        screen = Screen(call)
        for path, line, kind in found:
            screen.item([(f"{path}:{line}:", "path"), " "], kind)
        if not found:
            screen.line(("No secrets", "good"), " that a detector knows.")
        else:
            note(
                call,
                f"{count(len(found), 'secret')}; ua-memory forget PATH:LINE takes a line out of everything; "
                "change them where they are used",
            )
    if found:
        raise typer.Exit(ProblemsFound.exit_code)
