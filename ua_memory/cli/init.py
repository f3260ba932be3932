"""`ua-memory init`: make a bank."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ua_memory.cli import context, verbs

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Cloned, Memory

init_app = verbs.new()
SAYS = {
    "MEMORY.md": "core memory: what every session begins with",
    "memory/": "what was said, one file a day",
    "ua-memory.toml": "its settings",
}


@init_app.command(cls=verbs.Verb)
def init(
    ctx: typer.Context,
    path: Annotated[
        str | None,
        typer.Argument(
            help="The folder; else the bank found from here, else ~/ua-memory.", show_default=False
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="ADDRESS",
            show_default=False,
            help="Clone the bank that this remote has into an empty folder, for a second machine.",
        ),
    ] = None,
    as_json: verbs.Json = False,
    bank: verbs.Bank = None,
) -> None:
    """Make a memory bank.

    An empty folder becomes a git repository of its own. Inside somebody's repository the history is kept
    apart from theirs. What is there already is kept as it is. A second run changes nothing.
    """
    from ua_memory.cli.format import emit
    from ua_memory.memory import Memory

    call = context.call_of(ctx)
    root, default = _root(call, path, new=source is not None)
    if source is not None and (call.cwd / source).exists():  # a folder, from where the caller stands
        source = str((call.cwd / source).resolve())
    cloned = Memory.clone(root, source) if source is not None else None
    folder = (root / "memory").is_dir()
    first = Memory.init(root, now=call.now, timezone="" if source else system_timezone(call), door="cli")
    config = context.settings_of(call, first.store.bank.root)  # of which only now is known whose they are
    memory = Memory.open(first.store.bank.root, config=config, now=call.now, door="cli")
    memory.founded = first.founded
    context.tell_untrusted(call, config)
    made = [*(memory.founded.made if memory.founded else ()), *(() if folder else ("memory/",))]
    if call.as_json:
        emit(call, _shape(memory, made, _notes(call, memory, default)) | (_cloned(cloned) if cloned else {}))
    elif cloned:
        _tell_cloned(call, memory, cloned, _notes(call, memory, default))
    else:
        _tell(call, memory, made, _notes(call, memory, default))
    memory.close()


def _cloned(done: Cloned) -> dict[str, object]:
    return {"from": done.address, "branch": done.branch, "revisions": done.revisions, "files": done.files}


def _tell_cloned(call: Call, memory: Memory, done: Cloned, notes: list[str]) -> None:
    from ua_memory.cli.format import Screen, count, note

    screen = Screen(call)
    screen.line(
        "Cloned the memory bank at ", (done.address, "path"), " into ", (memory.status().root, "path"), "."
    )
    what = f"{count(done.files, 'file')}, {count(done.revisions, 'revision')}, branch {done.branch}"
    screen.line(f"  {what}; the next search builds the index")
    for text in (*done.notes, *notes):
        note(call, text)
    screen.line()
    screen.line("Next:")
    screen.line("  ua-memory sync   whenever you like")


def _root(call: Call, path: str | None, *, new: bool) -> tuple[Path, bool]:
    """The folder, and whether it is the default one, which nobody has named."""
    from ua_memory import paths

    if path is not None:
        return context.absolute(call, path), False
    meant = context.named(call) or (None if new else context.found(call))
    return (meant, False) if meant else (paths.default_bank(call.home), True)


def system_timezone(call: Call) -> str:
    """The IANA name of the caller's time zone, by `TZ` or the link /etc/localtime; empty if neither says."""
    from ua_memory import config

    given = call.env.get("TZ", "").removeprefix(":")
    if not given:
        try:
            given = str(Path("/etc/localtime").resolve())
        except OSError:
            return ""
    name = given.rpartition("zoneinfo/")[2]
    return name if name not in ("", "localtime", "Factory") and config.is_zone(name) else ""


def _shape(memory: Memory, made: list[str], notes: list[str]) -> dict[str, object]:
    status = memory.status()
    return {
        "bank": status.root,
        "id": memory.config.id,
        "own": status.own,
        "trail": status.trail,
        "timezone": memory.config.timezone,
        "made": made,
        "notes": notes,
    }


def _notes(call: Call, memory: Memory, default: bool) -> list[str]:
    """What init says beside its result: which bank that is if nobody named one, and what it does not read."""
    import json
    import shlex

    root, notes = memory.store.bank.root, list(memory.founded.result.notes if memory.founded else ())
    if default and call.cwd.resolve() != root:
        notes.append(
            f"{root} is the default bank, used wherever there is no other; for one in this folder: "
            "ua-memory init ."
        )
    if count := memory.unread():
        files = "1 markdown file lies" if count == 1 else f"{count:,} markdown files lie"
        bank = "" if context.found(call) == root else f" --bank {shlex.quote(str(root))}"
        others = [
            path for path in memory.config.extra_paths if not (root / path).resolve().is_relative_to(root)
        ]
        value = shlex.quote(json.dumps([".", *others], ensure_ascii=False))
        notes.append(
            f"{files} outside of memory/ and will not be searched; to include what is in this folder: "
            f"ua-memory{bank} config set extraPaths {value}"
        )
    return notes


def _tell(call: Call, memory: Memory, made: list[str], notes: list[str]) -> None:
    from ua_memory.cli.format import Piece, Screen, note

    screen, status = Screen(call), memory.status()
    if not made:
        screen.line((status.root, "path"), " is a memory bank already. Nothing was changed.")
    else:
        screen.line("Made a memory bank in ", (status.root, "path"), ".")
        table: list[list[Piece]] = [[(f"  {name}", "path"), SAYS.get(name, "")] for name in made]
        where = "a git repository of its own" if status.own else f"kept apart, in {status.trail}"
        screen.rows([*table, ["  history", where]])
    for text in notes:
        note(call, text)
    if made:
        screen.line()
        screen.line("Next:")
        screen.line("  ua-memory insert ", ('"We left Heroku for Fly.io because the price doubled"', "match"))
        screen.line("  ua-memory search ", ('"why did we leave Heroku"', "match"))
