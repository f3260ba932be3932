"""`ua-memory scan`: secrets that stand in the files already, or in their history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call

scan_app = verbs.new()
History = Annotated[bool, typer.Option("--history", help="Look through every revision there was, too.")]


@scan_app.command(cls=verbs.Verb)
def scan(
    ctx: typer.Context, history: History = False, as_json: verbs.Json = False, bank: verbs.Bank = None
) -> None:
    """Look for secrets that stand in the files.

    What people write is never changed, so a secret in a hand-written note stays until they take it out;
    search and agents see it masked. Prints `file:line: kind`, never the secret; what only the history has
    begins with the revision that it came with. The exit code is 12 if there are any.
    """
    from ua_memory.errors import ProblemsFound

    with context.opened(ctx) as (call, memory):
        found = memory.secrets()
        past = memory.past_secrets() if history else []
    if call.as_json:
        from ua_memory.cli.format import emit

        printed = {"secrets": [{"path": path, "line": line, "kind": kind} for path, line, kind in found]}
        then = [{"revision": r, "path": path, "line": line, "kind": kind} for r, path, line, kind in past]
        emit(call, {**printed, **({"history": then} if history else {})})
    else:
        _print(call, found, past)
    if found or past:
        raise typer.Exit(ProblemsFound.exit_code)


def _print(call: Call, found: list[tuple[str, int, str]], past: list[tuple[str, str, int, str]]) -> None:
    from ua_memory.cli.format import Screen, count, note

    screen = Screen(call)
    for path, line, kind in found:
        screen.item([(f"{path}:{line}:", "path"), " "], kind)
    for revision, path, line, kind in past:
        screen.item([(f"{revision[:10]}:{path or 'message'}:{line}:", "path"), " "], kind)
    if not found and not past:
        screen.line(("No secrets", "good"), " that a detector knows.")
    if found:
        mend = "forget PATH:LINE takes a line out of everything; change them where they are used"
        note(call, f"{count(len(found), 'secret')} in the files; {mend}")
    if past:
        mend = "change them where they are used; forget --purge takes a line out of it"
        note(call, f"{count(len(past), 'secret')} came into the history; {mend}")
