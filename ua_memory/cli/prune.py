"""`ua-memory prune-recall-messages`: recalled memory taken out of clients' session files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory import regular
from ua_memory.cli import context, homes, verbs
from ua_memory.paths import make_private

if TYPE_CHECKING:
    from ua_memory.cli.call import Call

prune_recall_messages_app = verbs.new()

CONFIRM = "confirm"
SESSIONS = {"pi": "sessions", "claude-code": "projects", "codex": "sessions"}
"""The folder of a client's own in which it keeps its sessions."""
LONGEST = 64 << 20
"""Bytes of a line that is looked at."""

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[PATH]... [confirm]",
        help="Session files or folders; without any, those of pi, Claude Code and Codex. The last word "
        "`confirm` does it.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class Held:
    """A session file with recalled memory in it: (where a line begins, the line, what it becomes)."""

    path: Path
    lines: tuple[tuple[int, bytes, bytes], ...]


@prune_recall_messages_app.command(cls=verbs.Verb)
def prune_recall_messages(
    ctx: typer.Context, words: Words = None, as_json: verbs.Json = False, bank: verbs.Bank = None
) -> None:
    """Take recalled memory out of the session files in which a client has kept it.

    Recall is for one turn: what stands in a session file would be sent again when the session is resumed
    without ua-memory. Without `confirm` it shows what would go. With it each file is copied to
    `~/.local/share/ua-memory/pruned` first; then only those lines change, in place, and no file its length.
    """
    from ua_memory.cli.format import Screen, count, emit, note

    call = context.call_of(ctx)
    does = bool(words) and words is not None and words[-1] == CONFIRM
    given = [context.absolute(call, word) for word in (words or [])[: -1 if does else None]]
    found = [held for path in _files(call, given) if (held := _held(path)).lines]
    rows = [_row(held, _backup(call, held.path) if does else None) for held in found]
    for held in found if does else ():
        _write(held)
    if call.as_json:
        emit(call, {"pruned": does, "files": rows})
        return
    screen = Screen(call)
    for held, row in zip(found, rows, strict=True):
        told = count(len(held.lines), "message")
        screen.item([(str(held.path), "path"), ": "], f"{told}{' pruned' if does else ''}")
        if row["backup"]:
            screen.line(f"  as it was: {row['backup']}")
    if not found:
        screen.line(("No recalled memory", "good"), " in any session file that was looked at.")
    elif not does:
        note(call, "nothing was changed; the same with the word `confirm` at its end does it")
    else:
        note(call, "a session that is open in its client has it until it is resumed")


def _row(held: Held, backup: Path | None) -> dict[str, Any]:
    gone = sum(len(old) - len(new.rstrip()) for _, old, new in held.lines)
    where = str(backup) if backup else None
    return {"path": str(held.path), "messages": len(held.lines), "bytes": gone, "backup": where}


def _files(call: Call, given: list[Path]) -> Iterator[Path]:
    """The session files below the paths, or in the clients' own folders. NotFound."""
    from ua_memory.errors import NotFound

    for path in given:
        if not path.exists():
            raise NotFound("there is nothing", where=str(path), mend="name session files, or none")
    own = (homes.folder(call, client) / sub for client, sub in SESSIONS.items())
    for path in given or own:
        below = [path] if path.is_file() else sorted(path.rglob("*.jsonl"))
        yield from (file for file in below if file.is_file())  # no folder of the name, no dead link


def _held(path: Path) -> Held:
    """What of a file is to go. A last line without its end is somebody's who is writing it."""
    from ua_memory.clients.pruning import pruned

    lines, at = [], 0
    with regular.opened(path) as file:
        while line := file.readline(LONGEST):
            new = pruned(line) if line.endswith(b"\n") else None
            if new is not None:
                lines.append((at, line, new))
            at += len(line)
    return Held(path, tuple(lines))


def _backup(call: Call, path: Path) -> Path:
    """A copy of a file as it is, for its owner's eyes."""
    import os
    import shutil

    data = context.absolute(call, call.env.get("XDG_DATA_HOME") or "~/.local/share")
    folder = data / "ua-memory" / "pruned"
    make_private(folder)
    number, copy = 1, folder / path.name
    while True:
        try:
            fd = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            break
        except FileExistsError:
            number, copy = number + 1, folder / f"{path.stem}.{number}{path.suffix}"
    with regular.opened(path) as source, os.fdopen(fd, "wb") as target:
        shutil.copyfileobj(source, target)
        target.flush()
        os.fsync(target.fileno())
    return copy


def _write(held: Held) -> None:
    """Write the lines over those that they were. ChangedOnDisk, and nothing, where one is another."""
    import os

    from ua_memory.errors import ChangedOnDisk

    with held.path.open("r+b", buffering=0) as file:
        if any(os.pread(file.fileno(), len(old), at) != old for at, old, _ in held.lines):
            raise ChangedOnDisk("the file was rewritten meanwhile", where=str(held.path), mend="try again")
        for at, _, new in held.lines:
            os.pwrite(file.fileno(), new, at)
        os.fsync(file.fileno())
