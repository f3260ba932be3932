"""`ua-memory retain`: draw the facts out of a text."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Item, Memory

retain_app = verbs.new()

Text = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TEXT... | FILE", help="The text, or a file; `-` or nothing reads standard input.",
        show_default=False,
    ),
]  # fmt: skip
DocumentId = Annotated[
    str | None,
    typer.Option(
        metavar="ID", help="The document it is: what has not changed costs nothing.", show_default=False
    ),
]
Append = Annotated[bool, typer.Option("--append", help="Add to the document, instead of replacing it.")]
Mode = Annotated[
    Literal["concise", "verbatim", "chunks", "custom"],
    typer.Option(
        metavar="MODE",
        help="concise; verbatim: your wording, the model adds dates and names; chunks: as it is, no model; "
        "custom: by --instructions.",
    ),
]
Mission = Annotated[
    str | None, typer.Option(metavar="TEXT", help="What to look for; else the bank's.", show_default=False)
]
Instructions = Annotated[
    str | None, typer.Option(metavar="TEXT", help="How to choose and phrase.", show_default=False)
]
About = Annotated[
    str | None,
    typer.Option(
        "--context", metavar="TEXT", help="What it is, for the model: minutes of …", show_default=False
    ),
]
Timestamp = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="When it was written, if not now: 2026-11-19.", show_default=False),
]
Tags = Annotated[
    list[str] | None,
    typer.Option("--tag", metavar="TAG", help="A tag of all its facts; may be repeated.", show_default=False),
]
Came = Annotated[
    Literal["person", "agent", "tool", "web", "import"] | None,
    typer.Option(metavar="WORD", help="Whose words: person, agent, tool, web or import.", show_default=False),
]
Client = Annotated[
    str | None, typer.Option(metavar="NAME", help="The program it came through.", show_default=False)
]
Wait = Annotated[
    bool, typer.Option("--wait", help="Wait for the model, and show what was kept.", show_default=False)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what it would keep and cost.")]
Redo = Annotated[bool, typer.Option("--redo", help="Read again also what has not changed.")]
Batch = Annotated[
    bool, typer.Option("--batch", help="The file, or standard input, has one JSON object a line: text, ….")
]


@retain_app.command(cls=verbs.Verb)
def retain(
    ctx: typer.Context,
    text: Text = None,
    document_id: DocumentId = None,
    append: Append = False,
    mode: Mode = "concise",
    mission: Mission = None,
    instructions: Instructions = None,
    about: About = None,
    timestamp: Timestamp = None,
    tag: Tags = None,
    origin: Came = None,
    client: Client = None,
    session: verbs.Session = None,
    request: verbs.Request = None,
    redo: Redo = False,
    batch: Batch = False,
    wait: Wait = False,
    dry_run: DryRun = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Draw the facts out of a text.

    With a model it returns as soon as the text is safe on the disk; the work goes on behind. Without one
    the author's own sentences are kept at once. Facts go to the log of the day, or, with --document-id,
    to memory/documents/. The same text again changes nothing.
    """
    from ua_memory.cli.origin import caller

    with context.opened(ctx) as (call, memory):
        who, through = caller(call)
        common: dict[str, Any] = {
            "document_id": document_id or "", "append": append, "mode": mode, "mission": mission or "",
            "instructions": instructions or "", "context": about or "", "tags": tuple(tag or ()),
            "timestamp": when(memory, timestamp), "origin": origin or who, "client": client or through,
            "session": session, "request": request, "redo": redo,
        }  # fmt: skip
        items = batched(call, memory, text, common) if batch else [_single(call, memory, text, common)]
        carry_out(call, memory, items, wait=wait, dry_run=dry_run)


def carry_out(call: Call, memory: Memory, items: list[Item], *, wait: bool, dry_run: bool) -> None:
    """Retain texts now, or hand them over to a process behind, or only say what it would take."""
    from ua_memory.cli import detached, retained
    from ua_memory.cli.progress import progress

    model = call.endpoint
    if dry_run:
        retained.show_priced(call, memory.priced(items, model=model))
    elif model is None or wait or all(item.mode == "chunks" for item in items):
        with progress(call, "Reading chunks") as tell:
            done = memory.retain_many(items, model=model, tell=tell)
        retained.show(call, done, modelled=model is not None)
    else:
        detached.survive()
        keys = memory.offer(items, model=model)
        retained.show_offered(call, items, keys, detached.start(call, memory, "queue", "retry", *keys))


def when(memory: Memory, given: str | None) -> datetime | None:
    """The time that was given, in the bank's timezone if it names none. Usage."""
    from ua_memory.errors import Usage

    if given is None:
        return None
    try:
        at = datetime.fromisoformat(given)
    except ValueError:
        raise Usage(
            f"{given!r} is no time", where="--timestamp", mend="use 2026-11-21 or 2026-11-21T14:32"
        ) from None
    return at if at.tzinfo else at.replace(tzinfo=memory.store.now().tzinfo)


def _single(call: Call, memory: Memory, words: list[str] | None, common: dict[str, Any]) -> Item:
    from ua_memory.cli.origin import read_text

    path = context.absolute(call, words[0]) if words and len(words) == 1 and words != ["-"] else None
    if path is not None and _is_file(path):
        return memory.file(path, **{**common, "origin": "import"})
    return memory.item(read_text(call, words), **common)


def _is_file(path: Any) -> bool:
    try:
        return bool(path.exists() and not path.is_dir())  # a pipe is told to be none
    except (OSError, ValueError):  # a sentence is too long for a path
        return False


KEYS = {"text", "document_id", "append", "mode", "mission", "instructions", "context", "timestamp", "tags",
        "origin", "session", "request"}  # fmt: skip


def batched(call: Call, memory: Memory, words: list[str] | None, common: dict[str, Any]) -> list[Item]:
    """The texts of a file or of standard input, one JSON object a line; its keys go before the options. Usage
    names the line, or says that there is none; then nothing is retained. TooLarge."""
    import json

    from ua_memory.cli.origin import given
    from ua_memory.errors import Usage

    path = context.absolute(call, words[0]) if words and len(words) == 1 and words != ["-"] else None
    if words and words != ["-"] and (path is None or not _is_file(path)):
        raise Usage("a batch is a file or standard input", mend="ua-memory retain --batch FILE")
    data = given(call, path)
    items = []
    for number, line in enumerate(data.decode("utf-8-sig", "replace").splitlines(), 1):
        if not line.strip():
            continue
        mend = f"known are {', '.join(sorted(KEYS))}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Usage(f"not JSON: {error}", where=f"line {number}") from None
        if not isinstance(row, dict) or not isinstance(row.get("text"), str) or row.keys() - KEYS:
            raise Usage("not an object with a text and known keys", where=f"line {number}", mend=mend)
        if "timestamp" in row:
            row["timestamp"] = when(memory, str(row["timestamp"]))
        items.append(memory.item(row.pop("text"), **{**common, **row}))
    if not items:
        raise Usage("there is no text", mend="one JSON object a line: text, document_id, …")
    return items
