"""`ua-memory sync` and `export`: one memory on many machines, and all of it in one file."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ua_memory import caller
from ua_memory.cli import app
from ua_memory.cli.history import backup_file
from ua_memory.errors import StillThere
from ua_memory.views import history, output
from ua_memory.views.output import Screen, commit, count, emit, note

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ua_memory.caller import Call
    from ua_memory.memory import Memory
    from ua_memory.upkeep.archive import RestoreResult
    from ua_memory.upkeep.sync import SyncResult


sync_app, export_app = app.new(), app.new()
SHOWN = 12
WHY = {
    "kept": "deleted on one machine, changed on the other: kept",
    "both": "changed on both machines: both were kept",
    "theirs": "changed on both machines: the remote's was kept",
}


@app.verb(sync_app)
def sync(
    call: Call,
    memory: Memory,
    remote: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="The remote's address, as for git; needed once.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Fetch and show what would be done; change nothing.")
    ] = False,
) -> None:
    """Sync with the remote.

    Pulls, merges by id and pushes. What either machine added stays, what one deleted is deleted unless the
    other changed it, what was forgotten does not return, and two versions of one fact are both kept. A purge
    on one machine is applied on the others. See docs/sync.md.
    """
    done = memory.remote.sync(remote, dry_run=dry_run, backup=backup_file(call, memory, None))
    _tell(call, done)
    if any(one and not one.proof.holds for one in (done.followed, done.heard)):
        raise typer.Exit(StillThere.exit_code)


def _tell(call: Call, done: SyncResult) -> None:
    if call.as_json:
        return emit(call, shape(done))
    screen = Screen(call)
    if not done.received and not done.sent and not done.forced and not done.followed:
        screen.line("Up to date with ", (done.address, "path"), ": nothing to receive or send.")
    else:
        screen.line(("Would sync" if done.trial else "Synced", "strong"), " with ", (done.address, "path"))
        verb = ("to receive", "to send") if done.trial else ("received", "sent")
        screen.line(f"  {verb[0]} {count(done.received, 'revision')}{_figures(done)}")
        screen.line(f"  {verb[1]} {count(done.sent, 'revision')}")
    told(screen, done)
    _purges(call, screen, done)
    _left(call, done)
    if done.trial:
        screen.line(("Nothing was changed (--dry-run).", "faint"))
    for text in done.notes:
        note(call, text)


def _left(call: Call, done: SyncResult | RestoreResult) -> None:
    """Name the lines of a person's that have the words of what was forgotten."""
    if done.heard and not done.heard.proof.holds:
        for each in done.heard.proof.found:
            note(call, f"forgotten on another machine, and it is still in {each.where}")
        note(call, "your own lines stay: ua-memory forget PATH:LINE removes one")


def _purges(call: Call, screen: Screen, done: SyncResult) -> None:
    """What of a history takes the place of what: purged here, or on another machine."""
    if done.forced:
        old, new = (name[:7] for name in done.forced)
        verb = "Would replace" if done.trial else "Replaced"
        screen.line(
            (verb, "warn"), " the history there, which has what was purged here: ", (old, "rev"), " by ",
            (new, "rev"), ". It is forced; other machines follow with their next sync.",
        )  # fmt: skip
    if done.followed:
        number = count(len(done.followed.ids), "forgotten statement")
        verb = "Would take" if done.trial else "Took"
        screen.line((verb, "warn"), f" {number} from this history, as it was purged on another machine.")
        if not done.trial:
            screen.line("  ", (done.followed.old[:7], "rev"), " became ", (done.followed.new[:7], "rev"))
            for name in done.followed.holding:
                screen.line("  The old history is kept by ", (name, "warn"), ": delete it, or rewrite it with"
                            " ua-memory forget --purge")  # fmt: skip
            history.proved(call, screen, done.followed.proof, done.followed.new, done.followed.backup)


def _figures(done: SyncResult | RestoreResult) -> str:
    merge = done.merge
    parts = [f"{n:,} {word}" for n, word in _numbers(done) if n]
    parts += [f"{len(merge.forgotten):,} forgotten"] if merge.forgotten else []
    return f": {', '.join(parts)} (of what has an id)" if parts else ""


def _numbers(done: SyncResult | RestoreResult) -> Iterator[tuple[int, str]]:
    yield done.merge.came, "new"
    yield done.merge.changed, "changed"
    yield done.merge.went, "gone"


def told(screen: Screen, done: SyncResult | RestoreResult) -> None:
    """What both machines changed, with what each of them has, for a person to settle."""
    for each in done.merge.told[:SHOWN]:
        screen.line((each.path, "path"), " ", (each.what, "id"), f" {WHY[each.why]}")
        for name, text in (("here", each.ours), ("there", each.theirs)):
            screen.item(f"  {name + ':':<7}", text or ("(deleted)", "faint"))
    if len(done.merge.told) > SHOWN:
        screen.line((f"… and {len(done.merge.told) - SHOWN:,} more (--json lists all)", "faint"))
    both = [each.what for each in done.merge.told if each.why == "both"]
    if any(what.startswith("^") for what in both):
        screen.line(("To resolve one: edit the line that keeps the id, and delete the other.", "faint"))
    blocks = [what.removeprefix("## ") for what in both if what.startswith("## ")]
    for name in blocks:
        how = f'ua-memory core replace {shlex.quote(name)} "what holds"'
        screen.line((f"{name} has both versions. To resolve it: {how}", "faint"))
    if "text" in both:
        screen.line(("Both versions of a text follow each other: delete the wrong one.", "faint"))

    dropped(screen, done)


