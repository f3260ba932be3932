"""`ua-memory ingest`: files, each as a document."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ua_memory.cli import context, verbs
from ua_memory.cli.retain import (
    About,
    Append,
    DryRun,
    Instructions,
    Mission,
    Mode,
    Redo,
    Tags,
    Timestamp,
    Wait,
)

ingest_app = verbs.new()

Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", help="Markdown, text, HTML, PDF or DOCX.", show_default=False),
]
DocumentId = Annotated[
    str | None,
    typer.Option(metavar="ID", help="What the document is called; else its path.", show_default=False),
]


@ingest_app.command(cls=verbs.Verb)
def ingest(
    ctx: typer.Context,
    file: Files,
    document_id: DocumentId = None,
    append: Append = False,
    mode: Mode = "concise",
    mission: Mission = None,
    instructions: Instructions = None,
    about: About = None,
    timestamp: Timestamp = None,
    tag: Tags = None,
    redo: Redo = False,
    wait: Wait = False,
    dry_run: DryRun = False,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Draw the facts out of files, each into a document of its own.

    What has not changed since the last time costs nothing and keeps its facts; what is gone from the file
    takes its facts with it. HTML, PDF and DOCX need the extra: pip install 'ua-memory[ingest]'.
    """
    from ua_memory.cli.origin import caller
    from ua_memory.cli.retain import carry_out, when
    from ua_memory.errors import Usage

    with context.opened(ctx) as (call, memory):
        if document_id and len(file) > 1:
            raise Usage("one --document-id cannot name several files", mend="ingest them one by one")
        common: dict[str, Any] = {
            "document_id": document_id or "", "append": append, "mode": mode, "mission": mission or "",
            "instructions": instructions or "", "context": about or "", "tags": tuple(tag or ()),
            "timestamp": when(memory, timestamp), "origin": "import", "client": caller(call)[1], "redo": redo,
        }  # fmt: skip
        items = [memory.file(context.absolute(call, each), **common) for each in file]
        carry_out(call, memory, items, wait=wait, dry_run=dry_run)
