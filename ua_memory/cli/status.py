"""`ua-memory status`: how the bank stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.cli.format import Piece
    from ua_memory.memory import Memory, Status

status_app = verbs.new()


@status_app.command(cls=verbs.Verb)
def status(
    ctx: typer.Context,
    accept: Annotated[bool, typer.Option("--accept", help="Let facts that disappeared by hand be gone.")] = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Show how the bank stands: what is edited, held, pending, how full core memory is."""
    from ua_memory.cli.format import emit, note

    with context.opened(ctx) as (call, memory):
        held = memory.status().held if accept else ()
        result = memory.accept() if accept else None
        if result is not None:
            for text in result.notes:
                note(call, text)
            note(call, f"accepted: {', '.join(held)}" if held else "nothing was held")
        found = memory.status()
        if call.as_json:
            emit(call, shape(found) | ({"accepted": list(held)} if accept else {}))
        else:
            _tell(call, memory, found)


def shape(found: Status) -> dict[str, Any]:
    from ua_memory.cli import shapes

    whole, *blocks = found.budgets
    return {
        "bank": found.root, "trail": found.trail, "own": found.own,
        **({"head": shapes.revision(found.head)} if found.head else {}),
        "files": found.files, "edited": list(found.edited), "held": list(found.held), "pending": list(found.pending),
        "core": {**shapes.budget(whole), "blocks": {block.name: shapes.budget(block) for block in blocks}},
        "problems": found.problems, "index": dict(found.index),
    }  # fmt: skip


def _tell(call: Call, memory: Memory, found: Status) -> None:
    from ua_memory.cli.format import Screen, count
    from ua_memory.cli.times import ago

    screen, now = Screen(call), memory.store.now()
    rows: list[list[Piece]] = [["Bank", (found.root, "path")]]
    rows.append(["History", "a git repository of its own" if found.own else f"kept apart, in {found.trail}"])
    if found.head:
        moment = ago(found.head.when.astimezone(now.tzinfo), now) if screen.fancy else f"{found.head.when.astimezone(now.tzinfo):%Y-%m-%d %H:%M}"
        rows.append(["Last", f"{moment}, {found.head.id[:7]} {found.head.subject}"])
    rows.append(["Files", count(found.files, "file")])
    if found.edited:
        rows.append(["By hand", (f"{', '.join(found.edited)}: edited, not committed yet", "warn")])
    if found.held:
        rows.append(["Held", (f"facts disappeared from {', '.join(found.held)}\nconfirm: ua-memory status --accept\nrestore: ua-memory undo", "bad")])
    if found.pending:
        rows.append(["Pending", ("\n".join([*found.pending, "finish: ua-memory doctor --mend"]), "warn")])
    whole = found.budgets[0]
    rows.append(["Core", f"{whole.used:,} of {whole.limit:,} tokens in {count(len(found.budgets) - 1, 'block')}"])
    for warning in [budget.warning for budget in found.budgets if budget.warning]:
        rows.append(["", (warning, "warn")])
    rows.append(["Problems", (f"{found.problems}: ua-memory verify", "bad") if found.problems else "none"])
    rows.append(["Index", ", ".join(f"{value}" if key == "state" else f"{key} {value}" for key, value in found.index.items())])
    screen.rows([[(str(row[0]), "strong"), *row[1:]] for row in rows])
