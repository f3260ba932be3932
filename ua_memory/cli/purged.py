"""`ua-memory forget --purge`: what leaves the history, which branches and tags are rewritten, the backup."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ua_memory.cli import shapes
from ua_memory.cli.format import Screen, agrees, commit, count, emit, note

if TYPE_CHECKING:
    from ua_memory.cli.call import Call
    from ua_memory.memory import Forgotten, Memory, Purged, Purging


def only(memory: Memory, targets: Sequence[str]) -> bool:
    """Whether nothing is left to forget: no target, or all of them forgotten before."""
    return all(memory.is_forgotten(target) for target in targets)


def out(code: int) -> None:
    """Leave with an exit code."""
    if code:
        raise typer.Exit(code)


def run(
    call: Call, memory: Memory, ids: Sequence[str], done: Forgotten | None, backup: str | None, *,
    dry_run: bool, yes: bool,
) -> int:  # fmt: skip
    """Show what would be rewritten, ask, and do it; the exit code."""
    from ua_memory.cli import forgotten
    from ua_memory.errors import StillThere, Usage

    code = forgotten.show(call, memory, done, purging=True) if done and not call.as_json else 0
    planned = memory.purging(*ids, after=done)
    if not call.as_json:
        _show(call, planned)
    if dry_run:
        if call.as_json:
            emit(call, {"dryRun": True, "purge": _shape(planned)})
        return code
    if not yes:
        if not call.reads_terminal or call.as_json:
            raise Usage(
                f"{count(len(planned.refs), 'branch or tag', 'branches and tags')} would be rewritten",
                mend="look at them with --dry-run, then say --yes",
            )
        if not agrees(call, f"Rewrite {'these' if len(planned.refs) > 1 else 'it'}?"):
            return code
    made = memory.purge(planned, place(call, memory, backup))
    if call.as_json:
        first = forgotten.shape(memory, done, words=False) if done else {"dryRun": False}
        emit(call, {**first, "purge": {**_shape(planned), **_done(made)}})
    else:
        _told(call, made)
        if planned.around:
            theirs = "has committed files of this bank, and is yours to rewrite: what they say is still in it"
            note(call, f"{planned.around} {theirs}")
    return code if made.proof.holds else StillThere.exit_code


def _show(call: Call, planned: Purging) -> None:
    screen = Screen(call)
    statements = count(len(planned.ids), "forgotten statement")
    contents = count(len(planned.contents), "version of a file", "versions of files")
    screen.line(("Leaves the history:", "strong"), f" {statements}, out of {contents}")
    screen.line(("Is rewritten:", "strong"))
    for ref in planned.refs:
        screen.item([("  ~ ", "warn")], ref.short, (f"  {ref.id[:7]}", "rev"))
    if planned.remotes:
        screen.line(("Is let go of, and comes again with a fetch as long as its remote has it:", "strong"))
        screen.line(f"  {', '.join(planned.remotes)}")
    if planned.unknown:
        names = ", ".join(f"^{block}" for block in planned.unknown)
        screen.line(
            ("The history has no text of", "warn"), f" {names}: they have left it before, or had no id and"
        )
        screen.line("  more than one line; what it says of these is not found.")
    if planned.citing:
        where = ", ".join(planned.citing)
        screen.line(("Yours, cites it, and stays as it is:", "strong"), " ", (where, "path"))
    if planned.around:
        screen.line(("Is not touched:", "warn"), f" {planned.around}, which has committed files of this bank")
    if planned.own:
        screen.line(("So is what no branch or tag leads to: it is deleted.", "faint"))


def _told(call: Call, made: Purged) -> None:
    screen = Screen(call)
    for name, (old, new) in made.rewrote.items():
        screen.line("Rewrote ", made.short(name), "  ", (old[:7], "rev"), " to ", (new[:7], "rev"))
    if not made.rewrote:
        screen.line("No revision had to be rewritten.")
    proved(call, screen, made.proof, made.revision, made.backup)


def proved(call: Call, screen: Screen, proof: Any, revision: str | None, backup: str) -> None:
    """What the search has found, and where the old history lies."""
    if proof.holds:
        objects = count(proof.looked.get("history", 0), "object")
        where = f", also in the {objects} of the history ("
        screen.line(("Nothing of it is left", "good"), where, commit(revision), ")")
    else:
        screen.line(("Not all of it is gone", "bad"))
        for each in proof.found:
            note(call, f"it still stands in {each.where}")
    screen.line("The old history is in ", (backup, "path"))
    rest = ". Until then the purge is not finished."
    screen.line("Once you are sure, delete that: ", (f"rm {backup}", "strong"), rest)


def place(call: Call, memory: Memory, given: str | None) -> Path:
    """Where the old history goes: a new file outside of the bank, where nothing is synchronised or pushed."""
    if given:
        return call.cwd / Path(given).expanduser()
    base = Path(call.env.get("XDG_DATA_HOME") or call.home / ".local" / "share")
    name = f"{memory.store.bank.root.name}-{memory.store.now():%Y%m%d-%H%M%S}.bundle"
    return base / "ua-memory" / "purged" / name


def _shape(planned: Purging) -> dict[str, Any]:
    return {
        "ids": [f"^{block}" for block in planned.ids],
        "refs": [{"name": ref.name, "revision": ref.id} for ref in planned.refs],
        "remotes": list(planned.remotes),
        "unknown": [f"^{block}" for block in planned.unknown],
        **({"around": planned.around} if planned.around else {}),
        **({"citing": list(planned.citing)} if planned.citing else {}),
        "contents": len(planned.contents),
    }


def _done(made: Purged) -> dict[str, Any]:
    return {
        "rewrote": [{"name": name, "from": old, "to": new} for name, (old, new) in made.rewrote.items()],
        "backup": made.backup,
        "revision": made.revision,
        **shapes.searched(made.proof),
    }