def dropped(screen: Screen, done: SyncResult | RestoreResult) -> None:
    """What was written or changed on one machine and forgotten on the other: where it was, not its words."""
    for each in done.merge.dropped:
        name = f" ^{each.id}" if each.id else ""
        which = ("on the other machine", "here") if each.side == "here" else ("here", "there")
        said = f" was forgotten {which[0]}, and was removed with later changes {which[1]}"
        screen.line((f"{each.path}:{each.line}", "path"), (name, "id"), (said, "warn"))
        if "/" in each.revision:
            screen.line("  only the old history has it still: ", (each.revision, "path"))
        elif each.revision:
            there = f": ua-memory git show {each.revision[:10]}:{each.path}"
            screen.line("  still in ", (each.revision[:7], "rev"), there)
        else:
            screen.line("  still in the file, and in no revision yet")
    if done.merge.dropped:
        screen.line(("To keep one, write it again without its ^id.", "faint"))


def shape(done: SyncResult) -> dict[str, Any]:
    """The JSON of a sync."""
    return {
        "remote": done.remote,
        "address": done.address,
        "dry_run": done.trial,
        "received": done.received,
        "sent": done.sent,
        "revision": done.revision,
        **merged(done),
        "forced": dict(zip(("from", "to"), done.forced, strict=True)) if done.forced else None,
        "followed": _followed(done.followed) if done.followed else None,
        "heard": _heard(done.heard) if done.heard else None,
        "notes": list(done.notes),
    }


def _heard(one: Any) -> dict[str, Any]:
    return {"ids": [f"^{block}" for block in one.ids], **output.searched(one.proof)}


def _followed(one: Any) -> dict[str, Any]:
    return {
        "ids": [f"^{block}" for block in one.ids],
        "from": one.old,
        "to": one.new or None,
        "backup": one.backup or None,
        **output.searched(one.proof),
        "holding": list(one.holding),
    }


def merged(done: SyncResult | RestoreResult) -> dict[str, Any]:
    """The JSON of what came in."""
    merge = done.merge
    keys = ("what", "path", "why", "ours", "theirs")
    return {
        "new": merge.came,
        "changed": merge.changed,
        "gone": merge.went,
        "forgotten": list(merge.forgotten),
        "told": [{key: getattr(each, key) for key in keys} for each in merge.told],
        "dropped": [asdict(each) | {"id": f"^{each.id}" if each.id else None} for each in merge.dropped],
    }


@app.verb(export_app)
def export(
    call: Call,
    memory: Memory,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The archive to write: a .tar outside the bank.")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what it would contain; write nothing.")
    ] = False,
) -> None:
    """Export the whole bank to one file.

    Its files, its history as a git bundle, and a manifest with the hash of each. No index, keys or queue.
    `import archive FILE` verifies everything before it imports it. See docs/sync.md.
    """
    done = memory.remote.export(caller.absolute(call, file), dry_run=dry_run)
    if call.as_json:
        keys = ("file", "bank", "revision", "revisions", "files", "bytes")
        emit(
            call,
            {**{key: getattr(done, key) for key in keys}, "dry_run": dry_run, "notes": list(done.notes)},
        )
        return
    what = f"{count(done.files, 'file')}, {count(done.revisions, 'revision')}, {done.bytes:,} bytes"
    Screen(call).line("Would write " if dry_run else "Wrote ", (done.file, "path"), f": {what}")
    for text in done.notes:
        note(call, text)


def restored(call: Call, done: RestoreResult) -> None:
    """Say what an archive brought."""
    if call.as_json:
        keys = ("file", "bank", "made", "files", "received", "revision")
        known = {key: getattr(done, key) for key in keys}
        return emit(
            call,
            {
                "source": "archive",
                **known,
                "dry_run": done.trial,
                **merged(done),
                "heard": _heard(done.heard) if done.heard else None,
                "notes": list(done.notes),
            },
        )
    screen = Screen(call)
    what = f"{count(done.files, 'file')} of {done.made[:10]}, verified: "
    if not done.received:
        screen.line((done.file, "path"), f" ({what}all of it is already here).")
    else:
        came = f"{count(done.received, 'revision')}{_figures(done)}"
        screen.line(
            "Would take in " if done.trial else "Took in ", (done.file, "path"), f" ({what}{came})",
            *([] if done.trial else [" ", commit(done.revision)]),
        )  # fmt: skip
    told(screen, done)
    _left(call, done)
    for text in done.notes:
        note(call, text)
