"""The tools that draw facts out of texts: retain, ingest, and ingest_file with what it may read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ua_memory.errors import NotFound, Usage
from ua_memory.mcp_server.declared import Caller, Hints, Param, Tool, aside
from ua_memory.memory import Memory

if TYPE_CHECKING:
    from ua_memory.memory import Item, Retained

PASS_TEXT = "pass its text to ingest, or have the user run: ua-memory ingest FILE"


def _retain(memory: Memory, given: Mapping[str, Any], caller: Caller) -> str:
    item = memory.item(
        given["content"], document_id=given.get("document_id", ""), context=given.get("context", ""),
        append=given.get("update_mode") == "append", tags=tuple(given.get("tags", ())),
        client=caller.client, session=caller.session, said_in=caller.said_in,
    )  # fmt: skip
    return _taken_in(memory, item, caller)


def _ingest(memory: Memory, given: Mapping[str, Any], caller: Caller) -> str:
    if not given["title"].strip():
        raise Usage("the title is empty")
    item = memory.item(
        given["content"], document_id=given["title"].strip(), origin="import", client=caller.client,
        session=caller.session, said_in=caller.said_in,
    )  # fmt: skip
    return _taken_in(memory, item, caller)


def _ingest_file(memory: Memory, given: Mapping[str, Any], caller: Caller) -> str:
    path = permitted(given["file_path"], caller.folders)
    item = memory.file(
        path, origin="import", client=caller.client, session=caller.session, said_in=caller.said_in
    )
    return _taken_in(memory, item, caller)


def permitted(given: str, folders: tuple[Path, ...]) -> Path:
    """The file that is meant, if the caller may have it read: in one of the folders when all symbolic links
    are followed, and nothing hidden below it. Usage, NotFound.

    An agent may be talked into naming any file by a text that it has read, and what is ingested stays, and
    travels with the bank. What a client was started in is what its user lets the agent work on.
    """
    roots = [folder.resolve() for folder in folders if folder.resolve() != Path(folder.anchor)]
    if not roots:
        raise Usage("no folder is open to it", mend=f"start the client in a project, or {PASS_TEXT}")
    try:
        path = (roots[0] / Path(given)).resolve()
        is_there = path.exists()  # which fails for a name that is too long for the file system
    except (OSError, ValueError, RuntimeError) as error:
        raise Usage(f"no path: {error}", where=given[:200]) from error
    root = next((root for root in roots if path.is_relative_to(root)), None)
    names = ", ".join(map(str, roots))
    if root is None:
        raise Usage(f"only files in {names} may be read", where=given[:200], mend=PASS_TEXT)
    if any(part.startswith(".") for part in path.relative_to(root).parts):
        raise Usage("hidden files and folders are not read", where=given[:200], mend=PASS_TEXT)
    if not is_there:
        raise NotFound("no such file", where=str(path), mend=f"name a file in {names}")
    return path


def _taken_in(memory: Memory, item: Item, caller: Caller) -> str:
    """Retain a text: now where no model is asked, else behind the call, when the text is safe on the disk."""
    if caller.model is None or caller.behind is None:
        return _told(memory.retain_many([item], model=caller.model)[0])
    keys = memory.offer([item], model=caller.model)
    caller.behind(("queue", "retry", *keys))
    name = f"{item.document_id!r}" if item.document_id else "The text"
    return f"{name} is safe and is being read; its facts can be searched in a minute. Do not pass it again."


def _told(done: Retained) -> str:
    name = f"{done.item.document_id!r}" if done.item.document_id else "The text"
    if done.repeated:
        return f"{name} was retained before: nothing changed."
    if done.item.document_id and not (done.read or done.removed):
        return f"{name} has not changed: nothing to do."
    counts = [(done.facts, "kept"), (done.seen_again, "known already"), (done.removed, "gone")]
    said = ", ".join(f"{len(facts)} {word}" for facts, word in counts if facts) or "nothing kept"
    lines = [f"{name}: {said}, in {done.path}." if done.path else f"{name}: {said}."]
    lines += [f"- {fact.text} ^{fact.id}" for fact in done.facts[:20]]
    lines += [f"… and {len(done.facts) - 20} more"] if len(done.facts) > 20 else []
    if not done.by and not done.facts and done.read:
        lines.append(
            "No model is configured, and no sentence weighs enough: archival_memory_insert keeps one."
        )
    return "\n".join([*lines, *aside(done.redacted, done.notes)])


UPSERTS = Hints(destroys=True, repeats=True, asks=True)

TOOLS = (
    Tool(
        "retain", "Retain a text",
        "Have memory draw the facts out of a text: notes, a conversation, a report. For one fact that you "
        "can phrase yourself use archival_memory_insert.",
        {
            "content": Param("text", "The text.", needed=True),
            "context": Param("text", "What it is: minutes of the design meeting."),
            "tags": Param("texts", "Tags of all its facts."),
            "document_id": Param("text", "The document it is; the same id again replaces what it said."),
            "update_mode": Param("text", "append: add to the document instead.", among=("replace", "append")),
        },
        UPSERTS, _retain,
    ),
    Tool(
        "ingest", "Ingest a document",
        "Have memory draw the facts out of a document, such as a web page you have read. The same title "
        "again replaces it: what has not changed costs nothing, facts of what is gone go.",
        {
            "title": Param("text", "What the document is called; it is kept under that name.", needed=True),
            "content": Param("text", "Its text, as markdown or plain text.", needed=True),
        },
        UPSERTS, _ingest,
    ),
    Tool(
        "ingest_file", "Ingest a file",
        "Have memory read a local file (markdown, text; HTML, PDF, DOCX if installed) and draw the facts "
        "out of it. Only files of the folder you work in, none that is hidden.",
        {"file_path": Param("text", "Its path, absolute or from the folder you work in.", needed=True)},
        UPSERTS, _ingest_file,
    ),
)  # fmt: skip
